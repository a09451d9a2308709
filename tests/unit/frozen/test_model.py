"""Frozen values: strict in, frozen inside, one line out."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from functools import cached_property
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import Field, ValidationError

from attrpriv.errors import PolicyError
from attrpriv.frozen import Finite, FrozenDict, FrozenMap, FrozenModel, NonNegative, Positive, Range


class Inner(FrozenModel):
    size: Positive


class Example(FrozenModel):
    number: Finite = 0.0
    weight: NonNegative = 0.0
    ends: Range | None = None
    parts: tuple[Inner, ...] = ()
    table: FrozenMap[Finite] = Field(default_factory=dict)


class Computing(FrozenModel):
    size: Positive

    @cached_property
    def twice(self) -> float:
        return 2 * self.size


@pytest.mark.parametrize("deep", [False, True])
def test_what_follows_from_a_value_is_computed_anew_in_a_copy(deep: bool) -> None:
    made = Computing(size=1.0)
    assert made.twice == 2.0
    assert made.model_copy(update={"size": 3.0}, deep=deep).twice == 6.0
    assert made.model_copy(deep=deep).twice == made.twice == 2.0


def test_what_was_computed_is_no_part_of_a_value() -> None:
    made, other = Computing(size=1.0), Computing(size=1.0)
    assert made.twice == 2.0
    assert made == other
    assert other == made
    assert hash(made) == hash(other)
    assert repr(made) == repr(other)
    assert made.to_json() == other.to_json() == {"size": 1.0}
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == other


@pytest.mark.parametrize("bad", ["5", True, None, math.nan, math.inf, [1.0], 10**400])
def test_nothing_is_coerced(bad: object) -> None:
    with pytest.raises(PolicyError, match=r"^number: "):
        Example(number=bad)


@pytest.mark.parametrize("ends", [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf), (1.0,), (1.0, 2.0, 3.0)])
def test_a_range_is_two_finite_ends_in_order(ends: tuple[float, ...]) -> None:
    with pytest.raises(PolicyError, match="ends"):
        Example(ends=ends)
    assert Example(ends=(1, 2)).ends == (1.0, 2.0)


def test_errors_are_one_line_with_the_way_to_the_place() -> None:
    with pytest.raises(PolicyError) as caught:
        Example(parts=[{"size": 1.0}, {"size": -1.0}])
    assert str(caught.value) == "parts[1].size: must be greater than 0. Got -1.0."
    with pytest.raises(PolicyError, match=r"^colour: unknown key\. Remove .* \(1 more after this one\.\)$"):
        Example(colour="red", number="x")  # type: ignore[call-arg]
    with pytest.raises(PolicyError, match=r"^numbr: unknown key\. Did you mean number\? "):
        Example(numbr=1)  # type: ignore[call-arg]
    with pytest.raises(PolicyError, match=r"^parts\[0\]\.sise: unknown key\. Did you mean size\? [^(]*$"):
        Example(parts=[{"sise": 1.0}])
    with pytest.raises(PolicyError, match=r"^size: is required and has no default"):
        Inner()  # type: ignore[call-arg]
    with pytest.raises(PolicyError) as long:
        Example(number="x" * 1000)
    assert len(str(long.value)) < 200


def test_errors_carry_no_earlier_exception() -> None:
    """pydantic's own error quotes its input; it must not hang on as context."""
    with pytest.raises(PolicyError) as caught:
        Example(number="secret")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    with pytest.raises(PolicyError) as caught:
        Example.from_json({"number": "secret"})
    assert caught.value.__context__ is None


def test_frozen_all_the_way_down() -> None:
    value = Example(number=1.0, parts=[Inner(size=2.0)], table={"a": 1.0})
    with pytest.raises(ValidationError):
        value.number = 2.0  # type: ignore[misc]
    with pytest.raises(ValidationError):
        value.parts[0].size = 3.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        value.table["a"] = 2.0  # type: ignore[index]
    assert isinstance(value.parts, tuple)
    assert isinstance(Example().table, FrozenDict)
    assert hash(value) == hash(Example(number=1.0, parts=[Inner(size=2.0)], table={"a": 1.0}))


def test_a_mapping_does_not_follow_the_one_it_was_made_from() -> None:
    source = {"a": 1.0}
    value = Example(table=source)
    source["a"] = 2.0
    assert value.table == {"a": 1.0}
    assert value.table != {"a": 2.0}
    assert list(value.table) == ["a"]
    assert len(value.table) == 1
    assert repr(value.table) == "{'a': 1.0}"


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.__setitem__("a", 2.0),
        lambda table: table.__delitem__("a"),
        lambda table: table.__ior__({"a": 2.0}),
        lambda table: table.update(a=2.0),
        lambda table: table.setdefault("b", 2.0),
        lambda table: table.pop("a"),
        lambda table: table.popitem(),
        lambda table: table.clear(),
    ],
)
def test_a_mapping_has_no_way_to_change(change: Callable[[Any], object]) -> None:
    table = FrozenDict({"a": 1.0})
    with pytest.raises(TypeError, match="stays as it was made"):
        change(table)
    assert table == {"a": 1.0}


def test_a_mapping_is_copied_and_pickled_as_what_it_is() -> None:
    table = FrozenDict({"a": 1.0})
    for made in (copy.copy(table), copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
        assert type(made) is FrozenDict
        assert made == table
        assert hash(made) == hash(table)
    assert table == MappingProxyType({"a": 1.0})


def test_mappings_are_equal_as_often_as_they_are_compared() -> None:
    """One that was found equal is remembered, and nothing else is taken for it."""
    one, same, others = FrozenDict({"a": 1.0, "b": 2.0}), FrozenDict({"b": 2.0, "a": 1.0}), ({"a": 1.0}, {"a": 1.0, "b": 3.0})
    for _ in range(2):
        assert one == same
        assert same == one
        assert hash(one) == hash(same)
        assert all(one != FrozenDict(other) and FrozenDict(other) != one for other in others)
        assert one == {"a": 1.0, "b": 2.0}
        assert one != others[0]
        assert one != 3
    for k in range(100):  # where one was forgotten, another may stand at its place in memory
        assert (one == FrozenDict({"a": 1.0, "b": float(k)})) is (k == 2)


def test_a_model_is_built_when_it_is_first_used() -> None:
    class Late(FrozenModel):
        size: Positive

    assert not Late.__pydantic_complete__
    with pytest.raises(PolicyError, match=r"^size: "):
        Late(size=-1.0)
    assert Late.__pydantic_complete__


def test_copies_and_pickles_are_equal() -> None:
    value = Example(number=1.0, ends=(0, 1), parts=[Inner(size=2.0)], table={"a": 1.0})
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value
    assert Example.from_json(value.to_json()) == value
    assert Example.from_json('{"number": 3}').number == 3.0
