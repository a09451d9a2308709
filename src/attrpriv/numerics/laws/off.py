"""Laws of rows whose probabilities are off by a share of themselves, beyond their intervals.

*A mass that moves by a share x.* If P' <= (1 + x) P and Q' >= (1 - x) Q at every output, then with s = log (1 + x)/(1 - x)

    P'(T) - e^(eps + s) Q'(T)  <=  (1 + x) (P(T) - e^eps Q(T)),      so H_(eps + s)(P' || Q') <= (1 + x) H_eps(P || Q).

The same with n rows of which each moves by a share bounds every kernel, whatever it reads (`moved`). What must never change:
what is impossible stays so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrpriv.numerics.laws.records import CountPairs, Interval01, Number, RecordLaws
from attrpriv.numerics.rounding import COMPUTED_UP, SOLVED_UP


def widened(records: RecordLaws, off: float) -> RecordLaws:
    """Every interval wider by a share of its ends; a probability of 0 stays 0."""

    def wide(law: Sequence[Interval01]) -> tuple[Interval01, ...]:
        return tuple((float(low) * (1 - off), min(1.0, float(high) * (1 + off))) for low, high in law)

    if not off:
        return records
    if records.binary:  # of an event, its probability is off; that of its complement follows
        (_, p), (_, q) = records.member, records.rest
        return RecordLaws.event(wide((p,))[0], wide((q,))[0])
    return RecordLaws(records.values, wide(records.member), wide(records.rest))


def moved(records: RecordLaws, pairs: CountPairs, off: float) -> float:
    """Twice the largest change of log P(F = f | a) where each probability of an exact law is off by a share of itself."""
    steps = []
    wider = widened(records, off)
    for stated, wide in ((records.member, wider.member), (records.rest, wider.rest)):
        steps.append(max(_log_change(p, low, high) for (p, _), (low, high) in zip(stated, wide, strict=True)))
    ends = (pairs.low, pairs.high)
    return 2 * max(a * steps[0] + (pairs.n - a) * steps[1] for a in ends) * SOLVED_UP


def _log_change(p: Number, low: Number, high: Number) -> float:
    """An impossible value stays impossible."""
    if p == 0:
        return 0.0 if high == 0 else math.inf
    return math.inf if low <= 0 else max(math.log(high / p), math.log(p / low)) * COMPUTED_UP


def log_change(off: float) -> float:
    """log (1 + x)/(1 - x) for a share x, from above."""
    return (math.log1p(off) - math.log1p(-off)) * COMPUTED_UP
