"""Answers that are computed from the published numbers of others (`queries.derived`), each with an interval.

What must never change: a computed value is a function of what was published about its parts and of the public number of rows.
So it tells nothing more, costs nothing, and needs no entry of its own: the ledger holds the parts. Its interval holds the
table's own value at least as often as it says: with k parts that have an error, each part's interval is taken at the level
1 - (1 - level)/k, so that all of them hold at once (Bonferroni), and all values that the function takes there are in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pydantic import Field

from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import UNKNOWN_ERROR, ExpectedError, Noise, Spread
from attrpriv.methods.base.plan import Plan
from attrpriv.queries.derived import Derived, Question
from attrpriv.queries.query import Query
from attrpriv.session.release import Answer, Release, Value

NO_NUMBER = "no number: what was released below the line is 0, or too close to it."


@dataclass(frozen=True)
class Computed:
    """One number that follows from published ones; of one group where the query has groups."""

    derived: Derived
    parts: Mapping[Query, Value]
    rows: int
    group: str | None = None

    @property
    def value(self) -> float:
        """The nearest float; not a number where it would be divided by 0."""
        exact = self.derived.value({query: Fraction(part.value) for query, part in self.parts.items()}, self.rows)
        return math.nan if exact is None else _nearest(exact)

    def interval(self, level: float) -> tuple[float, float]:
        """Everything, where the denominator may be 0."""
        if not 0 < level < 1:
            raise UsageError(f"level: must be above 0 and below 1. Got {level}.")
        inexact = sum(part.spread != Spread("none", 0.0) for part in self.parts.values())
        each = math.nextafter(1 - (1 - level) / max(1, inexact), 1)
        ends = {query: part.interval(each) for query, part in self.parts.items()}
        if not each < 1 or not all(map(math.isfinite, (end for pair in ends.values() for end in pair))):
            return -math.inf, math.inf
        boxes = {query: (Fraction(low), Fraction(high)) for query, (low, high) in ends.items()}
        found = self.derived.interval(boxes, self.rows)
        return (-math.inf, math.inf) if found is None else (_below(found[0]), -_below(-found[1]))

    def digits(self, noise: float) -> float:
        """What decides how many digits are shown: about the standard deviation."""
        low, high = self.interval(0.95)
        return (high - low) / 2 / 1.96 if math.isfinite(high - low) else abs(self.value) * 1e-3

    def to_json(self, level: float) -> dict[str, Any]:
        if not math.isfinite(self.value):
            return {"value": None, "interval": None, "reason": NO_NUMBER}
        low, high = self.interval(level)
        known = math.isfinite(low) and math.isfinite(high)
        return {"value": self.value, "interval": {"level": level, "low": low, "high": high} if known else None}


def with_computed(released: Release, questions: Iterable[Question]) -> Release:
    """The release of all parts as answers to what was asked, in the order asked."""
    answers = {answer.query: answer for answer in released.answers}
    return replace(released, answers=tuple(_answer(one, answers, released.plan.n) for one in questions))


def _answer(question: Question, answers: Mapping[Question, Answer], rows: int) -> Answer:
    if isinstance(question, Query):
        return answers[question]
    parts = [answers[part] for part in question.parts]
    groups = [value.group for value in parts[0].values]
    found = [(group, [_of_group(part, group) for part in parts]) for group in groups]
    values = tuple(
        Computed(question, dict(zip(question.parts, some, strict=True)), rows, group)
        for group, some in ((group, [value for value in values if value is not None]) for group, values in found)
        if len(some) == len(parts)
    )
    return Answer(question, values, tuple(parts))


def _of_group(answer: Answer, group: str | None) -> Value | None:
    """An empty group has no average, and is left out."""
    return next((value for value in answer.values if isinstance(value, Value) and value.group == group), None)


def _nearest(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.nan


def _below(number: Fraction) -> float:
    """The largest float that is not above it."""
    try:
        found = float(number)
    except OverflowError:
        return -math.inf if number < 0 else math.nextafter(math.inf, 0)
    return found if Fraction(found) <= number else math.nextafter(found, -math.inf)


# ----------------------------------------------------------------------------------------------------------------------------
# A plan for what is computed from the answers to several queries: the plans of its parts, and the error to expect.
#
# What must never change: what is promised is what the plans of the parts promise; a computation on published numbers adds
# nothing to it. Where parts are released one after the other, the last plan's certificate covers all of them.


class PartsPlan(Plan):
    """The plan of the parts, of which several may come before it; `asked` is what is computed from their answers."""

    asked: tuple[Any, ...] = Field(default=(), exclude=True)
    before: tuple[Plan, ...] = Field(default=(), exclude=True)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """In the order in which they are carried out."""
        own = {name: getattr(self, name) for name in Plan.model_fields}
        return (*self.before, Plan.model_construct(**own))

    @property
    def lines(self) -> tuple[str, ...]:
        """What is computed, and how."""
        return tuple(computed_line(one) for one in self.asked if isinstance(one, Derived))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of all plans, each once."""
        before = (line for plan in self.before for line in plan.warnings)
        return tuple(dict.fromkeys((*before, *super().warnings)))

    @property
    def remarks(self) -> tuple[str, ...]:
        return (*self.lines, *super().remarks)

    def error_of(self, query: Question) -> ExpectedError:
        """Of a multiple of one answer, the multiple of its error; of a quotient none is known before the numbers are."""
        if isinstance(query, Derived):
            factor = query.factor
            return UNKNOWN_ERROR if factor is None else self.error_of(query.parts[0]).scaled(abs(float(factor)))
        return super().error_of(query) if query in self.queries else self._before(query).error_of(query)

    @property
    def error(self) -> ExpectedError:
        """The expected error of the answer; of several answers, ask `error_of` for each."""
        if len(self.asked) != 1:
            raise UsageError(f"plan: has {len(self.asked)} answers; ask error_of(query) for one of them.")
        return self.error_of(self.asked[0])

    def noise_of(self, query: Query, group: str | None = None) -> Noise:
        return super().noise_of(query, group) if query in self.queries else self._before(query).noise_of(query, group)

    def _before(self, query: Query) -> Plan:
        return next(plan for plan in self.before if query in plan.queries)

    def randomise(self, statistic: float | Fraction) -> float:
        raise UsageError("statistic: what is computed from several answers is drawn by none; use Session.release.")

    def entries(self, chosen: bool) -> list[dict[str, Any]]:
        """One entry for each part, and one for each computation."""
        made = [entry for plan in self.plans for entry in plan.entries(chosen)]
        return [*made, *(computed_entry(one) for one in self.asked if isinstance(one, Derived))]

    def verify(self) -> None:
        for plan in self.plans:
            plan.verify()

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "plans": [plan.to_json() for plan in self.plans],
            "asked": [one.text for one in self.asked],
        }

    def _repr_html_(self) -> str:
        from attrpriv.notebook.html import parts_plan_html

        return parts_plan_html(self.plans, self.lines)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.plans), *self.lines])


def computed_line(derived: Derived) -> str:
    """How it is computed, in a line."""
    same = derived.text == derived.formula or derived.wanted is None
    how = "" if same else f" is {derived.formula},"
    return f"{derived.text}:{how} computed from the released numbers, at no cost of its own."


def computed_entry(derived: Derived) -> dict[str, Any]:
    """The same for programs."""
    return {"query": derived.text, "derived": derived.formula, "parts": [part.text for part in derived.parts]}


def plan_of_parts(asked: Sequence[Question], plans: Sequence[Plan]) -> Plan:
    """The plan itself where it answers just what is asked."""
    if len(plans) == 1 and not any(isinstance(one, Derived) for one in asked):
        return plans[-1]
    own = {name: getattr(plans[-1], name) for name in Plan.model_fields}
    return PartsPlan.model_construct(**own, asked=tuple(asked), before=tuple(plans[:-1]))


def plans_of(plan: Plan) -> tuple[Plan, ...]:
    """The plans that are carried out, in order."""
    return plan.plans if isinstance(plan, PartsPlan) else (plan,)
