"""A table that can be scanned: files (`files`), a database's or cluster's table (`remote`), a frame, or any Ibis table.

What must never change:

* Opening reads the schema, never a statistic. Frames in memory: their types (pandas columns of plain objects are converted
  to find one).
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
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from attrpriv.engines.progress import waited
from attrpriv.errors import DataError
from attrpriv.problem.places import is_remote

ColumnType = Literal["integer", "boolean", "decimal", "float", "text", "date", "other"]
# Columns that cannot be added up, and what they are called.
NOT_NUMBERS: Mapping[str, str] = MappingProxyType({"text": "text", "date": "a date", "other": "neither a number nor a boolean"})
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


@dataclass(frozen=True, eq=False)
class Source:
    """A table that is known and not yet read.

    The table and its engine stay out of the `repr`: Ibis shows the rows of a table in memory there.
    """

    connect: Callable[[], tuple[Any, Any]] = field(repr=False)
    """The table and its engine, called when one of them is first asked for: a plan needs the public facts alone."""
    name: str
    """A public name: the file's without its directory, an Ibis table's own, or "memory"."""
    columns: Mapping[str, ColumnType]
    """The type of each column, in the table's order."""
    rows: int | None
    """n, where it is known without reading a row; otherwise None."""
    positioned: Callable[[str], Any] | None = field(default=None, repr=False)
    """The table with each row's position, from 0, in a column of the given name; None where rows have no order."""

    @property
    def table(self) -> Any:
        """An Ibis table expression."""
        return self._connected[0]

    @property
    def engine(self) -> Any:
        """The Ibis backend on which the table runs."""
        return self._connected[1]

    @cached_property
    def _connected(self) -> tuple[Any, Any]:
        return self.connect()

    def run(self, aggregate: Any) -> dict[str, Any]:
        """The single row of an aggregate of this table. Whatever the engine raises comes through: call it `quietly`."""
        (row,) = self.run_many(aggregate)
        return row

    def run_many(self, aggregate: Any) -> list[dict[str, Any]]:
        """The few rows of an aggregate by groups."""
        with careful(self.engine):
            found = waited(self.engine, lambda: _as_arrow(self.engine, aggregate), self.rows).to_pylist()
        return [dict(row) for row in found]


def _as_arrow(engine: Any, expression: Any) -> Any:
    """What the engine makes of a table expression. On DuckDB without pandas, which Ibis loads on the way and does not use."""
    if engine.name != "duckdb":
        return engine.to_pyarrow(expression)
    from ibis.formats.pyarrow import PyArrowData

    return PyArrowData.convert_table(engine._to_duckdb_relation(expression).to_arrow_table(), expression.schema())


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


def arrow_batches(engine: Any, expression: Any, rows: int) -> Any:
    """What DuckDB makes of an expression, in batches of about so many rows, without holding it as a whole.

    Ibis 12's own batches call a method that DuckDB 2 has not; a result of `execute` would be held as a whole.
    """
    return engine._to_duckdb_relation(expression).to_arrow_reader(rows)


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
    """Open `data` without reading a row.

    A path or a pattern of paths, the URL of a PostgreSQL table, `spark:` and the name of a table, a pandas, Polars or Arrow
    table, or an Ibis table.
    """
    from attrpriv.engines.files import open_path
    from attrpriv.engines.remote import open_remote

    if isinstance(data, str) and is_remote(data):
        return open_remote(data)
    if isinstance(data, (str, os.PathLike)):
        return open_path(Path(data), str(data))
    for base in type(data).__mro__:
        opener = _OPENERS.get((base.__module__.partition(".")[0], base.__name__))
        if opener is not None:
            return opener(data)
    raise DataError(
        "data: it must be the path of a Parquet or CSV file, a pandas, Polars or Arrow table, or an Ibis table. "
        f"Got a {type(data).__name__}."
    )


# --------------------------------------------------------------------------------------------------------------- frames


def _open_pandas(data: Any) -> Source:
    check_names(list(data.columns))
    return _open_converted(data, _pandas_to_arrow)


def _open_polars(data: Any) -> Source:
    check_names(data.columns)
    return _open_converted(data, lambda frame: frame.to_arrow())


def _open_arrow(data: Any) -> Source:
    check_names(data.column_names)
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
    return source_of(table, new_duckdb(), "memory", len(data), lambda name: numbered(table, name))


def _open_lazy(data: Any) -> Source:
    """A LazyFrame stays lazy and runs on Polars: to give it to DuckDB, Ibis would collect it, and read every row."""
    import ibis

    engine = ibis.polars.connect({"data": data})
    table = quietly(lambda: engine.table("data"))
    if table is None:
        raise DataError(UNREADABLE_FRAME.format(shown="LazyFrame"))
    return source_of(table, engine, "memory", None)


def _open_ibis(data: Any) -> Source:
    engine = quietly(data.get_backend)
    if engine is None:
        raise DataError(UNREADABLE_IBIS)
    own = quietly(data.get_name) if type(data.op()).__name__ == "DatabaseTable" else None
    # Ibis makes up names such as ibis_read_csv_4f..., which differ each time.
    name = "memory" if own is None or own.startswith("ibis_") else own
    return source_of(data, engine, name, None)


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


def new_duckdb() -> Any:
    """A DuckDB of its own, in memory, that fetches nothing, writes no file and draws nothing on the terminal."""
    import ibis

    engine = ibis.duckdb.connect(autoinstall_known_extensions=False, temp_directory="")
    _draw_no_bar(engine)
    # It reads files on a disk. Fetching them ahead, into new memory each time, takes a fifth of a pass (bench/scale.py).
    engine.raw_sql("SET disable_parquet_prefetching = true")
    engine.raw_sql(f"SET disabled_optimizers = '{UNSOUND_OPTIMIZERS}'")
    engine.attrpriv_is_careful = True
    return engine


def _draw_no_bar(engine: Any) -> None:
    """In a notebook without ipywidgets DuckDB can draw no bar, and refuses to be told so."""
    import duckdb

    with contextlib.suppress(duckdb.InvalidInputException):
        engine.raw_sql("SET enable_progress_bar = false")


def as_number(source: Source, column: str, table: Any = None) -> Any:
    """A boolean as 0 or 1 (by way of 32 bits, because PostgreSQL knows no other), a float in 64 bits, all else as it is."""
    value = (source.table if table is None else table)[column]
    kind = source.columns[column]
    return value.cast("int32").cast("int64") if kind == "boolean" else value.cast("float64") if kind == "float" else value


def is_missing(source: Source, column: str) -> Any:
    """Whether an entry is NULL, or NaN in a column of floats."""
    missing = source.table[column].isnull()
    if source.columns[column] == "float" and has_nan(source.engine):
        missing = missing | source.table[column].cast("float64").isnan()
    return missing


def numbered(table: Any, name: str) -> Any:
    """Rows numbered as they come: DuckDB keeps the order of a file or a frame."""
    import ibis

    return table.mutate(**{name: ibis.row_number()})


def source_of(table: Any, engine: Any, name: str, rows: int | None, positioned: Callable[[str], Any] | None = None) -> Source:
    columns = {str(column): _column_type(dtype) for column, dtype in table.schema().items()}
    check_names(columns)
    if engine.name == "postgres":
        table = _without_decimal_nan(table)
    return Source(lambda: (table, engine), name, MappingProxyType(columns), rows, positioned)


def _without_decimal_nan(table: Any) -> Any:
    """PostgreSQL's decimals have a NaN, above all numbers and equal to itself: missing here, like that of floats."""
    import ibis

    decimals = {name: dtype for name, dtype in table.schema().items() if dtype.is_decimal()}
    if not decimals:
        return table
    return table.mutate(**{name: table[name].nullif(ibis.literal("NaN").cast(dtype)) for name, dtype in decimals.items()})


def _column_type(dtype: Any) -> ColumnType:
    if dtype.is_boolean():
        return "boolean"
    if dtype.is_integer():
        return "integer"
    if dtype.is_decimal():
        return "decimal"
    if dtype.is_floating():
        return "float"
    if dtype.is_date():
        return "date"
    return "text" if dtype.is_string() else "other"


def check_names(names: Iterable[object]) -> None:
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
