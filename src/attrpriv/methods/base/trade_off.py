"""Promises that hold together for one pair of values, as a trade-off between false alarms and misses (`methods.base.tells`).

Every promise (eps, delta) allows only tests with misses >= max(1 - delta - e^eps a, (1 - delta - a) / e^eps) at false alarms a,
and of a fair coin's doubt at most (e^eps - 1 + 2 delta) / (e^eps + 1) is lost. k steps of a promise make
(k eps, delta (e^(k eps) - 1) / (e^eps - 1)). What must never change: misses from below, right guesses from above.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pydantic import Field

from attrpriv.frozen import FrozenModel, NonNegative
from attrpriv.methods.base.accuracy import Profile
from attrpriv.numerics.rounding import COMPUTED_UP

# Above this e^epsilon is no float; a promise there says nothing.
MOST = 600.0
_HALVINGS = 12
_LOW = tuple(0.5 * (step / 24) ** 2 for step in range(25))
_ALARMS = (*_LOW, *(1 - share for share in reversed(_LOW[:-1])))


class TradeOff(FrozenModel):
    """Promises that hold for one pair of values, all at once: what they leave to the best test."""

    promises: tuple[tuple[NonNegative, NonNegative], ...] = Field(default=(), description="epsilon, delta")

    def misses(self, alarms: float) -> float:
        """The least share of misses that a test with this share of false alarms can have, from below."""
        found = [max(1 - delta - math.exp(eps) * alarms, (1 - delta - alarms) * math.exp(-eps)) for eps, delta in self.promises]
        return max(0.0, *found) if found else 0.0

    @property
    def right(self) -> float:
        """The share of right guesses that is surely not exceeded, of somebody who sees a value chosen by a fair coin."""
        lost = min((_lost(eps, delta) for eps, delta in self.promises), default=1.0)
        return min(1.0, 0.5 + lost * COMPUTED_UP / 2)

    def epsilon(self, delta: float) -> float | None:
        """The least epsilon that holds with this delta; None: none is known."""
        return min((eps for eps, reached in self.promises if reached <= delta), default=None)

    def loss(self, delta: float) -> float | None:
        """The least e that is known, for which odds change by more than a factor e^e with probability 2 delta at most.

        The answers B with which they do have P(B) > e^e Q(B), so that P(B) <= e^(eps - e) P(B) + d by each promise (eps, d):
        P(B) <= d / (1 - e^(eps - e)), which is 2 delta at e = eps - log(1 - d / (2 delta)): a factor of 2 if d = delta.
        """
        shares = [
            (eps, 0.0 if not reached else min(1.0, reached / (2 * delta)) if delta else 1.0) for eps, reached in self.promises
        ]
        return min((eps - math.log1p(-share) * COMPUTED_UP for eps, share in shares if share < 1), default=None)

    @property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """Shares of false alarms and of misses, to be drawn."""
        return tuple((alarms, self.misses(alarms)) for alarms in _ALARMS)

    def also(self, others: TradeOff) -> TradeOff:
        """All of both."""
        return TradeOff(promises=tuple(sorted((*self.promises, *others.promises))))

    def in_steps(self, steps: int) -> TradeOff:
        """What holds for two values with so many pairs between them, each as close as promised."""
        if steps == 1:
            return self
        found = [(steps * eps, _added(steps, eps, delta)) for eps, delta in self.promises]
        return TradeOff(promises=tuple((eps, delta) for eps, delta in found if eps <= MOST and delta <= 1))


def _lost(eps: float, delta: float) -> float:
    """(e^eps - 1 + 2 delta) / (e^eps + 1), which no total variation exceeds."""
    return min(1.0, math.tanh(eps / 2) + 2 * delta / (math.exp(eps) + 1))


def _added(steps: int, eps: float, delta: float) -> float:
    if not delta:
        return 0.0
    if steps * eps > MOST:
        return math.inf
    factor = steps if eps < 1e-12 else math.expm1(steps * eps) / math.expm1(eps)
    return delta * factor * COMPUTED_UP


def trade_off(deltas: Callable[[float], float], epsilon: float, delta: float, profile: Profile) -> TradeOff:
    """From delta at some epsilons; of a formula also at larger ones, until one reaches `delta`, and near the least one."""
    found = {min(epsilon * share, MOST): 1.0 for share in (1.0, *profile.shares)}
    found = {eps: deltas(eps) for eps in found}
    if profile.searched:
        while min(found.values()) > delta and max(found) < MOST:
            wider = min(MOST, max(found) * 1.6)
            found[wider] = deltas(wider)
        _search(found, deltas, delta)
    # What is no number proves nothing.
    return TradeOff(promises=tuple(sorted((eps, reached) for eps, reached in found.items() if 0 <= reached < 1)))


def _search(found: dict[float, float], deltas: Callable[[float], float], delta: float) -> None:
    high = min((eps for eps, reached in found.items() if reached <= delta), default=0.0)
    low = max((eps for eps in found if eps < high), default=0.0)
    for _ in range(_HALVINGS if high > low else 0):
        middle = (low + high) / 2
        found[middle] = deltas(middle)
        low, high = (low, middle) if found[middle] <= delta else (middle, high)
