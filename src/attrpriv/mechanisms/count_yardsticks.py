"""The yardsticks for counts: group differential privacy, and the constant answer.

`group_dp`: every row may change at once, so a count moves by at most n, and whole-number Laplace noise of scale n/epsilon (a
histogram: 2 n) makes any table look like any other. `constant`: the count that the assumption and its prior expect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrpriv.assumptions.chain import Chain
from attrpriv.assumptions.counts import Counts
from attrpriv.errors import QueryError
from attrpriv.framework import Problem
from attrpriv.guarantee import Certificate, ConstantEvidence, Guarantee, LaplaceEvidence, LaplaceTerm
from attrpriv.mechanisms.accuracy import Error
from attrpriv.mechanisms.chain_layout import chain_of, chain_tally
from attrpriv.mechanisms.count_plan import additive_error
from attrpriv.mechanisms.count_sequence import range_assumes, range_budget, range_model_error
from attrpriv.mechanisms.counted import Counted, counted, one_query
from attrpriv.mechanisms.plan import Plan
from attrpriv.mechanisms.refusal import Refusal
from attrpriv.mechanisms.tally import Tally, TallyCell
from attrpriv.mechanisms.tally_layout import layout
from attrpriv.mechanisms.wording import statement
from attrpriv.queries.query import Query

_REFERENCE = "docs/theory/yardsticks.md"
# The smallest float: a whole number's noise has no grid to pay for, and a term wants a positive one.
_NO_GRID = 5e-324


def is_tally(problem: Problem) -> bool:
    """Whether the problem is about counts: by its assumption, or because it asks for a count with a filter."""
    if problem.theta:
        return all(isinstance(member, Counts | Chain) for member in problem.theta)
    asked = [query for query in problem.queries if not query.whole_table]
    return bool(asked) and all(query.kind == "count" and query.group_by is None for query in asked)


def plan_group_dp(problem: Problem) -> Plan:
    """Laplace noise for all rows at once; no assumption is used."""
    query = one_query(problem)
    tally = _tally(problem, query)
    width = float(problem.n * tally.width)
    epsilon, proof = range_budget(problem)
    scale = width / epsilon * (1 + 1e-11)
    if problem.individuals is not None:
        scale = max(scale, tally.width / problem.individuals * (1 + 1e-11))
    term = LaplaceTerm(column=query.text, sensitivity=width, scale=scale, granularity=_NO_GRID)
    rows = None
    if problem.individuals is not None:
        single = term.model_copy(update={"sensitivity": float(tally.width)})
        rows = LaplaceEvidence(epsilon=problem.individuals, terms=(single,))
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=problem.delta,
        evidence=proof((term,)),
        individuals=rows,
        assumes=range_assumes(problem),
    )
    noisy = tally.model_copy(update={"noise": "laplace", "scale": scale, "parameters": {"sensitivity": width}})
    return _plan(problem, "group_dp", noisy, certificate, tuple(additive_error(problem, noisy, q) for q in problem.queries))


def _tally(problem: Problem, query: Query) -> Tally:
    """The tally of the assumption, or a bare count with a filter where there is none."""
    if not problem.theta:
        where = query.where or ""
        return Tally(cells=(TallyCell(name=where, where=where, value=1),), complete=False, categories=(), fill=problem.missing)
    first = problem.theta[0]
    if isinstance(first, Chain):
        return chain_tally(problem, chain_of(problem)[0], query)
    reason = None
    try:
        if isinstance(first, Counts):
            return layout(problem, first, query).tally
    except QueryError as error:
        reason = str(error)
    raise Refusal(reason or "needs a counts assumption.", usage=reason is not None)


def plan_constant(problem: Problem) -> Plan:
    """The count that the assumption expects under its prior."""
    found = counted(problem)
    if found.tally.histogram:
        raise Refusal("is for one number.")
    means, variances = zip(*(_moments(found, counts, k) for k, counts in enumerate(found.theta)), strict=True)
    return constant_plan(problem, found.tally, means, math.sqrt(max(variances)))


def constant_plan(problem: Problem, whole: Tally, means: Sequence[tuple[float, float]], sd: float) -> Plan:
    """The middle of the ranges that the expected count may have, and its largest standard deviation."""
    centre = round((min(low for low, _ in means) + max(high for _, high in means)) / 2)
    bias = max(max(abs(low - centre), abs(high - centre)) for low, high in means)
    tally = whole.model_copy(update={"centre": centre, "parameters": {"bias": bias, "sd": sd}})
    certificate = Certificate(
        epsilon=problem.epsilon, delta=problem.delta, evidence=ConstantEvidence(), assumes=("no row is read",)
    )
    errors = tuple(_constant_error(tally, query, problem.n) for query in problem.queries)
    return _plan(problem, "constant", tally, certificate, errors, notes=("a yardstick: auto never chooses it.",))


def _moments(found: Counted, counts: Counts, index: int) -> tuple[tuple[float, float], float]:
    """The range of E F over the box, and the largest variance, where rows fall into the categories by the prior."""
    shares = counts.shares()
    case = next(case for case in found.cases if case.theta == index)
    members = [one.name for one in found.tally.categories if one.member]
    if case.population or any(name not in shares for name in counts.categories):
        raise Refusal("needs a prior for the share of each category, and a secret of this table.")
    share = [math.fsum(shares[name][end] for name in members) for end in (0, 1)]
    means, squares = [], 0.0
    for part in {share[0], min(1.0, share[1])}:
        for end in (0, 1):
            law = [part * m[end] + (1 - part) * r[end] for m, r in zip(case.records.member, case.records.rest, strict=True)]
            means.append(math.fsum(v * p for v, p in zip(case.records.values, law, strict=True)))
            squares = max(squares, math.fsum(v * v * p for v, p in zip(case.records.values, law, strict=True)))
    n, least = found.problem.n, min(means)
    return (n * least, n * max(means)), n * max(0.0, squares - least**2)


def _constant_error(tally: Tally, query: Query, n: int) -> Error:
    if query.whole_table:
        return Error(rmse=0.0, mean_absolute=0.0, alpha95=0.0, worst=0.0)
    bias, sd, unit = float(tally.parameters["bias"]), float(tally.parameters["sd"]), tally.unit_of(query, n)
    rmse = math.hypot(bias, sd) * unit
    absolute = min(rmse, (bias + sd * math.sqrt(2 / math.pi)) * unit)
    return Error(rmse=rmse, mean_absolute=absolute, alpha95=(bias + 1.96 * sd) * unit)


def _plan(
    problem: Problem,
    mechanism: str,
    tally: Tally,
    certificate: Certificate,
    errors: tuple[Error, ...],
    notes: tuple[str, ...] = (),
) -> Plan:
    certificate.verify()
    return Plan(
        mechanism=mechanism,
        queries=problem.queries,
        n=problem.n,
        epsilon=problem.epsilon,
        delta=problem.delta,
        policy_digest=problem.policy_digest,
        columns=(),
        tally=tally,
        guarantee=Guarantee(kind="proved", statement=statement(problem), reference=_REFERENCE),
        certificate=certificate,
        errors=errors,
        model_error=range_model_error(problem, certificate.evidence),
        notes=notes,
    )
