"""Column sensitivities: against every small table, and what is unbounded."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.methods.markov_quilt.sensitivity import ColumnSensitivity

BOUNDS = {"x": (0.0, 3.0), "y": (-1.0, 2.0)}
Statistic = Callable[[Sequence[float], Sequence[float]], Any]


def count(x: Sequence[float], y: Sequence[float]) -> float:
    return float(sum(a > 1 and b > 0 for a, b in zip(x, y, strict=True)))


def histogram(x: Sequence[float], y: Sequence[float]) -> Any:
    return np.histogram(x, bins=[-0.5, 0.5, 1.5, 2.5, 3.5])[0]


def slope(x: Sequence[float], y: Sequence[float], v: float = 0.25) -> float:
    dx = np.asarray(x) - np.mean(x)
    return float((dx * np.asarray(y)).sum() / max((dx**2).sum(), len(x) * v))


def intercept(x: Sequence[float], y: Sequence[float], v: float = 0.25) -> float:
    return float(np.mean(y) - slope(x, y, v) * np.mean(x))


def largest(statistic: Statistic, changed: str, n: int = 3) -> float:
    """The largest change over random and extreme tables of n rows."""
    rng = random.Random(4)
    grid = {name: [low, high, low, high, (low + high) / 2, low + 1] for name, (low, high) in BOUNDS.items()}
    worst = 0.0
    for _ in range(2500):
        one = {name: [rng.choice(values) for _ in range(n)] for name, values in grid.items()}
        other = {name: [rng.choice(grid[name]) for _ in range(n)] if name in changed else one[name] for name in grid}
        moved = np.abs(np.asarray(statistic(one["x"], one["y"])) - np.asarray(statistic(other["x"], other["y"]))).sum()
        worst = max(worst, float(moved))
    return worst


CASES: list[tuple[Statistic, ColumnSensitivity]] = [
    (count, ColumnSensitivity.count(("x", "y"), n=3)),
    (histogram, ColumnSensitivity.histogram(("x",), n=3)),
    (lambda x, _: np.mean(x), ColumnSensitivity.mean("x", BOUNDS["x"])),
    (lambda _, y: sum(y), ColumnSensitivity.total("y", BOUNDS["y"], n=3)),
    (slope, ColumnSensitivity.slope("y", "x", BOUNDS, least_variance=0.25)),
    (intercept, ColumnSensitivity.intercept("y", "x", BOUNDS, least_variance=0.25)),
]


@pytest.mark.parametrize("k", range(len(CASES)))
@pytest.mark.parametrize("changed", ["x", "y", "xy"])
def test_no_table_moves_further(k: int, changed: str) -> None:
    statistic, sensitivity = CASES[k]
    assert largest(statistic, changed) <= sensitivity.of(changed)


@pytest.mark.parametrize("k", range(4))
def test_some_table_moves_as_far(k: int) -> None:
    statistic, sensitivity = CASES[k]
    assert largest(statistic, "xy") == pytest.approx(sensitivity.of("xy"))


def test_half_of_it_would_be_caught() -> None:
    for statistic, sensitivity in CASES[:5]:
        assert largest(statistic, "xy") > sensitivity.of("xy") / 2


def test_declared_functions() -> None:
    found = ColumnSensitivity.function(("a", "b", "c"), {"a": 1.0, "b": 2.0, "c": 4.0, ("a", "b"): 2.5})
    assert found.of(()) == 0
    assert found.of({"zzz"}) == 0
    assert found.of({"b"}) == 2.0
    assert found.of({"a", "b"}) == 2.5
    assert found.of({"a", "c"}) == pytest.approx(5.0)  # one after the other
    assert 6.5 <= found.of({"a", "b", "c"}) <= 6.5 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ColumnSensitivity.function(("a", "b"), {"a": 1.0}), "sensitivity: must be declared for b"),
        (lambda: ColumnSensitivity.function(("a",), {"a": float("inf")}), "of a must be finite and at least 0"),
        (lambda: ColumnSensitivity.function(("a",), {"a": float("nan")}), "of a must be finite and at least 0"),
        (lambda: ColumnSensitivity.mean("a", (0.0, float("inf"))), "bounds: of a must be a finite range"),
        (lambda: ColumnSensitivity.mean("a", (1.0, 1.0)), "bounds: of a must be a finite range"),
        (lambda: ColumnSensitivity.slope("y", "x", BOUNDS), "least_variance: must be above 0 for a regression of y on x"),
        (lambda: ColumnSensitivity.slope("z", "x", BOUNDS, 1.0), "bounds: must be declared for z"),
        (lambda: ColumnSensitivity.intercept("y", "z", BOUNDS, 1.0), "bounds: must be declared for z"),
    ],
)
def test_what_is_unbounded_is_refused_in_one_line(make: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_subset_of_declared_singles_is_their_sum() -> None:
    sizes = {"a": 1.0, "b": 3.0, "c": 0.5}
    found = ColumnSensitivity.function(tuple(sizes), sizes)
    for size in range(4):
        for some in itertools.combinations(sizes, size):
            assert found.of(some) == pytest.approx(sum(sizes[name] for name in some))


@pytest.mark.parametrize(("far", "floor"), [(0.1, 1.0), (2.0, 0.01), (1.0, 1.0)])
def test_an_intercept_moves_with_y_and_with_what_the_slope_carries(far: float, floor: float) -> None:
    """With x near 0 it moves as y's mean does; with x far from 0 as the slope times x does. Both are within the bound."""
    bounds = {"x": (-far, 0.5 * far), "y": (-1.0, 2.0)}
    bound = ColumnSensitivity.intercept("y", "x", bounds, least_variance=floor).of({"y"})
    assert bound == pytest.approx(3 * (1 + far / floor**0.5), rel=1e-9)
    x = [-far, -far, 0.5 * far, 0.5 * far]
    low, high = [-1.0] * 4, [2.0] * 4
    assert abs(intercept(x, high, floor) - intercept(x, low, floor)) == pytest.approx(3.0)
    assert bound >= 3.0
    tilted = [[2.0, 2.0, -1.0, -1.0], [-1.0, -1.0, 2.0, 2.0]]
    assert abs(intercept(x, tilted[0], floor) - intercept(x, tilted[1], floor)) <= bound
