"""What a query reads of one kept row: its value, whether the filter keeps it, and its group.

What must never change: everything here is a function of the row at hand and of public facts, so that sums over kept rows tell
nothing of others. Groups are declared, never read off the table: a row of no declared group is an announced failure.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from attrpriv.engines.conditions import holds
from attrpriv.engines.grid import very_float
from attrpriv.engines.view.draw import cell_number, nan_is_missing
from attrpriv.queries.arithmetic import Arithmetic
from attrpriv.queries.conditions import Condition, columns_of, parse_condition
from attrpriv.queries.query import Query

NO_GROUP = (
    "data: every row must be in a group that the policy declares. Got one that is not. Name its category under `categories`, "
    "or add `other` to them for all rows of no other."
)
Bounds = Mapping[str, tuple[float, float]]
UNGROUPED = 0
_NOWHERE = -1


@dataclass(frozen=True)
class Group:
    """A public group: its name, and which rows are in it (None: those in no other)."""

    name: str
    condition: Condition | None


@dataclass(frozen=True)
class Quadratic:
    """A row's part in an error: a polynomial of degree 2 in the values, each from its centre."""

    centres: tuple[float, ...]
    linear: tuple[float, ...]
    squares: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True)
class AtMost:
    """1 where the value is at most this, else 0."""

    limit: float


# One for each group; none for a group without rows.
Transform = Sequence[Quadratic | AtMost | None]


def row_table(table: Any, query: Query, groups: Sequence[Group] | None, missing: Mapping[str, float], bounds: Bounds) -> Any:
    """The kept rows as `cell`, `group`, `hit`, `absent` and a value for each argument, `u0` and `u1`.

    In steps, each of which names what the next one uses: written out, the text of a query would grow without end.
    """
    columns = {f"x{k}": _filled(table, name, missing) for k, name in enumerate(query.columns)}
    hit, group = _kept_by_filter(table, query), _group_number(table, groups)
    first = table.select(cell=cell_number(table), group=group, hit=hit, **columns)
    named = dict(zip(query.columns, columns, strict=True))
    clipped = {short: _clipped(first[short], bounds.get(name)) for name, short in named.items()}
    second = first.select("cell", "group", "hit", **clipped)
    values = {f"u{k}": polynomial(argument, second, named) for k, argument in enumerate(query.arguments)}
    third = second.select("cell", "group", "hit", **(values or {"u0": _ones(second)}))
    # Whatever is missing makes its arithmetic so, and what overflows is not finite.
    bad = reduce(operator.or_, [third[u].isnull() | third[u].isinf() | third[u].isnan() for u in third.columns[3:]])
    return third.mutate(absent=bad)


def _ones(table: Any) -> Any:
    import ibis

    return ibis.ifelse(table.cell.notnull(), very_float(1.0), very_float(0.0))


def _kept_by_filter(table: Any, query: Query) -> Any:
    return cell_number(table).notnull() if query.where is None else _holds(table, parse_condition(query.where))


def _holds(table: Any, condition: Condition) -> Any:
    """Whether a row satisfies the condition; NaN, which DuckDB takes for the largest number, is a missing entry."""
    return holds({name: nan_is_missing(table[name]) for name in columns_of(condition)}, condition)


def _group_number(table: Any, groups: Sequence[Group] | None) -> Any:
    """Which of the groups a row is in; a number that no group has where it is in none."""
    import ibis

    if groups is None:  # a constant would be no column of the table, to group by
        return ibis.ifelse(cell_number(table).notnull(), UNGROUPED, _NOWHERE).cast("int32")
    named = [(_holds(table, one.condition), k) for k, one in enumerate(groups) if one.condition is not None]
    rest = next((k for k, one in enumerate(groups) if one.condition is None), _NOWHERE)
    named = named or [(cell_number(table).isnull(), rest)]
    return ibis.cases(*named, else_=rest).cast("int32")


def is_nowhere(group: int) -> bool:
    return group == _NOWHERE


def _filled(table: Any, name: str, missing: Mapping[str, float]) -> Any:
    """The column as a float; a missing entry, NaN too, takes the policy's value or stays missing."""
    value = nan_is_missing(table[name].cast("float64"))
    return value.fill_null(very_float(missing[name])) if name in missing else value


def _clipped(value: Any, ends: tuple[float, float] | None) -> Any:
    return value if ends is None else value.clip(lower=very_float(ends[0]), upper=very_float(ends[1]))


def polynomial(of: Arithmetic, table: Any, named: Mapping[str, str]) -> Any:
    """The polynomial, term by term in its canonical order: equal rows have equal values."""
    if of.column is not None:
        return table[named[of.column]]
    products = [
        reduce(operator.mul, [table[named[name]] for name in monomial], very_float(float(weight)))
        for monomial, weight in of.terms
    ]
    return reduce(operator.add, products)


def transformed(values: Sequence[Any], group: Any, transform: Transform) -> Any:
    """Of each row the transform of its own group; 0 where that has none."""
    import ibis

    branches = [(group == k, _transformed(values, one)) for k, one in enumerate(transform) if one is not None]
    return ibis.cases(*branches, else_=very_float(0.0)) if branches else very_float(0.0)


def _transformed(values: Sequence[Any], one: Quadratic | AtMost) -> Any:
    import ibis

    if isinstance(one, AtMost):
        return ibis.ifelse(values[0] <= very_float(one.limit), very_float(1.0), very_float(0.0))
    off = [value - very_float(centre) for value, centre in zip(values, one.centres, strict=True)]
    terms = [very_float(a) * x for a, x in zip(one.linear, off, strict=True)]
    terms += [very_float(a) * off[j] * off[k] for j, k, a in one.squares]
    return reduce(operator.add, terms)
