"""The twin that computes laws of sums over real rows, against an enumeration of all tables and laws in closed form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from tests.property import real_rows_twin as twin
from tests.property.real_rows_twin import Circle, Column, Pairs

Numbers = NDArray[np.float64]


def sums(rows: Sequence[tuple[float, float]], n: int, total: float) -> list[float]:
    """Of q, over all tables of n rows in which s adds up to the total."""
    tables = itertools.product(rows, repeat=n)
    return [math.fsum(q for _, q in table) for table in tables if math.fsum(s for s, _ in table) == total]


def enumerated(places: Sequence[float], noise: float, circle: Circle) -> Numbers:
    """The law of the folded answer, one of these places with noise."""
    ends = (np.arange(circle.bins + 1) - 0.5) * circle.window / circle.bins
    found = np.zeros(circle.bins)
    for place, turn in itertools.product(places, range(-4, 5)):
        found += np.diff(ndtr((ends - place + turn * circle.window) / noise))
    return found / len(places)


def test_the_twin_is_an_enumeration_of_all_tables() -> None:
    rows, circle = [(1.0, 0.0), (1.0, 2.0), (2.0, 5.0), (3.0, 1.0), (3.0, 1.0), (5.0, -4.0)], Circle(32.0, 256)
    pairs = Pairs.of(np.array([s for s, _ in rows]), np.array([q for _, q in rows]))
    for total in (5, 8, 13):
        exact = enumerated([place + 1.3 for place in sums(rows, 4, total)], 0.7, circle)
        assert np.abs(twin.given_sum(pairs, 4, total, 0.7, 1.3, circle) - exact).sum() < 1e-12


def test_the_twin_of_counts_is_an_enumeration_too() -> None:
    """A count is the sum of an indicator; of small probabilities the relative error is looked at."""
    inside, outside, circle = Column.of(np.array([0.0, 2.0])), Column.of(np.array([5.0, 1.0])), Circle(64.0, 512)
    places = [place - 2.0 for place in sums([(1.0, 0.0), (1.0, 2.0), (0.0, 5.0), (0.0, 1.0)], 5, 3)]
    exact = enumerated(places, 0.7, circle)
    assert np.abs(twin.given_count(inside, outside, 5, 3, 0.7, -2.0, circle) - exact).sum() < 1e-12
    for below, lean in ((1.3, 1.0), (-1.0, 2.0), (-4.0, 8.0), (-5.0, 11.0)):
        chance = float(np.mean(ndtr((below - np.array(places)) / 0.7)))  # 0.09 to 6e-12
        assert twin.tail(inside, outside, 5, 3, 0.7, -2.0, below, lean, Circle(64.0, 1 << 14)) == pytest.approx(
            chance, rel=1e-4
        )


def test_the_twin_finds_the_distance_of_normal_laws() -> None:
    """Constant rows and noise: two normals mu apart, whose delta is known in closed form."""
    circle, constant = Circle(64.0, 1 << 14), Column.of(np.zeros(1))
    p, q = (twin.given_count(constant, constant, 10, 5, 1.0, place, circle) for place in (20.0, 21.5))
    for e in (0.5, 1.0, 3.0):
        exact = float(ndtr(0.75 - e / 1.5) - math.exp(e) * ndtr(-0.75 - e / 1.5))
        assert exact - 1e-5 < twin.delta(p, q, e) < exact + 1e-12  # bins tell less
    assert twin.epsilon(p, q, exact) == pytest.approx(3.0, abs=1e-3)
