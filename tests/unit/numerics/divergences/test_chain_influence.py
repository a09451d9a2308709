"""The influence of an entry on its quilt by its definition: every value of the two others, given every two of its own."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences import chain_influence
from attrpriv.numerics.divergences.chain_influence import IMPOSSIBLE, INFINITE, ChainInfluence, near
from attrpriv.numerics.laws.markov import LEAST, MarkovChain

Matrix = list[list[Fraction]]

# Dyadic, so that floats are the numbers themselves.
CHAINS = {
    "known start": ("1 0", "7/8 1/8", "3/8 5/8"),
    "three": ("1/8 3/4 1/8", "1/2 1/4 1/4", "1/8 3/4 1/8", "3/8 1/2 1/8"),
    "late": ("1 0 0", "1/2 1/2 0", "0 1/2 1/2", "1/2 0 1/2"),
    "unreachable": ("1/2 1/2 0", "3/4 1/4 0", "3/8 5/8 0", "1/4 1/4 1/2"),
    "goes round": ("3/4 1/4", "0 1", "1 0"),
    "absorbing": ("1/2 1/4 1/4", "7/8 1/16 1/16", "1/2 1/4 1/4", "0 0 1"),
}
LENGTH = 9


def rows_of(name: str) -> Matrix:
    return [[Fraction(p) for p in row.split()] for row in CHAINS[name]]


def chain_of(name: str) -> MarkovChain:
    start, *rows = (tuple(map(float, row)) for row in rows_of(name))
    return MarkovChain(start, tuple(rows))


def times(a: Matrix, b: Matrix) -> Matrix:
    return [
        [sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0)) for column in zip(*b, strict=True)] for row in a
    ]


@lru_cache
def power(name: str, steps: int) -> Matrix:
    start, *rows = rows_of(name)
    if not steps:
        return [[Fraction(i == j) for j in range(len(start))] for i in range(len(start))]
    return times(power(name, steps - 1), rows)


@lru_cache
def law(name: str, node: int) -> list[Fraction]:
    return times([rows_of(name)[0]], power(name, node - 1))[0]


def log_ratio(p: Fraction, q: Fraction) -> float:
    return math.inf if not q else math.log(p / q)


def truth(name: str, node: int, shape: tuple[int, int]) -> float:
    """The largest log-ratio of what the two others are, given two values of the entry."""
    a, b = shape
    given = {}
    for s, p in enumerate(law(name, node)):
        if p:
            before = [x * power(name, a)[k][s] / p for k, x in enumerate(law(name, node - a))] if a else [Fraction(1)]
            after = power(name, b)[s] if b else [Fraction(1)]
            given[s] = [x * y for x in before for y in after]
    pairs = itertools.permutations(given.values(), 2)
    return max((log_ratio(x, y) for one, other in pairs for x, y in zip(one, other, strict=True) if x), default=0.0)


SHAPES = [(0, 0), (1, 0), (0, 1), (1, 1), (3, 0), (0, 4), (2, 3), (4, 1)]


def agrees(found: float, wanted: float) -> bool:
    """Above it, by what covers the rounding, and hardly more."""
    return found >= INFINITE if wanted == math.inf else wanted + 1e-12 <= found <= wanted + 2e-8


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CHAINS)
def test_every_node_and_quilt_by_its_definition(name: str, shape: tuple[int, int]) -> None:
    a, b = shape
    table, nodes = ChainInfluence(chain_of(name), LENGTH), list(range(1, LENGTH + 1))
    found = table.of(nodes, shape)
    for node, value in zip(nodes, found.tolist(), strict=True):
        assert table.of(node, shape) == value
        if (a and node - a < 1) or (b and node + b > LENGTH):
            assert value == INFINITE
        elif shape == (0, 0) or sum(p > 0 for p in law(name, node)) < 2:
            assert value == 0.0
        else:
            assert agrees(value, truth(name, node, shape))


@pytest.mark.parametrize("name", ["known start", "three", "unreachable"])
def test_nodes_behind_those_that_are_known_one_by_one(name: str) -> None:
    """They are like the last of these, up to the drift that is left."""
    table, shape = ChainInfluence(chain_of(name), 3000), (3, 2)
    known = table.laws.nodes
    assert table.laws.settled
    assert known < 60
    for node in (known - 1, known, known + 1, known + 20):
        assert agrees(float(table.of(node, shape)), truth(name, node, shape))
        assert table.possible(node).tolist() == table.possible(known).tolist() == table.possible(1, settled=True).tolist()
    moved = float(table.of(known + 20, shape)) - float(table.of(known, shape))
    assert table.laws.drift > 1e-12
    assert moved == pytest.approx(table.laws.drift, rel=1e-2)
    assert float(table.of(known, (0, 2))) < float(table.of(known + 1, (0, 2)))
    settled = table.of_settled(shape)
    assert agrees(settled, truth(name, known + 20, shape))
    assert settled >= float(table.of(known + 20, shape)) - 1e-13
    assert table.left(known + 30, 4).tolist() == table.left(1, 4, settled=True).tolist()


def test_an_entry_that_tells_nothing_has_no_influence_but_for_rounding() -> None:
    coins = ChainInfluence(MarkovChain((0.5, 0.5), ((0.5, 0.5), (0.5, 0.5))), 2000)
    for value in (float(coins.of(9, (1, 1))), coins.of_settled((2, 2)), float(coins.of(9, (1, 0))), float(coins.of(9, (0, 1)))):
        assert 1e-12 <= value <= 1e-8


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("node", [1, 2, 5, 9])
def test_the_parts_by_their_definitions(name: str, node: int) -> None:
    """D, D + M and R for each pair (s, t), and M the other way round."""
    table, size = ChainInfluence(chain_of(name), LENGTH), len(rows_of(name)[0])
    pairs, here, w = list(itertools.permutations(range(size), 2)), law(name, node), 4
    own, right, backwards = table.own(node), table.right(w), table.backwards(w)
    left = table.left(node, min(w, node - 1)) if node > 1 else np.zeros((0, len(pairs)))
    assert right.shape == backwards.shape == (w, len(pairs))
    assert table.possible(node).tolist() == [bool(here[s] and here[t]) for s, t in pairs]

    def same(found: float, ratios: list[float]) -> bool:
        wanted = max(ratios, default=-math.inf)
        if math.isinf(wanted):
            return found >= INFINITE if wanted > 0 else found == IMPOSSIBLE
        return found == pytest.approx(wanted, rel=1e-12, abs=1e-12)

    for k, (s, t) in enumerate(pairs):
        both = bool(here[s] and here[t])
        assert own[k] == (pytest.approx(log_ratio(here[t], here[s]), abs=1e-12) if both else IMPOSSIBLE)
        for m in range(1, w + 1):
            step = power(name, m)
            assert same(right[m - 1, k], [log_ratio(step[s][y], step[t][y]) for y in range(size) if step[s][y]])
            assert same(backwards[m - 1, k], [log_ratio(step[x][t], step[x][s]) for x in range(size) if step[x][t]])
            if both and m < node:
                before = law(name, node - m)
                told = [log_ratio(step[x][s], step[x][t]) for x in range(size) if before[x] and step[x][s]]
                assert same(left[m - 1, k], [log_ratio(here[t], here[s]) + max(told)])


def test_nodes_with_a_single_value_hide_nothing() -> None:
    assert ChainInfluence(chain_of("late"), LENGTH).skipped.tolist() == [True] + [False] * (LENGTH - 1)
    assert ChainInfluence(chain_of("goes round"), LENGTH).skipped.tolist() == [False] * LENGTH


def test_what_floats_do_not_know_counts_as_told() -> None:
    """A probability below the least one that is known, of the entry and of a way to it; one at that end is known."""
    rare = MarkovChain((1.0, 0.0), ((1.0, 1e-200), (1e-200, 1.0)))
    table = ChainInfluence(rare, 4)
    assert float(table.of(3, (0, 1))) == pytest.approx(math.log(1e200), rel=1e-9)
    least = ChainInfluence(MarkovChain((1 - LEAST, LEAST), ((0.5, 0.5), (0.5, 0.5))), 4)
    assert least.own(1)[0] == pytest.approx(math.log(LEAST), rel=1e-12)
    told = ChainInfluence(MarkovChain((1.0, 0.0), ((1.0, LEAST), (0.5, 0.5))), 2).right(1)[0]
    assert told.tolist() == pytest.approx([math.log(2), math.log(0.5 / LEAST)], rel=1e-12)
    rarer = ChainInfluence(MarkovChain((1 - 1e-200, 1e-200), ((1.0, 1e-200), (1.0, 1e-200))), 4)
    rarer.laws.values[0] = [1.0, 1e-290]
    assert rarer._log_ratios()[0].tolist() == [INFINITE, INFINITE]
    assert float(ChainInfluence(MarkovChain((0.5, 0.5), ((1.0, 1e-200), (1.0, 1e-200))), 5).of(3, (2, 0))) < 1e-3
    far = ChainInfluence(MarkovChain((1.0, 0.0, 0.0), ((1.0, 1e-150, 0.0), (0.0, 1.0, 1e-150), (0.5, 0.0, 0.5))), 5)
    assert float(far.of(3, (2, 0))) >= INFINITE


def test_the_margin_grows_with_all_steps_that_are_rounded() -> None:
    """Each of the steps before, on either side, and the drift where nodes are not known one by one."""
    chain = chain_of("goes round")
    table, many = ChainInfluence(chain, 5000), 10**6
    assert (table.laws.nodes, table.laws.drift) == (5000, 0.0)
    for node, shape in ((5000, (0, 0)), (1, (many, 0)), (1, (0, many)), (1, (many, many)), (9000, (1, 1))):
        steps = min(node, 5000) + sum(shape)
        assert 2 * chain.error(steps + 1) + 1e-12 <= table.margin(node, shape) <= 3 * chain.error(steps + 9) + 1e-11
    assert table.margin(1, (1, 1)) < table.margin(5000, (1, 1))
    slow = ChainInfluence(chain_of("known start"), 3000)
    last = slow.laws.nodes
    plain = slow.margin(last, (1, 1))
    assert slow.margin(last + 1, (1, 1)) == plain + slow.laws.drift > plain
    assert slow.margin(3, (1, 1), settled=True) >= slow.margin(3, (1, 1)) + slow.laws.drift * (1 - 1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_quilt_does_not_separate_is_counted(shape: tuple[int, int]) -> None:
    a, b = shape
    nodes = np.arange(1, LENGTH + 1)
    found = near(nodes, shape, LENGTH)
    assert found.shape == nodes.shape
    for node, count in zip(nodes.tolist(), found.tolist(), strict=True):
        first, last = node - a + 1 if a else 1, node + b - 1 if b else LENGTH
        assert count == len(range(first, last + 1))


def test_nodes_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ChainInfluence(chain_of("three"), LENGTH)
    whole = table.of(np.arange(1, LENGTH + 1), (1, 1)).tolist()
    for chunk in (1, 6, 13, 50):
        monkeypatch.setattr(chain_influence, "_CHUNK", chunk)
        assert table.of(np.arange(1, LENGTH + 1), (1, 1)).tolist() == whole
    assert table.of([], (1, 1)).shape == (0,)


@pytest.mark.parametrize("name", CHAINS)
def test_tables_that_grow_are_those_made_at_once(name: str) -> None:
    table, whole = ChainInfluence(chain_of(name), LENGTH), ChainInfluence(chain_of(name), LENGTH)
    for w in (1, 2, 5, 8):
        assert table.right(w).tolist() == whole.right(8)[:w].tolist()
        assert table.backwards(w).tolist() == whole.backwards(8)[:w].tolist()
        assert table.left(9, w).tolist() == whole.left(9, 8)[:w].tolist()


def test_lengths_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """None at all, and more numbers than are looked at: k^2 for each node where nothing settles."""
    with pytest.raises(UsageError, match="at least 1"):
        ChainInfluence(chain_of("three"), 0)
    assert ChainInfluence(chain_of("known start"), 1).skipped.tolist() == [True]
    turns = MarkovChain((0.5, 0.25, 0.25), ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)))
    monkeypatch.setattr(chain_influence, "_MOST", 90)
    assert ChainInfluence(turns, 10).laws.nodes == 10
    with pytest.raises(UsageError, match="too long"):
        ChainInfluence(turns, 11)
