"""Limits of a share: against SciPy's beta law and Clopper and Pearson's limits."""

from __future__ import annotations

import math

import pytest
from scipy.stats import beta, binomtest

from attrpriv.errors import UsageError
from attrpriv.methods.base.share_limits import ShareLimits


def of_one_cell(hits: int, rows: int, weight: float = 1.0) -> ShareLimits:
    """A cell that has all rows: v = p (1 - p) / m by the pooled share."""
    pooled = (hits + hits / rows) / (rows + 1)
    return ShareLimits(hits / rows, pooled * (1 - pooled) / rows, 1 / rows, weight)


@pytest.mark.parametrize(("hits", "rows"), [(50, 400), (200, 400), (300, 400)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_with_one_cell_it_is_about_clopper_and_pearson(hits: int, rows: int, level: float) -> None:
    low, high = of_one_cell(hits, rows).ends(level)
    exact = binomtest(hits, rows).proportion_ci(level, method="exact")
    assert high - hits / rows == pytest.approx(exact.high - hits / rows, rel=0.12)
    assert hits / rows - low == pytest.approx(hits / rows - exact.low, rel=0.12)


@pytest.mark.parametrize("share", [0.02, 0.4, 0.97])
def test_each_end_is_a_quantile_of_the_beta_law_with_these_moments(share: float) -> None:
    limits = ShareLimits(share, 3e-4, 0.01, 50.0)
    law = {}
    for side in (share, 1 - share):
        mean, variance = side + 0.01, 3e-4 + 1e-4
        size = mean * (1 - mean) / variance - 1
        law[side] = beta(mean * size, (1 - mean) * size)
        assert law[side].mean() == pytest.approx(mean)
        assert law[side].var() == pytest.approx(variance)
    low, high = limits.ends(0.9)
    assert high == pytest.approx(50 * max(law[share].ppf(0.95), share), rel=1e-9)
    assert low == pytest.approx(50 * min(1 - law[1 - share].ppf(0.95), share), rel=1e-6, abs=1e-9)
    assert limits.reach(0.9) == pytest.approx(max(high - 50 * share, 50 * share - low), rel=1e-12)


def test_few_rows_say_nothing() -> None:
    """One row more could be all of it, or the variance is more than any law in [0, 1] of that mean has."""
    assert ShareLimits(0.5, 0.0, 0.5).ends(0.5) == (0.0, 1.0)
    assert ShareLimits(0.7, 0.0, 0.4).ends(0.5)[1] == 1.0
    assert ShareLimits(0.4, 0.24, 0.1).ends(0.5) == (0.0, 1.0)
    assert ShareLimits(0.4, 0.23, 0.1).ends(0.5)[1] < 1.0


def test_an_end_never_crosses_the_estimate() -> None:
    low, high = ShareLimits(0.3, 1e-4, 0.02).ends(1e-9)
    assert low <= 0.3 <= high


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, math.nan])
def test_a_level_lies_between_0_and_1(level: float) -> None:
    with pytest.raises(UsageError, match="level"):
        ShareLimits(0.3, 1e-4, 0.02).ends(level)
