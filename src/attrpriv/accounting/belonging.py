"""Which ledger belongs to a table, what the table is called in it, and which other ledgers hold releases of the same table.

A ledger stores the table's path, seen from its own folder. A file has many paths: a link's, a hard link's, a pattern's that
matches nothing else. So files are compared by what they are (`places.identities`), and the name that was recorded first stays.

What must never change: nothing is read but what ledgers say of themselves, and another ledger is never written to, waited for
or believed: it may be why a line is shown, and decides nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from attrpriv.accounting.hash_chain import ChainError, entry_of
from attrpriv.accounting.ledger import Ledger
from attrpriv.errors import PolicyError, UsageError
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
