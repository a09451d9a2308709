"""Whether a condition on one column holds for a whole category of it: a value, or a bin of a numeric column.

What must never change: the answer is what an engine would say of every row of the category. Where rows of one bin differ, or a
text is compared with a number, there is no answer and the condition is refused. So it is where a number is written with more
digits than a double has and that matters: columns of decimals and of floats would answer differently.
"""

from __future__ import annotations

import itertools
import math
import re
import struct
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
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
    columns_of,
    exact_number,
    exactly,
    literal,
    parse_condition,
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


def holds_in(condition: Condition, row: Mapping[str, Value | None]) -> bool:
    """Whether a row with these entries satisfies the condition, as an engine decides it: a missing entry leaves it unknown.

    Numbers are taken as they are written. A text compared with a number, or by its order, is refused.

    >>> holds_in(parse_condition("age >= 65 and sex = 'F'"), {"age": 70, "sex": "F"})
    True
    """
    for leaf in _leaves(condition):
        _require_alike(leaf, row[leaf.column])
    tried: dict[str, Tried] = {name: _as_tried(one) if one is not None else None for name, one in row.items()}
    return _holds(condition, tried) is True


def _require_alike(leaf: Compare | In | IsNull | Written, entry: Value | None) -> None:
    """A condition that an engine would refuse for the column's type, or decide in its own way, is refused here."""
    if isinstance(leaf, Written):
        raise QueryError(f"condition: {leaf} must compare with a value.")
    values = leaf.values if isinstance(leaf, In) else (leaf.value,) if isinstance(leaf, Compare) else ()
    kinds = {bool: "true or false", str: "text"}
    for value in values if entry is not None else ():
        if kinds.get(type(value), "a number") != kinds.get(type(entry), "a number"):
            raise QueryError(f"condition: {leaf} must compare {leaf.column} with {kinds.get(type(entry), 'a number')}.")
        if isinstance(value, str | bool) and isinstance(leaf, Compare) and leaf.operator not in ("=", "!="):
            raise QueryError(f"condition: {leaf} must compare a text, or true and false, by = or !=.")


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


# ----------------------------------------------------------------------------------------------------------------------------
# How the rows of two conditions lie to each other in every table: apart, the same, or the one inside the other.
#
# Between neighbouring constants that two conditions compare a column with, each of them holds for all values or for none. So
# it is enough to try every constant, a value between any two, one beyond either end, NaN and a missing entry; with several
# columns all combinations of these.
#
# What must never change: where this cannot tell, there is no answer. Texts are compared for equality only. Constants that
# some column type or collation may take for one another (`A`, `a ` and `ä`, numbers that agree as 32-bit floats, 1 and 1.0)
# are not told apart. No list of such things is complete, so a release counts in the table whether it is so (`cases.subset`).


Relation = Literal["same", "inside", "around", "apart"]
# A value to try: a constant, a number between two of them, or None for a missing entry.
Tried = Value | Fraction | None

_MOST_TRIED = 20_000


@lru_cache(maxsize=65536)  # a plan on top of many releases compares the conditions of all of them
def relation(first: str | None, second: str | None) -> Relation | None:
    """What holds of the rows of two conditions in every table (None as a condition: all rows); None: that depends.

    >>> relation("ward = 'a'", "ward in ('a', 'b')"), relation("age < 18", "age between 18 and 65"), relation("a = 1", "b = 1")
    ('inside', 'apart', None)
    """
    if first == second:
        return "same"
    if first is None or second is None:
        return "around" if first is None else "inside"
    conditions = parse_condition(first), parse_condition(second)
    points = _points(conditions)
    if points is None:
        return None
    return _compared(*({k for k, point in enumerate(points) if _holds(one, point)} for one in conditions))


def _compared(first: set[int], second: set[int]) -> Relation | None:
    if not first & second:
        return "apart"
    if first == second:
        return "same"
    if first < second:
        return "inside"
    return "around" if first > second else None


def _points(conditions: Sequence[Condition]) -> list[dict[str, Tried]] | None:
    """Rows that stand for all rows; None where there are none, or too many."""
    columns = dict.fromkeys(column for one in conditions for column in columns_of(one))
    tried = [_tried([leaf for one in conditions for leaf in _leaves(one) if leaf.column == column]) for column in columns]
    known = [values for values in tried if values is not None]
    if len(known) < len(tried) or math.prod(map(len, known)) > _MOST_TRIED:
        return None
    return [dict(zip(columns, row, strict=True)) for row in itertools.product(*known)]


def _leaves(condition: Condition) -> Iterator[Compare | In | IsNull | Written]:
    if isinstance(condition, Join):
        for part in condition.parts:
            yield from _leaves(part)
    elif isinstance(condition, Not):
        yield from _leaves(condition.part)
    else:
        yield condition


def _tried(leaves: Sequence[Compare | In | IsNull | Written]) -> list[Tried] | None:
    """The values of one column to try; None where its constants cannot be told apart for sure."""
    if any(isinstance(leaf, Written) for leaf in leaves):
        return None
    listed = [leaf.values if isinstance(leaf, In) else (leaf.value,) for leaf in leaves if isinstance(leaf, Compare | In)]
    constants = list(dict.fromkeys(value for values in listed for value in values))
    kinds = {type(value) if isinstance(value, str | bool) else float for value in constants}
    ordered = any(isinstance(leaf, Compare) and leaf.operator not in ("=", "!=") for leaf in leaves)
    if len(kinds) > 1 or (ordered and kinds != {float}):
        return None
    if kinds == {bool}:
        return [True, False, None]
    spelled = {(type(value), value) for values in listed for value in values}  # 1 and 1.0 may be compared in different types
    if len({_coarse(value) for value in constants}) < len(spelled):
        return None
    return [*_between(constants), None]


def _between(constants: Sequence[Value]) -> list[Tried]:
    """The constants, and a value for everything else: of numbers, one in each gap, beyond either end, and NaN."""
    texts = [value for value in constants if isinstance(value, str)]
    if texts or not constants:
        return [*texts, "".join(texts) + "+"]
    numbers = sorted(exact_number(value) for value in constants if not isinstance(value, str))
    gaps = [(low + high) / 2 for low, high in itertools.pairwise(numbers)]
    return [*numbers, *gaps, numbers[0] - 1, numbers[-1] + 1, math.nan]


def _coarse(value: Value) -> str | bytes:
    if isinstance(value, str):  # without accents, punctuation, case, and zeros before a number
        letters = [one for one in unicodedata.normalize("NFKD", value).casefold() if one.isalnum()]
        return re.sub(r"(?<!\d)0+", "", "".join(letters))
    return struct.pack("f", float(value)) if abs(exact_number(value)) < 3e38 else b""


def _holds(condition: Condition, row: Mapping[str, Tried]) -> bool | None:
    """SQL's three-valued logic: None is unknown, and no row of an answer."""
    if isinstance(condition, Join):
        parts = [_holds(part, row) for part in condition.parts]
        decided = condition.word == "or"
        return decided if decided in parts else (None if None in parts else not decided)
    if isinstance(condition, Not):
        held = _holds(condition.part, row)
        return None if held is None else not held
    value = row[condition.column]
    if isinstance(condition, IsNull):
        return value is None
    if value is None or isinstance(condition, Written):
        return None
    if isinstance(condition, In):
        return any(value == _as_tried(one) for one in condition.values)
    return bool(OPERATORS[condition.operator](value, _as_tried(condition.value)))


def _as_tried(constant: Value) -> Tried:
    """A number as it was written: decimals compare it so, and floats, which take the nearest double, in the same order."""
    return constant if isinstance(constant, str | bool) else exact_number(constant)
