"""A slow, obvious twin of the Gaussian side, for tests only. It calls nothing of `attrpriv` that computes.

It knows three things: what the class of distributions is (`members`, `inside`), what the exact joint law of the released
averages is once a secret is known (`separation`), and how to integrate a hockey-stick (`hockey_stick`). A plan is right if no
member of the class, no secret and no pair of its values shows more than the promised delta.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
from numpy.typing import NDArray

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.methods.base.plan import Plan
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret

Matrix = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_PANELS = 64


def exact_delta(epsilon: float, mu: float, digits: int = 60) -> mpmath.mpf:
    """D(epsilon, mu) in many digits; `epsilon` and `mu` are taken as the floats they are."""
    with mpmath.workdps(digits + 2 * int(abs(math.log10(mu)))):
        eps, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - eps / m) - mpmath.exp(eps) * mpmath.ncdf(-m / 2 - eps / m)


def hockey_stick(epsilon: float, mu: float) -> float:
    """H_eps(N(mu, 1) || N(0, 1)) by quadrature of the positive part of p - e^eps q.

    The part is positive above z0 = eps/mu + mu/2; with z = z0 + t it is phi(z0 - mu + t) (1 - e^(-mu t)).
    """
    if mu <= 1e-100:
        return 0.0
    start = epsilon / mu - mu / 2
    if start > 100:  # less than e^-5000
        return 0.0
    reach = max(0.0, -start) + 40 / (1 + max(0.0, start))
    edges = np.linspace(0.0, reach, _PANELS + 1)
    half = np.diff(edges) / 2
    t = (edges[:-1] + half)[:, None] + half[:, None] * _NODES[None, :]
    density = np.exp(-((start + t) ** 2) / 2) / math.sqrt(2 * math.pi) * -np.expm1(-mu * t)
    return float((density * _WEIGHTS[None, :]).sum(axis=1) @ half)


@dataclass(frozen=True)
class Moments:
    """One distribution: the columns, their standard deviations and correlations."""

    columns: tuple[str, ...]
    sd: Matrix
    correlation: Matrix

    def covariance(self) -> Matrix:
        return self.correlation * np.outer(self.sd, self.sd)

    def slope(self, query: str, secret: str) -> float:
        q, g = self.columns.index(query), self.columns.index(secret)
        return float(self.correlation[q, g] * self.sd[q] / self.sd[g])


def stated(gaussian: Gaussian) -> Moments:
    """The distribution at the centre of the class."""
    columns = gaussian.columns
    sd = np.array([_sd(gaussian, c) for c in columns])
    correlation = np.array([[_correlation(gaussian, a, b) for b in columns] for a in columns])
    return Moments(columns, sd, correlation)


def _sd(gaussian: Gaussian, column: str) -> float:
    if gaussian.sd is not None:
        return gaussian.sd[column]
    assert gaussian.covariance is not None
    return math.sqrt(gaussian.covariance[f"{column}~{column}"])


def _correlation(gaussian: Gaussian, a: str, b: str) -> float:
    if a == b:
        return 1.0
    pairs = gaussian.correlation if gaussian.sd is not None else gaussian.covariance
    assert pairs is not None
    value = pairs[f"{a}~{b}"] if f"{a}~{b}" in pairs else pairs[f"{b}~{a}"]
    return value if gaussian.sd is not None else value / (_sd(gaussian, a) * _sd(gaussian, b))


def inside(gaussian: Gaussian, moments: Moments, queries: Sequence[str], secrets: Sequence[str], slack: float = 1e-9) -> bool:
    """Whether these moments belong to the class: a distribution that exists, with every stated quantity in its interval."""
    centre, tolerance = stated(gaussian), gaussian.tolerance
    if np.linalg.eigvalsh(moments.correlation)[0] < -slack or np.abs(moments.correlation).max() > 1 + slack:
        return False
    if (np.abs(moments.sd / centre.sd - 1) > tolerance.sd + slack).any():
        return False
    if tolerance.correlation is not None:
        return bool((np.abs(moments.correlation - centre.correlation) <= tolerance.correlation + slack).all())
    for query in queries:
        for secret in secrets:
            if query != secret:
                slope, now = centre.slope(query, secret), moments.slope(query, secret)
                if abs(now - slope) > ((tolerance.slope or 0.0) + slack) * abs(slope):
                    return False
    return True


def members(problem: Problem, gaussian: Gaussian, rng: np.random.Generator, count: int) -> Iterator[Moments]:
    """The centre, then random members of the class, most of them on its edge.

    A random point of the box that is not a distribution, or breaks a constraint, is pulled towards the centre until it is one.
    """
    queries = problem.columns
    secrets = tuple(dict.fromkeys(column_of(secret) for secret in problem.secrets))
    centre = stated(gaussian)
    yield centre
    for _ in range(count):
        sd_moves, pair_moves = _moves(rng, len(centre.columns)), _moves(rng, len(centre.columns), pairs=True)
        share = 1.0
        for _ in range(40):
            moments = _moved(gaussian, centre, queries, sd_moves * share, pair_moves * share)
            if inside(gaussian, moments, queries, secrets):
                yield moments
                break
            share *= 0.8


def _moves(rng: np.random.Generator, size: int, *, pairs: bool = False) -> Matrix:
    """Numbers from -1 to 1, three in four of them at an end."""
    shape = (size, size) if pairs else (size,)
    ends = rng.choice([-1.0, 1.0], size=shape)
    moves: Matrix = np.where(rng.random(shape) < 0.75, ends, rng.uniform(-1, 1, size=shape))
    if pairs:
        moves = np.triu(moves, 1) + np.triu(moves, 1).T
    return moves


def _moved(gaussian: Gaussian, centre: Moments, queries: Sequence[str], sd_moves: Matrix, pair_moves: Matrix) -> Moments:
    tolerance = gaussian.tolerance
    sd = centre.sd * (1 + tolerance.sd * sd_moves)
    if tolerance.correlation is not None:
        correlation = np.clip(centre.correlation + tolerance.correlation * pair_moves, -1, 1)
    else:
        correlation = centre.correlation.copy()
        for i, first in enumerate(centre.columns):
            for j in range(i):
                # The slope of a query column on the other one; among two of a kind, of the first on the second.
                q, g = (i, j) if first in queries else (j, i)
                stretch = 1 + (tolerance.slope or 0.0) * pair_moves[i, j]
                moved = correlation[q, g] * stretch * (sd[g] / centre.sd[g]) / (sd[q] / centre.sd[q])
                correlation[q, g] = correlation[g, q] = moved
    np.fill_diagonal(correlation, 1.0)
    return Moments(centre.columns, sd, correlation)


def drawn_noise(plan: Plan) -> Matrix:
    """The covariance of the noise that a Gaussian plan draws: each average's own, and what is common to them."""
    own = np.diag([part.independent**2 for part in plan.columns])
    common = np.array(plan.factor) if plan.factor else np.zeros((len(plan.columns), 1))
    return np.asarray(own + common @ common.T, dtype=np.float64)


def separation(problem: Problem, moments: Moments, secret: Secret, noise: Matrix) -> float:
    """The Mahalanobis distance of the two joint laws of the released averages, given two values of one secret.

    Column means of independent normal rows are jointly normal with covariance V/n; the rows an adversary knows add nothing to
    it, so V (n - K)/n^2 is left. Conditioning on one mean is a regression; independent noise is added at the end.
    """
    columns = [moments.columns.index(column) for column in problem.columns]
    if not columns:
        return 0.0
    g = moments.columns.index(column_of(secret))
    covariance = moments.covariance()
    gain = covariance[columns, g] / covariance[g, g]
    left = (problem.n - math.floor(problem.known_rows * problem.n + 1e-9)) / problem.n**2
    conditional = (covariance[np.ix_(columns, columns)] - np.outer(gain, covariance[g, columns])) * left
    shift = gain * gap_of_mean(secret, problem.n)
    scale = np.sqrt(np.diag(conditional + noise))
    unit = (conditional + noise) / np.outer(scale, scale)
    direction = shift / scale
    return float(math.sqrt(max(0.0, direction @ np.linalg.solve(unit, direction))))


def column_of(secret: Secret) -> str:
    """The column of `mean(x)` or `sum(x)`."""
    return secret.text.partition("(")[2].removesuffix(")")


def gap_of_mean(secret: Secret, n: int) -> float:
    """The widest pair of values, as a distance of the column's mean."""
    gaps = [] if secret.within is None else [secret.within]
    if isinstance(secret.between, tuple):
        gaps.append(secret.between[1] - secret.between[0])
    return min(gaps) / (n if secret.text.startswith("sum(") else 1)


def worst_delta(problem: Problem, noise: Matrix, seed: int, count: int = 40) -> float:
    """The largest hockey-stick that this noise leaves, over members of the class and secrets."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for gaussian in problem.theta:
        assert isinstance(gaussian, Gaussian)
        for moments in members(problem, gaussian, rng, count):
            worst = max(worst, *(separation(problem, moments, secret, noise) for secret in problem.secrets))
    return hockey_stick(problem.epsilon, worst)
