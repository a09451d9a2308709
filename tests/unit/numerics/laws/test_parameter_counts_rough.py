"""The laws of a count given a parameter, made of parts with errors that can be seen: each is counted, and counted once.

Laws of single states are accurate to a few floats, so that no test could see what becomes of their errors. Here they say that
they are off by hundredths, and have lost as much.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import parameter_counts as module
from attrpriv.numerics.laws.binomial import LogTails
from attrpriv.numerics.laws.lattice import LatticeLaw
from attrpriv.numerics.laws.parameter_counts import MOST_ROWS, ParameterCounts

N = 5
POINTS = ((0.3, 0.3), (0.5, 0.5), (0.8, 0.8))
# The sums are off by what a sum may be off by.
WEIGHTS = ((0.25, 0.75 + 8e-10, 0.0), (0.5, 0.3, 0.2), (0.0, 0.0, 1 - 7e-10))


def law(start: int, masses: list[float], error: float, lost: float) -> LatticeLaw:
    return LatticeLaw(start, np.array(masses), error, lost)


PARTS = {
    Fraction(0.3): law(1, [0.2, 0.3, 0.4], 0.02, 0.1),
    Fraction(0.5): law(0, [0.5, 0.35], 0.03, 0.04),
    Fraction(0.8): law(3, [0.1, 0.2, 0.6], 0.01, 0.07),
}
WHOLE = {
    Fraction(0.3): law(0, [0.1, 0.2, 0.3, 0.4], 0.02, 0.0),
    Fraction(0.5): law(0, [0.5, 0.5], 0.03, 0.0),
    Fraction(0.8): law(3, [0.1, 0.3, 0.6], 0.01, 0.0),
}


def array(part: LatticeLaw) -> np.ndarray:
    found = np.zeros(N + 1)
    found[part.start : part.end + 1] = part.masses
    return found


def mixed(parts: dict[Fraction, LatticeLaw], row: tuple[float, ...]) -> np.ndarray:
    return np.asarray(np.array(row) @ np.array([array(part) for part in parts.values()]) / math.fsum(row))


def shown(name: str, parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for cached in (module._laws, module._whole, module._tails):
        cached.cache_clear()

    def asked(n: int, p: Fraction, others: int = 0, q: float = 0.0, **_: float) -> Any:
        assert (n, others, q) == (N, 0, 0.0)
        return parts[p]

    monkeypatch.setattr(module, name, asked)


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    """What was made of such parts is not remembered."""
    yield
    for cached in (module._laws, module._whole, module._tails):
        cached.cache_clear()


def counts(error: float) -> ParameterCounts:
    return ParameterCounts(N, POINTS, WEIGHTS, error)


ERRORS = [0.0, 0.02]


def share(error: float) -> float:
    return (1 + error) / (1 - error)


@pytest.mark.parametrize("error", ERRORS)
def test_a_whole_law_is_as_wrong_as_its_worst_part_and_as_its_weights_together(
    error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown("binomial_sum", PARTS, monkeypatch)
    for found, row in zip(counts(error).whole(), WEIGHTS, strict=True):
        used = [(part, w / math.fsum(row)) for part, w in zip(PARTS.values(), row, strict=True) if w > 0]
        assert found.start == 0
        assert found.masses == pytest.approx(mixed(PARTS, row), rel=1e-14, abs=1e-300)
        off = (1 + max(part.error for part, _ in used)) * share(error) - 1
        assert off <= found.error <= off + 1e-12
        lost = sum(w * part.lost for part, w in used) * share(error)
        assert lost * (1 - 1e-15) <= found.floor <= lost * (1 + 1e-12)


def test_what_underflows_is_charged_for_every_mass_of_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    shown("binomial_sum", WHOLE, monkeypatch)
    for found in counts(0.0).whole():
        assert 3 * 6 * 2.0**-1000 <= found.floor <= 3 * 6 * 2.0**-1000 * (1 + 1e-12)


@pytest.mark.parametrize("error", ERRORS)
def test_a_law_is_opened_by_its_weights(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    shown("binomial_sum", WHOLE, monkeypatch)
    for found, row in zip(counts(error).laws(0.0), WEIGHTS, strict=True):
        used = [part.error for part, w in zip(WHOLE.values(), row, strict=True) if w > 0]
        off = (1 + max(used)) * share(error) - 1
        assert off <= found.error <= off + 1e-12
        assert found.lost == 0.0
        inside = mixed(WHOLE, row)[found.start : found.end + 1]
        assert found.masses == pytest.approx(inside, rel=1e-14, abs=1e-300)


@pytest.mark.parametrize("spread", [0.05, 0.2])
def test_opened_laws(spread: float) -> None:
    near = module._opened(law(2, [0.5, 0.4], 0.1, 0.05), spread)
    assert (near.start, near.masses.tolist()) == (2, [0.5, 0.4])
    assert near.error == pytest.approx(1.1 * (1 + spread) - 1, rel=1e-12)
    assert near.lost == pytest.approx(0.05 * (1 + spread), rel=1e-12)
    total = module._opened(law(2, [0.5, 0.4], math.inf, 0.05), spread)
    assert total.error == math.inf
    assert total.lost == pytest.approx(0.05 * (1 + spread) + spread, rel=1e-12)


def tails(below: list[float], above: list[float], error: float) -> LogTails:
    return LogTails(N, np.array(below), np.array(above), error)


TAILS = {
    Fraction(0.3): tails([-7, -5, -4, -3, -1, 0.0], [-1, -2, -3, -4, -5, -math.inf], 0.02),
    Fraction(0.5): tails([-6, -4, -3, -2, -1, 0.0], [-2, -3, -4, -5, -6, -math.inf], 0.05),
    Fraction(0.8): tails([-9, -8, -7, -2, -1, 0.0], [-0.5, -1, -2, -4, -7, -math.inf], 0.01),
}


@pytest.mark.parametrize("error", ERRORS)
def test_tails_are_as_wrong_as_their_worst_part_and_as_their_weights_together(
    error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mass that is off by a share is at least 1 less that share, of which this is the logarithm."""
    shown("binomial_tails", TAILS, monkeypatch)
    for found, row in zip(counts(error).tails(), WEIGHTS, strict=True):
        used = [(part, w / math.fsum(row)) for part, w in zip(TAILS.values(), row, strict=True) if w > 0]
        off = max(part.error for part, _ in used) - math.log(1 - (share(error) - 1))
        assert off <= found.error <= off + 1e-12
        for name in ("log_below", "log_above"):
            wanted = sum(w * np.exp(getattr(part, name)) for part, w in used)
            assert np.exp(getattr(found, name)) == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("side", [0, 1])
def test_rounding_of_tails_grows_with_the_largest_logarithm(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """16 units of it for each of the parts, and once more; 2 more for what is near 0."""
    far, near = [-3e9, -5.0, -4.0, -3.0, -1.0, 0.0], [-1.0, -2.0, -3.0, -4.0, -5.0, -math.inf]
    part = tails(far, near, 0.0) if side == 0 else tails([*near[:5], 0.0], [*far[:5], -math.inf], 0.0)
    shown("binomial_tails", dict.fromkeys(TAILS, part), monkeypatch)
    found = ParameterCounts(N, POINTS, ((0.25, 0.25, 0.5), (1.0, 0.0, 0.0)), 0.0).tails()
    for one, used in zip(found, (3, 1), strict=True):
        assert one.error == pytest.approx(16 * (used + 1) * 3e9 * 2.0**-53, rel=1e-6)


@pytest.mark.parametrize("error", [0.0, 1e-3, 0.01])
def test_intervals_and_weights_are_open_together(error: float) -> None:
    told = ParameterCounts(3, ((0.3, 0.303), (0.5, 0.5)), ((0.5, 0.5), (0.1, 0.9)), error)
    drift = (max(0.303 / 0.3, 0.7 / 0.697)) ** 3
    wanted = drift * share(error) - 1
    assert wanted * (1 - 1e-12) <= told.spread <= wanted * (1 + 1e-7)
    other = ParameterCounts(3, ((0.7, 0.703), (0.5, 0.5)), ((0.5, 0.5), (0.1, 0.9)), error)
    assert other.spread == pytest.approx((0.3 / 0.297) ** 3 * share(error) - 1, rel=1e-7)


def test_an_interval_that_says_nothing_has_no_end() -> None:
    """From n log(1 + x) = 1 on."""
    assert module._drift(10, (0.5, 0.54)) == pytest.approx((0.5 / 0.46) ** 10 - 1, rel=1e-7)
    assert module._drift(10, (0.1, 0.1105)) == pytest.approx(1.105**10 - 1, rel=1e-7)
    assert module._drift(10, (0.1, 0.1106)) == math.inf
    assert module._drift(10, (0.1, 0.1)) == 0.0


def test_as_many_rows_as_are_taken_and_numbers_that_are_certain() -> None:
    for n in (1, MOST_ROWS):
        assert ParameterCounts(n, ((0.0, 0.0), (1.0, 1.0)), ((0.5, 0.5), (0.1, 0.9)), 0.0).reach == n
    least = ParameterCounts(2, ((1e-290, 1e-290), (0.5, 0.5)), ((0.5, 0.5), (0.1, 0.9)), 0.0)
    assert least.laws(0.0)[0].masses == pytest.approx([0.5 + 0.125, 0.25, 0.125], rel=1e-12)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_tails_of_a_state_in_which_all_rows_are_alike(p: float) -> None:
    found = module._state_tails(3, p)
    assert found.error == 0.0
    assert found.n == 3
    assert np.exp(found.log_below).tolist() == ([1.0] * 4 if p == 0 else [0.0, 0.0, 0.0, 1.0])
    assert np.exp(found.log_above).tolist() == ([0.0] * 4 if p == 0 else [1.0, 1.0, 1.0, 0.0])


def test_tails_of_states_in_which_all_rows_are_alike_are_rounded_least() -> None:
    """16 units of 2 for the one part, and once more: no logarithm is larger than 0."""
    sure = ParameterCounts(N, ((0.0, 0.0), (1.0, 1.0)), ((1.0, 0.0), (0.0, 1.0)), 0.0)
    for found in sure.tails():
        assert found.error == pytest.approx(64 * 2.0**-53, rel=1e-9)


def test_fixed_masses_are_divided_by_the_sum_of_their_weights() -> None:
    """A sum that is off by 8e-10 would be seen from 31 bits on."""
    bits = 90
    for row, weights in zip(ParameterCounts(N, POINTS, WEIGHTS, 0.0).fixed(bits), WEIGHTS, strict=True):
        total = sum(map(Fraction, weights))
        for k, found in enumerate(row):
            mass = sum(
                Fraction(w) / total * math.comb(N, k) * Fraction(p) ** k * (1 - Fraction(p)) ** (N - k)
                for w, (p, _) in zip(weights, POINTS, strict=True)
            )
            assert 0 <= mass * 2**bits - found < 2


def test_every_row_of_weights_has_one_for_each_state() -> None:
    for weights in (((0.5, 0.5), (0.2, 0.3, 0.5)), ((0.2, 0.3, 0.5), (0.5, 0.5)), ((0.2, 0.3, 0.5), (0.2, 0.3, 0.5, 0.0))):
        with pytest.raises(UsageError, match="weights"):
            ParameterCounts(N, POINTS, weights, 0.0)
