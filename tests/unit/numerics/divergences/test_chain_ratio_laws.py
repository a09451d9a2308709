"""The laws of the first nodes of a chain, in fractions: what can be had, where they settle, how far they drift, steps back."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from attrpriv.numerics.divergences.chain_ratio import _Laws
from attrpriv.numerics.laws.markov import MarkovChain

Chain = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]

# Dyadic, so that floats are the numbers themselves.
CHAINS: dict[str, Chain] = {
    "known start": (("1", "0"), (("7/8", "1/8"), ("3/8", "5/8"))),
    "goes round": (("3/4", "1/4"), (("0", "1"), ("1", "0"))),
    "certain": (("1", "0"), (("0", "1"), ("1", "0"))),
    "certain, then not": (("1", "0", "0"), (("0", "1", "0"), ("0", "0", "1"), ("1/4", "0", "3/4"))),
    "certain, with a choice that is never met": (("1", "0", "0"), (("0", "1", "0"), ("1", "0", "0"), ("1/4", "1/4", "1/2"))),
    "three phases": (
        ("1/4", "3/4", "0", "0"),
        (("0", "0", "1", "0"), ("0", "0", "1", "0"), ("0", "0", "0", "1"), ("1/8", "7/8", "0", "0")),
    ),
    "unreachable": (("1/2", "1/2", "0"), (("3/4", "1/4", "0"), ("3/8", "5/8", "0"), ("1/4", "1/4", "1/2"))),
    "late": (("1", "0", "0"), (("1/2", "1/2", "0"), ("0", "1/2", "1/2"), ("1/2", "0", "1/2"))),
    "absorbing": (("1/2", "1/2", "0"), (("7/8", "1/16", "1/16"), ("1/2", "1/4", "1/4"), ("0", "0", "1"))),
    "even": (("1/2", "1/2"), (("7/8", "1/8"), ("1/8", "7/8"))),
}  # fmt: skip


def chain_of(name: str) -> MarkovChain:
    initial, rows = CHAINS[name]
    return MarkovChain(_floats(initial), tuple(_floats(row) for row in rows))


def _floats(law: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(float(Fraction(p)) for p in law)


def laws_of(name: str, length: int) -> list[list[Fraction]]:
    initial, rows = CHAINS[name]
    found = [[Fraction(p) for p in initial]]
    for _ in range(length - 1):
        found.append(
            [
                sum((p * Fraction(row[x]) for p, row in zip(found[-1], rows, strict=True)), Fraction(0))
                for x in range(len(initial))
            ]
        )
    return found


def supports(name: str, length: int) -> list[list[int]]:
    return [[x for x, p in enumerate(law) if p] for law in laws_of(name, length)]


@pytest.mark.parametrize(("length", "most"), [(1, 9), (2, 9), (3, 2), (7, 4), (12, 12), (30, 8)])
def test_which_values_the_nodes_can_have(length: int, most: int) -> None:
    """Every node that is listed, all that can ever be reached, the pairs that no node has both: as far as nodes are known."""
    for name in CHAINS:
        laws = _Laws(chain_of(name), length, most)
        held = supports(name, max(length, 20))
        listed = min(length, most)
        assert [laws.held(node).tolist() for node in range(1, listed + 1)] == held[:listed]
        assert laws.reached.tolist() == sorted(set().union(*held))
        known = length <= listed or name != "certain, then not"  # else a node that is not looked at might have had a choice
        assert laws.nothing == (known and all(len(one) < 2 for one in held[:length]))
        apart = laws.apart()
        if not laws.lag and length > listed:
            assert apart is None
            continue
        both = [[any(x in one and y in one for one in held[:length]) for y in laws.reached] for x in laws.reached]
        if apart is None:
            assert np.all(both)
        else:
            assert apart.tolist() == (~np.array(both)).tolist()


@pytest.mark.parametrize("length", [6, 40, 3001])
def test_where_laws_settle_or_go_round(length: int) -> None:
    for name, own, lag in (("goes round", 1, 2), ("three phases", 2, 3), ("even", 1, 1)):
        laws = _Laws(chain_of(name), length, min(length, 100))
        assert (laws.own, laws.lag) == (own, lag)


@pytest.mark.parametrize("length", [3, 4, 20])
def test_laws_that_have_not_settled_have_steps_of_their_own(length: int) -> None:
    """A law that moves far is no settled one, and the last node alone repeats nothing."""
    laws = _Laws(chain_of("late"), length, length)
    assert (laws.own, laws.lag, laws.drift) == (length, 0, 0.0)


@pytest.mark.parametrize(("own", "lag"), [(4, 1), (6, 2), (9, 3)])
def test_the_drift_is_what_a_round_moves_for_all_rounds_left(own: int, lag: int) -> None:
    """Of the logarithms of two laws of one support the span: largest less least, on what the node can have."""
    for name in ("known start", "absorbing", "unreachable", "three phases"):
        laws, length = _Laws(chain_of(name), 50, 50), 50
        if name == "three phases" and lag < 3:
            continue
        laws.own, laws.lag = own, lag
        exact = laws_of(name, own + lag)
        moved = [math.log(b / a) for a, b in zip(exact[own - 1], exact[own + lag - 1], strict=True) if a]
        wanted = (length - own) / lag * (max(moved) - min(moved))
        found = laws._drift(chain_of(name).matrix())
        assert wanted <= found <= wanted * (1 + 1e-9) + 1e-11
        # Each of the two laws of a round, and that of the node, may be off by its rounding on either side.
        error = laws.chain.error
        assert found >= wanted * (1 - 1e-12) + (length - own) / lag * 4 * error(lag) * (1 - 1e-9) + 2 * error(own)


def reversed_law(name: str, node: int) -> list[list[Fraction]]:
    """P(X_(node-1) = z | X_node = x) for the values that both can have."""
    before, rows = laws_of(name, node)[node - 2], CHAINS[name][1]
    held = supports(name, node)
    joint = [[before[z] * Fraction(rows[z][x]) for z in held[node - 2]] for x in held[node - 1]]
    return [[p / sum(row) for p in row] for row in joint]


@pytest.mark.parametrize("node", [2, 3, 7])
def test_steps_back_are_those_of_the_reversed_chain(node: int) -> None:
    for name in CHAINS:
        laws = _Laws(chain_of(name), 20, 20)
        kernel, held = laws.reversed(node, drift=0.125), supports(name, node)
        assert (kernel.rows.tolist(), kernel.columns.tolist()) == (held[node - 1], held[node - 2])
        assert kernel.owner.tolist() == list(range(len(kernel.rows)))
        assert kernel.law == pytest.approx(np.array(reversed_law(name, node), dtype=np.float64), rel=1e-13)
        assert 2.5 * 0.125 + 1e-14 < kernel.slack < 2.5 * 0.125 + 1e-11


def test_a_step_back_is_off_by_the_rounding_of_all_steps_before() -> None:
    laws = _Laws(chain_of("late"), 3000, 3000)
    assert laws.reversed(2900).slack >= 4 * laws.chain.error(2900)


@pytest.mark.parametrize("name", ["goes round", "three phases", "even", "known start"])
def test_the_steps_that_repeat_are_those_behind_the_own_nodes(name: str) -> None:
    laws = _Laws(chain_of(name), 400, 400)
    assert laws.lag
    steps = laws.cycle()
    assert len(steps) == laws.lag
    held = supports(name, laws.own + laws.lag)
    for k, kernel in enumerate(steps):
        node = laws.own + 1 + k
        assert (kernel.rows.tolist(), kernel.columns.tolist()) == (held[node - 1], held[node - 2])
        assert kernel.law == pytest.approx(np.array(reversed_law(name, node), dtype=np.float64), rel=1e-13)
        assert kernel.slack >= 2.5 * laws.drift > 0


@pytest.mark.parametrize(
    ("initial", "rows"),
    [
        # Too small: a value before; all that leads to a value; one of two ways to it.
        ((1e-200, 1 - 1e-200), ((1e-100, 1.0), (0.5, 0.5))),
        ((1e-200, 1 - 1e-200), ((1e-100, 1.0), (0.0, 1.0))),
        ((1e-200, 1 - 1e-200), ((1e-100, 1.0), (0.1, 0.9))),
        # So small that its product is 0: of the only way to a value.
        ((1e-200, 1 - 1e-200), ((1e-200, 1.0), (0.0, 1.0))),
    ],
)
def test_laws_that_floats_do_not_know_are_not_used(initial: tuple[float, ...], rows: tuple[tuple[float, ...], ...]) -> None:
    laws = _Laws(MarkovChain(initial, rows), 6, 6)
    assert laws.reversed(2).law is None
    assert laws.held(2).tolist() == [0, 1]


def test_a_value_before_that_is_too_rare_makes_a_step_unknown() -> None:
    """Down to LEAST floats are known; one of the two values of node 2 is rarer."""
    laws = _Laws(MarkovChain((1.0, 0.0), ((1.0, 0.0), (0.5, 0.5))), 6, 6)
    laws._values[1], laws._support[1:] = np.array([1.0, 1e-281]), True
    assert laws.reversed(3).law is None
    # A law that became 0 although it is none leaves products that look as if they were impossible.
    even = _Laws(MarkovChain((1.0, 0.0), ((0.5, 0.5), (0.5, 0.5))), 6, 6)
    even._values[1] = np.array([1.0, 0.0])
    assert even.reversed(3).law is None
    laws._values[1] = np.array([1.0, 1e-279])
    assert laws.reversed(3).law is not None
