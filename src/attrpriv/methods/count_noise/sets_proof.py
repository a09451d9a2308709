"""The evidence that sets of counts are hidden by the exact law of their mixture (docs/theory/exact-calibration.md).

Given that the count lies in a set, the answer is a mixture over the counts of the set, weighted by the prior. So the prior is
part of this proof, as it is of no other for counts, and so is that the adversary knows no row. What must never change: delta is
recomputed from the stored laws, both ways between every two sets, rounded up.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from attrpriv.frozen import FrozenModel, NonNegative
from attrpriv.methods.base.evidence import Counted, CountEvidence
from attrpriv.numerics.calibration.count_cases import CountCases, case_delta, case_loss


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
