"""The one search for a threshold, which returns the private side.

Contract: `is_private` is monotone (true below a threshold, false above). The value returned has itself been shown to
`is_private` and was found true; no root-finder value that merely lies near the threshold ever leaves this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from attrpriv.errors import UsageError

_STEPS = 2000


def largest_private(is_private: Callable[[float], bool], start: float = 1.0) -> float:
    """The largest positive float found for which `is_private` holds.

    >>> largest_private(lambda x: x * x <= 2.0) ** 2 <= 2.0
    True
    """
    low = _below(is_private, start)
    high = _above(is_private, low)
    for _ in range(_STEPS):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if is_private(middle) else (low, middle)
    return low


def _below(is_private: Callable[[float], bool], start: float) -> float:
    value = start
    while not is_private(value):
        value /= 2
        if value == 0.0:
            raise UsageError("calibration: no positive value is private; the promise is out of reach of floats.")
    return value


def _above(is_private: Callable[[float], bool], low: float) -> float:
    value = 2 * low
    while is_private(value):
        value *= 2
        if not math.isfinite(value):
            raise UsageError("calibration: every value is private; there is no threshold to find.")
    return value
