"""Views at their edges: ranges that leave nothing open, shares that a float rounds, cells of a row or two, errors by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.base.view_plan import ViewCell, ViewPlan
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.methods.view import reference as reference_module
from attrpriv.methods.view.answers import _require_shown, _sampling, standard_error
from attrpriv.methods.view.persons import _above
from attrpriv.methods.view.plan import ViewEvidence, _down, public_shares
from attrpriv.methods.view.split import _numbers, read_split
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCell, PublicCells, Reference
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from tests.refusing import refuses

SHARE = Secret("share(g = 'F')", between=(0.25, 0.4))


def problem(*secrets: Secret, n: int = 1000, **changes: Any) -> Problem:
    return Problem(**{"queries": (Query("count"),), "secrets": secrets or (SHARE,), "epsilon": 1.0, "n": n, **changes})


# ---------------------------------------------------------------------------------------------------------------- the plan


def test_a_view_that_would_be_the_whole_table_is_refused() -> None:
    """Where all but one table in a billion have no other row than F, all ten rows would be kept."""
    with refuses(UsageError, Cause.PROMISE, "a wider range"):
        plan_view_of(problem(Parameter("share(g = 'F')", between=(1 - 1e-10, 1 - 1e-11)), n=10, delta=1e-6))
    assert plan_view_of(problem(Secret("share(g = 'F')", between=(0.25, 0.4)), n=10)).rows == 9


def test_columns_stand_alone_whoever_else_is_protected() -> None:
    for secrets in ((Secret("columns(age)"), SHARE), (SHARE, Secret("columns(age)"))):
        for individuals in (None, 1.0):
            with refuses(RefusedError, Cause.SECRET, "one columns(...)"):
                plan_view_of(problem(*secrets, individuals=individuals))


def test_the_most_rows_of_a_cell_are_all_but_those_kept_of_the_others() -> None:
    between = {"F": (0.2, 0.4), "M": (0.5, 0.7), "other": (0.0, 0.2)}
    plan = plan_view_of(problem(Parameter("distribution(g)", between=between), n=500, delta=1e-4))
    keeps = [cell.keep for cell in plan.cells]
    assert len(set(keeps)) == 3
    assert [cell.high for cell in plan.cells] == [500 - sum(keeps) + keep for keep in keeps]


def test_a_share_is_rounded_down_only_where_it_must_be() -> None:
    for share in (Fraction(1, 4), Fraction(0), Fraction(1)):
        assert _down(share) == share
    for share in (Fraction(1, 10), Fraction(1, 3), Fraction(7, 10)):
        assert Fraction(_down(share)) < share < Fraction(math.nextafter(_down(share), 1))


def test_a_reach_is_rounded_up_only_where_it_must_be() -> None:
    for reach in (Fraction(1, 4), Fraction(3)):
        assert _above(reach) == reach
    for reach in (Fraction(1, 10), Fraction(1, 3), Fraction(7, 10)):
        assert Fraction(math.nextafter(_above(reach), 0)) < reach <= Fraction(_above(reach))


def evidence(*cells: tuple[int, int, int, float | None], n: int = 100, population: bool = True) -> ViewEvidence:
    made = [
        ViewCell(name=str(k), keep=keep, low=low, high=high, share=share) for k, (keep, low, high, share) in enumerate(cells)
    ]
    return ViewEvidence(n=n, cells=tuple(made), population=population)


def test_what_proves_nothing_has_delta_one() -> None:
    """A range may be a point; a share that is not known, or 0, promises no row, whatever the others do."""
    assert evidence((25, 25, 25, None), (75, 75, 75, None), population=False).delta(0.0) == 0
    assert evidence((25, 26, 25, None), (60, 60, 80, None), population=False).delta(0.0) == 1
    assert evidence((27, 26, 40, None), (60, 60, 80, None), population=False).delta(0.0) == 1
    assert evidence((25, 25, 40, None), (50, 50, 59, None), population=False).delta(0.0) == 1
    assert evidence((10, 10, 60, 0.5), (0, 0, 60, None), n=100).delta(0.0) == 1
    assert evidence((10, 10, 90, 0.5), (10, 10, 90, 0.5)).delta(0.0) < 1e-10
    assert evidence((1, 1, 90, 0.0), (10, 10, 99, 0.9)).delta(0.0) >= 1
    # P(Bin(4, 1/2) < 1) + P(Bin(4, 1/4) < 2) = 1/16 + 189/256.
    assert evidence((1, 1, 2, 0.5), (2, 2, 3, 0.25), n=4).delta(0.0) == pytest.approx(1 / 16 + 189 / 256, rel=1e-8)


def with_cells(*cells: ViewCell, n: int = 1000) -> ViewPlan:
    return plan_view_of(problem()).model_copy(update={"cells": cells, "n": n})


def test_a_cell_of_values_has_the_share_that_is_known_of_them() -> None:
    """Also where that is 0; any other cell is in the middle of its range."""

    def cell(name: str, **changes: Any) -> ViewCell:
        return ViewCell(**({"name": name, "keep": 10, "low": 10, "high": 30} | changes))

    known = with_cells(cell("a", values=(1,), share=0.3), cell("b", values=(2,), share=0.0), cell("c", values=(3,), share=0.1))
    assert public_shares(known, {}) == pytest.approx({"a": 0.75, "b": 0.0, "c": 0.25})
    # The least share of a population is not what is expected of it.
    ranged = with_cells(cell("a", share=0.001), cell("b", share=0.9, low=20, high=60), cell("c", values=(3,), low=0, high=40))
    assert public_shares(ranged, {}) == pytest.approx({"a": 0.25, "b": 0.5, "c": 0.25})
    assert public_shares(ranged, {"a": 0.4}) == pytest.approx({"a": 0.4, "b": 0.4, "c": 0.2})


# ---------------------------------------------------------------------------------------------------------- what is answered


def sampled(text: str, *cells: tuple[int, int], bounds: tuple[float, float] = (2.0, 7.0)) -> tuple[float, int] | None:
    """Of cells with so many of so many rows, of which each has the same share of the public."""
    view = with_cells(*(ViewCell(name=str(k), keep=keep, low=keep, high=high) for k, (keep, high) in enumerate(cells)))
    shares = {str(k): 1 / len(cells) for k in range(len(cells))}
    (query,) = parse_queries(text)
    return _sampling(problem(bounds={"x": bounds}, queries=(query,)), view, shares, query)


@pytest.mark.parametrize(
    ("text", "bounds", "width", "factor"),
    [
        ("avg(x)", (2.0, 7.0), 5.0, 1),
        ("sum(x)", (2.0, 7.0), 5.0, 1000),
        ("sum(x) filter (where y = 1)", (2.0, 7.0), 7.0, 1000),  # values from 0 to 7
        ("sum(x) filter (where y = 1)", (-7.0, -2.0), 7.0, 1000),
        ("sum(x) filter (where y = 1)", (-3.0, 2.0), 5.0, 1000),
        ("count(*) filter (where y = 1)", (2.0, 7.0), 1.0, 1000),
        ("count(*)", (2.0, 7.0), 0.0, 1000),
    ],
)
def test_the_error_of_the_choice_of_rows_is_that_of_values_at_both_ends(
    text: str, bounds: tuple[float, float], width: float, factor: int
) -> None:
    """(width/2)^2 N/(N - 1) is the most that N such values vary; 2 of 5 and 3 of 9 are kept."""
    found = sampled(text, (2, 5), (3, 9), bounds=bounds)
    assert found is not None
    variance = (width / 2) ** 2 * (5 / 4 * (1 / 2 - 1 / 5) + 9 / 8 * (1 / 3 - 1 / 9)) / 4
    assert found[0] == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert found[1] == factor


def test_cells_of_one_or_two_rows() -> None:
    """One of two rows is as uncertain as half of their distance; of what is kept altogether nothing is."""
    assert sampled("avg(x)", (1, 2)) == pytest.approx((2.5 * math.sqrt(2 * (1 - 1 / 2)), 1))
    assert sampled("avg(x)", (1, 1), (2, 2)) == (0.0, 1)
    cells = [ViewCell(name="a", keep=7, low=7, high=7), ViewCell(name="b", keep=2, low=2, high=8)]
    assert standard_error(cells, {"a": 0.5, "b": 0.2}, [3.0, 4.0]) == pytest.approx(0.8 * math.sqrt(1 / 2 - 1 / 8))


def planned(between: dict[str, tuple[float, float]]) -> Any:
    from attrpriv.methods.choice.choose import plan

    secret = Secret("distribution(g)", between=between)
    return plan(problem(secret, n=100, queries=parse_queries("avg(x)"), bounds={"x": (0.0, 1.0)}), "subsample")


def test_two_rows_of_each_cell_are_enough_and_one_where_there_is_no_other() -> None:
    rest = {"M": (0.4, 0.6), "other": (0.3, 0.5)}
    for low, high, enough in ((0.02, 0.1, True), (0.01, 0.1, False), (0.005, 0.014, True)):
        if enough:
            made = planned({"F": (low, high), **rest})
            assert (made.model_error[0].epsilon, made.epsilon) == (0.0, 0.0)
        else:
            with refuses(RefusedError, Cause.PRECISION, "a higher low end of the range"):
                planned({"F": (low, high), **rest})


@pytest.mark.parametrize(
    ("show", "text", "answered"),
    [
        ("values", "avg(age)", True),
        ("nothing", "avg(age)", False),
        ("nothing", "avg(x) filter (where age > 3)", False),
        ("nothing", "avg(x)", True),
        ("values", "avg(x)", True),
    ],
)
def test_hidden_columns_are_read_where_the_view_shows_the_publics(show: str, text: str, answered: bool) -> None:
    reference = Reference(file="a.csv", least_density=0.8, show=show)
    public = PublicCells(columns=("age",), records=800, cells=(PublicCell(values=(1,), count=800),))
    asked = problem(Secret("columns(age)"), delta=1e-3, queries=parse_queries(text)).model_copy(
        update={"reference": reference.model_copy(update={"rarest_event": 1.0}), "public_cells": public}
    )
    view = plan_view_of(asked)
    if answered:
        _require_shown(asked, view)
    else:
        with refuses(Refusal, Cause.MISTAKE, "reference: show: values"):
            _require_shown(asked, view)


# ------------------------------------------------------------------------------------------------------------- the parts


@pytest.mark.parametrize(
    ("split", "problem"),
    [
        ([("train", 0.5), ("test", 0.5)], "two parts"),
        ({3: 0.5, "test": 0.5}, "letters, digits"),
        ({"train": Fraction(6, 5), "test": Fraction(-1, 5)}, "above 0 and below 1. Got 6/5"),
        ({"train": Fraction(0), "test": Fraction(1)}, "above 0 and below 1. Got 0"),
        ({"train": 0.0, "test": 1.0}, "above 0 and below 1. Got 0.0"),
        ({"train": 1, "test": 0.5}, "above 0 and below 1. Got 1"),
    ],
)
def test_shares_are_fractions_or_floats_between_0_and_1(split: Any, problem: str) -> None:
    with pytest.raises(UsageError, match="split: ") as caught:
        read_split(split)
    assert problem in str(caught.value)


def test_shares_are_those_of_the_decimals_that_were_written() -> None:
    assert read_split({"a": 0.1, "b": Fraction(9, 10)}) == {"a": Fraction(1, 10), "b": Fraction(9, 10)}
    thirds = read_split({"a": 1 / 3, "b": 2 / 3})
    assert sum(thirds.values()) == 1
    assert thirds["b"] / thirds["a"] == Fraction(repr(2 / 3)) / Fraction(repr(1 / 3))


def test_a_row_that_is_left_goes_to_the_part_that_is_furthest_behind() -> None:
    """Of equal parts to the first. By hand: parts of 1/2, 1/3 and 1/6 of cells of 1, 1, 4 and 1 rows."""
    shares = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    # After the first row they are -1/2, 1/3 and 1/6 behind; after the second 0, -1/3 and 1/3; of four rows 2, 1 and 0 are
    # sure, which leaves them 0, 0 and 1: the third has it, and all are even; the last row begins again.
    assert _numbers([1, 1, 4, 1], shares) == [(1, 0, 0), (0, 1, 0), (2, 1, 1), (1, 0, 0)]
    assert _numbers([1, 1, 1], [Fraction(1, 2), Fraction(1, 2)]) == [(1, 0), (0, 1), (1, 0)]


# ----------------------------------------------------------------------------------------------------- of public records


def test_the_test_of_counts_has_half_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of epsilon and of the failure; its delta is the policy's, or 1e-9. A view stands alone."""
    seen: list[tuple[float, float, float]] = []

    def counted(epsilon: float, delta: float, failure: float) -> None:
        seen.append((epsilon, delta, failure))

    monkeypatch.setattr(reference_module, "count_test", counted)
    reference = Reference(file="census.parquet", least_density=0.8, failure=1e-6)
    for own, delta in ((None, 1e-9), (1e-7, 1e-7)):
        with refuses(Exception, Cause.BUDGET, "a larger individuals"):
            reference_module.planned_test(problem(individuals=0.6, individuals_delta=own), reference)
        assert seen.pop() == pytest.approx((0.3, delta, 5e-7), rel=1e-6)
    several: list[dict[str, Any]] = [{"spend": 0.5}, {"earlier": plan_view_of(problem()).certificate.evidence}]
    for changes in several:
        with refuses(Exception, Cause.BUDGET, "spend 1"):
            reference_module.planned_test(problem(individuals=0.6).model_copy(update=changes), reference)
    assert not seen
