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
    "avg((weight))": (mean("weight"),),
    "avg(1.0 * weight)": (mean("weight"),),
    "avg(2 * weight)": (Query("avg", of=("2 * weight",)),),
    "avg(y + x*2)": (Query("avg", of=("2 * x + y",)),),
    "mean(-(x - 3)/4)": (Query("avg", of=("-0.25 * x + 0.75",)),),
    "sum(x / 3 - 2*y/7)": (Query("sum", of=("x / 3 - 2 * y / 7",)),),
    "sum(b * a)": (Query("sum", of=("a * b",)),),
    "var_pop(x)": (Query("var_pop", of=("x",)),),
    "covar_pop(y, x)": (Query("covar_pop", of=("y", "x")),),
    "regr_slope(y, x), regr_intercept(y, x)": (Query("regr_slope", of=("y", "x")), Query("regr_intercept", of=("y", "x"))),
    "median(x)": (Query("quantile", of=("x",), level=0.5),),
    "approx_quantile(x, .5)": (Query("quantile", of=("x",), level=0.5),),
    "approx_quantile(x, 0.25) FILTER (WHERE y>1)": (Query("quantile", None, "y > 1", None, ("x",), 0.25),),
    "SELECT k, avg(x) FILTER (WHERE a=1 AND b=2) FROM data WHERE c=3 AND d=4 GROUP BY k": (
        Query("avg", "x", "c = 3 and d = 4 and a = 1 and b = 2", "k"),
    ),
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_is_accepted(text: str) -> None:
    assert parse_queries(text) == ACCEPTED[text]


# The text, and the word or words by which it is refused.
REFUSED = {
    "nothing": ("", "must be avg(column)"),
    "space": (" \n ", "must be avg(column)"),
    "no aggregate": ("weight", "Got 'weight'"),
    "star": ("SELECT * FROM data", "* outside count(*) is not supported; name the statistics"),
    "number": ("1", "Got '1'"),
    "minimum": ("min(weight)", "min is not supported; ask for approx_quantile"),
    "unknown function": ("average(weight)", "Got 'AVERAGE(weight)'"),
    "no column": ("avg()", "must be avg(column)"),
    "no column of mean": ("mean()", "must be avg(column)"),
    "two columns": ("avg(weight, income)", "must be avg(column)"),
    "two columns of mean": ("mean(weight, income)", "must be avg(column)"),
    "cast": ("avg(weight::int)", "a cast is not supported"),
    "constant": ("avg(1)", "must name a column"),
    "null": ("sum(NULL)", "arithmetic must be of columns"),
    "text": ("avg('weight')", "a column's name goes in double quotes"),
    "star of avg": ("avg(*)", "* outside count(*)"),
    "table prefix": ("avg(data.weight)", "a column goes by its name alone"),
    "field": ('avg("a"."b")', "a column goes by its name alone"),
    "element": ("avg(weight[1])", "arithmetic must be of columns"),
    "parameter": ("avg(?)", "a parameter is not supported"),
    "empty name": ('avg("")', "a column goes by its name alone"),
    "empty name of mean": ('mean("")', "a column goes by its name alone"),
    "distinct avg": ("avg(DISTINCT weight)", "query: distinct is not supported"),
    "distinct mean": ("mean(DISTINCT weight)", "query: distinct is not supported"),
    "ordered avg": ("avg(weight ORDER BY income)", "query: order by is not supported"),
    "ignore nulls": ("avg(weight) IGNORE NULLS", "query: ignore nulls is not supported; name a public value under missing"),
    "count of a column": ("count(weight)", "count takes a star, count(*)"),
    "count of nothing": ("count()", "count takes a star"),
    "count of a constant": ("count(1)", "count takes a star"),
    "distinct count": ("count(DISTINCT weight)", "query: distinct is not supported"),
    "count of some columns": ("count(* EXCLUDE (weight))", "count takes a star"),
    "arithmetic": ("avg(weight) + 1", "query: arithmetic on answers is not supported; ask for the statistics themselves"),
    "ratio": ("sum(weight) / count(*)", "query: arithmetic on answers is not supported"),
    "alias": ("avg(weight) AS w", "query: a name (as) is not supported; drop it"),
    "window": ("avg(weight) OVER (PARTITION BY income)", "query: a window function (over) is not supported; use group by"),
    "cast of an answer": ("avg(weight)::int", "query: a cast is not supported"),
    "subquery as item": ("(SELECT avg(weight) FROM data)", "query: a subquery is not supported"),
    "distinct": ("SELECT DISTINCT avg(weight) FROM data", "query: distinct is not supported"),
    "having": ("SELECT avg(weight) FROM data HAVING avg(weight) > 3", "query: having is not supported"),
    "order": ("SELECT avg(weight) FROM data ORDER BY 1", "query: order by is not supported; sort the answers after"),
    "limit": ("SELECT avg(weight) FROM data LIMIT 1", "query: limit is not supported"),
    "offset": ("SELECT avg(weight) FROM data OFFSET 1", "query: offset is not supported"),
    "qualify": ("SELECT avg(weight) FROM data QUALIFY true", "query: qualify is not supported"),
    "named window": ("SELECT avg(weight) FROM data WINDOW w AS ()", "query: window is not supported"),
    "sample": ("SELECT avg(weight) FROM data USING SAMPLE 10%", "query: sample is not supported"),
    "into": ("SELECT avg(weight) INTO x FROM data", "query: into is not supported"),
    "lock": ("SELECT avg(weight) FROM data FOR UPDATE", "query: lock is not supported"),
    "two tables": ("SELECT avg(weight) FROM data, other", "query: join is not supported"),
    "join": ("SELECT avg(weight) FROM data JOIN other USING (id)", "query: join is not supported"),
    "struct": ("SELECT AS STRUCT avg(weight) FROM data", "query: select as is not supported"),
    "another table": ("SELECT avg(weight) FROM other", "the only table is data"),
    "table alias": ("SELECT avg(weight) FROM data d", "the only table is data"),
    "schema": ("SELECT avg(weight) FROM main.data", "the only table is data"),
    "sampled table": ("SELECT avg(weight) FROM data TABLESAMPLE (10)", "the only table is data"),
    "pivot": ("SELECT avg(weight) FROM data PIVOT (sum(x) FOR y IN (1))", "the only table is data"),
    "file": ("SELECT avg(weight) FROM 'other.parquet'", "the only table is data"),
    "table function": ("SELECT avg(weight) FROM read_csv('x.csv')", "the only table is data"),
    "subquery": ("SELECT avg(weight) FROM (SELECT * FROM data)", "the only table is data"),
    "union": ("SELECT avg(weight) FROM data UNION SELECT avg(weight) FROM data", "query: union is not supported"),
    "with": (
        "WITH data AS (SELECT 1 AS weight) SELECT avg(weight) FROM data",
        "query: with is not supported; ask of the table itself",
    ),
    "two statements": ("avg(weight); sum(income)", "must be avg(column)"),
    "drop": ("DROP TABLE data", "must be avg(column)"),
    "copy": ("COPY data TO 'x'", "must be avg(column)"),
    "second statement": ("avg(weight); DROP TABLE data", "must be avg(column)"),
    "open parenthesis": ("avg(weight", "must be avg(column)"),
    "no items": ("SELECT FROM data", "must be avg(column)"),
    "except": ("SELECT avg(weight) FROM data EXCEPT SELECT avg(weight) FROM data", "query: except is not supported"),
    "random": ("avg(weight * random())", "query: random() is not supported; its value would differ each time"),
    "now": ("count(*) FILTER (WHERE born < now())", "query: now() is not supported; its value would differ each time"),
    "today": ("count(*) FILTER (WHERE born < current_date)", "query: current_date is not supported"),
    "uuid": ("avg(uuid())", "query: uuid() is not supported"),
    "subquery in a filter": ("count(*) FILTER (WHERE a IN (SELECT 1))", "query: a subquery is not supported"),
    "exists": ("count(*) FILTER (WHERE EXISTS (SELECT 1))", "query: a subquery is not supported"),
    "case": ("avg(CASE WHEN a > 1 THEN b END)", "query: case is not supported; use filter"),
    "coalesce": ("avg(coalesce(a, 0))", "query: coalesce is not supported; name a public value under missing"),
    "like": ("count(*) FILTER (WHERE a LIKE 'x%')", "query: like is not supported; compare with = or in"),
    "sample variance": ("variance(a)", "query: a sample variance is not supported; ask for var_pop"),
    "deviation": ("stddev_pop(a)", "query: a standard deviation is not supported; ask for var_pop"),
    "correlation": ("corr(a, b)", "query: corr is not supported; ask for covar_pop"),
    "exact quantile": ("quantile_cont(a, 0.5)", "query: an exact quantile is not supported; ask for approx_quantile"),
    "within group": ("percentile_cont(0.5) WITHIN GROUP (ORDER BY a)", "query: within group is not supported"),
    "list": ("list(a)", "query: a list of values is not supported; it would print rows"),
    "power": ("avg(a ** 2)", "query: a power is not supported; write x * x"),
    "whole division": ("avg(a // 2)", "query: division of whole numbers (//) is not supported"),
    "remainder": ("avg(a % 2)", "query: a remainder (%) is not supported"),
    "division by a column": ("avg(a / b)", "must divide by a number other than 0"),
    "division by zero": ("avg(a / (1 - 1))", "must divide by a number other than 0"),
    "function": ("avg(abs(a))", "arithmetic must be of columns and numbers"),
    "nested": ("avg(sum(a))", "arithmetic must be of columns and numbers"),
    "cancelled": ("avg(a - a + b)", "a cancels out; leave it out"),
    "times zero": ("avg(0 * a + b)", "a cancels out; leave it out"),
    "huge number": ("avg(1e999999999 * a)", "numbers must have fewer digits"),
    "tiny number": ("avg(1e-999999999 * a)", "numbers must have fewer digits"),
    "huge product": ("avg(1e300 * 1e300 * a)", "numbers must have fewer digits"),
    "high power": ("avg((a + b) * (a + b) * (a + b) * (a + b) * (a + b))", "each of at most 4 columns"),
    "too many terms": (f"avg({' + '.join(f'c{k}' for k in range(201))})", "at most 200 terms"),
    "long sum": (f"avg({'a+' * 3000}a)", "must have fewer terms"),
    "long condition": (f"count(*) FILTER (WHERE {' AND '.join(['a=1'] * 1200)})", "must have fewer terms"),
    "level": ("approx_quantile(a, 1.5)", "a quantile's level must be a number above 0 and below 1"),
    "levels": ("approx_quantile(a, [0.1, 0.9])", "a quantile's level must be a number"),
    "level of a column": ("approx_quantile(a, b)", "a quantile's level must be a number"),
    "one column of two": ("covar_pop(a)", "must be avg(column)"),
    "two groups": ("SELECT count(*) FROM data GROUP BY a, b", "group by takes one column"),
    "group by place": ("SELECT count(*) FROM data GROUP BY 1", "group by takes one column"),
    "group by all": ("SELECT count(*) FROM data GROUP BY ALL", "group by takes one column"),
    "rollup": ("SELECT count(*) FROM data GROUP BY ROLLUP (a)", "group by takes one column"),
    "group by expression": ("SELECT count(*) FROM data GROUP BY a + 1", "group by takes one column"),
    "another group": ("SELECT b, count(*) FROM data GROUP BY a", "Got 'b'"),
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
