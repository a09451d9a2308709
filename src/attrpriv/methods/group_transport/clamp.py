"""The clamp and the noise that together err least on an average that hides how many rows are of some category.

    widest_reach    the largest h, for given noise s^2, with `clamped_group_delta_upper` <= delta
    best_clamp      s^2 and h of least   s^2 + E extra + E (|y| - h)_+^2   over the counts that are expected

| symbol | here |
|---|---|
| y | what a table's counts tell of its average, around the centre: `Moves.values` with their chances |
| extra | the noise that equalising adds to such a table: `Moves.extra`; nothing where noise is direct |

More noise allows a wider clamp, up to the noise at which nothing need be taken back: that is plain Gaussian noise, so the best
pair is never worse than it (in the same form). What must never change: a pair that is returned has itself been shown to keep
the promise. The law of y decides how well a release is expected to do, never what it promises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import Cause, RefusedError
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.divergences.groups import EQUALISED_ETA, Between, Form, clamped_group_delta_upper
from attrpriv.numerics.laws.groups import GroupCase
from attrpriv.numerics.search import least_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Tries for the clamp's reach: while the noise is still sought, and at the end; and how near log delta is near enough.
_ROUGHLY, _FINELY = 8, 24
_NEAR = 1e-4
_COARSE = 8
GOLDEN = 7
_HALVINGS = 20


@dataclass(frozen=True, eq=False)
class Moves:
    """What the counts tell, over the tables that are expected; values of several averages have one column each."""

    values: Array
    weights: Array
    extra: Array

    def squared(self, reach: float) -> float:
        """E (|y| - h)_+^2."""
        import numpy as np

        beyond = np.maximum(np.abs(self.values) - reach, 0.0) if math.isfinite(reach) else np.zeros_like(self.values)
        return float(np.sum(self.weights * beyond**2))

    @property
    def added(self) -> float:
        return float((self.weights * self.extra).sum())


@dataclass(frozen=True)
class GroupClamp:
    """A clamp and its noise, and the mean square of what they do to an answer."""

    form: Form
    reach: float
    noise_variance: float
    squared: float


def widest(excess: Callable[[float], float], top: float, tries: int) -> float | None:
    """The largest number up to `top` found with excess <= 0, of an increasing function; None where 0 has not.

    Every second try halves, the others follow the chord: the logarithm of a delta bends little.
    """
    small, large = 0.0, top
    below = excess(small)
    if below > 0:
        return None
    above = excess(large)
    if above <= 0:
        return large
    for k in range(tries):
        share = min(0.9, max(0.1, -below / (above - below))) if k % 2 else 0.5
        middle = small + share * (large - small)
        found = excess(middle)
        small, below, large, above = (middle, found, large, above) if found <= 0 else (small, below, middle, found)
        if below > -_NEAR:
            break
    return small


def widest_reach(
    case: GroupCase,
    noise_variance: float,
    epsilon: float,
    delta: float,
    form: Form,
    between: Between | None = None,
    tries: int = _FINELY,
) -> float | None:
    """The largest clamp that this noise can do with; infinite where nothing need be taken back, None where none is enough.

    >>> case = GroupCase(n=100, low=25, high=40, apart=15, members=((36.0, 11.0),), rest=((42.0, 12.0),))
    >>> round(widest_reach(case, 0.01, 1.0, 1e-6, "equalised"), 4)
    0.1397
    """

    def excess(reach: float) -> float:
        upper = clamped_group_delta_upper(case, reach, noise_variance, epsilon, form, between)
        return math.log(max(upper, 1e-300) / delta)

    return math.inf if excess(math.inf) <= 0 else widest(excess, case.told / 2, tries)


def best_clamp(
    case: GroupCase,
    epsilon: float,
    delta: float,
    form: Form,
    moves: Sequence[Moves],
    floor_variance: float = 0.0,
    between: Between | None = None,
) -> GroupClamp:
    """The pair of least mean square, with at least the noise `floor_variance`; of several laws of y the worst one counts."""
    gaussian_mu(epsilon, delta)  # validates both
    rounding = (1 + math.exp(epsilon)) * EQUALISED_ETA
    if form == "equalised" and not rounding < delta / 2:
        raise RefusedError(f"delta: equalising needs more than {2 * rounding:.3g}. Got {delta:g}.").because(
            Cause.BUDGET, "a larger delta"
        )
    least, most = _ends(case, epsilon, delta, form, floor_variance)

    def at(variance: float, tries: int = _ROUGHLY, chances: Between | None = None) -> GroupClamp:
        reach = widest_reach(case, variance, epsilon, delta, form, chances, tries)
        if reach is None:
            return GroupClamp(form, 0.0, variance, math.inf)
        taken = max(one.added * (form == "equalised") + one.squared(reach) for one in moves)
        return GroupClamp(form, reach, variance, variance + taken)

    # The noise is sought as if the largest distance were certain; what chances are worth goes into the reach.
    found = [at(variance) for variance in spaced(least, most)]
    best = min(range(len(found)), key=lambda k: found[k].squared)
    around = found[max(0, best - 1)].noise_variance, found[min(len(found) - 1, best + 1)].noise_variance
    refined = at(least_at(lambda v: at(v).squared, *around, GOLDEN))
    chosen = at(min(found[best], refined, key=lambda way: way.squared).noise_variance, _FINELY, between)
    if not math.isfinite(chosen.squared):
        raise RefusedError("the tolerance leaves nothing that a clamp could help with; use gaussian.").because(
            Cause.NUMBERS, "mechanism gaussian"
        )
    return chosen


def _ends(case: GroupCase, epsilon: float, delta: float, form: Form, floor: float) -> tuple[float, float]:
    """The least noise with which some clamp is private, and the noise that needs none."""

    def noise(reach: float) -> float:
        def private(variance: float) -> bool:
            return clamped_group_delta_upper(case, reach, variance, epsilon, form) <= delta

        if private(floor):
            return floor
        low, high = floor, max(floor, case.gap**2, case.most_variance)
        while not private(high):
            low, high = high, 4 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if private(middle) else (middle, high)
        return high

    most = noise(math.inf)
    return min(noise(0.0), most), most


def spaced(low: float, high: float) -> list[float]:
    """Numbers from one to the other, closer to each other near the lower end."""
    if not low < high:
        return [low]
    inner = [low + (high - low) * (k / _COARSE) ** 3 for k in range(_COARSE)]
    return [*dict.fromkeys(inner), high]
