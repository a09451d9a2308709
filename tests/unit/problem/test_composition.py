"""Compositions: every row in exactly one cell, ranges as whole numbers, and every way to state them badly."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrpriv.engines.conditions import holds
from attrpriv.engines.tables import open_table
from attrpriv.errors import PolicyError, QueryError
from attrpriv.problem.composition import Cell, Composition, bin_names, cells_of, crossed_cells, parse_composition
from attrpriv.problem.secret import Secret


def composition(text: str) -> Composition:
    found = parse_composition(text)
    assert found is not None
    return found


def cells(text: str, between: Any, n: int, bins: Mapping[str, list[float]] | None = None) -> tuple[Cell, ...]:
    return cells_of(composition(text), between, bins or {}, n)


def ranges(found: tuple[Cell, ...]) -> dict[str, tuple[int, int]]:
    return {cell.name: (cell.low, cell.high) for cell in found}


# Reading.


@pytest.mark.parametrize(
    ("text", "canonical", "reads"),
    [
        ("share(gender='F')", "share(gender = 'F')", ("gender",)),
        ("COUNT(age >= 65 and not smoker = 'no')", "count(age >= 65 and not (smoker = 'no'))", ("age", "smoker")),
        ("distribution( gender )", "distribution(gender)", ("gender",)),
        ('Distribution(gender, "age group")', 'distribution(gender, "age group")', ("gender", "age group")),
    ],
)
def test_what_is_read(text: str, canonical: str, reads: tuple[str, ...]) -> None:
    found = composition(text)
    assert found.text == canonical
    assert found.reads == reads
    assert composition(canonical) == found


@pytest.mark.parametrize("text", ["mean(income)", "sum(income)", "avg(x)", "gender", "median(x)"])
def test_other_secrets_are_no_compositions(text: str) -> None:
    assert parse_composition(text) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("share(a = 1, b = 2)", "share takes one condition"),
        ("count(a = 1, b = 2)", "count takes one condition"),
        ("count(*)", "must be comparisons"),
        ("share(gender)", "must be comparisons"),
        ("distribution()", "distribution takes different columns"),
        ("distribution(a, a)", "distribution takes different columns"),
        ("distribution(a = 1)", "distribution takes different columns"),
        ("distribution(t.a)", "distribution takes different columns"),
    ],
)
def test_bad_compositions(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_composition(text)


# Ranges.


def test_shares_become_whole_numbers_inside_the_range() -> None:
    assert ranges(cells("share(g = 'F')", (0.25, 0.4), 10)) == {"g = 'F'": (3, 4), "other": (6, 7)}


@pytest.mark.parametrize(
    ("share", "n", "count"),
    [(0.07, 100, 7), (0.29, 100, 29), (0.57, 100, 57), (0.1, 30, 3), (0.15, 20, 3), (1e-05, 100_000, 1)],
)
def test_decimal_shares_are_exact(share: float, n: int, count: int) -> None:
    """0.29 * 100 is 28.999999999999996 in floats; the policy says 29 of 100."""
    found = cells("share(g = 'F')", (share, 1.0), n)
    assert found[0].low == count
    assert cells("share(g = 'F')", (0.0, share), n)[0].high == count


def test_counts_are_taken_as_they_are() -> None:
    assert ranges(cells("count(g = 'F')", (100.0, 400.0), 1000)) == {"g = 'F'": (100, 400), "other": (600, 900)}
    assert ranges(cells("count(g = 'F')", (99.5, 400.5), 1000)) == {"g = 'F'": (100, 400), "other": (600, 900)}


def test_ranges_are_made_as_narrow_as_the_total_allows() -> None:
    between = {"a": (0.1, 0.5), "b": (0.2, 0.3), "c": (0.0, 1.0)}
    assert ranges(cells("distribution(g)", between, 100)) == {"a": (10, 50), "b": (20, 30), "c": (20, 70)}


@given(st.integers(2, 12), st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=3))
def test_narrowing_is_exactly_what_is_possible(n: int, ends: list[tuple[int, int]]) -> None:
    """Against all count vectors: each end is attained by some table, or there is no table at all."""
    between = {f"c{k}": (min(a, b) / 10, max(a, b) / 10) for k, (a, b) in enumerate(ends)}
    low = {name: -(-int(a * 10 + 0.5) * n // 10) for name, (a, _) in between.items()}
    high = {name: int(b * 10 + 0.5) * n // 10 for name, (_, b) in between.items()}
    possible = [
        counts
        for counts in itertools.product(range(n + 1), repeat=len(between))
        if sum(counts) == n and all(low[name] <= count <= high[name] for name, count in zip(between, counts, strict=True))
    ]
    if not possible:
        with pytest.raises(QueryError, match=f"no table of {n} rows"):
            cells("distribution(g)", between, n)
        return
    found = cells("distribution(g)", between, n)
    expected = [(min(column), max(column)) for column in zip(*possible, strict=True)]
    assert [(cell.low, cell.high) for cell in found] == expected


def test_of_a_population_every_count_is_possible() -> None:
    found = cells_of(composition("share(g = 'F')"), (0.25, 0.4), {}, 10, population=True)
    assert ranges(found) == {"g = 'F'": (0, 10), "other": (0, 10)}


@pytest.mark.parametrize(
    ("text", "between", "message"),
    [
        ("share(g = 'F')", (0.31, 0.39), "no table of 10 rows has counts in these ranges"),
        ("share(g = 'F')", (0.5, 1.5), "must be shares from 0 to 1. Got [0.5, 1.5]"),
        ("share(g = 'F')", (-0.1, 0.5), "must be shares from 0 to 1"),
        ("count(g = 'F')", (5.0, 11.0), "must be counts from 0 to the number of rows. Got [5, 11]"),
        ("count(g = 'F')", {"F": (1.0, 2.0)}, "count takes one range [low, high]. Got ranges for cells"),
        ("distribution(g)", (0.1, 0.2), "takes a range for each cell, as in {F: [25%, 40%], M: [60%, 75%]}"),
        ("distribution(g)", {"F": (0.1, 0.2), "M": (0.1, 0.2)}, "no table of 10 rows has counts in these ranges"),
        ("distribution(g)", {"other": (0.0, 1.0)}, "needs a range for each cell. Got none"),
        ("distribution(g, h)", {"F": (0.1, 0.9)}, "needs 2 values in a cell. Got 'F'"),
        ("distribution(g)", {"F~x": (0.1, 0.9)}, "needs 1 values in a cell"),
        (
            "distribution(g, h)",
            {"F~x": (0.1, 0.5), "M~y": (0.1, 0.5)},
            "every cell needs a range. Missing: F~y, M~x. Add them, or other.",
        ),
    ],
)
def test_bad_ranges(text: str, between: Any, message: str) -> None:
    with pytest.raises(QueryError, match=re.escape(message)):
        cells(text, between, 10)


# Cells.


def test_one_cell_for_each_combination() -> None:
    between = {"F~x": (0.1, 0.5), "F~y": (0.1, 0.5), "M~x": (0.1, 0.5), "M~y": (0.1, 0.5)}
    found = cells("distribution(g, h)", between, 100)
    assert [str(cell.condition) for cell in found] == [
        "g is 'F' and h is 'x'",
        "g is 'F' and h is 'y'",
        "g is 'M' and h is 'x'",
        "g is 'M' and h is 'y'",
    ]


def test_a_space_belongs_to_the_value() -> None:
    """Without it the cell would have no row: its rows would be among the others, in the proportion that is to be hidden."""
    found = cells("distribution(g)", {" F": (0.0, 0.4), "other": (0.6, 1.0)}, 100)
    assert str(found[0].condition) == "g is ' F'"
    between = {" F~ [0, 18]": (0.1, 0.9), " M~[0, 18]": (0.1, 0.9)}
    crossed = cells("distribution(g, age)", between, 100, {"age": [0.0, 18.0]})
    assert [str(cell.condition).split(" and ")[0] for cell in crossed] == ["g is ' F'", "g is ' M'"]
    with pytest.raises(QueryError, match=re.escape("must have no spaces around it, because they belong to the values.")):
        cells("distribution(g, h)", {"F ~ x": (0.1, 0.5), "M ~ x": (0.1, 0.5)}, 100)


def test_other_takes_what_is_not_named_and_comes_last() -> None:
    found = cells("distribution(g)", {"other": (0.0, 0.2), "F": (0.1, 0.5), "M": (0.1, 0.9)}, 100)
    assert [(cell.name, cell.condition is None) for cell in found] == [("F", False), ("M", False), ("other", True)]


def test_bins() -> None:
    between = {"[0, 18)": (0.1, 0.3), "[18, 65)": (0.4, 0.8), "[65, 120]": (0.1, 0.3)}
    found = cells("distribution(age)", between, 100, {"age": [0.0, 18.0, 65.0, 120.0]})
    assert [str(cell.condition) for cell in found] == [
        "age >= 0.0 and age < 18.0",
        "age >= 18.0 and age < 65.0",
        "age >= 65.0 and age <= 120.0",
    ]
    with pytest.raises(QueryError, match=re.escape("cells must not overlap. Got '[0, 18]', ' [0, 18]'")):
        cells("distribution(age)", {"[0, 18]": (0.1, 0.2), " [0, 18]": (0.1, 0.9)}, 100, {"age": [0.0, 18.0]})
    with pytest.raises(QueryError, match=re.escape("age has the bins [0, 18), [18, 65]. Got '[0, 17)'.")):
        cells("distribution(age)", {"[0, 17)": (0.1, 0.9)}, 100, {"age": [0.0, 18.0, 65.0]})
    with pytest.raises(QueryError, match=re.escape("Missing: [18, 65]. Add them, or other.")):
        cells("distribution(age)", {"[0, 18)": (0.1, 0.9)}, 100, {"age": [0.0, 18.0, 65.0]})


def test_bins_are_named_in_full() -> None:
    """Six digits would call both bins [1e+06, 1e+06)."""
    assert bin_names([1_000_000.0, 1_000_001.0, 1_000_002.5]) == ["[1000000, 1000001)", "[1000001, 1000002.5]"]


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=6, unique=True).map(sorted),
)
def test_bins_have_different_names(edges: list[float]) -> None:
    assert len(set(bin_names(edges))) == len(edges) - 1


ROWS = {
    "g": ["F", "M", "X", None, "other", "F", "M"],
    "age": [5.0, 18.0, 65.0, None, float("nan"), 120.0, 64.999],
    "n": [1, 2, 3, None, 1, 1, 2],
}


@pytest.mark.parametrize(
    ("text", "between", "bins"),
    [
        ("share(g = 'F')", (0.1, 0.9), {}),
        ("count(not (g = 'F' or age > 20))", (1.0, 6.0), {}),
        ("distribution(g)", {"F": (0.1, 0.9), "M": (0.1, 0.9), "other": (0.0, 0.5)}, {}),
        ("distribution(n)", {"1": (0.1, 0.9), "2": (0.1, 0.9), "other": (0.0, 0.5)}, {}),
        ("distribution(age)", {"[0, 18)": (0.1, 0.9), "[18, 65]": (0.1, 0.9), "other": (0.0, 0.9)}, {"age": [0.0, 18.0, 65.0]}),
        ("distribution(g, n)", {"F~1": (0.1, 0.9), "M~2": (0.1, 0.9), "other": (0.0, 0.9)}, {}),
    ],
)
def test_every_row_is_in_exactly_one_cell(text: str, between: Any, bins: dict[str, list[float]]) -> None:
    """Missing values and NaN included: at most one condition holds, and the rest is the cell without one."""
    source = open_table(pa.table({name: pa.array(values, from_pandas=False) for name, values in ROWS.items()}))
    found = cells(text, between, 7, bins)
    conditions = {cell.name: holds(source.table, cell.condition) for cell in found if cell.condition is not None}
    table = source.engine.to_pyarrow(source.table.select(**conditions)).to_pylist()
    assert all(sum(row.values()) <= 1 for row in table)
    assert found[-1].condition is None


def test_which_cells_several_compositions_cross_into() -> None:
    pair = [composition("share(g = 'F')"), composition("count(s = 1)")]
    assert crossed_cells(pair) == [
        "g = 'F' and s = 1",
        "g = 'F' and not (s = 1)",
        "not (g = 'F') and s = 1",
        "not (g = 'F') and not (s = 1)",
    ]
    assert crossed_cells([composition("distribution(a, b)"), pair[0]]) == [
        "each a and b and g = 'F'",
        "each a and b and not (g = 'F')",
    ]


# As a secret.


def test_a_secret_keeps_its_canonical_text() -> None:
    secret = Secret("share(gender='F')", between=(0.25, 0.4))
    assert secret.text == "share(gender = 'F')"
    assert secret.columns == ("gender",)
    assert str(secret) == "share(gender = 'F'), between 0.25 and 0.4"
    assert Secret.from_json(secret.to_json()) == secret


def test_a_secret_with_cells() -> None:
    secret = Secret(parameter="distribution(g)", between={"F": (0.2, 0.4), "M": (0.6, 0.8)})
    assert str(secret) == "distribution(g) of the population, F between 0.2 and 0.4, M between 0.6 and 0.8"
    assert Secret.from_json(secret.to_json()) == secret


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"secret": "share(g = 'F')"}, "share(g = 'F') needs between: [low, high], within: distance, or both; or cases alone"),
        (
            {"secret": "distribution(g)", "between": {"F": (0.1, 0.2), "M": (0.8, 0.9)}, "within": 0.1},
            "needs between, and takes neither within nor cases",
        ),
        (
            {"secret": "share(g = 'F')", "between": (0.1, 0.2), "cases": ("< 0.1", ">= 0.1")},
            "within: distance, or both; or cases alone",
        ),
        (
            {"parameter": "share(g = 'F')", "between": (0.1, 0.2), "within": 0.1},
            "within: is for a property of this table",
        ),
        ({"parameter": "count(g = 'F')", "between": (1.0, 2.0)}, "a population has a share or a distribution, not a count"),
        ({"secret": "share(g = 'F')", "parameter": "share(g = 'F')", "between": (0.1, 0.2)}, "one of them"),
        ({"between": (0.1, 0.2)}, "needs secret (of this table) or parameter (of the population)"),
        ({"secret": "share(g)", "between": (0.1, 0.2)}, "must be comparisons"),
        ({"secret": "share(g = 'F')", "between": (0.4, 0.2)}, "the low end must be below the high end"),
    ],
)
def test_bad_secrets(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(message)):
        Secret(**arguments)


def test_a_mean_has_no_cells() -> None:
    with pytest.raises(QueryError, match="a view needs between"):
        Secret("mean(x)", between=(0.0, 1.0)).cells(10, {})
