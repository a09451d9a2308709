"""Parts of a view: disjoint, together the view, the planned numbers of each cell, and nothing else shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.engines.tables import Source, open_table
from attrpriv.engines.view import parts as module
from attrpriv.engines.view.draw import CHANGED, Cells, Drawn, draw, view_table
from attrpriv.engines.view.file import NOT_WRITTEN, ViewFile, write_views
from attrpriv.engines.view.parts import part_tables
from attrpriv.errors import DataError, UsageError
from tests.engines.test_view import (
    INPUTS,
    KEY,
    N,
    by_digest,
    by_position,
    cells,
    duckdb_table,
    otherwise,
    people,
    rows,
    twin,
)

NUMBERS = ((72, 193), (18, 47))


def parts_of(
    source: Source, rule: Cells, drawn: Drawn, row_id: str | None = None, numbers: Sequence[Sequence[int]] = NUMBERS
) -> list[pa.Table]:
    return [part.to_pyarrow() for part in part_tables(source, rule, drawn, row_id, (), numbers)]


def twin_parts(table: pa.Table, rule: Cells, numbers: Sequence[Sequence[int]], ids: Sequence[object] | None) -> list[list[int]]:
    """The positions of each part in the order shown."""
    place = [one[1] for one in (by_position(KEY, table.num_rows) if ids is None else by_digest(KEY, ids))]
    sex, found = table["sex"].to_pylist(), [[] for _ in numbers]  # type: list[str], list[list[int]]
    for k, women in enumerate((True, False)):
        left = [j for j in twin(table, rule, KEY, ids) if (sex[j] == "F") == women]
        for part, of_cells in enumerate(numbers):
            found[part] += left[: of_cells[k]]
            left = left[of_cells[k] :]
    return [sorted(part, key=lambda j: (place[j] % 2**64, place[j] >> 64)) for part in found]


@pytest.mark.parametrize("numbers", [NUMBERS, ((30, 80), (0, 100), (60, 60)), ((90, 0), (0, 240)), ((1, 239), (89, 1))])
@pytest.mark.parametrize("row_id", [None, "id"])
def test_parts_are_the_rows_of_the_smallest_places(row_id: str | None, numbers: Sequence[Sequence[int]]) -> None:
    table, rule = people(), cells()
    source = open_table(table)
    drawn = draw(source, rule, N, row_id, KEY)
    found = parts_of(source, rule, drawn, row_id, numbers)
    ids = None if row_id is None else table["id"].to_pylist()
    expected = [table.take(part) for part in twin_parts(table, rule, numbers, ids)]
    shown = [name for name in table.column_names if name != row_id]
    assert [rows(part) for part in found] == [rows(part.select(shown)) for part in expected]


@pytest.mark.parametrize("kind", list(INPUTS))
def test_parts_are_disjoint_and_together_the_view(kind: str, tmp_path: Path) -> None:
    table, rule = people(), cells()
    source = open_table(INPUTS[kind](table, tmp_path))
    drawn = draw(source, rule, N, None, KEY)
    train, test = parts_of(source, rule, drawn)
    whole = view_table(source, rule, drawn, None, ()).to_pyarrow()
    assert not set(train["id"].to_pylist()) & set(test["id"].to_pylist())
    assert sorted(map(str, rows(train) + rows(test))) == sorted(map(str, rows(whole)))
    assert [Counter(part["sex"].to_pylist()) for part in (train, test)] == [{"F": 72, "M": 193}, {"F": 18, "M": 47}]
    assert parts_of(source, rule, drawn) == [train, test], "the same each time"


def test_parts_of_an_engine_of_the_caller() -> None:
    source, rule = open_table(duckdb_table(people())), cells()
    drawn = draw(source, rule, N, "id", KEY)
    assert [part.num_rows for part in parts_of(source, rule, drawn, "id")] == [265, 65]


def test_values_as_cells_leave_all_others_out() -> None:
    table = people()
    rule = Cells((), (40, 30, 0), (40, 30, 0), (N, N, N), columns=("age",), values=((20,), (22,)))
    source = open_table(table)
    train, test = parts_of(source, rule, draw(source, rule, N, None, KEY), None, ((30, 20), (10, 10)))
    assert [Counter(part["age"].to_pylist()) for part in (train, test)] == [{20: 30, 22: 20}, {20: 10, 22: 10}]


def test_where_places_are_not_near_their_share_all_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    source, rule = open_table(people()), cells()
    drawn = draw(source, rule, N, None, KEY)
    expected = parts_of(source, rule, drawn)
    monkeypatch.setattr(module, "near_share", lambda end, keep: (0.0, 0.0))
    assert parts_of(source, rule, drawn) == expected


def test_another_number_of_rows_than_were_kept_is_an_error() -> None:
    source, rule = open_table(people()), cells()
    drawn = draw(source, rule, N, None, KEY)
    fewer = Drawn(drawn.key, ("-1", drawn.thresholds[1]), drawn.fingerprint, drawn.rows)
    with pytest.raises(DataError) as caught:
        parts_of(source, rule, fewer)
    assert str(caught.value) == CHANGED


def write(source: Source, rule: Cells, drawn: Drawn, folder: Path, counts: tuple[int, int] = (265, 65)) -> list[bytes]:
    tables = part_tables(source, rule, drawn, None, (), NUMBERS)
    outs = [folder / "view.train.parquet", folder / "view.test.parquet"]
    write_views(source, [ViewFile(*one) for one in zip(tables, outs, counts, strict=True)])
    return [out.read_bytes() for out in outs]


def test_rows_that_are_not_kept_do_not_show_in_any_part(tmp_path: Path) -> None:
    """Men who are not kept become women, and all other rows that are not kept change: the files stay to the last byte."""
    table, rule = people(), cells()
    table = table.set_column(table.schema.get_field_index("city"), "city", pa.array(["somewhere"] * N))
    kept, ranked, sex = set(twin(table, rule, KEY)), by_position(KEY, N), table["sex"].to_pylist()
    limit = max(ranked[j][0] for j in kept if sex[j] == "F")
    moved = [j for j in range(N) if j not in kept and sex[j] == "M" and ranked[j][0] > limit][:5]
    assert len(moved) == 5
    found = []
    for k, given in enumerate((table, otherwise(table, kept, moved))):
        (tmp_path / str(k)).mkdir()
        pq.write_table(given, tmp_path / str(k) / "people.parquet")
        source = open_table(tmp_path / str(k) / "people.parquet")
        found.append(write(source, rule, draw(source, rule, N, None, KEY), tmp_path / str(k)))
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]


def test_no_text_that_the_engine_runs_holds_a_cut() -> None:
    source, rule = open_table(people()), cells()
    drawn = draw(source, rule, N, None, KEY)
    for part in part_tables(source, rule, drawn, None, (), NUMBERS):
        text = ibis.to_sql(part, dialect="duckdb")
        assert "getvariable" in text.lower()
        assert re.findall(r"(?<![0-9a-f_])[0-9]{12,}(?![0-9a-f])", text) == []


def test_a_failure_at_the_second_part_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, rule = open_table(people()), cells()
    drawn = draw(source, rule, N, None, KEY)
    real, calls = source.engine.to_parquet, []

    def fail(table: Any, path: Path, **options: Any) -> None:
        calls.append(path)
        if len(calls) == 2:
            raise OSError("no space left")
        real(table, path, **options)

    monkeypatch.setattr(source.engine, "to_parquet", fail)
    with pytest.raises(UsageError) as caught:
        write(source, rule, drawn, tmp_path)
    assert str(caught.value) == NOT_WRITTEN
    assert len(calls) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_another_number_of_rows_leaves_the_files_that_were_there(tmp_path: Path) -> None:
    source, rule = open_table(people()), cells()
    drawn = draw(source, rule, N, None, KEY)
    (tmp_path / "view.train.parquet").write_bytes(b"the old one")
    with pytest.raises(DataError) as caught:
        write(source, rule, drawn, tmp_path, (265, 64))
    assert str(caught.value) == CHANGED
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("view.train.parquet", b"the old one")]
