"""SQL text in, frozen queries out; the same parser reads queries, conditions and secrets.

What it accepts: a list of `avg(column)` (or `mean`), `sum(column)` and `count(*)`, each with a `filter (where ...)` if wished,
alone or as `SELECT ... FROM data WHERE ... GROUP BY column`. Everything else is refused by name. What must never change: a text
that is accepted means exactly what SQL says it means.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.errors import QueryError
from attrpriv.queries.conditions import Condition, Join, as_sql, condition_of
from attrpriv.queries.query import Kind, Query

if TYPE_CHECKING:
    from sqlglot import expressions as exp

_SUPPORTED = (
    "avg(column), sum(column) and count(*), each with filter (where ...) if wished, alone, listed with commas, "
    "or as SELECT ... FROM data WHERE ... GROUP BY column"
)
_LONGEST = 10_000


def parse_queries(text: str) -> tuple[Query, ...]:
    """The statistics a query text asks for, in order.

    >>> [q.text for q in parse_queries("SELECT avg(weight), count(*) FROM data")]
    ['avg(weight)', 'count(*)']
    """
    if not isinstance(text, str):
        raise QueryError(f"query: must be text. Got {_shown(text)}.")
    return _queries(text)


@lru_cache(maxsize=256)  # a secret is asked for its column many times while a plan is made
def _queries(text: str) -> tuple[Query, ...]:
    select = _parse_select(text)
    _refuse_clauses(select, text)
    where = select.args.get("where")
    group = _group(select, text)
    items = [item for item in select.expressions if group is None or not _is_column(item, group)]
    if not items:
        raise QueryError(f"query: must ask for {_SUPPORTED}. Got {_shown(text)}.")
    return tuple(_statistic(item, text, None if where is None else condition_of(where.this), group) for item in items)


def parse_expression(text: str) -> exp.Expression:
    """One SQL expression, not yet read."""
    select = _parse_select(text)
    if len(select.expressions) != 1 or any(value for name, value in select.args.items() if name not in ("expressions", "kind")):
        raise QueryError(f"must be one expression. Got {_shown(text)}.")
    expression: exp.Expression = select.expressions[0]
    return expression


def _parse_select(text: str) -> exp.Select:
    import sqlglot
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
        raise QueryError(f"query: must be {_SUPPORTED}. Got {_shown(text)}.")
    stripped = text.strip()
    full = stripped if stripped[:6].lower() == "select" else f"SELECT {stripped}"
    try:
        statements = sqlglot.parse(full, dialect="duckdb")
    except (SqlglotError, RecursionError):
        statements = []
    if len(statements) != 1 or not isinstance(statements[0], exp.Select) or not statements[0].expressions:
        raise QueryError(f"query: must be {_SUPPORTED}. Got {_shown(text)}.")
    return statements[0]


def _refuse_clauses(select: exp.Select, text: str) -> None:
    from sqlglot import expressions as exp

    for name, value in select.args.items():
        if not value or name in ("expressions", "from", "from_", "where", "group"):
            continue
        raise QueryError(
            f"query: {name.rstrip('s_').replace('_', ' ')} is not supported; ask for {_SUPPORTED}. Got {_shown(text)}."
        )
    source = select.args.get("from") or select.args.get("from_")
    if source is None:
        return
    table = source.this
    plain = isinstance(table, exp.Table) and table.name.lower() == "data" and not _extras(table)
    if not plain:
        raise QueryError(f"query: the only table is data, as in SELECT ... FROM data. Got {_shown(text)}.")


def _extras(table: exp.Table) -> bool:
    return any(value for name, value in table.args.items() if name != "this")


def _group(select: exp.Select, text: str) -> str | None:
    """The one column that a GROUP BY names."""
    group = select.args.get("group")
    if group is None:
        return None
    extras = any(value for name, value in group.args.items() if name != "expressions")
    if extras or len(group.expressions) != 1:
        raise QueryError(f"query: group by takes one column. Got {_shown(text)}.")
    return _column_name(group.expressions[0], text)


def _is_column(item: exp.Expression, name: str) -> bool:
    from sqlglot import expressions as exp

    return isinstance(item, exp.Column) and item.name == name and not item.args.get("table")


def _statistic(item: exp.Expression, text: str, where: Condition | None, group: str | None) -> Query:
    from sqlglot import expressions as exp

    if isinstance(item, exp.Filter):
        extra = condition_of(item.expression.this)
        where = extra if where is None else Join("and", (where, extra))
        item = item.this
    kind, column = _aggregate(item, text)
    return Query(kind, column, None if where is None else str(where), group)


def _aggregate(item: exp.Expression, text: str) -> tuple[Kind, str | None]:
    from sqlglot import expressions as exp

    if isinstance(item, exp.Count):
        if isinstance(item.this, exp.Star) and not item.expressions and not item.this.args.get("except_"):
            return "count", None
        raise QueryError(f"query: count takes a star, count(*). Got {_shown(text)}.")
    if isinstance(item, exp.Avg | exp.Sum):
        return "avg" if isinstance(item, exp.Avg) else "sum", _column(item, text)
    if isinstance(item, exp.Anonymous) and item.name.lower() == "mean" and len(item.expressions) == 1:
        return "avg", _column_name(item.expressions[0], text)
    raise QueryError(f"query: must be {_SUPPORTED}. Got {_shown(as_sql(item))} in {_shown(text)}.")


def _column(item: exp.Avg | exp.Sum, text: str) -> str:
    if any(value for name, value in item.args.items() if name != "this"):
        raise QueryError(f"query: {item.key} takes one column and nothing else. Got {_shown(text)}.")
    return _column_name(item.this, text)


def _column_name(argument: exp.Expression, text: str) -> str:
    from sqlglot import expressions as exp

    bare = isinstance(argument, exp.Column) and not any(
        value for name, value in argument.args.items() if name not in ("this", "join_mark")
    )
    if not bare or not isinstance(argument.this, exp.Identifier) or not argument.name:
        raise QueryError(f"query: avg and sum take the name of one column, in double quotes if needed. Got {_shown(text)}.")
    return argument.name


def _shown(text: object) -> str:
    shown = repr(text)
    return shown if len(shown) <= 120 else shown[:117] + "..."
