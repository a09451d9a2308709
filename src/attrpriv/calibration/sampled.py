"""The least noise for laws that are known by simulation only, with a stated confidence (docs/theory/sampled.md).

Given a the statistic F has mean m_a and variance v_a, estimated from `runs` draws. With probability `confidence` at once

    |m_a - m_b| <= D,    v_a >= L,    |v_a - v_b| <= E    for all simulated pairs of values that must look alike,

by normal-theory intervals, each at its share of what may fail (Bonferroni). Differences are estimated from differences of
draws, which share their random numbers where that is possible. Taking F given a as normal, the noise s^2 is the least with

    H_eps(N(0, x + s^2) || N(D, y + s^2)) <= delta    for (x, y) = (L, L), (L, L + E), (L + E, L),

the largest over everything in between (docs/theory/groups.md has the lemma). Because F is only nearly normal, the noise is also
so large that the third and fourth moments of the sum hardly count in tails of size delta (`smoothing_noise`).

What must never change: D, L and E go to the private side, and what is not finite is an error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.calibration.gaussian import gaussian_mu
from attrpriv.calibration.search import largest_private
from attrpriv.divergences.groups import pair_upper
from attrpriv.errors import RefusedError, UsageError
from attrpriv.laws.groups import downward
from attrpriv.laws.simulated import SimulatedLaw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# A difference of means that is exactly linear in the secret is computed in floats.
_ROUNDING = 1e-12
# Of a variance that is a difference of such, from above.
_CANCELLED = 1e-14
# Statistics are nearly normal; differences of squares of normal draws are not skewed by more than a square is, sqrt 8.
_MEAN_SKEWNESS, _SQUARE_SKEWNESS = 1.0, math.sqrt(8)
# Draws that differ by less than this share are one number, rounded.
_CONSTANT = 1e-12
# How much densities may differ from normal ones in the tails, and what delta is divided by for it.
TAIL_SHARE = 0.1
TAIL_CHARGE = math.exp(0.12)
# The chance with which a distance from a normal law is called one though there is none.
_FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Estimate:
    """The mean of some draws: its size, its standard error, and the largest skewness that a draw may have."""

    size: float
    error: float
    skewness: float
    runs: int

    def upper(self, z: float) -> float:
        """Above the size of the true mean, but for a normal tail beyond z; its second term is that of Cornish and Fisher."""
        reach = z + self.skewness * (z * z - 1) / (6 * math.sqrt(self.runs))
        return self.size * (1 + _ROUNDING) + reach * self.error


@dataclass(frozen=True)
class Drawn:
    """What is kept of the draws: of each value of the secret the moments of F and its distance from a normal law, and of each
    pair of values the difference of the means and that of the variances."""

    law: SimulatedLaw
    values: tuple[float, ...]
    runs: int
    means: tuple[float, ...]
    variances: tuple[float, ...]
    skewnesses: tuple[float, ...]
    kurtoses: tuple[float, ...]
    distances: tuple[float, ...]
    gaps: tuple[Estimate, ...] = ()
    spreads: tuple[Estimate, ...] = ()

    @property
    def statements(self) -> int:
        """How many intervals rest on them."""
        return len(self.gaps) + len(self.spreads) + len(self.values)


@dataclass(frozen=True)
class Extent:
    """How far means are apart at most, the least variance, and how far variances are apart at most."""

    gap: float
    least: float
    spread: float


@lru_cache(maxsize=256)  # a plan is made again when it is released and when it is checked
def draw(law: SimulatedLaw, values: tuple[float, ...], runs: int, seed: int) -> Drawn:
    """Simulate F given each value; a law that does not depend on it at one value only."""
    import numpy as np

    kept = values[:1] if law.fixed else values
    found = law.draws(kept, runs, seed)
    if not np.isfinite(found).all():
        raise RefusedError("simulation: a draw of the statistic is not finite. Choose another unit, or use more rows.")
    means, spreads = found.mean(axis=1), found.var(axis=1, ddof=1)
    if not (spreads > (_CONSTANT * np.abs(means)) ** 2).all():
        raise RefusedError("simulation: the statistic does not vary given the secret. It cannot be released by its own spread.")
    centred = found - means[:, None]
    standard, squares = centred / np.sqrt(spreads)[:, None], centred * centred
    return Drawn(
        law,
        kept,
        runs,
        tuple(map(float, means)),
        tuple(map(float, spreads)),
        tuple(float(x) for x in (squares * standard).mean(axis=1) / spreads),
        tuple(float(x) for x in (squares * squares).mean(axis=1) / spreads**2),
        tuple(_distance(row) for row in standard),
        _differences(found, _MEAN_SKEWNESS),
        () if law.fixed_spread else _differences(squares, _SQUARE_SKEWNESS),
    )


def _differences(draws: Array, skewness: float) -> tuple[Estimate, ...]:
    """The differences of the means of all pairs of rows, which may share random numbers."""
    import numpy as np

    runs, means = draws.shape[1], draws.mean(axis=1)
    shared = np.atleast_2d(np.cov(draws))
    found = []
    for a, b in itertools.combinations(range(len(means)), 2):
        both = float(shared[a, a] + shared[b, b])
        variance = max(0.0, both - 2 * float(shared[a, b])) + _CANCELLED * both
        found.append(Estimate(abs(float(means[a] - means[b])), math.sqrt(variance / runs), skewness, runs))
    return tuple(found)


def _distance(standard: Array) -> float:
    """The largest distance of the empirical distribution function from the normal one."""
    import numpy as np
    from scipy.special import ndtr

    below = ndtr(np.sort(standard))
    steps = np.arange(standard.size + 1) / standard.size
    return float(max((steps[1:] - below).max(), (below - steps[:-1]).max()))


def chance_distance(runs: int, laws: int) -> float:
    """What chance explains of the largest of so many distances (Dvoretzky, Kiefer, Wolfowitz and Massart).

    >>> round(chance_distance(100_000, 1), 4)
    0.0085
    """
    return math.sqrt(math.log(2 * laws / _FALSE_ALARM) / (2 * runs))


def extent(drawn: Sequence[Drawn], alpha: float, besides: Sequence[Drawn] = (), *, corners: bool = False) -> Extent:
    """What holds for all of these laws, where each interval may fail with probability `alpha`; of `besides` only the variance.

    `corners`: variances, but not their differences, are extreme at these laws. Then variances are apart by no more than the
    least and the largest of all. Between its values a law's moments may bend as they do from one value to the next.
    """
    from scipy.special import ndtri

    if not 0 < alpha < 1:
        raise UsageError(f"alpha: must be above 0 and below 1. Got {alpha}.")
    z = -float(ndtri(alpha / 2))
    laws = (*drawn, *besides)
    ends = [variance_interval(v, k, one.runs, alpha) for one in laws for v, k in zip(one.variances, one.kurtoses, strict=True)]
    bend = max(_bend(one.variances) for one in laws)
    least, most = min(low for low, _ in ends) - bend, max(high for _, high in ends) + bend
    gap = max((one.upper(z) + 2 * _bend(law.means) for law in drawn for one in law.gaps), default=0.0)
    spread = max((one.upper(z) + 2 * bend for law in drawn for one in law.spreads), default=0.0)
    return sure(Extent(gap, least, most - least if corners else spread))


def sure(found: Extent) -> Extent:
    """The same; refused where a variance may be 0, or anything is not a number."""
    if not (math.isfinite(found.gap) and 0 < found.least < math.inf and 0 <= found.spread < math.inf):
        raise RefusedError(
            "simulation: the variance of the statistic is not known well enough from these draws. Use more runs, or a narrower "
            "between."
        )
    return found


def _bend(moments: Sequence[float]) -> float:
    """How far a parabola through moments at equally spaced values is from the lines between them: h^2 |m''|/8.

    >>> _bend([0.0, 1.0, 4.0, 9.0]), _bend([0.0, 1.0, 2.0]), _bend([0.0, 1.0])
    (0.25, 0.0, 0.0)
    """
    triples = zip(moments, moments[1:], moments[2:], strict=False)
    return max((abs(a - 2 * b + c) / 8 for a, b, c in triples), default=0.0)


def variance_interval(variance: float, kurtosis: float, runs: int, alpha: float) -> tuple[float, float]:
    """The variance of a law, from that of its draws: a chi-square interval, wider where tails are heavier than normal ones.

    >>> low, high = variance_interval(1.0, 3.0, 1000, 0.05)
    >>> round(low, 4), round(high, 4)
    (0.9178, 1.0938)
    """
    from scipy.special import gammainccinv, gammaincinv

    degrees = (runs - 1) * min(1.0, 2 / (kurtosis - 1)) if kurtosis > 1 else float(runs - 1)
    high = float(gammainccinv(degrees / 2, alpha / 2)) * 2
    low = float(gammaincinv(degrees / 2, alpha / 2)) * 2
    return variance * degrees / high, variance * degrees / low if low > 0 else math.inf


@dataclass(frozen=True)
class Shape:
    """How far laws are from normal ones at most: the largest variance, and skewness and excess kurtosis without their signs."""

    variance: float
    skewness: float
    kurtosis: float


def shape(drawn: Sequence[Drawn], alpha: float) -> Shape:
    """As far as the draws allow. A law that is the same for every value of the secret tells nothing, whatever its shape."""
    from scipy.special import ndtri

    sure = -float(ndtri(alpha / 2))
    told = [one for one in drawn if not one.law.fixed]
    return Shape(
        max((max(one.variances) for one in told), default=0.0),
        max((max(map(abs, one.skewnesses)) + sure * math.sqrt(6 / one.runs) for one in told), default=0.0),
        max((max(abs(k - 3) for k in one.kurtoses) + sure * math.sqrt(24 / one.runs) for one in told), default=0.0),
    )


def tail_share(shape: Shape, noise_variance: float, delta: float) -> float:
    """By what share densities may differ from normal ones where tails have the size of delta, with this noise.

    With skewness g and excess kurtosis k of F and r^2 = v/(v + s^2), densities of F with noise differ from the normal ones
    z standard deviations out by a share of about (Edgeworth's first terms)

        t = |g| r^3 z^3/6 + |k| r^4 z^4/24,       z = -Phi^-1(delta)

    It is an approximation, not a bound: the laws of a simulation are not known.

    >>> round(tail_share(Shape(1.0, 0.1, 0.0), 3.0, 1e-6), 4)
    0.2238
    """
    from scipy.special import ndtri

    if not shape.variance:
        return 0.0
    if not 0 < delta < 0.5:
        raise UsageError(f"delta: must be above 0 and below 1/2 where laws are simulated. Got {delta}.")
    out = -float(ndtri(delta)) * math.sqrt(shape.variance / (shape.variance + noise_variance))
    return shape.skewness * out**3 / 6 + shape.kurtosis * out**4 / 24


def smoothing_noise(shape: Shape, delta: float) -> float:
    """The least noise variance, up to rounding upwards, with which the share is at most TAIL_SHARE."""
    low, high = 0.0, shape.variance
    while tail_share(shape, high, delta) > TAIL_SHARE:
        low, high = high, 4 * high + shape.variance
        if not math.isfinite(high):
            raise RefusedError("simulation: the statistic's law is too far from a normal one. Use more runs or rows.")
    for _ in range(60):
        middle = (low + high) / 2
        small = tail_share(shape, middle, delta) <= TAIL_SHARE
        low, high = (low, middle) if small else (middle, high)
    return high


def sampled_delta_upper(extent: Extent, noise_variance: float, epsilon: float) -> float:
    """An upper bound on H_epsilon of any two laws within the extent, with this noise."""
    if not (math.isfinite(noise_variance) and noise_variance >= 0):
        raise UsageError(f"noise: the variance must be finite and at least 0. Got {noise_variance}.")
    least = downward(Fraction(extent.least) + Fraction(noise_variance))
    return pair_upper(extent.gap, least, (0.0, extent.spread), epsilon)


def least_sampled_noise(extents: Sequence[Extent], epsilon: float, delta: float, floor_variance: float) -> float:
    """The smallest noise variance, at least `floor_variance`, that hides every pair within each extent.

    >>> least_sampled_noise([Extent(0.0, 1.0, 0.0)], 1.0, 1e-6, 0.25)
    0.25
    >>> round(least_sampled_noise([Extent(1.0, 1.0, 0.0)], 1.0, 1e-5, 0.25), 3)
    12.918
    """
    gaussian_mu(epsilon, delta)  # validates both
    if not floor_variance > 0:
        raise UsageError(f"floor: must be positive; nothing is released without noise. Got {floor_variance}.")
    variance = floor_variance
    for one in extents:
        if sampled_delta_upper(one, variance, epsilon) > delta:
            variance = max(variance, _least(one, epsilon, delta))
    return variance


def _least(one: Extent, epsilon: float, delta: float) -> float:
    scale = max(one.gap**2, one.least + one.spread)
    return 1 / largest_private(lambda x: sampled_delta_upper(one, 1 / x, epsilon) <= delta, start=1 / scale)


__all__ = [
    "TAIL_CHARGE",
    "TAIL_SHARE",
    "Drawn",
    "Estimate",
    "Extent",
    "Shape",
    "chance_distance",
    "draw",
    "extent",
    "least_sampled_noise",
    "sampled_delta_upper",
    "shape",
    "smoothing_noise",
    "sure",
    "tail_share",
    "variance_interval",
]
