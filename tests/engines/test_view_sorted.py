"""Rows that show public values in place of one number: which ones, in which order, and nothing else of the number."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.engines.tables import Source, open_table
from attrpriv.engines.view import draw as module
from attrpriv.engines.view.draw import Cells, Drawn, TooFewRowsError, draw, kept_rows, view_table
from attrpriv.engines.view.file import write_view
from attrpriv.engines.view.parts import part_tables
from attrpriv.engines.view.sorted_cells import SortedColumn, _displacement, moved_too_far
from attrpriv.engines.view.sorted_rows import TOO_FAR
from attrpriv.errors import DataError

N = 600
KEY = "0123456789abcdef" * 4
EDGES = (0.0, 10.0, 20.0, 50.0)
VALUES: tuple[tuple[object, ...], ...] = tuple((sex, low) for sex in ("F", "M") for low in (None, 0.0, 10.0, 20.0))
KEEP = (2, 20, 20, 20) * 2


def people(seed: int = 1, kind: Any = None) -> pa.Table:
    """A number with some missing and some outside, a category, and a column that goes along with both."""
    g = np.random.default_rng(seed)
    income = np.round(g.uniform(-1, 51, N), 4)
    missing = g.random(N) < 0.1
    return pa.table(
        {
            "id": pa.array(range(N)),
            "income": pa.array(income, mask=missing).cast(kind or pa.float64(), safe=False),
            "sex": np.where(g.random(N) < 0.5, "F", "M"),
            "z": g.normal(size=N),
        }
    )


def cells(most: float | None = None, keep: tuple[int, ...] = KEEP, **more: Any) -> Cells:
    return Cells(
        conditions=(),
        keep=(*keep, 0),
        low=(*keep, 0),
        high=(N,) * (len(keep) + 1),
        columns=("sex", "income"),
        values=VALUES,
        in_order=SortedColumn("income", EDGES, most, **more),
    )


def shown(source: Source, rule: Cells, drawn: Drawn, row_id: str | None = None, left_out: tuple[str, ...] = ()) -> pa.Table:
    return source.engine.to_pyarrow(view_table(source, rule, drawn, row_id, left_out))


def interval(value: float | None) -> float | None:
    if value is None or np.isnan(value):
        return None
    inside = [low for low, high in itertools.pairwise(EDGES) if low <= value < high or value == high == EDGES[-1]]
    return inside[0] if inside else -1.0


def chosen(table: pa.Table, view: pa.Table) -> dict[int, tuple[float | None, float | None]]:
    """By id: the own number, and the one that the view shows."""
    own = dict(zip(table["id"].to_pylist(), table["income"].to_pylist(), strict=True))
    return {k: (own[k], t) for k, t in zip(view["id"].to_pylist(), view["income"].to_pylist(), strict=True)}


@pytest.mark.parametrize("row_id", [None, "name"])
def test_each_cell_shows_its_public_values_in_the_order_of_its_own(row_id: str | None) -> None:
    table = people()
    if row_id is not None:
        table = table.append_column(row_id, pa.array([f"n{k}" for k in range(N)]))
    source, rule = open_table(table), cells()
    view = shown(source, rule, draw(source, rule, N, row_id, KEY), row_id)
    assert view.num_rows == sum(KEEP)
    pairs, sexes = chosen(table, view), dict(zip(view["id"].to_pylist(), view["sex"].to_pylist(), strict=True))
    for (sex, low), keep in zip(VALUES, KEEP, strict=True):
        rows = sorted(pair for k, pair in pairs.items() if sexes[k] == sex and interval(pair[0]) == low)
        if low is None:
            assert rows == [(None, None)] * keep
            continue
        assert isinstance(low, float)
        width = EDGES[EDGES.index(low) + 1] - low
        assert [t for _, t in rows] == pytest.approx([low + width * (k - 0.5) / keep for k in range(1, keep + 1)])


def within(table: pa.Table) -> pa.Table:
    """Other numbers in the same intervals and in the same order: no row but these has changed."""

    def moved(value: float | None) -> float | None:
        low = interval(value)
        if value is None or low is None or low == -1.0:
            return value
        width = EDGES[EDGES.index(low) + 1] - low
        return low + width * ((value - low) / width) ** 2 * 0.999

    place = table.column_names.index("income")
    return table.set_column(place, "income", pa.array([moved(value) for value in table["income"].to_pylist()], pa.float64()))


@pytest.mark.parametrize("show", ["values", "nothing"])
@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_files_are_the_same_whatever_the_numbers_are_within_intervals(kind: str, show: str, tmp_path: Path) -> None:
    tables = [people(), within(people())]
    assert not tables[0].equals(tables[1])
    files = []
    for k, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{k}.parquet")
        source, rule = open_table(table if kind == "arrow" else str(tmp_path / f"{k}.parquet")), cells(most=1e9)
        view = view_table(source, rule, draw(source, rule, N, None, KEY), None, ("income",) if show == "nothing" else ())
        write_view(source, view, tmp_path / f"view{k}.parquet", sum(KEEP))
        files.append((tmp_path / f"view{k}.parquet").read_bytes())
    assert files[0] == files[1]


def test_the_order_of_the_file_does_not_tell_which_numbers_are_equal() -> None:
    """With all numbers of a cell equal, which public value a row gets has nothing to do with its place in the file."""
    g = np.random.default_rng(3)
    table = pa.table({"income": np.full(4000, 5.0), "z": g.normal(size=4000)})
    rule = Cells((), (1000, 0), (1000, 0), (4000, 4000), ("income",), ((0.0,),), SortedColumn("income", (0.0, 10.0)))
    source = open_table(table)
    drawn = draw(source, rule, 4000, None, KEY)
    whole = shown(source, rule, drawn)
    halves = part_tables(source, rule, drawn, None, (), [[500], [500]])
    for view in (whole, *(source.engine.to_pyarrow(half) for half in halves)):
        ranks = np.argsort(np.argsort(view["income"].to_numpy()))
        correlation = np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]
        assert abs(correlation) < 5.5 / np.sqrt(len(ranks))  # 5.5 standard deviations: four times in 1e8 by chance
    assert abs(np.mean(source.engine.to_pyarrow(halves[0])["income"].to_numpy()) - 5) < 5.5 * 2.9 / np.sqrt(500)


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.float32(), pa.decimal128(9, 2)])
def test_public_values_are_of_the_column_s_own_type(kind: Any) -> None:
    source, rule = open_table(people(kind=kind)), cells()
    view = shown(source, rule, draw(source, rule, N, None, KEY))
    assert view.schema.field("income").type == kind
    values = [value for value in view["income"].to_pylist() if value is not None]
    assert len(values) == 120
    assert all(0 <= value <= 50 for value in values)


def test_a_type_that_cannot_hold_the_ends_is_refused() -> None:
    table = people(kind=pa.int8())
    wide = SortedColumn("income", (0.0, 1000.0))
    rule = Cells((), (5, 0), (5, 0), (N, N), ("income",), ((0.0,),), wide)
    with pytest.raises(DataError, match="must hold the ends of its intervals"):
        draw(open_table(table), rule, N, None, KEY)


def test_answers_read_the_public_values() -> None:
    source, rule = open_table(people()), cells()
    kept = source.engine.to_pyarrow(kept_rows(source, rule, draw(source, rule, N, None, KEY), None))
    values = [value for value in kept["income"].to_pylist() if value is not None]
    assert sorted(set(values))[:2] == pytest.approx([0.25, 0.75])


def own_displacement(table: pa.Table, view: pa.Table) -> float:
    pairs = chosen(table, view).values()
    return sum((own - t) ** 2 for own, t in pairs if own is not None and t is not None)


def test_rows_that_moved_too_far_are_a_recorded_failure() -> None:
    table = people()
    source, rule = open_table(table), cells()
    view = shown(source, rule, draw(source, rule, N, None, KEY))
    moved = own_displacement(table, view)
    assert draw(source, cells(most=moved * (1 + 1e-9)), N, None, KEY)
    with pytest.raises(TooFewRowsError) as caught:
        draw(source, cells(most=moved * (1 - 1e-9)), N, None, KEY)
    assert str(caught.value) == TOO_FAR
    with pytest.raises(TooFewRowsError) as few:
        draw(source, cells(most=1e9, keep=(2, 20, 20, 400) * 2), N, None, KEY)
    assert str(few.value) == TOO_FAR  # one outcome, whatever the reason


def test_a_failure_of_the_engine_is_none_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bool:
        raise ValueError("a cell")

    monkeypatch.setattr(module, "too_far", broken)
    source = open_table(people())
    with pytest.raises(DataError) as caught:
        draw(source, cells(most=1.0), N, None, KEY)
    assert str(caught.value) == module.ENGINE_FAILED


# How far rows moved.


def test_the_displacement_by_hand() -> None:
    sort = SortedColumn("x", (0.0, 4.0, 10.0), 10.0)
    homes, numbers = np.array([0, 1, 0, 2]), np.array([4.0, 4.0, 0.0, np.nan])
    # 0 and 4 against 1 and 3; 4 against 7; a missing value does not move
    assert _displacement(homes, numbers, [0.0, 4.0, None], [2, 1, 1], sort) == pytest.approx(1 + 1 + 9)
    assert moved_too_far(homes, numbers, [0.0, 4.0, None], [2, 1, 1], sort)
    assert not moved_too_far(homes, numbers, [0.0, 4.0, None], [2, 1, 1], SortedColumn("x", sort.edges, 11.1))
    assert not moved_too_far(homes, numbers, [0.0, 4.0, None], [2, 1, 1], SortedColumn("x", sort.edges, None))
    # never too little, however it rounds
    assert _displacement(homes, numbers, [0.0, 4.0, None], [2, 1, 1], sort) > 11


def test_a_slope_costs_more_for_rows_that_moved_far() -> None:
    homes, numbers = np.array([0, 0]), np.array([0.0, 4.0])
    plain, steep = (
        _displacement(homes, numbers, [0.0], [2], SortedColumn("x", (0.0, 4.0), 1.0, 8.0, slope)) for slope in (None, 0.5)
    )
    assert steep > 2 * plain


def test_other_rows_than_were_kept_are_noticed() -> None:
    with pytest.raises(ValueError, match="another table"):
        _displacement(np.array([0]), np.array([1.0]), [0.0], [2], SortedColumn("x", (0.0, 4.0), 1.0))
