"""The laws of a count given a parameter, with wide intervals: what the stated numbers leave open is counted everywhere."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.fixed_point import SHORT
from attrpriv.numerics.laws.parameter_counts import MOST_ROWS, ParameterCounts

N = 7
POINTS = ((0.3, 0.3), (0.5, 0.5), (0.0, 0.0), (1.0, 1.0))
WEIGHTS = ((0.5, 0.25, 0.125, 0.125), (0.1, 0.6, 0.0, 0.3))


def counts(**changes: Any) -> ParameterCounts:
    told: dict[str, Any] = {"n": N, "probabilities": POINTS, "weights": WEIGHTS, "error": 0.0}
    return ParameterCounts(**(told | changes))


def exact() -> np.ndarray:
    states = np.array([binom.pmf(np.arange(N + 1), N, p) for p, _ in POINTS])
    return np.asarray(np.array(WEIGHTS) @ states)


def test_laws_are_mixtures_of_binomials() -> None:
    for law, wanted in zip(counts().laws(0.0), exact(), strict=True):
        assert law.start == 0
        assert law.masses == pytest.approx(wanted, rel=1e-12)
        assert law.pointwise
    for whole, wanted in zip(counts().whole(), exact(), strict=True):
        assert whole.start == 0
        assert whole.masses == pytest.approx(wanted, rel=1e-12)
        assert whole.error < 1e-12
        assert whole.floor < 1e-250
    assert counts().reach == N


def test_a_window_says_what_it_leaves_out() -> None:
    many = counts(n=400, probabilities=((0.3, 0.3), (0.5, 0.5)), weights=((0.5, 0.5), (0.9, 0.1)))
    for law, row in zip(many.laws(1e-6), ((0.5, 0.5), (0.9, 0.1)), strict=True):
        true = np.array(row) @ np.array([binom.pmf(np.arange(401), 400, p) for p in (0.3, 0.5)])
        inside = true[law.start : law.end + 1]
        assert abs(law.masses - inside).max() < 1e-9
        assert 1 - inside.sum() <= law.lost < 1e-4


@pytest.mark.parametrize("error", [1e-3, 0.02])
def test_an_error_of_the_weights_opens_every_mass(error: float) -> None:
    """(1 + error)/(1 - error): in laws, in whole laws and in tails."""
    told = counts(error=error)
    share = (1 + error) / (1 - error) - 1
    assert told.spread == pytest.approx(share, rel=1e-9)
    assert told.spread >= share
    assert counts().spread == 0.0
    for law in told.laws(0.0):
        assert law.error == pytest.approx(share, rel=1e-6)
        assert law.lost == 0.0
    for whole in told.whole():
        assert whole.error == pytest.approx(share, rel=1e-6)
        assert whole.distance == pytest.approx(share, rel=1e-6)
    for tail in told.tails():
        assert tail.error == pytest.approx(-math.log1p(-share), rel=1e-6)
    many = counts(n=400, error=error).laws(1e-6)
    assert all(law.lost > share for law in many)
    assert all(law.lost < share + 1e-3 for law in many)


@pytest.mark.parametrize(("low", "high"), [(0.3, 0.3001), (0.5, 0.501), (0.9, 0.9001), (0.01, 0.01001)])
def test_an_interval_opens_every_mass(low: float, high: float) -> None:
    """n rows, each by the larger of both ratios; every member's masses are within it."""
    told = counts(probabilities=((low, high), (0.5, 0.5), (0.0, 0.0), (1.0, 1.0)))
    a, b = Fraction(low), Fraction(high)
    ratio = max(b / a, (1 - a) / (1 - b))
    with mpmath.workdps(30):
        drift = float((mpmath.mpf(ratio.numerator) / ratio.denominator) ** N - 1)
    assert told.spread == pytest.approx(drift, rel=1e-7)
    assert told.spread >= drift
    law = told.laws(0.0)[0]
    for p in (low, (low + high) / 2, high):
        states = np.array([binom.pmf(np.arange(N + 1), N, x) for x in (p, 0.5, 0.0, 1.0)])
        true = np.array(WEIGHTS[0]) @ states
        assert (np.abs(true - law.masses) <= law.error * law.masses * (1 + 1e-9)).all()


def test_tails_are_sums_of_masses() -> None:
    for tail, law in zip(counts().tails(), exact(), strict=True):
        below, above = np.cumsum(law), np.append(np.cumsum(law[::-1])[::-1][1:], 0.0)
        assert np.exp(tail.log_below) == pytest.approx(np.minimum(below, 1.0), rel=1e-9)
        assert np.exp(tail.log_above) == pytest.approx(above, rel=1e-9, abs=1e-300)
        assert tail.log_below[-1] == 0.0
        assert tail.log_above[-1] == -math.inf
    sure = counts(probabilities=((0.0, 0.0), (1.0, 1.0)), weights=((1.0, 0.0), (0.0, 1.0))).tails()
    assert np.exp(sure[0].log_below).tolist() == [1.0] * (N + 1)
    assert np.exp(sure[0].log_above).tolist() == [0.0] * (N + 1)
    assert np.exp(sure[1].log_below).tolist() == [0.0] * N + [1.0]
    assert np.exp(sure[1].log_above).tolist() == [1.0] * N + [0.0]


@pytest.mark.parametrize("bits", [20, 60, 100])
def test_fixed_masses_are_short_by_less_than_promised(bits: int) -> None:
    """Against fractions: never above, and short by less than SHORT units."""
    for row, weights in zip(counts().fixed(bits), WEIGHTS, strict=True):
        total = sum(map(Fraction, weights))
        for k, found in enumerate(row):
            mass = sum(
                Fraction(w) / total * math.comb(N, k) * Fraction(p) ** k * (1 - Fraction(p)) ** (N - k)
                for w, (p, _) in zip(weights, POINTS, strict=True)
            )
            assert 0 <= mass * 2**bits - found < SHORT


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 0}, {"n": MOST_ROWS + 1}, {"weights": WEIGHTS[:1]}, {"weights": (WEIGHTS[0], WEIGHTS[1][:3])},
        {"weights": (WEIGHTS[0], (0.1, 0.6, 0.0, 0.4))}, {"probabilities": ((0.3, 0.2), *POINTS[1:])},
        {"probabilities": ((0.0, 0.2), *POINTS[1:])}, {"probabilities": ((0.3, 1.0), *POINTS[1:])},
        {"probabilities": ((-0.1, -0.1), *POINTS[1:])}, {"probabilities": ((1e-291, 0.3), *POINTS[1:])},
        {"error": -1e-3}, {"error": 0.1}, {"error": math.nan}, {"error": 0.06}, {"probabilities": ((0.3, 0.31), *POINTS[1:])},
    ],
)  # fmt: skip
def test_what_says_too_little(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        counts(**changes)


def test_a_tenth_may_be_left_open() -> None:
    share = 0.1
    error = share / (2 + share)
    assert counts(error=error * (1 - 1e-9)).spread <= 0.1
    with pytest.raises(UsageError):
        counts(error=error * (1 + 1e-9))
