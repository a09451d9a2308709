"""Regression in exact fractions: what some statistics tell of another one, without rounding.

For a covariance matrix of (y, g_1, ..., g_k): slopes b with E(y | g) = E y + b (g - E g), and the variance that is left.

Why exact: where a law must hold to the last digit for every value of g, however far out, a slope that is rounded in its
sixteenth digit is wrong by more than any bound, somewhere.
"""

from __future__ import annotations

import math
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

    half = [[product(a, b) for b in weights[: k + 1]] for k, a in enumerate(weights)]
    return [[half[max(i, j)][min(i, j)] for j in range(len(weights))] for i in range(len(weights))]


def regression(covariance: Rows) -> tuple[tuple[Fraction, ...], Fraction]:
    """The slopes of the first variable on the others, and its variance given them.

    >>> slopes, left = regression([[Fraction(4), Fraction(2)], [Fraction(2), Fraction(2)]])
    >>> slopes, left
    ((Fraction(1, 1),), Fraction(2, 1))
    """
    # Whole multiples of one unit, because fractions would be brought to lowest terms at each step.
    unit = math.lcm(*(entry.denominator for row in covariance for entry in row))
    whole = [[entry.numerator * (unit // entry.denominator) for entry in row] for row in covariance]
    solved, determinant = _solved([[*row[1:], row[0]] for row in whole[1:]])
    told = sum(part * entry for part, entry in zip(solved, whole[0][1:], strict=True))
    left = Fraction(whole[0][0] * determinant - told, unit * determinant)
    return tuple(Fraction(part, determinant) for part in solved), left


def _solved(rows: list[list[int]]) -> tuple[list[int], int]:
    """The solution of equations in whole numbers, times their determinant, and that: Bareiss' elimination, no fraction left.

    Without pivoting: the leading blocks of a positive definite matrix have positive determinants, which are the pivots.
    """
    size, before = len(rows), 1
    for k, top in enumerate(rows):
        if not top[k] > 0:
            raise UsageError("moments: the covariance of the statistics must be positive definite.")
        for row in rows[k + 1 :]:
            first = row[k]
            for j in range(k + 1, size + 1):
                row[j] = (row[j] * top[k] - first * top[j]) // before
        before = top[k]
    found = [0] * size
    for i in reversed(range(size)):
        known = sum(rows[i][j] * found[j] for j in range(i + 1, size))
        found[i] = (rows[i][size] * before - known) // rows[i][i]
    return found, before
