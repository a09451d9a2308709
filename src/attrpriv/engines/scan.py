"""One pass over a table: its number of rows, the sum of each column read, and the counts of a tally (`tally`).

For a column with values x_j, a public value m for missing entries and bounds [l, u], the sum over the rows read is

    S  =  sum of clip(x_j)  =  K + l * below + u * above + clip(m) * missing

| symbol                | meaning                                                              |
|-----------------------|----------------------------------------------------------------------|
| K                     | the sum of the values within [l, u]                                  |
| below, above, missing | how many values are less than l, greater than u, missing (NULL, NaN) |

The engine computes K and the counts in one query; the rest is arithmetic on fractions. Integers, booleans and decimals are
added in their own type, exactly. Floats are added as whole numbers of a public step (`grid`), exactly too, where the read names
a grid or has bounds; otherwise by the engine (DuckDB: compensated summation).

What must never change:

* One query, whatever is read.
* The counts never leave `_scan`. Only the sums and the numbers of rows do.
* A failure that depends on the rows has a fixed text. It names the columns read, which are public, never the one that
  failed, and raising it leaves nothing of the rows in a frame of this module.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, reduce
from typing import Any, Literal

from attrpriv.engines.conditions import check_condition, holds, in_type, spacing
from attrpriv.engines.grid import Grid, adds_whole_numbers, steps, very_float, whole_sum
from attrpriv.engines.tables import NOT_NUMBERS, ColumnType, Source, as_number, is_missing, quietly, shown_name
from attrpriv.engines.tally import (
    Tallied,
    TallyRead,
    grouped_by,
    grouped_row,
    prepared,
    tallied,
    tally_aggregates,
    unknown_category,
)
from attrpriv.errors import DataError
from attrpriv.queries.conditions import Condition, columns_of
from attrpriv.queries.query import quoted

ENGINE_FAILED = (
    "data: the engine could not read the table. Columns read: {columns}. Check that the file is complete and that each "
    "column holds values of one type; if it is a CSV file, convert it to Parquet with the types you mean."
)
NOT_FINITE = (
    "data: every value of a column read must be present, finite and small enough to be added. Columns read: {columns}. "
    "Got one that is not. Name a public value under `missing`, clip infinite and huge values with `bounds`, or clean the table."
)
NOT_NUMERIC = "data: avg and sum need a numeric column. Got {column}, which is {type}. Choose or make a numeric one."
UNKNOWN_COLUMN = "data: the column must be one of the table's. Got {column}. {hint}"

NOT_ROUNDED = "data: {column} must be of whole numbers on this engine, which cannot round to a spacing. Cast it, or use DuckDB."
# Types whose values may lie off a declared spacing.
_ROUNDED = ("float", "decimal")
# Engines whose sum of integers never wraps around: a wider result, or an error. The others get a sum of decimal(38, 0).
_SAFE_INTEGER_SUM = frozenset({"duckdb", "postgres", "sqlite"})


@dataclass(frozen=True)
class ColumnRead:
    """A column to sum, with the public values that make the sum defined and bounded."""

    column: str
    fill: float | None = None
    """The public value of a missing entry, NULL or NaN; None: a missing entry is an announced failure."""
    clip: tuple[float, float] | None = None
    """Values outside are clipped, silently; None: as they are, and an infinite one is an announced failure."""
    grid: Grid | None = None
    """The public grid on which floats are read; a value millions of spreads from its centre is an announced failure."""
    where: Condition | None = None
    """The rows read; None: all."""

    def __post_init__(self) -> None:
        if self.fill is not None and not math.isfinite(self.fill):
            raise DataError(f"missing: the value for {shown_name(self.column)} must be finite. Got {self.fill}.")
        if self.clip is not None and not -math.inf < self.clip[0] <= self.clip[1] < math.inf:
            low, high = self.clip
            raise DataError(f"bounds: {shown_name(self.column)} needs two finite bounds in order. Got [{low}, {high}].")


@dataclass(frozen=True)
class Scan:
    """What one pass found. The sums are private; the number of rows is public."""

    rows: int
    sums: tuple[Fraction, ...] = field(repr=False)
    """One for each read, in order."""
    tally: Tallied | None = field(default=None, repr=False)
    hits: tuple[int, ...] = field(default=(), repr=False)
    """How many rows each read is over, if any has a condition. Private."""


def scan(source: Source, reads: Sequence[ColumnRead], tally: TallyRead | None = None, full: Sequence[Condition] = ()) -> Scan:
    """The number of rows, the sum of each column and the counts of a tally, in one query.

    `full` are conditions that every row must satisfy, for any other an announced failure of the caller's: they tell nothing but
    how many values some columns have.

    Raises DataError before any row is read if a column is unknown or not numeric, and with a fixed text if a value is
    missing or infinite without a public substitute, if a row has no category, or if the engine fails.
    """
    check_columns(source, [read.column for read in reads])
    for read in reads:
        spaced = read.grid is not None and read.grid.spaced and source.columns[read.column] in _ROUNDED
        if spaced and not adds_whole_numbers(source.engine):
            raise DataError(NOT_ROUNDED.format(column=shown_name(read.column)))
        if read.where is not None:
            check_condition(source.columns, read.where)
    if tally is not None:
        tally.check(source.columns)
    result = quietly(lambda: _scan(source, reads, tally, full))
    if isinstance(result, Scan):
        return result
    names = dict.fromkeys((*(name for read in reads for name in _named(read)), *(tally.columns if tally is not None else ())))
    if result == "no category":
        raise unknown_category(tuple(names))
    columns = ", ".join(map(shown_name, names)) or "none"
    raise DataError((ENGINE_FAILED if result is None else NOT_FINITE).format(columns=columns))


def _named(read: ColumnRead) -> tuple[str, ...]:
    return (read.column, *(() if read.where is None else columns_of(read.where)))


def check_columns(source: Source, columns: Sequence[str]) -> None:
    """Raise DataError if one of the columns cannot be summed. Decided by the schema alone."""
    for column in columns:
        kind = source.columns.get(column)
        if kind is None:
            raise DataError(UNKNOWN_COLUMN.format(column=shown_name(column), hint=closest(source.columns, column)))
        if kind in NOT_NUMBERS:
            raise DataError(NOT_NUMERIC.format(column=shown_name(column), type=NOT_NUMBERS[kind]))


def closest(columns: Iterable[str], column: str) -> str:
    """The names that come closest. A difference in case is the commonest slip; a dash makes a name a difference of two."""
    columns = tuple(columns)
    dashed = [name for name in columns if not name.isidentifier() and name.isprintable() and column in re.split(r"\W+", name)]
    if dashed and column.isidentifier():
        return f"In double quotes there {'is' if len(dashed) == 1 else 'are'}: {', '.join(map(quoted, dashed[:3]))}."
    by_lower = {name.lower(): name for name in columns}
    close = [by_lower[lower] for lower in difflib.get_close_matches(column.lower(), by_lower, n=3)]
    names = close or list(by_lower.values())[:8]
    more = "" if close or len(names) == len(by_lower) else ", ..."
    return f"{'Close' if close else 'It has'}: {', '.join(map(shown_name, names))}{more}."


# ------------------------------------------------------------------------------------------------------------ the query


def _scan(
    source: Source, reads: Sequence[ColumnRead], tally: TallyRead | None, full: Sequence[Condition]
) -> Scan | Literal["not finite", "no category"]:
    """The one query. Exceptions are the engine's; the two texts are the failures that may be told apart."""
    row = _grouped(source, reads, tally, full) or _plain(source, reads, tally)
    rows = int(row["rows"])
    if not rows:  # Spark counts none of none as NULL
        row = dict.fromkeys(row, 0)
    sums, hits = [], []
    for position, read in enumerate(reads):
        found = {name: row.get(f"{name}_{position}") for name in ("kept", "used", "missing", "below", "above", "hits")}
        hits.append(rows if read.where is None else int(found["hits"] or 0))
        total = _total(read, _grid(source, read), hits[-1], found)
        if total is None:
            return "not finite"
        sums.append(total)
    counts = None if tally is None else tallied(row, rows, tally)
    shown = tuple(hits) if any(read.where is not None for read in reads) else ()
    return "no category" if tally is not None and counts is None else Scan(rows, tuple(sums), counts, shown)


def _plain(source: Source, reads: Sequence[ColumnRead], tally: TallyRead | None) -> dict[str, Any]:
    wanted = {"rows": source.table.count()} | ({} if tally is None else tally_aggregates(source, tally))
    for position, read in enumerate(reads):
        wanted |= {f"{name}_{position}": part for name, part in _aggregates(source, read).items()}
    return source.run(source.table.aggregate(**wanted))


def _grouped(
    source: Source, reads: Sequence[ColumnRead], tally: TallyRead | None, full: Sequence[Condition]
) -> dict[str, Any] | None:
    """The same from groups of rows, where conditions read columns of few values; None where they do not."""
    asked = [name for read in reads if read.where is not None for name in columns_of(read.where)]
    if tally is None and not asked:
        return None
    keys = grouped_by(source, asked, tally, full)
    if not keys:
        return None
    # One sum for all reads of the same column.
    wholes = [replace(read, where=None) for read in reads]
    once = list(dict.fromkeys(wholes))
    parts = [_aggregates(source, read) for read in once]
    return grouped_row(source, keys, tally, parts, [once.index(read) for read in wholes], lambda small: _wheres(small, reads))


def _wheres(source: Source, reads: Sequence[ColumnRead]) -> list[Any]:
    return [
        None if read.where is None else holds(prepared(source, columns_of(read.where), {}, {}), read.where) for read in reads
    ]


def _grid(source: Source, read: ColumnRead) -> Grid | None:
    """The grid of a column of floats, from the bounds where there are some; None: the engine adds the values themselves."""
    if read.grid is not None and read.grid.spaced:
        return read.grid if source.columns[read.column] in _ROUNDED else None
    if (read.clip is None and read.grid is None) or source.columns[read.column] != "float":
        return None
    if not adds_whole_numbers(source.engine):
        return None
    return read.grid if read.clip is None else Grid.within(*read.clip)


def _aggregates(source: Source, read: ColumnRead) -> dict[str, Any]:
    """K and the counts of one column; a count that is surely zero, or that no one needs, is left out."""
    kind, grid, value = source.columns[read.column], _grid(source, read), as_number(source, read.column)
    missing = is_missing(source, read.column)
    outside = _outside(value, kind, _bounds(kind, read, grid))
    asked = [] if read.where is None else [holds(prepared(source, columns_of(read.where), {}, {}), read.where)]
    counted = {side: [~missing, condition, *asked] for side, condition in outside.items()}
    if outside or read.fill is not None:
        counted["missing"] = [missing, *asked]
    if asked:
        counted["hits"] = asked
    kept = [~condition for condition in outside.values()] + asked
    if kind == "float" and grid is None and outside:
        kept.append(~missing)  # NaN, which would be added like a number
    summed = value if grid is None else steps(source, read.column, grid)
    counts = {name: source.table.count(where=_all(conditions)) for name, conditions in counted.items()}
    return counts | {"kept": _sum(source, kind, summed, _all(kept), grid), "used": summed.count(where=_all(kept))}


def _all(conditions: Sequence[Any]) -> Any:
    return reduce(operator.and_, conditions) if conditions else None


def _sum(source: Source, kind: ColumnType, value: Any, kept: Any, grid: Grid | None) -> Any:
    """K, or its steps. Exact types come back as text: Ibis would squeeze them into 64 bits or a decimal that does not fit."""
    if grid is not None:
        return whole_sum(source, value, kept)
    if kind == "float":
        return _compensated_sum()(value, where=kept) if source.engine.name == "duckdb" else value.sum(where=kept)
    if kind != "decimal" and source.engine.name not in _SAFE_INTEGER_SUM:
        value = value.cast("decimal(38, 0)")
    return value.sum(where=kept).cast("string")


@cache
def _compensated_sum() -> Any:
    """DuckDB's `fsum`: Kahan's summation, whose error does not grow with the number of rows."""
    import ibis

    return ibis.udf.agg.builtin(lambda value: None, name="fsum", signature=(("float64",), "float64"))


# ----------------------------------------------------------------------------------------------------------- the bounds


def _bounds(kind: ColumnType, read: ColumnRead, grid: Grid | None) -> tuple[float, float] | None:
    """The bounds to count by. A sum tells that some float is not finite, and so does a grid; but where missing entries are
    filled and there is no grid, the sum leaves NaN out, and infinite values have to be counted.
    """
    finite = (-sys.float_info.max, sys.float_info.max)
    return finite if read.clip is None and kind == "float" and grid is None and read.fill is not None else read.clip


def _outside(value: Any, kind: ColumnType, clip: tuple[float, float] | None) -> dict[str, Any]:
    """The conditions "below" and "above", each only where it can hold."""
    if clip is None:
        return {}
    if kind == "float":
        return {"below": value < very_float(clip[0]), "above": value > very_float(clip[1])}
    sides = {"below": _below(value, Fraction(clip[0])), "above": _above(value, Fraction(clip[1]))}
    return {side: condition for side, condition in sides.items() if condition is not None}


def _below(value: Any, low: Fraction) -> Any:
    """value < low for an exact type: the bound rounds up to the type's own spacing, which changes nothing."""
    least, most, scale = spacing(value.type(), low)
    bound = math.ceil(low * 10**scale)
    if bound <= least:
        return None
    return value.notnull() if bound > most else value < in_type(value.type(), bound, scale)


def _above(value: Any, high: Fraction) -> Any:
    """value > high for an exact type: the bound rounds down to the type's own spacing, which changes nothing."""
    least, most, scale = spacing(value.type(), high)
    bound = math.floor(high * 10**scale)
    if bound >= most:
        return None
    return value.notnull() if bound < least else value > in_type(value.type(), bound, scale)


# ----------------------------------------------------------------------------------------------------------- the answer


def _total(read: ColumnRead, grid: Grid | None, rows: int, found: Mapping[str, Any]) -> Fraction | None:
    """S, or None if a value that is missing, infinite or too large to add has no public substitute."""
    used, missing, below, above = (int(found[name] or 0) for name in ("used", "missing", "below", "above"))
    if (missing and read.fill is None) or (read.clip is None and (below or above)) or used + missing + below + above != rows:
        return None
    kept = Fraction(0)
    if used:  # the sum of nothing is NULL; any other NULL is an engine's way to say overflow
        if isinstance(found["kept"], float) and not math.isfinite(found["kept"]):
            return None
        kept = Fraction(found["kept"])
    if grid is not None:
        step = Fraction(repr(grid.step)) if grid.spaced else Fraction(grid.step)
        kept = kept * step + used * Fraction(grid.centre)
    low, high = map(Fraction, read.clip or (0, 0))
    fill = Fraction(read.fill or 0)
    if read.clip is not None:
        fill = min(max(fill, low), high)
    return kept + below * low + above * high + missing * fill
