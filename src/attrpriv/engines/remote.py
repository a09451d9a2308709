"""Tables of a PostgreSQL database or of a Spark session.

    postgresql://[user@]host[:port]/database?table=name[&schema=name][&option=value...]
    spark:[[catalog.]database.]name

PostgreSQL: any option of libpq may follow, but no password in a policy: libpq finds one in PGPASSWORD or in ~/.pgpass. The
session is read-only. Spark: the active session, as in a program started by spark-submit, or else one made from Spark's own
configuration; `spark.master` and everything else are set there.

What must never change: names are data. They are given to Ibis, which quotes them. No message quotes a URL, or what a server
said. Nothing but the result of an aggregate comes back from an engine.
"""

from __future__ import annotations

import weakref
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from attrpriv.engines.tables import Source, quietly, source_of
from attrpriv.errors import DataError, UsageError
from attrpriv.problem.places import is_url

NO_DRIVER = "data: a table in {where} needs the extra {extra}. Install attrpriv[{extra}]."
NO_TABLE = (
    "data: a PostgreSQL URL must name a table, as in postgresql://host/database?table=people (and &schema=name). "
    "Got one that does not."
)
NOT_REACHED = "data: the database must be reachable and have the table. Got one that is not, or has not. Try it with psql."
NO_SPARK = "data: must be spark:name, spark:database.name or spark:catalog.database.name. Got {shown}."
NOT_IN_SPARK = "data: Spark must run (it needs Java) and know the table. Got {shown}. Try spark.table on it."


def open_remote(place: str) -> Source:
    """Open a table by its URL, or by its name in Spark. Reads the schema alone."""
    return _open_postgres(place) if is_url(place) else _open_spark(place)


def _open_postgres(url: str) -> Source:
    parts = quietly(lambda: _url_parts(url))
    if parts is None:
        raise DataError(NO_TABLE)
    server, schema, name = parts
    if quietly(_psycopg) is None:
        raise UsageError(NO_DRIVER.format(where="PostgreSQL", extra="postgres"))
    engine = quietly(lambda: _connected(server))
    table = None if engine is None else quietly(lambda: engine.table(name, database=schema))
    if table is None:
        raise DataError(NOT_REACHED)
    return source_of(table, engine, name, None)


def _url_parts(url: str) -> tuple[str, str | None, str]:
    """The server without what is ours, the schema, and the table."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, strict_parsing=True))
    name, schema = options.pop("table"), options.pop("schema", None)
    return parts._replace(query=urlencode(options), fragment="").geturl(), schema, name


def _psycopg() -> Any:
    import psycopg

    return psycopg


def _connected(server: str) -> Any:
    import ibis

    connection = _psycopg().connect(server, autocommit=True, connect_timeout=10, application_name="attrpriv")
    connection.execute("SET default_transaction_read_only = on")
    engine = ibis.postgres.from_connection(connection)
    weakref.finalize(engine, connection.close)  # with the session that forgets it
    return engine


def _open_spark(place: str) -> Source:
    names = place.removeprefix("spark:").split(".")
    if len(names) > 3 or not all(names):
        raise DataError(NO_SPARK.format(shown=repr(place)))
    engine = quietly(_spark_engine)
    table = None if engine is None else quietly(lambda: engine.table(names[-1], database=tuple(names[:-1]) or None))
    if table is None:
        raise DataError(NOT_IN_SPARK.format(shown=repr(place)))
    return source_of(table, engine, names[-1], None)


def _spark_engine() -> Any:
    import ibis
    from pyspark.sql import SparkSession

    return ibis.pyspark.connect(SparkSession.builder.getOrCreate())
