"""Arithmetic on columns: one form for equal polynomials, exact coefficients, texts that are read back."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.errors import QueryError
from attrpriv.queries import arithmetic
from attrpriv.queries.arithmetic import Arithmetic, parse_arithmetic
from attrpriv.queries.query import quoted

SAME = {
    "linear": ("2*x + y", "y + x*2", "x + x + y", "(2*x) - (-y)", "y/1 + x/0.5", "2e0*x+1.0*y"),
    "constant": ("x - 1", "-1 + x", "x + 1 - 2", "(x*3 - 3)/3"),
    "thirds": ("x / 3", "x * (1/3)", "2*x/6", "x - 2*x/3"),
    "products": ("x*y + x", "x*(y + 1)", "(1 + y)*x"),
    "square": ("(x - y)*(x - y)", "x*x - 2*x*y + y*y", "y*y - 2*y*x + x*x"),
    "quoted": ('2 * "body weight"', '"body weight" + "body weight"'),
}


@pytest.mark.parametrize("name", SAME)
def test_equal_polynomials_have_one_text(name: str) -> None:
    assert len({parse_arithmetic(text) for text in SAME[name]}) == 1
    assert len({parse_arithmetic(text).text for text in SAME[name]}) == 1


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("y + 2*x", "2 * x + y"),
        ("3 - x", "-x + 3"),
        ("x/3 - 2*y/7", "x / 3 - 2 * y / 7"),
        ("0.1*x + 0.2*x", "0.3 * x"),
        ("x*0.5e-3", "0.0005 * x"),
        ("1e22*x", "10000000000000000000000 * x"),
        ("y*x*x - 1/3", "x * x * y - 1 / 3"),
        ('"select" * "a""b"', '"a""b" * "select"'),
    ],
)
def test_the_canonical_text(text: str, canonical: str) -> None:
    assert parse_arithmetic(text).text == canonical
    assert parse_arithmetic(canonical).text == canonical


def test_a_linear_form_shows_its_coefficients() -> None:
    form = parse_arithmetic("0.1*x - y/3 + 5").linear
    assert form is not None
    assert dict(form.coefficients) == {"x": Fraction(1, 10), "y": Fraction(-1, 3)}
    assert form.constant == 5
    assert form.of({"x": Fraction(10), "y": Fraction(3)}) == 5
    assert parse_arithmetic("x*y").linear is None
    assert parse_arithmetic("x*y").columns == ("x", "y")
    assert (parse_arithmetic("x").column, parse_arithmetic("2*x").column) == ("x", None)


NAMES = ("x", "y", "body weight", "select", 'a"b')
NUMBERS = st.fractions(min_value=-1000, max_value=1000, max_denominator=60)
TERMS = st.dictionaries(st.lists(st.sampled_from(NAMES), max_size=3).map(lambda m: tuple(sorted(m))), NUMBERS, max_size=6)


@settings(max_examples=50)
@given(TERMS)
def test_a_canonical_text_is_read_back_as_itself(terms: dict[tuple[str, ...], Fraction]) -> None:
    made = Arithmetic.of(terms)
    if made.columns:
        assert parse_arithmetic(made.text) == made


# A random expression as SQL text, and its value for rows, computed as it is written.


def trees(depth: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    leaf = st.one_of(st.tuples(st.just("column"), st.sampled_from(NAMES)), st.tuples(st.just("number"), st.integers(0, 50)))
    if depth == 0:
        return leaf
    below = trees(depth - 1)
    divisors = st.integers(1, 12)
    return st.one_of(
        leaf,
        st.tuples(st.sampled_from("+-"), below, below),
        st.tuples(st.just("*"), st.one_of(leaf, below), leaf),
        st.tuples(st.just("/"), below, divisors),
        st.tuples(st.just("neg"), below),
    )


def written(tree: tuple[Any, ...]) -> str:
    kind, *parts = tree
    if kind == "column":
        return quoted(str(parts[0]))
    if kind == "number":
        return str(parts[0])
    if kind == "neg":
        return f"-({written(parts[0])})"
    if kind == "/":
        return f"({written(parts[0])}) / {parts[1]}"
    return f"({written(parts[0])}) {kind} ({written(parts[1])})"


def value(tree: tuple[Any, ...], row: dict[str, Fraction]) -> Fraction:
    kind, *parts = tree
    if kind == "column":
        return row[str(parts[0])]
    if kind == "number":
        return Fraction(parts[0])
    first = value(parts[0], row)
    if kind == "neg":
        return -first
    if kind == "/":
        return first / Fraction(parts[1])
    second = value(parts[1], row)
    return first + second if kind == "+" else first - second if kind == "-" else first * second


def of_polynomial(made: Arithmetic, row: dict[str, Fraction]) -> Fraction:
    total = Fraction(0)
    for monomial, weight in made.terms:
        product = weight
        for column in monomial:
            product *= row[column]
        total += product
    return total


def disagreements(tree: tuple[Any, ...], rows: list[list[Fraction]]) -> int:
    """In how many rows the polynomial differs from the expression as it is written."""
    try:
        made = parse_arithmetic(written(tree))
    except QueryError as error:
        return 0 if any(word in str(error) for word in ("cancels", "name a column", "at most")) else len(rows)
    listed = [dict(zip(NAMES, row, strict=True)) for row in rows]
    return sum(of_polynomial(made, row) != value(tree, row) for row in listed)


ROWS = st.lists(st.lists(st.fractions(-9, 9, max_denominator=4), min_size=5, max_size=5), min_size=1, max_size=3)


@settings(max_examples=60)
@given(trees(), ROWS)
def test_the_polynomial_is_the_expression(tree: tuple[Any, ...], rows: list[list[Fraction]]) -> None:
    assert disagreements(tree, rows) == 0


def test_the_test_of_meaning_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = ("-", ("column", "x"), ("number", 3))
    rows = [[Fraction(k)] * 5 for k in range(4)]
    monkeypatch.setattr(arithmetic, "_plus", lambda left, right, sign, node: {**left, **right})
    parse_arithmetic.cache_clear()
    assert disagreements(tree, rows) > 0
    parse_arithmetic.cache_clear()


@pytest.mark.parametrize(
    "text", ["1", "x - x", "0*x", "x/y", "x/0", "sin(x)", "'x'", "x || y", "x.y", "x[1]", "", "x +", "x; y", "x, y", "1e400*x"]
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="Got "):
        parse_arithmetic(text)
