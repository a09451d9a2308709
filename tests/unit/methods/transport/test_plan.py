"""`transport` under a Gaussian assumption: the published numbers, refusals, its certificate, and what it does to averages.

What is released given a secret is in tests/property/test_transport_twin.py; here is everything that needs no law.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.gaussian import gaussians
from attrpriv.errors import CertificateError, RefusedError, UsageError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.clamp import Clamp, Read, clamped, kept
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.gaussian import plan as gaussian
from attrpriv.methods.transport import plan as gaussian_transport
from attrpriv.methods.transport.case import told
from attrpriv.methods.transport.proof import TransportEvidence
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses

INCOME = Secret("mean(income)", between=(20_000.0, 200_000.0))
AGE = Secret("mean(age)", between=(30.0, 60.0))
JOINT = Secret(("mean(income)", "mean(age)"), between={"mean(income)": (20_000.0, 200_000.0), "mean(age)": (30.0, 60.0)})
MEAN = {"weight": 170.0, "height": 100.0, "income": 60_000.0, "age": 40.0}
SD = {"weight": 25.0, "height": 10.0, "income": 30_000.0, "age": 12.0}
RHO = {
    ("weight", "income"): 0.3,
    ("weight", "height"): 0.5,
    ("height", "income"): 0.2,
    ("weight", "age"): 0.1,
    ("height", "age"): -0.2,
    ("income", "age"): 0.4,
}


def people(tolerance: Any = 0, **changes: Any) -> Gaussian:
    return Gaussian(**{"mean": MEAN, "sd": SD, "correlation": RHO, "tolerance": tolerance} | changes)


def school(*queries: str, **changes: Any) -> Problem:
    stated = {
        "queries": tuple(Query("avg", name) for name in queries or ("weight",)),
        "secrets": (INCOME,),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 10_000,
        "theta": (people(),),
        "resolution": {"weight": 0.001, "height": 0.001, "income": 1.0, "age": 0.01},
    }
    return Problem(**stated | changes)


def evidence_of(found: Plan) -> TransportEvidence:
    assert isinstance(found.certificate.evidence, TransportEvidence)
    return found.certificate.evidence


def transported(asked: Problem) -> tuple[Plan, TransportEvidence]:
    found = gaussian_transport.plan(asked)
    return found, evidence_of(found)


# ------------------------------------------------------------------------------------------------------------- the numbers

# The theory's numbers have three digits and leave out that 2% of delta are kept back. By the formula below that is up to
# .05% of the error at epsilon .1 and .5% at 5; with half a digit in the third place (.4% of .0137) 1% holds both.
DIGITS = 0.01


@pytest.mark.parametrize(("epsilon", "rmse"), [(0.1, 0.0724), (0.5, 0.0637), (1.0, 0.0544), (2.0, 0.0395), (5.0, 0.0137)])
def test_school_example(epsilon: float, rmse: float) -> None:
    found, evidence = transported(school(epsilon=epsilon))
    assert found.error.rmse == pytest.approx(rmse, rel=DIGITS)
    # Exactly: the reach is mu* standard deviations of what income leaves open of weight, half to each side.
    left = evidence.reserve + evidence.grid_eta * (1 + math.exp(epsilon))
    mu = gaussian_mu(epsilon - 2 * evidence.lam, (1e-6 - left) * math.exp(-evidence.lam))
    sd = math.hypot(0.25 * math.sqrt(1 - 0.09), 1e-7)
    h, w = mu * sd / 2, 0.075
    assert evidence.clamp.reach == pytest.approx(h, rel=1e-7)
    mean_square = 2 * ((w * w + h * h) * ndtr(-h / w) - w * h * norm.pdf(h / w)) + 1e-14
    assert found.error.rmse == pytest.approx(math.sqrt(mean_square), rel=1e-6)


@pytest.mark.parametrize(("tolerance", "rmse"), [(0.01, 1.89), (0.1, 19.0)])
def test_school_example_with_a_slope_tolerance(tolerance: float, rmse: float) -> None:
    assert transported(school(theta=(people({"slope": tolerance}),)))[0].error.rmse == pytest.approx(rmse, rel=DIGITS)


def test_the_numbers_without_the_reserve_and_the_mask_are_the_theorys() -> None:
    for epsilon, rmse in [(0.1, 0.0724), (0.5, 0.0637), (1.0, 0.0544), (2.0, 0.0395), (5.0, 0.0137)]:
        h, w = gaussian_mu(epsilon, 1e-6) * 0.25 * math.sqrt(0.91) / 2, 0.075
        mean_square = 2 * ((w * w + h * h) * ndtr(-h / w) - w * h * norm.pdf(h / w))
        # One unit of the last digit: at epsilon 2 it is .03945.
        assert math.sqrt(mean_square) == pytest.approx(rmse, abs=1e-4)


def test_alpha95_is_the_tail_of_the_clamped_normal() -> None:
    found, evidence = transported(school())
    assert found.error.alpha95 == pytest.approx(0.075 * ndtri(0.975) - evidence.clamp.reach, rel=1e-4)


def test_model_error_is_the_theorys() -> None:
    found, _ = transported(school())
    assert found.model_error[0].off_by == 0.01
    assert found.model_error[0].epsilon == pytest.approx(11.8, rel=0.01)
    assert gaussian.plan(school()).model_error[0].epsilon == pytest.approx(1.01, rel=0.001)


def test_the_error_shrinks_with_the_table() -> None:
    small, large = (transported(school(n=n))[0].error.rmse for n in (10_000, 1_000_000))
    assert small is not None
    assert large is not None
    assert small / large == pytest.approx(10, rel=1e-3)


def test_the_query_columns_mean_is_not_needed() -> None:
    without = people(mean={"income": 60_000.0})
    assert transported(school(theta=(without,)))[0].error == transported(school())[0].error


# ------------------------------------------------------------------------------------------------ never worse than gaussian

RANGES = st.one_of(
    st.builds(lambda w: {"within": w}, st.floats(1.0, 1e5)),
    st.builds(lambda a, w: {"between": (a, a + w)}, st.floats(-1e5, 1e5), st.floats(1.0, 3e5)),
    st.builds(
        lambda a, w, d: {"between": (a, a + w), "within": d}, st.floats(-1e5, 1e5), st.floats(1.0, 3e5), st.floats(1.0, 1e5)
    ),
)
BOXES = st.one_of(
    st.just(0),
    st.fixed_dictionaries({"slope": st.floats(0, 0.5), "sd": st.floats(0, 0.2), "mean": st.floats(0, 1)}),
    st.fixed_dictionaries({"correlation": st.floats(0, 0.3), "sd": st.floats(0, 0.2), "mean": st.floats(0, 1)}),
)


@given(
    st.sampled_from(["mean(income)", "sum(income)", "mean(2 * income)", "mean(income - 100 * age)", "mean(weight)"]),
    RANGES,
    BOXES,
    st.floats(-0.95, 0.95),
    st.sampled_from([100, 10_000, 10**6]),
    st.floats(0.05, 6),
    st.sampled_from(["avg", "sum"]),
)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_with_one_secret_it_is_never_worse_than_gaussian(
    text: str, ranged: dict[str, Any], tolerance: Any, rho: float, n: int, epsilon: float, kind: Any
) -> None:
    unit = float(n) if text.startswith("sum") else 1.0
    ranged = {key: tuple(x * unit for x in v) if isinstance(v, tuple) else v * unit for key, v in ranged.items()}
    theta = Gaussian(
        mean=MEAN,
        sd=SD,
        correlation={**dict.fromkeys(RHO, 0.0), ("weight", "income"): rho, ("income", "age"): 0.1},
        tolerance=tolerance,
    )
    asked = school(theta=(theta,), secrets=(Secret(text, **ranged),), n=n, epsilon=epsilon, queries=(Query(kind, "weight"),))
    try:
        plain = gaussian.plan(asked)
    except Refusal:
        assume(False)
    found = gaussian_transport.plan(asked)
    found.certificate.verify()
    assert found.error.rmse is not None
    assert plain.error.rmse is not None
    assert found.error.rmse <= plain.error.rmse * (1 + 1e-6)


def test_nothing_gained_is_gaussians_plan_and_says_so() -> None:
    asked = school(secrets=(Secret("mean(income)", within=10.0),))
    found = gaussian_transport.plan(asked)
    assert isinstance(found.certificate.evidence, GaussianEvidence)
    assert found.mechanism == "transport"
    assert "plan of gaussian" in found.notes[-1]
    assert found.noise == gaussian.plan(asked).noise


# --------------------------------------------------------------------------------------------------------------- refusals

LIST = [
    ({"delta": 0.0}, "delta above 0"),
    ({"individuals": 1.0}, "individuals"),
    ({"queries": (Query("count"),)}, "number of rows is public"),
    ({"theta": (people(mean={"weight": 170.0}),)}, "needs the mean of income"),
    ({"theta": (people({"slope": 0.1, "shape": {"lambda": 0.1, "eta": 0.0}}),)}, "shape"),
    ({"known_rows": 0.01, "secrets": (INCOME, AGE)}, "known_rows"),
    ({"known_rows": 0.01, "queries": (Query("avg", "weight"), Query("avg", "height"))}, "known_rows"),
    ({"known_rows": 0.01, "secrets": (Secret("mean(income - 100 * age)", within=10.0),)}, "known_rows"),
    ({"secrets": (INCOME, Secret("mean(age - height)", within=1.0))}, "one column each"),
    ({"secrets": (INCOME, Secret("mean(2 * age)", within=1.0))}, "one column each"),
    ({"secrets": (INCOME, Secret("mean(weight)", within=1.0))}, "sensitive column cannot be asked for"),
    ({"secrets": (JOINT,), "theta": (people({"slope": 0.01}),)}, "hidden jointly need exactly stated moments"),
    ({"secrets": (Secret(("mean(income)", "sum(income)"), within=1.0),)}, "determine one another"),
    (
        {
            "secrets": (INCOME, AGE),
            "theta": (people(correlation={**RHO, ("income", "age"): 1.0, ("weight", "age"): 0.3, ("height", "age"): 0.2}),),
        },
        "leaves open of a row",
    ),
    (
        {"secrets": (Secret("mean(income)", cases=("< 50000", ">= 50000")),), "theta": (people({"slope": 0.01}),)},
        "exactly stated slopes",
    ),
    ({"theta": ()}, "gaussian assumption"),
    ({"secrets": (Secret("share(income > 5)", between=(0.1, 0.2)),)}, "means and sums"),
    ({"n": 50}, "at least 100 rows"),
]


@pytest.mark.parametrize(("changes", "reason"), LIST)
def test_refusals(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refusal, match=reason):
        gaussian_transport.plan(school(**changes))


def test_a_mean_that_lacks_is_the_policys_to_add() -> None:
    with refuses((UsageError, RefusedError), Cause.NUMBERS, "the mean of income"):
        plan(school(theta=(people(mean={}),)), "transport")


# ------------------------------------------------------------------------------------------------------ several of everything


def test_two_secrets_take_back_the_regression_on_both() -> None:
    found, evidence = transported(school(secrets=(INCOME, AGE)))
    inner = np.array([[1, 0.4], [0.4, 1]])
    wanted = np.linalg.inv(inner) @ np.array([0.3, 0.1]) * 25 / np.array([30_000, 12])
    assert evidence.clamp.slopes[0] == pytest.approx(wanted, rel=1e-12)
    assert [read.mask for read in evidence.clamp.reads] == [1e-4, 1e-6]
    assert [check.secret for check in evidence.checks] == ["mean(income)", "mean(age)"]
    residual = 625 * (1 - np.array([0.3, 0.1]) @ np.linalg.inv(inner) @ np.array([0.3, 0.1])) / 10_000
    assert evidence.checks[0].credited[0][0] == pytest.approx(residual, rel=1e-9)
    assert found.error.rmse is not None
    assert gaussian.plan(school(secrets=(INCOME, AGE))).error.rmse > 100 * found.error.rmse  # type: ignore[operator]


def test_joint_secrets_hide_any_two_values() -> None:
    found, evidence = transported(school(secrets=(JOINT,)))
    (check,) = evidence.checks
    assert check.regression == evidence.clamp.slopes
    assert check.moves(evidence.clamp.slopes).told is None
    alone = transported(school(secrets=(INCOME, AGE)))[0]
    assert found.error.rmse == pytest.approx(alone.error.rmse, rel=1e-6)


def test_a_joint_secret_beside_others_moves_what_else_is_read() -> None:
    """Regression: a statistic that is read and not part of the joint secret moves with it, and its order is its own."""
    height = Secret("mean(height)", within=5.0)
    for secrets in itertools.permutations([height, JOINT]):
        _, evidence = transported(school(secrets=secrets))
        names = [read.column for read in evidence.clamp.reads]
        check = next(check for check in evidence.checks if check.regression)
        inner = np.array([[1, 0.4], [0.4, 1]])
        kappa = np.linalg.inv(inner) @ np.array([0.2, -0.2]) * 10 / np.array([30_000, 12])
        wanted = {"income": 180_000.0, "age": 30.0, "height": float(np.abs(kappa) @ np.array([180_000, 30]))}
        assert [read.off for read in check.reads] == pytest.approx([wanted[name] for name in names], rel=1e-6)
        assert all(read.mask > 0 for read in evidence.clamp.reads)


def test_a_list_of_assumptions_checks_each_member() -> None:
    other = people(correlation={**RHO, ("weight", "income"): 0.32})
    found, evidence = transported(school(theta=(people(), other)))
    slopes = [0.3 * 25 / 30_000, 0.32 * 25 / 30_000]
    assert evidence.clamp.slopes[0][0] == pytest.approx(sum(slopes) / 2, rel=1e-12)
    assert [check.theta for check in evidence.checks] == [0, 1]
    left = [abs(check.moves(evidence.clamp.slopes).untold[0]) for check in evidence.checks]
    assert left == pytest.approx([(slopes[1] - slopes[0]) / 2 * 180_000] * 2, rel=1e-9)
    assert found.error.rmse is not None
    assert found.error.rmse > 1


def test_a_list_of_assumptions_and_a_joint_secret() -> None:
    """Regression: exactly stated members differ from one another, and from the slopes that are taken back."""
    other = people(correlation={**RHO, ("weight", "income"): 0.32})
    found = gaussian_transport.plan(school(theta=(people(), other), secrets=(JOINT,)))
    alone = gaussian_transport.plan(school(secrets=(JOINT,)))
    assert found.error.rmse is not None
    assert alone.error.rmse is not None
    assert found.error.rmse > 10 * alone.error.rmse
    evidence = evidence_of(found)
    check = evidence.checks[1]
    exact = np.array([[0.32, 0.1]]) @ np.linalg.inv(np.array([[1, 0.4], [0.4, 1]])) * 25 / np.array([30_000, 12])
    wanted = np.abs(exact - np.array(evidence.clamp.slopes)) @ np.array([180_000, 30])
    assert check.moves(evidence.clamp.slopes).untold_off == pytest.approx(wanted, rel=1e-6)


def test_a_combination_is_read_as_it_is() -> None:
    secret = Secret("mean(income - 2 * age)", within=5_000.0)
    found, evidence = transported(school(secrets=(secret,)))
    (read,) = evidence.clamp.reads
    assert dict(read.coefficients) == {"income": 1.0, "age": -2.0}
    assert (read.centre, read.mask) == (60_000.0 - 80.0, 0.0)
    variance = 30_000**2 + 4 * 144 - 4 * 0.4 * 30_000 * 12
    shared = 25 * (0.3 * 30_000 - 2 * 0.1 * 12)
    assert evidence.clamp.slopes[0][0] == pytest.approx(shared / variance, rel=1e-12)
    assert evidence.checks[0].credited[0][0] * 10_000 == pytest.approx(625 - shared**2 / variance, rel=1e-9)
    assert list(found.read_columns) == ["income", "age"]


def test_sums_and_multiples_are_one_statistic() -> None:
    secrets = (INCOME, Secret("sum(income)", within=1e8), Secret("mean(-2 * income)", within=500.0))
    _, evidence = transported(school(secrets=secrets))
    assert len(evidence.clamp.reads) == 1
    moved = [check.reads[0].by for check in evidence.checks]
    assert [abs(x) for x in moved] == pytest.approx([180_000, 10_000, 250])
    for check in evidence.checks:
        assert check.moves(evidence.clamp.slopes).untold == pytest.approx([0.0], abs=1e-9)


def test_the_sensitive_column_itself_is_clamped_around_its_mean() -> None:
    found, evidence = transported(school("income"))
    assert evidence.clamp.slopes == ((1.0,),)
    assert evidence.checks[0].credited == ((0.0,),)
    mu = gaussian_mu(1.0, 0.98e-6)
    assert evidence.clamp.reach == pytest.approx(mu * found.noise.scale / 2, rel=1e-5)
    assert found.error.rmse is not None
    assert found.error.rmse < 300  # the constant answer
    assert found.error.rmse < gaussian.plan(school("income")).error.rmse / 1000  # type: ignore[operator]


def test_cases_without_an_end_are_hidden_point_by_point() -> None:
    secret = Secret("mean(income)", cases=("< 50000", ">= 50000"))
    found, evidence = transported(school(secrets=(secret,)))
    assert evidence.clamp.reach == pytest.approx(transported(school())[1].clamp.reach, rel=1e-6)
    assert evidence.checks[0].reads[0].by >= 2 * 10_000 + 200 * 300
    assert any("point by point" in note for note in found.notes)


def test_cases_without_an_end_count_the_tolerance_of_the_mean() -> None:
    """Regression: with a mean known to half an sd, the mean of a million rows may be 500 standard errors off."""
    secret, tolerance = Secret("mean(income)", cases=("< 60000", ">= 60000")), {"slope": 0.0, "mean": 0.5}
    asked = school(secrets=(secret,), n=10**6, theta=(people(tolerance, correlation={**RHO, ("weight", "income"): 0.0005}),))
    (check,) = told(asked, gaussians(asked), {}).checks
    assert check.reads[0].by >= 2 * 15_000 + 200 * 30


def test_bounded_cases_keep_a_finite_pair_under_a_tolerance() -> None:
    secret = Secret("mean(income)", cases=("[50000, 60000)", "[60000, 70000]"))
    _, evidence = transported(school(secrets=(secret,), theta=(people({"slope": 0.01}),)))
    assert evidence.checks[0].reads[0].by == 20_000


def test_known_rows_take_variance_and_add_to_the_slopes() -> None:
    found, evidence = transported(school(known_rows=0.01))
    (check,) = evidence.checks
    assert check.credited[0][0] == pytest.approx(0.99 * 625 * 0.91 / 10_000, rel=1e-9)
    assert check.own_off[0] == pytest.approx(0.01 * 0.00025 * 180_000, rel=1e-6)
    assert found.error.rmse == pytest.approx(1.89, rel=0.01)


def test_a_tolerance_on_means_costs_accuracy_only() -> None:
    exact, drifting = (transported(school(theta=(people({"slope": 0.0, "mean": m}),))) for m in (0.0, 0.01))
    assert exact[1].clamp == drifting[1].clamp
    assert exact[0].error.rmse is not None
    assert drifting[0].error.rmse is not None
    assert drifting[0].error.rmse > exact[0].error.rmse


# -------------------------------------------------------------------------------------------------------------- staircases


def test_stairs_where_every_secret_names_near_values() -> None:
    found, evidence = transported(school(secrets=(Secret("mean(income)", within=300.0),)))
    assert found.columns[0].parameters["form"] == "staircase"
    assert evidence.clamp.period == pytest.approx(0.075, rel=1e-6)
    assert 2 * evidence.clamp.reach < evidence.clamp.period  # type: ignore[operator]
    plain = transported(school(secrets=(Secret("mean(income)", between=(59_850.0, 60_150.0)),)))[0]
    assert found.error.rmse is not None
    assert plain.error.rmse is not None
    assert found.error.rmse < plain.error.rmse


@pytest.mark.parametrize(
    "secrets",
    [
        (Secret("mean(income)", within=300.0), AGE),
        (Secret("mean(income)", within=300.0), Secret("sum(income)", between=(5e8, 7e8))),
        (Secret("mean(income)", within=300.0), Secret("mean(income)", cases=("< 50000", ">= 50000"))),
    ],
)
def test_no_stairs_with_a_secret_that_has_no_within(secrets: tuple[Secret, ...]) -> None:
    assert transported(school(secrets=secrets))[1].clamp.period is None


def test_stairs_are_as_wide_as_the_widest_secret() -> None:
    secrets = (Secret("mean(income)", within=300.0), Secret("mean(age)", within=0.3))
    _, evidence = transported(school(secrets=secrets))
    assert evidence.clamp.period is not None
    far = [abs(check.moves(evidence.clamp.slopes).told[0]) for check in evidence.checks]  # type: ignore[index]
    assert evidence.clamp.period == pytest.approx(max(far), rel=1e-6)
    assert evidence.clamp.period > max(far)


def test_secrets_that_tell_nothing_need_no_stairs() -> None:
    """Regression: a stair of width 0."""
    nothing = people(correlation={**RHO, ("weight", "income"): 0.0})
    found = gaussian_transport.plan(school(theta=(nothing,), secrets=(Secret("mean(income)", within=300.0),)))
    assert found.error.rmse == pytest.approx(1e-7, rel=1e-3)


def test_several_averages_climb_along_one_line_only() -> None:
    near = Secret("mean(income)", within=300.0)
    _, line = transported(school("weight", "height", secrets=(near,)))
    assert line.clamp.period is not None
    _, plane = transported(school("weight", "height", secrets=(near, Secret("mean(age)", within=0.3))))
    assert plane.clamp.period is None


# ------------------------------------------------------------------------------------------------------- digits of the data


def test_a_column_of_a_hidden_combination_has_a_coarser_lattice() -> None:
    """Regression: given the sum of a - 10 b, the sum of whole a's is known up to multiples of 10."""
    rows = Gaussian(mean={"a": 50.0, "b": 40.0}, sd={"a": 40.0, "b": 40.0}, correlation={("a", "b"): 0.3}, tolerance=0)

    def masks(text: str, **spacing: float) -> float:
        asked = Problem(
            queries=(Query("avg", "a"),),
            secrets=(Secret(text, within=0.01),),
            epsilon=1.0,
            delta=1e-6,
            n=1000,
            theta=(rows,),
            resolution={"a": 1.0, "b": 1.0} | spacing,
        )
        found = [planner(asked) for planner in (gaussian.plan, gaussian_transport.plan)]
        assert len({plan.columns[0].parameters["mask"] for plan in found}) == 1
        return float(found[0].columns[0].parameters["mask"]) * 1000

    assert masks("mean(a - 10 * b)") == pytest.approx(10)
    assert masks("mean(10 * a - b)") == pytest.approx(1)
    assert masks("mean(a + b)") == pytest.approx(1)
    assert masks("mean(2 * a - 3 * b)") == pytest.approx(3)
    assert masks("mean(a - 10 * b)", b=0.1) == pytest.approx(1)
    assert masks("mean(a - 0.3 * b)", a=0.1) == pytest.approx(0.3)
    with refuses(Refusal, Cause.PRECISION, "a finer resolution"):
        masks("mean(a - 1.0001 * b)")


def test_a_combination_with_the_query_column_needs_spacings() -> None:
    asked = school(secrets=(Secret("mean(weight - 2 * age)", within=1.0),), resolution={"weight": 0.001})
    with refuses(Refusal, Cause.PUBLIC_FACT, "resolution"):
        gaussian_transport.plan(asked)


# ------------------------------------------------------------------------------------------------- the certificate, tampered


def changed(certificate: Certificate, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Certificate:
    stored = json.loads(certificate.model_dump_json())
    target = stored["evidence"]
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = change(target[path[-1]])
    return Certificate.model_validate(stored)


TWO = {"secrets": (INCOME, AGE)}
NEAR = {"secrets": (Secret("mean(income)", within=300.0),)}


def more(x: float) -> float:
    return x * 1.01 + 1e-3


TAMPERED: list[tuple[dict[str, Any], tuple[Any, ...], Callable[[Any], Any]]] = [
    ({}, ("clamp", "reach"), lambda x: x * 1.001),
    ({}, ("clamp", "slopes", 0, 0), lambda x: x * 1.0001),
    ({}, ("clamp", "slopes", 0, 0), lambda _: 0.0),
    ({}, ("clamp", "slopes"), lambda rows: [*rows, *rows]),
    ({}, ("clamp", "slopes"), lambda rows: [[*rows[0], 0.0]]),
    ({}, ("clamp", "reads", 0, "coefficients"), lambda _: {"income": 2.0}),
    ({}, ("clamp", "reads", 0, "coefficients"), lambda _: {"age": 1.0}),
    ({}, ("clamp", "reads"), lambda reads: [*reads, *reads]),
    ({}, ("clamp", "period"), lambda _: 1e-3),
    ({}, ("clamp", "metric"), lambda _: [[2.0]]),
    ({}, ("checks",), lambda _: []),
    ({}, ("checks", 0, "own", 0), more),
    ({}, ("checks", 0, "own_off", 0), more),
    ({}, ("checks", 0, "own"), lambda _: []),
    ({}, ("checks", 0, "reads", 0, "by"), more),
    ({}, ("checks", 0, "reads", 0, "off"), more),
    ({}, ("checks", 0, "reads"), lambda reads: [*reads, *reads]),
    ({}, ("checks", 0, "credited", 0, 0), lambda x: x * 0.999),
    ({}, ("checks", 0, "credited", 0, 0), lambda x: -x),
    ({}, ("checks", 0, "credited"), lambda _: []),
    ({}, ("checks", 0, "regression"), lambda _: [[0.0]]),
    ({}, ("independent", 0), lambda x: x * 0.999),
    ({}, ("independent",), lambda rows: [*rows, *rows]),
    ({}, ("least", 0), lambda x: x * 1.001),
    ({}, ("least",), lambda _: []),
    ({}, ("columns",), lambda names: [*names, "height"]),
    ({}, ("grid_lambda",), more),
    ({}, ("lattice_lambda",), more),
    ({}, ("reserve",), lambda x: x * 1.1),
    ({}, ("fit_delta",), lambda _: 1e-9),
    ({}, ("factor",), lambda _: [[]]),
    ({}, ("factor",), lambda _: [[1.0], [1.0]]),
    (TWO, ("clamp", "reads", 0, "mask"), lambda x: x / 2),
    (TWO, ("clamp", "reads", 1, "mask"), lambda _: 0.0),
    (TWO, ("clamp", "slopes", 0, 1), lambda _: 0.0),
    (TWO, ("clamp", "reads"), lambda reads: reads[::-1]),
    (TWO, ("checks", 0, "reads"), lambda reads: reads[::-1]),
    (TWO, ("checks", 0, "reads"), lambda reads: reads[:1]),
    (TWO, ("columns",), lambda _: ["age"]),
    (NEAR, ("clamp", "period"), lambda x: x * 0.999),
    (NEAR, ("clamp", "reach"), lambda x: x * 1.001),
    ({"secrets": (JOINT,)}, ("checks", 0, "regression", 0, 0), lambda x: x * 1.01),
    ({"secrets": (JOINT,)}, ("clamp", "slopes", 0, 1), lambda x: x * 1.01),
    ({"secrets": (JOINT,)}, ("clamp", "period"), lambda _: 1e6),
    ({"queries": (Query("avg", "weight"), Query("avg", "height"))}, ("clamp", "metric", 0, 0), lambda x: x * 1.01),
    ({"queries": (Query("avg", "weight"), Query("avg", "height"))}, ("clamp", "metric"), lambda _: []),
    ({"queries": (Query("avg", "weight"), Query("avg", "height"))}, ("clamp", "slopes"), lambda rows: rows[::-1]),
]


@pytest.mark.parametrize(("changes", "path", "change"), TAMPERED)
def test_a_changed_certificate_does_not_hold(
    changes: dict[str, Any], path: tuple[Any, ...], change: Callable[[Any], Any]
) -> None:
    found, _ = transported(school(**changes))
    found.certificate.verify()
    with pytest.raises((CertificateError, ValueError)):
        changed(found.certificate, path, change).verify()


@pytest.mark.parametrize("number", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("field", ["reach", "independent", "credited", "own_off"])
def test_numbers_that_are_none_do_not_hold(field: str, number: float) -> None:
    found, evidence = transported(school())
    check = evidence.checks[0]
    planted: dict[str, dict[str, Any]] = {
        "reach": {"clamp": evidence.clamp.model_copy(update={"reach": number})},
        "independent": {"independent": (number,)},
        "credited": {"checks": (check.model_copy(update={"credited": ((number,),)}),)},
        "own_off": {"checks": (check.model_copy(update={"own_off": (number,)}),)},
    }
    with pytest.raises(CertificateError):
        found.certificate.model_copy(update={"evidence": evidence.model_copy(update=planted[field])}).verify()


def test_centres_and_fills_are_no_matter_of_privacy() -> None:
    """They move what may show, not how much: any centre gives the same distance."""
    found, _ = transported(school())
    changed(found.certificate, ("clamp", "reads", 0, "centre"), lambda x: x + 1000).verify()


def test_a_plan_with_other_columns_or_noise_draws_nothing() -> None:
    found, _ = transported(school("weight", "height"))
    averages = [Fraction(170), Fraction(100), Fraction(60_000)]
    found.answers(averages)
    first, second = found.columns
    with pytest.raises(CertificateError):
        found.model_copy(update={"columns": (second, first)}).answers(averages)
    with pytest.raises(CertificateError):
        found.model_copy(
            update={"columns": (first, second.model_copy(update={"independent": second.independent / 2}))}
        ).answers(averages)
    with pytest.raises(CertificateError):
        found.model_copy(update={"epsilon": 0.5}).answers(averages)
    with pytest.raises(CertificateError):
        found.answers(averages[:2])


# ------------------------------------------------------------------------------------------------------------ what is drawn

FRACTIONS = st.fractions(-50, 50, max_denominator=10**6)


@given(FRACTIONS, FRACTIONS, st.floats(0, 3), st.floats(-5, 5))
def test_one_average_is_clamped_exactly(average: Fraction, hidden: Fraction, reach: float, slope: float) -> None:
    made = Clamp(reads=(Read(coefficients={"x": 1.0}, centre=1.25),), slopes=((slope,),), reach=reach)
    y = Fraction(slope) * (hidden - Fraction(5, 4))
    over = max(abs(y) - Fraction(reach), Fraction(0)) * (1 if y > 0 else -1)
    assert clamped(made, [average], [hidden], 40) == [average - over]


@given(st.floats(-100, 100), st.floats(-100, 100), st.floats(0.01, 3), st.floats(0.01, 10))
def test_stairs_climb_by_twice_the_reach_and_never_faster(a: float, b: float, reach: float, period: float) -> None:
    made = Clamp(reads=(Read(coefficients={"x": 1.0}, centre=0.0),), slopes=((1.0,),), reach=reach, period=period)
    one, other = (float(kept(made, [Fraction(x)])[0]) for x in (a, b))
    rise = min(2 * reach, period)
    assert abs(one - other) <= abs(a - b) + 1e-12
    assert (one - other) * (a - b) >= -1e-12
    assert float(kept(made, [Fraction(-a)])[0]) == pytest.approx(-one, abs=1e-12)
    if abs(a - b) <= period:
        assert abs(one - other) <= rise + 1e-12
    stairs = math.floor(a / period + 0.5)
    assert one == pytest.approx(stairs * rise + min(max(a - stairs * period, -reach), reach), abs=1e-9)


@given(st.integers(2, 3), st.data())
def test_a_ball_in_its_metric(size: int, data: st.DataObject) -> None:
    """h(Y) is the nearest point of the ball: in it, on the ray of Y, and no pair is stretched."""
    numbers = st.floats(-3, 3)
    root = np.array([[data.draw(numbers) for _ in range(size)] for _ in range(size)])
    metric = root @ root.T + 0.1 * np.eye(size)
    reach = data.draw(st.floats(0.01, 2))
    rows = tuple(tuple(float(x) for x in row) for row in metric)
    made = Clamp(reads=(Read(coefficients={"x": 1.0}, centre=0.0),), slopes=((1.0,),) * size, reach=reach, metric=rows)
    inverse = np.linalg.inv(metric)
    points = [np.array([data.draw(numbers) for _ in range(size)]) for _ in range(2)]
    moved = [np.array([float(x) for x in kept(made, [Fraction(float(y)) for y in point])]) for point in points]
    for point, left in zip(points, moved, strict=True):
        length = math.sqrt(point @ inverse @ point)
        assert math.sqrt(left @ inverse @ left) <= reach * (1 + 1e-9)
        assert left == pytest.approx(point * min(1.0, reach / length) if length else point, abs=1e-9)
    before, after = (math.sqrt((d := pair[0] - pair[1]) @ inverse @ d) for pair in (points, moved))
    assert after <= before * (1 + 1e-9) + 1e-12
    assert after <= 2 * reach * (1 + 1e-9)


def test_answers_take_averages_of_columns_first_and_of_reads_last() -> None:
    """The mask is 1e-7 here, so the order can be read off what comes out."""
    found, evidence = transported(school("weight", "height", secrets=(INCOME, AGE)))
    assert list(found.read_columns) == ["income", "age"]
    slopes = np.array(evidence.clamp.slopes)
    averages = [Fraction(170), Fraction(100), Fraction(90_000), Fraction(43)]
    y = slopes @ np.array([30_000.0, 3.0])
    metric = np.linalg.inv(np.array(evidence.clamp.metric))
    left = y * min(1.0, evidence.clamp.reach / math.sqrt(y @ metric @ y))
    wanted = np.array([170.0, 100.0]) - y + left
    for _ in range(3):
        # Masks of 1e-4 on income and 1e-6 on age move answers by some 1e-7 times the slopes; noise has 1e-7.
        assert found.answers(averages) == pytest.approx(wanted, abs=37 * 3e-7)


def test_sums_are_multiples_of_the_same_answer() -> None:
    asked = school(queries=(Query("avg", "weight"), Query("sum", "weight"), Query("count")))
    found, _ = transported(asked)
    average, total, count = found.answers([Fraction(170), Fraction(60_010)])
    assert total == pytest.approx(average * 10_000, rel=1e-15)
    assert count == 10_000
    assert found.error_of(asked.queries[1]).rmse == pytest.approx(10_000 * found.error_of(asked.queries[0]).rmse)  # type: ignore[operator]


def test_missing_values_of_what_is_read_have_their_public_value() -> None:
    found, evidence = transported(school(missing={"income": 50_000.0, "weight": 160.0}))
    assert dict(evidence.clamp.reads[0].fill) == {"income": 50_000.0}
    assert found.read_columns == {"income": 50_000.0}
    assert found.columns[0].fill == 160.0


def test_a_single_value_is_not_enough() -> None:
    found, _ = transported(school())
    with pytest.raises(UsageError, match="average of income"):
        found.randomise(170.0)


# ----------------------------------------------------------------------------------------------------------- errors, and JSON

SHAPES: dict[str, Problem] = {
    "line": school(),
    "stairs": school(**NEAR),
    "bias": school(theta=(people({"slope": 0.0, "mean": 0.01}),)),
    "two secrets": school(**TWO),
    "two averages": school("weight", "height"),
    "two of both": school("weight", "height", **TWO),
    "tolerance": school("weight", "height", theta=(people({"slope": 0.02, "sd": 0.01}),), **TWO),
    "joint": school(secrets=(JOINT,)),
    "itself": school("income"),
}


@pytest.mark.parametrize("name", list(SHAPES))
def test_a_plan_is_its_json(name: str) -> None:
    found = gaussian_transport.plan(SHAPES[name])
    again = Plan.model_validate_json(found.model_dump_json())
    assert again == found
    again.certificate.verify()
    assert again.certificate.evidence == found.certificate.evidence
    again.answers([Fraction(100)] * (len(again.columns) + len(again.read_columns)))
    for query in found.queries:
        assert again.spread_of(query).reach(0.9) == found.spread_of(query).reach(0.9)


@pytest.mark.parametrize("name", list(SHAPES))
def test_the_spread_of_an_answer_is_its_expected_error(name: str) -> None:
    asked = SHAPES[name]
    found = gaussian_transport.plan(asked)
    for query in found.queries:
        assert found.spread_of(query).reach(0.95) == pytest.approx(found.error_of(query).alpha95, rel=1e-6)


@pytest.mark.parametrize("name", list(SHAPES))
def test_the_predicted_error_is_the_simulated_one(name: str) -> None:
    """400,000 tables of the assumption as sufficient statistics: within 2%, which is over 8 standard errors of such an rmse."""
    asked = SHAPES[name]
    found = gaussian_transport.plan(asked)
    evidence = found.certificate.evidence
    if not isinstance(evidence, TransportEvidence):
        pytest.skip("nothing is taken back")
    rng, clamp = np.random.default_rng(4), evidence.clamp
    member = asked.theta[0]
    assert isinstance(member, Gaussian)
    t = member.tolerance
    names = [next(iter(read.coefficients)) for read in clamp.reads]
    sds = np.array([member.sd_range(name)[1] for name in names])
    x = rng.multivariate_normal(np.zeros(len(names)), member.correlation_matrix(names) * np.outer(sds, sds) / asked.n, 400_000)
    x += rng.normal(size=x.shape) * [read.mask for read in clamp.reads] + t.mean * sds
    y = x @ np.array(clamp.slopes).T
    if clamp.period is not None:
        stairs = np.floor(y / clamp.period + 0.5)
        shown = stairs * min(2 * clamp.reach, clamp.period) + np.clip(y - stairs * clamp.period, -clamp.reach, clamp.reach)
    else:
        inverse = np.linalg.inv(np.array(clamp.metric or ((1.0,),)))
        length = np.sqrt(np.einsum("ij,jk,ik->i", y, inverse, y))
        shown = y * np.minimum(1.0, clamp.reach / np.maximum(length, 1e-300))[:, None]
    for k, query in enumerate(found.queries):
        off = y[:, k] - shown[:, k] + rng.normal(0, found.columns[k].noise.scale, len(y))
        error = found.error_of(query)
        assert math.sqrt(np.mean(off**2)) == pytest.approx(error.rmse, rel=0.02)
        assert np.mean(np.abs(off)) == pytest.approx(error.mean_absolute, rel=0.02)
        assert np.quantile(np.abs(off), 0.95) == pytest.approx(error.alpha95, rel=0.02)


def test_the_plan_to_compare_with_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And only for the very same problem: another one, be it equal, is planned again, to the same numbers."""
    asked: list[Problem] = []
    planned = gaussian._planned

    def counted(problem: Problem) -> Plan:
        asked.append(problem)
        return planned(problem)

    monkeypatch.setattr(gaussian, "_planned", counted)
    first, second = school("weight", "height"), school("weight", "height")
    one, other = rank(first), rank(second)
    assert [first is asked[0], second is asked[1], len(asked)] == [True, True, 2]
    assert one.plans == other.plans
    assert gaussian.plan(school("height")) != gaussian.plan(first)
