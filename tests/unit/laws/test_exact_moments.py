"""Regression in fractions, against numpy and against itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.laws.exact_moments import covariance_of, regression


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
