"""Least-trace Gaussian noise for several answers at once.

Two outputs N(m_a, S + Z) and N(m_b, S + Z) with d = m_a - m_b are (eps, delta)-close iff d'(S + Z)^-1 d <= mu*^2, that is iff

    Z >= d d'/mu*^2 - S        in the semidefinite order.

For one condition M the least-trace Z is the positive part (M)_+. For several, Z <- Z + (M_k - Z)_+ is sound, because each step
only adds, and a few sweeps from a good start come within a fraction of a percent of the semidefinite optimum. What must never
change: the result satisfies every condition up to rounding, and the certificate checks it again with the noise actually drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

_ORDERS = 4
# With many conditions every sweep is long: one order and a coarse polish.
_MANY = 12


def positive_part(matrix: Matrix) -> Matrix:
    """The least-trace semidefinite matrix that is at least this one.

    >>> import numpy as np
    >>> positive_part(np.diag([2.0, -1.0])).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    import numpy as np

    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    part: Matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return part


def least_trace(conditions: Sequence[Matrix]) -> Matrix:
    """A matrix that is semidefinite and at least every condition, of nearly least trace.

    One condition: exactly the least trace. Several: conditions are added in order of need, then the whole is polished by
    shrinking along directions that no condition uses.
    """
    import numpy as np

    if not conditions or any(not np.isfinite(m).all() for m in conditions):
        raise UsageError("conditions: must be finite matrices, at least one of them.")
    if len(conditions) == 1:
        return positive_part(conditions[0])
    best: Matrix | None = None
    for order in _orders(conditions):
        candidate = _polished(_swept([conditions[k] for k in order]), conditions)
        if best is None or np.trace(candidate) < np.trace(best):
            best = candidate
    assert best is not None
    return best


def _orders(conditions: Sequence[Matrix]) -> list[list[int]]:
    """The neediest first, the reverse, and rotations: the order matters a little."""
    import numpy as np

    needs = [float(np.linalg.eigvalsh(m)[-1]) for m in conditions]
    down = sorted(range(len(conditions)), key=lambda k: -needs[k])
    if len(down) > _MANY:
        return [down]
    turns = [down[k:] + down[:k] for k in range(min(len(down), _ORDERS))]
    return [*turns, down[::-1]]


def _swept(conditions: Sequence[Matrix]) -> Matrix:
    """Z <- Z + (M_k - Z)_+ over all conditions; after one sweep every one holds."""
    total: Matrix = positive_part(conditions[0])
    for condition in conditions[1:]:
        total = total + positive_part(condition - total)
    return total


def _polished(start: Matrix, conditions: Sequence[Matrix]) -> Matrix:
    """Shrink a feasible matrix towards less trace, and repair; keep the best feasible one.

    A step takes something off, everywhere or along one axis, then adds back what the conditions miss: what no condition needed
    is gone for good.
    """
    import numpy as np

    best = start
    step = 0.5
    while step > (1e-3 if len(conditions) <= _MANY else 0.1):
        before = np.trace(best)
        for direction in (best, *(np.outer(v, v) * max(value, 0.0) for value, v in _axes(best))):
            candidate = _swept([best - step * direction, *conditions])
            if np.trace(candidate) < np.trace(best):
                best = candidate
        if np.trace(best) >= before * (1 - 1e-5):  # also where nothing is needed at all
            step /= 2
    return best


def _axes(matrix: Matrix) -> list[tuple[float, Matrix]]:
    import numpy as np

    values, vectors = np.linalg.eigh(matrix)
    return [(float(value), vectors[:, k]) for k, value in enumerate(values)]


def shortfall(noise: Matrix, conditions: Sequence[Matrix]) -> float:
    """How far the noise misses the conditions: the largest eigenvalue of any M_k - Z; at most 0 when all hold."""
    import numpy as np

    return max(float(np.linalg.eigvalsh(condition - noise)[-1]) for condition in conditions)
