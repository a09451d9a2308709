"""Promises that hide little carry a warning; chances are those of a slow twin, at the likeliest law of the box."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import WEAK
from attrpriv.methods.choice.choose import plan, plan_view_of, rank
from attrpriv.methods.choice.warnings import weak_lines
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.assumption import NormalBox
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries

SCHOOL = Gaussian(
    mean={"income": 60_000},
    sd={"weight": 25, "income": 30_000},
    correlation={"weight~income": 0.3},
    tolerance={"mean": 0.01, "sd": 0.02, "slope": 0.05},
)
SMOKERS = Counts(sensitive="smoker", given={"stay > 7": {"yes": 0.4, "no": 0.2}}, prior={"yes": (0.28, 0.32)})
STAFF = Groups(
    sensitive="gender",
    mean={"F": {"hours": 36}, "M": {"hours": 42}},
    sd={"F": {"hours": 11}, "M": {"hours": 12}},
    prior={"F": 0.3},
    tolerance=0,
)
TOWNS = Hierarchy(
    mean={"income": 60_000},
    between_sd={"weight": 5, "income": 8_000},
    between_correlation={"weight~income": 0.3},
    within_sd={"weight": 25, "income": 30_000},
    tolerance=0,
)


def network(*prior: float, tolerance: float = 0.0) -> ParameterNetwork:
    tall = Node(states=("0.3", "0.5"), parents=("income",), table=((0.7, 0.3), (0.3, 0.7)))
    nodes = {"income": Node(states=("low", "high"), table=(prior,)), "tall": tall}
    return ParameterNetwork(network=Network(nodes=nodes), attributes={"tall": {"family": "bernoulli"}}, tolerance=tolerance)


def problem(secret: Secret, *theta: Any, query: str = "count(*)", **changes: Any) -> Problem:
    stated = {"queries": parse_queries(query), "secrets": (secret,), "epsilon": 1.0, "delta": 1e-6, "n": 10_000, "theta": theta}
    return Problem(**(stated | changes))


def lines(asked: Problem) -> list[str]:
    found = weak_lines(asked, asked.epsilon, asked.delta)
    assert all(line.startswith(WEAK) for line in found)
    return [line.removeprefix(f"{WEAK} ") for line in found]


INCOME = Secret("mean(income)", between=(20_000, 200_000), within=1_000)
SMOKE = Secret("share(smoker = 'yes')", between=(0.2, 0.4))
WEAK_ONES: dict[str, tuple[Problem, str]] = {
    "delta": (problem(INCOME, SCHOOL, delta=1.1e-4), "delta 0.00011 is above 1/n, 0.0001: in up to one of 9,091 tables"),
    "epsilon": (problem(INCOME, SCHOOL, epsilon=11.0), "epsilon 11 lets likelihoods differ by a factor of 6.0e+04"),
    "30 standard errors": (problem(Secret("mean(income)", between=(69_600, 80_000)), SCHOOL), "gives its range no chance"),
    "a sum": (problem(Secret("sum(income)", between=(6.2e8, 7e8)), SCHOOL), "the assumption gives its range a chance of"),
    "a combination": (problem(Secret("mean(2 * income)", between=(160_000, 180_000)), SCHOOL), "gives its range no chance"),
    "a narrow range": (problem(Secret("mean(income)", between=(60_000, 60_005)), SCHOOL), "a chance of 0.007 at most"),
    "of several members": (
        problem(Secret("mean(income)", between=(62_000, 80_000)), SCHOOL, SCHOOL.model_copy(update={"mean": {"income": 6e4}})),
        "its range a chance",
    ),
    "sets": (problem(Secret("mean(income)", cases=("< 50000", ">= 50000")), SCHOOL), "all but one of the values"),
    "a small distance": (problem(Secret("mean(income)", within=2.9), SCHOOL), "at most 2.9 apart are hidden"),
    "counts": (problem(Secret("share(smoker = 'yes')", between=(0.5, 0.6)), SMOKERS), "gives its range no chance"),
    "sets of counts": (problem(Secret("count(smoker = 'yes')", cases=("< 5000", ">= 5000")), SMOKERS), "all but one of the"),
    "a few rows": (problem(Secret("share(smoker = 'yes')", within=4e-6), SMOKERS, n=1_000_000), "at most 4e-06 apart"),
    "groups": (problem(Secret("share(gender = 'F')", between=(0.33, 0.5)), STAFF), "gives its range a chance of"),
    "a share of the population": (problem(Secret(parameter="share(gender = 'F')", between=(0.5, 0.6)), STAFF), "no chance"),
    "a sliver of shares": (problem(Secret(parameter="share(gender = 'F')", between=(0.3, 0.30001)), STAFF), "1e-05 apart"),
    "without an assumption": (problem(Secret(parameter="share(s = 'F')", between=(0.3, 0.30001))), "1e-05 apart"),
    "a population's mean": (problem(Secret(parameter="income", between=(9e4, 1e5)), TOWNS), "its range a chance of 9e-05"),
    "a population's small distance": (problem(Secret(parameter="income", within=70.0), TOWNS), "at most 70 apart"),
    "a network": (problem(Secret(parameter="income"), network(0.999, 0.001)), "all but one of the values"),
}  # fmt: skip


@pytest.mark.parametrize("name", WEAK_ONES)
def test_what_hides_little_is_said(name: str) -> None:
    asked, said = WEAK_ONES[name]
    (line,) = lines(asked)
    assert said in line


STRONG: dict[str, Problem] = {
    "a range around the mean": problem(INCOME, SCHOOL),
    "1/n": problem(INCOME, SCHOOL, delta=1e-4),
    "epsilon 10": problem(INCOME, SCHOOL, epsilon=10.0),
    "no assumption": problem(Secret("share(s = 'F')", between=(0.5, 0.6))),
    "shares of a population": problem(Secret(parameter="share(s = 'F')", between=(0.3, 0.31))),
    "a distribution of a population": problem(Secret(parameter="distribution(s)", between={"F": (0.3, 0.31), "M": (0, 1)})),
    "no mean": problem(Secret("mean(weight)", between=(900, 901)), SCHOOL),
    "a member that finds it likely": problem(
        Secret("mean(income)", between=(69_000, 80_000)), SCHOOL, SCHOOL.model_copy(update={"mean": {"income": 7e4}})
    ),
    "one standard error": problem(Secret("mean(income)", within=300.0), SCHOOL),
    "likely sets": problem(Secret("mean(income)", cases=("< 60000", ">= 60000")), SCHOOL),
    "two likely sets of three": problem(Secret("mean(income)", cases=("< 60000", "[60000, 61000)", ">= 90000")), SCHOOL),
    "a prior that is wide": problem(
        Secret("share(smoker = 'yes')", between=(0.5, 0.6)), SMOKERS.model_copy(update={"prior": {"yes": (0.1, 0.9)}})
    ),
    "no prior": problem(Secret("share(smoker = 'yes')", between=(0.5, 0.6)), SMOKERS.model_copy(update={"prior": {}})),
    "a share of the population": problem(Secret(parameter="share(gender = 'F')", between=(0.25, 0.4)), STAFF),
    "a population's mean": problem(Secret(parameter="income", between=(4e4, 8e4)), TOWNS),
    "a network": problem(Secret(parameter="income"), network(0.9, 0.1)),
    "another column": problem(Secret("share(gender = 'F')", between=(0.5, 0.6)), SMOKERS),
}


@pytest.mark.parametrize("name", STRONG)
def test_what_hides_enough_is_not_mentioned(name: str) -> None:
    assert lines(STRONG[name]) == []


@pytest.mark.parametrize("seed", range(20))
def test_the_chance_of_a_range_is_the_largest_in_the_box(seed: int) -> None:
    """Against a grid of laws, whose best is a little below it."""
    rng = np.random.default_rng(seed)
    centre, sd = rng.normal(0, 3, 2).tolist(), rng.uniform(0.1, 2, 2).tolist()
    law = NormalBox((min(centre), max(centre)), (min(sd), max(sd)))
    low, high = sorted(rng.normal(0, 3, 2).tolist())
    for ends in ((low, high), (-math.inf, low), (high, math.inf)):
        means, sds = np.meshgrid(np.linspace(min(centre), max(centre), 201), np.linspace(min(sd), max(sd), 201))
        best = float(np.max(stats.norm.cdf(ends[1], means, sds) - stats.norm.cdf(ends[0], means, sds)))
        assert best <= law.chance(*ends) + 1e-12
        assert law.chance(*ends) <= best + 2e-3


@pytest.mark.parametrize(("n", "low", "high"), [(50, 10, 20), (50, 30, 40), (1_000, 250, 260), (1_000, 0, 200), (9, 3, 5)])
def test_the_chance_of_counts_is_the_largest_in_the_prior(n: int, low: int, high: int) -> None:
    secret = Secret("count(smoker = 'yes')", between=(low, high))
    belief = SMOKERS.belief(secret, n, {})
    found = None if belief is None else belief.chances(secret, n)
    law = stats.binom(n, np.linspace(0.28, 0.32, 401))
    assert found is not None
    assert found[0] == pytest.approx(float(np.max(law.cdf(high) - law.cdf(low - 1))), rel=1e-3, abs=1e-8)


@pytest.mark.parametrize(
    ("asked", "mechanism"),
    [
        (problem(Secret(parameter="income"), network(1.0, 0.0), query="avg(tall)", bounds={"tall": (0, 1)}), "markov_quilt"),
        (problem(Secret("share(gender = 'F')", between=(0.2, 0.4)), STAFF.model_copy(update={"prior": {"F": (0.0, 0.0)}}),
                 query="avg(hours)"), "gaussian"),
        (problem(Secret("share(gender = 'F')", between=(0.2, 0.4)), STAFF.model_copy(update={"prior": {"M": (0.0, 0.0)}}),
                 query="avg(hours)"), "transport"),
    ],
)  # fmt: skip
def test_a_secret_with_one_possible_value_is_refused(asked: Problem, mechanism: str) -> None:
    with pytest.raises(UsageError, match="has a single possible value under the assumption; there is nothing to hide"):
        plan(asked, mechanism)
    assert rank(asked).chosen is None


def test_a_network_whose_zeros_may_be_off_is_planned() -> None:
    asked = problem(Secret(parameter="income"), network(1.0, 0.0, tolerance=0.1), query="avg(tall)", bounds={"tall": (0, 1)})
    assert plan(asked, "markov_quilt").mechanism == "markov_quilt"


def test_every_plan_but_the_constant_carries_it() -> None:
    weak = problem(
        Secret("mean(income)", between=(80_000, 90_000)),
        SCHOOL,
        query="avg(weight)",
        delta=1e-3,
        bounds={"weight": (60, 400)},
        resolution={"weight": 1, "income": 1},
    )
    said = weak_lines(weak, 1.0, 1e-3)
    assert len(said) == 2
    ranking = rank(weak)
    assert len(ranking.plans) > 3
    for made in ranking.plans:
        assert set(said) <= set(made.warnings) or made.mechanism == "constant"
        assert not set(said) & set(made.remarks)
        assert all(line in str(made) for line in made.warnings)


def test_a_view_of_all_rows_is_refused() -> None:
    """A share so near to 0 that a table without such rows is all but sure: then all rows would be kept."""
    secret = Secret(parameter="share(s = 'F')", between=(0.0, 1e-4))
    asked = Problem(queries=(Query("count"),), secrets=(secret,), epsilon=1.0, delta=0.05, n=120)
    with pytest.raises(UsageError, match="the view would be the whole table, so that nothing is hidden"):
        plan_view_of(asked)
    assert plan_view_of(asked.model_copy(update={"delta": 1e-6})).rows < 120


def test_a_view_carries_it_too() -> None:
    secret = Secret(parameter="share(s = 'F')", between=(0.2, 0.4))
    asked = Problem(queries=(Query("count"),), secrets=(secret,), epsilon=50.0, delta=1e-3, n=10_000)
    made = plan_view_of(asked)
    (line,) = made.warnings  # a view has epsilon 0, whatever the policy says
    assert "delta 0.001 is above 1/n" in line
    assert f"warning: {line}" in str(made)
    assert plan(asked, "subsample").warnings == (line,)
    assert plan_view_of(asked.model_copy(update={"delta": 1e-5})).warnings == ()
