"""Elimination on small networks whose rows do not quite sum to one: joint laws, bounds and what is charged for rounding."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import PolicyError, UsageError
from attrpriv.numerics.networks import inference
from attrpriv.numerics.networks.inference import Bound, BoundsError, bounds, bounds_given, joint_law
from attrpriv.numerics.networks.network import Network, Node

OFF = 9e-6  # a row may be off by 1e-5
STATES = {"a": 2, "b": 3, "c": 2, "d": 3}
PARENTS = {"a": (), "b": ("a",), "c": ("b", "a"), "d": ("b",)}


def network(seed: int = 1) -> Network:
    """Rows that are off by 9e-6 to either side, and some of them not at all."""
    rng = random.Random(seed)
    nodes = {}
    for name, size in STATES.items():
        rows = []
        for _ in range(math.prod(STATES[parent] for parent in PARENTS[name])):
            weights = [rng.uniform(0.1, 1.0) for _ in range(size)]
            row = [w / sum(weights) for w in weights]
            row[rng.randrange(size)] += rng.choice((-OFF, 0.0, OFF))
            rows.append(tuple(row))
        nodes[name] = Node(states=tuple(f"{name}{k}" for k in range(size)), parents=PARENTS[name], table=tuple(rows))
    return Network(nodes=nodes)


def row_of(net: Network, name: str, state: dict[str, int]) -> tuple[float, ...]:
    at = 0
    for parent in net.nodes[name].parents:
        at = at * STATES[parent] + state[parent]
    return net.nodes[name].table[at]


def states() -> Iterator[dict[str, int]]:
    for found in itertools.product(*(range(size) for size in STATES.values())):
        yield dict(zip(STATES, found, strict=True))


def chance(net: Network, state: dict[str, int]) -> float:
    rows = {name: row_of(net, name, state) for name in STATES}
    return math.prod(row[state[name]] / math.fsum(row) for name, row in rows.items())


@pytest.mark.parametrize("columns", [("d",), ("a", "d"), ("d", "c", "a"), ("c", "c", "b"), ("b", "a", "d", "c")])
def test_rows_are_divided_by_their_sums(columns: tuple[str, ...]) -> None:
    net = network()
    found = joint_law(net, columns)
    assert found.columns == tuple(dict.fromkeys(columns))
    wanted = np.zeros([STATES[name] for name in found.columns])
    for state in states():
        wanted[tuple(state[name] for name in found.columns)] += chance(net, state)
    assert found.values == pytest.approx(wanted, rel=1e-13)
    assert not found.tiny


def test_what_is_charged_for_rounding() -> None:
    """For each table the sum of a row and two units; for each column summed out its states and the tables it is in; the rest.

    Of a, b and d: 3 * 2 + 2 + 3 + 3 units of their tables. Summing out a takes two tables and two states, and leaves two
    tables; b takes those two and three states, and one table is left.
    """
    units = (6 + 8) + (2 + 2) + (2 + 3) + 1
    assert units * 2.0**-53 <= joint_law(network(), ("d",)).error <= 1.02 * units * 2.0**-53
    alone = (2 + 2) + 1
    assert alone * 2.0**-53 <= joint_law(network(), ("a",)).error <= 1.02 * alone * 2.0**-53


def test_products_that_may_leave_the_floats_are_told_wherever_they_are_made() -> None:
    """Of least entries 1e-145 and 1e-144 a float still tells, of 1e-145 and 1e-146 it need not: on the way, and at the end."""

    def chain(x: float, y: float) -> Network:
        return Network(
            nodes={
                "a": Node(states=("0", "1"), table=((1.0, x),)),
                "b": Node(states=("0", "1"), parents=("a",), table=((0.5, 0.5), (1.0, y))),
                "c": Node(states=("0", "1"), parents=("b",), table=((0.5, 0.5), (0.25, 0.75))),
            }
        )

    for y, tiny in ((1e-144, False), (1e-146, True)):
        assert joint_law(chain(1e-145, y), ("a", "b")).tiny is tiny
        assert joint_law(chain(1e-145, y), ("b",)).tiny is tiny
        assert joint_law(chain(1e-145, y), ("c",)).tiny is tiny
    assert not joint_law(chain(1e-145, 1e-146), ("a",)).tiny


@pytest.mark.parametrize(("least", "tiny"), [(0.8e-290, True), (1.2e-290, False)])
def test_the_least_product_that_a_float_tells(least: float, tiny: bool) -> None:
    """A table of what cannot be makes no product too small."""
    one, never = inference._Factor(("a",), np.array([least, 1.0])), inference._Factor(("b",), np.zeros(2))
    assert inference._product([one], {"a": 2})[1] is tiny
    assert inference._product([one, never], {"a": 2, "b": 2})[1] is tiny


def test_nothing_asked_for_is_certain() -> None:
    found = joint_law(network(), ())
    assert found.values.shape == ()
    assert float(found.values) == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("root", [0, 4, 8])
def test_a_chain_needs_tables_of_two_columns_only(root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three states each: nine entries are enough, whichever column is asked for, and eight are not."""
    row = (0.2, 0.3, 0.5)
    nodes = {"x0": Node(states=("0", "1", "2"), table=(row,))}
    for k in range(1, 9):
        nodes[f"x{k}"] = Node(states=("0", "1", "2"), parents=(f"x{k - 1}",), table=(row, row[::-1], row))
    monkeypatch.setattr(inference, "MOST_ENTRIES", 9)
    law = np.array(row)
    for _ in range(root):
        law = law @ np.array([row, row[::-1], row])
    assert joint_law(Network(nodes=nodes), (f"x{root}",)).values == pytest.approx(law, rel=1e-13)
    monkeypatch.setattr(inference, "MOST_ENTRIES", 8)
    if root:
        with pytest.raises(UsageError, match="too large"):
            joint_law(Network(nodes=nodes), (f"x{root}",))
    with pytest.raises(UsageError, match="too large"):
        joint_law(Network(nodes=nodes), ("x0", "x1"))


def test_the_smallest_table_is_made_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column with ten children: summed out one by one they need eight entries, and the column first would need a thousand."""
    coin = ((0.5, 0.5), (0.25, 0.75))
    nodes = {"x": Node(states=("0", "1"), table=((0.3, 0.7),))}
    nodes |= {f"y{k}": Node(states=("0", "1"), parents=("x",), table=coin) for k in range(10)}
    nodes["z"] = Node(states=("0", "1"), parents=("y0", "y1"), table=((0.5, 0.5), (0.1, 0.9), (0.2, 0.8), (0.3, 0.7)))
    monkeypatch.setattr(inference, "MOST_ENTRIES", 8)
    net = Network(nodes=nodes)
    given = [[coin[x][i] * coin[x][j] * nodes["z"].table[2 * i + j][1] for i in (0, 1) for j in (0, 1)] for x in (0, 1)]
    assert joint_law(net, ("z",)).values[1] == pytest.approx(0.3 * sum(given[0]) + 0.7 * sum(given[1]), rel=1e-13)


# --- bounds ------------------------------------------------------------------------------------------------------------------


def best(u: Sequence[float], row: Sequence[float], t: float, largest: bool) -> float:
    """Over all laws whose entries are within t of the row as written or of the row divided by its sum: at a corner."""
    scaled = [p / math.fsum(row) for p in row]
    if t == 0:
        return math.fsum(p * x for p, x in zip(scaled, u, strict=True))
    ends = [(max(0.0, min(p, q) - t), min(1.0, max(p, q) + t)) for p, q in zip(row, scaled, strict=True)]
    found = []
    for free in range(len(row)):
        for others in itertools.product(*(pair for k, pair in enumerate(ends) if k != free)):
            left = 1 - math.fsum(others)
            if ends[free][0] - 1e-15 <= left <= ends[free][1] + 1e-15:
                member = (*others[:free], left, *others[free:])
                found.append(math.fsum(p * x for p, x in zip(member, u, strict=True)))
    return max(found) if largest else min(found)


def slow(
    net: Network, columns: tuple[str, ...], event: Any, t: float, largest: bool, known: dict[str, int] | None = None
) -> float:
    """Columns one after the other, each with the worst of its rows for what is known by then."""

    def worst(state: dict[str, int]) -> float:
        if len(state) == len(STATES):
            return float(event[tuple(state[name] for name in columns)])
        name = list(STATES)[len(state)]
        if known and name in known:
            return worst(state | {name: known[name]})
        return best([worst(state | {name: k}) for k in range(STATES[name])], row_of(net, name, state), t, largest)

    return worst({})


def events(seed: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    rng = np.random.default_rng(seed)
    for columns in (("d",), ("d", "a"), ("c", "b"), ("b",), ("a", "c", "d")):
        yield columns, rng.integers(0, 2, size=[STATES[name] for name in columns]).astype(float)


@pytest.mark.parametrize("t", [0.0, 2e-5, 0.03, 0.4, 1.0])
def test_bounds_are_those_of_the_worst_row_for_every_history(t: float) -> None:
    net = network(2)
    for columns, event in events(3):
        if columns in (("c", "b"), ("a", "c", "d")) or t < 0.4:
            wanted = [slow(net, columns, event, t, largest) for largest in (False, True)]
            assert bounds(net, columns, event, t) == pytest.approx(wanted, rel=1e-12, abs=3e-13)


@pytest.mark.parametrize("t", [0.0, 2e-5, 0.03])
def test_bounds_given_a_root_know_its_state(t: float) -> None:
    net = network(4)
    for columns, event in events(5):
        for k in (0, 1):
            wanted = [slow(net, columns, event, t, largest, {"a": k}) for largest in (False, True)]
            assert bounds_given(net, "a", k, columns, event, t) == pytest.approx(wanted, rel=1e-12, abs=3e-13)


@pytest.mark.parametrize("t", [0.0, 2e-5, 0.03])
@pytest.mark.parametrize("sensitive", ["b", "c"])
def test_bounds_given_a_column_with_parents_divide_the_worst_of_both(sensitive: str, t: float) -> None:
    """P(E | c) = A/(A + B): A at most with B at least, and the other way round."""
    net = network(6)
    for columns, event in events(7):
        whole = columns if sensitive in columns else (*columns, sensitive)
        spread = event if sensitive in columns else np.stack([event] * STATES[sensitive], axis=-1)
        for k in range(STATES[sensitive]):
            only = np.zeros_like(spread)
            place = tuple(k if name == sensitive else slice(None) for name in whole)
            only[place] = 1.0
            a = [slow(net, whole, spread * only, t, largest) for largest in (False, True)]
            b = [slow(net, whole, (1 - spread) * only, t, largest) for largest in (False, True)]
            if min(a[1] + b[0], a[0] + b[1]) > 0:
                wanted = a[0] / (a[0] + b[1]), a[1] / (a[1] + b[0])
                found = bounds_given(net, sensitive, k, columns, event, t)
                assert found == pytest.approx(wanted, rel=1e-11, abs=3e-13)


def test_what_rounding_can_have_moved_is_added_outwards() -> None:
    assert inference._outward(0.25, 0.5, 0.0) == pytest.approx((0.25 * (1 - 1e-13), 0.5 * (1 + 1e-13)), rel=1e-15)
    assert inference._outward(0.25, 0.5, 0.1) == pytest.approx((0.25 - 1e-13, 0.5 + 1e-13), rel=1e-15)
    for t in (0.0, 0.1):
        assert inference._outward(0.0, 1.0, t) == (0.0, 1.0)
    assert inference._outward(1e-20, 1.0, 0.1)[0] == 0.0
    assert inference._outward(1e-20, 1.0, 0.0)[0] > 0


def test_what_cannot_be_bounded() -> None:
    """A state that some member makes impossible, a column that is not there, and tables that are too large."""
    sure = Network(
        nodes={
            "a": Node(states=("0", "1"), table=((0.5, 0.5),)),
            "b": Node(states=("0", "1"), parents=("a",), table=((1.0, 0.0), (0.99, 0.01))),
        }
    )
    event = np.array([0.0, 1.0])
    assert bounds_given(sure, "b", 1, ("a",), event, 0.0) == pytest.approx((1.0, 1.0))
    assert bounds_given(sure, "b", 1, ("a",), event, 0.001)[1] == pytest.approx(1.0)
    never = Network(nodes={**sure.nodes, "b": Node(states=("0", "1"), parents=("a",), table=((1.0, 0.0), (1.0, 0.0)))})
    for impossible, t in ((event, 0.0), (np.ones(2), 0.02), (np.zeros(2), 0.02)):
        with pytest.raises(BoundsError, match="must be possible"):
            bounds_given(never, "b", 1, ("a",), impossible, t)
    with pytest.raises(BoundsError, match="z"):
        bounds(sure, ("z",), event, 0.1)


@pytest.mark.parametrize("most", [17, 18])
def test_tables_of_bounds_have_a_limit(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To sum out d of an event of a, d and c takes a table of 2 * 2 * 3 * 3 entries; of an event of c and d 2 * 3 * 3."""
    monkeypatch.setattr(inference, "_MOST_ENTRIES", most)
    event = np.ones((2, 3))
    if most == 18:
        assert bounds(network(), ("c", "d"), event, 0.1) == pytest.approx((1.0, 1.0))
    else:
        with pytest.raises(PolicyError, match="too large"):
            bounds(network(), ("c", "d"), event, 0.1)


def test_one_state_known_or_only_one() -> None:
    values = np.arange(6.0).reshape(2, 3)
    bound = Bound(("a", "b"), values)
    assert bound.at("b", 2).columns == ("a",)
    assert bound.at("b", 2).values.tolist() == [2.0, 5.0]
    assert bound.at("z", 2) is bound
    assert bound.only("b", 1, 3).values.tolist() == [[0.0, 1.0, 0.0], [0.0, 4.0, 0.0]]
    wide = bound.only("z", 1, 2)
    assert wide.columns == ("a", "b", "z")
    assert wide.values[..., 0].tolist() == np.zeros((2, 3)).tolist()
    assert wide.values[..., 1].tolist() == values.tolist()
