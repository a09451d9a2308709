"""Training and test rows from one view, as a user meets them: the session, the command, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.errors import UsageError
from tests.end_to_end.test_view import N, names, people, place, run

REFERENCE: dict[str, Any] = {
    "delta": 1e-3,
    "protect": [{"secret": "columns(sex)"}],
    "reference": {"sex": {"values": ["F", "M"], "shares": [0.32, 0.68]}, "least_density": 0.9, "failure": 1e-6},
}
HALVES = {"train": 0.8, "test": 0.2}


@pytest.mark.parametrize("changes", [{}, REFERENCE, {"row_id": "id"}], ids=["composition", "reference", "row_id"])
def test_training_and_test_rows_are_disjoint_and_the_same_each_time(changes: dict[str, Any], tmp_path: Path) -> None:
    policy = place(tmp_path, **changes)
    with ap.Session(policy=policy) as session:
        whole = session.view().to_pyarrow()
        parts = {name: part.to_pyarrow() for name, part in session.view(split=HALVES).items()}
        plan = session.view(tmp_path / "rows.parquet", split=HALVES)
        entries = session.recorded()
    assert [entry.kind for entry in entries] == ["view"], "drawn once, and parts are no entry of their own"
    assert list(parts) == ["train", "test"]
    assert sum(part.num_rows for part in parts.values()) == whole.num_rows == plan.rows < N
    both = [row for part in parts.values() for row in part.to_pylist()]
    assert sorted(map(str, both)) == sorted(map(str, whole.to_pylist())), "each row of the view is in one part"
    assert abs(parts["train"].num_rows - 0.8 * plan.rows) <= 1
    assert names(tmp_path) == ["people.ledger", "people.parquet", "people.yaml", "rows.test.parquet", "rows.train.parquet"]
    for name, part in parts.items():
        assert pq.read_table(tmp_path / f"rows.{name}.parquet").to_pylist() == part.to_pylist()
    with ap.Session(policy=policy) as session:
        assert session.view(split=HALVES)["test"].to_pyarrow() == parts["test"]


def test_another_split_is_of_the_same_rows(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path)) as session:
        first = session.view(split=HALVES)["test"].to_pyarrow()
        three = session.view(split={"a": 0.5, "b": 0.3, "c": 0.2})
        assert three["c"].to_pyarrow().num_rows == first.num_rows
        found = [row for part in three.values() for row in part.to_pyarrow().to_pylist()]
        assert sorted(map(str, found)) == sorted(map(str, session.view().to_pyarrow().to_pylist()))
        assert len(session.recorded()) == 1


def test_the_command_writes_both_and_overwrites_neither(tmp_path: Path) -> None:
    policy, out = place(tmp_path), tmp_path / "rows.parquet"
    code, told, _ = run("view", policy, "--out", out, "--split", "train=80%, test=20%")
    assert code == 0
    assert "wrote 425 of 500 rows, no row twice: 340 to rows.train.parquet, 85 to rows.test.parquet." in " ".join(told.split())
    (tmp_path / "rows.train.parquet").unlink()
    code, _, complaint = run("view", policy, "--out", out, "--split", "train=80%,test=20%")
    assert code != 0
    assert "rows.test.parquet exists already" in complaint
    assert not (tmp_path / "rows.train.parquet").exists(), "nothing is written where one of them exists"
    code, told, _ = run("view", policy, "--out", out, "--split", "train=0.8,test=0.2", "--force", "--json")
    document = json.loads(told)
    assert (code, document["rows"]) == (0, 425)
    assert {name: part["rows"] for name, part in document["parts"].items()} == {"train": 340, "test": 85}
    assert (tmp_path / "rows.train.parquet").exists()


@pytest.mark.parametrize(
    ("split", "problem"),
    [
        ("train=80%", "two parts"),
        ("train", "as in train=80%,test=20%. Got '' for a share"),
        ("train=x,test=20%", "Got 'x' for a share"),
        ("train=1/0,test=20%", "Got '1/0' for a share"),
        ("train=50%,train=50%", "must name each part once. Got 'train' twice"),
        ("train=80%,test=30%", "add up to 1. Got 1.1"),
        ("../train=80%,test=20%", "letters, digits"),
    ],
)
def test_a_split_that_is_none_draws_nothing(split: str, problem: str, tmp_path: Path) -> None:
    code, _, complaint = run("view", place(tmp_path), "--out", tmp_path / "rows.parquet", "--split", split)
    assert code == 2
    assert problem in " ".join(complaint.split())
    assert names(tmp_path) == ["people.parquet", "people.yaml"]


def test_a_part_must_not_be_the_table_itself(tmp_path: Path) -> None:
    policy = place(tmp_path, data="people.train.parquet")
    pq.write_table(people(), tmp_path / "people.train.parquet")
    with ap.Session(policy=policy) as session, pytest.raises(UsageError, match="is the table itself"):
        session.view(tmp_path / "people.parquet", split=HALVES, force=True)
