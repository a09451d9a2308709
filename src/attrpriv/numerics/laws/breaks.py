"""Sorted cells from public values: where an interval of a column ends, and which public values stand for its rows.

Cells are half-open, [edge_j, edge_j+1), the last one closed, so that equal values are always in one cell. The references of a
cell that shows m rows are the quantiles (k - 1/2)/m of the public values in it, k = 1..m, so that their distribution function
is nowhere further than 1/(2m) from that of the public values, ties or not.

What must never change: edges and references are functions of public values and declared break points alone; a declared break
point is an edge; every reference is inside of its cell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import SUMMED_DOWN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SortedCell:
    """An interval, the references of the rows that it shows, and the public values in it (None: spread evenly)."""

    low: float
    high: float
    references: Array
    values: Array | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.high - self.low) and self.low <= self.high):
            raise UsageError(f"cell: must be an interval with finite ends. Got {self.low} to {self.high}.")
        object.__setattr__(self, "references", self._inside("references", self.references))
        if self.values is not None:
            object.__setattr__(self, "values", self._inside("values", self.values))
            if self.values.size == 0:
                raise UsageError("cell: needs at least one public value, or none given for values that are spread evenly.")

    def _inside(self, name: str, values: ArrayLike) -> Array:
        found = _increasing(name, values)
        if found.size and not (self.low <= found[0] and found[-1] <= self.high):
            raise UsageError(f"{name}: must be inside of the cell from {self.low} to {self.high}.")
        found.flags.writeable = False
        return found

    @property
    def rows(self) -> int:
        """How many rows it shows."""
        return int(self.references.size)

    @property
    def width(self) -> float:
        """From end to end."""
        return self.high - self.low


def edges(values: ArrayLike, rows: int, break_points: Sequence[float] = ()) -> tuple[float, ...]:
    """Ends of cells with at least `rows` of the sorted public values each, as equal as ties allow, and all break points.

    Only a piece between two break points that itself has fewer values gives a smaller cell.

    >>> edges([1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 5.0], 2)
    (1.0, 3.0, 5.0)
    >>> edges([1.0, 2.0, 3.0, 4.0], 2, break_points=[3.5])
    (1.0, 3.5, 4.0)
    """
    import numpy as np

    public = _increasing("values", values)
    if public.size < 1 or rows < 1:
        raise UsageError(
            f"values: needs at least one public value, and at least one for each cell. Got {public.size} and {rows}."
        )
    first, last = float(public[0]), float(public[-1])
    declared = _increasing("break_points", sorted({float(x) for x in break_points}))
    pieces = [first, *(float(x) for x in declared if first < x <= last), last]
    found: list[float] = []
    begins = [int(np.searchsorted(public, low)) for low in pieces[:-1]]
    for low, (begin, end) in zip(pieces, itertools.pairwise([*begins, public.size]), strict=False):
        found += [low, *_cuts(public[begin:end], rows)]
    return (*found, last)


def _cuts(piece: Array, rows: int) -> list[float]:
    """The values at which the second and later cells begin."""
    import numpy as np

    size = piece.size
    cells = max(1, size // rows)
    found: list[float] = []
    begun = 0
    for number in range(1, cells):
        wanted = max(begun + rows, round(number * size / cells))
        # A run of equal values stays together: the cell ends before it if it has enough rows without, else after it.
        before, after = (int(np.searchsorted(piece, piece[min(wanted, size - 1)], side)) for side in ("left", "right"))
        begun = before if before >= begun + rows else after
        if size - begun < rows:
            break
        found.append(float(piece[begun]))
    return found


def even_edges(low: float, high: float, width: float, break_points: Sequence[float] = ()) -> tuple[float, ...]:
    """Ends of cells of at most this width between two public ends, equal between break points.

    What moved rows tell grows with the sum of squared widths: cells of equal width hide more than cells of equal counts,
    whose outer ones are wide. Outer cells that are then too thin show nothing.

    >>> even_edges(0.0, 4.0, 1.5, break_points=[1.0])
    (0.0, 1.0, 2.5, 4.0)
    """
    import numpy as np

    if not (math.isfinite(high - low) and low < high and math.isfinite(width) and width > 0):
        raise UsageError(f"edges: needs finite ends in order, and a width above 0. Got {low}, {high} and {width}.")
    declared = _increasing("break_points", sorted({float(x) for x in break_points}))
    found: list[float] = []
    for begin, end in itertools.pairwise([low, *(float(x) for x in declared if low < x < high), high]):
        number = max(1, math.ceil((end - begin) / width * SUMMED_DOWN))
        found += [float(x) for x in np.linspace(begin, end, number + 1)[:-1]]
    return (*found, high)


def cell_of(ends: Sequence[float], values: ArrayLike) -> NDArray[np.int64]:
    """The number of each value's cell; -1 for a value outside of all, or missing.

    >>> cell_of((0.0, 1.0, 2.0), [-1.0, 0.0, 1.0, 2.0, 2.5]).tolist()
    [-1, 0, 1, 1, -1]
    """
    import numpy as np

    places = _increasing("edges", ends)
    given = np.asarray(values, dtype=np.float64)
    found = np.searchsorted(places, given, side="right") - 1
    # The last cell has its end; with a single value it is that value.
    found = np.where(given == places[-1], max(0, places.size - 2), found)
    return np.asarray(np.where((given >= places[0]) & (given <= places[-1]), found, -1), dtype=np.int64)


def sorted_cells(ends: Sequence[float], values: ArrayLike, rows: Sequence[int], even: bool = False) -> tuple[SortedCell, ...]:
    """The cells between these ends that show so many rows each, with references from the public values, or spread evenly.

    >>> [cell.references.tolist() for cell in sorted_cells((0.0, 4.0), [0.0, 1.0, 2.0, 4.0], [2])]
    [[0.0, 2.0]]
    >>> [cell.references.tolist() for cell in sorted_cells((0.0, 4.0), [0.0, 1.0, 2.0, 4.0], [2], even=True)]
    [[1.0, 3.0]]
    """
    public = _increasing("values", values)
    if len(rows) != len(ends) - 1:
        raise UsageError(f"rows: needs one number for each cell. Got {len(rows)} for {len(ends) - 1} cells.")
    homes = cell_of(ends, public)
    return tuple(
        _cell(low, high, public[homes == number], shown, even)
        for number, ((low, high), shown) in enumerate(zip(itertools.pairwise(ends), rows, strict=True))
    )


def _cell(low: float, high: float, inside: Array, shown: int, even: bool) -> SortedCell:
    if even:
        return SortedCell(low, high, even_references(low, high, shown))
    return SortedCell(low, high, references(inside, shown), inside if inside.size else None)


def references(values: ArrayLike, m: int) -> Array:
    """The quantiles (k - 1/2)/m of these sorted public values, k = 1..m.

    >>> references([1.0, 2.0, 3.0, 4.0], 2).tolist()
    [1.0, 3.0]
    """
    import numpy as np

    public = _increasing("values", values)
    if m < 0 or (m > 0 and public.size == 0):
        raise UsageError(
            f"references: needs public values in each cell that shows rows. Got {m} rows and {public.size} values."
        )
    # The least value with at least a share (2k-1)/(2m) of all at or below it, in whole numbers.
    places = [-(-public.size * (2 * k - 1) // (2 * m)) - 1 for k in range(1, m + 1)]
    return public[np.asarray(places, dtype=np.int64)]


def even_references(low: float, high: float, m: int) -> Array:
    """The quantiles (k - 1/2)/m of the even law between two ends."""
    import numpy as np

    if m < 0:
        raise UsageError(f"references: needs at least 0 rows. Got {m}.")
    shares = (np.arange(m) + 0.5) / max(1, m)
    return np.asarray(np.clip(low + (high - low) * shares, low, high), dtype=np.float64)


def repeated_share(values: ArrayLike) -> float:
    """The share of public values that occur more than once: where it is large, exact cells cost nothing and sorted ones do.

    >>> repeated_share([1.0, 1.0, 2.0, 3.0])
    0.5
    """
    import numpy as np

    public = _increasing("values", values)
    _, times = np.unique(public, return_counts=True)
    return float(np.sum(times[times > 1]) / max(1, public.size))


def _increasing(name: str, values: ArrayLike) -> Array:
    import numpy as np

    found = np.array(values, dtype=np.float64)
    if found.ndim != 1 or not np.all(np.isfinite(found)) or np.any(np.diff(found) < 0):
        raise UsageError(f"{name}: must be finite numbers in increasing order.")
    return found
