"""Answers from a view: the value at the public composition, its standard error, and what a plan can say beforehand."""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.engines.view.answers import CellSums
from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.view_plan import ViewCell, ViewPlan
from attrpriv.methods.choice.choose import plan as plan_problem
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.methods.view.answers import standard_error
from attrpriv.methods.view.plan import ViewEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from attrpriv.session.view_estimates import estimate as _estimate

SHARE = Secret("share(g = 'F')", between=(0.25, 0.4))


def problem(text: str = "avg(x)", *, n: int = 1000, secrets: Sequence[Secret] = (SHARE,), **changes: Any) -> Problem:
    return Problem(**{"queries": parse_queries(text), "secrets": tuple(secrets), "epsilon": 1.0, "n": n, **changes})


def plan(text: str = "avg(x)", **changes: Any) -> Plan:
    return plan_problem(problem(text, **changes), "subsample")


# The plan.


def test_a_plan_promises_epsilon_zero_and_delta_zero() -> None:
    made = plan(bounds={"x": (0.0, 10.0)})
    assert (made.mechanism, made.epsilon, made.delta) == ("subsample", 0.0, 0.0)
    assert made.view is not None
    assert isinstance(made.certificate.evidence, ViewEvidence)
    assert made.noise.kind == "none"
    assert made.entries(True)[0]["parameters"] == {"keep": {"g = 'F'": 250, "other": 600}}
    assert any("answers are scaled to the public composition (g = 'F' 0.325, other 0.675)" in note for note in made.notes)


def test_a_population_has_its_delta() -> None:
    made = plan(secrets=[Parameter("share(g = 'F')", between=(0.25, 0.4))], delta=1e-6)
    assert (made.epsilon, made.delta) == (0.0, 1e-6)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"secrets": [Secret("share(g = 'F')", between=(0.0, 0.4))]},
            RefusedError,
            "no row of g = 'F' is kept, so nothing can",
        ),
        ({"secrets": [Secret("count(g = 'F')", between=(1.0, 40.0))]}, RefusedError, "1 row of g = 'F' is kept, so its spread"),
        ({"known_rows": 0.1}, RefusedError, "known_rows: must be 0"),
        ({"secrets": [Secret("mean(x)", within=1.0)]}, RefusedError, "a view hides how rows fall into categories"),
        ({"composition": {"F": 0.3}}, UsageError, "composition: the cells are g = 'F', other. Got 'F'."),
        ({"composition": {"g = 'F'": 0.3, "other": 0.6}}, UsageError, "must add up to 1"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        plan(**changes)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("avg(x)", True),
        ("sum(x)", True),
        ("sum(x) filter (where g = 'F')", True),
        ("count(*)", True),
        ("count(*) filter (where x > 3)", True),
        ("avg(y)", False),  # no bounds
        ("avg(x) filter (where y > 3)", False),  # a ratio
        ("SELECT g, count(*) FROM data GROUP BY g", False),
        ("avg(2*x + y)", False),
        ("var_pop(x)", False),
        ("median(x)", False),
    ],
)
def test_which_errors_are_known_beforehand(text: str, known: bool) -> None:
    made = plan(text, bounds={"x": (-1.0, 3.0)}, categories={"g": ("F", "M")})
    assert (made.error.rmse is not None) == known


def test_the_number_of_rows_has_no_error() -> None:
    assert plan("count(*)").error.rmse == 0.0


def test_auto_takes_the_view_where_it_is_best() -> None:
    assert plan_problem(problem(bounds={"x": (0.0, 10.0)}, n=1_000_000)).mechanism == "subsample"
    assert plan_problem(problem("avg(x) filter (where y = 1)")).mechanism == "subsample"


# The estimate. Cells of 5 and 6 rows, of which 2 and 3 are kept: all draws.

TABLE: dict[str, list[tuple[float, bool]]] = {
    "F": [(1.0, True), (4.0, False), (2.5, True), (7.0, True), (-3.0, False)],
    "M": [(10.0, False), (0.0, True), (5.5, True), (6.0, False), (-1.0, True), (8.0, False)],
}
KEEP = {"F": 2, "M": 3}
SHARES = {"F": 0.3, "M": 0.7}


def view_plan(keep: Mapping[str, int], counts: Mapping[str, int]) -> ViewPlan:
    """A view whose cells have exactly these counts at the high end, so that the formula is exact."""
    n = sum(counts.values())
    usual = plan_view_of(problem(n=n))
    cells = tuple(ViewCell(name=name, keep=keep[name], low=keep[name], high=counts[name]) for name in keep)
    return usual.model_copy(update={"cells": cells, "n": n})


def sums_of(rows: Sequence[tuple[float, bool]], query: Query) -> CellSums:
    hit = [row for row in rows if query.where is None or row[1]]
    ys = [Fraction(x if query.column else 1) for x, _ in hit]
    return CellSums(len(hit), sum(ys, Fraction(0)), sum((y * y for y in ys), Fraction(0)))


def draws(query: Query) -> list[tuple[float, float]]:
    """The estimate and its standard error for every draw."""
    made = view_plan(KEEP, {name: len(rows) for name, rows in TABLE.items()})
    found = []
    for parts in itertools.product(*(itertools.combinations(TABLE[name], KEEP[name]) for name in KEEP)):
        estimate = _estimate(query, made, [sums_of(part, query) for part in parts], SHARES)
        if estimate is not None:
            assert estimate.error is not None
            found.append((estimate.value, estimate.error))
    return found


def at_the_public_composition(query: Query) -> float:
    """The same mixture over the whole table."""
    hits = sum(SHARES[name] * sums_of(rows, query).hits / len(rows) for name, rows in TABLE.items())
    mean = sum(SHARES[name] * float(sums_of(rows, query).total) / len(rows) for name, rows in TABLE.items())
    if query.kind == "avg":
        return mean / hits
    return mean * sum(map(len, TABLE.values()))


@pytest.mark.parametrize("text", ["avg(x)", "sum(x)", "sum(x) filter (where h = true)", "count(*) filter (where h = true)"])
def test_estimates_are_unbiased_and_the_error_formula_is_exact(text: str) -> None:
    (query,) = parse_queries(text)
    found = draws(query)
    assert statistics.fmean(value for value, _ in found) == pytest.approx(at_the_public_composition(query))
    variance = statistics.pvariance(value for value, _ in found)
    assert statistics.fmean(error**2 for _, error in found) == pytest.approx(variance), "its square is unbiased"
    made = view_plan(KEEP, {name: len(rows) for name, rows in TABLE.items()})
    sds = [statistics.stdev([float(y) for y in ys_of(rows, query)]) for rows in TABLE.values()]
    factor = 11 if query.kind in ("sum", "count") else 1
    assert standard_error(made.cells, SHARES, sds) * factor == pytest.approx(math.sqrt(variance))


def ys_of(rows: Sequence[tuple[float, bool]], query: Query) -> list[float]:
    return [(x if query.column else 1.0) if query.where is None or h else 0.0 for x, h in rows]


def test_an_average_of_some_rows_is_a_ratio() -> None:
    """Nearly unbiased; its error by linearisation is right to first order, which tiny cells only roughly show."""
    (query,) = parse_queries("avg(x) filter (where h = true)")
    found = draws(query)
    assert len(found) < 200, "draws without such a row have no average"
    spread = statistics.pstdev(value for value, _ in found)
    assert abs(statistics.fmean(value for value, _ in found) - at_the_public_composition(query)) < spread / 4
    assert 0.4 < statistics.fmean(error for _, error in found) / spread < 1.3


def test_the_mutant_formulas_fail() -> None:
    """Without the finite population factor, or with the shares not squared, the enumeration notices."""
    (query,) = parse_queries("avg(x)")
    variance = statistics.pvariance(value for value, _ in draws(query))
    sds = [statistics.stdev([float(y) for y in ys_of(rows, query)]) for rows in TABLE.values()]
    infinite = sum(SHARES[name] ** 2 * sd**2 / KEEP[name] for name, sd in zip(TABLE, sds, strict=True))
    unsquared = sum(SHARES[name] * sd**2 * (1 / KEEP[name] - 1 / len(TABLE[name])) for name, sd in zip(TABLE, sds, strict=True))
    assert infinite > 1.5 * variance
    assert unsquared > 1.2 * variance


def test_the_error_is_a_bound_because_only_the_high_end_is_public() -> None:
    high = view_plan(KEEP, {"F": 50, "M": 60})
    own = view_plan(KEEP, {"F": 5, "M": 6})
    assert standard_error(high.cells, SHARES, [1.0, 1.0]) > standard_error(own.cells, SHARES, [1.0, 1.0])


def test_what_a_plan_says_beforehand_bounds_every_table() -> None:
    """The worst columns within the bounds: all values at the two ends, half of them at each."""
    made = plan("avg(x)", n=20, secrets=[Secret("count(g = 'F')", between=(4.0, 10.0))], bounds={"x": (-2.0, 6.0)})
    assert made.view is not None
    stated = made.error.rmse
    assert stated is not None
    shares = {"g = 'F'": 7 / 20, "other": 13 / 20}
    worst = 0.0
    for count in range(4, 11):
        for ones in itertools.product(range(count + 1), range(20 - count + 1)):
            variance = 0.0
            for cell, size, high in zip(made.view.cells, (count, 20 - count), ones, strict=True):
                p = high / size
                spread = 64 * p * (1 - p) * size / (size - 1)
                variance += shares[cell.name] ** 2 * spread * (1 / cell.keep - 1 / size)
            worst = max(worst, math.sqrt(variance))
    assert worst <= stated
    assert worst > 0.8 * stated, "and not by much"


def test_nothing_is_uncertain_where_all_rows_are_kept() -> None:
    everything = view_plan({"F": 5, "M": 6}, {"F": 5, "M": 6})
    (query,) = parse_queries("avg(x)")
    found = _estimate(query, everything, [sums_of(rows, query) for rows in TABLE.values()], SHARES)
    assert found is not None
    assert found[0] == pytest.approx(at_the_public_composition(query))
    assert found[1] == 0.0
