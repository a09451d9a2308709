"""The Gaussian proof where terms differ: several directions of one average, cells of unlike bounds, pairs further apart."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import CertificateError
from attrpriv.methods.base import gaussian_proof as module
from attrpriv.methods.base.accuracy import ExpectedError, Noise
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import CHARGES, Told
from attrpriv.methods.base.gaussian_proof import (
    CasesCheck,
    GaussianCheck,
    GaussianEvidence,
    matrix_distance,
    require_covariance,
    shaped,
)


def check(shifts: Any, credited: Any) -> GaussianCheck:
    return GaussianCheck(secret="s", theta=0, shifts=shifts, credited=credited)


def evidence(**changes: Any) -> GaussianEvidence:
    told: dict[str, Any] = {**dict.fromkeys(CHARGES, 0.0), "columns": ("x",), "independent": (1.5,), "checks": ()}
    return GaussianEvidence(**(told | changes))


def sets(means: tuple[float, float], *cells: tuple[float, float], **changes: Any) -> CasesCheck:
    told: dict[str, Any] = {
        "secret": "s", "theta": 0, "cases": ("< 0", ">= 0"), "means": means, "sds": (1.0, 1.0), "form": "slope",
        "strength": 0.3, "query_sds": (1.0, 1.0), "cells": tuple((*cell, 1.0, 1.0) for cell in cells),
    }  # fmt: skip
    return CasesCheck(**(told | changes))


# -------------------------------------------------------------------------------------------------------------- distances


@pytest.mark.parametrize("factor", [(), ((0.5, -1.2),)])
def test_one_average_that_moves_in_several_directions(factor: Any) -> None:
    """Secrets hidden jointly move it by a row times a vector of length 1: as far as the row is long."""
    told = evidence(factor=factor, checks=(check(((0.3, -0.4, 1.2),), ((0.75,),)),))
    exact = 1.3 / math.sqrt(0.75 + 1.5**2 + (1.69 if factor else 0.0))
    assert exact <= told.distance() <= exact * (1 + 1e-9)


def test_two_independent_averages_add_squares() -> None:
    told = evidence(columns=("x", "y"), independent=(2.0, 0.5), checks=(check(((1.0,), (0.3,)), ((0.0, 0.0), (0.0, 0.0))),))
    exact = math.hypot(1 / 2, 0.3 / 0.5)
    assert exact <= told.distance() <= exact * (1 + 1e-9)
    only = evidence(columns=("x", "y"), independent=(2.0, 0.5), checks=(check(((0.0,), (0.3,)), ((0.0, 0.0), (0.0, 0.0))),))
    assert 0.6 <= only.distance() <= 0.6 * (1 + 1e-9)


def test_the_epsilon_of_some_of_the_checks_is_that_of_the_farthest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "gaussian_epsilon", lambda distance, delta: distance + 1000 * delta)
    near, far = check(((0.5,),), ((0.25,),)), check(((2.0,),), ((0.25,),))
    told = evidence(checks=(near, far))
    for checks, one in (((near,), near), ((near, far), far), ((far, near), far)):
        assert told.epsilon_of(checks, 0.25) == told.distance_of(one) + 250
    assert told.epsilon_of((), 0.25) == 250


def test_pairs_further_apart_move_every_average_further() -> None:
    shifts = ((0.5, -1.0), (2.0, 0.25))
    told = evidence(columns=("x", "y"), independent=(1.0, 2.0), checks=(check(shifts, ((0.5, 0.1), (0.1, 0.2))),) * 2)
    for times in (0.3, 1.0, 2.5):
        wide = told.stretched(times)
        assert wide is not None
        assert [one.shifts for one in wide.checks] == [tuple(tuple(x * times for x in row) for row in shifts)] * 2
        assert wide.distance() == pytest.approx(told.distance() * times, rel=1e-12)
        assert wide.independent == told.independent


def test_sets_of_values_have_no_distance() -> None:
    told = evidence(set_checks=(sets((0.0, 0.0), (0.0, 0.0)),))
    assert told.stretched(0.4) is told.stretched(1.0) is told
    assert told.stretched(1.0 + 1e-9) is None


# ------------------------------------------------------------------------------------------------------------------ cells


def test_of_a_box_the_worst_cell_counts() -> None:
    """Means far from the threshold are told apart otherwise than those near it; each cell alone is a box of its own."""
    near, far = (-0.5, 0.5), (0.5, 1.5)
    alone = [sets(cell, cell).delta(0.3, 0.4) for cell in (near, far)]
    assert abs(alone[0] / alone[1] - 1) > 0.05
    for cells in ((near, far), (far, near)):
        assert sets((-0.5, 1.5), *cells).delta(0.3, 0.4) == max(alone)
        assert sets((-0.5, 1.75), *cells).delta(0.3, 0.4) == 1.0


def test_noise_is_counted_by_its_variance() -> None:
    point = sets((0.2, 0.2), (0.2, 0.2))
    told = evidence(independent=(0.7,), set_checks=(point,))
    assert told.delta(0.5) == pytest.approx(point.delta(0.5, 0.7**2), rel=1e-9)
    assert point.delta(0.5, 0.7) < point.delta(0.5, 0.49) < point.delta(0.5, 0.3)


def test_the_spread_of_a_cell_is_its_largest() -> None:
    """Of a wide cell the secret explains most where its sd is largest."""
    wide = sets((0.2, 0.2), (0.2, 0.2), sds=(0.5, 1.5), cells=((0.2, 0.2, 0.5, 1.5),))
    for sd in (0.5, 1.0, 1.5):
        narrow = sets((0.2, 0.2), (0.2, 0.2), sds=(sd, sd), cells=((0.2, 0.2, sd, sd),))
        assert wide.delta(0.5, 0.5) >= narrow.delta(0.5, 0.5) * (1 - 1e-9)


# ---------------------------------------------------------------------------------------------------------- what is drawn


def column(scale: float) -> ColumnPlan:
    error = ExpectedError(rmse=None, mean_absolute=None, alpha95=None)
    return ColumnPlan(column="x", noise=Noise(kind="gaussian", scale=scale), error=error)


def test_an_average_that_is_alone_errs_by_its_noise() -> None:
    assert evidence().given(column(2.5), 0, Told()) == (Fraction(0), 2.5)
    assert evidence(columns=("w", "x"), independent=(1.0, 1.5), before=1).given(column(2.5), 0, Told()) is None


def test_what_a_release_adds_is_covered_by_its_own_noise_and_order() -> None:
    told = evidence(
        columns=("w", "x", "y"), independent=(1.0, 2.0, 3.0), factor=((0.5, 0.0), (0.0, 0.7), (0.0, 0.9)), before=1,
        common_before=1, checks=(check(((1.0,), (1.0,), (1.0,)), np.eye(3).tolist()),),
    )  # fmt: skip
    assert told.suits(("x", "y"), 10, clipped=False)
    assert not told.suits(("y", "x"), 10, clipped=False)
    assert [told.covers(name, "gaussian", scale) for name, scale in (("w", 1.0), ("x", 2.0), ("y", 3.0), ("y", 2.0))] == [
        False, True, True, False,
    ]  # fmt: skip
    assert told.common_noise() == ((0.7,), (0.9,))


def test_common_noise_that_was_not_drawn_is_not_counted_on() -> None:
    """Two averages were released without any; none of them can have it afterwards."""
    first = evidence(columns=("w", "x"), independent=(1.0, 2.0))
    for factor, follows in (
        (((0.0,), (0.0,), (0.7,)), True),
        (((0.5,), (0.0,), (0.7,)), False),
        (((0.0,), (0.5,), (0.7,)), False),
    ):
        then = evidence(columns=("w", "x", "y"), independent=(1.0, 2.0, 3.0), factor=factor, before=2)
        assert then.follows(first) is follows


def test_a_little_spread_is_some() -> None:
    told = evidence(independent=(0.1,), checks=(check(((0.3,),), ((0.01,),)),))
    assert told.distance() == pytest.approx(0.3 / math.hypot(0.1, 0.1), rel=1e-9)


# ----------------------------------------------------------------------------------------------------------------- guards


def test_shapes_of_matrices() -> None:
    assert shaped(((1.0, 2.0), (3.0, 4.0)), 2)
    assert shaped(((1.0, 2.0),), 1, 2)
    for rows, told in ((((1.0, 2.0),), (2,)), (((1.0, 2.0), (3.0,)), (2,)), (((1.0, 2.0),), (1, 3)), ((), (0,))):
        assert not shaped(rows, *told)


def test_covariances_by_each_of_their_conditions() -> None:
    require_covariance(np.array([[0.0]]))
    require_covariance(np.zeros((2, 2)))
    require_covariance(np.array([[4.0, 0.0], [0.0, 0.0]]))
    for wrong in (
        [[-1e-9]],
        [[math.nan]],
        [[1.0, 0.2], [0.3, 1.0]],
        [[1.0, 1.2], [1.2, 1.0]],
        [[1.0, math.nan], [math.nan, 1.0]],
    ):
        with pytest.raises(CertificateError):
            require_covariance(np.array(wrong))
    with pytest.raises(CertificateError):
        require_covariance(np.array([[1.0, 0.0], [0.0, -1.0]]))


def test_a_distance_in_units_of_each_average() -> None:
    """Averages of very unlike units: 1e-8 and 1e8."""
    spread = np.array([[1e-16, 0.3], [0.3, 1e16]])
    found = matrix_distance([[2e-8], [1e8]], spread)
    exact = math.sqrt((4 - 2 * 0.3 * 2 + 1) / (1 - 0.09))
    assert exact * (1 - 1e-15) <= found <= exact * (1 + 1e-9)
