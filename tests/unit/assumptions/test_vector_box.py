"""The box seen through several columns: slopes and residual covariance of every member lie where it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.assumptions import Gaussian
from attrpriv.assumptions.vector_box import vector_box
from attrpriv.assumptions.worst_case import correlation_range

NAMES = ("a", "b", "c", "d")


def stated(seed: int, tolerance: object) -> Gaussian:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(4, 6))
    covariance = factor @ factor.T
    sds = np.sqrt(np.diag(covariance))
    pairs = {f"{x}~{y}": covariance[i, j] / sds[i] / sds[j] for i, x in enumerate(NAMES) for j, y in enumerate(NAMES) if i < j}
    return Gaussian(
        sd={name: float(sd) for name, sd in zip(NAMES, sds, strict=True)},
        correlation={pair: float(rho) for pair, rho in pairs.items()},
        tolerance=tolerance,
    )


@given(st.integers(0, 5000), st.sampled_from(["correlation", "slope"]), st.booleans())
@settings(max_examples=60)
def test_members_of_the_box_lie_inside(seed: int, mode: str, combination: bool) -> None:
    """Random members, drawn entry by entry from the box and kept where they are covariances."""
    gaussian = stated(seed, {"sd": 0.03, mode: 0.04})
    secret = {"c": 0.5, "d": -2.0} if combination else {"c": 1.0}
    box = vector_box(gaussian, ("a", "b"), secret)
    if box is None:
        return
    rng = np.random.default_rng(seed + 1)
    weights = np.array([0.0, 0.0, secret["c"], secret.get("d", 0.0)])
    for _ in range(30):
        covariance = _member(gaussian, rng, mode)
        if np.linalg.eigvalsh(covariance)[0] <= 0:
            continue
        shared, spread = covariance[:2] @ weights, weights @ covariance @ weights
        slopes = shared / spread
        residual = covariance[:2, :2] - np.outer(shared, shared) / spread
        for slope, (low, high) in zip(slopes, box.slopes, strict=True):
            assert low - 1e-9 <= slope <= high + 1e-9
        assert np.linalg.eigvalsh(residual - box.residual)[0] >= -1e-9


def _member(gaussian: Gaussian, rng: np.random.Generator, mode: str) -> np.ndarray:
    sds = np.array([rng.uniform(*gaussian.sd_range(name)) for name in NAMES])
    matrix = np.eye(4)
    for i, first in enumerate(NAMES):
        for j in range(i):
            if mode == "slope":  # of the column i on j: within the tolerance relative to the stated one
                slope = gaussian.slope(NAMES[j], first) * rng.uniform(0.96, 1.04)
                matrix[i, j] = matrix[j, i] = slope * sds[i] / sds[j]
            else:
                low, high = correlation_range(gaussian, first, NAMES[j])
                matrix[i, j] = matrix[j, i] = rng.uniform(low, high)
    return np.asarray(matrix * np.outer(sds, sds))


def test_exact_moments_give_exact_numbers() -> None:
    gaussian = stated(7, 0)
    box = vector_box(gaussian, ("a", "b"), {"c": 1.0})
    assert box is not None
    assert box.slopes[0][0] == pytest.approx(gaussian.slope("a", "c"))
    assert box.slopes[0][1] == pytest.approx(gaussian.slope("a", "c"))
    explained = gaussian.slope("a", "c") * gaussian.slope("b", "c") * gaussian.sd_of("c") ** 2
    shared = gaussian.correlation_of("a", "b") * gaussian.sd_of("a") * gaussian.sd_of("b")
    assert box.residual[0, 1] == pytest.approx(shared - explained)


def test_a_column_given_itself_is_known() -> None:
    box = vector_box(stated(3, {"sd": 0.1, "slope": 0.1}), ("c", "a"), {"c": 1.0})
    assert box is not None
    assert box.slopes[0] == (1.0, 1.0)
    assert box.residual[0, 0] == 0.0


def test_a_combination_that_may_vanish_is_not_covered() -> None:
    gaussian = Gaussian(sd={"a": 1, "b": 1, "q": 1}, correlation={"a~b": 1, "a~q": 0, "b~q": 0}, tolerance=0)
    assert vector_box(gaussian, ("q",), {"a": 1.0, "b": -1.0}) is None
