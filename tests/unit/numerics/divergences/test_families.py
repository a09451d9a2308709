"""Distances of families by their definitions: rows moved one by one, and ordered laws by their distribution functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.numerics.divergences.families import _ordered_distance, _row_by_row, family_wasserstein
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
