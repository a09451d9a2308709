"""The projection in O(k): the nearest law where the ratio is monotone, within the bounds always, and the trap of mixtures."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from attrpriv.errors import RefusedError
from attrpriv.methods.count_transport.target import clipped_path, projected_law
from attrpriv.numerics.calibration.coupling import nearest_law
from attrpriv.numerics.laws.fixed_window import BITS, window_law
from attrpriv.numerics.laws.records import RecordLaws

TOTAL = 2**BITS
# e from below and from above, in whole numbers: the series of 1/k!.
E_LOW = sum(Fraction(1, math.factorial(k)) for k in range(40))


def distance(p: Sequence[int], q: Sequence[int]) -> int:
    return sum(abs(x - y) for x, y in zip(itertools.accumulate(p), itertools.accumulate(q), strict=True))


def slices(records: RecordLaws, n: int, a: int) -> list[int]:
    masses = list(window_law(records, n, a).clipped(n * records.values[0], n * records.width + 1))
    masses[masses.index(max(masses))] += TOTAL - sum(masses)
    return masses


def bounds(nu: Sequence[int], first: float, second: float) -> tuple[list[int], list[int]]:
    return [int(x * Fraction(math.exp(-first))) for x in nu], [int(x * Fraction(math.exp(second))) for x in nu]


@pytest.mark.parametrize(("p1", "p0"), [(0.4, 0.6), (0.9, 0.2), (0.01, 0.03)])
@pytest.mark.parametrize("split", [(0.5, 0.5), (0.1, 0.3), (1.5, 0.5)])
def test_it_is_the_nearest_law_where_the_reference_is_that_of_a_count(p1: float, p0: float, split: tuple[float, float]) -> None:
    records, n = RecordLaws.event(p1, p0), 12
    for a0 in (0, 5, 12):
        low, high = bounds(slices(records, n, a0), *split)
        for a in range(n + 1):
            source = slices(records, n, a)
            found, best = projected_law(source, low, high), nearest_law(source, low, high)
            assert sum(found) == TOTAL
            assert all(x <= y <= z for x, y, z in zip(low, found, high, strict=True))
            assert distance(found, source) <= distance(best, source) + 100 * n  # of 2^192: the rounding of the slices


def best_with_delta(source: Sequence[float], low: Sequence[float], high: Sequence[float], excess: float) -> float:
    """The least W1 by a linear program: R, what is above `high`, and what flows over each cut."""
    size = len(source)
    rows: list[Any] = []
    limits: list[float] = []
    cost = np.concatenate([np.zeros(2 * size), np.ones(size)])
    lower = np.tril(np.ones((size, size)))
    for sign in (1, -1):
        for k in range(size):
            row = np.zeros(3 * size)
            row[:size], row[2 * size + k] = sign * lower[k], -1
            rows.append(row)
            limits.append(sign * float(lower[k] @ np.array(source)))
    for k in range(size):
        row = np.zeros(3 * size)
        row[k], row[size + k] = 1, -1
        rows.append(row)
        limits.append(high[k])
    row = np.zeros(3 * size)
    row[size : 2 * size] = 1
    rows.append(row)
    limits.append(excess)
    ends = [(x, None) for x in low] + [(0, None)] * (2 * size)
    whole = np.concatenate([np.ones(size), np.zeros(2 * size)])
    found = linprog(cost, np.array(rows), limits, whole[None, :], [1.0], bounds=ends, method="highs")
    assert found.status == 0
    assert found.fun is not None
    return float(found.fun)


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
def test_it_is_the_nearest_law_with_delta_too(delta: float) -> None:
    """An excess over the upper bound of delta in all: against a linear program."""
    records, n, a0 = RecordLaws.event(0.7, 0.2), 8, 4
    low, high = bounds(slices(records, n, a0), 0.4, 0.3)
    excess = int(delta * TOTAL)
    for a in range(n + 1):
        source = slices(records, n, a)
        found = projected_law(source, low, high, excess)
        assert sum(found) == TOTAL
        assert all(x <= y for x, y in zip(low, found, strict=True))
        assert sum(max(0, y - z) for y, z in zip(found, high, strict=True)) <= excess
        here, least, most = ([x / TOTAL for x in row] for row in (source, low, high))
        assert distance(found, source) / TOTAL == pytest.approx(best_with_delta(here, least, most, delta), abs=1e-9)


def test_the_bounds_hold_whatever_the_source_is() -> None:
    choose, tried = random.Random(3), 0
    while tried < 4_000:
        size = choose.randint(1, 6)
        source = [choose.choice([0, choose.randint(0, 9)]) for _ in range(size)]
        low = [choose.randint(0, 3) for _ in source]
        high = [x + choose.randint(0, 4) for x in low]
        excess = choose.choice([0, 0, 1, 2, 5])
        if not (sum(source) and sum(low) <= sum(source) <= sum(high)):
            continue
        tried += 1
        found = projected_law(source, low, high, excess)
        assert sum(found) == sum(source)
        assert all(x <= y for x, y in zip(low, found, strict=True))
        assert sum(max(0, y - z) for y, z in zip(found, high, strict=True)) <= excess


def test_no_law_between_the_bounds() -> None:
    with pytest.raises(RefusedError, match="no law"):
        projected_law([5, 5], [6, 6], [9, 9])
    with pytest.raises(RefusedError, match="no law"):
        projected_law([5, 5], [0, 0], [4, 5])


# ----------------------------------------------------------------------------------------------------------- the trap


def test_the_formula_alone_is_unsound_for_a_mixture() -> None:
    """n = 100, p = .7/.3, the uniform mixture: H_1(R_50 || R_0) = .21 where 0 was meant, in whole numbers."""
    records, n = RecordLaws.event(0.7, 0.3), 100
    laws = [slices(records, n, a) for a in range(n + 1)]
    nu = [sum(column) // (n + 1) for column in zip(*laws, strict=True)]
    low, high = bounds(nu, 0.5, 0.5)
    rows = {a: np.array(laws[a], dtype=object) for a in (0, 50)}
    planted = {
        a: np.diff(clipped_path(row, np.array(low, dtype=object), np.array(high, dtype=object), 0), prepend=0)
        for a, row in rows.items()
    }

    def hockey_stick(p: Sequence[int], q: Sequence[int]) -> float:
        """From below: e is rounded up."""
        growth = E_LOW + Fraction(1, 10**40)
        return float(sum(max(Fraction(0), x - growth * y) for x, y in zip(p, q, strict=True)) / TOTAL)

    assert hockey_stick(planted[50].tolist(), planted[0].tolist()) == pytest.approx(0.21, abs=0.005)
    assert any(step > most for step, most in zip(planted[50].tolist(), high, strict=True))
    for way in (nearest_law, projected_law):  # what the product uses, and what the formula is repaired to
        found = {a: way(laws[a], low, high) for a in (0, 50)}
        assert all(x <= y <= z for row in found.values() for x, y, z in zip(low, row, high, strict=True))
        assert hockey_stick(found[50], found[0]) <= 1e-15
