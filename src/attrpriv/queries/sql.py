"""SQL text in, frozen queries out; the same parser reads queries, conditions and secrets.

What it accepts (in DuckDB's dialect): a list of statistics

    avg(e)  mean(e)  sum(e)  count(*)  var_pop(e)  covar_pop(e, e)  regr_slope(e, e)  regr_intercept(e, e)
    approx_quantile(e, level)  median(e)              e: arithmetic on columns (`arithmetic`)

each with a `filter (where ...)` if wished, alone or as `SELECT ... FROM data WHERE ... GROUP BY column`. Everything else is
refused by name (`refusals`). What must never change: a text that is accepted means exactly what SQL says it means.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeVar

from attrpriv.errors import QueryError
from attrpriv.queries.arithmetic import arithmetic_of
from attrpriv.queries.conditions import Condition, as_sql, condition_of, joined
from attrpriv.queries.query import Kind, Query

if TYPE_CHECKING:
    from sqlglot import expressions as exp

_SUPPORTED = (
    "avg(column), sum(column), count(*), var_pop, covar_pop, regr_slope, regr_intercept, approx_quantile or median, each with "
    "filter (where ...) if wished, alone, listed with commas, or as SELECT ... FROM data WHERE ... GROUP BY column"
)
_LONGEST = 10_000
Made = TypeVar("Made")


class Named(Protocol):
    """What is asked for, by its canonical text."""

    @property
    def text(self) -> str: ...


Item = TypeVar("Item", bound=Named)


def parse_queries(text: str) -> tuple[Query, ...]:
    """The statistics a query text asks for, in order.

    >>> [q.text for q in parse_queries("SELECT avg(y + x*2), count(*) FROM data WHERE x > 3")]
    ['avg(2 * x + y) filter (where x > 3)', 'count(*) filter (where x > 3)']
    """
    if not isinstance(text, str):
        raise QueryError(f"query: must be text. Got {shown_text(text)}.")
    return _queries(text)


@lru_cache(maxsize=256)  # a secret is asked for its column many times while a plan is made
def _queries(text: str) -> tuple[Query, ...]:
    return read_items(text, statistic)


def read_items(text: str, read: Callable[[exp.Expression, str, Condition | None, str | None], Item]) -> tuple[Item, ...]:
    """What a text lists, each item read with the text, the condition and the group that all of them share."""
    select = _parse_select(text)
    return not_too_deep(lambda: _read(select, text, read), text)


def _read(
    select: exp.Select, text: str, read: Callable[[exp.Expression, str, Condition | None, str | None], Item]
) -> tuple[Item, ...]:
    _refuse_clauses(select, text)
    refuse_parts(select, text)
    where = select.args.get("where")
    group = _group(select, text)
    items = [item for item in select.expressions if group is None or not _is_column(item, group)]
    if not items:
        raise QueryError(f"query: must ask for {_SUPPORTED}. Got {shown_text(text)}.")
    found = tuple(read(item, text, None if where is None else condition_of(where.this), group) for item in items)
    if any(len(one.text) > _LONGEST for one in found):  # it could not be read back
        raise QueryError(f"query: must be shorter, also when written out. Got {shown_text(text)}.")
    return found


def parse_expression(text: str) -> exp.Expression:
    """One SQL expression, not yet read."""
    select = _parse_select(text)
    if len(select.expressions) != 1 or any(value for name, value in select.args.items() if name not in ("expressions", "kind")):
        raise QueryError(f"must be one expression. Got {shown_text(text)}.")
    expression: exp.Expression = select.expressions[0]
    return expression


def _parse_select(text: str) -> exp.Select:
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
        raise QueryError(f"query: must be {_SUPPORTED}. Got {shown_text(text)}.")
    stripped = text.strip()
    full = stripped if stripped[:6].lower() == "select" or stripped[:4].lower() == "with" else f"SELECT {stripped}"
    try:
        statements = _statements(full)
    except (SqlglotError, RecursionError):
        statements = ()
    if len(statements) == 1 and isinstance(statements[0], exp.SetOperation):
        raise refused(statements[0].key, "ask for the statistics in one list", text)
    if len(statements) != 1 or not isinstance(statements[0], exp.Select) or not statements[0].expressions:
        raise QueryError(_unquoted(stripped) or f"query: must be {_SUPPORTED}. Got {shown_text(text)}.")
    return statements[0]


def _unquoted(text: str) -> str | None:
    told = unquoted_name(text)
    return None if told is None else f"query: {told}"


def unquoted_name(text: str) -> str | None:
    """What to say of a column's name with spaces that stands bare, or in single quotes; None of anything else.

    >>> unquoted_name("avg(hours per week)")
    'a column whose name is no plain word goes in double quotes. Write avg("hours per week").'
    """
    found = re.fullmatch(r"(\w+)\(\s*('?)(\w[\w().%&/-]*(?:\s+[\w().%&/-]+)+)\2\s*\)", text.strip())
    if found is None:
        return None
    return f'a column whose name is no plain word goes in double quotes. Write {found[1]}("{found[3]}").'


@lru_cache(maxsize=16)  # what a secret says is read in several ways, one after the other; none of them changes the tree
def _statements(text: str) -> tuple[exp.Expr | None, ...]:
    import sqlglot

    with _unlogged():
        return tuple(sqlglot.parse(text, dialect="duckdb"))


@contextmanager
def _unlogged() -> Iterator[None]:
    """sqlglot logs what it thinks of a text, with its control characters; nobody configured that, so it is on a terminal.

    Only of this thread and only for now: a program that uses sqlglot itself hears what it did before.
    """
    logger, own = logging.getLogger("sqlglot"), threading.get_ident()

    def elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != own

    logger.addFilter(elsewhere)
    try:
        yield
    finally:
        logger.removeFilter(elsewhere)


def not_too_deep(read: Callable[[], Made], text: str) -> Made:
    """A sum of a thousand terms is a tree of a thousand levels."""
    try:
        return read()
    except RecursionError:
        pass
    raise QueryError(f"query: must have fewer terms and conditions. Got {shown_text(text)}.")


def _refuse_clauses(select: exp.Select, text: str) -> None:
    from sqlglot import expressions as exp

    for name, value in select.args.items():
        if value and name not in ("expressions", "from", "from_", "where", "group"):
            raise refuse_clause(name, text)
    source = select.args.get("from") or select.args.get("from_")
    if source is None:
        return
    table = source.this
    plain = isinstance(table, exp.Table) and table.name.lower() == "data" and not _extras(table)
    if not plain:
        raise QueryError(f"query: the only table is data, as in SELECT ... FROM data. Got {shown_text(text)}.")


def _extras(node: exp.Expression, *expected: str) -> bool:
    return any(value for name, value in node.args.items() if name not in ("this", *expected))


def _group(select: exp.Select, text: str) -> str | None:
    """The one column that a GROUP BY names."""
    group = select.args.get("group")
    if group is None:
        return None
    extras = any(value for name, value in group.args.items() if name != "expressions")
    column = None if extras or len(group.expressions) != 1 else _column_name(group.expressions[0])
    if column is None:
        raise QueryError(f"query: group by takes one column, by its name. Got {shown_text(text)}.")
    return column


def _is_column(item: exp.Expression, name: str) -> bool:
    return _column_name(item) == name


def _column_name(item: exp.Expression) -> str | None:
    from sqlglot import expressions as exp

    bare = isinstance(item, exp.Column) and not _extras(item, "join_mark")
    return item.name if bare and isinstance(item.this, exp.Identifier) and item.name else None


def statistic(item: exp.Expression, text: str, where: Condition | None, group: str | None) -> Query:
    """One statistic, over the rows of the condition, in each group."""
    from sqlglot import expressions as exp

    if isinstance(item, exp.Filter):
        extra = condition_of(item.expression.this)
        where = extra if where is None else joined("and", where, extra)
        item = item.this
    kind, arguments, level = _aggregate(item, text)
    read = [arithmetic_of(argument) for argument in arguments]
    bare = read[0].column if kind in ("avg", "sum") else None
    of = () if bare is not None else tuple(one.text for one in read)
    return Query(kind, bare, None if where is None else str(where), group, of, level)


def _aggregate(item: exp.Expression, text: str) -> tuple[Kind, tuple[exp.Expression, ...], float | None]:
    """Which statistic, of what, and the level of a quantile."""
    from sqlglot import expressions as exp

    if isinstance(item, exp.Count):
        if isinstance(item.this, exp.Star) and not item.expressions and not item.this.args.get("except_"):
            return "count", (), None
        raise QueryError(
            "query: count takes a star, count(*); for the entries that are there, count(*) filter (where x is not null). "
            f"Got {shown_text(text)}."
        )
    if isinstance(item, exp.Anonymous) and item.name.lower() == "mean" and len(item.expressions) == 1:
        return "avg", (item.expressions[0],), None
    if isinstance(item, exp.Median) and not _extras(item):
        return "quantile", (item.this,), 0.5
    if isinstance(item, exp.ApproxQuantile) and not _extras(item, "quantile"):
        return "quantile", (item.this,), _level(item.args.get("quantile"), text)
    one: dict[type[exp.Expression], Kind] = {exp.Avg: "avg", exp.Sum: "sum", exp.VariancePop: "var_pop"}
    two: dict[type[exp.Expression], Kind] = {
        exp.CovarPop: "covar_pop", exp.RegrSlope: "regr_slope", exp.RegrIntercept: "regr_intercept"
    }  # fmt: skip
    if type(item) in one and not _extras(item):
        return one[type(item)], (item.this,), None
    if type(item) in two and not _extras(item, "expression"):
        return two[type(item)], (item.this, item.expression), None
    if not isinstance(item, exp.AggFunc) and item.find(exp.AggFunc) is not None:
        raise refused(*ANSWERS, text)
    if isinstance(item, exp.Column) and as_sql(item) == text.strip():
        way = f"For its average: avg({as_sql(item)})."
        raise QueryError(f"query: must say what is asked of a column. Got {shown_text(text)}. {way}")
    raise QueryError(f"query: must be {_SUPPORTED}. Got {shown_text(as_sql(item))} in {shown_text(text)}.")


def _level(node: exp.Expression | None, text: str) -> float:
    from sqlglot import expressions as exp

    level = float(node.this) if isinstance(node, exp.Literal) and not node.is_string else 0.0
    if not 0 < level < 1:
        raise QueryError(f"query: a quantile's level must be a number above 0 and below 1. Got {shown_text(text)}.")
    return level


# ----------------------------------------------------------------------------------------------------------------------------
# What a query must not hold, by the name SQL users know it by, and what to do instead.
#
# What must never change: a part of a query that is not understood is refused, never skipped.


ANSWERS = ("arithmetic on answers", "ask for the statistics themselves and compute the rest from the answers")
_VOLATILE = "its value would differ each time; write the value itself"
_QUANTILE = "ask for approx_quantile(column, level), which is not about single rows"

# Clauses of a SELECT, by sqlglot's name.
CLAUSES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "joins": ("join", "join the tables first and give the result as the data"),
        "laterals": ("lateral", "give a table with one row for each record"),
        "distinct": ("distinct", "every row counts; drop it"),
        "having": ("having", "choose groups after the release"),
        "order": ("order by", "sort the answers after the release"),
        "limit": ("limit", "choose answers after the release"),
        "offset": ("offset", "choose answers after the release"),
        "fetch": ("fetch", "choose answers after the release"),
        "qualify": ("qualify", "use where"),
        "windows": ("window", "use group by"),
        "sample": ("sample", "every row counts; drop it"),
        "with_": ("with", "ask of the table itself, FROM data"),
        "with": ("with", "ask of the table itself, FROM data"),
        "into": ("into", "a query only reads; drop it"),
        "locks": ("lock", "a query only reads; drop it"),
        "kind": ("select as", "drop it"),
    }
)

# Parts of expressions, by the name of sqlglot's class; the first one found in a query is named.
_PARTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "Subquery": ("a subquery", "ask for each statistic of the table itself, one by one"),
        "Select": ("a subquery", "ask for each statistic of the table itself, one by one"),
        "Exists": ("a subquery", "ask for each statistic of the table itself, one by one"),
        "Window": ("a window function (over)", "use group by"),
        "WithinGroup": ("within group", "ask for approx_quantile(column, level)"),
        "Rand": ("random()", _VOLATILE),
        "Randn": ("random()", _VOLATILE),
        "Uuid": ("uuid()", _VOLATILE),
        "CurrentDate": ("current_date", _VOLATILE),
        "CurrentTime": ("current_time", _VOLATILE),
        "CurrentTimestamp": ("current_timestamp", _VOLATILE),
        "CurrentDatetime": ("current_datetime", _VOLATILE),
        "Localtime": ("localtime", _VOLATILE),
        "Localtimestamp": ("localtimestamp", _VOLATILE),
        "CurrentUser": ("current_user", _VOLATILE),
        "SessionUser": ("session_user", _VOLATILE),
        "Case": ("case", "use filter (where ...)"),
        "If": ("if", "use filter (where ...)"),
        "Coalesce": ("coalesce", "name a public value under missing in the policy"),
        "Cast": ("a cast", "use the column in its own type"),
        "TryCast": ("a cast", "use the column in its own type"),
        "Min": ("min", _QUANTILE),
        "Max": ("max", _QUANTILE),
        "Variance": ("a sample variance", "ask for var_pop"),
        "Stddev": ("a standard deviation", "ask for var_pop and take its root"),
        "StddevPop": ("a standard deviation", "ask for var_pop and take its root"),
        "StddevSamp": ("a standard deviation", "ask for var_pop and take its root"),
        "CovarSamp": ("a sample covariance", "ask for covar_pop"),
        "Corr": ("corr", "ask for covar_pop and var_pop"),
        "PercentileCont": ("an exact quantile", "ask for approx_quantile(column, level)"),
        "PercentileDisc": ("an exact quantile", "ask for approx_quantile(column, level)"),
        "Quantile": ("an exact quantile", "ask for approx_quantile(column, level)"),
        "ApproxDistinct": ("a number of distinct values", "ask for count(*) by group, with the categories declared"),
        "ArrayAgg": ("a list of values", "it would print rows; ask for a statistic"),
        "GroupConcat": ("a list of values", "it would print rows; ask for a statistic"),
        "Alias": ("a name (as)", "drop it: an answer is named by its query"),
        "Pow": ("a power", "write x * x"),
        "IntDiv": ("division of whole numbers (//)", "use / by a number"),
        "Mod": ("a remainder (%)", "make it a column of the table first"),
        "Like": ("like", "compare with = or in"),
        "ILike": ("ilike", "compare with = or in"),
        "Distinct": ("distinct", "every row counts; drop it"),
        "Order": ("order by", "sort the answers after the release"),
        "IgnoreNulls": ("ignore nulls", "name a public value under missing in the policy"),
        "RespectNulls": ("respect nulls", "name a public value under missing in the policy"),
        "Parameter": ("a parameter", "write the value itself"),
        "Placeholder": ("a parameter", "write the value itself"),
    }
)
# Functions that sqlglot knows by no class.
_VOLATILE_NAMES = frozenset(
    "now random setseed gen_random_uuid uuidv4 uuidv7 nextval currval today get_current_timestamp get_current_time "
    "transaction_timestamp clock_timestamp statement_timestamp txid_current current_localtimestamp current_localtime "
    "getenv getvariable current_setting version pg_sleep rowid".split()
)


def refuse_clause(name: str, text: str) -> QueryError:
    """The error for a clause of a SELECT that is not supported."""
    shown, advice = CLAUSES.get(name, (name.rstrip("s_").replace("_", " "), "drop it"))
    return refused(shown, advice, text)


def refuse_parts(select: exp.Select, text: str) -> None:
    """Raise QueryError where any part of a parsed query is known not to be supported."""
    from sqlglot import expressions as exp

    for node in select.walk():
        if node is select:
            continue
        known = _PARTS.get(type(node).__name__)
        if known is not None:
            raise refused(*known, text)
        if isinstance(node, exp.Anonymous) and node.name.lower() in _VOLATILE_NAMES:
            raise refused(f"{node.name.lower()}()", _VOLATILE, text)
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count | exp.Mul):
            raise refused("* outside count(*)", "name the statistics and their columns, as in avg(weight)", text)


def refused(what: str, advice: str, text: str) -> QueryError:
    return QueryError(f"query: {what} is not supported; {advice}. Got {shown_text(text)}.")


def shown_text(text: object) -> str:
    """A text in a message, cut where it is long."""
    shown = repr(text)
    return shown if len(shown) <= 120 else shown[:117] + "..."
