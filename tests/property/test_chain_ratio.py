"""The curve of the ratio recursion against all mechanisms there are: never below, equal for two states; mutants are caught."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.numerics.calibration.chain_curve import chain_epsilon
from attrpriv.numerics.divergences import chain_ratio, ratio_step
from attrpriv.numerics.laws.chain_family import ChainFamily
from attrpriv.numerics.laws.markov import MarkovChain
from tests.property.chain_twin import (
    adaptive_pair,
    exact_ratio,
    laws,
    most_told,
    noisy_count,
    randomised_response,
    told_by,
)

Drawn = tuple[tuple[Fraction, ...], tuple[tuple[Fraction, ...], ...], int]


def drawn(seed: int, most: dict[int, int], *, states: int | None = None) -> Drawn:
    """A random chain in fractions, zeros among them, with at most most[states] entries."""
    rng = random.Random(f"ratio {seed} {states}")
    k = states or rng.choice(list(most))
    rows = []
    for _ in range(k + 1):
        row = [rng.choice([0, 1, 1, 2, 5, 20]) for _ in range(k)]
        row[rng.randrange(k)] += 1
        rows.append(tuple(Fraction(w, sum(row)) for w in row))
    return rows[0], tuple(rows[1:]), rng.randint(1, most[k])


def floats(chain: Drawn) -> MarkovChain:
    return MarkovChain(tuple(map(float, chain[0])), tuple(tuple(map(float, row)) for row in chain[1]))


def by_pairs(seed: int, k: int) -> tuple[Callable[[int, int], Fraction], np.ndarray[Any, Any]]:
    """What an entry costs by the two values: as factors, and as a table of logarithms."""
    rng = random.Random(f"costs {seed}")
    values, t = [rng.randint(0, 3) for _ in range(k)], Fraction(rng.randint(11, 25), 10)
    table = np.array([[abs(a - b) * math.log(t) for a in values] for b in values])
    return (lambda x, y: t ** abs(values[x] - values[y])), table


@pytest.mark.parametrize(("seed", "b"), [(seed, (0.1, 1.0)[seed % 2]) for seed in range(14)])
def test_two_states_are_exactly_the_optimum_over_all_mechanisms(seed: int, b: float) -> None:
    chain = drawn(seed, {2: 6})
    said, truth = chain_epsilon([floats(chain)], chain[2], b), most_told(*chain, b)
    assert truth - 1e-7 <= said <= truth + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 104))
def test_two_states_and_eight_entries(seed: int) -> None:
    chain = (*drawn(seed, {2: 8})[:2], 8)
    said, truth = chain_epsilon([floats(chain)], 8, 0.4), most_told(*chain, 0.4)
    assert truth - 1e-7 <= said <= truth + 1e-6


@pytest.mark.parametrize(("seed", "b"), [(seed, (0.2, 1.5)[seed % 2]) for seed in range(12)])
def test_more_states_are_never_below_the_optimum(seed: int, b: float) -> None:
    chain = drawn(seed, {3: 4, 4: 3, 5: 2})
    said, truth = chain_epsilon([floats(chain)], chain[2], b), most_told(*chain, b)
    assert truth - 1e-7 <= said <= min(1.5 * truth, chain[2] * b) + 1e-6


@pytest.mark.parametrize("seed", range(12))
def test_costs_that_depend_on_the_two_values(seed: int) -> None:
    chain = drawn(seed, {2: 5, 3: 4, 4: 3})
    _, table = by_pairs(seed, len(chain[0]))
    said, truth = chain_epsilon([floats(chain)], chain[2], table), most_told(*chain, lambda x, y: float(table[x, y]))
    assert truth - 1e-7 <= said <= (truth if len(chain[0]) == 2 else 1.5 * truth) + 1e-6


@pytest.mark.parametrize("seed", range(24))
def test_up_to_three_states_it_is_the_recursion_in_fractions(seed: int) -> None:
    """Every entry, its own support, nothing settled: the floats are above, and hardly."""
    chain = drawn(seed, {2: 10, 3: 7})
    factor, table = by_pairs(seed, len(chain[0]))
    truth = math.log(exact_ratio(*chain, factor))
    said = chain_epsilon([floats(chain)], chain[2], table)
    assert truth * (1 - 1e-15) <= said <= truth * (1 + 1e-9) + 1e-9


SPECIAL = {
    "periodic": (("3/10", "7/10", "0"), (("0", "0", "1"), ("0", "0", "1"), ("1/2", "1/2", "0"))),
    "laws that go round": (("3/10", "7/10"), (("0", "1"), ("1", "0"))),
    "absorbing": (("1", "0"), (("9/10", "1/10"), ("0", "1"))),
    "two ends": (("0", "1", "0"), (("1", "0", "0"), ("1/3", "1/3", "1/3"), ("0", "0", "1"))),
    "unreachable": (("1/2", "1/2", "0"), (("4/5", "1/5", "0"), ("2/5", "3/5", "0"), ("1/3", "1/3", "1/3"))),
    "late": (("1", "0", "0"), (("1/2", "1/2", "0"), ("0", "1/2", "1/2"), ("1/2", "0", "1/2"))),
    "known start": (("1", "0"), (("9/10", "1/10"), ("2/5", "3/5"))),
}


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("length", [1, 2, 3, 6, 12])
def test_special_chains_in_fractions(name: str, length: int) -> None:
    initial, rows = SPECIAL[name]
    chain = (tuple(map(Fraction, initial)), tuple(tuple(map(Fraction, row)) for row in rows), length)
    t = Fraction(13, 10)
    truth = math.log(exact_ratio(*chain, lambda x, y: t))
    said = chain_epsilon([floats(chain)], length, math.log(t))
    assert truth * (1 - 1e-15) <= said <= truth * (1 + 1e-9) + 1e-9
    if length <= 6 and len(initial) == 2:
        assert said == pytest.approx(most_told(*chain, math.log(t)), abs=1e-6)


@pytest.mark.parametrize("name", SPECIAL)
def test_what_is_cut_early_is_never_below_what_is_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With three steps of its own at most, a chain of 12 entries has its past and future bounded, not computed."""
    initial, rows = SPECIAL[name]
    chain = (tuple(map(Fraction, initial)), tuple(tuple(map(Fraction, row)) for row in rows), 12)
    for t in (Fraction(101, 100), Fraction(13, 10)):
        truth = math.log(exact_ratio(*chain, lambda x, y, t=t: t))  # type: ignore[misc]
        for most in (2, 3, 5):
            monkeypatch.setattr(chain_ratio, "_MOST_STEPS", most)
            said = chain_epsilon([floats(chain)], 12, math.log(t))
            assert truth * (1 - 1e-15) <= said <= 12 * math.log(t) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_random_chains_that_are_cut_early(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = (*drawn(seed, {2: 1, 3: 1})[:2], 10)
    truth = math.log(exact_ratio(*chain, lambda x, y: Fraction(11, 10)))
    for most in (2, 4, 7):
        monkeypatch.setattr(chain_ratio, "_MOST_STEPS", most)
        assert chain_epsilon([floats(chain)], 10, math.log(1.1)) >= truth * (1 - 1e-15)


@pytest.mark.parametrize("seed", range(16))
def test_no_mechanism_tells_more_than_the_curve_says(seed: int) -> None:
    """In exact fractions: a noisy count, randomised response of every entry, two releases of which the second is chosen."""
    chain = drawn(seed, {2: 6, 3: 4, 4: 3})
    listed, length, t = laws(*chain), chain[2], Fraction(3, 2)
    said = math.exp(chain_epsilon([floats(chain)], length, math.log(t)))
    twice = math.exp(chain_epsilon([floats(chain)], length, 2 * math.log(t)))
    assert float(told_by(listed, length, noisy_count(t, lambda c: sum(x == 1 for x in c), 0, length))) <= said
    assert float(told_by(listed, length, randomised_response(t, len(chain[0])))) <= said
    assert float(told_by(listed, length, adaptive_pair(t, t, length))) <= twice


# ------------------------------------------------------------------------------------------------------------------ families


def within(rng: random.Random, family: ChainFamily) -> MarkovChain:
    """A chain of the family, with any start; often at an end."""
    k = family.states
    rows = []
    for row in range(k):
        corners = family.corners(row)
        weights = np.array([rng.choice([0.0, 0.0, rng.random()]) for _ in corners])
        weights[rng.randrange(len(corners))] += 0.01 + rng.random()
        rows.append(tuple((weights / weights.sum()) @ np.array(corners)))
    start = np.array([rng.choice([0.0, 0.02, 1.0, rng.random()]) for _ in range(k)])
    start[rng.randrange(k)] += 0.01
    return MarkovChain(tuple(start / start.sum()), tuple(rows))


def a_family(rng: random.Random, k: int, *, wide: bool) -> ChainFamily:
    rows = np.array([[rng.choice([0.0, 0.1, 1.0, 3.0]) + (0.05 if j == i else 0.0) for j in range(k)] for i in range(k)])
    rows = np.round(rows / rows.sum(axis=1, keepdims=True), 3)
    rows[:, -1] += np.round(1 - rows.sum(axis=1), 3)
    rows = np.round(np.clip(rows, 0, 1), 3)
    if not wide:
        exact = tuple(tuple(float(p) / math.fsum(row) for p in row) for row in rows.tolist())
        return ChainFamily(exact, exact)
    lower = np.round(np.maximum(rows - 0.1, 0), 3)
    return ChainFamily(tuple(map(tuple, lower.tolist())), tuple(map(tuple, np.round(np.minimum(rows + 0.1, 1), 3).tolist())))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("wide", [False, True])
def test_no_chain_of_a_family_loses_more(seed: int, *, wide: bool) -> None:
    rng = random.Random(f"family {seed} {wide}")
    family, length, b = a_family(rng, rng.choice([2, 2, 3]), wide=wide), rng.randint(1, 9), rng.choice([0.1, 1.0])
    said = chain_epsilon([family], length, b)
    assert max(chain_epsilon([within(rng, family)], length, b) for _ in range(40)) <= said * (1 + 1e-9)


def changing(start: list[Fraction], steps: list[list[list[Fraction]]]) -> dict[tuple[int, ...], Fraction]:
    """The law of a sequence whose matrix is another one at each step."""
    found: dict[tuple[int, ...], Fraction] = {(s,): p for s, p in enumerate(start) if p}
    for matrix in steps:
        found = {(*c, t): p * q for c, p in found.items() for t, q in enumerate(matrix[c[-1]]) if q}
    return found


@pytest.mark.parametrize("seed", range(12))
def test_matrices_within_intervals_may_change_at_each_step(seed: int) -> None:
    """In fractions: corners in turn, from any start, under a noisy count and randomised response of every entry."""
    rng, length, t = random.Random(f"changing {seed}"), 4, Fraction(3, 2)
    lows = [Fraction(rng.randint(0, 6), 10) for _ in range(2)]
    highs = [low + Fraction(rng.randint(1, 3), 10) for low in lows]
    stays = [(low, high) for low, high in zip(lows, highs, strict=True)]
    rows = [[(low, 1 - high), (1 - high, low)][k] for k, (low, high) in enumerate(stays)]
    upper = [[(high, 1 - low), (1 - low, high)][k] for k, (low, high) in enumerate(stays)]
    family = ChainFamily(*(tuple(tuple(map(float, row)) for row in side) for side in (rows, upper)))
    said = math.exp(chain_epsilon([family], length, math.log(t)))
    for _ in range(6):
        start = Fraction(rng.choice([0, 1, 50, 99, 100]), 100)
        steps = []
        for _ in range(length - 1):
            a, b = (rng.choice(ends) for ends in stays)
            steps.append([[a, 1 - a], [1 - b, b]])
        listed = changing([start, 1 - start], steps)
        assert float(told_by(listed, length, noisy_count(t, lambda c: sum(x == 1 for x in c), 0, length))) <= said
        assert float(told_by(listed, length, randomised_response(t, 2))) <= said


def test_intervals_that_are_taken_for_their_middle_are_caught() -> None:
    """Between them entries are independent; a matrix that stays with .9 and then turns is not."""
    t, stays, turns = Fraction(2), [[Fraction(9, 10), Fraction(1, 10)]] * 2, [[Fraction(1, 10), Fraction(9, 10)]] * 2
    stays, turns = [stays[0], stays[1][::-1]], [turns[0], turns[1][::-1]]
    told = told_by(changing([Fraction(1, 2)] * 2, [stays, turns]), 3, randomised_response(t, 2))
    family, middle = ChainFamily(((0.1, 0.1),) * 2, ((0.9, 0.9),) * 2), ChainFamily(((0.5, 0.5),) * 2, ((0.5, 0.5),) * 2)
    assert math.exp(chain_epsilon([middle], 3, math.log(t))) < float(told)
    assert float(told) <= math.exp(chain_epsilon([family], 3, math.log(t)))


def test_a_list_of_corners_does_not_cover_a_family_that_starts_anywhere() -> None:
    """Every corner of [.4, .6] from a known or an even start says 6.40; a chain inside of the family loses 6.67."""
    family, starts = ChainFamily(((0.4, 0.4), (0.4, 0.4)), ((0.6, 0.6), (0.6, 0.6))), ((1.0, 0.0), (0.5, 0.5), (0.0, 1.0))
    inner = MarkovChain((0.023, 0.977), ((0.598, 0.402), (0.41, 0.59)))
    corners = chain_epsilon([MarkovChain(start, one.transition) for one in family.members() for start in starts], 2, 6.0)
    assert corners < 6.41 < 6.66 < chain_epsilon([inner], 2, 6.0) <= chain_epsilon([family], 2, 6.0)


def test_one_step_back_from_any_start_is_reached() -> None:
    """The worst start of two entries, by trying all of them on a fine grid, is what the closed form says."""
    rows = ((0.7, 0.3), (0.2, 0.8))
    starts = [k / 400 for k in range(1, 400)]
    tried = max(chain_epsilon([MarkovChain((p, 1 - p), rows)], 2, 0.8) for p in starts)
    assert chain_epsilon([ChainFamily(rows, rows)], 2, 0.8) == pytest.approx(tried, abs=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_two_states_are_stepped_alike_with_and_without_arrays(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(f"alike {seed}")
    family, chain = a_family(rng, 2, wide=seed % 2 == 0), floats(drawn(seed, {2: 1}))
    fast = [chain_epsilon([one], 20, 0.3) for one in (family, chain)]
    monkeypatch.setattr(ratio_step.Kernel, "_pair", None)
    original = ratio_step.AnyStart.step
    monkeypatch.setattr(ratio_step.AnyStart, "_of_two", lambda self, ratios, cost: _by_arrays(original, self, ratios, cost))
    assert [chain_epsilon([one], 20, 0.3) for one in (family, chain)] == pytest.approx(fast, rel=1e-9, abs=1e-12)


def _by_arrays(
    step: Callable[..., ratio_step.Ratios], stage: ratio_step.AnyStart, ratios: ratio_step.Ratios, cost: Any
) -> ratio_step.Ratios:
    """The same step to three states, the third of which is never met."""
    gain = np.zeros((3, 3, 3))
    gain[:2, :2, :2] = stage.gain
    made = step(dataclasses.replace(stage, rows=np.arange(3), gain=gain), ratios, np.pad(cost, (0, 1)))
    return ratio_step.Ratios(stage.rows, made.values[:2, :2])


# ------------------------------------------------------------------------------------------------------------------- mutants


def found_below(seeds: range, b: float, most: dict[int, int] | None = None) -> bool:
    """Whether the curve is below the optimum for one of the chains of this test."""
    chains = [drawn(seed, most or {2: 4, 3: 3}) for seed in seeds]
    return any(chain_epsilon([floats(chain)], chain[2], b) < most_told(*chain, b) - 1e-6 for chain in chains)


def test_a_past_that_ignores_the_start_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: Any, node: int, drift: float = 0.0) -> ratio_step.Kernel:
        kernel = original(self, node, drift)
        joint = self.chain.matrix()[kernel.columns][:, kernel.rows]
        return dataclasses.replace(kernel, law=(joint / np.maximum(joint.sum(axis=0), 1e-300)).T)

    assert not found_below(range(12), 1.0)
    original = chain_ratio._Laws.reversed
    monkeypatch.setattr(chain_ratio._Laws, "reversed", careless)
    assert found_below(range(12), 1.0)


def test_a_constraint_without_its_own_entry_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """f(z) <= V(z, z') f(z'), without e^b."""
    monkeypatch.setattr(ratio_step.Kernel, "_pair", None)
    original = ratio_step._closed
    monkeypatch.setattr(ratio_step, "_closed", lambda ratio, cost: original(ratio, 0 * cost))
    assert found_below(range(6), 1.0)


def test_one_end_of_f_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(law: Any, limits: Any) -> Any:
        means = law @ limits
        return np.asarray((means[:, None] / means).max(axis=-1))

    monkeypatch.setattr(ratio_step.Kernel, "_pair", None)
    monkeypatch.setattr(ratio_step, "largest", careless)
    assert found_below(range(20), 1.0, {3: 4})


def test_a_plan_that_ships_more_than_there_is_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With four values or more, a ratio of some f is no bound."""
    monkeypatch.setattr(ratio_step, "shipped", ratio_step.largest)
    assert found_below(range(8), 1.0, {4: 3})


def test_later_entries_with_the_states_of_earlier_ones_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault that this bound once had: where the past is cut, only the states of the last entry were looked at."""
    chain = MarkovChain((1.0, 0.0, 0.0), ((0.5, 0.5, 0.0), (0.5, 0.49, 0.01), (0.01, 0.01, 0.98)))
    truth = chain_epsilon([chain], 200, 0.02)
    monkeypatch.setattr(chain_ratio, "_MOST_STEPS", 2)
    monkeypatch.setattr(chain_ratio._Laws, "_settle", lambda self, step: None)
    monkeypatch.setattr(chain_ratio.ChainRatio, "_after", _after_all_of(chain_ratio.ChainRatio(chain, 200)))
    assert truth * (1 - 1e-12) <= chain_epsilon([chain], 200, 0.02) <= 200 * 0.02 * (1 + 1e-9)
    monkeypatch.setattr(chain_ratio.ChainRatio, "_any_start", lambda self: self._earlier[-1:])
    assert chain_epsilon([chain], 200, 0.02) < truth


def _after_all_of(longer: chain_ratio.ChainRatio) -> Callable[..., Any]:
    """What follows, with as many steps as it takes: what was before is looked at here."""
    longer._most = 400
    known = chain_ratio.ChainRatio._after
    return lambda self, cost: known(longer, cost)


@pytest.mark.parametrize("seed", range(16))
def test_states_that_come_late_and_a_past_that_is_cut_before(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(f"late {seed}")
    rows = [[Fraction(rng.randint(1, 9)) for _ in range(3)] for _ in range(3)]
    rows[0][2] = Fraction(0)
    laws_of = tuple(tuple(p / sum(row) for p in row) for row in rows)
    chain = ((Fraction(1), Fraction(0), Fraction(0)), laws_of, 9)
    truth = math.log(exact_ratio(*chain, lambda x, y: Fraction(11, 10)))
    monkeypatch.setattr(chain_ratio, "_MOST_STEPS", 2)
    assert chain_epsilon([floats(chain)], 9, math.log(1.1)) >= truth * (1 - 1e-15)


def test_a_family_with_ends_paired_wrongly_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """theta and u at their means in place of their ends."""
    original = ratio_step.AnyStart._of_two
    monkeypatch.setattr(ratio_step.AnyStart, "_pair", (1.0, 1.0))
    rng = random.Random("mutant")
    family = a_family(rng, 2, wide=True)
    assert max(chain_epsilon([within(rng, family)], 6, 1.0) for _ in range(40)) > chain_epsilon([family], 6, 1.0)
    assert original is ratio_step.AnyStart._of_two
