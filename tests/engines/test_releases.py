"""Whole releases on every engine: the same aggregate, read once; and a table or a connection that fails spends nothing."""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.cli.checks import check_policy
from attrpriv.errors import AttrprivError, DataError, PolicyError
from tests.end_to_end.material import ROWS, policy, students, write_policy, write_table
from tests.engines.backends import ENGINES, NO_POSTGRES, NO_SPARK, POSTGRES, every_engine

exact_module = importlib.import_module("attrpriv.noise.exact")
TABLE = students().append_column("height", pa.array([170 + (k * 37 % 101) / 7 for k in range(ROWS)]))
PLANTED = "PLANTED-4711"
WITH_POSTGRES = pytest.mark.skipif(NO_POSTGRES is not None, reason=str(NO_POSTGRES))


def made(**changes: Any) -> ap.Policy:
    return ap.Policy(**policy("data", **changes))


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samplers draw 0: the average comes out as it is, but for the grid of the noise, 2^-32 of its scale."""
    monkeypatch.setattr(exact_module, "_gaussian", lambda steps: lambda _: 0)
    monkeypatch.setattr(exact_module, "_laplace", lambda steps: lambda _: 0)


@every_engine()
@pytest.mark.usefixtures("no_noise")
def test_the_same_policy_and_table_give_the_same_answer(engine: str, tmp_path: Path) -> None:
    columns = {"mean": {"income": 60_000, "height": 177}, "sd": {"weight": 25, "income": 30_000, "height": 4}}
    both = {"weight~income": 0.3, "height~income": 0.1, "weight~height": 0.2}
    assume = {"kind": "gaussian", **columns, "correlation": both, "tolerance": {"mean": 0.01, "sd": 0.02, "slope": 0.05}}
    place = ENGINES[engine](TABLE, tmp_path)
    # as text, as a policy names it; a path of a file or a pattern, a URL, spark:name
    data = str(place) if isinstance(place, str | Path) else place
    asked = made(rows=ROWS, assume=assume, release=["avg(weight), avg(height)"])
    with ap.Session(data, asked, ledger=tmp_path / "x.ledger") as session:
        found = session.release(mechanism="gaussian")
    with ap.Session(TABLE, asked, ledger=tmp_path / "arrow.ledger") as session:
        released = session.release(mechanism="gaussian")
        assert released.values == found.values
        assert released.plan == found.plan  # and so is the law of the noise


# ------------------------------------------------------------------------------------------------------------- read once


@pytest.mark.parametrize("mechanism", ["gaussian", "calibrated_weights"])
def test_a_release_is_one_query_of_the_table(mechanism: str, tmp_path: Path) -> None:
    """Counted by DuckDB itself."""
    with ap.Session(write_table(tmp_path), made(), ledger=tmp_path / "x.ledger") as session:
        session.plan()
        connection = session._open().engine.con
        connection.execute("CALL enable_logging('QueryLog')")
        session.release(mechanism=mechanism)
        connection.execute("CALL disable_logging()")
        logged = connection.execute("SELECT message FROM duckdb_logs WHERE type = 'QueryLog'").fetchall()
    queries = [text for (text,) in logged if "_logging" not in text]
    assert len(queries) == 1
    assert queries[0].count("FROM") == 1


@WITH_POSTGRES
def test_a_release_is_one_query_of_a_postgres_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted where the driver sends them."""
    import psycopg

    url = ENGINES["postgres"](TABLE, tmp_path)
    sent: list[str] = []

    def counting(real: Any) -> Any:
        def counted(self: Any, query: Any, *rest: Any, **more: Any) -> Any:
            sent.append(str(query))
            return real(self, query, *rest, **more)

        return counted

    for cursor in (psycopg.Cursor, psycopg.ServerCursor, psycopg.ClientCursor):
        monkeypatch.setattr(cursor, "execute", counting(cursor.execute))
    with ap.Session(url, made(rows=ROWS), ledger=tmp_path / "x.ledger") as session:
        session.release()
    assert len([text for text in sent if "suite " in text and "pg_catalog" not in text and "SUM" in text.upper()]) == 1
    assert not [text for text in sent if "SELECT *" in text]


@pytest.mark.slow
@pytest.mark.skipif(NO_SPARK is not None, reason=str(NO_SPARK))
def test_spark_gives_its_driver_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.classic.dataframe import DataFrame

    place = ENGINES["spark"](TABLE, tmp_path)
    given: list[int] = []

    def counting(real: Any) -> Any:
        def counted(self: Any, *rest: Any) -> Any:
            found = real(self, *rest)
            given.append(len(found))
            return found

        return counted

    for name in ("toPandas", "collect"):
        monkeypatch.setattr(DataFrame, name, counting(getattr(DataFrame, name)))
    with ap.Session(place, made(rows=ROWS), ledger=tmp_path / "x.ledger") as session:
        session.release()
    assert given
    assert set(given) == {1}


# --------------------------------------------------------------------------------------------------------- nothing spent


def refused(data: object, folder: Path, *planned: str, **changes: Any) -> str:
    """The message of a release that fails, of which no trace stays."""
    before = sorted(path.name for path in folder.iterdir())
    with ap.Session(data, made(**changes), ledger=folder / "x.ledger") as session:
        if planned:
            session.plan()
        with pytest.raises(AttrprivError) as caught:
            session.release()
    assert isinstance(caught.value, DataError | PolicyError)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert sorted(path.name for path in folder.iterdir()) == before
    return str(caught.value)


def test_a_half_written_parquet_file(tmp_path: Path) -> None:
    path = write_table(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    assert "must be a complete Parquet file" in refused(path, tmp_path)


def test_a_parquet_file_that_loses_its_pages_after_the_plan(tmp_path: Path) -> None:
    path = write_table(tmp_path)
    with ap.Session(path, made(), ledger=tmp_path / "x.ledger") as session:
        session.plan()
        content = bytearray(path.read_bytes())
        content[4:1000] = bytes(996)
        path.write_bytes(content)
        with pytest.raises(DataError, match="the engine could not read the table"):
            session.release()
    assert not (tmp_path / "x.ledger").exists()


def test_a_csv_file_with_a_changing_number_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("weight,income\n" + "150,60000\n" * 30_000 + f"{PLANTED},60000,7\n")
    message = refused(path, tmp_path, rows=30_001)
    assert "the engine could not read the table" in message
    assert PLANTED not in message


@pytest.mark.parametrize("declared", [True, False])
def test_a_table_that_changes_between_plan_and_release(declared: bool, tmp_path: Path) -> None:
    path = write_table(tmp_path)
    with ap.Session(path, made(**({"rows": ROWS} if declared else {})), ledger=tmp_path / "x.ledger") as session:
        assert session.plan().n == ROWS
        write_table(tmp_path, students(ROWS + 7))
        with pytest.raises(DataError, match=r"rows: must be the number of rows of the table|could not read"):
            session.release()
    assert not (tmp_path / "x.ledger").exists()


def test_a_pattern_that_matches_one_more_file(tmp_path: Path) -> None:
    for k in range(2):
        pq.write_table(students(ROWS // 2, seed=k), tmp_path / f"part-{k}.parquet")
    pattern = tmp_path / "part-*.parquet"
    with ap.Session(pattern, made(rows=ROWS), ledger=tmp_path / "x.ledger") as session:
        assert session.plan().n == ROWS
    pq.write_table(students(10, seed=9), tmp_path / "part-9.parquet")
    assert "rows: must be the number of rows" in refused(pattern, tmp_path, rows=ROWS)


def slow_view(rows: int = ROWS) -> Any:
    """A DuckDB table of the caller's own that takes hours to read."""
    connection = ibis.duckdb.connect()
    both = "FROM range(100000000) a, range(100000000) b"
    connection.raw_sql(f"CREATE VIEW slow AS SELECT a.range % 200 AS weight, b.range % 90000 AS income {both}")
    return connection.table("slow")


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_during_the_scan_spends_nothing(tmp_path: Path) -> None:
    with ap.Session(slow_view(), made(rows=ROWS), ledger=tmp_path / "x.ledger") as session:
        session.plan()
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            session.release()
    assert time.monotonic() - start < 60
    assert list(tmp_path.iterdir()) == []


@WITH_POSTGRES
def test_a_connection_that_drops_during_the_scan_spends_nothing(tmp_path: Path) -> None:
    import psycopg

    assert POSTGRES is not None
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute("DROP VIEW IF EXISTS slow")
        both = "SELECT 150 AS weight, 60000 + (pg_sleep(0.1) IS NULL)::int AS income FROM generate_series(1, 400)"
        connection.execute(f"CREATE VIEW slow AS {both}")

        def drop() -> None:
            # Of this test alone: others run at the same time, and a busy machine makes their queries as slow.
            own = "application_name = 'attrpriv' AND pid IN (SELECT pid FROM pg_locks WHERE relation = 'slow'::regclass)"
            mine = f"{own} AND state = 'active' AND now() - query_start > interval '0.5 s'"
            for _ in range(200):
                time.sleep(0.2)
                if connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}").fetchall():
                    return

        dropper = threading.Thread(target=drop)
        dropper.start()
        message = refused(f"{POSTGRES}&table=slow", tmp_path, rows=ROWS, release=["avg(weight), avg(income)"])
        dropper.join()
        connection.execute("DROP VIEW slow")
    assert "the engine could not read the table" in message


# ---------------------------------------------------------------------------------------------------------------- places


BAD_PLACES = {
    "postgresql://nobody@127.0.0.1:9/none": "must name a table",
    "postgresql://nobody@127.0.0.1:9/none?table=people": "the database must be reachable",
    "spark:": "must be spark:name",
    "spark:a.b.c.d": "must be spark:name",
    "spark:a..b": "must be spark:name",
    "visits/part-*.parquet": "a file of this pattern must exist",
}


@pytest.mark.parametrize("place", BAD_PLACES, ids=range(len(BAD_PLACES)))
def test_places_that_are_not_there(place: str, tmp_path: Path) -> None:
    message = refused(place, tmp_path, rows=ROWS)
    assert BAD_PLACES[place] in message
    assert "127.0.0.1" not in message


def test_a_plan_never_opens_the_data(tmp_path: Path) -> None:
    for place in ("postgresql://nobody@127.0.0.1:9/none?table=people", "spark:people", "gone-*.parquet"):
        with ap.Session(policy=write_policy(tmp_path, policy(data=place, rows=ROWS))) as session:
            assert session.plan().n == ROWS


UNSEEN = {
    "postgresql://nobody@127.0.0.1:9/none?table=people": "data: the database must be reachable",
    "spark:people": "Spark was not asked",
    "gone-*.parquet": "data: a file of this pattern must exist",
}


@pytest.mark.parametrize("place", UNSEEN, ids=range(len(UNSEEN)))
def test_a_check_says_what_it_could_not_look_at(place: str, tmp_path: Path) -> None:
    found = check_policy(write_policy(tmp_path, policy(data=place, rows=ROWS)), None)
    (note,) = [note for note in found.notes if "Names and types" in note or "names and types" in note]
    assert found.refusal is None
    assert note.startswith(UNSEEN[place])
    assert "127.0.0.1" not in note


@pytest.mark.parametrize("engine", ["files", pytest.param("postgres", marks=WITH_POSTGRES)])
def test_a_check_looks_at_the_schema_though_rows_are_declared(engine: str, tmp_path: Path) -> None:
    place = ENGINES["postgres"](TABLE, tmp_path) if engine == "postgres" else write_table(tmp_path, TABLE).parent / "*.parquet"
    given = policy(data=str(place), rows=ROWS)
    assert check_policy(write_policy(tmp_path, given), None).refusal is None
    with pytest.raises(DataError, match=r"^query: the column must be one of the table's\. Got wieght\. Close: weight"):
        check_policy(write_policy(tmp_path, {**given, "release": ["avg(wieght)"]}), None)
    with pytest.raises(DataError, match=r"^bounds: the column must be one of the table's\. Got age\."):
        check_policy(write_policy(tmp_path, {**given, "bounds": {"age": [0, 1]}}), None)


@pytest.mark.parametrize("url", ["postgresql://ann:secret@db/x?table=t", "postgres://db/x?table=t&password=secret"])
def test_a_policy_holds_no_password(url: str) -> None:
    with pytest.raises(PolicyError, match="hold no password") as caught:
        ap.Policy(**policy(data=url))
    assert "secret@" not in str(caught.value)


def test_files_of_one_pattern_must_be_alike(tmp_path: Path) -> None:
    pq.write_table(students(), tmp_path / "a1.parquet")
    pq.write_table(students().select(["income", "weight"]), tmp_path / "a2.parquet")
    assert "must have the same columns" in refused(tmp_path / "a*.parquet", tmp_path, rows=ROWS)


def test_several_csv_files_are_one_table(tmp_path: Path) -> None:
    for k in range(2):
        write_table(tmp_path, students(ROWS // 2, seed=k), f"part-{k}.csv")
    with ap.Session(tmp_path / "part-*.csv", made(rows=ROWS), ledger=tmp_path / "x.ledger") as session:
        assert session.release().plan.n == ROWS
