"""Whether rounding of a coarse sensitive column shows in averages that follow it, in any combination of them.

Given recorded secrets, what a row has left includes slopes times rounding errors: uniform, not normal. Take all averages F,
each over m_k rows, and the parts a of the rows, r_a each, that lie in the same subsets. With b_kj the slope of average k on
statistic j, h_j its spacing, d_ja the vector of the h_j b_kj sqrt(r_a) [a in k]/m_k, and S the covariance of F given the
secret, with its noise,

    -120 x (excess kurtosis of c'F)  =  sum over a, j of (c'd_ja)^4 / r_a / (c'S c)^2
                                    <=  sum over a of (sum over j of (c'd_ja)^2)^2 / r_a / (c'S c)^2
                                    <=  lambda_max of the matrix of  sum over j, l of (d_ja' S^-1 d_lb)^2 / sqrt(r_a r_b)

for every c, and that may be 1/SMOOTH at most (docs/theory/recorded-values.md). For one average and one statistic it is
share^4/n, with `share` the slope times the spacing in units of what is left.

Over a box of slopes b +- t it is the fourth power of the sum of two fourth roots, that of b and that of t with |S^-1|.

What must never change: the condition is on the best combination of everything released so far, given all that a secret joins or
a clamp reads. That each average alone is smooth says nothing: of x = u + g and y = u, the difference is g.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.vector_box import covariance_floor, vector_box
from attrpriv.cases.gaussian import is_exact, row_floors
from attrpriv.cases.shift import semidefinite_or_nothing
from attrpriv.cases.subset import Rows
from attrpriv.numerics.rounding import SOLVED_UP, SOME_ULPS
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import quoted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

# share^4/n up to one over this: below, rounding of a sensitive column moves a log density by .001 at most where it counts.
SMOOTH = 1600
# Eigenvalues of a matrix with a unit diagonal, for each of its rows; and what solving in floats may have off.
_EIGEN, _SOLVED = 1e-13, 1e-14
# Statistics are regressed on together where their correlations have no eigenvalue below this.
_APART = 1e-6


@dataclass(frozen=True)
class _Tied:
    """How averages follow each statistic of a secret, within `off`; and matrices that what is left of a row is never below."""

    slopes: Matrix
    off: Matrix
    residuals: tuple[Matrix, ...]


def require_smooth(problem: Problem, rows: Rows, theta: Sequence[Gaussian], noise: Matrix, hidden: Sequence[Secret]) -> None:
    """A refusal where rounding of a secret's columns shows in these averages with noise of this covariance.

    `hidden` are the secrets, and all that a clamp reads as one.
    """
    normal = [gaussian for gaussian in theta if gaussian.tolerance.shape is None]  # else it is stated how far laws are from it
    if not (normal and problem.columns):
        return
    parts, by_row = _parts(rows), (1 - problem.known_rows) * rows.shared()
    for gaussian in normal:
        for secret in hidden:
            _require(problem, parts, by_row, noise, gaussian, secret)


def _require(
    problem: Problem, parts: tuple[Matrix, Matrix], by_row: Matrix, noise: Matrix, gaussian: Gaussian, secret: Secret
) -> None:
    (members, sizes), spacings = parts, [_spacing(problem, dict(form.coefficients)) for form in secret.forms]
    if not any(spacings):
        return
    tied = _tied(problem, gaussian, secret)
    if tied is None:
        return  # the variance of what is hidden may be zero: refused elsewhere
    spreads = [by_row * semidefinite_or_nothing(residual) + noise for residual in tied.residuals]
    together = _together(problem, gaussian, secret)

    def shows(places: Sequence[int]) -> bool:
        at, off = (_pulls(slopes[places], spacings, members[places], sizes) for slopes in (tied.slopes, tied.off))
        each = [_kurtosis(at, off, spread[places][:, places], sizes) for spread in spreads]
        return not min(each) * together * SOLVED_UP <= 1 / SMOOTH

    everything = list(range(len(problem.columns)))
    if shows(everything):
        alone = [place for place in everything if shows([place])][:1]
        names = ", ".join(problem.columns[place] for place in alone or everything)
        raise Refusal(
            Cause.PRECISION,
            f"{names}: {'is' if alone or len(everything) == 1 else 'are, together,'} so closely tied to {secret.text}, whose "
            f"values are recorded on a coarse spacing, that rounding shows in averages of {int(min(sizes))} rows. Use finer "
            "values, more rows, fewer columns, or a counts or groups assumption.",
            needs=("finer values", "more rows", "fewer columns"),
        )


def _spacing(problem: Problem, statistic: Mapping[str, float]) -> float:
    """That of a uniform error with the fourth cumulant of the errors of all its columns."""
    squares = ((weight * (problem.spacing(name)[0] or 0.0)) ** 2 for name, weight in statistic.items())
    return math.sqrt(math.hypot(*squares))


def _together(problem: Problem, gaussian: Gaussian, secret: Secret) -> float:
    """1 where errors of different columns are independent, as they are of columns that each vary by a spacing or more given
    the others; else they may all go the same way, and (sum of m)^4 is at most m^3 times the sum of fourth powers."""
    import numpy as np

    spacings = {name: problem.spacing(name)[0] or 0.0 for name in dict.fromkeys(secret.columns)}
    coarse = sum(1 for spacing in spacings.values() if spacing > 0)
    if coarse < 2:
        return 1.0
    floor = covariance_floor(gaussian, tuple(spacings), -1.0)
    sds = np.sqrt(np.diag(floor).clip(1e-300))
    unit = floor / np.outer(sds, sds)
    if np.linalg.eigvalsh(unit)[0] > _EIGEN * len(sds):
        own = sds / np.sqrt(np.diag(np.linalg.inv(unit)))
        if (own >= list(spacings.values())).all():
            return 1.0
    return float(coarse) * coarse * coarse


# ------------------------------------------------------------------------------------------------ slopes and what is left


def _tied(problem: Problem, gaussian: Gaussian, secret: Secret) -> _Tied | None:
    """A hidden column that is asked for is known, or on its own lattice: it has no error, whatever it is part of."""
    import numpy as np

    statistics = [dict(form.coefficients) for form in secret.forms]
    columns = problem.read_columns
    known = {column for statistic in statistics for column in statistic}
    whole = np.array([[form.get(column, 0.0) for column in columns] for form in problem.forms])
    moving = whole * np.array([column not in known for column in columns])
    found = _one(problem, gaussian, columns, secret) if len(statistics) == 1 else _several(problem, gaussian, columns, secret)
    if found is None:
        return None
    residuals = tuple(_combined(whole, residual) for residual in found.residuals)
    return _Tied(moving @ found.slopes, np.abs(moving) @ found.off, residuals)


def _combined(weights: Matrix, residual: Matrix) -> Matrix:
    """Of combinations of columns, rounded down."""
    import numpy as np

    made, size = weights @ residual @ weights.T, np.abs(weights) @ np.abs(residual) @ np.abs(weights).T
    return np.asarray((made + made.T) / 2 - SOME_ULPS * len(residual) ** 2 * np.diag(size.sum(axis=1)))


def _one(problem: Problem, gaussian: Gaussian, columns: Sequence[str], secret: Secret) -> _Tied | None:
    """One statistic: the box of the slopes; below what is left of a row are its box, and its least eigenvalue's share."""
    import numpy as np

    box = vector_box(gaussian, columns, secret.coefficients)
    if box is None:
        return None
    low, high = np.array(box.slopes).reshape(-1, 2).T
    (floor,) = row_floors(problem.model_copy(update={"secrets": (secret,)}), gaussian, columns) or [{}]
    # An eigenvalue of correlations is rounded; by how much is not counted on.
    sure = [floor.get(column, 0.0) - _EIGEN * len(columns) * gaussian.sd_range(column)[1] ** 2 for column in columns]
    least = np.diag(np.maximum(0.0, sure))
    return _Tied((low + high)[:, None] / 2, (high - low)[:, None] / 2, (box.residual, least))


def _several(problem: Problem, gaussian: Gaussian, columns: Sequence[str], secret: Secret) -> _Tied:
    if is_exact(gaussian):
        return _regressed(gaussian, columns, secret)
    return _roughly(problem, gaussian, columns, secret)


def _regressed(gaussian: Gaussian, columns: Sequence[str], secret: Secret) -> _Tied:
    """Several statistics, exactly stated moments: the regression on all of them, and what they leave open of a row."""
    import numpy as np

    names = tuple(dict.fromkeys((*columns, *secret.columns)))
    chosen = np.eye(len(names))[[names.index(column) for column in columns]]
    hidden = np.array([[dict(form.coefficients).get(name, 0.0) for name in names] for form in secret.forms])
    law = covariance_floor(gaussian, names, -1.0)  # less by its rounding, and Schur complements grow with the matrix
    unit = np.sqrt(np.diag(hidden @ law @ hidden.T).clip(1e-300))
    hidden = hidden / unit[:, None]
    spread, shared = hidden @ law @ hidden.T, chosen @ law @ hidden.T
    least = float(np.linalg.eigvalsh(spread)[0])
    if not least > _APART:
        raise Refusal(
            Cause.SECRET,
            f"{secret.text}: these statistics nearly determine one another; protect fewer of them.",
            needs="fewer secrets",
        )
    slopes = np.linalg.solve(spread, shared.T).T
    left = chosen @ law @ chosen.T - slopes @ shared.T
    # Solved in floats; what that can be off, for statistics this far from determining one another, is not counted.
    off = _SOLVED / least
    left = (left + left.T) / 2 - off * np.diag(chosen @ np.diag(law))
    alone = {name for form in secret.forms if len(form.coefficients) == 1 for name, _ in form.coefficients}
    known = np.array([column in alone for column in columns])
    left = np.where(known[:, None] | known[None, :], 0.0, left)
    return _Tied(slopes / unit, off * np.linalg.norm(slopes, axis=1)[:, None] / unit, (left,))


def _roughly(problem: Problem, gaussian: Gaussian, columns: Sequence[str], secret: Secret) -> _Tied:
    """Several columns under a tolerance. What is left of all columns given one of them is at least diag(floor), so it is also
    given more of them: of average k, and of a hidden column j given the others, of which slope_kj^2 times that is at most what
    column k varies by."""
    import numpy as np

    names = secret.columns
    if any([weight for _, weight in form.coefficients] != [1.0] for form in secret.forms):
        raise Refusal(
            Cause.NUMBERS,
            f"{secret.text}: several combinations of columns need exactly stated moments (tolerance 0).",
            needs="tolerance 0",
        )
    apart = problem.model_copy(update={"secrets": tuple(Secret(f"mean({quoted(name)})", within=1.0) for name in names)})
    floors = row_floors(apart, gaussian, tuple(dict.fromkeys((*columns, *names))))
    least = {name: min(floor[name] for floor in floors if name in floor) for name in (*columns, *names)}
    if not all(least[name] > _APART * gaussian.sd_range(name)[1] ** 2 for name in names):
        raise Refusal(
            Cause.SECRET,
            f"{secret.text}: these statistics may determine one another within the tolerance; protect fewer of them.",
            needs="fewer secrets",
        )
    steepest = [[gaussian.sd_range(column)[1] / math.sqrt(least[name]) for name in names] for column in columns]
    left = np.diag([0.0 if column in names else max(0.0, least[column]) for column in columns])
    return _Tied(np.zeros((len(columns), len(names))), np.array(steepest), (left,))


# --------------------------------------------------------------------------------------------------- the best combination


def _parts(rows: Rows) -> tuple[Matrix, Matrix]:
    """1/m where a part of the rows belongs to the m of an average, else 0; and how many rows each part has."""
    import numpy as np

    nested = rows.nested(range(len(rows.wheres)))
    parts = {where: own for where, (own, _) in nested.items() if own > 0}
    around = {where: {where} for where in parts}
    for where, found in around.items():
        inner: str | None = where
        while (outer := nested[inner][1]) != inner:
            found.add(outer)
            inner = outer
    members = [[(where in around[part]) / size for part in parts] for where, size in zip(rows.wheres, rows.sizes, strict=True)]
    return np.array(members), np.array(list(parts.values()), dtype=np.float64)


def _pulls(slopes: Matrix, spacings: Sequence[float], members: Matrix, sizes: Matrix) -> Matrix:
    """D: what the errors of each statistic in each part do to the averages."""
    import numpy as np

    return np.hstack([slopes[:, [j]] * spacing * members * np.sqrt(sizes) for j, spacing in enumerate(spacings)])


def _kurtosis(pulls: Matrix, off: Matrix, spread: Matrix, sizes: Matrix) -> float:
    """The largest over all combinations of the averages, from above."""
    import numpy as np

    scale = np.sqrt(np.diag(spread))
    values, vectors = np.linalg.eigh(spread / np.outer(scale, scale))
    # Where they determine one another up to rounding, anything may show.
    inverse = (vectors / np.maximum(values - _EIGEN * len(scale), 1e-30)) @ vectors.T
    at, beside = pulls / scale[:, None], off / scale[:, None]
    grams = at.T @ inverse @ at, beside.T @ np.abs(inverse) @ beside
    return float(sum(_largest(gram, sizes) ** 0.25 for gram in grams) ** 4)


def _largest(gram: Matrix, sizes: Matrix) -> float:
    import numpy as np

    parts = len(sizes)
    squares = (gram**2).reshape(-1, parts, len(gram) // parts, parts).sum(axis=(0, 2))
    if not np.isfinite(squares).all():
        return math.inf
    return max(0.0, float(np.linalg.eigvalsh(squares / np.sqrt(np.outer(sizes, sizes)))[-1]))
