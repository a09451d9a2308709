"""Exact elimination: against the whole joint law in fractions, and against pyagrum."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.networks import inference
from attrpriv.numerics.networks.inference import joint_law
from attrpriv.numerics.networks.network import Network, Node
from tests.unit.assumptions.networks import random_network
from tests.unit.assumptions.test_network import as_pyagrum

COIN = Node(states=("0", "1"), table=((0.5, 0.5),))


def exact(network: Network, columns: tuple[str, ...]) -> dict[tuple[int, ...], Fraction]:
    """The marginal law in fractions, each row divided by its sum."""
    names = list(network.nodes)
    law: dict[tuple[int, ...], Fraction] = {}
    for states in itertools.product(*(range(len(node.states)) for node in network.nodes.values())):
        at, p = dict(zip(names, states, strict=True)), Fraction(1)
        for name, node in network.nodes.items():
            row = 0
            for parent in node.parents:
                row = row * len(network.nodes[parent].states) + at[parent]
            entries = [Fraction(x) for x in node.table[row]]
            p *= entries[at[name]] / sum(entries)
        key = tuple(at[name] for name in columns)
        law[key] = law.get(key, Fraction(0)) + p
    return law


@pytest.mark.parametrize("seed", range(40))
def test_within_the_stated_error_of_the_truth(seed: int) -> None:
    rng = random.Random(seed)
    network = random_network(rng, "abcde")
    columns = tuple(rng.sample("abcde", k=rng.randint(1, 3)))
    found = joint_law(network, columns)
    assert found.columns == columns
    assert not found.tiny
    assert 0 < found.error < 1e-12
    for states, truth in exact(network, columns).items():
        value = float(found.values[states])
        assert (value == 0) == (truth == 0)
        assert abs(Fraction(value) - truth) <= Fraction(found.error) * truth


@pytest.mark.parametrize("seed", range(6))
def test_pyagrum_agrees_on_thirty_columns(seed: int) -> None:
    gum = pytest.importorskip("pyagrum")
    rng = random.Random(seed)
    names = [f"x{k}" for k in range(30)]
    nodes: dict[str, Node] = {}
    for name in names:
        parents = tuple(rng.sample(list(nodes)[-6:], k=min(2, len(nodes))))
        rows = tuple((p, 1 - p) for p in (rng.random() for _ in range(2 ** len(parents))))
        nodes[name] = Node(states=("0", "1"), parents=parents, table=rows)
    network = Network(nodes=nodes)
    pair = tuple(rng.sample(names, 2))
    engine = gum.LazyPropagation(as_pyagrum(gum, network))
    engine.addJointTarget(set(pair))
    theirs = engine.jointPosterior(set(pair))
    for a, b in itertools.product(range(2), repeat=2):
        assert joint_law(network, pair).values[a, b] == pytest.approx(theirs[dict(zip(pair, (a, b), strict=True))], rel=1e-9)


def test_products_that_are_too_small_are_told() -> None:
    """A chain of a hundred rare states: the floats end at 1e-308."""
    rare = Node(states=("0", "1"), table=((1 - 1e-9, 1e-9),))
    many = Network(nodes={f"x{k}": rare for k in range(40)} | {"y": COIN})
    assert not joint_law(many, ("x0", "y")).tiny
    # All of them asked at once would be too many entries; the product of few very rare ones is enough.
    least = Node(states=("0", "1"), table=((1.0, 1e-200),))
    assert joint_law(Network(nodes={"a": least, "b": least}), ("a", "b")).tiny


def test_too_many_columns_at_once_are_refused() -> None:
    many = Network(nodes={f"x{k}": COIN for k in range(30)})
    with pytest.raises(UsageError, match=r"a table of 1.07e\+09 entries over .* is too large"):
        joint_law(many, tuple(many.nodes))


def test_too_dense_a_graph_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "MOST_ENTRIES", 8)
    nodes = dict.fromkeys("abc", COIN)
    child = Node(states=("0", "1"), parents=("a", "b", "c"), table=((0.5, 0.5),) * 8)
    with pytest.raises(UsageError, match="too large"):
        joint_law(Network(nodes=nodes | {"d": child}), ("d",))


def test_everything_sums_to_one() -> None:
    network = random_network(random.Random(1))
    assert math.isclose(float(np.sum(joint_law(network, ("a", "d")).values)), 1.0, rel_tol=1e-12)
