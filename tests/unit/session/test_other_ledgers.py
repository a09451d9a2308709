"""Another ledger of the same table is pointed out; one file is one table, whatever it is called."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.accounting.ledger import Belonging, Ledger, named_by
from attrpriv.errors import RefusedError
from attrpriv.problem.places import default_ledger, files_of, identities, is_pattern, resolved
from tests.end_to_end.material import Said, school
from tests.unit.accounting.places import place_of
from tests.unit.session.sequences import made, people

BESIDE = "another ledger: "


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pq.write_table(people(), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def release(table: Any, ledger: object = None, query: str = "avg(weight)") -> ap.Release:
    with ap.Session(table, made("release"), ledger=ledger) as session:  # type: ignore[arg-type]
        return session.release(query, "gaussian", spend=0.5)


def warned(table: Any, ledger: object = None) -> list[str]:
    """The ledgers that a plan points out."""
    with ap.Session(table, made("release"), ledger=ledger) as session:  # type: ignore[arg-type]
        plan = session.plan("avg(height)", "gaussian", spend=0.5)
    told = [line.removeprefix(BESIDE).partition(" holds ")[0] for line in plan.warnings if line.startswith(BESIDE)]
    assert not any(line.startswith(BESIDE) for line in plan.remarks)
    return told


# Another ledger.


def test_a_second_ledger_beside_the_first(table: Path) -> None:
    assert warned(table) == []
    release(table)
    assert warned(table) == [], "its own"
    assert warned(table, table.parent / "second.ledger") == ["people.ledger"]
    again = release(table, table.parent / "second.ledger")
    assert [line for line in again.plan.warnings if line.startswith(BESIDE)] == [
        "another ledger: people.ledger holds releases of this table too. What is left here does not count them, and together "
        "they may tell what each one hides. Release from one ledger alone."
    ]
    assert warned(table) == ["second.ledger"], "from either side"


def test_it_is_seen_wherever_notes_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    school(tmp_path)
    assert Said("release", "students.yaml").code == 0
    school(tmp_path, ledger="second.ledger")
    line = "another ledger: students.ledger holds releases of this table too."
    for command in ("plan", "check"):
        assert f"warning {line}" in Said(command, "students.yaml").out
    assert line in " ".join(Said("plan", "students.yaml", "--json").json[0]["notes"])
    assert line in " ".join(Said("check", "students.yaml", "--json").json["notes"])
    told = Said("release", "students.yaml", "--json").json
    assert line in " ".join(told["plan"][0]["notes"])
    shown = Said("release", "students.yaml").out
    assert shown.count(line) == 1, "also where it is told again: it is part of the record"
    assert Said("ledger", "students.yaml", "--recheck").code == 0
    assert Said("ledger", "students.yaml", "--verify").code == 0


def test_of_several_releases_it_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    school(tmp_path)
    assert Said("release", "students.yaml").code == 0
    hidden = [{"secret": "mean(income)", "between": [20_000, 200_000], "within": 1000}]
    school(tmp_path, ledger="second.ledger", protect=hidden, release=["avg(weight)", "sum(weight)"])
    assert Said("release", "students.yaml").out.count(BESIDE) == 1


@pytest.mark.parametrize("own", ["in.db", "postgres"])
def test_whatever_kind_the_own_ledger_is(table: Path, own: str) -> None:
    release(table)
    if own == "postgres":
        place = place_of("postgres", table.parent)
        assert warned(table, place.place) == ["people.ledger"]
    else:
        assert warned(table, table.parent / own) == ["people.ledger"]
        release(table, table.parent / own)
        assert warned(table, table.parent / "other.db") == ["in.db", "people.ledger"]


def test_a_policy_elsewhere_finds_the_ledger_beside_the_table(table: Path) -> None:
    release(table)
    folder = table.parent / "elsewhere"
    folder.mkdir()
    told = {**made("release").to_json(), "data": "../people.parquet"}
    (folder / "one.yaml").write_text(json.dumps({key: value for key, value in told.items() if value is not None}))
    with ap.Session(policy=folder / "one.yaml") as session:
        assert "elsewhere/people.ledger" in session.ledger_name
        plan = session.plan("avg(height)", "gaussian", spend=0.5)
    assert any(line.startswith(f"{BESIDE}../people.ledger holds") for line in plan.warnings)


def test_ledgers_of_other_tables_are_not_pointed_out(table: Path) -> None:
    shutil.copy(table, table.parent / "others.parquet")
    release(table.parent / "others.parquet")
    nested = table.parent / "2024"
    nested.mkdir()
    shutil.copy(table, nested / "people.parquet")
    release(nested / "people.parquet", table.parent / "2024.ledger")
    assert warned(table) == []


def test_a_view_is_found_too(table: Path, tmp_path: Path) -> None:
    policy = ap.Policy(epsilon=1.0, protect=[{"secret": "share(weight > 100)", "between": [0.1, 0.9]}], data=str(table))
    with ap.Session(table, policy, ledger=tmp_path / "first.ledger") as session:
        session.view(tmp_path / "rows.parquet")
    assert named_by(tmp_path / "first.ledger") == "people.parquet"
    assert warned(table, tmp_path / "x.ledger") == ["first.ledger"]
    with ap.Session(table, policy, ledger=tmp_path / "second.ledger") as session:
        assert session.view_plan().notes[-1].startswith(f"{BESIDE}first.ledger holds")


def test_a_view_of_an_earlier_version_is_known_by_its_ledgers_name(table: Path, tmp_path: Path) -> None:
    """It did not say which table it is of."""
    for name in ("people.ledger", "other.ledger"):
        said: dict[str, Any] = {"time": "now", "policy_digest": "ab", "plan": {}, "answers": [], "details": {"certificate": {}}}
        Ledger(tmp_path / name).commit(kind="view", state={"key": "x"}, **said)
        assert named_by(tmp_path / name) == ""
    assert warned(table, tmp_path / "x.ledger") == ["people.ledger"]


BROKEN: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("weight,income\n" * 1000),
    "another database": lambda path: edit(path, "CREATE TABLE entries (number, kind)"),
    "a view without end": lambda path: edit(
        path, "CREATE VIEW entries AS WITH RECURSIVE t(number) AS (SELECT 1 UNION ALL SELECT number FROM t) SELECT * FROM t"
    ),
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a link to nowhere": lambda path: path.symlink_to(path.parent / "nowhere"),
    "a link to itself": lambda path: path.symlink_to(path),
}


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("name", BROKEN)
def test_what_lies_around_disturbs_nobody(name: str, table: Path) -> None:
    BROKEN[name](table.parent / "broken.ledger")
    assert warned(table) == []
    assert release(table).entry.number == 1


def test_a_damaged_ledger_is_not_believed(table: Path) -> None:
    release(table)
    edit(table.parent / "people.ledger", "UPDATE entries SET account = '{}'")
    assert warned(table, table.parent / "x.ledger") == []


def test_another_ledger_is_neither_locked_nor_touched(table: Path) -> None:
    release(table)
    first = table.parent / "people.ledger"
    before = {path.name: path.read_bytes() for path in table.parent.iterdir()}
    with closing(sqlite3.connect(first, isolation_level=None)) as rival:
        rival.execute("BEGIN EXCLUSIVE")
        assert warned(table, table.parent / "x.ledger") == ["people.ledger"]
        rival.execute("ROLLBACK")
    assert {path.name: path.read_bytes() for path in table.parent.iterdir()} == before


# One file by several names.


def test_a_pattern_of_one_file_is_that_file(table: Path) -> None:
    pattern = table.parent / "peo*.parquet"
    released = release(table)
    with ap.Session(pattern, made("release", rows=people().num_rows)) as session:
        assert session.ledger_name.endswith("people.ledger'")
        assert session.release("avg(weight)").value == released.value
        assert session.left < 0.6
    assert release(pattern, query="avg(height)").entry.number == 2
    assert sorted(path.name for path in table.parent.iterdir()) == ["people.ledger", "people.parquet"]


def test_a_ledger_that_an_earlier_version_made_for_the_pattern_goes_on(table: Path) -> None:
    """It is called after the pattern, and calls the table so."""
    ledger, pattern = table.parent / "peo-all.ledger", table.parent / "peo*.parquet"
    old(table, ledger)
    with ap.Session(pattern, made("release")) as session:
        assert session.ledger_name.endswith("peo-all.ledger'")
        assert session.left < 0.6
        session.release("avg(height)", "gaussian", spend=0.5)
        assert [entry.account["table"] for entry in session.recorded()] == ["peo*.parquet"] * 2
        assert session.verify().entries == 2
    assert warned(table) == ["peo-all.ledger"], "by the file's own name there is another ledger, and that is said"
    with ap.Session(table, made("release"), ledger=ledger) as session:
        assert session.release("avg(weight)").recorded


def old(table: Path, ledger: Path) -> None:
    """A release as it was recorded of a pattern of one file."""
    with ap.Session(table, made("release"), ledger=ledger) as session:
        session._belongs = Named(session.policy, table, ledger)
        session.release("avg(weight)", "gaussian", spend=0.5)


class Named(Belonging):
    def named(self, recorded: str | None = None) -> str | None:
        return "peo*.parquet"


def test_a_pattern_that_grows_is_another_table_and_that_is_said(table: Path) -> None:
    pattern = table.parent / "peo*.parquet"
    release(pattern)
    shutil.copy(table, table.parent / "people-2.parquet")
    assert default_ledger(pattern).name == "peo-all.ledger"
    assert warned(pattern) == ["people.ledger"], "one of its files has a ledger"
    with pytest.raises(RefusedError, match="belongs to one table"):
        release(pattern, table.parent / "people.ledger")


def test_a_hard_link_is_the_same_file(table: Path) -> None:
    copy = table.parent / "copy.parquet"
    os.link(table, copy)
    released = release(table)
    assert warned(copy) == ["people.ledger"], "its own would be copy.ledger"
    again = release(copy, table.parent / "people.ledger")
    assert again.value == released.value
    assert release(copy, table.parent / "people.ledger", "avg(height)").entry.account["table"] == "people.parquet"
    other = table.parent / "other.parquet"
    shutil.copy(table, other)
    assert warned(other) == []
    with pytest.raises(RefusedError, match=r"belongs to one table, and its table must stay as it was \(people.parquet\)"):
        release(other, table.parent / "people.ledger")


def test_files_and_what_they_are(tmp_path: Path) -> None:
    for name in ("a1.csv", "a2.csv", "b[1].csv"):
        (tmp_path / name).touch()
    (tmp_path / "link.csv").symlink_to(tmp_path / "a1.csv")
    os.link(tmp_path / "a1.csv", tmp_path / "hard.csv")
    assert [path.name for path in files_of(tmp_path / "a*.csv")] == ["a1.csv", "a2.csv"]
    assert not is_pattern(tmp_path / "b[1].csv")
    assert files_of(tmp_path / "b[1].csv") == (tmp_path / "b[1].csv",)
    assert resolved(tmp_path / "b*.csv") == tmp_path / "b[1].csv"
    assert resolved(tmp_path / "a*.csv") == tmp_path / "a*.csv"
    assert files_of(tmp_path / "none.csv") == files_of("x\0*") == files_of("spark:a.b") == ()
    same = [identities(tmp_path / name) for name in ("a1.csv", "link.csv", "hard.csv", "*1.csv", "h*.csv")]
    assert len({*same}) == 1
    assert identities(tmp_path / "a1.csv") < identities(tmp_path / "a*.csv")
    assert identities(tmp_path / "none.csv") == {str(tmp_path / "none.csv")}


def test_without_inodes_a_file_is_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").touch()
    real = os.stat

    def numberless(path: Any, **options: Any) -> os.stat_result:
        return os.stat_result((*real(path, **options)[:1], 0, *real(path, **options)[2:10]))

    monkeypatch.setattr(os, "stat", numberless)
    assert identities(tmp_path / "a.csv") == {str(tmp_path / "a.csv")}
