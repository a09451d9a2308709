"""Answers that are computed from the published numbers of others (`queries.derived`), each with an interval.

What must never change: a computed value is a function of what was published about its parts and of the public number of rows.
So it tells nothing more, costs nothing, and needs no entry of its own: the ledger holds the parts. Its interval holds the
table's own value at least as often as it says: with k parts that have an error, each part's interval is taken at the level
1 - (1 - level)/k, so that all of them hold at once (Bonferroni), and all values that the function takes there are in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import Spread
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
