"""The drawn answer of a quantile clip against its definition, with inverses of the normal law to thirty digits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from attrpriv.errors import UsageError
from attrpriv.methods.quantile_clip import draw
from attrpriv.methods.quantile_clip.draw import clip_cell, quantile_clipped
from attrpriv.methods.quantile_clip.grid import QuantileGrid, quantile_grid, rounding_charge
from attrpriv.numerics.calibration.quantile_clip import QuantileClip
from tests.unit.methods.quantile_clip.test_proof import evidence


def inverse(p: Any) -> Any:
    """Phi^-1, of a probability or, beyond 1, infinite."""
    return mpmath.inf if p >= 1 else mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


def upper(clip: QuantileClip, z: Any) -> Any:
    return min(
        inverse(mpmath.exp(clip.below) * mpmath.ncdf(z)),
        -inverse(mpmath.exp(-mpmath.mpf(clip.above)) * mpmath.ncdf(-z)),
    )


def kept(clip: QuantileClip, x: Any, z: Any) -> Any:
    """clip(x, C-(z), C+(z)) by its definition."""
    return min(max(x, -upper(clip, -z)), upper(clip, z))


def exact(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def cell(clip: QuantileClip, grid: QuantileGrid, variance: Fraction, x: Fraction, rest: Fraction) -> int:
    root = mpmath.sqrt(exact(variance))
    answer = kept(clip, exact(x) / root, exact(rest) / root) * root
    return int(min(max(mpmath.ceil(answer / grid.step - mpmath.mpf(1) / 2), -grid.last), grid.last))


@pytest.mark.parametrize(
    ("clip", "variance"),
    [
        (QuantileClip(0.4, 0.7), Fraction(3, 7)),
        (QuantileClip(0.9, 0.2), Fraction(5)),
        (QuantileClip(2.5, 0.05), Fraction(3, 7)),
    ],
)
def test_the_answer_lies_in_the_cell_of_the_clipped_value(clip: QuantileClip, variance: Fraction) -> None:
    """Where it is moved down, up, or not at all, near the middle and far out, and beyond the outermost cells."""
    grid = QuantileGrid(
        step=2.0**-7, last=math.floor(3 * math.sqrt(variance) * 2**7), reach=3.0, depth=8.0, digits=60, bits=140
    )
    sides = set()
    with mpmath.workdps(30):
        for rest in (-5.1, -1.03, -0.31, 0.93, 3.3):
            for apart in (-6.2, -0.37, 0.0, 0.011, 0.41):
                z, x = Fraction(rest), Fraction(rest) + Fraction(apart)
                found = clip_cell(clip, grid, variance, x, z)
                assert found == cell(clip, grid, variance, x, z)
                root = mpmath.sqrt(exact(variance))
                moved = kept(clip, exact(x) / root, exact(z) / root) * root
                sides.add((moved > exact(x)) - (moved < exact(x)))
    assert sides == {-1, 0, 1}


def test_a_value_on_the_edge_of_two_cells_is_in_the_lower_one() -> None:
    clip, grid = QuantileClip(0.4, 0.7), QuantileGrid(step=2.0**-6, last=200, reach=3.0, depth=8.0, digits=60, bits=140)
    for k in (-6, 0, 5):
        edge = (k + Fraction(1, 2)) * Fraction(grid.step)
        assert clip_cell(clip, grid, Fraction(1), edge, Fraction(0)) == k
        assert clip_cell(clip, grid, Fraction(1), edge + Fraction(1, 10**20), Fraction(0)) == k + 1


@pytest.mark.parametrize("start", [-60, -3, 3, 60])
def test_wherever_the_search_begins_it_ends_at_the_same_cell(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clip, variance = QuantileClip(0.4, 0.7), Fraction(3, 7)
    grid = QuantileGrid(step=2.0**-4, last=60, reach=3.0, depth=8.0, digits=60, bits=140)
    with mpmath.workdps(30):
        for rest, x in ((0.3, 0.32), (-1.1, 0.5), (1.4, -2.0), (2.9, 9.0), (-4.4, -4.3)):
            truth = cell(clip, grid, variance, Fraction(x), Fraction(rest))
            guess = min(max(truth + start, -60), 60)
            monkeypatch.setattr(draw, "_guess", lambda *_, guess=guess: guess)
            assert clip_cell(clip, grid, variance, Fraction(x), Fraction(rest)) == truth


def test_beyond_the_depth_the_answer_is_the_last_cell_whatever_is_read() -> None:
    """There no digit of the normal law is asked for: from `depth` standard deviations on, exactly."""
    clip, grid = QuantileClip(0.4, 0.7), QuantileGrid(step=2.0**-4, last=90, reach=3.0, depth=2.0, digits=60, bits=140)
    for sd in (Fraction(1, 4), Fraction(3, 2)):
        for side in (-1, 1):
            assert clip_cell(clip, grid, sd**2, Fraction(0), side * 2 * sd) == side * 90
            assert abs(clip_cell(clip, grid, sd**2, Fraction(0), side * (2 * sd - Fraction(1, 10**9)))) < 90


def test_what_is_read_is_taken_back_around_the_stated_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """m = 5 + slopes (G - their means), with F masked first, by the noise and the digits that are counted on."""
    told = evidence()
    asked: list[tuple[Fraction, float, int]] = []

    def masked(value: Fraction, scale: float, digits: int) -> Fraction:
        asked.append((value, scale, digits))
        return value + Fraction(1, 300)

    monkeypatch.setattr(draw, "add_filled_gaussian", masked)
    average, read = Fraction(501, 100), {"g": Fraction(101, 100), "h": Fraction(19, 10)}
    found = quantile_clipped(told, average, read)
    assert asked == [(average, told.mask, told.grid.digits)]
    f = average + Fraction(1, 300)
    first, second = told.slopes
    mean = 5 + first * (read["g"] - 1) + second * (2 * read["h"] - 4)
    with mpmath.workdps(30):
        k = cell(told.clip, told.grid, told.variance, f - 5, f - mean)
        root = mpmath.sqrt(exact(told.variance))
        moved = kept(told.clip, exact(f - 5) / root, exact(f - mean) / root)
        assert abs(moved * root - exact(f - 5)) > told.grid.step  # the clip takes something away
    assert found == 5 + k * Fraction(told.grid.step)


# --------------------------------------------------------------------------------------------------------------- the grid


@pytest.mark.parametrize(
    ("below", "above", "spread", "mask"),
    [(0.5, 0.5, 0.25, 1e-4), (0.1, 2.3, 3.0, 0.7), (2.3, 0.1, 3.0, 0.7), (5.0, 4.0, 1.0, 1.0), (0.02, 0.07, 1e4, 0.5)],
)
def test_the_grid_is_as_fine_as_its_least_cell_asks(below: float, above: float, spread: float, mask: float) -> None:
    """The least cell has e^-below omega phi(reach) of the mass, omega = step / spread; 16 bits more fill a step of the noise,
    and decisions take 2^-42 of it, 13 bits for 2^13 units of rounding, and one for the two sides of a cell."""
    grid = quantile_grid(QuantileClip(below, above), spread, mask)
    assert mask / 128 < grid.step <= mask / 64
    assert math.log2(grid.step).is_integer()
    # Beyond 36 = 6^2, and what both bounds take of it.
    assert grid.reach - 1 < math.sqrt(36 + 2 * (below + above)) <= grid.reach
    assert float(grid.reach).is_integer()
    most = max(below, above)
    assert grid.depth == pytest.approx(math.sqrt(grid.reach**2 + 2 * most), rel=1e-8)
    assert grid.last * grid.step <= grid.reach * spread < (grid.last + 2) * grid.step
    with mpmath.workdps(30):
        # 1.4 in the place of log2 of the root of 2 pi, 1.326.
        least = (below + mpmath.mpf(grid.reach) ** 2 / 2) / mpmath.log(2) + mpmath.mpf("1.4")
        assert grid.digits == mpmath.ceil(16 + least)
        omega = mpmath.mpf(grid.step) / spread
        assert grid.bits == mpmath.ceil(42 + 13 + 1 + most / mpmath.log(2) + least - mpmath.log(omega, 2))
        charge = mpmath.mpf(2) ** -32 * (mpmath.mpf(grid.depth) + 2) + 3 * mpmath.mpf(2) ** -64 + mpmath.mpf(2) ** -39
    assert float(charge) <= grid.draw_charge <= float(charge) * (1 + 1e-12)


def test_a_mask_is_positive_and_a_part_of_the_spread() -> None:
    clip = QuantileClip(0.5, 0.5)
    assert quantile_grid(clip, 1.0, 1.0).last > 0
    for spread, mask in ((1.0, 0.0), (1.0, -0.5), (1.0, 1.0 + 1e-9), (math.inf, 1.0)):
        with pytest.raises(UsageError):
            quantile_grid(clip, spread, mask)


def test_what_rounding_takes_grows_with_the_fourth_power_of_the_depth() -> None:
    """Four times kurtosis (z^4 - 6 z^2 + 3)/24, the middle term left out; where z^4 is below 3 that is the most."""
    assert rounding_charge(2.5, 0.003) == pytest.approx(4 * 0.003 * 2.5**4 / 24, rel=1e-12)
    assert rounding_charge(1.2, 0.003) == pytest.approx(4 * 0.003 * 3 / 24, rel=1e-12)
    assert rounding_charge(1.4, 0.003) == pytest.approx(4 * 0.003 * 1.4**4 / 24, rel=1e-12)
    assert rounding_charge(2.5, 0.0) == 0
    for wrong in (-1e-9, math.inf, math.nan):
        with pytest.raises(UsageError):
            rounding_charge(2.5, wrong)
