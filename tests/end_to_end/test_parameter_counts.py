"""A policy with a BIF file that hides a parameter in a count of a column whose law is known: plan, release, bad entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.end_to_end.material import Said, contents, write_policy, write_table

pytest.importorskip("pyagrum")

BIF = """network "school" {}
variable income { type discrete[2] {low, high}; }
variable tall { type discrete[2] {few, many}; }
probability (income) { default 0.5 0.5; }
probability (tall | income) { (low) 0.7 0.3; (high) 0.3 0.7; }
"""
POLICY: dict[str, Any] = {
    "attrpriv": 1,
    "data": "students.parquet",
    "epsilon": 0.5,
    "protect": [{"parameter": "income"}],
    "assume": {
        "kind": "parameter_network",
        "file": "students.bif",
        "values": {"tall": {"few": 0.3, "many": 0.5}},
        "attributes": {"tall": {"family": "bernoulli"}},
        "tolerance": 0,
    },
    "release": ["count(*) filter (where tall = 1)"],
}


def students(folder: Path, entries: list[Any] | None = None, kind: Any = None, **changes: Any) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "students.bif").write_text(BIF, encoding="utf-8")
    rows = [1, 0, 0, 1] * 5 if entries is None else entries
    write_table(folder, pa.table({"tall": pa.array(rows, kind or pa.int64())}), "students.parquet")
    return str(write_policy(folder, POLICY | changes, "students.yaml"))


def test_plan_and_release(tmp_path: Path) -> None:
    path = students(tmp_path)
    entries = {entry["mechanism"]: entry for entry in Said("plan", path, "--json").json}
    assert [name for name, entry in entries.items() if entry.get("chosen")] == ["optimal"]
    assert entries["laplace"]["noise"]["scale"] == pytest.approx(2.879, abs=1e-3)
    released = Said("release", path, "--json").json
    answer = released["answers"][0]
    assert isinstance(answer["value"], int)
    assert 0 <= answer["value"] <= 20
    assert released["plan"][0]["certificate"]["evidence"]["kind"] == "parameter_kernel"
    assert Said("release", path, "--json").json["answers"] == [answer]  # told again, not drawn again


@pytest.mark.parametrize("name", ["laplace", "wasserstein"])
def test_noise_by_name_on_booleans(tmp_path: Path, name: str) -> None:
    path = students(tmp_path, [True, False] * 10, pa.bool_(), release=["count(*) filter (where tall = true)"])
    released = Said("release", path, "--mechanism", name, "--json").json
    assert abs(released["answers"][0]["value"] - 10) < 100


def test_an_average(tmp_path: Path) -> None:
    said = Said("release", students(tmp_path, release=["avg(tall)"]), "--json").json
    assert (said["answers"][0]["value"] * 20) == pytest.approx(round(said["answers"][0]["value"] * 20))


def test_nothing_but_the_value_depends_on_the_table(tmp_path: Path) -> None:
    plans = []
    for k, entries in enumerate(([0] * 20, [1] * 20)):
        plans.append(Said("release", students(tmp_path / str(k), entries), "--json").json["plan"])
    assert plans[0] == plans[1]
    assert sorted(contents(tmp_path / "0")) == sorted(contents(tmp_path / "1"))


@pytest.mark.parametrize("entries", [[2] + [0] * 19, [None] + [0] * 19])
def test_entries_that_the_law_does_not_know(tmp_path: Path, entries: list[Any]) -> None:
    """Announced, with nothing of the table in the text, and nothing is recorded."""
    path = students(tmp_path, entries)
    before = contents(tmp_path)
    said = Said("release", path)
    assert said.code == 2
    assert contents(tmp_path) == before


def test_missing_entries_may_be_replaced(tmp_path: Path) -> None:
    path = students(tmp_path, [None] + [0] * 19, missing={"tall": 0})
    assert Said("release", path, "--json").code == 0
