"""The worst distribution in a Gaussian assumption's box, for one query column and one sensitive column.

Given the secret g = a (the mean of the sensitive column) the mean F of the query column is normal,

    F | g = a  ~  N( const + slope * a,  residual / n ),     slope = rho s_q / s_g,   residual = s_q^2 (1 - rho^2),

and the noise that hides a gap d at distance mu has variance  slope^2 (d/mu)^2 - credit * residual  with credit = 1/n (less
when rows are known). The maximum over the box, *jointly* in slope and residual, has a closed form:

- slope box: the expression grows with |slope| and with s_g, and falls with s_q; so |slope| and s_g are largest, s_q smallest,
  where some correlation below 1 allows it;
- correlation box: it equals s_q^2 [rho^2 ((d/mu)^2/s_g^2 + credit) - credit]; so |rho| is largest, s_g smallest, and s_q at
  the end that the sign of the bracket names.

Both are exact for two columns. With more columns the correlation matrix must also be semidefinite, which only removes
distributions: the value is then an upper bound, and `witness` says how far a distribution that does exist goes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.assumptions.gaussian import Gaussian

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

# Of a squared sd: the rounding of what a correlation leaves of it.
_ROUNDING = 64 * 2.0**-53


@dataclass(frozen=True)
class Extreme:
    """One distribution of the box, seen through a query column and a sensitive column."""

    slope: float
    residual: float
    sd_query: float
    sd_secret: float

    def need(self, stretch: float, credit: float) -> float:
        """The noise variance this distribution asks for; `stretch` is (d/mu)^2."""
        return self.slope**2 * stretch - credit * self.residual


# A column's mean given itself: known exactly, whatever the moments are.
def _itself(gaussian: Gaussian, column: str) -> Extreme:
    sd = gaussian.sd_of(column)
    return Extreme(slope=1.0, residual=0.0, sd_query=sd, sd_secret=sd)


def candidates(gaussian: Gaussian, query: str, secret: str) -> tuple[Extreme, ...]:
    """A few distributions of the box, one of which asks for the most noise at whatever gap, distance and credit."""
    if query == secret:
        return (_itself(gaussian, query),)
    if gaussian.tolerance.slope is not None:
        return (_worst_slope(gaussian, query, secret),)
    return _worst_correlation(gaussian, query, secret)


def worst(gaussian: Gaussian, query: str, secret: str, stretch: float, credit: float) -> Extreme:
    """The distribution of the box that asks for the most noise."""
    return max(candidates(gaussian, query, secret), key=lambda extreme: extreme.need(stretch, credit))


def _worst_slope(gaussian: Gaussian, query: str, secret: str) -> Extreme:
    q_low, q_high = gaussian.sd_range(query)
    g_low, g_high = gaussian.sd_range(secret)
    steepest = abs(gaussian.slope(query, secret)) * (1 + (gaussian.tolerance.slope or 0.0))
    slope = min(steepest, q_high / g_low)
    if slope * g_high <= q_low:
        return Extreme(slope, _left(q_low, slope * g_high), q_low, g_high)
    # The corner would need a correlation above 1. Where it is exactly 1 nothing is left over, and such a point is in the box.
    sd_secret = max(g_low, min(g_high, q_low / slope))
    return Extreme(slope, 0.0, slope * sd_secret, sd_secret)


def _left(sd: float, explained: float) -> float:
    """sd^2 - explained^2 from below, and not below 0.

    Both are products of the stated moments. With u = 2^-53, `explained`, at most `sd`, is off by 12 u sd at most: ten
    roundings, of which up to five where the correlation is worked out of covariances. `sd` is off by 3 u sd. So the squares
    are off by 30 u sd^2, and the product by 3 u sd^2 more; 64 u sd^2 is taken off. Near a correlation of 1 what is left may
    be rounding alone.
    """
    return max(0.0, (sd - explained) * (sd + explained) - _ROUNDING * sd**2)


def _worst_correlation(gaussian: Gaussian, query: str, secret: str) -> tuple[Extreme, ...]:
    g_low, _ = gaussian.sd_range(secret)
    rho = _largest_correlation(gaussian, query, secret)
    ends = dict.fromkeys(gaussian.sd_range(query))
    return tuple(Extreme(rho * sd / g_low, sd**2 * _left(1.0, rho), sd, g_low) for sd in ends)


def _largest_correlation(gaussian: Gaussian, query: str, secret: str) -> float:
    return min(1.0, abs(gaussian.correlation_of(query, secret)) + (gaussian.tolerance.correlation or 0.0))


def steepest_slope(gaussian: Gaussian, query: str, secret: str) -> float:
    """The largest |slope| in the box: what counts where no variance is credited."""
    return max(extreme.slope for extreme in candidates(gaussian, query, secret))


def least_residual(gaussian: Gaussian, query: str, secret: str) -> float:
    """The least variance of a row of the query column once the sensitive column's entry is known."""
    return min(extreme.residual for extreme in candidates(gaussian, query, secret))


def least_joint_residual(gaussian: Gaussian, queries: Sequence[str], secret: str) -> float:
    """A lower bound on the smallest eigenvalue of the partial covariance of the query columns, each in units of its own sd.

    Partial covariance in sd units: P_kl = rho_kl - rho_kg rho_lg. Its entries vary in an interval over the box; a symmetric
    perturbation moves an eigenvalue by at most its largest row sum of absolute values.
    """
    import numpy as np

    others = [query for query in queries if query != secret]
    if not others:
        return math.inf
    low, high = correlation_ranges(gaussian, (*others, secret))
    a, b = low[:-1, -1], high[:-1, -1]
    # Centre and half-width of the interval of rho_kl - rho_kg rho_lg.
    products = np.stack([np.outer(x, y) for x in (a, b) for y in (a, b)])
    least, most = products.min(axis=0), products.max(axis=0)
    np.fill_diagonal(least, np.where((a <= 0) & (b >= 0), 0.0, np.minimum(a * a, b * b)))
    np.fill_diagonal(most, np.maximum(a * a, b * b))
    low, high = low[:-1, :-1], high[:-1, :-1]
    centre, radius = (low - most + high - least) / 2, (high - low + most - least) / 2
    return float(np.linalg.eigvalsh(centre)[0] - radius.sum(axis=1).max())


def correlation_ranges(gaussian: Gaussian, columns: Sequence[str]) -> tuple[Matrix, Matrix]:
    """`correlation_range` of every pair of these columns, bit by bit; 1 for a column and itself."""
    import numpy as np

    rho = gaussian.correlation_matrix(columns)
    if gaussian.tolerance.slope is None:
        reach = gaussian.tolerance.correlation or 0.0
        low, high = np.maximum(-1.0, rho - reach), np.minimum(1.0, rho + reach)
    else:
        t, r = gaussian.tolerance.sd, gaussian.tolerance.slope
        one, other = rho * max(0.0, 1 - r) * (1 - t) / (1 + t), rho * (1 + r) * (1 + t) / (1 - t)
        if r > 1:
            one = -rho * (r - 1) * (1 + t) / (1 - t)
        low, high = np.maximum(-1.0, np.minimum(one, other)), np.minimum(1.0, np.maximum(one, other))
    same = np.array(columns)[:, None] == np.array(columns)[None, :]
    return np.where(same, 1.0, low), np.where(same, 1.0, high)


def correlation_range(gaussian: Gaussian, first: str, second: str) -> tuple[float, float]:
    """The least and the largest correlation of two columns in the box."""
    rho = gaussian.correlation_of(first, second)
    if gaussian.tolerance.slope is None:
        reach = gaussian.tolerance.correlation or 0.0
        return max(-1.0, rho - reach), min(1.0, rho + reach)
    t, r = gaussian.tolerance.sd, gaussian.tolerance.slope
    ends = (rho * max(0.0, 1 - r) * (1 - t) / (1 + t), rho * (1 + r) * (1 + t) / (1 - t))
    if r > 1:  # the slope may change its sign
        ends = (-rho * (r - 1) * (1 + t) / (1 - t), ends[1])
    return max(-1.0, min(ends)), min(1.0, max(ends))


# ----------------------------------------------------------------------------------------------------------------------------
# How far the box's worst case is really attained: a distribution that exists, on the way to the corner.
#
# `worst_case` ignores that the correlation matrix of *all* columns must be semidefinite. Here we walk from the stated moments
# straight to its corner, keeping the other columns at their stated slopes or correlations, and stop at the last point whose
# matrix is semidefinite. That point lies in Theta, so the noise it needs is a lower bound; the certificate reports the gap.
#
# Only the correlations b of the query column with the others move, whose own matrix R stays as it is. With a slack e on the
# diagonal for rounding, the whole is semidefinite iff R + e is positive definite and b' (R + e)^-1 b <= 1 + e. So R is taken
# apart once for a query column, whatever the secret and however many points are tried.


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
