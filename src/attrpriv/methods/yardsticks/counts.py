"""The yardsticks for counts: group differential privacy, and the constant answer.

`group_dp`: every row may change at once, so a count moves by at most n, and whole-number Laplace noise of scale n/epsilon (a
histogram: 2 n) makes any table look like any other. `constant`: the count that the assumption and its prior expect.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.probabilities import filled
from attrpriv.cases.chain_layout import chain_of, chain_tally
from attrpriv.cases.lattice import CountCase, Counted, counted, one_query, worst_law
from attrpriv.cases.stated import stated
from attrpriv.cases.tally_layout import layout
from attrpriv.errors import QueryError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.evidence import LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.parts import TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally import Tally, TallyCell
from attrpriv.methods.base.tally_plan import ExpectedCount, additive_error, constant_plan, expected_count
from attrpriv.methods.laplace_sequence.standing import range_assumes, range_budget
from attrpriv.methods.yardsticks import averages
from attrpriv.numerics.laws.count_cases import CountPrior
from attrpriv.numerics.laws.records import Interval01, RecordLaws
from attrpriv.numerics.rounding import AIMED_UP
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusing
from attrpriv.problem.shapes import CHAIN, RECORDED, STATED
from attrpriv.queries.query import Query

_REFERENCE = "docs/theory/yardsticks.md"
# The smallest float: a whole number's noise has no grid to pay for, and a term wants a positive one.
_NO_GRID = 5e-324


def plan_group_dp(problem: Problem) -> Plan:
    """Laplace noise for all rows at once; no assumption is used."""
    query = one_query(problem)
    tally = _tally(problem, query)
    width = float(problem.n * tally.width)
    epsilon, proof = range_budget(problem)
    scale = width / epsilon * AIMED_UP
    if problem.individuals is not None:
        scale = max(scale, tally.width / problem.individuals * AIMED_UP)
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
    certificate.verify()
    return assemble(
        problem,
        "group_dp",
        TallyPart(tally=noisy),
        certificate,
        reference=_REFERENCE,
        errors=tuple(additive_error(problem, noisy, query) for query in problem.queries),
        model_error=certificate.evidence.model_error(problem.epsilon, problem.delta),
    )


def _tally(problem: Problem, query: Query) -> Tally:
    """The tally of the assumption, or a bare count with a filter where it says nothing of counts."""
    if not problem.theta or problem.shape == RECORDED:
        where = query.where or ""
        return Tally(cells=(TallyCell(name=where, where=where, value=1),), complete=False, categories=(), fill=problem.missing)
    if problem.shape == CHAIN:
        return chain_tally(problem, chain_of(problem)[0], query)
    if problem.shape == STATED:
        return stated(problem).tally.model_copy(update={"support": ()})  # the noise is for any sum that rows can have
    assumed = problem.assumed(Counts)
    if not assumed:
        raise Refusal(Cause.ASSUMPTION, "needs a counts assumption.", needs="counts")
    with refusing(QueryError, to=lambda error: Refusal(Cause.STATISTIC, str(error), query=query.text, usage=True)):
        return layout(problem, assumed[0], query).tally


def plan_constant(problem: Problem) -> Plan:
    """The count that the assumption expects under its prior; the number of rows is public under every assumption."""
    if problem.public:
        return averages.plan_constant(problem)
    found = counted(problem)
    if found.tally.histogram:
        raise Refusal(Cause.TOGETHER, "is for one number.")
    laws = [law for k, counts in enumerate(found.theta) for law in _laws(found, counts, k)]
    return constant_plan(
        problem, found.tally, laws, notes=[f"its error is that over the tables of the prior{worst_law(found)}."]
    )


def _laws(found: Counted, counts: Counts, index: int) -> list[ExpectedCount]:
    """The laws of the count at the corners of the box: of the rows, and of the prior share."""
    shares = counts.shares()
    case = next(case for case in found.cases if case.theta == index)
    members = [one.name for one in found.tally.categories if one.member]
    if case.population or any(name not in shares for name in counts.categories):
        raise Refusal(
            Cause.NUMBERS,
            "needs a prior for the share of each category, and a secret of this table.",
            needs="a prior for the share of each category",
        )
    ends = dict.fromkeys(min(1.0, math.fsum(shares[name][end] for name in members)) for end in (0, 1))
    records = case.records
    sides = [corner_laws(records.values, side) for side in (records.member, records.rest)]
    return [
        expected_count(RecordLaws(records.values, one, other), _prior(found, case, share))
        for share in ends
        for one, other in itertools.product(*sides)
    ]


def _prior(found: Counted, case: CountCase, share: float) -> CountPrior:
    """Of several secrets none is looked at by itself: tables are those of the prior, whatever their ranges."""
    n, alone = case.pairs.n, len(found.problem.secrets) == 1 and 0 < share < 1
    low, high = (case.pairs.low, case.pairs.high) if alone else (0, n)
    return CountPrior(n, low, high, share=share)


def corner_laws(values: Sequence[int], law: Sequence[Interval01]) -> list[tuple[Interval01, ...]]:
    """The laws within the intervals with the least and the largest mean, and with the least and the largest square.

    >>> corner_laws((0, 1), ((0.5, 0.7), (0.3, 0.5)))
    [((0.7, 0.7), (0.3, 0.3)), ((0.5, 0.5), (0.5, 0.5))]
    """
    orders = [sorted(range(len(values)), key=key) for key in (lambda k: values[k], lambda k: values[k] ** 2)]
    found = [filled(law, order) for order in orders for order in (order, order[::-1])]
    return list(dict.fromkeys(tuple((p, p) for p in one) for one in found))
