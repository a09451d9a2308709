"""The Gaussian assumption, where it says enough for a problem; a refusal elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.shape import faults
from attrpriv.cases.recorded_values import ValueLattice
from attrpriv.methods.base.wording import common_assumptions, known_line
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


# ----------------------------------------------------------------------------------------------------------------------------
# What a plan for normal rows says in words: what its proof rests on, and what a reader should know. Public facts only.


def gaussian_assumptions(problem: Problem, theta: Sequence[Gaussian], lattice: ValueLattice) -> tuple[str, ...]:
    """Everything the Gaussian mechanism's proof rests on."""
    lines = ["rows are independent and exactly Gaussian: assumed, not tested"]
    shapes = [gaussian.tolerance.shape for gaussian in theta if gaussian.tolerance.shape is not None]
    if shapes:
        lam, eta = max(shape.lambda_ for shape in shapes), max(shape.eta for shape in shapes)
        lines = [
            f"rows are independent; given each secret, the joint law of the averages is within a factor e^{lam:g} of a normal "
            f"one, up to probability {eta:g}: assumed, not tested"
        ]
    lines += [f"{'one of: ' if len(theta) > 1 else ''}{gaussian}" for gaussian in theta]
    lines += [
        f"the moments are those of {c} as read, missing entries replaced" for c in problem.read_columns if c in problem.missing
    ]
    lines += [f"nearly all values of {column} lie on a spacing of at most {h:.4g}" for column, h in lattice.spacing.items()]
    for column in dict.fromkeys(column for secret in problem.secrets for column in secret.columns):
        if problem.spacing(column)[0] is None and column not in lattice.spacing:
            sd = min(gaussian.sd_range(column)[0] for gaussian in theta)
            lines.append(f"nearly all values of {column} lie on a spacing of at most {sd / 2:.4g}")
    return (*lines, known_line(problem), *common_assumptions(problem))


def gaussian_notes(
    problem: Problem,
    theta: Sequence[Gaussian],
    lattice: ValueLattice,
    least: Mapping[str, float],
    scales: Mapping[str, float],
    clips: Mapping[str, float | None],
) -> tuple[str, ...]:
    notes = [] if problem.combined else _undeclared(problem, lattice, least)
    masked = [column for column in problem.columns if scales[column] <= least[column] * (1 + 1e-6)]
    if len(masked) > 3:
        notes.append(f"{len(masked)} averages need no noise beyond the mask of their digits.")
    else:
        notes += [f"{column}: no noise is needed beyond the mask of its digits." for column in masked]
    for column in problem.columns:
        if column in clips and clips[column] is None:
            notes.append(
                f"{column}: bounds are not applied here, because clipping would change the law that the assumption describes."
            )
    notes += _mean_in_standard_errors(problem, theta)
    notes += _zero_slopes(problem, theta)
    if len(problem.columns) > 1:
        what = "averages" if any(problem.wheres) else "columns"
        notes.append(f"{len(problem.columns)} {what} are released together, with noise planned jointly.")
    return tuple(notes)


def _undeclared(problem: Problem, lattice: ValueLattice, least: Mapping[str, float]) -> list[str]:
    """Of each column whose spacing nobody declared, how its digits are masked."""
    notes = []
    for column in problem.read_columns:
        spacing, declared = problem.spacing(column)
        averages = zip(problem.columns, problem.forms, strict=True) if any(problem.wheres) else [(column, {column: 1.0})]
        mask = min(least[key] for key, form in averages if column in form)
        if not declared:
            origin = "whole numbers (by its column type)" if spacing is not None else "values of undeclared spacing"
            notes.append(
                f"{column}: {origin}; its digits are masked by noise of at least {mask:.3g}, which covers spacings up "
                f"to {lattice.spacing[column]:.3g}. Declare resolution to change that."
            )
    return notes


def _zero_slopes(problem: Problem, theta: Sequence[Gaussian]) -> list[str]:
    """A relative tolerance of nothing is nothing."""
    pairs = [(c, s) for c in problem.read_columns for secret in problem.secrets for s in secret.columns if c != s]
    exact = [f"{c} on {s}" for c, s in pairs if any(g.tolerance.slope and not g.slope(c, s) for g in theta)]
    return [f"the slope of {pair} is stated as 0, and a relative tolerance leaves it exactly 0." for pair in exact]


def _mean_in_standard_errors(problem: Problem, theta: Sequence[Gaussian]) -> list[str]:
    widest = max(gaussian.tolerance.mean for gaussian in theta)
    if not widest:
        return []
    errors = f"{widest * math.sqrt(problem.n):.3g}"
    return [f"the mean tolerance of {widest:g} sd makes {errors} standard error{'s' * (errors != '1')} at n = {problem.n:,}."]


# ----------------------------------------------------------------------------------------------------------------------------
# Why the public records behind a fitted assumption are no normal rows (`assumptions.shape` has the verdicts).


def row_faults(problem: Problem) -> tuple[str, ...]:
    """Why the records behind a fitted assumption are no normal rows, for what this problem reads and hides."""
    hidden = tuple(dict.fromkeys(column for secret in problem.secrets for column in secret.columns))
    records = [member.fit_record() for member in problem.theta if member.normal_rows]
    shapes = [record.shape for record in records if record is not None and record.shape is not None]
    return tuple(dict.fromkeys(line for shape in shapes for line in faults(shape, problem.read_columns, hidden)))
