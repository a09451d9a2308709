"""The hockey-stick divergence of two mixtures of normal laws with one variance, from above.

    P, Q have densities f, g:   H_eps(P || Q) = integral of max(0, f - e^eps g)

| symbol | here |
|---|---|
| ratio(x) | log f(x) - log g(x), the logarithms summed relative to their largest term |
| t | where ratio crosses eps |
| d(x) | f(x) - e^eps g(x), in units in which the variance is 1 |

*Weights with a monotone ratio* (events: Bin(a, p1) + Bin(n - a, p0) for two values of a). Normal noise keeps the ratio monotone
(total positivity, key `karlin1968total`), so it crosses eps once, and H = P(x > t) - e^eps Q(x > t) for an increasing one. t is
enclosed by two points at which the sign is certain, t1 < t < t2. Between t and t2 the ratio exceeds eps by at most
r = ratio(t2) - eps, so H <= P(x > t2) - e^eps Q(x > t2) + (1 - e^-r) P(x > t1).

*Any weights.* The line is cut into cells. In a cell around x with half-width h, |d'| is at most L, so d is certainly positive
if d(x) > L h, certainly not if d(x) < -L h. Certain cells are integrated exactly by the distribution functions. Uncertain ones
are cut finer a few times; what remains contributes at most 2 h (max(0, d(x)) + L h) each.

What must never change: the value is at least the truth, `lost` of both laws included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import SOLVED_UP, UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.gaussian import GaussianMixture

    Array = NDArray[np.float64]

# A difference of logarithms of weights or densities is certain beyond this (each is at most 2000 units of itself off).
_MARGIN = 1e-11
# Standard deviations beyond the outermost means at which the search ends; outside, the tail of P is added as it is.
_REACH = 12.0
# More than the mass of a mixture beyond that.
_BEYOND = 1e-32
_CELLS_PER_SD, _SPLIT, _ROUNDS, _LARGEST = 16, 16, 5, 2**22
_ROOT_2PI = math.sqrt(2 * math.pi)


def gaussian_mixture_delta_upper(p: GaussianMixture, q: GaussianMixture, epsilon: float) -> float:
    """An upper bound on H_epsilon(p || q).

    `p` and `q` are mixtures with one common variance, `epsilon` the promise.

    >>> from attrpriv.numerics.laws import GaussianMixture, binomial_sum
    >>> p, q = (GaussianMixture.of(binomial_sum(4, x, 0, x), 2.430088**2) for x in (0.4, 0.6))
    >>> f"{gaussian_mixture_delta_upper(p, q, 1.0):.6e}"
    '9.999996e-06'
    """
    if not (math.isfinite(epsilon) and 0 <= epsilon <= 700):
        raise UsageError(f"epsilon: must be from 0 to 700. Got {epsilon}.")
    if p.variance != q.variance:
        raise UsageError(f"mixtures: must have the same variance. Got {p.variance} and {q.variance}.")
    direction = _direction(p, q)
    if direction == 0:
        value = _by_cells(p, q, epsilon)
    else:
        value = _one_crossing(_Pair(p, q, direction), epsilon)
    return min(1.0, value + (p.lost + math.exp(epsilon) * q.lost) * (1 + 16 * UNIT))


def _together(p: GaussianMixture, q: GaussianMixture) -> tuple[Array, Array, Array]:
    """All means, and the weights of both laws there."""
    import numpy as np

    means = np.union1d(p.means, q.means)
    rows = np.zeros((2, len(means)))
    for row, law in zip(rows, (p, q), strict=True):
        row[np.searchsorted(means, law.means)] = law.weights
    return means, rows[0], rows[1]


def _direction(p: GaussianMixture, q: GaussianMixture) -> int:
    """1 if p/q certainly increases along the means, -1 if it decreases, 0 if neither is certain."""
    import numpy as np

    _, first, second = _together(p, q)
    used = (first > 0) | (second > 0)
    with np.errstate(divide="ignore"):
        ratio = np.log(first[used]) - np.log(second[used])
    for sign in (1, -1):
        # Infinite ends are steps of their own; two equal infinities in a row are no step down.
        with np.errstate(invalid="ignore"):
            steps = sign * np.diff(ratio)
        level = np.isinf(ratio[1:]) & (ratio[1:] == ratio[:-1])
        if len(ratio) > 1 and bool((level | (steps > _MARGIN)).all()):
            return sign
    return 0


class _Pair:
    """Both laws in units of the standard deviation, turned so that the ratio increases."""

    def __init__(self, p: GaussianMixture, q: GaussianMixture, sign: int) -> None:
        self.sd, self.centre, self.sign = math.sqrt(p.variance), float(p.means[0]), sign
        self.weights = p.weights, q.weights
        self.means = self.units(p.means), self.units(q.means)
        self.low = min(float(means.min()) for means in self.means) - _REACH
        self.high = max(float(means.max()) for means in self.means) + _REACH
        # A mean in these units is rounded: x is known up to this.
        self.shift = 4 * UNIT * max(abs(self.low), abs(self.high))
        self.terms = len(p.weights) + len(q.weights)

    def units(self, means: Array) -> Array:
        """Whole numbers lose nothing here but the rounding of the quotient."""
        return self.sign * (means - self.centre) / self.sd

    def ratio(self, x: float) -> float:
        """log f - log g, good to `slack`."""
        return self._log_density(0, x) - self._log_density(1, x)

    def _log_density(self, which: int, x: float) -> float:
        import numpy as np

        with np.errstate(divide="ignore"):
            exponents = np.log(self.weights[which]) - (x - self.means[which]) ** 2 / 2
        largest = float(exponents.max())
        return largest + math.log(float(np.exp(exponents - largest).sum()))

    def slack(self) -> float:
        """Of a ratio: rounding of exponents up to the square of the range, of sums, and of x itself."""
        spread = self.high - self.low
        return _MARGIN + 16 * UNIT * (self.terms + spread * spread) + 4 * spread * self.shift

    def above(self, which: int, x: float, side: int = 0) -> float:
        """The probability of (x, infinity): a bound from above for side 1, from below for -1."""
        import numpy as np
        from scipy.special import ndtr

        value = float(np.dot(self.weights[which], ndtr(self.means[which] - x + side * self.shift)))
        # The tail of the normal law is good to the square of its argument, which the sum does not make worse.
        return value * (1 + side * (self.terms + 512) * UNIT)


def _one_crossing(pair: _Pair, epsilon: float) -> float:
    """P(x > t2) - e^eps Q(x > t2), and between the two points at most the excess that is left at t2."""
    slack = pair.slack()
    before = _last_true(lambda x: pair.ratio(x) < epsilon - slack, pair.low, pair.high)
    after = -_last_true(lambda x: pair.ratio(-x) > epsilon + slack, -pair.high, -pair.low)
    beyond = pair.above(0, before, 1) if math.isfinite(before) else 1.0
    if not math.isfinite(after):
        return beyond
    excess = pair.ratio(after) + slack - epsilon
    certain = pair.above(0, after, 1) - math.exp(epsilon) * (1 - 8 * UNIT) * pair.above(1, after, -1)
    return max(0.0, certain) * (1 + 8 * UNIT) + beyond * -math.expm1(-excess) * (1 + 64 * UNIT)


def _last_true(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The last point found at which it holds; -infinity if not even at the lower end."""
    if not holds(low):
        return -math.inf
    if holds(high):
        return high
    while low < (middle := (low + high) / 2) < high and high - low > 1e-15 * max(1.0, abs(low), abs(high)):
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _by_cells(p: GaussianMixture, q: GaussianMixture, epsilon: float) -> float:
    """The sum over certain cells, and what the uncertain ones can hold at most."""
    import numpy as np

    pair, factor = _Pair(p, q, 1), math.exp(epsilon)
    count = math.ceil((pair.high - pair.low) * _CELLS_PER_SD)
    if count * pair.terms > _LARGEST:
        raise UsageError(f"mixtures: {count * pair.terms:,} terms are too many. Use fewer values or more noise.")
    half = (pair.high - pair.low) / count / 2
    centres = np.asarray(pair.low + half * (2 * np.arange(count) + 1), dtype=np.float64)
    total = _BEYOND
    for step in range(_ROUNDS + 1):
        value, change = _excess(p, q, pair, factor, centres, half)
        total += _certain(pair, factor, centres[value > change * half], half)
        unsure = np.abs(value) <= change * half
        if step == _ROUNDS or not 0 < int(unsure.sum()) * _SPLIT * pair.terms <= _LARGEST:
            break
        half /= _SPLIT
        centres = np.add.outer(centres[unsure], half * (2 * np.arange(_SPLIT, dtype=np.float64) + 1 - _SPLIT)).ravel()
    left = np.maximum(0.0, value[unsure]) + change[unsure] * half
    return total + float(left.sum()) * 2 * half * SOLVED_UP


def _excess(
    p: GaussianMixture, q: GaussianMixture, pair: _Pair, factor: float, centres: Array, half: float
) -> tuple[Array, Array]:
    """d at the centres, and a bound on |d'| in the cells that also covers the rounding of d."""
    import numpy as np

    means, first, second = _together(p, q)
    # Where the means coincide the weights are subtracted first: laws that are nearly the same have small coefficients.
    net, gross = (first - factor * second) / _ROOT_2PI, (first + factor * second) / _ROOT_2PI
    away = np.abs(centres[:, None] - pair.units(means)[None, :])
    bells = np.exp(-(away**2) / 2)
    slopes = (away + half) * np.exp(-(np.maximum(away - half, 0.0) ** 2) / 2)
    rounding = (bells @ gross) * (pair.terms + 64) * 4 * UNIT + (slopes @ np.abs(net)) * 4 * (pair.shift + UNIT)
    return bells @ net, (slopes @ np.abs(net)) * SOLVED_UP + (slopes @ gross) * 16 * UNIT + rounding / half


def _certain(pair: _Pair, factor: float, centres: Array, half: float) -> float:
    """P - e^eps Q of the cells, those that touch taken together."""
    import numpy as np

    if centres.size == 0:
        return 0.0
    breaks = np.flatnonzero(np.diff(centres) > 2.5 * half)
    starts = centres[np.concatenate([[0], breaks + 1])] - half
    ends = centres[np.concatenate([breaks, [len(centres) - 1]])] + half
    total = 0.0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        total += pair.above(0, start) - pair.above(0, end) - factor * (pair.above(1, start) - pair.above(1, end))
        # Differences of probabilities: each is known up to a few units and to the rounding of the ends.
        total += 4 * (1 + factor) * ((pair.terms + 512) * UNIT + pair.shift)
    return total
