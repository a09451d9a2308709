"""Who does the work of an audit, how far it is, and when it has to end.

What must never change: what is given back is the first tables in order, whoever made them; the clock alone decides how many.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from attrpriv.audit.work import Collected, Seen, Work
from attrpriv.engines.progress import PATIENCE
from attrpriv.errors import UsageError


@dataclass(frozen=True)
class Progress:
    """How far an audit is, and how long it will take; told after each table."""

    done: int
    tables: int
    seconds: float
    """since it began"""
    limit: float | None

    @property
    def forecast(self) -> float:
        """In how many seconds from the beginning all tables would be done."""
        return self.seconds * self.tables / self.done

    def __str__(self) -> str:
        cut = self.limit is not None and self.forecast > self.limit
        until = f"; the time limit of {duration(self.limit or 0)} comes first" if cut else ""
        left = max(0.0, self.forecast - self.seconds)
        return f"table {self.done:,} of {self.tables:,}, about {duration(left)} left{until}"


Watcher = Callable[[Progress], None]


def collected(work: Work, *, jobs: int, limit: float | None, watch: Watcher) -> Collected:
    """What is seen of each table's models, in order; of the first ones where the time is up."""
    start = time.monotonic()
    found: list[Seen] = []
    for number, seen in _in_order(work, jobs, None if limit is None else start + limit):
        if number != len(found):
            raise AssertionError("tables out of order")
        found.append(seen)
        watch(Progress(len(found), work.tables, time.monotonic() - start, limit))
    return Collected(work, found)


def _in_order(work: Work, jobs: int, end: float | None) -> Iterator[tuple[int, Seen]]:
    numbers = iter(range(work.tables))
    if jobs == 1:
        for number in numbers:
            if end is not None and number and time.monotonic() > end:
                return
            yield number, work.seen(number)
        return
    with _executor(work, jobs) as executor:
        waiting = [(number, executor.submit(_seen, number)) for number in islice(numbers, 2 * jobs)]
        while waiting:
            number, task = waiting.pop(0)
            yield number, task.result()
            if end is not None and time.monotonic() > end:
                for _, one in waiting:
                    one.cancel()
                return
            waiting += [(number, executor.submit(_seen, number)) for number in islice(numbers, 1)]


_WORK: list[Work] = []
"""In a process that does the work of another one: what it is."""


def _begin(work: Work) -> None:
    _WORK[:] = [work]


def _seen(number: int) -> Seen:
    return _WORK[0].seen(number)


def _executor(work: Work, jobs: int) -> Any:
    """Processes that start afresh: a copy of this one might stand still in a library that has threads.

    joblib's, where it is installed, take functions of a notebook too.
    """
    try:
        from joblib.externals.loky import ProcessPoolExecutor

        return ProcessPoolExecutor(jobs, initializer=_begin, initargs=(work,))
    except ImportError:
        pass
    import multiprocessing
    import pickle
    from concurrent import futures

    try:
        pickle.dumps(work)
    except Exception:  # pickle raises many kinds
        sent = False
    else:
        sent = True
    if not sent:
        raise UsageError(
            "jobs: other processes must be able to load train, defences and probe, so define them in a module; or install "
            "joblib, or say jobs=1."
        )
    return futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin, (work,))


@contextmanager
def bar() -> Iterator[Watcher]:
    """A bar on the terminal, or in a notebook, for what takes over a second; nothing where nobody looks."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    shown = Bar(TextColumn("audit"), BarColumn(), TextColumn("{task.description}"), console=console, transient=True)
    tasks: list[Any] = []

    def watch(progress: Progress) -> None:
        if not tasks and progress.seconds > PATIENCE and (console.is_terminal or console.is_jupyter):
            tasks.append(shown.add_task("", total=progress.tables))
            shown.start()
        if tasks:
            shown.update(tasks[0], completed=progress.done, description=str(progress))

    try:
        yield watch
    finally:
        shown.stop()


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(0.31), duration(95), duration(4000)
    ('0.31 s', '1 min 35 s', '1 h 6 min')
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


_UNITS = {"s": 1, "sec": 1, "min": 60, "h": 3600}


def seconds_of(limit: str | float | None) -> float | None:
    """A time limit in seconds.

    >>> seconds_of("10min"), seconds_of("1.5 h"), seconds_of(90), seconds_of(None)
    (600.0, 5400.0, 90.0, None)
    """
    if limit is None:
        return None
    number, unit = limit, "s"
    if isinstance(limit, str):
        unit = limit.lstrip("0123456789. ").strip()
        number = limit.removesuffix(unit).strip()
    try:
        found = float(number) * _UNITS[unit]
    except (KeyError, ValueError, TypeError):
        found = -1.0
    if not 0 < found < float("inf"):
        raise UsageError(f'time_limit: must be seconds, or text such as "90s", "10min" or "1h". Got {limit!r}.')
    return found
