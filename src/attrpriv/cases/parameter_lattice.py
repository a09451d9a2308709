"""A count under a parameter network: what is counted, and its law given each value of every hidden parameter.

| query on a column with a known emission | tally |
|---|---|
| count(*) filter (where e), e about that column alone | rows with the event e count 1 |
| sum(x), avg(x), x bernoulli | rows with x = 1 count 1 |

Every entry of the column must be one of the listed values, or the stated law is not its law. The network must be exact
(tolerance 0): with a tolerance `markov_quilt` covers the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attrpriv.assumptions.emissions import conditional_states, event_probabilities, listed_values, seen_values
from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.cases.lattice import one_query
from attrpriv.cases.tally_layout import cell_condition, union_of
from attrpriv.errors import QueryError, UsageError
from attrpriv.methods.base.certificate import common_assumptions
from attrpriv.methods.base.checks import ParameterCheck
from attrpriv.methods.base.tally import Tally, TallyCell
from attrpriv.methods.base.tally_plan import ExpectedCount, expected_events
from attrpriv.numerics.laws.parameter_counts import ParameterCounts
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, other_assumption, refusal_of
from attrpriv.queries.conditions import Condition, columns_of, parse_condition
from attrpriv.queries.query import Query


@dataclass(frozen=True)
class ParameterCase:
    """One hidden parameter under one member of Theta, and how likely its values are."""

    secret: str
    theta: int
    prior: tuple[float, ...]
    counts: ParameterCounts


@dataclass(frozen=True)
class ParameterCounted:
    """Everything a mechanism needs: the laws to hide from each other, and the tally, still without noise."""

    problem: Problem
    theta: tuple[ParameterNetwork, ...]
    query: Query
    column: str
    tally: Tally
    cases: tuple[ParameterCase, ...]

    @property
    def event(self) -> str:
        """The rows that count."""
        return self.tally.cells[0].where

    @property
    def checks(self) -> tuple[ParameterCheck, ...]:
        """The cases as a certificate stores them."""
        return tuple(ParameterCheck(secret=case.secret, theta=case.theta, counts=case.counts) for case in self.cases)


def parameter_counted(problem: Problem) -> ParameterCounted:
    """The problem as a count of one column; a refusal where its law is not known."""
    theta = problem.assumed(ParameterNetwork)
    if not theta:
        raise other_assumption("parameter_network")
    if problem.known_rows:
        raise Refusal(
            Cause.PERSONS,
            "known_rows: is not covered; who knows rows knows more of the parameters than the network says.",
            needs="known_rows 0",
        )
    if any(member.tolerance for member in theta):
        raise Refusal(
            Cause.NUMBERS,
            "tolerance: must be 0 for the law of the count; markov_quilt covers a tolerance.",
            needs=("tolerance 0", "mechanism markov_quilt"),
        )
    query, refusal = one_query(problem), None
    try:
        column, event = _event(problem, theta, query)
        tally = _tally(problem, theta, column, event)
        cases = [case for k, member in enumerate(theta) for case in _cases(problem, member, k, column, event)]
        return ParameterCounted(problem, theta, query, column, tally, tuple(cases))
    except (QueryError, UsageError) as error:
        refusal = refusal_of(error)
    raise refusal


def _event(problem: Problem, theta: Sequence[ParameterNetwork], query: Query) -> tuple[str, Condition]:
    """The column that is read, and which of its entries count."""
    if query.group_by is not None:
        raise QueryError("query: the joint law of a histogram is not covered; ask for one count.")
    if query.of:
        raise QueryError(f"query: the law of {query.text} is not given; ask for the average of each column.")
    if query.column is None:
        event = parse_condition(query.where or "")
        read = columns_of(event)
        if len(read) != 1:
            raise QueryError(f"query: must be about one column. Got {', '.join(read)}.")
        _require_plain(problem, theta, read[0])
        return read[0], event
    if query.where is not None:
        raise QueryError(f"query: {query.text} is not covered; ask without the filter, or for a count with it.")
    _require_plain(problem, theta, query.column)
    return query.column, cell_condition(problem, query.column, 1, 1)


def _tally(problem: Problem, theta: Sequence[ParameterNetwork], column: str, event: Condition) -> Tally:
    listed = listed_values(theta[0], column, boolean=_boolean(problem, column))
    cells = [cell_condition(problem, column, value, k) for k, value in enumerate(listed)]
    seen = seen_values(theta[0], column, problem.bins, boolean=_boolean(problem, column))
    counted = union_of(event, list(zip(seen, cells, strict=True)))
    covering = tuple(map(str, cells))
    return Tally(
        cells=(TallyCell(name=str(event), where=str(parse_condition(str(counted))), value=1),),
        complete=False,
        categories=(),
        covering=(covering,),
        fill=problem.missing,
        clip={},  # an event is of the entries as they are
    )


def _boolean(problem: Problem, column: str) -> bool:
    return problem.types.get(column) == "boolean"


def _cases(problem: Problem, member: ParameterNetwork, index: int, column: str, event: Condition) -> list[ParameterCase]:
    probabilities = event_probabilities(member, column, event, problem.bins, boolean=_boolean(problem, column))
    found = []
    for secret in problem.secrets:
        if secret.attribute is None:
            raise Refusal(
                Cause.SECRET,
                f"hides parameters of the network, as in parameter: income. Got {secret.text}.",
                needs="a parameter of the network",
                usage=True,
            )
        given = conditional_states(member, column, secret.attribute)
        if len(given.values) < 2:
            raise Refusal(
                Cause.PROMISE,
                f"parameter: {secret.attribute} has a single possible value; there is nothing to hide.",
                needs="a parameter of several values",
            )
        counts = ParameterCounts(problem.n, probabilities, given.weights, given.error)
        found.append(ParameterCase(secret.attribute, index, given.prior, counts))
    return found


def _require_plain(problem: Problem, theta: Sequence[ParameterNetwork], column: str) -> None:
    """A bernoulli entry is 0 or 1: neither a text nor cut into bins. A sum adds up the entries themselves."""
    values = {listed_values(member, column, boolean=_boolean(problem, column)) for member in theta}
    if len(values) > 1:
        raise QueryError(f"assume: every assumption of a list must give {column} the same values.")
    bernoulli = theta[0].attributes[column].family == "bernoulli"
    if bernoulli and (column in problem.bins or problem.types.get(column) == "text"):
        raise QueryError(f"attributes.{column}: a bernoulli column has the entries 0 and 1, or false and true.")
    if not bernoulli and column in problem.columns:
        raise QueryError(f"query: sums and averages of {column} are covered where it is bernoulli; ask for a count.")


def expected_counts(found: ParameterCounted) -> list[ExpectedCount]:
    """The law of the count under each member of Theta."""
    cases = [case for case in found.cases if case.secret == found.cases[0].secret]
    return [expected_events(c.counts.n, _marginal(c), [float(sum(pair) / 2) for pair in c.counts.probabilities]) for c in cases]


def _marginal(case: ParameterCase) -> list[float]:
    """How likely the states of the column's own parameter are."""
    rows = zip(*case.counts.weights, strict=True)
    return [_average(case.prior, row) for row in rows]


def _average(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(w * x for w, x in zip(weights, values, strict=True))


def parameter_assumptions(found: ParameterCounted) -> tuple[str, ...]:
    """Everything the proof rests on."""
    problem = found.problem
    lines = [
        f"given its parameter, the entries of {found.column} are independent and follow the law that is stated: assumed",
        "given the parameters of the population the columns are independent, and each depends on its own alone: assumed",
    ]
    lines += [f"{'one of: ' if len(found.theta) > 1 else ''}{member}" for member in found.theta]
    if found.column in problem.missing:
        lines.append(f"the law of {found.column} is that of its entries with missing ones replaced")
    return (*lines, "the adversary knows no row", *common_assumptions(problem))


def parameter_notes(found: ParameterCounted) -> tuple[str, ...]:
    if any(secret.between is not None or secret.within is not None for secret in found.problem.secrets):
        return ("all values of each parameter are hidden from each other, not only those that between or within name.",)
    return ()
