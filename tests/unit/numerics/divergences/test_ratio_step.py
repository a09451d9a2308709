"""One step of the ratio recursion against its formulas, one pair of values after the other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq

from attrpriv.numerics.divergences.ratio_step import LARGEST, AnyStart, Kernel, Ratios, largest, shipped

Array = NDArray[np.float64]

# By way of the middle value the first and the last are nearer than they are told to be.
RATIO = np.array([[1.0, 1.2, 3.0], [1.5, 1.0, 1.1], [2.5, 1.3, 1.0]])
COST = np.array([[0.0, 0.1, 0.9], [0.2, 0.0, 0.3], [0.7, 0.25, 0.0]])
LAW = np.array([[0.7, 0.2, 0.1], [0.15, 0.25, 0.6], [0.3, 0.45, 0.25]])


def limits_of(ratio: Array, cost: Array) -> Array:
    """e^r V, lowered by way of other values."""
    size = len(ratio)
    found = np.array([[1.0 if i == j else ratio[i, j] * math.exp(cost[i, j]) for j in range(size)] for i in range(size)])
    for k, i, j in itertools.product(range(size), repeat=3):
        found[i, j] = min(found[i, j], found[i, k] * found[k, j])
    return found


def ends(limits: Array) -> list[Array]:
    """The f that are as large, or as small, as one of their values lets the others be."""
    return [*limits.T, *(1 / row for row in limits)]


def stepped(law: Array, limits: Array, owner: list[int]) -> Array:
    """Over the ends of f, for each pair of values the laws of which make most of it."""
    size = max(owner) + 1
    found = np.ones((size, size))
    for i, j in itertools.product(range(len(owner)), repeat=2):
        if owner[i] != owner[j]:
            worst = max(float(law[i] @ f) / float(law[j] @ f) for f in ends(limits))
            found[owner[i], owner[j]] = max(found[owner[i], owner[j]], worst)
    return found


def close_above(found: Array, truth: Array, share: float = 1e-11) -> None:
    assert (found >= truth * (1 - 1e-15)).all()
    assert (found <= truth * (1 + share)).all()


@pytest.mark.parametrize("slack", [0.0, 0.13])
def test_a_step_of_three_values_is_the_largest_ratio_over_the_ends(slack: float) -> None:
    limits = limits_of(RATIO, COST)
    assert limits[0, 2] < 3.0 * math.exp(0.9)
    step = Kernel(np.arange(3), np.arange(3), np.arange(3), LAW, slack)
    truth = stepped(LAW, limits, [0, 1, 2]) * math.exp(slack)
    np.fill_diagonal(truth, 1.0)
    close_above(step.step(Ratios(np.arange(3), RATIO), COST).values, np.minimum(truth, limits.max()))


@pytest.mark.parametrize("slack", [0.0, 0.13, 3.0])
def test_two_values_are_stepped_by_the_same_formula(slack: float) -> None:
    """Costs are looked up by state, not by place; no ratio is above the largest limit."""
    states, law = np.array([0, 2]), np.array([[0.7, 0.3], [0.2, 0.8]])
    for ratio in (np.array([[1.0, 1.4], [1.9, 1.0]]), np.array([[1.0, 1.9], [1.1, 1.0]])):
        limits = limits_of(ratio, COST[np.ix_(states, states)])
        for own in (law, law[::-1].copy()):
            truth = stepped(own, limits, [0, 1]) * math.exp(slack)
            np.fill_diagonal(truth, 1.0)
            found = Kernel(np.arange(2), states, np.arange(2), own, slack).step(Ratios(states, ratio), COST)
            assert found.states.tolist() == [0, 1]
            close_above(found.values, np.minimum(truth, limits.max()))


def test_a_ratio_of_two_means_is_never_below_one() -> None:
    """Equal laws, and laws that only one of both ends tells apart."""
    for law in (np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([[1.0, 0.0], [0.0, 1.0]])):
        found = Kernel(np.arange(2), np.arange(2), np.arange(2), law, 0.0).step(
            Ratios(np.arange(2), np.ones((2, 2))), COST[:2, :2]
        )
        close_above(found.values, np.maximum(stepped(law, limits_of(np.ones((2, 2)), COST[:2, :2]), [0, 1]), 1.0))


def test_rows_that_lie_between_corners_take_the_worst_of_them() -> None:
    """Values with one, three and two laws: the worst corner of one against the worst of the other."""
    law = np.array([[0.7, 0.2, 0.1], [0.2, 0.3, 0.5], [0.15, 0.25, 0.6], [0.3, 0.1, 0.6], [0.3, 0.45, 0.25], [0.25, 0.4, 0.35]])
    owner = [0, 1, 1, 1, 2, 2]
    truth = stepped(law, limits_of(RATIO, COST), owner)
    close_above(
        Kernel(np.arange(3), np.arange(3), np.array(owner), law, 0.0).step(Ratios(np.arange(3), RATIO), COST).values, truth
    )


@pytest.mark.parametrize(
    ("rows", "columns"), [([0, 1], [0, 1, 2]), ([0, 1, 2], [0, 2]), ([0, 1, 1], [0, 2]), ([0, 0, 1], [0, 1])]
)
def test_entries_with_other_values_than_their_neighbours(rows: list[int], columns: list[int]) -> None:
    """Two values next to three, three next to two, and two of which one has two laws."""
    law = LAW[:, columns] / LAW[:, columns].sum(axis=1, keepdims=True)
    law, places = law[: len(rows)], np.array(columns)
    ratio = RATIO[np.ix_(places, places)]
    truth = stepped(law, limits_of(ratio, COST[np.ix_(places, places)]), rows)
    size = max(rows) + 1
    close_above(Kernel(np.arange(size), places, np.array(rows), law, 0.0).step(Ratios(places, ratio), COST).values, truth)


def test_what_is_not_known_or_not_to_be_told() -> None:
    """A law that floats do not know counts as the worst, a single value on the other side as nothing; 1 for a value itself."""
    limits = limits_of(RATIO, COST)
    unknown = Kernel(np.arange(3), np.arange(3), np.arange(3), None, 0.0).step(Ratios(np.arange(3), RATIO), COST).values
    close_above(unknown, np.where(np.eye(3, dtype=bool), 1.0, limits.max()))
    few = Kernel(np.arange(2), np.array([1]), np.arange(2), np.ones((2, 1)), 0.5)
    assert few.step(Ratios(np.array([1]), np.ones((1, 1))), COST).values.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_values_that_no_entry_has_both_bound_no_others() -> None:
    """Their own ratio is as large as can be, and is not the one that caps all others."""
    apart = np.zeros((3, 3), dtype=bool)
    apart[0, 2] = apart[2, 0] = True
    ratio = np.where(apart, LARGEST, RATIO)
    slack = 5.0
    step = Kernel(np.arange(3), np.arange(3), np.arange(3), LAW, slack, apart)
    limits = limits_of(ratio, COST)
    alike = np.where(apart, LARGEST, 1.0)
    nothing = step.step(Ratios(np.arange(3), alike), COST / 9).values
    assert float(np.where(apart, 1.0, nothing).max()) <= math.exp(0.1)
    found = step.step(Ratios(np.arange(3), ratio), COST).values
    assert found[0, 2] == found[2, 0] == LARGEST
    cap = float(np.where(apart, 1.0, limits).max())
    truth = np.minimum(stepped(LAW, limits, [0, 1, 2]) * math.exp(slack), cap)
    truth[apart] = LARGEST
    np.fill_diagonal(truth, 1.0)
    close_above(found, truth)
    pair = Kernel(np.arange(2), np.arange(2), np.arange(2), LAW[:2, :2], 0.0, ~np.eye(2, dtype=bool))
    assert pair.step(Ratios(np.arange(2), np.ones((2, 2))), COST[:2, :2]).values.tolist() == [[1.0, LARGEST], [LARGEST, 1.0]]


def stages(size: int) -> list[Kernel | AnyStart]:
    even = np.full((size, size), 1 / size)
    return [
        Kernel(np.arange(size), np.arange(size), np.arange(size), even, 0.0),
        AnyStart(np.arange(size), np.ones((size,) * 3), 0.0),
    ]


@pytest.mark.parametrize("size", [2, 3, 4])
def test_ratios_that_are_no_longer_products_of_floats_are_not_stepped(size: int) -> None:
    """Just up to the largest one; either way of a pair alone."""
    for stage in stages(size):
        for i, j in ((0, 1), (1, 0)):
            ratio = np.full((size, size), LARGEST * 0.9)
            ratio[i, j] = LARGEST * (1 - 1e-12)
            np.fill_diagonal(ratio, 1.0)
            assert np.isfinite(stage.step(Ratios(np.arange(size), ratio), np.zeros((size, size))).values).all()
            ratio[i] *= 1 + 1e-9
            ratio[:, j] *= 1 + 1e-9
            ratio[i, i] = ratio[j, j] = 1.0
            with pytest.raises(OverflowError):
                stage.step(Ratios(np.arange(size), ratio), np.zeros((size, size)))


# ------------------------------------------------------------------------------------------------------ more than three values


def planned(p: Array, q: Array, limits: Array) -> float:
    """The least lambda with a plan of equal shares, by bisection; cut where no f is needed to see the ratio."""

    def missing(lam: float) -> float:
        taken = np.maximum(lam * q - p, 0)
        total = 0.0
        for z in range(len(p)):
            if p[z] > lam * q[z]:
                total += float(p[z] - lam * q[z]) / sum(taken[y] / limits[z, y] for y in range(len(p)))
        return total - 1

    plain = max(float(a / b) if b else math.inf for a, b in zip(p, q, strict=True) if a)
    high = min(plain, float(limits.max()))
    if high <= 1 or missing(high * (1 - 1e-9)) > 0:
        return high
    return float(brentq(missing, 1 + 1e-12, high * (1 - 1e-9), xtol=1e-13))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [4, 6])
def test_plans_of_shipments_are_the_least_of_their_kind(seed: int, size: int) -> None:
    """A ten-thousandth above at most, and never below; for two laws one of which has less on some values."""
    rng = np.random.default_rng([seed, size])
    law = rng.dirichlet(np.full(size, 0.7), size=4)
    law[1] = 0.8 * law[0] + 0.2 * law[1]
    law[2, 0] = 0.0
    law[2] /= law[2].sum()
    ratio, cost = rng.uniform(1, 1.8, (size, size)), rng.uniform(0, 1.5, (size, size))
    np.fill_diagonal(cost, 0.0)
    limits = limits_of(ratio, cost)
    found = shipped(law, limits)
    for i, j in itertools.permutations(range(4), 2):
        truth = planned(law[i], law[j], limits)
        assert truth * (1 - 1e-11) <= found[i, j]
        assert found[i, j] - truth <= 2.5e-4 * (found.max() - 1)
        assert found[i, j] >= largest(law, limits)[i, j] * (1 - 1e-12)
    step = Kernel(np.arange(4), np.arange(size), np.arange(4), law, 0.0)
    again = step.step(Ratios(np.arange(size), ratio), cost).values
    close_above(again, np.where(np.eye(4, dtype=bool), 1.0, np.minimum(found, limits.max())), 1e-10)


# -------------------------------------------------------------------------------------------------------------- any start

# A value after which another one is impossible, in one column for both of two rows.
ROWS = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.05, 0.25, 0.7]])
ZEROS = np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.05, 0.25, 0.7]])


def gains(law: Array) -> Array:
    """P(z, x)/P(z, x'), 0 where x is impossible."""
    size = len(law)
    found = np.zeros((size,) * 3)
    for z, x, y in itertools.product(range(size), repeat=3):
        found[z, x, y] = 0.0 if not law[z, x] else (math.inf if not law[z, y] else law[z, x] / law[z, y])
    return found


def from_any_start(gain: Array, held: list[int], limits: Array, x: int, y: int) -> float:
    """The largest G over two values that the entry before can have."""
    worst = 1.0
    for i, j in itertools.permutations(range(len(held)), 2):
        one, other = gain[held[i], x, y], gain[held[j], y, x]
        theta = 0.0 if not one or not other else one * other
        u = max(1.0, float(limits[i, j]))
        if theta == math.inf:
            worst = max(worst, u)
        elif theta > 1:
            worst = max(worst, ((1 + math.sqrt(theta * u)) / (math.sqrt(theta) + math.sqrt(u))) ** 2)
    return worst


@pytest.mark.parametrize("slack", [0.0, 0.1, 4.0])
@pytest.mark.parametrize("law", [ROWS, ZEROS])
@pytest.mark.parametrize("held", [[0, 1, 2], [1, 2], [2]])
def test_a_step_back_from_any_start_is_the_largest_over_two_values(law: Array, held: list[int], slack: float) -> None:
    """Nothing is lowered by way of a third value; the entry before may have fewer values."""
    gain, states = gains(law), np.array(held)
    ratio, cost = RATIO[np.ix_(states, states)], COST[np.ix_(states, states)]
    limits = np.where(np.eye(len(held), dtype=bool), 1.0, ratio * np.exp(cost))
    found = AnyStart(np.arange(3), gain, slack).step(Ratios(states, ratio), COST).values
    truth = np.ones((3, 3))
    for x, y in itertools.permutations(range(3), 2):
        truth[x, y] = max(1.0, min(from_any_start(gain, held, limits, x, y) * math.exp(slack), float(limits.max())))
    close_above(found, truth)


TWO = [
    np.array([[0.7, 0.3], [0.2, 0.8]]),
    np.array([[0.2, 0.8], [0.7, 0.3]]),
    np.array([[0.5, 0.5], [0.45, 0.55]]),
    np.array([[0.45, 0.55], [0.5, 0.5]]),
    np.array([[1.0, 0.0], [0.4, 0.6]]),
    np.array([[0.4, 0.6], [1.0, 0.0]]),
    np.array([[0.0, 1.0], [0.0, 1.0]]),
    np.array([[1.0, 0.0], [0.0, 1.0]]),
]


@pytest.mark.parametrize("slack", [0.0, 0.1, 4.0])
@pytest.mark.parametrize("law", TWO)
def test_two_values_back_from_any_start_by_the_same_formula(law: Array, slack: float) -> None:
    gain = gains(law)
    for scale, ratio in itertools.product(
        (1.0, 0.1),
        (np.array([[1.0, 1.3], [1.7, 1.0]]), np.array([[1.0, 2.9], [1.1, 1.0]]), np.array([[1.0, 1.05], [1.0, 1.0]])),
    ):
        cost = scale * np.array([[0.0, 0.4], [0.9, 0.0]])
        limits = np.where(np.eye(2, dtype=bool), 1.0, ratio * np.exp(cost))
        found = AnyStart(np.arange(2), gain, slack).step(Ratios(np.arange(2), ratio), cost).values
        for x, y in ((0, 1), (1, 0)):
            truth = from_any_start(gain, [0, 1], limits, x, y) * math.exp(slack)
            truth = min(truth, max(1.0, float(limits.max())))
            assert truth * (1 - 1e-15) <= found[x, y] <= truth * (1 + 1e-11)
        assert found.diagonal().tolist() == [1.0, 1.0]


def test_corners_of_rows_that_pull_further_apart_than_single_rows() -> None:
    """With intervals both gains of a row may be above 1: for (0, 1) row 0 may pull either way."""
    gain = np.ones((2, 2, 2))
    gain[0, 0, 1], gain[0, 1, 0], gain[1, 0, 1], gain[1, 1, 0] = 3.0, 1.6, 1.9, 2.4
    cost = np.array([[0.0, 0.4], [0.9, 0.0]])
    limits = np.exp(cost)
    found = AnyStart(np.arange(2), gain, 0.0).step(Ratios(np.arange(2), np.ones((2, 2))), cost).values
    for x, y in ((0, 1), (1, 0)):
        truth = from_any_start(gain, [0, 1], limits, x, y)
        assert truth * (1 - 1e-15) <= found[x, y] <= truth * (1 + 1e-11)
