"""A ledger's tables and the statements on them, for every database.

    meta       format and schema version
    entries    one row an entry (`chain.COLUMNS`); `question` is indexed, and follows from the other columns
    answered   an index that nothing is believed from: the digest of each query that was answered, and the entry's number

What must never change: a ledger of another schema version is left alone.
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
    "plan TEXT NOT NULL, answers TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL, details TEXT, account TEXT, "
    "question TEXT)"
)
_INDEX = "CREATE INDEX entries_question ON entries (question)"
_ANSWERED = "CREATE TABLE answered (query TEXT NOT NULL, number {integer} NOT NULL)"
_ANSWERED_INDEX = "CREATE INDEX answered_query ON answered (query)"
_SELECTED = ", ".join(COLUMNS)
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
        _require_version(dict(execute("SELECT key, value FROM meta", ())))

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
        _insert(self._execute, row)

    def _select(self, rest: str, *values: Any) -> list[Row]:
        return [tuple(row) for row in self._execute(f"SELECT {_SELECTED} FROM entries {rest}", values)]


def _require_version(meta: dict[Any, Any]) -> None:
    version = str(meta.get("schema_version"))
    if meta.get("format") != FORMAT or not (version.isascii() and version.isdigit()):
        raise NoLedgerError
    if version != str(SCHEMA_VERSION):
        raise WrongVersionError(version[:9])


def create(execute: Execute, row: Row, *, integer: str = "INTEGER", more: Sequence[str] = ()) -> None:
    """The tables and the first entry, in the caller's transaction."""
    made = (_META, _ENTRIES.format(integer=integer), _INDEX, _ANSWERED.format(integer=integer), _ANSWERED_INDEX)
    for statement in (*made, *more):
        execute(statement, ())
    execute("INSERT INTO meta VALUES (?, ?), (?, ?)", ("format", FORMAT, "schema_version", str(SCHEMA_VERSION)))
    _insert(execute, row)


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
