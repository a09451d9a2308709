"""The bounds that an audit of a release rests on hold for laws for which normal approximations would not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from attrpriv.audit.release.apart import Curve
from attrpriv.audit.release.bounds import conformance, least_excess, least_mean, least_short
from attrpriv.methods.choice.choose import plan
from tests.conformance.test_mechanisms import PROBLEMS

REPEATS, ERROR = 2_000, 0.05
# A bound that is right fails more often than this with probability below 1e-6.
MOST = int(stats.binom.isf(1e-6, REPEATS, ERROR))


def failures(values: np.ndarray, mean: float) -> int:
    return sum(least_mean(row, ERROR) > mean for row in values)


@pytest.mark.parametrize("chance", [0.003, 0.05, 0.5, 0.98])
def test_the_bound_on_a_mean_holds_as_often_as_it_says(chance: float) -> None:
    draws = (np.random.default_rng(5).random((REPEATS, 150)) < chance).astype(float)
    assert failures(draws, chance) <= MOST


def test_a_bound_from_the_standard_error_does_not() -> None:
    """The mutant: rare events are missing from most samples, so that a standard error of 0 is taken for certainty."""
    draws = (np.random.default_rng(5).random((REPEATS, 150)) < 0.997).astype(float)
    naive = draws.mean(axis=1) - 1.645 * draws.std(axis=1) / math.sqrt(150)
    assert int((naive > 0.997).sum()) > MOST
    assert failures(draws, 0.997) <= MOST


def test_the_bound_comes_close_with_many_numbers() -> None:
    draws = np.random.default_rng(2).random(100_000)
    assert 0.49 < least_mean(draws, 1e-6) < draws.mean()


def test_the_bound_on_two_chances() -> None:
    high, low = np.full(20_000, 0.6), np.full(20_000, 0.2)
    assert 0.395 < least_excess(high, low, 0.0, 1e-6) < 0.4
    assert 0.6 - math.e * 0.2 - 0.02 < least_excess(high, low, 1.0, 1e-6) < 0.6 - math.e * 0.2


def test_conformance_finds_other_laws_and_not_the_right_one() -> None:
    """At 1e-6 for one test: a right law is rejected with that probability."""
    draws = np.random.default_rng(4).normal(size=4_000)
    assert conformance(draws).p_value > 1e-6
    for other in (0.9 * draws, 1.1 * draws, draws + 0.15, np.sqrt(3) * (2 * stats.norm.cdf(draws) - 1)):
        assert conformance(other).p_value < 1e-6


def test_what_the_noise_test_sees_with_power_nine_tenths() -> None:
    """Simulated: noise that is short by exactly what is said to be seen is found about nine times in ten."""
    short = least_short(4_000, 1e-6)
    draws = np.random.default_rng(8).normal(size=(300, 4_000)) * (1 - short)
    found = sum(conformance(row).p_value < 1e-6 for row in draws)
    # Within 1e-6 of 0.9 in 300 tries, and more where another of the three tests finds it too.
    assert found > stats.binom.ppf(1e-6, 300, 0.88)


def test_the_promised_curve_is_that_of_the_certificate() -> None:
    """The distance 0.2365 of the school's answers makes a guess right 54.7% of the time at most: Phi(mu/2)."""
    curve = Curve.of(plan(PROBLEMS["the school"], "gaussian").certificate)
    exact = float(stats.norm.cdf(0.236472 / 2))
    assert exact <= curve.right < exact + 0.0005
    pure = Curve.of(plan(PROBLEMS["a count"], "optimal").certificate)
    assert pure.right == pytest.approx(math.e / (1 + math.e), abs=1e-9)
