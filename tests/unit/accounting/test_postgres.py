"""A ledger in PostgreSQL: its URL, who may do what, and what happens when the server does not play along."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

import attrpriv as ap
from attrpriv.accounting import storage, storage_postgres
from attrpriv.accounting.hash_chain import History
from attrpriv.accounting.ledger import Ledger
from attrpriv.accounting.storage_postgres import PostgresStorage
from attrpriv.errors import PolicyError, RefusedError, UsageError
from tests.end_to_end.material import Said, policy, school, students
from tests.unit.accounting.places import URL, Place, connect, place_of

PASSWORD = "hunter2-4711"
RELEASE: dict[str, Any] = {"time": "now", "policy_digest": "ab", "plan": {}, "answers": [4711.25]}

needs_server = pytest.mark.skipif(URL is None, reason="needs ATTRPRIV_TEST_POSTGRES")


@pytest.fixture
def place(tmp_path: Path) -> Any:
    found = place_of("postgres", tmp_path)
    yield found
    found.remove()


def said(error: BaseException) -> str:
    assert error.__cause__ is None
    assert error.__context__ is None
    return "".join(traceback.format_exception(error)) + repr(error)


# The URL.


@pytest.mark.parametrize(
    ("url", "table", "shown"),
    [
        (f"postgresql://ann:{PASSWORD}@db.example:5433/releases", "students", "postgresql://db.example:5433/releases#students"),
        (f"postgres://db.example/releases?password={PASSWORD}#ward", "students", "postgresql://db.example/releases#ward"),
        ("postgresql:///releases?host=%2Frun", "students", "postgresql:///releases#students"),
        (f"postgresql://ann:{PASSWORD}@[::1]/releases#a.b-c_1", None, "postgresql://[::1]/releases#a.b-c_1"),
    ],
)
def test_a_url_is_shown_without_login_and_options(url: str, table: str | None, shown: str) -> None:
    ledger = Ledger(url, table)
    assert ledger.name == f"ledger {shown}"
    assert PASSWORD not in ledger.name + repr(ledger) + repr(ledger._storage)


@pytest.mark.parametrize(
    "url", ["postgresql:", "postgresql://h", "postgresql://h:port/db#x", f"postgresql://u:{PASSWORD}@[::1/db#x", "postgres:///"]
)
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(UsageError, match=r"^ledger: a URL must be") as caught:
        Ledger(url, "students")
    assert PASSWORD not in said(caught.value)


@pytest.mark.parametrize("name", ["", "a b", 'a"b', "x" * 51, "é"])
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises(UsageError, match="must have a name of at most 50 letters"):
        Ledger(f"postgresql://db.example/releases#{name}")


def test_nothing_answers_there() -> None:
    ledger = Ledger(f"postgresql://ann:{PASSWORD}@127.0.0.1:1/releases#x")
    for use in (ledger.entries, lambda: ledger.commit(**RELEASE)):
        with pytest.raises(UsageError, match="must be a database that can be reached, read and written") as caught:
            use()
        assert PASSWORD not in said(caught.value)
        assert "ann:" not in str(caught.value)
        assert "4711.25" not in str(caught.value)


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match=r"pip install 'attrpriv\[postgres\]'") as caught:
        Ledger("postgresql://db.example/releases#x").entries()
    said(caught.value)


# In a policy.


def test_a_policy_names_a_database(tmp_path: Path) -> None:
    url = "postgresql://ann@db.example/releases"
    named = ap.Policy(**policy(ledger=url))
    assert named.ledger_path() == url
    assert named.digest == ap.Policy(**policy()).digest
    assert ap.Policy.load(school(tmp_path, ledger=url)).ledger_path() == url
    assert ap.Session(tmp_path / "students.parquet", named).ledger_name == "ledger postgresql://db.example/releases#students"
    assert ap.Session(students(), ap.Policy(**policy("data")), ledger=url + "#x").ledger_name.endswith("/releases#x")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{PASSWORD}@db.example/releases",
        f"postgresql://db.example/releases?password={PASSWORD}",
        f"postgres://db.example/releases?user=ann&sslpassword={PASSWORD}#x",
        f"postgresql://ann:{PASSWORD}@[::1/releases",
    ],
)
def test_a_policy_holds_no_password(url: str) -> None:
    with pytest.raises(PolicyError, match=r"^ledger: a URL must be well-formed and hold no password") as caught:
        ap.Policy(**policy(ledger=url))
    assert PASSWORD not in said(caught.value)


# On a server.


@needs_server
def test_from_the_policy_to_the_ledger_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    monkeypatch.chdir(tmp_path)
    hidden = [{"secret": "mean(income)", "between": [20_000, 200_000], "within": 5000}]  # takes the whole budget
    school(tmp_path, ledger=place.place, protect=hidden)
    first = Said("release", "students.yaml", "--mechanism", "gaussian", "--json")
    assert (first.code, first.err) == (0, "")
    again = Said("release", "students.yaml", "--json")
    assert again.json == {**first.json, "ledger": {**first.json["ledger"], "recorded": True}}
    assert Said("release", "students.yaml", "avg(income)", "--spend", "0.5").code == 3
    head = first.json["ledger"]["head"]
    assert "nothing up to it was cut off" in Said("ledger", "students.yaml", "--verify", "--head", head).out
    told = Said("ledger", "students.yaml", "--json")
    assert [entry["digest"] for entry in told.json["entries"]] == [head]
    assert Said("ledger", "students.yaml", "--recheck").code == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["students.parquet", "students.yaml"]
    with connect() as connected:
        rows = connected.execute(f'SELECT * FROM "{place.schema}".entries, "{place.schema}".meta').fetchall()
    for text in (first.out, told.out, json.dumps(rows, default=str)):
        assert "attrpriv@" not in text
        assert "host=" not in text


@needs_server
def test_a_view_needs_a_file(place: Place) -> None:
    with pytest.raises(UsageError, match="must be a file for a view"):
        place.ledger.commit(**{**RELEASE, "kind": "view", "answers": [], "state": {"key": "x"}})
    assert place.ledger.entries() == ()
    assert place.ledger.view_state() is None


@needs_server
def test_somebody_who_may_only_read(place: Place) -> None:
    """A role with SELECT alone sees what was released and releases nothing; one without any right sees nothing."""
    entry = place.ledger.commit(**RELEASE)
    reader = "reader_" + place.schema[-12:]
    with connect() as connected:
        connected.execute(f'CREATE ROLE "{reader}" LOGIN')
    try:
        theirs = Ledger(place.place.replace("attrpriv@", f"{reader}@", 1))
        with pytest.raises(UsageError, match="must be a database that can be reached"):
            theirs.entries()
        with connect() as connected:
            connected.execute(f'GRANT USAGE ON SCHEMA "{place.schema}" TO "{reader}"')
            connected.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{place.schema}" TO "{reader}"')
        assert theirs.entries() == (entry,)
        with pytest.raises(UsageError, match="must be a database that can be reached") as caught:
            theirs.commit(**{**RELEASE, "policy_digest": "cd"}, allowed=lambda history: None)
        assert "4711.25" not in said(caught.value)
    finally:
        with connect() as connected:
            connected.execute(f'DROP OWNED BY "{reader}"')
            connected.execute(f'DROP ROLE "{reader}"')
    assert place.ledger.entries() == (entry,)


@needs_server
def test_a_ledger_in_use_is_waited_for_and_then_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.2)
    with connect() as connected:
        connected.execute("SELECT pg_advisory_lock(%s)", [storage_postgres._lock_key(place.schema)])
        with pytest.raises(RefusedError, match=r"has been in use by another process for 0\.2 seconds"):
            place.ledger.commit(**RELEASE)
        assert place.ledger.entries() == ()
    assert place.ledger.commit(**RELEASE).number == 1


@needs_server
def test_a_connection_that_breaks_shows_nothing(place: Place) -> None:
    def cut(history: History) -> None:
        key = storage_postgres._lock_key(place.schema)
        with connect() as connected:
            held = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) = %s"
            connected.execute(f"SELECT pg_terminate_backend(pid) FROM ({held}) AS found", [key])

    with pytest.raises(UsageError, match="If an answer was recorded, asking again tells it") as caught:
        place.ledger.commit(**RELEASE, allowed=cut)
    assert "4711.25" not in said(caught.value)
    assert place.ledger.entries() == ()


@needs_server
def test_a_commit_is_flushed_whatever_the_role_says(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = PostgresStorage._rows

    def rows(stored: PostgresStorage, connection: Any) -> Any:
        seen.append(connection.execute("SHOW synchronous_commit").fetchone()[0])
        return real(stored, connection)

    monkeypatch.setattr(PostgresStorage, "_rows", rows)
    url, _, name = place.place.partition("#")
    for setting in ("off", "local", "remote_apply"):
        Ledger(f"{url}&options=-csynchronous_commit%3D{setting}#{name}").commit(**RELEASE, allowed=lambda history: None)
    assert seen == ["on", "on", "remote_apply"]


@needs_server
def test_a_server_that_does_not_sync_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_postgres, "_WITHOUT_SYNC", "on")
    with pytest.raises(UsageError, match=r"must be on a server that syncs its disk\. Got one with fsync = off"):
        place.ledger.commit(**RELEASE)
    assert place.ledger.entries() == ()


@needs_server
def test_each_table_has_its_own_ledger(place: Place) -> None:
    other = Place(place.place + "x")
    try:
        place.ledger.commit(**RELEASE)
        assert other.ledger.entries() == ()
        other.ledger.commit(**RELEASE)
        assert len(place.ledger.entries()) == len(other.ledger.entries()) == 1
    finally:
        other.remove()
