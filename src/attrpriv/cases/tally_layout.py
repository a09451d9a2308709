"""What is counted for a query, and its law in each category of the sensitive column.

| query | tally |
|---|---|
| count(*) filter (where e) | rows with the event e count 1 |
| sum(x), avg(x) | the values of x, in steps of their common unit |
| sum(x) filter (where e), e about x or about the sensitive column | the values of x where e holds, else 0 |
| count(*) ... group by x | one count for each value or bin of x |

What must never change: where cells are complete, every row is in one, and its step from the least value is what it adds; an
event on listed values is counted as these values (`cases.tally_layout`), never by its own text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from attrpriv.assumptions.counts import Counts, states_of
from attrpriv.assumptions.probabilities import Pair, among, complement
from attrpriv.errors import QueryError
from attrpriv.methods.base.tally import Tally, TallyCategory, TallyCell
from attrpriv.problem.composition import bin_names
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.conditions import (
    Compare,
    Condition,
    IsNull,
    Join,
    Not,
    Written,
    columns_of,
    joined,
    parse_condition,
    tests_null,
)
from attrpriv.queries.evaluate import Category, holds_for
from attrpriv.queries.query import Query, quoted

Laws = Mapping[str, tuple[Pair, ...]]


@dataclass(frozen=True)
class Layout:
    """The tally, and the law of its cells (or of its event) in each category, by member of Theta."""

    tally: Tally
    values: tuple[int, ...]
    laws: Callable[[Counts], Laws]


def layout(problem: Problem, counts: Counts, query: Query) -> Layout:
    if query.of:  # its filter alone would be counted
        raise QueryError(f"query: the law of {query.text} is not given; ask for the average of each column.")
    if query.column is None and query.group_by is None:
        return _event_layout(problem, counts, parse_condition(query.where or ""))
    if query.where is not None and query.kind == "sum" and query.group_by is None:
        return _filtered_layout(problem, counts, query.column or "", parse_condition(query.where))
    if query.where is not None:
        raise QueryError(f"query: {query.text} is not covered; ask without the filter, or for a count with it.")
    if query.column is not None and query.group_by is not None:
        raise QueryError("query: a sum or an average by group is not covered under counts; ask for count(*) by group.")
    return _column_layout(problem, counts, query.column or query.group_by or "", histogram=query.group_by is not None)


def _event_layout(problem: Problem, counts: Counts, event: Condition) -> Layout:
    others = [column for column in columns_of(event) if column != counts.sensitive]
    listed = {column: _listed(problem, counts, column) for column in others if _is_listed(counts, column)}
    if counts.other is not None and not others and not counts.leaves_other_out(event):
        counted = _among_others(problem, counts, event)
    else:
        counted = in_cells(event, {**listed, counts.sensitive: _own_cells(problem, counts)})
    covering = [
        tuple(str(cell) for _, cell in listed[column]) if column in listed else some_value(column, event) for column in others
    ]
    changes = {"covering": tuple(filter(None, covering)), "clip": {}}  # an event is of the entries as they are
    cells = (TallyCell(name=str(event), where=str(parse_condition(str(counted))), value=1),)
    tally = _tally(problem, counts, cells, complete=False).model_copy(update=changes)

    def laws(member: Counts) -> Laws:
        return {name: (complement(pair), pair) for name, pair in member.event(event, problem.bins).items()}

    return Layout(tally, (0, 1), laws)


def _is_listed(counts: Counts, column: str) -> bool:
    """Whether the assumption lists the values of a column: every row must have one of them for an event to have its law."""
    return column in (counts.given if counts.network is None else counts.network.nodes)


def _listed(problem: Problem, counts: Counts, column: str) -> list[tuple[Category, Condition]]:
    values, _ = counts.values(column, problem.bins)
    cells = [cell_condition(problem, column, value, k) for k, value in enumerate(values)]
    return list(zip(states_of(column, values, problem.bins), cells, strict=True))


def _own_cells(problem: Problem, counts: Counts) -> list[tuple[Category, Condition]]:
    named = [name for name in counts.categories if name != counts.other]
    return [(counts.category(name, problem.bins), _category_condition(problem, counts, name)) for name in named]


def _among_others(problem: Problem, counts: Counts, event: Condition) -> Condition:
    """An event of the sensitive column that rows of `other` may satisfy: nothing is known among those, so its text decides."""
    named = _own_cells(problem, counts)
    return joined("or", union_of(event, named), Join("and", (event, *(Not(cell) for _, cell in named))))


def some_value(column: str, event: Condition) -> tuple[str, ...]:
    """A missing entry satisfies neither a condition nor its negation. An event that asks for them counts them itself."""
    return () if tests_null(event, column) else (str(Not(IsNull(column))),)


def _column_layout(problem: Problem, counts: Counts, column: str, *, histogram: bool) -> Layout:
    values, _ = counts.values(column, problem.bins)
    names = _names(problem, column, values)
    if histogram:
        steps, unit, origin, order = tuple(range(len(values))), Fraction(1), Fraction(0), list(range(len(values)))
    else:
        steps, unit, origin, order = whole_steps(column, values)
    _require_reach(problem, column, values)
    cells = tuple(
        TallyCell(name=names[k], where=str(cell_condition(problem, column, values[k], k)), value=1 if histogram else step)
        for k, step in zip(order, steps, strict=True)
    )
    tally = _tally(problem, counts, cells, complete=True).model_copy(
        update={"unit": float(unit), "origin": float(origin), "histogram": histogram}
    )

    def laws(member: Counts) -> Laws:
        found_values, found = member.values(column, problem.bins)
        if found_values != values:
            raise QueryError(f"assume: every assumption of a list must give {column} the same values.")
        return {name: tuple(law[k] for k in order) for name, law in found.items()}

    return Layout(tally, steps, laws)


def _filtered_layout(problem: Problem, counts: Counts, column: str, where: Condition) -> Layout:
    """A sum over the rows of a filter. As in a count with that filter, entries are compared as they are, without bounds."""
    values, _ = counts.values(column, problem.bins)
    numbers = [_fraction(column, value) for value in values]
    hits = _hits(problem, counts, column, values, where)
    own = columns_of(where) == (column,)
    inside = [parse_condition(str(cell_condition(problem, column, value, k))) for k, value in enumerate(values)]
    kept = where if own else in_cells(where, {counts.sensitive: _own_cells(problem, counts)})
    added = [number if own and yes else Fraction(0) for number, yes in zip(numbers, hits, strict=True)] if own else numbers
    distinct = list(dict.fromkeys([*added, *([] if own else [Fraction(0)])]))
    if len(distinct) < 2:
        raise QueryError(f"query: sum({column}) filter (where {where}) adds 0 for every row; ask for something else.")
    steps, unit, origin, order = whole_steps(column, distinct)
    cells = []
    for k, step in zip(order, steps, strict=True):
        alike = [cell for cell, number in zip(inside, added, strict=True) if number == distinct[k]]
        reached = [cell if own else Join("and", (kept, cell)) for cell in alike]
        reached += [Not(kept)] if not own and not distinct[k] else []
        condition = reached[0] if len(reached) == 1 else Join("or", tuple(reached))
        cells.append(TallyCell(name=str(float(distinct[k])), where=str(parse_condition(str(condition))), value=step))
    changes = {"unit": float(unit), "origin": float(origin), "clip": {}}
    tally = _tally(problem, counts, tuple(cells), complete=True).model_copy(update=changes)

    def laws(member: Counts) -> Laws:
        found_values, found = member.values(column, problem.bins)
        if found_values != values:
            raise QueryError(f"assume: every assumption of a list must give {column} the same values.")
        inner = set(counts.categories) if own else {name for name in counts.categories if _holds(problem, counts, where, name)}
        return {
            name: tuple(_share(law if name in inner else None, added, distinct[k]) for k in order)
            for name, law in found.items()
        }

    return Layout(tally, steps, laws)


def _share(law: Sequence[Pair] | None, added: Sequence[Fraction], number: Fraction) -> Pair:
    """The probability that a row adds this number; None: of a category that the filter leaves out."""
    if law is None:
        return (0.0, 0.0) if number else (1.0, 1.0)
    inside = [one == number for one in added]
    return among(law, inside) if any(inside) else (0.0, 0.0)


def _holds(problem: Problem, counts: Counts, where: Condition, name: str) -> bool:
    return holds_for(where, counts.category(name, problem.bins))


def _hits(
    problem: Problem, counts: Counts, column: str, values: Sequence[int | float | str], where: Condition
) -> Sequence[bool]:
    """Which values the filter keeps; a refusal where its law together with the column's is not given."""
    read = columns_of(where)
    if read == (column,):
        return [holds_for(where, state) for state in states_of(column, values, problem.bins)]
    if read == (counts.sensitive,) and counts.other is None and not tests_null(where, counts.sensitive):
        return [True] * len(values)
    raise QueryError(
        f"query: sum({quoted(column)}) filter (where {where}) is not covered; ask without the filter, or for a count with it. "
        f"A filter on {column} itself is covered, and one on {counts.sensitive} where no category takes all other values."
    )


def _names(problem: Problem, column: str, values: Sequence[int | float | str]) -> list[str]:
    if column in problem.bins:
        names = bin_names(problem.bins[column])
        if len(names) != len(values):
            raise QueryError(f"bins: {column} needs a bin for each of its {len(values)} values. Got {len(names)} bin(s).")
        return names
    return [str(value) for value in values]


def whole_steps(
    column: str, values: Sequence[int | float | str | Fraction]
) -> tuple[tuple[int, ...], Fraction, Fraction, list[int]]:
    """The values as whole steps of their common unit from the least one, in order."""
    numbers = [_fraction(column, value) for value in values]
    order = sorted(range(len(numbers)), key=lambda k: numbers[k])
    origin = numbers[order[0]]
    unit = Fraction(0)
    for number in numbers:
        step = number - origin
        unit = Fraction(math.gcd(unit.numerator * step.denominator, step.numerator * unit.denominator),
                        unit.denominator * step.denominator)  # fmt: skip
    return tuple(int((numbers[k] - origin) / unit) for k in order), unit, origin, order


def _fraction(column: str, value: int | float | str | Fraction) -> Fraction:
    try:
        return Fraction(repr(value) if isinstance(value, float) else value)
    except ValueError:
        problem = f"assume: a sum or an average of {column} needs a number for each of its values. Got {value!r}."
    raise QueryError(problem)


def _require_reach(problem: Problem, column: str, values: Sequence[int | float | str]) -> None:
    """Rows are clipped to the bounds first: these must lie within the cells, and move no row from one cell to another.

    The stated law is that of the entries, for events and sums alike. A bound inside it would put entries beyond it elsewhere.
    """
    if column not in problem.bounds:
        return
    low, high = problem.bounds[column]
    edges = problem.bins.get(column) or [float(v) for v in values if not isinstance(v, str)]
    if edges and not (min(edges) <= low and high <= max(edges)):
        what = "bins" if column in problem.bins else "values"
        reach = f"{min(edges):g} to {max(edges):g}"
        raise QueryError(f"{what}: those of {column} must cover its bounds [{low:g}, {high:g}]. Got {reach}.")
    cut = [not low < edge <= high for edge in edges[1:-1]] if column in problem.bins else [not low <= v <= high for v in edges]
    if any(cut):
        raise QueryError(
            f"bounds: those of {column} must not cut off what the assumption lists. Got [{low:g}, {high:g}]: clipped rows "
            "would not have the stated law. Widen the bounds, or leave them out."
        )


def _tally(problem: Problem, counts: Counts, cells: tuple[TallyCell, ...], *, complete: bool) -> Tally:
    _require_reach(problem, counts.sensitive, ())
    first = problem.secrets[0]
    members = frozenset() if first.entries is not None else members_of(problem, counts, first)
    categories = tuple(
        TallyCategory(
            name=name,
            where=None if name == counts.other else str(_category_condition(problem, counts, name)),
            member=name in members,
        )
        for name in counts.categories
    )
    return Tally(cells=cells, complete=complete, categories=categories, fill=problem.missing, clip=problem.bounds)


def _category_condition(problem: Problem, counts: Counts, name: str) -> Condition:
    if counts.sensitive in problem.bins:
        counts.category(name, problem.bins)  # says so where there is no such bin
        return bin_condition(problem.bins[counts.sensitive], counts.sensitive, counts.categories.index(name))
    return Written(counts.sensitive, name)


def members_of(problem: Problem, counts: Counts, secret: Secret) -> frozenset[str]:
    return counts.members_of(secret, problem.bins)


# ----------------------------------------------------------------------------------------------------------------------------
# Values and bins that an assumption lists, as conditions on rows; and an event as the union of those that it holds for.
#
# A plan decides for each listed value whether an event holds (`queries.evaluate`). An engine that was given the event's own
# text might decide otherwise: it compares by its types and collations, so that 2^53 + 1 equals 2^53 in a column of floats,
# and 'LOW' equals 'low' in one that ignores case. Hence it is given the values: what is counted are the rows of those values
# for which the plan counted on it, and a tally makes sure that every row has exactly one of the values.
#
# What must never change: an event on a column whose values are listed never reaches an engine as it was written.


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
