"""A plan for what is computed from the answers to several queries: the plans of its parts, and the error to expect.

What must never change: what is promised is what the plans of the parts promise; a computation on published numbers adds nothing
to it. Where parts are released one after the other, the last plan's certificate covers all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pydantic import Field

from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import UNKNOWN_ERROR, ExpectedError, Noise
from attrpriv.methods.base.plan import Plan
from attrpriv.queries.derived import Derived, Question
from attrpriv.queries.query import Query


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
