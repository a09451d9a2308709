"""How far an answer is off where it is moved for some tables more than for others: a mixture of normal laws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import ExpectedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MixedSpread:
    """The law of an answer around the table's own value: residuals and noise, each with its chance."""

    residuals: Array
    scales: Array
    weights: Array

    def scaled(self, factor: float) -> MixedSpread:
        return MixedSpread(self.residuals * factor, self.scales * abs(factor), self.weights)

    def tail(self, t: float) -> float:
        """The chance that the answer is more than t off."""
        from scipy.special import ndtr

        up, down = ndtr((self.residuals - t) / self.scales), ndtr((-self.residuals - t) / self.scales)
        return float(self.weights @ (up + down))

    def reach(self, level: float) -> float:
        """Half the width of the interval that holds the table's own value with this confidence, from above."""
        if not 0 < level < 1:
            raise UsageError(f"level: must be above 0 and below 1. Got {level}.")
        low, high = 0.0, self.rmse
        while self.tail(high) > 1 - level:
            low, high = high, 2 * high
        for _ in range(48):
            middle = (low + high) / 2
            low, high = (middle, high) if self.tail(middle) > 1 - level else (low, middle)
        return high

    @property
    def rmse(self) -> float:
        return math.sqrt(float(self.weights @ (self.residuals**2 + self.scales**2)))

    def error(self) -> ExpectedError:
        import numpy as np
        from scipy.special import ndtr

        size = np.abs(self.residuals)
        z = size / self.scales
        folded = self.scales * math.sqrt(2 / math.pi) * np.exp(-z * z / 2) + size * (1 - 2 * ndtr(-z))
        return ExpectedError(rmse=self.rmse, mean_absolute=float(self.weights @ folded), alpha95=self.reach(0.95))
