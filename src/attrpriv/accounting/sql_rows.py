"""The rows of a ledger, and the statements that read and add them, for every database. Their tables are in `schema`.

What must never change: a row is added only if the database then holds just that row, as its last one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from attrpriv.accounting.hash_chain import COLUMNS, SPENDS, ChainError, Row
from attrpriv.accounting.schema import FORMAT, SCHEMA_VERSION, Execute, statements
from attrpriv.errors import UsageError

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
