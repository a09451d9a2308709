"""Which statistics a mechanism may be asked for at all, before it looks at the assumption.

| statistic | answered by |
|---|---|
| count(*), avg and sum of one column | every mechanism that covers the assumption |
| avg and sum of a linear combination of columns, over all rows | `gaussian`, `gaussian_approximation` under gaussian; a view |
| avg and sum of these over subsets or by group, of declared sizes | `gaussian`, `transport` (columns); else a view |
| variances, covariances, regressions, quantiles, over all rows | `markov_quilt`, `group_dp` (bounds or ranges); a view |
| avg and sum of products of columns; any of these over a subset | a view |
| anything by group | a view; `count(*)` by group also under counts |

What must never change: what is not in this table is refused, whatever a mechanism would make of it.
"""

from __future__ import annotations

from attrpriv.cases.subset import require_one_meaning
from attrpriv.errors import QueryError
from attrpriv.methods.method import Method
from attrpriv.problem.problem import Problem
from attrpriv.problem.public_groups import public_groups
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.shapes import NOTHING, SHIFT
from attrpriv.queries.intervals import NON_LINEAR
from attrpriv.queries.query import Query

AS_RATIO = "release it as a ratio of two sums: sum(...) and count(*) with the same filter"


def require_covered(method: Method, problem: Problem) -> None:
    """A refusal unless every query is of a kind that this mechanism knows."""
    require_one_meaning(problem)
    for query in problem.queries:
        if method.views:
            _require_groups(problem, query)
        elif query.kind == "avg" and query.where is not None and query.group_by is None and query.linear is not None:
            _require_size(method, problem, query)
        elif query.linear is not None and not query.plain and _over_subsets(method, problem, query):
            continue  # sizes are asked for there
        elif query.kind in NON_LINEAR and "non_linear" in method.covers:
            _require_all_rows(query)
        elif not query.simple:
            _require_linear(method, problem, query)


def _require_groups(problem: Problem, query: Query) -> None:
    reason = None
    try:
        if query.group_by is not None and not (problem.types and query.group_by not in problem.types):
            public_groups(query.group_by, problem.categories, problem.bins, problem.secrets, problem.types)
    except QueryError as error:
        reason = str(error)
    if reason is not None:
        raise Refusal(Cause.PUBLIC_FACT, reason, needs=f"categories of {query.group_by}", query=query.text, usage=True)


def _over_subsets(method: Method, problem: Problem, query: Query) -> bool:
    combined = "combinations" in method.covers and _gaussian(problem)
    return "subsets" in method.covers and (query.simple or combined)


def _gaussian(problem: Problem) -> bool:
    """Whether nothing but a gaussian assumption is made, or none: no other says anything of combinations of columns."""
    return problem.shape in (SHIFT, NOTHING)


def _require_linear(method: Method, problem: Problem, query: Query) -> None:
    if query.linear is not None:
        if "combinations" in method.covers and query.plain and _gaussian(problem):
            return
        by = "gaussian, or a view," if problem.theta and _gaussian(problem) else "a gaussian assumption, or a view,"
        raise Refusal(
            Cause.STATISTIC,
            f"does not cover {query.text}; {by} does. Or ask for the average of each column.",
            needs=("a view" if problem.theta and _gaussian(problem) else "a gaussian assumption", "the average of each column"),
            query=query.text,
        )
    _require_all_rows(query)
    if query.kind not in NON_LINEAR:
        raise Refusal(
            Cause.STATISTIC,
            f"does not cover {query.text}, of products of columns; a view does (protect a count, share or distribution).",
            needs="a view",
            query=query.text,
        )
    raise Refusal(
        Cause.STATISTIC,
        f"does not cover {query.text}. Two ways: (a) any query on the secret-free view (protect a count, share or "
        "distribution; mechanism subsample); (b) a declared sensitivity: bounds or ranges, and markov_quilt under a parameter "
        "network, or group_dp.",
        needs=("a view", "bounds or ranges, and mechanism markov_quilt or group_dp"),
        query=query.text,
    )


def _require_all_rows(query: Query) -> None:
    if not query.plain:
        raise Refusal(
            Cause.STATISTIC,
            f"does not cover {query.text}, over some rows; ask for it over all rows. A view answers it as it is.",
            needs=("the statistic over all rows", "a view"),
            query=query.text,
        )


def _require_size(method: Method, problem: Problem, query: Query) -> None:
    """An average over some rows is a ratio of two sums, one of which is a count that may tell the secret."""
    if query.where in problem.sizes:
        if _over_subsets(method, problem, query):
            return
        raise Refusal(
            Cause.STATISTIC,
            f"does not cover the average over a subset, {query.text}; gaussian does, and so does a view.",
            needs=("mechanism gaussian", "a view"),
            query=query.text,
        )
    needed = f"the average over a subset, {query.text}, needs the subset's size as a public number"
    if not _gaussian(problem):
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"{needed} and a gaussian assumption.",
            needs=f"sizes of {query.where}, under a gaussian assumption",
            query=query.text,
            otherwise=AS_RATIO,
        )
    raise Refusal(
        Cause.PUBLIC_FACT,
        f'{needed}: declare sizes: {{"{query.where}": rows}}.',
        needs=f"sizes of {query.where}",
        query=query.text,
        otherwise=AS_RATIO,
    )
