"""Averages within categories, by enumeration: every number of a case against all tables, all corners and all known rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.laws.groups import MOST_COLUMNS, MOST_SHIFTS, GroupCase, VectorCase, downward, upward

ONE = GroupCase(n=20, low=4, high=9, apart=3, members=((36.0, 4.0),), rest=((42.0, 6.0),))
CASES = {
    "one of each": ONE,
    "all apart": replace(ONE, apart=5),
    "the members vary more": replace(ONE, members=((36.0, 7.0),)),
    "the members vary more, from none to all": replace(ONE, members=((36.0, 7.0),), low=0, high=20, apart=20),
    "several": replace(ONE, members=((36.0, 4.0), (39.0, 5.0)), rest=((42.0, 6.0), (30.0, 9.0), (37.0, 7.0))),
    "variances overlap": replace(ONE, members=((36.0, 4.0), (39.0, 7.0)), rest=((42.0, 6.0),)),
    "variances overlap by little": replace(ONE, members=((36.0, 2.0),), rest=((42.0, 1.9375), (30.0, 3.0))),
    "variances differ by little": replace(ONE, members=((36.0, 2.0), (30.0, 2.5)), rest=((42.0, 1.9375),)),
    "equal variances": replace(ONE, members=((36.0, 6.0),)),
    "a tolerance": replace(ONE, mean_tolerance=0.25, sd_tolerance=0.125),
    "a tolerance of means": replace(ONE, mean_tolerance=0.25),
    "a tolerance of sds": replace(ONE, sd_tolerance=0.375),
    "known rows": replace(ONE, known=2),
    "many known rows": replace(ONE, known=4),
    "the members vary more, known rows": replace(ONE, members=((36.0, 7.0),), known=4),
    "all of it": replace(
        ONE,
        members=((36.0, 4.0), (39.0, 5.0)),
        rest=((42.0, 6.0), (30.0, 9.0)),
        mean_tolerance=0.25,
        sd_tolerance=0.125,
        known=3,
    ),
}
Law = tuple[Fraction, Fraction]


def truths(case: GroupCase) -> Iterator[tuple[list[Law], list[Law]]]:
    """Means and variances of every category at all corners of the box."""
    laws = [*case.members, *case.rest]
    tolerance, off = Fraction(case.mean_tolerance), Fraction(case.sd_tolerance)
    for signs in itertools.product((-1, 1), repeat=2 * len(laws)):
        found = []
        for (mean, sd), up, wide in zip(laws, signs[::2], signs[1::2], strict=True):
            own = Fraction(sd) * (1 + wide * off)
            found.append((Fraction(mean) + up * tolerance * own, own**2))
        yield found[: len(case.members)], found[len(case.members) :]


@pytest.fixture(params=CASES, ids=list(CASES))
def case(request: pytest.FixtureRequest) -> GroupCase:
    return CASES[str(request.param)]


def test_how_far_means_can_be_apart(case: GroupCase) -> None:
    """So many rows change from any category outside to any inside, at any corner."""
    furthest = max(abs(m - o) for inside, outside in truths(case) for m, _ in inside for o, _ in outside)
    assert Fraction(case.gap) == pytest.approx(furthest * case.apart / case.n, rel=1e-15)
    assert Fraction(case.gap) >= furthest * case.apart / case.n
    stated = max(abs(Fraction(m) - Fraction(o)) for m, _ in case.members for o, _ in case.rest) * case.apart / case.n
    assert case.told == upward(stated)
    assert case.taken_amiss == upward(stated * min(case.apart, case.known) / case.apart)
    assert case.gap <= case.told + case.untold * (1 + 1e-12) + 1e-15
    assert (case.untold == 0) == (case.mean_tolerance == 0)
    if len(case.members) == len(case.rest) == 1:
        assert case.gap == pytest.approx(case.told + case.untold, rel=1e-14)


def test_how_little_an_average_varies(case: GroupCase) -> None:
    """Of every count of the range, without the rows that are known, wherever these are: at the least variances."""
    inside = min(v for members, _ in truths(case) for _, v in members)
    outside = min(v for _, rest in truths(case) for _, v in rest)
    left = [
        (a - k) * inside + (case.n - a - (case.known - k)) * outside
        for a in range(case.low, case.high + 1)
        for k in range(case.known + 1)
        if k <= a and case.known - k <= case.n - a
    ]
    assert Fraction(case.least_variance) <= min(left) / case.n**2
    assert case.least_variance == pytest.approx(float(min(left) / case.n**2), rel=1e-15 if case.low >= case.known else 0.2)


def test_how_much_an_average_varies(case: GroupCase) -> None:
    inside = max(v for members, _ in truths(case) for _, v in members)
    outside = max(v for _, rest in truths(case) for _, v in rest)
    most = max(a * inside + (case.n - a) * outside for a in range(case.low, case.high + 1)) / case.n**2
    assert case.most_variance == upward(most)
    assert case.equal_variance == downward((Fraction(upward(most)) * case.n**2 - case.known * max(inside, outside)) / case.n**2)


def test_between_which_ends_variances_differ(case: GroupCase) -> None:
    """Of a row inside and one outside, of any categories and at any corner; each of the rows that change adds that much."""
    apart = [abs(v - w) for inside, outside in truths(case) for _, v in inside for _, w in outside]
    signs = {v > w for inside, outside in truths(case) for _, v in inside for _, w in outside}
    least = min(apart) if len(signs) == 1 else Fraction(0)
    unit = Fraction(case.apart, case.n**2)
    low, high = case.spread
    assert high == upward(max(apart) * unit)
    # A category between two others makes no difference: what lies between ends is counted too.
    assert low <= least * unit
    if len(case.members) == len(case.rest) == 1:
        assert low == downward(least * unit)
    assert case.equal_spread == upward(max(apart) * min(case.apart, case.known) / case.n**2)


def test_what_equalising_by_stated_variances_leaves(case: GroupCase) -> None:
    """By definition: each table gets what is stated to be missing, and has its true variance beside it."""
    stated = replace(case, sd_tolerance=0.0)
    assert case.stated == stated
    t = Fraction(case.sd_tolerance)
    largest = max(Fraction(sd) ** 2 for _, sd in (*case.members, *case.rest))
    whole = Fraction(stated.most_variance) * case.n**2
    assert case.matched_variance == downward(((1 - t) ** 2 * whole - case.known * largest) / case.n**2)
    off = [
        abs((x - Fraction(s) ** 2) - (y - Fraction(r) ** 2))
        for (_, s), (_, r) in itertools.product(case.members, case.rest)
        for x in ((Fraction(s) * (1 - t)) ** 2, (Fraction(s) * (1 + t)) ** 2)
        for y in ((Fraction(r) * (1 - t)) ** 2, (Fraction(r) * (1 + t)) ** 2)
    ]
    rows = Fraction(min(case.apart, case.known)) * max(
        abs(Fraction(s) ** 2 - Fraction(r) ** 2) for (_, s), (_, r) in itertools.product(case.members, case.rest)
    )
    assert case.matched_spread == upward((max(off) * case.apart + rows) / case.n**2)


def test_what_is_attained() -> None:
    assert [name for name, one in CASES.items() if one.exact] == [
        "one of each", "all apart", "the members vary more", "the members vary more, from none to all", "equal variances",
    ]  # fmt: skip


def test_known_rows_may_leave_nothing() -> None:
    """Nineteen of twenty rows at the larger variance, where all but one have the smaller one."""
    assert replace(ONE, members=((36.0, 6.0),), known=19).least_variance > 0
    assert replace(ONE, known=14).least_variance == pytest.approx(36 / 400)
    assert replace(ONE, members=((36.0, 0.04),), rest=((42.0, 0.06),), known=14).least_variance > 0
    for known in (15, 18, 19):  # of 15 known rows 9 x 16 + 11 x 36 leave exactly nothing
        with pytest.raises(RefusedError):
            _ = replace(ONE, known=known).least_variance


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 0, "low": 0, "high": 0}, {"low": -1}, {"low": 10}, {"high": 21}, {"apart": 0}, {"apart": 6}, {"known": -1},
        {"known": 20}, {"mean_tolerance": -0.1}, {"mean_tolerance": math.inf}, {"mean_tolerance": 1e100},
        {"sd_tolerance": -0.1}, {"sd_tolerance": 1.0}, {"members": ()}, {"rest": ()},
        {"members": ((1e100, 1.0),)}, {"rest": ((-1e100, 1.0),)},
        {"members": ((1.0, 0.0),)}, {"members": ((1.0, 1e-100),)}, {"members": ((1.0, 1e100),)}, {"rest": ((math.nan, 1.0),)},
        {"members": ((1.0, 1.0), (1.0, -1.0))}, {"rest": ((1.0, 1.0), (1.0, math.nan))},
    ],
)  # fmt: skip
def test_what_is_no_case(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        replace(ONE, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 1, "low": 0, "high": 1, "apart": 1}, {"apart": 5}, {"known": 19}, {"mean_tolerance": 1e99},
        {"sd_tolerance": 0.99}, {"members": ((-9e99, 9e99),)}, {"rest": ((9e99, 1.1e-100),)},
    ],
)  # fmt: skip
def test_what_is_just_a_case(changes: dict[str, Any]) -> None:
    assert replace(ONE, **changes).gap >= 0


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-1, 3), Fraction(1, 10), Fraction(3, 2), Fraction(0)])
def test_the_nearest_floats_on_either_side(value: Fraction) -> None:
    high, low = upward(value), downward(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert high == low or high == math.nextafter(low, math.inf)
    assert Fraction(math.nextafter(high, -math.inf)) < value
    assert Fraction(math.nextafter(low, math.inf)) > value


# ------------------------------------------------------------------------------------------------------------ several averages

PLANE = VectorCase(
    n=20, low=4, high=9, apart=3,
    members=(((36.0, 40.0), ((16.0, 2.0), (2.0, 9.0))),), rest=(((42.0, 38.0), ((36.0, -3.0), (-3.0, 25.0))),),
)  # fmt: skip
WIDE = replace(PLANE, members=(*PLANE.members, ((30.0, 41.0), ((1.0, 0.0), (0.0, 4.0)))), mean_tolerance=0.25)


@pytest.mark.parametrize("plane", [PLANE, WIDE, replace(PLANE, mean_tolerance=0.5)])
def test_the_corners_of_what_means_can_differ_by(plane: VectorCase) -> None:
    """Every corner of every pair of categories, and nothing else."""
    wanted, told, untold = [], [], []
    for (mean, one), (other, two) in itertools.product(plane.members, plane.rest):
        centre = np.subtract(mean, other)
        reach = plane.mean_tolerance * (np.sqrt(np.diag(np.array(one))) + np.sqrt(np.diag(np.array(two))))
        told.append(centre * plane.apart / plane.n)
        for sign in itertools.product((1, -1), repeat=2):
            wanted.append((centre + np.array(sign) * reach) * plane.apart / plane.n)
            untold.append(np.array(sign) * reach * plane.apart / plane.n)

    def alike(found: tuple[tuple[float, ...], ...], listed: list[np.ndarray]) -> bool:
        rows = {tuple(row) for row in np.round(np.array(found), 9) + 0.0}
        return rows == {tuple(row) for row in np.round(np.array(listed), 9) + 0.0}

    assert alike(plane.shifts(), wanted)
    assert alike(plane.told(), told)
    assert alike(plane.untold(), untold)
    for k in range(2):  # never less
        assert max(abs(row[k]) for row in plane.shifts()) >= max(abs(row[k]) for row in wanted)


def test_the_covariance_of_a_table_is_that_of_its_rows() -> None:
    found = WIDE.own((3, 2), (15,))
    laws = [np.array(law[1]) for law in (*WIDE.members, *WIDE.rest)]
    assert found == pytest.approx(sum(count * law for count, law in zip((3, 2, 15), laws, strict=True)) / 400, rel=1e-14)


def diagonal(size: int) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    return (0.0,) * size, tuple(tuple(float(i == j) for j in range(size)) for i in range(size))


def test_as_many_columns_and_corners_as_can_be_looked_at() -> None:
    for size in (1, MOST_COLUMNS):
        law = diagonal(size)
        assert replace(PLANE, members=(law,), rest=(law,), mean_tolerance=0.1).size == size
    law = diagonal(MOST_COLUMNS + 1)
    with pytest.raises(UsageError, match="columns"):
        replace(PLANE, members=(law,), rest=(law,))
    law, many = diagonal(MOST_COLUMNS), MOST_SHIFTS // 2**MOST_COLUMNS
    assert len(replace(PLANE, members=(law,) * many, rest=(law,), mean_tolerance=0.1).shifts()) == 2**MOST_COLUMNS
    assert replace(PLANE, members=(law,) * (many + 1), rest=(law,)).size == MOST_COLUMNS
    with pytest.raises(UsageError, match="corners"):
        replace(PLANE, members=(law,) * (many + 1), rest=(law,), mean_tolerance=0.1)
    with pytest.raises(UsageError, match="corners"):
        replace(PLANE, members=(law,), rest=(law,) * (many + 1), mean_tolerance=0.1)


def test_without_a_tolerance_there_is_one_corner_a_pair() -> None:
    law, many = diagonal(1), MOST_SHIFTS // 4
    assert replace(PLANE, members=(law,) * many, rest=(law,) * 4).size == 1
    for members, rest in ((many + 1, 4), (many, 5)):
        with pytest.raises(UsageError, match="corners"):
            replace(PLANE, members=(law,) * members, rest=(law,) * rest)


SQUARE = PLANE.members[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 0}, {"low": -1}, {"low": 9}, {"high": 21}, {"apart": 0}, {"apart": 6}, {"mean_tolerance": -0.1},
        {"mean_tolerance": math.inf}, {"members": ()}, {"rest": ()}, {"rest": (((1.0,), ((1.0,),)),)},
        {"members": (SQUARE, ((1.0, math.nan), SQUARE[1]))}, {"members": (SQUARE, ((1.0, 2.0), ((1.0, 0.0), (0.0, math.inf))))},
        {"members": (((1.0, 2.0), ((1.0, 0.0), (0.0, 0.0))),)}, {"members": (((1.0, 2.0), ((1.0, 0.1), (0.2, 1.0))),)},
        {"members": (((1.0, 2.0), ((1.0, 1.1), (1.1, 1.0))),)}, {"members": (((1.0, 2.0), ((1.0, 0.0), (0.0, -1.0))),)},
        {"rest": (((1.0, 2.0), ((1.0, 0.0),)),)}, {"rest": (((1.0, 2.0), ((1e-12, 1.1e-12), (1.1e-12, 1e-12))),)},
    ],
)  # fmt: skip
def test_what_is_no_case_of_several(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        replace(PLANE, **changes)


def test_columns_that_determine_one_another_are_a_case() -> None:
    assert replace(PLANE, n=1, low=0, high=1, apart=1).size == 2
    assert replace(PLANE, n=9, low=0, high=9, apart=9).size == 2
    assert replace(PLANE, members=(((1.0, 2.0), ((1.0, 2.0), (2.0, 4.0))),), apart=5).size == 2
