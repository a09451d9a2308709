"""Whole-number noise by convolving its masses, also where the continuous laws take over, which here is from scale 3 on."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
from scipy.stats import norm

from attrpriv.methods.base import tally as module
from attrpriv.methods.base.accuracy import noise_error, sum_reach
from attrpriv.methods.base.tally import WholeSpread

Kind = Literal["laplace", "gaussian"]
FAR = 400
LEVELS = (0.2, 0.6, 0.9, 0.99)


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGE", 3.0)


def law(kind: Kind, scale: float) -> Any:
    """P(Z = k) for k from -FAR to FAR; nothing else than 0 without a scale."""
    k = np.arange(-FAR, FAR + 1, dtype=np.float64)
    if not scale:
        return (k == 0).astype(np.float64)
    weights = np.exp(-np.abs(k) / scale) if kind == "laplace" else np.exp(-(k**2) / (2 * scale**2))
    return weights / weights.sum()


def exact(kind: Kind, scale: float, rows: float) -> tuple[float, float, list[int]]:
    """Root mean square, mean size, and the least reach of each level."""
    both = np.convolve(law(kind, scale), law("laplace", rows))
    size = np.abs(np.arange(len(both)) - 2 * FAR)
    reach = [next(t for t in range(FAR) if both[size > t].sum() <= 1 - level) for level in LEVELS]
    return math.sqrt(both @ size**2), float(both @ size), reach


@pytest.mark.parametrize(
    ("kind", "scale", "rows"),
    [
        ("laplace", 0.4, 0.0),
        ("laplace", 1.7, 0.0),
        ("laplace", 5.0, 0.0),
        ("laplace", 5.0, 2.0),
        ("laplace", 0.7, 1.3),
        ("gaussian", 0.4, 0.0),
        ("gaussian", 1.7, 0.0),
        ("gaussian", 2.9, 1.3),
        ("gaussian", 0.6, 4.0),
        ("laplace", 0.0, 2.0),
        ("gaussian", 0.0, 2.0),
    ],
)
def test_reach_and_moments_are_those_of_the_masses(kind: Kind, scale: float, rows: float) -> None:
    rmse, size, reach = exact(kind, scale, rows)
    for unit in (1.0, 0.25):
        spread = WholeSpread(kind, scale, rows, unit)
        assert spread.moments() == pytest.approx((unit * rmse, unit * size), rel=1e-9)
        assert [spread.reach(level) for level in LEVELS] == [unit * t for t in reach]


def test_a_large_gaussian_is_nearly_normal() -> None:
    spread = WholeSpread("gaussian", 20.0)
    assert spread.moments() == pytest.approx((20.0, 20 * math.sqrt(2 / math.pi)))
    for level, least in zip(LEVELS, exact("gaussian", 20.0, 0.0)[2], strict=True):
        end = 20 * norm.isf((1 - level) / 2)
        assert end <= spread.reach(level) <= end + 1
        assert spread.reach(level) >= least


def test_a_large_gaussian_and_noise_for_rows_reach_a_step_further() -> None:
    spread = WholeSpread("gaussian", 20.0, 5.0)
    rmse, size, reach = exact("gaussian", 20.0, 5.0)
    assert spread.moments() == pytest.approx((rmse, noise_error(20.0, 5.0).mean_absolute), rel=1e-9)
    assert spread.moments()[1] == pytest.approx(size, rel=1e-3)
    for level, least in zip(LEVELS, reach, strict=True):
        end = sum_reach(20.0, 5.0, level)
        assert end + 1 <= spread.reach(level) <= end + 2
        assert least <= spread.reach(level)


def test_a_kernel_misses_exactly_what_its_tails_say() -> None:
    kernel = WholeSpread("kernel", 0.0, unit=2.0, tails=(0.5, 0.25, 0.125), tail_step=3)
    reach = {0.4: 0.0, 0.5: 0.0, 0.6: 6.0, 0.75: 6.0, 0.8: 12.0, 0.875: 12.0, 0.9: 18.0}
    assert {level: kernel.reach(level) for level in reach} == reach
