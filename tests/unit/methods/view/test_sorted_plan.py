"""The numbers that a view with sorted cells is planned with: budgets, shifts, levels and rows, each worked out by itself."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from attrpriv.assumptions.channel import Channel
from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.base.view_plan import ViewCell
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.methods.view.reference import kept_rows
from attrpriv.methods.view.sorted import intervals_of
from attrpriv.methods.view.sorted_plan import Asked, _few_digits, _whole
from attrpriv.numerics.divergences.channel import most_information, most_mu
from attrpriv.numerics.laws.displacement import failure_of, never_exceeded
from attrpriv.problem.intervals import PublicIntervals, Uneven
from attrpriv.problem.reference import PublicCell
from attrpriv.problem.refusal import Cause, Refusal
from tests.refusing import refuses
from tests.unit.methods.view.test_sorted import CERTAIN, FILE, INTERVALS, LIKELY, RECORDS, SCORE, problem, proof, said

UNEVEN = PublicIntervals(column="income", edges=(0.0, 4.0, 5.0, 7.0, 20.0), variance=33.0, repeated=0.0)
"""Intervals of widths 4, 1, 2 and 13."""
WIDE = RECORDS.model_copy(
    update={
        "cells": tuple(
            PublicCell(values=(sex, low), count=60 + 10 * k)
            for k, (sex, low) in enumerate((sex, low) for sex in "FM" for low in (0.0, 4.0, 5.0, 7.0))
        ),
        "records": 800,
        "intervals": UNEVEN,
    }
)


def asked(told: dict[str, Any] = LIKELY, **changes: Any) -> Asked:
    """As the policy states it; a failure costs 1e-6 with events of one in a thousand."""
    reference = FILE.model_copy(update={"rarest_event": 1e-3})
    made = Asked(4000, 1.0, 1e-5, reference, Channel(**told), 1e-5, whole=False)
    return replace(made, **changes)


# -------------------------------------------------------------------------------------------------------------- the budget


def test_a_failure_is_paid_for_before_anything_else() -> None:
    """Of epsilon its logarithm, of delta all of it; by the rarest event that must look alike."""
    ask = asked()
    assert ask._lost() == pytest.approx(1e-6, rel=1e-9)
    inner, left = ask._left(0.2 * 1e-5)
    assert inner == pytest.approx(1.0 + math.log(1 - 2e-6), rel=1e-9)
    assert left == pytest.approx(8e-6, rel=1e-6)
    inner, left = replace(ask, delta=0.9)._left(0.5)
    assert inner == pytest.approx(1.0 - math.log(2), rel=1e-6)
    assert left == pytest.approx(0.4, rel=1e-6)
    certain = ask.reference.model_copy(update={"rarest_event": 1e-12})
    assert replace(ask, reference=certain)._lost() == 1


def test_a_failure_that_takes_all_of_a_budget_is_refused() -> None:
    for lost in (1e-5, 2e-5):
        with refuses(Refusal, Cause.BUDGET, "a larger delta"):
            asked()._left(lost)
    # log 2 of epsilon is what a failure of one half takes.
    least = replace(asked(), delta=0.9, epsilon=math.log(2) * (1 + 1e-6))
    assert 0 < least._left(0.5)[0] < 1e-5
    for epsilon in (math.log(2) * (1 - 1e-6), 0.5):
        with refuses(Refusal, Cause.BUDGET, "a larger epsilon"):
            replace(asked(), delta=0.9, epsilon=epsilon)._left(0.5)


@pytest.mark.parametrize(("told", "parts"), [(LIKELY, 2), (CERTAIN, 1)])
def test_half_of_the_failure_is_for_rows_that_move_too_far(told: dict[str, Any], parts: int) -> None:
    ask = asked(told)
    counts = ask._counts(RECORDS)
    halved = ask.reference.model_copy(update={"failure": ask.reference.level / parts})
    keeps, _, level = kept_rows(4000, halved, RECORDS)
    assert counts.level == level
    shown = [keep for keep in keeps if keep]
    assert [cell.keep for cell in counts.cells] == [_few_digits(keep) for keep in shown]
    total = sum(cell.keep for cell in counts.cells)
    assert [cell.high for cell in counts.cells] == [4000 - total + cell.keep for cell in counts.cells]
    assert [cell.low for cell in counts.cells] == [cell.keep for cell in counts.cells]


def test_numbers_of_rows_have_six_binary_digits() -> None:
    """Rounded down from 64 on."""
    assert [_few_digits(rows) for rows in (2, 63, 64, 65, 101, 128, 131, 1000, 4095)] == [
        2,
        63,
        64,
        64,
        100,
        128,
        128,
        992,
        4032,
    ]


# ------------------------------------------------------------------------------------------------------------ what may move


@pytest.mark.parametrize(("whole", "shift"), [(False, 0.02), (True, 0.27)])
def test_whole_numbers_have_steps_as_large_as_a_narrow_interval_asks(whole: bool, shift: float) -> None:
    """An interval of four whole numbers has steps of 1/4, on top of what is stated; never more than all rows."""
    ask = asked(whole=whole)
    assert ask._shift(4.0) == pytest.approx(shift, rel=1e-9)
    assert (ask._shift(4.0) or 0.0) >= shift
    assert ask._shift(0.5) == (1.0 if whole else pytest.approx(0.02, rel=1e-9))
    assert asked(CERTAIN, whole=whole)._shift(4.0) is None
    most = asked({"information": {"iota": 1e-6}, "shift": 0.9}, whole=whole)._shift(4.0)
    assert most == (1.0 if whole else pytest.approx(0.9))


def test_the_narrowest_interval_decides_on_the_shift() -> None:
    """Of widths 1 and more, of which 1/1 is all there can be; of 2 and more a half."""
    ask = asked(whole=True, iota=1e-9, n=300)
    found = ask.tried(WIDE)
    assert found
    assert found[0].evidence.shift == 1
    edges = tuple(2 * edge for edge in UNEVEN.edges)
    cells = tuple(cell.model_copy(update={"values": (cell.values[0], 2 * float(str(cell.values[1])))}) for cell in WIDE.cells)
    twice = WIDE.model_copy(update={"cells": cells, "intervals": UNEVEN.model_copy(update={"edges": edges})})
    found = ask.tried(twice)
    assert found
    assert found[0].evidence.shift == pytest.approx(0.52, rel=1e-9)


def test_how_far_rows_move_is_exceeded_with_half_of_the_failure() -> None:
    """Where a shift is stated; else it is the most there can be, with no chance."""
    cells = asked()._counts(RECORDS).cells
    intervals = intervals_of(cells, 1, INTERVALS.edges)
    assert intervals is not None
    sure = asked(CERTAIN)._moved(intervals, 4.0, None)
    assert (sure.most, sure.failure, sure.theta, sure.shift) == (never_exceeded(intervals), 0.0, 0.0, None)
    likely = asked()._moved(intervals, 4.0, 0.02)
    assert likely.theta > 0
    assert likely.shift == 0.02
    reached = failure_of(intervals, likely.most, likely.theta, 0.02, None)
    assert reached <= likely.failure <= 0.5e-9
    # And not much less: of so much less as makes it e^(1/5) times as likely, one could not say so.
    assert failure_of(intervals, likely.most - 0.2 / likely.theta, likely.theta, 0.02, None) > 0.5e-9


def test_at_every_order_the_promise_covers_what_is_left_of_the_budget() -> None:
    """The most information is that of the order's mu; the view has the order that covers most."""
    for told in (CERTAIN, LIKELY, SCORE):
        ask = asked(told)
        found = ask.tried(RECORDS)
        assert found
        inner, left = ask._left(ask._lost())
        for one in found:
            reach = most_mu(inner, left, one.evidence.order).mu
            assert one.most == most_information(one.evidence.displacement, reach)
            assert one.evidence.slope == told["information"].get("slope")
            assert one.evidence.delta(1.0) <= 1e-5 or one.most < ask.iota
        assert ask.evidence(RECORDS).most == max(one.most for one in found)
    steep = asked({"information": {"iota": 1e-6, "slope": 4.0}}).tried(RECORDS)
    assert steep is None or len({one.evidence.order for one in steep}) == len(steep)


def test_where_no_row_of_an_interval_is_shown_there_is_nothing_to_plan() -> None:
    """Missing numbers alone are cells in which nothing moves."""
    missing = RECORDS.model_copy(update={"cells": (PublicCell(values=("F", None), count=2000),), "records": 4000})
    assert asked().tried(missing) is None
    rare = RECORDS.model_copy(update={"cells": (PublicCell(values=("F", 1.0), count=1),)})
    assert asked().tried(rare) is None
    with refuses(Refusal, Cause.PRECISION, "wider intervals"):
        asked().evidence(missing)
    assert asked().shown_of(RECORDS) == {None, *(float(k) for k in range(18))}
    assert len(asked().cells_of(RECORDS)) == 36


# ----------------------------------------------------------------------------------------------------------- what is stated


def test_what_public_records_may_say_at_most() -> None:
    """Half of the values more than once, and as uneven as is stated, are still covered."""
    for cells in (said(repeated=0.5), said(uneven=Uneven(place=3.0, shift=0.02))):
        assert plan_view_of(problem(cells=cells)).rows
    for cells in (said(repeated=0.51), said(uneven=Uneven(place=3.0, shift=0.0201))):
        with pytest.raises((RefusedError, UsageError)):
            plan_view_of(problem(cells=cells))


def test_information_by_itself_needs_no_variance() -> None:
    """A share of the variance does."""
    assert plan_view_of(problem(CERTAIN, said(variance=0.0))).rows
    with refuses((RefusedError, UsageError), Cause.PUBLIC_FACT, "public records in which income varies"):
        plan_view_of(problem(LIKELY, said(variance=0.0)))


def test_whole_numbers_are_told_by_the_tables_type() -> None:
    for kind, whole in (("integer", True), ("float", False), ("decimal", False)):
        assert _whole(problem(types={"income": kind}), UNEVEN) is whole
        # All three are numbers.
        given = {"sex": "text", "income": kind, "x": "float"}
        assert plan_view_of(problem({"information": {"iota": 1e-9}}, types=given)).rows


# ---------------------------------------------------------------------------------------------------------------- the proof


def test_a_cell_is_an_interval_from_its_own_low_end_on() -> None:
    def cell(*values: Any) -> ViewCell:
        return ViewCell(name="", keep=3, low=3, high=9, values=values)

    edges = (2.0, 3.0, 7.0)
    found = intervals_of([cell("a", 3.0), cell("b", 2.0), cell("a", None)], 1, edges)
    assert found is not None
    assert [one.width for one in found] == pytest.approx([4.0, 1.0])
    assert [one.rows for one in found] == [3, 3]
    for wrong in (
        cell("a", 2.5),
        cell("a", 7.0),
        cell("a"),
        cell("a", "2.0"),
        cell("a", 3),
        ViewCell(name="", keep=3, low=3, high=9),
    ):
        assert intervals_of([cell("a", 3.0), wrong], 1, edges) is None


@pytest.mark.parametrize("name", ["likely", "certain"])
def test_what_cannot_be_told_fails_surely_and_no_more(name: str) -> None:
    told = proof(name)
    for wrong in (
        told.model_copy(update={"column": "age"}),
        told.model_copy(update={"edges": (*told.edges[:2], *told.edges[1:])}),
        told.model_copy(update={"edges": tuple(2 * edge for edge in told.edges)}),
        told.model_copy(update={"shift": None, "theta": 1.0}),
        told.model_copy(update={"displacement": 1e-9, "theta": 0.0}),
    ):
        assert (wrong.failure(), wrong.lost(), wrong.delta(1.0)) == (1.0, 1.0, 1.0)
    assert told.model_copy(update={"information": 1e9}).delta(1.0) == 1


def test_a_rarer_event_makes_a_failure_weigh_more() -> None:
    told = proof("certain")
    rare = told.model_copy(update={"counts": told.counts.model_copy(update={"rarest_event": 1e-4})})
    assert rare.lost() == pytest.approx(told.failure() * 1e4, rel=1e-9)
    assert told.sorted_by().most is None
    assert proof("likely").sorted_by().most == proof("likely").displacement
