"""Two shares of a population: how far apart their tables are is left to chance, and so is how easily they are told apart.

Tables of the shares p < q are drawn row by row, such that a row is inside under q whenever it is under p. Their counts then
differ in D rows, D ~ Bin(n, q - p). If all tables whose counts differ by at most d are (eps, U(d))-close, U nondecreasing, then
by joint convexity the two populations are (eps, E U(D))-close. For two other shares of the range D is smaller in law, and so is
E U(D): the ends of the range are the worst.

    E U(D)  =  U(d_1) + sum over k of (U(d_k) - U(d_k-1)) P(D > d_k-1),      d_1 < d_2 < .. up to the largest d of the case

What must never change: U is made nondecreasing first; chances are rounded up; tables further apart, or outside of the range of
counts, are charged in full elsewhere (`numerics.calibration.groups.population_tail`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from attrpriv.numerics.laws.binomial import binomial_above
from attrpriv.numerics.rounding import COMPUTED_UP

_STEPS = 10


@dataclass(frozen=True)
class Between:
    """In how many of n rows two coupled tables differ: Bin(n, width)."""

    n: int
    width: float

    def above(self, count: int) -> float:
        """P(D > count), from above."""
        return 1.0 if count < 0 else min(1.0, binomial_above(self.n, self.width, count) * COMPUTED_UP)

    def marks(self, apart: int) -> tuple[int, ...]:
        """Distances to look at, up to `apart`, where D is likely to be."""
        mean, sd = self.n * self.width, math.sqrt(self.n * self.width)
        start = max(1, min(apart, math.floor(mean - 2 * sd)))
        found = {start + round((apart - start) * k / _STEPS) for k in range(_STEPS + 1)}
        return tuple(sorted(found))


def coupled_upper(between: Between | None, uppers: Iterable[tuple[int, float]]) -> float:
    """E U(D) from (d, U(d)) in order of d; without a population the largest U."""
    total, last, before = 0.0, 0.0, -1
    for distance, upper in uppers:
        rise = max(0.0, upper - last)
        total += rise * (1.0 if between is None else between.above(before))
        last, before = max(last, upper), distance
    return min(1.0, total * COMPUTED_UP)
