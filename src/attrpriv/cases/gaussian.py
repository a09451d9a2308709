"""The Gaussian assumption, where it says enough for a problem, a refusal elsewhere; and what recorded values ask of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.shape import faults
from attrpriv.assumptions.vector_box import vector_box
from attrpriv.assumptions.worst_case import least_joint_residual, least_residual
from attrpriv.cases.shift import joint_share
from attrpriv.methods.base.certificate import common_assumptions, known_line
from attrpriv.numerics.calibration.gaussian import lattice_lambda, mask_scale
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, no_delta, other_assumption, unmasked
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


# ----------------------------------------------------------------------------------------------------------------------------
# What recorded values ask of a Gaussian mechanism: the mask of the lattice, and its conditions.
#
# Recorded values lie on a lattice (whole pounds: spacing h = 1), so an average lies on h Z / n and its digits can give a secret
# away, whatever the normal law says. Every average therefore gets at least the noise `mask`, and the rest is charged as
# `lattice_lambda`. The conditions under which that argument holds are checked over the whole assumption:
#
# - a column's standard deviation is at least 2 h, for query columns and sensitive columns;
# - what is left of a row of the query column(s) once the sensitive entry is known has standard deviation at least h.
#
# Where h is not declared, the plan says up to which spacing its own noise covers.
#
# A column that is asked for and also part of a hidden combination has a coarser lattice: given n mean(a - 10 b) the sum of
# whole a's is known up to multiples of 10. `left_spacing` is the spacing that is left then, and what is masked. Rounding of a
# sensitive column that averages follow closely is a matter of all of them together (`recorded_smooth`).


# An undeclared spacing is covered up to this many masks: a noise of 1.5 spacings leaves a density within 1e-19.
UNDECLARED = 1.5
# Rounded normal rows at the edge of the conditions exceed delta by 10% at 12 rows, 4% at 25, 1% at 50, and not at 100.
_LEAST_ROWS = 100


@dataclass(frozen=True)
class ValueLattice:
    """The charge for a lattice, and the spacing of each column it covers."""

    charge: float
    spacing: Mapping[str, float]


def masks(problem: Problem, theta: Sequence[Gaussian], reads: Sequence[str] = ()) -> dict[str, float]:
    """The least noise on the average of each column that is released, and of each that is read and masked too."""
    scales = {}
    for column in (*problem.columns, *reads):
        spacing, declared = left_spacing(problem, column)
        sd = max(gaussian.sd_of(column) for gaussian in theta)
        scales[column] = mask_scale(spacing, declared, problem.n, sd)
    return scales


def recorded(
    problem: Problem, theta: Sequence[Gaussian], noise: Mapping[str, float], reads: Sequence[str] = ()
) -> ValueLattice:
    """The charge for recorded values under noise of these scales; a refusal where the conditions fail.

    `reads` are sensitive columns whose averages are used under a mask: given one secret, the others' digits may tell.
    """
    require_rows(problem, theta, problem.n)
    for gaussian in theta:
        for column in dict.fromkeys((*problem.columns, *(c for secret in problem.secrets for c in secret.columns))):
            require_fine(problem, gaussian, column)
    columns = (*problem.columns, *reads)
    floors = [floor for gaussian in theta for floor in row_floors(problem, gaussian, columns)]
    spacing = {column: _covered(problem, theta, column, noise[column], floors) for column in columns}
    charge = max((_charge(problem, floor, spacing, noise) for floor in floors), default=0.0)
    if not math.isfinite(charge):
        raise unmasked()
    return ValueLattice(charge, spacing)


def left_spacing(problem: Problem, column: str) -> tuple[float | None, bool]:
    """The spacing of the column's values once any of the secrets is known, and whether the policy declared it."""
    spacing, declared = problem.spacing(column)
    factors = [_coarser(problem, secret, column) for secret in problem.secrets]
    return (spacing if spacing is None else spacing * max(factors, default=1)), declared


def _coarser(problem: Problem, secret: Secret, column: str) -> int:
    """By which factor a secret makes the lattice coarser: c x may differ by what the other columns' c x can make up for."""
    combined = [form for form in secret.forms if len(form.coefficients) > 1 and column in dict(form.coefficients)]
    if not combined or column not in problem.columns:
        return 1
    names = [name for form in combined for name, _ in form.coefficients]
    unknown = [name for name in dict.fromkeys(names) if problem.spacing(name)[0] is None]
    if unknown or len(secret.forms) > 1:
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"resolution: {column} is asked for and part of {secret.text}, whose digits then narrow down its own. Declare the "
            f"spacing of {', '.join(unknown) or column}, hide one statistic at a time, or ask for another column.",
            needs=("resolution", "one secret at a time", "another column"),
            usage=bool(unknown),
        )
    weights = {name: abs(_decimal(c) * _decimal(problem.spacing(name)[0] or 1)) for name, c in combined[0].coefficients}
    others = [weight for name, weight in weights.items() if name not in problem.columns]
    if not others:
        return 1  # all of it is asked for: nothing is left of a row, which is refused elsewhere
    step = others[0]
    for weight in others[1:]:
        step = Fraction(
            math.gcd(step.numerator * weight.denominator, weight.numerator * step.denominator),
            step.denominator * weight.denominator,
        )
    return (weights[column] / step).denominator


def _decimal(x: float) -> Fraction:
    """A number of the policy as it is written."""
    return Fraction(repr(float(x)))


def require_rows(problem: Problem, theta: Sequence[Gaussian], rows: int) -> None:
    """Averages of few recorded values are not normal enough for the reserve; a `shape` tolerance says how far they are."""
    columns = {*problem.read_columns, *(c for secret in problem.secrets for c in secret.columns)}
    recorded_somewhere = any(problem.spacing(column)[0] is not None for column in columns)
    if rows < _LEAST_ROWS and recorded_somewhere and any(g.tolerance.shape is None for g in theta):
        raise Refusal(
            Cause.PRECISION,
            f"values recorded on a spacing need at least {_LEAST_ROWS} rows, or their average is not nearly normal. "
            f"Got {rows}; state a shape tolerance if you know how far it is.",
            needs=("more rows", "a shape tolerance"),
        )


def require_fine(problem: Problem, gaussian: Gaussian, column: str) -> None:
    spacing, _ = problem.spacing(column)
    if spacing is not None and gaussian.sd_range(column)[0] < 2 * spacing:
        raise Refusal(
            Cause.PRECISION,
            f"{column}: its standard deviation must be at least twice the spacing of its values ({spacing:g}), "
            f"or its average is not nearly normal. Got {gaussian.sd_range(column)[0]:g}.",
            needs="finer values",
        )


def row_floors(problem: Problem, gaussian: Gaussian, columns: Sequence[str]) -> list[dict[str, float]]:
    """For each secret, the least row variance left of each column once that secret's own entries are known.

    For several columns it is a bound on the least eigenvalue, shared out in units of each column's sd.
    """
    floors = []
    for secret in problem.secrets:
        known = secret.columns if all(len(form.coefficients) == 1 for form in secret.forms) else ()
        others = [column for column in columns if column not in known]
        if secret.single is not None and len(others) == 1:
            floors.append({others[0]: least_residual(gaussian, others[0], secret.single)})
        elif others:
            floors.append(_joint_floor(gaussian, others, secret))
    return floors


def _joint_floor(gaussian: Gaussian, columns: Sequence[str], secret: Secret) -> dict[str, float]:
    """The least eigenvalue of what is left of a row, shared out in units of each column's sd."""
    if secret.single is not None:
        share = least_joint_residual(gaussian, columns, secret.single)
        return {column: share * gaussian.sd_range(column)[0] ** 2 for column in columns}
    share = 1.0
    for form in secret.forms:
        box = vector_box(gaussian, columns, dict(form.coefficients))
        share = min(share, 0.0 if box is None else box.least_share([gaussian.sd_of(column) for column in columns]))
    if len(secret.forms) > 1:
        share = min(share, joint_share(gaussian, columns, secret))
    return {column: share * gaussian.sd_of(column) ** 2 for column in columns}


def _covered(
    problem: Problem, theta: Sequence[Gaussian], column: str, noise: float, floors: Sequence[Mapping[str, float]]
) -> float:
    least = min((floor[column] for floor in floors if column in floor), default=math.inf)
    spacing, declared = left_spacing(problem, column)
    if least <= 0 or (spacing is not None and least < spacing**2):
        left = math.sqrt(max(0.0, least))
        together = " of those asked together" if len(problem.columns) > 1 else ""
        raise Refusal(
            Cause.PRECISION,
            f"{column}: what a sensitive column leaves open of a row{together} must have a standard deviation of at least "
            f"the spacing of the values ({'unknown' if spacing is None else f'{spacing:g}'}). Got {left:g}; "
            "declare a finer resolution or a smaller tolerance, or ask for fewer columns at once.",
            needs=("a finer resolution", "a smaller tolerance", "fewer columns"),
        )
    if declared and spacing is not None:
        return spacing
    sd = min(gaussian.sd_range(column)[0] for gaussian in theta)
    return max(spacing or 0.0, min(noise * problem.n / UNDECLARED, sd / 2, math.sqrt(least)))


def _charge(problem: Problem, floor: Mapping[str, float], spacing: Mapping[str, float], noise: Mapping[str, float]) -> float:
    unknown = 1 - problem.known_rows
    data = min(floor[column] * problem.n * unknown / spacing[column] ** 2 for column in floor)
    mask = min((noise[column] * problem.n / spacing[column]) ** 2 for column in floor)
    return lattice_lambda(data * mask / (data + mask), len(floor))
