"""The optima against published numbers, against each other, and against a program written down in full."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize
from scipy.stats import binom

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.calibration.linear_program import (
    MOST_VALUES,
    broken_conditions,
    largest_excess,
    optimal_envelope,
    optimal_kernel,
)

Matrix = NDArray[np.float64]


def laws(n: int, p1: float, p0: float) -> Matrix:
    return np.array([np.convolve(binomial(a, p1), binomial(n - a, p0)) for a in range(n + 1)])


def binomial(n: int, p: float) -> Matrix:
    return np.array([binom.pmf(k, n, p) for k in range(n + 1)])


def in_full(family: Matrix, prior: Sequence[float] | Matrix, epsilon: float, apart: int, *, reads: bool) -> float:
    """The least expected |error|, with a joint law of (a, f, o) as the variables and no trick: for small problems."""
    secrets, values = family.shape
    share: Any = np.array(prior)[:, None] * family
    shape = (secrets, values, values) if reads else (1, values, values)
    distance = np.abs(np.subtract.outer(np.arange(values), np.arange(values)))
    cost = np.broadcast_to(distance, shape) * (share[:, :, None] if reads else share.sum(axis=0)[None, :, None])
    rows = []
    for a, b in itertools.permutations(range(secrets), 2):
        for o in range(values):
            if abs(a - b) <= apart:
                row = np.zeros(shape)
                row[a if reads else 0, :, o] += family[a]
                row[b if reads else 0, :, o] -= math.exp(epsilon) * family[b]
                rows.append(row.ravel())
    totals = np.kron(np.eye(shape[0] * values), np.ones((1, values)))
    ones = np.ones(len(totals))
    found: Any = optimize.linprog(cost.ravel(), np.array(rows), np.zeros(len(rows)), totals, ones, method="highs")
    return float(found.fun)


@pytest.mark.parametrize(("epsilon", "error"), [(0.25, 0.422363), (0.5, 0.298445), (1.0, 0.083827), (2.0, 0.0)])
def test_the_first_example(epsilon: float, error: float) -> None:
    family = laws(4, 0.4, 0.6)
    assert optimal_kernel(family, family.mean(axis=0), epsilon).error == pytest.approx(error, abs=5e-7)


def test_twenty_rows_with_a_binomial_prior() -> None:
    family, prior = laws(20, 0.4, 0.6), binomial(20, 0.5)
    assert optimal_envelope(family, prior, 1.0).error == pytest.approx(0.0163, abs=5e-5)
    assert optimal_kernel(family, prior @ family, 1.0).error == pytest.approx(0.456, abs=5e-4)


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.5])
@pytest.mark.parametrize("apart", [1, 2, 5])
def test_the_program_in_full_agrees(epsilon: float, apart: int) -> None:
    family, prior = laws(5, 0.3, 0.8), np.array([1, 2, 3, 1, 1, 2]) / 10
    found = optimal_kernel(family, prior @ family, epsilon, apart)
    assert found.error == pytest.approx(in_full(family, prior, epsilon, apart, reads=False), abs=1e-7)
    outputs = family @ found.kernel
    assert largest_excess(outputs, epsilon, apart) < 1e-7
    assert found.kernel.sum(axis=1) == pytest.approx(np.ones(6))


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.5])
@pytest.mark.parametrize("seed", range(3))
def test_any_laws(epsilon: float, seed: int) -> None:
    """No order, no shape: random laws, some of them without all values."""
    generator = np.random.default_rng(seed)
    family = generator.dirichlet(np.full(5, 0.5), size=4)
    family[0, :2] = 0
    family /= family.sum(axis=1, keepdims=True)
    prior = generator.dirichlet(np.ones(4))
    seen = optimal_kernel(family, prior @ family, epsilon).error
    assert seen == pytest.approx(in_full(family, prior, epsilon, 3, reads=False), abs=1e-7)
    read = optimal_envelope(family, prior, epsilon).error
    assert read == pytest.approx(in_full(family, prior, epsilon, 3, reads=True), abs=1e-7)
    assert read <= seen


def test_more_epsilon_is_never_worse() -> None:
    family = laws(8, 0.2, 0.7)
    for solve, weights in ((optimal_kernel, family.mean(axis=0)), (optimal_envelope, np.full(9, 1 / 9))):
        errors = [solve(family, weights, epsilon).error for epsilon in (0.01, 0.1, 0.5, 1.0, 2.0, 4.0)]
        assert errors == sorted(errors, reverse=True)


def test_equal_laws_need_nothing() -> None:
    family = [[0.2, 0.3, 0.5]] * 3
    assert optimal_kernel(family, family[0], 0.01).error == pytest.approx(0, abs=1e-9)
    assert optimal_envelope(family, [0.2, 0.3, 0.5], 0.01).error == pytest.approx(0, abs=1e-9)


def test_a_broken_condition_is_named() -> None:
    outputs = np.array([[0.5, 0.5], [0.4, 0.6], [0.1, 0.9]])
    assert broken_conditions(outputs, 1.0, 2, 1e-9) == {(0, 2, 0)}
    assert broken_conditions(outputs, 1.0, 1, 1e-9) == {(1, 2, 0)}
    assert broken_conditions(outputs, 2.0, 2, 1e-9) == set()
    assert largest_excess(outputs, 1.0, 2) == pytest.approx(0.5 - 0.1 * math.e)


@pytest.mark.parametrize(
    ("family", "weights", "epsilon", "apart", "text"),
    [
        ([[0.5, 0.5], [0.4, 0.6]], [0.5, 0.5], 0.0, 1, "epsilon"),
        ([[0.5, 0.5], [0.4, 0.6]], [0.5, 0.5], math.nan, 1, "epsilon"),
        ([[0.5, 0.5], [0.4, 0.6]], [0.5, 0.5], 1.0, 2, "apart"),
        ([[0.5, 0.5], [0.4, 0.6]], [0.5, 0.5], 1.0, 0, "apart"),
        ([[0.5, 0.5]], [0.5, 0.5], 1.0, 1, "laws"),
        ([[0.5, 0.5], [0.4, 0.6]], [0.5, 0.3, 0.2], 1.0, 1, "laws"),
        ([[0.5, 0.5], [0.4, 0.5]], [0.5, 0.5], 1.0, 1, "laws"),
        ([[0.5, 0.5], [math.nan, 0.6]], [0.5, 0.5], 1.0, 1, "laws"),
        ([[0.5, 0.5], [-0.4, 1.4]], [0.5, 0.5], 1.0, 1, "laws"),
        ([[0.5, 0.5], [0.4, 0.6]], [math.nan, 0.5], 1.0, 1, "weights"),
    ],
)
def test_what_cannot_be_used(family: Any, weights: Any, epsilon: float, apart: int, text: str) -> None:
    with pytest.raises(UsageError, match=f"^{text}: "):
        optimal_kernel(family, weights, epsilon, apart)


def test_too_large_a_problem_is_refused() -> None:
    size = MOST_VALUES + 1
    with pytest.raises(RefusedError, match="at most 151 counts and 151 values"):
        optimal_kernel(np.full((2, size), 1 / size), np.full(size, 1 / size), 1.0)


def test_a_solver_that_fails_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def failing(*arguments: Any, method: str, **options: Any) -> Any:
        asked.append(method)
        return SimpleNamespace(status=4, x=None)

    monkeypatch.setattr(optimize, "linprog", failing)
    with pytest.raises(RefusedError, match="no solution"):
        optimal_envelope([[0.6, 0.4], [0.4, 0.6]], [0.5, 0.5], 1.0)
    assert asked == ["highs-ds", "highs-ipm"]
