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
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

from attrpriv.engines.gram_batches import MOST_STEPS, gram_of_batches
from attrpriv.engines.grid import Grid, is_missing, scaled, steps, very_float, whole
from attrpriv.engines.progress import waited
from attrpriv.engines.scan import ENGINE_FAILED, check_columns
from attrpriv.engines.tables import Source, quietly, shown_name
from attrpriv.errors import DataError

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
