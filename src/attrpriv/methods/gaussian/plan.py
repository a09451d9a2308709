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

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.budget import Budget, allowed_distance, budget, clip_charge, sequence_budget
from attrpriv.cases.gaussian import ValueLattice, gaussian_assumptions, gaussian_notes, gaussians, masks, recorded
from attrpriv.cases.recorded_forms import form_masks, recorded_forms
from attrpriv.cases.recorded_smooth import require_smooth
from attrpriv.cases.shift import ShiftCase, apart, average_sds, design, needed_noise, seen_in
from attrpriv.cases.subset import Rows, grouped, subset_lines
from attrpriv.errors import CertificateError
from attrpriv.methods.base.accuracy import OFF_BY, ModelError, Noise, model_errors, noise_error
from attrpriv.methods.base.certificate import Certificate, row_evidence
from attrpriv.methods.base.column_plan import ColumnPlan, Design, common_bits
from attrpriv.methods.base.gaussian_proof import GaussianCheck, GaussianEvidence
from attrpriv.methods.base.parts import AveragesPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.gaussian.noise import CaseNoise, EarlierAverages, case_noise, conditioned, target
from attrpriv.noise import MOST_BITS
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.rounding import SOLVED_UP
from attrpriv.numerics.search import least_epsilon
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal

# In a sequence masks are wider by this much, so that the charge for recorded values stays below its constant.
_SEQUENCE_MASK = 1.5
_AIMS = (1.0, 1 - 1e-6, 1 - 1e-3)
_NO_PROOF = "the averages so far nearly determine one another, and rounding leaves no proof. Ask for fewer, or other ones."


# The problem that was planned last, and its plan: `transport` compares with it, and with many secrets it takes seconds.
_LAST: list[tuple[Problem, Plan]] = []


def plan(problem: Problem) -> Plan:
    """The least Gaussian noise that hides every secret from everyone who holds a belief in Theta."""
    for planned, made in tuple(_LAST):
        if planned is problem:
            return made
    made = _planned(problem)
    _LAST[:] = [(problem, made)]
    return made


def _planned(problem: Problem) -> Plan:
    theta = gaussians(problem)
    if any(gaussian.tolerance.shape is not None for gaussian in theta):
        raise Refusal(
            Cause.SHAPE,
            "rows are assumed exactly normal here; a shape tolerance is what gaussian_approximation is for.",
            needs="mechanism gaussian_approximation",
        )
    return _plan(problem, theta, "gaussian")


def plan_approximation(problem: Problem) -> Plan:
    """Algorithm 2, with its guarantee corrected: laws within the stated shape of normal ones."""
    theta = gaussians(problem)
    if not all(gaussian.tolerance.shape is not None for gaussian in theta):
        raise Refusal(
            Cause.SHAPE,
            "needs a shape tolerance (shape: {lambda: , eta: }); without one rows are exactly normal, as in gaussian.",
            needs="a shape tolerance",
        )
    return _plan(problem, theta, "gaussian_approximation")


def _plan(whole: Problem, theta: Sequence[Gaussian], mechanism: str) -> Plan:
    asked, groups = grouped(whole)
    past = EarlierAverages.of(asked)
    problem = past.together(asked)  # all averages so far; without earlier ones it is what was asked
    rows = Rows.of(problem)
    columns_as_they_are = not problem.combined and not any(rows.wheres)
    least = masks(problem, theta) if columns_as_they_are else form_masks(problem, theta)
    past.require_masked(least)
    if not asked.alone:  # averages and their combinations may follow one another, and share the digits of their columns
        least = past.widened(least, _SEQUENCE_MASK)
    lattice = recorded(problem, theta, least) if columns_as_they_are else recorded_forms(problem, theta, least)
    left, clips = _paid(asked, problem, theta, lattice)
    mu = allowed_distance(problem, left)
    cases = seen_in(problem, rows, theta)
    sets = case_noise(problem, theta, left.epsilon, left.delta, max(least.values(), default=0.0))
    if sets and not asked.alone:
        raise Refusal(
            Cause.BUDGET, "set-valued secrets are hidden by the law of one average; spend everything on it.", needs="spend 1"
        )
    reach = mu if asked.alone else target(past, cases, mu, asked.spend)
    new, evidence = _layout(problem, rows, past, theta, cases, sets, least, left, reach)
    if common_bits(new) > MOST_BITS:
        raise Refusal(
            Cause.TOGETHER, "the averages asked together differ too much in scale for common noise; ask for them apart."
        )
    require_smooth(problem, rows, theta, past.with_new(new).covariance(), problem.secrets)
    # What is needed at least is a matter of the exact distance, whichever calibration was asked for.
    needed = gaussian_mu(left.epsilon, left.delta) if asked.alone else reach
    sizes = dict(zip(problem.columns, rows.sizes, strict=True))
    floor = {c: max(least[c], needed_noise(problem, theta, c, sizes[c], needed)) for c in asked.columns}
    for found in sets:
        floor = {c: max(scale, math.sqrt(found.noise.attained)) for c, scale in floor.items()}
    scales = dict(zip(asked.columns, new.scales(), strict=True))
    assumes = (*gaussian_assumptions(problem, theta, lattice), *subset_lines(rows), *left.fit_lines)
    certificate = _certificate(asked, evidence, assumes, floor, scales, clips, left)
    _require_holding(certificate)
    return assemble(
        problem,
        mechanism,
        AveragesPart(
            columns=_column_plans(asked, sizes, evidence, certificate, new, least, reach, clips),
            factor=new.factor,
            unions=rows.unions(),
            groups=groups,
        ),
        certificate,
        reference="docs/theory/gaussian.md",
        kind="proved" if mechanism == "gaussian" else "approximate",
        queries=whole.queries,
        model_error=gaussian_model_error(problem, rows, theta, evidence, left),
        notes=(*gaussian_notes(asked, theta, lattice, least, scales, clips), *subset_lines(rows)),
    )


def _require_holding(certificate: Certificate) -> None:
    """Averages that nearly determine one another may need more digits than floats have: that is a refusal, not a fault."""
    with suppress(CertificateError):
        certificate.verify()
        return
    raise Refusal(Cause.NOTHING_FOUND, _NO_PROOF, needs="fewer averages")


def _paid(
    asked: Problem, problem: Problem, theta: Sequence[Gaussian], lattice: ValueLattice
) -> tuple[Budget, dict[str, float | None]]:
    """What is left for the calibration, and what clipping each column costs. In a sequence nothing is clipped."""
    bounded = [c for c in problem.columns if c in problem.bounds]
    if not asked.alone:
        if asked.individuals is not None:
            raise Refusal(
                Cause.BUDGET,
                "individuals: averages of rows clipped to their bounds share no budget; spend all of it (spend 1).",
                needs="spend 1",
            )
        left = sequence_budget(problem, theta, len(problem.columns), lattice.charge)
        return left, dict.fromkeys(bounded)
    clips = {c: clip_charge(problem, theta, c) for c in bounded}
    return budget(problem, theta, lattice.charge, sum(charge for charge in clips.values() if charge is not None)), clips


def _layout(
    problem: Problem,
    rows: Rows,
    past: EarlierAverages,
    theta: Sequence[Gaussian],
    cases: Sequence[ShiftCase],
    sets: Sequence[CaseNoise],
    least: Mapping[str, float],
    left: Budget,
    reach: float,
) -> tuple[Design, GaussianEvidence]:
    """The new noise, and what all noise proves; aimed lower where nearly singular noise rounds more than is allowed."""
    new = problem.columns[len(past.columns) :]
    own = [least[c] for c in new]
    sds = average_sds(problem, rows, theta)[len(past.columns) :]
    floor = max((math.sqrt(found.noise.variance) for found in sets), default=0.0)
    asking = conditioned(past, cases, reach)
    with suppress(CertificateError):
        for aim in _AIMS:
            layout = design(asking, own, sds, aim * reach).at_least(floor)
            evidence = _evidence(problem, past, cases, sets, past.with_new(layout), left)
            if evidence.distance() <= reach:
                return layout, evidence
        layout = apart(asking, own, reach).at_least(floor)
        return layout, _evidence(problem, past, cases, sets, past.with_new(layout), left)
    raise Refusal(Cause.NOTHING_FOUND, _NO_PROOF, needs="fewer averages")


def _evidence(
    problem: Problem, past: EarlierAverages, cases: Sequence[ShiftCase], sets: Sequence[CaseNoise], layout: Design, left: Budget
) -> GaussianEvidence:
    """Of each secret and member of Theta, the case with the largest distance."""
    empty = GaussianEvidence(
        columns=problem.columns,
        independent=layout.independent,
        factor=layout.factor,
        before=len(past.columns),
        common_before=past.common,
        checks=(),
        **left.charges,
    )
    worst: dict[tuple[str, int], tuple[float, GaussianCheck]] = {}
    for case in cases if problem.columns else ():
        check = case.check()
        distance = empty.distance_of(check)
        if distance >= worst.get((case.secret, case.theta), (-1.0, check))[0]:
            worst[case.secret, case.theta] = (distance, check)
    found = tuple(case.check(left.epsilon, layout.independent[0] ** 2) for case in sets)
    return empty.model_copy(update={"checks": tuple(check for _, check in worst.values()), "set_checks": found})


def _certificate(
    problem: Problem,
    evidence: GaussianEvidence,
    assumes: tuple[str, ...],
    floor: Mapping[str, float],
    scales: Mapping[str, float],
    clips: Mapping[str, float | None],
    left: Budget,
) -> Certificate:
    gap = max((scales[c] - floor[c] for c in problem.columns), default=0.0)
    exact = all(scales[c] <= floor[c] * SOLVED_UP**2 for c in problem.columns)
    return Certificate(
        epsilon=problem.epsilon,
        delta=left.promised,
        evidence=evidence,
        individuals=row_evidence(problem, evidence.independent[evidence.before :], clips),
        assumes=assumes,
        exact=exact,
        gap=0.0 if exact else max(0.0, gap),
    )


def _column_plans(
    problem: Problem,
    sizes: Mapping[str, int],
    evidence: GaussianEvidence,
    certificate: Certificate,
    layout: Design,
    least: Mapping[str, float],
    mu: float,
    clips: Mapping[str, float | None],
) -> tuple[ColumnPlan, ...]:
    rows = {} if certificate.individuals is None else {term.column: term.scale for term in certificate.individuals.terms}
    plans, steps = [], layout.steps()
    asked = zip(problem.columns, layout.scales(), problem.forms, problem.wheres, strict=True)
    for k, (column, scale, form, where) in enumerate(asked):
        clip = problem.bounds[column] if clips.get(column) is not None else None
        place = evidence.before + k
        parameters = {
            "calibration": problem.calibration,
            "mu": mu,
            "mask": least[column],
            "independent": layout.independent[k],
            "granularity": steps[k],
            "shift": max((math.hypot(*check.shifts[place]) for check in evidence.checks), default=0.0),
            "credited_variance": min((check.credited[place][place] for check in evidence.checks), default=0.0),
            "clipped": clip is not None,
        }
        plans.append(
            ColumnPlan(
                column=column,
                where=where,
                rows=None if where is None else sizes[column],
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


# ----------------------------------------------------------------------------------------------------------------------------
# What a Gaussian mechanism really promises where the assumption's slopes are off by more than its tolerance says.


def gaussian_model_error(
    problem: Problem, rows: Rows, theta: Sequence[Gaussian], evidence: GaussianEvidence, left: Budget
) -> tuple[ModelError, ...]:
    """The epsilon that really holds, at the same delta, when every slope is further off than the tolerance says."""

    def real(off: float) -> float:
        cases = _furthest(evidence, seen_in(problem, rows, theta, off))
        reached = evidence.epsilon_of([case.check() for case in cases], left.delta)
        return max(reached, _sets_epsilon(evidence, off, left)) + left.excess

    return model_errors([real(off) for off in OFF_BY])


def _furthest(evidence: GaussianEvidence, cases: Sequence[ShiftCase]) -> Sequence[ShiftCase]:
    """Of several averages the case that moves them furthest: which one it is may be decided in bare floats."""
    import numpy as np

    if len(evidence.columns) < 2 or len(cases) < 2:
        return cases
    noise = np.diag(np.array(evidence.independent) ** 2)
    if evidence.factor:
        noise = noise + np.array(evidence.factor) @ np.array(evidence.factor).T
    moved = [c.shifts.T @ np.linalg.solve(c.residual + noise, c.shifts) for c in cases]
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
