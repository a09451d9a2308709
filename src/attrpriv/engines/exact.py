"""Comparing a column with a constant, exactly: what an engine would round, is decided before it is asked.

| column | a constant c, as it was written |
|---|---|
| whole numbers | c rounded to the side that changes nothing: x >= 2.5 is x >= 3, and x = 2.5 never holds |
| decimals | the same in units of the last digit |
| floats, 32 bits too | as doubles, with the double nearest to c |

What must never change: no number of an exact type becomes a float on its way, and a constant outside the range of a type is
above or below all of its values. A missing entry satisfies neither a comparison nor its opposite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from attrpriv.queries.conditions import OPERATORS, Operator


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
