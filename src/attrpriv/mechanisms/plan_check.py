"""The last check before noise is drawn: the certificate holds, and what will be drawn is what it counted on."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from attrpriv.errors import CertificateError
from attrpriv.guarantee import (
    CountSequenceEvidence,
    GaussianEvidence,
    GroupEvidence,
    GroupTransportEvidence,
    GroupVectorEvidence,
    GroupVectorTransportEvidence,
    LaplaceEvidence,
    QuantileClipEvidence,
    QuiltEvidence,
    SequenceEvidence,
    TransportEvidence,
)
from attrpriv.mechanisms.column_plan import ColumnPlan, own_scale

if TYPE_CHECKING:
    from attrpriv.mechanisms.plan import Plan


def require_certified(plan: Plan) -> None:
    """`CertificateError` unless the promise holds for exactly this plan."""
    plan.certificate.verify()
    same = (plan.epsilon, plan.delta) == (plan.certificate.epsilon, plan.certificate.delta)
    covered = [
        part.centre is not None or plan.certificate.covers(part.column, part.noise.kind, own_scale(part))
        for part in plan.columns
    ]
    evidence, rows = plan.certificate.evidence, plan.certificate.individuals
    if plan.tally is not None:
        covered.append(plan.tally.covered_by(plan.certificate, plan.n))
    vectors = GaussianEvidence | GroupVectorEvidence | GroupVectorTransportEvidence | TransportEvidence
    common = evidence.factor if isinstance(evidence, vectors) else ()
    common = evidence.own_factor if isinstance(evidence, GaussianEvidence) else common
    covered.append(plan.factor == common)
    counted = GroupEvidence | GroupVectorEvidence | GroupTransportEvidence | GroupVectorTransportEvidence
    covered.append(bool(plan.categories) == isinstance(evidence, counted))
    if plan.clamp is not None or plan.factor:  # rows of slopes and of the factor belong to columns by their order
        named = evidence.own_columns if isinstance(evidence, GaussianEvidence) else getattr(evidence, "columns", ())
        covered.append([part.column for part in plan.columns] == list(named))
    if isinstance(evidence, QuantileClipEvidence):
        covered.append(evidence.n == plan.n and len(plan.columns) == 1 and plan.columns[0].clip is None)
    if isinstance(evidence, SequenceEvidence):
        covered.append([part.column for part in plan.columns] == [step.column for step in evidence.own_steps])
        covered.append(all(part.clip is None for part in plan.columns))
    for part in plan.columns:
        covered.append(part.noise.kind != "laplace" or part.clip is not None)
        covered.append(_clipped_enough(part, evidence))
        if part.noise.kind == "gaussian":  # Laplace noise of the mechanism itself also protects rows
            wanted = 0.0 if rows is None else next((t.scale for t in rows.terms if t.column == part.column), math.nan)
            covered.append(part.noise.individuals == wanted)
    if not (same and all(covered)):
        raise CertificateError("plan: must promise and draw what its certificate counted on. Nothing was released.")


def _clipped_enough(part: ColumnPlan, evidence: object) -> bool:
    """Whether rows are clipped at least as tightly as the noise was scaled for."""
    if part.clip is None:
        return True
    widths: list[float] = []
    if isinstance(evidence, LaplaceEvidence | CountSequenceEvidence):
        widths = [term.sensitivity for term in evidence.terms if term.column == part.column]
    elif isinstance(evidence, QuiltEvidence):
        widths = [term.sensitivity for term in evidence.terms if term.name == part.column and term.sensitivity is not None]
    width = Fraction(part.clip[1]) - Fraction(part.clip[0])
    return all(width <= Fraction(allowed) * (1 + Fraction(1, 10**12)) for allowed in widths)
