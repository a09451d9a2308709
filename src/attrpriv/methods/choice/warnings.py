"""What somebody who approves a plan must not miss: public records that do not bear it out, and promises that hide little.

First the shape of public records (`assumptions.shape` has the verdicts).

Some methods credit the variation of the rows as noise, or rest on the exact law of sums over them:

| method | where rows are not normal |
|---|---|
| `transport`, `calibrated_weights`, the equalised form of `gaussian` with groups | by name only, with a warning |
| `gaussian` and every other one that uses the assumption | with a warning |
| `group_dp`, a view, the public constant | no matter |

A method that broke its promise on the public rows themselves (`session.fit_trials`) is taken by name only, with a warning.

Curvature c and spread s that pass for normal can still show in many rows or over a wide range (`far_faults`): in a table whose
mean of the sensitive column is d of its standard deviations from the centre, an average of n rows moves by sqrt(n) c d^2/2 of
its residual standard deviations, and its residual variance is multiplied by 1 + s (d + d^2/sqrt 2). A bend of the third order,
sqrt(n) b d^3/3 at most, is in no number: b is taken as 0.1. Where all that, as far as the records tell, may add more than a
quarter to epsilon (a half under `calibrated_weights`, which promises epsilon 0), a plan is treated as one with a fault.

What must never change: an assumption that was not examined is not held against a plan; its certificate says so in a word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress

from attrpriv.assumptions.gaussian import FittedRecord, Gaussian
from attrpriv.assumptions.shape import ShapeFinding, Tried, possible, shortened
from attrpriv.cases.gaussian import row_faults
from attrpriv.errors import AttrprivError
from attrpriv.methods.base.accuracy import TRIED, WEAK
from attrpriv.methods.base.column_plan import own_scale
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.table import Method
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.problem.assumption import Assumption, Belief
from attrpriv.problem.counted import share_range
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
# Where rows are known not to be normal, the same mechanism by name is no way out: these hold for rows of any shape.
_ANY_SHAPE = "columns(...) under protect with public records as the reference, or kind: records"


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
            needs=_ANY_SHAPE,
        )


def require_near(method: Method, plan: Plan, problem: Problem) -> None:
    """The same refusal to `auto`, where the rows pass for normal and the range is too wide for that in so many rows.

    So is one that broke its promise when a fit tried it on the public rows.
    """
    broke = broken_trial(plan, problem)
    if broke is not None:
        told = f"{_broke(broke)} auto does not take it; ask for it by name to do so all the same."
        raise Refusal(Cause.SHAPE, told, needs=_ANY_SHAPE)
    far = far_faults(plan, problem) if method.on_exact_laws else ()
    if far:
        raise Refusal(
            Cause.SHAPE,
            f"rests on normal rows, which the public records do not show for this range: {shortened(far)}. auto does not take "
            "it; ask for it by name to do so all the same.",
            needs=_ANY_SHAPE,
        )


def broken_trial(plan: Plan, problem: Problem) -> Tried | None:
    """A trial on record (`attrpriv fit`) that this method broke, for one of these queries and secrets, at whatever budget."""
    asked = {text for query in plan.queries for text in query.alike}
    hidden = {secret.text for secret in problem.secrets}
    records = (member.fit_record() for member in problem.theta)
    tried = (one for record in records if record is not None for one in record.tried or ())
    same = (one for one in tried if one.mechanism == plan.mechanism and one.query in asked and one.secret in hidden)
    return next((one for one in same if one.broken), None)


def _broke(one: Tried) -> str:
    where = f"{one.query}, {one.secret}, n = {one.n}"
    told = f"epsilon {one.shown} where {one.epsilon:g} was promised ({where}), worst between {one.where}"
    return f"broke its promise when it was tried on the public records: {told}."


def far_faults(plan: Plan, problem: Problem) -> tuple[str, ...]:
    """What could add too much to epsilon at this number of rows and this range, though the records pass for normal."""
    if all(member.fit_record() is None for member in problem.theta):
        return ()
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


def with_warning(plan: Plan, problem: Problem) -> Plan:
    """The plan, which says what its promise rests on where the records do not bear it out."""
    broke = broken_trial(plan, problem)
    if broke is not None:
        plan = plan.model_copy(update={"notes": (*plan.notes, f"{TRIED} {plan.mechanism} {_broke(broke)}")})
    told = row_faults(problem) or far_faults(plan, problem)
    if not told:
        return plan
    note = (
        f"shape: epsilon {plan.epsilon:g} rests on normal rows, which the public records do not show: {shortened(told)}. What "
        "is really lost may be more. group_dp and a view need no such assumption."
    )
    return plan.model_copy(update={"notes": (*plan.notes, note)})


# ----------------------------------------------------------------------------------------------------------------------------
# Promises that hide little: a matter of degree, so that a plan carries a warning, and is made.
#
# | what is weak | told where |
# |---|---|
# | epsilon | it is above 10: likelihoods may differ by a factor of 20,000 |
# | delta | it is above 1/n |
# | a range, or sets of values | the assumption gives the range, or all sets but one, a chance below 1% |
# | the widest pair (`within`, a narrow range) | it is below a hundredth of what the secret varies by under the assumption |
#
# What an assumption says of a secret is its `belief` (`problem.assumption`). What hides nothing at all is refused: here where
# it is the assumption that leaves a secret one value, else in `problem.problem`. What must never change: these are functions
# of the problem alone.


_MOST_EPSILON = 10.0
_RARE, _NONE = 0.01, 1e-99
_SMALL = 0.01


def weak_lines(problem: Problem, epsilon: float, delta: float) -> tuple[str, ...]:
    """What somebody who approves a release under (epsilon, delta) must not miss."""
    lines = []
    if epsilon > _MOST_EPSILON:
        lines.append(f"epsilon {epsilon:g} lets likelihoods differ by a factor of {math.exp(epsilon):.1e}. Take one near 1.")
    if delta > 1 / problem.n:
        often = f"in up to one of {1 / delta:,.0f} tables anything may show"
        lines.append(f"delta {delta:g} is above 1/n, {1 / problem.n:.2g}: {often}. Take one far below 1/n.")
    for secret in problem.secrets:
        lines += [line for line in (_improbable(problem, secret), _narrow(problem, secret)) if line is not None]
    return tuple(f"{WEAK} {line}" for line in lines)


def require_open(problem: Problem) -> None:
    """A refusal where the assumption itself leaves a secret one value: then there is nothing to hide."""
    for secret in problem.secrets:
        if problem.theta and all(_belief(problem, member, secret).single(secret) for member in problem.theta):
            reason = f"{secret.text}: has a single possible value under the assumption; there is nothing to hide."
            raise Refusal(Cause.PROMISE, reason)


def _improbable(problem: Problem, secret: Secret) -> str | None:
    chances = [_chances(problem, member, secret) for member in problem.theta]
    known = [each for each in chances if each is not None]
    if not known or len(known) < len(chances) or len({len(each) for each in known}) > 1:
        return None
    most = sorted(max(each) for each in zip(*known, strict=True))
    chance = most[0] if len(most) == 1 else most[-2]
    if chance >= _RARE:
        return None
    told = "its range" if len(most) == 1 else "all but one of the values that must be indistinguishable"
    likely = "no chance" if chance < _NONE else f"a chance of {chance:.1g} at most"
    return f"{secret.text}: the assumption gives {told} {likely}; there is hardly anything to hide. Correct one of the two."


def _narrow(problem: Problem, secret: Secret) -> str | None:
    """Under every member, pairs are close against what the secret varies by; of a population, what its tables vary by."""
    if secret.parameter is not None and secret.composition is not None:
        spreads = [_table_spread(problem, secret)]
    else:
        spreads = [_belief(problem, member, secret).spread(secret, problem.n) for member in problem.theta]
    known = [spread for spread in spreads if spread is not None]
    if secret.cases is not None or not known or len(known) < len(spreads) or not secret.gap < _SMALL * min(known):
        return None
    return (
        f"{secret.text}: only values at most {secret.gap:g} apart are hidden, below a hundredth of what it varies by, "
        f"{min(known):.3g}. Of others nothing is promised."
    )


def _belief(problem: Problem, member: Assumption, secret: Secret) -> Belief:
    """What one member of the assumption says of a secret; nothing where the secret is of another kind."""
    found = None
    with suppress(AttrprivError, Refusal):
        found = member.belief(secret, problem.n, problem.bins)
    return Belief() if found is None else found


def _chances(problem: Problem, member: Assumption, secret: Secret) -> list[float] | None:
    with suppress(AttrprivError, Refusal):
        return _belief(problem, member, secret).chances(secret, problem.n)
    return None


def _table_spread(problem: Problem, secret: Secret) -> float | None:
    """How far a table's share is from the population's."""
    if isinstance(secret.between, Mapping):
        return None
    with suppress(AttrprivError):
        return min(math.sqrt(p * (1 - p) / problem.n) for p in share_range(secret))
    return None
