"""The general Wasserstein mechanism of `pierquin2024renyi` with Gaussian noise, and what influence the entries of a chain have.

    gaussian_scale(distance, epsilon, delta)      noise for laws at this infinite Wasserstein distance, by Renyi divergence
    exact_scale(distance, epsilon, delta)         the same by the divergence of two normal laws itself: the least that suffices
    nearly(laws, apart, mass)                     the distance that is left where this much of each law may stay out
    optimum(matrix, length, b)                    the largest loss of an entry over all b-private mechanisms: a linear program

In floats and without rounding: nothing is released by it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import optimize, special

ORDERS = 1 + np.geomspace(1e-2, 1e4, 4000)


def gaussian_scale(distance: float, epsilon: float, delta: float) -> float:
    """R_alpha <= alpha distance^2/(2 sigma^2), turned into (epsilon, delta) at the best order."""

    def reached(sigma: float) -> float:
        renyi = ORDERS * distance**2 / (2 * sigma**2)
        turned = renyi + np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
        return float(turned.min())

    return float(optimize.brentq(lambda sigma: reached(sigma) - epsilon, 1e-3 * distance, 1e4 * distance))


def exact_scale(distance: float, epsilon: float, delta: float) -> float:
    """Their coupling needs no Renyi divergence: whatever two normal laws this far apart keep, the mechanism keeps."""

    def spare(sigma: float) -> float:
        mean = distance / sigma
        kept = special.ndtr(mean / 2 - epsilon / mean) - math.exp(epsilon) * special.ndtr(-mean / 2 - epsilon / mean)
        return float(kept - delta)

    return float(optimize.brentq(spare, 1e-2 * distance, 1e4 * distance, xtol=1e-12 * distance))


def nearly(laws: Mapping[int, Mapping[int, float]], apart: int, mass: float) -> int:
    """The least z such that of each pair all but `mass` can be moved by at most z, by whatever plan leaves the least."""
    pairs = [(laws[a], laws[b]) for a in laws for b in laws if 0 < b - a <= apart]
    widest = max((max(first) - min(second) for pair in pairs for first, second in (pair, pair[::-1])), default=0)
    return next(z for z in range(widest + 1) if all(_left(first, second, z) <= mass for first, second in pairs))


def _left(first: Mapping[int, float], second: Mapping[int, float], z: int) -> float:
    """What cannot be moved by at most z: each value in order takes what is free from the lowest on, which leaves the least."""
    free, left = dict(sorted(second.items())), 0.0
    for x, p in sorted(first.items()):
        for y in free:
            if abs(x - y) <= z:
                part = min(p, free[y])
                p, free[y] = p - part, free[y] - part
        left += p
    return left


def counts(member: float, rest: float, n: int, low: int, high: int) -> dict[int, dict[int, float]]:
    """The law of a count of n rows of which `a` are members, for each a."""
    from scipy import stats

    found = {}
    for a in range(low, high + 1):
        law = np.convolve(stats.binom.pmf(np.arange(a + 1), a, member), stats.binom.pmf(np.arange(n - a + 1), n - a, rest))
        found[a] = {k: float(p) for k, p in enumerate(law)}
    return found


def optimum(matrix: Any, length: int, b: float) -> float:
    """Over all functions L > 0 of a column that change by at most e^b with one entry: the largest E[L | x]/E[L | y]."""
    p = np.asarray(matrix)
    columns = list(itertools.product(range(len(p)), repeat=length))
    place = {column: k for k, column in enumerate(columns)}
    start = _stationary(p)
    chance = np.array([start[c[0]] * math.prod(p[s, t] for s, t in itertools.pairwise(c)) for c in columns])
    rows = []
    for column, k in place.items():
        for i, value in itertools.product(range(length), range(len(p))):
            if value != column[i]:
                row = np.zeros(len(columns))
                row[k], row[place[(*column[:i], value, *column[i + 1 :])]] = 1.0, -math.exp(b)
                rows.append(row)
    worst = 0.0
    for i, (x, y) in itertools.product(range(length), itertools.permutations(range(len(p)), 2)):
        laws = [np.where([c[i] == s for c in columns], chance, 0.0) for s in (x, y)]
        first, second = (law / law.sum() for law in laws)
        found = optimize.linprog(-first, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=second[None, :], b_eq=[1.0])
        worst = max(worst, math.log(-float(found.fun or 0.0)))
    return worst


def _stationary(matrix: Any) -> Any:
    values, vectors = np.linalg.eig(np.asarray(matrix).T)
    found = np.real(vectors[:, int(np.argmin(abs(values - 1)))])
    return found / found.sum()
