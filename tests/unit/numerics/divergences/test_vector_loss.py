"""The privacy loss of several values with unequal covariances: against closed forms, plain integration and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.gaussian import gaussian_delta, hockey_stick
from attrpriv.numerics.divergences.vector_loss import LossLaw, loss_law, vector_hockey_upper
from attrpriv.numerics.laws.gaussian import GaussianLaw

Array = NDArray[np.float64]


def covariance(rng: np.random.Generator, size: int) -> Array:
    mix = rng.normal(size=(size, size))
    made = mix @ mix.T + 0.5 * np.eye(size)
    return np.asarray((made + made.T) / 2)


@given(st.floats(0, 6), st.floats(0.05, 12), st.floats(0, 6))
@settings(max_examples=200, deadline=None)
def test_one_value_is_the_closed_form(d: float, r: float, epsilon: float) -> None:
    exact = gaussian_delta(epsilon, d) if r == 1 else hockey_stick(GaussianLaw(d, r), GaussianLaw(0.0, 1.0), epsilon)
    found = vector_hockey_upper(np.array([d]), np.array([[r]]), np.array([[1.0]]), epsilon)
    assert found >= exact * (1 - 1e-9)
    if 0.7 < r < 1.4 and exact > 1e-5:
        assert found <= exact * 1.05 + 1e-6


def integrated(shift: Array, first: Array, second: Array, epsilon: float, steps: int = 601) -> float:
    """The twin: the positive part of p - e^eps q, added up over a grid."""
    reach = 7.5 * math.sqrt(max(np.linalg.eigvalsh(first)[-1], np.linalg.eigvalsh(second)[-1]))
    axis = np.linspace(-reach, reach, steps)
    places = np.stack(np.meshgrid(axis, axis), axis=-1) + shift / 2
    densities = []
    for mean, matrix in ((shift, first), (np.zeros(2), second)):
        off = places - mean
        square = np.einsum("...i,ij,...j", off, np.linalg.inv(matrix), off)
        densities.append(np.exp(-square / 2) / (2 * math.pi * math.sqrt(np.linalg.det(matrix))))
    return float(np.maximum(densities[0] - math.exp(epsilon) * densities[1], 0).sum() * (axis[1] - axis[0]) ** 2)


@pytest.mark.parametrize("seed", range(4))
def test_two_values_are_the_integral(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second, shift = covariance(rng, 2), covariance(rng, 2), rng.normal(size=2)
    for epsilon in (0.0, 0.5, 2.0):
        twin = integrated(shift, first, second, epsilon)
        found = vector_hockey_upper(shift, first, second, epsilon)
        assert twin * (1 - 1e-4) - 1e-7 <= found <= twin * 1.01 + 1e-6


def test_the_twin_sees_a_covariance_that_is_taken_for_the_other() -> None:
    first, second, shift = np.diag([2.0, 1.0]), np.diag([1.0, 1.5]), np.array([0.3, 0.0])
    twin = integrated(shift, first, second, 0.5)
    assert max(vector_hockey_upper(shift, matrix, matrix, 0.5) for matrix in (first, second)) < 0.5 * twin


def test_five_values_are_the_simulated_mean() -> None:
    """The mean of 400,000 numbers in [0, 1], six standard errors: wrong less than once in 10^8."""
    rng = np.random.default_rng(1)
    first, second, shift = covariance(rng, 5) + 4 * np.eye(5), covariance(rng, 5) + 4 * np.eye(5), rng.normal(size=5)
    drawn = rng.multivariate_normal(shift, first, size=400_000)
    logs = []
    for mean, matrix in ((shift, first), (np.zeros(5), second)):
        off = drawn - mean
        square = np.einsum("ni,ij,nj->n", off, np.linalg.inv(matrix), off)
        logs.append(-square / 2 - np.linalg.slogdet(matrix)[1] / 2)
    for epsilon in (0.5, 2.0, 4.0):
        kept = -np.expm1(np.minimum(0.0, epsilon - logs[0] + logs[1]))
        average, error = float(kept.mean()), 6 * float(kept.std()) / math.sqrt(len(kept))
        assert average - error <= vector_hockey_upper(shift, first, second, epsilon) <= (average + error) * 1.01


@given(st.integers(0, 1000), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_it_grows_along_a_ray(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    first, second, shift = covariance(rng, 3), covariance(rng, 3), rng.normal(size=3)
    near, far = (vector_hockey_upper(scale * shift, first, second, 1.0) for scale in (share, 1.0))
    assert near <= far * 1.01 + 1e-9


@given(st.integers(0, 1000), st.floats(0.05, 1))
@settings(max_examples=40, deadline=None)
def test_less_of_everything_is_dominated(seed: int, q: float) -> None:
    """(s; C + y A, C + y B) dominates (sqrt(q) s; C + q y A, C + q y B): what runs of distances rest on."""
    rng = np.random.default_rng(seed)
    base, one, other, shift = covariance(rng, 2), covariance(rng, 2), covariance(rng, 2), rng.normal(size=2)
    whole = vector_hockey_upper(shift, base + one, base + other, 0.7)
    part = vector_hockey_upper(math.sqrt(q) * shift, base + q * one, base + q * other, 0.7)
    assert part <= whole * 1.01 + 1e-9


def test_equal_laws_and_hopeless_ones() -> None:
    same = np.eye(3)
    assert vector_hockey_upper(np.zeros(3), same, same, 0.0) < 1e-9
    assert vector_hockey_upper(np.array([1e4, 0, 0]), same, same, 1.0) == 1.0
    assert vector_hockey_upper(np.zeros(2), np.eye(2), np.ones((2, 2)), 1.0) == 1.0, "no inverse: nothing is proved"
    assert vector_hockey_upper(np.zeros(1), np.array([[1e9]]), np.array([[1.0]]), 1.0) == 1.0


def test_one_law_serves_every_epsilon() -> None:
    law = loss_law(np.array([1.0, 0.5]), np.diag([2.0, 1.0]), np.diag([1.0, 1.5]))
    uppers = [law.upper(epsilon) for epsilon in (0.0, 0.5, 1.0, 4.0)]
    assert uppers == sorted(uppers, reverse=True)


def test_what_is_not_a_number_is_an_error() -> None:
    with pytest.raises(UsageError, match="finite"):
        vector_hockey_upper(np.array([math.nan]), np.eye(1), np.eye(1), 1.0)
    with pytest.raises(UsageError, match="epsilon"):
        vector_hockey_upper(np.array([1.0]), np.eye(1), np.eye(1), math.nan)


def test_a_law_of_losses_by_its_formula() -> None:
    """Masses at losses k/4, what is told apart, and what covariances are off: each with its own coefficient."""
    masses = np.array([0.2, 0.3, 0.5])
    for epsilon in (0.0, 0.3, 1.0):
        kept = sum(m * max(0.0, 1 - math.exp(epsilon - k / 4)) for k, m in zip((2, 3, 4), masses, strict=True))
        for lost, off in ((0.0, 0.0), (0.01, 0.0), (0.0, 0.02), (0.01, 0.02)):
            wanted = kept + lost + off / 2 * (1 + math.exp(epsilon))
            found = LossLaw(2, masses, 0.25, 1, lost, off).upper(epsilon)
            assert found == pytest.approx(wanted, rel=1e-8, abs=1e-9)
            assert found >= wanted
    assert LossLaw(2, masses, 0.25, 1, 1.0, 0.0).upper(0.0) == 1.0
