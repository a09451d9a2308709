"""Every plan for a population's mean, against the exact law of what it releases (`hierarchy_twin`); and mutants of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.errors import RefusedError
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.hierarchy.proof import HierarchyEvidence
from attrpriv.numerics.divergences.gaussian import gaussian_delta
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter
from attrpriv.queries.query import Query
from tests.property.hierarchy_twin import Release, Twin

INF = math.inf


def problem(twin: Twin, n: int, apart: float, *, within: float | None = None, **changes: Any) -> Problem:
    """The twin's numbers as a policy would state them, around means of 10 and 100."""
    root = math.sqrt(n)
    hierarchy = Hierarchy(
        mean={"f": 10.0, "g": 100.0},
        between_sd={"f": twin.query_between, "g": twin.hidden_between},
        between_correlation={("f", "g"): twin.correlation},
        within_sd={"f": twin.query_within * root, "g": twin.hidden_within * root},
        tolerance=0,
    )
    spacing = min(twin.query_within, twin.hidden_within) * root / 4
    stated: dict[str, Any] = {
        "queries": (Query("avg", "f"),),
        "secrets": (Parameter("g", between=(100.0 - apart / 2, 100.0 + apart / 2), within=within),),
        "epsilon": 1.0,
        "delta": 1e-3,
        "n": n,
        "theta": (hierarchy,),
        "resolution": {"f": spacing, "g": spacing},
    }
    return Problem(**(stated | changes))


def released(found: Plan) -> Release:
    """What the plan does, for the twin."""
    evidence = found.certificate.evidence
    if isinstance(evidence, GaussianEvidence):
        return Release(0.0, INF, INF, 0.0, evidence.independent[0])
    assert isinstance(evidence, HierarchyEvidence)
    clamp = evidence.clamp
    return Release(clamp.slopes[0][0], clamp.reach, clamp.reach, clamp.reads[0].mask, evidence.scale)


def density_of_noise(release: Release, twin: Twin, a: float) -> tuple[float, float]:
    """Mean and variance of an additive release."""
    mean, cov = twin.given(a)
    return float(mean[1]), float(cov[1, 1] + release.scale**2)


twins = st.builds(
    Twin,
    query_between=st.floats(0.2, 5),
    hidden_between=st.floats(0.2, 5),
    correlation=st.floats(0.05, 0.999).flatmap(lambda r: st.sampled_from([r, -r])),
    query_within=st.floats(0.02, 3),
    hidden_within=st.floats(0.02, 3),
)


@settings(max_examples=60, deadline=None)
@given(
    twin=twins,
    n=st.integers(100, 2_000),
    apart=st.floats(1, 200),
    near=st.floats(0.02, 1),
    epsilon=st.floats(0.1, 4),
    delta=st.floats(2, 6).map(lambda k: 10.0**-k),
)
def test_no_transported_release_loses_more_than_it_promises(
    twin: Twin, n: int, apart: float, near: float, epsilon: float, delta: float
) -> None:
    within = near * apart
    try:
        found = plan(problem(twin, n, apart, within=within, epsilon=epsilon, delta=delta), "transport")
    except RefusedError:
        return
    lost = released(found).worst(twin, -apart / 2, apart / 2, within, epsilon)
    assert lost <= delta * (1 + 1e-6)


@settings(max_examples=60, deadline=None)
@given(twin=twins, n=st.integers(100, 2_000), apart=st.floats(1, 200), epsilon=st.floats(0.1, 4))
def test_additive_noise_is_the_least(twin: Twin, n: int, apart: float, epsilon: float) -> None:
    """The exact loss is below delta, and a promille less noise would lose more, unless only the mask is there."""
    asked = problem(twin, n, apart, epsilon=epsilon)
    found = plan(asked, "gaussian")
    (low, v), (high, _) = (density_of_noise(released(found), twin, a) for a in (-apart / 2, apart / 2))
    assert gaussian_delta(epsilon, abs(high - low) / math.sqrt(v)) <= asked.delta
    mask = found.of(found.queries[0]).parameters["mask"]
    if found.noise.scale > 1.01 * mask:
        less = v - found.noise.scale**2 + (0.97 * found.noise.scale) ** 2
        assert gaussian_delta(epsilon, abs(high - low) / math.sqrt(less)) > 0.9 * asked.delta


def test_the_closed_law_is_the_integral() -> None:
    rng = np.random.default_rng(3)
    for _ in range(4):
        between, within, ends, noise = rng.uniform([0.3, 0.1, 0, 0.05], [3, 2, 1, 0.5], (2, 4)).T
        twin = Twin(between[0], between[1], float(rng.uniform(-0.95, 0.95)), within[0], within[1])
        release = Release(float(rng.normal()), ends[0], ends[1], noise[0], noise[1])
        for a, o in rng.normal(0, 2, (2, 2)):
            closed = release.density(twin, float(a), np.array([o]))[0]
            assert closed == pytest.approx(release.by_quadrature(twin, float(a), float(o)), rel=1e-9)


# ------------------------------------------------------------------------------------------------- mutants, all caught

NARROW = Twin(query_between=2.0, hidden_between=3.0, correlation=0.8, query_within=0.3, hidden_within=0.05)


def narrow(**changes: Any) -> tuple[Problem, Plan, Release]:
    asked = problem(NARROW, 400, 60.0, **changes)
    found = plan(asked, "transport")
    return asked, found, released(found)


def test_the_clamp_is_nearly_used_up() -> None:
    """With a small error of the sensitive average the bound is nearly attained, so that the mutants below cannot hide."""
    asked, found, release = narrow()
    assert found.columns[0].parameters["form"] == "clamped"
    lost = release.worst(NARROW, -30, 30, 60, 1.0)
    assert 0.9 * asked.delta < lost <= asked.delta


def test_a_clamp_twice_as_wide_is_caught() -> None:
    """As if tau were taken for half of itself."""
    asked, _, release = narrow()
    wide = Release(release.slope, 2 * release.low, 2 * release.high, release.mask, release.scale)
    assert wide.worst(NARROW, -30, 30, 60, 1.0) > 5 * asked.delta


@pytest.mark.parametrize("side", ["low", "high"])
def test_a_clamp_on_one_side_only_is_caught(side: str) -> None:
    asked, _, release = narrow()
    ends = {"low": release.low, "high": release.high} | {side: INF}
    half = Release(release.slope, ends["low"], ends["high"], release.mask, release.scale)
    assert half.worst(NARROW, -30, 30, 60, 1.0) > 100 * asked.delta


def test_a_mask_that_is_counted_but_not_drawn_is_caught() -> None:
    """Few rows of a coarse column, nearly determined by the population: the mask is a large part of V."""
    twin = Twin(query_between=1.0, hidden_between=3.0, correlation=1.0, query_within=0.05, hidden_within=0.001)
    asked = problem(twin, 100, 60.0, resolution={"f": 0.24, "g": 0.001})
    release = released(plan(asked, "transport"))
    assert release.worst(twin, -30, 30, 60, 1.0) <= asked.delta
    bare = Release(release.slope, release.low, release.high, release.mask, 0.0)
    assert bare.worst(twin, -30, 30, 60, 1.0) > asked.delta


def test_a_slope_that_is_wrong_is_caught() -> None:
    asked, _, release = narrow()
    steep = Release(0.9 * release.slope, release.low, release.high, release.mask, release.scale)
    assert steep.worst(NARROW, -30, 30, 60, 1.0) > 5 * asked.delta


def test_the_linear_form_is_exact() -> None:
    """Values that are near: a linear share is taken back, the law is Gaussian, and a promille less of it would lose more."""
    twin = Twin(query_between=2.0, hidden_between=3.0, correlation=0.8, query_within=0.3, hidden_within=0.3)
    found = plan(problem(twin, 400, 60.0, within=1.5), "transport")
    assert found.columns[0].parameters["form"] == "linear"
    release = released(found)
    assert 0.97e-3 < release.delta(twin, 0.0, 1.5, 1.0) <= 1e-3
    less = Release(0.99 * release.slope, 0.0, 0.0, release.mask, release.scale)
    assert less.delta(twin, 0.0, 1.5, 1.0) > 1e-3
