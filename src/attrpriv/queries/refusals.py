"""What a query must not hold, by the name SQL users know it by, and what to do instead.

What must never change: a part of a query that is not understood is refused, never skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from attrpriv.errors import QueryError

if TYPE_CHECKING:
    from sqlglot import expressions as exp

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
