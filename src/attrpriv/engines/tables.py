"""A table that can be scanned: a Parquet or CSV file, a pandas, Polars or Arrow table, or any Ibis table.

What must never change:

* Opening reads the schema, never a statistic. Parquet: the footer. CSV: the line of column names, and a sample of rows
  from which DuckDB guesses the types. Frames in memory: their types (pandas columns of plain objects are converted to
  find one).
* Every row of a file counts. DuckDB's CSV reader, left to itself, skips rows that do not fit and takes the names from
  the next one, so that cells would become column names; here it may guess the delimiter and the types, nothing else.
* An engine's exception quotes cells. `quietly` is the only place that meets one; it keeps nothing of it, so that no
  message, cause, context, log or traceback frame does.
* Nothing heavy is imported until a table is opened.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from attrpriv.errors import DataError

ColumnType = Literal["integer", "boolean", "decimal", "float", "text", "other"]
Made = TypeVar("Made")

UNREADABLE_PARQUET = "data: the file must be a complete Parquet file. Got {shown}, which cannot be read. Write it anew."
UNREADABLE_CSV = (
    "data: the file must be a CSV file in UTF-8 with the same number of fields on each line. "
    "Got {shown}, which cannot be read. Write it anew, best as Parquet."
)
UNREADABLE_FRAME = (
    "data: every column must have one type that Arrow knows. Got a {shown} with a column that has none. "
    "Convert or drop that column."
)
UNREADABLE_IBIS = (
    "data: an Ibis table must be bound to a connection that works. "
    "Got one that is not. Make it from a connection, such as con.table('name')."
)

# DuckDB 2.0 takes a Parquet file's statistics, which leave NaN out, for bounds on all values: it then counts a NaN as missing
# *and* as above a bound, and drops `isnan` from a pushed-down filter. Both would change released numbers.
UNSOUND_OPTIMIZERS = "statistics_propagation,filter_pushdown"

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


@dataclass(frozen=True, eq=False)
class Source:
    """A table that is open and not yet read.

    The table and its engine stay out of the `repr`: Ibis shows the rows of a table in memory there.
    """

    table: Any = field(repr=False)
    """An Ibis table expression."""
    name: str
    """A public name: the file's without its directory, an Ibis table's own, or "memory"."""
    columns: Mapping[str, ColumnType]
    """The type of each column, in the table's order."""
    rows: int | None
    """n, where it is known without reading a row; otherwise None."""
    engine: Any = field(repr=False)
    """The Ibis backend on which the table runs."""
    positioned: Callable[[str], Any] | None = field(default=None, repr=False)
    """The table with each row's position, from 0, in a column of the given name; None where rows have no order."""

    def run(self, aggregate: Any) -> dict[str, Any]:
        """The single row of an aggregate of this table. Whatever the engine raises comes through: call it `quietly`."""
        with careful(self.engine):
            (row,) = self.engine.to_pyarrow(aggregate).to_pylist()
        return dict(row)


@contextlib.contextmanager
def careful(engine: Any) -> Iterator[None]:
    """Run on a DuckDB of the caller's own without the optimizers that miscount NaN, and leave its settings as they were."""
    if engine.name != "duckdb" or getattr(engine, "attrpriv_is_careful", False):
        yield
        return
    # fetchall, because a result that is not read to its end keeps the connection busy
    before = engine.con.execute("SELECT current_setting('disabled_optimizers')").fetchall()[0][0] or ""
    if set(UNSOUND_OPTIMIZERS.split(",")) <= set(before.split(",")):
        yield
        return
    engine.con.execute(f"SET disabled_optimizers = '{','.join(filter(None, (before, UNSOUND_OPTIMIZERS)))}'")
    try:
        yield
    finally:
        engine.con.execute(f"SET disabled_optimizers = '{before}'")


def quietly(work: Callable[[], Made]) -> Made | None:
    """What `work` returns, or None if it fails in any way; what the failure said is gone.

    The caller raises its own error after this has returned, so that neither `__cause__` nor `__context__` is set.
    Warnings are dropped too: they may quote cells as well. BaseException, because a panic inside Polars is not an
    Exception.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        return None


def has_nan(engine: Any) -> bool:
    """SQLite, for one, stores NaN as NULL and has no test for it."""
    import ibis.expr.operations as operations

    return bool(engine.has_operation(operations.IsNan))


def shown_name(column: object) -> str:
    """A column's name in a message: bare if it is a plain word, otherwise quoted, and always on one line."""
    return column if isinstance(column, str) and column.isidentifier() else repr(column)


def open_table(data: object) -> Source:
    """Open `data` without reading a row: a path, a pandas, Polars or Arrow table, or an Ibis table."""
    if isinstance(data, (str, os.PathLike)):
        return _open_path(Path(data), repr(str(data)))
    for base in type(data).__mro__:
        opener = _OPENERS.get((base.__module__.partition(".")[0], base.__name__))
        if opener is not None:
            return opener(data)
    raise DataError(
        "data: it must be the path of a Parquet or CSV file, a pandas, Polars or Arrow table, or an Ibis table. "
        f"Got a {type(data).__name__}."
    )


# ---------------------------------------------------------------------------------------------------------------- files


def _open_path(path: Path, shown: str) -> Source:
    """Decide by the suffix, never by the content."""
    if os.path.isdir(path):
        raise DataError(f"data: it must be one file. Got {shown}, which is a directory. Name a file in it.")
    suffix = path.name.lower()
    if not suffix.endswith((".parquet", ".csv", ".csv.gz")):
        raise DataError(f"data: the file's name must end in .parquet, .csv or .csv.gz. Got {shown}. Convert the file.")
    if not os.path.isfile(path):  # os.path, unlike Path, answers False to a name that no file system would take
        raise DataError(f"data: the file must exist. Got {shown}.")
    return _open_parquet(path, shown) if suffix.endswith(".parquet") else _open_csv(path, shown)


def _open_parquet(path: Path, shown: str) -> Source:
    footer = quietly(lambda: _parquet_footer(path))
    if footer is None:
        raise DataError(UNREADABLE_PARQUET.format(shown=shown))
    names, rows = footer
    _check_names(names)
    engine = _duckdb()
    table = quietly(lambda: engine.read_parquet(_literal(path), hive_partitioning=False))
    if table is None:
        raise DataError(UNREADABLE_PARQUET.format(shown=shown))
    return _source(table, engine, path.name, rows, lambda name: _numbered_parquet(engine, path, table, name))


def _parquet_footer(path: Path) -> tuple[list[str], int]:
    """The names as the file has them (DuckDB renames duplicates) and the number of rows."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        return list(file.schema_arrow.names), int(file.metadata.num_rows)


def _open_csv(path: Path, shown: str) -> Source:
    engine = _duckdb()
    header = quietly(lambda: _csv_header(engine, path))
    if header is None:
        raise DataError(UNREADABLE_CSV.format(shown=shown))
    if not any(header):
        raise DataError(f"data: a CSV file must begin with a line of column names. Got {shown}, which does not. Add that line.")
    # DuckDB calls an empty name by its position.
    _check_names([name or f"column{position}" for position, name in enumerate(header)])
    table = quietly(lambda: engine.read_csv(_literal(path), header=True, **_CSV_FIXED))
    if table is None:
        raise DataError(UNREADABLE_CSV.format(shown=shown))
    return _source(table, engine, path.name, None, lambda name: _numbered(table, name))


def _csv_header(engine: Any, path: Path) -> list[str]:
    """The first line's fields as they are written, or nothing where it holds values rather than names.

    DuckDB renames duplicates, so the names are read as a row. A file without a line of names is recognised only where a
    column has values that are not text; otherwise its first row would be taken for the names, as by any CSV reader.
    """
    options = ", ".join(f"{option} = ?" for option in _CSV_FIXED)
    sniffed = f"SELECT HasHeader, Delimiter FROM sniff_csv(?, {options})"
    has_header, delimiter = engine.con.execute(sniffed, [_literal(path), *_CSV_FIXED.values()]).fetchone()
    if not has_header:
        return []
    lines = engine.read_csv(_literal(path), header=False, all_varchar=True, delim=delimiter, **_CSV_FIXED)
    first = lines.limit(1).to_pyarrow().to_pylist()
    return [(cell or "").strip() for line in first for cell in line.values()]


def _literal(path: Path) -> str:
    """The path with the characters of a glob made literal: DuckDB would read `a1.csv` where `a[1].csv` is named."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in os.path.abspath(path))


# --------------------------------------------------------------------------------------------------------------- frames


def _open_pandas(data: Any) -> Source:
    _check_names(list(data.columns))
    return _open_converted(data, _pandas_to_arrow)


def _open_polars(data: Any) -> Source:
    _check_names(data.columns)
    return _open_converted(data, lambda frame: frame.to_arrow())


def _open_arrow(data: Any) -> Source:
    _check_names(data.column_names)
    return _open_converted(data, lambda table: table)


def _pandas_to_arrow(frame: Any) -> Any:
    import pyarrow

    return pyarrow.Table.from_pandas(frame, preserve_index=False)


def _open_converted(data: Any, convert: Callable[[Any], Any]) -> Source:
    """All frames in memory become Arrow, so that a value means the same whichever library held it."""
    import ibis

    table = quietly(lambda: ibis.memtable(convert(data)))
    if table is None:
        raise DataError(UNREADABLE_FRAME.format(shown=type(data).__name__))
    return _source(table, _duckdb(), "memory", len(data), lambda name: _numbered(table, name))


def _open_lazy(data: Any) -> Source:
    """A LazyFrame stays lazy and runs on Polars: to give it to DuckDB, Ibis would collect it, and read every row."""
    import ibis

    engine = ibis.polars.connect({"data": data})
    table = quietly(lambda: engine.table("data"))
    if table is None:
        raise DataError(UNREADABLE_FRAME.format(shown="LazyFrame"))
    return _source(table, engine, "memory", None)


def _open_ibis(data: Any) -> Source:
    engine = quietly(data.get_backend)
    if engine is None:
        raise DataError(UNREADABLE_IBIS)
    own = quietly(data.get_name) if type(data.op()).__name__ == "DatabaseTable" else None
    # Ibis makes up names such as ibis_read_csv_4f..., which differ each time.
    name = "memory" if own is None or own.startswith("ibis_") else own
    return _source(data, engine, name, None)


_OPENERS: Mapping[tuple[str, str], Callable[[Any], Source]] = MappingProxyType(
    {
        ("pandas", "DataFrame"): _open_pandas,
        ("polars", "DataFrame"): _open_polars,
        ("polars", "LazyFrame"): _open_lazy,
        ("pyarrow", "Table"): _open_arrow,
        ("ibis", "Table"): _open_ibis,
    }
)


# --------------------------------------------------------------------------------------------------------------- common


def _duckdb() -> Any:
    """A DuckDB of its own, in memory, that fetches nothing, writes no file and draws nothing on the terminal."""
    import ibis

    engine = ibis.duckdb.connect(autoinstall_known_extensions=False, temp_directory="")
    engine.raw_sql("SET enable_progress_bar = false")
    engine.raw_sql(f"SET disabled_optimizers = '{UNSOUND_OPTIMIZERS}'")
    engine.attrpriv_is_careful = True
    return engine


def _numbered(table: Any, name: str) -> Any:
    """Rows numbered as they come: DuckDB keeps the order of a file or a frame."""
    import ibis

    return table.mutate(**{name: ibis.row_number()})


def _numbered_parquet(engine: Any, path: Path, table: Any, name: str) -> Any:
    """The row's number in the file, which Parquet knows, so that no window has to pass over the rows."""
    own = "file_row_number"
    if own in (column.lower() for column in table.columns):
        return _numbered(table, name)
    numbered = engine.read_parquet(_literal(path), hive_partitioning=False, file_row_number=True)
    return numbered.rename({name: own})


def _source(table: Any, engine: Any, name: str, rows: int | None, positioned: Callable[[str], Any] | None = None) -> Source:
    columns = {str(column): _column_type(dtype) for column, dtype in table.schema().items()}
    _check_names(columns)
    return Source(table, name, MappingProxyType(columns), rows, engine, positioned)


def _column_type(dtype: Any) -> ColumnType:
    if dtype.is_boolean():
        return "boolean"
    if dtype.is_integer():
        return "integer"
    if dtype.is_decimal():
        return "decimal"
    if dtype.is_floating():
        return "float"
    return "text" if dtype.is_string() else "other"


def _check_names(names: Iterable[object]) -> None:
    """Refuse names that an engine would confuse: DuckDB, asked for column A beside a, quietly reads a."""
    seen: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"data: every column's name must be text. Got {shown_name(name)}. Rename that column.")
        if name.lower() in seen:
            raise DataError(
                "data: column names must differ, and not only in upper and lower case. "
                f"Got {shown_name(seen[name.lower()])} and {shown_name(name)}. Rename one of them."
            )
        seen[name.lower()] = name
    if not seen:
        raise DataError("data: the table must have at least one column. Got none.")
