"""Views with sorted cells: intervals of a number, what moved rows tell, and a proof that stands on its own numbers."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import pytest

from attrpriv.assumptions.channel import Channel
from attrpriv.errors import PolicyError, RefusedError, UsageError
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.methods.view import sorted as module
from attrpriv.methods.view.sorted import SortedEvidence
from attrpriv.numerics.divergences.channel import mu_of, renyi_delta_upper
from attrpriv.numerics.laws.displacement import failure_of, never_exceeded
from attrpriv.problem.intervals import Intervals, PublicIntervals, RoughPlace, Uneven, interval_name
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCell, PublicCells, Reference
from attrpriv.problem.refusal import Cause
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses
from tests.unit.methods.proofs import accepted, refused

EPSILON, DELTA = 1.0, 1e-5
INTERVALS = Intervals(low=0.0, high=20.0, width=1.0)
PUBLIC = PublicIntervals(column="income", edges=INTERVALS.edges, variance=33.0, repeated=0.0, compared=("x",))
CELLS = tuple(
    PublicCell(values=(sex, low), count=100 if (low or 0) < 18 else 1)
    for sex, low in itertools.product(("F", "M"), (None, *INTERVALS.edges[:-1]))
)
RECORDS = PublicCells(
    columns=("sex", "income"), kinds={"sex": "text", "income": "float"}, records=4200, cells=CELLS, intervals=PUBLIC
)
FILE = Reference.checked(
    {"file": "census.parquet", "least_density": 0.9, "failure": 1e-9, "sorted": {"income": {"low": 0, "high": 20, "width": 1}}}
)
LIKELY: dict[str, Any] = {"information": {"explained": 0.02}, "shift": 0.02}
CERTAIN: dict[str, Any] = {"information": {"iota": 1e-6}}
SCORE: dict[str, Any] = {"information": {"iota": 1e-6, "slope": 0.01}}


def problem(told: dict[str, Any] | None = None, cells: PublicCells = RECORDS, **changes: Any) -> Problem:
    asked: dict[str, Any] = {
        "queries": (Query("avg", "x"),),
        "secrets": (Secret("columns(sex, income)"),),
        "epsilon": EPSILON,
        "delta": DELTA,
        "n": 4000,
        "theta": (Channel(**(LIKELY if told is None else told)),),
        "reference": FILE,
        "public_cells": cells,
        "types": {"sex": "text", "income": "float", "x": "float"},
    }
    return Problem(**(asked | changes))


def said(**changes: Any) -> PublicCells:
    """The records, with something else about their intervals."""
    return RECORDS.model_copy(update={"intervals": PUBLIC.model_copy(update=changes)})


@cache
def proof(name: str) -> SortedEvidence:
    return evidence(plan_view_of(problem({"likely": LIKELY, "certain": CERTAIN, "score": SCORE}[name])))


def evidence(view: ViewPlan) -> SortedEvidence:
    assert isinstance(view.certificate.evidence, SortedEvidence)
    return view.certificate.evidence


FORMS = ["likely", "certain", "score"]


# Intervals and what is stated.


def test_intervals_of_a_width_or_by_every_end() -> None:
    assert Intervals(low=0, high=4, width=1.5).edges == (0.0, 4 / 3, 8 / 3, 4.0)
    assert Intervals(breaks=(0, 1, 5)).edges == (0.0, 1.0, 5.0)
    assert (interval_name(0.0, 2000.0), interval_name(0.25, 1e20)) == ("0 to 2000", "0.25 to 1e+20")


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({}, "low, high and width, or breaks"),
        ({"low": 0, "high": 1}, "low, high and width, or breaks"),
        ({"low": 0, "high": 1, "width": 1, "breaks": [0, 1]}, "low, high and width, or breaks"),
        ({"low": 0, "breaks": [0, 1]}, "low, high and width, or breaks"),
        ({"low": 1, "high": 1, "width": 1}, "in order"),
        ({"low": 0, "high": 1, "width": 0}, "width"),
        ({"low": 0, "high": 1, "width": 1e-9}, "at most 10,000 intervals"),
        ({"low": 0, "high": 10_001, "width": 1}, "at most 10,000 intervals"),
        ({"breaks": [0]}, "at least two ends"),
        ({"breaks": [0, 0, 1]}, "each above the one before"),
        ({"breaks": [1, 0]}, "each above the one before"),
    ],
)
def test_ends_that_are_none(told: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Intervals(**told)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({}, "explained, such as 10%, or iota"),
        ({"explained": 0.1, "iota": 1.0}, "one of them"),
        ({"explained": 0.1, "slope": 1.0}, "beside iota"),
        ({"explained": 1.0}, "explained"),
        ({"iota": 0.0}, "iota"),
    ],
)
def test_information_has_one_form(told: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Channel(information=told)


def test_a_share_becomes_information() -> None:
    assert Channel(information={"explained": 0.1}).information_per_unit(4.0) == pytest.approx(0.1 / 0.9 / 4)
    assert Channel(information={"iota": 0.3}).information_per_unit(4.0) == 0.3
    lines = Channel(**LIKELY).explained()
    assert "explain at most 2% of the variance" in lines[0]
    assert "within 0.02 of an even one" in lines[1]
    assert "change by at most 0.01 per unit" in str(Channel(**SCORE))


def test_one_column_is_sorted_from_a_file() -> None:
    ends = {"low": 0, "high": 1, "width": 1}
    with pytest.raises(PolicyError, match="one column can be sorted"):
        Reference.checked({"file": "a.csv", "least_density": 1.0, "sorted": {"a": ends, "b": ends}})
    with pytest.raises(PolicyError, match="from a file of public records"):
        Reference.checked({"a": {"values": [1], "shares": [1.0]}, "least_density": 1.0, "sorted": {"a": ends}})


# The plan.


def test_a_view_of_intervals_and_categories() -> None:
    made = plan_view_of(problem())
    assert [cell.name for cell in made.cells][:3] == ["F~missing", "F~0 to 1", "F~1 to 2"]
    assert len(made.cells) == 2 * 19
    assert all(cell.keep >= 2 and cell.low == cell.keep for cell in made.cells)
    assert (made.certificate.epsilon, made.certificate.delta) == (EPSILON, DELTA)
    assert any("the promise holds up to information" in note for note in made.notes)
    assert any("38 of 42 public cells" in note for note in made.notes)
    assert any("R^2 0.02)" in note for note in made.notes)
    assert not any("no such column" in note for note in made.notes)
    assert "has no register" in " ".join(made.certificate.assumes)


def test_columns_that_the_records_do_not_have_are_named() -> None:
    made = plan_view_of(problem(CERTAIN, types={"sex": "text", "income": "float", "x": "float", "zip": "text"}))
    assert any("the public records have no such column: zip." in note for note in made.notes)


@pytest.mark.parametrize("name", FORMS)
def test_everything_is_computed_again(name: str) -> None:
    told = proof(name)
    again = SortedEvidence.from_json(told.to_json())
    assert again == told
    assert accepted(again, EPSILON, DELTA)
    lost = told.failure() / told.counts.rarest_event
    inner = EPSILON + math.log(1 - lost)
    assert told.delta(EPSILON) == pytest.approx(renyi_delta_upper(inner, told.order, told.mu()) + lost, rel=1e-9)
    assert told.delta(EPSILON) >= renyi_delta_upper(inner, told.order, told.mu()) + lost
    assert told.mu() == mu_of(told.information, told.displacement)


def test_what_cannot_be_exceeded_has_no_chance_of_its_own() -> None:
    told = proof("certain")
    cells = told.sorted_cells()
    assert cells is not None
    assert told.displacement == never_exceeded(cells)
    assert told.failure() == pytest.approx(told.counts.failure())
    assert told.sorted_by().most is None


def test_a_stated_shift_moves_rows_less_and_can_fail() -> None:
    told = proof("likely")
    cells = told.sorted_cells()
    assert cells is not None
    assert told.displacement < never_exceeded(cells) / 10
    assert told.sorted_by().most == told.displacement
    assert told.failure() == pytest.approx(
        told.counts.failure() + failure_of(cells, told.displacement, told.theta, told.shift or 0.0), rel=1e-3
    )
    assert told.failure() <= 1e-9


def test_whole_numbers_are_further_from_even() -> None:
    types = {"sex": "text", "income": "integer", "x": "float"}
    whole = evidence(plan_view_of(problem({"information": {"iota": 1e-7}, "shift": 0.02}, types=types)))
    assert whole.shift == 1.0


@cache
def largest() -> float:
    """The information up to which the promise holds, as a refusal names it."""
    with pytest.raises(RefusedError, match="must be at most") as caught:
        plan_view_of(problem({"information": {"iota": 1.0}}))
    return float(str(caught.value).split("must be at most ")[1].split(" ")[0])


def test_the_promise_holds_up_to_the_information_that_is_named() -> None:
    most = largest()
    assert plan_view_of(problem({"information": {"iota": most * 0.99}})).rows == plan_view_of(problem(CERTAIN)).rows
    with refuses(RefusedError, Cause.BUDGET, "more intervals"):
        plan_view_of(problem({"information": {"iota": most * 1.01}}))


def test_how_many_intervals_would_do() -> None:
    with pytest.raises(RefusedError) as caught:
        plan_view_of(problem({"information": {"iota": 1.5 * largest()}}))
    assert "intervals would do, and show about" in str(caught.value)
    assert "or state shift" in str(caught.value)
    with pytest.raises(RefusedError, match="16 times as many intervals would not do"):
        plan_view_of(problem({"information": {"iota": 1e3}}))


@pytest.mark.parametrize(
    ("asked", "cause", "needs"),
    [
        (problem(theta=()), Cause.ASSUMPTION, "channel"),
        (problem(theta=(Channel(**LIKELY), Channel(**CERTAIN))), Cause.ASSUMPTION, "channel"),
        (problem(cells=RECORDS.model_copy(update={"intervals": None})), Cause.PUBLIC_FACT, "reference"),
        (problem(types={"income": "text"}), Cause.PUBLIC_FACT, "a number"),
        (problem(delta=1e-6), Cause.BUDGET, "a larger delta"),
        (problem(epsilon=1e-6), Cause.BUDGET, "a larger epsilon"),
        (problem(n=40), Cause.PRECISION, "wider intervals"),
        (problem(cells=said(variance=0.0)), Cause.PUBLIC_FACT, "public records in which income varies"),
        (problem(cells=said(repeated=0.6)), Cause.PUBLIC_FACT, "exact cells of income"),
        (problem(cells=said(functions=("tax",))), Cause.PUBLIC_FACT, "tax hidden or left out"),
        (
            problem(cells=said(rough=(RoughPlace(place=18.0, separation=1.2, allowed=0.1),))),
            Cause.PUBLIC_FACT,
            "more information",
        ),
        (problem(cells=said(uneven=Uneven(place=3.0, shift=0.021))), Cause.PUBLIC_FACT, "a larger shift"),
        (problem(known_rows=0.1), Cause.PERSONS, "known_rows 0"),
    ],
)
def test_what_cannot_be_promised_is_refused(asked: Problem, cause: Cause, needs: str) -> None:
    with refuses((RefusedError, UsageError), cause, needs):
        plan_view_of(asked)


def test_uneven_records_do_not_matter_where_no_shift_is_stated() -> None:
    assert plan_view_of(problem(CERTAIN, said(uneven=Uneven(place=3.0, shift=0.5)))).rows


# The proof.


def changed(told: SortedEvidence, **update: Any) -> SortedEvidence:
    return told.model_copy(update=update)


def recounted(told: SortedEvidence, k: int = 1, **update: Any) -> SortedEvidence:
    """The same with one cell changed."""
    cells = tuple(cell.model_copy(update=update) if j == k else cell for j, cell in enumerate(told.counts.cells))
    return changed(told, counts=told.counts.model_copy(update={"cells": cells}))


def kept(told: SortedEvidence, k: int, more: int) -> SortedEvidence:
    """One cell keeps more rows, and every other number of the counts follows."""
    keeps = [cell.keep + more * (j == k) for j, cell in enumerate(told.counts.cells)]
    cells = tuple(
        cell.model_copy(update={"keep": keep, "low": keep, "high": told.counts.n - sum(keeps) + keep})
        for cell, keep in zip(told.counts.cells, keeps, strict=True)
    )
    return changed(told, counts=told.counts.model_copy(update={"cells": cells}))


@pytest.mark.parametrize("name", FORMS)
def test_each_charge_raises_delta_by_itself(name: str) -> None:
    told, reached = proof(name), proof(name).delta(EPSILON)
    raised = {
        "information": changed(told, information=told.information * 1.5),
        "displacement": changed(told, displacement=told.displacement * 1.5),
        "rarest_event": changed(told, counts=told.counts.model_copy(update={"rarest_event": 5e-4})),
        "level": changed(told, counts=told.counts.model_copy(update={"level": told.counts.level * 2})),
    }
    for what, more in raised.items():
        assert more.delta(EPSILON) > reached, what


@pytest.mark.parametrize("name", FORMS)
def test_delta_falls_with_epsilon(name: str) -> None:
    deltas = [proof(name).delta(epsilon) for epsilon in (0.0, 0.5, 1.0, 2.0)]
    assert deltas == sorted(deltas, reverse=True)
    assert proof(name).delta(0.0) > DELTA


FORGED: dict[str, Any] = {
    "rows that move less": lambda e: changed(e, displacement=e.displacement * 0.9),
    "rows that surely move less": lambda e: changed(e, displacement=e.displacement * 0.9, theta=0.0),
    "no proof of how far they move": lambda e: changed(e, theta=0.0, displacement=e.displacement * 0.5),
    "a proof without a shift": lambda e: changed(e, shift=None, theta=1.0),
    "another number": lambda e: changed(e, column="age"),
    "ends that do not increase": lambda e: changed(e, edges=(*e.edges[:2], *e.edges[1:])),
    "intervals that end elsewhere": lambda e: changed(e, edges=tuple(2 * edge for edge in e.edges)),
    "wider intervals": lambda e: changed(e, edges=(*e.edges[:-3], *(edge + 50 for edge in e.edges[-3:]))),
    "an interval that is none": lambda e: recounted(e, values=("F", 0.5)),
    "a text for an interval": lambda e: recounted(e, values=("F", "0")),
    "no values": lambda e: recounted(e, values=None),
    "a cell twice": lambda e: recounted(e, values=("F", 1.0)),
    "a count that is lower": lambda e: recounted(e, count=20),
    "fewer records than counted": lambda e: changed(e, counts=e.counts.model_copy(update={"records": 100})),
    "more rows alike": lambda e: changed(e, counts=e.counts.model_copy(update={"alike": 3990})),
    "a smaller table": lambda e: changed(e, counts=e.counts.model_copy(update={"n": 2000})),
}


@pytest.mark.parametrize("form", ["likely", "certain"])
@pytest.mark.parametrize("name", FORGED)
def test_forged_numbers_are_refused(name: str, form: str) -> None:
    assert not accepted(FORGED[name](proof(form)), EPSILON, DELTA)


@pytest.mark.parametrize("form", FORMS)
def test_many_more_rows_of_an_interval_are_not_proved(form: str) -> None:
    told = proof(form)
    assert accepted(kept(told, 1, -1), EPSILON, DELTA)
    assert refused(kept(told, 1, 40))


def test_a_larger_shift_is_not_proved_by_the_same_number() -> None:
    told = proof("likely")
    assert not accepted(changed(told, shift=0.2), EPSILON, DELTA)
    assert accepted(changed(told, shift=0.0), EPSILON, DELTA)


def test_a_steeper_slope_costs_more() -> None:
    told = proof("score")
    assert not accepted(changed(told, slope=0.5), EPSILON, DELTA)


@pytest.mark.parametrize("order", [1.0, 0.5, math.inf, math.nan])
def test_an_order_that_is_none(order: float) -> None:
    assert not accepted(changed(proof("likely"), order=order), EPSILON, DELTA)


def test_a_failure_that_was_not_paid_for_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that forgets how often rows move too far would accept what is refused here."""
    forged = changed(proof("likely"), displacement=proof("likely").displacement * 0.9)
    assert not accepted(forged, EPSILON, DELTA)
    monkeypatch.setattr(module, "_too_far", lambda told: 0.0)
    assert accepted(forged, EPSILON, DELTA)


def test_widths_are_rounded_up() -> None:
    for width in (1.0, 1 / 3, 2000.0000001, 7e-9):
        assert width <= module.even_cell(width, 2).width <= width * (1 + 2**-39)
