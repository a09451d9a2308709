"""What is taken back of averages for given counts, and what else depends on them: by hand, in fractions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.methods.base import equalising
from attrpriv.methods.base.accuracy import Noise, gaussian_error
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Told
from attrpriv.methods.group_transport.proof import fixed_noise, largest_noise
from attrpriv.numerics.calibration.groups import equalise
from attrpriv.numerics.laws.groups import GroupCase
from tests.unit.methods.group_transport.test_proof import METRIC, PAIR, check, evidence, several

# Three categories: 20 rows of mean 36 and 15 of mean 30 inside, 65 of mean 42 outside, 39.0 on average.
THREE = GroupCase(n=100, low=10, high=60, apart=30, members=((36.0, 5.0), (30.0, 2.0)), rest=((42.0, 3.0),))
COUNTS = Told(inside=(20, 15), outside=(65,))
OWN = Fraction(20 * 25 + 15 * 4 + 65 * 9, 100**2)
MOST = Fraction(60 * 25 + 40 * 9, 100**2)
PART = ColumnPlan(column="x", noise=Noise(kind="gaussian", scale=1.0), error=gaussian_error(1.0))


@pytest.mark.parametrize(
    ("centre", "left"),
    [(39.25, Fraction(-1, 10)), (38.75, Fraction(1, 10)), (39.0625, Fraction(-1, 16)), (38.9375, Fraction(1, 16))],
)
def test_of_one_average_no_more_than_the_reach_is_left(centre: float, left: Fraction) -> None:
    """What counts tell is the mean of all rows' means, from the centre."""
    told = evidence(check=check(THREE), centre=centre, reach=0.1)
    shown = (Fraction(20 * 36 + 15 * 30 + 65 * 42, 100) - Fraction(centre),)
    assert told.told(((20, 15), (65,))) == shown
    left = Fraction(0.1) * (1 if left > 0 else -1) if abs(left) == Fraction(1, 10) else left
    average = Fraction(77, 7)
    assert told.taken([average], COUNTS) == [average - shown[0] + left]
    assert told.moved([PART], [average], COUNTS) == [average - shown[0] + left]
    assert told.centres == (centre,)


def test_noise_of_a_table_makes_up_for_what_its_rows_vary_less() -> None:
    """Given to who asks for the law of an answer: what is taken back, and the sd of the noise."""
    told = evidence(check=check(THREE), scale=0.3, centre=39.25)
    more = math.sqrt(float(MOST - OWN) + 0.09)
    found = told.given(PART, 0, COUNTS)
    assert found is not None
    assert found[0] == -told.told(((20, 15), (65,)))[0] - Fraction(0.1)
    assert found[1] == pytest.approx(more, rel=1e-12)
    noise = told.table_noise(COUNTS)
    assert noise is not None
    assert noise[0] == pytest.approx(more, rel=1e-12)
    plain = evidence(check=check(THREE), form="direct", scale=0.3, centre=39.25)
    assert plain.table_noise(COUNTS) is None
    assert plain.given(PART, 0, COUNTS) == (found[0], 0.3)
    # Without the counts nothing is known.
    assert told.given(PART, 0, Told()) is None
    assert plain.given(PART, 0, Told(inside=(20,), outside=(65,))) is None


def test_the_most_noise_of_any_table_is_that_of_the_evenest_one() -> None:
    """60 rows of the wide category are brought to; 60 rows of the narrow one, sd 2, and 40 of sd 3 vary least."""
    least = Fraction(60 * 4 + 40 * 9, 100**2)
    most = math.sqrt(0.09 + float(MOST - least))
    assert largest_noise(THREE, "equalised", 0.3) == pytest.approx(most, rel=1e-9)
    assert largest_noise(THREE, "direct", 0.3) == 0.3
    assert evidence(check=check(THREE), scale=0.3).largest() == pytest.approx((most,), rel=1e-9)
    assert evidence(check=check(PAIR), scale=0.3).largest() == (0.3,)
    # A tolerance is of the laws, and not of the noise that is drawn.
    assert largest_noise(replace(THREE, sd_tolerance=0.2), "equalised", 0.3) == pytest.approx(most, rel=1e-9)


def test_were_means_further_apart_more_would_be_left_to_tell() -> None:
    """By a share of what the reach does not cut off: taken back is what is stated, and the rest shows."""
    told = evidence(reach=0.05, scale=0.5)
    deltas = [told.profile(beyond)(0.5) for beyond in (0.0, 0.01, 0.1)]
    assert deltas == sorted(deltas)
    assert deltas[0] == told.delta(0.5)
    assert deltas[2] > 2 * deltas[0]
    vector = several(reach=0.02)
    deltas = [vector.profile(beyond)(0.2) for beyond in (0.0, 0.01, 0.1)]
    assert deltas[0] == vector.delta(0.2)
    assert deltas[0] < deltas[1] < deltas[2]


# ------------------------------------------------------------------------------------------------------- several averages


@pytest.mark.parametrize("reach", [0.0, 0.05, 0.7])
def test_of_several_averages_the_nearest_point_of_the_ball_is_left(reach: float) -> None:
    told = several(reach=reach, centre=(1.5, 1.75))
    counts = Told(inside=(20,), outside=(30,))
    shown = np.array([(20 * 3 + 30 * 1) / 50 - 1.5, (20 * 1 + 30 * 2) / 50 - 1.75])
    length = math.sqrt(shown @ np.linalg.solve(np.array(METRIC), shown))
    assert 0.05 < length < 0.7
    left = shown * min(1.0, reach / length)
    averages = [Fraction(5), Fraction(-3)]
    wanted = np.array([5.0, -3.0]) - shown + left
    found = told.taken(averages, counts)
    assert [float(x) for x in found] == pytest.approx(wanted, rel=1e-12)
    if reach == 0.7:
        assert found == averages  # within the ball nothing is taken, to the last digit
    at = several(reach=reach, centre=(1.8, 1.6))
    assert at.taken(averages, counts) == pytest.approx(averages)  # at the centre there is nothing


def test_equalising_noise_comes_on_top_of_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[Any, int, float]] = []

    def noise(factor: Any, bits: int, variance: float) -> list[Fraction]:
        drawn.append((factor, bits, variance))
        return [Fraction(1, 8)] * len(factor)

    monkeypatch.setattr(equalising, "correlated_noise", noise)
    told, counts = several(), Told(inside=(20,), outside=(30,))
    averages = [Fraction(5), Fraction(-3)]
    parts = told.equalised.parts
    found = told.moved([PART, PART], averages, counts)
    assert found == [x + Fraction(len(parts), 8) for x in told.taken(averages, counts)]
    assert [one[:2] for one in drawn] == [(part.factor, told.bits()) for part in parts]
    assert told.common_bits([PART, PART]) == told.bits()


def test_all_noise_on_an_average_adds_up_in_squares() -> None:
    told, parts = several(), equalise(PAIR).parts
    fixed = (math.sqrt(0.3**2 + 0.1**2), math.sqrt(0.4**2 + 0.2**2 + 0.3**2))
    assert fixed_noise(told) == pytest.approx(fixed, rel=1e-12)
    assert fixed_noise(several(factor=())) == (0.3, 0.4)
    more = [sum(x * x for part in parts for x in part.factor[k]) for k in range(2)]
    assert max(more) > 0
    assert told.largest() == pytest.approx([math.sqrt(f**2 + m) for f, m in zip(fixed, more, strict=True)], rel=1e-12)
    assert told.centres == (1.0, 2.0)
    assert evidence().own_noise == (2.0,)
    assert told.own_noise == (0.3, 0.4)
