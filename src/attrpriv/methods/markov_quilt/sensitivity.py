"""Column sensitivities: how far a statistic moves when *all* entries of some columns change at once.

    Delta_T F = max |F(X) - F(X')| over tables X, X' that differ in the columns T only

| statistic | Delta_T F for any T that it reads |
|---|---|
| count with a filter | n |
| sum of x in [low, high] | n (high - low) |
| mean of x | high - low |
| histogram (sum of absolute changes) | 2 n |
| slope of y on x, sum of squares of x replaced by at least n v | (y's range)/sqrt(v) |
| intercept of the same | (y's range) (1 + largest abs(x)/sqrt(v)) |
| any statistic that is kept in [low, high] | high - low |
| any other function | as declared, for one column at a time or for sets of them |

It is 0 where the statistic reads none of T. Of a set that is not declared: the least of a declared larger set and the sum over
declared smaller ones, because columns can be changed one after the other. Without a floor v a slope is unbounded, since all x
may be nearly equal. What must never change: `of` is never too small, and what has no finite bound is an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import ROUNDED_DOWN, SUMMED_UP

# Above this many columns not every way to cover them is tried.
_MOST_COVERED = 10

Bounds = tuple[float, float]


@dataclass(frozen=True)
class ColumnSensitivity:
    """What a statistic reads, and how far it moves when some of it changes.

    >>> count = ColumnSensitivity.count(("height", "sat"), n=100)
    >>> count.of({"sat"}), count.of({"income"})
    (100.0, 0.0)
    """

    columns: tuple[str, ...]
    declared: tuple[tuple[frozenset[str], float], ...]

    def __post_init__(self) -> None:
        for changed, size in self.declared:
            if not (math.isfinite(size) and size >= 0):
                named = ", ".join(sorted(changed))
                raise UsageError(f"sensitivity: of {named} must be finite and at least 0; declare bounds. Got {size!r}.")

    @classmethod
    def count(cls, columns: Sequence[str], n: int) -> ColumnSensitivity:
        """Rows that satisfy a condition on these columns."""
        return cls._whole(columns, float(n))

    @classmethod
    def histogram(cls, columns: Sequence[str], n: int) -> ColumnSensitivity:
        """All counts of a histogram together: a row that moves changes two of them."""
        return cls._whole(columns, 2.0 * n)

    @classmethod
    def mean(cls, column: str, bounds: Bounds) -> ColumnSensitivity:
        return cls._whole((column,), _width(column, bounds))

    @classmethod
    def total(cls, column: str, bounds: Bounds, n: int) -> ColumnSensitivity:
        return cls._whole((column,), n * _width(column, bounds) * SUMMED_UP)

    @classmethod
    def kept(cls, columns: Sequence[str], width: float) -> ColumnSensitivity:
        """Any statistic of these columns that is kept in a public range of this width."""
        return cls._whole(columns, width)

    @classmethod
    def slope(cls, y: str, x: str, bounds: Mapping[str, Bounds], least_variance: float | None = None) -> ColumnSensitivity:
        """The least-squares slope of y on x, with the variance of x taken as at least `least_variance`.

        |S_xy| <= sqrt(S_xx S_yy) and S_yy <= n (range/2)^2, so that the slope is within +-range/(2 sqrt(v)).
        """
        return cls._whole((y, x), _width(y, _of(bounds, y)) / _floor(y, x, least_variance) * SUMMED_UP**3)

    @classmethod
    def intercept(cls, y: str, x: str, bounds: Mapping[str, Bounds], least_variance: float | None = None) -> ColumnSensitivity:
        """mean(y) - slope * mean(x), with the same floor."""
        furthest = max(abs(end) for end in _of(bounds, x))
        size = _width(y, _of(bounds, y)) * (1 + furthest / _floor(y, x, least_variance)) * SUMMED_UP**4
        return cls._whole((y, x), size)

    @classmethod
    def function(cls, columns: Sequence[str], declared: Mapping[Any, float]) -> ColumnSensitivity:
        """Any statistic: `{"height": 3.0, ("height", "sat"): 4.0}` says how far it moves when these columns change."""
        read = tuple(dict.fromkeys(columns))
        sizes = tuple((frozenset((key,) if isinstance(key, str) else key), float(size)) for key, size in declared.items())
        found = cls(read, sizes)
        for column in read:
            found.of((column,))  # an error where nothing is said of it
        return found

    @classmethod
    def _whole(cls, columns: Sequence[str], size: float) -> ColumnSensitivity:
        return cls(tuple(dict.fromkeys(columns)), ((frozenset(columns), size),))

    def of(self, changed: Iterable[str]) -> float:
        """Delta of all entries of these columns, rounded up."""
        left = frozenset(changed) & frozenset(self.columns)
        if not left:
            return 0.0
        larger = [size for columns, size in self.declared if left <= columns]
        smaller = [(columns & left, size) for columns, size in self.declared if columns & left]
        cover = self._cover(left, smaller)
        best = min([*larger, cover])
        if not math.isfinite(best):
            raise UsageError(
                f"sensitivity: must be declared for {', '.join(sorted(left))}; nothing bounds the statistic there."
            )
        return best

    @staticmethod
    def _cover(left: frozenset[str], parts: Sequence[tuple[frozenset[str], float]]) -> float:
        """The least sum over declared sets that together contain all columns; of many columns, over one set for each."""
        if len(left) > _MOST_COVERED:
            return math.fsum(min((size for columns, size in parts if name in columns), default=math.inf) for name in left)
        least: dict[frozenset[str], float] = {frozenset(): 0.0}
        for columns, size in parts:
            for covered, cost in list(least.items()):
                joined = covered | columns
                least[joined] = min(least.get(joined, math.inf), cost + size)
        return least.get(left, math.inf) * SUMMED_UP


def _of(bounds: Mapping[str, Bounds], column: str) -> Bounds:
    if column not in bounds:
        raise UsageError(f"bounds: must be declared for {column}; without them the sensitivity is unbounded.")
    return bounds[column]


def _width(column: str, bounds: Bounds) -> float:
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        raise UsageError(f"bounds: of {column} must be a finite range [low, high]. Got [{low!r}, {high!r}].")
    return (high - low) * SUMMED_UP


def _floor(y: str, x: str, least_variance: float | None) -> float:
    if least_variance is None or not (math.isfinite(least_variance) and least_variance > 0):
        raise UsageError(
            f"least_variance: must be above 0 for a regression of {y} on {x}; with {x} nearly constant the line is unbounded. "
            f"Got {least_variance!r}."
        )
    return math.sqrt(least_variance) * ROUNDED_DOWN
