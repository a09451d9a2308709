"""What every kind of storage must do: the same suite for a file and for a PostgreSQL server."""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from attrpriv.accounting.hash_chain import Entry, History
from attrpriv.accounting.ledger import AnsweredError, Ledger
from attrpriv.errors import RefusedError, UsageError
from tests.unit.accounting.places import KINDS, Place, place, place_of

__all__ = ["place"]

SECRET = 4711.25


def release(number: int = 0, value: float = SECRET) -> dict[str, Any]:
    """A release of the question `number`."""
    plan = [{"query": f"avg(x{number})", "n": 400}]
    return {"time": "now", "policy_digest": "ab" * 32, "plan": plan, "answers": [value], "details": {"columns": []}}


def nothing(history: History) -> None:
    """An accountant that allows everything."""


def budget(of: int) -> Callable[[History], dict[str, int]]:
    """An accountant that allows so many entries, by what the last one left."""

    def decide(history: History) -> dict[str, int]:
        left = of if history.head is None else history.head.account["left"]
        if left == 0:
            raise RefusedError("spent")
        return {"left": left - 1}

    return decide


def test_an_entry_is_recorded_and_read(place: Place) -> None:
    assert place.ledger.entries() == ()
    assert place.ledger.first() is None
    entry = place.ledger.commit(**release())
    assert place.ledger.entries() == (entry,)
    assert place.ledger.first() == entry
    assert str(SECRET) not in repr(entry)
    with pytest.raises(RefusedError, match="Got a second one"):
        place.ledger.commit(**release(1))
    assert place.ledger.entries() == (entry,)


def test_all_texts_come_back_as_they_are(place: Place) -> None:
    values = {"b": (1, 2), "a": "\ud800é\0%s?", "c": [-0.0, 5e-324, 1 / 3, 10**30]}
    entry = place.ledger.commit(**{**release(), "answers": values})
    (again,) = place.ledger.entries()
    assert again == entry
    assert json.dumps(again.answers) == json.dumps({"a": values["a"], "b": [1, 2], "c": values["c"]})


def test_one_question_has_one_answer(place: Place) -> None:
    entry = place.ledger.commit(**release(1))
    for _ in range(2):
        place.ledger.commit(**{**release(random.randrange(10**9)), "plan": {}}, allowed=nothing)
    with pytest.raises(AnsweredError) as caught:
        place.ledger.commit(**release(1, 0.5), allowed=nothing)
    assert caught.value.entry == entry
    assert caught.value.head == place.ledger.entries()[-1].digest
    assert len(place.ledger.entries()) == 3


def test_a_chain(place: Place) -> None:
    entries = [place.ledger.commit(**release(k), allowed=nothing) for k in range(4)]
    assert place.ledger.entries() == tuple(entries)
    assert place.ledger.verify(entries[2].digest).kept == 3
    assert [entry.previous for entry in entries[1:]] == [entry.digest for entry in entries[:-1]]
    place.edit("DELETE FROM entries WHERE number = 4")
    assert place.ledger.verify().entries == 3
    with pytest.raises(RefusedError, match="its end was cut off"):
        place.ledger.verify(entries[3].digest)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET answers = '[1]' WHERE number = 2",
        "UPDATE entries SET kind = 'view' WHERE number = 1",
        "UPDATE entries SET question = NULL WHERE number = 3",
        "UPDATE entries SET number = 7 WHERE number = 3",
        "UPDATE entries SET details = NULL WHERE number = 3",
        "DELETE FROM entries WHERE number = 1",
        "DELETE FROM entries WHERE number = 2",
        "DELETE FROM entries",
    ],
)
def test_an_edit_is_found(place: Place, statement: str) -> None:
    for k in range(3):
        place.ledger.commit(**release(k), allowed=nothing)
    place.edit(statement)
    uses: list[Callable[[], object]] = [place.ledger.entries, place.ledger.verify]
    if "question" not in statement:  # which decides nothing unless it is asked for
        uses += [place.ledger.first, lambda: place.ledger.commit(**release(9), allowed=nothing)]
    for use in uses:
        with pytest.raises(RefusedError, match="must be as attrpriv wrote it") as caught:
            use()
        assert caught.value.__context__ is None


def answering(place: Place, query: str) -> Entry | None:
    return place.ledger.look(lambda history: history.answering(query))


def test_what_answers_a_query_is_found(place: Place) -> None:
    """Alone or among others; the first one that did; also a failure."""
    said = release(0)
    both = {**said, "plan": [{"query": "avg(x1)", "n": 400}, {"query": "avg(x2)", "n": 400}]}
    failed = {**release(3), "kind": "failure", "answers": []}
    first, second, third = [place.ledger.commit(**one, allowed=nothing) for one in (said, both, failed)]
    fourth = place.ledger.commit(**{**both, "plan": [*both["plan"], {"query": "avg(x4)", "n": 400}]}, allowed=nothing)
    found = {query: answering(place, query) for query in (f"avg(x{k})" for k in range(6))}
    assert found == {
        "avg(x0)": first,
        "avg(x1)": second,
        "avg(x2)": second,
        "avg(x3)": third,
        "avg(x4)": fourth,
        "avg(x5)": None,
    }


def test_an_index_that_lies_is_found(place: Place) -> None:
    """What it leads to must answer the query, so nobody is told another query's answer."""
    place.ledger.commit(**release(0), allowed=nothing)
    place.ledger.commit(**release(1), allowed=nothing)
    place.edit("UPDATE answered SET number = 3 - number")
    with pytest.raises(RefusedError, match="must be as attrpriv wrote it"):
        answering(place, "avg(x0)")
    assert answering(place, "avg(x2)") is None


def test_other_tables_and_versions_are_refused(place: Place) -> None:
    place.ledger.commit(**release())
    place.edit("UPDATE meta SET value = '4' WHERE key = 'schema_version'")
    for use in (place.ledger.entries, lambda: place.ledger.commit(**release(1))):
        with pytest.raises(UsageError, match=r"must have schema version 3\. Got 4"):
            use()
    place.edit("UPDATE meta SET value = 'diary' WHERE key = 'format'")
    for use in (place.ledger.entries, lambda: place.ledger.commit(**release(1))):
        with pytest.raises(UsageError, match="must be a ledger of attrpriv"):
            use()
    place.edit("DROP TABLE meta")
    with pytest.raises(UsageError, match="must be a ledger of attrpriv"):
        place.ledger.entries()


@pytest.mark.parametrize("failure", [ZeroDivisionError("4711.25"), KeyboardInterrupt(), RefusedError("no")], ids=type)
def test_a_decision_that_fails_leaves_nothing(place: Place, failure: BaseException) -> None:
    def fail(history: History) -> None:
        raise failure

    for _ in range(2):
        with pytest.raises(type(failure)):
            place.ledger.commit(**release(), allowed=fail)
        assert place.ledger.entries() == ()
    entry = place.ledger.commit(**release())
    with pytest.raises(type(failure)):
        place.ledger.commit(**release(1), allowed=fail)
    assert place.ledger.entries() == (entry,)


# Several processes.


def spend(where: str, barrier: Barrier, queue: Any, number: int, of: int) -> None:
    """Commit until the budget is spent, also answers to questions that others ask."""
    draw = random.Random(number)
    barrier.wait(timeout=60)
    done: list[tuple[int, float]] = []
    refused = 0
    while refused < 2:
        question = draw.randrange(10**9) if draw.random() < 0.7 else draw.randrange(20)
        value = draw.random()
        try:
            entry = Ledger(where).commit(**release(question, value), allowed=budget(of))
            done.append((entry.number, value))
        except AnsweredError as found:
            done.append((found.entry.number, found.entry.answers[0]))
        except RefusedError as error:
            refused += str(error) == "spent"
            time.sleep(0.001)
    queue.put(done)


def test_eight_processes_cannot_spend_more_than_the_budget(place: Place) -> None:
    of, context = 200, multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(8), context.Queue()
    workers = [context.Process(target=spend, args=(place.place, barrier, queue, k, of)) for k in range(8)]
    for worker in workers:
        worker.start()
    told = [queue.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    entries = place.ledger.entries()
    assert len(entries) == of, "all of the budget, and not more"
    assert [entry.account["left"] for entry in entries] == list(range(of - 1, -1, -1))
    assert len({entry.question for entry in entries}) == of
    recorded = {entry.number: entry.answers[0] for entry in entries}
    for number, value in (pair for done in told for pair in done):
        assert recorded[number] == value, "whatever a process showed is what the ledger holds"
    assert sum(len(done) > 0 for done in told) > 1, "they did race"


# Any order of things.


class Steps(RuleBasedStateMachine):
    """Plan, release, crash before and after the commit, reopen, edit: against a model that is a list of entries."""

    kind = "file"
    folder: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.place = place_of(self.kind, self.folder)
        self.known: list[Entry] = []
        self.broken = False

    @initialize(budget=st.integers(1, 6))
    def start(self, budget: int) -> None:
        self.budget = budget

    @precondition(lambda self: not self.broken)
    @rule(question=st.integers(0, 5), value=st.floats(allow_nan=False, allow_infinity=False))
    def release(self, question: int, value: float) -> None:
        before = {entry.question: entry for entry in self.known}
        entry = told = None
        try:
            entry = self.place.ledger.commit(**release(question, value), allowed=budget(self.budget))
        except AnsweredError as found:
            told = found.entry
        except RefusedError:
            told = None
        if entry is not None:
            assert entry.question not in before
            self.known.append(entry)
        else:
            assert len(self.known) == self.budget if told is None else before[told.question] == told

    @precondition(lambda self: not self.broken)
    @rule(question=st.integers(0, 5))
    def crash_before_the_commit(self, question: int) -> None:
        def fail(history: History) -> None:
            raise KeyboardInterrupt

        with pytest.raises((KeyboardInterrupt, AnsweredError)):
            self.place.ledger.commit(**release(question), allowed=fail)

    @precondition(lambda self: not self.broken)
    @rule(question=st.integers(0, 5))
    def crash_after_the_commit(self, question: int) -> None:
        """Nobody saw what was recorded; it is found when the question is asked again."""
        try:
            lost = self.place.ledger.commit(**release(question, 1.5), allowed=budget(self.budget))
        except RefusedError:
            return
        found = self.place.ledger.answered(str(lost.question))
        assert found is not None
        assert found.entry == lost
        self.known.append(found.entry)

    @rule()
    def plan(self) -> None:
        if self.broken:
            with pytest.raises(RefusedError, match="was changed or damaged"):
                self.place.ledger.first()
        else:
            first, head, size = self.place.ledger.look(lambda history: (history.first, history.head, len(history)))
            assert size == len(self.known)
            assert [first, head] == ([self.known[0], self.known[-1]] if self.known else [None, None])

    @precondition(lambda self: not self.broken and len(self.known) > 0)
    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(1, len(self.known)))
        column = data.draw(
            st.sampled_from(["kind", "time", "policy_digest", "plan", "answers", "previous", "digest", "details"])
        )
        self.place.edit(f"UPDATE entries SET {column} = 'x' WHERE number = {number}")
        self.broken = True

    @invariant()
    def it_holds_what_is_known(self) -> None:
        if self.broken:
            for use in (self.place.ledger.entries, lambda: self.place.ledger.commit(**release(9), allowed=nothing)):
                with pytest.raises(RefusedError, match="was changed or damaged"):
                    use()
        else:
            entries = self.place.ledger.entries()
            assert entries == tuple(self.known)
            assert len(entries) <= getattr(self, "budget", 0)
            assert self.place.ledger.verify().entries == len(entries)

    def teardown(self) -> None:
        self.place.remove()


@pytest.mark.parametrize("kind", KINDS)
def test_any_order_of_things(kind: str, tmp_path: Any) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    place_of(kind, tmp_path).remove()  # skips where there is no server
    made = type("Steps", (Steps,), {"kind": kind, "folder": tmp_path})
    run_state_machine_as_test(made, settings=settings(max_examples=15, stateful_step_count=12, deadline=None, derandomize=True))
