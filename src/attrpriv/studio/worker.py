"""The one thread that makes pages, because a session is for one thread at a time.

Whoever ends the studio is not kept waiting: unlike the threads of a pool it is not joined at the end. A release that is cut off
is one of which nothing was recorded, or all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

Made = TypeVar("Made")


class Worker:
    """Does one thing after the other."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        Thread(target=self._work, name="studio", daemon=True).start()

    async def done(self, work: Callable[[], Made]) -> Made:
        """What it gives, when its turn has come."""
        future: Future[Made] = Future()
        self._asked.put((future, work))
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        while True:
            future, work = self._asked.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
