"""The ratio recursion: the asked numbers, its ends, long chains, chains that never forget; mistakes of callers.

That it is never below the truth is in tests/property/test_chain_ratio.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.chain_curve import chain_budget, chain_epsilon, largest_rate
from attrpriv.numerics.calibration.chain_quilt import chain_loss, chain_score
from attrpriv.numerics.divergences.chain_ratio import ChainRatio
from attrpriv.numerics.laws.chain_family import ChainFamily
from attrpriv.numerics.laws.markov import MarkovChain
from tests.unit.numerics.laws.test_markov import PAPER, chains


def symmetric(stay: float, initial: float = 0.5) -> MarkovChain:
    return MarkovChain((initial, 1 - initial), ((stay, 1 - stay), (1 - stay, stay)))


@pytest.mark.parametrize(("epsilon", "stay", "scale"), [(0.2, 0.6, 7.50), (1, 0.6, 1.47), (1, 0.9, 8.65), (5, 0.9, 0.80)])
def test_scales_of_one_count(epsilon: float, stay: float, scale: float) -> None:
    b = chain_budget([symmetric(stay)], 100, epsilon)
    assert 0.99 * scale < 1 / b <= scale
    assert epsilon * (1 - 1e-8) <= chain_epsilon([symmetric(stay)], 100, b) <= epsilon


def test_the_published_chain_and_ten_counts() -> None:
    assert 1 / chain_budget([PAPER], 100, 1.0) <= 3.35
    assert 10 / chain_budget([symmetric(0.9)], 100, 1.0) <= 86.5


def test_independent_entries_lose_b_and_entries_that_never_change_lose_all() -> None:
    assert chain_epsilon([symmetric(0.5)], 50, 0.3) == pytest.approx(0.3, rel=1e-9)
    assert chain_epsilon([symmetric(1.0)], 50, 0.3) == pytest.approx(15.0, rel=1e-9)
    assert chain_epsilon([symmetric(0.0)], 50, 0.3) == pytest.approx(15.0, rel=1e-9)
    assert chain_budget([symmetric(1.0)], 50, 1.0) == pytest.approx(0.02, rel=1e-6)


def test_a_long_chain_that_goes_round_is_bounded_by_its_rounds() -> None:
    """Pairs of states of different phases never meet, and cost nothing; the laws come back every second step."""
    rows = ((0.0, 0.0, 0.9, 0.1), (0.0, 0.0, 0.2, 0.8), (0.5, 0.5, 0.0, 0.0), (0.4, 0.6, 0.0, 0.0))
    chain = MarkovChain((0.3, 0.7, 0.0, 0.0), rows)
    long, short = chain_epsilon([chain], 10**6, 0.3), chain_epsilon([chain], 300, 0.3)
    assert short * (1 - 1e-3) <= long <= short * (1 + 1e-3)
    assert long < 1


def test_a_chain_that_never_settles_counts_as_one_group_where_it_is_too_long() -> None:
    absorbed = MarkovChain((1.0, 0.0), ((0.9, 0.1), (0.0, 1.0)))
    assert chain_epsilon([absorbed], 10**6, 1e-6) <= 1.0 * (1 + 1e-9)
    assert chain_epsilon([absorbed], 1000, 1e-3) <= 1.0 * (1 + 1e-9)


def test_the_worst_chain_of_a_list_counts() -> None:
    both = [symmetric(0.6), symmetric(0.9)]
    assert chain_epsilon(both, 30, 0.2) == chain_epsilon(both[1:], 30, 0.2) > chain_epsilon(both[:1], 30, 0.2)
    assert chain_budget(both, 30, 1.0) == pytest.approx(chain_budget(both[1:], 30, 1.0), rel=1e-9)


def test_a_known_entry_is_skipped() -> None:
    known = MarkovChain((1.0, 0.0), ((1.0, 0.0), (0.5, 0.5)))
    assert chain_epsilon([known], 20, 1.0) == 0
    with pytest.raises(UsageError, match="nothing to hide"):
        chain_budget([known], 20, 1.0)
    assert chain_epsilon([MarkovChain((1.0, 0.0), ((0.5, 0.5), (0.5, 0.5)))], 20, 1.0) == pytest.approx(1.0)


@pytest.mark.parametrize("stay", [0.6, 0.9, 0.05])
def test_long_chains_lose_what_shorter_ones_do_in_the_limit(stay: float) -> None:
    """The bound for all later steps is near the steps themselves, and above them."""
    chain = symmetric(stay, 0.3)
    long, short = chain_epsilon([chain], 10**6, 0.1), chain_epsilon([chain], 3000, 0.1)
    assert short * (1 - 1e-12) <= long <= short * (1 + 1e-6)


def test_a_chain_longer_than_what_is_computed_step_by_step() -> None:
    """Slow chains: the bound for later entries is taken before it is near, and stays one."""
    chain = symmetric(0.9999)
    ends = [chain_epsilon([chain], length, 1e-4) for length in (1000, 4000, 6000, 10**6)]
    assert ends == sorted(ends)
    assert ends[-1] < 1e-4 / 1e-4  # half of b/(1 - stay) on either side


@given(chains(), st.integers(1, 40), st.floats(0.01, 2.0))
@settings(max_examples=25, deadline=None)
def test_from_b_to_all_entries_as_one_group(chain: MarkovChain, length: int, b: float) -> None:
    found = chain_epsilon([chain], length, b)
    assert found == 0 or b <= found <= length * b * (1 + 1e-9)
    assert chain_epsilon([chain], length, 1.5 * b) >= found * (1 - 1e-6)
    assert chain_epsilon([chain], length + 3, b) >= found * (1 - 1e-2 * (chain.states > 3) - 1e-9) or found == 0


@given(chains(), st.integers(2, 40), st.sampled_from([0.2, 1.0, 4.0]))
@settings(max_examples=12, deadline=None)
def test_the_budget_is_confirmed_by_the_curve(chain: MarkovChain, length: int, epsilon: float) -> None:
    if ChainRatio(chain, length).nothing:
        return
    b = chain_budget([chain], length, epsilon)
    assert chain_epsilon([chain], length, b) <= epsilon
    assert b >= epsilon / length * (1 - 1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.floats(0.02, 1.0))
@settings(max_examples=12, deadline=None)
def test_two_states_never_lose_more_than_the_quilts_say(seed: int, length: int, b: float) -> None:
    rows = np.random.default_rng(seed).dirichlet((0.5, 0.5), size=3)
    chain = MarkovChain(tuple(rows[0]), (tuple(rows[1]), tuple(rows[2])))
    quilts = chain_loss(chain, length, b, chain_score(chain, length, 1.0).shapes)
    assert chain_epsilon([chain], length, b) <= quilts * (1 + 1e-8)


def test_laws_that_floats_do_not_know_count_as_the_worst() -> None:
    tiny = MarkovChain((1.0, 0.0), ((1 - 1e-200, 1e-200), (1 - 1e-200, 1e-200)))
    assert 0.5 <= chain_epsilon([tiny], 5, 0.5) <= 2.5 * (1 + 1e-9)


def test_mistakes_are_named() -> None:
    chain = symmetric(0.6)
    for b in (-1.0, math.nan, math.inf, 1e4):
        with pytest.raises(UsageError, match="b: must be from 0 to 400"):
            chain_epsilon([chain], 10, b)
    for epsilon in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(UsageError, match="epsilon: must be positive"):
            chain_budget([chain], 10, epsilon)
    with pytest.raises(UsageError, match="length: must be at least 1"):
        chain_epsilon([chain], 0, 1.0)
    with pytest.raises(UsageError, match="at least one"):
        chain_epsilon([], 10, 1.0)


def test_families_of_chains() -> None:
    """Any start costs little where the chain forgets fast; wider intervals cost more; one law is a family of its own."""
    exact, wide = ((0.9, 0.1), (0.1, 0.9)), ChainFamily(((0.8, 0.1), (0.1, 0.8)), ((0.9, 0.2), (0.2, 0.9)))
    alone, anywhere = chain_budget([symmetric(0.9)], 100, 1.0), chain_budget([ChainFamily(exact, exact)], 100, 1.0)
    assert 0.97 * alone < anywhere < alone
    assert chain_budget([wide], 100, 1.0) <= anywhere
    assert chain_epsilon([wide], 1, 0.7) == pytest.approx(0.7)
    assert wide.corners(0) == ((0.9, 0.1), (0.8, 0.2))
    assert len(ChainFamily(((0.2, 0.2, 0.2),) * 3, ((0.5, 0.5, 0.5),) * 3).corners(1)) == 6


@pytest.mark.parametrize(
    ("lower", "upper", "says"),
    [
        (((0.5, 0.6), (0.5, 0.5)), ((0.6, 0.7), (0.5, 0.5)), "row 1: must hold a law that sums to 1"),
        (((0.6, 0.4), (0.5, 0.5)), ((0.5, 0.5), (0.5, 0.5)), "row 1: must be probabilities or intervals"),
        (((0.5, 0.4), (0.5, 0.5)), ((0.5, 0.4), (0.5, 0.5)), "row 1: must sum to 1"),
        (((math.nan, 0.4), (0.5, 0.5)), ((0.5, 0.5), (0.5, 0.5)), "row 1: must be probabilities or intervals"),
        (((0.5,), (0.5, 0.5)), ((0.5, 0.5), (0.5, 0.5)), "row 1: must have one probability or interval for each of 2"),
        (((0.1,) * 6,) * 6, ((0.3,) * 6,) * 6, "intervals are for up to 5 states"),
    ],
)
def test_families_that_cannot_be(lower: tuple[tuple[float, ...], ...], upper: tuple[tuple[float, ...], ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        ChainFamily(lower, upper)


def test_the_search_returns_what_it_was_shown() -> None:
    asked: list[float] = []

    def loss(rate: float) -> float:
        asked.append(rate)
        return 3 * rate + rate**2

    found = largest_rate(loss, 1.0, 1e-3, 5.0, 1e-9)
    assert found in asked
    assert 1 - 1e-8 < loss(found) <= 1
    with pytest.raises(UsageError, match="no positive rate is private"):
        largest_rate(lambda rate: 2.0, 1.0, 1e-3, 5.0, 1e-3)
