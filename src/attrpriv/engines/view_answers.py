"""Statistics of a view, cell by cell, in one query: what stratified answers are made of.

For a query over x with a filter, y = x where the filter holds and 0 elsewhere, and i = 1 or 0 for the filter; of each cell and
group: the number of rows, and the sums of i, y and y^2. Sums are over kept rows only, so nothing here is secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attrpriv.engines.conditions import check_condition, holds
from attrpriv.engines.scan import NOT_FINITE, check_columns
from attrpriv.engines.tables import Source, quietly, shown_name
from attrpriv.engines.view import CHANGED, ENGINE_FAILED, Cells, Drawn, cell_number, kept_rows
from attrpriv.errors import DataError
from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.query import Query

_GROUP = "attrpriv group"


@dataclass(frozen=True)
class CellSums:
    """Over the kept rows of one cell (and one group): how many satisfy the filter, their sum, their sum of squares."""

    hits: float
    total: float
    squares: float


@dataclass(frozen=True)
class ViewSums:
    """For each group (one, named None, without GROUP BY), the sums of each cell."""

    groups: Mapping[str | None, tuple[CellSums, ...]]


def view_sums(
    source: Source, cells: Cells, drawn: Drawn, row_id: str | None, query: Query, missing: Mapping[str, float],
    bounds: Mapping[str, tuple[float, float]],
) -> ViewSums:  # fmt: skip
    """Read what one query needs from the view."""
    if query.column is not None:
        check_columns(source, [query.column])
    if query.where is not None:
        check_condition(source.columns, parse_condition(query.where))
    if query.group_by is not None and query.group_by not in source.columns:
        raise DataError(f"group by: must be one of the table's columns. Got {shown_name(query.group_by)}.")
    table = kept_rows(source, cells, drawn, row_id)
    rows = quietly(lambda: _rows(source, table, query, missing, bounds))
    if rows is None:
        raise DataError(ENGINE_FAILED)
    if any(row["absent"] for row in rows):
        raise DataError(NOT_FINITE.format(columns=shown_name(query.column)))
    counted = [sum(row["rows"] for row in rows if row["cell"] == k) for k in range(len(cells.keep))]
    if counted != list(cells.keep):
        raise DataError(CHANGED)
    return _gathered(rows, len(cells.keep), query)


def _rows(
    source: Source, table: Any, query: Query, missing: Mapping[str, float], bounds: Mapping[str, tuple[float, float]]
) -> list[dict[str, Any]]:
    import ibis

    everywhere = cell_number(table).notnull()
    hit = everywhere if query.where is None else holds(table, parse_condition(query.where))
    value, absent = _value(table, query, missing, bounds)
    y = ibis.ifelse(hit, value, 0.0)
    keys = {"cell": cell_number(table)}
    if query.group_by is not None:
        keys[_GROUP] = table[query.group_by].cast("string")
    grouped = table.group_by(**keys).aggregate(
        rows=table.count(),
        absent=(absent & hit).sum().fill_null(0),
        hits=hit.cast("int64").sum(),
        total=y.sum(),
        squares=(y * y).sum(),
    )
    return list(source.engine.to_pyarrow(grouped).to_pylist())


def _value(
    table: Any, query: Query, missing: Mapping[str, float], bounds: Mapping[str, tuple[float, float]]
) -> tuple[Any, Any]:
    """The column as a float, filled and clipped as the policy says, and whether it is still missing or infinite."""
    import ibis

    if query.column is None:
        return ibis.literal(1.0), ibis.literal(False)
    value = table[query.column].cast("float64")
    value = ibis.ifelse(value.isnan(), ibis.null("float64"), value)
    if query.column in missing:
        value = value.fill_null(missing[query.column])
    if query.column in bounds:
        low, high = bounds[query.column]
        value = value.clip(lower=low, upper=high)
    return value.fill_null(0.0), value.isnull() | value.isinf().fill_null(False)


def _gathered(rows: list[dict[str, Any]], cells: int, query: Query) -> ViewSums:
    names: list[str | None] = [None]
    if query.group_by is not None:
        names = sorted({row[_GROUP] for row in rows}, key=lambda name: (name is None, name))
    empty = CellSums(0.0, 0.0, 0.0)
    groups: dict[str | None, tuple[CellSums, ...]] = {}
    for name in names:
        found = {row["cell"]: row for row in rows if query.group_by is None or row[_GROUP] == name}
        groups[name] = tuple(_sums(found[k]) if k in found else empty for k in range(cells))
    return ViewSums(groups)


def _sums(row: Mapping[str, Any]) -> CellSums:
    return CellSums(float(row["hits"]), float(row["total"]), float(row["squares"]))
