"""The evidence of a sequence of counts, sums, histograms and averages with Laplace noise: one proof for all of them.

What other algorithms released, each b-private for one row, stands in the same sequence (`laplace_sequence.outside`).

Pure epsilon, and additive: what the counts lose together, whichever rule is best (`laplace_sequence.loss`), plus what is
lost by noise that is scaled to the whole range of a statistic, under which any table looks like any other. The next query may
depend on the answers before: each bound holds for every output by itself (docs/theory/count-sequences.md).

What must never change: `past` holds what was really drawn, and `follows` compares it with the evidence before, exactly. Laws
are those of the policy in force, for everything that was drawn; a statistic without a law costs the most that it can.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Literal, Self

from pydantic import Field

from attrpriv.frozen import FrozenModel, NonNegative, Positive
from attrpriv.methods.base.accuracy import PURE, ModelError, Profile, off_by, unaffected
from attrpriv.methods.base.evidence import INTERVALS, Counted, Evidence, LaplaceTerm
from attrpriv.methods.base.laplace_terms import covers_range, covers_statistic, least_width
from attrpriv.methods.laplace_sequence.joint_loss import joint_row_loss
from attrpriv.methods.laplace_sequence.loss import Asked, row_loss
from attrpriv.numerics.laws.records import RecordLaws, widened
from attrpriv.numerics.rounding import COMPUTED_DOWN, COMPUTED_UP, ROUNDED_UP
from attrpriv.numerics.search import or_infinite

# Statistics beyond this many are not told apart any more: a row pays their whole span.
MOST_DRAWS = 24


class CountDraw(FrozenModel):
    """A counted statistic that was released, as often as it was."""

    statistic: str = Field(description="the query that first asked for it")
    identity: str = Field(description="a digest of what is counted")
    histogram: bool = False
    width: int = Field(ge=1, description="how far one row moves it, in its steps")
    rate: Positive = Field(description="the sum of 1/scale of the noise on all its outputs")


def rate_of(scale: float) -> float:
    """1/scale from above."""
    return math.nextafter(1 / scale, math.inf)


class CountHistory(FrozenModel):
    """Everything that was drawn: each statistic once, what is no longer told apart, and what range noise has cost."""

    draws: tuple[CountDraw, ...] = ()
    free: NonNegative = Field(
        default=0.0, description="the sum of width/scale of statistics that are not told apart, and of b of other algorithms"
    )
    ranged: NonNegative = Field(default=0.0, description="epsilon of noise that is scaled to the whole range")

    def counted(self, new: CountDraw) -> CountHistory:
        """With one more draw; noise on the same statistic adds up."""
        for k, old in enumerate(self.draws):
            if (old.identity, old.histogram, old.width) == (new.identity, new.histogram, new.width):
                more = old.model_copy(update={"rate": (old.rate + new.rate) * ROUNDED_UP})
                return self.model_copy(update={"draws": (*self.draws[:k], more, *self.draws[k + 1 :])})
        if len(self.draws) < MOST_DRAWS:
            return self.model_copy(update={"draws": (*self.draws, new)})
        return self.spending(new.rate * new.width)

    def spending(self, b: float) -> CountHistory:
        """With what any algorithm told that is b-private for one row, and may have read all of it."""
        return self.model_copy(update={"free": (self.free + b) * ROUNDED_UP})

    def ranging(self, loss: float) -> CountHistory:
        """With noise for the whole range."""
        return self.model_copy(update={"ranged": (self.ranged + loss) * ROUNDED_UP}) if loss else self

    @property
    def reads(self) -> bool:
        """Whether anything was released that must be costed by how many rows change."""
        return bool(self.draws) or self.free > 0


class JointLaw(FrozenModel):
    """Some statistics of one row whose joint law is known: the row is in one of some atoms."""

    places: tuple[int, ...] = Field(min_length=2, description="which of everything drawn")
    atoms: RecordLaws
    added: tuple[tuple[int, ...], ...] = Field(description="of each: what a row of each atom adds, or the number of its cell")

    def loss(self, draws: Sequence[CountDraw], free: float) -> float:
        """Of one row: these statistics by their law, all others by their span."""
        mine = [draws[place] for place in self.places]
        others = [draw.rate * draw.width for place, draw in enumerate(draws) if place not in self.places]
        if len(set(self.places)) != len(mine) or not self._fits(mine):
            return math.inf
        flags, rates = [draw.histogram for draw in mine], [draw.rate for draw in mine]
        return joint_row_loss(self.atoms, self.added, flags, rates) + math.fsum([*others, free]) * COMPUTED_UP

    def _fits(self, mine: Sequence[CountDraw]) -> bool:
        """Whether a row of each atom adds something to each statistic, no two of them further apart than the width."""
        sizes = [len(one) == len(self.atoms.values) for one in self.added]
        widths = [
            draw.histogram or max(one) - min(one) <= draw.width for one, draw in zip(self.added, mine, strict=False) if one
        ]
        return len(self.added) == len(mine) and all(sizes) and all(widths)


class SequenceCheck(FrozenModel):
    """One secret under one member of Theta: how many rows change, and the law of each statistic where it is known."""

    secret: str
    theta: int
    apart: int = Field(ge=1)
    laws: tuple[RecordLaws | None, ...] = Field(description="in the order of everything drawn, this release included")
    joint: tuple[JointLaw, ...] = Field(default=(), description="statistics of which more is known than the law of each")

    def wider(self, off: float) -> SequenceCheck:
        """With every probability off by a share of itself."""
        laws = tuple(None if law is None else widened(law, off) for law in self.laws)
        joint = tuple(one.model_copy(update={"atoms": widened(one.atoms, off)}) for one in self.joint)
        return self.model_copy(update={"laws": laws, "joint": joint})


class SequenceEvidence(Evidence):
    """Everything released so far taken together: what was drawn, and what each secret loses by it."""

    room: ClassVar[str] = INTERVALS
    goes_on: ClassVar[bool] = True
    told_by: ClassVar[Profile] = PURE
    past: CountHistory = Field(default_factory=CountHistory)
    now: CountDraw | None = Field(default=None, description="the statistic of this release, where its law is used")
    checks: tuple[SequenceCheck, ...] = ()

    def after(self) -> CountHistory:
        """Everything drawn, this release included."""
        return self.past if self.now is None else self.past.counted(self.now)

    def delta(self, epsilon: float) -> float:
        return 0.0 if self.loss() <= epsilon else 1.0

    def stretched(self, times: float) -> Self:
        """What is lost is lost row by row."""
        rows = [math.ceil(check.apart * times * COMPUTED_DOWN) for check in self.checks]
        made = zip(self.checks, rows, strict=True)
        return self.model_copy(update={"checks": tuple(check.model_copy(update={"apart": max(1, k)}) for check, k in made)})

    def loss(self, *, going_on: bool = False) -> float:
        """Of everything drawn, from above, over all secrets and members; infinite where something is not covered.

        With `going_on`, by the bounds alone that stay useful when more is drawn.
        """
        drawn = self.after()
        if not drawn.reads:
            return drawn.ranged
        if not self.checks:
            return math.inf
        return (max(self._loss(drawn, check, going_on) for check in self.checks) + drawn.ranged) * ROUNDED_UP

    @staticmethod
    def _loss(drawn: CountHistory, check: SequenceCheck, going_on: bool) -> float:
        if len(check.laws) != len(drawn.draws):
            return math.inf
        asked = [Asked(law, draw.histogram, draw.width, draw.rate) for law, draw in zip(check.laws, drawn.draws, strict=True)]
        losses = [row_loss(asked, drawn.free, going_on=going_on)]
        losses += [] if going_on else [one.loss(drawn.draws, drawn.free) for one in check.joint]
        return check.apart * min(losses) * ROUNDED_UP

    def spent(self, epsilon: float, delta: float) -> float:
        """The share of the budget that everything drawn has used; delta is not needed."""
        return self.loss() / epsilon * ROUNDED_UP

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        """The loss of everything drawn where laws are off; noise for the whole range rests on none."""
        if not self.after().reads:
            return unaffected(epsilon)
        return off_by(lambda off: or_infinite(self._wider(off).loss))

    def _wider(self, off: float) -> Self:
        return self.model_copy(update={"checks": tuple(check.wider(off) for check in self.checks)})

    def follows(self, earlier: object | None) -> bool:
        """Whether what it calls past is what `earlier` says was drawn; None: nothing was."""
        if earlier is None:
            return self.past == CountHistory()
        before = SequenceEvidence.read(earlier)
        return before is not None and self.past == before.after()


class CountSequenceEvidence(SequenceEvidence):
    """Laplace noise on counts and averages, everything released so far taken together."""

    words: ClassVar[str] = "answers with Laplace noise"
    kind: Literal["count_sequence"] = "count_sequence"
    terms: tuple[LaplaceTerm, ...] = Field(default=(), description="this release, where its noise is for the whole range")

    def after(self) -> CountHistory:
        drawn = super().after()
        return drawn.ranging(math.fsum((term.sensitivity + term.granularity) / term.scale for term in self.terms) * ROUNDED_UP)

    def covers_tally(self, told: Counted) -> bool:
        if self.now is None:
            return covers_range(self.terms, told)
        if self.terms or told.noise != "laplace" or not told.scale > 0:
            return False
        drawn = (self.now.identity, self.now.histogram, self.now.width, self.now.rate)
        return drawn == (told.identity, told.histogram, told.width, rate_of(told.scale))

    def width_of(self, column: str) -> float | None:
        return least_width(self.terms, column)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column's average is what was counted on."""
        return kind == "laplace" and any(term.column == column and term.scale == scale for term in self.terms)

    def covers_statistic(self, name: str, read: frozenset[str], width: Fraction, kind: str, scale: float) -> bool:
        """Whatever columns it reads: its noise is for the whole range."""
        return covers_statistic(self.terms, name, width, kind, scale)
