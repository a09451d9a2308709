"""Ledgers that somebody prepared: objects that attrpriv did not make, inserts that go nowhere, files that lost their contents.

A release must never be shown that its ledger does not hold, and what was released must never be forgotten without a word.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from attrpriv.accounting import storage as schema
from attrpriv.accounting import storage as sql_rows
from attrpriv.accounting import storage_postgres
from attrpriv.accounting import storage_sqlite as module
from attrpriv.accounting.ledger import Ledger
from attrpriv.errors import AttrprivError, RefusedError, UsageError
from tests.unit.accounting.places import Place, connect, place, place_of

__all__ = ["place"]

ALTERED = "must hold the tables that attrpriv made, and nothing else"
CHANGED = "must be as attrpriv wrote it"
EMPTY = r"Got an empty file.*Restore it from a backup.*delete it"


def release(number: int = 0) -> dict[str, Any]:
    plan = [{"query": f"avg(x{number})", "n": 400}]
    return {"time": "now", "policy_digest": "ab" * 32, "plan": plan, "answers": [4711.25], "details": {"columns": []}}


def commit(place: Place, number: int) -> object:
    return place.ledger.commit(**release(number), allowed=lambda history: None)


def refused(place: Place, text: str) -> None:
    """It is neither read nor written, and says why in a line that is chained to nothing."""
    uses: list[Callable[[], object]] = [place.ledger.entries, place.ledger.verify, place.ledger.first]
    uses.append(lambda: commit(place, 9))
    for use in uses:
        with pytest.raises(RefusedError, match=text) as caught:
            use()
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert "4711.25" not in str(caught.value)


# Objects in the schema.


FILE_OBJECTS = {
    "trigger that drops": ["CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT raise(ignore); END"],
    "trigger that deletes": [
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries WHERE number = NEW.number; END"
    ],
    "trigger on the index": ["CREATE TRIGGER t BEFORE INSERT ON answered BEGIN SELECT raise(ignore); END"],
    "view": ["CREATE VIEW v AS SELECT * FROM entries"],
    "table": ["CREATE TABLE more (x TEXT)"],
    "virtual table": ["CREATE VIRTUAL TABLE more USING fts5(x)"],
    "index": ["CREATE INDEX i ON entries (time)"],
    "partial index": ["CREATE UNIQUE INDEX i ON entries (kind) WHERE number > 1"],
    "index on an expression": ["CREATE INDEX i ON entries (json_extract(plan, '$'))"],
    "an index less": ["DROP INDEX entries_question"],
    "an index of the same name": ["DROP INDEX entries_question", "CREATE INDEX entries_question ON entries (time)"],
    "a partial index of the same name": [
        "DROP INDEX answered_query",
        "CREATE INDEX answered_query ON answered (query) WHERE number < 2",
    ],
    "column": ["ALTER TABLE entries ADD COLUMN more TEXT"],
    "generated column": ["ALTER TABLE entries ADD COLUMN more TEXT AS (upper(kind))"],
    "renamed column": ["ALTER TABLE answered RENAME COLUMN number TO entry"],
    "a table less": ["DROP TABLE answered"],
    "statistics": ["ANALYZE"],
    "index made anew, with a collation": [
        "DROP INDEX answered_query",
        "CREATE INDEX answered_query ON answered (query COLLATE NOCASE)",
    ],
}


def remade(table: str, made: str) -> list[str]:
    """The table again, as `made` says, with the rows that it had."""
    return [f"ALTER TABLE {table} RENAME TO old", made, f"INSERT INTO {table} SELECT * FROM old", "DROP TABLE old"]


FILE_OBJECTS |= {
    "secret state without rowid": remade("secret_state", schema.STATE_TABLE + " WITHOUT ROWID"),
    "secret state with a collation": remade("secret_state", schema.STATE_TABLE.replace("NOT NULL", "NOT NULL COLLATE NOCASE")),
    "secret state with a check": remade(
        "secret_state", schema.STATE_TABLE.replace("NOT NULL)", "NOT NULL, CHECK (key <> 'view'))")
    ),
    "secret state with a conflict clause": remade(
        "secret_state", schema.STATE_TABLE.replace("KEY,", "KEY ON CONFLICT IGNORE,")
    ),
}


@pytest.mark.parametrize("name", FILE_OBJECTS)
def test_an_object_in_the_file_is_refused(name: str, tmp_path: Path) -> None:
    place = place_of("file", tmp_path)
    commit(place, 0)
    place.edit(*FILE_OBJECTS[name])
    before = Path(place.place).read_bytes()
    refused(place, ALTERED)
    assert Path(place.place).read_bytes() == before


WRITABLE = {
    "trigger that calls itself an index": (
        "INSERT INTO sqlite_master VALUES ('index', 'answered_query', 'answered', 0, "
        "'CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT raise(ignore); END')"
    ),
    "collation": (
        "UPDATE sqlite_master SET sql = replace(sql, 'query TEXT', 'query TEXT COLLATE NOCASE') WHERE name = 'answered'"
    ),
    "default": "UPDATE sqlite_master SET sql = replace(sql, 'details TEXT', 'details TEXT DEFAULT 1') WHERE name = 'entries'",
    "conflict clause": (
        "UPDATE sqlite_master SET sql = replace(sql, 'PRIMARY KEY', 'PRIMARY KEY ON CONFLICT IGNORE') WHERE name = 'entries'"
    ),
    "text as bytes": "UPDATE sqlite_master SET sql = CAST(sql AS BLOB) WHERE name = 'entries'",
    "comment": "UPDATE sqlite_master SET sql = sql || '/* */' WHERE name = 'entries'",
    "the same twice": "INSERT INTO sqlite_master SELECT * FROM sqlite_master WHERE name = 'answered_query'",
}


@pytest.mark.parametrize("name", WRITABLE)
def test_a_schema_edited_as_text_is_refused(name: str, tmp_path: Path) -> None:
    place = place_of("file", tmp_path)
    commit(place, 0)
    place.edit("PRAGMA writable_schema = ON", WRITABLE[name])
    uses: list[Callable[[], object]] = [place.ledger.entries, lambda: commit(place, 9)]
    for use in uses:
        with pytest.raises(AttrprivError, match=f"{ALTERED}|{CHANGED}|must be a ledger of attrpriv"):
            use()


def test_tables_that_share_their_pages_are_found(tmp_path: Path) -> None:
    """The text of the schema is as it was; an entry in the index of queries would become one of the ledger."""
    place = place_of("file", tmp_path)
    commit(place, 0)
    page = "(SELECT rootpage FROM sqlite_master WHERE name = 'entries')"
    place.edit("PRAGMA writable_schema = ON", f"UPDATE sqlite_master SET rootpage = {page} WHERE name = 'answered'")
    before = Path(place.place).read_bytes()
    with pytest.raises(AttrprivError):
        commit(place, 9)
    assert Path(place.place).read_bytes() == before


@pytest.mark.parametrize("name", ["CREATE VIEW meta AS SELECT 'format' AS key, 'x' AS value", "CREATE TABLE meta (key, value)"])
def test_a_table_that_is_none_is_not_even_read(name: str, tmp_path: Path) -> None:
    place = place_of("file", tmp_path)
    commit(place, 0)
    place.edit("DROP TABLE meta", name)
    with pytest.raises(UsageError, match="must be a ledger of attrpriv"):
        place.ledger.entries()


SERVER_OBJECTS = {
    "rule that drops": ["CREATE RULE r AS ON INSERT TO entries DO INSTEAD NOTHING"],
    "trigger that drops": [
        "CREATE FUNCTION pg_temp.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER t BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION pg_temp.nothing()",
    ],
    "trigger of the server's own": [
        "CREATE TRIGGER t BEFORE UPDATE ON entries FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()"
    ],
    "function": ["CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT 1'"],
    "operator": [
        "CREATE FUNCTION pg_temp.never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
        "CREATE OPERATOR ==== (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_temp.never)",
    ],
    "type": ["CREATE TYPE kind AS ENUM ('a')"],
    "view": ["CREATE VIEW v AS SELECT * FROM entries"],
    "sequence": ["CREATE SEQUENCE s"],
    "table": ["CREATE TABLE more (x text)"],
    "index": ["CREATE INDEX i ON entries (time)"],
    "partial index of the same name": [
        "DROP INDEX answered_query",
        "CREATE INDEX answered_query ON answered (query) WHERE number < 2",
    ],
    "an index less": ["DROP INDEX entries_question"],
    "column": ["ALTER TABLE entries ADD COLUMN more text"],
    "generated column": ["ALTER TABLE entries ADD COLUMN more text GENERATED ALWAYS AS (kind) STORED"],
    "default": ["ALTER TABLE entries ALTER COLUMN details SET DEFAULT 'x'"],
    "type of a column": ["ALTER TABLE entries ALTER COLUMN time TYPE varchar(200)"],
    "collation": ['ALTER TABLE entries ALTER COLUMN question TYPE text COLLATE "C"'],
    "not null no more": ["ALTER TABLE entries ALTER COLUMN answers DROP NOT NULL"],
    "check": ["ALTER TABLE entries ADD CHECK (number < 100)"],
    "no key": ["ALTER TABLE entries DROP CONSTRAINT entries_pkey"],
    "row security": ["ALTER TABLE entries ENABLE ROW LEVEL SECURITY"],
    "no log": ["ALTER TABLE entries SET UNLOGGED"],
    "heir": ["CREATE TABLE public.attrpriv_heir () INHERITS (entries)"],
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Place]:
    found = place_of("postgres", tmp_path)
    yield found
    found.remove()


@pytest.mark.parametrize("name", SERVER_OBJECTS)
def test_an_object_on_the_server_is_refused(name: str, server: Place) -> None:
    commit(server, 0)
    with connect() as connected:
        connected.execute(f'SET search_path TO "{server.schema}"')
        for statement in SERVER_OBJECTS[name]:
            connected.execute(statement)
        refused(server, ALTERED)


def test_an_untouched_ledger_is_read_and_continued(place: Place) -> None:
    """Also after what a database's owner does to keep it in order."""
    commit(place, 0)
    place.edit("VACUUM", "REINDEX") if place.is_file else place.edit("VACUUM FULL entries", "REINDEX TABLE entries", "ANALYZE")
    commit(place, 1)
    assert place.ledger.verify().entries == 2


def test_a_file_restored_from_its_dump_is_read(tmp_path: Path) -> None:
    place = place_of("file", tmp_path)
    commit(place, 0)
    again = tmp_path / "again.ledger"
    with closing(sqlite3.connect(place.place)) as old, closing(sqlite3.connect(again)) as new:
        new.executescript("\n".join(old.iterdump()))
    assert Ledger(again).entries() == place.ledger.entries()


# Read back before the commit.


@pytest.mark.parametrize("first", [True, False], ids=["first entry", "later entry"])
@pytest.mark.parametrize("lost", ["INSERT INTO entries", "INSERT INTO secret_state"])
def test_an_insert_that_does_nothing_is_no_release(
    place: Place, monkeypatch: pytest.MonkeyPatch, first: bool, lost: str
) -> None:
    """Whatever the database does with it: the schema is not all that could be wrong."""
    if "state" in lost and not (first and place.is_file):
        pytest.skip("a view is the first entry of a file")
    if not first:
        commit(place, 0)
    for where in (module, storage_postgres):
        usual = where._execute
        monkeypatch.setattr(where, "_execute", lambda made, usual=usual: dropping(usual(made), lost))
    view = {**release(9), "kind": "view", "state": {"key": "x"}}
    with pytest.raises(RefusedError, match=CHANGED):
        place.ledger.commit(**(view if "state" in lost else release(9)), allowed=lambda history: None)
    monkeypatch.undo()
    assert len(place.ledger.entries()) == (not first)
    if place.is_file:
        assert Path(place.place).exists() != first


def dropping(execute: schema.Execute, lost: str) -> schema.Execute:
    return lambda statement, values: [] if statement.startswith(lost) else execute(statement, values)


def test_a_row_that_is_changed_on_its_way_is_no_release(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = sql_rows._insert

    def other(execute: schema.Execute, row: tuple[Any, ...]) -> None:
        usual(execute, tuple("[0.5]" if value == "[4711.25]" else value for value in row))

    commit(place, 0)
    monkeypatch.setattr(sql_rows, "_insert", other)
    with pytest.raises(RefusedError, match=CHANGED):
        commit(place, 1)
    monkeypatch.undo()
    assert place.ledger.verify().entries == 1


# Files that lost what they held.


@pytest.mark.parametrize("size", [0, 1])
def test_an_emptied_file_is_no_new_ledger(size: int, tmp_path: Path) -> None:
    place = place_of("file", tmp_path)
    commit(place, 0)
    Path(place.place).write_bytes(b"\0" * size)
    refused(place, EMPTY)
    assert place.ledger.place == place.place
    with pytest.raises(RefusedError, match=EMPTY):
        module.SqliteStorage(Path(place.place)).state()
    assert Path(place.place).read_bytes() == b"\0" * size
    Path(place.place).unlink()  # the way out that it names
    assert place.ledger.entries() == ()
    commit(place, 1)


def test_a_database_without_tables_is_no_new_ledger(tmp_path: Path) -> None:
    place = place_of("file", tmp_path)
    place.edit("CREATE TABLE x (y)", "DROP TABLE x")
    assert Path(place.place).stat().st_size > 0
    refused(place, EMPTY)


def test_the_log_beside_an_emptied_file_is_kept(tmp_path: Path) -> None:
    """SQLite would take it for that of another database and remove it, and with it the only copy of what was released last."""
    place, other = place_of("file", tmp_path), place_of("file", tmp_path)
    commit(place, 0)
    with closing(sqlite3.connect(place.place)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM entries").fetchall()  # so that the log stays
        commit(place, 1)
        shutil.copy(f"{place.place}-wal", f"{other.place}-wal")
    Path(other.place).touch()
    before = Path(f"{other.place}-wal").read_bytes()
    assert before
    refused(other, EMPTY)
    assert Path(f"{other.place}-wal").read_bytes() == before


def test_a_truncated_file_is_found_at_every_length(tmp_path: Path) -> None:
    place = place_of("file", tmp_path)
    for number in range(20):
        commit(place, number)
    whole = Path(place.place).read_bytes()
    assert len(whole) > 20_000
    uses: list[Callable[[], object]] = [place.ledger.entries, lambda: commit(place, 99)]
    for size in [*range(2, 600, 37), *range(512, len(whole), 512)]:
        Path(place.place).write_bytes(whole[:size])
        for use in uses:
            with pytest.raises(AttrprivError, match=f"{CHANGED}|must be a ledger of attrpriv"):
                use()
        assert Path(place.place).read_bytes() == whole[:size]


def test_zeros_are_no_ledger(tmp_path: Path) -> None:
    """A copy whose contents did not come along."""
    place = place_of("file", tmp_path)
    commit(place, 0)
    Path(place.place).write_bytes(bytes(Path(place.place).stat().st_size))
    with pytest.raises(UsageError, match="must be a ledger of attrpriv"):
        commit(place, 1)


# How a new ledger gets its name.


def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "no links on this file system")

    monkeypatch.setattr(os, "link", link)


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_links(monkeypatch)
    place = place_of("file", tmp_path)
    commit(place, 0)
    commit(place, 1)
    assert place.ledger.verify().entries == 2
    assert Path(place.place).stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == [Path(place.place).name]


@pytest.mark.parametrize("links", [True, False])
def test_who_comes_second_continues_the_ledger_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """Another process makes the ledger while this one decides: it decides again, on what is there now."""
    if not links:
        without_links(monkeypatch)
    place = place_of("file", tmp_path)
    seen: list[int] = []

    def decide(history: Any) -> None:
        seen.append(len(history))
        if len(seen) == 1:
            module._write(Path(place.place), "rival", rival)

    def rival(rows: Any) -> Any:
        from attrpriv.accounting import hash_chain as chain

        said = chain.contents(kind="release", **release(1))
        return chain.row_of(chain.next_entry(said, None, None)), None

    entry = place.ledger.commit(**release(2), allowed=decide)
    assert (seen, entry.number) == ([0, 1], 2)
    assert place.ledger.verify().entries == 2
    assert [one.name for one in tmp_path.iterdir()] == [Path(place.place).name]


@pytest.mark.parametrize("problem", [OSError(28, "full"), OSError(5, "broken")], ids=["no room", "broken disk"])
def test_a_name_that_cannot_be_given_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: OSError) -> None:
    def link(*_: Any, **__: Any) -> None:
        raise problem

    monkeypatch.setattr(os, "link", link)
    place = place_of("file", tmp_path)
    with pytest.raises(UsageError, match="must be a file that can be read and written"):
        commit(place, 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [22, 95, 13])
def test_a_folder_that_cannot_be_synced_is_used_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real: Callable[[int], None] = os.fsync

    def fsync(descriptor: int) -> None:
        raise OSError(number, "not here")

    monkeypatch.setattr(os, "fsync", fsync)
    place = place_of("file", tmp_path)
    commit(place, 0)
    monkeypatch.setattr(os, "fsync", real)
    assert place.ledger.verify().entries == 1


def test_a_folder_that_fails_to_sync_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(5, "input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(UsageError, match="must be a file that can be read and written"):
        commit(place_of("file", tmp_path), 0)
