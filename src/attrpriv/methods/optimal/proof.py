"""The evidence of the `optimal` mechanism: whole-number weights, and the law of a row that they were made for.

| evidence | what is drawn |
|---|---|
| `KernelEvidence` | o with weights[f][o], f the count: sees the statistic alone |
| `CouplingEvidence` | the monotone coupling of sources[a] and targets[a] at f: reads the table's count a too |

What must never change: the loss is recomputed from these weights, in whole numbers, and these weights are what is drawn from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from attrpriv.errors import DataError
from attrpriv.methods.base.accuracy import PURE, ModelError, Profile, off_by
from attrpriv.methods.base.evidence import Counted, CountEvidence
from attrpriv.methods.base.tally import OUTSIDE
from attrpriv.methods.optimal.population_coupling import population_loss_upper
from attrpriv.noise import coupled_draw, coupled_weights, draw
from attrpriv.numerics.calibration.box_loss import box_loss
from attrpriv.numerics.calibration.coupling import coupling_loss_upper
from attrpriv.numerics.calibration.kernel import kernel_loss_upper
from attrpriv.numerics.laws.records import CountPairs, RecordLaws, moved, widened
from attrpriv.numerics.search import or_infinite

Rows = tuple[tuple[int, ...], ...]


def _least(records: RecordLaws, pairs: CountPairs) -> int:
    """The value of F that the first of the weights is for; from another one on they would be drawn for other values."""
    return pairs.n * records.values[0]


def _covers(records: RecordLaws, pairs: CountPairs, told: Counted) -> bool:
    return told.noise == "kernel" and not told.histogram and (records.values, pairs.n) == (told.steps, told.n)


class KernelEvidence(CountEvidence):
    """A kernel that sees F alone; `corner` covers every law of the rows within the intervals."""

    words: ClassVar[str] = "a count by the optimal mechanism"
    found_by_program: ClassVar[frozenset[str]] = frozenset({"weights"})
    told_by: ClassVar[Profile] = PURE
    kind: Literal["kernel"] = "kernel"
    secret: str
    records: RecordLaws
    pairs: CountPairs
    family: Literal["counts", "corner"]
    start: int
    weights: Rows = Field(min_length=1)

    def delta(self, epsilon: float) -> float:
        """The weights are compared with the laws at every output, so that pure epsilon is all or nothing."""
        if (self.family == "counts" and not self.records.exact) or self.start != _least(self.records, self.pairs):
            return 1.0
        return 0.0 if kernel_loss_upper(self.weights, self.records, self.pairs, self.family) <= epsilon else 1.0

    def kernel_draw(self, total: int, members: int, scale: float) -> int:
        return self.start + draw(self.weights[total - self.start])

    def kernel_law(self, total: int, members: int) -> tuple[int, Sequence[int]]:
        return self.start, self.weights[total - self.start]

    def covers_tally(self, told: Counted) -> bool:
        return _covers(self.records, self.pairs, told)

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        """The loss at the corner of the wider box, or what it is and how far a mass can move."""
        return off_by(self._real)

    def _real(self, off: float) -> float:
        corner = math.inf
        if self.records.binary:
            wider = widened(self.records, off)
            corner = or_infinite(lambda: kernel_loss_upper(self.weights, wider, self.pairs, "corner"))
        if not self.records.exact:
            return corner
        loss = or_infinite(lambda: kernel_loss_upper(self.weights, self.records, self.pairs, self.family))
        return min(corner, loss + moved(self.records, self.pairs, off))


class CouplingEvidence(CountEvidence):
    """A mechanism that reads the table's count, for one law of the rows.

    It hides that count; or with `shares`, and then for all counts of 0..n, the population's share within that range.
    """

    words: ClassVar[str] = "a count by the optimal mechanism"
    found_by_program: ClassVar[frozenset[str]] = frozenset({"sources", "targets"})
    told_by: ClassVar[Profile] = PURE
    kind: Literal["coupling"] = "coupling"
    secret: str
    records: RecordLaws
    pairs: CountPairs
    start: int
    sources: Rows = Field(min_length=1)
    targets: Rows = Field(min_length=1)
    shares: tuple[float, float] | None = None

    def delta(self, epsilon: float) -> float:
        return 0.0 if self.loss() <= epsilon else 1.0

    def kernel_draw(self, total: int, members: int, scale: float) -> int:
        row = members - self.pairs.low
        if not 0 <= row < len(self.targets):
            raise DataError(OUTSIDE)
        return self.start + coupled_draw(self.sources[row], self.targets[row], total - self.start)

    def kernel_law(self, total: int, members: int) -> tuple[int, Sequence[int]]:
        row = members - self.pairs.low
        if not 0 <= row < len(self.targets):
            raise DataError(OUTSIDE)
        return self.start, coupled_weights(self.sources[row], self.targets[row], total - self.start)

    def covers_tally(self, told: Counted) -> bool:
        return _covers(self.records, self.pairs, told)

    def loss(self) -> float:
        """From above, over every pair; infinite for a population of which only some counts were looked at."""
        if self.start != _least(self.records, self.pairs):
            return math.inf
        if self.shares is None:
            return coupling_loss_upper(self.sources, self.targets, self.records, self.pairs)
        if self.pairs != CountPairs.all_of(self.pairs.n):
            return math.inf
        return population_loss_upper(self.sources, self.targets, self.records, self.pairs.n, self.shares)

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        """Of the very slices that are drawn from, where the rows follow another law."""
        return off_by(self._real)

    def _real(self, off: float) -> float:
        loss = or_infinite(self.loss) + moved(self.records, self.pairs, off)
        if not self.records.binary or self.shares is not None:
            return loss
        wider = widened(self.records, off)
        return min(loss, or_infinite(lambda: box_loss(self.sources, self.targets, wider, self.pairs)))
