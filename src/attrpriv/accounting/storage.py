"""Where a ledger is kept: one small interface, a file by default, PostgreSQL by URL.

What must never change, for every kind of storage:
- `write` calls `add` inside one write transaction that no other process can enter, and returns only after the row is durable:
  it survives a power failure of the machine that keeps it.
- A ledger is complete or absent: tables and first entry are written in one transaction, and a write that fails leaves nothing.
- Errors are fixed texts that name the ledger and nothing it holds, and are chained to nothing: the text of a database's own
  error may quote an answer or a password.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from attrpriv.accounting.hash_chain import COLUMNS, SPENDS, ChainError, Row, Rows
from attrpriv.errors import RefusedError, UsageError
from attrpriv.problem.places import is_url

BUSY_SECONDS = 10.0

T = TypeVar("T")
# What is added to the rows so far (None: the ledger does not exist yet): a row, and the secret state that goes with it.
Add = Callable[[Rows | None], tuple[Row, str | None]]


class Storage(Protocol):
    """One ledger's place."""

    name: str

    def read(self, look: Callable[[Rows | None], T]) -> T:
        """`look` at one moment of the ledger; reading creates nothing."""

    def write(self, add: Add) -> None:
        """Add what `add` says, atomically and durably."""

    def require_state(self) -> None:
        """Raise where no secret state can be kept here."""

    def state(self) -> str | None:
        """The secret state that was written, or None."""


def storage_at(place: str | Path, table: str | None = None) -> Storage:
    """The storage at a path or URL; `table` names the ledger in a database where the URL does not."""
    if isinstance(place, str) and is_url(place):
        from attrpriv.accounting.storage_postgres import PostgresStorage

        return PostgresStorage(place, table)
    from attrpriv.accounting.storage_sqlite import SqliteStorage

    return SqliteStorage(Path(place))


def busy(name: str, seconds: float) -> RefusedError:
    held = f"has been in use by another process for {seconds:g} seconds"
    return RefusedError(f"{name}: must be free. Got one that {held}. Try again.")


def changed(name: str) -> RefusedError:
    return RefusedError(
        f"{name}: must be as attrpriv wrote it. Got one that was changed or damaged. Restore it from a backup; "
        "without it nobody knows what was released."
    )


def altered(name: str) -> RefusedError:
    return RefusedError(
        f"{name}: must hold the tables that attrpriv made, and nothing else. Got one with a trigger, a view, an index, a table "
        "or a column that is not attrpriv's, or with one of attrpriv's altered: it may drop or change what is written. Restore "
        "it from a backup; nothing was released."
    )


def full(name: str) -> UsageError:
    return UsageError(f"{name}: must have room to grow. Got a full disk. Make room; nothing was released.")


def replaced(name: str) -> RefusedError:
    return RefusedError(f"{name}: must stay in place. Got one that was moved meanwhile. Try again.")


# ----------------------------------------------------------------------------------------------------------------------------
# The rows of a ledger, and the statements that read and add them, for every database. Their tables are in `schema`.
#
# What must never change: a row is added only if the database then holds just that row, as its last one.


_SELECTED = ", ".join(COLUMNS)
# Rows are fetched in parts, because all of them may not fit into memory as text.
_PART = 500


class SqlRows:
    """`history.Rows` over statements with `?` for values."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def size(self) -> tuple[int, int]:
        ((count, last),) = self._execute("SELECT count(*), coalesce(max(number), 0) FROM entries", ())
        return count, last

    def at(self, number: int) -> Row | None:
        return next(iter(self._select("WHERE number = ?", number)), None)

    def latest(self, count: int) -> Sequence[Row]:
        return self._select("ORDER BY number DESC LIMIT ?", count)

    def asked(self, question: str) -> Row | None:
        return next(iter(self._select("WHERE question = ? ORDER BY number LIMIT 1", question)), None)

    def answering(self, query: str) -> Row | None:
        found = self._execute("SELECT number FROM answered WHERE query = ? ORDER BY number LIMIT 1", (query_digest(query),))
        return self.at(found[0][0]) if found else None

    def every(self) -> Iterator[Row]:
        last: int | None = None
        while part := self._select("WHERE number > ? ORDER BY number LIMIT ?", -(2**63) if last is None else last, _PART):
            yield from part
            last = part[-1][0]

    def insert(self, row: Row) -> None:
        """Add the row and read it back: what a database does with an insert is not for it alone to say."""
        _insert(self._execute, row)
        if self.latest(1) != [row]:
            raise ChainError

    def _select(self, rest: str, *values: Any) -> list[Row]:
        return [tuple(row) for row in self._execute(f"SELECT {_SELECTED} FROM entries {rest}", values)]


def create(execute: Execute, row: Row, *, integer: str = "INTEGER", more: Sequence[str] = ()) -> None:
    """The tables and the first entry, in the caller's transaction."""
    for statement in (*statements(integer), *more):
        execute(statement, ())
    execute("INSERT INTO meta VALUES (?, ?), (?, ?)", ("format", FORMAT, "schema_version", str(SCHEMA_VERSION)))
    SqlRows(execute).insert(row)


def _insert(execute: Execute, row: Row) -> None:
    places = ", ".join("?" * len(COLUMNS))
    execute(f"INSERT INTO entries ({_SELECTED}) VALUES ({places})", row)
    for query in _answers(row):
        execute("INSERT INTO answered VALUES (?, ?)", (query, row[COLUMNS.index("number")]))


def _answers(row: Row) -> list[str]:
    """The digests of the queries that a release answers; none of a row that holds something else."""
    with suppress(ValueError, TypeError, KeyError):
        if row[COLUMNS.index("kind")] in SPENDS:
            return [query_digest(one["query"]) for one in json.loads(row[COLUMNS.index("plan")])]
    return []


def query_digest(query: str) -> str:
    """Of fixed length, because an index has a limit and a query has none."""
    return hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()


def unknown_version(name: str, version: str) -> UsageError:
    problem = f"must have schema version {SCHEMA_VERSION}. Got {version}"
    return UsageError(f"{name}: {problem}. Use the version of attrpriv that wrote it, or a newer one.")


# ----------------------------------------------------------------------------------------------------------------------------
# What a ledger's database holds: its tables and indexes as they were made, and nothing else.
#
#     meta       format and schema version
#     entries    one row an entry (`chain.COLUMNS`); `question` is indexed, and follows from the other columns
#     answered   an index that nothing is believed from: the digest of each query that was answered, and the entry's number
#
# What must never change: what is in the database may decide what becomes of an insert (a trigger or a rule can drop it, a
# column can change its value, a table without a log can lose it), so a ledger with anything that this module did not make, or
# made otherwise, is neither read nor written. A ledger of another schema version is left alone.


SCHEMA_VERSION = 3
FORMAT = "attrpriv ledger"
TABLES = frozenset({"meta", "entries"})

Execute = Callable[[str, Sequence[Any]], list[Any]]

META = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
_ENTRIES = (
    "CREATE TABLE entries (number {integer} PRIMARY KEY, kind TEXT NOT NULL, time TEXT NOT NULL, policy_digest TEXT NOT NULL, "
    "plan TEXT NOT NULL, answers TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL, details TEXT, account TEXT, "
    "question TEXT)"
)
_INDEX = "CREATE INDEX entries_question ON entries (question)"
_ANSWERED = "CREATE TABLE answered (query TEXT NOT NULL, number {integer} NOT NULL)"
_ANSWERED_INDEX = "CREATE INDEX answered_query ON answered (query)"
# Of a file alone.
STATE_TABLE = "CREATE TABLE secret_state (key TEXT PRIMARY KEY, value TEXT NOT NULL)"


class NoLedgerError(Exception):
    """The tables are not a ledger's."""


class WrongVersionError(Exception):
    """The ledger has a schema that this version does not know; `version` is its number as text."""

    def __init__(self, version: str) -> None:
        super().__init__()
        self.version = version


class AlteredError(Exception):
    """A ledger of this version whose database holds something more, or something else. Has no text, as `ChainError`."""


def statements(integer: str = "INTEGER") -> tuple[str, ...]:
    """What makes the tables of every ledger."""
    return META, _ENTRIES.format(integer=integer), _INDEX, _ANSWERED.format(integer=integer), _ANSWERED_INDEX


def require_version(execute: Execute) -> None:
    """`NoLedgerError` or `WrongVersionError` unless the table `meta` is that of a ledger of this version."""
    meta = dict(execute("SELECT key, value FROM meta", ()))
    version = str(meta.get("schema_version"))
    if meta.get("format") != FORMAT or not (version.isascii() and version.isdigit()):
        raise NoLedgerError
    if version != str(SCHEMA_VERSION):
        raise WrongVersionError(version[:9])


# SQLite keeps the text that made each object. What it parses is that text, whatever the other columns say.

_MASTER = "SELECT type, name, tbl_name, sql FROM sqlite_master"


def require_file(execute: Execute) -> bool:
    """Whether there is anything in the file; if so, it must be a ledger of this version and nothing else."""
    found = execute(_MASTER, ())
    if not found:
        return False
    if ("table", "meta", "meta", META) not in found or not {name for _, name, _, _ in found} >= TABLES:
        raise NoLedgerError
    require_version(execute)
    if sorted(found, key=repr) != _file():
        raise AlteredError
    return True


@cache
def _file() -> list[tuple[Any, ...]]:
    """What SQLite makes of the statements, with the indexes that it adds by itself."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in (*statements(), STATE_TABLE):
            connection.execute(statement)
        return sorted(connection.execute(_MASTER).fetchall(), key=repr)


# PostgreSQL keeps no text. Everything in the schema, and everything that hangs on its tables, is listed as lines. Its default
# collation is number 100 in every version, and 0 is that of a column that needs none.

_LISTED = """
WITH place AS (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = ?),
held AS (SELECT c.* FROM pg_catalog.pg_class AS c JOIN place ON c.relnamespace = place.oid)
SELECT 'relation', relname::text, pg_catalog.concat_ws(' ', relkind, relpersistence, relrowsecurity) FROM held
UNION ALL SELECT 'column', relname || '.' || attname, pg_catalog.concat_ws(' ',
    pg_catalog.format_type(atttypid, atttypmod), attnotnull, atthasdef, attgenerated <> '', attidentity <> '',
    attcollation IN (0, 100))
    FROM pg_catalog.pg_attribute JOIN held ON attrelid = held.oid WHERE relkind = 'r' AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT 'index', relname::text, pg_catalog.concat_ws(' ', indkey, indisunique, indisvalid, indpred IS NULL,
    indexprs IS NULL) FROM pg_catalog.pg_index JOIN held ON indexrelid = held.oid
UNION ALL SELECT 'constraint', conname::text, pg_catalog.pg_get_constraintdef(con.oid)
    FROM pg_catalog.pg_constraint AS con JOIN held ON conrelid = held.oid WHERE contype <> 'n'
UNION ALL SELECT 'trigger', tgname::text, '' FROM pg_catalog.pg_trigger JOIN held ON tgrelid = held.oid
UNION ALL SELECT 'rule', rulename::text, '' FROM pg_catalog.pg_rewrite JOIN held ON ev_class = held.oid
UNION ALL SELECT 'heir', relname::text, '' FROM pg_catalog.pg_inherits JOIN held ON held.oid IN (inhparent, inhrelid)
UNION ALL SELECT 'function', proname::text, '' FROM pg_catalog.pg_proc JOIN place ON pronamespace = place.oid
UNION ALL SELECT 'operator', oprname::text, '' FROM pg_catalog.pg_operator JOIN place ON oprnamespace = place.oid
UNION ALL SELECT 'type', typname::text, '' FROM pg_catalog.pg_type JOIN place ON typnamespace = place.oid
    WHERE typtype <> 'c' AND typcategory <> 'A'
"""
_TEXT, _TEXT_OR_NULL, _BIGINT = "text t f f f t", "text f f f f t", "bigint t f f f t"
_COLUMNS = {
    "meta": {"key": _TEXT, "value": _TEXT},
    "entries": {
        "number": _BIGINT,
        **dict.fromkeys(("kind", "time", "policy_digest", "plan", "answers", "previous", "digest"), _TEXT),
        **dict.fromkeys(("details", "account", "question"), _TEXT_OR_NULL),
    },
    "answered": {"query": _TEXT, "number": _BIGINT},
}
_INDEXES = {
    "meta_pkey": "1 t t t t",
    "entries_pkey": "1 t t t t",
    "entries_question": "11 f t t t",
    "answered_query": "1 f t t t",
}
_KEYS = {"meta_pkey": "PRIMARY KEY (key)", "entries_pkey": "PRIMARY KEY (number)"}


def require_schema(execute: Execute, schema: str) -> bool:
    """The same for a schema of a PostgreSQL database."""
    found = {tuple(line) for line in execute(_LISTED, (schema,))}
    if not found:
        return False
    if not {name for what, name, told in found if what == "relation" and told.startswith("r ")} >= TABLES:
        raise NoLedgerError
    if execute("SELECT pg_catalog.has_schema_privilege(?, 'USAGE')", (schema,)) != [(True,)]:
        raise PermissionError  # or its tables would seem not to be there
    require_version(execute)
    if found != _schema():
        raise AlteredError
    return True


def _schema() -> set[tuple[str, str, str]]:
    return {
        *(("relation", name, "r p f") for name in _COLUMNS),
        *(("relation", name, "i p f") for name in _INDEXES),
        *(("column", f"{table}.{name}", kind) for table, columns in _COLUMNS.items() for name, kind in columns.items()),
        *(("index", name, told) for name, told in _INDEXES.items()),
        *(("constraint", name, told) for name, told in _KEYS.items()),
    }
