"""A query: one statistic, frozen, the same whether it came from SQL text or from a builder.

What must never change: two queries that ask the same thing are equal and have the same `text`, because the ledger and every
plan name a query by it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from attrpriv.errors import QueryError

if TYPE_CHECKING:
    from attrpriv.queries.arithmetic import Arithmetic, LinearForm

Kind = Literal["avg", "sum", "count", "var_pop", "covar_pop", "regr_slope", "regr_intercept", "quantile"]
# How many expressions a statistic is of.
ARITY: Mapping[str, int] = MappingProxyType(
    {kind: 2 if kind in ("covar_pop", "regr_slope", "regr_intercept") else int(kind != "count") for kind in get_args(Kind)}
)

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Words that SQL may read as something else than a column; quoting a word needlessly does no harm.
_RESERVED = frozenset(
    "all alter analyse analyze and anti any array as asc asof asymmetric at authorization between binary both by case "
    "cast check collate collation column concurrently connect_by_root constraint create cross current_catalog "
    "current_date current_role current_time current_timestamp current_user default deferrable desc describe distinct "
    "do drop else end except exists extract false fetch filter for force foreign freeze from full glob grant group "
    "having ilike in initially inner insert install intersect interval into is isnull join lambda lateral leading "
    "left like limit localtime localtimestamp map natural not notnull null offset on only or order outer over "
    "overlaps partitioned_by pivot pivot_longer pivot_wider placing positional primary qualify references regexp "
    "returning revoke right rlike rollback rowid select semi session_user show similar some struct summarize "
    "symmetric table tablesample then to trailing true try_cast uncache union unique unpack unpivot user using values "
    "variadic verbose when where window with xor".split()
)


@dataclass(frozen=True)
class Query:
    """`avg`, `sum` or another statistic over the rows that `where` keeps, in each group of `group_by`.

    `column` is the column that an average or a sum is of; `of` holds, as canonical text, what any other statistic is of; a
    quantile has a `level`, such as 0.5.

    >>> Query("avg", "weight").text
    'avg(weight)'
    >>> Query("sum", "body weight").text
    'sum("body weight")'
    >>> Query("avg", of=("2 * x + y",)).linear.coefficients["x"]
    Fraction(2, 1)
    """

    kind: Kind
    column: str | None = None
    where: str | None = None
    group_by: str | None = None
    of: tuple[str, ...] = ()
    level: float | None = None

    def __post_init__(self) -> None:
        if self.kind in ("avg", "sum", "count") and not self.of and (self.column is None) != (self.kind == "count"):
            raise QueryError(f"query: count takes no column, avg and sum take one. Got {self.kind} of {self.column!r}.")
        if len(self.of) + (self.column is not None) != ARITY[self.kind]:
            raise QueryError(f"query: {self.kind} is of {ARITY[self.kind]}. Got {self.of!r} and {self.column!r}.")
        if (self.level is None) != (self.kind != "quantile") or not 0 < (0.5 if self.level is None else self.level) < 1:
            raise QueryError(f"query: a quantile, and no other, has a level above 0 and below 1. Got {self.level!r}.")
        if self.of:
            self._require_canonical()

    def _require_canonical(self) -> None:
        bare = self.kind in ("avg", "sum") and self.arguments[0].column is not None
        if bare or self.column is not None or tuple(one.text for one in self.arguments) != self.of:
            raise QueryError(f"query: must be written as parse_queries writes it. Got {self.kind} of {self.of!r}.")

    @cached_property
    def text(self) -> str:
        text = self._statistic()
        if self.where is not None:
            text += f" filter (where {self.where})"
        if self.group_by is not None:
            text = f"SELECT {quoted(self.group_by)}, {text} FROM data GROUP BY {quoted(self.group_by)}"
        return text

    def _statistic(self) -> str:
        if self.kind == "count":
            return "count(*)"
        if self.kind == "quantile":
            return f"median({self.of[0]})" if self.level == 0.5 else f"approx_quantile({self.of[0]}, {self.level!r})"
        return f"{self.kind}({', '.join(self.of) if self.column is None else quoted(self.column)})"

    @cached_property
    def arguments(self) -> tuple[Arithmetic, ...]:
        """What the statistic is of."""
        from attrpriv.queries.arithmetic import parse_arithmetic

        return tuple(map(parse_arithmetic, self.of if self.column is None else (quoted(self.column),)))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the statistic reads, each once; those of the filter and of the groups are not among them."""
        if self.column is not None:
            return (self.column,)
        return tuple(dict.fromkeys(column for argument in self.arguments for column in argument.columns))

    @cached_property
    def simple(self) -> bool:
        """Whether it is a count, or the average or sum of one column as it is."""
        return not self.of

    @cached_property
    def key(self) -> str | None:
        """What is averaged, by name: a column, or the canonical text of a linear combination; None of other statistics.

        Over a subset the filter is part of the name; of groups each has one of its own (`Plan.groups`).
        """
        own = self.of[0] if self.of and self.linear is not None else self.column
        if own is None or self.where is None or self.group_by is not None:
            return own
        return f"{own if self.of else quoted(own)} filter (where {self.where})"

    @cached_property
    def linear(self) -> LinearForm | None:
        """The combination of columns that an average or a sum is of; None of any other statistic."""
        if self.kind not in ("avg", "sum"):
            return None
        if self.column is None:
            return self.arguments[0].linear
        from attrpriv.queries.arithmetic import LinearForm

        return LinearForm(MappingProxyType({self.column: Fraction(1)}), Fraction(0))

    @cached_property
    def alike(self) -> tuple[str, ...]:
        """The texts of all queries that one answer tells, this one first: over all rows, a sum is n times an average."""
        return (self.text,) if self.twin is None or not self.plain else (self.text, self.twin.text)

    @cached_property
    def twin(self) -> Query | None:
        """The sum of an average, the average of a sum: over rows whose number is public, each tells the other."""
        return replace(self, kind="sum" if self.kind == "avg" else "avg") if self.kind in ("avg", "sum") else None

    @cached_property
    def plain(self) -> bool:
        """Whether the statistic is over all rows at once."""
        return self.where is None and self.group_by is None

    @cached_property
    def whole_table(self) -> bool:
        """Whether it asks for the number of rows, which is public."""
        return self.kind == "count" and self.plain

    def weight(self, rows: int) -> int:
        """The factor by which the statistic exceeds the mean: the number of rows it is over for a sum, 1 for an average."""
        return rows if self.kind == "sum" else 1

    def __str__(self) -> str:
        return self.text


def quoted(column: str) -> str:
    """The column's name as SQL reads it."""
    if _PLAIN_NAME.match(column) and column.lower() not in _RESERVED:
        return column
    return '"' + column.replace('"', '""') + '"'


def mean(column: str) -> Query:
    """The average of a `column` over all rows.

    Examples:
        >>> mean("weight").text
        'avg(weight)'
    """
    return Query("avg", column)


def total(column: str) -> Query:
    """The sum of a `column` over all rows.

    Examples:
        >>> total("weight").text
        'sum(weight)'
    """
    return Query("sum", column)


def count() -> Query:
    """The number of rows, which is public.

    Examples:
        >>> count().text
        'count(*)'
    """
    return Query("count")
