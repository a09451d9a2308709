"""The Attribute-Private Gaussian Mechanism (Algorithm 1 of the paper, key `zhang2022attribute`), and Algorithm 2 on top of it.

For averages F and every secret g and distribution theta, F | g = a ~ N(m_a, S) with S free of a. Released is F + N(0, Z) with

    d' (S + Z)^-1 d <= mu^2     for every shift d = m_a - m_b of values that must look alike,    mu = mu*(eps, delta)

(or the paper's classical constant), over the whole class at once. One average: s^2 = max(mask^2, max of (shift/mu)^2 - v).
Several: correlated noise of least trace (`noise_design`). Before mu is computed, epsilon and delta pay for everything that is
not the calibration (`budget`).

`gaussian_approximation` is the same with laws that are only nearly normal: the assumption's `shape` tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from attrpriv.assumptions import Gaussian, Tolerance
from attrpriv.assumptions.vector_box import sd_of_form
from attrpriv.assumptions.witness import witness
from attrpriv.assumptions.worst_case import candidates
from attrpriv.calibration import gaussian_mu
from attrpriv.calibration.search import least_epsilon
from attrpriv.divergences import gaussian_epsilon
from attrpriv.errors import CertificateError
from attrpriv.framework import Problem, Secret
from attrpriv.guarantee import Certificate, GaussianCheck, GaussianEvidence, Guarantee
from attrpriv.mechanisms.accuracy import ModelError, Noise, noise_error, off_by
from attrpriv.mechanisms.budget import Budget, allowed_distance, budget, sequence_budget
from attrpriv.mechanisms.cases import CaseNoise, by_law, case_noise
from attrpriv.mechanisms.clipping import clip_charge
from attrpriv.mechanisms.individuals import row_evidence
from attrpriv.mechanisms.noise_design import ROUND_UP, Design, apart, common_bits, design
from attrpriv.mechanisms.plan import ColumnPlan, Plan
from attrpriv.mechanisms.recorded import Recorded, masks, recorded, require_smooth
from attrpriv.mechanisms.recorded_forms import form_masks, recorded_forms, require_smooth_forms
from attrpriv.mechanisms.refusal import Refusal
from attrpriv.mechanisms.seen import Seen, seen
from attrpriv.mechanisms.stacked import Past, conditioned, target
from attrpriv.mechanisms.wording import gaussian_assumptions, gaussian_notes, statement
from attrpriv.noise import MOST_BITS, granularity

# In a sequence masks are wider by this much, so that the charge for recorded values stays below its constant.
_SEQUENCE_MASK = 1.5
_AIMS = (1.0, 1 - 1e-6, 1 - 1e-3)
# Beyond these, the squares and ratios below leave the range of floats.
_LEAST, _MOST = 1e-30, 1e30


def plan(problem: Problem) -> Plan:
    """The least Gaussian noise that hides every secret from everyone who holds a belief in Theta."""
    theta = gaussians(problem)
    if any(gaussian.tolerance.shape is not None for gaussian in theta):
        raise Refusal("rows are assumed exactly normal here; a shape tolerance is what gaussian_approximation is for.")
    return _plan(problem, theta, "gaussian")


def plan_approximation(problem: Problem) -> Plan:
    """Algorithm 2, with its guarantee corrected: laws within the stated shape of normal ones."""
    theta = gaussians(problem)
    if not all(gaussian.tolerance.shape is not None for gaussian in theta):
        raise Refusal(
            "needs a shape tolerance (shape: {lambda: , eta: }); without one rows are exactly normal, as in gaussian."
        )
    return _plan(problem, theta, "gaussian_approximation")


def _plan(asked: Problem, theta: Sequence[Gaussian], mechanism: str) -> Plan:
    past = Past.of(asked)
    problem = past.together(asked)  # all averages so far; without earlier ones it is what was asked
    least = form_masks(problem, theta) if problem.combined else masks(problem, theta)
    past.require_masked(least)
    if not asked.alone:  # averages and their combinations may follow one another, and share the digits of their columns
        least = past.widened(least, _SEQUENCE_MASK)
    lattice = recorded_forms(problem, theta, least) if problem.combined else recorded(problem, theta, least)
    left, clips = _paid(asked, problem, theta, lattice)
    mu = allowed_distance(problem, left)
    cases = seen(problem, theta)
    sets = case_noise(problem, theta, left.epsilon, left.delta, max(least.values(), default=0.0))
    if sets and not asked.alone:
        raise Refusal("set-valued secrets are hidden by the law of one average; spend everything on it.")
    reach = mu if asked.alone else target(past, cases, mu, asked.spend, credit(problem))
    new, evidence = _layout(problem, past, theta, cases, sets, least, left, reach)
    if common_bits(new) > MOST_BITS:
        raise Refusal("the averages asked together differ too much in scale for common noise; ask for them apart.")
    layout = past.with_new(new)
    smooth = require_smooth_forms if problem.combined else require_smooth
    smooth(problem, theta, dict(zip(problem.columns, layout.scales(), strict=True)))
    # What is needed at least is a matter of the exact distance, whichever calibration was asked for.
    needed = gaussian_mu(left.epsilon, left.delta) if asked.alone else reach
    floor = {c: max(least[c], _needed(problem, theta, c, needed)) for c in asked.columns}
    for found in sets:
        floor = {c: max(scale, math.sqrt(found.noise.attained)) for c, scale in floor.items()}
    scales = dict(zip(asked.columns, new.scales(), strict=True))
    certificate = _certificate(asked, problem, theta, evidence, lattice, floor, scales, clips, left)
    _require_holding(certificate)
    return Plan(
        mechanism=mechanism,
        queries=asked.queries,
        n=problem.n,
        epsilon=problem.epsilon,
        delta=left.promised,
        policy_digest=problem.policy_digest,
        columns=_column_plans(asked, evidence, certificate, new, least, reach, clips),
        factor=new.factor,
        guarantee=Guarantee(
            kind="proved" if mechanism == "gaussian" else "approximate",
            statement=statement(problem, left.promised),
            reference="docs/theory/gaussian.md",
        ),
        certificate=certificate,
        model_error=_model_error(problem, theta, evidence, left),
        notes=gaussian_notes(asked, theta, lattice, least, scales, clips),
    )


def _require_holding(certificate: Certificate) -> None:
    """Averages that nearly determine one another may need more digits than floats have: that is a refusal, not a fault."""
    with suppress(CertificateError):
        certificate.verify()
        return
    raise Refusal(
        "the averages so far nearly determine one another, and rounding leaves no proof. Ask for fewer, or other ones."
    )


def _paid(
    asked: Problem, problem: Problem, theta: Sequence[Gaussian], lattice: Recorded
) -> tuple[Budget, dict[str, float | None]]:
    """What is left for the calibration, and what clipping each column costs. In a sequence nothing is clipped."""
    bounded = [c for c in problem.columns if c in problem.bounds]
    if not asked.alone:
        if asked.individuals is not None:
            raise Refusal("individuals: averages of rows clipped to their bounds share no budget; spend all of it (spend 1).")
        left = sequence_budget(problem, theta, len(problem.columns), lattice.charge)
        return left, dict.fromkeys(bounded)
    clips = {c: clip_charge(problem, theta, c) for c in bounded}
    return budget(problem, theta, lattice.charge, sum(charge for charge in clips.values() if charge is not None)), clips


def _layout(
    problem: Problem,
    past: Past,
    theta: Sequence[Gaussian],
    cases: Sequence[Seen],
    sets: Sequence[CaseNoise],
    least: Mapping[str, float],
    left: Budget,
    reach: float,
) -> tuple[Design, GaussianEvidence]:
    """The new noise, and what all noise proves; aimed lower where nearly singular noise rounds more than is allowed."""
    new = problem.columns[len(past.columns) :]
    own = [least[c] for c in new]
    sds = _sds(problem, theta)[len(past.columns) :]
    floor = max((math.sqrt(found.noise.variance) for found in sets), default=0.0)
    asking = conditioned(past, cases, reach, credit(problem))
    for aim in _AIMS:
        layout = design(asking, own, sds, aim * reach, credit(problem)).at_least(floor)
        evidence = _evidence(problem, past, cases, sets, past.with_new(layout), left)
        if evidence.distance() <= reach:
            return layout, evidence
    layout = apart(asking, own, reach).at_least(floor)
    return layout, _evidence(problem, past, cases, sets, past.with_new(layout), left)


def gaussians(problem: Problem, *, pure: bool = False) -> tuple[Gaussian, ...]:
    """The assumption, if it is Gaussian and says enough for the problem; `pure`: delta may be 0."""
    theta = tuple(member for member in problem.theta if isinstance(member, Gaussian))
    if not theta or len(theta) != len(problem.theta):
        raise Refusal("needs a gaussian assumption (assume: kind: gaussian).")
    if any(secret.attribute is not None for secret in problem.secrets):
        raise Refusal("hides properties of this table; a mean of the population needs a hierarchy assumption.")
    if any(secret.composition is not None for secret in problem.secrets):
        raise Refusal("hides means and sums; a share, a count or a distribution needs a view.")
    if problem.delta == 0 and not pure:
        raise Refusal("delta: a Gaussian mechanism needs delta above 0. Got 0. Set delta, say to 1e-6.", usage=True)
    for column in dict.fromkeys((*problem.read_columns, *(c for secret in problem.secrets for c in secret.columns))):
        if any(column not in gaussian.columns for gaussian in theta):
            raise Refusal(
                f"assume: {column} must have a standard deviation and a correlation with the other columns. Got none.",
                usage=True,
            )
        _require_magnitude(f"sd of {column}", [gaussian.sd_of(column) for gaussian in theta])
        _require_magnitude(f"resolution of {column}", [problem.resolution[column]] if column in problem.resolution else [])
    for secret in problem.secrets:
        _require_magnitude(f"the widest pair of {secret.text}", [max(gap, _LEAST) for gap in _gaps(problem, secret)])
    return theta


def _gaps(problem: Problem, secret: Secret) -> list[float]:
    """How far apart values that must look alike can be; half-lines are hidden by their law, not by a distance."""
    if len(secret.forms) > 1:
        return [abs(x) for step in secret.joint_steps(problem.n) for row in step for x in row]
    return [] if secret.cases is not None and math.isinf(secret.gap) else [secret.gap]


def _require_magnitude(name: str, numbers: Sequence[float]) -> None:
    for number in numbers:
        if not _LEAST <= number <= _MOST:
            raise Refusal(f"{name}: must be between {_LEAST:g} and {_MOST:g}. Got {number:g}; choose another unit.", usage=True)


def credit(problem: Problem) -> float:
    """The factor from a row's residual variance to the variance of an average that an adversary cannot remove."""
    return (1 - problem.known_rows) / problem.n


def _sds(problem: Problem, theta: Sequence[Gaussian]) -> list[float]:
    return [max(sd_of_form(gaussian, form) for gaussian in theta) / math.sqrt(problem.n) for form in problem.forms]


def _evidence(
    problem: Problem, past: Past, cases: Sequence[Seen], sets: Sequence[CaseNoise], layout: Design, left: Budget
) -> GaussianEvidence:
    """Of each secret and member of Theta, the case with the largest distance."""
    empty = GaussianEvidence(
        columns=problem.columns,
        independent=layout.independent,
        factor=layout.factor,
        before=len(past.columns),
        common_before=past.common,
        checks=(),
        grid_lambda=left.grid_lambda,
        lattice_lambda=left.lattice_lambda,
        grid_eta=left.grid_eta,
        shape_lambda=left.shape_lambda,
        shape_eta=left.shape_eta,
        clip_delta=left.clip_delta,
        fit_delta=left.fit_delta,
        reserve=left.reserve,
    )
    worst: dict[tuple[str, int], tuple[float, GaussianCheck]] = {}
    for case in cases if problem.columns else ():
        check = _check(problem, case)
        distance = empty.distance_of(check)
        if distance >= worst.get((case.secret, case.theta), (-1.0, check))[0]:
            worst[case.secret, case.theta] = (distance, check)
    found = tuple(case.check(left.epsilon, layout.independent[0] ** 2) for case in sets)
    return empty.model_copy(update={"checks": tuple(check for _, check in worst.values()), "set_checks": found})


def _check(problem: Problem, case: Seen) -> GaussianCheck:
    credited = credit(problem) * case.residual
    return GaussianCheck(
        secret=case.secret,
        theta=case.theta,
        shifts=tuple(tuple(float(x) for x in row) for row in case.shifts),
        credited=tuple(tuple(float(x) for x in row) for row in credited),
    )


def _certificate(
    problem: Problem,
    together: Problem,
    theta: Sequence[Gaussian],
    evidence: GaussianEvidence,
    lattice: Recorded,
    floor: Mapping[str, float],
    scales: Mapping[str, float],
    clips: Mapping[str, float | None],
    left: Budget,
) -> Certificate:
    gap = max((scales[c] - floor[c] for c in problem.columns), default=0.0)
    exact = all(scales[c] <= floor[c] * ROUND_UP**2 for c in problem.columns)
    return Certificate(
        epsilon=problem.epsilon,
        delta=left.promised,
        evidence=evidence,
        individuals=row_evidence(problem, evidence.independent[evidence.before :], clips),
        assumes=(*gaussian_assumptions(together, theta, lattice), *left.fit_lines),
        exact=exact,
        gap=0.0 if exact else max(0.0, gap),
    )


def _needed(problem: Problem, theta: Sequence[Gaussian], column: str, mu: float) -> float:
    """A noise scale that this column needs even alone, because some distribution of Theta is there to demand it."""
    needed = 0.0
    for gaussian in theta:
        for secret in problem.secrets:
            if by_law(secret, theta):
                continue
            known = _witnessed if secret.single is not None and not problem.combined else _stated
            needed = max(needed, known(problem, gaussian, column, secret, mu))
    return math.sqrt(needed)


def _stated(problem: Problem, gaussian: Gaussian, column: str, secret: Secret, mu: float) -> float:
    """What the stated moments, which are in Theta, demand."""
    exact = gaussian.model_copy(update={"tolerance": Tolerance(correlation=0.0)})
    alone = problem.model_copy(update={"queries": (problem.average(column),), "secrets": (secret,)})
    cases = seen(alone, (exact,))
    return max(
        sum((float(x) / mu) ** 2 for x in case.shifts[0]) - credit(problem) * float(case.residual[0, 0]) for case in cases
    )


def _witnessed(problem: Problem, gaussian: Gaussian, column: str, secret: Secret, mu: float) -> float:
    name = secret.single or ""
    stretch = (secret.gap_of_mean(problem.n) / mu) ** 2
    corners = (witness(gaussian, column, name, corner) for corner in candidates(gaussian, column, name))
    return max(corner.need(stretch, credit(problem)) for corner in corners)


def _column_plans(
    problem: Problem,
    evidence: GaussianEvidence,
    certificate: Certificate,
    layout: Design,
    least: Mapping[str, float],
    mu: float,
    clips: Mapping[str, float | None],
) -> tuple[ColumnPlan, ...]:
    rows = {} if certificate.individuals is None else {term.column: term.scale for term in certificate.individuals.terms}
    plans = []
    for k, (column, scale, form) in enumerate(zip(problem.columns, layout.scales(), problem.forms, strict=True)):
        clip = problem.bounds[column] if clips.get(column) is not None else None
        place = evidence.before + k
        parameters = {
            "calibration": problem.calibration,
            "mu": mu,
            "mask": least[column],
            "independent": layout.independent[k],
            "granularity": granularity(layout.independent[k]),
            "shift": max((math.hypot(*check.shifts[place]) for check in evidence.checks), default=0.0),
            "credited_variance": min((check.credited[place][place] for check in evidence.checks), default=0.0),
            "clipped": clip is not None,
        }
        plans.append(
            ColumnPlan(
                column=column,
                noise=Noise(kind="gaussian", scale=scale, individuals=rows.get(column, 0.0)),
                independent=layout.independent[k],
                error=noise_error(scale, rows.get(column, 0.0)),
                fill=problem.missing.get(column),
                clip=clip,
                terms={} if column == next(iter(form)) else {c: problem.missing.get(c) for c in form},
                parameters=parameters,
            )
        )
    return tuple(plans)


def _model_error(
    problem: Problem, theta: Sequence[Gaussian], evidence: GaussianEvidence, left: Budget
) -> tuple[ModelError, ...]:
    """The epsilon that really holds, at the same delta, when every slope is further off than the tolerance says."""

    def real(off: float) -> float:
        cases = seen(problem, theta, off) if problem.columns else []
        distance = max(
            (evidence.distance_of(_check(problem, case)) for case in _furthest(problem, evidence, cases)), default=0.0
        )
        return max(gaussian_epsilon(distance, left.delta), _sets_epsilon(evidence, off, left)) + left.excess

    return off_by(real)


def _furthest(problem: Problem, evidence: GaussianEvidence, cases: Sequence[Seen]) -> Sequence[Seen]:
    """Of several averages the case that moves them furthest: which one it is may be decided in bare floats."""
    import numpy as np

    if len(problem.columns) < 2 or len(cases) < 2:
        return cases
    noise = np.diag(np.array(evidence.independent) ** 2)
    if evidence.factor:
        noise = noise + np.array(evidence.factor) @ np.array(evidence.factor).T
    moved = [c.shifts.T @ np.linalg.solve(credit(problem) * c.residual + noise, c.shifts) for c in cases]
    sizes = np.array([np.linalg.norm(one, 2) for one in moved])
    return [cases[int(sizes.argmax())]] if np.isfinite(sizes).all() else cases


def _sets_epsilon(evidence: GaussianEvidence, off: float, left: Budget) -> float:
    """The same for sets of values: the steeper slope tells more of the mixture, in every cell of the box."""
    variance, epsilon = evidence.independent[0] ** 2 if evidence.set_checks else 0.0, 0.0
    for check in evidence.set_checks:
        for cell in check.cells:
            # On its own a cell is a box; most need no more than the worst so far.
            alone = {"cells": (cell,), "means": cell[:2], "sds": cell[2:], "strength": check.strength * (1 + off)}
            reached = partial(check.model_copy(update=alone).delta, variance=variance)
            if not math.isfinite(epsilon):
                return epsilon
            if not epsilon or reached(epsilon) > left.delta:
                epsilon = least_epsilon(reached, left.delta, start=max(epsilon, left.epsilon), close=0.003)
    return epsilon
