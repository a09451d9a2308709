"""Whether an answer can be worth anything: its expected error against the public range that it lies in.

The middle of a range is never further off than half of its width. So where the expected error is larger than that, the middle,
which nobody has to release, is the better answer. What must never change: only public numbers are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrpriv.methods.base.plan import Plan
    from attrpriv.queries.query import Query


def worthless(plan: Plan) -> tuple[str, ...]:
    """A line for each answer whose expected error is more than half of its public range."""
    return tuple(line for query in plan.queries if (line := _line(plan, query)) is not None)


def _line(plan: Plan, query: Query) -> str | None:
    found = None if query.whole_table else plan.part.public_range(query, plan.n)
    error = None if found is None or plan.noise_of(query).kind == "none" else plan.error_of(query).rmse
    if found is None or error is None or error <= (found[1] - found[0]) / 2:
        return None
    told = f"{float(f'{error:.3g}'):,.10g}"
    return (
        f"{query.text}: the expected error of {told} is more than half of its public range [{found[0]:g}, {found[1]:g}]. The "
        "middle of the range, which tells nothing, is the better answer."
    )
