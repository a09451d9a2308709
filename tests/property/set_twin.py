"""Slow, obvious twins of the set-valued side, for tests only. They call nothing of `attrpriv` that computes.

`brute` puts g on a fine grid and adds up the positive part of f_a - e^eps f_b on a fine grid of outputs. `exact` does the same
in many digits: closed densities, crossings by bisection, quadrature between them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import mpmath
import numpy as np
from numpy.typing import NDArray

Parts = Sequence[tuple[float, float]]
Array = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


def _grid(part: tuple[float, float]) -> tuple[Array, Array]:
    """Points of one interval and log weights proportional to phi, on what matters of it."""
    low, high = part
    mode = min(max(0.0, low), high)
    low, high = max(low, mode - 12.0), min(high, mode + 12.0)
    # Far out the law lives within a few 1/|mode| of its end.
    finest = 4 + math.ceil(math.log2(1 + abs(mode)))
    cuts = np.unique(np.clip([low, high, *(mode + s * 2.0**-k * 12 for s in (-1, 1) for k in range(finest))], low, high))
    half, middle = np.diff(cuts) / 2, (cuts[:-1] + cuts[1:]) / 2
    points = (middle[:, None] + half[:, None] * _NODES).ravel()
    return points, np.log((half[:, None] * _WEIGHTS).ravel()) - points**2 / 2


def _sample(parts: Parts) -> tuple[Array, Array]:
    """Points of a set and their probabilities given the set."""
    grids = [_grid(part) for part in parts]
    points, logs = np.concatenate([g for g, _ in grids]), np.concatenate([w for _, w in grids])
    weights = np.exp(logs - logs.max())
    keep = weights > 1e-40
    return points[keep], weights[keep] / weights.sum()


def densities(parts: Parts, lam: float, w: Array) -> Array:
    """The density of lam g + N at each w, given that g lies in the set."""
    points, weights = _sample(parts)
    return np.exp(-((w[:, None] - lam * points) ** 2) / 2) @ weights / math.sqrt(2 * math.pi)


def brute(a: Parts, b: Parts, lam: float, epsilon: float, count: int = 6001) -> float:
    """H_epsilon by adding up; good to about 1e-6 of itself where it is not tiny."""
    points = [_sample(parts)[0] for parts in (a, b)]
    low, high = min(p.min() for p in points), max(p.max() for p in points)
    w = np.linspace(lam * low - 9, lam * high + 9, count)
    gain = np.maximum(0.0, densities(a, lam, w) - math.exp(epsilon) * densities(b, lam, w))
    return float(gain.sum() * (w[1] - w[0]))


def _mass(low: mpmath.mpf, high: mpmath.mpf) -> mpmath.mpf:
    root = mpmath.sqrt(2)
    if low > 0:
        return (mpmath.erfc(low / root) - mpmath.erfc(high / root)) / 2
    return (mpmath.erfc(-high / root) - mpmath.erfc(-low / root)) / 2


def exact_density(parts: Parts, lam: float, w: mpmath.mpf) -> mpmath.mpf:
    """f(w) = n(w; 0, 1 + lam^2) P(g in U | w) / P(g in U)."""
    lam = mpmath.mpf(lam)
    kappa = 1 + lam**2
    mean, sd = lam * w / kappa, 1 / mpmath.sqrt(kappa)
    given = sum(_mass((mpmath.mpf(low) - mean) / sd, (mpmath.mpf(high) - mean) / sd) for low, high in parts)
    prior = sum(_mass(mpmath.mpf(low), mpmath.mpf(high)) for low, high in parts)
    return mpmath.exp(-w * w / (2 * kappa)) / mpmath.sqrt(2 * mpmath.pi * kappa) * given / prior


def exact(a: Parts, b: Parts, lam: float, epsilon: float, digits: int = 25, panels: int = 48) -> mpmath.mpf:
    """H_epsilon in many digits. Far out in the tails outputs are measured from where the first law lives."""
    with mpmath.workdps(digits):
        points, weights = _sample(a)
        centre, reach = lam * float(points @ weights), 9 + lam * (points.max() - points.min())
        edges = [mpmath.mpf(x) for x in np.linspace(centre - reach, centre + reach, panels + 1)]

        def gain(w: mpmath.mpf) -> mpmath.mpf:
            return exact_density(a, lam, w) - mpmath.exp(epsilon) * exact_density(b, lam, w)

        values = [gain(w) for w in edges]
        cuts = [edges[0]]
        for left, right, start, end in zip(edges, edges[1:], values, values[1:], strict=False):
            if (start > 0) != (end > 0):
                cuts.append(_root(gain, left, right, start > 0))
        cuts.append(edges[-1])
        total = mpmath.mpf(0)
        for left, right in itertools.pairwise(cuts):
            if gain((left + right) / 2) > 0:
                pieces = mpmath.linspace(left, right, max(2, int(right - left) + 2))
                total += mpmath.quad(gain, pieces, method="gauss-legendre", maxdegree=4)
        return total


def _root(gain: object, left: mpmath.mpf, right: mpmath.mpf, falling: bool) -> mpmath.mpf:
    assert callable(gain)
    for _ in range(70):
        middle = (left + right) / 2
        left, right = (middle, right) if (gain(middle) > 0) == falling else (left, middle)
    return (left + right) / 2
