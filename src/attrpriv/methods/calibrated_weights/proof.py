"""The evidence of calibrated weights: how likely a release fails, given each secret (docs/theory/calibrated-weights.md).

Given the sensitive columns, a release that does not fail has the law N(a0'b, Q S + masks^2), whatever these columns are; and
whether it fails is the only thing that they decide. So two values of a secret are told apart by no more than the chance of
failure, which is largest at a corner of the secret's range and at the lower bound of the sensitive columns' covariance:

    D = n max over corners of (C t0 - gamma)' (C low C')^-1 (C t0 - gamma)          `forms` C, `ranges` of gamma
    L = n max over corners of (t0 - mu)' low^-1 (t0 - mu)                           `reach` of each |t0 - mu|

What must never change: D and L are computed in fractions from the stored numbers, and `calibrated_weights.length` rounds
the chance up; the released columns are not among the sensitive ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from attrpriv.errors import CertificateError
from attrpriv.frozen import Finite, FrozenModel, NonNegative, Positive
from attrpriv.methods.base.charges import Charged
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.calibrated_weights.draw import weighted_averages
from attrpriv.methods.calibrated_weights.length import Failure, failure_upper
from attrpriv.numerics.rounding import COMPUTED_UP

Vector = tuple[Finite, ...]
# Corners of a range are looked at one by one.
MOST_JOINT = 8
# More rows than there are columns, for the direction to be drawn as exactly as is counted on.
LEAST_REST = 10
# What the direction's own inexactness adds, in units of sqrt(nQ) k (noise.direction): 2^-44 / sqrt(2 pi).
_DIRECTION = 2.0**-44 / math.sqrt(2 * math.pi)


class WeightedColumn(FrozenModel):
    """A column and the public grid on which it is read."""

    column: str
    centre: Finite
    step: Positive
    fill: Finite | None = Field(default=None, description="public value for missing entries")


class WeightsCheck(FrozenModel):
    """One secret under one member of Theta."""

    secret: str
    theta: int
    forms: tuple[Vector, ...] = Field(min_length=1, description="the secret's means, in terms of the sensitive columns")
    ranges: tuple[tuple[Finite, Finite], ...] = Field(min_length=1, description="the values of each that must look alike")
    low: tuple[Vector, ...] = Field(min_length=1, description="a lower bound on the sensitive columns' covariance")
    reach: tuple[NonNegative, ...] = Field(description="how far each sensitive column's mean may be from the target")

    def failure(self, rows: int, target: Sequence[float]) -> Failure:
        """The law of q in the worst case, with D and L rounded up."""
        p = len(self.low)
        shapes = [self.low, self.forms, (self.reach,), (tuple(target),)]
        same = all(len(row) == p for rows_ in shapes for row in rows_)
        if not (same and len(self.ranges) == len(self.forms) <= MOST_JOINT):
            raise CertificateError("certificate: the numbers of a check must belong together.")
        low, forms = _fractions(self.low), _fractions(self.forms)
        at = [sum(c * Fraction(t) for c, t in zip(form, target, strict=True)) for form in forms]
        fixed = [[_form(low, left, right) for right in forms] for left in forms]
        corners = itertools.product(*self.ranges)
        distance = max(_squared(fixed, [t - Fraction(g) for t, g in zip(at, corner, strict=True)]) for corner in corners)
        signs = itertools.product(*((-x, x) if x else (x,) for x in map(Fraction, self.reach))) if p > len(forms) else ()
        wander = max((_squared(low, corner) for corner in signs), default=Fraction(0))
        return Failure(rows, p, len(forms), _up(rows * distance), _up(rows * wander))


class WeightsEvidence(Charged):
    """Weights of squared length `bound` that give each sensitive column its target, and a mask on each average."""

    words: ClassVar[str] = "a release by calibrated weights"
    weighs: ClassVar[bool] = True
    kind: Literal["calibrated_weights"] = "calibrated_weights"
    rows: Annotated[int, Field(ge=3)]
    columns: tuple[WeightedColumn, ...] = Field(min_length=1)
    sensitive: tuple[WeightedColumn, ...] = Field(min_length=1)
    target: Vector = Field(min_length=1, description="t0, the mean of each sensitive column for which the answers speak")
    bound: Positive = Field(description="Q, the squared length of the weights")
    masks: tuple[Positive, ...] = Field(description="standard deviation of the noise on each released average")
    checks: tuple[WeightsCheck, ...] = Field(min_length=1)

    def delta(self, epsilon: float) -> float:
        """The delta reached at `epsilon`, from above: that of the least epsilon which the charges need, next to 0."""
        names = [column.column for column in (*self.columns, *self.sensitive)]
        enough = len(self.masks) == len(self.columns) and self.rows > len(names) + LEAST_REST
        least = 2 * self.lam * COMPUTED_UP
        if not epsilon >= least or len(set(names)) != len(names) or not enough:
            return 1.0
        inexact = self.direction_eta() * (1 + math.exp(least))
        return (self.charged(self.failing(), least) + inexact) * COMPUTED_UP

    def describe(self) -> tuple[str, ...]:
        return (f"nothing is answered, whatever the secrets are, with probability {self.failing():.6g} at most",)

    def failing(self) -> float:
        """The largest chance of the failure event, over secrets, their values and Theta, from above."""
        cases = dict.fromkeys(check.failure(self.rows, self.target) for check in self.checks)
        return max(failure_upper(case, self.bound) for case in cases)

    def direction_eta(self) -> float:
        """What the released law is off, in total variation, because the direction is drawn with finitely many digits."""
        return direction_eta(self.rows, self.bound, len(self.columns))

    def gram_columns(self) -> tuple[tuple[str, float, float, float | None], ...]:
        return tuple((one.column, one.centre, one.step, one.fill) for one in (*self.sensitive, *self.columns))

    def weighted(
        self, columns: Sequence[ColumnPlan], rows: int, sums: Sequence[int], products: Sequence[Sequence[int]]
    ) -> dict[str, Fraction] | None:
        read = [(part.column, part.fill, part.clip) for part in columns]
        return weighted_averages(self, read, rows, sums, products)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column is the mask that was counted on."""
        own = {one.column: mask for one, mask in zip(self.columns, self.masks, strict=True)}
        return kind == "gaussian" and own.get(column) == scale


def direction_eta(rows: int, bound: float, columns: int) -> float:
    return math.sqrt(rows * bound) * columns * _DIRECTION * COMPUTED_UP


def _fractions(matrix: Sequence[Sequence[float]]) -> list[list[Fraction]]:
    return [[Fraction(x) for x in row] for row in matrix]


def _form(matrix: Sequence[Sequence[Fraction]], left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((a * m * b for a, row in zip(left, matrix, strict=True) for m, b in zip(row, right, strict=True)), Fraction(0))


def _squared(matrix: Sequence[Sequence[Fraction]], d: Sequence[Fraction]) -> Fraction:
    """d' matrix^-1 d, exactly, for a symmetric positive definite matrix; CertificateError for any other."""
    rows = [[*row, x] for row, x in zip(matrix, d, strict=True)]
    total = Fraction(0)
    for k in range(len(rows)):
        pivot = rows[k][k]
        if not pivot > 0 or any(matrix[k][j] != matrix[j][k] for j in range(k)):
            raise CertificateError("certificate: a lower bound on a covariance must be symmetric and positive definite.")
        total += rows[k][-1] ** 2 / pivot
        for below in rows[k + 1 :]:
            factor = below[k] / pivot
            below[k:] = [x - factor * y for x, y in zip(below[k:], rows[k][k:], strict=True)]
    return total


def _up(value: Fraction) -> float:
    return math.nextafter(float(value), math.inf)
