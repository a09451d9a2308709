"""Laws in whole numbers: what is refused, and the ends of linear forms over a box."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.stated import StatedLaws

HALF = ((0.5, 0.5), (0.5, 0.5))
BOX = ((0.2, 0.4), (0.6, 0.8))


@pytest.mark.parametrize(
    ("steps", "laws", "apart", "words"),
    [
        ((), (HALF, HALF), 1, "values"),
        ((1, 1), (HALF, HALF), 1, "increasing"),
        ((1, 0), (HALF, HALF), 1, "increasing"),
        ((0, 1), (HALF,), 1, "two or more"),
        ((0, 1), (HALF, HALF), 0, "two or more"),
        ((0, 1), (HALF, HALF), 2, "two or more"),
        ((0, 1), (HALF, HALF[:1]), 1, "one probability"),
        ((0, 1), (HALF, ((0.5, 0.5), (0.4, 0.4))), 1, "sum to 1"),
        ((0, 1), (HALF, ((0.1, 0.2), (0.1, 0.7))), 1, "sum to 1"),
        ((0, 1), (HALF, ((0.6, 0.7), (0.5, 0.7))), 1, "sum to 1"),
        ((0, 1), (HALF, ((0.6, 0.5), (0.5, 0.7))), 1, "between 0 and 1"),
        ((0, 1), (HALF, ((math.nan, 0.5), (0.5, 0.7))), 1, "between 0 and 1"),
        ((0, 1), (HALF, ((-0.1, 0.5), (0.5, 1.1))), 1, "between 0 and 1"),
    ],
)
def test_what_is_no_law_is_refused(steps: Any, laws: Any, apart: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        StatedLaws(steps, laws, apart)


def test_too_many_numbers_are_refused() -> None:
    with pytest.raises(UsageError, match="at most"):
        StatedLaws(tuple(range(100_001)), (HALF, HALF), 1)


def test_numbers_are_divided_by_their_sum_and_intervals_are_not() -> None:
    third = 0.333333333
    near = StatedLaws((0, 1, 2), (((third, third),) * 3, ((third, third),) * 3), 1)
    assert near.middle()[0] == (Fraction(1, 3),) * 3
    assert near.exact
    box = StatedLaws((0, 1), (BOX, HALF), 1)
    assert box.middle() == ((Fraction(3, 10), Fraction(7, 10)), (Fraction(1, 2), Fraction(1, 2)))
    assert not box.exact


def test_a_form_is_largest_and_least_where_its_coefficients_are_filled_up() -> None:
    whole = StatedLaws((0, 1), (BOX, HALF), 1).whole()
    assert [Fraction(end, whole[0].total) for end in (whole[0].most([7, 1]), whole[0].least([7, 1]))] == [
        Fraction(4, 10) * 7 + Fraction(6, 10),
        Fraction(2, 10) * 7 + Fraction(8, 10),
    ]
    assert whole[1].exact
    assert whole[1].most([7, 1]) == whole[1].least([7, 1]) == 4 * whole[1].total


def test_widened_laws_hold_the_old_ones_and_zeros_stay_zeros() -> None:
    wide = StatedLaws((0, 1, 2), (((0, 0), *HALF), (*HALF, (0, 0))), 1).widened(0.1)
    assert wide.laws[0] == ((0, 0), (Fraction(45, 100), Fraction(55, 100)), (Fraction(45, 100), Fraction(55, 100)))
