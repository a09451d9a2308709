"""What holds if the stated probabilities are off: the real epsilon of a plan for counts.

Every probability may be larger or smaller by a share of itself, beyond its interval. Additive Laplace noise loses little then;
a mechanism that reads the secret rests on the stated law, and can lose far more than it promised.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from attrpriv.calibration.coupling import coupling_loss_upper
from attrpriv.errors import AttrprivError
from attrpriv.guarantee import CountLaplaceEvidence, CouplingEvidence
from attrpriv.laws.records import Interval01, RecordLaws
from attrpriv.mechanisms.accuracy import ModelError

_OFF_BY = (0.01, 0.02, 0.05, 0.1)


def count_model_error(evidence: object) -> tuple[ModelError, ...]:
    """The real epsilon at each error; nothing where it is not computed."""
    if isinstance(evidence, CountLaplaceEvidence):
        return tuple(ModelError(off_by=off, epsilon=_finite(_laplace(evidence, off))) for off in _OFF_BY)
    if isinstance(evidence, CouplingEvidence) and evidence.records.binary:
        return tuple(ModelError(off_by=off, epsilon=_finite(_coupling(evidence, off))) for off in _OFF_BY)
    return ()


def fragile(epsilon: float, rows: tuple[ModelError, ...]) -> tuple[str, ...]:
    """One line where an error of 1% more than doubles epsilon."""
    first = rows[0].epsilon if rows else 0.0
    if first is not None and first <= 2 * epsilon:
        return ()
    real = "no epsilon holds" if first is None else f"the real epsilon is {first:.3g}"
    return (f"fragile: where probabilities are off by {rows[0].off_by:.0%} more than stated, {real}. State intervals.",)


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None


def _laplace(evidence: CountLaplaceEvidence, off: float) -> float:
    wider = [check.model_copy(update={"records": _widened(check.records, off)}) for check in evidence.checks]
    return _attempt(evidence.model_copy(update={"checks": tuple(wider)}).loss)


def _coupling(evidence: CouplingEvidence, off: float) -> float:
    """The loss of the very slices that are drawn from, where the rows follow another law: the four corners of the error."""
    member, rest = evidence.records.member[1][0], evidence.records.rest[1][0]
    corners = [(member * (1 + a * off), rest * (1 + b * off)) for a in (-1, 1) for b in (-1, 1)]
    losses = []
    for p, q in corners:
        law = RecordLaws.event(min(1.0, p), min(1.0, q))
        losses.append(_attempt(partial(coupling_loss_upper, evidence.sources, evidence.targets, law, evidence.pairs)))
    return max(losses)


def _attempt(compute: Callable[[], float]) -> float:
    try:
        return compute()
    except AttrprivError:
        return math.inf


def _widened(records: RecordLaws, off: float) -> RecordLaws:
    """Every interval wider by a share of its ends."""

    def wide(law: tuple[Interval01, ...]) -> tuple[Interval01, ...]:
        return tuple((low * (1 - off), min(1.0, high * (1 + off))) for low, high in law)

    if records.binary:  # of an event, its probability is off; that of its complement follows
        (_, p), (_, q) = records.member, records.rest
        return RecordLaws.event(wide((p,))[0], wide((q,))[0])
    return RecordLaws(records.values, wide(records.member), wide(records.rest))
