"""A release: the answers, the plan that proves them, and the ledger's entry.

What was asked is a query, or is computed from the answers to queries (`derived`). Both are shown alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from attrpriv.accounting.hash_chain import Entry
from attrpriv.errors import AttrprivError, UsageError
from attrpriv.formatting import answer as shown_answer
from attrpriv.formatting import number, printable, some
from attrpriv.methods.base.accuracy import Ends, Reach
from attrpriv.methods.base.parts import Values
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.best_guess import BestGuess, Weighing, weighing
from attrpriv.methods.choice.choose import plan as plan_problem
from attrpriv.methods.table import methods
from attrpriv.notebook.frames import FrameKind, release_frame
from attrpriv.policy import Policy
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.shapes import QUILT, TALLIED
from attrpriv.queries.derived import Derived, Question, parts_of
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    from attrpriv.session.derived import Computed

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Value:
    """One number and how far it may be from the table's own; of one group where the query has groups."""

    value: float
    spread: Reach
    group: str | None = None

    def interval(self, level: float) -> tuple[float, float]:
        """Of a whole number, whole numbers; of a share, limits that stay within 0 and 1."""
        if isinstance(self.spread, Ends):
            return self.spread.ends(level)
        reach = self.spread.reach(level)
        if isinstance(self.value, int):
            reach = math.ceil(reach)
        return self.value - reach, self.value + reach

    def digits(self, noise: float) -> float:
        """What decides how many digits are shown: what is taken back of a secret moves an answer more than its mask does."""
        return max(noise, self.spread.reach(0.95) / 1.96)

    def to_json(self, level: float) -> dict[str, Any]:
        low, high = self.interval(level)
        known = math.isfinite(low) and math.isfinite(high)
        return {"value": self.value, "interval": {"level": level, "low": low, "high": high} if known else None}


@dataclass(frozen=True)
class Answer:
    """The answer to one question: one value, or one for each group; `parts` are the answers that it is computed from."""

    query: Question
    values: tuple[Value | Computed, ...]
    parts: tuple[Answer, ...] = ()

    def to_json(self, level: float = 0.95) -> dict[str, Any]:
        told: dict[str, Any] = {"query": self.query.text}
        if self.query.group_by is None:
            told |= self.values[0].to_json(level)
        else:
            told["groups"] = [{"group": v.group, **v.to_json(level)} for v in self.values]
        if isinstance(self.query, Derived):
            told["derived"] = {"formula": self.query.formula, "parts": [part.to_json(level) for part in self.parts]}
        return told


@dataclass(frozen=True)
class Release:
    """What `Session.release` returns: answers that may be published, and where they are recorded.

    `value` is the answer of one query, `values` of several; `interval(0.95)` says how far off it may be; `to_frame()` is a
    table of all. `answers` has them with their queries, `plan` what they were drawn by, `entry` the ledger's entry
    (`earlier`, `numbers` and `recorded_head` are of answers that were recorded before), `guesses` what together with the
    assumption is a better guess.

    Examples:
        >>> import attrpriv as ap, pandas as pd, tempfile
        >>> table = pd.DataFrame({"stay": [3, 9, 2, 8] * 50, "smoker": ["no", "yes"] * 100})
        >>> policy = ap.Policy(epsilon=1.0, protect=[ap.Secret("share(smoker = 'yes')", between=(0.4, 0.6))])
        >>> with tempfile.TemporaryDirectory() as place:
        ...     with ap.Session(table, policy, ledger=f"{place}/stays.ledger") as session:
        ...         release = session.release("avg(stay)")
        >>> release.plan.mechanism, release.entry.number
        ('subsample', 2)
    """

    plan: Plan
    answers: tuple[Answer, ...]
    entry: Entry
    recorded_head: str | None = None
    earlier: Mapping[Query, Plan] = field(default_factory=dict, repr=False)
    numbers: Mapping[Query, int] = field(default_factory=dict, repr=False)
    guesses: Mapping[Query, BestGuess] = field(default_factory=dict, repr=False)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans that the answers rest on, each once, the latest last."""
        found: list[Plan] = []
        for query in self.queries:
            plan = self.plan_of(query)
            if query in plan.queries and plan not in found:
                found.append(plan)
        return tuple(found) or (self.plan,)

    @property
    def queries(self) -> tuple[Query, ...]:
        """What was released for it: the queries that were asked, and those that others are computed from."""
        return parts_of([answer.query for answer in self.answers])

    def plan_of(self, query: Query) -> Plan:
        """The plan that an answer was released by: what was answered earlier keeps its own."""
        return self.earlier.get(query, self.plan)

    def mechanism_of(self, query: Question) -> str:
        """How it was answered; of what is computed, how its parts were."""
        return ", ".join(dict.fromkeys(self.plan_of(part).mechanism for part in parts_of([query])))

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
        """Where the table's own statistic lies with this confidence; where rows or answers are clipped, the clipped one."""
        return self._single().interval(level)

    @property
    def best_guess(self) -> BestGuess | None:
        """The answer and what the assumption already states, weighed by their errors; None where that gains nothing."""
        self._single()
        return next(iter(self.guesses.values()), None)

    def guess_rows(self) -> list[tuple[str, str, str, str]]:
        """The best guesses, in the columns of `rows`: they stand below what was released, and never in its place."""
        rows = []
        for query, guess in self.guesses.items():
            share = f"{guess.weight:.0%} released, {1 - guess.weight:.0%} assumed"
            value = shown_answer(float(guess.value), guess.error)
            rows.append((f"best guess of {query.text}", value, f"expected error {number(guess.error)}", share))
        return rows

    @property
    def interval_for(self) -> str:
        """What the intervals are for."""
        if self.plan.view is not None:
            return "the whole table at that composition"
        if any(methods()[plan.mechanism].errs_by_table for plan in self.plans):
            return "a table as assumed"
        return "the table's value, clipped" if any(plan.clips for plan in self.plans) else "the table's own value"

    def _single(self) -> Value | Computed:
        if len(self.values) != 1:
            raise UsageError(f"release: has {len(self.values)} values; look at answers.")
        return self.answers[0].values[0]

    def rows(self, level: float = 0.95) -> list[tuple[str, str, str, str]]:
        """What was asked, the value, its interval and the mechanism, as people read them; what it is computed from below it."""
        found = []
        shown = {answer.query for answer in self.answers}
        for answer in self.answers:
            found += [self._row(answer.query, value, level) for value in answer.values]
            for part in (part for part in answer.parts if part.query not in shown):
                shown.add(part.query)
                found += [self._row(part.query, value, level, "from ") for value in part.values]
        return found

    def _row(self, query: Question, value: Value | Computed, level: float, start: str = "") -> tuple[str, str, str, str]:
        low, high = value.interval(level)
        name = start + (query.text if value.group is None else f"{query.text}: {value.group}")
        noise = self.plan_of(query).noise_of(query, value.group).scale if isinstance(query, Query) else 0.0
        if not math.isfinite(value.value):
            return name, "no number", "none is known", self.mechanism_of(query)
        if not math.isfinite(high - low):
            return name, shown_answer(value.value, abs(value.value) * 1e-3), "none is known", self.mechanism_of(query)
        if isinstance(query, Query) and self._is_public(query):
            return name, number(value.value), "a public number", self.mechanism_of(query)
        scale = value.digits(noise)
        interval = f"{shown_answer(low, scale)} to {shown_answer(high, scale)}"
        return name, shown_answer(value.value, scale), interval, self.mechanism_of(query)

    def _is_public(self, query: Query) -> bool:
        """Whether an answer follows from a view's reference alone."""
        view = self.plan_of(query).view
        return view is not None and view.is_public(query)

    @property
    def whereabouts(self) -> tuple[str, ...]:
        """Where it is recorded, and what is left, in lines."""
        head = f"head digest {self.head}"
        if self.recorded:
            told = f"this is the recorded answer of entry {self.entry.number}, {self.entry.time}; nothing was drawn."
            return told, *self._elsewhere, head
        free = self.plan.view is not None or self.plan.mechanism == "constant"
        left = () if free else (f"{self.plan.left:.0%} of the table's budget is left",)
        return f"recorded as entry {self.entry.number}, {self.entry.time}", *self._elsewhere, *left, head

    @property
    def _elsewhere(self) -> tuple[str, ...]:
        """Where the others are recorded, of answers that have an entry each."""
        places = {query: self.numbers.get(query, self.entry.number) for query in self.queries}
        return tuple(f"{query.text} is entry {at}" for query, at in places.items() if at != self.entry.number)

    def to_frame(self, kind: FrameKind = "pandas", level: float = 0.95) -> Any:
        """A table with a row for each value: query, group, value, low, high, level, mechanism.

        `kind` is "pandas", "polars" (needs the extra `polars`) or "arrow". `group` is missing where the query has no groups,
        `low` and `high` where no interval is known.
        """
        return release_frame(self, kind, level)

    def __str__(self) -> str:
        rows = [f"{name} = {value}  (95%: {interval}; {mechanism})" for name, value, interval, mechanism in self.rows()]
        rows += [f"{name} = {value}  ({error}; {how})" for name, value, error, how in self.guess_rows()]
        promise = f"{self.plan.guarantee.kind}: {self.plan.guarantee.statement}."
        return "\n".join(map(printable, [*rows, promise, *self.whereabouts]))

    def __repr__(self) -> str:
        rows = self.rows()
        told = some([f"{name} = {value}" for name, value, _, _ in rows], 3)
        return printable(f"<Release: {told}; entry {self.entry.number}>")

    def _repr_html_(self) -> str:
        from attrpriv.notebook.html import release_html

        return release_html(self)

    def _told(self, answer: Answer, level: float) -> dict[str, Any]:
        guess = self.guesses.get(answer.query) if isinstance(answer.query, Query) else None
        return answer.to_json(level) | ({} if guess is None else {"best_guess": guess.to_json()})

    def to_json(self, level: float = 0.95) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "answers": [self._told(answer, level) for answer in self.answers],
            "plan": [entry for plan in self.plans for entry in plan.entries(chosen=True)],
            "ledger": {
                "entry": self.entry.number,
                "time": self.entry.time,
                "digest": self.entry.digest,
                "head": self.head,
                "recorded": self.recorded,
            },
        }


def drawn_answers(plan: Plan, values: Values) -> tuple[Answer, ...]:
    """The answers of a plan that draws: one value, or one for each group."""
    answers = []
    for query, told in zip(plan.queries, values, strict=True):
        named = zip(plan.group_names(query), told, strict=True)
        answers.append(Answer(query, tuple(Value(value, plan.spread_of(query, name), name) for name, value in named)))
    return tuple(answers)


# ----------------------------------------------------------------------------------------------------------------------------
# Best guesses beside what is released: each from its own answer and what the policy already states (`choice.best_guess`).
#
# What must never change: only public numbers and published answers go in, and no row is read. The ledger holds no guess.


def with_guesses(released: Release, policy: Policy, types: Mapping[str, str]) -> Release:
    """The same release, with a guess for each answer that one is worth for and that this very policy was released under."""
    found: dict[Query, BestGuess] = {}
    for answer in released.answers:
        query, value = answer.query, answer.values[0]
        if isinstance(query, Query) and isinstance(value, Value):
            how = _weighing(released.plan_of(query), query, policy, types)
            found |= {} if how is None else {query: how.guess(value.value)}
    return replace(released, guesses=found) if found else released


def _weighing(plan: Plan, query: Query, policy: Policy, types: Mapping[str, str]) -> Weighing | None:
    """What is released is told whatever becomes of the guess: where there is none, for any reason, there is none."""
    if plan.policy_digest != policy.digest or plan.view is not None or query.whole_table or not policy.assume:
        return None
    with suppress(AttrprivError, ArithmeticError, ValueError):
        if not _may_be_expected(policy.assume, query, plan.n):
            return None
        problem = policy.problem((query,), plan.n, types)
        return weighing(plan, plan_problem(problem, "constant"), query, problem)
    return None


def _may_be_expected(assume: Sequence[Assumption], query: Query, n: int) -> bool:
    """Whether the assumption may have an answer of its own: of an average, every law must state the mean."""
    if query.key is None or any(member.shape in (QUILT, *TALLIED) for member in assume):
        return True
    laws = [law for member in assume for law in member.expected_rows((query.key,), n)]
    return bool(laws) and all(query.key in law for law in laws)
