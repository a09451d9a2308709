"""What a row may count: intervals, their ends, what is refused, and whole numbers read outward."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.records import (
    CountPairs,
    RecordLaws,
    _log_change,
    exactly,
    first_whole,
    last_whole,
    log_change,
    moved,
    whole_between,
    widened,
)

THREE = ((0.2, 0.3), (0.1, 0.4), (0.3, 0.6))
OTHER = ((0.25, 0.25), (0.25, 0.25), (0.5, 0.5))


def test_a_float_is_the_decimal_that_writes_it() -> None:
    assert exactly(0.1) == Fraction(1, 10)
    assert exactly(Fraction(1, 3)) == Fraction(1, 3)
    assert exactly(1) == 1


@pytest.mark.parametrize("scale", [3, 100, Fraction(7, 2)])
def test_whole_numbers_are_read_outward_by_one_float(scale: int | Fraction) -> None:
    """An end that is a whole number, or a float inside of it, is that number; two floats inside of it is not."""
    for whole in (1, 2, 5):
        meant = float(Fraction(whole) / scale)
        assert first_whole(meant, scale) <= whole <= last_whole(meant, scale)
        inside, outside = meant, meant
        for _ in range(3):
            inside, outside = math.nextafter(inside, -1.0), math.nextafter(outside, 9.0)
        assert last_whole(inside, scale) == whole - 1
        assert first_whole(outside, scale) == whole + 1
        assert last_whole(outside, scale) == first_whole(inside, scale) == whole
        assert whole_between(inside, outside, scale) == (whole, whole)
    assert whole_between(0.5, 2.5, 2) == (1, 5)
    assert whole_between(0.3, 2.4, 2) == (1, 4)


@pytest.mark.parametrize(
    "changes",
    [
        {"values": (0,), "member": ((1.0, 1.0),), "rest": ((1.0, 1.0),)}, {"values": (0, 2, 2)}, {"values": (0, 3, 2)},
        {"member": THREE[:2]}, {"rest": OTHER[:2]}, {"member": ((0.3, 0.2), *THREE[1:])},
        {"member": ((-0.1, 0.3), *THREE[1:])}, {"member": ((0.2, 1.1), *THREE[1:])}, {"rest": ((math.nan, 0.25), *OTHER[1:])},
        {"rest": ((0.25, math.nan), *OTHER[1:])}, {"rest": ((0.25, math.inf), *OTHER[1:])},
        {"member": ((0.4, 0.5), (0.4, 0.5), (0.3, 0.6))}, {"member": ((0.1, 0.2), (0.1, 0.2), (0.3, 0.5))},
        {"rest": ((0.25, 0.25), (0.25, 0.25), (0.5 + 3e-9, 0.5 + 3e-9))},
        {"rest": ((0.25, 0.25), (0.25, 0.25), (0.5 - 3e-9, 0.5 - 3e-9))},
    ],
)  # fmt: skip
def test_what_is_no_law_of_a_row(changes: dict[str, Any]) -> None:
    told: dict[str, Any] = {"values": (0, 2, 5), "member": THREE, "rest": OTHER}
    assert RecordLaws(**told).values == (0, 2, 5)
    with pytest.raises(UsageError):
        RecordLaws(**(told | changes))


def test_sums_may_be_off_by_rounding() -> None:
    for off in (5e-10, -5e-10):
        assert RecordLaws((0, 1), ((0.5, 0.5), (0.5 + off, 0.5 + off)), ((0.5, 0.5), (0.5, 0.5))).exact


def test_an_event_and_what_it_leaves() -> None:
    event = RecordLaws.event((0.3, 0.4), Fraction(5, 13))
    assert event.member[0] == pytest.approx((0.6, 0.7))
    assert event.member[1] == (0.3, 0.4)
    assert event.rest == ((Fraction(8, 13), Fraction(8, 13)), (Fraction(5, 13), Fraction(5, 13)))
    assert event.binary
    assert event.width == 1
    assert not event.exact
    assert RecordLaws.event(0.4, 0.6).exact
    assert event.hull == (0.3, 0.4)
    assert RecordLaws.event((0.3, 0.4), (0.1, 0.9)).hull == (0.1, 0.9)
    assert RecordLaws.event((0.1, 0.9), (0.3, 0.4)).hull == (0.1, 0.9)
    three = RecordLaws((-1, 2, 5), THREE, OTHER)
    assert (three.width, three.binary) == (6, False)
    assert not RecordLaws((0, 2), ((0.5, 0.5),) * 2, ((0.5, 0.5),) * 2).binary
    with pytest.raises(UsageError):
        _ = three.hull
    for name in ("member", "rest"):  # an interval in one of them is enough
        told: dict[str, Any] = {"values": (0, 2, 5), "member": OTHER, "rest": OTHER} | {name: THREE}
        assert not RecordLaws(**told).exact


@pytest.mark.parametrize(
    ("n", "low", "high", "apart"),
    [(0, 0, 0, 1), (5, -1, 3, 1), (5, 3, 2, 1), (5, 0, 6, 1), (5, 1, 4, 0), (5, 1, 4, 4), (5, 2, 2, 1), (0, 0, 0, 0)],
)
def test_counts_that_cannot_be(n: int, low: int, high: int, apart: int) -> None:
    with pytest.raises(UsageError):
        CountPairs(n, low, high, apart)


def test_counts_that_can_be() -> None:
    for ends in ((5, 0, 5, 5), (5, 0, 5, 1), (1, 0, 1, 1), (5, 1, 4, 3)):
        assert CountPairs(*ends).n == ends[0]
    assert CountPairs.all_of(4) == CountPairs(4, 0, 4, 4)


def test_wider_intervals_by_a_share_of_their_ends() -> None:
    found = widened(RecordLaws((0, 2, 5), ((0.2, 0.3), (0.1, 0.4), (0.3, 0.99)), OTHER), 0.1)
    assert found.member == tuple(pytest.approx(pair) for pair in ((0.18, 0.33), (0.09, 0.44), (0.27, 1.0)))
    assert found.member[2][1] == 1.0
    assert found.rest == tuple(pytest.approx(pair) for pair in ((0.225, 0.275), (0.225, 0.275), (0.45, 0.55)))


@pytest.mark.parametrize("off", [0.01, 0.1])
@pytest.mark.parametrize("ends", [(2, 6), (0, 3), (4, 9)])
def test_a_mass_moves_by_the_worst_of_each_kind_of_row(ends: tuple[int, int], off: float) -> None:
    """By a share less, which is further than a share more; of an event also by what its complement is then off by."""
    n = 9
    records = RecordLaws((0, 1, 4), ((0.1, 0.1), (0.3, 0.3), (0.6, 0.6)), ((0.5, 0.5), (0.25, 0.25), (0.25, 0.25)))
    assert moved(records, CountPairs(n, *ends, 1), off) == pytest.approx(-2 * n * math.log(1 - off), rel=1e-8)
    for member, rest in ((0.8, 0.4), (0.3, 0.85)):
        event = RecordLaws.event(member, rest)
        steps = []
        for p in (member, rest):
            ends_of_p = (p * (1 - off), p * (1 + off))
            steps.append(max(max(abs(math.log(q / p)), abs(math.log((1 - q) / (1 - p)))) for q in ends_of_p))
        wanted = 2 * max(a * steps[0] + (n - a) * steps[1] for a in ends)
        assert wanted <= moved(event, CountPairs(n, *ends, 1), off) <= wanted * (1 + 1e-8)


def test_by_how_much_a_share_changes_a_logarithm() -> None:
    for off in (1e-6, 0.1, 0.5):
        wanted = math.log((1 + off) / (1 - off))
        assert wanted * (1 - 1e-9) <= log_change(off) <= wanted * (1 + 1e-9)
    impossible = RecordLaws((0, 1, 2), ((0.5, 0.5), (0.5, 0.5), (0.0, 0.0)), ((0.0, 0.0), (0.5, 0.5), (0.5, 0.5)))
    assert moved(impossible, CountPairs(4, 1, 3, 2), 0.2) == pytest.approx(2 * 4 * -math.log(0.8), rel=1e-8)
    assert moved(RecordLaws.event(1.0, 1.0), CountPairs(4, 1, 3, 2), 0.2) == math.inf


def test_no_row_of_a_kind_moves_nothing_however_far_one_would() -> None:
    """0.9 and a fifth more is 1, which leaves an event's complement no probability: infinitely far, if there is such a row."""
    sure, other = 0.9, 0.4
    away = -2 * 9 * math.log(0.8)  # by rows of the other kind alone
    for event in (RecordLaws.event(sure, other), RecordLaws.event(other, sure)):
        for low, high in ((0, 3), (4, 9), (0, 9), (2, 6)):
            assert moved(event, CountPairs(9, low, high, 1), 0.2) == math.inf
    assert moved(RecordLaws.event(other, other), CountPairs(9, 0, 9, 1), 0.2) == pytest.approx(away, rel=1e-8)


def test_a_logarithm_changes_by_the_further_end() -> None:
    assert _log_change(0.5, 0.45, 0.9) == pytest.approx(math.log(1.8), rel=1e-9)
    assert _log_change(0.5, 0.2, 0.6) == pytest.approx(math.log(2.5), rel=1e-9)
    assert _log_change(0.5, 0.0, 0.6) == math.inf
    assert _log_change(0.0, 0.0, 0.0) == 0.0
    assert _log_change(0.0, 0.0, 0.1) == math.inf
