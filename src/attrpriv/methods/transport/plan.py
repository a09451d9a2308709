"""`transport`: read the secret, and take back what it tells (docs/theory/transport.md).

One name for one idea; what is moved, and how that is proved, is a matter of the assumption.

| form | home |
|---|---|
| alone | here: clamp and staircase; `quantile_clip`: pure epsilon, one average, exactly stated moments |
| with other releases before or after | `transport.sequence` |
| of a population's mean, behind categories, of counts | `hierarchy`, `group_transport`, `count_transport` |

Here averages under a Gaussian assumption, without what the secrets tell of them:

    F' = F - Y + h(Y) + N(0, Z),       Y = B0 (G - centre)

h keeps Y in a ball of the output's own spread (`transport.clamp`), so that near the assumption's mean the answer is exact but
for its mask. Where every secret names only near values (`within`), a staircase. Reach and noise are chosen together, for the
least expected error over the tables of the assumption: more noise allows a wider ball. Without any clamp it would be
`gaussian`, whose plan is taken where nothing is gained.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.budget import Budget, allowed_distance, budget, clip_charge, real_epsilon
from attrpriv.cases.gaussian import ValueLattice, gaussian_assumptions, gaussian_notes, gaussians, is_exact, masks, recorded
from attrpriv.cases.recorded_forms import form_masks, recorded_forms
from attrpriv.cases.recorded_smooth import require_smooth
from attrpriv.cases.shift import average_sds
from attrpriv.cases.subset import Rows, grouped, subset_lines
from attrpriv.errors import CertificateError
from attrpriv.methods.base.accuracy import OFF_BY, ModelError, Noise
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.clamp import ClampSpread, clamp_bits
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.parts import AveragesPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.dispatch import plan_by
from attrpriv.methods.quantile_clip import plan as quantile_clip
from attrpriv.methods.transport.case import Told, statistics_of, told_over
from attrpriv.methods.transport.proof import TransportEvidence
from attrpriv.methods.transport.ways import Way, best_way
from attrpriv.noise import MOST_BITS, granularity
from attrpriv.numerics.rounding import SOLVED_UP
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import quoted

REFERENCE = "docs/theory/transport.md"
# An error of this share of the average's own sd tells hardly anything.
_HARDLY = 0.9
# More averages by group than these are searched for many seconds.
AUTO_GROUPS = 64


def choose(problem: Problem) -> Plan:
    """The release of least error that reads the secret."""
    partly = [query.text for query in problem.queries if not query.plain]
    if partly and not (problem.alone and problem.delta):
        raise Refusal(
            Cause.STATISTIC,
            f"answers {partly[0]}, over some of the rows, only under a gaussian assumption, with a delta, and alone (spend 1).",
            needs="a gaussian assumption, a delta above 0, and spend 1",
            query=partly[0],
        )
    if problem.alone:
        return _alone(problem)
    from attrpriv.methods.transport import sequence

    return sequence.plan(problem)


def too_slow(problem: Problem) -> str | None:
    """The size up to which `auto` searches noise and clamp, where averages by group are so many that it takes long."""
    groups = [{**problem.bins, **problem.categories}.get(query.group_by or "", ()) for query in problem.queries]
    return f"{AUTO_GROUPS} averages by group" if sum(map(len, groups)) > AUTO_GROUPS else None


def _alone(problem: Problem) -> Plan:
    """The better of both forms; without a delta there is only the quantile clip."""
    if problem.delta == 0:
        return quantile_clip.plan(problem)
    plans: list[Plan] = []
    refused: list[Refusal] = []
    partly = not all(query.plain for query in problem.queries)
    for form in (plan,) if partly else (plan, quantile_clip.drafted):
        try:
            plans.append(form(problem))
        except Refusal as refusal:
            refused.append(refusal)
    if not plans:
        raise refused[0].told()
    # Two plans there are only for one column, and both know its error.
    best = min(plans, key=lambda plan: plan.columns[0].error.rmse or 0.0)
    return quantile_clip.finished(problem, best) if best.certificate.evidence.kind == "quantile_clip" else best


def plan(whole: Problem) -> Plan:
    """The transported release of least expected error, or `gaussian`'s where taking back gains nothing."""
    problem, groups = grouped(whole)
    theta, rows = members(problem), Rows.of(problem)
    reads = _masked_reads(problem)
    if any(rows.wheres):
        if reads:
            raise Refusal(
                Cause.SECRET,
                "averages over subsets are moved by one sensitive statistic, not by several; use gaussian.",
                needs="mechanism gaussian",
            )
        least = form_masks(problem, theta)
        lattice = recorded_forms(problem, theta, least)
    else:
        least = masks(problem, theta, reads)
        lattice = recorded(problem, theta, least, reads)
    clips = {c: clip_charge(problem, theta, c) for c in problem.columns if c in problem.bounds}
    # Numbers that common noise is made of: what the class leaves open, what the secrets tell, and the masks of what is read.
    size = len(problem.columns)
    shared = (size + len(statistics_of(problem)) if size > 1 else 0) + len(reads)
    left = budget(problem, theta, lattice.charge, sum(charge or 0.0 for charge in clips.values()), common=shared)
    mu = allowed_distance(problem, left)
    found = told_over(problem, rows, theta, least)
    sds = average_sds(problem, rows, theta)
    way = best_way(problem, theta, found, least, sds, mu)
    plain = _plain(whole)
    if plain is not None and (way is None or _plain_cost(plain, sds) <= way.cost(sds) * SOLVED_UP):
        note = "nothing is gained by taking back what the secret tells: this is the plan of gaussian."
        return plain.rebuilt(mechanism="transport", notes=(*plain.notes, note))
    if way is None:
        raise Refusal(
            Cause.NUMBERS,
            "what the assumption leaves open of the slopes needs more noise than can be planned; use gaussian.",
            needs="mechanism gaussian",
        )
    made = _assembled(problem, rows, theta, found, way, least, lattice, clips, left, mu)
    return made.rebuilt(queries=whole.queries, groups=groups, unions=rows.unions())


def members(problem: Problem) -> tuple[Gaussian, ...]:
    """The class, where averages of this problem can be moved at all; a refusal elsewhere."""
    theta = gaussians(problem)
    statistics = statistics_of(problem)
    if not problem.columns:
        raise Refusal(
            Cause.STATISTIC, "the number of rows is public; ask for an average or a sum.", needs="an average or a sum"
        )
    if any(member.tolerance.shape is not None for member in theta):
        raise Refusal(
            Cause.SHAPE,
            "rows are assumed exactly normal here; a shape tolerance is what gaussian_approximation is for.",
            needs="mechanism gaussian_approximation",
        )
    if problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS,
            "individuals: single rows are not covered where other columns are read, in this version; use gaussian.",
            needs="mechanism gaussian",
        )
    for column in dict.fromkeys(c for one in statistics for c in one):
        if any(column not in member.mean for member in theta):
            raise Refusal(
                Cause.NUMBERS,
                f"assume.mean: needs the mean of {column}, as the centre of what may show. Got none.",
                needs=f"the mean of {column}",
                usage=True,
            )
    several = len(statistics) > 1
    if problem.known_rows and (len(problem.columns) > 1 or any(len(one) > 1 for one in statistics) or several):
        # Entries of one of several columns can tie the rest together more closely than the slopes say.
        raise Refusal(
            Cause.PERSONS, "known_rows: must be 0 where several columns are released or read at once.", needs="known_rows 0"
        )
    if several and any(len(one) > 1 or list(one.values()) != [1.0] for one in statistics):
        raise Refusal(
            Cause.SECRET, "several secrets must be means or sums of one column each; use gaussian.", needs="mechanism gaussian"
        )
    if several and {c for one in statistics for c in one} & set(problem.columns):
        raise Refusal(
            Cause.STATISTIC,
            "a sensitive column cannot be asked for where several are protected; use gaussian.",
            needs="mechanism gaussian",
        )
    return theta


def _masked_reads(problem: Problem) -> tuple[str, ...]:
    """The columns that are read under a mask: all of them where there are several, none where there is one."""
    statistics = statistics_of(problem)
    return tuple(next(iter(one)) for one in statistics) if len(statistics) > 1 else ()


def read_jointly(problem: Problem) -> tuple[Secret, ...]:
    """All statistics that are read as one secret, where they are several: given all of them less is left than given each."""
    texts = tuple(f"mean({quoted(column)})" for column in _masked_reads(problem))
    return (Secret(texts, within=1.0),) if texts else ()


def _plain(problem: Problem) -> Plan | None:
    try:
        return plan_by("gaussian", problem)
    except Refusal:
        return None


def _plain_cost(plain: Plan, sds: Sequence[float]) -> float:
    return sum((part.error.rmse or 0.0) ** 2 / sd**2 for part, sd in zip(plain.columns, sds, strict=True))


# ------------------------------------------------------------------------------------------------------------ the plan


def _assembled(
    problem: Problem,
    rows: Rows,
    theta: Sequence[Gaussian],
    found: Told,
    way: Way,
    least: Mapping[str, float],
    lattice: ValueLattice,
    clips: Mapping[str, float | None],
    left: Budget,
    mu: float,
) -> Plan:
    evidence = TransportEvidence(
        columns=problem.columns,
        independent=way.layout.independent,
        factor=way.layout.factor,
        least=(*(least[c] for c in problem.columns), *(read.mask for read in way.clamp.reads)),
        clamp=way.clamp,
        checks=found.checks,
        **left.charges,
    )
    if clamp_bits(way.clamp, way.layout.independent, way.layout.factor) > MOST_BITS:
        raise Refusal(Cause.TOGETHER, "the averages differ too much in scale for a common grid; ask for them apart.")
    require_smooth(problem, rows, theta, way.layout.covariance(), (*problem.secrets, *read_jointly(problem)))
    gap = max(scale - least[c] for scale, c in zip(way.layout.scales(), problem.columns, strict=True))
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=left.promised,
        evidence=evidence,
        assumes=(*gaussian_assumptions(problem, theta, lattice), *subset_lines(rows), *left.fit_lines),
        exact=gap <= 1e-6 * min(least.values()),
        gap=max(0.0, gap) if gap > 1e-6 * min(least.values()) else 0.0,
    )
    certificate.verify()
    off = _model_error(problem, rows, theta, evidence, left, least)
    scales = dict(zip(problem.columns, way.layout.scales(), strict=True))
    return assemble(
        problem,
        "transport",
        AveragesPart(columns=_columns(problem, rows, found, way, least, clips, mu), factor=way.layout.factor),
        certificate,
        reference=REFERENCE,
        model_error=off,
        notes=(
            *gaussian_notes(problem, theta, lattice, least, scales, clips),
            *_notes(problem, theta, found, way),
            *subset_lines(rows),
        ),
    )


def _columns(
    problem: Problem,
    rows: Rows,
    found: Told,
    way: Way,
    least: Mapping[str, float],
    clips: Mapping[str, float | None],
    mu: float,
) -> tuple[ColumnPlan, ...]:
    plans = []
    for k, (column, scale, spread) in enumerate(zip(problem.columns, way.layout.scales(), way.spreads, strict=True)):
        clip = problem.bounds[column] if clips.get(column) is not None else None
        law: dict[str, object] = {"wander": _rows(found, len(problem.columns)), "bias": [float(x) for x in found.bias]}
        if isinstance(spread, ClampSpread):
            law = {"wander": spread.wander, "room": spread.room}
        parameters = {
            "form": "clamped" if way.clamp.period is None else "staircase",
            "calibration": problem.calibration,
            "mu": mu,
            "mask": least[column],
            "granularity": granularity(way.layout.independent[k]),
            "slopes": [float(x) for x in found.slopes[k]],
            "reads": [read.column for read in way.clamp.reads],
            "reach": way.clamp.reach,
            "clipped": clip is not None,
            **law,
        }
        plans.append(
            ColumnPlan(
                column=column,
                where=rows.wheres[k],
                rows=None if rows.wheres[k] is None else rows.sizes[k],
                noise=Noise(kind="gaussian", scale=scale),
                independent=way.layout.independent[k],
                error=spread.error(),
                fill=problem.missing.get(column),
                clip=clip,
                terms={} if rows.wheres[k] is None else {c: problem.missing.get(c) for c in problem.forms[k]},
                parameters=parameters,
            )
        )
    return tuple(plans)


def _rows(found: Told, size: int) -> list[list[float]]:
    import numpy as np

    rows = np.linalg.norm(found.wander, axis=1)[:, None] if size == 1 else found.wander
    return [[float(x) for x in row] for row in rows]


def _model_error(
    problem: Problem,
    over: Rows,
    theta: Sequence[Gaussian],
    evidence: TransportEvidence,
    left: Budget,
    least: Mapping[str, float],
) -> tuple[ModelError, ...]:
    """The epsilon that really holds, at the same delta, when every slope is further off than the tolerance says."""
    rows = []
    for off in OFF_BY:
        try:
            distance = max(evidence.distance_of(check) for check in told_over(problem, over, theta, least, off).checks)
        except CertificateError:
            distance = math.inf
        rows.append(ModelError(off_by=off, epsilon=real_epsilon(distance, left)))
    return tuple(rows)


def _notes(problem: Problem, theta: Sequence[Gaussian], found: Told, way: Way) -> tuple[str, ...]:
    names = ", ".join(dict.fromkeys(c for one in found.statistics for c in one))
    notes = [f"the average of {names} is read too: what it reveals about {', '.join(problem.read_columns)} is removed."]
    notes.append("errors and intervals are over the tables that the assumption describes; far from its means they are larger.")
    if any(secret.cases is not None for secret in problem.secrets):
        notes.append("sets of values are hidden point by point.")
    if all(is_exact(member) for member in theta):
        notes.append("slopes are taken as exact (tolerance 0).")
    for column, spread in zip(problem.columns, way.spreads, strict=True):
        if any(column not in member.mean for member in theta):
            continue  # no mean to answer with
        own = max(m.sd_of(column) * math.hypot(1 / math.sqrt(problem.n), m.tolerance.mean) for m in theta)
        if spread.rmse > _HARDLY * own:
            notes.append(f"{column}: the answer tells hardly more than the assumption's own mean would (its sd is {own:.3g}).")
    return tuple(notes)
