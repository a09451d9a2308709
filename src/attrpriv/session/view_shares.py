"""Counts and shares from a view: which answers are shares, which cells can have them, and their limits.

What must never change: everything here is a function of kept rows and public facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrpriv.engines.view.answers import Viewed
from attrpriv.methods.base.share_limits import ShareLimits
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.problem.reference import value_name
from attrpriv.queries.query import Query


def is_share(view: Viewed, query: Query) -> bool:
    """Whether it is a count, or an average or sum over all rows of a column that is true or false."""
    if query.column is None or not query.simple or (query.kind == "avg" and not query.plain):
        return query.kind == "count"
    filled = view.missing.get(query.column, 0.0) in (0.0, 1.0) and query.column not in view.bounds
    return filled and view.source.columns[query.column] == "boolean"


def is_complete(plan: ViewPlan) -> bool:
    """Whether a view keeps every row."""
    return all(cell.keep == cell.high for cell in plan.cells)


def possible(plan: ViewPlan, query: Query, group: str | None) -> list[bool]:
    """Which cells can have rows of a group: of a hidden column, those with its value."""
    columns = plan.secret.whole_columns
    place = columns.index(query.group_by) if query.group_by in columns else None
    found = [place is None or value_name([(cell.values or ())[place]]) == group for cell in plan.cells]
    return found if any(found) else [True] * len(found)


def share_limits(
    plan: ViewPlan, events: Sequence[int], shares: Mapping[str, float], able: Sequence[bool], factor: int
) -> ShareLimits | None:
    """The limits of a share (`methods.base.share_limits`), with n as their factor for a count; None: every row is kept."""
    whole = sum(shares[cell.name] * count / cell.keep for cell, count in zip(plan.cells, events, strict=True))
    variance, step = 0.0, 0.0
    for cell, count, may in zip(plan.cells, events, able, strict=True):
        if not may or cell.keep >= cell.high:
            continue
        weight, near = shares[cell.name], (count + whole) / (cell.keep + 1)
        variance += weight**2 * near * (1 - near) * (1 / cell.keep - 1 / cell.high)
        step = max(step, weight / cell.keep)
    return ShareLimits(min(1.0, whole), variance, step, float(factor)) if step else None
