"""What a call asks for, against what the ledger holds at one moment: what is repeated, what is new, what it may spend.

What must never change: a query that was answered before is answered by what was published then, whatever is asked beside it and
whoever asks: it costs nothing and tells nothing. Everything here is public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from attrpriv.accounting.hash_chain import Entry, History
from attrpriv.accounting.ledger import Ledger
from attrpriv.accounting.standing import LedgerState, protects_persons, spent, undrawn
from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.base.accuracy import Spread
from attrpriv.methods.base.plan import Plan
from attrpriv.policy import Policy
from attrpriv.policy.change import require_tighter
from attrpriv.problem.problem import Problem
from attrpriv.queries.derived import as_ratio, parse_questions, parts_of
from attrpriv.queries.query import Query
from attrpriv.session.derived import plans_of
from attrpriv.session.record import FAILED, recorded_plan
from attrpriv.session.release import Answer, Release, Value


@dataclass(frozen=True)
class Request:
    """The queries of one call, and where the table stands."""

    queries: tuple[Query, ...]
    known: LedgerState
    told: Mapping[Query, Entry]
    unreleased: tuple[tuple[Query, ...], ...]
    listed: bool
    head: str | None

    @classmethod
    def of(cls, ledger: Ledger | None, policy: Policy, queries: tuple[Query, ...]) -> Request:
        """From one look at the ledger; without one nothing was released."""
        return _nothing(policy, queries) if ledger is None else ledger.look(lambda history: _found(history, policy, queries))

    @property
    def new(self) -> tuple[Query, ...]:
        """What was not answered before; the number of rows, which is public, only where nothing else is asked."""
        found = tuple(query for query in self.queries if query not in self.told)
        return () if self.told and all(query.whole_table for query in found) else found

    def share(self, spend: float | None, *, must_say: bool) -> float:
        """The share of what is left that may be spent on what is new: as it was said, or fair to what the policy lists."""
        if spend is not None:
            if isinstance(spend, bool) or not (isinstance(spend, int | float) and 0 < spend <= 1):
                raise UsageError(f"spend: must be a share of what is left, above 0 and at most 1. Got {spend!r}.")
            return float(spend)
        new = _statistics(self.new)
        listed = [_statistics(entry) for entry in self.unreleased]
        done = [entry for entry in listed if entry <= new | _statistics(self.told)]
        if not new or (done and new <= frozenset().union(*done)):
            return len(done) / len(listed) if done else 1.0
        if must_say and self.listed:
            raise UsageError(
                "spend: must be said for a query that the policy does not list under release. Got nothing. Say which share of "
                "what is left of the table's budget it may have, as in spend=0.2 (--spend 0.2)."
            )
        return 1.0

    def require_drawn(self, name: Callable[[], str]) -> None:
        """A refusal where the ledger holds a view that could not be drawn: nothing is ever answered from it."""
        if self.known.standing.undrawn:
            raise undrawn(name())

    def require_left(self, name: Callable[[], str], policy: Policy) -> None:
        """A refusal unless something is left of the budget, under the policy in force or a tighter one."""
        known = self.known
        if known.stated is not None and known.policy_digest != policy.digest:
            require_tighter(name(), Policy.from_json(known.stated), policy)
        if not known.left(policy.epsilon, policy.delta):
            raise spent(name(), known)

    def fitting(self, mechanism: str) -> str:
        """What `auto` means for this table: once it has a view, everything is answered from that."""
        return "subsample" if self.known.standing.view and mechanism == "auto" else mechanism

    def on_top(self, problem: Problem, spend: float) -> Problem:
        """The problem of what is new, together with everything released so far."""
        rows = problem.individuals
        if rows is not None:
            left = rows - self.known.standing.individuals
            rows = spend * left
            if not rows > 0:
                raise RefusedError("individuals: nothing is left of the epsilon for single persons.")
        earlier = None if self.known.certificate is None else self.known.certificate.evidence
        changes = {"spend": spend, "earlier": earlier, "individuals": rows}
        changed = any(getattr(problem, name) != value for name, value in changes.items())
        return problem.model_copy(update=changes) if changed else problem

    def note(self, plan: Plan | None, policy: Policy, spend: float | None = None) -> str | None:
        """What the ledger means for this call, in a line; None where there is nothing to say."""
        if self.known.standing.view:
            return "the ledger holds a view of this table: queries are answered from it."
        if not self.new:
            return (
                "the ledger holds these answers: they are repeated as they are, at no cost. This plan is for a first release."
            )
        unsaid = (
            " This query is not listed under release, so a release must say its share (--spend)." if self._unsaid(spend) else ""
        )
        if self.head is None and (plan is None or plans_of(plan)[0].spend == 1):
            return unsaid.strip() or None
        return self._budget(plan, policy) + unsaid

    def _budget(self, plan: Plan | None, policy: Policy) -> str:
        left = round(self.known.left(policy.epsilon, policy.delta), 3)
        held = f"{_percent(left)} of the table's budget is left"
        if plan is None or plan.view is not None:
            return f"{held}."
        if plan.mechanism == "constant":
            return f"{held}; this release reads no row and costs nothing."
        after = round(plan.certificate.left(policy.epsilon, max(policy.delta, plan.certificate.delta)), 3)
        if self.known.policy_digest not in (None, policy.digest):
            return f"{held} under the policy in force; under this one, this release would leave {_percent(after)} of it."
        spend = 1 - math.prod(1 - part.spend for part in plans_of(plan))
        may = "all of it" if spend == 1 else _percent(spend * left)  # every share is of the whole budget
        return f"{held}. This release may use {may}, uses {_percent(left - after)} and leaves {_percent(after)}."

    def _unsaid(self, spend: float | None) -> bool:
        """Whether a release would have to say its share."""
        try:
            self.share(spend, must_say=True)
        except UsageError:
            return True
        return False

    def again(self) -> Release:
        """Everything that is asked was answered before: as it was recorded."""
        entries = sorted({entry.number: entry for entry in self.told.values()}.values(), key=lambda entry: entry.number)
        return Release(recorded_plan(entries[-1]), self._recorded(), entries[-1], self.head, self._plans(), self._numbers())

    def with_told(self, released: Release) -> Release:
        """A release of what is new, with what is recorded beside it, in the order asked."""
        if not self.told:
            return released
        answers = {answer.query: answer for answer in (*self._recorded(), *released.answers)}
        told = tuple(answers[query] for query in self.queries)
        return replace(released, answers=told, earlier=self._plans(), numbers=self._numbers())

    def _plans(self) -> Mapping[Query, Plan]:
        return {query: recorded_plan(entry) for query, entry in self.told.items()}

    def _numbers(self) -> Mapping[Query, int]:
        return {query: entry.number for query, entry in self.told.items()}

    def _recorded(self) -> tuple[Answer, ...]:
        rows = self.known.standing.n
        public = {
            query: Answer(query, (Value(rows, Spread("none", 0.0)),)) for query in self.queries if query.whole_table and rows
        }
        found = {query: _recorded_answer(entry, query) for query, entry in self.told.items()}
        return tuple({**public, **found}[query] for query in self.queries if query in found or query in public)


def _nothing(policy: Policy, queries: tuple[Query, ...]) -> Request:
    return _found(History(None), policy, queries)


def _found(history: History, policy: Policy, queries: tuple[Query, ...]) -> Request:
    named = [_ways(text) for text in policy.release]
    wanted = dict.fromkeys((*queries, *(query for ways in named for entry in ways for query in entry)))
    told = {query: entry for query in wanted if (entry := _answering(history, query)) is not None}
    listed = [next((way for way in ways if set(way) & {*queries, *told}), ways[0]) for ways in named]
    unreleased = tuple(entry for entry in listed if not set(entry) <= set(told))
    head = history.head
    return Request(
        queries,
        LedgerState.of(history),
        {query: told[query] for query in queries if query in told},
        unreleased,
        bool(listed),
        None if head is None else head.digest,
    )


def _ways(text: str) -> list[tuple[Query, ...]]:
    """The queries by which what the policy lists may be released: as they are, or averages over subsets as quotients."""
    asked = parse_questions(text)
    return [parts_of(asked), parts_of(map(as_ratio, asked))]


def _answering(history: History, query: Query) -> Entry | None:
    """The entry that tells this: the query itself, or the sum or average that it follows from."""
    for text in query.alike:
        entry = history.answering(text)
        if entry is not None and entry.details is not None:
            return entry
    if protects_persons(history.first):
        return _answered_from_view(history, query)
    twin = None if query.plain else query.twin
    entry = None if twin is None else history.answering(twin.text)
    if twin is None or entry is None or entry.details is None:
        return None
    return entry if recorded_plan(entry).over_public_rows(twin) else None  # else nobody knows how many rows a sum is over


def _answered_from_view(history: History, query: Query) -> Entry | None:
    """The one answer, of some queries together, from a view behind a promise to single persons."""
    entry = history.entry(2) if len(history) > 1 else None
    return entry if entry is not None and query.text in [one["query"] for one in entry.plan] else None


def _statistics(queries: Iterable[Query]) -> frozenset[str]:
    """What is asked about: a sum is its average, and the number of rows is public."""
    return frozenset(min(query.alike) for query in queries if not query.whole_table)


def require_answered(told: Mapping[Query, Entry]) -> None:
    """What failed once is not tried again."""
    if any(entry.kind == "failure" for entry in told.values()):
        raise RefusedError(FAILED)


def _recorded_answer(entry: Entry, query: Query) -> Answer:
    plan = recorded_plan(entry)
    told = {answer["query"]: answer for answer in entry.answers}
    text = query.text if query.text in told or query.twin is None else query.twin.text
    values = [(one["value"], one.get("group")) for one in _values(told[text])]
    if text != query.text:  # a sum is the number of rows times their average
        values = [(_turned(plan, query, value, group), group) for value, group in values]
    return Answer(query, tuple(Value(value, plan.spread_of(query, group), group) for value, group in values))


def _turned(plan: Plan, query: Query, value: float, group: str | None) -> float:
    rows = plan.rows_of(query, group)
    return float(Fraction(value) * rows if query.kind == "sum" else Fraction(value) / rows)


def _values(told: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = told.get("groups", [told])
    return found


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
