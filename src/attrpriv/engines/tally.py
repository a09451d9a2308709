"""Counting rows: how many satisfy each of some conditions, as part of the one pass over a table.

A missing entry is first replaced by the policy's public value, where there is one, and a number is clipped to its bounds; NaN
counts as missing. A condition that meets a missing entry does not hold, as in SQL; where the law of an event rests on every
entry being there, or being one of the listed ones, `covering` says so.

What must never change: every row has exactly one category, and exactly one cell where cells must be complete; otherwise there
is an announced failure with a fixed text, which names columns and never a value. The counts are private.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from typing import Any

from attrpriv.engines.conditions import Entry, check_condition, holds
from attrpriv.engines.tables import NOT_NUMBERS, Source, has_nan, shown_name
from attrpriv.errors import DataError
from attrpriv.queries.conditions import Compare, Condition, In, Join, Written, columns_of, joined

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


# ----------------------------------------------------------------------------------------------------------------------------
# A pass over rows of few kinds: the engine groups them by the columns that conditions read, and sums are put together here.
#
#     for each combination of values:  how many rows, the sums and counts of each column read, which conditions hold
#
# That costs about what a bare GROUP BY does, where a count for each condition costs a comparison of every row with every
# value.
#
# What must never change: it is one query, and the numbers are those of the plain pass (`scan`). Public facts decide whether
# it is taken: a column is grouped by only if every row must have one of its listed values, for any other row an announced
# failure, so that there are few combinations; a table that has more is read again, row by row. No value comes back, only
# whether conditions hold.


# Beyond so many combinations of values, grouping is not worth its memory.
MOST = 4096
_KEYS = frozenset({"integer", "text", "boolean", "date"})
# What the engine computes beside the columns grouped by must not have one of their names.
_OWN = "attrpriv "
_ROWS = _OWN + "rows"

Parts = Mapping[str, Any]


def listed(condition: Condition | None) -> tuple[str, int] | None:
    """The one column of which a condition lists values, and how many; None: it does something else."""
    if isinstance(condition, Written) or (isinstance(condition, Compare) and condition.operator == "="):
        return condition.column, 1
    if isinstance(condition, In):
        return condition.column, len(condition.values)
    if not isinstance(condition, Join) or condition.word != "or":
        return None
    found = [listed(part) for part in condition.parts]
    names = {one[0] for one in found if one is not None}
    return (names.pop(), sum(one[1] for one in found if one)) if None not in found and len(names) == 1 else None


def grouped_by(source: Source, asked: Sequence[str], tally: TallyRead | None, full: Sequence[Condition]) -> tuple[str, ...]:
    """The columns to group by, all that conditions read; none where some of them may have many values.

    `full`: conditions that every row must satisfy.
    """
    named = tuple(dict.fromkeys((*asked, *(() if tally is None else tally.columns))))
    values = {name: 2 for name in named if source.columns[name] == "boolean"}
    for one in (*full, *(() if tally is None else tally.full)):
        found = listed(one)
        if found is not None and (tally is None or found[0] not in tally.clip):
            values.setdefault(*found)
    fits = all(name in values and source.columns[name] in _KEYS and not name.lower().startswith(_OWN) for name in named)
    few = fits and math.prod(values[name] + 1 for name in named) <= MOST  # and a missing one
    return named if few and source.engine.name == "duckdb" else ()


def grouped_row(
    source: Source,
    keys: Sequence[str],
    tally: TallyRead | None,
    sums: Sequence[Mapping[str, Any]],
    which: Sequence[int],
    conditions: Callable[[Source], Sequence[Any]],
) -> dict[str, Any] | None:
    """What the plain pass finds, from groups; None where there are too many of them.

    `sums` are aggregates of columns over all rows, `which` of them each read needs, and `conditions` make the conditions of
    the reads, None: all rows.
    """
    inner = {f"{_OWN}{name}_{k}": part for k, parts in enumerate(sums) for name, part in parts.items()}
    groups = source.table.group_by(list(keys)).aggregate(**{_ROWS: source.table.count()}, **inner)
    small = replace(source, connect=lambda: (groups, source.engine))
    wheres = {f"where_{k}": one for k, one in enumerate(conditions(small)) if one is not None}
    flags = wheres | ({} if tally is None else tally_conditions(small, tally))
    found = source.run_many(groups.select(_ROWS, *inner, **flags).limit(MOST + 1))
    if len(found) > MOST:
        return None
    row: dict[str, Any] = {name: sum(one[_ROWS] for one in found if one[name]) for name in flags}
    for k, read in enumerate(which):
        chosen = [one for one in found if one.get(f"where_{k}", True)]
        row |= {f"{name}_{k}": _added(chosen, name, read) for name in sums[read]}
        row[f"hits_{k}"] = sum(one[_ROWS] for one in chosen)
    return row | {"rows": sum(one[_ROWS] for one in found)}


def _added(groups: Sequence[Parts], name: str, k: int) -> Fraction | float | int | None:
    """A count, or an exact sum of sums; NaN where one is not finite, None where an engine could not tell one."""
    values = [one[f"{_OWN}{name}_{k}"] for one in groups if name != "kept" or one[f"{_OWN}used_{k}"]]
    if name != "kept":
        return sum(map(int, values))
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return math.nan
    return None if None in values else sum(map(Fraction, values), Fraction(0))
