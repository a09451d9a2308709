"""How the rows of two conditions lie to each other in every table: apart, the same, or the one inside the other.

Between neighbouring constants that two conditions compare a column with, each of them holds for all values or for none. So it
is enough to try every constant, a value between any two, one beyond either end, NaN and a missing entry; with several columns
all combinations of these.

What must never change: where this cannot tell, there is no answer. Texts are compared for equality only. Constants that some
column type or collation may take for one another (`A`, `a ` and `ä`, numbers that agree as 32-bit floats, 1 and 1.0) are not
told apart. No list of such things is complete, so a release counts in the table whether it is so (`cases.subset`).
"""

from __future__ import annotations

import itertools
import math
import re
import struct
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from attrpriv.queries.conditions import (
    OPERATORS,
    Compare,
    Condition,
    In,
    IsNull,
    Join,
    Not,
    Value,
    Written,
    columns_of,
    exact_number,
    parse_condition,
)

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
