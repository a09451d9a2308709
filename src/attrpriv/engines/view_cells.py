"""The cells of a view, and how a secret reaches the engine.

What must never change: the cell of a row is a function of that row alone. A secret is a bound parameter and stays in a session
variable; no SQL text, log or expression holds it.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from attrpriv.engines.conditions import holds
from attrpriv.engines.tables import Source
from attrpriv.queries.conditions import Condition, columns_of

RESERVED = "attrpriv "
POSITION = RESERVED + "position"
CELL = RESERVED + "cell"
# The keep-th smallest of many uniform ranks lies within this many standard deviations of its mean, but once in 10^18.
_REACH = 9.0


@dataclass(frozen=True)
class Cells:
    """The cells of a composition in order; the one without a condition takes the rows of no other."""

    conditions: tuple[Condition | None, ...]
    keep: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]


def with_cells(source: Source, cells: Cells, table: Any) -> Any:
    """The table, which is the source's with some columns more, and each row's cell; -1 where it has none."""
    import ibis

    read = {name for condition in cells.conditions if condition is not None for name in columns_of(condition)}
    columns = {name: _by_itself(source, table, name) for name in read}
    named = [(holds(columns, condition), k) for k, condition in enumerate(cells.conditions) if condition is not None]
    rest = next((k for k, condition in enumerate(cells.conditions) if condition is None), -1)
    cell = ibis.cases(*named, else_=rest) if named else ibis.literal(rest)
    return table.mutate(**{CELL: cell.cast("int32")})


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


def by_cell(table: Any, values: Sequence[Any], otherwise: object) -> Any:
    """The value that belongs to the cell of a row."""
    import ibis

    return ibis.cases(*((table[CELL] == k, value) for k, value in enumerate(values)), else_=otherwise)


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

    return {"getvariable": getvariable, "sha256": sha256}


def bind(source: Source, name: str, value: str) -> Any:
    """Give the engine a secret as a bound parameter; the expression that reads it names only a variable."""
    variable = f"attrpriv_{name}_{secrets.token_hex(8)}"
    source.engine.con.execute(f"SET VARIABLE {variable} = ?", [value])
    return functions()["getvariable"](variable)
