"""The normal law, as a frozen value with no behaviour beyond its own moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.lattice_law import LatticeLaw

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class GaussianLaw:
    """N(mean, variance) with a positive variance.

    `mean` and `variance` are numbers of the answer.

    >>> GaussianLaw(1.0, 4.0).variance
    4.0
    """

    mean: float
    variance: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and math.isfinite(self.variance) and self.variance > 0):
            raise UsageError(
                f"law: needs a finite mean and a positive variance. Got mean {self.mean}, variance {self.variance}."
            )


# ----------------------------------------------------------------------------------------------------------------------------
# A law on whole numbers after normal noise: a mixture of normal laws of one variance.
#
#     density(x) = sum over k of weights[k] phi((x - (start + k))/s)/s,      s^2 = `variance`
#
# The weights are taken as the exact numbers that the floats are. `lost` bounds how far they are from the law they stand for,
# on every set; noise cannot make that larger. What must never change: |true(T) - this(T)| <= lost for every set T.


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """Weights at increasing means, a common variance, and the mass by which the whole may be wrong.

    `weights` are the probabilities of the `means`, `variance` is common to all, `lost` the mass.

    >>> GaussianMixture([0.5, 0.5], [0.0, 1.0], 4.0).lost
    0.0
    """

    weights: Array
    means: Array
    variance: float
    lost: float = 0.0

    def __post_init__(self) -> None:
        import numpy as np

        for name in ("weights", "means"):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.ndim != 1 or array.size == 0 or not np.all(np.isfinite(array)):
                raise UsageError(f"{name}: must be a non-empty row of finite numbers.")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if len(self.weights) != len(self.means) or float(self.weights.min()) < 0 or np.any(np.diff(self.means) <= 0):
            raise UsageError("mixture: needs a weight of at least 0 for each of its means, and these in increasing order.")
        if not (math.isfinite(self.variance) and self.variance > 0 and math.isfinite(self.lost) and self.lost >= 0):
            raise UsageError(f"mixture: needs a positive variance and lost at least 0. Got {self.variance}, {self.lost}.")

    @staticmethod
    def of(law: LatticeLaw, variance: float) -> GaussianMixture:
        """The law of X + N(0, variance)."""
        import numpy as np

        return GaussianMixture(law.masses, law.start + np.arange(len(law.masses), dtype=np.float64), variance, law.distance)
