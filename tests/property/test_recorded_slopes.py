"""Answers that are not rounded: what bins say of them, from below and from above, against densities on a grid 64 times finer.

Rows are few enough to be listed, so that each density is a sum of normal ones. There is no chance here.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.numerics.divergences.recorded_pairs import epsilon_at, hockey_stick, hockey_stick_lower
from attrpriv.numerics.laws.recorded_inversion import NoisyLaws, noisy_laws
from attrpriv.numerics.laws.recorded_rows import RecordedRows
from attrpriv.numerics.laws.recorded_slopes import Slopes, powers_left_out

Numbers = NDArray[np.float64]
ROWS = [(0, 0), (0, 3), (1, 1), (1, 1), (2, 7), (2, 2)]
N, SIGMA = 5, 1.5
FINER = 64


@lru_cache
def sums(total: int) -> tuple[Numbers, Numbers]:
    """The sums of q, and their chances, where those of s are the total."""
    found = [sum(q for _, q in rows) for rows in itertools.product(ROWS, repeat=N) if sum(s for s, _ in rows) == total]
    values, counts = np.unique(found, return_counts=True)
    return values.astype(np.float64), counts / counts.sum()


def density(total: int, at: Numbers) -> Numbers:
    values, chances = sums(total)
    z = (at[:, None] - values) / SIGMA
    return np.asarray(np.exp(-z * z / 2) @ chances / (SIGMA * math.sqrt(2 * math.pi)))


def as_they_are(step: float) -> NoisyLaws:
    return noisy_laws(RecordedRows.of(*zip(*ROWS, strict=True)), N, range(3, 8), SIGMA, step, rounded=False)


def fine(laws: NoisyLaws, epsilon: float, a: int, b: int) -> float:
    """The integral of max(0, p - e^epsilon q), on a grid so fine that its own error is below 1e-4 of it."""
    width = laws.step / FINER
    places = np.arange(len(laws.bins) * FINER, dtype=np.float64) + 0.5
    at = np.asarray((float(laws.bins[0]) - 0.5) * laws.step + width * places, dtype=np.float64)
    p, q = (density(int(laws.secrets[k]), at) for k in (a, b))
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * width)


@pytest.mark.parametrize(("step", "epsilon"), [(0.05, 0.5), (0.05, 3.0), (0.25, 0.0), (0.25, 2.0), (1.0, 0.5), (1.0, 4.0)])
def test_bins_hold_what_the_densities_give(step: float, epsilon: float) -> None:
    laws = as_they_are(step)
    pairs = [(a, b) for a in range(5) for b in range(5) if a != b]
    truth = max(fine(laws, epsilon, a, b) for a, b in pairs)
    assert hockey_stick_lower(laws, epsilon) <= truth * 1.0001
    found = hockey_stick(laws, epsilon).delta
    assert truth * 0.9999 <= found
    if step <= 0.05:
        assert found <= truth * 1.01 + 1e-7


@pytest.mark.parametrize("pair", [(0, 4), (3, 2), (1, 2)])
def test_single_pairs_are_held_too(pair: tuple[int, int]) -> None:
    laws = as_they_are(0.05)
    truth = max(fine(laws, 1.0, *pair), fine(laws, 1.0, *pair[::-1]))
    found = hockey_stick(laws, 1.0, pairs=[pair]).delta
    assert truth * 0.9999 <= found <= truth * 1.01 + 1e-7


def test_slopes_are_those_of_the_densities() -> None:
    laws = as_they_are(0.25)
    assert laws.slopes is not None
    middles: Numbers = laws.bins.astype(np.float64) * laws.step
    for k, total in enumerate(laws.secrets):
        tiny = 1e-4
        slope = (density(int(total), middles + tiny) - density(int(total), middles - tiny)) / (2 * tiny) * laws.step**2
        assert np.abs(laws.slopes.middle[k] - slope).max() < 1e-9
        for off in (-0.5, -0.2, 0.5):
            there = middles + off * laws.step
            own = (density(int(total), there + tiny) - density(int(total), there - tiny)) / (2 * tiny) * laws.step**2
            assert (np.abs(own - laws.slopes.middle[k]) <= laws.slopes.bend[k] + 1e-9).all()


def test_bins_that_take_rounding_for_nothing_are_found_out() -> None:
    """A mutant: densities are taken to be flat within a bin."""
    laws = as_they_are(1.0)
    assert laws.slopes is not None
    flat = replace(laws, slopes=Slopes(laws.slopes.middle * 0, laws.slopes.bend * 0))
    truth = max(fine(laws, 2.0, a, b) for a, b in ((0, 4), (4, 0)))
    assert hockey_stick(flat, 2.0, pairs=[(0, 4)]).delta < truth < hockey_stick(laws, 2.0, pairs=[(0, 4)]).delta


def test_many_parts_of_a_bin_give_the_same_slopes() -> None:
    """Little noise and wide bins: the last Fourier transform has several points a bin."""
    rows = RecordedRows.of(*zip(*ROWS, strict=True))
    wide, narrow = (noisy_laws(rows, N, [4, 5], 0.2, step, rounded=False) for step in (1.0, 0.0625))
    assert wide.slopes is not None
    assert narrow.slopes is not None
    there = np.searchsorted(narrow.bins * narrow.step, wide.bins * wide.step)
    inside = there < len(narrow.bins)
    assert np.abs(wide.slopes.middle[:, inside] - narrow.slopes.middle[:, there[inside]] * 256).max() < 1e-9


def test_epsilon_is_between_both_sides() -> None:
    laws = as_they_are(0.05)
    epsilon = epsilon_at(laws, 1e-3, within=1)
    assert hockey_stick_lower(laws, 0.99 * epsilon, within=1) > 1e-3


def test_what_is_left_out_of_the_frequencies_is_bounded() -> None:
    for sigma, base, last in ((1.0, 0.05, 8.2), (10.0, 0.01, 0.82), (0.1, 0.5, 82.0)):
        u = last + base * np.arange(1, 100_000)
        powers = np.maximum(u, u**5) * np.exp(-((sigma * u) ** 2) / 2)
        assert 2 * powers.sum() <= powers_left_out(sigma, base, last)
    assert powers_left_out(1.0, 0.1, 1.0) == math.inf
