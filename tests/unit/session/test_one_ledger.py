"""A table has one ledger, whatever policy is opened with it and under which of its names."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.errors import RefusedError, UsageError
from attrpriv.problem.places import declared_name, resolved, table_name
from tests.unit.session.sequences import made, people


def policies(folder: Path, *names: str, **changes: object) -> list[Path]:
    """Files that do not say which table they are for; JSON is YAML."""
    found = []
    for k, name in enumerate(names):
        told = {**made("release", epsilon=1.0 - k / 10).to_json(), **changes}
        (folder / name).write_text(json.dumps({key: value for key, value in told.items() if value is not None}))
        found.append(folder / name)
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pq.write_table(people(), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def test_two_policies_of_a_table_share_its_budget(table: Path) -> None:
    one, two = policies(table.parent, "one.yaml", "two.yaml")
    with ap.Session(table, one) as session:
        released = session.release("avg(weight)", "gaussian", spend=0.5)
    with ap.Session(table, two) as session:
        assert session.release("avg(weight)").value == released.value
        session.release("avg(height)", "gaussian", spend=0.5)
        assert session.left < 0.5
    assert [path.name for path in table.parent.glob("*.ledger")] == ["people.ledger"]


def test_a_table_that_is_given_counts_and_not_the_one_that_the_policy_names(table: Path) -> None:
    (path,) = policies(table.parent, "one.yaml", data="others.parquet")
    with ap.Session(table, path) as session:
        assert "people.ledger" in session.ledger_name


def test_a_link_is_the_table_that_it_leads_to(table: Path) -> None:
    folder = table.parent / "links"
    folder.mkdir()
    link, linked = folder / "them.parquet", table.parent / "linked"
    link.symlink_to(table)
    linked.symlink_to(table.parent, target_is_directory=True)
    with ap.Session(table, made("release")) as session:
        released = session.release("avg(weight)", "gaussian", spend=0.5)
    for other in (link, linked / "people.parquet"):
        with ap.Session(other, made("release")) as session:
            assert session.release("avg(weight)").value == released.value
            assert session.left == pytest.approx(0.5, abs=1e-3)
        assert declared_name(other, table.parent / "x.ledger") == "people.parquet"
        assert declared_name(other, linked / "x.ledger") == "people.parquet"
        assert table_name(resolved(other)) == "people"
    assert [path.name for path in folder.iterdir()] == ["them.parquet"]
    (path,) = policies(table.parent, "one.yaml", data="links/them.parquet")
    assert ap.Policy.load(path).ledger_path() == table.parent / "people.ledger"


def test_a_table_in_memory_has_no_name(table: Path) -> None:
    (path,) = policies(table.parent, "one.yaml")
    with ap.Session(people(), path) as session, pytest.raises(UsageError, match=r"^ledger: must be a path when the table"):
        session.release("avg(weight)", "gaussian", spend=0.5)
    assert not list(table.parent.glob("*.ledger"))


@pytest.mark.parametrize(
    "trigger",
    [
        "BEFORE INSERT ON entries BEGIN SELECT raise(ignore); END",
        "AFTER INSERT ON entries BEGIN DELETE FROM entries WHERE number = NEW.number; END",
    ],
)
def test_what_the_ledger_would_not_keep_is_not_shown(table: Path, trigger: str) -> None:
    with ap.Session(table, made("release")) as session:
        session.release("avg(weight)", "gaussian", spend=0.2)
        with closing(sqlite3.connect(table.parent / "people.ledger")) as connection, connection:
            connection.execute(f"CREATE TRIGGER dropped {trigger}")
        for _ in range(2):
            with pytest.raises(RefusedError, match="must hold the tables that attrpriv made, and nothing else"):
                session.release("avg(height)", "gaussian", spend=0.2)
