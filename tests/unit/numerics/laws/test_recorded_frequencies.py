"""The frequencies of recorded sums: none that matters is left out, and what is computed is the transform, term by term."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import recorded_frequencies
from attrpriv.numerics.laws.recorded_frequencies import SumInversion, less_one, log_of
from attrpriv.numerics.laws.recorded_rows import RecordedRows, Tilt
from attrpriv.numerics.rounding import UNIT

Numbers = NDArray[np.float64]
Waves = NDArray[np.complex128]

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


# ----------------------------------------------------------------------------------------- numbers near 1, and near nothing


@pytest.mark.parametrize("less", [1e-12 + 1e-9j, -0.3 + 0.2j, -1e-5 - 1e-5j, -1.2 + 0.9j, -1 + 1e-9 - 1e-12j, -1 + 0.3j, -1.5j])
def test_logarithms_of_what_is_near_one_or_nothing_are_accurate(less: complex) -> None:
    size, angle = log_of(np.array([less]))
    with mpmath.workdps(50):
        exact = mpmath.log(1 + mpmath.mpc(less))
        assert float(size[0]) == pytest.approx(float(exact.real), rel=1e-12, abs=0)
        assert float(angle[0]) == pytest.approx(float(exact.imag), rel=1e-12, abs=0)


def test_nothing_has_a_logarithm_below_all_numbers() -> None:
    size, _ = log_of(np.array([-1.0 + 0j]))
    assert size[0] == -math.inf


@pytest.mark.parametrize("x", [0.0, 1e-9, -3e-5, 0.7, -2.9, 40.0])
def test_a_turn_less_one_is_accurate(x: float) -> None:
    with mpmath.workdps(50):
        exact = complex(mpmath.expm1(1j * mpmath.mpf(x)))
    found = complex(less_one(np.array([x]))[0])
    assert found.real == pytest.approx(exact.real, rel=1e-13, abs=0)
    assert found.imag == pytest.approx(exact.imag, rel=1e-13, abs=0)


# ------------------------------------------------------------------------------------------------ frequencies, cell by cell


def at(made: SumInversion, terms: Sequence[tuple[float, int, int]], t: Numbers, u: float) -> tuple[Waves, Waves]:
    """phi and its derivative in t."""
    weights, s, q = (np.array([one[k] for one in terms], dtype=np.float64) for k in range(3))
    away = s - made.tilt.centre[0]
    turned = np.exp(1j * (t[:, None] * away + u * (q - made.tilt.centre[1])))
    return np.asarray(turned @ weights), np.asarray(1j * (turned @ (weights * away)))


def looked_at(
    made: SumInversion, terms: Sequence[tuple[float, int, int]], u: Numbers, cells: int
) -> tuple[int, set[tuple[int, int]]]:
    """How many cells are looked at, and what is left of them in the end."""
    least, total, kept = math.exp(-100 / made.n), 0, set()
    for place, one in enumerate(u):
        of_value: dict[int, complex] = {}
        for w, s, q in terms:
            of_value[s] = of_value.get(s, 0) + w * cmath.exp(1j * one * q)
        if sum(map(abs, of_value.values())) ** 2 < least:
            continue
        width = max(1, made.turn // cells)
        left = np.arange(made.turn // width)
        while True:
            total += len(left)
            half = (width - 1) / 2 * (2 * math.pi / made.turn)
            t: Numbers = left.astype(np.float64) * width * (2 * math.pi / made.turn) + half
            phi, slope = at(made, terms, t, float(one))
            size = np.abs(phi) ** 2 + 2 * np.abs((phi.conj() * slope).real) * half + made.tilt.spread[0] * half**2
            left = left[size >= least]
            if width == 1:
                kept |= {(place, int(k)) for k in left}
                break
            width, left = width // 2, (2 * left[:, None] + np.arange(2)).reshape(-1)
    return total, kept


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("cells", [2, 16, 1 << 20])
def test_cells_are_left_out_by_the_rule(name: str, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However wide they are at first; and all frequencies of one u, where these add up to too little."""
    monkeypatch.setattr(recorded_frequencies, "_CELLS", cells)
    made, terms = inversion(name, 600, 0.3)
    u = np.append(np.linspace(0.0, 0.4, 21), [0.9, 2.0])
    wanted, kept = looked_at(made, terms, u, cells)
    line, k, looked = made._survivors(u, made._inner(u), 0)
    assert looked == wanted
    assert set(zip(line.tolist(), k.tolist(), strict=True)) == kept
    for most, enough in ((wanted * len(made.tilt.values), True), (wanted * len(made.tilt.values) - 1, False)):
        monkeypatch.setattr(recorded_frequencies, "_MOST_TERMS", most)
        if enough:
            made._survivors(u, made._inner(u), 0)
        else:
            with pytest.raises(UsageError, match="too many frequencies"):
                made._survivors(u, made._inner(u), 0)


@pytest.mark.parametrize("at_once", [7, 4_000_000])
def test_transforms_and_slopes_are_those_of_the_rows(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_frequencies, "_AT_ONCE", at_once)
    made, terms = inversion("skewed", 60, 0.4)
    u, t = np.array([0.0, 0.3, 1.1]), np.array([0.1, -0.2, 2.0, 3.0, 0.0])
    line = np.array([0, 1, 2, 1, 2])
    found, slope = made._difference(made._inner(u), line, t)
    for k, one in enumerate(line):
        phi, change = at(made, terms, t[k : k + 1], float(u[one]))
        assert found[k] == pytest.approx(complex(phi[0] - 1), abs=1e-13)
        assert slope[k] == pytest.approx(complex(change[0]), abs=1e-12)


# ---------------------------------------------------------------------------------------------------- the sum, and its errors


def contract(
    made: SumInversion, terms: Sequence[tuple[float, int, int]], u: float, kept: NDArray[Any], many: float, unit: float
) -> float:
    """The table of errors, term by term, over the frequencies that are kept; and so many units of rounding for the sum."""
    n, tilt = made.n, made.tilt
    t = np.where(2 * kept > made.turn, kept - made.turn, kept) * (2 * math.pi / made.turn)
    phi, _ = at(made, terms, t, u)
    size, rest = np.abs(phi), n * tilt.centre[0] - round(n * tilt.centre[0])
    off = unit * (np.abs(t) * tilt.share_s + abs(u) * tilt.share_q)
    moved = n * off * (size + off) ** (n - 1)
    turns = np.abs(np.log(size)) + np.abs(np.angle(phi))
    rounded = unit * (16 + 8 * n * turns + 8 * np.abs(t * rest)) * size**n
    each = float((moved + rounded + unit * (many + 16) * size**n).sum() / made.turn)
    return each + made.aliased + math.exp(-recorded_frequencies._LEAST_POWER)


@pytest.mark.parametrize(("n", "many"), [(1, 2), (2, 2), (35, 2), (3000, 2), (2, 60), (35, 60)])
@pytest.mark.parametrize(("least", "unit"), [(50.0, UNIT), (4.0, UNIT), (50.0, 1e-5)])
def test_errors_are_those_of_the_table(n: int, many: int, least: float, unit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few sums are added one by one, many by a Fourier transform. With coarser floats no term is small beside the others."""
    monkeypatch.setattr(recorded_frequencies, "_LEAST_POWER", least)
    monkeypatch.setattr(recorded_frequencies, "UNIT", unit)
    made, terms = inversion("skewed", n, 0.3)
    first = made.middle - many // 2
    made = replace(made, sums=np.arange(first, first + many), aliased=1e-13)
    turns = 2 * np.pi * np.arange(made.turn) / made.turn
    for one in (0.3, 0.0):
        u = np.array([one])
        joint, (_, kept, _) = made.joint(u), made._survivors(u, made._inner(u), 0)
        fast = many * len(kept) > 4 * made.turn
        wanted = contract(made, terms, one, kept, 8 * math.log2(made.turn) if fast else len(kept), unit)
        assert joint.errors[:, 0] == pytest.approx(np.full(many, wanted), rel=1e-6, abs=0)
        exact, _ = at(made, terms, turns, one)
        for row, total in enumerate(made.sums):
            value = (exact**n * np.exp(-1j * turns * (float(total) - n * made.tilt.centre[0]))).mean()
            assert abs(joint.values[row, 0] - value) <= wanted + 1e-14


@pytest.mark.parametrize("many", [2, 400])
@pytest.mark.parametrize("at_once", [40, 1024])
def test_parts_give_what_all_at_once_gives(many: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = inversion("skewed", 60, 0.3)
    made = replace(made, sums=np.arange(made.middle - many // 2, made.middle + many // 2))
    u = np.array([0.0, 0.01, 0.3, 0.9, 0.02])
    whole = made.joint(u)
    monkeypatch.setattr(recorded_frequencies, "_AT_ONCE", at_once)
    parts = made.joint(u)
    assert np.abs(parts.values - whole.values).max() < 1e-15
    assert (parts.errors / whole.errors).max() < 3
    assert (parts.errors / whole.errors).min() > 1 / 3


# -------------------------------------------------------------------------------------------------------- the length of a turn


@pytest.mark.parametrize(("n", "turn", "sums"), [(40, 60, (100, 106)), (300, 90, (690, 702)), (40, 70, (70, 110))])
def test_what_one_turn_away_may_add_is_bounded(n: int, turn: int, sums: tuple[int, int]) -> None:
    """At least what it is, and at most a third more than Chernoff's bound with the best exponent on each side."""
    tilt = Tilt.at(RecordedRows.of([0, 1, 1, 5, 6], [0, 0, 0, 0, 0], [3, 1, 2, 2, 1]), 2.4)
    law = np.ones(1)
    masses = np.zeros(7)
    masses[tilt.values.astype(int)] = tilt.of_value
    for _ in range(n):
        law = np.convolve(law, masses)
    truth, best = 0.0, 0.0
    for far, one in ((sums[0] + turn, 1), (sums[1] - turn, -1)):
        truth += law[far:].sum() if one > 0 else law[: far + 1].sum()

        def power(lean: float, far: int = far, one: int = one) -> float:
            return n * math.log(masses @ np.exp(one * lean * np.arange(7))) - one * lean * far

        best += math.exp(min(0.0, minimize_scalar(power, bounds=(0.0, 3.0), method="bounded").fun))
    assert 1e-12 < truth < 0.1
    assert truth <= recorded_frequencies._beyond(tilt, n, *sums, turn) <= best * 1.3


def test_what_is_nearer_than_the_mean_is_not_bounded() -> None:
    tilt = Tilt.at(RecordedRows.of([0, 1, 4], [0, 0, 0]), 2.0)
    middle = round(40 * tilt.centre[0])
    assert recorded_frequencies._beyond(tilt, 40, middle - 30, middle + 30, 10) == 2.0
    assert recorded_frequencies._beyond(Tilt.at(RecordedRows.of([3], [1]), 0.0), 40, 0, 0, 1) == 0.0


def test_a_turn_is_as_long_as_it_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond all sums, where 0 and the largest one do not meet; or so far that what meets is next to nothing."""
    for values, n, turn in (([0, 1], 1, 2), ([0, 1, 4], 2, 16), ([0, 1, 3], 5, 16), ([0, 1, 4], 1, 8)):
        rows = RecordedRows.of(values, values)
        made = SumInversion.of(Tilt.at(rows, rows.width / 2), n, np.array([0, n * rows.width]))
        assert (made.turn, made.aliased) == (turn, 0.0)
    rows = RecordedRows.of([0, 1, 4], [0, 1, 2])
    for sums in ((3990, 4010), (4000, 4600)):
        made = SumInversion.of(Tilt.at(rows, 2.0), 2000, np.array(sums))
        assert 100 < made.turn < 8000
        assert 0 < made.aliased <= 1e-20 < recorded_frequencies._beyond(made.tilt, 2000, sums[0], sums[1], made.turn // 2)
        assert made.aliased == recorded_frequencies._beyond(made.tilt, 2000, sums[0], sums[1], made.turn)
    monkeypatch.setattr(recorded_frequencies, "_MOST_TURN", made.turn)
    assert SumInversion.of(made.tilt, 2000, made.sums).turn == made.turn
    monkeypatch.setattr(recorded_frequencies, "_MOST_TURN", made.turn - 1)
    with pytest.raises(UsageError, match="too many values"):
        SumInversion.of(made.tilt, 2000, made.sums)
