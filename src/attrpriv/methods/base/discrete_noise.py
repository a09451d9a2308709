"""The law of whole-number noise around a count: quantiles and moments of the discrete Laplace and the discrete Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import noise_error, sum_reach
from attrpriv.numerics.laws.shifted_laplace import beyond, mean_size
from attrpriv.numerics.rounding import SOLVED_DOWN

# Scales from which whole numbers follow the continuous laws.
_LARGE = 1e4

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
        if self.individuals and self.scale:
            return self._sum_steps(missed)
        scale, noise = (self.individuals, "laplace") if self.individuals else (self.scale, self.noise)
        if not scale:
            return 0
        return _laplace_steps(scale, missed) if noise == "laplace" else _gaussian_steps(scale, missed)

    def _sum_steps(self, missed: float) -> int:
        """The least t with P(|X + Z| > t) <= missed, Z the noise for single rows; for large scales the continuous bound."""
        if self.noise == "gaussian" and self.scale > _LARGE:
            return math.ceil(sum_reach(self.scale, self.individuals, 1 - missed)) + 1
        import numpy as np

        own = np.array(self._own_masses())
        shifts, chances = np.arange(len(own), dtype=np.float64), np.append(own[:1], 2 * own[1:])
        low, high = -1, len(own) + math.ceil(-self.individuals * math.log(missed / 2)) + 1
        while high - low > 1:
            middle = (low + high) // 2
            fits = float(chances @ beyond(self.individuals, shifts, middle)) <= missed
            low, high = (low, middle) if fits else (middle, high)
        return high

    def _own_masses(self) -> list[float]:
        return _laplace_masses(self.scale) if self.noise == "laplace" else _gaussian_masses(self.scale)

    def moments(self) -> tuple[float, float]:
        """Root mean square and mean absolute value."""
        parts = [(self.scale, self.noise), (self.individuals, "laplace")]
        found = [_laplace_moments(s) if noise == "laplace" else _gaussian_moments(s) for s, noise in parts if s]
        absolute = self._sum_size() if len(found) == 2 else math.fsum(size for _, size in found)
        return self.unit * math.sqrt(math.fsum(square for square, _ in found)), self.unit * absolute

    def _sum_size(self) -> float:
        """E|X + Z|."""
        if self.noise == "gaussian" and self.scale > _LARGE:
            return noise_error(self.scale, self.individuals).mean_absolute or 0.0
        import numpy as np

        own = np.array(self._own_masses())
        sizes = mean_size(self.individuals, np.arange(len(own), dtype=np.float64))
        return float(np.append(own[:1], 2 * own[1:]) @ sizes)


def _laplace_steps(scale: float, missed: float) -> int:
    """The least t with P(|Z| > t) = 2 q^(t+1)/(1+q) <= missed, q = e^(-1/scale)."""
    q = math.exp(-1 / scale)
    return max(0, math.ceil(-scale * math.log(missed * (1 + q) / 2) - SOLVED_DOWN))


def _gaussian_steps(scale: float, missed: float) -> int:
    """The least t with P(|Z| > t) <= missed; for large scales the continuous bound, rounded up."""
    from scipy.special import ndtri

    if scale > _LARGE:
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
    if scale > _LARGE:
        return scale**2, scale * math.sqrt(2 / math.pi)
    masses = _gaussian_masses(scale)
    return (
        2 * math.fsum(k * k * mass for k, mass in enumerate(masses)),
        2 * math.fsum(k * mass for k, mass in enumerate(masses)),
    )


def _laplace_masses(scale: float) -> list[float]:
    """P(Z = 0), P(Z = 1), ... of the discrete Laplace, up to where nothing is left."""
    least = -math.expm1(-1 / scale) / (1 + math.exp(-1 / scale))
    return [least * math.exp(-k / scale) for k in range(math.ceil(50 * scale) + 2)]


def _gaussian_masses(scale: float) -> list[float]:
    """P(Z = 0), P(Z = 1), ... of the discrete Gaussian, up to where nothing is left."""
    weights = [math.exp(-k * k / (2 * scale * scale)) for k in range(math.ceil(12 * scale) + 2)]
    total = weights[0] + 2 * math.fsum(weights[1:])
    return [weight / total for weight in weights]
