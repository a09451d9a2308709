"""Conditions of a row as engine expressions. Names and constants are data: Ibis quotes them.

What must never change: a column is compared in its own type, exactly (`exact`), so that every engine says the same of a row.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from types import MappingProxyType
from typing import Any

from attrpriv.engines.grid import very_float
from attrpriv.engines.tables import shown_name
from attrpriv.errors import DataError
from attrpriv.queries.conditions import (
    OPERATORS,
    Compare,
    Condition,
    In,
    IsNull,
    Join,
    Not,
    Number,
    Operator,
    Value,
    Written,
    columns_of,
    exact_number,
    literal,
)

_CONSTANTS: Mapping[str, str] = MappingProxyType(
    {
        "text": "a text column with a text constant",
        "boolean": "a boolean column with true or false",
        "date": "a date column with a date as text, such as '2020-01-31'",
        "integer": "an integer column with a number",
        "decimal": "a decimal column with a number",
        "float": "a float column with a number",
    }
)


_TRUTHS = MappingProxyType({"true": "true", "yes": "true", "1": "true", "false": "false", "no": "false", "0": "false"})


@dataclass(frozen=True)
class Entry:
    """A column whose missing entries count as `fill`, and whose numbers are taken into `clip`.

    Neither changes the column, whose type may have no such value: what a comparison says of the value is known without it.
    """

    column: Any
    fill: float | None = None
    clip: tuple[float, float] | None = None


def holds(table: Any, condition: Condition) -> Any:
    """Whether a row of a table (or of columns or entries by name) satisfies the condition: true or false, never NULL."""
    return _three_valued(table, condition).fill_null(False)


def _three_valued(table: Any, condition: Condition) -> Any:
    if isinstance(condition, Join):
        parts = [_three_valued(table, part) for part in condition.parts]
        return reduce(operator.and_ if condition.word == "and" else operator.or_, parts)
    if isinstance(condition, Not):
        return ~_three_valued(table, condition.part)
    column = table[condition.column]
    return _of_entry(column, condition) if isinstance(column, Entry) else _of_column(column, condition)


def _of_column(column: Any, condition: Compare | In | IsNull | Written) -> Any:
    if isinstance(condition, IsNull):
        return column.isnull()
    if isinstance(condition, Written):
        return column == _day(condition.text) if column.type().is_date() else column.cast("string") == condition.text
    return _compared(column, condition)


def _of_entry(entry: Entry, condition: Compare | In | IsNull | Written) -> Any:
    if isinstance(condition, IsNull):
        return entry.column.isnull() if entry.fill is None else entry.column.isnull() & entry.column.notnull()
    if isinstance(condition, In):
        return reduce(operator.or_, [_of_entry(entry, Compare(condition.column, "=", value)) for value in condition.values])
    if isinstance(condition, Written):
        return _written(entry, condition)
    if isinstance(condition.value, str | bool):
        found = _of_column(entry.column, condition)
        return found if entry.fill is None else found.fill_null(bool(entry.fill) == condition.value)
    read: Callable[[Number], Fraction] = exact_number if is_exact(entry.column.type()) else _nearest
    ends = None if entry.clip is None else (read(entry.clip[0]), read(entry.clip[1]))
    found = _clipped(entry.column, condition, read(condition.value), ends)
    if entry.fill is None:
        return found
    value = read(entry.fill) if ends is None else min(max(read(entry.fill), ends[0]), ends[1])
    return found.fill_null(bool(OPERATORS[condition.operator](value, read(condition.value))))


def _nearest(number: Number) -> Fraction:
    return Fraction(float(number))


def _written(entry: Entry, condition: Written) -> Any:
    """A category by its name. A whole number has one; other types are written by the engine, and true or false if filled."""
    if entry.column.type().is_integer():
        if re.fullmatch(r"0|-?[1-9][0-9]*", condition.text):
            return _of_entry(entry, Compare(condition.column, "=", int(condition.text)))
        found = constantly(entry.column, False)
    else:
        found = _of_column(entry.column, condition)
    return found if entry.fill is None else found.fill_null(str(bool(entry.fill)).lower() == condition.text)


def _clipped(column: Any, condition: Compare, constant: Fraction, ends: tuple[Fraction, Fraction] | None) -> Any:
    """A comparison of what the column is after clipping: decided where the constant is at or beyond an end."""
    sign = condition.operator
    if ends is None:
        return _compared(column, condition)
    if sign == "=":
        return _clipped(column, replace(condition, operator="<="), constant, ends) & _clipped(
            column, replace(condition, operator=">="), constant, ends
        )
    if sign == "!=":
        return ~_clipped(column, replace(condition, operator="="), constant, ends)
    if constant < ends[0] or (constant == ends[0] and sign in ("<", ">=")):
        return constantly(column, sign in (">", ">="))
    if constant > ends[1] or (constant == ends[1] and sign in ("<=", ">")):
        return constantly(column, sign in ("<", "<="))
    return _compared(column, condition)


def _compared(column: Any, condition: Compare | In) -> Any:
    """A comparison in the column's own type."""
    values = condition.values if isinstance(condition, In) else (condition.value,)
    if is_exact(column.type()):
        numbers = [exact_number(value) for value in values if not isinstance(value, str | bool)]
        return one_of(column, numbers) if isinstance(condition, In) else compared(column, condition.operator, numbers[0])
    if column.type().is_floating():
        column = column.cast("float64")
    constants = _constants(column.type(), values)
    return column.isin(constants) if isinstance(condition, In) else OPERATORS[condition.operator](column, constants[0])


def _constants(dtype: Any, values: Sequence[Value]) -> list[Any]:
    """Constants for a type that is not exact: the doubles nearest to numbers, days, and texts and booleans as they are."""
    if dtype.is_floating():
        return [very_float(float(value)) for value in values]
    return [_day(str(value)) for value in values] if dtype.is_date() else list(values)


def _day(text: str) -> Any:
    import ibis

    return ibis.literal(date.fromisoformat(text))


def check_condition(columns: Mapping[str, str], condition: Condition, key: str = "condition") -> None:
    """Raise DataError, from the schema alone, where a condition names an unknown column or compares unlike things.

    `key` is where the condition stands, for the message.
    """
    for name in columns_of(condition):
        if name not in columns:
            raise DataError(f"{key}: the column must be one of the table's. Got {shown_name(name)} in {condition}.")
    _check_types(columns, condition, key)


def _check_types(columns: Mapping[str, str], condition: Condition, key: str) -> None:
    if isinstance(condition, Join):
        for part in condition.parts:
            _check_types(columns, part, key)
    elif isinstance(condition, Not):
        _check_types(columns, condition.part, key)
    elif isinstance(condition, Compare | In):
        values = condition.values if isinstance(condition, In) else (condition.value,)
        for value in values:
            _check_value(columns[condition.column], value, condition, key)
    elif isinstance(condition, Written) and columns[condition.column] in ("float", "decimal", "other"):
        raise DataError(f"between: {shown_name(condition.column)} is not a category column; declare bins for it.")
    elif isinstance(condition, Written) and columns[condition.column] == "date":
        _check_value("date", condition.text, condition, key)


def _check_value(kind: str, value: Value, condition: Compare | In | Written, key: str) -> None:
    if kind == "other":
        name = shown_name(condition.column)
        raise DataError(
            f"{key}: the column must hold numbers, text, booleans or dates. Got {name} in {condition}. "
            "Give the table a column of such a type, such as the date of a time."
        )
    fits = {
        "text": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "date": isinstance(value, str) and _is_day(value),
    }.get(kind, isinstance(value, int | float | Decimal) and not isinstance(value, bool))
    if not fits:
        raise DataError(f"{key}: must compare {_CONSTANTS[kind]}. Got {condition}.{_meant(kind, value)}")


def _meant(kind: str, value: Value) -> str:
    """The same constant as the column's type writes it, where it has such a value."""
    if kind == "text":
        return f" Put it in single quotes: '{literal(value)}'."
    if kind == "boolean" and str(value).lower() in _TRUTHS:
        return f" Write {_TRUTHS[str(value).lower()]} without quotes."
    if kind in ("integer", "decimal", "float") and isinstance(value, bool):
        return f" Write {value:d}."
    if kind in ("integer", "decimal", "float") and isinstance(value, str) and re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+)?", value):
        return f" Write {value} without quotes."
    return ""


def _is_day(text: str) -> bool:
    """Whether a text is a day as ISO writes it, in the one way that the engines have too."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


# ----------------------------------------------------------------------------------------------------------------------------
# Comparing a column with a constant, exactly: what an engine would round, is decided before it is asked.
#
# | column | a constant c, as it was written |
# |---|---|
# | whole numbers | c rounded to the side that changes nothing: x >= 2.5 is x >= 3, and x = 2.5 never holds |
# | decimals | the same in units of the last digit |
# | floats, 32 bits too | as doubles, with the double nearest to c |
#
# What must never change: no number of an exact type becomes a float on its way, and a constant outside the range of a type is
# above or below all of its values. A missing entry satisfies neither a comparison nor its opposite.


def is_exact(dtype: Any) -> bool:
    """Whether values of the type are whole numbers or decimals."""
    return bool(dtype.is_integer() or dtype.is_decimal())


def compared(value: Any, sign: Operator, constant: Fraction) -> Any:
    """value sign constant, for an exact type."""
    least, most, scale = spacing(value.type(), constant)
    units = constant * 10**scale
    if sign in ("=", "!="):
        inside = units.denominator == 1 and least <= units <= most
        return OPERATORS[sign](value, in_type(value.type(), int(units), scale)) if inside else constantly(value, sign == "!=")
    upwards = sign in ("<", ">=")
    bound = math.ceil(units) if upwards else math.floor(units)
    none, every = (bound <= least, bound > most) if upwards else (bound < least, bound >= most)  # of the values are below
    if none or every:
        return constantly(value, every == (sign in ("<", "<=")))
    return OPERATORS[sign](value, in_type(value.type(), bound, scale))


def one_of(value: Any, constants: Iterable[Fraction]) -> Any:
    """value in (constants), for an exact type."""
    listed = []
    for constant in constants:
        least, most, scale = spacing(value.type(), constant)
        units = constant * 10**scale
        if units.denominator == 1 and least <= units <= most:
            listed.append(in_type(value.type(), int(units), scale))
    return value.isin(listed) if listed else constantly(value, False)


def constantly(value: Any, truth: bool) -> Any:
    """True or false of every value that is there; of a missing one neither."""
    return value == value if truth else value != value


def spacing(dtype: Any, constant: Fraction) -> tuple[float, float, int]:
    """The least and the greatest value of an exact type, in units of 10**-scale, and that scale."""
    if dtype.is_integer():
        return dtype.bounds.lower, dtype.bounds.upper, 0
    if dtype.scale is None or dtype.precision is None:  # PostgreSQL's plain numeric: as many digits as the constant has
        return -math.inf, math.inf, constant.denominator.bit_length() - 1
    most = 10**dtype.precision - 1
    return -most, most, dtype.scale


def in_type(dtype: Any, units: int, scale: int) -> Any:
    """units * 10**-scale in the column's type; a decimal goes as text, because Ibis cuts one to 38 digits."""
    import ibis

    if dtype.is_integer():
        return ibis.literal(units, type=dtype)
    return ibis.literal(format(Decimal(f"{units}E-{scale}"), "f")).cast(dtype)
