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
from fractions import Fraction
from typing import Literal

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.divergences.gaussian import hockey_stick
from attrpriv.numerics.laws.gaussian import GaussianLaw
from attrpriv.numerics.laws.groups import GroupCase, downward, upward
from attrpriv.numerics.rounding import SUMMED_UP

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
