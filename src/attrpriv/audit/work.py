"""The work of an audit: tables are drawn, models trained, their numbers taken down. Shadows and targets alike.

What must never change:

* a table and all that is random about it come from the audit's seed and the table's number, so that results do not depend on
  how many jobs share the work, or on which are done first;
* shadows and targets come in turns, and what is used is the first so many, so that work that was cut short by its time limit
  is a smaller audit and nothing else;
* shadows are of both kinds in turns; of a target a fair coin decides.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from attrpriv.audit.answers import answers_of
from attrpriv.audit.artefact import Numbers, numbers_of
from attrpriv.audit.discriminant import Flags
from attrpriv.audit.tables import Draws
from attrpriv.audit.views import Defence, called

PARAMETERS, PREDICTIONS = "parameters", "predictions"
Key = tuple[str, str]
"""The name of a training function, and of what its model is trained on."""
Seen = Mapping[Key, Mapping[str, Numbers]]
"""Of each model, what each attack sees."""
# What is random about a table: which records it has, what a defence and a training do; and the coin of a target.
_ROWS, _SEED, _COIN = range(3)


@dataclass(frozen=True)
class Work:
    """All that is needed to make the models of one table."""

    frame: Any
    draws: Draws
    trains: Mapping[str, Callable[..., Any]]
    defences: Mapping[str, Defence]
    attacks: Mapping[str, tuple[str, ...]]
    """of each training function"""
    parameters: Callable[[Any], Any] | None
    probe: Any
    shadows: int
    targets: int
    seed: int

    @property
    def tables(self) -> int:
        return self.shadows + self.targets

    def is_target(self, number: int) -> bool:
        """Targets lie evenly between the shadows."""
        return (number + 1) * self.targets // self.tables > number * self.targets // self.tables

    def is_high(self, number: int) -> bool:
        """The kind of a table: a coin for a target, in turns for shadows."""
        if self.is_target(number):
            return bool(self._generator(number, _COIN).random() < 0.5)
        return (number - number * self.targets // self.tables) % 2 == 1

    def rows(self, number: int) -> Any:
        """The records that a table has."""
        return self.draws.rows(self.is_high(number), self._generator(number, _ROWS))

    def seed_of(self, number: int) -> int:
        """What the defences and the training functions of a table get."""
        return int(self._generator(number, _SEED).integers(2**31 - 1))

    def _generator(self, number: int, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, number, purpose])

    def seen(self, number: int) -> Seen:
        """What the attacks see of the models of one table."""
        rows, seed = self.rows(number), self.seed_of(number)
        found: dict[Key, dict[str, Numbers]] = {}
        with one_thread():
            for trained_on, defence in self.defences.items():
                table = defence.table(self.frame, rows, seed)
                for name, train in self.trains.items():
                    model = called(train, table.copy(), seed)  # a training function may change what it gets
                    found[name, trained_on] = self.look(model, self.attacks[name])
        return found

    def look(self, model: Any, attacks: tuple[str, ...]) -> dict[str, Numbers]:
        """What each attack sees of one model."""
        found: dict[str, Numbers] = {}
        if PARAMETERS in attacks:
            found[PARAMETERS] = numbers_of(model if self.parameters is None else self.parameters(model))
        if PREDICTIONS in attacks:
            found[PREDICTIONS] = {"answers": answers_of(model, self.probe)}
        return found


@dataclass(frozen=True)
class Collected:
    """What was seen of the models of the first tables of some work."""

    work: Work
    seen: list[Seen]

    @property
    def shadows(self) -> list[int]:
        return [number for number in range(len(self.seen)) if not self.work.is_target(number)]

    @property
    def targets(self) -> list[int]:
        return [number for number in range(len(self.seen)) if self.work.is_target(number)]

    def high(self, numbers: list[int]) -> Flags:
        return np.array([self.work.is_high(number) for number in numbers], np.bool_)

    def numbers(self, key: Key, attack: str, numbers: list[int]) -> list[Numbers]:
        """What an attack sees of the models of these tables."""
        return [self.seen[number][key][attack] for number in numbers]


def one_thread() -> AbstractContextManager[Any]:
    """One thread of linear algebra for each job: faster for many small models, and the same sums whoever adds them up."""
    controller = _controller(len(sys.modules))
    return nullcontext() if controller is None else controller.limit(limits=1)


@lru_cache(maxsize=1)
def _controller(modules: int) -> Any:
    """Of all libraries that have threads; looked for again once more modules are loaded."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # comes with scikit-learn
        return None
    return ThreadpoolController()
