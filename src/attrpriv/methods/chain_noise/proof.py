"""The evidence that each entry of a Markov chain is hidden, whatever was released of the column: the ratio recursion.

    loss = max over theta of  the lesser of  epsilon(r) by the recursion  and  the loss by quilts at rate max r
    r(s, t) = sum over everything released of  |values(s) - values(t)| / scale

Costs of single entries add up, and the curve is read once (docs/theory/chain-ratio.md). What must never change: `past` holds
what was really drawn, and `follows` compares it with the evidence before, exactly; laws are those of the policy in force.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from attrpriv.frozen import FrozenModel, Positive
from attrpriv.methods.base.accuracy import ModelError, off_by
from attrpriv.methods.base.evidence import Counted, Evidence
from attrpriv.numerics.calibration.chain_quilt import chain_loss
from attrpriv.numerics.divergences.chain_ratio import LARGEST_COST, ChainRatio
from attrpriv.numerics.laws.chain_family import ChainFamily
from attrpriv.numerics.laws.markov import MarkovChain
from attrpriv.numerics.laws.records import log_change
from attrpriv.numerics.rounding import ROUNDED_UP, SUMMED_UP
from attrpriv.numerics.search import or_infinite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Statistics beyond this many are not told apart any more: any two states count as their whole width apart.
MOST_DRAWS = 24
# What holds for other chains is computed up to so many states.
_MOST_MOVED = 8
Distance = Annotated[int, Field(ge=0)]


class ChainDraw(FrozenModel):
    """What was released of the column, as often as it was."""

    statistic: str = Field(description="the query that first asked for it, or what another library released")
    identity: str = Field(default="", description="a digest of what is counted; empty: no statistic of ours")
    values: tuple[int, ...] | None = Field(
        default=None, description="what an entry of each state adds; None: any two states are the width apart"
    )
    width: int = Field(ge=1, description="how far one entry moves it, in its steps")
    rate: Positive = Field(description="the sum of 1/scale of the noise; of another library's release, its b")

    def cost(self, states: int) -> NDArray[np.float64]:
        """What is lost where one entry changes from one state to another, from above."""
        import numpy as np

        if self.values is None:
            return np.full((states, states), self.rate * self.width * SUMMED_UP)
        steps = np.array(self.values, dtype=np.float64)
        return np.asarray(np.abs(steps[:, None] - steps) * (self.rate * SUMMED_UP))


def rate_of(scale: float) -> float:
    """1/scale from above."""
    return math.nextafter(1 / scale, math.inf)


def with_draw(past: Sequence[ChainDraw], new: ChainDraw) -> tuple[ChainDraw, ...]:
    """Everything drawn; noise on the same statistic adds up, and what is too much to be told apart is put together."""
    if len(past) >= MOST_DRAWS and not any(_same(old, new) for old in past):
        new = ChainDraw(statistic=new.statistic, width=1, rate=new.rate * new.width * ROUNDED_UP)
    for k, old in enumerate(past):
        if _same(old, new):
            more = old.model_copy(update={"rate": (old.rate + new.rate) * ROUNDED_UP})
            return (*past[:k], more, *past[k + 1 :])
    return (*past, new)


def _same(old: ChainDraw, new: ChainDraw) -> bool:
    return (old.identity, old.values, old.width) == (new.identity, new.values, new.width)


class ChainLaw(FrozenModel):
    """One member of Theta, and the quilts that may be better than the recursion."""

    theta: int = Field(ge=0)
    chain: MarkovChain | ChainFamily
    shapes: tuple[tuple[Distance, Distance], ...] = Field(
        default=(), description="quilts {X_(i-a), X_(i+b)} as (a, b); 0: no entry on that side"
    )

    def loss(self, length: int, drawn: tuple[ChainDraw, ...]) -> float:
        """What every entry loses by everything drawn, from above."""
        return _loss(self, length, drawn)

    def nothing(self, length: int) -> bool:
        """Whether every entry has a single possible state."""
        return _ratio(self.chain, length).nothing

    def computed(self, length: int, drawn: tuple[ChainDraw, ...]) -> float:
        """The loss, which is looked up where it was computed before."""
        cost = self._cost(drawn)
        if cost is None:
            return math.inf
        found = _ratio(self.chain, length).epsilon(cost)
        if not self.shapes or isinstance(self.chain, ChainFamily):
            return found
        return min(found, or_infinite(lambda: self._by_quilts(length, float(cost.max()))))

    def moved(self, length: int, drawn: Sequence[ChainDraw], change: float) -> float:
        """The same where ratios of two probabilities are off by a factor of e^change."""
        cost = self._cost(drawn)
        return math.inf if cost is None else ChainRatio(self.chain, length, change=change).epsilon(cost)

    def _by_quilts(self, length: int, rate: float) -> float:
        return chain_loss(self.chain, length, rate, self.shapes) if isinstance(self.chain, MarkovChain) else math.inf

    def _cost(self, drawn: Sequence[ChainDraw]) -> NDArray[np.float64] | None:
        """None where the states are others, or what is lost is out of reach."""
        import numpy as np

        k = self.chain.states
        if any(draw.values is not None and len(draw.values) != k for draw in drawn):
            return None
        total = np.asarray(sum((draw.cost(k) for draw in drawn), np.zeros((k, k))) * SUMMED_UP)
        return total if bool(total.max() <= LARGEST_COST) else None


@lru_cache(maxsize=256)  # a plan asks for the same again and again, and with many states each takes a second
def _loss(check: ChainLaw, length: int, drawn: tuple[ChainDraw, ...]) -> float:
    return check.computed(length, drawn)


@lru_cache(maxsize=32)
def _ratio(chain: MarkovChain | ChainFamily, length: int) -> ChainRatio:
    return ChainRatio(chain, length)


class ChainSequence(Evidence):
    """Everything released so far about the entries of a chain, and what each of them loses by it."""

    room: ClassVar[str] = "State intervals (transition: {low, high}), or list further matrices."
    goes_on: ClassVar[bool] = True
    column: str = Field(description="the column whose entries are the chain; nothing else is read")
    states: tuple[str, ...] = Field(min_length=2, description="the states, in the order of all values")
    n: int = Field(ge=2, description="the number of rows")
    longest: int = Field(ge=1, description="the number of entries of the longest chain")
    past: tuple[ChainDraw, ...] = ()
    now: ChainDraw
    checks: tuple[ChainLaw, ...] = Field(min_length=1)

    def after(self) -> tuple[ChainDraw, ...]:
        """Everything drawn, this release included."""
        return with_draw(self.past, self.now)

    def delta(self, epsilon: float) -> float:
        return 0.0 if self.loss() <= epsilon else 1.0

    def loss(self) -> float:
        """The largest loss of any entry under any member, from above, by everything released."""
        if self.longest > self.n or any(check.chain.states != len(self.states) for check in self.checks):
            return math.inf
        return max(check.loss(self.longest, self.after()) for check in self.checks)

    def spent(self, epsilon: float, delta: float) -> float:
        """The share of the budget that everything released so far uses, from above."""
        loss = self.loss()
        share = math.nextafter(loss / epsilon, math.inf)
        return min(1.0, share) if loss <= epsilon else share

    def follows(self, earlier: object | None) -> bool:
        """Whether what it calls past is what `earlier` says was drawn; None: nothing was."""
        if earlier is None:
            return self.past == ()
        before = ChainSequence.read(earlier)
        return before is not None and self.entries == before.entries and self.past == before.after()

    @property
    def entries(self) -> tuple[str, tuple[str, ...], int, int]:
        """What it is about."""
        return self.column, self.states, self.n, self.longest

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        """Nothing with many states, of which each look at another chain takes too long."""
        drawn = self.after()
        if len(self.states) > _MOST_MOVED:
            return ()
        return off_by(
            lambda off: or_infinite(lambda: max(check.moved(self.longest, drawn, log_change(off)) for check in self.checks))
        )


class ChainNoiseEvidence(ChainSequence):
    """Whole-number Laplace noise on a statistic of the chain's column."""

    words: ClassVar[str] = "a release about a chain"
    kind: Literal["chain_laplace"] = "chain_laplace"

    def describe(self) -> tuple[str, ...]:
        return (f"one entry costs {self.now.rate * self.now.width:.6g} by this release; all of them lose {self.loss():.6g}",)

    def covers_tally(self, told: Counted) -> bool:
        values, now = self.now.values, self.now
        drawn = (told.noise, told.n, told.identity, told.width) == ("laplace", self.n, now.identity, now.width)
        if not drawn or told.reads != {self.column} or not told.scale > 0 or now.rate != rate_of(told.scale):
            return False
        # What each state adds is something that a row can add, and two of them are as far apart as rows can be.
        fits = values is None or (set(values) <= set(told.steps) and max(values) - min(values) == told.width)
        return fits and not (told.histogram and values is not None)
