"""Mixtures of normal laws, piece by piece: directions, units, crossings, cells, and what each of them is charged for."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences import gaussian_mixture
from attrpriv.numerics.divergences.gaussian import gaussian_delta
from attrpriv.numerics.divergences.gaussian_mixture import (
    _by_cells,
    _certain,
    _direction,
    _excess,
    _last_true,
    _one_crossing,
    _Pair,
    _together,
    gaussian_mixture_delta_upper,
)
from attrpriv.numerics.laws.gaussian import GaussianMixture
from attrpriv.numerics.laws.lattice import binomial_sum

Array = NDArray[np.float64]


def law(weights: list[float], means: list[float], variance: float = 1.0, lost: float = 0.0) -> GaussianMixture:
    return GaussianMixture(np.array(weights), np.array(means), variance, lost)


def event(n: int, p: float, sd: float) -> GaussianMixture:
    return GaussianMixture.of(binomial_sum(n, p, 0, p), sd * sd)


def above(one: GaussianMixture, x: float | mpmath.mpf) -> mpmath.mpf:
    """P(F > x) in many digits."""
    sd = mpmath.sqrt(mpmath.mpf(one.variance))
    pairs = zip(one.weights.tolist(), one.means.tolist(), strict=True)
    return mpmath.fsum(mpmath.mpf(w) * mpmath.erfc((x - mpmath.mpf(m)) / sd / mpmath.sqrt(2)) / 2 for w, m in pairs)


def density(one: GaussianMixture, x: mpmath.mpf) -> mpmath.mpf:
    variance = mpmath.mpf(one.variance)
    pairs = zip(one.weights.tolist(), one.means.tolist(), strict=True)
    return mpmath.fsum(
        mpmath.mpf(w) * mpmath.exp(-((x - mpmath.mpf(m)) ** 2) / (2 * variance)) for w, m in pairs
    ) / mpmath.sqrt(2 * mpmath.pi * variance)


# ------------------------------------------------------------------------------------------------------------ directions


@pytest.mark.parametrize(
    ("p", "q", "direction"),
    [
        (event(4, 0.6, 1.0), event(4, 0.4, 1.0), 1),
        (event(4, 0.4, 1.0), event(4, 0.6, 1.0), -1),
        (event(4, 0.4, 1.0), event(4, 0.4, 1.0), 0),
        (law([1.0], [2.0]), law([1.0], [0.0]), 1),
        (law([1.0], [0.0]), law([1.0], [2.0]), -1),
        (law([1.0], [2.0]), law([1.0], [2.0]), 0),
        # Values that only one of the laws has: nothing in between may come back.
        (law([0.5, 0.5], [2.0, 3.0]), law([0.5, 0.5], [0.0, 1.0]), 1),
        (law([0.5, 0.5], [0.0, 1.0]), law([0.3, 0.7], [1.0, 2.0]), -1),
        (law([0.5, 0.5], [0.0, 2.0]), law([1.0], [1.0]), 0),
        (law([1.0], [1.0]), law([0.5, 0.5], [0.0, 2.0]), 0),
        # A value that neither has does not count.
        (law([0.2, 0.0, 0.8], [0.0, 1.0, 2.0]), law([0.6, 0.0, 0.4], [0.0, 1.0, 2.0]), 1),
        (law([0.2, 0.3, 0.5], [0.0, 1.0, 2.0]), law([0.6, 0.1, 0.3], [0.0, 1.0, 2.0]), 0),
        # Two ratios that are equal are neither.
        (law([0.25, 0.25, 0.5], [0.0, 1.0, 2.0]), law([0.375, 0.375, 0.25], [0.0, 1.0, 2.0]), 0),
    ],
)
def test_whether_a_ratio_increases(p: GaussianMixture, q: GaussianMixture, direction: int) -> None:
    assert _direction(p, q) == direction
    assert _direction(q, p) == -direction


def test_weights_at_all_means() -> None:
    means, first, second = _together(law([0.2, 0.8], [1.0, 4.0]), law([0.5, 0.3, 0.2], [-1.0, 1.0, 2.0]))
    assert means.tolist() == [-1.0, 1.0, 2.0, 4.0]
    assert first.tolist() == [0.0, 0.2, 0.0, 0.8]
    assert second.tolist() == [0.5, 0.3, 0.2, 0.0]


# ---------------------------------------------------------------------------------------------------------------- units

P, Q = law([0.2, 0.5, 0.3], [1.0, 2.0, 4.5], 6.25), law([0.6, 0.4], [-3.0, 1.5], 6.25)


@pytest.mark.parametrize("sign", [1, -1])
def test_both_laws_in_standard_deviations_from_the_first_mean(sign: int) -> None:
    pair = _Pair(P, Q, sign)
    assert pair.means[0] == pytest.approx(sign * np.array([0.0, 0.4, 1.4]))
    assert pair.means[1] == pytest.approx(sign * np.array([-1.6, 0.2]))
    ends = sorted((sign * -1.6, sign * 1.4))
    assert (pair.low, pair.high) == pytest.approx((ends[0] - 12, ends[1] + 12))
    assert pair.terms == 5
    with mpmath.workdps(40):
        for x in (-13.0, -2.5, -0.3, 0.9, 7.0):
            place = 1 + sign * mpmath.mpf(x) * 2.5
            truth = mpmath.log(density(P, place) / density(Q, place))
            assert abs(pair.ratio(x) - truth) < 1e-12
            assert abs(pair.ratio(x) - truth) < pair.slack() < 1e-10
            for which, one in ((0, P), (1, Q)):
                tail = above(one, place) if sign > 0 else 1 - above(one, place)
                assert abs(pair.above(which, x) / tail - 1) < 1e-12
                assert tail < pair.above(which, x, 1) < tail * (1 + 1e-11)
                assert tail * (1 - 1e-11) < pair.above(which, x, -1) < tail


def test_the_last_point_at_which_something_holds() -> None:
    assert _last_true(lambda x: x < 0.7, 0.7, 3.0) == -math.inf
    assert _last_true(lambda x: x < 5.0, -1.0, 3.0) == 3.0
    for end in (0.123456789, -0.9, 2.999, 1e-9):
        found = _last_true(lambda x, end=end: x < end, -1.0, 3.0)  # type: ignore[misc]
        assert end - 2e-15 * max(1.0, abs(end)) <= found < end
    far = _last_true(lambda x: x < 4321.5, 1000.0, 9000.0)
    assert 4321.5 - 1e-11 < far < 4321.5


# ------------------------------------------------------------------------------------------------------------ one crossing


def crossing(p: GaussianMixture, q: GaussianMixture, epsilon: float, low: float, high: float) -> mpmath.mpf:
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    for _ in range(130):
        middle = (low + high) / 2
        low, high = (low, middle) if density(p, middle) > mpmath.exp(epsilon) * density(q, middle) else (middle, high)
    return high


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.1])
@pytest.mark.parametrize("sd", [0.5, 1.7])
def test_beyond_one_crossing(epsilon: float, sd: float) -> None:
    """By the point in many digits: never less, and more by some of its rounding only; both ways."""
    p, q = event(3, 0.7, sd), event(3, 0.35, sd)
    with mpmath.workdps(40):
        t = crossing(p, q, epsilon, -10.0, 15.0)
        truth = above(p, t) - mpmath.exp(epsilon) * above(q, t)
        assert truth <= _one_crossing(_Pair(p, q, 1), epsilon) <= truth + 1e-10 * above(p, t)
        low, high = (GaussianMixture(one.weights[::-1], -one.means[::-1], one.variance) for one in (p, q))
        assert truth <= _one_crossing(_Pair(low, high, -1), epsilon) <= truth + 1e-10 * above(p, t)


def test_a_crossing_that_is_nowhere() -> None:
    p = event(3, 0.7, 1.0)
    # The same law at epsilon 0: no sign is certain anywhere, and nothing is known.
    assert _one_crossing(_Pair(p, p, 1), 0.0) == 1.0
    # Above the largest ratio: beyond the last point at which that is certain there is next to nothing.
    assert 0 <= _one_crossing(_Pair(p, event(3, 0.35, 1.0), 1), 2.2) < 1e-30
    # Where it is only just reached the sign is not certain; the excess there is no more than its rounding.
    assert _one_crossing(_Pair(p, event(3, 0.35, 1.0), 1), 3 * math.log(2.0) - 1e-3) < 1e-6


@pytest.mark.parametrize("epsilon", [0.0, 0.9])
def test_mass_that_was_lost_counts_on_both_sides(epsilon: float) -> None:
    weights = ([0.5, 0.4], [0.3, 0.6])
    p, q = (law(weights[k], [0.0, 1.0], 4.0, lost=0.1) for k in (0, 1))
    whole = gaussian_mixture_delta_upper(law(weights[0], [0.0, 1.0], 4.0), law(weights[1], [0.0, 1.0], 4.0), epsilon)
    for first, second, extra in ((p, q, 0.1 + 0.1 * math.exp(epsilon)),):
        assert gaussian_mixture_delta_upper(first, second, epsilon) == pytest.approx(whole + extra, rel=1e-12)
    uneven = gaussian_mixture_delta_upper(
        law(weights[0], [0.0, 1.0], 4.0, lost=0.02), law(weights[1], [0.0, 1.0], 4.0, 0.07), epsilon
    )
    assert uneven == pytest.approx(whole + 0.02 + 0.07 * math.exp(epsilon), rel=1e-12)
    assert gaussian_mixture_delta_upper(law([0.4], [0.0], 1.0, lost=0.6), law([0.4], [0.0], 1.0, lost=0.6), epsilon) == 1.0


def test_an_epsilon_from_0_to_700() -> None:
    p, q = law([1.0], [0.0]), law([1.0], [40.0])
    assert gaussian_mixture_delta_upper(p, q, 700.0) == pytest.approx(gaussian_delta(700.0, 40.0), rel=1e-6)
    for bad in (700.1, -1e-9, math.inf, math.nan):
        with pytest.raises(UsageError, match="epsilon"):
            gaussian_mixture_delta_upper(p, q, bad)


# ------------------------------------------------------------------------------------------------------------------ cells

ONE, OTHER = law([0.4, 0.1, 0.4, 0.1], [0.0, 1.0, 2.0, 3.5], 0.36), law([0.1, 0.5, 0.1, 0.3], [0.0, 1.0, 2.5, 3.0], 0.36)


def exactly(p: GaussianMixture, q: GaussianMixture, factor: float, low: Array, high: Array) -> float:
    """P - e^eps Q between each two points, given in standard deviations from the first mean of P, summed."""
    held = []
    for one in (p, q):
        sd = math.sqrt(one.variance)
        ends = [ndtr((end[:, None] * sd + p.means[0] - one.means) / sd) for end in (low, high)]
        held.append(float(((ends[1] - ends[0]) @ one.weights).sum()))
    return held[0] - factor * held[1]


def by_hand(p: GaussianMixture, q: GaussianMixture, epsilon: float, rounds: int) -> float:
    """The way of cells, each by itself: it is added, left out or cut into 16; after the last round, bounded."""
    factor = math.exp(epsilon)
    pair = _Pair(p, q, 1)
    count = math.ceil((pair.high - pair.low) * 16)
    width = (pair.high - pair.low) / count
    starts = pair.low + np.arange(count, dtype=np.float64) * width
    total = 0.0
    for step in range(rounds + 1):
        value, change = _excess(p, q, pair, factor, starts + width / 2, width / 2)
        certain = value > change * width / 2
        total += exactly(p, q, factor, starts[certain], starts[certain] + width)
        left = ~certain & (value >= -change * width / 2)
        if step == rounds:
            total += float((width * (np.maximum(0.0, value) + change * width / 2))[left].sum())
        width /= 16
        starts = np.add.outer(starts[left], np.arange(16, dtype=np.float64) * width).ravel()
    return total


@pytest.mark.parametrize(("rounds", "epsilon"), [(0, 0.0), (0, 0.7), (1, 0.2), (2, 0.7)])
def test_cells_one_by_one(monkeypatch: pytest.MonkeyPatch, rounds: int, epsilon: float) -> None:
    monkeypatch.setattr(gaussian_mixture, "_ROUNDS", rounds)
    for p, q in ((ONE, OTHER), (OTHER, ONE)):
        wanted = by_hand(p, q, epsilon, rounds)
        assert wanted - 1e-13 <= _by_cells(p, q, epsilon) <= wanted * (1 + 3e-9) + 1e-11


def test_cells_are_cut_no_finer_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terms times cells: too many at first are refused, too many later are bounded as they are."""
    p, q = (law([1.0], [mean]) for mean in (0.0, 0.02))
    pair = _Pair(p, q, 1)
    count = math.ceil((pair.high - pair.low) * 16)
    monkeypatch.setattr(gaussian_mixture, "_LARGEST", count * 2 - 1)
    with pytest.raises(UsageError, match="too many"):
        _by_cells(p, q, 0.0)
    half = (pair.high - pair.low) / count / 2
    value, change = _excess(p, q, pair, 1.0, pair.low + half * (2 * np.arange(count, dtype=np.float64) + 1), half)
    unsure = int((np.abs(value) <= change * half).sum())
    assert unsure * 16 > count
    coarse, finer = by_hand(p, q, 0.0, 0), by_hand(p, q, 0.0, 1)
    assert coarse > finer * 1.001
    monkeypatch.setattr(gaussian_mixture, "_ROUNDS", 1)
    for largest, wanted in ((unsure * 16 * 2, finer), (unsure * 16 * 2 - 1, coarse)):
        monkeypatch.setattr(gaussian_mixture, "_LARGEST", largest)
        assert _by_cells(p, q, 0.0) == pytest.approx(wanted, rel=1e-8)


def test_certain_cells_that_touch_are_taken_together() -> None:
    """Three, one and two of them, with gaps of one cell and of many; each is a difference of distribution functions."""
    pair, factor, half = _Pair(ONE, OTHER, 1), math.exp(0.3), 0.05
    centres = np.array([-0.4, -0.3, -0.2, 0.0, 2.0, 2.1])
    wanted = exactly(ONE, OTHER, factor, centres - half, centres + half)
    found = _certain(pair, factor, centres, half)
    assert wanted <= found <= wanted + 1e-11
    # What each of the three runs is charged for.
    assert found - wanted >= 3 * 4 * (1 + factor) * (pair.terms + 500) * 2.0**-53
    assert _certain(pair, factor, np.array([]), half) == 0.0
    one = exactly(ONE, OTHER, factor, np.array([1.95]), np.array([2.05]))
    assert one <= _certain(pair, factor, np.array([2.0]), half) <= one + 1e-11


def test_a_difference_and_its_change_in_other_units() -> None:
    """Laws that lie away from 0 and have a variance: the same as the laws moved and scaled."""
    p, q = law([0.7, 0.3], [0.0, 2.0]), law([0.2, 0.8], [1.0, 2.0])
    moved = [law(one.weights.tolist(), (one.means * 2.5 + 40).tolist(), 6.25) for one in (p, q)]
    centres = np.linspace(-4, 5, 37)
    plain = _excess(p, q, _Pair(p, q, 1), 1.3, centres, 0.05)
    scaled = _excess(moved[0], moved[1], _Pair(moved[0], moved[1], 1), 1.3, centres, 0.05)
    assert scaled[0] == pytest.approx(plain[0], rel=1e-9, abs=1e-15)
    assert scaled[1] == pytest.approx(plain[1], rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("half", [0.004, 0.03, 0.5])
def test_the_change_of_a_difference_bell_by_bell(half: float) -> None:
    """Each bell by the most its slope can be in the cell, with coefficients that are subtracted where means coincide."""
    p, q, factor = law([0.7, 0.3], [0.0, 2.0]), law([0.2, 0.8], [1.0, 2.0]), 1.3
    net = np.array([0.7, -1.3 * 0.2, 0.3 - 1.3 * 0.8]) / math.sqrt(2 * math.pi)
    centres = np.linspace(-4, 5, 37)
    away = np.abs(centres[:, None] - np.array([0.0, 1.0, 2.0]))
    value, change = _excess(p, q, _Pair(p, q, 1), factor, centres, half)
    assert value == pytest.approx(np.exp(-(away**2) / 2) @ net, rel=1e-11, abs=1e-15)
    wanted = ((away + half) * np.exp(-(np.maximum(away - half, 0) ** 2) / 2)) @ np.abs(net)
    assert (change >= wanted).all()
    assert (change <= wanted * (1 + 2e-9) + 1e-13 / half).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_between_two_points_that_are_certain(monkeypatch: pytest.MonkeyPatch, epsilon: float) -> None:
    """Where a ratio is known to 0.05 only: all of the first law beyond the nearer point, times what the ratio may exceed."""
    monkeypatch.setattr(_Pair, "slack", lambda self: 0.05)
    p, q = event(3, 0.7, 0.8), event(3, 0.35, 0.8)
    near, far = (crossing(p, q, epsilon + off, -10.0, 15.0) for off in (-0.05, 0.05))
    certain = above(p, far) - mpmath.exp(epsilon) * above(q, far)
    wanted = float(certain - above(p, near) * mpmath.expm1(-0.1))
    assert _one_crossing(_Pair(p, q, 1), epsilon) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_tail_counts_what_the_rounding_of_means_may_hide(sign: int) -> None:
    """Of laws that are far apart: a mean is known up to some units of the whole range."""
    p, q = law([0.4, 0.6], [0.0, 1.0]), law([1.0], [1e7 * sign])
    pair = _Pair(p, q, sign)
    assert pair.shift > 1e-9
    for x in (-2.0, 0.5, 3.0):
        assert pair.above(0, x + pair.shift / 2) < pair.above(0, x) < pair.above(0, x - pair.shift / 2)
        assert pair.above(0, x - pair.shift / 2) < pair.above(0, x, 1) < pair.above(0, x - 2 * pair.shift)
        assert pair.above(0, x + pair.shift / 2) > pair.above(0, x, -1) > pair.above(0, x + 2 * pair.shift)


def test_beyond_a_crossing_the_first_law_is_rounded_up_and_the_second_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """With sides of a hundredth each."""
    right = _Pair.above
    monkeypatch.setattr(_Pair, "slack", lambda self: 0.05)
    monkeypatch.setattr(_Pair, "above", lambda self, which, x, side=0: right(self, which, x) * (1 + side / 100))
    p, q = event(3, 0.7, 0.8), event(3, 0.35, 0.8)
    near, far = (crossing(p, q, 0.4 + off, -10.0, 15.0) for off in (-0.05, 0.05))
    certain = above(p, far) * 1.01 - mpmath.exp(0.4) * above(q, far) * 0.99
    wanted = float(certain - above(p, near) * 1.01 * mpmath.expm1(-0.1))
    assert _one_crossing(_Pair(p, q, 1), 0.4) == pytest.approx(wanted, rel=1e-9)
