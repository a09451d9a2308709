"""Special functions of single numbers, from the standard library: loading SciPy's takes longer than most plans.

| function | how far it may be off, in units of 2^-52 of itself |
|---|---|
| `normal_cdf`, `log_normal_cdf` | 8, and z^2 more for what rounding z / sqrt(2) does to the smaller tail |
| `normal_quantile` | 8; of a chance near 1 as far as the chance itself is rounded |
| `log_factorials` | 4 |

What must never change: no function is further off than that, far out in the tails too, because the slack of certificates counts
on it. Long arrays are SciPy's matter, and so is what records compare to the last digit.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_ROOT = math.sqrt(0.5)
_HALF_LOG_TWO_PI = math.log(2 * math.pi) / 2
# Below this `erfc` comes near the smallest floats.
_FAR = -37.0
# Up to this one factorials are whole numbers; from there on what is left out of Stirling's series is below 2^-52.
_WHOLE = 64


def normal_cdf(z: float) -> float:
    """Phi(z), the chance that a standard normal is at most z.

    >>> normal_cdf(0.0), round(normal_cdf(-1.96), 4)
    (0.5, 0.025)
    """
    return math.erfc(-z * _ROOT) / 2


def normal_cdfs(z: Array) -> Array:
    """Phi of each of some numbers."""
    import numpy as np

    return np.fromiter(map(math.erfc, (z * -_ROOT).tolist()), np.float64, len(z)) / 2


def log_normal_cdf(z: float) -> float:
    """log Phi(z).

    >>> round(log_normal_cdf(-100.0), 6), log_normal_cdf(9.0) < 0
    (-5005.524209, True)
    """
    if z > -1:
        return math.log1p(-math.erfc(z * _ROOT) / 2)
    if z > _FAR:
        return math.log(math.erfc(-z * _ROOT) / 2)
    # Terms alternate and fall, so that all that is left out is below the first one of it, 10395 w^6.
    w = 1 / (z * z)
    series = -w * (1 - w * (3 - w * (15 - w * (105 - w * 945))))
    return -z * z / 2 - math.log(-z) - _HALF_LOG_TWO_PI + math.log1p(series)


def normal_quantile(chance: float) -> float:
    """The z with Phi(z) = chance.

    >>> normal_quantile(0.5), round(normal_quantile(0.975), 6), normal_quantile(1.0)
    (0.0, 1.959964, inf)
    """
    from statistics import NormalDist

    if not 0 < chance < 1:
        return {0.0: -math.inf, 1.0: math.inf}.get(chance, math.nan)
    return NormalDist().inv_cdf(chance)


def log_factorials(n: int) -> Array:
    """log k! for k = 0..n.

    >>> log_factorials(3).tolist() == [0.0, 0.0, math.log(2), math.log(6)]
    True
    """
    import numpy as np

    k = np.arange(_WHOLE, n + 1, dtype=np.float64)
    w = 1 / (k * k)
    series = (1 / 12 - w * (1 / 360 - w / 1260)) / k
    return np.concatenate([_first()[: n + 1], (k + 0.5) * np.log(k) - k + (_HALF_LOG_TWO_PI + series)])


@lru_cache(maxsize=1)
def _first() -> Array:
    import numpy as np

    return np.array([math.log(math.factorial(k)) for k in range(_WHOLE)])
