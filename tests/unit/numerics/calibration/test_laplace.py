"""Laplace noise on counts and histograms: the numbers of the paper's examples, ends of the range, and what must be refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.laplace import Law, histogram_loss, laplace_loss, least_histogram_scale, least_laplace_scale
from attrpriv.numerics.laws.records import RecordLaws

event = RecordLaws.event
NARROW, WIDE = event((0.4, 0.6), (0.4, 0.6)), event((0.3, 0.7), (0.3, 0.7))
POINT = tuple[tuple[float, float], ...]


def point(*masses: float) -> POINT:
    return tuple((mass, mass) for mass in masses)


# ---------------------------------------------------------------------------------------------------------------- events


@pytest.mark.parametrize(
    ("records", "scales"),
    [(event(0.4, 0.6), (1.548642, 0.686929, 0.0)), (NARROW, (1.548642, 0.686929, 0.0)), (WIDE, (3.177987, 1.555103, 0.701668))],
)
def test_the_first_example(records: RecordLaws, scales: tuple[float, ...]) -> None:
    """n = 4, all pairs. The Wasserstein mechanism would use 2, 1 and .5 for the narrow box, twice as much for the wide one."""
    for epsilon, scale in zip((0.5, 1.0, 2.0), scales, strict=True):
        found = least_laplace_scale([records], 4, epsilon)
        assert found == pytest.approx(scale, abs=1e-6)
        assert laplace_loss(records, 4, found).upper <= epsilon
        if found > 0:
            assert laplace_loss(records, 4, found * (1 - 1e-9)).lower > epsilon * (1 - 1e-8)


def test_exact_release_from_this_epsilon_on() -> None:
    loss = laplace_loss(NARROW, 4, 0.0)
    assert loss.lower <= 4 * math.log(1.5) <= loss.upper
    assert round(loss.upper, 6) == 1.621860
    assert least_laplace_scale([NARROW], 4, 1.621861) == 0.0
    assert least_laplace_scale([NARROW], 4, 1.62186) > 0.0


def test_several_boxes_need_what_the_worst_one_needs() -> None:
    assert least_laplace_scale([NARROW, WIDE], 4, 1.0) == least_laplace_scale([WIDE], 4, 1.0)


def test_the_corners_of_the_box_and_not_its_hull() -> None:
    """Two boxes that overlap: the hull (.3, .7) is not in Theta, the corners are (.3, .6) and (.5, .4)."""
    loss = laplace_loss(event((0.3, 0.5), (0.4, 0.6)), 2, 0.0)
    assert loss.upper == pytest.approx(2 * math.log(2), rel=1e-12)
    assert loss.lower == pytest.approx(2 * math.log(2), rel=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.05, 0.7, 10.0, 1e6])
@pytest.mark.parametrize(("p1", "p0"), [(0.4, 0.6), (1e-9, 1e-3), (0.999, 0.3), (1e-12, 2e-12), (0.5, 0.5 + 1e-9)])
def test_against_many_digits(p1: float, p0: float, scale: float) -> None:
    with mpmath.workdps(60):
        u = mpmath.exp(-1 / mpmath.mpf(scale)) if scale else mpmath.mpf(0)
        a, b = mpmath.mpf(p1), mpmath.mpf(p0)
        high, low = (a + (1 - a) * u) / (b + (1 - b) * u), (1 - a + a * u) / (1 - b + b * u)
        truth = 1000 * max(abs(mpmath.log(high)), abs(mpmath.log(low)))
        loss = laplace_loss(event(p1, p0), 1000, scale)
        assert loss.lower <= truth <= loss.upper
        assert loss.upper - loss.lower <= 1e-9 + 1e-12 * float(truth)


def test_supports_that_differ() -> None:
    assert laplace_loss(event(0.0, 0.5), 1, 0.0).lower == math.inf
    assert laplace_loss(event((0.0, 0.1), (0.0, 0.1)), 1, 0.0).upper == math.inf
    assert laplace_loss(event(1.0, 0.0), 3, 2.0).upper == pytest.approx(1.5)  # the count is the secret itself
    assert least_laplace_scale([event(1.0, 0.0)], 3, 1.5) == pytest.approx(2.0)
    assert laplace_loss(event(0.0, 0.0), 1, 0.0).upper == 0.0
    assert laplace_loss(event(0.3, 0.3), 5, 0.0).upper == 0.0


def test_a_tiny_scale_overflows_nothing() -> None:
    for scale in (1e-3, 1e-9, 1e-300, 5e-324):
        assert laplace_loss(event(0.4, 0.6), 4, scale).upper == pytest.approx(4 * math.log(1.5))
    assert laplace_loss(event(0.0, 0.5), 4, 1e-3).upper == pytest.approx(4 * (1000 - math.log(2)), rel=1e-12)


def test_many_rows() -> None:
    scale = least_laplace_scale([event(0.499, 0.501)], 10**6, 1.0)
    assert laplace_loss(event(0.499, 0.501), 10**6, scale).upper <= 1.0
    assert scale == pytest.approx(2000, rel=1e-3)


# --------------------------------------------------------------------------------------------------------- whole numbers


def test_whole_numbers_between_their_tails_and_their_bound() -> None:
    records = RecordLaws((0, 1, 5), point(0.2, 0.5, 0.3), point(0.3, 0.4, 0.3))
    loss = laplace_loss(records, 3, 2.0)
    assert 0 < loss.lower <= loss.upper <= 3 * 5 / 2.0


def test_an_event_with_other_values_is_the_same_event() -> None:
    """Values 0 and 5 at scale 5: the event at scale 1."""
    stretched = RecordLaws((0, 5), point(0.6, 0.4), point(0.4, 0.6))
    assert laplace_loss(stretched, 4, 5.0).upper == pytest.approx(laplace_loss(event(0.4, 0.6), 4, 1.0).upper, rel=1e-12)


def test_only_the_values_matter_as_outputs() -> None:
    """Outputs between the values are never worse."""
    member, rest, values = (0.2, 0.5, 0.3), (0.45, 0.1, 0.45), (0, 4, 11)
    for scale in (0.3, 1.0, 5.0, 40.0):
        losses = [
            abs(math.log(math.fsum(p * math.exp(-abs(o - y) / scale) for p, y in zip(member, values, strict=True))
                / math.fsum(p * math.exp(-abs(o - y) / scale) for p, y in zip(rest, values, strict=True))))
            for o in range(-3, 15)
        ]  # fmt: skip
        assert max(losses) == pytest.approx(laplace_loss(RecordLaws(values, point(*member), point(*rest)), 1, scale).upper)


def test_a_larger_scale_is_more_noise_on_a_smaller_one() -> None:
    """DLap(s') = DLap(s) convolved with p at 0 and (1 - p) DLap(s')."""
    for u, v in itertools.pairwise([Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)]):
        share = u / v * ((1 - v) / (1 - u)) ** 2
        assert 0 <= share <= 1
        reach = 500
        small, large = ([float((1 - x) / (1 + x)) * float(x) ** abs(k) for k in range(-reach, reach + 1)] for x in (u, v))
        extra = (1 - float(share)) * np.array(large)
        extra[reach] += float(share)
        assert np.convolve(small, extra)[2 * reach - 50 : 2 * reach + 51] == pytest.approx(
            large[reach - 50 : reach + 51], abs=1e-14
        )


# ------------------------------------------------------------------------------------------------------------ histograms


def test_two_cells_are_an_event_at_half_the_scale() -> None:
    """One row moves two counts."""
    loss = histogram_loss(point(0.4, 0.6), point(0.6, 0.4), 4, 2.0)
    assert loss.upper == pytest.approx(laplace_loss(event(0.4, 0.6), 4, 1.0).upper, rel=1e-12)


def test_exact_histograms() -> None:
    loss = histogram_loss(point(0.2, 0.3, 0.5), point(0.25, 0.25, 0.5), 3, 0.0)
    assert loss.lower <= 3 * math.log(1.25) <= loss.upper
    assert histogram_loss(point(0.0, 0.5, 0.5), point(0.25, 0.25, 0.5), 3, 0.0).lower == math.inf
    assert histogram_loss(point(0.0, 0.5, 0.5), point(0.0, 0.5, 0.5), 3, 0.0).upper == 0.0


def test_threshold_sets_are_the_best_of_all_sets() -> None:
    generator = np.random.default_rng(3)
    for _ in range(30):
        q1, q0 = generator.dirichlet(np.ones(6)), generator.dirichlet(np.ones(6))
        scale = float(generator.uniform(0.2, 4))
        v = math.exp(-2 / scale)
        sets = (list(s) for r in range(7) for s in itertools.combinations(range(6), r))
        best = max(abs(math.log((q1[s].sum() * (1 - v) + v) / (q0[s].sum() * (1 - v) + v))) for s in sets)
        found = histogram_loss(point(*q1.tolist()), point(*q0.tolist()), 2, scale)
        assert 2 * best == pytest.approx(found.upper, rel=1e-9)


def test_a_box_of_width_nought_is_the_point() -> None:
    """The path over all sets, and that over threshold sets, agree."""
    q1, q0 = (0.2, 0.3, 0.1, 0.4), (0.25, 0.25, 0.25, 0.25)
    nearly: Law = [(q, q + 1e-13) for q in q1]
    for scale in (0.0, 0.5, 3.0):
        exact = histogram_loss(point(*q1), point(*q0), 5, scale).upper
        assert histogram_loss(nearly, point(*q0), 5, scale).upper == pytest.approx(exact, rel=1e-9)


def test_least_histogram_scale() -> None:
    laws = (point(0.2, 0.3, 0.5), point(0.3, 0.3, 0.4))
    scale = least_histogram_scale([laws], 3, 0.5)
    assert histogram_loss(*laws, 3, scale).upper <= 0.5 < histogram_loss(*laws, 3, scale * (1 - 1e-6)).lower
    assert least_histogram_scale([laws], 3, 2.0) == 0.0


# ----------------------------------------------------------------------------------------------------------- what is refused


def test_bad_arguments() -> None:
    for apart in (0, -1):
        with pytest.raises(UsageError, match="apart"):
            laplace_loss(NARROW, apart, 1.0)
    for scale in (-1.0, math.nan, math.inf):
        with pytest.raises(UsageError, match="scale"):
            laplace_loss(NARROW, 1, scale)
        with pytest.raises(UsageError, match="scale"):
            histogram_loss(point(0.5, 0.5), point(0.5, 0.5), 1, scale)
    for epsilon in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(UsageError, match="epsilon"):
            least_laplace_scale([NARROW], 1, epsilon)
    with pytest.raises(UsageError, match="records_list"):
        least_laplace_scale([], 1, 1.0)
    with pytest.raises(UsageError, match="laws"):
        least_histogram_scale([], 1, 1.0)


def test_too_large() -> None:
    with pytest.raises(UsageError, match="cells: at most 14"):
        histogram_loss([(0.0, 1.0)] * 15, [(0.0, 1.0)] * 15, 1, 1.0)
    values = tuple(range(1001))
    with pytest.raises(UsageError, match="values: at most 1000"):
        laplace_loss(RecordLaws(values, ((0.0, 1.0),) * 1001, ((0.0, 1.0),) * 1001), 1, 1.0)
