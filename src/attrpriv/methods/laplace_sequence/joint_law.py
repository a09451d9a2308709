"""Statistics of one column: each is a function of the row's value, so that the stated law of the values is their joint law.

What must never change: statistics are taken together only where they read the same entries, filled and clipped alike, and every
value that the assumption lists decides each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrpriv.assumptions.counts import states_of
from attrpriv.cases.lattice import Counted, counted
from attrpriv.errors import QueryError
from attrpriv.methods.base.tally import Tally
from attrpriv.methods.laplace_sequence.proof import JointLaw
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.evaluate import Category, holds_for
from attrpriv.queries.query import Query

Read = tuple[str, float | None, tuple[float, float] | None]


def joint_laws(problem: Problem, found: Sequence[Counted | None]) -> list[tuple[JointLaw, ...]]:
    """Of each case, in order: the joint laws of those statistics that are of one column, two or more of them."""
    groups: dict[Read, list[int]] = {}
    for place, one in enumerate(found):
        if one is not None and len(one.tally.reads) == 1:
            groups.setdefault(_read(one.tally), []).append(place)
    made = [
        _joint(problem, read[0], places, [one.tally for one in (found[place] for place in places) if one is not None])
        for read, places in groups.items()
        if len(places) > 1
    ]
    known = [laws for laws in made if laws is not None]
    cases = next((len(one.cases) for one in found if one is not None), 0)
    return [tuple(laws[k] for laws in known) for k in range(cases)]


def _read(tally: Tally) -> Read:
    column = next(iter(tally.reads))
    return column, tally.fill.get(column), tally.clip.get(column)


def _joint(problem: Problem, column: str, places: Sequence[int], tallies: Sequence[Tally]) -> list[JointLaw] | None:
    """None where the assumption does not list the column's values, or a value does not decide a statistic."""
    try:
        whole = counted(problem.model_copy(update={"queries": (Query("count", group_by=column),)}))
        values, _ = whole.theta[0].values(column, problem.bins)
        added = [_added(tally, states_of(column, values, problem.bins)) for tally in tallies]
    except (Refusal, QueryError):
        return None
    if any(one is None for one in added):
        return None
    rows = tuple(one for one in added if one is not None)
    return [JointLaw(places=tuple(places), atoms=case.records, added=rows) for case in whole.cases]


def _added(tally: Tally, states: Sequence[Category]) -> tuple[int, ...] | None:
    """What a row of each value adds; of a histogram, the number of its cell."""
    conditions = [parse_condition(cell.where) for cell in tally.cells]
    found = []
    for state in states:
        held = [k for k, condition in enumerate(conditions) if holds_for(condition, state)]
        if len(held) > 1 or (tally.complete and not held):
            return None
        found.append(0 if not held else held[0] if tally.histogram else tally.cells[held[0]].value)
    return tuple(found)
