"""A plan from what a method has found: the part that draws, and the certificate that proves it. The rest follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from attrpriv.methods.base.accuracy import ExpectedError, ModelError
from attrpriv.methods.base.certificate import Certificate, Guarantee
from attrpriv.methods.base.parts import Part
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.wording import statement
from attrpriv.problem.problem import Problem
from attrpriv.queries.query import Query


def assemble(
    problem: Problem,
    mechanism: str,
    part: Part,
    certificate: Certificate,
    *,
    reference: str = "",
    kind: Literal["proved", "approximate"] = "proved",
    guarantee: Guarantee | None = None,
    queries: Sequence[Query] | None = None,
    errors: Sequence[ExpectedError] = (),
    model_error: Sequence[ModelError] = (),
    notes: Sequence[str] = (),
) -> Plan:
    """The plan for these queries (the problem's, unless others are named); it promises what the certificate proves.

    `reference` is the page with the proof; `guarantee` stands in its place where the promise is not one for pairs of values.
    """
    said = statement(problem, certificate.delta)
    return Plan(
        mechanism=mechanism,
        queries=tuple(problem.queries if queries is None else queries),
        n=problem.n,
        epsilon=certificate.epsilon,
        delta=certificate.delta,
        policy_digest=problem.policy_digest,
        part=part,
        guarantee=guarantee or Guarantee(kind=kind, statement=said, reference=reference),
        certificate=certificate,
        errors=tuple(errors),
        model_error=tuple(model_error),
        notes=tuple(notes),
    )
