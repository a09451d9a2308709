"""How one statistic that is no average is read: a part of a plan. Its noise stands in the plan's single column.

What must never change: the answer is kept in its public range before noise is drawn, silently, and an undefined one (a
regression on a constant) becomes a public number. So the range's width is how far the answer can move, whatever the table holds
and however an engine computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from pydantic import Field, model_validator

from attrpriv.errors import CertificateError
from attrpriv.frozen import Finite, FrozenMap, FrozenModel, Range


class StatisticPlan(FrozenModel):
    """Of each column that the statistic reads the value for missing entries and the clip; and where the answer is kept."""

    fills: FrozenMap[Finite | None]
    clips: FrozenMap[Range]
    range: Range = Field(description="the answer is clipped to it, silently")
    undefined: Finite | None = Field(default=None, description="the public answer where the table may have none")

    @model_validator(mode="before")
    @classmethod
    def _as_0_1_0_recorded(cls, value: object) -> object:
        """Ledgers of 0.1.0 hold one more key, empty wherever rows are clipped."""
        if isinstance(value, Mapping) and value.get("scales") == {}:
            return {key: one for key, one in value.items() if key != "scales"}
        return value

    @property
    def width(self) -> Fraction:
        """How far two answers can be apart."""
        return Fraction(self.range[1]) - Fraction(self.range[0])

    def kept(self, value: Fraction | None) -> Fraction:
        """The answer in its range; of an undefined one, the public number."""
        if value is None:
            if self.undefined is None:
                raise CertificateError("plan: must have a public answer where a table may have none. Nothing was released.")
            value = Fraction(self.undefined)
        return min(max(value, Fraction(self.range[0])), Fraction(self.range[1]))
