"""The law of an answer around the table's own value, for every kind of plan: what intervals are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrpriv.methods.base.accuracy import Reach, Spread
from attrpriv.methods.base.clamp import Clamp
from attrpriv.methods.base.clamp_draw import ClampSpread
from attrpriv.methods.base.clamp_error import clamp_spreads
from attrpriv.methods.group_transport.correction import Expected, group_spreads
from attrpriv.methods.group_transport.proof import GroupTransportEvidence, GroupVectorTransportEvidence
from attrpriv.methods.quantile_clip.draw import clip_spread
from attrpriv.methods.quantile_clip.proof import QuantileClipEvidence
from attrpriv.methods.transport.sequence_draw import sequence_spreads
from attrpriv.methods.transport.sequence_proof import SequenceEvidence
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    from attrpriv.methods.base.plan import Plan


def plan_spread(plan: Plan, query: Query, group: str | None) -> Reach:
    """Of the answer to one query, in one group."""
    if plan.tally is not None:
        return Spread("none", 0.0) if query.whole_table else plan.tally.spread(query, plan.n)
    if query.key is not None and plan.view is None and plan.of(query).centre is not None:
        part, weight = plan.of(query), query.weight(plan.n)
        return Spread("gaussian", weight * float(part.parameters["sd"]), bias=weight * float(part.parameters["bias"]))
    moved = None if query.key is None else _moved(plan, query, group)
    noise = plan.noise_of(query, group)
    return Spread(noise.kind, noise.scale, noise.individuals) if moved is None else moved


def _moved(plan: Plan, query: Query, group: str | None) -> Reach | None:
    """Where an average is moved by what a secret tells, besides its noise; None where it is not."""
    evidence, weight = plan.certificate.evidence, query.weight(plan.n)
    if plan.clamp is not None:
        return _clamped(plan, plan.clamp, query, group)
    if isinstance(evidence, GroupTransportEvidence | GroupVectorTransportEvidence):
        part = plan.of(query)
        spreads = group_spreads(evidence, Expected.of(part.parameters["expected"]))
        return spreads[plan.columns.index(part)].scaled(weight)
    if isinstance(evidence, SequenceEvidence):
        part = plan.of(query)
        moved = sequence_spreads(evidence, part.parameters["wander"], part.parameters["bias"])
        return moved[plan.columns.index(part)].scaled(weight)
    return clip_spread(evidence).scaled(weight) if isinstance(evidence, QuantileClipEvidence) else None


def _clamped(plan: Plan, clamp: Clamp, query: Query, group: str | None) -> Reach:
    part, weight = plan.of(query, group), query.weight(plan.rows_of(query, group))
    wander = part.parameters["wander"]
    if isinstance(wander, float):
        return ClampSpread(plan.noise_of(query, group).scale, weight * wander, weight * float(part.parameters["room"]))
    scales = [other.noise.scale for other in plan.columns]
    spreads = clamp_spreads(clamp, wander, part.parameters["bias"], scales)
    return spreads[plan.columns.index(part)].scaled(weight)
