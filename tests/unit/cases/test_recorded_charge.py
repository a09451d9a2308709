"""What recorded values cost averages of combinations and over subsets: masks and charge, from matrices and 400 digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.recorded_forms import form_masks, recorded_forms
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.sql import parse_queries

N = 1_000
SIZES = {"k = 'a'": 300, "k = 'b'": 250, "k in ('a', 'b')": 650, "k = 'd'": 350}
SD = {"x": 30.0, "y": 8.0, "g": 5.0}
STEPS = {"x": 4.0, "y": 0.5, "g": 0.25}


TIED = {"xg": 0.5, "yg": 0.1, "xy": 0.3}
TIGHT = {"xg": 0.985, "yg": 0.05, "xy": 0.06}


def law(sd: Any = None, **pairs: float) -> Gaussian:
    return Gaussian(sd=sd or SD, correlation={tuple(pair): value for pair, value in (TIED | pairs).items()}, tolerance=0)


def problem(text: str, **changes: Any) -> Problem:
    given: dict[str, Any] = {
        "queries": parse_queries(text), "secrets": (Secret("mean(g)", within=1.0),), "epsilon": 1.0, "delta": 1e-6, "n": N,
        "theta": (law(),), "sizes": SIZES, "resolution": STEPS,
    }  # fmt: skip
    return Problem(**{**given, **changes})


def least(columns: Sequence[str], tied: dict[str, float]) -> float:
    """The least eigenvalue that g leaves of a row, in units of the spacings: that of correlations, times the finest sd."""
    each = np.array([[1.0 if a == b else tied["".join(sorted((a, b)))] for b in columns] for a in columns])
    to_g = np.array([tied[column + "g"] for column in columns])
    share = float(np.linalg.eigvalsh(each - np.outer(to_g, to_g))[0])
    return min(share * (SD[column] / STEPS[column]) ** 2 for column in columns)


def lattice(variance: float, pairs: int) -> float:
    with mpmath.workdps(400):
        q = mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf(variance))
        return float(-mpmath.log(2 - (1 + 2 * q / (1 - q)) ** pairs))


# The averages; each column's subsets: which parts of the rows are in each, and how many rows the parts have; and how the
# averages over each subset pull at the columns, by coefficients.
Column = tuple[list[list[int]], list[int]]
WAYS: dict[str, tuple[str, dict[str, Column], dict[int, list[dict[str, float]]]]] = {
    "combinations": (
        "avg(x + 3*y), avg(2*x - y)",
        {"x": ([[1]], [1000]), "y": ([[1]], [1000])},
        {1000: [{"x": 1, "y": 3}, {"x": 2, "y": -1}]},
    ),
    "a group and all": (
        "avg(x), avg(x - 2*y) filter (where k = 'a')",
        {"x": ([[1, 1], [0, 1]], [700, 300]), "y": ([[1]], [300])},
        {1000: [{"x": 1}], 300: [{"x": 1, "y": -2}]},
    ),
    "inside one another": (
        "avg(y), avg(y) filter (where k in ('a', 'b')), avg(y + x) filter (where k = 'b')",
        {"y": ([[1, 1, 1], [0, 1, 1], [0, 0, 1]], [350, 400, 250]), "x": ([[1]], [250])},
        {1000: [{"y": 1}], 650: [{"y": 1}], 250: [{"y": 1, "x": 1}]},
    ),
}


def charge(name: str, asked: Problem, noise: dict[str, float], floor: float) -> float:
    _, columns, pulls = WAYS[name]
    spread = 0.0
    for members, own in columns.values():
        back = np.linalg.inv(np.array(members, dtype=float))
        spread = max(spread, float(np.linalg.norm(back.T @ np.diag(1 / np.array(own)) @ back, 2)))
    scales, pull = list(noise.values()), 0.0
    for size, forms in pulls.items():
        matrix = np.array([[form.get(column, 0.0) * STEPS[column] / size for column in columns] for form in forms])
        matrix /= np.array([scales.pop(0) for _ in forms])[:, None]
        pull = max(pull, float(np.linalg.norm(matrix, 2)))
    data = spread / (floor * (1 - asked.known_rows))
    return lattice(1 / (data + pull**2), sum(len(own) for _, own in columns.values()))


@pytest.mark.parametrize("name", WAYS)
def test_the_charge_is_that_of_the_lattice(name: str) -> None:
    """Under the law that leaves least open; with noise of unequal shares of the masks."""
    asked = problem(WAYS[name][0])
    masks = form_masks(asked, (law(),))
    noise = {key: mask * share for (key, mask), share in zip(masks.items(), (0.9, 1.1, 1.3), strict=False)}
    wide, tight, found = law(), law(**TIGHT), []
    for theta, ties in (((wide,), TIED), ((tight,), TIGHT), ((wide, tight), TIGHT), ((tight, wide), TIGHT)):
        made = recorded_forms(asked, theta, noise)
        assert made.spacing == {column: STEPS[column] for column in asked.read_columns}
        wanted = charge(name, asked, noise, least(list(WAYS[name][1]), ties))
        assert wanted <= made.charge <= wanted * (1 + 1e-5)
        found.append(made.charge)
    assert found[1] > found[0] * (1 + 1e-3)  # or what is left of a row does not matter here


@pytest.mark.parametrize("known", [0.0, 0.4, 0.9])
def test_rows_that_are_known_leave_less_open(known: float) -> None:
    asked = problem("avg(x + 3*y), avg(2*x - y)", known_rows=known, sizes={})
    masks = form_masks(asked, (law(),))
    assert masks == pytest.approx({"x + 3 * y": math.hypot(4, 1.5) / N, "2 * x - y": math.hypot(8, 0.5) / N}, rel=1e-6)
    wanted = charge("combinations", asked, masks, least(["x", "y"], TIED))
    assert wanted <= recorded_forms(asked, (law(),), masks).charge <= wanted * (1 + 1e-5)


def test_what_is_left_open_is_a_spacing_at_least() -> None:
    for share, refused in ((0.999, False), (1.001, True)):
        step = {"x": SD["x"] * math.sqrt(1 - 0.9**2) * share, "g": 0.25}
        theta = (law(xg=0.9),)
        asked = problem("avg(2*x)", resolution=step, theta=theta, sizes={})
        noise = form_masks(asked, theta)
        if refused:
            with pytest.raises(Refusal, match="in every direction") as caught:
                recorded_forms(asked, theta, noise)
            assert caught.value.cause is Cause.PRECISION
        else:
            wanted = lattice(1 / (share**2 / N + 1), 1)
            assert recorded_forms(asked, theta, noise).charge == pytest.approx(wanted, rel=1e-5)


def test_masks_are_lengths_in_spacings_and_larger_where_these_are_not_declared() -> None:
    wide, narrow = law(), law(sd=SD | {"x": 10.0})
    text = "avg(3*x - y) filter (where k = 'a')"
    (declared,) = form_masks(problem(text), (narrow, wide)).values()
    assert declared == pytest.approx(math.hypot(3 * 4.0, 0.5) / 300, rel=1e-6)
    sd = math.sqrt(90**2 + 8**2 - 2 * 0.3 * 90 * 8)
    for types, resolution, length in (
        ({"x": "integer", "y": "integer"}, {"g": 0.25}, math.hypot(3, 1)),
        ({"y": "integer"}, {"g": 0.25, "x": 4.0}, math.hypot(12, 1)),
    ):
        asked = problem(text, types=types, resolution=resolution)
        for theta in ((narrow, wide), (wide, narrow)):
            (mask,) = form_masks(asked, theta).values()
            assert mask == pytest.approx(max(1.5 * length / 300, sd / math.sqrt(300) / 50), rel=1e-6)
    (few,) = form_masks(problem("avg(x)", resolution={"g": 0.25}, sizes={}), (narrow, wide)).values()
    assert few == pytest.approx(30 / math.sqrt(1000) / 50, rel=1e-6)


@pytest.mark.parametrize(
    ("tie", "share", "covered"), [(0.5, 1.0, 12.0 / 1.5), (0.5, 3.0, 15.0), (0.95, 3.0, 30 * math.sqrt(1 - 0.95**2))]
)
def test_an_undeclared_spacing_is_covered_up_to_the_least_of_three(tie: float, share: float, covered: float) -> None:
    """By the noise, half of the standard deviation, and what is left of a row; under every law."""
    asked = problem("avg(x), avg(x) filter (where k = 'a')", resolution={"g": 0.25})
    wide = law(xg=tie), law(sd=SD | {"x": 60.0}, xg=tie)
    for theta in (wide, wide[::-1]):
        noise = {key: 12.0 * share / size for key, size in zip(asked.columns, (1000, 300), strict=True)}
        assert recorded_forms(asked, theta, noise).spacing["x"] == pytest.approx(covered, rel=1e-6)
        noise[asked.columns[1]] *= 2
        assert recorded_forms(asked, theta, noise).spacing["x"] == pytest.approx(covered, rel=1e-6)


def test_a_column_of_small_numbers_is_covered_by_what_is_left_of_it() -> None:
    """Far below 1, with nearly all of it known from the secret."""
    theta = (law(sd=SD | {"x": 0.3}, xg=0.95),)
    asked = problem("avg(x)", resolution={"g": 0.25}, sizes={})
    covered = recorded_forms(asked, theta, {"x": 1.0}).spacing["x"]
    assert covered == pytest.approx(0.3 * math.sqrt(1 - 0.95**2), rel=1e-6)


# ------------------------------------------------------------------------------------------------------------ what is refused


def test_a_combination_may_vary_by_little_but_not_by_nothing() -> None:
    small = law(sd=SD | {"x": 0.5, "y": 0.2})
    steps = {"x": 0.01, "y": 0.01, "g": 0.25}
    assert form_masks(problem("avg(x - y)", theta=(small,), resolution=steps), (small,))
    equal = Gaussian(
        sd={"x": 1.0, "y": 1.0, "g": 5.0}, correlation={("x", "g"): 0.5, ("y", "g"): 0.5, ("x", "y"): 1.0}, tolerance=0
    )
    for theta in ((equal,), (law(), equal), (equal, law())):
        asked = problem("avg(x - y)", theta=theta)
        with pytest.raises(Refusal, match="standard deviation must be above 0"):
            form_masks(asked, theta)


def test_one_secret_of_cases_is_enough() -> None:
    cases = Secret("mean(g)", cases=("< 0", ">= 0"))
    for secrets in ((cases,), (Secret("mean(g)", within=1.0), cases), (cases, Secret("mean(g)", within=1.0))):
        asked = problem("avg(x - y)").model_copy(update={"secrets": secrets})
        with pytest.raises(Refusal, match="cases are hidden"):
            form_masks(asked, (law(),))


def test_a_secret_may_combine_columns_that_are_not_asked_for() -> None:
    """Over a subset; beside a combination it may not."""
    for form, refused in (("mean(g - y)", False), ("mean(g - x)", True), ("mean(g)", False)):
        asked = problem("avg(x) filter (where k = 'a')", secrets=(Secret(form, within=1.0),))
        if refused:
            with pytest.raises(Refusal, match="combines a column that is asked for"):
                form_masks(asked, (law(),))
        else:
            assert form_masks(asked, (law(),))
    with pytest.raises(Refusal, match="mean or sum of one column"):
        form_masks(problem("avg(x - y)", secrets=(Secret("mean(g - y)", within=1.0),)), (law(),))
    jointly = Secret(("mean(g - x)", "mean(y)"), within=1.0)
    with pytest.raises(Refusal, match="combines a column that is asked for"):
        form_masks(problem("avg(x) filter (where k = 'a')").model_copy(update={"secrets": (jointly,)}), (law(),))


def test_each_subset_has_rows_of_its_own() -> None:
    """Two at least: one row alone would be told by the difference of two averages."""
    for size, refused in ((998, False), (999, True)):
        asked = problem("avg(x), avg(x) filter (where k = 'a')", sizes={"k = 'a'": size})
        if refused:
            with pytest.raises(Refusal, match="cannot both be released"):
                recorded_forms(asked, (law(),), {})
        else:
            with pytest.raises(Refusal, match="need at least"):  # the next condition: few rows are not normal
                recorded_forms(asked, (law(),), {})
