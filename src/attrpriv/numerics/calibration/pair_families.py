"""Families of count laws, and the pair of them that needs the most noise.

    F given a:  a rows of `member`, n - a of `rest`
    wanted:     a bound on H_eps(F_a + Z || F_b + Z), both ways, over all pairs of a family

Events (a row counts 0 or 1, probabilities p1 and p0):

- *Pairs.* Bernoulli laws are ordered by likelihood ratio, and stay so under convolution with log-concave laws
  (`karlin1968total`): sums of Bernoullis, and the discrete Laplace and Gaussian noise. So the best event is a half-line, and
  laws further out give it more and less mass: among nested pairs the outermost has the largest H. Only the pairs
  (k, k + apart) are left.
- *Boxes.* A row of probability p in [lo, hi] is a draw of Bernoulli(hi) or Bernoulli(lo). H is jointly convex, so it is
  largest where every row is one of the two, and pairs still differ in at most `apart` rows. All k = 0..n - apart must be
  looked at: which counts the secret can take no longer matters.
- *Blocks.* The pairs k1..k2 share k1 rows of p1 and n - apart - k2 rows of p0. Independent rows that both laws have are
  post-processing, so without the others of the block H is an upper bound for all of it. Blocks are halved, the worst first.
- *Known rows.* Known complete rows shift both laws. Rows of which the value alone is known leave a mixture over their
  categories, and one more member is one more either among them or among the others, so a coupled pair still differs in at
  most `apart` unknown rows (docs/theory/exact-calibration.md). Dropping K common rows of each category covers both.

Whole numbers, exact laws: no order is known, so all pairs are compared (`numerics.divergences.all_pairs`), of n - K rows.

What must never change: `worst` is an upper bound over every pair, whatever its budget. A block is never dropped.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.half_lines import TAIL, WholeNoise, half_line_delta
from attrpriv.numerics.divergences.all_pairs import all_pairs_delta
from attrpriv.numerics.divergences.lattice import lattice_delta_upper
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum, record_sum
from attrpriv.numerics.laws.lattice_law import DIRECT
from attrpriv.numerics.laws.records import CountPairs, Interval01, Number, RecordLaws

Block = tuple[int, int]
Noise = LatticeLaw | WholeNoise
# Families of at most this many pairs are looked at pair by pair, larger ones until the bound is this close to a value attained.
_FEW = 256
_CLOSE = 1e-3
# Products up to which a window of two binomial laws is summed directly: only totals are used here.
_SHORT = 2**22
# How many blocks: fewer where each takes long, because the noise that a coarser bound costs is less than a hundredth.
_LEAST_BLOCKS, _MOST_BLOCKS, _BLOCK_WORK = 60, 1500, 2_000_000
# The largest comparison of all pairs: pairs times outputs, and outputs.
_MOST_WORK = 4e9
_MOST_OUTPUTS = 20_000


@dataclass(frozen=True)
class Worst:
    """An upper bound on H over all pairs, the block that needs it, and the largest bound of a single pair looked at."""

    upper: float
    block: Block
    attained: float


class Family(Protocol):
    """Count laws of which certain pairs must be indistinguishable."""

    def laws(self, block: Block) -> tuple[LatticeLaw, LatticeLaw]:
        """Two laws whose H bounds that of every pair of the block."""

    def pair(self, block: Block) -> tuple[int, int]:
        """One pair of counts in the block."""

    def bound(self, block: Block, noise: Noise, epsilon: float) -> float:
        """A bound on H over the pairs of the block."""

    def worst(self, noise: Noise, epsilon: float, delta: float) -> Worst:
        """A bound over all pairs; it need not be sharp once it is known to be at most `delta`, or larger."""


def family_of(records: RecordLaws, pairs: CountPairs, known: int) -> Family:
    """The family of these rows."""
    if not 0 <= known <= pairs.n:
        raise UsageError(f"known: must be from 0 to the number of rows, {pairs.n}. Got {known}.")
    if not records.binary:
        return _whole_numbers(records, pairs, known)
    if records.exact:
        return Events(
            records.member[1][0], records.rest[1][0], pairs.n, pairs.apart, (pairs.low, pairs.high - pairs.apart), known
        )
    low, high = records.hull
    kept = max(pairs.apart, pairs.n - 2 * known)
    return Events(high, low, kept, pairs.apart, (0, kept - pairs.apart), 0)


@dataclass(frozen=True)
class Events:
    """Pairs (k, k + apart) with k in `range`, of n rows that count 1 with probability p1 or p0."""

    p1: Number
    p0: Number
    n: int
    apart: int
    range: Block
    known: int

    def laws(self, block: Block) -> tuple[LatticeLaw, LatticeLaw]:
        return _event_laws(self, block)

    def pair(self, block: Block) -> tuple[int, int]:
        return block[0], block[0] + self.apart

    def worst(self, noise: Noise, epsilon: float, delta: float) -> Worst:
        """Best first: the block of the largest bound is halved until it is a single pair, private, or close enough."""
        if self.p1 == self.p0:
            return Worst(0.0, self.range, 0.0)
        low, high = self.range
        close = 0.0 if high - low < _FEW else _CLOSE
        attained, single = max((self.bound((k, k), noise, epsilon), (k, k)) for k in {low, (low + high) // 2, high})
        heap = [(-self.bound(self.range, noise, epsilon), self.range)]
        for _ in range(self._blocks(noise)):
            upper, (k1, k2) = -heap[0][0], heap[0][1]
            if k1 == k2 or upper <= max(delta, attained * (1 + close)):
                break
            if attained > delta > 0:  # too much already: which pair is the worst can wait
                return Worst(max(upper, attained), single, attained)
            heapq.heappop(heap)
            middle = (k1 + k2) // 2
            for half in ((k1, middle), (middle + 1, k2)):
                bound = min(upper, self.bound(half, noise, epsilon))
                heapq.heappush(heap, (-bound, half))
                if half[0] == half[1]:
                    attained, single = max((attained, single), (bound, half))
        return Worst(-heap[0][0], heap[0][1], min(attained, -heap[0][0]))

    def bound(self, block: Block, noise: Noise, epsilon: float) -> float:
        return _event_bound(self, block, noise, epsilon)

    def curve(self, block: Block, noise: Noise) -> Callable[[float], float]:
        """The bound as a function of epsilon: by a half-line where a convolution would be long, else by the laws themselves."""
        return _event_curve(self, block, noise)

    def _blocks(self, noise: Noise) -> int:
        wide = 2 * noise.reach if isinstance(noise, WholeNoise) else len(noise.masses)
        outputs = len(self.laws(self.range)[0].masses) + wide
        return max(_LEAST_BLOCKS, min(_MOST_BLOCKS, _BLOCK_WORK // outputs))


# A search looks at the same blocks again and again, and a certificate once more at those of the scale that was found.
@lru_cache(maxsize=64)
def _event_laws(events: Events, block: Block) -> tuple[LatticeLaw, LatticeLaw]:
    members = max(0, block[0] - events.known)
    others = max(0, events.n - events.apart - block[1] - events.known)
    more = binomial_sum(members + events.apart, events.p1, others, events.p0, tail=TAIL, direct=_SHORT)
    return more, binomial_sum(members, events.p1, others + events.apart, events.p0, tail=TAIL, direct=_SHORT)


@lru_cache(maxsize=32)
def _event_curve(events: Events, block: Block, noise: Noise) -> Callable[[float], float]:
    one, other = events.laws(block)
    if isinstance(noise, LatticeLaw) or not (noise.closed and len(one.masses) * 2 * noise.reach > DIRECT):
        return noisy_curve((one, other), _lattice(noise))
    larger, smaller = (one, other) if events.p1 >= events.p0 else (other, one)

    def reached(epsilon: float) -> float:
        found = half_line_delta(larger, smaller, noise, epsilon)
        return noisy_delta((one, other), noise.lattice(), epsilon) if found is None else found

    return reached


@lru_cache(maxsize=4096)
def _event_bound(events: Events, block: Block, noise: Noise, epsilon: float) -> float:
    return events.curve(block, noise)(epsilon)


@dataclass(frozen=True, eq=False)
class WholeNumbers:
    """All pairs of exact laws of whole numbers, at most `apart` apart."""

    records: RecordLaws
    counts: CountPairs

    @property
    def all_laws(self) -> Sequence[LatticeLaw]:
        """The law of F for every count in the range."""
        return _record_laws(self.records, self.counts)

    def laws(self, block: Block) -> tuple[LatticeLaw, LatticeLaw]:
        return self.all_laws[block[0]], self.all_laws[block[1]]

    def pair(self, block: Block) -> tuple[int, int]:
        return self.counts.low + block[0], self.counts.low + block[1]

    def bound(self, block: Block, noise: Noise, epsilon: float) -> float:
        return noisy_delta(self.laws(block), _lattice(noise), epsilon)

    def worst(self, noise: Noise, epsilon: float, delta: float) -> Worst:
        noisy = [law.convolve(_lattice(noise), exact=False) for law in self.all_laws]
        _require_work(len(noisy), max(len(law.masses) for law in noisy))
        found = all_pairs_delta(noisy, epsilon, apart=self.counts.apart)
        return Worst(found.upper, found.pair, found.upper)


@lru_cache(maxsize=4)  # a plan looks at them once to find its noise, and once more to check it
def _record_laws(records: RecordLaws, counts: CountPairs) -> tuple[LatticeLaw, ...]:
    """Row after row: the members' sums upwards from the least count, the others' from theirs; each law joins one of each."""
    member = _row_sums(records, records.member, counts.low, counts.high)
    rest = _row_sums(records, records.rest, counts.n - counts.high, counts.n - counts.low)
    return tuple(one.convolve(other, exact=False).trimmed(TAIL / 4) for one, other in zip(member, reversed(rest), strict=True))


def _row_sums(records: RecordLaws, law: tuple[Interval01, ...], first: int, last: int) -> list[LatticeLaw]:
    """The laws of the sums of first, first + 1, ..., last rows."""
    masses = [low for low, _ in law]
    row = record_sum(records.values, masses, 1, masses, 0)
    sums = [record_sum(records.values, masses, first, masses, 0, tail=TAIL / 4)]
    for _ in range(last - first):
        sums.append(sums[-1].convolve(row, exact=False))
    return sums


def noisy_delta(laws: tuple[LatticeLaw, LatticeLaw], noise: LatticeLaw, epsilon: float) -> float:
    """An upper bound on H of two laws with the noise added, the larger of both directions."""
    return noisy_curve(laws, noise)(epsilon)


def noisy_curve(laws: tuple[LatticeLaw, LatticeLaw], noise: LatticeLaw) -> Callable[[float], float]:
    """The same as a function of epsilon."""
    one, other = (law.convolve(noise, exact=False) for law in laws)
    return lambda epsilon: max(lattice_delta_upper(one, other, epsilon), lattice_delta_upper(other, one, epsilon))


def _lattice(noise: Noise) -> LatticeLaw:
    return noise if isinstance(noise, LatticeLaw) else noise.lattice()


def _whole_numbers(records: RecordLaws, pairs: CountPairs, known: int) -> WholeNumbers:
    if not records.exact:
        raise UsageError(
            "records: intervals of probabilities with delta above 0 are for events only. Use Laplace noise, delta 0."
        )
    if pairs.n - known < pairs.apart:
        raise UsageError(f"known: must leave at least {pairs.apart} unknown rows. Got {known} of {pairs.n}.")
    if pairs.n * records.width > _MOST_OUTPUTS:
        raise UsageError(
            f"records: at most {_MOST_OUTPUTS:,} outputs can be compared. Got {pairs.n * records.width:,}; use wider bins, "
            "an event, or Laplace noise with delta 0."
        )
    # Of the unknown rows at least low - known and at most high are in the category.
    left = CountPairs(pairs.n - known, max(0, pairs.low - known), min(pairs.high, pairs.n - known), pairs.apart)
    _require_work(left.high - left.low + 1, left.n * records.width)
    return WholeNumbers(records, left)


def _require_work(laws: int, outputs: int) -> None:
    if float(laws) ** 2 * outputs > _MOST_WORK:
        raise UsageError(
            f"pairs: {laws:,} laws of {outputs:,} outputs are too many to compare. Use a smaller range of counts, wider bins, "
            "or Laplace noise with delta 0."
        )
