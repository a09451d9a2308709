"""What so many right guesses prove: exact limits, a lower bound of epsilon with its cap, and what would not have been seen.

Guesses of targets that are drawn independently are right with a fixed probability, once the attack is fixed; so the limits are
those of Clopper and Pearson (clopper1934use), for which nothing is approximated.

    epsilon   "high" is said of at least a of the high and of at most b of the low ones, with confidence in both: then a
              promise of (epsilon, delta) has a <= e^epsilon b + delta and 1 - b <= e^epsilon (1 - a) + delta
    cap       the same number where all guesses are right: more is never shown by so few targets
"""

from __future__ import annotations

import math
from functools import lru_cache

from attrpriv.assumptions.fit_counts import binomial_limits

POWER = 0.9


def interval(right: int, targets: int, error: float) -> tuple[float, float]:
    """Both limits hold with probability 1 - error at least.

    >>> interval(300, 300, 0.05)
    (0.987779, 1.0)
    """
    return binomial_limits(right, targets, error / 2)


def epsilon_bound(hits: int, highs: int, alarms: int, lows: int, *, delta: float, error: float) -> float:
    """A lower bound of epsilon, from how often "high" was said of high and of low targets; it holds with 1 - error at least.

    >>> round(epsilon_bound(150, 150, 0, 150, delta=1e-6, error=0.05), 2), epsilon_bound(75, 150, 75, 150, delta=0, error=0.05)
    (3.69, 0.0)
    """
    if not highs or not lows:
        return 0.0
    told = binomial_limits(hits, highs, error / 2)[0]
    mistaken = binomial_limits(alarms, lows, error / 2)[1]
    return max(0.0, _epsilon(told, mistaken, delta), _epsilon(1 - mistaken, 1 - told, delta))


def epsilon_cap(highs: int, lows: int, *, delta: float, error: float) -> float:
    """The largest bound that so many targets can show."""
    return epsilon_bound(highs, highs, 0, lows, delta=delta, error=error)


def _epsilon(often: float, seldom: float, delta: float) -> float:
    """The least epsilon with often <= e^epsilon seldom + delta; 0 where any will do."""
    return math.log((often - delta) / seldom) if often > delta and seldom > 0 else 0.0


@lru_cache(maxsize=64)
def least_seen(targets: int, error: float) -> float:
    """The least chance of a right guess that so many targets would have told from a coin's with probability 0.9; 1: none.

    >>> round(least_seen(300, 0.05), 3)
    0.595
    """
    from scipy.stats import binom

    needed = next((k for k in range(targets // 2, targets + 1) if interval(k, targets, error)[0] > 0.5), None)
    if needed is None:
        return 1.0
    low, high = 0.5, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if binom.sf(needed - 1, targets, middle) >= POWER else (middle, high)
    return high
