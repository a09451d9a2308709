"""Probabilities as numbers or intervals, and the laws of a row's values, as a policy writes them.

What must never change: every probability is kept as an interval [low, high] in [0, 1]; a number is an interval of width 0, and
stays one. What is computed from stated numbers is computed in fractions: a number that no float writes is kept as the fraction
that it is, the ends of an interval are rounded outward, so that no small probability is lost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from attrpriv.frozen import FrozenModel, Single
from attrpriv.frozen.requirements import percent_advice, shown
from attrpriv.numerics.laws.records import Interval01, Number, exactly
from attrpriv.numerics.rounding import SUM_SLACK

Pair = Interval01
# A number written to 16 digits is off by at most this.
_ROUNDED = Fraction(1, 2**53)
# A fraction nearer to 0 or 1 than this would be lost in floats.
_LEAST = Fraction(1, 10**290)
_DIGITS = 60
_RATIO = re.compile(rf"\s*([0-9]{{1,{_DIGITS}}})\s*/\s*([0-9]{{1,{_DIGITS}}})\s*")


def _read(value: Any) -> Pair:
    low, high = value if isinstance(value, list | tuple) and len(value) == 2 else (value, value)
    ends = _number(low, value), _number(high, value)
    if ends[0] > ends[1]:
        raise ValueError(f"the low end must not be above the high end. Got [{float(ends[0]):g}, {float(ends[1]):g}].")
    return ends


def _number(end: Any, value: Any) -> Number:
    """A float, or a fraction that no float writes: 5/13 in a policy file, a Fraction or a Decimal in Python."""
    exact = end if isinstance(end, int | float) and not isinstance(end, bool) else _exact(end)
    if exact is None:
        raise ValueError(f"must be a probability or an interval [low, high]. Got {shown(value)}.")
    if not 0 <= exact <= 1:
        raise ValueError(f"probabilities must be between 0 and 1. Got {shown(end)}.{percent_advice(end)}")
    number = kept(exact) if isinstance(exact, Fraction) else float(exact)
    if number is None or (isinstance(number, Fraction) and number.denominator >= 10**_DIGITS):
        raise ValueError(f"a fraction must have at most {_DIGITS} digits. Got {shown(end)}.")
    return number


def _exact(end: Any) -> Fraction | None:
    """What a fraction, or a decimal of any length, is; None where it is something else."""
    if isinstance(end, str):
        parts = _RATIO.fullmatch(end)
        return Fraction(int(parts[1]), int(parts[2])) if parts and int(parts[2]) else None
    if isinstance(end, Decimal) and end.is_finite() and -_DIGITS < end.adjusted() < _DIGITS:
        return Fraction(end)
    return end if isinstance(end, Fraction) else None


def _write(pair: Pair) -> float | str | list[float | str]:
    ends = [str(end) if isinstance(end, Fraction) else end for end in pair]
    return ends[0] if pair[0] == pair[1] else ends


Probability = Annotated[
    tuple[Number, Number],
    PlainValidator(_read, json_schema_input_type=float | str | tuple[float | str, float | str]),
    PlainSerializer(_write, return_type=Any),
]


class ValueLaw(FrozenModel):
    """The values that a row can have, with their probabilities."""

    values: tuple[Annotated[int | float | str, Single], ...] = Field(
        min_length=2, description="numbers, or names of categories"
    )
    probabilities: tuple[Probability, ...] = Field(description="of each value: a number or an interval")

    @model_validator(mode="after")
    def _whole(self) -> ValueLaw:
        if len(self.values) != len(self.probabilities):
            raise ValueError(f"needs a probability for each value. Got {len(self.values)} and {len(self.probabilities)}.")
        if min(len({str(value) for value in self.values}), len(set(self.values))) != len(self.values):  # 1 and 1.0 are one
            raise ValueError(f"values must be different. Got {list(self.values)}.")
        if len({isinstance(value, str) for value in self.values}) > 1:
            raise ValueError(f"values must be all numbers or all names. Got {list(self.values)}.")
        require_sum(self.probabilities)
        return self


def require_sum(probabilities: tuple[Pair, ...]) -> None:
    """Raise ValueError where no choice within the intervals sums to one; say by how much."""
    low, high = math.fsum(pair[0] for pair in probabilities), math.fsum(pair[1] for pair in probabilities)
    if low > 1 + SUM_SLACK or high < 1 - SUM_SLACK:
        off = low - 1 if low > 1 else high - 1
        raise ValueError(f"probabilities must sum to 1. Got a sum of {low if off > 0 else high:.10g}, off by {off:+.3g}.")


def kept(value: Fraction) -> Number | None:
    """The float that writes this number, else the number itself; None where it is too close to 0 or 1 for floats.

    >>> kept(Fraction(6, 10)), kept(Fraction(1, 3)), kept(Fraction(1, 10**400))
    (0.6, Fraction(1, 3), None)
    """
    near = float(value)
    if exactly(near) == value:
        return near
    return value if _LEAST <= value <= 1 - _LEAST else None


def outward(low: Fraction, high: Fraction) -> Pair:
    """A number as itself; of an interval, floats around it, where an end that a float writes exactly stays itself.

    >>> outward(Fraction(6, 10), Fraction(6, 10)), outward(Fraction(1, 3), Fraction(2, 3))[0] < Fraction(1, 3)
    ((0.6, 0.6), True)
    """
    number = kept(low) if low == high else None
    if number is not None:
        return number, number
    ends = float(low), float(high)
    if exactly(ends[0]) != low:
        ends = math.nextafter(ends[0], -math.inf), ends[1]
    if exactly(ends[1]) != high:
        ends = ends[0], math.nextafter(ends[1], math.inf)
    return max(0.0, ends[0]), min(1.0, ends[1])


def complement(pair: Pair) -> Pair:
    """The probability that an event does not happen.

    >>> complement((5 / 13, 5 / 13))[0]
    Fraction(1923076923076923, 3125000000000000)
    """
    return outward(1 - exactly(pair[1]), 1 - exactly(pair[0]))


def among(probabilities: Sequence[Pair], inside: Sequence[bool]) -> Pair:
    """The probability of some of a row's values, from those of all of them.

    >>> among(((0.1, 0.1), (0.2, 0.2), (0.7, 0.7)), (True, True, False))
    (0.3, 0.3)
    """
    if all(inside):
        return (1.0, 1.0)
    sums = {
        (end, side): sum(
            (exactly(pair[end]) for pair, yes in zip(probabilities, inside, strict=True) if yes == side), Fraction(0)
        )
        for end in (0, 1)
        for side in (True, False)
    }
    if all(low == high for low, high in probabilities):
        total = sums[0, True] + sums[0, False]
        if abs(total - 1) <= len(probabilities) * _ROUNDED:  # nothing but how finely they are written: shares of their sum
            return outward(sums[0, True] / total, sums[0, True] / total)
        # Numbers that do not quite sum to one leave it open which of them is meant.
        ends = min(Fraction(1), sums[0, True]), max(Fraction(0), 1 - sums[0, False])
        return outward(min(ends), max(ends))
    low = max(sums[0, True], 1 - sums[1, False])
    return outward(max(Fraction(0), low), min(Fraction(1), sums[1, True], 1 - sums[0, False]))


def weighted(weights: Mapping[str, Pair], laws: Mapping[str, tuple[Pair, ...]]) -> tuple[Pair, ...]:
    """The law of a row that is in one of several categories: their average where the weights are numbers, else their hull."""
    names = list(laws)
    if len(names) == 1:
        return laws[names[0]]
    if not all(name in weights and weights[name][0] == weights[name][1] for name in names):
        return tuple((min(law[k][0] for law in laws.values()), max(law[k][1] for law in laws.values())) for k in _sizes(laws))
    shares = {name: exactly(weights[name][0]) for name in names}
    if not sum(shares.values()) > 0:
        return weighted({}, laws)
    return tuple(mixed(shares, {name: law[k] for name, law in laws.items()}) for k in _sizes(laws))


def mixed(shares: Mapping[str, Fraction], pairs: Mapping[str, Pair]) -> Pair:
    """The average of intervals, weighted, rounded outward."""
    total = sum(shares.values())
    ends = [sum(share * exactly(pairs[name][end]) for name, share in shares.items()) / total for end in (0, 1)]
    return outward(Fraction(ends[0]), Fraction(ends[1]))


def _sizes(laws: Mapping[str, tuple[Pair, ...]]) -> range:
    return range(len(next(iter(laws.values()))))


def share_of(prior: Mapping[str, Pair], members: Iterable[str], categories: Sequence[str]) -> tuple[float, float] | None:
    """The prior share of these categories together; None where it is not stated, for the others neither.

    >>> share_of({"a": (0.25, 0.5)}, ["b", "c"], ["a", "b", "c"])
    (0.5, 0.75)
    """
    inside = set(members)
    outside = set(categories) - inside
    if inside <= set(prior):
        low, high = (math.fsum(prior[name][k] for name in inside) for k in (0, 1))
        return min(1.0, low), min(1.0, high)
    if not outside <= set(prior):
        return None
    low, high = (1 - math.fsum(prior[name][k] for name in outside) for k in (1, 0))
    return max(0.0, low), max(0.0, high)


def filled(law: Sequence[Pair], order: Sequence[int]) -> list[float]:
    """The law within these intervals that has as much as possible on the first of the order, and so on."""
    ends = [(float(low), float(high)) for low, high in law]
    chances = [low for low, _ in ends]
    left = max(0.0, 1 - math.fsum(chances))
    for k in order:
        width = ends[k][1] - ends[k][0]
        # An interval that is filled ends where it was stated to end.
        chances[k] = ends[k][1] if left >= width - 1e-12 else chances[k] + left
        left = max(0.0, left - width)
    return chances
