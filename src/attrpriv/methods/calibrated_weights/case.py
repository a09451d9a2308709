"""What a problem asks of calibrated weights: sensitive columns, the values to hide, their covariance from below, the masks.

| needed | from |
|---|---|
| t0 | the assumption's mean of each sensitive column |
| a lower bound on their covariance, in the semidefinite order | sds and correlations, less their tolerance |
| a range for each secret | `between`, or the hull of bounded `cases` |

Slopes and residual variances are not among it. Those that the policy states serve the expected error, and to check that what
the sensitive columns leave open of a row is not finer than the spacing of the recorded values.

The lower bound. In units of the stated sds every entry of the covariance lies in an interval [c - r, c + r], and a symmetric
matrix with entries at most r_ij in size is at least -diag(sum over j of r_ij). So c - diag(sum of r) is below every member.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.worst_case import correlation_range
from attrpriv.cases.gaussian import ValueLattice, gaussians, require_fine, require_rows
from attrpriv.errors import CertificateError
from attrpriv.methods.calibrated_weights.proof import LEAST_REST, MOST_JOINT, WeightedColumn, WeightsCheck
from attrpriv.numerics.calibration.gaussian import lattice_lambda, mask_scale
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, unmasked
from attrpriv.problem.secret import Secret

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

# A column is read on steps between 2^-31 and 2^-30 of its standard deviation.
_STEP_BITS = 30
# An undeclared spacing is covered up to this many masks.
_UNDECLARED = 1.5
_ROUNDING = 1e-12
# Values on an undeclared spacing: of few rows the sum of squares has to be nearly chi-square far into its lower tail.
_FEW_ROWS, _FEW_FINER = 100, 50


@dataclass(frozen=True)
class WeightsCase:
    """The problem, as far as calibrated weights look at it."""

    theta: tuple[Gaussian, ...]
    sensitive: tuple[str, ...]
    target: tuple[float, ...]
    checks: tuple[WeightsCheck, ...]
    masks: tuple[float, ...]
    lattice: ValueLattice


def weights_case(problem: Problem) -> WeightsCase:
    """Everything that is needed, or the reason why it is not there."""
    theta = gaussians(problem)
    sensitive = tuple(dict.fromkeys(column for secret in problem.secrets for column in secret.columns))
    _require_covered(problem, theta, sensitive)
    target = tuple(theta[0].mean[column] for column in sensitive)
    ranges = {secret.text: _ranges(secret, problem.n) for secret in problem.secrets}
    checks = [_check(theta, i, sensitive, target, s, ranges[s.text]) for i in range(len(theta)) for s in problem.secrets]
    for check in checks:
        _require_independent(check, problem.n, target)
    masks = tuple(_mask(problem, theta, column) for column in problem.columns)
    return WeightsCase(theta, sensitive, target, tuple(checks), masks, _recorded(problem, theta, sensitive, masks))


def _require_covered(problem: Problem, theta: Sequence[Gaussian], sensitive: Sequence[str]) -> None:
    if any(gaussian.tolerance.shape is not None for gaussian in theta):
        raise Refusal(
            Cause.SHAPE,
            "rows are assumed exactly normal here; a shape tolerance is what gaussian_approximation is for.",
            needs="mechanism gaussian_approximation",
        )
    if problem.known_rows:
        raise Refusal(
            Cause.PERSONS,
            "known_rows: whoever knows some rows is not covered, because the weights depend on every row.",
            needs="known_rows 0",
        )
    if problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS,
            "individuals: single rows are not covered, because one row can change every weight.",
            needs="no individuals",
        )
    itself = [column for column in problem.columns if column in sensitive]
    if itself:
        raise Refusal(
            Cause.STATISTIC,
            f"{itself[0]} itself is sensitive: weights that hide its mean would answer with a public number.",
            needs="a column that is no secret",
        )
    if not problem.columns:
        raise Refusal(
            Cause.STATISTIC,
            "answers averages and sums of columns; the number of rows alone needs no mechanism.",
            needs="an average or a sum",
        )
    for column in sensitive:
        if any(column not in gaussian.mean for gaussian in theta):
            raise Refusal(
                Cause.NUMBERS,
                f"assume.mean: needs the mean of {column}, as the target of the weights. Got none.",
                needs=f"the mean of {column}",
            )
    if len(sensitive) > MOST_JOINT:
        raise Refusal(Cause.SIZE, f"is for up to {MOST_JOINT} sensitive columns. Got {len(sensitive)}.", needs="fewer secrets")
    least = len(sensitive) + len(problem.columns) + LEAST_REST + 1
    if problem.n < least:
        raise Refusal(Cause.SIZE, f"needs at least {least} rows for these columns. Got {problem.n}.", needs="more rows")


# ----------------------------------------------------------------------------------------------------------- the secrets


def _ranges(secret: Secret, n: int) -> tuple[tuple[float, float], ...]:
    """The range of each of the secret's means, outwards."""
    if secret.cases is not None:
        ends = [end for case in secret.case_sets for end in case.ends]
        found = [(min(ends), max(ends))] if all(case.bounded for case in secret.case_sets) else []
    elif isinstance(secret.between, Mapping):
        found = [secret.between[form.text] for form in secret.forms]
    else:
        found = [] if secret.ends is None else [secret.ends]
    if not found:
        raise Refusal(
            Cause.SECRET,
            f"{secret.text}: needs a range of its values (between: [low, high]), outside of which it may fail.",
            needs="between: [low, high]",
        )
    return tuple(_of_mean(*ends, form.weight(n)) for ends, form in zip(found, secret.forms, strict=True))


def _of_mean(low: float, high: float, weight: int) -> tuple[float, float]:
    if weight == 1:
        return low, high
    return math.nextafter(low / weight, -math.inf), math.nextafter(high / weight, math.inf)


def _check(
    theta: Sequence[Gaussian],
    index: int,
    sensitive: Sequence[str],
    target: Sequence[float],
    secret: Secret,
    ranges: tuple[tuple[float, float], ...],
) -> WeightsCheck:
    gaussian = theta[index]
    reach = []
    for column, aim in zip(sensitive, target, strict=True):
        off = abs(gaussian.mean[column] - aim) + gaussian.tolerance.mean * gaussian.sd_range(column)[1]
        reach.append(off * (1 + _ROUNDING))
    return WeightsCheck(
        secret=secret.text,
        theta=index,
        forms=tuple(tuple(dict(form.coefficients).get(column, 0.0) for column in sensitive) for form in secret.forms),
        ranges=ranges,
        low=lower_covariance(gaussian, sensitive),
        reach=tuple(reach),
    )


def lower_covariance(gaussian: Gaussian, columns: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    """A matrix that the covariance of these columns is never below, in the semidefinite order, over the whole box."""
    import numpy as np

    spread, p = gaussian.tolerance.sd, len(columns)
    centre, radius = np.zeros((p, p)), np.zeros((p, p))
    for i, first in enumerate(columns):
        for j, second in enumerate(columns):
            rho = (1.0, 1.0) if i == j else correlation_range(gaussian, first, second)
            ends = [r * s for r in rho for s in ((1 - spread) ** 2, (1 + spread) ** 2)]
            centre[i, j], radius[i, j] = (min(ends) + max(ends)) / 2, (max(ends) - min(ends)) / 2
    low = (centre + centre.T) / 2 - np.diag(np.maximum(radius, radius.T).sum(axis=1) + _ROUNDING * p)
    if not np.linalg.eigvalsh(low)[0] > 1e-9:
        raise Refusal(
            Cause.NUMBERS,
            f"the covariance of {', '.join(columns)} may be singular within the tolerance.",
            needs="a smaller tolerance",
        )
    sds = np.array([gaussian.sd_of(column) for column in columns])
    scaled = low * np.outer(sds, sds)
    return tuple(tuple(float(x) for x in row) for row in (scaled + scaled.T) / 2)


def _require_independent(check: WeightsCheck, n: int, target: Sequence[float]) -> None:
    """Statistics that determine one another have no joint range, and one direction of it would be without spread."""
    try:
        check.failure(n, target)
        return
    except CertificateError:
        pass
    raise Refusal(
        Cause.SECRET,
        f"{check.secret}: these statistics determine one another; protect fewer of them jointly.",
        needs="fewer secrets",
    )


# ------------------------------------------------------------------------------------------- grids, masks, recorded values


def read_on(gaussian: Gaussian, column: str, fill: float | None) -> WeightedColumn:
    """The public grid on which a column is read: around its mean where that is stated."""
    step = _step(gaussian.sd_of(column))
    return WeightedColumn(column=column, centre=round(gaussian.mean.get(column, 0.0) / step) * step, step=step, fill=fill)


def _step(sd: float) -> float:
    return math.ldexp(1.0, math.frexp(sd)[1] - 1 - _STEP_BITS)


def _spacing(problem: Problem, theta: Sequence[Gaussian], column: str) -> tuple[float | None, bool]:
    """The spacing of a column as it is read: no finer than the steps."""
    spacing, declared = problem.spacing(column)
    return (max(spacing, _step(theta[0].sd_of(column))) if spacing is not None else None), declared


def _mask(problem: Problem, theta: Sequence[Gaussian], column: str) -> float:
    return mask_scale(*_spacing(problem, theta, column), problem.n, max(gaussian.sd_of(column) for gaussian in theta))


def _recorded(problem: Problem, theta: Sequence[Gaussian], sensitive: Sequence[str], masks: Sequence[float]) -> ValueLattice:
    """The charge for recorded values, for whatever residual a row really has, as long as it is not below the spacing."""
    require_rows(problem, theta, problem.n)
    for gaussian in theta:
        for column in (*problem.columns, *sensitive):
            require_fine(problem, gaussian, column)
    _require_fine_together(problem, theta, sensitive)
    floors = {c: min(_left_open(g, problem.columns, sensitive) * g.sd_of(c) ** 2 for g in theta) for c in problem.columns}
    spacing = {}
    for column, mask in zip(problem.columns, masks, strict=True):
        known, declared = _spacing(problem, theta, column)
        if not floors[column] > 0 or (known is not None and floors[column] < known**2):
            raise Refusal(
                Cause.PRECISION,
                f"{column}: what the sensitive columns leave open of a row must have a standard deviation of at least the "
                f"spacing of the values. Got {math.sqrt(max(0.0, floors[column])):g} by the stated moments.",
                needs="finer values",
            )
        covered = min(mask * problem.n / _UNDECLARED, min(g.sd_range(column)[0] for g in theta) / 2, math.sqrt(floors[column]))
        spacing[column] = known if declared and known is not None else max(known or 0.0, covered)
    own = min((mask * problem.n / spacing[column]) ** 2 for column, mask in zip(problem.columns, masks, strict=True))
    charge = lattice_lambda(problem.n * own / (problem.n + own), len(masks))
    if not math.isfinite(charge):
        raise unmasked()
    return ValueLattice(charge, spacing)


def _require_fine_together(problem: Problem, theta: Sequence[Gaussian], sensitive: Sequence[str]) -> None:
    """In no direction may the sensitive columns vary by less than two spacings: whole numbers a and b that nearly always agree
    are no normal pair, and their matrix is singular, which is a failure, unless mean(a - b) differs from 0."""
    left = together(theta, sensitive)
    for column in sensitive:
        spacing, _ = problem.spacing(column)
        if spacing is not None and len(sensitive) > 1 and left[column] < 2 * spacing:
            raise Refusal(
                Cause.PRECISION,
                f"{column}: what sensitive columns vary by apart from one another must be at least twice the spacing of the "
                f"values ({spacing:g}), or they are not nearly normal together. Got {left[column]:g}; protect fewer of them.",
                needs="fewer secrets",
            )


def together(theta: Sequence[Gaussian], sensitive: Sequence[str]) -> dict[str, float]:
    """For each sensitive column a standard deviation, such that the covariance is at least the diagonal of their squares."""
    import numpy as np

    found = dict.fromkeys(sensitive, math.inf)
    for gaussian in theta:
        sds = np.array([gaussian.sd_of(column) for column in sensitive])
        least = np.linalg.eigvalsh(np.array(lower_covariance(gaussian, sensitive)) / np.outer(sds, sds))[0]
        for column, sd in zip(sensitive, sds, strict=True):
            found[column] = min(found[column], math.sqrt(max(0.0, float(least))) * float(sd))
    return found


def undeclared_spacing(problem: Problem, theta: Sequence[Gaussian], sensitive: Sequence[str]) -> dict[str, float]:
    """Up to which spacing sensitive columns are covered that have none declared: half of what they vary by; few rows: finer."""
    finer = _FEW_FINER if problem.n < _FEW_ROWS else 1
    left = together(theta, sensitive)
    return {column: left[column] / 2 / finer for column in sensitive if problem.spacing(column)[0] is None}


def regression(gaussian: Gaussian, columns: Sequence[str], sensitive: Sequence[str]) -> tuple[Matrix, Matrix]:
    """By the stated moments: slopes of the columns on all sensitive ones, a row for each, and the residual covariance."""
    import numpy as np

    names = (*columns, *sensitive)
    sds = np.array([gaussian.sd_of(name) for name in names])
    covariance = gaussian.correlation_matrix(names) * np.outer(sds, sds)
    k = len(columns)
    unit = sds[k:]
    inner = np.linalg.inv(covariance[k:, k:] / np.outer(unit, unit)) / np.outer(unit, unit)
    slopes = covariance[:k, k:] @ inner
    return slopes, covariance[:k, :k] - slopes @ covariance[k:, :k]


def _left_open(gaussian: Gaussian, columns: Sequence[str], sensitive: Sequence[str]) -> float:
    """The least eigenvalue of the residual covariance in units of the columns' sds."""
    import numpy as np

    sds = np.array([gaussian.sd_of(column) for column in columns])
    return float(np.linalg.eigvalsh(regression(gaussian, columns, sensitive)[1] / np.outer(sds, sds))[0])
