"""Regression in fractions, against numpy and against itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.exact_moments import covariance_of, regression


def test_agrees_with_floats() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(4, 6))
    v = root @ root.T
    slopes, left = regression([[Fraction(float(x)) for x in row] for row in v])
    assert [float(b) for b in slopes] == pytest.approx(np.linalg.solve(v[1:, 1:], v[1:, 0]))
    assert float(left) == pytest.approx(v[0, 0] - v[0, 1:] @ np.linalg.solve(v[1:, 1:], v[1:, 0]))


def test_solves_without_any_rounding() -> None:
    v = [[Fraction(x) for x in row] for row in ((3.1, 0.7, -0.2), (0.7, 2.3, 0.9), (-0.2, 0.9, 1.7))]
    slopes, left = regression(v)
    for i in (1, 2):
        assert sum(b * v[i][j + 1] for j, b in enumerate(slopes)) == v[i][0]
    assert left == v[0][0] - slopes[0] * v[0][1] - slopes[1] * v[0][2]


def test_combinations_of_columns() -> None:
    scales, matrix = [2.0, 3.0], [[1.0, 0.25], [0.25, 1.0]]
    found = covariance_of([{"a": 1.0}, {"a": 2.0, "b": -1.0}], ["a", "b"], scales, matrix)
    assert found == [[4, 8 - Fraction(3, 2)], [8 - Fraction(3, 2), 16 + 9 - 2 * 2 * Fraction(3, 2)]]


def test_singular_is_refused() -> None:
    with pytest.raises(UsageError):
        regression([[Fraction(1)] * 3] * 3)


def by_fractions(covariance: list[list[Fraction]]) -> tuple[tuple[Fraction, ...], Fraction]:
    """The slow twin: Gauss and Jordan, in fractions."""
    size = len(covariance) - 1
    rows = [[*covariance[i + 1][1:], covariance[i + 1][0]] for i in range(size)]
    for k in range(size):
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(size):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    slopes = tuple(row[size] for row in rows)
    return slopes, covariance[0][0] - sum((b * covariance[0][i + 1] for i, b in enumerate(slopes)), Fraction(0))


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_whole_numbers_give_the_same_fractions(size: int) -> None:
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size + 1, size + 3)) * 10.0 ** rng.integers(-6, 6, (size + 1, 1))
    v = [[Fraction(float(x)) for x in row] for row in root @ root.T]
    v = [[v[min(i, j)][max(i, j)] for j in range(size + 1)] for i in range(size + 1)]
    assert regression(v) == by_fractions(v)
    thirds = [[x / 3 for x in row] for row in v]
    assert regression(thirds) == by_fractions(thirds)


def test_a_matrix_that_is_not_positive_is_refused() -> None:
    with pytest.raises(UsageError, match="positive definite"):
        regression([[Fraction(x) for x in row] for row in ((1, 0, 0), (0, 1, 2), (0, 2, 1))])


@pytest.mark.parametrize(
    "rows", [((2, 1), (1, 1)), ((7, 1, 2), (1, 1, 1), (2, 1, 4)), ((9, 1, 2, 1), (1, 2, 1, 0), (2, 1, 3, 1), (1, 0, 1, 5))]
)
def test_small_whole_numbers_need_no_unit(rows: tuple[tuple[int, ...], ...]) -> None:
    """Pivots of 1, and minors that are odd: what is divided out too often would be cut off."""
    v = [[Fraction(x) for x in row] for row in rows]
    assert regression(v) == by_fractions(v)
