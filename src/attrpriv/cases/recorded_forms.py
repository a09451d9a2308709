"""What recorded values ask of averages of linear combinations, and of averages over subsets: the mask, and its conditions.

Averages F_k = c_k x over the rows S_k, m_k of the n, of columns x recorded on spacings h. Any two subsets are apart, or one is
inside the other. In units of the spacings, the sums of a column over the rows that a subset has beyond those inside it lie on
Z. Given a secret they are normal on that lattice with a covariance of at least l diag(r): l the least eigenvalue of what the
secret leaves open of a row, in these units, and r the numbers of these rows. m_k F_k is the sum over a subset and all inside.
In the coordinates z of the dual lattice that belong to subsets (u = U z with whole U and U^-1) each average pulls at its own
subset alone. The density of what is released is its ideal times 1 +- x, x = (1 + 2q/(1-q))^d - 1,

    q = exp(-2 pi^2 e),   e = 1/(|U^-1 diag(1/r) U^-T| / l + |A|^2),     A_jk = c_kj h_j / (m_k s_k), subset by subset

for d pairs of a column and a subset (docs/theory/recorded-values.md). Over all rows U is 1 and r is n; for columns as they are
A is diagonal, and this is `recorded`. The spacing of the values of a combination is *not* what counts: x + 0.001 y of whole
numbers lies on multiples of 0.001, but its sums bunch around whole numbers. So the mask of a combination is that of
|(c_kj h_j)_j|, the length of its coefficients in units of the spacings.

The conditions are those of `recorded` for every column that is read. A known column drops out of a combination, as a shift.
What must never change: a combination is refused unless the spacing of each of its columns is known, and so are averages of a
column over subsets that make up another one with it: each has rows of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.gaussian import UNDECLARED, ValueLattice, require_fine, require_rows, row_floors
from attrpriv.cases.subset import Rows
from attrpriv.numerics.calibration.gaussian import lattice_lambda, mask_scale
from attrpriv.numerics.rounding import SOLVED_UP
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, unmasked
from attrpriv.queries.query import quoted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

# Of each subset of which a column is averaged: the rows beyond those inside it, and the subset around it.
Nested = Mapping[str | None, tuple[int, str | None]]


def form_masks(problem: Problem, theta: Sequence[Gaussian]) -> dict[str, float]:
    """The least noise on each average, of a column or of a combination, over all rows or over some."""
    _require_forms(problem, theta)
    _require_spacings(problem)
    scales = {}
    for key, form, rows in zip(problem.columns, problem.forms, Rows.of(problem).sizes, strict=True):
        spacings = {column: problem.spacing(column) for column in form}
        parts = [weight * spacing for column, weight in form.items() if (spacing := spacings[column][0]) is not None]
        length = math.hypot(*parts) * SOLVED_UP if parts else None
        sd = max(gaussian.sd_of_form(form) for gaussian in theta)
        scales[key] = mask_scale(length, all(declared for _, declared in spacings.values()), rows, sd)
    return scales


def _require_forms(problem: Problem, theta: Sequence[Gaussian]) -> None:
    names = {*problem.types, *problem.bounds, *(column for gaussian in theta for column in gaussian.columns)}
    for key, form, where in zip(problem.columns, problem.forms, problem.wheres, strict=True):
        if key in names and where is None and form != {key: 1.0}:
            raise Refusal(
                Cause.MISTAKE,
                f"{key}: is a combination of columns, and the name of a column too. Rename that column.",
                needs="another name of the column",
            )
        if not all(gaussian.sd_of_form(form) > 0 for gaussian in theta):
            raise Refusal(
                Cause.NUMBERS,
                f"{key}: its standard deviation must be above 0 under the assumption. Got 0.",
                needs="a standard deviation above 0",
                usage=True,
            )
    for secret in problem.secrets:
        parts = [dict(form.coefficients) for form in secret.forms]
        if problem.combined and secret.single is None:
            raise Refusal(
                Cause.SECRET,
                f"{secret.text}: beside a combination of columns, secrets must be the mean or sum of one column. "
                "Ask for columns.",
                needs="the average of each column",
            )
        if any(len(part) > 1 and set(part) & set(problem.read_columns) for part in parts):
            raise Refusal(
                Cause.SECRET,
                f"{secret.text}: combines a column that is asked for; beside averages over a subset it must not.",
                needs="another column",
            )
    if any(secret.cases is not None for secret in problem.secrets):
        raise Refusal(
            Cause.STATISTIC,
            "cases are hidden by the law of one column's average; ask for a column, not for a combination.",
            needs="the average of one column",
        )
    if problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS,
            "individuals: single persons are not protected in averages of combinations in this version.",
            needs="no individuals",
        )


def _require_spacings(problem: Problem) -> None:
    combined = {column for form in problem.forms if list(form.values()) != [1.0] for column in form}
    unknown = [column for column in problem.read_columns if column in combined and problem.spacing(column)[0] is None]
    if unknown:
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"resolution: an average of a combination needs the spacing of each of its columns. Got none of "
            f"{', '.join(map(quoted, unknown))}. Declare resolution: {{{unknown[0]}: spacing}}.",
            needs="resolution",
            usage=True,
        )


def recorded_forms(problem: Problem, theta: Sequence[Gaussian], noise: Mapping[str, float]) -> ValueLattice:
    """The charge for recorded values under noise of these scales; a refusal where the conditions fail."""
    rows = Rows.of(problem)
    nested = {column: _nested(problem, rows, column) for column in problem.read_columns}
    require_rows(problem, theta, min((own for family in nested.values() for own, _ in family.values()), default=problem.n))
    for gaussian in theta:
        for column in dict.fromkeys((*problem.read_columns, *(c for secret in problem.secrets for c in secret.columns))):
            require_fine(problem, gaussian, column)
    floors = [floor for gaussian in theta for floor in row_floors(problem, gaussian, problem.read_columns)]
    spacings = {column: _spacing(problem, theta, rows, column, noise, floors) for column in problem.read_columns}
    pulls = _pulls(problem, rows, spacings, noise)
    charge = max((_charge(problem, floor, spacings, nested, pulls) for floor in floors), default=0.0)
    if not math.isfinite(charge):
        raise unmasked()
    return ValueLattice(charge, spacings)


def _nested(problem: Problem, rows: Rows, column: str) -> Nested:
    """The subsets that a column is averaged over; each must have rows of its own."""
    found = rows.nested([k for k, form in enumerate(problem.forms) if column in form])
    for where, (own, _) in found.items():
        if own < 2:
            name = f"all {problem.n} rows" if where is None else where
            raise Refusal(
                Cause.TOGETHER,
                f"the averages of {column} over {name} and over subsets that are nearly all of these rows ({own} are left) "
                "cannot both be released. What was not released yet follows from the others, weighted by their sizes, which "
                "are public; or ask for fewer subsets.",
                needs="fewer subsets",
            )
    return found


def _spacing(
    problem: Problem,
    theta: Sequence[Gaussian],
    rows: Rows,
    column: str,
    noise: Mapping[str, float],
    floors: Sequence[Mapping[str, float]],
) -> float:
    """The spacing of a column, or up to which one the masks of its averages cover it."""
    spacing, _ = problem.spacing(column)
    if spacing is not None:
        return spacing
    read = zip(problem.columns, problem.forms, rows.sizes, strict=True)
    covered = [noise[key] * size / UNDECLARED for key, form, size in read if column in form]
    least = min((floor[column] for floor in floors if column in floor), default=math.inf)
    sd = min(gaussian.sd_range(column)[0] for gaussian in theta)
    return min(*covered, sd / 2, math.sqrt(max(0.0, least)) / SOLVED_UP)


def _pulls(
    problem: Problem, rows: Rows, spacings: Mapping[str, float], noise: Mapping[str, float]
) -> dict[str | None, list[dict[str, float]]]:
    """How much the noisy averages over each subset pull at the sums of each column."""
    found: dict[str | None, list[dict[str, float]]] = {}
    for key, form, where, size in zip(problem.columns, problem.forms, rows.wheres, rows.sizes, strict=True):
        pull = {column: weight * spacings[column] / (size * noise[key]) for column, weight in form.items()}
        found.setdefault(where, []).append(pull)
    return found


def _charge(
    problem: Problem,
    floor: Mapping[str, float],
    spacings: Mapping[str, float],
    nested: Mapping[str, Nested],
    pulls: Mapping[str | None, Sequence[Mapping[str, float]]],
) -> float:
    import numpy as np

    least = min(floor[column] / spacings[column] ** 2 if spacings[column] else 0.0 for column in floor)
    if not least >= 1:
        raise Refusal(
            Cause.PRECISION,
            f"{', '.join(floor)}: what a secret leaves open of a row must have a standard deviation of at least the "
            f"spacing of the values in every direction. Got {math.sqrt(max(0.0, least)):.3g} of it; declare a finer "
            "resolution or a smaller tolerance, or ask for fewer columns at once.",
            needs=("a finer resolution", "a smaller tolerance", "fewer columns"),
        )
    matrices = [np.array([[pull.get(column, 0.0) for column in floor] for pull in own]) for own in pulls.values()]
    pull = max(float(np.linalg.norm(matrix, 2)) for matrix in matrices) * SOLVED_UP
    spread = max(_spread(nested[column]) for column in floor) * SOLVED_UP
    data = spread / (least * (1 - problem.known_rows))
    return lattice_lambda(1 / (data + pull**2) / SOLVED_UP, sum(len(nested[column]) for column in floor))


def _spread(nested: Nested) -> float:
    """|U^-1 diag(1/r) U^-T|: in the coordinates of subsets, how far the rows' own spread leaves the sums open, inverted."""
    import numpy as np

    names = list(nested)
    steps = np.eye(len(names))
    for k, (_, around) in enumerate(nested.values()):
        if around != names[k]:
            steps[k, names.index(around)] = -1.0
    return float(np.linalg.norm(steps / np.sqrt([own for own, _ in nested.values()]), 2)) ** 2
