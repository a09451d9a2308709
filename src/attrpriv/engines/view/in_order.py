"""A view of a table whose rows have positions: their ranks are a stream that the engine reads beside the rows.

    thresholds   one pass that counts the cells, one that fetches the few ranks near where the threshold must lie
    fingerprint  in the second pass: of each row's cell and values, in order

What must never change: row j of the table meets rank j. The engine pairs them by position; where the rows come to this process,
their positions are compared.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from attrpriv.engines.tables import Source, arrow_batches
from attrpriv.engines.view.cells import CELL, POSITION, Cells, by_cell, compared, known_values, near_share, text, with_cells
from attrpriv.engines.view.lookup import cell_lookup

Window = tuple[int, int]


@dataclass(frozen=True)
class _Pass:
    """What one pass found: rows by cell, those with ranks below their cell's window, cells and ranks of those inside."""

    counts: list[int]
    below: list[int]
    near: NDArray[np.int64]
    """A row for each: its cell, its rank and its position, in this order."""
    sure: NDArray[np.uint8]
    """A bit for each row: whether it is kept, whatever the threshold turns out to be."""
    fingerprint: str

    def inside(self, cells: int) -> NDArray[np.int64]:
        """Where the ranks of each cell begin in `near`, and where the last ones end."""
        return np.searchsorted(self.near[:, 0], np.arange(cells + 1))


def cell_counts(source: Source, cells: Cells) -> dict[int, int]:
    """How many rows each cell has, from the columns alone that decide it."""
    table = with_cells(source, cells, source.table)
    found = source.engine.to_pyarrow(table.group_by(CELL).aggregate(rows=table.count())).to_pylist()
    return {int(row[CELL]): int(row["rows"]) for row in found}


def row_cells(source: Source, cells: Cells) -> NDArray[np.int64]:
    """The cell of each row, in order; -1 where it has none. For public records: of a private table only a draw asks this."""
    table, number, found = _columns(source, cells), _numbers(source, cells), [np.empty(0, np.int64)]
    start = 0
    for batch in arrow_batches(source.engine, table, BLOCK):
        if not np.array_equal(batch.column(0).to_numpy(), np.arange(start, start + len(batch))):
            raise ValueError("rows out of order")
        found.append(np.asarray(number(batch), np.int64))
        start += len(batch)
    return np.concatenate(found)


def drawn_in_order(source: Source, cells: Cells, counts: Sequence[int], key: str) -> tuple[tuple[str, ...], str] | None:
    """The keep-th smallest rank of each cell, and the fingerprint; None where two rows share such a rank (n / 2^63)."""
    whole = [RANKS if keep == count else None for keep, count in zip(cells.keep, counts, strict=True)]
    found = _read(source, cells, key, sum(counts), [_window(*one) for one in zip(cells.keep, counts, strict=True)], whole)
    if not _reached(found, cells, counts):  # once in 10^18: look at all of them
        found = _read(source, cells, key, sum(counts), [(0, RANKS)] * len(counts), whole)
    if found.counts != list(counts):
        raise ValueError("another table")
    inside = found.inside(len(counts))
    chosen = [
        _threshold(found.near[inside[k] : inside[k + 1], 1], keep, count, found.below[k])
        for k, (keep, count) in enumerate(zip(cells.keep, counts, strict=True))
    ]
    if None in chosen:
        return None
    limits = np.array(chosen, np.int64)
    also = found.near[found.near[:, 1] <= limits[found.near[:, 0]], 2]
    thresholds = tuple(map(str, chosen))
    _KEPT[source] = _Kept(key, thresholds, found.counts, _with_bits(found.sure, also))
    return thresholds, found.fingerprint


def fingerprint_in_order(source: Source, cells: Cells, key: str, thresholds: Sequence[str], rows: int) -> str:
    """The fingerprint of the table; which rows the thresholds keep is remembered."""
    found = _read(source, cells, key, rows, [(0, 0)] * len(cells.keep), [int(limit) + 1 for limit in thresholds])
    _KEPT[source] = _Kept(key, tuple(thresholds), found.counts, found.sure)
    return found.fingerprint


@dataclass(frozen=True, eq=False)
class _Kept:
    """Which rows of a table a view keeps: a bit for each, so that the pass that writes them need not tell their cells again."""

    key: str = field(repr=False)
    thresholds: tuple[str, ...] = field(repr=False)
    counts: list[int] = field(repr=False)
    bits: NDArray[np.uint8] = field(repr=False)


_KEPT: WeakKeyDictionary[Source, _Kept] = WeakKeyDictionary()


def _with_bits(bits: NDArray[np.uint8], positions: NDArray[np.int64]) -> NDArray[np.uint8]:
    found = bits.copy()
    np.bitwise_or.at(found, positions >> 3, (128 >> (positions & 7)).astype(np.uint8))
    return found


def shown_in_order(source: Source, cells: Cells, key: str, thresholds: Sequence[str], rows: int) -> Any:
    """The kept rows with their places; with or without their cells."""
    known = _KEPT.get(source)
    same = known is not None and (known.key, known.thresholds) == (key, tuple(thresholds))
    # A table that has changed since must not be read by what was known of it: then a wrong number of rows shows.
    if known is None or not same or cell_counts(source, cells) != {k: n for k, n in enumerate(known.counts) if n}:
        return kept_in_order(source, cells, key, thresholds, rows)
    table = _beside(source, Ranks(key, rows, known.bits))
    return table.filter(table[RANK] > -1)


def kept_in_order(source: Source, cells: Cells, key: str, thresholds: Sequence[str], rows: int) -> Any:
    """The kept rows, with their cells, ranks and places."""
    table = with_cells(source, cells, _beside(source, Ranks(key, rows)))
    return table.filter(table[RANK] <= by_cell(source, table, "limit", [int(threshold) for threshold in thresholds], -1))


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


def _read(source: Source, cells: Cells, key: str, rows: int, windows: Sequence[Window], whole: Sequence[int | None]) -> _Pass:
    """One pass. Ranks below its window, or where one is given below that limit, are surely kept of a cell."""
    ranks, mark = Ranks(key, rows).in_turn(), Fingerprint(key, 1 + len(source.columns))
    low, high = (np.array([window[end] for window in windows], np.uint64) for end in (0, 1))
    counts, below = np.zeros((2, len(windows)), np.int64)
    limit = np.array([w[0] if one is None else one for w, one in zip(windows, whole, strict=True)], np.uint64)
    near, sure = [np.empty((0, 3), np.int64)], _Bits()
    start = len(next(ranks))
    number = _numbers(source, cells)
    for batch in arrow_batches(source.engine, _columns(source, cells), BLOCK):
        stop = start + len(batch)
        position, cell = batch.column(0).to_numpy(), number(batch)
        if not np.array_equal(position, np.arange(start, stop)):
            raise ValueError("rows out of order")
        rank = ranks.send(stop - start).astype(np.uint64)
        inside = (rank >= low[cell]) & (rank < high[cell])
        counts += np.bincount(cell, minlength=len(windows))
        below += np.bincount(cell[rank < low[cell]], minlength=len(windows))
        near.append(np.column_stack([cell[inside], rank[inside].astype(np.int64), start + np.flatnonzero(inside)]))
        sure.add(rank < limit[cell])
        marked = [pa.array(cell), *batch.columns[-len(source.columns) :]]
        mark.add(marked)
        start = stop
    found = np.concatenate(near)
    found = found[np.lexsort((found[:, 1], found[:, 0]))]
    return _Pass(counts.tolist(), below.tolist(), found, sure.packed(), mark.hexdigest())


class _Bits:
    """Yes and no, one bit each, fed batch by batch."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.uint8]] = []
        self._rest = np.empty(0, np.bool_)

    def add(self, flags: NDArray[np.bool_]) -> None:
        whole = np.concatenate([self._rest, flags])
        cut = len(whole) // 8 * 8
        self._parts.append(np.packbits(whole[:cut]))
        self._rest = whole[cut:]

    def packed(self) -> NDArray[np.uint8]:
        return np.concatenate([*self._parts, np.packbits(self._rest)])


def _columns(source: Source, cells: Cells) -> Any:
    """Position, cell (or what its values are compared by) and every column as a whole number, a float or text."""
    assert source.positioned is not None
    table = source.positioned(POSITION)
    if cells.columns:  # not joined with the known values: a join need not keep the order
        told = {f"v {name}": compared(source, table, name, cells) for name in _as_text(source, cells)}
    else:
        table = with_cells(source, cells, table)
        told = {"cell": table[CELL]}
    names = {f"c{k}": _plain(table[name]) for k, name in enumerate(source.columns)}
    return table.select(position=table[POSITION].cast("int64"), **told, **names)


def _numbers(source: Source, cells: Cells) -> Callable[[pa.RecordBatch], NDArray[np.int64]]:
    """What tells the cells of a batch of `_columns`."""
    if not cells.columns:
        return lambda batch: batch.column(1).to_numpy()
    known = known_values(source, cells)
    plain = known.select(CELL, **{name: _plain(known[name]) for name in known.columns if name != CELL})
    values = source.engine.to_pyarrow(plain).sort_by(CELL).drop_columns([CELL]).combine_chunks()
    look_up = cell_lookup([column.chunk(0) for column in values.columns])
    as_text, first = _as_text(source, cells), {name: k for k, name in enumerate(source.columns)}
    places = [
        1 + as_text.index(name) if name in as_text else 1 + len(as_text) + first[name]  # a column that comes anyhow
        for name in cells.columns
    ]
    return lambda batch: look_up([batch.column(place) for place in places])


def _as_text(source: Source, cells: Cells) -> list[str]:
    """The hidden columns whose values are not compared as they are."""
    sort = None if cells.in_order is None else cells.in_order.name
    return [name for name in cells.columns if source.columns[name] in ("float", "decimal") or name == sort]


def _plain(column: Any) -> Any:
    kind = column.type()
    if kind.is_floating():
        return column.cast("float64")
    fits = kind.is_boolean() or (kind.is_integer() and not (kind.is_unsigned_integer() and kind.nbytes == 8))
    return column.cast("int64") if fits else text(column)


# ----------------------------------------------------------------------------------------------------------- thresholds


def _window(keep: int, count: int) -> Window:
    """Where to look for the keep-th smallest rank; nowhere, if none or all are kept."""
    if keep in (0, count):
        return 0, 0
    low, high = (min(max(share, 0.0), 1.0) for share in near_share(keep, count))
    return int(low * RANKS), int(high * RANKS)


def _reached(found: _Pass, cells: Cells, counts: Sequence[int]) -> bool:
    cases = zip(cells.keep, counts, found.below, np.diff(found.inside(len(counts))), strict=True)
    return all(keep in (0, count) or below < keep <= below + there for keep, count, below, there in cases)


def _threshold(near: NDArray[np.int64], keep: int, count: int, below: int) -> int | None:
    """The largest rank kept of a cell, from those in its window; -1 where none is; None where the next one is equal."""
    if keep in (0, count):
        return -1 if keep == 0 else RANKS - 1
    last, *following = near[keep - below - 1 : keep - below + 1].tolist()
    return None if following == [last] else int(last)


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
    kept: NDArray[np.uint8] | None = field(default=None, repr=False)
    """A bit for each position: where it is not set, the stream has -1 for the rank."""

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

    def whole(self) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
        """Ranks, and the two halves of the places, of all positions at once."""
        blocks = [self._block(b) for b in range(-(-self.rows // BLOCK))]
        rank, first, second = (np.concatenate(parts)[: self.rows] for parts in zip(*blocks, strict=True))
        return rank, first, second

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for b in range(-(-self.rows // BLOCK)):
            left = min(BLOCK, self.rows - b * BLOCK)
            rank, first, second = (part[:left] for part in self._block(b))
            if self.kept is not None:
                there = np.unpackbits(self.kept[b * BLOCK // 8 : (b + 1) * BLOCK // 8], count=left).astype(np.bool_)
                rank = np.where(there, rank, -1)
            yield pa.record_batch([pa.array(part) for part in (rank, first, second)], schema=_SCHEMA)

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

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Which entries are there, then what they are: each in a hash of its own, so that batches may end anywhere."""
        for column, hashes in zip(columns, self._parts, strict=True):
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
