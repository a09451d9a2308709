"""Least-trace Gaussian noise for several answers at once.

Two outputs N(m_a, S + Z) and N(m_b, S + Z) with d = m_a - m_b are (eps, delta)-close iff d'(S + Z)^-1 d <= mu*^2, that is iff

    Z >= d d'/mu*^2 - S        in the semidefinite order.

For one condition M the least-trace Z is the positive part (M)_+. For several, Newton's method on

    t tr Z - log det Z - sum over k of log det(Z - M_k),       t = t_0, 50 t_0, 2500 t_0, ...

stays strictly inside all conditions, and ends within a millionth of the semidefinite optimum (the duality gap of the barrier
is its degree over t). Of many conditions few matter: they are found by solving for some, and adding those that the solution
misses most, until it misses none by more than a millionth; what is missed by less is added. Where even that is too much,
Z <- Z + (M_k - Z)_+ is sound, because each step only adds, and a few sweeps from a good start come within a fraction of a
percent. What must never change: the result satisfies every condition up to rounding, and the certificate checks it again with
the noise actually drawn.
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
# Newton's method: products in one step, the share of the trace that may be too much, and steps in all.
_NEWTON_WORK = 2e7
_GAP = 1e-6
_NEWTON_STEPS = 200
# Conditions that are added at a time, how often, and the least number that is worth a try.
_MISSED, _ROUNDS, _LEAST_FEW = 8, 24, 16


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

    One condition: exactly the least trace. Several: by Newton's method, or, where they are many, conditions are added in order
    of need, then the whole is polished by shrinking along directions that no condition uses.
    """
    import numpy as np

    if not conditions or any(not np.isfinite(m).all() for m in conditions):
        raise UsageError("conditions: must be finite matrices, at least one of them.")
    if len(conditions) == 1:
        return positive_part(conditions[0])
    inside = _inside(np.array(conditions, dtype=np.float64))
    if inside is not None:
        return inside
    best: Matrix | None = None
    for order in _orders(conditions):
        candidate = _polished(_swept([conditions[k] for k in order]), conditions)
        if best is None or np.trace(candidate) < np.trace(best):
            best = candidate
    assert best is not None
    return best


def _inside(conditions: Matrix) -> Matrix | None:
    """By Newton's method on the barrier; None where that is too much work, or does not get there."""
    import numpy as np

    count, size, _ = conditions.shape
    scale = float(np.linalg.eigvalsh(conditions)[:, -1].max())
    if scale <= 0:
        return np.zeros((size, size))
    most = int(_NEWTON_WORK / float(size) ** 6)
    if count > most:
        return _by_few(conditions, most, scale) if most >= _LEAST_FEW else None
    bounds = np.concatenate([conditions / scale, np.zeros((1, size, size))])
    try:
        found = _newton(bounds)
    except np.linalg.LinAlgError:
        return None
    return None if found is None or shortfall(found, list(bounds)) > 0 else found * scale


def _by_few(conditions: Matrix, most: int, scale: float) -> Matrix | None:
    """By the conditions that matter, at most so many; None where they are more, or Newton's method fails."""
    import numpy as np

    chosen = [int(k) for k in np.argsort(-np.linalg.eigvalsh(conditions)[:, -1], kind="stable")[:_MISSED]]
    for _ in range(_ROUNDS):
        found = _inside(conditions[chosen])
        if found is None:
            return None
        missed = np.linalg.eigvalsh(conditions - found)[:, -1]
        worst = [int(k) for k in np.argsort(-missed, kind="stable")[:_MISSED] if missed[k] > _GAP * scale]
        if not worst:
            return _swept([found, *conditions[missed > 0]])
        chosen = sorted({*chosen, *worst})
        if len(chosen) > most:
            return None
    return None


def _newton(bounds: Matrix) -> Matrix | None:
    """From a multiple of the identity that is above all bounds, whose largest eigenvalue is 1."""
    import numpy as np

    count, size, _ = bounds.shape
    axes = _symmetric_axes(size)
    at = 1.5 * np.eye(size)
    degree = count * size
    t = degree / float(np.trace(at))
    for _ in range(_NEWTON_STEPS):
        inverse = np.linalg.inv(at - bounds)
        turned = inverse[:, None] @ axes
        slope = t * np.trace(axes, axis1=1, axis2=2) - np.trace(turned, axis1=2, axis2=3).sum(axis=0)
        flat, across = (one.reshape(count, len(axes), -1) for one in (turned, turned.swapaxes(2, 3)))
        curved = (flat @ across.swapaxes(1, 2)).sum(axis=0)
        step = -np.linalg.solve(curved, slope)
        fall = float(-slope @ step)
        at = _damped(at, np.tensordot(step, axes, 1), bounds, 1.0 if fall < 1 / 16 else 1 / (1 + fall**0.5))
        if fall < 1 / 16:
            if degree / t < _GAP * float(np.trace(at)):
                return at
            t *= 50
    return None


def _damped(at: Matrix, step: Matrix, bounds: Matrix, share: float) -> Matrix:
    """A share of the step that stays strictly above all bounds."""
    import numpy as np

    while float(np.linalg.eigvalsh(at + share * step - bounds)[:, 0].min()) <= 0:
        share /= 2
        if share < 1e-12:
            raise np.linalg.LinAlgError
    moved: Matrix = at + share * step
    return moved


def _symmetric_axes(size: int) -> Matrix:
    """A basis of the symmetric matrices."""
    import numpy as np

    places = [(i, j) for i in range(size) for j in range(i, size)]
    axes = np.zeros((len(places), size, size))
    for k, (i, j) in enumerate(places):
        axes[k, i, j] = axes[k, j, i] = 1.0
    return axes


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
