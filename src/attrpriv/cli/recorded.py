"""`attrpriv ledger`: what was released, whether the record is whole, and its proofs once more. Reads no row of the table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from attrpriv.accounting.ledger import Belonging, Verified, verified
from attrpriv.cli.guard import console
from attrpriv.errors import UsageError
from attrpriv.policy import Policy

if TYPE_CHECKING:
    from attrpriv.accounting.hash_chain import Entry
    from attrpriv.session.record import Rechecked


@dataclass(frozen=True)
class Recorded:
    """The entries, and what was asked about them; to be verified alone, they need not be kept."""

    entries: tuple[Entry, ...] | None
    verified: Verified | None
    rechecked: Rechecked | None

    @classmethod
    def read(cls, path: Path, *, verify: bool, head: str | None, recheck: bool) -> Self:
        """From the ledger of a policy; from a record where the file's name ends in .json and a check is asked for."""
        if head is not None and not verify:
            raise UsageError("head: is for --verify. Got it without.")
        if path.suffix == ".json" and (verify or recheck):
            from attrpriv.session.record import read_document

            return cls._checked(f"record {str(path)!r}", read_document(path), verify=verify, head=head, recheck=recheck)
        ledger = Belonging.of(Policy.load(path)).ledger()
        if verify and not recheck:
            return cls(None, ledger.verify(head), None)
        return cls._checked(ledger.name, ledger.entries(), verify=verify, head=head, recheck=recheck)

    @classmethod
    def _checked(cls, name: str, entries: tuple[Entry, ...], *, verify: bool, head: str | None, recheck: bool) -> Self:
        shown = verified(name, [entry.digest for entry in entries], head) if verify else None
        if not recheck:
            return cls(entries, shown, None)
        from attrpriv.session.record import recheck as prove_again

        return cls(entries, shown, prove_again(name, entries))

    @property
    def count(self) -> int:
        """How many entries there are."""
        return self.verified.entries if self.verified is not None else len(self.entries or ())

    def left(self) -> list[tuple[str, float]]:
        """What was left of the budget after each entry."""
        if self.entries is None:
            raise UsageError("plot: needs the entries, which --verify alone does not keep. Leave one of them out.")
        from attrpriv.session.ledger_record import LedgerRecord

        return LedgerRecord(self.entries).left()

    def to_json(self) -> dict[str, Any]:
        if self.verified is None and self.rechecked is None:
            from attrpriv.session.record import document

            return document(self.entries or ())
        told: dict[str, Any] = {"schema_version": 1, "entries": self.count}
        if self.verified is not None:
            told["verified"] = self.verified.to_json()
        return told if self.rechecked is None else {**told, "rechecked": self.rechecked.to_json()}


def show(found: Recorded) -> None:
    if found.verified is None and found.rechecked is None:
        from attrpriv.cli import render
        from attrpriv.session.record import budget

        render.show_ledger(found.entries or (), budget(found.entries or ()))
        return
    shown = console()
    count = f"{found.count:,} entr{'y' if found.count == 1 else 'ies'}"
    if found.verified is not None:
        shown.print(f"[green]ok[/green] {count}, each as it was written and linked to the one before.")
        for line in _end(found.verified):
            shown.print(line)
    if found.rechecked is not None:
        proofs = f"{found.rechecked.certificates:,} different certificate{'' if found.rechecked.certificates == 1 else 's'}"
        shown.print(f"[green]ok[/green] {count}: {proofs} and the rule for all of them hold. No data was read.")
        again = f"{found.rechecked.planned_again:,} of {found.rechecked.releases:,}"
        shown.print(f"planned again from the stated policy, and found to have the noise it asks for: {again} releases.")


def _end(told: Verified) -> list[str]:
    """Whether the end of the chain may be missing."""
    if told.head is None:
        return ["nothing has been released, as far as this ledger knows."]
    head = f"head digest {told.head}"
    if told.kept is None:
        return [
            "whether entries were cut off at the end cannot be told: that needs --head and a digest that a release printed.",
            head,
        ]
    since = told.entries - told.kept
    later = "nothing was added since" if since == 0 else f"{since:,} added since"
    return [f"the digest you kept is that of entry {told.kept}: nothing up to it was cut off; {later}.", head]
