"""Answers from a view at the public composition, each with its error.

A row of cell c stands for weight_c = share_c / keep_c of the rows. With E the weighted mean over the rows of the filter
(and of the group), H their weight, and all sums exact (`engines.view.answers`):

| statistic | answer | a row's part in the error, linearised |
|---|---|---|
| count, sum | n sum of weight_c y | y |
| avg | E u | (u - avg) / H |
| var_pop | E u^2 - (E u)^2 | ((u - E u)^2 - var) / H |
| covar_pop(u, v) | E uv - E u E v | ((u - E u)(v - E v) - cov) / H |
| regr_slope(u, v) | b = cov/var(v) | (v - E v) e / var(v) / H,    e = u - E u - b (v - E v) |
| regr_intercept(u, v) | E u - b E v | (e - E v (v - E v) e / var(v)) / H |
| quantile p | Q(p) | half of the way to Q(p +- 2 s), s the error of F(Q(p)) |

What must never change: answers are functions of kept rows and public facts; a failure has a fixed text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from attrpriv.engines.view.answers import CellMoments, CellSums, Viewed, view_moments, view_sums
from attrpriv.engines.view.quantiles import view_quantiles, weighted_hits, whole_weights
from attrpriv.engines.view.values import AtMost, Quadratic
from attrpriv.errors import DataError
from attrpriv.methods.base.accuracy import Spread
from attrpriv.methods.base.share_limits import ShareLimits
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.view.answers import standard_error
from attrpriv.numerics.rounding import COMPUTED_DOWN
from attrpriv.queries.query import Query
from attrpriv.session.release import Value
from attrpriv.session.view_shares import is_complete, is_share, possible, share_limits

NO_HITS = "query: some row of the view must satisfy the filter of an average. Got none. Ask for a wider one."
NO_ANSWER = "query: the view must have rows of the filter, and in a regression a second column that varies. Got none."
# How many errors of F the quantile's own error looks to each side.
_SIDES = 2.0
# Below this many rows a linearised error, or the error of a quantile, is no guide.
_FEWEST = 30
_WEIGHT_BITS = 256


class Found(NamedTuple):
    """An answer and its standard error (None: no error is known), or the limits of a share."""

    value: float
    error: float | None
    limits: ShareLimits | None = None


def estimates(view: Viewed, query: Query, plan: ViewPlan, shares: Mapping[str, float]) -> tuple[Value, ...]:
    """One value for each group that has one; without groups, one value or an announced failure."""
    if query.kind in ("avg", "sum", "count"):
        found, failure = _averages(view, query, plan, shares), NO_HITS
    elif query.kind == "quantile":
        found, failure = _quantiles(view, query, plan, shares), NO_HITS
    else:
        found, failure = _second_moments(view, query, plan, shares), NO_ANSWER
    values = []
    for name, one in zip(view.names, found, strict=True):
        if one is None and query.group_by is None:
            raise DataError(failure)
        if one is not None:
            values.append(Value(one.value, one.limits or _spread(one.error), name))
    return tuple(values)


def _spread(error: float | None) -> Spread:
    return Spread("gaussian", math.inf) if error is None else Spread("gaussian" if error else "none", error)


def _averages(view: Viewed, query: Query, plan: ViewPlan, shares: Mapping[str, float]) -> Iterator[Found | None]:
    """Of what is not public, an interval is never a point: rows that are not kept may have what no kept row has."""
    share, factor = is_share(view, query), plan.n if query.kind in ("sum", "count") else 1
    for name, cells in view_sums(view, query).groups.items():
        found = estimate(query, plan, cells, shares)
        if found is None or plan.is_public(query) or query.whole_table:
            yield found
        elif share:
            events = [int(s.total) for s in cells]
            yield found._replace(limits=share_limits(plan, events, shares, possible(plan, query, name), factor))
        else:
            yield found if found.error or is_complete(plan) else found._replace(error=None)


def estimate(query: Query, plan: ViewPlan, sums: Sequence[CellSums], shares: Mapping[str, float]) -> Found | None:
    """The value at the public composition and its standard error (of a ratio: by linearisation); None: an average of no row."""
    mean = sum(shares[cell.name] * float(s.total / cell.keep) for cell, s in zip(plan.cells, sums, strict=True))
    ratio = query.kind == "avg" and not query.plain
    weight = _hits(plan, [s.hits for s in sums], shares)
    if ratio and weight == 0:
        return None
    centre = mean / weight if ratio else 0.0
    error = _error(plan, sums, shares, centre)
    if ratio:
        return Found(centre, error / weight)
    factor = plan.n if query.kind in ("sum", "count") else 1
    return Found(mean * factor, error * factor)


def _hits(plan: ViewPlan, hits: Sequence[int], shares: Mapping[str, float]) -> float:
    """H: the share of the rows that the filter keeps."""
    return sum(shares[cell.name] * count / cell.keep for cell, count in zip(plan.cells, hits, strict=True))


def _error(plan: ViewPlan, sums: Sequence[CellSums], shares: Mapping[str, float], centre: float) -> float:
    sds = [_sd(s, cell.keep, Fraction(centre)) for cell, s in zip(plan.cells, sums, strict=True)]
    return standard_error(plan.cells, shares, sds)


def _sd(sums: CellSums, keep: int, centre: Fraction) -> float:
    """The standard deviation, over a cell's kept rows, of y - centre * i; exact until the root, so nothing cancels."""
    if keep < 2:
        return 0.0
    total = sums.total - centre * sums.hits
    squares = sums.squares - 2 * centre * sums.total + centre**2 * sums.hits
    return math.sqrt(max(Fraction(0), (squares - total**2 / keep) / (keep - 1)))


# Variances, covariances, regressions.


def _second_moments(view: Viewed, query: Query, plan: ViewPlan, shares: Mapping[str, float]) -> Iterator[Found | None]:
    weights = [_dyadic(Fraction(shares[cell.name]) / cell.keep) for cell in plan.cells]
    moments = list(view_moments(view, query).groups.values())
    answers = [_answer(query.kind, weights, cells) for cells in moments]
    parts = view_sums(view, query, [None if answer is None else answer[1] for answer in answers]).groups.values()
    for answer, cells in zip(answers, parts, strict=True):
        if answer is None:
            yield None
            continue
        value, _ = answer
        weight = _hits(plan, [s.hits for s in cells], shares)
        centre = value if query.kind in ("var_pop", "covar_pop") else 0.0
        enough = sum(s.hits for s in cells) >= _FEWEST
        yield Found(value, _error(plan, cells, shares, centre) / weight if enough else None)


def _dyadic(weight: Fraction) -> Fraction:
    """A weight to many more digits than a float has: fractions of a thousand different denominators would add up slowly."""
    return Fraction(round(weight * 2**_WEIGHT_BITS), 2**_WEIGHT_BITS)


def _answer(kind: str, weights: Sequence[Fraction], cells: Sequence[CellMoments]) -> tuple[float, Quadratic] | None:
    """The statistic and each row's part in its error; exact until the last step, so that nothing cancels."""
    weight = sum((w * cell.hits for w, cell in zip(weights, cells, strict=True)), Fraction(0))
    if not weight:
        return None
    size = len(cells[0].totals)
    mean = [sum((w * c.totals[j] for w, c in zip(weights, cells, strict=True)), Fraction(0)) / weight for j in range(size)]

    def spread(j: int, k: int) -> Fraction:
        products = sum((w * c.products[j][k] for w, c in zip(weights, cells, strict=True)), Fraction(0))
        return products / weight - mean[j] * mean[k]

    centres = tuple(map(float, mean))
    if kind in ("var_pop", "covar_pop"):
        j, k = 0, size - 1
        return float(spread(j, k)), Quadratic(centres, (0.0,) * size, ((j, k, 1.0),))
    if not spread(1, 1) > 0:
        return None
    slope, unit = spread(0, 1) / spread(1, 1), float(1 / spread(1, 1))
    b, v = float(slope), centres[1]
    if kind == "regr_slope":
        return b, Quadratic(centres, (0.0, 0.0), ((0, 1, unit), (1, 1, -b * unit)))
    intercept = float(mean[0] - slope * mean[1])
    return intercept, Quadratic(centres, (1.0, -b), ((0, 1, -v * unit), (1, 1, v * b * unit)))


# Quantiles.


def _quantiles(view: Viewed, query: Query, plan: ViewPlan, shares: Mapping[str, float]) -> Iterator[Found | None]:
    weights = whole_weights([shares[cell.name] / cell.keep for cell in plan.cells], [cell.keep for cell in plan.cells])
    hits = [[s.hits for s in cells] for cells in view_sums(view, query).groups.values()]
    whole = [weighted_hits(weights, counts) for counts in hits]
    level = query.level or 0.5
    # Weights are rounded: what is reached up to that is reached.
    found = view_quantiles(view, query, weights, [[_part_of(level * COMPUTED_DOWN, weight)] for weight in whole])
    below = view_sums(view, query, [None if one is None else AtMost(one[0]) for one in found]).groups.values()
    errors = [
        _error(plan, cells, shares, level) / weight if weight else 0.0
        for cells, weight in zip(below, [_hits(plan, counts, shares) for counts in hits], strict=True)
    ]
    reach = [(level - _SIDES * error, min(1.0, level + _SIDES * error)) for error in errors]
    ends_at = [[_part_of(end, weight) for end in ends] for ends, weight in zip(reach, whole, strict=True)]
    sides = view_quantiles(view, query, weights, ends_at)
    for one, (low, high), ends, counts in zip(found, reach, sides, hits, strict=True):
        if one is None or ends is None:
            yield None
        else:
            known = low > 0 and high < 1 and sum(counts) >= _FEWEST
            yield Found(one[0], max(ends[1] - one[0], one[0] - ends[0]) / _SIDES if known else None)


def _part_of(share: float, whole: int) -> int:
    """The least whole weight that is at least this share of a group's."""
    return math.ceil(Fraction(share) * whole)
