"""The SQL front end: what is read, what is refused and by which name, and that a query's text is read back as itself."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot.dialects.duckdb import DuckDB

from attrpriv.errors import QueryError
from attrpriv.queries import query as query_module
from attrpriv.queries.query import Query, count, mean, total
from attrpriv.queries.sql import parse_queries

ACCEPTED: dict[str, tuple[Query, ...]] = {
    "avg(weight)": (mean("weight"),),
    "AVG(weight)": (mean("weight"),),
    "  avg ( weight )  ": (mean("weight"),),
    "mean(weight)": (mean("weight"),),
    'Mean("weight")': (mean("weight"),),
    "sum(weight)": (total("weight"),),
    "count(*)": (count(),),
    "COUNT( * )": (count(),),
    'avg("body weight")': (mean("body weight"),),
    'sum("5"" disk")': (total('5" disk'),),
    "avg(Weight)": (mean("Weight"),),
    "avg(weight) -- of all": (mean("weight"),),
    "avg(/* of */ weight)": (mean("weight"),),
    "avg(weight), sum(income), count(*)": (mean("weight"), total("income"), count()),
    "avg(weight), avg(weight)": (mean("weight"), mean("weight")),
    "select avg(weight)": (mean("weight"),),
    "SELECT avg(weight), count(*)\nFROM data": (mean("weight"), count()),
    "SELECT avg(weight) FROM DATA;": (mean("weight"),),
    'SELECT avg(weight) FROM "data"': (mean("weight"),),
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_is_accepted(text: str) -> None:
    assert parse_queries(text) == ACCEPTED[text]


# The text, and the word or words by which it is refused.
REFUSED = {
    "nothing": ("", "must be avg(column)"),
    "space": (" \n ", "must be avg(column)"),
    "no aggregate": ("weight", "Got 'weight'"),
    "star": ("SELECT * FROM data", "Got '*'"),
    "number": ("1", "Got '1'"),
    "another aggregate": ("median(weight)", "Got 'MEDIAN(weight)'"),
    "minimum": ("min(weight)", "Got 'MIN(weight)'"),
    "unknown function": ("average(weight)", "Got 'AVERAGE(weight)'"),
    "no column": ("avg()", "must be avg(column)"),
    "no column of mean": ("mean()", "must be avg(column)"),
    "two columns": ("avg(weight, income)", "must be avg(column)"),
    "two columns of mean": ("mean(weight, income)", "must be avg(column)"),
    "expression": ("avg(2 * weight)", "the name of one column"),
    "cast": ("avg(weight::int)", "the name of one column"),
    "constant": ("avg(1)", "the name of one column"),
    "null": ("sum(NULL)", "the name of one column"),
    "text": ("avg('weight')", "the name of one column, in double quotes"),
    "star of avg": ("avg(*)", "the name of one column"),
    "parenthesis": ("avg((weight))", "the name of one column"),
    "table prefix": ("avg(data.weight)", "the name of one column"),
    "field": ('avg("a"."b")', "the name of one column"),
    "element": ("avg(weight[1])", "the name of one column"),
    "parameter": ("avg(?)", "the name of one column"),
    "empty name": ('avg("")', "the name of one column"),
    "empty name of mean": ('mean("")', "the name of one column"),
    "distinct avg": ("avg(DISTINCT weight)", "the name of one column"),
    "distinct mean": ("mean(DISTINCT weight)", "the name of one column"),
    "ordered avg": ("avg(weight ORDER BY income)", "the name of one column"),
    "ignore nulls": ("avg(weight) IGNORE NULLS", "must be avg(column)"),
    "count of a column": ("count(weight)", "count takes a star, count(*)"),
    "count of nothing": ("count()", "count takes a star"),
    "count of a constant": ("count(1)", "count takes a star"),
    "distinct count": ("count(DISTINCT weight)", "count takes a star"),
    "count of some columns": ("count(* EXCLUDE (weight))", "count takes a star"),
    "arithmetic": ("avg(weight) + 1", "Got 'AVG(weight) + 1'"),
    "ratio": ("sum(weight) / count(*)", "Got 'SUM(weight) / COUNT(*)'"),
    "alias": ("avg(weight) AS w", "Got 'AVG(weight) AS w'"),
    "window": ("avg(weight) OVER (PARTITION BY income)", "OVER (PARTITION BY income)'"),
    "cast of an answer": ("avg(weight)::int", "CAST(AVG(weight) AS INT)"),
    "subquery as item": ("(SELECT avg(weight) FROM data)", "must be avg(column)"),
    "distinct": ("SELECT DISTINCT avg(weight) FROM data", "query: distinct is not supported"),
    "having": ("SELECT avg(weight) FROM data HAVING avg(weight) > 3", "query: having is not supported"),
    "order": ("SELECT avg(weight) FROM data ORDER BY 1", "query: order is not supported"),
    "limit": ("SELECT avg(weight) FROM data LIMIT 1", "query: limit is not supported"),
    "offset": ("SELECT avg(weight) FROM data OFFSET 1", "query: offset is not supported"),
    "qualify": ("SELECT avg(weight) FROM data QUALIFY true", "query: qualify is not supported"),
    "named window": ("SELECT avg(weight) FROM data WINDOW w AS ()", "query: window is not supported"),
    "sample": ("SELECT avg(weight) FROM data USING SAMPLE 10%", "query: sample is not supported"),
    "into": ("SELECT avg(weight) INTO x FROM data", "query: into is not supported"),
    "lock": ("SELECT avg(weight) FROM data FOR UPDATE", "query: lock is not supported"),
    "two tables": ("SELECT avg(weight) FROM data, other", "query: join is not supported"),
    "join": ("SELECT avg(weight) FROM data JOIN other USING (id)", "query: join is not supported"),
    "struct": ("SELECT AS STRUCT avg(weight) FROM data", "query: kind is not supported"),
    "another table": ("SELECT avg(weight) FROM other", "the only table is data"),
    "table alias": ("SELECT avg(weight) FROM data d", "the only table is data"),
    "schema": ("SELECT avg(weight) FROM main.data", "the only table is data"),
    "sampled table": ("SELECT avg(weight) FROM data TABLESAMPLE (10)", "the only table is data"),
    "pivot": ("SELECT avg(weight) FROM data PIVOT (sum(x) FOR y IN (1))", "the only table is data"),
    "file": ("SELECT avg(weight) FROM 'other.parquet'", "the only table is data"),
    "function": ("SELECT avg(weight) FROM read_csv('x.csv')", "the only table is data"),
    "subquery": ("SELECT avg(weight) FROM (SELECT * FROM data)", "the only table is data"),
    "union": ("SELECT avg(weight) FROM data UNION SELECT avg(weight) FROM data", "must be avg(column)"),
    "with": ("WITH data AS (SELECT 1 AS weight) SELECT avg(weight) FROM data", "must be avg(column)"),
    "two statements": ("avg(weight); sum(income)", "must be avg(column)"),
    "drop": ("DROP TABLE data", "must be avg(column)"),
    "copy": ("COPY data TO 'x'", "must be avg(column)"),
    "second statement": ("avg(weight); DROP TABLE data", "must be avg(column)"),
    "open parenthesis": ("avg(weight", "must be avg(column)"),
    "no items": ("SELECT FROM data", "must be avg(column)"),
    "too long": ("avg(weight)," * 1000 + "avg(weight)", "must be avg(column)"),
    "too deep": ("avg(" * 2000 + "weight" + ")" * 2000, "must be avg(column)"),
}


def refusal(text: object) -> str:
    with pytest.raises(QueryError) as caught:
        parse_queries(text)  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.startswith("query: ")
    assert message.isprintable()
    assert "Got " in message
    assert len(message) < 500
    assert caught.value.__cause__ is None
    return message


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    text, expected = REFUSED[name]
    assert expected in refusal(text)


@pytest.mark.parametrize("text", [None, 5, ["avg(weight)"], b"avg(weight)"])
def test_what_is_not_text(text: object) -> None:
    refusal(text)


# Clauses that choose rows: supported or not, they never disappear.
@pytest.mark.parametrize(
    "text",
    [
        "avg(weight) FILTER (WHERE income > 3)",
        "SELECT avg(weight) FROM data WHERE income > 3",
        "SELECT avg(weight) FROM data GROUP BY gender",
        "count(*) FILTER (WHERE income > 3)",
    ],
)
def test_a_clause_that_chooses_rows_is_kept_or_refused(text: str) -> None:
    with contextlib.suppress(QueryError):
        (query,) = parse_queries(text)
        assert query not in (mean("weight"), count())
        assert parse_queries(query.text) == (query,)


def test_a_refusal_says_nothing_else() -> None:
    code = f"""
from attrpriv.queries.sql import parse_queries
for text in {[text for text, _ in REFUSED.values()]!r}:
    try: parse_queries(text)
    except Exception: continue
    raise SystemExit(text)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")  # sqlglot likes to log what it cannot write


# ----------------------------------------------------------------------------------------------------------- round trip

NAMES = st.text(min_size=1, alphabet=st.characters(codec="utf-8") | st.sampled_from("\"'`;-/*\\[](){}$@:#%.,~ \n\t\r\0aZ_09"))
KINDS = st.sampled_from([mean, total])


@given(st.lists(st.tuples(KINDS, NAMES), min_size=1, max_size=5))
@example([(mean, 'a"b'), (total, '""'), (mean, "a') FROM data --")])
@example([(mean, "select"), (total, "\0"), (mean, " "), (mean, "x" * 300)])
def test_a_text_is_read_back_as_the_query_it_names(asked: list[tuple[object, str]]) -> None:
    queries = tuple(build(name) for build, name in asked)  # type: ignore[operator]
    listed = ", ".join(query.text for query in queries)
    for text in (listed, f"SELECT {listed} FROM data", f"select {listed}, count(*) from DATA;"):
        read = parse_queries(text)
        assert read[: len(queries)] == queries
        assert ", ".join(query.text for query in read[: len(queries)]) == listed


WORDS = sorted(word for word in DuckDB.Tokenizer.KEYWORDS if word.replace("_", "").isalnum() and not word[0].isdigit())


def unread(words: list[str]) -> list[str]:
    """The words that are lost when they are the name of a column."""
    lost = []
    for word in words:
        for name in (word.lower(), word.upper(), word.title()):
            try:
                same = parse_queries(mean(name).text) == (mean(name),)
            except QueryError:
                same = False
            if not same:
                lost.append(name)
    return lost


def test_a_keyword_may_name_a_column() -> None:
    assert len(WORDS) > 200
    assert unread(WORDS) == []


def test_the_test_of_keywords_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_module, "_RESERVED", frozenset({"select"}))
    assert {"from", "force"} <= set(unread(["SELECT", "FROM", "FORCE"]))


@given(st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from("avgsumcount()*,;\"' \nSELECTFROMdata-/")))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(QueryError):
        assert parse_queries(text)
