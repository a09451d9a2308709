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

from attrpriv.frozen import Finite, FrozenModel, NonNegative
from attrpriv.methods.base.charges import Charged
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.equalising import equalised, hidden_scale
from attrpriv.methods.base.evidence import Told
from attrpriv.methods.base.gaussian_proof import shaped
from attrpriv.numerics.calibration.groups import population_tail
from attrpriv.numerics.calibration.groups_vector import Equalised, Part, vector_delta_upper
from attrpriv.numerics.divergences.groups import group_delta_upper
from attrpriv.numerics.laws.groups import GroupCase
from attrpriv.numerics.laws.groups_vector import Rows, VectorCase
from attrpriv.numerics.rounding import ROUNDED_DOWN


class GroupCheck(FrozenModel):
    """One secret under one member of Theta; `shares` where it is a share of the population."""

    secret: str
    theta: int
    case: GroupCase | VectorCase
    shares: tuple[Finite, Finite] | None = None

    @property
    def tail(self) -> float:
        """The chance that a table of the population is not covered by the case."""
        if self.shares is None:
            return 0.0
        return population_tail(self.case.n, *self.shares, self.case.low, self.case.high, self.case.apart)

    @property
    def readable(self) -> bool:
        """Whether a release may depend on the table's counts.

        For a share of the population not where rows are known: given their values, the categories of these rows depend on the
        share by far more than a row's own chance does, so that neither `apart` nor the range bounds the counts.
        """
        return self.shares is None or not (isinstance(self.case, GroupCase) and self.case.known)


class GroupEvidence(Charged):
    """Noise of one standard deviation on one average; equalised: what makes variances equal comes on top."""

    words: ClassVar[str] = "averages with Gaussian noise, under groups"
    reads_categories: ClassVar[bool] = True
    kind: Literal["groups"] = "groups"
    columns: tuple[str, ...] = Field(min_length=1, max_length=1)
    form: Literal["direct", "equalised"]
    scale: float = Field(gt=0)
    checks: tuple[GroupCheck, ...] = Field(min_length=1)

    def delta(self, epsilon: float) -> float:
        inner = self.inner(epsilon)
        if inner is None or (self.form == "equalised" and len(self.checks) != 1):
            return 1.0
        return self.charged(max(self._reached(check, inner) for check in self.checks), epsilon)

    def _reached(self, check: GroupCheck, epsilon: float) -> float:
        if not isinstance(check.case, GroupCase) or not (self.form == "direct" or check.readable):
            return 1.0
        return group_delta_upper(check.case, self.scale**2 * ROUNDED_DOWN, epsilon, self.form) + check.tail

    def drawn(self, columns: Sequence[ColumnPlan], averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        hidden = hidden_scale(self.checks[0].case, self.scale, told) if self.form == "equalised" else None
        return self.noised(columns, averages, hidden)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column is what was counted on."""
        return kind == "gaussian" and (column,) == self.columns and scale == self.scale


class GroupVectorEvidence(Charged):
    """Covariances made equal by public factors, and further noise that every table gets."""

    words: ClassVar[str] = "averages with Gaussian noise, under groups"
    reads_categories: ClassVar[bool] = True
    kind: Literal["groups_vector"] = "groups_vector"
    columns: tuple[str, ...] = Field(min_length=2)
    check: GroupCheck
    equalised: Equalised
    independent: tuple[NonNegative, ...]
    factor: tuple[tuple[Finite, ...], ...] = ()

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

    def drawn(self, columns: Sequence[ColumnPlan], averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        return self.noised(columns, equalised(averages, self.check.case, self.equalised.parts, self.bits(), told))

    def most_equalising(self) -> tuple[float, ...]:
        """The largest sd that the equalising noise of any table can have on each average, from above."""
        parts = self.equalised.parts
        return tuple(math.hypot(*(x for part in parts for x in part.factor[k])) for k in range(len(self.columns)))

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column alone is what was counted on."""
        return kind == "gaussian" and dict(zip(self.columns, self.independent, strict=True)).get(column) == scale


def belong_together(case: VectorCase, equalised: Equalised, independent: Sequence[float], factor: Rows) -> bool:
    """Whether all noise is on the averages of the case: matrices of other shapes would be stretched where they are added."""
    places = {"low": 1, "high": 1, "member": len(case.members), "rest": len(case.rest)}
    fits = [len(independent) == case.size, shaped(equalised.target, case.size, case.size)]
    fits += [shaped(rows, case.size) for rows in (*([factor] if factor else []), *(part.factor for part in equalised.parts))]
    return all(fits) and all(0 <= part.index < places[part.role] for part in equalised.parts)


def common_bits(independent: Sequence[float], factor: Sequence[Sequence[float]], parts: Sequence[Part], n: int) -> int:
    """How fine the grid of noise common to several averages is, for these sds of each average's own noise."""
    rows = [[*(factor[k] if factor else ()), *(x for part in parts for x in part.factor[k])] for k in range(len(independent))]
    ratio = max(sum(map(abs, row)) / own for row, own in zip(rows, independent, strict=True))
    # A part's numbers have variance 0, or one row's share of n at least.
    return 34 + math.ceil(max(0.0, math.log2(max(ratio, 1e-9)), math.log2(n) / 2))
