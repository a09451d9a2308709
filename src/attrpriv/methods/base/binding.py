"""The last check before noise is drawn: the certificate holds, and what will be drawn is what it counted on.

What must never change: everything that decides what is read, what is drawn and what the proof says is in `binding_of`. It is
computed where a mechanism makes a plan, and again here. `FREE` lists what may vary, with the reason.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attrpriv.errors import CertificateError
from attrpriv.methods.base.column_plan import ColumnPlan, own_scale
from attrpriv.methods.base.evidence import Evidence
from attrpriv.methods.base.statistic_plan import StatisticPlan
from attrpriv.queries.intervals import NON_LINEAR

if TYPE_CHECKING:
    from attrpriv.methods.base.plan import Plan

NOT_COVERED = "plan: must promise and draw what its certificate counted on. Nothing was released."

# What no row and no noise depends on: words, expected errors, and the numbers that intervals are made of.
FREE: Mapping[str, str] = MappingProxyType(
    {
        "bound": "is the digest itself",
        "spend": "says which share of the budget was asked for; the certificate says what is used",
        "notes": "are words",
        "guarantee": "is the promise in words; the certificate has its numbers",
        "errors": "are what to expect of the answer",
        "model_error": "says what would hold were the assumption wrong",
        "columns.error": "is what to expect of the answer",
        "columns.parameters": "are shown, and used for intervals",
        "tally.parameters": "are shown, and used for intervals",
        "tally.tails": "are used for intervals",
        "tally.tail_step": "is used for intervals",
        "certificate.assumes": "are words",
        "certificate.exact": "says whether less noise would do",
        "certificate.gap": "says how much less noise might do",
    }
)


def binding_of(plan: Plan) -> str:
    """A digest of all of a plan that is read or drawn from, and of its proof."""
    told = what_is_bound(plan.model_dump(mode="json", warnings=False))
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def what_is_bound(value: Any, place: str = "") -> Any:
    """A plan as JSON without what may vary."""
    if isinstance(value, dict):
        inner = {key: f"{place}.{key}" if place else key for key in value}
        return {key: what_is_bound(one, inner[key]) for key, one in value.items() if inner[key] not in FREE}
    return [what_is_bound(one, place) for one in value] if isinstance(value, list) else value


def require_certified(plan: Plan) -> None:
    """`CertificateError` unless the promise holds for exactly this plan."""
    if plan.bound != binding_of(plan):
        raise CertificateError(NOT_COVERED)
    plan.certificate.verify()
    same = (plan.epsilon, plan.delta) == (plan.certificate.epsilon, plan.certificate.delta)
    covered = [
        part.centre is not None or plan.certificate.covers(part.column, part.noise.kind, own_scale(part))
        for part in (plan.columns if plan.statistic is None else ())
    ]
    evidence, rows = plan.certificate.evidence, plan.certificate.individuals
    if plan.statistic is not None:
        covered.append(_statistic_covered(plan, plan.statistic))
    if plan.tally is not None:
        covered.append(plan.tally.covered_by(plan.certificate, plan.n))
    covered.append(plan.factor == evidence.common_noise())
    covered.append(bool(plan.categories) == evidence.reads_categories)
    clipped = any(part.clip is not None for part in plan.columns)
    covered.append(evidence.suits(tuple(part.column for part in plan.columns), plan.n, clipped=clipped))
    for part in plan.columns:
        kept = part.clip if plan.statistic is None else plan.statistic.range
        covered.append(part.noise.kind != "laplace" or kept is not None)
        covered.append(_clipped_enough(part, evidence))
        if part.noise.kind == "gaussian":  # Laplace noise of the mechanism itself also protects rows
            wanted = 0.0 if rows is None else next((t.scale for t in rows.terms if t.column == part.column), math.nan)
            covered.append(part.noise.individuals == wanted)
    if not (same and all(covered)):
        raise CertificateError(NOT_COVERED)


def _statistic_covered(plan: Plan, statistic: StatisticPlan) -> bool:
    """Whether the plan is for one statistic over all rows, and reads, keeps and draws what was counted on."""
    asked = [query for query in plan.queries if not query.whole_table]
    if len(asked) != 1 or len(plan.columns) != 1:
        return False
    (query,), (part,) = asked, plan.columns
    alone = not plan.categories and not plan.factor and not plan.reads and plan.tally is None and plan.view is None
    named = part.column == query.text and query.plain and query.kind in NON_LINEAR and part.clip is None
    read = set(statistic.fills) == set(statistic.clips) == set(query.columns)
    if not (alone and named and read) or part.centre is not None:
        return False
    evidence, columns = plan.certificate.evidence, frozenset(query.columns)
    return evidence.covers_statistic(query.text, columns, statistic.width, part.noise.kind, own_scale(part))


def _clipped_enough(part: ColumnPlan, evidence: Evidence) -> bool:
    """Whether rows are clipped at least as tightly as the noise was scaled for."""
    allowed = evidence.width_of(part.column)
    if part.clip is None or allowed is None:
        return True
    width = Fraction(part.clip[1]) - Fraction(part.clip[0])
    return width <= Fraction(allowed) * (1 + Fraction(1, 10**12))
