"""The slow twin of a hierarchy: the exact law of what is released, from the joint law of everything, and its loss.

Nothing of `attrpriv` is used. The joint covariance of (phi_i, x_i, x_j) is written down and conditioned on phi_i = a. The law
of the clamped release is then a sum over the three pieces of the clamp, each a Gaussian density times a probability;
`by_quadrature` integrates the same law over x_i with mpmath, as a check of that closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import norm

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Twin:
    """Means are 0: of the populations' means, standard deviations and correlation; of the averages, standard errors."""

    query_between: float
    hidden_between: float
    correlation: float
    query_within: float
    hidden_within: float

    def joint(self) -> Array:
        """The covariance of (phi_i, x_i, x_j)."""
        s_i, s_j = self.hidden_between**2, self.query_between**2
        s_ij = self.correlation * self.hidden_between * self.query_between
        return np.array([[s_i, s_i, s_ij], [s_i, s_i + self.hidden_within**2, s_ij], [s_ij, s_ij, s_j + self.query_within**2]])

    def given(self, a: float) -> tuple[Array, Array]:
        """Mean and covariance of (x_i, x_j) given phi_i = a, by the usual formula."""
        c = self.joint()
        return c[1:, 0] / c[0, 0] * a, c[1:, 1:] - np.outer(c[1:, 0], c[0, 1:]) / c[0, 0]


@dataclass(frozen=True)
class Release:
    """F - y + clip(y, -low, high) + N(0, scale^2), y = slope (x_i + N(0, mask^2)): two ends, so that a mutant can lack one."""

    slope: float
    low: float
    high: float
    mask: float
    scale: float

    def density(self, twin: Twin, a: float, o: Array) -> Array:
        """Of the released value given phi_i = a."""
        mean, cov = twin.given(a)
        assert cov[0, 1] == 0 or abs(cov[0, 1]) < 1e-12 * math.sqrt(cov[0, 0] * cov[1, 1])  # columns independent given phi
        v, e = cov[1, 1] + self.scale**2, self.slope**2 * (cov[0, 0] + self.mask**2)
        y, f = self.slope * mean[0], mean[1]  # y is N(y, e), F is N(f, v)
        inside = ndtr((self.high - y) / math.sqrt(e)) - ndtr((-self.low - y) / math.sqrt(e))
        total = norm.pdf(o, f, math.sqrt(v)) * inside
        # Beyond an end t, the value is F - y + t. Given F - y = z, y is normal again.
        for end, sign in ((self.high, 1.0), (-self.low, -1.0)):
            if math.isfinite(end):
                z = o - end
                centre = y - (z - (f - y)) * e / (v + e)
                beyond = ndtr(sign * (centre - end) / math.sqrt(v * e / (v + e)))
                total = total + norm.pdf(z, f - y, math.sqrt(v + e)) * beyond
        return np.asarray(total)

    def by_quadrature(self, twin: Twin, a: float, o: float) -> float:
        """The same density, by integrating over y with 30 digits."""
        mean, cov = twin.given(a)
        with mpmath.workdps(30):
            v, e = mpmath.mpf(cov[1, 1]) + self.scale**2, mpmath.mpf(self.slope) ** 2 * (cov[0, 0] + self.mask**2)
            centre, wide = self.slope * mean[0], mpmath.sqrt(e)

            def integrand(y: mpmath.mpf) -> mpmath.mpf:
                kept = min(max(y, -self.low), self.high)
                return mpmath.npdf(y, centre, wide) * mpmath.npdf(o, mean[1] - y + kept, mpmath.sqrt(v))

            ends = sorted({*(centre + k * wide for k in range(-12, 13, 2)), -self.low, self.high})
            return float(mpmath.quad(integrand, [end for end in ends if mpmath.isfinite(end)]))

    def delta(self, twin: Twin, a: float, b: float, epsilon: float, points: int = 40_001) -> float:
        """The hockey-stick divergence of the laws given a and given b, the larger of both ways, on a fine grid."""
        centres = [self._centre(twin, a), self._centre(twin, b)]
        cov = twin.given(a)[1]
        wide = math.sqrt(cov[1, 1] + self.scale**2 + self.slope**2 * (cov[0, 0] + self.mask**2))
        o = np.linspace(min(centres) - 14 * wide, max(centres) + 14 * wide, points)
        p, q = self.density(twin, a, o), self.density(twin, b, o)
        step, factor = o[1] - o[0], math.exp(epsilon)
        return float(max(np.maximum(p - factor * q, 0).sum(), np.maximum(q - factor * p, 0).sum()) * step)

    def _centre(self, twin: Twin, a: float) -> float:
        mean, _ = twin.given(a)
        y = self.slope * mean[0]
        return float(mean[1] - y + min(max(y, -self.low), self.high))

    def worst(self, twin: Twin, low: float, high: float, apart: float, epsilon: float) -> float:
        """Over pairs of a grid of values from low to high at most `apart` from each other."""
        values = np.linspace(low, high, 9)
        return max(
            self.delta(twin, float(a), float(min(a + d, high)), epsilon, 4001)
            for a in values[:-1]
            for d in np.linspace(apart / 4, apart, 4)
        )
