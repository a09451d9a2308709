"""Whole-number Laplace noise around a shift: how likely, and how far on average, d + Z is from 0.

    P(Z = k) = (1 - q)/(1 + q) q^|k|,  q = e^(-1/scale)
    P(Z > k) = q^(k+1)/(1 + q)  for k >= 0,   1 - P(Z > -k - 1)  below
    E|d + Z| = |d| + 2 q^(|d|+1)/(1 - q^2)

Both are even in d. For expected errors: nothing that is promised rests on them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def mean_size(scale: float, shifts: Array) -> Array:
    """E|d + Z| of each shift d.

    >>> import numpy as np
    >>> mean_size(1.0, np.array([0.0, 3.0])).round(4).tolist()
    [0.8509, 3.0424]
    """
    import numpy as np

    d, q = np.abs(shifts), math.exp(-1 / scale)
    return np.asarray(d + 2 * np.exp(-(d + 1) / scale) / (-math.expm1(-1 / scale) * (1 + q)), dtype=np.float64)


def beyond(scale: float, shifts: Array, t: float | Array) -> Array:
    """P(|d + Z| > t) of each shift d, for whole t at least 0.

    >>> import numpy as np
    >>> beyond(1.0, np.array([0.0, 3.0]), 1).round(4).tolist()
    [0.1979, 0.906]
    """
    import numpy as np

    d = np.abs(shifts)
    return np.asarray(_above(scale, t - d) + _above(scale, t + d), dtype=np.float64)


def _above(scale: float, k: Array) -> Array:
    """P(Z > k)."""
    import numpy as np

    small = np.exp(-(np.where(k >= 0, k + 1, -k)) / scale) / (1 + math.exp(-1 / scale))
    return np.asarray(np.where(k >= 0, small, 1 - small), dtype=np.float64)
