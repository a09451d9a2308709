"""The Gram matrix of many columns: the engine streams whole numbers of steps in batches, and BLAS multiplies them, exactly.

A number of steps below 2^44 is split into two halves, k = 2^22 h + l with |h| <= 2^22 and |l| <= 2^21. A product of two halves
is at most 2^44, so 512 rows of them add up to at most 2^53: in floats without any rounding, in whatever order BLAS adds. Blocks
of 512 rows are multiplied that way; their products are then added as whole numbers,

    sum of k_i k_j  =  2^44 sum h_i h_j  +  2^22 (sum h_i l_j + sum l_i h_j)  +  sum l_i l_j

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
_HALF = 22
# Blocks of products, each below 2^53, that may be added in 64 bits.
_BLOCKS = 1000
_BATCH = 16_384


def gram_of_batches(source: Source, steps: list[Any]) -> tuple[int, list[int], list[list[int]]] | None:
    """Rows, sums and sums of products of these columns of whole numbers; None where one of them is NULL."""
    import numpy as np

    width = len(steps)
    rows, sums, total = 0, [0] * width, _Products(2 * width)
    for columns in _batches(source, steps):
        if columns is None:
            return None
        rows += columns.shape[1]
        sums = [known + int(added) for known, added in zip(sums, columns.sum(axis=1), strict=True)]
        high = (columns + (1 << _HALF - 1)) >> _HALF
        halves = np.concatenate([high, columns - (high << _HALF)]).astype(np.float64)
        for start in range(0, halves.shape[1], BLOCK):
            block = halves[:, start : start + BLOCK]
            total.add(block @ block.T)
    found = total.whole()
    products = [
        [
            (found[i][j] << 2 * _HALF) + ((found[i][width + j] + found[width + i][j]) << _HALF) + found[width + i][width + j]
            for j in range(width)
        ]
        for i in range(width)
    ]
    return rows, sums, products


def _batches(source: Source, steps: list[Any]) -> Iterator[NDArray[np.int64] | None]:
    """The columns of each batch as rows of a matrix; None where an entry is NULL."""
    import numpy as np

    chosen = source.table.select(**{f"k{i}": one for i, one in enumerate(steps)})
    with careful(source.engine):
        # Ibis 12's own batches call a method that DuckDB 2 has not; a result of `execute` would be held as a whole.
        for batch in source.engine._to_duckdb_relation(chosen).to_arrow_reader(_BATCH):
            if any(column.null_count for column in batch.columns):
                yield None
                return
            yield np.stack([column.to_numpy(zero_copy_only=True) for column in batch.columns])


class _Products:
    """A matrix of sums of whole numbers: floats of blocks, added in 64 bits, and these in two parts."""

    def __init__(self, width: int) -> None:
        import numpy as np

        self._recent, self._blocks = np.zeros((width, width), dtype=np.int64), 0
        self._low, self._high = np.zeros_like(self._recent), np.zeros_like(self._recent)

    def add(self, block: NDArray[np.float64]) -> None:
        import numpy as np

        self._recent += block.astype(np.int64)
        self._blocks += 1
        if self._blocks == _BLOCKS:
            self._settle()

    def _settle(self) -> None:
        self._low += self._recent & 0xFFFFFFFF
        self._high += self._recent >> 32
        self._recent[:], self._blocks = 0, 0

    def whole(self) -> list[list[int]]:
        self._settle()
        pairs = zip(self._high.tolist(), self._low.tolist(), strict=True)
        return [[(high << 32) + low for high, low in zip(*pair, strict=True)] for pair in pairs]
