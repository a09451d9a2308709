"""One pass over a table for the Gram matrix of some columns: n, sums, and sums of products, without any rounding of a sum.

A value x is read as a whole number of public steps from a public centre,

    k = round((x - centre) / step),         step a power of two,

row by row, and then

    sums_i = sum of k_i        products_ij = sum of k_i k_j

are sums of whole numbers, exact whatever the order of the rows, however many there are and however far the centre is from the
column's mean. Whole numbers on a step of at most 1 are read as they are; of every other value nothing is known beyond the step,
which the caller takes for the spacing of the values if they have a finer one.

What must never change:

* One query, whatever is read.
* A failure that depends on the rows has a fixed text, and raising it leaves nothing of the rows in a frame of this module.
* No float is ever added to another one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

from attrpriv.engines.grid import Grid, scaled, steps, very_float, whole
from attrpriv.engines.progress import waited
from attrpriv.engines.scan import ENGINE_FAILED, check_columns
from attrpriv.engines.tables import Source, arrow_batches, careful, is_missing, quietly, shown_name
from attrpriv.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOO_FAR = (
    "data: every value of a column read must be present, finite and within a few hundred standard deviations of the mean that "
    "the policy assumes. Columns read: {columns}. Got one that is not. Name a public value under `missing`, state the moments "
    "in the column's own unit, or clean the table."
)
TOO_WIDE = (
    "columns: {engine} can take the sums of products of at most {most} columns. Got {width}. "
    "Read fewer columns, or give the table as a Parquet file or a DuckDB table."
)

# Where each pair of columns is an aggregate of its own.
_WIDE = 40
# A product of two numbers below 2^44 is below 2^88, and 2^38 of them below 10^38, the largest decimal.
_MOST_ROWS = 2**38


@dataclass(frozen=True)
class GramRead:
    """A column and the public grid on which it is read."""

    column: str
    centre: float
    step: float
    fill: float | None = None
    """The public value of a missing entry, NULL or NaN; None: a missing entry is an announced failure."""

    def __post_init__(self) -> None:
        whole = self.step > 0 and math.frexp(self.step)[0] == 0.5
        if not (whole and 1e-290 < self.step < 1e290 and math.isfinite(self.centre)):
            raise DataError(f"read: {shown_name(self.column)} needs a finite centre and a step that is a power of two.")
        if self.fill is not None and not abs(self.filled) < MOST_STEPS:
            raise DataError(
                f"missing: the value for {shown_name(self.column)} must be finite and near its mean. Got {self.fill}."
            )

    @property
    def filled(self) -> float:
        """The steps of a missing entry."""
        steps = ((self.fill or 0.0) - self.centre) / self.step
        return round(steps) if math.isfinite(steps) else math.inf


@dataclass(frozen=True)
class Gram:
    """What one pass found. All but the number of rows is private."""

    rows: int
    sums: tuple[int, ...] = field(repr=False)
    products: tuple[tuple[int, ...], ...] = field(repr=False)


def gram(source: Source, reads: Sequence[GramRead]) -> Gram:
    """The number of rows, sums and sums of products in steps, in one query.

    Raises DataError before any row is read if a column is unknown or not numeric, and with a fixed text if a value is missing
    without a public substitute or absurdly far from the centre, or if the engine fails.
    """
    check_columns(source, [read.column for read in reads])
    if len(reads) > _WIDE and source.engine.name != "duckdb":
        raise DataError(TOO_WIDE.format(engine=source.engine.name, most=_WIDE, width=len(reads)))
    result = quietly(lambda: gram_in_steps(source, reads))
    if isinstance(result, Gram):
        return result
    columns = ", ".join(shown_name(read.column) for read in reads) or "none"
    raise DataError((ENGINE_FAILED if result is None else TOO_FAR).format(columns=columns))


def gram_in_steps(source: Source, reads: Sequence[GramRead]) -> Gram | str:
    """The one query. Exceptions are the engine's; a text says that some value cannot be used."""
    if source.engine.name == "duckdb":
        values = [_scaled(source, read) for read in reads]
        found = waited(source.engine, lambda: gram_of_batches(source, values), source.rows)
    else:
        found = _gram_of_aggregates(source, [_steps(source, read) for read in reads])
    if found is None or not 0 < found[0] <= _MOST_ROWS:
        return "unusable"
    rows, sums, products = found
    return Gram(rows, tuple(sums), tuple(map(tuple, products)))


def _gram_of_aggregates(source: Source, values: Sequence[Any]) -> tuple[int, list[int], list[list[int]]] | None:
    """Rows, sums and sums of products; None where a value cannot be used."""
    order = range(len(values))
    pairs = list(combinations_with_replacement(order, 2))
    exact = [value.cast("decimal(38, 0)") for value in values]
    wanted: dict[str, Any] = {"rows": source.table.count()}
    wanted |= {f"usable_{i}": value.count() for i, value in enumerate(values)}
    wanted |= {f"sum_{i}": value.sum().cast("string") for i, value in enumerate(exact)}
    wanted |= {f"product_{i}_{j}": (exact[i] * exact[j]).sum().cast("string") for i, j in pairs}
    row = source.run(source.table.aggregate(**wanted))
    rows = int(row["rows"])
    if not rows or any(int(row[f"usable_{i}"]) != rows for i in order):
        return None
    half = {(i, j): whole(row[f"product_{i}_{j}"]) for i, j in pairs}
    return rows, [whole(row[f"sum_{i}"]) for i in order], [[half[min(i, j), max(i, j)] for j in order] for i in order]


def _steps(source: Source, read: GramRead) -> Any:
    """Each value's steps, missing entries filled; NULL where a value cannot be used."""
    import ibis

    value = steps(source, read.column, Grid(read.step, read.centre), most=float(MOST_STEPS))
    if read.fill is None:
        return value
    return ibis.ifelse(is_missing(source, read.column), ibis.literal(int(read.filled), type="int64"), value)


def _scaled(source: Source, read: GramRead) -> Any:
    """Each value in steps, to be rounded, missing entries filled."""
    import ibis

    value = scaled(source, read.column, Grid(read.step, read.centre))
    return value if read.fill is None else ibis.ifelse(is_missing(source, read.column), very_float(read.filled), value)


# ----------------------------------------------------------------------------------------------------------------------------
# The Gram matrix of a DuckDB table: the engine streams the columns in steps, in batches, and BLAS multiplies them, exactly.
#
# A number of steps below 2^44 is split into two parts, k = 2^22 h + l with |h| <= 2^22 and |l| <= 2^21, and with s = h + l
#
#     sum of k_i k_j  =  2^44 H  +  2^22 (S - H - L)  +  L,        H = sum of h_i h_j,  S = sum of s_i s_j,  L = sum of l_i l_j
#
# Each of the three is symmetric, which halves the work. BLAS adds in floats, a block of rows at a time, and without any
# rounding as long as no partial sum exceeds 2^53. Whether one did is seen on the diagonal. It is a sum of squares, so that
# whatever order they are added in, it cannot pass 2^53 and come out below; and where it is below, so are all partial sums of
# all products, by Cauchy and Schwarz. A block of 128 rows is below in any case, as (1.5 * 2^22)^2 * 128 < 2^53, a block of
# 4096 nearly always. One that is not is done again in blocks of 128. Blocks are then added as whole numbers.
#
# While BLAS multiplies a batch, the engine reads the next one, and it is split.
#
# What must never change: no block counts whose diagonal reaches 2^53. One query; two batches are held at a time, no more.


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
