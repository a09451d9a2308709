"""The law of a count or sum over a chain given one entry, against every sequence in exact fractions; planted mistakes."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.chain_curve import chain_budget
from attrpriv.numerics.laws import chain_law as module
from attrpriv.numerics.laws.chain_law import chain_sum
from attrpriv.numerics.laws.markov import LEAST, MarkovChain
from tests.property.chain_twin import given_entry, laws

Drawn = tuple[tuple[Fraction, ...], tuple[tuple[Fraction, ...], ...], int, tuple[int, ...]]


def drawn(seed: int) -> Drawn:
    """A chain whose probabilities are sixteenths, which floats hold: zeros among them."""
    rng = random.Random(f"sum {seed}")
    k = rng.choice([2, 2, 3, 4])
    rows = []
    for _ in range(k + 1):
        cuts = sorted(rng.choice([0, 0, 16, rng.randint(0, 16)]) for _ in range(k - 1))
        rows.append(tuple(Fraction(b - a, 16) for a, b in zip([0, *cuts], [*cuts, 16], strict=True)))
    return rows[0], tuple(rows[1:]), rng.randint(1, {2: 7, 3: 5, 4: 4}[k]), tuple(rng.randint(-2, 3) for _ in range(k))


def floats(chain: Drawn) -> MarkovChain:
    return MarkovChain(tuple(map(float, chain[0])), tuple(tuple(map(float, row)) for row in chain[1]))


def agree(seed: int) -> None:
    """Every mass of every entry and state is as near as it says, and nothing else is possible."""
    chain = drawn(seed)
    initial, transition, length, values = chain
    listed = laws(initial, transition, length)
    for i in range(length):
        given = given_entry(listed, i)
        for state in range(len(initial)):
            if state not in given:
                with pytest.raises(UsageError, match="cannot have state"):
                    chain_sum(floats(chain), length, i + 1, state, values)
                continue
            truth: Counter[int] = Counter()
            for states, p in given[state].items():
                truth[sum(values[s] for s in states)] += p  # type: ignore[assignment]
            law = chain_sum(floats(chain), length, i + 1, state, values)
            assert law.pointwise
            assert law.error < 1e-12
            assert (law.start, law.end) == (min(truth), max(truth))
            for place, mass in enumerate(law.masses.tolist(), start=law.start):
                assert abs(Fraction(mass) - truth[place]) <= Fraction(law.error) * truth[place]


@pytest.mark.parametrize("seed", range(30))
def test_it_is_the_law_of_all_sequences(seed: int) -> None:
    agree(seed)


@pytest.mark.parametrize("wrong", ["the past is not conditioned", "the last entry is forgotten"])
def test_planted_mistakes_are_found(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    past, future = module._past, module._future
    if wrong.startswith("the past"):
        monkeypatch.setattr(module, "_past", lambda *given: np.repeat(past(*given).sum(axis=0)[None], len(given[2]), axis=0))
    else:
        monkeypatch.setattr(module, "_future", lambda step, adds, steps, width: future(step, adds, max(steps - 1, 0), width))
    found = 0
    for seed in range(10):
        try:
            agree(seed)
        except (AssertionError, pytest.fail.Exception):
            found += 1
    assert found > 3


def least_scale(chain: MarkovChain, length: int, epsilon: float) -> float:
    """The least scale of Laplace noise on a count that hides each entry from who sees that count alone; by halving."""
    pairs = [[chain_sum(chain, length, i, s, (0, 1)) for s in (0, 1)] for i in (1, length // 4, length // 2, length)]
    full = [[np.pad(law.masses, (law.start, length - law.end)) for law in pair] for pair in pairs]
    apart = np.abs(np.arange(length + 1)[:, None] - np.arange(length + 1))

    def loss(scale: float) -> float:
        seen = np.exp(-apart / scale)
        return max(float(np.abs(np.log(seen @ a) - np.log(seen @ b)).max()) for a, b in full)

    low, high = 0.1, 100.0
    while high - low > 1e-4 * high:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if loss(middle) <= epsilon else (middle, high)
    return high


@pytest.mark.parametrize(("epsilon", "stay", "need"), [(0.2, 0.6, 7.49), (1, 0.6, 1.467), (1, 0.9, 8.64), (5, 0.9, 0.794)])
def test_a_single_count_needs_what_the_recursion_says(epsilon: float, stay: float, need: float) -> None:
    """By the exact law of a count of 100 entries it needs no less noise than the bound for all mechanisms says."""
    chain = MarkovChain((0.5, 0.5), ((stay, 1 - stay), (1 - stay, stay)))
    exact, bound = least_scale(chain, 100, epsilon), 1 / chain_budget([chain], 100, epsilon)
    assert 0.999 * bound < exact <= bound * (1 + 1e-4)
    assert bound == pytest.approx(need, rel=1e-3)


def test_what_is_out_of_reach_or_none_is_refused() -> None:
    chain = MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"node": 0}, "node"), ({"node": 6}, "node"), ({"state": 2}, "state"), ({"values": (0,)}, "values"),
        ({"values": (0, 0.5)}, "values"), ({"length": 10**6}, "too many values"),
    ]  # fmt: skip
    for changes, words in wrong:
        with pytest.raises(UsageError, match=words):
            chain_sum(chain, **{"length": 5, "node": 2, "state": 0, "values": (0, 1), **changes})
    with pytest.raises(UsageError, match="too improbable"):
        chain_sum(MarkovChain((1.0, 0.0, 0.0), ((1.0, 1e-200, 0.0), (0.0, 1.0, 1e-200), (0.0, 0.0, 1.0))), 3, 3, 2, (0, 0, 1))
    # Sums so rare that floats do not hold them: no mass is claimed then, only the total.
    rare = chain_sum(MarkovChain((1.0, 0.0), ((1.0, 1e-20), (1.0, 1e-20))), 40, 1, 0, (0, 1))
    assert math.isinf(rare.error)
    assert rare.lost < 1e-9


def test_the_error_counts_the_factors_of_both_halves() -> None:
    """Each half is off by a share for each of its factors and by the sum over places, 17 of them; the halves are multiplied."""
    chain = MarkovChain((0.2, 0.3, 0.5), ((0.5, 0.3, 0.2), (0.1, 0.8, 0.1), (0.4, 0.2, 0.4)))
    for node in (1, 3, 7):
        share = Fraction(chain.error(node)) + Fraction(chain.error(8 - node)) + (2 * 17 + 16) * Fraction(1, 2**53)
        law = chain_sum(chain, 8, node, 1, (-1, 1, 0))
        assert law.error == pytest.approx(float((1 + share) ** 2 - 1), rel=0.01, abs=0.0)
        assert len(law.masses) == 15  # the entry itself is known
    assert chain.error(1) != chain.error(7)


def test_what_underflows_counts_as_a_share_of_a_rare_state() -> None:
    """4 width k (k + 1) length products of 2^-74 of the least mass that is claimed, divided by the chance of the state."""
    chain = MarkovChain((1e-12, 1 - 1e-12), ((0.5, 0.5), (0.25, 0.75)))
    law = chain_sum(chain, 3, 1, 0, (0, 5))
    assert law.error == pytest.approx(4 * 16 * 2 * 3 * 3 * 2.0**-74 / 1e-12, rel=1e-3, abs=0.0)
    assert law.masses[[0, 5, 10]] == pytest.approx([0.25, 0.25 + 0.125, 0.375])


def test_the_rarest_state_that_floats_hold() -> None:
    law = chain_sum(MarkovChain((LEAST, 1.0), ((0.5, 0.5), (0.25, 0.75))), 1, 1, 0, (3, 4))
    assert (law.start, law.masses.tolist()) == (3, [1.0])


def test_as_much_work_as_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of 4 entries of up to 3 each have 13 values: 3 x 3 products for each and each entry, and 13 x 13 at the end."""
    chain = MarkovChain((0.2, 0.3, 0.5), ((0.5, 0.3, 0.2), (0.1, 0.8, 0.1), (0.4, 0.2, 0.4)))
    monkeypatch.setattr(module, "_MOST_WORK", 4 * 13 * 9 + 13 * 13)
    assert chain_sum(chain, 4, 2, 0, (5, 6, 8)).start == 20
    monkeypatch.setattr(module, "_MOST_WORK", 4 * 13 * 9 + 13 * 13 - 1)
    with pytest.raises(UsageError, match="too many values"):
        chain_sum(chain, 4, 2, 0, (5, 6, 8))
