"""The parts of the ratio recursion in fractions; what it adds for rounding, for laws that drift, for chains that are off."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.chain_ratio import (
    LARGEST_COST,
    ChainRatio,
    _backward,
    _followed,
    _forward,
    _Laws,
    _together,
    cost_table,
)
from attrpriv.numerics.divergences.ratio_step import Kernel, Ratios, Stage
from attrpriv.numerics.laws.chain_family import ChainFamily
from attrpriv.numerics.laws.markov import MarkovChain
from tests.property.chain_twin import exact_ratio
from tests.unit.numerics.divergences.test_chain_ratio_laws import CHAINS, chain_of

STAYS = MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
BOTH = np.arange(2)


@pytest.mark.parametrize("drift", [0.01, 0.5])
def test_laws_that_drift_make_a_step_back_looser(drift: float) -> None:
    """Where log p(z)/q(z) of two laws before spans the drift, ratios of means of either are off by that much, on both sides."""
    laws = _Laws(STAYS, 100, 100)
    assert laws.reversed(3, drift=drift).slack >= laws.reversed(3).slack + 2 * drift
    assert laws.reversed(3).slack > 0


@pytest.mark.parametrize("change", [0.01, 0.5])
def test_a_chain_that_is_off_makes_a_step_looser(change: float) -> None:
    exact = _forward(STAYS, BOTH, None, 0.0).slack
    assert exact > 0
    assert _forward(STAYS, BOTH, None, change).slack >= exact + change * (1 - 1e-12)


@pytest.mark.parametrize("change", [0.01, 0.1])
def test_a_chain_that_is_off_is_covered(change: float) -> None:
    """Rows (0.9, 0.1) and (0.1, 0.9): ratios of two entries of a column are off by e^change in one that is further apart."""
    own = ChainRatio(STAYS, 6, change=change).epsilon(0.2)
    # With (1 - s)/s in place of 9, and from any start.
    s = 1 / (1 + 9 * np.exp(change))
    for start in (0.5, 0.01, 0.99):
        other = MarkovChain((start, 1 - start), ((1 - s, s), (s, 1 - s)))
        assert ChainRatio(other, 6).epsilon(0.2) <= own
    assert own > ChainRatio(STAYS, 6).epsilon(0.2)


@pytest.mark.parametrize(
    "cost", [-0.1, [[0.0, -0.1], [0.1, 0.0]], float("nan"), [[0.0, float("inf")], [0.1, 0.0]], LARGEST_COST * 1.001]
)
def test_what_is_no_cost(cost: float | list[list[float]]) -> None:
    with pytest.raises(UsageError, match="must be from 0"):
        cost_table(np.array(cost), 2)


# ------------------------------------------------------------------------------------------------------------------ the steps


def test_steps_forward_have_the_rows_that_are_reached() -> None:
    """Of a chain its matrix, of intervals all corners of each row with the row they belong to."""
    kernel = _forward(chain_of("unreachable"), BOTH, None, 0.0)
    assert kernel.law is not None
    assert kernel.law.tolist() == [[0.75, 0.25], [0.375, 0.625]]
    assert kernel.owner.tolist() == [0, 1]
    wide = ChainFamily(((0.8, 0.1), (0.25, 0.75)), ((0.9, 0.2), (0.25, 0.75)))
    kernel = _forward(wide, BOTH, None, 0.0)
    assert kernel.law is not None
    assert kernel.owner.tolist() == [0, 0, 1]
    assert sorted(kernel.law.tolist()) == [[0.25, 0.75], [0.8, 0.2], [0.9, 0.1]]


def test_what_single_rows_say_of_the_entry_before() -> None:
    """P(z, x)/P(z, x'), the largest over corners; 0 where x is impossible, also against another that is."""
    rows = ((0.5, 0.25, 0.25), (0.0, 1.0, 0.0), (0.125, 0.5, 0.375))
    start = (0.25, 0.5, 0.25)
    for change in (0.0, 0.5):
        for chain in (MarkovChain(start, rows), ChainFamily(rows, rows)):
            gain = _backward(chain, np.arange(3), change).gain
            for z, x, y in itertools.product(range(3), repeat=3):
                p, q = rows[z][x], rows[z][y]
                assert gain[z, x, y] == pytest.approx((p / q if q else math.inf * bool(p)) * math.exp(change) if p else 0.0)
    wide = ChainFamily(((0.8, 0.1), (0.25, 0.75)), ((0.9, 0.2), (0.25, 0.75)))
    assert _backward(wide, BOTH, 0.0).gain == pytest.approx(np.array([[[1, 9], [0.25, 1]], [[1, 1 / 3], [3, 1]]]))


def test_the_worst_entry_is_found_among_its_own_values() -> None:
    """r + log V_past + log V_future by loops: entries with other values, future ratios at the places of those values."""
    rng = np.random.default_rng(3)
    cost = rng.uniform(0.1, 1, (4, 4))
    for held in ([[0, 2], [1, 2, 3], [2]], [[1, 3], [1, 3], [0]], [[0, 3], [3], [2]]):
        sides = []
        worst = 0.0
        for states in held:
            past, future = rng.uniform(1, 3, (len(states),) * 2), rng.uniform(1, 3, (4, 4))
            np.fill_diagonal(past, 1.0)
            np.fill_diagonal(future, 1.0)
            sides.append((Ratios(np.array(states), past), Ratios(np.arange(4), future)))
            for (i, x), (j, y) in itertools.permutations(enumerate(states), 2):
                worst = max(worst, cost[x, y] + math.log(past[i, j] * future[x, y]))
        np.fill_diagonal(cost, 0.0)
        assert _together(sides, cost) == pytest.approx(worst, rel=1e-14)
    assert _together([sides[2]], cost) == 0.0


COSTS = np.array([[0.0, 0.3, 0.2], [0.4, 0.0, 0.5], [0.1, 0.6, 0.0]])


@pytest.mark.parametrize(("steps", "most"), [(1, 3), (2, 3), (5, 3), (120, 3), (11, 10), (120, 20), (120, 100)])
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_bounds_for_all_later_steps_are_above_each_of_them(steps: int, most: int, turns: int) -> None:
    """Each step that is made is the one of its stage; each bound is for the steps of one stage, and nearly the last of them."""
    laws = [
        np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]]),
        np.array([[0.4, 0.5, 0.1], [0.3, 0.3, 0.4], [0.1, 0.3, 0.6]]),
    ]
    laws.append(laws[0] @ laws[1])
    stages: list[Stage] = [Kernel(np.arange(3), np.arange(3), np.arange(3), law, 0.0) for law in laws[:turns]]
    start = Ratios(np.arange(3), np.ones((3, 3)))
    all_of, at = [], start
    for k in range(150):
        at = stages[k % turns].step(at, COSTS)
        all_of.append(at.values)
    found, later = _followed(stages, steps, COSTS, [start], most)
    made = len(found) - 1
    assert made == steps or (later is not None and made % turns == 0)
    for mine, wanted in zip(found[1:], all_of, strict=False):
        assert (mine.values == wanted).all()
    if later is None:
        assert made == steps
        return
    assert len(later) == turns
    for k in range(made, 150):
        bound = later[k % turns].values
        assert (bound >= all_of[k]).all()
        if most == 100:
            assert (np.log(bound / all_of[147 + (k - 147) % turns]) <= 1e-9).all()


def test_no_bound_is_none() -> None:
    """A chain that never forgets: what is told of an entry grows with every step."""
    stays = Kernel(BOTH, BOTH, BOTH, np.eye(2), 0.0)
    found, later = _followed([stays], 40, np.array([[0.0, 0.5], [0.5, 0.0]]), [Ratios(BOTH, np.ones((2, 2)))], 10)
    assert later is None
    assert 11 <= len(found) < 41
    assert found[10].values[0, 1] == pytest.approx(math.exp(5.0))


# ------------------------------------------------------------------------------------------------------------------ the whole


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("length", [1, 2, 3, 13, 30])
def test_it_is_the_recursion_in_fractions(name: str, length: int) -> None:
    """Every entry by itself, nothing settled: above, and hardly. Costs differ by pair and by direction."""
    initial, rows = CHAINS[name]
    if len(initial) > 3:
        return
    factors = [
        [Fraction(1), Fraction(5, 4), Fraction(11, 8)],
        [Fraction(3, 2), Fraction(1), Fraction(9, 8)],
        [Fraction(5, 4), Fraction(2), Fraction(1)],
    ]
    digits = [[mpmath.mpf(Fraction(p).numerator) / Fraction(p).denominator for p in row] for row in (initial, *rows)]
    truth = float(mpmath.log(exact_ratio(digits[0], digits[1:], length, lambda x, y: factors[x][y])))
    table = np.log(np.array(factors, dtype=np.float64))[: len(initial), : len(initial)]
    found = ChainRatio(chain_of(name), length).epsilon(table)
    assert truth * (1 - 1e-15) <= found <= truth * (1 + 2e-8) + 2e-14


def by_loops(chain: MarkovChain, length: int, cost: np.ndarray) -> float:
    """The recursion of two states, step by step: f as large, or as small, as one of its values lets the other be."""
    law, before, rows = chain.start(), [np.ones((2, 2))], chain.matrix()

    def stepped(step: np.ndarray, ratio: np.ndarray) -> np.ndarray:
        up, down = (ratio * np.exp(cost))[[0, 1], [1, 0]]
        means = np.array([step @ np.array([up, 1.0]), step @ np.array([1.0, down])])
        return np.asarray((means[:, :, None] / means[:, None, :]).max(axis=0))

    after = [np.ones((2, 2))]
    for _ in range(length - 1):
        after.append(stepped(rows, after[-1]))
        joint = law[:, None] * rows
        before.append(stepped((joint / joint.sum(axis=0)).T, before[-1]))
        law = joint.sum(axis=0)
    both = [past * future for past, future in zip(before, after[::-1], strict=True)]
    return max(float((cost + np.log(one))[[0, 1], [1, 0]].max()) for one in both)


@pytest.mark.parametrize("start", [0.5, 0.25, 0.9375])
@pytest.mark.parametrize("length", [17, 60, 300])
@pytest.mark.parametrize("rows", [((0.9, 0.1), (0.1, 0.9)), ((0.875, 0.125), (0.375, 0.625)), ((0.125, 0.875), (0.75, 0.25))])
def test_long_chains_whose_ends_are_bounded(rows: tuple[tuple[float, ...], ...], length: int, start: float) -> None:
    cost, chain = np.array([[0.0, 0.3], [0.45, 0.0]]), MarkovChain((start, 1 - start), rows)
    truth = by_loops(chain, length, cost)
    assert truth * (1 - 1e-12) <= ChainRatio(chain, length).epsilon(cost) <= truth * (1 + 1e-6)


@pytest.mark.parametrize("length", [2, 7, 50])
def test_where_a_chain_is_off_its_start_is_any(length: int) -> None:
    """By very little: what the same matrix loses from any start, of which the stated one is too good an example."""
    rows = ((0.875, 0.125), (0.375, 0.625))
    off = ChainRatio(MarkovChain((0.75, 0.25), rows), length, change=1e-9).epsilon(0.4)
    any_start = ChainRatio(ChainFamily(rows, rows), length).epsilon(0.4)
    assert any_start * (1 - 1e-12) <= off <= any_start * (1 + 1e-6)
    assert ChainRatio(MarkovChain((0.75, 0.25), rows), length).epsilon(0.4) < any_start * (1 - 1e-3)


def test_one_entry_costs_what_it_costs() -> None:
    """The larger of both directions; nothing where there is one value, or no cost."""
    assert ChainRatio(STAYS, 1).epsilon(np.array([[0.0, 0.3], [0.7, 0.0]])) == pytest.approx(0.7, rel=1e-11)
    assert ChainRatio(MarkovChain((1.0, 0.0), ((0.5, 0.5), (0.5, 0.5))), 1).epsilon(0.7) == 0.0
    assert ChainRatio(STAYS, 9).epsilon(0.0) == 0.0
    with pytest.raises(UsageError, match="length"):
        ChainRatio(STAYS, 0)


def test_where_no_bound_is_found_all_entries_count_as_one_group() -> None:
    """An entry that never changes, and one that is too far away for its ratio to be a float."""
    frozen = MarkovChain((0.5, 0.5), ((1.0, 0.0), (0.0, 1.0)))
    costs = np.array([[0.0, 0.25], [0.5, 0.0]])
    for length in (5, 6_000, 100_000):
        assert ChainRatio(frozen, length).epsilon(costs) == pytest.approx(0.5 * length, rel=1e-9)
    assert ChainRatio(STAYS, 2).epsilon(400.0) <= 800 * (1 + 1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1e-9, LARGEST_COST * (1 + 1e-9)])
def test_one_wrong_cost_among_others_is_enough(bad: float) -> None:
    for place in itertools.permutations(range(3), 2):
        table = np.full((3, 3), 0.5)
        table[place] = bad
        with pytest.raises(UsageError, match="must be from 0"):
            cost_table(table, 3)


def test_costs_from_none_to_the_largest_are_taken() -> None:
    assert cost_table(0.0, 2).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert cost_table(LARGEST_COST, 2).tolist() == [[0.0, LARGEST_COST], [LARGEST_COST, 0.0]]
    assert cost_table(np.array([[3.0, 0.5], [0.25, 3.0]]), 2).tolist() == [[0.0, 0.5], [0.25, 0.0]]
