"""The frequencies of recorded sums: none that matters is left out, and what is computed is the transform, term by term."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from attrpriv.numerics.laws.recorded_frequencies import SumInversion
from attrpriv.numerics.laws.recorded_rows import RecordedRows, Tilt

RNG = np.random.default_rng(11)
# Skewed and gapped values of s, correlated q with a lattice of its own, more rows than can be enumerated.
SAMPLES: dict[str, tuple[list[int], list[int]]] = {
    "skewed": (list(map(int, RNG.geometric(0.3, 300))), list(map(int, RNG.poisson(3.0, 300)))),
    "tied": ([3 * k % 11 for k in range(200)], [k % 11 + 2 * (k % 3) for k in range(200)]),
    "two values": ([0] * 30 + [7] * 70, [k % 5 for k in range(100)]),
}


def inversion(name: str, n: int, lean: float) -> tuple[SumInversion, list[tuple[float, int, int]]]:
    s, q = SAMPLES[name]
    rows = RecordedRows.of(s, q)
    tilt = Tilt.at(rows, lean * rows.width)
    middle = round(n * tilt.centre[0])
    made = SumInversion.of(tilt, n, np.arange(middle - 3, middle + 4))
    weights = np.array([count * math.exp(tilt.theta * x) for x, count in zip(rows.s, rows.counts, strict=True)])
    weights = weights / weights.sum()
    assert lean == 0 or weights @ rows.s == pytest.approx(lean * rows.width, rel=1e-6)
    return made, [(float(w), int(a), int(b)) for w, a, b in zip(weights, rows.s, rows.q, strict=True)]


def sizes(made: SumInversion, terms: Sequence[tuple[float, int, int]], u: float) -> list[complex]:
    """E[e^(i(t (s - c_s) + u (q - c_q)))] at every frequency t of the turn."""
    cs, cq = made.tilt.centre
    weights, s, q = (np.array([one[k] for one in terms], dtype=np.float64) for k in range(3))
    t = 2 * np.pi * np.arange(made.turn) / made.turn
    found = np.exp(1j * (t[:, None] * (s - cs) + u * (q - cq))) @ weights
    return [complex(x) for x in found]


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize(("n", "lean"), [(400, 0.0), (3000, 0.3), (3000, 0.7)])
def test_what_is_left_out_is_below_the_least_power(name: str, n: int, lean: float) -> None:
    """And not much else is left in: what is looked at in the end is at most twice as far from mattering."""
    made, terms = inversion(name, n, lean)
    u = np.array([0.0, 0.01, 0.2, 1.3])
    line, k, _ = made._survivors(u, made._inner(u), 0)
    kept = set(zip(line.tolist(), k.tolist(), strict=True))
    assert len(kept) < len(u) * made.turn  # some are left out, or this shows nothing
    for place, at in enumerate(u):
        power = [n * math.log(max(abs(x), 1e-300)) for x in sizes(made, terms, float(at))]
        assert all((place, t) in kept for t, one in enumerate(power) if one >= -50.0)
        assert all(power[t] >= -50.0 - n * 1e-11 - 1e-6 for which, t in kept if which == place)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_joint_transform_is_the_sum_over_all_frequencies(name: str) -> None:
    """J(S, u) is the mean over t of phi(t, u)^n e^(-it(S - n c_s)), to what its errors say."""
    n = 60
    made, terms = inversion(name, n, 0.4)
    u = np.array([0.0, 0.03, 0.4])
    joint = made.joint(u)
    t = 2 * np.pi * np.arange(made.turn) / made.turn
    for place, at in enumerate(u):
        phi = np.array(sizes(made, terms, float(at)))
        for row, total in enumerate(made.sums):
            turned = np.exp(-1j * t * (float(total) - n * made.tilt.centre[0]))
            exact = complex((phi**n * turned).mean())
            assert abs(joint.values[row, place] - exact) <= joint.errors[row, place] + 1e-12
            assert joint.errors[row, place] < 1e-8
    assert abs(joint.values).max() > 1e-3
