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

log Phi is SciPy's, though loading it takes a fifth of a second: records hold numbers that are made of it, and are compared with
what is computed again to the last digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.gaussian_mixture import gaussian_mixture_delta_upper
from attrpriv.numerics.divergences.lattice import lattice_delta_upper
from attrpriv.numerics.rounding import ULP

if TYPE_CHECKING:
    from attrpriv.numerics.laws.gaussian import GaussianLaw, GaussianMixture
    from attrpriv.numerics.laws.lattice import LatticeLaw

    AnyLaw = GaussianLaw | LatticeLaw | GaussianMixture


def gaussian_delta(epsilon: float, mu: float) -> float:
    """D(epsilon, mu), to about ten digits or better.

    `mu` is the distance of the means in standard deviations, `epsilon` the promise.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    return _delta_and_upper(epsilon, mu)[0]


def gaussian_delta_upper(epsilon: float, mu: float) -> float:
    """An upper bound on D(epsilon, mu): the float value plus everything rounding can have taken away.

    `mu` is the distance of the means in standard deviations, `epsilon` the promise.

    >>> gaussian_delta(1.0, 0.5) <= gaussian_delta_upper(1.0, 0.5) < 1.001 * gaussian_delta(1.0, 0.5)
    True
    """
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

    `mu` is the distance of the means in standard deviations, `delta` what may be exceeded.

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

    `law_a` and `law_b` are Gaussian, or on whole numbers, or mixtures of Gaussians; `epsilon` is the promise.

    >>> from attrpriv.numerics.laws import GaussianLaw, binomial_sum
    >>> round(hockey_stick(GaussianLaw(1.0, 4.0), GaussianLaw(3.0, 4.0), 1.0), 6)
    0.126937
    >>> round(hockey_stick(GaussianLaw(0.0, 4.0), GaussianLaw(0.0, 1.0), 1.0), 6)
    0.196711
    >>> round(hockey_stick(binomial_sum(4, 0.4, 0, 0.6), binomial_sum(0, 0.4, 4, 0.6), 1.0), 6)
    0.060012
    """
    from attrpriv.numerics.laws.gaussian import GaussianLaw, GaussianMixture
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


# ----------------------------------------------------------------------------------------------------------------------------
# The hockey-stick divergence of two Gaussians of different variance.
#
#     P = N(m1, s1^2), Q = N(m2, s2^2),   D = |m1 - m2|,  r = s1/s2,  d = D/s2,  A = r^2 - 1
#     log p/q - eps = (A z^2 + 2 d r z + d^2 - 2 (eps + log r)) / 2        z = (x - m1)/s1 towards P's side, y = d + r z
#
# H_eps(P || Q) = P(T) - e^eps Q(T), T the set where this quadratic is positive. With disc = d^2 + 2 A (eps + log r) its roots
# are
#
# | | in P's units | in Q's units |
# |---|---|---|
# | far | z_o = -(d r + sqrt disc)/A | y_o = -(d + r sqrt disc)/A |
# | near | z_f = -(d^2 - 2 log r - 2 eps)/(d r + sqrt disc) | y_f = (d^2 + 2 r^2 (eps + log r))/(d + r sqrt disc) |
#
# r > 1: T is outside of them. r < 1: T is between them, empty if disc <= 0 (and then H = 0). No difference of large numbers
# is taken that the problem does not itself contain. H increases with D, but is monotone neither in s1 nor in s2.
#
# What must never change: `unequal_delta_upper` is at least the truth. It brackets every root, takes P of the larger set and Q
# of the smaller one, and for r < 1 never exceeds P(T) (1 - e^-disc/(2|A|)), because disc/(2|A|) is the largest excess.


# Beyond these the squares below leave the range of floats.
_LARGEST = 1e140

Bounds = tuple[float, float]


def unequal_delta(law_a: GaussianLaw, law_b: GaussianLaw, epsilon: float) -> float:
    """H_epsilon(law_a || law_b), the best float.

    `law_a` and `law_b` may have different variances; `epsilon` is the promise.

    >>> from attrpriv.numerics.laws import GaussianLaw
    >>> round(unequal_delta(GaussianLaw(0.0, 4.0), GaussianLaw(0.0, 1.0), 1.0), 6)
    0.196711
    """
    return _value_and_upper(law_a, law_b, epsilon)[0]


def unequal_delta_upper(law_a: GaussianLaw, law_b: GaussianLaw, epsilon: float) -> float:
    """An upper bound on H_epsilon(law_a || law_b).

    `law_a` and `law_b` may have different variances; `epsilon` is the promise.

    >>> from attrpriv.numerics.laws import GaussianLaw
    >>> wide, narrow = GaussianLaw(0.0, 4.0), GaussianLaw(0.0, 1.0)
    >>> unequal_delta_upper(wide, narrow, 1.0) >= unequal_delta(wide, narrow, 1.0)
    True
    """
    return _value_and_upper(law_a, law_b, epsilon)[1]


@dataclass(frozen=True)
class _Roots:
    """Brackets of the roots, near and far, in units of P and of Q; and of the largest excess for r < 1."""

    z_near: Bounds
    z_far: Bounds
    y_near: Bounds
    y_far: Bounds
    excess: float


def _value_and_upper(law_a: GaussianLaw, law_b: GaussianLaw, epsilon: float) -> tuple[float, float]:
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise UsageError(f"epsilon: must be finite and at least 0. Got {epsilon}.")
    if law_a.variance == law_b.variance:
        raise UsageError("unequal: the two variances must differ. Use gaussian_delta for equal ones.")
    distance = abs(law_a.mean - law_b.mean) / math.sqrt(law_b.variance)
    ratio = law_a.variance / law_b.variance
    if not (distance < _LARGEST and 1 / _LARGEST < ratio < _LARGEST and epsilon < _LARGEST):
        return 1.0, 1.0  # out of reach of floats: taken as told apart
    roots = _roots(distance, law_a.variance, law_b.variance, epsilon)
    if roots is None:
        return 0.0, 0.0
    return _outside(roots, epsilon) if ratio > 1 else _between(roots, epsilon)


def _roots(d: float, v1: float, v2: float, epsilon: float) -> _Roots | None:
    """The roots, each bracketed by the rounding of all that goes into it; None where the quadratic is never positive."""
    # v1 - v2 is exact where cancellation would matter.
    big_a, r = (v1 - v2) / v2, math.sqrt(v1 / v2)
    log_r = 0.5 * (math.log1p(big_a) if abs(big_a) < 0.5 else math.log(v1 / v2))
    lift = _sum((epsilon, log_r))
    disc = _sum((d * d, 2 * big_a * epsilon, 2 * big_a * log_r))
    if disc[1] <= 0:
        return None
    root = (math.sqrt(max(0.0, disc[0])) * (1 - ULP), math.sqrt(disc[1]) * (1 + ULP))
    toward_p = _widened((d * r + root[0], d * r + root[1]))
    toward_q = _widened((d + r * root[0], d + r * root[1]))
    a = _widened((big_a, big_a))
    return _Roots(
        z_near=_quotient(_sum((2 * epsilon, 2 * log_r, -d * d)), toward_p),
        z_far=_quotient((-toward_p[1], -toward_p[0]), a),
        y_near=_quotient(_widened((d * d + 2 * r * r * lift[0], d * d + 2 * r * r * lift[1]), d * d), toward_q),
        y_far=_quotient((-toward_q[1], -toward_q[0]), a),
        excess=disc[1] / (2 * abs(big_a)) * (1 + 8 * ULP),
    )


def _sum(terms: tuple[float, ...]) -> Bounds:
    """A sum of terms each correct to a few units of rounding."""
    total, slack = math.fsum(terms), 16 * ULP * math.fsum(map(abs, terms))
    return total - slack, total + slack


def _widened(bounds: Bounds, size: float = 0.0) -> Bounds:
    slack = 16 * ULP * max(abs(bounds[0]), abs(bounds[1]), size)
    return bounds[0] - slack, bounds[1] + slack


def _quotient(top: Bounds, bottom: Bounds) -> Bounds:
    """top/bottom for a bottom that does not contain 0; everything where it might."""
    if bottom[0] <= 0 <= bottom[1]:
        return -math.inf, math.inf
    ends = [t / b for t in top for b in bottom]
    return _widened((min(ends), max(ends)))


def _outside(roots: _Roots, epsilon: float) -> tuple[float, float]:
    """r > 1: P(z < far) + P(z > near), less e^eps times the same of Q."""
    p = _log_add(_log_ndtr(_mid(roots.z_far)), _log_ndtr(-_mid(roots.z_near)))
    q = _log_add(_log_ndtr(_mid(roots.y_far)), _log_ndtr(-_mid(roots.y_near)))
    p_more = _log_add(_log_ndtr(roots.z_far[1]), _log_ndtr(-roots.z_near[0]))
    q_less = _log_add(_log_ndtr(roots.y_far[0]), _log_ndtr(-roots.y_near[1]))
    return _kept(p, q, epsilon), min(1.0, _kept_upper(p_more, q_less, epsilon))


def _between(roots: _Roots, epsilon: float) -> tuple[float, float]:
    """r < 1: P(near < z < far), less e^eps times the same of Q."""
    p, _, _ = _log_mass(_mid(roots.z_near), _mid(roots.z_far))
    q, _, _ = _log_mass(_mid(roots.y_near), _mid(roots.y_far))
    _, _, p_more = _log_mass(roots.z_near[0], roots.z_far[1])
    q_less, q_error, _ = _log_mass(roots.y_near[1], roots.y_far[0])
    # How far the logarithm of a difference can be off: what the second value adds to the first.
    q_least = q_less - (q_error - q_less) if math.isfinite(q_less) else -math.inf
    by_excess = math.exp(min(0.0, p_more)) * -math.expm1(-roots.excess) * (1 + 64 * ULP)
    return _kept(p, q, epsilon), min(1.0, _kept_upper(p_more, q_least, epsilon), by_excess + math.ulp(0.0))


def _mid(bounds: Bounds) -> float:
    return bounds[0] / 2 + bounds[1] / 2 if all(map(math.isfinite, bounds)) else bounds[0]


def _kept(log_p: float, log_q: float, epsilon: float) -> float:
    """e^p - e^(eps + q), at least 0."""
    if log_p == -math.inf:
        return 0.0
    return math.exp(log_p) * -math.expm1(min(0.0, epsilon + log_q - log_p))


def _kept_upper(log_p: float, log_q: float, epsilon: float) -> float:
    """The same with every logarithm moved by its rounding, to the larger result."""
    if log_p == -math.inf:
        return math.ulp(0.0)
    log_p = min(0.0, log_p + 32 * ULP * (1 + abs(log_p)))
    log_q -= 32 * ULP * (1 + abs(log_q))
    kept = -math.expm1(min(0.0, epsilon * (1 - 4 * ULP) + log_q - log_p)) if math.isfinite(log_q) else 1.0
    return math.exp(log_p) * min(1.0, kept + 8 * ULP * (1 + epsilon)) * (1 + 64 * ULP) + math.ulp(0.0)


def _log_ndtr(z: float) -> float:
    from scipy.special import log_ndtr

    return float(log_ndtr(z))


def _log_add(a: float, b: float) -> float:
    top = max(a, b)
    return top if top == -math.inf else top + math.log1p(math.exp(min(a, b) - top))


def _log_mass(low: float, high: float) -> tuple[float, float, float]:
    """log P(low < Z < high), from the side where the normal law is smaller; with all that rounding can add; an upper bound."""
    if not low < high:
        return -math.inf, -math.inf, -math.inf
    if low < -high:  # mirrored, so that the nearer end is `low` and both are measured in the upper tail
        low, high = -high, -low
    near, far = _log_ndtr(-low), _log_ndtr(-high)
    share = -math.expm1(far - near)
    error = 32 * ULP * (2 + abs(near) + (abs(far) if far > near - 60 else 0.0))
    log_share = math.log(share) if share > 0 else -math.inf
    # A narrow interval: its width times the largest density.
    peak = min(max(0.0, low), high)
    narrow = math.log(high - low) - peak * peak / 2 * (1 - 8 * ULP) - 0.5 * math.log(2 * math.pi) + 32 * ULP
    most = near + math.log(share + error)
    return near + log_share, most, min(most, narrow)
