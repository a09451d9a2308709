"""`calibrated_weights`: what it promises and errs, what it does not look at, what it refuses; and that the draw is w'y."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.errors import AttrprivError, Cause, CertificateError, UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.calibrated_weights import draw as weighted
from attrpriv.methods.calibrated_weights.case import lower_covariance
from attrpriv.methods.calibrated_weights.proof import WeightsEvidence
from attrpriv.methods.choice.choose import plan
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses

ALARM = 1e-7
RANGE = Secret("mean(income)", between=(20_000.0, 200_000.0))
SAT = Secret("mean(sat)", between=(900.0, 1_200.0))


def assumed(mean: float = 110_000.0, correlation: float = 0.3, tolerance: Any = 0, **more: Any) -> Gaussian:
    stated: dict[str, Any] = {
        "mean": {"income": mean, "weight": 150.0, "sat": 1_050.0},
        "sd": {"weight": 25.0, "income": 30_000.0, "height": 4.0, "sat": 200.0},
        "correlation": {
            "weight~income": correlation,
            "weight~height": 0.5,
            "height~income": 0.2,
            "weight~sat": 0.1,
            "height~sat": 0.0,
            "income~sat": 0.4,
        },
        "tolerance": tolerance,
    }
    return Gaussian(**(stated | more))


def problem(*theta: Gaussian, **changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "queries": (Query("avg", "weight"),),
        "secrets": (RANGE,),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 10_000,
        "theta": theta or (assumed(),),
        "resolution": {"weight": 0.001, "height": 0.001},
    }
    return Problem(**(stated | changes))


def planned(asked: Problem) -> Plan:
    return plan(asked, "calibrated_weights")


def evidence_of(found: Plan) -> WeightsEvidence:
    assert isinstance(found.certificate.evidence, WeightsEvidence)
    return found.certificate.evidence


def answered(found: Plan, rows: int, sums: Any, products: Any) -> list[float] | None:
    told = found.answered((rows, sums, products))
    return None if told is None else [value for (value,) in told]


# ------------------------------------------------------------------------------------------------------ promise and error


@pytest.mark.parametrize(("mean", "error"), [(110_000.0, 0.744), (60_000.0, 1.154)])
def test_the_school(mean: float, error: float) -> None:
    found = planned(problem(assumed(mean)))
    assert found.error.rmse == pytest.approx(error, abs=5e-4)
    assert evidence_of(found).target == (mean,)


def test_slopes_and_residuals_are_not_looked_at() -> None:
    """The same evidence, number by number, whatever correlation the policy states; only the expected error differs."""
    evidence = [evidence_of(planned(problem(assumed(correlation=rho)))) for rho in (0.3, -0.6, 0.0)]
    assert evidence[0] == evidence[1] == evidence[2]
    errors = [planned(problem(assumed(correlation=rho))).error.rmse for rho in (0.3, -0.6)]
    assert errors[0] != errors[1]


def test_model_error_is_flat_and_the_spread_is_what_matters() -> None:
    found = planned(problem())
    assert {row.epsilon for row in found.model_error} == {2 * evidence_of(found).lam}
    (line,) = [note for note in found.notes if note.startswith("fragile")]
    assert line.startswith("fragile: where the sd of income is 1% below its tolerance, delta is 0.00038.")
    wide = evidence_of(planned(problem(assumed(tolerance={"sd": 0.1, "slope": 0}))))
    assert wide.bound / evidence_of(found).bound == pytest.approx(1 / 0.81, rel=0.03)


def test_a_slope_tolerance_costs_nothing_and_a_mean_tolerance_nothing_with_one_column() -> None:
    exact = evidence_of(planned(problem()))
    for tolerance in ({"slope": 0.5}, {"mean": 3.0, "slope": 0.0}):
        assert evidence_of(planned(problem(assumed(tolerance=tolerance)))).bound == exact.bound


def test_with_several_columns_a_mean_tolerance_counts() -> None:
    secrets = (RANGE, Secret("mean(sat)", between=(1_040.0, 1_060.0)))
    bounds = []
    for mean in (0.0, 0.05, 0.2):
        found = planned(problem(assumed(tolerance={"mean": mean, "correlation": 0}), secrets=secrets))
        bounds.append(evidence_of(found).failing() and evidence_of(found).bound)
    assert bounds == sorted(bounds)


def test_epsilon_does_not_matter() -> None:
    errors = {planned(problem(epsilon=epsilon)).error.rmse for epsilon in (0.001, 1.0, 50.0)}
    assert len(errors) == 1
    with pytest.raises(AttrprivError, match="costs more than epsilon"):
        planned(problem(epsilon=1e-9))


def test_several_averages_and_several_secrets_together() -> None:
    asked = problem(queries=(Query("avg", "weight"), Query("sum", "height"), Query("count")), secrets=(RANGE, SAT))
    found = planned(asked)
    evidence = evidence_of(found)
    assert [one.column for one in evidence.sensitive] == ["income", "sat"]
    assert evidence.failing() <= 1e-6 * 0.98
    assert (found.certificate.exact, found.certificate.gap > 0) == (False, True)
    assert found.error_of(asked.queries[1]).rmse == pytest.approx(found.columns[1].error.scaled(10_000).rmse)


def test_joint_secrets_and_combinations() -> None:
    """Everything fixed at once has one degree of freedom less to wander; a combination is a secret like any other."""
    joint = Secret(
        ["mean(income)", "mean(sat)"], between={"mean(income)": (20_000.0, 200_000.0), "mean(sat)": (900.0, 1_200.0)}
    )
    found = evidence_of(planned(problem(secrets=(joint,))))
    corner = np.array([90_000.0, 150.0]), np.array([[9e8, 0.4 * 6e6], [0.4 * 6e6, 4e4]])
    signs = [np.array([a, b]) * corner[0] for a, b in itertools.product((1, -1), repeat=2)]
    wanted = 10_000 * max(float(d @ np.linalg.inv(corner[1]) @ d) for d in signs)
    assert found.checks[0].failure(10_000, found.target).distance == pytest.approx(wanted, rel=1e-6)
    mixed = Secret("mean(income - 100 * sat)", between=(-20_000.0, 90_000.0))
    checked = evidence_of(planned(problem(secrets=(mixed,)))).checks[0].failure(10_000, (110_000.0, 1_050.0))
    assert checked.distance == pytest.approx(10_000 * 85_000.0**2 / (9e8 + 1e4 * 4e4 - 200 * 0.4 * 6e6), rel=1e-6)


def test_bounded_cases_are_hidden_by_their_hull_and_sums_by_their_means() -> None:
    cases = Secret("mean(income)", cases=["[20000, 50000)", "[50000, 200000]"])
    total = Secret("sum(income)", between=(2e8, 2e9))
    bound = evidence_of(planned(problem())).bound
    assert evidence_of(planned(problem(secrets=(cases,)))).bound == bound
    assert evidence_of(planned(problem(secrets=(total,)))).bound == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"secrets": (Secret("mean(income)", within=1_000.0),)}, "needs a range"),
        ({"secrets": (Secret("mean(income)", cases=["< 50000", ">= 50000"]),)}, "needs a range"),
        ({"known_rows": 0.01}, "known_rows"),
        ({"individuals": 1.0, "bounds": {"weight": (60.0, 400.0)}}, "individuals"),
        ({"delta": 0.0}, "delta above 0"),
        ({"queries": (Query("avg", "income"),)}, "itself is sensitive"),
        ({"queries": (Query("count"),)}, "needs no mechanism"),
        ({"n": 12}, "needs at least 13 rows"),
        ({"n": 60}, "at least 100 rows"),
        ({"theta": (assumed(mean=1.0, **{}).model_copy(update={"mean": {}}),)}, "needs the mean of income"),
        ({"theta": (assumed(tolerance={"slope": 0, "shape": {"lambda": 0.1, "eta": 0}}),)}, "shape tolerance"),
        ({"secrets": (RANGE, SAT), "theta": (assumed(tolerance={"correlation": 0.7}),)}, "may be singular"),
        ({"resolution": {"weight": 30.0}}, "at least twice the spacing"),
        ({"theta": ()}, "needs a gaussian assumption"),
        ({"delta": 1e-13}, "finitely many digits"),
    ],
)
def test_what_is_not_covered_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(AttrprivError, match=says):
        planned(problem(**changes))


def test_what_determines_one_another_is_refused() -> None:
    both = {"mean(income)": (0.0, 1.0), "mean(2 * income)": (0.0, 1.0)}
    with refuses(AttrprivError, Cause.SECRET, "fewer secrets"):
        planned(problem(secrets=(Secret(list(both), between=both),)))


@pytest.mark.parametrize("tolerance", [{"sd": 0.05, "correlation": 0.1}, {"sd": 0.02, "slope": 0.2}, 0])
def test_the_lower_bound_is_below_every_member(tolerance: Any) -> None:
    gaussian, columns = assumed(tolerance=tolerance), ("income", "sat", "height")
    low = np.array(lower_covariance(gaussian, columns))
    rng = np.random.default_rng(4)
    t = gaussian.tolerance
    for _ in range(300):
        sds = np.array([gaussian.sd_of(c) for c in columns]) * (1 + t.sd * rng.choice([-1, 1, rng.uniform(-1, 1)], 3))
        rho = np.eye(3)
        for i, j in itertools.combinations(range(3), 2):
            stated = gaussian.correlation_of(columns[i], columns[j])
            if t.slope is None:
                moved = stated + (t.correlation or 0.0) * rng.choice([-1, 1])
            else:
                moved = stated * (1 + t.slope * rng.choice([-1, 1]))
            rho[i, j] = rho[j, i] = moved
        unit = np.sqrt(np.diag(low))
        assert np.linalg.eigvalsh((rho * np.outer(sds, sds) - low) / np.outer(unit, unit))[0] >= -1e-12


# --------------------------------------------------------------------------------------------------------- the certificate


def test_a_certificate_that_was_touched_fails() -> None:
    found = planned(problem(secrets=(RANGE, SAT)))
    evidence = evidence_of(found)
    touched: list[dict[str, Any]] = [
        {"bound": evidence.bound * 0.999},
        {"masks": ()},
        {"target": (60_000.0, 1_050.0)},
        {"columns": evidence.sensitive},
        {"rows": 9_000},
        {"checks": (evidence.checks[0].model_copy(update={"ranges": ((10_000.0, 200_000.0),)}),)},
        {"checks": (evidence.checks[0].model_copy(update={"low": ((1.0,),)}),)},
        {"checks": (evidence.checks[0].model_copy(update={"low": ((8e8, 0.0), (0.0, 0.0))}),)},
        {"lattice_lambda": 0.6},
    ]
    found.certificate.verify()
    for changes in touched:
        changed = found.certificate.model_copy(update={"evidence": evidence.model_copy(update=changes)})
        with pytest.raises(CertificateError):
            changed.verify()


def test_averages_are_never_released_with_the_mask_alone() -> None:
    """The trap next door: the mask is covered by the certificate, and an average with it alone would tell everything."""
    found = planned(problem())
    with pytest.raises(CertificateError, match="averages alone"):
        found.answers([Fraction(150)])
    with pytest.raises(UsageError, match="sums over all rows"):
        found.randomise(150.0)
    gaussian = plan(problem(), "gaussian")
    with pytest.raises(CertificateError, match="must weight"):
        gaussian.certificate.evidence.weighted(gaussian.columns, 10_000, (1, 1), ((1, 1), (1, 1)))
    other = found.model_copy(update={"columns": (found.columns[0].model_copy(update={"column": "height"}),)})
    with pytest.raises(CertificateError):
        answered(other, 10_000, (1, 1), ((1, 1), (1, 1)))
    with pytest.raises(CertificateError, match="as many rows"):
        answered(found, 9_999, (1, 1), ((1, 1), (1, 1)))


# ------------------------------------------------------------------------------------------------------------------ the draw


def moments_of(*columns: Any) -> list[list[Fraction]]:
    ones = [1] * len(columns[0])
    return [[Fraction(sum(a * b for a, b in zip(x, y, strict=True))) for y in (ones, *columns)] for x in (ones, *columns)]


def table(n: int = 40, seed: int = 1) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(-50, 50, n), rng.integers(-9, 9, n)
    y = 3 * first - second + rng.integers(-30, 30, n)
    return (
        [int(v) for v in first],
        [int(v) for v in second],
        [int(v) for v in y],
        [int(v) for v in y // 2 + rng.integers(-9, 9, n)],
    )


def test_from_sums_or_from_rows_the_law_is_the_same() -> None:
    """The twin draws weights of 40 rows outright: w = w_ls + sqrt(Q - q) u with u from a basis of the complement."""
    columns = table()
    x, y = np.array(columns[:2], dtype=float).T, np.array(columns[2:], dtype=float).T
    a = np.column_stack([np.ones(40), x])
    a0, bound = np.array([1.0, 4.0, -1.0]), 0.2
    least = a @ np.linalg.solve(a.T @ a, a0)
    q = float(least @ least)
    rng = np.random.default_rng(2)
    basis = np.linalg.svd(a)[0][:, 3:]
    u = rng.normal(size=(4_000, 37))
    twin = (least + math.sqrt(bound - q) * (u / np.linalg.norm(u, axis=1)[:, None]) @ basis.T) @ y
    target = [Fraction(1), Fraction(4), Fraction(-1)]
    drawn = [weighted.calibrated(moments_of(*columns), target, 3, Fraction(bound), 37) for _ in range(700)]
    found = np.array([[float(v) for v in one] for one in drawn if one is not None])
    assert len(found) == 700
    for direction in ((1.0, 0.0), (0.0, 1.0), (1.0, -2.0), (1.0, 1.0)):
        assert ks_2samp(twin @ direction, found @ direction).pvalue > ALARM
        wrong = found @ direction - 0.4 * np.std(found @ direction)  # what a test of this size sees
        assert ks_2samp(twin @ direction, wrong).pvalue < ALARM


def test_the_failure_event_is_exact() -> None:
    """q itself passes, anything less fails; so do columns that determine one another."""
    first, second, y, z = table()
    target = [Fraction(1), Fraction(4), Fraction(-1)]
    moments = moments_of(first, second, y, z)
    reduced = weighted._eliminated(moments, target, 3)
    assert reduced is not None
    q = reduced[0]
    assert q == Fraction(q)
    assert weighted.calibrated(moments, target, 3, q, 37) is not None
    assert weighted.calibrated(moments, target, 3, q - Fraction(1, 10**30), 37) is None
    assert weighted.calibrated(moments_of(first, [2 * v for v in first], y), target, 3, Fraction(1), 37) is None
    assert weighted.calibrated(moments_of(first, [5] * 40, y), target, 3, Fraction(1), 37) is None
    assert weighted.calibrated(moments_of(first, second, y, y), target, 3, Fraction(1), 37) is None
    line = [2 * v + 1 for v in first]
    assert weighted.calibrated(moments_of(first, second, line), target, 3, Fraction(1), 37) is None


def test_at_q_the_answer_is_least_squares() -> None:
    first, second, y, _ = table()
    target = [Fraction(1), Fraction(4), Fraction(-1)]
    reduced = weighted._eliminated(moments_of(first, second, y), target, 3)
    assert reduced is not None
    a = np.column_stack([np.ones(40), first, second])
    fitted = np.array([1.0, 4.0, -1.0]) @ np.linalg.lstsq(a, np.array(y, dtype=float), rcond=None)[0]
    found = weighted.calibrated(moments_of(first, second, y), target, 3, reduced[0], 37)
    assert found is not None
    assert float(found[0]) == pytest.approx(float(fitted), rel=1e-12)


def test_whole_release_from_steps() -> None:
    """Units: a plan's own steps and centres bring back the table's unit, and the mask is there."""
    found = planned(problem(n=400, delta=1e-3))
    evidence = evidence_of(found)
    rng = np.random.default_rng(8)
    income, weight = rng.normal(110_000, 30_000, 400), rng.normal(0, 25, 400)
    weight = 150 - 0.01 * (income - 110_000) + weight
    steps = [
        [round((v - one.centre) / one.step) for v in values]
        for one, values in ((evidence.sensitive[0], income), (evidence.columns[0], weight))
    ]
    products = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in steps] for x in steps]
    drawn = [answered(found, 400, [sum(s) for s in steps], products) for _ in range(300)]
    values = np.array([one[0] for one in drawn if one is not None])
    least = np.array([1, 110_000.0]) @ np.linalg.lstsq(np.column_stack([np.ones(400), income]), weight, rcond=None)[0]
    spread = 25 * math.sqrt(evidence.bound)
    assert kstest((values - least) / spread, "norm").pvalue > ALARM
    assert len(set(values)) == 300
