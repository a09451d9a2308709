"""Every word that the engine would read as something else than a column is quoted in a query's text."""

from __future__ import annotations

import duckdb

from attrpriv.queries.query import Query, quoted
from attrpriv.queries.sql import parse_queries


def test_every_word_of_the_engine_is_a_column_name_if_it_is_one() -> None:
    connection = duckdb.connect()
    words = [word for (word,) in connection.execute("SELECT DISTINCT keyword_name FROM duckdb_keywords()").fetchall()]
    assert len(words) > 400
    wrong = []
    for word in words:
        connection.execute(f'CREATE OR REPLACE TABLE data AS SELECT 7 AS "{word}", 2 AS other')
        try:
            found = connection.execute(f"SELECT {quoted(word)}, 2 * {quoted(word)} + other FROM data").fetchall()
        except duckdb.Error:
            found = []
        if found != [(7, 16)] or parse_queries(Query("avg", word).text) != (Query("avg", word),):
            wrong.append(word)
    assert wrong == []
