"""Public records, counted: how often events and values occur within each category of a column, and a digest of what was read.

The digest is that of `moments` (rows as a multiset, whatever their order and the file's format), with texts as numbers of 52
bits of their SHA-256. What must never change: these are *public* records. The private table is met by `require_other_rows`
alone, which tells nothing but whether it is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attrpriv.engines.conditions import check_condition, holds
from attrpriv.engines.moments import (
    _MOST_CATEGORIES,
    ENGINE_FAILED,
    NO_CATEGORY,
    NOT_COMPARED,
    NOT_FINITE,
    SAME_TABLE,
    TOO_MANY,
    _check_categories,
    _listed,
    _run_rows,
)
from attrpriv.engines.progress import waited
from attrpriv.engines.scan import UNKNOWN_COLUMN, closest
from attrpriv.engines.tables import Source, as_number, quietly, shown_name
from attrpriv.errors import DataError
from attrpriv.numerics.row_digest import FORMAT, STARTS, number_of, row_hashes
from attrpriv.queries.conditions import columns_of, parse_condition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOT_LISTED = "public: the values of {column} must be text or whole numbers, so that they can be listed. Got a {type} column."
_MOST_VALUES = 100
_AS_NUMBERS = ("integer", "boolean", "decimal", "float")


@dataclass(frozen=True)
class ValueCounts:
    """How many rows of each category have each value of a column."""

    column: str
    values: tuple[int | str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class GroupCounts:
    """What is known of public records within each category of a column: its rows, those with each event, and by value."""

    rows: int
    sensitive: str
    categories: tuple[str, ...]
    counts: tuple[int, ...]
    events: tuple[str, ...]
    hits: tuple[tuple[int, ...], ...]
    """Of each category, of each event."""
    values: tuple[ValueCounts, ...]
    columns: tuple[str, ...]
    """All that was read."""
    digest: str


def group_counts(source: Source, sensitive: str, events: Sequence[str], columns: Sequence[str]) -> GroupCounts:
    """Count events (conditions) and the values of columns in each category of a text, whole-number or boolean column."""
    conditions = [parse_condition(text) for text in dict.fromkeys(events)]
    read = tuple(dict.fromkeys((sensitive, *columns, *(column for one in conditions for column in columns_of(one)))))
    _check(source, sensitive, read, columns)
    for condition in conditions:
        check_condition(source.columns, condition)
    found = quietly(lambda: _counted(source, sensitive, read, conditions))
    if found is None:
        raise DataError(ENGINE_FAILED.format(columns=_listed(read)))
    _require_categories(sensitive, read, found)
    categories = tuple(str(row["category"]) for row in found)
    values = tuple(_values_of(source, sensitive, column, categories, read) for column in dict.fromkeys(columns))
    return GroupCounts(
        sum(int(row["rows"]) for row in found),
        sensitive,
        categories,
        tuple(int(row["rows"]) for row in found),
        tuple(map(str, conditions)),
        tuple(tuple(int(row[f"event_{k}"] or 0) for k in range(len(conditions))) for row in found),
        values,
        tuple(sorted(read)),
        rows_digest(source, read),
    )


def _check(source: Source, sensitive: str, read: Sequence[str], columns: Sequence[str]) -> None:
    for column in read:
        if column not in source.columns:
            raise DataError(UNKNOWN_COLUMN.format(column=shown_name(column), hint=closest(source.columns, column)))
    _check_categories(source, sensitive)
    for column in columns:
        if source.columns[column] not in ("text", "integer"):
            raise DataError(NOT_LISTED.format(column=shown_name(column), type=source.columns[column]))


def _require_categories(sensitive: str, read: Sequence[str], found: Sequence[Mapping[str, Any]]) -> None:
    if len(found) > _MOST_CATEGORIES:
        raise DataError(TOO_MANY.format(column=shown_name(sensitive), most=_MOST_CATEGORIES))
    if any(row["category"] is None for row in found):
        raise DataError(NO_CATEGORY.format(column=shown_name(sensitive)))
    if any(row["lacking"] for row in found):
        raise DataError(NOT_FINITE.format(columns=_listed(read)))


def _counted(source: Source, sensitive: str, read: Sequence[str], conditions: Sequence[Any]) -> list[dict[str, Any]]:
    """Of each category: its rows, those that lack an entry that is read, and those with each event."""
    import ibis

    table = source.table
    named = {f"event_{k}": holds(table, condition).cast("int64") for k, condition in enumerate(conditions)}
    lacking = ibis.or_(*(_lacks(table[column]) for column in read)).cast("int64")
    rows = table.select(category=table[sensitive].cast("string"), lacking=lacking, **named)
    wanted = {"rows": rows.count(), "lacking": rows["lacking"].sum()} | {name: rows[name].sum() for name in named}
    return _run_rows(source, rows.group_by("category").aggregate(**wanted).order_by("category").limit(_MOST_CATEGORIES + 1))


def _lacks(column: Any) -> Any:
    """Missing, or no number where one is meant."""
    return column.isnull() | column.isnan().fill_null(True) if column.type().is_floating() else column.isnull()


def _values_of(source: Source, sensitive: str, column: str, categories: Sequence[str], read: Sequence[str]) -> ValueCounts:
    found = quietly(lambda: _by_value(source, sensitive, column))
    if found is None:
        raise DataError(ENGINE_FAILED.format(columns=_listed(read)))
    counts = {(str(row["category"]), row["value"]): int(row["rows"]) for row in found}
    values = tuple(sorted({value for _, value in counts}))
    if len(values) > _MOST_VALUES:
        raise DataError(f"public: {shown_name(column)} must have at most {_MOST_VALUES} values, to be listed. Got more.")
    return ValueCounts(column, values, tuple(tuple(counts.get((name, value), 0) for value in values) for name in categories))


def _by_value(source: Source, sensitive: str, column: str) -> list[dict[str, Any]]:
    rows = source.table.select(category=source.table[sensitive].cast("string"), value=source.table[column])
    limit = (_MOST_VALUES + 1) * (_MOST_CATEGORIES + 1)
    return _run_rows(source, rows.group_by(["category", "value"]).aggregate(rows=rows.count()).limit(limit))


# ---------------------------------------------------------------------------------------------------------------- digest


def require_other_rows(source: Source, rows: int, columns: Sequence[str], digest: str, declared: int | None = None) -> None:
    """Raise DataError if the private table `source` is the one that has this digest.

    No row is read where the number of rows or the names of the columns tell the two apart.
    """
    known = declared if source.rows is None else source.rows
    if (known is not None and known != rows) or any(column not in source.columns for column in columns):
        return
    found = quietly(lambda: rows_digest(source, columns))
    if found is None:
        raise DataError(NOT_COMPARED)
    if found == digest:
        raise DataError(SAME_TABLE)


def rows_digest(source: Source, columns: Sequence[str]) -> str:
    """SHA-256 of the columns' names and of their rows as a multiset."""
    names = sorted(set(columns))
    named = {f"c{i}": _entry(source, name) for i, name in enumerate(names)}
    rows, sums = 0, [0] * len(STARTS)
    for batch in waited(source.engine, lambda: source.engine.to_pyarrow(source.table.select(**named))).to_batches():
        numbers = [_as_numbers(column) for column in batch.columns]
        rows += batch.num_rows
        for k, start in enumerate(STARTS):
            sums[k] = (sums[k] + int(row_hashes(numbers, start).sum())) % 2**64
    return hashlib.sha256(json.dumps([FORMAT, names, rows, *sums]).encode()).hexdigest()


def _entry(source: Source, name: str) -> Any:
    if source.columns[name] in _AS_NUMBERS:
        return as_number(source, name, source.table).cast("float64")
    return source.table[name].cast("string")


def _as_numbers(column: Any) -> NDArray[np.float64]:
    """The numbers of a column; of texts, those of their hashes; missing entries are NaN."""
    import numpy as np
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    encoded = column.dictionary_encode()
    known: NDArray[np.float64] = np.array([number_of(text) for text in encoded.dictionary.to_pylist()] + [np.nan])
    return np.asarray(known[encoded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)], dtype=np.float64)
