"""Gaussian calibration (Algorithm 1): how far apart two outputs of equal variance may be.

    mu*(eps, delta)   the largest mu with D(eps, mu) <= delta                              analytic, exact
    eps/c             with c = sqrt(2 log(1.25/delta))                                     classical, as in the paper

Two outputs N(m_a, v) and N(m_b, v) are (eps, delta)-close iff |m_a - m_b| <= mu* sqrt(v). The classical constant is loose
for small eps and *unsound* for large eps (it first fails at eps = 7.463474 for delta = 1e-3), so it is refused there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper, hockey_stick
from attrpriv.numerics.laws.gaussian import GaussianLaw
from attrpriv.numerics.rounding import AIMED_UP, COMPUTED_UP, SUMMED_UP
from attrpriv.numerics.search import largest_private


@lru_cache(maxsize=4096)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """mu*(epsilon, delta), from below: D at the value returned is at most delta.

    `epsilon` and `delta` are the promise.

    >>> round(gaussian_mu(1.0, 1e-5), 6)
    0.268051
    """
    _require(epsilon, delta)
    return largest_private(lambda mu: gaussian_delta_upper(epsilon, mu) <= delta)


@lru_cache(maxsize=4096)
def classical_mu(epsilon: float, delta: float) -> float:
    """The distance the paper's constant allows, or a refusal where that constant proves nothing.

    `epsilon` and `delta` are the promise.

    >>> round(classical_mu(1.0, 1e-5), 6)
    0.206407
    """
    _require(epsilon, delta)
    if epsilon == 0.0:
        raise UsageError("epsilon: the classical calibration needs epsilon above 0. Got 0.0.")
    mu = epsilon / math.sqrt(2 * math.log(1.25 / delta))
    if gaussian_delta_upper(epsilon, mu) > delta:
        raise RefusedError(
            f"calibration: classical is unsound at epsilon {epsilon:g}, delta {delta:g} "
            f"(true delta {gaussian_delta_upper(epsilon, mu):.3g}). Use analytic."
        )
    return mu


def noise_variance(conditions: Iterable[tuple[float, float]], mu: float) -> float:
    """The least Gaussian noise variance, over all (shift, variance of the data given the secret), taken jointly.

    `conditions` are such pairs, `mu` is how far apart two answers may be, in their standard deviations (`gaussian_mu`).

    The paper's two columns with covariance -.9 or +.1, unit variances, n = 100 and a range of 1:

    >>> round(noise_variance([(0.9, (1 - 0.81) / 100), (0.1, (1 - 0.01) / 100)], gaussian_mu(1.0, 1e-5)), 4)
    11.2714
    """
    if not (math.isfinite(mu) and mu > 0):
        raise UsageError(f"mu: must be finite and positive. Got {mu}.")
    needed = 0.0
    for shift, variance in conditions:
        if not (math.isfinite(shift) and math.isfinite(variance) and variance >= 0):
            raise UsageError(f"condition: needs a finite shift and variance. Got {shift}, {variance}.")
        needed = max(needed, (shift / mu) ** 2 - variance)
    return needed


def _require(epsilon: float, delta: float) -> None:
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise UsageError(f"epsilon: must be finite and at least 0. Got {epsilon}.")
    if not 0 < delta < 1:
        raise UsageError(f"delta: a Gaussian mechanism needs delta above 0 and below 1. Got {delta}.")


# ----------------------------------------------------------------------------------------------------------------------------
# The least Gaussian noise for conditional laws N(m_a, v_a) whose variance depends on the secret.
#
# Two ways, and the smaller one is named:
#
#     direct     one s^2 for all: the smallest with H(N(m_a, v_a + s^2) || N(m_b, v_b + s^2)) <= delta for every pair, both ways
#     equalising   N(0, vmax - v_a) makes all variances equal; then s^2 = max(0, (gap/mu*)^2 - vmax)
#
# Direct noise grows privacy monotonically (more noise is post-processing). Equalising needs v_a to be known exactly, and the
# owner to read a; the only scale that may be reported is that of the result, vmax + s^2, never vmax - v_a, which names a.
#
# What must never change: both results were checked at the number returned, rounded up, over all pairs and both directions.


Pair = tuple[int, int]


@dataclass(frozen=True)
class DirectNoise:
    """Noise of one variance for all; `upper` bounds H of the worst ordered pair at it.

    `variance` is the noise, `pair` the worst pair. Made by `direct_noise`.
    """

    variance: float
    pair: Pair
    upper: float


@dataclass(frozen=True)
class EqualisedNoise:
    """Every output has variance `target` = vmax + extra; law a gets noise of variance target - v_a, at most `variance`.

    `extra` is the least one, `pair` the worst pair, `upper` the bound on H at it. Made by `equalised_noise`.
    """

    target: float
    extra: float
    variance: float
    pair: Pair
    upper: float

    def noise_for(self, variance: float) -> float:
        """The noise variance for a law of this variance. Secret: it tells the law apart."""
        if not 0 <= variance <= self.target:
            raise UsageError(f"variance: must be from 0 to {self.target:g}. Got {variance}.")
        return self.target - variance


@dataclass(frozen=True)
class UnequalNoise:
    """Both ways; `smaller` names the one whose largest noise variance is smaller.

    They are `direct` and `equalised`. Made by `unequal_noise`.
    """

    direct: DirectNoise
    equalised: EqualisedNoise
    smaller: Literal["direct", "equalised"]


def unequal_noise(
    means: Sequence[float], variances: Sequence[float], epsilon: float, delta: float, pairs: Iterable[Pair] | None = None
) -> UnequalNoise:
    """The least noise for the laws N(means[a], variances[a]), over `pairs` of them (all pairs if none are named).

    `means` and `variances` are of the answer under each law; `epsilon` and `delta` are the promise.

    >>> found = unequal_noise([0.0, 0.0], [4.0, 1.0], 1.0, 1e-5)
    >>> found.direct.variance > 0, found.equalised.variance, found.smaller
    (True, 3.0, 'equalised')
    """
    means, variances, chosen = _family(means, variances, pairs)
    direct = direct_noise(means, variances, epsilon, delta, chosen)
    equalised = equalised_noise(means, variances, epsilon, delta, chosen)
    return UnequalNoise(direct, equalised, "direct" if direct.variance <= equalised.variance else "equalised")


def direct_noise(
    means: Sequence[float], variances: Sequence[float], epsilon: float, delta: float, pairs: Iterable[Pair] | None = None
) -> DirectNoise:
    """The smallest noise variance, from above, that hides every pair both ways.

    `means` and `variances` are of the answer under each law, `pairs` the laws that must be indistinguishable, by their places
    (all of them if none are named); `epsilon` and `delta` are the promise.

    >>> direct_noise([0.0, 1.0], [1.0, 1.0], 1.0, 1e-5).variance > (1 / 0.2680512) ** 2 - 1
    True
    """
    gaussian_mu(epsilon, delta)  # validates both
    means, variances, chosen = _family(means, variances, pairs)
    variance = 0.0
    # The furthest first: most other pairs are then private already, and need one look each.
    for pair in sorted(chosen, key=lambda p: -abs(means[p[0]] - means[p[1]])):
        if _upper(means, variances, pair, variance, epsilon) > delta:
            variance = max(variance, _least(means, variances, pair, epsilon, delta))
    upper, pair = max((_upper(means, variances, pair, variance, epsilon), pair) for pair in chosen)
    return DirectNoise(variance, pair, upper)


def equalised_noise(
    means: Sequence[float], variances: Sequence[float], epsilon: float, delta: float, pairs: Iterable[Pair] | None = None
) -> EqualisedNoise:
    """The noise that gives all laws the variance vmax + extra, with the least extra that hides every pair.

    `means` and `variances` are of the answer under each law, `pairs` the laws that must be indistinguishable, by their places
    (all of them if none are named); `epsilon` and `delta` are the promise.

    >>> equalised_noise([0.0, 0.0], [4.0, 1.0], 1.0, 1e-5).target
    4.0
    """
    mu = gaussian_mu(epsilon, delta)
    means, variances, chosen = _family(means, variances, pairs)
    pair = max(chosen, key=lambda p: abs(means[p[0]] - means[p[1]]))
    # Every law is one of `variances`, whether or not a pair names it: the owner's may be any of them.
    gap, most = abs(means[pair[0]] - means[pair[1]]), max(variances)
    target = max(most, (gap / mu) ** 2 * SUMMED_UP)
    while gap > 0 and gaussian_delta_upper(epsilon, gap / math.sqrt(target) * SUMMED_UP) > delta:
        target *= SUMMED_UP
    upper = gaussian_delta_upper(epsilon, gap / math.sqrt(target) * SUMMED_UP) if gap > 0 else 0.0
    return EqualisedNoise(target, target - most, target - min(variances), pair, upper)


def _least(means: Sequence[float], variances: Sequence[float], pair: Pair, epsilon: float, delta: float) -> float:
    """The smallest noise for one pair, searched as the largest precision that is private."""
    scale = max(variances[pair[0]], variances[pair[1]], (means[pair[0]] - means[pair[1]]) ** 2)
    precision = largest_private(lambda x: _upper(means, variances, pair, 1 / x, epsilon) <= delta, start=1 / scale)
    return 1 / precision


def _upper(means: Sequence[float], variances: Sequence[float], pair: Pair, noise: float, epsilon: float) -> float:
    """H of the two noisy laws, the larger of both directions."""
    a, b = pair
    totals = variances[a] + noise, variances[b] + noise
    if not min(totals) > 0:
        # A law without any spread is told apart from every other law.
        return 0.0 if means[a] == means[b] and variances[a] == variances[b] else 1.0
    laws = GaussianLaw(means[a], totals[0]), GaussianLaw(means[b], totals[1])
    return max(hockey_stick(*laws, epsilon), hockey_stick(*laws[::-1], epsilon)) * AIMED_UP


def _family(
    means: Sequence[float], variances: Sequence[float], pairs: Iterable[Pair] | None
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[Pair, ...]]:
    """The laws as plain floats and the pairs to hide, all checked."""
    if len(means) != len(variances) or len(means) < 2:
        raise UsageError(f"laws: needs a mean and a variance for each of two or more. Got {len(means)} and {len(variances)}.")
    for mean, variance in zip(means, variances, strict=True):
        if not (math.isfinite(mean) and math.isfinite(variance) and variance >= 0):
            raise UsageError(f"laws: needs finite means and variances at least 0. Got {mean}, {variance}.")
    chosen = tuple(itertools.combinations(range(len(means)), 2)) if pairs is None else tuple(pairs)
    if not chosen:
        raise UsageError("pairs: needs at least one pair. Got none.")
    for a, b in chosen:
        if not (0 <= a < len(means) and 0 <= b < len(means) and a != b):
            raise UsageError(f"pairs: must name two different laws by number. Got {(a, b)}.")
    return tuple(map(float, means)), tuple(map(float, variances)), chosen


# ----------------------------------------------------------------------------------------------------------------------------
# What it costs that real numbers are recorded and drawn on grids.
#
# Two grids, one treatment: the law of what is released is compared with the ideal continuous law, and the difference is charged
# as (lambda, eta): if both laws of a pair are within a factor e^lambda of their ideals, up to mass eta, and the ideals are
# (eps', delta')-close, the real ones are (eps' + 2 lambda, e^lambda delta' + eta (1 + e^(eps' + lambda)))-close.
#
# 1. *The grid of the noise*, r = granularity / scale <= 2^-32. An output cell holds, for each table, the noise's mass at a
#    point that lies within one step of every point of the cell, so its ratio to the ideal mass is at most exp(T r + r^2) while
#    the noise stays within T scales: lambda = T r + r^2, eta = 2 exp(-T^2/2) with T = 37. Noise common to several averages is
#    drawn on a grid of 2^-34 standard deviations or finer, so fine that it moves no average by more than a quarter of a step:
#    that makes 1.25 steps of the one, and the same charge once for each of its coordinates.
# 2. *The grid of the data*: with spacing h, an average lies on h Z / n. By Poisson summation the masked law has its ideal
#    density times 1 +- x, x = (1 + 2q/(1-q))^k - 1, q = exp(-2 pi^2 e), for k averages, where e is the effective variance
#    v s^2/(v + s^2) in units of (h/n)^2: lambda = -log(1 - x).


_TAIL = 37.0
_GRID_RATIO = 2.0**-32
_COMMON_RATIO = 2.0**-34


def grid_charge(columns: int, common_draws: int | None = None) -> tuple[float, float]:
    """(lambda, eta) for drawing the noise of this many columns on its grid; of several, with noise common to them.

    `common_draws` says how many numbers that noise is made of; as many as columns where it does not.
    """
    shared = (0 if columns == 1 else columns) if common_draws is None else common_draws
    steps = 1.25 if shared else 1.0
    reach = steps * _GRID_RATIO
    own = columns * (_TAIL * reach + reach**2)
    common = shared * (_TAIL * _COMMON_RATIO + _COMMON_RATIO**2)
    return (own + common) * COMPUTED_UP, (columns + shared) * 2.2 * math.exp(-(_TAIL**2) / 2)


def lattice_lambda(effective_variance: float, columns: int) -> float:
    """lambda for averages recorded on a lattice; infinite where the mask does not cover it.

    >>> f"{lattice_lambda(1.0, 1):.0e}"
    '5e-09'
    """
    if not effective_variance >= 0:
        raise UsageError(f"effective variance: must be at least 0. Got {effective_variance}.")
    q = math.exp(-2 * math.pi**2 * effective_variance)
    if q >= 0.2:
        return math.inf
    x = math.expm1(columns * math.log1p(2 * q / (1 - q)))
    return -math.log1p(-x) * COMPUTED_UP if x < 1 else math.inf


def mask_scale(spacing: float | None, declared: bool, n: int, sd: float) -> float:
    """The least noise on an average, whatever privacy asks: h/n for a declared spacing, else from the schema and the sd."""
    if declared and spacing is not None:
        return spacing / n
    return max(1.5 * (spacing or 0.0) / n, sd / math.sqrt(n) / 50)
