"""Public records against an even spread within the intervals of a sorted column: how far they are from it.

`furthest_from_even` is a lower bound that holds for all intervals at once, so that it may refuse intervals; `leaning` is an
estimate by which a search prefers some to others. What must never change: everything is computed from public records, and
neither says that an assumption holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_FEWEST = 50
# Two standard errors of `leaning`, times the root of a number of records: 2 sqrt(2)/16.
_TWO_ERRORS = 0.18


def furthest_from_even(values: Array, ends: Sequence[float], whole: bool, level: float) -> tuple[float, float] | None:
    """Where the interval begins in which records are furthest from spread evenly, and how far at least; None: nowhere surely.

    By Massart's inequality, for all intervals at once. Whole numbers that are equally frequent count as even.

    >>> import numpy as np
    >>> furthest_from_even(np.linspace(0, 1, 101) ** 2, (0.0, 1.0), False, 0.01)
    (0.0, 0.09...)
    """
    import numpy as np

    ordered = np.sort(values)
    worst: tuple[float, float] | None = None
    for low, high in itertools.pairwise(ends):
        inside = ordered[(ordered >= low) & ((ordered < high) | (high == ends[-1]))]
        if inside.size < _FEWEST:
            continue
        even, places = (inside - low) / (high - low), np.arange(inside.size + 1) / inside.size
        distance = float(max(np.max(places[1:] - even), np.max(even - places[:-1]))) - (1 / (high - low) if whole else 0.0)
        sure = distance - math.sqrt(math.log(2 * (len(ends) - 1) / level) / (2 * inside.size))
        if sure > (0.0 if worst is None else worst[1]):
            worst = low, sure
    return worst


def leaning(values: Array, ends: Sequence[float], fewest: int = _FEWEST) -> float:
    """About how far records lean to one side within an interval, at most: by their number in the intervals on both sides.

    A density that changes evenly by a factor 1 + x from one end to the other is about x/8 from even. The neighbours show it
    with less uncertainty than the records of the interval itself; no bound. Intervals with fewer records are left out.

    >>> import numpy as np
    >>> round(leaning(np.sqrt(np.linspace(0, 9, 90_001)), (0.0, 1.0, 2.0, 3.0)), 2)  # the density is 2x: x is 2/3 from 1 to 2
    0.08
    """
    import numpy as np

    edges = np.asarray(ends, dtype=np.float64)
    counts = np.diff(np.searchsorted(np.sort(values), edges))
    if counts.size < 3:
        return 0.0
    widths = np.diff(edges)
    density, inner, own = counts / widths, counts[1:-1], widths[1:-1]
    steps = np.abs(density[2:] - density[:-2]) / (own + (widths[2:] + widths[:-2]) / 2) * own
    with np.errstate(divide="ignore", invalid="ignore"):
        found = steps / density[1:-1] / 8 - _TWO_ERRORS / np.sqrt(inner)
    return float(np.max(found, where=inner >= fewest, initial=0.0))
