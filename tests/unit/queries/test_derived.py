"""Computations on answers: their canonical text, their value and their interval, against slow twins."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.errors import QueryError
from attrpriv.queries.derived import Combination, Derived, as_ratio, computed, parse_questions, parts_of
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries


def only(text: str) -> Derived:
    (found,) = parse_questions(text)
    assert isinstance(found, Derived)
    return found


# --------------------------------------------------------------------------------------------------------- what is read


@pytest.mark.parametrize(
    ("text", "canonical", "formula", "parts"),
    [
        ("avg(2*x + 1)", "avg(2 * x + 1)", "2 * avg(x) + 1", ["avg(x)"]),
        ("avg(x/2.54)", "avg(50 * x / 127)", "50 * avg(x) / 127", ["avg(x)"]),
        ("sum(2*x + 1)", "sum(2 * x + 1)", "2 * sum(x) + count(*)", ["sum(x)"]),
        ("sum(x) / count(*)", "sum(x) / count(*)", "sum(x) / count(*)", ["sum(x)"]),
        ("sum(x)/sum(y)*100 - 1", "(100 * sum(x) - sum(y)) / sum(y)", "(100 * sum(x) - sum(y)) / sum(y)", ["sum(x)", "sum(y)"]),
        ("1 - sum(x)/sum(y)", "(-sum(x) + sum(y)) / sum(y)", "(-sum(x) + sum(y)) / sum(y)", ["sum(x)", "sum(y)"]),
        ("-mean(x) / 3", "-avg(x) / 3", "-avg(x) / 3", ["avg(x)"]),
        ("sum(x) / (-2 * sum(y))", "sum(x) / (-2 * sum(y))", "sum(x) / (-2 * sum(y))", ["sum(x)", "sum(y)"]),
        ("avg(x) - avg(y)", "avg(x) - avg(y)", "avg(x) - avg(y)", ["avg(x)", "avg(y)"]),
        (
            "SELECT k, sum(x)/count(*) FROM data WHERE z > 1 GROUP BY k",
            "SELECT k, sum(x) filter (where z > 1) / count(*) filter (where z > 1) FROM data GROUP BY k",
            "sum(x) filter (where z > 1) / count(*) filter (where z > 1)",
            [
                "SELECT k, sum(x) filter (where z > 1) FROM data GROUP BY k",
                "SELECT k, count(*) filter (where z > 1) FROM data GROUP BY k",
            ],
        ),
    ],
)
def test_what_is_read(text: str, canonical: str, formula: str, parts: list[str]) -> None:
    found = only(text)
    assert (found.text, found.formula, [part.text for part in found.parts]) == (canonical, formula, parts)
    assert parse_questions(found.text) == (found,)


@pytest.mark.parametrize("text", ["avg(x)", "(avg(x))", "avg(x) * 1", "avg(x + y)", "avg(x * x)", "median(2 * x)", "count(*)"])
def test_a_statistic_stays_one(text: str) -> None:
    (found,) = parse_questions(text)
    assert isinstance(found, Query)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sum(x) * sum(y)", "a product of statistics is not supported"),
        ("sum(x) / sum(y) / sum(z)", "a quotient of quotients is not supported"),
        ("sum(x) / sum(y) + avg(z)", "a sum of two quotients is not supported"),
        ("sum(x) / 0", "must not divide by 0"),
        ("sum(x) / (sum(y) - sum(y))", "must not divide by 0"),
        ("sum(x) - sum(x)", "its statistics cancel out"),
        ("0 * sum(x) / sum(y)", "its statistics cancel out"),
        ("sum(x) / y", "must be computed from statistics"),
        ("sum(x) + 1e300 * 1e300", "numbers must have fewer digits"),
        ("sum(x) * 1e-300 * 1e-300 * 1e-300 + 1", "numbers must have fewer digits"),
        (" + ".join(f"sum(c{k})" for k in range(9)), "at most 8 statistics"),
        ("sum(x) // 2", "division of whole numbers"),
        ("sum(x) / (select 1)", "a subquery"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_questions(text)


def test_statistics_themselves_are_read_as_ever() -> None:
    with pytest.raises(QueryError, match="arithmetic on answers"):
        parse_queries("sum(x) / sum(y)")
    with pytest.raises(QueryError, match="must be text"):
        parse_questions(["sum(x)"])  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------- an average over a subset


def test_an_average_over_a_subset_as_a_quotient() -> None:
    (average,) = parse_queries("avg(x) filter (where k = 'a')")
    found = as_ratio(average)
    assert isinstance(found, Derived)
    assert found.text == average.text
    assert found.formula == "sum(x) filter (where k = 'a') / count(*) filter (where k = 'a')"
    scaled = as_ratio(only("avg(2*x + 3) filter (where k = 'a')"))
    assert isinstance(scaled, Derived)
    assert scaled.text == "avg(2 * x + 3) filter (where k = 'a')"
    values = dict(zip(scaled.parts, (Fraction(10), Fraction(4)), strict=True))
    assert scaled.value(values, rows=100) == Fraction(2 * 10, 4) + 3


@pytest.mark.parametrize(
    "text",
    ["avg(x)", "sum(x) filter (where k = 'a')", "SELECT k, avg(x) FROM data WHERE x > 1 GROUP BY k", "avg(x) / avg(y)"],
)
def test_nothing_else_becomes_a_quotient(text: str) -> None:
    (asked,) = parse_questions(text)
    assert as_ratio(asked) == asked


# ------------------------------------------------------------------------------------------------- values and intervals

Sum = tuple[str, dict[str, Fraction], Fraction]
NUMBERS = st.fractions(min_value=-50, max_value=50, max_denominator=40)
STATISTICS = ("sum(x)", "avg(y)", "count(*) filter (where z > 1)", "count(*)", "var_pop(x)")


@st.composite
def combinations(draw: st.DrawFn) -> Sum:
    """A sum of numbers times statistics: as text, and as its numbers."""
    names = draw(st.lists(st.sampled_from(STATISTICS), min_size=1, max_size=3))
    weights = [draw(NUMBERS.filter(bool)) for _ in names]
    constant = draw(NUMBERS)
    text = " + ".join(f"({w.numerator}) * {name} / {w.denominator}" for name, w in zip(names, weights, strict=True))
    total: dict[str, Fraction] = {}
    for name, weight in zip(names, weights, strict=True):
        total[name] = total.get(name, Fraction(0)) + weight
    return f"{text} + ({constant.numerator}) / {constant.denominator}", total, constant


def twin(told: Sum, values: dict[str, Fraction]) -> Fraction:
    return told[2] + sum((weight * values[name] for name, weight in told[1].items()), Fraction(0))


@given(combinations(), combinations(), st.lists(NUMBERS, min_size=5, max_size=5))
@settings(max_examples=30, deadline=None)
def test_a_quotient_is_what_arithmetic_says(top: Sum, bottom: Sum, numbers: list[Fraction]) -> None:
    rows = 7
    values = dict(zip(STATISTICS, numbers, strict=True)) | {"count(*)": Fraction(rows)}
    try:
        (found,) = parse_questions(f"({top[0]}) / ({bottom[0]})")
    except QueryError:  # everything cancelled out
        assert not any(top[1].values()) or not any(bottom[1].values())
        return
    assert isinstance(found, Derived)
    below = twin(bottom, values)
    expected = twin(top, values) / below if below else None
    assert found.value({part: values[part.text] for part in parts_of([found])}, rows) == expected
    assert parse_questions(found.text) == (found,)


QUERIES = [query for name in STATISTICS for query in parse_queries(name)]
TERMS = st.lists(
    st.tuples(st.sampled_from(QUERIES), NUMBERS.filter(bool)), min_size=1, max_size=3, unique_by=lambda term: term[0]
)
SUMS = st.builds(lambda terms, constant: Combination(tuple(terms), constant), TERMS, NUMBERS)


@given(
    SUMS,
    SUMS,
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=5, max_size=5),
    st.lists(st.fractions(0, 1, max_denominator=9), min_size=5, max_size=5),
)
@settings(max_examples=40, deadline=None)
def test_an_interval_holds_every_value_in_the_box(
    top: Combination, bottom: Combination, ends: list[tuple[Fraction, Fraction]], where: list[Fraction]
) -> None:
    """Exactly: every point of the box is inside, and the two ends are taken at some corner."""
    found = Derived(top, bottom)
    boxes = {part: (min(pair), max(pair)) for part, pair in zip(found.parts, ends, strict=False)}
    interval = found.interval(boxes, rows=7)
    point = {part: low + share * (high - low) for (part, (low, high)), share in zip(boxes.items(), where, strict=False)}
    corners = [found.value(dict(zip(boxes, corner, strict=True)), 7) for corner in itertools.product(*boxes.values())]
    if interval is None:
        return
    inside = found.value(point, 7)
    assert inside is not None
    assert interval[0] <= inside <= interval[1]
    assert set(interval) <= set(corners)


def test_a_denominator_that_may_be_0_leaves_no_interval() -> None:
    ratio = only("sum(x) / sum(y)")
    x, y = ratio.parts
    box = {x: (Fraction(1), Fraction(2))}
    assert ratio.interval({**box, y: (Fraction(-1), Fraction(3))}, 5) is None
    assert ratio.interval({**box, y: (Fraction(0), Fraction(3))}, 5) is None
    assert ratio.interval({**box, y: (Fraction(-4), Fraction(-2))}, 5) == (Fraction(-1), Fraction(-1, 4))
    assert ratio.value({x: Fraction(1), y: Fraction(0)}, 5) is None


def test_a_query_is_computed_from_its_own_column_alone() -> None:
    (query,) = parse_queries("avg(x/3 - 2)")
    found = computed(query)
    assert isinstance(found, Derived)
    assert found.factor == Fraction(1, 3)
    assert only("sum(x)/count(*)").factor is None
    assert computed(Query("avg", "x")) == Query("avg", "x")
    assert math.isclose(float(found.value({Query("avg", "x"): Fraction(9)}, 5) or 0), 1.0)
