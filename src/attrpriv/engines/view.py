"""The rows of a secret-free view: chosen by a keyed hash of the row's position, never of its contents.

    digest_j  =  SHA-256(key || position_j)           256 bits, as if drawn uniformly, for whoever does not know the key
    kept      =  in each cell the `keep` rows with the smallest digests
    order     =  by the last 128 bits of the digest; the choice is made on the leading bits

Rows with equal contents move independently, and the same key gives the same view from every kind of input. What must never
change:

* what leaves is a function of the kept rows in their new order. Rows that were not kept do not show in it, not even in a
  column's nullability, a dictionary, or the last digit of a sum.
* key and thresholds, and whatever tells about a threshold, reach the engine as bound parameters and stay in its session
  variables. No SQL text, log or expression that leaves this module holds them: a threshold is about keep/count, so it would
  tell the count.
* the same key on another table, or on the same rows in another order, would be a second draw. So a fingerprint of the table is
  part of the secret state, and a table that does not have it is refused.
* a cell count outside its public range, or a row in no cell, is an announced failure with a fixed text.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from attrpriv.engines.conditions import check_condition, holds
from attrpriv.engines.tables import Source, quietly, shown_name
from attrpriv.errors import DataError, UsageError
from attrpriv.queries.conditions import Condition, columns_of

OUT_OF_RANGE = (
    "data: the composition of the table must lie in the range that the policy states. Got one that does not. This is outside "
    "the guarantee: correct the policy, or treat this message as an answer about the table."
)
NO_CELL = (
    "data: every row must be in a cell that the policy names. Got one that is not. "
    "Name its category, or add `other` with a range."
)
NOT_UNIQUE = "row_id: every row must have its own value, none missing. Got a column in which some are missing or repeated."
ENGINE_FAILED = "data: the engine could not read the table for the view. Check that the file is complete."
CHANGED = "data: the table must be the one the view was drawn from. Got one that is not."

_RESERVED = "attrpriv "
_POSITION = "attrpriv position"
_CELL = "attrpriv cell"
_DIGEST = "attrpriv digest"
_HEX = 64
# The keep-th smallest of many uniform digests lies within this many standard deviations of its mean, but once in 10^18.
_REACH = 9.0


@dataclass(frozen=True)
class Cells:
    """The cells of a composition in order; the one without a condition takes the rows of no other."""

    conditions: tuple[Condition | None, ...]
    keep: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]


@dataclass(frozen=True)
class Drawn:
    """The secret state of a view: with it the same rows are chosen again, from the same table and no other."""

    key: str = field(repr=False)
    thresholds: tuple[str, ...] = field(repr=False)
    fingerprint: str = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key, "thresholds": list(self.thresholds), "fingerprint": self.fingerprint}

    @classmethod
    def from_json(cls, value: Any) -> Drawn:
        thresholds = tuple(str(threshold) for threshold in value["thresholds"])
        return cls(str(value["key"]), thresholds, str(value["fingerprint"]))


def draw(source: Source, cells: Cells, n: int, row_id: str | None, key: str | None = None) -> Drawn:
    """Choose the rows: count the cells, check their ranges, find each cell's threshold. Two passes.

    The key comes from the operating system; only tests give one.
    """
    check_schema(source, cells, row_id)
    outcome = quietly(lambda: _draw(source, cells, n, row_id, secrets.token_hex(32) if key is None else key))
    if isinstance(outcome, Drawn):
        return outcome
    if isinstance(outcome, int):
        raise DataError(f"rows: must be the number of rows of the table, {outcome}. Got {n}.")
    texts = {"range": OUT_OF_RANGE, "cell": NO_CELL, "row_id": NOT_UNIQUE}
    raise DataError(ENGINE_FAILED if outcome is None else texts[outcome])


def check_schema(source: Source, cells: Cells, row_id: str | None) -> None:
    """Raise DataError, from the schema alone, where no view of this table can be drawn."""
    reserved = [name for name in source.columns if name.lower().startswith(_RESERVED)]
    if reserved:
        raise DataError(f"data: no column's name may begin with {_RESERVED!r}. Got {reserved[0]!r}. Rename that column.")
    for condition in cells.conditions:
        if condition is not None:
            check_condition(source.columns, condition)
    if source.engine.name != "duckdb":
        raise DataError(
            "data: a view needs a table that DuckDB reads: a file, a pandas, Polars or Arrow table. Got another engine."
        )
    if row_id is None and source.positioned is None:
        raise DataError("row_id: must name a column unique to each row, because this table has no row positions. Got none.")
    if row_id is not None and row_id not in source.columns:
        raise DataError(f"row_id: must be one of the table's columns. Got {shown_name(row_id)}.")


def columns_left(source: Source, row_id: str | None, identifiers: Sequence[str]) -> tuple[str, ...]:
    """The columns of the view, or UsageError if there are none."""
    left = tuple(name for name in source.columns if name not in identifiers and name != row_id)
    if not left:
        raise UsageError("identifiers: must leave some column for the view. Got all of them.")
    return left


def _draw(
    source: Source, cells: Cells, n: int, row_id: str | None, key: str
) -> Drawn | Literal["range", "cell", "row_id"] | int:
    """The drawn rows, or what is wrong; a number of rows that is not n is public and comes back as it is."""
    bound = _bind(source, "key", key)
    table = _digested(source, cells, row_id, bound)
    counts, fingerprint = _read_all(source, table, bound)
    if sum(counts.values()) != n:
        return sum(counts.values())
    if row_id is not None and not _unique(source, row_id, n):
        return "row_id"
    if counts.get(-1, 0):
        return "cell"
    found = [counts.get(k, 0) for k in range(len(cells.keep))]
    if any(not low <= count <= high for count, low, high in zip(found, cells.low, cells.high, strict=True)):
        return "range"
    thresholds = _thresholds(source, table, cells.keep, found)
    return Drawn(key, thresholds, _sealed(fingerprint, thresholds))


def require_same_table(source: Source, cells: Cells, drawn: Drawn, row_id: str | None) -> None:
    """Raise DataError if the view was drawn from another table, or from these rows in another order. One pass."""
    check_schema(source, cells, row_id)
    found = quietly(lambda: _fingerprint(source, cells, drawn.key, row_id))
    if found is None:
        raise DataError(ENGINE_FAILED)
    if _sealed(found, drawn.thresholds) != drawn.fingerprint:
        raise DataError(CHANGED)


def _sealed(fingerprint: str, thresholds: Sequence[str]) -> str:
    """The fingerprint of the table together with the thresholds, which the key alone does not fix."""
    return hashlib.sha256(" ".join((fingerprint, *thresholds)).encode()).hexdigest()


def _fingerprint(source: Source, cells: Cells, key: str, row_id: str | None) -> str:
    bound = _bind(source, "key", key)
    return _read_all(source, _digested(source, cells, row_id, bound), bound)[1]


def _read_all(source: Source, table: Any, key: Any) -> tuple[dict[int, int], str]:
    """How many rows each cell has, and a keyed fingerprint of all rows, each with its position and its cell."""
    import ibis

    parts = [key, _text(table[_POSITION]), table[_CELL].cast("string"), *(_text(table[name]) for name in source.columns)]
    text = ibis.literal("\x1f").join(parts)  # in one step: a chain of || would copy its beginning for each column
    mark = _number(_functions()["sha256"](text), 0)
    grouped = table.group_by(_CELL).aggregate(rows=table.count(), mark=mark.bit_xor())
    total, counts = 0, {}
    for row in source.engine.to_pyarrow(grouped).to_pylist():
        counts[int(row[_CELL])] = int(row["rows"])
        total ^= int(row["mark"])
    return counts, f"{total:016x}"


def _text(column: Any) -> Any:
    """A value as text that does not depend on where it is read."""
    kind = column.type()
    if kind.is_timestamp() and kind.timezone is not None:
        column = column.epoch_seconds()
    return column.cast("string").fill_null("\x1e")


def _unique(source: Source, row_id: str, n: int) -> bool:
    # What is hashed is the text. nunique leaves missing values out, so they show as a lower number.
    return int(source.run(source.table.aggregate(ids=source.table[row_id].cast("string").nunique()))["ids"]) == n


def _thresholds(source: Source, table: Any, keep: Sequence[int], counts: Sequence[int]) -> tuple[str, ...]:
    """The keep-th smallest digest of each cell: only digests near where it must lie are fetched."""
    windows = [_window(kept, count) for kept, count in zip(keep, counts, strict=True)]
    near = _near(source, table, windows)
    chosen = []
    for k, (kept, count) in enumerate(zip(keep, counts, strict=True)):
        if kept == 0 or kept == count:
            chosen.append("" if kept == 0 else "f" * _HEX)
            continue
        below, digests = near.get(k, (0, []))
        if not below < kept <= below + len(digests):  # once in 10^18: look at all of them
            below, digests = _near(source, table, [("", "g")] * len(windows))[k]
        chosen.append(sorted(digests)[kept - below - 1])
    return tuple(chosen)


def _window(keep: int, count: int) -> tuple[str, str]:
    if keep in (0, count):
        return "g", "g"  # above every digest: nothing to fetch
    share = keep / count
    reach = _REACH * math.sqrt(share * (1 - share) / count) + 20 / count
    return _hexadecimal(share - reach), _hexadecimal(share + reach)


def _hexadecimal(share: float) -> str:
    return "" if share <= 0 else "g" if share >= 1 else f"{int(share * 2.0**52) << 204:064x}"


def _near(source: Source, table: Any, windows: Sequence[tuple[str, str]]) -> dict[int, tuple[int, list[str]]]:
    """For each cell, how many digests lie below its window, and those inside. A window tells a count, so it is bound."""
    digest = table[_DIGEST]
    low = _by_cell(table, [_bind(source, "window", a) for a, _ in windows])
    high = _by_cell(table, [_bind(source, "window", b) for _, b in windows])
    inside = (digest >= low) & (digest < high)
    grouped = table.group_by(_CELL).aggregate(below=(digest < low).sum(), near=digest.collect(where=inside))
    rows = source.engine.to_pyarrow(grouped).to_pylist()
    return {int(row[_CELL]): (int(row["below"]), list(row["near"] or [])) for row in rows}


def _by_cell(table: Any, values: Sequence[Any]) -> Any:
    import ibis

    return ibis.cases(*((table[_CELL] == k, value) for k, value in enumerate(values)), else_="")


# The table, with cells and digests.


def _digested(source: Source, cells: Cells, row_id: str | None, key: Any) -> Any:
    import ibis

    if row_id is None:
        assert source.positioned is not None  # check_schema
        table = source.positioned(_POSITION)
    else:
        table = source.table.mutate(**{_POSITION: source.table[row_id]})
    read = {name for condition in cells.conditions if condition is not None for name in columns_of(condition)}
    columns = {name: _by_itself(source, table, name) for name in read}
    named = [(holds(columns, condition), k) for k, condition in enumerate(cells.conditions) if condition is not None]
    rest = next((k for k, condition in enumerate(cells.conditions) if condition is None), -1)
    cell = ibis.cases(*named, else_=rest) if named else ibis.literal(rest)
    digest = _functions()["sha256"](key + table[_POSITION].cast("string"))
    return table.mutate(**{_CELL: cell.cast("int32"), _DIGEST: digest})


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


def _number(digest: Any, start: int) -> Any:
    """64 bits of a digest, from this hexadecimal digit on."""
    return ("0x" + digest.substr(start, 16)).cast("uint64")


@cache
def _functions() -> dict[str, Any]:
    import ibis

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def getvariable(variable: str) -> str: ...  # type: ignore[empty-body]

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def sha256(text: str) -> str: ...  # type: ignore[empty-body]

    return {"getvariable": getvariable, "sha256": sha256}


def _bind(source: Source, name: str, value: str) -> Any:
    """Give the engine a secret as a bound parameter; the expression that reads it names only a variable."""
    variable = f"attrpriv_{name}_{secrets.token_hex(8)}"
    source.engine.con.execute(f"SET VARIABLE {variable} = ?", [value])
    return _functions()["getvariable"](variable)


def view_table(source: Source, cells: Cells, drawn: Drawn, row_id: str | None, identifiers: Sequence[str]) -> Any:
    """The view as a lazy Ibis table: kept rows in shuffled order, without identifiers."""
    columns = columns_left(source, row_id, identifiers)
    table = kept_rows(source, cells, drawn, row_id)
    digest = table[_DIGEST]
    shown = {name: _plain(table, name, source.columns[name]) for name in columns}
    view = quietly(lambda: _bound(source, table.order_by([_number(digest, 32), _number(digest, 48)]).select(**shown)))
    if view is None:
        raise DataError(ENGINE_FAILED)
    return view


def _bound(source: Source, view: Any) -> Any:
    """The same expression with a table in memory replaced by its name in the engine.

    Ibis would run a table in memory on an engine of its own choice, which does not know the key and would keep no row.
    """
    import ibis.expr.operations as operations

    named = {}
    for held in view.op().find(operations.InMemoryTable):
        name = f"attrpriv_rows_{secrets.token_hex(8)}"
        source.engine.con.register(name, held.data.to_pyarrow(held.schema))
        named[held] = source.engine.table(name).op()
    return view.op().replace(named).to_expr() if named else view


def kept_rows(source: Source, cells: Cells, drawn: Drawn, row_id: str | None) -> Any:
    """The kept rows with their cell's number; for aggregates, which need no order."""
    check_schema(source, cells, row_id)
    table = quietly(lambda: _kept_rows(source, cells, drawn, row_id))
    if table is None:
        raise DataError(ENGINE_FAILED)
    return table


def _kept_rows(source: Source, cells: Cells, drawn: Drawn, row_id: str | None) -> Any:
    table = _digested(source, cells, row_id, _bind(source, "key", drawn.key))
    limits = [_bind(source, "limit", threshold) for threshold in drawn.thresholds]
    return table.filter(table[_DIGEST] <= _by_cell(table, limits))


def cell_number(table: Any) -> Any:
    """The number of the cell of a kept row."""
    return table[_CELL]


def _plain(table: Any, name: str, kind: str) -> Any:
    """A column without what it may bring along from rows that are not kept.

    An enumeration names values that no kept row has. And DuckDB knows from the statistics of the whole file whether a column
    has missing values, and would write "required" or "optional" accordingly: so every column is made one that could have some.
    """
    import ibis

    column = table[name].concat("") if kind == "text" else table[name]
    return ibis.cases((table[_DIGEST] != "", column), else_=None)
