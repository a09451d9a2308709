"""The ledger: one SQLite file beside the policy that holds what was released about one table.

What must never change:
- One ledger allows one release call, of any number of queries together. Guarantees for single releases do not add up:
  two answers that are harmless alone can reveal the secret together.
- A release whose weights failed is recorded too, without an answer, and spends the ledger as any other: that it failed
  is what it told.
- Or it holds one secret-free view, drawn once, and any number of answers computed from it. The two are never mixed.
- `commit` returns only after the entry is on the disk, so a caller that shows the value afterwards can never show one
  that the ledger does not know. After a crash, or when processes race on a full disk, it may know an answer that nobody
  saw; the reverse cannot happen.
- Of the table, only the released `answers` are stored, and a view's secret state, in a table apart that `entries` never
  reads. No error prints them, or the text of another error.
- A ledger is complete or absent: tables and entry are written in one transaction, and a commit that fails removes the
  file it created. So tables without an entry mean that somebody removed it.

Entries are chained by SHA-256. That shows accidents and careless edits; it is no protection against an owner who
rewrites or deletes the ledger on purpose. Processes may race for one ledger: one wins, the others are refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from attrpriv.errors import AttrprivError, RefusedError, UsageError

SCHEMA_VERSION = 1
BUSY_SECONDS = 10.0

_FORMAT = "attrpriv ledger"
_NO_PREVIOUS = "0" * 64
_SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE secret_state (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, time TEXT NOT NULL, policy_digest TEXT NOT NULL, "
    "plan TEXT NOT NULL, answers TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL)",
)
# `_write` closes a descriptor of the ledger that SQLite does not know, and POSIX then drops every lock this process has
# on the file, also one that SQLite took in another thread. So threads take turns; processes need no such care.
_ONE_COMMIT_AT_A_TIME = threading.Lock()

T = TypeVar("T")
Kind = Literal["release", "failure", "view", "answer"]
_KINDS: tuple[Kind, ...] = ("release", "failure", "view", "answer")
# What reads the table once and for all.
_SPENDS = ("release", "failure")
_VIEW_STATE = "view"


@dataclass(frozen=True)
class Entry:
    """A release call or its failure, a view, or an answer. `plan` and `answers` are JSON; `digest` covers all other fields."""

    number: int
    kind: Kind
    time: str
    policy_digest: str
    plan: Any
    answers: Any = field(repr=False)
    previous: str
    digest: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Ledger:
    """The ledger at `path`. Constructing it touches nothing; a file that does not exist is an empty ledger."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    def entries(self) -> tuple[Entry, ...]:
        """Everything released so far, checked; reading never creates the file."""
        if not os.path.lexists(self.path):
            return ()
        if not os.path.isfile(self.path):  # a directory or a pipe, on which SQLite would fail or wait
            raise UsageError(f"{_name(self.path)}: must be a file. Got something else. Choose another path.")
        return _without_traces(self.path, lambda: _read(self.path))

    def refuse(self, kind: Kind) -> None:
        """Raise `RefusedError` if nothing of this kind may follow what is recorded; reads only."""
        _require_allowed(self.path, self.entries(), kind)

    def view_state(self) -> Any | None:
        """The secret state of the view that was drawn; None if there is no view."""
        entries = self.entries()
        if not entries or entries[0].kind != "view":
            return None
        return _without_traces(self.path, lambda: _read_state(self.path))

    def commit(
        self, *, kind: Kind = "release", time: str, policy_digest: str, plan: Any, answers: Any, state: Any = None
    ) -> Entry:
        """Record one entry (with a view, also its secret state); when this returns, it is on the disk."""
        contents = _contents(kind=kind, time=time, policy_digest=policy_digest, plan=plan, answers=answers)
        secret = _json_value("state", state)
        if (kind == "view") != (secret is not None):
            raise UsageError("state: a view has one, and nothing else has. Got something else.")
        self.refuse(kind)  # also refuses a file that is no ledger, before anything could be written to it
        return _without_traces(self.path, lambda: _write(self.path, contents, secret))


def _require_allowed(path: Path, entries: tuple[Entry, ...], kind: Kind) -> None:
    """The rule: one release call and nothing else; or one view, then any number of answers from it."""
    if not entries:
        if kind == "answer":
            raise RefusedError(f"{_name(path)}: holds no view to answer from. Draw it first.")
        return
    first = entries[0].kind
    if first in _SPENDS:
        raise _spent(path) if kind in _SPENDS else _mixed(path, "a release with noise", "a view of the same table")
    if kind in _SPENDS:
        raise _mixed(path, "a view", "a release with noise")
    if kind == "view":
        raise RefusedError(f"{_name(path)}: holds the view of this table, which is never drawn again. Use the recorded one.")


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: keys sorted, no spaces, ASCII, no NaN (`ValueError`)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(contents: dict[str, Any]) -> str:
    covered = {key: value for key, value in contents.items() if key != "digest"}
    return hashlib.sha256(canonical_json(covered).encode()).hexdigest()


# Writing.


def _contents(*, kind: Kind, time: str, policy_digest: str, plan: Any, answers: Any) -> dict[str, Any]:
    """What an entry says; its number and its link to the one before come when it is written."""
    return {
        "kind": kind,
        "time": _word("time", time),
        "policy_digest": _word("policy_digest", policy_digest),
        "plan": _json_value("plan", plan),
        "answers": _json_value("answers", answers),
    }


def _next_entry(contents: dict[str, Any], entries: tuple[Entry, ...]) -> Entry:
    previous = entries[-1].digest if entries else _NO_PREVIOUS
    complete = {**contents, "number": len(entries) + 1, "previous": previous}
    return Entry(**complete, digest=_digest(complete))


def _word(name: str, value: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isascii() or not value.isprintable():
        raise UsageError(f"{name}: must be a short line of ASCII text. Got something else.")
    return value


def _json_value(name: str, value: Any) -> Any:
    """`value` as reading it back will give it. The error never quotes it."""
    with suppress(TypeError, ValueError, RecursionError):
        return json.loads(canonical_json(value))
    raise UsageError(f"{name}: must be a JSON value without NaN or infinities. Got something else.")


def _write(path: Path, contents: dict[str, Any], state: Any) -> Entry:
    with _ONE_COMMIT_AT_A_TIME:
        descriptor, created = _pin(path)
        try:
            with closing(_open(path, "rw")) as connection:  # closing rolls an open transaction back
                return _insert(connection, path, descriptor, contents, state)
        except BaseException:
            if created:
                _remove_if_empty(path, descriptor)
            raise
        finally:
            os.close(descriptor)


def _pin(path: Path) -> tuple[int, bool]:
    """A descriptor of the file, and whether this call made it, for its owner only; the journal's mode follows."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), True
    except FileExistsError:
        return os.open(path, os.O_RDWR), False


def _in_place(path: Path, descriptor: int) -> bool:
    """Whether `path` still names the pinned file.

    A removed file never gets its name back, so if it does, it did all along, and a connection opened since the pin is
    to this file. SQLite does not look by itself while a database is empty.
    """
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    return False


def _insert(connection: sqlite3.Connection, path: Path, descriptor: int, contents: dict[str, Any], state: Any) -> Entry:
    # EXTRA is FULL plus a sync of the directory after the rollback journal is gone. Without that, a power failure could
    # bring the journal back and undo an entry whose value was shown.
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("BEGIN IMMEDIATE")
    if not _in_place(path, descriptor):
        raise _replaced(path)
    entries = _checked_entries(connection, path)
    _require_allowed(path, entries, contents["kind"])
    if not entries:
        _create(connection)
    entry = _next_entry(contents, entries)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _to_row(entry))
    if state is not None:
        connection.execute("INSERT INTO secret_state VALUES (?, ?)", (_VIEW_STATE, canonical_json(state)))
    connection.execute("COMMIT")
    return entry


def _create(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)
    meta = [("format", _FORMAT), ("schema_version", str(SCHEMA_VERSION))]
    connection.executemany("INSERT INTO meta VALUES (?, ?)", meta)


def _to_row(entry: Entry) -> tuple[int | str, ...]:
    plan, answers = canonical_json(entry.plan), canonical_json(entry.answers)
    return (entry.number, entry.kind, entry.time, entry.policy_digest, plan, answers, entry.previous, entry.digest)


def _remove_if_empty(path: Path, descriptor: int) -> None:
    """Remove the file a failed commit created, unless another process is using it or has written to it by now.

    The write lock makes this safe: a process that gets it later finds the file gone (`_in_place`) and fails. If the
    lock is taken, the empty file stays, which is an empty ledger.
    """
    with suppress(sqlite3.Error, OSError), closing(_open(path, "rw")) as connection:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA journal_mode = MEMORY")  # no journal file beside a file that is about to go
        connection.execute("BEGIN IMMEDIATE")
        if _in_place(path, descriptor) and not _tables(connection):
            path.unlink()


# Reading.


def _open(path: Path, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
    """A connection without implicit transactions that never creates the file."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def _read(path: Path) -> tuple[Entry, ...]:
    try:
        with closing(_open(path, "ro")) as connection:
            return _checked_entries(connection, path)
    except sqlite3.OperationalError as error:
        if _code(error) != sqlite3.SQLITE_READONLY_ROLLBACK:
            raise
    # A process died in the middle of a commit. Only a connection that may write can undo what it left.
    with closing(_open(path, "rw")) as connection:
        return _checked_entries(connection, path)


def _read_state(path: Path) -> Any:
    with closing(_open(path, "ro")) as connection:
        row = connection.execute("SELECT value FROM secret_state WHERE key = ?", (_VIEW_STATE,)).fetchone()
    state = None
    with suppress(TypeError, ValueError, RecursionError):
        state = None if row is None else json.loads(row[0])
    if state is None:
        raise _changed(path)
    return state


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def _checked_entries(connection: sqlite3.Connection, path: Path) -> tuple[Entry, ...]:
    tables = _tables(connection)
    if not tables:
        return ()  # a commit that did not finish
    if not {"meta", "entries", "secret_state"} <= tables:
        raise _no_ledger(path)
    _check_version(dict(connection.execute("SELECT key, value FROM meta").fetchall()), path)
    columns = ", ".join(column.name for column in fields(Entry))
    rows = connection.execute(f"SELECT {columns} FROM entries ORDER BY number").fetchall()
    entries = tuple(entry for entry in map(_from_row, rows) if entry is not None)
    if not entries or len(entries) != len(rows) or not _is_chain(entries):
        raise _changed(path)
    return entries


def _check_version(meta: dict[object, object], path: Path) -> None:
    version = str(meta.get("schema_version"))
    if meta.get("format") != _FORMAT or not (version.isascii() and version.isdigit()):
        raise _no_ledger(path)
    if version != str(SCHEMA_VERSION):
        problem = f"must have schema version {SCHEMA_VERSION}. Got {version[:9]}"
        raise UsageError(f"{_name(path)}: {problem}. Use the version of attrpriv that wrote it, or a newer one.")


def _from_row(row: tuple[Any, ...]) -> Entry | None:
    """The entry, or None if the row is not exactly what `_to_row` writes."""
    number, kind, time, policy_digest, plan, answers, previous, digest = row
    with suppress(TypeError, ValueError, RecursionError):
        entry = Entry(number, kind, time, policy_digest, json.loads(plan), json.loads(answers), previous, digest)
        if kind in _KINDS and _to_row(entry) == row and _digest(entry.to_json()) == digest:
            return entry
    return None


def _is_chain(entries: tuple[Entry, ...]) -> bool:
    expected = [_NO_PREVIOUS, *(entry.digest for entry in entries)]
    numbers = [entry.number for entry in entries]
    return [entry.previous for entry in entries] == expected[:-1] and numbers == [*range(1, len(entries) + 1)]


# Errors: fixed texts that name the ledger and nothing it holds.


def _without_traces(path: Path, action: Callable[[], T]) -> T:
    """Run `action`; an error of SQLite or the system becomes ours, and is not chained to it: it may quote anything."""
    failure: AttrprivError
    try:
        return action()
    except sqlite3.Error as error:
        failure = _explained(path, _code(error))
    except (OSError, ValueError):
        failure = _unusable(path)
    raise failure


def _code(error: sqlite3.Error) -> int:
    """SQLite's code; an error without one is Python's, over text that SQLite would not have stored like that."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return code


def _explained(path: Path, code: int) -> AttrprivError:
    primary = code & 0xFF  # SQLite's extended codes keep the general one in the low byte
    if code in (sqlite3.SQLITE_READONLY_DBMOVED, sqlite3.SQLITE_IOERR_FSTAT):
        return _replaced(path)
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        held = f"has been in use by another process for {BUSY_SECONDS:g} seconds"
        return RefusedError(f"{_name(path)}: must be free. Got one that {held}. Try again.")
    if primary in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
        return _no_ledger(path)
    if primary == sqlite3.SQLITE_CORRUPT:
        return _changed(path)
    if primary == sqlite3.SQLITE_FULL:
        return UsageError(f"{_name(path)}: must have room to grow. Got a full disk. Make room; nothing was released.")
    return _unusable(path)


def _name(path: Path) -> str:
    return f"ledger {str(path)!r}"


def _spent(path: Path) -> RefusedError:
    return RefusedError(
        f"{_name(path)}: allows one release call, of any number of queries together. Got a second one. Guarantees for "
        "single releases do not add up: two answers that are harmless alone can reveal the secret together. Keep the "
        "first answer, which the ledger holds; planning releases jointly is for a later version of attrpriv."
    )


def _mixed(path: Path, held: str, wanted: str) -> RefusedError:
    return RefusedError(
        f"{_name(path)}: holds {held}, and must not be mixed with {wanted}: together they can reveal what each one hides."
    )


def _replaced(path: Path) -> RefusedError:
    return RefusedError(f"{_name(path)}: must stay in place. Got one that was moved meanwhile. Try again.")


def _changed(path: Path) -> RefusedError:
    return RefusedError(
        f"{_name(path)}: must be as attrpriv wrote it. Got one that was changed or damaged. Restore it from a backup; "
        "without it nobody knows what was released."
    )


def _no_ledger(path: Path) -> UsageError:
    return UsageError(f"{_name(path)}: must be a ledger of attrpriv. Got another file. Choose another path.")


def _unusable(path: Path) -> UsageError:
    return UsageError(
        f"{_name(path)}: must be a file that can be read and written, in a directory that exists. Got one that cannot "
        "be used. Check the path and the permissions; nothing was released."
    )
