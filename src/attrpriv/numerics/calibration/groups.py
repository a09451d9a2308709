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

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.calibration.least_trace import least_trace, positive_part
from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper
from attrpriv.numerics.divergences.group_vector_clamp import whitened
from attrpriv.numerics.divergences.groups import EQUALISED_ETA, Form, group_delta_upper, require_equalisable
from attrpriv.numerics.laws.binomial import binomial_above, binomial_below
from attrpriv.numerics.laws.groups import GroupCase, Rows, VectorCase, upward
from attrpriv.numerics.rounding import COMPUTED_UP, ROUNDED_UP, SOLVED_UP
from attrpriv.numerics.search import largest_private

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]


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


# ----------------------------------------------------------------------------------------------------------------------------
# Noise for several averages that hides how many rows are of some category: equalise the covariances, then hide the shift.
#
#     S_in, S_out      matrices that dominate every S_c inside and outside (the only one, or of least trace)
#     V_a            = (a S_in + (n - a) S_out)/n^2,     X = V_high - V_low = X+ - X-
#     Vmax           = V_low + X+
#
# *Lemma.* Vmax dominates the covariance V of every table with a count in [low, high]: with a = low + x (high - low), 0 <= x
# <= 1,
#
#     Vmax - V = (1 - x) X+ + x X- + sum over c of n_c (S_in or S_out - S_c)/n^2,
#
# a sum of semidefinite matrices. Each is a *public* matrix times a *secret* number between 0 and 1, and so is the noise: a
# public factor applied to normal numbers whose variance is secret. (A secret factor would put the output on a lattice that
# names it.) Then all outputs have covariance Vmax + Z: (eps, delta)-close iff d'(Vmax + Z)^-1 d <= mu*^2 for all corners d of
# the shift.
#
# What must never change: `vector_delta_upper` does not trust the lemma. It adds up what the parts make of every extreme
# table, and charges the difference from Vmax: with ||W (V + noise - Vmax) W||_F <= e <= 1/2, W = (Vmax + Z)^-1/2, the total
# variation is at most e/2.


_STEPS = 60


@dataclass(frozen=True)
class Part:
    """A public factor; the numbers it is applied to have the secret variance `weight_of`.

    `low` has its full weight where the count is low, `high` where it is high, a category in proportion to its rows.
    """

    role: Literal["low", "high", "member", "rest"]
    index: int
    factor: Rows


@dataclass(frozen=True)
class Equalised:
    """The covariance that every table is brought to, and the parts of the noise that does it."""

    target: Rows
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class VectorNoise:
    """Further noise, the same for every table: standard deviations of each average's own, and a factor common to them."""

    independent: tuple[float, ...]
    factor: Rows
    upper: float


def equalise(case: VectorCase) -> Equalised:
    """Vmax and the parts of Vmax - V."""
    import numpy as np

    inside, outside = _dominating(case.members), _dominating(case.rest)
    unit = np.sqrt(np.diag(inside) + np.diag(outside)) / math.sqrt(case.n)
    step = (case.high - case.low) * (inside - outside) / case.n**2
    up, down = positive_part(step / np.outer(unit, unit)), positive_part(-step / np.outer(unit, unit))
    target = (case.low * inside + (case.n - case.low) * outside) / case.n**2 + up * np.outer(unit, unit)
    parts = [Part("low", 0, _factor(up, unit)), Part("high", 0, _factor(down, unit))]
    for role, top, laws in (("member", inside, case.members), ("rest", outside, case.rest)):
        for index, law in enumerate(laws):
            lacking = (top - np.array(law[1])) / case.n / np.outer(unit, unit)
            parts.append(Part("member" if role == "member" else "rest", index, _factor(positive_part(lacking), unit)))
    return Equalised(_rows((target + target.T) / 2), tuple(part for part in parts if part.factor[0]))


def part_weights(case: VectorCase, parts: Sequence[Part], members: Sequence[int], rest: Sequence[int]) -> tuple[float, ...]:
    """The variance of each part's numbers, for a table with these numbers of rows in each category. Secret.

    A table outside the range, about which nothing is promised, gets noise too: a failure would announce it.
    """
    if len(members) != len(case.members) or len(rest) != len(case.rest) or sum(members) + sum(rest) != case.n:
        raise UsageError("counts: must be one for each category, and add up to the number of rows.")
    x = min(1.0, max(0.0, (sum(members) - case.low) / (case.high - case.low)))
    weights = {"low": lambda k: 1 - x, "high": lambda k: x, "member": lambda k: members[k] / case.n}
    return tuple(weights[part.role](part.index) if part.role != "rest" else rest[part.index] / case.n for part in parts)


def equalising_covariance(case: VectorCase, equalised: Equalised, members: Sequence[int], rest: Sequence[int]) -> Matrix:
    """The covariance of the noise that a table gets before the noise that all tables get. Secret."""
    import numpy as np

    weights = part_weights(case, equalised.parts, members, rest)
    total = np.zeros((case.size, case.size))
    for weight, part in zip(weights, equalised.parts, strict=True):
        factor = np.array(part.factor)
        total = total + weight * (factor @ factor.T)
    return total


def equalising_error(case: VectorCase, equalised: Equalised, whiten: Matrix) -> float:
    """How far any table is from the target, in Frobenius norm and whitened: the largest over the extreme tables.

    Covariances and weights are affine in the counts, and a norm is convex, so no other table is further.
    """
    import numpy as np

    furthest = 0.0
    for a, i, j in itertools.product((case.low, case.high), range(len(case.members)), range(len(case.rest))):
        members = [a if k == i else 0 for k in range(len(case.members))]
        rest = [case.n - a if k == j else 0 for k in range(len(case.rest))]
        made = case.own(members, rest) + equalising_covariance(case, equalised, members, rest)
        furthest = max(furthest, float(np.linalg.norm(whiten @ (made - np.array(equalised.target)) @ whiten.T)))
    return furthest


def vector_delta_upper(
    case: VectorCase, equalised: Equalised, independent: Sequence[float], factor: Rows, epsilon: float
) -> float:
    """An upper bound on H_epsilon over all pairs of counts, all categories of the rows and the whole box."""
    import numpy as np

    total = np.array(equalised.target) + np.diag(np.array(independent, dtype=np.float64) ** 2)
    if factor:
        total = total + np.array(factor) @ np.array(factor).T
    whiten, rounding = _whitened(total)
    # Rounding of the sums here, and of the numbers that are drawn later.
    error = equalising_error(case, equalised, whiten) + rounding
    if not error <= 0.5:
        return 1.0
    apart = max(float(np.linalg.norm(whiten @ np.array(shift))) for shift in case.shifts()) * (1 + 1e-10 + rounding)
    return min(1.0, (gaussian_delta_upper(epsilon, apart) + (1 + math.exp(epsilon)) * error / 2) * COMPUTED_UP)


def _whitened(total: Matrix) -> tuple[Matrix, float]:
    """W with W total W' = 1, and how far rounding may have moved anything that it is applied to, relatively."""
    found = whitened(total)
    if found is None:
        raise RefusedError("columns: the averages determine each other, or one has no spread. Leave one of them out.").because(
            Cause.TOGETHER, "fewer averages"
        )
    return found


def least_group_covariance(case: VectorCase, epsilon: float, delta: float, floors: Sequence[float]) -> VectorNoise:
    """Noise of nearly least trace, in units of each average's sd, on top of at least `floors` (sds) for each average."""
    import numpy as np

    if len(floors) != case.size or not all(math.isfinite(floor) and floor >= 0 for floor in floors):
        raise UsageError(f"floors: must be {case.size} standard deviations, finite and at least 0. Got {list(floors)}.")
    equalised = equalise(case)
    mu = gaussian_mu(epsilon, delta)
    target = np.array(equalised.target)
    unit = np.sqrt(np.diag(target))
    independent = tuple(float(floor) for floor in floors)
    given = (target + np.diag(np.array(independent) ** 2)) / np.outer(unit, unit)
    conditions = [np.outer(shift, shift) / mu**2 - given for shift in (np.array(s) / unit for s in case.shifts())]
    noise = least_trace(conditions)
    slack = 1e-9
    for _ in range(_STEPS):
        # A little more in every direction, until the check at the end agrees.
        factor = _factor(noise * (1 + slack) + slack * np.eye(case.size) * max(float(np.trace(noise)), slack), unit)
        upper = vector_delta_upper(case, equalised, independent, factor, epsilon)
        if upper <= delta:
            return VectorNoise(independent, factor if factor[0] else (), upper)
        slack *= 2
    raise RefusedError(
        "columns: no noise was found that hides the count behind these averages together. Ask for fewer at once."
    ).because(Cause.TOGETHER, "fewer averages")


def _dominating(laws: Sequence[tuple[tuple[float, ...], Rows]]) -> Matrix:
    """A matrix that is at least each covariance: the only one, or one of nearly least trace in units of the largest sds."""
    import numpy as np

    matrices = [np.array(law[1], dtype=np.float64) for law in laws]
    if len(matrices) == 1:
        return matrices[0]
    unit = np.sqrt(np.max([np.diag(matrix) for matrix in matrices], axis=0))
    scale = np.outer(unit, unit)
    joined: Matrix = least_trace([matrix / scale for matrix in matrices]) * SOLVED_UP * scale
    return (joined + joined.T) / 2


def _factor(matrix: Matrix, unit: Matrix) -> Rows:
    """B with B B' = matrix in the units given, without directions that are nothing but rounding."""
    import numpy as np

    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = values > 1e-15 * max(1.0, float(values[-1]))
    return _rows(vectors[:, kept] * np.sqrt(values[kept]) * unit[:, None])


def _rows(matrix: Matrix) -> Rows:
    return tuple(tuple(float(x) for x in row) for row in matrix)
