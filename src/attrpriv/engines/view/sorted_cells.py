"""Rows of an interval that show public values in place of their own number: which interval, which public value, how far moved.

    interval     [edge_j, edge_j+1), the last one closed; a missing number is a cell by itself, any other is in none
    k            the place of a kept row among those of its cell, by its number, ties by a keyed rank that orders no file
    shown        low + (high - low) (k - 1/2) / m, in the column's own type; whole numbers rounded down
    D            sum over kept rows of w(|d|) d^2,  d = s_k - t_k, rounded up

What must never change: of the numbers of rows nothing leaves but the order within a cell, which decides the pairs, and whether
D is above its public limit. D itself is never recorded, shown or logged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attrpriv.engines.grid import very_float
from attrpriv.numerics.divergences.channel import Channel
from attrpriv.numerics.laws.breaks import even_references
from attrpriv.numerics.rounding import SOME_ULPS, SUMMED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NOWHERE = -1


@dataclass(frozen=True)
class SortedColumn:
    """A number that is sorted into intervals, and how far all kept rows together may have moved."""

    name: str
    edges: tuple[float, ...]
    most: float | None = None
    """Of D; None: it can never be too much."""
    order: float = 2.0
    slope: float | None = None

    def width(self, low: float) -> float:
        return self.edges[self.edges.index(low) + 1] - low


def interval_number(value: Any, edges: Sequence[float]) -> Any:
    """The number of the interval of a value, by halves; -1 where it is in none, missing where it is missing."""
    import ibis

    number = value.cast("float64")
    inside = (number >= very_float(edges[0])) & (number <= very_float(edges[-1]))
    found = ibis.ifelse(inside, _by_halves(number, edges, 0, len(edges) - 1), _NOWHERE)
    return ibis.ifelse(number.isnull(), None, found).cast("int64")


def _by_halves(number: Any, edges: Sequence[float], low: int, high: int) -> Any:
    import ibis

    if high - low == 1:
        return ibis.literal(low, type="int64")
    middle = (low + high) // 2
    return ibis.ifelse(
        number < very_float(edges[middle]), _by_halves(number, edges, low, middle), _by_halves(number, edges, middle, high)
    )


def shown_value(low: float, width: Any, place: Any, rows: Any) -> Any:
    """The public value of the row at this place, from 1 on, of a cell that shows so many rows."""
    return low + width * ((place.cast("float64") - very_float(0.5)) / rows)


def moved_too_far(
    cells: NDArray[np.int64], numbers: NDArray[np.float64], lows: Sequence[object], keep: Sequence[int], sort: SortedColumn
) -> bool:
    """Whether D of these kept rows is above its limit; `lows`: where the interval of each cell begins, None: missing values."""
    if sort.most is None:
        return False
    return not _displacement(cells, numbers, lows, keep, sort) * SUMMED_UP <= sort.most


def _displacement(
    cells: NDArray[np.int64], numbers: NDArray[np.float64], lows: Sequence[object], keep: Sequence[int], sort: SortedColumn
) -> float:
    import numpy as np

    order = np.lexsort((numbers, cells))
    ends = np.searchsorted(cells[order], np.arange(len(lows) + 1))
    parts = []
    for k, low in enumerate(lows):
        own = numbers[order[ends[k] : ends[k + 1]]]
        if len(own) != keep[k]:
            raise ValueError("another table")
        if isinstance(low, float):
            width = sort.width(low)
            d = np.abs((own - low) - even_references(0.0, width, keep[k])) + SOME_ULPS * width
            parts.append(math.fsum(d * d * SUMMED_UP * _weight(d, sort)))
    return math.fsum(parts)


def _weight(d: NDArray[np.float64], sort: SortedColumn) -> NDArray[np.float64]:
    return Channel(1.0, sort.slope).weight(d, sort.order)
