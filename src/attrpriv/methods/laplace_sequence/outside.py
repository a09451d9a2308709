r"""What other algorithms release beside our counts: anything that is b-private for one row, in one sequence with them.

| it reads | what one row that changes its category loses by it |
|---|---|
| whole rows | b, whatever else was drawn: it is added to `CountHistory.free` |
| one event | that of a count of the event with noise of rate b |
| one column of listed values | that of a histogram of them with noise of rate b/2 for each cell |

*Why.* Given all outputs and all other rows, the factor of M is a function f of what it reads of the row, f(v) <= e^b f(v').
Scaled, f lies in [1, e^b], and a ratio of two means that are linear in f is largest at a corner: e^b on a set and 1 elsewhere.
These corners are those of a count (sets: the event, or the rest) or of a histogram (any set of cells). So everything that
`laplace_sequence.loss` proves of those holds of M, together with all that was drawn (docs/theory/bridge.md).

What must never change: `now` spans no less than b, and nothing that we draw is covered by this evidence.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import Field

from attrpriv.assumptions.counts import Counts
from attrpriv.cases.lattice import Counted, count_assumptions, counted, independent_rows
from attrpriv.errors import QueryError
from attrpriv.frozen import Positive
from attrpriv.methods.base.outside import RowCurve
from attrpriv.methods.laplace_sequence.proof import CountDraw, CountHistory, SequenceEvidence
from attrpriv.methods.laplace_sequence.standing import Standing, sequence_checks
from attrpriv.numerics.rounding import ROUNDED_UP
from attrpriv.problem.problem import Problem
from attrpriv.queries.arithmetic import parse_column
from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.query import Query


class OutsideEvidence(SequenceEvidence):
    """A release of another library that is b-private for one row, with everything released so far."""

    words: ClassVar[str] = "a release of another library"
    kind: Literal["outside"] = "outside"
    what: str = Field(min_length=1)
    b: Positive = Field(description="the epsilon of one row replaced, delta 0")
    reads: str | None = Field(default=None, description="the event or the column that is all it reads; None: whole rows")

    def after(self) -> CountHistory:
        return self.past.spending(self.b) if self.now is None else self.past.counted(self.now)

    def loss(self, *, going_on: bool = False) -> float:
        """Infinite where what stands for it in the history would cost less than b."""
        kept = self.now is None or self.now.rate * self.now.width >= self.b
        return super().loss(going_on=going_on) if kept and (self.now is None) == (self.reads is None) else math.inf

    def describe(self) -> tuple[str, ...]:
        read = "whole rows" if self.reads is None else self.reads
        return (f"{self.what}: {self.b:.6g} for one row, of {read}",)


def curve(problem: Problem, reads: str | None) -> RowCurve:
    """What everything loses by b, where the algorithm reads whole rows, or one event or column alone."""
    standing = Standing.of(problem)
    found = None if reads is None else _read(problem, reads)
    laws = standing.laws if found is None else {**standing.laws, found.tally.identity: found}
    some = _draw(found, 1.0)
    drawn = standing.past.spending(1.0) if some is None else standing.past.counted(some)
    checks = sequence_checks(problem, drawn, laws)

    def proof(b: float, what: str) -> OutsideEvidence:
        return OutsideEvidence(past=standing.past, now=_draw(found, b), what=what, b=b, reads=reads, checks=checks)

    stated = independent_rows(problem) if found is None else count_assumptions(found)
    whole = "whole rows, every column" if found is None else f"of each row nothing but {reads}"
    return RowCurve(proof, lambda b: proof(b, "any algorithm").loss() if b else standing.proved.loss(), stated, whole)


def _draw(found: Counted | None, b: float) -> CountDraw | None:
    """What stands in the history for an algorithm that reads this event or column; None where it reads whole rows."""
    if found is None:
        return None
    tally = found.tally
    rate = b / tally.width * ROUNDED_UP
    return CountDraw(
        statistic=found.query.text, identity=tally.identity, histogram=tally.histogram, width=tally.width, rate=rate
    )


def _read(problem: Problem, reads: str) -> Counted:
    """An event is a condition; a name alone is a column, every value of which may be told apart."""
    column = parse_column(reads)
    if column is None:
        query = Query("count", where=str(parse_condition(reads)))
    elif any(column == member.sensitive for member in problem.assumed(Counts)):
        raise QueryError(f"reads: {column} is what is hidden, and tells as much as whole rows; leave reads out.")
    elif column in problem.bins:  # the law of its bins is stated; whoever reads the column sees more than the bin
        raise QueryError(
            f"reads: must be an event, or a column that has no bins: the law within a bin is not known. Got {reads}."
        )
    else:
        query = Query("count", group_by=column)
    found = counted(problem.model_copy(update={"queries": (query,)}))
    if column is not None and not (found.tally.histogram and found.tally.complete):
        raise QueryError(f"reads: must be an event, or a column whose values the assumption lists. Got {reads}.")
    return found
