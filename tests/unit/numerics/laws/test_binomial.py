"""Tails of the binomial law against exact fractions, from both sides, and the stated errors against their derivation."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.binomial import _log, _log_masses, binomial_above, binomial_below, binomial_tails
from attrpriv.numerics.rounding import ULP

SHARES = [0.0, 1e-3, 0.3, 0.5, 0.8125, 1 - 2.0**-40, 1.0]


def below(n: int, share: float, k: int) -> Fraction:
    """P(Bin(n, share) < k)."""
    p = Fraction(share)
    return sum((math.comb(n, a) * p**a * (1 - p) ** (n - a) for a in range(min(k, n + 1))), Fraction(0))


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_tails_are_at_least_the_truth_and_hardly_more(n: int, share: float) -> None:
    for k in range(-1, n + 3):
        low, high = below(n, share, k), 1 - below(n, share, k + 1)
        for truth, found in ((low, binomial_below(n, share, k)), (high, binomial_above(n, share, k))):
            assert truth <= Fraction(found) <= 1
            # A complement that is rounded to 2^-53 makes a tail of n rows larger by up to n times that share.
            assert found <= float(truth) * (1 + 1.01e-9) + n * 2.0**-52 * (share > 0.5) + 1.01e-100
    assert binomial_below(n, share, 0) == binomial_above(n, share, n) == 0.0
    assert binomial_below(n, share, n + 1) == binomial_above(n, share, -1) == 1.0


def test_a_tail_that_floats_do_not_hold_is_not_nothing() -> None:
    assert 2.0**-1000 < binomial_below(1000, 0.5, 1) <= 1.01e-100
    assert 0 < binomial_above(10_000, 0.25, 9_999) <= 1.01e-100


@pytest.mark.parametrize("share", [-1e-9, 1 + 1e-9, 1.25, math.nan])
def test_a_share_is_from_0_to_1(share: float) -> None:
    for tail in (binomial_below, binomial_above):
        with pytest.raises(UsageError, match="share"):
            tail(5, share, 2)


# ------------------------------------------------------------------------------------------------ both tails in logarithms


@pytest.mark.parametrize("p", [0.25, 0.5, 0.75, Fraction(1, 3), Fraction(2, 3), 1 - 1e-10, 1e-250, 1 - Fraction(1, 10**30)])
def test_a_logarithm_is_good_to_a_few_units_of_itself(p: float | Fraction) -> None:
    with mpmath.workdps(60):
        exact = Fraction(repr(p)) if isinstance(p, float) else p
        truth = mpmath.log(mpmath.mpf(exact.numerator) / exact.denominator)
        assert abs(mpmath.mpf(_log(exact)) / truth - 1) <= 4 * ULP


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (3, 0.4), (7, 0.01), (7, 0.99), (60, 0.3), (60, 0.8), (150, 0.02)])
def test_the_error_is_what_its_derivation_says(n: int, p: float) -> None:
    """Eight units of the largest terms of log f, and at each value, of the smaller tail, 8 (2 + |L|) S/f units; all twice."""
    with mpmath.workdps(50):
        exact = mpmath.mpf(Fraction(repr(p)).numerator) / Fraction(repr(p)).denominator
        masses = [mpmath.binomial(n, k) * exact**k * (1 - exact) ** (n - k) for k in range(n + 1)]
        below = [mpmath.fsum(masses[: k + 1]) for k in range(n)]
        above = [mpmath.fsum(masses[k + 1 :]) for k in range(n)]
        added = [
            (2 - mpmath.log(low)) * low / masses[k] if low <= high else (2 - mpmath.log(high)) * high / masses[k + 1]
            for k, (low, high) in enumerate(zip(below, above, strict=True))
        ]
        terms = 2 * mpmath.log(mpmath.factorial(n)) + n * max(-mpmath.log(exact), -mpmath.log(1 - exact)) + 1
        wanted = 2 * (8 * ULP * terms + 8 * ULP * max(added)) + 16 * ULP
        assert binomial_tails(n, p).error == pytest.approx(float(wanted), rel=1e-9, abs=0.0)
        found, error = _log_masses(n, p)
        assert error == pytest.approx(float(8 * ULP * terms), rel=1e-9, abs=0.0)
        assert max(abs(mpmath.mpf(float(x)) - mpmath.log(f)) for x, f in zip(found, masses, strict=True)) <= error


def test_the_tails_are_a_law_that_cannot_be_written_to() -> None:
    tails = binomial_tails(5, 0.4)
    assert (tails.n, tails.p, tails.start) == (5, 0.4, 0)
    for array in (tails.log_below, tails.log_above):
        assert array.shape == (6,)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    # At every value one of the two is the complement of the other.
    assert np.exp(tails.log_below) + np.exp(tails.log_above) == pytest.approx(np.ones(6), abs=1e-14)


@pytest.mark.parametrize(
    ("n", "p", "fine"),
    [
        (1, 1e-290, True), (1, 1 - Fraction(1e-290), True), (1, 9e-291, False), (1, 1 - Fraction(9e-291), False),
        (0, 0.5, False), (-1, 0.5, False), (2, 1.0, False), (2, 1.5, False), (2, -0.5, False),
    ],
)  # fmt: skip
def test_which_probabilities_have_tails(n: int, p: float | Fraction, fine: bool) -> None:
    if fine:
        assert binomial_tails(n, p).n == n
    else:
        with pytest.raises(UsageError, match="binomial"):
            binomial_tails(n, p)
