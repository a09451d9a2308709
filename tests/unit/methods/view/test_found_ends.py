"""The search for ends: it covers what is stated, shows more rows than other ends, and keeps the stated break points."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.channel import Channel
from attrpriv.errors import PolicyError
from attrpriv.methods.view import found_ends
from attrpriv.methods.view.found_ends import EndsFinder, ends_finder
from attrpriv.methods.view.sorted_words import ends_in_words
from attrpriv.problem.intervals import ChoosingRecords, Intervals
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import Reference
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

FOUND = Reference.checked(
    {"file": "census.parquet", "least_density": 0.9, "failure": 1e-9, "sorted": {"income": {"ends": "found"}}}
)


def finder(breaks: tuple[float, ...] = (), whole: bool = False, **channel: Any) -> EndsFinder:
    told: dict[str, Any] = {"information": {"explained": 0.0005}} | channel
    problem = Problem(
        queries=(Query("count"),),
        secrets=(Secret("columns(sex, income)"),),
        epsilon=1.0,
        delta=1e-5,
        n=8000,
        theta=(Channel(**told),),
        reference=FOUND,
        types={"income": "integer" if whole else "float"},
    )
    return ends_finder(problem, "income", breaks)


@cache
def records(kind: str) -> ChoosingRecords:
    g = np.random.default_rng(3)
    numbers = {
        "even": g.uniform(0, 100, 8000),
        "normal": g.normal(50, 15, 8000),
        "whole": np.round(g.normal(50_000, 15_000, 8000)),
    }[kind]
    numbers[:80] = np.nan
    return ChoosingRecords(numbers, g.integers(0, 2, 8000), 24_000)


def rows(search: EndsFinder, chosen: ChoosingRecords, edges: tuple[float, ...]) -> int:
    """What a view with these ends shows; 0 where it does not cover what is stated."""
    numbers = np.sort(chosen.numbers[~np.isnan(chosen.numbers)])
    found = search._tried(chosen, numbers, edges)
    return 0 if found is None else found.rows


@pytest.mark.parametrize(
    ("kind", "channel"),
    [
        ("even", {}),
        ("normal", {}),
        pytest.param("normal", {"information": {"explained": 0.05}, "shift": 0.05}, marks=pytest.mark.slow),
    ],
)
def test_no_other_number_of_equal_intervals_shows_more(kind: str, channel: dict[str, Any]) -> None:
    search, chosen = finder(**channel), records(kind)
    edges = search(chosen)
    shown = rows(search, chosen, edges)
    assert shown > 500
    low, high = np.nanquantile(chosen.numbers, [0.001, 0.999])
    for number in (64, 128, 256, 512):
        other = tuple(float(x) for x in np.linspace(low, high, number + 1))
        assert rows(search, chosen, other) <= 1.05 * shown


def test_more_is_shown_where_less_is_told() -> None:
    chosen = records("even")
    few, many = (finder(information={"explained": share}) for share in (0.002, 0.0002))
    assert len(few(chosen)) > len(many(chosen))
    assert rows(few, chosen, few(chosen)) < rows(many, chosen, many(chosen))


def test_break_points_are_ends() -> None:
    edges = finder((33.3, 47.11))(records("even"))
    assert {33.3, 47.11} <= set(edges)
    assert edges == tuple(sorted(edges))


def test_ends_of_whole_numbers_are_whole() -> None:
    edges = finder(whole=True)(records("whole"))
    assert len(edges) > 8
    assert all(end == int(end) for end in edges)


def test_the_same_records_give_the_same_ends() -> None:
    chosen = records("normal")
    again = ChoosingRecords(chosen.numbers[::-1], chosen.homes[::-1], chosen.counted)
    assert finder()(chosen) == finder()(again)
    assert hash(finder()) == hash(finder())


def test_thin_intervals_are_joined_two_by_two() -> None:
    edges = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    joined = found_ends._pairs_joined
    assert joined(edges, {1.0, 2.0}, ()) == (0.0, 1.0, 2.0, 3.0, 5.0, 6.0)
    assert joined(edges, {1.0, 2.0}, (4.0,)) == (0.0, 1.0, 2.0, 3.0, 4.0, 6.0)
    assert joined(edges, set(edges), ()) == edges
    assert joined(edges, set(), ()) == (0.0, 2.0, 4.0, 6.0)


def test_joining_shows_more_where_it_is_cheap() -> None:
    """Without a shift rows of wide intervals cost much, and of thin ones little: a dense middle, and two thin tails."""
    g = np.random.default_rng(5)
    numbers = np.concatenate([g.uniform(40, 60, 7000), g.uniform(0, 40, 500), g.uniform(60, 100, 500)])
    chosen = ChoosingRecords(numbers, np.zeros(8000, dtype=np.int64), 24_000)
    search = finder()
    edges = search(chosen)
    widths = np.diff(edges)
    assert widths.max() > 1.9 * widths.min()
    narrow = search._even_edges(np.sort(numbers), 0.001, round((edges[-1] - edges[0]) / widths.min()))
    assert rows(search, chosen, edges) > rows(search, chosen, narrow) > 0


def test_a_number_that_does_not_vary_has_no_ends() -> None:
    still = ChoosingRecords(np.array([np.nan, 5.0, 5.0]), np.zeros(3, dtype=np.int64), 9)
    assert finder()(still) == ()
    assert finder()(ChoosingRecords(np.array([np.nan]), np.zeros(1, dtype=np.int64), 9)) == ()


def test_where_nothing_would_do_the_narrowest_are_tried_and_the_plan_refuses() -> None:
    edges = finder(information={"explained": 0.999})(records("even"))
    assert len(edges) == found_ends._NUMBERS[-1] + 1


def test_ends_cannot_be_found_without_a_channel() -> None:
    problem = Problem(
        queries=(Query("count"),),
        secrets=(Secret("columns(income)"),),
        epsilon=1.0,
        delta=1e-5,
        n=100,
        reference=FOUND,
    )
    with pytest.raises(PolicyError, match="kind: channel"):
        ends_finder(problem, "income", ())


def test_ends_in_words() -> None:
    assert ends_in_words((0.0, 1.0)) == "0, 1"
    assert ends_in_words((0.0, 1.0, 2.0, 3.0)) == "0 to 3 by 1"
    assert ends_in_words((0.0, 5.0, 6.0, 7.0, 8.0, 20.5)) == "0, 5 to 8 by 1, 20.5"


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"ends": "found", "width": 1}, "needs no low, high or width"),
        ({"ends": "found", "breaks": [2, 1]}, "above the one before"),
        ({"ends": "sought"}, "found"),
    ],
)
def test_what_is_said_of_ends(told: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Intervals(**told)
    assert Intervals(ends="found", breaks=(3,)).edges == (3.0,)
