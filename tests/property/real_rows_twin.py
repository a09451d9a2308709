"""What a released sum over real rows tells, exactly: the slow twin of every certificate that rests on normal rows.

Rows are independent draws from a finite list of rows. Released is F + shift + N(0, noise^2), F the sum of one column over n
rows, and the shift and the noise may depend on the secret: the sum of another column, or how many rows are of a category.
With one weight w for each distinct row (s, q),

    E[e^(iuF); sum s = S] = 1/T sum over T frequencies t of e^(-itS) phi(t, u)^n,     phi(t, u) = sum of w e^(its + iuq)
    E[e^(iuF) | a rows inside] = psi_in(u)^a psi_out(u)^(n - a)

The first is the same under every tilt w e^(theta s) once it is divided by its value at u = 0; theta is such that S is the
mean, where that value is about 1/(sd sqrt(2 pi)). T exceeds the number of possible sums, so that nothing is aliased in S.

The law is returned as the probabilities of bins on a circle of circumference `window`. Folding an answer onto the circle and
rounding it to a bin is post-processing, so that what `delta` and `epsilon` find is *below* what the release gives away,
whatever window and bins are, up to these errors of the probabilities (in total variation):

| error | at most |
|---|---|
| frequencies u with u noise > 10 are left out | sum of e^(-(u noise)^2/2), below 1e-18 |
| powers below e^-45 are left out | e^-45/P(S) for each u, below 1e-12 in all for 10^4 frequencies and P(S) > 1e-3 |
| phi^n in floats, n = 1,000 | n 2^-52 for each u, relatively; in all sqrt(number of u) times that, below 1e-10 |

They count (1 + e^epsilon) times, against a delta of 1e-6. At an epsilon of 12 this bound is not enough: there `tail` computes a
small probability with a *relative* error, from the law tilted by e^(-lean F), and a test compares the two.

Nothing of `attrpriv` is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
_LEAST_POWER = 45.0
_LAST_FREQUENCY = 10.0
_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Column:
    """The distinct values of a column and how probable they are."""

    values: Array
    weights: Array

    @classmethod
    def of(cls, values: Array) -> Column:
        found, counts = np.unique(values, return_counts=True)
        return cls(found, counts / counts.sum())

    def transform(self, z: NDArray[np.complexfloating[Any, Any]]) -> Complex:
        """E[e^(zq)]."""
        total = np.zeros(len(z), dtype=np.complex128)
        for value, weight in zip(self.values, self.weights, strict=True):
            total += weight * np.exp(z * value)
        return total


@dataclass(frozen=True, eq=False)
class Pairs:
    """The distinct rows (s, q) of two columns and how probable they are; s is whole numbers."""

    s: Array
    q: Array
    weights: Array

    @classmethod
    def of(cls, s: Array, q: Array) -> Pairs:
        found, counts = np.unique(np.stack([s, q]), axis=1, return_counts=True)
        return cls(found[0], found[1], counts / counts.sum())

    def tilted(self, mean: float) -> Pairs:
        """The same rows with such weights w e^(theta s) that s has this mean."""
        d = self.s - mean
        widest = 50 / float(np.abs(d).max())
        theta = float(brentq(lambda t: float((self.weights * np.exp(t * d)) @ d), -widest, widest))
        weights = self.weights * np.exp(theta * d)
        return Pairs(self.s, self.q, weights / weights.sum())


@dataclass(frozen=True)
class Circle:
    """Where answers are looked at."""

    window: float
    bins: int

    def frequencies(self, noise: float) -> Array:
        """Those that noise of this standard deviation leaves; the bins must show all of them."""
        count = math.ceil(_LAST_FREQUENCY * self.window / (2 * math.pi * noise))
        if not count <= self.bins // 2:
            raise ValueError(f"bins: must be {2 * count} or more. Got {self.bins}.")
        return np.asarray(2 * math.pi / self.window * np.arange(count + 1), dtype=np.float64)

    def probabilities(self, transform: Complex, u: Array) -> Array:
        """Of each bin; bin j is centred at j window/bins, and the first one at 0."""
        width = self.window / self.bins
        full = np.zeros(self.bins // 2 + 1, dtype=np.complex128)
        full[: len(u)] = np.conj(transform) * np.sinc(u * width / (2 * math.pi))
        return np.asarray(np.fft.irfft(full, self.bins))


def given_sum(rows: Pairs, n: int, total: int, noise: float, shift: float, circle: Circle) -> Array:
    """The law of F + shift + N(0, noise^2) where the sum of s is `total`."""
    u, mean = circle.frequencies(noise), total / n
    tilted = rows.tilted(mean)
    centre = float(tilted.weights @ tilted.q)
    values = np.unique(tilted.s)
    parts = [Column(tilted.q[tilted.s == v] - centre, tilted.weights[tilted.s == v]) for v in values]
    inner = np.stack([part.transform(1j * u) for part in parts], axis=1)
    frequencies = 1 << math.ceil(math.log2((values[-1] - values[0]) * n + 1))
    turns = np.exp(1j * np.outer(values - mean, 2 * math.pi / frequencies * np.arange(frequencies)))
    joint = np.empty(len(u), dtype=np.complex128)
    for k in range(0, len(u), _AT_ONCE):
        phi = inner[k : k + _AT_ONCE] @ turns
        large = np.abs(phi) > math.exp(-_LEAST_POWER / n)
        powers = np.zeros_like(phi)
        powers[large] = phi[large] ** n
        joint[k : k + _AT_ONCE] = powers.sum(axis=1) / frequencies
    moved = np.exp(1j * u * (n * centre + shift) - (noise * u) ** 2 / 2)
    return circle.probabilities(joint / joint[0].real * moved, u)


def given_count(inside: Column, outside: Column, n: int, count: int, noise: float, shift: float, circle: Circle) -> Array:
    """The law of F + shift + N(0, noise^2) where `count` rows are inside the category."""
    u = circle.frequencies(noise)
    moved = np.exp(1j * u * shift - (noise * u) ** 2 / 2)
    for side, rows in ((inside, count), (outside, n - count)):
        moved = moved * side.transform(1j * u) ** rows
    return circle.probabilities(moved, u)


def tail(
    inside: Column, outside: Column, n: int, count: int, noise: float, shift: float, below: float, lean: float, circle: Circle
) -> float:
    """P(F + shift + noise < below) where `count` rows are inside; `lean` is such that the tilted law is near `below`.

    From the density of the tilted law, by the midpoint rule. What lies more than half a window from `below` is left out.
    """
    z = 1j * circle.frequencies(noise) - lean
    logs = count * np.log(inside.transform(z)) + (n - count) * np.log(outside.transform(z)) + z * shift + (noise * z) ** 2 / 2
    size = float(logs[0].real)
    width, half = circle.window / circle.bins, circle.bins // 2
    full = np.zeros(half + 1, dtype=np.complex128)
    full[: len(z)] = np.conj(np.exp(logs - size - 1j * z.imag * (below - width / 2)))
    under = np.fft.irfft(full, circle.bins)[-np.arange(half)]  # at below - (k + 1/2) width
    distance = width / 2 + width * np.arange(half)
    return float((under * np.exp(size + lean * (below - distance))).sum())


def delta(p: Array, q: Array, epsilon: float) -> float:
    """The hockey-stick divergence of two laws on the same bins; what is below 1e-13 in a bin is taken for rounding."""
    seen = p > 1e-13
    return float(np.maximum(p[seen] - math.exp(epsilon) * np.maximum(q[seen], 0.0), 0.0).sum())


def epsilon(p: Array, q: Array, delta_: float, most: float = 25.0) -> float:
    """The least epsilon at which this delta is enough, in both directions; `most` where none below is."""
    low, high = 0.0, most
    for _ in range(40):
        middle = (low + high) / 2
        enough = max(delta(p, q, middle), delta(q, p, middle)) <= delta_
        low, high = (low, middle) if enough else (middle, high)
    return high
