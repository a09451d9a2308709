r"""Sets of counts ("fewer than 100 of the rows, or at least 100"): the exact law of an answer given which set holds the count.

    F given "count in U"  =  sum over a in U of w_a law(F | a) / sum of w_a,      w_a = P(Bin(n, s) = a)

| symbol | here |
|---|---|
| n, s | `n` rows; each is in the secret's category with probability `share`, independently of the others |
| U | one case: runs of whole counts, first and last of each |
| law(F \| a) | a draws of `member` and n - a of `rest`; both must be single laws (`RecordLaws.exact`) |

With M, R the two laws and * their convolution, sum_a w_a M^a R^(n-a) is a form in M and R. By Horner's rule it takes one
convolution with a single row for each a: H <- M * H + w_a R^k, from the largest a down. All terms are positive, so the relative
error of a mass grows by a few units of rounding with each row. Rows that all counts of a window have in common are convolved at
once. Weights are relative to the largest of the case's own, from logarithms summed outwards from the mode of Bin(n, s): a case
of probability 1e-300 is nearly as accurate as any other.

What must never change: `case_laws` keeps the promise of `LatticeLaw`, relative to each case's own probability. The share is
taken as the exact number it is.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum, record_sum
from attrpriv.numerics.laws.lattice_law import SMALLEST, up
from attrpriv.numerics.laws.records import Interval01, Number, RecordLaws
from attrpriv.numerics.rounding import SOLVED_UP, UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Run = tuple[int, int]
# Products that one law may take, a few seconds: for events 32,000 counts of a window, or as many rows for the whole law.
MOST_WORK = 2**31
_MOST_ROWS = 10**7
# What underflows is off by no more than this, even where denormal numbers have been switched off; smaller weights are left out.
UNDERFLOW = 2.0**-1022
_LEAST_POWER = -700.0


@dataclass(frozen=True)
class CountCases:
    """Which of several sets holds the number of members among n rows must not show.

    `n` is the number of rows; each of the `cases` is a tuple of runs (first, last) of counts; `share` is the probability that
    a row is a member, `records` the law of what a row counts.

    >>> CountCases(4, (((0, 1),), ((2, 4),)), 0.5, RecordLaws.event(0.9, 0.2)).cases
    (((0, 1),), ((2, 4),))
    """

    n: int
    cases: tuple[tuple[Run, ...], ...]
    share: Number
    records: RecordLaws

    def __post_init__(self) -> None:
        if len(self.cases) < 2 or not all(self.cases):
            raise UsageError("cases: must be two or more, each with a possible count.")
        runs = sorted(run for case in self.cases for run in case)
        if not all(0 <= low <= high <= self.n for low, high in runs):
            raise UsageError(f"cases: counts must be in order between 0 and n. Got {runs} of {self.n}.")
        if any(high >= low for (_, high), (low, _) in itertools.pairwise(runs)):
            raise UsageError(f"cases: must have no count in common. Got {runs}.")
        if not 1e-290 <= self.share < 1:
            raise UsageError(f"share: must be above 0 and below 1. Got {self.share}.")
        if not self.records.exact:
            raise UsageError("records: sets are hidden by the law of their mixture only where it is a single law.")

    @property
    def reach(self) -> int:
        """How far two answers can be apart."""
        return self.n * self.records.width

    def laws(self, tail: float) -> tuple[LatticeLaw, ...]:
        """The law of F given each case (`case_laws`)."""
        return case_laws(self, tail)

    def whole(self) -> tuple[MixedMasses, ...] | None:
        """The masses of all answers, for each case; None where they would take too long."""
        return None if horner_work(self, self.n) > MOST_WORK else whole_cases(self)


@lru_cache(maxsize=16)
def case_laws(cases: CountCases, tail: float) -> tuple[LatticeLaw, ...]:
    """The law of F given each case. tail 0: every mass; else a window that leaves out at most about `tail` of the case.

    `cases` says which counts each case holds, and the law of a row.

    >>> four = CountCases(4, (((0, 1),), ((2, 4),)), 0.5, RecordLaws.event(0.9, 0.2))
    >>> [[round(float(mass), 4) for mass in law.masses] for law in case_laws(four, 0.0)]
    [[0.1229, 0.4813, 0.3149, 0.0749, 0.0061], [0.0038, 0.0728, 0.3915, 0.4016, 0.1303]]
    """
    if tail == 0:
        return tuple(_pointwise(cases, case, mixed) for case, mixed in zip(cases.cases, whole_cases(cases), strict=True))
    return tuple(_windowed(cases, case, tail) for case in cases.cases)


@dataclass(frozen=True, eq=False)
class _Weights:
    """Weights of first, first + 1, ... relative to the largest; those left out are 0 here and sum to at most `left_out`."""

    first: int
    values: Array
    inside: NDArray[np.bool_]
    error: float
    left_out: float


@dataclass(frozen=True, eq=False)
class MixedMasses:
    """Masses that are true up to a factor 1 +- error and, over all of them together, `floor` for what underflows."""

    start: int
    masses: Array
    error: float
    floor: float

    @property
    def distance(self) -> float:
        return up(self.error * float(self.masses.sum()) + self.floor)


def _weights(cases: CountCases, case: tuple[Run, ...], tail: float) -> _Weights:
    """Those of a window that leaves out at most `tail`; 0: all that are floats, from count 0 to n."""
    import numpy as np

    logs, errors = _log_weights(cases.n, cases.share)
    inside = np.zeros(cases.n + 1, dtype=bool)
    for low, high in case:
        inside[low : high + 1] = True
    top = int(np.argmax(np.where(inside, logs, -np.inf)))
    powers = logs - logs[top]
    errors = errors + errors[top] + UNIT * (np.abs(powers) + 8)
    kept = inside & (powers >= (_LEAST_POWER if tail == 0 else math.log(tail) - math.log(2 * cases.n + 2)))
    window = slice(0, cases.n + 1) if tail == 0 else slice(int(kept.argmax()), cases.n + 1 - int(kept[::-1].argmax()))
    return _Weights(
        window.start,
        np.where(kept, np.exp(np.where(kept, powers, 0.0)), 0.0)[window],
        inside[window],
        math.expm1(float(errors[kept].max())) * SOLVED_UP,
        up(math.fsum(np.exp((powers + errors)[inside & ~kept])) + (cases.n + 1) * UNDERFLOW),
    )


def _log_weights(n: int, share: Number) -> tuple[Array, Array]:
    """log of P(Bin(n, share) = a) relative to the mode's, and a bound on its error, for all a."""
    import numpy as np

    if n > _MOST_ROWS:
        raise UsageError(f"cases: at most {_MOST_ROWS:,} rows for the exact law of a set. Got {n:,}.")
    mode = min(int((n + 1) * share), n)
    k = np.arange(n, dtype=np.float64)
    steps = np.log((n - k) / (k + 1) * float(share / (1 - share)))
    logs = np.concatenate([-np.cumsum(steps[:mode][::-1])[::-1], [0.0], np.cumsum(steps[mode:])])
    away = np.abs(np.arange(n + 1) - mode)
    # Each step is off by 8 units and 8 of itself; the sum of steps of one sign by one unit of itself a step.
    return logs, UNIT * (9 * away + (9 + away) * np.abs(logs))


def _mixed(cases: CountCases, weights: _Weights) -> MixedMasses:
    """sum_j w_j M^j R^(m-j) over the sum of the m + 1 weights, by Horner's rule."""
    import numpy as np

    rows, records = len(weights.values) - 1, cases.records
    if horner_work(cases, rows) > MOST_WORK or weights.error > 0.1:
        raise UsageError(f"cases: the law of a set of {rows + 1:,} counts is out of reach. Hide it point by point.")
    member, rest = _dense(records, records.member), _dense(records, records.rest)
    held, power = weights.values[-1:].copy(), np.ones(1)
    for weight in weights.values[-2::-1]:
        held, power = np.convolve(held, member), np.convolve(power, rest)
        if weight > 0:
            held += weight * power
    # For each row: 4 units of the probability, one of the product, and one for each term added.
    rounding = math.expm1((rows * (8 + len(member)) + 8) * UNIT)
    error = ((1 + rounding) * (1 + weights.error) / (1 - weights.error) - 1) * SOLVED_UP + 8 * UNIT
    # A product that underflows goes into at most m + 1 of the sums.
    floor = 8.0 * (rows + 1) * (horner_work(cases, rows) + rows + 1) * UNDERFLOW + 2 * weights.left_out
    return MixedMasses(rows * records.values[0], held / math.fsum(weights.values), error, up(floor))


@lru_cache(maxsize=4)
def whole_cases(cases: CountCases) -> tuple[MixedMasses, ...]:
    """The masses of all answers, for each case."""
    return tuple(_mixed(cases, _weights(cases, case, 0.0)) for case in cases.cases)


def _pointwise(cases: CountCases, case: tuple[Run, ...], mixed: MixedMasses) -> LatticeLaw:
    """Pointwise, where no possible mass is too small for that."""
    least = float(mixed.masses[_possible(cases, _weights(cases, case, 0.0).inside)].min())
    if least < SMALLEST:
        return LatticeLaw(mixed.start, mixed.masses, math.inf, mixed.distance)
    return LatticeLaw(mixed.start, mixed.masses, up(mixed.error + mixed.floor / least), 0.0)


def _possible(cases: CountCases, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where the true mass is positive: the same rule on sets of answers, each set the binary digits of a whole number."""
    import numpy as np

    records, size = cases.records, cases.n * cases.records.width + 1
    laws = [
        [value - records.values[0] for value, (p, _) in zip(records.values, law, strict=True) if p > 0]
        for law in (records.member, records.rest)
    ]
    held, power = int(inside[-1]), 1
    for belongs in inside[-2::-1]:
        held, power = (reduce(or_, (answers << v for v in law)) for answers, law in zip((held, power), laws, strict=True))
        held |= power if belongs else 0
    digits = np.frombuffer(held.to_bytes(size // 8 + 1, "little"), dtype=np.uint8)
    return np.unpackbits(digits, bitorder="little")[:size].astype(bool)


def _windowed(cases: CountCases, case: tuple[Run, ...], tail: float) -> LatticeLaw:
    """The counts of a window, and the rows that all of them have in common."""
    weights, records = _weights(cases, case, tail / 2), cases.records
    mixed = _mixed(cases, weights)
    law = LatticeLaw(mixed.start, mixed.masses, math.inf, min(1.0, mixed.distance))
    others = cases.n + 1 - weights.first - len(weights.values)
    member, rest = ([low for low, _ in one] for one in (records.member, records.rest))
    if records.binary:
        common = binomial_sum(weights.first, member[1], others, rest[1], tail=tail / 2)
    else:
        common = record_sum(records.values, member, weights.first, rest, others, tail=tail / 2)
    return law.convolve(common, exact=False).trimmed(tail / 2)


def _dense(records: RecordLaws, law: tuple[Interval01, ...]) -> Array:
    """Probabilities of the least value, the next whole number, and so on."""
    import numpy as np

    masses, total = np.zeros(records.width + 1), math.fsum(low for low, _ in law)
    for value, (low, _) in zip(records.values, law, strict=True):
        masses[value - records.values[0]] = float(low) / total
    return masses


def horner_work(cases: CountCases, rows: int) -> float:
    """Products of Horner's rule over so many rows."""
    width = cases.records.width
    return float(rows) * (rows * width + 1) * (width + 1)


# ----------------------------------------------------------------------------------------------------------------------------
# Which counts of a category are likely, for expected errors only: nothing that is promised rests on it.
#
#     binomial   rows are members independently, with a stated share, given that the count is in the secret's range
#     shares     the population's share is uniform between two ends, and the count binomial given the share
#     flat       every count of the range alike
#
# `nodes` gives all counts where there are few, else equally spaced ones with their chances: averages of functions that change
# slowly from count to count are accurate to many digits, because the chances fall off smoothly.


# Counts further out than this many standard deviations are left out, and those of less than this share of the likeliest.
_REACH = 7.5
_NEGLIGIBLE = 1e-13


@dataclass(frozen=True)
class CountPrior:
    """A law over the counts low..high of n rows."""

    n: int
    low: int
    high: int
    share: float | None = None
    shares: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        ends = self.shares or (self.share if self.share is not None else 0.5,) * 2
        if not (0 <= self.low <= self.high <= self.n and 0 <= ends[0] <= ends[1] <= 1):
            raise UsageError("prior: needs counts in order from 0 to n, and shares in order from 0 to 1.")

    @property
    def stated(self) -> bool:
        """Whether it is more than all values alike."""
        return self.share is not None or self.shares is not None

    def nodes(self, most: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """At most `most` counts and their chances, which sum to 1.

        >>> counts, chances = CountPrior(2, 0, 2, share=0.5).nodes(10)
        >>> counts.tolist(), chances.round(12).tolist()
        ([0, 1, 2], [0.25, 0.5, 0.25])
        """
        import numpy as np

        first, last = self._ends()
        stride = -(-(last - first + 1) // most)
        # What a whole stride leaves over is shared between both ends.
        counts = np.arange(first + (last - first) % stride // 2, last + 1, stride)
        logs = self._logs(counts)
        chances = np.exp(logs - logs.max())
        kept = chances >= _NEGLIGIBLE
        return counts[kept], chances[kept] / chances[kept].sum()

    def _ends(self) -> tuple[int, int]:
        """The counts between which all of it lies, up to what is negligible."""
        if self.share is None and self.shares is None:
            return self.low, self.high
        low, high = self.shares or (self.share or 0.0, self.share or 0.0)
        reach = [_REACH * math.sqrt(self.n * p * (1 - p)) + 10 for p in (low, high)]
        first, last = math.floor(self.n * low - reach[0]), math.ceil(self.n * high + reach[1])
        # A range that the prior hardly reaches: its nearest counts are all there is.
        first, last = min(first, self.high - 10), max(last, self.low + 10)
        return max(self.low, first), min(self.high, last)

    def _logs(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The logarithms of the chances, up to a constant."""
        import numpy as np
        from scipy.special import betainc, gammaln, xlog1py, xlogy

        if self.shares is not None and self.shares[0] < self.shares[1]:
            ends = [betainc(counts + 1, self.n - counts + 1, end) for end in self.shares]
            return np.asarray(np.log(np.maximum(ends[1] - ends[0], 1e-300)), dtype=np.float64)
        share = self.share if self.shares is None else self.shares[0]
        if share is None:
            return np.zeros(len(counts))
        logs = xlogy(counts, share) + xlog1py(self.n - counts, -share) - gammaln(counts + 1) - gammaln(self.n - counts + 1)
        return np.asarray(logs, dtype=np.float64)
