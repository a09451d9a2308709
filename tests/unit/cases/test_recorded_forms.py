"""Averages of linear combinations under the Gaussian mechanism: the exact law, the box, and the mask of recorded columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.vector_box import combined_box, vector_box
from attrpriv.cases.gaussian import gaussians
from attrpriv.cases.recorded_forms import form_masks, recorded_forms
from attrpriv.errors import AttrprivError, Cause, QueryError, RefusedError, UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan as plan_problem
from attrpriv.methods.choice.choose import rank
from attrpriv.methods.table import MECHANISMS
from attrpriv.numerics.calibration.gaussian import lattice_lambda
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from tests.refusing import refuses

NAMES = ("weight", "height", "income")
SD = {"weight": 25.0, "height": 4.0, "income": 30_000.0}
RHO = {("weight", "income"): 0.3, ("height", "income"): 0.2, ("weight", "height"): 0.5}
TYPES = dict.fromkeys(NAMES, "integer")
INCOME = Secret("mean(income)", between=(20_000, 200_000), within=1_000)
WIDE = {"mean": 0.01, "sd": 0.02, "slope": 0.05}
N = 10_000


def assumed(tolerance: Any = 0, **changes: Any) -> Gaussian:
    return Gaussian(**{"mean": {"income": 60_000}, "sd": SD, "correlation": RHO, "tolerance": tolerance, **changes})


def problem(text: str, tolerance: Any = 0, **changes: Any) -> Problem:
    given: dict[str, Any] = {"queries": parse_queries(text), "secrets": (INCOME,), "epsilon": 1.0, "delta": 1e-6, "n": N}
    return Problem(**{**given, "theta": (assumed(tolerance),), "types": TYPES, **changes})


def plan(text: str, tolerance: Any = 0, **changes: Any) -> Plan:
    return plan_problem(problem(text, tolerance, **changes), "gaussian")


def covariance() -> np.ndarray[Any, Any]:
    rho = np.eye(3)
    for (first, second), value in RHO.items():
        j, k = NAMES.index(first), NAMES.index(second)
        rho[j, k] = rho[k, j] = value
    sds = np.array([SD[name] for name in NAMES])
    return rho * np.outer(sds, sds)


# The slow twin: section 1's formula for F = L xbar, from the covariance matrix alone.


def slow_scale(weights: Mapping[str, float], mu: float, mask: float) -> float:
    matrix, n = covariance(), N
    form = np.array([weights.get(name, 0.0) for name in NAMES])
    secret = np.array([0.0, 0.0, 1.0])
    slope = form @ matrix @ secret / (secret @ matrix @ secret)
    left = (form @ matrix @ form - slope**2 * (secret @ matrix @ secret)) / n
    return max(mask, math.sqrt(max(0.0, (slope * 1_000 / mu) ** 2 - left)))


FORMS: dict[str, dict[str, float]] = {
    "avg(2*weight)": {"weight": 2},
    "avg(2*weight + height)": {"weight": 2, "height": 1},
    "avg(weight/3 - height + 7)": {"weight": 1 / 3, "height": -1},
    "sum(weight - 5*height)": {"weight": 1, "height": -5},
    "avg(weight + income/1000)": {"weight": 1, "income": 0.001},
    "avg(3*income)": {"income": 3},
    # no shift at all: the slopes cancel, and the mask alone is left
    "avg(4*weight - 37.5*height)": {"weight": 4, "height": -37.5},
}


@pytest.mark.parametrize("text", FORMS)
def test_the_noise_is_that_of_the_exact_law(text: str) -> None:
    made = plan(text)
    (part,) = made.columns
    expected = slow_scale(FORMS[text], part.parameters["mu"], part.parameters["mask"])
    assert part.noise.scale == pytest.approx(expected, rel=1e-7)
    assert part.noise.scale >= expected
    assert made.certificate.exact
    made.verify()


def test_the_twin_can_fail() -> None:
    (part,) = plan("avg(2*weight + height)").columns
    wrong = slow_scale({"weight": 2, "height": -1}, part.parameters["mu"], part.parameters["mask"])
    assert part.noise.scale != pytest.approx(wrong, rel=1e-3)


@pytest.mark.parametrize(
    "tolerance", [0, WIDE, {"mean": 0.01, "sd": 0.02, "correlation": 0.05}], ids=["exact", "slope", "corr"]
)
def test_a_multiple_needs_the_same_multiple_of_noise(tolerance: Any) -> None:
    alone, twice = (plan(text, tolerance).columns[0].noise.scale for text in ("avg(weight)", "avg(2*weight)"))
    assert twice == pytest.approx(2 * alone, rel=1e-6)


def test_another_spelling_is_the_same_plan() -> None:
    assert plan("avg(2*weight + height)") == plan("avg(height + weight*2)")
    assert plan("avg(2*weight + height)").columns[0].column == "height + 2 * weight"


# The box: every distribution of it has its slope in the interval, and a residual that is not below.


@pytest.mark.parametrize("tolerance", [WIDE, {"mean": 0, "sd": 0.05, "correlation": 0.1}], ids=["slope", "corr"])
def test_the_box_holds_every_distribution(tolerance: Any) -> None:
    forms = [{"weight": 2.0, "height": -3.0}, {"height": 1.0, "weight": 0.5}]
    box = combined_box(assumed(tolerance), forms, {"income": 1.0})
    assert box is not None
    rng, seen = np.random.default_rng(3), 0
    weights = np.array([[form.get(name, 0.0) for name in NAMES] for form in forms])
    for _ in range(400):
        matrix = random_member(rng, tolerance)
        if np.linalg.eigvalsh(matrix)[0] <= 0:
            continue
        seen += 1
        slopes = weights @ matrix[:, 2] / matrix[2, 2]
        left = weights @ matrix @ weights.T - np.outer(slopes, slopes) * matrix[2, 2]
        assert all(low <= slope <= high for slope, (low, high) in zip(slopes, box.slopes, strict=True))
        assert np.linalg.eigvalsh(left - box.residual)[0] >= -1e-9
    assert seen > 200
    stated = vector_box(assumed(), ("weight", "height"), {"income": 1.0})
    assert stated is not None
    assert box.slopes[0][0] < 2 * stated.slopes[0][0] - 3 * stated.slopes[1][0] < box.slopes[0][1]


def random_member(rng: np.random.Generator, tolerance: Mapping[str, float]) -> np.ndarray[Any, Any]:
    """A covariance in the box: extreme more often than not."""
    sds = np.array([SD[name] * (1 + tolerance["sd"] * rng.choice([-1, 1, rng.uniform(-1, 1)])) for name in NAMES])
    rho = covariance() / np.outer(*(np.array([SD[name] for name in NAMES]),) * 2)
    off = np.array([rng.choice([-1, 1]) for _ in range(3)])
    pairs = [(0, 2), (1, 2), (0, 1)]
    for (j, k), sign in zip(pairs, off, strict=True):
        if "slope" in tolerance:
            stated = rho[j, k] * SD[NAMES[j]] / SD[NAMES[k]]
            rho[j, k] = rho[k, j] = stated * (1 + sign * tolerance["slope"]) * sds[k] / sds[j]
        else:
            rho[j, k] = rho[k, j] = rho[j, k] + sign * tolerance["correlation"]
    return np.asarray(rho * np.outer(sds, sds))


# The lattice.


def density_ratio(weights: tuple[float, float], spread: np.ndarray[Any, Any], noise: float) -> float:
    """How far the density of a noisy combination of sums on Z^2 is from the normal one: the largest log ratio."""
    reach = np.arange(-170, 171)
    x, y = np.meshgrid(reach, reach, indexing="ij")
    points = np.stack([x.ravel(), y.ravel()])
    masses = np.exp(-0.5 * np.einsum("ik,ij,jk->k", points, np.linalg.inv(spread), points))
    masses /= masses.sum()
    sums = weights[0] * points[0] + weights[1] * points[1]
    variance = np.array(weights) @ spread @ np.array(weights) + noise**2
    worst = 0.0
    for t in np.linspace(-2.5, 2.5, 41) * math.sqrt(variance):
        found = float((masses * np.exp(-0.5 * ((t - sums) / noise) ** 2)).sum()) / noise
        ideal = math.exp(-0.5 * t * t / variance) / math.sqrt(variance)
        worst = max(worst, abs(math.log(found / ideal)) if found else math.inf)
    return worst


@pytest.mark.parametrize("weights", [(1.0, 0.001), (1.0, 1.0), (2.0, -3.0), (1.0, math.sqrt(2))])
def test_the_mask_covers_the_lattice_of_a_combination(weights: tuple[float, float]) -> None:
    """At n = 100 rows of spread 4 (in spacings), by summing over the lattice; 1e-13 is the rounding of these sums."""
    spread = 100 * np.array([[4.0, 0.5], [0.5, 4.0]])
    least = float(np.linalg.eigvalsh(spread)[0])
    mask = math.hypot(*weights) * 0.6
    charge = lattice_lambda(1 / (1 / least + (math.hypot(*weights) / mask) ** 2), 2)
    assert 1e-4 < charge < 1e-2, "large enough to be seen"
    assert density_ratio(weights, spread, mask) <= charge


def test_the_spacing_of_a_combination_is_not_what_counts() -> None:
    """The mutant: x + 0.001 y lies on multiples of 0.001, but noise of that size leaves whole numbers in plain sight."""
    spread = 100 * np.array([[4.0, 0.5], [0.5, 4.0]])
    assert density_ratio((1.0, 0.001), spread, 0.001 * 1.5) > 1.0


def test_masks_and_charge_of_a_problem() -> None:
    asked = problem("avg(weight + 0.001*height), avg(weight)", resolution={"weight": 1, "height": 1})
    masks = form_masks(asked, gaussians(asked))
    assert masks["weight"] == pytest.approx(1 / N, rel=1e-6)
    assert masks["0.001 * height + weight"] == pytest.approx(math.hypot(1, 0.001) / N, rel=1e-6)
    charge = recorded_forms(asked, gaussians(asked), masks).charge
    # Two nearly equal masked averages tell twice as much of the digits: |A|^2 is about 2, not 1.
    assert charge == pytest.approx(lattice_lambda(0.5, 2), rel=0.01)
    undeclared = problem("avg(weight + 0.001*height)")
    sd = assumed().sd_of_form({"weight": 1.0, "height": 0.001})
    assert form_masks(undeclared, gaussians(undeclared))["0.001 * height + weight"] == pytest.approx(sd / 100 / 50, rel=1e-6)


# What is refused.


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown spacing": ("avg(weight + height)", {"types": {}}, "needs the spacing of each of its columns"),
    "one unknown": ("avg(weight + height)", {"types": {}, "resolution": {"weight": 1}}, "Got none of height"),
    "coarse": ("avg(weight + height)", {"resolution": {"height": 3}}, "must be at least twice the spacing"),
    "combined secret": (
        "avg(weight + height)",
        {"secrets": (Secret("mean(income - 10*weight)", within=10),)},
        "secrets must be the mean or sum of one column",
    ),
    "cases": ("avg(2*weight)", {"secrets": (Secret("mean(income)", cases=("< 50000", ">= 50000")),)}, "cases are hidden"),
    "individuals": ("avg(2*weight)", {"individuals": 1.0, "bounds": {"weight": (0, 500)}}, "individuals: single persons"),
    "unknown column": ("avg(weight + age)", {}, "assume: age must have a standard deviation"),
    "nothing left": ("avg(weight - weight*1.0 + 2*height)", {}, "cancels out"),
    "a filter": ("avg(2*weight) filter (where height > 60)", {}, "needs the subset's size as a public number"),
    "a group": ("SELECT ward, avg(2*weight) FROM data GROUP BY ward", {}, "ward needs public categories"),
    "products": ("avg(weight * height)", {}, "of products of columns; a view does"),
    "variance": ("var_pop(weight)", {}, "(b) a declared sensitivity"),
    "slope": ("regr_slope(weight, height)", {}, "(b) a declared sensitivity"),
    "median": ("median(weight)", {}, "does not cover median(weight)"),
    "a name that is a combination": (
        "avg(2*weight)",
        {"types": {**TYPES, "2 * weight": "integer"}},
        "is a combination of columns, and the name of a column too",
    ),
    "a column beside a combination of its name": (
        'avg(2*weight + height), avg("height + 2 * weight")',
        {},
        "is an average of other columns or rows, and the name of a column too",
    ),
    "the other way round": (
        'avg("height + 2 * weight"), avg(2*weight + height)',
        {},
        "is an average of other columns or rows, and the name of a column too",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    text, changes, message = REFUSED[name]
    with pytest.raises(AttrprivError) as caught:
        plan(text, **changes)
    assert message in str(caught.value)
    assert isinstance(caught.value, RefusedError | UsageError)


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if not name.startswith("gaussian")])
@pytest.mark.parametrize("text", ["avg(2*weight)", "var_pop(weight)", "avg(weight*height)", "median(weight)"])
def test_other_mechanisms_refuse_what_they_do_not_know(mechanism: str, text: str) -> None:
    if mechanism == "group_dp" and text in ("var_pop(weight)", "median(weight)"):
        pytest.skip("it covers every statistic that has a range (test_ranged)")
    with pytest.raises(RefusedError, match=r"does not cover|a view hides|needs a parameter_network assumption"):
        plan_problem(problem(text, bounds={"weight": (0.0, 500.0)}), mechanism)


def test_auto_takes_the_gaussian_mechanism() -> None:
    chosen = rank(problem("avg(2*weight + height)", WIDE)).chosen
    assert chosen is not None
    assert chosen.mechanism == "gaussian"


def test_an_average_over_a_subset_says_what_it_needs() -> None:
    with refuses(RefusedError, Cause.PUBLIC_FACT, "sizes of ward = 'a'"):
        plan("avg(weight) filter (where ward = 'a')")


# After earlier releases.


def test_a_combination_after_its_columns() -> None:
    first = plan("avg(weight)", spend=0.3)
    then = plan("avg(2*weight + height)", spend=1.0, earlier=first.certificate.evidence)
    assert then.certificate.evidence.columns == ("weight", "height + 2 * weight")  # type: ignore[attr-defined]
    then.verify()
    last = plan("avg(height)", spend=0.5, earlier=plan("avg(2*weight + height)", spend=0.3).certificate.evidence)
    assert last.certificate.evidence.columns == ("height + 2 * weight", "height")  # type: ignore[attr-defined]


def test_an_earlier_name_that_means_two_things_is_refused() -> None:
    asked = problem("avg(weight)", theta=(assumed(sd={**SD, "a - b": 1.0}, correlation={**RHO, **with_others("a - b")}),))
    assert asked.average("weight") == Query("avg", "weight")
    assert asked.average("2 * weight") == Query("avg", of=("2 * weight",))
    with pytest.raises(QueryError, match="may be a column or a combination"):
        asked.average("a - b")


def with_others(name: str) -> dict[tuple[str, str], float]:
    return {(name, other): 0.0 for other in NAMES}
