"""A ball or a path of covariances: bounds against two normal laws in one dimension, and what a centre beside the line costs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from attrpriv.numerics.divergences.gaussian import gaussian_delta, hockey_stick
from attrpriv.numerics.divergences.group_vector_clamp import Ball, ball_delta, path_delta, runs_of, told_apart, whitened
from attrpriv.numerics.laws.gaussian import GaussianLaw
from attrpriv.numerics.laws.groups import VectorCase

CASE = VectorCase(n=10, low=2, high=6, apart=1, members=(((3.0,), ((4.0,),)),), rest=(((1.0,), ((1.0,),)),))
LOW, HIGH = np.array([[0.5]]), np.array([[0.9]])


def ball(reach: float, metric: float = 0.5) -> Ball:
    return Ball(reach, np.array([[metric]]))


@pytest.mark.parametrize("aside", [0.0, 0.003, 0.02])
@pytest.mark.parametrize("reach", [0.0, 0.05, 5.0])
def test_a_path_in_one_dimension(reach: float, aside: float) -> None:
    """One row moves the mean by 0.2, of which the ball leaves 2 reach; a centre beside the line adds itself to everything."""
    epsilon, length = 0.3, 0.2 / math.sqrt(0.5)
    off = aside / math.sqrt(0.5)
    most, more = 2 * (reach + off) / length, 2 * off / length
    moved = 0.2 * (min(most, 1.0) + more)
    wide = 0.5 + 0.4 / 4
    one, other = GaussianLaw(moved, 0.5), GaussianLaw(0.0, wide)
    exact = max(hockey_stick(one, other, epsilon), hockey_stick(other, one, epsilon)) + (1 + math.exp(epsilon)) * off / 2
    found = path_delta(CASE, LOW, HIGH, ball(reach), aside=(aside,))(epsilon)
    assert found >= exact * (1 - 1e-6) - 1e-9
    assert found <= exact * 1.01 + 2e-5


def test_where_a_path_proves_nothing() -> None:
    two = replace(CASE, members=(*CASE.members, ((2.0,), ((4.0,),))))
    other = replace(CASE, rest=(*CASE.rest, ((2.0,), ((4.0,),))))
    for case in (two, other, replace(CASE, mean_tolerance=0.1)):
        assert path_delta(case, LOW, HIGH, ball(1.0)) is told_apart
    assert path_delta(CASE, LOW, HIGH, ball(1.0), aside=(0.25 * math.sqrt(0.5) * 0.99,)) is not told_apart
    assert path_delta(CASE, LOW, HIGH, ball(1.0), aside=(0.25 * math.sqrt(0.5) * 1.01,)) is told_apart
    assert told_apart(0.3) == 1.0


@pytest.mark.parametrize("beyond", [0.0, 0.5])
@pytest.mark.parametrize("reach", [0.0, 0.05, 5.0])
def test_a_ball_in_one_dimension(reach: float, beyond: float) -> None:
    total, off, epsilon = np.array([[0.8]]), 1e-3, 0.3
    told = 0.2 / math.sqrt(0.5)
    distance = math.sqrt(0.5 / 0.8) * min(2 * reach, told) + beyond * 0.2 / math.sqrt(0.8)
    exact = gaussian_delta(epsilon, distance) + (1 + math.exp(epsilon)) * off / 2
    found = ball_delta(CASE, total, off, ball(reach), beyond=beyond)(epsilon)
    assert exact <= found <= exact * (1 + 1e-6) + 1e-12
    tolerant = replace(CASE, mean_tolerance=0.1)
    untold = 0.1 * (2.0 + 1.0) / 10 / math.sqrt(0.8)
    more = gaussian_delta(epsilon, math.sqrt(0.5 / 0.8) * min(2 * reach, told) + untold) + (1 + math.exp(epsilon)) * off / 2
    assert ball_delta(tolerant, total, off, ball(reach))(epsilon) == pytest.approx(more, rel=1e-6)
    assert ball_delta(CASE, total, 0.51, ball(reach)) is told_apart
    assert ball_delta(CASE, total, 0.49, ball(reach)) is not told_apart
    assert ball_delta(CASE, np.array([[0.0]]), off, ball(reach)) is told_apart


def test_every_distance_is_in_a_run() -> None:
    for most, apart in ((3.5, 6), (0.5, 1000), (2000.0, 1000), (100.0, 1000)):
        runs = list(runs_of(most, apart))
        first = max(1, math.floor(min(most, apart)))
        assert runs[0][0] == first
        assert [k for low, high in runs for k in range(low, high + 1)] == list(range(first, apart + 1))
        assert all(high / low <= 1.06 + 1e-9 for low, high in runs)


def test_whitening() -> None:
    found = whitened(np.array([[2.0, 0.6], [0.6, 1.0]]))
    assert found is not None
    assert found[0] @ np.array([[2.0, 0.6], [0.6, 1.0]]) @ found[0].T == pytest.approx(np.eye(2), abs=1e-12)
    assert 0 < found[1] < 1e-11
    for wrong in ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]], [[math.nan, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]]):
        assert whitened(np.array(wrong)) is None


def test_the_worst_corner_of_the_tolerance_counts() -> None:
    """Correlated averages: what nobody can take back is longest in one corner only, and it is that one."""
    laws = ((1.0, 0.4), (0.4, 1.0)), ((4.0, -1.0), (-1.0, 9.0))
    case = VectorCase(
        n=50, low=10, high=20, apart=10, members=(((3.0, 1.0), laws[0]),), rest=(((1.0, 2.0), laws[1]),), mean_tolerance=0.1
    )
    total = np.array([[0.5, 0.3], [0.3, 0.4]])
    reach = [0.1 * 10 / 50 * (1.0 + root) for root in (2.0, 3.0)]
    lengths = [
        math.sqrt(float(corner @ np.linalg.solve(total, corner)))
        for corner in (np.array([reach[0], reach[1]]), np.array([reach[0], -reach[1]]))
    ]
    found = ball_delta(case, total, 0.0, Ball(0.0, np.eye(2)))(0.2)
    exact = gaussian_delta(0.2, max(lengths))
    assert exact <= found <= exact * (1 + 1e-6) + 1e-9
    assert found > 2 * gaussian_delta(0.2, min(lengths))
