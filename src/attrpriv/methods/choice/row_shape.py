"""What the shape of public records means for a plan (`assumptions.shape` has the verdicts).

Some methods credit the variation of the rows as noise, or rest on the exact law of sums over them:

| method | where rows are not normal |
|---|---|
| `transport`, `calibrated_weights`, the equalised form of `gaussian` with groups | by name only, with a warning |
| `gaussian` and every other one that uses the assumption | with a warning |
| `group_dp`, a view, the public constant | no matter |

Curvature c and spread s that pass for normal can still show in many rows or over a wide range (`far_faults`): in a table whose
mean of the sensitive column is d of its standard deviations from the centre, an average of n rows moves by sqrt(n) c d^2/2 of
its residual standard deviations, and its residual variance is multiplied by 1 + s (d + d^2/sqrt 2). A bend of the third order,
sqrt(n) b d^3/3 at most, is in no number: b is taken as 0.1. Where all that, as far as the records tell, may add more than a
quarter to epsilon (a half under `calibrated_weights`, which promises epsilon 0), a plan is treated as one with a fault.

What must never change: an assumption that was not examined is not held against a plan; its certificate says so in a word.
"""

from __future__ import annotations

import math

from attrpriv.assumptions.gaussian import FittedRecord, Gaussian
from attrpriv.assumptions.shape import ShapeFinding, possible, shortened
from attrpriv.cases.moments import row_faults
from attrpriv.methods.base.column_plan import own_scale
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.method import Method
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.problem.shapes import UNEQUAL

# What departures within the limits may add to epsilon, as a share of it.
_SHARE, _SHARE_OF_WEIGHTS = 0.25, 0.5
_THIRD_ORDER = 0.1
# Where no range is stated: so many standard errors of the secret are looked at.
_NO_RANGE = 6.0
_LEAST_DELTA = 1e-12


def require_normal_rows(method: Method, problem: Problem) -> None:
    """A refusal to `auto`: nobody asked for a method that rests on rows being normal, and they are not."""
    if not (method.on_exact_laws or (method.name == "gaussian" and _equalises_only(problem))):
        return
    told = row_faults(problem)
    if told:
        raise Refusal(
            Cause.SHAPE,
            f"rests on normal rows, which the public records do not show: {shortened(told)}. auto does not take it; ask for it "
            "by name to do so all the same.",
        )


def require_near(method: Method, plan: Plan, problem: Problem) -> None:
    """The same refusal to `auto`, where the rows pass for normal and the range is too wide for that in so many rows."""
    told = far_faults(plan, problem) if method.on_exact_laws else ()
    if told:
        raise Refusal(
            Cause.SHAPE,
            f"rests on normal rows, which the public records do not show for this range: {shortened(told)}. auto does not take "
            "it; ask for it by name to do so all the same.",
        )


def far_faults(plan: Plan, problem: Problem) -> tuple[str, ...]:
    """What could add too much to epsilon at this number of rows and this range, though the records pass for normal."""
    told, read = [], set(problem.read_columns)
    means = [one for one in problem.secrets if one.composition is None and one.attribute is None and one.entries is None]
    for member in problem.assumed(Gaussian):
        if member.fitted is None or member.fitted.shape is None:
            continue
        for secret in (one for one in means if one.single is not None):
            found = [one for one in member.fitted.shape if one.on == secret.single and one.of in read]
            if found:
                told += _far(plan, problem, member, member.fitted, secret, found)
    return tuple(dict.fromkeys(told))


def _far(
    plan: Plan, problem: Problem, member: Gaussian, record: FittedRecord, secret: Secret, found: list[ShapeFinding]
) -> list[str]:
    """Where the log ratio is epsilon, t sds out, a shift of k sds adds t k to it, a variance larger by a share h t^2 h/2."""
    unknown = 1 - problem.known_rows
    far, gap = (value / unknown for value in _distances(problem, member, secret))
    squares, cubes = far**2 - max(0.0, far - gap) ** 2, far**3 - (far - gap) ** 3
    may = {one.of: possible(one, record.rows) for one in found}
    mu = gaussian_mu(plan.epsilon, max(plan.delta, _LEAST_DELTA))
    t = plan.epsilon / mu + mu / 2
    least = _least_eigenvalue(member, [one.of for one in found], found[0].on or "")
    moved, widened = 0.0, 0.0
    for one in found:
        rows = unknown * _residual_variance(member, one) / problem.n
        share = rows / max(least * rows + _noise(plan, one.of) ** 2, math.ulp(0.0))
        bend = may[one.of].get("curvature", 0.0) * squares / 2 + _THIRD_ORDER * cubes / 3
        moved += share * problem.n * unknown * bend**2
        widened = max(widened, share * may[one.of].get("spread", 0.0) * (gap + squares / math.sqrt(2)))
    added = t * math.sqrt(moved) + t * t * widened / 2
    if added <= (_SHARE_OF_WEIGHTS if plan.mechanism == "calibrated_weights" else _SHARE) * plan.epsilon:
        return []
    worst = max(found, key=lambda one: may[one.of].get("curvature", 0.0))
    open_ = " and ".join(f"{name} {value:.2g}" for name, value in may[worst.of].items())
    return [
        f"{worst.name}: up to {open_} pass for normal in {record.rows} public rows, and {far:.2g} sd from the mean, with "
        f"{problem.n} rows, may add {added:.2g} to epsilon"
    ]


def _distances(problem: Problem, member: Gaussian, secret: Secret) -> tuple[float, float]:
    """How far a value may be from the centre, and two from each other, in sds of the sensitive column."""
    column, weight = secret.single or "", secret.forms[0].weight(problem.n)
    low, high = member.sd_range(column)
    off = member.tolerance.mean * high / low
    ends = None if secret.cases is not None or column not in member.mean else secret.ends
    gap = secret.gap / weight / low
    if ends is None:
        reach = off + _NO_RANGE / math.sqrt(problem.n)
        return (reach + gap, gap) if math.isfinite(gap) else (reach, 2 * reach)
    return max(abs(end / weight - member.mean[column]) for end in ends) / low + off, gap


def _residual_variance(member: Gaussian, one: ShapeFinding) -> float:
    """What is left of a column's variance once the sensitive one is known."""
    return member.sd_of(one.of) ** 2 * max(0.0, 1 - member.correlation_of(one.of, one.on or "") ** 2)


def _noise(plan: Plan, column: str) -> float:
    """What is added to this column's average, and is its own."""
    parts = [part for part in plan.columns if part.column == column and part.where is None and part.noise.kind == "gaussian"]
    return own_scale(parts[0]) if parts else 0.0


def _least_eigenvalue(member: Gaussian, columns: list[str], on: str) -> float:
    """Of the correlations that are left between columns once the sensitive one is known: together they may show more."""
    if len(columns) == 1:
        return 1.0
    import numpy as np

    matrix = member.correlation_matrix([*columns, on])
    left = matrix[:-1, :-1] - np.outer(matrix[:-1, -1], matrix[:-1, -1])
    sds = np.sqrt(np.maximum(np.diag(left), math.ulp(1.0)))
    return max(float(np.linalg.eigvalsh(left / np.outer(sds, sds))[0]), 1e-9)


def _equalises_only(problem: Problem) -> bool:
    """Several averages with groups have no other form."""
    return problem.shape == UNEQUAL and len(problem.columns) > 1


def with_warning(method: Method, plan: Plan, problem: Problem) -> Plan:
    """The plan, which says what its promise rests on where the records do not bear it out."""
    if method.without_assumption:
        return plan
    told = row_faults(problem) or far_faults(plan, problem)
    if not told:
        return plan
    note = (
        f"shape: epsilon {plan.epsilon:g} rests on normal rows, which the public records do not show: {shortened(told)}. What "
        "is really lost may be more. group_dp and a view need no such assumption."
    )
    return plan.model_copy(update={"notes": (*plan.notes, note)})
