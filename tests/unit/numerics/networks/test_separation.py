"""d-separation: against the moralised ancestral graph, on random graphs; colliders; what is superfluous."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

import pytest

from attrpriv.numerics.networks.network import Network, Node, ancestors, ancestral, boundary, connected
from tests.unit.assumptions.networks import joint, random_network

COIN = Node(states=("0", "1"), table=((0.5, 0.5),))
NAMES = "abcdefg"


def random_graph(rng: random.Random, names: str = NAMES) -> Network:
    """Binary columns with up to three parents."""
    nodes: dict[str, Node] = {}
    for name in names:
        parents = tuple(rng.sample(list(nodes), k=rng.randint(0, min(3, len(nodes)))))
        nodes[name] = Node(states=("0", "1"), parents=parents, table=((0.5, 0.5),) * 2 ** len(parents))
    return Network(nodes=nodes)


def moral(network: Network, source: str, given: Iterable[str], target: str) -> bool:
    """The twin: marry parents in the ancestral graph, drop the given ones, and look for a way."""
    known = set(given)
    kept = ancestors(network, {source, target, *known})
    edges: dict[str, set[str]] = {name: set() for name in kept}
    for name in kept:
        family = [*network.nodes[name].parents, name]
        for one, other in itertools.permutations(family, 2):
            edges[one].add(other)
    seen, left = {source}, [source]
    while left:
        for other in edges[left.pop()] - seen - known:
            seen.add(other)
            left.append(other)
    return target in seen


@pytest.mark.parametrize("seed", range(60))
def test_as_in_the_moralised_ancestral_graph(seed: int) -> None:
    rng = random.Random(seed)
    network = random_graph(rng)
    source = rng.choice(NAMES)
    given = rng.sample([name for name in NAMES if name != source], k=rng.randint(0, 3))
    found = connected(network, source, given)
    for target in set(NAMES) - {source, *given}:
        assert (target in found) == moral(network, source, given, target)


def collider() -> Network:
    return Network(nodes={"a": COIN, "b": COIN, "c": Node(states=("0", "1"), parents=("a", "b"), table=((0.5, 0.5),) * 4)})


def test_deleting_a_collider_does_not_separate() -> None:
    """Without c the graph falls apart; but knowing c ties its parents together."""
    assert "b" not in connected(collider(), "a", ())
    assert "b" in connected(collider(), "a", ("c",))


def test_what_is_superfluous_changes_no_law() -> None:
    """P(S | a) is P(boundary | a) times something without a: checked with the joint law."""
    for seed in range(20):
        rng = random.Random(seed)
        network = random_network(rng)
        source = rng.choice("abcd")
        names = [name for name in "abcd" if name != source]
        kept = boundary(network, source, names)
        law, order = joint(network), list(network.nodes)
        ratios: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for states, p in law.items():
            if p > 0:
                part = tuple(states[order.index(name)] for name in kept)
                ratios.setdefault(part, set()).add(states)
        for group in ratios.values():
            values = [_profile(law, states, order, source) for states in group]
            assert all(value == pytest.approx(values[0], abs=1e-12) for value in values)


def _profile(law: dict[tuple[int, ...], float], states: tuple[int, ...], order: list[str], source: str) -> list[float]:
    """P(source | all others)."""
    k = order.index(source)
    row = [p for other, p in law.items() if other[:k] == states[:k] and other[k + 1 :] == states[k + 1 :]]
    return [p / sum(row) for p in row]


def test_the_ancestral_part_has_the_same_law() -> None:
    network = random_graph(random.Random(5))
    part = ancestral(network, ("d",))
    assert set(part.nodes) == ancestors(network, ("d",))
    assert all(part.nodes[name] == network.nodes[name] for name in part.nodes)
