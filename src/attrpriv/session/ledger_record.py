"""Everything the ledger of one table holds, as a value: what `Session.ledger` returns, and what a session says of it.

What must never change: it is what was recorded and checked at one moment, and it cannot write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from attrpriv.accounting.hash_chain import Entry
from attrpriv.accounting.ledger import Belonging, Verified
from attrpriv.accounting.standing import LedgerState
from attrpriv.formatting import answer, printable
from attrpriv.policy import Policy
from attrpriv.session.record import budget, document
from attrpriv.session.turns import in_turns

_WITHOUT_ANSWER = {
    "view": ("the view was drawn", ""),
    "failure": ("a release that failed", "nothing"),
}

_NOT_DRAWN = ("the view could not be drawn", "nothing")


@dataclass(frozen=True)
class LedgerRecord:
    """The entries, each checked, in order."""

    entries: tuple[Entry, ...]

    @property
    def head(self) -> str | None:
        """The digest of the last entry, to keep: with it, nobody can cut off the ledger's end unnoticed."""
        return self.entries[-1].digest if self.entries else None

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Entry, what, value and time of everything recorded, as people read it."""
        found = []
        for entry in self.entries:
            if entry.kind in _WITHOUT_ANSWER:
                told = _NOT_DRAWN if entry.kind == "view" and "failed" in entry.plan else _WITHOUT_ANSWER[entry.kind]
                found.append((str(entry.number), *told, entry.time))
            if entry.kind == "outside":
                found.append((str(entry.number), f"outside: {entry.plan[0]['what']}", f"b {entry.plan[0]['b']:g}", entry.time))
            if entry.number > 1 and isinstance(entry.account, dict) and "stated" in entry.account:
                found.append((str(entry.number), "under a tightened policy:", "", entry.time))
            found += [(str(entry.number), name, value, entry.time) for name, value in _answers(entry)]
        return found

    def to_json(self) -> dict[str, Any]:
        """The complete public record, as `attrpriv ledger --json` prints it."""
        return document(self.entries)

    def _repr_html_(self) -> str:
        from attrpriv.notebook.html import ledger_html

        return ledger_html(self)

    def __str__(self) -> str:
        if not self.entries:
            return "nothing has been released."
        rows = [printable("  ".join(filter(None, row))) for row in self.rows()]
        return "\n".join([*rows, *self.budget, f"head digest {self.head}"])

    def left(self) -> list[tuple[str, float]]:
        """After each entry that spends or may spend: its number and time, and the share of the budget that was left."""
        found = []
        for place, entry in enumerate(self.entries):
            told = budget(self.entries[: place + 1])
            found += [] if told is None else [(f"entry {entry.number}, {entry.time}", float(told["left"]))]
        return found

    def plot(self, ax: Any = None) -> Any:
        """The budget that was left after each entry, on these axes or new ones. Needs the extra `plots`."""
        from attrpriv.pictures import subjects
        from attrpriv.pictures.figures import draw

        return draw(subjects.budget(self.left()), ax)

    @property
    def budget(self) -> tuple[str, ...]:
        """What all releases share and how much of it is left, in a line; none where there is nothing to share."""
        told = budget(self.entries)
        if told is None:
            return ()
        shared = f"epsilon {told['epsilon']:g}, delta {told['delta']:g} for everything together"
        return (f"budget {shared}; {told['left']:.1%} of it is left",)

    def __repr__(self) -> str:
        return f"<LedgerRecord: {len(self.entries)} entr{'y' if len(self.entries) == 1 else 'ies'}, head {self.head}>"


def _answers(entry: Entry) -> Iterator[tuple[str, str]]:
    for answered in entry.answers:
        for value in answered.get("groups", [answered]):
            name = answered["query"] if "group" not in value else f"{answered['query']}: {value['group']}"
            ends = value["interval"] or {"low": 0.0, "high": abs(value["value"]) * 1e-3}  # no interval is known
            yield name, answer(value["value"], (ends["high"] - ends["low"]) / 4)


@in_turns
class Recorded:
    """What a session says of its ledger."""

    policy: Policy
    _belongs: Belonging

    @property
    def left(self) -> float:
        """The share of the table's budget that is left."""
        return self._belongs.ledger().look(LedgerState.of).left(self.policy.epsilon, self.policy.delta)

    def recorded(self) -> tuple[Entry, ...]:
        """Everything the ledger holds, checked."""
        return self._belongs.ledger().entries()

    @property
    def ledger(self) -> LedgerRecord:
        """The same as a value that a notebook shows."""
        return LedgerRecord(self.recorded())

    def verify(self, head: str | None = None) -> Verified:
        """Check every entry; with `head`, a digest that a release printed, also that nothing since was cut off."""
        return self._belongs.ledger().verify(head)
