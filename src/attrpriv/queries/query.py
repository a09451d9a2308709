"""A query: one statistic of one column, frozen, the same whether it came from SQL text or from a builder.

What must never change: two queries that ask the same thing are equal and have the same `text`, because the ledger and every
plan name a query by it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from attrpriv.errors import QueryError

Kind = Literal["avg", "sum", "count"]

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Words that SQL may read as something else than a column; quoting a word needlessly does no harm.
_RESERVED = frozenset(
    "all alter and any as asc between both by case cast collate column connect_by_root constraint create cross "
    "current_catalog current_date current_role current_time current_timestamp current_user default desc distinct do "
    "drop else end except exists extract false fetch filter for force foreign from full glob grant group having ilike "
    "in inner insert install intersect interval into is isnull join lateral leading left like limit localtime "
    "localtimestamp map natural not notnull null offset on only or order outer over overlaps partitioned_by pivot "
    "positional primary qualify references regexp returning revoke right rlike rollback rowid select session_user "
    "similar some struct summarize table tablesample then to trailing true try_cast uncache union unique unpivot user "
    "using values when where window with xor".split()
)


@dataclass(frozen=True)
class Query:
    """`avg(column)`, `sum(column)` or `count(*)` over the rows that `where` keeps, in each group of `group_by`.

    >>> Query("avg", "weight").text
    'avg(weight)'
    >>> Query("sum", "body weight").text
    'sum("body weight")'
    """

    kind: Kind
    column: str | None = None
    where: str | None = None
    group_by: str | None = None

    def __post_init__(self) -> None:
        if (self.column is None) != (self.kind == "count"):
            raise QueryError(f"query: count takes no column, avg and sum take one. Got {self.kind} of {self.column!r}.")

    @property
    def text(self) -> str:
        text = "count(*)" if self.column is None else f"{self.kind}({quoted(self.column)})"
        if self.where is not None:
            text += f" filter (where {self.where})"
        if self.group_by is not None:
            text = f"SELECT {quoted(self.group_by)}, {text} FROM data GROUP BY {quoted(self.group_by)}"
        return text

    @property
    def plain(self) -> bool:
        """Whether the statistic is over all rows at once."""
        return self.where is None and self.group_by is None

    @property
    def whole_table(self) -> bool:
        """Whether it asks for the number of rows, which is public."""
        return self.kind == "count" and self.plain

    def weight(self, n: int) -> int:
        """The factor by which the statistic exceeds the column's mean: n for a sum, 1 for an average."""
        return n if self.kind == "sum" else 1

    def __str__(self) -> str:
        return self.text


def quoted(column: str) -> str:
    """The column's name as SQL reads it."""
    if _PLAIN_NAME.match(column) and column.lower() not in _RESERVED:
        return column
    return '"' + column.replace('"', '""') + '"'


def mean(column: str) -> Query:
    """The average of a column over all rows."""
    return Query("avg", column)


def total(column: str) -> Query:
    """The sum of a column over all rows."""
    return Query("sum", column)


def count() -> Query:
    """The number of rows, which is public."""
    return Query("count")
