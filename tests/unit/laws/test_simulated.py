"""Simulated statistics of normal rows against the rows themselves, drawn one by one, and against exact laws.

Two-sample tests (Kolmogorov and Smirnov, by the bound of Dvoretzky, Kiefer and Wolfowitz for each sample) have a false-alarm
rate below 1e-7 each; planted errors show that they see.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.laws.simulated import GroupRows, NormalRows, ShiftedQuantile

RUNS = 8_000
# sqrt(log(2/x)/2R) for each of two samples, x = 0.5e-7
SAME = 2 * math.sqrt(math.log(4e7) / (2 * RUNS))

# weight, height and income: a row's covariance
NAMES = ("weight", "height", "income")
MEANS = np.array([150.0, 3.0, 60.0])
SDS = np.array([25.0, 4.0, 30.0])
RHO = np.array([[1.0, 0.5, 0.3], [0.5, 1.0, -0.4], [0.3, -0.4, 1.0]])
V = RHO * np.outer(SDS, SDS)


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest distance of two empirical distribution functions."""
    grid = np.sort(np.concatenate([one, other]))
    below = [np.searchsorted(np.sort(x), grid, side="right") / x.size for x in (one, other)]
    return float(np.abs(below[0] - below[1]).max())


def rows_given(n: int, secret: int, value: float, seed: int) -> np.ndarray:
    """Tables of n rows given the average of one column: all rows shifted along the regression on it."""
    rows = MEANS + np.random.default_rng(seed).standard_normal((RUNS, n, 3)) @ np.linalg.cholesky(V).T
    off = value - rows[:, :, secret].mean(axis=1)
    return np.asarray(rows + off[:, None, None] * (V[:, secret] / V[secret, secret]))


def statistic(kind: str, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Of each table, as SQL has it: of y on x."""
    spread = (y - y.mean(axis=1, keepdims=True)) * (x - x.mean(axis=1, keepdims=True))
    if kind in ("var_pop", "covar_pop"):
        return np.asarray(spread.mean(axis=1))
    slope = spread.sum(axis=1) / ((x - x.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return np.asarray(slope if kind == "regr_slope" else y.mean(axis=1) - slope * x.mean(axis=1))


def law(kind: str, n: int, secret: int) -> NormalRows:
    columns = [0] if kind == "var_pop" else [0, 1]
    return NormalRows(
        n,
        kind,  # type: ignore[arg-type]
        tuple(MEANS[columns]),
        tuple(tuple(map(float, V[j, columns])) for j in columns),
        tuple(map(float, V[columns, secret])),
        float(MEANS[secret]),
        float(V[secret, secret]),
    )


@pytest.mark.parametrize("kind", ["var_pop", "covar_pop", "regr_slope", "regr_intercept"])
@pytest.mark.parametrize("secret", [0, 1, 2])
def test_a_statistic_given_an_average_has_the_law_of_its_rows(kind: str, secret: int) -> None:
    n, value = 7, float(MEANS[secret] + 1.5 * SDS[secret])
    rows = rows_given(n, secret, value, seed=secret)
    seen = statistic(kind, rows[:, :, 0], rows[:, :, 0 if kind == "var_pop" else 1])
    assert apart(seen, law(kind, n, secret).draws((value,), RUNS, 7)[0]) < SAME


def test_the_test_sees_a_law_that_is_not_conditional() -> None:
    n, value = 7, float(MEANS[0] + 1.5 * SDS[0])
    rows = rows_given(n, 0, value, seed=0)
    seen = statistic("regr_intercept", rows[:, :, 0], rows[:, :, 1])
    free = replace(law("regr_intercept", n, 0), with_secret=(0.0, 0.0))
    assert apart(seen, free.draws((value,), RUNS, 7)[0]) > SAME
    more = replace(law("var_pop", n, 0), n=2 * n)
    assert apart(statistic("var_pop", rows[:, :, 0], rows[:, :, 0]), more.draws((value,), RUNS, 7)[0]) > SAME


def test_a_variance_is_a_scaled_chi_square() -> None:
    from scipy.special import gammainc

    n = 9
    drawn = np.sort(law("var_pop", n, 2).draws((0.0,), RUNS, 3)[0]) * n / float(V[0, 0])
    steps = np.arange(1, RUNS + 1) / RUNS
    limit = math.sqrt(math.log(2e7) / (2 * RUNS)) + 1 / RUNS
    assert np.abs(gammainc((n - 1) / 2, drawn / 2) - steps).max() < limit  # false alarm below 1e-7
    assert np.abs(gammainc(n / 2, drawn / 2) - steps).max() > limit  # a degree of freedom too many is seen


def test_an_intercept_has_its_exact_moments() -> None:
    """E[F | a] is affine with slope g_y - b g_x; Var[F | a] = (s^2 - d^2 Vgg)/n + s^2/((n - 3) Vxx) (E[x]^2 + Var x)."""
    n, runs, one = 400, 200_000, law("regr_intercept", 400, 2)
    values = (40.0, 60.0, 90.0)
    drawn = one.draws(values, runs, 11)
    b = V[0, 1] / V[1, 1]
    moved = V[:2, 2] / V[2, 2]
    d, left = moved[0] - b * moved[1], V[0, 0] - b * V[0, 1]
    for k, value in enumerate(values):
        average = MEANS[1] + moved[1] * (value - 60.0)
        mean = MEANS[0] + moved[0] * (value - 60.0) - b * average
        around = left / ((n - 3) * V[1, 1]) * (average**2 + (V[1, 1] - moved[1] ** 2 * V[2, 2]) / n)
        variance = (left - d**2 * V[2, 2]) / n + around
        # six standard errors: false alarms of 1e-8
        assert abs(drawn[k].mean() - mean) < 6 * math.sqrt(variance / runs)
        assert abs(drawn[k].var() / variance - 1) < 6 * math.sqrt(2.2 / runs)
    # squares and errors of averages are shared, so differences are better known than each mean
    assert (drawn[2] - drawn[0]).std() < 0.6 * drawn[0].std()


@pytest.mark.parametrize("kind", ["var_pop", "covar_pop", "regr_slope", "regr_intercept", "quantile"])
@pytest.mark.parametrize("count", [0, 1, 5, 12])
def test_groups_have_the_law_of_their_rows(kind: str, count: int) -> None:
    n, level = 12, 0.3
    first, second = ((36.0, 18.0), 1.0), ((42.0, 25.0), 1.6)
    shape = np.array([[121.0, 60.0], [60.0, 60.0]])
    generator = np.random.default_rng(count)
    parts = [
        np.array(mean) + factor * generator.standard_normal((RUNS, size, 2)) @ np.linalg.cholesky(shape).T
        for (mean, factor), size in ((first, count), (second, n - count))
    ]
    rows = np.concatenate(parts, axis=1)
    y, x = rows[:, :, 0], rows[:, :, 0 if kind == "var_pop" else 1]
    seen = np.sort(y, axis=1)[:, math.ceil(level * n) - 1] if kind == "quantile" else statistic(kind, y, x)
    size = 1 if kind in ("var_pop", "quantile") else 2
    laws = [
        (mean[:size], tuple(tuple(float(factor**2 * x) for x in row[:size]) for row in shape[:size]))
        for mean, factor in (first, second)
    ]
    rows_law = GroupRows(n, kind, laws[0], laws[1], level if kind == "quantile" else None)  # type: ignore[arg-type]
    assert apart(seen, rows_law.draws((float(count),), RUNS, 5)[0]) < SAME
    other = rows_law.draws((float((count + 6) % 12),), RUNS, 5)[0]
    assert kind != "quantile" or apart(seen, other) > SAME  # the count is seen


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_a_quantile_given_an_average_has_the_law_of_its_rows(level: float) -> None:
    n, value = 11, 100.0
    rows = rows_given(n, 2, value, seed=4)[:, :, 0]
    seen = np.sort(rows, axis=1)[:, math.ceil(level * n) - 1]
    slope = float(V[0, 2] / V[2, 2])
    rows_law = ShiftedQuantile(n, level, 25.0, slope, float(V[0, 0] - slope * V[0, 2]))
    drawn = rows_law.draws((value, value + 30.0), RUNS, 6)
    shift = MEANS[0] - slope * MEANS[2]  # the stated means only move the answer
    assert apart(seen, drawn[0] + shift) < SAME
    assert apart(seen, drawn[1] + shift) > SAME
    assert np.allclose(drawn[1] - drawn[0], 30.0 * slope)


def test_a_quantile_is_the_lower_one() -> None:
    """Place ceil(p n) from below: of 2 rows the median is the smaller one."""
    drawn = GroupRows(2, "quantile", ((0.0,), ((1.0,),)), ((1e6,), ((1.0,),)), 0.5).draws((1.0,), 100, 1)[0]
    assert abs(drawn).max() < 10


def test_draws_are_those_of_the_seed() -> None:
    one = law("regr_intercept", 50, 0)
    assert np.array_equal(one.draws((1.0, 2.0), 100, 3), one.draws((1.0, 2.0), 100, 3))
    assert not np.array_equal(one.draws((1.0,), 100, 3), one.draws((1.0,), 100, 4))


def test_a_count_beyond_the_rows_is_refused() -> None:
    rows = GroupRows(5, "var_pop", ((0.0,), ((1.0,),)), ((1.0,), ((1.0,),)))
    with pytest.raises(UsageError, match=r"count: must be from 0 to 5\. Got 6\."):
        rows.draws((6.0,), 10, 1)
