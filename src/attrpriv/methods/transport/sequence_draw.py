"""Transported averages of a sequence in use: one release's answers, and how far they will be from the table's own.

    out_k = F_k - x_k + y_k + noise,     x_k = m_k - sum over j < k of L_kj y_j,     y_k = clip(x_k, -reach_k, +reach_k)

m = B0 (G - centre) for all averages so far, earlier ones included: G is read again each time, and what was shown before follows
from it. Given the assumption x_k - y_k has a law that no answer changes, so that errors are known before.

What must never change: everything about the table is in fractions, used and forgotten; no answer is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from attrpriv.methods.base.clamp_draw import MovedSpread, normal_points, statistic
from attrpriv.methods.transport.sequence_clamp import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.methods.transport.sequence_proof import SequenceEvidence

    Matrix = NDArray[np.float64]


def moved_on(evidence: SequenceEvidence, averages: Sequence[Fraction], read: Mapping[str, Fraction]) -> list[Fraction]:
    """This release's averages without what the hidden statistics tell of them beyond each reach; noise comes after."""
    apart = [statistic(one, read) - Fraction(one.centre) for one in evidence.reads]
    told = [sum((Fraction(b) * x for b, x in zip(row, apart, strict=True)), Fraction(0)) for row in evidence.slopes]
    found = shown(evidence.innovations(), evidence.reaches, told)[evidence.before :]
    return [average - x + y for average, (x, y) in zip(averages, found, strict=True)]


def sequence_spreads(
    evidence: SequenceEvidence, wander: Sequence[Sequence[float]], bias: Sequence[float]
) -> tuple[MovedSpread, ...]:
    """The law of the error of each of this release's answers, over the tables of the assumption."""
    import numpy as np

    points, weights = normal_points(len(wander[0]))
    told = points @ np.array(wander, dtype=np.float64).T + np.asarray(bias, dtype=np.float64)
    kept = np.zeros_like(told)
    spreads = []
    for k, (gain, step) in enumerate(zip(evidence.innovations().gains, evidence.steps, strict=True)):
        x = beyond_many(told[:, k], gain, kept[:, :k])
        kept[:, k] = np.clip(x, -step.reach, step.reach)
        spreads.append(MovedSpread(x - kept[:, k], weights, step.noise))
    return tuple(spreads[evidence.before :])


def beyond_many(told: Matrix, gain: Sequence[Decimal], kept: Matrix) -> Matrix:
    """x_k in floats, for many tables at once."""
    import numpy as np

    return np.asarray(told - kept @ np.array([float(g) for g in gain], dtype=np.float64))
