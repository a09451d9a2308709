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
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

from attrpriv.errors import UsageError

if TYPE_CHECKING:
    from attrpriv.audit.result import ModelAudit
    from attrpriv.methods.base.view_plan import ViewPlan
    from attrpriv.methods.choice.ranking import Ranking
    from attrpriv.problem.refusal import Refusal
    from attrpriv.session.release import Release

FrameKind = Literal["pandas", "polars", "arrow"]


def release_frame(release: Release, kind: str, level: float) -> Any:
    """A row for each released value."""
    return _as_kind(kind, lambda: _arrow(release, level))


def audit_frame(audit: ModelAudit, kind: str) -> Any:
    """A row for each attack of an audit, with its fields but for words, and the share of right guesses."""
    return _as_kind(kind, lambda: _audit_arrow(audit))


def ranking_frame(ranking: Ranking, kind: str) -> Any:
    """A row for each query and mechanism, also for those that were refused."""
    return _as_kind(kind, lambda: _of_rows(_RANKING, list(_ranked(ranking))))


def view_frame(view: ViewPlan, kind: str) -> Any:
    """A row for each cell."""
    rows = [(cell.name, cell.keep, cell.low, cell.high, cell.share) for cell in view.cells]
    return _as_kind(kind, lambda: _of_rows(_VIEW, rows))


def refusal_frame(refusals: Sequence[Refusal], kind: str) -> Any:
    """A row for each query and mechanism, the nearest to an answer first."""
    rows = [(one.query, one.method, one.cause.value, one.way_out, one.reason) for one in refusals]
    return _as_kind(kind, lambda: _of_rows(_REFUSALS, rows))


_RANKING = (
    *(("query", "string"), ("mechanism", "string"), ("chosen", "bool"), ("noise", "string"), ("scale", "float64")),
    *(("rmse", "float64"), ("mean_absolute", "float64"), ("alpha95", "float64"), ("cause", "string"), ("refused", "string")),
)
_VIEW = (("cell", "string"), ("keep", "int64"), ("low", "int64"), ("high", "int64"), ("share", "float64"))
_REFUSALS = tuple((name, "string") for name in ("query", "mechanism", "cause", "what_helps", "reason"))


def _ranked(ranking: Ranking) -> Iterator[tuple[Any, ...]]:
    for plan in ranking.plans:
        for query in plan.queries:
            noise, error = plan.noise_of(query), plan.error_of(query)
            known = (noise.kind, noise.scale, error.rmse, error.mean_absolute, error.alpha95)
            yield (query.text, plan.mechanism, plan is ranking.chosen, *known, None, None)
    for name, refusal in ranking.refused.items():
        for query in ranking.problem.queries:
            yield (query.text, name, False, *[None] * 5, refusal.cause.value, refusal.reason)


def _of_rows(kinds: Sequence[tuple[str, str]], rows: Sequence[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    made = {"string": pa.string(), "bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64()}
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    arrays = [pa.array(column, made[kind]) for column, (_, kind) in zip(columns, kinds, strict=True)]
    return pa.table(arrays, [name for name, _ in kinds])


def listed_frame(rows: Sequence[Mapping[str, Any]], kind: str) -> Any:
    """A row for each of these, with the columns that the first one has."""
    return _as_kind(kind, lambda: _listed_arrow(rows))


def _listed_arrow(rows: Sequence[Mapping[str, Any]]) -> Any:
    import pyarrow as pa

    return pa.table({name: [row[name] for row in rows] for name in (rows[0] if rows else ())})


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
