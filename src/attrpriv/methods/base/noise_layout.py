"""Gaussian noise on several averages: what each has of its own, and what they have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.numerics.rounding import SOLVED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """Independent noise of each average, and a factor of further noise common to them (no columns where there is none)."""

    independent: tuple[float, ...]
    factor: tuple[tuple[float, ...], ...]

    def at_least(self, scale: float) -> Design:
        """The same with at least this much independent noise on each average."""
        return Design(tuple(max(own, scale * SOLVED_UP) for own in self.independent), self.factor)

    def scales(self) -> tuple[float, ...]:
        """The standard deviation of all the noise on each average."""
        rows = self.factor or ((),) * len(self.independent)
        return tuple(math.hypot(own, *row) for own, row in zip(self.independent, rows, strict=True))

    def covariance(self) -> Matrix:
        """Of all the noise."""
        import numpy as np

        own = np.diag(np.array(self.independent, dtype=np.float64) ** 2)
        factor = np.array(self.factor, dtype=np.float64)
        return own + factor @ factor.T if self.factor else own


def common_bits(layout: Design) -> int:
    """How fine the grid of the common noise is: its rounding must be below half a step of each average's own grid."""
    if not layout.factor:
        return 0
    ratios = [sum(map(abs, row)) / own for row, own in zip(layout.factor, layout.independent, strict=True)]
    return 34 + max(0, math.ceil(math.log2(max(max(ratios), 1e-9))))
