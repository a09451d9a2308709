"""The sequential clamp: the joint law of what is released, and how far two secrets can be apart, by simulation and directly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import kstest

from attrpriv.accounting.sequential_clamp import ClampState, ClampStep, moved
from attrpriv.errors import RefusedError, UsageError

Vector = NDArray[np.float64]


def covariance(size: int, seed: int) -> Vector:
    root = np.random.default_rng(seed).normal(size=(size, size + 2))
    return np.asarray(root @ root.T / size)


def run(
    told: Vector,
    start: Vector,
    queries: Callable[[int, list[float]], Vector],
    mus: list[float],
    noise: float,
    generator: np.random.Generator,
    *,
    shown: Callable[[ClampStep, float], float] | None = None,
) -> ClampState:
    """One table and its owner: residuals drawn once, queries chosen from earlier answers."""
    residual = generator.multivariate_normal(np.zeros(len(start)), start)
    state = ClampState.start(start)
    answers: list[float] = []
    for k, mu in enumerate(mus):
        step = state.step(queries(k, answers), mu, noise)
        value = float(step.query @ (told + residual))
        if shown is None:
            inside = moved(state, step, value, told)
        else:  # a mutant
            expected = float(step.query @ state.expected(told))
            inside = value - expected + shown(step, expected)
        answers.append(inside + noise * generator.normal())
        state = state.after(step, answers[-1])
    return state


def adaptive(seed: int, size: int) -> Callable[[int, list[float]], Vector]:
    """Random directions that turn with the sign of the answer before."""
    directions = np.random.default_rng(seed).normal(size=(200, 2, size))
    return lambda k, answers: np.asarray(directions[k, int(bool(answers) and answers[-1] > 0)])


def innovations(state: ClampState, told: Vector) -> Vector:
    """(out - c)/sqrt(T2) for an owner whose table has this gamma: independent standard normals, if the claimed law is right."""
    known, found = told, []
    for step, answer in zip(state.steps, state.answers, strict=True):
        inside = step.shown(float(step.query @ known))
        found.append((answer - inside) / math.sqrt(step.spread))
        known = known + step.gain * (answer - inside)
    return np.array(found)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10**6))
def test_one_hundred_adaptive_queries_stay_within_the_bound(size: int, seed: int) -> None:
    """Along any path of answers, two values of gamma are at most mu_k apart at each step, whatever they are."""
    generator = np.random.default_rng(seed)
    mus = list(generator.uniform(0.01, 0.3, size=100))
    tables = [generator.normal(size=size) * 10.0 ** generator.uniform(-3, 6) for _ in range(2)]
    state = run(tables[0], covariance(size, seed), adaptive(seed, size), mus, 0.05, generator)
    assert state.distance == pytest.approx(math.sqrt(sum(mu**2 for mu in mus)), rel=1e-6)
    first, second = (innovations(state, told) for told in tables)
    assert np.sum((first - second) ** 2) <= state.spent
    assert (np.abs(first - second) <= np.array(mus) * (1 + 1e-9)).all()


@pytest.mark.parametrize(("far", "runs"), [(3.0, 600), pytest.param(1e4, 100_000, marks=pytest.mark.slow)])
def test_the_innovations_are_independent_standard_normals(far: float, runs: int) -> None:
    """5 adaptive queries a run; false alarms below 1e-6 in all."""
    size, start = 3, covariance(3, 7)
    generator = np.random.default_rng(11)
    told = np.full(size, far)
    tries = (run(told, start, adaptive(5, size), [0.2] * 5, 0.1, generator) for _ in range(runs))
    found = np.array([innovations(state, told) for state in tries])
    for k in range(5):
        assert kstest(found[:, k], "norm").pvalue > 1e-8
    products = [np.mean(found[:, a] * found[:, b]) * math.sqrt(len(found)) for a, b in itertools.combinations(range(5), 2)]
    assert np.abs(products).max() < 6


def test_a_clamp_on_one_side_only_is_not_within_the_bound() -> None:
    """The planted mutant: what is above the centre is shown in full."""

    def one_sided(step: ClampStep, expected: float) -> float:
        return max(expected, step.centre - step.reach)

    start, mus = covariance(3, 7), [0.2] * 5
    generator = np.random.default_rng(3)
    told = np.full(3, 1e3)
    state = run(told, start, adaptive(5, 3), mus, 0.1, generator, shown=one_sided)
    # Its answers are N(one-sided c, T2), which everybody who knows gamma can check: they are far from what was promised.
    assert np.sum(innovations(state, told) ** 2) > 1e6


def test_naive_addition_would_reveal_the_secret() -> None:
    """F1 = g + U, F2 = U, as averages: together they give g. The clamp answers the second as if nothing were known of g."""
    start = np.full((2, 2), 1e4)  # both are moved by the same U
    state = ClampState.start(start + 1e-4 * np.eye(2))
    generator = np.random.default_rng(0)
    for gamma in (0.0, 1e6):
        told = np.array([gamma, 0.0])
        found = run(told, start + 1e-4 * np.eye(2), lambda k, _: np.eye(2)[k], [0.1, 0.1], 0.01, generator)
        assert abs(found.answers[0] - found.answers[1]) < 20  # not gamma
    assert state.step([1.0, 0.0], 0.1, 0.01).charge == pytest.approx(0.1)


def test_what_the_class_leaves_open_propagates() -> None:
    """A slope that is off by r moves the first answer by r d, and every later one by what the first has not explained."""
    start, off = covariance(3, 2), np.array([0.02, -0.01, 0.03])
    generator, mus = np.random.default_rng(4), [0.1] * 4
    queries = [generator.normal(size=3) for _ in range(4)]
    state = ClampState.start(start, off[:, None])
    # The owner believes that gamma tells 0; really it tells `off`. Replay both worlds on the same noise.
    residual, noise = generator.multivariate_normal(np.zeros(3), start), generator.normal(size=4) * 0.1
    other = ClampState.start(start)
    for k, mu in enumerate(mus):
        step = state.step(queries[k], mu, 0.1)
        bias = abs(float(queries[k] @ state.carried @ off))
        assert step.charge == pytest.approx(mu + bias / math.sqrt(step.spread), rel=1e-6)
        out = moved(state, step, float(queries[k] @ residual), np.zeros(3)) + noise[k]
        plain = other.step(queries[k], mu, 0.1)
        shifted = moved(other, plain, float(queries[k] @ (residual + off)), np.zeros(3)) + noise[k]
        # Given the same past of its own, each world's next answer has the claimed law, around a mean that is off by the bias.
        state, other = state.after(step, out), other.after(plain, shifted)
    apart = np.array(other.answers) - np.array(state.answers)
    carried, lag = np.eye(3), []
    for step in state.steps:
        lag.append(float(step.query @ carried @ off))
        carried = (np.eye(3) - np.outer(step.gain, step.query)) @ carried
    # The world's own innovations are moved by exactly the propagated bias, as long as nothing is clipped.
    first, second = innovations(state, np.zeros(3)), innovations(other, np.zeros(3))
    widths = np.array([math.sqrt(step.spread) for step in state.steps])
    assert (second - first) * widths == pytest.approx(lag, abs=1e-9)
    assert apart.shape == (4,)


def test_a_query_in_the_span_is_a_combination_of_published_answers() -> None:
    start = covariance(3, 1)
    generator = np.random.default_rng(2)
    state = run(np.zeros(3), start, lambda k, _: np.eye(3)[k], [0.1, 0.1], 0.1, generator)
    weights = state.combination([2.0, -1.0, 0.0])
    assert weights is not None
    assert weights == pytest.approx([2.0, -1.0])
    assert state.combination([0.0, 0.0, 1.0]) is None
    assert ClampState.start(start).combination([1.0, 0.0, 0.0]) is None


@pytest.mark.parametrize(
    ("query", "mu", "noise", "says"),
    [
        ([0.0, 0.0], 0.1, 0.1, "query"),
        ([1.0], 0.1, 0.1, "query"),
        ([math.nan, 1.0], 0.1, 0.1, "query"),
        ([1.0, 0.0], math.nan, 0.1, "mu"),
        ([1.0, 0.0], 0.1, -1.0, "noise"),
    ],
)
def test_bad_steps(query: list[float], mu: float, noise: float, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        ClampState.start(np.eye(2)).step(query, mu, noise)


def test_what_is_determined_already_needs_noise_or_a_combination() -> None:
    state = ClampState.start(np.eye(2))
    step = state.step([1.0, 0.0], 0.1, 0.0)
    state = state.after(step, 0.3)
    with pytest.raises(RefusedError, match="earlier answers"):
        state.step([1.0, 0.0], 0.1, 0.0)
    with pytest.raises(UsageError, match="answer"):
        state.after(step, math.nan)


@pytest.mark.parametrize("matrix", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.2, 1.0]], [[math.nan]], [[1.0, 0.0]]])
def test_bad_covariances(matrix: list[list[float]]) -> None:
    with pytest.raises(UsageError, match="covariance"):
        ClampState.start(np.array(matrix))
