"""How the noise is laid out over the averages: least total variance that hides every case.

One average: the variance that the worst case needs, or the mask if that is more. Several: each its mask, plus correlated noise
of least trace (in units of each average's own standard deviation), or independent noise with the distance shared equally,
whichever adds less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrpriv.cases.shift import Seen
from attrpriv.methods.base.noise_layout import Design
from attrpriv.numerics.calibration.least_trace import least_trace
from attrpriv.numerics.rounding import SHY_UP, SOLVED_UP


def design(cases: Sequence[Seen], masks: Sequence[float], sds: Sequence[float], mu: float) -> Design:
    """The noise that keeps every case within the distance mu."""
    if not masks:
        return Design((), ())
    if len(masks) == 1:
        return Design((_scalar(cases, masks[0], mu) * SOLVED_UP,), ())
    independent = apart(cases, masks, mu)
    if any(case.signless for case in cases):
        return independent
    joint = _correlated(cases, masks, sds, mu)
    return joint if _cost(joint, sds) < _cost(independent, sds) else independent


def _scalar(cases: Sequence[Seen], mask: float, mu: float) -> float:
    """One average; a ball of secrets moves it by the length of its row."""
    import numpy as np

    needs = [float(np.sum((case.shifts / mu) ** 2)) - float(case.residual[0, 0]) for case in cases]
    return max(mask, math.sqrt(max(0.0, *needs)) if needs else 0.0)


def apart(cases: Sequence[Seen], masks: Sequence[float], mu: float) -> Design:
    """No credit, and the distance shared by the averages that move: d' D^-1 d <= mu^2 whatever their joint law is."""
    import numpy as np

    moves = np.array([np.linalg.norm(case.shifts, axis=1) for case in cases])
    moving = int((moves.max(axis=0) > 0).sum()) if len(cases) else 0
    share = mu / math.sqrt(max(1, moving))
    needed = moves.max(axis=0) / share if len(cases) else np.zeros(len(masks))
    return Design(tuple(max(mask, float(need)) * SOLVED_UP for mask, need in zip(masks, needed, strict=True)), ())


def _correlated(cases: Sequence[Seen], masks: Sequence[float], sds: Sequence[float], mu: float) -> Design:
    import numpy as np

    unit = np.asarray(sds, dtype=np.float64)
    own = np.diag((np.asarray(masks) / unit) ** 2)
    conditions = []
    for case in cases:
        shift = case.shifts / unit[:, None] / mu
        conditions.append(shift @ shift.T - case.residual / np.outer(unit, unit) - own)
    noise = least_trace(conditions) if conditions else np.zeros((len(masks), len(masks)))
    values, vectors = np.linalg.eigh(noise)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    # Adding a little in every direction covers the rounding of the eigenvectors and of what was left out.
    factor = (vectors[:, kept] * np.sqrt(values[kept])) * unit[:, None] * math.sqrt(SHY_UP)
    slack = 1e-9 * max(0.0, float(values[-1]))
    independent = [math.sqrt((mask / u) ** 2 + slack) * u * SOLVED_UP for mask, u in zip(masks, sds, strict=True)]
    rows = tuple(tuple(float(x) for x in row) for row in factor)
    return Design(tuple(independent), rows if kept.any() else ())


def _cost(layout: Design, sds: Sequence[float]) -> float:
    return sum((scale / sd) ** 2 for scale, sd in zip(layout.scales(), sds, strict=True))
