"""chain_quilt as a mechanism: what it releases, what its certificate covers, what it refuses; and several releases."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.accounting.chain_composition import chain_composition
from attrpriv.assumptions import Chain
from attrpriv.errors import AttrprivError, CertificateError, UsageError
from attrpriv.framework import Problem, Secret
from attrpriv.guarantee import ChainEvidence
from attrpriv.mechanisms import Plan, plan, rank
from attrpriv.queries.query import Query

CHAIN: dict[str, Any] = {
    "column": "state",
    "states": [0, 1],
    "initial": [1, 0],
    "transition": [[0.9, 0.1], [0.4, 0.6]],
    "tolerance": 0,
}
COUNT = Query("count", where="state = 1")


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
        ({"queries": (COUNT, Query("sum", "state"))}, "ask for one of them"),
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
    assert plan(asked).mechanism == "group_dp"


def test_different_chains_in_a_list_are_refused() -> None:
    with pytest.raises(UsageError, match="the same column and states"):
        plan(problem(theta=(Chain(**CHAIN), Chain(**CHAIN | {"column": "other"}))), "chain_quilt")


def test_every_other_mechanism_says_that_it_is_not_for_entries() -> None:
    ranking = rank(problem())
    assert [found.mechanism for found in ranking.plans] == ["chain_quilt", "group_dp"]
    assert ranking.plans[1].noise.scale == pytest.approx(100)
    assert ranking.refused["laplace"].reason == "is not for entries(state); chain_quilt is."
    with pytest.raises(AttrprivError, match="is not for entries"):
        plan(problem(), "gaussian")


def test_group_dp_needs_no_chain() -> None:
    assert plan(problem(theta=()), "group_dp").noise.scale == pytest.approx(100)


# -------------------------------------------------------------------------------------------------------- several releases


def test_two_releases_cost_less_than_twice() -> None:
    one = plan(problem()).certificate
    single, double = chain_composition([one]), chain_composition([one, one])
    assert single.loss == pytest.approx(1.0, abs=1e-6)
    assert single.published == 1.0
    assert double.published == 2.0
    influence = evidence(plan(problem())).checks[0].influence
    assert 1.0 < double.loss <= 2.0 - influence + 1e-6


def test_releases_of_different_kinds() -> None:
    one, other = plan(problem()).certificate, plan(problem(epsilon=0.5)).certificate
    together = chain_composition([one, other])
    assert together.published is None
    assert 1.0 < together.loss < 1.5


def test_composition_refuses_what_it_does_not_cover() -> None:
    one = plan(problem()).certificate
    for others in ([], [plan(problem(), "group_dp").certificate], [one, plan(problem(n=90)).certificate]):
        with pytest.raises(UsageError, match="certificates: must be"):
            chain_composition(others)
