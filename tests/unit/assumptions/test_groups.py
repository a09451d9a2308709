"""The groups assumption: what it accepts, how it refuses, and the plain numbers it becomes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.groups import Groups, GroupTolerance
from attrpriv.errors import PolicyError, QueryError, RefusedError
from attrpriv.numerics.laws.groups import GroupCase
from attrpriv.numerics.laws.records import CountPairs
from attrpriv.problem.assumption import Assumption
from attrpriv.queries.conditions import parse_condition

PAIRS = CountPairs(100, 25, 40, 15)


def groups(**changed: Any) -> Groups:
    base: dict[str, Any] = {
        "sensitive": "gender",
        "mean": {"F": {"hours": 36, "pay": 20}, "M": {"hours": 42, "pay": 25}, "X": {"hours": 40, "pay": 22}},
        "sd": {"F": {"hours": 11, "pay": 4}, "M": {"hours": 12, "pay": 5}, "X": {"hours": 9, "pay": 6}},
        "tolerance": {"mean": 0.02, "sd": 0.1},
    }
    return Groups(**{**base, **changed})


CORRELATED = {category: {"hours~pay": 0.3} for category in "FMX"}


def test_what_it_says() -> None:
    made = groups()
    assert (made.categories, made.columns) == (("F", "M", "X"), ("hours", "pay"))
    assert made.mean_of("M", "hours") == 42
    assert made.sd_range("F", "hours") == pytest.approx((9.9, 12.1))
    assert str(made) == (
        "independent rows, normal within each of 3 categories of gender (hours, pay); tolerance mean 0.02 sd, sd 0.1; "
        "shape: not examined"
    )
    assert str(groups(tolerance=0)).endswith("tolerance 0: every stated moment is taken as exact; shape: not examined")
    assert groups(tolerance=0).tolerance == GroupTolerance(mean=0, sd=0)


def test_it_goes_through_json_and_stays_as_it_is() -> None:
    made = groups(correlation=CORRELATED, prior={"F": 0.5, "M": [0.4, 0.5]}, other="X")
    again = Assumption.of_kind(json.loads(json.dumps(made.to_json())))
    assert again == made
    assert hash(again) == hash(made)
    with pytest.raises(TypeError):
        made.mean["F"]["hours"] = 1.0  # type: ignore[index]


def test_a_covariance() -> None:
    made = groups(correlation={**CORRELATED, "M": {("pay", "hours"): -0.5}})
    np.testing.assert_allclose(made.covariance("M", ["hours", "pay"]), [[144, -30], [-30, 25]])
    assert made.covariance("F", ["pay"]) == ((16.0,),)
    assert groups().covariance("F", ["pay"]) == ((16.0,),)
    with pytest.raises(RefusedError, match=r"^assume\.correlation: "):
        groups().covariance("F", ["hours", "pay"])


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"mean": {"F": {"hours": 36}}, "sd": {"F": {"hours": 1}}}, "mean: needs two or more categories. Got F."),
        ({"sd": {"F": {"hours": 1, "pay": 1}, "M": {"hours": 1, "pay": 1}}}, "sd: needs the same categories as mean"),
        ({"mean": {"F": {"hours": 1}, "M": {"hours": 1, "pay": 1}, "X": {"hours": 1}}}, "mean: M: needs the same columns"),
        ({"sd": {c: {"hours": 1} for c in "FMX"}}, "sd: F: needs the same columns as mean: hours, pay. Got missing pay."),
        ({"sd": {c: {"hours": 0, "pay": 1} for c in "FMX"}}, "sd.F.hours: "),
        ({"mean": {c: {} for c in "FMX"}, "sd": {c: {} for c in "FMX"}}, "mean: needs one or more columns"),
        ({"sensitive": "pay"}, "mean: must not name the sensitive column itself. Got pay."),
        ({"other": "Y"}, "other: must be one of the categories F, M, X. Got Y."),
        ({"prior": {"Y": 0.1}}, "prior: Y is not a category"),
        ({"prior": {"F": 1.5}}, "prior.F: probabilities must be between 0 and 1. Got 1.5."),
        ({"prior": {"F": 0.5, "M": 0.3, "X": 0.1}}, "prior: shares must be able to sum to 1. Got a sum that is off by -0.1."),
        ({"prior": {"F": 0.7, "M": 0.5}}, "prior: shares must be able to sum to 1. Got a sum that is off by 0.2."),
        ({"correlation": {"F": {"hours~pay": 0}}}, "correlation: needs the same categories as mean"),
        ({"correlation": {**CORRELATED, "M": {}}}, "correlation: M: needs every pair of columns"),
        ({"correlation": {**CORRELATED, "M": {"hours~pay": 1.5}}}, "correlation: M: hours~pay: must be between -1 and 1."),
        ({"correlation": {**CORRELATED, "M": {"hours~pay": 0, "hours~age": 0}}}, "correlation: M: must name two different"),
        ({"tolerance": 0.1}, "tolerance: must be a mapping such as {mean: 0.02, sd: 0.02}, or 0. Got 0.1."),
        ({"tolerance": {"slope": 0.1}}, "tolerance.slope: unknown key"),
        ({"tolerance": {"sd": 1}}, "tolerance.sd: "),
        ({"tolerance": {"mean": -1}}, "tolerance.mean: "),
        ({"tolerance": None}, "tolerance: must be a mapping"),
        ({"mean": {"F": {"hours": float("nan")}}}, "mean.F.hours: "),
    ],
)
def test_refusals_are_one_line(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        groups(**changed)
    assert str(caught.value).removeprefix("groups: ").startswith(says)
    assert "\n" not in str(caught.value)


def test_there_is_no_default_tolerance() -> None:
    with pytest.raises(PolicyError, match=r"^tolerance: is required and has no default"):
        Groups.checked({"sensitive": "g", "mean": {"a": {"x": 0}, "b": {"x": 1}}, "sd": {"a": {"x": 1}, "b": {"x": 1}}})


def test_correlations_that_no_table_has() -> None:
    three = {c: {"a": 1.0, "b": 1.0, "c": 1.0} for c in "FM"}
    impossible = {"F": {"a~b": 0.9, "a~c": 0.9, "b~c": -0.9}, "M": {"a~b": 0, "a~c": 0, "b~c": 0}}
    with pytest.raises(PolicyError, match="F: the matrix must be positive semidefinite"):
        Groups(sensitive="g", mean=three, sd=three, correlation=impossible, tolerance=0)


def test_a_condition_splits_the_categories() -> None:
    made = groups()
    assert made.split(parse_condition("gender = 'F'")) == (("F",), ("M", "X"))
    assert made.split(parse_condition("gender in ('F', 'X')")) == (("F", "X"), ("M",))
    assert made.split(parse_condition("not (gender = 'M')")) == (("F", "X"), ("M",))
    for text, says in (("age = 'F'", "about gender alone"), ("gender = 'Y'", "some of"), ("gender != 'Y'", "not for all")):
        with pytest.raises(QueryError, match=says):
            made.split(parse_condition(text))


def test_the_numbers_for_calibration() -> None:
    made = groups()
    assert made.case("hours", ["F", "X"], PAIRS, known=3) == GroupCase(
        100, 25, 40, 15, ((36.0, 11.0), (40.0, 9.0)), ((42.0, 12.0),), 0.02, 0.1, 3
    )
    exact = groups(correlation=CORRELATED, tolerance={"mean": 0.02})
    vector = exact.vector_case(["pay", "hours"], ["M"], PAIRS)
    assert vector.members[0][0] == (25.0, 42.0)
    np.testing.assert_allclose(vector.members[0][1], [[25, 18], [18, 144]])
    assert len(vector.shifts()) == 2 * 4
    with pytest.raises(RefusedError, match=r"tolerance\.sd"):
        groups(correlation=CORRELATED).vector_case(["pay", "hours"], ["M"], PAIRS)
    with pytest.raises(RefusedError, match="known_rows"):
        exact.vector_case(["pay", "hours"], ["M"], PAIRS, known=1)
