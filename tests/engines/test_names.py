"""Column names and constants are data, never code: generated ones, executed on DuckDB and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from attrpriv.engines.grid import Grid
from attrpriv.engines.scan import ColumnRead, scan
from attrpriv.engines.tables import Source, open_table
from attrpriv.engines.tally import TallyRead
from attrpriv.queries.conditions import Compare, Condition, In, Join, Not, parse_condition
from attrpriv.queries.query import quoted
from attrpriv.queries.sql import parse_queries
from tests.engines.backends import NO_POSTGRES, POSTGRES, postgres
from tests.property.test_sql_meaning import conditions, table_of, truth

HOSTILE = (
    'a"; DROP TABLE canary; --',
    "'; DROP TABLE canary; --",
    "x') OR 1=1 --",
    '"',
    '""',
    "'",
    "\\",
    "\\'",
    "$$",
    "%s",
    "%(x)s",
    "{0}",
    "?",
    ":x",
    "$1",
    "/*",
    "*/",
    "--",
    ";",
    "a.b",
    '"a"."b"',
    "select",
    "from",
    "rows",
    "sum_0",
    "kept_0",
    "null",
    "true",
    "E'\\047'",
    " leading and trailing ",
    "größe",
    "日本語",
    "\u202e",
    "😀",
    "a\nb",
    "a\tb",
    "chr(34)",
)
letters = st.characters(codec="utf-8", exclude_characters="\0")
# PostgreSQL cuts a name to 63 bytes.
names = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(letters, min_size=1, max_size=15),
    st.lists(st.sampled_from(HOSTILE), max_size=3).map("".join),
)
names = names.filter(lambda name: 0 < len(name.encode()) < 60)
constants = st.one_of(st.sampled_from(HOSTILE), st.text(letters, max_size=12))


def duckdb(table: Any) -> Source:
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE canary AS SELECT 1 AS alive")
    connection.con.register("given", table)
    connection.raw_sql("CREATE TABLE people AS FROM given")
    return open_table(connection.table("people"))


def alive(source: Source) -> bool:
    """Whether the canary, which hostile names try to drop, is still there."""
    return bool(source.engine.con.execute("SELECT alive FROM canary").fetchall() == [(1,)])


def check(source: Source, number: str, text: str, wanted: str, values: list[str]) -> None:
    """Sums and counts, by conditions given and by conditions written and read again, against plain Python."""
    same: Condition = Compare(text, "=", wanted)
    listed: Condition = In(text, (wanted, "none of them"))
    both: Condition = Join("or", (Not(same), Compare(number, ">", 2)))
    held = [
        [value == wanted for value in values],
        [value in (wanted, "none of them") for value in values],
        [value != wanted or k + 1 > 2 for k, value in enumerate(values)],
    ]
    conditions = [same, listed, both]
    for read in (conditions, [parse_condition(str(one)) for one in conditions]):
        reads = [ColumnRead(number, grid=Grid(2.0**-10)), *(ColumnRead(number, where=one) for one in read)]
        found = scan(source, reads, TallyRead(tuple(read), False, ()))
        assert found.sums == (
            sum(k + 1 for k in range(len(values))),
            *(sum(k + 1 for k, hit in enumerate(h) if hit) for h in held),
        )
        assert found.tally is not None
        assert found.tally.cells == tuple(map(sum, held))
    assert alive(source)


def made(number: str, text: str, values: list[str]) -> Any:
    return pa.table({number: [float(k + 1) for k in range(len(values))], text: values})


@settings(max_examples=25)
@given(names, names, constants, st.lists(constants, min_size=1, max_size=4))
def test_names_and_constants_on_duckdb(number: str, text: str, wanted: str, values: list[str]) -> None:
    assume(number.lower() != text.lower())
    check(duckdb(made(number, text, [*values, wanted])), number, text, wanted, [*values, wanted])


@pytest.fixture(scope="module")
def canary() -> Iterator[Callable[[Any], Source]]:
    """Tables in PostgreSQL, removed afterwards."""
    import psycopg

    assert POSTGRES is not None
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS canary")
        connection.execute("CREATE TABLE canary AS SELECT 1 AS alive")
        yield lambda table: open_table(postgres(table, Path()))
        connection.execute("DROP TABLE canary")


@pytest.mark.skipif(NO_POSTGRES is not None, reason=str(NO_POSTGRES))
@settings(max_examples=25)
@given(names, names, constants, st.lists(constants, min_size=1, max_size=4))
def test_names_and_constants_on_postgres(
    canary: Callable[[Any], Source], number: str, text: str, wanted: str, values: list[str]
) -> None:
    assume(number.lower() != text.lower())
    check(canary(made(number, text, [*values, wanted])), number, text, wanted, [*values, wanted])


# --------------------------------------------------------------------------------------------------- generated filters


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def written(columns: Sequence[str], texts: Sequence[str]) -> list[tuple[str, Callable[[dict[str, Any]], bool | None]]]:
    """Filters as people write them, with hostile constants, and what they mean for a row with missing entries."""
    number, text, _ = columns
    listed = ", ".join(map(literal, texts))
    x, y = quoted(number), quoted(text)

    def known(of: Callable[[Any], bool], column: str) -> Callable[[dict[str, Any]], bool | None]:
        return lambda row: None if row[column] is None else of(row[column])

    return [
        (f"{y} in ({listed})", known(lambda value: value in texts, text)),
        (f"{y} not in ({listed})", known(lambda value: value not in texts, text)),
        (f"{y} = {literal(texts[0])} or {y} is null", lambda row: row[text] is None or row[text] == texts[0]),
        (f"{x} between -2 and 1", known(lambda value: -2 <= value <= 1, number)),
        (f"not {x} between 0 and 3.5", known(lambda value: not 0 <= value <= 3.5, number)),
        (f"{x} is not null and {y} is null", lambda row: row[number] is not None and row[text] is None),
    ]


def with_texts(table: Any, column: str, texts: Sequence[str]) -> Any:
    """Some entries are the hostile constants themselves."""
    entries = [texts[k % len(texts)] if k % 4 == 0 else value for k, value in enumerate(table[column].to_pylist())]
    return table.set_column(table.column_names.index(column), column, pa.array(entries, pa.string()))


def check_filters(make: Callable[[Any], Source], data: st.DataObject) -> None:
    """Sums over the rows that a filter keeps, and their number, by generated filters and by written ones, against Python."""
    columns = data.draw(st.lists(names, min_size=3, max_size=3, unique_by=lambda name: name.lower()))
    texts = data.draw(st.lists(constants, min_size=1, max_size=3, unique=True))
    table = with_texts(table_of(columns, data.draw(st.integers(0, 5))), columns[1], texts)
    trees = data.draw(st.lists(conditions(columns, 2), min_size=4, max_size=4))
    asked = [(str(tree), partial(truth, tree)) for tree in trees] + written(columns, texts)
    queries = [parse_queries(f"count(*) filter (where {where})")[0] for where, _ in asked]
    assert [parse_queries(query.text)[0] for query in queries] == queries
    reads = [
        ColumnRead(columns[0], fill=1.0, grid=Grid(2.0**-10), where=parse_condition(query.where or "")) for query in queries
    ]
    source = make(table)
    found = scan(source, reads)
    rows = table.to_pylist()
    kept = [[row for row in rows if means(row) is True] for _, means in asked]
    assert found.hits == tuple(map(len, kept))
    assert found.sums == tuple(sum(1 if row[columns[0]] is None else int(row[columns[0]]) for row in one) for one in kept)
    assert alive(source)


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_filters_on_duckdb(data: st.DataObject) -> None:
    check_filters(duckdb, data)


@pytest.mark.skipif(NO_POSTGRES is not None, reason=str(NO_POSTGRES))
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.data())
def test_filters_on_postgres(canary: Callable[[Any], Source], data: st.DataObject) -> None:
    check_filters(canary, data)


def test_a_name_that_were_code_is_noticed() -> None:
    """That the tests above can fail."""
    source = duckdb(pa.table({"x": [1.0]}))
    source.engine.con.execute(f'SELECT "{HOSTILE[0]}'.replace("SELECT", "SELECT 1 AS"))
    with pytest.raises(Exception, match="canary"):
        alive(source)
