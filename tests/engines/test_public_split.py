"""Ends that a quarter of the public records chooses: the others are counted, and had no say in it."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from attrpriv.engines import public_split
from attrpriv.engines.public_sorted import sorted_cells_of_file
from attrpriv.engines.tables import open_table
from attrpriv.errors import DataError
from attrpriv.problem.intervals import ChoosingRecords

N = 4000
ENDS = (0.0, 10.0, 20.0, 40.0)


def records(seed: int = 4) -> pa.Table:
    g = np.random.default_rng(seed)
    income = np.round(g.uniform(-2, 42, N), 2)
    return pa.table(
        {
            "income": pa.array(income, mask=np.arange(N) % 100 == 0),
            "sex": pa.array([None if k == 0 else "FM"[k % 2] for k in g.integers(0, 20, N)]),
            "x": g.normal(size=N),
        }
    )


class Seen:
    """A finder that remembers what it was shown."""

    def __init__(self, ends: tuple[float, ...] = ENDS) -> None:
        self.ends, self.shown = ends, list[ChoosingRecords]()

    def __call__(self, records: ChoosingRecords) -> tuple[float, ...]:
        self.shown.append(records)
        return self.ends


def parted(path: Path, finder: Seen) -> public_split.Split:
    return public_split.split(open_table(path), ("sex", "income"), "income", finder)


def cell(number: float | None) -> int | None:
    if number is None:
        return None
    return -1 if not 0 <= number <= 40 else 0 if number < 10 else 1 if number < 20 else 2


def test_every_record_chooses_or_is_counted(tmp_path: Path) -> None:
    table, finder = records(), Seen()
    pq.write_table(table, tmp_path / "census.parquet")
    found = parted(tmp_path / "census.parquet", finder)
    (chosen,) = finder.shown
    assert chosen.numbers.size == found.chosen_by
    assert chosen.counted == sum(count for *_, count in found.counted) == N - chosen.numbers.size
    assert abs(chosen.numbers.size - N / 4) < 150
    values = table.select(["income", "sex"]).to_pylist()
    everything = Counter((cell(row["income"]), (row["sex"],)) for row in values)
    counted = Counter({(place, others): count for place, others, count in found.counted})
    assert counted <= everything
    chose = Counter(
        {place: sum(number for (p, _), number in (everything - counted).items() if p == place) for place in (None, -1, 0, 1, 2)}
    )
    told = [None if np.isnan(x) else float(x) for x in chosen.numbers]
    assert chose == Counter(map(cell, told))


def test_order_and_format_of_the_file_change_nothing(tmp_path: Path) -> None:
    table = records()
    shuffled = table.take(np.random.default_rng(1).permutation(N))
    pq.write_table(table, tmp_path / "one.parquet")
    pq.write_table(shuffled, tmp_path / "two.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "three.csv")
    first, second, third = (parted(tmp_path / name, Seen()) for name in ("one.parquet", "two.parquet", "three.csv"))
    assert (first.edges, first.chosen_by) == (second.edges, second.chosen_by) == (third.edges, third.chosen_by)
    assert sorted(first.counted, key=repr) == sorted(second.counted, key=repr) == sorted(third.counted, key=repr)


def test_who_chooses_is_decided_by_the_key_alone() -> None:
    """The bytes are those of SHAKE-256: of each position about 1/4 over many keys, and no two positions go together.

    By 6,000 keys of ten positions: a rate is off by 5.5 standard errors with a chance below 4e-8 each, of 55 rates.
    """
    keys = [hashlib.sha256(str(k).encode()).digest() for k in range(6000)]
    drawn = np.array([public_split.choosing(key, 10) for key in keys])
    assert np.all(drawn[0] == (np.frombuffer(hashlib.shake_256(keys[0]).digest(10), np.uint8) < 64))
    rates = drawn.mean(axis=0)
    assert np.all(np.abs(rates - 1 / 4) < 5.5 * np.sqrt(3 / 16 / 6000))
    both = drawn.astype(float).T @ drawn / 6000
    pairs = both[np.triu_indices(10, 1)]
    assert np.all(np.abs(pairs - 1 / 16) < 5.5 * np.sqrt(15 / 256 / 6000))


def test_one_changed_record_changes_who_chooses(tmp_path: Path) -> None:
    table = records()
    changed = table.set_column(0, "income", pa.array([7.77, *table["income"].to_pylist()[1:]]))
    pq.write_table(table, tmp_path / "one.parquet")
    pq.write_table(changed, tmp_path / "two.parquet")
    one, two = Seen(), Seen()
    parted(tmp_path / "one.parquet", one)
    parted(tmp_path / "two.parquet", two)
    same = len(set(one.shown[0].numbers.tolist()) & set(two.shown[0].numbers.tolist()))
    assert same < 0.75 * one.shown[0].numbers.size  # 63% of the values of one part are not in the other, ties apart


def test_the_cells_are_those_of_the_counted_records(tmp_path: Path) -> None:
    pq.write_table(records(), tmp_path / "census.parquet")
    finder = Seen()
    found = sorted_cells_of_file(tmp_path / "census.parquet", ("sex", "income"), "income", finder, None, ("x",))
    assert found.intervals is not None
    assert found.intervals.edges == ENDS
    assert found.records == N - (found.intervals.chosen_by or 0) == finder.shown[0].counted
    declared = sorted_cells_of_file(tmp_path / "census.parquet", ("sex", "income"), "income", ENDS, None, ("x",))
    whole = {one.values: one.count or 0 for one in declared.cells}
    assert declared.intervals is not None
    assert declared.intervals.chosen_by is None
    assert all(0 < (one.count or 0) < whole[one.values] for one in found.cells)
    assert len(found.cells) == len(declared.cells)
    assert found.digest != declared.digest


@pytest.mark.parametrize("ends", [(), (1.0,), (0.0, 0.0), (1.0, 0.0), (0.0, float("nan")), (0.0, float("inf"))])
def test_ends_that_are_none_are_refused(ends: tuple[float, ...], tmp_path: Path) -> None:
    pq.write_table(records(), tmp_path / "census.parquet")
    with pytest.raises(DataError, match="no intervals were found"):
        parted(tmp_path / "census.parquet", Seen(ends))


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_records_to_choose(rows: int, tmp_path: Path) -> None:
    pq.write_table(records().slice(0, rows), tmp_path / "census.parquet")
    with pytest.raises(DataError, match="hundreds of public records"):
        parted(tmp_path / "census.parquet", Seen())


def test_records_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(records(), tmp_path / "census.parquet")

    def broken(*_: Any) -> Any:
        raise RuntimeError("secret")

    monkeypatch.setattr(public_split, "listed", broken)
    with pytest.raises(DataError, match="could not read the public records") as caught:
        parted(tmp_path / "census.parquet", Seen())
    assert caught.value.__context__ is None
