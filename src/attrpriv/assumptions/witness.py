"""How far the box's worst case is really attained: a distribution that exists, on the way to the corner.

`worst_case` ignores that the correlation matrix of *all* columns must be semidefinite. Here we walk from the stated moments
straight to its corner, keeping the other columns at their stated slopes or correlations, and stop at the last point whose
matrix is semidefinite. That point lies in Theta, so the noise it needs is a lower bound; the certificate reports the gap.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.worst_case import Extreme

_STEPS = 40
_PSD_SLACK = 1e-12


def witness(gaussian: Gaussian, query: str, secret: str, corner: Extreme) -> Extreme:
    """The furthest distribution of Theta found on the way to `corner`; `corner` itself where it exists."""
    columns = gaussian.near(query)
    if query == secret or len(gaussian.columns) == 2:
        return corner
    if columns is None:  # it would move in several cliques of stated pairs at once; the stated moments themselves exist
        return _between(gaussian, query, secret, corner, 0.0)
    if _exists(gaussian, columns, query, secret, corner):
        return corner
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        inside = _exists(gaussian, columns, query, secret, _between(gaussian, query, secret, corner, middle))
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


def _exists(gaussian: Gaussian, columns: Sequence[str], query: str, secret: str, point: Extreme) -> bool:
    """Whether some law has these moments: only correlations of the query column move, and they are all in this clique."""
    import numpy as np

    matrix = gaussian.correlation_matrix(columns)
    q, g = columns.index(query), columns.index(secret)
    sds = {query: point.sd_query, secret: point.sd_secret}
    if gaussian.tolerance.slope is not None:
        for k, other in enumerate(columns):
            if k != q:  # the slope on every other column stays as stated while the sds move
                matrix[q, k] = gaussian.slope(query, other) * sds.get(other, gaussian.sd_of(other)) / point.sd_query
                matrix[k, q] = matrix[q, k]
    sign = -1.0 if gaussian.correlation_of(query, secret) < 0 else 1.0
    matrix[q, g] = matrix[g, q] = sign * point.slope * point.sd_secret / point.sd_query
    return bool(np.abs(matrix).max() <= 1 + _PSD_SLACK and np.linalg.eigvalsh(matrix)[0] >= -_PSD_SLACK)
