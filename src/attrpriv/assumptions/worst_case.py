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
