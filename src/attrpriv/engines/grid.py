"""Floats as whole numbers of a public step, so that an engine adds them without rounding.

    k = round((x - centre) / step),         step a power of two

Sums of whole numbers do not depend on the order of the rows, on threads or on the engine. A sum of floats does, by as much as
the number of rows times the sum of their sizes times 1e-16.

| where the grid comes from            | step              | of a value, lost at most | values that fit              |
|--------------------------------------|-------------------|--------------------------|------------------------------|
| a public centre and spread (`around`) | 2^-40 of a spread | 5e-13 spreads            | within 4 million spreads     |
| public bounds (`within`)             | 2^-61 of the larger | 1e-18 of the larger    | all, since they are clipped  |
| a declared spacing (`spaced`)        | that spacing      | half of it               | up to 2^63 of them           |

What must never change: centre and step are public, never taken from the rows. A value that does not fit is NULL among the
steps, so that counting the steps tells that there is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

from attrpriv.engines.tables import Source, as_number, is_missing
from attrpriv.errors import DataError

# Engines on which the sums of the engine suite are exact.
_WHOLE_SUMS = frozenset({"duckdb", "polars", "postgres", "pyspark"})
_MOST = 2.0**63
_FINE, _FINEST = 40, 61
_SMALLEST, _LARGEST = 1e-240, 1e240
# A centre this many spreads from zero, or nearer, need not be subtracted.
_NEAR = 2.0**16


@dataclass(frozen=True)
class Grid:
    """The public whole numbers on which a column is read."""

    step: float
    centre: float = 0.0
    spaced: bool = False
    """Whether values are meant to be on the grid, whose step is then any number: they are rounded to it, also within bounds."""

    def __post_init__(self) -> None:
        power = self.step > 0 and (self.spaced or math.frexp(self.step)[0] == 0.5)
        if not (power and 1e-290 < self.step < 1e290 and math.isfinite(self.centre)):
            raise DataError("grid: needs a finite centre and a step that is a power of two.")

    @classmethod
    def around(cls, centre: float, spread: float) -> Grid | None:
        """For values some spreads from a centre, both public; None where these are not numbers of a usual size.

        >>> Grid.around(60_000.0, 30_000.0)
        Grid(step=1.4901161193847656e-08, centre=0.0, spaced=False)
        """
        if not (_SMALLEST < spread < _LARGEST and abs(centre) < _LARGEST):
            return None
        step = 2.0 ** (math.frexp(spread)[1] - 1 - _FINE)
        return cls(step, centre if abs(centre) > _NEAR * spread else 0.0)

    @classmethod
    def within(cls, low: float, high: float) -> Grid | None:
        """For values between public bounds; None where these are not numbers of a usual size."""
        most = max(abs(low), abs(high))
        if most == 0:
            return cls(1.0)
        return cls(2.0 ** (math.frexp(most)[1] - _FINEST)) if _SMALLEST < most < _LARGEST else None


def adds_whole_numbers(engine: Any) -> bool:
    """Whether this engine is known to add whole numbers exactly, however many."""
    return engine.name in _WHOLE_SUMS


def very_float(number: float) -> Any:
    """The very float: as text, which an engine reads as a float and not, like a number in SQL, as a decimal first."""
    import ibis

    return ibis.literal(repr(number)).cast("float64")


def steps(source: Source, column: str, grid: Grid, most: float = _MOST) -> Any:
    """Each value's whole number of steps; NULL where it is missing, or not below `most`."""
    import ibis

    if source.engine.name == "duckdb":
        whole = scaled(source, column, grid).try_cast("int64")  # NULL where it does not fit, in one operation
        return whole if most == _MOST else ibis.ifelse((whole < int(most)) & (whole > -int(most)), whole, ibis.null("int64"))
    # Elsewhere a product or a cast that does not fit may be an error, also in a branch that is not taken: it must go before.
    moved, reach = _moved(source, column, grid), most * grid.step
    fits = ~is_missing(source, column) & (moved < very_float(reach)) & (moved >= very_float(-reach))
    inside = ibis.ifelse(fits, moved, ibis.null("float64")) * very_float(1 / grid.step)
    return (_rint()(inside) if source.engine.name == "pyspark" else inside.round()).cast("int64")


@cache
def _rint() -> Any:
    """Spark's `rint`, which rounds a half to the even number, as the other engines do; its `round` does not."""
    import ibis

    return ibis.udf.scalar.builtin(lambda value: None, name="rint", signature=(("float64",), "float64"))


def scaled(source: Source, column: str, grid: Grid) -> Any:
    """Each value in steps, not rounded; where a product that does not fit is infinite, not an error, as on DuckDB."""
    return _moved(source, column, grid) * very_float(1 / grid.step)


def _moved(source: Source, column: str, grid: Grid) -> Any:
    value = as_number(source, column).cast("float64")
    return value if grid.centre == 0 else value - very_float(grid.centre)


def whole_sum(source: Source, whole: Any, where: Any = None) -> Any:
    """The exact sum of an integer column, as text: an engine's own type for it may be narrower, and wrap around."""
    summed = whole if source.engine.name in ("duckdb", "postgres") else whole.cast("decimal(38, 0)")
    return summed.sum(where=where).cast("string")


def whole(text: Any) -> int:
    """An exact sum that came back as text; some engines write a decimal point."""
    digits, _, rest = str(text).partition(".")
    if rest.strip("0"):
        raise ValueError("not a whole number")
    return int(digits)
