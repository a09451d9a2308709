"""The squared length Q of calibrated weights, and the chance that it is not enough (docs/theory/calibrated-weights.md).

With A = [1, X] the constant and p sensitive columns of n rows, a0 = (1, t0) and q = a0' (A'A)^-1 a0, a release fails where
q > Q. For Gaussian rows and k secret statistics C xbar that are fixed at gamma,

    n q - 1  =  [ D + chi'2_(p-k)(L) ] / chi2_(n-p),     D = n (C t0 - gamma)' (C Sigma C')^-1 (C t0 - gamma)

with independent numerator and denominator, L <= n (t0 - mu)' Sigma^-1 (t0 - mu). Both D and L only grow when a lower bound
takes the place of Sigma. The noncentral law is replaced by that of (sqrt L + chi_(p-k))^2, which is never smaller.

| symbol | here |
|---|---|
| D, L | `Failure.distance`, `Failure.wander` |
| Q | `bound`, above 1/n |

k = p:  P(chi2_(n-p) < D/(nQ - 1)).  k < p:  the mean of that over the numerator, by steps of its law, each taken at its end.

What must never change: `failure_upper` is at least the truth, and `least_bound` returns a Q for which it was evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.chi_squared import lower_tail_upper, lower_tails_upper, upper_tail_upper
from attrpriv.numerics.rounding import COMPUTED_UP
from attrpriv.numerics.search import largest_private

_STEPS = 160
# Where the law of what is not fixed has less than about e^-100 left.
_FAR = 260.0
# Q is found to this many bits.
_BITS = 26
_UP = 1 + 2.0**-50


@dataclass(frozen=True)
class Failure:
    """One secret's worst case: n rows, p sensitive columns of which k statistics are fixed, at distance D; and L."""

    rows: int
    columns: int
    fixed: int
    distance: float
    wander: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.fixed <= self.columns < self.rows:
            raise UsageError(f"columns: needs 1 <= fixed <= columns < rows. Got {self.fixed}, {self.columns}, {self.rows}.")
        if not (math.isfinite(self.distance) and self.distance >= 0 and math.isfinite(self.wander) and self.wander >= 0):
            raise UsageError(f"distance, wander: must be finite and at least 0. Got {self.distance}, {self.wander}.")


def failure_upper(failure: Failure, bound: float) -> float:
    """At least P(q > bound) in this case.

    >>> failure_upper(Failure(rows=10_000, columns=1, fixed=1, distance=9e4), 1.0635e-3) < 1e-6
    True
    """
    excess = _excess(failure.rows, bound)
    freedom = failure.rows - failure.columns
    if failure.fixed == failure.columns:
        return lower_tail_upper(freedom, failure.distance / excess * _UP)
    return _averaged(failure, excess, freedom)


def _excess(rows: int, bound: float) -> float:
    """nQ - 1, from below."""
    if not (math.isfinite(bound) and bound > 0 and rows * Fraction(bound) > 1):
        raise UsageError("bound: must be finite and above 1/rows.")
    return float(rows * Fraction(bound) - 1) * (1 - 2.0**-50)


def _averaged(failure: Failure, excess: float, freedom: int) -> float:
    """The mean of the lower tail over (sqrt L + chi)^2: with U_i at least the tail at the i-th point and S_i at least the law's
    upper tail there, it is at most U_1 + sum of (U_(i+1) - U_i) S_i, and 1 beyond the last point."""
    import numpy as np

    loose = failure.columns - failure.fixed
    # From here on the tail is taken as 1 anyway.
    certain = max(0.0, math.sqrt(max(0.0, excess * freedom - failure.distance)) - math.sqrt(failure.wander)) ** 2
    points = np.linspace(0.0, min(_FAR, certain), _STEPS + 1)
    reached = failure.distance + (math.sqrt(failure.wander) + np.sqrt(points)) ** 2 * _UP
    below = np.maximum.accumulate(lower_tails_upper(freedom, reached / excess * _UP))
    above = np.minimum.accumulate([upper_tail_upper(loose, float(point)) for point in points])
    steps = float(np.sum(np.diff(below) * above[:-1]))
    return min(1.0, (float(below[0]) + steps + (1 - float(below[-1])) * float(above[-1])) * COMPUTED_UP)


def least_bound(failures: Sequence[Failure], delta: float) -> float:
    """The least Q, to 26 bits and from above, with which every case fails with probability at most delta.

    >>> round(least_bound([Failure(rows=10_000, columns=1, fixed=1, distance=9e4)], 1e-6), 7)
    0.0010635
    """
    if not 0 < delta < 1:
        raise UsageError(f"delta: must be above 0 and below 1. Got {delta}.")
    if not failures or len({failure.rows for failure in failures}) != 1:
        raise UsageError("failures: must be one or more, of the same number of rows.")
    cases, rows = tuple(dict.fromkeys(failures)), failures[0].rows
    room = largest_private(lambda x: _enough(cases, rows, _coarse(x), delta), start=_start(cases))
    return _bound(rows, _coarse(room))


def _start(cases: Sequence[Failure]) -> float:
    """Somewhere near: 1/(nQ - 1) where numerator and denominator are at their means."""
    most = max(case.distance + case.wander + case.columns - case.fixed for case in cases)
    return _coarse((cases[0].rows - cases[0].columns) / max(most, 1e-6))


@lru_cache(maxsize=4096)
def _enough(cases: tuple[Failure, ...], rows: int, room: float, delta: float) -> bool:
    return all(failure_upper(case, _bound(rows, room)) <= delta for case in cases)


def _coarse(x: float) -> float:
    """Rounded down to a few bits, so that the search ends early."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(math.floor(mantissa * 2**_BITS), exponent - _BITS)


def _bound(rows: int, room: float) -> float:
    """The float next above 1/n + 1/(n room)."""
    return math.nextafter(float((1 + 1 / Fraction(room)) / rows), math.inf)
