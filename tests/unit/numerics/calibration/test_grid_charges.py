"""What grids cost, each part by itself: in grids so coarse that squares count."""

from __future__ import annotations

import math

import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration import gaussian as module
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
