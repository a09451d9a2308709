"""Sorted cells of the reference view: the facts about kappa, and the distance of two columns by hand, for coins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest


def kappa(order: float, e: float) -> float:
    return (math.expm1(order * e) - order * math.expm1(e)) / (2 * order * (order - 1) * math.expm1(e / 2) ** 2)


@pytest.mark.parametrize("order", [1.2, 2.0, 5.0, 22.0])
def test_kappa_bounds_what_the_proof_says(order: float) -> None:
    at = np.linspace(0.01, 2.0, 200)
    values = np.array([kappa(order, e) for e in at])
    assert values.min() >= 1
    assert (np.diff(values) > 0).all()
    assert (np.diff(values * at**2, 2) > 0).all()
    for e in (0.05, 0.5, 2.0):
        for x in np.linspace(-e, e, 101):
            exceeds = math.expm1(order * x) - order * math.expm1(x)
            assert exceeds <= 2 * order * (order - 1) * kappa(order, e) * math.expm1(x / 2) ** 2 * (1 + 1e-9) + 1e-15


GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
REFERENCES = (0.25, 0.75)
SLOPE = 0.3


def chance_at(s: float) -> float:
    return 0.5 + SLOPE * (s - 0.5)


def renyi(order: float, p: tuple[float, ...], q: tuple[float, ...]) -> float:
    """Between products of coins."""
    each = (a**order * b ** (1 - order) + (1 - a) ** order * (1 - b) ** (1 - order) for a, b in zip(p, q, strict=True))
    return math.log(math.prod(each)) / (order - 1)


@pytest.mark.parametrize("number", [2, 5, 15])
@pytest.mark.parametrize("order", [1.5, 4.0, 12.0])
def test_two_sorted_columns_are_as_close_as_stated(order: float, number: int) -> None:
    """One cell, two kept rows, coins whose chance follows the value; the score bounds are the largest over the grid."""
    pairs = list(itertools.permutations(GRID, 2))
    coins = {s: (chance_at(s), 1 - chance_at(s)) for s in GRID}
    hellinger = {
        (u, v): sum((math.sqrt(a) - math.sqrt(b)) ** 2 for a, b in zip(coins[u], coins[v], strict=True)) for u, v in pairs
    }
    iota = max(4 * hellinger[u, v] / (u - v) ** 2 for u, v in pairs)
    steep = max(abs(math.log(a / b)) / abs(u - v) for u, v in pairs for a, b in zip(coins[u], coins[v], strict=True))

    def cost(kept: tuple[float, ...]) -> float:
        gaps = [abs(s - t) for s, t in zip(kept, REFERENCES, strict=True)]
        return sum(kappa(order, 2 * steep * d) * d * d for d in gaps if d)

    passing = sorted(itertools.combinations_with_replacement(GRID, 2), key=cost)[:number]
    limit = cost(passing[-1])
    largest = max(
        renyi(order, tuple(map(chance_at, a)), tuple(map(chance_at, b))) for a, b in itertools.permutations(passing, 2)
    )
    mu = 2 * math.sqrt(iota * limit)
    assert 0 < largest <= order * mu**2 / 2


def test_a_shift_of_the_sorted_rows_is_charged_in_full() -> None:
    """Without the factor 4 (the distance of one column from the references alone) the bound is wrong."""
    order, iota = 1.01, 4 * SLOPE**2
    low, high = (0.0, 0.5), (0.5, 1.0)
    spent = sum((s - t) ** 2 for s, t in zip(low, REFERENCES, strict=True))
    apart = renyi(order, tuple(map(chance_at, low)), tuple(map(chance_at, high)))
    assert apart > order * iota * spent / 2
