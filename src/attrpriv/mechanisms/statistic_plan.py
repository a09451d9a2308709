"""How one statistic that is no average is read: a part of a plan. Its noise stands in the plan's single column.

What must never change: the answer is kept in its public range before noise is drawn, silently, and an undefined one (a
regression on a constant) becomes a public number. So the range's width is how far the answer can move, whatever the table holds
and however an engine computes.
"""

from __future__ import annotations

from fractions import Fraction

from pydantic import Field

from attrpriv.errors import DataError
from attrpriv.framework.model import Finite, FrozenMap, FrozenModel, Positive, Range

UNDEFINED = (
    "statistic: must be defined, and is not for this table (a regression on a column that is constant). This is outside the "
    "guarantee: treat this message as an answer about the table. Nothing was released."
)


class StatisticPlan(FrozenModel):
    """Of each column that the statistic reads the value for missing entries and the clip; and where the answer is kept."""

    fills: FrozenMap[Finite | None]
    clips: FrozenMap[Range | None]
    scales: FrozenMap[tuple[Finite, Positive]] = Field(
        default_factory=dict, description="public centre and spread of a column that is not clipped"
    )
    range: Range | None = Field(default=None, description="the answer is clipped to it, silently; none: it is not clipped")
    undefined: Finite | None = Field(default=None, description="the public answer where the table has none; none: a failure")

    @property
    def width(self) -> Fraction | None:
        """How far two answers can be apart."""
        return None if self.range is None else Fraction(self.range[1]) - Fraction(self.range[0])

    def kept(self, value: Fraction | None) -> Fraction:
        """The answer in its range; of an undefined one, the public number."""
        if value is None:
            if self.undefined is None:
                raise DataError(UNDEFINED)
            value = Fraction(self.undefined)
        if self.range is None:
            return value
        return min(max(value, Fraction(self.range[0])), Fraction(self.range[1]))
