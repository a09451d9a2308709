"""`calibrated_weights`: averages with random weights that give every sensitive column a public mean (theory page of that name).

    answer = w'y,     w = w_ls + sqrt(Q - q) u,      w_ls = A (A'A)^-1 a0,   q = |w_ls|^2,   A = [1, X],   a0 = (1, t0)

The least-squares weights answer for a table whose sensitive means are t0; the random part makes the weights' length Q, whatever
these columns are. So the answer's law given them is N(a0'b, Q S), free of them, *for any slopes b and any residual covariance
S*: neither is used. What is left is the event q > Q, in which nothing is answered: its chance, given any value of a secret, is
the delta that is promised, with epsilon 0 up to the charges for grids and recorded values.

It rests on the sensitive columns' law (Gaussian, covariance not below what is stated) and on linearity; see `assumes`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrpriv.cases.budget import Budget, budget
from attrpriv.methods.base.accuracy import Noise, gaussian_error, unaffected
from attrpriv.methods.base.certificate import Certificate, common_assumptions
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.parts import WeightsPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.calibrated_weights.case import WeightsCase, read_on, regression, undeclared_spacing, weights_case
from attrpriv.methods.calibrated_weights.proof import Failure, WeightsEvidence, direction_eta, failure_upper, least_bound
from attrpriv.noise import granularity
from attrpriv.numerics.rounding import SOLVED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal

REFERENCE = "docs/theory/calibrated-weights.md"
# How much less than stated the sensitive columns' sds are where the plan says what delta then is.
_NARROWER = 0.01


def plan(problem: Problem) -> Plan:
    """The shortest weights that hide every secret from everyone, whatever the slopes are."""
    case = weights_case(problem)
    left = budget(problem, case.theta, case.lattice.charge, 0.0, common=0)
    failures = tuple(check.failure(problem.n, case.target) for check in case.checks)
    bound = _bound(problem, failures, left.delta)
    evidence = _evidence(problem, case, left, bound)
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=left.promised,
        evidence=evidence,
        assumes=(*_assumptions(problem, case), *left.fit_lines),
        **_exactness(problem, case, bound),
    )
    certificate.verify()
    return assemble(
        problem,
        "calibrated_weights",
        WeightsPart(columns=_columns(problem, case, evidence)),
        certificate,
        reference=REFERENCE,
        model_error=unaffected(left.excess),
        notes=_notes(problem, case, evidence, failures, left),
    )


def _bound(problem: Problem, failures: Sequence[Failure], delta: float) -> float:
    """Q, once the direction's own inexactness, which grows with Q, is paid for."""
    most = max(case.distance + case.wander + case.columns for case in failures)
    cap = (1 + 4 * most / (problem.n - failures[0].columns)) / problem.n
    for _ in range(8):
        spent = 2.1 * direction_eta(problem.n, cap, len(problem.columns))  # 1 + e^(2 lambda) times, with lambda next to 0
        rest = (delta - spent) * SOLVED_DOWN
        if not rest > 0:
            break
        bound = least_bound(failures, rest)
        if bound <= cap:
            return bound
        cap = 2 * bound
    raise Refusal(
        Cause.BUDGET,
        f"delta: {problem.delta:g} is less than what a direction of finitely many digits costs here.",
        needs="a larger delta",
    )


def _evidence(problem: Problem, case: WeightsCase, left: Budget, bound: float) -> WeightsEvidence:
    return WeightsEvidence(
        rows=problem.n,
        columns=tuple(read_on(case.theta[0], column, problem.missing.get(column)) for column in problem.columns),
        sensitive=tuple(read_on(case.theta[0], column, problem.missing.get(column)) for column in case.sensitive),
        target=case.target,
        bound=bound,
        masks=case.masks,
        checks=case.checks,
        **left.charges,
    )


def _exactness(problem: Problem, case: WeightsCase, bound: float) -> dict[str, bool | float]:
    """One sensitive column: the worst case is in Theta. Several: bounds on the covariance and on what is not fixed."""
    exact = len(case.sensitive) == 1
    scales = [math.sqrt(_squared_error(problem, case, k, bound)) for k in range(len(problem.columns))]
    gap = max(max(0.0, scale - mask) for scale, mask in zip(scales, case.masks, strict=True))
    return {"exact": exact, "gap": 0.0 if exact else gap}


# ------------------------------------------------------------------------------------------------------------- the error


def _squared_error(problem: Problem, case: WeightsCase, k: int, bound: float) -> float:
    """E (w'y - mean of y)^2 by the stated moments: S (Q - 1/n) + b' Sigma b/n + (b' (t0 - mu))^2, and the mask."""
    import numpy as np

    found = 0.0
    for gaussian in case.theta:
        slopes, residual = regression(gaussian, problem.columns, case.sensitive)
        sds = np.array([gaussian.sd_of(column) for column in case.sensitive])
        spread = gaussian.correlation_matrix(case.sensitive) * np.outer(sds, sds)
        bias = slopes[k] @ (np.array(case.target) - np.array([gaussian.mean[column] for column in case.sensitive]))
        own = float(residual[k, k]) * (bound - 1 / problem.n) + float(slopes[k] @ spread @ slopes[k]) / problem.n
        found = max(found, own + float(bias) ** 2)
    return found + case.masks[k] ** 2


def _columns(problem: Problem, case: WeightsCase, evidence: WeightsEvidence) -> tuple[ColumnPlan, ...]:
    plans = []
    for k, (column, mask) in enumerate(zip(problem.columns, case.masks, strict=True)):
        scale = math.sqrt(_squared_error(problem, case, k, evidence.bound))
        parameters = {
            "bound": evidence.bound,
            "target": dict(zip(case.sensitive, case.target, strict=True)),
            "failing": evidence.failing(),
            "mask": mask,
            "granularity": granularity(mask),
            "read_on": evidence.columns[k].step,
            "reads": list(case.sensitive),
            "clipped": False,
        }
        plans.append(
            ColumnPlan(
                column=column,
                noise=Noise(kind="gaussian", scale=scale),
                independent=mask,
                error=gaussian_error(scale),
                fill=problem.missing.get(column),
                parameters=parameters,
            )
        )
    return tuple(plans)


# --------------------------------------------------------------------------------------------------------------- in words


def _assumptions(problem: Problem, case: WeightsCase) -> tuple[str, ...]:
    hidden, shown = ", ".join(case.sensitive), ", ".join(problem.columns)
    lines = [
        f"rows are independent, and {hidden} exactly Gaussian: assumed, not tested",
        f"given {hidden}, a row of {shown} is Gaussian around a linear function of that, with the same spread in every row; "
        "slopes and residual spread may be any: those stated serve the expected error alone",
        f"the spread of {hidden} is not less than the assumption says, in any direction",
    ]
    lines += [f"{'one of: ' if len(case.theta) > 1 else ''}{gaussian}" for gaussian in case.theta]
    for column in (*case.sensitive, *problem.columns):
        if column in problem.missing:
            lines.append(f"the law is that of {column} as read, missing entries replaced")
    for column, spacing in case.lattice.spacing.items():
        lines.append(
            f"nearly all values of {column} lie on a spacing of at most {spacing:.4g}, and what {hidden} leaves open of a row "
            "has at least this standard deviation"
        )
    for column, covered in undeclared_spacing(problem, case.theta, case.sensitive).items():
        lines.append(f"nearly all values of {column} lie on a spacing of at most {covered:.4g}")
    lines.append("weights are drawn once for a table and not kept: no second release may ever be drawn from it")
    return (*lines, "the adversary knows no row", *common_assumptions(problem))


def _notes(
    problem: Problem, case: WeightsCase, evidence: WeightsEvidence, failures: Sequence[Failure], left: Budget
) -> tuple[str, ...]:
    hidden = ", ".join(case.sensitive)
    notes = [
        f"slopes do not matter to the promise, which holds with epsilon {left.excess:.1g}.",
        f"answers are for a table in which {_targets(case)}, with weights that depend on {hidden}; errors are by the stated "
        "moments.",
        "with a probability of at most delta the weights do not exist: nothing is answered then, which is recorded and spends "
        "the ledger.",
        _narrower(failures, evidence, hidden),
    ]
    for column, mask in zip(problem.columns, case.masks, strict=True):
        if not problem.spacing(column)[1]:
            covered = case.lattice.spacing[column]
            notes.append(
                f"{column}: its digits are masked by noise of {mask:.3g}, which covers spacings up to {covered:.3g}. "
                "Declare resolution to change that."
            )
        if column in problem.bounds:
            notes.append(f"{column}: bounds are not applied here, because clipping would bend the line that is assumed.")
    return tuple(notes)


def _targets(case: WeightsCase) -> str:
    means = [f"the mean of {column} is {aim:g}" for column, aim in zip(case.sensitive, case.target, strict=True)]
    return " and ".join(means)


def _narrower(failures: Sequence[Failure], evidence: WeightsEvidence, hidden: str) -> str:
    """What the promise rests on instead of slopes: how delta grows where the sensitive columns vary less than stated."""
    less = (1 - _NARROWER) ** 2
    wider = [Failure(f.rows, f.columns, f.fixed, f.distance / less, f.wander / less) for f in failures]
    real = max(failure_upper(one, evidence.bound) for one in wider)
    mark = "fragile: " if real > 2 * evidence.failing() else ""
    return f"{mark}where the sd of {hidden} is {_NARROWER:.0%} below its tolerance, delta is {real:.2g}. Slopes may be any."
