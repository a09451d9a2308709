"""What holds if the stated probabilities are off: the real epsilon of whole-number noise on a count, from above.

Every probability may be larger or smaller by a share x of itself, beyond its interval (`numerics.laws.records`).

| noise | bound |
|---|---|
| Laplace | its exact loss over the wider box |
| any, with delta | the laws of the noisy answers over the wider box: of all pairs at once, or pair by pair |

Sets of counts hidden by their mixture are not covered: both the prior and the laws would move, and no bound on that is at hand.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrpriv.methods.base.accuracy import ModelError, off_by
from attrpriv.numerics.calibration.direct import added_noise, direct_delta
from attrpriv.numerics.calibration.laplace import laplace_loss
from attrpriv.numerics.calibration.pair_families import Events, family_of
from attrpriv.numerics.laws.records import widened
from attrpriv.numerics.search import least_epsilon, or_infinite

if TYPE_CHECKING:
    from attrpriv.methods.count_noise.proof import CountCheck, CountDirectEvidence, WassersteinEvidence

# The bound for all pairs at once is used where it exceeds the promise by no more than this share.
_COARSE = 0.02


class NoisyCount:
    """Whole-number noise on a count or a sum, whatever it was found by."""

    def __init__(self, evidence: CountDirectEvidence | WassersteinEvidence, epsilon: float, delta: float) -> None:
        self.evidence, self.epsilon, self.delta = evidence, epsilon, delta
        self._coarse: dict[int, bool] = {}

    def model_error(self) -> tuple[ModelError, ...]:
        """Nothing where nothing is known: sums with noise whose loss is not bounded by itself."""
        if self.evidence.noise != "laplace" and not all(check.records.binary for check in self.evidence.checks):
            return ()
        return off_by(lambda off: max(self._of(k, check, off) for k, check in enumerate(self.evidence.checks)))

    def _of(self, index: int, check: CountCheck, off: float) -> float:
        wider = widened(check.records, off)
        pure = math.inf
        if self.evidence.noise == "laplace":
            pure = or_infinite(lambda: laplace_loss(wider, check.pairs.apart, self.evidence.scale).upper)
        if not self.delta or not check.records.binary:
            return pure
        return min(pure, or_infinite(lambda: self._with_delta(index, check, off)))

    def _with_delta(self, index: int, check: CountCheck, off: float) -> float:
        if index not in self._coarse:
            self._coarse[index] = self._at_once(check, 0.0) <= self.epsilon * (1 + _COARSE)
        return self._at_once(check, off) if self._coarse[index] else self._pair_by_pair(check, off)

    def _at_once(self, check: CountCheck, off: float) -> float:
        """Independent rows that two laws have in common only help: what all pairs have in common is kept, the rest dropped."""
        family = family_of(widened(check.records, off), check.pairs, self.evidence.known)
        if not isinstance(family, Events):
            return math.inf
        reached = family.curve(family.range, added_noise(self.evidence.noise, self.evidence.scale))
        return least_epsilon(reached, self.delta, start=self.epsilon)

    def _pair_by_pair(self, check: CountCheck, off: float) -> float:
        wider, evidence = widened(check.records, off), self.evidence

        def reached(epsilon: float) -> float:
            found = direct_delta(
                wider, check.pairs, evidence.noise, evidence.scale, epsilon, known=evidence.known, enough=self.delta
            )
            return found.upper

        return least_epsilon(reached, self.delta, start=self.epsilon, close=0.01)
