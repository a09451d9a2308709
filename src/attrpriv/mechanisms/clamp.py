"""The clamp in use: how an average is moved, and how far it will be from the table's own.

    F' = F - y + clip(y, -h, +h) + N(0, s^2),       y = slope (x + N(0, mask^2) - centre)

| symbol | meaning |
|---|---|
| x | the sensitive column's average, read in the same pass |
| h | the clamp's `reach` |
| w | standard deviation of y over the populations that the assumption describes; its mean is 0 |

The answer is off by N(0, s^2) and by the part of y beyond +-h. What must never change: the sensitive average meets its mask
before anything else, all in fractions on public grids; nothing of it is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from attrpriv.errors import UsageError
from attrpriv.guarantee.clamp import Clamp
from attrpriv.mechanisms.accuracy import Error
from attrpriv.mechanisms.noise_design import Design, common_bits
from attrpriv.noise import correlated_noise

_NODES = 96


def clamp_bits(clamp: Clamp, scale: float) -> int:
    """How fine the mask's grid is: its rounding moves the answer by less than a quarter of a step of the answer's own grid."""
    return common_bits(Design((scale,), ((clamp.slope * clamp.mask,),)))


def clamped(clamp: Clamp, average: Fraction, hidden: Fraction, scale: float) -> Fraction:
    """The average without what the sensitive column tells of it beyond the clamp's reach; noise of `scale` comes after."""
    masked = hidden + correlated_noise(((clamp.mask,),), clamp_bits(clamp, scale))[0]
    told = Fraction(clamp.slope) * (masked - Fraction(clamp.centre))
    reach = Fraction(clamp.reach)
    return average - told + min(max(told, -reach), reach)


@dataclass(frozen=True)
class ClampSpread:
    """The law of an answer around the table's own value, over the populations of the assumption: s, w and h above."""

    scale: float
    wander: float
    room: float

    def reach(self, level: float) -> float:
        """Half the width of the interval that holds the table's own value with this confidence, from above."""
        if not 0 < level < 1:
            raise UsageError(f"level: must be above 0 and below 1. Got {level}.")
        low, high = 0.0, math.hypot(self.scale, self.wander)
        while self.tail(high) > 1 - level:
            low, high = high, 2 * high
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if self.tail(middle) > 1 - level else (low, middle)
        return high

    def tail(self, t: float) -> float:
        """The chance that the answer is more than t off."""
        from scipy.special import ndtr

        inside = 1 - 2 * self._beyond
        far = self._both(self.room + t) + self._beyond - self._both(self.room - t)
        return float(inside * 2 * ndtr(-t / self.scale) + 2 * far)

    @property
    def _beyond(self) -> float:
        """P(y > h)."""
        from scipy.special import ndtr

        return float(ndtr(-self.room / self.wander)) if self.wander else 0.0

    def _both(self, k: float) -> float:
        """P(y > h and y + N(0, s^2) > k), by Owen's function."""
        from scipy.special import ndtr, owens_t

        if not self.wander:
            return 0.0
        total = math.hypot(self.scale, self.wander)
        r, left = self.wander / total, self.scale / total
        a, b = self.room / self.wander, k / total
        first = 0.25 * math.copysign(1.0, b - r * a) if a == 0 else owens_t(a, (b - r * a) / (a * left))
        second = 0.25 * math.copysign(1.0, a - r * b) if b == 0 else owens_t(b, (a - r * b) / (b * left))
        opposite = 0.5 if a * b < 0 or (a * b == 0 and a + b < 0) else 0.0
        return float(max(0.0, (ndtr(-a) + ndtr(-b)) / 2 - first - second - opposite))

    def error(self) -> Error:
        """E err^2 = s^2 + 2 [(w^2 + h^2) Phi(-h/w) - w h phi(h/w)], and the rest from the law."""
        squared = self.scale**2 + max(0.0, self.beyond_squared())
        return Error(rmse=math.sqrt(squared), mean_absolute=self._absolute(), alpha95=self.reach(0.95))

    def beyond_squared(self) -> float:
        """The mean square of the part of y beyond +-h."""
        w, h = self.wander, self.room
        return 2 * ((w**2 + h**2) * self._beyond - w * h * self._density(h)) if w else 0.0

    def _density(self, y: float) -> float:
        return math.exp(-((y / self.wander) ** 2) / 2) / math.sqrt(2 * math.pi)

    def _absolute(self) -> float:
        """E|N + X|, X the part beyond: E|N + x| = x + r(x) for x > 0, and r is only there below a few s."""
        import numpy as np
        from scipy.special import ndtr

        s, w, h = self.scale, self.wander, self.room
        plain = s * math.sqrt(2 / math.pi)
        if not w:
            return plain
        top = min(9 * s, 12 * w)
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        x = (nodes + 1) / 2 * top
        rest = plain * np.exp(-((x / s) ** 2) / 2) - 2 * x * ndtr(-x / s)
        density = np.exp(-(((h + x) / w) ** 2) / 2) / (w * math.sqrt(2 * math.pi))
        small = float((rest * density * weights).sum()) * top / 2
        beyond = w * self._density(h) - h * self._beyond
        return (1 - 2 * self._beyond) * plain + 2 * (beyond + small)
