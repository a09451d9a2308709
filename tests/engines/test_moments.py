"""Moments of public records on every engine, against exact arithmetic; their digest; and the private table recognised by it."""

from __future__ import annotations

import gzip
import itertools
import traceback
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from attrpriv.engines import moments as module
from attrpriv.engines.moments import (
    ENGINE_FAILED,
    NOT_COMPARED,
    NOT_FINITE,
    SAME_TABLE,
    GroupMoments,
    Moments,
    PublicTable,
    content_digest,
    require_other_table,
)
from attrpriv.engines.tables import Source, open_table
from attrpriv.errors import DataError
from attrpriv.numerics import row_digest

polars: Any = pytest.importorskip("polars")

PLANTED = "PLANTED-4711"
NAN, INF = float("nan"), float("inf")


# -------------------------------------------------------------------------------------------------------------- engines


def parquet(table: Any, folder: Path) -> object:
    path = folder / "t.parquet"
    pq.write_table(table, path)
    return path


def csv(table: Any, folder: Path) -> object:
    path = folder / "t.csv"
    pyarrow.csv.write_csv(table, path)
    return path


def compressed_csv(table: Any, folder: Path) -> object:
    path = folder / "t.csv.gz"
    path.write_bytes(gzip.compress(Path(str(csv(table, folder))).read_bytes()))
    return path


def in_a_database(table: Any, _: Path) -> object:
    connection = ibis.duckdb.connect()
    connection.con.register("given", table)
    connection.raw_sql("CREATE TABLE people AS FROM given")
    return connection.table("people")


ENGINES: Mapping[str, Callable[[Any, Path], object]] = {
    "parquet": parquet,
    "csv": csv,
    "csv.gz": compressed_csv,
    "arrow": lambda table, _: table,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: polars.from_arrow(table),
    "polars, lazy": lambda table, _: polars.from_arrow(table).lazy(),
    "ibis": in_a_database,
    "ibis, in memory": lambda table, _: ibis.memtable(table),
}


def plain(table: Any, columns: Sequence[str]) -> tuple[list[float], list[list[float]]]:
    """The slow and obvious twin: means and covariances in fractions."""
    values = [[Fraction(value) for value in table.column(column).to_pylist()] for column in columns]
    n = table.num_rows
    means = [sum(column, Fraction(0)) / n for column in values]
    centred = [[x - mean for x in column] for column, mean in zip(values, means, strict=True)]
    products = [[sum((a * b for a, b in zip(f, s, strict=True)), Fraction(0)) / (n - 1) for s in centred] for f in centred]
    return [float(mean) for mean in means], [[float(product) for product in row] for row in products]


def agrees(found: Moments, table: Any, tolerance: float = 1e-13) -> None:
    means, covariance = plain(table, found.columns)
    assert found.rows == table.num_rows
    sds = [covariance[k][k] ** 0.5 for k in range(len(means))]
    for k, mean in enumerate(means):
        assert abs(found.means[k] - mean) <= tolerance * max(sds[k], abs(mean))
        for j in range(len(means)):
            assert abs(found.covariance[j][k] - covariance[j][k]) <= tolerance * sds[j] * sds[k]


def people(rows: int = 300, seed: int = 3) -> Any:
    rng = np.random.default_rng(seed)
    income = rng.normal(60_000, 30_000, size=rows)
    return pa.table(
        {
            "income": income,
            "weight": np.rint(150 + 0.0003 * income + 20 * rng.normal(size=rows)).astype(np.int64),
            "smoker": rng.random(rows) < 0.4,
            "name": [f"person {k}" for k in range(rows)],
        }
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_moments(engine: str, tmp_path: Path) -> None:
    table = people()
    found = PublicTable(ENGINES[engine](table, tmp_path)).moments(["weight", "income", "smoker"])
    assert found.columns == ("weight", "income", "smoker")
    agrees(found, table)
    assert found.digest == PublicTable(table).moments(["smoker", "weight", "income"]).digest


def test_a_column_asked_twice_counts_once() -> None:
    assert PublicTable(people()).moments(["weight", "weight"]).columns == ("weight",)


def test_decimals_and_small_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "price": pa.array([Decimal("1.25"), Decimal("-3.50"), Decimal("10.75")], pa.decimal128(9, 2)),
            "small": pa.array([1, 2, 250], pa.uint8()),
            "short": pa.array([0.5, 0.25, -4.0], pa.float32()),
        }
    )
    agrees(PublicTable(parquet(table, tmp_path)).moments(["price", "small", "short"]), table)


# ----------------------------------------------------------------------------------------------------------- numerics


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9, -1e12])
def test_a_far_away_mean_costs_no_digits(offset: float) -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"a": offset + rng.normal(size=3000), "b": 1e-6 * rng.normal(size=3000)})
    agrees(PublicTable(table).moments(["a", "b"]), table, 1e-12)


@pytest.mark.parametrize("order", ["up", "down", "outliers first"])
def test_sorted_rows_do_not_mislead_the_pilot(order: str) -> None:
    rng = np.random.default_rng(2)
    values = 1e8 + rng.normal(size=20_000)
    if order == "outliers first":
        values[:1000] += 1e6
    else:
        values = np.sort(values)[:: 1 if order == "up" else -1]
    table = pa.table({"a": values, "b": rng.normal(size=20_000)})
    agrees(PublicTable(table).moments(["a", "b"]), table, 1e-11)


def test_naive_sums_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: no pilot."""
    table = pa.table({"a": 1e9 + np.random.default_rng(1).normal(size=3000)})
    monkeypatch.setattr(module, "_pilot", lambda source, names: [0.0] * len(names))
    with pytest.raises(AssertionError):
        agrees(PublicTable(table).moments(["a"]), table, 1e-12)


# ---------------------------------------------------------------------------------------------------------- by category


def workers(rows: int = 400, seed: int = 5, offset: float = 0.0) -> Any:
    """Two groups far apart against their spread, and a few more."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["a", "b", "c\u00e9 'x'"], p=[0.5, 0.4, 0.1], size=rows)
    hours = offset + np.where(kind == "a", 0.0, 1e6) + rng.normal(size=rows)
    return pa.table({"category": kind, "hours": hours, "rows": rng.integers(0, 9, size=rows), "flag": kind == "a"})


def agrees_by_category(found: GroupMoments, table: Any, tolerance: float = 1e-12) -> None:
    kinds = table.column(found.sensitive).to_pylist()
    named = [str(kind).lower() if isinstance(kind, bool) else str(kind) for kind in kinds]
    assert found.categories == tuple(sorted(set(named)))
    assert found.rows == table.num_rows == sum(found.counts)
    for c, category in enumerate(found.categories):
        rows = table.filter(pa.array([name == category for name in named]))
        assert found.counts[c] == rows.num_rows
        means, covariance = plain(rows, found.columns)
        for k, mean in enumerate(means):
            assert abs(found.means[c][k] - mean) <= tolerance * max(abs(mean), covariance[k][k] ** 0.5)
            assert abs(found.variances[c][k] - covariance[k][k]) <= tolerance * covariance[k][k]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sensitive", ["category", "flag"])
def test_every_engine_gives_the_same_moments_by_category(engine: str, sensitive: str, tmp_path: Path) -> None:
    table = workers()
    found = PublicTable(ENGINES[engine](table, tmp_path)).group_moments(sensitive, ["hours", "rows"])
    agrees_by_category(found, table)
    assert found.digest == PublicTable(table).moments(["rows", "hours"]).digest


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_categories_far_apart_cost_no_digits(offset: float) -> None:
    table = workers(3000, offset=offset)
    agrees_by_category(PublicTable(table).group_moments("category", ["hours"]), table)


def test_one_pilot_for_all_categories_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: sums centred at 0."""
    table = workers(offset=1e9)
    right = module._group_sums
    monkeypatch.setattr(module, "_group_sums", lambda s, c, n, pilots: right(s, c, n, {k: [0.0] for k in pilots}))
    monkeypatch.setattr(module, "_pilots", lambda *of: {k: [0.0] for k in ("a", "b", "c\u00e9 'x'")})
    with pytest.raises(AssertionError):
        agrees_by_category(PublicTable(table).group_moments("category", ["hours"]), table)


@pytest.mark.parametrize("bad", [None, NAN, INF])
def test_a_value_in_a_category_that_is_missing_or_infinite(bad: float | None) -> None:
    table = pa.table({"g": ["a", "a", "b", "b"], "x": [1.0, 2.0, 3.0, bad]})
    with pytest.raises(DataError) as caught:
        PublicTable(table).group_moments("g", ["x"])
    assert str(caught.value) == NOT_FINITE.format(columns="x")
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_categories_that_cannot_be_used() -> None:
    cases: list[tuple[Any, str, str]] = [
        (pa.table({"g": ["a", None], "x": [1.0, 2.0]}), "g", "public: every row must have a category of g."),
        (pa.table({"g": [0.5, 1.5], "x": [1.0, 2.0]}), "g", "public: the sensitive column must hold text"),
        (pa.table({"g": ["a", "b"], "x": [1.0, 2.0]}), "h", "data: the column must be one of the table's. Got h."),
        (pa.table({"g": list(range(300)), "x": [1.0] * 300}), "g", "public: g must have at most 200 categories."),
    ]
    for table, sensitive, says in cases:
        with pytest.raises(DataError) as caught:
            PublicTable(table).group_moments(sensitive, ["x"])
        assert str(caught.value).startswith(says)
    single = PublicTable(pa.table({"g": ["a", "b", "b"], "x": [1.0, 2.0, 3.0]})).group_moments("g", ["x"])
    assert single.counts == (1, 2)
    assert np.isnan(single.variances[0][0])


# ------------------------------------------------------------------------------------------------------------- refusals


def failure(data: object, *columns: str) -> DataError:
    table = PublicTable(data)
    with pytest.raises(DataError) as caught:
        table.moments(columns)
    return caught.value


@pytest.mark.parametrize("bad", [None, NAN, INF, -INF])
@pytest.mark.parametrize("row", [0, 5])
@pytest.mark.parametrize("engine", ["arrow", "polars, lazy", "parquet"])
def test_a_value_that_is_missing_or_infinite(engine: str, row: int, bad: float | None, tmp_path: Path) -> None:
    values: list[float | None] = [1.0, 2.0, 4.0, 3.0, 5.0, 9.0]
    values[row] = bad
    table = pa.table({"a": values, "b": [1.0, 0.0, 2.0, 1.0, 3.0, 1.0]})
    error = failure(ENGINES[engine](table, tmp_path), "a", "b")
    assert str(error) == NOT_FINITE.format(columns="a, b")
    assert error.__cause__ is error.__context__ is None


def test_a_column_that_is_not_there_or_not_numeric() -> None:
    assert str(failure(people(), "age")).startswith("data: the column must be one of the table's. Got age.")
    assert str(failure(people(), "weight", "name")).startswith("data: avg and sum need a numeric column. Got name")


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows(rows: int) -> None:
    assert str(failure(people().slice(0, rows), "weight")) == f"public: needs at least 2 rows. Got {rows}."


def test_an_engine_that_fails_says_nothing_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = ["a,b", *(f"{k},{k * k % 7}" for k in range(60_000)), f"{PLANTED},3"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    error = failure(path, "a", "b")
    assert str(error) == ENGINE_FAILED.format(columns="a, b")
    assert PLANTED not in "".join(traceback.format_exception(error))


# --------------------------------------------------------------------------------------------------------------- digest


def digest(table: Any, *columns: str) -> str:
    found = content_digest(open_table(table), columns or ("income", "weight"))
    assert found is not None
    assert len(found) == 64
    return found


def test_the_digest_is_of_the_rows_and_of_nothing_else() -> None:
    table = people()
    mixed = table.take(np.random.default_rng(4).permutation(table.num_rows))
    as_floats = table.set_column(1, "weight", table.column("weight").cast("float64"))
    assert len({digest(table), digest(mixed), digest(as_floats), digest(table.drop_columns(["name"]))}) == 1
    assert digest(table, "weight", "income") == digest(table, "income", "weight")
    assert digest(pa.table({"a": [0.0, 1.0]}), "a") == digest(pa.table({"a": [-0.0, 1.0]}), "a")


def test_any_change_of_the_rows_changes_the_digest() -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 2.0]})
    others = [
        pa.table({"a": [1.0, 2.0, 3.0000000000000004], "b": [1.0, 1.0, 2.0]}),
        pa.table({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 1.0]}),  # the same columns, but other rows
        pa.table({"b": [1.0, 2.0, 3.0], "a": [1.0, 1.0, 2.0]}),  # the names exchanged
        pa.table({"a": [1.0, 2.0, None], "b": [1.0, 1.0, 2.0]}),
        table.slice(0, 2),
        pa.concat_tables([table, table]),
        pa.concat_tables([table, table.slice(0, 1)]),
    ]
    found = [digest(each, "a", "b") for each in (table, *others)]
    assert all(first != second for first, second in itertools.combinations(found, 2))


def test_the_digest_does_not_change_from_version_to_version() -> None:
    """Assumption files hold it."""
    table = pa.table({"a": [1.0, 2.0, 3.5], "b": [1, -1, 2]})
    assert digest(table, "a", "b") == "cf265b9202977e194782060e7d2dbf66bf8ca71631d55146202f938de4b400aa"


def test_row_hashes_against_python_integers() -> None:
    """The slow and obvious twin: splitmix64 on plain integers."""
    import struct

    rows = [(1.0, -2.5), (0.0, 1e300), (NAN, 3.0)]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    for start in row_digest.STARTS:
        expected = []
        for row in rows:
            state = start
            for value in row:
                (bits,) = struct.unpack("<Q", struct.pack("<d", value))
                state = ((state ^ bits) + 0x9E3779B97F4A7C15) % 2**64
                state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
                state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % 2**64
                state ^= state >> 31
            expected.append(state)
        assert row_digest.row_hashes(columns, start).tolist() == expected


# ---------------------------------------------------------------------------------------------------- the private table


@pytest.mark.parametrize("engine", ENGINES)
def test_the_private_table_is_recognised_in_any_form(engine: str, tmp_path: Path) -> None:
    table = people()
    public = PublicTable(table).moments(["weight", "income"])
    private = open_table(ENGINES[engine](table.take(list(reversed(range(table.num_rows)))), tmp_path))
    with pytest.raises(DataError) as caught:
        require_other_table(private, public.rows, public.columns, public.digest)
    assert str(caught.value) == SAME_TABLE


@pytest.mark.parametrize("engine", ENGINES)
def test_another_table_passes(engine: str, tmp_path: Path) -> None:
    public = PublicTable(people()).moments(["weight", "income"])
    private = open_table(ENGINES[engine](people(seed=4), tmp_path))
    require_other_table(private, public.rows, public.columns, public.digest)


def test_no_row_is_read_where_the_schema_tells_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    public = PublicTable(people()).moments(["weight", "income"])
    read: list[Source] = []
    monkeypatch.setattr(module, "content_digest", lambda source, columns: read.append(source))
    lacking = people(seed=4).drop_columns(["income"])
    as_text = lacking.append_column("income", lacking.column("name"))
    for other in (people(299), lacking, as_text):
        require_other_table(open_table(other), public.rows, public.columns, public.digest)
    unknown = open_table(ENGINES["ibis"](people(299), Path()))
    require_other_table(unknown, public.rows, public.columns, public.digest, declared=299)
    assert read == []


def test_a_private_table_that_cannot_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "content_digest", lambda source, columns: None)
    with pytest.raises(DataError) as caught:
        require_other_table(open_table(people()), 300, ["weight"], "0" * 64)
    assert str(caught.value) == NOT_COMPARED
