"""Answers from a reference view that protect single persons: noise for two replaced rows, behind a test of the counts.

    individuals = e     e/2 for the test of the counts (`base.count_test`), e/2 shared by the answers of one call
    an answer           Laplace noise of scale  moved / its share,  `moved` by one changed record (`base.view_persons`)

What is promised: a changed record is hidden with (e, delta), delta that of the test, in everything that is answered. What must
never change: nothing in an answer, its interval or its failure depends on a row but through the noise. So intervals are by
public numbers, and missing entries have a public value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from attrpriv.frozen import Range
from attrpriv.methods.base.accuracy import ExpectedError, laplace_error, noise_error, unaffected
from attrpriv.methods.base.certificate import Guarantee
from attrpriv.methods.base.count_test import CountTest
from attrpriv.methods.base.evidence import LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.parts import EXACT, ViewPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.view_persons import NoisyAnswer, ViewPersons, moved
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.view.reference import NO_TEST, TEST_SHARE
from attrpriv.noise import GRID_BITS, granularity
from attrpriv.numerics.rounding import SOLVED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.queries.query import Query

ONE_CALL = "single persons: all of their epsilon goes to the answers of this call; a second call of other queries is refused."
_COVERED = ("avg", "sum", "count")


def persons_plan(
    problem: Problem,
    view: ViewPlan,
    shares: Mapping[str, float],
    sampling: Sequence[tuple[float, int] | None],
    composition: Sequence[str],
) -> Plan:
    """The plan of all queries together; `sampling` has, for each, the error of the choice of rows by public numbers."""
    test, epsilon = view.certificate.evidence.row_test(), problem.individuals
    if test is None or epsilon is None:
        raise NO_TEST
    weights = tuple(shares[cell.name] for cell in view.cells)
    asked = [(query, one) for query, one in zip(problem.queries, sampling, strict=True) if not query.whole_table]
    share = epsilon * (1 - TEST_SHARE) / max(1, len(asked))
    made = [_answer(problem, view, weights, query, share, one) for query, one in asked]
    persons = ViewPersons(weights=weights, answers=tuple(answer for answer, _ in made))
    rows = LaplaceEvidence(epsilon=epsilon, terms=(test.term, *(term for _, term in made)))
    certificate = view.certificate.model_copy(update={"individuals": rows})
    certificate.verify()
    behind = view.model_copy(update={"persons": persons})
    return assemble(
        problem,
        "subsample",
        ViewPart(view=behind),
        certificate,
        guarantee=_guarantee(view.guarantee, epsilon, test),
        errors=tuple(_error(behind, query) for query in problem.queries),
        model_error=unaffected(0.0),
        notes=(*view.notes, *composition, ONE_CALL),
    )


def _answer(
    problem: Problem,
    view: ViewPlan,
    weights: Sequence[float],
    query: Query,
    epsilon: float,
    sampling: tuple[float, int] | None,
) -> tuple[NoisyAnswer, LaplaceTerm]:
    bounds, fill = _clipped(problem, query)
    far = moved(query, bounds, fill, view.cells, weights, view.n)
    spendable = epsilon * SOLVED_DOWN - 2.0**-GRID_BITS
    if far is None or sampling is None or not spendable > 0:
        raise _not_covered(query) if spendable > 0 else NO_TEST
    up = _above(far)
    scale = up / spendable
    error, times = sampling
    answer = NoisyAnswer(query=query, bounds=bounds, fill=fill, scale=scale, sampling=error * times)
    return answer, LaplaceTerm(column=query.text, sensitivity=up, scale=scale, granularity=granularity(scale))


def _clipped(problem: Problem, query: Query) -> tuple[Range | None, float | None]:
    """The public range that a row's value is clipped to, and the public value where it is missing."""
    ratio = query.kind == "avg" and query.where is not None
    if query.kind not in _COVERED or query.group_by is not None or query.of or ratio:
        raise _not_covered(query)
    column = query.column
    if column is None:
        return None, None
    if column not in problem.bounds:
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"individuals: needs bounds for {column}; declare bounds: {{{column}: [low, high]}}.",
            needs=f"bounds of {column}",
            usage=True,
        )
    if column not in problem.missing:
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"individuals: needs a public value for missing entries of {column}, because that a row has none must not show; "
            f"declare missing: {{{column}: value}}.",
            needs=f"missing of {column}",
            usage=True,
        )
    return problem.bounds[column], problem.missing[column]


def _not_covered(query: Query) -> Refusal:
    return Refusal(
        Cause.PERSONS,
        "individuals: in a view single persons are protected in averages and sums of a column and in counts, without GROUP BY. "
        f"Got {query.text}. Ask for these (an average with a filter is a sum over a count).",
        needs="averages, sums and counts",
        query=query.text,
    )


def _above(value: Fraction) -> float:
    """A float at or above an exact number."""
    found = float(value)
    return found if Fraction(found) >= value else math.nextafter(found, math.inf)


def _error(view: ViewPlan, query: Query) -> ExpectedError:
    found = view.noisy(query)
    if found is None:
        return EXACT
    return noise_error(found.sampling, found.scale) if found.sampling else laplace_error(found.scale)


def _guarantee(hidden: Guarantee, epsilon: float, test: CountTest) -> Guarantee:
    rows = f"a changed record is hidden with ({epsilon:g}, {test.delta:g})-differential privacy in these answers"
    return hidden.model_copy(update={"statement": f"{hidden.statement}; {rows}"})
