"""The one search for a threshold, which returns the private side.

Contract: `is_private` is monotone (true below a threshold, false above). The value returned has itself been shown to
`is_private` and was found true; no root-finder value that merely lies near the threshold ever leaves this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from attrpriv.errors import AttrprivError, UsageError

_STEPS = 2000
# So many guesses by a line; then halves.
_GUESSES = 30
# e to this power is near the end of the floats; a promise at such an epsilon says nothing.
_LARGEST_EPSILON = 500.0


def largest_private(is_private: Callable[[float], bool], start: float = 1.0) -> float:
    """The largest positive float found for which `is_private` holds.

    The search begins at `start`.

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


def least_place(reached: Callable[[int], float], delta: float, start: int, step: int) -> int:
    """The least whole number with reached(number) <= delta, for `reached` falling: shown to hold, and not to hold one before.

    The logarithm of `reached` is nearly a line, so that few values of it are asked for (the Illinois rule).

    >>> least_place(lambda k: math.exp(-k / 100), 1e-6, 7, 64)
    1382
    """
    low, high, at_low, at_high = start - step, start, math.nan, reached(start)
    while not at_high <= delta:
        low, high, at_low, at_high = high, high + step, at_high, reached(high + step)
    while not at_low > delta:
        at_low = reached(low)
        if at_low <= delta:
            low, high, at_high, at_low = low - step, low, at_low, math.nan
            if start - low > _STEPS * step:
                raise UsageError("calibration: every value is private; there is no threshold to find.")
    above, below, moved = _log_share(at_low, delta), _log_share(at_high, delta), 0
    for count in range(_STEPS):
        if high - low <= 1:
            break
        share = above / (above - below) if count < _GUESSES and math.isfinite(above - below) and above > below else 0.5
        middle = min(max(low + round((high - low) * share), low + 1), high - 1)
        found = reached(middle)
        if found <= delta:
            high, below, above, moved = middle, _log_share(found, delta), above / (2 if moved > 0 else 1), 1
        else:
            low, above, below, moved = middle, _log_share(found, delta), below / (2 if moved < 0 else 1), -1
    return high


def _log_share(found: float, delta: float) -> float:
    return math.log(found) - math.log(delta) if found > 0 and delta > 0 else -math.inf


def least_epsilon(reached: Callable[[float], float], delta: float, *, start: float = 1.0, close: float = 1e-3) -> float:
    """An epsilon with reached(epsilon) <= delta, at most a share `close` above the least one; infinite where none is found.

    `reached` should fall with epsilon. Its logarithm is nearly a line, so that few values of it are asked for.

    >>> round(least_epsilon(lambda epsilon: math.exp(-8 * epsilon), 1e-6, close=1e-6), 4)
    1.7269
    """
    low, at_low = 0.0, math.nan
    high = start if math.isfinite(start) and start > 0 else 1.0
    at_high = reached(high)
    while not at_high <= delta:
        low, at_low, high = high, at_high, 2 * high
        if high > _LARGEST_EPSILON:
            return math.inf
        at_high = reached(high)
    if low == 0.0:
        at_low = reached(0.0)
        if at_low <= delta:
            return 0.0
    for _ in range(_STEPS):
        if high - low <= close * high:
            break
        middle = _between(low, high, at_low, at_high, delta, close)
        found = reached(middle)
        if found <= delta:
            high, at_high = middle, found
        else:
            low, at_low = middle, found
    return high


def _between(low: float, high: float, at_low: float, at_high: float, delta: float, close: float) -> float:
    """Where the line through both logarithms meets delta, a little above it; the middle where there is no such line."""
    width = high - low
    if not (at_high > 0 and math.isfinite(at_low) and at_low > at_high and delta > 0):
        return low + width / 2
    share = math.log(at_low / delta) / math.log(at_low / at_high)
    guess = low + width * share
    # On the private side if the line is right, so that the next guess can close in from below.
    guess = guess + close * high / 4 if guess + close * high / 4 < high else guess - close * high / 2
    return min(max(guess, low + width / 20), high - width / 20)


def least_at(function: Callable[[float], float], low: float, high: float, steps: int = 60) -> float:
    """Where a function of one valley is least, nearly: golden section. For expected errors; a promise never rests on it.

    >>> round(least_at(lambda x: (x - 2) ** 2, 0.0, 5.0), 6)
    2.0
    """
    if not low <= high:
        raise UsageError(f"search: ends must be in order. Got {low}, {high}.")
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return left if at_left <= at_right else right


def or_infinite(bound: Callable[[], float]) -> float:
    """An upper bound; infinite where none can be computed.

    >>> or_infinite(lambda: 2.0)
    2.0
    """
    try:
        return bound()
    except AttrprivError:
        return math.inf
