"""A view in which rows show public values in place of one number: its check when it is drawn, and the values themselves.

What must never change: a number that moved too far is a failure like a cell with too few rows, with one text for both; nothing
else depends on the numbers but which row of a cell is paired with which public value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attrpriv.engines.tables import Source, arrow_batches, quietly, shown_name
from attrpriv.engines.view.cells import CELL, DIGEST, RESERVED, Cells, bind_table
from attrpriv.engines.view.in_order import RANK, SECOND
from attrpriv.engines.view.sorted_cells import SortedColumn, moved_too_far, shown_value
from attrpriv.errors import DataError

TOO_FAR = (
    "data: every interval that the view shows must have the rows that are kept of it, near enough to public values. Got a "
    "table that has not. The promise allows for this failure, and it is recorded. Another reference needs a new ledger, and is "
    "outside the promise: this failure itself says something about the table."
)

_LOW, _WIDTH, _ROWS, _PLACE = (RESERVED + name for name in ("low", "width", "rows", "place"))
_BATCH = 1 << 16


def require_type(source: Source, cells: Cells) -> None:
    """Raise DataError where the column's own type does not hold the ends of its intervals."""
    sort = cells.in_order
    if sort is not None and not quietly(lambda: _fits_type(source, cells, sort)):
        name = shown_name(sort.name)
        raise DataError(f"reference.sorted: the type of {name} must hold the ends of its intervals. Got one that does not.")


def _fits_type(source: Source, cells: Cells, sort: SortedColumn) -> bool:
    """Every public value lies between the ends of a kept interval."""
    lows = [float(low) for low in _lows(cells, sort) if isinstance(low, float)]
    ends = [*lows, *(low + sort.width(low) for low in lows)]
    made = bind_table(source, {_LOW: ends})
    kind = source.table[sort.name].type()
    done = source.engine.to_pyarrow(made.select(fits=_typed(made[_LOW], kind)))
    return len(done) == len(ends)


def too_far(source: Source, cells: Cells, kept: Any) -> bool:
    """Whether the kept rows, with their own numbers, are further from the public values than the certificate allows."""
    sort = cells.in_order
    if sort is None or sort.most is None:
        return False
    table = kept.select(cell=kept[CELL].cast("int64"), number=kept[sort.name].cast("float64"))
    found = [batch for batch in arrow_batches(source.engine, table, _BATCH) if len(batch)]
    numbers = np.concatenate([_plain(batch.column(1)) for batch in found] or [np.empty(0)])
    homes = np.concatenate([batch.column(0).to_numpy(zero_copy_only=False) for batch in found] or [np.empty(0, np.int64)])
    return moved_too_far(homes, numbers, _lows(cells, sort), cells.keep, sort)


def _plain(column: Any) -> Any:
    return np.asarray(column.fill_null(np.nan).to_numpy(zero_copy_only=False), dtype=np.float64)


def with_public_values(source: Source, cells: Cells, kept: Any) -> Any:
    """The kept rows with public values in place of the sorted number; every other column as it is.

    Ties by bits that order no file, whole or in parts: else the order of rows would tell which numbers are equal.
    """
    import ibis

    sort = cells.in_order
    if sort is None:
        return kept
    second_rank = [kept[RANK], kept[SECOND]] if RANK in kept.columns else [kept[DIGEST].substr(16, 16), kept[DIGEST]]
    lows = _lows(cells, sort)
    widths = [sort.width(low) if isinstance(low, float) else None for low in lows]
    known = bind_table(source, {CELL: list(range(len(lows))), _LOW: lows, _WIDTH: widths, _ROWS: list(cells.keep[: len(lows)])})
    window = ibis.window(group_by=kept[CELL], order_by=[kept[sort.name].cast("float64"), *second_rank])
    placed = kept.mutate(**{_PLACE: ibis.row_number().over(window) + 1})
    joined = placed.left_join(known, CELL)
    value = shown_value(joined[_LOW], joined[_WIDTH], joined[_PLACE], joined[_ROWS])
    shown = {name: joined[name] for name in kept.columns}
    return joined.select(**(shown | {sort.name: _typed(value, kept[sort.name].type())}))


def _typed(value: Any, kind: Any) -> Any:
    """A float in the column's own type; whole numbers rounded down, so that they stay in their interval."""
    return (value.floor() if kind.is_integer() else value).cast(kind)


def _lows(cells: Cells, sort: SortedColumn) -> list[object]:
    place = cells.columns.index(sort.name)
    return [values[place] for values in cells.values]
