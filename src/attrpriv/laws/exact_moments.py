"""Regression in exact fractions: what some statistics tell of another one, without rounding.

For a covariance matrix of (y, g_1, ..., g_k): slopes b with E(y | g) = E y + b (g - E g), and the variance that is left.

Why exact: where a law must hold to the last digit for every value of g, however far out, a slope that is rounded in its
sixteenth digit is wrong by more than any bound, somewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from attrpriv.errors import UsageError

Rows = Sequence[Sequence[Fraction]]


def covariance_of(
    statistics: Sequence[Mapping[str, float]],
    columns: Sequence[str],
    scales: Sequence[float],
    matrix: Sequence[Sequence[float]],
) -> list[list[Fraction]]:
    """Of linear combinations of columns whose covariances are scale_i scale_j matrix_ij, every float the rational that it is.

    >>> covariance_of([{"a": 1.0}, {"a": 1.0, "b": -2.0}], ["a", "b"], [1.0, 2.0], [[1.0, 0.5], [0.5, 1.0]])[0][1]
    Fraction(-1, 1)
    """
    at = {column: k for k, column in enumerate(columns)}
    weights = [{at[c]: Fraction(w) * Fraction(scales[at[c]]) for c, w in one.items()} for one in statistics]

    def product(a: Mapping[int, Fraction], b: Mapping[int, Fraction]) -> Fraction:
        return sum((x * y * Fraction(matrix[i][j]) for i, x in a.items() for j, y in b.items()), Fraction(0))

    return [[product(a, b) for b in weights] for a in weights]


def regression(covariance: Rows) -> tuple[tuple[Fraction, ...], Fraction]:
    """The slopes of the first variable on the others, and its variance given them.

    >>> slopes, left = regression([[Fraction(4), Fraction(2)], [Fraction(2), Fraction(2)]])
    >>> slopes, left
    ((Fraction(1, 1),), Fraction(2, 1))
    """
    size = len(covariance) - 1
    rows = [[*covariance[i + 1][1:], covariance[i + 1][0]] for i in range(size)]
    for k in range(size):
        # Without pivoting: the leading blocks of a positive definite matrix have positive pivots.
        if not rows[k][k] > 0:
            raise UsageError("moments: the covariance of the statistics must be positive definite.")
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(size):
            if i != k and rows[i][k]:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    slopes = tuple(row[size] for row in rows)
    left = covariance[0][0] - sum((b * covariance[0][i + 1] for i, b in enumerate(slopes)), Fraction(0))
    return slopes, left
