"""One W for a family: at least that of every pair and every law, and the published numbers."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.families import family_wasserstein
from attrpriv.numerics.divergences.transport import Measure, unmatched
from attrpriv.numerics.divergences.wasserstein import close_distance, wasserstein_inf
from attrpriv.numerics.laws.lattice import binomial_sum, record_sum
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

# The package shows the function under the module's name.
MODULE = sys.modules["attrpriv.numerics.divergences.families"]


def box(half: float, centre: float = 0.5) -> RecordLaws:
    both = (centre - half, centre + half)
    return RecordLaws.event(both, both)


def exact_measure_of(n: int, k: int, high: float, low: float) -> Measure:
    masses = {0: Fraction(1)}
    for p in [Fraction(high)] * k + [Fraction(low)] * (n - k):
        masses = {j: masses.get(j, 0) * (1 - p) + masses.get(j - 1, 0) * p for j in range(len(masses) + 1)}
    kept = [(j, mass) for j, mass in masses.items() if mass > 0]
    return Measure([j for j, _ in kept], [mass for _, mass in kept])


def least_distance(p: Measure, q: Measure, delta: float) -> int:
    """By trying every distance, in exact arithmetic."""
    return next(w for w in range(100) if unmatched(p, q, w) <= Fraction(delta))


# ------------------------------------------------------------------------------------------------------ published numbers


def test_the_papers_boxes() -> None:
    everyone = CountPairs.all_of(4)
    found = [family_wasserstein(RecordLaws.event(p, p), everyone) for p in ((0.4, 0.6), (0.3, 0.7), (0.0, 1.0))]
    assert [w.distance for w in found] == [1.0, 2.0, 4.0]
    assert found[0].pair == (0, 4)
    assert found[0].how == "all pairs compared"


@pytest.mark.parametrize(("n", "distance"), [(4, 1), (10, 3), (20, 5), (50, 11), (100, 21)])
def test_growth_with_the_rows(n: int, distance: int) -> None:
    assert family_wasserstein(RecordLaws.event(0.4, 0.6), CountPairs.all_of(n)).distance == distance
    assert family_wasserstein(RecordLaws.event((0.4, 0.6), (0.4, 0.6)), CountPairs.all_of(n)).distance == distance


@pytest.mark.parametrize(("half", "before", "after"), [(0.114272, 1, 2), (0.233615, 2, 3), (0.340896, 3, 4)])
def test_where_the_distance_jumps(half: float, before: int, after: int) -> None:
    assert family_wasserstein(box(half - 1e-6), CountPairs.all_of(4)).distance == before
    assert family_wasserstein(box(half + 1e-6), CountPairs.all_of(4)).distance == after


# -------------------------------------------------------------------------------------------------------------- soundness


@given(
    n=st.integers(2, 7),
    data=st.data(),
    p1=st.sampled_from([0.05, 0.3, 0.5, 0.8]),
    p0=st.sampled_from([0.1, 0.4, 0.5, 0.95]),
    delta=st.sampled_from([0.0, 0.01, 0.1]),
)
@settings(max_examples=60, deadline=None)
def test_no_pair_of_an_exact_event_is_further_apart(n: int, data: st.DataObject, p1: float, p0: float, delta: float) -> None:
    low = data.draw(st.integers(0, n - 1))
    high = data.draw(st.integers(low + 1, n))
    apart = data.draw(st.integers(1, high - low))
    found = family_wasserstein(RecordLaws.event(p1, p0), CountPairs(n, low, high, apart), delta)
    pairs = [(a, b) for a in range(low, high + 1) for b in range(a + 1, min(high, a + apart) + 1)]
    truth = max(least_distance(exact_measure_of(n, a, p1, p0), exact_measure_of(n, b, p1, p0), delta) for a, b in pairs)
    assert truth <= found.distance <= truth + 1


@given(
    n=st.integers(2, 5),
    data=st.data(),
    ends=st.lists(st.sampled_from([0.1, 0.2, 0.45, 0.5, 0.7, 0.9]), min_size=4, max_size=4),
    delta=st.sampled_from([0.0, 0.02]),
)
@settings(max_examples=40, deadline=None)
def test_no_law_of_a_box_is_further_apart(n: int, data: st.DataObject, ends: list[float], delta: float) -> None:
    member, rest = tuple(sorted(ends[:2])), tuple(sorted(ends[2:]))
    low = data.draw(st.integers(0, n - 1))
    high = data.draw(st.integers(low + 1, n))
    found = family_wasserstein(RecordLaws.event(member, rest), CountPairs(n, low, high, high - low), delta)  # type: ignore[arg-type]
    for p1, p0 in product((*member, sum(member) / 2), (*rest, sum(rest) / 2)):
        for a in range(low, high):
            p, q = exact_measure_of(n, a, p1, p0), exact_measure_of(n, high, p1, p0)
            assert least_distance(p, q, delta) <= found.distance


def test_only_counts_of_the_range_would_be_too_few() -> None:
    """The mutant: at the corner, pairs with both counts inside the range need less than the family does."""
    records, pairs = RecordLaws.event((0.05, 0.95), (0.05, 0.95)), CountPairs(12, 5, 7, 2)
    inside = [binomial_sum(k, 0.95, 12 - k, 0.05) for k in (5, 7)]
    assert wasserstein_inf(inside[0], inside[1]).distance <= family_wasserstein(records, pairs).distance
    worst = [
        wasserstein_inf(binomial_sum(k, 0.95, 12 - k, 0.05), binomial_sum(k + 2, 0.95, 10 - k, 0.05)).distance
        for k in range(11)
    ]
    assert family_wasserstein(records, pairs).distance == max(worst)


def test_half_lines_do_not_suffice_without_an_increasing_ratio() -> None:
    """Even and odd numbers: ordered, hardly different in distribution function, and never at the same place."""
    p, q = Measure(range(0, 20, 2), [1] * 10), Measure(range(1, 21, 2), [1] * 10)
    half_line = max(sum(x <= k for x in p.positions) - sum(y <= k for y in q.positions) for k in range(21))
    assert half_line == 1
    assert unmatched(p, q, 0) == 10


def test_leaving_common_rows_out_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    records, pairs = RecordLaws.event(0.2, 0.7), CountPairs(60, 10, 50, 20)
    for delta in (0.0, 1e-3):
        sharp = family_wasserstein(records, pairs, delta)
        with monkeypatch.context() as patch:
            patch.setattr(MODULE, "_FEW_ROWS", 0)
            bound = family_wasserstein(records, pairs, delta)
        assert sharp.distance <= bound.distance <= sharp.distance + 3
        assert bound.how == "common rows left out: 20 differ"


def test_a_million_rows() -> None:
    everyone = CountPairs.all_of(1_000_000)
    assert family_wasserstein(RecordLaws.event(0.4, 0.6), everyone).distance in (200_001.0, 200_002.0)
    uneven = family_wasserstein(RecordLaws.event(0.1, 0.3), everyone)
    # The largest move is far in the tail, where P(X > x) is about e^-100000.
    assert uneven.distance == pytest.approx(rate_bound(0.1, 0.3) * 1_000_000, rel=1e-4)
    assert family_wasserstein(RecordLaws.event(0.1, 0.3), everyone, 1e-6).distance < 201_000
    assert family_wasserstein(RecordLaws.event(0.1, 0.3), CountPairs(1_000_000, 0, 1_000_000, 1)).distance == 1.0


def rate_bound(p: float, q: float) -> float:
    """Large deviations: the largest y - x with KL(x, p) = KL(y, q), on a grid."""

    def rate(x: float, r: float) -> float:
        return x * math.log(x / r) + (1 - x) * math.log((1 - x) / (1 - r))

    best = q - p
    for step in range(1, 2000):
        x = p + (1 - p) * step / 2000
        low, high = q, 1 - 1e-12
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if rate(middle, q) < rate(x, p) else (low, middle)
        best = max(best, low - x)
    return best


# --------------------------------------------------------------------------------------------------------- whole numbers


VALUES = (0, 1, 3)
MEMBER, REST = (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)


def integers() -> RecordLaws:
    return RecordLaws(VALUES, tuple((p, p) for p in MEMBER), tuple((p, p) for p in REST))


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_whole_numbers(delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = CountPairs(6, 1, 5, 3)
    laws = {a: record_sum(VALUES, MEMBER, a, REST, 6 - a) for a in range(1, 6)}
    truth = max(close_distance(laws[a], laws[b], delta or 1e-9).distance for a in laws for b in laws if 0 < b - a <= 3)
    found = family_wasserstein(integers(), pairs, delta)
    assert found.distance >= truth
    assert found.how == "all pairs compared"
    monkeypatch.setattr(MODULE, "_FEW_POINTS", (0, 0))
    bound = family_wasserstein(integers(), pairs, delta)
    assert bound.distance >= found.distance
    assert bound.how == "3 rows moved one by one"


def test_many_whole_numbers() -> None:
    everyone = CountPairs.all_of(1_000_000)
    assert family_wasserstein(integers(), everyone).distance == 2_000_000
    # A row moves by 0.9 on average.
    assert 900_000 < family_wasserstein(integers(), everyone, 1e-6).distance < 905_000


def test_the_same_law_needs_no_move() -> None:
    assert family_wasserstein(RecordLaws.event(0.3, 0.3), CountPairs.all_of(5)).distance == 0.0


def test_what_is_refused() -> None:
    wide = RecordLaws(VALUES, ((0.4, 0.6), (0.3, 0.3), (0.1, 0.3)), tuple((p, p) for p in REST))
    with pytest.raises(UsageError, match="intervals"):
        family_wasserstein(wide, CountPairs.all_of(4))
    for delta in (-0.1, 1.0, math.nan):
        with pytest.raises(UsageError, match="delta"):
            family_wasserstein(RecordLaws.event(0.4, 0.6), CountPairs.all_of(4), delta)
