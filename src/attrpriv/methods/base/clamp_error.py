"""How far a moved answer will be from the table's own: noise, and what was taken back and not given again.

An answer is off by N(0, s^2) and by a residual whose law over the tables of the assumption is given by points and weights:

    Y = wander z + bias, z standard normal,      residual = Y - h(Y)

One normal: a fine grid. Several: points of an additive sequence, each with its negative, so that nothing is drawn. These are
expected errors, not guarantees; they are right to about a tenth of a percent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import ExpectedError
from attrpriv.methods.base.clamp import Clamp
from attrpriv.numerics.rounding import COMPUTED_DOWN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_GRID, _REACH = 2001, 8.5
_POINTS = 4096


@dataclass(frozen=True, eq=False)
class MovedSpread:
    """The law of an answer around the table's own value: a residual with these weights, plus N(0, scale^2), in a `unit`."""

    residuals: Array
    weights: Array
    scale: float
    unit: float = 1.0

    def scaled(self, factor: float) -> MovedSpread:
        return replace(self, unit=self.unit * abs(factor))

    def tail(self, t: float) -> float:
        """The chance that the answer is more than t off."""
        return self._tail(t / self.unit)

    def _tail(self, t: float) -> float:
        import numpy as np
        from scipy.special import ndtr

        if not self.scale:
            return float(self.weights @ (np.abs(self.residuals) > t))
        up, down = ndtr((self.residuals - t) / self.scale), ndtr((-self.residuals - t) / self.scale)
        return float(self.weights @ (up + down))

    def reach(self, level: float) -> float:
        """Half the width of the interval that holds the table's own value with this confidence, from above."""
        if not 0 < level < 1:
            raise UsageError(f"level: must be above 0 and below 1. Got {level}.")
        low, high = 0.0, self._rmse or self.scale
        while self._tail(high) > 1 - level:
            low, high = high, 2 * high
        for _ in range(48):
            middle = (low + high) / 2
            low, high = (middle, high) if self._tail(middle) > 1 - level else (low, middle)
        return high * self.unit

    @property
    def rmse(self) -> float:
        return self._rmse * self.unit

    @property
    def _rmse(self) -> float:
        return math.sqrt(self.scale**2 + float(self.weights @ self.residuals**2))

    def error(self) -> ExpectedError:
        import numpy as np
        from scipy.special import ndtr

        size = np.abs(self.residuals)
        folded = size
        if self.scale:
            z = size / self.scale
            folded = self.scale * math.sqrt(2 / math.pi) * np.exp(-z * z / 2) + size * (1 - 2 * ndtr(-z))
        return ExpectedError(rmse=self.rmse, mean_absolute=float(self.weights @ folded) * self.unit, alpha95=self.reach(0.95))


def clamp_spreads(
    clamp: Clamp, wander: Sequence[Sequence[float]], bias: Sequence[float], scales: Sequence[float]
) -> tuple[MovedSpread, ...]:
    """The law of each answer's error; `wander` has a row for each average, a column for each independent normal."""
    import numpy as np

    rows = np.array(wander, dtype=np.float64)
    points, weights = normal_points(rows.shape[1])
    told = points @ rows.T + np.asarray(bias)
    residuals = told - shown(clamp)(told)
    return tuple(MovedSpread(residuals[:, k], weights, scale) for k, scale in enumerate(scales))


def shown(clamp: Clamp) -> Callable[[Array], Array]:
    """h in floats, for many points at once."""
    import numpy as np

    root = np.linalg.cholesky(np.array(clamp.metric or ((1.0,),), dtype=np.float64))

    def moved(told: Array) -> Array:
        length = np.linalg.norm(np.linalg.solve(root, told.T), axis=0)
        if clamp.period is None:
            left = np.minimum(length, clamp.reach)
        else:
            steps = np.round(length / clamp.period)
            inside = np.clip(length - steps * clamp.period, -clamp.reach, clamp.reach)
            left = steps * min(2 * clamp.reach, clamp.period) + inside
        return np.asarray(told * (left / np.maximum(length, 1e-300))[:, None])

    return moved


@lru_cache(maxsize=16)
def normal_points(dimensions: int) -> tuple[Array, Array]:
    """Points and weights for means over independent standard normals."""
    import numpy as np
    from scipy.special import ndtri

    if dimensions == 1:
        points = np.linspace(-_REACH, _REACH, _GRID)
        weights = np.exp(-(points**2) / 2)
        return points[:, None], weights / weights.sum()
    # The additive sequence of the generalised golden ratio spreads evenly in any number of dimensions.
    ratio = 2.0
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1, dimensions + 1)
    uniform = (0.5 + np.outer(np.arange(1, _POINTS + 1), steps)) % 1.0
    half = ndtri(np.clip(uniform, 1e-12, COMPUTED_DOWN))
    points = np.vstack([half, -half])
    return points, np.full(len(points), 1 / len(points))
