"""Public rows as a value: each different row of some columns, and how often it occurs; read from a file, or given.

What must never change: rows stand in one order, whatever the order of the file, so that a seed draws the same resamples
everywhere; and these are *public* rows, never the private table (`digest` tells it).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from attrpriv.errors import PolicyError
from attrpriv.frozen import FrozenMap, FrozenModel
from attrpriv.frozen.requirements import shown
from attrpriv.numerics.row_digest import FORMAT, STARTS, number_of, row_hashes
from attrpriv.problem.assumption import PublicRecords
from attrpriv.queries.conditions import Condition
from attrpriv.queries.evaluate import holds_in

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

Value = bool | int | float | str | None
# More different rows are too many for a ledger, which keeps them.
MOST_ROWS = 200_000
_LARGEST = 2**31


class RecordedTable(FrozenModel):
    """`RecordedTable.of({"hours": [40, 40, 38], "sex": ["F", "M", "F"]})`: the different rows of public records.

    >>> table = RecordedTable.of({"hours": [40, 38, 40], "sex": ["F", "M", "F"]})
    >>> table.rows, table.total
    (((0, 1, 1), (1, 0, 2)), 3)
    """

    name: str = Field(default="", description="the file's name, for people")
    values: FrozenMap[tuple[Value, ...]] = Field(description="of each column: its different values, in order")
    rows: tuple[tuple[Annotated[int, Field(strict=True, ge=0)], ...], ...] = Field(
        min_length=1, description="each different row: the place of its value in each column, and how often it occurs"
    )

    @model_validator(mode="after")
    def _in_order(self) -> RecordedTable:
        sizes = [len(found) for found in self.values.values()]
        if not sizes or any(len(row) != len(sizes) + 1 for row in self.rows):
            raise ValueError("rows: must have a place for each column, and a count. Got some that have not.")
        if any(not (row[-1] >= 1 and all(k < size for k, size in zip(row, sizes, strict=False))) for row in self.rows):
            raise ValueError("rows: must have places that exist, and counts of at least 1. Got one that has not.")
        if any(one[:-1] >= other[:-1] for one, other in itertools.pairwise(self.rows)):
            raise ValueError("rows: must stand in order, each once. Got some that do not.")
        if any(list(found) != _ordered(found) for found in self.values.values()):
            raise ValueError("values: must stand in order, each once. Got some that do not.")
        if len(self.rows) > MOST_ROWS or not self.total < _LARGEST:
            raise ValueError(f"must have at most {MOST_ROWS:,} different rows. Got more; name fewer columns.")
        return self

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Value]], name: str = "") -> RecordedTable:
        """The rows of columns that are given value by value."""
        values = {column: _ordered(given) for column, given in columns.items()}
        places = {column: {_apart(value): k for k, value in enumerate(found)} for column, found in values.items()}
        often: dict[tuple[int, ...], int] = {}
        for row in zip(*columns.values(), strict=True):
            key = tuple(places[column][_apart(value)] for column, value in zip(columns, row, strict=True))
            often[key] = often.get(key, 0) + 1
        rows = tuple((*key, count) for key, count in sorted(often.items()))
        return cls(name=name, values={column: tuple(found) for column, found in values.items()}, rows=rows)

    @classmethod
    def read(cls, path: str | Path, columns: Sequence[str]) -> RecordedTable:
        """The rows of a Parquet or CSV file."""
        place = Path(path)
        found = _arrow(place, columns)
        lacking = [column for column in columns if column not in found.column_names]
        if lacking:
            raise PolicyError(
                f"columns: must be columns of {place.name}. Got {lacking[0]}, which it has not. It has "
                f"{', '.join(found.column_names[:8])}."
            )
        return cls.of({column: _listed(place.name, column, found[column]) for column in columns}, place.name)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.values)

    @property
    def total(self) -> int:
        """How many rows there are."""
        return sum(row[-1] for row in self.rows)

    def counts(self) -> Whole:
        """How often each different row occurs."""
        import numpy as np

        return np.array([row[-1] for row in self.rows], dtype=np.int64)

    def codes(self, column: str) -> Whole:
        """Of each different row, the place of its value in a column."""
        import numpy as np

        place = self.columns.index(column)
        return np.array([row[place] for row in self.rows], dtype=np.int64)

    def holds(self, condition: Condition, columns: Sequence[str], fill: Mapping[str, float]) -> Whole:
        """1 for each different row that satisfies a condition on some columns, and 0 for the others."""
        import numpy as np

        codes = np.stack([self.codes(column) for column in columns])
        kinds, where = np.unique(codes, axis=1, return_inverse=True)
        held = [
            holds_in(condition, {c: self._entry(c, int(k), fill) for c, k in zip(columns, kind, strict=True)})
            for kind in kinds.T
        ]
        return np.array(held, dtype=np.int64)[where.reshape(-1)]

    def _entry(self, column: str, place: int, fill: Mapping[str, float]) -> Value:
        value = self.values[column][place]
        filled = value is None and column in fill and not any(isinstance(one, str) for one in self.values[column])
        return fill[column] if filled else value

    def records(self) -> PublicRecords:
        """How the private table is told from this one: by a digest of the rows, as an engine makes it (`engines`)."""
        names = sorted(self.columns)
        numbers = [self._numbers(column) for column in names]
        counts = self.counts()
        hashed = [[int(one) for one in row_hashes(numbers, start)] for start in STARTS]
        sums = [sum(one * int(k) for one, k in zip(hashes, counts, strict=True)) % 2**64 for hashes in hashed]
        digest = hashlib.sha256(json.dumps([FORMAT, names, self.total, *sums]).encode()).hexdigest()
        return PublicRecords(self.total, tuple(names), digest, numbers=False)

    def _numbers(self, column: str) -> NDArray[np.float64]:
        import numpy as np

        known = [math.nan if v is None else number_of(v) if isinstance(v, str) else float(v) for v in self.values[column]]
        return np.array(known)[self.codes(column)]


def _apart(value: Value) -> tuple[str, Value]:
    """A number and a boolean of one value are two values; 1 and 1.0 are one."""
    return type(value).__name__ if isinstance(value, bool | str | None) else "number", value


def _ordered(values: Sequence[Value]) -> list[Value]:
    """Different values: none first, then false and true, numbers, and texts."""
    found = {_apart(value): value for value in values}
    rank = {"NoneType": 0, "bool": 1, "number": 2, "str": 3}
    return [found[key] for key in sorted(found, key=lambda key: (rank[key[0]], 0 if key[1] is None else key[1]))]


def _arrow(place: Path, columns: Sequence[str]) -> Any:
    """The columns of a file that it has."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    with suppress(OSError, pa.ArrowException):
        if place.suffix.lower() == ".parquet":
            there = pa.parquet.read_schema(place).names
            return pa.parquet.read_table(place, columns=[column for column in columns if column in there] or None)
        options = pa.csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
        return pa.csv.read_csv(place, convert_options=options)
    raise PolicyError(f"file: must be a Parquet or CSV file of public rows that can be read. Got {shown(str(place), 200)}.")


def _listed(name: str, column: str, array: Any) -> list[Value]:
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        return _listed(name, column, array.cast(kind.value_type))
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (numbers or pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise PolicyError(f"columns: {column} of {name} must hold numbers, texts, or true and false. Got {kind}.")
    found = [float(value) if pa.types.is_decimal(kind) and value is not None else value for value in array.to_pylist()]
    found = [None if isinstance(value, float) and math.isnan(value) else value for value in found]
    if any(isinstance(value, float) and math.isinf(value) for value in found):
        raise PolicyError(f"columns: {column} of {name} must hold finite numbers. Got one that is not.")
    return found


def exactly(value: float) -> Fraction:
    """The decimal fraction that a number is written as."""
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))
