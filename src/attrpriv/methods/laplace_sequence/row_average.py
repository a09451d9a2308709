"""The evidence of an average with Laplace noise for one row, in one sequence with counts of the same table.

Where one row is replaced, an average of rows that are clipped to a width w moves by at most w/n; so with noise of scale s it is
b-private for one row, b = (w/n + step)/s. That is all that is used: it may read anything of a row, so b is added to
`CountHistory.free`, as of an algorithm of another library that reads whole rows (docs/theory/bridge.md).

What must never change: nothing is assumed of how the averaged column goes with the category or with what is counted.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from attrpriv.methods.base.evidence import LaplaceTerm
from attrpriv.methods.laplace_sequence.proof import CountHistory, SequenceEvidence
from attrpriv.numerics.rounding import COMPUTED_UP, ROUNDED_DOWN, ROUNDED_UP


class RowAverageEvidence(SequenceEvidence):
    """An average with noise for one row, with everything released so far."""

    words: ClassVar[str] = "an average with noise for one row"
    kind: Literal["row_average"] = "row_average"
    n: Annotated[int, Field(strict=True, ge=1)]
    term: LaplaceTerm

    @property
    def b(self) -> float:
        """What it costs where one row is replaced, from above."""
        return (self.term.sensitivity + self.term.granularity) / self.term.scale * COMPUTED_UP

    def after(self) -> CountHistory:
        return self.past.spending(self.b)

    def loss(self, *, going_on: bool = False) -> float:
        return super().loss(going_on=going_on) if self.now is None else math.inf

    def covers(self, column: str, kind: str, scale: float) -> bool:
        return kind == "laplace" and (column, scale) == (self.term.column, self.term.scale)

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        return columns == (self.term.column,) and n == self.n and clipped

    def width_of(self, column: str) -> float | None:
        return self.term.sensitivity * self.n * ROUNDED_DOWN if column == self.term.column else None

    def describe(self) -> tuple[str, ...]:
        return (f"{self.term.column}: {self.b:.6g} for one row, whatever it depends on",)


def row_term(column: str, width: float, n: int, scale: float, granularity: float) -> LaplaceTerm:
    """One row, clipped to this width, moves an average of n rows by an n-th of it."""
    return LaplaceTerm(column=column, sensitivity=width / n * ROUNDED_UP * ROUNDED_UP, scale=scale, granularity=granularity)
