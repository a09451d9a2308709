"""The proof of a view with sorted cells: rows of an interval show public values near their own, and everything is paid for.

In each interval the kept rows are sorted by their number and paired with public values t_1 <= ... <= t_m, spread evenly.
With D = sum w(|s_k - t_k|) (s_k - t_k)^2 (`numerics.laws.displacement`), iota the stated information and alpha the order,

    mu            = 2 sqrt(iota D_max)
    failure       = P(some cell has too few rows) + P(D > D_max)
    d             = failure / p_0,    p_0 the least probability of the events that must look alike
    delta(eps)    = renyi(eps + log(1 - d); alpha, mu) + d                      (statement 3 of docs/theory/reference-view.md)

The counts of cells are those of exact ones (`methods.view.reference`): the ends of intervals are declared, or chosen by records
that are not counted, so that given all values of counted records and table together, which of them are the records' is chance
alone, in intervals as in single values.

What must never change: every number is computed again from what is stored, rounded to the private side, and whatever does not
fit together proves nothing.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from attrpriv.errors import UsageError
from attrpriv.frozen import Finite, Positive
from attrpriv.methods.base.evidence import Evidence
from attrpriv.methods.base.view_plan import Moved, ViewCell
from attrpriv.methods.view.reference import ReferenceEvidence
from attrpriv.numerics.divergences.channel import Channel, mu_of, renyi_delta_upper
from attrpriv.numerics.laws.breaks import SortedCell, even_references
from attrpriv.numerics.laws.displacement import failure_of
from attrpriv.numerics.rounding import COMPUTED_DOWN, COMPUTED_UP, SUMMED_DOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attrpriv.numerics.laws.displacement import Weight

# Widths are taken with so many binary digits, rounded up, so that cells of one width and number of rows are computed once.
_DIGITS = 40


class SortedEvidence(Evidence):
    """Fixed numbers of rows of each cell, how far their numbers may move, and what that tells."""

    words: ClassVar[str] = "a view"
    kind: Literal["sorted_view"] = "sorted_view"
    counts: ReferenceEvidence
    column: str
    edges: tuple[Finite, ...] = Field(min_length=2)
    information: Positive
    """iota, per squared unit of the column."""
    slope: Positive | None
    shift: Annotated[Finite, Field(ge=0, le=1)] | None
    """How far the law within an interval may be from an even one; None: D must never exceed D_max."""
    displacement: Annotated[Finite, Field(ge=0)]
    """D_max."""
    theta: Annotated[Finite, Field(ge=0)]
    """What proves P(D > D_max); 0: it is never exceeded."""
    order: Annotated[Finite, Field(gt=1)]
    chosen_by: int | None = Field(default=None, ge=1, exclude_if=lambda number: number is None)
    """How many public records, which are not among the counted ones, chose the ends; None: they are declared."""

    def delta(self, epsilon: float) -> float:
        lost = self.lost()
        if lost >= 1:
            return 1.0
        # A little less than what is left of epsilon: delta falls with it.
        inner = epsilon + math.log1p(-lost) * COMPUTED_UP
        inner -= abs(inner) * (1 - SUMMED_DOWN)
        return min(1.0, (renyi_delta_upper(inner, self.order, self.mu()) + lost) * COMPUTED_UP)

    def mu(self) -> float:
        return mu_of(self.information, self.displacement)

    def lost(self) -> float:
        """d: the chance of a failure, given any event that must look alike; from above."""
        return min(1.0, self.failure() / self.counts.rarest_event * COMPUTED_UP)

    def failure(self) -> float:
        """The chance that the view cannot be drawn, from above; 1 where the numbers do not prove one."""
        return min(1.0, (self.counts.failure() + _too_far(self)) * COMPUTED_UP)

    def weight(self) -> Weight | None:
        return weight_of(self.information, self.slope, self.order)

    def sorted_cells(self) -> tuple[SortedCell, ...] | None:
        """Each cell that is an interval, from 0 on; None where a cell is none of the intervals."""
        if self.column not in self.counts.columns or any(a >= b for a, b in itertools.pairwise(self.edges)):
            return None
        return intervals_of(self.counts.cells, self.counts.columns.index(self.column), self.edges)

    def sorted_by(self) -> Moved:
        most = None if self.theta == 0 else self.displacement
        return Moved(column=self.column, edges=self.edges, most=most, order=self.order, slope=self.slope)

    def view_of(self) -> tuple[int, tuple[ViewCell, ...]]:
        return self.counts.view_of()

    def whole_columns(self) -> tuple[str, ...]:
        return self.counts.columns

    def describe(self) -> tuple[str, ...]:
        rows, failure = self.counts.describe()[0], self.failure()
        moved = "never more" if self.theta == 0 else f"more with a chance of {_too_far(self):.3g}"
        found = () if self.chosen_by is None else (f"ends of intervals found on {self.chosen_by:,} other public records",)
        return (
            rows,
            *found,
            f"{self.column} moves by D at most {self.displacement:.6g} ({moved}); information {self.information:.4g}: mu "
            f"{self.mu():.4g}, at order {self.order:.4g}",
            f"the view cannot be drawn with a chance of {failure:.3g}; {self.lost():.3g} for events of probability "
            f"{self.counts.rarest_event:g} or more",
        )


def weight_of(information: float, slope: float | None, order: float) -> Weight | None:
    """How much a squared unit costs for a row that moved this far; None: as much for all."""
    if slope is None:
        return None
    channel = Channel(information, slope)
    return lambda moved: channel.weight(moved, order)


def intervals_of(cells: Sequence[ViewCell], place: int, edges: tuple[float, ...]) -> tuple[SortedCell, ...] | None:
    """The cells that are intervals, of the value at this place; a missing value is a cell in which nothing moves."""
    ends: dict[object, float] = dict(itertools.pairwise(edges))
    lows = [(cell.values[place] if cell.values and len(cell.values) > place else "", cell.keep) for cell in cells]
    if not all(low is None or (isinstance(low, float) and low in ends) for low, _ in lows):
        return None
    return tuple(even_cell(ends[low] - low, keep) for low, keep in lows if isinstance(low, float))


@lru_cache(maxsize=4096)
def even_cell(width: float, rows: int) -> SortedCell:
    """An interval of this width, from 0 on, with rows spread evenly; the width is rounded up, by which D only grows."""
    mantissa, exponent = math.frexp(width)
    wide = math.ldexp(math.ceil(math.ldexp(mantissa, _DIGITS)), exponent - _DIGITS)
    return SortedCell(0.0, wide, even_references(0.0, wide, rows))


@lru_cache(maxsize=64)  # a plan asks several times, and it takes seconds
def _too_far(evidence: SortedEvidence) -> float:
    """P(D > D_max), from above."""
    cells = evidence.sorted_cells()
    if cells is None or (evidence.theta > 0 and evidence.shift is None):
        return 1.0
    try:
        # What is drawn compares with D_max after rounding D up: so a little less than D_max must hold.
        most = evidence.displacement if evidence.theta == 0 else evidence.displacement * COMPUTED_DOWN
        return failure_of(cells, most, evidence.theta, evidence.shift or 0.0, evidence.weight())
    except UsageError:
        return 1.0


__all__ = ["SortedEvidence", "even_cell", "intervals_of", "weight_of"]
