"""From a method and a problem to the form that plans it; a refusal where there is none.

What must never change: a form is asked for what it states, and for nothing else.
"""

from __future__ import annotations

from typing import Literal

from attrpriv.methods.base.plan import Plan
from attrpriv.methods.table import Form, Method, load, methods
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, other_assumption
from attrpriv.problem.shapes import LATTICE, MIXED, SHIFT
from attrpriv.queries.query import Query

_AVERAGES = ("averages", "subsets")


def planned_by(method: Method, problem: Problem) -> Plan:
    """The plan of this method, by the form that takes the problem."""
    form = form_of(method, problem)
    if form is None:
        raise _for_others(method, problem)
    if form.alone and not problem.alone:
        raise Refusal(
            Cause.BUDGET,
            "shares no budget with other releases under this assumption; spend all of it (spend 1).",
            needs="spend 1",
        )
    if form.statistics in _AVERAGES:
        _require_averages(problem, subsets=form.statistics == "subsets")
    made: Plan = load(form.home)(problem)
    _require_persons(made, problem)
    return made


def _require_persons(made: Plan, problem: Problem) -> None:
    """Where single persons are to be protected, a plan carries that proof too, whoever wrote its method."""
    rows, asked = made.certificate.individuals, problem.individuals
    if asked is None or not made.certificate.evidence.reads_rows:
        return
    if rows is None or rows.epsilon is None or rows.epsilon > asked:
        raise Refusal(
            Cause.PERSONS, "individuals: its plan does not prove that single persons are protected.", needs="no individuals"
        )


def plan_by(name: str, problem: Problem) -> Plan:
    """The plan of the method of this name: for a method that ends where another one does as well."""
    return planned_by(methods()[name], problem)


def form_of(method: Method, problem: Problem) -> Form | None:
    """The first form for the problem's shape and kind of statistics."""
    for form in method.forms:
        if form.shapes and problem.shape not in form.shapes:
            continue
        if form.statistics not in ("counts", "non_linear") or form.statistics == _kind(problem):
            return form
    return None


def _kind(problem: Problem) -> Literal["non_linear", "counts", "averages"]:
    if problem.non_linear:
        return "non_linear"
    return "counts" if problem.tallied else "averages"


def too_slow(method: Method, problem: Problem) -> str | None:
    """For what size `auto` tries it, in words, where the problem is larger; None where it is fast enough."""
    form = form_of(method, problem)
    if form is None or not form.too_slow:
        return None
    found: str | None = load(form.too_slow)(problem)
    return found


def _for_others(method: Method, problem: Problem) -> Refusal:
    """A method that takes no case of this shape."""
    if problem.shape == MIXED:
        return Refusal(Cause.NUMBERS, _one_of_several(problem), needs="an assumption of one kind")
    averages = [form for form in method.forms if form.statistics in _AVERAGES]
    if averages and problem.theta and problem.tallied:
        under = f"under a {next(iter(method.asks), 'gaussian')} assumption"
        return Refusal(
            Cause.STATISTIC, f"is for averages of numeric columns, {under}.", needs=f"an average of a column, {under}"
        )
    if problem.tallied and LATTICE in method.shapes():
        return other_assumption("counts")
    if averages:
        _require_averages(problem, subsets=any(form.statistics == "subsets" for form in averages))
    if len(method.asks) == 1:
        return other_assumption(method.asks[0])
    *first, last = method.asks or ("known",)
    named = ", ".join(f"a {kind}" for kind in first)
    return Refusal(Cause.ASSUMPTION, f"needs {named} or a {last} assumption.", needs=method.asks)


def _require_averages(problem: Problem, *, subsets: bool) -> None:
    """Noise on averages: over all rows, or over subsets of public size too."""
    covered = [query.plain or (subsets and query.linear is not None) for query in problem.queries]
    filtered = [query for query, known in zip(problem.queries, covered, strict=True) if not known]
    if filtered:
        raise Refusal(
            Cause.STATISTIC,
            f"answers statistics over all rows only. Got {filtered[0].text}; {_answering(problem, filtered[0])}",
            needs="a counts assumption" if filtered[0].linear is None else "a gaussian assumption",
            query=filtered[0].text,
        )


def _answering(problem: Problem, query: Query) -> str:
    """What answers a statistic with a filter or by group: never the mechanism that was just refused."""
    if problem.shape == MIXED:
        return _one_of_several(problem)
    if query.linear is None:
        return "a count of some rows needs a counts assumption or a view."
    if problem.shape == SHIFT:
        return "gaussian and transport answer it, and so does a view."
    return "averages and sums over some rows need a gaussian assumption or a view."


def _one_of_several(problem: Problem) -> str:
    """Of a list of several kinds: it is no sum of what each of them says."""
    kinds = sorted({member.kind for member in problem.theta})
    beside = " Beside counts an average needs bounds alone." if "counts" in kinds else ""
    return f"of the assumptions listed ({', '.join(kinds)}) one holds, not all of them; state one kind.{beside}"
