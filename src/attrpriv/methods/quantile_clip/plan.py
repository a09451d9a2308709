"""`transport` by quantiles, under an exactly stated Gaussian assumption: pure epsilon (docs/theory/quantile-clip.md).

    F~ = F + N(0, mask^2),   z = (F~ - m(G))/sqrt(V),   answer = m0 + sqrt(V) clip((F~ - m0)/sqrt(V), C-(z), C+(z))

Given any value of the sensitive statistics G, the answer's law lies between e^-epsilon/2 and e^epsilon/2 times one public
normal law. So whatever can be computed from G is hidden, jointly too; and there is no delta. All that is needed is that stated
moments are exact: here the query's own mean counts as well, and a tolerance means another form of transport.

Most answers are not moved at all; the others by no more than their quantile asks. With epsilon shared equally to both sides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.stated_pairs import StatedPairs
from attrpriv.cases.gaussian import ValueLattice, gaussian_assumptions, gaussian_notes, gaussians, masks, recorded
from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import ExpectedError, Noise
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.clamp import Read
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.parts import AveragesPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.quantile_clip.draw import clip_spread, wander_of
from attrpriv.methods.quantile_clip.model_error import model_error
from attrpriv.methods.quantile_clip.proof import Moments, QuantileClipEvidence
from attrpriv.noise import granularity
from attrpriv.numerics.calibration.quantile_clip import clip_rmse, halves
from attrpriv.numerics.rounding import AIMED_DOWN, COMPUTED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusing
from attrpriv.queries.arithmetic import Linear

REFERENCE = "docs/theory/quantile-clip.md"
_ALONE = "each secret is protected on its own; a joint property of several secrets is not covered"


def plan(problem: Problem) -> Plan:
    """One average, clipped by quantiles."""
    return finished(problem, drafted(problem))


def finished(problem: Problem, draft: Plan) -> Plan:
    """With what holds where slopes are off, which takes longer than all the rest."""
    evidence = draft.certificate.evidence
    assert isinstance(evidence, QuantileClipEvidence)
    return draft.model_copy(update={"model_error": model_error(problem, evidence)})


def drafted(problem: Problem) -> Plan:
    """The plan but for its model_error, to be compared with others."""
    member = _member(problem)
    column = problem.columns[0]
    least = masks(problem, (member,))
    lattice = recorded(problem, (member,), least)
    evidence = _evidence(problem, member, least[column], lattice)
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=problem.delta,
        evidence=evidence,
        assumes=_assumes(problem, member, evidence, lattice),
    )
    certificate.verify()
    clips: dict[str, float | None] = {column: None} if column in problem.bounds else {}
    return assemble(
        problem,
        "transport",
        AveragesPart(columns=(_column(problem, evidence),)),
        certificate,
        reference=REFERENCE,
        notes=(*gaussian_notes(problem, (member,), lattice, least, {column: math.inf}, clips), *_notes(evidence)),
    )


def _member(problem: Problem) -> Gaussian:
    theta = gaussians(problem, pure=True)
    if len(problem.columns) != 1:
        raise Refusal(
            Cause.TOGETHER, f"a quantile clip answers averages and sums of one column at a time. Got {len(problem.columns)}."
        )
    if len(theta) > 1:
        raise Refusal(
            Cause.NUMBERS,
            "a quantile clip needs one stated law; a class of several is covered by shifts, or by gaussian.",
            needs=("one stated law", "mechanism gaussian"),
        )
    member, tolerance = theta[0], theta[0].tolerance
    if tolerance.mean or tolerance.sd or tolerance.slope or tolerance.correlation or tolerance.shape is not None:
        raise Refusal(
            Cause.NUMBERS,
            "a quantile clip needs exactly stated moments (tolerance 0), means included.",
            needs="tolerance 0, and means",
        )
    if member.fitted is not None:
        raise Refusal(
            Cause.NUMBERS, "a quantile clip needs exactly stated moments; fitted ones are not.", needs="exactly stated moments"
        )
    if problem.known_rows:
        raise Refusal(
            Cause.PERSONS,
            "known_rows: must be 0 for a quantile clip: a known row changes the law that quantiles are taken of.",
            needs="known_rows 0",
        )
    if problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS,
            "individuals: single rows are not covered where other columns are read, in this version; use gaussian.",
            needs="mechanism gaussian",
        )
    hidden = dict.fromkeys(column for secret in problem.secrets for column in secret.columns)
    if problem.columns[0] in hidden:
        raise Refusal(
            Cause.STATISTIC,
            f"{problem.columns[0]} itself is sensitive: nothing is left of it once that is taken back.",
            needs="a column that is no secret",
        )
    for column in (*problem.columns, *hidden):
        if column not in member.mean:
            raise Refusal(
                Cause.NUMBERS,
                f"assume.mean: a quantile clip needs the mean of {column}. Got none.",
                needs=f"the mean of {column}",
                usage=problem.delta == 0,
            )
    return member


# -------------------------------------------------------------------------------------------------------- the evidence


def _evidence(problem: Problem, member: Gaussian, mask: float, lattice: ValueLattice) -> QuantileClipEvidence:
    """The clip that the charges leave room for; they depend on it a little, so they are taken at the whole epsilon."""
    reads = _reads(problem, member)
    columns = (*problem.columns, *dict.fromkeys(c for read in reads for c in read.coefficients))
    clip = halves(problem.epsilon)
    moments = _moments(problem, member, columns, lattice.spacing)
    draft = QuantileClipEvidence(
        columns=problem.columns, n=problem.n, moments=moments, reads=reads, mask=mask, below=clip.below, above=clip.above
    )
    with refusing(
        UsageError,
        to=lambda error: Refusal(
            Cause.SECRET, f"the sensitive columns determine one another, or the query: {error}", needs="fewer secrets"
        ),
    ):
        left = math.sqrt(max(0.0, float(draft.residual)))
        if problem.spacing(problem.columns[0])[1] is False and 0 < left < moments.spacing[0]:
            covered = (left * COMPUTED_DOWN, *moments.spacing[1:])
            draft = draft.model_copy(update={"moments": moments.model_copy(update={"spacing": covered})})
        if left < draft.moments.spacing[0]:
            raise Refusal(
                Cause.PRECISION,
                f"{problem.columns[0]}: what all sensitive columns together leave open of a row must have a standard deviation "
                f"of at least the spacing of its values ({draft.moments.spacing[0]:g}). Got {left:g}.",
                needs="finer values",
            )
        lam = draft.lam
    half = (problem.epsilon - 2 * lam) / 2 * AIMED_DOWN
    if not half > 0:
        raise Refusal(
            Cause.PRECISION,
            f"the spacing of recorded values costs more than epsilon {problem.epsilon:g} allows; declare resolution.",
            needs="resolution",
        )
    return draft.model_copy(update={"below": half, "above": half})


def _reads(problem: Problem, member: Gaussian) -> tuple[Read, ...]:
    """One secret statistic: itself. Several: the averages of all their columns, of which they are functions."""
    forms = {form.coefficients: dict(form.coefficients) for secret in problem.secrets for form in secret.forms}
    listed = list(forms.values())
    if len(listed) > 1:
        listed = [{column: 1.0} for column in dict.fromkeys(c for one in listed for c in one)]
    return tuple(
        Read(
            coefficients=one,
            centre=sum(weight * member.mean[column] for column, weight in one.items()),
            fill={column: problem.missing[column] for column in one if column in problem.missing},
        )
        for one in listed
    )


def _moments(problem: Problem, member: Gaussian, columns: tuple[str, ...], spacing: Mapping[str, float]) -> Moments:
    """As stated: sds and correlations, or covariances."""
    if member.sd is not None:
        scale = tuple(member.sd[column] for column in columns)
        matrix = tuple(tuple(member.correlation_of(a, b) for b in columns) for a in columns)
    else:
        stated, scale = StatedPairs(member.covariance or {}), (1.0,) * len(columns)
        matrix = tuple(tuple(stated.of(a, b) for b in columns) for a in columns)
    steps = tuple(spacing.get(c) or problem.spacing(c)[0] or member.sd_of(c) / 2 for c in columns)
    return Moments(columns=columns, mean=tuple(member.mean[c] for c in columns), scale=scale, matrix=matrix, spacing=steps)


# ------------------------------------------------------------------------------------------------------------ the plan


def _error(evidence: QuantileClipEvidence) -> ExpectedError:
    """The mean square in closed form over one variable, the rest from the law."""
    found = clip_spread(evidence).error()
    moved = clip_rmse(evidence.clip, wander_of(evidence)) * math.sqrt(evidence.variance)
    return found.model_copy(update={"rmse": math.hypot(moved, evidence.mask)})


def _column(problem: Problem, evidence: QuantileClipEvidence) -> ColumnPlan:
    grid = evidence.grid
    parameters = {
        "form": "quantile clip",
        "below": evidence.below,
        "above": evidence.above,
        "mask": evidence.mask,
        "granularity": granularity(evidence.mask),
        "step": grid.step,
        "slopes": [float(slope) for slope in evidence.slopes],
        "reads": [read.column for read in evidence.reads],
        "centre": evidence.moments.mean[0],
        "reach": grid.reach * math.sqrt(evidence.variance),
        "wander": wander_of(evidence) * math.sqrt(evidence.variance),
        "clipped": False,
    }
    return ColumnPlan(
        column=problem.columns[0],
        noise=Noise(kind="gaussian", scale=evidence.mask),
        independent=evidence.mask,
        error=_error(evidence),
        fill=problem.missing.get(problem.columns[0]),
        parameters=parameters,
    )


def _assumes(problem: Problem, member: Gaussian, evidence: QuantileClipEvidence, lattice: ValueLattice) -> tuple[str, ...]:
    """What the proof rests on; more than a delta could forgive."""
    lines = [
        f"every property of {_statistics(evidence)} is hidden, jointly too" if line == _ALONE else line
        for line in gaussian_assumptions(problem, (member,), lattice)
    ]
    lines += [
        f"{column}: the moments are those of the column as read, missing entries replaced"
        for column in evidence.moments.columns[1:]
        if column in problem.missing
    ]
    cost = 2 * evidence.lam - 2 * evidence.grid.draw_charge - 2 * evidence.lattice
    return (
        *lines,
        f"the mean of {problem.columns[0]} is stated exactly too",
        "normal far into the tails: no delta is kept in reserve for averages that are not quite normal. What rounded values "
        f"do to them within {evidence.grid.depth:.3g} standard deviations is estimated; {cost:.2g} of epsilon pays for it",
    )


def _statistics(evidence: QuantileClipEvidence) -> str:
    return ", ".join(Linear("mean", tuple(read.coefficients.items())).text for read in evidence.reads)


def _notes(evidence: QuantileClipEvidence) -> tuple[str, ...]:
    return (
        f"{_statistics(evidence)} is read too: the answer is moved where it would tell more of it than epsilon allows.",
        "pure epsilon: no delta is used.",
        "errors and intervals are over the tables that the assumption describes; far from its means they are larger.",
        "moments are taken as exact (tolerance 0), the query's own mean included.",
    )
