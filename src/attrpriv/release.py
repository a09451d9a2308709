"""A release: the answers, the plan that proves them, and the ledger's entry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attrpriv.accounting.chain import Entry
from attrpriv.errors import UsageError
from attrpriv.mechanisms.accuracy import Reach
from attrpriv.mechanisms.plan import Plan
from attrpriv.queries.query import Query

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Value:
    """One number and how far it may be from the table's own; of one group where the query has groups."""

    value: float
    spread: Reach
    group: str | None = None

    def interval(self, level: float) -> tuple[float, float]:
        """Of a whole number, whole numbers."""
        reach = self.spread.reach(level)
        if isinstance(self.value, int):
            reach = math.ceil(reach)
        return self.value - reach, self.value + reach

    def to_json(self, level: float) -> dict[str, Any]:
        low, high = self.interval(level)
        return {"value": self.value, "interval": {"level": level, "low": low, "high": high}}


@dataclass(frozen=True)
class Answer:
    """The answer to one query: one value, or one for each group."""

    query: Query
    values: tuple[Value, ...]

    def to_json(self, level: float = 0.95) -> dict[str, Any]:
        if self.query.group_by is None:
            return {"query": self.query.text, **self.values[0].to_json(level)}
        return {"query": self.query.text, "groups": [{"group": v.group, **v.to_json(level)} for v in self.values]}


@dataclass(frozen=True)
class Release:
    """What `Session.release` returns."""

    plan: Plan
    answers: tuple[Answer, ...]
    entry: Entry
    recorded_head: str | None = None

    @property
    def recorded(self) -> bool:
        """Whether this was released before: it is what the ledger holds, and nothing was drawn or spent."""
        return self.recorded_head is not None

    @property
    def head(self) -> str:
        """The digest of the ledger's last entry, to keep: with it, nobody can cut off the ledger's end unnoticed."""
        return self.entry.digest if self.recorded_head is None else self.recorded_head

    @property
    def values(self) -> tuple[float, ...]:
        """All numbers released, in order."""
        return tuple(value.value for answer in self.answers for value in answer.values)

    @property
    def value(self) -> float:
        """The answer, where there is one."""
        return self._single().value

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Where the table's own statistic lies with this confidence."""
        return self._single().interval(level)

    def _single(self) -> Value:
        if len(self.values) != 1:
            raise UsageError(f"release: has {len(self.values)} values; look at answers.")
        return self.answers[0].values[0]

    def to_json(self, level: float = 0.95) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "answers": [answer.to_json(level) for answer in self.answers],
            "plan": self.plan.entries(chosen=True),
            "ledger": {
                "entry": self.entry.number,
                "time": self.entry.time,
                "digest": self.entry.digest,
                "head": self.head,
                "recorded": self.recorded,
            },
        }


def noisy_answers(plan: Plan, values: Sequence[float]) -> tuple[Answer, ...]:
    """The answers of a plan that adds noise."""
    return tuple(
        Answer(query, (Value(value, plan.spread_of(query)),)) for query, value in zip(plan.queries, values, strict=True)
    )


def tallied_answers(plan: Plan, values: Sequence[Sequence[float]]) -> tuple[Answer, ...]:
    """The answers of a plan that counts; one value for each cell where the query has groups."""
    names = () if plan.tally is None else tuple(cell.name for cell in plan.tally.cells)
    answers = []
    for query, found in zip(plan.queries, values, strict=True):
        groups = names if query.group_by is not None else (None,)
        spread = plan.spread_of(query)
        answers.append(Answer(query, tuple(Value(v, spread, group) for v, group in zip(found, groups, strict=True))))
    return tuple(answers)
