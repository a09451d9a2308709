"""Parts of one view: public numbers of each cell, and by enumeration that parts together tell nothing."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.methods.view.split import _numbers, read_split, split_view
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query


def plan(n: int = 1000) -> ViewPlan:
    secret = Secret("share(sex = 'F')", between=(0.25, 0.40))
    return plan_view_of(Problem(queries=(Query("count"),), secrets=(secret,), epsilon=1.0, n=n))


def test_each_cell_is_split_in_the_same_shares() -> None:
    found = split_view(plan(), {"train": 0.8, "test": 0.2})
    assert found.names == ("train", "test")
    assert found.numbers == ((200, 480), (50, 120))
    assert found.rows == {"train": 680, "test": 170}


def test_what_rounding_keeps_from_a_part_in_one_cell_it_gets_in_another() -> None:
    """Cells of two rows: by themselves none would have a row for a part of a fifth."""
    cells = _numbers([2] * 10, [Fraction(4, 5), Fraction(1, 5)])
    assert [sum(part) for part in zip(*cells, strict=True)] == [16, 4]
    assert set(cells) == {(2, 0), (1, 1)}


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=12),
    st.lists(st.integers(1, 20), min_size=2, max_size=5),
)
def test_the_numbers_are_a_partition_and_near_their_shares(keeps: list[int], weights: list[int]) -> None:
    shares = [Fraction(weight, sum(weights)) for weight in weights]
    cells = _numbers(keeps, shares)
    assert [sum(cell) for cell in cells] == keeps
    assert all(number >= int(share * sum(cell)) for cell in cells for number, share in zip(cell, shares, strict=True))
    totals = [sum(part) for part in zip(*cells, strict=True)]
    assert all(abs(total - share * sum(keeps)) < len(shares) for total, share in zip(totals, shares, strict=True))


@pytest.mark.parametrize(
    ("split", "problem"),
    [
        ({"train": 1.0}, "two parts"),
        ([("train", 0.5)], "two parts"),
        ({"train": 0.8, "test": 0.3}, "add up to 1. Got 1.1"),
        ({"train": 0.8, "test": 0.1}, "add up to 1. Got 0.9"),
        ({"train": 1.2, "test": -0.2}, "above 0 and below 1. Got 1.2"),
        ({"train": True, "test": 0.2}, "above 0 and below 1. Got True"),
        ({"train": float("nan"), "test": 0.2}, "above 0 and below 1. Got nan"),
        ({"train": "0.8", "test": 0.2}, "above 0 and below 1. Got 0.8"),
        ({"a/b": 0.8, "test": 0.2}, "letters, digits"),
        ({"": 0.8, "test": 0.2}, "letters, digits"),
        ({"Test": 0.8, "test": 0.2}, "capital letters"),
        ({"train": 0.9999, "test": 0.0001}, "every part must have a row. Got none for test, of 850"),
    ],
)
def test_what_is_no_split_is_refused(split: Any, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        split_view(plan(), split)
    assert problem in str(caught.value)


def test_thirds_as_floats_are_thirds() -> None:
    shares = read_split({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
    assert sum(shares.values()) == 1
    assert split_view(plan(1200), {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}).rows == {"a": 340, "b": 340, "c": 340}


# By enumeration: four rows of two cells, each with a 0 or a 1 that is drawn by its cell alone; all ranks, all places.


ROWS = 4
KEEP, TRAIN = (2, 1), (1, 1)
ONES = (Fraction(1, 5), Fraction(2, 3))
Law = dict[Any, Fraction]
Split = Callable[[Sequence[int], Sequence[int], Sequence[int]], tuple[list[int], list[int]]]


def by_places(column: Sequence[int], rank: Sequence[int], place: Sequence[int]) -> tuple[list[int], list[int]]:
    """The positions of both parts, each in the order of places."""
    parts: tuple[list[int], list[int]] = [], []
    for cell, (keep, train) in enumerate(zip(KEEP, TRAIN, strict=True)):
        kept = sorted((j for j in range(ROWS) if column[j] == cell), key=lambda j: rank[j])[:keep]
        for number, j in enumerate(sorted(kept, key=lambda j: place[j])):
            parts[number >= train].append(j)
    first, second = (sorted(part, key=lambda j: place[j]) for part in parts)
    return first, second


def law(column: Sequence[int], split: Split) -> Law:
    """The law of both parts as lists of cells and values."""
    found: Counter[Any] = Counter()
    orders = list(itertools.permutations(range(ROWS)))
    for rank, place in itertools.product(orders, orders):
        first, second = split(column, rank, place)
        found[tuple(first), tuple(second)] += 1
    total: Law = {}
    for (first, second), count in found.items():
        for values in itertools.product((0, 1), repeat=ROWS):
            chance = Fraction(count, len(orders) ** 2)
            for j, value in enumerate(values):
                chance *= ONES[column[j]] if value else 1 - ONES[column[j]]
            told = tuple(tuple((column[j], values[j]) for j in part) for part in (first, second))
            total[told] = total.get(told, Fraction(0)) + chance
    return total


def variation(one: Law, other: Law) -> Fraction:
    return sum((abs(one.get(key, Fraction(0)) - other.get(key, Fraction(0))) for key in {*one, *other}), Fraction(0)) / 2


COLUMNS = [(0, 0, 1, 1), (0, 1, 0, 1), (0, 0, 0, 1), (1, 0, 0, 0)]


def test_both_parts_together_have_one_law_whatever_the_column_is() -> None:
    first, *others = (law(column, by_places) for column in COLUMNS)
    assert [variation(first, other) for other in others] == [0, 0, 0]


def by_half_of_all_places(column: Sequence[int], rank: Sequence[int], place: Sequence[int]) -> tuple[list[int], list[int]]:
    """Another rule: every row of the table is in one half of the places, and so are the kept ones."""
    train, test = by_places(column, rank, place)
    kept = sorted((*train, *test), key=lambda j: place[j])
    return [j for j in kept if place[j] < ROWS // 2], [j for j in kept if place[j] >= ROWS // 2]


def with_what_was_not_kept(column: Sequence[int], rank: Sequence[int], place: Sequence[int]) -> tuple[list[int], list[int]]:
    """The mutant: what the training rows leave is for testing, all of it."""
    train, _ = by_places(column, rank, place)
    return train, sorted(set(range(ROWS)) - set(train), key=lambda j: place[j])


def test_rows_that_the_view_leaves_out_are_in_no_part() -> None:
    laws = [law(column, with_what_was_not_kept) for column in COLUMNS]
    assert variation(laws[0], laws[2]) == 1, "the test rows tell the counts"


def test_parts_of_random_size_would_still_tell_nothing() -> None:
    """Any rule by places alone is a function of the view: its sizes are random here, and their law is public."""
    laws = [law(column, by_half_of_all_places) for column in COLUMNS]
    assert [variation(laws[0], other) for other in laws[1:]] == [0, 0, 0]
