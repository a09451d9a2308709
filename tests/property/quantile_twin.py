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
    """Phi^-1, by Newton's method on log Phi or on log (1 - Phi), whichever is the smaller."""
    if p > 0.5:
        return -quantile(1 - p)
    z = mpf(float(ndtri(float(p))))
    for _ in range(40):
        tail = mpmath.ncdf(z)
        step = mpmath.log(tail / p) * tail / mpmath.npdf(z)
        z -= step
        if abs(step) < mpf(10) ** (-DIGITS // 2 - 4):  # the next one would be below 1e-(DIGITS + 8)
            return z - mpmath.log(mpmath.ncdf(z) / p) * mpmath.ncdf(z) / mpmath.npdf(z)
    raise ArithmeticError("no quantile")


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

        low, high = mpf(-14), mpf(14)
        if above(low) > 0:
            return low
        if above(high) < 0:
            return high
        return mpmath.findroot(above, (low, high), solver="ridder", tol=mpf(10) ** (-2 * DIGITS), maxsteps=200, verify=False)

    def masses(self, t: float, edges: Sequence[mpf]) -> list[mpf]:
        """Of the cells between the edges, and of both ends."""
        at = [self.crossing(t, y) for y in edges]
        inside = [_between(a, b) for a, b in itertools.pairwise(at)]
        return [mpmath.ncdf(at[0]), *inside, mpmath.ncdf(-at[-1])]


def _between(a: mpf, b: mpf) -> mpf:
    return mpmath.ncdf(b) - mpmath.ncdf(a) if a < 0 else mpmath.ncdf(-a) - mpmath.ncdf(-b)


def max_divergence(p: Sequence[mpf], q: Sequence[mpf]) -> float:
    return float(max(mpmath.log(a / b) if b > 0 else mpmath.inf for a, b in zip(p, q, strict=True) if a > 0))


def hockey_stick(p: Sequence[mpf], q: Sequence[mpf], epsilon: float) -> float:
    return float(sum(max(mpf(0), a - mpmath.exp(mpf(epsilon)) * b) for a, b in zip(p, q, strict=True)))
