"""How the rows of two conditions lie to each other: every claim against tables that DuckDB filters."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.evaluate import relation

KNOWN: dict[tuple[str | None, str | None], str | None] = {
    (None, None): "same",
    ("a = 1", None): "inside",
    (None, "a = 1"): "around",
    ("t = 'x'", "t = 'y'"): "apart",
    ("t = 'x'", "t in ('x', 'y')"): "inside",
    ("t in ('x', 'y')", "t in ('y', 'x')"): "same",
    ("t in ('x', 'y')", "t in ('y', 'z')"): None,
    ("t = 'x'", "t != 'x'"): "apart",
    ("t = 'x'", "not (t in ('x', 'y')) or t is null"): "apart",
    ("not (t in ('x', 'y')) or t is null", "t is null"): "around",
    ("a < 18", "a >= 18"): "apart",
    ("a < 18", "a between 18 and 65"): "apart",
    ("a <= 18", "a between 18 and 65"): None,
    ("a > 3", "a > 2"): "inside",
    ("a >= 0 and a < 3", "a >= 3 and a <= 6"): "apart",
    ("a = 1", "b = 1"): None,
    ("a = 1 and b = 1", "a = 1 and b = 2"): "apart",
    ("a = 1 and b = 1", "b = 1"): "inside",
    ("a = 1", "not (a = 1)"): "apart",
    ("f = true", "f = false"): "apart",
    ("f = true", "f is null"): "apart",
    ("f = true or f = false or f is null", "f = true"): "around",
    # What a column type, a collation or a trailing blank may take for one another.
    ("t = 'x'", "t = 'X'"): None,
    ("t = 'x'", "t = 'x '"): None,
    ("a = 16777216", "a = 16777217"): None,
    ("a = 0.1", "a = 0.10000000001"): None,
    ("t = 'e'", "t = 'é'"): None,
    ("t = 'a b'", "t = 'a-b'"): None,
    ("t = 'a01'", "t = 'a1'"): None,
    ("a < 18014398509481984", "a >= 18014398509481984.0"): None,
    ("a < 1", "a >= 1.0"): None,
    ("a < 0.12345678901234567891", "a >= 0.12345678901234567891"): "apart",
    ("a < 0.12345678901234567891", "a >= 0.12345678901234567892"): None,
    # Texts have no order here, and types are not mixed.
    ("t < 'm'", "t >= 'm'"): None,
    ("a = 1", "a = 'b'"): None,
    ("t is 'x'", "t is 'y'"): None,
    # Too many combinations to try.
    (" and ".join(f"c{k} > {k}" for k in range(9)), " and ".join(f"c{k} > {k + 1}" for k in range(9))): None,
}


@pytest.mark.parametrize("pair", KNOWN, ids=str)
def test_what_is_known(pair: tuple[str | None, str | None]) -> None:
    first, second = (None if one is None else str(parse_condition(one)) for one in pair)
    assert relation(first, second) == KNOWN[pair]
    turned = {"inside": "around", "around": "inside"}
    assert relation(second, first) == turned.get(KNOWN[pair] or "", KNOWN[pair])


numbers = st.sampled_from(["-1", "0", "1", "2", "2.5"])
texts = st.sampled_from(["'x'", "'y'", "'z'"])
compared = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
leaves = st.one_of(
    st.builds("a {} {}".format, compared, numbers),
    st.builds("b {} {}".format, compared, numbers),
    st.builds("t = {}".format, texts),
    st.builds("t != {}".format, texts),
    st.builds("t in ({}, {})".format, texts, texts),
    st.builds("a between {} and {}".format, numbers, numbers),
    st.sampled_from(["a is null", "t is null"]),
)
conditions: st.SearchStrategy[str] = st.recursive(
    leaves,
    lambda part: st.one_of(
        st.builds("not ({})".format, part),
        st.builds("({}) and ({})".format, part, part),
        st.builds("({}) or ({})".format, part, part),
    ),
    max_leaves=4,
)
ROWS = """
    SELECT row_number() OVER () AS k, * FROM
        (SELECT unnest([-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.25, 2.5, 9, 'nan'::double, NULL]) AS a),
        (SELECT unnest([-1, 0, 1.5, 2.5, 3, NULL]) AS b),
        (SELECT unnest(['x', 'y', 'z', 'w', '', NULL]) AS t)
"""


@pytest.fixture(scope="module")
def table() -> Any:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE rows AS {ROWS}")
    return connection


@given(first=conditions, second=conditions)
@settings(max_examples=150, deadline=None)
def test_every_claim_holds_in_a_table(table: Any, first: str, second: str) -> None:
    """The table has every kind of value, so that a relation is claimed where it holds there, and only there."""
    texts_of = [str(parse_condition(one)) for one in (first, second)]
    one, two = ({row[0] for row in table.execute(f"SELECT k FROM rows WHERE {text}").fetchall()} for text in texts_of)
    claimed = relation(*texts_of)
    holds = {"same": one == two, "inside": one <= two, "around": one >= two, "apart": not one & two}
    assert claimed is None or holds[claimed]
    if claimed is None:
        assert not any(holds.values()) or "!=" in first + second or "not" in first + second
