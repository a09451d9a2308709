"""A Gaussian assumption's box seen through several query columns and a secret that may combine several columns.

For F = the averages of columns J and g = c'x (a linear combination of column averages), given g = a,

    F ~ N(const + slope * a, C / n),     slope_j = Cov(x_j, g)/Var(g),     C = V_JJ - Cov(x_J, g) Cov(x_J, g)'/Var(g).

Over the box every entry lies in an interval; intervals of sums and products bound slopes and C. That ignores how entries move
together, so it only ever widens the class: a sound bound, exact where the tolerance is zero. A symmetric matrix with entries in
[centre - radius, centre + radius] is at least centre - diag(row sums of radius) in the semidefinite order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.worst_case import correlation_range, correlation_ranges
from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.laws.intervals import IntervalUnion, require_disjoint
from attrpriv.numerics.laws.law_box import Cell, MovingCases
from attrpriv.numerics.rounding import SOME_ULPS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

Interval = tuple[float, float]


@dataclass(frozen=True)
class VectorBox:
    """Slopes of the query columns on the secret, a matrix that the row's residual covariance is never below, and the largest
    variance of the secret's combination in a row."""

    slopes: tuple[Interval, ...]
    residual: Matrix
    spread: float

    def least_share(self, sds: Sequence[float]) -> float:
        """The least eigenvalue of the residual in units of these standard deviations; at most 0 where nothing is sure."""
        import numpy as np

        scale = np.asarray(sds, dtype=np.float64)
        return float(np.linalg.eigvalsh(self.residual / np.outer(scale, scale))[0])


def vector_box(gaussian: Gaussian, queries: Sequence[str], secret: Mapping[str, float]) -> VectorBox | None:
    """The box of these columns given this combination; None where the combination's variance may be zero."""
    return _vector_box(gaussian, tuple(queries), tuple(secret.items()))


@lru_cache(maxsize=512)  # a plan asks for the same boxes again and again
def _vector_box(gaussian: Gaussian, queries: tuple[str, ...], hidden: tuple[tuple[str, float], ...]) -> VectorBox | None:
    import numpy as np

    secret = dict(hidden)
    spread = _combined(gaussian, secret, secret)
    if not spread[0] > 0:
        return None
    slopes = [_slope(gaussian, query, secret, spread) for query in queries]
    low, high = _residuals(gaussian, queries, secret, slopes, spread)
    centre, radius = (low + high) / 2, (high - low) / 2
    centre, radius = (centre + centre.T) / 2, np.maximum(radius, radius.T)
    residual = centre - np.diag(radius.sum(axis=1))
    residual.setflags(write=False)
    return VectorBox(tuple(slopes), residual, spread[1])


def combined_box(gaussian: Gaussian, forms: Sequence[Mapping[str, float]], secret: Mapping[str, float]) -> VectorBox | None:
    """The same of linear combinations C x of columns: slopes C s of slopes s in their intervals, and C R C' is below the
    residual covariance where R is below that of the columns. Rounding goes outwards."""
    import numpy as np

    columns = tuple(dict.fromkeys(column for form in forms for column in form))
    box = vector_box(gaussian, columns, secret)
    if box is None:
        return None
    weights = np.array([[form.get(column, 0.0) for column in columns] for form in forms])
    low, high = (np.array([pair[end] for pair in box.slopes]) for end in (0, 1))
    ends = np.where(weights > 0, weights * low, weights * high), np.where(weights > 0, weights * high, weights * low)
    size = np.abs(weights) @ np.maximum(np.abs(low), np.abs(high)) * len(columns) * SOME_ULPS
    slopes = zip(ends[0].sum(axis=1) - size, ends[1].sum(axis=1) + size, strict=True)
    residual = weights @ box.residual @ weights.T
    slack = np.abs(weights) @ np.abs(box.residual) @ np.abs(weights).T * len(columns) ** 2 * SOME_ULPS
    residual = (residual + residual.T) / 2 - np.diag(slack.sum(axis=1))
    return VectorBox(tuple((float(a), float(b)) for a, b in slopes), residual, box.spread)


def is_itself(query: str, secret: Mapping[str, float]) -> bool:
    """Whether the secret is the query column alone, so that its average is known exactly once the secret is."""
    return len(secret) == 1 and query in secret


def covariance_floor(gaussian: Gaussian, columns: Sequence[str], sign: float) -> Matrix:
    """A matrix that a row's covariance is never below (`sign` -1), or never above (+1), in the semidefinite order."""
    import numpy as np

    low, high = covariances(gaussian, columns)
    radius = (high - low) / 2 + SOME_ULPS * np.maximum(np.abs(low), np.abs(high))
    # In units of the sds, so that a wide column does not blur a narrow one.
    unit = np.sqrt(np.diag(high))
    rows = (radius / np.outer(unit, unit)).sum(axis=1)
    return np.asarray((low + high) / 2 + sign * np.diag(rows * unit**2))


def covariances(gaussian: Gaussian, columns: Sequence[str]) -> tuple[Matrix, Matrix]:
    """The intervals of all covariances of a row, `_covariance` of every pair, bit by bit."""
    import numpy as np

    sds = [gaussian.sd_range(column) for column in columns]
    rho, ends = correlation_ranges(gaussian, columns), np.array(sds).reshape(-1, 2).T
    products = np.stack([r * p[:, None] * q[None, :] for r in rho for p in ends for q in ends])
    low, high = products.min(axis=0), products.max(axis=0)
    for j, k in zip(*np.nonzero(np.array(columns)[:, None] == np.array(columns)[None, :]), strict=True):
        low[j, k], high[j, k] = (end**2 for end in sds[j])
    return low, high


def _covariance(gaussian: Gaussian, first: str, second: str) -> Interval:
    a, b = gaussian.sd_range(first), gaussian.sd_range(second)
    if first == second:
        return a[0] ** 2, a[1] ** 2
    rho = correlation_range(gaussian, first, second)
    products = [r * p * q for r in rho for p in a for q in b]
    return min(products), max(products)


def _combined(gaussian: Gaussian, left: Mapping[str, float], right: Mapping[str, float]) -> Interval:
    """The interval of the covariance of two linear combinations."""
    low = high = 0.0
    for first, a in left.items():
        for second, b in right.items():
            ends = [a * b * end for end in _covariance(gaussian, first, second)]
            low, high = low + min(ends), high + max(ends)
    return low, high


def _slope(gaussian: Gaussian, query: str, secret: Mapping[str, float], spread: Interval) -> Interval:
    if is_itself(query, secret):
        coefficient = secret[query]
        return 1 / coefficient, 1 / coefficient
    if len(secret) == 1:
        (column, coefficient) = next(iter(secret.items()))
        if gaussian.tolerance.slope is not None:
            return _stated_slope(gaussian, query, column, coefficient)
        rho, own, theirs = correlation_range(gaussian, query, column), gaussian.sd_range(query), gaussian.sd_range(column)
        steepest = [r * s / t / coefficient for r in rho for s in own for t in theirs]
        return min(steepest), max(steepest)
    shared = _combined(gaussian, {query: 1.0}, secret)
    ends = [s / v for s in shared for v in spread]
    return min(ends), max(ends)


def _stated_slope(gaussian: Gaussian, query: str, column: str, coefficient: float) -> Interval:
    """The slope tolerance speaks of exactly this slope; a correlation of at most 1 caps it."""
    slope, reach = gaussian.slope(query, column), gaussian.tolerance.slope or 0.0
    cap = gaussian.sd_range(query)[1] / gaussian.sd_range(column)[0]
    ends = [max(-cap, min(cap, slope * (1 + sign * reach))) / coefficient for sign in (-1, 1)]
    return min(ends), max(ends)


def _residuals(
    gaussian: Gaussian,
    queries: Sequence[str],
    secret: Mapping[str, float],
    slopes: Sequence[Interval],
    spread: Interval,
) -> tuple[Matrix, Matrix]:
    """The intervals of Cov(x_j, x_m) minus what g explains of it, by whichever way of writing that is narrowest."""
    import numpy as np

    low, high = covariances(gaussian, queries)
    ends = np.array(slopes).reshape(-1, 2).T
    shared = np.array([_combined(gaussian, {query: 1.0}, secret) for query in queries]).reshape(-1, 2).T
    explained = (
        _products(ends[:, None, :, None], ends[None, :, None, :], spread),
        _products(ends[:, None, :, None], shared[None, :, None, :]),
        _products(shared[:, None, :, None], ends[None, :, None, :]),
    )
    options = [(low - taken.max(axis=0), high - taken.min(axis=0)) for taken in explained]
    # Where nearly all is explained, the difference is smaller than the rounding of what it is taken of.
    largest = np.max([np.abs(taken).max(axis=0) for taken in explained], axis=0)
    rounding = SOME_ULPS * (np.maximum(np.abs(low), np.abs(high)) + largest)
    narrowest = np.argmin([most - least for least, most in options], axis=0)
    least, most = (np.choose(narrowest, [option[end] for option in options]) for end in (0, 1))
    known = np.array([is_itself(query, secret) for query in queries], dtype=bool)
    apart = ~(known[:, None] | known[None, :])
    return np.where(apart, least - rounding, 0.0), np.where(apart, most + rounding, 0.0)


def _products(first: Matrix, second: Matrix, third: Sequence[float] = (1.0,)) -> Matrix:
    """All products of an end of each of these intervals, for every pair of queries."""
    import numpy as np

    both = first * second
    return np.concatenate([(both * end).reshape(4, *both.shape[2:]) for end in third])


# ----------------------------------------------------------------------------------------------------------------------------
# A set-valued secret under a Gaussian assumption: where its standardised thresholds and its correlation can be.
#
#     c = (threshold - mean) sqrt(n) / sd          rho = correlation of the sensitive column with the query column
#
# | tolerance | what it does to c |
# |---|---|
# | mean t | moves c by up to t sqrt(n): a hundredth of an sd is a whole unit at n = 10000 |
# | sd t | divides it by something between 1 - t and 1 + t |
#
# The result is a box of members, not a list of them; `calibration.moving_variance` proves the noise for all of it. Noise
# grows with |rho| (post-processing), and for half-lines it appears to grow with |c|; the second is nowhere relied upon,
# because a bound over every cell of the box replaces it.
#
# Known rows. Whoever knows k n rows holds another law of the mean: its variance is 1 - k of the stated one, and it is
# *centred at what the known rows say*. That moves c by any amount, so no tolerance covers it, and multiplying variances by 1
# - k (which is right for pairs of values) is not enough. Refused here; bounded sets can still be hidden point by point
# (`pointwise_gap`).
#
# What must never change: every member of Theta has its mean, sd and spread inside the box that is returned.


_OUTWARDS = 8 * 2.0**-52


def standardised_cases(
    gaussian: Gaussian,
    query: str,
    secret: str,
    cases: Sequence[IntervalUnion],
    n: int,
    *,
    known_rows: float = 0.0,
    weight: float = 1.0,
) -> MovingCases:
    """The cases of a mean or sum of column `secret` and the box of laws, as seen through the average of column `query`.

    `cases` are in the secret's own unit; `weight` is 1 for a mean and n for a sum.

    >>> from attrpriv.numerics.laws import parse_cases
    >>> school = Gaussian(mean={"sat": 1050}, sd={"weight": 25, "sat": 200}, correlation={("weight", "sat"): 0.1},
    ...     tolerance={"mean": 0.01, "correlation": 0})
    >>> moving = standardised_cases(school, "weight", "sat", parse_cases(["< 1100", ">= 1100"]), n=10_000)
    >>> [round(c, 6) for c in moving.thresholds()]
    [24.0, 26.0]
    """
    _require(gaussian, query, secret, n, known_rows, weight)
    require_disjoint(cases)
    root = math.sqrt(n)
    sds = _outwards(gaussian.sd_range(secret), root)
    mean, reach = gaussian.mean[secret], gaussian.tolerance.mean * gaussian.sd_range(secret)[1] * (1 + _OUTWARDS)
    # A mean that is stated as exact stays exact: a threshold at the mean is then at 0, not near it.
    means = (mean, mean) if reach == 0 else (math.nextafter(mean - reach, -math.inf), math.nextafter(mean + reach, math.inf))
    sets = tuple(case if weight == 1 else case.standardised(0.0, weight) for case in cases)
    seen = _outwards(gaussian.sd_range(query), root)
    if query == secret:
        return MovingCases(sets, Cell(means, sds), "itself", 1.0, seen)
    if gaussian.tolerance.slope is not None:
        steepest = abs(gaussian.slope(query, secret)) * (1 + gaussian.tolerance.slope) * (1 + _OUTWARDS)
        return MovingCases(sets, Cell(means, sds), "slope", steepest, seen)
    return MovingCases(sets, Cell(means, sds), "correlation", rho_range(gaussian, query, secret)[1], seen)


def rho_range(gaussian: Gaussian, query: str, secret: str) -> tuple[float, float]:
    """The least and the largest |correlation| of the two columns over the box."""
    if query == secret:
        return 1.0, 1.0
    low, high = correlation_range(gaussian, query, secret)
    least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return least * (1 - _OUTWARDS), min(1.0, max(abs(low), abs(high)) * (1 + _OUTWARDS))


def pointwise_gap(cases: Sequence[IntervalUnion]) -> float:
    """The distance the pointwise rule must hide: the largest between a value of one case and a value of another.

    It needs no law of the secret, and holds against known rows; infinite if some case is unbounded.

    >>> from attrpriv.numerics.laws import parse_cases
    >>> pointwise_gap(parse_cases(["[0, 10)", "[10, 15]"])), pointwise_gap(parse_cases(["< 0", ">= 0"]))
    (15.0, inf)
    """
    return max(first.gap(second) for first, second in itertools.combinations(cases, 2))


def _outwards(ends: tuple[float, float], root: float) -> tuple[float, float]:
    """A range of sds of a column as one of its mean's, rounded outwards."""
    return ends[0] / root * (1 - _OUTWARDS), ends[1] / root * (1 + _OUTWARDS)


def _require(gaussian: Gaussian, query: str, secret: str, n: int, known_rows: float, weight: float) -> None:
    for column in (query, secret):
        if column not in gaussian.columns:
            raise UsageError(f"assume: {column} must have a standard deviation. Known are {', '.join(gaussian.columns)}.")
    if not (isinstance(n, int) and n >= 2):
        raise UsageError(f"n: must be a whole number of at least 2. Got {n}.")
    if not (math.isfinite(weight) and weight > 0):
        raise UsageError(f"weight: must be finite and positive. Got {weight}.")
    if not 0 <= known_rows < 1:
        raise UsageError(f"known_rows: must be at least 0 and below 1. Got {known_rows}.")
    if known_rows > 0:
        raise RefusedError(
            f"cases of {secret}: known rows move the law of its mean by any amount, so the law of a set-valued secret is not "
            "covered. Set known_rows to 0, or use bounded cases, which can be hidden point by point."
        )
    if secret not in gaussian.mean:
        raise RefusedError(
            f"cases of {secret}: the assumption must state its mean, which places the thresholds. Add it to assume: mean, "
            "or use bounded cases, which can be hidden point by point."
        )
