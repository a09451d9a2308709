"""What screens say of a promise, and how numbers of a form are read."""

from __future__ import annotations

import math

import pytest

from attrpriv.errors import UsageError
from attrpriv.policy.strict_yaml import dump_strict, load_strict
from attrpriv.studio.asked import number_in, range_in, releases, secrets, whole_columns
from attrpriv.studio.draft import TODO
from attrpriv.studio.pages.hide import promised
from attrpriv.studio.skeleton import law_skeleton, skeleton
from attrpriv.studio.sources import numbers_in, without


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 0.0), (1.0, 1e-6), (3.0, 0.01), (10.0, 0.1)])
def test_the_best_guess_is_right_as_often_as_the_worst_law_allows(epsilon: float, delta: float) -> None:
    """The worst pair of laws under (epsilon, delta): delta gives the value away, else randomised response."""
    kept = 1 / (1 + math.exp(-epsilon))
    assert promised(epsilon, delta) == pytest.approx(delta + (1 - delta) * kept, abs=1e-12)


def test_no_guess_is_right_more_than_always() -> None:
    assert promised(800.0, 0.5) <= 1


@pytest.mark.parametrize(
    ("text", "value"),
    [("20000", 20_000), ("-3", -3), ("0.5", 0.5), ("1e-6", 1e-6), ("25%", 0.25), ("2.5 %", 0.025), ("7%", 0.07)],
)
def test_a_number_of_a_form(text: str, value: float) -> None:
    assert number_in("within", text) == value
    assert isinstance(number_in("within", text), type(value))


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "-inf", "1e999", "%", "1,5", "0x10", "1 2", "TODO"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(UsageError, match="within: must be a number"):
        number_in("within", text)


@pytest.mark.parametrize(("low", "high"), [("2", "1"), ("1", "1"), ("", "1"), ("1", "")])
def test_what_is_no_range(low: str, high: str) -> None:
    with pytest.raises(UsageError, match="between: must be"):
        range_in(low, high)


def test_open_decisions_are_no_secrets_and_no_queries() -> None:
    said = {"protect": [{"secret": TODO}, {"secret": "columns(age)"}], "release": ["avg(x)", "avg(TODO)"]}
    assert secrets(said) == [{"secret": "columns(age)"}]
    assert whole_columns(said)
    assert releases(said) == ("avg(x)",)


COLUMNS = {"hours": "integer", "income": "integer", "gender": "text", "stay": "integer"}


@pytest.mark.parametrize(
    ("secret", "release", "named", "kind", "open_numbers"),
    [
        ("mean(income)", "avg(hours)", "", "gaussian", 7),
        ("share(gender = 'F')", "avg(hours)", "M", "groups", 6),
        ("count(gender = 'F')", "count(*) filter (where stay > 7)", "F, M, other", "counts", 4),
    ],
)
def test_a_skeleton_asks_for_what_is_needed(secret: str, release: str, named: str, kind: str, open_numbers: int) -> None:
    made = skeleton({"protect": [{"secret": secret}], "release": [release]}, COLUMNS, named)
    assert made["kind"] == kind
    assert str(made).count(TODO) == open_numbers
    assert len(numbers_in({"assume": made}, "assume")) == open_numbers


def test_a_skeleton_without_a_query_or_categories_says_what_lacks() -> None:
    with pytest.raises(UsageError, match="release: must be known first"):
        skeleton({"protect": [{"secret": "mean(income)"}]}, COLUMNS)
    with pytest.raises(UsageError, match="categories: must be all values of gender"):
        skeleton({"protect": [{"secret": "share(gender = 'F')"}], "release": ["avg(hours)"]}, COLUMNS)


def test_the_ends_of_a_law() -> None:
    made = law_skeleton({"protect": [{"secret": "columns(stay, hours)"}]}, COLUMNS)
    assert made["hours"] == {"law": "uniform", "low": TODO, "high": TODO}
    with pytest.raises(UsageError, match="Got gender"):
        law_skeleton({"protect": [{"secret": "columns(gender)"}]}, COLUMNS)


def test_a_block_goes_with_the_sources_of_its_numbers() -> None:
    said = {"epsilon": 1, "assume": {"sd": {"x": 1}}, "source": {"assume.sd": "a", "bounds.x": "b"}, "bounds": {"x": [0, 1]}}
    left = load_strict(without(dump_strict(said), "assume"))
    assert left == {"epsilon": 1, "source": {"bounds.x": "b"}, "bounds": {"x": [0, 1]}}
    only = {"epsilon": 1, "assume": {"sd": {"x": 1}}, "source": {"assume.sd": "a"}}
    assert load_strict(without(dump_strict(only), "assume")) == {"epsilon": 1}
