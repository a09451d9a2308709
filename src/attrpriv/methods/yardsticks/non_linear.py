"""`group_dp` for statistics that are no averages: Laplace noise for the whole of a public range (`methods.base.ranged`).

Noise of the width of the range over epsilon makes any table look like any other; it needs no assumption.
"""

from __future__ import annotations

from attrpriv.methods.base.accuracy import Noise, laplace_error
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import LaplaceTerm
from attrpriv.methods.base.parts import StatisticPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.ranged import ranged
from attrpriv.methods.laplace_sequence.standing import range_assumes, range_budget
from attrpriv.noise import GRID_BITS, granularity
from attrpriv.numerics.rounding import SOLVED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal

_REFERENCE = "docs/theory/yardsticks.md"


def plan_group_dp(problem: Problem) -> Plan:
    """Laplace noise of the width of the range; no assumption is used."""
    found = ranged(problem)
    epsilon, proof = range_budget(problem)
    # The grid of the noise adds one step to the width, at most 2^-32 of the scale; 1e-9 covers every rounding.
    spendable = epsilon * SOLVED_DOWN - 2.0**-GRID_BITS
    if not spendable > 0:
        raise Refusal(
            Cause.BUDGET, f"the grid of the noise costs more than epsilon {problem.epsilon:g} allows.", needs="a larger epsilon"
        )
    scale = found.width / spendable
    term = LaplaceTerm(column=found.query.text, sensitivity=found.width, scale=scale, granularity=granularity(scale))
    certificate = Certificate(
        epsilon=problem.epsilon, delta=problem.delta, evidence=proof((term,)), assumes=range_assumes(problem)
    )
    certificate.verify()
    part = ColumnPlan(
        column=term.column,
        noise=Noise(kind="laplace", scale=scale),
        error=laplace_error(scale),
        parameters={"sensitivity": term.sensitivity, "granularity": term.granularity, "clipped": True},
    )
    return assemble(
        problem,
        "group_dp",
        StatisticPart(columns=(part,), statistic=found.how),
        certificate,
        reference=_REFERENCE,
        model_error=certificate.evidence.model_error(problem.epsilon, problem.delta),
        notes=found.notes,
    )
