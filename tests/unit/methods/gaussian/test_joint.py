"""Several averages, combinations and jointly hidden statistics: against independent linear algebra."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import attrpriv as ap
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.numerics.calibration.gaussian import gaussian_mu

SDS = {"weight": 25.0, "height": 4.0, "income": 30_000.0, "sat": 200.0}
RHO = {
    "weight~income": 0.3,
    "weight~sat": 0.1,
    "income~sat": 0.4,
    "weight~height": 0.5,
    "height~income": 0.2,
    "height~sat": 0.05,
}
N = 10_000


def problem(secrets: list[ap.Secret], columns: tuple[str, ...] = ("weight", "height"), **changes: Any) -> ap.Problem:
    tolerance = changes.pop("tolerance", 0)
    values: dict[str, Any] = {
        "queries": tuple(ap.mean(column) for column in columns),
        "secrets": tuple(secrets),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": N,
        "theta": (ap.Gaussian(sd=SDS, correlation=RHO, tolerance=tolerance),),
    }
    return ap.Problem(**{**values, **changes})


def covariance(names: list[str]) -> np.ndarray:
    gaussian = ap.Gaussian(sd=SDS, correlation=RHO, tolerance=0)
    sds = np.array([SDS[name] for name in names])
    return np.asarray(gaussian.correlation_matrix(names) * np.outer(sds, sds))


def noise_of(plan: ap.Plan) -> np.ndarray:
    own = np.diag([part.independent**2 for part in plan.columns])
    factor = np.array(plan.factor) if plan.factor else np.zeros((len(plan.columns), 1))
    return np.asarray(own + factor @ factor.T)


def distance(shift: np.ndarray, spread: np.ndarray) -> float:
    return float(np.sqrt(shift @ np.linalg.solve(spread, shift)))


def test_two_averages_hide_one_secret_jointly() -> None:
    plan = ap.plan(problem([ap.Secret("mean(income)", within=1000)]), "gaussian")
    v = covariance(["weight", "height", "income"])
    shift = v[:2, 2] / v[2, 2] * 1000
    spread = (v[:2, :2] - np.outer(v[:2, 2], v[:2, 2]) / v[2, 2]) / N
    assert distance(shift, spread + noise_of(plan)) <= gaussian_mu(1.0, 1e-6)
    assert distance(shift, spread + 0.9 * noise_of(plan)) > gaussian_mu(1.0, 1e-6)  # a mutant with 10% less is caught


def test_what_one_secret_leaves_to_the_other() -> None:
    """F1 = g + U, F2 = U: each alone needs nothing, together they must be noised."""
    gaussian = ap.Gaussian(
        covariance={"f~f": 101.0, "u~u": 100.0, "g~g": 1.0, "f~u": 100.0, "f~g": 1.0, "u~g": 0.0}, tolerance=0
    )
    secret = ap.Secret("mean(g)", within=0.2)
    base = {"secrets": (secret,), "epsilon": 1.0, "delta": 1e-6, "n": 100, "theta": (gaussian,)}
    alone = ap.plan(ap.Problem(queries=(ap.mean("f"),), **base), "gaussian")
    assert alone.columns[0].noise.scale == pytest.approx(alone.columns[0].parameters["mask"], rel=1e-6)
    together = ap.plan(ap.Problem(queries=(ap.mean("f"), ap.mean("u")), **base), "gaussian")
    difference = np.array([1.0, -1.0])
    assert math.sqrt(difference @ noise_of(together) @ difference) >= 0.2 / gaussian_mu(1.0, 1e-6) * (1 - 1e-6)


def test_a_combination_of_columns() -> None:
    plan = ap.plan(problem([ap.Secret("mean(0.5*income + 50*sat)", within=1000)], ("weight",)), "gaussian")
    v = covariance(["weight", "income", "sat"])
    c = np.array([0.5, 50.0])
    shared, spread = v[0, 1:] @ c, c @ v[1:, 1:] @ c
    own = (v[0, 0] - shared**2 / spread) / N
    apart = abs(shared / spread) * 1000 / math.sqrt(own + plan.columns[0].noise.scale ** 2)
    assert apart <= gaussian_mu(1.0, 1e-6)
    assert apart >= 0.995 * gaussian_mu(1.0, 1e-6)  # not more noise than the reserve explains
    assert plan.certificate.exact


@pytest.mark.parametrize("pairs", ["ball", "box"])
def test_statistics_hidden_jointly(pairs: str) -> None:
    names = ["mean(income)", "mean(sat)"]
    ranges = {"mean(income)": (20_000, 21_000), "mean(sat)": (1000, 1010)}
    secret = ap.Secret(names, within=50) if pairs == "ball" else ap.Secret(names, between=ranges)
    plan = ap.plan(problem([secret]), "gaussian")
    v = covariance(["weight", "height", "income", "sat"])
    gamma = v[:2, 2:] @ np.linalg.inv(v[2:, 2:])
    spread = (v[:2, :2] - gamma @ v[2:, :2]) / N + noise_of(plan)
    if pairs == "ball":
        angles = np.linspace(0, 2 * math.pi, 721)
        differences = [50 * np.array([math.cos(t), math.sin(t)]) for t in angles]
    else:
        differences = [np.array([x, y]) for x in (-1000.0, 1000.0) for y in (-10.0, 10.0)]
    worst = max(distance(gamma @ difference, spread) for difference in differences)
    assert 0.99 * gaussian_mu(1.0, 1e-6) <= worst <= gaussian_mu(1.0, 1e-6)


def test_jointly_hidden_statistics_need_exact_moments() -> None:
    secret = ap.Secret(["mean(income)", "mean(sat)"], within=50)
    with pytest.raises(ap.RefusedError, match="exactly stated moments"):
        ap.plan(problem([secret], tolerance={"sd": 0.01, "slope": 0.01}), "gaussian")


def test_many_uncertain_columns_fall_back_to_independent_noise() -> None:
    """Ten uncertain slopes have too many corners; the bound must then cover every choice of signs."""
    names = [f"q{k}" for k in range(10)]
    sds = {**dict.fromkeys(names, 1.0), "g": 1.0}
    rho = {f"{a}~{b}": 0.0 for i, a in enumerate(sds) for b in list(sds)[i + 1 :]}
    rho.update({f"{name}~g": 0.2 for name in names})
    gaussian = ap.Gaussian(sd=sds, correlation=rho, tolerance={"correlation": 0.01})
    plan = ap.plan(
        ap.Problem(
            queries=tuple(ap.mean(name) for name in names),
            secrets=(ap.Secret("mean(g)", within=0.5),),
            epsilon=1.0,
            delta=1e-6,
            n=1000,
            theta=(gaussian,),
        ),
        "gaussian",
    )
    assert plan.factor == ()
    scales = np.array([part.independent for part in plan.columns])
    assert float(np.sqrt((((0.21 * 0.5) / scales) ** 2).sum())) <= gaussian_mu(1.0, 1e-6)


@pytest.mark.slow
def test_drawn_noise_has_the_certified_covariance() -> None:
    """4,000 draws; each entry of the sample covariance is within 7 standard errors: false alarm below 1e-10.

    A factor without one of its columns changes an entry by more than 30 standard errors here.
    """
    plan = ap.plan(problem([ap.Secret("mean(income)", within=1000)], tolerance={"slope": 0.05, "sd": 0.02}), "gaussian")
    draws = 4000
    values = np.array([plan.answers([Fraction(150), Fraction(66)]) for _ in range(draws)]) - np.array([150.0, 66.0])
    expected, found = noise_of(plan), values.T @ values / draws
    spread = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / draws)
    assert (np.abs(found - expected) <= 7 * spread).all()
    without = expected - np.outer(np.array(plan.factor)[:, -1], np.array(plan.factor)[:, -1])
    assert (np.abs(without - expected) > 30 * spread).any()


def test_a_plan_whose_common_noise_was_changed_draws_nothing() -> None:
    plan = ap.plan(problem([ap.Secret("mean(income)", within=1000)]), "gaussian")
    assert isinstance(plan.certificate.evidence, GaussianEvidence)
    weaker = plan.model_copy(update={"factor": tuple(tuple(x / 2 for x in row) for row in plan.factor)})
    with pytest.raises(ap.CertificateError):
        weaker.answers([Fraction(150), Fraction(66)])


def test_low_rank_noise_is_said_to_be_fragile() -> None:
    """Noise along one direction, and slopes that are off: what points elsewhere is hidden by the averages' own spread alone."""
    secrets = [ap.Secret("mean(income)", between=(20_000, 200_000))]
    columns = ("height", "weight")
    exact = ap.plan(problem(secrets, columns), "gaussian")
    assert exact.model_error[0].epsilon is not None
    assert exact.model_error[0].epsilon > 2
    assert any(line.startswith("fragile") for line in exact.warnings)
    tolerant = ap.plan(problem(secrets, columns, tolerance={"slope": 0.05, "sd": 0.02}), "gaussian")
    assert tolerant.warnings == ()
