"""Named laws of whole numbers, for a reference that states no shares: each value and its share, from below.

    {law: uniform, low: 17, high: 90}           every whole number of a range
    {law: binomial, trials: 20, probability: 0.3}
    {law: poisson, mean: 3}
    {law: geometric, probability: 0.2}          failures before the first success, from 0

What must never change: a share is at most the law's own. Fewer rows are then kept than could be, never more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from typing import Annotated, Literal

from pydantic import Field, model_validator

from attrpriv.frozen import Finite, FrozenModel

# Rarer values are not listed: of so few rows none would ever be kept.
LEAST_SHARE = 1e-9
MOST_VALUES = 200_000
_EXACT = Context(prec=60)
# Far more than what arithmetic of that many digits can be off by.
_DOWN = Decimal(1) - Decimal(10) ** -40

Listed = tuple[tuple[tuple[int], float], ...]
Chance = Annotated[Finite, Field(gt=0, lt=1)]


class UniformLaw(FrozenModel):
    """Every whole number of a range, all with one share."""

    law: Literal["uniform"]
    low: int = Field(description="the least value")
    high: int = Field(description="the largest value")

    @model_validator(mode="after")
    def _in_order(self) -> UniformLaw:
        if not 0 <= self.high - self.low < MOST_VALUES:
            raise ValueError(f"high: must be at least low, and at most {MOST_VALUES:,} values. Got {self.low} to {self.high}.")
        return self

    def listed(self) -> Listed:
        with localcontext(_EXACT):
            share = _down(Decimal(1) / (self.high - self.low + 1))
        return tuple(((value,), share) for value in range(self.low, self.high + 1))


class BinomialLaw(FrozenModel):
    """How many of a number of independent trials succeed."""

    law: Literal["binomial"]
    trials: int = Field(ge=1, le=10_000, description="number of trials")
    probability: Chance = Field(description="chance of a success")

    def listed(self) -> Listed:
        chance, trials = Decimal(repr(self.probability)), self.trials
        mode = min(trials, math.floor((trials + 1) * self.probability))
        with localcontext(_EXACT):
            share = Decimal(math.comb(trials, mode)) * chance**mode * (1 - chance) ** (trials - mode)
            return _around(mode, share, lambda k: Decimal(trials - k) / (k + 1) * chance / (1 - chance))


class PoissonLaw(FrozenModel):
    """Counts of rare events."""

    law: Literal["poisson"]
    mean: Annotated[Finite, Field(gt=0, le=10_000)] = Field(description="mean number of events")

    def listed(self) -> Listed:
        mean, mode = Decimal(repr(self.mean)), math.floor(self.mean)
        with localcontext(_EXACT):
            share = mean**mode * (-mean).exp() / math.factorial(mode)
            return _around(mode, share, lambda k: mean / (k + 1))


class GeometricLaw(FrozenModel):
    """Failures before the first success."""

    law: Literal["geometric"]
    probability: Annotated[Finite, Field(ge=1e-3, lt=1)] = Field(description="chance of a success")

    def listed(self) -> Listed:
        chance = Decimal(repr(self.probability))
        with localcontext(_EXACT):
            return _around(0, chance, lambda k: 1 - chance)


def _around(mode: int, share: Decimal, ratio: Callable[[int], Decimal]) -> Listed:
    """All values that are not too rare; `ratio` is the share of k + 1 over that of k, which falls in k."""
    found = {mode: share}
    for k in itertools.count(mode):
        share *= ratio(k)
        if share < LEAST_SHARE:
            break
        found[k + 1] = share
    share = found[mode]
    for k in range(mode - 1, -1, -1):
        share /= ratio(k)
        if share < LEAST_SHARE:
            break
        found[k] = share
    return tuple(((value,), _down(found[value])) for value in sorted(found))


def _down(exact: Decimal) -> float:
    """The float at or below a number that is known to many digits."""
    with localcontext(_EXACT):
        least = exact * _DOWN
    value = float(least)
    return value if Decimal(value) <= least else math.nextafter(value, -math.inf)
