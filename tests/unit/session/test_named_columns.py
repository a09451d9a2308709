"""What the schema alone says of categories, and of the values for missing entries."""

from __future__ import annotations

from typing import Any

import pytest

import attrpriv as ap
from attrpriv.errors import DataError
from attrpriv.queries.sql import parse_queries
from attrpriv.session.named_columns import require_columns

TYPES = {"code": "integer", "member": "boolean", "weight": "float", "born": "date", "at": "other", "city": "text"}


def policy(missing: dict[str, float], secret: str = "count(code = 1)", **changes: Any) -> ap.Policy:
    return ap.Policy(protect=[ap.Secret(secret, between=(600, 1400), within=400)], epsilon=1.0, missing=missing, **changes)


@pytest.mark.parametrize(
    ("missing", "secret", "changes", "message"),
    [
        ({"code": 0.5}, "count(code = 1)", {}, "the value for code must be a whole number, as its categories are. Got 0.5."),
        ({"code": 0.5}, "count(city = 'a')", {"categories": {"code": [1, 2]}}, "the value for code must be a whole number"),
        ({"member": 0.5}, "count(member = true)", {}, "the value for member must be 0 or 1, as its categories are. Got 0.5."),
        ({"born": 1}, "count(code = 1)", {}, "needs a numeric column. Got born, which is a date. Fill it in the table."),
        ({"at": 1}, "count(code = 1)", {}, "Got at, which is neither a number nor a boolean."),
        ({"city": 1}, "count(code = 1)", {}, "Got city, which is text."),
    ],
)  # fmt: skip
def test_a_value_that_the_column_cannot_have(
    missing: dict[str, float], secret: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError) as caught:
        require_columns((), policy(missing, secret, **changes), TYPES)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("missing", "secret", "changes"),
    [
        ({"code": 2.0, "member": 1}, "count(code = 1)", {}),
        ({"code": 0.5}, "count(city = 'a')", {}),  # for an average
        ({"code": 0.5}, "count(code >= 1)", {"bins": {"code": [0, 1, 2]}}),
        ({"weight": 0.5}, "count(weight > 1)", {}),
    ],
)
def test_a_value_that_it_can_have(missing: dict[str, float], secret: str, changes: dict[str, Any]) -> None:
    require_columns((), policy(missing, secret, **changes), TYPES)


GROUPS = ap.Groups(
    sensitive="code",
    mean={"1": {"weight": 1.0}, "01": {"weight": 2.0}},
    sd={"1": {"weight": 1.0}, "01": {"weight": 2.0}},
    tolerance=0,
)
COUNTS = ap.Counts(sensitive="code", given={"weight > 1": {"1": 0.2, "+1": 0.3, "rest": 0.4}}, other="rest")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"categories": {"code": ["1", "01"]}}, "categories: a category of code must be a whole number as it is written"),
        ({"categories": {"code": [1, "01", "other"]}}, "Got '01'; no row has it."),
        ({"categories": {"code": ["1.0"]}}, "Got '1.0'; no row has it."),
        ({"assume": [GROUPS]}, "assume: a category of code must be a whole number"),
        ({"assume": [COUNTS]}, "Got '+1'; no row has it."),
        (
            {"protect": [ap.Secret("distribution(city, code)", between={"a~1": (0.1, 0.9), "a~01": (0.1, 0.9)})]},
            "protect: a category of code must be a whole number",
        ),
    ],
)
def test_a_category_that_no_whole_number_is_written_as(changes: dict[str, Any], message: str) -> None:
    stated: dict[str, Any] = {"protect": [ap.Secret("count(code = 1)", between=(600, 1400))], "epsilon": 1.0}
    with pytest.raises(DataError) as caught:
        require_columns((), ap.Policy(**(stated | changes)), TYPES)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"categories": {"code": ["1", "-2", 0, "other"], "city": ["1", "01"]}},
        {"assume": [COUNTS], "bins": {"code": [0, 1, 2, 3]}},
        {"protect": [ap.Secret("distribution(code)", between={"1": (0.1, 0.9), "other": (0.1, 0.9)})]},
    ],
)
def test_categories_that_rows_may_have(changes: dict[str, Any]) -> None:
    stated: dict[str, Any] = {"protect": [ap.Secret("count(code = 1)", between=(600, 1400))], "epsilon": 1.0}
    require_columns((), ap.Policy(**(stated | changes)), TYPES)


def test_an_error_is_one_line_whatever_a_name_holds() -> None:
    types = {**TYPES, "a\nb\x1b[2J": "float"}
    with pytest.raises(DataError) as caught:
        require_columns(parse_queries("avg(code) filter (where \"a\nb\x1b[2J\" = 'x')"), policy({}), types)
    assert str(caught.value) == "query: must compare a float column with a number. Got \"a\\nb\\x1b[2J\" = 'x'."
