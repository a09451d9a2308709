"""Two shares of a population: the expected bound over how far apart their tables are, against the sum itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.numerics.divergences.groups import Between, coupled_upper

BETWEEN = Between(50, 0.1)


def test_chances_are_those_of_a_binomial() -> None:
    for count in (0, 3, 10, 49):
        exact = float(binom.sf(count, 50, 0.1))
        assert exact <= BETWEEN.above(count) <= exact * (1 + 1e-8) + 1e-99
    assert BETWEEN.above(-1) == 1.0
    assert BETWEEN.above(-5) == 1.0
    assert BETWEEN.above(50) == pytest.approx(0.0, abs=1e-99)


@pytest.mark.parametrize("marks", [(20,), (3, 7, 12, 20), tuple(range(1, 21))])
def test_the_expected_bound(marks: tuple[int, ...]) -> None:
    """E U(D) with U(D) that of the next mark: by summing over D."""
    bounds = {d: 1 - math.exp(-0.05 * d) for d in marks}

    def next_bound(d: int) -> float:
        above = [mark for mark in marks if mark >= d]
        return bounds[min(above)] if above else bounds[max(marks)]

    exact = sum(float(binom.pmf(d, 50, 0.1)) * next_bound(d) for d in range(51))
    found = coupled_upper(BETWEEN, [(d, bounds[d]) for d in marks])
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-6)


def test_bounds_are_made_nondecreasing() -> None:
    rising = coupled_upper(BETWEEN, [(2, 0.3), (5, 0.3), (9, 0.4)])
    assert coupled_upper(BETWEEN, [(2, 0.3), (5, 0.1), (9, 0.4)]) == pytest.approx(rising, rel=1e-12)
    alone = 0.3 + 0.1 * float(binom.sf(5, 50, 0.1))
    assert rising == pytest.approx(alone, rel=1e-8)


def test_without_a_population_the_largest_counts() -> None:
    assert coupled_upper(None, [(2, 0.3), (5, 0.1), (9, 0.2)]) == pytest.approx(0.3, rel=1e-11)
    assert coupled_upper(None, [(2, 0.1), (5, 0.3)]) == pytest.approx(0.3, rel=1e-11)
    assert coupled_upper(None, []) == 0.0
    assert coupled_upper(None, [(1, 1.0)]) == 1.0


@pytest.mark.parametrize(
    ("n", "width", "apart"), [(50, 0.1, 20), (50, 0.1, 3), (10_000, 0.3, 4000), (10, 1.0, 10), (5, 0.01, 1)]
)
def test_marks_go_up_to_the_largest_and_begin_where_distances_are_likely(n: int, width: float, apart: int) -> None:
    marks = Between(n, width).marks(apart)
    assert marks[-1] == apart
    assert list(marks) == sorted(set(marks))
    assert len(marks) <= 11
    start = max(1, min(apart, math.floor(n * width - 2 * math.sqrt(n * width))))
    assert marks[0] == start
    if apart - start >= 10:
        assert np.diff(marks) == pytest.approx((apart - start) / 10, abs=1.0)
