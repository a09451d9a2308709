"""The box seen through several columns: slopes and residual covariance of every member lie where it says."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.assumptions import vector_box as module
from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.vector_box import Interval, is_itself, vector_box
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


# ------------------------------------------------------------------------------------------------------- the slow twin


def plain_residual(
    gaussian: Gaussian, pair: tuple[str, str], secret: Mapping[str, float], slopes: tuple[Interval, Interval], spread: Interval
) -> Interval:
    """One pair of columns at a time, in Python's floats."""
    if is_itself(pair[0], secret) or is_itself(pair[1], secret):
        return 0.0, 0.0
    low, high = module._covariance(gaussian, *pair)
    explained = [[a * b * v for a in slopes[0] for b in slopes[1] for v in spread]]
    for beta, column in zip(slopes, reversed(pair), strict=True):
        shared = module._combined(gaussian, {column: 1.0}, secret)
        explained.append([b * s for b in beta for s in shared])
    options = [(low - max(taken), high - min(taken)) for taken in explained]
    rounding = 16 * 2.0**-52 * (max(abs(low), abs(high)) + max(abs(x) for taken in explained for x in taken))
    least, most = min(options, key=lambda ends: ends[1] - ends[0])
    return least - rounding, most + rounding


def plain_matrix(gaussian: Gaussian, queries: tuple[str, ...], secret: Mapping[str, float]) -> np.ndarray:
    spread = module._combined(gaussian, secret, secret)
    slopes = [module._slope(gaussian, query, secret, spread) for query in queries]
    centre = np.zeros((len(queries), len(queries)))
    radius = np.zeros_like(centre)
    for j, first in enumerate(queries):
        for m, second in enumerate(queries):
            low, high = plain_residual(gaussian, (first, second), secret, (slopes[j], slopes[m]), spread)
            centre[j, m], radius[j, m] = (low + high) / 2, (high - low) / 2
    return np.asarray((centre + centre.T) / 2 - np.diag(np.maximum(radius, radius.T).sum(axis=1)))


def many(seed: int, tolerance: object, size: int = 22) -> Gaussian:
    rng = np.random.default_rng(seed)
    names = [f"c{k}" for k in range(size)]
    factor = rng.normal(size=(size, 2 * size)) + rng.normal(size=(size, 1))
    covariance = factor @ factor.T * np.outer(scales := rng.uniform(0.01, 100, size), scales)
    sds = np.sqrt(np.diag(covariance))
    pairs = {f"{names[i]}~{names[j]}": covariance[i, j] / sds[i] / sds[j] for i in range(size) for j in range(i + 1, size)}
    return Gaussian(
        sd={name: float(sd) for name, sd in zip(names, sds, strict=True)},
        correlation={pair: float(rho) for pair, rho in pairs.items()},
        tolerance=tolerance,
    )


SECRETS = ({"c21": 1.0}, {"c3": -2.0}, {"c20": 0.5, "c21": -2.0}, {"c2": 1.0, "c20": 0.25}, {"c5": 3.0, "c6": 1.0, "c21": 1.0})
TOLERANCES = (0, {"sd": 0.02, "correlation": 0.05}, {"sd": 0.03, "slope": 0.04}, {"sd": 0.1, "slope": 1.5})


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_twenty_columns_are_the_same_as_one_pair_at_a_time(secret: dict[str, float], tolerance: object) -> None:
    """To the last digit: plans made before are made again."""
    gaussian, queries = many(5, tolerance), tuple(f"c{k}" for k in range(20))
    box = vector_box(gaussian, queries, secret)
    assert box is not None
    assert np.array_equal(box.residual, plain_matrix(gaussian, queries, secret))


def test_no_columns_at_all() -> None:
    box = vector_box(stated(1, 0), (), {"c": 1.0})
    assert box is not None
    assert box.slopes == ()
    assert box.residual.shape == (0, 0)
