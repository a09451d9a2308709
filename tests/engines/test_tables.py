"""Opening a table: every kind of it, what is read on the way, and what is refused."""

from __future__ import annotations

import gzip
import shlex
import subprocess
import sys
import warnings
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.engines import tables
from attrpriv.engines.tables import Source, open_table, quietly, shown_name
from attrpriv.errors import DataError

pandas: Any = pytest.importorskip("pandas")
polars: Any = pytest.importorskip("polars")

PLANTED = "PLANTED-4711"


def example() -> Any:
    return pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "smoker": [True, False, None],
            "price": pa.array([Decimal("1.10"), None, Decimal("2.25")], pa.decimal128(9, 2)),
            "weight": [150.5, None, 170.0],
            "name": ["ann", "bob", "eve"],
            "born": [date(2000, 1, 1), date(2001, 1, 1), None],
        }
    )


TYPES = {
    "id": "integer",
    "smoker": "boolean",
    "price": "decimal",
    "weight": "float",
    "name": "text",
    "born": "date",
}


def refusal(data: object) -> str:
    """The message with which `data` is refused, checked for what every refusal must be."""
    with pytest.raises(DataError) as caught:
        open_table(data)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    message = str(error)
    assert message.startswith("data: ")
    assert "\n" not in message
    assert "Got " in message
    return message


# --------------------------------------------------------------------------------------------------- what can be opened


def write_parquet(folder: Path) -> Path:
    path = folder / "table.parquet"
    pq.write_table(example(), path)
    return path


def in_a_database(_: Path) -> Any:
    connection = ibis.duckdb.connect()
    connection.con.register("given", example())
    connection.raw_sql("CREATE TABLE people AS FROM given")  # Ibis 12's own create_table fails with this SQLGlot
    return connection.table("people")


OPENED: dict[str, tuple[Callable[[Path], object], str, int | None]] = {
    "parquet": (write_parquet, "table.parquet", 3),
    "parquet as text": (lambda folder: str(write_parquet(folder)), "table.parquet", 3),
    "arrow": (lambda _: example(), "memory", 3),
    "pandas": (lambda _: example().to_pandas(), "memory", 3),
    "polars": (lambda _: polars.from_arrow(example()), "memory", 3),
    "polars, lazy": (lambda _: polars.from_arrow(example()).lazy(), "memory", None),
    "ibis": (in_a_database, "people", None),
    "ibis, in memory": (lambda _: ibis.memtable(example()), "memory", None),
    "ibis, a query": (lambda folder: in_a_database(folder).filter(ibis._.id > 1), "memory", None),
}


@pytest.mark.parametrize("kind", OPENED)
def test_every_kind_of_table_has_the_same_columns_in_order(kind: str, tmp_path: Path) -> None:
    make, name, rows = OPENED[kind]
    source = open_table(make(tmp_path))
    assert list(source.columns.items()) == list(TYPES.items())
    assert source.name == name
    assert source.rows == rows


def test_a_csv_file_has_types_by_sample_and_no_known_number_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,smoker,weight,name,born\n1,true,150.5,ann,2000-01-01\n2,false,,bob,2001-01-01\n")
    source = open_table(path)
    expected = {"id": "integer", "smoker": "boolean", "weight": "float", "name": "text", "born": "date"}
    assert dict(source.columns) == expected
    assert (source.name, source.rows) == ("people.csv", None)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("yes no", "text"),
        ("Yes No", "text"),
        ("t f", "text"),
        ("Y N", "text"),
        ("true false", "boolean"),
        ("True FALSE", "boolean"),
        ("true no", "text"),
        ("1 0", "integer"),
    ],
)
def test_a_csv_column_is_boolean_where_it_says_true_and_false(words: str, kind: str, tmp_path: Path) -> None:
    """DuckDB takes yes and t for true: then a policy that says smoker = 'yes', as the file does, would not fit the table."""
    lines = [f"{word};{number}" for number, word in enumerate(words.split() * 3)]
    (tmp_path / "a.csv").write_text("smoker;x\n" + "\n".join([*lines, ";7"]) + "\n", encoding="utf-8")
    source = open_table(tmp_path / "a.csv")
    assert source.columns == {"smoker": kind, "x": "integer"}
    cells = source.table.to_pyarrow()["smoker"].to_pylist()
    assert cells[-1] is None
    assert kind != "text" or cells[:-1] == words.split() * 3


def test_a_compressed_csv_file_is_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "people.CSV.gz"
    path.write_bytes(gzip.compress(b"id;weight\n1;150,5\n"))
    assert dict(open_table(path).columns) == {"id": "integer", "weight": "text"}


def test_a_subclass_of_a_frame_is_a_frame() -> None:
    own = type("Students", (pandas.DataFrame,), {})({"weight": [1, 2]})
    assert dict(open_table(own).columns) == {"weight": "integer"}


def test_a_parquet_file_without_rows_is_a_table_of_none(tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    pq.write_table(example().slice(0, 0), path)
    assert open_table(path).rows == 0


# --------------------------------------------------------------------------------------------- nothing is read too soon


def test_importing_the_module_imports_no_engine() -> None:
    heavy = {"ibis", "duckdb", "pandas", "polars", "pyarrow", "numpy", "sqlglot"}
    code = "import sys, attrpriv.engines.scan; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "attrpriv.engines.tables" in loaded
    assert not heavy & loaded


def test_opening_a_parquet_file_reads_its_footer_only(tmp_path: Path) -> None:
    path = write_parquet(tmp_path)
    content = bytearray(path.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[4:footer] = bytes(footer - 4)  # every page of data is now zeros
    path.write_bytes(content)
    source = open_table(path)
    assert (dict(source.columns), source.rows) == (TYPES, 3)
    assert quietly(lambda: source.run(source.table.aggregate(x=source.table.weight.sum()))) is None


def test_opening_a_lazy_frame_does_not_collect_it() -> None:
    collected: list[str] = []

    def spy(frame: Any) -> Any:
        collected.append("now")
        return frame

    lazy = polars.LazyFrame({"weight": [1.5, 2.5]}).map_batches(spy)
    source = open_table(lazy)
    assert collected == []
    source.run(source.table.aggregate(rows=source.table.count()))
    assert collected == ["now"]


def test_a_source_shows_no_row() -> None:
    table = pa.table({"name": [PLANTED], "weight": [4711.5]})
    assert "4711.5" in repr(ibis.memtable(table))  # Ibis does show it
    assert "4711.5" not in repr(open_table(table))
    assert "4711.5" not in repr(open_table(ibis.memtable(table)))


def test_the_engine_keeps_to_itself(tmp_path: Path) -> None:
    settings = ("temp_directory", "enable_progress_bar", "autoinstall_known_extensions")
    wanted = ", ".join(f"current_setting('{name}')" for name in settings)
    engine = open_table(write_parquet(tmp_path)).engine
    assert engine.con.execute(f"SELECT {wanted}").fetchone() == ("", False, False)


def test_a_notebook_without_widgets_has_no_bar_to_switch_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB refuses any word about its bar there, because it could not draw one."""
    backend = type(ibis.duckdb.connect())
    real = backend.raw_sql

    def refuses(self: Any, query: Any, **more: Any) -> Any:
        if "progress_bar" in str(query):
            raise duckdb.InvalidInputException("required package 'ipywidgets' is missing")
        return real(self, query, **more)

    monkeypatch.setattr(backend, "raw_sql", refuses)
    source = open_table(pa.table({"weight": [1.5, 2.5]}))
    assert source.run(source.table.aggregate(rows=source.table.count()))["rows"] == 2


# ----------------------------------------------------------------------------------------------------------- file names


@pytest.mark.parametrize("name", ["a[1]", "a*", "a?", "{a1,a2}", "it's", 'say "x"', "ü [ä]", "year=2020", "a; DROP"])
def test_a_path_is_a_path_and_not_a_pattern(name: str, tmp_path: Path) -> None:
    right, decoy = tmp_path / "d[1]", tmp_path / "d1"
    for folder, value in ((right, 7), (decoy, -1)):
        folder.mkdir()
        for other in ("a1", "aX", "a2", name):  # what the name would match as a pattern
            pq.write_table(pa.table({"x": [value if other == name else -1]}), folder / f"{other}.parquet")
            (folder / f"{other}.csv").write_text(f"x\n{value if other == name else -1}\n")
    for suffix in (".parquet", ".csv"):
        source = open_table(right / (name + suffix))
        assert source.name == name + suffix
        assert source.run(source.table.aggregate(x=source.table.x.sum(), n=source.table.count())) == {"x": 7, "n": 1}


def test_a_directory_named_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    pq.write_table(pa.table({"x": [1]}), folder / "t.parquet")
    (folder / "t.csv").write_text("x\n1\n")
    assert list(open_table(folder / "t.parquet").columns) == ["x"]
    assert list(open_table(folder / "t.csv").columns) == ["x"]


# ------------------------------------------------------------------------------------------------ CSV: every row counts


def csv(folder: Path, text: str) -> Path:
    path = folder / "t.csv"
    path.write_bytes(text.encode())
    return path


def rows_of(source: Source) -> int:
    return int(source.run(source.table.aggregate(n=source.table.count()))["n"])


def test_rows_that_do_not_fit_never_become_column_names(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,b\n1,2\n3\n4711,4712,4713\n")
    described = duckdb.connect().execute(f"DESCRIBE SELECT * FROM read_csv('{path}', header = true)").fetchall()
    assert described[0][0] == "4711"  # DuckDB on its own: three lines are gone, and the fourth is the header
    with pytest.raises(DataError, match="with the same number of fields on each line"):
        open_table(path)


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("a,b\n#1,2\n3,4\n", ["a", "b"], 2),  # not a comment
        ("a,b\n1,\n,\n", ["a", "b"], 2),
        ("a\n1\n\n2\n", ["a"], 3),  # a blank line of a single column is a missing value
        ("\ufeffa,b\r\n1,2\r\n", ["a", "b"], 1),
        (' a ,"b ""q"" ,c"\n1,2\n', ["a", 'b "q" ,c'], 1),
        ("a,,c\n1,2,3\n", ["a", "column1", "c"], 1),
        ("a|b\n1|2\n", ["a", "b"], 1),
        ("name,city\nann,Rome\nbob,Oslo\n", ["name", "city"], 2),
        ("name,city\n", ["name", "city"], 0),
    ],
)
def test_csv_files_as_they_come(text: str, columns: list[str], rows: int, tmp_path: Path) -> None:
    source = open_table(csv(tmp_path, text))
    assert list(source.columns) == columns
    assert rows_of(source) == rows


def test_quotes_after_the_sample_are_still_quotes(tmp_path: Path) -> None:
    source = open_table(csv(tmp_path, "name,x\n" + "ann,1\n" * 30_000 + '"Doe, Jane",2\n'))
    assert source.run(source.table.aggregate(x=source.table.x.sum())) == {"x": 30_002}


@pytest.mark.parametrize("text", ["", "\n", ",\n1,2\n", "150,60000\n160,70000\n"])
def test_a_csv_file_needs_a_line_of_names(text: str, tmp_path: Path) -> None:
    path = csv(tmp_path, text)
    expected = (
        f"data: a CSV file must begin with a line of column names. Got '{path}', which does not. Add that line, or convert"
    )
    assert refusal(path).startswith(expected)


def test_the_command_for_a_file_without_names_makes_one_with_names(tmp_path: Path) -> None:
    path = csv(tmp_path, "150,60000,a\n160,70000,b\n")
    attrpriv, *arguments = shlex.split(refusal(path).partition("first and second: ")[2])
    assert attrpriv == "attrpriv"
    arguments[-1] = arguments[-1].replace("second", "second,third")
    subprocess.run([sys.executable, "-m", "attrpriv", *arguments], check=True, cwd=tmp_path)
    source = open_table(path.with_suffix(".parquet"))
    assert list(source.columns) == ["first", "second", "third"]
    assert rows_of(source) == 2


@pytest.mark.parametrize("content", [b"a,b\n1,\xff\xfe" + PLANTED.encode(), b"\x00\x01\xff\x00", b"\x1f\x8b broken"])
def test_a_csv_file_that_cannot_be_read_is_refused_without_quoting_it(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    message = refusal(path)
    assert message == tables.UNREADABLE_CSV.format(shown=repr(str(path)))
    assert PLANTED not in message


def test_a_broken_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n" * 5_000)[:40])
    assert refusal(path) == tables.UNREADABLE_CSV.format(shown=repr(str(path)))


# ------------------------------------------------------------------------------------------------------------- refusals


def test_a_missing_file() -> None:
    assert refusal("x.parquet") == "data: the file must exist. Got 'x.parquet'."
    assert refusal(Path("x.csv")) == "data: the file must exist. Got 'x.csv'."
    assert refusal("x\0.csv") == "data: the file must exist. Got 'x\\x00.csv'."
    assert refusal("x" * 5_000 + ".csv").startswith("data: the file must exist.")


def test_a_directory(tmp_path: Path) -> None:
    folder = tmp_path / "d.parquet"
    folder.mkdir()
    assert "which is a directory" in refusal(folder)
    assert "which is a directory" in refusal("")


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.gz", "parquet", "t.parquet.bak"])
def test_a_suffix_that_is_not_known(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    assert "must end in .parquet, .csv or .csv.gz" in refusal(path)


@pytest.mark.parametrize("cut", [0, 1, 8, 100, -1, -9])
def test_a_parquet_file_that_is_not_complete(cut: int, tmp_path: Path) -> None:
    path = write_parquet(tmp_path)
    path.write_bytes(path.read_bytes()[:cut])
    assert refusal(path) == tables.UNREADABLE_PARQUET.format(shown=repr(str(path)))


def test_a_parquet_file_that_is_something_else(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_text(f"name,weight\n{PLANTED},1\n")
    message = refusal(path)
    assert message == tables.UNREADABLE_PARQUET.format(shown=repr(str(path)))
    assert PLANTED not in message


@pytest.mark.parametrize("data", [None, 7, b"t.parquet", [1], {"a": [1]}, object()])
def test_an_object_that_is_no_table(data: object) -> None:
    assert refusal(data).endswith(f"Got a {type(data).__name__}.")


def test_a_series_is_no_table() -> None:
    assert refusal(pandas.Series([1])).endswith("Got a Series.")
    assert refusal(pa.array([1])).endswith("Got a Int64Array.")
    assert refusal(ibis.memtable({"a": [1]}).a).endswith("Got a IntegerColumn.")


def duplicated(first: str, second: str, folder: Path) -> dict[str, object]:
    """The same two columns in each form that can hold them."""
    table = pa.table([pa.array([1]), pa.array([2])], names=[first, second])
    parquet = folder / "twice.parquet"
    pq.write_table(table, parquet)
    text = folder / "twice.csv"
    text.write_text(f"{first},{second}\n1,2\n")
    frame = pandas.DataFrame([[1, 2]], columns=[first, second])
    return {"arrow": table, "parquet": parquet, "csv": text, "pandas": frame}


@pytest.mark.parametrize("second", ["weight", "Weight"])
def test_two_columns_of_one_name(second: str, tmp_path: Path) -> None:
    for data in duplicated("weight", second, tmp_path).values():
        assert f"Got weight and {second}. Rename one of them." in refusal(data)


def test_why_names_that_differ_in_case_are_refused() -> None:
    table = ibis.memtable(pa.table({"a": [1], "A": [2]}))
    wrong = ibis.duckdb.connect().to_pyarrow(table.aggregate(x=table["A"].sum())).to_pylist()
    assert wrong == [{"x": 1}]  # DuckDB reads the other column
    assert "Got a and A." in refusal(table)


def test_names_that_are_not_text() -> None:
    assert "must be text. Got 0." in refusal(pandas.DataFrame([[1, 2]]))
    assert "must be text. Got ('a', 'b')." in refusal(pandas.DataFrame({("a", "b"): [1]}))


def test_a_table_without_columns() -> None:
    assert refusal(pandas.DataFrame()) == "data: the table must have at least one column. Got none."
    assert refusal(polars.DataFrame()) == "data: the table must have at least one column. Got none."


def test_a_column_of_mixed_objects_is_refused_without_quoting_it() -> None:
    frame = pandas.DataFrame({"weight": pandas.Series([1, PLANTED, 2.5], dtype=object)})
    with pytest.raises(pa.ArrowException, match=PLANTED):  # what Arrow says about it
        pa.Table.from_pandas(frame)
    message = refusal(frame)
    assert message == tables.UNREADABLE_FRAME.format(shown="DataFrame")
    assert PLANTED not in message


def test_a_lazy_frame_that_cannot_be_resolved() -> None:
    lazy = polars.LazyFrame({"a": [1]}).select("b")
    assert refusal(lazy) == tables.UNREADABLE_FRAME.format(shown="LazyFrame")


def test_an_ibis_table_without_a_connection() -> None:
    assert refusal(ibis.table({"weight": "int64"}, name="people")) == tables.UNREADABLE_IBIS


# -------------------------------------------------------------------------------------------------------------- quietly


def test_quietly_keeps_nothing_of_a_failure() -> None:
    class Panic(BaseException):
        pass

    def fail(error: BaseException) -> int:
        raise error

    assert quietly(lambda: 7) == 7
    assert quietly(lambda: fail(ValueError(PLANTED))) is None
    assert quietly(lambda: fail(Panic(PLANTED))) is None
    assert sys.exc_info() == (None, None, None)
    with pytest.raises(KeyboardInterrupt):
        quietly(lambda: fail(KeyboardInterrupt()))


def test_quietly_drops_warnings(recwarn: pytest.WarningsRecorder) -> None:
    assert quietly(lambda: warnings.warn(PLANTED, stacklevel=1)) is None
    assert len(recwarn) == 0


def test_a_name_is_shown_on_one_line() -> None:
    shown = [shown_name(name) for name in ("weight", "body weight", "a\nb", 0)]
    assert shown == ["weight", "'body weight'", "'a\\nb'", "0"]
