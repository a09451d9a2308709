"""What a fit costs: its risk is paid out of delta, or added to it where the owner accepts that."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.assumptions.gaussian import FittedRecord
from attrpriv.cases.budget import fit_charge, fit_refusal


class Member:
    """An assumption with this record, or without one."""

    normal_rows = True

    def __init__(self, confidence: float | None = None) -> None:
        self.confidence = confidence

    def fit_record(self) -> FittedRecord | None:
        return None if self.confidence is None else FittedRecord(rows=10, digest="a" * 64, confidence=self.confidence)


def theta(*confidences: float | None) -> Any:
    return tuple(map(Member, confidences))


def test_what_is_not_fitted_costs_nothing() -> None:
    for members in (theta(), theta(None, None)):
        found = fit_charge(members, 1e-3)
        assert (found.risk, found.calibration, found.promised, found.lines) == (0.0, 1e-3, 1e-3, ())
        assert fit_refusal(members, 1e-3) is None


@pytest.mark.parametrize("confidence", [1 - 2.0**-12, 1 - 2.0**-11, 1 - 2.0**-30])
def test_a_small_risk_is_paid_out_of_delta(confidence: float) -> None:
    """The rest and the risk are no more than what is promised, exactly, and no more is taken than one float."""
    delta = 2.0**-10
    found = fit_charge(theta(confidence), delta)
    risk = 1 - Fraction(confidence)
    assert (found.promised, Fraction(found.risk)) == (delta, risk)
    assert 0 <= Fraction(delta) - risk - Fraction(found.calibration) <= Fraction(math.ulp(delta))
    assert Fraction(found.calibration) < Fraction(delta) - risk
    assert fit_refusal(theta(confidence), delta) is None


def test_a_risk_above_half_of_delta_comes_on_top() -> None:
    delta, confidence = 2.0**-10, math.nextafter(1 - 2.0**-11, 0)
    assert fit_refusal(theta(confidence), delta) is not None
    found = fit_charge(theta(confidence), delta)
    assert found.calibration == delta
    assert Fraction(found.promised) > Fraction(delta) + 1 - Fraction(confidence)
    assert found.promised == pytest.approx(delta + 1 - confidence, rel=1e-12)


def test_the_member_with_the_largest_risk_counts() -> None:
    delta = 2.0**-10
    found = fit_charge(theta(1 - 2.0**-20, None, 1 - 2.0**-12), delta)
    assert found.risk == 2.0**-12
    assert fit_refusal(theta(1 - 2.0**-20, 0.9), delta) is not None
    assert fit_charge(theta(1 - 2.0**-20, 0.9), delta).risk == pytest.approx(0.1)
    assert repr(0.9) in fit_charge(theta(1 - 2.0**-20, 0.9), delta).lines[0]
