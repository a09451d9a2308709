"""What recorded values cost: masks, spacings that are covered, and one charge, against 400 digits; every condition's ends."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.gaussian import gaussians, left_spacing, masks, recorded, require_fine, require_rows, row_floors
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import MOMENTS, problem

INCOME = (Secret("mean(income)", within=1_000.0),)


def lattice(variance: Any, columns: int) -> float:
    with mpmath.workdps(400):
        q = mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf(variance))
        return float(-mpmath.log(2 - (1 + 2 * q / (1 - q)) ** columns))


@pytest.mark.parametrize("known", [0.0, 0.5])
def test_one_average(known: float) -> None:
    asked = problem(tolerance=0, secrets=INCOME, resolution={"weight": 12.0, "income": 1.0}, known_rows=known, n=100)
    theta = gaussians(asked)
    noise = masks(asked, theta)
    assert noise == {"weight": pytest.approx(0.12)}
    found = recorded(asked, theta, noise)
    assert found.spacing == {"weight": 12.0}
    left = 25.0**2 * (1 - 0.3**2)
    data = left * 100 * (1 - known) / 144
    assert found.charge == pytest.approx(lattice(data / (data + 1), 1), rel=1e-6)


def test_several_averages_share_the_least_eigenvalue() -> None:
    asked = problem(
        tolerance=0, secrets=INCOME, queries=(Query("avg", "weight"), Query("avg", "height")),
        resolution={"weight": 10.0, "height": 2.0, "income": 1.0}, n=100,
    )  # fmt: skip
    theta = gaussians(asked)
    (floor,) = row_floors(asked, theta[0], asked.columns)
    a, b, c = 1 - 0.09, 1 - 0.04, 0.5 - 0.06
    least = (a + b) / 2 - math.sqrt(((a - b) / 2) ** 2 + c * c)
    assert floor == {"weight": pytest.approx(least * 625.0, rel=1e-6), "height": pytest.approx(least * 16.0, rel=1e-6)}
    found = recorded(asked, theta, masks(asked, theta))
    data = min(least * 625.0 * 100 / 100.0, least * 16.0 * 100 / 4.0)
    assert found.charge == pytest.approx(lattice(data / (data + 1), 2), rel=1e-5)


@pytest.mark.parametrize("n", [100, 10_000, 1_000_000])
def test_an_undeclared_spacing(n: int) -> None:
    asked = problem(tolerance=0, secrets=INCOME, resolution={}, n=n)
    theta = gaussians(asked)
    mask = 25.0 / math.sqrt(n) / 50
    assert masks(asked, theta) == {"weight": pytest.approx(mask)}
    found = recorded(asked, theta, {"weight": mask})
    left = 25.0 * math.sqrt(1 - 0.09)
    spacing = min(mask * n / 1.5, 25.0 / 2, left)
    assert found.spacing["weight"] == pytest.approx(spacing)
    data, masked = left**2 * n / spacing**2, (mask * n / spacing) ** 2
    assert found.charge == pytest.approx(lattice(data * masked / (data + masked), 1), rel=1e-5, abs=1e-300)


def test_conditions_just_inside_and_just_outside() -> None:
    base = problem(tolerance=0, secrets=INCOME, resolution={"weight": 1.0, "income": 1.0})
    theta = gaussians(base)
    for n, holds in ((100, True), (99, False)):
        asked = base.model_copy(update={"n": n})
        if holds:
            require_rows(asked, theta, n)
        else:
            with pytest.raises(Refusal):
                require_rows(asked, theta, n)
    require_rows(base.model_copy(update={"resolution": {}}), theta, 3)
    for spacing, holds in ((12.5, True), (12.51, False)):
        asked = base.model_copy(update={"resolution": {"weight": spacing}})
        if holds:
            require_fine(asked, theta[0], "weight")
        else:
            with pytest.raises(Refusal):
                require_fine(asked, theta[0], "weight")
    # What income leaves open of a row of weight must be a spacing at least.
    tied = problem(tolerance=0, secrets=INCOME, resolution={"weight": 12.0, "income": 1.0})
    steep = Gaussian(**(MOMENTS | {"correlation": {**MOMENTS["correlation"], ("weight", "income"): 0.9}}), tolerance=0)
    left = 25.0 * math.sqrt(1 - 0.81)
    for spacing, holds in ((left * (1 - 1e-9), True), (left * (1 + 1e-9), False)):
        asked = tied.model_copy(update={"resolution": {"weight": spacing, "income": 1.0}, "theta": (steep,)})
        if holds:
            recorded(asked, (steep,), {"weight": spacing / asked.n})
        else:
            with pytest.raises(Refusal):
                recorded(asked, (steep,), {"weight": spacing / asked.n})


def test_a_mask_that_does_not_cover_is_refused() -> None:
    asked = problem(tolerance=0, secrets=INCOME, resolution={"weight": 12.0, "income": 1.0}, n=100)
    theta = gaussians(asked)
    with pytest.raises(Refusal, match="does not cover"):
        recorded(asked, theta, {"weight": 0.12 * 0.2})


def test_a_combination_of_columns_makes_a_lattice_coarser() -> None:
    """2 weight + 3 income, both on whole numbers: weight is known up to multiples of 3."""
    asked = problem(
        tolerance=0, secrets=(Secret("mean(2*weight + 3*income)", within=1.0),), resolution={"weight": 1.0, "income": 1.0}
    )
    assert left_spacing(asked, "weight") == (3.0, True)
    halves = asked.model_copy(update={"resolution": {"weight": 1.0, "income": 0.5}})
    assert left_spacing(halves, "weight") == (3.0, True)
    fine = asked.model_copy(update={"resolution": {"weight": 3.0, "income": 0.5}})
    assert left_spacing(fine, "weight") == (3.0, True)
    three = problem(
        tolerance=0, secrets=(Secret("mean(weight + 4*income + 6*height)", within=1.0),),
        resolution={"weight": 1.0, "income": 1.0, "height": 1.0},
    )  # fmt: skip
    assert left_spacing(three, "weight") == (2.0, True)  # 4 and 6 make up for any even number
    assert left_spacing(three, "height") == (1.0, True)  # not asked for
    with pytest.raises(Refusal, match="resolution"):
        left_spacing(asked.model_copy(update={"resolution": {"weight": 1.0}}), "weight")
