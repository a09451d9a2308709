r"""Laws that are written down: P(F = f | secret = a), a number or an interval for each of finitely many values f.

    F is one of `steps`;    P_a(f) in laws[a][f] = [low, high],    sum over f of P_a(f) = 1

| symbol | here |
|---|---|
| f | `steps`: whole numbers in increasing order, as far apart as they are |
| a | the places of `laws`; a and b must be indistinguishable if |a - b| <= `apart` |
| Theta | every choice of one law from each box: the law given a may be any of its box, whatever the law given b is |

Boxes are convex, so that mixtures of laws of a box are laws of that box. A law of numbers alone is divided by its sum.

    P_a(f) = (lows[f] + fill[f])/total,     0 <= fill <= caps,     sum of fill = rest             `WholeLaw`

What must never change: everything here is whole numbers, exact for the decimal fractions that were written. The largest and the
least value of a linear form over a box are attained by filling up the largest, or the least, of its coefficients first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.records import Interval01, exactly
from attrpriv.numerics.rounding import SUM_SLACK

MOST_VALUES = 100_000
MOST_NUMBERS = 1_000_000


@dataclass(frozen=True)
class WholeLaw:
    """A law, or a box of laws, in whole numbers."""

    lows: tuple[int, ...]
    caps: tuple[int, ...]
    rest: int
    total: int

    @property
    def exact(self) -> bool:
        """Whether it is a single law."""
        return self.rest == 0

    def most(self, form: Sequence[int]) -> int:
        """total times the largest value of sum_f form[f] P(f), for a form without negative numbers."""
        return self._filled(form, reverse=True)

    def least(self, form: Sequence[int]) -> int:
        """The same for the least."""
        return self._filled(form, reverse=False)

    def _filled(self, form: Sequence[int], *, reverse: bool) -> int:
        found, left = sum(map(int.__mul__, self.lows, form)), self.rest
        for k in sorted(range(len(form)), key=form.__getitem__, reverse=reverse) if left else ():
            part = min(left, self.caps[k])
            found, left = found + part * form[k], left - part
        return found

    def cumulated(self, *, most: bool) -> list[int]:
        """total times the largest (least) value of P(F <= f), for each f.

        >>> box = StatedLaws((0, 1), (((0.2, 0.4), (0.6, 0.8)), ((0.5, 0.5), (0.5, 0.5))), 1).whole()[0]
        >>> box.cumulated(most=True), box.cumulated(most=False), box.total
        ([2, 5], [1, 5], 5)
        """
        found, low, cap, caps = [], 0, 0, sum(self.caps)
        for least, room in zip(self.lows, self.caps, strict=True):
            low, cap = low + least, cap + room
            found.append(low + (min(cap, self.rest) if most else max(0, self.rest - (caps - cap))))
        return found


@dataclass(frozen=True)
class StatedLaws:
    """The laws of a statistic given each value of a secret.

    >>> flu = StatedLaws((0, 1, 2), (((0.5, 0.5), (0.5, 0.5), (0, 0)), ((0, 0), (0.5, 0.5), (0.5, 0.5))), 1)
    >>> flu.exact, flu.reach
    (True, 2)
    """

    steps: tuple[int, ...]
    laws: tuple[tuple[Interval01, ...], ...]
    apart: int

    def __post_init__(self) -> None:
        if not self.steps or any(a >= b for a, b in zip(self.steps, self.steps[1:], strict=False)):
            raise UsageError(f"values: must be whole numbers in increasing order. Got {list(self.steps)[:8]}.")
        if len(self.laws) < 2 or not 1 <= self.apart < len(self.laws):
            raise UsageError(f"laws: must be two or more, of which some must be indistinguishable. Got {len(self.laws)}.")
        if len(self.steps) > MOST_VALUES or len(self.steps) * len(self.laws) > MOST_NUMBERS:
            raise UsageError(f"laws: must be at most {MOST_NUMBERS:,} numbers. Got {len(self.steps) * len(self.laws):,}.")
        for k, law in enumerate(self.laws):
            if len(law) != len(self.steps):
                raise UsageError(f"laws: must have one probability for each of {len(self.steps)} values. Got {len(law)}.")
            require_box(f"law {k + 1}", law)

    @property
    def exact(self) -> bool:
        """Whether each law is a single one."""
        return all(low == high for law in self.laws for low, high in law)

    @property
    def reach(self) -> int:
        """How far two values can be apart."""
        return self.steps[-1] - self.steps[0]

    def whole(self) -> tuple[WholeLaw, ...]:
        """The laws in whole numbers."""
        return _whole(self)

    def middle(self) -> tuple[tuple[Fraction, ...], ...]:
        """One law of each box: for expected errors."""
        return tuple(_middle(law) for law in self.whole())

    def widened(self, off: float) -> StatedLaws:
        """The same, where every probability may be off by this share of itself, beyond its interval."""
        share = exactly(off)
        laws = [[(exactly(p) * (1 - share), min(Fraction(1), exactly(q) * (1 + share))) for p, q in law] for law in self.laws]
        return StatedLaws(self.steps, tuple(map(tuple, laws)), self.apart)


def require_box(name: str, law: Sequence[Interval01]) -> None:
    """Intervals in [0, 1] that a law can have; numbers must sum to 1 up to rounding."""
    for low, high in law:
        if not (math.isfinite(low) and math.isfinite(high) and 0 <= low <= high <= 1):
            raise UsageError(f"{name}: probabilities must be between 0 and 1. Got [{float(low):g}, {float(high):g}].")
    least, most = (sum((exactly(pair[end]) for pair in law), Fraction(0)) for end in (0, 1))
    slack = Fraction(SUM_SLACK) if all(low == high for low, high in law) else 0
    if least > 1 + slack or most < 1 - slack:
        raise UsageError(
            f"{name}: probabilities must be able to sum to 1. Got sums from {float(least):.12g} to {float(most):.12g}."
        )


@lru_cache(maxsize=16)
def _whole(stated: StatedLaws) -> tuple[WholeLaw, ...]:
    return tuple(_whole_law(law) for law in stated.laws)


def _whole_law(law: Sequence[Interval01]) -> WholeLaw:
    lows, highs = ([exactly(pair[end]) for pair in law] for end in (0, 1))
    common = math.lcm(*(number.denominator for number in (*lows, *highs)))
    low, high = ([int(number * common) for number in numbers] for numbers in (lows, highs))
    if low == high:
        return WholeLaw(tuple(low), (0,) * len(low), 0, sum(low))
    caps = tuple(b - a for a, b in zip(low, high, strict=True))
    return WholeLaw(tuple(low), caps, common - sum(low), common)


def _middle(law: WholeLaw) -> tuple[Fraction, ...]:
    """Each probability as far up its interval as the others are."""
    share = Fraction(law.rest, sum(law.caps)) if law.rest else Fraction(0)
    return tuple((low + share * cap) / law.total for low, cap in zip(law.lows, law.caps, strict=True))
