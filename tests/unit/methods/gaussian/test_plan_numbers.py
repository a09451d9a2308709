"""What Gaussian plans say of themselves: gaps, moves and what holds for steeper slopes, by linear algebra of their own."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import attrpriv as ap
from attrpriv.cases.budget import Budget
from attrpriv.cases.shift import ShiftCase
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.methods.gaussian.plan import _certificate, _furthest, _sets_epsilon, plan, plan_approximation
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.queries.sql import parse_queries
from tests.refusing import refuses
from tests.unit.methods.gaussian.test_joint import N, covariance, noise_of, problem
from tests.unit.methods.gaussian.test_sets import problem as sets_problem
from tests.unit.methods.proofs import FREE, gaussian_delta

INCOME, SAT = ap.Secret("mean(income)", within=1000), ap.Secret("mean(sat)", within=60.0)


def evidence_of(made: ap.Plan) -> GaussianEvidence:
    assert isinstance(made.certificate.evidence, GaussianEvidence)
    return made.certificate.evidence


def law(columns: tuple[str, ...], hidden: str, apart: float, off: float = 0.0, sides: Any = 1.0) -> tuple[Any, Any]:
    """How averages move over a widest pair where each slope is off to a side, and what they vary at least by themselves."""
    v, k = covariance([*columns, hidden]), len(columns)
    slopes = v[:k, k] / v[k, k]
    more = ((1 + off) ** 2 - 1) * np.outer(np.abs(slopes), np.abs(slopes))
    return slopes * (1 + off * np.array(sides)) * apart, (v[:k, :k] - (np.outer(slopes, slopes) + more) * v[k, k]) / N


def test_of_several_averages_the_gap_is_that_of_the_one_furthest_from_its_own_least_noise() -> None:
    """Alone each would need max(mask^2, (shift/mu)^2 - variance) of the worst secret."""
    made = plan(problem([INCOME, SAT]))
    mu = made.columns[0].parameters["mu"]
    gaps = []
    for k, part in enumerate(made.columns):
        laws = [law(("weight", "height"), "income", 1000), law(("weight", "height"), "sat", 60.0)]
        needed = max((shift[k] / mu) ** 2 - spread[k, k] for shift, spread in laws)
        gaps.append(part.noise.scale - math.sqrt(max(part.parameters["mask"] ** 2, needed)))
        assert part.parameters["shift"] == pytest.approx(max(abs(shift[k]) for shift, _ in laws), rel=1e-9)
        assert part.parameters["credited_variance"] == pytest.approx(min(spread[k, k] for _, spread in laws), rel=1e-9)
        assert part.noise.individuals == 0
        assert part.error.rmse == pytest.approx(part.noise.scale, rel=1e-12)
    assert made.certificate.gap == pytest.approx(max(gaps), rel=1e-4)
    assert max(gaps) > 1.01 * min(gaps)
    assert not made.certificate.exact


@pytest.mark.parametrize(
    ("scales", "exact", "gap"),
    [
        ((1.0, 2.0), True, 0.0),
        ((1.0, 2.0 * (1 + 1e-9)), True, 0.0),  # a float's rounding
        ((1.0, 2.25), False, 0.25),
        ((1.5, 2.25), False, 0.5),
        ((0.5, 2.25), False, 0.25),
    ],
)
def test_noise_is_exact_where_each_average_has_its_least(scales: tuple[float, ...], exact: bool, gap: float) -> None:
    columns = ("a", "b")
    made = GaussianEvidence(columns=columns, independent=scales, checks=(), **FREE)
    asked = cast(ap.Problem, SimpleNamespace(columns=columns, epsilon=1.0, individuals=None))
    left = cast(Budget, SimpleNamespace(promised=1e-6))
    floor = dict(zip(columns, (1.0, 2.0), strict=True))
    found = _certificate(asked, made, (), floor, dict(zip(columns, scales, strict=True)), {}, left)
    assert (found.exact, found.gap) == (exact, gap)


def test_the_terms_of_a_combination_are_read_with_their_public_values() -> None:
    queries = parse_queries("avg(weight + 2 * height)")
    told = {"queries": queries, "missing": {"weight": 150.0}, "resolution": {"weight": 1.0, "height": 0.1}}
    combined = plan(problem([INCOME]).model_copy(update=told))
    assert dict(combined.columns[0].terms) == {"weight": 150.0, "height": None}
    assert dict(plan(problem([INCOME], ("weight",))).columns[0].terms) == {}


# ---------------------------------------------------------------------------------------------------------- steeper slopes


@pytest.mark.parametrize("secrets", [[INCOME], [INCOME, SAT]])
@pytest.mark.parametrize("columns", [("weight",), ("weight", "height")])
def test_what_holds_for_steeper_slopes_is_what_the_laws_say(secrets: list[ap.Secret], columns: tuple[str, ...]) -> None:
    """At 98% of delta, the rest being in reserve, with what grids and recorded values take of epsilon on top."""
    made = plan(problem(secrets, columns))
    for row in made.model_error:
        worst = 0.0
        for secret, sides in itertools.product(secrets, itertools.product((-1, 1), repeat=len(columns))):
            shift, spread = law(columns, secret.columns[0], secret.gap, row.off_by, sides)
            worst = max(worst, math.sqrt(shift @ np.linalg.solve(spread + noise_of(made), shift)))
        assert row.epsilon is not None
        inner = evidence_of(made).inner(row.epsilon)
        assert inner is not None
        assert gaussian_mu(inner, 0.98e-6) == pytest.approx(worst, rel=1e-4)


def test_what_a_shape_takes_of_epsilon_comes_on_top() -> None:
    """Twice the lambda of laws that are only nearly normal."""
    shaped = {"slope": 0.0, "shape": {"lambda": 0.02, "eta": 1e-12}}
    made = plan_approximation(problem([INCOME], ("weight",), tolerance=shaped))
    shift, spread = law(("weight",), "income", 1000, 0.05)
    apart = float(shift[0] / math.sqrt(spread[0, 0] + noise_of(made)[0, 0]))
    row = made.model_error[2]
    assert row.epsilon is not None
    assert evidence_of(made).lam == pytest.approx(0.02, rel=0.01)
    reached = float(gaussian_delta(row.epsilon - 2 * evidence_of(made).lam, apart))
    assert 0.9e-6 < reached < 1e-6


def test_of_several_cases_the_one_that_moves_averages_furthest_is_looked_at() -> None:
    """In the covariance with all noise, not in the data's own, nor in noise alone."""
    rng = np.random.default_rng(4)
    factor = ((0.6, 0.1), (-0.4, 0.7))
    made = GaussianEvidence(columns=("a", "b"), independent=(0.5, 1.5), factor=factor, checks=(), **FREE)
    noise = np.diag([0.25, 2.25]) + np.array(factor) @ np.array(factor).T
    places = set()
    for _ in range(40):
        cases = []
        for _ in range(3):
            root = rng.normal(size=(2, 2)) * rng.choice([0.2, 2.0])
            cases.append(ShiftCase("s", 0, rng.normal(size=(2, 2)), root @ root.T))
        moved = [np.linalg.eigvalsh(c.shifts.T @ np.linalg.inv(c.residual + noise) @ c.shifts)[-1] for c in cases]
        (found,) = _furthest(made, cases)
        assert found is cases[int(np.argmax(moved))]
        places.add(int(np.argmax(moved)))
        (pair,) = _furthest(made, cases[:2])
        assert pair is cases[int(np.argmax(moved[:2]))]
    assert places == {0, 1, 2}
    plain = GaussianEvidence(columns=("a", "b"), independent=(0.5, 1.5), checks=(), **FREE)
    (found,) = _furthest(plain, cases)
    moved = [np.linalg.eigvalsh(c.shifts.T @ np.linalg.inv(c.residual + np.diag([0.25, 2.25])) @ c.shifts)[-1] for c in cases]
    assert found is cases[int(np.argmax(moved))]


def test_of_one_average_or_one_case_nothing_is_chosen() -> None:
    one = GaussianEvidence(columns=("a",), independent=(0.5,), checks=(), **FREE)
    two = GaussianEvidence(columns=("a", "b"), independent=(0.5, 1.5), checks=(), **FREE)
    rows = [ShiftCase("s", 0, np.full((1, 1), x), np.eye(1)) for x in (1.0, 2.0)]
    assert _furthest(one, rows) is rows
    single = [ShiftCase("s", 0, np.ones((2, 1)), np.eye(2))]
    assert _furthest(two, single) is single


def test_sets_of_values_are_told_apart_more_by_steeper_slopes() -> None:
    """The least epsilon at which every cell of the box keeps delta, found from above and within a share of it."""
    made = plan(sets_problem(["< 0.005", ">= 0.005"], tolerance={"mean": 0.005, "slope": 0.05}))
    evidence = evidence_of(made)
    (check,) = evidence.set_checks
    assert len(check.cells) > 1
    variance = evidence.independent[0] ** 2
    assert (made.columns[0].parameters["shift"], made.columns[0].parameters["credited_variance"]) == (0.0, 0.0)
    left = cast(Budget, SimpleNamespace(epsilon=1.0, delta=0.98e-5))

    def reached(cell: Any, epsilon: float, off: float) -> float:
        alone = {"cells": (cell,), "means": cell[:2], "sds": cell[2:], "strength": check.strength * (1 + off)}
        return float(check.model_copy(update=alone).delta(epsilon, variance=variance))

    found = _sets_epsilon(evidence, 0.1, left)
    assert all(reached(cell, found, 0.1) <= 0.98e-5 for cell in check.cells)
    assert any(reached(cell, found * 0.99, 0.1) > 0.98e-5 for cell in check.cells)
    assert found > 1.05
    assert made.model_error[3].epsilon == pytest.approx(found, rel=0.01)
    assert _sets_epsilon(evidence.model_copy(update={"set_checks": ()}), 0.1, left) == 0


# ------------------------------------------------------------------------------------------------------------------ shapes


def test_one_shape_among_several_laws_is_for_neither_form() -> None:
    """Exactly normal laws are one method, nearly normal ones another: a mixture of both is planned by none."""
    shaped = {"slope": 0.01, "shape": {"lambda": 0.01, "eta": 1e-9}}
    members = {name: problem([INCOME], tolerance=told).theta[0] for name, told in (("exact", 0), ("shaped", shaped))}
    for order in (("exact", "shaped"), ("shaped", "exact")):
        mixed = problem([INCOME]).model_copy(update={"theta": tuple(members[name] for name in order)})
        with refuses(Refusal, Cause.SHAPE, "mechanism gaussian_approximation"):
            plan(mixed)
        with refuses(Refusal, Cause.SHAPE, "a shape tolerance"):
            plan_approximation(mixed)
    near = plan_approximation(problem([INCOME], tolerance=shaped))
    assert near.guarantee.kind == "approximate"
    assert plan(problem([INCOME])).guarantee.kind == "proved"


def test_sets_of_values_are_asked_for_alone() -> None:
    with refuses(Refusal, Cause.BUDGET, "spend 1"):
        plan(sets_problem(["< 0.005", ">= 0.005"], spend=0.5))
    assert plan(problem([INCOME], spend=0.5)).columns
