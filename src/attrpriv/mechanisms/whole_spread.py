"""The law of whole-number noise around a count: quantiles and moments of the discrete Laplace and the discrete Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from attrpriv.errors import UsageError

TallyNoise = Literal["laplace", "gaussian", "none", "kernel"]


@dataclass(frozen=True)
class WholeSpread:
    """The law of whole-number noise of a kind and scale, with further Laplace noise on top; in units of `unit`."""

    noise: TallyNoise
    scale: float
    individuals: float = 0.0
    unit: float = 1.0
    tails: tuple[float, ...] = ()
    """Of a kernel: the chance, at most, to be more than 0, 1, 2, ... times `tail_step` off."""
    tail_step: int = 1

    def reach(self, level: float) -> float:
        """Half the width of the interval that holds the table's own value with this confidence."""
        if not 0 < level < 1:
            raise UsageError(f"level: must be above 0 and below 1. Got {level}.")
        return self.unit * self._steps(1 - level)

    def _steps(self, missed: float) -> int:
        if self.tails:
            return self.tail_step * next((t for t, tail in enumerate(self.tails) if tail <= missed), len(self.tails))
        if self.individuals and self.scale:  # a sum of two: each may be off with half the chance
            own = WholeSpread(self.noise, self.scale)._steps(missed / 2)
            return own + WholeSpread("laplace", self.individuals)._steps(missed / 2)
        scale, noise = (self.individuals, "laplace") if self.individuals else (self.scale, self.noise)
        if not scale:
            return 0
        return _laplace_steps(scale, missed) if noise == "laplace" else _gaussian_steps(scale, missed)

    def moments(self) -> tuple[float, float]:
        """Root mean square and mean absolute value; of a sum of two, the latter from above."""
        squares = absolute = 0.0
        for scale, noise in ((self.scale, self.noise), (self.individuals, "laplace")):
            if scale:
                one = _laplace_moments(scale) if noise == "laplace" else _gaussian_moments(scale)
                squares, absolute = squares + one[0], math.hypot(absolute, one[1]) if absolute else one[1]
        if self.individuals and self.scale:
            absolute = math.sqrt(squares)
        return self.unit * math.sqrt(squares), self.unit * absolute


def _laplace_steps(scale: float, missed: float) -> int:
    """The least t with P(|Z| > t) = 2 q^(t+1)/(1+q) <= missed, q = e^(-1/scale)."""
    q = math.exp(-1 / scale)
    return max(0, math.ceil(-scale * math.log(missed * (1 + q) / 2) - 1 - 1e-9))


def _gaussian_steps(scale: float, missed: float) -> int:
    """The least t with P(|Z| > t) <= missed; for large scales the continuous bound, rounded up."""
    from scipy.special import ndtri

    if scale > 1e4:
        return math.ceil(-scale * float(ndtri(missed / 2)))
    masses = _gaussian_masses(scale)
    left, t = 1 - masses[0], 0
    while left > missed and t + 1 < len(masses):
        t += 1
        left -= 2 * masses[t]
    return t


def _laplace_moments(scale: float) -> tuple[float, float]:
    """E Z^2 = 2q/(1-q)^2 and E|Z| = 2q/(1-q^2)."""
    q, rest = math.exp(-1 / scale), -math.expm1(-1 / scale)
    return 2 * q / rest**2, 2 * q / (rest * (1 + q))


def _gaussian_moments(scale: float) -> tuple[float, float]:
    if scale > 1e4:
        return scale**2, scale * math.sqrt(2 / math.pi)
    masses = _gaussian_masses(scale)
    return (
        2 * math.fsum(k * k * mass for k, mass in enumerate(masses)),
        2 * math.fsum(k * mass for k, mass in enumerate(masses)),
    )


def _gaussian_masses(scale: float) -> list[float]:
    """P(Z = 0), P(Z = 1), ... of the discrete Gaussian, up to where nothing is left."""
    weights = [math.exp(-k * k / (2 * scale * scale)) for k in range(math.ceil(12 * scale) + 2)]
    total = weights[0] + 2 * math.fsum(weights[1:])
    return [weight / total for weight in weights]
