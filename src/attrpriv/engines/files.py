"""Files: one Parquet or CSV file, or all that match a pattern such as `visits/2024-*.parquet`.

What must never change:

* Opening reads the schema, never a statistic. Parquet: the footer. CSV: the line of column names, and a sample of rows from
  which DuckDB guesses the types. A column is boolean where the sample says true and false; yes and no, t and f stay text.
* Every row of a file counts. DuckDB's CSV reader, left to itself, skips rows that do not fit and takes the names from the next
  one, so that cells would become column names; here it may guess the delimiter and the types, nothing else.
* A path that exists is a path and not a pattern, whatever characters it has. Files of one pattern have the same columns.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attrpriv.engines.tables import (
    UNREADABLE_CSV,
    UNREADABLE_PARQUET,
    ColumnType,
    Source,
    check_names,
    new_duckdb,
    numbered,
    quietly,
    source_of,
)
from attrpriv.errors import DataError
from attrpriv.frozen.requirements import shown
from attrpriv.problem.places import WILD, files_of, is_pattern

# What DuckDB may not guess: rows it could skip, lines it could take for comments, a quote it has not met in its sample.
_CSV_FIXED: Mapping[str, Any] = MappingProxyType(
    {
        "skip": 0,
        "comment": "",
        "quote": '"',
        "escape": '"',
        "ignore_errors": False,
        "null_padding": False,
        "strict_mode": True,
        "hive_partitioning": False,
    }
)
# What a boolean column of a CSV file may say, in any case, and how many rows are looked at: as many as DuckDB guesses from.
_BOOLEAN = frozenset({"true", "false", "none"})
_SAMPLE = 20_480
_SUFFIXES = (".parquet", ".csv", ".csv.gz")
# What may stand between the fields of a CSV file.
_MARKS = frozenset(",;|\t")
# By Arrow's type and the one that is stored: what DuckDB, too, reads a column of a Parquet file as. Of any other it is asked.
_PLAIN: Mapping[tuple[str, str], ColumnType] = MappingProxyType(
    {
        ("bool", "NONE"): "boolean",
        **{(f"{sign}int{bits}", how): "integer" for sign in ("", "u") for bits in (8, 16, 32, 64) for how in ("NONE", "INT")},
        ("float", "NONE"): "float",
        ("double", "NONE"): "float",
        ("decimal128", "DECIMAL"): "decimal",
        ("string", "STRING"): "text",
        ("large_string", "STRING"): "text",
        ("date32[day]", "DATE"): "date",
    }
)


NO_HEADER = (
    "data: a CSV file must begin with a line of column names. Got {shown}, which does not. Add that line, or convert the file, "
    "with your names in the place of first and second: {command}"
)


def near_name(path: Path) -> str:
    """A table beside a path that leads nowhere whose name is nearly the same, as a question; else nothing.

    >>> near_name(Path("no such folder/staff.parquet"))
    ''
    """
    try:
        there = [one.name for one in path.parent.iterdir() if one.name.lower().endswith(_SUFFIXES)]
    except (OSError, ValueError):
        return ""
    near = get_close_matches(path.name, there, n=1, cutoff=0.75)
    return f" Did you mean {_shown(near[0])}?" if near else ""


def _ending(path: Path) -> str:
    """What to do about a file that is no table by its name."""
    ending = path.suffix.lower()
    if ending in (".yaml", ".yml"):
        return "That is a policy. Name the table."
    if ending in (".xlsx", ".xls", ".ods"):
        return "Save the sheet as CSV in UTF-8."
    return f"Convert the file; a text file with: attrpriv tidy {shlex.quote(str(path))}"


def open_path(path: Path, given: str) -> Source:
    """Decide by the suffix, never by the content."""
    if os.path.isdir(path):
        raise DataError(
            f"data: it must be one file. Got {_shown(given)}, which is a directory. Name a file in it, or a pattern."
        )
    if not path.name.lower().endswith(_SUFFIXES):
        raise DataError(f"data: the file's name must end in .parquet, .csv or .csv.gz. Got {_shown(given)}. {_ending(path)}")
    paths = files_of(path)
    if not paths:
        what = "a file of this pattern" if is_pattern(path) else "the file"
        hint = " Download it first." if given.startswith(("http:", "https:", "s3:", "gs:")) else near_name(path)
        raise DataError(f"data: {what} must exist. Got {_shown(given)}.{hint}")
    return (
        _open_parquet(paths, path.name, given) if path.name.lower().endswith(".parquet") else _open_csv(paths, path.name, given)
    )


def _open_parquet(paths: Sequence[Path], name: str, given: str) -> Source:
    footers = quietly(lambda: [_parquet_footer(path) for path in paths])
    if footers is None:
        raise DataError(UNREADABLE_PARQUET.format(shown=_shown(given)))
    check_names([column for column, _ in footers[0].types])
    _require_same([footer.types for footer in footers], given)
    literal = [literal_path(path) for path in paths]
    rows, columns = sum(footer.rows for footer in footers), footers[0].columns
    connect = cache(lambda: _connected_parquet(literal, given))

    def positioned(added: str) -> Any:
        table, engine = connect()
        return _numbered_parquet(engine, literal, table, added)

    if columns is not None and all(footer.columns == columns for footer in footers):
        return Source(connect, name, MappingProxyType(columns), rows, positioned)
    return source_of(*connect(), name, rows, positioned)


def _connected_parquet(literal: Sequence[str], given: str) -> tuple[Any, Any]:
    """The files as one table, on a DuckDB of their own."""
    engine = new_duckdb()
    table = quietly(lambda: engine.read_parquet(literal, hive_partitioning=False))
    if table is None:
        raise DataError(UNREADABLE_PARQUET.format(shown=_shown(given)))
    return table, engine


@dataclass(frozen=True)
class _Footer:
    """The names as a file has them (DuckDB renames duplicates) with their types, and the number of rows."""

    types: list[tuple[str, str]]
    rows: int
    columns: Mapping[str, ColumnType] | None
    """What DuckDB reads each column as, where that is beyond doubt for all of them."""


def _parquet_footer(path: Path) -> _Footer:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        types = [(one.name, str(one.type)) for one in file.schema_arrow]
        stored = [file.schema.column(k).logical_type.type for k in range(len(file.schema.names))]  # also of columns in columns
        found = {name: _PLAIN.get((kind.partition("(")[0], how)) for (name, kind), how in zip(types, stored, strict=False)}
        known = {name: kind for name, kind in found.items() if kind is not None}
        return _Footer(types, int(file.metadata.num_rows), known if len(known) == len(types) == len(stored) else None)


def _open_csv(paths: Sequence[Path], name: str, given: str) -> Source:
    engine = new_duckdb()
    heads = quietly(lambda: [_csv_head(engine, path) for path in paths])
    if heads is None:
        raise DataError(UNREADABLE_CSV.format(shown=_shown(given)))
    headers = [names for _, names in heads]
    for path, names in zip(paths, headers, strict=True):
        if not any(names):
            raise DataError(NO_HEADER.format(shown=_shown(given), command=_converting(path)))
    if any(len(names) == 1 and _MARKS & {*names[0]} for names in headers):  # no mark cuts every line into as many fields
        raise DataError(UNREADABLE_CSV.format(shown=_shown(given)))
    # DuckDB calls an empty name by its position.
    check_names([column or f"column{position}" for position, column in enumerate(headers[0])])
    _require_same(headers, given)
    literal = [literal_path(path) for path in paths]
    table = quietly(lambda: _read_csv(engine, literal, heads[0][0]))
    if table is None:
        raise DataError(UNREADABLE_CSV.format(shown=_shown(given)))
    return source_of(table, engine, name, None, lambda added: numbered(table, added))


def _converting(path: Path) -> str:
    """The command that makes a file without names one that has them; columns without a name are called by their position."""
    return f"attrpriv tidy {shlex.quote(str(path))} --names first,second"


def _read_csv(engine: Any, literal: Sequence[str], delimiter: str) -> Any:
    """The files as one table. DuckDB takes yes and no, t and f for booleans; here they are the words that are written."""
    table = engine.read_csv(literal, header=True, **_CSV_FIXED)
    found = [column for column, kind in table.schema().items() if kind.is_boolean()]
    if not found:
        return table
    written = engine.read_csv(literal, header=True, all_varchar=True, delim=delimiter, **_CSV_FIXED)
    sample = written.select(found).limit(_SAMPLE).to_pyarrow()
    words = [column for column in found if {str(cell).lower() for cell in sample[column].unique().to_pylist()} - _BOOLEAN]
    return engine.read_csv(literal, header=True, types=dict.fromkeys(words, "VARCHAR"), **_CSV_FIXED) if words else table


def _require_same(schemas: Sequence[object], given: str) -> None:
    """DuckDB would cast a type, and leave out a column that the first file has not."""
    if any(schema != schemas[0] for schema in schemas):
        raise DataError(
            f"data: files of one pattern must have the same columns and types, in one order. Got {_shown(given)}, which differ."
        )


def _csv_head(engine: Any, path: Path) -> tuple[str, list[str]]:
    """The delimiter, and the first line's fields as they are written, or nothing where it holds values rather than names.

    DuckDB renames duplicates, so the names are read as a row. A file without a line of names is recognised only where a
    column has values that are not text; otherwise its first row would be taken for the names, as by any CSV reader.
    """
    options = ", ".join(f"{option} = ?" for option in _CSV_FIXED)
    sniffed = f"SELECT HasHeader, Delimiter FROM sniff_csv(?, {options})"
    has_header, delimiter = engine.con.execute(sniffed, [literal_path(path), *_CSV_FIXED.values()]).fetchone()
    if not has_header:
        return delimiter, []
    lines = engine.read_csv(literal_path(path), header=False, all_varchar=True, delim=delimiter, **_CSV_FIXED)
    first = lines.limit(1).to_pyarrow().to_pylist()
    return delimiter, [(cell or "").strip() for line in first for cell in line.values()]


def literal_path(path: Path) -> str:
    """The path with the characters of a glob made literal: DuckDB would read `a1.csv` where `a[1].csv` is named."""
    return "".join(f"[{letter}]" if letter in WILD else letter for letter in os.path.abspath(path))


def _numbered_parquet(engine: Any, literal: Sequence[str], table: Any, name: str) -> Any:
    """The row's number in the file, which Parquet knows, so that no window has to pass over the rows."""
    own = "file_row_number"
    if len(literal) > 1 or own in (column.lower() for column in table.columns):
        return numbered(table, name)
    read = engine.read_parquet(literal, hive_partitioning=False, file_row_number=True)
    return read.rename({name: own})


def _shown(given: str) -> str:
    """What was given for the table, in a message."""
    return shown(given, 200)
