"""Values and bins that an assumption lists, as conditions on rows; and an event as the union of those that it holds for.

A plan decides for each listed value whether an event holds (`queries.evaluate`). An engine that was given the event's own text
might decide otherwise: it compares by its types and collations, so that 2^53 + 1 equals 2^53 in a column of floats, and 'LOW'
equals 'low' in one that ignores case. Hence it is given the values: what is counted are the rows of those values for which the
plan counted on it, and a tally makes sure that every row has exactly one of the values.

What must never change: an event on a column whose values are listed never reaches an engine as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrpriv.problem.problem import Problem
from attrpriv.queries.conditions import Compare, Condition, Join, Not, Written, columns_of, joined
from attrpriv.queries.evaluate import Category, holds_for

Listed = Mapping[str, Sequence[tuple[Category, Condition]]]
"""Of a column, its values as a plan sees them, each with the condition by which an engine finds its rows."""


def cell_condition(problem: Problem, column: str, value: int | float | str, k: int) -> Condition:
    """The rows of the k-th value of a column, or of its k-th bin."""
    if column in problem.bins:
        return bin_condition(problem.bins[column], column, k)
    if isinstance(value, str):
        return Written(column, value)
    return Compare(column, "=", bool(value) if problem.types.get(column) == "boolean" else value)


def bin_condition(edges: Sequence[float], column: str, k: int) -> Condition:
    """The rows of the k-th bin; the last one includes its upper edge."""
    closing = Compare(column, "<=" if k == len(edges) - 2 else "<", edges[k + 1])
    return Join("and", (Compare(column, ">=", edges[k]), closing))


def in_cells(event: Condition, listed: Listed) -> Condition:
    """The event, with each part of it that is about one listed column as the union of the values that it holds for.

    >>> sizes = {"size": [("S", Written("size", "S")), ("M", Written("size", "M")), ("L", Written("size", "L"))]}
    >>> str(in_cells(Compare("size", "!=", "M"), sizes))
    "size is 'S' or size is 'L'"
    """
    read = columns_of(event)
    if len(read) == 1 and read[0] in listed:
        return union_of(event, listed[read[0]])
    if isinstance(event, Join):
        return joined(event.word, *(in_cells(part, listed) for part in event.parts))
    return Not(in_cells(event.part, listed)) if isinstance(event, Not) else event


def union_of(event: Condition, cells: Sequence[tuple[Category, Condition]]) -> Condition:
    """The rows of those values for which the event holds; of no value, a condition that no row satisfies."""
    kept = [condition for value, condition in cells if holds_for(event, value)]
    if not kept:
        never = cells[0][1]
        return Join("and", (never, Not(never)))
    return kept[0] if len(kept) == 1 else joined("or", *kept)


__all__ = ["Listed", "bin_condition", "cell_condition", "in_cells", "union_of"]
