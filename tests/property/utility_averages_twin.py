"""The exact divergence of transported, weighted or noisy averages, by writing down joint laws and integrating.

For the utility suite. Given a value a of a secret, all averages are jointly normal, with a mean that moves with a. What a plan
makes of them (taking back, clipping, noise) is read off the plan; the law of the answer and its hockey-stick divergence are
integrated here, with nothing of the library's laws, divergences or calibration.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import chi2, laplace

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.methods.base.evidence import LaplaceEvidence
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.calibrated_weights.proof import WeightsEvidence
from attrpriv.methods.quantile_clip.proof import QuantileClipEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from tests.property import twin
from tests.property.utility_groups_twin import stick, worst_group_delta

Matrix = NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_MEMBERS = 6


def worst_delta(problem: Problem, plan: Plan) -> float:
    """The largest divergence over secrets, pairs and members of the class that are tried."""
    if isinstance(plan.certificate.evidence, LaplaceEvidence):
        return _laplace(problem, plan)
    if isinstance(problem.theta[0], ParameterNetwork):
        return _quilt(problem, plan, problem.theta[0])
    if isinstance(problem.theta[0], Groups):
        return worst_group_delta(problem, plan, problem.theta[0])
    found = [_of_member(problem, plan, member) for member in _members(problem)]
    return max(found)


def _laplace(problem: Problem, plan: Plan) -> float:
    """Averages of any two tables, in bounds, differ by the bounds' width; Laplace noise tells e^(width/scale)."""
    told = 0.0
    for part in plan.columns:
        low, high = problem.bounds[part.column]
        told += (high - low) / part.noise.scale
    return max(0.0, 1 - math.exp((problem.epsilon - told) / 2))


def _quilt(problem: Problem, plan: Plan, assumed: ParameterNetwork) -> float:
    """Of a column that may have any law: its average tells its parameter's state, at either bound. All states added up."""
    (part,), (secret,), nodes = plan.columns, problem.secrets, assumed.network.nodes
    joint: dict[tuple[str, str], float] = {}
    for states in itertools.product(*(node.states for node in nodes.values())):
        at, chance = dict(zip(nodes, states, strict=True)), 1.0
        for name, node in nodes.items():
            row = nodes[node.parents[0]].states.index(at[node.parents[0]]) if node.parents else 0
            chance *= node.table[row][node.states.index(at[name])]
        key = at[secret.attribute or ""], at[part.column]
        joint[key] = joint.get(key, 0.0) + chance
    low, high = problem.bounds[part.column]
    grid = np.linspace(low - 40 * part.noise.scale, high + 40 * part.noise.scale, 40_001)
    cells = [np.diff(laplace.cdf(grid, end, part.noise.scale)) for end in (low, high)]
    laws = []
    for value in nodes[secret.attribute or ""].states:
        weights = np.array([joint[value, state] for state in nodes[part.column].states])
        laws.append(weights / weights.sum() @ np.array(cells))
    return max(stick(p, q, problem.epsilon) for p, q in itertools.combinations(laws, 2))


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
    clamp = plan.certificate.evidence.taken_back()
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

    return _mixed(clamp, means, given.centre, float(outside[0, 0]), float(inside[0, 0]), float(both[0, 0]))


def _shown(clamp: Any, y: Matrix) -> Matrix:
    """h(y), from its definition in docs/theory/transport.md."""
    length = math.sqrt(float(y @ np.linalg.solve(np.array(clamp.metric), y))) if clamp.metric else float(np.abs(y[0]))
    if length == 0:
        return y
    if clamp.period is None:
        return np.asarray(y * min(1.0, clamp.reach / length))
    step = round(length / clamp.period)
    inside = min(max(length - step * clamp.period, -clamp.reach), clamp.reach)
    return np.asarray(y * (step * min(2 * clamp.reach, clamp.period) + inside) / length)


def _alike(mean: Callable[[float], Matrix], covariance: Matrix) -> Pairwise:
    """Normal laws of equal covariance: all that matters is the distance."""
    scale = np.sqrt(np.diag(covariance))
    unit = covariance / np.outer(scale, scale)

    def law(a: float, b: float, epsilon: float) -> float:
        d = (mean(a) - mean(b)) / scale
        return twin.hockey_stick(epsilon, math.sqrt(max(0.0, float(d @ np.linalg.solve(unit, d)))))

    return law


def _mixed(
    clamp: Any, means: Callable[[float], tuple[float, float]], base: float, outside: float, inside: float, both: float
) -> Pairwise:
    """R + h(Y), R and Y jointly normal: given Y, normal; integrated over Y panel by panel between the kinks of h."""
    slope = both / inside
    own, sd = math.sqrt(outside - both * slope), math.sqrt(inside)

    def nodes(centre: float) -> tuple[Matrix, Matrix]:
        ends = [centre - 9 * sd, centre + 9 * sd]
        kinks = [x for x in (-clamp.reach, clamp.reach) if ends[0] < x < ends[1]]
        edges = np.unique(np.concatenate([np.linspace(ends[0], ends[1], 13), kinks]))
        half = np.diff(edges) / 2
        y = ((edges[:-1] + half)[:, None] + half[:, None] * _NODES[None, :]).ravel()
        w = (
            (half[:, None] * _WEIGHTS[None, :]).ravel()
            * np.exp(-(((y - centre) / sd) ** 2) / 2)
            / (sd * math.sqrt(2 * math.pi))
        )
        return y, w

    middle = sum(means(base))
    far = 9 * math.hypot(own, sd * abs(1 + slope)) + 3 * clamp.reach
    grid = np.linspace(middle - far, middle + far, 3001)
    kept: dict[float, Matrix] = {}

    def masses(a: float) -> Matrix:
        rest, told = means(a)
        y, w = nodes(told)
        assert clamp.period is None, "stairs over several statistics are not integrated here"
        at = rest + slope * (y - told) + np.clip(y, -clamp.reach, clamp.reach)
        cells = np.zeros(len(grid) - 1)
        for centre, weight in zip(at, w, strict=True):
            if weight > 1e-16 * w.max():
                cells += weight * np.diff(ndtr((grid - centre) / own))
        assert abs(cells.sum() - 1) < 1e-9, "the grid does not reach far enough"
        return cells

    def law(a: float, b: float, epsilon: float) -> float:
        for x in {a, b} - set(kept):
            kept[x] = masses(x)
        return stick(kept[a], kept[b], epsilon)

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
