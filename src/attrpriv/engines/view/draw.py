"""The rows of a secret-free view: chosen by a keyed hash of the row's position or id, never of its contents.

    rank_j, place_j  =  by position: 63 and 128 bits of SHAKE-256(key), read beside the rows (`in_order`)
    digest_j         =  by a column of ids: SHA-256(key || id_j); its leading bits are the rank, its last 128 the place
    kept             =  in each cell the `keep` rows with the smallest ranks
    order            =  by place

All are as if drawn uniformly, for whoever does not know the key. Rows with equal contents move independently, and the same key
gives the same view from every kind of input. What must never change:

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
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from attrpriv.engines.conditions import check_condition
from attrpriv.engines.tables import Source, quietly, shown_name
from attrpriv.engines.view import in_order
from attrpriv.engines.view.cells import (
    CELL,
    DIGEST,
    POSITION,
    RESERVED,
    Cells,
    bind,
    by_cell,
    check_values,
    functions,
    nan_is_missing,
    near_share,
    one_of_many,
    text,
    with_cells,
)
from attrpriv.engines.view.in_order import cell_counts, drawn_in_order, fingerprint_in_order, kept_in_order, shown_in_order
from attrpriv.engines.view.sorted_rows import TOO_FAR, require_type, too_far, with_public_values
from attrpriv.errors import DataError, UsageError

__all__ = ["Cells", "Drawn", "draw", "nan_is_missing", "require_same_table", "view_table"]

OUT_OF_RANGE = (
    "data: the composition of the table must lie in the range that the policy states. Got one that does not. This is outside "
    "the guarantee: correct the policy (values as the table writes them, spaces included), or treat this message as an answer "
    "about the table."
)
TOO_FEW = (
    "data: every value that the view shows must have the rows that are kept of it. Got a table in which one has fewer. The "
    "promise allows for this failure, and it is recorded. Another reference (values as the table writes them, spaces included; "
    "a lower least_density) needs a new ledger, and is outside the promise: this failure itself says something about the table."
)
NO_CELL = (
    "data: every row must be in a cell that the policy names. Got one that is not. "
    "Name its category, or add `other` with a range."
)
NOT_UNIQUE = "row_id: every row must have its own value, none missing. Got a column in which some are missing or repeated."
ENGINE_FAILED = "data: the engine could not read the table for the view. Check that the file is complete."
CHANGED = "data: the table must be the one the view was drawn from. Got one that is not."

_HEX = 64
_IN_ORDER = "SHAKE-256"


class TooFewRowsError(DataError):
    """A reference view could not be drawn: an outcome that its promise allows for, and that is recorded like any other."""


@dataclass(frozen=True)
class Drawn:
    """The secret state of a view: with it the same rows are chosen again, from the same table and no other."""

    key: str = field(repr=False)
    thresholds: tuple[str, ...] = field(repr=False)
    fingerprint: str = field(repr=False)
    rows: int | None = None
    """How many positions were ranked in order; None: digests, of ids, or of positions in a view that 0.1.0 drew."""

    def to_json(self) -> dict[str, Any]:
        ranked = {} if self.rows is None else {"ranks": _IN_ORDER, "rows": self.rows}
        return {"key": self.key, "thresholds": list(self.thresholds), "fingerprint": self.fingerprint, **ranked}

    @classmethod
    def from_json(cls, value: Any) -> Drawn:
        """Raises KeyError or TypeError where the value is not one that this version reads."""
        thresholds = tuple(str(threshold) for threshold in value["thresholds"])
        rows = {None: None, _IN_ORDER: value.get("rows")}[value.get("ranks")]
        return cls(str(value["key"]), thresholds, str(value["fingerprint"]), None if rows is None else int(rows))


def draw(source: Source, cells: Cells, n: int, row_id: str | None, key: str | None = None) -> Drawn:
    """Choose the rows: count the cells, check their ranges, find each cell's threshold. Two passes.

    The key comes from the operating system; only tests give one.
    """
    check_schema(source, cells, row_id)
    require_type(source, cells)
    outcome = quietly(lambda: _near_enough(source, cells, n, row_id, secrets.token_hex(32) if key is None else key))
    if isinstance(outcome, Drawn):
        return outcome
    raise announced(cells, n, outcome)


def announced(cells: Cells, n: int, wrong: str | int | None) -> DataError:
    """What is wrong with a table, in a fixed text; a number of rows that is not n; None: the engine failed."""
    if isinstance(wrong, int):
        return DataError(f"rows: must be the number of rows of the table, {wrong}. Got {n}.")
    if wrong == "range" and cells.columns:
        return TooFewRowsError(TOO_FEW if cells.in_order is None else TOO_FAR)
    texts = {None: ENGINE_FAILED, "range": OUT_OF_RANGE, "cell": NO_CELL, "row_id": NOT_UNIQUE, "changed": CHANGED}
    return DataError(texts[wrong])


def check_schema(source: Source, cells: Cells, row_id: str | None) -> None:
    """Raise DataError, from the schema alone, where no view of this table can be drawn."""
    reserved = [name for name in source.columns if name.lower().startswith(RESERVED)]
    if reserved:
        raise DataError(f"data: no column's name may begin with {RESERVED!r}. Got {reserved[0]!r}. Rename that column.")
    for condition in cells.conditions:
        if condition is not None:
            check_condition(source.columns, condition)
    absent = [name for name in cells.columns if name not in source.columns]
    if absent:
        raise DataError(f"protect: must be one of the table's columns. Got {shown_name(absent[0])}.")
    if cells.in_order is not None and source.engine.name != "duckdb":
        raise DataError("reference.sorted: needs a table that DuckDB reads: a file, or a table in memory. Got another engine.")
    check_values(source, cells)
    if row_id is None and source.positioned is None:
        raise DataError("row_id: must name a column unique to each row, because this table has no row positions. Got none.")
    if row_id in cells.columns:
        raise DataError("row_id: must not be a hidden column, whose repeated values would show. Name another one.")
    if row_id is not None and row_id not in source.columns:
        raise DataError(f"row_id: must be one of the table's columns. Got {shown_name(row_id)}.")


def columns_left(source: Source, row_id: str | None, identifiers: Sequence[str]) -> tuple[str, ...]:
    """The columns of the view, or UsageError if there are none."""
    left = tuple(name for name in source.columns if name not in identifiers and name != row_id)
    if not left:
        raise UsageError("identifiers: must leave some column for the view. Got all of them.")
    return left


def _near_enough(
    source: Source, cells: Cells, n: int, row_id: str | None, key: str
) -> Drawn | Literal["range", "cell", "row_id"] | int:
    """What `_draw` gives; rows of a sorted number that are too far from their public values are a failure like too few."""
    drawn = _draw(source, cells, n, row_id, key)
    return "range" if isinstance(drawn, Drawn) and too_far(source, cells, _own_rows(source, cells, drawn, row_id)) else drawn


def _draw(
    source: Source, cells: Cells, n: int, row_id: str | None, key: str
) -> Drawn | Literal["range", "cell", "row_id"] | int:
    """The drawn rows, or what is wrong; a number of rows that is not n is public and comes back as it is."""
    if row_id is None:
        return _draw_in_order(source, cells, n, key)
    bound = bind(source, "key", key)
    table = digested(source, cells, row_id, bound)
    counts, fingerprint = _read_all(source, table, bound)
    if sum(counts.values()) == n and not has_unique_ids(source, row_id, n):
        return "row_id"
    found = checked(cells, n, counts)
    if not isinstance(found, list):
        return found
    thresholds = _thresholds(source, table, cells.keep, found)
    return Drawn(key, thresholds, sealed(fingerprint, thresholds))


def _draw_in_order(source: Source, cells: Cells, n: int, key: str) -> Drawn | Literal["range", "cell"] | int:
    found = checked(cells, n, cell_counts(source, cells))
    if not isinstance(found, list):
        return found
    drawn = drawn_in_order(source, cells, found, key)
    if drawn is None:
        return _draw_in_order(source, cells, n, secrets.token_hex(32))
    thresholds, fingerprint = drawn
    return Drawn(key, thresholds, sealed(fingerprint, thresholds), n)


def checked(cells: Cells, n: int, counts: Mapping[int, int]) -> list[int] | Literal["range", "cell"] | int:
    """The count of each cell, or what is wrong with them."""
    if sum(counts.values()) != n:
        return sum(counts.values())
    if counts.get(-1, 0):
        return "cell"
    found = [counts.get(k, 0) for k in range(len(cells.keep))]
    # Of a reference view no count is too large: whatever is more than the kept rows is never shown.
    fits = all(low <= count <= high for count, low, high in zip(found, cells.low, cells.high, strict=True))
    return found if fits else "range"


def require_same_table(source: Source, cells: Cells, drawn: Drawn, row_id: str | None) -> None:
    """Raise DataError if the view was drawn from another table, or from these rows in another order. One pass."""
    check_schema(source, cells, row_id)
    found = quietly(lambda: _fingerprint(source, cells, drawn, row_id))
    if found is None:
        raise DataError(ENGINE_FAILED)
    if sealed(found, drawn.thresholds) != drawn.fingerprint:
        raise DataError(CHANGED)


def sealed(fingerprint: str, thresholds: Sequence[str]) -> str:
    """The fingerprint of the table together with the thresholds, which the key alone does not fix."""
    return hashlib.sha256(" ".join((fingerprint, *thresholds)).encode()).hexdigest()


def _fingerprint(source: Source, cells: Cells, drawn: Drawn, row_id: str | None) -> str:
    if drawn.rows is not None and row_id is None:
        return fingerprint_in_order(source, cells, drawn.key, drawn.thresholds, drawn.rows)
    bound = bind(source, "key", drawn.key)
    return _read_all(source, digested(source, cells, row_id, bound), bound)[1]


def _read_all(source: Source, table: Any, key: Any) -> tuple[dict[int, int], str]:
    """How many rows each cell has, and a keyed fingerprint of all rows, each with its position and its cell."""
    grouped = table.group_by(CELL).aggregate(rows=table.count(), mark=row_mark(source, table, key).bit_xor())
    total, counts = 0, {}
    for row in source.engine.to_pyarrow(grouped).to_pylist():
        counts[int(row[CELL])] = int(row["rows"])
        total ^= int(row["mark"])
    return counts, f"{total:016x}"


def row_mark(source: Source, table: Any, key: Any) -> Any:
    """64 keyed bits of a row with its position and its cell; combined over all rows they are the fingerprint."""
    import ibis

    values = [text(table[name]).fill_null("\x1e") for name in (POSITION, CELL, *source.columns)]
    joined = ibis.literal("\x1f").join([key, *values])  # in one step: a chain of || would copy its beginning for each column
    return _number(functions()["sha256"](joined), 0)


def has_unique_ids(source: Source, row_id: str, n: int) -> bool:
    # What is hashed is the text. nunique leaves missing values out, so they show as a lower number.
    return int(source.run(source.table.aggregate(ids=source.table[row_id].cast("string").nunique()))["ids"]) == n


def _thresholds(source: Source, table: Any, keep: Sequence[int], counts: Sequence[int]) -> tuple[str, ...]:
    """The keep-th smallest digest of each cell: only digests near where it must lie are fetched."""
    windows = [digest_window(kept, count) for kept, count in zip(keep, counts, strict=True)]
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


def digest_window(keep: int, count: int) -> tuple[str, str]:
    if keep in (0, count):
        return "g", "g"  # above every digest: nothing to fetch
    low, high = near_share(keep, count)
    return _hexadecimal(low), _hexadecimal(high)


def _hexadecimal(share: float) -> str:
    return "" if share <= 0 else "g" if share >= 1 else f"{int(share * 2.0**52) << 204:064x}"


def _near(source: Source, table: Any, windows: Sequence[tuple[str, str]]) -> dict[int, tuple[int, list[str]]]:
    """For each cell, how many digests lie below its window, and those inside. A window tells a count, so it is bound."""
    digest = table[DIGEST]
    low = by_cell(source, table, "window", [a for a, _ in windows], "")
    high = by_cell(source, table, "window", [b for _, b in windows], "")
    inside = (digest >= low) & (digest < high)
    grouped = table.group_by(CELL).aggregate(below=(digest < low).sum(), near=digest.collect(where=inside))
    rows = source.engine.to_pyarrow(grouped).to_pylist()
    return {int(row[CELL]): (int(row["below"]), list(row["near"] or [])) for row in rows}


# The table, with cells and digests.


def digested(source: Source, cells: Cells, row_id: str | None, key: Any) -> Any:
    if row_id is None:
        assert source.positioned is not None  # check_schema
        table = source.positioned(POSITION)
    else:
        table = source.table.mutate(**{POSITION: source.table[row_id]})
    digest = functions()["sha256"](key + table[POSITION].cast("string"))
    return with_cells(source, cells, table).mutate(**{DIGEST: digest})


def _number(digest: Any, start: int) -> Any:
    """64 bits of a digest, from this hexadecimal digit on."""
    return ("0x" + digest.substr(start, 16)).cast("uint64")


def view_table(
    source: Source,
    cells: Cells,
    drawn: Drawn,
    row_id: str | None,
    identifiers: Sequence[str],
    only: Callable[[Any], Any] | None = None,
) -> Any:
    """The view as a lazy Ibis table: kept rows in shuffled order, without identifiers; `only` some, for a part of it."""
    columns = columns_left(source, row_id, identifiers)
    check_schema(source, cells, row_id)
    rows = _rows_shown if only is None else _kept_rows  # a part is cut within cells, so that it needs them again
    view = quietly(lambda: _bound(source, _shown(source, cells, rows(source, cells, drawn, row_id), columns, only)))
    if view is None:
        raise DataError(ENGINE_FAILED)
    return view


def _rows_shown(source: Source, cells: Cells, drawn: Drawn, row_id: str | None) -> Any:
    if drawn.rows is not None and row_id is None and cells.in_order is None:
        return shown_in_order(source, cells, drawn.key, drawn.thresholds, drawn.rows)
    return _kept_rows(source, cells, drawn, row_id)


def _shown(source: Source, cells: Cells, table: Any, columns: Sequence[str], only: Callable[[Any], Any] | None) -> Any:
    table = table if only is None else table.filter(only(table))
    first, second = places_of(table)
    # The first half of a place decides the part, and must not decide the order in it.
    order = [first, second] if only is None else [second, first]
    there = table[in_order.RANK] >= 0 if in_order.RANK in table.columns else table[DIGEST] != ""
    own = [name for name in cells.columns if cells.in_order is None or name != cells.in_order.name]
    values = {name: one_of_many(table[name]) if name in own else table[name] for name in columns}
    return table.order_by(order).select(**{name: _plain(values[name], source.columns[name], there) for name in columns})


def places_of(table: Any) -> tuple[Any, Any]:
    """The two halves of each kept row's place, 64 bits each."""
    if in_order.RANK in table.columns:
        return table[in_order.FIRST], table[in_order.SECOND]
    return _number(table[DIGEST], 32), _number(table[DIGEST], 48)


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
    return with_public_values(source, cells, _own_rows(source, cells, drawn, row_id))


def _own_rows(source: Source, cells: Cells, drawn: Drawn, row_id: str | None) -> Any:
    """The kept rows with their own numbers, which nobody may see."""
    if drawn.rows is not None and row_id is None:
        return kept_in_order(source, cells, drawn.key, drawn.thresholds, drawn.rows)
    table = digested(source, cells, row_id, bind(source, "key", drawn.key))
    return table.filter(table[DIGEST] <= by_cell(source, table, "limit", drawn.thresholds, ""))


def cell_number(table: Any) -> Any:
    """The number of the cell of a kept row."""
    return table[CELL]


def _plain(value: Any, kind: str, there: Any) -> Any:
    """A column without what it may bring along from rows that are not kept.

    An enumeration names values that no kept row has. And DuckDB knows from the statistics of the whole file whether a column
    has missing values, and would write "required" or "optional" accordingly: so every column is made one that could have some.
    """
    import ibis

    return ibis.cases((there, value.concat("") if kind == "text" else value), else_=None)
