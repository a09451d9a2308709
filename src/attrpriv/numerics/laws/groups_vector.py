"""Several averages of columns that are jointly normal within each category of a sensitive one.

    F = mean of n rows in R^k;   a row of category c adds a draw of N(m_c, S_c);   a rows are in the secret's categories

| symbol | here |
|---|---|
| a, n, pairs | as in `numerics.laws.groups`: counts in [`low`, `high`], at most `apart` apart |
| m_c, S_c | `members`, `rest`: mean vector and covariance matrix of each category; matrices are taken as exact |
| t | `mean_tolerance`: each mean may be off by this many sds of its category, in every column |

The difference of two means lies in the convex hull of the `shifts`: d/n (m_i - m_j) for i inside and j outside, at every corner
of the tolerance box. What must never change: covariances are exact, so a tolerance of sds must have been refused before.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import PSD_SLACK, SUMMED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

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
