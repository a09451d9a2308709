"""Sums over a view: those of pandas, exact, and the same whatever the order of the file and the rows beside the view."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.engines.scan import NOT_FINITE
from attrpriv.engines.tables import Source, open_table
from attrpriv.engines.view import CHANGED, Cells, Drawn, draw, kept_rows, view_table
from attrpriv.engines.view_answers import CellSums, ViewSums, check_queries, view_sums
from attrpriv.errors import DataError
from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries

N = 600
KEY = "00ff" * 16


def people(n: int = N, seed: int = 1) -> pa.Table:
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(n),
            "sex": np.where(generator.random(n) < 0.3, "F", "M"),
            "x": generator.lognormal(3, 2, n),
            "age": generator.integers(20, 60, n),
            "smoker": generator.random(n) < 0.2,
            "city": pa.array([None if k == 4 else f"city {k}" for k in generator.integers(0, 5, n)], pa.string()),
            "gap": pa.array([None if k % 9 == 0 else k / 7 for k in range(n)], pa.float64()),
        }
    )


def cells(keep: tuple[int, int] = (150, 380), n: int = N) -> Cells:
    return Cells((parse_condition("sex = 'F'"), None), keep, keep, (n - keep[1], n - keep[0]))


@cache
def usual() -> tuple[Source, Cells, Drawn]:
    source, rule = open_table(people()), cells()
    return source, rule, draw(source, rule, N, None, KEY)


def opened(data: object | None = None) -> tuple[Source, Cells, Drawn]:
    if data is None:
        return usual()
    source, rule = open_table(data), cells()
    return source, rule, draw(source, rule, N, None, KEY)


def sums(text: str, data: object | None = None, missing: Any = None, bounds: Any = None) -> ViewSums:
    source, rule, drawn = opened(data)
    (query,) = parse_queries(text)
    return view_sums(source, rule, drawn, None, query, missing or {}, bounds or {})


@cache
def view_frame() -> pd.DataFrame:
    source, rule, drawn = usual()
    frame: pd.DataFrame = view_table(source, rule, drawn, None, ()).to_pandas()
    return frame


def by_cell(frame: pd.DataFrame, y: Any, hit: Any) -> list[tuple[int, float, float]]:
    """What pandas says of each cell: rows that satisfy the filter, their sum, their sum of squares."""
    return [
        (int(hit[women].sum()), math.fsum(y[women & hit]), math.fsum(y[women & hit] ** 2))
        for women in (frame["sex"] == "F", frame["sex"] != "F")
    ]


def close(found: tuple[CellSums, ...], expected: list[tuple[int, float, float]]) -> None:
    assert [s.hits for s in found] == [hits for hits, _, _ in expected]
    assert [float(s.total) for s in found] == pytest.approx([total for _, total, _ in expected], rel=1e-12)
    assert [float(s.squares) for s in found] == pytest.approx([squares for _, _, squares in expected], rel=1e-11)


FILTERS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "": lambda frame: frame["x"] > -1,
    "age >= 40": lambda frame: frame["age"] >= 40,
    "smoker = true and x < 50": lambda frame: frame["smoker"] & (frame["x"] < 50),
    "not (city = 'city 1')": lambda frame: (frame["city"] != "city 1") & frame["city"].notna(),
    "city is null or age in (20, 21)": lambda frame: frame["city"].isna() | frame["age"].isin([20, 21]),
    "sex = 'F'": lambda frame: frame["sex"] == "F",
    "x < -5": lambda frame: frame["x"] < -5,
}


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("statistic", ["avg(x)", "sum(age)", "count(*)", "avg(smoker)"])
def test_the_sums_are_those_of_pandas(statistic: str, where: str) -> None:
    frame = view_frame()
    column = statistic[4:-1]
    y = frame["x"] * 0 + 1 if statistic == "count(*)" else frame[column].astype(float)
    found = sums(statistic + (f" filter (where {where})" if where else "")).groups
    assert list(found) == [None]
    close(found[None], by_cell(frame, y, FILTERS[where](frame)))


@pytest.mark.parametrize("where", ["", "age >= 40"])
@pytest.mark.parametrize("group", ["city", "sex", "smoker", "age"])
def test_groups_are_those_of_pandas(group: str, where: str) -> None:
    frame = view_frame()
    found = sums(f"SELECT {group}, avg(x) FROM data {'WHERE ' + where if where else ''} GROUP BY {group}").groups
    names = frame[group].astype(object).where(frame[group].notna(), None)
    texts = [None if name is None else str(name).lower() if group == "smoker" else str(name) for name in names]
    assert set(found) == set(texts)
    assert list(found) == sorted(set(texts), key=lambda name: (name is None, name)), "groups come in a fixed order"
    for name in found:
        here = pd.Series([text == name for text in texts], index=frame.index)
        close(found[name], by_cell(frame, frame["x"], FILTERS[where](frame) & here))


def test_whole_numbers_are_exact() -> None:
    frame = view_frame()
    found = sums("sum(age)").groups[None]
    for part, women in zip(found, (frame["sex"] == "F", frame["sex"] != "F"), strict=True):
        ages = [int(age) for age in frame["age"][women]]
        assert part.total == Fraction(sum(ages))
        assert part.squares == Fraction(sum(age * age for age in ages))


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e15, 1e150])
def test_large_and_small_numbers_keep_their_digits(scale: float) -> None:
    table = people().set_column(2, "x", pa.array(np.asarray(people()["x"]) * scale))
    source, rule, drawn = opened(table)
    frame = view_table(source, rule, drawn, None, ()).to_pandas()
    found = view_sums(source, rule, drawn, None, Query("avg", "x"), {}, {}).groups[None]
    expected = [sum(map(Fraction, frame["x"][women])) for women in (frame["sex"] == "F", frame["sex"] != "F")]
    assert all(abs(part.total / total - 1) < 1e-12 for part, total in zip(found, expected, strict=True))


def test_a_small_spread_around_a_large_number_survives() -> None:
    """Floats would lose it: the squares are of the order of 1e18."""
    table = people().set_column(2, "x", pa.array(1e9 + np.asarray(people()["x"]) % 1))
    source, rule, drawn = opened(table)
    frame = view_table(source, rule, drawn, None, ()).to_pandas()
    part = view_sums(source, rule, drawn, None, Query("avg", "x"), {}, {}).groups[None][0]
    values = frame["x"][frame["sex"] == "F"].to_numpy() - 1e9
    assert float((part.squares - part.total**2 / 150) / 149) == pytest.approx(values.var(ddof=1), rel=1e-4)


# A function of the kept rows.


@pytest.mark.parametrize("text", ["avg(x)", "sum(x) filter (where age > 30)", "SELECT city, avg(x) FROM data GROUP BY city"])
def test_neither_order_nor_other_rows_nor_threads_show_in_the_last_digit(text: str, tmp_path: Path) -> None:
    """By ids: sorted or mixed, in row groups of many sizes, and with other values beside the kept rows."""
    n = 6000
    table, rule = people(n), cells((1500, 3800), n)
    (query,) = parse_queries(text)
    found, naive = [], []
    kept: set[int] = set()
    for k, size in enumerate((6000, 500, 77)):
        order = [np.arange(n), np.lexsort((np.asarray(table["x"]), np.asarray(table["sex"]))), np.arange(n)[::-1]][k]
        given = table.take(order)
        if k:
            values = np.asarray(given["x"]).copy()
            values[[j for j, name in enumerate(given["id"].to_pylist()) if name not in kept]] = 1e12 * k
            given = given.set_column(2, "x", pa.array(values))
        pq.write_table(given, tmp_path / f"{k}.parquet", row_group_size=size)
        source = open_table(tmp_path / f"{k}.parquet")
        drawn = draw(source, rule, n, "id", KEY)
        kept = kept or set(kept_rows(source, rule, drawn, "id").id.to_pyarrow().to_pylist())
        found.append(view_sums(source, rule, drawn, "id", query, {}, {}))
        naive.append(kept_rows(source, rule, drawn, "id").x.sum().to_pyarrow().as_py())
    assert found[0] == found[1] == found[2]
    assert len(set(naive)) > 1, "the mutant: a sum of floats does tell"


def test_the_same_question_gets_the_same_answer() -> None:
    assert sums("avg(x)") == sums("avg(x)")


# Missing, infinite, out of bounds.


def test_missing_values_take_the_public_one() -> None:
    frame = view_frame()
    close(sums("avg(gap)", missing={"gap": 2.5}).groups[None], by_cell(frame, frame["gap"].fillna(2.5), frame["x"] > -1))


def test_values_are_kept_in_their_bounds() -> None:
    frame = view_frame()
    y = frame["x"].clip(5, 40)
    close(sums("avg(x)", bounds={"x": (5.0, 40.0)}).groups[None], by_cell(frame, y, frame["x"] > -1))
    filled = frame["gap"].fillna(1000).clip(0, 50)
    found = sums("avg(gap)", missing={"gap": 1000.0}, bounds={"gap": (0.0, 50.0)})
    close(found.groups[None], by_cell(frame, filled, frame["x"] > -1))


def test_nan_is_missing_and_infinities_are_clipped() -> None:
    values = np.asarray(people()["x"]).copy()
    values[::5], values[1::5] = np.nan, np.inf
    table = people().set_column(2, "x", pa.array(values, from_pandas=False))
    frame = view_frame_of(table)
    y = frame["x"].fillna(3.0).clip(0, 10)
    close(sums("avg(x)", table, {"x": 3.0}, {"x": (0.0, 10.0)}).groups[None], by_cell(frame, y, y > -1))


def view_frame_of(table: pa.Table) -> pd.DataFrame:
    source, rule, drawn = opened(table)
    found: pd.DataFrame = view_table(source, rule, drawn, None, ()).to_pyarrow().to_pandas()
    return found


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), None])
def test_a_value_that_cannot_be_summed_is_an_announced_failure(bad: float | None) -> None:
    column = people()["x"].to_pylist()
    column[::2] = [bad] * (N // 2)
    table = people().set_column(2, "x", pa.array(column, pa.float64(), from_pandas=False))
    with pytest.raises(DataError) as caught:
        sums("avg(x)", table)
    assert str(caught.value) == NOT_FINITE.format(columns="x")
    assert caught.value.__context__ is None


def test_a_bad_value_outside_the_filter_or_the_view_does_no_harm() -> None:
    table = people()
    kept = set(view_frame_of(table)["id"])
    column = table["x"].to_pylist()
    column = [value if name in kept else float("nan") for name, value in enumerate(column)]
    beside = table.set_column(2, "x", pa.array(column, from_pandas=False))
    assert sums("avg(x)", beside) == sums("avg(x)", table)
    inside = [float("inf") if age == 30 else value for age, value in zip(table["age"].to_pylist(), column, strict=True)]
    filtered = table.set_column(2, "x", pa.array(inside, from_pandas=False))
    text = "avg(x) filter (where age != 30)"
    assert sums(text, filtered) == sums(text, table)


# What is refused.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("avg(height)", "the column must be one of the table's. Got height."),
        ("avg(city)", "avg and sum need a numeric column. Got city, which is text."),
        ("avg(x) filter (where height > 3)", "Got 'height'"),
        ("avg(x) filter (where city > 3)", "must compare a text column"),
        ("SELECT height, avg(x) FROM data GROUP BY height", "group by: must be one of the table's columns. Got height."),
        ("avg(id)", "query: must not read an identifier, which the view leaves out. Got id."),
        ("count(*) filter (where id = 17)", "must not read an identifier"),
        ("avg(x) filter (where age > 3 and not (id in (1, 2)))", "must not read an identifier"),
        ("SELECT id, count(*) FROM data GROUP BY id", "must not read an identifier"),
    ],
)
def test_what_the_schema_does_not_allow(text: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        check_queries(open_table(people()), parse_queries(text), ("id",))


def test_an_id_that_chooses_rows_cannot_be_asked_for() -> None:
    source, rule = open_table(people()), cells()
    drawn = draw(source, rule, N, "id", KEY)
    with pytest.raises(DataError, match="must not read an identifier"):
        view_sums(source, rule, drawn, "id", parse_queries("SELECT id, count(*) FROM data GROUP BY id")[0], {}, {})


def test_counts_that_do_not_fit_are_noticed() -> None:
    source, rule, drawn = opened()
    wrong = Drawn(drawn.key, (drawn.thresholds[1], drawn.thresholds[1]), drawn.fingerprint)
    with pytest.raises(DataError) as caught:
        view_sums(source, rule, wrong, None, Query("count"), {}, {})
    assert str(caught.value) == CHANGED
