"""What other libraries may still spend for one row: the share of what is left that was asked for, and never more than that."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.errors import AttrprivError
from attrpriv.methods.base.outside import RowCurve
from attrpriv.methods.choice.outside import largest_b
from tests.conformance.test_mechanisms import counts_problem


def line(used: float, slope: float) -> RowCurve:
    """What was released lost `used`, and b costs slope times as much."""
    nothing: Any = None
    return RowCurve(nothing, lambda b: used + slope * b, (), "whole rows")


@pytest.mark.parametrize(("spend", "used", "slope"), [(1.0, 0.0, 10.0), (0.5, 0.0, 10.0), (0.5, 0.2, 4.0), (0.25, 0.6, 0.5)])
def test_the_share_of_what_is_left_that_was_asked_for(spend: float, used: float, slope: float) -> None:
    asked = counts_problem(epsilon=0.8, spend=spend)
    found = largest_b(asked, line(used, slope))
    exact = spend * (0.8 - used) / slope
    assert exact * (1 - 1e-6) <= found <= exact


def test_single_persons_may_allow_less() -> None:
    asked = counts_problem(epsilon=0.8, individuals=0.01)
    assert largest_b(asked, line(0.0, 10.0)) == pytest.approx(0.01, rel=1e-6)
    assert largest_b(asked, line(0.0, 10.0)) <= 0.01


@pytest.mark.parametrize("used", [0.8, 0.9])
def test_nothing_is_left(used: float) -> None:
    with pytest.raises(AttrprivError, match="nothing is left"):
        largest_b(counts_problem(epsilon=0.8), line(used, 1.0))
