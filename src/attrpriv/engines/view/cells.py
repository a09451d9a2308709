"""The cells of a view, and how a secret reaches the engine.

What must never change: the cell of a row is a function of that row alone. A secret is a bound parameter and stays in a session
variable; no SQL text, log or expression holds it.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

from attrpriv.engines.conditions import holds
from attrpriv.engines.tables import Source
from attrpriv.engines.view.sorted_cells import SortedColumn, interval_number
from attrpriv.errors import DataError
from attrpriv.queries.conditions import Condition, columns_of

RESERVED = "attrpriv "
POSITION = RESERVED + "position"
CELL = RESERVED + "cell"
DIGEST = RESERVED + "digest"
OTHER_TYPE = (
    "reference: the public values of {column} must be of the table's type, {kind}. Got one that is not. Write them alike in "
    "the public records and in the table."
)
NOT_DIFFERENT = "reference: public values must stay different as the table writes them. Got two that are the same there."
# The keep-th smallest of many uniform ranks lies within this many standard deviations of its mean, but once in 10^18.
_REACH = 9.0


@dataclass(frozen=True)
class Cells:
    """The cells of a composition in order, by a condition each; the one without takes the rows of no other.

    Or by the values of `columns`: then the last cell, beyond those of `values`, has the rows of no other.
    """

    conditions: tuple[Condition | None, ...]
    keep: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    columns: tuple[str, ...] = ()
    values: tuple[tuple[object, ...], ...] = ()
    in_order: SortedColumn | None = None
    """One of `columns` whose value in a cell is the low end of an interval."""

    @property
    def planned(self) -> int:
        """How many cells a plan knows of."""
        return len(self.values) if self.columns else len(self.keep)


def cell_columns(cells: Cells) -> tuple[str, ...]:
    """The columns that decide which cell a row is in."""
    read = {name for condition in cells.conditions if condition is not None for name in columns_of(condition)}
    return cells.columns or tuple(sorted(read))


def with_cells(source: Source, cells: Cells, table: Any) -> Any:
    """The table, which is the source's with some columns more, and each row's cell; -1 where it has none."""
    if cells.columns:
        return _by_values(source, cells, table)
    import ibis

    columns = {name: _by_itself(source, table, name) for name in cell_columns(cells)}
    named = [(holds(columns, condition), k) for k, condition in enumerate(cells.conditions) if condition is not None]
    rest = next((k for k, condition in enumerate(cells.conditions) if condition is None), -1)
    cell = ibis.cases(*named, else_=rest) if named else ibis.literal(rest)
    return table.mutate(**{CELL: cell.cast("int32")})


# Cells by the values of some columns.


def check_values(source: Source, cells: Cells) -> None:
    """Raise DataError where the public values are not of the types of the table's columns, or no longer different there."""
    columns = zip(cells.columns, zip(*cells.values, strict=True), strict=True)
    written = [[_written(name, _kind(source, cells, name), value) for value in values] for name, values in columns]
    if len(set(zip(*written, strict=True))) != len(cells.values):
        raise DataError(NOT_DIFFERENT)


def known_values(source: Source, cells: Cells) -> Any:
    """The number of each cell and its values as `compared` has them, in the engine; all different, or a DataError."""
    columns = zip(cells.columns, zip(*cells.values, strict=True), strict=True)
    written = {name: [_written(name, _kind(source, cells, name), value) for value in values] for name, values in columns}
    types = {name: source.table[name].type() if _sort(cells, name) is None else "float64" for name in cells.columns}
    named = registered(source, {CELL: list(range(len(cells.values))), **written})
    typed = named.select(CELL, **{name: named[name].cast(types[name]) for name in cells.columns})
    each = {f"{RESERVED}{k}": compared(source, typed, name, cells) for k, name in enumerate(cells.columns)}
    known = typed.select(CELL, **each)
    listed = source.engine.to_pyarrow(known.drop(CELL)).to_pylist()
    if len({tuple(row.values()) for row in listed}) != len(listed):
        raise DataError(NOT_DIFFERENT)
    return known


def _sort(cells: Cells, name: str) -> SortedColumn | None:
    """How this column is sorted into intervals; None where its values are cells by themselves."""
    return cells.in_order if cells.in_order is not None and cells.in_order.name == name else None


def _kind(source: Source, cells: Cells, name: str) -> str:
    return source.columns[name] if _sort(cells, name) is None else "float"


def compared(source: Source, table: Any, name: str, cells: Cells) -> Any:
    """A column as values are compared: floats and decimals as text, so that one means the same wherever it is written.

    Of a sorted number its interval.
    """
    column, sort = one_of_many(_by_itself(source, table, name)), _sort(cells, name)
    if sort is not None:
        return interval_number(column, sort.edges)
    return column if source.columns[name] in ("integer", "boolean", "date", "text") else text(column)


def one_of_many(column: Any) -> Any:
    """A hidden column as its cells are told apart and as a view shows it: with one zero, and one kind of missing entry."""
    return nan_is_missing(column) + 0.0 if column.type().is_floating() else column


def _written(name: str, kind: str, value: object) -> str | None:
    """A public value as the engine reads one of this type; DataError where it is none."""
    if value is None:
        return None
    found = None
    if kind == "boolean":
        found = str(value).lower() if isinstance(value, bool) else None
    elif kind == "text":
        found = value if isinstance(value, str) else None
    elif kind == "date":
        found = _date(value)
    elif kind in ("integer", "float", "decimal") and not isinstance(value, bool):
        found = _number(kind, value)
    if found is None:
        raise DataError(OTHER_TYPE.format(column=name, kind=kind))
    return found


def _date(value: object) -> str | None:
    with suppress(ValueError):
        return date.fromisoformat(value).isoformat() if isinstance(value, str) else None
    return None


def _number(kind: str, value: object) -> str | None:
    """A number as text; decimals come as text, so that none is rounded."""
    with suppress(ArithmeticError, ValueError):
        exact = Decimal(value if isinstance(value, str | int) else repr(value))
        if kind != "integer":
            return repr(float(exact) + 0.0) if kind == "float" else format(exact.normalize(), "f")
        return str(int(exact)) if exact == int(exact) else None
    return None


def registered(source: Source, columns: Mapping[str, Sequence[object]]) -> Any:
    """A small table of texts and whole numbers, in the engine."""
    import pyarrow as pa

    made = {name: pa.array(values, pa.int64() if name in (POSITION, CELL) else pa.string()) for name, values in columns.items()}
    name = f"attrpriv_cells_{secrets.token_hex(8)}"
    source.engine.con.register(name, pa.table(made))
    return source.engine.table(name)


def bind_table(source: Source, columns: Mapping[str, Sequence[object]]) -> Any:
    """A small table of public numbers, in the engine."""
    import pyarrow as pa

    made = {name: pa.array(values, pa.int32() if name == CELL else pa.float64()) for name, values in columns.items()}
    name = f"attrpriv_public_{secrets.token_hex(8)}"
    source.engine.con.register(name, pa.table(made))
    return source.engine.table(name)


def _by_values(source: Source, cells: Cells, table: Any) -> Any:
    known = known_values(source, cells)
    own = {f"{RESERVED}own {k}": compared(source, table, name, cells) for k, name in enumerate(cells.columns)}
    keyed = table.mutate(**own)
    # what is missing is a value like any other
    alike = [keyed[f"{RESERVED}own {k}"].identical_to(known[f"{RESERVED}{k}"]) for k in range(len(cells.columns))]
    joined = keyed.left_join(known, alike)
    return joined.select(*table.columns, **{CELL: joined[CELL].fill_null(len(cells.values)).cast("int32")})


def _by_itself(source: Source, table: Any, name: str) -> Any:
    """A column, NaN as missing, about which an engine of the caller's knows nothing but the row at hand.

    From the statistics of a Parquet file DuckDB takes comparisons to be decided, wrongly for NaN: the cell of such a row would
    depend on the other rows. An engine of our own does without these statistics.
    """
    column = table[name]
    if source.columns[name] != "float":
        return column
    owned = source.positioned is not None
    return nan_is_missing(column if owned else column.cast("string").cast(column.type()))


def nan_is_missing(column: Any) -> Any:
    """A column of floats without NaN, which DuckDB takes for the largest number; any other column as it is."""
    return column.isnan().ifelse(None, column) if column.type().is_floating() else column


def by_cell(source: Source, table: Any, name: str, values: Sequence[str] | Sequence[int], otherwise: str | int) -> Any:
    """The secret text or number that belongs to the cell of a row: a bound list, of which the row's entry is taken."""
    import ibis

    listed = functions()["numbers" if isinstance(otherwise, int) else "texts"]
    bound = listed(_variable(source, name, list(values)))
    return ibis.cases((table[CELL] >= 0, bound[table[CELL]]), else_=otherwise)


def text(column: Any) -> Any:
    """A value as text that does not depend on where it is read; what is missing stays so."""
    kind = column.type()
    if kind.is_timestamp() and kind.timezone is not None:
        column = column.epoch_seconds()
    return column.cast("string")


def near_share(keep: int, count: int) -> tuple[float, float]:
    """Between which shares of all ranks the keep-th smallest of this many must lie."""
    share = keep / count
    reach = _REACH * math.sqrt(share * (1 - share) / count) + 20 / count
    return share - reach, share + reach


@cache
def functions() -> dict[str, Any]:
    import ibis

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def getvariable(variable: str) -> str: ...  # type: ignore[empty-body]

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def sha256(text: str) -> str: ...  # type: ignore[empty-body]

    @ibis.udf.scalar.builtin(name="getvariable", signature=(("string",), "array<string>"))
    def texts(variable): ...  # type: ignore[no-untyped-def]

    @ibis.udf.scalar.builtin(name="getvariable", signature=(("string",), "array<int64>"))
    def numbers(variable): ...  # type: ignore[no-untyped-def]

    return {"getvariable": getvariable, "texts": texts, "numbers": numbers, "sha256": sha256}


def bind(source: Source, name: str, value: str) -> Any:
    """Give the engine a secret as a bound parameter; the expression that reads it names only a variable."""
    return functions()["getvariable"](_variable(source, name, value))


def _variable(source: Source, name: str, value: str | list[Any]) -> str:
    variable = f"attrpriv_{name}_{secrets.token_hex(8)}"
    source.engine.con.execute(f"SET VARIABLE {variable} = ?", [value])
    return variable
