"""A variance, a covariance, a regression or a quantile over all rows of a table, in one pass.

What the statistic is of is computed row by row in the engine, as floats: missing entries filled, each column clipped, then the
arithmetic. Sums and sums of products are those of whole numbers of steps on a public grid (`gram`), without rounding, so every
engine gives the same fraction. The quantile of level p of n rows is the value at place ceil(p n) from below, a row's own value.

What must never change: one query. The grid comes from public numbers alone. A failure that depends on the rows has a fixed text
that names the columns read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any

from attrpriv.engines.gram import Gram, GramRead, gram_in_steps
from attrpriv.engines.grid import very_float
from attrpriv.engines.scan import ENGINE_FAILED, NOT_FINITE, check_columns
from attrpriv.engines.tables import ColumnType, Source, as_number, careful, is_missing, quietly, shown_name
from attrpriv.engines.view.values import polynomial
from attrpriv.errors import DataError
from attrpriv.queries.intervals import TINY, fits_floats, interval
from attrpriv.queries.query import Query

Range = tuple[float, float]

TOO_LARGE = "bounds: floats must hold what {query} is of, and do not. Declare narrower bounds, or another unit."

# Half of the interval is 2^43 steps, and a value twice as far is still counted.
_BITS = 44


@dataclass(frozen=True)
class StatisticRead:
    """A statistic of a table of `rows` rows, with the public values that make it defined and bounded."""

    query: Query
    rows: int
    fills: Mapping[str, float | None]
    """The public value of a missing entry of each column; None: a missing entry is an announced failure."""
    clips: Mapping[str, Range]
    """Values of each column outside are clipped, silently."""


def statistic(source: Source, read: StatisticRead) -> tuple[int, Fraction | None]:
    """The number of rows, which is public, and the exact value; None where it is undefined (a regression on a constant).

    Raises DataError before any row is read if a column is unknown or not numeric, and with a fixed text if a value is missing
    without a public substitute or cannot be used, or if the engine fails.
    """
    check_columns(source, read.query.columns)
    quantile = read.query.kind == "quantile"
    grids = () if quantile else _grids(read)
    found = quietly(lambda: _quantile(source, read) if quantile else _moments(source, read, grids))
    columns = ", ".join(map(shown_name, read.query.columns))
    if found is None:
        raise DataError(ENGINE_FAILED.format(columns=columns))
    rows, value = found
    if isinstance(value, str):
        raise DataError(NOT_FINITE.format(columns=columns))
    return rows, value


# ----------------------------------------------------------------------------------------------------------- row by row


def _arguments(source: Source, read: StatisticRead) -> Any:
    """What the statistic is of, as `u0` and `u1`; in steps, each of which names what the next one uses."""
    names = {column: f"x{k}" for k, column in enumerate(read.query.columns)}
    first = source.table.select(**{short: _filled(source, column, read.fills.get(column)) for column, short in names.items()})
    bare = all(one.column is not None for one in read.query.arguments)
    made = {short: _clipped(first[short], read.clips[column]) for column, short in names.items()}
    second = first.select(**(made if bare else {short: _not_tiny(value) for short, value in made.items()}))
    return second.select(**{f"u{k}": polynomial(one, second, names) for k, one in enumerate(read.query.arguments)})


def _filled(source: Source, column: str, fill: float | None) -> Any:
    import ibis

    value = as_number(source, column).cast("float64")
    return ibis.ifelse(is_missing(source, column), ibis.null("float64") if fill is None else very_float(fill), value)


def _clipped(value: Any, ends: Range) -> Any:
    """By comparisons, which every engine has; what is missing stays so."""
    import ibis

    low, high = map(very_float, ends)
    return ibis.cases((value < low, low), (value > high, high), else_=value)


def _not_tiny(value: Any) -> Any:
    """Where products of two tiny numbers are an error, as on PostgreSQL, a failure would tell of them."""
    import ibis

    tiny = (value < very_float(TINY)) & (value > very_float(-TINY))
    return ibis.ifelse(tiny, very_float(0.0), value)


# ------------------------------------------------------------------------------------------------------ sums of products


def _grids(read: StatisticRead) -> tuple[GramRead, ...]:
    """Whole numbers of steps from the middle of the interval in which each argument lies."""
    box = {column: read.clips[column] for column in read.query.columns}
    if not fits_floats(read.query, box):
        raise DataError(TOO_LARGE.format(query=read.query.text))
    ends = [interval(argument, box) for argument in read.query.arguments]
    steps = [2.0 ** (math.frexp(float(high - low))[1] - _BITS) for low, high in ends]
    return tuple(GramRead(f"u{k}", float((low + high) / 2), steps[k]) for k, (low, high) in enumerate(ends))


def _moments(source: Source, read: StatisticRead, grids: tuple[GramRead, ...]) -> tuple[int, Fraction | str | None]:
    columns: dict[str, ColumnType] = {grid.column: "float" for grid in grids}
    derived = Source(lambda: (_arguments(source, read), source.engine), source.name, columns, source.rows)
    found = gram_in_steps(derived, grids)
    if not isinstance(found, Gram):
        return 0, found
    return found.rows, _STATISTICS[read.query.kind](_Moments(found, grids))


@dataclass(frozen=True)
class _Moments:
    """Exact means and covariances of the arguments."""

    gram: Gram = field(repr=False)
    grids: tuple[GramRead, ...]

    def mean(self, k: int) -> Fraction:
        return Fraction(self.grids[k].centre) + Fraction(self.grids[k].step) * self.gram.sums[k] / self.gram.rows

    def covariance(self, j: int, k: int) -> Fraction:
        n, sums = self.gram.rows, self.gram.sums
        steps = Fraction(self.gram.products[j][k] * n - sums[j] * sums[k], n * n)
        return steps * Fraction(self.grids[j].step) * Fraction(self.grids[k].step)

    def slope(self) -> Fraction | None:
        """Of the first on the second, as SQL has it."""
        spread = self.covariance(1, 1)
        return self.covariance(0, 1) / spread if spread else None

    def intercept(self) -> Fraction | None:
        slope = self.slope()
        return None if slope is None else self.mean(0) - slope * self.mean(1)


_STATISTICS: Mapping[str, Callable[[_Moments], Fraction | None]] = MappingProxyType(
    {
        "var_pop": lambda found: found.covariance(0, 0),
        "covar_pop": lambda found: found.covariance(0, 1),
        "regr_slope": _Moments.slope,
        "regr_intercept": _Moments.intercept,
    }
)


# ------------------------------------------------------------------------------------------------------------ quantiles


def place_of(level: float, rows: int) -> int:
    """From below, from 1: the level is the decimal number that it is written as."""
    return math.ceil(Fraction(repr(level)) * rows)


def _quantile(source: Source, read: StatisticRead) -> tuple[int, Fraction | str | None]:
    place = place_of(read.query.level or 0.5, read.rows)
    values, name = _arguments(source, read), source.engine.name
    row = _polars_row(source, values, place) if name == "polars" else source.run(_place_query(values, place, read.rows, name))
    rows = int(row["rows"])
    value = row["value"]
    if int(row["usable"]) != rows or (rows == read.rows and (value is None or not math.isfinite(value))):
        return rows, "unusable"
    return rows, Fraction(value or 0)  # of another number of rows: not used


def _place_query(values: Any, place: int, rows: int, engine: str) -> Any:
    """How many rows and usable values there are, and the value at this place; missing ones come last."""
    import ibis

    if engine == "duckdb":
        usable = values.u0.count(where=~(values.u0.isnan() | values.u0.isinf()))
        # between two places, so that no rounding of the level moves it to the next one
        value = _quantile_disc()(values.u0, very_float((place - 0.5) / rows))
        return values.aggregate(rows=values.count(), usable=usable, value=value)
    upwards = ibis.window(order_by=values.u0.asc(nulls_first=False))
    ranked = values.select("u0", place=ibis.row_number().over(upwards))
    usable = ranked.u0.count(where=~(ranked.u0.isnan() | ranked.u0.isinf()))
    return ranked.aggregate(rows=ranked.count(), usable=usable, value=ranked.u0.max(where=ranked.place == place - 1))


@cache
def _quantile_disc() -> Any:
    """DuckDB's own, by partial sorting."""
    import ibis

    return ibis.udf.agg.builtin(lambda value, level: None, name="quantile_disc", signature=(("float64", "float64"), "float64"))


def _polars_row(source: Source, values: Any, place: int) -> dict[str, Any]:
    """Ibis knows no window on Polars."""
    import polars

    u = polars.col("u0")
    with careful(source.engine):
        lazy = source.engine.compile(values)
    found = lazy.select(
        rows=polars.len(), usable=u.is_finite().sum(), value=u.sort(nulls_last=True).slice(place - 1, 1).first()
    ).collect()
    return dict(found.row(0, named=True))


__all__ = ["StatisticRead", "place_of", "statistic"]
