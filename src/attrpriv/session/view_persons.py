"""Views behind a promise to single persons: the test before the draw, what answers get their noise on, what is not handed out.

What must never change: the noise of the test is drawn before the table is read, and is not kept; what a failure tells is what
the test tells. Values are clipped, and missing entries filled, as the plan has it, which its proof is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from attrpriv.accounting.standing import PERSONS
from attrpriv.engines.view.answers import Viewed, view_sums
from attrpriv.engines.view.draw import Cells
from attrpriv.errors import RefusedError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.view_persons import NoisyAnswer
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.view.split import ViewSplit, split_view
from attrpriv.session.release import Answer, drawn_answers

if TYPE_CHECKING:
    from attrpriv.session.view_rows import ViewRows

NO_ROWS = (
    "individuals: a view is real records, in which single persons are not protected. Ask for answers (release), which get "
    "noise; rows are handed out under a policy without individuals."
)


def planned_parts(plan: ViewPlan, split: Mapping[str, float | Fraction] | None) -> ViewSplit | None:
    """The parts that rows are to be handed out in; RefusedError where single persons are promised more than rows can keep."""
    if plan.certificate.evidence.row_test() is not None:
        raise RefusedError(NO_ROWS)
    return None if split is None else split_view(plan, split)


def tested(plan: ViewPlan, cells: Cells) -> Cells:
    """The cells with the rows that each must have for this draw: where a test stands before it, by its noise."""
    test = plan.certificate.evidence.row_test()
    if test is None:
        return cells
    spare = test.drawn()
    planned = cells.planned
    return replace(cells, low=(*(low + spare for low in cells.low[:planned]), *cells.low[planned:]))


def recorded_test(plan: ViewPlan) -> dict[str, Any]:
    """What the record of a view has of the test before it: nothing where there is none."""
    test = plan.certificate.evidence.row_test()
    return {} if test is None else {PERSONS: test.to_json()}


def answers_from(rows: ViewRows, plan: Plan) -> tuple[Answer, ...]:
    """The answers of a plan from the rows of its view: computed, or drawn where single persons are protected."""
    plan.verify()
    persons = None if plan.view is None else plan.view.persons
    if persons is None:
        return rows.answers(plan.queries)
    return drawn_answers(plan, plan.answered([_total(rows, answer) for answer in persons.answers]) or ())


def _total(rows: ViewRows, answer: NoisyAnswer) -> list[Fraction]:
    """The total over the kept rows of each cell; exact. Secret: used for one draw."""
    column = answer.query.column
    missing = {} if column is None or answer.fill is None else {column: answer.fill}
    bounds = {} if column is None or answer.bounds is None else {column: answer.bounds}
    view = Viewed(rows.source, rows.cells, rows.drawn, rows.policy.row_id, missing, bounds)
    return [cell.total for cell in view_sums(view, answer.query).groups[None]]
