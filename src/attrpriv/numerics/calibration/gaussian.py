"""Gaussian calibration (Algorithm 1): how far apart two outputs of equal variance may be.

    mu*(eps, delta)   the largest mu with D(eps, mu) <= delta                              analytic, exact
    eps/c             with c = sqrt(2 log(1.25/delta))                                     classical, as in the paper

Two outputs N(m_a, v) and N(m_b, v) are (eps, delta)-close iff |m_a - m_b| <= mu* sqrt(v). The classical constant is loose
for small eps and *unsound* for large eps (it first fails at eps = 7.463474 for delta = 1e-3), so it is refused there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper
from attrpriv.numerics.search import largest_private


@lru_cache(maxsize=4096)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """mu*(epsilon, delta), from below: D at the value returned is at most delta.

    >>> round(gaussian_mu(1.0, 1e-5), 6)
    0.268051
    """
    _require(epsilon, delta)
    return largest_private(lambda mu: gaussian_delta_upper(epsilon, mu) <= delta)


@lru_cache(maxsize=4096)
def classical_mu(epsilon: float, delta: float) -> float:
    """The distance the paper's constant allows, or a refusal where that constant proves nothing.

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
