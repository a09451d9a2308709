"""The time that an experiment may take, and a way to tell how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


class Unavailable(Exception):
    """Why something cannot be measured here: one line, without names or places of this machine."""


def _silent(_: str) -> None:
    return None


@dataclass(frozen=True)
class Budget:
    """`seconds` of wall clock on two idle cores. An experiment that has `spent` them leaves out what is left, and says so."""

    seconds: float
    say: Callable[[str], None] = _silent
    began: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> float:
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        return self.seconds - self.spent
