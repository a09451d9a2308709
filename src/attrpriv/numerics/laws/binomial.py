"""Tails of the binomial law, rounded up.

    P(Bin(n, p) < k) = I_{1-p}(n - k + 1, k)          P(Bin(n, p) > k) = P(Bin(n, 1-p) < n - k)

What must never change: both are at least the truth; the incomplete beta function is trusted to nine digits down to 1e-100, no
further.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.records import Number, exactly
from attrpriv.numerics.rounding import SOLVED_UP, ULP
from attrpriv.numerics.special import log_factorials

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

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


# ----------------------------------------------------------------------------------------------------------------------------
# Both tails of a binomial law over its whole support, as logarithms: nothing underflows, also for a million rows.
#
#     log f(k) = log n! - log k! - log (n-k)! + k log p + (n-k) log(1-p)
#     log_below[k] = log P(X <= k),   log_above[k] = log P(X > k)             k = 0..n, each true value within +- error
#
# | symbol | here |
# |---|---|
# | L | a logarithm of a tail, summed from its end: L_k = log(e^L_(k-1) + f(k)), one rounding c (1 + abs L_k) 2^-52 a step |
#
# The bound. A rounding at step j reaches step k with weight S_j/S_k, S = e^L. The tails of a log-concave law are log-concave,
# so S_j/S_k <= rho^(k-j) with rho = S_(k-1)/S_k = 1 - f(k)/S_k, and (1 + |L_k| + x) e^-x decreases in x. The roundings that
# reach step k therefore add up to at most c 2^-52 (2 + |L_k|) S_k/f(k). The logarithms of f carry eight units of their
# largest terms. At every k the smaller tail is the one that was summed; the other is its complement, and its logarithm is no
# less accurate.
#
# What must never change: `error` bounds every entry of both arrays that is not an exact 0 or -inf.


@dataclass(frozen=True, eq=False)
class LogTails:
    """Logarithms of P(X <= k) and of P(X > k), k = 0..n, and a bound on their absolute error."""

    n: int
    log_below: Array
    log_above: Array
    error: float

    @property
    def start(self) -> int:
        """The first value."""
        return 0


@dataclass(frozen=True, eq=False)
class BinomialTails(LogTails):
    """Those of Bin(n, p).

    `n` and `p` are its numbers, `log_below[k]` and `log_above[k]` the logarithms of P(X <= k) and P(X >= k), `error` how far
    these may be off. Made by `binomial_tails`.
    """

    p: Number


def binomial_tails(n: int, p: Number) -> BinomialTails:
    """The tails of Bin(n, p), 0 < p < 1.

    `n` is the number of rows, `p` the probability of each.

    >>> tails = binomial_tails(4, 0.4)
    >>> [round(math.exp(x), 4) for x in tails.log_below]
    [0.1296, 0.4752, 0.8208, 0.9744, 1.0]
    >>> round(binomial_tails(1_000_000, 0.4).log_above[-2])         # 0.4 to the power of a million
    -916291
    """
    import numpy as np

    if n < 1 or not (p >= 1e-290 and 1 - p >= 1e-290):
        raise UsageError(f"binomial: needs n at least 1 and p from 1e-290 to below 1. Got n = {n}, p = {p}.")
    masses, error = _log_masses(n, p)
    lower = np.asarray(np.logaddexp.accumulate(masses), dtype=np.float64)
    upper = np.append(np.logaddexp.accumulate(masses[:0:-1])[::-1], -math.inf)
    # At every k one of the two is at most about a half: that one was summed, and the other one is its complement.
    small = lower <= upper
    small[-1] = False
    spread = max(_roundings(lower[small], masses[small]), _roundings(upper[:-1][~small[:-1]], masses[1:][~small[:-1]]))
    below = np.where(small, lower, np.log1p(-np.exp(np.minimum(upper, -ULP))))
    above = np.where(small, np.log1p(-np.exp(np.minimum(lower, -ULP))), upper)
    for array in (below, above):
        array.flags.writeable = False
    return BinomialTails(n, below, above, 2 * (error + spread) + 16 * ULP, p)


def _log_masses(n: int, p: Number) -> tuple[Array, float]:
    """log f(k) for k = 0..n, and a bound on the error: eight units of the terms, each from a function good to four."""
    import numpy as np

    k = np.arange(n + 1, dtype=np.float64)
    factorials = log_factorials(n)
    log_p, log_q = _log(exactly(p)), _log(1 - exactly(p))
    masses = factorials[-1] - (factorials + factorials[::-1]) + (k * log_p + (n - k) * log_q)
    largest = 2 * float(factorials[-1]) + n * max(-log_p, -log_q) + 1
    return np.asarray(masses, dtype=np.float64), 8 * ULP * largest


def _log(p: Fraction) -> float:
    """To a few units of itself, also where p is close to 1."""
    return math.log(p) if 2 * p < 1 else math.log1p(-float(1 - p))


def _roundings(tails: Array, masses: Array) -> float:
    """What summing in logarithms can have added, at the worst of these entries."""
    import numpy as np

    if tails.size == 0:
        return 0.0
    return float(8 * ULP * np.max((2 + np.abs(tails)) * np.exp(tails - masses)))
