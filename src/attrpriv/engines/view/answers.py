"""Statistics of a view, cell by cell: what stratified answers are made of.

For a query over u (and v) with a filter, y = u where the filter holds and 0 elsewhere, and i = 1 or 0 for the filter; of each
cell and group: the number of rows, and the sums of i, of each y and of their products. Sums are over kept rows only, so nothing
here is secret.

What must never change: the sums are exact, so that they are functions of the kept rows alone. A sum of floats depends, in its
last digits, on the order of the rows and on where threads part them, that is on rows that were not kept. So y is first rounded
to a whole multiple of a unit, a power of two fixed by the largest |y| of the kept rows, and whole numbers are summed:

    y  ->  q w,    w = round(y / q) = 2^31 a + b,    q = 2^-62 (a power of two >= max |y|)
    w w'  =  2^62 aa' + 2^31 (ab' + ba') + bb'
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from attrpriv.engines.conditions import check_condition
from attrpriv.engines.grid import very_float
from attrpriv.engines.scan import NOT_FINITE, check_columns
from attrpriv.engines.tables import Source, careful, quietly, shown_name
from attrpriv.engines.view.draw import CHANGED, ENGINE_FAILED, Cells, Drawn, kept_rows
from attrpriv.engines.view.values import NO_GROUP, Bounds, Group, Transform, is_nowhere, row_table, transformed
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
class CellMoments:
    """The same of two values: how many rows, the sum of each value, the sum of each product."""

    hits: int
    totals: tuple[Fraction, ...]
    products: tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class ViewSums:
    """For each group (one, named None, without GROUP BY), the sums of each cell."""

    groups: Mapping[str | None, tuple[CellSums, ...]]


@dataclass(frozen=True)
class ViewMoments:
    groups: Mapping[str | None, tuple[CellMoments, ...]]


@dataclass(frozen=True)
class Viewed:
    """A view to be read, and what the policy says of missing entries, bounds and groups."""

    source: Source
    cells: Cells
    drawn: Drawn
    row_id: str | None
    missing: Mapping[str, float]
    bounds: Bounds
    groups: Sequence[Group] | None = None

    def table(self) -> Any:
        return kept_rows(self.source, self.cells, self.drawn, self.row_id)

    @property
    def names(self) -> tuple[str | None, ...]:
        return (None,) if self.groups is None else tuple(group.name for group in self.groups)


def check_queries(source: Source, queries: Sequence[Query], left_out: Sequence[str]) -> None:
    """Raise DataError, from the schema alone, where a query cannot be answered from a view of this table.

    `left_out` are columns that the view has not: who could ask for an identifier would recognise rows.
    """
    for query in queries:
        absent = [column for column in _columns(query) if column in left_out]
        if absent:
            raise DataError(f"query: must not read an identifier, which the view leaves out. Got {shown_name(absent[0])}.")
        check_columns(source, query.columns)
        if query.where is not None:
            check_condition(source.columns, parse_condition(query.where))
        if query.group_by is not None and query.group_by not in source.columns:
            raise DataError(f"group by: must be one of the table's columns. Got {shown_name(query.group_by)}.")


def _columns(query: Query) -> tuple[str, ...]:
    filtered = () if query.where is None else columns_of(parse_condition(query.where))
    return (*filtered, *query.columns, *(() if query.group_by is None else (query.group_by,)))


def view_sums(view: Viewed, query: Query, transform: Transform | None = None) -> ViewSums:
    """Sums of what one query is of, or of a transform of it, one for each group."""
    found = _moments(view, query, transform, 1)
    return ViewSums(
        {name: tuple(CellSums(m.hits, m.totals[0], m.products[0][0]) for m in cells) for name, cells in found.groups.items()}
    )


def view_moments(view: Viewed, query: Query) -> ViewMoments:
    """Sums and sums of products of what one query is of."""
    return _moments(view, query, None, len(query.arguments))


def _moments(view: Viewed, query: Query, transform: Transform | None, size: int) -> ViewMoments:
    check_queries(view.source, [query], () if view.row_id is None else (view.row_id,))
    for group in view.groups or ():
        if group.condition is not None:
            check_condition(view.source.columns, group.condition)
    table = view.table()
    found = quietly(lambda: _rows(view, table, query, transform, size))
    if found is None:
        raise DataError(ENGINE_FAILED)
    rows, units = found
    if any(is_nowhere(row[_GROUP]) and row["hits"] for row in rows):
        raise DataError(NO_GROUP)
    if any(row["absent"] for row in rows):
        raise DataError(NOT_FINITE.format(columns=", ".join(map(shown_name, query.columns))))
    counted: Counter[int] = Counter()
    for row in rows:
        counted[row["cell"]] += row["rows"]
    if [counted[k] for k in range(len(view.cells.keep))] != list(view.cells.keep):
        raise DataError(CHANGED)
    return _gathered(rows, units, view)


def _rows(
    view: Viewed, table: Any, query: Query, transform: Transform | None, size: int
) -> tuple[list[dict[str, Any]], list[Fraction]]:
    rows = row_table(table, query, view.groups, view.missing, view.bounds)
    values = [rows[f"u{k}"] for k in range(max(1, len(query.arguments)))]
    values = values[:size] if transform is None else [transformed(values, rows.group, transform)]
    kept = rows.select("cell", "group", "hit", "absent", **{f"y{k}": _where(rows, value) for k, value in enumerate(values)})
    largest = view.source.run(kept.aggregate(**{f"y{k}": kept[f"y{k}"].abs().max() for k in range(len(values))}))
    exponents = [_exponent(largest[f"y{k}"]) for k in range(len(values))]
    whole = _halved(kept, exponents)
    grouped = whole.group_by(**{"cell": whole.cell, _GROUP: whole.group}).aggregate(
        rows=whole.count(),
        absent=(whole.absent & whole.hit).cast("int64").sum().fill_null(0),
        hits=whole.hit.cast("int64").sum().fill_null(0),
        # as text: DuckDB adds in 128 bits, which Ibis would squeeze into 64
        **{name: part.sum().cast("string") for name, part in _whole_parts(whole, len(values)).items()},
    )
    with careful(view.source.engine):
        found = list(view.source.engine.to_pyarrow(grouped).to_pylist())
    return found, [Fraction(2) ** (exponent - _BITS) for exponent in exponents]


def _where(rows: Any, value: Any) -> Any:
    import ibis

    return ibis.ifelse(rows.hit & ~rows.absent, value, very_float(0.0))


def _halved(kept: Any, exponents: Sequence[int]) -> Any:
    """Each value as a whole number w, and w as 2^31 a + b."""
    names = ("cell", "group", "hit", "absent")
    parts: dict[str, Any] = {}
    for k, exponent in enumerate(exponents):
        parts[f"w{k}"] = _times_power(kept[f"y{k}"], _BITS - exponent).round().cast("int64")
        parts[f"a{k}"] = _times_power(kept[f"y{k}"], _HALF - exponent).floor().cast("int64")
    whole = kept.select(*names, **parts)
    return whole.mutate(**{f"b{k}": whole[f"w{k}"] - whole[f"a{k}"] * 2**_HALF for k in range(len(exponents))})


def _whole_parts(whole: Any, size: int) -> dict[str, Any]:
    """The whole numbers to be summed: of each value, and of each pair of values."""
    parts = {f"w{k}": whole[f"w{k}"] for k in range(size)}
    for j, k in itertools.combinations_with_replacement(range(size), 2):
        a, b, c, d = (whole[name] for name in (f"a{j}", f"b{j}", f"a{k}", f"b{k}"))
        parts |= {f"high{j}{k}": a * c, f"mixed{j}{k}": a * d, f"xed{j}{k}": b * c, f"low{j}{k}": b * d}
    return parts


def _exponent(largest: float | None) -> int:
    """The exponent of a power of two that is at or above every |y|."""
    return math.frexp(largest or 0.0)[1]


def _times_power(y: Any, power: int) -> Any:
    """y times a power of two, exactly; in two steps, because the power itself may be no float."""
    return y * very_float(2.0 ** (power // 2)) * very_float(2.0 ** (power - power // 2))


def _gathered(rows: list[dict[str, Any]], units: Sequence[Fraction], view: Viewed) -> ViewMoments:
    found = {(row["cell"], row[_GROUP]): _cell_moments(row, units) for row in rows}
    nothing = (Fraction(0),) * len(units)
    empty = CellMoments(0, nothing, (nothing,) * len(units))
    cells = range(view.cells.planned)
    return ViewMoments({name: tuple(found.get((k, place), empty) for k in cells) for place, name in enumerate(view.names)})


def _cell_moments(row: Mapping[str, Any], units: Sequence[Fraction]) -> CellMoments:
    totals = tuple(int(row[f"w{k}"]) * unit for k, unit in enumerate(units))
    products = [[Fraction(0)] * len(units) for _ in units]
    for j, k in itertools.combinations_with_replacement(range(len(units)), 2):
        high, mixed, other, low = (int(row[f"{name}{j}{k}"]) for name in ("high", "mixed", "xed", "low"))
        whole = (high << 2 * _HALF) + (mixed + other << _HALF) + low
        products[j][k] = products[k][j] = whole * units[j] * units[k]
    return CellMoments(int(row["hits"]), totals, tuple(map(tuple, products)))
