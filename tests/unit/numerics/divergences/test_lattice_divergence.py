"""Divergences on whole numbers: at least the exact value, close to it, and infinite where nothing pointwise is known."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.gaussian import hockey_stick
from attrpriv.numerics.divergences.lattice import (
    lattice_approximate_max_divergence,
    lattice_delta_upper,
    lattice_max_divergence,
)
from attrpriv.numerics.laws.gaussian import GaussianLaw
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum, discrete_laplace, record_sum


def exact(n: int, p: float) -> list[Fraction]:
    x = Fraction(p)
    return [math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(n + 1)]


def truth(p: list[Fraction], q: list[Fraction], epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        factor = mpmath.exp(mpmath.mpf(epsilon))
        return mpmath.fsum(max(mpmath.mpf(0), _mp(x) - factor * _mp(y)) for x, y in zip(p, q, strict=True))


def _mp(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


@given(
    n=st.integers(1, 30),
    p=st.floats(0.01, 0.99),
    q=st.floats(0.01, 0.99),
    epsilon=st.floats(0, 8),
    tail=st.sampled_from([0.0, 1e-10, 1e-3]),
)
@settings(max_examples=150, deadline=None)
def test_never_below_the_truth_and_close(n: int, p: float, q: float, epsilon: float, tail: float) -> None:
    laws = binomial_sum(n, p, 0, p, tail=tail), binomial_sum(n, q, 0, q, tail=tail)
    upper, true = lattice_delta_upper(*laws, epsilon), truth(exact(n, p), exact(n, q), epsilon)
    assert mpmath.mpf(upper) >= true
    assert upper <= float(true) + (1 + math.exp(epsilon)) * (1e-12 + 2 * tail)


@given(n=st.integers(1, 30), p=st.floats(0.01, 0.99), q=st.floats(0.01, 0.99))
@settings(max_examples=100, deadline=None)
def test_pure_epsilon(n: int, p: float, q: float) -> None:
    found = lattice_max_divergence(binomial_sum(n, p, 0, p), binomial_sum(n, q, 0, q))
    with mpmath.workdps(60):
        true = max(mpmath.log(_mp(x) / _mp(y)) for x, y in zip(exact(n, p), exact(n, q), strict=True))
        assert true <= mpmath.mpf(found) <= max(0, true) + mpmath.mpf(1e-11)


def test_the_first_example_released_exactly() -> None:
    p, q = binomial_sum(4, 0.4, 0, 0.6), binomial_sum(0, 0.4, 4, 0.6)
    assert lattice_max_divergence(p, q) == pytest.approx(1.621860, abs=5e-7)
    assert lattice_max_divergence(q, p) == pytest.approx(1.621860, abs=5e-7)
    assert lattice_delta_upper(p, q, 1.6218605) == 0.0
    assert hockey_stick(p, q, 1.0) == lattice_delta_upper(p, q, 1.0)


def test_nothing_pure_without_every_mass() -> None:
    whole = binomial_sum(20, 0.4, 0, 0.4)
    window = whole.trimmed(1e-3)
    assert math.isinf(lattice_max_divergence(window, whole))
    assert math.isinf(lattice_max_divergence(whole, window))
    assert math.isinf(lattice_max_divergence(binomial_sum(400, 0.001, 0, 0.5), whole))
    assert math.isinf(lattice_max_divergence(LatticeLaw.of({0: 0.5, 1: 0.5}), LatticeLaw.of({0: 1.0})))
    assert lattice_max_divergence(LatticeLaw.of({0: 1.0}), LatticeLaw.of({0: 0.5, 1: 0.5})) == pytest.approx(math.log(2))


def test_what_is_lost_is_charged() -> None:
    """The mutant: a window that forgets what it lost is below the truth."""
    q = binomial_sum(200, 0.45, 0, 0.45)
    p = binomial_sum(200, 0.3, 0, 0.3).trimmed(1e-2)
    true = float(truth(exact(200, 0.3), exact(200, 0.45), 1.0))
    forgetful = LatticeLaw(p.start, p.masses, 0.0, 0.0)
    assert lattice_delta_upper(forgetful, q, 1.0) < true - 1e-4
    assert true <= lattice_delta_upper(p, q, 1.0) <= true + 1e-2
    blurred = LatticeLaw(q.start, q.masses, math.inf, 1e-4)
    assert lattice_delta_upper(p, blurred, 1.0) >= lattice_delta_upper(p, q, 1.0)
    assert lattice_delta_upper(p, blurred, 1.0) >= true + 1e-4


def test_approximate_max_divergence() -> None:
    p, q = binomial_sum(10, 0.4, 0, 0.4), binomial_sum(10, 0.6, 0, 0.6)
    for eta in (1e-6, 1e-3, 0.05):
        found = lattice_approximate_max_divergence(p, q, eta)
        assert lattice_delta_upper(p, q, found) <= eta
        assert lattice_delta_upper(p, q, found * (1 - 1e-9)) > eta
    assert lattice_approximate_max_divergence(p, q, 0.0) == lattice_max_divergence(p, q)
    assert lattice_approximate_max_divergence(p, p, 0.1) == 0.0
    apart = LatticeLaw.of({0: 1.0}), LatticeLaw.of({5: 1.0})
    assert math.isinf(lattice_approximate_max_divergence(*apart, 0.5))


def test_integer_noise_on_a_count() -> None:
    """Discrete Laplace of scale 1/eps on neighbours is eps-close: only the window's loss is charged."""
    noise = discrete_laplace(1.0, tail=1e-12)
    assert lattice_delta_upper(noise, noise.shifted(1), 1.0) <= 1e-11
    assert lattice_delta_upper(noise, noise.shifted(1), 0.9) > 1e-3
    count = record_sum((0, 1), (0.6, 0.4), 4, (0.4, 0.6), 0)
    both = count.convolve(noise, exact=True)
    assert lattice_delta_upper(both, both.shifted(1), 1.0) <= 1e-11


def test_a_huge_epsilon_is_no_overflow() -> None:
    p, q = LatticeLaw.of({0: 0.5, 1: 0.5}), LatticeLaw.of({0: 1.0})
    assert lattice_delta_upper(p, q, 1e6) == pytest.approx(0.5)
    assert lattice_delta_upper(p, q, math.inf) == pytest.approx(0.5)


def test_what_is_refused() -> None:
    p = LatticeLaw.of({0: 1.0})
    for epsilon in (-1.0, math.nan):
        with pytest.raises(UsageError):
            lattice_delta_upper(p, p, epsilon)
    for eta in (-0.1, 1.0, math.nan):
        with pytest.raises(UsageError):
            lattice_approximate_max_divergence(p, p, eta)
    with pytest.raises(UsageError, match="one kind"):
        hockey_stick(p, GaussianLaw(0.0, 1.0), 1.0)  # type: ignore[call-overload]


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_errors_of_both_laws_by_their_formula(epsilon: float) -> None:
    """Masses of the first may be larger by its error, those of the second smaller by its own; what is lost is added.

    Errors of a tenth, so that each of them can be seen.
    """
    one, other = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    for e, f, lost, gone in ((0.0, 0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.0), (0.0, 0.2, 0.0, 0.0), (0.1, 0.2, 0.05, 0.03)):
        p, q = LatticeLaw(0, one, e, lost), LatticeLaw(0, other, f, gone)
        wanted = np.maximum(one * (1 + e) - math.exp(epsilon) * other * (1 - f), 0).sum() + lost
        assert lattice_delta_upper(p, q, epsilon) == pytest.approx(min(1.0, wanted), rel=1e-12)
        if not lost:
            ratio = np.log(one / other).max() + math.log1p(e) - math.log1p(-f)
            assert lattice_max_divergence(p, q) == pytest.approx(ratio, rel=1e-11)
    total = LatticeLaw(0, other, math.inf, 0.03)
    wanted = np.maximum(one - math.exp(epsilon) * other, 0).sum() + math.exp(epsilon) * 0.03
    assert lattice_delta_upper(LatticeLaw(0, one, 0.0, 0.0), total, epsilon) == pytest.approx(wanted, rel=1e-12)
    assert lattice_delta_upper(LatticeLaw(0, one, math.inf, 0.02), LatticeLaw(0, other, 0.0, 0.0), epsilon) == pytest.approx(
        np.maximum(one - math.exp(epsilon) * other, 0).sum() + 0.02, rel=1e-12
    )
    assert lattice_max_divergence(LatticeLaw(0, one, 0.0, 0.01), LatticeLaw(0, other, 0.0, 0.0)) == math.inf


@pytest.mark.parametrize("n", [4, 30])
@pytest.mark.parametrize("eta", [1e-9, 1e-4, 0.03, 0.2])
@pytest.mark.parametrize(("one", "other"), [(0.4, 0.6), (0.45, 0.5), (0.2, 0.21)])
def test_the_least_lambda_is_where_eta_is_used_up(n: int, eta: float, one: float, other: float) -> None:
    """By exact masses: just there eta holds, and a little below it does not; 0 only where it holds at 0."""
    p, q = exact(n, one), exact(n, other)
    found = lattice_approximate_max_divergence(binomial_sum(n, one, 0, one), binomial_sum(n, other, 0, other), eta)
    assert truth(p, q, found) <= eta
    assert (found == 0.0) == (truth(p, q, 0.0) <= eta)
    if found:
        assert truth(p, q, found * (1 - 1e-6)) > eta


@pytest.mark.parametrize("start", [-4, -3, -1, 0, 2, 3, 5])
def test_windows_that_overlap_in_part_or_at_a_single_value(start: int) -> None:
    """What one law has and the other has not counts whole, wherever the windows are; values in between may be impossible."""
    p = LatticeLaw(0, np.array([0.3, 0.0, 0.6, 0.1]), 0.0, 0.0)
    q = LatticeLaw(start, np.array([0.15, 0.25, 0.0, 0.2, 0.4]), 0.0, 0.0)
    one = {p.start + k: mass for k, mass in enumerate(p.masses.tolist())}
    other = {q.start + k: mass for k, mass in enumerate(q.masses.tolist())}
    directions = ((one, other, (p, q)), (other, one, (q, p)))
    for (here, there, laws), epsilon in itertools.product(directions, (0.0, 0.6)):
        told = math.fsum(max(0.0, mass - math.exp(epsilon) * there.get(k, 0.0)) for k, mass in here.items())
        found = lattice_delta_upper(laws[0], laws[1], epsilon)
        assert told <= found <= told * (1 + 1e-12) + 1e-300
        ratios = [mass / there[k] if there.get(k) else math.inf for k, mass in here.items() if mass]
        wanted = max(0.0, math.log(max(ratios)))
        assert lattice_max_divergence(laws[0], laws[1]) == (pytest.approx(wanted, abs=1e-11) if wanted < math.inf else math.inf)


def test_a_value_that_is_impossible_needs_no_ratio() -> None:
    """Of the first law; whether the second one has it or not."""
    p = LatticeLaw(0, np.array([0.5, 0.0, 0.5]), 0.0, 0.0)
    for q, ratio in ((p, 1.0), (LatticeLaw(0, np.array([0.25, 0.25, 0.5]), 0.0, 0.0), 2.0)):
        assert lattice_max_divergence(p, q) == pytest.approx(math.log(ratio), abs=1e-11)
    assert lattice_max_divergence(LatticeLaw(0, np.array([0.25, 0.25, 0.5]), 0.0, 0.0), p) == math.inf


@pytest.mark.parametrize("eta", [0.0, 0.05, 0.3, 0.4, 0.7])
def test_what_may_be_ignored_where_some_values_tell_everything(eta: float) -> None:
    """0.3 of the mass is where the other law has none: with less than that to ignore, nothing is promised."""
    p, q = LatticeLaw(0, np.array([0.3, 0.5, 0.2]), 0.0, 0.0), LatticeLaw(1, np.array([0.2, 0.8]), 0.0, 0.0)
    found = lattice_approximate_max_divergence(p, q, eta + 1e-9)
    if eta < 0.3:
        assert found == math.inf
    elif eta < 0.6:
        # 0.3 + 0.5 - 0.2 e^lambda is eta, or all of 0.5 - 0.2 e^lambda is gone.
        assert found == pytest.approx(math.log((0.8 - eta) / 0.2), rel=1e-6)
    else:
        assert found == 0.0


@pytest.mark.parametrize(("error", "lost"), [(0.1, 0.0), (0.0, 0.2), (math.inf, 0.3)])
def test_no_delta_is_above_one(error: float, lost: float) -> None:
    """Laws with nothing in common, of which the first may have more than all by its bounds."""
    p, q = LatticeLaw(0, np.array([0.4, 0.6]), error, lost), LatticeLaw(5, np.array([1.0]), 0.0, 0.0)
    assert lattice_delta_upper(p, q, 0.0) == 1.0
