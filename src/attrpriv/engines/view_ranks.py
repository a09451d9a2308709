"""Ranks of row positions, and a fingerprint of rows in order: what a view of a table with row positions is drawn by.

    SHAKE-256(key || b)  =  the ranks of the 65,536 positions of block b, then the first and the second half of their places

A rank has 63 bits, a place 128: as if drawn uniformly and independently, for whoever does not know the key. `Ranks` is a
stream that an engine reads beside the rows, as often as it likes, in little memory.

What must never change: the ranks, which the ledger of a view drawn before counts on; no content of a row enters them. The
fingerprint depends on values and their order, not on how an engine cuts them into batches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
