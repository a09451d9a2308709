"""chain_quilt as a mechanism: what it releases, what its certificate covers, what it refuses; and several releases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from attrpriv.assumptions.chain import Chain
from attrpriv.errors import AttrprivError, Cause, CertificateError, RefusedError, UsageError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.chain_quilt.plan import ChainEvidence
from attrpriv.methods.choice.choose import plan as planned_by
from attrpriv.methods.choice.choose import rank
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses

CHAIN: dict[str, Any] = {
    "column": "state",
    "states": [0, 1],
    "initial": [1, 0],
    "transition": [[0.9, 0.1], [0.4, 0.6]],
    "tolerance": 0,
}
COUNT = Query("count", where="state = 1")


def plan(asked: Problem, mechanism: str = "chain_quilt") -> Plan:
    """By its name: `auto` takes less noise."""
    return planned_by(asked, mechanism)


def problem(**changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "queries": (COUNT,),
        "secrets": (Secret("entries(state)"),),
        "epsilon": 1.0,
        "n": 100,
        "theta": (Chain(**CHAIN | changes.pop("chain", {})),),
    }
    return Problem(**(stated | changes))


def evidence(found: Plan) -> ChainEvidence:
    assert isinstance(found.certificate.evidence, ChainEvidence)
    return found.certificate.evidence


@pytest.mark.parametrize(
    ("query", "changes", "scale"),
    [
        (COUNT, {}, 12.934051),
        (Query("sum", "state"), {}, 12.934051),
        (Query("avg", "state"), {}, 0.12934051),
        (Query("sum", "state"), {"states": [0, 2.5]}, 2.5 * 12.934051),
        (Query("count", group_by="state"), {}, 2 * 12.934051),
        (Query("count", where="state = 'up'"), {"states": ["down", "up"]}, 12.934051),
    ],
)
def test_the_noise_of_each_kind_of_query(query: Query, changes: dict[str, Any], scale: float) -> None:
    found = plan(problem(queries=(query,), chain=changes))
    assert found.mechanism == "chain_quilt"
    assert found.noise.scale == pytest.approx(scale, rel=1e-6)


def test_what_the_plan_says() -> None:
    found = plan(problem())
    assert found.tally is not None
    shown = dict(found.tally.parameters)
    assert (shown["node"], shown["quilt"], shown["near"]) == (8, [1, 13], 11)
    assert found.notes[0].startswith("row 8 needs the most noise; what separates it from the rest is row 1 and row 13")
    assert found.notes[1] == "1 of 100 entries of state have a single possible state, and are skipped."
    assert any("the order of the table's rows is the order of the chain" in line for line in found.certificate.assumes)
    assert "worst entry, chain 1: row 8; 11 near" in str(found.certificate)


def test_theta_is_covered_by_the_worst_member() -> None:
    second = {"initial": [0.9, 0.1], "transition": [[0.8, 0.2], [0.3, 0.7]]}
    both = plan(problem(theta=(Chain(**CHAIN), Chain(**CHAIN | second))))
    assert both.noise.scale == pytest.approx(12.934051, rel=1e-6)
    assert [check.score for check in evidence(both).checks] == [pytest.approx(12.934051), pytest.approx(10.640193)]
    listed = plan(problem(chain={"transition": [CHAIN["transition"], second["transition"]]}))
    assert len(evidence(listed).checks) == 2


def test_single_rows_on_top() -> None:
    found = plan(problem(individuals=0.01))
    assert found.noise.scale == pytest.approx(100)
    assert found.certificate.individuals is not None
    found.randomise(50)


def test_a_changed_certificate_fails() -> None:
    """Less noise, other quilts, a longer or another chain: the loss is recomputed from what is stored."""
    found = plan(problem())
    good = evidence(found)
    check = good.checks[0]
    slow = check.model_copy(update={"chain": Chain(**CHAIN | {"transition": [[0.99, 0.01], [0.04, 0.96]]}).members[0]})
    for changed in (
        {"scale": good.scale * (1 - 1e-6)},
        {"width": 1.001},
        {"checks": (check.model_copy(update={"shapes": ((0, 0),)}),)},
        {"checks": (slow,)},
        {"scale": float("nan")},
    ):
        bad = found.certificate.model_copy(update={"evidence": good.model_copy(update=changed)})
        with pytest.raises(CertificateError):
            bad.verify()


def test_the_noise_drawn_must_be_the_noise_proved() -> None:
    found = plan(problem())
    assert found.tally is not None
    other = Query("count", where="mood = 1")
    reads = found.tally.cells[0].model_copy(update={"where": other.where})
    for changed in ({"scale": 1.0}, {"noise": "gaussian"}, {"noise": "none"}, {"histogram": True}, {"cells": (reads,)}):
        forged = found.model_copy(update={"tally": found.tally.model_copy(update=changed)})
        with pytest.raises(CertificateError):
            forged.tallied([3], [97, 3])
    with pytest.raises(CertificateError):
        found.model_copy(update={"n": 50}).tallied([3], [97, 3])
    assert isinstance(found.tallied([3], [97, 3])[0][0], int)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"secrets": (Secret("mean(state)", within=1.0),)}, "chain_quilt: hides the entries of a column, as in entries"),
        ({"secrets": (Secret("entries(mood)"),)}, "entries(mood): must be about state"),
        ({"known_rows": 0.1}, "known_rows: must be 0"),
        ({"queries": (Query("count", where="mood = 1"),)}, "reads mood, of which the chain of state says nothing"),
        ({"queries": (Query("sum", "mood"),)}, "reads mood"),
        ({"queries": (Query("count", group_by="mood"),)}, "reads mood"),
        ({"queries": (Query("sum", "state", where="state = 1"),)}, "is not covered"),
        ({"queries": (COUNT, Query("sum", "state"))}, "ask for one after the other"),
        ({"chain": {"states": ["a", "b"]}, "queries": (Query("sum", "state"),)}, "needs a number for each"),
        ({"bins": {"state": (0.0, 1.0)}}, "bins: state is a chain of its own values"),
        ({"theta": ()}, "needs a chain assumption"),
        ({"chain": {"transition": [[0, 1], [1, 0]]}}, "every entry has a single possible state"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(AttrprivError) as caught:
        plan(problem(**changes), "chain_quilt")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_chain_too_long_to_be_searched_is_left_to_group_dp() -> None:
    circle = [[0.0] * 64 for _ in range(64)]
    for k in range(64):
        circle[k][(k + 1) % 64] = circle[k][(k + 3) % 64] = 0.5
    states = {"states": list(range(64)), "initial": [1] + [0] * 63, "transition": circle}
    asked = problem(n=20_000, chain=states)
    with pytest.raises(AttrprivError, match="does not settle is too long"):
        plan(asked, "chain_quilt")
    assert plan(asked, "group_dp").noise.scale == pytest.approx(20_000)


def test_different_chains_in_a_list_are_refused() -> None:
    with refuses(UsageError, Cause.MISTAKE, "assume"):
        plan(problem(theta=(Chain(**CHAIN), Chain(**CHAIN | {"column": "other"}))), "chain_quilt")


def test_every_other_mechanism_says_that_it_is_not_for_entries() -> None:
    ranking = rank(problem())
    assert [found.mechanism for found in ranking.plans] == ["laplace", "chain_quilt", "group_dp"]
    assert ranking.plans[2].noise.scale == pytest.approx(100)
    assert ranking.refused["gaussian"].reason == "is not for entries(state); laplace is."
    with refuses(AttrprivError, Cause.SECRET, "mechanism laplace"):
        plan(problem(), "gaussian")


def test_group_dp_needs_no_chain() -> None:
    assert plan(problem(theta=()), "group_dp").noise.scale == pytest.approx(100)


# -------------------------------------------------------------------------------------------------------- several releases


def after(earlier: ChainEvidence | None, **changes: Any) -> ChainEvidence:
    return evidence(plan(problem(**{"earlier": earlier} | changes), "chain_quilt"))


def test_each_release_takes_its_share_of_what_is_left() -> None:
    first = after(None, spend=0.3)
    assert first.loss() == pytest.approx(0.3)
    second = after(first, spend=0.5)
    assert second.loss() == pytest.approx(0.65)
    third = after(second)
    assert third.loss() == pytest.approx(1.0)
    assert third.spent(1.0, 0.0) <= 1.0
    assert third.rate() == pytest.approx(1 / 12.934051, rel=1e-6)  # together the noise of one release


def test_the_influence_counts_once() -> None:
    """Two releases at half of epsilon each, planned alone, lose less than epsilon together."""
    half = plan(problem(epsilon=0.5)).noise.scale
    second = after(after(None, spend=0.5))
    assert second.scale < half
    assert second.loss() <= 1.0


def test_releases_of_different_widths() -> None:
    first = after(None, spend=0.5)
    second = after(first, queries=(Query("count", group_by="state"),))
    assert second.scale / 2 == pytest.approx(after(first).scale)
    assert second.rate() == pytest.approx(after(first).rate())


def test_when_all_is_spent_nothing_more_is_answered() -> None:
    with pytest.raises(RefusedError, match="leave nothing of the budget"):
        after(after(None))


def test_a_tighter_policy_counts_what_was_drawn_and_nothing_else() -> None:
    first = after(None, spend=0.5)
    with refuses(RefusedError, Cause.EARLIER, "a larger epsilon"):
        after(first, epsilon=0.4)
    assert after(first, epsilon=0.6).loss() <= 0.6
    slower = Chain(**CHAIN | {"transition": [[0.97, 0.03], [0.05, 0.95]]})
    both = after(first, theta=(*problem().theta, slower), epsilon=3.0)
    assert len(both.checks) == 2
    assert both.loss() == pytest.approx(3.0)
    with refuses(RefusedError, Cause.EARLIER, "a larger epsilon"):
        after(first, theta=(*problem().theta, slower))


def test_another_table_or_kind_is_not_continued() -> None:
    first = after(None, spend=0.5)
    with pytest.raises(RefusedError, match="the number of rows, was another one before"):
        after(first, n=90)
    with pytest.raises(RefusedError, match="no rule covers it"):
        after(plan(problem(), "group_dp").certificate.evidence)  # type: ignore[arg-type]


def test_follows_is_exact() -> None:
    one = after(None, spend=0.4)
    two = after(one, spend=0.4)
    three = after(two, spend=0.4)
    assert one.follows(None)
    assert two.follows(one)
    assert three.follows(two)
    assert not any(later.follows(earlier) for later, earlier in ((two, None), (three, one), (one, two), (three, three)))
    for change in ({"scale": two.scale * 1.0000001}, {"width": 2.0}, {"column": "other"}, {"length": 99}, {"earlier": 0.0}):
        assert not three.follows(two.model_copy(update=change))
    assert not three.follows(plan(problem(), "group_dp").certificate.evidence)


def test_a_past_that_is_left_out_or_too_much_is_seen() -> None:
    second = plan(problem(earlier=after(None, spend=0.5)), "chain_quilt").certificate
    more = evidence_with(second, earlier=2 * evidence_of(second).earlier)
    with pytest.raises(CertificateError):
        more.verify()
    assert not evidence_of(evidence_with(second, earlier=0.0)).follows(after(None, spend=0.5))


def evidence_of(certificate: Certificate) -> ChainEvidence:
    assert isinstance(certificate.evidence, ChainEvidence)
    return certificate.evidence


def evidence_with(certificate: Certificate, **changes: Any) -> Certificate:
    return certificate.model_copy(update={"evidence": evidence_of(certificate).model_copy(update=changes)})


def test_the_past_survives_json_and_stays_small() -> None:
    found = None
    for _ in range(8):
        found = after(found, spend=0.02)
    assert found is not None
    assert ChainEvidence.from_json(json.dumps(found.to_json())) == found
    assert len(found.checks[0].shapes) < 20
    older = {key: value for key, value in after(None).to_json().items() if key != "earlier"}
    assert ChainEvidence.from_json(older) == after(None)
