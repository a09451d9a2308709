"""The rows of a secret-free view: chosen by a keyed hash of the row's position, never of its contents.

    digest_j  =  SHA-256(key || position_j)           256 bits, as if drawn uniformly, for whoever does not know the key
    kept      =  in each cell the `keep` rows with the smallest digests
    order     =  by the last 128 bits of the digest; the choice is made on the leading bits

Rows with equal contents move independently, and the same key gives the same view from every kind of input. What must never
change:

* key and thresholds reach the engine as bound parameters and stay in its session variables. No SQL text, log or expression that
  leaves this module holds them: a threshold is about keep/count, so it would tell the count.
* a cell count outside its public range, or a row in no cell, is an announced failure with a fixed text.
* a file appears complete under its name, or not at all; what the engine spilled is removed.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from attrpriv.engines.conditions import check_condition, holds
from attrpriv.engines.tables import Source, quietly, shown_name
from attrpriv.errors import DataError, UsageError
from attrpriv.queries.conditions import Condition

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
NOT_WRITTEN = "out: must be a file that can be written, with room for the view. Got one that cannot. Nothing was left behind."

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
    """The secret state of a view: with it the same rows are chosen again."""

    key: str = field(repr=False)
    thresholds: tuple[str, ...] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key, "thresholds": list(self.thresholds)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Drawn:
        return cls(str(value["key"]), tuple(str(threshold) for threshold in value["thresholds"]))


def draw(source: Source, cells: Cells, n: int, row_id: str | None, key: str | None = None) -> Drawn:
    """Choose the rows: count the cells, check their ranges, find each cell's threshold. Two passes.

    The key comes from the operating system; only tests give one.
    """
    _check_schema(source, cells, row_id)
    secret = secrets.token_hex(32) if key is None else key
    outcome = quietly(lambda: _draw(source, cells, n, row_id, secret))
    if isinstance(outcome, Drawn):
        return outcome
    texts = {"range": OUT_OF_RANGE, "cell": NO_CELL, "row_id": NOT_UNIQUE, "rows": CHANGED}
    raise DataError(ENGINE_FAILED if outcome is None else texts[outcome])


def _check_schema(source: Source, cells: Cells, row_id: str | None) -> None:
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


def _draw(
    source: Source, cells: Cells, n: int, row_id: str | None, key: str
) -> Drawn | Literal["range", "cell", "row_id", "rows"]:
    table = _digested(source, cells, row_id, _bind(source, "key", key))
    counts = _counts(source, table)
    if row_id is not None and not _unique(source, row_id, n):
        return "row_id"
    if sum(counts.values()) != n:
        return "rows"
    if counts.get(-1, 0):
        return "cell"
    found = [counts.get(k, 0) for k in range(len(cells.keep))]
    if any(not low <= count <= high for count, low, high in zip(found, cells.low, cells.high, strict=True)):
        return "range"
    return Drawn(key, _thresholds(source, table, cells.keep, found))


def _counts(source: Source, table: Any) -> dict[int, int]:
    grouped = table.group_by(_CELL).aggregate(rows=table.count())
    return {int(row[_CELL]): int(row["rows"]) for row in source.engine.to_pyarrow(grouped).to_pylist()}


def _unique(source: Source, row_id: str, n: int) -> bool:
    # nunique leaves missing values out, so they show as a lower number
    return int(source.run(source.table.aggregate(ids=source.table[row_id].nunique()))["ids"]) == n


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
    """For each cell, how many digests lie below its window, and those inside."""
    digest = table[_DIGEST]
    low, high = _by_cell(table, [a for a, _ in windows]), _by_cell(table, [b for _, b in windows])
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
        assert source.positioned is not None  # _check_schema
        table = source.positioned(_POSITION)
    else:
        table = source.table.mutate(**{_POSITION: source.table[row_id]})
    named = [(holds(table, condition), k) for k, condition in enumerate(cells.conditions) if condition is not None]
    rest = next((k for k, condition in enumerate(cells.conditions) if condition is None), -1)
    cell = ibis.cases(*named, else_=rest)
    digest = _functions()["sha256"](key + table[_POSITION].cast("string"))
    return table.mutate(**{_CELL: cell.cast("int32"), _DIGEST: digest})


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


def view_table(source: Source, cells: Cells, drawn: Drawn, row_id: str | None, dropped: Sequence[str]) -> Any:
    """The view as a lazy Ibis table: kept rows in shuffled order, without identifiers."""
    table = kept_rows(source, cells, drawn, row_id)
    left_out = {*dropped, *(() if row_id is None else (row_id,))}
    columns = {name: _plain(table, name, kind) for name, kind in source.columns.items() if name not in left_out}
    if not columns:
        raise UsageError("identifiers: must leave some column for the view. Got all of them.")
    digest = table[_DIGEST]
    order = [("0x" + digest.substr(start, 16)).cast("uint64") for start in (32, 48)]
    return table.order_by(order).select(**columns)


def kept_rows(source: Source, cells: Cells, drawn: Drawn, row_id: str | None) -> Any:
    """The kept rows with their cell's number; for aggregates, which need no order."""
    _check_schema(source, cells, row_id)
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
    """A column without the dictionary it may carry: an enumeration names values that no kept row has."""
    return table[name].concat("") if kind == "text" else table[name]


def check_out(out: Path, *, force: bool) -> None:
    """Refuse a place that cannot take the view, before anything is drawn."""
    if not out.name.lower().endswith(".parquet"):
        raise UsageError(f"out: must end in .parquet. Got {out.name!r}.")
    if out.is_dir() or not out.parent.is_dir():
        raise UsageError(f"out: must be a file in a directory that exists. Got {str(out)!r}.")
    if out.exists() and not force:
        raise UsageError(f"out: {out.name} exists already. Use force to overwrite it, or choose another name.")


def write_view(source: Source, view: Any, out: Path, rows: int, *, force: bool, low_memory: bool) -> None:
    """Write the view to a new Parquet file, streamed through the engine, in a bounded amount of memory."""
    check_out(out, force=force)
    done = quietly(lambda: _write(source, view, out, rows, low_memory))
    if done is None:
        raise UsageError(NOT_WRITTEN)
    if not done:
        raise DataError(CHANGED)


def _write(source: Source, view: Any, out: Path, rows: int, low_memory: bool) -> bool:
    with tempfile.TemporaryDirectory(prefix=".attrpriv-", dir=out.parent) as place:
        half = Path(place) / "view.parquet"
        with _bounded(source, place, low_memory):
            source.engine.to_parquet(view, half)
        if _written_rows(half) != rows:
            return False
        with half.open("rb") as file:
            os.fsync(file.fileno())
        half.replace(out)
    return True


def _written_rows(path: Path) -> int:
    import pyarrow.parquet

    return int(pyarrow.parquet.read_metadata(path).num_rows)


@contextlib.contextmanager
def _bounded(source: Source, place: str, low_memory: bool) -> Iterator[None]:
    """Sort on disk in `place`, within a bounded memory, and leave the engine as it was."""
    connection = source.engine.con
    settings = {"temp_directory": place, "memory_limit": "150MB" if low_memory else "700MB", "threads": 1 if low_memory else 2}
    before = {name: connection.execute(f"SELECT current_setting('{name}')").fetchone()[0] for name in settings}
    try:
        for name, value in settings.items():
            connection.execute(f"SET {name} = {_literal(value)}")
        yield
    finally:
        for name, value in before.items():
            with contextlib.suppress(Exception):
                connection.execute(f"SET {name} = {_literal(value)}")


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
