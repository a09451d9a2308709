"""Least-trace noise: every condition holds, one condition exactly, several within 1% of the semidefinite optimum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration import least_trace as module
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.calibration.least_trace import _polished, _swept, least_trace, positive_part, shortfall
from attrpriv.numerics.divergences.gaussian import gaussian_delta

Matrix = NDArray[np.float64]


def random_conditions(seed: int) -> list[Matrix]:
    rng = np.random.default_rng(seed)
    size, count = int(rng.integers(2, 5)), int(rng.integers(1, 6))
    conditions = []
    for _ in range(count):
        shift = rng.normal(size=size)
        spread = rng.normal(size=(size, size)) * rng.choice([0.1, 0.5, 1.0])
        conditions.append(3 * np.outer(shift, shift) - spread @ spread.T)
    return conditions


@given(st.integers(0, 10_000))
@settings(max_examples=40)
def test_every_condition_holds(seed: int) -> None:
    conditions = random_conditions(seed)
    noise = least_trace(conditions)
    assert shortfall(noise, conditions) <= 1e-9 * max(1.0, float(np.trace(noise)))
    assert float(np.linalg.eigvalsh(noise)[0]) >= -1e-12 * max(1.0, float(np.trace(noise)))


def test_one_condition_is_exact_and_of_rank_one() -> None:
    shift, spread = np.array([1.0, 2.0]), np.array([[0.5, 0.1], [0.1, 0.3]])
    condition = np.outer(shift, shift) - spread
    values = np.linalg.eigvalsh(condition)
    noise = least_trace([condition])
    assert float(np.trace(noise)) == pytest.approx(float(values[values > 0].sum()))
    assert np.linalg.matrix_rank(noise, tol=1e-9) == 1


def test_noise_where_the_diagonal_would_say_none() -> None:
    """The issue's example: by the diagonal alone delta would be 0.99."""
    mu = gaussian_mu(1.0, 1e-5)
    spread, shift = 60 * np.array([[1.0, -0.999], [-0.999, 1.0]]), np.array([1.0, 1.0])
    assert (1 / mu) ** 2 < 60  # each average alone: no noise
    alone = float(np.sqrt(shift @ np.linalg.solve(spread, shift)))
    assert gaussian_delta(1.0, alone) == pytest.approx(0.99, abs=0.005)
    noise = least_trace([np.outer(shift, shift) / mu**2 - spread])
    assert float(np.trace(noise)) > 0
    assert float(np.sqrt(shift @ np.linalg.solve(spread + noise, shift))) <= mu * (1 + 1e-9)


def test_within_one_percent_of_the_semidefinite_program() -> None:
    cvxpy = pytest.importorskip("cvxpy", reason="cvxpy is not installed: the semidefinite optimum cannot be computed")
    for seed in range(12):
        conditions = random_conditions(seed)
        variable = cvxpy.Variable(conditions[0].shape, PSD=True)
        program = cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(variable)), [variable - m >> 0 for m in conditions])
        optimum = float(program.solve())
        assert float(np.trace(least_trace(conditions))) <= 1.01 * optimum + 1e-6


def test_conditions_along_axes_are_solved_exactly() -> None:
    conditions = [np.diag([2.0, -1.0, -4.0]), np.diag([-1.0, 3.0, -4.0]), np.diag([1.0, 2.0, -0.5])]
    noise = least_trace(conditions)
    assert float(np.trace(noise)) == pytest.approx(5.0, rel=3e-6)
    assert np.allclose(noise, np.diag([2.0, 3.0, 0.0]), atol=1e-5)


@pytest.mark.parametrize("seed", range(30))
def test_no_sweep_comes_lower(seed: int) -> None:
    """The slower way, from two starts; of one condition it is exact."""
    conditions = random_conditions(seed)
    sweeps = [_polished(_swept(conditions), conditions), _polished(_swept(conditions[::-1]), conditions)]
    assert float(np.trace(least_trace(conditions))) <= min(float(np.trace(one)) for one in sweeps) * (1 + 3e-6) + 1e-9


def corners(size: int, secrets: int, seed: int) -> list[Matrix]:
    """As a plan has them: all corners of a box of slopes, for each of several secrets."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(secrets):
        slope, left = rng.uniform(0.2, 1, size), np.diag(rng.uniform(0.01, 0.1, size))
        for signs in itertools.product((0.95, 1.05), repeat=size):
            shift = slope * np.array(signs)
            found.append(np.outer(shift, shift) - left)
    return found


def test_of_many_conditions_few_are_solved_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a few millionths of the slow twin, which solves for all; the sweeps, which it was before, add more."""
    conditions = corners(4, 12, 8)
    monkeypatch.setattr(module, "_NEWTON_WORK", 4.0**6 * 40)
    few = least_trace(conditions)
    monkeypatch.setattr(module, "_NEWTON_WORK", 4.0**6 * 1000)
    everything = least_trace(conditions)
    assert shortfall(few, conditions) <= 1e-9 * float(np.trace(few))
    assert float(np.trace(few)) == pytest.approx(float(np.trace(everything)), rel=1e-5)
    assert float(np.trace(few)) < float(np.trace(_polished(_swept(conditions), conditions)))


def test_conditions_that_few_cannot_stand_for_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROUNDS", 1)
    monkeypatch.setattr(module, "_NEWTON_WORK", 4.0**6 * 20)
    conditions = corners(4, 3, 9)
    assert np.array_equal(least_trace(conditions), _polished(_swept(conditions_in_order(conditions)), conditions))


def conditions_in_order(conditions: list[Matrix]) -> list[Matrix]:
    return sorted(conditions, key=lambda one: -float(np.linalg.eigvalsh(one)[-1]))


def test_many_conditions_are_swept() -> None:
    rng = np.random.default_rng(3)
    conditions = [np.outer(s, s) - 0.1 * np.eye(11) for s in rng.normal(size=(60, 11))]
    noise = least_trace(conditions)
    assert shortfall(noise, conditions) <= 1e-9 * float(np.trace(noise))


def test_shortfall_sees_what_is_missing() -> None:
    condition = np.diag([2.0, -1.0])
    assert shortfall(positive_part(condition), [condition]) == pytest.approx(0.0)
    assert shortfall(0.9 * positive_part(condition), [condition]) == pytest.approx(0.2)


@pytest.mark.parametrize("conditions", [[], [np.array([[np.nan]])], [np.array([[np.inf]])]])
def test_what_is_refused(conditions: list[Matrix]) -> None:
    with pytest.raises(UsageError, match="finite"):
        least_trace(conditions)
