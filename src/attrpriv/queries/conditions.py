"""Conditions on one row, as frozen trees: comparisons of a column with a constant, joined by AND, OR and NOT.

The same conditions name a secret's category (`share(gender = 'F')`) and filter a query. What must never change: a condition is
data, never code. It is kept as its canonical text, read back by the same parser, and handed to an engine as a tree.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from attrpriv.errors import QueryError
from attrpriv.queries.query import quoted

if TYPE_CHECKING:
    from sqlglot import expressions as exp

# A number as it was written: a float stands for its own decimal text (0.1 is one tenth), a Decimal for one no float has.
Number = int | float | Decimal
Value = str | Number | bool
Operator = Literal["=", "!=", "<", "<=", ">", ">="]
OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
)
_LONGEST_NUMBER = 1200


@dataclass(frozen=True)
class Compare:
    """column operator constant"""

    column: str
    operator: Operator
    value: Value

    def __str__(self) -> str:
        return f"{quoted(self.column)} {self.operator} {literal(self.value)}"


@dataclass(frozen=True)
class In:
    """column IN (constants)"""

    column: str
    values: tuple[Value, ...]

    def __str__(self) -> str:
        return f"{quoted(self.column)} in ({', '.join(literal(value) for value in self.values)})"


@dataclass(frozen=True)
class IsNull:
    """column IS NULL"""

    column: str

    def __str__(self) -> str:
        return f"{quoted(self.column)} is null"


@dataclass(frozen=True)
class Written:
    """The column's value, written as text, is exactly this: how a category is named."""

    column: str
    text: str

    def __str__(self) -> str:
        return f"{quoted(self.column)} is {literal(self.text)}"


@dataclass(frozen=True)
class Not:
    part: Condition

    def __str__(self) -> str:
        return f"not ({self.part})"


@dataclass(frozen=True)
class Join:
    """All of the parts (`and`), or at least one of them (`or`)."""

    word: Literal["and", "or"]
    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return f" {self.word} ".join(f"({part})" if isinstance(part, Join) else str(part) for part in self.parts)


Condition = Compare | In | IsNull | Written | Not | Join

# What word processors make of quotes.
_CURLY = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e`\u00b4"
_SUPPORTED = "comparisons of a column with a constant (=, !=, <, <=, >, >=, in, between, is null), joined by and, or, not"


def tests_null(condition: Condition, column: str) -> bool:
    """Whether a condition asks, somewhere in it, for missing entries of a column."""
    if isinstance(condition, Join):
        return any(tests_null(part, column) for part in condition.parts)
    if isinstance(condition, Not):
        return tests_null(condition.part, column)
    return isinstance(condition, IsNull) and condition.column == column


def columns_of(condition: Condition) -> tuple[str, ...]:
    """The columns a condition reads, each once."""
    return tuple(dict.fromkeys(_columns(condition)))


def _columns(condition: Condition) -> Iterator[str]:
    if isinstance(condition, Join):
        for part in condition.parts:
            yield from _columns(part)
    elif isinstance(condition, Not):
        yield from _columns(condition.part)
    else:
        yield condition.column


def literal(value: Value) -> str:
    """A constant as SQL writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def parse_condition(text: str) -> Condition:
    """Read a condition.

    >>> str(parse_condition("NOT (age>=65 OR gender IN ('F'))"))
    "not (age >= 65 or gender in ('F'))"
    """
    return _parsed(text)


@lru_cache(maxsize=1024)  # a plan on top of many releases reads the conditions of all of them
def _parsed(text: str) -> Condition:
    from attrpriv.queries.sql import not_too_deep, parse_expression

    return not_too_deep(lambda: condition_of(parse_expression(text)), text)


def condition_of(node: exp.Expression) -> Condition:
    """The condition that a parsed expression states, or a refusal that names what is not supported."""
    from sqlglot import expressions as exp

    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And | exp.Or):
        word: Literal["and", "or"] = "and" if isinstance(node, exp.And) else "or"
        return joined(word, condition_of(node.this), condition_of(node.expression))
    if isinstance(node, exp.Not):
        return Not(condition_of(node.this))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return IsNull(_column(node.this))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Literal) and node.expression.is_string:
        return Written(_column(node.this), str(node.expression.this))
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        return In(_column(node.this), tuple(_value(item) for item in node.expressions))
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        column = _column(node.this)
        ends = (Compare(column, ">=", _value(node.args["low"])), Compare(column, "<=", _value(node.args["high"])))
        return Join("and", ends)
    return _comparison(node)


def joined(word: Literal["and", "or"], *parts: Condition) -> Join:
    """The parts as one condition; those of the same word are taken apart, so that brackets make no difference."""
    flat = [part.parts if isinstance(part, Join) and part.word == word else (part,) for part in parts]
    return Join(word, tuple(one for listed in flat for one in listed))


def _comparison(node: exp.Expression) -> Compare:
    from sqlglot import expressions as exp

    operators: dict[type[exp.Expression], tuple[Operator, Operator]] = {
        exp.EQ: ("=", "="),
        exp.NEQ: ("!=", "!="),
        exp.LT: ("<", ">"),
        exp.LTE: ("<=", ">="),
        exp.GT: (">", "<"),
        exp.GTE: (">=", "<="),
    }
    found = operators.get(type(node))
    if found is None:
        raise QueryError(f"condition: must be {_SUPPORTED}. Got {as_sql(node)!r}.")
    left, right = node.this, node.expression
    if isinstance(left, exp.Column):
        return Compare(_column(left), found[0], _value(right))
    if isinstance(right, exp.Column):
        return Compare(_column(right), found[1], _value(left))
    meant = _dashed(left) or _dashed(right)
    hint = f" A name that is no plain word goes in double quotes: {quoted(meant)}." if meant else ""
    raise QueryError(f"condition: must compare a column with a constant. Got {as_sql(node)!r}.{hint}")


def _dashed(node: exp.Expression) -> str | None:
    """The name that was meant by a text, or by words with a dash between them, where a column should be."""
    from sqlglot import expressions as exp

    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.this)
    if isinstance(node, exp.Sub):
        parts = [_dashed(node.this), _dashed(node.expression)]
        return None if None in parts else "-".join(part for part in parts if part is not None)
    return str(node.name) if isinstance(node, exp.Column) else None


def _column(node: exp.Expression) -> str:
    from sqlglot import expressions as exp

    bare = isinstance(node, exp.Column) and not any(value for name, value in node.args.items() if name != "this")
    if not bare or not isinstance(node.this, exp.Identifier) or not node.name:
        raise QueryError(f"condition: must compare a column with a constant. Got {as_sql(node)!r}.")
    return str(node.name)


def _value(node: exp.Expression) -> Value:
    from sqlglot import expressions as exp

    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return negated(_number(node.this))
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else _number(node)
    hint = ""
    if isinstance(node, exp.Column):
        bare = node.name.strip(_CURLY)
        hint = f" A text goes in {'single' if bare == node.name else 'straight single'} quotes: {literal(bare)}."
    raise QueryError(f"condition: must compare a column with a constant. Got {as_sql(node)!r}.{hint}")


def as_sql(node: exp.Expression) -> str:
    """The text of an expression, to be quoted in a message; sqlglot must not log what it thinks of it."""
    from sqlglot import ErrorLevel

    return node.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE)


def _number(node: exp.Expression) -> Number:
    return exactly(str(node.this))


def exactly(text: str) -> Number:
    """The very number that a text states; one way to hold it for each way to write it in a condition's text.

    >>> exactly("7"), exactly("0.10"), exactly("1e3"), exactly("9007199254740993.0"), exactly("12345678901234567.01")
    (7, 0.1, 1000.0, 9007199254740993, Decimal('12345678901234567.01'))
    """
    if len(text) > _LONGEST_NUMBER or not math.isfinite(nearest := float(text)):
        raise QueryError(f"condition: numbers must be finite, and have fewer digits. Got {text[:40]}.")
    if text.isascii() and text.isdigit():
        return int(text)
    number = Decimal(text)
    if number and not nearest:  # its digits are not looked at: there may be a billion
        raise QueryError(f"condition: numbers must be 0 or at least 5e-324 in size. Got {text[:40]}.")
    if Decimal(repr(nearest)) == number:
        return nearest
    whole = int(number)
    return whole if whole == number else Decimal(format(number, "f").rstrip("0"))


def negated(number: Number) -> Number:
    """Decimals are not rounded to the digits of a context."""
    return number.copy_negate() if isinstance(number, Decimal) else -number


def exact_number(value: Number) -> Fraction:
    """A constant as it was written."""
    return Fraction(repr(value) if isinstance(value, float) else value)
