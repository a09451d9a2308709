"""What a parameter's noise is worth where probabilities are off: by the laws of the count, written out; and what is drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from attrpriv.methods.base.accuracy import OFF_BY
from attrpriv.methods.base.checks import ParameterCheck
from attrpriv.methods.parameter_counts import proof as module
from attrpriv.methods.parameter_counts.proof import ParameterKernelEvidence
from attrpriv.numerics.calibration.parameter_counts import ParameterCounts
from tests.unit.methods.parameter_counts.test_proof import CHECKS, FLIP, N, hockey, kernel, laplace, laws, moved, noise

DELTA = 1e-3


def shifted(off: float) -> float:
    return math.log((1 + off) / (1 - off))


def gaussian(scale: float, reach: int = 400) -> np.ndarray:
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-(k**2) / (2 * scale**2))
    return np.asarray(weights / weights.sum())


def least(outputs: tuple[np.ndarray, np.ndarray], delta: float) -> float:
    """The epsilon at which two laws are (epsilon, delta)-close, and no smaller one."""
    p, q = outputs

    def over(epsilon: float) -> float:
        return max(hockey(p, q, epsilon), hockey(q, p, epsilon)) - delta

    return float(brentq(over, 0.0, 20.0, xtol=1e-13)) if over(0.0) > 0 else 0.0


def noisy(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p, q = (np.convolve(law, weights) for law in laws())
    return p, q


@pytest.mark.parametrize(("kind", "scale"), [("laplace", 1.0), ("gaussian", 1.5), ("none", 0.0)])
def test_masses_are_larger_by_a_share_and_ratios_by_two(kind: str, scale: float) -> None:
    """A mass that is larger by x has delta/(1 + x) to itself; on top comes log (1 + x)/(1 - x)."""
    weights = {"laplace": laplace(scale) if scale else np.ones(1), "gaussian": gaussian(scale or 1.0), "none": np.ones(1)}[kind]
    for told in (noise(noise=kind, scale=scale), moved(noise=kind, scale=scale, ignored=DELTA)):
        rows = told.model_error(1.0, DELTA)
        assert [row.off_by for row in rows] == list(OFF_BY)
        for row in rows:
            exact = least(noisy(weights), DELTA / (1 + row.off_by))
            assert row.epsilon is not None
            assert exact + shifted(row.off_by) <= row.epsilon * (1 + 1e-9)
            assert row.epsilon <= exact * 1.0011 + shifted(row.off_by) * (1 + 1e-9)


def test_without_delta_every_output_counts() -> None:
    k = np.arange(-40, 41)
    p, q = (law @ np.exp(-np.abs(np.arange(N + 1)[:, None] - k) / 2.0) for law in laws())
    pure = float(np.abs(np.log(p / q)).max())
    for told in (noise(), moved(scale=2.0)):
        for row in told.model_error(1.0, 0.0):
            assert row.epsilon == pytest.approx(pure + shifted(row.off_by), rel=1e-9)
            assert row.epsilon is not None
            assert row.epsilon >= (pure + shifted(row.off_by)) * (1 - 1e-13)
    assert [row.epsilon for row in noise(noise="gaussian").model_error(1.0, 0.0)] == [None] * len(OFF_BY)


def test_the_worst_check_counts_and_the_better_of_two_ways() -> None:
    far = ParameterCheck(secret="p", theta=1, counts=ParameterCounts(N, ((0.1, 0.1), (0.9, 0.9)), FLIP))
    for delta in (0.0, 1e-9, DELTA):
        both, alone = (noise(checks=checks).model_error(1.0, delta)[0].epsilon for checks in ((*CHECKS, far), (far,)))
        near = noise().model_error(1.0, delta)[0].epsilon
        assert both is not None
        assert near is not None
        assert both == pytest.approx(alone, rel=1e-3)
        assert both > near
        pure = noise().model_error(1.0, 0.0)[0].epsilon
        assert pure is not None
        assert near <= pure  # with delta never more than without


def test_a_kernel_loses_what_its_output_laws_do() -> None:
    weights = kernel(0.3)
    rows = np.array(weights, dtype=np.float64)
    p, q = laws() @ (rows / rows.sum(axis=1, keepdims=True))
    pure = float(np.abs(np.log(p / q)).max())
    far = ParameterCheck(secret="p", theta=1, counts=ParameterCounts(N, ((0.1, 0.1), (0.9, 0.9)), FLIP))
    for row in ParameterKernelEvidence(event="x > 1", checks=CHECKS, weights=weights).model_error(1.0, 0.0):
        assert row.epsilon == pytest.approx(pure + shifted(row.off_by), rel=1e-9)
    pair = [ParameterKernelEvidence(event="x > 1", checks=one, weights=weights) for one in ((far,), (*CHECKS, far))]
    (alone, *_), (both, *_) = (one.model_error(1.0, 0.0) for one in pair)
    assert alone.epsilon == both.epsilon
    assert both.epsilon is not None
    assert both.epsilon > pure + shifted(0.01)


def test_a_kernel_draws_from_the_row_of_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = kernel(0.3)
    told = ParameterKernelEvidence(event="x > 1", checks=CHECKS, weights=weights)
    monkeypatch.setattr(module, "draw", lambda row: row.index(max(row)))
    for total in (0, 3, N):
        assert told.kernel_draw(total, 2, 0.0) == total
        assert told.kernel_law(total, 2) == (0, weights[total])
