"""Statistics of a view, cell by cell: what stratified answers are made of.

For a query over x with a filter, y = x where the filter holds and 0 elsewhere, and i = 1 or 0 for the filter; of each cell and
group: the number of rows, and the sums of i, y and y^2. Sums are over kept rows only, so nothing here is secret.

What must never change: the sums are exact, so that they are functions of the kept rows alone. A sum of floats depends, in its
last digits, on the order of the rows and on where threads part them, that is on rows that were not kept. So y is first rounded
to a whole multiple of a unit, a power of two fixed by the largest |y| of the kept rows, and whole numbers are summed:

    y  ->  q w,    w = round(y / q) = 2^31 a + b,    w^2 = 2^62 a^2 + 2^32 ab + b^2,    q = 2^-62 (a power of two >= max |y|)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from attrpriv.engines.conditions import check_condition, holds
from attrpriv.engines.scan import NOT_FINITE, check_columns
from attrpriv.engines.tables import Source, careful, quietly, shown_name
from attrpriv.engines.view import CHANGED, ENGINE_FAILED, Cells, Drawn, cell_number, kept_rows
from attrpriv.errors import DataError
from attrpriv.queries.conditions import columns_of, parse_condition
from attrpriv.queries.query import Query

_GROUP = "attrpriv group"
_BITS = 62
_HALF = 31


@dataclass(frozen=True)
class CellSums:
    """Over the kept rows of one cell (and one group): how many satisfy the filter, their sum, their sum of squares."""

    hits: int
    total: Fraction
    squares: Fraction


@dataclass(frozen=True)
class ViewSums:
    """For each group (one, named None, without GROUP BY), the sums of each cell."""

    groups: Mapping[str | None, tuple[CellSums, ...]]


def check_queries(source: Source, queries: Sequence[Query], left_out: Sequence[str]) -> None:
    """Raise DataError, from the schema alone, where a query cannot be answered from a view of this table.

    `left_out` are columns that the view has not: who could ask for an identifier would recognise rows.
    """
    for query in queries:
        absent = [column for column in _columns(query) if column in left_out]
        if absent:
            raise DataError(f"query: must not read an identifier, which the view leaves out. Got {shown_name(absent[0])}.")
        if query.column is not None:
            check_columns(source, [query.column])
        if query.where is not None:
            check_condition(source.columns, parse_condition(query.where))
        if query.group_by is not None and query.group_by not in source.columns:
            raise DataError(f"group by: must be one of the table's columns. Got {shown_name(query.group_by)}.")


def _columns(query: Query) -> tuple[str, ...]:
    filtered = () if query.where is None else columns_of(parse_condition(query.where))
    return (*filtered, *(column for column in (query.column, query.group_by) if column is not None))


def view_sums(
    source: Source, cells: Cells, drawn: Drawn, row_id: str | None, query: Query, missing: Mapping[str, float],
    bounds: Mapping[str, tuple[float, float]],
) -> ViewSums:  # fmt: skip
    """Read what one query needs from the view."""
    check_queries(source, [query], () if row_id is None else (row_id,))
    table = kept_rows(source, cells, drawn, row_id)
    found = quietly(lambda: _rows(source, table, query, missing, bounds))
    if found is None:
        raise DataError(ENGINE_FAILED)
    rows, unit = found
    if any(row["absent"] for row in rows):
        raise DataError(NOT_FINITE.format(columns=shown_name(query.column)))
    counted = [sum(row["rows"] for row in rows if row["cell"] == k) for k in range(len(cells.keep))]
    if counted != list(cells.keep):
        raise DataError(CHANGED)
    return _gathered(rows, unit, len(cells.keep), query)


def _rows(
    source: Source, table: Any, query: Query, missing: Mapping[str, float], bounds: Mapping[str, tuple[float, float]]
) -> tuple[list[dict[str, Any]], Fraction]:
    import ibis

    everywhere = cell_number(table).notnull()
    hit = everywhere if query.where is None else holds(table, parse_condition(query.where))
    value, absent = _value(table, query, missing, bounds)
    y = ibis.ifelse(hit & ~absent, value, _float(0.0))
    exponent = _exponent(source.run(table.aggregate(largest=y.abs().max()))["largest"])
    w = _times_power(y, _BITS - exponent).round().cast("int64")
    a = _times_power(y, _HALF - exponent).floor().cast("int64")
    b = w - a * 2**_HALF
    keys = {"cell": cell_number(table)}
    if query.group_by is not None:
        keys[_GROUP] = table[query.group_by].cast("string")
    grouped = table.group_by(**keys).aggregate(
        rows=table.count(),
        absent=(absent & hit).sum().fill_null(0),
        hits=hit.cast("int64").sum(),
        # as text: DuckDB adds in 128 bits, which Ibis would squeeze into 64
        **{name: part.sum().cast("string") for name, part in {"w": w, "aa": a * a, "ab": a * b, "bb": b * b}.items()},
    )
    with careful(source.engine):
        return list(source.engine.to_pyarrow(grouped).to_pylist()), Fraction(2) ** (exponent - _BITS)


def _exponent(largest: float | None) -> int:
    """The exponent of a power of two that is at or above every |y|."""
    return math.frexp(largest or 0.0)[1]


def _times_power(y: Any, power: int) -> Any:
    """y times a power of two, exactly; in two steps, because the power itself may be no float."""
    return y * _float(2.0 ** (power // 2)) * _float(2.0 ** (power - power // 2))


def _float(number: float) -> Any:
    """The very float: as text, which DuckDB reads as a float and not, like a number in SQL, as a decimal first."""
    import ibis

    return ibis.literal(repr(number)).cast("float64")


def _value(
    table: Any, query: Query, missing: Mapping[str, float], bounds: Mapping[str, tuple[float, float]]
) -> tuple[Any, Any]:
    """The column as a float, filled and clipped as the policy says, and whether it is still missing or infinite."""
    import ibis

    if query.column is None:
        return _float(1.0), ibis.literal(False)
    value = table[query.column].cast("float64")
    value = ibis.ifelse(value.isnan(), ibis.null("float64"), value)
    if query.column in missing:
        value = value.fill_null(_float(missing[query.column]))
    if query.column in bounds:
        low, high = bounds[query.column]
        value = value.clip(lower=_float(low), upper=_float(high))
    return value.fill_null(_float(0.0)), value.isnull() | value.isinf().fill_null(False)


def _gathered(rows: list[dict[str, Any]], unit: Fraction, cells: int, query: Query) -> ViewSums:
    names: list[str | None] = [None]
    if query.group_by is not None:
        names = sorted({row[_GROUP] for row in rows}, key=lambda name: (name is None, name))
    empty = CellSums(0, Fraction(0), Fraction(0))
    groups: dict[str | None, tuple[CellSums, ...]] = {}
    for name in names:
        found = {row["cell"]: row for row in rows if query.group_by is None or row[_GROUP] == name}
        groups[name] = tuple(_sums(found[k], unit) if k in found else empty for k in range(cells))
    return ViewSums(groups)


def _sums(row: Mapping[str, Any], unit: Fraction) -> CellSums:
    squares = (int(row["aa"]) << 2 * _HALF) + (int(row["ab"]) << _HALF + 1) + int(row["bb"])
    return CellSums(int(row["hits"]), int(row["w"]) * unit, squares * unit * unit)
