"""What is counted for a query about a chain's column.

| query | tally |
|---|---|
| count(*) filter (where e) | rows whose state satisfies e count 1 |
| sum(x), avg(x) | the states, in steps of their common unit |
| count(*) ... group by x | one count for each state |

What must never change: the query reads the chain's column alone, because nothing is assumed of other columns; and every row has
one of the states, or the release is an announced failure.
"""

from __future__ import annotations

from fractions import Fraction

from attrpriv.assumptions.chain import Chain
from attrpriv.cases.tally_layout import cell_condition, whole_steps
from attrpriv.errors import QueryError
from attrpriv.methods.base.certificate import common_assumptions
from attrpriv.methods.base.tally import Tally, TallyCategory, TallyCell
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, other_assumption, refusing
from attrpriv.queries.conditions import columns_of, parse_condition
from attrpriv.queries.query import Query


def chain_of(problem: Problem) -> tuple[Chain, ...]:
    """The chains of the assumption, all about one column with one list of states."""
    chains = problem.assumed(Chain)
    if not chains:
        raise other_assumption("chain")
    first = (chains[0].column, chains[0].states, chains[0].longest)
    if any((chain.column, chain.states, chain.longest) != first for chain in chains):
        raise Refusal(
            Cause.MISTAKE, "assume: every chain of a list must have the same column, states and longest.", needs="assume"
        )
    if chains[0].column in problem.bins:
        raise Refusal(
            Cause.MISTAKE, f"bins: {chains[0].column} is a chain of its own values; leave its bins out.", needs="bins"
        )
    return chains


def longest_of(problem: Problem, chain: Chain) -> int:
    """The number of entries of the longest chain: all rows, where they are one."""
    if chain.longest is not None and chain.longest > problem.n:
        raise Refusal(
            Cause.MISTAKE,
            f"longest: must be at most the number of rows, {problem.n}. Got {chain.longest}.",
            needs="a smaller longest",
        )
    return problem.n if chain.longest is None else chain.longest


def chain_tally(problem: Problem, chain: Chain, query: Query) -> Tally:
    """The tally without noise; a refusal where the query is not about the chain's column alone."""
    with refusing(
        QueryError, to=lambda error: Refusal(Cause.STATISTIC, str(error), needs="a statistic of the chain's column", usage=True)
    ):
        return _tally(problem, chain, query)


def _tally(problem: Problem, chain: Chain, query: Query) -> Tally:
    states = tuple(str(cell_condition(problem, chain.column, state, k)) for k, state in enumerate(chain.states))
    categories = tuple(
        TallyCategory(name=str(state), where=where, member=False) for state, where in zip(chain.states, states, strict=True)
    )
    if query.column is None and query.group_by is None:
        event = parse_condition(query.where or "")
        _require_own(chain, query, columns_of(event))
        counted = (TallyCell(name=str(event), where=str(event), value=1),)
        return Tally(cells=counted, complete=False, categories=categories, fill=problem.missing, clip=problem.bounds)
    if query.where is not None or (query.column is not None and query.group_by is not None):
        raise QueryError(f"query: {query.text} is not covered; ask for a count with a filter, or without the filter or group.")
    _require_own(chain, query, (query.column or query.group_by or "",))
    steps, unit, origin, order = tuple(range(len(states))), Fraction(1), Fraction(0), list(range(len(states)))
    if query.group_by is None:
        steps, unit, origin, order = whole_steps(chain.column, chain.states)
    cells = tuple(
        TallyCell(name=str(chain.states[k]), where=states[k], value=1 if query.group_by is not None else step)
        for k, step in zip(order, steps, strict=True)
    )
    return Tally(
        cells=cells,
        complete=True,
        categories=categories,
        fill=problem.missing,
        clip=problem.bounds,
        unit=float(unit),
        origin=float(origin),
        histogram=query.group_by is not None,
    )


def _require_own(chain: Chain, query: Query, columns: tuple[str, ...]) -> None:
    for column in columns:
        if column != chain.column:
            raise QueryError(f"query: {query.text} reads {column}, of which the chain of {chain.column} says nothing.")


def require_entries(problem: Problem, chain: Chain) -> None:
    """A refusal unless the secrets are the entries of the chain's column, none of which is known."""
    for secret in problem.secrets:
        if secret.entries is None:
            raise Refusal(
                Cause.SECRET,
                f"hides the entries of a column, as in entries({chain.column}). Got {secret.text}.",
                needs="entries of a column",
                usage=True,
            )
        if secret.entries != chain.column:
            raise Refusal(
                Cause.SECRET,
                f"{secret.text}: must be about {chain.column}, the column of the chain.",
                needs=f"entries({chain.column})",
                usage=True,
            )
    if problem.known_rows:
        raise Refusal(
            Cause.PERSONS,
            "known_rows: must be 0; known entries say something about their neighbours, which is not covered.",
            needs="known_rows 0",
        )


def chain_assumptions(problem: Problem, chains: tuple[Chain, ...]) -> tuple[str, ...]:
    """What every promise about a chain rests on."""
    several = "one of: " if len(chains) > 1 else ""
    return (
        *(f"{several}{chain}: assumed, not tested" for chain in chains),
        _whose(chains[0]),
        *(f"the entries are those of {c} as read, missing ones replaced" for c in {chains[0].column} & set(problem.missing)),
        *(f"the entries are those of {c} as read, clipped to its bounds" for c in {chains[0].column} & set(problem.bounds)),
        *dict.fromkeys(_how(chain) for chain in chains),
        "the adversary knows no entry",
        "entries of other columns are not protected",
        *(common_assumptions(problem)[0:1] if problem.individuals is not None else ()),
        "each entry is protected on its own; a joint property of several entries is not covered",
        *common_assumptions(problem)[2:],
    )


def _whose(chain: Chain) -> str:
    if chain.longest is None:
        return "the order of the table's rows is the order of the chain, and the whole table is one chain"
    return (
        "the rows are those of several persons, who are independent of each other; the entries of each are a chain in the "
        f"order of the rows, of at most {chain.longest} entries"
    )


def _how(chain: Chain) -> str:
    start = "it may start anywhere" if chain.any_start else ""
    if chain.within_intervals:
        return f"each probability to move on is within its stated interval, at every step; {start}"
    if chain.tolerance:
        return (
            f"each probability to move on is within {chain.tolerance:g} of the one stated (0 stays 0), at every step; {start}"
        )
    if start:
        return f"transition matrices are exactly one of those stated, their rows divided by their sums; {start}"
    return "initial laws and transition matrices are exactly one of those stated, their rows divided by their sums"
