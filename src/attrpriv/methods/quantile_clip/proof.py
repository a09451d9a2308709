"""The evidence of a quantile clip: one average whose law, given the sensitive statistics, is nearly always the same one.

Given all sensitive statistics G that are read, the masked average F + N(0, mask^2) is N(m, V), m = mu_q + slopes (G - mu_G).
The clip gives it a law between e^-below and e^above times N(m0, V), whatever G is (docs/theory/quantile-clip.md). Everything
that digits change is a factor e^lambda on each public cell:

| lambda | for |
|---|---|
| `lattice` | values recorded on a spacing |
| `grid.draw_charge` | the grids of the noise, of the decisions and of the answer |
| `rounding` | averages of rounded values that are not quite normal (an estimate, charged fourfold) |

and any two values of G lose below + above + 2 lambda at most. A secret that is any function of G, of one or of several of
them, is hidden with that: given it, the answer's law is a mixture of such laws, with whatever weights.

What must never change: delta is 0 or 1. Slopes and variances are exact fractions of the stored numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from attrpriv.frozen import Finite, FrozenModel, Positive
from attrpriv.methods.base.accuracy import ErrorLaw
from attrpriv.methods.base.clamp import Read
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Evidence, Told
from attrpriv.methods.quantile_clip.draw import clip_spread, quantile_clipped
from attrpriv.methods.quantile_clip.grid import QuantileGrid, quantile_grid, rounding_charge
from attrpriv.numerics.calibration.gaussian import lattice_lambda
from attrpriv.numerics.calibration.quantile_clip import QuantileClip
from attrpriv.numerics.laws.exact_moments import covariance_of, regression
from attrpriv.numerics.rounding import COMPUTED_DOWN, COMPUTED_UP

# A grid of 2^-32 changes the weights of a lattice's points by less than this share of their spread.
_GRID_SHARE = 2.0**-31


class Moments(FrozenModel):
    """Means, and covariances as scale_i scale_j matrix_ij: what the policy states, digit by digit. The query comes first."""

    columns: tuple[str, ...] = Field(min_length=2)
    mean: tuple[Finite, ...]
    scale: tuple[Positive, ...]
    matrix: tuple[tuple[Finite, ...], ...]
    spacing: tuple[Positive, ...] = Field(description="on which nearly all values of each column lie")

    @model_validator(mode="after")
    def _consistent(self) -> Moments:
        size = len(self.columns)
        rows = (self.mean, self.scale, self.spacing, *self.matrix)
        if len(set(self.columns)) != size or len(self.matrix) != size or any(len(row) != size for row in rows):
            raise ValueError("moments: need one mean, scale, spacing and row for each column.")
        if any(self.matrix[i][j] != self.matrix[j][i] for i in range(len(self.matrix)) for j in range(i)):
            raise ValueError("moments: the matrix must be symmetric.")
        return self

    def mean_of(self, statistic: dict[str, float]) -> Fraction:
        known = dict(zip(self.columns, self.mean, strict=True))
        return sum((Fraction(weight) * Fraction(known[column]) for column, weight in statistic.items()), Fraction(0))


class QuantileClipEvidence(Evidence):
    """One average, masked and clipped by quantiles; all public."""

    words: ClassVar[str] = "an average by quantile clipping"
    noise_last: ClassVar[bool] = False
    kind: Literal["quantile_clip"] = "quantile_clip"
    columns: tuple[str, ...] = Field(min_length=1, max_length=1)
    n: int = Field(ge=2)
    moments: Moments
    reads: tuple[Read, ...] = Field(min_length=1)
    mask: Positive = Field(description="sd of the noise that comes before the clip and hides the digits")
    below: Positive = Field(description="the answer's density is at least e^-below times that of a public normal law")
    above: Positive = Field(description="and at most e^above times")

    def delta(self, epsilon: float) -> float:
        return 0.0 if self._complete() and self.loss() <= epsilon else 1.0

    def loss(self) -> float:
        """The epsilon that is lost, from above."""
        return (self.below + self.above + 2 * self.lam) * COMPUTED_UP

    def describe(self) -> tuple[str, ...]:
        return (f"any two values of all that is read: loss {self.loss():.6g}, with no delta",)

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        return not clipped and (columns, n) == (self.columns, self.n)

    def statistics_read(self) -> tuple[Read, ...]:
        return self.reads

    def _complete(self) -> bool:
        """The query comes first in the moments, is not read as a secret, and varies by itself as its spacing asks."""
        named = {column for read in self.reads for column in read.coefficients}
        first = self.moments.columns[0] == self.columns[0] and named == set(self.moments.columns[1:])
        return first and self.residual >= Fraction(self.moments.spacing[0]) ** 2

    @property
    def clip(self) -> QuantileClip:
        return QuantileClip(self.below, self.above)

    @property
    def slopes(self) -> tuple[Fraction, ...]:
        """Of the query on the statistics that are read, all at once."""
        return _regression(self.moments, self.reads)[0]

    @property
    def residual(self) -> Fraction:
        """The variance that a row of the query has left, once its entries in the statistics are known."""
        return _regression(self.moments, self.reads)[1]

    @property
    def explained(self) -> Fraction:
        """The variance of a row of the query that the statistics explain."""
        return Fraction(self.moments.scale[0]) ** 2 * Fraction(self.moments.matrix[0][0]) - self.residual

    @property
    def variance(self) -> Fraction:
        """V: of the masked average, given all statistics."""
        return self.residual / self.n + Fraction(self.mask) ** 2

    @property
    def grid(self) -> QuantileGrid:
        return quantile_grid(self.clip, math.sqrt(self.variance), self.mask)

    @property
    def lam(self) -> float:
        grid = self.grid
        return (self.lattice + grid.draw_charge + rounding_charge(grid.depth, self.kurtosis)) * COMPUTED_UP

    @property
    def lattice(self) -> float:
        """The recorded query column's spacing, masked."""
        spacing = Fraction(self.moments.spacing[0])
        data = float(self.residual * self.n / spacing**2)
        mask = float((Fraction(self.mask) * self.n / spacing) ** 2)
        effective = data * mask / (data + mask) * (1 - _GRID_SHARE)
        return lattice_lambda(effective, 1) + lattice_lambda(data * COMPUTED_DOWN, 1)

    @property
    def kurtosis(self) -> float:
        """How far rounded entries make the average's law non-normal, given the statistics: |excess kurtosis|, estimated."""
        slopes = dict.fromkeys(self.moments.columns, 0.0)
        for slope, read in zip(self.slopes, self.reads, strict=True):
            for column, weight in read.coefficients.items():
                slopes[column] += float(slope) * weight
        slopes[self.columns[0]] = 1.0
        root, spacing = math.sqrt(self.residual), zip(self.moments.columns, self.moments.spacing, strict=True)
        return sum((slopes[column] * h / root) ** 4 for column, h in spacing) / (120 * self.n)

    def drawn(self, columns: Sequence[ColumnPlan], averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        """One average, decided in whole numbers; its mask is a part of that, and no other noise is added."""
        (average,) = averages
        return [quantile_clipped(self, average, told.read)]

    def error_law(self, columns: Sequence[ColumnPlan], place: int) -> ErrorLaw:
        return clip_spread(self)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column is what was counted on."""
        return kind == "gaussian" and (column,) == self.columns and scale == self.mask


@lru_cache(maxsize=64)
def _regression(moments: Moments, reads: tuple[Read, ...]) -> tuple[tuple[Fraction, ...], Fraction]:
    statistics = [{moments.columns[0]: 1.0}, *(dict(read.coefficients) for read in reads)]
    return regression(covariance_of(statistics, moments.columns, moments.scale, moments.matrix))
