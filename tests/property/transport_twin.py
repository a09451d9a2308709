"""The slow twin of transported averages: it knows the statement, and nothing of how it is proved or planned.

Rows are normal with a covariance matrix V. Released is F - Y + h(Y) + N(0, noise), Y = slopes (G + masks - centres). Given that
a secret c'x of the averages x is a, everything before h is jointly normal; given Y too, what is released is normal. So the law
of an answer is a mixture of normals of one variance, over a fine quadrature of Y, and the hockey-stick divergence of two such
laws is found from where their densities cross. Nothing of `attrpriv` is used; means are 0 throughout.

`Box` draws covariance matrices of a class, as the documentation of the assumption describes it, and climbs to the worst one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

Array = NDArray[np.float64]
Combination = Mapping[str, float]
_LEGENDRE = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class Mixture:
    """Normals of one standard deviation around several means."""

    weights: Array
    means: Array
    sd: float

    def log_density(self, o: Array) -> Array:
        z = (np.atleast_1d(o)[:, None] - self.means) / self.sd
        exponent = -z * z / 2
        top = exponent.max(axis=1)
        # Up to a constant that both laws of a pair share.
        return np.asarray(top + np.log(np.exp(exponent - top[:, None]) @ self.weights))

    def cdf(self, o: float) -> float:
        return float(self.weights @ ndtr((o - self.means) / self.sd))

    def mass(self, low: float, high: float) -> float:
        """Of an interval, without cancellation on either side."""
        flip = (low + high) / 2 > self.means
        left = np.where(flip, ndtr((self.means - high) / self.sd), ndtr((low - self.means) / self.sd))
        right = np.where(flip, ndtr((self.means - low) / self.sd), ndtr((high - self.means) / self.sd))
        return float(self.weights @ (right - left))


def divergence(p: Mixture, q: Mixture, epsilon: float) -> float:
    """The larger of both hockey-stick divergences: over the intervals where one density exceeds e^epsilon times the other,
    with their ends refined. Log densities of normals of one sd are smooth on the scale of that sd."""
    assert math.isclose(p.sd, q.sd, rel_tol=1e-9)
    low, high, sd = min(p.means.min(), q.means.min()), max(p.means.max(), q.means.max()), p.sd
    inside = np.linspace(low - 6 * sd, high + 6 * sd, min(4000, 60 + 6 * math.ceil((high - low) / sd)))
    far = sd * np.geomspace(6.1, 1e5, 60)
    grid = np.concatenate([low - far[::-1], inside, high + far])
    ratio = p.log_density(grid) - q.log_density(grid)
    return max(_beyond(p, q, grid, ratio, epsilon), _beyond(q, p, grid, -ratio, epsilon))


def _beyond(p: Mixture, q: Mixture, grid: Array, ratio: Array, epsilon: float) -> float:
    def excess(o: float) -> float:
        point = np.array([o])
        return float((p.log_density(point) - q.log_density(point))[0]) - epsilon

    above = ratio > epsilon
    ends = [brentq(excess, grid[k], grid[k + 1], xtol=1e-12 * p.sd) for k in np.flatnonzero(above[1:] != above[:-1])]
    total, inside = 0.0, bool(above[0])
    for low, high in itertools.pairwise([-math.inf, *ends, math.inf]):
        total += p.mass(low, high) - math.exp(epsilon) * q.mass(low, high) if inside else 0.0
        inside = not inside
    return total


@dataclass(frozen=True)
class Release:
    """What is done to the averages; `low` and `high` apart, so that a mutant can lack one."""

    queries: tuple[str, ...]
    reads: tuple[Combination, ...]
    slopes: Array
    low: float
    high: float
    noise: Array
    period: float | None = None
    metric: Array | None = None
    masks: tuple[float, ...] = ()
    centres: tuple[float, ...] = ()

    def shown(self, y: Array) -> Array:
        """h of one average; of several, for points in rows."""
        if self.metric is None:
            if self.period is None:
                return np.asarray(np.clip(y, -self.low, self.high))
            stairs = np.floor(y / self.period + 0.5)
            rise = min(self.low + self.high, self.period)
            return np.asarray(stairs * rise + np.clip(y - stairs * self.period, -self.low, self.high))
        length = np.sqrt(np.einsum("ij,jk,ik->i", y, np.linalg.inv(self.metric), y))
        assert self.period is None
        return np.asarray(y * np.minimum(1.0, self.high / np.maximum(length, 1e-300))[:, None])

    def kinks(self, low: float, high: float) -> list[float]:
        ends = [-self.low, self.high] if self.period is None else []
        if self.period is not None:
            steps = np.arange(math.floor(low / self.period) - 1, math.ceil(high / self.period) + 2)
            ends = [float(m * self.period + s) for m in steps for s in (-self.low, self.high) if self.low < self.period / 2]
        return sorted(end for end in ends if low < end < high)


@dataclass(frozen=True)
class World:
    """Rows with a covariance matrix over named columns, and n of them."""

    names: tuple[str, ...]
    covariance: Array
    n: int

    def rows(self, combinations: Sequence[Combination]) -> Array:
        return np.array([[one.get(name, 0.0) for name in self.names] for one in combinations])

    def given(self, release: Release, secret: Combination, a: float) -> tuple[Array, Array, Array, Array, Array]:
        """Given the secret, which must be among what is read: means of B G and of Y, their covariances MM, MY, YY; and what F
        varies by given G, with noise."""
        v = self.covariance / self.n
        f, g = self.rows([{q: 1.0} for q in release.queries]), self.rows(release.reads)
        s = self.rows([secret])[0]
        inner = g @ v @ g.T
        slopes = f @ v @ g.T @ np.linalg.pinv(inner, rcond=1e-13, hermitian=True)
        left = f @ v @ f.T - slopes @ g @ v @ f.T
        kappa = g @ v @ s / (s @ v @ s)
        spread = inner - np.outer(kappa, kappa) * (s @ v @ s)
        masked = spread + np.diag(np.square(release.masks or (0.0,) * len(g)))
        centres = np.array(release.centres or (0.0,) * len(g))
        b0 = release.slopes
        means = np.concatenate([slopes @ kappa * a, b0 @ (kappa * a - centres)])
        return means, slopes @ spread @ slopes.T, slopes @ spread @ b0.T, b0 @ masked @ b0.T, left + release.noise

    def law(self, release: Release, secret: Combination, a: float) -> Mixture:
        """Of one answer, given the secret."""
        means, mm, my, yy, own = (np.asarray(part) for part in self.given(release, secret, a))
        m, y, spread = float(means[0]), float(means[1]), float(yy[0, 0])
        if spread <= 1e-18 * (float(own[0, 0]) + y * y):
            centre = m - y + release.shown(np.array([y]))
            return Mixture(np.ones(1), centre, math.sqrt(float(own[0, 0] + mm[0, 0])))
        wide = math.sqrt(spread)
        kinks = release.kinks(y - 9 * wide, y + 9 * wide)
        ends = sorted({*kinks, *np.linspace(y - 9 * wide, y + 9 * wide, 9)})
        nodes = np.concatenate([(a + b) / 2 + (b - a) / 2 * _LEGENDRE[0] for a, b in itertools.pairwise(ends)])
        weights = np.concatenate([(b - a) / 2 * _LEGENDRE[1] for a, b in itertools.pairwise(ends)])
        weights = weights * np.exp(-(((nodes - y) / wide) ** 2) / 2)
        tie = float(my[0, 0]) / spread
        centres = m + tie * (nodes - y) - nodes + release.shown(nodes)
        return Mixture(
            weights / weights.sum(), centres, math.sqrt(max(0.0, float(mm[0, 0]) - tie * float(my[0, 0])) + own[0, 0])
        )

    def delta(self, release: Release, secret: Combination, a: float, b: float, epsilon: float) -> float:
        """The hockey-stick divergence of what is released given a and given b, the larger of both ways."""
        if len(release.queries) == 1:
            return divergence(self.law(release, secret, a), self.law(release, secret, b), epsilon)
        if len(release.reads) == 1 and not any(release.masks):
            return self._plane_given_all(release, secret, a, b, epsilon)
        return self._plane(release, secret, a, b, epsilon)

    def _plane_given_all(self, release: Release, secret: Combination, a: float, b: float, epsilon: float) -> float:
        """Several averages, everything that is read known: two normals of one covariance, along the line between them."""
        centres, covariance = [], np.eye(len(release.queries))
        for value in (a, b):
            means, mm, _, _, own = self.given(release, secret, value)
            m, y = means[: len(own)], means[len(own) :]
            centres.append(m - y + release.shown(y[None, :])[0])
            covariance = own + mm
        apart = np.linalg.solve(np.linalg.cholesky(covariance), centres[1] - centres[0])
        one = np.ones(1)
        return divergence(Mixture(one, np.zeros(1), 1.0), Mixture(one, np.array([np.linalg.norm(apart)]), 1.0), epsilon)

    def _plane(self, release: Release, secret: Combination, a: float, b: float, epsilon: float, size: int = 161) -> float:
        """Two averages, on a grid of the plane; good to about a thousandth of itself."""
        laws = [self._points(release, secret, value) for value in (a, b)]
        root = np.linalg.cholesky(laws[0][2])
        points = [np.linalg.solve(root, centres.T).T for _, centres, _ in laws]
        both = np.vstack(points)
        axes = [np.linspace(both[:, k].min() - 7, both[:, k].max() + 7, size) for k in (0, 1)]
        densities = []
        for (weights, _, _), centres in zip(laws, points, strict=True):
            factors = [np.exp(-((axis[:, None] - centres[:, k]) ** 2) / 2) for k, axis in enumerate(axes)]
            densities.append((factors[0] * weights) @ factors[1].T / (2 * math.pi))
        p, q = densities
        area, e = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0]), math.exp(epsilon)
        assert abs(p.sum() * area - 1) < 1e-6
        return float(max(np.maximum(p - e * q, 0).sum(), np.maximum(q - e * p, 0).sum()) * area)

    def _points(self, release: Release, secret: Combination, a: float) -> tuple[Array, Array, Array]:
        """Weights and centres of a mixture of normals of one covariance, over a grid of Y in its own principal axes."""
        means, mm, my, yy, own = self.given(release, secret, a)
        m, y = means[:2], means[2:]
        values, vectors = np.linalg.eigh(yy)
        line = np.linspace(-6, 6, 61)
        first, second = (line if value > 1e-9 * values[-1] else np.zeros(1) for value in values)
        u = np.array(list(itertools.product(first, second)))
        weights = np.exp(-(u**2).sum(axis=1) / 2)
        nodes = y + (u * np.sqrt(np.maximum(values, 0))) @ vectors.T
        tie = my @ np.linalg.pinv(yy, rcond=1e-9, hermitian=True)
        centres = m + (nodes - y) @ tie.T - nodes + release.shown(nodes)
        return weights / weights.sum(), centres, mm - tie @ my.T + own


@dataclass(frozen=True)
class Box:
    """The covariance matrices of a Gaussian assumption with a tolerance, in unit coordinates u in [-1, 1]."""

    sds: Mapping[str, float]
    correlations: Mapping[tuple[str, str], float]
    queries: frozenset[str]
    sd: float = 0.0
    slope: float | None = None
    correlation: float = 0.0
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.sds))

    @property
    def dimensions(self) -> int:
        return len(self.names) + len(self.correlations)

    def covariance(self, u: Array) -> Array | None:
        """None where the numbers are of no distribution."""
        sds = {name: self.sds[name] * (1 + self.sd * x) for name, x in zip(self.names, u, strict=False)}
        matrix = np.diag([sds[name] ** 2 for name in self.names])
        for (pair, rho), x in zip(self.correlations.items(), u[len(self.names) :], strict=True):
            moved = self._correlation(pair, rho, float(x), sds)
            if not -1 <= moved <= 1:
                return None
            j, k = (self.names.index(name) for name in pair)
            matrix[j, k] = matrix[k, j] = moved * sds[pair[0]] * sds[pair[1]]
        unit = matrix / np.outer(np.sqrt(np.diag(matrix)), np.sqrt(np.diag(matrix)))
        return matrix if np.linalg.eigvalsh(unit)[0] > 1e-9 else None

    def _correlation(self, pair: tuple[str, str], rho: float, x: float, sds: Mapping[str, float]) -> float:
        if self.slope is None:
            return max(-1.0, min(1.0, rho + self.correlation * x))
        asked = [name for name in pair if name in self.queries]
        if len(asked) == 1:  # a slope of a query column on a sensitive one, off by a share
            (query,), (hidden,) = asked, [name for name in pair if name not in self.queries]
            stated = rho * self.sds[query] / self.sds[hidden]
            return stated * (1 + self.slope * x) * sds[hidden] / sds[query]
        most = (1 + self.slope) * (1 + self.sd) / (1 - self.sd)
        least = (1 - self.slope) * (1 - self.sd) / (1 + self.sd)
        return max(-1.0, min(1.0, rho * ((most + least) / 2 + x * (most - least) / 2)))

    def worst(self, loss: Callable[[Array], float], starts: int, seed: int) -> tuple[float, Array | None]:
        """Climb from several starts, one coordinate at a time."""
        rng = np.random.default_rng(seed)
        best, where = -1.0, None
        for start in range(starts):
            u = np.sign(rng.normal(size=self.dimensions)) if start % 2 else rng.uniform(-1, 1, self.dimensions)
            value = self._at(loss, u)
            for k in rng.permutation(self.dimensions):
                for x in (-1.0, 1.0, float(rng.uniform(-1, 1))):
                    other = u.copy()
                    other[k] = x
                    found = self._at(loss, other)
                    if found > value:
                        u, value = other, found
            if value > best:
                best, where = value, self.covariance(u)
        return best, where

    def _at(self, loss: Callable[[Array], float], u: Array) -> float:
        covariance = self.covariance(u)
        return -1.0 if covariance is None else loss(covariance)


def one_sided(release: Release) -> Release:
    return replace(release, low=math.inf)


def twice(release: Release) -> Release:
    return replace(release, low=2 * release.low, high=2 * release.high)
