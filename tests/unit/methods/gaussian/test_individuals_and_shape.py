"""`individuals` (row-level differential privacy on top) and `shape` (Algorithm 2, corrected)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import attrpriv as ap
from attrpriv.errors import Cause
from attrpriv.methods.base.accuracy import noise_error, sum_reach
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.noise import granularity
from tests.refusing import refuses

MOMENTS: dict[str, Any] = {
    "mean": {"weight": 150.0, "income": 60_000.0},
    "sd": {"weight": 25.0, "income": 30_000.0},
    "correlation": {"weight~income": 0.3},
}


def problem(tolerance: Any = None, **changes: Any) -> ap.Problem:
    values: dict[str, Any] = {
        "queries": (ap.mean("weight"),),
        "secrets": (ap.Secret("mean(income)", between=(20_000, 200_000), within=1000),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 10_000,
        "theta": (ap.Gaussian(**MOMENTS, tolerance=tolerance or {"slope": 0.05}),),
        "bounds": {"weight": (-200.0, 500.0)},
    }
    return ap.Problem(**{**values, **changes})


def test_rows_get_their_own_noise_and_guarantee() -> None:
    without, with_rows = ap.plan(problem(), "gaussian"), ap.plan(problem(individuals=0.5), "gaussian")
    laplace = with_rows.columns[0].noise.individuals
    assert laplace >= 700 / 10_000 / 0.5  # one clipped row moves the average by at most 700/n
    assert laplace <= 700 / 10_000 / 0.5 * (1 + 1e-6)
    assert with_rows.columns[0].noise.scale == without.columns[0].noise.scale
    assert with_rows.columns[0].clip == (-200.0, 500.0)
    assert with_rows.certificate.individuals is not None
    with_rows.certificate.verify()
    assert "single persons are not protected" in without.certificate.assumes
    assert "single persons are not protected" not in with_rows.certificate.assumes


def test_a_changed_row_never_shows_beyond_epsilon() -> None:
    """Exact: given the Gaussian part, two averages at most R/n apart under Laplace noise of the planned scale."""
    plan = ap.plan(problem(individuals=0.5), "gaussian")
    part = plan.columns[0]
    steps = granularity(part.independent) + granularity(part.noise.individuals)  # one of each grid
    assert (700 / 10_000 + steps) / part.noise.individuals <= 0.5


def test_the_two_kinds_of_noise_are_drawn() -> None:
    """4,000 draws: the variance is within 6 standard errors (false alarm 2e-9); without the Laplace part it is 25 away."""
    plan = ap.plan(problem(individuals=0.01), "gaussian")
    s, b = plan.columns[0].noise.scale, plan.columns[0].noise.individuals
    values = np.array([plan.randomise(150.0) for _ in range(4_000)]) - 150
    variance, fourth = s**2 + 2 * b**2, 3 * s**4 + 12 * s**2 * b**2 + 24 * b**4
    error = math.sqrt((fourth - variance**2) / len(values))
    assert abs(float((values**2).mean()) - variance) <= 6 * error
    assert variance - s**2 > 25 * error


@pytest.mark.parametrize(("s", "b"), [(1.0, 0.01), (1.0, 1.0), (0.01, 1.0)])
def test_error_of_the_sum_against_quadrature(s: float, b: float) -> None:
    from scipy.integrate import quad
    from scipy.stats import norm

    def tail(t: float) -> float:  # P(|N + L| > t) by conditioning on L
        def inside(x: float) -> float:
            return float(math.exp(-abs(x) / b) / (2 * b) * (norm.sf((t - x) / s) + norm.cdf((-t - x) / s)))

        near = [sign * t + reach * s for sign in (-1, 1) for reach in (-8, 0, 8)]
        edges = sorted({-60 * b, 0.0, 60 * b, *(x for x in near if abs(x) < 60 * b)})
        return sum(quad(inside, low, high, limit=400)[0] for low, high in itertools.pairwise(edges))

    reach = sum_reach(s, b, 0.95)
    assert tail(reach) == pytest.approx(0.05, rel=1e-4)

    def folded(x: float) -> float:  # E|N + x|, times the density of L at x
        mean = s * math.sqrt(2 / math.pi) * math.exp(-((x / s) ** 2) / 2) + abs(x) * (1 - 2 * float(norm.cdf(-abs(x) / s)))
        return float(math.exp(-abs(x) / b) / (2 * b) * mean)

    absolute = 2 * sum(quad(folded, low, high)[0] for low, high in itertools.pairwise((0, 0.1 * b, b, 5 * b, 60 * b)))
    error = noise_error(s, b)
    assert error.mean_absolute == pytest.approx(absolute, rel=1e-3)
    assert error.rmse == pytest.approx(math.sqrt(s**2 + 2 * b**2))


@pytest.mark.parametrize(
    ("changes", "text"),
    [({"bounds": {}}, "needs bounds"), ({"bounds": {"weight": (60.0, 400.0)}}, "clipped")],
)
def test_rows_cannot_be_protected_without_clipping(changes: dict[str, Any], text: str) -> None:
    with pytest.raises((ap.RefusedError, ap.UsageError), match=text):
        ap.plan(problem(individuals=1.0, **changes), "gaussian")


def test_group_dp_protects_rows_by_the_way() -> None:
    plan = ap.plan(problem(individuals=0.01), "group_dp")
    assert plan.certificate.individuals is not None
    plan.certificate.verify()
    stricter = plan.certificate.individuals.model_copy(update={"epsilon": 1e-6})
    with pytest.raises(ap.CertificateError):
        plan.certificate.model_copy(update={"individuals": stricter}).verify()


SHAPE = {"slope": 0.05, "shape": {"lambda": 0.01, "eta": 1e-8}}


def test_shape_is_charged_by_the_corrected_formula() -> None:
    plan = ap.plan(problem(SHAPE), "gaussian_approximation")
    evidence = plan.certificate.evidence
    assert isinstance(evidence, GaussianEvidence)
    from attrpriv.numerics.divergences.gaussian import gaussian_delta

    lam = 0.01 + evidence.grid_lambda + evidence.lattice_lambda
    inner = 1.0 - 2 * lam
    delta = math.exp(lam) * gaussian_delta(inner, evidence.distance()) + 1e-8 * (1 + math.exp(inner + lam)) + evidence.reserve
    assert delta <= 1e-6
    assert delta >= 0.98e-6  # nothing is wasted
    assert plan.guarantee.kind == "approximate"


def test_a_shape_tolerance_needs_more_noise() -> None:
    exact, nearly = ap.plan(problem(), "gaussian"), ap.plan(problem(SHAPE), "gaussian_approximation")
    assert nearly.noise.scale > exact.noise.scale


def test_each_mechanism_refuses_the_others_assumption() -> None:
    with refuses(ap.RefusedError, Cause.SHAPE, "mechanism gaussian_approximation"):
        ap.plan(problem(SHAPE), "gaussian")
    with refuses(ap.RefusedError, Cause.SHAPE, "a shape tolerance"):
        ap.plan(problem(), "gaussian_approximation")


def test_too_much_shape_leaves_nothing() -> None:
    with pytest.raises(ap.RefusedError, match="costs more"):
        ap.plan(problem({"slope": 0.05, "shape": {"lambda": 0.6, "eta": 0.0}}), "gaussian_approximation")


def test_few_recorded_rows_need_a_shape() -> None:
    few: dict[str, Any] = {"n": 50, "resolution": {"weight": 1.0}, "bounds": {}}
    with refuses(ap.RefusedError, Cause.PRECISION, "more rows"):
        ap.plan(problem(**few), "gaussian")
    assert ap.plan(problem(SHAPE, **few), "gaussian_approximation").noise.scale > 0
