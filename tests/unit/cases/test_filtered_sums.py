"""Sums over the rows of a filter, cell by cell: which rows each cell counts, and how likely a row is to be in it."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.cases.tally_layout import Layout, layout
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import counts_problem

LATE = {
    "delay": {
        name: {"values": [2, 4, 10], "probabilities": law} for name, law in (("yes", [0.2, 0.5, 0.3]), ("no", [0.5, 0.3, 0.2]))
    }
}


def made(query: Query, **changes: Any) -> tuple[Layout, Counts]:
    asked = counts_problem(**({"queries": (query,), "given": LATE} | changes))
    counts = asked.theta[0]
    assert isinstance(counts, Counts)
    return layout(asked, counts, query), counts


@pytest.mark.parametrize(
    ("where", "cells", "yes", "no"),
    [
        (
            "delay > 3",
            {0: "delay = 2", 2: "delay = 4", 5: "delay = 10"},
            (0.2, 0.5, 0.3),
            (0.5, 0.3, 0.2),
        ),
        ("delay > 4", {0: "delay = 2 or delay = 4", 1: "delay = 10"}, (0.7, 0.3), (0.8, 0.2)),
        (
            "smoker = 'yes'",
            {
                0: "not (smoker is 'yes')",
                1: "smoker is 'yes' and delay = 2",
                2: "smoker is 'yes' and delay = 4",
                5: "smoker is 'yes' and delay = 10",
            },
            (0.0, 0.2, 0.5, 0.3),
            (1.0, 0.0, 0.0, 0.0),
        ),
    ],
)
def test_a_row_adds_its_value_where_the_filter_holds_and_nothing_elsewhere(
    where: str, cells: dict[int, str], yes: tuple[float, ...], no: tuple[float, ...]
) -> None:
    """In steps of 2 from 0; of a column that never has 0, nothing is what rows outside of the filter add."""
    found, counts = made(Query("sum", "delay", where=where))
    assert {cell.value: cell.where for cell in found.tally.cells} == cells
    assert found.values == tuple(cells)
    assert (found.tally.origin, found.tally.complete, found.tally.histogram) == (0.0, True, False)
    assert found.tally.unit == (10.0 if where == "delay > 4" else 2.0)
    laws = found.laws(counts)
    for name, law in (("yes", yes), ("no", no)):
        assert [float(low) for low, _ in laws[name]] == pytest.approx(law)
        assert [float(high) for _, high in laws[name]] == pytest.approx(law)


def test_every_cell_of_a_histogram_counts_one() -> None:
    found, counts = made(Query("count", group_by="delay"))
    assert [(cell.name, cell.where, cell.value) for cell in found.tally.cells] == [
        ("2", "delay = 2", 1), ("4", "delay = 4", 1), ("10", "delay = 10", 1),
    ]  # fmt: skip
    assert (found.values, found.tally.unit, found.tally.origin, found.tally.width) == ((0, 1, 2), 1.0, 0.0, 2)
    assert [float(low) for low, _ in found.laws(counts)["no"]] == [0.5, 0.3, 0.2]


def test_a_sum_is_in_steps_of_its_unit() -> None:
    found, counts = made(Query("sum", "delay"))
    assert [(cell.where, cell.value) for cell in found.tally.cells] == [("delay = 2", 0), ("delay = 4", 1), ("delay = 10", 4)]
    assert (found.tally.unit, found.tally.origin, found.tally.width) == (2.0, 2.0, 4)
    assert [float(low) for low, _ in found.laws(counts)["yes"]] == [0.2, 0.5, 0.3]


def test_an_event_counts_one() -> None:
    found, counts = made(Query("count", where="delay > 3"))
    assert [(cell.where, cell.value) for cell in found.tally.cells] == [("delay = 4 or delay = 10", 1)]
    assert (found.values, found.tally.width, found.tally.complete) == ((0, 1), 1, False)
    assert [float(low) for low, _ in found.laws(counts)["no"]] == pytest.approx([0.5, 0.5])
    assert found.tally.covering == (("delay = 2", "delay = 4", "delay = 10"),)
