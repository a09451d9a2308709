"""Waiting for an engine: Ctrl-C stops it at once, and whoever watches is told how far it is.

DuckDB 2, called from the main thread, notices Ctrl-C only when its query has ended, and then raises an error like any other. So
it runs in a thread of its own while this one waits. PostgreSQL's and Spark's drivers, and Polars, stop by themselves.

What must never change: nothing is told but how much of the table has been read, which depends on no value. An exception of the
engine goes through, as if raised here, and is not kept.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")
Watcher = Callable[[float, int | None], None]
"""Told from time to time which share of the table has been read, from 0 to 1, and its number of rows where that is known."""

_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_INTERVAL = 0.1
PATIENCE = 1.0
"""Seconds after which a watcher is told something."""


@contextlib.contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """While this lasts, tell `watcher` how far an engine is with a query that takes over a second."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def waited(engine: Any, work: Callable[[], Made], rows: int | None = None) -> Made:
    """What `work`, which asks this engine, returns or raises; on Ctrl-C the engine is stopped first."""
    if engine.name != "duckdb" or threading.current_thread() is not threading.main_thread():
        return work()
    watcher = _WATCHER.get()
    with _measured(engine, watcher):
        task = _Task(work)
        task.start()
        try:
            _wait(engine, task.done, watcher, rows)
        except BaseException:
            while not task.done.wait(_INTERVAL):  # again and again, because a query that has not begun yet is not stopped
                engine.con.interrupt()
            task.outcome.clear()
            raise
    task.join()
    return task.result()


class _Task(threading.Thread, Generic[Made]):
    """Work in a thread of its own. It is waited for by `done`: to interrupt `join` confuses Python 3.11."""

    def __init__(self, work: Callable[[], Made]) -> None:
        super().__init__(name="attrpriv engine", daemon=True)
        self.done = threading.Event()
        self.outcome: list[tuple[BaseException | None, Any]] = []
        self._work: Callable[[], Made] = work

    def run(self) -> None:
        try:
            self.outcome.append((None, self._work()))
        except BaseException as error:
            self.outcome.append((error.with_traceback(None), None))
        finally:
            self.done.set()

    def result(self) -> Made:
        """What the work returned, or what it raised; not kept here."""
        error, made = self.outcome.pop()
        try:
            if error is not None:
                raise error
        finally:
            del error  # a frame that held its own exception would keep it alive
        return made  # type: ignore[no-any-return]


def _wait(engine: Any, done: threading.Event, watcher: Watcher | None, rows: int | None) -> None:
    start = time.monotonic()
    while not done.wait(_INTERVAL):
        if watcher is not None and time.monotonic() - start > PATIENCE:
            watcher(min(max(engine.con.query_progress() / 100, 0.0), 1.0), rows)
    if watcher is not None and time.monotonic() - start > PATIENCE:
        watcher(1.0, rows)


@contextlib.contextmanager
def _measured(engine: Any, watcher: Watcher | None) -> Iterator[None]:
    """DuckDB counts what it has read only where it believes that it draws a bar. A caller's own engine is left as it is."""
    if watcher is None or not getattr(engine, "attrpriv_is_careful", False):
        yield
        return
    for setting in ("enable_progress_bar = true", "enable_progress_bar_print = false"):
        engine.con.execute(f"SET {setting}")
    try:
        yield
    finally:
        engine.con.execute("SET enable_progress_bar = false")


# ----------------------------------------------------------------------------------------------------------------------------
# A process that is told to end while real rows are on its disk: they are removed first, as on Ctrl-C.
#
# What must never change: the process then ends by the signal it was sent; a program that handles the signal itself, or
# ignores it, decides. Handlers run in the main thread alone, so work in another thread is not covered, nor is SIGKILL by
# anything.


# A terminal that is closed says SIGHUP, which not every system has.
_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def tidied() -> Iterator[None]:
    """While this lasts, what would end the process at once unwinds it like Ctrl-C, and ends it afterwards."""
    here = threading.current_thread() is threading.main_thread()
    handled = [number for number in _ENDING if here and signal.getsignal(number) is signal.SIG_DFL]
    came: list[int] = []

    def unwind(number: int, _: FrameType | None) -> None:
        if not came:  # a second one must not stop the tidying up
            came.append(number)
            raise KeyboardInterrupt

    try:
        for number in handled:
            signal.signal(number, unwind)
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
        if came:
            os.kill(os.getpid(), came[0])
