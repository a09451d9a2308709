"""What a Gaussian mechanism really promises where the assumption's slopes are off by more than its tolerance says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.budget import Budget
from attrpriv.cases.shift import ShiftCase, seen_in
from attrpriv.cases.subset import Rows
from attrpriv.methods.base.accuracy import ModelError, off_by
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.numerics.divergences.gaussian import gaussian_epsilon
from attrpriv.numerics.search import least_epsilon
from attrpriv.problem.problem import Problem


def gaussian_model_error(
    problem: Problem, rows: Rows, theta: Sequence[Gaussian], evidence: GaussianEvidence, left: Budget
) -> tuple[ModelError, ...]:
    """The epsilon that really holds, at the same delta, when every slope is further off than the tolerance says."""

    def real(off: float) -> float:
        cases = _furthest(evidence, seen_in(problem, rows, theta, off))
        distance = max((evidence.distance_of(case.check()) for case in cases), default=0.0)
        return max(gaussian_epsilon(distance, left.delta), _sets_epsilon(evidence, off, left)) + left.excess

    return off_by(real)


def _furthest(evidence: GaussianEvidence, cases: Sequence[ShiftCase]) -> Sequence[ShiftCase]:
    """Of several averages the case that moves them furthest: which one it is may be decided in bare floats."""
    import numpy as np

    if len(evidence.columns) < 2 or len(cases) < 2:
        return cases
    noise = np.diag(np.array(evidence.independent) ** 2)
    if evidence.factor:
        noise = noise + np.array(evidence.factor) @ np.array(evidence.factor).T
    moved = [c.shifts.T @ np.linalg.solve(c.residual + noise, c.shifts) for c in cases]
    sizes = np.array([np.linalg.norm(one, 2) for one in moved])
    return [cases[int(sizes.argmax())]] if np.isfinite(sizes).all() else cases


def _sets_epsilon(evidence: GaussianEvidence, off: float, left: Budget) -> float:
    """The same for sets of values: the steeper slope tells more of the mixture, in every cell of the box."""
    variance, epsilon = evidence.independent[0] ** 2 if evidence.set_checks else 0.0, 0.0
    for check in evidence.set_checks:
        for cell in check.cells:
            # On its own a cell is a box; most need no more than the worst so far.
            alone = {"cells": (cell,), "means": cell[:2], "sds": cell[2:], "strength": check.strength * (1 + off)}
            reached = partial(check.model_copy(update=alone).delta, variance=variance)
            if not math.isfinite(epsilon):
                return epsilon
            if not epsilon or reached(epsilon) > left.delta:
                epsilon = least_epsilon(reached, left.delta, start=max(epsilon, left.epsilon), close=0.003)
    return epsilon
