"""Plans for counts: published and hand-checked numbers, several categories and assumptions, known rows, single persons."""

from __future__ import annotations

import math
from typing import Any

import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.errors import Cause, PolicyError, RefusedError, UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tally import Tally
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.count_noise.proof import CountDirectEvidence, CountLaplaceEvidence, WassersteinEvidence
from attrpriv.numerics.laws.records import Interval01
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses
from tests.unit.methods.counts import STAY, column, problem, smokers


def tally(made: Plan) -> Tally:
    assert made.tally is not None
    return made.tally


def scale(asked: Problem, mechanism: str) -> float:
    return tally(plan(asked, mechanism)).scale


# --------------------------------------------------------------------------------------------------------- the example


@pytest.mark.parametrize(("epsilon", "least"), [(0.5, 1.548642), (1.0, 0.686929), (2.0, 0.0)])
def test_laplace_needs_the_least_scale(epsilon: float, least: float) -> None:
    made = plan(problem(epsilon=epsilon), "laplace")
    assert tally(made).scale == pytest.approx(least, abs=1e-6)
    assert tally(made).noise == ("laplace" if least else "none")
    assert (made.error.worst == 0) == (least == 0)
    assert made.certificate.exact


def test_the_exact_answer_is_private_from_here_on() -> None:
    assert scale(problem(epsilon=1.62187), "laplace") == 0
    assert scale(problem(epsilon=1.62186), "laplace") > 0
    assert "the exact answer is private already; no noise is added." in plan(problem(epsilon=1.7), "laplace").notes
    assert plan(problem(epsilon=1.7), "laplace").tallied((3,), (1, 3)) == ((3,),)


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), [(1.0, 1e-5, 2.446221), (1.0, 1e-3, 1.593862)])
def test_gaussian_needs_the_least_scale(epsilon: float, delta: float, sigma: float) -> None:
    made = plan(problem(epsilon=epsilon, delta=delta), "gaussian")
    assert tally(made).noise == "gaussian"
    assert tally(made).scale == pytest.approx(sigma, abs=1e-6)


def test_gaussian_needs_delta() -> None:
    with refuses(UsageError, Cause.BUDGET, "delta above 0"):
        plan(problem(), "gaussian")


@pytest.mark.parametrize(("box", "distance"), [((0.4, 0.6), 1), ((0.3, 0.7), 2), ((0.0, 1.0), 4)])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_wasserstein_divides_the_distance_by_epsilon(box: tuple[float, float], distance: int, epsilon: float) -> None:
    made = plan(problem(smokers(*box), epsilon=epsilon), "wasserstein")
    evidence = made.certificate.evidence
    assert isinstance(evidence, WassersteinEvidence)
    assert evidence.distance == distance
    assert tally(made).scale == pytest.approx(distance / epsilon, rel=1e-10)
    assert tally(made).scale >= distance / epsilon
    assert f"W = {distance}." in made.notes


def test_delta_is_never_a_loss() -> None:
    """With delta there is at most as much noise, by every mechanism."""
    for mechanism in ("laplace", "wasserstein"):
        pure, approximate = (plan(problem(delta=delta), mechanism) for delta in (0.0, 0.01))
        assert (approximate.error.rmse or 0) <= (pure.error.rmse or 0)
    evidence = plan(problem(delta=0.01), "laplace").certificate.evidence
    assert isinstance(evidence, CountDirectEvidence)


def test_a_range_of_a_thousand_rows_has_its_width() -> None:
    asked = problem(n=1000, secrets=(Secret("count(smoker = 'yes')", between=(100, 400)),))
    evidence = plan(asked, "laplace").certificate.evidence
    assert isinstance(evidence, CountLaplaceEvidence)
    (check,) = evidence.checks
    assert (check.pairs.n, check.pairs.low, check.pairs.high, check.pairs.apart) == (1000, 100, 400, 300)
    rate = 1 / tally(plan(asked, "laplace")).scale
    t = math.exp(rate)
    loss = 300 * max(math.log((0.4 + 0.6 * t) / (0.6 + 0.4 * t)), math.log((0.6 + 0.4 / t) / (0.4 + 0.6 / t)))
    assert loss == pytest.approx(1.0, rel=1e-6)
    assert loss <= 1


def test_a_distance_needs_less() -> None:
    near = problem(n=1000, secrets=(Secret("count(smoker = 'yes')", between=(100, 400), within=20.0),))
    far = problem(n=1000, secrets=(Secret("count(smoker = 'yes')", between=(100, 400)),))
    assert scale(near, "laplace") < scale(far, "laplace")


# ------------------------------------------------------------------------------------------------- categories, members


def three(**more: Any) -> Counts:
    given = {STAY: {"never": 0.2, "former": 0.4, "daily": 0.6}}
    return Counts(**({"sensitive": "smoker", "given": given} | more))


SMOKES = Secret("count(smoker != 'never')", between=(0, 4))


def laws(asked: Problem) -> tuple[Interval01, Interval01]:
    """The probability of the event for members and for the rest."""
    evidence = plan(asked, "laplace").certificate.evidence
    assert isinstance(evidence, CountLaplaceEvidence)
    return evidence.checks[0].records.member[1], evidence.checks[0].records.rest[1]


def test_without_a_prior_several_categories_are_their_hull() -> None:
    assert laws(problem(three(), secrets=(SMOKES,))) == ((0.4, 0.6), (0.2, 0.2))


def test_with_a_prior_several_categories_are_their_average() -> None:
    prior = {"never": 0.5, "former": 0.375, "daily": 0.125}
    member, rest = laws(problem(three(prior=prior), secrets=(SMOKES,)))
    assert member == pytest.approx((0.45, 0.45))
    assert rest == (0.2, 0.2)
    assert scale(problem(three(prior=prior), secrets=(SMOKES,)), "laplace") < scale(
        problem(three(), secrets=(SMOKES,)), "laplace"
    )


def test_with_intervals_as_shares_it_is_the_hull() -> None:
    prior = {"never": 0.5, "former": (0.3, 0.4), "daily": (0.1, 0.2)}
    assert laws(problem(three(prior=prior), secrets=(SMOKES,))) == ((0.4, 0.6), (0.2, 0.2))


def test_several_secrets_take_the_worst() -> None:
    daily, never = Secret("count(smoker = 'daily')", between=(0, 4)), Secret("count(smoker = 'never')", between=(0, 4))
    alone = [scale(problem(three(), secrets=(one,)), "laplace") for one in (daily, never)]
    assert scale(problem(three(), secrets=(daily, never)), "laplace") == max(alone)
    with refuses(RefusedError, Cause.SECRET, "one secret under one assumption"):
        plan(problem(three(), secrets=(daily, never)), "optimal")


def test_a_list_of_assumptions_takes_the_worst() -> None:
    mild, wild = smokers(0.45, 0.55), smokers(0.3, 0.7)
    for mechanism in ("laplace", "wasserstein"):
        assert scale(problem(mild, wild), mechanism) == scale(problem(wild), mechanism) == scale(problem(wild, mild), mechanism)
    assert scale(problem(mild, wild, delta=1e-5), "gaussian") == scale(problem(wild, delta=1e-5), "gaussian")
    assert len(plan(problem(mild, wild), "laplace").certificate.evidence.to_json()["checks"]) == 2


def test_assumptions_of_a_list_must_be_alike() -> None:
    with refuses(UsageError, Cause.MISTAKE, "assume"):
        plan(problem(smokers(), three()), "laplace")
    one, two = column("x", [0, 1], [0.5, 0.5], [0.4, 0.6]), column("x", [0, 2], [0.5, 0.5], [0.4, 0.6])
    with pytest.raises(UsageError, match="every assumption of a list must give x the same values"):
        plan(problem(one, two, queries=(Query("sum", "x"),)), "laplace")


# ------------------------------------------------------------------------------------------------------ other statistics


def test_a_histogram() -> None:
    theta = column("ward", ["a", "b"], [0.4, 0.6], [0.6, 0.4])
    made = plan(problem(theta, queries=(Query("count", group_by="ward"),)), "laplace")
    assert tally(made).histogram
    u2 = math.exp(-2 / tally(made).scale)
    assert 4 * math.log((0.6 + 0.4 * u2) / (0.4 + 0.6 * u2)) == pytest.approx(1, rel=1e-6)
    for mechanism in ("gaussian", "wasserstein", "optimal"):
        with refuses(RefusedError, Cause.STATISTIC, "mechanism laplace"):
            plan(problem(theta, queries=(Query("count", group_by="ward"),), delta=0.01), mechanism)


def test_a_histogram_of_bins() -> None:
    theta = column("age", ["young", "old"], [0.4, 0.6], [0.6, 0.4])
    asked = problem(theta, queries=(Query("count", group_by="age"),), bins={"age": (0.0, 65.0, 120.0)})
    assert [cell.where for cell in tally(plan(asked, "laplace")).cells] == [
        "age >= 0.0 and age < 65.0",
        "age >= 65.0 and age <= 120.0",
    ]


def test_a_share_of_the_population() -> None:
    """Rows are drawn at both ends of the range: 0.25 * 0.4 + 0.75 * 0.6 and 0.75 * 0.4 + 0.25 * 0.6."""
    asked = problem(secrets=(Parameter("share(smoker = 'yes')", between=(0.25, 0.75)),))
    member, rest = laws(asked)
    assert member == pytest.approx((0.45, 0.45))
    assert rest == pytest.approx((0.55, 0.55))
    assert "a share of the population is hidden whatever share this table has." in plan(asked, "laplace").notes


def test_a_boolean_column() -> None:
    theta = column("flag", [False, True], [0.4, 0.6], [0.6, 0.4])
    asked = problem(theta, queries=(Query("sum", "flag"),), types={"flag": "boolean"})
    assert [cell.where for cell in tally(plan(asked, "laplace")).cells] == ["flag = false", "flag = true"]
    event = problem(theta, queries=(Query("count", where="flag = true"),), types={"flag": "boolean"})
    assert scale(event, "laplace") == pytest.approx(scale(asked, "laplace")) == pytest.approx(0.686929, abs=1e-6)


# ----------------------------------------------------------------------------------------------------- what is refused


def secret(text: str, low: int = 0, high: int = 4) -> dict[str, Any]:
    return {"secrets": (Secret(text, between=(low, high)),)}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"secrets": (Secret("mean(age)", within=1.0),)}, "must be the count or the share of some categories of smoker"),
        (secret("count(age > 3)"), "must be about smoker, the sensitive column of the assumption"),
        (
            secret("count(smoker = 'maybe')"),
            "must tell some categories from others. Got one that holds for no category (yes, no)",
        ),
        (
            secret("count(smoker in ('yes', 'no'))"),
            "must tell some categories from others. Got one that holds for every category (yes, no)",
        ),
        ({"queries": (Query("count", where="age > 3"),)}, "assume: must give the probability of age > 3 in each category"),
        ({"queries": (Query("sum", "age"),)}, "assume: must give the values of age with their probabilities"),
        (
            {"queries": (Query("sum", "age", where="age > 3"),)},
            "assume: must give the values of age with their probabilities",
        ),
        ({"queries": (Query("sum", "age", group_by="age"),)}, "a sum or an average by group is not covered"),
        ({"theta": (smokers(prior={"yes": 0.0}),)}, "have prior share 0, so that no value but 0 is possible"),
        ({"theta": (smokers(prior={"yes": 1.0}),)}, "have prior share 1, so that no value but all rows is possible"),
    ],
)
def test_bad_usage_says_what_is_wrong(changes: dict[str, Any], said: str) -> None:
    for mechanism in ("laplace", "wasserstein"):
        with pytest.raises(UsageError) as caught:
            plan(problem(**changes), mechanism)
        assert said in str(caught.value)
    assert isinstance(rank(problem(**changes)).error(), UsageError)


def test_counts_that_no_table_has_are_no_problem_at_all() -> None:
    with pytest.raises(PolicyError, match=r"counts must be from 0 to the number of rows, 4\. Got 2"):
        problem(**secret("count(smoker = 'yes')", 2, 9))


def test_two_tallies_at_once_are_refused() -> None:
    laws = {name: {"values": [0, 1, 3], "probabilities": [0.2, 0.5, 0.3]} for name in ("yes", "no")}
    theta = smokers(given={"x": laws, STAY: {"yes": 0.4, "no": 0.6}})
    with pytest.raises(UsageError, match="is not given; ask for one after the other, each with its share, or for a histogram"):
        plan(problem(theta, queries=(Query("sum", "x"), Query("count", where=STAY))), "laplace")
    with refuses(RefusedError, Cause.STATISTIC, "a count with a filter, a sum, an average or a histogram"):
        plan(problem(queries=(Query("count"),)), "laplace")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"bins": {"x": (0.0, 1.0, 2.0)}, "bounds": {"x": (0.0, 3.0)}},
            r"bins: those of x must cover its bounds \[0, 3\]. Got 0 to 2",
        ),
        ({"bounds": {"x": (-1.0, 1.0)}}, r"values: those of x must cover its bounds \[-1, 1\]. Got 0 to 1"),
        ({"bins": {"x": (0.0, 1.0, 2.0, 3.0)}}, "bins: x needs a bin for each of its 2 values. Got 3"),
        ({"bins": {"smoker": (0.0, 1.0)}}, "bins: smoker needs a bin for each of its 2 states, in order. Got 1"),
        ({"bins": {"smoker": (0.0, 1.0, 2.0, 3.0)}}, "bins: smoker needs a bin for each of its 2 states, in order. Got 3"),
        (
            {"bins": {"smoker": (0.0, 1.0, 2.0)}, "bounds": {"smoker": (0.0, 3.0)}},
            "bins: those of smoker must cover its bounds",
        ),
    ],
)
def test_bins_and_bounds(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plan(
            problem(column("x", [0, 1], [0.2, 0.8], [0.8, 0.2]), queries=(Query("count", group_by="x"),), **changes), "laplace"
        )


# ---------------------------------------------------------------------------------------------- known rows, individuals


def test_known_rows() -> None:
    """Pure Laplace noise does not count on the uncertainty of others; calibrations with delta do, and need more."""
    assert scale(problem(known_rows=0.5), "laplace") == scale(problem(), "laplace")
    known = problem(n=40, secrets=(Secret("count(smoker = 'yes')", between=(0, 4)),), known_rows=0.5, delta=1e-5)
    unknown = known.model_copy(update={"known_rows": 0.0})
    assert scale(known, "gaussian") > scale(unknown, "gaussian")
    evidence = plan(known, "gaussian").certificate.evidence
    assert isinstance(evidence, CountDirectEvidence)
    assert evidence.known == 20
    assert scale(known, "wasserstein") >= scale(unknown, "wasserstein")
    assert any("the adversary knows at most 20 of the rows" in line for line in plan(known, "laplace").certificate.assumes)
    with refuses(RefusedError, Cause.PERSONS, "known_rows 0"):
        plan(known, "optimal")


def test_single_persons_under_laplace_noise_take_the_larger_scale() -> None:
    assert scale(problem(individuals=0.1), "laplace") == pytest.approx(10, rel=1e-8)
    assert scale(problem(individuals=5.0), "laplace") == scale(problem(), "laplace")
    made = plan(problem(epsilon=2.0, individuals=0.5), "laplace")
    assert tally(made).noise == "laplace"
    assert tally(made).scale == pytest.approx(2, rel=1e-8)
    rows = made.certificate.individuals
    assert rows is not None
    assert [(term.sensitivity, term.scale) for term in rows.terms] == [(1.0, tally(made).scale)]


def test_single_persons_under_gaussian_noise_get_noise_on_top() -> None:
    made = plan(problem(individuals=0.5, delta=1e-5), "gaussian")
    assert tally(made).individuals == pytest.approx(2, rel=1e-8)
    assert tally(made).scale == scale(problem(delta=1e-5), "gaussian")
    assert (made.error.rmse or 0) > (plan(problem(delta=1e-5), "gaussian").error.rmse or 0)


def test_single_persons_are_not_protected_by_a_kernel() -> None:
    with refuses(RefusedError, Cause.PERSONS, "mechanism laplace"):
        plan(problem(individuals=0.5), "optimal")


def test_a_histogram_moves_two_cells_for_a_person() -> None:
    theta = column("ward", ["a", "b"], [0.5, 0.5], [0.5, 0.5])
    made = plan(problem(theta, queries=(Query("count", group_by="ward"),), individuals=1.0), "laplace")
    assert tally(made).scale == pytest.approx(2, rel=1e-8)


def test_auto_takes_the_least_error() -> None:
    ranking = rank(problem(delta=1e-5))
    assert ranking.chosen is not None
    errors = [made.error.rmse or 0.0 for made in ranking.plans]
    assert errors == sorted(errors)
    assert ranking.chosen.mechanism == "optimal"
    assert {"laplace", "gaussian", "wasserstein", "optimal", "group_dp"} <= {made.mechanism for made in ranking.plans}
