"""The normal distribution function in whole numbers: within one unit of mpmath's, at every width and far out."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.normal_digits import LARGEST, fixed_exp, fixed_normal_cdf, fixed_root


def off(found: int, true: mpmath.mpf, bits: int) -> mpmath.mpf:
    return abs(found - true * mpmath.mpf(2) ** bits)


@settings(max_examples=80, deadline=None)
@given(st.integers(8, 700), st.fractions(-LARGEST, LARGEST))
def test_within_one_unit(bits: int, argument: Fraction) -> None:
    z = int(argument * 2**bits)
    with mpmath.workprec(4000):
        assert off(fixed_normal_cdf(z, bits), mpmath.ncdf(mpmath.mpf(z) / mpmath.mpf(2) ** bits), bits) <= 1


def test_a_wrong_digit_of_pi_would_be_seen() -> None:
    """Power: a root of 2 pi that is off by 2^-60 of itself moves Phi(1) by 2^-62, a million units of 2^-82."""
    with mpmath.workprec(400):
        true = mpmath.ncdf(1) + (mpmath.ncdf(1) - 0.5) * mpmath.mpf(2) ** -60
        assert off(fixed_normal_cdf(1 << 82, 82), true, 82) > 1000


@settings(max_examples=60, deadline=None)
@given(st.integers(8, 500), st.fractions(0, 1000))
def test_the_exponential_is_within_one_unit(bits: int, exponent: Fraction) -> None:
    with mpmath.workprec(4000):
        true = mpmath.exp(mpmath.mpf(exponent.numerator) / exponent.denominator)
        assert off(fixed_exp(exponent, bits), true, bits) <= 1


@given(st.fractions(0, 10**9), st.integers(1, 300))
def test_a_root_is_rounded_down(square: Fraction, bits: int) -> None:
    root = Fraction(fixed_root(square, bits), 2**bits)
    assert root**2 <= square < (root + Fraction(1, 2**bits)) ** 2


def test_symmetric() -> None:
    assert fixed_normal_cdf(12345, 16) + fixed_normal_cdf(-12345, 16) == 2**16
    assert fixed_normal_cdf(0, 16) == 2**15


def test_refuses_what_it_does_not_cover() -> None:
    with pytest.raises(UsageError):
        fixed_normal_cdf((LARGEST << 16) + 1, 16)
    with pytest.raises(UsageError):
        fixed_normal_cdf(0, 5000)
    with pytest.raises(UsageError):
        fixed_exp(Fraction(-1), 16)
    with pytest.raises(UsageError):
        fixed_root(Fraction(-1), 16)


@pytest.mark.parametrize("bits", [12, 300])
def test_results_are_the_nearest_units(bits: int) -> None:
    """The guard leaves a unit's half, and no more than a billionth of it; at both ends of what is covered, too."""
    with mpmath.workprec(bits + 1500):
        for k in (-40, -39, -8, -3, -2, -1, 0, 1, 2, 5, 9, 40):
            z = k * 2**bits + (2**bits // 3 if abs(k) < LARGEST else 0)
            true = mpmath.ncdf(mpmath.mpf(z) / mpmath.mpf(2) ** bits)
            assert off(fixed_normal_cdf(z, bits), true, bits) <= 0.5 + 1e-9
        for exponent in (Fraction(0), Fraction(1, 7), Fraction(9, 2), Fraction(1000, 7), Fraction(700), Fraction(1000)):
            true = mpmath.exp(mpmath.mpf(exponent.numerator) / exponent.denominator)
            assert off(fixed_exp(exponent, bits), true, bits) <= 0.5 + 1e-9


def test_what_is_covered_has_ends() -> None:
    assert fixed_normal_cdf(LARGEST << 30, 30) == 2**30
    assert fixed_normal_cdf(-(LARGEST << 30), 30) == 0
    assert fixed_exp(Fraction(0), 2048) == 2**2048
    assert fixed_root(Fraction(0), 5) == 0
    assert [fixed_normal_cdf(0, 1), fixed_exp(Fraction(0), 1)] == [1, 2]
    for z in ((LARGEST << 30) + 1, -(LARGEST << 30) - 1):
        with pytest.raises(UsageError, match="z"):
            fixed_normal_cdf(z, 30)
    for bits in (0, 2049):
        with pytest.raises(UsageError, match="bits"):
            fixed_normal_cdf(0, bits)
        with pytest.raises(UsageError, match="bits"):
            fixed_exp(Fraction(1), bits)
    for exponent in (Fraction(-1, 10**9), 1000 + Fraction(1, 10**9)):
        with pytest.raises(UsageError, match="exponent"):
            fixed_exp(exponent, 16)
