"""The walk to a corner against a slow twin, which takes the whole matrix apart at each step."""

from __future__ import annotations

import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.worst_case import Extreme, _between, candidates, witness

NAMES = ("y", "x", "a", "b", "c")


def tight(seed: int, tolerance: object) -> Gaussian:
    """Five columns that three numbers nearly determine, so that many corners do not exist."""
    rng = np.random.default_rng(seed)
    factor = np.hstack([rng.normal(size=(5, 3)), 0.05 * np.eye(5)])
    covariance = factor @ factor.T
    sds = np.sqrt(np.diag(covariance))
    pairs = {
        f"{x}~{z}": float(covariance[i, j] / sds[i] / sds[j]) for i, x in enumerate(NAMES) for j, z in enumerate(NAMES) if i < j
    }
    return Gaussian(sd=dict(zip(NAMES, map(float, sds), strict=True)), correlation=pairs, tolerance=tolerance)


def plain_exists(gaussian: Gaussian, point: Extreme) -> bool:
    """By the eigenvalues of the correlations of all columns."""
    matrix = gaussian.correlation_matrix(NAMES)
    if gaussian.tolerance.slope is not None:
        for k, other in enumerate(NAMES[1:], 1):
            matrix[0, k] = matrix[k, 0] = gaussian.slope("y", other) * gaussian.sd_of(other) / point.sd_query
    sign = -1.0 if gaussian.correlation_of("y", "x") < 0 else 1.0
    matrix[0, 1] = matrix[1, 0] = sign * point.slope * point.sd_secret / point.sd_query
    return bool(np.abs(matrix).max() <= 1 + 1e-12 and np.linalg.eigvalsh(matrix)[0] >= -1e-12)


def plain_share(gaussian: Gaussian, corner: Extreme) -> float:
    if plain_exists(gaussian, corner):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        inside = plain_exists(gaussian, _between(gaussian, "y", "x", corner, middle))
        low, high = (middle, high) if inside else (low, middle)
    return low


@pytest.mark.parametrize("tolerance", [{"sd": 0.02, "slope": 0.05}, {"sd": 0.0, "correlation": 0.02}])
def test_the_walk_ends_where_the_twin_ends(tolerance: object) -> None:
    shares = []
    for seed in range(30):
        gaussian = tight(seed, tolerance)
        for corner in candidates(gaussian, "y", "x"):
            shares.append(plain_share(gaussian, corner))
            wanted = _between(gaussian, "y", "x", corner, shares[-1]) if shares[-1] < 1 else corner
            found = witness(gaussian, "y", "x", corner)
            assert (found.slope, found.sd_query) == pytest.approx((wanted.slope, wanted.sd_query), rel=1e-9)
    assert any(0 < share < 1 for share in shares)
