"""Noise for simulated laws: the bounds cover the truth as often as they say, and the true divergence stays below delta.

True divergences come from exact laws, by inverting characteristic functions or by quadrature; the calibration is not used.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from attrpriv.calibration.sampled import (
    Drawn,
    Extent,
    chance_distance,
    draw,
    extent,
    least_sampled_noise,
    sampled_delta_upper,
    variance_interval,
)
from attrpriv.divergences import hockey_stick
from attrpriv.errors import RefusedError, UsageError
from attrpriv.laws import GaussianLaw
from attrpriv.laws.simulated import GroupRows, NormalRows

N = 200
SDS, MEANS = (6.0, 14.0), (40.0, 42.0)
HOURS = GroupRows(N, "var_pop", ((MEANS[0],), ((SDS[0] ** 2,),)), ((MEANS[1],), ((SDS[1] ** 2,),)))
COUNTS = (50.0, 60.0, 70.0, 80.0)


def group_moments(count: float) -> tuple[float, float]:
    """Mean and variance of var_pop over two groups, in closed form."""
    sizes, variances = (count, N - count), [sd**2 for sd in SDS]
    weight, gap = count * (N - count) / N, (MEANS[0] - MEANS[1]) ** 2
    w = variances[0] / sizes[0] + variances[1] / sizes[1]
    own = [2 * (size - 1) * v**2 for size, v in zip(sizes, variances, strict=True)]
    mean = sum((size - 1) * v for size, v in zip(sizes, variances, strict=True)) + weight * (w + gap)
    return mean / N, (sum(own) + weight**2 * (2 * w**2 + 4 * w * gap)) / N**2


def group_density(count: float, noise: float, start: float, step: float, size: int) -> np.ndarray:
    """The exact density of var_pop plus noise: a sum of scaled chi-squares, by its characteristic function."""
    t = 2 * np.pi * np.fft.fftfreq(size, step)
    weight, gap = count * (N - count) / N, (MEANS[0] - MEANS[1]) ** 2
    w = SDS[0] ** 2 / count + SDS[1] ** 2 / (N - count)
    log = -(count - 1) / 2 * np.log(1 - 2j * t * SDS[0] ** 2 / N) - (N - count - 1) / 2 * np.log(1 - 2j * t * SDS[1] ** 2 / N)
    between = 1 - 2j * t * weight * w / N
    log += -0.5 * np.log(between) + 1j * t * weight * gap / N / between - (noise * t) ** 2 / 2
    density: np.ndarray = np.fft.fft(np.exp(log - 1j * t * start)).real / (size * step)
    return density


def group_delta(noise: float, epsilon: float) -> float:
    """The true hockey-stick divergence of the two ends, the larger way."""
    centre, spread = group_moments(65.0)[0], math.sqrt(group_moments(50.0)[1] + noise**2) + 25.0
    size, start = 2**14, centre - 40 * spread
    step = 80 * spread / size
    a, b = (group_density(count, noise, start, step, size) for count in (COUNTS[0], COUNTS[-1]))
    assert abs(a.sum() * step - 1) < 1e-9
    return float(max(np.maximum(p - math.exp(epsilon) * q, 0).sum() * step for p, q in ((a, b), (b, a))))


def test_the_bounds_hold_for_exact_moments() -> None:
    found = extent([draw(HOURS, COUNTS, 50_000, 3)], 1e-7)
    moments = [group_moments(count) for count in COUNTS]
    gap = moments[0][0] - moments[-1][0]
    variances = [v for _, v in moments]
    assert gap < found.gap < 1.05 * gap
    assert 0.9 * min(variances) < found.least < min(variances)
    assert max(variances) - min(variances) < found.spread < 1.1 * max(variances)


def test_the_bounds_fail_as_often_as_they_may_and_a_bare_estimate_far_more_often() -> None:
    """200 simulations at 10% each: more than 50 misses have probability below 1e-9; the mutant misses half of the time."""
    moments = [group_moments(count) for count in (50.0, 60.0)]
    gap, low, high = moments[0][0] - moments[1][0], *sorted(v for _, v in moments)
    misses = {"gap": 0, "least": 0, "spread": 0, "bare gap": 0, "bare least": 0}
    for seed in range(200):
        drawn = draw.__wrapped__(HOURS, (50.0, 60.0), 1_000, seed)
        found = extent([drawn], 0.1)
        misses["gap"] += found.gap < gap
        misses["least"] += found.least > low
        misses["spread"] += found.spread < high - low
        misses["bare gap"] += drawn.gaps[0].size < gap
        misses["bare least"] += min(drawn.variances) > low
    assert max(misses["gap"], misses["least"], misses["spread"]) <= 50
    assert misses["bare gap"] > 60
    assert misses["bare least"] > 20


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1.0, 1e-3), (0.3, 1e-5), (3.0, 1e-5)])
def test_the_true_divergence_of_a_variance_stays_below_delta(epsilon: float, delta: float) -> None:
    found = extent([draw(HOURS, COUNTS, 50_000, 3)], 1e-7)
    noise = math.sqrt(least_sampled_noise([found], epsilon, delta, 1e-6))
    true = group_delta(noise, epsilon)
    assert true <= delta
    # not by a margin that would hide an error: a tenth less noise breaks the promise
    assert group_delta(0.9 * noise, epsilon) > true


def test_less_of_the_gap_is_caught() -> None:
    """A mutant that hides nine tenths of the gap does not keep the promise."""
    found = extent([draw(HOURS, COUNTS, 50_000, 3)], 1e-7)
    noise = math.sqrt(least_sampled_noise([replace(found, gap=0.9 * found.gap)], 0.3, 1e-5, 1e-6))
    assert group_delta(noise, 0.3) > 1e-5


# An intercept given the average of x: the mean stays, the variance moves with the square of the average.
N_X, A, B, LEFT, SPREAD = 300, 1.0, 4.0, 9.0, 1.0
LINE = NormalRows(N_X, "regr_intercept", (0.0, 0.0), ((LEFT + 0.25, 0.5), (0.5, SPREAD)), (0.5, SPREAD), 0.0, SPREAD)


def line_delta(noise: float, epsilon: float) -> float:
    """F given x's average a is a mixture of normal laws over x's sum of squares, a chi-square: by quadrature."""
    from scipy.special import gammaincinv

    chances = (np.arange(800) + 0.5) / 800
    squares = SPREAD * 2 * gammaincinv((N_X - 1) / 2, chances)
    grid = np.linspace(-14, 14, 1_001) * math.sqrt(LEFT * (1 / N_X + B**2 / squares.min()) + noise**2)
    laws = []
    for value in (A, B):
        variances = LEFT * (1 / N_X + value**2 / squares) + noise**2
        laws.append((np.exp(-(grid[:, None] ** 2) / (2 * variances)) / np.sqrt(2 * np.pi * variances)).mean(axis=1))
    step = grid[1] - grid[0]
    return float(max(np.maximum(p - math.exp(epsilon) * q, 0).sum() * step for p, q in (laws, laws[::-1])))


def test_the_true_divergence_of_an_intercept_stays_below_delta_and_one_variance_is_not_enough() -> None:
    found = extent([draw(LINE, (A, 2.0, 3.0, B), 50_000, 3)], 1e-7)
    assert found.gap < 0.1 * math.sqrt(found.least)
    assert found.spread > 4 * found.least
    noise = math.sqrt(least_sampled_noise([found], 1.0, 1e-5, 1e-6))
    assert line_delta(noise, 1.0) <= 1e-5
    mutant = math.sqrt(least_sampled_noise([replace(found, spread=0.0)], 1.0, 1e-5, 1e-6))
    assert line_delta(mutant, 1.0) > 1e-2


# The same line given the average of y: the mean moves too.
Y = replace(LINE, mean=(1.5, 3.0), with_secret=(LEFT + 0.25, 0.5), secret_mean=1.5, secret_variance=LEFT + 0.25)


def moving_delta(low: float, high: float, noise: float, epsilon: float) -> float:
    """F = a - b x: given x's average and sum of squares, b and so F is normal; the average is normal, the sum a chi-square."""
    from scipy.special import gammaincinv

    squares = SPREAD * 2 * gammaincinv((N_X - 1) / 2, (np.arange(80) + 0.5) / 80)
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    shared = (SPREAD - 0.25 / (LEFT + 0.25)) / N_X
    values = [(a, 3.0 + 0.5 / (LEFT + 0.25) * (a - 1.5)) for a in (low, high)]
    centre, reach = (low + high) / 2 - 0.5 * 3.0, (high - low) + 10 * math.sqrt(noise**2 + 0.5)
    grid = np.linspace(centre - reach, centre + reach, 801)
    laws = [np.zeros_like(grid), np.zeros_like(grid)]
    for law, (a, mean) in zip(laws, values, strict=True):
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            x = mean + math.sqrt(shared) * node
            variances = LEFT * x**2 / squares + noise**2
            part = np.exp(-((grid[:, None] - (a - 0.5 * x)) ** 2) / (2 * variances)) / np.sqrt(2 * np.pi * variances)
            law += weight * part.mean(axis=1)
    step = grid[1] - grid[0]
    assert all(abs(law.sum() * step - 1) < 1e-6 for law in laws)
    return float(max(np.maximum(p - math.exp(epsilon) * q, 0).sum() * step for p, q in (laws, laws[::-1])))


def test_the_true_divergence_of_an_intercept_that_moves_stays_below_delta() -> None:
    found = extent([draw(Y, (1.0, 1.5, 2.0), 50_000, 3)], 1e-7)
    moved = (1 - 0.25 / (LEFT + 0.25)) * 1.0
    assert moved < found.gap < 1.02 * moved
    noise = math.sqrt(least_sampled_noise([found], 1.0, 1e-4, 1e-6))
    true = moving_delta(1.0, 2.0, noise, 1.0)
    assert 0.5e-4 < true <= 1e-4
    less = math.sqrt(least_sampled_noise([replace(found, gap=0.9 * found.gap)], 1.0, 1e-4, 1e-6))
    assert moving_delta(1.0, 2.0, less, 1.0) > 1e-4


def test_a_law_of_fixed_spread_has_one_variance_and_no_gap() -> None:
    law = replace(LINE, kind="regr_slope")
    drawn = draw(law, (A, B), 20_000, 1)
    found = extent([drawn], 1e-7)
    assert drawn.values == (A,)
    assert found.gap == 0
    assert found.spread == 0
    assert sampled_delta_upper(found, 1e-9, 0.0) == 0


def test_the_noise_is_the_largest_over_all_extents_and_its_floor() -> None:
    one, other = Extent(1.0, 1.0, 1.0), Extent(0.5, 0.2, 2.8)
    alone = [least_sampled_noise([e], 1.0, 1e-5, 1e-3) for e in (one, other)]
    assert least_sampled_noise([one, other], 1.0, 1e-5, 1e-3) == max(alone)
    assert least_sampled_noise([one, other], 1.0, 1e-5, 1e3) == 1e3
    for extents, variance in ((one, alone[0]), (other, alone[1])):
        assert sampled_delta_upper(extents, variance, 1.0) <= 1e-5 < sampled_delta_upper(extents, 0.99 * variance, 1.0)


def test_the_divergence_bounds_everything_within_the_extent() -> None:
    """A grid of pairs within the extent, each exactly: none is above."""
    found, noise, epsilon = Extent(1.2, 0.5, 2.0), 3.0, 0.4
    upper = sampled_delta_upper(found, noise, epsilon)
    seen = [
        hockey_stick(GaussianLaw(0.0, x + noise), GaussianLaw(gap, y + noise), epsilon)
        for gap in (0.0, 0.6, 1.2)
        for x in np.linspace(0.5, 2.5, 9)
        for y in np.linspace(0.5, 2.5, 9)
    ]
    assert max(seen) <= upper <= max(seen) * (1 + 1e-9)


def test_corners_take_the_least_and_the_largest_variance_of_all() -> None:
    wide = replace(HOURS, first=((40.0,), ((81.0,),)))
    laws = [draw(one, COUNTS, 5_000, 3) for one in (HOURS, wide)]
    paired, pooled = extent(laws, 1e-7), extent(laws, 1e-7, corners=True)
    assert (paired.gap, paired.least) == (pooled.gap, pooled.least)
    assert paired.spread < pooled.spread
    assert extent(laws[:1], 1e-7, laws[1:]).gap == extent(laws[:1], 1e-7).gap  # of what stands besides, only the variance


def test_what_bends_between_the_values_is_covered() -> None:
    """The exact moments at every count in between, of which only every fifteenth was simulated."""
    found = extent([draw(HOURS, (50.0, 65.0, 80.0), 50_000, 3)], 1e-7)
    moments = [group_moments(float(count)) for count in range(50, 81)]
    assert max(a - b for a, _ in moments for b, _ in moments) < found.gap
    assert found.least < min(v for _, v in moments)
    assert max(a - b for _, a in moments for _, b in moments) < found.spread


def test_heavy_tails_widen_the_interval_of_a_variance() -> None:
    normal, heavy = (variance_interval(1.0, kurtosis, 10_000, 1e-6) for kurtosis in (3.0, 9.0))
    assert heavy[0] < normal[0] < 1 < normal[1] < heavy[1]
    assert variance_interval(1.0, 2.0, 10_000, 1e-6) == normal  # lighter tails do not narrow it


def test_distances_from_normal_laws_are_seen() -> None:
    """A chi-square of 8 degrees of freedom is not normal; of 2,000 it cannot be told from it with these draws."""
    runs = 20_000
    few, many = (
        draw(NormalRows(n, "var_pop", (0.0,), ((1.0,),), (0.0,), 0.0, 1.0), (0.0,), runs, 2).distances[0] for n in (9, 2_001)
    )
    assert many < chance_distance(runs, 1) < 0.5 * few


def test_what_cannot_be_simulated_is_refused() -> None:
    line = NormalRows(50, "regr_slope", (0.0, 0.0), ((1.0, 1.0), (1.0, 1.0)), (0.0, 0.0), 0.0, 1.0)
    with pytest.raises(RefusedError, match="does not vary"):
        draw(line, (0.0,), 1_000, 1)
    huge = NormalRows(50, "covar_pop", (0.0, 0.0), ((1e300, 0.0), (0.0, 1e300)), (0.0, 0.0), 0.0, 1.0)
    with pytest.raises(RefusedError, match="simulation:"), np.errstate(all="ignore"):
        draw(huge, (0.0,), 1_000, 1)
    flat = Drawn(LINE, (0.0,), 10, (0.0,), (math.inf,), (0.0,), (3.0,), (0.0,))
    with pytest.raises(RefusedError, match="not known well enough"):
        extent([flat], 1e-6)
    with pytest.raises(UsageError, match="alpha"):
        extent([flat], 0.0)
    with pytest.raises(UsageError, match="floor: must be positive"):
        least_sampled_noise([Extent(1.0, 1.0, 1.0)], 1.0, 1e-6, 0.0)
    with pytest.raises(UsageError, match="noise"):
        sampled_delta_upper(Extent(1.0, 1.0, 0.0), math.nan, 1.0)
