"""The hockey-stick divergence: never below the truth, and close to it."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.gaussian import gaussian_delta, gaussian_delta_upper, gaussian_epsilon, hockey_stick
from attrpriv.numerics.laws.gaussian import GaussianLaw
from tests.property.twin import exact_delta
from tests.property.twin import hockey_stick as by_quadrature

BAD = [math.nan, math.inf, -math.inf, -1e-300, -1.0]


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


@pytest.mark.parametrize(
    ("epsilon", "mu", "delta"),
    [
        # Balle and Wang's curve, evaluated in mpmath with 60 digits.
        (1.0, 1.0, 0.126936737507),
        (0.0, 1.0, 0.382924922548),
        (1.0, 0.268051, 9.9999236806394e-6),
        (8.0, 2.1, 0.00114046019448),
    ],
)
def test_known_values(epsilon: float, mu: float, delta: float) -> None:
    assert gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-10)
    assert float(exact_delta(epsilon, mu)) == pytest.approx(delta, rel=1e-10)


@given(epsilon=log_uniform(1e-12, 1e4), mu=log_uniform(1e-12, 1e4))
@settings(max_examples=400)
@example(epsilon=1e-3, mu=1e-9)
@example(epsilon=50.0, mu=9.9)
@example(epsilon=1.0, mu=40.0)
@example(epsilon=700.0, mu=37.0)
@example(epsilon=5e7, mu=1e4)  # eps = mu^2/2: z_p is the difference of two equal numbers
def test_upper_is_never_below_the_truth(epsilon: float, mu: float) -> None:
    truth = exact_delta(epsilon, mu)
    assert mpmath.mpf(gaussian_delta_upper(epsilon, mu)) >= truth


@given(mu=log_uniform(1e-15, 1e3))
def test_upper_is_never_below_the_truth_at_epsilon_zero(mu: float) -> None:
    assert mpmath.mpf(gaussian_delta_upper(0.0, mu)) >= exact_delta(0.0, mu)


@given(epsilon=st.floats(1e-3, 50), mu=st.floats(1e-3, 20))
def test_upper_is_close_to_the_truth(epsilon: float, mu: float) -> None:
    """Never above it by more than 1e-9 of Phi(z_p), the size of what is subtracted from."""
    size = float(mpmath.ncdf(mu / 2 - epsilon / mu))
    assert gaussian_delta_upper(epsilon, mu) - float(exact_delta(epsilon, mu)) <= 1e-9 * size + 1e-300


@given(epsilon=st.floats(1e-3, 20), mu=st.floats(0.05, 20))
def test_value_agrees_with_quadrature(epsilon: float, mu: float) -> None:
    assert gaussian_delta(epsilon, mu) == pytest.approx(by_quadrature(epsilon, mu), rel=1e-8, abs=1e-300)


@pytest.mark.parametrize("mu", [1e150, 1e155, 1e200, 1e300, 1.7e308])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 100.0])
def test_a_huge_distance_hides_nothing(epsilon: float, mu: float) -> None:
    """Phi(z_q) underflows here even in logarithms. Reporting D = 0 for that reason was a false guarantee."""
    assert gaussian_delta(epsilon, mu) == 1.0
    assert gaussian_delta_upper(epsilon, mu) == 1.0
    assert gaussian_epsilon(mu, 1e-5) == math.inf or gaussian_delta_upper(gaussian_epsilon(mu, 1e-5), mu) <= 1e-5


@pytest.mark.parametrize(("epsilon", "mu"), [(1.0, 5e-324), (1e300, 1.0), (1e308, 1e-10), (1.0, 1e-200), (100.0, 1e-12)])
def test_a_tiny_distance_is_no_error(epsilon: float, mu: float) -> None:
    assert gaussian_delta(epsilon, mu) == 0.0
    assert 0.0 < gaussian_delta_upper(epsilon, mu) < 1e-300


def test_equal_laws_are_indistinguishable() -> None:
    assert gaussian_delta_upper(0.0, 0.0) == 0.0
    assert hockey_stick(GaussianLaw(2.0, 1.0), GaussianLaw(2.0, 1.0), 0.0) == 0.0


@given(epsilon=st.floats(0, 20), mu=st.floats(0.01, 20), step=st.floats(1e-3, 1))
def test_monotone(epsilon: float, mu: float, step: float) -> None:
    """More in mu, less in epsilon, up to the rounding that `upper` adds."""
    here = gaussian_delta(epsilon, mu)
    assert gaussian_delta_upper(epsilon, mu + step) >= here
    assert here * (1 + 1e-9) + 1e-300 >= gaussian_delta(epsilon + step, mu)


@given(mu=st.floats(1e-3, 30), delta=log_uniform(1e-12, 0.5))
def test_epsilon_is_private_and_tight(mu: float, delta: float) -> None:
    epsilon = gaussian_epsilon(mu, delta)
    assert exact_delta(epsilon, mu) <= mpmath.mpf(delta)
    if epsilon > 0:
        assert exact_delta(epsilon * (1 - 1e-6), mu) > mpmath.mpf(delta) * (1 - 1e-9)


def test_epsilon_zero_where_total_variation_is_below_delta() -> None:
    assert gaussian_epsilon(0.1, 0.5) == 0.0
    assert gaussian_epsilon(0.0, 1e-9) == 0.0


@pytest.mark.parametrize("bad", BAD)
def test_bad_input_is_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="epsilon: must be finite and at least 0"):
        gaussian_delta(bad, 1.0)
    with pytest.raises(UsageError, match="mu: must be finite and at least 0"):
        gaussian_delta_upper(1.0, bad)
    with pytest.raises(UsageError, match="mu: must be"):
        gaussian_epsilon(bad, 1e-5)


@pytest.mark.parametrize("bad", [*BAD, 0.0, 1.0])
def test_bad_delta_is_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="delta: must be above 0 and below 1"):
        gaussian_epsilon(1.0, bad)


@given(a=st.floats(-1e6, 1e6), b=st.floats(-1e6, 1e6), variance=st.floats(0.1, 1e6), epsilon=st.floats(1e-3, 5))
def test_of_two_laws(a: float, b: float, variance: float, epsilon: float) -> None:
    """At least the truth, the same both ways."""
    found = hockey_stick(GaussianLaw(a, variance), GaussianLaw(b, variance), epsilon)
    with mpmath.workdps(60):
        mu = abs(mpmath.mpf(a) - mpmath.mpf(b)) / mpmath.sqrt(mpmath.mpf(variance))
        truth = mpmath.mpf(0)
        if mu > epsilon / 1e6:  # nearer than that the truth is below e^(-1e11)
            eps = mpmath.mpf(epsilon)
            truth = mpmath.ncdf(mu / 2 - eps / mu) - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)
    assert found >= truth
    assert found == hockey_stick(GaussianLaw(b, variance), GaussianLaw(a, variance), epsilon)


def test_unequal_variances_go_to_their_own_formula() -> None:
    assert hockey_stick(GaussianLaw(0.0, 4.0), GaussianLaw(0.0, 1.0), 1.0) == pytest.approx(0.196711, abs=5e-7)


def test_no_epsilon_is_an_answer_too() -> None:
    """About mu^2/2, as long as that is a float."""
    assert gaussian_epsilon(1e140, 0.1) == pytest.approx(0.5e280, rel=1e-6)
    assert gaussian_epsilon(1e152, 0.1) == math.inf
    for mu in (0.5, 3.0, 40.0):
        for delta in (1e-9, 0.01):
            found = gaussian_epsilon(mu, delta)
            assert gaussian_delta_upper(found, mu) <= delta < gaussian_delta_upper(found * (1 - 1e-9), mu)
