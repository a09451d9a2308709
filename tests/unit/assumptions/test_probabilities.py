"""Probabilities as a policy writes them: numbers or intervals, checked with one line each, and averaged over categories."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.assumptions.probabilities import Pair, ValueLaw, among, complement, outward, require_sum, weighted
from attrpriv.errors import PolicyError
from attrpriv.numerics.laws.records import exactly


def law(*probabilities: Any, values: Any = None) -> ValueLaw:
    return ValueLaw(values=list(range(len(probabilities))) if values is None else values, probabilities=list(probabilities))


def test_a_number_stays_a_number_of_any_length() -> None:
    """A third of all doubles, 5/13 among them, has a complement that no double writes: it is a fraction, not an interval."""
    generator = random.Random(5)
    doubles = [5 / 13, *(generator.random() for _ in range(120))]
    complements = [complement((p, p)) for p in doubles]
    assert all(exactly(low) == exactly(high) == 1 - exactly(p) for p, (low, high) in zip(doubles, complements, strict=True))
    assert sum(isinstance(low, Fraction) for low, _ in complements) > 20


@pytest.mark.parametrize("written", ["5/13", " 5 / 13", Fraction(5, 13), "10/26"])
def test_a_fraction_is_kept_as_written(written: Any) -> None:
    found = law(written, Fraction(8, 13))
    assert found.probabilities == ((Fraction(5, 13),) * 2, (Fraction(8, 13),) * 2)
    assert found.to_json()["probabilities"] == ["5/13", "8/13"]
    assert ValueLaw.from_json(found.to_json()) == found


def test_a_decimal_is_kept_to_its_last_digit() -> None:
    written = Decimal("0.38461538461538461538461538")
    ((low, high), _) = law(written, 1 - written).probabilities
    assert low == high == Fraction(written)
    assert law(Decimal("0.25"), Fraction(3, 4)).to_json()["probabilities"] == [0.25, 0.75]  # what a float writes is a float


@pytest.mark.parametrize(
    "wrong", ["0.5", "5/0", "1/3/1", "-1/3", "14/13", "half", Decimal("nan"), Decimal("1e-999999"), f"1/{'3' * 61}"]
)
def test_what_is_no_fraction_is_refused(wrong: Any) -> None:
    assert "Got" in complaint(values=[0, 1], probabilities=[wrong, 0.5])


def test_thirds_sum_to_one_and_nearly_is_left_open() -> None:
    third = ((1 / 3, 1 / 3),) * 3
    assert among(third, (True, False, False)) == (Fraction(1, 3), Fraction(1, 3))
    assert among(third, (True, True, False)) == (Fraction(2, 3), Fraction(2, 3))
    low, high = among(((0.3333333333, 0.3333333333),) * 3, (True, False, False))
    assert low < Fraction(1, 3) < high


@pytest.mark.parametrize("least", [Fraction(1, 10**400), 1 - Fraction(1, 10**400)])
def test_what_floats_would_lose_stays_in_an_interval(least: Fraction) -> None:
    low, high = among(((0.5, 0.5), (0.5, 0.5)), (True, False))
    assert (low, high) == (0.5, 0.5)
    low, high = outward(least, least)
    assert low <= least <= high
    assert low < high


def complaint(**data: Any) -> str:
    with pytest.raises(PolicyError) as caught:
        ValueLaw.checked(data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_number_is_an_interval_of_width_zero() -> None:
    assert law(0.25, (0.5, 0.75), [0, 1]).probabilities == ((0.25, 0.25), (0.5, 0.75), (0.0, 1.0))


def test_json_round_trip() -> None:
    made = ValueLaw(values=("a", "b", "c"), probabilities=(0.25, (0.5, 0.75), (0, 1)))
    assert made.to_json() == {"values": ["a", "b", "c"], "probabilities": [0.25, [0.5, 0.75], [0.0, 1.0]]}
    assert ValueLaw.from_json(made.to_json()) == made


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [
        ([1.5, 0.5], "probabilities must be between 0 and 1. Got 1.5."),
        ([-0.1, 0.5], "probabilities must be between 0 and 1. Got -0.1."),
        ([math.nan, 0.5], "probabilities must be between 0 and 1. Got nan."),
        ([[0.2, 1.2], 0.5], "probabilities must be between 0 and 1. Got 1.2."),
        ([[0.6, 0.4], 0.5], "the low end must not be above the high end. Got [0.6, 0.4]."),
        (["0.5", 0.5], "must be a probability or an interval [low, high]. Got '0.5'."),
        ([True, 0.5], "must be a probability or an interval [low, high]. Got True."),
        ([[0.1, 0.2, 0.3], 0.5], "must be a probability or an interval [low, high]. Got [0.1, 0.2, 0.3]."),
        ([0.5, 0.4], "probabilities must sum to 1. Got a sum of 0.9, off by -0.1."),
        ([0.5, 0.6], "probabilities must sum to 1. Got a sum of 1.1, off by +0.1."),
        ([[0.5, 0.6], [0.6, 0.7]], "probabilities must sum to 1. Got a sum of 1.1, off by +0.1."),
        ([[0.1, 0.3], [0.1, 0.6]], "probabilities must sum to 1. Got a sum of 0.9, off by -0.1."),
        ([0.5], "needs a probability for each value. Got 2 and 1."),
    ],
)
def test_bad_probabilities_say_what_is_wrong(probabilities: list[Any], said: str) -> None:
    assert said in complaint(values=[0, 1], probabilities=probabilities)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1, 1], "values must be different. Got [1, 1]."),
        ([1, 1.0], "values must be different. Got [1, 1.0]."),
        (["1", "1"], "values must be different."),
        ([1, "a"], "values must be all numbers or all names. Got [1, 'a']."),
        ([1], "at least 2"),
    ],
)
def test_bad_values_say_what_is_wrong(values: list[Any], said: str) -> None:
    assert said in complaint(values=values, probabilities=[1 / len(values)] * len(values))


def test_decimal_fractions_may_miss_one_by_their_rounding_only() -> None:
    require_sum(((0.1, 0.1),) * 10)
    require_sum(((0.0, 0.2), (0.3, 0.8)))
    with pytest.raises(ValueError, match=r"off by \+1e-08"):
        require_sum(((0.5, 0.5), (0.50000001, 0.50000001)))


# ------------------------------------------------------------------------------------------------------------ categories


def test_one_category_has_its_own_law() -> None:
    assert weighted({}, {"a": ((0.1, 0.2), (0.8, 0.9))}) == ((0.1, 0.2), (0.8, 0.9))


def test_known_shares_give_an_average() -> None:
    laws: dict[str, tuple[Pair, ...]] = {"a": ((0.25, 0.25), (0.75, 0.75)), "b": ((0.5, 0.5), (0.5, 0.5))}
    assert weighted({"a": (0.125, 0.125), "b": (0.375, 0.375), "c": (0.5, 0.5)}, laws) == ((0.4375, 0.4375), (0.5625, 0.5625))


@pytest.mark.parametrize("shares", [{}, {"a": (0.5, 0.5)}, {"a": (0.1, 0.2), "b": (0.8, 0.9)}, {"a": (0, 0), "b": (0, 0)}])
def test_unknown_shares_give_the_hull(shares: dict[str, Pair]) -> None:
    laws: dict[str, tuple[Pair, ...]] = {"a": ((0.1, 0.3), (0.7, 0.9)), "b": ((0.2, 0.4), (0.6, 0.8))}
    assert weighted(shares, laws) == ((0.1, 0.4), (0.6, 0.9))


def contains(box: tuple[Pair, ...], point: list[float]) -> bool:
    return all(low - 1e-12 <= p <= high + 1e-12 for (low, high), p in zip(box, point, strict=True))


def random_box(rng: random.Random, exact: bool) -> tuple[Pair, ...]:
    p, slack = rng.random(), 0.0 if exact else rng.random() / 4
    return tuple((max(0.0, q - slack), min(1.0, q + slack)) for q in (p, 1 - p))


def inside(rng: random.Random, box: tuple[Pair, ...]) -> list[float]:
    p = rng.uniform(*map(float, box[0]))
    return [p, 1 - p]


@pytest.mark.parametrize("seed", range(40))
def test_every_mixture_of_members_is_inside(seed: int) -> None:
    """Whatever the shares within their intervals and the laws within their boxes; a box that is a tenth too narrow is not."""
    rng = random.Random(seed)
    exact = seed % 2 == 0
    laws = {name: random_box(rng, exact=False) for name in "abc"}
    shares: dict[str, Pair] = {name: (s, s if exact else s * 1.5) for name, s in zip("abc", (0.2, 0.3, 0.1), strict=True)}
    box = weighted(shares, laws)
    for _ in range(20):
        chosen = {name: rng.uniform(*map(float, shares[name])) for name in "abc"}
        drawn = {name: inside(rng, laws[name]) for name in "abc"}
        total = sum(chosen.values())
        assert contains(box, [sum(chosen[n] * drawn[n][k] for n in "abc") / total for k in range(2)])
    ends = [[laws[n][k][1] for n in "abc"] for k in range(2)]
    extreme = sum(shares[n][0] * e for n, e in zip("abc", ends[0], strict=True)) / 0.6
    shrunk = tuple((low, high - (high - low) / 10) for low, high in box)
    assert not exact or not contains(shrunk, [float(extreme), float(shrunk[1][0])])
