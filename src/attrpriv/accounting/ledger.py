"""The ledger: what was released about one table, and the one way to add to it.

What must never change:
- `commit` returns only after the entry is durable, so a caller that shows the value afterwards can never show one that the
  ledger does not know. After a crash it may know an answer that nobody saw; the reverse cannot happen.
- Whether an entry is allowed is decided inside the write transaction, by an accountant (`rules`), so two processes cannot
  spend the same budget.
- One question has one answer: where the question of a new release is recorded already, `commit` writes nothing and raises
  `AnsweredError` with the recorded entry.
- Of the table, only the released `answers` are stored, and a view's secret state, apart from the entries, in the owner's file.
  No error prints them, or the text of another error.

Entries are chained by SHA-256 (`chain`, `history`). That shows accidents and careless edits; an owner who rewrites the end of
the chain, or cuts it off, is found out by whoever kept a later digest (`verify`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from attrpriv.accounting import hash_chain as chain
from attrpriv.accounting import storage
from attrpriv.accounting.hash_chain import ChainError, Entry, History, Kind, Rows, canonical_json, entry_of
from attrpriv.accounting.standing import Accountant, one_release_or_one_view
from attrpriv.errors import PolicyError, RefusedError, UsageError
from attrpriv.policy.models import Policy
from attrpriv.problem.places import (
    declared_name,
    files_of,
    identities,
    is_remote,
    is_url,
    ledger_beside,
    resolved,
    table_name,
    usable,
)

T = TypeVar("T")


class AnsweredError(RefusedError):
    """The question was answered before: `entry` holds the answer, `head` is the digest of the ledger's last entry."""

    def __init__(self, entry: Entry, head: str) -> None:
        super().__init__(f"entry {entry.number} of the ledger holds the answer to this question.")
        self.entry = entry
        self.head = head


@dataclass(frozen=True)
class Verified:
    """A chain that holds from its first entry to its last. `kept`: the number of the entry whose digest the caller kept."""

    entries: int
    head: str | None
    kept: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"schema_version": 1, "entries": self.entries, "head": self.head, "kept": self.kept}


class Ledger:
    """The ledger at a path, or at a PostgreSQL URL. Constructing it touches nothing; one that does not exist is empty."""

    def __init__(self, place: str | Path, table: str | None = None) -> None:
        self.place = usable("ledger", place)
        self._storage = storage.storage_at(place, table)

    @property
    def name(self) -> str:
        """The ledger in words, without any password."""
        return self._storage.name

    def look(self, at: Callable[[History], T]) -> T:
        """What `at` makes of the ledger at one moment; reading never creates anything."""
        return self._intact(lambda: self._storage.read(lambda rows: at(History(rows))))

    def entries(self) -> tuple[Entry, ...]:
        """Everything released so far, all of it checked."""
        return self.look(History.entries)

    def first(self) -> Entry | None:
        return self.look(lambda history: history.first)

    def answered(self, question: str) -> AnsweredError | None:
        """The recorded answer to a question (`chain.question_digest`), or None."""
        return self.look(lambda history: _answered(history, question))

    def refuse(self, kind: Kind) -> None:
        """Raise `RefusedError` if nothing of this kind may follow what is recorded; reads only."""
        self.look(one_release_or_one_view(self.name, kind))

    def view_state(self) -> Any | None:
        """The secret state of the view that was drawn; None if there is no view."""
        first = self.first()
        if first is None or first.kind != "view":
            return None
        state = None
        with suppress(TypeError, ValueError, RecursionError):
            state = json.loads(self._storage.state() or "null")
        if state is None:
            raise storage.changed(self.name)
        return state

    def commit(
        self,
        *,
        kind: Kind = "release",
        time: str,
        policy_digest: str,
        plan: Any,
        answers: Any,
        details: Any = None,
        state: Any = None,
        allowed: Accountant | None = None,
    ) -> Entry:
        """Record one entry (with a view, also its secret state); when this returns, it is durable."""
        said = chain.contents(kind=kind, time=time, policy_digest=policy_digest, plan=plan, answers=answers, details=details)
        secret = chain.json_value("state", state)
        if (kind == "view") != (secret is not None):
            raise UsageError("state: a view has one, and nothing else has. Got something else.")
        if secret is not None:
            self._storage.require_state()
        decide = one_release_or_one_view(self.name, kind) if allowed is None else allowed
        made: list[Entry] = []

        def add(rows: Rows | None) -> tuple[chain.Row, str | None]:
            made.append(_decided(History(rows), said, decide))
            return chain.row_of(made[-1]), None if secret is None else canonical_json(secret)

        self._intact(lambda: self._storage.write(add))
        return made[-1]

    def verify(self, head: str | None = None) -> Verified:
        """Check every entry; with `head`, a digest that was kept, also that the entry of that digest is still there."""
        return verified(self.name, self.look(History.digests), head)

    def _intact(self, action: Callable[[], T]) -> T:
        with suppress(ChainError):
            return action()
        raise storage.changed(self.name)


def _decided(history: History, said: dict[str, Any], decide: Accountant) -> Entry:
    """The new entry, if it is allowed after this history."""
    planned = chain.next_entry(said, None, history.head)
    found = None if planned.question is None else _answered(history, planned.question)
    if found is not None:
        raise found
    account = decide(history)
    return planned if account is None else chain.next_entry(said, account, history.head)


def _answered(history: History, question: str) -> AnsweredError | None:
    entry, head = history.find(question), history.head
    return None if entry is None or head is None else AnsweredError(entry, head.digest)


def verified(name: str, digests: Sequence[str], head: str | None = None) -> Verified:
    """What a whole, checked chain shows, by its digests; a kept one that is not there: the end was cut off or rewritten."""
    last = digests[-1] if digests else None
    if head is None:
        return Verified(len(digests), last)
    if len(head) != 64 or not set(head) <= set("0123456789abcdef"):
        raise UsageError("head: must be a whole digest, 64 hexadecimal digits, as a release prints it. Got something else.")
    if head not in digests:
        raise RefusedError(
            f"{name}: must hold the entry of the digest that you kept. Got one without it: its end was cut off "
            "or rewritten. Restore it from a backup; without it nobody knows what was released."
        )
    return Verified(len(digests), last, digests.index(head) + 1)


# ----------------------------------------------------------------------------------------------------------------------------
# Which ledger belongs to a table, what the table is called in it, and which other ledgers hold releases of the same table.
#
# A ledger stores the table's path, seen from its own folder. A file has many paths: a link's, a hard link's, a pattern's that
# matches nothing else. So files are compared by what they are (`places.identities`), and the name that was recorded first
# stays.
#
# What must never change: nothing is read but what ledgers say of themselves, and another ledger is never written to, waited for
# or believed: it may be why a line is shown, and decides nothing.


ANOTHER = "another ledger:"


@dataclass(frozen=True)
class Belonging:
    """A table, as a session is given it, and the place of its ledger; None where nobody says it."""

    policy: Policy
    data: object = field(repr=False)
    place: str | Path | None

    @classmethod
    def of(cls, policy: Policy, data: object = None, ledger: str | Path | None = None) -> Belonging:
        """By default the policy's own table, and the ledger that is named after the table."""
        table = usable("data", data if data is not None else policy.data_path())
        if table is None:
            raise PolicyError("data: must be given in the policy or to Session. Got neither.")
        if ledger is None:
            return cls(policy, table, policy.ledger_path(table if isinstance(table, str | Path) else None))
        return cls(policy, table, ledger if is_url(ledger) else Path(ledger))

    @property
    def table(self) -> str | Path | None:
        """Where the table is; one in memory is what the policy says it is, or nameless."""
        return self.data if isinstance(self.data, str | Path) else self.policy.data_path()

    def ledger(self) -> Ledger:
        if self.place is None:
            raise UsageError(
                'ledger: must be a path when the table is in memory, as in Session(table, policy, ledger="x.ledger").'
            )
        return Ledger(self.place, None if self.table is None else table_name(resolved(self.table)))

    def named(self, recorded: str | None = None) -> str | None:
        """The table's name in the ledger: what is recorded, where that is this very table, whatever it is called now."""
        if self.table is None:
            return None
        return recorded if recorded is not None and self._is(recorded) else declared_name(self.table, self.place)

    def _is(self, recorded: str) -> bool:
        if self.table is None or self.place is None or is_remote(self.table) or is_remote(recorded):
            return False
        if is_url(self.place):  # which knows a file by its name alone; earlier versions recorded a pattern as it is written
            return recorded == Path(self.table).name
        return identities(_seen_from(self.place, recorded)) == identities(self.table)

    def others(self) -> tuple[str, ...]:
        """A line for each other ledger beside this one, or beside the table or the policy, that knows the same table."""
        if self.place is None or self.table is None:
            return ()
        names = [declared_name(path, self.place) for path in self._neighbours() if self._knows(path)]
        return tuple(
            f"{ANOTHER} {name} holds releases of this table too. What is left here does not count them, and together they may "
            "tell what each one hides. Release from one ledger alone."
            for name in names
        )

    def _neighbours(self) -> Iterator[Path]:
        """Every file that is called like a ledger, in the folders where this table's would be looked for; but its own."""
        own = None if self.place is None or is_url(self.place) else Path(self.place)
        near = [] if self.table is None else [path.parent for path in files_of(self.table)]
        near += [path.parent for path in (own, self.policy.origin) if path is not None]
        endings = (".ledger", *([own.suffix] if own is not None and own.suffix else []))
        for folder in dict.fromkeys(os.path.realpath(one) for one in near):
            with suppress(OSError):
                for name in sorted(os.listdir(folder)):
                    path = Path(folder, name)
                    if name.endswith(endings) and path.is_file() and not (own and identities(path) == identities(own)):
                        yield path

    def _knows(self, path: Path) -> bool:
        """Whether the ledger at `path` holds releases of this table, or of one that has a file of it."""
        told = named_by(path)
        if told is None or self.table is None:
            return False
        if not told:  # of a view that an earlier version drew: its ledger's own name tells, if anything
            return path.name == ledger_beside(resolved(self.table)).name
        if is_remote(self.table) or is_remote(told):
            return told == declared_name(self.table)
        return bool(identities(_seen_from(path, told)) & identities(self.table))


def _seen_from(ledger: str | Path, recorded: str) -> Path:
    return Path(os.path.realpath(ledger)).parent / recorded


def named_by(path: Path) -> str | None:
    """The table that the first entry of a ledger names, or "" if it names none; None: there is no ledger that can be read."""
    from attrpriv.accounting.storage_sqlite import first_row

    row = first_row(path)
    with suppress(ChainError):
        entry = None if row is None else entry_of(row)
        kept = () if entry is None else (entry.account, entry.details)
        tables = [one["table"] for one in kept if isinstance(one, Mapping) and isinstance(one.get("table"), str)]
        return None if entry is None else next(iter(tables), "")
    return None


__all__ = ["AnsweredError", "Belonging", "Entry", "Ledger", "Verified", "canonical_json", "verified"]
