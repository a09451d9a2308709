"""Threads that share a session take turns, and a fork is never left waiting for one."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.errors import UsageError
from attrpriv.session.turns import Turn, in_turns
from tests.unit.session.sequences import made, people

THREADS = 100


@pytest.fixture
def session(tmp_path: Path) -> ap.Session:
    pq.write_table(people(), tmp_path / "people.parquet")
    return ap.Session(tmp_path / "people.parquet", made("release"), ledger=tmp_path / "x.ledger")


def at_once(work: Callable[[int], object]) -> Counter[object]:
    """What a hundred threads get that begin together."""
    told: list[object] = []
    gate = threading.Barrier(THREADS)

    def run(number: int) -> None:
        gate.wait(timeout=60)
        try:
            told.append(work(number))
        except Exception as error:
            told.append(str(error))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    return Counter(told)


def test_a_hundred_threads_release_from_one_session(session: ap.Session) -> None:
    """One question has one answer, whoever asks, and nobody is told that the table cannot be read."""
    queries = ("avg(weight)", "avg(height)")
    told = at_once(lambda k: session.release(queries[k % 2], "gaussian", spend=0.1).value)
    assert told == {session.release(query).value: THREADS // 2 for query in queries}
    assert [entry.kind for entry in session.recorded()] == ["release", "release"]


def test_a_hundred_threads_do_different_things(session: ap.Session) -> None:
    uses: list[Callable[[], object]] = [
        lambda: session.plan("avg(weight)", "gaussian", spend=0.1).mechanism,
        lambda: session.release("avg(height)", "gaussian", spend=0.1).plan.mechanism,
        lambda: session.verify().kept,
        session.close,
    ]
    assert at_once(lambda k: uses[k % 4]()) == {"gaussian": THREADS // 2, None: THREADS // 2}


@in_turns
class Counted:
    """Says how many threads were in it at once."""

    limit = 0

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.inside = self.most = 0

    def enter(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        threading.Event().wait(0.001)
        self.inside -= 1

    def outer(self) -> None:
        self.enter()

    @property
    def entered(self) -> int:
        self.enter()
        return self.most


class NoTurns(Turn):
    """The mutant: nobody waits."""

    def run(self, work: Callable[[], object]) -> object:
        return work()


def test_one_thread_at_a_time_and_a_method_may_call_another() -> None:
    counted = Counted(Turn())
    at_once(lambda k: counted.outer() if k % 2 else counted.entered)
    assert counted.most == 1
    crowd = Counted(NoTurns())
    at_once(lambda k: crowd.outer())
    assert crowd.most > 1, "the test is able to fail"


def test_a_fork_does_not_wait_for_a_turn_that_never_ends(session: ap.Session) -> None:
    """A thread holds the session when the process forks: the child is refused at once."""
    held, done = threading.Event(), threading.Event()

    def wait() -> None:
        held.set()
        done.wait(60)

    def hold() -> None:
        session._turn.run(wait)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if child == 0:
        try:
            session.release("avg(weight)", "gaussian", spend=0.1)
        except UsageError as error:
            os._exit(7 if "must not be used in a forked process" in str(error) else 8)
        os._exit(9)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join(timeout=60)
    assert os.waitstatus_to_exitcode(status) == 7
