"""What one entry of a chain costs: how far apart a released statistic lies for two of its states.

| statistic | values(s) |
|---|---|
| count(*) filter (where e) | 1 where state s satisfies e, else 0 |
| sum(x), avg(x) | the state in steps of the states' common unit |
| count(*) ... group by x | none: two different states are 2 apart |

With noise of scale b an entry that changes from s to t costs |values(s) - values(t)|/b. What must never change: values are
those that the tally counts. Where a state does not decide them alone, any two states count as the whole width apart.
"""

from __future__ import annotations

from attrpriv.assumptions.chain import Chain
from attrpriv.cases.tally_layout import cell_condition, union_of
from attrpriv.errors import QueryError
from attrpriv.methods.base.tally import Tally
from attrpriv.problem.problem import Problem
from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.evaluate import holds_for


def counted_by_states(problem: Problem, chain: Chain, tally: Tally) -> Tally:
    """An event as the union of the states that it holds for, so that the engine counts what is proved, never its own text.

    As it is where that is a matter of the column's type: then any two states count as apart, whatever the text means.
    """
    if tally.complete:
        return tally
    cells = [(state, cell_condition(problem, chain.column, state, k)) for k, state in enumerate(chain.states)]
    counted = []
    for cell in tally.cells:
        try:
            counted.append(cell.model_copy(update={"where": str(union_of(parse_condition(cell.where), cells))}))
        except QueryError:
            return tally
    return tally.model_copy(update={"cells": tuple(counted)})


def entry_values(problem: Problem, chain: Chain, tally: Tally) -> tuple[int, ...] | None:
    """What an entry of each state adds; None where that is not a matter of the state alone."""
    if chain.column in problem.bounds or problem.types.get(chain.column) == "boolean" or tally.histogram:
        return None
    conditions = [parse_condition(cell.where) for cell in tally.cells]
    found = []
    for state in chain.states:
        try:
            held = [k for k, condition in enumerate(conditions) if holds_for(condition, state)]
        except QueryError:  # a comparison that is a matter of the column's type
            return None
        if len(held) > 1 or (tally.complete and not held):
            return None
        found.append(tally.cells[held[0]].value if held else 0)
    return tuple(found)
