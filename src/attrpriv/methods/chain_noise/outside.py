"""What other algorithms release beside ours about a chain: anything that is b-private for one entry, in one sequence with ours.

They cost b for every two states of an entry; where nothing is read but an event, for two states that the event tells apart.
Costs add up with ours, and the curve is read once (docs/theory/chain-ratio.md). What must never change: `now` costs no less
than b.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import Field

from attrpriv.assumptions.chain import Chain
from attrpriv.cases.chain_cost import entry_values
from attrpriv.cases.chain_layout import chain_assumptions, chain_tally
from attrpriv.errors import QueryError
from attrpriv.frozen import Positive
from attrpriv.methods.base.outside import RowCurve
from attrpriv.methods.chain_noise.plan import ChainStanding
from attrpriv.methods.chain_noise.proof import ChainDraw, ChainSequence, with_draw
from attrpriv.problem.problem import Problem
from attrpriv.queries.arithmetic import parse_column
from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.query import Query


class ChainOutsideEvidence(ChainSequence):
    """A release of another library that is b-private for one entry, with everything released so far."""

    words: ClassVar[str] = "a release of another library"
    kind: Literal["chain_outside"] = "chain_outside"
    what: str = Field(min_length=1)
    b: Positive = Field(description="the epsilon of one row replaced, delta 0")
    reads: str | None = Field(default=None, description="the event that is all it reads of an entry; None: the whole entry")

    def loss(self) -> float:
        """Infinite where what stands for it in the history would cost less than b."""
        told = self.now.values is None or (self.reads is not None and max(self.now.values) > min(self.now.values))
        return super().loss() if told and self.now.rate >= self.b else math.inf

    def describe(self) -> tuple[str, ...]:
        read = self.column if self.reads is None else self.reads
        return (f"{self.what}: {self.b:.6g} for one row, of {read}",)


def curve(problem: Problem, reads: str | None) -> RowCurve:
    """What everything loses by b, where the algorithm reads the chain's column, or one event of it alone."""
    standing = ChainStanding.of(problem)
    chain = standing.chains[0]
    event = None if reads is None or parse_column(reads) == chain.column else reads
    values = None if event is None else _values(problem, chain, event)

    def drawn(b: float, what: str) -> ChainDraw:
        return ChainDraw(statistic=what, identity=f"event {event}" if event else "", values=values, width=1, rate=b)

    def proof(b: float, what: str) -> ChainOutsideEvidence:
        facts = {**standing.facts(), "now": drawn(b, what), "what": what, "b": b, "reads": reads if event else None}
        return ChainOutsideEvidence.model_validate(facts)

    def loss(b: float) -> float:
        return standing.loss(with_draw(standing.past, drawn(b, "any algorithm"))) if b else standing.used

    whole = f"of each row nothing but {event or chain.column}, or what depends on that entry of its row alone"
    return RowCurve(proof, loss, chain_assumptions(problem, standing.chains), whole)


def _values(problem: Problem, chain: Chain, event: str) -> tuple[int, ...]:
    """Which states satisfy the event."""
    if parse_column(event) is not None:
        raise QueryError(f"reads: must be {chain.column}, or an event of it. Got {event}, of which the chain says nothing.")
    tally = chain_tally(problem, chain, Query("count", where=str(parse_condition(event))))
    values = entry_values(problem, chain, tally)
    if values is None:
        raise QueryError(f"reads: must be an event that each state decides. Got {event}; leave it out.")
    if len(set(values)) < 2:
        raise QueryError(f"reads: must be an event that tells states of {chain.column} apart. Got {event}.")
    return values
