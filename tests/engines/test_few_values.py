"""Rows grouped by columns of few values give what a plain pass gives."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attrpriv.engines import scan as module
from attrpriv.engines import tally as few_values
from attrpriv.engines.grid import Grid
from attrpriv.engines.scan import ColumnRead, Scan, scan
from attrpriv.engines.tables import Source, open_table
from attrpriv.engines.tally import TallyRead
from attrpriv.errors import DataError
from attrpriv.queries.conditions import Condition, In, Written, parse_condition

N = 500
GRID = Grid.around(10.0, 3.0)


def people(seed: int = 1, **changed: Any) -> pa.Table:
    generator = np.random.default_rng(seed)
    columns = {
        "sex": np.where(generator.random(N) < 0.3, "F", "M"),
        "ward": pa.array([None if k == 3 else int(k) for k in generator.integers(0, 4, N)], pa.int64()),
        "rows": generator.random(N) < 0.5,
        "x": pa.array([None if k % 50 == 0 else float(k % 7) + 0.1 for k in range(N)]),
        "y": generator.normal(10, 3, N),
        "k": generator.integers(-(2**62), 2**62, N),
    }
    return pa.table(columns | changed)


def conditions(*texts: str) -> tuple[Condition, ...]:
    return tuple(map(parse_condition, texts))


SEX = (Written("sex", "F"), Written("sex", "M"))
WARDS = conditions("ward = 0", "ward = 1", "ward = 2", "ward = 3")
READS = (
    ColumnRead("y", grid=GRID),
    ColumnRead("y", grid=GRID, where=WARDS[0]),
    ColumnRead("y", grid=GRID, where=parse_condition("ward in (1, 2) and rows = true")),
    ColumnRead("x", fill=2.5, clip=(1.0, 5.0), where=WARDS[1]),
    ColumnRead("k"),
    ColumnRead("k", where=parse_condition("not ward = 0")),
)
TALLY = TallyRead(WARDS, True, SEX, fill={"ward": 3.0})


def by_groups(source: Source, *given: Any) -> Scan:
    """The pass, which must have been one query over groups."""
    asked: list[Any] = []
    run = Source.run_many

    def counted(self: Source, aggregate: Any) -> Any:
        asked.append(run(self, aggregate))
        return asked[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Source, "run_many", counted)
        found = scan(source, *given)
    (groups,) = asked
    assert all(isinstance(value, bool) for row in groups for name, value in row.items() if not name.startswith("attrpriv "))
    assert "attrpriv rows" in groups[0]
    return found


def plainly(source: Source, *given: Any) -> Scan:
    """The twin."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "grouped_by", lambda *arguments: ())
        return scan(source, *given)


@pytest.mark.parametrize("seed", range(5))
def test_groups_give_what_all_rows_give(seed: int) -> None:
    source = open_table(people(seed))
    for reads, tally in ((READS, TALLY), ((), TALLY), (READS[:1], TallyRead((), False, SEX))):
        assert by_groups(source, reads, tally) == plainly(source, reads, tally)
    assert by_groups(source, READS[:2], None, conditions("ward in (0, 1, 2, 3)")) == plainly(source, READS[:2])


def test_a_group_that_is_left_out_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: one group too few."""
    source = open_table(people())
    found, added = plainly(source, READS, TALLY), few_values._added
    monkeypatch.setattr(few_values, "_added", lambda groups, name, k: added(groups[1:], name, k))
    with pytest.raises(DataError):
        by_groups(source, READS, TALLY)
    monkeypatch.setattr(few_values, "_added", lambda groups, name, k: 7 if name == "kept" else added(groups, name, k))
    assert by_groups(source, READS, TALLY).sums != found.sums


def test_floats_without_a_grid_are_added_as_well() -> None:
    source, reads = open_table(people()), [ColumnRead("y")]
    grouped, plain = (one(source, reads, TALLY).sums[0] for one in (by_groups, plainly))
    assert float(grouped) == pytest.approx(float(plain), rel=1e-14)


def test_a_table_without_rows() -> None:
    source = open_table(people().slice(0, 0))
    assert scan(source, READS, TALLY) == plainly(source, READS, TALLY)
    assert scan(source, READS, TALLY).sums == (Fraction(0),) * len(READS)


@pytest.mark.parametrize(
    ("changed", "reads"),
    [
        ({"ward": [7] * N}, ()),
        ({"sex": [None] * N}, ()),
        ({"y": [float("inf")] * N}, (ColumnRead("y"),)),
        ({"y": [float("nan")] * N}, (ColumnRead("y"),)),
        ({"x": [None] * N}, (ColumnRead("x"),)),
    ],
)
def test_failures_have_the_same_texts(changed: dict[str, Any], reads: tuple[ColumnRead, ...]) -> None:
    texts = []
    for one in (scan, plainly):
        with pytest.raises(DataError) as caught:
            one(open_table(people(**changed)), reads, TALLY)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_a_table_with_too_many_values_is_read_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row has another ward: the groups are given up, and what is wrong is told as ever."""
    monkeypatch.setattr(few_values, "MOST", 100)
    source = open_table(people(ward=range(N)))
    unlisted = replace(TALLY, complete=False)
    assert scan(source, READS, unlisted, conditions("ward in (0, 1, 2)")) == plainly(source, READS, unlisted)


@pytest.mark.parametrize(
    ("asked", "tally", "full", "expected"),
    [
        ((), TALLY, (), ("ward", "sex")),
        (("rows",), None, (), ("rows",)),
        (("ward",), None, (), ()),  # any value may occur
        (("ward",), None, conditions("ward in (0, 1)"), ("ward",)),
        (("ward",), None, conditions("ward = 0 or ward = 1"), ("ward",)),
        (("ward",), None, conditions("ward >= 0"), ()),
        (("ward",), None, conditions("ward = 0 or sex = 'F'"), ()),
        (("y",), None, conditions("y = 0"), ()),  # floats
        ((), replace(TALLY, clip={"ward": (0.0, 3.0)}), (), ()),  # whatever it was before it was clipped
        ((), replace(TALLY, complete=False), (), ()),
        ((), replace(TALLY, categories=(SEX[0], None)), (), ()),  # all others
        (("ward",), None, (In("ward", tuple(range(5000))),), ()),
        ((), None, (), ()),
    ],
)
def test_what_rows_are_grouped_by(asked: Any, tally: Any, full: Any, expected: tuple[str, ...]) -> None:
    assert few_values.grouped_by(open_table(people()), asked, tally, full) == expected


def test_names_of_ours_are_not_grouped_by() -> None:
    source = open_table(people().rename_columns(["Attrpriv rows", "ward", "rows", "x", "y", "k"]))
    tally = TallyRead((), False, (Written("Attrpriv rows", "F"), Written("Attrpriv rows", "M")))
    assert few_values.grouped_by(source, (), tally, ()) == ()
    assert scan(source, (), tally) == plainly(source, (), tally)
