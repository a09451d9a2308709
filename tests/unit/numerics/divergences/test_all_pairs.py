"""All pairs by brute force: against exact fractions, and with every error added upward."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.all_pairs import _window, all_pairs_delta, all_pairs_loss
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum

# Masses that floats hold exactly, so that the fractions are the truth.
MASSES = st.lists(st.integers(0, 16), min_size=1, max_size=6).filter(any)


@st.composite
def exact_laws(draw: st.DrawFn) -> list[dict[int, Fraction]]:
    """Laws with denominators 64: whole numbers that sum to 64, at a random place."""
    laws = []
    for _ in range(draw(st.integers(2, 5))):
        masses = draw(MASSES)
        masses[-1] += 64 * len(masses) - sum(masses)
        start = draw(st.integers(-2, 2))
        laws.append({start + k: Fraction(m, 64 * len(masses)) for k, m in enumerate(masses)})
    return laws


def lattice(law: dict[int, Fraction]) -> LatticeLaw:
    return LatticeLaw.of({value: float(mass) for value, mass in law.items()})


def excess(p: dict[int, Fraction], q: dict[int, Fraction], growth: Fraction) -> Fraction:
    return sum((max(Fraction(0), mass - growth * q.get(value, Fraction(0))) for value, mass in p.items()), Fraction(0))


@given(laws=exact_laws(), apart=st.sampled_from([None, 1, 2]))
@settings(max_examples=100)
def test_delta_is_the_brute_force(laws: list[dict[int, Fraction]], apart: int | None) -> None:
    epsilon = 0.5
    growth = Fraction(math.exp(epsilon))  # a float within one unit of rounding
    reach = apart or len(laws)
    pairs = [(a, b) for a, b in itertools.permutations(range(len(laws)), 2) if abs(a - b) <= reach]
    truth = max(excess(laws[a], laws[b], growth) for a, b in pairs)
    found = all_pairs_delta([lattice(law) for law in laws], epsilon, apart=apart)
    assert found.pair in pairs
    assert float(truth) <= found.upper <= float(truth) + 1e-13


@given(laws=exact_laws(), apart=st.sampled_from([None, 1, 2]))
@settings(max_examples=100)
def test_loss_is_the_brute_force(laws: list[dict[int, Fraction]], apart: int | None) -> None:
    reach = apart or len(laws)
    truth = 0.0
    for a, b in itertools.permutations(range(len(laws)), 2):
        if abs(a - b) <= reach:
            for value, mass in laws[a].items():
                other = laws[b].get(value, Fraction(0))
                truth = max(truth, (math.log(mass / other) if other else math.inf) if mass else 0.0)
    found = all_pairs_loss([lattice(law) for law in laws], apart=apart)
    assert truth <= found.upper <= truth + 1e-12


def test_what_a_law_lost_is_charged_both_ways() -> None:
    whole = [binomial_sum(a, 0.45, 40 - a, 0.55) for a in (0, 10)]
    lossy = [LatticeLaw(law.start, law.masses, math.inf, 1e-3) for law in whole]
    bare, charged = (all_pairs_delta(laws, 1.0).upper for laws in (whole, lossy))
    assert charged - bare == pytest.approx((1 + math.e) * 1e-3, rel=1e-6)


def test_the_pair_of_the_first_example() -> None:
    laws = [binomial_sum(a, 0.4, 4 - a, 0.6) for a in range(5)]
    assert sorted(all_pairs_delta(laws, 1.0).pair) == [0, 4]
    assert all_pairs_loss(laws).upper == pytest.approx(4 * math.log(1.5), rel=1e-12)
    assert all_pairs_loss(laws, apart=1).upper == pytest.approx(math.log(1.5), rel=1e-12)


def test_both_directions_are_looked_at() -> None:
    """A point inside a wide law: from the wide law's side nearly everything is told apart, from the point's side little."""
    wide, point = LatticeLaw.of(dict.fromkeys(range(8), 0.125)), LatticeLaw.of({0: 0.125, 1: 0.875})
    one_way = float(np.maximum(np.array([0.125, 0.875]) - math.e * 0.125, 0).sum())
    assert one_way < 0.6
    assert all_pairs_delta([point, wide], 1.0).upper == pytest.approx(0.75, abs=1e-12)
    assert all_pairs_delta([wide, point], 1.0).upper == pytest.approx(0.75, abs=1e-12)


def test_far_laws_are_told_apart_completely() -> None:
    laws = [LatticeLaw.of({0: 1.0}), LatticeLaw.of({100: 1.0})]
    assert all_pairs_delta(laws, 3.0).upper == 1.0
    assert all_pairs_loss(laws).upper == math.inf


def test_bad_arguments() -> None:
    law = LatticeLaw.of({0: 1.0})
    with pytest.raises(UsageError, match="laws: needs two"):
        all_pairs_delta([law], 1.0)
    with pytest.raises(UsageError, match="epsilon"):
        all_pairs_delta([law, law], math.nan)
    with pytest.raises(UsageError, match="apart"):
        all_pairs_delta([law, law], 1.0, apart=0)
    with pytest.raises(UsageError, match="pure epsilon needs"):
        all_pairs_loss([binomial_sum(1, 0.5, 999, 0.5, tail=1e-9), law])


@pytest.mark.parametrize(("left", "right"), [(0, 0), (4, 0), (0, 4), (4, 4), (3, 4)])
def test_what_is_outside_of_a_window_is_charged_at_both_ends(left: int, right: int) -> None:
    masses = np.array([2e-23] * left + [0.5, 0.5] + [2e-23] * right)
    window, cut = _window(masses)
    assert (window.start, window.stop) == (left, left + 2)
    assert 2e-23 * (left + right) * (1 - 1e-12) <= cut <= 2e-23 * (left + right) * (1 + 1e-9)


def some_laws(seed: int, *, pointwise: bool) -> list[LatticeLaw]:
    """Laws at different places, each with an error of its own, so large that it shows."""
    rng = np.random.default_rng(seed)
    lost = [0.0, 0.002, 0.03, 0.011, 0.007]
    error = [0.01, 0.2, 0.05, 0.11, 0.03]
    places = [(-1, 6), (0, 5), (-2, 7), (1, 4), (-1, 5)]
    return [
        LatticeLaw(start, rng.dirichlet(np.ones(size)), e if pointwise else math.inf, 0.0 if pointwise else gone)
        for (start, size), e, gone in zip(places, error, lost, strict=True)
    ]


def at(law: LatticeLaw, k: int) -> float:
    return float(law.masses[k - law.start]) if law.start <= k <= law.end else 0.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("apart", [None, 1, 2, 4, 9])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.2])
def test_what_each_law_lost_is_charged_to_its_own_pairs(seed: int, apart: int | None, epsilon: float) -> None:
    """The first law's loss once, the second's e^epsilon times; the pair that is named is the one that needs most."""
    laws = some_laws(seed, pointwise=False)
    needed = {}
    for a, b in itertools.permutations(range(5), 2):
        if abs(a - b) <= (apart or 5):
            told = sum(max(0.0, at(laws[a], k) - math.exp(epsilon) * at(laws[b], k)) for k in range(-2, 6))
            needed[a, b] = min(1.0, told + laws[a].distance + math.exp(epsilon) * laws[b].distance)
    found = all_pairs_delta(laws, epsilon, apart=apart)
    assert found.upper == pytest.approx(max(needed.values()), rel=1e-12)
    assert found.upper >= max(needed.values()) * (1 - 1e-15)
    assert needed[found.pair] == max(needed.values())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("apart", [None, 1, 2, 4, 9])
def test_the_largest_error_of_any_law_is_added_to_a_loss(seed: int, apart: int | None) -> None:
    """All five on the same values, so that every ratio is finite; each mass may be off, on either side."""
    laws = [LatticeLaw(3, law.masses[:4] / law.masses[:4].sum(), law.error, 0.0) for law in some_laws(seed, pointwise=True)]
    needed = {
        (a, b): float(np.log(laws[a].masses / laws[b].masses).max())
        for a, b in itertools.permutations(range(5), 2)
        if abs(a - b) <= (apart or 5)
    }
    found = all_pairs_loss(laws, apart=apart)
    assert needed[found.pair] == pytest.approx(max(needed.values()), rel=1e-12)
    wanted = max(needed.values()) + math.log1p(0.2) - math.log1p(-0.2)
    assert wanted * (1 - 1e-15) <= found.upper <= wanted + 1e-12


def test_epsilons_and_lists_at_the_edge() -> None:
    law = [LatticeLaw.of({0: 0.25, 1: 0.75}), LatticeLaw.of({0: 0.5, 1: 0.5})]
    assert all_pairs_delta(law, 0.0, apart=1).upper == pytest.approx(0.25, rel=1e-12)
    assert all_pairs_loss(law, apart=1).upper == pytest.approx(math.log(2), rel=1e-12)
    for epsilon in (-1e-9, math.inf, -math.inf):
        with pytest.raises(UsageError, match="epsilon"):
            all_pairs_delta(law, epsilon)
    for few in ([], law[:1]):
        for compared in (lambda laws: all_pairs_delta(laws, 1.0), all_pairs_loss):
            with pytest.raises(UsageError, match="two or more"):
                compared(few)
    with pytest.raises(UsageError, match="pure epsilon"):
        all_pairs_loss([law[0], LatticeLaw(0, law[1].masses, math.inf, 0.0)])


def test_equal_laws_show_nothing_and_tiny_ends_are_charged() -> None:
    """Ends with next to no mass are left out of the sums, and added."""
    law = LatticeLaw.of({0: 0.25, 1: 0.75})
    assert 0.0 <= all_pairs_delta([law, law], 0.0).upper <= 1e-14
    assert 0.0 <= all_pairs_loss([law, law]).upper <= 1e-13
    gap = LatticeLaw.of({0: 0.25, 3: 0.75})  # values that no law has tell nothing
    assert 0.0 <= all_pairs_loss([gap, gap]).upper <= 1e-13
    ends = LatticeLaw(0, np.array([4e-23, 0.5, 0.5, 5e-23]), 0.0, 0.0)
    inner = LatticeLaw(1, np.array([0.5, 0.5]), 0.0, 0.0)
    assert 9e-23 <= all_pairs_delta([ends, inner], 0.0).upper <= 9e-23 + 1e-14
    # At an epsilon at which nothing else shows, the ends alone: the inner law has none.
    assert 9e-23 <= all_pairs_delta([ends, inner], 3.0).upper <= 9e-23 * (1 + 1e-12)
    assert all_pairs_loss([ends, inner]).upper == math.inf
