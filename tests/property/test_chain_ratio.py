"""The curve of the ratio recursion against all mechanisms there are: never below, equal for two states; mutants are caught."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from attrpriv.numerics.divergences import chain_ratio
from attrpriv.numerics.divergences.chain_ratio import chain_epsilon
from attrpriv.numerics.laws.markov import MarkovChain
from tests.property.chain_twin import adaptive_pair, laws, most_told, noisy_count, randomised_response, told_by

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
    return rows[0], tuple(rows[1:]), rng.randint(2, most[k])


def floats(chain: Drawn) -> MarkovChain:
    return MarkovChain(tuple(map(float, chain[0])), tuple(tuple(map(float, row)) for row in chain[1]))


@pytest.mark.parametrize("seed", range(14))
@pytest.mark.parametrize("b", [0.1, 1.0])
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


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("b", [0.2, 1.5])
def test_more_states_are_never_below_the_optimum(seed: int, b: float) -> None:
    chain = drawn(seed, {3: 4, 4: 3, 5: 2})
    said, truth = chain_epsilon([floats(chain)], chain[2], b), most_told(*chain, b)
    assert truth - 1e-7 <= said <= min(1.5 * truth, chain[2] * b) + 1e-6


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


def exact_epsilon(
    initial: tuple[Fraction, ...], transition: tuple[tuple[Fraction, ...], ...], length: int, t: Fraction
) -> Fraction:
    """The recursion for two states that are always possible, in fractions: e^epsilon(log t)."""

    def step(law: list[list[Fraction]], v: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
        ends = (t * v[0], 1 / (t * v[1]))
        means = [[row[0] * u + row[1] for u in ends] for row in law]
        return max(a / c for a, c in zip(*means, strict=True)), max(c / a for a, c in zip(*means, strict=True))

    later = [(Fraction(1), Fraction(1))]
    for _ in range(length - 1):
        later.append(step([list(row) for row in transition], later[-1]))
    law, before, worst = initial, (Fraction(1), Fraction(1)), Fraction(1)
    for i in range(length):
        after = later[length - 1 - i]
        worst = max(worst, t * before[0] * after[0], t * before[1] * after[1])
        joint = [[law[z] * transition[z][x] for z in (0, 1)] for x in (0, 1)]
        law = (joint[0][0] + joint[0][1], joint[1][0] + joint[1][1])
        before = step([[p / sum(row) for p in row] for row in joint], before)
    return worst


@pytest.mark.parametrize("seed", range(10))
def test_two_states_in_exact_fractions(seed: int) -> None:
    rng = random.Random(f"exact {seed}")
    rows = [tuple(Fraction(w, 20) for w in (k, 20 - k)) for k in (rng.randint(1, 19) for _ in range(3))]
    t, length = Fraction(rng.randint(11, 30), 10), rng.randint(2, 7)
    truth = exact_epsilon(rows[0], tuple(rows[1:]), length, t)
    chain = MarkovChain(tuple(map(float, rows[0])), tuple(tuple(map(float, row)) for row in rows[1:]))
    said = chain_epsilon([chain], length, math.log(t))
    assert math.log(truth) <= said <= math.log(truth) * (1 + 1e-9) + 1e-9


# ------------------------------------------------------------------------------------------------------------------- mutants


def found_below(seeds: range, b: float) -> bool:
    """Whether the curve is below the optimum for one of the chains of this test."""
    chains = [drawn(seed, {2: 4, 3: 3}) for seed in seeds]
    return any(chain_epsilon([floats(chain)], chain[2], b) < most_told(*chain, b) - 1e-6 for chain in chains)


def test_a_past_that_ignores_the_start_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: chain_ratio.ChainRatio, node: int) -> chain_ratio.Kernel:
        kernel = original(self, node)
        joint = self.chain.matrix()[kernel.columns][:, kernel.rows]
        return chain_ratio.Kernel(kernel.rows, kernel.columns, (joint / np.maximum(joint.sum(axis=0), 1e-300)).T, kernel.slack)

    assert not found_below(range(12), 1.0)
    original = chain_ratio.ChainRatio._reversed
    monkeypatch.setattr(chain_ratio.ChainRatio, "_reversed", careless)
    assert found_below(range(12), 1.0)


def test_a_constraint_without_its_own_entry_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """f(z) <= V(z, z') f(z'), without e^b."""
    original = chain_ratio._closed
    monkeypatch.setattr(chain_ratio, "_closed", lambda ratio, b: original(ratio, 0.0))
    assert found_below(range(6), 1.0)


def test_one_end_of_f_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(law: chain_ratio.Array, limits: chain_ratio.Array) -> chain_ratio.Array:
        means = law @ limits
        return np.asarray((means[:, None] / means).max(axis=-1))

    monkeypatch.setattr(chain_ratio, "_largest", careless)
    assert found_below(range(12), 1.0)


def test_a_plan_that_ships_more_than_there_is_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With four values or more, a ratio of some f is no bound."""
    chains = [drawn(seed, {4: 3}) for seed in range(8)]
    monkeypatch.setattr(chain_ratio, "_shipped", chain_ratio._largest)
    assert any(chain_epsilon([floats(chain)], chain[2], 1.0) < most_told(*chain, 1.0) - 1e-6 for chain in chains)
