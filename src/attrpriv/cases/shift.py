"""How the secrets show in the averages that are released: shifts, and the spread the data surely has.

For each secret and each member of Theta, a list of cases that together are at least as bad as every distribution of the class:

- one average, a secret of one column: the closed form of `assumptions.worst_case`, exact over the box;
- otherwise: the corners of the slopes' box with the residual covariance's lower bound (`assumptions.vector_box`), or no credit
  at all where that bound is not semidefinite (a covariance is never below zero). The distance is convex in the shift, so
  corners suffice;
- several secrets jointly (a ball or a box of values): the regression on all of them, for exactly stated moments only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attrpriv.assumptions.gaussian import Gaussian, Tolerance
from attrpriv.assumptions.vector_box import VectorBox, combined_box, is_itself, vector_box
from attrpriv.assumptions.worst_case import Extreme, candidates, witness
from attrpriv.cases.subset import Rows
from attrpriv.methods.base.column_plan import Design
from attrpriv.methods.base.gaussian_proof import GaussianCheck
from attrpriv.numerics.calibration.least_trace import least_trace
from attrpriv.numerics.rounding import SHY_UP, SOLVED_UP
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

MOST_CORNERS = 256
_SOLVED = 1e-9
# Shifts, residual, and whether the signs of the shifts stand for any other signs too.
Case = tuple["Matrix", "Matrix", bool]


@dataclass(frozen=True)
class ShiftCase:
    """One bad case: the averages move by `shifts` @ u, |u| <= 1; what the secret leaves open has a covariance of at least
    `residual`: of a row (`seen`), of the averages themselves (`seen_in`).

    A `signless` case stands for every choice of signs of its shifts, and holds with independent noise only.
    """

    secret: str
    theta: int
    shifts: Matrix
    residual: Matrix
    signless: bool = False

    def check(self) -> GaussianCheck:
        """The case of averages as evidence."""
        return GaussianCheck(
            secret=self.secret,
            theta=self.theta,
            shifts=tuple(tuple(float(x) for x in row) for row in self.shifts),
            credited=tuple(tuple(float(x) for x in row) for row in self.residual),
        )


def seen(problem: Problem, theta: Sequence[Gaussian], off: float = 0.0) -> list[ShiftCase]:
    """All cases; with `off`, every slope is off by this share more than the tolerance says."""
    cases: list[ShiftCase] = []
    for index, gaussian in enumerate(theta if problem.columns else ()):
        for secret in problem.secrets:
            if by_law(secret, theta):
                continue  # hidden by the law of the mixture (`methods.gaussian.noise`)
            cases += [ShiftCase(secret.text, index, *case) for case in _cases(problem, gaussian, secret, off)]
    return cases


def by_law(secret: Secret, theta: Sequence[Gaussian]) -> bool:
    """Whether a set-valued secret is hidden by the law of its mixture: its mean must be stated."""
    return secret.cases is not None and all(secret.single in gaussian.mean for gaussian in theta)


def seen_in(problem: Problem, rows: Rows, theta: Sequence[Gaussian], off: float = 0.0) -> list[ShiftCase]:
    """The same for averages over these rows. Those of one form have one slope, whichever rows they are over (`subset`).

    A closed form for one average holds for several of the same form: along any direction, what is asked of the noise is
    a slope^2 - b residual with a and b at least 0.
    """
    import numpy as np

    if not problem.columns:
        return []
    averages = {query.key: _over_all(query) for query in problem.queries if query.key is not None}
    asked = tuple(dict.fromkeys(averages.values()))
    plain = problem if asked == problem.queries else problem.model_copy(update={"queries": asked})
    index = {query: place for place, query in enumerate(plain.queries)}
    places = [index[averages[key]] for key in problem.columns]
    shared = (1 - problem.known_rows) * rows.shared()
    cases = seen(plain, theta, off)
    rowwise = {id(case.residual): case.residual for case in cases}  # most cases share one
    left = {key: shared * residual[np.ix_(places, places)] for key, residual in rowwise.items()}
    return [replace(case, shifts=case.shifts[places], residual=left[id(case.residual)]) for case in cases]


def _over_all(query: Query) -> Query:
    """The average of the same over all rows."""
    return query if query.kind == "avg" and query.where is None else replace(query, kind="avg", where=None)


def _cases(problem: Problem, gaussian: Gaussian, secret: Secret, off: float) -> list[Case]:
    import numpy as np

    gap = secret.gap_of_mean(problem.n) if len(secret.forms) == 1 else 1.0
    if gap == float("inf"):
        raise Refusal(
            Cause.NUMBERS,
            f"{secret.text}: unbounded cases need the column's mean in the assumption, for the law of the mixture.",
            needs="the column's mean",
        )
    if len(problem.columns) == 1 and secret.single is not None and len(problem.forms[0]) == 1:
        ((column, weight),) = problem.forms[0].items()
        extremes = [_off(extreme, column == secret.single, off) for extreme in candidates(gaussian, column, secret.single)]
        return [(np.array([[weight * e.slope * gap]]), np.array([[weight**2 * e.residual]]), False) for e in extremes]
    if len(secret.forms) > 1:
        return _joint(problem, gaussian, secret, off)
    box = box_of(problem, gaussian, secret.coefficients)
    if box is None:
        raise Refusal(
            Cause.NUMBERS, f"{secret.text}: its variance may be zero within the tolerance.", needs="a smaller tolerance"
        )
    return _corners(problem, secret, box, gap, off)


def box_of(problem: Problem, gaussian: Gaussian, secret: Mapping[str, float]) -> VectorBox | None:
    """The box of the averages that are asked for, of columns or of linear combinations of some."""
    if problem.combined:
        return combined_box(gaussian, problem.forms, secret)
    return vector_box(gaussian, problem.columns, secret)


def _off(extreme: Extreme, itself: bool, off: float) -> Extreme:
    """The same distribution with a steeper slope; a column's slope on itself cannot be off."""
    slope = extreme.slope * (1 + (0.0 if itself else off))
    residual = extreme.residual - (slope**2 - extreme.slope**2) * extreme.sd_secret**2
    return Extreme(slope, max(0.0, residual), extreme.sd_query, extreme.sd_secret)


def _corners(problem: Problem, secret: Secret, box: VectorBox, gap: float, off: float) -> list[Case]:
    import numpy as np

    # A column's slope on itself cannot be off.
    itself = [is_itself(column, secret.coefficients) for column in problem.columns]
    steepest = np.array([0.0 if own else max(map(abs, pair)) for own, pair in zip(itself, box.slopes, strict=True)])
    residual = semidefinite_or_nothing(box.residual - (2 * off + off**2) * box.spread * np.outer(steepest, steepest))
    ends = []
    for column, (low, high) in zip(problem.columns, box.slopes, strict=True):
        reach = 0.0 if is_itself(column, secret.coefficients) else off * max(abs(low), abs(high))
        ends.append(sorted({low - reach, high + reach}))
    if np.prod([len(pair) for pair in ends]) > MOST_CORNERS:
        # Too many corners: the largest slopes, with no credit and (see `noise_design`) independent noise, bound them all.
        return [(np.array([[max(map(abs, pair)) * gap] for pair in ends]), np.zeros_like(box.residual), True)]
    corners = {tuple(corner) for corner in itertools.product(*ends)}
    halves = [corner for corner in corners if tuple(-x for x in corner) not in corners or corner >= tuple(-x for x in corner)]
    return [(np.array([[slope * gap] for slope in corner]), residual, False) for corner in sorted(halves)]


def semidefinite_or_nothing(residual: Matrix) -> Matrix:
    """The matrix itself where it is a covariance; else nothing is credited."""
    import numpy as np

    return residual if _semidefinite(residual) else np.zeros_like(residual)


def _semidefinite(matrix: Matrix) -> bool:
    import numpy as np

    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    return bool((np.diag(matrix) >= 0).all() and np.linalg.eigvalsh(matrix / np.outer(scale, scale))[0] >= -1e-12)


def _joint(problem: Problem, gaussian: Gaussian, secret: Secret, off: float) -> list[Case]:
    """Several statistics hidden together: Gamma = L V G' (G V G')^-1, exact moments."""
    import numpy as np

    gamma, residual, explained = _regression(gaussian, problem.forms, secret)
    # The regression is solved in floats; what that can be off, for matrices this far from singular, is not credited.
    slack = _SOLVED * np.diag(np.diag(residual + explained))
    credited = semidefinite_or_nothing(residual - slack - (2 * off + off**2) * explained)
    return [(gamma @ np.array(steps) * (1 + off) * (1 + _SOLVED), credited, False) for steps in secret.joint_steps(problem.n)]


def _regression(gaussian: Gaussian, forms: Sequence[Mapping[str, float]], secret: Secret) -> tuple[Matrix, Matrix, Matrix]:
    """Slopes of the forms on all of the secret's statistics, what these leave open of a row, and what they explain."""
    import numpy as np

    t = gaussian.tolerance
    if t.sd or t.slope or t.correlation:
        raise Refusal(
            Cause.NUMBERS,
            f"{secret.text}: secrets hidden jointly need exactly stated moments (tolerance 0) in this version.",
            needs="tolerance 0",
        )
    # Where pairs are left out, only the columns at hand: what is not stated has no value.
    at_hand = dict.fromkeys((*(column for form in forms for column in form), *secret.columns))
    names = gaussian.columns if gaussian.complete else tuple(at_hand)
    sds = np.array([gaussian.sd_of(name) for name in names])
    covariance = gaussian.correlation_matrix(names) * np.outer(sds, sds)
    chosen = np.array([[form.get(name, 0.0) for name in names] for form in forms])
    hidden = np.array([[dict(form.coefficients).get(name, 0.0) for name in names] for form in secret.forms])
    spread = hidden @ covariance @ hidden.T
    unit = np.sqrt(np.diag(spread))
    if not (unit > 0).all() or np.linalg.cond(spread / np.outer(unit, unit)) > 1e6:
        raise Refusal(
            Cause.SECRET,
            f"{secret.text}: these statistics determine one another; protect fewer of them jointly.",
            needs="fewer secrets",
        )
    gamma = chosen @ covariance @ hidden.T @ np.linalg.inv(spread)
    explained = gamma @ hidden @ covariance @ chosen.T
    explained = (explained + explained.T) / 2
    return gamma, chosen @ covariance @ chosen.T - explained, explained


def joint_share(gaussian: Gaussian, columns: Sequence[str], secret: Secret) -> float:
    """The least eigenvalue of what jointly hidden statistics leave open of a row, in units of the columns' sds."""
    import numpy as np

    _, residual, _ = _regression(gaussian, [{column: 1.0} for column in columns], secret)
    sds = np.array([gaussian.sd_of(column) for column in columns])
    return float(np.linalg.eigvalsh(residual / np.outer(sds, sds))[0])


# ----------------------------------------------------------------------------------------------------------------------------
# How the noise is laid out over the averages: least total variance that hides every case.
#
# One average: the variance that the worst case needs, or the mask if that is more. Several: each its mask, plus correlated
# noise of least trace (in units of each average's own standard deviation), or independent noise with the distance shared
# equally, whichever adds less.


def design(cases: Sequence[ShiftCase], masks: Sequence[float], sds: Sequence[float], mu: float) -> Design:
    """The noise that keeps every case within the distance mu."""
    if not masks:
        return Design((), ())
    if len(masks) == 1:
        return Design((_scalar(cases, masks[0], mu) * SOLVED_UP,), ())
    independent = apart(cases, masks, mu)
    if any(case.signless for case in cases):
        return independent
    joint = _correlated(cases, masks, sds, mu)
    return joint if _cost(joint, sds) < _cost(independent, sds) else independent


def _scalar(cases: Sequence[ShiftCase], mask: float, mu: float) -> float:
    """One average; a ball of secrets moves it by the length of its row."""
    import numpy as np

    needs = [float(np.sum((case.shifts / mu) ** 2)) - float(case.residual[0, 0]) for case in cases]
    return max(mask, math.sqrt(max(0.0, *needs)) if needs else 0.0)


def apart(cases: Sequence[ShiftCase], masks: Sequence[float], mu: float) -> Design:
    """No credit, and the distance shared by the averages that move: d' D^-1 d <= mu^2 whatever their joint law is."""
    import numpy as np

    moves = np.array([np.linalg.norm(case.shifts, axis=1) for case in cases])
    moving = int((moves.max(axis=0) > 0).sum()) if len(cases) else 0
    share = mu / math.sqrt(max(1, moving))
    needed = moves.max(axis=0) / share if len(cases) else np.zeros(len(masks))
    return Design(tuple(max(mask, float(need)) * SOLVED_UP for mask, need in zip(masks, needed, strict=True)), ())


def _correlated(cases: Sequence[ShiftCase], masks: Sequence[float], sds: Sequence[float], mu: float) -> Design:
    import numpy as np

    unit = np.asarray(sds, dtype=np.float64)
    own = np.diag((np.asarray(masks) / unit) ** 2)
    conditions = []
    for case in cases:
        shift = case.shifts / unit[:, None] / mu
        conditions.append(shift @ shift.T - case.residual / np.outer(unit, unit) - own)
    noise = least_trace(conditions) if conditions else np.zeros((len(masks), len(masks)))
    values, vectors = np.linalg.eigh(noise)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    # Adding a little in every direction covers the rounding of the eigenvectors and of what was left out.
    factor = (vectors[:, kept] * np.sqrt(values[kept])) * unit[:, None] * math.sqrt(SHY_UP)
    slack = 1e-9 * max(0.0, float(values[-1]))
    independent = [math.sqrt((mask / u) ** 2 + slack) * u * SOLVED_UP for mask, u in zip(masks, sds, strict=True)]
    rows = tuple(tuple(float(x) for x in row) for row in factor)
    return Design(tuple(independent), rows if kept.any() else ())


def _cost(layout: Design, sds: Sequence[float]) -> float:
    return sum((scale / sd) ** 2 for scale, sd in zip(layout.scales(), sds, strict=True))


# ----------------------------------------------------------------------------------------------------------------------------
# How much an average varies, and how much noise it needs even where it is released alone.


def average_sds(problem: Problem, rows: Rows, theta: Sequence[Gaussian]) -> list[float]:
    """The largest stated standard deviation of each average."""
    asked = zip(problem.forms, rows.sizes, strict=True)
    return [max(gaussian.sd_of_form(form) for gaussian in theta) / math.sqrt(size) for form, size in asked]


def needed_noise(problem: Problem, theta: Sequence[Gaussian], column: str, rows: int, mu: float) -> float:
    """A noise scale that this column needs even alone, because some distribution of Theta is there to demand it."""
    needed = 0.0
    for gaussian in theta:
        for secret in problem.secrets:
            if by_law(secret, theta):
                continue
            if secret.single is not None and not problem.combined and column in gaussian.columns:
                needed = max(needed, _witnessed(problem, gaussian, column, secret, mu))
            else:
                needed = max(needed, _stated(problem, gaussian, column, rows, secret, mu))
    return math.sqrt(needed)


def _stated(problem: Problem, gaussian: Gaussian, column: str, rows: int, secret: Secret, mu: float) -> float:
    """What the stated moments, which are in Theta, demand: an average over `rows` rows has the variance V/rows - P/n."""
    exact = gaussian.model_copy(update={"tolerance": Tolerance(correlation=0.0)})
    query = replace(problem.average(column), where=None)
    alone = problem.model_copy(update={"queries": (query,), "secrets": (secret,)})
    apart = exact.sd_of_form(alone.forms[0]) ** 2 * (1 / rows - 1 / problem.n)
    return max(
        sum((float(x) / mu) ** 2 for x in case.shifts[0]) - _credit(problem) * float(case.residual[0, 0]) - apart
        for case in seen(alone, (exact,))
    )


def _credit(problem: Problem) -> float:
    """The factor from a row's residual variance to the variance of an average that an adversary cannot remove."""
    return (1 - problem.known_rows) / problem.n


def _witnessed(problem: Problem, gaussian: Gaussian, column: str, secret: Secret, mu: float) -> float:
    name = secret.single or ""
    stretch = (secret.gap_of_mean(problem.n) / mu) ** 2
    corners = (witness(gaussian, column, name, corner) for corner in candidates(gaussian, column, name))
    return max(corner.need(stretch, _credit(problem)) for corner in corners)
