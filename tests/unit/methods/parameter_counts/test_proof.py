"""The proofs that a parameter is hidden in a count: what was ignored is paid for, and every number is the one counted on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.methods.base.checks import ParameterCheck
from attrpriv.methods.parameter_counts.proof import (
    ParameterKernelEvidence,
    ParameterNoiseEvidence,
    ParameterWassersteinEvidence,
)
from attrpriv.numerics.calibration.parameter_counts import ParameterCounts, parameter_distance
from tests.unit.methods.proofs import accepted, counted, refused

N = 10
SHARES, FLIP = ((0.3, 0.3), (0.5, 0.5)), ((0.9, 0.1), (0.2, 0.8))
COUNTS = ParameterCounts(N, SHARES, FLIP)
CHECKS = (ParameterCheck(secret="p", theta=0, counts=COUNTS),)


def laws() -> np.ndarray:
    """The law of the count given each value of the hidden parameter, by scipy."""
    states = np.array([binom.pmf(np.arange(N + 1), N, low) for low, _ in SHARES])
    return np.asarray(np.array(FLIP) @ states)


def laplace(scale: float, reach: int = 400) -> np.ndarray:
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(k) / scale)
    return np.asarray(weights / weights.sum())


def hockey(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def noise(**changes: Any) -> ParameterNoiseEvidence:
    return ParameterNoiseEvidence(**({"event": "x > 1", "checks": CHECKS, "noise": "laplace", "scale": 2.0} | changes))


def moved(**changes: Any) -> ParameterWassersteinEvidence:
    told = {"event": "x > 1", "checks": CHECKS, "distance": 3, "ignored": 0.0, "noise": "laplace", "scale": 3.0}
    return ParameterWassersteinEvidence(**(told | changes))


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.4])
def test_noise_against_the_laws_themselves(epsilon: float) -> None:
    """Laplace noise by the pure loss where that is enough, else by the divergence of the noisy laws, both ways."""
    p, q = (np.convolve(law, laplace(2.0)) for law in laws())
    exact = max(hockey(p, q, epsilon), hockey(q, p, epsilon))
    reached = noise().delta(epsilon)
    assert exact <= reached * (1 + 1e-9)
    assert reached <= exact * (1 + 1e-6)


def test_no_noise_against_the_laws_themselves() -> None:
    p, q = laws()
    exact = max(hockey(p, q, 0.5), hockey(q, p, 0.5))
    assert noise(noise="none", scale=0.0).delta(0.5) == pytest.approx(exact, rel=1e-6)
    pure = max(np.log(p / q).max(), np.log(q / p).max())
    assert noise(noise="none", scale=0.0).delta(float(pure) * (1 + 1e-9)) == 0.0
    assert noise(noise="none", scale=0.0).delta(float(pure) * (1 - 1e-6)) > 0.0


def test_the_worst_member_counts() -> None:
    far = ParameterCheck(secret="p", theta=1, counts=ParameterCounts(N, ((0.1, 0.1), (0.9, 0.9)), FLIP))
    alone = noise(checks=(far,)).delta(0.2)
    assert alone > noise().delta(0.2)
    assert noise(checks=(*CHECKS, far)).delta(0.2) == noise(checks=(far, *CHECKS)).delta(0.2) == alone
    assert parameter_distance(far.counts) > 3 >= parameter_distance(COUNTS)
    assert refused(moved(checks=(*CHECKS, far)))
    assert refused(moved(checks=(far, *CHECKS)))


def test_laplace_noise_for_a_distance_is_all_or_nothing() -> None:
    """W by the distribution functions: the least d with P(F <= k) >= P'(F <= k - d), both ways."""
    p, q = (np.cumsum(law) for law in laws())
    needed = next(
        d for d in range(N + 1) if all((one[d:] >= other[: N + 1 - d] - 1e-12).all() for one, other in ((p, q), (q, p)))
    )
    assert parameter_distance(COUNTS) == needed == 2
    assert moved(distance=2, scale=2.0).delta(1.0 + 1e-9) == 0.0
    assert moved(distance=2, scale=2.0).delta(1.0 - 1e-9) == 1.0
    assert moved(distance=3, scale=2.0).delta(1.0 + 1e-9) == 1.0
    assert moved(distance=1, scale=2.0).delta(1.5) == 1.0
    assert refused(moved(noise="none", scale=0.0))
    assert refused(moved(noise="laplace", scale=0.0))


@pytest.mark.parametrize("ignored", [1e-3, 0.02, 0.3])
def test_what_is_ignored_is_most_of_delta(ignored: float) -> None:
    """Promised just below the sum it fails, just above it holds; nothing of it is taken off."""
    distance = parameter_distance(COUNTS, ignored)
    told = moved(distance=distance, ignored=ignored, scale=max(1.0, 10.0 * distance))
    assert told.delta(1.0) == pytest.approx(ignored, rel=1e-9)
    assert accepted(told, 1.0, ignored * (1 + 1e-9))
    assert not accepted(told, 1.0, ignored * (1 - 1e-9))


def test_gaussian_noise_and_what_is_ignored_add_up() -> None:
    ignored, scale, epsilon = 0.01, 4.0, 0.3
    distance = parameter_distance(COUNTS, ignored)
    k = np.arange(-400, 401)
    weights = np.exp(-(k**2) / (2 * scale**2))
    weights /= weights.sum()
    shifted = hockey(np.append(weights, np.zeros(distance)), np.append(np.zeros(distance), weights), epsilon)
    assert shifted > 1e-3
    told = moved(distance=distance, ignored=ignored, noise="gaussian", scale=scale)
    assert told.delta(epsilon) == pytest.approx(shifted + ignored, rel=1e-9)
    assert moved(distance=distance, ignored=0.9999, noise="gaussian", scale=1e-3).delta(epsilon) == 1.0


def test_equal_laws_need_no_noise() -> None:
    same = (ParameterCheck(secret="p", theta=0, counts=ParameterCounts(N, ((0.3, 0.3), (0.3, 0.3)), FLIP)),)
    assert moved(checks=same, distance=parameter_distance(same[0].counts), noise="laplace", scale=1e9).delta(0.1) == 0.0
    assert moved(checks=same, distance=0, ignored=0.125, noise="none", scale=0.0).delta(0.1) == pytest.approx(0.125)
    assert moved(checks=same, distance=1, noise="none", scale=0.0).delta(0.1) == 1.0
    assert refused(moved(distance=0, ignored=1.0, noise="none", scale=0.0))


def kernel(flat: float) -> tuple[tuple[int, ...], ...]:
    """The count itself with a chance of 1 - flat, else any number."""
    other = round(2**62 * flat / (N + 1))
    return tuple(tuple(other + (2**62 - (N + 1) * other if f == o else 0) for o in range(N + 1)) for f in range(N + 1))


@pytest.mark.parametrize("flat", [0.0, 0.3, 0.9])
def test_a_kernel_against_its_output_laws(flat: float) -> None:
    weights = kernel(flat)
    rows = np.array(weights, dtype=np.float64)
    p, q = laws() @ (rows / rows.sum(axis=1, keepdims=True))
    loss = float(max(np.log(p / q).max(), np.log(q / p).max()))
    told = ParameterKernelEvidence(event="x > 1", checks=CHECKS, weights=weights)
    assert told.delta(loss * (1 + 1e-9)) == 0.0
    assert told.delta(loss * (1 - 1e-9)) == 1.0
    far = ParameterCheck(secret="p", theta=1, counts=ParameterCounts(N, ((0.1, 0.1), (0.9, 0.9)), FLIP))
    both = ParameterKernelEvidence(event="x > 1", checks=(*CHECKS, far), weights=weights)
    assert both.delta(loss * (1 + 1e-9)) == 1.0


def test_only_the_counted_event_and_noise_are_covered() -> None:
    assert noise().covers_tally(counted())
    for changes in ({"event": "x > 2"}, {"n": 11}, {"noise": "gaussian"}, {"scale": 2.1}):
        assert not noise().covers_tally(counted(**changes)), changes
    assert moved(scale=2.0).covers_tally(counted())
    assert not moved(scale=3.0).covers_tally(counted())
    told = ParameterKernelEvidence(event="x > 1", checks=CHECKS, weights=kernel(0.5))
    assert told.covers_tally(counted(noise="kernel", scale=0.0))
    assert not told.covers_tally(counted(noise="kernel", scale=1.0))
    assert not told.covers_tally(counted(noise="laplace", scale=0.0))
    two = (*CHECKS, ParameterCheck(secret="p", theta=1, counts=ParameterCounts(9, SHARES, FLIP)))
    assert not noise(checks=two).covers_tally(counted())
