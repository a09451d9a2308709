"""Tails of binomial laws as logarithms: within their error of 50 digits, also where a float would be 0."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.binomial import BinomialTails, binomial_tails


def worst(tails: BinomialTails) -> float:
    """The largest error of an entry, against sums in 60 digits."""
    with mpmath.workdps(60):
        n, p = tails.n, mpmath.mpf(Fraction(tails.p).numerator) / Fraction(tails.p).denominator
        masses = [mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        off, below, above = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(0)
        for k in range(n):
            below += masses[k]
            off = max(off, abs(mpmath.log(below) - mpmath.mpf(float(tails.log_below[k]))))
        for k in range(n - 1, -1, -1):
            above += masses[k + 1]
            off = max(off, abs(mpmath.log(above) - mpmath.mpf(float(tails.log_above[k]))))
        return float(off)


@pytest.mark.parametrize(
    ("n", "p"), [(1, 0.5), (1, 1e-3), (1, 1e-200), (2, 0.999), (4, 0.4), (10, 1e-9), (300, 0.3), (2000, 0.01), (1500, 0.7)]
)
def test_every_entry_is_within_the_error(n: int, p: float) -> None:
    require_within_the_error(n, p)


@pytest.mark.parametrize("p", [Fraction(5, 13), Fraction(1, 3), 1 - Fraction(1, 10**20), Fraction(1, 7 * 10**15)])
@pytest.mark.parametrize("n", [1, 2, 17, 300])
def test_a_fraction_is_itself(n: int, p: Fraction) -> None:
    """1 - 10^-20 is no float; read as 1 it would lose every other answer."""
    require_within_the_error(n, p)


def require_within_the_error(n: int, p: float | Fraction) -> None:
    tails = binomial_tails(n, p)
    assert worst(tails) <= tails.error < 1e-8
    assert tails.log_below[-1] == 0
    assert tails.log_above[-1] == -math.inf


def test_a_million_rows_at_single_points() -> None:
    """Far beyond the floats: P(X = 0) and P(X = n), and the middle against the regularised beta function."""
    n, p = 10**6, 0.3
    tails = binomial_tails(n, p)
    with mpmath.workdps(50):
        exact = mpmath.mpf(p)
        assert abs(mpmath.mpf(float(tails.log_below[0])) - n * mpmath.log(1 - exact)) <= tails.error
        assert abs(mpmath.mpf(float(tails.log_above[n - 1])) - n * mpmath.log(exact)) <= tails.error
    assert tails.error < 1e-6
    assert math.exp(tails.log_below[300_000]) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(("n", "p"), [(0, 0.5), (3, 0.0), (3, 1.0), (3, math.nan)])
def test_what_is_refused(n: int, p: float) -> None:
    with pytest.raises(UsageError):
        binomial_tails(n, p)
