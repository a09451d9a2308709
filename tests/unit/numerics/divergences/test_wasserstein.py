"""W_inf and (W, delta)-closeness: published numbers, brute force over all sets, and never below the truth."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, chain, combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences import wasserstein
from attrpriv.numerics.divergences.transport import Measure, exact_measure, largest_matching, monotone_coupling, unmatched
from attrpriv.numerics.divergences.wasserstein import close_distance, wasserstein_inf
from attrpriv.numerics.laws.binomial import binomial_tails
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum

CHEN = {1: 0.6, 2: 0.2, 100: 0.2}, {1: 0.4, 2: 0.3, 3: 0.2, 100: 0.1}
SICK, WELL = {0: 0.2, 1: 0.225, 2: 0.5, 3: 0.075, 4: 0.0}, {0: 0.0, 1: 0.075, 2: 0.5, 3: 0.225, 4: 0.2}


def by_all_sets(p: Measure, q: Measure, within: Fraction) -> Fraction:
    """sup over sets A of P(A) - Q(A^w), one set after the other."""
    indices = range(len(p.positions))
    best = Fraction(0)
    for chosen in chain.from_iterable(combinations(indices, size) for size in range(1, len(indices) + 1)):
        near = [any(-within <= y - p.positions[i] <= within for i in chosen) for y in q.positions]
        used = sum(Fraction(weight) for weight, close in zip(q.weights, near, strict=True) if close)
        best = max(best, sum((Fraction(p.weights[i]) for i in chosen), Fraction(0)) - used)
    return best


def by_quantiles(p: Measure, q: Measure) -> Fraction:
    """The largest difference of quantiles, in the middle between every two levels at which one of them jumps."""
    sums = [list(accumulate(map(Fraction, m.weights))) for m in (p, q)]
    levels = [Fraction(0), *sorted({level for row in sums for level in row})]
    middles = [(a + b) / 2 for a, b in pairwise(levels)]
    places = [[m.positions[bisect_left(row, u)] for u in middles] for m, row in zip((p, q), sums, strict=True)]
    return max(abs(Fraction(x) - Fraction(y)) for x, y in zip(*places, strict=True))


def exact(n: int, p: float) -> Measure:
    x = Fraction(p)
    return Measure(range(n + 1), [math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(n + 1)])


laws = st.lists(st.tuples(st.integers(-4, 9), st.integers(1, 6)), min_size=1, max_size=6, unique_by=lambda t: t[0]).map(
    lambda rows: {Fraction(x, 2): Fraction(w, sum(v for _, v in rows)) for x, w in rows}
)


# ------------------------------------------------------------------------------------------------------ published numbers


def test_flu_among_four() -> None:
    found = wasserstein_inf(SICK, WELL)
    assert found.distance == 2.0
    assert max(abs(x - y) for x, y, _ in found.coupling()) == 2.0
    assert abs(found.longest[0] - found.longest[1]) == 2.0
    # Neither law is moved past the other's range, and group privacy would use 4.
    assert math.fsum(mass for _, _, mass in found.coupling()) == pytest.approx(1.0, abs=1e-15)


def test_chen_and_ohrimenko() -> None:
    assert wasserstein_inf(*CHEN).distance == 97.0
    close = close_distance(*CHEN, 0.1)
    assert (close.distance, close.ignored) == (1.0, 0.1)
    assert close_distance(*CHEN, 0.0999).distance == 97.0
    assert close_distance(*CHEN, 0.0).distance == 97.0
    assert all(abs(x - y) <= 1.0 for x, y, _ in close.matching())
    assert math.fsum(mass for _, _, mass in close.matching()) == pytest.approx(0.9, abs=1e-15)


def test_the_papers_examples() -> None:
    assert wasserstein_inf(binomial_sum(4, 0.4, 0, 0.6), binomial_sum(0, 0.4, 4, 0.6)).distance == 1.0
    assert wasserstein_inf(binomial_sum(4, 0.3, 0, 0.7), binomial_sum(0, 0.3, 4, 0.7)).distance == 2.0
    assert wasserstein_inf(binomial_sum(4, 0.0, 0, 1.0), binomial_sum(0, 0.0, 4, 1.0)).distance == 4.0
    assert wasserstein_inf(binomial_sum(4, 0.44, 0, 0.5), binomial_sum(4, 0.56, 0, 0.5)).distance == 1.0


def test_the_tables_as_printed() -> None:
    """Four decimals each: W does not depend on the rounding of the table."""
    rows = (0.0256, 0.1536, 0.3456, 0.3456, 0.1296), (0.0983, 0.3091, 0.3643, 0.1908, 0.0375)
    for row in rows:
        assert wasserstein_inf(dict(enumerate(row)), dict(enumerate(reversed(row)))).distance == 1.0


@pytest.mark.parametrize(("n", "distance"), [(4, 1), (10, 3), (20, 5), (50, 11), (100, 21)])
def test_growth_with_the_rows(n: int, distance: int) -> None:
    assert wasserstein_inf(binomial_tails(n, 0.4), binomial_tails(n, 0.6)).distance == distance
    assert wasserstein_inf(binomial_sum(n, 0.4, 0, 0.5), binomial_sum(n, 0.6, 0, 0.5)).distance == distance
    assert by_quantiles(exact(n, 0.4), exact(n, 0.6)) == distance


# ------------------------------------------------------------------------------------------------------------ the slow twins


@given(p=laws, q=laws)
@settings(max_examples=150, deadline=None)
@example(p={Fraction(0): Fraction(1)}, q={Fraction(3): Fraction(1)})
def test_distance_is_that_of_the_quantiles(p: dict[Fraction, Fraction], q: dict[Fraction, Fraction]) -> None:
    found = wasserstein_inf(p, q)
    assert Fraction(found.distance) == by_quantiles(exact_measure(p), exact_measure(q))


@given(p=laws, q=laws, twice=st.integers(0, 13))
@settings(max_examples=150, deadline=None)
def test_greedy_leaves_as_little_as_strassen_allows(
    p: dict[Fraction, Fraction], q: dict[Fraction, Fraction], twice: int
) -> None:
    first, second, within = exact_measure(p), exact_measure(q), Fraction(twice, 2)
    assert unmatched(first, second, within) == by_all_sets(first, second, within)
    assert unmatched(second, first, within) == unmatched(first, second, within)


@given(p=laws, q=laws, delta=st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.5]))
@settings(max_examples=100, deadline=None)
def test_closeness_is_the_least_distance(p: dict[Fraction, Fraction], q: dict[Fraction, Fraction], delta: float) -> None:
    found = close_distance(p, q, delta)
    first, second = exact_measure(p), exact_measure(q)
    allowed = Fraction(str(delta))
    assert by_all_sets(first, second, Fraction(found.distance)) <= allowed
    if found.distance > 0:
        assert by_all_sets(first, second, Fraction(found.distance) - Fraction(1, 4)) > allowed
    assert found.ignored <= delta


def test_a_greedy_that_takes_the_far_end_is_worse() -> None:
    """The mutant of the matching: the rightmost mass within reach leaves nothing for the next point."""
    p, q = Measure([0, 2], [1, 1]), Measure([-1, 1], [1, 1])
    free, matched = {-1, 1}, 0
    for x in (0, 2):
        near = [y for y in free if abs(x - y) <= 1]
        if near:
            free.remove(max(near))
            matched += 1
    assert matched == 1
    assert sum(mass for _, _, mass in largest_matching(p, q, 1)) == 2


@given(
    n=st.integers(1, 12),
    m=st.integers(1, 12),
    p=st.sampled_from([0.1, 0.3, 0.4, 0.5, 0.6, 0.9]),
    q=st.sampled_from([0.1, 0.3, 0.4, 0.5, 0.6, 0.9]),
)
@settings(max_examples=100, deadline=None)
def test_lattice_laws_are_never_underestimated(n: int, m: int, p: float, q: float) -> None:
    truth = by_quantiles(exact(n, p), exact(m, q))
    for first, second in (
        (binomial_sum(n, p, 0, p), binomial_sum(m, q, 0, q)),
        (binomial_tails(n, p), binomial_tails(m, q)),
    ):
        found = wasserstein_inf(first, second).distance
        assert truth <= found <= truth + 1


# ------------------------------------------------------------------------------------------------------- ties and rounding


def test_what_is_certain_does_not_move() -> None:
    """Two laws of one point, whichever way they are given."""
    for x in (-2, 0, 3):
        points = LatticeLaw.of({x: 1.0}), LatticeLaw.of({x: 1.0}), {x: 1.0}
        for p in points:
            for q in points:
                found = wasserstein_inf(p, q)
                assert (found.distance, found.longest) == (0.0, (float(x), float(x)))


@pytest.mark.parametrize(
    ("delta", "distance", "ignored"), [(0.0, 97.0, 0.0), (0.09, 97.0, 0.0), (0.1, 1.0, 0.1), (0.15, 1.0, 0.1)]
)
def test_what_is_ignored_is_what_the_distance_leaves(delta: float, distance: float, ignored: float) -> None:
    """Never more than may be, and no more than must be: of mappings exactly, of laws up to their error."""
    found = close_distance(*CHEN, delta)
    assert found.distance == distance
    assert found.ignored <= delta
    assert found.ignored == pytest.approx(ignored, abs=1e-15)
    one, other = (LatticeLaw.of(law) for law in CHEN)
    near = close_distance(one, other, delta + 1e-9)
    assert near.distance == distance
    assert ignored <= near.ignored <= min(delta + 1e-9, ignored + 1e-12)


def test_a_tie_of_floats_counts_as_the_longer_move() -> None:
    """Two laws with the same floats need not be the same law: within their error one may need a move."""
    p, q = LatticeLaw.of({0: 0.3, 1: 0.7}), LatticeLaw.of({0: 0.3, 1: 0.7})
    assert wasserstein_inf(p, q).distance == 1.0
    assert wasserstein_inf(p, p).distance == 0.0


def test_a_tie_of_decimals_is_a_tie() -> None:
    """0.1 + 0.2 is 0.3, whatever floats say."""
    p, q = {0: 0.1, 1: 0.2, 10: 0.7}, {0: 0.2, 1: 0.1, 10: 0.7}
    assert wasserstein_inf(p, q).distance == 1.0
    naive = np.cumsum([0.1, 0.2, 0.7]), np.cumsum([0.2, 0.1, 0.7])
    assert wasserstein_inf({0: 0.3, 5: 0.7}, {-1: 0.1, 0: 0.2, 5: 0.7}).distance == 1.0
    assert naive[0][1] == naive[1][1] != 0.3  # the float sum is above 0.3: a comparison of floats would see a move from 5


def test_the_far_tails_decide() -> None:
    """Windows that leave out 1e-9 hide the longest move: they are refused, not used."""
    windows = [binomial_sum(1000, p, 0, p, tail=1e-9) for p in (0.1, 0.3)]
    with pytest.raises(UsageError, match="whole support"):
        wasserstein_inf(windows[0], windows[1])
    whole = wasserstein_inf(binomial_tails(1000, 0.1), binomial_tails(1000, 0.3)).distance
    close = close_distance(windows[0], windows[1], 1e-6)
    assert close.distance < 240 < whole == 290
    assert close.ignored <= 1e-6


def test_without_its_error_bound_the_distance_is_too_small() -> None:
    """The mutant: where P(X <= x) rounds to 1 every y looks far enough, and the tails are never asked."""
    tails = [binomial_tails(20_000, p) for p in (0.1, 0.3)]
    careless = [replace(law, error=0.0) for law in tails]
    found = wasserstein_inf(tails[0], tails[1]).distance
    assert wasserstein_inf(careless[0], careless[1]).distance < 5000 < found
    # An error bound a hundred times as large changes nothing: what decides is not a tie.
    cautious = [replace(law, error=100 * law.error) for law in tails]
    assert wasserstein_inf(cautious[0], cautious[1]).distance == found


def test_what_is_lost_counts_as_ignored() -> None:
    laws = [binomial_sum(60, p, 0, p, tail=1e-4) for p in (0.4, 0.6)]
    lost = sum(law.distance for law in laws)
    exactly = close_distance(binomial_sum(60, 0.4, 0, 0.4), binomial_sum(60, 0.6, 0, 0.6), 1e-3)
    assert close_distance(laws[0], laws[1], 1e-3).distance >= exactly.distance
    with pytest.raises(UsageError, match="leave out"):
        close_distance(laws[0], laws[1], lost / 2)


def test_couplings_have_the_right_margins() -> None:
    p, q = binomial_sum(5, 0.4, 0, 0.4), binomial_sum(5, 0.7, 0, 0.7)
    rows = wasserstein_inf(p, q).coupling()
    for which, law in ((0, p), (1, q)):
        for k, mass in enumerate(law.masses):
            assert math.fsum(row[2] for row in rows if row[which] == k) == pytest.approx(float(mass), abs=1e-14)


def test_a_mapping_against_a_law() -> None:
    law = binomial_sum(4, 0.4, 0, 0.4)
    other = {k: float(mass) for k, mass in enumerate(binomial_sum(4, 0.6, 0, 0.6).masses)}
    assert wasserstein_inf(law, other).distance == 1.0
    assert close_distance(law, other, 0.2).distance == 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: wasserstein_inf({0: 0.5, 1: 0.6}, {0: 1.0}),
        lambda: wasserstein_inf({0: 1.5, 1: -0.5}, {0: 1.0}),
        lambda: wasserstein_inf({}, {0: 1.0}),
        lambda: wasserstein_inf({math.nan: 1.0}, {0: 1.0}),
        lambda: wasserstein_inf({0: math.nan}, {0: 1.0}),
        lambda: wasserstein_inf({0.5: 1.0}, binomial_sum(2, 0.5, 0, 0.5)),
        lambda: close_distance({0: 1.0}, {0: 1.0}, -0.1),
        lambda: close_distance({0: 1.0}, {0: 1.0}, math.nan),
        lambda: wasserstein_inf(binomial_tails(3, 0.5), binomial_tails(3, 0.6)).coupling(),
    ],
)
def test_what_is_refused(make: object) -> None:
    with pytest.raises(UsageError):
        make()  # type: ignore[operator]


def test_the_monotone_coupling_uses_up_both() -> None:
    p, q = exact_measure({0: 0.5, 1: 0.5}), exact_measure({0: 0.25, 2: 0.75})
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    assert monotone_coupling(p, q) == [(0, 0, quarter), (0, 2, quarter), (1, 2, half)]


def test_the_least_weight_that_can_be_told_is_kept() -> None:
    """A mass of one unit is a mass; what is below a unit is rounded down to none."""
    unit = 2.0**-wasserstein._DIGITS
    made = wasserstein._lattice_measure(LatticeLaw(3, np.array([0.5, unit, unit / 2, 0.0, 0.25]), 0.0, 0.0))
    assert list(made.positions) == [3, 4, 7]
    assert list(made.weights) == [2 ** (wasserstein._DIGITS - 1), 1, 2 ** (wasserstein._DIGITS - 2)]
