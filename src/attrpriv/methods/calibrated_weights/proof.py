"""The evidence of calibrated weights: how likely a release fails, given each secret (docs/theory/calibrated-weights.md).

Given the sensitive columns, a release that does not fail has the law N(a0'b, Q S + masks^2), whatever these columns are; and
whether it fails is the only thing that they decide. So two values of a secret are told apart by no more than the chance of
failure, which is largest at a corner of the secret's range and at the lower bound of the sensitive columns' covariance:

    D = n max over corners of (C t0 - gamma)' (C low C')^-1 (C t0 - gamma)          `forms` C, `ranges` of gamma
    L = n max over corners of (t0 - mu)' low^-1 (t0 - mu)                           `reach` of each |t0 - mu|

What must never change: D and L are computed in fractions from the stored numbers, and `calibrated_weights.proof` rounds
the chance up; the released columns are not among the sensitive ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from attrpriv.errors import CertificateError, UsageError
from attrpriv.frozen import Finite, FrozenModel, NonNegative, Positive
from attrpriv.methods.base.accuracy import BY_FORMULA, Profile
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Charged
from attrpriv.methods.calibrated_weights.draw import weighted_averages
from attrpriv.numerics.laws.chi_squared import lower_tail_upper, lower_tails_upper, upper_tail_upper
from attrpriv.numerics.rounding import COMPUTED_UP
from attrpriv.numerics.search import largest_private

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
    told_by: ClassVar[Profile] = BY_FORMULA
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


# ----------------------------------------------------------------------------------------------------------------------------
# The squared length Q of calibrated weights, and the chance that it is not enough (docs/theory/calibrated-weights.md).
#
# With A = [1, X] the constant and p sensitive columns of n rows, a0 = (1, t0) and q = a0' (A'A)^-1 a0, a release fails where
# q > Q. For Gaussian rows and k secret statistics C xbar that are fixed at gamma,
#
#     n q - 1  =  [ D + chi'2_(p-k)(L) ] / chi2_(n-p),     D = n (C t0 - gamma)' (C Sigma C')^-1 (C t0 - gamma)
#
# with independent numerator and denominator, L <= n (t0 - mu)' Sigma^-1 (t0 - mu). Both D and L only grow when a lower bound
# takes the place of Sigma. The noncentral law is replaced by that of (sqrt L + chi_(p-k))^2, which is never smaller.
#
# | symbol | here |
# |---|---|
# | D, L | `Failure.distance`, `Failure.wander` |
# | Q | `bound`, above 1/n |
#
# k = p:  P(chi2_(n-p) < D/(nQ - 1)).  k < p:  the mean of that over the numerator, by steps of its law, each taken at its
# end.
#
# What must never change: `failure_upper` is at least the truth, and `least_bound` returns a Q for which it was evaluated.


_STEPS = 160
# Where the law of what is not fixed has less than about e^-100 left.
_FAR = 260.0
# Q is found to this many bits.
_BITS = 26
_UP = 1 + 2.0**-50


@dataclass(frozen=True)
class Failure:
    """One secret's worst case: n rows, p sensitive columns of which k statistics are fixed, at distance D; and L."""

    rows: int
    columns: int
    fixed: int
    distance: float
    wander: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.fixed <= self.columns < self.rows:
            raise UsageError(f"columns: needs 1 <= fixed <= columns < rows. Got {self.fixed}, {self.columns}, {self.rows}.")
        if not (math.isfinite(self.distance) and self.distance >= 0 and math.isfinite(self.wander) and self.wander >= 0):
            raise UsageError(f"distance, wander: must be finite and at least 0. Got {self.distance}, {self.wander}.")


def failure_upper(failure: Failure, bound: float) -> float:
    """At least P(q > bound) in this case.

    >>> failure_upper(Failure(rows=10_000, columns=1, fixed=1, distance=9e4), 1.0635e-3) < 1e-6
    True
    """
    excess = _excess(failure.rows, bound)
    freedom = failure.rows - failure.columns
    if failure.fixed == failure.columns:
        return lower_tail_upper(freedom, failure.distance / excess * _UP)
    return _averaged(failure, excess, freedom)


def _excess(rows: int, bound: float) -> float:
    """nQ - 1, from below."""
    if not (math.isfinite(bound) and bound > 0 and rows * Fraction(bound) > 1):
        raise UsageError("bound: must be finite and above 1/rows.")
    return float(rows * Fraction(bound) - 1) * (1 - 2.0**-50)


def _averaged(failure: Failure, excess: float, freedom: int) -> float:
    """The mean of the lower tail over (sqrt L + chi)^2: with U_i at least the tail at the i-th point and S_i at least the law's
    upper tail there, it is at most U_1 + sum of (U_(i+1) - U_i) S_i, and 1 beyond the last point."""
    import numpy as np

    loose = failure.columns - failure.fixed
    # From here on the tail is taken as 1 anyway.
    certain = max(0.0, math.sqrt(max(0.0, excess * freedom - failure.distance)) - math.sqrt(failure.wander)) ** 2
    points = np.linspace(0.0, min(_FAR, certain), _STEPS + 1)
    reached = failure.distance + (math.sqrt(failure.wander) + np.sqrt(points)) ** 2 * _UP
    below = np.maximum.accumulate(lower_tails_upper(freedom, reached / excess * _UP))
    above = np.minimum.accumulate([upper_tail_upper(loose, float(point)) for point in points])
    steps = float(np.sum(np.diff(below) * above[:-1]))
    return min(1.0, (float(below[0]) + steps + (1 - float(below[-1])) * float(above[-1])) * COMPUTED_UP)


def least_bound(failures: Sequence[Failure], delta: float) -> float:
    """The least Q, to 26 bits and from above, with which every case fails with probability at most delta.

    >>> round(least_bound([Failure(rows=10_000, columns=1, fixed=1, distance=9e4)], 1e-6), 7)
    0.0010635
    """
    if not 0 < delta < 1:
        raise UsageError(f"delta: must be above 0 and below 1. Got {delta}.")
    if not failures or len({failure.rows for failure in failures}) != 1:
        raise UsageError("failures: must be one or more, of the same number of rows.")
    cases, rows = tuple(dict.fromkeys(failures)), failures[0].rows
    room = largest_private(lambda x: _enough(cases, rows, _coarse(x), delta), start=_start(cases))
    return _bound(rows, _coarse(room))


def _start(cases: Sequence[Failure]) -> float:
    """Somewhere near: 1/(nQ - 1) where numerator and denominator are at their means."""
    most = max(case.distance + case.wander + case.columns - case.fixed for case in cases)
    return _coarse((cases[0].rows - cases[0].columns) / max(most, 1e-6))


@lru_cache(maxsize=4096)
def _enough(cases: tuple[Failure, ...], rows: int, room: float, delta: float) -> bool:
    return all(failure_upper(case, _bound(rows, room)) <= delta for case in cases)


def _coarse(x: float) -> float:
    """Rounded down to a few bits, so that the search ends early."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(math.floor(mantissa * 2**_BITS), exponent - _BITS)


def _bound(rows: int, room: float) -> float:
    """The float next above 1/n + 1/(n room)."""
    return math.nextafter(float((1 + 1 / Fraction(room)) / rows), math.inf)
