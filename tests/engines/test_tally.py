"""Counting rows in one pass, on DuckDB and Polars, against plain Python; and failures that quote no cell."""

from __future__ import annotations

import logging
import random
import sqlite3
import traceback
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.engines import tally as tally_module
from attrpriv.engines.scan import ENGINE_FAILED, ColumnRead, scan
from attrpriv.engines.tables import open_table
from attrpriv.engines.tally import UNKNOWN_CATEGORY, Tallied, TallyRead
from attrpriv.errors import DataError
from attrpriv.queries.conditions import Condition, Join, Not, parse_condition

polars: Any = pytest.importorskip("polars")

PLANTED = "PLANTED-4711"
NAN, INF = float("nan"), float("inf")
ENGINES: dict[str, Callable[[Any], object]] = {
    "duckdb": lambda table: table,
    "polars": lambda table: polars.from_arrow(table),
    "polars, lazy": lambda table: polars.from_arrow(table).lazy(),
}
engines = pytest.mark.parametrize("engine", list(ENGINES))
YES_NO = ("smoker is 'yes'", "smoker is 'no'")


def read(
    cells: Sequence[str],
    *categories: str | None,
    complete: bool = False,
    fill: Any = None,
    clip: Any = None,
    covering: Sequence[Sequence[str]] = (),
) -> TallyRead:
    known = tuple(None if text is None else parse_condition(text) for text in categories)
    sets = tuple(tuple(map(parse_condition, alternatives)) for alternatives in covering)
    return TallyRead(tuple(map(parse_condition, cells)), complete, known, fill or {}, clip or {}, sets)


def tally(engine: str, columns: Mapping[str, Any], what: TallyRead) -> Tallied:
    found = scan(open_table(ENGINES[engine](pa.table(dict(columns)))), (), what)
    assert found.tally is not None
    return found.tally


def failure(engine: str, columns: Mapping[str, Any], what: TallyRead) -> DataError:
    source = open_table(ENGINES[engine](pa.table(dict(columns))))
    with pytest.raises(DataError) as caught:
        scan(source, (), what)
    return caught.value


# ---------------------------------------------------------------------------------------------------------------- counts


@engines
def test_cells_and_categories(engine: str) -> None:
    columns = {"smoker": ["yes", "no", "yes", "no", "no"], "stay": [8, 9, 1, None, 3]}
    assert tally(engine, columns, read(["stay > 7", "not (stay > 7)"], *YES_NO)) == Tallied((2, 2), (2, 3))


@engines
def test_a_missing_entry_satisfies_nothing_unless_it_is_filled(engine: str) -> None:
    columns = {"x": pa.array([NAN, None, 3.0, INF], pa.float64(), from_pandas=False)}
    conditions = ["x > 2", "not (x > 2)", "x is null", "x = 5"]
    assert tally(engine, columns, read(conditions)) == Tallied((2, 0, 2, 0), ())
    assert tally(engine, columns, read(conditions, fill={"x": 5})) == Tallied((4, 0, 0, 2), ())
    assert tally(engine, columns, read(conditions, fill={"x": 1.5})) == Tallied((2, 2, 0, 0), ())
    assert tally(engine, columns, read(conditions, fill={"x": 50.0}, clip={"x": (0, 5)})) == Tallied((4, 0, 0, 3), ())


@engines
def test_integers_and_decimals_are_filled_and_clipped(engine: str) -> None:
    columns = {
        "i": pa.array([None, -9, 2, 70], pa.int8()),
        "d": pa.array([None, Decimal("-1.50"), Decimal("0.50"), Decimal("9.00")], pa.decimal128(9, 2)),
    }
    what = read(
        ["i = 0", "i = 2", "i = 5", "d = 0.5", "d = 2.5", "d < 0"], fill={"i": 2, "d": 0.5}, clip={"i": (0, 5), "d": (-1, 2.5)}
    )
    assert tally(engine, columns, what) == Tallied((1, 2, 1, 2, 1, 1), ())
    what = read(["i = 0.5", "i = 5.5"], fill={"i": 0.5}, clip={"i": (0.5, 5.5)})
    assert tally(engine, columns, what) == Tallied((2, 1), ())


@engines
def test_booleans(engine: str) -> None:
    columns = {"flag": pa.array([True, False, None, True])}
    assert tally(engine, columns, read(["flag = true", "flag is 'false'"])) == Tallied((2, 1), ())
    assert tally(engine, columns, read(["flag = true", "flag = false"], complete=True, fill={"flag": 1})) == Tallied((3, 1), ())
    assert tally(engine, columns, read(["flag = true", "flag = false"], complete=True, fill={"flag": 0.0})) == Tallied(
        (2, 2), ()
    )
    half = failure(engine, columns, read(["flag = true", "flag = false"], complete=True, fill={"flag": 0.5}))
    assert str(half) == UNKNOWN_CATEGORY.format(columns="flag")


@engines
def test_the_last_bin_includes_its_end(engine: str) -> None:
    columns = {"age": [0, 17, 18, 64, 65, 120]}
    bins = ["age >= 0 and age < 18", "age >= 18 and age < 65", "age >= 65 and age <= 120"]
    assert tally(engine, columns, read(bins, *bins, complete=True)) == Tallied((2, 2, 2), (2, 2, 2))
    above = {"age": [0, 121]}
    assert str(failure(engine, above, read(bins, complete=True))) == UNKNOWN_CATEGORY.format(columns="age")
    assert tally(engine, above, read(bins, complete=True, clip={"age": (0, 120)})) == Tallied((1, 0, 1), ())


@engines
def test_other_takes_every_row_of_no_named_category(engine: str) -> None:
    columns = {"smoker": ["yes", None, "maybe", "no", "yes"]}
    assert tally(engine, columns, read(["smoker = 'yes'"], "smoker is 'yes'", None, "smoker is 'no'")) == Tallied(
        (2,), (2, 2, 1)
    )


@engines
def test_integer_categories_by_name(engine: str) -> None:
    columns = {"grade": pa.array([1, 2, 10, 2], pa.int16())}
    assert tally(engine, columns, read(["grade >= 2"], "grade is '1'", "grade is '2'", "grade is '10'")) == Tallied(
        (3,), (1, 2, 1)
    )


@engines
def test_a_table_without_rows(engine: str) -> None:
    columns = {"smoker": pa.array([], pa.string())}
    assert tally(engine, columns, read(["smoker = 'yes'"], *YES_NO, complete=True)) == Tallied((0,), (0, 0))


@engines
@pytest.mark.parametrize("seed", range(3))
def test_random_tables_agree_with_plain_python(engine: str, seed: int) -> None:
    rng = random.Random(seed)
    values = [rng.choice([None, NAN, -3.0, 0.0, 0.5, 2.0, 9.0]) for _ in range(200)]
    names = [rng.choice(["yes", "no", "maybe", None]) for _ in range(200)]
    bound, sign = rng.choice([0.0, 0.5, 2.0]), rng.choice(["<", "<=", ">", ">=", "=", "!="])
    plain: dict[str, Callable[[float], bool]] = {
        "<": lambda x: x < bound,
        "<=": lambda x: x <= bound,
        ">": lambda x: x > bound,
        ">=": lambda x: x >= bound,
        "=": lambda x: x == bound,
        "!=": lambda x: x != bound,
    }
    clip, fill = (-1.0, 2.0), rng.choice([None, 0.5, 50.0])

    def prepared(x: float | None) -> float | None:
        given = fill if x is None or x != x else x
        return None if given is None else min(max(given, clip[0]), clip[1])

    kept = [prepared(x) for x in values]
    columns = {"x": pa.array(values, pa.float64(), from_pandas=False), "smoker": names}
    what = read(
        [f"x {sign} {bound}", f"not (x {sign} {bound})"],
        *YES_NO,
        None,
        fill={} if fill is None else {"x": fill},
        clip={"x": clip},
    )
    held = [plain[sign](x) for x in kept if x is not None]
    groups = (names.count("yes"), names.count("no"), names.count("maybe") + names.count(None))
    assert tally(engine, columns, what) == Tallied((sum(held), len(held) - sum(held)), groups)


def test_sqlite_has_no_nan(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        connection.execute("CREATE TABLE people (smoker TEXT, y REAL)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", [("yes", 1.5), ("no", None), ("no", 9.0)])
    connection.close()
    engine = ibis.sqlite.connect(tmp_path / "t.sqlite")
    found = scan(open_table(engine.table("people")), (), read(["y > 2"], *YES_NO, fill={"y": 3.0}, clip={"y": (0, 5)}))
    engine.disconnect()
    assert found.tally == Tallied((2,), (1, 2))


# ------------------------------------------------------------------------------------------------------------- one query


def test_one_query_counts_everything(tmp_path: Path) -> None:
    pq.write_table(pa.table({"smoker": ["yes", "no"], "x": [1.5, NAN]}), tmp_path / "t.parquet")
    source = open_table(tmp_path / "t.parquet")
    source.engine.con.execute("CALL enable_logging('QueryLog')")
    found = scan(source, [ColumnRead("x", fill=1.0)], read(["x > 1", "x > 2"], *YES_NO, complete=False, fill={"x": 5}))
    source.engine.con.execute("CALL disable_logging()")
    logged = source.engine.con.execute("SELECT message FROM duckdb_logs WHERE type = 'QueryLog'").fetchall()
    queries = [text for (text,) in logged if "_logging" not in text]
    assert len(queries) == 1
    assert queries[0].count("FROM") == 1
    assert (found.rows, found.sums, found.tally) == (2, (Fraction(5, 2),), Tallied((2, 1), (1, 1)))


def test_a_lazy_frame_is_collected_once() -> None:
    collected: list[str] = []

    def spy(frame: Any) -> Any:
        collected.append("now")
        return frame

    lazy = polars.LazyFrame({"smoker": ["yes", "no"]}).map_batches(spy)
    assert scan(open_table(lazy), (), read(["smoker = 'yes'"], *YES_NO)).tally == Tallied((1,), (1, 1))
    assert collected == ["now"]


# --------------------------------------------------------------------------------------------------- announced failures


BAD: dict[str, tuple[dict[str, Any], TallyRead]] = {
    "an unknown category": ({"smoker": ["yes", PLANTED]}, read(["smoker = 'yes'"], *YES_NO)),
    "no category": ({"smoker": ["yes", None]}, read(["smoker = 'yes'"], *YES_NO)),
    "a value of no cell": ({"smoker": ["yes", PLANTED]}, read(list(YES_NO), complete=True)),
    "no value": ({"smoker": ["yes", None]}, read(list(YES_NO), complete=True)),
}


@engines
@pytest.mark.parametrize("name", list(BAD))
def test_a_row_without_a_place_is_announced_and_not_quoted(
    engine: str, name: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    error = failure(engine, *BAD[name])
    assert str(error) == UNKNOWN_CATEGORY.format(columns="smoker")
    assert error.__cause__ is None
    assert error.__context__ is None
    told = "".join(traceback.format_exception(error)) + caplog.text + "".join(capsys.readouterr())
    assert PLANTED not in told
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if "attrpriv/engines" in frame.f_code.co_filename]
    assert frames
    assert PLANTED not in "".join(repr(value) for frame in frames for value in frame.f_locals.values())


@engines
@pytest.mark.parametrize("where", ["categories", "cells", "covering"])
def test_a_row_of_two_places_does_not_make_up_for_one_of_none(engine: str, where: str) -> None:
    """The counts add up all the same: two of the first row, none of the second."""
    columns = {"smoker": ["yes", "maybe"]}
    twice = ("smoker is 'yes'", "smoker in ('yes', 'no')")
    asked = {
        "categories": read(["smoker = 'yes'"], *twice),
        "cells": read(list(twice), complete=True),
        "covering": read(["smoker = 'yes'"], covering=[twice]),
    }[where]
    assert "every row must have a category, and a value" in str(failure(engine, columns, asked))
    one = {"smoker": ["yes", "no"]}
    assert tally(engine, one, read(["smoker = 'yes'"], *YES_NO)) == Tallied((1,), (1, 1))


def test_what_fails_in_the_engine_has_a_fixed_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError(PLANTED)

    monkeypatch.setattr(tally_module, "holds", broken)
    error = failure("duckdb", {"smoker": ["yes"]}, read(["smoker = 'yes'"], *YES_NO))
    assert str(error) == ENGINE_FAILED.format(columns="smoker")


def test_the_schema_alone_decides_what_can_be_counted() -> None:
    columns = {"smoker": ["yes"], "x": [1.5], "n": [3]}
    for text, said in [
        ("age > 3", "the column must be one of the table's. Got age"),
        ("x = 'a'", "must compare a float column with a number"),
        ("smoker = 3", "must compare a text column with a text constant"),
        ("n = true", "must compare an integer column with a number"),
        ("x is '1.5'", "x is not a category column; declare bins for it"),
    ]:
        assert said in str(failure("duckdb", columns, read([text])))
        assert said in str(failure("duckdb", columns, read(["n > 0"], text)))


def test_the_counts_do_not_show_in_a_repr() -> None:
    assert repr(Tallied((47,), (11,))) == "Tallied()"
    assert "47" not in repr(scan(open_table(pa.table({"n": [3] * 47 + [0]})), (), read(["n > 0"])))


def test_columns_are_named_once() -> None:
    conditions: tuple[Condition, ...] = (
        Join("and", (parse_condition("a > 1"), parse_condition("b > 1"))),
        Not(parse_condition("a > 2")),
    )
    assert TallyRead(conditions, False, (None, parse_condition("c is 'x'"))).columns == ("a", "b", "c")
