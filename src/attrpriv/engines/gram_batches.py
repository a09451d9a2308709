"""The Gram matrix of a DuckDB table: the engine streams the columns in steps, in batches, and BLAS multiplies them, exactly.

A number of steps below 2^44 is split into two parts, k = 2^22 h + l with |h| <= 2^22 and |l| <= 2^21, and with s = h + l

    sum of k_i k_j  =  2^44 H  +  2^22 (S - H - L)  +  L,        H = sum of h_i h_j,  S = sum of s_i s_j,  L = sum of l_i l_j

Each of the three is symmetric, which halves the work. BLAS adds in floats, a block of rows at a time, and without any rounding
as long as no partial sum exceeds 2^53. Whether one did is seen on the diagonal. It is a sum of squares, so that whatever order
they are added in, it cannot pass 2^53 and come out below; and where it is below, so are all partial sums of all products, by
Cauchy and Schwarz. A block of 128 rows is below in any case, as (1.5 * 2^22)^2 * 128 < 2^53, a block of 4096 nearly always. One
that is not is done again in blocks of 128. Blocks are then added as whole numbers.

While BLAS multiplies a batch, the engine reads the next one, and it is split.

What must never change: no block counts whose diagonal reaches 2^53. One query; two batches are held at a time, no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from attrpriv.engines.tables import Source, arrow_batches, careful

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_STEPS = 2**44
BLOCK, SURE = 4096, 128
"""Rows of a block, and of one in which no sum can exceed what floats hold exactly."""
_HALF = 22
_WHOLE = 2.0**53
# Values of a batch: as many as a processor's cache holds, and enough that Python does not notice.
_VALUES = 2**18
_LEAST_BLOCKS, _MOST_BLOCKS = 4, 32
# Entries of the products of blocks that are made at a time: 16 MiB.
_ENTRIES = 2**21


def gram_of_batches(source: Source, scaled: list[Any]) -> tuple[int, list[int], list[list[int]]] | None:
    """Rows, sums and sums of products of these columns, rounded; None where a value is missing or not below MOST_STEPS."""
    width = len(scaled)
    blocks = max(_LEAST_BLOCKS, min(_MOST_BLOCKS, _VALUES // (width * BLOCK)))
    total = _Sums(width)
    parts = [_Parts(width, blocks * BLOCK), _Parts(width, blocks * BLOCK)]
    added: list[Future[None]] = []
    with ThreadPoolExecutor(1, "attrpriv products") as pool:
        for k, columns in enumerate(_batches(source, scaled, blocks * BLOCK)):
            if k > 1:
                added.pop(0).result()  # what is to be overwritten
            if columns is None or not parts[k % 2].fill(columns):
                return None
            added.append(pool.submit(total.add, parts[k % 2]))
        for one in added:
            one.result()
    return total.whole()


def _batches(source: Source, scaled: list[Any], rows: int) -> Iterator[list[NDArray[np.float64]] | None]:
    """The columns of each batch; None where an entry is NULL."""
    chosen = source.table.select(**{f"k{i}": one for i, one in enumerate(scaled)})
    with careful(source.engine):
        for batch in arrow_batches(source.engine, chosen, rows):
            if any(column.null_count for column in batch.columns):
                yield None
                return
            columns = [column.to_numpy(zero_copy_only=True) for column in batch.columns]
            for start in range(0, batch.num_rows, rows):  # no promise of DuckDB's says that a batch is not larger
                yield [column[start : start + rows] for column in columns]


class _Parts:
    """h, l and s of a batch: three matrices, with a row for each column."""

    def __init__(self, width: int, most: int) -> None:
        import numpy as np

        self._room = np.zeros((3, width, most))
        self.rows = 0

    def fill(self, columns: list[NDArray[np.float64]]) -> bool:
        """Split a batch; False where a value is NaN or too large."""
        import numpy as np

        self.rows = rows = len(columns[0])
        self._room[:, :, rows : -(-rows // BLOCK) * BLOCK] = 0  # the rest of the last block
        for column, high, low, both in zip(columns, *self._room[:, :, :rows], strict=True):
            np.rint(column, out=low)
            if not (low.max() < MOST_STEPS and low.min() > -MOST_STEPS):  # NaN is neither
                return False
            np.rint(np.multiply(low, 2.0**-_HALF, out=high), out=high)
            np.subtract(low, np.multiply(high, 2.0**_HALF, out=both), out=low)
            np.add(high, low, out=both)
        return True

    def sums(self) -> NDArray[np.int64]:
        """Of h and of l, column by column: at most 2^22 times the rows of a batch."""
        import numpy as np

        return np.asarray(self._room[:2, :, : self.rows].sum(axis=2), dtype=np.int64)

    def blocks(self, part: int, block: int) -> NDArray[np.float64]:
        """A stack of matrices, one for each block of rows."""
        room = self._room[part, :, : -(-self.rows // block) * block]
        return room.reshape(len(room), -1, block).transpose(1, 0, 2)


class _Sums:
    """Rows, sums of h and l, and H, L and S: whole numbers of any size, the last in two parts of 64 bits."""

    def __init__(self, width: int) -> None:
        import numpy as np

        self._rows = 0
        self._sums = np.zeros((2, width), dtype=np.int64)
        self._low = np.zeros((3, width, width), dtype=np.int64)
        self._high = np.zeros_like(self._low)

    def add(self, parts: _Parts) -> None:
        self._rows += parts.rows
        self._sums += parts.sums()
        for part in range(3):
            found = _products(parts.blocks(part, BLOCK))
            if found is None:
                found = _products(parts.blocks(part, SURE))
            if found is None:
                raise ArithmeticError("gram: a block that cannot round has rounded.")
            self._low[part] += found & 0xFFFFFFFF
            self._high[part] += found >> 32

    def whole(self) -> tuple[int, list[int], list[list[int]]]:
        high, low, both = ((high.astype(object) << 32) + low for high, low in zip(self._high, self._low, strict=True))
        products = (high << 2 * _HALF) + ((both - high - low) << _HALF) + low
        sums = (self._sums[0].astype(object) << _HALF) + self._sums[1]
        return self._rows, sums.tolist(), products.tolist()


def _products(blocks: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """The sum over a batch's blocks of each times its transpose, below 2^63; None where one may have been rounded."""
    import numpy as np

    count, width, _ = blocks.shape
    found, most = np.zeros((width, width), dtype=np.int64), max(1, _ENTRIES // width**2)
    for start in range(0, count, most):
        some = blocks[start : start + most]
        made = some @ some.transpose(0, 2, 1)
        if not made.diagonal(axis1=1, axis2=2).max() < _WHOLE:
            return None
        found += made.astype(np.int64).sum(axis=0)
    return found
