"""Distances of families by their definitions: rows moved one by one, and ordered laws by their distribution functions."""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.families import _ends, _ordered_distance, _row_by_row, family_wasserstein
from attrpriv.numerics.divergences.wasserstein import close_distance, wasserstein_inf
from attrpriv.numerics.laws.lattice import binomial_sum, record_sum
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

LAWS = RecordLaws((0, 1, 4), ((0.5, 0.5), (0.25, 0.25), (0.25, 0.25)), ((0.25, 0.25), (0.25, 0.25), (0.5, 0.5)))


@pytest.mark.parametrize("rows", [1, 3, 20])
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.07])
def test_rows_moved_one_by_one(rows: int, delta: float) -> None:
    """A row stays with 1/2, moves by 1 with 1/4 and by 3 with 1/4: the least w that the sum seldom exceeds."""
    law = np.ones(1)
    for _ in range(rows):
        law = np.convolve(law, [0.5, 0.25, 0.0, 0.25])
    above = 1 - np.cumsum(law)
    wanted = int(np.argmax(above <= delta * (1 - 1e-3)))
    assert abs(above - delta).min() > 2e-3 * delta or rows == 1
    assert _row_by_row(LAWS, rows, delta) == wanted
    assert _row_by_row(LAWS, rows, 0.0) == 3 * rows


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.5), (0.4, 0.45), (0.3, 0.3)])
@pytest.mark.parametrize("delta", [1e-6, 1e-2, 0.3])
def test_ordered_laws(p: float, q: float, delta: float) -> None:
    """The least w with P(X <= x) - P(Y <= x + w) <= delta for all x."""
    n = 30
    one, other = binom.cdf(np.arange(n + 1), n, p), binom.cdf(np.arange(2 * n + 2), n, q)
    wanted = next(w for w in range(n + 1) if (one - other[w : w + n + 1]).max() <= delta * (1 - 1e-9))
    assert _ordered_distance(binomial_sum(n, p, 0, p), binomial_sum(n, q, 0, q), delta) == wanted
    moved = binomial_sum(n, q, 0, q).shifted(5)
    if delta < 0.2:
        assert _ordered_distance(binomial_sum(n, p, 0, p), moved, delta) == wanted + 5


@pytest.mark.parametrize(("member", "rest"), [(0.7, 0.4), (0.4, 0.7), (0.05, 0.5), (0.5, 0.05)])
@pytest.mark.parametrize(("low", "high", "apart"), [(0, 3, 1), (0, 9, 2), (5, 12, 3), (2, 12, 10)])
def test_the_pair_that_is_named_is_that_far_apart(member: float, rest: float, low: int, high: int, apart: int) -> None:
    """And no other pair of the range is further: all of them by their laws."""
    n = 12
    found = family_wasserstein(RecordLaws.event(member, rest), CountPairs(n, low, high, apart))
    laws = {a: binomial_sum(a, member, n - a, rest) for a in range(low, high + 1)}
    far = {(a, b): wasserstein_inf(laws[a], laws[b]).distance for a in laws for b in laws if 0 < b - a <= apart}
    assert found.distance == max(far.values())
    assert far[found.pair] == found.distance
    assert found.pair[1] - found.pair[0] == apart


@pytest.mark.parametrize("delta", [1e-9, 1e-3])
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.6), (0.2, 0.9), (0.6, 0.5)])
def test_many_rows_by_their_distribution_functions(p: float, q: float, delta: float) -> None:
    """All rows differ: windows that begin far from 0, and the least w at which half-lines are within delta."""
    n = 1_000
    low, high = (binom.cdf(np.arange(2 * n + 1), n, x) for x in sorted((p, q)))
    wanted = next(w for w in range(n + 1) if (low[: n + 1] - high[w : w + n + 1]).max() <= delta)
    found = family_wasserstein(RecordLaws.event(p, q), CountPairs.all_of(n), delta)
    assert wanted <= found.distance <= wanted + 1


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize(("low", "high", "apart"), [(0, 4, 1), (1, 4, 3), (0, 5, 5), (2, 3, 1)])
def test_whole_numbers_over_all_pairs(low: int, high: int, apart: int, delta: float) -> None:
    """Every two counts of the range, by their laws: the largest distance, and the pair that needs it."""
    n = 5
    for records in (LAWS, RecordLaws(LAWS.values, LAWS.rest, LAWS.member)):
        member, rest = ([p for p, _ in law] for law in (records.member, records.rest))
        laws = {a: record_sum(LAWS.values, member, a, rest, n - a) for a in range(low, high + 1)}
        far = {
            (a, b): close_distance(laws[a], laws[b], delta).distance if delta else wasserstein_inf(laws[a], laws[b]).distance
            for a in laws
            for b in laws
            if 0 < b - a <= apart
        }
        found = family_wasserstein(records, CountPairs(n, low, high, apart), delta)
        assert found.how == "all pairs compared"
        assert found.distance == max(far.values())
        assert far[found.pair] == found.distance


def half_lines(n: int, low: float, high: float, k: int, apart: int, delta: float) -> int:
    """The least w with P(X <= x) - P(Y <= x + w) <= delta for k and k + apart rows at the higher probability."""
    laws = [
        np.convolve(binom.pmf(np.arange(m + 1), m, high), binom.pmf(np.arange(n - m + 1), n - m, low)) for m in (k, k + apart)
    ]
    one, other = np.cumsum(laws[0]), np.append(np.cumsum(laws[1]), np.ones(n))
    return next(w for w in range(n + 1) if (one - other[w : w + n + 1]).max() <= delta)


@pytest.mark.parametrize(("n", "apart"), [(10, 4), (9, 5), (7, 7), (7, 6)])
@pytest.mark.parametrize(("member", "rest"), [((0.9, 0.97), (0.5, 0.5)), ((0.1, 0.2), (0.7, 0.9)), ((0.3, 0.6), (0.4, 0.5))])
def test_intervals_are_compared_at_their_corner_for_every_count(
    n: int, apart: int, member: tuple[float, float], rest: tuple[float, float]
) -> None:
    """Whatever range of counts was asked for, mixtures may have any number of rows at the higher end."""
    low, high = min(member[0], rest[0]), max(member[1], rest[1])
    wanted = {k: half_lines(n, low, high, k, apart, 0.1) for k in range(n - apart + 1)}
    for pairs in (CountPairs(n, 0, n, apart), CountPairs(n, n - apart, n, apart)):
        found = family_wasserstein(RecordLaws.event(member, rest), pairs, 0.1)
        assert found.distance == max(wanted.values())
        assert found.how == "all pairs compared"
        assert wanted[found.pair[0]] == found.distance
        assert found.pair[1] == found.pair[0] + apart


@pytest.mark.parametrize("delta", [0.1, 0.05])
@pytest.mark.parametrize(("member", "rest"), [(0.97, 0.5), (0.5, 0.97), (0.9, 0.1), (0.1, 0.9)])
@pytest.mark.parametrize(
    ("n", "low", "high", "apart"), [(10, 0, 10, 4), (10, 3, 10, 4), (9, 0, 9, 5), (9, 1, 7, 5), (10, 0, 8, 4)]
)
def test_where_a_delta_is_allowed_the_common_rows_matter(
    n: int, low: int, high: int, apart: int, member: float, rest: float, delta: float
) -> None:
    """The worst pair of the range alone: not always at an end, nor the same whichever category is the higher one."""
    wanted = {}
    for a in range(low, high - apart + 1):
        k = a if member >= rest else n - a - apart
        wanted[a] = half_lines(n, min(member, rest), max(member, rest), k, apart, delta)
    found = family_wasserstein(RecordLaws.event(member, rest), CountPairs(n, low, high, apart), delta)
    assert found.distance == max(wanted.values())
    assert wanted[found.pair[0]] == found.distance
    assert found.pair[1] == found.pair[0] + apart


def test_two_categories_alike_need_no_move() -> None:
    found = family_wasserstein(RecordLaws.event(0.4, 0.4), CountPairs(12, 2, 9, 3))
    assert (found.distance, found.pair) == (0.0, (2, 5))


@pytest.mark.parametrize("delta", [-0.1, 1.0, 1.5, float("nan")])
def test_what_is_no_delta(delta: float) -> None:
    with pytest.raises(UsageError, match="delta"):
        family_wasserstein(RecordLaws.event(0.4, 0.5), CountPairs.all_of(3), delta)


def test_intervals_of_other_numbers_than_events_are_refused() -> None:
    wide = RecordLaws((0, 1, 4), ((0.4, 0.5), (0.25, 0.35), (0.25, 0.25)), LAWS.rest)
    with pytest.raises(UsageError, match="intervals"):
        family_wasserstein(wide, CountPairs.all_of(3))


def exact_ends(rows: int, low: Fraction, high: Fraction) -> int:
    """W of all rows at the one probability against all at the other: by exact quantiles."""
    laws = []
    for p in (low, high):
        masses = [math.comb(rows, k) * p**k * (1 - p) ** (rows - k) for k in range(rows + 1)]
        laws.append(list(accumulate(masses)))
    first = [next(y for y in range(rows + 1) if laws[1][y] >= level) for level in laws[0]]
    return max(y - x for x, y in enumerate(first) if laws[0][x] > 0)


@pytest.mark.parametrize(("member", "rest"), [(0.25, 0.75), (0.0, 0.5), (0.5, 1.0), (0.0, 1.0), (0.75, 0.625)])
@pytest.mark.parametrize("apart", [1, 2, 6, 11])
def test_many_rows_that_are_common_are_left_out(member: float, rest: float, apart: int) -> None:
    """Also where an event is impossible or certain: its rows are all at one point."""
    found = family_wasserstein(RecordLaws.event(member, rest), CountPairs(400, 100, 200, apart))
    low, high = sorted((Fraction(member), Fraction(rest)))
    assert found.distance == exact_ends(apart, low, high)
    assert found.how == f"common rows left out: {apart} differ"
    assert found.pair[1] - found.pair[0] == apart


def test_probabilities_that_underflow_leave_common_rows_out() -> None:
    """Some of the laws are known pointwise and others are not; all of them must be."""
    records = RecordLaws.event(1e-4, 0.5)
    laws = [binomial_sum(a, 1e-4, 200 - a, 0.5) for a in (0, 199)]
    assert laws[0].pointwise
    assert not laws[1].pointwise
    found = family_wasserstein(records, CountPairs(200, 0, 200, 3))
    assert found.distance == exact_ends(3, Fraction(1, 10_000), Fraction(1, 2))
    assert found.how == "common rows left out: 3 differ"


def test_whole_numbers_that_underflow_or_are_many_move_row_by_row() -> None:
    """Nothing of a law that is not known pointwise is compared."""
    member = ((1 - 2e-12,) * 2, (1e-12,) * 2, (1e-12,) * 2)
    rare = RecordLaws((0, 1, 4), member, LAWS.rest)
    for pairs in (CountPairs(40, 0, 40, 3), CountPairs(40, 7, 40, 3)):
        found = family_wasserstein(rare, pairs)
        assert (found.how, found.pair) == ("3 rows moved one by one", (pairs.low, pairs.low + 3))
        assert found.distance == 3 * 4
    many = family_wasserstein(LAWS, CountPairs(301, 11, 200, 2))
    assert (many.how, many.pair, many.distance) == ("2 rows moved one by one", (11, 13), 6.0)


def test_moves_may_go_either_way_and_all_of_them_may_be_long() -> None:
    """Member lies 2 to 3 above rest: the sum of five moves is at least ten, whichever of both is the higher one."""
    high, low = ((0.0, 0.0), (0.0, 0.0), (0.25, 0.25), (0.75, 0.75)), ((0.5, 0.5), (0.5, 0.5), (0.0, 0.0), (0.0, 0.0))
    for member, rest in ((high, low), (low, high)):
        records = RecordLaws((0, 1, 2, 4), member, rest)
        # From 0 to 2 with 1/4, from 0 to 4 with 1/4, from 1 to 4 with 1/2.
        law = np.ones(1)
        for _ in range(5):
            law = np.convolve(law, [0.0, 0.0, 0.25, 0.5, 0.25])
        above = 1 - np.cumsum(law)
        for delta in (1e-3, 0.02, 0.2, 0.6):
            assert _row_by_row(records, 5, delta) == int(np.argmax(above <= delta * (1 - 1e-3)))
        assert _row_by_row(records, 5, 0.0) == 20
        assert _row_by_row(records, 5, 1e-12) == 20


def test_what_a_window_leaves_out_counts_as_moved_too_far() -> None:
    """A delta a little below the mass beyond a distance does not allow this distance, however little."""
    rows, law = 60, np.ones(1)
    for _ in range(rows):
        law = np.convolve(law, [0.5, 0.25, 0.0, 0.25])
    above = law[::-1].cumsum()[::-1]
    for w in range(70, 100, 3):
        for share in (1e-7, 1e-6, 5e-6):
            assert _row_by_row(LAWS, rows, float(above[w + 1]) * (1 - share)) > w


def test_windows_of_ordered_laws_are_used_while_they_lose_little() -> None:
    """Where delta is as small as what is lost only the exact distance holds; beyond a window may be all of the rest."""
    whole = [binomial_sum(30, p, 0, p) for p in (0.3, 0.6)]
    assert _ordered_distance(whole[0], whole[1], 1e-15) == wasserstein_inf(whole[0], whole[1]).distance
    windows = [binomial_sum(30, p, 0, p, tail=1e-6) for p in (0.3, 0.6)]
    wanted = half_lines(30, 0.3, 0.6, 0, 30, 1e-3)
    for p in (whole[0], windows[0]):
        for q in (whole[1], windows[1]):
            assert _ordered_distance(p, q, 1e-3) == wanted
    lossy = [law.trimmed(1e-3) for law in whole]
    assert _ordered_distance(lossy[0], lossy[1], 1e-9) == math.inf
    lost = lossy[1].distance
    assert lost > 1e-4
    assert _ordered_distance(whole[0], lossy[1], 1.5 * lost) == math.inf
    assert wanted <= _ordered_distance(lossy[0], lossy[1], 1e-2) < 30


@pytest.mark.parametrize("rows", [40, 41, 43])
@pytest.mark.parametrize("delta", [1e-6, 0.013, 0.11])
def test_rows_with_nothing_in_common_by_their_distribution_functions(rows: int, delta: float) -> None:
    """Windows lose so little of delta that the distance is the one of the whole laws."""
    wanted = half_lines(rows, 0.2, 0.9, 0, rows, delta)
    assert wanted == half_lines(rows, 0.2, 0.9, 0, rows, delta * (1 - 1e-3))
    assert _ends(rows, (0.2, 0.9), delta) == wanted


def test_tails_of_many_rows_whose_masses_underflow() -> None:
    """Without a delta: the longest move is at an end, in whole numbers."""
    rows = 1200
    weights = [math.comb(rows, k) * 3**k for k in range(rows + 1)]
    high = list(accumulate(weights))
    low = list(accumulate(reversed(weights)))
    wanted = max(bisect_left(high, level) - x for x, level in enumerate(low))
    assert wanted <= _ends(rows, (0.25, 0.75), 0.0) <= wanted + 1
