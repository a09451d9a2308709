"""Families of chains: their corners against the best law in each direction, and every guard on both of its sides."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.chain_family import MOST_STATES_OF_INTERVALS, ChainFamily
from attrpriv.numerics.laws.markov import LEAST, MOST_STATES, MarkovChain

Row = tuple[float, ...]
SLOW = ChainFamily(((0.8, 0.1), (0.1, 0.9)), ((0.9, 0.2), (0.1, 0.9)))
ROWS: dict[str, tuple[Row, Row]] = {
    "two states": ((0.8, 0.05), (0.95, 0.2)),
    "an end that cannot be reached": ((0.5, 0.0), (1.0, 0.3)),
    "three states": ((0.1, 0.2, 0.3), (0.5, 0.4, 0.6)),
    "one entry is fixed": ((0.25, 0.125, 0.0), (0.25, 0.75, 0.5)),
    "only one law": ((0.25, 0.25, 0.5), (0.5, 0.5, 0.5)),
    "five states": ((0.0, 0.1, 0.05, 0.2, 0.0), (0.3, 0.4, 0.25, 0.6, 1.0)),
}


def exact(row: Row) -> list[Fraction]:
    return [Fraction(repr(p)) for p in row]


def best(low: Row, high: Row, direction: list[int]) -> Fraction:
    """The largest mean of `direction` under any law of the row: what is left goes to the best entries first."""
    found, ends = exact(low), exact(high)
    left = 1 - sum(found)
    for k in sorted(range(len(low)), key=lambda k: -direction[k]):
        more = min(left, ends[k] - found[k])
        found[k], left = found[k] + more, left - more
    assert left == 0
    return sum((p * w for p, w in zip(found, direction, strict=True)), Fraction(0))


def family(low: Row, high: Row) -> ChainFamily:
    """A family with this first row, and stays elsewhere."""
    others = tuple(tuple(float(i == j) for j in range(len(low))) for i in range(1, len(low)))
    return ChainFamily((low, *others), (high, *others))


@pytest.mark.parametrize("name", ROWS)
def test_no_law_of_a_row_is_further_out_than_its_corners(name: str) -> None:
    low, high = ROWS[name]
    corners = family(low, high).corners(0)
    assert len(set(corners)) == len(corners)
    for corner in corners:
        assert sum(corner) == pytest.approx(1, abs=1e-15)
        assert all(a <= p <= b for a, p, b in zip(low, corner, high, strict=True))
        assert sum(a < p < b for a, p, b in zip(low, corner, high, strict=True)) <= 1
    rng = random.Random(name)
    size = len(low)
    directions = [*itertools.permutations(range(size)), *([rng.randint(-9, 9) for _ in range(size)] for _ in range(40))]
    for direction in map(list, directions):
        reached = max(sum(p * w for p, w in zip(corner, direction, strict=True)) for corner in corners)
        assert reached == pytest.approx(float(best(low, high, direction)), abs=1e-14)


def test_a_single_law_is_divided_by_its_sum() -> None:
    third = 0.3333333333
    one = ChainFamily(((third,) * 3, (0.25, 0.25, 0.5), (0.0, 0.0, 1.0)), ((third,) * 3, (0.25, 0.25, 0.5), (0.0, 0.0, 1.0)))
    assert not one.intervals
    assert one.corners(0) == ((1 / 3,) * 3,)
    assert one.corners(1) == ((0.25, 0.25, 0.5),)
    assert SLOW.intervals


def test_members_are_all_matrices_of_corners_from_a_uniform_start() -> None:
    assert SLOW.members() == (
        MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9))), MarkovChain((0.5, 0.5), ((0.8, 0.2), (0.1, 0.9))),
    )  # fmt: skip
    three = family((0.1, 0.2, 0.3), (0.5, 0.4, 0.6)).members()
    assert {chain.initial for chain in three} == {(1 / 3,) * 3}
    assert len(three) == len(family((0.1, 0.2, 0.3), (0.5, 0.4, 0.6)).corners(0))


def stays(states: int, slack: float = 0.0) -> ChainFamily:
    """So many states; the first row is a law, or leaves by up to `slack`."""
    low = tuple(tuple(float(i == j) for j in range(states)) for i in range(states))
    if not slack:
        return ChainFamily(low, low)
    first = (1 - slack, *low[0][1:])
    return ChainFamily((first, *low[1:]), ((1.0, slack, *low[0][2:]), *low[1:]))


def test_as_many_states_as_can_be_looked_at() -> None:
    assert stays(MOST_STATES).states == MOST_STATES
    assert stays(MOST_STATES_OF_INTERVALS, 0.25).intervals
    assert not stays(MOST_STATES_OF_INTERVALS + 1).intervals
    for states, slack in ((MOST_STATES + 1, 0.0), (1, 0.0), (0, 0.0), (MOST_STATES_OF_INTERVALS + 1, 0.25)):
        with pytest.raises(UsageError, match="transition"):
            stays(states, slack)


LAW = (0.5, 0.5)
TINY = LEAST / 2


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        ((LAW, LAW), (LAW,), "as many upper as lower"),
        ((LAW, LAW), (LAW, LAW, LAW), "as many upper as lower"),
        (((0.5, 0.5, 0.0), LAW), ((0.5, 0.5, 0.0), LAW), "row 1: must have one probability"),
        (((0.5, 0.5, 0.0), LAW), (LAW, LAW), "row 1: must have one probability"),
        ((LAW, LAW), (LAW, (0.5, 0.5, 0.0)), "row 2: must have one probability"),
        (((-0.5, 0.5), LAW), ((1.0, 0.5), LAW), "from 0 to 1"),
        (((0.5, 0.5), LAW), ((1.25, 0.5), LAW), "from 0 to 1"),
        (((0.75, 0.5), LAW), ((0.5, 0.5), LAW), "from 0 to 1"),
        (((float("nan"), 0.5), LAW), ((0.5, 0.5), LAW), "from 0 to 1"),
        (((0.5, 0.5), LAW), ((float("nan"), 0.5), LAW), "from 0 to 1"),
        (((0.5, 0.5), LAW), ((float("inf"), 0.5), LAW), "from 0 to 1"),
        (((TINY, 0.5), LAW), ((0.5, 0.5), LAW), "0 or at least"),
        (((0.0, 0.5), LAW), ((TINY, 1.0), LAW), "0 or at least"),
        (((1.0, TINY), LAW), ((1.0, TINY), LAW), "0 or at least"),
        (((0.5, 0.499), LAW), ((0.5, 0.499), LAW), "row 1: must sum to 1"),
        (((0.5, 0.501), LAW), ((0.5, 0.501), LAW), "row 1: must sum to 1"),
        ((LAW, (0.25, 0.25)), (LAW, (0.5, 0.49)), "row 2: must hold a law"),
        ((LAW, (0.5, 0.51)), (LAW, (0.75, 0.75)), "row 2: must hold a law"),
    ],
)
def test_what_is_no_family(low: tuple[Row, ...], high: tuple[Row, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        ChainFamily(low, high)


@pytest.mark.parametrize(
    ("low", "high", "corners"),
    [
        ((0.0, 0.0), (1.0, 1.0), {(0.0, 1.0), (1.0, 0.0)}),
        ((LEAST, 0.0), (1.0, 1.0), {(LEAST, 1.0), (1.0, 0.0)}),
        ((0.0, 0.5), (LEAST, 1.0), {(0.0, 1.0), (LEAST, 1.0)}),
        ((0.25, 0.25), (0.5, 0.5), {(0.5, 0.5)}),
        ((0.5, 0.5), (0.75, 0.75), {(0.5, 0.5)}),
        ((0.1, 0.7), (0.3, 0.9), {(0.1, 0.9), (0.3, 0.7)}),
        ((0.5, 0.5 + 5e-10), (0.5, 0.5 + 5e-10), {(0.5 / (1 + 5e-10), (0.5 + 5e-10) / (1 + 5e-10))}),
    ],
)
def test_what_is_just_a_family(low: Row, high: Row, corners: set[Row]) -> None:
    assert set(ChainFamily((low, LAW), (high, LAW)).corners(0)) == corners
