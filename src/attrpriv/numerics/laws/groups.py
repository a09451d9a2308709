"""An average of a column that is normal within each category of a sensitive one, and which counts of rows must look alike.

    F = mean of n rows;   a row of category c adds a draw of N(m_c, v_c);   a rows are in the secret's categories, n - a are not

| symbol | here |
|---|---|
| n | `n`, the number of rows, public |
| a | how many rows are in the secret's categories: the secret, known to lie in [`low`, `high`] |
| pairs | (a, b) in that range at most d = `apart` apart |
| m_c, sqrt(v_c) | `members`, `rest`: stated mean and sd of each category inside and outside of the secret's set |
| t, r | `mean_tolerance` (in sds of the category, at their largest), `sd_tolerance` (relative) |
| K | `known`, how many rows an adversary may know |

Rows are independent. Given the categories of all rows F is normal. Two tables whose counts are d apart differ in the categories
of d rows, so for every theta in the box and all categories (proof: docs/theory/groups.md)

    |difference of means|      <= gap    = d/n max over i inside, j outside of |m_i - m_j| + t (sd_i + sd_j)
    smaller variance           >= floor  = least over a of (a v_in + (n - a) v_out - K max(v_in, v_out))/n^2
    difference of variances    in spread = d/n^2 [least, largest |v_i - v_j|]        (from 0 where the intervals overlap)

A release that reads the counts knows the part of the gap that the stated means make (`told`); the rest is `untold`.

v_in, v_out are the least variances inside and outside. With one category on each side and no tolerance all three are attained.

What must never change: the numbers are exact fractions until they are rounded, each to its private side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.rounding import PSD_SLACK, SUMMED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

MeanSd = tuple[float, float]
# Beyond this the squares leave the range of floats.
_LARGEST = 1e100


@dataclass(frozen=True)
class GroupCase:
    """Everything that the promise about one average depends on; plain numbers, so that a certificate can hold it.

    >>> case = GroupCase(n=100, low=25, high=40, apart=15, members=((36.0, 11.0),), rest=((42.0, 12.0),))
    >>> round(case.gap, 6), round(case.least_variance, 6), [round(end, 6) for end in case.spread], case.exact
    (0.9, 1.348, [0.0345, 0.0345], True)
    """

    n: int
    low: int
    high: int
    apart: int
    members: tuple[MeanSd, ...]
    rest: tuple[MeanSd, ...]
    mean_tolerance: float = 0.0
    sd_tolerance: float = 0.0
    known: int = 0

    def __post_init__(self) -> None:
        if not (self.n >= 1 and 0 <= self.low <= self.high <= self.n):
            raise UsageError(f"counts: must be in order between 0 and n. Got [{self.low}, {self.high}] of {self.n}.")
        if not 1 <= self.apart <= self.high - self.low:
            raise UsageError(f"apart: must be from 1 to {self.high - self.low}. Got {self.apart}.")
        if not 0 <= self.known < self.n:
            raise UsageError(f"known: must be a number of rows below {self.n}. Got {self.known}.")
        if not (math.isfinite(self.mean_tolerance) and 0 <= self.mean_tolerance < _LARGEST and 0 <= self.sd_tolerance < 1):
            raise UsageError(
                f"tolerance: needs mean at least 0 and sd in [0, 1). Got {self.mean_tolerance}, {self.sd_tolerance}."
            )
        if not (self.members and self.rest):
            raise UsageError("categories: needs one or more inside and outside of the secret's set.")
        for mean, sd in (*self.members, *self.rest):
            if not (abs(mean) < _LARGEST and 1 / _LARGEST < sd < _LARGEST):
                raise UsageError(f"categories: needs finite means and positive sds. Got {mean}, {sd}.")

    @property
    def exact(self) -> bool:
        """Whether the bounds are attained, so that no smaller noise of this kind would do."""
        stated = self.mean_tolerance == self.sd_tolerance == 0
        return stated and len(self.members) == len(self.rest) == 1 and self.known == 0

    @cached_property
    def gap(self) -> float:
        """The largest difference of two means that must look alike, from above."""
        reach = Fraction(self.mean_tolerance) * (1 + Fraction(self.sd_tolerance))
        widest = max(
            abs(Fraction(m) - Fraction(o)) + reach * (Fraction(s) + Fraction(t)) for m, s in self.members for o, t in self.rest
        )
        return upward(widest * self.apart / self.n)

    @cached_property
    def told(self) -> float:
        """What the stated means alone tell of `gap`, from above: what a release that reads the counts can take back."""
        return upward(self._told(self.apart))

    @cached_property
    def untold(self) -> float:
        """What the tolerance of means adds to it, from above: nobody can take it back."""
        reach = Fraction(self.mean_tolerance) * (1 + Fraction(self.sd_tolerance))
        widest = max(Fraction(s) + Fraction(t) for _, s in self.members for _, t in self.rest)
        return upward(reach * widest * self.apart / self.n)

    @cached_property
    def taken_amiss(self) -> float:
        """What is taken back for rows whose values an adversary knows, so that they move nothing by themselves; from above."""
        return upward(self._told(min(self.apart, self.known)))

    def _told(self, rows: int) -> Fraction:
        return max(abs(Fraction(m) - Fraction(o)) for m, _ in self.members for o, _ in self.rest) * rows / self.n

    @cached_property
    def least_variance(self) -> float:
        """The variance that F surely has by itself, from below; a refusal where known rows leave none."""
        inside, outside = self._least(self.members), self._least(self.rest)
        least = min(a * inside + (self.n - a) * outside for a in (self.low, self.high)) - self.known * max(inside, outside)
        return self._left(least)

    @cached_property
    def spread(self) -> tuple[float, float]:
        """Between which ends the difference of two variances lies, outward."""
        low, high = self._row_spread
        unit = Fraction(self.apart, self.n**2)
        return downward(low * unit), upward(high * unit)

    @cached_property
    def most_variance(self) -> float:
        """The largest variance that F can have by itself, from above; what equalising brings every table to."""
        inside, outside = self._most(self.members), self._most(self.rest)
        most = max(a * inside + (self.n - a) * outside for a in (self.low, self.high))
        return upward(most / self.n**2)

    @property
    def equal_variance(self) -> float:
        """What an adversary who knows rows is left with after equalising, from below."""
        largest = max(self._most(self.members), self._most(self.rest))
        return self._left(Fraction(self.most_variance) * self.n**2 - self.known * largest)

    @property
    def equal_spread(self) -> float:
        """How far variances can differ after equalising, from above: a row whose value alone is known may be of either kind."""
        return upward(self._row_spread[1] * min(self.apart, self.known) / self.n**2)

    @cached_property
    def stated(self) -> GroupCase:
        """The same with the stated sds as exact: by these a table's variance is made up to that of the others."""
        return replace(self, sd_tolerance=0.0)

    @cached_property
    def matched_variance(self) -> float:
        """What is left after equalising by the stated sds, from below, for true sds in the box and known rows."""
        stated = self.stated
        largest = max(stated._most(self.members), stated._most(self.rest))
        share = (1 - Fraction(self.sd_tolerance)) ** 2
        return self._left(share * Fraction(stated.most_variance) * self.n**2 - self.known * largest)

    @cached_property
    def matched_spread(self) -> float:
        """How far variances can differ after equalising by the stated sds, from above."""
        ends = [(1 - Fraction(self.sd_tolerance)) ** 2 - 1, (1 + Fraction(self.sd_tolerance)) ** 2 - 1]
        off = max(
            abs(one * Fraction(s) ** 2 - other * Fraction(t) ** 2)
            for one in ends
            for other in ends
            for _, s in self.members
            for _, t in self.rest
        )
        known = self.stated._row_spread[1] * min(self.apart, self.known)
        return upward((off * self.apart + known) / self.n**2)

    @property
    def _row_spread(self) -> tuple[Fraction, Fraction]:
        """The least and the largest |v_i - v_j| of a row inside and a row outside."""
        ends = (
            self._least(self.members) - self._most(self.rest),
            self._most(self.members) - self._least(self.rest),
        )
        low = Fraction(0) if ends[0] <= 0 <= ends[1] else min(map(abs, ends))
        return low, max(map(abs, ends))

    def _least(self, categories: tuple[MeanSd, ...]) -> Fraction:
        return (min(Fraction(sd) for _, sd in categories) * (1 - Fraction(self.sd_tolerance))) ** 2

    def _most(self, categories: tuple[MeanSd, ...]) -> Fraction:
        return (max(Fraction(sd) for _, sd in categories) * (1 + Fraction(self.sd_tolerance))) ** 2

    def _left(self, total: Fraction) -> float:
        if not total > 0:
            raise RefusedError(
                f"known_rows: an adversary who knows {self.known} of {self.n} rows may know all of the variation that noise "
                "could be spared for. Declare fewer known rows."
            ).because(Cause.PERSONS, "fewer known rows")
        return downward(total / self.n**2)


def upward(value: Fraction) -> float:
    """The least float that is at least this.

    >>> upward(Fraction(1, 10)) == 0.1, Fraction(upward(Fraction(1, 3))) >= Fraction(1, 3)
    (True, True)
    """
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def downward(value: Fraction) -> float:
    """The largest float that is at most this."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


# ----------------------------------------------------------------------------------------------------------------------------
# Several averages of columns that are jointly normal within each category of a sensitive one.
#
#     F = mean of n rows in R^k;   a row of category c adds a draw of N(m_c, S_c);   a rows are in the secret's categories
#
# | symbol | here |
# |---|---|
# | a, n, pairs | as in `numerics.laws.groups`: counts in [`low`, `high`], at most `apart` apart |
# | m_c, S_c | `members`, `rest`: mean vector and covariance matrix of each category; matrices are taken as exact |
# | t | `mean_tolerance`: each mean may be off by this many sds of its category, in every column |
#
# The difference of two means lies in the convex hull of the `shifts`: d/n (m_i - m_j) for i inside and j outside, at every
# corner of the tolerance box. What must never change: covariances are exact, so a tolerance of sds must have been refused
# before.


Vector = tuple[float, ...]
Rows = tuple[Vector, ...]
Law = tuple[Vector, Rows]

MOST_COLUMNS = 8
# More corners than this would take minutes.
MOST_SHIFTS = 1024


@dataclass(frozen=True)
class VectorCase:
    """Everything that the promise about several averages depends on; plain numbers, for a certificate to hold."""

    n: int
    low: int
    high: int
    apart: int
    members: tuple[Law, ...]
    rest: tuple[Law, ...]
    mean_tolerance: float = 0.0

    def __post_init__(self) -> None:
        if not (self.n >= 1 and 0 <= self.low < self.high <= self.n and 1 <= self.apart <= self.high - self.low):
            raise UsageError(
                f"counts: must be in order between 0 and n, and apart within them. Got [{self.low}, {self.high}] of {self.n}, "
                f"{self.apart} apart."
            )
        if not (math.isfinite(self.mean_tolerance) and self.mean_tolerance >= 0):
            raise UsageError(f"tolerance.mean: must be finite and at least 0. Got {self.mean_tolerance}.")
        if not (self.members and self.rest):
            raise UsageError("categories: needs one or more inside and outside of the secret's set.")
        if not 1 <= self.size <= MOST_COLUMNS:
            raise UsageError(f"columns: must be from 1 to {MOST_COLUMNS} asked together. Got {self.size}.")
        for law in (*self.members, *self.rest):
            _require_law(law, self.size)
        corners = 2**self.size if self.mean_tolerance else 1
        if len(self.members) * len(self.rest) * corners > MOST_SHIFTS:
            raise UsageError(
                f"columns: too many corners of the tolerance, more than {MOST_SHIFTS}. Ask for fewer columns at once."
            )

    @property
    def size(self) -> int:
        """How many averages there are."""
        return len(self.members[0][0])

    def shifts(self) -> tuple[Vector, ...]:
        """The corners of what the difference of two means can be; each coordinate is right to a relative 1e-13."""
        signs = list(itertools.product((1.0, -1.0), repeat=self.size)) if self.mean_tolerance else [(0.0,) * self.size]
        scale = self.apart / self.n * SUMMED_UP
        found: dict[Vector, None] = {}
        for member, other in itertools.product(self.members, self.rest):
            centre = [a - b for a, b in zip(member[0], other[0], strict=True)]
            reach = [self.mean_tolerance * (math.sqrt(member[1][k][k]) + math.sqrt(other[1][k][k])) for k in range(self.size)]
            for sign in signs:
                found[tuple(scale * (c + s * r * SUMMED_UP) for c, s, r in zip(centre, sign, reach, strict=True))] = None
        return tuple(found)

    def told(self) -> tuple[Vector, ...]:
        """The same by the stated means alone: what a release that reads the counts can take back."""
        return replace(self, mean_tolerance=0.0).shifts()

    def untold(self) -> tuple[Vector, ...]:
        """The corners of what the tolerance adds to it; a single zero where there is none."""
        if not self.mean_tolerance:
            return ((0.0,) * self.size,)
        scale = self.mean_tolerance * self.apart / self.n * SUMMED_UP**2
        found: dict[Vector, None] = {}
        for (_, one), (_, other) in itertools.product(self.members, self.rest):
            reach = [scale * (math.sqrt(one[k][k]) + math.sqrt(other[k][k])) for k in range(self.size)]
            for sign in itertools.product((1.0, -1.0), repeat=self.size):
                found[tuple(s * r for s, r in zip(sign, reach, strict=True))] = None
        return tuple(found)

    def own(self, members: Sequence[float], rest: Sequence[float]) -> Matrix:
        """The covariance of F for a table with these numbers of rows in each category."""
        import numpy as np

        laws = (*self.members, *self.rest)
        total = sum(
            (count * np.array(law[1], dtype=np.float64) for count, law in zip((*members, *rest), laws, strict=True)),
            np.zeros((self.size, self.size)),
        )
        return np.asarray(total / self.n**2, dtype=np.float64)


def _require_law(law: Law, size: int) -> None:
    import numpy as np

    mean, matrix = np.array(law[0], dtype=np.float64), np.array(law[1], dtype=np.float64)
    if mean.shape != (size,) or matrix.shape != (size, size) or not (np.isfinite(mean).all() and np.isfinite(matrix).all()):
        raise UsageError(f"categories: needs {size} finite means and a finite covariance matrix of that size in each.")
    sds = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    if not (sds > 0).all() or not (matrix == matrix.T).all():
        raise UsageError("categories: needs symmetric covariance matrices with positive variances.")
    if not np.linalg.eigvalsh(matrix / np.outer(sds, sds))[0] >= -PSD_SLACK:
        raise UsageError("categories: covariance matrices must be positive semidefinite. Got one that is not.")
