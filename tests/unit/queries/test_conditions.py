"""Conditions: what is read, what is refused, and that a text keeps its meaning on the way to a tree and back."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attrpriv.errors import QueryError
from attrpriv.queries.conditions import Compare, Condition, In, IsNull, Join, Not, columns_of, parse_condition

ACCEPTED = {
    "age > 65": "age > 65",
    "65 < age": "age > 65",
    "gender='F'": "gender = 'F'",
    "gender <> 'F'": "gender != 'F'",
    "smoker = TRUE": "smoker = true",
    "x >= -1.5e3": "x >= -1500.0",
    "gender IN ('F', 'it''s')": "gender in ('F', 'it''s')",
    "gender NOT IN ('F')": "not (gender in ('F'))",
    "age BETWEEN 18 AND 65": "age >= 18 and age <= 65",
    "age IS NULL": "age is null",
    "age IS NOT NULL": "not (age is null)",
    "a = 1 AND b = 2 AND c = 3": "a = 1 and b = 2 and c = 3",
    "a = 1 AND (b = 2 OR c = 3)": "a = 1 and (b = 2 or c = 3)",
    "(a = 1 AND b = 2) OR c = 3": "(a = 1 and b = 2) or c = 3",
    '"a b" = 1': '"a b" = 1',
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_is_accepted(text: str) -> None:
    read = parse_condition(text)
    assert str(read) == ACCEPTED[text]
    assert parse_condition(str(read)) == read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "age",
        "age > income",
        "1 = 1",
        "age + 1 > 2",
        "lower(gender) = 'f'",
        "gender LIKE 'F%'",
        "gender ~ 'F'",
        "t.age > 1",
        "age > (SELECT 1)",
        "age IN (SELECT 1)",
        "age = NULL",
        "age > 1e999",
        "age > 1; DROP TABLE data",
        "age > DATE '2020-01-01'",
        "age > 1, age > 2",
        "CASE WHEN age > 1 THEN true END",
        "age IS TRUE",
        "age > ?",
    ],
)
def test_what_is_refused(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(QueryError) as caught:
        parse_condition(text)
    assert str(caught.value).isprintable()
    assert "Got " in str(caught.value)
    assert capfd.readouterr() == ("", "")


NAMES = st.sampled_from(["a", "b", "a b", "select", 'q"q', "größe"])
VALUES = (
    st.text(max_size=5) | st.integers(-5, 5) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
)
LEAVES: st.SearchStrategy[Condition] = (
    st.builds(Compare, NAMES, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), VALUES)
    | st.builds(In, NAMES, st.lists(VALUES, min_size=1, max_size=3).map(tuple))
    | st.builds(IsNull, NAMES)
)
TREES: st.SearchStrategy[Condition] = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(Join, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=8,
)
OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(condition: Condition, truth: Mapping[str, bool]) -> bool:
    """Whether the condition holds where each of its comparisons, named by its text, does or does not."""
    if isinstance(condition, Not):
        return not holds(condition.part, truth)
    if isinstance(condition, Join):
        joined = all if condition.word == "and" else any
        return joined(holds(part, truth) for part in condition.parts)
    return truth[str(condition)]


def leaves(condition: Condition) -> set[str]:
    if isinstance(condition, Not):
        return leaves(condition.part)
    if isinstance(condition, Join):
        return set().union(*map(leaves, condition.parts))
    return {str(condition)}


@given(TREES, st.randoms(use_true_random=False))
@example(Join("or", (Not(Join("and", (Compare("a", "=", 1), Compare("b", "=", 2)))), IsNull("a"))), None)
@example(Compare("a", "=", "it's \\ -- \" \n"), None)
@example(Compare("a", "<", -0.0), None)
def test_a_text_keeps_its_meaning(tree: Condition, random: Any) -> None:
    read = parse_condition(str(tree))
    assert parse_condition(str(read)) == read
    assert leaves(read) == leaves(tree)
    assert set(columns_of(read)) == set(columns_of(tree))
    for _ in range(8):
        truth = {leaf: bool(random.getrandbits(1)) if random else True for leaf in leaves(tree)}
        assert holds(read, truth) == holds(tree, truth)


@given(NAMES, st.sampled_from(sorted(OPERATORS)), st.integers(-3, 3), st.integers(-3, 3))
def test_a_comparison_may_be_turned_round(name: str, word: str, bound: int, value: int) -> None:
    plain = Compare(name, word, bound)  # type: ignore[arg-type]
    left, sign, right = str(plain).rpartition(f" {word} ")
    turned = parse_condition(f"{right} {sign.strip()} {left}")
    assert isinstance(turned, Compare)
    assert OPERATORS[turned.operator](value, turned.value) == OPERATORS[word](bound, value)


@given(st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from("ab=<>!'\"() andornotinulsbetwee0123456789.-")))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(QueryError):
        parse_condition(text)
