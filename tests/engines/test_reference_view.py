"""Views by the values of columns, on every engine: exactly the public numbers, and nothing of the rows left out."""

from __future__ import annotations

import datetime
import hashlib
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.engines.tables import Source, open_table
from attrpriv.engines.view import in_order
from attrpriv.engines.view.cells import CELL, NOT_DIFFERENT
from attrpriv.engines.view.draw import CHANGED, NOT_UNIQUE, TOO_FEW, Cells, Drawn, view_table
from attrpriv.engines.view.fetched import drawn_rows, same_rows
from attrpriv.engines.view.file import write_view
from attrpriv.engines.view.lookup import cell_lookup
from attrpriv.errors import DataError
from tests.engines.backends import ENGINES, every_engine

N = 900
KEY = "0123456789abcdef" * 4
# Values of hidden columns of every type, and one that no cell has.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integer": (pa.int64(), [17, 18, None, 90]),
    "text": (pa.string(), ["", "a,\"b'\nc\\.", "größe 😀", None, " a", "NULL"]),
    "float": (pa.float64(), [0.1, float("nan"), -2.5e-300, 1e22, 7.0]),
    "decimal": (pa.decimal128(12, 3), [Decimal("1.500"), Decimal("-0.001"), None, Decimal("7.000")]),
    "date": (pa.date32(), [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), None, datetime.date(2000, 1, 1)]),
    "boolean": (pa.bool_(), [True, False, None]),
}


def table_of(columns: Sequence[str], seed: int = 1, n: int = N) -> pa.Table:
    """Rows with equal contents, rare values, and every type beside the hidden columns."""
    generator = np.random.default_rng(seed)
    hidden = {
        name: pa.array([VALUES[name][1][k] for k in generator.integers(0, len(VALUES[name][1]), n)], VALUES[name][0])
        for name in columns
    }
    return pa.table(
        {
            "id": pa.array(generator.permutation(n) + 1000),
            **hidden,
            "x": pa.array(np.round(generator.normal(size=n), 1)),
            "note": pa.array([f"note {k}" for k in generator.integers(0, 3, n)]),
        }
    )


def public(value: Any) -> Any:
    """A value as public records hold it: dates and decimals as text, NaN as missing."""
    if isinstance(value, datetime.date | Decimal):
        return str(value)
    return None if value != value else value


def values_of(table: pa.Table, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    return [tuple(public(value) for value in row) for row in zip(*(table[name].to_pylist() for name in columns), strict=True)]


def rule_of(table: pa.Table, columns: Sequence[str]) -> Cells:
    """Two thirds of each value, but for the least frequent, which no cell has."""
    counts = Counter(values_of(table, columns)).most_common()[:-1]
    keep = tuple(2 * count // 3 for _, count in counts)
    return Cells((), (*keep, 0), (*keep, 0), (len(table),) * (len(keep) + 1), tuple(columns), tuple(one for one, _ in counts))


def by_id(table: pa.Table) -> list[tuple[int, int]]:
    """Rank and place of each row."""
    digests = [hashlib.sha256(f"{KEY}{name}".encode()).hexdigest() for name in table["id"].to_pylist()]
    return [(int(digest, 16), int(digest[32:], 16)) for digest in digests]


@cache
def by_position(n: int) -> list[tuple[int, int]]:
    size = 65_536
    stream = hashlib.shake_256(bytes.fromhex(KEY) + (0).to_bytes(8, "little")).digest(24 * size)
    words = np.frombuffer(stream, "<u8").reshape(3, size)[:, :n].tolist()
    return [(rank // 2, first * 2**64 + second) for rank, first, second in zip(*words, strict=True)]


def twin(table: pa.Table, rule: Cells, ranked: list[tuple[int, int]]) -> list[int]:
    """The positions that are kept, in the order shown."""
    values = values_of(table, rule.columns)
    chosen: list[int] = []
    for cell, keep in zip(rule.values, rule.keep, strict=False):
        chosen += sorted((j for j, one in enumerate(values) if one == cell), key=lambda j: ranked[j][0])[:keep]
    return sorted(chosen, key=lambda j: ranked[j][1])


def otherwise(table: pa.Table, rule: Cells, ranked: list[tuple[int, int]]) -> pa.Table:
    """The same kept rows; every other row has other values, and many another cell, whose kept rows stay the same."""
    values, kept = values_of(table, rule.columns), twin(table, rule, ranked)
    limits: dict[tuple[Any, ...], int] = {}
    for j in kept:
        limits[values[j]] = max(limits.get(values[j], -1), ranked[j][0])
    own = {values[j]: [table[name][j].as_py() for name in rule.columns] for j in range(len(table))}
    data, moved = table.to_pydict(), 0
    for j in set(range(len(table))) - set(kept):
        data["x"][j], data["note"][j] = (float("nan") if j % 3 else 1e300), (None if j % 2 else "ELSEWHERE")
        target = next((one for one in own if one != values[j] and limits.get(one, -1) < ranked[j][0]), None)
        if target is not None:
            moved += 1
            for name, value in zip(rule.columns, own[target], strict=True):
                data[name][j] = value
    assert moved > len(table) // 10
    return pa.table(data, schema=table.schema)


def rows(table: pa.Table, hidden: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """Each row; of hidden columns, a NaN is one more missing entry."""
    each = table.to_pylist()
    return [tuple(repr(None if name in hidden and v != v else v) for name, v in row.items()) for row in each]


def shown(given: object, rule: Cells, row_id: str | None) -> tuple[Drawn, Source, pa.Table]:
    drawn, source = drawn_rows(open_table(given), rule, N, row_id, KEY)
    return drawn, source, view_table(source, rule, drawn, row_id, ()).to_pyarrow()


HIDDEN = [*((name,) for name in VALUES), ("integer", "text"), ("text", "float", "boolean")]


@pytest.mark.parametrize("columns", HIDDEN, ids=" ".join)
@every_engine(without="decimal")
def test_exactly_the_public_numbers_by_keyed_rank(engine: str, columns: tuple[str, ...], tmp_path: Path) -> None:
    """As a twin in Python chooses them, from every engine; of values that no cell has, no row."""
    if engine == "csv":
        pytest.skip("a CSV file tells a missing text from an empty one in quotes alone")
    table = table_of(columns)
    rule = rule_of(table, columns)
    source, expected = open_table(ENGINES[engine](table, tmp_path)), table.take(twin(table, rule, by_id(table)))
    drawn, here = drawn_rows(source, rule, N, "id", KEY)
    found = view_table(here, rule, drawn, "id", ()).to_pyarrow()
    assert rows(found) == rows(expected.drop_columns(["id"]), columns)
    assert Counter(values_of(found, columns)) == dict(zip(rule.values, rule.keep, strict=False))
    again = same_rows(open_table(ENGINES[engine](table, tmp_path)), rule, drawn, "id")
    assert rows(view_table(again, rule, drawn, "id", ()).to_pyarrow()) == rows(found)


@pytest.mark.parametrize("columns", HIDDEN, ids=" ".join)
def test_by_position(columns: tuple[str, ...], tmp_path: Path) -> None:
    table = table_of(columns)
    rule = rule_of(table, columns)
    expected = rows(table.take(twin(table, rule, by_position(N))), columns)
    for given in (table, ENGINES["parquet"](table, tmp_path)):
        assert rows(shown(given, rule, None)[2]) == expected


@pytest.mark.parametrize("columns", HIDDEN, ids=" ".join)
@every_engine(without="decimal")
def test_nothing_of_rows_left_out_is_in_the_file(engine: str, columns: tuple[str, ...], tmp_path: Path) -> None:
    """Other values of the hidden columns, extremes, missing entries: the same file to the last byte."""
    if engine == "csv":
        pytest.skip("a CSV file tells a missing text from an empty one in quotes alone")
    table = table_of(columns, seed=2)
    rule = rule_of(table, columns)
    for row_id, ranked in (("id", by_id(table)), (None, by_position(N))):
        if row_id is None and engine not in ("parquet", "pattern"):
            continue
        found = []
        for k, given in enumerate((table, otherwise(table, rule, ranked))):
            drawn, source, lazy = shown(ENGINES[engine](given, tmp_path), rule, row_id)
            out = tmp_path / f"{row_id}{k}.parquet"
            write_view(source, view_table(source, rule, drawn, row_id, ()), out, sum(rule.keep))
            found.append((lazy.schema, rows(lazy), out.read_bytes()))
        assert found[0] == found[1]
        assert all(field.nullable for field in pq.read_schema(out))


@every_engine(without="decimal")
def test_another_table_is_refused(engine: str, tmp_path: Path) -> None:
    table = table_of(("integer",))
    rule = rule_of(table, ("integer",))
    drawn, _ = drawn_rows(open_table(ENGINES[engine](table, tmp_path)), rule, N, "id", KEY)
    changed = table.set_column(2, "x", pa.array([*table["x"].to_pylist()[:-1], 99.0]))
    with pytest.raises(DataError) as caught:
        same_rows(open_table(ENGINES[engine](changed, tmp_path)), rule, drawn, "id")
    assert str(caught.value) == CHANGED


@every_engine(without="decimal")
def test_failures_have_fixed_texts(engine: str, tmp_path: Path) -> None:
    table = table_of(("integer",))
    rule = rule_of(table, ("integer",))
    wanting = Cells((), (N, *rule.keep[1:]), (N, *rule.low[1:]), rule.high, rule.columns, rule.values)
    repeated = table.set_column(0, "id", pa.array([7, 7, *table["id"].to_pylist()[2:]]))
    for given, how, n, text in (
        (table, wanting, N, TOO_FEW),
        (repeated, rule, N, NOT_UNIQUE),
        (table, rule, N + 1, f"rows: must be the number of rows of the table, {N}. Got {N + 1}."),
    ):
        with pytest.raises(DataError) as caught:
            drawn_rows(open_table(ENGINES[engine](given, tmp_path)), how, n, "id", KEY)
        assert str(caught.value) == text


def test_public_values_that_the_table_cannot_tell_apart() -> None:
    table = table_of(("integer",))
    twice = Cells((), (1, 1, 0), (1, 1, 0), (N,) * 3, ("integer",), ((17,), (17.0,)))
    for row_id in ("id", None):
        with pytest.raises(DataError):
            drawn_rows(open_table(table), twice, N, row_id, KEY)
    assert "different" in NOT_DIFFERENT


@pytest.mark.parametrize("dense", [True, False])
def test_cells_are_looked_up(dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not dense:
        monkeypatch.setattr("attrpriv.engines.view.lookup._DENSE", 0)
    generator = np.random.default_rng(1)
    pairs = [(None, "a"), (1, None), (3, "b"), (1, "a"), (None, None)]
    look_up = cell_lookup([pa.array([a for a, _ in pairs], pa.int64()), pa.array([b for _, b in pairs], pa.string())])
    drawn = [((1, 2, 3, None)[a], ("a", "b", "c", None)[b]) for a, b in generator.integers(0, 4, (200, 2))]
    found = look_up([pa.array([a for a, _ in drawn], pa.int64()), pa.array([b for _, b in drawn], pa.string())])
    assert found.tolist() == [pairs.index(one) if one in pairs else len(pairs) for one in drawn]
    with pytest.raises(ValueError, match="two cells"):
        cell_lookup([pa.array([1, 1])])


# What the other engine is told.


@pytest.mark.parametrize("name", ["polars"])
def test_only_columns_are_asked_of_the_other_engine(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from attrpriv.engines import streams

    asked: list[str] = []
    batches = streams._batches

    def listed(engine: Any, expression: Any, schema: pa.Schema) -> Any:
        asked.append(repr(expression))
        yield from batches(engine, expression, schema)

    monkeypatch.setattr(streams, "_batches", listed)
    table = table_of(("integer",))
    rule = rule_of(table, ("integer",))
    source = open_table(ENGINES[name](table, tmp_path))
    drawn, _ = drawn_rows(source, rule, N, "id", KEY)
    assert len(asked) == 2, "one scan for counts, one for rows"
    secret = (KEY, *drawn.thresholds[:-1])
    assert not any(word in text for text in asked for word in secret)


@pytest.mark.parametrize("columns", [("integer",), ("text", "float", "boolean")], ids=" ".join)
def test_rows_told_by_what_is_known_of_them_are_those_of_their_cells(columns: tuple[str, ...], tmp_path: Path) -> None:
    """A pass that has told each row's cell is not repeated to write the rows, unless the table has changed since."""
    table = table_of(columns)
    rule = rule_of(table, columns)
    source = open_table(ENGINES["parquet"](table, tmp_path))
    drawn, _ = drawn_rows(source, rule, N, None, KEY)
    again = open_table(ENGINES["parquet"](table, tmp_path))
    same_rows(again, rule, drawn, None)
    whole = (rule, drawn.key, drawn.thresholds, N)
    expected = sorted(rows(source.engine.to_pyarrow(in_order.kept_in_order(source, *whole).select("id"))))
    assert len(expected) == sum(rule.keep)
    for one in (source, again):
        known = in_order.shown_in_order(one, *whole)
        assert CELL not in known.columns
        assert sorted(rows(one.engine.to_pyarrow(known.select("id")))) == expected
    assert CELL in in_order.shown_in_order(open_table(table), *whole).columns, "nothing is known of this one"


def test_what_is_known_of_a_table_is_not_said_of_another(tmp_path: Path) -> None:
    table = table_of(("integer",))
    rule = rule_of(table, ("integer",))
    path = tmp_path / "people.parquet"
    pq.write_table(table, path)
    source = open_table(path)
    drawn, _ = drawn_rows(source, rule, N, None, KEY)
    pq.write_table(otherwise(table, rule, by_id(table)), path)
    assert CELL in in_order.shown_in_order(source, rule, drawn.key, drawn.thresholds, N).columns
    with pytest.raises(DataError) as caught:
        write_view(source, view_table(source, rule, drawn, None, ()), tmp_path / "view.parquet", sum(rule.keep))
    assert str(caught.value) == CHANGED
