"""The distance W that serves every pair of counts and every law of a family.

    records: a row of the secret's category adds a draw of `member`, any other a draw of `rest`
    pairs:   counts a, b in [low, high] with |a - b| <= d = apart
    W        >= W_inf (or the distance of (W, delta)-closeness) of the laws of F given a and given b, for all of them

| records | pairs compared | why they suffice |
|---|---|---|
| event, exact | (a, a + d) for a in low..high-d | counts order the laws, and a pair in between is no further apart |
| event, intervals | (k, k + d) for k in 0..n-d at the corner (lowest, highest) | mixtures of point pairs, theory 3 |
| whole numbers, exact | all pairs | no order in general |
| the same, many rows | d rows of one law against d of the other | moving C + X to C + Y needs no more than X to Y |

For an event let P <= Q be two of these laws, Q with more rows at the higher probability. q/p increases (a log-concave C gives
C + Bern(hi) over C + Bern(lo) an increasing ratio). Then half-lines suffice in Strassen's formula:

    min over couplings of P(|x - y| > w) = max(0, max over x of F_P(x) - F_Q(x + w)).

*Proof.* Let A^w be a union of intervals [l_i, r_i]; A may be taken to be the union of [l_i + w, r_i - w]. Extending the first
interval down to -infinity changes P(A) - Q(A^w) by F_P(l + w - 1) - F_Q(l - 1) >= 0. For two intervals with the gap J between
them: filling the gap changes it by P(J^w) - Q(J). If that is negative, then q > p somewhere in J, hence everywhere to its
right, so every interval right of J contributes P[l + w, r - w] - Q[l, r] <= 0 and can be dropped. ∎  F_P - F_Q(. + w) is
monotone in both laws, so a pair in between is no further apart for delta > 0 either. (For laws that are merely ordered, without
the increasing ratio, this is false.)

What must never change: never an underestimate. Bounds that are not attained say so in `how`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.transport import exact_measure, monotone_coupling
from attrpriv.numerics.divergences.wasserstein import close_distance, wasserstein_inf
from attrpriv.numerics.laws.binomial import BinomialTails, binomial_tails
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum, record_sum
from attrpriv.numerics.rounding import UNIT

if TYPE_CHECKING:
    from attrpriv.numerics.laws.records import CountPairs, RecordLaws

# Rows up to which all pairs of counts are compared; and points in all the pairs of integer-valued sums (delta = 0, delta > 0).
_FEW_ROWS = 300
_FEW_POINTS = (2_000_000, 50_000)


Corner = tuple[float | Fraction, float | Fraction]


@dataclass(frozen=True)
class FamilyWasserstein:
    """W for a family: `pair` are the two counts that need it, or stand for those that may.

    `distance` is W, `delta` the mass that may be ignored, `how` a word on how it was found. Made by `family_wasserstein`.
    """

    distance: float
    delta: float
    pair: tuple[int, int]
    how: str


def family_wasserstein(records: RecordLaws, pairs: CountPairs, delta: float = 0.0) -> FamilyWasserstein:
    """The W to use for all pairs and all laws of the family.

    `records` is the family of laws of a row, `pairs` the counts to hide; `delta` of the mass may be ignored.

    >>> from attrpriv.numerics.laws.records import CountPairs, RecordLaws
    >>> boxes = [RecordLaws.event((low, 1 - low), (low, 1 - low)) for low in (0.4, 0.3, 0.0)]
    >>> [family_wasserstein(box, CountPairs.all_of(4)).distance for box in boxes]
    [1.0, 2.0, 4.0]
    """
    if not 0 <= delta < 1:
        raise UsageError(f"delta: must be at least 0 and below 1. Got {delta}.")
    if records.binary:
        return _event(records, pairs, delta)
    if not records.exact:
        raise UsageError("records: intervals are covered for events only. Give single probabilities for each value.")
    return _whole_numbers(records, pairs, delta)


def _event(records: RecordLaws, pairs: CountPairs, delta: float) -> FamilyWasserstein:
    n, apart = pairs.n, pairs.apart
    corner, counts = _corner(records, pairs)
    if corner[0] == corner[1]:
        return FamilyWasserstein(0.0, delta, (pairs.low, pairs.low + apart), "the two categories have the same law")
    found = _all_pairs(n, corner, counts, apart, delta) if n <= _FEW_ROWS else None
    all_compared = found is not None or apart == n
    distance, k = found or (_ends(apart, corner, delta), counts[0])
    # Counts of rows at the higher probability, told as counts of the secret's category.
    first = n - k - apart if records.exact and records.member[1] < records.rest[1] else k
    how = "all pairs compared" if all_compared else f"common rows left out: {apart} differ"
    return FamilyWasserstein(distance, delta, (first, first + apart), how)


def _corner(records: RecordLaws, pairs: CountPairs) -> tuple[Corner, range]:
    """The two probabilities, and the k for which k against k + apart rows at the higher one must be compared."""
    if not records.exact:
        return records.hull, range(pairs.n - pairs.apart + 1)
    member, rest = records.member[1][0], records.rest[1][0]
    first, last = (pairs.low, pairs.high) if member >= rest else (pairs.n - pairs.high, pairs.n - pairs.low)
    return (min(member, rest), max(member, rest)), range(first, last - pairs.apart + 1)


def _all_pairs(n: int, corner: Corner, counts: range, apart: int, delta: float) -> tuple[float, int] | None:
    """The largest distance of (k, k + apart), and its k; None where a mass underflows."""
    laws = {k: binomial_sum(k, corner[1], n - k, corner[0]) for first in counts for k in (first, first + apart)}
    if not all(law.pointwise for law in laws.values()):
        return None
    return max((_ordered_distance(laws[k], laws[k + apart], delta), k) for k in counts)


def _ends(rows: int, corner: Corner, delta: float) -> float:
    """Bin(rows, low) against Bin(rows, high): nothing in common."""
    if delta > 0:
        # The windows leave out little against delta, so that they hardly show.
        windows = [binomial_sum(rows, p, 0, p, tail=max(1e-280, delta / 2**14)) for p in corner]
        distance = _ordered_distance(windows[0], windows[1], delta)
        if math.isfinite(distance):
            return distance
    return _whole_ends(rows, corner)


@lru_cache(maxsize=64)
def _whole_ends(rows: int, corner: Corner) -> float:
    return wasserstein_inf(_tails_or_point(rows, corner[0]), _tails_or_point(rows, corner[1])).distance


def _tails_or_point(rows: int, p: float | Fraction) -> LatticeLaw | BinomialTails:
    return binomial_tails(rows, p) if 0 < p < 1 else binomial_sum(rows, p, 0, p)


def _ordered_distance(p: LatticeLaw, q: LatticeLaw, delta: float) -> float:
    """The least w with F_P(x) - F_Q(x + w) <= delta for all x, for q/p increasing."""
    import numpy as np

    exact = wasserstein_inf(p, q).distance if p.pointwise and q.pointwise else math.inf
    if delta == 0:
        return exact
    slack = p.distance + q.distance + 4 * (len(p.masses) + len(q.masses)) * UNIT
    if slack >= delta:
        return exact
    # Beyond its window P may have the rest of its mass: the last point counts as all of it.
    needed = np.append(p.cdf()[:-1], 1.0) - (delta - slack)
    reached = q.cdf()
    places = np.searchsorted(reached, needed)
    if int(places.max()) == len(reached):
        return exact
    moves = (q.start + places - (p.start + np.arange(len(needed))))[needed > 0]
    return min(exact, float(max(0, int(moves.max(initial=0)))))


def _whole_numbers(records: RecordLaws, pairs: CountPairs, delta: float) -> FamilyWasserstein:
    """All pairs where they are few; else a bound from moving row by row."""
    points = (pairs.high - pairs.low + 1) * pairs.apart * pairs.n * records.width
    few = pairs.n <= _FEW_ROWS and points <= 2 * _FEW_POINTS[delta > 0]
    found = _few_sums(records, pairs, delta) if few else None
    if found is not None:
        return FamilyWasserstein(found[0], delta, found[1], "all pairs compared")
    how = f"{pairs.apart} rows moved one by one"
    return FamilyWasserstein(_row_by_row(records, pairs.apart, delta), delta, (pairs.low, pairs.low + pairs.apart), how)


def _few_sums(records: RecordLaws, pairs: CountPairs, delta: float) -> tuple[float, tuple[int, int]] | None:
    member, rest = ([low for low, _ in law] for law in (records.member, records.rest))
    counts = range(pairs.low, pairs.high + 1)
    laws = {a: record_sum(records.values, member, a, rest, pairs.n - a) for a in counts}
    if not all(law.pointwise for law in laws.values()):
        return None
    close = [(a, b) for a, b in combinations(counts, 2) if b - a <= pairs.apart]
    return max((_distance(laws[a], laws[b], delta), (a, b)) for a, b in close)


def _distance(p: LatticeLaw, q: LatticeLaw, delta: float) -> float:
    return close_distance(p, q, delta).distance if delta > 0 else wasserstein_inf(p, q).distance


def _row_by_row(records: RecordLaws, rows: int, delta: float) -> float:
    """Each differing row moves by the monotone coupling of the two laws: at most the sum of the moves, whatever the rest is.

    The moves are at least 0, so fewer differing rows move no further.
    """
    laws = [{v: low for v, (low, _) in zip(records.values, law, strict=True)} for law in (records.member, records.rest)]
    moves: dict[int, float] = {}
    for x, y, mass in monotone_coupling(exact_measure(laws[0]), exact_measure(laws[1])):
        move = int(max(x - y, y - x))
        moves[move] = moves.get(move, 0.0) + float(mass)
    furthest = float(rows * max(moves))
    if delta == 0:
        return furthest
    values = sorted(moves)
    total = record_sum(values, [moves[v] for v in values], rows, [moves[v] for v in values], 0, tail=delta / 2**14)
    allowed = delta - total.distance - 4 * len(total.masses) * UNIT - rows * 2.0**-40
    above = total.masses[::-1].cumsum()[::-1]
    beyond = [total.start + k - 1 for k in range(len(above)) if above[k] <= allowed]
    return min(furthest, float(beyond[0])) if beyond else furthest
