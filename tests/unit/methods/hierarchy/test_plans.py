"""Plans under a hierarchy: the numbers of the theory, what is refused, and certificates that notice a changed number."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.cases.budget import budget
from attrpriv.cases.population_shift import recorded
from attrpriv.errors import AttrprivError, Cause, CertificateError, RefusedError, UsageError
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.hierarchy.proof import HierarchyEvidence
from attrpriv.methods.hierarchy.transport import spread
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses

NUMBERS: dict[str, Any] = {
    "mean": {"weight": 150.0, "income": 60_000.0, "height": 67.0},
    "between_sd": {"weight": 5.0, "income": 8_000.0, "height": 1.0},
    "between_correlation": {("weight", "income"): 0.3, ("weight", "height"): 0.4, ("height", "income"): -0.2},
    "within_sd": {"weight": 25.0, "income": 30_000.0, "height": 4.0},
    "tolerance": 0,
}
INCOME = Parameter("income", between=(40_000.0, 80_000.0))


def problem(**changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "queries": (Query("avg", "weight"),),
        "secrets": (INCOME,),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 10_000,
        "theta": (Hierarchy(**NUMBERS),),
        "resolution": {"weight": 1.0, "income": 1.0, "height": 1.0},
    }
    return Problem(**(stated | changes))


def transported(**changes: Any) -> tuple[Plan, HierarchyEvidence]:
    found = plan(problem(**changes), "transport")
    assert isinstance(found.certificate.evidence, HierarchyEvidence)
    return found, found.certificate.evidence


# --------------------------------------------------------------------------------------------------------- the numbers


def test_the_design_s_example() -> None:
    """b = 3/16000, V = 22.8125, tau = mu* sqrt(V + mask^2), the error by the formula of theory 5.1, additive for comparison."""
    found, evidence = transported()
    asked = problem()
    left = budget(asked, asked.theta, recorded(asked, (Hierarchy(**NUMBERS),), ("weight", "income")).charge, 0.0, common=1)
    mu = gaussian_mu(left.epsilon, left.delta)
    assert evidence.check.slope == evidence.clamp.slopes[0][0] == pytest.approx(3 / 16_000)
    assert evidence.check.variance == pytest.approx(25 * 0.91 + 625 / 10_000)
    tau = mu * math.sqrt(evidence.check.variance + 1e-8)
    assert 2 * evidence.clamp.reach == pytest.approx(tau, rel=1e-8)
    assert evidence.scale == pytest.approx(1e-4)
    assert evidence.clamp.reads[0].mask == pytest.approx(1e-4)
    w, h = 3 / 16_000 * math.sqrt(8_000**2 + 300**2), tau / 2
    beyond = math.erfc(h / w / math.sqrt(2)) / 2
    density = math.exp(-((h / w) ** 2) / 2) / math.sqrt(2 * math.pi)
    assert found.error.rmse == pytest.approx(math.sqrt(2 * ((w**2 + h**2) * beyond - w * h * density) + 1e-8), rel=1e-6)
    assert found.error.rmse == pytest.approx(1.0896, abs=1e-3)
    additive = plan(asked, "gaussian")
    assert additive.noise.scale == pytest.approx(math.sqrt((7.5 / mu) ** 2 - evidence.check.variance), rel=1e-5)
    assert plan(asked) == found


def test_a_sum_is_n_times_its_average() -> None:
    found, _ = transported(queries=(Query("avg", "weight"), Query("sum", "weight"), Query("count")))
    average, total, count = (found.error_of(query) for query in found.queries)
    assert total.rmse == pytest.approx(10_000 * (average.rmse or 0))
    assert count.rmse == 0
    assert found.spread_of(found.queries[1]).reach(0.9) == pytest.approx(10_000 * found.spread_of(found.queries[0]).reach(0.9))


def test_near_values_are_hidden_by_a_linear_share() -> None:
    """d such that additive noise would just be needed: little is taken back, and no noise is added."""
    found, evidence = transported(secrets=(Parameter("income", between=(40_000.0, 80_000.0), within=6_500.0),))
    assert found.columns[0].parameters["form"] == "linear"
    assert evidence.clamp.reach == 0
    assert 0 < evidence.clamp.slopes[0][0] < evidence.check.slope
    assert evidence.scale == pytest.approx(1e-4, rel=1e-4)
    clamp = plan(problem(secrets=(Parameter("income", within=40_000.0),)), "transport")
    assert (found.error.rmse or 0) < (clamp.error.rmse or 0)


def test_a_clamp_that_is_too_tight_is_widened_by_noise() -> None:
    """Where what is taken back is much wider than the clamp, noise that widens the clamp pays."""
    numbers = NUMBERS | {
        "between_correlation": {("weight", "income"): 0.99999, ("weight", "height"): 0.0, ("height", "income"): 0.0}
    }
    numbers |= {"within_sd": {"weight": 2.0, "income": 30_000.0, "height": 4.0}}
    found, evidence = transported(theta=(Hierarchy(**numbers),), n=100_000, epsilon=8.0, delta=0.1)
    assert found.columns[0].parameters["form"] == "clamped"
    assert evidence.scale > 1_000 * found.columns[0].parameters["mask"]
    best = found.error.rmse or 0.0
    for scale in (evidence.scale / 2, evidence.scale * 2):  # no better at other noise, with the clamp that belongs to it
        mu = evidence.distance()
        reach = mu * math.sqrt(evidence.check.variance + scale**2) / 2
        other = spread(evidence.check, scale, evidence.clamp.model_copy(update={"reach": reach})).error().rmse
        assert best <= (other or 0) * (1 + 1e-6)


def test_several_averages_and_several_secrets_together() -> None:
    """Against the vector condition, written out with numpy."""
    secrets = (INCOME, Parameter("height", within=2.0))
    found = plan(problem(queries=(Query("avg", "weight"), Query("avg", "height")), secrets=secrets), "gaussian")
    evidence = found.certificate.evidence
    assert isinstance(evidence, GaussianEvidence)
    noise = np.diag(np.array(evidence.independent) ** 2)
    if evidence.factor:
        noise = noise + np.array(evidence.factor) @ np.array(evidence.factor).T
    between = np.array([[25, 0.4 * 5], [0.4 * 5, 1.0]])
    rows = np.diag([625 / 1e4, 16 / 1e4])
    worst = 0.0
    for covariances, variance, apart in (([0.3 * 5 * 8e3, -0.2 * 8e3], 64e6, 40_000.0), ([2.0, 1.0], 1.0, 2.0)):
        slopes = np.array(covariances) / variance
        spread = between - np.outer(covariances, covariances) / variance + rows + noise
        moved = slopes * apart
        worst = max(worst, math.sqrt(moved @ np.linalg.solve(spread, moved)))
    assert worst <= evidence.distance() * (1 + 1e-9)
    assert worst == pytest.approx(evidence.distance(), rel=1e-6)
    found.certificate.verify()


def test_the_sensitive_column_itself_gets_additive_noise() -> None:
    found = plan(problem(queries=(Query("avg", "income"),)))
    assert found.mechanism == "gaussian"
    evidence = found.certificate.evidence
    assert isinstance(evidence, GaussianEvidence)
    check = evidence.checks[0]
    assert check.shifts == ((40_000.0,),)
    assert check.credited[0][0] == pytest.approx(30_000**2 / 1e4)


def test_uncorrelated_columns_need_only_the_mask() -> None:
    numbers = NUMBERS | {"between_correlation": dict.fromkeys(NUMBERS["between_correlation"], 0.0)}
    found = plan(problem(theta=(Hierarchy(**numbers),)))
    assert found.mechanism == "gaussian"
    assert found.noise.scale == pytest.approx(1e-4)
    with refuses(RefusedError, Cause.NOTHING_FOUND, "mechanism gaussian"):
        plan(problem(theta=(Hierarchy(**numbers),)), "transport")


def test_one_of_several_hierarchies_holds() -> None:
    """Additive noise for both; the strongest correlation decides."""
    steep = NUMBERS | {"between_correlation": NUMBERS["between_correlation"] | {("weight", "income"): 0.6}}
    both = plan(problem(theta=(Hierarchy(**NUMBERS), Hierarchy(**steep))), "gaussian")
    alone = plan(problem(theta=(Hierarchy(**steep),)), "gaussian")
    assert both.noise.scale == pytest.approx(alone.noise.scale)
    with refuses(RefusedError, Cause.SECRET, "mechanism gaussian"):
        plan(problem(theta=(Hierarchy(**NUMBERS), Hierarchy(**steep))), "transport")


def test_model_errors_grow() -> None:
    for name in ("gaussian", "transport"):
        rows = plan(problem(), name).model_error
        real = [row.epsilon or math.inf for row in rows]
        assert real == sorted(real)
        assert 1 < real[0] < 2


def test_rows_are_clipped_where_that_is_surely_harmless() -> None:
    for name in ("gaussian", "transport"):
        wide = plan(problem(bounds={"weight": (-150.0, 450.0)}), name)
        assert wide.columns[0].clip == (-150.0, 450.0)
        assert wide.certificate.evidence.clip_delta > 0  # type: ignore[attr-defined]
        narrow = plan(problem(bounds={"weight": (60.0, 250.0)}), name)
        assert narrow.columns[0].clip is None
        assert any("bounds are not applied" in note for note in narrow.notes)


def test_single_persons() -> None:
    found = plan(problem(individuals=1.0, bounds={"weight": (-150.0, 450.0)}))
    assert found.mechanism == "gaussian"
    assert found.noise.individuals > 0


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("changes", "mechanism", "says"),
    [
        ({"known_rows": 0.1}, "gaussian", "known_rows: must be 0"),
        ({"known_rows": 0.1}, "transport", "known_rows: must be 0"),
        ({"delta": 0.0}, "gaussian", "delta: "),
        ({"secrets": (Parameter("income"),)}, "gaussian", "needs between"),
        ({"secrets": (Secret("mean(income)", within=1.0),)}, "gaussian", "as in parameter: income"),
        ({"secrets": (Parameter("shoe", within=1.0),)}, "gaussian", "shoe must have between_sd"),
        ({"queries": (Query("avg", "shoe"),)}, "gaussian", "shoe must have between_sd"),
        ({"secrets": (Parameter("income", within=1e-200),)}, "gaussian", "choose another unit"),
        ({"secrets": (INCOME, Parameter("height", within=1.0))}, "transport", "one secret"),
        ({"queries": (Query("avg", "weight"), Query("avg", "height"))}, "transport", "one column at a time"),
        ({"queries": (Query("avg", "income"),)}, "transport", "itself is sensitive"),
        ({"queries": (Query("count"),)}, "transport", "one column at a time"),
        ({"individuals": 1.0}, "transport", "individuals: "),
        ({"theta": (Hierarchy(**(NUMBERS | {"mean": {}})),)}, "transport", "assume.mean: needs the mean of income"),
        ({"theta": (Hierarchy(**(NUMBERS | {"mean": {}})),)}, "constant", "needs the mean of weight"),
        ({"resolution": {"weight": 20.0}}, "gaussian", "at least twice the spacing"),
        ({"resolution": {"weight": 1.0, "income": 20_000.0}}, "transport", "at least twice the spacing"),
        ({"n": 50}, "gaussian", "at least 100 rows"),
        ({"theta": ()}, "transport", "needs a gaussian, a groups or a hierarchy assumption"),
        ({"queries": (Query("avg", "weight", where="height > 66"),)}, "transport", "needs the subset's size"),
    ],
)
def test_refusals(changes: dict[str, Any], mechanism: str, says: str) -> None:
    with pytest.raises(AttrprivError, match=says) as caught:
        plan(problem(**changes), mechanism)
    assert "\n" not in str(caught.value)


def test_gaussian_rows_say_nothing_of_a_population() -> None:
    rows = Gaussian(sd={"weight": 25.0, "income": 3e4}, correlation={("weight", "income"): 0.3}, tolerance=0)
    with refuses(RefusedError, Cause.SECRET, "a hierarchy assumption"):
        plan(problem(theta=(rows,)), "gaussian")


def test_every_other_mechanism_says_why_not() -> None:
    ranking = rank(problem())
    assert {found.mechanism for found in ranking.plans} == {"transport", "gaussian", "constant"}
    constant = next(found for found in ranking.plans if found.mechanism == "constant")
    assert constant.error.rmse == pytest.approx(math.hypot(5, 0.25))


# -------------------------------------------------------------------------------------------------------- certificates


def changed(found: Plan, **evidence: Any) -> Plan:
    made = found.certificate.evidence.model_copy(update=evidence)
    return found.model_copy(update={"certificate": found.certificate.model_copy(update={"evidence": made})})


@pytest.mark.parametrize(
    "clamp",
    [
        {"reach": 0.6},
        {"slopes": ((1.8e-4,),)},
        {"slopes": ((-3 / 16_000,),)},
        {"slopes": ((math.nan,),)},
        {"period": 10.0},
        {"metric": ((1.0,),)},
        {"reads": {"coefficients": {"weight": 1.0}}},
        {"reads": {"coefficients": {"income": 2.0}}},
        {"reads": {"mask": 0.0}},
    ],
    ids=str,
)
def test_a_changed_clamp_fails_its_certificate(clamp: dict[str, Any]) -> None:
    found, evidence = transported()
    reads = (evidence.clamp.reads[0].model_copy(update=clamp.get("reads", {})),)
    worse = changed(found, clamp=evidence.clamp.model_copy(update=clamp | {"reads": reads}))
    with pytest.raises(CertificateError):
        worse.answers([Fraction(150), Fraction(60_000)])


@pytest.mark.parametrize(
    "check", [{"apart": math.inf}, {"correlation": 0.4}, {"query_between": 4.0}, {"correlation": 1.2}], ids=str
)
def test_a_changed_check_fails_its_certificate(check: dict[str, Any]) -> None:
    found, evidence = transported()
    with pytest.raises(CertificateError):
        changed(found, check=evidence.check.model_copy(update=check)).certificate.verify()


def test_other_noise_than_certified_is_not_drawn() -> None:
    found, _ = transported()
    part = found.columns[0]
    less = found.model_copy(update={"columns": (part.model_copy(update={"independent": part.independent / 2}),)})
    with pytest.raises(CertificateError):
        less.answers([Fraction(150), Fraction(60_000)])
    with pytest.raises(CertificateError, match="needs 2 averages"):
        found.answers([Fraction(150)])
    with pytest.raises(UsageError, match="average of income"):
        found.randomise(150.0)
