"""The evidence of Gaussian noise that hides how many rows are of some category (docs/theory/groups.md).

| evidence | for |
|---|---|
| `GroupEvidence` | one average: direct noise, or noise that first makes all variances equal |
| `GroupVectorEvidence` | several averages: covariances made equal, then the shift hidden |

What must never change: everything is recomputed from the stored cases; a share of the population adds the tail of its counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field

from attrpriv.frozen import Finite, NonNegative
from attrpriv.methods.base.checks import GroupCheck
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.equalising import belong_together, common_bits, equalised, hidden_scale, table_noise
from attrpriv.methods.base.evidence import Charged, Told
from attrpriv.numerics.calibration.groups import Equalised, vector_delta_upper
from attrpriv.numerics.divergences.groups import group_delta_upper
from attrpriv.numerics.laws.groups import GroupCase, VectorCase
from attrpriv.numerics.rounding import ROUNDED_DOWN


class GroupEvidence(Charged):
    """Noise of one standard deviation on one average; equalised: what makes variances equal comes on top."""

    words: ClassVar[str] = "averages with Gaussian noise, under groups"
    reads_categories: ClassVar[bool] = True
    kind: Literal["groups"] = "groups"
    columns: tuple[str, ...] = Field(min_length=1, max_length=1)
    form: Literal["direct", "equalised"]
    scale: float = Field(gt=0)
    checks: tuple[GroupCheck, ...] = Field(min_length=1)

    @property
    def own_noise(self) -> tuple[float, ...]:
        """The sd of each average's own noise."""
        return (self.scale,)

    def wider(self, off: float) -> GroupEvidence:
        """Were the categories' means further apart than is stated, by this share."""
        return self.model_copy(update={"checks": tuple(check.wider(off) for check in self.checks)})

    def delta(self, epsilon: float) -> float:
        inner = self.inner(epsilon)
        if inner is None or (self.form == "equalised" and len(self.checks) != 1):
            return 1.0
        return self.charged(max(self._reached(check, inner) for check in self.checks), epsilon)

    def _reached(self, check: GroupCheck, epsilon: float) -> float:
        if not isinstance(check.case, GroupCase) or not (self.form == "direct" or check.readable):
            return 1.0
        return group_delta_upper(check.case, self.scale**2 * ROUNDED_DOWN, epsilon, self.form) + check.tail

    def table_noise(self, told: Told) -> tuple[float, float] | None:
        return hidden_scale(self.checks[0].case, self.scale, told) if self.form == "equalised" else None

    def given(self, part: ColumnPlan, place: int, told: Told) -> tuple[Fraction, float] | None:
        noise = table_noise(self.checks[0].case, self.scale, told) if self.form == "equalised" else self.scale
        return None if noise is None else (Fraction(0), noise)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column is what was counted on."""
        return kind == "gaussian" and (column,) == self.columns and scale == self.scale


class GroupVectorEvidence(Charged):
    """Covariances made equal by public factors, and further noise that every table gets."""

    words: ClassVar[str] = "averages with Gaussian noise, under groups"
    reads_categories: ClassVar[bool] = True
    form: ClassVar[Literal["equalised"]] = "equalised"
    kind: Literal["groups_vector"] = "groups_vector"
    columns: tuple[str, ...] = Field(min_length=2)
    check: GroupCheck
    equalised: Equalised
    independent: tuple[NonNegative, ...]
    factor: tuple[tuple[Finite, ...], ...] = ()

    @property
    def own_noise(self) -> tuple[float, ...]:
        """The sd of each average's own noise."""
        return self.independent

    def wider(self, off: float) -> GroupVectorEvidence:
        """Were the categories' means further apart than is stated, by this share."""
        return self.model_copy(update={"check": self.check.wider(off)})

    def delta(self, epsilon: float) -> float:
        inner = self.inner(epsilon)
        case = self.check.case
        if inner is None or not isinstance(case, VectorCase) or case.size != len(self.columns):
            return 1.0
        if not belong_together(case, self.equalised, self.independent, self.factor):
            return 1.0
        own = [scale * math.sqrt(ROUNDED_DOWN) for scale in self.independent]
        worst = vector_delta_upper(case, self.equalised, own, self.factor, inner)
        return self.charged(worst + self.check.tail, epsilon)

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        """Rows of the factor belong to columns by their order."""
        return columns == self.columns

    def common_noise(self) -> tuple[tuple[float, ...], ...]:
        return self.factor

    def bits(self) -> int:
        """How fine the grid of the common noise is: 2^-34 of its least sd, and of what any average's own grid can show."""
        return common_bits(self.independent, self.factor, self.equalised.parts, self.check.case.n)

    def common_bits(self, columns: Sequence[ColumnPlan]) -> int:
        return self.bits()

    def moved(self, columns: Sequence[ColumnPlan], averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        return equalised(averages, self.check.case, self.equalised.parts, self.bits(), told)

    def most_equalising(self) -> tuple[float, ...]:
        """The largest sd that the equalising noise of any table can have on each average, from above."""
        parts = self.equalised.parts
        return tuple(math.hypot(*(x for part in parts for x in part.factor[k])) for k in range(len(self.columns)))

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column alone is what was counted on."""
        return kind == "gaussian" and dict(zip(self.columns, self.independent, strict=True)).get(column) == scale
