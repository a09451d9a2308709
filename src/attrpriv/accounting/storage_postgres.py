"""A ledger in a PostgreSQL database, for teams: one schema a ledger, named after its table.

    postgresql://[user@]host[:port]/database[?option=value...][#name]

The schema is `attrpriv_<name>`; the name is that of the table where the URL gives none. It belongs to whoever creates it, and
nobody else may use it until its owner grants that.

What must never change:
- A write takes the advisory lock of its ledger before it reads, in a READ COMMITTED transaction, so each statement after that
  sees all that was committed before. (A snapshot for the whole transaction would be taken before the lock was waited for.) The
  primary key on the number is the second line: two writers cannot both add entry 7.
- A commit counts only when it is flushed: `synchronous_commit` is at least `on`, and a server without `fsync` is refused.
- No secret state is kept on a server that others administer, back up and log. A view needs a ledger file.
- No message quotes the URL or the server's own words. The ledger's name shows host and database, no user and no password.

If the connection breaks during the commit, nobody knows whether the entry is there; the value is not shown. Asking again gives
the recorded answer, or draws, as the case may be.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from attrpriv.accounting import storage
from attrpriv.accounting.storage import (
    AlteredError,
    NoLedgerError,
    SqlRows,
    WrongVersionError,
    create,
    require_schema,
    unknown_version,
)
from attrpriv.errors import AttrprivError, UsageError

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,50}")
_CONNECT_SECONDS = 10
_WITHOUT_SYNC = "off"

_BUSY = ("55P03", "40001", "40P01", "23505", "57014")
_FULL = ("53100", "53200", "53400")
_NO_LEDGER = ("42P01", "42703", "42P07", "42804", "42883")


class PostgresStorage:
    """The ledger of one table in the database at `url`. A schema that does not exist is an empty ledger."""

    def __init__(self, url: str, table: str | None = None) -> None:
        self._url, self._ledger = _parts(url, table)
        self._schema = f"attrpriv_{self._ledger}"
        self.name = f"ledger {_shown(self._url)}#{self._ledger}"

    def read(self, look: Callable[[SqlRows | None], T]) -> T:
        def run(connection: psycopg.Connection[Any]) -> T:
            with _transaction(connection, "ISOLATION LEVEL REPEATABLE READ READ ONLY"):
                return look(self._rows(connection))

        return self._connected(run)

    def write(self, add: storage.Add) -> None:
        self._connected(lambda connection: self._write(connection, add))

    def require_state(self) -> None:
        raise UsageError(
            f"{self.name}: must be a file for a view, whose key would tell others on the server how many rows each cell has. "
            "Got a database. Name a path."
        )

    def state(self) -> str | None:
        return None

    def _write(self, connection: psycopg.Connection[Any], add: storage.Add) -> None:
        with _transaction(connection, "ISOLATION LEVEL READ COMMITTED READ WRITE"):
            execute = _execute(connection)
            execute(f"SET LOCAL lock_timeout = '{storage.BUSY_SECONDS * 1000:.0f}ms'", ())
            self._require_durable(execute)
            execute("SELECT pg_advisory_xact_lock(?)", (_lock_key(self._schema),))
            rows = self._rows(connection)
            row, _ = add(rows)
            if rows is None:
                self._create(connection, row)
            else:
                rows.insert(row)

    def _require_durable(self, execute: Callable[[str, Sequence[Any]], list[Any]]) -> None:
        if execute("SHOW fsync", ()) == [(_WITHOUT_SYNC,)]:
            raise UsageError(f"{self.name}: must be on a server that syncs its disk. Got one with fsync = off. Use another.")
        if execute("SHOW synchronous_commit", ()) != [("remote_apply",)]:  # which asks for more than `on`
            execute("SET LOCAL synchronous_commit = on", ())

    def _rows(self, connection: psycopg.Connection[Any]) -> SqlRows | None:
        """The ledger's rows; None in an empty schema. From here on a plain name is a table of this ledger and nothing else."""
        execute = _execute(connection)
        execute("SELECT set_config('search_path', quote_ident(?), true)", (self._schema,))
        return SqlRows(execute) if require_schema(execute, self._schema) else None

    def _create(self, connection: psycopg.Connection[Any], row: Any) -> None:
        from psycopg import sql

        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self._schema)))
        create(_execute(connection), row, integer="BIGINT")

    def _connected(self, action: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Run `action` on a connection of its own; the driver's errors become ours, and are not chained: they quote rows."""
        psycopg = _driver()
        failure: AttrprivError
        try:
            with psycopg.connect(self._url, connect_timeout=_CONNECT_SECONDS, autocommit=True, prepare_threshold=None) as made:
                return action(made)
        except psycopg.Error as error:
            failure = self._explained(error.sqlstate)
        except NoLedgerError:
            failure = self._no_ledger()
        except AlteredError:
            failure = storage.altered(self.name)
        except WrongVersionError as error:
            failure = unknown_version(self.name, error.version)
        except (OSError, ValueError):
            failure = self._unusable()
        raise failure

    def _explained(self, state: str | None) -> AttrprivError:
        if state in _BUSY:
            return storage.busy(self.name, storage.BUSY_SECONDS)
        if state in _FULL:
            return storage.full(self.name)
        return self._no_ledger() if state in _NO_LEDGER else self._unusable()

    def _no_ledger(self) -> UsageError:
        return UsageError(f"{self.name}: must be a ledger of attrpriv. Got other tables in its schema. Choose another name.")

    def _unusable(self) -> UsageError:
        return UsageError(
            f"{self.name}: must be a database that can be reached, read and written. Got one that cannot be used. Check the "
            "URL, the login and the permissions; nothing was shown. If an answer was recorded, asking again tells it."
        )


@contextmanager
def _transaction(connection: psycopg.Connection[Any], mode: str) -> Iterator[None]:
    """COMMIT is a statement of its own here, so that its failure is one of the action, whatever the driver thinks."""
    connection.execute(f"BEGIN {mode}".encode())
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(Exception):  # a connection that is gone has rolled back
            connection.execute("ROLLBACK")
        raise


def _execute(connection: psycopg.Connection[Any]) -> Callable[[str, Sequence[Any]], list[Any]]:
    def execute(statement: str, values: Sequence[Any]) -> list[Any]:
        # The statements of this package have no per cent signs and no question marks but for values.
        cursor = connection.execute(statement.replace("?", "%s").encode(), tuple(values) or None)
        return cursor.fetchall() if cursor.description is not None else []

    return execute


def _lock_key(schema: str) -> int:
    return int.from_bytes(hashlib.sha256(f"attrpriv ledger {schema}".encode()).digest()[:8], signed=True)


def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        psycopg = None  # type: ignore[assignment]
    if psycopg is None:
        raise UsageError("ledger: a database needs the extra postgres. Install it by: pip install 'attrpriv[postgres]'.")
    return psycopg


def _parts(url: str, table: str | None) -> tuple[str, str]:
    """The URL as the driver takes it, and the ledger's name."""
    found = None
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where it is no number
        if len(parts.path) > 1:
            found = url.partition("#")[0], parts.fragment or table or ""
    except ValueError:
        found = None
    if found is None:
        raise UsageError("ledger: a URL must be postgresql://[user@]host[:port]/database[#name]. Got something else.")
    if not _NAME.fullmatch(found[1]):
        raise UsageError(
            "ledger: in a database must have a name of at most 50 letters, digits, dots, dashes and underscores. Got none: add "
            "it to the URL, as in postgresql://host/database#students."
        )
    return found


def _shown(url: str) -> str:
    """The URL without user, password and options."""
    parts = urlsplit(url)
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"
