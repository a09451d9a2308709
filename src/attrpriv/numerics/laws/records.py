r"""What one row adds to a counted statistic, and which counts of rows must be indistinguishable.

    F = sum over rows of a whole number;   a row in the secret's category adds a draw of `member`, any other a draw of `rest`

| symbol | here |
|---|---|
| n | `CountPairs.n`, the number of rows, public |
| a | how many rows are in the secret's category: the secret, known to lie in [low, high] |
| pairs | (a, b) in that range at most `apart` apart |
| P(value) | an interval [low, high] for each value; a number is an interval of width 0, a fraction where no float is it |

A float stands for the decimal fraction that writes it (`exactly`): 0.9999999999999999 leaves 1e-16, its bits 1.1e-16.

Rows are independent given their category. Theta is the box of all laws whose probabilities lie in the intervals (and sum to 1),
the same `member` and the same `rest` for all rows. The number of events among n rows has values (0, 1).

A population's share phi in [low, high] is the same thing with other words: a row of the population is a draw of
phi member + (1 - phi) rest, hence a mixture of the laws at the two ends, so F given phi is a mixture over k of "k rows drawn at
the high end, n - k at the low end". By joint convexity it is enough to hide k in 0..n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import COMPUTED_UP, SOLVED_UP, SUM_SLACK

# A probability is the float that writes it, or a fraction where none does: 5/13, and what 1e-20 leaves of 1.
Number = float | Fraction
Interval01 = tuple[Number, Number]


def exactly(value: Number) -> Fraction:
    """A number as the decimal fraction it is written as.

    >>> exactly(0.1), 1 - exactly(0.9999999999999999)
    (Fraction(1, 10), Fraction(1, 10000000000000000))
    """
    return value if isinstance(value, Fraction) else Fraction(repr(float(value)))


def whole_between(low: float, high: float, scale: int | Fraction) -> tuple[int, int]:
    """The first and the last whole number in a range of floats times `scale`, read outward.

    An end that was computed, as 2/3 is, lies a little inside or outside of the number that was meant. The next float beyond it
    is beyond that number too, so nothing that was meant is left out.

    >>> whole_between(0, 2 / 3, 3), whole_between(0.29, 0.58, 100)
    ((0, 2), (29, 58))
    """
    return first_whole(low, scale), last_whole(high, scale)


def first_whole(low: float, scale: int | Fraction) -> int:
    return math.ceil(Fraction(math.nextafter(low, -math.inf)) * scale)


def last_whole(high: float, scale: int | Fraction) -> int:
    return math.floor(Fraction(math.nextafter(high, math.inf)) * scale)


@dataclass(frozen=True)
class RecordLaws:
    """The law of one row's contribution, in the secret's category and outside of it.

    `values` are what a row may count; `member` and `rest` have an interval (least, largest probability) for each of them.

    >>> RecordLaws.event(0.4, 0.6).exact
    True
    """

    values: tuple[int, ...]
    member: tuple[Interval01, ...]
    rest: tuple[Interval01, ...]

    def __post_init__(self) -> None:
        if len(self.values) < 2 or any(a >= b for a, b in zip(self.values, self.values[1:], strict=False)):
            raise UsageError(f"values: must be two or more whole numbers in increasing order. Got {list(self.values)}.")
        for name, law in (("member", self.member), ("rest", self.rest)):
            _require_law(name, law, len(self.values))

    @staticmethod
    def event(member: Number | Interval01, rest: Number | Interval01) -> RecordLaws:
        """A row counts 1 with this probability and 0 otherwise."""
        return RecordLaws((0, 1), _both(member), _both(rest))

    @property
    def exact(self) -> bool:
        """Whether Theta is a single pair of laws."""
        return all(low == high for low, high in (*self.member, *self.rest))

    @property
    def binary(self) -> bool:
        """Whether a row adds 0 or 1."""
        return self.values == (0, 1)

    @property
    def hull(self) -> Interval01:
        """Of an event: the least and the largest probability that any row can have."""
        if not self.binary:
            raise UsageError("hull: only an event has one probability a row.")
        return min(self.member[1][0], self.rest[1][0]), max(self.member[1][1], self.rest[1][1])

    @property
    def width(self) -> int:
        """How far one row can move the statistic."""
        return self.values[-1] - self.values[0]


@dataclass(frozen=True)
class CountPairs:
    """Counts of `n` rows from `low` to `high`: any two that differ by at most `apart` must be indistinguishable.

    >>> CountPairs(100, 20, 40, 5).apart, CountPairs.all_of(4)
    (5, CountPairs(n=4, low=0, high=4, apart=4))
    """

    n: int
    low: int
    high: int
    apart: int

    def __post_init__(self) -> None:
        if not (self.n >= 1 and 0 <= self.low <= self.high <= self.n):
            raise UsageError(f"counts: must be in order between 0 and n. Got [{self.low}, {self.high}] of {self.n}.")
        if not 1 <= self.apart <= self.high - self.low:
            raise UsageError(f"apart: must be from 1 to {self.high - self.low}. Got {self.apart}.")

    @staticmethod
    def all_of(n: int) -> CountPairs:
        """Every two counts of n rows."""
        return CountPairs(n, 0, n, n)


def _both(p: Number | Interval01) -> tuple[Interval01, Interval01]:
    low, high = p if isinstance(p, tuple) else (p, p)
    return (1 - high, 1 - low), (low, high)


def _require_law(name: str, law: Sequence[Interval01], size: int) -> None:
    if len(law) != size:
        raise UsageError(f"{name}: must have one probability for each of {size} values. Got {len(law)}.")
    for low, high in law:
        if not (math.isfinite(low) and math.isfinite(high) and 0 <= low <= high <= 1):
            raise UsageError(f"{name}: probabilities must be intervals in [0, 1]. Got [{low}, {high}].")
    if math.fsum(low for low, _ in law) > 1 + SUM_SLACK or math.fsum(high for _, high in law) < 1 - SUM_SLACK:
        total = math.fsum(low for low, _ in law), math.fsum(high for _, high in law)
        raise UsageError(f"{name}: probabilities must be able to sum to 1. Got sums from {total[0]:.12g} to {total[1]:.12g}.")


# ----------------------------------------------------------------------------------------------------------------------------
# Laws of rows whose probabilities are off by a share of themselves, beyond their intervals.
#
# *A mass that moves by a share x.* If P' <= (1 + x) P and Q' >= (1 - x) Q at every output, then with s = log (1 + x)/(1 - x)
#
#     P'(T) - e^(eps + s) Q'(T)  <=  (1 + x) (P(T) - e^eps Q(T)),      so H_(eps + s)(P' || Q') <= (1 + x) H_eps(P || Q).
#
# The same with n rows of which each moves by a share bounds every kernel, whatever it reads (`moved`). What must never change:
# what is impossible stays so.


def widened(records: RecordLaws, off: float) -> RecordLaws:
    """Every interval wider by a share of its ends; a probability of 0 stays 0."""

    def wide(law: Sequence[Interval01]) -> tuple[Interval01, ...]:
        return tuple((float(low) * (1 - off), min(1.0, float(high) * (1 + off))) for low, high in law)

    if not off:
        return records
    if records.binary:  # of an event, its probability is off; that of its complement follows
        (_, p), (_, q) = records.member, records.rest
        return RecordLaws.event(wide((p,))[0], wide((q,))[0])
    return RecordLaws(records.values, wide(records.member), wide(records.rest))


def moved(records: RecordLaws, pairs: CountPairs, off: float) -> float:
    """Twice the largest change of log P(F = f | a) where each probability of an exact law is off by a share of itself."""
    steps = []
    wider = widened(records, off)
    for stated, wide in ((records.member, wider.member), (records.rest, wider.rest)):
        steps.append(max(_log_change(p, low, high) for (p, _), (low, high) in zip(stated, wide, strict=True)))
    ends = ((pairs.low, pairs.n - pairs.low), (pairs.high, pairs.n - pairs.high))
    # No row of a kind adds nothing, however far one would move.
    changes = [math.fsum(rows * step for rows, step in zip(end, steps, strict=True) if rows) for end in ends]
    return 2 * max(changes) * SOLVED_UP


def _log_change(p: Number, low: Number, high: Number) -> float:
    """An impossible value stays impossible."""
    if p == 0:
        return 0.0 if high == 0 else math.inf
    return math.inf if low <= 0 else max(math.log(high / p), math.log(p / low)) * COMPUTED_UP


def log_change(off: float) -> float:
    """log (1 + x)/(1 - x) for a share x, from above."""
    return (math.log1p(off) - math.log1p(-off)) * COMPUTED_UP
