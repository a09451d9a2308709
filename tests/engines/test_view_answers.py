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
from attrpriv.engines.view.answers import CellSums, Viewed, ViewSums, check_queries, view_moments, view_sums
from attrpriv.engines.view.draw import CHANGED, Cells, Drawn, draw, kept_rows, view_table
from attrpriv.engines.view.quantiles import view_quantiles, weighted_hits, whole_weights
from attrpriv.engines.view.values import NO_GROUP, AtMost, Group, Quadratic
from attrpriv.errors import DataError
from attrpriv.queries.conditions import Compare, Condition, Written, parse_condition
from attrpriv.queries.query import Query, quoted
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


CITIES: dict[str, Condition | None] = {f"city {k}": Written("city", f"city {k}") for k in range(4)}
GROUPS: dict[str, dict[str, Condition | None]] = {
    "city": {**CITIES, "other": None},
    "sex": {"M": Written("sex", "M"), "F": Written("sex", "F")},
    "smoker": {"true": Compare("smoker", "=", True), "false": Compare("smoker", "=", False)},
    "age": {str(age): Compare("age", "=", age) for age in range(20, 60)},
}


def viewed(opened: tuple[Source, Cells, Drawn], query: Query, missing: Any = None, bounds: Any = None) -> Viewed:
    groups = None if query.group_by is None else [Group(*item) for item in GROUPS[query.group_by].items()]
    source, rule, drawn = opened
    return Viewed(source, rule, drawn, None, missing or {}, bounds or {}, groups)


def sums(text: str, data: object | None = None, missing: Any = None, bounds: Any = None) -> ViewSums:
    (query,) = parse_queries(text)
    return view_sums(viewed(opened(data), query, missing, bounds), query)


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
    texts = ["other" if name is None else str(name).lower() if group == "smoker" else str(name) for name in names]
    assert list(found) == list(GROUPS[group]), "the groups that are declared, in their order"
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
    found = view_sums(Viewed(source, rule, drawn, None, {}, {}), Query("avg", "x")).groups[None]
    expected = [sum(map(Fraction, frame["x"][women])) for women in (frame["sex"] == "F", frame["sex"] != "F")]
    assert all(abs(part.total / total - 1) < 1e-12 for part, total in zip(found, expected, strict=True))


def test_a_small_spread_around_a_large_number_survives() -> None:
    """Floats would lose it: the squares are of the order of 1e18."""
    table = people().set_column(2, "x", pa.array(1e9 + np.asarray(people()["x"]) % 1))
    source, rule, drawn = opened(table)
    frame = view_table(source, rule, drawn, None, ()).to_pandas()
    part = view_sums(Viewed(source, rule, drawn, None, {}, {}), Query("avg", "x")).groups[None][0]
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
        groups = [Group(*item) for item in GROUPS["city"].items()]
        found.append(view_sums(Viewed(source, rule, drawn, "id", {}, {}, groups if query.group_by else None), query))
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
        ("avg(x) filter (where height > 3)", "Got height"),
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
        view_sums(Viewed(source, rule, drawn, "id", {}, {}), parse_queries("SELECT id, count(*) FROM data GROUP BY id")[0])


def test_counts_that_do_not_fit_are_noticed() -> None:
    source, rule, drawn = opened()
    wrong = Drawn(drawn.key, (drawn.thresholds[1], drawn.thresholds[1]), drawn.fingerprint)
    with pytest.raises(DataError) as caught:
        view_sums(Viewed(source, rule, wrong, None, {}, {}), Query("count"))
    assert str(caught.value) == CHANGED


# Arithmetic, second moments, quantiles, groups.


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("avg(2*x + age/3 - 1)", lambda f: 2 * f["x"] + f["age"] / 3 - 1),
        ("sum(x*age - x*x)", lambda f: f["x"] * f["age"] - f["x"] ** 2),
        ("avg(smoker * x)", lambda f: f["smoker"] * f["x"]),
        ("avg(gap + 0.1)", lambda f: f["gap"].fillna(2.5).clip(0, 50) + 0.1),
    ],
    ids=["linear", "products", "boolean", "filled and clipped"],
)
def test_arithmetic_is_that_of_pandas(text: str, of: Callable[[pd.DataFrame], Any]) -> None:
    frame = view_frame()
    found = sums(text, missing={"gap": 2.5}, bounds={"gap": (0.0, 50.0)})
    close(found.groups[None], by_cell(frame, of(frame), frame["x"] > -1))


def test_a_sum_of_products_that_overflows_is_an_announced_failure() -> None:
    table = people().set_column(2, "x", pa.array(np.asarray(people()["x"]) * 1e200))
    with pytest.raises(DataError) as caught:
        sums("avg(x * x)", table)
    assert str(caught.value) == NOT_FINITE.format(columns="x")


def test_moments_are_those_of_exact_arithmetic() -> None:
    """Both columns far from zero: floats would lose the covariance."""
    table = people().set_column(2, "x", pa.array(1e9 + np.asarray(people()["x"]) % 1))
    frame = view_frame_of(table)
    (query,) = parse_queries("covar_pop(x, 1000*age)")
    found = view_moments(viewed(opened(table), query), query).groups[None]
    for part, women in zip(found, (frame["sex"] == "F", frame["sex"] != "F"), strict=True):
        pairs = [
            (Fraction(x), Fraction(1000 * int(age))) for x, age in zip(frame["x"][women], frame["age"][women], strict=True)
        ]
        n = len(pairs)
        exact = sum(x * a for x, a in pairs) / n - sum(x for x, _ in pairs) * sum(a for _, a in pairs) / n**2
        own = part.products[0][1] / part.hits - part.totals[0] * part.totals[1] / part.hits**2
        assert abs(float(own / exact) - 1) < 1e-9
        here = frame[women]
        naive = float(np.mean(here["x"] * (1000.0 * here["age"]))) - float(np.mean(here["x"]) * np.mean(1000.0 * here["age"]))
        assert abs(naive / float(exact) - 1) > 1e-6, "the mutant: floats do lose it"


def test_a_transform_is_of_each_group_its_own() -> None:
    frame = view_frame()
    (query,) = parse_queries("SELECT sex, covar_pop(x, age) FROM data WHERE age > 30 GROUP BY sex")
    parts = [Quadratic((3.0, 40.0), (0.5, -1.0), ((0, 1, 2.0), (1, 1, 0.25))), None]
    found = view_sums(viewed(usual(), query), query, parts).groups
    x, age, men, hit = frame["x"] - 3, frame["age"] - 40, frame["sex"] == "M", frame["age"] > 30
    close(found["M"], by_cell(frame, 0.5 * x - age + 2 * x * age + 0.25 * age * age, hit & men))
    close(found["F"], by_cell(frame, 0 * x, hit & ~men))
    (query,) = parse_queries("median(x) filter (where age > 30)")
    found = view_sums(viewed(usual(), query), query, [AtMost(20.0)]).groups
    close(found[None], by_cell(frame, (frame["x"] <= 20.0).astype(float), hit))


WEIGHTS = (0.7 / 150, 0.3 / 380)


def slow_quantile(frame: pd.DataFrame, column: str, hit: Any, wanted: float) -> float:
    """The definition, over sorted rows, in fractions."""
    weights = [
        (value, WEIGHTS[0] if sex == "F" else WEIGHTS[1]) for value, sex in zip(frame[column], frame["sex"], strict=True)
    ]
    rows = sorted(row for row, kept in zip(weights, hit, strict=True) if kept)
    target = Fraction(wanted) * sum(Fraction(weight) for _, weight in rows)
    reached = Fraction(0)
    for value, weight in rows:
        reached += Fraction(weight)
        if reached >= target:
            return float(value)
    raise AssertionError


@pytest.mark.parametrize("column", ["x", "age"])
@pytest.mark.parametrize("level", [0.013, 0.25, 0.5, 0.9, 0.999])
def test_quantiles_are_those_of_the_definition(column: str, level: float) -> None:
    frame = view_frame()
    (query,) = parse_queries(f"SELECT sex, approx_quantile({column}, {level}) FROM data WHERE age > 25 GROUP BY sex")
    view = viewed(usual(), query)
    hits = [[cell.hits for cell in cells] for cells in view_sums(view, query).groups.values()]
    weights = whole_weights(WEIGHTS, (150, 380))
    wanted = [[math.ceil(Fraction(level) * weighted_hits(weights, counts))] for counts in hits]
    found = view_quantiles(view, query, weights, wanted)
    for name, one in zip(("M", "F"), found, strict=True):
        assert one == [slow_quantile(frame, column, (frame["age"] > 25) & (frame["sex"] == name), level)]


def test_an_empty_group_has_no_quantile_and_sums_of_zero() -> None:
    (query,) = parse_queries("SELECT sex, median(x) FROM data WHERE sex = 'M' GROUP BY sex")
    view = viewed(usual(), query)
    assert [cell.hits for cell in view_sums(view, query).groups["F"]] == [0, 0]
    assert view_quantiles(view, query, whole_weights(WEIGHTS, (150, 380)), [[1], [0]])[1] is None


def test_a_row_of_no_declared_group_is_an_announced_failure() -> None:
    (query,) = parse_queries("SELECT city, count(*) FROM data GROUP BY city")
    source, rule, drawn = usual()
    few = Viewed(source, rule, drawn, None, {}, {}, [Group("city 1", Written("city", "city 1"))])
    with pytest.raises(DataError) as caught:
        view_sums(few, query)
    assert str(caught.value) == NO_GROUP
    (query,) = parse_queries("SELECT city, count(*) FROM data WHERE city = 'city 1' GROUP BY city")
    assert sum(cell.hits for cell in view_sums(few, query).groups["city 1"]) == (view_frame()["city"] == "city 1").sum()


NASTY = (
    "cell",
    "group",
    "hit",
    "absent",
    "u0",
    "x0",
    "y0",
    "w0",
    "select",
    'a"b',
    "a'b",
    "a b; drop table data; --",
    "größe",
    "-x",
)


def test_names_are_data_whatever_they_are() -> None:
    """Names that this module uses itself, names that end a statement, names that are expressions."""
    table = people()
    for k, name in enumerate(NASTY):
        table = table.append_column(name, pa.array([float((7 * j + k) % 11) for j in range(N)]))
    source, rule = open_table(table), cells()
    drawn = draw(source, rule, N, None, KEY)
    frame = view_table(source, rule, drawn, None, ()).to_pandas()
    summed = " + ".join(f"{k + 1} * {quoted(name)}" for k, name in enumerate(NASTY))
    where = " and ".join(f"{quoted(name)} >= 0" for name in NASTY) + f" and {quoted(NASTY[-1])} > 3"
    (query,) = parse_queries(f"avg({summed}) filter (where {where})")
    found = view_sums(Viewed(source, rule, drawn, None, {}, {}), query).groups[None]
    y = sum(((k + 1) * frame[name] for k, name in enumerate(NASTY)), 0 * frame["x"])
    close(found, by_cell(frame, y, frame[NASTY[-1]] > 3))
