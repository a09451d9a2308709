"""Tails of the binomial law, rounded up.

    P(Bin(n, p) < k) = I_{1-p}(n - k + 1, k)          P(Bin(n, p) > k) = P(Bin(n, 1-p) < n - k)

What must never change: both are at least the truth; the incomplete beta function is trusted to nine digits down to 1e-100, no
further.
"""

from __future__ import annotations

import math

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import SOLVED_UP

_LEAST = 1e-100


def binomial_below(n: int, share: float, k: int) -> float:
    """P(Bin(n, share) < k), rounded up.

    >>> binomial_below(4, 0.5, 1) >= 1 / 16
    True
    """
    _require(share)
    # 1 - p is rounded up, which makes few successes likelier.
    return _tail(n, min(1.0, math.nextafter(1 - share, 2.0)), k)


def binomial_above(n: int, share: float, k: int) -> float:
    """P(Bin(n, share) > k), rounded up.

    >>> binomial_above(4, 0.5, 3) >= 1 / 16
    True
    """
    _require(share)
    return _tail(n, share, n - k)


def _tail(n: int, failure: float, k: int) -> float:
    """P(fewer than k successes) where each of n fails with this probability."""
    from scipy.special import betainc

    if k <= 0:
        return 0.0
    if k > n:
        return 1.0
    # The library loses digits far out, where no promise needs them: below this a tail counts as this.
    return min(1.0, float(betainc(n - k + 1, k, failure)) * SOLVED_UP + _LEAST)


def _require(share: float) -> None:
    if not 0 <= share <= 1:
        raise UsageError(f"share: must be from 0 to 1. Got {share}.")
