"""What sensitive statistics tell of the averages under a Gaussian assumption: the slopes to take back, and what is left.

For averages F and sensitive statistics G (each secret's own, all read), over the box of each member of Theta:

| symbol | here |
|---|---|
| B0 | `Told.slopes`: the slopes that are taken back, in the middle of the class |
| kappa d, B_theta kappa d | how G and F move with one secret over its widest pair; `moves`: what B0 takes back of it |
| S_theta | `credited`: what F surely varies by itself, given all of G |

(B_theta - B0) kappa_i = slope of F on g_i - B0 (slopes of G on g_i): no regression on several statistics at once is needed for
it. S_theta given several statistics is bounded by the Schur complement of a matrix that the covariance is never below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.vector_box import VectorBox, covariance_floor, is_itself, vector_box
from attrpriv.assumptions.worst_case import correlation_range, least_residual
from attrpriv.cases.gaussian import is_exact
from attrpriv.cases.shift import semidefinite_or_nothing
from attrpriv.cases.subset import Rows
from attrpriv.methods.transport.proof import MovedRead, Moves, TransportCheck
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

Coefficients = Mapping[str, float]
Terms = tuple[tuple[str, float], ...]
Vector = tuple[float, ...]
# Slopes are rounded; in units of themselves.
_ROUNDING = 1e-14
# A regression on several statistics is solved in floats: of its size, for each unit of the condition number.
_SOLVED = 1e-14
# Where a set of values has no end, this many standard errors beyond its ends and the mean: what lies further has no weight.
_FAR = 200.0


@dataclass(frozen=True)
class Told:
    """The statistics that are read, the slopes that are taken back, and how F moves with each secret."""

    statistics: tuple[Coefficients, ...]
    slopes: Matrix
    checks: tuple[TransportCheck, ...]
    wander: Matrix
    bias: Matrix

    @cached_property
    def moves(self) -> tuple[Moves, ...]:
        """What is taken back, and what is not, of each check's widest pair."""
        return tuple(check.moves(self.slopes.tolist()) for check in self.checks)


def statistics_of(problem: Problem) -> tuple[Coefficients, ...]:
    """The distinct statistics behind the secrets; a multiple of one is no other."""
    found: dict[Terms, Coefficients] = {}
    for secret in problem.secrets:
        for form in secret.forms:
            terms = dict(sorted(form.coefficients))
            lead = next(iter(terms.values()))
            found.setdefault(tuple((c, w / lead) for c, w in terms.items()), dict(form.coefficients))
    return tuple(found.values())


def told(
    problem: Problem, theta: Sequence[Gaussian], masks: Mapping[str, float], off: float = 0.0, taken: Sequence[Vector] = ()
) -> Told:
    """Everything that a clamp is made from; with `off`, every slope is off by this share more than the tolerance says.

    `taken` are the slopes of the first columns, where an earlier release has used some: they are what they were.
    """
    statistics = statistics_of(problem)
    slopes = _slopes(problem, theta, statistics)
    for k, row in enumerate(taken):
        slopes[k] = row
    checks: list[TransportCheck] = []
    for index, member in enumerate(theta):
        credited = _credited(problem, member, statistics, slopes, off)
        rows = tuple(tuple(float(x) for x in row) for row in credited)
        checks += [_check(problem, index, member, secret, statistics, rows, off) for secret in problem.secrets]
    return Told(
        statistics, slopes, tuple(checks), _wander(problem, theta, statistics, slopes, masks), _bias(theta, statistics, slopes)
    )


def told_over(problem: Problem, rows: Rows, theta: Sequence[Gaussian], masks: Mapping[str, float], off: float = 0.0) -> Told:
    """The same for averages over these rows: the slopes are those of their columns, what is left is w o R (`subset`)."""
    import numpy as np

    if not any(rows.wheres):
        return told(problem, theta, masks, off)
    columns = [next(iter(form)) for form in problem.forms]
    plain = problem.model_copy(update={"queries": tuple(Query("avg", column) for column in dict.fromkeys(columns))})
    whole = told(plain, theta, masks, off)
    places = [plain.columns.index(column) for column in columns]
    shared = rows.shared() * problem.n
    credited = [shared * np.array(check.credited)[np.ix_(places, places)] for check in whole.checks]
    checks = tuple(_spread_out(check, places, left) for check, left in zip(whole.checks, credited, strict=True))
    return Told(whole.statistics, whole.slopes[places], checks, whole.wander[places], whole.bias[places])


def _spread_out(check: TransportCheck, places: Sequence[int], credited: Matrix) -> TransportCheck:
    changes = {
        "own": tuple(check.own[place] for place in places),
        "own_off": tuple(check.own_off[place] for place in places),
        "regression": tuple(check.regression[place] for place in places) if check.regression else (),
        "credited": tuple(tuple(float(x) for x in row) for row in credited),
    }
    return check.model_copy(update=changes)


# ---------------------------------------------------------------------------------------------------------- the slopes


def _slopes(problem: Problem, theta: Sequence[Gaussian], statistics: Sequence[Coefficients]) -> Matrix:
    """One statistic: the middle of all slopes of the class. Several: the first member's regression on all of them."""
    import numpy as np

    if len(statistics) == 1:
        boxes = [_box(member, problem.columns, statistics[0]) for member in theta]
        ends = [[end for box in boxes for end in box.slopes[j]] for j in range(len(problem.columns))]
        return np.array([[(min(row) + max(row)) / 2] for row in ends])
    return _regression(theta[0], problem.columns, statistics)[0]


def _regression(member: Gaussian, columns: Sequence[str], statistics: Sequence[Coefficients]) -> tuple[Matrix, Matrix]:
    """The stated slopes of the columns on all statistics, each of one column, and what solving may have them off."""
    import numpy as np

    names = [next(iter(one)) for one in statistics]
    sds = np.array([member.sd_of(name) for name in names])
    own = member.correlation_matrix(names)
    condition = float(np.linalg.cond(own))
    if not condition <= 1e6:
        raise Refusal(
            Cause.SECRET, "the sensitive columns nearly determine one another; protect fewer of them.", needs="fewer secrets"
        )
    shared = np.array([[member.correlation_of(c, name) * member.sd_of(c) for name in names] for c in columns])
    solved = np.linalg.solve(own, shared.T).T
    off = _SOLVED * condition * np.linalg.norm(solved, axis=1)[:, None] / sds
    return np.asarray(solved / sds), np.asarray(off)


def _box(member: Gaussian, columns: Sequence[str], statistic: Coefficients) -> VectorBox:
    box = _boxed(member, tuple(columns), tuple(statistic.items()))
    if box is None:
        raise Refusal(
            Cause.NUMBERS,
            f"{', '.join(statistic)}: the variance of what is hidden may be zero within the tolerance.",
            needs="a smaller tolerance",
        )
    return box


@lru_cache(maxsize=256)
def _boxed(member: Gaussian, columns: tuple[str, ...], statistic: Terms) -> VectorBox | None:
    """A plan asks for the same few boxes again and again, and with many columns each takes a while."""
    return vector_box(member, columns, dict(statistic))


# ---------------------------------------------------------------------------------------------------------- the checks


def _check(
    problem: Problem,
    index: int,
    member: Gaussian,
    secret: Secret,
    statistics: Sequence[Coefficients],
    rows: tuple[Vector, ...],
    off: float,
) -> TransportCheck:
    if len(secret.forms) > 1:
        return _joint_check(problem, index, member, secret, statistics, off, rows)
    gap = _gap(problem, member, secret)
    hidden, own = secret.coefficients, []
    for column, (low, high) in zip(problem.columns, _box(member, problem.columns, hidden).slopes, strict=True):
        itself, most = {column} == set(hidden), max(abs(low), abs(high))
        extra = _ROUNDING * most + (0.0 if itself else (off + problem.known_rows) * most)
        own.append(((low + high) / 2 * gap, ((high - low) / 2 + extra) * gap))
    reads = _moved(member, tuple(tuple(one.items()) for one in statistics), tuple(hidden.items()), gap)
    middle, widths = zip(*own, strict=True)
    return TransportCheck(secret=secret.text, theta=index, reads=reads, own=middle, own_off=widths, credited=rows)


@lru_cache(maxsize=256)
def _moved(member: Gaussian, statistics: tuple[Terms, ...], hidden: Terms, gap: float) -> tuple[MovedRead, ...]:
    """How the statistics move with a hidden one; the same however far off the slopes of the averages are."""
    reads = []
    for one in map(dict, statistics):
        low, high = _kappa(member, one, dict(hidden))
        width = (high - low) / 2 + (_ROUNDING * max(abs(low), abs(high)) if high > low else 0.0)
        reads.append(MovedRead(coefficients=one, by=(low + high) / 2 * gap, off=width * gap))
    return tuple(reads)


def _joint_check(
    problem: Problem,
    index: int,
    member: Gaussian,
    secret: Secret,
    statistics: Sequence[Coefficients],
    off: float,
    credited: tuple[Vector, ...],
) -> TransportCheck:
    """Statistics hidden jointly: how far apart this member's slopes are from those taken back, whichever way all G moves."""
    import numpy as np

    if off == 0 and not is_exact(member):
        raise Refusal(
            Cause.NUMBERS,
            f"{secret.text}: secrets hidden jointly need exactly stated moments (tolerance 0) in this version.",
            needs="tolerance 0",
        )
    hidden = [dict(form.coefficients) for form in secret.forms]
    if any(hidden.count(one) > 1 or one not in statistics for one in hidden):
        raise Refusal(
            Cause.SECRET,
            f"{secret.text}: these statistics determine one another; protect fewer of them jointly.",
            needs="fewer secrets",
        )
    regression, solved = _regression(member, problem.columns, statistics)
    widest = np.max([np.abs(np.array(step)).sum(axis=1) for step in secret.joint_steps(problem.n)], axis=0)
    # Given the jointly hidden ones, the other statistics move with them.
    kappa, kappa_off = _regression(member, [next(iter(one)) for one in statistics], hidden)
    moved = (np.abs(kappa) + kappa_off) @ widest * (1 + _ROUNDING)
    left = (solved + off * np.abs(regression)) @ moved
    return TransportCheck(
        secret=secret.text,
        theta=index,
        reads=tuple(MovedRead(coefficients=one, off=float(x)) for one, x in zip(statistics, moved, strict=True)),
        own=(0.0,) * len(problem.columns),
        own_off=tuple(float(x) for x in left),
        regression=tuple(tuple(float(x) for x in row) for row in regression),
        credited=credited,
    )


def _kappa(member: Gaussian, statistic: Coefficients, hidden: Coefficients) -> tuple[float, float]:
    """The slope of a statistic on the hidden one."""
    lead = {column: statistic[column] / weight for column, weight in hidden.items() if column in statistic}
    if set(statistic) == set(hidden) and max(lead.values()) == min(lead.values()):
        return (next(iter(lead.values())),) * 2
    (column,) = statistic
    if len(hidden) > 1:
        return _box(member, (column,), hidden).slopes[0]
    # Two sensitive columns: the slope tolerance does not speak of this slope, only of what correlation and sds can be.
    ((other, weight),) = hidden.items()
    rho, own, theirs = correlation_range(member, column, other), member.sd_range(column), member.sd_range(other)
    ends = [r * s / t / weight for r in rho for s in own for t in theirs]
    return min(ends), max(ends)


def _gap(problem: Problem, member: Gaussian, secret: Secret) -> float:
    """The widest pair, in the unit of the mean; where it has no end, as far as the mean can be."""
    gap = secret.gap_of_mean(problem.n)
    if math.isfinite(gap):
        return gap
    if not is_exact(member):
        raise Refusal(
            Cause.NUMBERS,
            f"{secret.text}: sets of values without an end need exactly stated slopes (tolerance 0); use gaussian.",
            needs=("tolerance 0", "mechanism gaussian"),
        )
    column = secret.single or ""
    weight = secret.forms[0].weight(problem.n)
    ends = [end / weight for case in secret.case_sets for end in case.ends if math.isfinite(end)]
    sd = member.sd_range(column)[1]
    furthest = max(abs(end - member.mean[column]) for end in ends) + member.tolerance.mean * sd
    return 2 * furthest + _FAR * sd / math.sqrt(problem.n)


def _credited(problem: Problem, member: Gaussian, statistics: Sequence[Coefficients], slopes: Matrix, off: float) -> Matrix:
    """What the averages vary by themselves, given all statistics, from below."""
    import numpy as np

    unit = (1 - problem.known_rows) / problem.n
    if len(statistics) > 1:
        names = [next(iter(one)) for one in statistics]
        residual = _schur(member, problem.columns, names)
        explained = slopes @ covariance_floor(member, names, 1.0) @ slopes.T
    elif len(problem.columns) == 1 and list(statistics[0].values()) == [1.0]:
        (hidden,) = statistics[0]
        itself = problem.columns == (hidden,)
        residual = np.array([[0.0 if itself else least_residual(member, problem.columns[0], hidden)]])
        explained = np.array([[0.0 if itself else float(slopes[0, 0] * member.sd_range(hidden)[1]) ** 2]])
    else:
        box = _box(member, problem.columns, statistics[0])
        # A column's slope on itself cannot be off.
        moving = np.array([[0.0 if is_itself(column, statistics[0]) else 1.0] for column in problem.columns]) * slopes
        residual, explained = box.residual, box.spread * moving @ moving.T
    return unit * semidefinite_or_nothing(residual - (2 * off + off**2) * explained)


def _schur(member: Gaussian, columns: Sequence[str], hidden: Sequence[str]) -> Matrix:
    """Given the hidden columns, from below: the Schur complement grows with the matrix."""
    import numpy as np

    floor = covariance_floor(member, (*columns, *hidden), -1.0)
    k = len(columns)
    scale = np.sqrt(np.maximum(np.diag(floor), 1e-300))
    unit = floor / np.outer(scale, scale)
    least = float(np.linalg.eigvalsh(unit)[0])
    if not least > 1e-9:
        return np.zeros((k, k))
    left = unit[:k, :k] - unit[:k, k:] @ np.linalg.solve(unit[k:, k:], unit[k:, :k])
    # Solved in floats; what that can be off, for a matrix this far from singular, is not credited.
    left = (left + left.T) / 2 - 1e-12 / least * np.eye(k)
    return np.asarray(left * np.outer(scale[:k], scale[:k]))


# ------------------------------------------------------------------------------------------------------ expected errors


def _wander(
    problem: Problem,
    theta: Sequence[Gaussian],
    statistics: Sequence[Coefficients],
    slopes: Matrix,
    masks: Mapping[str, float],
) -> Matrix:
    """How Y varies over the tables of the assumption: a factor, one row for each average."""
    import numpy as np

    if len(statistics) == 1:
        spread = max(_box(member, problem.columns, statistics[0]).spread for member in theta)
        return np.asarray(slopes * math.sqrt(spread / problem.n))
    names = [next(iter(one)) for one in statistics]
    sds = np.array([max(member.sd_range(name)[1] for member in theta) for name in names])
    covariance = theta[0].correlation_matrix(names) * np.outer(sds, sds) / problem.n
    covariance += np.diag([masks[name] ** 2 for name in names])
    return np.asarray(slopes @ np.linalg.cholesky(covariance))


def _bias(theta: Sequence[Gaussian], statistics: Sequence[Coefficients], slopes: Matrix) -> Matrix:
    """How far the centres may be off: the tolerance on the means, and other members' means."""
    import numpy as np

    off = []
    for one in statistics:
        centre = _mean(theta[0], one)
        drift = [sum(abs(w) * m.tolerance.mean * m.sd_range(c)[1] for c, w in one.items()) for m in theta]
        off.append(max(abs(_mean(m, one) - centre) + d for m, d in zip(theta, drift, strict=True)))
    return np.asarray((slopes if len(statistics) == 1 else np.abs(slopes)) @ np.array(off))


def _mean(member: Gaussian, statistic: Coefficients) -> float:
    return sum(weight * member.mean[column] for column, weight in statistic.items())
