"""The first coordinates of a uniform direction: their law, and square roots of fractions.

`ALARM` is the false-alarm rate of each statistical test.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, chi2, expon, kstest

from attrpriv.errors import UsageError
from attrpriv.guarantee import calibrated_weights as evidence
from attrpriv.guarantee.calibrated_weights import direction_eta
from attrpriv.noise import direction as module
from attrpriv.noise.direction import LEAST_REST, RELATIVE_ERROR, direction, root

ALARM = 1e-7
DRAWS = 1_200


@pytest.mark.parametrize("dimension", [11, 12])
def test_the_square_of_a_coordinate_is_beta(dimension: int) -> None:
    """z_1^2 ~ Beta(1/2, (m-1)/2), and the sign is fair. Laws 0.09 apart are seen, such as the square times 1.5."""
    drawn = [float(direction(1, dimension)[0]) for _ in range(DRAWS)]
    assert kstest(np.square(drawn), beta(0.5, (dimension - 1) / 2).cdf).pvalue > ALARM
    assert abs(sum(z > 0 for z in drawn) - DRAWS / 2) < 5.4 * math.sqrt(DRAWS) / 2
    assert kstest(np.square(drawn) * 1.5, beta(0.5, (dimension - 1) / 2).cdf).pvalue < ALARM


def test_several_coordinates_are_those_of_one_direction() -> None:
    """|z|^2 ~ Beta(k/2, (m-k)/2), and any rotation of them has the same law."""
    drawn = np.array([[float(z) for z in direction(3, 14)] for _ in range(600)])
    assert kstest((drawn**2).sum(axis=1), beta(1.5, 5.5).cdf).pvalue > ALARM
    turned = drawn @ np.array([0.6, -0.48, 0.64])
    assert kstest(turned**2, beta(0.5, 6.5).cdf).pvalue > ALARM


def test_a_chi_square_draw_is_one() -> None:
    for freedom in (10, 11):
        drawn = [module._chi_squared(freedom) for _ in range(DRAWS)]
        assert kstest(drawn, chi2(freedom).cdf).pvalue > ALARM
        assert kstest(drawn, chi2(freedom + 2).cdf).pvalue < ALARM


def test_exponentials_at_the_ends_of_their_bits() -> None:
    ends = np.array([0, 2**11 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    first, same, middle, last = module._exponentials(ends)
    assert first == same == pytest.approx(54 * math.log(2))
    assert middle == pytest.approx(math.log(2))
    assert last == pytest.approx(2.0**-54, rel=1e-12)
    bits = np.random.default_rng(3).integers(0, 2**64, 20_000, dtype=np.uint64)
    assert kstest(module._exponentials(bits), expon.cdf).pvalue > ALARM


def test_large_dimensions_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 7)
    drawn = [module._chi_squared(60) for _ in range(500)]
    assert abs(np.mean(drawn) - 60) < 5.4 * math.sqrt(120 / 500)


@pytest.mark.parametrize("value", [Fraction(0), Fraction(1), Fraction(2), Fraction(1, 10**40), Fraction(10**300, 7)])
def test_roots_are_from_below_and_next_to_exact(value: Fraction) -> None:
    found = root(value)
    assert found**2 <= value
    assert value - found**2 <= value / 2**300 or value - found**2 <= value * Fraction(1, 2**158)


def test_the_certificate_counts_on_just_this() -> None:
    """The evidence must not import the sampler, so its two numbers are compared here."""
    assert direction_eta(100, 0.01, 1) == pytest.approx(RELATIVE_ERROR / math.sqrt(2 * math.pi))
    assert evidence.LEAST_REST == LEAST_REST


@pytest.mark.parametrize(("coordinates", "dimension"), [(0, 20), (1, LEAST_REST), (5, LEAST_REST + 4)])
def test_too_few_dimensions_are_refused(coordinates: int, dimension: int) -> None:
    with pytest.raises(UsageError):
        direction(coordinates, dimension)


def test_there_is_no_root_of_a_negative_number() -> None:
    with pytest.raises(UsageError):
        root(Fraction(-1))
