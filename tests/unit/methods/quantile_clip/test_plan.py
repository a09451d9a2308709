"""Plans of the quantile clip: what they promise, what they refuse, what they cost, and how they are released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.errors import CertificateError, UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.quantile_clip import plan as quantile_clip
from attrpriv.methods.quantile_clip.grid import rounding_charge
from attrpriv.methods.quantile_clip.proof import QuantileClipEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses

MOMENTS: dict[str, Any] = {
    "mean": {"weight": 150.0, "height": 67.0, "income": 60_000.0},
    "sd": {"weight": 25.0, "height": 4.0, "income": 30_000.0},
    "correlation": {("weight", "income"): 0.3, ("weight", "height"): 0.5, ("height", "income"): 0.2},
}
BETWEEN = (20_000.0, 200_000.0)


def school(**changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "queries": (Query("avg", "weight"),),
        "secrets": (Secret("mean(income)", between=BETWEEN),),
        "epsilon": 1.0,
        "delta": 0.0,
        "n": 10_000,
        "theta": (Gaussian(**MOMENTS, tolerance=0),),
        "resolution": {"weight": 0.001, "income": 1.0, "height": 0.001},
    }
    return Problem(**(stated | changes))


def evidence_of(found: Plan) -> QuantileClipEvidence:
    assert isinstance(found.certificate.evidence, QuantileClipEvidence)
    return found.certificate.evidence


# ------------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(("epsilon", "rmse"), [(0.1, 0.0677), (0.5, 0.0439), (1.0, 0.0252), (2.0, 0.0090), (5.0, 0.00065)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_school_example(epsilon: float, rmse: float, delta: float) -> None:
    found = quantile_clip.plan(school(epsilon=epsilon, delta=delta))
    assert found.error.rmse == pytest.approx(rmse, rel=0.005)
    assert found.certificate.evidence.delta(epsilon) == 0
    assert evidence_of(found).loss() == pytest.approx(epsilon, rel=1e-6)


def test_without_delta_it_is_what_auto_takes() -> None:
    found = plan(school())
    assert found.mechanism == "transport"
    assert found.columns[0].parameters["form"] == "quantile clip"
    assert (found.epsilon, found.delta) == (1.0, 0.0)
    assert "gaussian" in rank(school()).refused


def test_with_delta_it_is_taken_where_it_errs_less() -> None:
    found = plan(school(delta=1e-6), "transport")
    assert found.columns[0].parameters["form"] == "quantile clip"
    assert found.error.rmse == pytest.approx(0.0252, rel=0.005)


def test_a_mask_of_whole_pounds_is_part_of_the_error() -> None:
    fine, coarse = (quantile_clip.plan(school(resolution={"weight": h, "income": 1.0})) for h in (0.001, 400.0 / 100))
    assert (coarse.error.rmse or 0) ** 2 == pytest.approx((fine.error.rmse or 0) ** 2 + (4.0 / 10_000) ** 2, rel=1e-3)


def test_intervals_follow_the_law() -> None:
    found = quantile_clip.plan(school())
    spread = found.spread_of(found.queries[0])
    assert spread.reach(0.95) == pytest.approx(found.error.alpha95, rel=1e-6)
    assert spread.reach(0.5) < 1e-6 < spread.reach(0.95)


# -------------------------------------------------------------------------------------------------- what it is built on


def test_slopes_are_exact_fractions_of_what_is_stated() -> None:
    evidence = evidence_of(quantile_clip.plan(school()))
    assert evidence.slopes == (Fraction(0.3) * 25 / 30_000,)
    assert evidence.residual == 625 * (1 - Fraction(0.3) ** 2)


def test_several_sensitive_columns_are_conditioned_on_together() -> None:
    secrets = (Secret("mean(income)", between=BETWEEN), Secret("mean(height)", within=1.0))
    evidence = evidence_of(quantile_clip.plan(school(secrets=secrets)))
    r = np.array([[1, 0.2], [0.2, 1]])
    partial = np.linalg.solve(r, [0.3, 0.5])
    assert [float(b) for b in evidence.slopes] == pytest.approx([partial[0] * 25 / 30_000, partial[1] * 25 / 4])
    assert float(evidence.residual) == pytest.approx(625 * (1 - partial @ [0.3, 0.5]))


def test_one_combination_is_read_as_it_is() -> None:
    evidence = evidence_of(quantile_clip.plan(school(secrets=(Secret("mean(income + 100 * height)", within=10.0),))))
    assert [dict(read.coefficients) for read in evidence.reads] == [{"income": 1.0, "height": 100.0}]
    cov = 0.3 * 25 * 30_000 + 100 * 0.5 * 25 * 4
    var = 30_000**2 + 2 * 100 * 0.2 * 30_000 * 4 + (100 * 4) ** 2
    assert [float(b) for b in evidence.slopes] == pytest.approx([cov / var])


def test_covariances_are_taken_as_stated() -> None:
    covariance = {"weight~weight": 600.0, "income~income": 9e8, "weight~income": 200_000.0}
    theta = (Gaussian(mean={"weight": 150.0, "income": 60_000.0}, covariance=covariance, tolerance=0),)
    evidence = evidence_of(quantile_clip.plan(school(theta=theta)))
    assert evidence.slopes == (Fraction(200_000, 900_000_000),)
    assert evidence.residual == 600 - Fraction(200_000**2, 900_000_000)


@pytest.mark.parametrize(
    "secrets",
    [
        (Secret("mean(income)", cases=("< 50000", ">= 50000")),),
        (Secret("mean(income)", within=1_000.0),),
        (Secret("sum(income)", between=(2e8, 2e9)),),
        (Secret(("mean(income)", "mean(height)"), between={"mean(income)": BETWEEN, "mean(height)": (60.0, 70.0)}),),
    ],
)
def test_every_kind_of_pairs_is_hidden_by_the_same_law(secrets: tuple[Secret, ...]) -> None:
    found = quantile_clip.plan(school(secrets=secrets))
    assert evidence_of(found).loss() <= 1
    assert all(row.epsilon is None or row.epsilon >= evidence_of(found).loss() for row in found.model_error)


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"queries": (Query("avg", "weight"), Query("avg", "height"))}, "one column"),
        ({"theta": (Gaussian(**MOMENTS, tolerance={"mean": 0.001, "correlation": 0}),)}, "tolerance 0"),
        ({"theta": (Gaussian(**MOMENTS, tolerance={"slope": 0.01}),)}, "tolerance 0"),
        ({"theta": (Gaussian(**MOMENTS, tolerance={"correlation": 0, "shape": {"lambda": 0.1, "eta": 0}}),)}, "tolerance 0"),
        ({"theta": (Gaussian(**MOMENTS, tolerance=0),) * 2}, "one stated law"),
        ({"theta": (Gaussian(**(MOMENTS | {"mean": {"income": 60_000.0}}), tolerance=0),)}, "mean of weight"),
        ({"theta": (Gaussian(**(MOMENTS | {"mean": {"weight": 150.0}}), tolerance=0),)}, "mean of income"),
        ({"known_rows": 0.01}, "known_rows"),
        ({"individuals": 1.0, "bounds": {"weight": (60.0, 400.0)}}, "individuals"),
        ({"queries": (Query("avg", "income"),)}, "itself is sensitive"),
        ({"resolution": {"weight": 13.0, "income": 1.0}}, "standard deviation"),
        ({"n": 50}, "at least 100 rows"),
    ],
)
def test_what_it_does_not_cover_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refusal, match=reason):
        quantile_clip.plan(school(**changes))


def test_columns_that_determine_one_another_are_refused() -> None:
    moments = MOMENTS | {"correlation": {("weight", "income"): 0.3, ("weight", "height"): 0.3, ("height", "income"): 1.0}}
    secrets = (Secret("mean(income)", between=BETWEEN), Secret("mean(height)", within=1.0))
    with refuses(Refusal, Cause.SECRET, "fewer secrets"):
        quantile_clip.plan(school(theta=(Gaussian(**moments, tolerance=0),), secrets=secrets))


# Each of these two tells as much as the other, and together they leave an sd of 6.9 of the query's 25.
TOLD_BY_TWO: dict[str, Any] = {
    "theta": (
        Gaussian(
            **(MOMENTS | {"correlation": {("weight", "income"): 0.68, ("weight", "height"): 0.68, ("height", "income"): 0.0}}),
            tolerance=0,
        ),
    ),
    "secrets": (Secret("mean(income)", between=BETWEEN), Secret("mean(height)", within=1.0)),
}


def test_a_declared_spacing_must_be_left_open_by_all_secrets_together() -> None:
    left = 25 * math.sqrt(1 - 2 * 0.68**2)
    for declared in (left * (1 - 1e-9), left * (1 + 1e-9)):
        asked = school(**TOLD_BY_TWO, resolution={"weight": declared, "income": 1.0, "height": 0.001})
        if declared < left:
            assert evidence_of(quantile_clip.plan(asked)).moments.spacing[0] == declared
        else:
            with refuses(Refusal, Cause.PRECISION, "finer values"):
                quantile_clip.plan(asked)


def test_of_an_undeclared_spacing_as_much_is_covered_as_is_left_open() -> None:
    """Half of a standard deviation where so much is left, else all that is."""
    undeclared = {"income": 1.0, "height": 0.001}
    alone = evidence_of(quantile_clip.plan(school(resolution=undeclared)))
    both = evidence_of(quantile_clip.plan(school(**TOLD_BY_TWO, resolution=undeclared)))
    assert alone.moments.spacing[0] == pytest.approx(12.5)
    assert both.moments.spacing[0] == pytest.approx(25 * math.sqrt(1 - 2 * 0.68**2), rel=1e-6)


def test_what_is_estimated_is_told_with_what_pays_for_it() -> None:
    """Twice the lambda of averages that are not quite normal, and nothing of what is proved."""
    found = quantile_clip.plan(school(resolution={"weight": 6.0, "income": 1.0}, n=400))
    evidence = evidence_of(found)
    cost = 2 * rounding_charge(evidence.grid.depth, evidence.kurtosis)
    assert cost > 100 * evidence.grid.draw_charge
    (line,) = (line for line in found.certificate.assumes if "of epsilon pays for it" in line)
    assert f"within {evidence.grid.depth:.3g} standard deviations is estimated; {cost:.2g} of epsilon" in line


def test_coarse_values_pay_for_their_rounding() -> None:
    """Whole numbers with a residual sd of 1.1: what rounding does to the tails takes a part of epsilon, or all of it."""
    moments = {"mean": {"a": 0.0, "b": 0.0}, "sd": {"a": 2.0, "b": 2.0}, "correlation": {("a", "b"): 0.8}}
    stated = {
        "theta": (Gaussian(**moments, tolerance=0),),
        "queries": (Query("avg", "a"),),
        "secrets": (Secret("mean(b)", within=1.0),),
        "resolution": {"a": 1.0, "b": 1.0},
        "n": 100,
    }
    found = evidence_of(quantile_clip.plan(school(**stated)))
    assert 0.03 < 2 * found.lam < 0.05
    assert found.below + found.above < 0.97
    assert 0.999 < found.loss() <= 1
    with refuses(Refusal, Cause.PRECISION, "resolution"):
        quantile_clip.plan(school(**stated, epsilon=0.02))


# ---------------------------------------------------------------------------------------------------- certificate, release


def test_a_certificate_that_was_changed_does_not_hold() -> None:
    found = quantile_clip.plan(school())
    evidence = evidence_of(found)
    for changes in (
        {"below": evidence.below * 2},
        {"above": evidence.above + 1e-6},
        {"mask": 1e-9},
        {"moments": evidence.moments.model_copy(update={"spacing": (10.0, 1.0)})},
        {"moments": evidence.moments.model_copy(update={"columns": ("income", "weight")})},
        {"reads": (evidence.reads[0].model_copy(update={"coefficients": {"weight": 1.0}}),)},
        {"below": math.nan},
    ):
        changed = found.certificate.model_copy(update={"evidence": evidence.model_copy(update=changes)})
        with pytest.raises(CertificateError):
            changed.verify()


def test_a_plan_draws_what_its_certificate_counted_on() -> None:
    found = quantile_clip.plan(school())
    averages = [Fraction(150), Fraction(60_000)]
    assert abs(found.answers(averages)[0] - 150) < 1e-5
    for changes in ({"n": 9_999}, {"delta": 1e-9}):
        with pytest.raises(CertificateError):
            found.model_copy(update=changes).answers(averages)
    clipped = found.columns[0].model_copy(update={"clip": (0.0, 300.0)})
    with pytest.raises(CertificateError):
        found.model_copy(update={"columns": (clipped,)}).answers(averages)
    with pytest.raises(CertificateError):
        found.answers(averages[:1])
    with pytest.raises(UsageError):
        found.randomise(150.0)


def test_answers_far_out_are_public_ends() -> None:
    found = quantile_clip.plan(school())
    grid = evidence_of(found).grid
    end = 150 + grid.last * grid.step
    assert found.answers([Fraction(10**9), Fraction(60_000)])[0] == end
    assert found.answers([Fraction(150), Fraction(10**12)])[0] == 300 - end
    assert end - 150 == pytest.approx(7 * 0.2385, rel=1e-3)


def test_a_sum_is_the_average_times_n() -> None:
    found = quantile_clip.plan(school(queries=(Query("avg", "weight"), Query("sum", "weight"))))
    average, total = found.answers([Fraction(151), Fraction(60_300)])
    assert total == pytest.approx(10_000 * average, rel=1e-15)


# ---------------------------------------------------------------------------------------------------------- model error


def test_real_epsilon_against_the_laws_themselves() -> None:
    """Slopes 1% too flat, at the two ends of the range: epsilon from a brute-force histogram of the map on a fine grid of z."""
    found = quantile_clip.plan(school(delta=1e-6))
    evidence = evidence_of(found)
    root = math.sqrt(evidence.variance)
    z = np.linspace(-9, 9, 400_001)
    rows = []
    for income in BETWEEN:
        t = float(evidence.slopes[0]) * (income - 60_000) / root
        c = math.sqrt((float(evidence.residual) - 0.0201 * float(evidence.explained)) / evidence.n) / root
        answers = np.clip(evidence.clip.moved(z + t, z), -7, 7)
        rows.append(np.histogram(answers, np.linspace(-7.001, 7.001, 241), weights=norm.pdf(z, 0.01 * t, c))[0] * (z[1] - z[0]))
    real = max(_epsilon(p, q, 1e-6) for p, q in (rows, rows[::-1]))
    assert real < (found.model_error[0].epsilon or 0) < 1.02 * real
    assert real == pytest.approx(11.55, abs=0.05)


def _epsilon(p: np.ndarray, q: np.ndarray, delta: float) -> float:
    low, high = 0.0, 500.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if np.maximum(p - np.exp(middle) * q, 0).sum() <= delta else (middle, high)
    return high


def test_real_epsilon_grows_with_the_error_and_is_warned_of() -> None:
    found = quantile_clip.plan(school())
    epsilons = [row.epsilon for row in found.model_error]
    assert epsilons == sorted(epsilons, key=lambda e: e or math.inf)
    assert found.warnings


def test_near_values_are_less_fragile() -> None:
    near = quantile_clip.plan(school(secrets=(Secret("mean(income)", within=1_000.0),)))
    assert (near.model_error[0].epsilon or math.inf) < 1.2


# ---------------------------------------------------------------------------------------------------------------- a trap


def test_trap_several_attributes_with_one_slope() -> None:
    """Two sensitive columns, what each tells taken alone and added up: the real loss at epsilon 1, in exact numbers.

    With correlations .3 and .5 to the query and .2 to each other, the sum of single slopes is not the regression on both. Given
    both averages, z then has a mean that moves with them. The product uses the regression on both (tested above).
    """
    evidence = evidence_of(
        quantile_clip.plan(school(secrets=(Secret("mean(income)", between=BETWEEN), Secret("mean(height)", within=1.0))))
    )
    assert _lost(evidence, (0.3 * 25 / 30_000, 0.5 * 25 / 4)) > 0.04
    assert _lost(evidence, tuple(map(float, evidence.slopes))) < 1e-9


def _lost(evidence: QuantileClipEvidence, used: Sequence[float]) -> float:
    """The hockey-stick divergence at epsilon 1 of the laws four standard errors above and below both means."""
    root = math.sqrt(evidence.variance)
    y = np.linspace(-6, 6, 2001)
    laws = []
    for sign in (1, -1):
        moved = (sign * 1_200.0, sign * 0.16)
        told = sum(float(b) * x for b, x in zip(evidence.slopes, moved, strict=True)) / root
        believed = sum(b * x for b, x in zip(used, moved, strict=True)) / root
        z, ratio = evidence.clip.quantiles(believed, y)
        laws.append(ratio + norm.logpdf(y) + norm.logpdf(z, told - believed) - norm.logpdf(z))
    p, q = (np.exp(law - logsumexp(law)) for law in laws)
    return float(max(np.maximum(p - math.e * q, 0).sum(), np.maximum(q - math.e * p, 0).sum()))
