"""Distinct public rows of two columns, and how often each occurs: what laws of recorded rows are computed from.

What must never change: these are *public* records. Entries are filled and clipped as a release does; what is missing and has no
fill is refused with a fixed text, never left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attrpriv.engines.conditions import check_condition, holds
from attrpriv.engines.moments import ENGINE_FAILED, NOT_FINITE, _listed, _run_rows
from attrpriv.engines.public_counts import require_other_rows, rows_digest
from attrpriv.engines.scan import check_columns
from attrpriv.engines.tables import Source, as_number, is_missing, quietly
from attrpriv.errors import DataError
from attrpriv.queries.conditions import Condition, columns_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_ROWS = 1 << 21
TOO_MANY = "public: {columns} must have at most {most:,} different rows together. Got more. Round them more coarsely."


@dataclass(frozen=True)
class NumberRead:
    """A column of numbers, the value that stands for its missing entries, and the bounds that it is clipped to."""

    column: str
    fill: float | None = None
    clip: tuple[float, float] | None = None


Read = NumberRead | Condition


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """A column of values for each read, and how often each row occurs."""

    columns: tuple[NDArray[np.float64], ...]
    counts: NDArray[np.int64]

    @property
    def total(self) -> int:
        return int(self.counts.sum())


def distinct_rows(source: Source, reads: tuple[Read, ...]) -> DistinctRows:
    """The distinct rows; a condition is 1 where it holds and 0 elsewhere."""
    import numpy as np

    named = _checked(source, reads)
    found = quietly(lambda: _counted(source, reads))
    if found is None:
        raise DataError(ENGINE_FAILED.format(columns=_listed(named)))
    if len(found) > _MOST_ROWS:
        raise DataError(TOO_MANY.format(columns=_listed(named), most=_MOST_ROWS))
    columns = tuple(np.array([_number(row[f"c{k}"]) for row in found], dtype=np.float64) for k in range(len(reads)))
    if not found or not all(bool(np.isfinite(one).all()) for one in columns):
        raise DataError(NOT_FINITE.format(columns=_listed(named)))
    columns = tuple(_clipped(read, one) for read, one in zip(reads, columns, strict=True))
    return DistinctRows(columns, np.array([int(row["rows"]) for row in found], dtype=np.int64))


def number_of_rows(source: Source) -> int:
    """Of public records."""
    if source.rows is not None:
        return source.rows
    found = quietly(lambda: source.run(source.table.aggregate(rows=source.table.count())))
    if found is None:
        raise DataError(ENGINE_FAILED.format(columns="none"))
    return int(found["rows"])


def require_different(private: Source, public: Source, columns: Iterable[str], declared: int | None) -> None:
    """Raise DataError where the rows of these columns are the same in both; read where the numbers of rows do not tell."""
    named = [name for name in dict.fromkeys(columns) if name in private.columns and name in public.columns]
    rows = number_of_rows(public)
    if not named or (declared if private.rows is None else private.rows) not in (None, rows):
        return
    digest = quietly(lambda: rows_digest(public, named))
    if digest is None:
        raise DataError(ENGINE_FAILED.format(columns=_listed(named)))
    require_other_rows(private, rows, named, digest, declared)


def _checked(source: Source, reads: tuple[Read, ...]) -> tuple[str, ...]:
    names: list[str] = []
    for read in reads:
        if isinstance(read, NumberRead):
            check_columns(source, [read.column])
            names.append(read.column)
        else:
            check_condition(source.columns, read)
            names += columns_of(read)
    return tuple(dict.fromkeys(names))


def _counted(source: Source, reads: tuple[Read, ...]) -> list[dict[str, Any]]:
    named = {f"c{k}": _entry(source, read) for k, read in enumerate(reads)}
    rows = source.table.select(**named)
    return _run_rows(source, rows.group_by(list(named)).aggregate(rows=rows.count()).limit(_MOST_ROWS + 1))


def _entry(source: Source, read: Read) -> Any:
    if not isinstance(read, NumberRead):
        return holds(source.table, read).cast("int64").cast("float64")
    import ibis

    value = as_number(source, read.column).cast("float64")
    if read.fill is not None:
        value = ibis.ifelse(is_missing(source, read.column), ibis.literal(read.fill, type="float64"), value)
    return value


def _clipped(read: Read, values: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    clip = read.clip if isinstance(read, NumberRead) else None
    return values if clip is None else np.asarray(np.clip(values, *clip))


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
