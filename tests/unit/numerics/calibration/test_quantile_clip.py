"""The quantile clip in floats: its bounds, its law and its errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from attrpriv.errors import UsageError
from attrpriv.methods.quantile_clip.grid import quantile_grid, rounding_charge
from attrpriv.numerics.calibration.quantile_clip import QuantileClip, clip_residuals, clip_rmse, halves, least_error_split

SCHOOL = 0.3 / math.sqrt(1 - 0.3**2)
SPREAD = 0.25 * math.sqrt(1 - 0.3**2)


def test_the_published_numbers() -> None:
    found = [SPREAD * clip_rmse(halves(e), SCHOOL) for e in (0.1, 0.5, 1.0, 2.0, 5.0)]
    assert found == pytest.approx([0.0677, 0.0439, 0.0252, 0.0090, 0.00065], rel=0.005)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("wander", [0.05, SCHOOL, 3.0])
def test_errors_agree_with_brute_force(epsilon: float, wander: float) -> None:
    """A plain double sum over z and t; and the law has the mean square and the tails of that sum."""
    clip = halves(epsilon)
    z = np.linspace(-9, 9, 2001)
    weights = np.exp(-z * z / 2)
    weights /= weights.sum()
    x = z[:, None] + wander * z
    taken = np.clip(x, clip.lower(z)[:, None], clip.upper(z)[:, None]) - x
    both = np.outer(weights, weights)
    assert clip_rmse(clip, wander) == pytest.approx(math.sqrt((both * taken**2).sum()), rel=2e-3)
    points, mass = clip_residuals(clip, wander)
    assert mass.sum() == pytest.approx(1)
    assert math.sqrt(mass @ points**2) == pytest.approx(clip_rmse(clip, wander), rel=2e-3)
    middles = np.unique(np.abs(points))[1:-1]
    for t in (middles[:-1] + middles[1:])[[0, 10, 40]] / 2:  # where one bin of the law ends
        assert mass @ (np.abs(points) > t) == pytest.approx(both[np.abs(taken) > t].sum(), rel=0.02, abs=1e-6)


@pytest.mark.parametrize("t", [-40.0, -1.0, 0.0, 0.3, 2.0, 147.0])
@pytest.mark.parametrize("clip", [QuantileClip(0.5, 0.5), QuantileClip(0.2, 1.1), QuantileClip(2.5, 2.5)])
def test_the_law_and_its_density(t: float, clip: QuantileClip) -> None:
    """Phi^-1 of the distribution function, against the map itself; the density between its bounds, and it sums to one."""
    y = np.linspace(-6, 6, 4001)
    z, ratio = clip.quantiles(t, y)
    assert ratio.min() >= -clip.below - 1e-12
    assert ratio.max() <= clip.above + 1e-12
    assert clip.moved(z + t, z) == pytest.approx(y, abs=1e-6)
    mass = np.exp(ratio - y * y / 2) / math.sqrt(2 * math.pi) * (y[1] - y[0])
    assert mass.sum() == pytest.approx(1, abs=5e-3)
    assert np.cumsum(mass) == pytest.approx(ndtr(z), abs=5e-3)


def test_the_map_grows_and_is_odd() -> None:
    clip, z = halves(1.0), np.linspace(-8, 8, 999)
    assert (np.diff(clip.upper(z)) > 0).all()
    assert clip.lower(-z) == pytest.approx(-clip.upper(z))
    assert (clip.lower(z) < z).all()
    assert (z < clip.upper(z)).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 5.0])
def test_another_split_gains_little(epsilon: float) -> None:
    best = clip_rmse(least_error_split(epsilon, SCHOOL), SCHOOL)
    gained = best / clip_rmse(halves(epsilon), SCHOOL)
    assert (0.96 if epsilon <= 2 else 0.75) < gained <= 1


@pytest.mark.parametrize("clip", [halves(0.1), halves(1.0), QuantileClip(0.3, 4.0), QuantileClip(4.0, 0.3)])
@pytest.mark.parametrize(("spread", "mask"), [(0.25, 1e-4), (2.0, 2.0**-9), (1.0, 1.0)])
def test_the_grid_of_answers(clip: QuantileClip, spread: float, mask: float) -> None:
    """By docs/theory/quantile-clip.md: cells of a 64th of the mask, digits for a 2^-40th of the least cell."""
    grid, most = quantile_grid(clip, spread, mask), max(clip.below, clip.above)
    assert mask / 128 < grid.step <= mask / 64
    assert math.frexp(grid.step)[0] == 0.5
    assert grid.reach == math.ceil(math.sqrt(36 + 2 * (clip.below + clip.above)))
    assert grid.last * grid.step <= grid.reach * spread < (grid.last + 1) * grid.step * (1 + 1e-12)
    assert grid.depth == pytest.approx(math.sqrt(grid.reach**2 + 2 * most))
    # The least cell, and what one filled step and the units of a decision move: less than 2^-40 of it, not by much.
    omega = grid.step / spread
    least = math.exp(-clip.below) * omega * math.exp(-(grid.reach**2) / 2) / math.sqrt(2 * math.pi)
    decided = 2.0**13 * math.exp(most) * 2.0**-grid.bits
    assert 2.0**-45 < decided / least < 2.0**-41
    filled = 2.0 ** (-32 - grid.digits) * mask / spread / math.sqrt(2 * math.pi)
    assert 2.0**-45 < filled / least < 2.0**-41


def test_nothing_told_is_nothing_taken() -> None:
    assert clip_rmse(halves(1.0), 0.0) == 0
    points, weights = clip_residuals(halves(1.0), 0.0)
    assert (points.tolist(), weights.tolist()) == ([0.0], [1.0])


def test_what_is_refused() -> None:
    with pytest.raises(UsageError):
        QuantileClip(0.0, 1.0)
    with pytest.raises(UsageError):
        QuantileClip(math.nan, 1.0)
    with pytest.raises(UsageError):
        quantile_grid(halves(1.0), 1.0, 1.5)
    with pytest.raises(UsageError):
        quantile_grid(halves(1000.0), 1.0, 0.5)
    with pytest.raises(UsageError):
        rounding_charge(7.0, math.nan)
