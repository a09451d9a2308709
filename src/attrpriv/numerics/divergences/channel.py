"""What rows tell that are shown with a public value in place of their own: from how far they moved to epsilon and delta.

A row with sensitive value u shows z ~ K(u). The owner states, for u, v in one cell, one of

    Rényi   D_alpha(K(u) || K(v)) <= alpha iota (u-v)^2 / 2 at the order alpha below
    score   integral of (sqrt k_u - sqrt k_v)^2 <= iota (u-v)^2 / 4  and  |log k_u/k_v| <= Lambda |u-v|

The rows move by d_k. With D = sum w(|d_k|) d_k^2, w = 1 (Rényi) or w(d) = kappa(alpha, 2 Lambda d) (score), any two columns
with D <= D_max give outputs with D_alpha <= alpha mu^2/2, where

    mu              = 2 sqrt(iota D_max)
    kappa(alpha, e) = [e^(alpha e) - 1 - alpha (e^e - 1)] / [2 alpha (alpha-1) (e^(e/2) - 1)^2]
    delta(eps)      = exp((alpha-1)(alpha mu^2/2 - eps)) (1 - 1/alpha)^alpha / (alpha-1)

(the last by Canonne, Kamath and Steinke, key `canonne2020discrete`; it holds for every real eps, also below 0).

| symbol | here |
|---|---|
| iota, Lambda | `Channel.information`, `Channel.slope` (None: the Rényi form) |
| alpha | `order`, above 1 |
| D_max | `displacement` |

What must never change: `kappa_upper`, `renyi_delta_upper`, `mu_of` and `renyi_epsilon` are at least the truth, `most_mu` and
`most_information` at most. Nothing here is infinite or not a number: what would be is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import COMPUTED_UP, SOME_ULPS, SUMMED_DOWN, SUMMED_UP, ULP
from attrpriv.numerics.search import largest_private

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# kappa is about e^(alpha e): a row that moves this far tells everything, and the series below would need ever more terms.
_FURTHEST = 100.0
# Below this e^(e/2) - 1 leaves the normal floats. kappa increases, so that a smaller e may be taken as this.
_NEAREST = 1e-150
# Beyond this an order gains nothing: delta falls only as 1/alpha, and alpha - 1 is no longer exact.
_LARGEST_ORDER = 2.0**50
# No promise needs more, and products of such numbers stay within the floats.
_LARGEST = 1e100


@dataclass(frozen=True)
class Channel:
    """What the owner states about how the rest of a row goes with its sensitive value, per unit of that value."""

    information: float
    slope: float | None = None

    def __post_init__(self) -> None:
        _positive("information", self.information)
        if self.slope is not None:
            _positive("slope", self.slope)

    def weight(self, moved: Array, order: float) -> Array:
        """w(d), rounded up: what one squared unit costs for a row that moved by d; increases in d."""
        import numpy as np

        _require_order(order)
        if self.slope is None:
            return np.ones_like(moved)
        return kappa_upper(order, 2 * self.slope * SUMMED_UP * np.asarray(moved, dtype=np.float64))


def explained(share: float | str, variance: float) -> float:
    """iota from "the other columns together explain at most this share of its variance", rounded up.

    iota = R^2 / (1 - R^2) / variance: exact for normal rows, an assumption for others. A share is a number or a percentage.

    >>> round(explained("10%", 4.0), 6), round(explained(0.1, 4.0), 6)
    (0.027778, 0.027778)
    """
    _positive("variance", variance)
    value = _share(share)
    if not 0 < value < 1:
        raise UsageError(f"information: a share that is explained must be above 0 and below 1. Got {share}.")
    return _positive("information", value / (1 - value) / variance * SUMMED_UP)


def _share(share: float | str) -> float:
    if not isinstance(share, str):
        return float(share)
    text = share.strip()
    percent = text.endswith("%")
    try:
        value = float(text[:-1] if percent else text)
    except ValueError:
        raise UsageError(f"information: must be a share such as 0.1 or 10%. Got {share!r}.") from None
    return value / 100 * SUMMED_UP if percent else value


# ----------------------------------------------------------------------------------------------------------------------------
# kappa, by a series in which nothing cancels. With S_k = 1 + alpha + ... + alpha^(k-2),
#
#     [e^(alpha e) - 1 - alpha (e^e - 1)] / (alpha (alpha-1)) = sum over k >= 2 of S_k e^k / k!
#
# because alpha^k - alpha = alpha (alpha-1) S_k. Divided by e^2 it is 1/2 at e = 0, and so is 2 ((e^(e/2) - 1)/e)^2. The ratio
# of two terms is at most (alpha + 1) e/k, so that what is left after a term with ratio 1/2 is at most that term.


def kappa_upper(order: float, e: Array) -> Array:
    """kappa(order, e) for each entry of e, rounded up.

    >>> import numpy as np
    >>> [round(float(x), 6) for x in kappa_upper(2.0, np.array([0.0, 1e-9, 1.0]))]
    [1.0, 1.0, 1.753931]
    """
    import numpy as np

    _require_order(order)
    distance = np.asarray(e, dtype=np.float64)
    furthest = float(np.max(distance, initial=0.0))
    if not (np.all(distance >= 0) and order * furthest <= _FURTHEST):
        raise UsageError(f"slope: twice it, times the order {order} and the width of a cell, must be from 0 to {_FURTHEST:g}.")
    x = np.maximum(distance, _NEAREST)
    plain = np.full_like(x, 0.5)  # e^(k-2)/k!
    term, total, k = plain, plain, 2  # S_k times it
    while k <= 2 * (order + 1) * furthest or float(np.max(term / total, initial=0.0)) > ULP / 4:
        k += 1
        plain = plain * x / k
        term = term * (order * x / k) + plain
        total = total + term
    root = np.expm1(x / 2) / x
    return np.asarray((total + term) / (2 * root * root) * COMPUTED_UP, dtype=np.float64)


# ----------------------------------------------------------------------------------------------------------------------------
# delta of an order. With b = alpha - 1, exact in floats,
#
#     log delta = b (alpha mu^2/2 - eps) + b log(b/alpha) - log alpha
#
# which is convex in alpha (second derivative mu^2 + 1/b - 1/alpha): the best order is the only zero of its derivative.


def renyi_delta_upper(epsilon: float, order: float, mu: float) -> float:
    """The delta that D_order <= order mu^2/2 gives at epsilon, rounded up.

    >>> renyi_delta_upper(1.0, 22.0, 0.2206) <= 1e-6
    True
    """
    _require_epsilon(epsilon)
    _require_order(order)
    if not (math.isfinite(mu) and mu >= 0):
        raise UsageError(f"mu: must be finite and at least 0. Got {mu}.")
    if mu > _LARGEST:
        return 1.0
    if mu == 0.0:  # the same law twice
        return min(1.0, max(0.0, -math.expm1(min(0.0, epsilon)) * SUMMED_UP))
    b = order - 1
    terms = (b * order * mu * mu / 2, -b * epsilon, b * _log_left(order), -math.log(order))
    exponent = math.fsum(terms) + SOME_ULPS * math.fsum(map(abs, terms))
    return min(1.0, math.exp(min(0.0, exponent)) * SUMMED_UP + math.ulp(0.0))


def _log_left(order: float) -> float:
    """log(1 - 1/order), to a few units of itself."""
    return math.log((order - 1) / order) if order < 2 else math.log1p(-1 / order)


def best_order(epsilon: float, mu: float) -> float:
    """The order with the least delta: any order is private, a poor one costs accuracy.

    >>> round(best_order(1.0, 0.2207), 1)
    22.0
    """
    _require_epsilon(epsilon)
    _positive("mu", mu)
    low, high = 1 + 16 * ULP, 2.0
    while _slope(epsilon, high, mu) < 0 and high < _LARGEST_ORDER:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _slope(epsilon, middle, mu) < 0 else (low, middle)
    return (low + high) / 2


def _slope(epsilon: float, order: float, mu: float) -> float:
    """The derivative of log delta in the order."""
    return (order - 0.5) * mu * mu - epsilon + _log_left(order)


@dataclass(frozen=True)
class Reach:
    """The largest mu of a promise, and the order at which it was found."""

    mu: float
    order: float


def most_mu(epsilon: float, delta: float, order: float | None = None) -> Reach:
    """The largest mu, rounded down, with delta(epsilon) <= delta: at this order, or at the best one.

    >>> found = most_mu(1.0, 1e-6)
    >>> round(found.mu, 4), round(found.order)
    (0.2207, 22)
    """
    _require_promise(epsilon, delta)

    mu = largest_private(lambda mu: _least_delta(epsilon, order, mu) <= delta)
    return Reach(mu, best_order(epsilon, mu) if order is None else order)


def _least_delta(epsilon: float, order: float | None, mu: float) -> float:
    return renyi_delta_upper(epsilon, best_order(epsilon, mu) if order is None else order, mu)


def renyi_epsilon(mu: float, delta: float, order: float | None = None) -> float:
    """The least epsilon, rounded up, at which delta(epsilon) <= delta.

    >>> round(renyi_epsilon(0.2207, 1e-6), 3)
    1.0
    """
    _require_promise(0.0, delta)
    if mu == 0.0 or _least_delta(0.0, order, _positive("mu", mu)) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while _least_delta(high, order, mu) > delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _least_delta(middle, order, mu) <= delta else (middle, high)
    return high


# ----------------------------------------------------------------------------------------------------------------------------


def mu_of(information: float, displacement: float) -> float:
    """mu = 2 sqrt(iota D_max), rounded up; exactly 0 where nothing moves."""
    _positive("information", information)
    _require_displacement(displacement)
    mu = 2 * math.sqrt(information) * math.sqrt(displacement) * SUMMED_UP
    if not math.isfinite(mu):
        raise UsageError("displacement: so large that nothing is hidden.")
    return mu


def most_information(displacement: float, mu: float) -> float:
    """The largest iota, rounded down, that gives at most this mu: mu^2/(4 D_max).

    >>> mu_of(most_information(3.0, 0.25), 3.0) <= 0.25
    True
    """
    _positive("displacement", displacement)
    _positive("mu", mu)
    information = mu / displacement * mu / 4 * SUMMED_DOWN
    while information > 0 and mu_of(information, displacement) > mu:
        information *= SUMMED_DOWN
    return _positive("information", information)


@dataclass(frozen=True)
class CurvePoint:
    """What is promised at the stated delta if the channel has this information."""

    information: float
    mu: float
    epsilon: float


def curve(
    information: Iterable[float], displacement: float, delta: float, order: float | None = None
) -> tuple[CurvePoint, ...]:
    """mu and epsilon for each iota, rounded up. For the score form the order must be the one that `displacement` was made for.

    >>> [(point.information, round(point.mu, 3), round(point.epsilon, 3)) for point in curve([0.01, 0.04], 1.0, 1e-6)]
    [(0.01, 0.2, 0.9), (0.04, 0.4, 1.897)]
    """
    found = [(iota, mu_of(iota, displacement)) for iota in information]
    return tuple(CurvePoint(iota, mu, renyi_epsilon(mu, delta, order)) for iota, mu in found)


def _positive(name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name}: must be finite and above 0. Got {value}.")
    return value


def _require_displacement(displacement: float) -> None:
    if not (math.isfinite(displacement) and displacement >= 0):
        raise UsageError(f"displacement: must be finite and at least 0. Got {displacement}.")


def _require_order(order: float) -> None:
    if not 1 < order <= 2 * _LARGEST_ORDER:
        raise UsageError(f"order: must be above 1 and at most {2 * _LARGEST_ORDER:g}. Got {order}.")


def _require_epsilon(epsilon: float) -> None:
    if not abs(epsilon) <= _LARGEST:
        raise UsageError(f"epsilon: must be finite and at most {_LARGEST:g}. Got {epsilon}.")


def _require_promise(epsilon: float, delta: float) -> None:
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise UsageError(f"epsilon: must be finite and at least 0. Got {epsilon}.")
    if not 0 < delta < 1:
        raise UsageError(f"delta: must be above 0 and below 1. Got {delta}.")
