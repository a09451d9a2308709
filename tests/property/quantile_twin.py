"""The slow twin of a quantile clip: the map itself in 40 digits, inverted by root finding, and the masses of its cells.

Nothing of `attrpriv` is used, and neither is the distribution function of the clipped law: C+ and C- are written with quantiles
as they are defined, and the point where the clipped value crosses a cell's edge is searched for. `Mutant` plants mistakes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import mpmath
from mpmath import mpf
from scipy.special import ndtri

DIGITS = 40


def quantile(p: mpf) -> mpf:
    """Phi^-1, by Newton's method on the logarithm of the smaller tail."""
    if p > 0.5:
        return -quantile(1 - p)
    z = mpf(float(ndtri(float(p))))
    for _ in range(3):  # from 1e-12 to 1e-24, 1e-48 and beyond
        tail = mpmath.ncdf(z)
        z -= mpmath.log(tail / p) * tail / mpmath.npdf(z)
    return z


@dataclass(frozen=True)
class Twin:
    """e1 and e2; `lower` False: nothing is clipped from below (a mutant)."""

    e1: float
    e2: float
    lower: bool = True

    def upper_end(self, z: mpf) -> mpf:
        raised = mpmath.exp(mpf(self.e1)) * mpmath.ncdf(z)
        other = -quantile(mpmath.exp(-mpf(self.e2)) * mpmath.ncdf(-z))
        return other if raised >= 1 else min(quantile(raised), other)

    def moved(self, t: float, z: mpf) -> mpf:
        """What becomes of z + t."""
        kept = min(z + t, self.upper_end(z))
        return max(kept, -self.upper_end(-z)) if self.lower else kept

    def crossing(self, t: float, y: mpf) -> mpf:
        """The z at which the moved value reaches y: it grows with z."""

        def above(z: mpf) -> mpf:
            return self.moved(t, z) - y

        low, high = -14.0, 14.0
        with mpmath.workdps(24):
            for _ in range(26):
                middle = (low + high) / 2
                low, high = (low, middle) if above(mpf(middle)) > 0 else (middle, high)
        if high == 14.0 or low == -14.0:  # only a mutant goes there
            return mpf(low)
        first, second = mpf(low) - mpf("1e-9"), mpf(high) + mpf("1e-9")
        at_first, at_second = above(first), above(second)
        for _ in range(20):  # secants
            if abs(at_second) < mpf(10) ** -DIGITS:
                return second
            first, at_first, second = second, at_second, second - at_second * (second - first) / (at_second - at_first)
            at_second = above(second)
        raise ArithmeticError("no crossing")

    def masses(self, t: float, edges: Sequence[mpf]) -> list[mpf]:
        """Of the cells between the edges, and of both ends."""
        at = [self.crossing(t, y) for y in edges]
        inside = [_between(a, b) for a, b in itertools.pairwise(at)]
        return [mpmath.ncdf(at[0]), *inside, mpmath.ncdf(-at[-1])]


def _between(a: mpf, b: mpf) -> mpf:
    return mpmath.ncdf(b) - mpmath.ncdf(a) if a < 0 else mpmath.ncdf(-a) - mpmath.ncdf(-b)


def max_divergence(p: Sequence[mpf], q: Sequence[mpf]) -> mpf:
    return mpf(max(mpmath.log(a / b) if b > 0 else mpmath.inf for a, b in zip(p, q, strict=True) if a > 0))


def hockey_stick(p: Sequence[mpf], q: Sequence[mpf], epsilon: float) -> float:
    return float(sum(max(mpf(0), a - mpmath.exp(mpf(epsilon)) * b) for a, b in zip(p, q, strict=True)))
