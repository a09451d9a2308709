"""A set-valued secret under a Gaussian assumption: where its standardised thresholds and its correlation can be.

    c = (threshold - mean) sqrt(n) / sd          rho = correlation of the sensitive column with the query column

| tolerance | what it does to c |
|---|---|
| mean t | moves c by up to t sqrt(n): a hundredth of an sd is a whole unit at n = 10000 |
| sd t | divides it by something between 1 - t and 1 + t |

The result is a box of members, not a list of them; `calibration.moving_variance` proves the noise for all of it. Noise grows
with |rho| (post-processing), and for half-lines it appears to grow with |c|; the second is nowhere relied upon, because a bound
over every cell of the box replaces it.

Known rows. Whoever knows k n rows holds another law of the mean: its variance is 1 - k of the stated one, and it is *centred at
what the known rows say*. That moves c by any amount, so no tolerance covers it, and multiplying variances by 1 - k (which is
right for pairs of values) is not enough. Refused here; bounded sets can still be hidden point by point (`pointwise_gap`).

What must never change: every member of Theta has its mean, sd and spread inside the box that is returned.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.worst_case import correlation_range
from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.laws.intervals import IntervalUnion, require_disjoint
from attrpriv.numerics.laws.law_box import Cell, MovingCases

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
