"""A view of a table whose rows have positions: their ranks are a stream that the engine reads beside the rows.

    thresholds   one pass that counts the cells, one that fetches the few ranks near where the threshold must lie
    fingerprint  in the second pass: of each row's cell and values, in order

What must never change: row j of the table meets rank j. The engine pairs them by position; where the rows come to this process,
their positions are compared.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from attrpriv.engines.tables import Source, arrow_batches
from attrpriv.engines.view_cells import CELL, POSITION, Cells, bind, by_cell, near_share, text, with_cells

Window = tuple[int, int]


@dataclass(frozen=True)
class _Pass:
    """What one pass found: rows by cell, those with ranks below their cell's window, cells and ranks of those inside."""

    counts: list[int]
    below: list[int]
    near: list[tuple[int, int]]
    fingerprint: str


def cell_counts(source: Source, cells: Cells) -> dict[int, int]:
    """How many rows each cell has, from the columns alone that decide it."""
    table = with_cells(source, cells, source.table)
    found = source.engine.to_pyarrow(table.group_by(CELL).aggregate(rows=table.count())).to_pylist()
    return {int(row[CELL]): int(row["rows"]) for row in found}


def drawn_in_order(source: Source, cells: Cells, counts: Sequence[int], key: str) -> tuple[tuple[str, ...], str] | None:
    """The keep-th smallest rank of each cell, and the fingerprint; None where two rows share such a rank (n / 2^63)."""
    from attrpriv.engines.view_in_order import RANKS

    found = _read(source, cells, key, sum(counts), [_window(*one) for one in zip(cells.keep, counts, strict=True)])
    if not _reached(found, cells, counts):  # once in 10^18: look at all of them
        found = _read(source, cells, key, sum(counts), [(0, RANKS)] * len(counts))
    chosen = [_threshold(found, k, keep, count) for k, (keep, count) in enumerate(zip(cells.keep, counts, strict=True))]
    return None if None in chosen else (tuple(map(str, chosen)), found.fingerprint)


def fingerprint_in_order(source: Source, cells: Cells, key: str, rows: int) -> str:
    return _read(source, cells, key, rows, [(0, 0)] * len(cells.keep)).fingerprint


def kept_in_order(source: Source, cells: Cells, key: str, thresholds: Sequence[str], rows: int) -> Any:
    """The kept rows, with their cells, ranks and places."""
    from attrpriv.engines.view_in_order import RANK, Ranks

    table = with_cells(source, cells, _beside(source, Ranks(key, rows)))
    limits = [bind(source, "limit", threshold).cast("int64") for threshold in thresholds]
    return table.filter(table[RANK] <= by_cell(table, limits, -1))


def _beside(source: Source, ranks: object) -> Any:
    """The source's table with a stream beside it, row by row, as a view in an engine of our own."""
    connection, suffix = source.engine.con, secrets.token_hex(8)
    connection.register(f"attrpriv_ranks_{suffix}", ranks)
    rows = _name_of(source, f"attrpriv_rows_{suffix}")
    connection.execute(
        f'CREATE TEMP VIEW attrpriv_ranked_{suffix} AS SELECT * FROM "{rows}" POSITIONAL JOIN attrpriv_ranks_{suffix}'
    )
    return source.engine.table(f"attrpriv_ranked_{suffix}")


def _name_of(source: Source, name: str) -> str:
    """The table's name in its engine; a table in memory is given this one."""
    held = source.table.op()
    if not hasattr(held, "data"):
        return str(source.table.get_name())
    source.engine.con.register(name, held.data.to_pyarrow(held.schema))
    return name


# ------------------------------------------------------------------------------------------------------------- one pass


def _read(source: Source, cells: Cells, key: str, rows: int, windows: Sequence[Window]) -> _Pass:
    import numpy as np

    from attrpriv.engines.view_in_order import BLOCK, Fingerprint, Ranks

    ranks, mark = Ranks(key, rows).in_turn(), Fingerprint(key, 1 + len(source.columns))
    low, high = (np.array([window[end] for window in windows], np.uint64) for end in (0, 1))
    counts, below = np.zeros((2, len(windows)), np.int64)
    near: list[tuple[int, int]] = []
    start = len(next(ranks))
    for batch in arrow_batches(source.engine, _columns(source, cells), BLOCK):
        stop = start + len(batch)
        position, cell = (batch.column(k).to_numpy() for k in (0, 1))
        if not np.array_equal(position, np.arange(start, stop)):
            raise ValueError("rows out of order")
        rank = ranks.send(stop - start).astype(np.uint64)
        inside = (rank >= low[cell]) & (rank < high[cell])
        counts += np.bincount(cell, minlength=len(windows))
        below += np.bincount(cell[rank < low[cell]], minlength=len(windows))
        near += zip(cell[inside].tolist(), rank[inside].tolist(), strict=True)
        mark.add(batch.select(range(1, batch.num_columns)))
        start = stop
    return _Pass(counts.tolist(), below.tolist(), near, mark.hexdigest())


def _columns(source: Source, cells: Cells) -> Any:
    """Position, cell and every column as a whole number, a float or text, whatever form the table has."""
    assert source.positioned is not None
    table = with_cells(source, cells, source.positioned(POSITION))
    names = {f"c{k}": _plain(table[name]) for k, name in enumerate(source.columns)}
    return table.select(position=table[POSITION].cast("int64"), cell=table[CELL], **names)


def _plain(column: Any) -> Any:
    kind = column.type()
    if kind.is_floating():
        return column.cast("float64")
    fits = kind.is_boolean() or (kind.is_integer() and not (kind.is_unsigned_integer() and kind.nbytes == 8))
    return column.cast("int64") if fits else text(column)


# ----------------------------------------------------------------------------------------------------------- thresholds


def _window(keep: int, count: int) -> Window:
    """Where to look for the keep-th smallest rank; nowhere, if none or all are kept."""
    from attrpriv.engines.view_in_order import RANKS

    if keep in (0, count):
        return 0, 0
    low, high = (min(max(share, 0.0), 1.0) for share in near_share(keep, count))
    return int(low * RANKS), int(high * RANKS)


def _reached(found: _Pass, cells: Cells, counts: Sequence[int]) -> bool:
    inside = [0] * len(counts)
    for k, _ in found.near:
        inside[k] += 1
    cases = zip(cells.keep, counts, found.below, inside, strict=True)
    return all(keep in (0, count) or below < keep <= below + there for keep, count, below, there in cases)


def _threshold(found: _Pass, k: int, keep: int, count: int) -> int | None:
    """The largest rank kept of a cell; -1 where none is; None where the next one is equal."""
    from attrpriv.engines.view_in_order import RANKS

    if found.counts[k] != count:
        raise ValueError("another table")
    if keep in (0, count):
        return -1 if keep == 0 else RANKS - 1
    near = sorted(rank for cell, rank in found.near if cell == k)[keep - found.below[k] - 1 :]
    return near[0] if near[1:2] != near[:1] else None


# ----------------------------------------------------------------------------------------------------------------------------
# Ranks of row positions, and a fingerprint of rows in order: what a view of a table with row positions is drawn by.
#
#     SHAKE-256(key || b)  =  the ranks of the 65,536 positions of block b, then the first and the second half of their places
#
# A rank has 63 bits, a place 128: as if drawn uniformly and independently, for whoever does not know the key. `Ranks` is a
# stream that an engine reads beside the rows, as often as it likes, in little memory.
#
# What must never change: the ranks, which the ledger of a view drawn before counts on; no content of a row enters them. The
# fingerprint depends on values and their order, not on how an engine cuts them into batches.


BLOCK = 1 << 16
# Above every rank, which has 63 bits so that a signed number holds it and -1 is below all.
RANKS = 1 << 63
RANK, FIRST, SECOND = "attrpriv rank", "attrpriv first", "attrpriv second"

_SCHEMA = pa.schema([(RANK, pa.int64()), (FIRST, pa.uint64()), (SECOND, pa.uint64())])
_BYTES = 8


@dataclass(frozen=True)
class Ranks:
    """The ranks and places of the positions 0 to rows - 1 under a key of hexadecimal digits."""

    key: str = field(repr=False)
    rows: int

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What Arrow calls the stream interface; each call begins a new stream."""
        return pa.RecordBatchReader.from_batches(_SCHEMA, self._batches()).__arrow_c_stream__(requested_schema)

    def in_turn(self) -> Generator[NDArray[np.int64], int, None]:
        """Ranks from the first position on: after `next`, `send` a number to get as many."""
        left, b = np.empty(0, np.int64), 0
        given = left
        while True:
            many = yield given
            while len(left) < many:
                left, b = np.concatenate([left, self._block(b)[0]]), b + 1
            given, left = left[:many], left[many:]

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for b in range(-(-self.rows // BLOCK)):
            left = min(BLOCK, self.rows - b * BLOCK)
            yield pa.record_batch([pa.array(part[:left]) for part in self._block(b)], schema=_SCHEMA)

    def _block(self, b: int) -> tuple[Any, Any, Any]:
        digits = hashlib.shake_256(bytes.fromhex(self.key) + b.to_bytes(_BYTES, "little")).digest(3 * _BYTES * BLOCK)
        rank, first, second = np.frombuffer(digits, "<u8").astype(np.uint64, copy=False).reshape(3, BLOCK)
        return (rank >> np.uint64(1)).astype(np.int64), first, second


class Fingerprint:
    """A keyed fingerprint of some columns of whole numbers, floats and texts, fed batch by batch."""

    def __init__(self, key: str, columns: int) -> None:
        secret = bytes.fromhex(key)[: hashlib.blake2b.MAX_KEY_SIZE]
        self._key = secret
        self._parts = [[hashlib.blake2b(key=secret) for _ in range(3)] for _ in range(columns)]

    def add(self, batch: pa.RecordBatch) -> None:
        """Which entries are there, then what they are: each in a hash of its own, so that batches may end anywhere."""
        for column, hashes in zip(batch.columns, self._parts, strict=True):
            for one, part in zip(hashes, _parts(column), strict=True):
                one.update(part)

    def hexdigest(self) -> str:
        whole = hashlib.blake2b(key=self._key, digest_size=32)
        for hashes in self._parts:
            for one in hashes:
                whole.update(one.digest())
        return whole.hexdigest()


def _parts(column: Any) -> tuple[Any, Any, Any]:
    """A column as bytes: which entries are there, the numbers or the texts one after the other, the lengths of the texts."""
    there = pc.is_valid(column).cast(pa.int8()).to_numpy(zero_copy_only=False)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        values = column.fill_null(0).to_numpy(zero_copy_only=False)
        if values.dtype.kind == "f":
            values = np.where(np.isnan(values), np.nan, values)  # one NaN of many
        return there, np.ascontiguousarray(values), b""
    filled = column.cast(pa.string()).fill_null("")
    ends = np.frombuffer(filled.buffers()[1], np.int32)[filled.offset : filled.offset + len(filled) + 1]
    data = filled.buffers()[2]
    texts = b"" if data is None or not len(filled) else memoryview(data)[int(ends[0]) : int(ends[-1])]
    return there, texts, np.diff(ends)
