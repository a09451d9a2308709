"""The rows of a secret-free view: chosen by a keyed hash of the row's position or id, never of its contents.

    rank_j, place_j  =  by position: 63 and 128 bits of SHAKE-256(key), read beside the rows (`view_in_order`)
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from attrpriv.engines.conditions import check_condition
from attrpriv.engines.tables import Source, quietly, shown_name
from attrpriv.engines.view_cells import (
    CELL,
    POSITION,
    RESERVED,
    Cells,
    bind,
    by_cell,
    functions,
    nan_is_missing,
    near_share,
    text,
    with_cells,
)
from attrpriv.engines.view_in_order import cell_counts, drawn_in_order, fingerprint_in_order, kept_in_order
from attrpriv.errors import DataError, UsageError

__all__ = ["Cells", "Drawn", "draw", "nan_is_missing", "require_same_table", "view_table"]

OUT_OF_RANGE = (
    "data: the composition of the table must lie in the range that the policy states. Got one that does not. This is outside "
    "the guarantee: correct the policy (values as the table writes them, spaces included), or treat this message as an answer "
    "about the table."
)
NO_CELL = (
    "data: every row must be in a cell that the policy names. Got one that is not. "
    "Name its category, or add `other` with a range."
)
NOT_UNIQUE = "row_id: every row must have its own value, none missing. Got a column in which some are missing or repeated."
ENGINE_FAILED = "data: the engine could not read the table for the view. Check that the file is complete."
CHANGED = "data: the table must be the one the view was drawn from. Got one that is not."

_DIGEST = RESERVED + "digest"
_HEX = 64
_IN_ORDER = "SHAKE-256"


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
    outcome = quietly(lambda: _draw(source, cells, n, row_id, secrets.token_hex(32) if key is None else key))
    if isinstance(outcome, Drawn):
        return outcome
    if isinstance(outcome, int):
        raise DataError(f"rows: must be the number of rows of the table, {outcome}. Got {n}.")
    texts = {"range": OUT_OF_RANGE, "cell": NO_CELL, "row_id": NOT_UNIQUE}
    raise DataError(ENGINE_FAILED if outcome is None else texts[outcome])


def check_schema(source: Source, cells: Cells, row_id: str | None) -> None:
    """Raise DataError, from the schema alone, where no view of this table can be drawn."""
    reserved = [name for name in source.columns if name.lower().startswith(RESERVED)]
    if reserved:
        raise DataError(f"data: no column's name may begin with {RESERVED!r}. Got {reserved[0]!r}. Rename that column.")
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
    if row_id is None:
        return _draw_in_order(source, cells, n, key)
    bound = bind(source, "key", key)
    table = _digested(source, cells, row_id, bound)
    counts, fingerprint = _read_all(source, table, bound)
    if sum(counts.values()) == n and not _unique(source, row_id, n):
        return "row_id"
    found = _checked(cells, n, counts)
    if not isinstance(found, list):
        return found
    thresholds = _thresholds(source, table, cells.keep, found)
    return Drawn(key, thresholds, _sealed(fingerprint, thresholds))


def _draw_in_order(source: Source, cells: Cells, n: int, key: str) -> Drawn | Literal["range", "cell"] | int:
    found = _checked(cells, n, cell_counts(source, cells))
    if not isinstance(found, list):
        return found
    drawn = drawn_in_order(source, cells, found, key)
    if drawn is None:
        return _draw_in_order(source, cells, n, secrets.token_hex(32))
    thresholds, fingerprint = drawn
    return Drawn(key, thresholds, _sealed(fingerprint, thresholds), n)


def _checked(cells: Cells, n: int, counts: Mapping[int, int]) -> list[int] | Literal["range", "cell"] | int:
    """The count of each cell, or what is wrong with them."""
    if sum(counts.values()) != n:
        return sum(counts.values())
    if counts.get(-1, 0):
        return "cell"
    found = [counts.get(k, 0) for k in range(len(cells.keep))]
    fits = all(low <= count <= high for count, low, high in zip(found, cells.low, cells.high, strict=True))
    return found if fits else "range"


def require_same_table(source: Source, cells: Cells, drawn: Drawn, row_id: str | None) -> None:
    """Raise DataError if the view was drawn from another table, or from these rows in another order. One pass."""
    check_schema(source, cells, row_id)
    found = quietly(lambda: _fingerprint(source, cells, drawn, row_id))
    if found is None:
        raise DataError(ENGINE_FAILED)
    if _sealed(found, drawn.thresholds) != drawn.fingerprint:
        raise DataError(CHANGED)


def _sealed(fingerprint: str, thresholds: Sequence[str]) -> str:
    """The fingerprint of the table together with the thresholds, which the key alone does not fix."""
    return hashlib.sha256(" ".join((fingerprint, *thresholds)).encode()).hexdigest()


def _fingerprint(source: Source, cells: Cells, drawn: Drawn, row_id: str | None) -> str:
    if drawn.rows is not None and row_id is None:
        return fingerprint_in_order(source, cells, drawn.key, drawn.rows)
    bound = bind(source, "key", drawn.key)
    return _read_all(source, _digested(source, cells, row_id, bound), bound)[1]


def _read_all(source: Source, table: Any, key: Any) -> tuple[dict[int, int], str]:
    """How many rows each cell has, and a keyed fingerprint of all rows, each with its position and its cell."""
    import ibis

    values = [text(table[name]).fill_null("\x1e") for name in (POSITION, CELL, *source.columns)]
    joined = ibis.literal("\x1f").join([key, *values])  # in one step: a chain of || would copy its beginning for each column
    mark = _number(functions()["sha256"](joined), 0)
    grouped = table.group_by(CELL).aggregate(rows=table.count(), mark=mark.bit_xor())
    total, counts = 0, {}
    for row in source.engine.to_pyarrow(grouped).to_pylist():
        counts[int(row[CELL])] = int(row["rows"])
        total ^= int(row["mark"])
    return counts, f"{total:016x}"


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
    low, high = near_share(keep, count)
    return _hexadecimal(low), _hexadecimal(high)


def _hexadecimal(share: float) -> str:
    return "" if share <= 0 else "g" if share >= 1 else f"{int(share * 2.0**52) << 204:064x}"


def _near(source: Source, table: Any, windows: Sequence[tuple[str, str]]) -> dict[int, tuple[int, list[str]]]:
    """For each cell, how many digests lie below its window, and those inside. A window tells a count, so it is bound."""
    digest = table[_DIGEST]
    low = by_cell(table, [bind(source, "window", a) for a, _ in windows], "")
    high = by_cell(table, [bind(source, "window", b) for _, b in windows], "")
    inside = (digest >= low) & (digest < high)
    grouped = table.group_by(CELL).aggregate(below=(digest < low).sum(), near=digest.collect(where=inside))
    rows = source.engine.to_pyarrow(grouped).to_pylist()
    return {int(row[CELL]): (int(row["below"]), list(row["near"] or [])) for row in rows}


# The table, with cells and digests.


def _digested(source: Source, cells: Cells, row_id: str | None, key: Any) -> Any:
    if row_id is None:
        assert source.positioned is not None  # check_schema
        table = source.positioned(POSITION)
    else:
        table = source.table.mutate(**{POSITION: source.table[row_id]})
    digest = functions()["sha256"](key + table[POSITION].cast("string"))
    return with_cells(source, cells, table).mutate(**{_DIGEST: digest})


def _number(digest: Any, start: int) -> Any:
    """64 bits of a digest, from this hexadecimal digit on."""
    return ("0x" + digest.substr(start, 16)).cast("uint64")


def view_table(source: Source, cells: Cells, drawn: Drawn, row_id: str | None, identifiers: Sequence[str]) -> Any:
    """The view as a lazy Ibis table: kept rows in shuffled order, without identifiers."""
    columns = columns_left(source, row_id, identifiers)
    table = kept_rows(source, cells, drawn, row_id)
    view = quietly(lambda: _bound(source, _shown(source, table, columns)))
    if view is None:
        raise DataError(ENGINE_FAILED)
    return view


def _shown(source: Source, table: Any, columns: Sequence[str]) -> Any:
    from attrpriv.engines.view_in_order import FIRST, RANK, SECOND

    if RANK in table.columns:
        there, order = table[RANK] >= 0, [table[FIRST], table[SECOND]]
    else:
        digest = table[_DIGEST]
        there, order = digest != "", [_number(digest, 32), _number(digest, 48)]
    return table.order_by(order).select(**{name: _plain(table[name], source.columns[name], there) for name in columns})


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
    if drawn.rows is not None and row_id is None:
        return kept_in_order(source, cells, drawn.key, drawn.thresholds, drawn.rows)
    table = _digested(source, cells, row_id, bind(source, "key", drawn.key))
    limits = [bind(source, "limit", threshold) for threshold in drawn.thresholds]
    return table.filter(table[_DIGEST] <= by_cell(table, limits, ""))


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
