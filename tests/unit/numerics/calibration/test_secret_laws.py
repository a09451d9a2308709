"""Whole-number laws, ratios and logarithms: from above, and not far from it."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.calibration.secret_laws import (
    BITS,
    exp_lower,
    float_laws,
    log_upper,
    loss_upper,
    require_rows,
    secret_laws,
)
from attrpriv.numerics.laws.fixed_point import SHORT
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from tests.property import exact_kernel as twin

BOX = RecordLaws.event((0.3, 0.4), (0.5, 0.7))


def test_counts_are_the_laws_of_the_range() -> None:
    laws = secret_laws(RecordLaws.event(0.4, 0.6), CountPairs(5, 1, 3, 2), "counts")
    assert (laws.start, laws.apart, len(laws.masses), laws.values) == (0, 2, 3, 6)
    for a, row in enumerate(laws.masses, start=1):
        exact = twin.count_law(twin.event(0.4), twin.event(0.6), a, 5)
        assert all(mass <= exact[x] * 2**BITS < mass + SHORT for x, mass in enumerate(row))


def test_the_corner_runs_over_all_rows() -> None:
    """A range of counts limits how far apart corner laws are, not which ones there are."""
    laws = secret_laws(BOX, CountPairs(5, 1, 3, 2), "corner")
    assert (laws.start, laws.apart, len(laws.masses)) == (0, 2, 6)
    for k, row in enumerate(laws.masses):
        exact = twin.count_law(twin.event(0.7), twin.event(0.3), k, 5)
        assert all(mass <= exact[x] * 2**BITS < mass + SHORT for x, mass in enumerate(row))


def test_other_values() -> None:
    records = RecordLaws((-1, 2), ((0.25, 0.25), (0.75, 0.75)), ((0.5, 0.5), (0.5, 0.5)))
    laws = secret_laws(records, CountPairs.all_of(2), "counts")
    assert (laws.start, laws.values) == (-2, 7)
    assert float_laws(laws)[1] == pytest.approx([0.125, 0, 0, 0.5, 0, 0, 0.375])


def test_intervals_need_the_corner() -> None:
    with pytest.raises(RefusedError, match="corner"):
        secret_laws(BOX, CountPairs.all_of(3), "counts")
    wide = RecordLaws((0, 1, 2), ((0.2, 0.4),) * 3, ((0.3, 0.4),) * 3)
    with pytest.raises(UsageError, match="hull"):
        secret_laws(wide, CountPairs.all_of(3), "corner")


@pytest.mark.parametrize("x", [0.0, 1e-30, 1e-9, 0.1, 0.5, 1.0, 7.25, 100.0, 499.0])
def test_the_exponential_is_from_below(x: float) -> None:
    with mpmath.workdps(400):
        truth = mpmath.exp(mpmath.mpf(x)) * mpmath.mpf(2) ** 256
        assert truth * (1 - mpmath.mpf(10) ** -70) <= exp_lower(x) <= truth


@pytest.mark.parametrize("x", [-1e-300, 501.0, math.inf, math.nan])
def test_other_exponents_are_an_error(x: float) -> None:
    with pytest.raises(UsageError, match="exponent"):
        exp_lower(x)


@pytest.mark.parametrize(
    "ratio", [Fraction(1), 1 + Fraction(1, 10**40), 1 + Fraction(1, 10**9), Fraction(3, 2), Fraction(10**60, 7)]
)
def test_the_logarithm_is_from_above(ratio: Fraction) -> None:
    found = log_upper(ratio.numerator, ratio.denominator)
    with mpmath.workdps(120):
        truth = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert truth <= found <= truth * (1 + mpmath.mpf(2) ** -48)


def test_a_ratio_below_one_is_an_error_and_a_huge_one_infinite() -> None:
    for top, bottom in ((1, 2), (0, 0), (1, 0)):
        with pytest.raises(UsageError, match="ratio"):
            log_upper(top, bottom)
    assert log_upper(2**600, 1) == math.inf
    assert 0 < log_upper(10**1000 + 1, 10**1000) < 1e-60


def test_only_pairs_within_reach_count() -> None:
    rows = [[1, 7], [2, 6], [4, 4]]
    assert loss_upper(rows, rows, 2) == pytest.approx(math.log(4))
    assert loss_upper(rows, rows, 1) == pytest.approx(math.log(2))


def test_a_zero_on_one_side_is_an_infinite_loss() -> None:
    assert loss_upper([[1, 1], [0, 2]], [[1, 1], [0, 2]], 1) == math.inf
    assert loss_upper([[0, 1], [0, 1]], [[0, 1], [0, 1]], 1) == 0.0
    assert loss_upper([[1, 1], [1, 1]], [[1, 0], [1, 1]], 1) == math.inf  # could be zero


@pytest.mark.parametrize(
    "rows", [[[1, 2]], [[1, 2], [1, 1]], [[1, 2], [-1, 4]], [[1, 2], [1.0, 2.0]], [[1, 2], [3]], [[1, 2], [True, 2]]]
)
def test_weights_that_are_no_weights(rows: list[list[int]]) -> None:
    with pytest.raises(UsageError, match=r"^weights: must be 2 rows of 2 whole numbers"):
        require_rows("weights", rows, 2, 2, 3)
