"""Every pair of a family of laws on whole numbers, by brute force: how far apart are the two that differ most?

    delta:    max over ordered pairs |a - b| <= apart of  sum over o of max(0, P_a(o) - e^eps P_b(o))
    epsilon:  max over such pairs and over o of  log P_a(o)/P_b(o)

| symbol | here |
|---|---|
| P_a | `laws[a]`, with its bounds `error` and `lost` |
| apart | pairs further apart than this in the list are not looked at; None: all pairs |

No structure of the laws is used: this is what sharper arguments are checked against, and what certifies families that have
none.

What must never change: both results are at least the truth. Masses that are left out to save time, the distance of every law
from its floats (times 1 + e^eps for a pair) and the rounding of all sums are added. A loss in pure epsilon is only stated for
laws that are pointwise accurate everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import ULP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.lattice import LatticeLaw

    Matrix = NDArray[np.float64]

# Mass at the two ends of a law that is added to delta instead of being compared.
_CUT = 1e-22


@dataclass(frozen=True)
class WorstPair:
    """An upper bound over all pairs, and the ordered pair that needs it."""

    upper: float
    pair: tuple[int, int]


def all_pairs_delta(laws: Sequence[LatticeLaw], epsilon: float, *, apart: int | None = None) -> WorstPair:
    """The largest hockey-stick divergence of two laws of the list, both ways.

    >>> from attrpriv.numerics.laws import binomial_sum
    >>> round(all_pairs_delta([binomial_sum(a, 0.4, 4 - a, 0.6) for a in range(5)], 1.0).upper, 6)
    0.060012
    """
    import numpy as np

    reach = _require(laws, apart)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise UsageError(f"epsilon: must be finite and at least 0. Got {epsilon}.")
    matrix, distances = _matrix(laws), np.array([law.distance for law in laws])
    growth = math.exp(epsilon)
    shrunk = matrix * (growth * (1 - 8 * ULP * (1 + epsilon)))
    worst = WorstPair(0.0, (0, 1))
    for a in range(len(laws)):
        window, cut = _window(matrix[a])
        near = slice(max(0, a - reach), a + reach + 1)
        excess = matrix[a, window] - shrunk[near, window]
        np.maximum(excess, 0.0, out=excess)
        found = excess.sum(axis=1) * (1 + len(matrix[a]) * ULP) + growth * (1 + 4 * ULP) * distances[near]
        found[a - near.start] = -np.inf
        b = int(found.argmax())
        upper = min(1.0, (float(found[b]) + cut + float(distances[a])) * (1 + 4 * ULP))
        if not upper <= worst.upper:
            worst = WorstPair(upper, (a, near.start + b))
    return _finite(worst)


def all_pairs_loss(laws: Sequence[LatticeLaw], *, apart: int | None = None) -> WorstPair:
    """The largest log ratio of two laws of the list at any output; infinite where one can give an output and the other cannot.

    >>> from attrpriv.numerics.laws import binomial_sum
    >>> round(all_pairs_loss([binomial_sum(a, 0.4, 4 - a, 0.6) for a in range(5)]).upper, 6)
    1.62186
    """
    import numpy as np

    reach = _require(laws, apart)
    if not all(law.pointwise for law in laws):
        raise UsageError("laws: pure epsilon needs every mass of every law accurately. Compute them without a tail.")
    with np.errstate(divide="ignore"):
        logs = np.log(_matrix(laws))
    worst = WorstPair(0.0, (0, 1))
    for a in range(max(1, len(laws) - reach)):
        # Any two laws of such a run of the list are a pair.
        block = logs[a : a + reach + 1]
        top, bottom = block.max(axis=0), block.min(axis=0)
        ratio = np.where(np.isneginf(top), 0.0, top - np.where(np.isneginf(top), 0.0, bottom))
        o = int(ratio.argmax())
        if not float(ratio[o]) <= worst.upper:
            worst = WorstPair(float(ratio[o]), (a + int(block[:, o].argmax()), a + int(block[:, o].argmin())))
    error = max(law.error for law in laws)
    rounding = math.log1p(error) - math.log1p(-error) + 8 * ULP * (1 + float(np.abs(logs[np.isfinite(logs)]).max()))
    return _finite(WorstPair(worst.upper + rounding, worst.pair), infinite=True)


def _matrix(laws: Sequence[LatticeLaw]) -> Matrix:
    """One line for each law, on one common window."""
    import numpy as np

    start, end = min(law.start for law in laws), max(law.end for law in laws)
    matrix = np.zeros((len(laws), end - start + 1))
    for line, law in zip(matrix, laws, strict=True):
        line[law.start - start : law.end - start + 1] = law.masses
    return matrix


def _window(masses: Matrix) -> tuple[slice, float]:
    """Where the law has all but a negligible mass, and that mass, rounded up."""
    import numpy as np

    below, above = np.cumsum(masses), np.cumsum(masses[::-1])
    left, right = (int(np.searchsorted(side, _CUT, side="right")) for side in (below, above))
    cut = (float(below[left - 1]) if left else 0.0) + (float(above[right - 1]) if right else 0.0)
    return slice(left, len(masses) - right), cut * (1 + len(masses) * ULP)


def _require(laws: Sequence[LatticeLaw], apart: int | None) -> int:
    if len(laws) < 2:
        raise UsageError(f"laws: needs two or more. Got {len(laws)}.")
    if apart is not None and apart < 1:
        raise UsageError(f"apart: must be at least 1. Got {apart}.")
    return len(laws) - 1 if apart is None else min(apart, len(laws) - 1)


def _finite(worst: WorstPair, infinite: bool = False) -> WorstPair:
    if math.isnan(worst.upper) or (math.isinf(worst.upper) and not infinite):
        raise UsageError("laws: the comparison is out of reach of floats.")
    return worst
