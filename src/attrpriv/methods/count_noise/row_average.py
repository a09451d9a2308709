"""`laplace` on an average or a sum beside counts: of a bounded column of which the assumption says nothing.

Its noise makes any one row look like any other, so that whatever the column has to do with the category and with what is
counted, everything together loses what the bridge says: the rows that change, times what one row costs (docs/theory/bridge.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from attrpriv.assumptions.counts import Counts
from attrpriv.cases.lattice import independent_rows
from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import Noise, laplace_error
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import LaplaceEvidence
from attrpriv.methods.base.parts import AveragesPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.laplace_sequence.row_average import RowAverageEvidence, row_term
from attrpriv.methods.laplace_sequence.standing import Standing, sequence_checks
from attrpriv.noise import granularity
from attrpriv.numerics.rounding import AIMED_UP, ROUNDED_UP, SUMMED_DOWN
from attrpriv.numerics.search import largest_private
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal

_REFERENCE = "docs/theory/bridge.md"


def averages_an_unnamed_column(problem: Problem) -> bool:
    """Whether it asks for the average or the sum, over all rows, of one column in bounds of which nothing is assumed."""
    asked = [query for query in problem.queries if not query.whole_table]
    plain = all(query.kind in ("avg", "sum") and query.plain and query.simple for query in asked)
    if not (asked and plain and len(problem.columns) == 1 and problem.columns[0] in problem.bounds):
        return False
    return all(problem.columns[0] not in member.listed_values() for member in problem.assumed(Counts))


def plan_row_average(problem: Problem) -> Plan:
    """The least noise that what was released before leaves room for."""
    (column,) = problem.columns
    low, high = problem.bounds[column]
    width, standing = (high - low) * ROUNDED_UP, Standing.of(problem)
    if not (math.isfinite(width) and width > 0):
        raise Refusal(Cause.PUBLIC_FACT, f"bounds of {column} must be two finite numbers.", needs=f"bounds of {column}")
    checks = sequence_checks(problem, standing.past.spending(1.0), standing.laws)
    most, room = standing.most * problem.epsilon * SUMMED_DOWN, standing.room(problem)

    def at(b: float) -> RowAverageEvidence:
        scale = width / problem.n / b * AIMED_UP
        term = row_term(column, width, problem.n, scale, granularity(scale))
        return RowAverageEvidence(past=standing.past, n=problem.n, term=term, checks=checks)

    def keeps(b: float) -> bool:
        made = at(b)
        persons = problem.individuals is None or made.b <= problem.individuals
        kept = room is None or made.loss(going_on=True) <= room
        return persons and kept and made.loss() <= most

    evidence = at(_largest(keeps, problem.epsilon))
    scale = evidence.term.scale
    rows = None if problem.individuals is None else LaplaceEvidence(epsilon=problem.individuals, terms=(evidence.term,))
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=problem.delta,
        evidence=evidence,
        individuals=rows,
        assumes=(*independent_rows(problem), *_of_the_column(problem, column)),
        exact=_is_least(problem),
        gap=0.0 if _is_least(problem) else scale,
    )
    certificate.verify()
    part = ColumnPlan(
        column=column,
        noise=Noise(kind="laplace", scale=scale),
        error=laplace_error(scale),
        fill=problem.missing.get(column),
        clip=problem.bounds[column],
        parameters={"b": evidence.b, "granularity": evidence.term.granularity, "clipped": True},
    )
    return assemble(
        problem,
        "laplace",
        AveragesPart(columns=(part,)),
        certificate,
        reference=_REFERENCE,
        model_error=evidence.model_error(problem.epsilon, problem.delta),
        notes=(
            f"{column}: values outside its bounds are clipped.",
            f"{column}: noise is for one row, because the assumption does not say how {column} goes with the rest.",
        ),
    )


def _of_the_column(problem: Problem, column: str) -> tuple[str, ...]:
    lines = (f"nothing about {column}, nor how it goes with anything else",)
    return (
        lines if column in problem.missing else (*lines, f"no entry of {column} is missing: one would be an announced failure")
    )


def _is_least(problem: Problem) -> bool:
    """Whether less noise would not do: where the column tells the category, each row that changes costs all of b."""
    pointwise = all(secret.parameter is None and secret.cases is None for secret in problem.secrets)
    return problem.alone and problem.delta == 0 and pointwise


def _largest(keeps: Callable[[float], bool], epsilon: float) -> float:
    try:
        return largest_private(lambda b: b <= epsilon and keeps(b))
    except UsageError:
        pass
    raise Refusal(Cause.BUDGET, "what is left of the budget asks for more noise than floats hold.", needs="a larger epsilon")
