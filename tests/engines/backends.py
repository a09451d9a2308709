"""The engines of the suite: how a small Arrow table gets into each, and why one cannot be tried here."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

POSTGRES = os.environ.get("ATTRPRIV_TEST_POSTGRES")
# The reason why a server cannot be tried; both listen on loopback, or on a socket, and nowhere else.
NO_POSTGRES = None if POSTGRES else "needs ATTRPRIV_TEST_POSTGRES, as scripts/with_postgres.py sets it"
NO_SPARK = (
    "needs Java"
    if shutil.which("java") is None
    else None
    if importlib.util.find_spec("pyspark")
    else "needs pyspark, the extra spark"
)

_TYPES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_float64, "double precision"),
    (pa.types.is_floating, "real"),
    (pa.types.is_date, "date"),
    (pa.types.is_uint64, "numeric(20, 0)"),
    (pa.types.is_integer, "bigint"),
)


def parquet(table: Any, folder: Path) -> object:
    path = folder / f"{uuid.uuid4().hex}.parquet"
    pq.write_table(table, path)
    return path


def pattern(table: Any, folder: Path) -> object:
    """Three files."""
    place = folder / uuid.uuid4().hex
    place.mkdir()
    cut = (len(table) + 2) // 3
    for k in range(3):
        pq.write_table(table.slice(k * cut, cut), place / f"part-{k}.parquet")
    return place / "part-*.parquet"


def csv(table: Any, folder: Path) -> object:
    path = folder / f"{uuid.uuid4().hex}.csv"
    pyarrow.csv.write_csv(table, path)
    return path


def in_a_database(table: Any, _: Path) -> object:
    connection = ibis.duckdb.connect()
    connection.con.register("given", table)
    connection.raw_sql("CREATE TABLE people AS FROM given")
    return connection.table("people")


def polars_lazy(table: Any, _: Path) -> object:
    polars: Any = pytest.importorskip("polars")
    return polars.from_arrow(table).lazy()


def postgres_type(dtype: Any) -> str:
    if pa.types.is_dictionary(dtype):
        return postgres_type(dtype.value_type)
    if pa.types.is_decimal(dtype):
        return f"numeric({dtype.precision}, {dtype.scale})"
    return next((name for known, name in _TYPES if known(dtype)), "text")


def postgres(table: Any, _: Path) -> object:
    """A table of its own, by its URL, which is what a policy names."""
    import psycopg
    from psycopg import sql

    assert POSTGRES is not None
    name = f"suite {uuid.uuid4().hex}"
    columns = [sql.SQL("{} " + postgres_type(one.type)).format(sql.Identifier(one.name)) for one in table.schema]
    with psycopg.connect(POSTGRES) as connection:
        connection.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(name), sql.SQL(", ").join(columns)))
        with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))) as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)
    return f"{POSTGRES}&table={name.replace(' ', '+')}"


def spark(table: Any, folder: Path) -> object:
    """A temporary view by its name, which is what a policy names."""
    name = f"suite_{uuid.uuid4().hex}"
    spark_session().read.parquet(str(parquet(table, folder))).createOrReplaceTempView(name)
    return f"spark:{name}"


def spark_session() -> Any:
    """One for all tests of a process: it takes some seconds to start."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need Arrow
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[2]").appName("attrpriv")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


Make = Callable[[Any, Path], object]
LOCAL: dict[str, Make] = {
    "parquet": parquet,
    "pattern": pattern,
    "csv": csv,
    "duckdb": in_a_database,
    "polars": polars_lazy,
}
REMOTE: dict[str, Make] = {"postgres": postgres, "spark": spark}
ENGINES: dict[str, Make] = LOCAL | REMOTE

# What an engine cannot hold, and so is not compared there.
GAPS: dict[tuple[str, str], str] = {
    ("csv", "decimal"): "a CSV file has no decimals",
}


def every_engine(*, without: str = "") -> pytest.MarkDecorator:
    """A parametrization over all engines; those that need a server are marked, and Spark, which starts slowly, is slow."""
    wanted = []
    for name in ENGINES:
        marks: list[pytest.MarkDecorator] = []
        gap = GAPS.get((name, without))
        if gap:
            marks.append(pytest.mark.skip(reason=gap))
        if name == "postgres":
            marks.append(pytest.mark.skipif(NO_POSTGRES is not None, reason=str(NO_POSTGRES)))
        if name == "spark":
            marks += [pytest.mark.skipif(NO_SPARK is not None, reason=str(NO_SPARK)), pytest.mark.slow]
        wanted.append(pytest.param(name, marks=marks, id=re.sub(r"\W", "-", name)))
    return pytest.mark.parametrize("engine", wanted)
