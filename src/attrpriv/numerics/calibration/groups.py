"""The least noise on an average that hides how many rows are of some category.

    least_group_noise    the smallest s^2, from above, with `group_delta_upper` <= delta; more noise is post-processing
    equalising_variance  what the owner adds to a table of known categories: vmax - v + s^2; a secret number
    population_range     counts and distances that tables of a population surely have, up to a tail that is added to delta

For a population's share in [p, q] couple the tables row by row: a row is of the category under q whenever it is under p. Then
the counts N <= M differ in Bin(n, q - p) rows, and by joint convexity

    H <= delta + P(Bin(n, q - p) > apart) + P(Bin(n, p) < low) + P(Bin(n, q) > high).

What must never change: the number returned has itself been shown to keep the promise. `equalising_variance` is never reported;
what may be reported is that no table gets more than `most_equalising`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.divergences.groups import EQUALISED_ETA, Form, group_delta_upper, require_equalisable
from attrpriv.numerics.laws.binomial import binomial_above, binomial_below
from attrpriv.numerics.laws.groups import GroupCase, upward
from attrpriv.numerics.rounding import ROUNDED_UP
from attrpriv.numerics.search import largest_private

__all__ = [
    "Form",
    "GroupCase",
    "PopulationRange",
    "equalised_target",
    "equalising_variance",
    "group_delta_upper",
    "least_group_noise",
    "most_equalising",
    "population_range",
    "population_tail",
]


def least_group_noise(
    case: GroupCase, epsilon: float, delta: float, form: Form = "direct", floor_variance: float = 0.0
) -> float:
    """The smallest noise variance s^2, at least `floor_variance`, that keeps (epsilon, delta).

    >>> case = GroupCase(n=100, low=25, high=40, apart=15, members=((36.0, 11.0),), rest=((42.0, 12.0),))
    >>> [round(least_group_noise(case, 1.0, 1e-6, form), 4) for form in ("direct", "equalised")]
    [13.7014, 13.0743]
    """
    gaussian_mu(epsilon, delta)  # validates both
    rounding = (1 + math.exp(epsilon)) * EQUALISED_ETA
    if form == "equalised" and not rounding < delta / 2:
        raise RefusedError(f"delta: equalising needs more than {2 * rounding:.3g}. Got {delta:g}.").because(
            Cause.BUDGET, "a larger delta"
        )
    if group_delta_upper(case, floor_variance, epsilon, form) <= delta:
        return floor_variance

    def is_private(precision: float) -> bool:
        return group_delta_upper(case, max(floor_variance, 1 / precision), epsilon, form) <= delta

    return max(floor_variance, 1 / largest_private(is_private, start=1 / max(case.gap**2, case.most_variance)))


def equalised_target(case: GroupCase) -> float:
    """vmax, the variance that equalising brings every table to, before s^2. Public.

    >>> equalised_target(GroupCase(n=10, low=2, high=5, apart=3, members=((0.0, 1.0),), rest=((1.0, 2.0),)))
    0.34
    """
    require_equalisable(case)
    return case.most_variance


def most_equalising(case: GroupCase) -> float:
    """The largest noise that equalising adds to any table, beyond s^2. Public: what an expected error may rest on."""
    require_equalisable(case)
    least = [min(Fraction(sd) for _, sd in categories) ** 2 for categories in (case.members, case.rest)]
    total = min(a * least[0] + (case.n - a) * least[1] for a in (case.low, case.high))
    return upward(Fraction(case.most_variance) - total / case.n**2)


def equalising_variance(case: GroupCase, members: Sequence[int], rest: Sequence[int], noise_variance: float) -> float:
    """The noise variance for a table with these numbers of rows in each category. Secret: it tells the counts apart.

    A table outside the range, about which nothing is promised, gets noise too: a failure would announce it.
    """
    require_equalisable(case)
    if len(members) != len(case.members) or len(rest) != len(case.rest) or sum(members) + sum(rest) != case.n:
        raise UsageError("counts: must be one for each category, and add up to the number of rows.")
    rows = zip((*members, *rest), (*case.members, *case.rest), strict=True)
    own = sum((count * Fraction(sd) ** 2 for count, (_, sd) in rows), Fraction(0)) / case.n**2
    return float(max(Fraction(0), Fraction(case.most_variance) - own) + Fraction(noise_variance))


# ------------------------------------------------------------------------------------------------------------ population


@dataclass(frozen=True)
class PopulationRange:
    """Tables of the population have counts in [low, high] and, coupled, differ in at most `apart` rows, but for `tail`."""

    low: int
    high: int
    apart: int
    tail: float


def population_range(n: int, low_share: float, high_share: float, budget: float) -> PopulationRange:
    """The narrowest range whose tail is within the budget: half of it for the distance, which costs most.

    >>> population_range(1000, 0.25, 0.40, 1e-7)
    PopulationRange(low=178, high=485, apart=213, tail=...)
    """
    if not 0 <= low_share < high_share <= 1:
        raise UsageError(f"shares: must be in order between 0 and 1. Got [{low_share}, {high_share}].")
    if not 0 < budget < 1:
        raise UsageError(f"budget: must be above 0 and below 1. Got {budget}.")
    width = _width(low_share, high_share)
    low = _largest(n, lambda k: binomial_below(n, low_share, k) <= budget / 4)
    high = n - _largest(n, lambda k: binomial_above(n, high_share, n - k) <= budget / 4)
    apart = n - _largest(n, lambda k: binomial_above(n, width, n - k) <= budget / 2)
    if low == high:  # few rows and a large budget: a pair needs two counts
        low, high = (low, high + 1) if high < n else (low - 1, high)
    apart = max(1, min(apart, high - low))
    tail = population_tail(n, low_share, high_share, low, high, apart)
    if not tail <= budget:
        raise RefusedError(f"delta: no range of counts has a tail of at most {budget:g}.").because(
            Cause.BUDGET, "a larger delta"
        )
    return PopulationRange(low, high, apart, tail)


def population_tail(n: int, low_share: float, high_share: float, low: int, high: int, apart: int) -> float:
    """What a share of the population adds to delta where only counts in [low, high], at most `apart` apart, are hidden.

    Counts in the range are at most high - low apart, so that distance needs no tail of its own.
    """
    outside = [binomial_below(n, low_share, low), binomial_above(n, high_share, high)]
    if apart < high - low:
        outside.append(binomial_above(n, _width(low_share, high_share), apart))
    return min(1.0, math.fsum(outside) * ROUNDED_UP)


def _width(low_share: float, high_share: float) -> float:
    return min(1.0, upward(Fraction(high_share) - Fraction(low_share)))


def _largest(n: int, holds: Callable[[int], bool]) -> int:
    """The largest k from 0 to n for which a condition holds that holds at 0 and, once it fails, fails from there on."""
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
