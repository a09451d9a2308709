"""The Attribute-Private Gaussian Mechanism (Algorithm 1 of the paper, key `zhang2022attribute`).

For one average F and every secret g and distribution theta, F | g = a ~ N(m_a, v) with v free of a. Released is F + N(0, s^2),

    s^2 = max( mask^2,  max over secrets and theta of (shift/mu)^2 - v ),      shift = |slope| * gap,

with mu = mu*(eps, delta) (or the paper's classical constant), the maximum taken jointly over theta.

Several averages together: the k averages that move with some secret get mu/sqrt(k) each and no credit for v. The noise
covariance D alone then satisfies d' D^-1 d <= mu^2 for the vector d of shifts, which is enough whatever the joint law of the
averages given the secret is; crediting each its own v would not be sound (F1 = g + U, F2 = U).

Before mu is computed, epsilon and delta are reduced by what the grids cost (`calibration.lattice`), by clipping
(`mechanisms.clipping`) and by a reserve of 2% of delta.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attrpriv.assumptions import Gaussian
from attrpriv.assumptions.witness import witness
from attrpriv.assumptions.worst_case import Extreme, candidates, steepest_slope, worst
from attrpriv.calibration import classical_mu, gaussian_mu
from attrpriv.calibration.lattice import grid_charge
from attrpriv.divergences import gaussian_epsilon
from attrpriv.errors import RefusedError
from attrpriv.framework import Problem, Secret
from attrpriv.guarantee import Certificate, GaussianCheck, GaussianEvidence, GaussianTerm, Guarantee
from attrpriv.mechanisms.clipping import clip_charge
from attrpriv.mechanisms.plan import ColumnPlan, ModelError, Noise, Plan, gaussian_error
from attrpriv.mechanisms.recorded import Recorded, masks, recorded
from attrpriv.mechanisms.refusal import Refusal
from attrpriv.mechanisms.wording import gaussian_assumptions, gaussian_notes, statement
from attrpriv.noise import granularity

_RESERVE = 0.02
_OFF_BY = (0.01, 0.02, 0.05, 0.1)
# Beyond these, the squares and ratios below leave the range of floats.
_LEAST, _MOST = 1e-30, 1e30
# Rounding of the closed forms below, on the private side; the certificate re-checks the result.
_ROUND_UP = 1 + 1e-9


@dataclass(frozen=True)
class _Budget:
    """What is left of (epsilon, delta) for the calibration, after every other charge."""

    epsilon: float
    delta: float
    grid_lambda: float
    grid_eta: float
    lattice_lambda: float
    clip_delta: float
    reserve: float


def plan(problem: Problem) -> Plan:
    """The least Gaussian noise that hides every secret from everyone who holds a belief in Theta."""
    theta = _gaussians(problem)
    least = masks(problem, theta)
    lattice = recorded(problem, theta, least)
    clips = {c: clip_charge(problem, theta, c) for c in problem.columns if c in problem.bounds}
    budget = _budget(problem, lattice, sum(charge for charge in clips.values() if charge is not None))
    mu = _distance(problem, budget)
    scales = {c: max(least[c], _need(problem, theta, c, mu)) * _ROUND_UP for c in problem.columns}
    evidence = _evidence(problem, theta, scales, budget)
    # What is needed at least is a matter of the exact distance, whichever calibration was asked for.
    certificate = _certificate(problem, theta, gaussian_mu(budget.epsilon, budget.delta), least, scales, evidence, lattice)
    certificate.verify()
    columns = tuple(_column_plan(problem, evidence, c, scales[c], least[c], mu, clips) for c in problem.columns)
    return Plan(
        mechanism="gaussian",
        queries=problem.queries,
        n=problem.n,
        epsilon=problem.epsilon,
        delta=problem.delta,
        policy_digest=problem.policy_digest,
        columns=columns,
        guarantee=Guarantee(kind="proved", statement=statement(problem), reference="docs/theory/gaussian.md"),
        certificate=certificate,
        model_error=_model_error(problem, theta, scales, budget),
        notes=gaussian_notes(problem, theta, lattice, least, scales, clips),
    )


def _gaussians(problem: Problem) -> tuple[Gaussian, ...]:
    theta = tuple(member for member in problem.theta if isinstance(member, Gaussian))
    if not theta or len(theta) != len(problem.theta):
        raise Refusal("needs a gaussian assumption (assume: kind: gaussian).")
    if any(secret.composition is not None for secret in problem.secrets):
        raise Refusal("hides means and sums; a share, a count or a distribution needs a view.")
    if problem.delta == 0:
        raise Refusal("delta: a Gaussian mechanism needs delta above 0. Got 0. Set delta, say to 1e-6.", usage=True)
    for column in dict.fromkeys((*problem.columns, *(secret.column for secret in problem.secrets))):
        if any(column not in gaussian.columns for gaussian in theta):
            raise Refusal(
                f"assume: {column} must have a standard deviation and a correlation with the other columns. Got none.",
                usage=True,
            )
        _require_magnitude(f"sd of {column}", [gaussian.sd_of(column) for gaussian in theta])
        _require_magnitude(f"resolution of {column}", [problem.resolution[column]] if column in problem.resolution else [])
    for secret in problem.secrets:
        _require_magnitude(f"the widest pair of {secret.text}", [max(secret.gap, _LEAST)])
    return theta


def _require_magnitude(name: str, numbers: Sequence[float]) -> None:
    for number in numbers:
        if not _LEAST <= number <= _MOST:
            raise Refusal(f"{name}: must be between {_LEAST:g} and {_MOST:g}. Got {number:g}; choose another unit.", usage=True)


def _budget(problem: Problem, lattice: Recorded, clip_delta: float) -> _Budget:
    grid_lambda, grid_eta = grid_charge(len(problem.columns))
    lam = grid_lambda + lattice.charge
    epsilon = (problem.epsilon - 2 * lam) * (1 - 1e-12)
    reserve = _RESERVE * problem.delta
    left = problem.delta - reserve - clip_delta - grid_eta * (1 + math.exp(problem.epsilon))
    delta = left * math.exp(-lam) * (1 - 1e-10)
    if not (epsilon > 0 and delta > 0):
        raise Refusal(
            "the recorded spacing of the values and the grid of the noise cost more than "
            f"epsilon {problem.epsilon:g}, delta {problem.delta:g} allow."
        )
    return _Budget(epsilon, delta, grid_lambda, grid_eta, lattice.charge, clip_delta, reserve)


def _distance(problem: Problem, budget: _Budget) -> float:
    """How far apart, in standard deviations, two outputs may be."""
    reason = None
    try:
        calibrate = classical_mu if problem.calibration == "classical" else gaussian_mu
        return calibrate(budget.epsilon, budget.delta)
    except RefusedError as error:
        reason = str(error)
    raise Refusal(reason)


def _share(problem: Problem, theta: Sequence[Gaussian], mu: float) -> float:
    """Each moving column's part of the distance when several are asked together."""
    moving = [c for c in problem.columns if any(steepest_slope(g, c, s.column) > 0 for g in theta for s in problem.secrets)]
    return mu / math.sqrt(max(1, len(moving)))


def _credit(problem: Problem) -> float:
    """The factor from a row's residual variance to the credited variance of an average."""
    return (1 - problem.known_rows) / problem.n if len(problem.columns) == 1 else 0.0


def _need(problem: Problem, theta: Sequence[Gaussian], column: str, mu: float) -> float:
    """The noise scale this column needs, before the mask."""
    share, credit = _share(problem, theta, mu), _credit(problem)
    needed = 0.0
    for gaussian in theta:
        for secret in problem.secrets:
            stretch = (secret.gap_of_mean(problem.n) / share) ** 2
            needed = max(needed, worst(gaussian, column, secret.column, stretch, credit).need(stretch, credit))
    return math.sqrt(needed)


def _evidence(problem: Problem, theta: Sequence[Gaussian], scales: Mapping[str, float], budget: _Budget) -> GaussianEvidence:
    checks = (_check(problem, theta, i, secret, scales) for i in range(len(theta)) for secret in problem.secrets)
    return GaussianEvidence(
        checks=tuple(check for check in checks if check.terms),
        grid_lambda=budget.grid_lambda,
        lattice_lambda=budget.lattice_lambda,
        grid_eta=budget.grid_eta,
        clip_delta=budget.clip_delta,
        reserve=budget.reserve,
    )


def _check(
    problem: Problem,
    theta: Sequence[Gaussian],
    index: int,
    secret: Secret,
    scales: Mapping[str, float],
    off: float = 0.0,
) -> GaussianCheck:
    """The furthest apart that two outputs can be, over one box, for one secret."""
    gap = secret.gap_of_mean(problem.n)
    terms = []
    for column in problem.columns:
        extremes = candidates(theta[index], column, secret.column)
        options = [_term(problem, column, secret, extreme, gap, scales[column], off) for extreme in extremes]
        terms.append(max(options, key=lambda term: term.shift**2 / (term.credited_variance + term.noise_scale**2)))
    return GaussianCheck(secret=secret.text, theta=index, gap=gap, terms=tuple(terms))


def _term(
    problem: Problem, column: str, secret: Secret, extreme: Extreme, gap: float, scale: float, off: float
) -> GaussianTerm:
    """One average seen from one secret, with its slope `off` by this share (a column's slope on itself cannot be off)."""
    slope = extreme.slope * (1 + (0.0 if column == secret.column else off))
    residual = extreme.residual - (slope**2 - extreme.slope**2) * extreme.sd_secret**2
    return GaussianTerm(
        column=column,
        slope=slope,
        shift=slope * gap,
        credited_variance=_credit(problem) * max(0.0, residual),
        noise_scale=scale,
    )


def _certificate(
    problem: Problem,
    theta: Sequence[Gaussian],
    mu: float,
    least: Mapping[str, float],
    scales: Mapping[str, float],
    evidence: GaussianEvidence,
    lattice: Recorded,
) -> Certificate:
    gap = max((scales[c] - max(least[c], _witnessed(problem, theta, c, mu)) for c in problem.columns), default=0.0)
    exact = not any(scales[c] > _ROUND_UP**2 * max(least[c], _witnessed(problem, theta, c, mu)) for c in problem.columns)
    return Certificate(
        epsilon=problem.epsilon,
        delta=problem.delta,
        evidence=evidence,
        assumes=gaussian_assumptions(problem, theta, lattice),
        exact=exact,
        gap=0.0 if exact else max(0.0, gap),
    )


def _witnessed(problem: Problem, theta: Sequence[Gaussian], column: str, mu: float) -> float:
    """A noise scale that this column needs even alone, because some distribution of Theta is there to demand it."""
    credit = (1 - problem.known_rows) / problem.n
    needed = 0.0
    for gaussian in theta:
        for secret in problem.secrets:
            stretch = (secret.gap_of_mean(problem.n) / mu) ** 2
            for corner in candidates(gaussian, column, secret.column):
                needed = max(needed, witness(gaussian, column, secret.column, corner).need(stretch, credit))
    return math.sqrt(needed)


def _column_plan(
    problem: Problem,
    evidence: GaussianEvidence,
    column: str,
    scale: float,
    mask: float,
    mu: float,
    clips: Mapping[str, float | None],
) -> ColumnPlan:
    terms = [term for check in evidence.checks for term in check.terms if term.column == column]
    worst_term = max(terms, key=lambda term: term.shift**2 / (term.credited_variance + term.noise_scale**2))
    clip = problem.bounds[column] if clips.get(column) is not None else None
    parameters = {
        "calibration": problem.calibration,
        "mu": mu,
        "mask": mask,
        "granularity": granularity(scale),
        "slope": worst_term.slope,
        "shift": worst_term.shift,
        "credited_variance": worst_term.credited_variance,
        "clipped": clip is not None,
    }
    return ColumnPlan(
        column=column,
        noise=Noise(kind="gaussian", scale=scale),
        error=gaussian_error(scale),
        fill=problem.missing.get(column),
        clip=clip,
        parameters=parameters,
    )


def _model_error(
    problem: Problem, theta: Sequence[Gaussian], scales: Mapping[str, float], budget: _Budget
) -> tuple[ModelError, ...]:
    """The epsilon that really holds, at the same delta, when every slope is further off than the tolerance says."""
    rows = []
    for off in _OFF_BY:
        checks = [_check(problem, theta, i, s, scales, off) for i in range(len(theta)) for s in problem.secrets]
        distance = max((check.distance() for check in checks if check.terms), default=0.0)
        epsilon = gaussian_epsilon(distance, budget.delta) + 2 * (budget.grid_lambda + budget.lattice_lambda)
        rows.append(ModelError(off_by=off, epsilon=epsilon if math.isfinite(epsilon) else None))
    return tuple(rows)
