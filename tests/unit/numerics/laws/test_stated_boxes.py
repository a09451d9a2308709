"""Boxes of laws in whole numbers: against all corners of small boxes, in fractions."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction

import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import stated as module
from attrpriv.numerics.laws.records import Interval01, exactly
from attrpriv.numerics.laws.stated import StatedLaws, WholeLaw, require_box

HALF = ((0.5, 0.5), (0.5, 0.5))
BOXES: tuple[tuple[Interval01, ...], ...] = (
    ((0.1, 0.3), (0.25, 0.5), (0.3, 0.9)),
    ((0.0, 0.2), (0.0, 0.0), (0.75, 1.0)),
    ((0.2, 0.7), (0.1, 0.6), (0.05, 0.15)),
    ((Fraction(1, 3), Fraction(1, 2)), (0.125, 0.625), (0.125, 0.125)),
    ((0.2, 0.2), (0.3, 0.3), (0.5, 0.5)),
)


def corners(law: Sequence[Interval01]) -> Iterator[tuple[Fraction, ...]]:
    """Laws of a box of which all but one number is at an end: every extreme one is among them."""
    ends = [(exactly(low), exactly(high)) for low, high in law]
    for free in range(len(law)):
        others = [pair for k, pair in enumerate(ends) if k != free]
        for chosen in itertools.product(*others):
            left = 1 - sum(chosen, Fraction(0))
            if ends[free][0] <= left <= ends[free][1]:
                yield (*chosen[:free], left, *chosen[free:])


@pytest.mark.parametrize("law", BOXES)
def test_forms_and_cumulated_chances_are_those_of_the_worst_corner(law: tuple[Interval01, ...]) -> None:
    whole = StatedLaws((0, 2, 5), (law, law), 1).whole()[0]
    found = list(corners(law))
    for form in itertools.permutations((1, 4, 9)):
        values = [sum(c * p for c, p in zip(form, member, strict=True)) for member in found]
        assert Fraction(whole.most(form), whole.total) == max(values)
        assert Fraction(whole.least(form), whole.total) == min(values)
    for k in range(3):
        sums = [sum(member[: k + 1]) for member in found]
        assert Fraction(whole.cumulated(most=True)[k], whole.total) == max(sums)
        assert Fraction(whole.cumulated(most=False)[k], whole.total) == min(sums)
    assert whole.exact == (len(set(found)) == 1)


@pytest.mark.parametrize("law", BOXES)
def test_the_middle_is_a_law_of_the_box(law: tuple[Interval01, ...]) -> None:
    stated = StatedLaws((0, 2, 5), (law, law), 1)
    middle = stated.middle()[0]
    assert sum(middle) == 1
    assert all(exactly(low) <= p <= exactly(high) for p, (low, high) in zip(middle, law, strict=True))
    rooms = [(p - exactly(low), exactly(high) - exactly(low)) for p, (low, high) in zip(middle, law, strict=True)]
    assert len({up / room for up, room in rooms if room}) <= 1
    assert stated.reach == 5
    assert stated.exact == all(low == high for low, high in law)


def test_the_middle_of_a_box_of_which_all_is_used_up() -> None:
    stated = StatedLaws((0, 2), (((0.25, 0.5), (0.75, 0.8)), ((0.1, 0.25), (0.5, 0.75))), 1)
    assert stated.middle() == ((Fraction(1, 4), Fraction(3, 4)),) * 2


def test_a_law_of_numbers_is_divided_by_its_sum() -> None:
    """In whole numbers of their common denominator: 0.2 + 0.3 + 0.5000000004 is 25 + 37.5 + ... of a thousand millions."""
    stated = StatedLaws((0, 2, 5), (((0.2, 0.2), (0.3, 0.3), (0.5000000004, 0.5000000004)), BOXES[0]), 1)
    whole = stated.whole()[0]
    total = Fraction("1.0000000004")
    assert [Fraction(low, whole.total) for low in whole.lows] == [Fraction(p) / total for p in ("0.2", "0.3", "0.5000000004")]
    assert (whole.rest, whole.caps) == (0, (0, 0, 0))
    assert not stated.exact  # the other one is a box
    assert whole.exact


def test_what_is_left_is_filled_up_in_order() -> None:
    whole = WholeLaw((1, 2, 0), (3, 1, 4), 5, 8)
    assert whole.most((1, 10, 5)) == 1 + 20 + 10 * 1 + 5 * 4
    assert whole.least((1, 10, 5)) == 1 + 20 + 1 * 3 + 5 * 2
    assert not whole.exact


@pytest.mark.parametrize("off", [0.1, 0.3])
def test_wider_by_a_share_of_both_ends(off: float) -> None:
    law: tuple[Interval01, ...] = ((0.1, 0.3), (0.0, 0.5), (0.3, 0.9))
    x = exactly(off)
    wide = StatedLaws((0, 1, 4), (law, BOXES[4]), 1).widened(off)
    wanted = [(exactly(low) * (1 - x), min(Fraction(1), exactly(high) * (1 + x))) for low, high in law]
    assert list(wide.laws[0]) == wanted
    assert wide.laws[0][2][1] == (Fraction(99, 100) if off == 0.1 else 1)
    assert (wide.steps, wide.apart) == ((0, 1, 4), 1)


def test_intervals_that_can_just_be_filled_and_that_cannot() -> None:
    """Of an interval nothing is rounding; of numbers alone a sum may be off by 1e-9."""
    require_box("law", ((0.25, 0.5), (0.75, 0.75)))
    require_box("law", ((0.25, 0.25), (0.5, 0.75)))
    for least in ("0.2500000004", "0.25000000000001"):
        with pytest.raises(UsageError, match="sum to 1"):
            require_box("law", ((Fraction(least), 0.5), (0.75, 0.75)))
        with pytest.raises(UsageError, match="sum to 1"):
            require_box("law", ((0.1, Fraction("0.5") - Fraction(least)), (0.75, 0.75)))
    for off in (9e-10, -9e-10):
        require_box("law", ((0.5, 0.5), (0.5 + off, 0.5 + off)))
    for off in (1.1e-9, -1.1e-9):
        with pytest.raises(UsageError, match="sum to 1"):
            require_box("law", ((0.5, 0.5), (0.5 + off, 0.5 + off)))
    for bad in ((0.5, float("inf")), (float("-inf"), 0.5), (0.5, float("nan")), (-0.1, 0.5), (0.5, 1.1), (0.6, 0.5)):
        with pytest.raises(UsageError, match="between 0 and 1"):
            require_box("law", (bad, (0.5, 0.5)))


def test_a_statistic_of_one_value_and_secrets_of_which_all_are_apart() -> None:
    one = StatedLaws((3,), (((1.0, 1.0),), ((1.0, 1.0),)), 1)
    assert (one.reach, one.whole()[0].lows) == (0, (1,))
    assert StatedLaws((0, 1), (HALF,) * 3, 2).apart == 2
    with pytest.raises(UsageError):
        StatedLaws((0, 1), (HALF,) * 3, 3)


def test_as_many_numbers_as_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many values as there may be, and as many numbers; and one more of either."""
    laws = ((*HALF, (0.0, 0.0)),) * 2
    for name, most in (("MOST_VALUES", 3), ("MOST_NUMBERS", 6)):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, most)
            assert StatedLaws((0, 1, 2), laws, 1).exact
            patched.setattr(module, name, most - 1)
            with pytest.raises(UsageError, match="at most"):
                StatedLaws((0, 1, 2), laws, 1)


def test_random_boxes_by_all_their_corners() -> None:
    rng = random.Random(5)
    for _ in range(12):
        weights = [rng.randint(0, 6) for _ in range(4)]
        total = sum(weights) or 1
        law = [
            (max(Fraction(0), Fraction(w - rng.randint(0, 3), total)), min(Fraction(1), Fraction(w + rng.randint(0, 3), total)))
            for w in weights
        ]
        if not sum(weights) or all(low == high for low, high in law):
            continue
        whole = StatedLaws((0, 1, 2, 3), (tuple(law), tuple(law)), 1).whole()[0]
        form = [rng.randint(0, 20) for _ in range(4)]
        values = [sum(c * p for c, p in zip(form, member, strict=True)) for member in corners(law)]
        assert Fraction(whole.most(form), whole.total) == max(values)
        assert Fraction(whole.least(form), whole.total) == min(values)
