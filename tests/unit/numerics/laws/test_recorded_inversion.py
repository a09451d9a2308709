"""Laws of noisy sums over recorded rows: bins against all tables of few rows, and what a law may be off by, term by term."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtr

from attrpriv.numerics.laws import recorded_frequencies, recorded_inversion
from attrpriv.numerics.laws.recorded_inversion import NoisyLaws, noisy_laws
from attrpriv.numerics.laws.recorded_rows import RecordedRows, Tilt
from attrpriv.numerics.laws.recorded_slopes import bin_slopes
from attrpriv.numerics.rounding import UNIT

Numbers = NDArray[np.float64]
LISTED = {(0, 3): 3, (0, -2): 1, (1, 1): 2, (1, 6): 1, (3, 9): 2, (3, 2): 1, (4, -5): 1}
KINDS = {(0, 3): 3, (0, -2): 1, (1, 1): 2, (1, 6): 1, (1, 9): 1}
N = 5


def rows_of(listed: dict[tuple[int, int], int], unit: float = 1) -> RecordedRows:
    s, q = zip(*listed, strict=True)
    return RecordedRows.of(s, [one * unit for one in q], list(listed.values()), spacing=(1, unit))


def given(listed: dict[tuple[int, int], int], n: int, total: int) -> dict[int, float]:
    """The chances of the sums of q where those of s are the total."""
    law = Counter({(0, 0): 1})
    for _ in range(n):
        longer: Counter[tuple[int, int]] = Counter()
        for ((a, b), many), ((x, y), times) in itertools.product(law.items(), listed.items()):
            longer[a + x, b + y] += many * times
        law = longer
    there = {q: many for (s, q), many in law.items() if s == total}
    return {q: many / sum(there.values()) for q, many in there.items()}


@dataclass
class Made:
    laws: NoisyLaws
    told: tuple[Any, ...]
    """The runs, the secrets, noise and shift in spacings, and the width of a bin."""
    rounded: bool

    @property
    def runs(self) -> list[Any]:
        return list(self.told[0])


def made(rows: RecordedRows, n: int, secrets: Sequence[float], sigma: Any, step: float, **more: Any) -> Made:
    """The laws, and what they were made of."""
    seen: list[Any] = []
    own = recorded_inversion._on_bins

    def noted(*told: Any, rounded: bool) -> NoisyLaws:
        seen.append((told, rounded))
        return own(*told, rounded=rounded)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded_inversion, "_on_bins", noted)
        laws = noisy_laws(rows, n, secrets, sigma, step, **more)
    return Made(laws, *seen[0])


SIGMAS, SHIFTS = np.array([0.9, 1.4, 0.7]), np.array([0.0, -40.25, 3.5])
# The secrets, in an order of their own, their noise and shift, and the step; the last ones with several points a bin.
WAYS: dict[str, tuple[str, list[int], Any, float, Any]] = {
    "sums": ("sum", [9, 4, 20], SIGMAS, 0.5, SHIFTS),
    "sums of one tilt": ("sum", [11, 10, 9, 8], 1.3, 0.25, None),
    "shares": ("share", [5, 2, 3], SIGMAS, 0.25, SHIFTS),
    "little noise": ("sum", [7, 0, 9], 0.2, 1.0, 0.75),
    "little noise in shares": ("share", [1, 4, 0], 0.11, 2.0, SHIFTS),
    "as many frequencies as bins": ("share", [3], 8.2 / math.pi * (1 + 1e-4) * 0.5, 0.5, None),
}


@pytest.mark.parametrize("unit", [1.0, 0.25])
@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("name", WAYS)
def test_bins_have_the_chances_of_all_tables(name: str, rounded: bool, unit: float) -> None:
    """And slopes are those of their densities, in units of a bin."""
    secret, secrets, sigma, step, shift = WAYS[name]
    listed = LISTED if secret == "sum" else KINDS
    noise, moved = (np.broadcast_to(0.0 if one is None else one, len(secrets)) * unit for one in (sigma, shift))
    given_shift = None if shift is None else moved if np.ndim(shift) else float(moved[0])
    more = {"shift": given_shift, "secret": secret, "rounded": rounded}
    found = made(rows_of(listed, unit), N, secrets, noise if np.ndim(sigma) else float(noise[0]), step * unit, **more)
    laws = found.laws
    assert laws.secrets.tolist() == sorted(secrets)
    assert (laws.step, laws.void, laws.slopes is None) == (step * unit, (), rounded)
    assert laws.probabilities.min() >= 0
    assert laws.largest_eta == max(laws.eta) < 1e-10
    middles = laws.bins * laws.step
    for total, own, away in zip(secrets, noise, moved, strict=True):
        line, exact, slope = place_of(laws, total), np.zeros(len(middles)), np.zeros(len(middles))
        for q, chance in given(listed, N, total).items():
            z = (middles - q * unit - away) / own
            exact += chance * (ndtr(z + laws.step / own / 2) - ndtr(z - laws.step / own / 2))
            slope += chance * -z * np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (laws.step / own) ** 2
        assert np.abs(laws.probabilities[line] - exact).sum() <= laws.eta[line]
        if laws.slopes is not None:
            assert np.abs(laws.slopes.middle[line] - slope).max() < 1e-11
            assert (laws.slopes.bend[line] > 0).all()


def place_of(laws: NoisyLaws, secret: float) -> int:
    return int(np.flatnonzero(laws.secrets == secret)[0])


@pytest.mark.parametrize("name", WAYS)
def test_errors_are_those_of_the_table(name: str) -> None:
    """The window, what lies outside of it, frequencies that are left out, the transform's own error, and floats."""
    secret, secrets, sigma, step, shift = WAYS[name]
    found = made(rows_of(LISTED if secret == "sum" else KINDS), N, secrets, sigma, step, shift=shift, secret=secret)
    laws, (runs, known, noise, moved, width, *_) = found.laws, found.told
    centres = np.concatenate([run.centres for run in runs]) + moved
    below, above = (np.concatenate([run.widths[k] for run in runs]) for k in (0, 1))
    bins = len(laws.bins)
    first, last = math.floor(min(centres - below) / width) - 1, math.ceil(max(centres + above) / width) + 1
    assert laws.bins.tolist() == list(range(first, first + bins))
    assert bins / 2 < last + 1 - first <= bins == 2 ** round(math.log2(bins))
    window = bins * width
    kept = max(1, math.ceil(8.2 * window / (2 * math.pi * min(noise))))
    parts = 1
    while bins * parts < 2 * kept + 2:
        parts *= 2
    u = 2 * math.pi / window * np.arange(kept + 1)
    end = min(noise) * u[-1]
    assert end >= 8.2
    left = 2 * math.exp(-(end**2) / 2) / (min(noise) * u[1] * end)
    assert left >= 2 * np.exp(-((min(noise) * u[1] * np.arange(kept + 1, 4 * kept + 8)) ** 2) / 2).sum()
    transforms = [run.source.at(u) for run in runs]
    values, errors = (np.concatenate([one[k] for one in transforms]) for k in (0, 1))
    twice = np.where(u > 0, 2.0, 1.0)
    for k, total in enumerate(known):
        fading = np.exp(-((noise[k] * u) ** 2) / 2) * np.sinc(u * width / parts / (2 * math.pi))
        sizes = np.abs(values[k]) * fading
        units = u * (16 * window + 4 * (abs(centres[k]) + abs(moved[k]))) + 8 * (noise[k] * u) ** 2 + 32
        wrong = errors[k] * fading + UNIT * units * sizes
        floats = (8 * math.log2(bins * parts) + 16 + parts) * UNIT * (twice * sizes).sum()
        wanted = math.sqrt((twice * wrong**2).sum()) + left + 4e-14 + floats
        assert laws.eta[place_of(laws, total)] == pytest.approx(wanted, rel=1e-7, abs=0)


@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("name", ["sums of one tilt", "shares", "little noise"])
def test_parts_give_what_all_at_once_gives(name: str, rounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, secrets, sigma, step, shift = WAYS[name]
    rows = rows_of(LISTED if secret == "sum" else KINDS)

    def laws() -> NoisyLaws:
        return noisy_laws(rows, N, secrets, sigma, step, shift, secret, rounded=rounded)  # type: ignore[arg-type]

    whole = laws()
    for at_once in (1, 3 * len(whole.bins)):
        monkeypatch.setattr(recorded_inversion, "_AT_ONCE", at_once)
        parts = laws()
        assert np.abs(parts.probabilities - whole.probabilities).max() < 1e-14
        assert parts.eta == pytest.approx(whole.eta, rel=0.1, abs=0)
        if whole.slopes is not None:
            assert parts.slopes is not None
            assert parts.slopes.bend == pytest.approx(whole.slopes.bend, rel=1e-12)


@pytest.mark.parametrize("name", ["shares", "little noise"])
def test_slopes_count_in_the_frequencies_that_are_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In units of a bin, and with the least noise of all secrets; from the last frequency that is kept."""
    secret, secrets, sigma, step, shift = WAYS[name]
    seen = []

    def noted(*told: Any) -> Any:
        seen.append(told)
        return bin_slopes(*told)

    monkeypatch.setattr(recorded_inversion, "bin_slopes", noted)
    rows = rows_of(LISTED if secret == "sum" else KINDS)
    laws = noisy_laws(rows, N, secrets, sigma, step, shift, secret, rounded=False)  # type: ignore[arg-type]
    assert seen
    for _, _, turns, _, bins, left in seen:
        assert bins == len(laws.bins)
        assert turns == pytest.approx(2 * math.pi / bins * np.arange(len(turns)), rel=1e-12)
        beyond = turns[-1] + turns[1] * np.arange(1, 2000)
        truth = 2 * (np.maximum(beyond, beyond**5) * np.exp(-((np.min(sigma) / step * beyond) ** 2) / 2)).sum()
        assert 0 < truth <= left <= 3 * truth


# ------------------------------------------------------------------------------------------------------------ the transforms


def test_products_of_powers_are_off_by_what_their_factors_are() -> None:
    """Each of n factors by d: the sum of d/(|b| + d), times the product of |b| + d; and by floats of logarithms and angles."""
    found = made(rows_of(KINDS), 7, [0, 2, 7], 1.0, 0.5, secret="share")
    (run,) = found.runs
    u = np.array([0.0, 0.1, 0.5, 1.7])
    values, errors = run.source.at(u)
    sides = [Tilt.at(rows_of({key: many for key, many in KINDS.items() if key[0] == kind}), 0.0) for kind in (0, 1)]
    for k, ones in enumerate((0, 2, 7)):
        exact, product, share = np.ones(4, dtype=complex), np.ones(4), np.zeros(4)
        for tilt, many in zip(sides, (7 - ones, ones), strict=True):
            psi = np.exp(1j * u[:, None] * (tilt.rows.q - tilt.centre[1])) @ tilt.weights
            off = UNIT * u * tilt.share_q
            exact, product = exact * psi**many, product * (np.abs(psi) + off) ** many
            share = share + many * off / (np.abs(psi) + off)
        assert run.centres[k] == (7 - ones) * sides[0].centre[1] + ones * sides[1].centre[1]
        assert np.abs(values[k] - exact).max() < 1e-14
        size = np.abs(exact)
        wanted = share * product + UNIT * (16 + 8 * 7 * math.pi - 8 * np.log(size)) * size
        assert errors[k] == pytest.approx(wanted, rel=1e-7, abs=0)


def test_a_quotient_is_off_by_both_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """And an answer is as far out as where the sum has the least chance that it may have."""
    own, chances = recorded_inversion._given_reaches, []

    def noted(inversion: Any, noise: Numbers, chance: Numbers) -> tuple[Numbers, Numbers]:
        chances.append(chance)
        return own(inversion, noise, chance)

    monkeypatch.setattr(recorded_inversion, "_given_reaches", noted)
    monkeypatch.setattr(recorded_frequencies, "UNIT", 1e-12)
    found = made(rows_of(LISTED), 40, [66, 60, 54], 1.0, 0.5)
    (run,) = found.runs
    inversion = run.source.inversion
    assert inversion.sums.tolist() == [54, 60, 66]
    assert run.places.tolist() == [2, 1, 0]
    assert 40 * inversion.tilt.centre[0] == pytest.approx(60, abs=1e-4)
    assert run.centres.tolist() == [40 * inversion.tilt.centre[1]] * 3
    u = np.array([0.0, 0.07, 0.4])
    values, errors = run.source.at(u)
    joint, chance = inversion.joint(u), inversion.joint(np.zeros(1))
    for k in range(3):
        there = chance.values[k, 0].real
        assert there - chances[0][k] == pytest.approx(chance.errors[k, 0], rel=1e-3, abs=0)
        assert values[k] == pytest.approx(joint.values[k] / there, abs=1e-14)
        assert errors[k] == pytest.approx((joint.errors[k] + chance.errors[k, 0]) / there, rel=1e-7, abs=0)


# ------------------------------------------------------------------------------------------------ how far answers may be out

_FAR = -math.log(1e-14)


def test_answers_given_a_sum_are_out_by_chernoff() -> None:
    """At least the best bound over tilts of both columns, and hardly more."""
    n, noise = 40, np.array([1.0, 40.0, 3.0])
    found = made(rows_of(LISTED), n, [54, 60, 64], noise, 0.5)
    (run,) = found.runs
    tilt = run.source.inversion.tilt
    masses = np.zeros(5)
    masses[tilt.values.astype(int)] = tilt.of_value
    law = np.ones(1)
    for _ in range(n):
        law = np.convolve(law, masses)
    s, q = tilt.rows.s - tilt.centre[0], tilt.rows.q - tilt.centre[1]
    for k, total in enumerate((54, 60, 64)):
        for widths, sign in zip(run.widths, (-1, 1), strict=True):

            def bound(at: Numbers, sign: int = sign, total: int = total, k: int = k) -> float:
                lean, mu = math.exp(at[0]), at[1]
                moment = n * math.log(tilt.weights @ np.exp(mu * s + sign * lean * q))
                power = moment + (lean * noise[k]) ** 2 / 2 - mu * (total - n * tilt.centre[0]) - math.log(law[total])
                return float((power + _FAR) / lean)

            best = min(minimize(bound, [start, 0.0], method="Nelder-Mead").fun for start in (-1.0, -2.5))
            assert best * (1 - 1e-6) <= widths[k] <= best * 1.25


def test_answers_given_a_share_are_out_by_chernoff() -> None:
    n, noise = 40, np.array([1.0, 9.0, 3.0])
    found = made(rows_of(KINDS), n, [0, 17, 40], noise, 0.5, secret="share")
    (run,) = found.runs
    for k, ones in enumerate((0, 17, 40)):
        for widths, sign in zip(run.widths, (-1, 1), strict=True):

            def bound(at: Numbers, sign: int = sign, ones: int = ones, k: int = k) -> float:
                lean, power = math.exp(at[0]), _FAR
                for side, many in zip(run.source.sides, (n - ones, ones), strict=True):
                    away = side.tilt.rows.q - side.tilt.centre[1]
                    power += many * math.log(side.tilt.weights @ np.exp(sign * lean * away))
                return float((power + (lean * noise[k]) ** 2 / 2) / lean)

            best = minimize(bound, [-1.0], method="Nelder-Mead").fun
            assert best * (1 - 1e-6) <= widths[k] <= best * 1.03
