"""A lower bound on a covariance over a box: no member is below it, and it is the bound that the box gives."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.gaussian import gaussians
from attrpriv.methods.calibrated_weights.case import _mask, _recorded, lower_covariance, read_on, undeclared_spacing
from attrpriv.problem.refusal import Refusal
from tests.conformance.test_mechanisms import problem

SD = {"a": 2.0, "b": 5.0}


def gaussian(rho: float = 0.4, tolerance: Any = None, **changes: Any) -> Gaussian:
    told: dict[str, Any] = {"mean": {"a": 1.0, "b": -3.0}, "sd": SD, "correlation": {"a~b": rho}, "tolerance": tolerance or 0}
    return Gaussian(**(told | changes))


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.4])
@pytest.mark.parametrize(("sd", "correlation"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.2), (0.05, 0.1)])
def test_no_member_is_below(rho: float, sd: float, correlation: float) -> None:
    told = gaussian(rho, {"sd": sd, "correlation": correlation})
    low = np.array(lower_covariance(told, ("a", "b")))
    for one, other, r in itertools.product(
        (1 - sd, 1.0, 1 + sd), (1 - sd, 1 + sd), (rho - correlation, rho, rho + correlation)
    ):
        s, t = 2.0 * one, 5.0 * other
        member = np.array([[s * s, r * s * t], [r * s * t, t * t]])
        assert np.linalg.eigvalsh(member - low)[0] >= -1e-9
    # Of each entry the interval in units of the stated sds, and half of the widths of a row taken off its diagonal.
    ends = [r * s for r in (rho - correlation, rho + correlation) for s in ((1 - sd) ** 2, (1 + sd) ** 2)]
    middle, radius = (min(ends) + max(ends)) / 2, (max(ends) - min(ends)) / 2
    own = (1 - sd) ** 2 - radius
    wanted = np.array([[own * 4.0, middle * 10.0], [middle * 10.0, own * 25.0]])
    assert low == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_one_column_is_its_least_variance() -> None:
    assert lower_covariance(gaussian(tolerance={"sd": 0.1, "correlation": 0}), ("b",))[0][0] == pytest.approx(
        25.0 * 0.81, rel=1e-9
    )


def test_a_covariance_that_may_be_singular_is_refused() -> None:
    with pytest.raises(Refusal, match="singular"):
        lower_covariance(gaussian(0.9, {"correlation": 0.1}), ("a", "b"))


def test_columns_are_read_on_a_grid_around_their_mean() -> None:
    found = read_on(gaussian(), "b", 0.5)
    assert found.step < 5.0 / 2**10
    assert (found.centre / found.step).is_integer()
    assert abs(found.centre + 3.0) <= found.step / 2
    assert found.fill == 0.5


@pytest.mark.parametrize("n", [100, 10_000, 1_000_000])
def test_an_undeclared_spacing_is_covered_up_to_its_mask(n: int) -> None:
    """So many masks over 1.5, half a standard deviation, or what the sensitive column leaves open of a row."""
    asked = problem(tolerance=0, resolution={}, n=n)
    theta = gaussians(asked)
    mask = 25.0 / math.sqrt(n) / 50
    found = _recorded(asked, theta, ("income",), (mask,))
    spacing = min(mask * n / 1.5, 12.5, 25.0 * math.sqrt(1 - 0.09))
    assert found.spacing["weight"] == pytest.approx(spacing, rel=1e-6)
    masked = (mask * n / spacing) ** 2
    with mpmath.workdps(400):
        q = mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf(n * masked / (n + masked)))
        wanted = float(-mpmath.log(1 - 2 * q / (1 - q)))
    assert found.charge == pytest.approx(wanted, rel=1e-5, abs=1e-300)


def test_a_mask_is_enough_for_the_widest_member() -> None:
    narrow, wide = gaussian(), gaussian(sd={"a": 20.0, "b": 5.0})
    asked = problem(n=400, resolution={}, types={})
    for theta, sd in (((narrow,), 2.0), ((wide,), 20.0), ((narrow, wide), 20.0), ((wide, narrow), 20.0)):
        assert _mask(asked, theta, "a") == pytest.approx(sd / math.sqrt(400) / 50, rel=1e-9)


@pytest.mark.parametrize(("n", "finer"), [(99, 50), (100, 1), (10_000, 1)])
def test_up_to_which_spacing_columns_are_covered(n: int, finer: int) -> None:
    """Half of what each varies by beside the other, in the worst member; a declared one is as it is declared."""
    wide, tied = gaussian(0.4), gaussian(0.8)
    asked = problem(n=n, resolution={}, types={})
    for theta, rho in (((wide,), 0.4), ((tied,), 0.8), ((wide, tied), 0.8), ((tied, wide), 0.8)):
        found = undeclared_spacing(asked, theta, ("a", "b"))
        for column in ("a", "b"):
            assert found[column] == pytest.approx(math.sqrt(1 - rho) * SD[column] / 2 / finer, rel=1e-9)
    assert set(undeclared_spacing(problem(n=n, resolution={"a": 1.0}), (wide,), ("a", "b"))) == {"b"}
