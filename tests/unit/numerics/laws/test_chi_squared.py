"""Tails of chi-square laws: at least the truth, by mpmath, and hardly more."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import chi_squared
from attrpriv.numerics.laws.chi_squared import lower_tail_upper, lower_tails_upper, upper_tail_upper
from attrpriv.numerics.rounding import ULP

FREEDOM = (1, 2, 3, 7, 30, 99, 999, 9_999, 999_999)


def below(freedom: int, x: float) -> mp.mpf:
    with mp.workdps(40):
        return mp.gammainc(mp.mpf(freedom) / 2, 0, mp.mpf(x) / 2, regularized=True)


def above(freedom: int, w: float) -> mp.mpf:
    with mp.workdps(40):
        return mp.gammainc(mp.mpf(freedom) / 2, mp.mpf(w) / 2, mp.inf, regularized=True)


def points(freedom: int) -> list[float]:
    shares = [1e-9, 1e-3, 0.3, 0.9, 0.999]
    standard = [freedom + z * math.sqrt(2 * freedom) for z in (-7.0, -4.75, -2.0, -0.3)]
    return [share * freedom for share in shares] + [x for x in standard if x > 0]


@pytest.mark.parametrize("freedom", FREEDOM)
def test_the_lower_tail_is_at_least_the_truth_and_hardly_more(freedom: int) -> None:
    slack = 1.01 / (1260 * (freedom / 2) ** 5) + 1e-10  # the next term of Stirling's series, and roundings
    for x in points(freedom):
        truth, found = below(freedom, x), mp.mpf(lower_tail_upper(freedom, x))
        assert found >= truth
        assert found <= truth * (1 + slack) + mp.mpf("1e-299")


def test_a_series_without_its_rest_or_a_wrong_stirling_term_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: half of the terms and no rest; log Gamma from above instead of from below."""
    x = 9_999 - 0.5 * math.sqrt(2 * 9_999)
    whole = chi_squared._series

    def short(a: float, y: chi_squared.Array) -> chi_squared.Array:
        return whole(a, y) * 0.999

    monkeypatch.setattr(chi_squared, "_series", short)
    assert lower_tail_upper(9_999, x) < below(9_999, x)
    monkeypatch.setattr(chi_squared, "_series", whole)
    factor = chi_squared._log_factor
    monkeypatch.setattr(chi_squared, "_log_factor", lambda a, y: factor(a, y) - 1 / (360 * a**3) - 1e-9)
    assert any(lower_tail_upper(7, point) < below(7, point) for point in points(7))


@pytest.mark.parametrize("a", [0.5, 1.5, 15.0, 499.5, 5e5])
@pytest.mark.parametrize("share", [1e-9, 0.2, 0.45, 0.55, 0.9999])
def test_factor_and_series_are_above_their_formulas_by_the_stated_margins(a: float, share: float) -> None:
    """8 units of each term of the logarithm, and of the series 4 units for each term and 16 more; Stirling's, to a^-3."""
    y = np.array([a * share])
    with mp.workdps(30):
        exact, at = mp.mpf(a), mp.mpf(float(y[0]))
        stirling = mp.log(2 * mp.pi * exact) / 2 + 1 / (12 * exact) - 1 / (360 * exact**3)
        u, logarithm = at / exact - 1, mp.log(at / exact)
        margin = 8 * ULP * (exact * (abs(u) + abs(logarithm)) + abs(stirling) + 1)
        found = mp.mpf(float(chi_squared._log_factor(a, y)[0]))
        assert float((found - (-exact * (u - logarithm) - stirling)) / margin) == pytest.approx(1, abs=0.15)
        terms = math.ceil(9 * math.sqrt(a)) + 60
        total, term = mp.mpf(0), mp.mpf(1)
        for k in range(1, terms + 1):
            total, term = total + term, term * at / (exact + k)
        found = mp.mpf(float(chi_squared._series(a, y)[0]))
        assert float((found / total - 1) / (4 * ULP * (terms + 16))) == pytest.approx(1, abs=0.01)


def test_several_at_once() -> None:
    assert list(lower_tails_upper(10, [0.0, 2.0, 10.0, 50.0])) == [0.0, lower_tail_upper(10, 2.0), 1.0, 1.0]


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 40])
def test_the_upper_tail_is_at_least_the_truth_and_hardly_more(freedom: int) -> None:
    for w in (0.0, 1e-12, 0.2, 3.0, 40.0, 300.0, 1_399.0):
        truth, found = above(freedom, w), mp.mpf(upper_tail_upper(freedom, w))
        assert truth <= found <= truth * (1 + mp.mpf("1e-11")) + mp.mpf("1e-299")
    assert upper_tail_upper(freedom, 1_500.0) >= above(freedom, 1_401.0)


@pytest.mark.parametrize("freedom", [1, 2, 3, 8, 13, 40])
def test_the_upper_tail_is_above_the_truth_by_the_stated_margin(freedom: int) -> None:
    for w in (0.5, 17.0, 60.0, 200.0):
        with mp.workdps(40):
            over = float(mp.mpf(upper_tail_upper(freedom, w)) / above(freedom, w) - 1)
        assert over / (ULP * (2 * w + 8 * freedom + 64)) == pytest.approx(1, abs=0.06) or upper_tail_upper(freedom, w) == 1


def test_far_out_a_tail_counts_as_what_floats_hold() -> None:
    assert upper_tail_upper(6, 1_400.0) < 1e-290
    assert upper_tail_upper(6, 1_400.1) == math.exp(-600.0)


def test_as_many_degrees_of_freedom_as_there_can_be() -> None:
    assert 0.5 < lower_tail_upper(1, 0.9) < lower_tail_upper(1, 1.0) == 1
    for freedom, fine in ((1, True), (10**11, True), (0, False), (10**11 + 1, False)):
        if fine:
            chi_squared._require_freedom(freedom)
        else:
            with pytest.raises(UsageError):
                chi_squared._require_freedom(freedom)


def test_each_place_is_a_number_from_0_on() -> None:
    for bad in (-1e-9, math.nan):
        with pytest.raises(UsageError, match="x: "):
            lower_tails_upper(3, [1.0, bad])
    assert max(upper_tail_upper(freedom, 0.0) for freedom in range(1, 41)) == 1


def test_no_degrees_of_freedom_are_no_variation() -> None:
    assert upper_tail_upper(0, 0.0) == 0.0


@pytest.mark.parametrize(("freedom", "x"), [(0, 1.0), (-1, 1.0), (10**12, 1.0), (3, -1.0), (3, math.nan)])
def test_what_is_not_a_law_is_refused(freedom: int, x: float) -> None:
    with pytest.raises(UsageError):
        lower_tail_upper(freedom, x)


@pytest.mark.parametrize(("freedom", "w"), [(-1, 1.0), (41, 1.0), (3, -1.0), (3, math.nan)])
def test_nor_here(freedom: int, w: float) -> None:
    with pytest.raises(UsageError):
        upper_tail_upper(freedom, w)
