"""What a hierarchy says of averages: shifts and covariances by conditioning, masks of recorded values, clipping."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from attrpriv.cases.population_shift import cases, clip_charges, hierarchies, recorded
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import MOMENTS, hierarchy_problem

BETWEEN = {"weight": 5.0, "height": 1.0, "income": 8_000.0}
RHO = {("weight", "income"): 0.3, ("weight", "height"): 0.5, ("height", "income"): 0.2}
N = 10_000


def covariance() -> np.ndarray:
    """Of populations' means and, on top, of averages of N rows: weight, height, income."""
    names = ("weight", "height", "income")
    return np.array(
        [[BETWEEN[a] * BETWEEN[b] * (1.0 if a == b else RHO.get((a, b), RHO.get((b, a), 0.0))) for b in names] for a in names]
    )


@pytest.mark.parametrize("off", [0.0, 0.1, 0.5])
def test_shifts_and_covariances_by_conditioning(off: float) -> None:
    problem = hierarchy_problem(queries=(Query("avg", "weight"), Query("avg", "height")))
    (found,) = cases(problem, hierarchies(problem), off)
    s = covariance()
    slope = s[:2, 2] / s[2, 2]
    within = np.diag([MOMENTS["sd"]["weight"] ** 2, MOMENTS["sd"]["height"] ** 2]) / N
    left = s[:2, :2] - np.outer(slope, slope) * (1 + off) ** 2 * s[2, 2] + within
    assert found.shifts[:, 0] == pytest.approx(slope * (1 + off) * 40_000.0)
    assert found.residual == pytest.approx(left)
    assert not found.signless


def test_a_column_itself_is_not_off() -> None:
    problem = hierarchy_problem(queries=(Query("avg", "income"),))
    (found,) = cases(problem, hierarchies(problem), 0.5)
    assert found.shifts[0, 0] == pytest.approx(40_000.0)
    assert found.residual[0, 0] == pytest.approx(MOMENTS["sd"]["income"] ** 2 / N)


def test_one_case_for_each_secret_and_member() -> None:
    problem = hierarchy_problem(secrets=(Parameter("income", between=(4e4, 8e4)), Parameter("height", within=2.0)))
    theta = hierarchies(problem)
    found = cases(problem, (*theta, *theta))
    assert [one.theta for one in found] == [0, 0, 1, 1]
    assert found[1].shifts[0, 0] == pytest.approx(0.5 * 5.0 / 1.0 * 2.0)
    assert cases(problem.model_copy(update={"queries": (Query("count"),)}), theta) == []


def lattice(variance: Any, columns: int) -> float:
    with mpmath.workdps(400):
        q = mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf(variance))
        return float(-mpmath.log(2 - (1 + 2 * q / (1 - q)) ** columns))


def test_declared_spacings() -> None:
    problem = hierarchy_problem(resolution={"weight": 12.0, "income": 15_000.0})
    found = recorded(problem, hierarchies(problem), ("weight", "income"))
    assert found.masks == {"weight": pytest.approx(12.0 / N), "income": pytest.approx(1.5)}
    assert found.spacing == {"weight": 12.0, "income": 15_000.0}
    data = min(N * (25.0 / 12.0) ** 2, N * (30_000.0 / 15_000.0) ** 2)
    assert found.charge == pytest.approx(lattice(data / (data + 1), 2), rel=1e-6)
    assert recorded(problem, hierarchies(problem), ()).charge == 0.0


@pytest.mark.parametrize("n", [100, 400, 10_000, 1_000_000])
def test_undeclared_spacings(n: int) -> None:
    problem = hierarchy_problem(resolution={}, n=n)
    found = recorded(problem, hierarchies(problem), ("weight",))
    mask = 25.0 / math.sqrt(n) / 50
    assert found.masks["weight"] == pytest.approx(mask)
    assert found.spacing["weight"] == pytest.approx(min(mask * n / 1.5, 12.5))
    data, masked = n * (25.0 / found.spacing["weight"]) ** 2, (mask * n / found.spacing["weight"]) ** 2
    assert found.charge == pytest.approx(lattice(data * masked / (data + masked), 1), rel=1e-5, abs=1e-300)


def test_few_or_coarse_values_are_refused() -> None:
    for changes, fine in (
        ({"n": 100}, True), ({"n": 99}, False),
        ({"resolution": {"weight": 12.5}}, True), ({"resolution": {"weight": 12.51}}, False),
    ):  # fmt: skip
        problem = hierarchy_problem(**changes)
        if fine:
            recorded(problem, hierarchies(problem), ("weight",))
        else:
            with pytest.raises(Refusal):
                recorded(problem, hierarchies(problem), ("weight",))


def test_clipping_costs_the_chance_that_a_row_is_clipped() -> None:
    """At the ends of the secret's range, over rows of the population given it."""
    bounds = (-60.0, 340.0)
    problem = hierarchy_problem(bounds={"weight": bounds}, delta=0.4)
    theta = hierarchies(problem)
    s = covariance()
    slope = s[0, 2] / s[2, 2]
    row = math.sqrt(s[0, 0] - slope**2 * s[2, 2] + 25.0**2)
    moved = [150.0 + slope * (end - 60_000.0) for end in (40_000.0, 80_000.0)]
    tails = norm.cdf((bounds[0] - min(moved)) / row) + norm.sf((bounds[1] - max(moved)) / row)
    found = clip_charges(problem, theta)["weight"]
    assert found == pytest.approx((1 + math.e) * N * float(tails), rel=1e-6)
    assert found is not None
    for delta, holds in ((found * 10 * (1 + 1e-9), True), (found * 10 * (1 - 1e-9), False)):
        charge = clip_charges(problem.model_copy(update={"delta": delta}), theta)["weight"]
        assert (charge is not None) is holds
    assert clip_charges(hierarchy_problem(), theta) == {}
    open_range = hierarchy_problem(bounds={"weight": bounds}, secrets=(Parameter("income", within=1.0),))
    assert clip_charges(open_range, theta) == {"weight": None}


def test_which_assumptions_will_do() -> None:
    problem = hierarchy_problem()
    assert len(hierarchies(problem)) == 1
    for changes in (
        {"theta": ()},
        {"delta": 0.0},
        {"known_rows": 0.1},
        {"secrets": (Secret("mean(income)", within=1.0),)},
        {"secrets": (Parameter("age", within=1.0),)},
        {"queries": (Query("avg", "age"),)},
        {"resolution": {"weight": 1e-31}},
        {"resolution": {"weight": 1e31}},
    ):
        with pytest.raises(Refusal):
            hierarchies(problem.model_copy(update=changes))
    hierarchies(problem.model_copy(update={"resolution": {"weight": 1e-30}}))
    hierarchies(problem.model_copy(update={"resolution": {"weight": 1e30}}))
