"""The evidence that a secret is hidden in a statistic with stated laws: the laws themselves, and what is drawn.

| evidence | proves |
|---|---|
| `StatedNoiseEvidence` | (epsilon, delta) of whole-number noise, or of none, by the laws |
| `StatedWassersteinEvidence` | (epsilon, delta) by the distance that the laws have to be moved |
| `StatedKernelEvidence` | pure epsilon of a kernel that sees the statistic alone |
| `StatedCouplingEvidence` | pure epsilon of a coupling that reads the secret's count too, for laws of numbers |

What must never change: the loss is computed again from the stated numbers, over all laws of all boxes, all pairs and both ways;
and the tally must count what the laws are of, on the values that they list.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

from pydantic import Field

from attrpriv.errors import DataError
from attrpriv.frozen import NonNegative
from attrpriv.methods.base.accuracy import ModelError, off_by
from attrpriv.methods.base.checks import StatedCheck
from attrpriv.methods.base.evidence import Counted, Evidence
from attrpriv.methods.base.tally import OUTSIDE
from attrpriv.noise import coupled_draw, draw
from attrpriv.numerics.calibration.coupling import slices_loss
from attrpriv.numerics.calibration.direct import shifted_delta
from attrpriv.numerics.calibration.stated_laws import (
    secret_laws_of,
    stated_delta,
    stated_distance,
    stated_kernel_loss,
    stated_loss,
)
from attrpriv.numerics.laws.stated import StatedLaws
from attrpriv.numerics.rounding import COMPUTED_DOWN, COMPUTED_UP, SOLVED_UP
from attrpriv.numerics.search import least_epsilon, or_infinite

Rows = tuple[tuple[int, ...], ...]
NoiseKind = Literal["laplace", "gaussian", "none"]


class _StatedEvidence(Evidence):
    words: ClassVar[str] = "a statistic with stated laws"

    counted: str = Field(description="a digest of what is counted")
    n: int = Field(ge=1)
    checks: tuple[StatedCheck, ...] = Field(min_length=1)
    one_row: bool = Field(
        default=False,
        exclude_if=lambda value: not value,
        description="whether the laws are of what the row of the secret adds; the other rows are independent of it",
    )

    def support(self) -> tuple[int, ...]:
        return () if self.one_row else self._steps()

    def _steps(self) -> tuple[int, ...]:
        steps = {check.laws.steps for check in self.checks}
        return steps.pop() if len(steps) == 1 else (-1,)  # laws of several statistics cover none

    def covers_tally(self, told: Counted) -> bool:
        counted = (told.identity, told.n, told.histogram) == (self.counted, self.n, False)
        if self.one_row and told.steps != self._steps():
            return False
        return counted and (told.noise, told.scale) == self._drawn()

    def _drawn(self) -> tuple[str, float]:
        """The noise that was counted on."""
        raise NotImplementedError

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        """Every stated probability is larger or smaller by a share of itself, each for itself."""
        return off_by(lambda off: self._moved([check.laws.widened(off) for check in self.checks], delta))

    def _moved(self, laws: Sequence[StatedLaws], delta: float) -> float:
        """The least epsilon that holds over these boxes."""
        raise NotImplementedError


class _StatedNoise(_StatedEvidence):
    noise: NoiseKind
    scale: NonNegative

    def _drawn(self) -> tuple[str, float]:
        return self.noise, self.scale

    def _moved(self, laws: Sequence[StatedLaws], delta: float) -> float:
        return _noisy(laws, self.noise, self.scale, delta)


class StatedNoiseEvidence(_StatedNoise):
    """Whole-number noise, or none."""

    kind: Literal["stated_noise"] = "stated_noise"

    def delta(self, epsilon: float) -> float:
        return max(stated_delta(check.laws, self.noise, self.scale, epsilon) for check in self.checks)


class StatedWassersteinEvidence(_StatedNoise):
    """Noise for the distance W by which the laws must be moved, mass `ignored` of them left aside."""

    kind: Literal["stated_wasserstein"] = "stated_wasserstein"
    distance: int = Field(ge=0)
    ignored: NonNegative

    def delta(self, epsilon: float) -> float:
        if any(stated_distance(check.laws, self.ignored) > self.distance for check in self.checks):
            return 1.0
        moved = 0.0 if self.distance == 0 else shifted_delta(self.noise, self.scale, self.distance, epsilon)
        return min(1.0, (moved + self.ignored) * COMPUTED_UP)


class StatedKernelEvidence(_StatedEvidence):
    """A kernel that sees the statistic alone: o with weights[f][o]."""

    found_by_program: ClassVar[frozenset[str]] = frozenset({"weights"})
    kind: Literal["stated_kernel"] = "stated_kernel"
    weights: Rows = Field(min_length=1)

    def delta(self, epsilon: float) -> float:
        losses = [stated_kernel_loss(self.weights, check.laws) for check in self.checks]
        return 0.0 if max(losses) <= epsilon and not self.one_row else 1.0

    def kernel_draw(self, total: int, members: int, scale: float) -> int:
        start = self.support()[0]
        return start + draw(self.weights[total - start])

    def _drawn(self) -> tuple[str, float]:
        return "kernel", 0.0

    def _moved(self, laws: Sequence[StatedLaws], delta: float) -> float:
        return max(or_infinite(partial(stated_kernel_loss, self.weights, law)) for law in laws)


class StatedCouplingEvidence(_StatedEvidence):
    """The monotone coupling of sources[a] and targets[a], a the table's own count from `low` on: for laws of numbers."""

    found_by_program: ClassVar[frozenset[str]] = frozenset({"sources", "targets"})
    kind: Literal["stated_coupling"] = "stated_coupling"
    low: int = Field(ge=0)
    sources: Rows = Field(min_length=1)
    targets: Rows = Field(min_length=1)

    def delta(self, epsilon: float) -> float:
        if len(self.checks) != 1 or self.one_row:
            return 1.0
        return 0.0 if slices_loss(self.sources, self.targets, secret_laws_of(self.checks[0].laws)) <= epsilon else 1.0

    def kernel_draw(self, total: int, members: int, scale: float) -> int:
        row, start = members - self.low, self.support()[0]
        if not 0 <= row < len(self.targets):
            raise DataError(OUTSIDE)
        return start + coupled_draw(self.sources[row], self.targets[row], total - start)

    def _drawn(self) -> tuple[str, float]:
        return "kernel", 0.0

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        """A mass that is off by a share is off by no more after it was moved."""
        (check,) = self.checks
        loss = or_infinite(lambda: slices_loss(self.sources, self.targets, secret_laws_of(check.laws)))
        return off_by(lambda off: (math.log1p(off) - math.log1p(-off)) * SOLVED_UP + loss)


def _noisy(laws: Sequence[StatedLaws], noise: NoiseKind, scale: float, delta: float) -> float:
    """The least epsilon, from above, that whole-number noise reaches: alone, or with delta."""
    pure = math.inf
    if noise != "gaussian":
        pure = max(or_infinite(partial(stated_loss, law, scale)) for law in laws)
    if not delta:
        return pure

    def reached(epsilon: float) -> float:
        return max(stated_delta(law, noise, scale, epsilon) for law in laws)

    return min(pure, or_infinite(lambda: least_epsilon(reached, delta * COMPUTED_DOWN)))
