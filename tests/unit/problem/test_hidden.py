"""Promises that hide nothing are refused: counted one by one, a table has fewer than two values that must look alike."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attrpriv.errors import PolicyError
from attrpriv.numerics.laws.intervals import parse_case
from attrpriv.problem.composition import cells_of
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query


def problem(secret: Secret, n: int = 100, **changes: Any) -> Problem:
    stated: dict[str, Any] = {"queries": (Query("count"),), "secrets": (secret,), "epsilon": 1.0, "n": n}
    return Problem(**(stated | changes))


def refused(secret: Secret, n: int = 100, **changes: Any) -> str | None:
    try:
        problem(secret, n, **changes)
    except PolicyError as error:
        return str(error)
    return None


WHOLE = {"types": {"x": "integer", "y": "integer", "b": "boolean"}}
NOTHING: dict[str, tuple[Secret, dict[str, Any], str]] = {
    "one composition": (Secret("share(s = 'F')", between=(0.332, 0.334)), {"n": 300}, "a single count of 300 rows, 100;"),
    "no composition": (Secret("share(s = 'F')", between=(0.331, 0.333)), {"n": 300}, "holds no whole count of 300 rows"),
    "one distribution": (
        Secret("distribution(s)", between={"F": (0.332, 0.334), "M": (0.6, 0.7)}),
        {"n": 300},
        "its ranges hold a single composition of 300 rows; there is nothing to hide. Widen them.",
    ),
    "one distribution by what others leave": (
        Secret("distribution(s)", between={"F": (0.1, 0.2), "M": (0.3, 0.4), "X": (0.2, 0.4)}),
        {"n": 10},
        "its ranges hold a single composition of 10 rows",
    ),
    "a share within less than a row": (Secret("share(s = 'F')", within=0.009), {}, "no two counts of 100 rows are that close"),
    "a case without a count": (Secret("share(s = 'F')", cases=("< 50%", "(50%, 50.5%)")), {}, "each case must hold a possible"),
    "within less than a step": (Secret("mean(x)", within=0.0099), WHOLE, "0.01 apart in a table of 100 rows. Got 0.0099"),
    "within less than a declared step": (Secret("mean(x)", within=0.049), {"resolution": {"x": 5}}, "take at least 0.05."),
    "a sum within less than a step": (Secret("sum(x)", within=0.99), WHOLE, "they are 1 apart"),
    "a combination": (Secret("mean(3 * x - 1.5 * y)", within=0.0149), WHOLE, "they are 0.015 apart"),
    "jointly": (Secret(("mean(x)", "mean(y)"), within=0.0099), WHOLE, "they are 0.01 apart"),
    "jointly, one value of each": (
        Secret(("mean(x)", "mean(y)"), between={"mean(x)": (3.001, 3.019), "mean(y)": (0.0, 0.005)}),
        WHOLE,
        "mean(x), mean(y): between holds a single value that a table of 100 rows can have",
    ),
    "jointly, no value of one": (
        Secret(("mean(x)", "mean(y)"), between={"mean(x)": (3.001, 3.009), "mean(y)": (0.0, 5.0)}),
        WHOLE,
        "between holds no value",
    ),
    "a range with one mean": (Secret("mean(x)", between=(3.001, 3.019)), WHOLE, "between holds a single value"),
    "a range with no mean": (Secret("mean(x)", between=(3.001, 3.009)), WHOLE, "between holds no value"),
    "a range beyond the bounds": (Secret("mean(x)", between=(3, 5)), {"bounds": {"x": (0, 2.9)}}, "between holds no value"),
    "a range at the end of the bounds": (Secret("mean(x)", between=(3, 5)), {"bounds": {"x": (0, 3)}}, "holds a single value"),
    "a mean of yes and no": (Secret("mean(b)", between=(2, 3)), WHOLE, "between holds no value"),
    "a combination beyond the bounds": (
        Secret("sum(x - y)", between=(301, 400)),
        {"bounds": {"x": (0, 2), "y": (-1, 1)}},
        "between holds no value",
    ),
    "a case without a mean": (Secret("mean(x)", cases=("< 3", "(3, 3.01)")), WHOLE, '"(3, 3.01)" holds no value'),
    "a case beyond the bounds": (Secret("mean(x)", cases=("< 3", ">= 3")), {"bounds": {"x": (3, 9)}}, '"< 3" holds no value'),
    "half of delta": (Secret("mean(x)", within=1), {"delta": 0.5}, "delta: must be below 0.5: publishing the secret itself"),
    "nearly all of delta": (Secret("mean(x)", within=1), {"delta": 0.99}, "Got 0.99. Take one far below 1/n."),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTHING)
def test_what_hides_nothing_is_refused(name: str) -> None:
    secret, changes, said = NOTHING[name]
    found = refused(secret, **changes)
    assert found is not None
    assert said in found
    assert found.startswith(("protect: ", "delta: "))


SOMETHING: dict[str, tuple[Secret, dict[str, Any]]] = {
    "two compositions": (Secret("share(s = 'F')", between=(0.333, 0.337)), {"n": 300}),
    "one row": (Secret("share(s = 'F')", within=0.01), {}),
    "one row as a program computes it": (Secret("share(s = 'F')", within=1 / 6), {"n": 6}),
    "one step": (Secret("mean(x)", within=0.01), WHOLE),
    "a spacing that nobody knows": (Secret("mean(x)", within=1e-9), {}),
    "one known spacing of two": (Secret("mean(x + z)", within=1e-9), WHOLE),
    "jointly, one known spacing": (Secret(("mean(x)", "mean(z)"), within=1e-9), WHOLE),
    "jointly, two values of one": (
        Secret(("mean(x)", "mean(y)"), between={"mean(x)": (3.001, 3.009 + 0.01), "mean(y)": (0.0, 0.01)}),
        WHOLE,
    ),
    "a finer spacing by the value for missing entries": (Secret("mean(x)", within=0.005), {**WHOLE, "missing": {"x": 0.5}}),
    "two means": (Secret("mean(x)", between=(3.0, 3.01)), WHOLE),
    "a value for missing entries beyond the bounds": (
        Secret("mean(x)", between=(3, 5)),
        {"bounds": {"x": (0, 2)}, "missing": {"x": 9}},
    ),
    "a case that is open at a mean": (Secret("mean(x)", cases=("< 3", "(3, 3.011)")), WHOLE),
    "of a population": (Secret(parameter="share(s = 'F')", between=(0.332, 0.334)), {"n": 300, "delta": 1e-6}),
    "some of a distribution": (Secret("distribution(s)", between={"F": (0.3, 0.301), "M": (0.3, 0.4), "X": (0.3, 0.4)}), {}),
    "below half of delta": (Secret("mean(x)", within=1), {"delta": 0.49}),
    "huge": (Secret("mean(x)", between=(-1e300, 1e300)), WHOLE),
}  # fmt: skip


@pytest.mark.parametrize("name", SOMETHING)
def test_what_hides_something_is_a_problem(name: str) -> None:
    secret, changes = SOMETHING[name]
    assert refused(secret, **changes) is None


# Small tables, one by one.

ENDS = st.fractions(min_value=0, max_value=3, max_denominator=8).map(float)


def sums(n: int, values: tuple[int, ...]) -> set[int]:
    """The sums that n rows with these values can have."""
    return {sum(rows) for rows in itertools.combinations_with_replacement(values, n)}


@settings(max_examples=300)
@given(n=st.integers(2, 5), ends=st.tuples(ENDS, ENDS), within=st.none() | ENDS, kind=st.sampled_from(["mean", "sum"]))
@example(n=4, ends=(0.25, 0.5), within=0.25, kind="mean")
@example(n=4, ends=(0.25, 0.5), within=0.125, kind="mean")
def test_ranges_and_distances_are_judged_as_tables_are(
    n: int, ends: tuple[float, float], within: float | None, kind: str
) -> None:
    """A whole-number column with values 0 to 3: two of the means that its tables have must look alike, or it is refused."""
    if not ends[0] < ends[1] or within == 0:
        return
    weight = Fraction(1) if kind == "sum" else Fraction(1, n)
    exact = [Fraction(repr(end)) for end in ends]
    means = [total * weight for total in sums(n, (0, 1, 2, 3)) if exact[0] <= total * weight <= exact[1]]
    near = [abs(a - b) for a, b in itertools.combinations(means, 2)]
    alike = [gap for gap in near if within is None or gap <= Fraction(repr(within))]
    secret = Secret(f"{kind}(x)", between=ends, within=within)
    found = refused(secret, n, types={"x": "integer"}, bounds={"x": (0, 3)})
    assert (found is None) == bool(alike)


@settings(max_examples=200)
@given(n=st.integers(2, 6), cuts=st.lists(ENDS, min_size=3, max_size=3, unique=True).map(sorted), closed=st.booleans())
def test_sets_are_judged_as_tables_are(n: int, cuts: list[float], closed: bool) -> None:
    low, middle, high = cuts
    cases = (f"[{low!r}, {middle!r})", f"({middle!r}, {high!r}{']' if closed else ')'}")
    means = [Fraction(total, n) for total in sums(n, (0, 1, 2, 3))]
    held = [any(_in(mean, case) for mean in means) for case in cases]
    found = refused(Secret("mean(x)", cases=cases), n, types={"x": "integer"}, bounds={"x": (0, 3)})
    assert (found is None) == all(held)


def _in(mean: Fraction, case: str) -> bool:
    """Ends are the decimal fractions that they are written as."""
    (part,) = parse_case(case).parts
    low, high = Fraction(repr(part.low)), Fraction(repr(part.high))
    return (mean > low or (mean == low and part.low_closed)) and (mean < high or (mean == high and part.high_closed))


@settings(max_examples=200)
@given(n=st.integers(2, 12), shares=st.lists(st.tuples(ENDS, ENDS), min_size=2, max_size=3))
def test_distributions_are_judged_as_tables_are(n: int, shares: list[tuple[float, float]]) -> None:
    """Every vector of counts, written out; ranges that no table has are left to the view."""
    between = {f"c{k}": (min(ends) / 3, max(ends) / 3) for k, ends in enumerate(shares)}
    if any(low == high for low, high in between.values()):
        return
    tables = [counts for counts in _compositions(n, len(between)) if _within(counts, n, between)]
    found = refused(Secret("distribution(s)", between=between), n)
    assert (found is not None) == (len(tables) == 1)


def _compositions(n: int, cells: int) -> Iterator[tuple[int, ...]]:
    return (counts for counts in itertools.product(range(n + 1), repeat=cells) if sum(counts) == n)


def _within(counts: tuple[int, ...], n: int, between: dict[str, tuple[float, float]]) -> bool:
    """A share is in a range where the float that writes it is: 2/3 is in [0, 2 / 3]."""
    return all(low <= count / n <= high for count, (low, high) in zip(counts, between.values(), strict=True))


def test_the_view_keeps_less_than_all_rows_of_what_is_not_refused() -> None:
    """Where two compositions are left, at least one row is."""
    for n, low, high in itertools.product((7, 30), range(0, 100, 3), range(0, 101, 5)):
        if not low < high:
            continue
        secret = Secret("share(s = 'F')", between=(low / 100, high / 100))
        if refused(secret, n) is None:
            assert secret.composition is not None
            cells = cells_of(secret.composition, (low / 100, high / 100), {}, n)
            assert sum(cell.low for cell in cells) < n
