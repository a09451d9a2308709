"""Public values that a view shows: as groups to answer by, and of a sorted number, as the engine draws by them."""

from __future__ import annotations

from attrpriv.engines.view.sorted_cells import SortedColumn
from attrpriv.engines.view.values import Group
from attrpriv.errors import QueryError
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.problem.reference import value_name
from attrpriv.queries.conditions import Compare, Condition, IsNull, Written


def sorted_column(plan: ViewPlan) -> SortedColumn | None:
    """The number of which the view shows public values; None where it shows rows as they are."""
    moved = plan.certificate.evidence.sorted_by()
    return None if moved is None else SortedColumn(moved.column, moved.edges, moved.most, moved.order, moved.slope)


def stand_ins(plan: ViewPlan, column: str) -> tuple[Group, ...]:
    """The public values of a hidden column, a group each; a number that is sorted needs groups of its own."""
    in_order = sorted_column(plan)
    if in_order is not None and column == in_order.name:
        raise QueryError(f"group by: {column} has nearly all values different. Cut it into groups: bins: {{{column}: [...]}}.")
    place = plan.secret.whole_columns.index(column)
    values = dict.fromkeys((isinstance(value, bool), value) for value in ((cell.values or ())[place] for cell in plan.cells))
    return tuple(Group(value_name([value]), _is(column, value)) for _, value in values)


def _is(column: str, value: bool | int | float | str | None) -> Condition:
    if value is None:
        return IsNull(column)
    return Written(column, value) if isinstance(value, str) else Compare(column, "=", value)
