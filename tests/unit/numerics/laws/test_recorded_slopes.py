"""How far a slope may be from that in the middle of its bin: against sums of waves, whose derivatives are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.numerics.laws import recorded_slopes
from attrpriv.numerics.laws.recorded_slopes import Slopes, bin_slopes, powers_left_out

Numbers = NDArray[np.float64]
BINS = 512
STEP = 2 * math.pi / BINS
# The first bin, from its middle.
PLACES = np.linspace(-0.5, 0.5, 101)


def told(weights: list[complex], parts: int = 1, wrong: float = 0.0, left: float = 0.0) -> Slopes:
    """Of 2/B sum over l = 1, 2, ... of Re c e^(i l step y), with y = 0 in the middle of the first bin."""
    turns: Numbers = STEP * np.arange(1 + len(weights), dtype=np.float64)
    # The transform counts from the middle of the first part of the bin.
    middle = 0.5 - 0.5 / parts
    turned = np.array([0.0, *weights]) * np.exp(-1j * turns * middle)
    return bin_slopes(turned[None, :], np.full((1, len(turns)), wrong), turns, parts, BINS, left)


def slopes(weights: list[complex], at: Numbers) -> Numbers:
    turns = STEP * np.arange(1, 1 + len(weights))
    return np.asarray(2 / BINS * (np.exp(1j * np.outer(at, turns)) @ (1j * turns * np.array(weights))).real)


def of_one_derivative(order: int) -> list[complex]:
    """Waves whose derivative of this order is 1 (times 2/B) at 0; all others from the second to the fifth are 0 there."""
    orders = [k for k in range(2, 6) if k % 2 == order % 2]
    turns = STEP * np.arange(1, 1 + len(orders))
    # The real part of i^k c is +-c for a real c and even k, and for an imaginary one and odd k.
    unit = 1.0 if order % 2 == 0 else 1j
    powers = np.array([((1j * turns) ** k * unit).real for k in orders])
    return [complex(x) * unit for x in np.linalg.solve(powers, np.array([float(k == order) for k in orders]))]


@pytest.mark.parametrize("parts", [1, 2, 8])
@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_each_derivative_is_counted_with_its_share(order: int, parts: int) -> None:
    weights = of_one_derivative(order)
    found = told(weights, parts)
    middle, bend = float(found.middle[0, 0]), float(found.bend[0, 0])
    assert middle == pytest.approx(float(slopes(weights, np.zeros(1))[0]), abs=1e-6 * bend)
    furthest = float(np.abs(slopes(weights, PLACES) - middle).max())
    assert furthest == pytest.approx(2 / BINS * 0.5 ** (order - 1) / math.factorial(order - 1), rel=1e-3)
    # What is left after the fourth is bounded by the sizes of all waves, however they cancel: 40 for 24 here.
    assert furthest <= bend <= furthest * (1.01 if order < 5 else 1.7)


def test_waves_that_are_off_are_counted() -> None:
    """Each as if it stood wrong by that much, in the worst direction."""
    weights: list[complex] = [0.3, 0.2 - 0.1j, -0.25j]
    found = told(weights, wrong=0.05)
    for turn in np.exp(2j * math.pi * np.arange(8) / 8):
        others = [c + 0.05 * complex(turn) * sign for c, sign in zip(weights, (1, -1, 1), strict=True)]
        assert np.abs(slopes(others, PLACES) - found.middle[0, 0]).max() <= found.bend[0, 0]
    turns = STEP * np.arange(1, 4)
    for one in (-1j, 1j):  # all of them push the slope in the middle to one side
        moved = slopes([c + 0.05 * one for c in weights], np.zeros(1))[0] - found.middle[0, 0]
        assert abs(moved) == pytest.approx(2 / BINS * 0.05 * turns.sum(), rel=1e-9)
        assert abs(moved) <= found.bend[0, 0] - told(weights).bend[0, 0]


def test_waves_that_are_left_out_are_counted_in_every_derivative() -> None:
    """They may be there in the slope itself, in each of the next three, and in what is left."""
    more = float(told([0.3], left=0.1).bend[0, 0] - told([0.3]).bend[0, 0])
    shares = [0.5**k / math.factorial(k) for k in range(4)] + [0.5**4 / math.factorial(4)]
    assert more == pytest.approx(0.1 / BINS * sum(shares), rel=1e-9)


@pytest.mark.parametrize("parts", [1, 4])
def test_what_is_off_is_counted_in_every_derivative(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By waves of up to half a turn a bin, that are off or rounded: each order by the sum of |u|^k, over both signs."""
    bins, turns = 16, 2 * math.pi / 16 * np.arange(9, dtype=np.float64)
    waves = np.array([[0.0, 0.3, -0.2j, 0.1, 0.4, 0.05j, -0.2, 0.1, 0.3]])
    shares = [0.5**k / math.factorial(k) for k in range(4)] + [0.5**4 / math.factorial(4)]
    none = np.zeros_like(turns)[None, :]

    def bend(wrong: Numbers) -> Numbers:
        return bin_slopes(waves[:, :-1], wrong[:, :-1], turns[:-1], parts, bins, 0.0).bend

    def wanted(off: Numbers, orders: range) -> float:
        return sum(share * 2 * float(off[0, :-1] @ turns[:-1] ** k) / bins for k, share in zip(orders, shares, strict=False))

    wrong = np.linspace(0.1, 0.5, 9)[None, :]
    assert bend(wrong) - bend(none) == pytest.approx(np.full((1, bins), wanted(wrong, range(1, 6))), rel=1e-6)
    exact, unit = bend(none), 1e-4
    monkeypatch.setattr(recorded_slopes, "UNIT", unit)
    rounded = (8 * math.log2(bins * parts) + 32) * unit * (1 + turns) * np.abs(waves)
    assert bend(none) - exact == pytest.approx(np.full((1, bins), wanted(rounded, range(1, 5))), rel=1e-6)


POWERS = [(1.5, 0.01, 3.0), (10.0, 0.05, 0.5), (0.5, 0.02, 8.0), (3.0, 0.5, 2.0), (0.3, 0.1, 10.0)]


@pytest.mark.parametrize(("sigma", "base", "last"), POWERS)
def test_powers_that_are_left_out_are_bounded(sigma: float, base: float, last: float) -> None:
    """By a series that begins with the last frequency that is kept, and falls as fast as the powers do there."""
    u = last + base * np.arange(1, 100_000)
    truth = 2 * float((np.maximum(u, u**5) * np.exp(-((sigma * u) ** 2) / 2)).sum())
    falls = np.exp(-(sigma**2 * last - 5 / last) * base * np.arange(100_000))
    series = 2 * max(last, last**5) * math.exp(-((sigma * last) ** 2) / 2) * float(falls.sum())
    assert truth <= powers_left_out(sigma, base, last) <= series * (1 + 1e-6)


def test_powers_that_do_not_fall_are_not_bounded() -> None:
    assert powers_left_out(1.0, 0.1, math.sqrt(5.0)) == math.inf
