"""A ledger in one SQLite file, created for its owner only.

What must never change:
- `write` returns only after the entry is on the disk. The first entry is written with a rollback journal and `synchronous =
  EXTRA`: the directory is synced after the journal is gone, or a power failure could bring the journal back and undo an entry
  whose value was shown. Then the file is switched to a write-ahead log. There, a commit is one append to the log, which EXTRA
  (as FULL, and not as NORMAL) syncs before the commit returns; SQLite syncs the directory when it creates the log. The log goes
  back into the file and is removed when the last connection closes. Where a log is not possible, the journal stays in use.
- A log left by a process that died is part of the ledger: whoever copies the file copies `-wal` with it.
- A ledger is made under another name, with its first entry, and gets its own when it is complete: what `path` names is never
  half a ledger, whatever is killed when. So a file that is there and empty lost what it held, and so did tables without an
  entry. SQLite must not even open an empty file: it takes it for a new database, and removes the log beside it.
- A view's secret state is in a table apart that reading entries never touches.

Processes may race for one ledger. Threads take turns: this module closes a descriptor of the file that SQLite does not know,
and POSIX then drops every lock this process has on the file, also one that SQLite took in another thread.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

from attrpriv.accounting import storage
from attrpriv.accounting.hash_chain import ChainError, Row
from attrpriv.accounting.storage import (
    STATE_TABLE,
    AlteredError,
    NoLedgerError,
    SqlRows,
    WrongVersionError,
    create,
    require_file,
    unknown_version,
)
from attrpriv.errors import AttrprivError, RefusedError, UsageError

T = TypeVar("T")
_ONE_AT_A_TIME = threading.RLock()
_VIEW_STATE = "view"
# What SQLite takes for a new database: it writes one byte into an empty file itself where a file system needs that.
_NOTHING = 1
# What a file system says that has no hard links; EINVAL is FAT's word for it under Windows.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)
# A file system that cannot sync a directory, or a directory that may be written and not read.
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)


class SqliteStorage:
    """The ledger in the file at `path`. A file that does not exist is an empty ledger."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"ledger {str(path)!r}"

    def read(self, look: Callable[[SqlRows | None], T]) -> T:
        if not os.path.lexists(self.path):
            return look(None)
        self._require_file()
        return self._without_traces(lambda: _read(self.path, lambda connection: look(_rows(connection))))

    def write(self, add: storage.Add) -> None:
        if os.path.lexists(self.path):
            self._require_file()
        self._without_traces(lambda: _write(self.path, self.name, add))

    def require_state(self) -> None:
        """A file of the owner's own may hold one."""

    def state(self) -> str | None:
        if not os.path.lexists(self.path):
            return None
        self._require_file()
        return self._without_traces(lambda: _read(self.path, _state))

    def _require_file(self) -> None:
        if not os.path.isfile(self.path):  # a directory or a pipe, on which SQLite would fail or wait
            raise UsageError(f"{self.name}: must be a file. Got something else. Choose another path.")
        if os.path.getsize(self.path) <= _NOTHING:
            raise _empty(self.name)

    def _without_traces(self, action: Callable[[], T]) -> T:
        """Run `action`; an error of SQLite or the system becomes ours, and is not chained to it: it may quote anything."""
        failure: AttrprivError
        try:
            with _ONE_AT_A_TIME:
                return action()
        except sqlite3.Error as error:
            failure = _explained(self.name, _code(error))
        except NoLedgerError:
            failure = _no_ledger(self.name)
        except AlteredError:
            failure = storage.altered(self.name)
        except _EmptyError:
            failure = _empty(self.name)
        except WrongVersionError as error:
            failure = unknown_version(self.name, error.version)
        except (OSError, ValueError):
            failure = _unusable(self.name)
        raise failure


# Connections.


class _EmptyError(Exception):
    """A database that holds nothing at all."""


def _open(path: Path, purpose: Literal["read", "write", "frozen"]) -> sqlite3.Connection:
    """A connection without implicit transactions that never creates the file.

    Also for reading it is one that may write, where the file allows it: only such a one can undo or finish what a process left
    that died, and take the log away again.
    """
    mode = "mode=ro&immutable=1" if purpose == "frozen" else "mode=rw"
    uri = f"{path.absolute().as_uri()}?{mode}"
    return sqlite3.connect(uri, uri=True, timeout=storage.BUSY_SECONDS, isolation_level=None)


def _rows(connection: sqlite3.Connection) -> SqlRows:
    execute = _execute(connection)
    if not require_file(execute):
        raise _EmptyError
    return SqlRows(execute)


def _execute(connection: sqlite3.Connection) -> Callable[[str, Sequence[Any]], list[Any]]:
    return lambda statement, values: connection.execute(statement, values).fetchall()


# Reading.


def _read(path: Path, look: Callable[[sqlite3.Connection], T]) -> T:
    try:
        with closing(_open(path, "read")) as connection:
            connection.execute("BEGIN")  # one moment for all statements; closing ends it
            return look(connection)
    except sqlite3.OperationalError as error:
        if _code(error) not in (sqlite3.SQLITE_READONLY_DIRECTORY, sqlite3.SQLITE_CANTOPEN):
            raise
    with _at_rest(path), closing(_open(path, "frozen")) as connection:
        return look(connection)


def first_row(path: Path) -> Row | None:
    """The first row of somebody else's ledger, if it can be read, without a lock or a trace. It is never in the log alone."""
    unread = (sqlite3.Error, NoLedgerError, AlteredError, WrongVersionError, _EmptyError, OSError, ValueError)
    with suppress(*unread), closing(_open(path, "frozen")) as connection:
        return _rows(connection).at(1)
    return None


@contextmanager
def _at_rest(path: Path) -> Iterator[None]:
    """For a directory in which no log can be made: the file alone, if nobody writes meanwhile."""
    before = _stamp(path)
    yield
    if before is None or _stamp(path) != before:
        raise sqlite3.OperationalError  # unusable


def _stamp(path: Path) -> tuple[int, int, int] | None:
    if os.path.lexists(f"{path}-wal") or os.path.lexists(f"{path}-journal"):
        return None
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


def _state(connection: sqlite3.Connection) -> str | None:
    _rows(connection)
    row = connection.execute("SELECT value FROM secret_state WHERE key = ?", (_VIEW_STATE,)).fetchone()
    return None if row is None or not isinstance(row[0], str) else row[0]


# Writing.


def _write(path: Path, name: str, add: storage.Add) -> None:
    if os.path.lexists(path) or not _create(path, add):
        _append(path, name, add)


def _create(path: Path, add: storage.Add) -> bool:
    """A new ledger, for its owner only (the journal's and log's mode follow); False if another process made one meanwhile."""
    draft = path.parent / f".attrpriv-{secrets.token_hex(8)}"
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(_open(draft, "write")) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            row, state = add(None)
            create(_execute(connection), row, more=(STATE_TABLE,))
            _commit(connection, state)
        return _named(draft, path)
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            Path(f"{draft}{ending}").unlink(missing_ok=True)


def _named(draft: Path, path: Path) -> bool:
    """Give the finished ledger its name, durably, unless something has it by now."""
    try:
        _link(draft, path)
    except FileExistsError:
        return False
    _sync(path.parent)
    return True


def _link(draft: Path, path: Path) -> None:
    """A second name for the file, all at once; on a file system without links the name is taken first and then filled."""
    try:
        os.link(draft, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        os.replace(draft, path)


def _sync(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def _append(path: Path, name: str, add: storage.Add) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        with closing(_open(path, "write")) as connection:  # closing rolls an open transaction back
            _insert(connection, path, name, descriptor, add)
    finally:
        os.close(descriptor)


def _in_place(path: Path, descriptor: int) -> bool:
    """Whether `path` still names the pinned file.

    A removed file never gets its name back, so if it does, it did all along, and a connection opened since the pin is
    to this file. SQLite does not look by itself where it has a log.
    """
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    return False


def _insert(connection: sqlite3.Connection, path: Path, name: str, descriptor: int, add: storage.Add) -> None:
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("BEGIN IMMEDIATE")
    if not _in_place(path, descriptor):
        raise storage.replaced(name)
    rows = _rows(connection)
    row, state = add(rows)
    rows.insert(row)
    _commit(connection, state)


def _commit(connection: sqlite3.Connection, state: str | None) -> None:
    if state is not None:
        _execute(connection)("INSERT INTO secret_state VALUES (?, ?)", (_VIEW_STATE, state))
        if _state(connection) != state:
            raise ChainError
    connection.execute("COMMIT")
    with suppress(sqlite3.Error):  # the entry is on the disk; a file that cannot have a log keeps its journal
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA journal_mode = WAL")


# Errors: fixed texts that name the ledger and nothing it holds.


def _code(error: sqlite3.Error) -> int:
    """SQLite's code; an error without one is Python's, over text that SQLite would not have stored like that."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return code


def _explained(name: str, code: int) -> AttrprivError:
    primary = code & 0xFF  # SQLite's extended codes keep the general one in the low byte
    if code in (sqlite3.SQLITE_READONLY_DBMOVED, sqlite3.SQLITE_IOERR_FSTAT):
        return storage.replaced(name)
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        return storage.busy(name, storage.BUSY_SECONDS)
    if primary in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR):
        return _no_ledger(name)
    if primary == sqlite3.SQLITE_CORRUPT:
        return storage.changed(name)
    if primary == sqlite3.SQLITE_FULL:
        return storage.full(name)
    return _unusable(name)


def _no_ledger(name: str) -> UsageError:
    return UsageError(f"{name}: must be a ledger of attrpriv. Got another file. Choose another path.")


def _empty(name: str) -> RefusedError:
    return RefusedError(
        f"{name}: must hold what was released. Got an empty file, which a copy that failed leaves, or somebody who made it by "
        "hand. Restore it from a backup. Only if nothing was ever released about this table, delete it: it is made anew."
    )


def _unusable(name: str) -> UsageError:
    return UsageError(
        f"{name}: must be a file that can be read and written, in a directory that exists. Got one that cannot "
        "be used. Check the path and the permissions; nothing was released."
    )
