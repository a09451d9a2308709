"""Conditions on a whole category, against what DuckDB says of rows of that category."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from attrpriv.engines.conditions import holds
from attrpriv.engines.tables import open_table
from attrpriv.errors import QueryError
from attrpriv.queries.conditions import Compare, Condition, In, IsNull, Join, Not, Written, parse_condition
from attrpriv.queries.evaluate import Bin, Category, holds_for

SIGNS = ("=", "!=", "<", "<=", ">", ">=")
EDGES = (0.0, 18.0, 65.0, 120.0)
CENTS = [Decimal("0.10"), Decimal("2.50"), Decimal("-7.25")]
BINS = [Bin(low, high, k == 2) for k, (low, high) in enumerate(itertools.pairwise(EDGES))]


def truths(values: Sequence[Any], conditions: Sequence[Condition]) -> list[list[bool]]:
    """What the engine says of each value, for each condition; one query."""
    table = open_table(pa.table({"x": pa.array(values)})).table
    found = table.select(**{f"c{k}": holds(table, one) for k, one in enumerate(conditions)}).to_pyarrow()
    return [found.column(f"c{k}").to_pylist() for k in range(len(conditions))]


def random_condition(rng: random.Random, constants: Sequence[Any], ordered: bool, depth: int = 2) -> Condition:
    kind = rng.choice(["compare", "in", "null", "not", "join"] if depth else ["compare", "in", "null"])
    if kind == "not":
        return Not(random_condition(rng, constants, ordered, depth - 1))
    if kind == "join":
        parts = tuple(random_condition(rng, constants, ordered, depth - 1) for _ in range(rng.randint(2, 3)))
        return Join("and" if rng.random() < 0.5 else "or", parts)
    if kind == "null":
        return IsNull("x")
    if kind == "in":
        return In("x", tuple(rng.sample(constants, k=min(2, len(constants)))))
    sign: Any = rng.choice(SIGNS if ordered else SIGNS[:2])
    return Compare("x", sign, rng.choice(constants))


def rows_of(one: Bin) -> list[float]:
    """Rows of a bin, its ends included where they belong."""
    inner = [one.low, one.low + 1e-9, (one.low + one.high) / 2, 17.0 if one.low == 0 else 64.0, one.high - 1e-9]
    return [x for x in [*inner, *([one.high] if one.closed else [])] if one.low <= x and (x < one.high or one.closed)]


def test_bins_agree_with_the_engine_or_refuse() -> None:
    rng = random.Random(1)
    constants = [*EDGES, -1, 30, 17.5, 200, 64]
    conditions = [random_condition(rng, constants, ordered=True) for _ in range(150)]
    answered = refused = 0
    for one in BINS:
        for condition, found in zip(conditions, truths(rows_of(one), conditions), strict=True):
            answer = None
            with contextlib.suppress(QueryError):
                answer = holds_for(condition, one)
            assert answer is None or set(found) == {answer}, (str(condition), str(one))
            answered, refused = answered + (answer is not None), refused + (answer is None)
    assert min(answered, refused) > 80


@pytest.mark.parametrize(
    ("values", "categories", "constants", "ordered"),
    [
        ([0, 1, 3, -7], [0, 1, 3, -7], [0, 1, 2, 3.5, -7, 3.0], True),
        ([0, 1, 3], ["0", "1", "3"], [0, 1, 2, 3.5], True),
        ([0.5, 1.0, 2.5], [0.5, 1, 2.5], [0.5, 1, 2, 2.5], True),
        (["yes", "no", "it's"], ["yes", "no", "it's"], ["yes", "no", "it's", "Yes", ""], False),
        ([True, False], ["true", "false"], [True, False], False),
        ([True, False], [1, 0], [True, False], False),
        ([True, False], [True, False], [True, False], False),
        ([2**53, 2**53 + 1], [str(2**53), str(2**53 + 1)], [2**53, 2**53 + 1], True),
        (CENTS, list(map(str, CENTS)), [*CENTS, 3, 0.1], True),
    ],
)
def test_values_agree_with_the_engine(
    values: list[Any], categories: list[Category], constants: list[Any], ordered: bool
) -> None:
    rng = random.Random(2)
    conditions = [random_condition(rng, constants, ordered) for _ in range(60)]
    for condition, found in zip(conditions, truths(values, conditions), strict=True):
        assert [holds_for(condition, category) for category in categories] == found, str(condition)


@pytest.mark.parametrize(
    ("values", "names"), [(["a", "b"], ["a", "b"]), ([1, 2], ["1", "2"]), ([True, False], ["true", "false"])]
)
def test_a_category_by_name_is_what_the_engine_writes(values: list[Any], names: list[str]) -> None:
    conditions: list[Condition] = [Written("x", name) for name in (*names, "c")]
    assert truths(values, conditions) == [[holds_for(one, name) for name in names] for one in conditions]


@pytest.mark.parametrize(
    ("text", "category", "said"),
    [
        ("x < 70", Bin(65, 120, True), r"cuts the bin \[65, 120\]; choose bins with an edge there"),
        ("x = 64", Bin(18, 65, False), r"cuts the bin \[18, 65\)"),
        ("x <= 65", Bin(65, 120, True), "cuts the bin"),
        ("x = 'old'", Bin(65, 120, True), "must compare a binned column with a number"),
        ("x = true", Bin(0, 1, True), "must compare a binned column with a number"),
        ("x > 'a'", "b", "must compare a category by = or !="),
        ("x > 3", "b", "must compare the category 'b' with a text"),
        ("x > 3", "nan", "must compare the category 'nan' with a text"),
        ("x = true", "yes", "must compare the category 'yes' with a text or a number"),
        ("x = true", 2, "must compare the category 2 with a text or a number"),
        ("x = '1'", 1, "must compare the category 1 with a number"),
        ("x is '1'", 1.0, "must compare the category 1.0 with a number"),
        ("x is '[0, 1]'", Bin(0, 1, True), "with a number"),
        ("x = 1", True, "must compare the category True with a text"),
        # Equal among floats, and not among decimals.
        ("x = 0.1000000000000000055511151231257827", 0.1, "must compare with a number of fewer digits"),
        ("x < 12345678901234567.01", "12345678901234567", "must compare with a number of fewer digits"),
        ("x < 65.00000000000000001", Bin(18, 65, True), r"cuts the bin \[18, 65\]"),
    ],
)
def test_what_has_no_answer_is_refused(text: str, category: Category, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        holds_for(parse_condition(text), category)


def test_a_wrong_bin_end_would_be_seen() -> None:
    """The comparison with the engine can fail: a last bin that is open at its end differs at that end."""
    condition = Compare("x", "<", 120)
    assert holds_for(condition, Bin(65, 120, False)) != all(truths(rows_of(BINS[2]), [condition])[0])
