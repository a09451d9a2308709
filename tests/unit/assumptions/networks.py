"""Random small networks, and what they say by adding up the whole joint law: the slow twin of elimination."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence

from attrpriv.numerics.networks.network import Network, Node

Rows = tuple[tuple[float, ...], ...]


def random_row(rng: random.Random, size: int) -> tuple[float, ...]:
    """Now and then with a zero."""
    masses = [0.0 if rng.random() < 0.15 else rng.random() + 0.05 for _ in range(size - 1)] + [rng.random() + 0.05]
    return tuple(mass / sum(masses) for mass in masses)


def random_network(rng: random.Random, names: str = "abcd") -> Network:
    """Up to two parents each, two or three states."""
    nodes: dict[str, Node] = {}
    for name in names:
        parents = tuple(rng.sample(list(nodes), k=rng.randint(0, min(2, len(nodes)))))
        size = rng.randint(2, 3)
        rows = 1
        for parent in parents:
            rows *= len(nodes[parent].states)
        table = tuple(random_row(rng, size) for _ in range(rows))
        nodes[name] = Node(states=tuple(f"{name}{k}" for k in range(size)), parents=parents, table=table)
    return Network(nodes=nodes)


def joint(network: Network, tables: Mapping[str, Rows] | None = None) -> dict[tuple[int, ...], float]:
    """The probability of every combination of states, in the order of the nodes."""
    names = list(network.nodes)
    law = {}
    for states in itertools.product(*(range(len(node.states)) for node in network.nodes.values())):
        chosen, p = dict(zip(names, states, strict=True)), 1.0
        for name, node in network.nodes.items():
            row = 0
            for parent in node.parents:
                row = row * len(network.nodes[parent].states) + chosen[parent]
            p *= (tables[name] if tables is not None else node.table)[row][chosen[name]]
        law[states] = p
    return law


def brute(
    network: Network,
    given: tuple[str, int] | None,
    columns: Sequence[str],
    held: set[tuple[int, ...]],
    tables: Mapping[str, Rows] | None = None,
) -> float:
    """P(the states of these columns are among `held`), or the same given one column's state; NaN where that is impossible."""
    names = list(network.nodes)
    inside = total = 0.0
    for states, p in joint(network, tables).items():
        if given is not None and states[names.index(given[0])] != given[1]:
            continue
        total += p
        inside += p if tuple(states[names.index(column)] for column in columns) in held else 0.0
    return inside / total if total > 0 else math.nan


def nearby(rng: random.Random, network: Network, t: float) -> dict[str, Rows]:
    """Tables whose every entry is within t, rows summing to one: mass moved between two states, as far as it goes or less."""
    tables = {}
    for name, node in network.nodes.items():
        rows = []
        for row in node.table:
            moved = list(row)
            up, down = rng.sample(range(len(row)), 2)
            most = min(t, 1 - row[up], row[down])
            mass = most if rng.random() < 0.6 else most * rng.random()
            moved[up] += mass
            moved[down] -= mass
            rows.append(tuple(moved))
        tables[name] = tuple(rows)
    return tables
