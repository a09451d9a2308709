"""What grids cost, each part by itself: in grids so coarse that squares count."""

from __future__ import annotations

import math

import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration import gaussian as module
from attrpriv.numerics.calibration.direct import shifted_delta
from attrpriv.numerics.calibration.gaussian import grid_charge
from attrpriv.numerics.calibration.recorded import recorded_step


@pytest.mark.parametrize(
    ("columns", "common", "own", "shared"),
    [(1, None, 1, 0), (3, None, 3, 3), (2, 5, 2, 5), (1, 4, 1, 4), (3, 0, 3, 0)],
)
def test_each_column_and_each_common_number_pays(
    columns: int, common: int | None, own: int, shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T r + r^2 each; a quarter more of r where common noise moves an average by a quarter of a step."""
    monkeypatch.setattr(module, "_TAIL", 3.0)
    monkeypatch.setattr(module, "_GRID_RATIO", 0.25)
    monkeypatch.setattr(module, "_COMMON_RATIO", 0.5)
    reach = 0.25 * (1.25 if shared else 1.0)
    lam, eta = grid_charge(columns, common)
    assert lam == pytest.approx(own * (3 * reach + reach**2) + shared * (3 * 0.5 + 0.5**2), rel=1e-9)
    tails = 2 * math.exp(-(3.0**2) / 2) * (own + shared)
    assert tails <= eta <= 1.2 * tails


@pytest.mark.parametrize("sigma", [1e-9, 0.5, 0.7, 1.0, 1.5, 2.0, 900.0, 1024.0])
def test_bins_are_a_power_of_two_from_a_sixteenth_to_an_eighth(sigma: float) -> None:
    step = recorded_step(sigma)
    assert math.frexp(step)[0] == 0.5
    assert sigma / 16 < step <= sigma / 8


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf, math.nan])
def test_bins_of_no_noise_are_refused(sigma: float) -> None:
    with pytest.raises(UsageError):
        recorded_step(sigma)


@pytest.mark.parametrize(("scale", "distance", "loss"), [(0.5, 1, 2.0), (1.0, 3, 3.0), (4.0, 3, 0.75)])
def test_laplace_noise_loses_its_distance_over_its_scale(scale: float, distance: int, loss: float) -> None:
    """Small noise too: all of it, just below its loss, and nothing above."""
    assert shifted_delta("laplace", scale, distance, loss * (1 + 1e-6)) == 0.0
    assert shifted_delta("laplace", scale, distance, loss * (1 - 1e-6)) == 1.0


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan])
def test_no_noise_hides_nothing(scale: float) -> None:
    assert shifted_delta("laplace", scale, 1, 5.0) == shifted_delta("gaussian", scale, 1, 5.0) == 1.0
    assert shifted_delta("none", 3.0, 1, 5.0) == 1.0


@pytest.mark.parametrize("scale", [0.6, 2.5])
def test_gaussian_noise_is_compared_mass_by_mass(scale: float) -> None:
    weights = {k: math.exp(-k * k / (2 * scale**2)) for k in range(-60, 61)}
    total = math.fsum(weights.values())
    truth = math.fsum(max(0.0, weights.get(k, 0.0) - math.exp(0.3) * weights.get(k - 2, 0.0)) / total for k in range(-60, 63))
    assert truth * (1 - 1e-12) <= shifted_delta("gaussian", scale, 2, 0.3) <= truth * (1 + 1e-9)
