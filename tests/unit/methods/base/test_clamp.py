"""A clamp by plain arithmetic: numbers that belong together, the grid, the ball, the stairs, and the laws of what is left."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from attrpriv.errors import PolicyError
from attrpriv.methods.base import clamp as module
from attrpriv.methods.base.accuracy import ExpectedError, Noise
from attrpriv.methods.base.clamp import (
    Clamp,
    ClampSpread,
    MovedSpread,
    Read,
    clamp_bits,
    clamp_law,
    clamp_spreads,
    clamped,
    kept,
    normal_points,
    shown,
    stair,
    statistic,
)
from attrpriv.methods.base.column_plan import ColumnPlan

METRIC = ((2.0, 0.6), (0.6, 0.5))


def read(name: str = "x", centre: float = 0.0, mask: float = 0.0) -> Read:
    return Read(coefficients={name: 1.0}, centre=centre, mask=mask)


def clamp(slopes: Any = ((1.0,),), reach: float = 1.0, **changes: Any) -> Clamp:
    reads = changes.pop("reads", tuple(read(str(k)) for k in range(len(slopes[0]))))
    return Clamp(reads=reads, slopes=slopes, reach=reach, **changes)


# ----------------------------------------------------------------------------------------------------- what belongs together

TWO = ((1.0,), (2.0,))
SQUARE = ((1.0, 0.3), (0.2, 2.0))


@pytest.mark.parametrize(
    ("slopes", "metric", "period"),
    [(((1.0,),), (), None), (((1.0, 2.0),), (), 3.0), (TWO, METRIC, 3.0), (SQUARE, METRIC, None), (((1.0,),), ((2.0,),), 3.0)],
)
def test_numbers_that_belong_together(slopes: Any, metric: Any, period: float | None) -> None:
    assert clamp(slopes, metric=metric, period=period).slopes == slopes


@pytest.mark.parametrize(
    ("slopes", "metric", "period"),
    [
        (((1.0,), (2.0, 3.0)), METRIC, None),  # the second row is of other statistics
        (TWO, (), None),
        (TWO, ((2.0,),), None),
        (TWO, ((2.0, 0.6, 0.1), (0.6, 0.5, 0.1)), None),
        (TWO, ((2.0, 0.6), (0.6,)), None),
        (TWO, (*METRIC, (0.0, 0.0)), None),
        (((1.0,),), METRIC, None),
        (SQUARE, METRIC, 3.0),
    ],
)
def test_numbers_that_do_not(slopes: Any, metric: Any, period: float | None) -> None:
    reads = tuple(read(str(k)) for k in range(len(slopes[0])))
    with pytest.raises(PolicyError):
        clamp(slopes, reads=reads, metric=metric, period=period)


# ------------------------------------------------------------------------------------------------------- what is taken back


@pytest.mark.parametrize("factor", [(), ((0.5, 40.0), (0.0, -3.0))])
@pytest.mark.parametrize("masks", [(3.0, 0.0), (1e-9, 2e-9), (700.0, 5e5)])
def test_masks_and_common_noise_are_finer_than_the_answers_grids(masks: tuple[float, float], factor: Any) -> None:
    """2^-34 of an average's own noise, over what a step of masks and factor is worth there: to a power of 2; 34 at least."""
    scales, slopes = (0.25, 8.0), ((1.5, -2.0), (0.5, 4.0))
    made = clamp(slopes, reads=tuple(read(str(k), mask=mask) for k, mask in enumerate(masks)), metric=METRIC)
    bits = clamp_bits(made, scales, factor)
    worth = [
        (sum(abs(b) * mask for b, mask in zip(row, masks, strict=True)) + sum(map(abs, factor[k] if factor else ()))) / scale
        for k, (row, scale) in enumerate(zip(slopes, scales, strict=True))
    ]
    assert max(worth) * 2.0**-bits <= 2.0**-34
    assert bits == 34 or max(worth) * 2.0 ** -(bits - 1) > 2.0**-34


def test_a_statistic_is_a_weighted_sum_of_averages() -> None:
    told = Read(coefficients={"x": 0.5, "y": -3.0}, centre=0.0)
    assert statistic(told, {"x": Fraction(7), "y": Fraction(1, 3), "z": Fraction(9)}) == Fraction(5, 2)


def test_masks_and_centres_come_before_the_slopes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of statistics 7 and 2 around 4 and 2.5 with masks drawn at 0.5 and none: 3.5 and -0.5, of which 0.75 may stay."""
    drawn = []

    def noise(factor: Any, bits: int) -> list[Fraction]:
        drawn.append((factor, bits))
        return [Fraction(1, 2)]

    monkeypatch.setattr(module, "correlated_noise", noise)
    made = clamp(((2.0, 6.0),), 0.75, reads=(read("x", 4.0, 0.1), read("y", 2.5)))
    assert clamped(made, [Fraction(100)], [Fraction(7), Fraction(2)], 40) == [100 - 4 + Fraction(3, 4)]
    assert drawn == [(((0.1,),), 40)]
    wide = made.model_copy(update={"reach": 5.0})
    assert clamped(wide, [Fraction(100)], [Fraction(7), Fraction(2)], 40) == [100]


def length(told: Sequence[Fraction], metric: Any = METRIC) -> float:
    vector = np.array([float(y) for y in told])
    return math.sqrt(vector @ np.linalg.inv(np.array(metric)) @ vector)


POINTS = [
    (Fraction(3), Fraction(-2)),
    (Fraction(-1, 5), Fraction(7, 10)),
    (Fraction(1, 10), Fraction(0)),
    (Fraction(9), Fraction(4)),
]


@pytest.mark.parametrize("told", POINTS)
@pytest.mark.parametrize("reach", [0.0, 0.4, 2.5])
def test_the_nearest_point_of_a_ball(told: tuple[Fraction, Fraction], reach: float) -> None:
    """On the ray through the point itself, at the reach or where the point is."""
    found = kept(clamp(SQUARE, reach, metric=METRIC), told)
    far = length(told)
    assert [float(x) for x in found] == pytest.approx([float(y) * min(1.0, reach / far) for y in told], rel=1e-12, abs=1e-15)
    if far <= reach:
        assert found == list(told)
    assert found[0] * told[1] == found[1] * told[0]


def test_nothing_told_is_kept_as_it_is() -> None:
    for reach in (0.0, 1.0):
        assert kept(clamp(SQUARE, reach, metric=METRIC), [Fraction(0)] * 2) == [0, 0]
        assert kept(clamp(TWO, reach, metric=METRIC, period=2.0), [Fraction(0)] * 2) == [0, 0]
        assert kept(clamp(((0.0,), (0.0,)), reach, metric=METRIC, period=2.0), [Fraction(0)] * 2) == [0, 0]


@pytest.mark.parametrize("told", [Fraction(-10, 3), -1, Fraction(-1, 4), 0, Fraction(1, 3), 2])
def test_one_average_is_kept_within_its_reach(told: Any) -> None:
    assert kept(clamp(reach=0.75), [Fraction(told)]) == [max(Fraction(-3, 4), min(Fraction(told), Fraction(3, 4)))]
    (norm_kept,) = kept(clamp(reach=0.75, metric=((4.0,),)), [Fraction(told)])  # of length |y| / 2
    assert float(norm_kept) == pytest.approx(max(-1.5, min(float(told), 1.5)))


def stairs(t: Fraction, reach: Fraction, period: Fraction) -> Fraction:
    """The stair that the point is on, counted one by one, and where on it."""
    steps = 0
    while t - steps * period > period / 2:
        steps += 1
    while t - steps * period < -period / 2:
        steps -= 1
    return steps * min(2 * reach, period) + max(-reach, min(reach, t - steps * period))


@pytest.mark.parametrize("period", [0.5, 3.0])
@pytest.mark.parametrize("reach", [0.0, 0.3, 1.0, 2.0])
def test_a_staircase_keeps_near_points_near(reach: float, period: float) -> None:
    """Odd, never steeper than 1, and of two points at most a period apart what is left is at most min(2 reach, period)."""
    made = clamp(reach=reach, period=period)
    at = [Fraction(2 * k, 7) for k in range(-17, 18)]
    found = [kept(made, [t])[0] for t in at]
    assert found == [stairs(t, Fraction(reach), Fraction(period)) for t in at]
    assert found == [-x for x in reversed(found)]
    assert all(abs(a - b) <= Fraction(2, 7) for a, b in itertools.pairwise(found))
    most = min(2 * Fraction(reach), Fraction(period))
    pairs = [(x, y) for (s, x), (t, y) in itertools.combinations(zip(at, found, strict=True), 2) if t - s <= period]
    assert max(abs(x - y) for x, y in pairs) <= most
    assert max(abs(x - y) for x, y in pairs) >= min(most, Fraction(2, 7)) * Fraction(9, 10)


@pytest.mark.parametrize("slopes", [TWO, ((0.0,), (-3.0,)), ((-0.5,), (0.25,))])
@pytest.mark.parametrize("times", [-5, Fraction(-1, 3), Fraction(2, 5), 2])
def test_the_stairs_of_several_averages_lie_along_their_line(slopes: Any, times: Any) -> None:
    told = [Fraction(row[0]) * times for row in slopes]
    made = clamp(slopes, 0.7, metric=METRIC, period=2.0)
    unit = length([Fraction(row[0]) for row in slopes])
    moved = float(stairs(Fraction(times) * Fraction(unit), Fraction(0.7), Fraction(2)))
    wanted = [row[0] / unit * moved for row in slopes]
    assert [float(x) for x in kept(made, told)] == pytest.approx(wanted, rel=1e-12, abs=1e-12)


def test_one_average_of_several_statistics_is_on_stairs_whatever_its_slopes_are() -> None:
    for slopes in (((0.0, 2.0),), ((-0.5, 2.0),)):
        made = clamp(slopes, 0.25, period=1.0)
        assert kept(made, [Fraction(13, 10)]) == [Fraction(3, 4)]
        assert kept(made, [Fraction(-13, 10)]) == [Fraction(-3, 4)]


def test_without_a_period_a_stair_is_one_long() -> None:
    assert stair(clamp(reach=0.25), Fraction(13, 10)) == Fraction(1, 2) + Fraction(1, 4)


@pytest.mark.parametrize(
    "made",
    [
        clamp(reach=0.8),
        clamp(reach=0.8, period=1.5),
        clamp(reach=0.3, period=1.5),
        clamp(SQUARE, 0.8, metric=METRIC),
        clamp(TWO, 0.8, metric=METRIC, period=2.5),
        clamp(TWO, 2.0, metric=METRIC, period=2.5),
    ],
)
def test_the_same_in_floats(made: Clamp) -> None:
    line = np.array([[-3.1], [-0.9], [-0.2], [0.4], [1.3], [7.7]])
    rows = (
        line * np.array([row[0] for row in made.slopes]) if made.period else np.hstack([line, line[::-1]][: len(made.slopes)])
    )
    exact = [[float(x) for x in kept(made, [Fraction(float(y)) for y in row])] for row in rows]
    assert shown(made)(rows).tolist() == [pytest.approx(row, rel=1e-12, abs=1e-12) for row in exact]
    assert shown(made)(np.zeros_like(rows)).tolist() == np.zeros_like(rows).tolist()


# --------------------------------------------------------------------------------------------------------------- laws of errors


def column(name: str, scale: float, **parameters: Any) -> ColumnPlan:
    error = ExpectedError(rmse=None, mean_absolute=None, alpha95=None)
    return ColumnPlan(column=name, noise=Noise(kind="gaussian", scale=scale), error=error, parameters=parameters)


def test_a_plan_tells_the_law_of_each_of_its_averages() -> None:
    plain = [column("x", 1.0, wander=0.5, room=0.1), column("y", 3.0, wander=0.7, room=0.2)]
    assert clamp_law(clamp(), plain, 1) == ClampSpread(3.0, 0.7, 0.2)
    moved = {"wander": [[0.5, 0.0], [0.3, 1.2]], "bias": [0.4, -2.0]}
    made = clamp(SQUARE, 0.0, metric=METRIC)
    for place, (scale, squared) in enumerate(((1.0, 0.25 + 0.16), (3.0, 0.09 + 1.44 + 4.0))):
        law = clamp_law(made, [column("x", 1.0, **moved), column("y", 3.0, **moved)], place)
        assert isinstance(law, MovedSpread)
        assert law.rmse == pytest.approx(math.hypot(scale, math.sqrt(squared)), rel=2e-3)


def tail(law: ClampSpread, t: float) -> float:
    """P(|N + x| > t), x what lies beyond the room of a normal law: by Gauss and Legendre on either side of it."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    ends = (law.room, max(law.room, 0.0) + 9 * law.wander)
    y = (ends[1] - ends[0]) / 2 * nodes + sum(ends) / 2
    x = y - law.room
    given = norm.sf((t - x) / law.scale) + norm.cdf((-t - x) / law.scale)
    beyond = float(given @ (weights * norm.pdf(y, scale=law.wander))) * (ends[1] - ends[0]) / 2
    return 2 * beyond + (1 - 2 * norm.sf(law.room / law.wander)) * 2 * norm.sf(t / law.scale)


@pytest.mark.parametrize("law", [ClampSpread(0.5, 1.5, 0.55), ClampSpread(1.2, 0.4, 0.0), ClampSpread(0.7, 2.0, 3.0)])
@pytest.mark.parametrize("t", [0.0, 0.3, 0.55, 1.1, 3.0, 6.0])
def test_a_tail_by_quadrature(law: ClampSpread, t: float) -> None:
    assert law.tail(t) == pytest.approx(tail(law, t), rel=1e-9, abs=1e-11)
    wide = law.scaled(2.5)
    assert wide.tail(2.5 * t) == pytest.approx(law.tail(t), rel=1e-9, abs=1e-11)
    still = ClampSpread(law.scale, 0.0, law.room)
    assert still.tail(t) == pytest.approx(2 * norm.sf(t / law.scale))


@pytest.mark.parametrize("scale", [0.0, 0.6])
def test_a_tail_of_points_with_weights(scale: float) -> None:
    residuals, weights = np.array([-1.0, 2.0, 1.0, 0.0, -2.0]), np.array([0.1, 0.15, 0.2, 0.5, 0.05])
    law = MovedSpread(residuals, weights, scale)
    for t in (0.0, 0.5, 1.0, 1.7, 2.0):
        if scale:
            wanted = sum(
                w * (norm.sf((t - x) / scale) + norm.cdf((-t - x) / scale)) for x, w in zip(residuals, weights, strict=True)
            )
        else:
            wanted = sum(w for x, w in zip(residuals, weights, strict=True) if abs(x) > t)
        assert law.tail(t) == pytest.approx(wanted, rel=1e-12)
        assert law.scaled(-3.0).tail(3 * t) == pytest.approx(wanted, rel=1e-12)
    assert law.rmse == pytest.approx(math.sqrt(scale**2 + 0.3 + 4 * 0.2))
    assert law.scaled(-3.0).scaled(2.0).rmse == pytest.approx(6 * law.rmse)


def test_an_interval_of_points_ends_at_one_of_them() -> None:
    law = MovedSpread(np.array([-1.0, 2.0, 0.0]), np.array([0.1, 0.2, 0.7]), 0.0)
    for level, end in ((0.5, 0.0), (0.75, 1.0), (0.85, 2.0), (0.9999, 2.0)):
        assert end <= law.reach(level) <= end + 1e-12
        assert 3 * end <= law.scaled(3.0).reach(level) <= 3 * end + 1e-12
    assert MovedSpread(np.zeros(2), np.array([0.4, 0.6]), 0.0).reach(0.95) == 0


def test_what_is_left_of_a_wandering_normal() -> None:
    """With no reach all of it, with a wide one nothing; between, a point of the ball is taken off."""
    wander, bias, scales = [[0.5, 0.0], [0.3, 1.2]], [0.4, -2.0], [0.1, 0.2]
    for law, scale, mean, squared in zip(
        clamp_spreads(clamp(SQUARE, 0.0, metric=METRIC), wander, bias, scales), scales, bias, (0.25, 1.53), strict=True
    ):
        assert (law.scale, law.unit) == (scale, 1.0)
        assert law.weights @ law.residuals == pytest.approx(mean, rel=1e-3)
        assert law.weights @ law.residuals**2 == pytest.approx(mean**2 + squared, rel=2e-3)
    for law in clamp_spreads(clamp(SQUARE, 1e3, metric=METRIC), wander, bias, scales):
        assert np.abs(law.residuals).max() < 1e-9
    (alone,) = clamp_spreads(clamp(reach=0.5), [[1.5]], [0.25], [0.1])
    y = np.linspace(-15, 15, 30_001)
    wanted = (np.clip(np.abs(y) - 0.5, 0, None) ** 2 * norm.pdf(y, 0.25, 1.5)).sum() * (y[1] - y[0])
    assert alone.weights @ alone.residuals**2 == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_points_have_the_moments_of_standard_normals(dimensions: int) -> None:
    points, weights = normal_points(dimensions)
    assert weights.sum() == pytest.approx(1)
    assert weights @ points == pytest.approx(np.zeros(dimensions), abs=1e-12)
    assert (points * weights[:, None]).T @ points == pytest.approx(
        np.eye(dimensions), abs=0.05
    )  # additive sequences are a little tied
    assert weights @ points**4 == pytest.approx(np.full(dimensions, 3.0), rel=0.02)
    assert weights @ (np.abs(points) > 1) == pytest.approx(np.full(dimensions, 2 * norm.sf(1)), rel=5e-3)
