"""The exact samplers: their grid, and the law of OpenDP's integer noise against its exact masses."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2, ncx2

from attrpriv.errors import CertificateError, UsageError
from attrpriv.noise import GRID_BITS, add_gaussian, add_laplace, granularity
from attrpriv.noise import exact as sampler

Vector = NDArray[np.float64]

# A sample is rejected where chi-square's tail is below this: the false-alarm rate of one test.
ALARM = 1e-7
DRAWS = 10_000


# --------------------------------------------------------------------------------------------------------------- the grid


@given(scale=st.floats(1e-280, 1e290))
@example(scale=1.0)
@example(scale=math.nextafter(2.0, 0.0))
@example(scale=2.0)
def test_the_grid_is_a_power_of_two_and_fine(scale: float) -> None:
    step = granularity(scale)
    assert math.frexp(step)[0] == 0.5
    assert Fraction(step) <= Fraction(scale) / 2**GRID_BITS
    assert Fraction(step) > Fraction(scale) / 2 ** (GRID_BITS + 1)
    assert GRID_BITS == 32


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_bad_scale(scale: float) -> None:
    with pytest.raises(UsageError, match="scale: must be finite and positive"):
        granularity(scale)
    with pytest.raises(UsageError, match="scale"):
        add_gaussian(Fraction(0), scale)
    with pytest.raises(UsageError, match="scale"):
        add_laplace(Fraction(0), scale)


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e305])
def test_a_scale_without_room_for_its_grid(scale: float) -> None:
    with pytest.raises(UsageError, match="between 1e-290 and 1e300"):
        granularity(scale)


@pytest.mark.parametrize("add", [add_gaussian, add_laplace])
@pytest.mark.parametrize("scale", [1e-9, 0.3, 1.0, 12345.678, 1e12])
@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-(10**9), 7), Fraction(0)])
def test_outputs_lie_on_the_grid(add: object, scale: float, value: Fraction) -> None:
    assert callable(add)
    step = Fraction(granularity(scale))
    for _ in range(5):
        noisy = add(value, scale)
        assert isinstance(noisy, Fraction)
        assert (noisy / step).denominator == 1
        # 60 scales away: below e^-60 for the Laplace law, e^-1800 for the Gaussian.
        assert abs(noisy - value) <= 60 * Fraction(scale) + step


def test_the_value_is_rounded_to_the_grid_without_a_float(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the noise switched off what is left is the nearest grid point, computed in integers."""
    monkeypatch.setattr(sampler, "_gaussian", lambda steps: lambda zero: zero)
    step = Fraction(granularity(1.0))
    exact = 10**30 + Fraction(1, 3)  # no float is near
    assert add_gaussian(exact, 1.0) == round(exact / step) * step
    assert abs(add_gaussian(exact, 1.0) - exact) <= step / 2


def test_a_sampler_of_another_scale_is_refused() -> None:
    """What OpenDP says of its own law is checked before it is used."""
    sampler._require_scale(1.0)
    for ratio in (0.81, 1.0 + 1e-6, math.nan, math.inf):
        with pytest.raises(CertificateError, match="does not have the scale it was asked for"):
            sampler._require_scale(ratio)


# ---------------------------------------------------------------------------------------------------------------- the law


def masses(kind: str, steps: float, reach: int) -> Vector:
    """Exact masses at -reach .. reach, and of everything beyond in the last place."""
    wide = np.arange(-40 * reach, 40 * reach + 1, dtype=np.float64)
    weights = np.exp(-(wide**2) / (2 * steps**2)) if kind == "gaussian" else np.exp(-np.abs(wide) / steps)
    weights /= weights.sum()
    inner = weights[np.abs(wide) <= reach]
    return np.append(inner, 1 - inner.sum())


def statistic(draws: Vector, expected: Vector, reach: int) -> float:
    counts = Counter(int(d) if abs(d) <= reach else reach + 1 for d in draws)
    observed = np.array([counts[k] for k in range(-reach, reach + 2)], dtype=np.float64)
    return float(((observed - len(draws) * expected) ** 2 / (len(draws) * expected)).sum())


def limit(expected: Vector) -> float:
    return float(chi2.isf(ALARM, len(expected) - 1))


LAWS = [("gaussian", 1.7, 4), ("gaussian", 0.6, 1), ("laplace", 1.3, 5), ("laplace", 0.7, 3)]


@pytest.mark.parametrize(("kind", "steps", "reach"), LAWS)
def test_the_integer_samplers_have_their_exact_law(kind: str, steps: float, reach: int) -> None:
    """10,000 draws of OpenDP's sampler at a few steps of scale, by chi-square; false alarm 1e-7. Power: the next test."""
    draw = (sampler._gaussian if kind == "gaussian" else sampler._laplace)(steps)
    draws = np.array([int(draw(0)) for _ in range(DRAWS)], dtype=np.float64)
    expected = masses(kind, steps, reach)
    assert (DRAWS * expected).min() > 20  # where chi-square's own approximation is good
    assert statistic(draws, expected, reach) < limit(expected)


@pytest.mark.parametrize(("kind", "steps", "reach"), LAWS)
def test_that_test_rejects_a_tenth_less_noise(kind: str, steps: float, reach: int) -> None:
    """By the noncentral chi-square law the mutant is missed with probability below 2e-4; one planted sample is rejected."""
    expected, mutant = masses(kind, steps, reach), masses(kind, 0.9 * steps, reach)
    noncentrality = DRAWS * float(((mutant - expected) ** 2 / expected).sum())
    assert float(ncx2.cdf(limit(expected), len(expected) - 1, noncentrality)) < 2e-4
    rng = np.random.default_rng(1)
    planted = rng.choice(np.arange(-reach, reach + 2), p=mutant, size=DRAWS).astype(np.float64)
    assert statistic(planted, expected, reach) > limit(expected)
