"""A kernel over bins, made by hand: where mass goes, what is lost, and how far answers are moved."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration import recorded_kernel as module
from attrpriv.numerics.calibration.recorded_kernel import RecordedKernel, drawn_delta, kernel_for
from attrpriv.numerics.calibration.recorded_members import RecordedLaw, SecretRange
from attrpriv.numerics.laws.recorded_inversion import NoisyLaws

# Bins 5, 6 and 7, in units of an eighth; what is drawn has the law of secret 4.
KERNEL = RecordedKernel(np.array([1, 4, 6]), 5, np.array([[4, 2, 2], [1, 5, 2], [2, 2, 4]]), 1)


def noisy(bins: list[int], laws: list[list[float]], secrets: list[int], eta: float) -> NoisyLaws:
    return NoisyLaws(np.array(secrets), np.array(bins), 0.25, np.array(laws), np.full(len(secrets), eta), ())


def twin(source: list[int], law: dict[int, Fraction]) -> list[Fraction]:
    """Each bin's mass spread evenly over its part of the chance, which is cut where the target's parts end."""
    target, drawn = [1, 5, 2], [Fraction(0)] * 3
    for cell, mass in law.items():
        low, high = sum(source[:cell]), sum(source[: cell + 1])
        for to in range(3):
            inside = min(high, sum(target[: to + 1])) - max(low, sum(target[:to]))
            drawn[to] += mass * Fraction(max(0, inside), high - low)
    return drawn


def test_mass_goes_where_chances_lie_over_each_other() -> None:
    """Bins beyond the first and the last one of the kernel count as these; a secret that it does not know as the nearest."""
    laws = noisy([3, 4, 5, 6, 7, 8], [[0.125, 0.125, 0.25, 0.125, 0.25, 0.125], [0.0, 0.0, 0.5, 0.25, 0.0, 0.25]], [0, 7], 0.0)
    moved = KERNEL.moved(laws)
    first = twin([4, 2, 2], {0: Fraction(1, 2), 1: Fraction(1, 8), 2: Fraction(3, 8)})
    second = twin([2, 2, 4], {0: Fraction(1, 2), 1: Fraction(1, 4), 2: Fraction(1, 4)})
    assert moved.probabilities == pytest.approx(np.array([first, second], dtype=float), abs=1e-15)
    assert moved.bins.tolist() == [5, 6, 7]
    assert (moved.step, moved.secrets.tolist()) == (0.25, [0, 7])


def test_what_rounding_may_have_lost_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen units a bin of the kernel, one a bin of the law."""
    monkeypatch.setattr(module, "UNIT", 2.0**-10)
    moved = KERNEL.moved(noisy([4, 5, 6, 7], [[0.25] * 4], [4], 0.125))
    assert moved.largest_eta == pytest.approx(0.125 + 2.0**-10 * (16 * 3 + 4), rel=1e-9)
    assert moved.largest_eta >= 0.125 + 2.0**-10 * (16 * 3 + 4)


def test_the_target_itself_stays_where_it_is() -> None:
    moved = KERNEL.moved(noisy([5, 6, 7], [[0.125, 0.625, 0.25]], [4], 0.0))
    assert moved.probabilities[0] == pytest.approx([0.125, 0.625, 0.25], abs=1e-15)


@pytest.mark.parametrize(("secret", "place"), [(-3, 0), (1, 0), (2, 0), (3, 1), (4, 1), (6, 2), (90, 2)])
def test_a_secret_has_its_own_masses_or_the_nearest_ones(secret: int, place: int) -> None:
    assert KERNEL.place(secret) == place


@pytest.mark.parametrize(("number", "cell"), [(-9, 0), (4, 0), (5, 0), (6, 1), (7, 2), (8, 2), (99, 2)])
def test_a_bin_beyond_the_ends_is_the_one_at_the_end(number: int, cell: int) -> None:
    assert KERNEL.cell(number) == cell


def test_answers_are_moved_by_whole_bins() -> None:
    """At the middles of eight equal parts: the target's bins less the secret's."""
    source, target = [5, 5, 5, 5, 6, 6, 7, 7], [5, 6, 6, 6, 6, 6, 7, 7]
    found = KERNEL.displacements([0, 1], 8)
    assert found.tolist() == [[b - a for a, b in zip(source, target, strict=True)], [0] * 8]
    assert KERNEL.displacements([2], 4).tolist() == [[1 - 0, 1 - 1, 1 - 2, 2 - 2]]


COINS = RecordedLaw(s=(0, 0, 1, 1), q=(0, 1, 1, 2), counts=(3, 3, 1, 1))
RANGE = SecretRange(kind="sum", low=2, high=9, apart=4)


def test_what_is_drawn_has_the_law_of_the_likeliest_secret() -> None:
    """The number of rows times the mean of the hidden column, a quarter."""
    kernel = kernel_for(COINS, 20, tuple(range(2, 10)), RANGE, 0.5, 0.0)
    assert kernel.secrets.tolist() == list(range(2, 10))
    assert kernel.secrets[kernel.reference] == 5
    assert (kernel.masses >= 1).all()
    assert set(kernel.masses.sum(axis=1).tolist()) == {2**46 + kernel.masses.shape[1]}


def test_one_secret_alone_is_told_from_no_other() -> None:
    kernel = kernel_for(COINS, 20, (4, 5, 6), RANGE, 0.5, 0.0)
    assert drawn_delta(kernel, COINS, 20, (5,), RANGE, 0.5, 0.0, 0.1) == (0.0, ())
    assert 0 < drawn_delta(kernel, COINS, 20, (5, 8), RANGE, 0.5, 0.0, 0.01)[0] < 0.5


@pytest.mark.parametrize("wrong", [0, 1])
def test_laws_that_do_not_add_up_make_no_kernel(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them is enough."""
    laws = [[0.5, 0.25, 0.25, 0.0] if k != wrong else [0.75] * 4 for k in range(2)]
    monkeypatch.setattr(module, "noisy_laws", lambda *_: noisy([0, 1, 2, 3], laws, [4, 5], 0.0))
    with pytest.raises(UsageError):
        kernel_for(COINS, 20, (4, 5), RANGE, 0.5, 0.0)


def test_no_mass_is_nothing_and_the_largest_takes_what_rounding_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bin that a secret cannot have has one unit; all masses together are as many for each secret."""
    laws = [[0.5, 0.3, 0.2, 0.0], [0.0, 0.25, 0.25, 0.5]]
    monkeypatch.setattr(module, "noisy_laws", lambda *_: noisy([0, 1, 2, 3], laws, [4, 5], 0.0))
    masses = kernel_for(COINS, 20, (4, 5), RANGE, 0.5, 0.0).masses.tolist()
    assert masses[0][1:] == [round(0.3 * 2**46) + 1, round(0.2 * 2**46) + 1, 1]
    assert masses[1][:3] == [1, 2**44 + 1, 2**44 + 1]
    assert [sum(line) for line in masses] == [2**46 + 4] * 2
