"""The nearest law between two bounds where the likelihood ratio is monotone: one clip of a distribution function, in O(k).

    F_R = min(max(F_a, LB), UB),    LB = max(A, N - X - (B_end - B)),    UB = min(B + X, N - (A_end - A))

| symbol | here |
|---|---|
| N | the sum of `source`; all laws are whole numbers in units of 1/N |
| F_a | the distribution function of the source, a law mu_a |
| A, B | those of `low` = e^-e1 nu and `high` = e^e2 nu; A_end <= N <= B_end |
| X | `excess`: what the result may have above `high` in total, delta N; 0 for pure epsilon |
| R | the result: low <= R, and the sum of (R - high)_+ is at most X |

Why it is the projection. Let mu_a/nu increase. As a function of F_nu the distribution function F_a is then convex, at 0 where
F_nu is and at its end where F_nu is, and so are the lines e^-e1 F_nu and 1 - delta - e^e2 (1 - F_nu). F_a is below F_nu, so UB
never binds, and F_R is the largest of three convex functions: convex, with slopes from e^-e1 upwards, which is R >= e^-e1 nu.
H_e2(R || nu) is attained on a set {o > t}, because R/nu increases too, and there it is 1 - F_R - e^e2 (1 - F_nu) <= delta,
from the last line. Every law within the bounds has its distribution function between LB and UB, so that none is nearer in W1.
A decreasing ratio is the same from the other end.

Where the ratio is *not* monotone the clip breaks the bounds by far: mixtures, widened laws and columns of several values need
`coupling.nearest_law`. Of an event with nu = mu_(a0), a count a0, the ratio is monotone for every a: mu_a comes from nu by
replacing factors 1 - p + p t of its generating function by others with a larger p, or all by others with a smaller one, and
each of these is a step up or down in the likelihood ratio order, which sums of log-concave laws keep. Clipping both to a
window keeps it too.

What must never change: the result obeys the bounds exactly, whatever the source is. Where rounding (or a source that is not of
this kind) breaks them, `_within` walks back through the values and clips each step; the result is then within the bounds and
may not be the nearest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrpriv.errors import RefusedError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def projected_law(source: Sequence[int], low: Sequence[int], high: Sequence[int], excess: int = 0) -> tuple[int, ...]:
    """The law within the bounds that is nearest to the source in W1, where source/low is monotone.

    >>> projected_law([8, 1, 1], [2, 2, 2], [5, 5, 5])
    (5, 3, 2)
    >>> projected_law([8, 1, 1], [2, 2, 2], [5, 5, 5], excess=1)
    (6, 2, 2)
    """
    import numpy as np

    here, least, most = (np.array(row, dtype=object) for row in (source, low, high))
    path = clipped_path(here, least, most, excess)
    steps = np.diff(path, prepend=0)
    over = steps - most
    if (steps >= least).all() and sum(x for x in over[over > 0]) <= excess:
        return tuple(steps.tolist())
    return _within(path.tolist(), low, high, excess)


def clipped_path(source: NDArray[Any], low: NDArray[Any], high: NDArray[Any], excess: int) -> NDArray[Any]:
    """F_R by the formula alone, of rows of whole numbers. Its steps obey the bounds only where the ratio is monotone."""
    import numpy as np

    path, least, most = (np.add.accumulate(row) for row in (source, low, high))
    total = path[-1]
    if not (least[-1] <= total <= most[-1] + excess and excess >= 0):
        raise RefusedError("transport: no law lies within the bounds.")
    lowest = np.maximum(least, most + (total - excess - most[-1]))
    highest = np.minimum(most + excess if excess else most, least + (total - least[-1]))
    clipped: NDArray[Any] = np.minimum(np.maximum(path, lowest), highest)
    return clipped


def _within(path: Sequence[int], low: Sequence[int], high: Sequence[int], excess: int) -> tuple[int, ...]:
    """Steps within the bounds, close to those of the path, from its end backwards.

    Before each step it must be possible to get to 0: the path is at least what `low` adds up to so far, and at most what `high`
    does, together with the excess that is left.
    """
    at, left = path[-1], excess
    least, most = [0, *itertools.accumulate(low)], [0, *itertools.accumulate(high)]
    steps = []
    for k in range(len(low) - 1, -1, -1):
        wanted = path[k - 1] if k else 0
        before = min(max(wanted, at - high[k] - left, least[k]), at - low[k])
        left -= max(0, at - before - high[k])
        # Excess that was spent at this end is not there for the other one.
        before = min(before, max(most[k] + left, at - high[k]))
        steps.append(at - before)
        at = before
    return tuple(reversed(steps))
