"""One pass over a table: the sums, on every engine, against plain Python; and that nothing else gets out."""

from __future__ import annotations

import gc
import gzip
import logging
import math
import random
import sqlite3
import traceback
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from attrpriv.engines import scan as scan_module
from attrpriv.engines.scan import ENGINE_FAILED, NOT_FINITE, ColumnRead, Scan, check_columns, scan
from attrpriv.engines.tables import open_table
from attrpriv.errors import DataError

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


ENGINES: dict[str, Callable[[Any, Path], object]] = {
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
EXACT = [engine for engine in ENGINES if not engine.startswith("csv")]  # a CSV file has no decimals


def plain(values: Sequence[Any], read: ColumnRead) -> Fraction:
    """The slow and obvious twin: fill, clip, add, each value as a fraction."""
    total = Fraction(0)
    for value in values:
        given = read.fill if value is None or value != value else value
        assert given is not None
        if read.clip is not None:
            given = min(max(given, read.clip[0]), read.clip[1])
        total += Fraction(given)
    return total


def failure(data: object, reads: Sequence[ColumnRead]) -> DataError:
    source = open_table(data)
    with pytest.raises(DataError) as caught:
        scan(source, reads)
    return caught.value


# ----------------------------------------------------------------------------------------------------------------- sums


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_rows_and_sums(engine: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "count": pa.array([3, None, -4, 10], pa.int64()),
            "smoker": [True, None, False, True],
            "weight": [150.5, NAN, None, 0.25],
            "name": ["ann", "bob", "eve", "dan"],
        }
    )
    reads = [
        ColumnRead("weight", fill=100.0),
        ColumnRead("count", fill=7),
        ColumnRead("smoker", fill=0.5),
        ColumnRead("weight", fill=-5.0, clip=(0.5, 140.0)),
        ColumnRead("count", fill=2.5, clip=(-1.5, 9.75)),
    ]
    found = scan(open_table(ENGINES[engine](table, tmp_path)), reads)
    assert found.rows == 4
    assert found.sums == tuple(map(Fraction, ("350.75", "16", "2.5", "141.5", "13.75")))


@pytest.mark.parametrize("engine", ENGINES)
def test_large_integers_are_added_exactly(engine: str, tmp_path: Path) -> None:
    values = [2**62 + 1] * 7 + [-(2**63), 2**53 + 1]
    table = pa.table({"x": pa.array(values, pa.int64())})
    found = scan(open_table(ENGINES[engine](table, tmp_path)), [ColumnRead("x"), ColumnRead("x", clip=(0, 2**62))])
    assert found.sums == tuple(map(Fraction, (sum(values), 7 * 2**62 + 2**53 + 1)))


@pytest.mark.parametrize("engine", EXACT)
@pytest.mark.parametrize("dtype", [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.uint64()])
def test_every_width_of_integer(engine: str, dtype: Any, tmp_path: Path) -> None:
    most = 2 ** (dtype.bit_width - (1 if str(dtype).startswith("i") else 0)) - 1
    table = pa.table({"x": pa.array([most, most, 1, 0], dtype)})
    beyond = ColumnRead("x", clip=(-1e30, 1e30))
    above = ColumnRead("x", clip=(1e30, 1e30))
    below = ColumnRead("x", clip=(-1e30, -1e30))
    found = scan(open_table(ENGINES[engine](table, tmp_path)), [ColumnRead("x"), beyond, above, below])
    assert found.sums == (2 * most + 1, 2 * most + 1, 4 * Fraction(1e30), -4 * Fraction(1e30))


@pytest.mark.parametrize("engine", EXACT)
def test_decimals_are_added_exactly(engine: str, tmp_path: Path) -> None:
    values = [Decimal("0.10"), Decimal("0.20"), None, Decimal("99999999999999999.99"), Decimal("-7.35")]
    table = pa.table({"x": pa.array(values, pa.decimal128(20, 2))})
    reads = [
        ColumnRead("x", fill=0.5),
        ColumnRead("x", fill=0.5, clip=(0.1, 0.2)),  # the float 0.1 is greater than the decimal 0.10
        ColumnRead("x", fill=0.5, clip=(-1e30, 1e30)),
        ColumnRead("x", fill=0.5, clip=(1e30, 1e30)),
    ]
    found = scan(open_table(ENGINES[engine](table, tmp_path)), reads)
    exact = Fraction("0.30") + Fraction("0.5") + Fraction("99999999999999999.99") - Fraction("7.35")
    clipped = 2 * Fraction(0.1) + Fraction("0.20") + 2 * Fraction(0.2)
    assert found.sums == (exact, clipped, exact, 5 * Fraction(1e30))


@pytest.mark.parametrize("engine", EXACT)
def test_booleans_are_zero_and_one(engine: str, tmp_path: Path) -> None:
    table = pa.table({"x": [True, True, False, None]})
    reads = [ColumnRead("x", fill=0), ColumnRead("x", fill=1), ColumnRead("x", fill=0, clip=(0.25, 0.5))]
    assert scan(open_table(ENGINES[engine](table, tmp_path)), reads).sums == (
        Fraction(2),
        Fraction(3),
        Fraction("1.5"),
    )


@pytest.mark.parametrize("engine", EXACT)
def test_narrow_floats_mean_what_they_hold(engine: str, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([0.5, 0.1, NAN, INF], pa.float32())})
    held = Fraction(table.column("x")[1].as_py())
    found = scan(open_table(ENGINES[engine](table, tmp_path)), [ColumnRead("x", fill=0, clip=(0, 2))])
    assert found.sums == (Fraction("2.5") + held,)


def test_floats_are_added_with_compensation(tmp_path: Path) -> None:
    values = [0.1] * 100_000
    found = scan(open_table(parquet(pa.table({"x": values}), tmp_path)), [ColumnRead("x")])
    assert found.sums == (Fraction(math.fsum(values)),)
    assert sum(values) != math.fsum(values)  # which plain addition does not give


def test_float_bounds_are_the_very_floats(tmp_path: Path) -> None:
    rng = random.Random(1)
    for _ in range(25):
        bound = rng.random() * 10.0 ** rng.randint(-6, 6)
        source = open_table(pa.table({"x": [math.nextafter(bound, -INF), bound, math.nextafter(bound, INF)]}))
        clips = [(bound, bound), (bound, bound + 1), (bound - 1, bound)]
        reads = [ColumnRead("x", clip=clip) for clip in clips]
        kinds = [scan_module._outside(source.table.x, "float", clip) for clip in clips]
        counts = {f"{side}_{k}": source.table.count(where=kind[side]) for k, kind in enumerate(kinds) for side in kind}
        assert source.run(source.table.aggregate(**counts)) == dict.fromkeys(counts, 1) | {"above_1": 0, "below_2": 0}
        assert scan(source, reads).sums[0] == 3 * Fraction(bound)


@pytest.mark.parametrize("engine", EXACT)
@pytest.mark.parametrize("seed", range(3))
def test_random_tables_agree_with_plain_python(engine: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    small = [Fraction(k, 8) for k in range(-80, 80)]  # sums of such floats are exact

    def column(make: Callable[[], Any]) -> list[Any]:
        return [None if rng.random() < 0.2 else make() for _ in range(60)]

    columns: dict[str, Any] = {
        "i": pa.array(column(lambda: rng.randint(-20, 20)), pa.int64()),
        "f": pa.array(column(lambda: rng.choice([*map(float, small), NAN])), pa.float64()),
        "d": pa.array(column(lambda: Decimal(rng.randint(-2000, 2000)).scaleb(-2)), pa.decimal128(9, 2)),
        "b": pa.array(column(lambda: rng.random() < 0.5), pa.bool_()),
    }
    reads = []
    for name in columns:
        low, high = sorted(float(rng.choice(small)) for _ in range(2))
        reads += [ColumnRead(name, fill=0.25), ColumnRead(name, fill=rng.uniform(-12, 12), clip=(low, high))]
    table = pa.table(columns)
    found = scan(open_table(ENGINES[engine](table, tmp_path)), reads)
    values = {name: table.column(name).to_pylist() for name in columns}
    assert found == Scan(60, tuple(plain(values[read.column], read) for read in reads))


def test_sqlite_has_neither_nan_nor_decimals_and_still_adds_up(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (x INTEGER, y REAL)")
        rows = [(2**62, 1.5), (-(2**61), None), (None, INF), (2**53 + 1, 2.0)]
        connection.executemany("INSERT INTO people VALUES (?, ?)", rows)
    connection.close()
    reads = [ColumnRead("x", fill=0.5), ColumnRead("y", fill=1.25, clip=(0, 10))]
    engine = ibis.sqlite.connect(path)
    found = scan(open_table(engine.table("people")), reads)
    engine.disconnect()
    assert found == Scan(4, (2**61 + 2**53 + 1 + Fraction("0.5"), Fraction("14.75")))


def test_bounds_on_a_numeric_of_any_scale_keep_all_their_digits() -> None:
    table = ibis.table({"x": "decimal"}, name="people")  # PostgreSQL's numeric without precision
    sides = scan_module._outside(table.x, "decimal", (0.1, 2.0))
    text = ibis.to_sql(table.aggregate(n=table.count(where=sides["below"])), dialect="postgres")
    assert "0.1000000000000000055511151231257827021181583404541015625" in text


# ----------------------------------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize("engine", ENGINES)
def test_without_reads_the_rows_are_counted(engine: str, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1.5, None, NAN, 2.5]), "name": ["a", "b", "c", "d"]})
    assert scan(open_table(ENGINES[engine](table, tmp_path)), []) == Scan(4, ())


@pytest.mark.parametrize("engine", EXACT)
def test_a_table_without_rows_has_sums_of_zero(engine: str, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([], pa.int64()), "y": pa.array([], pa.float64())})
    reads = [ColumnRead("x"), ColumnRead("y"), ColumnRead("y", fill=3, clip=(1, 5))]
    assert scan(open_table(ENGINES[engine](table, tmp_path)), reads) == Scan(0, (Fraction(0),) * 3)


@pytest.mark.parametrize("engine", EXACT)
def test_a_column_without_values_is_all_fill(engine: str, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([None, None], pa.int64()), "y": pa.array([None, NAN], pa.float64())})
    reads = [ColumnRead("x", fill=1.5), ColumnRead("y", fill=9, clip=(1, 5))]
    assert scan(open_table(ENGINES[engine](table, tmp_path)), reads) == Scan(2, (Fraction(3), Fraction(10)))


@pytest.mark.parametrize("name", ["a b", 'say "x"', "it's", "select", "größe", "a.b", "a;--", "x\ny", "{0}", "rows", "%s"])
@pytest.mark.parametrize("engine", ENGINES)
def test_any_column_name_will_do(name: str, engine: str, tmp_path: Path) -> None:
    table = pa.table({"other": [100, 200, 300], name: pa.array([1, 2, None], pa.int64())})
    found = scan(open_table(ENGINES[engine](table, tmp_path)), [ColumnRead(name, fill=4), ColumnRead("other")])
    assert found == Scan(3, (Fraction(7), Fraction(600)))


# ------------------------------------------------------------------------------------------------------------ one query


def test_one_query_reads_everything(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2], "y": [1.5, 2.5], "z": [True, False]})
    source = open_table(parquet(table, tmp_path))
    source.engine.con.execute("CALL enable_logging('QueryLog')")
    scan(source, [ColumnRead(name, fill=1, clip=(0, 2)) for name in "xyzxyz"])
    source.engine.con.execute("CALL disable_logging()")
    logged = source.engine.con.execute("SELECT message FROM duckdb_logs WHERE type = 'QueryLog'").fetchall()
    queries = [text for (text,) in logged if "_logging" not in text]
    assert len(queries) == 1
    assert queries[0].count("FROM") == 1


def test_a_lazy_frame_is_collected_once() -> None:
    collected: list[str] = []

    def spy(frame: Any) -> Any:
        collected.append("now")
        return frame

    lazy = polars.LazyFrame({"x": [1, 2], "y": [1.5, 2.5]}).map_batches(spy)
    assert scan(open_table(lazy), [ColumnRead("x"), ColumnRead("y", fill=1, clip=(0, 2))]).sums == (
        Fraction(3),
        Fraction("3.5"),
    )
    assert collected == ["now"]


# --------------------------------------------------------------------------------------------------- announced failures


@pytest.mark.parametrize("engine", EXACT)
@pytest.mark.parametrize("bad", [[1.0, None], [1.0, NAN], [1.0, INF], [1.0, -INF], [1e308, 1e308]])
def test_values_that_are_not_finite_are_announced(engine: str, bad: list[float | None], tmp_path: Path) -> None:
    table = pa.table({"fine": [1, 2], "weight": pa.array(bad, pa.float64(), from_pandas=False)})
    error = failure(ENGINES[engine](table, tmp_path), [ColumnRead("fine"), ColumnRead("weight")])
    assert str(error) == NOT_FINITE.format(columns="fine, weight")


@pytest.mark.parametrize("dtype", [pa.int64(), pa.bool_(), pa.decimal128(9, 2)])
def test_missing_values_of_exact_types_are_announced(dtype: Any) -> None:
    table = pa.table({"weight": pa.array([None, None], dtype)})
    assert str(failure(table, [ColumnRead("weight", clip=(0, 1))])) == NOT_FINITE.format(columns="weight")


def test_the_announcement_does_not_say_which_column_failed() -> None:
    reads = [ColumnRead("x"), ColumnRead("y")]
    first = failure(pa.table({"x": [1, None, None], "y": [1, 2, 3]}), reads)
    second = failure(pa.table({"x": [1, 2, 3], "y": [1.5, INF, 7.0]}), reads)
    assert str(first) == str(second)
    assert first.args == second.args


def test_infinite_values_are_clipped_and_not_filled() -> None:
    table = pa.table({"x": [INF, -INF, 1.0, NAN]})
    assert scan(open_table(table), [ColumnRead("x", fill=3, clip=(-10, 20))]).sums == (Fraction(14),)
    assert str(failure(table, [ColumnRead("x", fill=3)])) == NOT_FINITE.format(columns="x")


def test_columns_are_refused_by_the_schema_before_any_row_is_read(tmp_path: Path) -> None:
    table = pa.table({"weight": ["150", PLANTED], "Income": [1, 2], "born": pa.array([0, 1], pa.date32())})
    path = Path(str(parquet(table, tmp_path)))
    source = open_table(path)
    path.unlink()  # nothing can be read any more
    expected = {
        "weight": "data: avg and sum need a numeric column. Got weight, which is text. Choose or make a numeric one.",
        "born": "data: avg and sum need a numeric column. Got born, which is a date. Choose or make a numeric one.",
        "wieght": "data: the column must be one of the table's. Got wieght. Close: weight.",
        "INCOME": "data: the column must be one of the table's. Got INCOME. Close: Income.",
        "a b": "data: the column must be one of the table's. Got 'a b'. It has: weight, Income, born.",
    }
    for column, message in expected.items():
        for refuse in (lambda name: scan(source, [ColumnRead(name)]), lambda name: check_columns(source, [name])):
            with pytest.raises(DataError) as caught:
                refuse(column)
            assert str(caught.value) == message
    check_columns(source, ["Income"])
    with pytest.raises(DataError, match=r"^data: the engine could not read the table\. Columns read: Income\."):
        scan(source, [ColumnRead("Income")])


def test_a_name_that_was_read_as_a_difference() -> None:
    """avg(hours-per-week) is the average of hours minus per minus week."""
    table = pa.table({"age": [1], **{f"c{k}": [k] for k in range(9)}, "hours-per-week": [2], "week": [1]})
    assert str(failure(table, [ColumnRead("hours")])).endswith('Got hours. In double quotes there is: "hours-per-week".')


def test_a_long_list_of_columns_is_cut() -> None:
    table = pa.table({f"c{k}": [k] for k in range(30)})
    assert str(failure(table, [ColumnRead("weight")])).endswith("It has: c0, c1, c2, c3, c4, c5, c6, c7, ....")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ColumnRead("x", fill=NAN), "missing: the value for x must be finite. Got nan."),
        (lambda: ColumnRead("x", fill=INF), "missing: the value for x must be finite. Got inf."),
        (lambda: ColumnRead("x", clip=(2, 1)), "bounds: x needs two finite bounds in order. Got [2, 1]."),
        (lambda: ColumnRead("x", clip=(-INF, 1)), "bounds: x needs two finite bounds in order. Got [-inf, 1]."),
        (lambda: ColumnRead("a b", clip=(0, NAN)), "bounds: 'a b' needs two finite bounds in order. Got [0, nan]."),
    ],
)
def test_a_read_is_checked(make: Callable[[], ColumnRead], message: str) -> None:
    with pytest.raises(DataError) as caught:
        make()
    assert str(caught.value) == message


def test_a_scan_does_not_show_its_sums() -> None:
    assert repr(Scan(3, (Fraction(4711),))) == "Scan(rows=3)"


# -------------------------------------------------------------------------------------------------------- nothing leaks


def said(error: BaseException) -> Iterator[str]:
    """Everything that an error, those behind it, and the frames of attrpriv on its way say."""
    yield from (str(error), repr(error), repr(error.args), repr(vars(error)), *traceback.format_exception(error))
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if "attrpriv" in frame.f_globals["__name__"]:
            yield from map(repr, frame.f_locals.values())
    for behind in (error.__cause__, error.__context__):
        if behind is not None:
            yield from said(behind)


def alive() -> list[BaseException]:
    """The exceptions still held by anything that quote the planted value."""
    gc.collect()
    return [held for held in gc.get_objects() if isinstance(held, BaseException) and PLANTED in str(held)]


def late_text(folder: Path) -> object:
    path = folder / "late.csv"
    path.write_text("name,weight\n" + "ann,150\n" * 30_000 + f"bob,{PLANTED}\n" + "ann,150\n" * 100)
    return path


def late_field(folder: Path) -> object:
    path = folder / "field.csv"
    path.write_text("name,weight\n" + "ann,150\n" * 30_000 + f"{PLANTED},150,{PLANTED}\n")
    return path


def late_bytes(folder: Path) -> object:
    path = folder / "bytes.csv"
    path.write_bytes(b"name,weight\n" + b"ann,150\n" * 30_000 + b"bob," + PLANTED.encode() + b"\xff\xfe\n")
    return path


def cast_text(folder: Path) -> object:
    path = folder / "text.parquet"
    pq.write_table(pa.table({"raw": ["150", PLANTED]}), path)
    table = ibis.duckdb.connect().read_parquet(path)
    return table.select(weight=table.raw.cast("int64"))


def polars_cast(_: Path) -> object:
    return polars.LazyFrame({"raw": ["150", PLANTED]}).select(weight=polars.col("raw").cast(polars.Int64))


def polars_code(_: Path) -> object:
    def broken(frame: Any) -> Any:
        raise ValueError(PLANTED)

    return polars.LazyFrame({"weight": [1, 2]}).map_batches(broken)


LEAKS: dict[str, Callable[[Path], object]] = {
    "csv, late text": late_text,
    "csv, late field": late_field,
    "csv, late bytes": late_bytes,
    "ibis, cast": cast_text,
    "polars, cast": polars_cast,
    "polars, code": polars_code,
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_failing_engine_says_nothing_of_the_rows(
    leak: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    error = failure(LEAKS[leak](tmp_path), [ColumnRead("weight")])
    assert str(error) == ENGINE_FAILED.format(columns="weight")
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not [text for text in said(error) if PLANTED in text]
    assert alive() == []
    assert PLANTED not in caplog.text
    assert PLANTED not in "".join(capfd.readouterr())


def test_a_corrupt_page_is_an_engine_failure(tmp_path: Path) -> None:
    path = Path(str(parquet(pa.table({"weight": [float(k) for k in range(1000)]}), tmp_path)))
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    assert str(failure(path, [ColumnRead("weight")])) == ENGINE_FAILED.format(columns="weight")


def test_a_sum_beyond_the_engine_is_an_engine_failure(tmp_path: Path) -> None:
    most = Decimal(10) ** 37 * 9
    table = pa.table({"x": pa.array([most] * 4, pa.decimal128(38, 0))})
    for data in (table, parquet(table, tmp_path)):
        assert str(failure(data, [ColumnRead("x")])) == ENGINE_FAILED.format(columns="x")


# The three tests below show that the ones above can fail.


def test_duckdb_itself_does_quote_the_planted_value(tmp_path: Path) -> None:
    with pytest.raises(duckdb.Error, match=PLANTED):
        duckdb.connect().execute(f"SELECT sum(weight) FROM '{late_text(tmp_path)}'").fetchall()


def loud(work: Callable[[], Any]) -> Any:
    return work()


def chained(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        raise DataError(ENGINE_FAILED) from error


def half_chained(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception:
        raise DataError(ENGINE_FAILED) from None


@pytest.mark.parametrize("mutant", [loud, chained, half_chained])
@pytest.mark.parametrize("leak", ["csv, late text", "csv, late field", "ibis, cast", "polars, cast", "polars, code"])
def test_a_mutant_that_lets_the_exception_live_is_caught(
    mutant: Callable[[Callable[[], Any]], Any], leak: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_table(LEAKS[leak](tmp_path))
    monkeypatch.setattr(scan_module, "quietly", mutant)
    with pytest.raises(Exception, match=f"could not read|{PLANTED}") as caught:
        scan(source, [ColumnRead("weight")])
    assert [text for text in said(caught.value) if PLANTED in text]
    assert alive()


def test_an_exception_kept_aside_is_found() -> None:
    kept = ValueError(PLANTED)
    assert alive() == [kept]
