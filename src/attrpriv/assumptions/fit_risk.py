"""What a fitted assumption costs: the part of delta that is kept for the fit having missed the truth.

Independent public records whose box contains the truth with probability 1 - beta give (epsilon, delta + beta): average over
the public records, and count every record set whose box misses as a failure. So beta is paid out of delta, and the calibration
gets the rest. The miss is one event for all releases that use the assumption: it is charged once, not once a release.

What must never change: a risk above delta/2 is refused unless the owner accepts it, and then it is added to the promise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from attrpriv.assumptions.gaussian import FittedRecord
from attrpriv.problem.assumption import Assumption


@dataclass(frozen=True)
class FitCharge:
    """What fitted assumptions cost: `risk` of missing the truth, delta left to calibrate with, delta promised in the end."""

    risk: float
    calibration: float
    promised: float
    lines: tuple[str, ...]


def fit_refusal(theta: Sequence[Assumption], delta: float) -> str | None:
    """Why these assumptions need `accept_fit_risk`; None where they do not: the risk is at most half of delta."""
    for record in _records(theta):
        if not record.confidence >= 1 - delta / 2:
            return (
                f"assume: a fitted assumption needs a confidence of at least 1 - delta/2 = {1 - delta / 2!r}. Got "
                f"{record.confidence!r}. Fit again with that confidence, or set accept_fit_risk: true to promise "
                f"delta + {record.risk:.4g} instead of delta."
            )
    return None


def fit_charge(theta: Sequence[Assumption], delta: float) -> FitCharge:
    """Split delta between the fit and the calibration.

    If the truth is one of several assumptions, the one that applies misses it with at most the largest risk. A risk of at most
    delta/2 is paid out of delta; a larger one, which the owner must have accepted, comes on top of it.
    """
    records = _records(theta)
    if not records:
        return FitCharge(0.0, delta, delta, ())
    risk = max(record.risk for record in records)
    inside = fit_refusal(theta, delta) is None
    where = f"{risk:.4g} of delta {delta:g} is kept for a miss" if inside else f"a miss adds {risk:.4g} to delta {delta:g}"
    lines = (
        f"the fitted box contains the truth with probability {min(record.confidence for record in records)!r}; {where}",
        _rests_on(theta, records),
    )
    if inside:
        return FitCharge(risk, max(0.0, math.nextafter(delta - risk, 0.0)), delta, lines)
    return FitCharge(risk, delta, math.nextafter(delta + risk, math.inf), lines)


def _rests_on(theta: Sequence[Assumption], records: Sequence[FittedRecord]) -> str:
    """Intervals are as for normal rows where nobody looked at their shape, and else widened by what they show."""
    if any(member.normal_rows for member in theta) and any(record.shape is None for record in records):
        normal = "and exactly Gaussian (with groups: within each category)"
        return f"the public rows are independent of this table, of its population, {normal}: assumed, not tested"
    return "the public rows are independent of each other and of this table, and of its population: assumed, not tested"


def _records(theta: Sequence[Assumption]) -> list[FittedRecord]:
    return [record for member in theta if (record := member.fit_record()) is not None]
