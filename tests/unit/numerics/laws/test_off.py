"""Laws whose probabilities are off by a share: what is impossible stays so, and a mass moves as far as is said."""

from __future__ import annotations

import math

import pytest

from attrpriv.numerics.laws.records import CountPairs, RecordLaws, log_change, moved, widened

EVENT = RecordLaws.event((0.3, 0.4), (0.0, 0.0))
VALUES = RecordLaws((0, 1, 2), ((0.5, 0.5), (0.5, 0.5), (0.0, 0.0)), ((0.2, 0.2), (0.3, 0.3), (0.5, 0.5)))


def test_nothing_off_is_the_law_itself() -> None:
    assert widened(EVENT, 0.0) is EVENT


def test_of_an_event_its_own_probability_is_off() -> None:
    found = widened(EVENT, 0.1)
    assert found.member[1] == pytest.approx((0.27, 0.44))
    assert found.member[0] == pytest.approx((0.56, 0.73))
    assert found.rest[1] == (0.0, 0.0)


def test_each_of_several_values_is_off_by_itself() -> None:
    found = widened(VALUES, 0.1)
    assert found.member[0] == pytest.approx((0.45, 0.55))
    assert found.member[2] == (0.0, 0.0)
    assert found.rest[2] == pytest.approx((0.45, 0.55))


def test_no_probability_is_above_one() -> None:
    assert widened(RecordLaws((0, 1, 2), ((0.0, 0.0), (0.0, 0.0), (1.0, 1.0)), VALUES.rest), 0.1).member[2][1] == 1.0


def test_a_mass_moves_by_every_row_of_the_worst_count() -> None:
    """Of n rows a are members; each moves a log mass by log 1/(1 - x) at most, and both laws move."""
    pairs = CountPairs(5, 1, 4, 3)
    assert moved(VALUES, pairs, 0.1) == pytest.approx(2 * 5 * math.log(1 / 0.9))
    members = RecordLaws((0, 1), ((0.5, 0.5), (0.5, 0.5)), ((0.0, 0.0), (1.0, 1.0)))
    assert moved(members, pairs, 0.1) >= 2 * 4 * math.log(1 / 0.9)


def test_both_ways_add_up() -> None:
    assert log_change(0.1) == pytest.approx(math.log(1.1 / 0.9))
    assert log_change(0.1) >= math.log(1.1 / 0.9)
