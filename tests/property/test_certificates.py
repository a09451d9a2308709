"""Every plan that is returned keeps its promise: random problems, checked by a twin that shares no code with the planner.

The twin draws distributions of the assumed class, forms the exact joint law of the released averages given two values of a
secret, and integrates the hockey-stick. The same check must reject planted mutants.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.errors import AttrprivError
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.property.problems import problems
from tests.property.twin import Matrix, drawn_noise, exact_delta, hockey_stick, worst_delta

slow_ok = [HealthCheck.too_slow, HealthCheck.filter_too_much]


def planned(problem: Problem) -> Plan | None:
    """The plan, or None where the mechanism refuses. Anything but a plan or a refusal fails the test."""
    try:
        return plan(problem, "gaussian")
    except AttrprivError as error:
        refusal = error
    assert refusal.exit_code in (2, 3)
    assert "\n" not in str(refusal)
    return None


def charged(found: Plan) -> float:
    """What the certificate keeps of delta for clipping; the twin's laws are those of unclipped rows."""
    assert isinstance(found.certificate.evidence, GaussianEvidence)
    return found.certificate.evidence.clip_delta


def keeps_its_promise(problem: Problem, noise: Matrix, extra: float = 0.0, seed: int = 1) -> bool:
    """The check that mutants must fail."""
    return worst_delta(problem, noise, seed) + extra <= problem.delta


# ------------------------------------------------------------------------------------------------------------ the promise


def test_the_twin_integrates_what_it_says() -> None:
    for epsilon, mu in [(0.0, 1.0), (1.0, 0.268), (0.01, 0.002), (10.0, 3.0), (5.0, 20.0), (0.5, 60.0)]:
        assert hockey_stick(epsilon, mu) == pytest.approx(float(exact_delta(epsilon, mu)), rel=1e-9)


@given(problem=problems(), seed=st.integers(0, 2**16))
@settings(max_examples=120, suppress_health_check=slow_ok)
def test_every_plan_keeps_its_promise(problem: Problem, seed: int) -> None:
    check_the_promise(problem, seed)


@pytest.mark.slow
@given(problem=problems(), seed=st.integers(0, 2**16))
@settings(max_examples=2_000, suppress_health_check=slow_ok, derandomize=False)
def test_every_plan_of_many_keeps_its_promise(problem: Problem, seed: int) -> None:
    check_the_promise(problem, seed)


def check_the_promise(problem: Problem, seed: int) -> None:
    found = planned(problem)
    assume(found is not None)
    assert found is not None
    found.certificate.verify()
    noise = drawn_noise(found)
    assert np.isfinite(noise).all()
    assert keeps_its_promise(problem, noise, charged(found), seed)


@given(problem=problems(most_queries=1), seed=st.integers(0, 2**16))
@settings(max_examples=40, suppress_health_check=slow_ok)
def test_classical_calibration_keeps_it_too(problem: Problem, seed: int) -> None:
    problem = problem.model_copy(update={"calibration": "classical"})
    found = planned(problem)
    assume(found is not None)
    assert found is not None
    assert keeps_its_promise(problem, drawn_noise(found), charged(found), seed)
    analytic = plan(problem.model_copy(update={"calibration": "analytic"}), "gaussian")
    assert analytic.columns[0].noise.scale <= found.columns[0].noise.scale * (1 + 1e-9)


# --------------------------------------------------------------------------------------------------------------- mutants


def two_columns(rho: float, **changes: Any) -> Problem:
    """One query, one secret, unit variances: a pair far wider than the secret's own spread, so that noise is needed."""
    tolerance = changes.pop("tolerance", 0)
    stated: dict[str, Any] = {
        "queries": (Query("avg", "y"),),
        "secrets": (Secret("mean(x)", between=(0.0, 1.0)),),
        "epsilon": 1.0,
        "delta": 1e-5,
        "n": 100,
        "theta": (Gaussian(sd={"y": 1.0, "x": 1.0}, correlation={("y", "x"): rho}, tolerance=tolerance),),
    }
    return Problem(**(stated | changes))


TIGHT = {
    "plain": two_columns(0.3),
    "strong": two_columns(-0.9),
    "own column": two_columns(0.3, queries=(Query("avg", "x"),)),
    "a sum": two_columns(0.3, queries=(Query("sum", "y"),), secrets=(Secret("sum(x)", within=100.0),)),
    "slope": two_columns(0.4, tolerance={"sd": 0.05, "slope": 0.1}),
    "correlation": two_columns(0.4, tolerance={"sd": 0.05, "correlation": 0.1}),
    "credited": two_columns(0.3, secrets=(Secret("mean(x)", within=0.15),), n=100),
    "known rows": two_columns(0.3, known_rows=0.5),
    "large epsilon": two_columns(0.5, epsilon=8.0, delta=1e-3),
    "small budget": two_columns(0.5, epsilon=0.05, delta=1e-9),
    "few rows": two_columns(0.5, n=2),
    "many rows": two_columns(0.5, n=10**6),
    "two secrets": two_columns(
        0.3,
        secrets=(Secret("mean(x)", within=0.1), Secret("mean(w)", within=1.0)),
        theta=(
            Gaussian(
                sd={"y": 1.0, "x": 1.0, "w": 2.0},
                correlation={("y", "x"): 0.2, ("y", "w"): -0.6, ("x", "w"): 0.1},
                tolerance=0,
            ),
        ),
    ),
}


@pytest.mark.parametrize("problem", TIGHT.values(), ids=TIGHT.keys())
def test_tight_plans_hold_and_a_tenth_less_noise_does_not(problem: Problem) -> None:
    """Exact problems: no distribution is missed and none imagined, so a tenth less noise breaks the promise."""
    found = plan(problem, "gaussian")
    assert found.certificate.exact
    noise = drawn_noise(found)
    assert keeps_its_promise(problem, noise)
    assert not keeps_its_promise(problem, 0.81 * noise)


@pytest.mark.parametrize("problem", TIGHT.values(), ids=TIGHT.keys())
def test_tight_plans_waste_little(problem: Problem) -> None:
    """1% less noise breaks the promise where nothing is credited: the reserve of 2% of delta is all that is wasted."""
    assert not keeps_its_promise(problem, 0.98 * drawn_noise(plan(problem, "gaussian")))


def test_the_papers_two_distributions() -> None:
    """Theta = {V_ij = -.9, +.1}: about 11.27 of variance, a little more for the reserve; the signed mutant is rejected."""
    members = [two_columns(rho).theta[0] for rho in (-0.9, 0.1)]
    problem = two_columns(0.3, theta=tuple(members))
    found = plan(problem, "gaussian")
    variance = float(drawn_noise(found)[0, 0])
    assert 11.271366 < variance < 11.271366 * 1.01
    assert keeps_its_promise(problem, drawn_noise(found))
    signed = drawn_noise(plan(two_columns(0.1), "gaussian"))  # what max of V_ij without absolute value leads to
    assert worst_delta(problem, signed, seed=1) > 0.4
    assert not keeps_its_promise(problem, signed)


def test_signed_slope_is_rejected_within_one_class() -> None:
    problem = two_columns(-0.1, tolerance={"correlation": 0.3})
    assert keeps_its_promise(problem, drawn_noise(plan(problem, "gaussian")))
    upper_end = drawn_noise(plan(two_columns(0.2), "gaussian"))
    assert not keeps_its_promise(problem, upper_end)


def test_ignoring_known_rows_is_rejected() -> None:
    """Tight because the data hide most of the shift: half the rows known is half of that gone."""
    problem = two_columns(0.3, secrets=(Secret("mean(x)", within=0.15),), known_rows=0.5)
    ignorant = problem.model_copy(update={"known_rows": 0.0})
    assert keeps_its_promise(problem, drawn_noise(plan(problem, "gaussian")))
    assert keeps_its_promise(ignorant, drawn_noise(plan(ignorant, "gaussian")))
    assert not keeps_its_promise(problem, drawn_noise(plan(ignorant, "gaussian")))


def test_forgetting_the_tolerance_is_rejected() -> None:
    for tolerance in ({"slope": 0.2}, {"correlation": 0.1}, {"sd": 0.2, "correlation": 0.0}):
        problem = two_columns(0.4, tolerance=tolerance)
        assert keeps_its_promise(problem, drawn_noise(plan(problem, "gaussian")))
        assert not keeps_its_promise(problem, drawn_noise(plan(two_columns(0.4), "gaussian")))


def test_reading_the_gap_of_a_sum_as_that_of_a_mean_is_rejected() -> None:
    problem = two_columns(0.4, secrets=(Secret("sum(x)", within=300.0),))
    mutant = two_columns(0.4, secrets=(Secret("mean(x)", within=300.0 / 100**2),))
    assert keeps_its_promise(problem, drawn_noise(plan(problem, "gaussian")))
    assert not keeps_its_promise(problem, drawn_noise(plan(mutant, "gaussian")))


# -------------------------------------------------------------------------------------------- several averages at once


def trap(within: float) -> Problem:
    """F1 = g + U and a little, F2 = U, with a widely spread U: the difference of two averages is nearly the secret."""
    covariance = {
        ("x", "x"): 1.0,
        ("u", "u"): 900.0,
        ("y", "y"): 1.0 + 900.0 + 0.01,
        ("x", "y"): 1.0,
        ("u", "y"): 900.0,
        ("x", "u"): 0.0,
    }
    theta = (Gaussian(covariance=covariance, tolerance=0),)
    secrets = (Secret("mean(x)", within=within),)
    return two_columns(0.0, queries=(Query("avg", "y"), Query("avg", "u")), theta=theta, secrets=secrets)


@pytest.mark.parametrize("within", [0.1, 0.2, 0.5])
def test_the_trap_of_two_averages(within: float) -> None:
    """Crediting each average its own variance is unsound; the plan for both together holds."""
    problem = trap(within)
    together = plan(problem, "gaussian")
    assert keeps_its_promise(problem, drawn_noise(together))
    # The mutant: each average gets its share of the distance and credit for its own residual variance, above the mask.
    mu = gaussian_mu(1.0, 1e-5) / math.sqrt(2)
    residual, masks = np.array([900.01, 900.0]) / 100, np.array([30.0, 30.0]) / math.sqrt(100) / 50
    mutant = np.diag(np.maximum(masks**2, (np.array([within, 0.0]) / mu) ** 2 - residual))
    assert not keeps_its_promise(problem, mutant)


def test_planning_two_averages_apart_is_rejected() -> None:
    problem = trap(0.5)
    apart = [plan(problem.model_copy(update={"queries": (query,)}), "gaussian") for query in problem.queries]
    mutant = np.diag([float(drawn_noise(one)[0, 0]) for one in apart])
    assert worst_delta(problem, mutant, seed=1) > 0.5


@pytest.mark.parametrize("count", [2, 3])
def test_several_averages_that_all_move(count: int) -> None:
    """Averages that move together: the plan holds; each calibrated alone does not add up to it."""
    names = [f"y{k}" for k in range(count)]
    pairs = {(a, b): 0.2 for i, a in enumerate(names) for b in names[i + 1 :]} | {(a, "x"): 0.5 for a in names}
    theta = (Gaussian(sd=dict.fromkeys([*names, "x"], 1.0), correlation=pairs, tolerance=0),)
    problem = two_columns(0.0, queries=tuple(Query("avg", name) for name in names), theta=theta)
    assert keeps_its_promise(problem, drawn_noise(plan(problem, "gaussian")))
    alone = plan(problem.model_copy(update={"queries": problem.queries[:1]}), "gaussian")
    mutant = np.eye(count) * float(drawn_noise(alone)[0, 0])
    assert not keeps_its_promise(problem, mutant)


def test_crediting_the_diagonal_only_is_rejected() -> None:
    """Conditional covariance 60 [[1, -.999], [-.999, 1]], shift (1, 1): the sum of the two averages hardly varies."""
    rho, n = -0.999, 100
    gain = np.ones(2)
    v = np.zeros((3, 3))
    v[2, 2] = 1.0
    v[:2, :2] = np.array([[1.0, rho], [rho, 1.0]]) * 60 * n + np.outer(gain, gain)
    v[:2, 2] = v[2, :2] = gain
    names = ("y", "u", "x")
    pairs = {(a, b): float(v[i, j]) for i, a in enumerate(names) for j, b in enumerate(names) if i <= j}
    queries, theta = (Query("avg", "y"), Query("avg", "u")), (Gaussian(covariance=pairs, tolerance=0),)
    problem = two_columns(0.0, queries=queries, theta=theta, n=n)
    mu = gaussian_mu(1.0, 1e-5)
    mask = math.sqrt(60) / 50
    diagonal_only = max(mask**2, 2 * (1 / mu) ** 2 - 60) * np.eye(2)
    assert worst_delta(problem, diagonal_only, seed=1) > 0.9
    found = plan(problem, "gaussian")
    assert keeps_its_promise(problem, drawn_noise(found))


# ------------------------------------------------------------------------------------------- an adversary who knows rows


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(3, 7),
    known=st.sampled_from([0.2, 0.35, 0.5, 0.75]),
    rho=st.floats(-0.95, 0.95),
)
@settings(max_examples=60)
def test_partial_knowledge_of_some_rows_is_covered(seed: int, n: int, known: float, rho: float) -> None:
    """Row by row, from the full covariance of all entries: any entries of at most k n rows may be known."""
    problem = two_columns(rho, n=n, known_rows=known, secrets=(Secret("mean(x)", within=0.8),))
    found = planned(problem)
    assume(found is not None)
    assert found is not None
    noise = float(drawn_noise(found)[0, 0])
    rng = np.random.default_rng(seed)
    for _ in range(10):
        rows = rng.choice(n, size=rng.integers(0, math.floor(known * n) + 1), replace=False)
        entries = [(int(row), int(column)) for row in rows for column in rng.choice(2, size=rng.integers(1, 3), replace=False)]
        mu = known_entries_distance(n, rho, entries, 0.8, noise)
        assert hockey_stick(1.0, mu) <= problem.delta


def known_entries_distance(n: int, rho: float, entries: list[tuple[int, int]], gap: float, noise: float) -> float:
    """Distance of F + noise given g = a, b and some known entries; rows (y, x) with unit variances and correlation rho."""
    row = np.array([[1.0, rho], [rho, 1.0]])
    full = np.kron(np.eye(n), row)  # entry (i, c) at 2 i + c
    f, g = np.zeros(2 * n), np.zeros(2 * n)
    f[0::2], g[1::2] = 1 / n, 1 / n
    known = np.array([np.eye(2 * n)[2 * i + c] for i, c in entries]).reshape(len(entries), 2 * n)
    # First condition on what is known, then regress F on g in what is left.
    left = full
    if len(entries):
        left = full - full @ known.T @ np.linalg.solve(known @ full @ known.T, known @ full)
    slope = (f @ left @ g) / (g @ left @ g)
    variance = float(f @ left @ f - slope * (f @ left @ g))
    return float(abs(slope) * gap / math.sqrt(max(0.0, variance) + noise))


# ---------------------------------------------------------------------------------------------------------------- clipping


@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.floats(5, 12),
    rho=st.floats(-0.9, 0.9),
    tolerance=st.sampled_from([{"slope": 0.0}, {"mean": 0.2, "sd": 0.1, "slope": 0.3}, {"mean": 0.1, "correlation": 0.1}]),
)
@settings(max_examples=60)
def test_clipping_is_charged_for(seed: int, width: float, rho: float, tolerance: dict[str, float]) -> None:
    """P(some row is outside the bounds | g = a), by the exact law of one row, for members of the class and values in range."""
    theta = Gaussian(mean={"y": 1.0, "x": 2.0}, sd={"y": 1.0, "x": 1.0}, correlation={("y", "x"): rho}, tolerance=tolerance)
    secret = Secret("mean(x)", between=(1.0, 3.5))
    problem = two_columns(rho, theta=(theta,), secrets=(secret,), bounds={"y": (1 - width, 1 + width)}, delta=1e-4)
    found = planned(problem)
    assume(found is not None)
    assert found is not None
    part = found.columns[0]
    assert (part.clip is None) == (charged(found) == 0.0)
    if part.clip is None:
        return
    rng = np.random.default_rng(seed)
    reach = tolerance.get("mean", 0.0)
    for _ in range(30):
        sd_y, sd_x = (1 + tolerance.get("sd", 0.0) * rng.choice([-1, 0, 1]) for _ in range(2))
        mean_y, mean_x = 1 + reach * sd_y * rng.choice([-1, 1]), 2 + reach * sd_x * rng.choice([-1, 1])
        if "slope" in tolerance:
            slope = rho * (1 + tolerance["slope"] * rng.choice([-1, 1]))
        else:
            slope = float(np.clip(rho + tolerance["correlation"] * rng.choice([-1, 1]), -1, 1)) * sd_y / sd_x
        if abs(slope) * sd_x > sd_y:
            continue
        a = rng.choice([1.0, 3.5])
        centre, variance = mean_y + slope * (a - mean_x), sd_y**2 - (slope * sd_x) ** 2 / problem.n
        tails = sum(math.erfc((width + sign * (centre - 1)) / math.sqrt(2 * variance)) / 2 for sign in (-1, 1))
        assert charged(found) >= (1 + math.e) * -math.expm1(problem.n * math.log1p(-min(tails, 0.5)))


def test_rows_that_an_adversary_knows_are_not_clipped() -> None:
    theta = Gaussian(mean={"y": 0.0, "x": 0.0}, sd={"y": 1.0, "x": 1.0}, correlation={("y", "x"): 0.3}, tolerance=0)
    problem = two_columns(0.3, theta=(theta,), bounds={"y": (-20.0, 20.0)})
    assert plan(problem, "gaussian").columns[0].clip == (-20.0, 20.0)
    assert plan(problem.model_copy(update={"known_rows": 0.1}), "gaussian").columns[0].clip is None
