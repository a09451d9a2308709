"""The first coordinates of a uniform direction: their law, and square roots of fractions.

`ALARM` is the false-alarm rate of each statistical test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp
from scipy.stats import beta, chi2, expon, kstest

from attrpriv.errors import UsageError
from attrpriv.methods.calibrated_weights import proof as evidence
from attrpriv.methods.calibrated_weights.proof import direction_eta
from attrpriv.noise import direction as module
from attrpriv.noise.direction import LEAST_REST, RELATIVE_ERROR, direction, root

ALARM = 1e-7
DRAWS = 3_000  # with these the test of a mutant passes by chance in less than one of a million runs


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


@pytest.mark.parametrize("freedom", [10, 11, 10**8 + 1])
def test_a_chi_square_draw_is_one(freedom: int) -> None:
    """Laws 0.09 apart are seen, such as one with an sd more to its mean, whatever its size."""
    drawn = np.array([float(module._chi_squared(freedom)) for _ in range(DRAWS)])
    assert kstest(drawn, chi2(freedom).cdf).pvalue > ALARM
    assert abs(drawn.mean() - freedom) < 5.4 * math.sqrt(2 * freedom / DRAWS)
    assert kstest(drawn + math.sqrt(2 * freedom) / 2, chi2(freedom).cdf).pvalue < ALARM


def test_a_draw_is_kept_with_its_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the positive ones kept, all others: a third is positive. Kept always they are a half, twelve sds more."""
    half = Decimal(1) / 2
    monkeypatch.setattr(module, "_proposal", lambda freedom, x: (x, half.ln() if x > 0 else Decimal(0)))
    positive = sum(module._chi_squared(10) > 0 for _ in range(DRAWS))
    assert abs(positive - DRAWS / 3) < 5.4 * math.sqrt(DRAWS * 2 / 9)


def test_what_has_no_chance_is_never_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_proposal", lambda freedom, x: (x, None if x > 0 else Decimal(0)))
    assert all(module._chi_squared(10) <= 0 for _ in range(50))


def off_by(freedom: int, proposal: Callable[[int, Decimal], tuple[Decimal, Decimal | None]]) -> mp.mpf:
    """How far the proposal's density times its chance is from a chi-square's, in logarithms, over 16 standard deviations.

    By its definition, without a word of how the proposal is made: y has the density e^(-x^2/2) chance(x) / (dy/dx), up to a
    factor that does not depend on x, and that must be y^(freedom/2 - 1) e^(-y/2). The derivative is a difference quotient.
    Infinite where a chance is above 1.
    """
    found = []
    tiny = Decimal(10) ** -35
    with localcontext(module._PRECISE), mp.workdps(100):
        for tenth in range(-80, 81, 7):
            x = Decimal(tenth) / 10
            y, chance = proposal(freedom, x)
            if chance is None:
                continue
            if chance > 0:
                return mp.inf
            slope = mp.mpf(str((proposal(freedom, x + tiny)[0] - proposal(freedom, x - tiny)[0]) / (2 * tiny)))
            wanted = (mp.mpf(freedom) / 2 - 1) * mp.log(mp.mpf(str(y))) - mp.mpf(str(y)) / 2
            found.append(mp.mpf(str(chance - x * x / 2)) - mp.log(slope) - wanted)
    return max(found) - min(found)


@pytest.mark.parametrize("freedom", [10, 11, 10**8 + 1, 2**38])
def test_the_law_is_right_to_many_digits(freedom: int) -> None:
    assert off_by(freedom, module._proposal) < mp.mpf(10) ** -50


@pytest.mark.parametrize("freedom", [10, 2**38])
def test_a_wrong_third_or_a_lost_term_would_be_seen(freedom: int) -> None:
    def without_third(freedom: int, x: Decimal) -> tuple[Decimal, Decimal | None]:
        d = Decimal(freedom) / 2
        v = (1 + x / (3 * d.sqrt())) ** 3
        return 2 * d * v, (x * x / 2 + d * (1 - v + v.ln()) if v > 0 else None)

    def without_logarithm(freedom: int, x: Decimal) -> tuple[Decimal, Decimal | None]:
        y, chance = module._proposal(freedom, x)
        return y, None if chance is None else min(Decimal(0), x * x / 2 + Decimal(freedom) / 2 - y / 2)

    assert off_by(freedom, without_third) > mp.mpf(10) ** -6
    assert off_by(freedom, without_logarithm) > mp.mpf(10) ** -6


def test_a_callers_own_decimals_change_nothing() -> None:
    with localcontext(Context(prec=3, traps=[Inexact])) as own:
        assert direction(1, 20)
        assert own.prec == 3


def test_uniform_numbers() -> None:
    """-log U is exponential. A U that lacks its first bit is seen, and so is any law 0.09 away."""
    with localcontext(module._PRECISE):
        drawn = [float(-module._log_uniform()) for _ in range(DRAWS)]
    assert kstest(drawn, expon.cdf).pvalue > ALARM
    assert kstest(np.array(drawn) + math.log(2), expon.cdf).pvalue < ALARM


@pytest.mark.parametrize("value", [Fraction(0), Fraction(1), Fraction(2), Fraction(1, 10**40), Fraction(10**300, 7)])
def test_roots_are_from_below_and_next_to_exact(value: Fraction) -> None:
    found = root(value)
    assert found**2 <= value
    assert value - found**2 <= value / 2**300 or value - found**2 <= value * Fraction(1, 2**158)


def test_the_certificate_counts_on_just_this() -> None:
    """The evidence must not import the sampler, so its two numbers are compared here."""
    assert direction_eta(100, 0.01, 1) == pytest.approx(RELATIVE_ERROR / math.sqrt(2 * math.pi), rel=1e-9, abs=0)
    assert evidence.LEAST_REST == LEAST_REST


@pytest.mark.parametrize(("coordinates", "dimension"), [(0, 20), (1, LEAST_REST), (5, LEAST_REST + 4)])
def test_too_few_dimensions_are_refused(coordinates: int, dimension: int) -> None:
    with pytest.raises(UsageError):
        direction(coordinates, dimension)


def test_there_is_no_root_of_a_negative_number() -> None:
    with pytest.raises(UsageError):
        root(Fraction(-1))
