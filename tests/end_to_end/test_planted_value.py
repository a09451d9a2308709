"""A planted cell never shows: not in an error, what is behind it, its frames, a log, a warning or on the terminal."""

from __future__ import annotations

import gc
import importlib
import logging
import math
import traceback
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.accounting.ledger import Ledger
from attrpriv.engines import scan as scan_module
from attrpriv.errors import DataError
from tests.end_to_end.material import NOON, Said, attrpriv, contents, policy, write_policy, write_table

session_module = importlib.import_module("attrpriv.session.session")
column_plan = importlib.import_module("attrpriv.methods.base.column_plan")

WORD = "PLANTED-4711"
NUMBER = 47114711
PLANTED = (WORD, str(NUMBER), "4711.4711")

ROWS = 30_000
GOOD = "150,60000\n"


def csv(folder: Path, line: str, header: str = "weight,income\n") -> Path:
    """A CSV file with one odd line below the sample from which DuckDB guesses the types."""
    path = folder / "students.csv"
    path.write_bytes((header + GOOD * (ROWS - 1)).encode() + line.encode("latin-1"))
    return path


def damaged(folder: Path) -> Path:
    """A Parquet file of planted values, as they are, with the header of the first page overwritten."""
    path = folder / "students.parquet"
    table = pa.table({"weight": [4711.4711] * 500, "income": [60_000.0] * 500})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36
    path.write_bytes(content)
    return path


def weights(*odd: Any, kind: Any = None) -> pa.Table:
    """400 rows whose last weights are these."""
    ordinary = [Decimal(150) if kind is not None else 150.0] * (400 - len(odd))
    return pa.table({"weight": pa.array([*ordinary, *odd], kind or pa.float64()), "income": [60_000.0] * 400})


def cast_of_text() -> Any:
    connection = ibis.duckdb.connect()
    connection.con.register("given", pa.table({"word": ["150"] * 399 + [WORD], "income": [60_000] * 400}))
    connection.raw_sql("CREATE TABLE people AS FROM given")
    people = connection.table("people")
    return people.mutate(weight=people.word.cast("int64"))


def lazy_cast() -> Any:
    frame = polars.DataFrame({"word": ["150"] * 399 + [WORD], "income": [60_000] * 400})
    return frame.lazy().with_columns(weight=polars.col("word").cast(polars.Int64))


# Tables that make an engine fail, or that are announced as unusable. All of them hold the planted value.
TABLES: dict[str, tuple[Callable[[Path], Any], int]] = {
    "text in a numeric column": (lambda folder: csv(folder, f"{WORD},60000\n"), ROWS),
    "a number as text": (lambda folder: csv(folder, "4711.4711x,60000\n"), ROWS),
    "a field too many": (lambda folder: csv(folder, f"150,60000,{WORD}\n"), ROWS),
    "a field too few": (lambda folder: csv(folder, f"{NUMBER}\n"), ROWS),
    "an open quote": (lambda folder: csv(folder, f'"{WORD},60000\n'), ROWS),
    "bytes that are no text": (lambda folder: csv(folder, f"{WORD}\xff\xfe,60000\n"), ROWS),
    "a damaged page": (damaged, 500),
    "missing beside planted": (lambda _: weights(4711.4711, None), 400),
    "infinite beside planted": (lambda _: weights(4711.4711, math.inf), 400),
    "a sum that overflows": (lambda _: weights(4711.4711, 1.7e308, 1.7e308), 400),
    "a decimal sum that overflows": (
        lambda _: weights(*[Decimal(f"{NUMBER}" + "9" * 30)] * 99, kind=pa.decimal128(38, 0)),
        400,
    ),
    "pandas, mixed": (lambda _: pandas.DataFrame({"weight": [150, WORD, 4711.4711], "income": [1, 2, 3]}), 3),
    "pandas, text": (lambda _: pandas.DataFrame({"weight": ["1", WORD], "income": [1, 2]}), 2),
    "polars, lazy": (lambda _: lazy_cast(), 400),
    "ibis, cast of text": (lambda _: cast_of_text(), 400),
    "wrong number of rows": (lambda _: ibis.memtable(weights(*[4711.4711] * 400)), 401),
}


def released(session: ap.Session) -> BaseException:
    """The error with which a release fails. No local of this frame holds a value of the table."""
    try:
        session.release("avg(weight)")
    except BaseException as error:
        return error
    raise AssertionError("was released")


def said(error: BaseException) -> Iterator[str]:
    """Everything an error says: itself, what is behind it, and every frame on its way with all its locals."""
    yield from (str(error), repr(error), repr(error.args), repr(vars(error)), repr(getattr(error, "__notes__", None)))
    yield from traceback.TracebackException.from_exception(error, capture_locals=True).format()
    for behind in (error.__cause__, error.__context__):
        if behind is not None:
            yield from said(behind)


def shows(texts: Iterator[str] | list[str]) -> list[str]:
    return [text for text in texts if any(word in text for word in PLANTED)]


def still_held() -> list[BaseException]:
    """Exceptions that quote the planted value and that something still refers to."""
    gc.collect()
    return [held for held in gc.get_objects() if isinstance(held, BaseException) and shows([str(held)])]


@pytest.mark.parametrize("name", TABLES)
def test_no_engine_error_shows_it(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    make, rows = TABLES[name]
    session = ap.Session(make(tmp_path), ap.Policy(**policy("data", "resolution", rows=rows)), ledger=tmp_path / "x.ledger")
    error = released(session)
    assert isinstance(error, DataError)
    assert shows(said(error)) == []
    assert error.__cause__ is None
    assert error.__context__ is None
    assert still_held() == []
    assert shows([record.getMessage() for record in caplog.records]) == []
    out, err = capfd.readouterr()
    assert shows([out, err, repr(session)]) == []
    assert not (tmp_path / "x.ledger").exists()


# ------------------------------------------------------------------------------------- failures after the rows were read


def fail(*_: Any, **__: Any) -> Any:
    raise ValueError("no")


def failing_verify(patch: pytest.MonkeyPatch) -> None:
    """A certificate that stops holding between the plan and the answer."""
    calls = []

    def answered(plan: Any, found: Any) -> Any:
        calls.append(found)
        raise ap.CertificateError("certificate: does not hold.")

    patch.setattr(ap.Plan, "answered", answered)


LATE: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "the certificate": failing_verify,
    "the noise": lambda patch: patch.setattr(column_plan, "add_gaussian", fail),
    "the ledger": lambda patch: patch.setattr(Ledger, "commit", fail),
    "the ledger's file": lambda patch: patch.setattr("attrpriv.accounting.storage_sqlite.os.open", fail),
}


@pytest.mark.parametrize("name", [*LATE, "the clock"])
def test_no_later_failure_shows_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact average is the planted number, and it is in the frames below `Session.release` when they fail."""
    table = pa.table({"weight": [NUMBER] * 400, "income": [60_000] * 400})
    clock = fail if name == "the clock" else lambda: NOON
    session = ap.Session(table, ap.Policy(**policy("data")), ledger=tmp_path / "x.ledger", clock=clock)
    if name in LATE:
        LATE[name](monkeypatch)
    error = released(session)
    assert shows(said(error)) == []
    assert not (tmp_path / "x.ledger").exists()


# ---------------------------------------------------------------------------------------------------------- command line


@pytest.mark.parametrize("name", [name for name in TABLES if not name.startswith(("pandas", "polars", "ibis", "wrong"))])
def test_no_command_prints_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make, rows = TABLES[name]
    data = make(tmp_path)
    path = data if isinstance(data, Path) else write_table(tmp_path, data)
    write_policy(tmp_path, policy("resolution", data=path.name, rows=rows))
    before = contents(tmp_path)
    for command, *flags in (("plan", "--json"), ("release", "--json"), ("release",)):
        done = Said(command, "students.yaml", *flags)
        assert shows([done.out, done.err]) == []
    assert done.code == 2
    assert done.complaint.startswith("data: ")
    assert contents(tmp_path) == before


def test_a_real_process_does_not_print_it(tmp_path: Path) -> None:
    csv(tmp_path, f"{WORD},60000\n")
    write_policy(tmp_path, policy("resolution", data="students.csv", rows=ROWS))
    debugging = "import logging; logging.basicConfig(level=logging.DEBUG)"
    done = attrpriv("release", "students.yaml", folder=tmp_path, first=debugging, PYTHONDEVMODE="1", PYTHONWARNINGS="default")
    assert done.returncode == 2
    assert b"data: the engine could not read the table." in done.stderr
    assert shows([done.stdout.decode(), done.stderr.decode()]) == []


# ------------------------------------------------------------------------------------------------- the checks are not dead


@pytest.mark.parametrize("name", ["text in a numeric column", "polars, lazy", "ibis, cast of text"])
def test_an_engine_s_own_error_would_show_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "quietly", lambda work: work())
    make, rows = TABLES[name]
    session = ap.Session(make(tmp_path), ap.Policy(**policy("data", "resolution", rows=rows)), ledger=tmp_path / "x.ledger")
    assert shows(said(released(session))) != []


def test_a_frame_would_show_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the care `Session` takes, the frames of a failed release hold the average."""

    class Keeping(ValueError):
        """An error whose traceback cannot be taken away."""

        def with_traceback(self, trace: Any) -> Any:
            return self

    def failing(value: Any, scale: float) -> Any:
        raise Keeping("no")

    monkeypatch.setattr(column_plan, "add_gaussian", failing)
    table = pa.table({"weight": [NUMBER] * 400, "income": [60_000] * 400})
    session = ap.Session(table, ap.Policy(**policy("data")), ledger=tmp_path / "x.ledger")
    assert shows(said(released(session))) != []
