"""What is counted for a query: steps, bins and unions by their definitions, and bounds that would move a row elsewhere."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.cases.tally_layout import bin_condition, in_cells, layout, union_of, whole_steps
from attrpriv.errors import QueryError
from attrpriv.problem.problem import Problem
from attrpriv.queries.conditions import Condition, Written, parse_condition
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import counts_problem


@pytest.mark.parametrize(
    "values", [(0, 1), (1, 3, 5), (10, 4, 7), (0.1, 0.25, 0.7), (-3, 9, 1.5), (5, 2), (2.5, -2.5, 0), (7, 7.5, 1_000_000)]
)
def test_values_are_whole_steps_of_their_largest_common_unit(values: tuple[float, ...]) -> None:
    steps, unit, origin, order = whole_steps("x", values)
    exact = [Fraction(repr(value)) if isinstance(value, float) else Fraction(value) for value in values]
    assert [origin + step * unit for step in steps] == [exact[k] for k in order] == sorted(exact)
    assert steps[0] == 0
    assert math.gcd(*steps) == 1
    assert unit > 0


def test_names_are_no_numbers() -> None:
    with pytest.raises(QueryError):
        whole_steps("x", ("a", "b"))


@pytest.mark.parametrize("edges", [(0.0, 1.0), (0.0, 1.0, 2.5), (-1.0, 0.0, 4.0, 9.0)])
def test_every_value_between_the_edges_is_in_one_bin(edges: tuple[float, ...]) -> None:
    """Edges belong to the bin above, the last one to the last bin; nothing outside belongs to any."""
    texts = [str(bin_condition(edges, "x", k)) for k in range(len(edges) - 1)]
    last = len(edges) - 2
    for k, text in enumerate(texts):
        closing = "<=" if k == last else "<"
        assert text == str(parse_condition(f"x >= {edges[k]} and x {closing} {edges[k + 1]}"))


SIZES: list[tuple[str, Condition]] = [(name, Written("size", name)) for name in ("S", "M", "L")]
COLOURS: list[tuple[str, Condition]] = [(name, Written("colour", name)) for name in ("red", "blue")]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ("size = 'S'", "size is 'S'"),
        ("size != 'S'", "size is 'M' or size is 'L'"),
        ("size in ('S', 'L')", "size is 'S' or size is 'L'"),
        ("size = 'XL'", "size is 'S' and not size is 'S'"),
        ("size = 'S' and colour = 'red'", "size is 'S' and colour is 'red'"),
        ("not (size = 'S' or colour != 'red')", "not (size is 'S' or colour is 'blue')"),
        ("size = 'S' and weight > 3", "size is 'S' and weight > 3"),
    ],
)
def test_events_of_listed_values_are_counted_as_these_values(event: str, text: str) -> None:
    found = in_cells(parse_condition(event), {"size": SIZES, "colour": COLOURS})
    assert str(parse_condition(str(found))) == str(parse_condition(text))


def test_a_union_of_one_value_is_that_value() -> None:
    assert union_of(parse_condition("size = 'M'"), SIZES) == SIZES[1][1]


def visits(**changes: Any) -> Problem:
    return counts_problem(queries=(Query("sum", "visits"),), **changes)


@pytest.mark.parametrize("bounds", [None, (0.0, 3.0)])
def test_bounds_that_move_no_row_are_taken(bounds: tuple[float, float] | None) -> None:
    asked = visits(bounds={} if bounds is None else {"visits": bounds})
    counts = asked.theta[0]
    assert isinstance(counts, Counts)
    found = layout(asked, counts, asked.queries[0])
    assert found.values == (0, 1, 3)
    assert (found.tally.unit, found.tally.origin, found.tally.histogram, found.tally.complete) == (1.0, 0.0, False, True)
    assert [cell.value for cell in found.tally.cells] == [0, 1, 3]
    assert found.laws(counts)["yes"] == ((0.2, 0.2), (0.5, 0.5), (0.3, 0.3))


@pytest.mark.parametrize("bounds", [(-1.0, 3.0), (0.0, 4.0), (0.5, 3.0), (0.0, 2.5), (1.0, 3.0)])
def test_bounds_that_would_move_a_row_are_refused(bounds: tuple[float, float]) -> None:
    asked = visits(bounds={"visits": bounds})
    counts = asked.theta[0]
    assert isinstance(counts, Counts)
    with pytest.raises(QueryError):
        layout(asked, counts, asked.queries[0])


BINNED = {
    "stay": {
        name: {"values": [1, 4, 9], "probabilities": law} for name, law in (("yes", [0.2, 0.5, 0.3]), ("no", [0.5, 0.3, 0.2]))
    }
}


@pytest.mark.parametrize(
    ("bounds", "taken"),
    [
        ((0.0, 30.0), True), ((1.0, 8.0), True), ((2.0, 30.0), False), ((0.0, 7.0), True), ((0.0, 6.9), False),
        ((1.9, 7.0), True), ((-1.0, 30.0), False), ((0.0, 31.0), False),
    ],
)  # fmt: skip
def test_bounds_within_the_outer_bins_move_no_row_to_another(bounds: tuple[float, float], taken: bool) -> None:
    """Bins [0, 2), [2, 7), [7, 30]: a bound at an inner edge cuts a bin off, unless the edge stays in the upper one."""
    asked = counts_problem(
        queries=(Query("sum", "stay"),), given=BINNED, bins={"stay": (0.0, 2.0, 7.0, 30.0)}, bounds={"stay": bounds}
    )
    counts = asked.theta[0]
    assert isinstance(counts, Counts)
    if taken:
        assert layout(asked, counts, asked.queries[0]).values == (0, 3, 8)
    else:
        with pytest.raises(QueryError):
            layout(asked, counts, asked.queries[0])


@pytest.mark.parametrize(
    ("where", "steps", "yes", "no"),
    [
        ("visits > 0", (0, 1, 3), (0.2, 0.5, 0.3), (0.5, 0.3, 0.2)),
        ("visits >= 3", (0, 1), (0.7, 0.3), (0.8, 0.2)),
        ("visits < 3", (0, 1), (0.5, 0.5), (0.7, 0.3)),
        ("smoker = 'yes'", (0, 1, 3), (0.2, 0.5, 0.3), (1.0, 0.0, 0.0)),
        ("smoker = 'no'", (0, 1, 3), (1.0, 0.0, 0.0), (0.5, 0.3, 0.2)),
    ],
)
def test_a_sum_over_a_filter_adds_nothing_for_the_others(where: str, steps: Any, yes: Any, no: Any) -> None:
    asked = counts_problem(queries=(Query("sum", "visits", where=where),))
    counts = asked.theta[0]
    assert isinstance(counts, Counts)
    found = layout(asked, counts, asked.queries[0])
    assert found.values == steps
    for name, law in (("yes", yes), ("no", no)):
        assert [float(low) for low, _ in found.laws(counts)[name]] == pytest.approx(law)
        assert [float(high) for _, high in found.laws(counts)[name]] == pytest.approx(law)
    assert found.tally.clip == {}


@pytest.mark.parametrize("where", ["visits > 9", "visits = 0", "ward = 'a'", "visits > 0 and smoker = 'yes'"])
def test_filters_that_are_not_covered(where: str) -> None:
    asked = counts_problem(queries=(Query("sum", "visits", where=where),))
    counts = asked.theta[0]
    assert isinstance(counts, Counts)
    with pytest.raises(QueryError):
        layout(asked, counts, asked.queries[0])
