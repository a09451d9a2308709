"""The evidence of averages that were freed of what the table's own counts tell of them (docs/theory/groups-transport.md).

| evidence | for |
|---|---|
| `GroupTransportEvidence` | one average: a clamp on what the counts tell, and noise, direct or equalised |
| `GroupVectorTransportEvidence` | several averages: a ball on it, and noise that makes covariances equal, or not quite |

What must never change: everything is recomputed from the stored cases. What is taken back is made of the case's stated means
and the table's counts (`told`), and nothing else; centre, reach and metric are public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field

from attrpriv.errors import UsageError
from attrpriv.frozen import Finite, NonNegative
from attrpriv.methods.base.accuracy import ErrorLaw
from attrpriv.methods.base.checks import GroupCheck
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.equalising import belong_together, common_bits, equalised, hidden_scale, table_noise
from attrpriv.methods.base.evidence import Charged, Told
from attrpriv.methods.base.mixed_spread import MixedSpread
from attrpriv.methods.group_transport.correction import (
    Expected,
    along,
    error_law,
    scalar_spreads,
    vector_spreads,
)
from attrpriv.methods.group_transport.vector_clamp import VectorClamp, clamped_vector_delta
from attrpriv.numerics.calibration.groups import Equalised, most_equalising
from attrpriv.numerics.divergences.group_vector_clamp import Ball
from attrpriv.numerics.divergences.groups import Between, Form, clamped_group_delta_upper
from attrpriv.numerics.laws.groups import GroupCase, VectorCase, upward
from attrpriv.numerics.rounding import ROUNDED_DOWN
from attrpriv.problem.problem import Problem

Sides = tuple[Sequence[int], Sequence[int]]


def between_of(check: GroupCheck) -> Between | None:
    """How far apart the tables of two shares of the population are; None where the secret is the table's own."""
    if check.shares is None:
        return None
    low, high = check.shares
    return Between(check.case.n, min(1.0, upward(Fraction(high) - Fraction(low))))


class GroupTransportEvidence(Charged):
    """One average: F - y + clip(y, -reach, +reach) + noise, y = sum of n_c m_c/n - centre."""

    words: ClassVar[str] = "averages by transport, under groups"
    reads_categories: ClassVar[bool] = True
    errs_along: ClassVar[bool] = True
    kind: Literal["group_transport"] = "group_transport"
    columns: tuple[str, ...] = Field(min_length=1, max_length=1)
    form: Literal["direct", "equalised"]
    scale: float = Field(gt=0)
    reach: NonNegative
    centre: Finite
    check: GroupCheck

    def delta(self, epsilon: float) -> float:
        return self.profile()(epsilon)

    def profile(self, beyond: float = 0.0) -> Callable[[float], float]:
        """delta by epsilon; `beyond`: were the true differences of means larger than the stated ones by this share."""
        case, between = self.check.case, between_of(self.check)

        def reached(epsilon: float) -> float:
            inner = self.inner(epsilon)
            if inner is None or not isinstance(case, GroupCase) or not self.check.readable:
                return 1.0
            variance = self.scale**2 * ROUNDED_DOWN
            close = clamped_group_delta_upper(case, self.reach, variance, inner, self.form, between, beyond)
            return self.charged(close + self.check.tail, epsilon)

        return reached

    def told(self, counts: Sides) -> tuple[Fraction, ...]:
        """y of a table with these counts. Secret."""
        case = self.check.case
        if not isinstance(case, GroupCase):
            return ()
        means = [mean for mean, _ in (*case.members, *case.rest)]
        return (_average(means, counts, case.n) - Fraction(self.centre),)

    def taken(self, averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        """The averages without what the counts tell of them beyond the reach."""
        reach = Fraction(self.reach)
        found = self.told((list(told.inside), list(told.outside)))
        return [average - y + min(max(y, -reach), reach) for average, y in zip(averages, found, strict=True)]

    def moved(self, columns: Sequence[ColumnPlan], averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        return self.taken(averages, told)

    def table_noise(self, told: Told) -> tuple[float, float] | None:
        return hidden_scale(self.check.case, self.scale, told) if self.form == "equalised" else None

    def given(self, part: ColumnPlan, place: int, told: Told) -> tuple[Fraction, float] | None:
        noise = table_noise(self.check.case, self.scale, told)
        if noise is None:
            return None
        return self.taken([Fraction(0)], told)[0], noise if self.form == "equalised" else self.scale

    @property
    def own_noise(self) -> tuple[float, ...]:
        """The sd of each average's own noise."""
        return (self.scale,)

    @property
    def centres(self) -> tuple[float, ...]:
        return (self.centre,)

    def largest(self) -> tuple[float, ...]:
        """The largest sd that the noise on each average has for any table."""
        case = self.check.case
        return (largest_noise(case, self.form, self.scale) if isinstance(case, GroupCase) else self.scale,)

    def spreads(self, way: Expected) -> tuple[MixedSpread, ...]:
        return scalar_spreads(self, way)

    def error_law(self, columns: Sequence[ColumnPlan], place: int) -> ErrorLaw:
        return error_law(self, columns, place)

    def along(self, problem: Problem, place: int, answer: float) -> float | None:
        return along(self, problem, place, answer)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column is what was counted on."""
        return kind == "gaussian" and (column,) == self.columns and scale == self.scale


class GroupVectorTransportEvidence(Charged):
    """Several averages: F - Y + h(Y) + noise, h the nearest point of a ball in the norm of `metric`."""

    words: ClassVar[str] = "averages by transport, under groups"
    reads_categories: ClassVar[bool] = True
    errs_along: ClassVar[bool] = True
    kind: Literal["group_vector_transport"] = "group_vector_transport"
    columns: tuple[str, ...] = Field(min_length=2)
    form: Literal["direct", "equalised"]
    check: GroupCheck
    equalised: Equalised
    independent: tuple[NonNegative, ...]
    factor: tuple[tuple[Finite, ...], ...] = ()
    reach: NonNegative
    metric: tuple[tuple[Finite, ...], ...]
    centre: tuple[Finite, ...]

    def delta(self, epsilon: float) -> float:
        return self.profile()(epsilon)

    def profile(self, beyond: float = 0.0) -> Callable[[float], float]:
        """delta by epsilon; `beyond`: were the true differences of means larger than the stated ones by this share."""
        case = self.check.case
        size = len(self.columns)
        sizes = [len(self.independent), len(self.metric), len(self.centre), *map(len, self.metric)]
        if not isinstance(case, VectorCase) or case.size != size or any(found != size for found in sizes):
            return lambda epsilon: 1.0
        if not belong_together(case, self.equalised, self.independent, self.factor):
            return lambda epsilon: 1.0
        own = tuple(scale * math.sqrt(ROUNDED_DOWN) for scale in self.independent)
        way = VectorClamp(self.form, self.equalised, own, self.factor, self.reach, self.metric, ())
        close = clamped_vector_delta(case, way, between_of(self.check), beyond, self.centre)

        def reached(epsilon: float) -> float:
            inner = self.inner(epsilon)
            return 1.0 if inner is None else self.charged(close(inner) + self.check.tail, epsilon)

        return reached

    def told(self, counts: Sides) -> tuple[Fraction, ...]:
        """Y of a table with these counts. Secret."""
        case = self.check.case
        if not isinstance(case, VectorCase):
            return ()
        laws = (*case.members, *case.rest)
        return tuple(
            _average([mean[k] for mean, _ in laws], counts, case.n) - Fraction(centre) for k, centre in enumerate(self.centre)
        )

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        """Rows of the factor belong to columns by their order."""
        return columns == self.columns

    def common_noise(self) -> tuple[tuple[float, ...], ...]:
        return self.factor

    def bits(self) -> int:
        """How fine the grid of the common noise is."""
        return common_bits(self.independent, self.factor, self.equalised.parts, self.check.case.n)

    def most_equalising(self) -> tuple[float, ...]:
        """The largest sd that the noise that depends on the table can have on each average, from above."""
        parts = self.equalised.parts
        return tuple(math.hypot(*(x for part in parts for x in part.factor[k])) for k in range(len(self.columns)))

    def taken(self, averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        """The averages without what the counts tell of them outside of the ball."""
        import numpy as np

        found = self.told((list(told.inside), list(told.outside)))
        ball = Ball(self.reach, np.array(self.metric))
        length = float(ball.norm(np.array([[float(y) for y in found]]))[0])
        gone = 1 - Fraction(min(1.0, self.reach / length)) if length > 0 else Fraction(0)
        return [average - gone * y for average, y in zip(averages, found, strict=True)]

    def common_bits(self, columns: Sequence[ColumnPlan]) -> int:
        return self.bits()

    def moved(self, columns: Sequence[ColumnPlan], averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        return equalised(self.taken(averages, told), self.check.case, self.equalised.parts, self.bits(), told)

    @property
    def own_noise(self) -> tuple[float, ...]:
        """The sd of each average's own noise."""
        return self.independent

    @property
    def centres(self) -> tuple[float, ...]:
        return self.centre

    def largest(self) -> tuple[float, ...]:
        """The largest sd that the noise on each average has for any table."""
        return tuple(math.hypot(fixed, most) for fixed, most in zip(fixed_noise(self), self.most_equalising(), strict=True))

    def spreads(self, way: Expected) -> tuple[MixedSpread, ...]:
        return vector_spreads(self, way)

    def error_law(self, columns: Sequence[ColumnPlan], place: int) -> ErrorLaw:
        return error_law(self, columns, place)

    def along(self, problem: Problem, place: int, answer: float) -> float | None:
        return along(self, problem, place, answer)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column alone is what was counted on."""
        return kind == "gaussian" and dict(zip(self.columns, self.independent, strict=True)).get(column) == scale


def _average(means: Sequence[float], counts: Sides, n: int) -> Fraction:
    listed = (*counts[0], *counts[1])
    if len(listed) != len(means) or sum(listed) != n:
        raise UsageError("counts: must be one for each category, and add up to the number of rows.")
    return sum((count * Fraction(mean) for count, mean in zip(listed, means, strict=True)), Fraction(0)) / n


AnyGroupTransport = GroupTransportEvidence | GroupVectorTransportEvidence


def fixed_noise(evidence: AnyGroupTransport) -> tuple[float, ...]:
    """The sd of the noise on each average that is the same for all tables."""
    factor = evidence.common_noise()
    return tuple(math.hypot(own, *(factor[k] if factor else ())) for k, own in enumerate(evidence.own_noise))


def largest_noise(case: GroupCase, form: Form, scale: float) -> float:
    """The largest sd that the noise on any table has, of one average."""
    return scale if form == "direct" else math.hypot(scale, math.sqrt(max(0.0, most_equalising(case.stated))))
