"""`gaussian` under a hierarchy: averages that hide a population's mean (docs/theory/hierarchy.md).

Given phi_i = a the averages are N(m + B (a - m_i), S) with S free of a (`assumptions.hierarchy`), so section by section the
Gaussian mechanism's condition: with Z the noise's covariance,

    d' (S + Z)^-1 d <= mu^2      for every shift d = B (a - b),      mu = mu*(eps, delta)

One average: s^2 = max(mask^2, max over secrets and members of (b apart/mu)^2 - V). Several: noise of least trace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.cases.budget import Budget, allowed_distance, budget, real_epsilon
from attrpriv.cases.population_shift import Clips, assumptions, cases, clip_charges, hierarchies, mask_notes, recorded
from attrpriv.cases.shift import ShiftCase, apart, design
from attrpriv.cases.unequal import ValueLattice
from attrpriv.methods.base.accuracy import OFF_BY, ModelError, Noise, noise_error
from attrpriv.methods.base.certificate import Certificate, row_evidence
from attrpriv.methods.base.column_plan import ColumnPlan, Design, common_bits
from attrpriv.methods.base.gaussian_proof import GaussianCheck, GaussianEvidence
from attrpriv.methods.base.parts import AveragesPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.noise import MOST_BITS, granularity
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.rounding import SOLVED_UP
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal

REFERENCE = "docs/theory/hierarchy.md"
_AIMS = (1.0, 1 - 1e-6, 1 - 1e-3)


def plan(problem: Problem) -> Plan:
    """The least Gaussian noise that hides every population's mean."""
    theta = hierarchies(problem)
    lattice, clips = recorded(problem, theta, problem.columns), clip_charges(problem, theta)
    left = budget(problem, theta, lattice.charge, sum(charge or 0.0 for charge in clips.values()))
    mu = allowed_distance(problem, left)
    found = cases(problem, theta)
    layout, evidence = _layout(problem, theta, found, lattice, left, mu)
    if common_bits(layout) > MOST_BITS:
        raise Refusal(
            Cause.TOGETHER, "the averages asked together differ too much in scale for common noise; ask for them apart."
        )
    floor = _floor(problem, found, lattice, gaussian_mu(left.epsilon, left.delta))
    exact = all(scale <= least * SOLVED_UP**2 for scale, least in zip(layout.scales(), floor, strict=True))
    gap = max((scale - least for scale, least in zip(layout.scales(), floor, strict=True)), default=0.0)
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=left.promised,
        evidence=evidence,
        individuals=row_evidence(problem, layout.independent, clips),
        assumes=assumptions(problem, theta, lattice),
        exact=exact,
        gap=0.0 if exact else max(0.0, gap),
    )
    certificate.verify()
    return assemble(
        problem,
        "gaussian",
        AveragesPart(columns=_columns(problem, certificate, evidence, layout, lattice, clips, mu), factor=layout.factor),
        certificate,
        reference=REFERENCE,
        model_error=_model_error(problem, theta, evidence, left),
        notes=_notes(problem, layout, lattice, clips),
    )


def _layout(
    problem: Problem, theta: Sequence[Hierarchy], found: Sequence[ShiftCase], lattice: ValueLattice, left: Budget, mu: float
) -> tuple[Design, GaussianEvidence]:
    """The noise, and what it proves; aimed lower where nearly singular noise rounds more than the certificate allows."""
    own = [lattice.masks[column] for column in problem.columns]
    sds = [max(math.hypot(m.between_sd[c], m.within_sd[c] / math.sqrt(problem.n)) for m in theta) for c in problem.columns]
    for aim in _AIMS:
        layout = design(found, own, sds, aim * mu)
        evidence = _evidence(problem, found, layout, left)
        if evidence.distance() <= mu:
            return layout, evidence
    layout = apart(found, own, mu)
    return layout, _evidence(problem, found, layout, left)


def _evidence(problem: Problem, found: Sequence[ShiftCase], layout: Design, left: Budget) -> GaussianEvidence:
    return GaussianEvidence(
        columns=problem.columns,
        independent=layout.independent,
        factor=layout.factor,
        checks=tuple(map(_check, found)),
        **left.charges,
    )


def _check(case: ShiftCase) -> GaussianCheck:
    return GaussianCheck(
        secret=case.secret,
        theta=case.theta,
        shifts=tuple(tuple(float(x) for x in row) for row in case.shifts),
        credited=tuple(tuple(float(x) * (1 - 1e-13) for x in row) for row in case.residual),
    )


def _floor(problem: Problem, found: Sequence[ShiftCase], lattice: ValueLattice, mu: float) -> list[float]:
    """The noise that each average needs even alone: the stated numbers are exact, so some adversary is there to demand it."""
    return [
        math.sqrt(max(lattice.masks[column] ** 2, *((case.shifts[k, 0] / mu) ** 2 - case.residual[k, k] for case in found)))
        for k, column in enumerate(problem.columns)
    ]


def _columns(
    problem: Problem,
    certificate: Certificate,
    evidence: GaussianEvidence,
    layout: Design,
    lattice: ValueLattice,
    clips: Clips,
    mu: float,
) -> tuple[ColumnPlan, ...]:
    rows = {} if certificate.individuals is None else {term.column: term.scale for term in certificate.individuals.terms}
    plans = []
    for k, (column, scale) in enumerate(zip(problem.columns, layout.scales(), strict=True)):
        clip = problem.bounds[column] if clips.get(column) is not None else None
        parameters = {
            "calibration": problem.calibration,
            "mu": mu,
            "mask": lattice.masks[column],
            "independent": layout.independent[k],
            "granularity": granularity(layout.independent[k]),
            "shift": max(abs(check.shifts[k][0]) for check in evidence.checks),
            "credited_variance": min(check.credited[k][k] for check in evidence.checks),
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
                parameters=parameters,
            )
        )
    return tuple(plans)


def _model_error(
    problem: Problem, theta: Sequence[Hierarchy], evidence: GaussianEvidence, left: Budget
) -> tuple[ModelError, ...]:
    """The epsilon that really holds, at the same delta, when averages move more with the secret than is stated."""
    rows = []
    for off in OFF_BY:
        found = cases(problem, theta, off)
        distance = math.inf
        if all(_is_covariance(case) for case in found):
            distance = max((evidence.distance_of(_check(case)) for case in found), default=0.0)
        rows.append(ModelError(off_by=off, epsilon=real_epsilon(distance, left)))
    return tuple(rows)


def _is_covariance(case: ShiftCase) -> bool:
    """Whether populations with slopes so much steeper can exist at all."""
    import numpy as np

    scale = np.sqrt(np.maximum(np.diag(case.residual), 1e-300))
    return bool((np.diag(case.residual) > 0).all() and np.linalg.eigvalsh(case.residual / np.outer(scale, scale))[0] >= 0)


def _notes(problem: Problem, layout: Design, lattice: ValueLattice, clips: Clips) -> tuple[str, ...]:
    notes = mask_notes(problem, lattice, clips)
    for column, scale in zip(problem.columns, layout.scales(), strict=True):
        if scale <= lattice.masks[column] * (1 + 1e-6):
            notes.append(f"{column}: no noise is needed beyond the mask of its digits.")
    if len(problem.columns) > 1:
        notes.append(f"{len(problem.columns)} columns are released together, with noise planned jointly.")
    return tuple(notes)
