"""Intervals of a number with nearly all values different, and what public records say of it: sorted cells of a reference view.

    reference:
      file: census.parquet
      least_density: 0.8
      sorted:
        income: {low: 0, high: 200000, width: 2000}        # or {breaks: [0, 1000, 2000, 5000]}, or {ends: found}

What must never change: the ends of intervals are declared, or chosen by a part of the public records that is not counted. They
do not depend on the records that are counted, so that how many of these and of the table's rows are in an interval is told
apart by chance alone (`numerics.laws.prediction`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import Field, model_validator

from attrpriv.errors import UsageError
from attrpriv.frozen import Finite, FrozenModel, NonNegative, Positive
from attrpriv.numerics.laws.breaks import even_edges

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# More intervals than this are never needed: what moved rows tell falls with their width.
_MOST = 10_000


class Intervals(FrozenModel):
    """Where the intervals of one column end: `{low, high, width}`, `{breaks: [...]}` with every end, or `{ends: found}`.

    Ends that are found have the `breaks` that are stated beside them among them.
    """

    low: Finite | None = Field(default=None, description="the least value; what is below is never shown")
    high: Finite | None = Field(default=None, description="the largest value; what is above is never shown")
    width: Positive | None = Field(default=None, description="of each interval; the last ones are made to fit")
    breaks: tuple[Finite, ...] = Field(default=(), description="instead: every end, in order; with ends: found, some of them")
    ends: Literal["found"] | None = Field(
        default=None,
        description="instead: found on a quarter of the public records, so that the view shows many rows",
        exclude_if=lambda value: value is None,
    )

    @model_validator(mode="after")
    def _ends(self) -> Intervals:
        even = (self.low, self.high, self.width)
        if self.ends is not None:
            return self._found(even)
        if (None in even) == (not self.breaks) or (self.breaks and even != (None, None, None)):
            raise ValueError("needs low, high and width, or breaks with every end, or ends: found, one of them.")
        problem = None
        try:
            if len(self.edges) > _MOST + 1:
                problem = f"must be at most {_MOST:,} intervals. Got {len(self.edges) - 1:,}. Take a larger width."
        except UsageError as error:
            problem = str(error)
        if problem is not None:
            raise ValueError(problem)
        if len(self.edges) < 2 or any(a >= b for a, b in itertools.pairwise(self.edges)):
            raise ValueError(f"breaks: must be at least two ends, each above the one before. Got {list(self.breaks)}.")
        return self

    def _found(self, even: tuple[float | None, ...]) -> Intervals:
        if even != (None, None, None):
            raise ValueError("ends: found needs no low, high or width.")
        if any(a >= b for a, b in itertools.pairwise(self.breaks)):
            raise ValueError(f"breaks: must each be above the one before. Got {list(self.breaks)}.")
        return self

    @property
    def edges(self) -> tuple[float, ...]:
        """Every end, in order; where ends are found, those that are stated."""
        if self.low is None or self.high is None or self.width is None:
            return self.breaks
        if (self.high - self.low) / self.width > 2 * _MOST:  # before so many are made
            raise UsageError(f"must be at most {_MOST:,} intervals. Got more. Take a larger width.")
        return even_edges(self.low, self.high, self.width)


class RoughPlace(FrozenModel):
    """An interval whose two halves look more different than the stated information lets them."""

    place: Finite
    separation: Finite
    allowed: Finite


class Uneven(FrozenModel):
    """Where the public records are furthest from spread evenly within an interval, and how far at least."""

    place: Finite
    shift: Annotated[Finite, Field(ge=0, le=1)]


class PublicIntervals(FrozenModel):
    """What public records say of a column that is sorted into intervals. Nothing here approves of an assumption."""

    column: str
    edges: tuple[Finite, ...] = Field(min_length=2)
    variance: NonNegative = Field(description="of the values between the first and the last end")
    repeated: Annotated[Finite, Field(ge=0, le=1)] = Field(description="share of values that occur more than once")
    functions: tuple[str, ...] = Field(default=(), description="columns that tell the value, or are told by it")
    rough: tuple[RoughPlace, ...] = ()
    uneven: Uneven | None = None
    compared: tuple[str, ...] = Field(default=(), description="columns of the table that the records have")
    chosen_by: int | None = Field(
        default=None,
        ge=1,
        description="how many other public records chose the ends; none: they are declared",
        exclude_if=lambda value: value is None,
    )


@dataclass(frozen=True, eq=False)
class ChoosingRecords:
    """The part of the public records that chooses ends: a number each, and which values of the other hidden columns it has."""

    numbers: NDArray[np.float64]
    """NaN: missing."""
    homes: NDArray[np.int64]
    counted: int
    """How many other records are left to be counted."""


class FindsEnds(Protocol):
    """Where intervals end, in order, by some public records. Hashable: what it found is found once."""

    def __call__(self, records: ChoosingRecords) -> tuple[float, ...]: ...

    def __hash__(self) -> int: ...


def interval_name(low: float, high: float) -> str:
    """`2000 to 4000`."""
    return f"{_plain(low)} to {_plain(high)}"


def _plain(value: float) -> str:
    return str(int(value)) if value == math.floor(value) and abs(value) < 1e15 else repr(value)
