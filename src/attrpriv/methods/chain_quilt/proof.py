"""The evidence that each entry of a Markov chain is hidden: quilts that cover every node (docs/theory/chain-quilt.md).

    loss = max over theta and i of  min over the stored quilts Q of   e(Q | X_i) + rate |N|

The rate is the sum of width/scale over this release and all earlier ones, of which no more is kept: `earlier`.
What must never change: the loss is recomputed from the stored chains over all nodes, rounded up; nothing is taken from the
search that found the quilts. More quilts can only lower it, and the empty one is always among them. Each node has *one* quilt
for everything released; losses that were reached with different quilts do not add up.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from attrpriv.frozen import FrozenModel, NonNegative, Positive
from attrpriv.methods.base.accuracy import ModelError
from attrpriv.methods.base.evidence import Counted, Evidence
from attrpriv.methods.chain_quilt.model_error import chain_model_error
from attrpriv.numerics.calibration.chain_quilt import chain_loss
from attrpriv.numerics.laws.markov import MarkovChain
from attrpriv.numerics.rounding import ROUNDED_UP

Distance = Annotated[int, Field(ge=0)]


class ChainCheck(FrozenModel):
    """One member of Theta: the chain, the quilts that are used, and the node that needs the most noise."""

    theta: int = Field(ge=0)
    chain: MarkovChain
    shapes: tuple[tuple[Distance, Distance], ...] = Field(
        description="quilts {X_(i-a), X_(i+b)} as (a, b); 0: no entry on that side"
    )
    node: int = Field(ge=1, description="the node that needs the most noise")
    quilt: tuple[Distance, Distance]
    influence: NonNegative
    near: int = Field(ge=0)
    score: NonNegative


class ChainEvidence(Evidence):
    """Whole-number Laplace noise on a statistic that one entry moves by at most `width`."""

    words: ClassVar[str] = "a release about a chain"
    room: ClassVar[str] = "List further matrices under transition, or laws under initial."
    goes_on: ClassVar[bool] = True
    kind: Literal["chain"] = "chain"
    checks: tuple[ChainCheck, ...] = Field(min_length=1)
    column: str = Field(description="the column whose entries are the chain; nothing else is read")
    length: int = Field(ge=2, description="the number of entries: the rows of the table")
    width: Positive
    scale: Positive
    earlier: NonNegative = Field(default=0.0, description="the sum of width/scale over all releases before this, rounded up")

    def delta(self, epsilon: float) -> float:
        return 0.0 if self.loss() <= epsilon else 1.0

    def loss(self) -> float:
        """The largest loss of any entry under any member, from above, by everything released."""
        rate = self.rate()
        if not (math.isfinite(rate) and rate > 0):
            return math.inf
        return max(chain_loss(check.chain, self.length, rate, check.shapes) for check in self.checks)

    def describe(self) -> tuple[str, ...]:
        return tuple(
            f"worst entry, chain {check.theta + 1}: row {check.node}; {check.near} near; influence {check.influence:.6g}"
            for check in self.checks
        )

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        return chain_model_error(self)

    def rate(self) -> float:
        """The sum of width/scale over this release and all before it, from above."""
        own = self.width / self.scale * ROUNDED_UP
        return math.nextafter(self.earlier + own, math.inf) if self.earlier else own

    def spent(self, epsilon: float, delta: float) -> float:
        """The share of the budget that everything released so far uses: the loss over epsilon, from above."""
        loss = self.loss()
        share = math.nextafter(loss / epsilon, math.inf)
        return min(1.0, share) if loss <= epsilon else share

    def follows(self, earlier: object | None) -> bool:
        """Whether what it counts as released before is what this evidence is about, and all that came before that."""
        if earlier is None:
            return self.earlier == 0
        past = ChainEvidence.read(earlier)
        return past is not None and (self.column, self.length, self.earlier) == (past.column, past.length, past.rate())

    def covers_tally(self, told: Counted) -> bool:
        drawn = (told.noise, told.scale, float(told.width), told.n)
        return told.reads == {self.column} and drawn == ("laplace", self.scale, self.width, self.length)
