"""The exact samplers: their grid, and the law of OpenDP's integer noise against its exact masses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2, ncx2

from attrpriv.errors import CertificateError, UsageError
from attrpriv.noise import (
    GRID_BITS,
    add_gaussian,
    add_gaussian_on,
    add_laplace,
    granularity,
    whole_gaussian,
    whole_laplace,
)
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


# --------------------------------------------------------------------------------------------------------- no bias of a step


class Steps:
    """A sampler that gives known numbers of steps, whatever it is asked for."""

    def __init__(self, steps: int) -> None:
        self.steps, self.asked = steps, list[float]()

    def __call__(self, scale: float) -> Callable[[int], int]:
        self.asked.append(scale)
        return lambda zero: zero + self.steps


VALUES = [Fraction(0), Fraction(1, 3), Fraction(-22, 7), Fraction(10**20 + 1, 3), Fraction(-5, 2)]


@pytest.mark.parametrize("steps", [0, 1, -3, 10**15])
@pytest.mark.parametrize("scale", [1.0, 1.5, 1e-9, 12345.678])
@pytest.mark.parametrize("value", VALUES)
def test_the_answer_is_the_nearest_grid_point_and_the_steps(
    value: Fraction, scale: float, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In fractions, so that a bias of 1.5 steps, or of one, or of a half, is seen; in every way that noise is added."""
    fake = Steps(steps)
    monkeypatch.setattr(sampler, "_gaussian", fake)
    monkeypatch.setattr(sampler, "_laplace", fake)
    step = Fraction(granularity(scale))
    for noisy in (add_gaussian(value, scale), add_laplace(value, scale), add_gaussian_on(value, scale, granularity(scale))):
        assert abs(noisy - steps * step - value) <= step / 2
        assert noisy % step == 0
    assert fake.asked == [scale / granularity(scale)] * 3
    assert whole_gaussian(scale) == whole_laplace(scale) == steps
    assert fake.asked[3:] == [scale] * 2


@pytest.mark.parametrize("digits", [1, 4, 20])
def test_a_filled_step_is_filled_evenly_around_its_middle(digits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number of random bits, or its ends: evenly spaced, symmetric around the grid point, all within half a step."""
    monkeypatch.setattr(sampler, "_gaussian", Steps(0))
    step = Fraction(granularity(1.0))
    ends = range(2**digits) if digits < 5 else (0, 1, 2**digits - 2, 2**digits - 1)
    found = []
    for bits in ends:
        monkeypatch.setattr(sampler, "randbits", lambda asked, bits=bits: bits if asked == digits else -1)
        found.append(sampler.add_filled_gaussian(Fraction(0), 1.0, digits) / step)
    assert all(abs(x) < Fraction(1, 2) for x in found)
    assert [-x for x in reversed(found)] == found
    assert found[1] - found[0] == Fraction(1, 2**digits)
    assert found[0] - Fraction(-1, 2) == Fraction(1, 2 ** (digits + 1))


def test_a_grid_of_its_own_is_fine_enough_and_no_finer_than_it_can_be() -> None:
    step = granularity(1.5)
    for fine in (step, step / 2, 1.5 / 2.0**sampler.MOST_BITS):
        assert (add_gaussian_on(Fraction(0), 1.5, fine) / Fraction(fine)).denominator == 1
    for wrong in (2 * step, step * (1 + 2**-50), 0.0, -step, 1.5 / 2.0**sampler.MOST_BITS * (1 - 2**-50)):
        with pytest.raises(CertificateError, match="grid"):
            add_gaussian_on(Fraction(0), 1.5, wrong)


@pytest.mark.parametrize("bits", [1, 7, sampler.MOST_BITS])
def test_common_noise_is_the_factor_times_the_steps(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter([3, -2, 5, 7])
    asked: list[float] = []

    def counting(scale: float) -> Callable[[int], int]:
        asked.append(scale)
        return lambda zero: next(numbers)

    monkeypatch.setattr(sampler, "_gaussian", counting)
    found = sampler.correlated_noise([[0.5, -1.25], [0.0, 3.0]], bits, 0.25)
    assert found == [(Fraction(3, 2) + Fraction(5, 2)) / 2**bits, Fraction(-6, 2**bits)]
    assert asked == [0.5 * 2**bits] * 2
    assert sampler.correlated_noise([], bits) == []
    assert sampler.correlated_noise([[1.0], [2.0]], bits) == [Fraction(5, 2**bits), Fraction(10, 2**bits)]
    assert asked[2] == 2.0**bits


def test_common_noise_of_no_variance_is_none() -> None:
    assert sampler.correlated_noise([[1.0, 2.0]], 34, 0.0) == [0]
    for bits in (0, sampler.MOST_BITS + 1):
        with pytest.raises(UsageError, match="bits"):
            sampler.correlated_noise([[1.0]], bits)


def test_scales_at_the_ends_of_the_floats() -> None:
    """The grid may be 2^-1000 and the scale 2^1000, neither finer nor larger."""
    assert granularity(2.0**-968) == 2.0**-1000
    assert granularity(2.0**1000) == 2.0**968
    for scale in (math.nextafter(2.0**-968, 0.0), math.nextafter(2.0**1000, math.inf)):
        with pytest.raises(UsageError, match="between"):
            granularity(scale)


def test_what_a_sampler_says_of_itself_is_compared_with_its_scale() -> None:
    """1 up to 1e-9, for both laws, at large scales and at small ones."""
    for steps in (0.5, 3.0, 2.0**33):
        sampler._gaussian(steps)
        sampler._laplace(steps)
    for ratio in (1 + 9e-10, 1 - 9e-10):
        sampler._require_scale(ratio)
    for ratio in (1 + 1.1e-9, 1 - 1.1e-9):
        with pytest.raises(CertificateError):
            sampler._require_scale(ratio)


def test_the_whole_way_has_no_bias() -> None:
    """The mean of 4,000 discrete Gaussian draws of scale 3 steps has sd 3/sqrt(4000) = 0.047.

    A bias of 1.5 steps is 31 sds off, and a false alarm beyond 6 sds has a chance below 2e-9.
    """
    draws = [whole_gaussian(3.0) for _ in range(4_000)]
    assert abs(sum(draws) / len(draws)) < 6 * 3 / math.sqrt(4_000)
    draws = [whole_laplace(3.0) for _ in range(4_000)]
    # The discrete Laplace law of scale 3 has variance below 2 * 9.
    assert abs(sum(draws) / len(draws)) < 6 * math.sqrt(18 / 4_000)
