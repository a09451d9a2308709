"""Entries of a ledger, and the digests that chain them.

    digest = SHA-256 of the canonical JSON of all other fields, without `details` and `account` where they are null
    previous = the digest of the entry before, 64 zeros for the first one

What must never change: the digest of an entry that was written.

A row is an entry as a database keeps it: JSON values as their canonical text. The text that was hashed can be put together from
those columns as they are, so a row is checked without being parsed. That loses nothing: an object is split into its members in
one way only, so rows whose columns are JSON and whose digest is right are what was written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from json.encoder import encode_basestring_ascii
from typing import Any, Literal, Protocol, TypeVar

from pydantic_core import from_json

from attrpriv.errors import UsageError

NO_PREVIOUS = "0" * 64

Kind = Literal["release", "failure", "view", "answer", "outside"]
KINDS: tuple[Kind, ...] = ("release", "failure", "view", "answer", "outside")
# What reads the table once and for all.
SPENDS = ("release", "failure")

COLUMNS = ("number", "kind", "time", "policy_digest", "plan", "answers", "details", "account", "previous", "digest", "question")
# number, then texts; details, account and question may be None.
Row = tuple[Any, ...]
_OPTIONAL = ("details", "account")
_JSON = ("plan", "answers", *_OPTIONAL)
# What a digest covers: name, place in a row, type, and whether the value is JSON as it is; in the order of canonical JSON.
_COVERED = tuple(
    (name, COLUMNS.index(name), int if name == "number" else str, name in (*_JSON, "number"))
    for name in sorted(set(COLUMNS) - {"digest", "question"})
)
# Made once: making an encoder takes longer than a short text.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class ChainError(Exception):
    """The ledger is not as it was written. Has no text: whoever catches it names the ledger."""


@dataclass(frozen=True)
class Entry:
    """A release call or its failure, a view, an answer, or what another library releases. All but a few fields are JSON.

    `details` is what `plan` leaves out and a release is rebuilt from; `account` is what the accountant wants to know next time.
    """

    number: int
    kind: Kind
    time: str
    policy_digest: str
    plan: Any
    answers: Any = field(repr=False)
    previous: str
    digest: str
    details: Any = field(default=None, repr=False)
    account: Any = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def question(self) -> str | None:
        """What a release answers, as a digest; None where asking again does not give this answer back."""
        if self.kind not in SPENDS or self.details is None:
            return None
        with suppress(KeyError, TypeError, IndexError):
            return question_digest(self.policy_digest, self.plan[0]["n"], (one["query"] for one in self.plan))
        return None


def question_digest(policy_digest: str, n: int, queries: Iterable[str]) -> str:
    """The same for the same queries, in any order, under the same policy on a table of as many rows."""
    return _hashed(canonical_json({"n": n, "policy_digest": policy_digest, "queries": sorted(set(queries))}))


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: keys sorted, no spaces, ASCII, no NaN (`ValueError`)."""
    return _ENCODER.encode(value)


# Writing.


def contents(*, kind: Kind, time: str, policy_digest: str, plan: Any, answers: Any, details: Any = None) -> dict[str, Any]:
    """What an entry says; its number, its account and its link to the one before come when it is written."""
    if kind not in KINDS:
        raise UsageError(f"kind: must be one of {', '.join(KINDS)}. Got something else.")
    return {
        "kind": kind,
        "time": _word("time", time),
        "policy_digest": _word("policy_digest", policy_digest),
        "plan": json_value("plan", plan),
        "answers": json_value("answers", answers),
        "details": json_value("details", details),
    }


def next_entry(said: Mapping[str, Any], account: Any, head: Entry | None) -> Entry:
    """The entry that says this after `head`."""
    complete = {**said, "account": json_value("account", account)}
    complete["number"] = 1 if head is None else head.number + 1
    complete["previous"] = NO_PREVIOUS if head is None else head.digest
    row = row_of(Entry(**complete, digest=""))
    return Entry(**complete, digest=digest_of(row))


def row_of(entry: Entry) -> Row:
    """The entry as a database keeps it."""
    values = {name: getattr(entry, name) for name in COLUMNS}
    texts = {name: canonical_json(values[name]) for name in _JSON if name not in _OPTIONAL or values[name] is not None}
    return tuple({**values, **texts}[name] for name in COLUMNS)


def _word(name: str, value: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isascii() or not value.isprintable():
        raise UsageError(f"{name}: must be a short line of ASCII text. Got something else.")
    return value


def json_value(name: str, value: Any) -> Any:
    """`value` as reading it back will give it. The error never quotes it."""
    with suppress(TypeError, ValueError, RecursionError):
        return json.loads(canonical_json(value))
    raise UsageError(f"{name}: must be a JSON value without NaN or infinities. Got something else.")


# Reading.


def digest_of(row: Row) -> str:
    """The digest that belongs to a row, from its columns as they are."""
    if len(row) != len(COLUMNS):
        raise ChainError
    return _hashed("{" + ",".join(_parts(row)) + "}")


def _parts(row: Row) -> Iterator[str]:
    for name, place, kind, written in _COVERED:
        value = row[place]
        if value is None and name in _OPTIONAL:
            continue
        if not isinstance(value, kind):
            raise ChainError
        yield f'"{name}":{value if written else encode_basestring_ascii(str(value))}'


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def require_written(row: Row) -> None:
    """`ChainError` unless the row has its digest."""
    if digest_of(row) != row[COLUMNS.index("digest")]:
        raise ChainError


def require_linked(rows: Sequence[Row]) -> None:
    """`ChainError` unless each of these rows is numbered after the one before and names its digest."""
    number, previous, digest = (COLUMNS.index(name) for name in ("number", "previous", "digest"))
    for before, after in pairwise(rows):
        if after[number] != before[number] + 1 or after[previous] != before[digest]:
            raise ChainError


def entry_of(row: Row, read: Callable[[str], Any] = json.loads) -> Entry:
    """The entry that a row holds; `ChainError` if the row is not exactly what `row_of` writes."""
    require_written(row)
    values = dict(zip(COLUMNS, row, strict=True))
    question = values.pop("question")
    if values["kind"] not in KINDS:
        raise ChainError
    with suppress(ValueError, RecursionError):
        entry = Entry(**{name: read(v) if name in _JSON and v is not None else v for name, v in values.items()})
        if entry.question == question:
            return entry
    raise ChainError


def checked(row: Row) -> Entry:
    """The same for a look that keeps nothing but the digest: values are read by another reader, in half the time."""
    return entry_of(row, _read_fast)


def _read_fast(text: str) -> Any:
    """As `json.loads`; what the fast reader does not take, such as half of a surrogate pair, that one may."""
    with suppress(ValueError):
        return from_json(text, cache_strings=False)
    return json.loads(text)


def linked(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, checked one by one before, as they come; `ChainError` unless they are a whole chain from its first one."""
    previous = NO_PREVIOUS
    for number, entry in enumerate(entries, 1):
        if (entry.number, entry.previous) != (number, previous):
            raise ChainError
        previous = entry.digest
        yield entry


def require_chain(entries: Iterable[Entry]) -> None:
    """The same, for entries that are at hand."""
    for _ in linked(entries):
        pass


# ----------------------------------------------------------------------------------------------------------------------------
# What a ledger holds at one moment: what an accountant decides on, within one transaction.
#
# What must never change: nothing is handed out unchecked. An entry's digest is computed anew when it is handed out, and the one
# after it must name that digest, so an entry that a decision was built on is as it was written, or everything after it was
# rewritten too, which only a remembered head digest can show.
#
# Not every entry is read for every decision: with ten thousand that would take a second. On opening, the numbers must be
# complete, and the first and the last `WINDOW` entries as written and linked. An older entry is checked when somebody asks
# for it; `entries` and `digests` ask for all. So an edit further back is found before it can mislead anybody, and by
# `Ledger.verify` in any case.


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
