"""All mechanisms side by side, `auto`, and what would beat the constant answer."""

from __future__ import annotations

import re
from typing import Any

import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.base.accuracy import ExpectedError, Measure
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.choice.ranking import Ranking, advice, best_first
from attrpriv.methods.table import MECHANISMS
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query


def problem(**changes: Any) -> Problem:
    tolerance = changes.pop("tolerance", {"sd": 0.02, "slope": 0.05})
    stated: dict[str, Any] = {
        "queries": (Query("avg", "y"),),
        "secrets": (Secret("mean(x)", between=(-50.0, 50.0), within=0.5),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 10_000,
        "theta": (
            Gaussian(mean={"y": 5.0, "x": 0.0}, sd={"y": 2.0, "x": 1.0}, correlation={("y", "x"): 0.3}, tolerance=tolerance),
        ),
        "bounds": {"y": (-20.0, 30.0)},
    }
    return Problem(**(stated | changes))


def test_auto_takes_the_least_error_and_never_the_constant() -> None:
    ranking = rank(problem())
    assert [p.mechanism for p in ranking.plans if p.mechanism != "calibrated_weights"] == [
        "constant",
        "transport",
        "gaussian",
        "group_dp",
    ]
    errors = [p.error.rmse or 0.0 for p in ranking.plans]
    assert errors == sorted(errors)
    assert ranking.chosen is not None
    assert plan(problem()) == ranking.chosen
    assert ranking.chosen.mechanism == "transport"
    assert ranking.constant_wins


def test_auto_takes_group_dp_where_it_errs_less() -> None:
    ranking = rank(problem(secrets=(Secret("mean(x)", within=1e6),)))
    assert ranking.chosen is not None
    assert ranking.chosen.mechanism == "group_dp"


def test_auto_does_not_fall_back_on_the_constant() -> None:
    only_constant = problem(bounds={}, delta=0.0)
    assert [p.mechanism for p in rank(only_constant).plans] == ["constant"]
    assert rank(only_constant).chosen is None
    with pytest.raises(UsageError, match=r"no mechanism can prove the guarantee\..*group_dp: needs bounds.*gaussian.*: delta"):
        plan(only_constant)


def test_nothing_applies() -> None:
    with pytest.raises(RefusedError, match="no mechanism can prove the guarantee"):
        plan(problem(bounds={}, theta=()))


def test_an_unknown_mechanism_is_named() -> None:
    with pytest.raises(UsageError, match=r"mechanism: must be auto or one of .*gaussian.* Got 'magic'"):
        plan(problem(), "magic")


@pytest.mark.parametrize(
    ("written", "meant"), [("gausian", "gaussian"), ("Group-DP", "group_dp"), ("markov quilt", "markov_quilt"), ("aut", "auto")]
)
def test_a_misspelt_mechanism_has_a_suggestion(written: str, meant: str) -> None:
    for use in (plan, lambda asked, name: rank(asked, "rmse", name)):
        with pytest.raises(UsageError, match=rf"Got '{written}'\. Did you mean {meant}\?$"):
            use(problem(), written)
    with pytest.raises(UsageError, match=r"Got 'zzz'\.$"):
        plan(problem(), "zzz")


def test_a_named_mechanism_is_chosen_whatever_its_rank() -> None:
    ranking = rank(problem(), mechanism="group_dp")
    assert ranking.plans == rank(problem()).plans
    assert ranking.chosen is not None
    assert ranking.chosen.mechanism == "group_dp"
    assert [row["mechanism"] for row in ranking.entries() if row.get("chosen")] == ["group_dp"]
    refused = rank(problem(), mechanism="laplace")
    assert refused.chosen is None
    assert str(refused.error()).startswith("laplace: needs a counts assumption")


# ----------------------------------------------------------------------------------------------------- the order of plans


def with_error(found: Plan, rmse: float, absolute: float, alpha: float, mechanism: str) -> Plan:
    """The same plan by another name and with other errors."""
    error = ExpectedError(rmse=rmse, mean_absolute=absolute, alpha95=alpha)
    return found.model_copy(update={"mechanism": mechanism, "errors": (error,)})


def order(by: Measure, *errors: tuple[float, float, float]) -> list[str]:
    """How plans of these errors, simplest first, are ranked."""
    base = plan(problem(), "group_dp")
    names = [f"m{k}" for k in range(len(errors))]
    made = [with_error(base, *three, name) for name, three in zip(names, errors, strict=True)]
    found = Ranking(problem(), (), {}, by)
    return [one.mechanism for one in best_first(made, found)]


def test_each_measure_ranks_by_itself() -> None:
    errors = ((1.0, 3.0, 2.0), (2.0, 1.0, 3.0), (3.0, 2.0, 1.0))
    assert order("rmse", *errors) == ["m0", "m1", "m2"]
    assert order("mean_absolute", *errors) == ["m1", "m2", "m0"]
    assert order("alpha95", *errors) == ["m2", "m0", "m1"]
    with pytest.raises(UsageError, match=r"by: must be one of rmse, mean_absolute, alpha95\. Got 'median'"):
        rank(problem(), "median")  # type: ignore[arg-type]


def test_ties_go_to_the_simpler() -> None:
    def same(*errors: float) -> list[str]:
        return order("rmse", *((error, error, error) for error in errors))

    assert same(1.0, 1.0) == ["m0", "m1"]
    assert same(1.0 + 5e-10, 1.0) == ["m0", "m1"]
    assert same(1.0 + 1e-8, 1.0) == ["m1", "m0"]
    assert same(2.0, 1.0 + 5e-10, 1.0, 0.5) == ["m3", "m1", "m2", "m0"]
    assert same(0.0, 0.0, 1.0) == ["m0", "m1", "m2"]


def test_equal_reasons_are_told_once_and_other_assumptions_in_a_line() -> None:
    ranking = rank(problem(bounds={}, delta=0.0))
    told = [name for names in (*ranking.reasons.values(), *ranking.elsewhere.values()) for name in names]
    assert sorted(told) == sorted(ranking.refused)
    assert ranking.elsewhere["counts"] == ("laplace", "wasserstein", "optimal")
    assert "laplace, wasserstein, optimal (counts)" in ranking.others
    assert any("gaussian" in names for reason, names in ranking.reasons.items() if reason.startswith("delta:"))
    assert str(ranking.error()).count("needs delta above 0") == 1
    # JSON keeps a reason for each.
    rows = {row["mechanism"]: row["refused"] for row in ranking.entries() if "refused" in row}
    assert rows == {name: refusal.reason for name, refusal in ranking.refused.items()}


def test_every_mechanism_is_planned_or_refused_with_a_reason() -> None:
    ranking = rank(problem())
    assert {p.mechanism for p in ranking.plans} | set(ranking.refused) == set(MECHANISMS)
    assert all(refusal.reason for refusal in ranking.refused.values())


def test_advice_is_true() -> None:
    """What it says would beat the constant answer does, and a good deal more would not."""
    asked = problem()
    text = advice(rank(asked))
    assert text is not None
    assert text.startswith("nothing beats the constant answer")
    found = re.search(r"within <= ([0-9.e+-]*[0-9])", text)
    assert found is not None
    within = float(found.group(1))
    assert 0 < within < 0.5
    nearer = problem(secrets=(Secret("mean(x)", between=(-50.0, 50.0), within=0.99 * within),))
    assert not rank(nearer).constant_wins
    further = problem(secrets=(Secret("mean(x)", between=(-50.0, 50.0), within=1.2 * within),))
    assert rank(further).constant_wins


def test_no_advice_where_something_is_better() -> None:
    assert advice(rank(problem(secrets=(Secret("mean(x)", within=1e-4),)))) is None
    assert advice(rank(problem(bounds={}, theta=()))) is None
