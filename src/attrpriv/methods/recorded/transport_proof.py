"""The evidence of transport over rows like recorded ones: noise, and then a kernel that the table's own secret chooses.

    J the bin of F + N(0, scale^2), as for noise alone;   released: O, the bin to which the kernel of the secret moves J

| stored | what for |
|---|---|
| all of `RecordedSum` | one secret; the first law of the list makes the kernels |
| `hidden` | the column or the condition that the secret is of; its spacing and the value for missing entries |

What must never change: the kernels follow from the stored laws, and what is drawn uses those by which delta was computed; a
table whose secret is outside of the promised range is not answered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from attrpriv.errors import CertificateError, DataError
from attrpriv.frozen import Finite
from attrpriv.methods.base.clamp import Read
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Told
from attrpriv.methods.base.mixed_spread import MixedSpread
from attrpriv.methods.base.tally import OUTSIDE
from attrpriv.methods.recorded.proof import RecordedSum, rounded_draw, shift_of
from attrpriv.noise import coupled_draw
from attrpriv.numerics.calibration.recorded_kernel import RecordedKernel, recorded_kernel, transport_delta

# How finely errors are told: parts of the chance, and secrets.
_LEVELS = 200
_SECRETS = 41


class _RecordedTransport(RecordedSum):
    words: ClassVar[str] = "a transported release for recorded laws"
    noise_last: ClassVar[bool] = False
    errs_along: ClassVar[bool] = True
    hidden: str
    hidden_unit: Annotated[str, Field(pattern=r"^[0-9]+(/[0-9]+)?$")]
    hidden_fill: Finite | None = None

    def gridless_delta(self, inner: float) -> float:
        if len(self.checks) != 1:
            return 1.0
        (check,) = self.checks
        return transport_delta(check.laws, self.n, check.secrets, self.scale, shift_of(self.scale), inner)

    def describe(self) -> tuple[str, ...]:
        return (*super().describe(), "what the secret tells is taken back by a kernel made for the first law")

    @property
    def kernel(self) -> RecordedKernel:
        """How bins are moved, for each value of the secret."""
        (check,) = self.checks
        return recorded_kernel(check.laws[0], self.n, check.secrets, self.scale, shift_of(self.scale))

    # What is read and drawn

    @property
    def by_count(self) -> bool:
        """Whether the secret is how many rows satisfy a condition."""
        return self.checks[0].secrets.kind == "share"

    def statistics_read(self) -> tuple[Read, ...]:
        if self.by_count:
            return ()
        fill = {} if self.hidden_fill is None else {self.hidden: self.hidden_fill}
        return (Read(coefficients={self.hidden: 1.0}, centre=0.0, fill=fill),)

    def spacing_of(self, column: str) -> float | None:
        hidden = column == self.hidden and not self.by_count
        return float(Fraction(self.hidden_unit)) if hidden else super().spacing_of(column)

    def answer(self, total: int, told: Told) -> Fraction:
        if self.by_count:
            return self.moved_to(total, sum(told.inside))
        if self.hidden not in told.read:
            raise CertificateError("plan: must read what its certificate takes back. Nothing was released.")
        return self.moved_to(total, round(told.read[self.hidden] * self.n / Fraction(self.hidden_unit)))

    def kernel_draw(self, total: int, members: int, scale: float) -> int:
        if not self.event or not self.by_count or scale != self.scale:
            raise CertificateError("tally: must draw what its certificate counted on. Nothing was released.")
        return round(self.moved_to(total, members))

    def moved_to(self, total: int, secret: int) -> Fraction:
        """A fresh noisy sum, moved as the kernel of the secret does; in spacings."""
        (check,) = self.checks
        if not check.secrets.low <= secret <= check.secrets.high:
            raise DataError(OUTSIDE)
        kernel, step = self.kernel, Fraction(self.step)
        cell = kernel.cell(int(rounded_draw(total, self.scale) / step))
        masses, target = (kernel.masses[k].tolist() for k in (kernel.place(secret), kernel.reference))
        return (kernel.first + coupled_draw(masses, target, cell)) * step

    # How far it is off

    def spread(self) -> MixedSpread:
        """Of the sum, in spacings: over tables of that law of the list under which errors are largest."""
        import numpy as np

        (check,) = self.checks
        kernel = self.kernel
        places = np.unique(np.linspace(0, len(kernel.secrets) - 1, _SECRETS).round().astype(np.int64))
        moved = kernel.displacements(places.tolist(), _LEVELS) * self.step
        scale = math.hypot(self.scale, (max(self.step, 1.0) if self.event else self.step) / math.sqrt(12))
        worst: MixedSpread | None = None
        for law in check.laws:
            sd = max(law.hidden_sd() * math.sqrt(self.n), 0.5)
            away = (kernel.secrets[places] - self.n * law.hidden_mean()) / sd
            weights = np.exp(-(away**2 - float((away**2).min())) / 2)
            each = np.repeat(weights / weights.sum() / _LEVELS, _LEVELS)
            found = MixedSpread(moved.reshape(-1), np.full(moved.size, scale), each)
            worst = found if worst is None or found.rmse > worst.rmse else worst
        assert worst is not None
        return worst

    def error_law(self, columns: Sequence[ColumnPlan], place: int) -> MixedSpread:
        return self.spread().scaled(float(Fraction(self.unit)) / self.n)

    def along(self, problem: object, place: int, answer: float) -> float | None:
        return None


class RecordedTransportEvidence(_RecordedTransport):
    """An average or a sum behind a mean or a sum; a count behind a count or a share."""

    kind: Literal["recorded_transport"] = "recorded_transport"


class RecordedShareTransportEvidence(_RecordedTransport):
    """An average or a sum behind a count or a share, whose rows are counted in the same pass."""

    reads_categories: ClassVar[bool] = True
    kind: Literal["recorded_share_transport"] = "recorded_share_transport"
