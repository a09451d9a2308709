"""Where the intervals of a sorted number end, found on a part of the public records so that the view shows many rows.

    range       between two quantiles of the records, of which several are tried
    number      the least number of equal intervals at which the promise covers the stated information, records within an
                interval are as even as stated, and so the counts are largest
    thin ones   intervals of which no row could be shown are joined to a neighbour, where the promise covers that too

What must never change: this is a search. Whatever it returns is right, because the plan proves its promise for these ends from
other records; a poor choice shows fewer rows, or is refused. It reads public records and the policy's numbers, nothing else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attrpriv.assumptions.channel import Channel
from attrpriv.errors import PolicyError
from attrpriv.methods.view.reference import NO_REFERENCE
from attrpriv.methods.view.sorted_plan import Asked, Found
from attrpriv.numerics.evenness import furthest_from_even, leaning
from attrpriv.numerics.laws.breaks import SortedCell, cell_of, even_edges
from attrpriv.problem.intervals import ChoosingRecords, PublicIntervals
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCell, PublicCells

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Shares of the records below and above all intervals.
_TAILS = (0.001, 0.01, 0.03)
# Numbers of intervals that are tried, 2 to 2,048.
_NUMBERS = tuple(sorted({round(2 ** (k / 4)) for k in range(4, 45)}))
# Ends are rounded to this share of a width, so that they can be read.
_ROUNDED = 1e-3
# The counted records are others: the promise must hold with so much to spare.
_TO_SPARE = 1.1
# The chance that even records are taken for uneven ones.
_LEVEL = 0.01
# Intervals with fewer of the records that choose are too small for all records to refuse them.
_FEWEST = 12


@dataclass(frozen=True)
class EndsFinder:
    """A search for ends, by what the policy states; the `breaks` are among those found."""

    asked: Asked
    column: str
    breaks: tuple[float, ...]

    def __call__(self, records: ChoosingRecords) -> tuple[float, ...]:
        """Nothing where the number does not vary; the narrowest intervals where none would do: the plan then says why."""
        import numpy as np

        numbers = np.sort(records.numbers[~np.isnan(records.numbers)])
        if numbers.size == 0 or numbers[0] == numbers[-1]:
            return ()
        best = max((self._guess(records, numbers, tail) for tail in _TAILS), key=lambda guess: guess.rows)
        for number in (one for one in _NUMBERS if one >= best.number):
            edges = self._even_edges(numbers, best.tail, number)
            found = self._tried(records, numbers, edges)
            if found is not None:
                joined = self._joined(records, numbers, edges)
                more = None if joined == edges else self._tried(records, numbers, joined)
                return edges if more is None or more.rows <= found.rows else joined
        return self._even_edges(numbers, best.tail, _NUMBERS[-1])

    def _even_edges(self, numbers: Array, tail: float, number: int) -> tuple[float, ...]:
        import numpy as np

        low, high = (float(x) for x in np.quantile(numbers, [tail, 1 - tail]))
        if not low < high:
            return float(numbers[0]), float(numbers[-1])
        digits = 0 if self.asked.whole else -math.floor(math.log10((high - low) / number * _ROUNDED))
        found = even_edges(low, high, (high - low) / number, self.breaks)
        return tuple(sorted({x if x in self.breaks else float(round(x, digits)) for x in found}))

    def _guess(self, records: ChoosingRecords, numbers: Array, tail: float) -> _Guess:
        """The least number of intervals that may do, by the mean of D alone, and how many rows it would show."""
        best, low, high = _Guess(tail, _NUMBERS[-1], 0), 0, len(_NUMBERS)
        while low < high:  # as if more intervals were always better: else another number is found, and no wrong one
            middle = (low + high) // 2
            cells = self._likely(records, numbers, self._even_edges(numbers, tail, _NUMBERS[middle]))
            if cells:
                best, high = _Guess(tail, _NUMBERS[middle], sum(cell.rows for cell in cells)), middle
            else:
                low = middle + 1
        return best

    def _likely(self, records: ChoosingRecords, numbers: Array, edges: tuple[float, ...]) -> tuple[SortedCell, ...]:
        """The intervals of which rows are shown, where the promise may cover what is stated; else none."""
        cells = self.asked.cells_of(self._public(records, edges))
        covers = self._is_even(numbers, edges) and self._asked(numbers, edges).covers_about(cells)
        return cells if covers else ()

    def _tried(self, records: ChoosingRecords, numbers: Array, edges: tuple[float, ...]) -> Found | None:
        """The numbers of a view with these ends, where it covers what is stated."""
        if not self._is_even(numbers, edges):
            return None
        asked = self._asked(numbers, edges)
        tried = asked.tried(self._public(records, edges)) or []
        return max((one for one in tried if one.most >= _TO_SPARE * asked.iota), key=lambda one: one.most, default=None)

    def _joined(self, records: ChoosingRecords, numbers: Array, edges: tuple[float, ...]) -> tuple[float, ...]:
        """Thin intervals joined two by two, as long as more rows would be shown."""
        rows = sum(cell.rows for cell in self._likely(records, numbers, edges))
        shown = self.asked.shown_of(self._public(records, edges))
        joined = _pairs_joined(edges, shown, self.breaks)
        more = sum(cell.rows for cell in self._likely(records, numbers, joined))
        return edges if joined == edges or more <= rows else self._joined(records, numbers, joined)

    def _asked(self, numbers: Array, edges: Sequence[float]) -> Asked:
        """With the information per unit that the records between the ends give it."""
        import numpy as np

        inside = numbers[(numbers >= edges[0]) & (numbers <= edges[-1])]
        variance = float(np.var(inside))
        return self.asked if variance == 0 else replace(self.asked, iota=self.asked.channel.information_per_unit(variance))

    def _is_even(self, numbers: Array, edges: Sequence[float]) -> bool:
        """Whether all records together would probably not refuse the stated shift."""
        stated = self.asked.channel.shift
        if stated is None:
            return True
        sure = furthest_from_even(numbers, edges, self.asked.whole, _LEVEL)
        return leaning(numbers, edges, _FEWEST) <= stated and (sure is None or sure[1] <= stated)

    def _public(self, records: ChoosingRecords, edges: tuple[float, ...]) -> PublicCells:
        """What these records let expect of those that are counted."""
        import numpy as np

        missing = np.isnan(records.numbers)
        places = np.where(missing, len(edges), cell_of(edges, np.where(missing, edges[0], records.numbers)))
        pairs, counts = np.unique(np.stack([records.homes, places]), axis=1, return_counts=True)
        lows = (*edges[:-1], None, None)  # no interval begins at the last end; missing numbers are a cell by themselves
        times = records.counted / records.numbers.size
        cells = [
            PublicCell(values=(int(home), lows[place]), count=math.floor(count * times))
            for home, place, count in zip(*pairs.tolist(), counts.tolist(), strict=True)
            if place >= 0
        ]
        intervals = PublicIntervals(column=self.column, edges=edges, variance=0.0, repeated=0.0)
        columns = (f"not {self.column}", self.column)
        return PublicCells(columns=columns, records=records.counted, cells=tuple(cells), intervals=intervals)


@dataclass(frozen=True)
class _Guess:
    tail: float
    number: int
    rows: int


def _pairs_joined(edges: tuple[float, ...], shown: set[object], breaks: Sequence[float]) -> tuple[float, ...]:
    """Without every second end between two intervals of which nothing is shown.

    >>> _pairs_joined((0.0, 1.0, 2.0, 3.0, 4.0, 5.0), {0.0, 1.0}, ())
    (0.0, 1.0, 2.0, 4.0, 5.0)
    """
    kept = [edges[0]]
    for low, end in itertools.pairwise(edges[:-1]):
        thin = low not in shown and end not in shown
        # The end before is one of the two intervals' own: only then are they still two.
        if not (thin and kept[-1] == low) or end in breaks:
            kept.append(end)
    return (*kept, edges[-1])


def ends_finder(problem: Problem, column: str, breaks: tuple[float, ...]) -> EndsFinder:
    """The search for one policy and one table's public facts; PolicyError where it does not state a channel."""
    if problem.reference is None:
        raise NO_REFERENCE
    stated = problem.assumed(Channel)
    if len(stated) != 1:
        raise PolicyError("reference.sorted: ends: found needs to know what rows may tell (assume: kind: channel). Got none.")
    channel = stated[0]
    whole = problem.types.get(column) == "integer"
    asked = Asked(problem.n, problem.epsilon, problem.delta, problem.reference, channel, channel.information.iota or 1.0, whole)
    return EndsFinder(asked, column, breaks)
