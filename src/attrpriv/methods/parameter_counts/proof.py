"""The evidence that a parameter of the population is hidden in a count, by the law of the count given each of its values.

| evidence | proves |
|---|---|
| `ParameterNoiseEvidence` | (epsilon, delta) of whole-number noise, or of none, by the laws themselves |
| `ParameterWassersteinEvidence` | (epsilon, delta) by the distance that the laws have to be moved |
| `ParameterKernelEvidence` | pure epsilon of a kernel that sees the count alone |

The stored numbers are those of docs/theory/parameter-counts.md: n, the probability of the event in each state of the column's
own parameter, and how likely the states are given each value of the hidden one. What must never change: the loss is computed
again from them, over all pairs and both ways, with what they leave open; and the tally must count the event that they are of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

from pydantic import Field

from attrpriv.frozen import NonNegative
from attrpriv.methods.base.accuracy import ModelError, off_by
from attrpriv.methods.base.checks import ParameterCheck
from attrpriv.methods.base.evidence import Counted, Evidence
from attrpriv.noise import draw
from attrpriv.numerics.calibration.direct import shifted_delta
from attrpriv.numerics.calibration.parameter_counts import (
    parameter_delta,
    parameter_distance,
    parameter_kernel_loss,
    parameter_loss,
)
from attrpriv.numerics.rounding import COMPUTED_DOWN, COMPUTED_UP, SOLVED_UP
from attrpriv.numerics.search import least_epsilon, or_infinite

Rows = tuple[tuple[int, ...], ...]
NoiseKind = Literal["laplace", "gaussian", "none"]


class _ParameterEvidence(Evidence):
    words: ClassVar[str] = "a count under a parameter network"

    event: str = Field(description="the rows that are counted")
    checks: tuple[ParameterCheck, ...] = Field(min_length=1)

    def covers_tally(self, told: Counted) -> bool:
        counted = told.event == self.event and all(check.counts.n == told.n for check in self.checks)
        return counted and (told.noise, told.scale) == self._drawn()

    def _drawn(self) -> tuple[str, float]:
        """The noise that was counted on."""
        raise NotImplementedError

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        """The probabilities of the counted column's parameter, given the hidden one, are off."""
        return off_by(lambda off: (math.log1p(off) - math.log1p(-off)) * SOLVED_UP + self._moved(off, delta))

    def _moved(self, off: float, delta: float) -> float:
        """The least epsilon at which the delta is enough for masses that are larger by this share."""
        raise NotImplementedError


class ParameterNoiseEvidence(_ParameterEvidence):
    """Whole-number noise, or none, on a count."""

    kind: Literal["parameter_noise"] = "parameter_noise"
    noise: NoiseKind
    scale: NonNegative

    def delta(self, epsilon: float) -> float:
        return max(parameter_delta(check.counts, self.noise, self.scale, epsilon) for check in self.checks)

    def _drawn(self) -> tuple[str, float]:
        return self.noise, self.scale

    def _moved(self, off: float, delta: float) -> float:
        return _noisy(self.checks, self.noise, self.scale, delta / (1 + off) * COMPUTED_DOWN)


class ParameterWassersteinEvidence(_ParameterEvidence):
    """Noise for the distance W by which the laws must be moved, mass `ignored` of them left aside."""

    kind: Literal["parameter_wasserstein"] = "parameter_wasserstein"
    distance: int = Field(ge=0)
    ignored: NonNegative
    noise: NoiseKind
    scale: NonNegative

    def delta(self, epsilon: float) -> float:
        if any(parameter_distance(check.counts, self.ignored) > self.distance for check in self.checks):
            return 1.0
        moved = 0.0 if self.distance == 0 else shifted_delta(self.noise, self.scale, self.distance, epsilon)
        return min(1.0, (moved + self.ignored) * COMPUTED_UP)

    def _drawn(self) -> tuple[str, float]:
        return self.noise, self.scale

    def _moved(self, off: float, delta: float) -> float:
        return _noisy(self.checks, self.noise, self.scale, delta / (1 + off) * COMPUTED_DOWN)


class ParameterKernelEvidence(_ParameterEvidence):
    """A kernel that sees the count alone: o with weights[f][o]."""

    found_by_program: ClassVar[frozenset[str]] = frozenset({"weights"})
    kind: Literal["parameter_kernel"] = "parameter_kernel"
    start: Literal[0] = 0
    weights: Rows = Field(min_length=1)

    def delta(self, epsilon: float) -> float:
        losses = [parameter_kernel_loss(self.weights, check.counts) for check in self.checks]
        return 0.0 if max(losses) <= epsilon else 1.0

    def kernel_draw(self, total: int, members: int, scale: float) -> int:
        return self.start + draw(self.weights[total - self.start])

    def kernel_law(self, total: int, members: int) -> tuple[int, Sequence[int]]:
        return self.start, self.weights[total - self.start]

    def _drawn(self) -> tuple[str, float]:
        return "kernel", 0.0

    def _moved(self, off: float, delta: float) -> float:
        losses = (or_infinite(partial(parameter_kernel_loss, self.weights, check.counts)) for check in self.checks)
        return max(losses)


def _noisy(checks: Sequence[ParameterCheck], noise: NoiseKind, scale: float, delta: float) -> float:
    """The least epsilon, from above, that whole-number noise reaches: alone, or with delta."""
    pure = math.inf
    if noise != "gaussian":
        pure = max(or_infinite(partial(parameter_loss, check.counts, scale)) for check in checks)
    if not delta:
        return pure

    def reached(epsilon: float) -> float:
        return max(parameter_delta(check.counts, noise, scale, epsilon) for check in checks)

    return min(pure, or_infinite(lambda: least_epsilon(reached, delta)))
