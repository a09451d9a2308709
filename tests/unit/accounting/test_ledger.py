"""The ledger: one release call, or one view and its answers, recorded before anything is shown, whatever fails in between."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.accounting import hash_chain as chain
from attrpriv.accounting import storage
from attrpriv.accounting import storage as schema
from attrpriv.accounting import storage as sql_rows
from attrpriv.accounting import storage_sqlite as module
from attrpriv.accounting.hash_chain import WINDOW, Entry, History, Rows, canonical_json
from attrpriv.accounting.ledger import AnsweredError, Ledger
from attrpriv.accounting.standing import one_release_or_one_view
from attrpriv.errors import AttrprivError, RefusedError, UsageError

SECRET = 4711.25
RELEASE: dict[str, Any] = {
    "time": "2026-01-31T10:00:00Z",
    "policy_digest": "ab" * 32,
    "plan": {"query": "avg(weight)", "noise": {"scale": 0.1}},
    "answers": [SECRET],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "students.ledger"


@contextmanager
def fails(kind: type[AttrprivError], text: str) -> Iterator[None]:
    """The block raises `kind`, on one line, chained to nothing, and without the answer anywhere in what is printed."""
    with pytest.raises(kind, match=text) as caught:
        yield
    error = caught.value
    assert str(error).isprintable()
    assert error.__cause__ is None
    assert error.__context__ is None
    assert str(SECRET) not in "".join(traceback.format_exception(error))


def files(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


KEY = "5eed" * 16
STATE: dict[str, Any] = {"key": KEY, "thresholds": ["4711" * 16], "fingerprint": "0815"}
VIEW: dict[str, Any] = {**RELEASE, "kind": "view", "plan": {"cells": []}, "answers": [], "state": STATE}
ANSWER: dict[str, Any] = {**RELEASE, "kind": "answer"}
# A release that can be told again.
ASKED: dict[str, Any] = {**RELEASE, "plan": [{"query": "avg(weight)", "n": 400}], "details": {"columns": []}}


def insert(path: Path, state: Any = None, **contents: Any) -> Entry:
    """What another process does, without the turns that threads of this one take."""
    said = chain.contents(**{"kind": "release", **contents})
    made: list[Entry] = []

    def add(rows: Rows | None) -> tuple[chain.Row, str | None]:
        history = History(rows)
        one_release_or_one_view("rival", said["kind"])(history)
        made.append(chain.next_entry(said, None, history.head))
        return chain.row_of(made[0]), None if state is None else canonical_json(state)

    module._write(path, "rival", add)
    return made[0]


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


# What it is for.


def test_a_failed_release_spends_the_ledger_like_any_other(path: Path) -> None:
    entry = Ledger(path).commit(**(RELEASE | {"kind": "failure", "answers": []}))
    assert (entry.kind, entry.answers) == ("failure", [])
    assert Ledger(path).entries() == (entry,)
    for again in (RELEASE, RELEASE | {"kind": "failure", "answers": []}):
        with fails(RefusedError, "allows one release call"):
            Ledger(path).commit(**again)
    with fails(RefusedError, "must not be mixed"):
        Ledger(path).commit(**VIEW)


def test_nothing_fails_after_a_release_or_a_view(path: Path, tmp_path: Path) -> None:
    Ledger(path).commit(**RELEASE)
    with fails(RefusedError, "allows one release call"):
        Ledger(path).refuse("failure")
    Ledger(tmp_path / "view.ledger").commit(**VIEW)
    with fails(RefusedError, "must not be mixed"):
        Ledger(tmp_path / "view.ledger").refuse("failure")


def test_one_release_is_recorded_and_a_second_is_refused(path: Path) -> None:
    entry = Ledger(path).commit(**RELEASE)
    assert Ledger(path).entries() == (entry,)
    assert (entry.number, entry.kind, entry.previous, entry.answers) == (1, "release", "0" * 64, [SECRET])
    with fails(RefusedError, "allows one release call, of any number of queries together. Got a second one."):
        Ledger(path).commit(**RELEASE)
    with fails(RefusedError, "harmless alone can reveal the secret together. A second one needs a proof for both"):
        Ledger(path).refuse("release")
    assert Ledger(path).entries() == (entry,)
    assert files(path) == [path.name]


def test_construction_and_reading_touch_nothing(path: Path) -> None:
    ledger = Ledger(path)
    assert ledger.entries() == ()
    ledger.refuse("release")
    assert files(path) == []
    assert Ledger(path / "no" / "directory").entries() == ()


def test_reading_leaves_the_file_as_it_is(path: Path) -> None:
    Ledger(path).commit(**RELEASE)
    before, changed = path.read_bytes(), path.stat().st_mtime_ns
    Ledger(path).entries()
    assert path.read_bytes() == before
    assert path.stat().st_mtime_ns == changed
    assert files(path) == [path.name]


def test_only_the_owner_can_read_it(path: Path) -> None:
    Ledger(path).commit(**RELEASE)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_name_with_special_characters(tmp_path: Path) -> None:
    path = tmp_path / "a?b#c%20 'é.ledger"
    Ledger(path).commit(**RELEASE)
    assert files(path) == [path.name]


def test_the_order_on_disk_is_sync_lock_write_read_back_commit_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []

    def note(statement: str) -> None:
        assert not path.exists(), "a ledger has its name when it is complete, and not before"
        statements.append(statement)

    with_connection(monkeypatch, lambda connection: connection.set_trace_callback(note))
    Ledger(path).commit(**RELEASE)
    verbs = [statement.split()[0] for statement in statements]
    assert statements[:2] == ["PRAGMA synchronous = EXTRA", "BEGIN IMMEDIATE"]
    assert verbs.index("CREATE") < verbs.index("INSERT") < verbs.index("SELECT") < verbs.index("COMMIT")
    assert verbs.count("COMMIT") == 1
    assert statements[-1] == "PRAGMA journal_mode = WAL"
    assert files(path) == [path.name]


def test_a_later_entry_is_checked_written_read_back_and_committed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger(path).commit(**RELEASE)
    statements: list[str] = []
    with_connection(monkeypatch, lambda connection: connection.set_trace_callback(statements.append))
    Ledger(path).commit(**RELEASE, allowed=lambda history: None)
    verbs = [statement.split()[0] for statement in statements]
    assert statements[:3] == ["PRAGMA synchronous = EXTRA", "BEGIN IMMEDIATE", schema._MASTER]
    assert verbs[verbs.index("INSERT") :] == ["INSERT", "SELECT", "COMMIT", "PRAGMA", "PRAGMA"]


def test_from_the_second_entry_on_it_is_a_log_that_every_commit_syncs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger(path).commit(**VIEW)
    seen: list[Any] = []

    def note(connection: sqlite3.Connection) -> None:
        def traced(statement: str) -> None:
            if statement == "COMMIT":
                seen.append(connection.execute("PRAGMA synchronous").fetchone())

        connection.set_trace_callback(traced)
        seen.append(connection.execute("PRAGMA journal_mode").fetchone())

    with_connection(monkeypatch, note)
    Ledger(path).commit(**ANSWER)
    assert seen == [("wal",), (3,)]  # 3 is EXTRA
    assert files(path) == [path.name]


def test_a_file_that_cannot_have_a_log_keeps_its_journal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_log(connection: sqlite3.Connection) -> None:
        connection.set_authorizer(lambda action, name, value, *_: int((name, value) == ("journal_mode", "WAL")))

    with_connection(monkeypatch, no_log)
    Ledger(path).commit(**VIEW)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert len(Ledger(path).entries()) == 1


# A view and its answers.


def test_a_view_then_any_number_of_answers(path: Path) -> None:
    ledger = Ledger(path)
    ledger.refuse("view")
    view = ledger.commit(**VIEW)
    answers = [ledger.commit(**{**ANSWER, "answers": [k]}) for k in range(5)]
    assert Ledger(path).entries() == (view, *answers)
    assert [entry.kind for entry in Ledger(path).entries()] == ["view", *["answer"] * 5]
    assert [entry.previous for entry in answers] == [view.digest, *(entry.digest for entry in answers[:-1])]
    ledger.refuse("answer")
    assert files(path) == [path.name]


MIXED = "must not be mixed with"
REFUSED: list[tuple[list[dict[str, Any]], dict[str, Any], str]] = [
    ([], ANSWER, "holds no view to answer from. Draw it first."),
    ([RELEASE], RELEASE, "allows one release call"),
    ([RELEASE], VIEW, f"holds a release with noise, and {MIXED} a view of the same table"),
    ([RELEASE], ANSWER, f"holds a release with noise, and {MIXED} a view of the same table"),
    ([VIEW], RELEASE, f"holds a view, and {MIXED} a release with noise: together they can reveal what each one hides"),
    ([VIEW], VIEW, "holds the view of this table, which is never drawn again. Use the recorded one."),
    ([VIEW, ANSWER], RELEASE, MIXED),
    ([VIEW, ANSWER, ANSWER], VIEW, "never drawn again"),
]


@pytest.mark.parametrize(("held", "wanted", "message"), REFUSED)
def test_what_may_not_follow(path: Path, held: list[dict[str, Any]], wanted: dict[str, Any], message: str) -> None:
    for contents in held:
        Ledger(path).commit(**contents)
    before = path.read_bytes() if held else None
    with fails(RefusedError, message):
        Ledger(path).refuse(wanted.get("kind", "release"))
    with fails(RefusedError, message):
        Ledger(path).commit(**wanted)
    assert (path.read_bytes() if held else None) == before
    assert len(Ledger(path).entries()) == len(held)


def test_of_two_views_the_first_one_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process drew while this one did: its rows must not be handed out."""

    def overtake(connection: sqlite3.Connection) -> None:
        insert(path, **{**VIEW, "state": {**STATE, "key": "other"}})

    with_connection(monkeypatch, overtake)
    with fails(RefusedError, "never drawn again"):
        Ledger(path).commit(**VIEW)
    assert Ledger(path).view_state() == {**STATE, "key": "other"}


def test_the_secret_state_comes_back_and_shows_nowhere_else(path: Path) -> None:
    ledger = Ledger(path)
    assert ledger.view_state() is None
    assert files(path) == []
    entry = ledger.commit(**VIEW)
    assert ledger.view_state() == STATE
    ledger.commit(**ANSWER)
    assert ledger.view_state() == STATE
    printable = repr(ledger.entries()) + json.dumps([entry.to_json() for entry in ledger.entries()]) + repr(ledger) + str(entry)
    for value in (KEY, STATE["thresholds"][0], STATE["fingerprint"]):
        assert value not in printable
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_release_has_no_state(path: Path) -> None:
    Ledger(path).commit(**RELEASE)
    assert Ledger(path).view_state() is None


@pytest.mark.parametrize("contents", [{**RELEASE, "state": STATE}, {**ANSWER, "state": STATE}, {**VIEW, "state": None}])
def test_a_view_has_a_state_and_nothing_else_has(path: Path, contents: dict[str, Any]) -> None:
    with fails(UsageError, "^state: a view has one, and nothing else has. Got something else.$"):
        Ledger(path).commit(**contents)
    assert files(path) == []


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM secret_state",
        "UPDATE secret_state SET key = 'x'",
        "UPDATE secret_state SET value = 'no json'",
        "UPDATE secret_state SET value = 'null'",
        "UPDATE secret_state SET value = x'ff'",
    ],
)
def test_a_lost_state_is_found(path: Path, statement: str) -> None:
    Ledger(path).commit(**VIEW)
    edit(path, statement)
    with fails(RefusedError, "must be as attrpriv wrote it. Got one that was changed or damaged."):
        Ledger(path).view_state()


def test_a_state_that_is_no_json_is_refused_and_never_quoted(path: Path) -> None:
    with fails(UsageError, "^state: must be a JSON value without NaN or infinities. Got something else.$"):
        Ledger(path).commit(**{**VIEW, "state": {"key": SECRET, "x": float("nan")}})
    assert files(path) == []


def test_a_full_disk_leaves_no_view(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_connection(monkeypatch, lambda connection: connection.execute("PRAGMA max_page_count = 2"))
    with fails(UsageError, "must have room to grow. Got a full disk."):
        Ledger(path).commit(**VIEW)
    assert files(path) == []


def test_a_full_disk_keeps_the_view(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that does not fit: the view and the earlier answers stay."""
    view = Ledger(path).commit(**VIEW)
    with_connection(monkeypatch, lambda connection: connection.execute("PRAGMA max_page_count = 1"))
    with fails(UsageError, "must have room to grow. Got a full disk."):
        Ledger(path).commit(**{**ANSWER, "answers": "x" * 100_000})
    assert Ledger(path).entries() == (view,)
    assert Ledger(path).view_state() == STATE


# The entry.


def test_the_digest_covers_every_other_field(path: Path) -> None:
    entry = Ledger(path).commit(**RELEASE)
    covered = {**RELEASE, "kind": "release", "number": 1, "previous": "0" * 64}
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    assert entry.digest == hashlib.sha256(text.encode()).hexdigest()


def test_the_digest_covers_the_optional_fields_where_they_are_there(path: Path) -> None:
    entry = Ledger(path).commit(**RELEASE, details={"b": 1}, allowed=lambda history: {"left": len(history)})
    covered = {**RELEASE, "kind": "release", "number": 1, "previous": "0" * 64, "details": {"b": 1}, "account": {"left": 0}}
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    assert entry.digest == hashlib.sha256(text.encode()).hexdigest()
    assert Ledger(path).entries() == (entry,)


def test_an_entry_survives_json(path: Path) -> None:
    entry = Ledger(path).commit(**RELEASE)
    named = ["number", "kind", "time", "policy_digest", "plan", "answers", "previous", "digest", "details", "account"]
    assert list(entry.to_json()) == named
    assert Entry(**json.loads(json.dumps(entry.to_json(), allow_nan=False))) == entry


def test_to_json_is_a_copy_and_repr_hides_the_answers(path: Path) -> None:
    entry = Ledger(path).commit(**RELEASE)
    entry.to_json()["plan"].clear()
    assert entry.plan == RELEASE["plan"]
    assert str(SECRET) not in repr(entry)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda v: st.lists(v) | st.dictionaries(st.text(), v),
    max_leaves=10,
)


@settings(deadline=None)
@given(JSON)
def test_json_values_are_kept_as_they_are(value: Any) -> None:
    assert chain.json_value("plan", value) == value
    assert canonical_json(json.loads(canonical_json(value))) == canonical_json(value)


def test_values_come_back_as_json_gives_them(path: Path) -> None:
    entry = Ledger(path).commit(**{**RELEASE, "answers": {"b": (1, 2), "a": "\ud800é\0"}, "plan": None})
    assert entry.answers == {"a": "\ud800é\0", "b": [1, 2]}
    assert Ledger(path).entries() == (entry,)


@pytest.mark.parametrize("name", ["plan", "answers"])
@pytest.mark.parametrize(
    "value",
    [float("nan"), [SECRET, float("inf")], {"a": {SECRET}}, {(SECRET,): 1}, b"x", 10**5000],
    ids=lambda v: type(v),
)
def test_what_is_no_json_is_refused_before_anything_is_written(path: Path, name: str, value: Any) -> None:
    with fails(UsageError, f"^{name}: must be a JSON value without NaN or infinities. Got something else.$"):
        Ledger(path).commit(**{**RELEASE, name: value})
    assert files(path) == []


def test_a_circular_value_is_refused(path: Path) -> None:
    circular: list[Any] = []
    circular.append(circular)
    with fails(UsageError, "answers: must be a JSON value"):
        Ledger(path).commit(**{**RELEASE, "answers": circular})


@pytest.mark.parametrize("name", ["time", "policy_digest"])
@pytest.mark.parametrize("value", ["", "two\nlines", "é", "x" * 201, None, 5])
def test_time_and_digest_are_short_words(path: Path, name: str, value: Any) -> None:
    with fails(UsageError, f"^{name}: must be a short line of ASCII text. Got something else.$"):
        Ledger(path).commit(**{**RELEASE, name: value})
    assert files(path) == []


# One question, one answer.


def test_the_same_question_is_not_answered_twice(path: Path) -> None:
    entry = Ledger(path).commit(**ASKED)
    assert entry.question is not None
    before = path.read_bytes()
    with pytest.raises(AnsweredError) as caught:
        Ledger(path).commit(**{**ASKED, "answers": [1.0], "time": "later"}, allowed=lambda history: None)
    assert (caught.value.entry, caught.value.head) == (entry, entry.digest)
    assert path.read_bytes() == before
    found = Ledger(path).answered(entry.question)
    assert found is not None
    assert found.entry == entry
    assert Ledger(path).answered("0" * 64) is None


OTHER_QUESTIONS: dict[str, dict[str, Any]] = {
    "another query": {**ASKED, "plan": [{"query": "avg(height)", "n": 400}]},
    "one more": {**ASKED, "plan": [{"query": "avg(weight)", "n": 400}, {"query": "avg(height)", "n": 400}]},
    "more rows": {**ASKED, "plan": [{"query": "avg(weight)", "n": 401}]},
    "another policy": {**ASKED, "policy_digest": "cd" * 32},
}


@pytest.mark.parametrize("name", OTHER_QUESTIONS)
def test_another_question_is_one(path: Path, name: str) -> None:
    first = Ledger(path).commit(**ASKED)
    with fails(RefusedError, "Got a second one."):
        Ledger(path).commit(**OTHER_QUESTIONS[name])
    second = Ledger(path).commit(**OTHER_QUESTIONS[name], allowed=lambda history: None)
    assert second.question != first.question
    assert Ledger(path).entries() == (first, second)


def test_a_question_is_a_set_of_queries() -> None:
    asked = chain.question_digest("ab", 10, ["avg(a)", "avg(b)"])
    assert chain.question_digest("ab", 10, ["avg(b)", "avg(a)", "avg(b)"]) == asked
    assert chain.question_digest("ab", 10, ["avg(b), avg(a)"]) != asked


def test_a_failure_is_an_answer_and_a_view_is_none(path: Path) -> None:
    failure = Ledger(path).commit(**{**ASKED, "kind": "failure", "answers": []})
    assert failure.question is not None
    assert chain.next_entry(chain.contents(**{**ASKED, "kind": "answer"}), None, None).question is None
    assert chain.next_entry(chain.contents(**{**RELEASE, "kind": "release"}), None, None).question is None


# The accountant.


def test_an_accountant_decides_and_keeps_its_account(path: Path) -> None:
    """A budget of three: each entry says how much is left, and the fourth is refused."""

    def budget(history: History) -> dict[str, int]:
        left = 3 if history.head is None else history.head.account["left"]
        if left == 0:
            raise RefusedError("spent")
        return {"left": left - 1}

    for _ in range(3):
        Ledger(path).commit(**RELEASE, allowed=budget)
    with fails(RefusedError, "^spent$"):
        Ledger(path).commit(**RELEASE, allowed=budget)
    assert [entry.account for entry in Ledger(path).entries()] == [{"left": 2}, {"left": 1}, {"left": 0}]


def test_the_accountant_is_asked_inside_the_transaction(path: Path) -> None:
    """While it decides, nobody else can write."""
    Ledger(path).commit(**RELEASE)
    tried: list[str] = []

    def decide(history: History) -> None:
        with closing(sqlite3.connect(path, timeout=0)) as rival:
            try:
                rival.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                tried.append(str(error))

    Ledger(path).commit(**RELEASE, allowed=decide)
    assert tried == ["database is locked"]


def test_an_accountant_that_fails_leaves_nothing(path: Path) -> None:
    def broken(history: History) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Ledger(path).commit(**RELEASE, allowed=broken)
    assert files(path) == []


# Many entries: what is checked when.


def many(path: Path, count: int) -> tuple[Entry, ...]:
    """A ledger of so many entries, written at once."""
    made: list[Entry] = []

    def add(rows: Rows | None) -> tuple[chain.Row, None]:
        head = History(rows).head
        for k in range(2, count + 1):
            contents = {**ASKED, "kind": "release", "plan": [{"query": "avg(weight)", "n": 400 + k}], "answers": [k]}
            made.append(chain.next_entry(chain.contents(**contents), None, head))
            head = made[-1]
            if k < count:
                assert isinstance(rows, sql_rows.SqlRows)
                rows.insert(chain.row_of(head))
        return chain.row_of(made[-1]), None

    first = Ledger(path).commit(**ASKED)
    Ledger(path)._storage.write(add)
    return (first, *made)


EDITS = {
    "an answer": "UPDATE entries SET answers = '[0]' WHERE number = {k}",
    "an answer with its digest": f"UPDATE entries SET answers = '[0]', digest = '{'1' * 64}' WHERE number = {{k}}",
    "an entry gone": "DELETE FROM entries WHERE number = {k}",
    "a link": f"UPDATE entries SET previous = '{'1' * 64}' WHERE number = {{k}}",
    "two entries swapped": "UPDATE entries SET number = -1 WHERE number = {k}; "
    "UPDATE entries SET number = {k} WHERE number = {k} + 1; UPDATE entries SET number = {k} + 1 WHERE number = -1",
}


@pytest.mark.parametrize("edited", EDITS)
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_short_ledger_is_checked_whole_whenever_it_is_used(path: Path, edited: str, k: int) -> None:
    many(path, 5)
    edit(path, *EDITS[edited].format(k=k).split("; "))
    for use in (Ledger(path).first, Ledger(path).entries, lambda: Ledger(path).commit(**RELEASE, allowed=lambda history: None)):
        with fails(RefusedError, "was changed"):
            use()


@pytest.mark.parametrize("edited", EDITS)
def test_an_edit_far_back_in_a_long_ledger_is_found_when_it_is_read(path: Path, edited: str) -> None:
    entries = many(path, WINDOW + 20)
    edit(path, *EDITS[edited].format(k=10).split("; "))
    with fails(RefusedError, "was changed"):
        Ledger(path).entries()
    with fails(RefusedError, "was changed"):
        Ledger(path).verify()
    with fails(RefusedError, "was changed"):
        Ledger(path).look(lambda history: [history.entry(k) for k in (9, 10, 11)])
    if "answer" in edited:
        with fails(RefusedError, "was changed"):
            Ledger(path).answered(str(entries[9].question))


def test_a_long_ledger_is_not_read_whole_for_the_next_release(path: Path) -> None:
    """What the documentation says: the entries that decide are checked, the others by `verify`."""
    many(path, WINDOW + 20)
    edit(path, EDITS["an answer"].format(k=10))
    assert Ledger(path).first() is not None
    Ledger(path).commit(**RELEASE, allowed=lambda history: None)


def test_a_rewritten_digest_breaks_the_next_link(path: Path) -> None:
    """Somebody who can hash: the entry is consistent in itself, and the one after it does not name it."""
    entries = many(path, WINDOW + 20)
    contents = {**entries[9].to_json(), "answers": [0], "digest": ""}
    forged = chain.row_of(Entry(**{**contents, "digest": chain.digest_of(chain.row_of(Entry(**contents)))}))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM entries WHERE number = 10")
        sql_rows._insert(lambda statement, values: connection.execute(statement, values).fetchall(), forged)
    with fails(RefusedError, "was changed"):
        Ledger(path).look(lambda history: history.entry(10))
    with fails(RefusedError, "was changed"):
        Ledger(path).answered(str(entries[9].question))


def test_a_cut_end_is_found_by_a_digest_that_was_kept(path: Path) -> None:
    entries = many(path, 5)
    whole = Ledger(path).verify(entries[4].digest)
    assert (whole.entries, whole.head, whole.kept) == (5, entries[4].digest, 5)
    edit(path, "DELETE FROM entries WHERE number > 3")
    assert Ledger(path).verify().head == entries[2].digest, "without a digest nothing shows"
    assert Ledger(path).verify(entries[1].digest).kept == 2
    with fails(RefusedError, "must hold the entry of the digest that you kept. Got one without it: its end was cut off"):
        Ledger(path).verify(entries[4].digest)
    for digest in ("", entries[2].digest[:16], entries[2].digest.upper()):
        with fails(UsageError, "^head: must be a whole digest"):
            Ledger(path).verify(digest)


def test_an_empty_ledger_verifies_unless_a_digest_was_kept(path: Path) -> None:
    assert Ledger(path).verify().to_json() == {"schema_version": 1, "entries": 0, "head": None, "kept": None}
    with fails(RefusedError, "cut off"):
        Ledger(path).verify("ab" * 32)


# Edited ledgers and other files.


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET kind = 'view'",
        "UPDATE entries SET kind = 'diary'",
        "UPDATE entries SET time = '2027-01-31T10:00:00Z'",
        "UPDATE entries SET policy_digest = 'cd'",
        "UPDATE entries SET plan = '{}'",
        "UPDATE entries SET answers = '[1]'",
        "UPDATE entries SET answers = ' ' || answers",
        "UPDATE entries SET answers = 'NaN'",
        "UPDATE entries SET answers = 'no json'",
        "UPDATE entries SET answers = x'ff'",
        "UPDATE entries SET answers = CAST(x'ff' AS TEXT)",
        f"UPDATE entries SET answers = '{'[' * 100_000}'",
        f"UPDATE entries SET previous = '{'1' * 64}'",
        f"UPDATE entries SET digest = '{'1' * 64}'",
        "UPDATE entries SET number = 2",
        "UPDATE entries SET details = '{}'",
        "UPDATE entries SET account = '{}'",
        "UPDATE entries SET question = 'another'",
        "UPDATE entries SET question = NULL",
        "INSERT INTO entries SELECT 2, kind, time, policy_digest, plan, answers, digest, digest, details, account, NULL "
        "FROM entries",
        "DELETE FROM entries",
    ],
)
def test_a_changed_entry_is_found(path: Path, statement: str) -> None:
    Ledger(path).commit(**ASKED)
    edit(path, statement)
    uses: list[Callable[[], object]] = [Ledger(path).entries, Ledger(path).verify, lambda: Ledger(path).refuse("release")]
    uses.append(lambda: Ledger(path).commit(**RELEASE))
    for use in uses:
        with fails(RefusedError, "must be as attrpriv wrote it. Got one that was changed or damaged."):
            use()


def forged(path: Path, column: str, value: object) -> None:
    """Change a column of the only entry, and its digest with it: what only its JSON can show."""
    edit(path, f"UPDATE entries SET {column} = '{value}'")
    with closing(sqlite3.connect(path)) as connection, connection:
        (row,) = connection.execute(f"SELECT {', '.join(chain.COLUMNS)} FROM entries").fetchall()
        connection.execute("UPDATE entries SET digest = ?", [chain.digest_of(row)])


@pytest.mark.parametrize("value", ["", "no json", "[1,]", "{}{}", "01", "[" * 100_000, "\t\v1", '"\x01"', "[1e]", "nan"])
def test_what_is_no_json_is_found_whatever_its_digest(path: Path, value: str) -> None:
    Ledger(path).commit(**ASKED)
    forged(path, "answers", value)
    for use in (Ledger(path).entries, lambda: Ledger(path).verify().entries):
        with fails(RefusedError, "must be as attrpriv wrote it"):
            use()


def test_a_question_that_does_not_follow_is_found_whatever_its_digest(path: Path) -> None:
    Ledger(path).commit(**ASKED)
    forged(path, "plan", '[{"n":401,"query":"avg(weight)"}]')
    for use in (Ledger(path).entries, lambda: Ledger(path).verify().entries):
        with fails(RefusedError, "must be as attrpriv wrote it"):
            use()


@settings(deadline=None)
@given(JSON | st.just({"n": 1e300, "a": -0.0, "b": 5e-324, "c": 10**30}), st.integers(0, 10**9))
def test_the_fast_reader_reads_no_more_than_the_other(value: Any, place: int) -> None:
    """Texts that are JSON, and texts with one letter changed: the same value from both, or none from both."""
    text = canonical_json(value)
    for one in (text, text[: place % (len(text) + 1)] + '"]},\\1eE.-'[place % 10] + text[place % (len(text) + 1) + 1 :]):
        assert outcome(chain._read_fast, one) == outcome(json.loads, one)


def outcome(read: Callable[[str], Any], text: str) -> str:
    try:
        return repr(read(text))
    except (ValueError, RecursionError):
        return "no json"


def test_a_whole_chain_is_read_and_a_cut_one_refused(path: Path) -> None:
    first, second = (Ledger(path).commit(**RELEASE, allowed=lambda history: None) for _ in range(2))
    assert Ledger(path).entries() == (first, second)
    edit(path, "DELETE FROM entries WHERE number = 1")
    with fails(RefusedError, "was changed"):
        Ledger(path).entries()


def test_a_damaged_file_is_found(path: Path) -> None:
    Ledger(path).commit(**RELEASE)
    content = bytearray(path.read_bytes())
    content[4096:] = bytes(len(content) - 4096)  # every page but the first
    path.write_bytes(content)
    with fails(RefusedError, "was changed or damaged"):
        Ledger(path).entries()


def other_database(*statements: str) -> Callable[[Path], None]:
    return lambda path: edit(path, *statements)


STATE_TABLE = "CREATE TABLE secret_state (key TEXT, value TEXT)"
NO_LEDGER = {
    "text": lambda path: path.write_text("weight,income\n80,50000\n" * 100),
    "short text": lambda path: path.write_text("no"),
    "another database": other_database("CREATE TABLE students (weight REAL)"),
    "only one table": other_database("CREATE TABLE meta (key TEXT, value TEXT)"),
    "without secret state": other_database("CREATE TABLE meta (key TEXT, value TEXT)", "CREATE TABLE entries (y TEXT)"),
    "other columns": other_database("CREATE TABLE meta (x TEXT)", "CREATE TABLE entries (y TEXT)", STATE_TABLE),
    "no format": other_database("CREATE TABLE meta (key TEXT, value TEXT)", "CREATE TABLE entries (y TEXT)", STATE_TABLE),
    "another format": other_database(
        "CREATE TABLE meta (key TEXT, value TEXT)",
        "CREATE TABLE entries (y TEXT)",
        STATE_TABLE,
        "INSERT INTO meta VALUES ('format', 'diary'), ('schema_version', '1')",
    ),
    "no version": other_database(
        "CREATE TABLE meta (key TEXT, value TEXT)",
        "CREATE TABLE entries (y TEXT)",
        STATE_TABLE,
        "INSERT INTO meta VALUES ('format', 'attrpriv ledger'), ('schema_version', 'one')",
    ),
}


@pytest.mark.parametrize("name", NO_LEDGER)
def test_another_file_is_refused_and_left_alone(path: Path, name: str) -> None:
    NO_LEDGER[name](path)
    before = path.read_bytes()
    for use in (Ledger(path).entries, lambda: Ledger(path).commit(**RELEASE)):
        with fails(UsageError, "must be a ledger of attrpriv. Got another file."):
            use()
    assert path.read_bytes() == before
    assert files(path) == [path.name]


@pytest.mark.parametrize("version", [schema.SCHEMA_VERSION + 1, 2, 1, 0, 10**30])
def test_another_schema_version_is_refused_and_left_alone(path: Path, version: int) -> None:
    Ledger(path).commit(**RELEASE)
    edit(path, f"UPDATE meta SET value = '{version}' WHERE key = 'schema_version'", "DELETE FROM entries")
    before = path.read_bytes()
    for use in (Ledger(path).entries, lambda: Ledger(path).commit(**RELEASE)):
        with fails(UsageError, f"must have schema version 3. Got {str(version)[:9]}. Use the version of attrpriv"):
            use()
    assert path.read_bytes() == before


# Failures on the way.


def with_connection(
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[sqlite3.Connection], object],
    *,
    mode: Literal["write", "frozen"] = "write",
) -> None:
    """Let the first connection for writing be prepared (or opened) differently; later ones are as usual."""
    usual = module._open
    done: list[bool] = []

    def prepared(path: Path, asked: Literal["read", "write", "frozen"]) -> sqlite3.Connection:
        if asked != "write" or done:
            return usual(path, asked)
        done.append(True)
        connection = usual(path, mode)
        prepare(connection)
        return connection

    monkeypatch.setattr(module, "_open", prepared)


class Stubborn(sqlite3.Connection):
    """A connection that fails at COMMIT in the way a test asks for."""

    failure: BaseException = sqlite3.OperationalError("disk I/O error at 4711.25")

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        if sql == "COMMIT":
            raise self.failure
        return super().execute(sql, *arguments)


def stubborn(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(path, factory=Stubborn, isolation_level=None)


def test_a_missing_directory(path: Path) -> None:
    with fails(UsageError, "in a directory that exists. Got one that cannot be used."):
        Ledger(path.parent / "none" / "x.ledger").commit(**RELEASE)
    assert files(path) == []


def test_paths_that_are_no_files(path: Path) -> None:
    path.mkdir()
    os.mkfifo(path.parent / "pipe")
    (path.parent / "link").symlink_to(path.parent / "nowhere")
    for other in (path, path.parent / "pipe", path.parent / "link"):
        for use in (Ledger(other).entries, lambda other=other: Ledger(other).commit(**RELEASE)):
            with fails(UsageError, "must be a file. Got something else."):
                use()
    assert files(path) == ["link", "pipe", path.name]


def test_an_impossible_name(path: Path) -> None:
    with fails(UsageError, "must be a path of at most 4,000 bytes"):
        Ledger(path.parent / "a\0b").commit(**RELEASE)
    with fails(UsageError, "must be a path of at most 4,000 bytes"):
        Ledger(path.parent / ("x" * 5000)).commit(**RELEASE)
    assert files(path) == []


def test_a_full_disk_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_connection(monkeypatch, lambda connection: connection.execute("PRAGMA max_page_count = 2"))
    with fails(UsageError, "must have room to grow. Got a full disk."):
        Ledger(path).commit(**RELEASE)
    assert files(path) == []
    assert Ledger(path).entries() == ()
    Ledger(path).commit(**RELEASE)


def test_a_connection_that_cannot_write_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_connection(monkeypatch, lambda connection: None, mode="frozen")
    with fails(UsageError, "must be a file that can be read and written"):
        Ledger(path).commit(**RELEASE)
    assert files(path) == []


@pytest.mark.parametrize(
    "failure", [sqlite3.OperationalError("at 4711.25"), OSError("at 4711.25"), ValueError("at 4711.25")], ids=type
)
def test_failing_before_commit_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    monkeypatch.setattr(Stubborn, "failure", failure)
    monkeypatch.setattr(module, "_open", stubborn)
    with fails(AttrprivError, "^ledger "):
        Ledger(path).commit(**RELEASE)
    monkeypatch.undo()
    assert files(path) == []
    assert Ledger(path).entries() == ()


def test_an_interrupt_before_commit_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stubborn, "failure", KeyboardInterrupt())
    monkeypatch.setattr(module, "_open", stubborn)
    with pytest.raises(KeyboardInterrupt):
        Ledger(path).commit(**RELEASE)
    assert files(path) == []


def test_a_failure_never_removes_what_another_process_wrote(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This call makes a ledger; before it can give it its name, another one records its release under that name."""
    other: list[Entry] = []

    def overtake(connection: sqlite3.Connection) -> None:
        other.append(insert(path, **{**RELEASE, "answers": "the other's"}))

    with_connection(monkeypatch, overtake)
    with fails(RefusedError, "Got a second one"):
        Ledger(path).commit(**RELEASE)
    assert Ledger(path).entries() == tuple(other)
    assert files(path) == [path.name]


def test_a_failure_leaves_a_file_that_another_process_locks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Ledger(path).commit(**RELEASE)
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.05)
    rivals: list[sqlite3.Connection] = []

    def block(connection: sqlite3.Connection) -> None:
        rivals.append(sqlite3.connect(path, isolation_level=None))
        rivals[0].execute("BEGIN IMMEDIATE")

    with_connection(monkeypatch, block)
    with fails(RefusedError, "must be free. Got one that has been in use by another process for 0.05 seconds."):
        Ledger(path).commit(**RELEASE)
    with closing(rivals[0]) as rival:
        rival.execute("ROLLBACK")
    assert Ledger(path).entries() == (first,)


@pytest.mark.parametrize("again", [False, True], ids=["removed", "replaced"])
def test_a_commit_into_a_file_without_a_name_fails(path: Path, monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    """What a process meets that waited while somebody took the ledger away, and perhaps put another in its place."""
    Ledger(path).commit(**RELEASE)

    def move(connection: sqlite3.Connection) -> None:
        path.unlink()
        if again:
            path.touch()

    with_connection(monkeypatch, move)
    with fails(RefusedError, "must stay in place. Got one that was moved meanwhile. Try again."):
        Ledger(path).commit(**RELEASE)
    assert ([path.stat().st_size] if path.exists() else []) == [0] * again, "the other file stays as it is"


# Crashes and races, with real processes.

CHILD = """
import os, signal, sqlite3, sys
from pathlib import Path
from attrpriv.accounting import storage_sqlite as module
from attrpriv.accounting.ledger import Ledger
from attrpriv.errors import RefusedError

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

release = dict(time="now", policy_digest="ab", plan={}, answers=os.getpid())
"""


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", CHILD + code, *arguments]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def killed(code: str, path: Path) -> None:
    child = start(code, str(path))
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL


DEADLY = """
class Deadly(sqlite3.Connection):
    def execute(self, sql, *arguments):
        return die() if sql == "COMMIT" else super().execute(sql, *arguments)

module._open = lambda path, mode: sqlite3.connect(path, factory=Deadly, isolation_level=None)
"""


@pytest.mark.parametrize("moment", [DEADLY, "module._named = die\n", "os.link = die\n"], ids=["commit", "name", "link"])
def test_killed_before_the_first_commit_there_is_no_ledger(path: Path, moment: str) -> None:
    """What is left has another name and is its owner's alone; the ledger can be made as if nothing had been."""
    killed(f"{moment}Ledger(Path(sys.argv[1])).commit(**release)\n", path)
    left = list(path.parent.iterdir())
    assert left
    assert all(one.name.startswith(".attrpriv-") and one.stat().st_mode & 0o777 == 0o600 for one in left)
    assert Ledger(path).entries() == ()
    entry = Ledger(path).commit(**RELEASE)
    assert Ledger(path).entries() == (entry,)


def test_killed_after_commit_the_entry_is_there(path: Path) -> None:
    killed("Ledger(Path(sys.argv[1])).commit(**release)\ndie()", path)
    assert [entry.time for entry in Ledger(path).entries()] == ["now"]
    with fails(RefusedError, "Got a second one"):
        Ledger(path).commit(**RELEASE)


def test_a_half_written_commit_is_undone(path: Path, tmp_path: Path) -> None:
    """Copy file and journal while pages of an open transaction are already in the file: what a power failure leaves."""
    running = tmp_path / "running"
    entry = Ledger(running).commit(**RELEASE)
    edit(running, "PRAGMA journal_mode = DELETE")
    with closing(sqlite3.connect(running, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 2")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE entries SET plan = ?", ["x" * 1_000_000])
        connection.execute("UPDATE meta SET value = 'x'")
        shutil.copy(running, path)
        shutil.copy(f"{running}-journal", f"{path}-journal")
    assert path.stat().st_size > 100_000, "pages were written before the commit"
    assert Ledger(path).entries() == (entry,)
    later = Ledger(path).commit(**RELEASE, allowed=lambda history: None)
    assert Ledger(path).entries() == (entry, later)


def test_of_racing_processes_exactly_one_wins(tmp_path: Path) -> None:
    names = [f"{number}.ledger" for number in range(15)]
    code = """
print("ready", flush=True)
sys.stdin.readline()
for name in sys.argv[2:]:
    try:
        Ledger(Path(sys.argv[1]) / name).commit(**release)
        print("won", name)
    except RefusedError as error:
        print("lost" if "Got a second one" in str(error) else error, name)
"""
    children = [start(code, str(tmp_path), *names) for _ in range(6)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    results = {child.pid: child.communicate(timeout=120)[0].splitlines() for child in children}
    assert all(child.returncode == 0 for child in children)
    for name in names:
        winners = [pid for pid, lines in results.items() if f"won {name}" in lines]
        losers = [pid for pid, lines in results.items() if f"lost {name}" in lines]
        assert len(winners) == 1
        assert len(losers) == 5
        assert [entry.answers for entry in Ledger(tmp_path / name).entries()] == winners
    assert files(tmp_path / "x") == sorted(names)


def test_of_racing_threads_exactly_one_wins(path: Path) -> None:
    results: list[str] = []
    gate = threading.Barrier(6)

    def run() -> None:
        gate.wait(timeout=60)
        try:
            Ledger(path).commit(**RELEASE)
            results.append("won")
        except RefusedError:
            results.append("lost")

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(results) == ["lost"] * 5 + ["won"]
