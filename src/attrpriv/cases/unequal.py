"""A problem about averages and categories: which counts must look alike, and what recorded values ask for.

For each secret and each member of Theta a case (`laws.groups`, `laws.groups`). A share of the population becomes a range
of counts that its tables surely have, up to a tail that is taken from delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from attrpriv.assumptions.groups import Groups
from attrpriv.cases.budget import Budget, budget, fit_charge
from attrpriv.errors import QueryError, RefusedError, UsageError
from attrpriv.methods.base.certificate import common_assumptions, known_line
from attrpriv.methods.base.checks import GroupCheck
from attrpriv.methods.base.tally import TallyCategory
from attrpriv.numerics.calibration.gaussian import lattice_lambda, mask_scale
from attrpriv.numerics.calibration.groups import population_range
from attrpriv.numerics.laws.records import CountPairs
from attrpriv.numerics.rounding import SOLVED_UP
from attrpriv.numerics.special import normal_cdf
from attrpriv.problem.counted import count_pairs, share_range
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, no_delta, other_assumption, refusal_of, refusing, unmasked
from attrpriv.problem.secret import Secret
from attrpriv.queries.conditions import Written

Clips = Mapping[str, float | None]
# As for the Gaussian mechanism (`recorded`): few rounded values do not have a nearly normal average.
_LEAST_ROWS = 100
_UNDECLARED = 1.5
# What the largest share of a table's rows that clipping may take, and the part of delta for a population's counts.
_CLIP_SHARE = 0.1
_TAIL_SHARE = 0.1


@dataclass(frozen=True)
class ValueLattice:
    """The least noise on each average, the charge for the lattice of the values, and the spacing that is covered."""

    masks: Mapping[str, float]
    charge: float
    spacing: Mapping[str, float]


def groups_of(problem: Problem) -> tuple[Groups, ...]:
    """The assumption, if it is about groups and says enough for the problem."""
    theta = problem.assumed(Groups)
    if not theta:
        raise other_assumption("groups")
    if problem.delta == 0:
        raise no_delta("Gaussian noise")
    if problem.calibration == "classical":
        raise Refusal(
            Cause.MISTAKE, "calibration: classical is for means; with groups it is analytic.", needs="calibration analytic"
        )
    first = theta[0]
    if any((m.sensitive, m.categories, m.other) != (first.sensitive, first.categories, first.other) for m in theta):
        raise Refusal(
            Cause.MISTAKE,
            "assume: every assumption of a list must have the same sensitive column and categories.",
            needs="assume",
        )
    for column in problem.columns:
        if any(column not in member.columns for member in theta):
            raise Refusal(
                Cause.NUMBERS,
                f"assume: {column} must have a mean and a standard deviation in each category. Got none.",
                needs="a mean and a standard deviation in each category",
                usage=True,
            )
    if not problem.columns:
        raise Refusal(
            Cause.STATISTIC, "the number of rows is public; ask for an average or a sum.", needs="an average or a sum"
        )
    return theta


def known_rows(problem: Problem) -> int:
    """How many rows an adversary may know."""
    return math.ceil(Fraction(repr(problem.known_rows)) * problem.n)


def checks(problem: Problem, theta: Sequence[Groups]) -> tuple[GroupCheck, ...]:
    """One case for each secret and member of Theta; of several averages, a vector."""
    with refusing(
        QueryError, UsageError, RefusedError, to=lambda error: refusal_of(error, usage=not isinstance(error, RefusedError))
    ):
        return tuple(_check(problem, k, theta[k], secret) for k in range(len(theta)) for secret in problem.secrets)


def _check(problem: Problem, index: int, groups: Groups, secret: Secret) -> GroupCheck:
    members, shares, known = members_of(groups, secret), None, known_rows(problem)
    if secret.parameter is None:
        pairs = count_pairs(secret, problem.n)
    else:
        shares = share_range(secret)
        found = population_range(problem.n, *shares, _TAIL_SHARE * problem.delta)
        pairs = CountPairs(problem.n, found.low, found.high, found.apart)
    if len(problem.columns) == 1:
        case = groups.case(problem.columns[0], members, pairs, known)
        return GroupCheck(secret=secret.text, theta=index, case=case, shares=shares)
    vector = groups.vector_case(problem.columns, members, pairs, known)
    return GroupCheck(secret=secret.text, theta=index, case=vector, shares=shares)


def members_of(groups: Groups, secret: Secret) -> tuple[str, ...]:
    """The categories that a secret counts."""
    return groups.members_of(secret)


def categories_of(problem: Problem, groups: Groups) -> tuple[TallyCategory, ...]:
    """The categories that the engine counts: those of the first secret first, as its case lists them."""
    members = members_of(groups, problem.secrets[0])
    return tuple(
        TallyCategory(
            name=name,
            where=None if name == groups.other else str(Written(groups.sensitive, name)),
            member=name in members,
        )
        for name in groups.categories
    )


# ---------------------------------------------------------------------------------------------------- recorded values


def recorded(problem: Problem, theta: Sequence[Groups]) -> ValueLattice:
    """The mask of the lattice and its charge; a refusal where averages would not be nearly normal."""
    masks, spacing, eased = {}, {}, math.inf
    for column in problem.columns:
        h, declared = problem.spacing(column)
        least = min(groups.sd_range(name, column)[0] for groups in theta for name in groups.categories)
        most = max(groups.sd_range(name, column)[1] for groups in theta for name in groups.categories)
        _require_normal(problem, column, h, least)
        masks[column] = mask_scale(h, declared, problem.n, most)
        spacing[column] = h if declared and h else max(h or 0.0, min(masks[column] * problem.n / _UNDECLARED, least / 2))
        unknown = (problem.n - known_rows(problem)) * least**2 * _least_share(problem, theta)
        mask = (masks[column] * problem.n / spacing[column]) ** 2
        data = unknown / spacing[column] ** 2
        eased = min(eased, data * mask / (data + mask))
    charge = lattice_lambda(max(0.0, eased), len(problem.columns))
    if not math.isfinite(charge):
        raise unmasked()
    return ValueLattice(masks, charge, spacing)


def _require_normal(problem: Problem, column: str, h: float | None, least: float) -> None:
    if h is None:
        return
    if problem.n < _LEAST_ROWS:
        raise Refusal(
            Cause.PRECISION,
            f"values recorded on a spacing need at least {_LEAST_ROWS} rows. Got {problem.n}.",
            needs="more rows",
        )
    if least < 2 * h:
        raise Refusal(
            Cause.PRECISION,
            f"{column}: its standard deviation within a category must be at least twice the spacing of its values ({h:g}), or "
            f"its average is not nearly normal. Got {least:g}; use a counts assumption.",
            needs=("finer values", "a counts assumption"),
        )


def _least_share(problem: Problem, theta: Sequence[Groups]) -> float:
    """Of several columns, the least eigenvalue of their correlations within a category."""
    import numpy as np

    if len(problem.columns) == 1:
        return 1.0
    least = 1.0
    for groups in theta:
        for name in groups.categories:
            matrix = np.array(groups.covariance(name, problem.columns))
            unit = np.sqrt(np.diag(matrix))
            least = min(least, float(np.linalg.eigvalsh(matrix / np.outer(unit, unit))[0]))
    return max(0.0, least)


def clip_charge(problem: Problem, theta: Sequence[Groups], column: str) -> float | None:
    """What clipping this column adds to delta; None where it cannot be afforded."""
    if problem.known_rows > 0 or column not in problem.bounds:
        return None
    low, high = problem.bounds[column]
    chance = 0.0
    for groups in theta:
        for name in groups.categories:
            sd = groups.sd_range(name, column)[1]
            mean, reach = groups.mean_of(name, column), groups.tolerance.mean * sd
            tails = normal_cdf((low - mean + reach) / sd) + normal_cdf((mean + reach - high) / sd)
            chance = max(chance, problem.n * tails * SOLVED_UP)
    charge = (1 + math.exp(problem.epsilon)) * chance
    return charge if charge <= _CLIP_SHARE * problem.delta / len(problem.columns) else None


def masked(problem: Problem, theta: Sequence[Groups]) -> ValueLattice:
    """What recorded values ask for, or the reason why they are not covered."""
    with refusing(RefusedError):
        return recorded(problem, theta)


def group_budget(
    problem: Problem, theta: Sequence[Groups], lattice: ValueLattice, clips: Clips, common: int | None = None
) -> Budget:
    """What is left for the calibration."""
    return budget(problem, theta, lattice.charge, sum(charge or 0.0 for charge in clips.values()), common)


def real_epsilon(delta: Callable[[float], float], problem: Problem) -> float:
    """The least epsilon, from above, at which the problem's delta is enough; infinite where none is."""
    low, high = 0.0, problem.epsilon
    while delta(high) > problem.delta:
        low, high = high, 2 * high
        if high > 500:
            return math.inf
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if delta(middle) <= problem.delta else (middle, high)
    return high


def assumptions(problem: Problem, theta: Sequence[Groups], lattice: ValueLattice) -> tuple[str, ...]:
    """Everything that a proof for groups rests on."""
    lines = ["rows are independent, and exactly normal within each category: assumed, not tested"]
    lines += [f"{'one of: ' if len(theta) > 1 else ''}{groups}" for groups in theta]
    lines += [f"nearly all values of {column} lie on a spacing of at most {h:.4g}" for column, h in lattice.spacing.items()]
    lines += [
        f"the moments are those of {c} as read, missing entries replaced" for c in problem.columns if c in problem.missing
    ]
    return (*lines, known_line(problem), *common_assumptions(problem), *fit_charge(theta, problem.delta).lines)
