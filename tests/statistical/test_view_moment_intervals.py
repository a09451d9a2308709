"""Intervals of variances, covariances, regressions and quantiles from a view hold as often as they say.

The engine is replaced by sums over arrays: what is tested is the estimate and its error.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from attrpriv.engines.view.answers import CellMoments, CellSums, ViewMoments, ViewSums
from attrpriv.engines.view.values import AtMost, Quadratic
from attrpriv.methods.base.accuracy import Spread
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.methods.view.plan import public_shares
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from attrpriv.session import view_estimates as view_estimates

N, DRAWS, LEVEL, FALSE_ALARM = 1000, 1000, 0.95, 1e-6
# Both cells at the high ends that the error counts on.
SIZES = (400, 750)
# Linearised errors from a few hundred rows cost up to a percent of coverage.
APPROXIMATION = 0.012

Array = NDArray[np.float64]


class FakeView:
    """Kept rows in arrays, one array of (u, v) for each cell, and the rows of the filter."""

    names = (None,)

    def __init__(self, rows: list[Array], hits: list[Array]) -> None:
        self.rows, self.hits = rows, hits

    def moments(self, query: Query) -> ViewMoments:
        size = len(query.arguments)
        cells = []
        for rows, hit in zip(self.rows, self.hits, strict=True):
            y = rows[:, :size] * hit[:, None]
            products = y.T @ y
            totals = tuple(Fraction(float(total)) for total in y.sum(axis=0))
            cells.append(CellMoments(int(hit.sum()), totals, tuple(tuple(Fraction(float(p)) for p in row) for row in products)))
        return ViewMoments({None: tuple(cells)})

    def sums(self, query: Query, transform: Any = None) -> ViewSums:
        cells = []
        for rows, hit in zip(self.rows, self.hits, strict=True):
            y = (rows[:, 0] if transform is None else self.transformed(rows, transform[0])) * hit
            cells.append(CellSums(int(hit.sum()), Fraction(float(y.sum())), Fraction(float((y * y).sum()))))
        return ViewSums({None: tuple(cells)})

    @staticmethod
    def transformed(rows: Array, one: Any) -> Array:
        if isinstance(one, AtMost):
            return (rows[:, 0] <= one.limit).astype(float)
        assert isinstance(one, Quadratic)
        off = [rows[:, j] - centre for j, centre in enumerate(one.centres)]
        linear = sum((a * x for a, x in zip(one.linear, off, strict=True)), np.zeros(len(rows)))
        return np.asarray(linear + sum(a * off[j] * off[k] for j, k, a in one.squares))

    def quantiles(self, query: Query, weights: Any, wanted: Any) -> list[list[float]]:
        values = np.concatenate([rows[hit > 0, 0] for rows, hit in zip(self.rows, self.hits, strict=True)])
        each = np.concatenate([np.full(int(hit.sum()), w) for hit, w in zip(self.hits, weights, strict=True)])
        order = np.argsort(values)
        reached = np.cumsum(each[order])
        return [[float(values[order][min(len(order) - 1, np.searchsorted(reached, w - 1e-12))]) for w in wanted[0]]]


def view_plan() -> ViewPlan:
    secret = Secret("count(g = 'F')", between=(250.0, 400.0))
    return plan_view_of(Problem(queries=(Query("count"),), secrets=(secret,), epsilon=1.0, n=N))


def population(seed: int) -> tuple[list[Array], list[Array]]:
    rng = np.random.default_rng(seed)
    v = [rng.normal(50, 8, SIZES[0]), rng.uniform(20, 90, SIZES[1])]
    u = [3 + 0.5 * v[0] + rng.normal(0, 6, SIZES[0]), 10 + 0.4 * v[1] + rng.normal(0, 4, SIZES[1])]
    hits = [(rng.random(size) < p).astype(float) for size, p in zip(SIZES, (0.8, 0.6), strict=True)]
    return [np.column_stack(pair) for pair in zip(u, v, strict=True)], hits


def truth_of(query: Query, rows: list[Array], hits: list[Array], weights: list[float]) -> float:
    """The statistic of the whole table at the public composition, from its definition."""
    w = np.concatenate([hit * share / len(hit) for hit, share in zip(hits, weights, strict=True)])
    w /= w.sum()
    u, v = np.concatenate(rows).T
    mu, mv = (w * u).sum(), (w * v).sum()
    cov, var = (w * (u - mu) * (v - mv)).sum(), (w * (v - mv) ** 2).sum()
    order = np.argsort(u)
    quantile = u[order][np.searchsorted(np.cumsum(w[order]), query.level or 0.5)]
    found = {
        "var_pop": (w * (u - mu) ** 2).sum(), "covar_pop": cov, "regr_slope": cov / var,
        "regr_intercept": mu - cov / var * mv, "quantile": quantile,
    }  # fmt: skip
    return float(found[query.kind])


def draws(query: Query, monkeypatch: pytest.MonkeyPatch) -> tuple[Array, float]:
    plan = view_plan()
    shares = public_shares(plan, {})
    rows, hits = population(5)
    rng = np.random.default_rng(6)
    for name in ("moments", "sums", "quantiles"):
        monkeypatch.setattr(view_estimates, f"view_{name}", lambda view, *rest, name=name: getattr(view, name)(*rest))
    found = []
    for _ in range(DRAWS):
        chosen = [rng.choice(size, cell.keep, replace=False) for size, cell in zip(SIZES, plan.cells, strict=True)]
        view: Any = FakeView(
            [r[c] for r, c in zip(rows, chosen, strict=True)], [h[c] for h, c in zip(hits, chosen, strict=True)]
        )
        (value,) = view_estimates.estimates(view, query, plan, shares)
        found.append((value.value, value.spread.reach(LEVEL)))
    return np.array(found), truth_of(query, rows, hits, [shares[cell.name] for cell in plan.cells])


STATISTICS = [
    "var_pop(u)",
    "covar_pop(u, v)",
    "regr_slope(u, v)",
    "regr_intercept(u, v)",
    "median(u)",
    "approx_quantile(u, 0.9)",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", STATISTICS)
def test_intervals_hold_as_often_as_they_say(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails by chance once in a million; errors that are 30% too small or 60% too large are found."""
    (query,) = parse_queries(f"{text} filter (where e = 1)")
    found, truth = draws(query, monkeypatch)
    low = binom.ppf(FALSE_ALARM / 2, DRAWS, LEVEL - (0.03 if query.kind == "quantile" else APPROXIMATION))
    high = binom.ppf(1 - FALSE_ALARM / 2, DRAWS, min(0.99, LEVEL + APPROXIMATION))

    def covered(scale: float) -> int:
        return int(np.sum(np.abs(found[:, 0] - truth) <= scale * found[:, 1]))

    assert low <= covered(1.0) <= high, covered(1.0) / DRAWS
    assert covered(0.7) < low, "an error that is too small passes"
    assert covered(1.6) > high, "an error that is too large passes"


def test_few_rows_have_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = view_plan()
    rows = [np.random.default_rng(1).normal(size=(cell.keep, 2)) for cell in plan.cells]
    hits = [np.arange(cell.keep) < 5.0 for cell in plan.cells]
    for name in ("moments", "sums", "quantiles"):
        monkeypatch.setattr(view_estimates, f"view_{name}", lambda view, *rest, name=name: getattr(view, name)(*rest))
    view: Any = FakeView(rows, [hit.astype(float) for hit in hits])
    for text in STATISTICS:
        (query,) = parse_queries(f"{text} filter (where e = 1)")
        (value,) = view_estimates.estimates(view, query, plan, public_shares(plan, {}))
        assert value.spread == Spread("gaussian", float("inf"))
        assert value.to_json(0.95)["interval"] is None
