"""Calibration for set-valued secrets: the published numbers, from the private side, every pair and both ways."""

from __future__ import annotations

import math

import pytest

from attrpriv.errors import QueryError, UsageError
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.calibration.set_valued import largest_lam, set_valued_lam, set_valued_upper, set_valued_variance
from attrpriv.numerics.divergences.set_valued import mixture_hockey_stick, set_valued_hockey_stick
from attrpriv.numerics.laws.intervals import parse_case, parse_cases

LAM_AT_THE_MEAN = 0.166158
BAD = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize(
    ("cases", "total"),
    [
        (["< 0", ">= 0"], 36.2207),
        (["< 1", ">= 1"], 51.9676),
        (["< -1", ">= -1"], 51.9676),
        (["< 3", ">= 3"], 162.484),
        (["[-1, 0)", "[0, 1]"], 11.7293),
        (["[-3, 0)", "[0, 3]"], 35.4635),
    ],
)
@pytest.mark.parametrize("rho", [0.5, -0.95])
def test_published_numbers(cases: list[str], total: float, rho: float) -> None:
    """The total variance v = 1 - rho^2 + sigma^2 at the threshold of privacy, in units of rho^2; eps 1, delta 1e-5."""
    noise = set_valued_variance(parse_cases(cases), rho, 1.0, 1e-5)
    assert noise.total / rho**2 == pytest.approx(total, rel=4e-6)
    assert noise.total == pytest.approx(1 - rho**2 + noise.variance, rel=1e-12)
    assert noise.upper <= 1e-5
    assert not noise.no_noise


def test_no_noise_exactly_up_to_the_threshold() -> None:
    halves = parse_cases(["< 0", ">= 0"])
    lam, _ = set_valued_lam(halves, 1.0, 1e-5)
    assert lam == pytest.approx(LAM_AT_THE_MEAN, abs=5e-7)
    edge = lam / math.sqrt(1 + lam**2)
    assert set_valued_variance(halves, edge * (1 - 1e-9), 1.0, 1e-5).no_noise
    above = set_valued_variance(halves, edge * (1 + 1e-6), 1.0, 1e-5)
    assert not above.no_noise
    assert 0 < above.variance < 1e-4


def test_equal_means_get_noise() -> None:
    noise = set_valued_variance(parse_cases(["abs < 1", "abs >= 1"]), 0.9, 1.0, 1e-5)
    assert noise.variance == pytest.approx(9.655114, rel=1e-6)
    assert noise.pair == (1, 0)


def test_far_out_it_is_a_shift_by_c() -> None:
    """25 sds out: g >= c sits at c + 1/c, and g < c is all of g."""
    lam, _ = set_valued_lam(parse_cases(["< 25", ">= 25"]), 1.0, 1e-5)
    assert lam == pytest.approx(gaussian_mu(1.0, 1e-5) / 25.04, rel=1e-3)


@pytest.mark.parametrize("cases", [["< 1", ">= 1"], ["abs < 1", "abs >= 1"], ["< -1", "[-1, 1)", ">= 1"]])
def test_the_result_is_private_and_hardly_more(cases: list[str]) -> None:
    sets = parse_cases(cases)
    noise = set_valued_variance(sets, 0.7, 0.8, 1e-6)
    pairs = [(a, b) for a in sets for b in sets if a is not b]
    assert max(set_valued_hockey_stick(a, b, 0.7, noise.variance, 0.8).upper for a, b in pairs) == noise.upper <= 1e-6
    less = noise.variance * (1 - 1e-6)
    assert max(set_valued_hockey_stick(a, b, 0.7, less, 0.8).value for a, b in pairs) > 1e-6


def test_one_direction_would_not_do() -> None:
    """The mutant that checks only the order in which the cases are written."""
    low, high = parse_cases(["< 1", ">= 1"])
    one_way = largest_lam(lambda lam: mixture_hockey_stick(high, low, lam, 1.0).upper, 1e-5)
    both = set_valued_lam((high, low), 1.0, 1e-5)[0]
    assert both < 0.9 * one_way
    assert mixture_hockey_stick(low, high, one_way, 1.0).value > 2e-5


def test_an_unstandardised_threshold_would_not_do() -> None:
    """50 above a mean with sd 200 is at 25 for n = 10000. The mutant that forgets sqrt(n) puts it at a quarter."""
    wrong = set_valued_variance(parse_cases(["< 0.25", ">= 0.25"]), 0.3, 1.0, 1e-5)
    right = parse_cases(["< 25", ">= 25"])
    assert set_valued_hockey_stick(right[1], right[0], 0.3, wrong.variance, 1.0).value > 0.9


def test_more_cases_need_more() -> None:
    two = set_valued_lam(parse_cases(["< -1", "[-1, 1)"]), 1.0, 1e-5)[0]
    three, pair = set_valued_lam(parse_cases(["< -1", "[-1, 1)", ">= 1"]), 1.0, 1e-5)
    assert three < two
    assert pair in ((0, 2), (2, 0))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-5), (0.01, 1e-12), (8.0, 1e-6), (60.0, 1e-3), (1.0, 0.3)])
def test_other_budgets(epsilon: float, delta: float) -> None:
    cases = parse_cases(["< 1", ">= 1"])
    lam, _ = set_valued_lam(cases, epsilon, delta)
    assert set_valued_upper(cases, lam, epsilon)[0] <= delta
    assert max(mixture_hockey_stick(a, b, lam * (1 + 1e-6), epsilon).value for a, b in (cases, cases[::-1])) > delta


def test_uncorrelated_columns_need_nothing() -> None:
    assert set_valued_variance(parse_cases(["< 9", ">= 9"]), 0.0, 1.0, 1e-9).no_noise


@pytest.mark.parametrize("bad", BAD)
def test_bad_numbers_are_refused(bad: float) -> None:
    cases = parse_cases(["< 0", ">= 0"])
    with pytest.raises(UsageError, match="rho: must be between -1 and 1"):
        set_valued_variance(cases, bad, 1.0, 1e-5)
    with pytest.raises(UsageError, match="epsilon: must be finite and at least 0"):
        set_valued_variance(cases, 0.5, bad, 1e-5)
    with pytest.raises(UsageError, match="delta: must be at least 1e-27"):
        set_valued_variance(cases, 0.5, 1.0, bad)


@pytest.mark.parametrize("delta", [0.0, 1.0, 1e-30])
def test_a_delta_out_of_reach_is_refused(delta: float) -> None:
    with pytest.raises(UsageError, match="delta: must be at least 1e-27 and below 1"):
        set_valued_lam(parse_cases(["< 0", ">= 0"]), 1.0, delta)


def test_cases_must_be_two_and_disjoint() -> None:
    with pytest.raises(UsageError, match="needs at least two sets"):
        set_valued_lam((parse_case("< 0"),), 1.0, 1e-5)
    with pytest.raises(QueryError, match="no value may be in two sets"):
        set_valued_variance((parse_case("< 1"), parse_case("> 0")), 0.5, 1.0, 1e-5)


def test_a_search_without_a_private_side_says_so() -> None:
    with pytest.raises(UsageError, match="no lam above"):
        largest_lam(lambda _: 1.0, 1e-5)
