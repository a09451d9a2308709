"""The hockey-stick divergence: of two Gaussians of equal variance here; `hockey_stick` knows the home of every other pair.

    H_eps(P || Q) = sup over events T of P(T) - e^eps Q(T)
    D(eps, mu)    = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)      = H_eps(N(mu, 1) || N(0, 1))

| symbol | here |
|---|---|
| eps | `epsilon`, at least 0 |
| mu | `mu`, the distance of the means in standard deviations |
| Phi | the standard normal distribution function, always through its logarithm |

D increases in mu and decreases in eps (Balle and Wang 2018, key `balle2018improving`). It is the same in both directions, so
one value decides whether two outputs are (eps, delta)-close. What must never change: `gaussian_delta_upper` is at least the
true D. It is what certificates use; `gaussian_delta` is the best float.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, overload

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.gaussian_mixture import gaussian_mixture_delta_upper
from attrpriv.numerics.divergences.lattice import lattice_delta_upper
from attrpriv.numerics.divergences.unequal import unequal_delta_upper
from attrpriv.numerics.rounding import ULP

if TYPE_CHECKING:
    from attrpriv.numerics.laws.gaussian import GaussianLaw
    from attrpriv.numerics.laws.gaussian_mixture import GaussianMixture
    from attrpriv.numerics.laws.lattice import LatticeLaw

    AnyLaw = GaussianLaw | LatticeLaw | GaussianMixture


def gaussian_delta(epsilon: float, mu: float) -> float:
    """D(epsilon, mu), to about ten digits or better.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    return _delta_and_upper(epsilon, mu)[0]


def gaussian_delta_upper(epsilon: float, mu: float) -> float:
    """An upper bound on D(epsilon, mu): the float value plus everything rounding can have taken away."""
    return _delta_and_upper(epsilon, mu)[1]


def _delta_and_upper(epsilon: float, mu: float) -> tuple[float, float]:
    """Both, from D = Phi(z_p) (1 - e^eps Phi(z_q) / Phi(z_p))."""
    from scipy.special import log_ndtr

    _require(epsilon, mu)
    if mu == 0.0:
        return 0.0, 0.0
    ratio = epsilon / mu
    # A ratio that overflows means a distance so small that D is below every float.
    if not math.isfinite(ratio):
        return 0.0, math.ulp(0.0)
    z_p, z_q = mu / 2 - ratio, -mu / 2 - ratio
    log_p, log_q = float(log_ndtr(z_p)), float(log_ndtr(z_q))
    # Phi(z_q) may be below every float, but then it takes nothing away: D is Phi(z_p).
    kept = -math.expm1(min(0.0, epsilon + log_q - log_p)) if math.isfinite(log_q) else 1.0
    # The first factor, from above: z_p is a difference, rounded relative to its parts, and log Phi relative to itself.
    highest = float(log_ndtr(z_p + 4 * ULP * (mu / 2 + ratio)))
    ceiling = math.exp(min(0.0, highest * (1 - 16 * ULP))) * (1 + 64 * ULP)
    # The second: log Phi(z) inherits the rounding of z with slope about |z|; then the sum of the three logarithms.
    slack = 16 * ULP * (4 + z_p * z_p + z_q * z_q + abs(log_p) + abs(log_q) + epsilon)
    return math.exp(log_p) * kept, min(1.0, ceiling * min(1.0, kept + slack) + math.ulp(0.0))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon (from above) at which two Gaussians at distance `mu` are (epsilon, delta)-close.

    >>> gaussian_delta_upper(gaussian_epsilon(1.0, 1e-5), 1.0) <= 1e-5
    True
    """
    _require(0.0, mu)
    if not 0 < delta < 1:
        raise UsageError(f"delta: must be above 0 and below 1. Got {delta}.")
    if gaussian_delta_upper(0.0, mu) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while gaussian_delta_upper(high, mu) > delta:
        low, high = high, 2 * high
        if high > 1e300:
            return math.inf
    while high - low > 1e-12 * high and low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if gaussian_delta_upper(middle, mu) <= delta else (middle, high)
    return high


@overload
def hockey_stick(law_a: GaussianLaw, law_b: GaussianLaw, epsilon: float) -> float: ...
@overload
def hockey_stick(law_a: LatticeLaw, law_b: LatticeLaw, epsilon: float) -> float: ...
@overload
def hockey_stick(law_a: GaussianMixture, law_b: GaussianMixture, epsilon: float) -> float: ...
def hockey_stick(law_a: AnyLaw, law_b: AnyLaw, epsilon: float) -> float:
    """H_epsilon(law_a || law_b), rounded up, for two laws of one kind. The order of the laws matters in general.

    >>> from attrpriv.numerics.laws import GaussianLaw, binomial_sum
    >>> round(hockey_stick(GaussianLaw(1.0, 4.0), GaussianLaw(3.0, 4.0), 1.0), 6)
    0.126937
    >>> round(hockey_stick(GaussianLaw(0.0, 4.0), GaussianLaw(0.0, 1.0), 1.0), 6)
    0.196711
    >>> round(hockey_stick(binomial_sum(4, 0.4, 0, 0.6), binomial_sum(0, 0.4, 4, 0.6), 1.0), 6)
    0.060012
    """
    from attrpriv.numerics.laws.gaussian import GaussianLaw
    from attrpriv.numerics.laws.gaussian_mixture import GaussianMixture
    from attrpriv.numerics.laws.lattice import LatticeLaw

    if isinstance(law_a, LatticeLaw) and isinstance(law_b, LatticeLaw):
        return lattice_delta_upper(law_a, law_b, epsilon)
    if isinstance(law_a, GaussianMixture) and isinstance(law_b, GaussianMixture):
        return gaussian_mixture_delta_upper(law_a, law_b, epsilon)
    if not (isinstance(law_a, GaussianLaw) and isinstance(law_b, GaussianLaw)):
        raise UsageError(f"laws: must be of one kind. Got {type(law_a).__name__} and {type(law_b).__name__}.")
    if law_a.variance != law_b.variance:
        return unequal_delta_upper(law_a, law_b, epsilon)
    return gaussian_delta_upper(epsilon, abs(law_a.mean - law_b.mean) / math.sqrt(law_a.variance))


def _require(epsilon: float, mu: float) -> None:
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise UsageError(f"epsilon: must be finite and at least 0. Got {epsilon}.")
    if not (math.isfinite(mu) and mu >= 0):
        raise UsageError(f"mu: must be finite and at least 0. Got {mu}.")
