"""Cases under a Gaussian assumption: every member of the class lies in the box that is returned."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.assumptions.gaussian import Gaussian, Tolerance
from attrpriv.assumptions.vector_box import pointwise_gap, rho_range, standardised_cases
from attrpriv.errors import QueryError, RefusedError, UsageError
from attrpriv.numerics.calibration.set_valued import moving_variance
from attrpriv.numerics.laws.intervals import parse_case, parse_cases
from attrpriv.numerics.laws.law_box import MovingCases
from tests.property.set_twin import brute

HALVES = parse_cases(["< 1100", ">= 1100"])


def school(mean: float = 0.0, sd: float = 0.0, slope: float | None = None, correlation: float | None = None) -> Gaussian:
    if slope is None and correlation is None:
        correlation = 0.0
    return Gaussian(
        mean={"sat": 1050},
        sd={"weight": 25, "sat": 200},
        correlation={("weight", "sat"): -0.3},
        tolerance=Tolerance(mean=mean, sd=sd, slope=slope, correlation=correlation),
    )


def test_fifty_above_the_mean_is_twenty_five_units() -> None:
    moving = standardised_cases(school(), "weight", "sat", HALVES, 10_000)
    assert moving.thresholds() == pytest.approx((25.0, 25.0))
    assert moving.box.means == (1050.0, 1050.0)
    assert moving.box.sds == pytest.approx((2.0, 2.0))
    assert moving.query_sds == pytest.approx((0.25, 0.25))


def test_a_tolerance_of_the_mean_moves_by_whole_units() -> None:
    moving = standardised_cases(school(mean=0.01), "weight", "sat", HALVES, 10_000)
    assert moving.thresholds() == pytest.approx((24.0, 26.0))
    both = standardised_cases(school(mean=0.01, sd=0.02), "weight", "sat", HALVES, 10_000)
    # The mean moves by a hundredth of the largest sd, and the sd divides.
    assert both.thresholds() == pytest.approx(((50 - 2.04) / 2.04, (50 + 2.04) / 1.96))


def test_a_threshold_at_an_exact_mean_is_exactly_zero() -> None:
    moving = standardised_cases(school(sd=0.1), "weight", "sat", parse_cases(["< 1050", ">= 1050"]), 10_000)
    assert moving.thresholds() == (0.0, 0.0)


def test_a_sum_is_a_mean_times_n() -> None:
    sums = standardised_cases(school(), "weight", "sat", parse_cases(["< 110000", ">= 110000"]), 100, weight=100.0)
    means = standardised_cases(school(), "weight", "sat", HALVES, 100)
    assert sums.thresholds() == pytest.approx(means.thresholds())


@pytest.mark.parametrize(
    ("gaussian", "form", "strength", "rho"),
    [
        (school(), "correlation", 0.3, (0.3, 0.3)),
        (school(correlation=0.1), "correlation", 0.4, (0.2, 0.4)),
        (school(correlation=0.5), "correlation", 0.8, (0.0, 0.8)),
        (school(correlation=0.9), "correlation", 1.0, (0.0, 1.0)),
        (school(slope=0.1), "slope", 0.3 * 25 / 200 * 1.1, (0.27, 0.33)),
        (school(slope=0.1, sd=0.02), "slope", 0.3 * 25 / 200 * 1.1, (0.27 * 0.98 / 1.02, 0.33 * 1.02 / 0.98)),
        (school(slope=5.0), "slope", 0.3 * 25 / 200 * 6, (0.0, 1.0)),
    ],
)
def test_the_sign_of_a_correlation_is_dropped_and_its_range_kept(
    gaussian: Gaussian, form: str, strength: float, rho: tuple[float, float]
) -> None:
    moving = standardised_cases(gaussian, "weight", "sat", HALVES, 10_000)
    assert moving.form == form
    assert moving.strength == pytest.approx(strength)
    assert rho_range(gaussian, "weight", "sat") == pytest.approx(rho)
    assert moving.correlation() == pytest.approx(rho[1])


def test_the_query_is_the_secret() -> None:
    moving = standardised_cases(school(sd=0.1), "sat", "sat", HALVES, 10_000)
    assert moving.form == "itself"
    assert rho_range(school(), "sat", "sat") == (1.0, 1.0)
    assert moving.spread(2.0).residual == 0.0


@given(
    tolerance=st.tuples(st.floats(0, 0.02), st.floats(0, 0.2), st.floats(0, 0.5)),
    by_slope=st.booleans(),
    at=st.tuples(*(st.floats(-1, 1) for _ in range(4))),
    n=st.integers(2, 10**7),
    variance=st.floats(0, 2),
)
@settings(max_examples=300)
def test_every_member_lies_in_the_box(
    tolerance: tuple[float, float, float], by_slope: bool, at: tuple[float, float, float, float], n: int, variance: float
) -> None:
    mean, sd, pair = tolerance
    gaussian = school(mean, sd, pair if by_slope else None, None if by_slope else pair)
    moving = standardised_cases(gaussian, "weight", "sat", HALVES, n)
    sd_g, sd_q = 200 * (1 + at[0] * sd), 25 * (1 + at[1] * sd)
    slope = -0.3 * 25 / 200 * (1 + at[2] * pair) if by_slope else max(-1.0, min(1.0, -0.3 + at[2] * pair)) * sd_q / sd_g
    rho = slope * sd_g / sd_q
    if abs(rho) > 1:
        return
    # A mean may be off by the tolerance in units of the stated or of the true sd.
    for unit in (200.0, sd_g):
        centre = 1050 + at[3] * mean * unit
        low, high = moving.thresholds()
        assert low <= (1100 - centre) * math.sqrt(n) / sd_g * (1 + 1e-15) + 1e-12
        assert (1100 - centre) * math.sqrt(n) / sd_g <= high + 1e-12
    assert abs(rho) <= moving.correlation() * (1 + 1e-12)
    noise = variance * 25**2 / n
    explained, residual = (slope * sd_g) ** 2 / n, max(0.0, sd_q**2 - (slope * sd_g) ** 2) / n
    if residual + noise > 0:
        lam = math.sqrt(explained / (residual + noise))
        assert lam <= moving.spread(sd_g / math.sqrt(n)).lam(noise) * (1 + 1e-9)


def shown(moving: MovingCases, mean: float, sd: float, slope: float, variance: float, query_sd: float) -> float:
    """H_1 of one member by brute force, both ways, from first principles."""
    lam = abs(slope) * sd / math.sqrt(query_sd**2 - (slope * sd) ** 2 + variance)
    sets = [[((p.low - mean) / sd, (p.high - mean) / sd) for p in case.parts] for case in moving.cases]
    return max(brute(sets[0], sets[1], lam, 1.0), brute(sets[1], sets[0], lam, 1.0))


@pytest.mark.parametrize(
    "cases", [["< 1051", ">= 1051"], pytest.param(["[1047, 1053)", "< 1047 or >= 1053"], marks=pytest.mark.slow)]
)
def test_from_the_assumption_to_noise_that_holds_for_its_members(cases: list[str]) -> None:
    gaussian = school(mean=0.005, sd=0.02, slope=0.1)
    moving = standardised_cases(gaussian, "weight", "sat", parse_cases(cases), 10_000)
    noise = moving_variance(moving, 1.0, 1e-5)
    assert noise.variance > 0
    rng = np.random.default_rng(1)
    for _ in range(6):
        ends = rng.choice([-1.0, 1.0, 0.0], size=4)
        sd_g, sd_q = 2 * (1 + 0.02 * ends[0]), 0.25 * (1 + 0.02 * ends[1])
        slope, mean = -0.3 * 25 / 200 * (1 + 0.1 * ends[2]), 1050 + 0.005 * 200 * ends[3]
        assert shown(moving, mean, sd_g, slope, noise.variance, sd_q) <= 1e-5 * (1 + 1e-3)


def test_mutants_of_the_threshold_are_caught() -> None:
    """Not standardised, or standardised at the stated mean only: both leave a member that shows too much."""
    gaussian = school(mean=0.01, slope=0.0)
    moving = standardised_cases(gaussian, "weight", "sat", parse_cases(["< 1052", ">= 1052"]), 10_000)
    good = moving_variance(moving, 1.0, 1e-5).variance
    worst = {"mean": 1050 - 0.01 * 200, "sd": 2.0, "slope": 0.3 * 25 / 200, "query_sd": 0.25}
    assert shown(moving, variance=good, **worst) <= 1e-5
    at_the_mean = standardised_cases(school(slope=0.0), "weight", "sat", parse_cases(["< 1052", ">= 1052"]), 10_000)
    assert shown(moving, variance=moving_variance(at_the_mean, 1.0, 1e-5).variance, **worst) > 3e-5
    by_row_sd = standardised_cases(school(slope=0.0), "weight", "sat", parse_cases(["< 1050.02", ">= 1050.02"]), 10_000)
    assert shown(moving, variance=moving_variance(by_row_sd, 1.0, 1e-5).variance, **worst) > 3e-5


def test_known_rows_are_refused_for_a_reason() -> None:
    """Half of the rows known: the law of the mean is centred at what they say. Scaling variances would not be enough."""
    with pytest.raises(RefusedError, match="known rows move the law of its mean"):
        standardised_cases(school(), "weight", "sat", HALVES, 10_000, known_rows=0.1)
    # n = 100, k = 1/2, threshold at the mean, rho = .3. Calibrated with all variances halved:
    scaled = standardised_cases(school(), "weight", "sat", parse_cases(["< 1050", ">= 1050"]), 100)
    root = math.sqrt(0.5)
    halved = MovingCases(
        scaled.cases, type(scaled.box)(scaled.box.means, (20 * root, 20 * root)), "correlation", 0.3, (2.5 * root,) * 2
    )
    noise = moving_variance(halved, 1.0, 1e-5).variance
    assert shown(halved, 1050.0, 20 * root, 0.3 * 25 / 200, noise, 2.5 * root) <= 1e-5 * (1 + 1e-3)
    # Whoever knows 50 rows with a mean two standard errors of theirs above 1050 holds a mean of 1050 + 2 * 20 * root * root:
    assert shown(halved, 1050 + 2 * 20 * root * root, 20 * root, 0.3 * 25 / 200, noise, 2.5 * root) > 5e-5


def test_pointwise_gap() -> None:
    assert pointwise_gap(parse_cases(["[0, 10)", "[10, 15]", "[20, 21)"])) == 21
    assert pointwise_gap(HALVES) == math.inf


def test_an_unknown_mean_is_refused() -> None:
    with pytest.raises(RefusedError, match="the assumption must state its mean"):
        standardised_cases(school(), "sat", "weight", HALVES, 10_000)


def test_bad_input_is_refused() -> None:
    for n in (1, 0, -5, 2.5, math.nan):
        with pytest.raises(UsageError, match="n: must be a whole number"):
            standardised_cases(school(), "weight", "sat", HALVES, n)  # type: ignore[arg-type]
    for known in (-0.1, 1.0, math.nan):
        with pytest.raises(UsageError, match="known_rows: must be"):
            standardised_cases(school(), "weight", "sat", HALVES, 10, known_rows=known)
    for weight in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(UsageError, match="weight: must be finite and positive"):
            standardised_cases(school(), "weight", "sat", HALVES, 10, weight=weight)
    with pytest.raises(UsageError, match="height must have a standard deviation"):
        standardised_cases(school(), "height", "sat", HALVES, 10)
    with pytest.raises(QueryError, match="no value may be in two sets"):
        standardised_cases(school(), "weight", "sat", (parse_case("< 5"), parse_case("> 4")), 10)
