"""Small systems in fractions: the solution, whatever the units, and no solution where there is none."""

from __future__ import annotations

from fractions import Fraction

import pytest

from attrpriv.methods.transport.sequence_case import _solved
from attrpriv.problem.refusal import Cause, Refusal

UNITS = (Fraction(1, 10**9), Fraction(1), Fraction(10**9))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_definite_system_is_solved_exactly(size: int, unit: Fraction) -> None:
    matrix = [[Fraction(1, 1 + j + k) * unit for k in range(size)] for j in range(size)]
    right = [Fraction(1 + j) for j in range(size)]
    found = _solved(matrix, right)
    assert [sum(a * x for a, x in zip(row, found, strict=True)) for row in matrix] == right


@pytest.mark.parametrize("unit", UNITS)
def test_columns_that_determine_one_another_are_refused(unit: Fraction) -> None:
    for rows in ([[0]], [[1, 1], [1, 1]], [[1, 2], [2, 1]], [[-1]]):
        with pytest.raises(Refusal) as refusal:
            _solved([[x * unit for x in row] for row in rows], [unit] * len(rows))
        assert refusal.value.cause is Cause.SECRET
