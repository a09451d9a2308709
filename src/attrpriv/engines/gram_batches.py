"""The Gram matrix of a DuckDB table: the engine streams the columns in steps, in batches, and BLAS multiplies them, exactly.

A number of steps below 2^44 is split into two halves, k = 2^22 h + l with |h| <= 2^22 and |l| <= 2^21. A product of two halves
is at most 2^44, so 512 rows of them add up to at most 2^53: in floats without any rounding, in whatever order BLAS adds. Blocks
of 512 rows are multiplied that way; their products are then added as whole numbers,

    sum of k_i k_j  =  2^44 sum h_i h_j  +  2^22 (sum h_i l_j + sum l_i h_j)  +  sum l_i l_j

A last row of ones makes the sums and the number of rows products as well. As aggregates in SQL the products of two columns take
twice as long, and those of ten at least seven times (bench/gram.py).

What must never change: the number of rows of a block times the largest product is at most 2^53. One query; a batch is dropped
before the next one comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from attrpriv.engines.tables import Source, careful

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK = 512
MOST_STEPS = 2**44
_HALF = 22
# Blocks of a batch: as many as fit into a processor's cache, and few enough that Python does not notice.
_LEAST_BLOCKS, _MOST_BLOCKS, _CACHED_BLOCKS = 16, 128, 512
# Entries of the products of blocks that are made at a time: 16 MiB.
_ENTRIES = 2**21


def gram_of_batches(source: Source, scaled: list[Any]) -> tuple[int, list[int], list[list[int]]] | None:
    """Rows, sums and sums of products of these columns, rounded; None where a value is missing or not below MOST_STEPS."""
    width = len(scaled)
    blocks = max(_LEAST_BLOCKS, min(_MOST_BLOCKS, _CACHED_BLOCKS // max(width, 1)))
    halves, total = _Halves(width, blocks), _Products(2 * width + 1)
    for columns in _batches(source, scaled, blocks * BLOCK):
        if columns is None or not halves.fill(columns):
            return None
        total.add(halves.blocks)
    found = total.whole()
    order = range(width)
    sums = [(found[i][-1] << _HALF) + found[width + i][-1] for i in order]
    products = [
        [
            (found[i][j] << 2 * _HALF) + ((found[i][width + j] + found[width + i][j]) << _HALF) + found[width + i][width + j]
            for j in order
        ]
        for i in order
    ]
    return found[-1][-1], sums, products


def _batches(source: Source, scaled: list[Any], rows: int) -> Iterator[list[NDArray[np.float64]] | None]:
    """The columns of each batch; None where an entry is NULL."""
    chosen = source.table.select(**{f"k{i}": one for i, one in enumerate(scaled)})
    with careful(source.engine):
        # Ibis 12's own batches call a method that DuckDB 2 has not; a result of `execute` would be held as a whole.
        for batch in source.engine._to_duckdb_relation(chosen).to_arrow_reader(rows):
            if any(column.null_count for column in batch.columns):
                yield None
                return
            columns = [column.to_numpy(zero_copy_only=True) for column in batch.columns]
            for start in range(0, batch.num_rows, rows):  # no promise of DuckDB's says that a batch is not larger
                yield [column[start : start + rows] for column in columns]


class _Halves:
    """The halves of a batch: high ones, low ones, ones; a row for each column, and room for some blocks of rows."""

    def __init__(self, width: int, blocks: int) -> None:
        import numpy as np

        self._width, self._block = width, BLOCK
        self._room = np.zeros((2 * width + 1, blocks * BLOCK))
        self._used = 0

    def fill(self, columns: list[NDArray[np.float64]]) -> bool:
        """Split a batch; False where a value is NaN or too large."""
        import numpy as np

        rows = len(columns[0])
        self._used = -(-rows // self._block)
        self._room[:, rows : self._used * self._block] = 0  # the rest of the last block
        self._room[-1, :rows] = 1
        for i, column in enumerate(columns):
            high, low = self._room[i, :rows], self._room[self._width + i, :rows]
            np.rint(column, out=low)
            if not (low.max() < MOST_STEPS and low.min() > -MOST_STEPS):  # NaN is neither
                return False
            np.rint(np.multiply(low, 2.0**-_HALF, out=high), out=high)
            low -= high * 2.0**_HALF
        return True

    @property
    def blocks(self) -> NDArray[np.float64]:
        """A stack of matrices, one for each block."""
        shape = (len(self._room), self._used, self._block)
        return self._room[:, : self._used * self._block].reshape(shape).transpose(1, 0, 2)


class _Products:
    """A matrix of sums of whole numbers, in two parts: the floats of a few blocks at a time are added in 64 bits."""

    def __init__(self, width: int) -> None:
        import numpy as np

        self._low = np.zeros((width, width), dtype=np.int64)
        self._high = np.zeros_like(self._low)
        self._most = max(1, min(_MOST_BLOCKS, _ENTRIES // width**2))

    def add(self, blocks: NDArray[np.float64]) -> None:
        import numpy as np

        for start in range(0, len(blocks), self._most):
            some = blocks[start : start + self._most]
            # Of at most 128 blocks, each at most 2^53.
            found = (some @ some.transpose(0, 2, 1)).astype(np.int64).sum(axis=0)
            self._low += found & 0xFFFFFFFF
            self._high += found >> 32

    def whole(self) -> list[list[int]]:
        pairs = zip(self._high.tolist(), self._low.tolist(), strict=True)
        return [[(high << 32) + low for high, low in zip(*pair, strict=True)] for pair in pairs]
