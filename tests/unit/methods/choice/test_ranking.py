"""What `auto` may choose, and what is said about it: no view by accident, the right reason first, and the order explained."""

from __future__ import annotations

import pytest

from attrpriv.assumptions.groups import Groups
from attrpriv.errors import RefusedError
from attrpriv.methods.choice import choose as registry
from attrpriv.methods.choice.accuracy_first import plan_for_error
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.choice.ranking import Ranking, advice
from attrpriv.queries.query import Query
from tests.unit.methods.counts import problem as counts_problem
from tests.unit.methods.groups.test_plan import groups, problem

HOURS, AGE = Query("avg", "hours"), Query("avg", "age")


# ------------------------------------------------------------------------------------------------- no view by accident


def unrelated() -> Groups:
    """Averages that are covered one at a time."""
    return groups(correlation=None)


@pytest.mark.parametrize("name", ["a share", "beside another", "beside one that nothing covers"])
def test_a_view_is_not_taken_where_noise_would_do_alone(name: str) -> None:
    ways = {
        "a share": problem(spend=0.5),
        "beside another": problem(unrelated(), queries=(HOURS, AGE)),
        "beside one that nothing covers": problem(queries=(Query("avg", "hours", where="age > 3"), HOURS)),
    }
    found = rank(ways[name])
    assert "subsample" in [one.mechanism for one in found.plans]
    assert found.chosen is None
    assert found.by_itself is not None
    assert (found.by_itself.queries, found.by_itself.spend) == ((HOURS,), 1.0)
    told = r"covers avg\(hours\) by itself.*Ask for it alone with spend 1.*or for subsample by name \(--mechanism subsample\)"
    with pytest.raises(RefusedError, match=told):
        plan(ways[name])
    with pytest.raises(RefusedError, match=told):
        plan_for_error(ways[name], 1.0)


def test_the_ways_out_work() -> None:
    assert plan(problem()).view is None
    assert plan(problem(spend=0.5), "subsample").view is not None
    assert rank(problem(spend=0.5), mechanism="subsample").chosen is not None


def test_a_view_is_taken_where_no_noise_is_covered_even_alone() -> None:
    """Sums over a subset have no law under groups; nor has anything without an assumption."""
    filtered = problem(queries=(Query("sum", "hours", where="age > 3"),))
    for spend in (0.5, 1.0):
        found = rank(filtered.model_copy(update={"spend": spend}))
        assert found.by_itself is None
        assert found.chosen is not None
        assert found.chosen.view is not None
    assert plan(problem(theta=(), spend=0.5)).view is not None


def test_whatever_does_without_the_assumption_can_be_named() -> None:
    bounded = problem(spend=0.5, bounds={"hours": (0.0, 100.0)})
    with pytest.raises(RefusedError, match="or for subsample or group_dp by name"):
        plan(bounded)
    assert plan(bounded, "group_dp").mechanism == "group_dp"


def test_a_planner_that_forgets_it_takes_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake, so that the tests above can fail."""
    monkeypatch.setattr(registry, "_by_itself", lambda problem: None)
    assert plan(problem(spend=0.5)).view is not None


def test_an_error_that_is_not_known_yet_is_not_worse_than_the_constant() -> None:
    found = rank(problem(groups(prior={"F": 0.3, "M": 0.7}), spend=0.5), mechanism="subsample")
    assert found.chosen is not None
    assert found.chosen.error.rmse is None
    assert "constant" in [one.mechanism for one in found.plans]
    assert found.constant is None
    assert advice(found) is None


# ------------------------------------------------------------------------------------------------ the right reason first


@pytest.mark.parametrize("spend", [0.5, 1.0])
def test_a_mechanism_for_another_assumption_is_refused_for_that(spend: float) -> None:
    under_groups, under_counts = rank(problem(spend=spend)), rank(counts_problem(spend=spend))
    expected = {"markov_quilt": "parameter_network", "laplace": "counts", "wasserstein": "counts", "optimal": "counts"}
    for name, kind in {**expected, "calibrated_weights": "gaussian", "chain_quilt": "chain"}.items():
        assert under_groups.refused[name].reason == f"needs a {kind} assumption (assume: kind: {kind})."
    for name, kind in {"markov_quilt": "parameter_network", "chain_quilt": "chain"}.items():
        assert under_counts.refused[name].reason == f"needs a {kind} assumption (assume: kind: {kind})."
    told = under_counts.refused.get("optimal")
    assert told is None if spend == 1 else told is not None and told.reason.startswith("cannot share a budget")


def test_after_other_releases_too() -> None:
    first = plan(counts_problem(spend=0.5), "laplace")
    found = rank(counts_problem(queries=(Query("count", where="not stay > 7"),), earlier=first.certificate.evidence))
    assert found.refused["chain_quilt"].reason == "needs a chain assumption (assume: kind: chain)."
    assert found.refused["optimal"].reason.startswith("no rule covers it after")


# ------------------------------------------------------------------------------------------- what is said about the choice


def test_the_order_of_several_queries_is_explained() -> None:
    """All queries together decide; a line says so where that hides a better one for some query."""
    asked = problem(queries=(HOURS, AGE), bounds={"hours": (0.0, 100.0), "age": (0.0, 100.0)})
    base = plan(asked, "group_dp")
    better, worse = (
        base.model_copy(
            update={"mechanism": name, "errors": (base.error_of(HOURS).scaled(hours), base.error_of(AGE).scaled(age))}
        )
        for name, hours, age in (("first", 1.0, 1.0), ("second", 0.5, 4.0))
    )
    found = Ranking(asked, (better, worse), {})
    assert found.score(better) < found.score(worse)
    assert found.order is not None
    assert found.order.startswith("best first by the errors of all queries together")
    assert found.order.endswith("of avg(hours) alone, second errs less than first.")
    assert Ranking(asked, (better, better), {}).order is None
    assert Ranking(problem(), (worse, better), {}).order is None
