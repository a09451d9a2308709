"""Public records of a sorted number: how many are in each interval, and what they refuse. They never approve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.assumptions.channel import Channel
from attrpriv.engines.public_sorted import sorted_cells_of_file
from attrpriv.errors import DataError
from attrpriv.problem.intervals import Intervals, PublicIntervals
from attrpriv.problem.reference import PublicCells

N = 4000
ENDS = Intervals(breaks=(0.0, 10.0, 20.0, 40.0))
CHANNEL = Channel(information={"explained": 0.05})


def records(**more: Any) -> pa.Table:
    """A number spread evenly, some missing, some outside; a category; a column that hardly goes along with the number."""
    g = np.random.default_rng(4)
    income = np.round(g.uniform(-2, 42, N), 5)
    table = {
        "income": pa.array(income, mask=np.arange(N) % 100 == 0),
        "sex": np.where(g.random(N) < 0.5, "F", "M"),
        "x": g.normal(size=N) + 0.01 * income,
        "city": pa.array([None if k % 9 == 0 else f"c{k % 4}" for k in g.integers(0, 100, N)]),
    }
    return pa.table(table | more)


def read(
    table: pa.Table, folder: Path, shown: tuple[str, ...] = ("x", "city"), channel: Channel | None = CHANNEL
) -> PublicCells:
    pq.write_table(table, folder / "census.parquet")
    return sorted_cells_of_file(folder / "census.parquet", ("sex", "income"), "income", ENDS.edges, channel, shown)


def told(cells: PublicCells) -> PublicIntervals:
    assert cells.intervals is not None
    return cells.intervals


def own(table: pa.Table) -> np.ndarray[Any, Any]:
    return np.array([np.nan if value is None else value for value in table["income"].to_pylist()])


def test_counts_of_intervals_and_values(tmp_path: Path) -> None:
    table = records()
    found = read(table, tmp_path)
    income, sex = own(table), np.array(table["sex"].to_pylist())
    assert found.records == N
    assert found.kinds == {"sex": "text", "income": "float"}
    assert [cell.values for cell in found.cells][:4] == [("F", None), ("F", 0.0), ("F", 10.0), ("F", 20.0)]
    for cell in found.cells:
        low = cell.values[1]
        high = None if low is None else ENDS.edges[ENDS.edges.index(low) + 1]
        inside = np.isnan(income) if low is None else (income >= low) & (income < high)
        assert cell.count == int(np.sum(inside & (sex == cell.values[0])))


def test_what_the_records_say(tmp_path: Path) -> None:
    table = records()
    said = told(read(table, tmp_path))
    income = own(table)
    inside = income[(income >= 0) & (income <= 40)]
    assert said.variance == pytest.approx(np.var(inside))
    assert said.repeated < 0.2
    assert (said.functions, said.rough, said.uneven) == ((), (), None)
    assert said.compared == ("x", "city")


def test_columns_that_the_records_lack_are_not_compared(tmp_path: Path) -> None:
    assert told(read(records(), tmp_path, ("x", "zip"))).compared == ("x",)


def test_functions_of_the_number_are_named(tmp_path: Path) -> None:
    income = np.nan_to_num(own(records()))
    table = records(tax=0.3 * income, band=np.where(income < 20, "low", "high"))
    assert set(told(read(table, tmp_path, ("x", "tax", "band"))).functions) == {"tax", "band"}
    assert told(read(table, tmp_path, ("x",))).functions == ()


def test_a_step_within_an_interval_is_named(tmp_path: Path) -> None:
    income = np.nan_to_num(own(records()))
    rough = told(read(records(x=np.random.default_rng(1).normal(size=N) + 2.0 * (income >= 30)), tmp_path, ("x",))).rough
    assert [round(place.place) for place in rough] == [30]
    assert rough[0].separation > 1 > rough[0].allowed
    assert told(read(records(x=income), tmp_path, ("x",), None)).rough == ()


def test_records_that_are_not_spread_evenly_are_named(tmp_path: Path) -> None:
    g = np.random.default_rng(2)
    income = np.concatenate([g.uniform(0, 20, N // 2), 20 + 20 * g.random(N - N // 2) ** 3])
    uneven = told(read(records(income=income), tmp_path)).uneven
    assert uneven is not None
    assert uneven.place == 20.0
    assert 0.25 < uneven.shift < 0.385  # the distance of u and u^(1/3) is .3849, and it is told from below


def test_many_repeats_are_told(tmp_path: Path) -> None:
    assert told(read(records(income=np.arange(N) % 40 * 1.0), tmp_path)).repeated == 1.0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"income": ["a"] * N}, "must be a number"),
        ({"income": np.full(N, 99.0)}, "some public records must be in an interval"),
    ],
)
def test_records_that_say_nothing(more: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read(records(**more), tmp_path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="public records that can be read"):
        sorted_cells_of_file(tmp_path / "none.parquet", ("income",), "income", ENDS.edges, None, ())
    pq.write_table(records(), tmp_path / "census.parquet")
    with pytest.raises(DataError, match="hidden columns must be in"):
        sorted_cells_of_file(tmp_path / "census.parquet", ("age",), "age", ENDS.edges, None, ())
