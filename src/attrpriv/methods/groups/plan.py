"""`gaussian` under a groups assumption: averages that hide how many rows are of some category (docs/theory/groups.md).

One average: the least noise in two forms, and the one that errs less.

    direct       F + N(0, s^2): the laws' variances differ with the count, and that is counted
    equalised    F + N(0, vmax - v + s^2): the owner, who knows the counts, first makes all variances equal

Several averages: covariances are made equal by public factors, then the shift is hidden by correlated noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrpriv.assumptions.groups import Groups
from attrpriv.cases.budget import Budget
from attrpriv.cases.gaussian import row_faults
from attrpriv.cases.unequal import (
    Clips,
    ValueLattice,
    assumptions,
    categories_of,
    checks,
    clip_charge,
    group_budget,
    groups_of,
    masked,
    real_epsilon,
)
from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.base.accuracy import Noise, noise_error, off_by
from attrpriv.methods.base.certificate import Certificate, row_evidence
from attrpriv.methods.base.checks import GroupCheck
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.parts import AveragesPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.groups.proof import GroupEvidence, GroupVectorEvidence
from attrpriv.noise import MOST_BITS, granularity
from attrpriv.numerics.calibration.groups import equalise, least_group_covariance, least_group_noise, most_equalising
from attrpriv.numerics.divergences.groups import Form
from attrpriv.numerics.laws.groups import GroupCase, VectorCase
from attrpriv.numerics.rounding import COMPUTED_DOWN, SOLVED_DOWN, SOLVED_UP
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusing


def plan(problem: Problem) -> Plan:
    """The least Gaussian noise that hides the composition."""
    theta = groups_of(problem)
    lattice = masked(problem, theta)
    clips = {column: clip_charge(problem, theta, column) for column in problem.columns}
    cases = checks(problem, theta)
    evidence, extra = (_scalar if len(problem.columns) == 1 else _vector)(problem, theta, cases, lattice, clips)
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=group_budget(problem, theta, lattice, clips).promised,
        evidence=evidence,
        individuals=row_evidence(problem, evidence.own_noise, clips),
        assumes=assumptions(problem, theta, lattice),
        exact=isinstance(evidence, GroupEvidence) and _is_exact(cases, evidence, lattice),
    )
    certificate.verify()
    return assemble(
        problem,
        "gaussian",
        AveragesPart(
            columns=_columns(problem, certificate, evidence, extra, lattice, clips),
            factor=evidence.common_noise(),
            categories=categories_of(problem, theta[0]),
        ),
        certificate,
        reference="docs/theory/groups.md",
        model_error=off_by(lambda off: real_epsilon(evidence.wider(off).delta, problem)),
        notes=_notes(problem, evidence, lattice, clips),
    )


# --------------------------------------------------------------------------------------------------------- one average


def _scalar(
    problem: Problem, theta: Sequence[Groups], cases: Sequence[GroupCheck], lattice: ValueLattice, clips: Clips
) -> tuple[GroupEvidence, tuple[float, ...]]:
    """The better of the two forms; with it the largest noise that equalising adds, as an sd."""
    left = group_budget(problem, theta, lattice, clips)
    mask = lattice.masks[problem.columns[0]]
    ways = [_noise(problem, cases, left, mask, "direct")]
    equalising = 0.0
    case = cases[0].case
    # A changed row changes the counts too, and with them the noise that equalises: that is not covered for single rows.
    covered = len(cases) == 1 and cases[0].readable and problem.individuals is None
    if covered and isinstance(case, GroupCase) and case.sd_tolerance == 0 and not row_faults(problem):
        way = _noise_or_none(problem, cases, left, mask)
        equalising = math.sqrt(max(0.0, most_equalising(case)))
        largest = math.inf if way is None else math.hypot(way.scale, equalising)
        # All tables share the grid of the least noise, and 64 bits must hold the most noise on it.
        if way is not None and largest < ways[0].scale and largest / granularity(way.scale) <= 2.0**MOST_BITS:
            return way, (equalising,)
    return ways[0], (0.0,)


def _noise_or_none(problem: Problem, cases: Sequence[GroupCheck], left: Budget, mask: float) -> GroupEvidence | None:
    try:
        return _noise(problem, cases, left, mask, "equalised")
    except Refusal:
        return None


def _noise(problem: Problem, cases: Sequence[GroupCheck], left: Budget, mask: float, form: Form) -> GroupEvidence:
    with refusing(RefusedError, UsageError):
        variance = mask**2
        for check in cases:
            delta = left.delta - check.tail * SOLVED_UP
            if not delta > 0:
                raise RefusedError("delta is used up by the counts that a population's tables can have.").because(
                    Cause.BUDGET, "a larger delta"
                )
            if isinstance(check.case, GroupCase):
                variance = max(variance, least_group_noise(check.case, left.epsilon, delta * COMPUTED_DOWN, form, variance))
        return GroupEvidence(
            columns=problem.columns, form=form, scale=math.sqrt(variance) * SOLVED_UP, checks=tuple(cases), **left.charges
        )


def _is_exact(cases: Sequence[GroupCheck], evidence: GroupEvidence, lattice: ValueLattice) -> bool:
    """Whether no smaller noise of this form would do: exact laws, or the mask alone."""
    stated = all(isinstance(check.case, GroupCase) and check.case.exact and check.shares is None for check in cases)
    return stated or evidence.scale <= lattice.masks[evidence.columns[0]] * SOLVED_UP**2


# ----------------------------------------------------------------------------------------------------- several averages


def _vector(
    problem: Problem, theta: Sequence[Groups], cases: Sequence[GroupCheck], lattice: ValueLattice, clips: Clips
) -> tuple[GroupVectorEvidence, tuple[float, ...]]:
    check = cases[0]
    if len(cases) != 1 or not isinstance(check.case, VectorCase):
        raise Refusal(Cause.TOGETHER, "several averages are planned for one secret under one assumption; ask for one average.")
    if problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS,
            "individuals: single rows are covered for one average at a time with groups.",
            needs="one average at a time",
        )
    with refusing(RefusedError, UsageError):
        equalised = equalise(check.case)
        draws = sum(len(part.factor[0]) for part in equalised.parts) + len(problem.columns)
        left = group_budget(problem, theta, lattice, clips, draws)
        masks = [lattice.masks[column] * SOLVED_UP for column in problem.columns]
        delta = (left.delta - check.tail * SOLVED_UP) * SOLVED_DOWN
        noise = least_group_covariance(check.case, left.epsilon, delta, masks)
        evidence = GroupVectorEvidence(
            columns=problem.columns,
            check=check,
            equalised=equalised,
            independent=noise.independent,
            factor=noise.factor,
            **left.charges,
        )
        if evidence.bits() > MOST_BITS:
            raise RefusedError(
                "the averages asked together differ too much in scale for common noise; ask for them apart."
            ).because(Cause.TOGETHER)
        return evidence, evidence.most_equalising()


# ------------------------------------------------------------------------------------------------------------ the plan


def _columns(
    problem: Problem,
    certificate: Certificate,
    evidence: GroupEvidence | GroupVectorEvidence,
    extra: Sequence[float],
    lattice: ValueLattice,
    clips: Clips,
) -> tuple[ColumnPlan, ...]:
    """The noise reported is the most that any table gets: what a table really gets would tell its counts."""
    rows = {} if certificate.individuals is None else {term.column: term.scale for term in certificate.individuals.terms}
    plans, factor = [], evidence.common_noise()
    for k, column in enumerate(problem.columns):
        own = evidence.own_noise[k]
        scale = math.hypot(own, *(factor[k] if factor else ()), extra[k])
        parameters = {
            "form": evidence.form,
            "mask": lattice.masks[column],
            "independent": own,
            "granularity": granularity(own),
            "clipped": clips.get(column) is not None,
        }
        plans.append(
            ColumnPlan(
                column=column,
                noise=Noise(kind="gaussian", scale=scale, individuals=rows.get(column, 0.0)),
                independent=own,
                error=noise_error(scale, rows.get(column, 0.0)),
                fill=problem.missing.get(column),
                clip=problem.bounds[column] if clips.get(column) is not None else None,
                parameters=parameters,
            )
        )
    return tuple(plans)


def _notes(
    problem: Problem, evidence: GroupEvidence | GroupVectorEvidence, lattice: ValueLattice, clips: Clips
) -> tuple[str, ...]:
    notes = []
    for k, column in enumerate(problem.columns):
        if not problem.spacing(column)[1]:
            notes.append(
                f"{column}: values of undeclared spacing; digits are masked by noise of at least {lattice.masks[column]:.3g}. "
                "Declare resolution to change that."
            )
        if isinstance(evidence, GroupEvidence) and evidence.own_noise[k] <= lattice.masks[column] * SOLVED_UP**2:
            notes.append(f"{column}: no noise is needed beyond the mask of its digits.")
        if column in problem.bounds and clips.get(column) is None:
            notes.append(f"{column}: bounds are not applied, because clipping would change the law that is assumed.")
    if evidence.form == "equalised":
        notes.append("tables get different noise, so that answers spread alike; reported is the most that any table gets.")
    if any(secret.cases is not None for secret in problem.secrets):
        notes.append("sets of values are hidden point by point.")
    return tuple(notes)
