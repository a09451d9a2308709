"""`transport` under a groups assumption: averages without what the table's own counts tell (docs/theory/groups-transport.md).

    F' = F - Y + h(Y) + noise,      Y = sum over c of n_c m_c/n - centre

The counts n_c of all categories are read in the same pass. One average: h clips Y to an interval; several: to a ball. Reach and
noise are chosen together for the least expected error (`correction` says over which tables), with noise that makes the spread
of all tables equal, or without it and the unequal laws certified as they are. Where nothing is gained it is `gaussian`'s plan.

No digit of a count needs a mask: the promise is about the law of the answer *given* the categories of all rows, and given these
the counts are constants, of which the answer's mean and variance are functions. Only the digits of F do, which have the mask
that `gaussian` has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from attrpriv.assumptions.groups import Groups
from attrpriv.cases.budget import Budget
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
    members_of,
    real_epsilon,
)
from attrpriv.errors import CertificateError, RefusedError, UsageError
from attrpriv.methods.base.accuracy import Noise, off_by
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.checks import GroupCheck
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.parts import AveragesPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.dispatch import plan_by
from attrpriv.methods.group_transport.clamp import GroupClamp, best_clamp
from attrpriv.methods.group_transport.correction import (
    Expected,
    centre_share,
    expected_tables,
    scalar_moves,
    vector_moves,
)
from attrpriv.methods.group_transport.proof import (
    AnyGroupTransport,
    GroupTransportEvidence,
    GroupVectorTransportEvidence,
    between_of,
    fixed_noise,
    largest_noise,
)
from attrpriv.methods.group_transport.vector_clamp import VectorClamp, best_vector_clamp
from attrpriv.noise import MOST_BITS, granularity
from attrpriv.numerics.calibration.groups import equalise
from attrpriv.numerics.divergences.groups import Form
from attrpriv.numerics.laws.groups import GroupCase, VectorCase
from attrpriv.numerics.rounding import SOLVED_DOWN, SOLVED_UP
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusal_of, refusing

REFERENCE = "docs/theory/groups-transport.md"
_FORMS: tuple[Form, ...] = ("direct", "equalised")


def plan(problem: Problem) -> Plan:
    """The release of least expected error that reads the counts, or `gaussian`'s where that gains nothing."""
    groups = _single(problem)
    lattice = masked(problem, (groups,))
    clips = {column: clip_charge(problem, (groups,), column) for column in problem.columns}
    (check,) = checks(problem, (groups,))
    plain = _plain(problem)
    _require_something(plain, lattice)
    ways = expected_tables(groups, members_of(groups, problem.secrets[0]), check.shares)
    found = (_scalar if len(problem.columns) == 1 else _vector)(problem, groups, check, lattice, clips, ways)
    if plain is not None and (found is None or _cost(problem, groups, plain) <= _moved_cost(problem, groups, *found)):
        note = "nothing is gained by taking back what the counts tell: this is the plan of gaussian."
        return plain.rebuilt(mechanism="transport", notes=(*plain.notes, note))
    if found is None:
        raise Refusal(
            Cause.NOTHING_FOUND,
            "nothing is gained by taking back what the counts tell; use gaussian.",
            needs="mechanism gaussian",
        )
    evidence, way = found
    return _assembled(problem, groups, evidence, way, lattice, clips)


def _single(problem: Problem) -> Groups:
    theta = groups_of(problem)
    if len(theta) > 1 or len(problem.secrets) > 1:
        raise Refusal(Cause.SECRET, "is for one secret under one groups assumption; use gaussian.", needs="mechanism gaussian")
    if problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS,
            "individuals: single rows are not covered where counts are read, in this version; use gaussian.",
            needs="mechanism gaussian",
        )
    if problem.known_rows and problem.secrets[0].parameter is not None:
        raise Refusal(
            Cause.PERSONS,
            "known_rows: must be 0 for a share of the population where counts are read; use gaussian.",
            needs=("known_rows 0", "mechanism gaussian"),
        )
    return theta[0]


def _plain(problem: Problem) -> Plan | None:
    try:
        return plan_by("gaussian", problem)
    except Refusal:
        return None


def _require_something(plain: Plan | None, lattice: ValueLattice) -> None:
    """Where the mask of the digits is all that is needed, there is nothing to take back."""
    if plain is not None and all(part.noise.scale <= lattice.masks[part.column] * SOLVED_UP**3 for part in plain.columns):
        raise Refusal(
            Cause.NOTHING_FOUND,
            "no noise is needed beyond the mask of the digits, so that there is nothing to take back; use gaussian.",
            needs="mechanism gaussian",
        )


def _units(problem: Problem, groups: Groups) -> list[float]:
    """A standard deviation of each average, to compare errors by."""
    return [max(groups.sd_of(name, column) for name in groups.categories) / math.sqrt(problem.n) for column in problem.columns]


def _cost(problem: Problem, groups: Groups, plain: Plan) -> float:
    return sum(((part.error.rmse or 0.0) / sd) ** 2 for part, sd in zip(plain.columns, _units(problem, groups), strict=True))


def _moved_cost(problem: Problem, groups: Groups, evidence: AnyGroupTransport, way: Expected) -> float:
    spreads = evidence.spreads(way)
    return sum((spread.rmse / sd) ** 2 for spread, sd in zip(spreads, _units(problem, groups), strict=True))


def _centres(case: GroupCase | VectorCase, means: Sequence[Sequence[float]], ways: Sequence[Expected]) -> tuple[float, ...]:
    """Y's centre for each average; `means` has a row for each category."""
    share, way = centre_share(case, ways), ways[0]
    weights = [*(share * w for w in way.inside), *((1 - share) * w for w in way.outside)]
    return tuple(
        float(sum((Fraction(weight) * Fraction(row[k]) for weight, row in zip(weights, means, strict=True)), Fraction(0)))
        for k in range(len(means[0]))
    )


def _left(left: Budget, check: GroupCheck) -> float:
    delta = left.delta - check.tail * SOLVED_UP
    if not delta > 0:
        raise RefusedError("delta is used up by the counts that a population's tables can have.").because(
            Cause.BUDGET, "a larger delta"
        )
    return delta * SOLVED_DOWN


# --------------------------------------------------------------------------------------------------------- one average


def _scalar(
    problem: Problem, groups: Groups, check: GroupCheck, lattice: ValueLattice, clips: Clips, ways: Sequence[Expected]
) -> tuple[GroupTransportEvidence, Expected] | None:
    """The better form, and the tables where it errs most; None where it is best to take nothing back."""
    case, reasons = check.case, []
    if not isinstance(case, GroupCase):
        raise Refusal(Cause.TOGETHER, "needs one average here.")
    left = group_budget(problem, (groups,), lattice, clips)
    (centre,) = _centres(case, [(mean,) for mean, _ in (*case.members, *case.rest)], ways)
    moves = [scalar_moves(case, centre, way) for way in ways]
    found: list[GroupClamp] = []
    for form in _FORMS:
        try:
            floor, delta = lattice.masks[problem.columns[0]] ** 2, _left(left, check)
            found.append(best_clamp(case, left.epsilon, delta, form, moves, floor, between_of(check)))
        except (RefusedError, UsageError) as error:
            reasons.append(refusal_of(error))
    usable = [clamp for clamp in found if math.isfinite(clamp.reach) and _drawable(case, clamp)]
    if not usable and reasons:
        raise reasons[0]
    if not usable:
        return None
    clamp = min(usable, key=lambda clamp: clamp.squared)
    evidence = GroupTransportEvidence(
        columns=problem.columns,
        form=clamp.form,
        scale=math.sqrt(clamp.noise_variance) * SOLVED_UP,
        reach=clamp.reach,
        centre=centre,
        check=check,
        **left.charges,
    )
    return evidence, max(ways, key=lambda way: evidence.spreads(way)[0].rmse)


def _drawable(case: GroupCase, clamp: GroupClamp) -> bool:
    """All tables share the grid of the least noise, and 64 bits must hold the most noise on it."""
    scale = math.sqrt(clamp.noise_variance)
    return clamp.form == "direct" or largest_noise(case, clamp.form, scale) / granularity(scale) <= 2.0**MOST_BITS


# ----------------------------------------------------------------------------------------------------- several averages


def _vector(
    problem: Problem, groups: Groups, check: GroupCheck, lattice: ValueLattice, clips: Clips, ways: Sequence[Expected]
) -> tuple[GroupVectorTransportEvidence, Expected] | None:
    case, refusal = check.case, None
    if not isinstance(case, VectorCase):
        raise Refusal(Cause.STATISTIC, "needs several averages here.", needs="several averages")
    try:
        parts = equalise(case).parts
        left = group_budget(
            problem, (groups,), lattice, clips, sum(len(part.factor[0]) for part in parts) + len(problem.columns)
        )
        centre = _centres(case, [mean for mean, _ in (*case.members, *case.rest)], ways)
        masks = [lattice.masks[column] * SOLVED_UP for column in problem.columns]
        moves = [vector_moves(case, parts, centre, way) for way in ways]
        wide = max(range(len(ways)), key=lambda k: float((moves[k].weights @ moves[k].values ** 2).sum()))
        clamp = best_vector_clamp(case, left.epsilon, _left(left, check), moves[wide], masks, between_of(check))
        evidence = _vector_evidence(problem, check, clamp, centre, left)
        if evidence.bits() > MOST_BITS:
            raise RefusedError(
                "the averages asked together differ too much in scale for common noise; ask for them apart."
            ).because(Cause.TOGETHER)
        return evidence, ways[wide]
    except (RefusedError, UsageError) as error:
        refusal = refusal_of(error)
    raise refusal


def _vector_evidence(
    problem: Problem, check: GroupCheck, clamp: VectorClamp, centre: tuple[float, ...], left: Budget
) -> GroupVectorTransportEvidence:
    return GroupVectorTransportEvidence(
        columns=problem.columns,
        form=clamp.form,
        check=check,
        equalised=clamp.equalised,
        independent=clamp.independent,
        factor=clamp.factor,
        reach=clamp.reach,
        metric=clamp.metric,
        centre=centre,
        **left.charges,
    )


# ------------------------------------------------------------------------------------------------------------ the plan


def _assembled(
    problem: Problem, groups: Groups, evidence: AnyGroupTransport, way: Expected, lattice: ValueLattice, clips: Clips
) -> Plan:
    fixed = fixed_noise(evidence)
    beyond_mask = max(fixed[k] - lattice.masks[column] * SOLVED_UP**3 for k, column in enumerate(problem.columns))
    beyond_mask = max(0.0, beyond_mask)
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=group_budget(problem, (groups,), lattice, clips).promised,
        evidence=evidence,
        assumes=assumptions(problem, (groups,), lattice),
        exact=not beyond_mask,
        gap=beyond_mask,
    )
    with refusing(
        CertificateError, to=lambda error: Refusal(Cause.NOTHING_FOUND, f"its own check fails, and nothing is planned. {error}")
    ):
        certificate.verify()
    return assemble(
        problem,
        "transport",
        AveragesPart(
            columns=_columns(problem, evidence, way, lattice, clips),
            factor=evidence.common_noise(),
            categories=categories_of(problem, groups),
        ),
        certificate,
        reference=REFERENCE,
        model_error=off_by(lambda off: real_epsilon(evidence.profile(off), problem)),
        notes=_notes(problem, evidence, way, lattice, clips),
    )


def _columns(
    problem: Problem, evidence: AnyGroupTransport, way: Expected, lattice: ValueLattice, clips: Clips
) -> tuple[ColumnPlan, ...]:
    """The noise reported is the most that any table gets; the error is what is expected of it and of what is taken back."""
    plans = []
    for k, (column, spread) in enumerate(zip(problem.columns, evidence.spreads(way), strict=True)):
        own = evidence.own_noise[k]
        clip = problem.bounds[column] if clips.get(column) is not None else None
        parameters = {
            "form": evidence.form,
            "mask": lattice.masks[column],
            "independent": own,
            "granularity": granularity(own),
            "reach": evidence.reach,
            "centre": evidence.centres[k],
            "expected": way.to_parameters(),
            "clipped": clip is not None,
        }
        plans.append(
            ColumnPlan(
                column=column,
                noise=Noise(kind="gaussian", scale=evidence.largest()[k]),
                independent=own,
                error=spread.error(),
                fill=problem.missing.get(column),
                clip=clip,
                parameters=parameters,
            )
        )
    return tuple(plans)


def _notes(
    problem: Problem, evidence: AnyGroupTransport, way: Expected, lattice: ValueLattice, clips: Clips
) -> tuple[str, ...]:
    notes = []
    for column in problem.columns:
        if not problem.spacing(column)[1]:
            notes.append(
                f"{column}: values of undeclared spacing; digits are masked by noise of at least {lattice.masks[column]:.3g}. "
                "Declare resolution to change that."
            )
        if column in problem.bounds and clips.get(column) is None:
            notes.append(f"{column}: bounds are not applied, because clipping would change the law that is assumed.")
    notes.append("the counts of the categories are read too: what they reveal about the answer is removed.")
    if evidence.form == "equalised" or (isinstance(evidence, GroupVectorTransportEvidence) and evidence.equalised.parts):
        notes.append("tables get different noise, so that answers spread alike; reported is the most that any table gets.")
    if evidence.check.shares is not None:
        tables = "tables of the end of the range where they are larger"
    else:
        tables = "all counts of the range alike" if way.share is None else "tables of the prior share"
    notes.append(f"errors and intervals are over {tables}; for other tables they can be larger.")
    if any(secret.cases is not None for secret in problem.secrets):
        notes.append("sets of values are hidden point by point.")
    return tuple(notes)
