"""The evidence of mechanisms for counts: what one row adds, which counts must look alike, and the noise.

Each kind recomputes its loss from the stored laws, rounded up, over the whole class and all pairs:

| evidence | proves |
|---|---|
| `CountLaplaceEvidence` | pure epsilon of whole-number Laplace noise, by its exact loss (docs/theory/exact-calibration.md) |
| `CountDirectEvidence` | (epsilon, delta) of whole-number noise, or of none, by the laws themselves |
| `WassersteinEvidence` | (epsilon, delta) by the distance that the laws have to be moved (docs/theory/wasserstein.md) |

What must never change: one laws' pair that is not covered gives delta 1, never less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from attrpriv.frozen import FrozenModel, NonNegative
from attrpriv.methods.base.accuracy import EXACT_LAWS, PURE, ModelError, Profile, off_by
from attrpriv.methods.base.evidence import Counted, CountEvidence
from attrpriv.methods.count_noise.model_error import NoisyCount
from attrpriv.numerics.calibration.count_cases import CountCases, case_delta, case_loss
from attrpriv.numerics.calibration.direct import direct_delta, shifted_delta
from attrpriv.numerics.calibration.laplace import histogram_loss, laplace_loss
from attrpriv.numerics.divergences.families import family_wasserstein
from attrpriv.numerics.laws.records import CountPairs, RecordLaws, widened
from attrpriv.numerics.rounding import COMPUTED_DOWN, COMPUTED_UP
from attrpriv.numerics.search import or_infinite


class CountCheck(FrozenModel):
    """One secret under one member of Theta."""

    secret: str
    theta: int
    records: RecordLaws
    pairs: CountPairs

    def stretched(self, times: float) -> CountCheck:
        """Of counts so many times as far apart, as far as the range goes."""
        rows = math.ceil(self.pairs.apart * times * COMPUTED_DOWN)
        apart = min(max(1, rows), self.pairs.high - self.pairs.low)
        return self.model_copy(update={"pairs": replace(self.pairs, apart=apart)})


class CountLaplaceEvidence(CountEvidence):
    """Whole-number Laplace noise on a count, a sum or each cell of a histogram; scale 0 is the exact answer."""

    told_by: ClassVar[Profile] = PURE
    by_secret: ClassVar[tuple[str, ...]] = ("checks",)
    kind: Literal["count_laplace"] = "count_laplace"
    checks: tuple[CountCheck, ...] = Field(min_length=1)
    scale: NonNegative
    histogram: bool = False

    def delta(self, epsilon: float) -> float:
        return 0.0 if self.loss() <= epsilon else 1.0

    def loss(self) -> float:
        """The largest loss over all secrets and members, from above."""
        return max(self._loss(check) for check in self.checks)

    def _loss(self, check: CountCheck) -> float:
        if self.histogram:
            return histogram_loss(check.records.member, check.records.rest, check.pairs.apart, self.scale).upper
        return laplace_loss(check.records, check.pairs.apart, self.scale).upper

    def stretched(self, times: float) -> CountLaplaceEvidence:
        return self.model_copy(update={"checks": tuple(check.stretched(times) for check in self.checks)})

    def covers_tally(self, told: Counted) -> bool:
        drawn = (told.noise, told.scale) == ("laplace" if self.scale else "none", self.scale)
        return drawn and told.histogram == self.histogram and _counted(self.checks, told)

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        """By the exact loss over the wider box."""
        return off_by(lambda off: or_infinite(self._wider(off).loss))

    def _wider(self, off: float) -> CountLaplaceEvidence:
        wider = [check.model_copy(update={"records": widened(check.records, off)}) for check in self.checks]
        return self.model_copy(update={"checks": tuple(wider)})


class CountDirectEvidence(CountEvidence):
    """Whole-number noise on a count or a sum, checked by the laws of the noisy answers themselves."""

    found_by_search: ClassVar[bool] = True
    told_by: ClassVar[Profile] = EXACT_LAWS
    by_secret: ClassVar[tuple[str, ...]] = ("checks",)
    kind: Literal["count_direct"] = "count_direct"
    checks: tuple[CountCheck, ...] = Field(min_length=1)
    noise: Literal["laplace", "gaussian", "none"]
    scale: NonNegative
    known: int = Field(default=0, ge=0, description="rows that an adversary may know")

    def delta(self, epsilon: float) -> float:
        return max(
            direct_delta(check.records, check.pairs, self.noise, self.scale, epsilon, known=self.known).upper
            for check in self.checks
        )

    def stretched(self, times: float) -> CountDirectEvidence:
        return self.model_copy(update={"checks": tuple(check.stretched(times) for check in self.checks)})

    def covers_tally(self, told: Counted) -> bool:
        drawn = (told.noise, told.scale) == (self.noise, self.scale)
        return drawn and not told.histogram and _counted(self.checks, told)

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        return NoisyCount(self, epsilon, delta).model_error()


class WassersteinEvidence(CountEvidence):
    """Noise for the distance W by which the laws must be moved, mass `ignored` of them left aside."""

    words: ClassVar[str] = "a count by the Wasserstein mechanism"
    kind: Literal["wasserstein"] = "wasserstein"
    checks: tuple[CountCheck, ...] = Field(min_length=1)
    distance: int = Field(ge=0)
    ignored: NonNegative
    known: int = Field(default=0, ge=0, description="rows that an adversary may know; covered for events alone")
    noise: Literal["laplace", "gaussian", "none"]
    scale: NonNegative

    def delta(self, epsilon: float) -> float:
        for check in self.checks:
            if self.known and not (check.records.binary and check.pairs.low == 0 and check.pairs.high == check.pairs.n):
                return 1.0
            if not family_wasserstein(check.records, check.pairs, self.ignored).distance <= self.distance:
                return 1.0
        moved = 0.0 if self.distance == 0 else shifted_delta(self.noise, self.scale, self.distance, epsilon)
        return min(1.0, (moved + self.ignored) * COMPUTED_UP)

    def covers_tally(self, told: Counted) -> bool:
        drawn = (told.noise, told.scale) == (self.noise, self.scale)
        return drawn and not told.histogram and _counted(self.checks, told)

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        return NoisyCount(self, epsilon, delta).model_error()


def _counted(checks: Sequence[CountCheck], told: Counted) -> bool:
    """Whether a row adds what the laws are of."""
    return all(check.records.values == told.steps for check in checks)


# ----------------------------------------------------------------------------------------------------------------------------
# The evidence that sets of counts are hidden by the exact law of their mixture (docs/theory/exact-calibration.md).
#
# Given that the count lies in a set, the answer is a mixture over the counts of the set, weighted by the prior. So the prior
# is part of this proof, as it is of no other for counts, and so is that the adversary knows no row. What must never change:
# delta is recomputed from the stored laws, both ways between every two sets, rounded up.


class CountCasesCheck(FrozenModel):
    """One set-valued secret under one member of Theta."""

    secret: str
    theta: int
    sets: CountCases


class CountCasesEvidence(CountEvidence):
    """Whole-number noise, or none, on a count or a sum; which of the sets holds the count is hidden."""

    kind: Literal["count_cases"] = "count_cases"
    checks: tuple[CountCasesCheck, ...] = Field(min_length=1)
    noise: Literal["laplace", "gaussian", "none"]
    scale: NonNegative

    def delta(self, epsilon: float) -> float:
        return max(self._delta(check.sets, epsilon) for check in self.checks)

    def _delta(self, sets: CountCases, epsilon: float) -> float:
        """0 where every output is within e^epsilon, which no law with a window can show."""
        pure = self.noise == "laplace" or (self.noise == "none" and not self.scale)
        if pure and case_loss(sets, self.scale) <= epsilon:
            return 0.0
        return case_delta(sets, self.noise, self.scale, epsilon)

    def covers_tally(self, told: Counted) -> bool:
        drawn = (told.noise, told.scale) == (self.noise, self.scale)
        return drawn and not told.histogram and all(check.sets.records.values == told.steps for check in self.checks)
