"""How alike the outputs of two tables look whose counts of a category differ: averages that are normal within categories.

    direct       F + N(0, s^2): laws N(., L), N(., L + e) with L = floor + s^2 and e in the spread, means at most `gap` apart
    equalised    F + N(0, vmax - v + s^2), v the variance of the table's own categories: all laws have variance vmax + s^2

*Lemma.* H of two normal laws, in either direction, grows with the distance of their means; it shrinks if both variances grow by
the same amount; and for fixed distance and smaller variance it first falls and then rises as the larger variance grows. So over

    {distance <= G, smaller variance >= L, difference of variances in [e0, e1]}

its largest value is at distance G, smaller variance L and difference e0 or e1 (docs/theory/groups.md has the proof).

What must never change: both directions, both ends, every number rounded to its private side; with fewer than d rows changed the
pair is dominated by the one with d rows, which the spread's lower end relies on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.divergences.gaussian import hockey_stick
from attrpriv.numerics.laws.binomial import binomial_above
from attrpriv.numerics.laws.gaussian import GaussianLaw
from attrpriv.numerics.laws.groups import GroupCase, downward, upward
from attrpriv.numerics.rounding import COMPUTED_UP, SUMMED_UP

Form = Literal["direct", "equalised"]
# The noise that equalises is a rounded number: total variation of an output from the one that was meant, from above.
EQUALISED_ETA = 1e-14


def group_delta_upper(case: GroupCase, noise_variance: float, epsilon: float, form: Form = "direct") -> float:
    """An upper bound on H_epsilon over all pairs of counts, all categories of the rows and the whole box.

    >>> case = GroupCase(n=100, low=25, high=40, apart=15, members=((36.0, 11.0),), rest=((42.0, 12.0),))
    >>> round(group_delta_upper(case, 0.0, 1.0), 6), round(group_delta_upper(case, 0.0, 1.0, "equalised"), 6)
    (0.059461, 0.053877)
    """
    if not (math.isfinite(noise_variance) and noise_variance >= 0):
        raise UsageError(f"noise: the variance must be finite and at least 0. Got {noise_variance}.")
    if form == "direct":
        return pair_upper(case.gap, downward(Fraction(case.least_variance) + Fraction(noise_variance)), case.spread, epsilon)
    if form != "equalised":
        raise UsageError(f"form: must be direct or equalised. Got {form!r}.")
    require_equalisable(case)
    least = downward(Fraction(case.equal_variance) + Fraction(noise_variance))
    close = pair_upper(case.gap, least, (0.0, case.equal_spread), epsilon)
    return min(1.0, (close + (1 + math.exp(epsilon)) * EQUALISED_ETA) * SUMMED_UP)


def require_equalisable(case: GroupCase) -> None:
    """Equalising needs every variance exactly."""
    if case.sd_tolerance > 0:
        raise RefusedError(
            f"tolerance.sd: equalising needs the standard deviations exactly, 0. Got {case.sd_tolerance:g}. Use direct noise."
        ).because(Cause.NUMBERS, "tolerance.sd 0")


def pair_upper(gap: float, least: float, spread: tuple[float, float], epsilon: float) -> float:
    """The largest H over the lemma's set, from above."""
    if not least > 0:
        raise UsageError(f"variance: must be positive. Got {least}.")
    narrow = GaussianLaw(0.0, least)
    low, high = (Fraction(least) + Fraction(end) for end in spread)
    wide = {max(least, downward(low)), upward(high)}
    laws = [GaussianLaw(gap * SUMMED_UP, variance) for variance in wide]
    return max(max(hockey_stick(narrow, law, epsilon), hockey_stick(law, narrow, epsilon)) for law in laws)


# ----------------------------------------------------------------------------------------------------------------------------
# Two shares of a population: how far apart their tables are is left to chance, and so is how easily they are told apart.
#
# Tables of the shares p < q are drawn row by row, such that a row is inside under q whenever it is under p. Their counts then
# differ in D rows, D ~ Bin(n, q - p). If all tables whose counts differ by at most d are (eps, U(d))-close, U nondecreasing,
# then by joint convexity the two populations are (eps, E U(D))-close. For two other shares of the range D is smaller in law,
# and so is E U(D): the ends of the range are the worst.
#
#     E U(D)  =  U(d_1) + sum over k of (U(d_k) - U(d_k-1)) P(D > d_k-1),      d_1 < d_2 < .. up to the largest d of the case
#
# What must never change: U is made nondecreasing first; chances are rounded up; tables further apart, or outside of the range
# of counts, are charged in full elsewhere (`numerics.calibration.groups.population_tail`).


_STEPS = 10


@dataclass(frozen=True)
class Between:
    """In how many of n rows two coupled tables differ: Bin(n, width)."""

    n: int
    width: float

    def above(self, count: int) -> float:
        """P(D > count), from above."""
        return 1.0 if count < 0 else min(1.0, binomial_above(self.n, self.width, count) * COMPUTED_UP)

    def marks(self, apart: int) -> tuple[int, ...]:
        """Distances to look at, up to `apart`, where D is likely to be."""
        mean, sd = self.n * self.width, math.sqrt(self.n * self.width)
        start = max(1, min(apart, math.floor(mean - 2 * sd)))
        found = {start + round((apart - start) * k / _STEPS) for k in range(_STEPS + 1)}
        return tuple(sorted(found))


def coupled_upper(between: Between | None, uppers: Iterable[tuple[int, float]]) -> float:
    """E U(D) from (d, U(d)) in order of d; without a population the largest U."""
    total, last, before = 0.0, 0.0, -1
    for distance, upper in uppers:
        rise = max(0.0, upper - last)
        total += rise * (1.0 if between is None else between.above(before))
        last, before = max(last, upper), distance
    return min(1.0, total * COMPUTED_UP)


# ----------------------------------------------------------------------------------------------------------------------------
# How alike the outputs of two tables look when what their counts tell of an average is taken back beyond a clamp.
#
#     F' = F - y + clip(y, -h, +h) + noise,      y = sum over c of n_c m_c/n - centre,      n_c the table's own counts
#
# | symbol | here |
# |---|---|
# | h | `reach`; infinite: nothing is taken back |
# | told | d/n max |m_i - m_j|: how far y moves where d rows change their side; a clamp leaves at most min(2 h, told) of it |
# | untold | the tolerance of means, which y does not know |
# | amiss | min(d, K)/n max |m_i - m_j|: y moves with rows whose values are known, and nothing else does |
#
# Given the categories of all rows F' is normal, and for two tables that differ in d rows
#
#     distance of means   <=  G = min(2 h, told) + amiss + untold
#     direct              smaller variance >= floor + s^2;          difference in [min(1, 2h/told) e0, e1], (e0, e1) the spread
#     equalised           smaller variance >= (1-t)^2 vmax - known + s^2;   difference in [0, matched spread]
#
# and the lemma of `divergences.groups` gives the largest H. Where d' = y d rows change, the distance is at most min(2 h, y
# told) and y untold more, and the difference of variances lies in y [e0, e1]: for y >= 2h/told within the above, and below
# that dominated by y = 2h/told, as without a clamp. Rows with known values make the difference of the others' variances as
# small as 0.
#
# What must never change: y is made of *stated* means and the table's own counts and nothing else; a clamp that reads the
# query column, or a centre that reads the table, is not covered.


def clamped_group_delta_upper(
    case: GroupCase,
    reach: float,
    noise_variance: float,
    epsilon: float,
    form: Form,
    between: Between | None = None,
    beyond: float = 0.0,
) -> float:
    """An upper bound on H_epsilon over all pairs of counts, all categories of the rows and the whole box.

    `between`: the secret is a share of the population, and how far apart two tables are is left to chance. `beyond`: by which
    share the true differences of means exceed the stated ones, outside of the promise.

    >>> case = GroupCase(n=100, low=25, high=40, apart=15, members=((36.0, 11.0),), rest=((42.0, 12.0),))
    >>> [round(clamped_group_delta_upper(case, reach, 0.0, 1.0, "equalised"), 6) for reach in (0.0, 0.15, 0.45, math.inf)]
    [0.0, 4e-06, 0.053877, 0.053877]
    """
    if not reach >= 0:
        raise UsageError(f"reach: must be at least 0. Got {reach}.")
    if not (math.isfinite(noise_variance) and noise_variance >= 0):
        raise UsageError(f"noise: the variance must be finite and at least 0. Got {noise_variance}.")
    distances = (case.apart,) if between is None else between.marks(case.apart)
    cases = ((d, _within(case, d)) for d in distances)
    return coupled_upper(
        between, ((d, _upper(one, clamped_gap(one, reach, beyond), reach, noise_variance, epsilon, form)) for d, one in cases)
    )


@lru_cache(maxsize=256)
def _within(case: GroupCase, apart: int) -> GroupCase:
    return case if apart == case.apart else replace(case, apart=apart)


def _upper(case: GroupCase, gap: float, reach: float, noise_variance: float, epsilon: float, form: Form) -> float:
    if form == "direct":
        least = downward(Fraction(case.least_variance) + Fraction(noise_variance))
        return pair_upper(gap, least, _spread(case, reach), epsilon)
    if form != "equalised":
        raise UsageError(f"form: must be direct or equalised. Got {form!r}.")
    least = downward(Fraction(case.matched_variance) + Fraction(noise_variance))
    close = pair_upper(gap, least, (0.0, case.matched_spread), epsilon)
    # The variance that is drawn is a rounded number.
    return min(1.0, (close + (1 + math.exp(epsilon)) * EQUALISED_ETA) * SUMMED_UP)


def clamped_gap(case: GroupCase, reach: float, beyond: float = 0.0) -> float:
    """How far apart two means of the output can be, from above."""
    off = Fraction(beyond) * Fraction(case.told)
    if math.isinf(reach):
        return upward(Fraction(case.gap) + off)
    left = min(2 * Fraction(reach), Fraction(case.told))
    return upward(left + Fraction(case.taken_amiss) + Fraction(case.untold) + off)


def _spread(case: GroupCase, reach: float) -> tuple[float, float]:
    low, high = case.spread
    if math.isinf(reach):
        return low, high
    if case.known or not case.told:
        return 0.0, high
    return downward(Fraction(low) * min(Fraction(1), 2 * Fraction(reach) / Fraction(case.told))), high
