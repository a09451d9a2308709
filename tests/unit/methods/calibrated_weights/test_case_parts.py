"""What calibrated weights take from a problem, number by number: ranges, targets, steps, masks, and where they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.errors import Cause
from attrpriv.methods.calibrated_weights import case as module
from attrpriv.methods.calibrated_weights.case import (
    _left_open,
    _mask,
    _ranges,
    _recorded,
    _require_covered,
    _require_fine_together,
    _require_independent,
    _spacing,
    lower_covariance,
    read_on,
    regression,
    together,
    weights_case,
)
from attrpriv.methods.calibrated_weights.proof import LEAST_REST, MOST_JOINT, WeightsCheck
from attrpriv.numerics.calibration.gaussian import lattice_lambda, mask_scale
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

RANGE = Secret("mean(g)", between=(2.0, 9.0))
OTHER = Secret("mean(h)", between=(-1.0, 1.0))


TIED = {"x~y": 0.2, "x~g": 0.5, "x~h": -0.3, "y~g": 0.1, "y~h": 0.25, "g~h": 0.4}


def gaussian(**changes: Any) -> Gaussian:
    told: dict[str, Any] = {
        "mean": {"x": 10.0, "y": 3.0, "g": 5.0, "h": 0.25}, "sd": {"x": 3.0, "y": 1.0, "g": 2.0, "h": 0.5}, "tolerance": 0,
        "correlation": TIED,
    }  # fmt: skip
    return Gaussian(**(told | changes))


def problem(*theta: Gaussian, **changes: Any) -> Problem:
    told: dict[str, Any] = {
        "queries": (Query("avg", "x"), Query("avg", "y")), "secrets": (RANGE, OTHER), "epsilon": 1.0, "delta": 1e-6, "n": 4000,
        "theta": theta or (gaussian(),), "resolution": {"x": 0.01, "y": 0.02, "g": 0.05, "h": 0.01},
    }  # fmt: skip
    return Problem(**(told | changes))


def refused(cause: Cause, done: Callable[[], Any], needs: str) -> None:
    with pytest.raises(Refusal) as caught:
        done()
    assert (caught.value.cause, needs in str(caught.value.needs)) == (cause, True)


# --------------------------------------------------------------------------------------------------------------- the whole


def test_a_case_is_of_every_secret_under_every_member() -> None:
    far = gaussian(mean={"x": 10.0, "y": 3.0, "g": 5.75, "h": 0.0}, tolerance={"mean": 0.25, "sd": 0.1, "correlation": 0.1})
    found = weights_case(problem(gaussian(), far))
    assert (found.sensitive, found.target) == (("g", "h"), (5.0, 0.25))
    assert [(one.secret, one.theta) for one in found.checks] == [("mean(g)", 0), ("mean(h)", 0), ("mean(g)", 1), ("mean(h)", 1)]
    assert [one.forms for one in found.checks] == [((1.0, 0.0),), ((0.0, 1.0),)] * 2
    assert [one.ranges for one in found.checks] == [((2.0, 9.0),), ((-1.0, 1.0),)] * 2
    assert [one.reach for one in found.checks[:2]] == [(0.0, 0.0)] * 2
    for check in found.checks[2:]:
        # 0.75 and 0.25 off, and a quarter of an sd that is a tenth larger at most.
        exact = (0.75 + 0.25 * 2.2, 0.25 + 0.25 * 0.55)
        assert all(e <= r <= e * (1 + 1e-9) for e, r in zip(exact, check.reach, strict=True))
        assert check.low == lower_covariance(far, ("g", "h"))
    assert found.masks == tuple(_mask(problem(gaussian(), far), (gaussian(), far), column) for column in ("x", "y"))


# --------------------------------------------------------------------------------------------------------------- refusals


def test_as_many_rows_are_needed_as_columns_and_what_a_direction_takes() -> None:
    least = 2 + 2 + LEAST_REST + 1
    theta = (gaussian(),)
    _require_covered(problem(n=least), theta, ("g", "h"))
    refused(Cause.SIZE, lambda: _require_covered(problem(n=least - 1), theta, ("g", "h")), "more rows")


def test_no_more_sensitive_columns_than_corners_are_looked_at() -> None:
    names = tuple(f"s{k}" for k in range(MOST_JOINT + 1))
    wide = (gaussian().model_copy(update={"mean": dict.fromkeys(names, 1.0)}),)
    _require_covered(problem(), wide, names[:-1])
    refused(Cause.SIZE, lambda: _require_covered(problem(), wide, names), "fewer secrets")


def test_every_member_states_the_mean_of_every_sensitive_column() -> None:
    without = gaussian(mean={"x": 10.0, "g": 5.0})
    for theta in ((without,), (gaussian(), without), (without, gaussian())):
        refused(Cause.NUMBERS, lambda theta=theta: _require_covered(problem(), theta, ("g", "h")), "the mean of h")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "cause", "needs"),
    [
        ({"known_rows": 1e-9}, Cause.PERSONS, "known_rows"),
        ({"individuals": 1.0}, Cause.PERSONS, "individuals"),
        ({"queries": (Query("count"),)}, Cause.STATISTIC, "an average"),
        ({"queries": (Query("avg", "x"), Query("avg", "g"))}, Cause.STATISTIC, "no secret"),
    ],
)
def test_what_is_not_covered(changes: dict[str, Any], cause: Cause, needs: str) -> None:
    refused(cause, lambda: _require_covered(problem(**changes), (gaussian(),), ("g", "h")), needs)


def test_rows_are_exactly_normal_in_every_member() -> None:
    bent = gaussian(tolerance={"slope": 0, "shape": {"lambda": 0.1, "eta": 0}})
    for theta in ((bent,), (gaussian(), bent)):
        refused(Cause.SHAPE, lambda theta=theta: _require_covered(problem(), theta, ("g", "h")), "gaussian_approximation")  # type: ignore[misc]


def test_statistics_that_determine_one_another_have_no_joint_range() -> None:
    told: dict[str, Any] = {
        "secret": "s",
        "theta": 0,
        "low": ((1.0, 0.0), (0.0, 1.0)),
        "reach": (0.0, 0.0),
        "ranges": ((0.0, 1.0),) * 2,
    }
    _require_independent(WeightsCheck(**told, forms=((1.0, 0.0), (1.0, 1.0))), 400, (0.0, 0.0))
    again = WeightsCheck(**told, forms=((1.0, 1.0), (2.0, 2.0)))
    refused(Cause.SECRET, lambda: _require_independent(again, 400, (0.0, 0.0)), "fewer secrets")


# ----------------------------------------------------------------------------------------------------------------- ranges


def test_the_values_of_a_secret_lie_between_its_ends() -> None:
    assert _ranges(RANGE, 7) == ((2.0, 9.0),)
    joint = Secret(["mean(g)", "mean(h)"], between={"mean(h)": (0.0, 1.0), "mean(g)": (2.0, 9.0)})
    assert _ranges(joint, 7) == ((2.0, 9.0), (0.0, 1.0))
    cases = Secret("mean(g)", cases=["[4, 6)", "[1, 2]", "(6, 7)"])
    assert _ranges(cases, 7) == ((1.0, 7.0),)
    for open_ended in (["< 5", ">= 5"], ["[1, 5)", ">= 5"]):
        refused(Cause.SECRET, lambda ends=open_ended: _ranges(Secret("mean(g)", cases=ends), 7), "between")  # type: ignore[misc]
    refused(Cause.SECRET, lambda: _ranges(Secret("mean(g)", within=1.0), 7), "between")


def test_the_mean_of_a_sum_lies_a_float_further_out() -> None:
    ((low, high),) = _ranges(Secret("sum(g)", between=(14.0, 63.0)), 7)
    assert (low, high) == (math.nextafter(2.0, -math.inf), math.nextafter(9.0, math.inf))


# ------------------------------------------------------------------------------------------------------- steps and spacings


@pytest.mark.parametrize("sd", [0.3, 1.0, 3.0, 1e5])
def test_a_step_is_a_power_of_two_below_the_sd(sd: float) -> None:
    read = read_on(gaussian(sd={"x": sd}, mean={"x": 10.3 * sd}, correlation={}), "x", None)
    assert sd * 2.0**-31 < read.step <= sd * 2.0**-30
    assert math.frexp(read.step)[0] == 0.5
    assert abs(read.centre - 10.3 * sd) <= read.step / 2
    assert read_on(gaussian(sd={"x": sd}, mean={}, correlation={}), "x", 2.5).centre == 0.0


def test_a_spacing_is_no_finer_than_a_step() -> None:
    theta = (gaussian(),)
    assert _spacing(problem(), theta, "x") == (0.01, True)
    fine = problem(resolution={"x": 1e-12})
    assert _spacing(fine, theta, "x") == (2.0**-29, True)  # of an sd of 3
    assert _spacing(problem(resolution={}), theta, "x") == (None, False)
    assert _mask(problem(), theta, "x") == mask_scale(0.01, True, 4000, 3.0)
    wide = gaussian(sd={"x": 5.0, "y": 1.0, "g": 2.0, "h": 0.5})
    for members in ((gaussian(), wide), (wide, gaussian())):
        assert _mask(problem(), members, "x") == mask_scale(0.01, True, 4000, 5.0)


def test_by_the_stated_moments_slopes_and_what_is_left() -> None:
    slopes, residual = regression(gaussian(), ("x", "y"), ("g", "h"))
    sds = np.array([3.0, 1.0, 2.0, 0.5])
    rho = np.array([[1, 0.2, 0.5, -0.3], [0.2, 1, 0.1, 0.25], [0.5, 0.1, 1, 0.4], [-0.3, 0.25, 0.4, 1]])
    sigma = rho * np.outer(sds, sds)
    wanted = sigma[:2, 2:] @ np.linalg.inv(sigma[2:, 2:])
    left = sigma[:2, :2] - wanted @ sigma[2:, :2]
    assert slopes == pytest.approx(wanted, rel=1e-12)
    assert residual == pytest.approx(left, rel=1e-12)
    unit = np.diag(1 / sds[:2])
    assert _left_open(gaussian(), ("x", "y"), ("g", "h")) == pytest.approx(np.linalg.eigvalsh(unit @ left @ unit)[0], rel=1e-12)


def test_together_sensitive_columns_vary_by_the_least_direction() -> None:
    """Of two with correlation r, 1 - r of each variance; the least over the members."""
    tied = gaussian(correlation=TIED | {"g~h": 0.8, "x~h": 0.3}, sd={"x": 3.0, "y": 1.0, "g": 4.0, "h": 0.5})
    assert together((gaussian(),), ("g", "h")) == pytest.approx({"g": 2 * math.sqrt(0.6), "h": 0.5 * math.sqrt(0.6)}, rel=1e-6)
    for theta in ((gaussian(), tied), (tied, gaussian())):
        found = together(theta, ("g", "h"))
        assert found == pytest.approx({"g": 2 * math.sqrt(0.6), "h": 0.5 * math.sqrt(0.2)}, rel=1e-6)


def test_sensitive_columns_vary_by_two_spacings_in_every_direction() -> None:
    theta = (gaussian(),)
    left = together(theta, ("g", "h"))
    for column in ("g", "h"):
        _require_fine_together(problem(resolution={column: left[column] / 2 * (1 - 1e-9)}), theta, ("g", "h"))
        coarse = problem(resolution={column: left[column] / 2 * (1 + 1e-9)})
        refused(Cause.PRECISION, lambda coarse=coarse: _require_fine_together(coarse, theta, ("g", "h")), "fewer secrets")  # type: ignore[misc]
        wide = problem(resolution={column: 0.6 * theta[0].sd_of(column)})
        _require_fine_together(wide, theta, (column,))  # alone it is no pair


# ------------------------------------------------------------------------------------------------------- recorded values


def test_recorded_values_are_charged_at_the_least_mask() -> None:
    """Of each average so many spacings a row; rows vary by 1 more in the same unit, whichever is less."""
    asked, masks = problem(), (4e-5, 3e-5)
    found = _recorded(asked, (gaussian(),), ("g", "h"), masks)
    assert dict(found.spacing) == {"x": 0.01, "y": 0.02}
    own = min((masks[0] * 4000 / 0.01) ** 2, (masks[1] * 4000 / 0.02) ** 2)
    assert found.charge == lattice_lambda(4000 * own / (4000 + own), 2) > 0
    turned = _recorded(problem(resolution={"x": 0.02, "y": 0.01, "g": 0.05, "h": 0.01}), (gaussian(),), ("g", "h"), masks[::-1])
    assert turned.charge == found.charge
    refused(Cause.PRECISION, lambda: _recorded(asked, (gaussian(),), ("g", "h"), (1e-9, 3e-5)), "")


def test_an_undeclared_spacing_is_what_masks_cover_of_each_column() -> None:
    """Masks over 1.5, half the least sd, or what the sensitive columns leave open, whichever is least."""
    asked = problem(resolution={"g": 0.05, "h": 0.01}, n=4000)
    floor = math.sqrt(_left_open(gaussian(), ("x", "y"), ("g", "h")))
    assert 0.5 < floor < 1
    found = _recorded(asked, (gaussian(),), ("g", "h"), (1e-4, 1.0))
    assert dict(found.spacing) == pytest.approx({"x": 1e-4 * 4000 / 1.5, "y": 0.5}, rel=1e-12)
    wide = gaussian(sd={"x": 6.0, "y": 1.0, "g": 2.0, "h": 0.5}, tolerance={"sd": 0.1, "correlation": 0})
    for theta in ((gaussian(), wide), (wide, gaussian())):
        assert _recorded(asked, theta, ("g", "h"), (1.0, 1.0)).spacing["x"] == pytest.approx(1.5, rel=1e-12)
        assert _recorded(asked, theta, ("g", "h"), (1.0, 1.0)).spacing["y"] == pytest.approx(0.45, rel=1e-12)


def test_a_type_gives_a_spacing_that_is_not_declared() -> None:
    """Whole numbers are on a spacing of 1 at least; masks cover more than that, or they do not."""
    asked = problem(queries=(Query("avg", "x"),), resolution={}, types={"x": "integer"}, n=4000)
    assert asked.spacing("x") == (1.0, False)
    for mask, spacing in ((1e-3, 4 / 1.5), (1e-4, 1.0)):
        assert _recorded(asked, (gaussian(sd={"x": 9.0, "y": 1.0, "g": 2.0, "h": 0.5}),), ("g",), (mask,)).spacing[
            "x"
        ] == pytest.approx(spacing)


def test_the_member_that_leaves_least_open_counts() -> None:
    tied, asked = (
        gaussian(correlation=TIED | {"x~g": 0.9, "x~h": 0.3}),
        problem(queries=(Query("avg", "x"),), resolution={"x": 1.5}),
    )
    assert 9 * (1 - 0.81) < 1.5**2 < 9 * (1 - 0.25)
    assert _recorded(asked, (gaussian(),), ("g",), (1.0,)).spacing == {"x": 1.5}
    for theta in ((gaussian(), tied), (tied, gaussian())):
        refused(Cause.PRECISION, lambda theta=theta: _recorded(asked, theta, ("g",), (1.0,)), "finer values")  # type: ignore[misc]


def test_what_is_left_open_of_a_row_is_no_finer_than_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("require_rows", "require_fine", "_require_fine_together"):
        monkeypatch.setattr(module, name, lambda *told: None)
    for share, fine in ((0.04 / 9 * (1 + 1e-9), True), (0.04 / 9 * (1 - 1e-9), False), (0.0, False), (-1e-9, False)):
        monkeypatch.setattr(module, "_left_open", lambda member, columns, sensitive, share=share: share)
        asked = problem(queries=(Query("avg", "x"),), resolution={"x": 0.2})
        if fine:
            assert dict(_recorded(asked, (gaussian(),), ("g",), (1.0,)).spacing) == {"x": 0.2}
        else:
            refused(Cause.PRECISION, lambda asked=asked: _recorded(asked, (gaussian(),), ("g",), (1.0,)), "finer values")  # type: ignore[misc]
            if share <= 0:
                free = problem(queries=(Query("avg", "x"),), resolution={})
                refused(Cause.PRECISION, lambda asked=free: _recorded(asked, (gaussian(),), ("g",), (1.0,)), "finer values")  # type: ignore[misc]
