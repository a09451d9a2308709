"""Distance of a density from a Gaussian up to a little mass, and the corrected guarantee of Algorithm 2."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.gaussian import gaussian_delta, hockey_stick
from attrpriv.numerics.divergences.max_divergence import approximate_max_divergence, corrected_guarantee
from attrpriv.numerics.laws.gaussian import GaussianLaw

STANDARD = GaussianLaw(0.0, 1.0)
CUT, SHIFT = 2.326348, 0.264797


def normal(mean: float = 0.0, sd: float = 1.0, scale: float = 1.0) -> object:
    return lambda x: scale * math.exp(-(((x - mean) / sd) ** 2) / 2) / (sd * math.sqrt(2 * math.pi))


def distance(density: object, eta: float, support: tuple[float, float] = (-12.0, 12.0), **options: object) -> float:
    return approximate_max_divergence(density, STANDARD, eta, support=support, **options).lambda_  # type: ignore[arg-type]


def test_the_paper_s_bound_is_wrong_and_the_corrected_one_is_not() -> None:
    """N(SHIFT, 1) against N(0, 1) cut above CUT: truth 0.0196, paper 0.011, corrected 0.0382."""
    epsilon, delta, eta = 1.0, 1e-3, 0.01
    assert pytest.approx(epsilon / math.sqrt(2 * math.log(1.25 / delta)), abs=1e-6) == SHIFT
    assert gaussian_delta(epsilon, SHIFT) <= delta
    # The cut law is within (0, eta) of the uncut one, both ways.
    assert float(ndtr(-CUT)) == pytest.approx(eta, rel=1e-5)
    # Below the cut the densities' ratio stays below e; above it the second law has no mass.
    assert (epsilon - math.log(float(ndtr(CUT)))) / SHIFT + SHIFT / 2 > CUT
    truth = float(ndtr(SHIFT - CUT))
    assert truth == pytest.approx(0.0196, abs=5e-5)
    paper = delta + eta
    assert paper == pytest.approx(0.011)
    corrected = corrected_guarantee(epsilon, delta, 0.0, eta)
    assert corrected[0] == epsilon
    assert corrected[1] == pytest.approx(0.0382, abs=5e-5)
    assert paper < truth < corrected[1]


@given(epsilon=st.floats(0, 5), delta=st.floats(0, 0.1), lambda_=st.floats(0, 2), eta=st.floats(0, 0.1), more=st.floats(0, 0.1))
def test_the_guarantee_grows_with_each_part(epsilon: float, delta: float, lambda_: float, eta: float, more: float) -> None:
    here = corrected_guarantee(epsilon, delta, lambda_, eta)
    assert here[0] >= epsilon + 2 * lambda_
    assert here[1] >= min(1.0, math.exp(lambda_) * delta + eta * (1 + math.exp(epsilon + lambda_)))
    assert here[1] >= min(1.0, math.exp(lambda_) * delta + eta)  # never below the paper's
    for step in ((more, 0, 0, 0), (0, more, 0, 0), (0, 0, more, 0), (0, 0, 0, more)):
        larger = corrected_guarantee(epsilon + step[0], delta + step[1], lambda_ + step[2], eta + step[3])
        assert larger[0] >= here[0]
        assert larger[1] >= here[1]


def test_an_exact_gaussian_costs_nothing() -> None:
    assert corrected_guarantee(1.0, 1e-6, 0.0, 0.0) == pytest.approx((1.0, 1e-6), rel=1e-12)
    assert distance(normal(), 1e-9) == 0.0


@pytest.mark.parametrize(("mean", "eta"), [(0.1, 1e-3), (0.5, 1e-2), (0.02, 1e-6)])
def test_a_shifted_gaussian(mean: float, eta: float) -> None:
    """lambda is the epsilon at which two Gaussians are (epsilon, eta)-close."""
    found = distance(normal(mean), eta)
    assert gaussian_delta(found, mean) <= eta
    assert gaussian_delta(found * (1 - 1e-3), mean) > eta


def test_a_wider_gaussian_and_both_directions() -> None:
    """Wide over narrow decides; the mutant that takes one direction would say less."""
    found = approximate_max_divergence(normal(0.0, 1.2), STANDARD, 1e-3, support=(-15.0, 15.0))  # type: ignore[arg-type]
    there = hockey_stick(GaussianLaw(0.0, 1.44), STANDARD, found.lambda_)
    back = hockey_stick(STANDARD, GaussianLaw(0.0, 1.44), found.lambda_)
    assert there == pytest.approx(1e-3, rel=1e-3)
    assert back < 1e-3 * (1 - 1e-3)
    assert found.density_over_gaussian == pytest.approx(there, rel=1e-4)
    assert found.gaussian_over_density == pytest.approx(back, abs=1e-8)
    assert "numerically" in str(found)


def test_a_logarithm_and_other_units() -> None:
    law = GaussianLaw(50.0, 9.0)

    def log_density(x: float) -> float:
        return -(((x - 50.3) / 3) ** 2) / 2 - math.log(3 * math.sqrt(2 * math.pi))

    found = approximate_max_divergence(log_density, law, 1e-3, support=(10.0, 90.0), log=True).lambda_
    assert found == pytest.approx(distance(normal(0.1), 1e-3), rel=1e-5)


def test_a_truncated_law_needs_eta_for_what_is_missing() -> None:
    cut = float(ndtri(0.99))
    truncated = normal(scale=1 / 0.99)
    assert distance(truncated, 0.0101, (-12.0, cut)) == 0.0
    with pytest.raises(UsageError, match="no lambda makes it this close"):
        distance(truncated, 0.0099, (-12.0, cut))


def test_a_density_with_kinks() -> None:
    """A Laplace law: the kink at 0 is named, and the mass comes out as 1."""
    found = approximate_max_divergence(
        lambda x: math.exp(-abs(x)) / 2, GaussianLaw(0.0, 2.0), 0.2, support=(-40.0, 40.0), kinks=[0.0]
    )
    assert found.mass == pytest.approx(1.0, abs=1e-12)
    assert 0 <= found.lambda_ < 2
    assert found.error < 1e-4


def test_the_error_is_charged() -> None:
    """A density that was cut off in the middle of its support, without saying so: the mass gives it away."""
    with pytest.raises(UsageError, match="must have mass 1 on the support"):
        distance(normal(), 1e-3, (-1.0, 12.0))
    with pytest.raises(UsageError, match="no lambda makes it this close"):
        distance(normal(), 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_bad_numbers_are_refused(bad: float) -> None:
    for position, name in enumerate(("epsilon", "delta", "lambda", "eta")):
        numbers = [1.0, 1e-3, 0.1, 0.01]
        numbers[position] = bad
        with pytest.raises(UsageError, match=f"{name}: must be finite and at least 0"):
            corrected_guarantee(*numbers)
    with pytest.raises(UsageError, match="eta: must be at least 0 and below 1"):
        distance(normal(), bad)
    with pytest.raises(UsageError, match="density: must be finite"):
        distance(lambda _: bad, 0.1)


def test_bad_supports_are_refused() -> None:
    for support in ((1.0, 1.0), (-math.inf, 1.0), (0.0, math.nan)):
        with pytest.raises(UsageError, match="support: must be two finite numbers"):
            distance(normal(), 0.1, support)
    with pytest.raises(UsageError, match="kinks: must lie in the support"):
        distance(normal(), 0.1, kinks=[20.0])
    with pytest.raises(UsageError, match="must be at most 600"):
        corrected_guarantee(1.0, 1e-3, 500.0, 0.01)


@pytest.mark.parametrize(
    ("epsilon", "delta", "lambda_", "eta"), [(1.0, 0.01, 0.2, 1e-3), (0.0, 0.1, 0.0, 0.01), (2.0, 0.0, 0.5, 0.0)]
)
def test_the_corrected_guarantee_by_its_formula(epsilon: float, delta: float, lambda_: float, eta: float) -> None:
    found = corrected_guarantee(epsilon, delta, lambda_, eta)
    total = math.exp(lambda_) * delta + eta * (1 + math.exp(epsilon + lambda_))
    assert found == pytest.approx((epsilon + 2 * lambda_, total), rel=1e-12)
    assert found[0] >= epsilon + 2 * lambda_


def test_a_correction_has_its_ends() -> None:
    assert corrected_guarantee(1.0, 0.9, 1.0, 0.9)[1] == 1.0
    for wrong in ((-1.0, 0.0, 0.0, 0.0), (1.0, -0.1, 0.0, 0.0), (1.0, 0.0, math.nan, 0.0), (1.0, 0.0, 0.0, math.inf)):
        with pytest.raises(UsageError):
            corrected_guarantee(*wrong)
    for epsilon, lambda_ in ((1e4, 0.0), (0.0, 1e4)):
        with pytest.raises(UsageError, match="lambda"):
            corrected_guarantee(epsilon, 0.0, lambda_, 0.0)
