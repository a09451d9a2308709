"""The evidence of noise on a sum over rows like recorded ones (docs/theory/recorded-laws.md).

    released: the multiple of `step` nearest to F + N(0, scale^2), in whole numbers;  an average: times unit/n

| stored | what for |
|---|---|
| `statistic`, `event`, `unit`, `n` | what is summed: a column on its spacing, or how many rows satisfy a condition |
| `scale` | the noise; its grid and `step` follow from it |
| `checks` | of each secret: the values that must look alike, and the law of (s, q) under each member of the list |

What must never change: the promise is computed again from these numbers alone, for every law and every pair, and pays for the
grid of the noise. What cannot be computed proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from attrpriv.errors import CertificateError
from attrpriv.frozen import FrozenModel, Positive
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Counted, Evidence, Told
from attrpriv.noise import add_gaussian, granularity
from attrpriv.numerics.calibration.gaussian import grid_charge
from attrpriv.numerics.calibration.recorded import recorded_step
from attrpriv.numerics.calibration.recorded_members import RecordedLaw, SecretRange, law_delta, members_delta
from attrpriv.numerics.rounding import COMPUTED_UP, ROUNDED_DOWN


class RecordedCheck(FrozenModel):
    """One secret: which of its values must look alike, and the laws under which they must."""

    secret: str
    secrets: SecretRange
    laws: tuple[RecordedLaw, ...] = Field(min_length=1)


class RecordedSum(Evidence):
    """A sum, a count or an average with Gaussian noise, rounded to a public step."""

    words: ClassVar[str] = "a release for recorded laws"
    room: ClassVar[str] = "List more laws: smaller resamples, or further files."
    rounds_rows: ClassVar[bool] = True
    statistic: str
    event: bool
    unit: Annotated[str, Field(pattern=r"^[0-9]+(/[0-9]+)?$")] = Field(description="the spacing of what is summed")
    n: Annotated[int, Field(strict=True, ge=2)]
    scale: Positive = Field(description="of the noise on the sum, in spacings")
    checks: tuple[RecordedCheck, ...] = Field(min_length=1)

    @property
    def step(self) -> float:
        """What the noisy sum is rounded to, in spacings."""
        return recorded_step(self.scale)

    @property
    def own_noise(self) -> float:
        """The standard deviation of the noise on an average, in the column's own unit."""
        return float(Fraction(self.scale) * Fraction(self.unit) / self.n)

    def delta(self, epsilon: float) -> float:
        lam, eta = grid_charge(1)
        inner = (epsilon - 2 * lam) * ROUNDED_DOWN
        if not inner > 0 or Fraction(self.unit) <= 0:
            return 1.0
        return (math.exp(lam) * self.gridless_delta(inner) + eta * (1 + math.exp(epsilon))) * COMPUTED_UP

    def gridless_delta(self, inner: float) -> float:
        """Of noise that has no grid."""
        shift = shift_of(self.scale)
        return max(members_delta(one.laws, self.n, one.secrets, self.scale, shift, inner) for one in self.checks)

    def leads_on(self) -> bool:
        """Not where a law lacks a value between two others: nothing is shown of pairs that it does not have."""
        laws = ((law, one.secrets) for one in self.checks for law in one.laws)
        return all(_in_a_row(secrets, self._lacking(law, secrets)) for law, secrets in laws)

    def _lacking(self, law: RecordedLaw, secrets: SecretRange) -> tuple[int, ...]:
        """The values that no n rows of this law have."""
        return law_delta(law, self.n, secrets, self.scale, shift_of(self.scale), 1.0)[1]

    def describe(self) -> tuple[str, ...]:
        pairs = ", ".join(f"{one.secrets.high - one.secrets.low + 1:,} values of {one.secret}" for one in self.checks)
        return (f"for the {len(self.checks[0].laws)} laws listed; every pair of {pairs}",)

    # What is read and drawn

    def covers(self, column: str, kind: str, scale: float) -> bool:
        return not self.event and kind == "gaussian" and (column, scale) == (self.statistic, self.own_noise)

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        return n == self.n and columns == (() if self.event else (self.statistic,))

    def covers_tally(self, told: Counted) -> bool:
        counted = (told.n, told.event, told.histogram) == (self.n, self.statistic, False)
        return self.event and counted and (told.noise, told.scale) == ("kernel", self.scale)

    def spacing_of(self, column: str) -> float | None:
        return float(Fraction(self.unit)) if not self.event and column == self.statistic else None

    def drawn(self, columns: Sequence[ColumnPlan], averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        if self.event or len(columns) != 1 or columns[0].column != self.statistic:
            raise CertificateError("plan: must draw what its certificate counted on. Nothing was released.")
        unit = Fraction(self.unit)
        total = round(averages[0] * self.n / unit)  # floats on a spacing are off it by their last digits
        return [self.answer(total, told) * unit / self.n]

    def answer(self, total: int, told: Told) -> Fraction:
        """What is released for a sum, in spacings."""
        return rounded_draw(total, self.scale)

    def kernel_draw(self, total: int, members: int, scale: float) -> int:
        if not self.event or scale != self.scale:
            raise CertificateError("tally: must draw what its certificate counted on. Nothing was released.")
        return round(rounded_draw(total, scale))


class RecordedEvidence(RecordedSum):
    """Noise alone."""

    kind: Literal["recorded"] = "recorded"


def _in_a_row(secrets: SecretRange, lacking: Sequence[int]) -> bool:
    """Whether the values that are not lacking have none that is lacking between them."""
    there = sorted({*range(secrets.low, secrets.high + 1)} - {*lacking})
    return not there or there[-1] - there[0] < len(there)


def shift_of(scale: float) -> float:
    """How far the bins are moved: a noisy sum on its grid is rounded up where it lies between two steps."""
    return granularity(scale) / 2


def rounded_draw(total: int, scale: float) -> Fraction:
    """The noisy total on its grid, as the nearest multiple of its step; the upper one of two that are as near."""
    step = Fraction(recorded_step(scale))
    return math.floor(add_gaussian(Fraction(total), scale) / step + Fraction(1, 2)) * step
