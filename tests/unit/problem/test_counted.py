"""Counts that must look alike, in whole rows, against enumeration with exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.errors import QueryError
from attrpriv.numerics.laws.intervals import parse_case, parse_cases
from attrpriv.numerics.laws.records import CountPairs
from attrpriv.problem.counted import count_pairs, counts_in, share_range
from attrpriv.problem.secret import Parameter, Secret

SHARE, COUNT = "share(smoker = 'yes')", "count(smoker = 'yes')"


def pairs(secret: str, n: int, **data: Any) -> CountPairs:
    return count_pairs(Secret(secret, **data), n)


@pytest.mark.parametrize(
    ("ends", "n", "low", "high"),
    [
        ((0.29, 0.57), 100, 29, 57),  # 0.29 * 100 is 28.999999999999996 in floats, and 0.57 * 100 is 56.99999999999999
        ((0.07, 0.14), 100, 7, 14),  # 7.000000000000001 and 14.000000000000002
        ((0.1, 0.3), 10, 1, 3),
        ((0.1, 0.3), 15, 2, 4),
        ((0, 1), 7, 0, 7),
        ((1e-05, 1), 99_999, 1, 99_999),
    ],
)
def test_shares_become_the_whole_counts_inside(ends: tuple[float, float], n: int, low: int, high: int) -> None:
    assert pairs(SHARE, n, between=ends) == CountPairs(n, low, high, high - low)


@settings(max_examples=300, deadline=None)
@given(st.integers(2, 10**6), st.data())
def test_an_end_that_was_computed_holds_the_count_that_was_meant(n: int, data: st.DataObject) -> None:
    """2/3 of three rows are two rows, though the float that writes it is smaller; likewise at the lower end."""
    low = data.draw(st.integers(0, n - 1))
    high = data.draw(st.integers(low + 1, n))
    assert pairs(SHARE, n, between=(low / n, high / n)) == CountPairs(n, low, high, high - low)
    assert counts_in(parse_case(f"[{low / n!r}, {high / n!r}]"), n, n) == ((low, high),)


def test_the_decimal_that_writes_two_thirds_is_smaller() -> None:
    """Read as it is written, the range would leave out two of three rows."""
    assert Fraction(repr(2 / 3)) * 3 < 2


def test_a_float_product_would_miss_the_end() -> None:
    """The plain product, for which these ends were chosen, is wrong on both sides."""
    assert int(0.29 * 100) == 28
    assert 0.07 * 100 > 7


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 60), st.integers(0, 1000), st.integers(0, 1000))
def test_shares_against_enumeration(n: int, one: int, other: int) -> None:
    low, high = sorted((one, other))
    if low == high:
        return
    ends = low / 1000, high / 1000
    held = [a for a in range(n + 1) if Fraction(low, 1000) <= Fraction(a, n) <= Fraction(high, 1000)]
    if len(held) < 2:
        with pytest.raises(QueryError, match=r"(whole|single) count"):
            pairs(SHARE, n, between=ends)
    else:
        assert pairs(SHARE, n, between=ends) == CountPairs(n, held[0], held[-1], held[-1] - held[0])


@pytest.mark.parametrize(
    ("secret", "within", "n", "apart"),
    [
        (COUNT, 3.0, 10, 3),
        (COUNT, 2.5, 10, 3),
        (COUNT, 99.0, 10, 10),
        (SHARE, 0.07, 100, 7),
        (SHARE, 0.071, 100, 8),
    ],
)
def test_a_distance_is_rounded_up(secret: str, within: float, n: int, apart: int) -> None:
    assert pairs(secret, n, within=within) == CountPairs(n, 0, n, apart)


@pytest.mark.parametrize(
    ("secret", "within", "says"),
    [(COUNT, 0.02, "no two counts"), (SHARE, 0.004, "no two counts"), (SHARE, 2.0, "at most 1 apart")],
)
def test_a_distance_that_no_two_counts_have_is_refused(secret: str, within: float, says: str) -> None:
    """It would hide nothing, and look like a promise."""
    with pytest.raises(QueryError, match=says):
        pairs(secret, 100, within=within)


def test_a_distance_within_a_range() -> None:
    assert pairs(COUNT, 1000, between=(100, 400), within=20.0) == CountPairs(1000, 100, 400, 20)
    assert pairs(COUNT, 1000, between=(100, 400)) == CountPairs(1000, 100, 400, 300)


@pytest.mark.parametrize(
    ("secret", "cases", "n", "low", "high"),
    [
        (COUNT, ("< 5", ">= 5"), 10, 0, 10),
        (COUNT, ("[2, 3]", "(5, 8)"), 10, 2, 7),
        (COUNT, ("[2, 3]", "> 5.5"), 10, 2, 10),
        (SHARE, ("[0.29, 0.5)", "[0.5, 0.57]"), 100, 29, 57),
        (SHARE, ("(0.29, 0.5)", "[0.5, 0.57)"), 100, 30, 56),
    ],
)
def test_sets_are_hidden_over_their_hull(secret: str, cases: tuple[str, ...], n: int, low: int, high: int) -> None:
    assert pairs(secret, n, cases=cases) == CountPairs(n, low, high, high - low)


def test_the_counts_of_a_case() -> None:
    (case, rest) = parse_cases(("abs < 0.3", ">= 0.3"))
    assert counts_in(case, 10, 10) == ((0, 2),)
    assert counts_in(rest, 10, 10) == ((3, 10),)
    assert counts_in(parse_cases(("> 12", "< 1"))[0], 10, 1) == ()


@pytest.mark.parametrize(
    ("secret", "data", "n", "said"),
    [
        (SHARE, {"between": (0.51, 0.59)}, 10, "holds no whole count of 10 rows; widen it"),
        (SHARE, {"between": (0.45, 0.59)}, 10, "holds a single count of 10 rows, 5; there is nothing to hide"),
        (COUNT, {"between": (5, 11)}, 10, "counts must be from 0 to the number of rows, 10. Got 5 to 11"),
        (COUNT, {"between": (-1, 4)}, 10, "counts must be from 0 to the number of rows, 10. Got -1 to 4"),
        (SHARE, {"between": (0.5, 1.5)}, 10, "shares must be from 0 to 1, as in 25% or 0.25. Got 0.5 to 1.5."),
        (COUNT, {"cases": ("> 12", "< 3")}, 10, "each case must hold a possible count of 10 rows"),
    ],
)
def test_impossible_ranges(secret: str, data: dict[str, Any], n: int, said: str) -> None:
    with pytest.raises(QueryError) as caught:
        pairs(secret, n, **data)
    assert said in str(caught.value)
    assert str(caught.value).startswith(secret)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"between": (0.25, 0.4)}, (0.25, 0.4)),
        ({"cases": ("< 0.3", ">= 0.3")}, (0.0, 1.0)),
        ({"cases": ("[0.1, 0.2]", "(0.4, 0.5]")}, (0.1, 0.5)),
    ],
)
def test_shares_of_a_population(data: dict[str, Any], found: tuple[float, float]) -> None:
    assert share_range(Parameter(SHARE, **data)) == found


@pytest.mark.parametrize("data", [{"between": (0.5, 1.5)}, {"between": (-0.5, 0.5)}, {"cases": ("[-1, 0]", "[0.5, 1]")}])
def test_impossible_shares_of_a_population(data: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="must be a range of shares from 0 to 1"):
        share_range(Parameter(SHARE, **data))
