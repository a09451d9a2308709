"""A session: policy + table + ledger. plan -> scan -> noise -> record -> release.

What must never change: the order. A release is first checked against the ledger, then planned from public facts, then the
table is read once, then noise is drawn, then the entry is committed, and only then does the value exist for the caller. A
failure at any step before the commit leaves nothing behind.

A session is not thread-safe, and must not be used in a forked process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from attrpriv.accounting.ledger import Entry, Ledger
from attrpriv.engines.scan import ColumnRead, scan
from attrpriv.engines.tables import Source, open_table
from attrpriv.errors import DataError, PolicyError, QueryError, UsageError
from attrpriv.mechanisms import Plan, Ranking, rank
from attrpriv.mechanisms import plan as plan_problem
from attrpriv.policy import Policy
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries

if TYPE_CHECKING:
    from attrpriv.framework import Problem

Queries = str | Query | Sequence[str | Query]
_SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Release:
    """The answers, the plan that proves them, and the ledger's entry."""

    plan: Plan
    values: tuple[float, ...]
    entry: Entry

    @property
    def value(self) -> float:
        """The answer, where there is one."""
        if len(self.values) != 1:
            raise UsageError(f"release: has {len(self.values)} answers; use values.")
        return self.values[0]

    def interval(self, level: float = 0.95, *, answer: int = 0) -> tuple[float, float]:
        """Where the table's own statistic lies with this confidence."""
        return self.plan.interval(self.plan.queries[answer], self.values[answer], level)

    def to_json(self, level: float = 0.95) -> dict[str, Any]:
        return {
            "schema_version": _SCHEMA_VERSION,
            "answers": _answers_json(self.plan, self.values, level),
            "plan": self.plan.entries(chosen=True),
            "ledger": {"entry": self.entry.number, "time": self.entry.time, "digest": self.entry.digest},
        }


class Session:
    """`with Session("students.parquet", policy, ledger="students.ledger") as session: ...`"""

    def __init__(
        self,
        data: object = None,
        policy: Policy | str | Path | None = None,
        ledger: str | Path | None = None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if policy is None:
            raise UsageError("policy: must be a Policy or the path of a policy file. Got nothing.")
        self.policy = policy if isinstance(policy, Policy) else Policy.load(policy)
        self._data = data if data is not None else self.policy.data_path()
        if self._data is None:
            raise PolicyError("data: must be given in the policy or to Session. Got neither.")
        self._ledger_path = Path(ledger) if ledger is not None else self._default_ledger()
        self._clock = clock
        self._process = os.getpid()
        self._source: Source | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Forget the table. The ledger is only open while it is read or written."""
        self._source = None

    def problem(self, queries: Queries | None = None) -> Problem:
        """The problem to be solved, from public facts only."""
        asked = self._read_queries(queries)
        n, types = self._public_facts()
        _require_columns(asked, self.policy, types)
        return self.policy.problem(asked, n, types)

    def rank(self, queries: Queries | None = None) -> Ranking:
        """Every mechanism side by side. Reads no row."""
        return rank(self.problem(queries))

    def plan(self, queries: Queries | None = None, mechanism: str = "auto") -> Plan:
        """How these queries would be answered. Reads no row."""
        return plan_problem(self.problem(queries), mechanism)

    def release(self, queries: Queries | None = None, mechanism: str = "auto") -> Release:
        """Answer the queries, together, once."""
        self._require_same_process()
        ledger = Ledger(self._require_ledger())
        ledger.refuse_if_spent()
        outcome = self._answer(ledger, self.plan(queries, mechanism))
        if isinstance(outcome, Release):
            return outcome
        raise outcome

    def _answer(self, ledger: Ledger, plan: Plan) -> Release | BaseException:
        """Scan, noise, record. A failure comes back without its traceback, whose frames hold averages and answers."""
        try:
            values = plan.answers(self._averages(plan))
            entry = ledger.commit(
                time=self._clock().astimezone(UTC).isoformat(timespec="seconds"),
                policy_digest=plan.policy_digest,
                plan=plan.entries(chosen=True),
                answers=_answers_json(plan, values, 0.95),
            )
            return Release(plan, values, entry)
        except BaseException as error:
            error.__cause__ = error.__context__ = None
            return error.with_traceback(None)

    def _averages(self, plan: Plan) -> list[Fraction]:
        """The exact averages that the plan's columns need, from one pass; none at all where nothing is asked of the table."""
        counted = any(query.kind == "count" for query in plan.queries)
        if not counted and all(part.centre is not None for part in plan.columns):
            return [Fraction(0)] * len(plan.columns)
        reads = [ColumnRead(part.column, part.fill, part.clip) for part in plan.columns]
        found = scan(self._open(), reads)
        if found.rows != plan.n:
            raise DataError(f"rows: must be the number of rows of the table, {found.rows}. Got {plan.n}.")
        return [total / plan.n for total in found.sums]

    def _open(self) -> Source:
        self._require_same_process()
        if self._source is None:
            self._source = open_table(self._data)
        return self._source

    def _public_facts(self) -> tuple[int, Mapping[str, str]]:
        """n and the column types: from the table's metadata, or from the policy where the table is not there yet."""
        if isinstance(self._data, str | Path) and self.policy.rows is not None and not Path(self._data).exists():
            return self.policy.rows, {}
        source = self._open()
        if source.rows is None and self.policy.rows is None:
            raise PolicyError(f"rows: must be declared, because {source.name} does not say how many rows it has. Add rows.")
        if None not in (source.rows, self.policy.rows) and source.rows != self.policy.rows:
            raise DataError(f"rows: must be the number of rows of the table, {source.rows}. Got {self.policy.rows}.")
        n = self.policy.rows if source.rows is None else source.rows
        if n is None or n < 2:
            raise DataError(f"data: the table must have at least 2 rows. Got {n}.")
        return n, source.columns

    def _read_queries(self, queries: Queries | None) -> tuple[Query, ...]:
        asked: list[Query] = []
        if queries is None:
            asked += self.policy.queries()
        else:
            for item in [queries] if isinstance(queries, str | Query) else queries:
                asked += [item] if isinstance(item, Query) else parse_queries(item)
        if not asked:
            raise QueryError("query: there must be one, in the call or under release in the policy. Got none.")
        return tuple(dict.fromkeys(asked))

    def _default_ledger(self) -> Path | None:
        path = self.policy.ledger_path()
        if path is None and isinstance(self._data, str | Path):
            return Path(self._data).with_suffix(".ledger")
        return path

    def _require_ledger(self) -> Path:
        if self._ledger_path is None:
            raise UsageError(
                'ledger: must be a path when the table is in memory, as in Session(table, policy, ledger="x.ledger").'
            )
        return self._ledger_path

    def _require_same_process(self) -> None:
        if os.getpid() != self._process:
            raise UsageError("session: must not be used in a forked process. Open a new Session there.")


def _answers_json(plan: Plan, values: Sequence[float], level: float) -> list[dict[str, Any]]:
    answers = []
    for query, value in zip(plan.queries, values, strict=True):
        low, high = plan.interval(query, value, level)
        answers.append({"query": query.text, "value": value, "interval": {"level": level, "low": low, "high": high}})
    return answers


def _require_columns(queries: Sequence[Query], policy: Policy, types: Mapping[str, str]) -> None:
    """Every column that the policy or the queries name must be there and be a number, where the schema is known."""
    if not types:
        return
    asked = [query.column for query in queries if query.column is not None]
    secrets = [secret.column for secret in policy.protect]
    declared = [*policy.bounds, *policy.resolution, *policy.missing]
    for column in dict.fromkeys((*asked, *secrets, *declared)):
        if column not in types:
            raise DataError(f"column: must be one of {', '.join(types)}. Got {column}.")
    for column in dict.fromkeys((*asked, *secrets)):
        if types[column] in ("text", "other"):
            raise DataError(f"column: avg and sum need a numeric column. Got {column}, which is {types[column]}.")
