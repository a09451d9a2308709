"""Special functions from the standard library: as near to mpmath's as the module says, far out too."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attrpriv.numerics.rounding import ULP
from attrpriv.numerics.special import log_factorials, log_normal_cdf, normal_cdf, normal_cdfs, normal_quantile


def off(found: float, true: mpmath.mpf) -> float:
    """In units of 2^-52 of the truth."""
    return float(abs(mpmath.mpf(found) / true - 1) / ULP)


def cdf(z: float) -> mpmath.mpf:
    return mpmath.erfc(-mpmath.mpf(z) / mpmath.sqrt(2)) / 2


@settings(max_examples=400, deadline=None)
@given(st.floats(-37.4, 40.0))
def test_the_distribution_function(z: float) -> None:
    with mpmath.workdps(60):
        assert off(normal_cdf(z), cdf(z)) <= 8 + z * z


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.floats(-60.0, 37.0), st.floats(-1e4, -1.0), st.floats(-1.5, 1.5)))
@example(-1.0)
@example(math.nextafter(-1.0, 0.0))
@example(-37.0)
@example(math.nextafter(-37.0, 0.0))
@example(math.nextafter(-37.0, -38.0))
def test_its_logarithm(z: float) -> None:
    with mpmath.workdps(400):  # next to 1 the logarithm is that of what is left of 1
        assert off(log_normal_cdf(z), mpmath.log(cdf(z))) <= 8 + max(0.0, z) ** 2


def test_where_floats_end() -> None:
    assert log_normal_cdf(-1e200) == log_normal_cdf(-math.inf) == -math.inf
    assert log_normal_cdf(math.inf) == 0
    assert log_normal_cdf(-1e150) == pytest.approx(-5e299)
    assert (normal_cdf(-math.inf), normal_cdf(math.inf)) == (0, 1)
    assert math.isnan(log_normal_cdf(math.nan))
    assert math.isnan(normal_cdf(math.nan))


def test_many_at_once_are_the_same() -> None:
    z = np.linspace(-40, 40, 1001)
    assert normal_cdfs(z).tolist() == [normal_cdf(one) for one in z.tolist()]


@settings(max_examples=200, deadline=None)
@given(st.floats(-300, -1e-3))
def test_quantiles(digits: float) -> None:
    chance = 10**digits
    found = normal_quantile(chance)
    with mpmath.workdps(60):
        # one step of Newton's from there: its own error is the square of what is left
        slope = mpmath.npdf(found) / cdf(found)
        true = found - (mpmath.log(cdf(found)) - mpmath.log(chance)) / slope
        assert abs(found - true) <= 8 * ULP * abs(true) + 4 * ULP * chance / mpmath.npdf(found)


def test_quantiles_of_what_is_certain() -> None:
    assert (normal_quantile(0.0), normal_quantile(0.5), normal_quantile(1.0)) == (-math.inf, 0.0, math.inf)
    assert math.isnan(normal_quantile(1.5))


@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65])
def test_as_many_factorials_as_asked(n: int) -> None:
    assert log_factorials(n).shape == (n + 1,)


def test_factorials() -> None:
    found = log_factorials(1_000_000)
    assert found[:2].tolist() == [0, 0]
    with mpmath.workdps(40):
        for k in [*range(2, 300), *range(300, 1_000_001, 4001)]:
            assert off(float(found[k]), mpmath.loggamma(k + 1)) <= 4, k


def test_a_term_of_the_series_less_would_be_seen() -> None:
    """Power: without its last term, Stirling's series would be off by 16 units where it begins."""
    with mpmath.workdps(40):
        assert off(float(log_factorials(64)[64]) - 1 / (1260 * 64**5), mpmath.loggamma(65)) > 8


@pytest.mark.parametrize(("far", "near"), [(-37.02, -38.5), (-38.5, -45.0)])
def test_terms_of_the_series_far_out_are_all_there(far: float, near: float) -> None:
    """Where it begins, the last term is worth more than a unit. Rounding goes either way, and cancels over many numbers."""
    with mpmath.workdps(60):
        found = []
        for z in np.linspace(near, far, 150).tolist():
            true = mpmath.log(mpmath.erfc(-mpmath.mpf(z) / mpmath.sqrt(2)) / 2)
            found.append(float((mpmath.mpf(log_normal_cdf(z)) - true) / true / ULP))
    assert abs(float(np.mean(found))) < 0.3
    assert max(map(abs, found)) < 2


def test_terms_of_stirlings_series_are_all_there() -> None:
    """Over the first ten numbers that are not whole ones' logarithms; the last term is worth up to sixteen units."""
    found = log_factorials(200)
    with mpmath.workdps(40):
        off = [float((mpmath.mpf(float(found[k])) / mpmath.loggamma(k + 1) - 1) / ULP) for k in range(64, 200)]
    assert abs(float(np.mean(off))) < 0.3
    assert max(map(abs, off)) < 2


def test_the_logarithm_is_taken_of_the_smaller_tail() -> None:
    """Left of -1 the other tail has lost digits: up to six units at -2."""
    with mpmath.workdps(60):
        assert max(off(log_normal_cdf(z), mpmath.log(cdf(z))) for z in np.linspace(-2.0, -1.001, 120).tolist()) < 3
