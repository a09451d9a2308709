"""The values of some columns in public records, and how many records have each: the cells of a reference view.

One pass, by the engine. What must never change: these are *public* records, and never the private table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from attrpriv.engines.files import near_name
from attrpriv.engines.progress import waited
from attrpriv.engines.public_counts import rows_digest
from attrpriv.engines.scan import UNKNOWN_COLUMN, closest
from attrpriv.engines.tables import Source, open_table, quietly, shown_name
from attrpriv.engines.view.cells import one_of_many
from attrpriv.errors import DataError, PolicyError
from attrpriv.problem.places import identities, is_remote
from attrpriv.problem.reference import PublicCell, PublicCells, Reference, stated_cells

ENGINE_FAILED = "reference: the engine could not read the public records. Check that the file is complete."
NOT_LISTED = (
    "reference: the values of {column} must be text, numbers, dates, true or false, so that they can be listed. Got another "
    "type of column in {name}."
)
TOO_MANY = (
    "reference: the hidden columns must have at most {most:,} different combinations of values in {name}. Got more. Hide fewer "
    "columns together, or sort a number into intervals (assume: kind: channel)."
)
SAME_TABLE = (
    "reference: must be of other records than the private table, independent of it. Got the private table itself. Numbers of "
    "rows that are taken from it are its composition, and nothing would be hidden. Find public records of the same population."
)
NOT_COMPARED = (
    "reference: must be of other records than the private table, which could not be read to compare the two. Repair that "
    "table first."
)
_MOST_CELLS = 200_000


def reference_cells(reference: Reference | None, columns: Sequence[str], path: str | Path | None) -> PublicCells | None:
    """What a reference says of the columns about which everything is hidden; None where nothing is hidden so."""
    if reference is None or not columns:
        return None
    if path is not None:
        return cells_of_file(path, columns)
    found = stated_cells(reference, columns)
    if found is None:
        named = ", ".join(columns)
        raise PolicyError(
            f"reference: must be of the hidden columns, under {named!r}. Got {', '.join(map(repr, reference.shares))}."
        )
    return found


def cells_of_file(path: str | Path, columns: Sequence[str]) -> PublicCells:
    """The same of a file of public records, read again only where it has changed."""
    place, changed, size = state_of(path)
    return _cells_of(str(place), changed, size, tuple(columns))


def state_of(path: str | Path) -> tuple[Path, int, int]:
    """A file of public records, when it was changed, and its size."""
    place = Path(path)
    try:
        state = place.stat()
    except OSError:
        state = None
    if state is None:
        raise DataError(f"reference: must be a file of public records that can be read. Got {str(path)!r}.{near_name(place)}")
    return place, state.st_mtime_ns, state.st_size


@lru_cache(maxsize=8)  # a command asks for the same cells several times
def _cells_of(path: str, changed: int, size: int, columns: tuple[str, ...]) -> PublicCells:
    source = open_table(path)
    try:
        return public_cells(source, columns)
    finally:
        source.engine.disconnect()  # what it holds would count beside the engine that reads the table


def public_cells(source: Source, columns: Sequence[str]) -> PublicCells:
    """Every combination of values of these columns, with the number of records that have it."""
    require_columns(source, columns)
    found = quietly(lambda: _counted(source, columns))
    if found is None:
        raise DataError(ENGINE_FAILED)
    if len(found) > _MOST_CELLS:
        raise DataError(TOO_MANY.format(most=_MOST_CELLS, name=source.name))
    if not found:
        raise DataError(f"reference: the public records must have rows. Got none in {source.name}.")
    cells = [PublicCell(values=values, count=count) for values, count in found]
    return PublicCells(
        columns=tuple(columns),
        kinds={column: source.columns[column] for column in columns},
        records=sum(count for _, count in found),
        cells=tuple(sorted(cells, key=in_order)),
    )


def _unknown(column: str, source: Source) -> str:
    text = UNKNOWN_COLUMN.format(column=shown_name(column), hint=closest(source.columns, column))
    return text.replace(
        "data: the column must be one of the table's", f"reference: the hidden columns must be in {source.name}", 1
    )


def require_columns(source: Source, columns: Sequence[str]) -> None:
    """Raise DataError where the records do not have a column, or not as values that can be listed."""
    for column in columns:
        if column not in source.columns:
            raise DataError(_unknown(column, source))
        if source.columns[column] == "other":
            raise DataError(NOT_LISTED.format(column=shown_name(column), name=source.name))


def _counted(source: Source, columns: Sequence[str]) -> list[tuple[tuple[Any, ...], int]]:
    named = {f"v{k}": listed(source, column) for k, column in enumerate(columns)}
    table = source.table.select(**named)
    grouped = table.group_by(*named).aggregate(rows=table.count()).limit(_MOST_CELLS + 1)
    rows = waited(source.engine, lambda: source.engine.to_pyarrow(grouped), source.rows).to_pylist()
    return [(tuple(row[name] for name in named), int(row["rows"])) for row in rows]


def listed(source: Source, column: str) -> Any:
    """A column as JSON can hold its values: dates as text, and decimals, none of which is rounded."""
    value = one_of_many(source.table[column])
    return value.cast("string") if source.columns[column] in ("date", "decimal") else value


# Columns of the public records by which a row may be recognised.

_MANY = 100
_NEARLY_ALL = 0.9


def nearly_unique(path: str | Path) -> tuple[str, ...]:
    """The columns, but for measured ones, in which nearly every public record has a value of its own."""
    place = Path(path)
    state = place.stat()
    return _unique_of(str(place), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=8)
def _unique_of(path: str, changed: int, size: int) -> tuple[str, ...]:
    source = open_table(path)
    able = {f"v{k}": name for k, (name, kind) in enumerate(source.columns.items()) if kind in ("text", "integer", "date")}
    counted = {short: source.table[name].approx_nunique() for short, name in able.items()}
    found = quietly(lambda: source.run(source.table.aggregate(rows=source.table.count(), **counted)))
    if found is None:
        raise DataError(ENGINE_FAILED)
    rows = int(found["rows"])
    return tuple(name for short, name in able.items() if rows >= _MANY and found[short] >= _NEARLY_ALL * rows)


# What must never be: the table as its own reference.


def require_other_file(path: str | Path, data: object) -> None:
    """Raise DataError where the public records are the table's own file, or one of its files. Reads no row."""
    if isinstance(data, str | Path) and not is_remote(data) and identities(path) & identities(data):
        raise DataError(SAME_TABLE)


def require_other_records(table: Source, path: str | Path, declared: int | None) -> None:
    """Raise DataError where the rows of the private table are the public records, in the columns that both have.

    As for fitted assumptions: no row is read where the numbers of rows differ, and nothing is told but that they are the same.
    """
    known, public = declared if table.rows is None else table.rows, open_table(path)
    if known is not None and known != _number_of_records(public):
        return
    shared = [name for name, kind in table.columns.items() if "other" not in (kind, public.columns.get(name, "other"))]
    if not shared:
        return
    digests = [quietly(partial(rows_digest, source, shared)) for source in (table, public)]
    if None in digests:
        raise DataError(NOT_COMPARED)
    if digests[0] == digests[1]:
        raise DataError(SAME_TABLE)


def _number_of_records(public: Source) -> int:
    if public.rows is not None:
        return public.rows
    found = quietly(lambda: public.run(public.table.aggregate(rows=public.table.count())))
    if found is None:
        raise DataError(ENGINE_FAILED)
    return int(found["rows"])


def in_order(cell: PublicCell) -> tuple[tuple[str, float, str], ...]:
    """Numbers by size, then texts; what is missing first."""
    return tuple(_place(value) for value in cell.values)


def _place(value: object) -> tuple[str, float, str]:
    if value is None:
        return "", 0.0, ""
    if isinstance(value, int | float):
        return "number", float(value), ""
    return "text", 0.0, str(value)
