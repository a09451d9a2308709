"""Divergences of two laws on whole numbers, from above, with the error bounds of both.

    H_eps(P || Q)   = sum over k of max(0, P(k) - e^eps Q(k))
    D_inf(P || Q)   = max over k of log P(k)/Q(k)
    D_inf^eta       = least lambda >= 0 with H_lambda <= eta

| symbol | here |
|---|---|
| P(k), Q(k) | known up to a factor 1 +- `error`, or not at all pointwise (`error` infinite) |
| lost | what a law's floats miss on any set; of P it is added, of Q it is added e^eps times unless Q is known pointwise |

Where Q is known pointwise in its window, Q(k) >= masses[k] (1 - error) there and Q(k) >= 0 elsewhere: what it loses only helps.

What must never change: every value is at least the truth. A claim of pure epsilon needs P pointwise over its whole support.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.lattice_law import LatticeLaw

    Array = NDArray[np.float64]

# e^epsilon stays a float; H at a larger epsilon is no larger.
_LARGEST_EPSILON = 700.0


def lattice_delta_upper(p: LatticeLaw, q: LatticeLaw, epsilon: float) -> float:
    """An upper bound on H_epsilon(p || q).

    `p` and `q` are laws on whole numbers, `epsilon` the promise.

    >>> from attrpriv.numerics.laws import binomial_sum
    >>> round(lattice_delta_upper(binomial_sum(4, 0.4, 0, 0.4), binomial_sum(4, 0.6, 0, 0.6), 1.0), 6)
    0.060012
    """
    import numpy as np

    if not epsilon >= 0:
        raise UsageError(f"epsilon: must be at least 0. Got {epsilon}.")
    factor = math.exp(min(epsilon, _LARGEST_EPSILON)) * (1 - 8 * UNIT)
    other = _on_window(p, q)
    least = other * ((1 - q.error) * (1 - 4 * UNIT)) if math.isfinite(q.error) else other
    most = p.masses * ((1 + p.error) * (1 + 4 * UNIT)) if math.isfinite(p.error) else p.masses
    excess = most - factor * least * (1 - 4 * UNIT)
    total = math.fsum(excess[excess > 0]) * (1 + 4 * UNIT)
    lost = p.lost + (0.0 if math.isfinite(q.error) else factor * (1 + 32 * UNIT) * q.lost)
    # A difference is rounded relative to itself: one more unit for each.
    return min(1.0, (total + lost) * (1 + 8 * UNIT) + (math.ulp(0.0) if np.any(excess > 0) or lost > 0 else 0.0))


def lattice_max_divergence(p: LatticeLaw, q: LatticeLaw) -> float:
    """An upper bound on the largest log p/q: infinite where q has no mass, or where the laws are not known pointwise.

    `p` and `q` are laws on whole numbers.

    >>> from attrpriv.numerics.laws import binomial_sum
    >>> round(lattice_max_divergence(binomial_sum(4, 0.4, 0, 0.4), binomial_sum(4, 0.6, 0, 0.6)), 6)
    1.62186
    """
    import numpy as np

    if not (p.pointwise and math.isfinite(q.error)):
        return math.inf
    there = p.masses > 0
    other = _on_window(p, q)[there]
    if not bool((other > 0).all()):
        return math.inf
    largest = float(np.max(np.log(p.masses[there]) - np.log(other)))
    slack = math.log1p(p.error) - math.log1p(-q.error)
    # Two logarithms of at most 750 and their difference.
    return max(0.0, largest + slack * (1 + 8 * UNIT) + 4000 * UNIT)


def lattice_approximate_max_divergence(p: LatticeLaw, q: LatticeLaw, eta: float) -> float:
    """The least lambda found with H_lambda(p || q) <= eta; infinite where there is none.

    `p` and `q` are laws on whole numbers, `eta` the mass that may be ignored.

    >>> from attrpriv.numerics.laws import binomial_sum
    >>> p, q = binomial_sum(4, 0.4, 0, 0.4), binomial_sum(4, 0.6, 0, 0.6)
    >>> round(lattice_approximate_max_divergence(p, q, 0.01), 6), lattice_delta_upper(p, q, 1.541561) <= 0.01
    (1.54156, True)
    """
    if not 0 <= eta < 1:
        raise UsageError(f"eta: must be at least 0 and below 1. Got {eta}.")
    if lattice_delta_upper(p, q, 0.0) <= eta:
        return 0.0
    pure = lattice_max_divergence(p, q)
    high = min(pure, _LARGEST_EPSILON)
    if eta == 0 or lattice_delta_upper(p, q, high) > eta:
        return pure
    low = 0.0
    while low < (middle := (low + high) / 2) < high and high - low > 1e-13 * high:
        low, high = (low, middle) if lattice_delta_upper(p, q, middle) <= eta else (middle, high)
    return high


def _on_window(p: LatticeLaw, q: LatticeLaw) -> Array:
    """The masses of q on the window of p, 0 where q has none."""
    import numpy as np

    masses = np.zeros(len(p.masses))
    first, last = max(p.start, q.start), min(p.end, q.end)
    if first <= last:
        masses[first - p.start : last - p.start + 1] = q.masses[first - q.start : last - q.start + 1]
    return masses
