"""The least epsilon that reaches a wanted error."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

import attrpriv as ap
from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.base.accuracy import Measure
from attrpriv.methods.choice.accuracy_first import CLOSE, plan_for_error
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.unit.methods.base.test_model_error import counts_problem

SHARE = (Secret("share(gender = 'F')", between=(0.25, 0.4)),)


def problem(**changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "queries": (Query("avg", "y"),),
        "secrets": (Secret("mean(x)", between=(-50.0, 50.0), within=0.5),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 10_000,
        "theta": (
            ap.Gaussian(
                mean={"y": 5.0, "x": 0.0},
                sd={"y": 2.0, "x": 1.0},
                correlation={("y", "x"): 0.3},
                tolerance={"mean": 0.0, "sd": 0.02, "slope": 0.05},
            ),
        ),
        "bounds": {"y": (-20.0, 30.0)},
    }
    return Problem(**(stated | changes))


def at(asked: Problem, epsilon: float) -> Problem:
    return asked.model_copy(update={"epsilon": epsilon})


@pytest.mark.parametrize("by", ["rmse", "mean_absolute", "alpha95"])
@pytest.mark.parametrize("mechanism", ["gaussian", "group_dp", "transport"])
def test_it_reaches_the_error_and_less_epsilon_does_not(mechanism: str, by: Measure) -> None:
    asked = problem()
    wanted = 1.7 * (plan(asked, mechanism).error.by(by) or math.nan)
    found = plan_for_error(asked, wanted, mechanism, by)
    assert found.mechanism == mechanism
    assert found.epsilon < asked.epsilon
    assert (found.error.by(by) or math.nan) <= wanted
    assert found == plan(at(asked, found.epsilon), mechanism)
    found.certificate.verify()
    less = plan(at(asked, found.epsilon * (1 - 2 * CLOSE)), mechanism)
    assert (less.error.by(by) or 0.0) > wanted


def test_laplace_noise_in_closed_form() -> None:
    """Laplace noise of scale width/epsilon has root mean square sqrt(2) width/epsilon."""
    found = plan_for_error(problem(), 100.0, "group_dp")
    assert found.epsilon == pytest.approx(math.sqrt(2) * 50 / 100, rel=1.1 * CLOSE)


def test_auto_needs_no_more_epsilon_than_any_mechanism() -> None:
    asked = problem()
    wanted = 1.2 * (plan(asked, "gaussian").error.rmse or math.nan)
    best = plan_for_error(asked, wanted)
    for name in ("gaussian", "transport", "calibrated_weights"):
        try:
            alone = plan_for_error(asked, wanted, name)
        except RefusedError:
            continue
        assert best.epsilon <= alone.epsilon * (1 + CLOSE)
    assert best.mechanism != "constant"


def test_the_policy_is_the_budget() -> None:
    """A refusal tells the epsilon that would be needed, and by which mechanism; it would be enough."""
    asked = problem()
    wanted = 0.5 * (plan(asked, "gaussian").error.rmse or math.nan)
    with pytest.raises(RefusedError) as caught:
        plan_for_error(asked, wanted, "gaussian")
    told = re.search(r"needs epsilon ([0-9.]+) \(gaussian\), ([0-9.]+) more than the policy allows", str(caught.value))
    assert told is not None
    needed, more = map(float, told.groups())
    assert needed == pytest.approx(1 + more, rel=1e-3)
    assert (plan(at(asked, needed * 1.001), "gaussian").error.rmse or math.nan) <= wanted
    assert (plan(at(asked, needed * 0.995), "gaussian").error.rmse or 0.0) > wanted


def test_out_of_reach_at_any_epsilon() -> None:
    asked = problem(secrets=SHARE, theta=(), bounds={"y": (0.0, 1.0)})
    least = rank(asked).able[0].error.rmse or math.nan
    with pytest.raises(RefusedError, match=r"is out of reach; .* no epsilon up to 100 gives it"):
        plan_for_error(asked, least / 1000, "subsample")


def test_a_view_needs_no_epsilon() -> None:
    asked = problem(secrets=SHARE, theta=(), bounds={"y": (0.0, 1.0)})
    found = plan_for_error(asked, 1.0)
    assert (found.mechanism, found.epsilon) == ("subsample", 0.0)


def test_counts() -> None:
    asked = counts_problem(epsilon=2.0)
    found = plan_for_error(asked, 2.0, "laplace")
    assert (found.error.rmse or math.nan) <= 2.0
    assert (plan(at(asked, found.epsilon * (1 - 2 * CLOSE)), "laplace").error.rmse or 0.0) > 2.0


def test_every_query_reaches_it() -> None:
    asked = problem(queries=(Query("sum", "y"), Query("avg", "y"), Query("count")))
    wanted = 1.5 * (plan(asked, "gaussian").error_of(asked.queries[0]).rmse or math.nan)
    found = plan_for_error(asked, wanted, "gaussian")
    assert all((found.error_of(query).rmse or 0.0) <= wanted for query in asked.queries)


@pytest.mark.parametrize("error", [0, -1.0, math.nan, math.inf, True, "2"])
def test_what_is_no_error(error: Any) -> None:
    with pytest.raises(UsageError, match="error: must be a positive number"):
        plan_for_error(problem(), error)


def test_what_cannot_be_proved_stays_so() -> None:
    with pytest.raises(UsageError, match="gaussian: delta"):
        plan_for_error(problem(delta=0.0), 1.0, "gaussian")
    with pytest.raises(RefusedError, match="no mechanism can prove the guarantee"):
        plan_for_error(problem(bounds={}, theta=()), 1.0)
    with pytest.raises(UsageError, match="Did you mean gaussian"):
        plan_for_error(problem(), 1.0, "gausian")
