"""The evidence that each entry of a Markov chain is hidden: quilts that cover every node (docs/theory/chain-quilt.md).

    loss = max over theta and i of  min over the stored quilts Q of   e(Q | X_i) + width |N| / scale

What must never change: the loss is recomputed from the stored chains over all nodes, rounded up; nothing is taken from the
search that found the quilts. More quilts can only lower it, and the empty one is always among them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from attrpriv.calibration.chain_quilt import chain_loss
from attrpriv.framework.model import FrozenModel, NonNegative, Positive
from attrpriv.laws.markov import MarkovChain

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


class ChainEvidence(FrozenModel):
    """Whole-number Laplace noise on a statistic that one entry moves by at most `width`."""

    kind: Literal["chain"] = "chain"
    checks: tuple[ChainCheck, ...] = Field(min_length=1)
    column: str = Field(description="the column whose entries are the chain; nothing else is read")
    length: int = Field(ge=2, description="the number of entries: the rows of the table")
    width: Positive
    scale: Positive

    def delta(self, epsilon: float) -> float:
        return 0.0 if self.loss() <= epsilon else 1.0

    def loss(self) -> float:
        """The largest loss of any entry under any member, from above."""
        return self.joint_loss(self.width / self.scale * (1 + 1e-15))

    def joint_loss(self, rate: float) -> float:
        """The same for everything released, where `rate` is the sum of width/scale over all releases."""
        if not (math.isfinite(rate) and rate > 0):
            return math.inf
        return max(chain_loss(check.chain, self.length, rate, check.shapes) for check in self.checks)

    def counts(self, reads: frozenset[str], width: float, noise: str, scale: float, n: int) -> bool:
        """Whether this noise on a statistic of these columns is what was counted on."""
        wanted = ("laplace", self.scale, self.width, self.length)
        return reads == {self.column} and (noise, scale, width, n) == wanted


def same_chains(evidence: Sequence[ChainEvidence]) -> bool:
    """Whether all are about one table under one assumption."""
    first = evidence[0]
    stated = [(one.column, one.length, [check.chain for check in one.checks]) for one in evidence]
    return all(one == (first.column, first.length, [check.chain for check in first.checks]) for one in stated)
