"""What a chain loses where its probabilities are off: its parts by their definition, the whole against chains that are off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attrpriv.methods.base.accuracy import OFF_BY
from attrpriv.methods.chain_quilt import model_error as module
from attrpriv.methods.chain_quilt.model_error import _excess, _Moves, chain_model_error
from attrpriv.numerics.divergences.chain_influence import ChainInfluence
from attrpriv.numerics.laws.markov import MarkovChain
from tests.unit.methods.chain_quilt.test_proof import LENGTH, MOVES, SETTLED, STAYS, check, evidence, loss

# Entries begin in one of two states out of three, and no step goes from the first to the last.
LATER = MarkovChain((0.5, 0.5, 0.0), ((0.7, 0.3, 0.0), (0.2, 0.5, 0.3), (0.1, 0.3, 0.6)))
# The first entry is known.
KNOWN = MarkovChain((1.0, 0.0), ((0.9, 0.1), (0.4, 0.6)))
SLOW = MarkovChain((0.9, 0.1), ((0.97, 0.03), (0.02, 0.98)))
CHAINS = [STAYS, MOVES, SETTLED, LATER, KNOWN, SLOW]
STEPS = 48


def change_of(off: float) -> float:
    return math.log((1 + off) / (1 - off))


@cache
def told(chain: MarkovChain) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Of m = 1, 2, ..., and states s and t: max over x of log P^m(x, t)/P^m(x, s)."""
    found, states, power = [], range(chain.states), np.eye(chain.states)
    for _ in range(STEPS):
        power = power @ np.array(chain.transition)
        rows = power.tolist()
        worst = [
            [max(math.log(r[t] / r[s]) if r[s] > 0 else math.inf for r in rows if r[t] > 0) for t in states] for s in states
        ]
        found.append(tuple(map(tuple, worst)))
    return tuple(found)


def excess(chain: MarkovChain, node: int) -> list[float]:
    """The same less log pi(t)/pi(s), pi the law of the entry; the largest of any two states that it can have."""
    law = (np.array(chain.initial) @ np.linalg.matrix_power(np.array(chain.transition), node - 1)).tolist()
    pairs = [(s, t) for s in range(len(law)) for t in range(len(law)) if s != t and law[s] > 0 and law[t] > 0]
    return [max((one[s][t] - math.log(law[t] / law[s]) for s, t in pairs), default=0.0) for one in told(chain)]


def moved(node: int, extra: Sequence[float], change: float) -> float:
    """By every step to the entry; or by the last m of them alone, wherever the one before these is."""
    return min([node * change, *(extra[m - 1] + m * change for m in range(1, min(node - 1, STEPS) + 1))])


@pytest.mark.parametrize("chain", CHAINS)
def test_how_far_a_law_can_be_from_what_the_last_steps_make_of_it(chain: MarkovChain) -> None:
    table = ChainInfluence(chain, 60)
    for node in {1, 2, 3, 7, table.laws.nodes - 1, table.laws.nodes} & set(range(1, table.laws.nodes + 1)):
        found = _excess(table, node)
        assert len(found) == STEPS
        for above, exact in zip(found, excess(chain, node), strict=True):
            assert (math.isinf(above) and math.isinf(exact)) or exact - 1e-14 <= above <= exact + 1e-6


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("length", [2, 6, 70])
def test_the_entry_that_moves_most_is_found(chain: MarkovChain, length: int) -> None:
    made = _Moves.of(check(chain), length)
    assert made is not None
    extras = [excess(chain, node) for node in range(1, length + 1)]
    for change in (1e-3, change_of(0.01), change_of(0.1)):
        exact = max(moved(node, extra, change) for node, extra in enumerate(extras, 1))
        assert exact - 1e-12 <= made.largest(change) <= exact + 1e-6


@pytest.mark.parametrize("length", [3, 30, 60, 100])
@pytest.mark.parametrize("place", [1, 3, 20, 47, 48])
@pytest.mark.parametrize("low", [-5.0, 0.25, 3.0])
def test_entries_that_are_not_listed_move_as_the_last_one_does(length: int, place: int, low: float) -> None:
    """Lists that are lower at one number of steps: every entry of the chain is tried, with what is there for it."""
    first, last = [99.0] * STEPS, [99.0] * STEPS
    last[place - 1] = low
    made = _Moves([first, last], length)
    exact = max(moved(node, first if node == 1 else last, 0.5) for node in range(1, length + 1))
    assert made.largest(0.5) == pytest.approx(exact, rel=1e-12)


def test_a_listed_entry_moves_as_its_own_list_says() -> None:
    """The second by half a step back at most, whatever the third's list says of entries behind it."""
    lists = [[99.0] * STEPS, [-5.0] + [99.0] * (STEPS - 1), [99.0, -5.0] + [99.0] * (STEPS - 2)]
    assert _Moves(lists, 50).largest(0.5) == 0.5


@pytest.mark.parametrize("settled", [True, False])
def test_an_entry_that_stands_for_all_behind_it_is_charged_for_what_they_still_move(settled: bool) -> None:
    class Table:
        """Two entries are known on their own; the last one stands for all behind it where the chain has settled."""

        def __init__(self) -> None:
            self.laws = SimpleNamespace(settled=settled, nodes=2)

        def own(self, node: int) -> np.ndarray:
            return np.array([0.25, -0.25])

        def backwards(self, steps: int) -> np.ndarray:
            return np.full((steps, 2), 1.0)

        def margin(self, node: int, shape: tuple[int, int], *, settled: bool) -> float:
            assert shape == (STEPS, 0)
            return 8.0 if settled else 0.0

    table: Any = Table()
    assert _excess(table, 1) == [1.25] * STEPS
    assert _excess(table, 2) == [1.25 + 8.0 * settled] * STEPS


@pytest.mark.parametrize(("chain", "shapes"), [(STAYS, ((1, 1),)), (STAYS, ((2, 2),)), (MOVES, ((1, 2), (3, 1))), (STAYS, ())])
@pytest.mark.parametrize("rate", [0.05, 0.3, 2.0])
def test_the_rows_by_enumeration(chain: MarkovChain, shapes: tuple[tuple[int, int], ...], rate: float) -> None:
    """Each entry's quilts at a rate that is larger by c, c once more, and what laws move; or every entry for itself."""
    rows = chain_model_error(evidence(checks=(check(chain, shapes=shapes),), scale=1 / rate))
    assert [row.off_by for row in rows] == list(OFF_BY)
    for row in rows:
        c = change_of(row.off_by)
        own = max(moved(node, excess(chain, node), c) for node in range(1, LENGTH + 1))
        exact = min(LENGTH * rate, loss(chain, shapes, rate + c) + c + own)
        assert row.epsilon == pytest.approx(exact, rel=1e-6)
        assert row.epsilon is not None
        assert row.epsilon >= exact * (1 - 1e-12)


@pytest.mark.parametrize("chain", [STAYS, MOVES])
def test_no_chain_that_is_off_by_a_share_loses_more(chain: MarkovChain) -> None:
    """Corners of what probabilities can be within the share."""
    shapes, rate = ((1, 1), (2, 2)), 2.0
    rows = chain_model_error(evidence(checks=(check(chain, shapes=shapes),), scale=1 / rate))
    laws = np.array([chain.initial, *chain.transition])
    for row in (rows[0], rows[-1]):
        assert row.epsilon is not None
        worst = 0.0
        for signs in np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T:
            first = laws[:, 0] + signs * row.off_by * laws.min(axis=1)
            off = [(float(p), float(1 - p)) for p in first]
            worst = max(worst, loss(MarkovChain(off[0], tuple(off[1:])), shapes, rate))
        assert loss(chain, shapes, rate) < worst <= row.epsilon


def test_the_worst_chain_of_a_list_counts() -> None:
    alone = [chain_model_error(evidence(checks=(check(chain),), scale=0.5))[-1].epsilon for chain in (STAYS, MOVES)]
    assert alone[0] != alone[1]
    for pair in ((STAYS, MOVES), (MOVES, STAYS)):
        (*_, last) = chain_model_error(evidence(checks=tuple(map(check, pair)), scale=0.5))
        assert last.epsilon == max(one for one in alone if one is not None)


def test_what_is_too_large_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that are known on their own, times pairs of states, times steps; one chain of a list is enough."""
    length = 200
    work = {chain: ChainInfluence(chain, length).laws.nodes * 4 * STEPS for chain in (STAYS, SLOW)}
    assert work[STAYS] < work[SLOW]
    both = evidence(checks=(check(STAYS), check(SLOW)), length=length)
    for most, looked in ((work[SLOW], True), (work[SLOW] - 1, False), (work[STAYS], False)):
        monkeypatch.setattr(module, "_MOST_WORK", most)
        assert bool(chain_model_error(both)) is looked
    assert chain_model_error(evidence(checks=(check(STAYS),), length=length))
    monkeypatch.setattr(module, "_MOST_WORK", work[STAYS] - 1)
    assert not chain_model_error(evidence(checks=(check(STAYS),), length=length))
