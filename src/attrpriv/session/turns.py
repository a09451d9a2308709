"""Threads that share an object take turns: each public call has it to itself.

An engine's connection serves one thread at a time; two at once would each meet half of what the other asked, and say that the
table cannot be read. What must never change: a fork copies a lock that some thread holds and that nobody will release, so in
another process than its own an object takes no turns; it must refuse by itself what it cannot do there.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)


def in_turns(kind: Kind) -> Kind:
    """The class, with its public methods and properties run by one thread at a time; they may call each other."""
    for name, value in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, property) and value.fget is not None:
            setattr(kind, name, property(_alone(value.fget), doc=value.__doc__))
        elif callable(value):
            setattr(kind, name, _alone(value))
    return kind


class Turn:
    """Whose turn it is, in the process that made it."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()

    def run(self, work: Callable[[], Any]) -> Any:
        if os.getpid() != self._process:
            return work()
        with self._lock:
            return work()


def _alone(work: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(work)
    def run(self: Any, *given: Any, **named: Any) -> Any:
        turn: Turn = self._turn
        return turn.run(lambda: work(self, *given, **named))

    return run
