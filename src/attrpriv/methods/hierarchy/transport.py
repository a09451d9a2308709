"""`transport` under a hierarchy: read the sensitive column's average, and take back what it tells (docs/theory/hierarchy.md).

    F' = F - y + clip(y, -h, +h) + N(0, s^2),       y = c b (x - m_i)

in two forms, of which the one that errs less over the populations of the assumption is taken:

    clamped    c = 1, 2 h = mu* sqrt(V + s^2)
    linear     h = 0: (1 - c) |b| apart <= mu* sqrt(V + s^2 + c^2 b^2 D_i/n); of least mean square at
               c = min(c*, c0), c* = d^2/(d^2 + mu*^2 S_ii), c0 the least c that needs no noise beyond the mask

V = S_jj - S_ij^2/S_ii + D_j/n; s^2 is at least the mask of F's digits; the average x that is read gets a mask of its own. The
proof is in `hierarchy.proof`, which recomputes it. Clamping wins where the range is wide, the linear form where values that
must look alike are near (`within`).
"""

from __future__ import annotations

import math

from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.cases.budget import Budget, allowed_distance, budget, real_epsilon
from attrpriv.cases.population_shift import Clips, assumptions, clip_charges, hierarchies, mask_notes, recorded
from attrpriv.cases.unequal import ValueLattice
from attrpriv.methods.base.accuracy import OFF_BY, ModelError, Noise
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.clamp import Clamp, ClampSpread, Read, clamp_bits
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.parts import AveragesPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.hierarchy.means import REFERENCE
from attrpriv.methods.hierarchy.proof import HierarchyCheck, HierarchyEvidence
from attrpriv.noise import MOST_BITS, granularity
from attrpriv.numerics.rounding import SOLVED_DOWN, SOLVED_UP
from attrpriv.numerics.search import least_at
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal


def plan(problem: Problem) -> Plan:
    """The better of the clamped and the linear release of one average that hides one population's mean."""
    member, hidden = _single(problem)
    column = problem.columns[0]
    lattice, clips = recorded(problem, (member,), (column, hidden)), clip_charges(problem, (member,))
    left = budget(problem, (member,), lattice.charge, sum(charge or 0.0 for charge in clips.values()), common=1)
    mu = allowed_distance(problem, left)
    check = _check(problem, member, hidden)
    if abs(check.slope) * check.apart <= mu * math.sqrt(check.variance + lattice.masks[column] ** 2):
        raise Refusal(
            Cause.NOTHING_FOUND,
            "no noise is needed beyond the mask of the digits, so that there is nothing to take back; use gaussian.",
            needs="mechanism gaussian",
        )
    read = Read(
        coefficients={hidden: 1.0},
        centre=member.mean[hidden],
        mask=lattice.masks[hidden],
        fill={c: value for c, value in problem.missing.items() if c == hidden},
    )
    centred = Clamp(reads=(read,), slopes=((check.slope,),), reach=0.0)
    ways = [form(check, centred, lattice.masks[column], mu) for form in (_clamped, _linear)]
    scale, clamp = min(ways, key=lambda way: _squared(check, *way))
    if clamp_bits(clamp, [scale]) > MOST_BITS:
        raise Refusal(Cause.TOGETHER, "the two averages differ too much in scale for a common grid.")
    evidence = HierarchyEvidence(columns=problem.columns, scale=scale, clamp=clamp, check=check, **left.charges)
    # A linear release is Gaussian, and its condition is necessary too; a clamp of wider reach would need noise, this one none.
    exact = clamp.reach == 0 or scale <= lattice.masks[column] * SOLVED_UP**2
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=left.promised,
        evidence=evidence,
        assumes=assumptions(problem, (member,), lattice),
        exact=exact,
        gap=0.0 if exact else scale - lattice.masks[column],
    )
    certificate.verify()
    return assemble(
        problem,
        "transport",
        AveragesPart(columns=(_column(problem, evidence, lattice, clips, mu),)),
        certificate,
        reference=REFERENCE,
        model_error=_model_error(evidence, left),
        notes=_notes(problem, evidence, lattice, clips),
    )


def _single(problem: Problem) -> tuple[Hierarchy, str]:
    """The one member and the one sensitive column that this is for."""
    theta = hierarchies(problem)
    if len(theta) > 1 or len(problem.secrets) > 1:
        raise Refusal(Cause.SECRET, "is for one secret under one hierarchy; use gaussian.", needs="mechanism gaussian")
    if len(problem.columns) != 1:
        raise Refusal(
            Cause.TOGETHER,
            f"answers averages and sums of one column at a time. Got {len(problem.columns)}; use gaussian.",
            needs="mechanism gaussian",
        )
    (hidden,) = problem.secrets[0].columns
    if problem.columns == (hidden,):
        raise Refusal(
            Cause.STATISTIC,
            f"{hidden} itself is sensitive, and nothing is left of it once it is taken back; use gaussian.",
            needs="mechanism gaussian",
        )
    if problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS,
            "individuals: single rows are not covered where a second column is read, in this version; use gaussian.",
            needs="mechanism gaussian",
        )
    if hidden not in theta[0].mean:
        raise Refusal(
            Cause.NUMBERS,
            f"assume.mean: needs the mean of {hidden}, as the centre of what may show. Got none.",
            needs=f"the mean of {hidden}",
            usage=True,
        )
    return theta[0], hidden


def _check(problem: Problem, member: Hierarchy, hidden: str) -> HierarchyCheck:
    (column,), secret = problem.columns, problem.secrets[0]
    return HierarchyCheck(
        secret=secret.text,
        apart=secret.gap,
        query_between=member.between_sd[column],
        hidden_between=member.between_sd[hidden],
        correlation=member.correlation_of(column, hidden),
        query_within=member.within_sd[column] / math.sqrt(problem.n),
        hidden_within=member.within_sd[hidden] / math.sqrt(problem.n),
    )


# ------------------------------------------------------------------------------------------------------- the two forms


def spread(check: HierarchyCheck, scale: float, clamp: Clamp) -> ClampSpread:
    """The law of the answer's error over the populations: y is N(0, slope^2 (S_ii + D_i/n + mask^2))."""
    wander = abs(clamp.slopes[0][0]) * math.hypot(check.hidden_between, check.hidden_within, clamp.reads[0].mask)
    return ClampSpread(scale, wander, clamp.reach)


def _squared(check: HierarchyCheck, scale: float, clamp: Clamp) -> float:
    return scale**2 + spread(check, scale, clamp).beyond_squared()


def _clamped(check: HierarchyCheck, centred: Clamp, mask: float, mu: float) -> tuple[float, Clamp]:
    """More noise allows a wider clamp: the noise of least mean square, from the mask to what needs no clamp at all."""

    def with_noise(variance: float) -> tuple[float, Clamp]:
        scale = math.sqrt(variance) * SOLVED_UP
        room = mu * math.sqrt(check.variance + scale**2) * SOLVED_DOWN - 1e-14 * abs(check.slope) * check.apart
        return scale, centred.model_copy(update={"reach": max(0.0, room / 2)})

    least = mask**2
    most = max(least, (check.slope * check.apart / mu) ** 2 - check.variance)
    return min(
        with_noise(least),
        with_noise(least_at(lambda v: _squared(check, *with_noise(v)), least, most)),
        key=lambda way: _squared(check, *way),
    )


def _linear(check: HierarchyCheck, centred: Clamp, mask: float, mu: float) -> tuple[float, Clamp]:
    """y shrunk by a public share c, and the noise that the rest of it needs."""
    apart, own = check.apart / (mu * SOLVED_DOWN), check.hidden_within**2 + centred.reads[0].mask ** 2

    def needed(share: float) -> float:
        """The noise's variance, in units of b^2."""
        return ((1 - share) * apart) ** 2 - share**2 * own - check.variance / check.slope**2

    best = apart**2 / (apart**2 + check.hidden_between**2)
    floor = (mask / check.slope) ** 2
    low, high = 0.0, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) > floor else (low, middle)
    share = min(best, high)
    slope = check.slope * share
    rest = ((abs(check.slope - slope) + 4e-15 * abs(check.slope)) * apart) ** 2 - check.variance - slope**2 * own
    scale = math.sqrt(max(mask**2, rest)) * SOLVED_UP
    return scale, centred.model_copy(update={"slopes": ((slope,),)})


# ------------------------------------------------------------------------------------------------------------ the plan


def _column(problem: Problem, evidence: HierarchyEvidence, lattice: ValueLattice, clips: Clips, mu: float) -> ColumnPlan:
    (column,), clamp, check = problem.columns, evidence.clamp, evidence.check
    law = spread(check, evidence.scale, clamp)
    clip = problem.bounds[column] if clips.get(column) is not None else None
    parameters = {
        "form": "clamped" if clamp.reach else "linear",
        "calibration": problem.calibration,
        "mu": mu,
        "mask": lattice.masks[column],
        "granularity": granularity(evidence.scale),
        "slope": clamp.slopes[0][0],
        "centre": clamp.reads[0].centre,
        "reach": clamp.reach,
        "wander": law.wander,
        "room": law.room,
        "reads": clamp.reads[0].column,
        "clipped": clip is not None,
    }
    return ColumnPlan(
        column=column,
        noise=Noise(kind="gaussian", scale=evidence.scale),
        independent=evidence.scale,
        error=law.error(),
        fill=problem.missing.get(column),
        clip=clip,
        parameters=parameters,
    )


def _model_error(evidence: HierarchyEvidence, left: Budget) -> tuple[ModelError, ...]:
    """The epsilon that really holds, at the same delta, when the correlation is further from 0 than is stated."""
    rows = []
    for off in OFF_BY:
        correlation = evidence.check.correlation * (1 + off)
        distance = math.inf
        if abs(correlation) < 1:
            check = evidence.check.model_copy(update={"correlation": correlation})
            distance = evidence.model_copy(update={"check": check}).distance()
        rows.append(ModelError(off_by=off, epsilon=real_epsilon(distance, left)))
    return tuple(rows)


def _notes(problem: Problem, evidence: HierarchyEvidence, lattice: ValueLattice, clips: Clips) -> tuple[str, ...]:
    hidden = evidence.clamp.reads[0].column
    notes = mask_notes(problem, lattice, clips)
    notes.append(f"the average of {hidden} is read too: what it reveals about {problem.columns[0]} is removed.")
    notes.append(
        "errors and intervals are over the populations that the assumption describes; far from its mean they are larger."
    )
    return tuple(notes)
