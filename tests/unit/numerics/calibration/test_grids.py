"""What grids cost: the closed forms against sums over the lattice, and the whole charge against an exact coarse release."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from attrpriv.errors import UsageError
from attrpriv.noise import GRID_BITS, granularity
from attrpriv.numerics.calibration import gaussian as lattice
from attrpriv.numerics.calibration.gaussian import grid_charge, lattice_lambda, mask_scale
from tests.property.twin import hockey_stick

Vector = NDArray[np.float64]


# ------------------------------------------------------------------------------------------------- the grid of the data


def lattice_ratio(v: float, s: float) -> Vector:
    """Density of a normal law recorded on the integers and masked by N(0, s^2), over its ideal, at all phases."""
    k = np.arange(-400, 401)
    ratios = []
    for mean in np.linspace(0.0, 0.5, 11):
        y = mean + np.linspace(-2.0, 2.0, 81) * math.sqrt(v + s * s)
        masked = norm.pdf(k[None, :], mean, math.sqrt(v)) * norm.pdf(y[:, None], k[None, :], s)
        ratios.append(masked.sum(axis=1) / norm.pdf(y, mean, math.sqrt(v + s * s)))
    return np.concatenate(ratios)


@pytest.mark.parametrize(("v", "s"), [(1.0, 0.6), (4.0, 0.5), (400.0, 0.4), (400.0, 0.6), (400.0, 0.75), (2.0, 2.0)])
def test_lattice_lambda_bounds_the_density_and_is_tight(v: float, s: float) -> None:
    effective = v * s * s / (v + s * s)
    worst = float(np.abs(np.log(lattice_ratio(v, s))).max())
    assert worst <= lattice_lambda(effective, 1) + 1e-13
    if worst > 1e-9:  # above rounding: the bound is not far from what happens
        assert worst >= 0.85 * lattice_lambda(effective, 1)


def test_lattice_lambda_of_two_averages() -> None:
    """Two averages, correlated data, different masks: e is the least eigenvalue of (V^-1 + S^-1)^-1."""
    rng = np.random.default_rng(7)
    k = np.arange(-12, 13)
    points = np.stack(np.meshgrid(k, k, indexing="ij"), axis=-1).reshape(-1, 2).astype(float)
    for _ in range(20):
        root = rng.normal(size=(2, 2))
        data = root @ root.T + 0.3 * np.eye(2)
        data *= 1.2 / np.linalg.eigvalsh(data)[-1] + 0.3
        mask = np.diag(rng.uniform(0.35, 0.8, size=2) ** 2)
        effective = float(np.linalg.eigvalsh(np.linalg.inv(np.linalg.inv(data) + np.linalg.inv(mask)))[0])
        mean, outputs = rng.uniform(-0.5, 0.5, size=2), rng.uniform(-1.5, 1.5, size=(60, 2))
        masked = density(points - mean, data)[None, :] * density(outputs[:, None, :] - points[None, :, :], mask)
        ratio = masked.sum(axis=1) / density(outputs - mean, data + mask)
        bound = lattice_lambda(effective, 2)
        assert np.abs(np.log(ratio)).max() <= bound + 1e-12
        # The parallel sum is what `recorded` bounds from below, by the least variance and the least mask.
        v, s = float(np.linalg.eigvalsh(data)[0]), float(mask.diagonal().min())
        assert v * s / (v + s) <= effective * (1 + 1e-12)


def density(points: Vector, covariance: Vector) -> Vector:
    inverse = np.linalg.inv(covariance)
    size = points.shape[-1]
    scale = math.sqrt((2 * math.pi) ** size * float(np.linalg.det(covariance)))
    result: Vector = np.exp(-np.einsum("...i,ij,...j->...", points, inverse, points) / 2) / scale
    return result


@pytest.mark.parametrize(("mask", "x"), [(0.75, 3e-5), (1.0, 5e-9), (1.5, 1e-19)])
def test_the_numbers_of_the_theory(mask: float, x: float) -> None:
    assert float(f"{lattice_lambda(mask**2, 1):.0e}") == x


def test_more_mask_costs_less_and_more_columns_cost_more() -> None:
    effective = np.linspace(0.1, 3.0, 50)
    for columns in (1, 2, 3):
        charges = [lattice_lambda(float(e), columns) for e in effective]
        assert charges == sorted(charges, reverse=True)
    assert lattice_lambda(1.0, 1) < lattice_lambda(1.0, 2) < lattice_lambda(1.0, 3)


@pytest.mark.parametrize("effective", [0.0, 1e-9, 0.05])
def test_where_the_mask_does_not_cover_it_nothing_is_promised(effective: float) -> None:
    assert lattice_lambda(effective, 1) == math.inf


@pytest.mark.parametrize("effective", [math.nan, -1.0])
def test_bad_effective_variance(effective: float) -> None:
    with pytest.raises(UsageError, match="effective variance: must be at least 0"):
        lattice_lambda(effective, 1)


def test_mask_scale() -> None:
    assert mask_scale(2.0, True, 100, 30.0) == 0.02
    assert mask_scale(1.0, False, 100, 30.0) == max(0.015, 30.0 / 10 / 50)
    assert mask_scale(1.0, False, 4, 0.1) == 1.5 / 4
    assert mask_scale(None, False, 100, 30.0) == 30.0 / 10 / 50


# ------------------------------------------------------------------------------------------------ the grid of the noise


def discrete_gaussian(scale: float, reach: int) -> Vector:
    """Masses at -reach .. reach of the discrete Gaussian of this many steps."""
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(k**2) / (2 * scale**2))
    result: Vector = weights / weights.sum()
    return result


def cells(mean: float, sd: float, reach: int) -> Vector:
    """Masses of the cells [k - 1/2, k + 1/2] under N(mean, sd^2), accurate in both tails."""
    edges = (np.arange(-reach, reach + 2) - 0.5 - mean) / sd
    result: Vector = np.where(
        edges[:-1] > 0, norm.sf(edges[:-1]) - norm.sf(edges[1:]), norm.cdf(edges[1:]) - norm.cdf(edges[:-1])
    )
    return result


def test_the_grid_is_what_the_charge_assumes() -> None:
    assert lattice._GRID_RATIO == 2.0**-GRID_BITS
    for scale in (1.0, 1.999999, 2.0, 3e-20, 7e20):
        assert granularity(scale) / scale <= lattice._GRID_RATIO
    lam, eta = grid_charge(1)
    assert lam >= lattice._TAIL * lattice._GRID_RATIO + lattice._GRID_RATIO**2
    assert eta >= 2 * math.exp(-(lattice._TAIL**2) / 2) > 0
    assert grid_charge(0) == (0.0, 0.0)
    for columns in (2, 3):  # at least as much for each, whatever is charged for noise common to them
        assert grid_charge(columns)[0] >= columns * lam
        assert grid_charge(columns)[1] >= columns * eta


@pytest.mark.parametrize("bits", [3, 5, 7])
@pytest.mark.parametrize("tail", [2.0, 4.0, 6.0])
@pytest.mark.parametrize("offset", [0.0, 0.2, 0.4999, -0.37])
def test_the_charge_bounds_a_coarse_grid(monkeypatch: pytest.MonkeyPatch, bits: int, tail: float, offset: float) -> None:
    """round(F) + discrete noise against the cells of F + continuous noise, in units of the grid, both ways."""
    monkeypatch.setattr(lattice, "_GRID_RATIO", 2.0**-bits)
    monkeypatch.setattr(lattice, "_TAIL", tail)
    lam, eta = grid_charge(1)
    scale, reach = 2.0**bits, 12 * 2**bits
    real, ideal = discrete_gaussian(scale, reach), cells(offset, scale, reach)
    assert np.maximum(real - math.exp(lam) * ideal, 0).sum() <= eta
    assert np.maximum(ideal - math.exp(lam) * real, 0).sum() <= eta


@pytest.mark.parametrize("share", [0.1, 2.5, 7.0])
@pytest.mark.parametrize("offset", [0.0, 0.3, 0.4999])
def test_the_charge_covers_common_noise(monkeypatch: pytest.MonkeyPatch, share: float, offset: float) -> None:
    """An average with its own noise and `share` times as much that is common to several, both on coarse grids.

    As in a plan, the common noise's grid is two bits finer than the average's own, and finer still where it is larger.
    """
    bits, tail = 4, 5.0
    monkeypatch.setattr(lattice, "_GRID_RATIO", 2.0**-bits)
    monkeypatch.setattr(lattice, "_COMMON_RATIO", 2.0 ** -(bits + 2))
    monkeypatch.setattr(lattice, "_TAIL", tail)
    lam, eta = grid_charge(2)
    own, common = 2.0**bits, share * 2**bits
    fine = bits + 2 + max(0, math.ceil(math.log2(share)))
    points = np.arange(-8 * 2**fine, 8 * 2**fine + 1)
    reach = int(14 * (own + common))
    rounded = np.zeros(2 * reach + 1)
    np.add.at(
        rounded, np.rint(offset + common * points / 2**fine).astype(int) + reach, discrete_gaussian(2.0**fine, 8 * 2**fine)
    )
    real = np.convolve(rounded, discrete_gaussian(own, int(12 * own)), mode="same")
    ideal = cells(offset, math.hypot(own, common), reach)
    assert np.maximum(real - math.exp(lam) * ideal, 0).sum() <= eta
    assert np.maximum(ideal - math.exp(lam) * real, 0).sum() <= eta


def test_a_quarter_of_the_charge_would_not_bound_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above can fail: a value half-way between two points really costs about half of what is charged."""
    monkeypatch.setattr(lattice, "_GRID_RATIO", 2.0**-3)
    monkeypatch.setattr(lattice, "_TAIL", 6.0)
    lam, eta = grid_charge(1)
    real, ideal = discrete_gaussian(8.0, 96), cells(0.4999, 8.0, 96)
    assert np.maximum(real - math.exp(lam / 4) * ideal, 0).sum() > eta


# ------------------------------------------------------------------------------------------------------- both together


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("lattice_steps", "data_sd", "noise_sd"), [(16, 40.0, 32.0), (40, 90.0, 32.0), (24, 30.0, 64.0)])
def test_the_whole_charge_against_an_exact_release(
    monkeypatch: pytest.MonkeyPatch, epsilon: float, lattice_steps: int, data_sd: float, noise_sd: float
) -> None:
    """Everything on one coarse grid, computed without any continuous law.

    The average is recorded on every `lattice_steps`-th step of the noise's grid, with normal weights of standard deviation
    `data_sd` steps; noise is discrete of `noise_sd` steps. Two values of the secret move its mean by some steps. The exact
    hockey-stick at epsilon stays below what (lambda, eta) promise from the ideal laws.
    """
    ratio = 1 / noise_sd
    monkeypatch.setattr(lattice, "_GRID_RATIO", ratio)
    monkeypatch.setattr(lattice, "_TAIL", 5.0)
    grid_lambda, eta = grid_charge(1)
    variance, mask = (data_sd / lattice_steps) ** 2, (noise_sd / lattice_steps) ** 2
    lam = grid_lambda + lattice_lambda(variance * mask / (variance + mask), 1)
    inner = max(0.0, epsilon - 2 * lam)
    reach = 16 * int(data_sd + noise_sd)
    for shift in (3.0, 17.0, 40.5):
        laws = [released(mean, lattice_steps, data_sd, noise_sd, reach) for mean in (0.3, 0.3 + shift)]
        for p, q in (laws, laws[::-1]):
            true_delta = np.maximum(p - math.exp(epsilon) * q, 0).sum()
            ideal = hockey_stick(inner, shift / math.hypot(data_sd, noise_sd))
            assert true_delta <= math.exp(lam) * ideal + eta * (1 + math.exp(epsilon)) + 1e-15


def released(mean: float, lattice_steps: int, data_sd: float, noise_sd: float, reach: int) -> Vector:
    k = np.arange(-reach, reach + 1)
    data = np.where(k % lattice_steps == 0, norm.pdf(k, mean, data_sd), 0.0)
    noise = discrete_gaussian(noise_sd, int(12 * noise_sd))
    result: Vector = np.convolve(data / data.sum(), noise)
    return result
