"""How many rows' values tell as much: the least m for which the best test that sees m rows' values is right as often.

    share, count   m rows of a table of n, none twice: hypergeometric counts, which are all that matters
    mean, sum      m independent rows of the tilted laws: the sum of the values is all that matters, and its law is a power
    best test      right with probability (1 + total variation) / 2, where both values are as likely

A grid of at most 1,024 steps stands for the values of a mean; on whole numbers that vary by no more than that it is exact.
The number of the literature (`n_leaked`, suri2022formalizing) is a lower bound for independent rows, and far from tight. With
r the larger of low/high and (1-high)/(1-low), the Bhattacharyya coefficient of a row's two laws is at least sqrt(r). So m rows
have a total variation of at most sqrt(1 - r^m), and who is right with probability w has seen log(4w(1-w)) / log(r) at least.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from attrpriv.audit.tables import Draws, Floats

_STEPS = 1024


def told_rows(draws: Draws) -> Callable[[float], int]:
    """From a share of right guesses to the least number of rows; all n where even they do not tell as much."""
    right = lru_cache(maxsize=None)(_counted(draws) if draws.statistic.counted else _summed(draws))

    def rows(accuracy: float) -> int:
        if accuracy <= 0.5:
            return 0
        low, high = 0, draws.n
        while high - low > 1:  # more rows never tell less
            middle = (low + high) // 2
            low, high = (low, middle) if right(middle) >= accuracy else (middle, high)
        return high

    return rows


def _counted(draws: Draws) -> Callable[[int], float]:
    from scipy.stats import hypergeom

    inside = [round(mean * draws.n) for mean in draws.means]

    def right(m: int) -> float:
        counts = np.arange(m + 1)
        first, second = (hypergeom.pmf(counts, draws.n, k, m) for k in inside)
        return 0.5 + 0.25 * float(np.abs(first - second).sum())

    return right


def _summed(draws: Draws) -> Callable[[int], float]:
    first, second = _on_a_grid(draws)

    def right(m: int) -> float:
        size = 1 << math.ceil(math.log2(m * (len(first) - 1) + 2))
        sums = [np.fft.irfft(np.fft.rfft(law, size) ** m, size) for law in (first, second)]
        return 0.5 + 0.25 * float(np.abs(sums[0] - sums[1]).sum())

    return right


def _on_a_grid(draws: Draws) -> tuple[Floats, Floats]:
    scores = draws.statistic.scores
    low, span = scores.min(), np.ptp(scores)
    whole = bool(np.all(scores == np.round(scores))) and span <= _STEPS
    steps = int(span) if whole else _STEPS
    place = np.round((scores - low) / span * steps).astype(np.int64)
    first, second = (np.bincount(place, law, steps + 1).astype(np.float64) for law in draws.laws)
    return first, second


def n_leaked(accuracy: float, shares: tuple[float, float]) -> float | None:
    """Suri and Evans' number for two shares: at least so many independent rows. 0 for a coin, None for who is always right.

    >>> round(n_leaked(0.9, (0.27, 0.38)), 2)
    6.26
    """
    if accuracy <= 0.5:
        return 0.0
    low, high = sorted(shares)
    ratio = max(low / high, (1 - high) / (1 - low)) if high > 0 and low < 1 else 0.0
    return math.log(4 * accuracy * (1 - accuracy)) / math.log(ratio) if accuracy < 1 and 0 < ratio < 1 else None
