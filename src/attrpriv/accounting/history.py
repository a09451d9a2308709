"""What a ledger holds at one moment: what an accountant decides on, within one transaction.

What must never change: nothing is handed out unchecked. An entry's digest is computed anew when it is handed out, and the one
after it must name that digest, so an entry that a decision was built on is as it was written, or everything after it was
rewritten too, which only a remembered head digest can show.

Not every entry is read for every decision: with ten thousand that would take a second. On opening, the numbers must be
complete, and the first and the last `WINDOW` entries as written and linked. An older entry is checked when somebody asks for
it; `entries` and `digests` ask for all. So an edit further back is found before it can mislead anybody, and by `Ledger.verify`
in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from attrpriv.accounting.hash_chain import (
    NO_PREVIOUS,
    SPENDS,
    ChainError,
    Entry,
    Row,
    checked,
    entry_of,
    linked,
    require_linked,
    require_written,
)

WINDOW = 16
T = TypeVar("T")


class Rows(Protocol):
    """The rows of a ledger that has been created, in one transaction."""

    def size(self) -> tuple[int, int]:
        """How many there are, and the largest number; (0, 0) without any."""

    def at(self, number: int) -> Row | None:
        """The row of this number."""

    def latest(self, count: int) -> Sequence[Row]:
        """The last rows, the last one first."""

    def asked(self, question: str) -> Row | None:
        """The first row that answers this question."""

    def answering(self, query: str) -> Row | None:
        """The first row of a release that answers this query, or that failed to."""

    def every(self) -> Iterable[Row]:
        """All rows, by number."""


class History:
    """Entries so far, read as they are asked for. Valid only as long as its transaction."""

    def __init__(self, rows: Rows | None) -> None:
        self._rows = rows
        self._size = 0 if rows is None else _opened(rows)

    def __len__(self) -> int:
        return self._size

    @property
    def first(self) -> Entry | None:
        return self.entry(1) if self._size else None

    @property
    def head(self) -> Entry | None:
        return self.entry(self._size) if self._size else None

    def entry(self, number: int) -> Entry:
        """The entry of this number, checked."""
        return self._checked(None if self._rows is None else self._rows.at(number))

    def find(self, question: str) -> Entry | None:
        """The entry that answered this question (`chain.question_digest`), checked."""
        row = None if self._rows is None else self._rows.asked(question)
        return None if row is None else self._checked(row)

    def answering(self, query: str) -> Entry | None:
        """The release that answered this query (its text), alone or among others, or that failed to; checked."""
        row = None if self._rows is None else self._rows.answering(query)
        entry = None if row is None else self._checked(row)
        if entry is not None and query not in _queries(entry):
            raise ChainError
        return entry

    def entries(self) -> tuple[Entry, ...]:
        """All of them, checked."""
        return self._all(tuple(self._each(entry_of)))

    def digests(self) -> tuple[str, ...]:
        """The digest of each of them, all checked as `entries` does; but none is kept, which with thousands takes longest."""
        return self._all(tuple(entry.digest for entry in self._each(checked)))

    def _each(self, read: Callable[[Row], Entry]) -> Iterator[Entry]:
        return linked(() if self._rows is None else map(read, self._rows.every()))

    def _all(self, found: tuple[T, ...]) -> tuple[T, ...]:
        if len(found) != self._size:
            raise ChainError
        return found

    def _checked(self, row: Row | None) -> Entry:
        if row is None or self._rows is None:
            raise ChainError
        entry = entry_of(row)
        if entry.number < self._size:
            after = self._rows.at(entry.number + 1)
            if after is None or entry_of(after).previous != entry.digest:
                raise ChainError
        return entry


class Replayed(History):
    """The first `size` of some entries that were checked before, for an accountant that decides again."""

    def __init__(self, entries: Sequence[Entry], size: int) -> None:
        super().__init__(None)
        self._entries, self._size = entries, size

    def entry(self, number: int) -> Entry:
        if not 0 < number <= self._size:
            raise ChainError
        return self._entries[number - 1]

    def find(self, question: str) -> Entry | None:
        return next((entry for entry in self.entries() if entry.question == question), None)

    def answering(self, query: str) -> Entry | None:
        return next((entry for entry in self.entries() if query in _queries(entry)), None)

    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries[: self._size])


def _queries(entry: Entry) -> list[str]:
    return [one["query"] for one in entry.plan] if entry.kind in SPENDS else []


def _opened(rows: Rows) -> int:
    """The number of entries, with the first and the last ones as written. A ledger never has none."""
    size, last = rows.size()
    first, latest = rows.at(1), rows.latest(WINDOW)
    if not 0 < size == last or first is None or entry_of(first).previous != NO_PREVIOUS or len(latest) != min(size, WINDOW):
        raise ChainError
    for row in latest:
        require_written(row)
    require_linked(latest[::-1])
    return size
