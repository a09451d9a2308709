"""Variances, covariances, regressions and quantiles of a whole table: the same fraction on every engine, in one query."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from attrpriv.engines.scan import ENGINE_FAILED, NOT_FINITE
from attrpriv.engines.statistics import StatisticRead, place_of, statistic
from attrpriv.engines.tables import open_table
from attrpriv.errors import DataError
from attrpriv.queries.sql import parse_queries
from tests.engines.backends import ENGINES, every_engine
from tests.unit.queries.small_tables import value_of

NAN = float("nan")
ROWS = 203
FILLS = {"height": 170.0, "member": 0.5}
CLIPS = {"whole": (-40.0, 50.0), "income": (0.0, 150_000.0), "height": (140.0, 200.0), "member": (0.0, 1.0)}
TEXTS = (
    "var_pop(income)", "covar_pop(income, whole)", "regr_slope(income, height)", "regr_intercept(whole, member)",
    "median(height)", "approx_quantile(whole, 0.07)", "approx_quantile(income, 0.999)", "var_pop(2 * whole - member)",
    "regr_slope(whole, whole * member)", "approx_quantile(whole * member + height, 0.3)",
)  # fmt: skip


def table() -> Any:
    rng = random.Random(11)
    return pa.table(
        {
            "whole": pa.array([rng.randint(-60, 60) for _ in range(ROWS)], pa.int32()),
            "income": pa.array(
                [rng.choice([1e12, rng.gauss(60_000, 30_000)]) if k < 9 else rng.gauss(6e4, 3e4) for k in range(ROWS)]
            ),
            "height": pa.array(
                [rng.choice([None, NAN, rng.gauss(170, 8)]) for _ in range(ROWS)], pa.float64(), from_pandas=False
            ),
            "member": pa.array([rng.choice([None, True, False]) for _ in range(ROWS)], pa.bool_()),
        }
    )


TABLE = table()


def rows(data: Any = TABLE) -> dict[str, list[Fraction]]:
    """Each column filled and clipped, as fractions."""
    found = {}
    for name, (low, high) in CLIPS.items():
        values = [FILLS.get(name) if x is None or x != x else x for x in data[name].to_pylist()]
        found[name] = [Fraction(min(max(float(x), low), high)) for x in values if x is not None]
    return found


def read(text: str, n: int = ROWS, fills: Any = None, clips: Any = None) -> StatisticRead:
    (query,) = parse_queries(text)
    return StatisticRead(query, n, FILLS if fills is None else fills, CLIPS if clips is None else clips)


@every_engine()
def test_every_statistic_is_that_of_exact_arithmetic(engine: str, tmp_path: Path) -> None:
    """A value is off by at most half a step of its grid, 2^-44 of its interval; a quantile not at all."""
    source = open_table(ENGINES[engine](TABLE, tmp_path))
    reference = open_table(TABLE)
    for text in TEXTS:
        asked = read(text)
        n, found = statistic(source, asked)
        exact = value_of(asked.query, rows())
        assert n == ROWS
        assert found is not None
        assert exact is not None
        if asked.query.kind == "quantile":
            assert float(found) == pytest.approx(float(exact), rel=1e-15)  # arithmetic of floats
        else:
            assert float(found) == pytest.approx(float(exact), rel=1e-11, abs=1e-11)
        assert statistic(reference, asked) == (n, found), "an engine of its own mind"


@every_engine()
def test_a_regression_on_a_constant_is_undefined(engine: str, tmp_path: Path) -> None:
    data = pa.table({"y": [1.0, 2.0, 4.0], "x": [0.1, 0.1, 0.1]})
    source = open_table(ENGINES[engine](data, tmp_path))
    clips = {"x": (0.0, 1.0), "y": (0.0, 5.0)}
    for text in ("regr_slope(y, x)", "regr_intercept(y, x)"):
        assert statistic(source, read(text, 3, {}, clips)) == (3, None)
    assert statistic(source, read("covar_pop(y, x)", 3, {}, clips)) == (3, Fraction(0))


@every_engine()
def test_without_a_public_value_a_missing_entry_has_a_fixed_text(engine: str, tmp_path: Path) -> None:
    source = open_table(ENGINES[engine](TABLE, tmp_path))
    for text in ("var_pop(height)", "median(height)"):
        with pytest.raises(DataError) as failure:
            statistic(source, read(text, fills={}))
        assert str(failure.value) == NOT_FINITE.format(columns="height")
        assert failure.value.__context__ is None


@every_engine(without="decimal")
def test_infinite_values_are_clipped(engine: str, tmp_path: Path) -> None:
    data = pa.table({"x": [math.inf, -math.inf, 1.0, 2.0]})
    source = open_table(ENGINES[engine](data, tmp_path))
    assert statistic(source, read("var_pop(x)", 4, {}, {"x": (0.0, 2.0)})) == (4, Fraction(11, 16))
    assert statistic(source, read("approx_quantile(x, 0.75)", 4, {}, {"x": (0.0, 2.0)})) == (4, Fraction(2))


@every_engine()
def test_products_of_tiny_numbers_are_no_failure(engine: str, tmp_path: Path) -> None:
    """On PostgreSQL a product that is too small for a float is an error."""
    data = pa.table({"x": [1e-200, 2.0, -1e-300, 0.0], "y": [1e-200, 1.0, 1e-300, 1e-290]})
    source = open_table(ENGINES[engine](data, tmp_path))
    clips = {"x": (-1.0, 2.0), "y": (0.0, 1.0)}
    assert statistic(source, read("var_pop(x * y)", 4, {}, clips)) == (4, Fraction(3, 4))
    assert statistic(source, read("median(x * y)", 4, {}, clips)) == (4, Fraction(0))


def test_quantiles_are_the_values_at_their_places(tmp_path: Path) -> None:
    """0.07 of 100 rows is the 7th value, although 0.07 * 100 is more than 7 in floats."""
    assert (place_of(0.07, 100), place_of(0.5, 7), place_of(0.5, 8), place_of(1e-9, 5), place_of(0.999, 5)) == (7, 4, 4, 1, 5)
    assert math.ceil(0.07 * 100) == 8
    for n in (2, 3, 7, 10, 100):
        values = list(range(n))
        random.Random(n).shuffle(values)
        source = open_table(pa.table({"x": values}))
        for level in (0.01, 0.07, 0.1, 0.25, 0.5, 0.9, 0.99):
            asked = read(f"approx_quantile(x, {level})", n, {}, {"x": (0.0, 200.0)})
            assert statistic(source, asked) == (n, Fraction(place_of(level, n) - 1))


def test_decimals_and_large_whole_numbers_are_read_as_floats() -> None:
    data = pa.table({"price": pa.array([Decimal("1.25"), Decimal("3.50")]), "large": [2**60, 2**60 + 2**10]})
    source = open_table(data)
    clips = {"price": (0.0, 10.0), "large": (0.0, 2.0**61)}
    assert statistic(source, read("var_pop(price)", 2, {}, clips)) == (2, Fraction(81, 64))
    found = statistic(source, read("var_pop(large)", 2, {}, clips))[1]
    assert found is not None
    assert abs(float(found) - 2.0**18) <= 2.0**61 * 2.0**-44 * 2**10


def test_what_the_schema_tells_is_refused_before_a_row_is_read() -> None:
    source = open_table(pa.table({"x": [1.0, 2.0], "name": ["a", "b"]}))
    with pytest.raises(DataError, match="name, which is text"):
        statistic(source, read("median(name)", 2, {}, {}))
    with pytest.raises(DataError, match="one of the table's"):
        statistic(source, read("median(other)", 2, {}, {}))
    with pytest.raises(DataError, match="floats must hold what"):
        statistic(source, read("var_pop(x)", 2, {}, {"x": (0.0, 1e200)}))


def test_a_table_that_cannot_be_read_has_a_fixed_text(tmp_path: Path) -> None:
    path = tmp_path / "broken.csv"
    path.write_text("x\n" + "1\n" * 30_000 + "planted\n", encoding="utf-8")
    source = open_table(path)
    for text in ("var_pop(x)", "median(x)"):
        with pytest.raises(DataError) as failure:
            statistic(source, read(text, 30_001, {}, {"x": (0.0, 1.0)}))
        assert str(failure.value) == ENGINE_FAILED.format(columns="x")


def test_one_query_of_the_table(tmp_path: Path) -> None:
    """Counted by DuckDB itself."""
    source = open_table(ENGINES["parquet"](TABLE, tmp_path))
    connection = source.engine.con
    for text in TEXTS:
        connection.execute("CALL enable_logging('QueryLog')")
        statistic(source, read(text))
        connection.execute("CALL disable_logging()")
        logged = connection.execute("SELECT message FROM duckdb_logs WHERE type = 'QueryLog'").fetchall()
        connection.execute("CALL truncate_duckdb_logs()")
        queries = [text for (text,) in logged if "_log" not in text]
        assert len(queries) == 1
        assert queries[0].count('FROM "ibis_read_parquet') == 1
