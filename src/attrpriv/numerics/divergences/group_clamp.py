"""How alike the outputs of two tables look when what their counts tell of an average is taken back beyond a clamp.

    F' = F - y + clip(y, -h, +h) + noise,      y = sum over c of n_c m_c/n - centre,      n_c the table's own counts

| symbol | here |
|---|---|
| h | `reach`; infinite: nothing is taken back |
| told | d/n max |m_i - m_j|: how far y moves where d rows change their side; a clamp leaves at most min(2 h, told) of it |
| untold | the tolerance of means, which y does not know |
| amiss | min(d, K)/n max |m_i - m_j|: y moves with rows whose values are known, and nothing else does |

Given the categories of all rows F' is normal, and for two tables that differ in d rows

    distance of means   <=  G = min(2 h, told) + amiss + untold
    direct              smaller variance >= floor + s^2;            difference in [min(1, 2h/told) e0, e1], (e0, e1) the spread
    equalised           smaller variance >= (1-t)^2 vmax - known + s^2;   difference in [0, matched spread]

and the lemma of `divergences.groups` gives the largest H. Where d' = y d rows change, the distance is at most min(2 h, y told)
and y untold more, and the difference of variances lies in y [e0, e1]: for y >= 2h/told within the above, and below that
dominated by y = 2h/told, as without a clamp. Rows with known values make the difference of the others' variances as small as 0.

What must never change: y is made of *stated* means and the table's own counts and nothing else; a clamp that reads the query
column, or a centre that reads the table, is not covered.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.coupled import Between, coupled_upper
from attrpriv.numerics.divergences.groups import EQUALISED_ETA, Form, pair_upper
from attrpriv.numerics.laws.groups import GroupCase, downward, upward
from attrpriv.numerics.rounding import SUMMED_UP


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
