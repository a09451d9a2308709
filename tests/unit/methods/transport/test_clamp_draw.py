"""The clamp: exact arithmetic of what is drawn, and the law of its error against plain integration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from attrpriv.errors import PolicyError, UsageError
from attrpriv.methods.base.clamp import Clamp, ClampSpread, Read, clamp_bits, clamped

SPREADS = [
    ClampSpread(0.5, 1.5, 0.55),
    ClampSpread(1.0, 0.3, 0.2),
    ClampSpread(0.01, 2.0, 1.0),
    ClampSpread(2.0, 0.05, 0.0),
    ClampSpread(0.3, 1.2, 0.0),
    ClampSpread(0.3, 1.0, 6.0),
]


def clamp(slope: float = 2.0**-12, reach: float = 0.5, centre: float = 60_000.0, mask: float = 1e-9) -> Clamp:
    read = Read(coefficients={"income": 1.0}, centre=centre, mask=mask)
    return Clamp(reads=(read,), slopes=((slope,),), reach=reach)


def taken_back(made: Clamp, average: int, hidden: int, scale: float) -> Fraction:
    return clamped(made, [Fraction(average)], [Fraction(hidden)], clamp_bits(made, [scale]))[0]


def beyond(law: ClampSpread, y: float) -> float:
    return y - min(max(y, -law.room), law.room)


def moment(law: ClampSpread, power: int) -> float:
    """E|N + X|^power, by integrating over y, with the folded normal's moments written out."""

    def given(y: float) -> float:
        x = beyond(law, y)
        if power == 2:
            return law.scale**2 + x**2
        z = x / law.scale
        return law.scale * math.sqrt(2 / math.pi) * math.exp(-z * z / 2) + x * (1 - 2 * norm.cdf(-z))

    density = norm(scale=law.wander).pdf
    cuts = sorted({-law.room, 0.0, law.room, *(s * (law.room + k * law.scale) for s in (-1, 1) for k in (1, 4, 10))})
    ends = [-12 * law.wander, *(c for c in cuts if abs(c) < 12 * law.wander), 12 * law.wander]
    return sum(quad(lambda y: given(y) * density(y), a, b, epsabs=1e-12, limit=200)[0] for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize("law", SPREADS)
def test_moments(law: ClampSpread) -> None:
    error = law.error()
    assert error.rmse == pytest.approx(math.sqrt(moment(law, 2)), rel=1e-8)
    assert error.mean_absolute == pytest.approx(moment(law, 1), rel=1e-7)
    assert error.worst is None


@pytest.mark.parametrize("law", SPREADS)
@pytest.mark.parametrize("t", [0.1, 0.7, 2.0])
def test_tails(law: ClampSpread, t: float) -> None:
    y = np.linspace(-12 * law.wander, 12 * law.wander, 400_001)
    x = y - np.clip(y, -law.room, law.room)
    tails = norm.cdf((-t - x) / law.scale) + norm.sf((t - x) / law.scale)
    wanted = float((tails * norm.pdf(y, scale=law.wander)).sum() * (y[1] - y[0]))
    assert law.tail(t) == pytest.approx(wanted, abs=2e-5)


@pytest.mark.parametrize("law", SPREADS)
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_reach_holds_the_level_from_above(law: ClampSpread, level: float) -> None:
    reach = law.reach(level)
    assert law.tail(reach) <= 1 - level < law.tail(reach * (1 - 1e-6))


def test_without_a_clamp_to_reach_it_is_plain_noise() -> None:
    law = ClampSpread(1.5, 0.0, 0.0)
    assert law.reach(0.95) == pytest.approx(1.5 * norm.isf(0.025))
    assert law.error().mean_absolute == pytest.approx(1.5 * math.sqrt(2 / math.pi))


def test_everything_taken_back_is_a_wider_gaussian() -> None:
    law = ClampSpread(3.0, 4.0, 0.0)
    assert law.error().rmse == pytest.approx(5)
    assert law.reach(0.95) == pytest.approx(5 * norm.isf(0.025))
    assert law.error().mean_absolute == pytest.approx(5 * math.sqrt(2 / math.pi))


def test_a_bivariate_tail_by_integration() -> None:
    law, k = ClampSpread(0.5, 1.5, 0.55), 1.0
    value = quad(lambda y: norm.pdf(y, scale=law.wander) * norm.sf((k - y) / law.scale), law.room, 18)[0]
    assert law._both(k) == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize("level", [0, 1, 2.0])
def test_a_level_is_between_0_and_1(level: float) -> None:
    with pytest.raises(UsageError, match="level"):
        SPREADS[0].reach(level)


@pytest.mark.parametrize(
    ("hidden", "moved"), [(60_000, 0), (60_512, 0), (62_048, 0), (64_096, Fraction(-1, 2)), (55_904, Fraction(1, 2))]
)
def test_what_is_taken_back(hidden: int, moved: Fraction) -> None:
    """Within the reach nothing; beyond it, all that is beyond. The mask is there, and small here."""
    found = taken_back(clamp(), 150, hidden, 1e-4)
    assert abs(found - 150 - moved) < Fraction(1, 10**10)


def test_with_no_reach_all_is_taken_back() -> None:
    found = taken_back(clamp(reach=0.0), 150, 64_096, 1e-4)
    assert abs(found - 149) < Fraction(1, 10**10)


def test_the_sensitive_average_is_masked() -> None:
    """The law of the mask, seen where everything is taken back: a mutant without it would give one value."""
    wide = clamp(reach=0.0, mask=100.0)
    found = [float(taken_back(wide, 0, 60_000, 1e-3)) * -(2.0**12) for _ in range(2_000)]
    assert len(set(found)) == 2_000
    assert np.std(found) == pytest.approx(100, rel=0.12)  # seven standard errors
    assert abs(np.mean(found)) < 16


def test_the_grid_of_the_mask_is_fine_enough() -> None:
    """A quarter of a step of the answer's own grid, at the least."""
    for mask in (1e-9, 1.0, 1e4):
        made = clamp(mask=mask)
        step = abs(made.slopes[0][0]) * mask * 2.0 ** -clamp_bits(made, [1e-3]) / 2
        assert step <= 1e-3 * 2.0**-33 / 4 * 1.0000001
        assert clamp_bits(made, [1e-3]) >= 34


@pytest.mark.parametrize("changed", [{"mask": -1.0}, {"reach": -1.0}, {"slope": float("nan")}, {"centre": float("inf")}])
def test_bad_clamps(changed: dict[str, float]) -> None:
    with pytest.raises(PolicyError):
        clamp(**changed)
