"""Where a ledger is kept: one small interface, a file by default, PostgreSQL by URL.

What must never change, for every kind of storage:
- `write` calls `add` inside one write transaction that no other process can enter, and returns only after the row is durable:
  it survives a power failure of the machine that keeps it.
- A ledger is complete or absent: tables and first entry are written in one transaction, and a write that fails leaves nothing.
- Errors are fixed texts that name the ledger and nothing it holds, and are chained to nothing: the text of a database's own
  error may quote an answer or a password.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from attrpriv.accounting.hash_chain import Row
from attrpriv.accounting.history import Rows
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
