"""How far the box's worst case is really attained: a distribution that exists, on the way to the corner.

`worst_case` ignores that the correlation matrix of *all* columns must be semidefinite. Here we walk from the stated moments
straight to its corner, keeping the other columns at their stated slopes or correlations, and stop at the last point whose
matrix is semidefinite. That point lies in Theta, so the noise it needs is a lower bound; the certificate reports the gap.

Only the correlations b of the query column with the others move, whose own matrix R stays as it is. With a slack e on the
diagonal for rounding, the whole is semidefinite iff R + e is positive definite and b' (R + e)^-1 b <= 1 + e. So R is taken
apart once for a query column, whatever the secret and however many points are tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.worst_case import Extreme

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

_STEPS = 40
_PSD_SLACK = 1e-12


def witness(gaussian: Gaussian, query: str, secret: str, corner: Extreme) -> Extreme:
    """The furthest distribution of Theta found on the way to `corner`; `corner` itself where it exists."""
    columns = gaussian.near(query)
    if query == secret or len(gaussian.columns) == 2:
        return corner
    if columns is None:  # it would move in several cliques of stated pairs at once; the stated moments themselves exist
        return _between(gaussian, query, secret, corner, 0.0)
    others = _others(gaussian, query, columns)
    if others.exists(secret, corner):
        return corner
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        inside = others.exists(secret, _between(gaussian, query, secret, corner, middle))
        low, high = (middle, high) if inside else (low, middle)
    return _between(gaussian, query, secret, corner, low)


def _between(gaussian: Gaussian, query: str, secret: str, corner: Extreme, share: float) -> Extreme:
    """The point of the box that lies `share` of the way from the stated moments to the corner."""

    def mix(start: float, end: float) -> float:
        return start + share * (end - start)

    sd_query = mix(gaussian.sd_of(query), corner.sd_query)
    sd_secret = mix(gaussian.sd_of(secret), corner.sd_secret)
    if gaussian.tolerance.slope is not None:
        slope = mix(abs(gaussian.slope(query, secret)), corner.slope)
    else:
        stated = abs(gaussian.correlation_of(query, secret))
        slope = mix(stated, corner.slope * corner.sd_secret / corner.sd_query) * sd_query / sd_secret
    return Extreme(slope, max(0.0, sd_query**2 - (slope * sd_secret) ** 2), sd_query, sd_secret)


@dataclass(frozen=True, eq=False)
class _Others:
    """The columns beside a query column, all in one clique: of each its place, the stated correlation and slope, its sd."""

    places: dict[str, int]
    correlations: Matrix
    slopes: Matrix | None
    """None where the correlations stay as stated while the sds move, not the slopes."""
    sds: Matrix
    root: Matrix | None
    """W with W'W the inverse of R + e; None where that is not positive definite."""

    def exists(self, secret: str, point: Extreme) -> bool:
        """Whether some law has these moments."""
        import numpy as np

        place = self.places[secret]
        row = self.correlations.copy()
        if self.slopes is not None:
            row = self.slopes * self.sds / point.sd_query
        sign = -1.0 if self.correlations[place] < 0 else 1.0
        row[place] = sign * point.slope * point.sd_secret / point.sd_query
        if self.root is None or not np.abs(row).max() <= 1 + _PSD_SLACK:
            return False
        return float(np.sum((self.root @ row) ** 2)) <= 1 + _PSD_SLACK


@lru_cache(maxsize=256)  # a plan asks once for each secret
def _others(gaussian: Gaussian, query: str, columns: tuple[str, ...]) -> _Others:
    import numpy as np

    names = [column for column in columns if column != query]
    whole = gaussian.correlation_matrix((query, *names))
    slopes = np.array([gaussian.slope(query, name) for name in names]) if gaussian.tolerance.slope is not None else None
    try:
        root = np.linalg.inv(np.linalg.cholesky(whole[1:, 1:] + _PSD_SLACK * np.eye(len(names))))
    except np.linalg.LinAlgError:
        root = None
    sds = np.array([gaussian.sd_of(name) for name in names])
    return _Others({name: k for k, name in enumerate(names)}, whole[0, 1:], slopes, sds, root)
