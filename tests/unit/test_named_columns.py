"""What the schema alone says of the values for missing entries."""

from __future__ import annotations

from typing import Any

import pytest

import attrpriv as ap
from attrpriv.errors import DataError
from attrpriv.named_columns import require_columns
from attrpriv.queries.sql import parse_queries

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


def test_an_error_is_one_line_whatever_a_name_holds() -> None:
    types = {**TYPES, "a\nb\x1b[2J": "float"}
    with pytest.raises(DataError) as caught:
        require_columns(parse_queries("avg(code) filter (where \"a\nb\x1b[2J\" = 'x')"), policy({}), types)
    assert str(caught.value) == "condition: must compare a float column with a number. Got \"a\\nb\\x1b[2J\" = 'x'."
