"""The Gaussian assumption, where it says enough for a problem; a refusal elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, no_delta, other_assumption
from attrpriv.problem.secret import Secret

# Beyond these, the squares and ratios below leave the range of floats.
_LEAST, _MOST = 1e-30, 1e30


def gaussians(problem: Problem, *, pure: bool = False) -> tuple[Gaussian, ...]:
    """The assumption, if it is Gaussian and says enough for the problem; `pure`: delta may be 0."""
    theta = problem.assumed(Gaussian)
    if not theta:
        raise other_assumption("gaussian")
    if any(secret.attribute is not None for secret in problem.secrets):
        raise Refusal(
            Cause.SECRET,
            "hides properties of this table; a mean of the population needs a hierarchy assumption.",
            needs="a hierarchy assumption",
        )
    if any(secret.composition is not None for secret in problem.secrets):
        raise Refusal(Cause.SECRET, "hides means and sums; a share, a count or a distribution needs a view.", needs="a view")
    if problem.delta == 0 and not pure:
        raise no_delta()
    for column in dict.fromkeys((*problem.read_columns, *(c for secret in problem.secrets for c in secret.columns))):
        if any(column not in gaussian.columns for gaussian in theta):
            raise Refusal(
                Cause.NUMBERS,
                f"assume: {column} must have a standard deviation and a correlation with the other columns. Got none.",
                needs=f"a standard deviation and the correlations of {column}",
                usage=True,
            )
        _require_magnitude(f"sd of {column}", [gaussian.sd_of(column) for gaussian in theta])
        _require_magnitude(f"resolution of {column}", [problem.resolution[column]] if column in problem.resolution else [])
    for secret in problem.secrets:
        _require_magnitude(f"the widest pair of {secret.text}", [max(gap, _LEAST) for gap in _gaps(problem, secret)])
    return theta


def _gaps(problem: Problem, secret: Secret) -> list[float]:
    """How far apart values that must look alike can be; half-lines are hidden by their law, not by a distance."""
    if len(secret.forms) > 1:
        return [abs(x) for step in secret.joint_steps(problem.n) for row in step for x in row]
    return [] if secret.cases is not None and math.isinf(secret.gap) else [secret.gap]


def _require_magnitude(name: str, numbers: Sequence[float]) -> None:
    for number in numbers:
        if not _LEAST <= number <= _MOST:
            raise Refusal(
                Cause.NUMBERS,
                f"{name}: must be between {_LEAST:g} and {_MOST:g}. Got {number:g}; choose another unit.",
                needs="another unit",
                usage=True,
            )


def is_exact(member: Gaussian) -> bool:
    """Whether sds and slopes are stated as exact; a tolerance on means does not move slopes."""
    tolerance = member.tolerance
    return not (tolerance.sd or tolerance.slope or tolerance.correlation)
