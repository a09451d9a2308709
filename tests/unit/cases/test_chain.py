"""What one entry of a chain adds to a statistic, what is counted, and which problems are about a chain."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.assumptions.chain import Chain
from attrpriv.cases.chain_cost import counted_by_states, entry_values
from attrpriv.cases.chain_layout import chain_of, chain_tally, longest_of, require_entries
from attrpriv.methods.base.tally import Tally
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

NUMBERS: dict[str, Any] = {
    "column": "state",
    "states": [4, 1, 2.5],
    "initial": [0.4, 0.3, 0.3],
    "transition": [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]],
    "tolerance": 0,
}
HIGH = Query("count", where="state > 2")


def problem(query: Query = HIGH, **changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "queries": (query,), "secrets": (Secret("entries(state)"),), "epsilon": 1.0, "n": 30,
        "theta": (Chain(**NUMBERS | changes.pop("chain", {})),),
    }  # fmt: skip
    return Problem(**(stated | changes))


def tally(query: Query, **changes: Any) -> tuple[Problem, Chain, Tally]:
    asked = problem(query, **changes)
    (chain,) = chain_of(asked)
    return asked, chain, chain_tally(asked, chain, query)


def test_an_entry_adds_one_where_its_state_is_meant_and_nothing_elsewhere() -> None:
    asked, chain, found = tally(HIGH)
    assert (found.complete, found.histogram, [cell.value for cell in found.cells]) == (False, False, [1])
    assert entry_values(asked, chain, found) == (1, 0, 1)
    counted = counted_by_states(asked, chain, found)
    assert entry_values(asked, chain, counted) == (1, 0, 1)
    (cell,) = counted.cells
    assert cell.where == "state = 4 or state = 2.5"


@pytest.mark.parametrize("query", [Query("sum", "state"), Query("avg", "state")])
def test_an_entry_adds_its_value_in_steps_of_the_common_unit(query: Query) -> None:
    """4, 1 and 2.5 are 2, 0 and 1 steps of 1.5 from 1."""
    asked, chain, found = tally(query)
    assert (found.unit, found.origin, found.complete, found.width) == (1.5, 1.0, True, 2)
    assert entry_values(asked, chain, found) == (2, 0, 1)
    assert counted_by_states(asked, chain, found) == found


def test_in_a_histogram_two_states_are_two_apart() -> None:
    asked, chain, found = tally(Query("count", group_by="state"))
    assert (found.histogram, found.width, found.unit, found.origin) == (True, 2, 1.0, 0.0)
    assert [(cell.name, cell.where, cell.value) for cell in found.cells] == [
        ("4", "state = 4", 1), ("1", "state = 1", 1), ("2.5", "state = 2.5", 1),
    ]  # fmt: skip
    assert [category.name for category in found.categories] == ["4", "1", "2.5"]
    assert not any(category.member for category in found.categories)
    assert entry_values(asked, chain, found) is None


@pytest.mark.parametrize("changes", [{"bounds": {"state": (0.0, 3.0)}}, {"types": {"state": "boolean"}}])
def test_entries_that_are_clipped_or_of_another_type_may_add_anything(changes: dict[str, Any]) -> None:
    asked, chain, found = tally(Query("sum", "state"))
    assert entry_values(asked.model_copy(update=changes), chain, found) is None


def test_a_state_that_a_tally_has_no_place_for_or_two_decides_nothing() -> None:
    asked, chain, found = tally(Query("sum", "state"))
    assert entry_values(asked, chain, found.model_copy(update={"cells": found.cells[:2]})) is None
    _, _, event = tally(HIGH)
    (cell,) = event.cells
    both = cell.model_copy(update={"where": "state > 3"})
    assert entry_values(asked, chain, event.model_copy(update={"cells": (cell, both)})) is None
    apart = cell.model_copy(update={"where": "state < 2", "value": 5})
    assert entry_values(asked, chain, event.model_copy(update={"cells": (cell, apart)})) == (1, 5, 1)


@pytest.mark.parametrize(
    "query",
    [
        Query("sum", "state", where="state > 2"),
        Query("count", group_by="state", where="state > 2"),
        Query("sum", "state", group_by="state"),
        Query("sum", "other"),
        Query("count", group_by="other"),
        Query("count", where="other > 2"),
        Query("count", where="state > 2 and other > 2"),
    ],
)
def test_a_statistic_of_anything_else_is_refused(query: Query) -> None:
    with pytest.raises(Refusal):
        tally(query)


def test_the_longest_chain_has_no_more_entries_than_the_table_has_rows() -> None:
    asked = problem()
    for longest, entries in ((None, 30), (1, 1), (7, 7), (30, 30)):
        assert longest_of(asked, Chain(**NUMBERS | {"longest": longest})) == entries
    with pytest.raises(Refusal):
        longest_of(asked, Chain(**NUMBERS | {"longest": 31}))


def test_which_problems_are_about_a_chain() -> None:
    asked = problem()
    (chain,) = chain_of(asked)
    require_entries(asked, chain)
    assert len(chain_of(problem(theta=(chain, Chain(**NUMBERS | {"initial": [1, 0, 0]}))))) == 2
    for other in ({"column": "x"}, {"states": [4, 1, 3]}, {"longest": 5}):
        with pytest.raises(Refusal):
            chain_of(problem(theta=(chain, Chain(**NUMBERS | other))))
    with pytest.raises(Refusal):
        chain_of(problem(bins={"state": (0.0, 2.0, 5.0)}))
    for changes in (
        {"secrets": (Secret("mean(state)", within=1.0),)},
        {"secrets": (Secret("entries(state)"), Secret("entries(mood)"))},
        {"known_rows": 0.1},
    ):
        with pytest.raises(Refusal):
            require_entries(problem(**changes), chain)
