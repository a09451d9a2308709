"""Windows of binomial laws and of noise: what they leave out, and what they say of their floats, each by its own formula.

That a bound holds is tested elsewhere. Here it is compared with the same bound from fractions and from mpmath, so that no term
and no factor of it can be lost.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import lattice
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum, discrete_gaussian, discrete_laplace, record_sum
from attrpriv.numerics.laws.lattice_law import SMALLEST
from attrpriv.numerics.laws.records import exactly

UNIT = 2.0**-53


def masses(n: int, p: Fraction) -> list[Fraction]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def beyond(n: int, p: Fraction, start: int, end: int) -> Fraction:
    """What lies outside, by what lies inside: a geometric series from each end that has something behind it."""
    true, found = masses(n, p), Fraction(0)
    if end < n:
        ratio = true[end + 1] / true[end]
        found += true[end] * ratio / (1 - ratio)
    if start > 0:
        ratio = true[start - 1] / true[start]
        found += true[start] * ratio / (1 - ratio)
    return found / sum(true[start : end + 1])


def steps(n: int, p: Fraction, start: int, end: int) -> float:
    """The most steps from the mode to a mass of the window, and their average."""
    mode, true = int((n + 1) * p), masses(n, p)
    whole = sum(true[start : end + 1])
    average = sum(abs(k - mode) * true[k] for k in range(start, end + 1)) / whole
    return max(mode - start, end - mode) + float(average)


@pytest.mark.parametrize(
    ("n", "p"), [(60, 0.3), (40, 0.48), (60, 0.36), (80, 0.02), (80, 0.97), (41, 0.5), (90, Fraction(5, 13)), (9, 0.11)]
)
@pytest.mark.parametrize("tail", [0.0, 1e-9, 1e-3, 0.2])
def test_a_window_says_how_far_it_is_from_its_mode_and_what_is_beyond(n: int, p: float | Fraction, tail: float) -> None:
    """6.1 units for each step, and for their average once more, which the sum is off by; 8 for the division."""
    law, x = binomial_sum(n, p, 0, 0.5, tail=tail), exactly(p)
    out = float(beyond(n, x, law.start, law.end))
    if (law.start, law.end) == (0, n):
        assert law.lost == 0.0
    else:
        assert tail > 0
        assert out <= law.lost <= out * (1 + 1e-9)
        assert 1 - sum(masses(n, x)[law.start : law.end + 1]) <= Fraction(law.lost)
    wanted = steps(n, x, law.start, law.end) * 6.1 * UNIT + 8 * UNIT
    assert wanted * (1 - 1e-9) <= law.error - law.lost * (1 - 1e-12) <= wanted * (1 + 1e-6) + law.lost * 1e-9
    true = masses(n, x)[law.start : law.end + 1]
    assert law.masses == pytest.approx(np.array([float(mass / sum(true)) for mass in true]), rel=1e-13, abs=0)


def test_one_kind_of_rows_and_rows_that_are_alike_are_one_law() -> None:
    """With a tail too it is accurate at each of its values, as no sum of two windows is."""
    for tail in (0.0, 1e-9):
        one = binomial_sum(60, 0.3, 0, 0.6, tail=tail)
        for other in (binomial_sum(0, 0.6, 60, 0.3, tail=tail), binomial_sum(25, 0.3, 35, 0.3, tail=tail)):
            assert math.isfinite(one.error)
            assert other.masses.size == one.masses.size or tail > 0
            assert (other.start, other.end) == pytest.approx((one.start, one.end), abs=2)
            assert other.error == pytest.approx(one.error, rel=0.2)
        two = binomial_sum(100, 0.3, 140, 0.4, tail=tail)
        assert math.isinf(two.error) == (tail > 0)
    # Of two kinds each has half of the tail, whether it has rows or not.
    alike, alone = binomial_sum(25, 0.3, 35, 0.3, tail=1e-9), binomial_sum(60, 0.3, 0, 0.3, tail=2e-9)
    assert (alike.start, alike.lost, alike.masses.tolist()) == (alone.start, alone.lost, alone.masses.tolist())


def test_without_a_tail_a_sum_is_no_transform() -> None:
    whole = binomial_sum(30, 0.4, 20, 0.6, tail=0.0, direct=0)
    assert whole.pointwise
    directly, by_transform = (binomial_sum(30, 0.4, 20, 0.6, tail=1e-15, direct=most) for most in (10**6, 0))
    assert directly.lost < 4e-15
    assert by_transform.lost > 10 * directly.lost


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_rows_of_which_none_or_all_count(p: float) -> None:
    for n in (0, 7):
        law = binomial_sum(n, p, 0, 0.5)
        assert (law.start, law.masses.tolist(), law.error, law.lost) == (n if p else 0, [1.0], 0.0, 0.0)
    nobody = binomial_sum(0, 0.3, 0, 0.5)
    assert (nobody.start, nobody.masses.tolist(), nobody.error, nobody.lost) == (0, [1.0], 0.0, 0.0)


def test_probabilities_next_to_zero_and_one() -> None:
    small = Fraction(1e-290)
    for p in (small, 1 - small):
        law = binomial_sum(1, p, 0, 0.5)
        assert max(law.masses.tolist()) == 1.0
    for p in (small * Fraction(99, 100), 1 - small * Fraction(99, 100), -small, 1 + small):
        with pytest.raises(UsageError, match="binomial"):
            binomial_sum(1, p, 0, 0.5)


@pytest.mark.parametrize(("n", "p"), [(3000, 0.1), (3000, 0.5), (400, 0.001), (400, 0.999)])
def test_no_mass_is_so_small_that_a_float_has_lost_digits(n: int, p: float) -> None:
    """All that is kept is above 2^-1000, and what is left out is little more than that."""
    law = binomial_sum(n, p, 0, 0.5, tail=0.0)
    assert SMALLEST <= float(law.masses.min()) <= SMALLEST * 2.0**60
    assert law.error == math.inf
    assert 0 < law.lost < 1e-11  # of floats; all else is far below
    window = binomial_sum(n, p, 0, 0.5, tail=1e-280)
    assert SMALLEST <= window.lost < 1e-279


def test_series_that_do_not_end() -> None:
    assert lattice._geometric(0.5) == pytest.approx(1.0, rel=1e-14)
    assert lattice._geometric(0.75) == pytest.approx(3.0, rel=1e-14)
    assert lattice._geometric(1.0) == lattice._geometric(2.0) == math.inf


@pytest.mark.parametrize("scale", [0.4, 1.0, 5.5, 33.0])
@pytest.mark.parametrize("tail", [1e-3, 1e-30])
def test_noise_says_what_its_window_leaves_out_and_how_its_floats_are_off(scale: float, tail: float) -> None:
    laplace, gaussian = discrete_laplace(scale, tail=tail), discrete_gaussian(scale, tail=tail)
    last = laplace.end
    assert laplace.start == -last
    wanted = (16 + 4 * last / scale) * UNIT
    assert wanted <= laplace.error <= wanted * (1 + 1e-9)
    last = gaussian.end
    assert gaussian.start == -last
    with mpmath.workdps(60):
        weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(scale) ** 2)) for k in range(last + 2)]
        ratio = weights[last + 1] / weights[last]
        total = weights[0] + 2 * sum(weights[1 : last + 1])
        out = float(2 * weights[last] / total * ratio / (1 - ratio))
    assert out <= gaussian.lost <= out * (1 + 1e-9)
    wanted = (8 * (last / scale) ** 2 / 2 + 16) * UNIT + out
    assert wanted * (1 - 1e-12) <= gaussian.error <= wanted * (1 + 1e-9)


def test_windows_of_noise_are_no_wider_than_they_must_be() -> None:
    """A step less, and more than the tail would be left out; of normal noise two steps, whose bound has room."""
    for scale, tail in ((0.4, 1e-3), (5.5, 1e-9), (33.0, 1e-30), (7.0, 0.5)):
        last = discrete_laplace(scale, tail=tail).end
        out = [2 * math.exp(-(k + 1) / scale) / (1 + math.exp(-1 / scale)) for k in (last, last - 2)]
        assert out[0] <= tail < 2 * math.exp(-(last - 1) / scale)
        assert math.ceil(scale * math.log(2 / tail)) == last
        wide = discrete_gaussian(scale, tail=tail).end
        assert wide == math.ceil(scale * math.sqrt(2 * math.log(4 / tail))) + 1


def test_tails_of_noise_are_below_one_and_above_the_least() -> None:
    for noise in (discrete_laplace, discrete_gaussian):
        assert noise(1.0, tail=1e-280).lost <= 1e-280
        assert noise(1.0, tail=0.999).masses.size > 0
        for tail in (1.0, 1.5, 0.99e-280, 0.0, math.nan):
            with pytest.raises(UsageError, match="tail"):
                noise(1.0, tail=tail)


def test_noise_of_a_single_value() -> None:
    """What is next to 0 is too small for a float to tell, and is lost."""
    for law in (discrete_laplace(0.001, tail=1e-9), discrete_gaussian(0.01, tail=1e-9)):
        assert (law.start, law.masses.tolist()) == (0, [1.0])
        assert SMALLEST <= law.lost < 1e-290
    assert discrete_laplace(1 / 700, tail=1e-9).masses.size == 1
    three = discrete_laplace(1 / 600, tail=1e-9)
    assert three.masses.size == 3
    assert three.masses[0] == pytest.approx(math.exp(-600), rel=1e-12, abs=0)


@pytest.mark.parametrize("tail", [1e-12, 1e-6, 0.01])
@pytest.mark.parametrize(("a", "b"), [(37, 0), (0, 64), (50, 77)])
def test_sums_of_records_lose_no_more_than_their_tail(a: int, b: int, tail: float) -> None:
    values, one, other = (0, 1, 5), (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)
    law = record_sum(values, one, a, other, b, tail=tail)
    whole = record_sum(values, one, a, other, b, tail=0.0)
    assert whole.pointwise
    assert (whole.start, whole.end) == (0, 5 * (a + b))
    inside = whole.masses[law.start - whole.start : law.end - whole.start + 1]
    assert 1 - math.fsum(inside) <= law.lost <= tail * (1 + 1e-6) + 1e-12
    assert float(np.abs(law.masses - inside).sum()) <= law.lost
    assert tail / 1000 < law.lost
    assert law.masses.size < whole.masses.size


def test_a_window_is_cut_at_the_end_that_has_too_much_alone() -> None:
    law = LatticeLaw(3, np.array([0.5, 0.3, 0.1, 0.06, 0.04]), 0.1, 0.0)
    right, left = law.trimmed(0.1), law.mirrored().trimmed(0.1)
    assert (right.start, right.masses.tolist()) == (3, [0.5, 0.3, 0.1, 0.06])
    assert (left.start, left.masses.tolist()) == (-6, [0.06, 0.1, 0.3, 0.5])
    assert right.lost == left.lost == pytest.approx(0.04 * 1.1, rel=1e-12)
    assert law.trimmed(0.07) is law


def test_every_step_of_a_power_may_lose_its_share_of_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    """11 rows are 1, 2, 5 and 11 of them; what s rows lose is lost 11/s times in the end, and there are at most four steps."""
    asked: list[float] = []

    def trimmed(law: LatticeLaw, share: float) -> LatticeLaw:
        asked.append(share)
        return law

    monkeypatch.setattr(LatticeLaw, "trimmed", trimmed)
    record_sum((0, 1), (0.5, 0.5), 11, (0.25, 0.75), 6, tail=0.08)
    part = 0.08 / 4
    steps_of_11, steps_of_6 = [part * s / (2 * 11 * 4) for s in (2, 5, 11)], [part * s / (2 * 6 * 3) for s in (3, 6)]
    assert asked == pytest.approx([*steps_of_11, *steps_of_6, part], rel=1e-12)
    asked.clear()
    record_sum((0, 1), (0.5, 0.5), 11, (0.25, 0.75), 6, tail=0.0)
    assert asked == []
