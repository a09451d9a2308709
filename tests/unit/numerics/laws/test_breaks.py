"""Cells of public values: ties stay together, break points are edges, references are quantiles by their definition."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.breaks import (
    SortedCell,
    cell_of,
    edges,
    even_edges,
    even_references,
    references,
    repeated_share,
    sorted_cells,
)

few_values = st.lists(st.integers(0, 12).map(float), min_size=1, max_size=40).map(sorted)


@given(values=few_values, rows=st.integers(1, 8), breaks=st.lists(st.integers(-2, 28).map(lambda x: x / 2), max_size=3))
def test_every_value_has_a_cell_and_every_cell_enough(values: list[float], rows: int, breaks: list[float]) -> None:
    ends = edges(values, rows, breaks)
    assert list(ends) == sorted(ends)
    assert (ends[0], ends[-1]) == (values[0], values[-1])
    homes = cell_of(ends, values)
    assert homes.min() >= 0
    assert homes.max() <= max(0, len(ends) - 2)
    inside = {x for x in breaks if values[0] < x <= values[-1]}
    assert inside <= set(ends)
    pieces = [values[0], *sorted(inside), math.inf]
    for low, high in itertools.pairwise(pieces):
        cells = [j for j in range(len(ends) - 1) if low <= ends[j] < high]
        sizes = [int(np.sum(homes == j)) for j in cells]
        assert all(size >= rows for size in sizes) or len(cells) == 1


@given(values=few_values, rows=st.integers(1, 8))
def test_equal_values_share_a_cell(values: list[float], rows: int) -> None:
    homes = cell_of(edges(values, rows), values)
    assert all(a == b for (x, a), (y, b) in itertools.pairwise(zip(values, homes, strict=True)) if x == y)


def test_different_values_give_equal_cells() -> None:
    values = np.sort(np.random.default_rng(1).normal(size=1_000))
    ends = edges(values, 50)
    sizes = np.bincount(cell_of(ends, values))
    assert sizes.tolist() == [50] * 20


def test_cells_are_as_equal_as_ties_allow() -> None:
    assert edges([float(x) for x in range(11)], 3) == (0.0, 4.0, 7.0, 10.0)
    assert edges([float(x) for x in range(19)], 5) == (0.0, 6.0, 13.0, 18.0)
    # After a run of four equal values the next cell needs two values of its own, wherever it would have begun without them.
    assert edges([0.0, 1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 4.0], 2) == (0.0, 2.0, 4.0)


@given(values=few_values, m=st.integers(1, 60))
def test_references_are_quantiles(values: list[float], m: int) -> None:
    found = references(values, m)
    for k, reference in enumerate(found, start=1):
        share = Fraction(2 * k - 1, 2 * m)
        least = min(x for x in values if Fraction(sum(v <= x for v in values), len(values)) >= share)
        assert reference == least
    # Nowhere further than 1/(2m) from the distribution function of the public values.
    for x in values:
        off = Fraction(int(np.sum(found <= x)), m) - Fraction(sum(v <= x for v in values), len(values))
        assert abs(off) <= Fraction(1, 2 * m)


def test_even_references_stay_inside() -> None:
    assert even_references(0.0, 1.0, 2).tolist() == [0.25, 0.75]
    assert even_references(0.1, 0.1, 3).tolist() == [0.1] * 3
    assert even_references(0.0, 1.0, 0).size == 0


def test_cells_are_made_from_public_values() -> None:
    values = [0.0, 1.0, 1.0, 2.0, 5.0, 9.0]
    cells = sorted_cells((0.0, 2.0, 9.0), values, [3, 0])
    assert [cell.rows for cell in cells] == [3, 0]
    assert [cell.width for cell in cells] == [2.0, 7.0]
    assert cells[0].values is not None
    assert cells[0].values.tolist() == [0.0, 1.0, 1.0]
    assert cells[0].references.tolist() == [0.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        cells[0].references[0] = 5.0
    assert sorted_cells((0.0, 2.0, 9.0), values, [1, 2], even=True)[1].references.tolist() == [3.75, 7.25]
    # A cell without public values shows nothing, or evenly spread references.
    assert sorted_cells((0.0, 9.0, 12.0), [1.0], [1, 0])[1].values is None


def test_one_value_is_a_cell() -> None:
    ends = edges([3.0, 3.0], 1)
    assert ends == (3.0, 3.0)
    assert cell_of(ends, [3.0, 2.0, math.nan]).tolist() == [0, -1, -1]
    assert sorted_cells(ends, [3.0, 3.0], [2])[0].width == 0.0


@given(width=st.floats(0.05, 20), breaks=st.lists(st.floats(-1, 11), max_size=3))
def test_even_edges(width: float, breaks: list[float]) -> None:
    ends = even_edges(0.0, 10.0, width, breaks)
    assert (ends[0], ends[-1]) == (0.0, 10.0)
    assert {x for x in breaks if 0 < x < 10} <= set(ends)
    assert all(0 <= b - a <= width * (1 + 1e-9) for a, b in itertools.pairwise(ends))


def test_even_edges_between_any_ends() -> None:
    assert even_edges(10.0, 14.0, 1.5, [11.0]) == (10.0, 11.0, 12.5, 14.0)
    assert even_edges(-14.0, -10.0, 1.5, [-11.0]) == (-14.0, -12.5, -11.0, -10.0)


def test_repeated_share() -> None:
    assert repeated_share([1.0, 2.0, 3.0]) == 0.0
    assert repeated_share([2.0, 2.0]) == 1.0
    assert repeated_share([]) == 0.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: edges([], 1),
        lambda: edges([1.0], 0),
        lambda: edges([2.0, 1.0], 1),
        lambda: edges([1.0, math.nan], 1),
        lambda: edges([1.0, math.inf], 1),
        lambda: edges([1.0, 2.0], 1, [math.nan]),
        lambda: references([], 1),
        lambda: even_edges(1.0, 1.0, 1.0),
        lambda: even_edges(0.0, 1.0, 0.0),
        lambda: even_edges(0.0, math.inf, 1.0),
        lambda: even_edges(0.0, 1.0, math.nan),
        lambda: even_edges(-1.5e308, 1.5e308, 1e308),
        lambda: references([1.0], -1),
        lambda: even_references(0.0, 1.0, -1),
        lambda: sorted_cells((0.0, 1.0), [0.5], [1, 1]),
        lambda: sorted_cells((0.0, 1.0, 2.0), [0.5], [1, 1]),
        lambda: SortedCell(1.0, 0.0, np.array([])),
        lambda: SortedCell(0.0, math.inf, np.array([])),
        lambda: SortedCell(-1e308, 1.7e308, np.array([])),
        lambda: SortedCell(0.0, 1.0, np.array([1.5])),
        lambda: SortedCell(0.0, 1.0, np.array([0.9, 0.5])),
        lambda: SortedCell(0.0, 1.0, np.array([math.nan])),
        lambda: SortedCell(0.0, 1.0, np.array([0.5]), np.array([])),
        lambda: SortedCell(0.0, 1.0, np.array([0.5]), np.array([-0.5])),
    ],
)
def test_what_is_refused(make: object) -> None:
    with pytest.raises(UsageError):
        make()  # type: ignore[operator]
