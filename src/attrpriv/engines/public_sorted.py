"""Public records of a number that is sorted into intervals: how many are in each, and what they say against what is stated.

The checks read at most 100,000 records, evenly from the file: columns that are functions of the number, intervals whose halves
look too different, and intervals in which the records are not spread evenly. They refuse, and never approve.

What must never change: these are *public* records, and never the private table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrpriv.engines.progress import waited
from attrpriv.engines.public_cells import ENGINE_FAILED, in_order, listed, require_columns, state_of
from attrpriv.engines.public_split import Split, split
from attrpriv.engines.tables import Source, open_table, quietly
from attrpriv.engines.view.cells import POSITION, nan_is_missing
from attrpriv.engines.view.sorted_cells import interval_number
from attrpriv.errors import DataError
from attrpriv.numerics import evenness, smoothness
from attrpriv.numerics.laws.breaks import repeated_share
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.intervals import FindsEnds, PublicIntervals, RoughPlace, Uneven
from attrpriv.problem.reference import PublicCell, PublicCells

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_MOST_CHECKED = 100_000
# The chance that records of an assumption that holds are refused, for each of the checks.
_LEVEL = 0.01
_NUMBERS = ("integer", "float", "decimal")
# Stands for a number in no interval; no value is equal to it.
_OUTSIDE = object()


def sorted_cells_of_file(
    path: str | Path,
    columns: Sequence[str],
    column: str,
    ends: tuple[float, ...] | FindsEnds,
    assumed: Assumption | None,
    shown: Sequence[str],
) -> PublicCells:
    """Every combination of an interval of `column` and values of the others; `shown`: what else the view has.

    `ends` of the intervals, or what finds them, on records that are then not counted.
    """
    place, changed, size = state_of(path)
    return _cells_of(str(place), changed, size, tuple(columns), column, ends, assumed, tuple(shown))


@lru_cache(maxsize=8)  # a command asks for the same cells several times
def _cells_of(
    path: str,
    changed: int,
    size: int,
    columns: tuple[str, ...],
    column: str,
    ends: tuple[float, ...] | FindsEnds,
    assumed: Assumption | None,
    shown: tuple[str, ...],
) -> PublicCells:
    source = open_table(path)
    require_columns(source, columns)
    if source.columns[column] not in _NUMBERS:
        raise DataError(f"reference.sorted: {column} must be a number in {source.name}. Leave it out of sorted.")
    edges, chosen_by, counted = _counts(source, columns, column, ends)
    records = quietly(lambda: _records(source, column, [name for name in shown if name in source.columns], edges))
    if records is None:
        raise DataError(ENGINE_FAILED)
    cells = [PublicCell(values=values, count=count) for values, count in counted if _OUTSIDE not in values]
    if not cells:
        raise DataError(f"reference.sorted: some public records must be in an interval of {column}. Got none in {source.name}.")
    return PublicCells(
        columns=columns,
        kinds={name: source.columns[name] for name in columns},
        records=sum(count for _, count in counted),
        cells=tuple(sorted(cells, key=in_order)),
        intervals=_found(column, edges, source.columns[column] == "integer", records, assumed, chosen_by),
    )


_Counts = list[tuple[tuple[Any, ...], int]]


def _counts(
    source: Source, columns: Sequence[str], column: str, ends: tuple[float, ...] | FindsEnds
) -> tuple[tuple[float, ...], int | None, _Counts]:
    """The ends, how many records chose them (none: they are declared), and how many other records have what values."""
    if isinstance(ends, tuple):
        counted = quietly(lambda: _counted(source, columns, column, ends))
        made = None if counted is None else Split(ends, None, counted)
    else:
        made = split(source, columns, column, ends)
    if made is None:
        raise DataError(ENGINE_FAILED)
    cells = [(_with_low(columns, column, made.edges, place, values), count) for place, values, count in made.counted]
    return made.edges, made.chosen_by, cells


def _with_low(
    columns: Sequence[str], column: str, edges: tuple[float, ...], place: int | None, others: tuple[Any, ...]
) -> tuple[Any, ...]:
    """A cell's values, in the order of the columns: of the sorted one the low end of its interval."""
    low = None if place is None else _OUTSIDE if place < 0 else edges[place]
    at = columns.index(column)
    return (*others[:at], low, *others[at:])


def _counted(
    source: Source, columns: Sequence[str], column: str, edges: Sequence[float]
) -> list[tuple[int | None, tuple[Any, ...], int]]:
    """How many records are in each interval, by its number, with each values of the other columns."""
    number = interval_number(nan_is_missing(source.table[column]), edges)
    named = {f"v{k}": listed(source, name) for k, name in enumerate(columns) if name != column}
    table = source.table.select(place=number, **named)
    grouped = table.group_by("place", *named).aggregate(rows=table.count())
    rows = waited(source.engine, lambda: source.engine.to_pyarrow(grouped), source.rows).to_pylist()
    return [(row["place"], tuple(row[name] for name in named), int(row["rows"])) for row in rows]


def _records(source: Source, column: str, names: Sequence[str], edges: Sequence[float]) -> dict[str, Any]:
    """The number and other columns of records that have one between the ends, as arrays; in the order of the file."""
    table = source.table if source.positioned is None else source.positioned(POSITION)
    number = nan_is_missing(table[column]).cast("float64")
    inside = table.filter((number >= edges[0]) & (number <= edges[-1]))
    kept = [name for name in names if source.columns[name] != "other" and name != column]
    if POSITION in table.columns:
        every = max(1, math.ceil((source.rows or _MOST_CHECKED) / _MOST_CHECKED))
        inside = inside.filter(inside[POSITION] % every == 0).order_by(POSITION)
    values = {f"c{k}": _entry(inside[name], source.columns[name]) for k, name in enumerate(kept)}
    found = source.engine.to_pyarrow(inside.select(number=inside[column].cast("float64"), **values).limit(_MOST_CHECKED))
    return {
        column: found["number"].to_numpy(),
        **{name: _array(found[f"c{k}"], source.columns[name]) for k, name in enumerate(kept)},
    }


def _entry(column: Any, kind: str) -> Any:
    return column.cast("float64") if kind in (*_NUMBERS, "boolean") else column.cast("string")


def _array(column: Any, kind: str) -> Any:
    import numpy as np

    number = kind in (*_NUMBERS, "boolean")
    filled = column.fill_null(math.nan if number else "")
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.float64 if number else object)


# ----------------------------------------------------------------------------------------------------------------------------
# What the records say.


def _found(
    column: str,
    edges: tuple[float, ...],
    whole: bool,
    records: Mapping[str, Any],
    assumed: Assumption | None,
    chosen_by: int | None,
) -> PublicIntervals:
    import numpy as np

    values = np.asarray(records[column], dtype=np.float64)
    others = {name: entries for name, entries in records.items() if name != column}
    variance = float(np.var(values)) if values.size > 1 else 0.0
    iota = None if assumed is None or variance == 0 else assumed.information_per_unit(variance)
    told = smoothness.functions(values, others) if others else ()
    uneven = evenness.furthest_from_even(values, edges, whole, _LEVEL)
    return PublicIntervals(
        column=column,
        edges=edges,
        variance=variance,
        repeated=repeated_share(np.sort(values)),
        functions=tuple(dict.fromkeys(one.column for one in told)),
        rough=() if iota is None or not others else _rough(values, others, edges, iota),
        uneven=None if uneven is None else Uneven(place=uneven[0], shift=uneven[1]),
        compared=tuple(others),
        chosen_by=chosen_by,
    )


def _rough(values: Array, others: Mapping[str, Any], edges: Sequence[float], iota: float) -> tuple[RoughPlace, ...]:
    verdicts = smoothness.check_cells(values, others, edges, iota, _LEVEL)
    return tuple(
        RoughPlace(place=one.place, separation=one.separation, allowed=one.allowed)
        for one in verdicts
        if one.finding == "refused"
    )
