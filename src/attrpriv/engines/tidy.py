"""A process that is told to end while real rows are on its disk: they are removed first, as on Ctrl-C.

What must never change: the process then ends by the signal it was sent; a program that handles the signal itself, or ignores
it, decides. Handlers run in the main thread alone, so work in another thread is not covered, nor is SIGKILL by anything.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

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
