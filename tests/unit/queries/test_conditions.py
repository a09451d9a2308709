"""Conditions: text to tree and back, and the meaning that SQL gives to them, missing values included."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import ibis
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrpriv.engines.conditions import check_condition, holds
from attrpriv.engines.tables import open_table
from attrpriv.errors import DataError, QueryError
from attrpriv.queries.conditions import (
    Compare,
    Condition,
    In,
    IsNull,
    Join,
    Not,
    Value,
    Written,
    columns_of,
    exact_number,
    exactly,
    literal,
    parse_condition,
)

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
COLUMNS = {"n": "integer", "x": "float", "t": "text", "b": "boolean", 'odd "name"': "integer", "select": "integer"}


def trees(values: Any, columns: Any) -> Any:
    """Trees as the parser makes them: a list joined by one word holds no list joined by the same word."""
    leaves = (
        st.builds(Compare, columns, st.sampled_from(OPERATORS), values)
        | st.builds(In, columns, st.lists(values, min_size=1, max_size=3).map(tuple))
        | st.builds(IsNull, columns)
    )
    return st.recursive(
        leaves, lambda parts: st.builds(Not, parts) | st.builds(joined, words, two_or_three(parts)), max_leaves=8
    )


words = st.sampled_from(["and", "or"])


def two_or_three(parts: Any) -> Any:
    return st.lists(parts, min_size=2, max_size=3).map(tuple)


def joined(word: Any, parts: tuple[Condition, ...]) -> Join:
    flat: list[Condition] = []
    for part in parts:
        flat += part.parts if isinstance(part, Join) and part.word == word else (part,)
    return Join(word, tuple(flat))


decimals = st.decimals(-(10**25), 10**25, places=20).map(str).map(exactly).filter(lambda x: isinstance(x, Decimal))
floats = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: str(x) != "-0.0")
numbers = st.integers(-(10**20), 10**20) | floats | decimals
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
anything = numbers | texts | st.booleans()
names = st.sampled_from([*COLUMNS, "é", "a b", "from", 'x"', "'"])


@given(trees(anything, names))
def test_text_and_tree_are_inverse(tree: Condition) -> None:
    text = str(tree)
    assert parse_condition(text) == tree
    assert str(parse_condition(text)) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("x<>5", "x != 5"),
        ("x == 5", "x = 5"),
        ("5 >= x", "x <= 5"),
        ("'a' = t", "t = 'a'"),
        ("x between -1 and 2.5", "x >= -1 and x <= 2.5"),
        ("x not between 1 and 2", "not (x >= 1 and x <= 2)"),
        ("x not in (1, 2)", "not (x in (1, 2))"),
        ("x is not null", "not (x is null)"),
        ("x IS NULL OR x=1 AND x=2", "x is null or (x = 1 and x = 2)"),
        ("(x = 1 and (x = 2 and x = 3))", "x = 1 and x = 2 and x = 3"),
        ("t = 'it''s'", "t = 'it''s'"),
        ("b = TRUE", "b = true"),
        ('"a b" = .5', '"a b" = 0.5'),
        ("x in (7, 7.0, 0.50, 1e3, -0.1)", "x in (7, 7.0, 0.5, 1000.0, -0.1)"),
        ("x = 9007199254740993.0", "x = 9007199254740993"),
        ("x = -12345678901234567.010", "x = -12345678901234567.01"),
        ("x = 12345678901234567.01e-30", "x = 0.00000000000001234567890123456701"),
        ("x > 1e30", "x > 1e+30"),
    ],
)
def test_what_is_read(text: str, canonical: str) -> None:
    assert str(parse_condition(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "x", "true", "1 = 1", "x = y", "x = null", "x in (null)", "x in ()", "x in (select 1)", "x is true", "t.x = 1",
        "x + 1 = 2", "lower(t) = 'a'", "t like 'a%'", "x = 1e400", "x = - -5", "x = date '2020-01-01'", "x = ?", "x = $1",
        "t = 'a' collate nocase", "x between symmetric 2 and 1", "x < 5 < 7", "x is distinct from 1", "x = 1; x = 2",
        "x = 1, x = 2", "x = any (1)", "", "x =",
    ],
)  # fmt: skip
def test_what_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match=r"must (be|compare)"):
        parse_condition(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("sex = Female", "A text goes in single quotes: 'Female'."),
        ('sex = " Female"', "A text goes in single quotes: ' Female'."),
        ("hours-per-week > 40", 'A name that is no plain word goes in double quotes: "hours-per-week".'),
        ("40 < hours-per-week", 'A name that is no plain word goes in double quotes: "hours-per-week".'),
        ("'hours-per-week' > 40", 'A name that is no plain word goes in double quotes: "hours-per-week".'),
        ("hours - 1 > 40", "Got 'hours - 1 > 40'."),
    ],
)
def test_quotes_that_were_meant(text: str, hint: str) -> None:
    with pytest.raises(QueryError, match="must compare a column with a constant") as caught:
        parse_condition(text)
    assert str(caught.value).endswith(hint)


@given(st.from_regex(r"[0-9]{1,30}(\.[0-9]{0,30})?(e-?[0-9]{1,2})?", fullmatch=True, alphabet="0123456789.e-"))
def test_a_constant_is_the_number_that_is_written(text: str) -> None:
    for written, wanted in ((text, Fraction(text)), (f"-{text}", -Fraction(text))):
        condition = parse_condition(f"x = {written}")
        assert isinstance(condition, Compare)
        assert not isinstance(condition.value, str)
        assert exact_number(condition.value) == wanted
        assert parse_condition(str(condition)) == condition


@pytest.mark.parametrize("text", ["1e-400", "1e-999999999", "0." + "1" * 2000, "9" * 5000, "1e309"])
def test_numbers_that_no_one_writes(text: str) -> None:
    with pytest.raises(QueryError, match="condition: numbers must be"):
        parse_condition(f"x = {text}")


def test_which_columns_are_read() -> None:
    assert columns_of(parse_condition("not (b = true or a in (1)) and a is null and b = false")) == ("b", "a")
    assert columns_of(Written("city", "Bern")) == ("city",)


def test_a_category_is_named_as_it_is_written() -> None:
    assert str(Written("a b", "x")) == "\"a b\" is 'x'"


# What SQL says. The engine's own SQL is the reference: the canonical text goes to DuckDB as it is.

ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-2, 2),
        st.none() | st.sampled_from([-1.5, 0.0, 0.1, 2.0, float("nan"), float("inf")]),
        st.none() | st.sampled_from(["", "a", "b", "A", "it's", "NULL"]),
        st.none() | st.booleans(),
    ),
    min_size=1,
    max_size=12,
)
VALUES: dict[str, Any] = {
    "n": st.integers(-2, 2) | st.sampled_from([0.5, -1.0]),
    "x": st.sampled_from([-1.5, 0.0, 0.1, 2, 7.25]),
    "t": st.sampled_from(["", "a", "b", "A", "it's", "NULL"]),
    "b": st.booleans(),
}
TYPED = st.one_of([trees(values, st.just(column)) for column, values in VALUES.items()])
MIXED = st.recursive(TYPED, lambda parts: st.builds(Not, parts) | st.builds(joined, words, two_or_three(parts)), max_leaves=4)


@given(ROWS, MIXED)
def test_a_condition_means_what_sql_says(rows: list[tuple[Any, ...]], tree: Condition) -> None:
    data = pa.table(
        {
            "n": pa.array([row[0] for row in rows], pa.int64()),
            "x": pa.array([row[1] for row in rows], pa.float64(), from_pandas=False),
            "t": pa.array([row[2] for row in rows], pa.string()),
            "b": pa.array([row[3] for row in rows], pa.bool_()),
        }
    )
    check_condition(COLUMNS, tree)
    connection = engine().con
    connection.register("data", data)
    table = engine().table("data")
    ours = engine().to_pyarrow(table.select(h=holds(table, tree)))["h"].to_pylist()
    theirs = [found for (found,) in connection.execute(f"SELECT coalesce({tree}, false) FROM data").fetchall()]
    assert ours == theirs


@cache
def engine() -> Any:
    return ibis.duckdb.connect()


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (Compare("nowhere", "=", 1), "the column must be one of the table's. Got nowhere"),
        (Compare("n", "=", "1"), "must compare an integer column with a number"),
        (Compare("n", "=", True), "must compare an integer column"),
        (Compare("t", "<", 1), "must compare a text column"),
        (In("b", (True, 1)), "must compare a boolean column"),
        (Not(Join("or", (IsNull("n"), Compare("x", "=", "a")))), "must compare a float column"),
        (Compare("d", "=", "2020-01-01"), "must hold numbers, text, booleans or dates. Got d in d = "),
        (Written("x", "1"), "x is not a category column; declare bins"),
        (Written("d", "1"), "d is not a category column; declare bins"),
    ],
)
def test_what_the_schema_does_not_allow(condition: Condition, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_condition({**COLUMNS, "d": "other"}, condition)


def test_a_category_by_its_text() -> None:
    data = pa.table({"n": pa.array([1, 10, None]), "b": pa.array([True, False, None]), "t": pa.array(["1", "true", None])})
    source = open_table(data)
    for column, text in {"n": "1", "b": "true", "t": "1"}.items():
        found = source.engine.to_pyarrow(source.table.select(h=holds(source.table, Written(column, text))))
        assert found["h"].to_pylist() == [True, False, False]


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (1, "1"), (-0.5, "-0.5"), (1e300, "1e+300"), ("a'b", "'a''b'"), ("", "''")]
)
def test_constants_as_sql_writes_them(value: Value, text: str) -> None:
    assert literal(value) == text
