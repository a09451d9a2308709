"""The digits of a variance of whole numbers tell the mean, and the floor of the noise hides them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions import Gaussian
from attrpriv.framework import Problem, Secret
from attrpriv.mechanisms.refusal import Refusal
from attrpriv.mechanisms.sampled_digits import digits, lattice_of
from attrpriv.queries.sql import parse_queries

N, TABLES = 100, 4_000


def problem(text: str = "var_pop(x)", **changes: Any) -> Problem:
    theta = Gaussian(mean={"x": 0.0, "y": 0.0}, sd={"x": 3.0, "y": 5.0}, correlation={"x~y": 0.5}, tolerance=0)
    given: dict[str, Any] = {"queries": parse_queries(text), "secrets": (Secret("mean(x)", between=(-1, 1)),), "epsilon": 1.0}
    return Problem(**{**given, "delta": 1e-6, "n": N, "theta": (theta,), **changes})


def tables_with_sum(total: int, seed: int) -> np.ndarray:
    """Whole numbers with exactly this sum: rows are moved by one until it fits."""
    generator = np.random.default_rng(seed)
    rows = np.rint(3 * generator.standard_normal((TABLES, N))).astype(np.int64)
    for table in rows:
        off = total - int(table.sum())
        places = generator.permutation(N)[: abs(off) % N]
        table[places] += int(np.sign(off))
        table += int(np.sign(off)) * (abs(off) // N)
    assert (rows.sum(axis=1) == total).all()
    return rows


def offset(values: np.ndarray, step: float) -> np.ndarray:
    """Where a value lies between two points of the lattice, as a share of its spacing."""
    return np.asarray(np.mod(values / step, 1.0))


def test_digits_tell_the_sum_without_the_floor_and_not_with_it() -> None:
    step = lattice_of(parse_queries("var_pop(x)")[0], N, {"x": 1.0}, {"x": 3.0}, 0.0)
    assert step == 2 / N
    found = digits(problem(resolution={"x": 1.0}), parse_queries("var_pop(x)")[0], {"x": 3.0}, 0.0, 2 * 81 / N)
    assert found.floor >= step
    seen = {}
    for total in (0, 5, 10):
        rows = tables_with_sum(total, seed=total)
        exact = (rows**2).sum(axis=1) / N - (total / N) ** 2
        bare = offset(exact + 1e-9, step)
        assert np.ptp(bare) < 1e-6  # every table of this sum has the same digits
        seen[total] = float(bare[0])
        noisy = exact + found.floor * np.random.default_rng(total).standard_normal(TABLES)
        hidden = np.sort(offset(noisy, step))
        # uniform, as far as so many tables tell (false alarm 1e-7), and its charge says so
        limit = math.sqrt(math.log(2e7) / (2 * TABLES)) + 1 / TABLES
        assert np.abs(hidden - np.arange(1, TABLES + 1) / TABLES).max() < limit
    assert len({round(value, 3) for value in seen.values()}) == 3  # and other digits for another sum
    assert found.charge < 1e-7


def test_too_little_noise_would_show() -> None:
    """The test sees a tenth of the floor."""
    step = 2 / N
    exact = (tables_with_sum(5, 5) ** 2).sum(axis=1) / N - (5 / N) ** 2
    noisy = exact + 0.1 * step * np.random.default_rng(5).standard_normal(TABLES)
    hidden = np.sort(offset(noisy, step))
    assert np.abs(hidden - np.arange(1, TABLES + 1) / TABLES).max() > 0.1


SPACINGS = {
    "var_pop(x)": 2 / N,
    "covar_pop(y, x)": 2 * 0.5 / N,
    "regr_slope(y, x)": 4 * 0.5 / (N * 9),
    "regr_intercept(y, x)": 0.5 / N + 7 * 4 * 0.5 / (N * 9),
    "median(y)": 0.5,
}


@pytest.mark.parametrize("text", SPACINGS)
def test_the_spacing_of_each_statistic(text: str) -> None:
    (query,) = parse_queries(text)
    found = lattice_of(query, N, {"x": 1.0, "y": 0.5}, {"x": 3.0, "y": 5.0}, 7.0)
    assert found == pytest.approx(SPACINGS[text])


def test_an_unknown_spacing_is_covered_as_far_as_the_floor_goes() -> None:
    (query,) = parse_queries("var_pop(x)")
    found = digits(problem(), query, {"x": 3.0}, 0.0, 1.62)
    assert found.floor == math.sqrt(1.62) / 50
    assert lattice_of(query, N, found.spacing, {"x": 3.0}, 0.0) <= found.floor / 1.5
    typed = digits(problem(types={"x": "integer"}), query, {"x": 3.0}, 0.0, 1.62)
    assert typed.spacing == {"x": 1.0}
    assert typed.floor == 1.5 * 2 / N  # a column type is a lower bound: more noise than for a declared spacing


def test_what_cannot_be_masked_is_refused() -> None:
    (query,) = parse_queries("var_pop(x)")
    with pytest.raises(Refusal, match="twice the spacing"):
        digits(problem(resolution={"x": 2.0}), query, {"x": 3.0}, 0.0, 1.62)
    with pytest.raises(Refusal, match="its own spread"):
        digits(problem("median(x)", resolution={"x": 1.0}), parse_queries("median(x)")[0], {"x": 3.0}, 0.0, 0.1)
