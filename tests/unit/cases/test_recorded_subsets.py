"""Recorded values in averages over subsets: the density of what is released, summed over the lattice, against the charge."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.gaussian import gaussians
from attrpriv.cases.recorded_forms import form_masks, recorded_forms
from attrpriv.numerics.calibration.gaussian import lattice_lambda
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.sql import parse_queries
from tests.refusing import refuses

N = 1_000
SIZES = {"k = 'a'": 300, "k = 'b'": 250, "k in ('a', 'b')": 650, "k in ('a', 'b', 'c')": 900, "k = 'd'": 350}
LAW = Gaussian(sd={"x": 3.0, "y": 2.5, "g": 5.0}, correlation={("x", "g"): 0.5, ("y", "g"): 0.0, ("x", "y"): 0.2}, tolerance=0)


def problem(text: str, **changes: Any) -> Problem:
    given: dict[str, Any] = {
        "queries": parse_queries(text),
        "secrets": (Secret("mean(g)", within=1.0),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": N,
        "theta": (LAW,),
        "sizes": SIZES,
        "resolution": {"x": 1, "y": 1, "g": 1},
    }
    return Problem(**{**given, **changes})


def of_x(*wheres: str | None) -> str:
    return ", ".join("avg(x)" if where is None else f"avg(x) filter (where {where})" for where in wheres)


def deviation(own: Sequence[int], sets: Sequence[Sequence[int]], noise: Sequence[float], seed: int = 1) -> float:
    """The largest log ratio of the real density of noisy sums over sets of atoms to the normal one, at 150 likely outputs.

    `own` are the rows of the atoms, each with a variance of what the secret leaves open, 9 (1 - 1/4); `noise` is in spacings.
    """
    reads = np.array([[float(atom in chosen) for atom in range(len(own))] for chosen in sets])
    spread = np.diag([rows * 9 * 0.75 for rows in own])
    ideal = reads @ spread @ reads.T + np.diag(np.square(noise))
    rng, worst = np.random.default_rng(seed), 0.0
    steps = np.array(list(itertools.product(range(-9, 10), repeat=len(own))))
    precision = np.linalg.inv(spread) + reads.T @ np.diag(1 / np.square(noise)) @ reads
    for _ in range(150):
        y = rng.multivariate_normal(np.zeros(len(sets)), ideal)
        centre = np.linalg.solve(precision, reads.T @ (y / np.square(noise)))  # of the sums, given the output
        points = np.rint(centre) + steps
        squares = (points**2 / np.diag(spread)).sum(axis=1) + (((y - points @ reads.T) / noise) ** 2).sum(axis=1)
        logs = -0.5 * squares - 0.5 * (np.log(2 * math.pi * np.diag(spread)).sum() + 2 * np.log(noise).sum())
        real = float(np.log(np.exp(logs - logs.max()).sum()) + logs.max())
        expected = -0.5 * float(y @ np.linalg.solve(ideal, y)) - 0.5 * float(np.linalg.slogdet(ideal)[1])
        worst = max(worst, abs(real - expected))
    return worst


def charge(asked: Problem, share: float) -> float:
    """With noise of this share of the masks, so that there is something to see."""
    theta = gaussians(asked)
    masks = form_masks(asked, theta)
    return recorded_forms(asked, theta, {key: share * mask for key, mask in masks.items()}).charge


# What is asked for; the rows of each atom; the atoms of each average.
CASES: dict[str, tuple[tuple[str | None, ...], list[int], list[list[int]]]] = {
    "a group": (("k = 'a'",), [300], [[0]]),
    "two groups": (("k = 'a'", "k = 'b'"), [300, 250], [[0], [1]]),
    "a group and all": ((None, "k = 'a'"), [700, 300], [[0, 1], [1]]),
    "two groups and all": ((None, "k = 'a'", "k = 'b'"), [450, 300, 250], [[0, 1, 2], [1], [2]]),
    "inside one another": (("k in ('a', 'b')", "k in ('a', 'b', 'c')", "k = 'a'"), [350, 250, 300], [[0, 2], [0, 1, 2], [2]]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_charge_covers_the_density(name: str) -> None:
    """At 0.6 of the mask the lattice shows, by less than is charged and not by much less."""
    wheres, own, sets = CASES[name]
    charged = charge(problem(of_x(*wheres)), 0.6)
    found = deviation(own, sets, [0.6] * len(sets))
    assert 1e-3 < charged < 2e-2
    assert 0.1 * charged < found <= charged


def test_with_the_mask_nothing_shows() -> None:
    wheres, own, sets = CASES["two groups and all"]
    assert charge(problem(of_x(*wheres)), 1.0) < 1e-7
    assert deviation(own, sets, [1.0] * 3) < 1e-7
    assert charge(problem(of_x(*wheres)), 1.5) < 1e-17, "what a sequence has"


def test_the_mask_of_the_table_does_not_do_for_a_group() -> None:
    """The mutant: h/n for a group of 300 of 1,000 rows. Its digits are then in plain sight."""
    asked = problem(of_x(None, "k = 'a'"))
    masks = form_masks(asked, gaussians(asked))
    assert masks["x"] == pytest.approx(1 / N, rel=1e-6)
    assert masks["x filter (where k = 'a')"] == pytest.approx(1 / 300, rel=1e-6)
    assert deviation([700, 300], [[0, 1], [1]], [1.0, 0.3]) > 0.2


def test_averages_that_make_up_another_would_be_charged_too_little() -> None:
    """Two groups that are all rows, and all rows: they pull at the sums together, beyond the charge. It is refused."""
    sizes = {"k = 'a'": 300, "k = 'b'": 700}
    independent = lattice_lambda(0.6**2 * 0.999, 3)
    assert deviation([300, 700], [[0, 1], [0], [1]], [0.6] * 3) > 1.5 * independent
    with refuses(Refusal, Cause.TOGETHER, "fewer subsets"):
        charge(problem(of_x(None, "k = 'a'", "k = 'b'"), sizes=sizes), 1.0)


def test_each_column_has_its_own_subsets() -> None:
    """All groups of x and all rows of y are no such thing: y has no groups."""
    sizes = {"k = 'a'": 300, "k = 'b'": 700}
    asked = problem("avg(x) filter (where k = 'a'), avg(x) filter (where k = 'b'), avg(y)", sizes=sizes)
    assert charge(asked, 1.0) == pytest.approx(lattice_lambda(1.0, 3), rel=0.2)


def test_two_averages_over_one_subset_pull_at_the_same_sums() -> None:
    near = charge(problem("avg(x) filter (where k = 'a'), avg(x + 0.001*y) filter (where k = 'a')"), 1.0)
    apart = charge(problem("avg(x) filter (where k = 'a'), avg(x + 0.001*y) filter (where k = 'b')"), 1.0)
    assert near == pytest.approx(lattice_lambda(0.5, 2), rel=0.05)
    assert apart < 1e-3 * near


def test_rows_of_their_own_must_not_be_few() -> None:
    """All but 50 rows, and all rows: the difference is a sum of 50 recorded values."""
    sizes = {"k = 'a'": 950}
    with refuses(Refusal, Cause.PRECISION, "more rows"):
        charge(problem(of_x(None, "k = 'a'"), sizes=sizes), 1.0)
    assert charge(problem(of_x("k = 'a'"), sizes=sizes), 1.0) < 1e-7


def test_an_undeclared_spacing_is_covered_up_to_what_the_masks_cover() -> None:
    asked = problem(of_x(None, "k = 'a'"), resolution={"g": 1e-3})
    theta = gaussians(asked)
    masks = form_masks(asked, theta)
    covered = recorded_forms(asked, theta, masks).spacing["x"]
    assert covered == pytest.approx(min(masks["x"] * N, masks["x filter (where k = 'a')"] * 300) / 1.5)
    assert masks["x filter (where k = 'a')"] == pytest.approx(3.0 / math.sqrt(300) / 50)
