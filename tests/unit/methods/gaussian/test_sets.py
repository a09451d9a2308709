"""Set-valued secrets through the mechanism: the certificate re-checks the mixture's law, cell by cell."""

from __future__ import annotations

import math
from typing import Any

import pytest

import attrpriv as ap
from attrpriv.errors import Cause
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.numerics.calibration.set_valued import set_valued_variance
from attrpriv.numerics.laws.intervals import parse_cases
from tests.refusing import refuses

N = 10_000


def problem(cases: list[str], rho: float = 0.3, tolerance: Any = None, **changes: Any) -> ap.Problem:
    gaussian = ap.Gaussian(
        mean=changes.pop("mean", {"g": 0.0}), sd={"q": 1.0, "g": 1.0}, correlation={"q~g": rho}, tolerance=tolerance or 0
    )
    values: dict[str, Any] = {
        "queries": (ap.mean("q"),),
        "secrets": (ap.Secret("mean(g)", cases=cases),),
        "epsilon": 1.0,
        "delta": 1e-5,
        "n": N,
        "theta": (gaussian,),
    }
    return ap.Problem(**{**values, **changes})


@pytest.mark.parametrize("threshold", [0.0, 0.01, 0.03])
def test_noise_is_that_of_the_exact_law(threshold: float) -> None:
    """A threshold c is at c sqrt(n) standard deviations of the mean: 0, 1 and 3 here."""
    plan = ap.plan(problem([f"< {threshold}", f">= {threshold}"]), "gaussian")
    cases = parse_cases([f"< {threshold * 100}", f">= {threshold * 100}"])
    exact = set_valued_variance(cases, 0.3, 1.0, 0.98e-5).variance  # 2% of delta are in reserve
    assert plan.noise.scale == pytest.approx(math.sqrt(exact / N), rel=2e-3)
    assert plan.noise.scale >= math.sqrt(set_valued_variance(cases, 0.3, 1.0, 1e-5).variance / N)


def test_equal_means_are_still_told_apart() -> None:
    plan = ap.plan(problem(["abs < 0.01", "abs >= 0.01"], rho=0.9), "gaussian")
    assert plan.noise.scale > 10 * plan.columns[0].parameters["mask"]


def test_tolerance_moves_the_threshold_and_costs_noise() -> None:
    cases = ["< 0.005", ">= 0.005"]
    exact = ap.plan(problem(cases), "gaussian")
    unsure = ap.plan(problem(cases, tolerance={"mean": 0.01, "slope": 0.05}), "gaussian")
    assert unsure.noise.scale > 1.2 * exact.noise.scale
    # the far end of the tolerance is a threshold at 1.5 sd of the mean and a slope 5% steeper
    far = set_valued_variance(parse_cases(["< 1.5", ">= 1.5"]), 0.3 * 1.05, 1.0, 1e-5).variance
    assert unsure.noise.scale >= math.sqrt(far / N) * (1 - 1e-6)


def test_a_certificate_with_a_cell_missing_fails() -> None:
    plan = ap.plan(problem(["< 0.005", ">= 0.005"], tolerance={"mean": 0.02, "slope": 0.05}), "gaussian")
    evidence = plan.certificate.evidence
    assert isinstance(evidence, GaussianEvidence)
    check = evidence.set_checks[0]
    assert len(check.cells) > 1
    fewer = check.model_copy(update={"cells": check.cells[:-1]})
    for broken in (fewer, check.model_copy(update={"strength": check.strength * 1.1})):
        changed = plan.certificate.model_copy(update={"evidence": evidence.model_copy(update={"set_checks": (broken,)})})
        with pytest.raises(ap.CertificateError):
            changed.verify()


def test_less_noise_is_caught() -> None:
    plan = ap.plan(problem(["< 0.01", ">= 0.01"]), "gaussian")
    evidence = plan.certificate.evidence
    assert isinstance(evidence, GaussianEvidence)
    less = evidence.model_copy(update={"independent": (evidence.independent[0] * 0.95,)})
    with pytest.raises(ap.CertificateError):
        plan.certificate.model_copy(update={"evidence": less}).verify()


def test_without_a_mean_bounded_cases_are_hidden_point_by_point() -> None:
    bounded = problem(["[-0.01, 0)", "[0, 0.01]"], mean={})
    pointwise = ap.plan(bounded, "gaussian")
    as_range = ap.plan(bounded.model_copy(update={"secrets": (ap.Secret("mean(g)", between=(-0.01, 0.01)),)}), "gaussian")
    assert pointwise.noise.scale == pytest.approx(as_range.noise.scale)
    with refuses(ap.RefusedError, Cause.NUMBERS, "the column's mean"):
        ap.plan(problem(["< 0", ">= 0"], mean={}), "gaussian")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"known_rows": 0.01}, "known rows"),
        ({"queries": (ap.mean("q"), ap.mean("g"))}, "one column"),
    ],
)
def test_what_is_not_covered_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ap.RefusedError, match=text):
        ap.plan(problem(["< 0", ">= 0"], **changes), "gaussian")


@pytest.mark.parametrize(
    "keys",
    [
        {"cases": ["< 0", ">= -1"]},
        {"cases": ["< 0"]},
        {"cases": ["< 0", "> 1"], "within": 1.0},
        {"cases": ["< x", "> 1"]},
    ],
)
def test_bad_cases(keys: dict[str, Any]) -> None:
    with pytest.raises(ap.PolicyError) as caught:
        ap.Secret("mean(g)", **keys)
    assert "\n" not in str(caught.value)
