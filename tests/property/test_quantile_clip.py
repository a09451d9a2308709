"""The quantile clip keeps its promise: exact laws of the cells in 40 digits, and the product's decisions are those laws'."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from numpy.typing import NDArray
from scipy.special import ndtr

from attrpriv.methods.quantile_clip.draw import clip_cell
from attrpriv.methods.quantile_clip.grid import QuantileGrid, quantile_grid, rounding_charge
from attrpriv.numerics.calibration.quantile_clip import QuantileClip
from tests.property.quantile_twin import DIGITS, Twin, hockey_stick, max_divergence

Array = NDArray[np.float64]
WORK = DIGITS + 12
# What the statistics tell, in standard deviations: far out to both sides, near, and nothing.
TOLD = (-40.0, -0.3, 0.0, 0.7, 147.0)
SLOW = [pytest.param(e1, e2, marks=pytest.mark.slow) for e1, e2 in ((0.05, 0.05), (2.5, 2.5), (0.7, 0.2), (0.3, 0.9))]


def coarse(clip: QuantileClip, cells: int = 4) -> QuantileGrid:
    """The public grid of a spread of 1, with cells so wide that all of them can be looked at."""
    fine = quantile_grid(clip, 1.0, 0.5)
    return QuantileGrid(fine.reach / (cells + 0.5), cells, fine.reach, fine.depth, fine.digits, fine.bits)


def edges_of(grid: QuantileGrid) -> list[mpf]:
    return [(mpf(k) + mpf(1) / 2) * mpf(grid.step) for k in range(-grid.last, grid.last)]


def laws(twin: Twin, grid: QuantileGrid) -> list[list[mpf]]:
    return [twin.masses(t, edges_of(grid)) for t in TOLD]


@pytest.mark.parametrize(("e1", "e2"), [(0.5, 0.5), *SLOW])
def test_no_two_values_of_the_secret_lose_more_than_promised(e1: float, e2: float) -> None:
    """Over all cells and pairs, from -40 to 147 standard deviations; and the promise is used up."""
    with mpmath.workdps(WORK):
        found = laws(Twin(e1, e2), coarse(QuantileClip(e1, e2)))
        losses = [max_divergence(p, q) for p, q in itertools.permutations(found, 2)]
        assert max(losses) <= mpf(e1) + mpf(e2) + mpf("1e-30")
        assert float(max(losses)) == pytest.approx(e1 + e2, rel=1e-9)
        assert all(abs(sum(p) - 1) < mpf(10) ** -DIGITS for p in found)


@pytest.mark.parametrize("mutant", [Twin(0.5, 0.5, lower=False), Twin(1.0, 1.0)])
def test_mutants_are_rejected(mutant: Twin) -> None:
    """One side that is not clipped, and twice the epsilon: both seen by far, in epsilon and in delta."""
    with mpmath.workdps(WORK):
        found = laws(mutant, coarse(QuantileClip(0.5, 0.5)))
        assert max(max_divergence(p, q) for p, q in itertools.permutations(found, 2)) > 1.9
        assert max(hockey_stick(p, q, 1.0) for p, q in itertools.permutations(found, 2)) > 0.05


@pytest.mark.parametrize(("e1", "e2"), [(0.5, 0.5), *SLOW])
@pytest.mark.parametrize("t", [-40.0, -0.3, 0.7, 147.0])
def test_the_product_decides_as_the_exact_law_says(e1: float, e2: float, t: float) -> None:
    """Just below the place where the exact map crosses an edge the answer is one cell, just above the next one.

    So the masses above are those of the product, up to the 1e-17 by which a boundary could be out of place.
    """
    clip = QuantileClip(e1, e2)
    grid = coarse(clip)
    with mpmath.workdps(WORK):
        crossings = [Twin(e1, e2).crossing(t, y) for y in edges_of(grid)]
        near = mpf(10) ** -17
        for k, z in zip(range(-grid.last, grid.last), crossings, strict=True):
            below, above = (_fraction(z + side * near) for side in (-1, 1))
            assert clip_cell(clip, grid, Fraction(1), below + Fraction(t), below) == k
            assert clip_cell(clip, grid, Fraction(1), above + Fraction(t), above) == k + 1


def _fraction(x: mpf) -> Fraction:
    mantissa, exponent = mpmath.frexp(x)
    whole = int(mpmath.ldexp(mantissa, 400))
    return Fraction(whole) * Fraction(2) ** (int(exponent) - 400)


def test_beyond_the_depth_nothing_is_computed() -> None:
    clip = QuantileClip(0.5, 0.5)
    grid = quantile_grid(clip, 1.0, 0.01)
    for far in (grid.depth, 100.0, 1e300):
        assert clip_cell(clip, grid, Fraction(1), Fraction(far) - 50, Fraction(far)) == grid.last
        assert clip_cell(clip, grid, Fraction(1), Fraction(-far) + 50, Fraction(-far)) == -grid.last
    with mpmath.workdps(WORK):
        assert -Twin(0.5, 0.5).upper_end(-mpf(grid.depth)) >= grid.reach


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 30.0, 100.0])
@pytest.mark.parametrize("mask", [1e-6, 0.02, 1.0])
def test_the_digits_suffice(epsilon: float, mask: float) -> None:
    """What decisions and the filled grid can move is below 2^-40 of the least cell, recomputed in 40 digits."""
    clip = QuantileClip(epsilon / 2, epsilon / 2)
    grid = quantile_grid(clip, 1.0, mask)
    with mpmath.workdps(DIGITS):
        least = mpmath.exp(-mpf(clip.below)) * grid.step * mpmath.npdf(grid.reach)
        ends = mpmath.exp(-mpf(clip.below)) * mpmath.ncdf(-grid.reach)
        decided = mpf(2) ** (13 - grid.bits) * mpmath.exp(mpf(clip.above))
        filled = mpf(mask) * mpf(2) ** (-32 - grid.digits) * mpmath.npdf(0)
        assert 2 * (decided + filled) <= mpf(2) ** -40 * min(least, ends)
        assert 2 * (16 * decided + filled) > mpf(2) ** -44 * least  # and they are not far more than that
        assert mpmath.exp(mpf(clip.below)) * mpmath.ncdf(-grid.depth) <= mpmath.ncdf(-grid.reach)


# ------------------------------------------------------------------------------------------- the masked and recorded law


def masked_deviation(r: float, spread: float, mask: float, shift: float, depth: float, *, steps: int = 40) -> float:
    """The largest |log| of masked over normal density, less r (|z| + 1) + 2 r^2: F on the lattice Z + shift, noise on r mask Z.

    By brute force: the noise is discrete, the average is rounded to its grid first, and each step is filled evenly.
    """
    step, total = r * mask, math.hypot(spread, mask)
    lattice = np.arange(-round(14 * spread), round(14 * spread) + 1) + shift
    weights = np.exp(-(lattice**2) / (2 * spread**2))
    weights /= weights.sum()
    worst = 0.0
    normal = sum(math.exp(-((k * r) ** 2) / 2) for k in range(-round(40 / r), round(40 / r) + 1))
    for x in np.linspace(-depth * total, depth * total, steps):
        cell = round(x / step)
        noise = cell - np.round(lattice / step)
        masked = float(weights @ np.exp(-((noise * r) ** 2) / 2)) / normal / step
        for end in (cell - 0.5, cell, cell + 0.5):
            z = end * step / total
            ideal = math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / total
            worst = max(worst, abs(math.log(masked / ideal)) - r * (abs(z) + 1) - 2 * r**2)
    return worst


@pytest.mark.parametrize("r", [2.0**-4, 2.0**-6])
@pytest.mark.parametrize("shift", [0.0, 0.31, 0.5])
def test_the_masked_law_is_within_a_factor_far_into_the_tails(r: float, shift: float) -> None:
    """With grids coarse enough to be seen: the bound holds to 12 standard deviations, where a delta of 1e-32 would be left."""
    spread, mask = 3.0, 1.2
    e = spread**2 * mask**2 / (spread**2 + mask**2) * (1 - 2 * r)
    lattice = -math.log1p(-2 * math.exp(-2 * math.pi**2 * e) * 1.01)
    assert masked_deviation(r, spread, mask, shift, 12.0) <= lattice + 1e-9


def test_the_factor_is_needed() -> None:
    """Half of r (|z| + 1) is not enough, and a quarter of the mask does not cover the lattice."""
    r = 2.0**-4
    over = [masked_deviation(r, 3.0, 1.2, shift, 12.0) + 0.5 * r * 13 for shift in (0.0, 0.31)]
    assert max(over) > 0
    assert masked_deviation(2.0**-6, 3.0, 0.3, 0.5, 4.0) > 0.1


# -------------------------------------------------------------------------------------------------- averages of rounded rows


def rounded_rows(sds: tuple[float, float], correlation: float) -> tuple[Array, Array, Array]:
    """The joint law of one row of two normal columns rounded to whole numbers; their means are not whole."""
    q, g = (np.arange(-round(12 * sd), round(12 * sd) + 1) for sd in sds)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    exact = (g[:, None] + nodes / 2).ravel()
    density = np.exp(-(((exact - 0.2) / sds[1]) ** 2) / 2) * np.tile(weights, len(g))
    mean, left = 0.3 + correlation * sds[0] / sds[1] * (exact - 0.2), sds[0] * math.sqrt(1 - correlation**2)
    low, high = ((q[:, None] + side - mean) / left for side in (-0.5, 0.5))
    given = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    joint = (given * density).reshape(len(q), len(g), 16).sum(axis=2)
    return q.astype(float), g.astype(float), joint / joint.sum()


def log_mass_of_sum(values: Sequence[Array], joint: Array, n: int, target: Sequence[float]) -> tuple[float, list[int]]:
    """log P(sums of n rows = the whole numbers next to the target), by tilting the law there and one Fourier transform."""
    whole = [round(x) for x in target]
    grids = np.meshgrid(*values, indexing="ij")
    tilt = np.zeros(len(values))
    for _ in range(60):  # Newton
        exponent = np.log(np.maximum(joint, 1e-320)) + sum(a * grid for a, grid in zip(tilt, grids, strict=True))
        weights = np.exp(exponent - exponent.max())
        total = weights.sum()
        weights /= total
        means = np.array([(weights * grid).sum() for grid in grids])
        off = [grid - mean for grid, mean in zip(grids, means, strict=True)]
        spread = np.array([[(weights * a * b).sum() for b in off] for a in off])
        tilt = tilt + np.linalg.solve(spread, np.array(whole) / n - means)
    shape = [max(len(v), int(16 * math.sqrt(n * spread[k, k])) + 2) for k, v in enumerate(values)]
    wrapped = np.zeros(shape)
    np.add.at(wrapped, tuple(grid.astype(int) % size for grid, size in zip(grids, shape, strict=True)), weights)
    sums = np.fft.irfftn(np.fft.rfftn(wrapped) ** n, s=shape, axes=range(len(shape)))
    at = float(sums[tuple(w % size for w, size in zip(whole, shape, strict=True))])
    return math.log(at) - float(tilt @ np.array(whole)) + n * (math.log(total) + exponent.max()), whole


@pytest.mark.parametrize(("sds", "correlation"), [((2.0, 2.0), 0.8), pytest.param((6.0, 2.0), 0.95, marks=pytest.mark.slow)])
def test_what_rounding_does_to_the_tails_is_charged(sds: tuple[float, float], correlation: float) -> None:
    """The exact law of an average of 100 coarsely rounded rows given the other average, up to 7 standard deviations, against
    the normal law on its lattice: off by less than the charge, and by more than a tenth of it."""
    n, depth = 100, 7.0
    q, g, joint = rounded_rows(sds, correlation)
    means = [float(joint.sum(axis=1) @ q), float(joint.sum(axis=0) @ g)]
    both = (q - means[0])[:, None] * (g - means[1])
    variance = float(joint.sum(axis=0) @ (g - means[1]) ** 2)
    slope = float((joint * both).sum()) / variance
    residual = float(joint.sum(axis=1) @ (q - means[0]) ** 2) - slope**2 * variance
    charge = rounding_charge(depth, (1 + slope**4) / residual**2 / (120 * n))
    worst = 0.0
    for other in (0.0, 4.0):
        target = n * means[1] + other * math.sqrt(n * variance)
        alone, (given,) = log_mass_of_sum([g], joint.sum(axis=0), n, [target])
        centre = n * means[0] + slope * (given - n * means[1])
        for z in (-depth, 0.0, depth):
            log_joint, (whole, _) = log_mass_of_sum([q, g], joint, n, [centre + 0.99 * z * math.sqrt(n * residual), given])
            normal = -((whole - centre) ** 2) / (2 * n * residual) - math.log(2 * math.pi * n * residual) / 2
            worst = max(worst, abs(log_joint - alone - normal))
    assert 0.1 * charge < worst < charge
