"""A ledger's tables and the statements on them, for every database.

    meta       format and schema version
    entries    one row an entry (`chain.COLUMNS`); `question` is indexed, and follows from the other columns
    answered   an index that nothing is believed from: the digest of each query that was answered, and the entry's number

Version 1 had neither `question` nor `details` nor `account`, and neither version 1 nor 2 had `answered`. They are read as they
are, and get what they lack with the first entry that this version writes to them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from attrpriv.accounting.chain import COLUMNS, SPENDS, Row
from attrpriv.errors import UsageError

SCHEMA_VERSION = 3
FORMAT = "attrpriv ledger"
TABLES = frozenset({"meta", "entries"})

_META = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
_ENTRIES = (
    "CREATE TABLE entries (number {integer} PRIMARY KEY, kind TEXT NOT NULL, time TEXT NOT NULL, policy_digest TEXT NOT NULL, "
    "plan TEXT NOT NULL, answers TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL)"
)
_ADDED = ("details", "account", "question")
_INDEX = "CREATE INDEX entries_question ON entries (question)"
_ANSWERED = "CREATE TABLE answered (query TEXT NOT NULL, number {integer} NOT NULL)"
_ANSWERED_INDEX = "CREATE INDEX answered_query ON answered (query)"
_RELEASES = "WHERE kind IN ('release', 'failure') ORDER BY number"
# Rows are fetched in parts, because all of them may not fit into memory as text.
_PART = 500

Execute = Callable[[str, Sequence[Any]], list[Any]]


class WrongVersionError(Exception):
    """The ledger has a schema that this version does not know; `version` is its number as text."""

    def __init__(self, version: str) -> None:
        super().__init__()
        self.version = version


class NoLedgerError(Exception):
    """The tables are not a ledger's."""


class SqlRows:
    """`history.Rows` over statements with `?` for values."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self.version = _version(dict(execute("SELECT key, value FROM meta", ())))
        old = self.version == 1
        self._columns = ", ".join(f"NULL AS {name}" if old and name in _ADDED else name for name in COLUMNS)

    def size(self) -> tuple[int, int]:
        ((count, last),) = self._execute("SELECT count(*), coalesce(max(number), 0) FROM entries", ())
        return count, last

    def at(self, number: int) -> Row | None:
        return next(iter(self._select("WHERE number = ?", number)), None)

    def latest(self, count: int) -> Sequence[Row]:
        return self._select("ORDER BY number DESC LIMIT ?", count)

    def asked(self, question: str) -> Row | None:
        if self.version == 1:
            return None
        return next(iter(self._select("WHERE question = ? ORDER BY number LIMIT 1", question)), None)

    def answering(self, query: str) -> Row | None:
        if self.version < SCHEMA_VERSION:  # which allowed one release
            return next((row for row in self._select(_RELEASES) if query_digest(query) in _answers(row)), None)
        found = self._execute("SELECT number FROM answered WHERE query = ? ORDER BY number LIMIT 1", (query_digest(query),))
        return self.at(found[0][0]) if found else None

    def every(self) -> Iterator[Row]:
        last: int | None = None
        while part := self._select("WHERE number > ? ORDER BY number LIMIT ?", -(2**63) if last is None else last, _PART):
            yield from part
            last = part[-1][0]

    def insert(self, row: Row) -> None:
        if self.version < SCHEMA_VERSION:
            upgrade(self._execute, self.version)
            self.version = SCHEMA_VERSION
        _insert(self._execute, row)

    def _select(self, rest: str, *values: Any) -> list[Row]:
        return [tuple(row) for row in self._execute(f"SELECT {self._columns} FROM entries {rest}", values)]


def _version(meta: dict[Any, Any]) -> int:
    version = str(meta.get("schema_version"))
    if meta.get("format") != FORMAT or not (version.isascii() and version.isdigit()):
        raise NoLedgerError
    if not 1 <= int(version) <= SCHEMA_VERSION:
        raise WrongVersionError(version[:9])
    return int(version)


def create(execute: Execute, row: Row, *, integer: str = "INTEGER", more: Sequence[str] = ()) -> None:
    """The tables and the first entry, in the caller's transaction."""
    for statement in (_META, _ENTRIES.format(integer=integer), *more):
        execute(statement, ())
    execute("INSERT INTO meta VALUES (?, ?), (?, ?)", ("format", FORMAT, "schema_version", "1"))
    upgrade(execute, 1, integer)
    _insert(execute, row)


def upgrade(execute: Execute, version: int, integer: str = "BIGINT") -> None:
    """From an earlier version to this one."""
    if version == 1:
        for name in _ADDED:
            execute(f"ALTER TABLE entries ADD COLUMN {name} TEXT", ())
        execute(_INDEX, ())
    execute(_ANSWERED.format(integer=integer), ())
    execute(_ANSWERED_INDEX, ())
    for row in execute(f"SELECT {', '.join(COLUMNS)} FROM entries {_RELEASES}", ()):
        _index(execute, tuple(row))
    execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(SCHEMA_VERSION),))


def _insert(execute: Execute, row: Row) -> None:
    places = ", ".join("?" * len(COLUMNS))
    execute(f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({places})", row)
    _index(execute, row)


def _index(execute: Execute, row: Row) -> None:
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
