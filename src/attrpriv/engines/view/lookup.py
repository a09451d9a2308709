"""The cells of rows that came to this process, by the values of the hidden columns.

A value becomes its place among the values of its column, and column by column a combination becomes its place among those that
cells have: whole numbers are looked up, however many cells there are. What no cell has belongs to the rest, the cell after the
last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Places = Callable[[Numbers], Numbers]
# Up to so many numbers there is a table of all of them; above, the known ones are searched.
_DENSE = 1 << 22
_UNKNOWN = -1


def cell_lookup(values: Sequence[pa.Array]) -> Callable[[Sequence[pa.Array]], Numbers]:
    """What finds the cells of a batch; made of a column for each hidden one, with the values of cell 0, 1, ... in turn."""
    listed, steps = [pc.unique(column) for column in values], []
    found, known = np.zeros(len(values[0]), np.int64), 1
    for column, names in zip(values, listed, strict=True):
        numbers = _joined(found, column, names)
        steps.append(_places_among(np.unique(numbers), known * len(names)))
        found = steps[-1](numbers)
        known = int(found.max()) + 1
    if known != len(found):
        raise ValueError("two cells of the same values")
    cells = np.append(np.argsort(found), known)  # the entry of what is unknown, -1, is the last

    def look_up(columns: Sequence[pa.Array]) -> Numbers:
        found = np.zeros(len(columns[0]), np.int64)
        for column, names, places in zip(columns, listed, steps, strict=True):
            found = places(_joined(found, column, names))
        return cells[found]

    return look_up


def _joined(found: Numbers, column: pa.Array, names: pa.Array) -> Numbers:
    """One number for what was found before and the place of a value among the names; what is missing is a value too."""
    codes = pc.index_in(column.cast(names.type), value_set=names).fill_null(_UNKNOWN).to_numpy(zero_copy_only=False)
    return np.where((found < 0) | (codes < 0), _UNKNOWN, found * len(names) + codes)


def _places_among(known: Numbers, size: int) -> Places:
    """What tells the place of numbers below this size among the known ones."""
    if size > _DENSE:
        return lambda numbers: _searched(known, numbers)
    table = np.full(size + 1, _UNKNOWN, np.int64)  # the last entry is that of what is unknown, -1
    table[known] = np.arange(len(known))
    return lambda numbers: table[numbers]


def _searched(known: Numbers, numbers: Numbers) -> Numbers:
    places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.where(known[places] == numbers, places, _UNKNOWN)
