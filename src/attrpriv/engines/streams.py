"""The rows of a table that another engine reads, as a stream of Arrow batches in little memory.

PostgreSQL: a COPY of the columns asked for, in one statement and so of one state of the table. Polars: a LazyFrame, batch by
batch. Spark: partition by partition, in the form that Arrow writes. Any other engine that Ibis knows: as Ibis gives it.

What must never change: the engine is asked for columns, and nothing else. A value comes as it is, or, if Arrow has no such
type, as its text; what is missing stays so. A stream begins when its first batch is asked for, each time anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from attrpriv.engines.tables import Source, new_duckdb, source_of

BATCH = 1 << 16
# A text of one row must fit into it.
_BLOCK = 1 << 24
_DECIMAL_DIGITS = 38


def streamed(source: Source, columns: Sequence[str]) -> Source:
    """Some columns of the table as one of a DuckDB of our own, which asks for the rows whenever it reads them."""
    engine = new_duckdb()
    engine.con.register("attrpriv_stream", _Stream(source, tuple(columns)))
    return source_of(engine.table("attrpriv_stream"), engine, source.name, None)


@dataclass(frozen=True)
class _Stream:
    source: Source
    columns: tuple[str, ...]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What Arrow calls the stream interface."""
        table = self.source.table
        asked = table.select(**{name: _sent(table[name]) for name in self.columns})
        schema = asked.schema().to_pyarrow()
        # A generator: nothing is asked of the engine for the schema alone.
        batches = (batch for batch in _batches(self.source.engine, asked, schema) if len(batch))
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)


def _sent(column: Any) -> Any:
    kind = column.type()
    if kind.is_decimal():
        known = kind.precision is not None and kind.scale is not None and kind.precision <= _DECIMAL_DIGITS
        return column if known else column.cast("float64")
    plain = kind.is_string() or kind.is_numeric() or kind.is_boolean() or kind.is_date() or kind.is_timestamp()
    return column if plain else column.cast("string")


def _batches(engine: Any, asked: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = _READERS.get(engine.name, _from_ibis)(engine, asked, schema)
    for table in rows:
        yield from table.cast(schema).to_batches(max_chunksize=BATCH)


def _from_ibis(engine: Any, asked: Any, schema: pa.Schema) -> Iterator[pa.Table]:
    for batch in engine.to_pyarrow_batches(asked, chunk_size=BATCH):
        yield pa.Table.from_batches([batch])


def _from_polars(engine: Any, asked: Any, schema: pa.Schema) -> Iterator[pa.Table]:
    for frame in engine.compile(asked).collect_batches(chunk_size=BATCH, maintain_order=False):
        yield frame.to_arrow()


# ----------------------------------------------------------------------------------------------------------- PostgreSQL

# How values are written must not depend on the session's settings.
_WRITTEN = ("datestyle = 'ISO, YMD'", "timezone = 'UTC'", "extra_float_digits = 1", "intervalstyle = 'iso_8601'")


def _from_postgres(engine: Any, asked: Any, schema: pa.Schema) -> Iterator[pa.Table]:
    import pyarrow.csv

    # What is missing is empty, and a text is quoted, also an empty one.
    command = f"COPY ({engine.compile(asked)}) TO STDOUT (FORMAT csv, FORCE_QUOTE *, ENCODING 'UTF8')"
    with engine.con.transaction(), engine.con.cursor() as cursor:
        for setting in _WRITTEN:
            cursor.execute(f"SET LOCAL {setting}")
        with cursor.copy(command) as copy:
            reader = pyarrow.csv.open_csv(
                pa.PythonFile(_Bytes(iter(copy)), mode="r"),
                read_options=pyarrow.csv.ReadOptions(column_names=schema.names, block_size=_BLOCK, use_threads=False),
                parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=schema,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    true_values=["t"],
                    false_values=["f"],
                ),
            )
            for batch in reader:
                yield pa.Table.from_batches([batch])


class _Bytes:
    """What Arrow reads as a file: pieces one after the other."""

    closed = False

    def __init__(self, pieces: Iterator[Any]) -> None:
        self._pieces, self._left = pieces, b""

    def read(self, size: int) -> bytes:
        held, found = [self._left], len(self._left)
        for piece in self._pieces:
            held.append(bytes(piece))
            found += len(held[-1])
            if found >= size:
                break
        whole = b"".join(held)
        self._left = whole[size:]
        return whole[:size]

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


# ---------------------------------------------------------------------------------------------------------------- Spark


def _from_spark(engine: Any, asked: Any, schema: pa.Schema) -> Iterator[pa.Table]:
    frame = engine._session.sql(engine.compile(asked))
    for row in frame.mapInArrow(_written_batches(), "batch binary").toLocalIterator():
        yield pa.ipc.open_stream(row[0]).read_all()


def _written_batches() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a worker does with its rows. Inside a function, so that it is sent as it is: a worker has not this package."""

    def written(batches: Any) -> Any:
        import pyarrow

        for batch in batches:
            sink = pyarrow.BufferOutputStream()
            with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pyarrow.record_batch([pyarrow.array([sink.getvalue().to_pybytes()], pyarrow.binary())], names=["batch"])

    return written


_READERS: dict[str, Callable[[Any, Any, pa.Schema], Iterator[pa.Table]]] = {
    "polars": _from_polars,
    "postgres": _from_postgres,
    "pyspark": _from_spark,
}
