"""Whether a condition on one column holds for a whole category of it: a value, or a bin of a numeric column.

What must never change: the answer is what an engine would say of every row of the category. Where rows of one bin differ, or a
text is compared with a number, there is no answer and the condition is refused. So it is where a number is written with more
digits than a double has and that matters: columns of decimals and of floats would answer differently.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from attrpriv.errors import QueryError
from attrpriv.queries.conditions import (
    OPERATORS,
    Compare,
    Condition,
    In,
    IsNull,
    Join,
    Not,
    Number,
    Value,
    Written,
    exact_number,
    exactly,
    literal,
)

# How a number is taken: as it is written, or as the nearest double.
Reading = Callable[[Number], Fraction]


@dataclass(frozen=True)
class Bin:
    """The numbers from low to high; the last bin of a column includes its high end."""

    low: float
    high: float
    closed: bool

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}{']' if self.closed else ')'}"


Category = str | int | float | bool | Bin


def holds_for(condition: Condition, category: Category) -> bool:
    """The condition's truth for rows of this category, whatever column it names.

    >>> holds_for(Compare("age", ">=", 65), Bin(65, 120, True)), holds_for(Compare("smoker", "=", "yes"), "no")
    (True, False)
    """
    if isinstance(condition, Join):
        parts = [holds_for(part, category) for part in condition.parts]
        return all(parts) if condition.word == "and" else any(parts)
    if isinstance(condition, Not):
        return not holds_for(condition.part, category)
    if isinstance(condition, IsNull):
        return False
    if isinstance(condition, In):
        return any(_compare("=", category, value, condition) for value in condition.values)
    if isinstance(condition, Written):
        return _spelled(category, condition) == condition.text
    return _compare(condition.operator, category, condition.value, condition)


def _spelled(category: Category, whole: Condition) -> str:
    """A category by its name. How an engine spells a number depends on the column's type, so a number has none."""
    if isinstance(category, bool):
        return str(category).lower()
    if isinstance(category, str):
        return category
    raise QueryError(f"condition: {whole} must compare the category {category} with a number.")


def _compare(sign: Literal["=", "!=", "<", "<=", ">", ">="], category: Category, value: Value, whole: Compare | In) -> bool:
    if isinstance(category, Bin):
        return _bin_compare(sign, category, value, whole)
    if isinstance(value, str | bool):
        if sign not in ("=", "!="):
            raise QueryError(f"condition: {whole} must compare a category by = or !=.")
        same = _truth(category, whole) == value if isinstance(value, bool) else _spelled(category, whole) == value
        return same == (sign == "=")
    number = _number(category)
    if number is None:
        raise QueryError(f"condition: {whole} must compare the category {category!r} with a text.")
    return _in_every_type(lambda read: OPERATORS[sign](read(number), read(value)), whole, (number, value))


def _in_every_type(holds: Callable[[Reading], bool], whole: Compare | In, numbers: Sequence[Number]) -> bool:
    """What is so as the numbers are written and as doubles, of which a column of either kind may consist."""
    written = holds(exact_number)
    if not all(isinstance(number, int) for number in numbers) and holds(_nearest) != written:
        raise QueryError(f"condition: {whole} must compare with a number of fewer digits: floats cannot tell it from others.")
    return written


def _nearest(number: Number) -> Fraction:
    """The nearest double."""
    return Fraction(float(number)) if abs(exact_number(number)) < sys.float_info.max else exact_number(number)


def _truth(category: Category, whole: Condition) -> bool:
    """Of a boolean column: true and false, by name or as 1 and 0."""
    for truth, spellings in ((True, (True, "true")), (False, (False, "false"))):
        if category in spellings:
            return truth
    raise QueryError(f"condition: {whole} must compare the category {category!r} with a text or a number.")


def _number(category: Category) -> Number | None:
    """Whole numbers stay whole, whatever their size, and decimals as they are written."""
    if isinstance(category, bool | Bin):
        return None
    if isinstance(category, int | float):
        return category if math.isfinite(category) else None
    with suppress(ValueError):
        return int(category)
    with suppress(ValueError, ArithmeticError, QueryError):
        return exactly(category)
    return None


def _bin_compare(sign: str, rows: Bin, value: Value, whole: Compare | In) -> bool:
    if isinstance(value, str | bool):
        raise QueryError(f"condition: {whole} must compare a binned column with a number.")
    return _in_every_type(lambda read: _cut(sign, rows, read(value), read, whole), whole, (rows.low, rows.high, value))


def _cut(sign: str, rows: Bin, value: Fraction, read: Reading, whole: Compare | In) -> bool:
    low, high = read(rows.low), read(rows.high)
    ends = {
        "<": (high < value or (high == value and not rows.closed), low >= value),
        "<=": (high <= value, low > value),
        ">": (low > value, high <= value),
        ">=": (low >= value, high < value or (high == value and not rows.closed)),
    }
    surely, never = ends.get(sign, (False, False))
    if surely or never:
        return surely
    if sign in ("=", "!=") and not (low <= value < high or (rows.closed and value == high)):
        return sign == "!="
    raise QueryError(f"condition: {whole} cuts the bin {rows}; choose bins with an edge there.")


def names_only(condition: Condition, names: Sequence[str]) -> bool:
    """Whether a condition can hold for rows of these named categories alone, whatever other values, or none, rows may have."""
    if isinstance(condition, Join):
        parts = [names_only(part, names) for part in condition.parts]
        return any(parts) if condition.word == "and" else all(parts)
    if isinstance(condition, Written):
        return condition.text in names
    values = condition.values if isinstance(condition, In) else ()
    if isinstance(condition, Compare) and condition.operator == "=":
        values = (condition.value,)
    return bool(values) and all((value if isinstance(value, str) else literal(value)) in names for value in values)
