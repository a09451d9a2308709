"""Released values, and audits, as data frames.

Of a release:

| column | what |
|---|---|
| query | the query's text |
| group | the group's name; missing where the query has no groups |
| value | the released value; missing where a quotient has none, because 0 was released below it |
| low, high | the interval that holds the table's own value; missing where none is known |
| level | the confidence of that interval |
| mechanism | how it was answered |

What must never change: these columns, in this order, with the same types whatever was released (text, and 64-bit floats).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

from attrpriv.errors import UsageError

if TYPE_CHECKING:
    from attrpriv.audit.result import ModelAudit
    from attrpriv.session.release import Release

FrameKind = Literal["pandas", "polars", "arrow"]


def release_frame(release: Release, kind: str, level: float) -> Any:
    """A row for each released value."""
    return _as_kind(kind, lambda: _arrow(release, level))


def audit_frame(audit: ModelAudit, kind: str) -> Any:
    """A row for each attack of an audit, with its fields but for words, and the share of right guesses."""
    return _as_kind(kind, lambda: _audit_arrow(audit))


def _as_kind(kind: str, made: Callable[[], Any]) -> Any:
    if kind not in get_args(FrameKind):
        raise UsageError(f"kind: must be one of {', '.join(get_args(FrameKind))}. Got {kind!r}.")
    if kind == "polars" and find_spec("polars") is None:
        raise UsageError("kind: polars is not installed. Install attrpriv[polars], or ask for pandas or arrow.")
    table = made()
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    return table if kind == "arrow" else table.to_pandas()


def _arrow(release: Release, level: float) -> Any:
    import pyarrow as pa

    rows = []
    for answer in release.answers:
        mechanism = release.mechanism_of(answer.query)
        for value in answer.values:
            low, high = value.interval(level)
            ends = (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)
            number = value.value if math.isfinite(value.value) else None
            rows.append((answer.query.text, value.group, number, *ends, level, mechanism))
    text, float64 = pa.string(), pa.float64()
    kinds = [text, text, float64, float64, float64, float64, text]
    arrays = [pa.array(map(_plain, column), kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    return pa.table(arrays, ["query", "group", "value", "low", "high", "level", "mechanism"])


_AUDIT = (
    *(("model", "string"), ("trained_on", "string"), ("attack", "string"), ("chosen", "bool"), ("validated", "float64")),
    *(("right", "int64"), ("targets", "int64"), ("share", "float64"), ("low", "float64"), ("high", "float64")),
    *(("epsilon", "float64"), ("epsilon_cap", "float64"), ("rows", "int64"), ("rows_low", "int64"), ("rows_high", "int64")),
    ("n_leaked", "float64"),
)


def _audit_arrow(audit: ModelAudit) -> Any:
    import pyarrow as pa

    made = {"string": pa.string(), "bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64()}
    arrays = [pa.array([getattr(one, name) for one in audit.results], made[kind]) for name, kind in _AUDIT]
    return pa.table(arrays, [name for name, _ in _AUDIT])


def _plain(cell: str | float | None) -> str | float | None:
    """Whole numbers are floats too, so that a column has one type whatever was asked."""
    return float(cell) if isinstance(cell, int) else cell
