"""Unions of intervals: the sets of values that a policy's `cases` name.

    "< a"   "<= a"   "> a"   ">= a"          a half-line
    "[a, b)"   "(a, b]"   "[a, b]"   "(a, b)"  a bounded interval
    "abs < a"   "abs <= a"                   values within a of zero
    "abs > a"   "abs >= a"                   values at least a from zero
    any of these joined by " or "

What must never change: a union that exists is normalised (parts in increasing order, no two of which touch or overlap), holds
an interval of positive length, and is not the whole line. `parse_case(str(union)) == union`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from attrpriv.errors import QueryError, UsageError

_SYNTAX = 'a union of intervals such as "< 5", ">= 5", "[0, 5)", "abs < 5", joined by " or "'
_NUMBER = r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?%?"
_HALF_LINE = re.compile(rf"(abs\s*)?(<=|>=|<|>)\s*({_NUMBER})", re.IGNORECASE)
_BOUNDED = re.compile(rf"([\[(])\s*({_NUMBER})\s*,\s*({_NUMBER})\s*([\])])")
# Standardising an end takes a subtraction and a division; this covers their rounding on either side.
_ULPS = 4 * 2.0**-52
_LARGEST = 1e100


@dataclass(frozen=True, order=True)
class Interval:
    """From `low` to `high`; an infinite end is open.

    `low_closed` and `high_closed` say whether the ends belong to it.

    >>> 2 in Interval(1, 2), 2 in Interval(1, 2, high_closed=True)
    (False, True)
    """

    low: float
    high: float
    low_closed: bool = False
    high_closed: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise QueryError(f"interval: the low end must be below the high end. Got {self.low:g} and {self.high:g}.")
        object.__setattr__(self, "low", self.low + 0.0)  # -0.0 becomes 0.0, so that equal sets are equal values
        object.__setattr__(self, "high", self.high + 0.0)
        object.__setattr__(self, "low_closed", self.low_closed and math.isfinite(self.low))
        object.__setattr__(self, "high_closed", self.high_closed and math.isfinite(self.high))

    def __contains__(self, value: float) -> bool:
        above = value > self.low or (value == self.low and self.low_closed)
        return above and (value < self.high or (value == self.high and self.high_closed))

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"{'<=' if self.high_closed else '<'} {_written(self.high)}"
        if math.isinf(self.high):
            return f"{'>=' if self.low_closed else '>'} {_written(self.low)}"
        opening, closing = "[" if self.low_closed else "(", "]" if self.high_closed else ")"
        return f"{opening}{_written(self.low)}, {_written(self.high)}{closing}"


@dataclass(frozen=True)
class EndRange:
    """An interval whose ends move: `low` and `high` are each somewhere in a range. An infinite end stays.

    >>> EndRange((0.0, 1.0), (2.0, 3.0)).widest
    Interval(low=0.0, high=3.0, low_closed=False, high_closed=False)
    """

    low: tuple[float, float]
    high: tuple[float, float]

    @property
    def lowest(self) -> Interval:
        """Both ends as far down as they go: the stochastically smallest of the truncated laws."""
        return Interval(self.low[0], self.high[0])

    @property
    def highest(self) -> Interval:
        """Both ends as far up as they go."""
        return Interval(self.low[1], self.high[1])

    @property
    def widest(self) -> Interval:
        """The interval that contains every position."""
        return Interval(self.low[0], self.high[1])

    @property
    def narrowest(self) -> Interval | None:
        """The interval that every position contains, if there is one."""
        return Interval(self.low[1], self.high[0]) if self.low[1] < self.high[0] else None


@dataclass(frozen=True)
class IntervalUnion:
    """A set of values; the parts may be given in any order and may overlap.

    `parts` are its intervals.

    >>> str(IntervalUnion((Interval(1, 2, low_closed=True), Interval(0, 1))))
    '(0, 2)'
    """

    parts: tuple[Interval, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise QueryError("cases: a set needs at least one interval. Got none.")
        object.__setattr__(self, "parts", _merged(self.parts))
        if len(self.parts) == 1 and math.isinf(self.parts[0].low) and math.isinf(self.parts[0].high):
            raise QueryError("cases: a set must leave some values out. Got every value.")

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.parts[0].low) and math.isfinite(self.parts[-1].high)

    @property
    def ends(self) -> tuple[float, ...]:
        """The finite ends, in increasing order."""
        return tuple(end for part in self.parts for end in (part.low, part.high) if math.isfinite(end))

    def __contains__(self, value: float) -> bool:
        return any(value in part for part in self.parts)

    def __str__(self) -> str:
        return _symmetric(self.parts) or " or ".join(map(str, self.parts))

    def overlaps(self, other: IntervalUnion) -> bool:
        """Whether some value lies in both."""
        return any(_overlap(a, b) for a in self.parts for b in other.parts)

    def gap(self, other: IntervalUnion) -> float:
        """The largest distance of a value here from a value there: what the pointwise rule has to hide."""
        return max(self.parts[-1].high - other.parts[0].low, other.parts[-1].high - self.parts[0].low)

    def standardised(self, mean: float, sd: float) -> IntervalUnion:
        """The same set of (value - mean)/sd.

        >>> str(parse_case("[55, 60)").standardised(50, 5))
        '[1, 2)'
        """
        _require_moments(mean, sd)
        parts = ((part, _shifted(part.low, mean) / sd, _shifted(part.high, mean) / sd) for part in self.parts)
        return IntervalUnion(tuple(Interval(low, high, part.low_closed, part.high_closed) for part, low, high in parts))

    def end_ranges(self, means: tuple[float, float], sds: tuple[float, float]) -> tuple[EndRange, ...]:
        """Where the ends of (value - mean)/sd can be, for every mean and sd in these ranges, rounded outwards."""
        _require_moments(means[0], sds[0])
        _require_moments(means[1], sds[1])
        return tuple(EndRange(_moved(part.low, means, sds), _moved(part.high, means, sds)) for part in self.parts)


def parse_case(text: str) -> IntervalUnion:
    """Read one entry of `cases`.

    `text` is a comparison, a range such as "[1, 2)", or one of these for the absolute value.

    >>> str(parse_case(">= 50_000"))
    '>= 50000'
    >>> parse_case("abs >= 2").parts
    (Interval(low=-inf, high=-2.0, low_closed=False, high_closed=True), Interval(low=2.0, high=inf, low_closed=True, ...))
    """
    if not isinstance(text, str):
        raise QueryError(f"cases: must be {_SYNTAX}. Got {text!r}.")
    pieces = re.split(r"\s+or\s+", text.strip(), flags=re.IGNORECASE)
    return IntervalUnion(tuple(part for piece in pieces for part in _intervals(piece, text)))


def parse_cases(texts: Sequence[str]) -> tuple[IntervalUnion, ...]:
    """Read a list of `cases`: at least two sets, no value in two of them.

    `texts` are written as for `parse_case`.

    >>> [str(case) for case in parse_cases(["< 50", ">= 50"])]
    ['< 50', '>= 50']
    """
    if isinstance(texts, str) or len(texts) < 2:
        raise QueryError(f"cases: needs at least two sets that must be indistinguishable. Got {texts!r}.")
    cases = tuple(parse_case(text) for text in texts)
    require_disjoint(cases)
    return cases


def require_disjoint(cases: Sequence[IntervalUnion]) -> None:
    """No value may be in two sets: such a pair could not be kept apart, or would be the same secret twice.

    `cases` are sets, as `parse_case` reads them.

    >>> require_disjoint([parse_case("< 50"), parse_case(">= 50")])
    """
    for first, second in itertools.combinations(cases, 2):
        if first.overlaps(second):
            raise QueryError(f'cases: no value may be in two sets. Got "{first}" and "{second}".')


def _intervals(piece: str, text: str) -> tuple[Interval, ...]:
    if match := _HALF_LINE.fullmatch(piece.strip()):
        absolute, sign, number = match.groups()
        return _half_lines(bool(absolute), sign, _read(number, text), text)
    if match := _BOUNDED.fullmatch(piece.strip()):
        opening, low, high, closing = match.groups()
        return (Interval(_read(low, text), _read(high, text), opening == "[", closing == "]"),)
    raise QueryError(f"cases: must be {_SYNTAX}. Got {text!r}.")


def _half_lines(absolute: bool, sign: str, end: float, text: str) -> tuple[Interval, ...]:
    closed = sign.endswith("=")
    if not absolute:
        return (Interval(-math.inf, end, high_closed=closed) if sign[0] == "<" else Interval(end, math.inf, low_closed=closed),)
    if not end > 0:
        raise QueryError(f"cases: abs must be compared with a number above 0. Got {text!r}.")
    if sign[0] == "<":
        return (Interval(-end, end, closed, closed),)
    return (Interval(-math.inf, -end, high_closed=closed), Interval(end, math.inf, low_closed=closed))


def _read(number: str, text: str) -> float:
    try:
        value = float(number.removesuffix("%"))
    except ValueError:  # a misplaced underscore
        value = math.nan
    if not math.isfinite(value):
        raise QueryError(f"cases: numbers must be finite. Got {text!r}.")
    return value / 100 if number.endswith("%") else value


def _written(number: float) -> str:
    """The shortest text that reads back as the same float."""
    return str(int(number)) if number == int(number) and abs(number) < 1e16 else repr(number)


def _symmetric(parts: tuple[Interval, ...]) -> str | None:
    """`abs ...` for the sets that this form describes."""
    first, last = parts[0], parts[-1]
    if len(parts) == 1 and first.low == -first.high and first.low_closed == first.high_closed:
        return f"abs {'<=' if first.high_closed else '<'} {_written(first.high)}"
    outside = len(parts) == 2 and math.isinf(first.low) and math.isinf(last.high)
    if outside and first.high == -last.low and first.high_closed == last.low_closed:
        return f"abs {'>=' if last.low_closed else '>'} {_written(last.low)}"
    return None


def _overlap(a: Interval, b: Interval) -> bool:
    low, high = max(a.low, b.low), min(a.high, b.high)
    return low < high or (low == high and low in a and low in b)


def _merged(parts: Sequence[Interval]) -> tuple[Interval, ...]:
    """The same set in increasing order, with parts that overlap, or meet at a value one of them holds, made into one."""
    merged: list[Interval] = []
    for part in sorted(parts, key=lambda p: (p.low, not p.low_closed, p.high)):
        last = merged[-1] if merged else None
        if last is None or last.high < part.low or (last.high == part.low and not (last.high_closed or part.low_closed)):
            merged.append(part)
            continue
        high, closed = max((last.high, last.high_closed), (part.high, part.high_closed))
        merged[-1] = Interval(last.low, high, last.low_closed, closed)
    return tuple(merged)


def _moved(end: float, means: tuple[float, float], sds: tuple[float, float]) -> tuple[float, float]:
    if math.isinf(end):
        return end, end
    below, above = _shifted(end, means[1]), _shifted(end, means[0])
    least = below / (sds[1] if below >= 0 else sds[0])
    most = above / (sds[0] if above >= 0 else sds[1])
    return least - _ULPS * abs(least), most + _ULPS * abs(most)


def _shifted(end: float, mean: float) -> float:
    """end - mean; beyond this magnitude a finite end could turn into an infinite one, which is another set."""
    shifted = end - mean
    if math.isfinite(end) and not abs(shifted) <= _LARGEST:
        raise UsageError(f"standardise: {end:g} is too far from the mean {mean:g}; choose another unit.")
    return shifted


def _require_moments(mean: float, sd: float) -> None:
    if not (math.isfinite(mean) and 1 / _LARGEST <= sd <= _LARGEST):
        raise UsageError(f"standardise: needs a finite mean and an sd from {1 / _LARGEST:g} to {_LARGEST:g}. Got {mean}, {sd}.")
