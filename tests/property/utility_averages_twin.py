"""The exact divergence of transported, weighted or noisy averages, by writing down joint laws and integrating.

For the utility suite. Given a value a of a secret, all averages are jointly normal with mean base + gain a. What a plan makes of
them (taking back, clipping, noise) is read off the plan; the law of the answer and its hockey-stick divergence are integrated
here, with nothing of the library's laws, divergences or calibration.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import binom, chi2

from attrpriv.assumptions import Gaussian, Groups, Hierarchy
from attrpriv.framework import Problem, Secret
from attrpriv.guarantee import LaplaceEvidence, QuantileClipEvidence, WeightsEvidence
from attrpriv.mechanisms import Plan
from attrpriv.mechanisms.equalising import secret_scale
from tests.property import twin

Matrix = NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_MEMBERS = 6


def stick(p: Matrix, q: Matrix, epsilon: float) -> float:
    """The larger of both directions, of masses on the same cells."""
    one, other = np.maximum(p - math.exp(epsilon) * q, 0.0).sum(), np.maximum(q - math.exp(epsilon) * p, 0.0).sum()
    return float(max(one, other))


def worst_delta(problem: Problem, plan: Plan) -> float:
    """The largest divergence over secrets, pairs and members of the class that are tried."""
    if isinstance(plan.certificate.evidence, LaplaceEvidence):
        return _laplace(problem, plan)
    if isinstance(problem.theta[0], Groups):
        return _groups(problem, plan, problem.theta[0])
    found = [_of_member(problem, plan, member) for member in _members(problem)]
    return max(found)


def _laplace(problem: Problem, plan: Plan) -> float:
    """Averages of any two tables, in bounds, differ by the bounds' width; Laplace noise tells e^(width/scale)."""
    told = 0.0
    for part in plan.columns:
        low, high = problem.bounds[part.column]
        told += (high - low) / part.noise.scale
    return max(0.0, 1 - math.exp(problem.epsilon - told)) if told > problem.epsilon else 0.0


# ------------------------------------------------------------------------------------------------- normal averages given a


@dataclass(frozen=True)
class Given:
    """Of all columns: the averages' mean, how it moves with the secret's value, and the covariance left."""

    columns: tuple[str, ...]
    mean: Matrix
    gain: Matrix
    covariance: Matrix
    centre: float
    spread: float

    def at(self, a: float) -> Matrix:
        return self.mean + self.gain * (a - self.centre)

    def weights(self, coefficients: dict[str, float]) -> Matrix:
        return np.array([coefficients.get(column, 0.0) for column in self.columns])


@dataclass(frozen=True)
class Member:
    """One law of the class: means and covariances of the averages, and of the statistics behind the secrets."""

    columns: tuple[str, ...]
    mean: Matrix
    rows: Matrix
    n: int
    between: Matrix | None = None

    def given(self, secret: Secret) -> Given:
        if self.between is not None:
            i = self.columns.index(secret.attribute or "")
            gain = self.between[:, i] / self.between[i, i]
            left = self.between - np.outer(gain, self.between[i]) + self.rows / self.n
            return Given(self.columns, self.mean, gain, left, float(self.mean[i]), math.sqrt(self.between[i, i]))
        w = np.array([secret.coefficients.get(column, 0.0) for column in self.columns])
        variance = float(w @ self.rows @ w)
        gain = self.rows @ w / variance
        left = (self.rows - np.outer(gain, w @ self.rows)) / self.n
        return Given(self.columns, self.mean, gain, left, float(w @ self.mean), math.sqrt(variance / self.n))


def _members(problem: Problem) -> Iterator[Member]:
    rng = np.random.default_rng(11)
    for assumed in problem.theta:
        if isinstance(assumed, Hierarchy):
            sds = np.array([assumed.between_sd[c] for c in assumed.columns])
            unit = np.array([[assumed.correlation_of(a, b) for b in assumed.columns] for a in assumed.columns])
            rows = np.diag([assumed.within_sd[c] ** 2 for c in assumed.columns])
            mean = np.array([assumed.mean[c] for c in assumed.columns])
            yield Member(assumed.columns, mean, rows, problem.n, unit * np.outer(sds, sds))
            continue
        assert isinstance(assumed, Gaussian)
        mean = np.array([assumed.mean[c] for c in assumed.columns])
        some = _MEMBERS if any((assumed.tolerance.sd, assumed.tolerance.slope, assumed.tolerance.correlation)) else 0
        single = all(len(secret.coefficients) == 1 for secret in problem.secrets)
        found = twin.members(problem, assumed, rng, some) if single else iter([twin.stated(assumed)])
        for moments in found:
            drift = assumed.tolerance.mean * moments.sd * rng.choice([-1.0, 0.0, 1.0], len(mean))
            yield Member(assumed.columns, mean + drift, moments.covariance(), problem.n)


def _pairs(problem: Problem, secret: Secret, given: Given) -> Iterator[tuple[float, float]]:
    """Two values that must look alike: the widest, and some around the likeliest value."""
    unit = problem.n if secret.text.startswith("sum(") else 1
    near = [given.centre + k * given.spread for k in (-3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0)]
    if secret.within is not None:
        gap = min(secret.within, math.inf if secret.ends is None else secret.ends[1] - secret.ends[0]) / unit
        starts = [*near, *(given.centre + gap * (k - 0.5) for k in (0.0, 0.2, 0.5, 1.0, 2.0))]
        yield from ((a, a + gap) for a in starts)
        return
    assert secret.ends is not None
    low, high = (end / unit for end in secret.ends)
    values = [low, high, *(a for a in near if low < a < high)]
    yield from itertools.combinations(values, 2)


def _of_member(problem: Problem, plan: Plan, member: Member) -> float:
    worst = 0.0
    for secret in problem.secrets:
        given = member.given(secret)
        law = _law(plan, member, given)
        for a, b in _pairs(problem, secret, given):
            worst = max(worst, law(a, b, problem.epsilon))
    return worst


Pairwise = Callable[[float, float, float], float]


def _law(plan: Plan, member: Member, given: Given) -> Pairwise:
    evidence = plan.certificate.evidence
    if isinstance(evidence, WeightsEvidence):
        return _weighted(evidence, member, given)
    if isinstance(evidence, QuantileClipEvidence):
        return _quantile(evidence, given)
    return _shifted(plan, given)


# ------------------------------------------------------------------------------------------------- noise, clamps and stairs


def _shifted(plan: Plan, given: Given) -> Pairwise:
    """F - Y + h(Y) + noise, with (F - Y + noise, Y) jointly normal."""
    size = len(plan.columns)
    query = np.array([given.weights({part.column: 1.0}) for part in plan.columns])
    noise = twin.drawn_noise(plan)
    clamp = plan.clamp
    if clamp is None:
        return _alike(lambda a: query @ given.at(a), query @ given.covariance @ query.T + noise)
    reads = np.array([given.weights(dict(read.coefficients)) for read in clamp.reads])
    slopes = np.array(clamp.slopes)
    centres, masks = np.array([r.centre for r in clamp.reads]), np.diag([r.mask**2 for r in clamp.reads])
    told = slopes @ reads
    rest = query - told
    inside = told @ given.covariance @ told.T + slopes @ masks @ slopes.T
    outside = rest @ given.covariance @ rest.T + slopes @ masks @ slopes.T + noise
    both = rest @ given.covariance @ told.T - slopes @ masks @ slopes.T
    moving = told @ given.gain * given.spread
    if np.abs(inside).max() < 1e-18 * float(moving @ moving):  # what is read is the secret itself, without a mask

        def mean(a: float) -> Matrix:
            y = told @ given.at(a) - slopes @ centres
            return np.asarray(rest @ given.at(a) + slopes @ centres + _shown(clamp, y))

        return _alike(mean, outside)
    assert size == 1, "several averages with several statistics are not integrated here"

    def means(a: float) -> tuple[float, float]:
        at = given.at(a)
        return float((rest @ at + slopes @ centres)[0]), float((told @ at - slopes @ centres)[0])

    return _mixed(clamp, means, float(outside[0, 0]), float(inside[0, 0]), float(both[0, 0]))


def _shown(clamp: Any, y: Matrix) -> Matrix:
    """h(y), from its definition in docs/theory/transport.md."""
    length = math.sqrt(float(y @ np.linalg.solve(np.array(clamp.metric), y))) if clamp.metric else float(np.abs(y[0]))
    if length == 0:
        return y
    if clamp.period is None:
        return y * min(1.0, clamp.reach / length)
    step = round(length / clamp.period)
    inside = min(max(length - step * clamp.period, -clamp.reach), clamp.reach)
    return y * (step * min(2 * clamp.reach, clamp.period) + inside) / length


def _alike(mean: Callable[[float], Matrix], covariance: Matrix) -> Pairwise:
    """Normal laws of equal covariance: all that matters is the distance."""
    scale = np.sqrt(np.diag(covariance))
    unit = covariance / np.outer(scale, scale)

    def law(a: float, b: float, epsilon: float) -> float:
        d = (mean(a) - mean(b)) / scale
        return twin.hockey_stick(epsilon, math.sqrt(max(0.0, float(d @ np.linalg.solve(unit, d)))))

    return law


def _mixed(clamp: Any, means: Callable[[float], tuple[float, float]], outside: float, inside: float, both: float) -> Pairwise:
    """R + h(Y), R and Y jointly normal: given Y, normal; integrated over Y panel by panel between the kinks of h."""
    slope = both / inside
    own, sd = math.sqrt(outside - both * slope), math.sqrt(inside)

    def nodes(centre: float) -> tuple[Matrix, Matrix]:
        ends = [centre - 9 * sd, centre + 9 * sd]
        kinks = [x for x in (-clamp.reach, clamp.reach) if ends[0] < x < ends[1]]
        edges = np.unique(np.concatenate([np.linspace(*ends, 13), kinks]))
        half = np.diff(edges) / 2
        y = ((edges[:-1] + half)[:, None] + half[:, None] * _NODES[None, :]).ravel()
        w = (
            (half[:, None] * _WEIGHTS[None, :]).ravel()
            * np.exp(-(((y - centre) / sd) ** 2) / 2)
            / (sd * math.sqrt(2 * math.pi))
        )
        return y, w

    def masses(a: float, grid: Matrix) -> Matrix:
        rest, told = means(a)
        y, w = nodes(told)
        assert clamp.period is None, "stairs over several statistics are not integrated here"
        at = rest + slope * (y - told) + np.clip(y, -clamp.reach, clamp.reach)
        cells = np.zeros(len(grid) - 1)
        for centre, weight in zip(at, w, strict=True):
            cells += weight * np.diff(ndtr((grid - centre) / own))
        return cells

    def law(a: float, b: float, epsilon: float) -> float:
        middle = [sum(means(x)) for x in (a, b)]
        far = 9 * math.hypot(own, sd * abs(1 + slope)) + clamp.reach
        grid = np.linspace(min(means(a)[0], means(b)[0], *middle) - far, max(means(a)[0], means(b)[0], *middle) + far, 6001)
        return stick(masses(a, grid), masses(b, grid), epsilon)

    return law


# ------------------------------------------------------------------------------------------------------------ quantile clip


def _quantile(evidence: QuantileClipEvidence, given: Given) -> Pairwise:
    """Masked, then clipped by quantiles: masses of cells, through the point where the clipped value crosses their edges."""
    query = given.weights({evidence.columns[0]: 1.0})
    reads = np.array([given.weights(dict(read.coefficients)) for read in evidence.reads])
    slopes = np.array([float(x) for x in evidence.slopes])
    root = math.sqrt(float(evidence.variance))
    stated = np.array([float(evidence.moments.mean_of(dict(read.coefficients))) for read in evidence.reads])
    wander = math.sqrt(max(0.0, float(slopes @ reads @ given.covariance @ reads.T @ slopes))) / root
    left = query - slopes @ reads
    own = math.sqrt(float(left @ given.covariance @ left) + evidence.mask**2) / root
    assert abs(own - 1) < 1e-6, "the clip is made for another variance"
    edges = np.linspace(-7, 7, 351)
    kept: dict[float, Matrix] = {}

    def moved(z: Matrix, t: Matrix) -> Matrix:
        """clip(z + t, C-(z), C+(z)), which grows with z."""
        upper, lower = (
            np.minimum(_quantile_of(np.exp(evidence.below) * ndtr(s * z)), -ndtri(np.exp(-evidence.above) * ndtr(-s * z)))
            for s in (1, -1)
        )
        return np.asarray(np.clip(z + t, -lower, upper))

    def masses(a: float) -> Matrix:
        shift = float(slopes @ (reads @ given.at(a) - stated)) / root
        nodes, weights = np.polynomial.hermite_e.hermegauss(41) if wander > 1e-9 else (np.zeros(1), np.ones(1))
        t = (shift + wander * nodes)[:, None]
        low, high = np.full((len(nodes), len(edges)), -12.0), np.full((len(nodes), len(edges)), 12.0)
        for _ in range(60):
            middle = (low + high) / 2
            beyond = moved(middle, t) > edges
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        ends = np.full((len(nodes), 1), np.inf)
        at = np.hstack([-ends, (low + high) / 2, ends])
        # Upper tails by their own values, so that nothing cancels.
        cells = np.where(at[:, :-1] < 0, np.diff(ndtr(at)), -np.diff(ndtr(-at)))
        return np.asarray(weights / weights.sum() @ cells)

    def law(a: float, b: float, epsilon: float) -> float:
        for x in {a, b} - set(kept):
            kept[x] = masses(x)
        return stick(kept[a], kept[b], epsilon)

    return law


def _quantile_of(p: Matrix) -> Matrix:
    return np.asarray(np.where(p >= 1, np.inf, ndtri(np.minimum(p, 1.0))))


# ------------------------------------------------------------------------------------------------------- calibrated weights


def _weighted(evidence: WeightsEvidence, member: Member, given: Given) -> Pairwise:
    """A failure, or one law whatever the secret is: the two atoms of the failure are all that differs.

    q - 1/n = d' S^-1 d for d = averages - target and S of a Wishart law, which is d' V^-1 d over a chi-squared number.
    """
    names = [one.column for one in evidence.sensitive]
    places = [given.columns.index(name) for name in names]
    rows = member.rows[np.ix_(places, places)]
    left = given.covariance[np.ix_(places, places)]
    values, vectors = np.linalg.eigh(left)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))
    free = [k for k in range(len(names)) if values[k] > 1e-12 * rows.max() / evidence.rows]
    nodes, weights = np.polynomial.hermite_e.hermegauss(81)
    weights = weights / weights.sum()

    def failing(a: float) -> float:
        total = 0.0
        for chosen in itertools.product(range(len(nodes)), repeat=len(free)):
            d = (
                given.at(a)[places]
                - np.array(evidence.target)
                + sum((roots[:, k] * nodes[j] for k, j in zip(free, chosen, strict=True)), np.zeros(len(names)))
            )
            length = float(d @ np.linalg.solve(rows, d))
            share = math.prod(float(weights[j]) for j in chosen)
            total += share * float(chi2.cdf(length / (evidence.bound - 1 / evidence.rows), evidence.rows - len(names)))
        return total

    def law(a: float, b: float, epsilon: float) -> float:
        p, q = failing(a), failing(b)
        return stick(np.array([p, 1 - p]), np.array([q, 1 - q]), epsilon)

    return law


# -------------------------------------------------------------------------------------------------------------------- groups


def _groups(problem: Problem, plan: Plan, assumed: Groups) -> float:
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
            scale = secret_scale(evidence, ([a], [self.n - a])) or evidence.scale
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
        root = np.linalg.cholesky((s + t) / 2)
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
