"""mu*, the classical constant, and the least noise: the numbers of the theory, re-evaluated in many digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.calibration.gaussian import classical_mu, gaussian_mu, noise_variance
from tests.property.twin import exact_delta

EPSILONS = [float(e) for e in np.geomspace(1e-3, 50, 14)]
DELTAS = [1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.5]
# How far below the true root mu* may be returned, as a share of it. The worst of the grid is (1e-3, 1e-12).
SHORTFALL = 2e-9


@pytest.mark.parametrize(("epsilon", "delta", "mu"), [(1.0, 1e-5, 0.268051), (0.5, 1e-3, 0.216914), (5.0, 1e-6, 1.020357)])
def test_mu_star(epsilon: float, delta: float, mu: float) -> None:
    assert round(gaussian_mu(epsilon, delta), 6) == mu


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_mu_star_is_private_and_tight_in_many_digits(epsilon: float) -> None:
    for delta in DELTAS:
        mu = gaussian_mu(epsilon, delta)
        assert exact_delta(epsilon, mu) <= mpmath.mpf(delta)
        assert exact_delta(epsilon, mu * (1 + SHORTFALL)) > mpmath.mpf(delta)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.0, 1e-12), (1e-9, 1e-3), (1e-3, 1e-30), (100.0, 1e-300), (100.0, 0.999), (1e-6, 1e-12), (1e4, 1e-6)],
)
def test_mu_star_is_private_beyond_the_usual_range(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert mu > 0
    assert exact_delta(epsilon, mu) <= mpmath.mpf(delta)


def test_an_unreachable_delta_is_refused_not_guessed() -> None:
    """At epsilon 0 and delta 1e-20 rounding alone is larger than delta; no positive mu can be certified."""
    with pytest.raises(UsageError, match="no positive value is private"):
        gaussian_mu(0.0, 1e-20)


def test_mu_star_grows_with_both_budgets() -> None:
    table = np.array([[gaussian_mu(epsilon, delta) for delta in DELTAS] for epsilon in EPSILONS])
    assert (np.diff(table, axis=0) > 0).all()
    assert (np.diff(table, axis=1) > 0).all()


def test_classical_is_refused_where_it_is_unsound() -> None:
    with pytest.raises(RefusedError, match=r"classical is unsound at epsilon 8, delta 0\.001"):
        classical_mu(8.0, 1e-3)


@pytest.mark.parametrize(("delta", "first"), [(1e-3, 7.463474), (1e-5, 8.419771)])
def test_where_classical_first_fails(delta: float, first: float) -> None:
    assert classical_mu(first - 1e-6, delta) > 0
    with pytest.raises(RefusedError):
        classical_mu(first + 1e-6, delta)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 7.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-3])
def test_classical_where_it_is_allowed_is_sound_and_never_better(epsilon: float, delta: float) -> None:
    mu = classical_mu(epsilon, delta)
    assert mu == epsilon / math.sqrt(2 * math.log(1.25 / delta))
    assert exact_delta(epsilon, mu) <= mpmath.mpf(delta)
    assert mu <= gaussian_mu(epsilon, delta)


def test_least_noise_of_the_papers_two_distributions() -> None:
    """V_ij = -.9 or +.1, unit variances, n = 100, range 1. With the paper's sign the noise would be far too small."""
    mu = gaussian_mu(1.0, 1e-5)
    right = noise_variance([(0.9, (1 - 0.81) / 100), (0.1, (1 - 0.01) / 100)], mu)
    assert round(right, 6) == 11.271366
    # The paper's sign lets only +.1 count; with its own (classical) constant that is 0.2328.
    signed = noise_variance([(0.1, (1 - 0.01) / 100)], mu)
    assert noise_variance([(0.1, (1 - 0.81) / 100)], classical_mu(1.0, 1e-5)) == pytest.approx(0.2328, abs=5e-5)
    true_delta = exact_delta(1.0, 0.9 / math.sqrt((1 - 0.81) / 100 + signed))
    assert true_delta > 0.4
    assert exact_delta(1.0, 0.9 / math.sqrt((1 - 0.81) / 100 + right)) <= mpmath.mpf(1e-5) * (1 + mpmath.mpf(1e-12))


def test_the_maximum_is_joint() -> None:
    """Largest shift and least variance belong to different distributions: taking them apart asks for more noise."""
    conditions = [(1.0, 3.0), (0.5, 0.1)]
    joint = noise_variance(conditions, 0.5)
    apart = noise_variance([(max(s for s, _ in conditions), min(v for _, v in conditions))], 0.5)
    assert joint == pytest.approx(1.0)
    assert apart == pytest.approx(3.9)


def test_no_noise_where_the_data_hide_the_shift_themselves() -> None:
    assert noise_variance([(0.1, 1.0)], 0.2) == 0.0
    assert noise_variance([], 0.2) == 0.0
    assert noise_variance([(-0.4, 1.0)], 0.2) == noise_variance([(0.4, 1.0)], 0.2) > 0


@pytest.mark.parametrize("epsilon", [math.nan, math.inf, -1.0, -1e-300])
@pytest.mark.parametrize("calibrate", [gaussian_mu, classical_mu])
def test_bad_epsilon(calibrate: object, epsilon: float) -> None:
    assert callable(calibrate)
    with pytest.raises(UsageError, match="epsilon: must be finite and at least 0"):
        calibrate(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [math.nan, math.inf, -1.0, 0.0, 1.0, 2.0])
@pytest.mark.parametrize("calibrate", [gaussian_mu, classical_mu])
def test_bad_delta(calibrate: object, delta: float) -> None:
    assert callable(calibrate)
    with pytest.raises(UsageError, match="delta: a Gaussian mechanism needs delta above 0 and below 1"):
        calibrate(1.0, delta)


def test_classical_needs_a_positive_epsilon() -> None:
    with pytest.raises(UsageError, match="needs epsilon above 0"):
        classical_mu(0.0, 1e-5)


@pytest.mark.parametrize("condition", [(math.nan, 1.0), (math.inf, 1.0), (1.0, math.nan), (1.0, math.inf), (1.0, -1e-9)])
def test_bad_condition(condition: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="condition: needs a finite shift and variance"):
        noise_variance([condition], 0.5)


@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, math.inf])
def test_bad_mu(mu: float) -> None:
    with pytest.raises(UsageError, match="mu: must be finite and positive"):
        noise_variance([(1.0, 1.0)], mu)
