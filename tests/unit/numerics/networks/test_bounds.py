"""Bounds on the probability of an event in a network: by enumeration where it is exact, else by members of the box."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from attrpriv.numerics.networks.inference import bounds, bounds_given
from attrpriv.numerics.networks.network import Network, Node

TWO = ("low", "high")
G, H, W = (0.4, 0.6), ((0.7, 0.3), (0.2, 0.8)), ((0.9, 0.1), (0.35, 0.65))


def network(g: Any = G, h: Any = H, w: Any = W) -> Network:
    return Network(
        nodes={
            "g": Node(states=TWO, table=(tuple(g),)),
            "h": Node(states=TWO, parents=("g",), table=tuple(map(tuple, h))),
            "w": Node(states=TWO, parents=("h",), table=tuple(map(tuple, w))),
        }
    )


def chances(g: Any = G, h: Any = H, w: Any = W) -> np.ndarray:
    return np.array([[[g[a] * h[a][b] * w[b][c] for c in (0, 1)] for b in (0, 1)] for a in (0, 1)])


EVENTS = {("w",): np.array([0.0, 1.0]), ("g", "w"): np.array([[1.0, 0.0], [0.25, 0.5]]), ("h",): np.array([1.0, 0.0])}


def chance(law: np.ndarray, columns: tuple[str, ...], event: np.ndarray, given: tuple[str, int] | None = None) -> float:
    total = whole = 0.0
    for state in itertools.product((0, 1), repeat=3):
        if given is None or state["ghw".index(given[0])] == given[1]:
            whole += float(law[state])
            total += float(law[state]) * float(event[tuple(state["ghw".index(name)] for name in columns)])
    return total / whole


@pytest.mark.parametrize("columns", list(EVENTS))
def test_exact_networks_by_enumeration(columns: tuple[str, ...]) -> None:
    event = EVENTS[columns]
    exact = chance(chances(), columns, event)
    assert bounds(network(), columns, event, 0.0) == pytest.approx((exact, exact), rel=1e-9)
    for name, k in itertools.product("gh", (0, 1)):
        if name not in columns:
            exact = chance(chances(), columns, event, (name, k))
            low, high = bounds_given(network(), name, k, columns, event, 0.0)
            assert low <= exact * (1 + 1e-15)
            assert high >= exact * (1 - 1e-15)
            assert (low, high) == pytest.approx((exact, exact), rel=1e-9)


@pytest.mark.parametrize("columns", list(EVENTS))
@pytest.mark.parametrize("t", [0.01, 0.1])
def test_no_member_of_the_box_is_outside(columns: tuple[str, ...], t: float) -> None:
    """Every row of probabilities moved by t to one side or the other: 32 corners."""
    event = EVENTS[columns]
    low, high = bounds(network(), columns, event, t)
    found = []
    for signs in itertools.product((-t, t), repeat=5):
        g = (G[0] + signs[0], G[1] - signs[0])
        h = [(H[k][0] + signs[1 + k], H[k][1] - signs[1 + k]) for k in (0, 1)]
        w = [(max(0.0, min(1.0, W[k][0] + signs[3 + k])), max(0.0, min(1.0, W[k][1] - signs[3 + k]))) for k in (0, 1)]
        found.append(chance(chances(g, h, w), columns, event))
        if "g" not in columns:
            given = bounds_given(network(), "g", 1, columns, event, t)
            assert given[0] <= chance(chances(g, h, w), columns, event, ("g", 1)) <= given[1]
    assert low <= min(found) + 1e-12
    assert high >= max(found) - 1e-12
    assert high - low <= (max(found) - min(found)) * 1.5 + 1e-9
