"""All mechanisms side by side, `auto`, and what would beat the constant answer."""

from __future__ import annotations

import re
from typing import Any

import pytest

from attrpriv.assumptions import Gaussian
from attrpriv.errors import RefusedError, UsageError
from attrpriv.framework import Problem, Secret
from attrpriv.mechanisms import MECHANISMS, plan, rank
from attrpriv.mechanisms.advice import advice
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
    assert [p.mechanism for p in ranking.plans] == ["constant", "transport", "gaussian", "group_dp"]
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
    with pytest.raises(UsageError, match=r"no mechanism can prove the guarantee\..*group_dp: needs bounds.*gaussian: delta"):
        plan(only_constant)


def test_nothing_applies() -> None:
    with pytest.raises(RefusedError, match="no mechanism can prove the guarantee"):
        plan(problem(bounds={}, theta=()))


def test_an_unknown_mechanism_is_named() -> None:
    with pytest.raises(UsageError, match=r"mechanism: must be auto or one of .*gaussian.* Got 'magic'"):
        plan(problem(), "magic")


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
