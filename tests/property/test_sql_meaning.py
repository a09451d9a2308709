"""Conditions and expressions mean what SQL says, whatever the columns are called: against a slow evaluator of rows.

The slow one knows SQL's three-valued logic and nothing of engines. It is compared with the engine's conditions, with what a
view reads of a row, and with the canonical text run as it is by DuckDB. Column names hold quotes, spaces, keywords, unicode and
whole statements: they are data, never code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from attrpriv.engines.conditions import holds
from attrpriv.engines.tables import open_table
from attrpriv.queries.arithmetic import Arithmetic, parse_arithmetic
from attrpriv.queries.conditions import Compare, Condition, In, IsNull, Join, Not, parse_condition
from attrpriv.queries.query import Query, quoted
from attrpriv.queries.sql import parse_queries

NASTY = (
    *("x", "select", "Order", 'a"b', "a'b", "a b", "größe", "名前", "a;b", "a--b", "a/*b*/", "1st", "{x}", "%s", "$1", "?"),
    *("x) from data; drop table data; --", '"; drop table data; --', "' or 1=1 --", "a\\b", "a.b", "data", "null", "true"),
    *("count(*)", "cell", "u0", "\u202eabc", "a\tb", "-x", "2 * x"),
)
ALPHABET = st.characters(codec="utf-8", exclude_characters="\0")
NAMES = st.one_of(st.sampled_from(NASTY), st.text(ALPHABET, min_size=1, max_size=12))
CONSTANTS: dict[str, tuple[Any, ...]] = {
    "number": (-2, 0, 1, 3, 0.5, -1.25, 10**12),
    "text": ("a", "b", "", "o'clock", "'; drop table data; --", "é"),
    "truth": (True, False),
}
SIGNS = ("=", "!=", "<", "<=", ">", ">=")
ROWS = 40


def names() -> st.SearchStrategy[list[str]]:
    return st.lists(NAMES, min_size=3, max_size=3, unique_by=lambda name: name.lower())


def conditions(columns: Sequence[str], depth: int = 3) -> st.SearchStrategy[Condition]:
    kinds = dict(zip(columns, CONSTANTS, strict=True))

    def compare(column: str) -> st.SearchStrategy[Condition]:
        values = CONSTANTS[kinds[column]]
        signs = SIGNS if kinds[column] == "number" else SIGNS[:2]
        return st.builds(Compare, st.just(column), st.sampled_from(signs), st.sampled_from(values))

    def within(column: str) -> st.SearchStrategy[Condition]:
        values = st.lists(st.sampled_from(CONSTANTS[kinds[column]]), min_size=1, max_size=3, unique=True).map(tuple)
        return st.builds(In, st.just(column), values)

    column = st.sampled_from(list(columns))
    leaf = st.one_of(column.flatmap(compare), column.flatmap(within), st.builds(IsNull, column))
    if depth == 0:
        return leaf
    below = conditions(columns, depth - 1)
    joined = st.builds(Join, st.sampled_from(("and", "or")), st.lists(below, min_size=2, max_size=3).map(tuple))
    return st.one_of(leaf, st.builds(Not, below), joined)


def table_of(columns: Sequence[str], seed: int) -> pa.Table:
    """Numbers, texts and truths, with missing entries, in all combinations that matter."""
    numbers, texts, truths = (None, -2, 0, 1, 3, 7), (None, "a", "b", "", "o'clock", "z"), (None, True, False)
    rows = [(numbers[(k * 7 + seed) % 6], texts[(k // 2 + seed) % 6], truths[(k + seed) % 3]) for k in range(ROWS)]
    types = (pa.float64(), pa.string(), pa.bool_())
    return pa.table({name: pa.array([row[k] for row in rows], types[k]) for k, name in enumerate(columns)})


# The slow evaluator: True, False or None for unknown.


def truth(condition: Condition, row: dict[str, Any]) -> bool | None:
    if isinstance(condition, Not):
        inner = truth(condition.part, row)
        return None if inner is None else not inner
    if isinstance(condition, Join):
        parts = [truth(part, row) for part in condition.parts]
        deciding = condition.word == "or"
        if deciding in parts:
            return deciding
        return None if None in parts else not deciding
    if isinstance(condition, IsNull):
        return row[condition.column] is None
    assert isinstance(condition, Compare | In)
    found = row[condition.column]
    if found is None:
        return None
    if isinstance(condition, In):
        return any(found == value for value in condition.values)
    signs = {
        "=": found == condition.value,
        "!=": found != condition.value,
    }
    if condition.operator in signs:
        return bool(signs[condition.operator])
    low, high = found, float(condition.value)
    return bool({"<": low < high, "<=": low <= high, ">": low > high, ">=": low >= high}[condition.operator])


@cache
def connection() -> Any:
    return duckdb.connect()


def raw_columns(table: pa.Table, expressions: Sequence[str]) -> list[list[Any]]:
    """The texts run as SQL by DuckDB, on a connection of their own."""
    connection().register("data", table)
    rows = connection().execute(f"SELECT {', '.join(expressions)} FROM data").fetchall()
    return [list(column) for column in zip(*rows, strict=True)]


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_condition_means_what_sql_says_whatever_columns_are_called(data: st.DataObject) -> None:
    columns = data.draw(names())
    listed = data.draw(st.lists(conditions(columns), min_size=6, max_size=6))
    table = table_of(columns, data.draw(st.integers(0, 5)))
    expected = [[truth(condition, row) for row in table.to_pylist()] for condition in listed]
    read = [parse_condition(str(condition)) for condition in listed]
    assert [parse_condition(str(condition)) for condition in read] == read
    source = open_table(table)
    kept = source.table.select(**{f"c{k}": holds(source.table, condition) for k, condition in enumerate(read)})
    found = source.engine.to_pyarrow(kept)
    assert [found[f"c{k}"].to_pylist() for k in range(6)] == [[one is True for one in column] for column in expected]
    assert raw_columns(table, [str(condition) for condition in read]) == expected


def two_valued(condition: Condition, row: dict[str, Any]) -> bool:
    """The mutant: a missing entry simply does not satisfy a comparison, and NOT turns that around."""
    if isinstance(condition, Not):
        return not two_valued(condition.part, row)
    if isinstance(condition, Join):
        parts = [two_valued(part, row) for part in condition.parts]
        return all(parts) if condition.word == "and" else any(parts)
    return truth(condition, row) is True


def test_two_values_are_not_enough() -> None:
    table = table_of(("a", "b", "c"), 0)
    condition = parse_condition("not (a > 0 and b = 'a')")
    rows = table.to_pylist()
    assert [two_valued(condition, row) for row in rows] != [truth(condition, row) is True for row in rows]


POLYNOMIALS = st.dictionaries(
    st.lists(st.integers(0, 2), max_size=2).map(lambda m: tuple(sorted(m))),
    st.fractions(-20, 20, max_denominator=8).filter(bool),
    min_size=1,
    max_size=4,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(names(), POLYNOMIALS)
@example(["-x", "2 * x", "x"], {(0,): Fraction(1), (1, 2): Fraction(1, 3)})
def test_an_expression_means_what_sql_says_whatever_columns_are_called(
    columns: list[str], terms: dict[tuple[int, ...], Fraction]
) -> None:
    made = Arithmetic.of({tuple(sorted(columns[k] for k in monomial)): weight for monomial, weight in terms.items()})
    if not made.columns:
        return
    assert parse_arithmetic(made.text) == made
    values = [[(3 * k + 5 * j) % 11 - 4.5 for k in range(12)] for j in range(3)]
    table = pa.table({name: pa.array(values[j], pa.float64()) for j, name in enumerate(columns)})
    expected = []
    for row in table.to_pylist():
        products = [weight * math.prod(Fraction(row[name]) for name in monomial) for monomial, weight in made.terms]
        expected.append(float(sum(products)))
    assert raw_columns(table, [made.text])[0] == pytest.approx(expected, rel=1e-12, abs=1e-9)


@given(names(), st.sampled_from(("avg", "sum", "var_pop", "quantile", "count")), st.data())
@settings(max_examples=30)
def test_a_whole_query_is_read_back_as_itself(columns: list[str], kind: str, data: st.DataObject) -> None:
    where = data.draw(st.none() | conditions(columns, 2).map(lambda c: str(parse_condition(str(c)))))
    group = data.draw(st.none() | st.sampled_from(columns))
    of: tuple[str, ...] = () if kind == "count" else (f"2 * {quoted(columns[0])}",)
    query = Query(kind, None, where, group, of, 0.25 if kind == "quantile" else None)  # type: ignore[arg-type]
    assert parse_queries(query.text) == (query,)
    assert parse_queries(f"  {query.text} ;") == (query,)
    assert hash(parse_queries(query.text)[0]) == hash(query)
