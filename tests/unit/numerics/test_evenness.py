"""How far public records are from an even spread: against sums over the records, one by one."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import numpy as np
import pytest

from attrpriv.numerics.evenness import furthest_from_even, leaning


def slow_furthest(values: Sequence[float], ends: Sequence[float], whole: bool, level: float) -> tuple[float, float] | None:
    """The largest gap between the share of records up to a point and the point's own share, less Massart's bound."""
    found = []
    for k, (low, high) in enumerate(itertools.pairwise(ends)):
        last = k == len(ends) - 2
        inside = [x for x in values if low <= x < high or (last and x >= high)]
        if len(inside) < 50:
            continue
        gap = 0.0
        for x in inside:
            at = (x - low) / (high - low)
            gap = max(gap, sum(y <= x for y in inside) / len(inside) - at, at - sum(y < x for y in inside) / len(inside))
        chance = math.sqrt(math.log(2 * (len(ends) - 1) / level) / (2 * len(inside)))
        found.append((gap - (1 / (high - low) if whole else 0.0) - chance, low))
    best = max(found, default=(0.0, 0.0))
    return (best[1], best[0]) if best[0] > 0 else None


def records(seed: int, power: float, count: int) -> list[float]:
    rng = random.Random(seed)
    return [10 * rng.random() ** power for _ in range(count)]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("power", [1.0, 2.0, 0.4])
@pytest.mark.parametrize("ends", [(0.0, 10.0), (0.0, 4.0, 10.0), (1.0, 2.0, 5.0, 9.0)])
def test_it_is_the_largest_gap_less_what_chance_may_do(power: float, ends: tuple[float, ...], whole: bool) -> None:
    values = records(3, power, 400)
    found, slow = furthest_from_even(np.array(values), ends, whole, 0.01), slow_furthest(values, ends, whole, 0.01)
    assert (found is None) == (slow is None)
    if found is not None and slow is not None:
        assert found == pytest.approx(slow, rel=1e-12)


def test_even_records_are_never_far() -> None:
    assert furthest_from_even(np.linspace(0, 1, 1000), (0.0, 1.0), False, 0.5) is None
    assert furthest_from_even(np.repeat(np.arange(4), 500).astype(float), (0.0, 4.0), True, 0.5) is None
    assert furthest_from_even(np.repeat(np.arange(4), 500).astype(float), (0.0, 4.0), False, 0.5) is not None


def test_fifty_records_are_enough_and_fewer_say_nothing() -> None:
    assert furthest_from_even(np.full(50, 0.01), (0.0, 1.0), False, 0.5) is not None
    assert furthest_from_even(np.full(49, 0.01), (0.0, 1.0), False, 0.5) is None


def test_the_last_interval_has_its_end() -> None:
    """And no other one has: what lies there is in the next."""
    at_end = np.full(60, 1.0)
    assert furthest_from_even(at_end, (0.0, 1.0), False, 0.5) is not None
    found = furthest_from_even(at_end, (0.0, 1.0, 2.0), False, 0.5)
    assert found is not None
    assert found[0] == 1.0


def test_of_intervals_that_are_as_far_the_first_is_told() -> None:
    found = furthest_from_even(np.repeat([0.0, 1.0], 60), (0.0, 1.0, 2.0), False, 0.5)
    assert found is not None
    assert found[0] == 0.0


def slow_leaning(values: Sequence[float], ends: Sequence[float], fewest: int) -> float:
    """Of each interval between two others: the step of the density per width, times the own width, over 8, less two errors."""
    cells = list(itertools.pairwise(ends))
    counts = [sum(low <= x < high for x in values) for low, high in cells]
    worst = 0.0
    for k in range(1, len(cells) - 1):
        if counts[k] < fewest:
            continue
        middles = [(low + high) / 2 for low, high in cells]
        dense = [count / (high - low) for count, (low, high) in zip(counts, cells, strict=True)]
        per_width = abs(dense[k + 1] - dense[k - 1]) / (middles[k + 1] - middles[k - 1])
        worst = max(worst, per_width * (cells[k][1] - cells[k][0]) / dense[k] / 8 - 0.18 / math.sqrt(counts[k]))
    return worst


@pytest.mark.parametrize("ends", [(0.0, 1.0, 3.0, 4.0, 8.0, 10.0), (0.0, 2.0, 5.0, 10.0), (0.0, 5.0, 10.0)])
@pytest.mark.parametrize("power", [1.0, 2.0, 0.4])
def test_records_lean_as_their_neighbours_say(power: float, ends: tuple[float, ...]) -> None:
    values = records(5, power, 3000)
    assert leaning(np.array(values), ends) == pytest.approx(slow_leaning(values, ends, 50), rel=1e-9, abs=1e-12)


def test_an_interval_with_fewer_records_does_not_lean() -> None:
    values = np.concatenate([np.full(500, 0.5), np.full(60, 1.5), np.full(100, 2.5)])
    assert leaning(values, (0.0, 1.0, 2.0, 3.0), fewest=60) > 0
    assert leaning(values, (0.0, 1.0, 2.0, 3.0), fewest=61) == 0
