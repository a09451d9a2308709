"""Counting rows: how many satisfy each of some conditions, as part of the one pass over a table.

A missing entry is first replaced by the policy's public value, where there is one, and a number is clipped to its bounds; NaN
counts as missing. A condition that meets a missing entry does not hold, as in SQL; where the law of an event rests on every
entry being there, or being one of the listed ones, `covering` says so.

What must never change: every row has exactly one category, and exactly one cell where cells must be complete; otherwise there
is an announced failure with a fixed text, which names columns and never a value. The counts are private.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from attrpriv.engines.conditions import Entry, check_condition, holds
from attrpriv.engines.tables import NOT_NUMBERS, Source, has_nan, shown_name
from attrpriv.errors import DataError
from attrpriv.queries.conditions import Condition, columns_of, joined

UNKNOWN_CATEGORY = (
    "data: every row must have a category, and a value, that the assumption knows. Columns read: {columns}. Got a row that has "
    "not. Name the value in the assumption as the table writes it, spaces included; or a public value under `missing`; or "
    "under `other` the category that all others count as."
)


@dataclass(frozen=True)
class TallyRead:
    """Conditions to count. One category may be None: all rows of no other."""

    cells: tuple[Condition, ...]
    complete: bool
    categories: tuple[Condition | None, ...]
    fill: Mapping[str, float] = field(default_factory=dict)
    clip: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    covering: tuple[tuple[Condition, ...], ...] = ()
    """Of each of these sets of conditions, every row must satisfy exactly one."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the conditions read."""
        read = [column for condition in self._conditions for column in columns_of(condition)]
        return tuple(dict.fromkeys(read))

    @property
    def full(self) -> tuple[Condition, ...]:
        """Conditions that every row must satisfy: one of each set of which it must satisfy exactly one."""
        sets = [*self.covering, *([self.cells] if self.complete else ())]
        named = tuple(category for category in self.categories if category is not None)
        sets += [named] if len(named) == len(self.categories) else []
        return tuple(joined("or", *one) for one in sets if one)

    @property
    def _conditions(self) -> tuple[Condition, ...]:
        sets = [condition for alternatives in self.covering for condition in alternatives]
        return (*self.cells, *(category for category in self.categories if category is not None), *sets)

    def check(self, columns: Mapping[str, str]) -> None:
        """Raise DataError, from the schema alone, where a condition cannot be evaluated."""
        for condition in self._conditions:
            check_condition(columns, condition)


@dataclass(frozen=True)
class Tallied:
    """How many rows are in each cell and in each category. Private."""

    cells: tuple[int, ...] = field(repr=False)
    categories: tuple[int, ...] = field(repr=False)


def tally_aggregates(source: Source, read: TallyRead) -> dict[str, Any]:
    """The counts, as columns of the one aggregate query."""
    return {name: source.table.count(where=condition) for name, condition in tally_conditions(source, read).items()}


def tally_conditions(source: Source, read: TallyRead) -> dict[str, Any]:
    """What is counted: cells, categories, and whether a row satisfies exactly one of each set."""
    columns = prepared(source, read.columns, read.fill, read.clip)
    named = [category for category in read.categories if category is not None]
    known = [holds(columns, category) for category in named]
    other = ~reduce(operator.or_, known) if known else None
    position = iter(known)
    categories = [other if category is None else next(position) for category in read.categories]
    cells = [holds(columns, cell) for cell in read.cells]
    sets = [[holds(columns, one) for one in alternatives] for alternatives in read.covering]
    sets += [cells] * read.complete + [categories] * bool(categories)
    parts = {"cell": cells, "group": categories, "covered": [_exactly_one(one) for one in sets]}
    return {f"{name}_{k}": one for name, listed in parts.items() for k, one in enumerate(listed)}


def _exactly_one(conditions: Sequence[Any]) -> Any:
    """Whether a row satisfies one and no more: an engine may hold two listed values for the same, as texts that differ in case.

    That the numbers of rows add up is not enough: a row of two values would make up for a row of none.
    """
    return reduce(operator.add, [one.cast("int32") for one in conditions]) == 1


def prepared(
    source: Source, names: Sequence[str], fill: Mapping[str, float], clip: Mapping[str, tuple[float, float]]
) -> dict[str, Any]:
    """The columns, with missing entries filled and numbers clipped."""
    changed = {}
    for name in names:
        column, kind = source.table[name], source.columns[name]
        if kind == "float":
            column = column.cast("float64")
            column = column.isnan().ifelse(None, column) if has_nan(source.engine) else column
        filled = name in fill and (kind != "boolean" or fill[name] in (0, 1)) and kind not in NOT_NUMBERS
        clipped = name in clip and kind in ("float", "integer", "decimal")
        changed[name] = Entry(column, fill[name] if filled else None, clip[name] if clipped else None)
    return changed


def tallied(row: Mapping[str, Any], rows: int, read: TallyRead) -> Tallied | None:
    """The counts, or None where some row has no category, or no cell though it must have one."""
    cells = tuple(int(row[f"cell_{k}"]) for k in range(len(read.cells)))
    categories = tuple(int(row[f"group_{k}"]) for k in range(len(read.categories)))
    sets = len(read.covering) + read.complete + bool(read.categories)
    if any(int(row[f"covered_{k}"]) != rows for k in range(sets)):
        return None
    return Tallied(cells, categories)


def unknown_category(reads: Sequence[str]) -> DataError:
    """The announced failure."""
    return DataError(UNKNOWN_CATEGORY.format(columns=", ".join(map(shown_name, reads))))
