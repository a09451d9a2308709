"""The hockey-stick divergence of two Gaussians of different variance.

    P = N(m1, s1^2), Q = N(m2, s2^2),   D = |m1 - m2|,  r = s1/s2,  d = D/s2,  A = r^2 - 1
    log p/q - eps = (A z^2 + 2 d r z + d^2 - 2 (eps + log r)) / 2        z = (x - m1)/s1 towards P's side, y = d + r z

H_eps(P || Q) = P(T) - e^eps Q(T), T the set where this quadratic is positive. With disc = d^2 + 2 A (eps + log r) its roots are

| | in P's units | in Q's units |
|---|---|---|
| far | z_o = -(d r + sqrt disc)/A | y_o = -(d + r sqrt disc)/A |
| near | z_f = -(d^2 - 2 log r - 2 eps)/(d r + sqrt disc) | y_f = (d^2 + 2 r^2 (eps + log r))/(d + r sqrt disc) |

r > 1: T is outside of them. r < 1: T is between them, empty if disc <= 0 (and then H = 0). No difference of large numbers is
taken that the problem does not itself contain. H increases with D, but is monotone neither in s1 nor in s2.

What must never change: `unequal_delta_upper` is at least the truth. It brackets every root, takes P of the larger set and Q of
the smaller one, and for r < 1 never exceeds P(T) (1 - e^-disc/(2|A|)), because disc/(2|A|) is the largest excess.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import ULP

if TYPE_CHECKING:
    from attrpriv.numerics.laws.gaussian import GaussianLaw

# Beyond these the squares below leave the range of floats.
_LARGEST = 1e140

Bounds = tuple[float, float]


def unequal_delta(law_a: GaussianLaw, law_b: GaussianLaw, epsilon: float) -> float:
    """H_epsilon(law_a || law_b), the best float.

    >>> from attrpriv.numerics.laws import GaussianLaw
    >>> round(unequal_delta(GaussianLaw(0.0, 4.0), GaussianLaw(0.0, 1.0), 1.0), 6)
    0.196711
    """
    return _value_and_upper(law_a, law_b, epsilon)[0]


def unequal_delta_upper(law_a: GaussianLaw, law_b: GaussianLaw, epsilon: float) -> float:
    """An upper bound on H_epsilon(law_a || law_b)."""
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
    p, _ = _log_mass(_mid(roots.z_near), _mid(roots.z_far))
    q, _ = _log_mass(_mid(roots.y_near), _mid(roots.y_far))
    _, p_more = _log_mass(roots.z_near[0], roots.z_far[1])
    q_less, q_error = _log_mass(roots.y_near[1], roots.y_far[0])
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


def _log_mass(low: float, high: float) -> tuple[float, float]:
    """log P(low < Z < high) and an upper bound on it, from the side where the normal law is smaller."""
    if not low < high:
        return -math.inf, -math.inf
    if low < -high:  # mirrored, so that the nearer end is `low` and both are measured in the upper tail
        low, high = -high, -low
    near, far = _log_ndtr(-low), _log_ndtr(-high)
    share = -math.expm1(far - near)
    error = 32 * ULP * (2 + abs(near) + (abs(far) if far > near - 60 else 0.0))
    log_share = math.log(share) if share > 0 else -math.inf
    # A narrow interval: its width times the largest density.
    peak = min(max(0.0, low), high)
    narrow = math.log(high - low) - peak * peak / 2 * (1 - 8 * ULP) - 0.5 * math.log(2 * math.pi) + 32 * ULP
    return near + log_share, min(near + math.log(share + error), narrow)
