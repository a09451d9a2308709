"""A Gaussian assumption from *public* records: a box that contains the truth with a stated confidence.

From n independent rows of one multivariate normal law come K exact intervals, each of which misses on either side with
probability (1 - confidence)/(2K). So all of them hold at once with probability at least the confidence (Bonferroni):

| of | interval | law |
|---|---|---|
| each mean | m +- t s/sqrt(n) | Student, n - 1 |
| each sd | s sqrt((n-1)/chi2) | chi-square, n - 1 |
| each slope of q on g | b +- t e/(s_g sqrt(n-1)) | Student, n - 2 (exact whatever the values of g are) |
| each residual sd of q given g | e sqrt((n-2)/chi2) | chi-square, n - 2 |

Where the rows themselves were read (`RowShape`), each of these is widened by what they show: sds by their kurtosis, means by
their skewness, and a slope has the error that unequal spread gives it (`assumptions.shape`), if that is larger.

A slope is taken of every query column on every sensitive column, and once of every other pair, because the box also limits
the correlations among query columns and among sensitive columns. Where all intervals hold, every correlation lies where both

    rho = slope s_g/s_q      and      rho/sqrt(1 - rho^2) = slope s_g/residual sd

allow it. The box is centred at the estimates; each tolerance is the largest distance from there to an end of an interval,
rounded up. Whether it says `slope` or `correlation` may depend on the data, since every interval holds anyway.

What must never change:

* The confidence is that of the whole box. It rests on the public rows being independent, jointly normal, of the population of
  the private table, and independent of that table. None of this is tested, but the shape of rows that were read has a verdict.
* Nothing here reads a table, and the moments must never be those of the private one (`docs/guide/fit.md`): with public records
  the promise is (epsilon, delta + 1 - confidence), with the private ones there is none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Context
from typing import Any, Literal, Protocol

from attrpriv.assumptions.gaussian import FittedRecord, Gaussian, Tolerance
from attrpriv.assumptions.shape import findings_of, freedom, require_known, skewed
from attrpriv.errors import DataError, UsageError
from attrpriv.problem.row_shape import Pair, RowShape

# Covers the rounding of the moments and of the quantiles, on the private side. With `_LEAST_RESIDUAL` it is far from tight.
_OUTWARD = 1 + 1e-6
_LEAST_RESIDUAL = 1e-6
# Beyond this relative tolerance a slope is as good as unknown, and correlations describe the box better.
_WIDEST_SLOPE = 10.0
_WIDEST_SD = 0.99
_DIGITS = 12

Kind = Literal["mean", "sd", "slope", "residual sd", "probability", "share"]
_Key = tuple[Kind, str, str | None]


class PublicMoments(Protocol):
    """What a pass over public records gives."""

    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def means(self) -> Sequence[float]: ...
    @property
    def covariance(self) -> Sequence[Sequence[float]]:
        """With n - 1 in the denominator."""
        ...

    @property
    def digest(self) -> str: ...


class PublicTable(Protocol):
    """Public records that can be read; `attrpriv.engines.moments.PublicTable` is one."""

    def moments(self, columns: Sequence[str]) -> PublicMoments: ...


@dataclass(frozen=True)
class Interval:
    """One of the intervals that hold together; a slope or a residual sd is of one column on another."""

    kind: Kind
    of: str
    on: str | None
    estimate: float
    low: float
    high: float

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "of": self.of, "on": self.on, "estimate": self.estimate, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Fit:
    """The assumption, the intervals that its box contains, and what a reader should know."""

    gaussian: Gaussian
    intervals: tuple[Interval, ...]
    notes: tuple[str, ...]
    shape: RowShape | None = None


def fit_table(
    table: PublicTable,
    *,
    columns: Sequence[str] | None,
    sensitive: Sequence[str] | None,
    queries: Sequence[str] | None,
    confidence: float,
) -> Fit:
    """Read the moments of the named columns and fit them. A role that is not named is open to every column."""
    _check_confidence(confidence)
    named = tuple(dict.fromkeys(columns if columns is not None else (*(queries or ()), *(sensitive or ()))))
    roles = (named if sensitive is None else sensitive, named if queries is None else queries)
    slope_pairs(named, *roles)
    if not callable(getattr(table, "moments", None)):  # a path is easily given by mistake
        raise UsageError(f'table: must be public records, as in PublicTable("public.parquet"). Got a {type(table).__name__}.')
    return fit_examined(table, table.moments(named), sensitive=roles[0], queries=roles[1], confidence=confidence)


def fit_examined(
    table: object, moments: PublicMoments, *, sensitive: Sequence[str], queries: Sequence[str], confidence: float
) -> Fit:
    """The box for a table with these moments, once the shape of its rows is read; a table that does not tell: not examined."""
    _check_confidence(confidence)
    pairs = slope_pairs(moments.columns, sensitive, queries)
    _check_moments(moments, _tail(len(moments.columns), len(pairs), confidence))
    examine = getattr(table, "shape", None)
    shape = examine(moments, pairs) if callable(examine) else None
    return fit_moments(moments, sensitive=sensitive, queries=queries, confidence=confidence, shape=shape)


def fit_moments(
    moments: PublicMoments,
    *,
    sensitive: Sequence[str],
    queries: Sequence[str],
    confidence: float,
    shape: RowShape | None = None,
) -> Fit:
    """The box for these columns; `sensitive` and `queries` may overlap, and every column of the moments is in the box.

    Without the shape of the rows, which moments do not tell, they are taken for normal and the record says: not examined.
    """
    _check_confidence(confidence)
    pairs = slope_pairs(moments.columns, sensitive, queries)
    tail = _tail(len(moments.columns), len(pairs), confidence)
    _check_moments(moments, tail)
    if shape is not None:
        require_known(shape, moments.rows, tail)
    found = _intervals(moments, pairs, tail, shape)
    centre = _centre(moments)
    released = [(q, g) for q, g in pairs if q in queries and g in sensitive]
    tolerance = _tolerance(centre, found, pairs, released)
    verdicts = None if shape is None else findings_of(shape, moments.rows)
    record = FittedRecord(rows=moments.rows, digest=moments.digest, confidence=confidence, shape=verdicts)
    box = Gaussian(mean=centre.mean, sd=centre.sd, correlation=centre.correlation, tolerance=tolerance, fitted=record)
    return Fit(box, tuple(found.values()), _notes(box, found), shape)


def slope_pairs(columns: Sequence[str], sensitive: Sequence[str], queries: Sequence[str]) -> tuple[Pair, ...]:
    """Which slopes are bounded, as (of, on): every query column on every sensitive one, and once every pair that is left.

    >>> slope_pairs(["weight", "height", "income"], ["income"], ["weight", "height"])
    (('weight', 'height'), ('weight', 'income'), ('height', 'income'))
    """
    if not columns or len(set(columns)) != len(columns):
        raise UsageError(f"columns: must be one or more different names. Got {', '.join(columns) or 'none'}.")
    for column in (*sensitive, *queries):
        if column not in columns:
            raise UsageError(f"columns: must hold every sensitive and every query column. Got none called {column}.")
    found: list[Pair] = []
    for first, second in itertools.combinations(columns, 2):
        both = [(first, second), (second, first)]
        named = [(q, g) for q, g in both if q in queries and g in sensitive]
        found += named or both[:1]
    return tuple(found)


# ---------------------------------------------------------------------------------------------------------------- checks


def _check_confidence(confidence: float) -> None:
    if not 0.5 <= confidence < 1:  # from 0.5 on, 1 - confidence is exact in floats
        raise UsageError(f"confidence: must be at least 0.5 and below 1. Got {confidence!r}.")


def _check_moments(moments: PublicMoments, tail: float) -> None:
    columns = moments.columns
    needed = least_rows(len(columns), tail)
    if moments.rows < needed:
        raise DataError(
            f"public: needs at least {needed} rows for {len(columns)} columns at this confidence. Got {moments.rows}. "
            "Find more public records, or state the assumption yourself."
        )
    numbers = [*moments.means, *itertools.chain.from_iterable(moments.covariance)]
    if not all(map(math.isfinite, numbers)):
        raise DataError("public: means and covariances must be finite. Got one that is not.")
    for k, column in enumerate(columns):
        if not moments.covariance[k][k] > (1e-12 * moments.means[k]) ** 2:
            raise DataError(f"public: every column must vary. Got {column}, which is constant. Leave it out, or find others.")
    for j, k in itertools.combinations(range(len(columns)), 2):
        if not _unexplained(moments, j, k) >= _LEAST_RESIDUAL:
            raise DataError(
                f"public: no column may determine another. Got {columns[j]} and {columns[k]}, which do. Leave one of them out."
            )


def least_rows(columns: int, tail: float) -> int:
    """The fewest rows from which every sd is known to within a factor below 2, as a box must be."""
    low, high = columns + 1, columns + 2
    while _sd_ratios(tail, high - 1)[1] - 1 > _WIDEST_SD:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _sd_ratios(tail, middle - 1)[1] - 1 > _WIDEST_SD else (low, middle)
    return high


# ------------------------------------------------------------------------------------------------------------- intervals


def _tail(columns: int, pairs: int, confidence: float) -> float:
    """What each interval may miss on either side: a mean and an sd a column, a slope and a residual sd a pair."""
    return (1 - confidence) / (2 * (2 * columns + 2 * pairs))


def _student(tail: float, freedom: int) -> float:
    """The t quantile exceeded with probability `tail`."""
    from scipy.special import stdtrit

    return -float(stdtrit(freedom, tail)) * _OUTWARD


def _sd_ratios(tail: float, freedom: float) -> tuple[float, float]:
    """Between which multiples of its estimate a standard deviation lies, missing on either side with probability `tail`."""
    from scipy.special import gammainccinv, gammaincinv

    half = freedom / 2
    low, high = math.sqrt(half / float(gammainccinv(half, tail))), math.sqrt(half / float(gammaincinv(half, tail)))
    return low / _OUTWARD, high * _OUTWARD


def widened_ratios(tail: float, normal: int, rows: int, kurtosis: float) -> tuple[float, float]:
    """The same where rows have this excess kurtosis.

    Seen spikes are counts, whose low end is the inverse of the high one and further away than that of a chi-square.
    """
    low, high = _sd_ratios(tail, freedom(rows, kurtosis, tail, normal))
    return min(low, 1 / high), high


def _unexplained(moments: PublicMoments, j: int, k: int) -> float:
    """1 - r^2 of two columns."""
    r = _correlation(moments, j, k)
    return (1 - r) * (1 + r)


def _correlation(moments: PublicMoments, j: int, k: int) -> float:
    return moments.covariance[j][k] / math.sqrt(moments.covariance[j][j]) / math.sqrt(moments.covariance[k][k])


def _intervals(moments: PublicMoments, pairs: Sequence[Pair], tail: float, shape: RowShape | None) -> dict[_Key, Interval]:
    columns = list(moments.columns)
    found: list[Interval] = []
    for k in range(len(columns)):
        found += _own_intervals(moments, k, tail, shape)
    for q, g in pairs:
        found += _pair_intervals(moments, columns.index(q), columns.index(g), tail, shape)
    return {(interval.kind, interval.of, interval.on): interval for interval in found}


def _own_intervals(moments: PublicMoments, k: int, tail: float, shape: RowShape | None) -> tuple[Interval, ...]:
    """Mean and sd of one column."""
    n, column, mean = moments.rows, moments.columns[k], moments.means[k]
    sd, seen = math.sqrt(moments.covariance[k][k]), None if shape is None else shape.columns[column]
    t = _student(tail, n - 1)
    reach = (t if seen is None else skewed(t, seen.skewness, n)) * sd / math.sqrt(n)
    low, high = _sd_ratios(tail, n - 1) if seen is None else widened_ratios(tail, n - 1, n, seen.kurtosis)
    return (
        Interval("mean", column, None, mean, mean - reach, mean + reach),
        Interval("sd", column, None, sd, sd * low, sd * high),
    )


def _pair_intervals(moments: PublicMoments, q: int, g: int, tail: float, shape: RowShape | None) -> tuple[Interval, ...]:
    """Slope and residual sd of column q on column g."""
    n, of, on = moments.rows, moments.columns[q], moments.columns[g]
    seen = None if shape is None else shape.pairs[of, on]
    sd_q, sd_g = math.sqrt(moments.covariance[q][q]), math.sqrt(moments.covariance[g][g])
    slope = _correlation(moments, q, g) * sd_q / sd_g
    residual = sd_q * math.sqrt(_unexplained(moments, q, g) * (n - 1) / (n - 2))
    t = _student(tail, n - 2)
    if seen is not None:  # the variance of the slope that the rows themselves show ("sandwich"), where that is larger
        t = max(t, skewed(t, seen.score_skewness, n) * math.sqrt(seen.score_variance))
    reach = t * residual / sd_g / math.sqrt(n - 1)
    low, high = _sd_ratios(tail, n - 2) if seen is None else widened_ratios(tail, n - 2, n, seen.residual_kurtosis)
    return (
        Interval("slope", of, on, slope, slope - reach, slope + reach),
        Interval("residual sd", of, on, residual, residual * low, residual * high),
    )


def _correlations(found: Mapping[_Key, Interval], pair: Pair) -> tuple[float, float]:
    """Between which ends the correlation lies where all intervals hold."""
    q, g = pair
    slope, spread = found["slope", q, g], found["sd", g, None]
    plain = _product_over(slope, spread, found["sd", q, None])
    odds = _product_over(slope, spread, found["residual sd", q, g])
    low, high = (x / math.hypot(1, x) for x in odds)
    return max(-1.0, plain[0], low), min(1.0, plain[1], high)


def _product_over(slope: Interval, spread: Interval, divisor: Interval) -> tuple[float, float]:
    """The ends of slope * spread / divisor, for two positive intervals and a slope of either sign."""
    least, most = spread.low / divisor.high, spread.high / divisor.low
    return slope.low * (least if slope.low > 0 else most), slope.high * (most if slope.high > 0 else least)


# --------------------------------------------------------------------------------------------------------------- the box


def _centre(moments: PublicMoments) -> Gaussian:
    """The estimates, to as many digits as a reader can bear; distances are taken from these very numbers."""
    columns = moments.columns
    named = list(enumerate(columns))
    return Gaussian(
        mean={c: _rounded(moments.means[k]) for k, c in named},
        sd={c: _rounded(math.sqrt(moments.covariance[k][k])) for k, c in named},
        correlation={(a, b): _rounded(_correlation(moments, j, k)) for (j, a), (k, b) in itertools.combinations(named, 2)},
        tolerance=0,
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _tolerance(centre: Gaussian, found: Mapping[_Key, Interval], pairs: Sequence[Pair], released: Sequence[Pair]) -> Tolerance:
    """The least box around the centre that contains every interval, told by slopes or by correlations."""
    sd = _up(max(_furthest(found["sd", c, None], centre.sd_of(c)) / centre.sd_of(c) for c in centre.columns))
    # In the smallest sd of the box, so that the means are inside whichever sd a reader of the box has in mind.
    least = {c: centre.sd_of(c) * (1 - sd) for c in centre.columns}
    mean = _up(max(_furthest(found["mean", c, None], centre.mean[c]) / least[c] for c in centre.columns))
    reach = 0.0
    for q, g in pairs:
        low, high = _correlations(found, (q, g))
        stated = centre.correlation_of(q, g)
        reach = max(reach, high - stated, stated - low)
    by_correlation = Tolerance(mean=mean, sd=sd, correlation=_up(reach))
    slope = max((_relative(found["slope", q, g], centre.slope(q, g)) for q, g in pairs), default=0.0)
    if slope > _WIDEST_SLOPE:
        return by_correlation
    by_slope = Tolerance(mean=mean, sd=sd, slope=_up(slope))
    return min((by_slope, by_correlation), key=lambda box: _steepness(centre, box, released))


def _steepness(centre: Gaussian, box: Tolerance, released: Sequence[Pair]) -> float:
    """How steep the slopes of released on sensitive columns may be in this box, all of them together: what noise pays for."""
    if box.slope is not None:
        return sum(math.log(abs(centre.slope(q, g)) * (1 + box.slope)) for q, g in released)
    stretch, reach = (1 + box.sd) / (1 - box.sd), box.correlation or 0.0
    slopes = [min(1.0, abs(centre.correlation_of(q, g)) + reach) * centre.sd_of(q) / centre.sd_of(g) for q, g in released]
    return sum(math.log(slope * stretch) for slope in slopes)


def _furthest(interval: Interval, centre: float) -> float:
    return max(interval.high - centre, centre - interval.low)


def _relative(interval: Interval, stated: float) -> float:
    return math.inf if stated == 0 else _furthest(interval, stated) / abs(stated)


def _up(value: float) -> float:
    """To four digits, upwards: at least as large also after the decimal has been read back as a float.

    >>> _up(0.0123411), _up(1.0)
    (0.01235, 1.001)
    """
    return float(Context(prec=4, rounding=ROUND_UP).create_decimal_from_float(value * _OUTWARD))


def _notes(box: Gaussian, found: Mapping[_Key, Interval]) -> tuple[str, ...]:
    notes = [
        f"the records do not settle the sign of the slope of {interval.of} on {interval.on}."
        for interval in found.values()
        if interval.kind == "slope" and interval.low <= 0 <= interval.high
    ]
    if box.tolerance.correlation is not None:
        notes.append("the box is told by correlations: some slope is too near 0 to be known to a share of itself.")
    elif (box.tolerance.slope or 0.0) > 1:
        notes.append("the slope tolerance is above 1: a slope may be more than twice the stated one, or of the other sign.")
    return tuple(notes)
