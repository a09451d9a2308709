"""Conditions of a row as engine expressions. Names and constants are data: Ibis quotes them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any

from attrpriv.errors import DataError
from attrpriv.queries.conditions import Compare, Condition, In, IsNull, Join, Not, Written, columns_of

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "=": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
)


def holds(table: Any, condition: Condition) -> Any:
    """Whether a row of a table (or of columns by name) satisfies the condition: true or false, never NULL, as in WHERE."""
    return _three_valued(table, condition).fill_null(False)


def _three_valued(table: Any, condition: Condition) -> Any:
    if isinstance(condition, Join):
        parts = [_three_valued(table, part) for part in condition.parts]
        return reduce(operator.and_ if condition.word == "and" else operator.or_, parts)
    if isinstance(condition, Not):
        return ~_three_valued(table, condition.part)
    column = table[condition.column]
    if isinstance(condition, IsNull):
        return column.isnull()
    if isinstance(condition, Written):
        return column.cast("string") == condition.text
    if isinstance(condition, In):
        return column.isin(list(condition.values))
    return _OPERATORS[condition.operator](column, condition.value)


def check_condition(columns: Mapping[str, str], condition: Condition) -> None:
    """Raise DataError, from the schema alone, where a condition names an unknown column or compares unlike things."""
    for name in columns_of(condition):
        if name not in columns:
            raise DataError(f"condition: the column must be one of the table's. Got {name!r} in {condition}.")
    _check_types(columns, condition)


def _check_types(columns: Mapping[str, str], condition: Condition) -> None:
    if isinstance(condition, Join):
        for part in condition.parts:
            _check_types(columns, part)
    elif isinstance(condition, Not):
        _check_types(columns, condition.part)
    elif isinstance(condition, Compare | In):
        values = condition.values if isinstance(condition, In) else (condition.value,)
        for value in values:
            _check_value(columns[condition.column], value, condition)
    elif isinstance(condition, Written) and columns[condition.column] in ("float", "decimal", "other"):
        raise DataError(f"between: {condition.column} is not a category column; declare bins for it.")


def _check_value(kind: str, value: object, condition: Condition) -> None:
    fits = {
        "text": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "other": False,
    }.get(kind, isinstance(value, int | float) and not isinstance(value, bool))
    if not fits:
        raise DataError(f"condition: must compare a {kind} column with a {kind} constant. Got {condition}.")
