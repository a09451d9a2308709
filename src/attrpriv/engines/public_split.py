"""Ends of intervals that are found on public records: a quarter of the records chooses them, and the others are counted.

    key       SHA-256 of the hidden columns' values as a multiset: no other order or format of the file changes it
    chooses   the k-th record, in the order of values, where byte k of SHAKE-256(key) is below 64: one in four

Given the values of all records, which of them choose is chance alone. So for independent records the two parts are independent,
and given the first the ends are as good as declared: the counts of the second part are those of declared intervals
(docs/theory/reference-view.md, "Intervals").

What must never change: no record that is counted was looked at when the ends were chosen, and who chooses depends on nothing
but the key.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attrpriv.engines.progress import waited
from attrpriv.engines.public_cells import ENGINE_FAILED, listed
from attrpriv.engines.tables import Source, quietly
from attrpriv.engines.view.cells import nan_is_missing
from attrpriv.errors import DataError
from attrpriv.numerics.laws.breaks import cell_of
from attrpriv.problem.intervals import ChoosingRecords, FindsEnds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FORMAT = "attrpriv ends 1"
# Of 256: which share of the records chooses.
_CHOOSING = 64
_NUMBER = "number"


@dataclass(frozen=True)
class Split:
    """The ends, how many records chose them (none: they are declared), and how many of the others have what.

    Intervals are told by their number, -1 where a record is in none and None where its number is missing.
    """

    edges: tuple[float, ...]
    chosen_by: int | None
    counted: list[tuple[int | None, tuple[Any, ...], int]]


def split(source: Source, columns: Sequence[str], column: str, finder: FindsEnds) -> Split:
    """Find the ends of `column`'s intervals, and count the records that had no say in it."""
    import numpy as np

    others = [name for name in columns if name != column]
    records = quietly(lambda: _Records.read(source, others, column))
    if records is None:
        raise DataError(ENGINE_FAILED)
    chooses = choosing(records.key(), len(records.numbers))
    if chooses.all() or not chooses.any():
        raise DataError(f"reference.sorted: ends are found on hundreds of public records. Got fewer in {source.name}.")
    sample = ChoosingRecords(records.numbers[chooses], records.homes[chooses], int(np.sum(~chooses)))
    edges = _increasing(finder(sample), column)
    numbers = records.numbers[~chooses]
    inside = np.where(np.isnan(numbers), len(edges), cell_of(edges, np.nan_to_num(numbers, nan=edges[0])))
    pairs, counts = np.unique(np.stack([inside, records.homes[~chooses]]), axis=1, return_counts=True)
    counted = [
        (None if place == len(edges) else int(place), records.values[home], int(count))
        for place, home, count in zip(*pairs, counts, strict=True)
    ]
    return Split(edges, int(np.sum(chooses)), counted)


def choosing(key: bytes, records: int) -> NDArray[np.bool_]:
    """Which of so many records choose."""
    import numpy as np

    return np.frombuffer(hashlib.shake_256(key).digest(records), dtype=np.uint8) < _CHOOSING


def _increasing(edges: tuple[float, ...], column: str) -> tuple[float, ...]:
    if len(edges) < 2 or not all(math.isfinite(x) for x in edges) or any(a >= b for a, b in itertools.pairwise(edges)):
        raise DataError(f"reference.sorted: no intervals were found: {column} must vary in the public records.")
    return edges


@dataclass(frozen=True, eq=False)
class _Records:
    """All public records in the order of their values; `homes` are places in `values`, those of the other hidden columns."""

    numbers: NDArray[np.float64]
    homes: NDArray[np.int64]
    values: list[tuple[Any, ...]]

    @staticmethod
    def read(source: Source, others: Sequence[str], column: str) -> _Records:
        import numpy as np

        number = nan_is_missing(source.table[column]).cast("float64") + 0.0
        named = {_NUMBER: number, **{f"v{k}": listed(source, name) for k, name in enumerate(others)}}
        table = source.table.select(**named)
        distinct = table.group_by(*named).aggregate(rows=table.count())
        found = waited(source.engine, lambda: source.engine.to_pyarrow(distinct), source.rows)
        found = found.sort_by([(name, "ascending") for name in named])
        times = found["rows"].to_numpy()
        homes, values = _homes([found[f"v{k}"] for k in range(len(others))], len(found))
        numbers = np.asarray(found[_NUMBER].fill_null(math.nan).to_numpy(), dtype=np.float64)
        return _Records(np.repeat(numbers, times), np.repeat(homes, times), values)

    def key(self) -> bytes:
        told = [_FORMAT, len(self.numbers), [[str(type(x).__name__), str(x)] for line in self.values for x in line]]
        made = hashlib.sha256(json.dumps(told).encode())
        for part in (self.numbers.astype("<f8"), self.homes.astype("<i8")):
            made.update(part.tobytes())
        return made.digest()


def _homes(columns: Sequence[Any], records: int) -> tuple[NDArray[np.int64], list[tuple[Any, ...]]]:
    """Which combination of values each record has, and all combinations."""
    import numpy as np

    homes, values = np.zeros(records, dtype=np.int64), [()] if records else []
    for column in columns:
        encoded = column.combine_chunks().dictionary_encode()
        known = [*encoded.dictionary.to_pylist(), None]
        places = encoded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)
        found, homes = np.unique(homes * len(known) + places, return_inverse=True)
        values = [(*values[one // len(known)], known[one % len(known)]) for one in found.tolist()]
    return homes, values
