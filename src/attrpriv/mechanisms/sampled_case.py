"""Which laws of a statistic have to be simulated: for each secret, each member of Theta and each window of values.

| assumption | statistic | given the secret | the box is covered by |
|---|---|---|---|
| gaussian | variance, covariance, slope | the same law | the member of least variance, in closed form |
| gaussian | quantile | slope a + Q | the steepest slope, and the least variance of Q |
| gaussian | intercept | mean and variance move | corners of the means; other tolerances must be 0 |
| groups | variance | mean and variance move | corners of both sds and of the distance of the means |
| groups | others | mean and variance move | all tolerances must be 0 |

Pairs at most `within` apart: of an intercept under normal rows they lie in windows of that width, spread over the range, as its
mean is affine and its variance a parabola; under groups moments follow curves that are known to first order at every count.
docs/theory/sampled.md says why these are enough. What must never change: what is not in this table is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from attrpriv.assumptions import Gaussian, Groups
from attrpriv.assumptions.vector_box import sd_of_form, vector_box
from attrpriv.assumptions.worst_case import correlation_range
from attrpriv.errors import PolicyError, QueryError, RefusedError, UsageError
from attrpriv.framework import Problem, Secret
from attrpriv.framework.counted import count_pairs
from attrpriv.laws.moment_curve import Curve, curve
from attrpriv.laws.records import CountPairs
from attrpriv.laws.simulated import GroupRows, NormalRows, Rows, ShiftedQuantile, SimulatedLaw
from attrpriv.mechanisms.group_case import members_of
from attrpriv.mechanisms.refusal import Refusal
from attrpriv.queries.query import Query

# Values that are simulated of a range without `within`, and windows of one with it.
_VALUES, _ROW_VALUES, _WINDOWS = 9, 3, 5
# Rows that are drawn for quantiles, in all: seconds.
MOST_ROWS = 100_000_000


@dataclass(frozen=True)
class Case:
    """Laws of the statistic at values of a secret that must look alike; `besides`: laws of which only the variance counts."""

    secret: str
    theta: int
    values: tuple[float, ...]
    laws: tuple[SimulatedLaw, ...]
    besides: tuple[SimulatedLaw, ...] = ()
    skewed: float = 0.0
    farthest: float = 0.0  # the largest average of a regression's second column
    corners: bool = False  # laws are corners at which variances are extreme, but maybe not their differences
    curves: tuple[Curve, ...] = ()  # what moments do to first order at every count, of each law


def gaussian_cases(problem: Problem, theta: Sequence[Gaussian], query: Query) -> list[Case]:
    """Of each secret and member, under normal rows."""
    reason = None
    try:
        found = [_gaussian(problem, k, one, query, secret) for k, one in enumerate(theta) for secret in problem.secrets]
        return [case for cases in found for case in cases]
    except (PolicyError, UsageError) as error:
        reason = str(error)
    raise Refusal(reason, usage=True)


def _gaussian(problem: Problem, index: int, gaussian: Gaussian, query: Query, secret: Secret) -> list[Case]:
    if len(secret.forms) > 1:
        raise Refusal(f"hides one mean or sum at a time. Got {secret.text}; name each as a secret of its own.")
    columns = tuple(one.column or "" for one in query.arguments)
    gap = secret.gap_of_mean(problem.n)
    if query.kind == "quantile":
        return [_quantile(problem, index, gaussian, query, secret, gap)]
    if query.kind == "regr_intercept":
        return _intercepts(problem, index, gaussian, columns, secret)
    law = _least_spread(problem.n, gaussian, query.kind, columns)
    return [Case(secret.text, index, (0.0,), (law,), skewed=_skewed_squares(gaussian, query.kind, columns, secret, gap))]


def _least_spread(n: int, gaussian: Gaussian, kind: str, columns: Sequence[str]) -> NormalRows:
    """The member of the box in which a variance, covariance or slope varies least."""
    low, high = zip(*(gaussian.sd_range(column) for column in columns), strict=True)
    if kind == "var_pop":
        return NormalRows(n, "var_pop", (0.0,), ((low[0] ** 2,),), (0.0,), 0.0, 1.0)
    ends = correlation_range(gaussian, *columns) if columns[0] != columns[1] else (1.0, 1.0)
    steepest = max(map(abs, ends))
    flattest = 0.0 if ends[0] <= 0 <= ends[1] else min(map(abs, ends))
    if kind == "regr_slope":
        return NormalRows(n, "regr_slope", (0.0, 0.0), _pair(low[0], high[1], steepest), (0.0, 0.0), 0.0, 1.0)
    return NormalRows(n, "covar_pop", (0.0, 0.0), _pair(low[0], low[1], flattest), (0.0, 0.0), 0.0, 1.0)


def _pair(first: float, second: float, correlation: float) -> Rows:
    shared = correlation * first * second
    return ((first**2, shared), (shared, second**2))


def _skewed_squares(gaussian: Gaussian, kind: str, columns: Sequence[str], secret: Secret, gap: float) -> float:
    """How much further means are apart for each unit of co-skewness: E[S_jk | mean_i = a] moves by it times s_j s_k/s_i."""
    if not math.isfinite(gap):
        return math.inf
    sds = [gaussian.sd_range(column)[1] for column in columns]
    apart = gap / _least_sd(gaussian, secret)
    if kind == "var_pop":
        return sds[0] ** 2 * apart
    if kind == "covar_pop":
        return sds[0] * sds[1] * apart
    tied = max(map(abs, correlation_range(gaussian, *columns))) if columns[0] != columns[1] else 1.0
    return sds[0] / gaussian.sd_range(columns[1])[0] * (1 + tied) * apart


def _least_sd(gaussian: Gaussian, secret: Secret) -> float:
    return sd_of_form(gaussian, secret.coefficients) * (1 - gaussian.tolerance.sd)


def _quantile(problem: Problem, index: int, gaussian: Gaussian, query: Query, secret: Secret, gap: float) -> Case:
    """F = slope a + Q: how far apart two values are is all that counts of them."""
    from scipy.special import ndtri

    if not math.isfinite(gap):
        raise Refusal(f"{secret.text}: its values are not bounded. State between or within.")
    require_rows(problem, 1)
    column = query.arguments[0].column or ""
    box = vector_box(gaussian, (column,), secret.coefficients)
    if box is None:
        raise Refusal(f"{secret.text}: its variance may be 0 within the tolerance. State a smaller one.")
    slope, sd = max(map(abs, box.slopes[0])), gaussian.sd_range(column)[0]
    residual = min(max(0.0, float(box.residual[0, 0])), sd**2)
    law = ShiftedQuantile(problem.n, query.level or 0.5, sd, slope, residual)
    tail = max(1.0, abs(float(ndtri(query.level or 0.5)))) / 2
    skewed = gaussian.sd_range(column)[1] / _least_sd(gaussian, secret) * tail * gap
    return Case(secret.text, index, (0.0, gap), (law,), skewed=skewed)


def require_rows(problem: Problem, values: int) -> None:
    """Quantiles are simulated row by row."""
    runs = problem.sampled.runs if problem.sampled is not None else 0
    drawn = runs * problem.n * values
    if drawn > MOST_ROWS:
        most = MOST_ROWS // (problem.n * values)
        advice = f"State runs: {most} or fewer" if most >= 1_000 else "Ask for a view"
        raise Refusal(f"a quantile is simulated by its rows, {MOST_ROWS:,} at most. Got {drawn:,}. {advice}.")


# ------------------------------------------------------------------------------------------------------------ intercepts


def _intercepts(problem: Problem, index: int, gaussian: Gaussian, columns: tuple[str, ...], secret: Secret) -> list[Case]:
    tolerance = gaussian.tolerance
    if tolerance.sd or tolerance.slope or tolerance.correlation:
        raise Refusal("regr_intercept: is simulated for exact sds and correlations (tolerance sd and slope 0); means may vary.")
    if secret.ends is None or secret.cases is not None:
        raise Refusal(f"regr_intercept: {secret.text} needs between: [low, high].")
    if columns[0] == columns[1]:
        raise Refusal("regr_intercept: needs two different columns.")
    base, slack = _intercept_law(problem, gaussian, columns, secret)
    weight = secret.forms[0].weight(problem.n)
    low, high = (end / weight for end in secret.ends)
    apart = min(high - low, secret.gap_of_mean(problem.n))
    found = []
    for values in windows(low, high, apart, _VALUES, _WINDOWS):
        laws = tuple(_moved(base, shift) for shift in dict.fromkeys((-slack, slack)))
        averages = [law.average(1, value) for law in laws for value in values]
        # The variance is least where the second column's average is 0: a law of its own, unless that is out of reach.
        besides = (_moved(base, -base.average(1, values[0])),) if min(averages) < 0 < max(averages) else ()
        steep = _skewed_squares(gaussian, "regr_slope", columns, secret, apart)
        farthest = max(map(abs, averages))
        found.append(Case(secret.text, index, values, laws, besides, farthest * steep, farthest, bool(besides)))
    return found


def _intercept_law(problem: Problem, gaussian: Gaussian, columns: tuple[str, ...], secret: Secret) -> tuple[NormalRows, float]:
    """The stated law, and how far the second column's expected average may be from it, given the secret."""
    import numpy as np

    weights = secret.coefficients
    names = tuple(dict.fromkeys((*columns, *weights)))
    sds = np.array([gaussian.sd_of(name) for name in names])
    matrix = gaussian.correlation_matrix(names) * np.outer(sds, sds)
    along = np.array([weights.get(name, 0.0) for name in names])
    shared, variance = matrix @ along, float(along @ matrix @ along)
    if not variance > 1e-12 * float((along * sds) @ (along * sds)):
        raise Refusal(f"{secret.text}: must vary, under the stated correlations.")
    itself = secret.single == columns[1]  # its average is the secret, wherever its mean is
    lacking = [] if itself else [name for name in (columns[1], *weights) if name not in gaussian.mean]
    if lacking:
        raise Refusal(f"assume: mean of {lacking[0]} must be stated for an intercept. Got none.", usage=True)
    means = {name: gaussian.mean.get(name, 0.0) for name in names}
    law = NormalRows(
        problem.n,
        "regr_intercept",
        tuple(means[column] for column in columns),
        tuple(tuple(float(x) for x in row[:2]) for row in matrix[:2]),
        tuple(float(x) for x in shared[:2]),
        math.fsum(weight * means[name] for name, weight in weights.items()),
        variance,
    )
    reach = sum(abs(weight) * gaussian.sd_of(name) for name, weight in weights.items())
    slack = gaussian.tolerance.mean * (float(sds[1]) + abs(float(shared[1])) / variance * reach)
    return law, 0.0 if itself else slack


def _moved(law: NormalRows, shift: float) -> NormalRows:
    return replace(law, mean=(law.mean[0], law.mean[1] + shift))


# ---------------------------------------------------------------------------------------------------------------- groups


def group_cases(problem: Problem, theta: Sequence[Groups], query: Query) -> list[Case]:
    """Of each secret and member, under rows that are normal within categories."""
    reason, usage = None, True
    try:
        found = [_groups(problem, k, one, query, secret) for k, one in enumerate(theta) for secret in problem.secrets]
        return [case for cases in found for case in cases]
    except RefusedError as error:
        reason, usage = str(error), False
    except (QueryError, PolicyError, UsageError) as error:
        reason = str(error)
    raise Refusal(reason, usage=usage)


def _groups(problem: Problem, index: int, groups: Groups, query: Query, secret: Secret) -> list[Case]:
    if secret.parameter is not None:
        raise Refusal(f"hides a count or share of this table, not of a population. Got {secret.text}.")
    members = members_of(groups, secret)
    if len(groups.categories) != 2:
        raise Refusal(
            f"is simulated for two categories: with {len(groups.categories)}, the law given one count depends on the others. "
            "Describe two categories, or ask for a view."
        )
    order = sorted(groups.categories, key=lambda name: name not in members)
    pairs = count_pairs(secret, problem.n)
    laws = _group_laws(problem.n, groups, query, order)
    means = [abs(law[0][-1]) for one in laws for law in (one.first, one.second)]
    base = Case(secret.text, index, (), laws, farthest=max(means), corners=len(laws) > 1)
    if query.kind == "quantile":
        return [_group_quantile(problem, base, secret, pairs)]
    curves = tuple(curve(law, pairs.low, pairs.high, pairs.apart) for law in laws)
    values = _evenly(pairs, _VALUES)
    if len(laws) == 1:  # where moments are extreme, and what is steepest
        values = sorted({*values, *curves[0].mean.at, *curves[0].variance.at})
    return [replace(base, values=tuple(values), curves=curves)]


def _group_quantile(problem: Problem, base: Case, secret: Secret, pairs: CountPairs) -> Case:
    if pairs.apart < pairs.high - pairs.low:
        # Where a category's share passes the level, a quantile leaps: values far from the simulated ones may be told apart.
        raise Refusal(
            f"a quantile may leap between two counts: leave out within of {secret.text}, so that all must look alike."
        )
    values = _evenly(pairs, _ROW_VALUES)
    require_rows(problem, len(values))
    return replace(base, values=tuple(values))


def _evenly(pairs: CountPairs, values: int) -> list[float]:
    """Whole counts from end to end."""
    steps = range(values)
    return [float(x) for x in dict.fromkeys(round(pairs.low + (pairs.high - pairs.low) * k / (values - 1)) for k in steps)]


def _group_laws(n: int, groups: Groups, query: Query, order: Sequence[str]) -> tuple[GroupRows, ...]:
    columns = tuple(one.column or "" for one in query.arguments)
    tolerance = groups.tolerance
    if query.kind != "var_pop":
        if tolerance.mean or tolerance.sd:
            raise Refusal(f"{query.kind}: is simulated for exact moments (tolerance 0) with groups; a variance may vary.")
        laws = [(tuple(groups.mean_of(c, x) for x in columns), groups.covariance(c, columns)) for c in order]
        return (GroupRows(n, query.kind, laws[0], laws[1], query.level),)  # type: ignore[arg-type]
    (column,) = columns
    sds = [groups.sd_range(c, column) for c in order]
    apart = groups.mean_of(order[0], column) - groups.mean_of(order[1], column)
    reach = tolerance.mean * (sds[0][1] + sds[1][1])
    distances = (max(0.0, abs(apart) - reach), abs(apart) + reach)
    corners = itertools.product(dict.fromkeys(sds[0]), dict.fromkeys(sds[1]), dict.fromkeys(distances))
    return tuple(GroupRows(n, "var_pop", ((d,), ((one**2,),)), ((0.0,), ((other**2,),))) for one, other, d in corners)


def windows(low: float, high: float, apart: float, values: int, count: int) -> list[tuple[float, ...]]:
    """Values that must look alike: one window where all must, else windows of that width, spread over the range.

    >>> windows(0.0, 8.0, 8.0, 5, 3), windows(0.0, 8.0, 2.0, 5, 3)
    ([(0.0, 2.0, 4.0, 6.0, 8.0)], [(0.0, 1.0, 2.0), (3.0, 4.0, 5.0), (6.0, 7.0, 8.0)])
    """
    if apart >= high - low:
        return [tuple(low + (high - low) * k / (values - 1) for k in range(values))]
    starts = [low + (high - apart - low) * k / (count - 1) for k in range(count)]
    return [(start, start + apart / 2, start + apart) for start in starts]
