"""What recorded values ask of averages of linear combinations: the mask of the lattice, and its conditions.

Averages F = C x of columns x recorded on spacings h. In units of the spacings, sums of rows lie on Z^m. Given a secret they are
normal on that lattice with a covariance of at least n l I (l the least eigenvalue of what the secret leaves open of a row, in
these units), and n F gets independent noise of standard deviations n s. Given the noisy answer the sums are normal on Z^m with

    covariance at least E = (I/(n l) + A A')^-1,     A_jk = C_kj h_j / (n s_k),     E >= e I,     e = 1/(1/(n l) + |A|^2)

and by Poisson summation the released density is its ideal times 1 +- x, x = (1 + 2q/(1-q))^m - 1, q = exp(-2 pi^2 e). For
columns as they are, A is diagonal and this is `recorded`. The spacing of the values of a combination is *not* what counts: x +
0.001 y of whole numbers lies on multiples of 0.001, but its sums bunch around whole numbers. So the mask of a combination is
that of |(C_kj h_j)_j|, the length of its coefficients in units of the spacings.

The conditions are those of `recorded` for every column that is read. A known column drops out of a combination, as a shift.
What must never change: a combination is refused unless the spacing of each of its columns is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrpriv.assumptions import Gaussian
from attrpriv.assumptions.vector_box import combined_box, sd_of_form
from attrpriv.assumptions.worst_case import least_joint_residual, least_residual
from attrpriv.calibration.lattice import lattice_lambda, mask_scale
from attrpriv.framework import Problem, Secret
from attrpriv.mechanisms.recorded import Recorded, require_fine, require_rows, rounding_shows
from attrpriv.mechanisms.refusal import Refusal
from attrpriv.queries.query import quoted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

_ROUND_UP = 1 + 1e-9


def form_masks(problem: Problem, theta: Sequence[Gaussian]) -> dict[str, float]:
    """The least noise on each average, of a column or of a combination."""
    _require_forms(problem, theta)
    spacings = _spacings(problem)
    declared = {column: problem.spacing(column)[1] for column in spacings}
    scales = {}
    for key, form in zip(problem.columns, problem.forms, strict=True):
        length = math.hypot(*(weight * spacings[column] for column, weight in form.items())) * _ROUND_UP
        sd = max(sd_of_form(gaussian, form) for gaussian in theta)
        scales[key] = mask_scale(length, all(declared[column] for column in form), problem.n, sd)
    return scales


def _require_forms(problem: Problem, theta: Sequence[Gaussian]) -> None:
    names = {*problem.types, *problem.bounds, *(column for gaussian in theta for column in gaussian.columns)}
    for key, form in zip(problem.columns, problem.forms, strict=True):
        if key in names and form != {key: 1.0}:
            raise Refusal(f"{key}: is a combination of columns, and the name of a column too. Rename that column.", usage=True)
        if not all(sd_of_form(gaussian, form) > 0 for gaussian in theta):
            raise Refusal(f"{key}: its standard deviation must be above 0 under the assumption. Got 0.", usage=True)
    combined = [secret.text for secret in problem.secrets if secret.single is None]
    if combined:
        raise Refusal(
            f"{combined[0]}: beside a combination of columns, secrets must be the mean or sum of one column. Ask for columns."
        )
    if any(secret.cases is not None for secret in problem.secrets):
        raise Refusal("cases are hidden by the law of one column's average; ask for a column, not for a combination.")
    if problem.individuals is not None:
        raise Refusal("individuals: single persons are not protected in averages of combinations in this version.")


def _spacings(problem: Problem) -> dict[str, float]:
    found = {column: problem.spacing(column)[0] for column in problem.read_columns}
    unknown = [column for column, spacing in found.items() if spacing is None]
    if unknown:
        raise Refusal(
            f"resolution: an average of a combination needs the spacing of each of its columns. Got none of "
            f"{', '.join(map(quoted, unknown))}. Declare resolution: {{{unknown[0]}: spacing}}.",
            usage=True,
        )
    return {column: spacing for column, spacing in found.items() if spacing is not None}


def recorded_forms(problem: Problem, theta: Sequence[Gaussian], noise: Mapping[str, float]) -> Recorded:
    """The charge for recorded values under noise of these scales; a refusal where the conditions fail."""
    require_rows(problem, theta)
    spacings = _spacings(problem)
    for gaussian in theta:
        for column in dict.fromkeys((*problem.read_columns, *(c for secret in problem.secrets for c in secret.columns))):
            require_fine(problem, gaussian, column)
    charges = [_charge(problem, gaussian, secret, spacings, noise) for gaussian in theta for secret in problem.secrets]
    charge = max(charges, default=0.0)
    if not math.isfinite(charge):
        raise Refusal("the mask does not cover the spacing of the values. Declare resolution, or use more rows.")
    return Recorded(charge, spacings)


def _charge(
    problem: Problem, gaussian: Gaussian, secret: Secret, spacings: Mapping[str, float], noise: Mapping[str, float]
) -> float:
    import numpy as np

    others = [column for column in problem.read_columns if column != secret.single]
    if not others:
        return 0.0
    least = _least(gaussian, others, secret.single or "", spacings)
    if not least >= 1:
        raise Refusal(
            f"{', '.join(others)}: what {secret.text} leaves open of a row must have a standard deviation of at least the "
            f"spacing of the values in every direction. Got {math.sqrt(max(0.0, least)):.3g} of it; declare a finer "
            "resolution or a smaller tolerance, or ask for fewer columns at once."
        )
    pulls = np.array(
        [
            [form.get(column, 0.0) * spacings[column] / (problem.n * noise[key]) for column in others]
            for key, form in zip(problem.columns, problem.forms, strict=True)
        ]
    )
    pull = float(np.linalg.norm(pulls, 2)) * _ROUND_UP
    data = least * problem.n * (1 - problem.known_rows)
    return lattice_lambda(1 / (1 / data + pull**2) / _ROUND_UP, len(others))


def _least(gaussian: Gaussian, columns: Sequence[str], secret: str, spacings: Mapping[str, float]) -> float:
    """The least eigenvalue of what the secret leaves open of a row, in units of the spacings, from below."""
    if len(columns) == 1:
        return least_residual(gaussian, columns[0], secret) / spacings[columns[0]] ** 2
    share = least_joint_residual(gaussian, columns, secret)
    return share * min((gaussian.sd_range(column)[0] / spacings[column]) ** 2 for column in columns)


def require_smooth_forms(problem: Problem, theta: Sequence[Gaussian], scales: Mapping[str, float]) -> None:
    """A refusal where rounding of a sensitive column shows in averages closely tied to it (`recorded.require_smooth`).

    A sensitive column that is itself part of a combination is known exactly; only what the others follow it by counts.
    """
    for gaussian in theta:
        for secret in problem.secrets if gaussian.tolerance.shape is None else ():
            hidden = secret.single or ""
            spacing = problem.spacing(hidden)[0] or 0.0
            for key, form in zip(problem.columns, problem.forms, strict=True):
                rest = {column: weight for column, weight in form.items() if column != hidden}
                box = combined_box(gaussian, [rest], {hidden: 1.0}) if rest else None
                if box is not None:
                    rounding_shows(problem, key, secret, box, spacing, scales[key])
