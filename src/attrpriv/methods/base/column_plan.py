"""How one column is read and noised, a part of a plan; and the noise that several averages have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from attrpriv.errors import CertificateError, UsageError
from attrpriv.frozen import Finite, FrozenMap, FrozenModel, NonNegative, Range
from attrpriv.methods.base.accuracy import ExpectedError, Noise
from attrpriv.noise import add_gaussian, add_gaussian_on, add_laplace, granularity
from attrpriv.numerics.rounding import SOLVED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]


class Group(FrozenModel):
    """One group of a GROUP BY: its name, and the column plan that has its average."""

    name: str
    column: str


class SubsetUnion(FrozenModel):
    """So many rows of the table satisfy at least one of these conditions: a public number."""

    wheres: tuple[str, ...]
    rows: int


class ColumnPlan(FrozenModel):
    """How one column is read and noised; all in the unit of its average."""

    column: str
    where: str | None = Field(default=None, description="the rows that the average is over; none: all")
    rows: int | None = Field(default=None, description="how many these are, a public number")
    noise: Noise
    independent: NonNegative = Field(default=0.0, description="the part of Gaussian noise that is this column's own")
    error: ExpectedError
    centre: Finite | None = Field(default=None, description="the public answer, where no row is read")
    fill: Finite | None = None
    clip: tuple[Finite, Finite] | None = None
    terms: FrozenMap[Finite | None] = Field(
        default_factory=dict, description="the columns of a linear combination, each with the value for its missing entries"
    )
    parameters: FrozenMap[Any] = Field(default_factory=dict)


def exact(statistic: float | Fraction) -> Fraction:
    if isinstance(statistic, float) and not math.isfinite(statistic):
        raise UsageError("statistic: must be finite.")
    return Fraction(statistic)


def own_scale(part: ColumnPlan) -> float:
    return part.independent if part.noise.kind == "gaussian" else part.noise.scale


def clipped(part: ColumnPlan, average: Fraction) -> Fraction:
    """The engine clips rows; this keeps rounding from taking the average out of its bounds."""
    if part.clip is None:
        return average
    return min(max(average, Fraction(part.clip[0])), Fraction(part.clip[1]))


def noisy(part: ColumnPlan, average: Fraction, *, as_it_is: bool, hidden: tuple[float, float] | None = None) -> Fraction:
    """The average with the noise of its column.

    `as_it_is`: the certificate's evidence can cover an average as it is, and was asked whether it does. `hidden`: a scale of
    the noise that depends on the table, and the public grid that it is drawn on.
    """
    if part.centre is not None:
        return Fraction(part.centre)
    if hidden is not None:
        drawn = add_gaussian_on(average, *hidden)
    elif part.noise.kind == "gaussian":
        drawn = add_gaussian(average, part.independent)
    elif part.noise.kind == "laplace":
        drawn = add_laplace(average, part.noise.scale)
    elif as_it_is and part.noise.kind == "none":
        drawn = average
    else:
        raise CertificateError(f"plan: {part.column} has no noise and is not a public number.")
    return add_laplace(drawn, part.noise.individuals) if part.noise.individuals else drawn


# ----------------------------------------------------------------------------------------------------------------------------
# How one statistic that is no average is read: a part of a plan. Its noise stands in the plan's single column.
#
# What must never change: the answer is kept in its public range before noise is drawn, silently, and an undefined one (a
# regression on a constant) becomes a public number. So the range's width is how far the answer can move, whatever the table
# holds and however an engine computes.


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


# ----------------------------------------------------------------------------------------------------------------------------
# Gaussian noise on several averages: what each has of its own, and what they have in common.


@dataclass(frozen=True)
class Design:
    """Independent noise of each average, and a factor of further noise common to them (no columns where there is none)."""

    independent: tuple[float, ...]
    factor: tuple[tuple[float, ...], ...]

    def at_least(self, scale: float) -> Design:
        """The same with at least this much independent noise on each average."""
        return Design(tuple(max(own, scale * SOLVED_UP) for own in self.independent), self.factor)

    def scales(self) -> tuple[float, ...]:
        """The standard deviation of all the noise on each average."""
        rows = self.factor or ((),) * len(self.independent)
        return tuple(math.hypot(own, *row) for own, row in zip(self.independent, rows, strict=True))

    def steps(self) -> tuple[float, ...]:
        """The grid of each average's own noise."""
        return tuple(map(granularity, self.independent))

    def covariance(self) -> Matrix:
        """Of all the noise."""
        import numpy as np

        own = np.diag(np.array(self.independent, dtype=np.float64) ** 2)
        factor = np.array(self.factor, dtype=np.float64)
        return own + factor @ factor.T if self.factor else own


def common_bits(layout: Design) -> int:
    """How fine the grid of the common noise is: its rounding must be below half a step of each average's own grid."""
    if not layout.factor:
        return 0
    ratios = [sum(map(abs, row)) / own for row, own in zip(layout.factor, layout.independent, strict=True)]
    return 34 + max(0, math.ceil(math.log2(max(max(ratios), 1e-9))))
