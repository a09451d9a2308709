"""The evidence of a transported count: the public bounds that every target law obeys, and what they were made for.

| evidence | what is drawn | proved by |
|---|---|---|
| `CountTransportEvidence` | the coupling of mu_a and R_a, made when a is known | low <= R_a <= high for every a |
| `CountHybridEvidence` | the same at the middle of a box, with Laplace noise | all vertex laws of the box, on both sides |

No row of laws is stored: the bounds are public and are recomputed, as is the one row that is drawn from, by the same functions.
What must never change: nothing here depends on the realised count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from attrpriv.errors import RefusedError
from attrpriv.frozen import NonNegative
from attrpriv.methods.base.accuracy import PURE, PURE_ANYWHERE, ModelError, Profile, off_by
from attrpriv.methods.base.evidence import Counted, CountEvidence
from attrpriv.methods.count_transport.hybrid import hybrid_loss, transport_box_loss
from attrpriv.methods.count_transport.target import CountTransport, transport_bounds, transport_holds, transport_row
from attrpriv.noise import coupled_draw, coupled_weights, whole_laplace
from attrpriv.numerics.laws.records import CountPairs, RecordLaws, moved, widened
from attrpriv.numerics.search import or_infinite


class CountTransportEvidence(CountEvidence):
    """For one law of the rows. Every two counts of 0..n are hidden, those of `pairs` among them."""

    told_by: ClassVar[Profile] = PURE_ANYWHERE
    kind: Literal["count_transport"] = "count_transport"
    secret: str
    pairs: CountPairs
    transport: CountTransport

    def delta(self, epsilon: float) -> float:
        try:
            if self.pairs.n != self.transport.n or not transport_holds(self.transport, epsilon):
                return 1.0
            return transport_bounds(self.transport).delta
        except RefusedError:
            return 1.0

    def kernel_draw(self, total: int, members: int, scale: float) -> int:
        return _drawn(self.transport, total, members, scale)

    def kernel_law(self, total: int, members: int) -> tuple[int, Sequence[int]]:
        return _law(self.transport, total, members)

    def covers_tally(self, told: Counted) -> bool:
        return _covers(self.transport, 0.0, told)

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        """Of what is drawn, where the rows follow another law: cell by cell for few rows, else by how far a mass can move."""
        return off_by(self._real)

    def _real(self, off: float) -> float:
        transport, pairs = self.transport, self.pairs
        loss = or_infinite(lambda: transport_bounds(transport).loss) + moved(transport.records, pairs, off)
        if not transport.records.binary:
            return loss
        return min(loss, or_infinite(lambda: transport_box_loss(transport, widened(transport.records, off), pairs)))


class CountHybridEvidence(CountEvidence):
    """For every law of an event within intervals: `transport` is made for the middle, the noise has this scale."""

    told_by: ClassVar[Profile] = PURE
    kind: Literal["count_hybrid"] = "count_hybrid"
    secret: str
    records: RecordLaws
    pairs: CountPairs
    transport: CountTransport
    scale: NonNegative

    def delta(self, epsilon: float) -> float:
        try:
            if self.pairs.n != self.transport.n:
                return 1.0
            return 0.0 if hybrid_loss(self.transport, self.records, self.pairs, self.scale) <= epsilon else 1.0
        except RefusedError:
            return 1.0

    def kernel_draw(self, total: int, members: int, scale: float) -> int:
        return _drawn(self.transport, total, members, scale)

    def kernel_law(self, total: int, members: int) -> tuple[int, Sequence[int]]:
        return _law(self.transport, total, members)

    def covers_tally(self, told: Counted) -> bool:
        return _covers(self.transport, self.scale, told)

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        """By all vertices of the wider box."""
        return off_by(self._real)

    def _real(self, off: float) -> float:
        wider = widened(self.records, off)
        return or_infinite(lambda: hybrid_loss(self.transport, wider, self.pairs, self.scale))


def _drawn(transport: CountTransport, total: int, members: int, scale: float) -> int:
    """The count, moved for a table with so many members, and noise of this scale where there is any."""
    moved = transport_row(transport, members)
    noise = whole_laplace(scale) if scale else 0
    return moved.start + coupled_draw(moved.sources, moved.targets, moved.cell(total)) + noise


def _law(transport: CountTransport, total: int, members: int) -> tuple[int, Sequence[int]]:
    """What is drawn, before the noise."""
    moved = transport_row(transport, members)
    return moved.start, coupled_weights(moved.sources, moved.targets, moved.cell(total))


def _covers(transport: CountTransport, scale: float, told: Counted) -> bool:
    same = (transport.records.values, transport.n) == (told.steps, told.n)
    return same and not told.histogram and (told.noise, told.scale) == ("kernel", scale)
