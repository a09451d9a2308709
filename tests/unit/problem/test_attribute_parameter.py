"""A parameter that is a column's name alone: whatever the assumption gives that column in the population."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.errors import PolicyError
from attrpriv.problem.secret import Parameter, Secret


def test_a_range_a_distance_both_or_neither() -> None:
    assert Parameter("income", between=(1.0, 4.0)).gap == 3
    assert Parameter("income", within=2.0).gap == 2
    assert Parameter("income", between=(1.0, 4.0), within=2.0).gap == 2
    bare = Parameter("income")
    assert bare.gap == float("inf")
    assert str(bare) == "income of the population, every two values"


def test_what_it_reads() -> None:
    made = Parameter('"body weight"', within=1.0)
    assert (made.attribute, made.columns, made.text) == ("body weight", ("body weight",), '"body weight"')
    assert (made.forms, made.single, made.composition) == ((), None, None)
    assert Secret.from_json(made.to_json()) == made
    assert Parameter("share(gender = 'F')", between=(0.2, 0.4)).attribute is None
    assert Secret("mean(income)", within=1.0).attribute is None


@pytest.mark.parametrize(
    ("parameter", "pairs", "says"),
    [
        ("income", {"cases": ["< 5", ">= 5"]}, "income takes between"),
        ("income", {"between": {"income": [0.0, 1.0]}}, "income takes between"),
        ("mean(income)", {"within": 1.0}, "or a column alone"),
        ("a.b", {"within": 1.0}, "must be"),
        ("body weight", {"within": 1.0}, "must be"),
        ("5", {"within": 1.0}, "must be"),
    ],
)
def test_what_is_refused(parameter: str, pairs: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        Parameter(parameter, **pairs)


def test_a_secret_of_the_table_is_not_a_bare_name() -> None:
    with pytest.raises(PolicyError, match=r"must be a statistic of a column.*Write mean\(income\)"):
        Secret("income", within=1.0)
