"""Interval arithmetic of expressions and of statistics, against every small table."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest

from attrpriv.queries.arithmetic import parse_arithmetic
from attrpriv.queries.intervals import answer_interval, fits_floats, interval
from attrpriv.queries.sql import parse_queries
from tests.unit.queries.small_tables import answers

EXPRESSIONS = ("x", "2 * x - y", "x * y", "x * x", "x * x * x - 3 * y", "(x - y) * (x - y)", "0.5 * x * x * y * y - x / 3 + 7")


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_no_point_of_the_box_is_outside(text: str) -> None:
    rng = random.Random(5)
    of = parse_arithmetic(text)
    for _ in range(60):
        box = {name: tuple(sorted((rng.uniform(-4, 4), rng.uniform(-4, 4)))) for name in of.columns}
        low, high = interval(of, box)  # type: ignore[arg-type]
        ends = [(a, b, rng.uniform(a, b), max(a, min(0.0, b))) for a, b in box.values()]
        for point in itertools.product(*ends):
            at = dict(zip(box, map(Fraction, point), strict=True))
            value = sum((weight * _product(at, monomial) for monomial, weight in of.terms), Fraction(0))
            assert low <= value <= high


def _product(at: dict[str, Fraction], monomial: tuple[str, ...]) -> Fraction:
    found = Fraction(1)
    for name in monomial:
        found *= at[name]
    return found


def test_a_line_and_a_square_are_sharp() -> None:
    box = {"x": (-1.0, 2.0), "y": (0.0, 3.0)}
    assert interval(parse_arithmetic("2 * x - y + 1"), box) == (Fraction(-4), Fraction(5))
    assert interval(parse_arithmetic("x * x"), box) == (Fraction(0), Fraction(4))


CASES = {"var_pop(x)": 4, "covar_pop(x, y)": 4, "median(x)": 3, "approx_quantile(x, 0.9)": 3, "var_pop(x + 2 * y)": 3}


@pytest.mark.parametrize("text", CASES)
def test_every_small_table_is_inside_and_some_reach_the_ends(text: str) -> None:
    (query,) = parse_queries(text)
    box = {"x": (0.0, 3.0), "y": (-1.0, 1.0)}
    ends = answer_interval(query, box)
    assert ends is not None
    values = {"x": (0, 1, 3), "y": (-1, 1)}
    listed = answers(query, {name: values[name] for name in query.columns}, CASES[text])
    found = [float(value) for _, value in listed if value is not None]  # small whole numbers and their halves: exact
    assert ends[0] <= min(found)
    assert max(found) <= ends[1]
    if CASES[text] == 4 or query.kind == "quantile":  # an even number of rows can be half at either end
        assert (min(found), max(found)) == ends


def test_nothing_bounds_a_regression() -> None:
    box = {"x": (0.0, 3.0), "y": (-1.0, 1.0)}
    assert [answer_interval(query, box) for query in parse_queries("regr_slope(y, x), regr_intercept(y, x)")] == [None, None]


def test_ends_are_rounded_outwards() -> None:
    (query,) = parse_queries("var_pop(x)")
    low, high = answer_interval(query, {"x": (0.0, 0.1)}) or (1.0, 0.0)
    assert low == 0
    assert Fraction(high) >= Fraction(0.1) ** 2 / 4


def test_bounds_too_wide_for_a_float_have_no_interval() -> None:
    (query,) = parse_queries("var_pop(x)")
    assert answer_interval(query, {"x": (-1e300, 1e300)}) is None


HELD = {
    "a usual column": ("var_pop(x)", (0.0, 1e9), True),
    "four factors": ("var_pop(x * x * x * x)", (0.0, 1e30), True),
    "too large for a square": ("var_pop(x)", (0.0, 1e150), False),
    "too large for four factors": ("var_pop(x * x * x * x)", (0.0, 1e40), False),
    "too small": ("var_pop(x)", (0.0, 1e-50), False),
    "a tiny weight": ("var_pop(x + 1e-80 * x * x)", (0.0, 1.0), False),
    "large weights that cancel": ("var_pop(1e200 * x - x * 1e200 * x + x)", (0.0, 1e-3), False),
}


@pytest.mark.parametrize("name", HELD)
def test_what_floats_hold(name: str) -> None:
    text, ends, held = HELD[name]
    (query,) = parse_queries(text)
    assert fits_floats(query, {"x": ends}) is held
