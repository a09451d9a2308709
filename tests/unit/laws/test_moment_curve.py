"""Curves of moments under groups: against rows drawn one by one, and against every pair of counts."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv import errors
from attrpriv.laws import moment_curve
from attrpriv.laws.moment_curve import curve, moments, moments_at
from attrpriv.laws.simulated import GroupRows

FIRST = ((3.0, 2.0), ((1.0, 0.5), (0.5, 4.0)))
SECOND = ((0.0, 0.5), ((2.0, -0.3), (-0.3, 1.0)))
Kind = Literal["var_pop", "covar_pop", "regr_slope", "regr_intercept"]
KINDS: tuple[Kind, ...] = ("var_pop", "covar_pop", "regr_slope", "regr_intercept")


def law(kind: Kind, n: int = 200, first: Any = FIRST, second: Any = SECOND) -> GroupRows:
    if kind == "var_pop":
        return GroupRows(n, kind, ((first[0][0],), ((first[1][0][0],),)), ((second[0][0],), ((second[1][0][0],),)))
    return GroupRows(n, kind, first, second)


def rows_of(runs: int, size: int, group: Any, generator: np.random.Generator) -> NDArray[np.float64]:
    return generator.multivariate_normal(group[0], group[1], (runs, size))


@lru_cache(maxsize=1)
def statistics(runs: int, count: int) -> dict[str, NDArray[np.float64]]:
    """Twin: rows themselves."""
    generator = np.random.default_rng(count)
    rows = np.concatenate([rows_of(runs, count, FIRST, generator), rows_of(runs, 200 - count, SECOND, generator)], axis=1)
    y, x = rows[:, :, 0], rows[:, :, 1]
    slope = ((y - y.mean(1, keepdims=True)) * (x - x.mean(1, keepdims=True))).mean(1) / x.var(axis=1)
    return {
        "var_pop": y.var(axis=1),
        "covar_pop": slope * x.var(axis=1),
        "regr_slope": slope,
        "regr_intercept": y.mean(axis=1) - slope * x.mean(axis=1),
    }


@pytest.mark.parametrize("count", [0, 20, 100, 197])
def test_moments_are_those_of_drawn_rows(count: int) -> None:
    """32 comparisons at 5.7 standard errors, false alarms below 4e-7 in all. A mean that is off by .16 sd, or a variance by
    25%, is seen with probability above 1 - 1e-6. The first order itself leaves up to 5%."""
    runs = 10_000
    for kind in KINDS:
        found = statistics(runs, count)[kind]
        (mean,), (variance,) = moments_at(law(kind), [count])
        assert abs(found.mean() - mean) < 5.7 * found.std() / np.sqrt(runs) + 0.05 * found.std()
        assert abs(found.var() / variance - 1) < 5.7 * np.sqrt(2.5 / runs) + 0.05


@pytest.mark.parametrize("apart", [1, 7, 60, 180])
@pytest.mark.parametrize("kind", KINDS)
def test_the_reach_is_that_of_every_pair(kind: Kind, apart: int) -> None:
    counts = range(10, 191)
    found = curve(law(kind), 10, 190, apart)
    for reach, moment in zip((found.mean, found.variance), moments(law(kind), np.array(counts, dtype=float)), strict=True):
        pairs = [(a, b) for a, b in itertools.combinations(range(len(counts)), 2) if b - a <= apart]
        assert reach.apart == max(abs(moment[a] - moment[b]) for a, b in pairs)
        assert (reach.least, reach.most) == (moment.min(), moment.max())
        at = [int(count) - 10 for count in reach.at]
        assert max(abs(moment[a] - moment[b]) for a, b in itertools.combinations(at, 2) if abs(a - b) <= apart) == reach.apart


@pytest.mark.parametrize("apart", [3, 400, 19_000])
@pytest.mark.parametrize("kind", KINDS)
def test_a_coarse_grid_takes_no_less_and_little_more(kind: Kind, apart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    steep = (FIRST[0], ((100.0, 5.0), (5.0, 400.0)))
    one = law(kind, 20_000, first=steep)
    exact = curve(one, 100, 19_900, apart)
    monkeypatch.setattr(moment_curve, "_COUNTS", 2_000)
    monkeypatch.setattr(moment_curve, "_TOWARDS_ENDS", 500)
    curve.cache_clear()
    coarse = curve(one, 100, 19_900, apart)
    curve.cache_clear()
    for fine, rough in ((exact.mean, coarse.mean), (exact.variance, coarse.variance)):
        assert rough.apart >= fine.apart
        assert rough.least <= fine.least
        assert rough.most >= fine.most
        assert rough.apart <= fine.apart * (1 + 30 / apart) * 1.05


def test_a_statistic_that_does_not_vary_is_refused() -> None:
    still = ((1.0, 1.0), ((0.0, 0.0), (0.0, 0.0)))
    with pytest.raises(errors.RefusedError, match="does not vary"):
        curve(GroupRows(200, "regr_slope", still, still), 0, 200, 200)
