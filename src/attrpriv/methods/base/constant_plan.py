"""A count answered by a public number: no row is read."""

from __future__ import annotations

from collections.abc import Sequence

from attrpriv.methods.base.accuracy import ExpectedError, largest_error
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.evidence import ConstantEvidence
from attrpriv.methods.base.expected_count import ExpectedCount
from attrpriv.methods.base.parts import TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally import Tally
from attrpriv.problem.problem import Problem

_REFERENCE = "docs/theory/yardsticks.md"


def constant_plan(problem: Problem, whole: Tally, laws: Sequence[ExpectedCount], notes: Sequence[str] = ()) -> Plan:
    """The middle of what the count is expected to be under the laws of Theta; its error is that of the worst of them."""
    means = [law.mean for law in laws]
    centre = round((min(means) + max(means)) / 2)
    off = {"bias": max(abs(mean - centre) for mean in means), "sd": max(law.sd for law in laws)}
    tally = whole.model_copy(update={"centre": centre, "parameters": off})
    certificate = Certificate(
        epsilon=problem.epsilon, delta=problem.delta, evidence=ConstantEvidence(), assumes=("no row is read",)
    )
    error = largest_error([law.error(centre) for law in laws])
    exact = ExpectedError(rmse=0.0, mean_absolute=0.0, alpha95=0.0, worst=0.0)
    errors = tuple(exact if q.whole_table else error.scaled(tally.unit_of(q, problem.n)) for q in problem.queries)
    kind = () if all(query.whole_table for query in problem.queries) else ("a yardstick: auto never chooses it.",)
    certificate.verify()
    return assemble(
        problem,
        "constant",
        TallyPart(tally=tally),
        certificate,
        reference=_REFERENCE,
        errors=errors,
        model_error=certificate.evidence.model_error(problem.epsilon, problem.delta),
        notes=(*kind, *notes),
    )
