"""What is counted for a statistic with stated laws, and the stated values in its steps.

| stated statistic | tally |
|---|---|
| count(*) filter (where e) | rows with the event e count 1 |
| sum(x), avg(x) | the values of an entry of x, in steps of their common unit |

What must never change: the support of the tally are the stated values, each of which so many rows can add up to.
"""

from __future__ import annotations

from fractions import Fraction

from attrpriv.assumptions.laws import Laws
from attrpriv.cases.tally_layout import cell_condition, some_value, whole_steps
from attrpriv.errors import UsageError
from attrpriv.methods.base.tally import Tally, TallyCell
from attrpriv.numerics.laws.records import exactly
from attrpriv.problem.problem import Problem
from attrpriv.queries.conditions import columns_of, parse_condition


def stated_tally(problem: Problem, member: Laws) -> Tally:
    """The tally of the statistic that a member states laws of, still without noise."""
    tally = _event_tally(problem, member) if member.query.column is None else _sum_tally(problem, member)
    return tally.model_copy(update={"support": _steps(problem, member, tally)})


def _event_tally(problem: Problem, member: Laws) -> Tally:
    event = parse_condition(member.query.where or "")
    covering = tuple(filter(None, (some_value(column, event) for column in columns_of(event))))
    cells = (TallyCell(name=str(event), where=str(event), value=1),)
    return Tally(cells=cells, complete=False, categories=(), covering=covering, fill=problem.missing)


def _sum_tally(problem: Problem, member: Laws) -> Tally:
    column = member.query.column or ""
    values = member.row_values or (member.values if problem.n == 1 else ())
    if not values:
        raise UsageError(f"row_values: must list the values that an entry of {column} can have, where rows are more than one.")
    if column in problem.bins:
        raise UsageError(f"bins: {column} is summed by its own values under stated laws. Leave its bins out.")
    low, high = problem.bounds.get(column, (min(values), max(values)))
    if min(values) < low or high < max(values):
        raise UsageError(f"bounds: those of {column} must not cut off values that the assumption lists.")
    if len(values) == 1:
        raise UsageError(f"row_values: an entry of {column} must have two or more values.")
    steps, unit, origin, order = whole_steps(column, [_plain(value) for value in values])
    cells = tuple(
        TallyCell(name=f"{values[k]:g}", where=str(cell_condition(problem, column, _plain(values[k]), k)), value=step)
        for k, step in zip(order, steps, strict=True)
    )
    whole = {"unit": float(unit), "origin": float(origin)}
    return Tally(cells=cells, complete=True, categories=(), fill=problem.missing, **whole)


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _steps(problem: Problem, member: Laws, tally: Tally) -> tuple[int, ...]:
    """The stated values, in steps; each must be one that so many rows can add up to."""
    query, n = member.query, problem.n
    found = []
    for value in member.values:
        whole = exactly(value) * n if query.kind == "avg" else exactly(value)
        steps = whole if query.kind == "count" else (whole - exactly(tally.origin) * n) / exactly(tally.unit)
        near = round(steps)
        if abs(steps - near) > Fraction(1, 10**6) or not 0 <= near <= n * max(cell.value for cell in tally.cells):
            raise UsageError(f"values: must be ones that {query.text} of {n} rows can have. Got {value:g}.")
        found.append(near)
    return tuple(found)
