"""The exact divergence of averages behind a category: normal given the count, mixed over it where a population is hidden.

For the utility suite; as `utility_averages_twin`. Which noise a table gets is the plan's; everything else is added up here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

from attrpriv.assumptions.groups import Groups
from attrpriv.methods.base.equalising import hidden_scale
from attrpriv.methods.base.evidence import Told
from attrpriv.methods.base.plan import Plan
from attrpriv.problem.problem import Problem

Matrix = NDArray[np.float64]


def stick(p: Matrix, q: Matrix, epsilon: float) -> float:
    """The larger of both directions, of masses on the same cells."""
    one, other = np.maximum(p - math.exp(epsilon) * q, 0.0).sum(), np.maximum(q - math.exp(epsilon) * p, 0.0).sum()
    return float(max(one, other))


def worst_group_delta(problem: Problem, plan: Plan, assumed: Groups) -> float:
    """Two categories; given the count, averages are normal with a covariance that depends on it."""
    (secret,) = problem.secrets
    assert secret.ends is not None
    n, worst = problem.n, 0.0
    for moved in _group_members(problem, assumed):
        laws = _GroupLaws(problem, plan, assumed, *moved)
        if secret.parameter is not None:
            for p, q in itertools.combinations([secret.ends[0], sum(secret.ends) / 2, secret.ends[1]], 2):
                worst = max(worst, laws.between_shares(p, q))
            continue
        low, high = math.ceil(secret.ends[0] * n - 1e-9), math.floor(secret.ends[1] * n + 1e-9)
        for a, b in itertools.combinations(sorted({low, low + 1, (low + high) // 2, high - 1, high}), 2):
            worst = max(worst, laws.between(a, b))
    return worst


def _group_members(problem: Problem, assumed: Groups) -> Iterator[tuple[Matrix, Matrix]]:
    """How far means are off (a row for each category), and by which factor standard deviations are."""
    size, drift = len(problem.columns), assumed.tolerance
    signs = itertools.product((-1.0, 1.0), repeat=2) if drift.mean else [(0.0, 0.0)]
    for means, sds in itertools.product(list(signs), list(itertools.product({1 - drift.sd, 1 + drift.sd}, repeat=2))):
        off = [
            s * drift.mean * np.array([assumed.sd_of(c, x) for x in problem.columns])
            for s, c in zip(means, assumed.categories, strict=True)
        ]
        yield np.array(off).reshape(2, size), np.array(sds)


class _GroupLaws:
    """The law of the answer given the count, and its divergences by adding up cells."""

    def __init__(self, problem: Problem, plan: Plan, assumed: Groups, off: Matrix, sds: Matrix) -> None:
        self.plan, self.n, self.epsilon = plan, problem.n, problem.epsilon
        names = assumed.categories
        self.stated = np.array([[assumed.mean_of(c, x) for x in problem.columns] for c in names])
        self.means = self.stated + off
        self.rows = [np.array(assumed.covariance(c, problem.columns)) * s**2 for c, s in zip(names, sds, strict=True)]

    def at(self, a: int) -> tuple[Matrix, Matrix]:
        """Mean and covariance of the answer for a members."""
        counts = np.array([a, self.n - a])
        mean = counts @ self.means / self.n
        spread = (a * self.rows[0] + (self.n - a) * self.rows[1]) / self.n**2
        return mean + self._taken(counts), spread + self._noise(a)

    def _taken(self, counts: Matrix) -> Matrix:
        evidence: Any = self.plan.certificate.evidence
        if not hasattr(evidence, "reach"):
            return np.zeros(self.means.shape[1])
        y = counts @ self.stated / self.n - np.atleast_1d(np.array(evidence.centre))
        metric = np.array(getattr(evidence, "metric", ((1.0,),)))
        length = math.sqrt(float(y @ np.linalg.solve(metric, y)))
        return np.asarray(-y * max(0.0, 1 - evidence.reach / length) if length else 0 * y)

    def _noise(self, a: int) -> Matrix:
        evidence: Any = self.plan.certificate.evidence
        if len(evidence.columns) == 1:
            case = (evidence.check if hasattr(evidence, "check") else evidence.checks[0]).case
            told = Told({}, (a,), (self.n - a,))
            hidden = hidden_scale(case, evidence.scale, told) if evidence.form == "equalised" else None
            scale = evidence.scale if hidden is None else hidden[0]
            return np.array([[scale**2]])
        total = np.diag(np.array(evidence.independent) ** 2)
        factor = np.array(evidence.factor) if evidence.factor else np.zeros((len(evidence.columns), 1))
        total = total + factor @ factor.T
        case = evidence.check.case
        x = (a - case.low) / (case.high - case.low)
        for part in evidence.equalised.parts:
            share = {"low": 1 - x, "high": x, "member": a / self.n, "rest": (self.n - a) / self.n}[part.role]
            total = total + min(1.0, max(0.0, share)) * np.array(part.factor) @ np.array(part.factor).T
        return np.asarray(total)

    def between(self, a: int, b: int) -> float:
        (m, s), (k, t) = self.at(a), self.at(b)
        if len(m) == 1:
            grid = self._grid([m[0], k[0]], math.sqrt(max(s[0, 0], t[0, 0])))
            laws = [np.diff(ndtr((grid - mean[0]) / math.sqrt(cov[0, 0]))) for mean, cov in ((m, s), (k, t))]
            return stick(laws[0], laws[1], self.epsilon)
        root = np.asarray(np.linalg.cholesky((s + t) / 2), dtype=np.float64)
        shift, left, right = np.linalg.solve(root, k - m), _inside(root, s), _inside(root, t)
        axis = np.linspace(-9, 9, 1201)
        points = np.array(np.meshgrid(axis + shift[0] / 2, axis + shift[1] / 2, indexing="ij")).reshape(2, -1)
        cell = (axis[1] - axis[0]) ** 2
        return stick(_density(points, left) * cell, _density(points - shift[:, None], right) * cell, self.epsilon)

    def between_shares(self, p: float, q: float) -> float:
        """Shares of the population: mixtures over the table's counts."""
        counts = [a for a in range(self.n + 1) if max(binom.pmf(a, self.n, p), binom.pmf(a, self.n, q)) > 1e-16]
        at = [self.at(a) for a in counts]
        grid = self._grid([mean[0] for mean, _ in at], math.sqrt(max(cov[0, 0] for _, cov in at)))
        cells = np.array([np.diff(ndtr((grid - mean[0]) / math.sqrt(cov[0, 0]))) for mean, cov in at])
        one, other = (binom.pmf(counts, self.n, share) @ cells for share in (p, q))
        return stick(one, other, self.epsilon)

    @staticmethod
    def _grid(means: Sequence[float], sd: float) -> Matrix:
        return np.linspace(min(means) - 9 * sd, max(means) + 9 * sd, 8001)


def _inside(root: Matrix, covariance: Matrix) -> Matrix:
    half = np.linalg.solve(root, covariance)
    return np.asarray(np.linalg.solve(root, half.T))


def _density(points: Matrix, covariance: Matrix) -> Matrix:
    weight = 1 / (2 * math.pi * math.sqrt(float(np.linalg.det(covariance))))
    return np.asarray(weight * np.exp(-(points * np.linalg.solve(covariance, points)).sum(axis=0) / 2))
