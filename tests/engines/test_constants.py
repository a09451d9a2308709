"""Columns against constants on every engine: exactly as the constants are written, against plain fractions."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from attrpriv.engines import conditions as conditions_module
from attrpriv.engines.scan import scan
from attrpriv.engines.tables import open_table
from attrpriv.engines.tally import TallyRead
from attrpriv.errors import DataError
from attrpriv.queries.conditions import Compare, Condition, In, Not, parse_condition
from tests.engines.backends import ENGINES, POSTGRES, every_engine

OPERATORS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
COLUMNS: Mapping[str, Any] = {
    "whole": pa.array([2**53, 2**53 + 1, 2**53 + 2, -(2**63), 2**63 - 1, None, 0, 3], pa.int64()),
    "small": pa.array([-128, 127, 0, 1, 2, 3, None, -1], pa.int8()),
    "unsigned": pa.array([0, 2**63, 2**64 - 1, 5, None, 1, 2, 3], pa.uint64()),
    "price": pa.array(
        [Decimal(text) for text in ("12345678901234567.00", "12345678901234567.01", "0.10", "-0.01", "2.50", "3.00", "0.00")]
        + [None],
        pa.decimal128(20, 2),
    ),
    "length": pa.array([0.1, 0.30000000000000004, 0.3, 2.0**53, 1e300, -5e-324, None, 3.0], pa.float64()),
    "narrow": pa.array([0.1, 0.2, 0.5, 2.0**24, 3e38, -1.5, None, 3.0], pa.float32()),
}
TEXTS = (
    "0", "-1", "3", "2.5", "0.1", "-0.01", "0.105", "1e0", "9007199254740993", "9007199254740993.0", "9.007199254740993e15",
    "9007199254740992.0", "9007199254740992.5", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "18446744073709551615", "18446744073709551616", "1e30", "-1e30", "1e300", "127", "127.5", "128",
    "-128.5", "12345678901234567.01", "12345678901234567.011", "0.3", "0.30000000000000004", "0.3000000000000000166",
    "0.1000000000000000055511151231257827", "1e-300", "999999999999999999.99", "1000000000000000000", "16777216.0", "0.2",
)  # fmt: skip
READ = {text: parse_condition(f"x = {text}") for text in TEXTS}
ASKED = [*itertools.product(OPERATORS, TEXTS), *(("not in", text) for text in TEXTS)]


def condition(name: str, sign: Any, text: str) -> Condition:
    """In the name of a column; `not in` is of a pair."""
    value = READ[text].value  # type: ignore[union-attr]
    return Not(In(name, (value, 1))) if sign == "not in" else Compare(name, sign, value)


def twin(name: str, sign: str, text: str) -> int:
    """How many entries satisfy the condition: of floats, the double nearest to the constant."""
    constant = Fraction(float(text)) if name in ("length", "narrow") else Fraction(text)
    entries = [Fraction(value) for value in COLUMNS[name].to_pylist() if value is not None]
    if sign == "not in":
        return sum(entry not in (constant, 1) for entry in entries)
    return sum(OPERATORS[sign](entry, constant) for entry in entries)


def counts(data: object, cells: Sequence[Condition]) -> list[int]:
    found = scan(open_table(data), (), TallyRead(tuple(cells), False, ())).tally
    assert found is not None
    return list(found.cells)


@every_engine(without="decimal")
def test_constants_are_compared_as_they_are_written(engine: str, tmp_path: Path) -> None:
    data = ENGINES[engine](pa.table(dict(COLUMNS)), tmp_path)
    for k, name in enumerate(COLUMNS):
        wanted = [(name, *one) for one in ASKED[k % 3 :: 3]]  # of every three, one: each sign meets each kind of constant
        found = counts(data, [condition(*one) for one in wanted])
        assert dict(zip(wanted, found, strict=True)) == {one: twin(*one) for one in wanted}


@pytest.mark.slow
@pytest.mark.parametrize("name", COLUMNS)
def test_every_sign_with_every_constant(name: str, tmp_path: Path) -> None:
    data = ENGINES["parquet"](pa.table(dict(COLUMNS)), tmp_path)
    assert counts(data, [condition(name, *one) for one in ASKED]) == [twin(name, *one) for one in ASKED]


@pytest.mark.parametrize("name", ["whole", "unsigned", "price"])
def test_constants_that_are_made_floats_would_be_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions_module, "exact_number", lambda value: Fraction(float(value)))
    asked = [one for one in ASKED if one[0] == "="]
    found = counts(pa.table(dict(COLUMNS)), [condition(name, *one) for one in asked])
    assert found != [twin(name, *one) for one in asked]


DAYS = [date(2020, 1, 31), date(1969, 12, 31), date(2024, 2, 29), None, date(2020, 2, 1)]
ABOUT_DAYS = {
    "born = '2020-01-31'": 1,
    "born != '2020-01-31'": 3,
    "born >= '2020-01-31'": 3,
    "born < '2020-02-01'": 2,
    "born between '1969-12-31' and '2020-01-31'": 2,
    "born in ('2024-02-29', '1900-01-01')": 1,
    "not (born in ('2024-02-29', '1900-01-01'))": 3,
    "born is '2020-02-01'": 1,
    "born is null": 1,
}


@every_engine()
def test_dates(engine: str, tmp_path: Path) -> None:
    data = ENGINES[engine](pa.table({"born": pa.array(DAYS, pa.date32()), "x": range(5)}), tmp_path)
    assert dict(zip(ABOUT_DAYS, counts(data, list(map(parse_condition, ABOUT_DAYS))), strict=True)) == ABOUT_DAYS


@pytest.mark.parametrize("text", ["born = '2020-1-31'", "born > 3", "born = '20200131'", "born is 'x'", "born = '2020-02-30'"])
def test_what_is_no_date(text: str) -> None:
    with pytest.raises(DataError, match=r"must compare a date column with a date as text, such as '2020-01-31'. Got"):
        counts(pa.table({"born": DAYS}), [parse_condition(text)])


def test_what_cannot_be_compared() -> None:
    with pytest.raises(DataError, match=r"the column must hold numbers, text, booleans or dates. Got t in t = 3"):
        counts(pa.table({"t": pa.array([1, 2], pa.timestamp("s"))}), [parse_condition("t = 3")])


@every_engine()
def test_a_table_without_rows(engine: str, tmp_path: Path) -> None:
    if engine in ("csv", "pattern"):
        pytest.skip("has no types without rows, or no files")
    data = ENGINES[engine](pa.table({"x": pa.array([], pa.int64())}), tmp_path)
    assert counts(data, [parse_condition("x = 1"), parse_condition("x is null")]) == [0, 0]


@pytest.mark.skipif(POSTGRES is None, reason="needs ATTRPRIV_TEST_POSTGRES, as scripts/with_postgres.py sets it")
@pytest.mark.parametrize("kind", ["numeric", "numeric(10, 2)"])
def test_a_decimal_that_is_not_a_number_is_missing(kind: str) -> None:
    import psycopg

    from attrpriv.engines.scan import NOT_FINITE, ColumnRead

    assert POSTGRES is not None
    name = "nan_" + "".join(filter(str.isalnum, kind))
    with psycopg.connect(POSTGRES) as connection:
        connection.execute(f"CREATE TABLE {name} AS SELECT x::{kind} FROM (VALUES ('1.5'), ('NaN'), (NULL)) t(x)")
    source = open_table(f"{POSTGRES}&table={name}")
    assert scan(source, [ColumnRead("x", fill=0.25)]).sums == (Fraction(2),)
    assert scan(source, [ColumnRead("x", fill=9.0, clip=(0.0, 4.0))]).sums == (Fraction(19, 2),)
    with pytest.raises(DataError) as caught:
        scan(source, [ColumnRead("x")])
    assert str(caught.value) == NOT_FINITE.format(columns="x")
    asked = map(parse_condition, ("x > 1", "x is null", "x != 1.5", "x >= 0.333"))
    assert counts(f"{POSTGRES}&table={name}", list(asked)) == [1, 2, 0, 1]
