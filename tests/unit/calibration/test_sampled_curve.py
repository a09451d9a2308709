"""Moments that turn between simulated counts: the extent covers all of them, and one from nine counts alone does not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from attrpriv.calibration.sampled import draw, extent, least_sampled_noise
from attrpriv.calibration.sampled_curve import curved_extent
from attrpriv.errors import UsageError
from attrpriv.laws.moment_curve import curve, moments
from attrpriv.laws.simulated import GroupRows, ShiftedQuantile

# Both groups have the same line of regression, so no mean of the slope moves; a hundredth of the rows with a wide spread
# makes its variance three times that of six hundredths.
N, LOW, HIGH = 10_000, 10, 5_000
LEVERAGE = GroupRows(N, "regr_slope", ((0.0, 0.0), ((125.0, 100.0), (100.0, 100.0))), ((0.0, 0.0), ((1.01, 1.0), (1.0, 1.0))))
EVENLY = tuple(float(round(LOW + (HIGH - LOW) * k / 8)) for k in range(9))
ALPHA, RUNS = 1e-8, 100_000


def divergence(shift: float, first: float, second: float, epsilon: float) -> float:
    """Twin: H_epsilon(N(0, first) || N(shift, second)) by a sum over a fine grid."""
    reach = 12 * np.sqrt(max(first, second)) + abs(shift)
    x = np.linspace(-reach, reach, 20_001)
    p, q = norm.pdf(x, 0, np.sqrt(first)), norm.pdf(x, shift, np.sqrt(second))
    return float(np.maximum(p - np.exp(epsilon) * q, 0).sum() * (x[1] - x[0]))


def worst(noise: float, epsilon: float, apart: int) -> float:
    """The largest divergence between two counts at most `apart` from each other, on a grid of them."""
    counts = np.unique(np.geomspace(LOW, HIGH, 14).round())
    mean, variance = moments(LEVERAGE, counts)
    pairs = [(i, j) for i in range(14) for j in range(14) if i != j and abs(counts[i] - counts[j]) <= apart]
    return max(divergence(mean[j] - mean[i], variance[i] + noise, variance[j] + noise, epsilon) for i, j in pairs)


@pytest.mark.parametrize("apart", [HIGH - LOW, 300])
def test_the_noise_covers_what_lies_between_the_simulated_counts(apart: int) -> None:
    line = curve(LEVERAGE, LOW, HIGH, apart)
    found = curved_extent([draw(LEVERAGE, EVENLY, RUNS, 1)], [line], ALPHA)
    assert found.spread >= line.variance.apart
    assert found.gap >= line.mean.apart
    assert found.least <= line.variance.least
    noise = least_sampled_noise([found], 1.0, 1e-6, 1e-9)
    assert worst(noise, 1.0, apart) <= 1e-6


def test_nine_counts_alone_would_not() -> None:
    """The planted mutant: moments that are taken to bend as they do between nine counts."""
    bare = extent([draw(LEVERAGE, EVENLY, RUNS, 1)], ALPHA)
    assert bare.spread < curve(LEVERAGE, LOW, HIGH, HIGH - LOW).variance.apart
    assert worst(least_sampled_noise([bare], 1.0, 1e-6, 1e-9), 1.0, HIGH - LOW) > 1e-5


def test_what_draws_show_beyond_the_curve_is_added() -> None:
    line, drawn = curve(LEVERAGE, LOW, HIGH, 100), draw(LEVERAGE, EVENLY, 2_000, 1)
    few, many = (curved_extent([one], [line], ALPHA) for one in (drawn, draw(LEVERAGE, EVENLY, RUNS, 1)))
    assert few.gap > many.gap
    assert few.spread > many.spread
    assert few.least < many.least


def test_corners_take_the_least_and_the_largest_variance_of_all() -> None:
    small = GroupRows(500, "var_pop", ((1.0,), ((1.0,),)), ((0.0,), ((1.0,),)))
    large = GroupRows(500, "var_pop", ((1.0,), ((4.0,),)), ((0.0,), ((4.0,),)))
    laws, values = (small, large), (100.0, 150.0, 200.0)
    lines = [curve(one, 100, 200, 100) for one in laws]
    drawn = [draw(one, values, 5_000, 3) for one in laws]
    apart, together = (curved_extent(drawn, lines, ALPHA, corners=corners) for corners in (False, True))
    assert together.spread > lines[1].variance.most - lines[0].variance.least > apart.spread
    assert (together.gap, together.least) == (apart.gap, apart.least)


def test_what_has_no_curve_is_an_error() -> None:
    line = curve(LEVERAGE, LOW, HIGH, 100)
    quantile = draw(ShiftedQuantile(100, 0.5, 1.0, 1.0, 1.0), (0.0, 1.0), 1_000, 1)
    with pytest.raises(UsageError, match="those of groups"):
        curved_extent([quantile], [line], ALPHA)
    with pytest.raises(UsageError, match="alpha"):
        curved_extent([draw(LEVERAGE, EVENLY, 2_000, 1)], [line], 0.0)
