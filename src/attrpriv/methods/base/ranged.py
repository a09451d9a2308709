"""Statistics that are no averages, kept in a public range: variances, covariances, regressions and quantiles over all rows.

| statistic | its range |
|---|---|
| any, with `ranges` in the policy | the declared one, within what the bounds allow |
| var_pop, covar_pop, quantiles | by interval arithmetic from the bounds of the columns (`queries.intervals`) |
| regr_slope, regr_intercept | declared, or refused: bounds of columns do not bound them |

The answer is clipped to the range, so that it moves by at most the width when any columns change.

What must never change: rows are clipped silently, the answer is clipped silently, and an undefined regression answers the
middle of the range. So no failure tells anything but that a value is missing without a public substitute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from attrpriv.methods.base.column_plan import StatisticPlan
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.queries.intervals import NON_LINEAR, UNBOUNDED, Box, answer_interval, fits_floats
from attrpriv.queries.query import Query, quoted


@dataclass(frozen=True)
class Ranged:
    """One statistic, how it is read, and how far it can move, rounded up."""

    query: Query
    how: StatisticPlan
    width: float

    @property
    def notes(self) -> tuple[str, ...]:
        low, high = self.how.range
        middle = "" if self.how.undefined is None else f" Where no line fits, it is {self.how.undefined:.6g}."
        rows = f"{', '.join(map(quoted, self.how.clips))}: values outside the bounds are clipped."
        kept = f"{self.query.text}: the statistic is kept within [{low:.6g}, {high:.6g}].{middle}"
        return rows, kept, "the interval is for this clipped statistic: where the table goes beyond, its own can lie outside."


def ranged(problem: Problem) -> Ranged:
    """What is asked, with its range; a refusal that says what to declare."""
    query, *others = sorted((one for one in problem.queries if not one.whole_table), key=lambda one: one.kind not in NON_LINEAR)
    if others:
        raise Refusal(
            Cause.TOGETHER,
            "answers one variance, covariance, regression or quantile at a time; "
            f"ask for {query.text} in a release of its own.",
            query=query.text,
        )
    if problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS,
            f"individuals: single persons are not protected in {query.text} in this version. Ask for averages, or leave "
            "individuals out.",
            needs="no individuals",
            query=query.text,
        )
    bounds = _bounds(problem, query)
    low, high = _range(problem, query, bounds)
    how = StatisticPlan(
        fills={column: problem.missing.get(column) for column in query.columns},
        clips=bounds,
        range=(low, high),
        undefined=low / 2 + high / 2 if query.kind in UNBOUNDED else None,
    )
    return Ranged(query, how, _up(Fraction(high) - Fraction(low)))


def _bounds(problem: Problem, query: Query) -> dict[str, tuple[float, float]]:
    """Where each column is clipped to. A quantile of a column in a range is that of the column clipped to the range."""
    found = {column: problem.bounds[column] for column in query.columns if column in problem.bounds}
    if query.kind == "quantile" and query.text in problem.ranges and query.arguments[0].column is not None:
        found = {query.arguments[0].column: problem.ranges[query.text], **found}
    lacking = [column for column in query.columns if column not in found]
    if lacking:
        line = ", ".join(f"{_key(column)}: [low, high]" for column in lacking)
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"needs bounds for {', '.join(lacking)}; declare bounds: {{{line}}}.",
            needs=f"bounds of {', '.join(lacking)}",
            query=query.text,
        )
    if not fits_floats(query, found):
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"bounds: floats must hold what {query.text} is of, and do not. Declare narrower bounds, or another unit.",
            needs=("narrower bounds", "another unit"),
            query=query.text,
        )
    return {column: found[column] for column in query.columns}


def _key(column: str) -> str:
    """A column's name as a key in YAML."""
    return column if column.isidentifier() else '"' + column.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _range(problem: Problem, query: Query, bounds: Box) -> tuple[float, float]:
    declared, implied = problem.ranges.get(query.text), answer_interval(query, bounds)
    if declared is None and implied is None:
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"{query.text}: needs a public range, because no bounds of columns bound it. Declare {_line(query)}.",
            needs=f"ranges of {query.text}",
            query=query.text,
        )
    if declared is None or implied is None:
        found = declared or implied
    else:
        found = max(declared[0], implied[0]), min(declared[1], implied[1])
    if found is None or not (found[0] < found[1] and math.isfinite(found[1] - found[0])):
        raise Refusal(
            Cause.MISTAKE,
            f"ranges: of {query.text} must be finite and meet what its bounds allow. Got {declared}.",
            needs="ranges",
            query=query.text,
        )
    return found


def _line(query: Query) -> str:
    """What to write into the policy."""
    return f"ranges: {{'{query.text.replace(chr(39), chr(39) * 2)}': [low, high]}}"


def _up(number: Fraction) -> float:
    near = float(number)
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)
