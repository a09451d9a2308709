"""Averages over a subset of public size, by the Gaussian mechanism.

A condition on columns that the assumption does not name keeps m of the n rows. Which rows they are is independent of the
columns of the assumption: assumed, and said. F is the average of x over these m rows, g that of y over all n. With V the
covariance of a row,

    Cov(F, g) = V_xy / n,   Var(g) = V_yy / n:      given g = a, F moves by the same slope  B = V_xy / V_yy  as over all rows,
    Var(F | g) = V_xx / m - V_xy V_yx / (V_yy n)  >=  (V_xx - V_xy V_yx / V_yy) / m.

So the plan for a table of m rows hides g in F, with the same distance of secret values. It credits the lower bound, and has
the mask of averages of m recorded values. It is not the least noise, and says so.

What must never change: the size is declared, never read. A table in which it is another is an announced failure with a fixed
text. What two subsets tell together is not covered: such a release stands alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from attrpriv.assumptions import Gaussian
from attrpriv.framework import Problem
from attrpriv.guarantee import Certificate, GaussianEvidence
from attrpriv.mechanisms.plan import ColumnPlan, Plan, Subset
from attrpriv.mechanisms.refusal import Refusal
from attrpriv.queries.conditions import columns_of, parse_condition
from attrpriv.queries.query import Query


def plan_subset(problem: Problem, planner: Callable[[Problem], Plan]) -> Plan:
    """The plan for the subset's rows, by the planner of averages over all rows."""
    subset = _subset(problem)
    queries = tuple(replace(query, where=None) for query in problem.queries)
    made = planner(problem.model_copy(update={"queries": queries, "n": subset.rows, "bounds": {}, "sizes": {}}))
    names = {plain.key: query.key for plain, query in zip(queries, problem.queries, strict=True)}
    columns = tuple(_renamed(part, names[part.column] or "", problem) for part in made.columns)
    certificate = _certificate(made, columns, problem, subset)
    certificate.verify()
    return made.model_copy(
        update={
            "queries": problem.queries,
            "n": problem.n,
            "columns": columns,
            "certificate": certificate,
            "subset": subset,
            "notes": (*made.notes, f"the average is over {subset.rows} of {problem.n} rows: {subset.where}."),
        }
    )


def _subset(problem: Problem) -> Subset:
    wheres = dict.fromkeys(query.where for query in problem.queries)
    where, *others = wheres
    if others or where is None or any(query.kind != "avg" or query.group_by is not None for query in problem.queries):
        raise Refusal("averages over one subset can be asked for together, and nothing else beside them.")
    size = problem.sizes.get(where)
    if size is None or not 2 <= size <= problem.n:
        raise Refusal(f"sizes: must say how many of the {problem.n} rows satisfy {where}, 2 at least. Got {size}.", usage=True)
    _require_apart(problem, where)
    _require_covered(problem)
    return Subset(where=where, rows=size)


def _require_apart(problem: Problem, where: str) -> None:
    """The condition must be about other columns than the assumption and the secrets are."""
    named = {column for member in problem.theta if isinstance(member, Gaussian) for column in member.columns}
    named |= {column for secret in problem.secrets for column in secret.columns}
    inside = [column for column in columns_of(parse_condition(where)) if column in named]
    if inside:
        raise Refusal(
            f"{where}: rows chosen by {inside[0]}, a column of the assumption or of a secret, do not have the assumed law. "
            "Choose by other columns, or use a view."
        )
    clash = [query.key for query in problem.queries if query.key in {*problem.types, *named}]
    if clash:
        raise Refusal(f"{clash[0]}: is an average over a subset, and the name of a column too. Rename that column.", usage=True)


def _require_covered(problem: Problem) -> None:
    if not problem.alone:
        raise Refusal("an average over a subset shares no budget with other releases; spend all of it (spend 1).")
    if problem.known_rows or problem.individuals is not None:
        raise Refusal("known_rows, individuals: are not covered for averages over a subset.")
    if any(secret.cases is not None or any(form.kind != "mean" for form in secret.forms) for secret in problem.secrets):
        raise Refusal("an average over a subset is covered beside means that are hidden by their distance, not sums or cases.")


def _renamed(part: ColumnPlan, key: str, problem: Problem) -> ColumnPlan:
    """The same noise under the subset's own name, so that nobody takes it for an average over all rows."""
    terms = part.terms or {part.column: problem.missing.get(part.column)}
    return part.model_copy(update={"column": key, "terms": terms, "fill": None})


def _certificate(made: Plan, columns: tuple[ColumnPlan, ...], problem: Problem, subset: Subset) -> Certificate:
    evidence = made.certificate.evidence
    if not isinstance(evidence, GaussianEvidence):
        raise Refusal("is for averages under a gaussian assumption.")
    lines = [line for line in made.certificate.assumes if line != f"the number of rows, {subset.rows}, is public"]
    lines += [
        f"which rows satisfy {subset.where} is independent of the columns of the assumption: assumed, not tested",
        f"the number of rows, {problem.n}, and of those that satisfy {subset.where}, {subset.rows}, are public",
    ]
    gap = max(part.noise.scale - part.parameters["mask"] for part in columns)
    renamed = evidence.model_copy(update={"columns": tuple(part.column for part in columns), "alone": True})
    return made.certificate.model_copy(
        update={"evidence": renamed, "assumes": tuple(lines), "exact": False, "gap": max(0.0, gap)}
    )


def is_over_subset(query: Query) -> bool:
    """Whether a query is an average over some rows, all at once."""
    return query.kind == "avg" and query.where is not None and query.group_by is None
