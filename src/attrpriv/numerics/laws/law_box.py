"""Cases of a secret whose law is known only up to a box, and what the released average then shows of it.

    g ~ N(mean, sd^2),  F | g = a ~ N(const + slope a, residual),  mean, sd, slope, residual somewhere in a box

| name | meaning |
|---|---|
| `cases` | sets of values of g |
| `box` | where mean and sd of g can be |
| `spread(sd)` | the most revealing split of Var F into explained = slope^2 sd^2 and residual, for this sd of g |
| lam | sqrt(explained / (residual + noise variance)): all that matters of a member, besides its standardised cases |

What must never change: `spread` is the worst of the box for its sd, and grows with it. So over a cell of the box lam is
largest at the cell's largest sd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.intervals import IntervalUnion
from attrpriv.numerics.rounding import SOME_ULPS


@dataclass(frozen=True)
class Cell:
    """Means and standard deviations of g, each in a range.

    `means` and `sds` are ranges, low and high.

    >>> Cell(means=(-0.1, 0.1), sds=(1.0, 1.0)).middle
    (0.0, 1.0)
    """

    means: tuple[float, float]
    sds: tuple[float, float]

    def __post_init__(self) -> None:
        ordered = self.means[0] <= self.means[1] and 0 < self.sds[0] <= self.sds[1]
        if not (ordered and all(map(math.isfinite, (*self.means, *self.sds)))):
            raise UsageError(f"cell: needs finite ranges and positive sds. Got means {self.means}, sds {self.sds}.")

    @property
    def middle(self) -> tuple[float, float]:
        mean = self.means[0] + (self.means[1] - self.means[0]) / 2
        return mean, self.sds[0] + (self.sds[1] - self.sds[0]) / 2

    @property
    def corners(self) -> tuple[tuple[float, float], ...]:
        return tuple(dict.fromkeys((mean, sd) for mean in self.means for sd in self.sds))

    def halves(self, furthest: float) -> tuple[Cell, Cell] | None:
        """Two cells that make up this one, cut where it moves thresholds more; `furthest` is the largest |threshold|.

        None for a cell that is too small to cut.
        """
        mean, sd = self.middle
        by_mean = (self.means[1] - self.means[0]) / self.sds[0]
        # A larger sd also explains more of the released average, so its range counts even for a threshold at the mean.
        by_sd = (self.sds[1] - self.sds[0]) / self.sds[0] * (1 + furthest)
        if by_mean >= by_sd and self.means[0] < mean < self.means[1]:
            return Cell((self.means[0], mean), self.sds), Cell((mean, self.means[1]), self.sds)
        if self.sds[0] < sd < self.sds[1]:
            return Cell(self.means, (self.sds[0], sd)), Cell(self.means, (sd, self.sds[1]))
        return None


@dataclass(frozen=True)
class Spread:
    """The variance of the released average: what g explains of it, and the rest.

    `explained` is what moves with g, `residual` what does not. Made by `MovingCases.spread`.

    >>> round(Spread(explained=0.25, residual=0.75).lam(0.0), 6)
    0.57735
    """

    explained: float
    residual: float

    def lam(self, variance: float) -> float:
        """How many standard deviations of the output one of g moves it, with this much noise; rounded up."""
        if self.explained == 0:
            return 0.0
        left = self.residual + variance
        return math.sqrt(self.explained / left) * (1 + SOME_ULPS) if left > 0 else math.inf

    def need(self, lam: float) -> float:
        """The least noise variance with which `lam` is not exceeded, rounded up."""
        if self.explained == 0:
            return 0.0
        total = self.explained / lam**2 * (1 + 4 * SOME_ULPS)
        return max(0.0, total - self.residual * (1 - SOME_ULPS))


@dataclass(frozen=True)
class MovingCases:
    """See the module. `form` says what is bounded: the slope of F on g, their correlation, or F is g itself.

    `cases` are the sets of values, `box` the range of g's mean and standard deviation, `strength` the largest slope or
    correlation, `query_sds` the range of the answer's standard deviation.

    >>> from attrpriv.numerics.laws.intervals import parse_cases
    >>> box = Cell(means=(-0.1, 0.1), sds=(1.0, 1.0))
    >>> MovingCases(parse_cases(["< 0", ">= 0"]), box, "correlation", 0.5, (1.0, 1.0)).strength
    0.5
    """

    cases: tuple[IntervalUnion, ...]
    box: Cell
    form: Literal["slope", "correlation", "itself"]
    strength: float
    query_sds: tuple[float, float]

    def __post_init__(self) -> None:
        low, high = self.query_sds
        if not (0 < low <= high and math.isfinite(high)):
            raise UsageError(f"query sds: must be a finite positive range. Got {self.query_sds}.")
        if not (math.isfinite(self.strength) and self.strength >= 0):
            raise UsageError(f"strength: must be finite and at least 0. Got {self.strength}.")
        if len(self.cases) < 2:
            raise UsageError(f"cases: needs at least two sets. Got {len(self.cases)}.")

    def spread(self, sd: float) -> Spread:
        """The split of Var F that shows the most of a g with this standard deviation."""
        low, high = self.query_sds
        if self.form == "itself":
            return Spread(sd**2 * (1 + SOME_ULPS), 0.0)
        if self.form == "correlation":
            # lam grows with both, whatever the noise.
            rho = min(1.0, self.strength)
            return Spread((rho * high) ** 2 * (1 + SOME_ULPS), high**2 * (1 - rho) * (1 + rho) * (1 - SOME_ULPS))
        # lam grows with the explained part and falls with the whole; the whole is at least the explained part.
        explained = min(self.strength * sd, high) ** 2 * (1 + SOME_ULPS)
        return Spread(explained, max(0.0, low**2 * (1 - SOME_ULPS) - explained))

    def correlation(self) -> float:
        """The largest |correlation| in the box."""
        if self.form == "slope":
            return min(1.0, self.strength * self.box.sds[1] / self.query_sds[0])
        return 1.0 if self.form == "itself" else min(1.0, self.strength)

    def at(self, mean: float, sd: float) -> tuple[IntervalUnion, ...]:
        """The standardised cases of one member of the box."""
        return tuple(case.standardised(mean, sd) for case in self.cases)

    def thresholds(self, cell: Cell | None = None) -> tuple[float, float]:
        """The range of all standardised thresholds, over a cell or the whole box.

        >>> from attrpriv.numerics.laws import parse_cases
        >>> box = Cell(means=(48.0, 52.0), sds=(2.0, 2.0))
        >>> MovingCases(parse_cases(["< 50", ">= 50"]), box, "slope", 0.3, (1.0, 1.0)).thresholds()
        (-1.0000000000000009, 1.0000000000000009)
        """
        where = self.box if cell is None else cell
        ranges = [moved for case in self.cases for moved in case.end_ranges(where.means, where.sds)]
        ends = [end for moved in ranges for end in (*moved.low, *moved.high) if math.isfinite(end)]
        return min(ends), max(ends)
