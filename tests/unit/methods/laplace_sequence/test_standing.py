"""What earlier releases leave: shares of the budget, laws of statistics of one column, and limits of what is looked at."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from attrpriv.cases.lattice import counted
from attrpriv.methods.base.accuracy import OFF_BY
from attrpriv.methods.base.evidence import LaplaceTerm
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.laplace_sequence.joint_loss import joint_row_loss
from attrpriv.methods.laplace_sequence.loss import Asked, row_loss
from attrpriv.methods.laplace_sequence.proof import CountHistory, CountSequenceEvidence, rate_of
from attrpriv.methods.laplace_sequence.standing import Standing, joint_laws, range_budget, sequence_checks
from attrpriv.numerics.laws.records import RecordLaws, widened
from attrpriv.queries.query import Query
from tests.unit.methods.laplace_sequence.test_plan import AGE, DOSE, STAY, asked, evidence
from tests.unit.methods.laplace_sequence.test_proof import alone, check, draw
from tests.unit.methods.proofs import counted as told_of

SUM, SOME, MANY = Query("sum", "visits"), Query("count", where="visits > 0"), Query("count", where="visits > 1")


def test_what_is_left_is_shared_as_it_was_asked() -> None:
    """Of epsilon 2 a first release spends s; the next may spend its share of the rest, and leaves the others theirs."""
    fresh = Standing.of(asked(DOSE, spend=0.3))
    assert (fresh.spent, fresh.most) == (0.0, 0.3)
    assert fresh.epsilon(asked(DOSE, spend=0.3)) == pytest.approx(0.6, rel=1e-9)
    assert fresh.room(asked(DOSE, spend=0.3)) == pytest.approx(0.6, rel=1e-12)
    first = plan(asked(DOSE, spend=0.3), "laplace")
    for spend in (0.25, 0.8):
        second = asked(AGE, first, spend=spend)
        made = Standing.of(second)
        spent = evidence(first).loss() / 2.0
        assert made.spent == pytest.approx(spent, rel=1e-9)
        assert made.most == pytest.approx(spent + spend * (1 - spent), rel=1e-9)
        assert made.epsilon(second) == pytest.approx(spend * (1 - spent) * 2.0, rel=1e-9)
        assert made.epsilon(second) < spend * (1 - spent) * 2.0
        lost = made.proved.loss(going_on=True)
        assert evidence(first).loss() <= lost < 2.0
        assert made.room(second) == pytest.approx(lost + spend * (2.0 - lost), rel=1e-12)
    assert Standing.of(asked(AGE, first, spend=1.0)).room(asked(AGE, first, spend=1.0)) is None


def test_bounds_that_have_lost_all_leave_no_room() -> None:
    """A first release that was planned by its own law loses more by the bounds that others can go on from."""
    first = plan(asked(DOSE, spend=0.3), "laplace")
    small = asked(AGE, first, epsilon=evidence(first).loss(going_on=True))
    assert Standing.of(small).room(small) is None


def test_noise_for_the_whole_range_alone_has_all_of_epsilon() -> None:
    whole, proof = range_budget(asked(DOSE, spend=1.0))
    assert whole == 2.0
    term = LaplaceTerm(column="x", sensitivity=1.0, scale=2.0, granularity=0.5)
    assert proof((term,)).terms == (term,)
    part, later = range_budget(asked(DOSE, spend=0.5))
    assert part == pytest.approx(1.0, rel=1e-9)
    made = later((term,))
    assert isinstance(made, CountSequenceEvidence)
    assert made.loss() == pytest.approx(0.75, rel=1e-12)


def test_statistics_of_one_column_have_its_law_where_each_value_decides_them() -> None:
    """Places of those that read visits alone, what each value adds, and the law of the values in every case."""
    problem = asked(SUM)
    found = [counted(problem.model_copy(update={"queries": (query,)})) for query in (SOME, DOSE, SUM, MANY)]
    ((law,),) = joint_laws(problem, found)
    assert law.places == (0, 2, 3)
    assert law.added == ((0, 1, 1), (0, 1, 3), (0, 0, 1))
    records = found[2].cases[0].records
    assert (law.atoms.member, law.atoms.rest) == (records.member, records.rest)
    assert joint_laws(problem, found[:2]) == [()]
    assert joint_laws(problem, [None, found[0], None]) == [()]
    assert joint_laws(problem, [None, None]) == []
    ((beside,),) = joint_laws(problem, [None, found[0], found[2]])
    assert beside.places == (1, 2)


@pytest.mark.parametrize("place", [0, 1])
def test_a_value_that_does_not_decide_one_of_them_leaves_no_law_for_any(place: int) -> None:
    problem = asked(SUM)
    found = [counted(problem.model_copy(update={"queries": (query,)})) for query in (SUM, SUM)]
    tally = found[place].tally
    fewer = [*found]
    fewer[place] = type(found[0])(
        problem, found[0].theta, SUM, tally.model_copy(update={"cells": tally.cells[:2]}), found[0].cases
    )
    assert joint_laws(problem, fewer) == [()]
    assert len(joint_laws(problem, found)[0]) == 1


def test_known_rows_leave_no_law_and_nothing_drawn_needs_none() -> None:
    problem = asked(DOSE)
    history = CountHistory(draws=(draw("d"),))
    laws = {"d": counted(problem)}
    (one,) = sequence_checks(problem, history, laws)
    assert (one.secret, one.theta, one.apart) == ("count(smoker = 'yes')", 0, 4)
    assert one.laws == (counted(problem).cases[0].records,)
    (known,) = sequence_checks(problem.model_copy(update={"known_rows": 0.25}), history, laws)
    assert known.laws == (None,)
    assert sequence_checks(problem, CountHistory(ranged=1.0), {}) == ()
    assert len(sequence_checks(problem, CountHistory(free=1.0), {})) == 1


# ------------------------------------------------------------------------------------------------------- rows that are off


def test_laws_that_are_off_lose_what_the_wider_box_loses() -> None:
    told = CountSequenceEvidence(now=draw(), checks=(check(),), past=CountHistory(ranged=0.25))
    rows = told.model_error(1.0, 0.0)
    assert [row.off_by for row in rows] == list(OFF_BY)
    for row in rows:
        wider = widened(RecordLaws.event(0.4, 0.6), row.off_by)
        corners = [(float(p), float(q)) for p in wider.member[1] for q in wider.rest[1]]
        exact = 3 * max(alone(0.5, p, q) for p, q in corners) + 0.25
        assert row.epsilon == pytest.approx(exact, rel=1e-9)


def test_noise_for_the_whole_range_rests_on_no_law() -> None:
    term = LaplaceTerm(column="x", sensitivity=1.0, scale=2.0, granularity=0.5)
    assert [row.epsilon for row in CountSequenceEvidence(terms=(term,)).model_error(1.5, 0.0)] == [1.5] * len(OFF_BY)


def test_what_is_covered_in_a_sequence() -> None:
    """A scale below one too; and of several averages each by its own noise."""
    fine = CountSequenceEvidence(now=draw(rate=rate_of(0.5)), checks=(check(),))
    assert fine.covers_tally(told_of(scale=0.5))
    for changes in (
        {"scale": 0.0},
        {"scale": -0.5},
        {"noise": "gaussian"},
        {"histogram": True},
        {"width": 2},
        {"identity": "j"},
    ):
        assert not fine.covers_tally(told_of(**({"scale": 0.5} | changes))), changes
    terms = [
        LaplaceTerm(column=name, sensitivity=w, scale=s, granularity=0.5) for name, w, s in (("x", 1.0, 2.0), ("y", 3.0, 4.0))
    ]
    several = CountSequenceEvidence(terms=tuple(terms))
    for column, kind, scale, told in (
        ("x", "laplace", 2.0, True), ("y", "laplace", 4.0, True), ("x", "laplace", 4.0, False), ("x", "gaussian", 2.0, False),
        ("z", "laplace", 2.0, False),
    ):  # fmt: skip
        assert several.covers(column, kind, scale) is told
    assert not CountSequenceEvidence().covers("x", "laplace", 2.0)
    beside = CountSequenceEvidence(now=draw(rate=rate_of(2.0)), checks=(check(),), terms=tuple(terms))
    assert not beside.covers_tally(told_of(scale=2.0))


# ------------------------------------------------------------------------------------------------ what is too much to look at


def test_the_largest_of_what_is_looked_at() -> None:
    """1,024 outputs, ten cells, and weights down to e^-600; one more and nothing is known."""
    law = ((0.25, 0.25), (0.75, 0.75)), ((0.5, 0.5), (0.5, 0.5))
    two = RecordLaws((0, 1), *law)
    for events, known in ((10, True), (11, False)):
        found = joint_row_loss(two, [(0, 1)] * events, [False] * events, [0.01] * events)
        assert math.isfinite(found) is known
    for rate, known in ((600.0, True), (math.nextafter(600.0, 601.0), False)):
        found = joint_row_loss(two, [(0, 1)], [False], [rate])
        assert math.isfinite(found) is known
    for cells, known in ((10, True), (11, False)):
        flat = tuple((1 / cells, 1 / cells) for _ in range(cells))
        found = joint_row_loss(RecordLaws(tuple(range(cells)), flat, flat), [tuple(range(cells))], [True], [0.5])
        assert math.isfinite(found) is known


def test_rows_that_give_themselves_away_pay_their_span() -> None:
    """Beyond e^200 the bound that uses laws is out of reach, and each law alone or none is left."""
    law = RecordLaws.event(0.4, 0.45)
    for rate in (99.0, 101.0):
        asked_ = [Asked(law, False, 1, rate), Asked(law, False, 1, rate)]
        exact = alone(rate, 0.4, 0.45) + rate
        assert row_loss(asked_) == pytest.approx(exact, rel=1e-6)
    none: list[Any] = [Asked(None, False, 3, 2.0), Asked(None, True, 2, 0.25)]
    assert row_loss(none, 0.125) == pytest.approx(6.625, rel=1e-9)
    assert row_loss(none, 0.125) >= 6.625


def test_going_on_leaves_out_what_one_law_saves() -> None:
    """A count whose law all rows share costs nothing alone, with any noise; nothing would be left for another count."""
    same = Asked(RecordLaws.event(0.5, 0.5), False, 1, 3.0)
    assert row_loss([same]) == 0.0
    assert 0.0 < row_loss([same], going_on=True) <= 3.0 * (1 + 1e-9)
    assert np.isfinite(row_loss([same, same], going_on=True))


def test_the_second_release_of_one_kind_knows_of_the_first() -> None:
    first = plan(asked(STAY), "laplace")
    second = evidence(plan(asked(STAY, first, spend=1.0), "laplace"))
    (drawn,) = second.after().draws
    assert drawn.rate > evidence(first).after().draws[0].rate
