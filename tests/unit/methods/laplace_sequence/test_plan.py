"""Counts released one after the other: each plan proves what all answers so far tell together."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.errors import CertificateError, RefusedError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.count_noise.proof import CountLaplaceEvidence
from attrpriv.methods.laplace_sequence.proof import MOST_DRAWS, CountHistory, CountSequenceEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

VISITS = {
    "yes": {"values": [0, 1, 3], "probabilities": [0.2, 0.3, 0.5]},
    "no": {"values": [0, 1, 3], "probabilities": [0.4, 0.3, 0.3]},
}
GIVEN: dict[str, Any] = {
    "stay > 7": {"yes": 0.5, "no": 0.5},
    "age > 50": {"yes": 0.5, "no": 0.5},
    "dose > 2": {"yes": 0.4, "no": (0.2, 0.25)},
    "visits": VISITS,
}
STAY, AGE, DOSE = (Query("count", where=text) for text in ("stay > 7", "age > 50", "dose > 2"))


def asked(query: Query, earlier: Plan | None = None, **changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "queries": (query,),
        "secrets": (Secret("count(smoker = 'yes')", between=(0, 4)),),
        "epsilon": 2.0,
        "n": 4,
        "theta": (Counts(sensitive="smoker", given=GIVEN),),
        "earlier": None if earlier is None else earlier.certificate.evidence,
        "spend": 0.5,
    }
    return Problem(**(stated | changes))


def evidence(made: Plan) -> CountSequenceEvidence:
    assert isinstance(made.certificate.evidence, CountSequenceEvidence)
    return made.certificate.evidence


def test_two_answers_that_are_harmless_alone_are_planned_together() -> None:
    """Each event has the same law in both categories, so that each alone is exact; U and U xor smoker are such a pair."""
    assert plan(asked(STAY, spend=1.0), "laplace").noise.kind == "none"
    first = plan(asked(STAY), "laplace")
    second = plan(asked(AGE, first, spend=1.0), "laplace")
    assert _xor_loss(first, second) <= 2.0
    forgetful = plan(asked(AGE), "laplace")  # a planner that forgets the past is caught by the same twin
    assert _xor_loss(first, forgetful) > 2.0


def _xor_loss(first: Plan, second: Plan) -> float:
    """The joint loss where age is stay xor smoker: four members against none, written out."""
    outputs = range(-1, 6)
    scales = [made.tally.scale for made in (first, second) if made.tally is not None]
    ratios = []
    for one, other in itertools.product(outputs, repeat=2):
        first_, second_ = ([math.exp(-abs(o - k) / s) for k in range(5)] for o, s in zip((one, other), scales, strict=True))
        sides = [math.fsum(math.comb(4, k) * first_[k] * told[k] for k in range(5)) for told in (second_, second_[::-1])]
        ratios.append(abs(math.log(sides[0] / sides[1])))
    return max(ratios)


def test_each_release_spends_its_share_of_what_is_left() -> None:
    """At most, that is: what the bound for a single statistic saves is left for the next one."""
    earlier, spent = None, 0.0
    for query, spend in ((DOSE, 0.3), (STAY, 0.5), (AGE, 0.9), (Query("sum", "visits"), 1.0)):
        earlier = plan(asked(query, earlier, spend=spend), "laplace")
        most = spent + spend * (1 - spent)
        spent = evidence(earlier).spent(2.0, 0.0)
        assert 0.8 * most < spent <= most
    assert spent > 1 - 1e-6


def test_sums_histograms_and_noise_for_the_whole_range_in_one_sequence() -> None:
    made: Plan | None = None
    for query, mechanism in (
        (Query("count", group_by="visits"), "laplace"),
        (Query("sum", "visits"), "group_dp"),
        (Query("avg", "visits"), "laplace"),
        (DOSE, "group_dp"),
        (DOSE, "laplace"),
    ):
        before = None if made is None else evidence(made)
        made = plan(asked(query, made, spend=0.3), mechanism)
        made.verify()
        assert evidence(made).follows(before)
        assert not evidence(made).follows(None if before is not None else evidence(made))
    assert made is not None
    assert 0.6 < evidence(made).spent(2.0, 0.0) <= 1 - 0.7**5
    assert [draw.statistic for draw in evidence(made).after().draws] == [
        "SELECT visits, count(*) FROM data GROUP BY visits",
        "avg(visits)",
        "count(*) filter (where dose > 2)",
    ]


def test_the_average_and_the_sum_of_a_column_are_one_statistic() -> None:
    first = plan(asked(Query("avg", "visits")), "laplace")
    second = plan(asked(Query("sum", "visits"), first, spend=1.0), "laplace")
    assert len(evidence(second).after().draws) == 1
    assert second.certificate.exact


def test_the_law_of_a_column_is_the_joint_law_of_its_statistics() -> None:
    """An event and the sum of one column: less noise than if only the law of each were known."""
    some, whole = Query("count", where="visits > 0"), Query("sum", "visits")
    first = plan(asked(some), "laplace")
    second = plan(asked(whole, first, spend=1.0), "laplace")
    (joint,) = evidence(second).checks[0].joint
    assert joint.added == ((0, 1, 1), (0, 1, 3))
    bare = evidence(second).model_copy(
        update={"checks": tuple(check.model_copy(update={"joint": ()}) for check in evidence(second).checks)}
    )
    assert bare.loss() > 1.05 * evidence(second).loss()
    third = plan(asked(AGE, plan(asked(whole, first), "laplace")), "laplace")
    (two,) = evidence(third).checks[0].joint
    assert two.places == (0, 1)
    draws = evidence(third).after().draws
    assert two.loss(draws, 0.5) == pytest.approx(two.loss(draws[:2], 0.0) + draws[2].rate + 0.5, rel=1e-9)  # others pay all
    assert Certificate.from_json(third.certificate.to_json()) == third.certificate


def test_a_joint_law_that_does_not_fit_what_was_drawn_proves_nothing() -> None:
    first = plan(asked(Query("count", where="visits > 0")), "laplace")
    found = evidence(plan(asked(Query("sum", "visits"), first, spend=1.0), "laplace"))
    (joint,) = found.checks[0].joint
    drawn = found.after()
    assert joint.model_copy(update={"places": (0, 0)}).loss(drawn.draws, 0.0) == math.inf
    for added in (((0, 1, 1),), ((0, 1, 1), (0, 1)), ((0, 1, 1), (0, 1, 9))):
        assert joint.model_copy(update={"added": added}).loss(drawn.draws, 0.0) == math.inf


def test_entries_that_are_clipped_for_one_statistic_alone_are_not_taken_together() -> None:
    changes: dict[str, Any] = {"bounds": {"visits": (0.0, 3.0)}}
    first = plan(asked(Query("count", where="visits > 0"), **changes), "laplace")
    second = plan(asked(Query("sum", "visits"), first, **changes), "laplace")
    assert evidence(second).checks[0].joint == ()
    third = plan(asked(Query("count", group_by="visits"), second, **changes), "laplace")
    assert [one.places for one in evidence(third).checks[0].joint] == [(1, 2)]


def test_averages_with_noise_for_the_whole_range_need_no_assumption() -> None:
    changes: dict[str, Any] = {"theta": (), "bounds": {"weight": (0.0, 10.0)}, "n": 50}
    first = plan(asked(Query("avg", "weight"), **changes), "group_dp")
    second = plan(asked(Query("sum", "weight"), first, **changes), "group_dp")
    second.verify()
    assert second.columns[0].noise.scale == pytest.approx(2 * first.columns[0].noise.scale, rel=1e-8)
    assert evidence(second).loss() == pytest.approx(1.5, rel=1e-8)


def test_counts_and_then_the_range_still_rest_on_the_assumption() -> None:
    first = plan(asked(DOSE), "laplace")
    second = plan(asked(STAY, first), "group_dp")
    assert any("of the counts before" in line for line in second.certificate.assumes)
    assert second.model_error[-1].epsilon is not None
    assert second.model_error[-1].epsilon > 2.0 * evidence(second).spent(2.0, 0.0)
    with pytest.raises(RefusedError):
        plan(asked(STAY, first, theta=()), "group_dp")


# ----------------------------------------------------------------------------------------------------------- tightened policies


def test_a_wider_range_of_the_secret_is_counted_for_the_past_too() -> None:
    near = (Secret("count(smoker = 'yes')", between=(0, 2)),)
    first = plan(asked(DOSE, secrets=near), "laplace")
    second = plan(asked(AGE, first, spend=1.0), "laplace")
    assert {check.apart for check in evidence(second).checks} == {4}
    assert evidence(second).spent(2.0, 0.0) <= 1.0


def test_a_past_that_is_over_the_new_budget_ends_the_sequence() -> None:
    first = plan(asked(DOSE), "laplace")
    for mechanism in ("laplace", "group_dp"):
        with pytest.raises(RefusedError, match="nothing is left of the budget"):
            plan(asked(AGE, first, epsilon=0.6), mechanism)


def test_a_law_that_is_not_stated_any_more_costs_the_whole_span() -> None:
    first = plan(asked(DOSE), "laplace")
    left = {name: law for name, law in GIVEN.items() if name != "dose > 2"}
    with pytest.raises(RefusedError, match="nothing is left"):
        plan(asked(AGE, first, theta=(Counts(sensitive="smoker", given=left),)), "laplace")


def test_a_column_that_is_counted_differently_by_now_has_no_law() -> None:
    first = plan(asked(Query("sum", "visits"), epsilon=8.0), "laplace")
    second = plan(asked(AGE, first, missing={"visits": 1.0}, epsilon=80.0), "laplace")
    assert evidence(second).checks[0].laws[0] is None
    assert evidence(second).checks[0].laws[1] is not None


def test_known_rows_leave_a_law_to_a_release_that_is_alone_only() -> None:
    alone = plan(asked(DOSE, known_rows=0.25, spend=1.0), "laplace").certificate.evidence
    assert isinstance(alone, CountLaplaceEvidence)
    first = plan(asked(DOSE, known_rows=0.25), "laplace")
    second = plan(asked(AGE, first, known_rows=0.25), "laplace")
    assert (evidence(first).checks[0].laws, evidence(second).checks[0].laws) == ((None,), (None, None))


def test_with_known_rows_what_is_left_is_there_for_another_count() -> None:
    """What the first says it leaves, the second can spend: half of all, then half of that."""
    first = plan(asked(DOSE, known_rows=0.25), "laplace")
    second = plan(asked(AGE, first, known_rows=0.25), "laplace")
    assert first.left == pytest.approx(0.5, abs=1e-6)
    assert second.left == pytest.approx(0.25, abs=1e-6)
    # Nothing but how far a row moves each count: 4 rows, each by 1.
    rates = [1 / made.tally.scale for made in (first, second) if made.tally is not None]
    assert 4 * sum(rates) == pytest.approx(0.75 * 2.0, rel=1e-6)


def test_a_count_that_was_planned_by_its_law_leaves_nothing_once_rows_are_known() -> None:
    """Earlier versions recorded such a first release; nobody knew rows, or they were forgotten."""
    first = plan(asked(DOSE), "laplace")
    assert 4 / getattr(first.tally, "scale", math.inf) > 2.0  # what a row can move, unlike what its law lets it
    with pytest.raises(RefusedError, match="nothing is left of the budget"):
        plan(asked(AGE, first, known_rows=0.25), "laplace")


# ----------------------------------------------------------------------------------------------------------- what binds a chain


def test_a_past_that_is_dropped_reordered_or_edited_is_seen() -> None:
    first = plan(asked(DOSE), "laplace")
    second = plan(asked(STAY, first), "laplace")
    third = evidence(plan(asked(AGE, second), "laplace"))
    assert third.follows(evidence(second))
    assert not third.follows(evidence(first))
    assert not third.follows(None)
    other_order = plan(asked(DOSE, plan(asked(STAY), "laplace")), "laplace")
    assert not third.follows(evidence(other_order))
    draws = third.past.draws
    less = draws[0].model_copy(update={"rate": math.nextafter(draws[0].rate, 0.0)})
    for changed in ((less, draws[1]), draws[:1], draws[::-1], ()):
        past = third.past.model_copy(update={"draws": changed})
        assert not third.model_copy(update={"past": past}).follows(evidence(second))
    assert not third.model_copy(update={"past": third.past.model_copy(update={"ranged": 0.1})}).follows(evidence(second))


def test_the_recorded_form_reads_back_and_follows() -> None:
    first = plan(asked(DOSE), "laplace")
    second = plan(asked(Query("sum", "visits"), first), "group_dp")
    again = [Certificate.from_json(made.certificate.to_json()) for made in (first, second)]
    assert again == [first.certificate, second.certificate]
    assert again[1].follows(again[0])
    assert not again[1].follows(None)


def test_a_plan_that_draws_something_else_is_not_certified() -> None:
    made = plan(asked(DOSE), "laplace")
    assert made.tally is not None
    cell = made.tally.cells[0].model_copy(update={"where": "dose > 1"})
    for changes in ({"scale": made.tally.scale * 0.99}, {"cells": (cell,)}, {"noise": "gaussian"}):
        with pytest.raises(CertificateError):
            made.model_copy(update={"tally": made.tally.model_copy(update=changes)}).verify()


def test_evidence_that_leaves_out_a_law_or_a_check_proves_nothing() -> None:
    found = evidence(plan(asked(STAY, plan(asked(DOSE), "laplace")), "laplace"))
    short = found.checks[0].model_copy(update={"laws": found.checks[0].laws[:1]})
    for checks in ((), (short,)):
        assert found.model_copy(update={"checks": checks}).loss() == math.inf


def test_a_long_history_stays_small() -> None:
    found = evidence(plan(asked(DOSE), "laplace"))
    assert found.now is not None
    drawn = CountHistory()
    for k in range(3000):
        drawn = drawn.counted(found.now.model_copy(update={"identity": str(k % 40), "rate": 1e-4}))
    assert len(drawn.draws) == MOST_DRAWS
    told = sum(draw.rate for draw in drawn.draws) + drawn.free
    assert 0.3 <= told <= 0.3 * (1 + 1e-10)


def test_single_persons_raise_the_noise_of_a_step() -> None:
    alone = plan(asked(DOSE), "laplace")
    made = plan(asked(DOSE, individuals=0.01), "laplace")
    made.verify()
    assert made.noise.scale == pytest.approx(100.0, rel=1e-6)
    assert evidence(made).spent(2.0, 0.0) < evidence(alone).spent(2.0, 0.0)


def test_a_share_of_the_population_in_a_sequence() -> None:
    share = (Secret(parameter="share(smoker = 'yes')", between=(0.2, 0.8)),)
    first = plan(asked(DOSE, secrets=share, n=6), "laplace")
    second = plan(asked(STAY, first, secrets=share, n=6, spend=1.0), "laplace")
    assert {check.apart for check in evidence(second).checks} == {6}
    law = evidence(second).checks[0].laws[0]
    assert law is not None
    assert np.allclose([float(end) for end in law.member[1]], (0.8 * 0.4 + 0.2 * 0.2, 0.8 * 0.4 + 0.2 * 0.25))
