"""Unions of intervals: read, printed, kept apart and standardised."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrpriv.errors import QueryError, UsageError
from attrpriv.numerics.laws.intervals import EndRange, Interval, IntervalUnion, parse_case, parse_cases, require_disjoint
from attrpriv.numerics.laws.law_box import Cell

INF = math.inf
NUMBERS = st.one_of(st.integers(-50, 50).map(float), st.floats(-1e6, 1e6), st.sampled_from([1e-300, -1e-9, 1e20, 0.1]))


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    low, high = sorted(draw(st.lists(NUMBERS, min_size=2, max_size=2, unique_by=lambda x: x + 0.0)))
    kind = draw(st.sampled_from(["below", "above", "bounded", "bounded"]))
    return Interval(
        -INF if kind == "below" else low, INF if kind == "above" else high, draw(st.booleans()), draw(st.booleans())
    )


@st.composite
def unions(draw: st.DrawFn) -> IntervalUnion:
    parts = tuple(draw(st.lists(intervals(), min_size=1, max_size=4)))
    try:
        return IntervalUnion(parts)
    except QueryError:  # they cover the line
        return IntervalUnion(parts[:1])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("< 5", [Interval(-INF, 5)]),
        ("<= 5", [Interval(-INF, 5, high_closed=True)]),
        (">=-5", [Interval(-5, INF, low_closed=True)]),
        ("> 1e-6", [Interval(1e-6, INF)]),
        ("[0, 5)", [Interval(0, 5, low_closed=True)]),
        ("(0,5]", [Interval(0, 5, high_closed=True)]),
        ("[ -1.5 , 5 ]", [Interval(-1.5, 5, low_closed=True, high_closed=True)]),
        ("(0, 5)", [Interval(0, 5)]),
        ("abs < 3", [Interval(-3, 3)]),
        ("ABS <= 3", [Interval(-3, 3, low_closed=True, high_closed=True)]),
        ("abs >= 3", [Interval(-INF, -3, high_closed=True), Interval(3, INF, low_closed=True)]),
        ("abs>3", [Interval(-INF, -3), Interval(3, INF)]),
        (">= 50_000", [Interval(50_000, INF, low_closed=True)]),
        ("< 10%", [Interval(-INF, 0.1)]),
        ("> 3 or [0, 1) or [1, 2]", [Interval(0, 2, low_closed=True, high_closed=True), Interval(3, INF)]),
        ("(0, 1) OR (1, 2)", [Interval(0, 1), Interval(1, 2)]),
        ("(0, 1) or (0.5, 0.7]", [Interval(0, 1)]),
        ("< 0 or <= 0", [Interval(-INF, 0, high_closed=True)]),
    ],
)
def test_reading(text: str, parts: list[Interval]) -> None:
    assert list(parse_case(text).parts) == parts


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (">=50_000.0", ">= 50000"),
        ("(-2, 2)", "abs < 2"),
        ("[-2, 2]", "abs <= 2"),
        ("[-2, 2)", "[-2, 2)"),
        ("<= -2 or >= 2", "abs >= 2"),
        ("< -2 or >= 2", "< -2 or >= 2"),
        ("[-3, -2] or [2, 3]", "[-3, -2] or [2, 3]"),
        ("< -2 or (2, 3)", "< -2 or (2, 3)"),
        ("(-3, -2) or > 2", "(-3, -2) or > 2"),
        ("< -2 or (-1, 1) or > 2", "< -2 or (-1, 1) or > 2"),
        ("[-0.0, 1]", "[0, 1]"),
        ("< 0.1", "< 0.1"),
        (">= 12345678901234567890", ">= 1.2345678901234567e+19"),
        ("[-1e16, 9999999999999998]", "[-1e+16, 9999999999999998]"),
    ],
)
def test_printing(text: str, printed: str) -> None:
    assert str(parse_case(text)) == printed


@given(union=unions())
def test_what_is_printed_reads_back(union: IntervalUnion) -> None:
    assert parse_case(str(union)) == union


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a union of intervals"),
        ("5", "must be a union of intervals"),
        ("= 5", "must be a union of intervals"),
        ("< x", "must be a union of intervals"),
        ("< nan", "must be a union of intervals"),
        ("< inf", "must be a union of intervals"),
        ("< 5 or", "must be a union of intervals"),
        ("< 5 and > 3", "must be a union of intervals"),
        ("[1; 2]", "must be a union of intervals"),
        ("[1, 2", "must be a union of intervals"),
        (5, "must be a union of intervals"),
        (None, "must be a union of intervals"),
        ("< 1e999", "numbers must be finite"),
        ("< 1__0", "numbers must be finite"),
        ("[2, 1)", "the low end must be below the high end. Got 2 and 1"),
        ("[1, 1]", "the low end must be below the high end"),
        ("abs < 0", "abs must be compared with a number above 0"),
        ("abs >= -1", "abs must be compared with a number above 0"),
        ("< 1 or >= 0", "must leave some values out"),
        ("<= 0 or > 0", "must leave some values out"),
    ],
)
def test_bad_text_is_one_line(text: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        parse_case(text)
    assert "\n" not in str(caught.value)


@given(union=unions(), value=NUMBERS)
def test_normalised_and_the_same_set(union: IntervalUnion, value: float) -> None:
    again = IntervalUnion(tuple(reversed(union.parts)))
    assert again == union
    for first, second in itertools.pairwise(union.parts):
        assert first.high < second.low or (first.high == second.low and not (first.high_closed or second.low_closed))
    assert (value in union) == any(value in part for part in union.parts)


@given(first=intervals(), second=intervals(), value=NUMBERS)
def test_a_union_holds_what_its_parts_hold(first: Interval, second: Interval, value: float) -> None:
    try:
        union = IntervalUnion((first, second))
    except QueryError:
        return
    for x in (value, first.low, first.high, second.low, second.high):
        if math.isfinite(x):
            assert (x in union) == (x in first or x in second)


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ("< 5", ">= 5", False),
        ("<= 5", ">= 5", True),
        ("<= 5", "> 5", False),
        ("abs < 1", "abs >= 1", False),
        ("abs < 1", "abs > 0.999", True),
        ("[0, 1) or [2, 3)", "[1, 2)", False),
        ("[0, 1) or [2, 3)", "[1, 2]", True),
    ],
)
def test_disjointness(first: str, second: str, overlap: bool) -> None:
    a, b = parse_case(first), parse_case(second)
    assert a.overlaps(b) == b.overlaps(a) == overlap
    if overlap:
        with pytest.raises(QueryError, match="no value may be in two sets"):
            require_disjoint([a, b])
    else:
        assert parse_cases([first, second]) == (a, b)


@given(a=unions(), b=unions())
def test_overlap_is_what_points_say(a: IntervalUnion, b: IntervalUnion) -> None:
    ends = sorted({*a.ends, *b.ends})
    inside = [(x + y) / 2 for x, y in itertools.pairwise(ends)]
    outside = [ends[0] - 1 - abs(ends[0]), ends[-1] + 1 + abs(ends[-1])]
    assert a.overlaps(b) == any(x in a and x in b for x in [*ends, *inside, *outside])


@pytest.mark.parametrize("texts", ["< 5", ["< 5"], [], ["< 5", "> 5", "[4, 6)"]])
def test_a_list_of_cases_needs_two_disjoint_sets(texts: Any) -> None:
    with pytest.raises(QueryError, match="cases: "):
        parse_cases(texts)


def test_no_interval_and_bad_ends_are_refused() -> None:
    with pytest.raises(QueryError, match="at least one interval"):
        IntervalUnion(())
    with pytest.raises(QueryError, match="low end must be below"):
        Interval(math.nan, 1.0)


@pytest.mark.parametrize(
    ("first", "second", "gap"), [("[0, 1)", "[1, 3]", 3), ("[5, 6] or [0, 1]", "[2, 3]", 4), ("< 0", "> 0", INF)]
)
def test_gap_of_points(first: str, second: str, gap: float) -> None:
    a, b = parse_case(first), parse_case(second)
    assert a.gap(b) == b.gap(a) == gap


def test_standardised_moves_every_end() -> None:
    moved = parse_case("< 40 or [50, 60)").standardised(50, 5)
    assert str(moved) == "< -2 or [0, 2)"
    assert not moved.bounded
    assert str(parse_case("[40, 60)").standardised(52, 4)) == "[-3, 2)"


def test_no_end_is_a_negative_zero() -> None:
    assert math.copysign(1, Interval(-0.0, 1.0).low) == math.copysign(1, Interval(-1.0, -0.0).high) == 1


@pytest.mark.parametrize(("mean", "sd"), [(math.nan, 1), (INF, 1), (0, 0), (0, -1), (0, math.nan), (0, INF), (0, 1e-200)])
def test_bad_moments_are_refused(mean: float, sd: float) -> None:
    with pytest.raises(UsageError, match="standardise: "):
        parse_case("< 5").standardised(mean, sd)
    with pytest.raises(UsageError, match="standardise: "):
        parse_case("< 5").end_ranges((mean, mean), (sd, sd))


def test_an_end_never_becomes_infinite_unnoticed() -> None:
    """1e300 - (-1e300) would be another set: the whole of a half-line."""
    with pytest.raises(UsageError, match="too far from the mean"):
        parse_case("[0, 1e300]").standardised(0, 1e-50)
    with pytest.raises(UsageError, match="too far from the mean"):
        parse_case("[0, 1e300]").end_ranges((0, 0), (1, 1))


@given(
    union=unions(),
    mean=st.floats(-1e3, 1e3),
    sd=st.floats(1e-3, 1e3),
    width=st.tuples(st.floats(0, 10), st.floats(0, 1)),
    at=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_end_ranges_hold_every_member(
    union: IntervalUnion, mean: float, sd: float, width: tuple[float, float], at: tuple[float, float]
) -> None:
    means, sds = (mean, mean + width[0]), (sd, sd * (1 + width[1]))
    here = min(means[1], mean + at[0] * width[0]), min(sds[1], sd * (1 + at[1] * width[1]))
    member = [((part.low - here[0]) / here[1], (part.high - here[0]) / here[1]) for part in union.parts]
    for (low, high), moved in zip(member, union.end_ranges(means, sds), strict=True):
        assert moved.low[0] <= low <= moved.low[1]
        assert moved.high[0] <= high <= moved.high[1]


@pytest.mark.parametrize("means", [(1.0, 3.0), (-7.0, -5.0), (9.0, 9.0), (4.5, 4.75), (-4.75, -4.5), (4.5, 5.5)])
def test_end_ranges_are_no_wider_than_their_corners(means: tuple[float, float]) -> None:
    """An end moves with the mean, and with the least sd away from 0: corners of the ranges are the furthest that it gets."""
    sds = (0.5, 2.0)
    (moved,) = parse_case("[-4, 5)").end_ranges(means, sds)
    for end, found in ((-4.0, moved.low), (5.0, moved.high)):
        corners = [(end - mean) / sd for mean in means for sd in sds]
        assert found[0] <= min(corners)
        assert found[1] >= max(corners)
        assert found == pytest.approx((min(corners), max(corners)), rel=1e-14)
    (half,) = parse_case("> 5").end_ranges(means, sds)
    assert half.high == (INF, INF)


def test_the_largest_and_smallest_units_there_are() -> None:
    assert parse_case("[0, 1e100]").standardised(0, 1).ends == (0.0, 1e100)
    assert parse_case("(0, 1]").standardised(0, 1e100).parts[0].high == 1e-100
    assert parse_case("(0, 1]").standardised(0, 1e-100).parts[0].high == pytest.approx(1e100)
    for mean, sd in ((0.0, 0.9e-100), (0.0, 1.1e100), (1.1e100, 1.0)):
        with pytest.raises(UsageError, match="standardise: "):
            parse_case("[0, 1]").standardised(mean, sd)


def test_end_range_hulls() -> None:
    moved = EndRange((0.0, 1.0), (2.0, 3.0))
    assert (moved.lowest, moved.highest) == (Interval(0, 2), Interval(1, 3))
    assert (moved.widest, moved.narrowest) == (Interval(0, 3), Interval(1, 2))
    assert EndRange((0.0, 2.0), (1.0, 3.0)).narrowest is None


@pytest.mark.parametrize(
    ("means", "sds"), [((1, 0), (1, 1)), ((0, 0), (0, 1)), ((0, 0), (2, 1)), ((0, INF), (1, 1)), ((math.nan, 0), (1, 1))]
)
def test_a_cell_needs_ranges(means: tuple[float, float], sds: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="cell: "):
        Cell(means, sds)
