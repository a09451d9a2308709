"""The proof of a Gaussian mechanism: distances against exact linear algebra, cells that cover a box, and every guard."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from attrpriv.errors import CertificateError
from attrpriv.methods.base.gaussian_proof import (
    CasesCheck,
    GaussianCheck,
    GaussianEvidence,
    _covered,
    matrix_distance,
    require_covariance,
    shaped,
)
from attrpriv.numerics.laws.law_box import Cell
from tests.unit.methods.proofs import FREE, accepted, gaussian_delta, refused


def check(shifts: Any, credited: Any, **changes: Any) -> GaussianCheck:
    return GaussianCheck(**{"secret": "s", "theta": 0, "shifts": shifts, "credited": credited, **changes})


def evidence(**changes: Any) -> GaussianEvidence:
    told: dict[str, Any] = {
        **FREE,
        "columns": ("x",),
        "independent": (1.5,),
        "checks": (check(((0.9,),), ((0.25,),)),),
    }
    return GaussianEvidence(**(told | changes))


# ------------------------------------------------------------------------------------------------------------- distances


@pytest.mark.parametrize(
    ("shift", "credited", "own", "factor"),
    [(0.9, 0.25, 1.5, ()), (-3.0, 7.0, 0.0, ()), (2.0, 0.0, 0.4, ((0.3, -1.2),)), (0.5, 5.0, 0.7, ((2.0,),))],
)
def test_one_average_against_its_formula(shift: float, credited: float, own: float, factor: Any) -> None:
    told = evidence(independent=(own,), factor=factor, checks=(check(((shift,),), ((credited,),)),))
    common = sum((Fraction(x) ** 2 for x in factor[0]), Fraction(0)) if factor else Fraction(0)
    exact = math.sqrt(Fraction(shift) ** 2 / (Fraction(credited) + Fraction(own) ** 2 + common))
    assert exact <= told.distance() <= exact * (1 + 1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_several_averages_against_exact_linear_algebra(seed: int) -> None:
    """sqrt(lambda_max(B' S^-1 B)), S = credited + noise, with 40 digits."""
    rng = np.random.default_rng(seed)
    size, wide = 2 + seed % 2, 1 + seed % 3
    root, factor = rng.normal(size=(size, size)), rng.normal(size=(size, wide))
    credited = root @ root.T
    credited = (credited + credited.T) / 2
    own, shifts = rng.uniform(0.1, 2.0, size), rng.normal(size=(size, 2))
    told = evidence(
        columns=tuple("xyz"[:size]), independent=tuple(own.tolist()),
        factor=tuple(map(tuple, factor.tolist())),
        checks=(check(tuple(map(tuple, shifts.tolist())), tuple(map(tuple, credited.tolist()))),),
    )  # fmt: skip
    with mpmath.workdps(40):
        f, b = mpmath.matrix(factor.tolist()), mpmath.matrix(shifts.tolist())
        s = mpmath.matrix(credited.tolist()) + f * f.T + mpmath.diag([mpmath.mpf(x) ** 2 for x in own.tolist()])
        exact = float(mpmath.sqrt(max(mpmath.eigsy(b.T * mpmath.inverse(s) * b, eigvals_only=True))))
    assert exact <= told.distance() <= exact * (1 + 1e-9)


def test_the_farthest_check_counts() -> None:
    near, far = check(((0.5,),), ((0.25,),)), check(((2.0,),), ((0.25,),))
    assert (
        evidence(checks=(near, far)).distance() == evidence(checks=(far, near)).distance() == evidence(checks=(far,)).distance()
    )
    assert evidence(checks=()).distance() == 0.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_delta_is_that_of_two_normal_laws(epsilon: float) -> None:
    told = evidence()
    exact = gaussian_delta(epsilon, told.distance())
    assert exact <= told.delta(epsilon) <= exact * (1 + 1e-9)


def test_nothing_moves_where_nothing_is_shifted() -> None:
    assert evidence(independent=(0.0,), checks=(check(((0.0,),), ((0.0,),)),)).distance() == 0.0
    assert matrix_distance([[0.0], [0.0]], np.zeros((2, 2))) == 0.0


def test_an_average_without_spread_is_told() -> None:
    with pytest.raises(CertificateError, match="has no noise"):
        evidence(independent=(0.0,), checks=(check(((1e-300,),), ((0.0,),)),)).distance()
    for spread in ([[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]], [[1.0, math.nan], [math.nan, 1.0]]):
        with pytest.raises(CertificateError):
            matrix_distance([[1.0], [0.5]], np.array(spread))
    for wide in (np.diag([1.0, math.inf, 1.0]), np.diag([math.inf, 1.0, 1.0]), np.full((3, 3), math.inf)):
        with pytest.raises(CertificateError):
            matrix_distance([[1.0], [0.5], [0.5]], wide)
    for shifts in ([[math.inf], [0.5]], [[1.0], [math.nan]]):
        with pytest.raises(CertificateError):
            matrix_distance(shifts, np.eye(2))
    # A spread that is singular up to 1e-13 of itself is refused, one that is not is solved.
    thin = [[1.0, 1 - 1e-14], [1 - 1e-14, 1.0]]
    with pytest.raises(CertificateError, match="singular"):
        matrix_distance([[1.0], [0.5]], np.array(thin))
    assert matrix_distance([[1.0], [0.5]], np.array([[1.0, 0.9], [0.9, 1.0]])) == pytest.approx(math.sqrt(0.35 / 0.19))


def test_what_counts_as_a_covariance() -> None:
    """Symmetric up to 1e-12 and no eigenvalue below -1e-9, in units of its own diagonal."""
    for scale in (1e-6, 1.0, 1e6):
        require_covariance(np.array([[1.0, 0.5], [0.5, 1.0]]) * scale)
        require_covariance(np.array([[1.0, 1.0], [1.0, 1.0]]) * scale)
        require_covariance(np.array([[1.0, 0.5 + 5e-13], [0.5, 1.0]]) * scale)
        with pytest.raises(CertificateError):
            require_covariance(np.array([[1.0, 0.5 + 4e-12], [0.5, 1.0]]) * scale)
        with pytest.raises(CertificateError):
            require_covariance(np.array([[1.0, 1.0 + 1e-8], [1.0 + 1e-8, 1.0]]) * scale)
        require_covariance(np.array([[scale]]))
        with pytest.raises(CertificateError):
            require_covariance(np.array([[-scale]]))
    with pytest.raises(CertificateError, match="must not be negative"):
        evidence(checks=(check(((1.0,),), ((-0.01,),)),)).distance()


# ------------------------------------------------------------------------------------------------------------------ cells


def halved(rng: random.Random, cell: Cell, depth: int) -> list[Cell]:
    """A random division of a cell by halving."""
    if depth == 0 or rng.random() < 0.2:
        return [cell]
    mean, sd = cell.middle
    if rng.random() < 0.5:
        halves = [Cell((cell.means[0], mean), cell.sds), Cell((mean, cell.means[1]), cell.sds)]
    else:
        halves = [Cell(cell.means, (cell.sds[0], sd)), Cell(cell.means, (sd, cell.sds[1]))]
    return [part for half in halves for part in halved(rng, half, depth - 1)]


BOX = Cell((-1.0, 3.0), (1.0, 2.0))


@pytest.mark.parametrize("seed", range(8))
def test_halves_of_halves_cover_a_box_and_nothing_less_does(seed: int) -> None:
    rng = random.Random(seed)
    cells = halved(rng, BOX, 5)
    assert _covered(BOX, cells)
    rng.shuffle(cells)
    assert _covered(BOX, cells)
    if len(cells) > 1:
        for k in range(len(cells)):
            assert not _covered(BOX, cells[:k] + cells[k + 1 :])


LEFT, RIGHT = Cell((-1.0, 1.0), (1.0, 2.0)), Cell((1.0, 3.0), (1.0, 2.0))
LOW, HIGH = Cell((-1.0, 3.0), (1.0, 1.5)), Cell((-1.0, 3.0), (1.5, 2.0))


@pytest.mark.parametrize(
    "cells",
    [
        [], [LEFT], [RIGHT], [LOW], [HIGH], [LEFT, LOW], [LEFT, HIGH], [RIGHT, HIGH],
        [LEFT, Cell((1.0, 3.5), (1.0, 2.0))],  # beyond the box on every side, one at a time
        [RIGHT, Cell((-1.5, 1.0), (1.0, 2.0))],
        [LOW, Cell((-1.0, 3.0), (1.5, 2.5))],
        [HIGH, Cell((-1.0, 3.0), (0.5, 1.5))],
        [Cell((-2.0, 4.0), (0.5, 3.0))],  # the whole box inside of it: no bound for the box was computed
        [LEFT, Cell((1.0, 2.9), (1.0, 2.0))],  # a gap at each side
        [RIGHT, Cell((-0.9, 1.0), (1.0, 2.0))],
        [LOW, Cell((-1.0, 3.0), (1.6, 2.0))],
        [HIGH, Cell((-1.0, 3.0), (1.1, 1.5))],
    ],
)  # fmt: skip
def test_gaps_and_cells_outside_cover_nothing(cells: list[Cell]) -> None:
    assert not _covered(BOX, cells)


def test_a_box_that_is_a_point_is_its_own_cell() -> None:
    point = Cell((1.0, 1.0), (2.0, 2.0))
    assert _covered(point, [point])
    assert not _covered(point, [Cell((1.0, 1.0), (2.0, 2.5))])
    line = Cell((1.0, 1.0), (1.0, 2.0))
    assert _covered(line, [Cell((1.0, 1.0), (1.0, 1.5)), Cell((1.0, 1.0), (1.5, 2.0))])
    assert not _covered(line, [Cell((1.0, 1.0), (1.0, 1.5))])


def sets(**changes: Any) -> CasesCheck:
    told: dict[str, Any] = {
        "secret": "s", "theta": 0, "cases": ("< 0", ">= 0"), "means": (-0.5, 0.5), "sds": (1.0, 1.5), "form": "slope",
        "strength": 0.3, "query_sds": (1.0, 1.0),
        "cells": ((-0.5, 0.0, 1.0, 1.5), (0.0, 0.5, 1.0, 1.5)),
    }  # fmt: skip
    return CasesCheck(**(told | changes))


def halfline_delta(mean: float, sd: float, lam: float, epsilon: float) -> float:
    """Of two half-lines of g ~ N(mean, sd^2), seen through F with sqrt(explained/rest) = lam: by integration, both ways."""
    threshold = -mean / sd
    xs = np.linspace(-12, 12, 200_001)
    above = norm.cdf((lam * xs - threshold * math.sqrt(1 + lam**2)) * 1.0)  # P(z > t | output), output standardised
    density = norm.pdf(xs)
    high = density * above / norm.sf(threshold)
    low = density * (1 - above) / norm.cdf(threshold)
    step = xs[1] - xs[0]
    one = np.maximum(high - math.exp(epsilon) * low, 0).sum() * step
    other = np.maximum(low - math.exp(epsilon) * high, 0).sum() * step
    return float(max(one, other))


@pytest.mark.parametrize("mean", [-0.5, -0.25, 0.0, 0.25, 0.5])
def test_sets_are_hidden_at_every_member_of_the_box(mean: float) -> None:
    """Against integration at members of the box: g of a given mean and sd, slope 0.3, variance of F as stated."""
    epsilon, noise = 0.5, 0.7
    reached = evidence(independent=(noise,), checks=(), set_checks=(sets(),)).delta(epsilon)
    for sd in (1.0, 1.25, 1.5):
        explained = (0.3 * sd) ** 2
        lam = math.sqrt(explained / (max(0.0, 1.0 - explained) + noise**2))
        assert reached >= halfline_delta(mean, sd, lam, epsilon) * (1 - 1e-6)


def test_sets_are_bounded_tightly_at_a_point() -> None:
    point = sets(means=(0.2, 0.2), sds=(1.0, 1.0), cells=((0.2, 0.2, 1.0, 1.0),))
    reached = evidence(independent=(0.7,), checks=(), set_checks=(point,)).delta(0.5)
    lam = math.sqrt(0.09 / (0.91 + 0.49))
    assert reached == pytest.approx(halfline_delta(0.2, 1.0, lam, 0.5), rel=1e-3)


def test_sets_are_for_one_average_with_noise_of_its_own() -> None:
    assert evidence(checks=(), set_checks=(sets(),)).delta(0.5) < 1
    assert refused(evidence(checks=(), set_checks=(sets(),), factor=((1.0,),)))
    two = {"columns": ("x", "y"), "independent": (1.5, 1.5)}
    assert refused(evidence(**two, checks=(), set_checks=(sets(),)))
    assert refused(evidence(checks=(), set_checks=(sets(cells=sets().cells[:1]),)))
    worst = evidence(checks=(), set_checks=(sets(), sets(strength=0.5))).delta(0.5)
    assert worst == evidence(checks=(), set_checks=(sets(strength=0.5),)).delta(0.5)
    both = evidence(set_checks=(sets(),)).delta(0.5)
    assert both == max(evidence().delta(0.5), evidence(checks=(), set_checks=(sets(),)).delta(0.5))


# ----------------------------------------------------------------------------------------------- what may follow, what is drawn


def test_squares_of_distances_are_spent() -> None:
    """mu by a root of the formula; with charges only what they leave of delta can be spent."""
    epsilon, delta = 1.0, 1e-3
    for charges in ({}, {"reserve": 4e-4}, {"grid_lambda": 0.05}, {"fit_delta": 1e-4, "grid_eta": 1e-5}):
        told = evidence(checks=(check(((0.3,),), ((0.25,),)),), **charges)
        lam, eta = charges.get("grid_lambda", 0.0), charges.get("grid_eta", 0.0)
        rest = delta - charges.get("reserve", 0.0) - charges.get("fit_delta", 0.0) - eta * (1 + math.exp(epsilon))
        left, inner = rest * math.exp(-lam), epsilon - 2 * lam
        mu = brentq(lambda x, e=inner, d=left: float(gaussian_delta(e, x)) - d, 1e-3, 5.0, xtol=1e-13)
        wanted = (told.distance() / mu) ** 2
        assert wanted * (1 - 1e-9) <= told.spent(epsilon, delta) <= wanted * (1 + 1e-6)


def test_nothing_is_left_after_what_stands_alone() -> None:
    small = (check(((0.3,),), ((0.25,),)),)
    assert evidence(checks=small).spent(1.0, 1e-3) < 1
    assert evidence(checks=small, clip_delta=1e-9).spent(1.0, 1e-3) == math.inf
    assert evidence(checks=small, set_checks=(sets(strength=0.0),)).spent(1.0, 1e-3) == math.inf
    assert evidence(checks=small, grid_lambda=0.6).spent(1.0, 1e-3) == math.inf
    assert evidence(checks=small, reserve=1e-3).spent(1.0, 1e-3) == math.inf
    assert evidence().spent(1.0, evidence().delta(1.0)) == pytest.approx(1.0, rel=1e-6)
    assert evidence().spent(1.0, evidence().delta(1.0) * 0.999) == math.inf


FIRST = {"columns": ("x", "y"), "independent": (1.0, 2.0), "factor": ((1.0,), (0.5,))}
THEN: dict[str, Any] = {
    "columns": ("x", "y", "z"), "independent": (1.0, 2.0, 3.0), "factor": ((1.0, 0.0), (0.5, 0.0), (0.0, 0.7)),
    "before": 2, "common_before": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({}, True),
        ({"columns": ("y", "x", "z")}, False),
        ({"independent": (1.0, 2.5, 3.0)}, False),
        ({"independent": (1.0, 2.0, 9.0)}, True),
        ({"before": 1}, False),
        ({"before": 0}, False),
        ({"common_before": 0}, False),
        ({"common_before": 2}, False),
        ({"factor": ((1.1, 0.0), (0.5, 0.0), (0.0, 0.7))}, False),
        ({"factor": ((1.0, 0.0), (0.5, 0.1), (0.0, 0.7))}, False),
        ({"factor": ((1.0, 0.0), (0.5, 0.0), (0.2, 0.7))}, False),
        ({"factor": ((1.0,), (0.5,), (0.0,))}, True),
    ],
)
def test_what_was_released_is_continued_with_the_same_noise(changes: dict[str, Any], holds: bool) -> None:
    first = evidence(**FIRST, checks=())
    assert evidence(**{**THEN, "checks": (), **changes}).follows(first) is holds


def test_a_first_release_follows_nothing() -> None:
    assert evidence().follows(None)
    assert not evidence(before=1).follows(None)
    assert not evidence(common_before=1).follows(None)
    assert not evidence(**THEN, checks=()).follows("something else")
    assert not evidence(**THEN, checks=()).follows(evidence(**FIRST, checks=(), clip_delta=1e-9))
    plain = evidence(columns=("x",), independent=(1.0,), checks=())
    assert evidence(columns=("x", "y"), independent=(1.0, 2.0), before=1, checks=()).follows(plain)


def test_what_is_drawn_is_what_is_new() -> None:
    told = evidence(**THEN)
    assert told.own_columns == ("z",)
    assert told.own_factor == told.common_noise() == ((0.7,),)
    assert evidence(**{**THEN, "common_before": 2}).own_factor == ()
    assert told.covers("z", "gaussian", 3.0)
    assert not told.covers("x", "gaussian", 1.0)
    assert not told.covers("z", "laplace", 3.0)
    assert not told.covers("z", "gaussian", 3.1)
    assert not evidence(**{**THEN, "checks": ()}).covers("z", "gaussian", 3.0)
    assert evidence(checks=(), set_checks=(sets(),)).covers("x", "gaussian", 1.5)
    assert told.suits(("z",), 10, clipped=False)
    assert not told.suits(("z", "x"), 10, clipped=False)
    assert evidence().suits(("anything",), 10, clipped=True)


def test_impossible_numbers_prove_nothing() -> None:
    good = evidence()
    assert not refused(good)
    bad: list[dict[str, Any]] = [
        {"independent": ()},
        {"independent": (math.nan,)},
        {"independent": (-1.5,)},
        {"factor": ((math.nan,),)},
        {"checks": (good.checks[0].model_copy(update={"shifts": ((math.nan,),)}),)},
        {"checks": (good.checks[0].model_copy(update={"credited": ((math.nan,),)}),)},
        {"checks": (good.checks[0].model_copy(update={"credited": ((-0.25,),)}),)},
        {"reserve": math.nan},
        {"grid_lambda": math.inf},
        {"fit_delta": -1.0},
    ]
    for changes in bad:
        assert refused(good.model_copy(update=changes)), changes


PAIR: dict[str, Any] = {
    "columns": ("x", "y"), "independent": (1.5, 1.0), "factor": ((0.1, 0.2), (0.3, 0.4)),
    "checks": (check(((0.9,), (0.5,)), ((0.25, 0.1), (0.1, 0.5))),),
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": ("x",)},
        {"columns": ("x", "y", "z")},
        {"independent": (1.5,)},
        {"independent": (1.5, 1.0, 1.0)},
        {"factor": ((0.1, 0.2),)},
        {"factor": ((0.1, 0.2), (0.3,))},
        {"factor": ((0.1,), (0.3,), (0.1,))},
        {"checks": (check(((0.9,),), ((0.25, 0.1), (0.1, 0.5))),)},
        {"checks": (check(((0.9,), (0.5, 0.1)), ((0.25, 0.1), (0.1, 0.5))),)},
        {"checks": (check(((), ()), ((0.25, 0.1), (0.1, 0.5))),)},
        {"checks": (check(((0.9,), (0.5,)), ((0.25, 0.1),)),)},
        {"checks": (check(((0.9,), (0.5,)), ((0.25,), (0.1,))),)},
        {"checks": (check(((0.9,), (0.5,)), ((0.25, 0.1), (0.1,))),)},
    ],
)
def test_matrices_of_other_shapes_prove_nothing(changes: dict[str, Any]) -> None:
    assert not refused(evidence(**PAIR))
    assert refused(evidence(**(PAIR | changes)))
    assert not shaped((), 0)
    assert shaped(((),), 1)


def test_a_promise_holds_from_its_delta_on() -> None:
    reached = evidence().delta(1.0)
    assert accepted(evidence(), 1.0, reached * (1 + 1e-12))
    assert not accepted(evidence(), 1.0, reached * (1 - 1e-9))
