"""What the shape of public records means for a plan (`assumptions.shape` has the verdicts).

Some methods credit the variation of the rows as noise, or rest on the exact law of sums over them:

| method | where rows are not normal |
|---|---|
| `transport`, `calibrated_weights`, the equalised form of `gaussian` with groups | by name only, with a warning |
| `gaussian` and every other one that uses the assumption | with a warning |
| `group_dp`, a view, the public constant | no matter |

What must never change: an assumption that was not examined is not held against a plan; its certificate says so in a word.
"""

from __future__ import annotations

from attrpriv.assumptions import Gaussian, Groups
from attrpriv.assumptions.shape import faults, shortened
from attrpriv.framework import Problem
from attrpriv.mechanisms.plan import Plan
from attrpriv.mechanisms.refusal import Refusal
from attrpriv.queries.intervals import NON_LINEAR

_ON_EXACT_LAWS = frozenset({"transport", "calibrated_weights"})
_WITHOUT_ASSUMPTION = frozenset({"subsample", "group_dp", "constant"})


def row_faults(problem: Problem) -> tuple[str, ...]:
    """Why the records behind a fitted assumption are no normal rows, for what this problem reads and hides."""
    hidden = tuple(dict.fromkeys(column for secret in problem.secrets for column in secret.columns))
    records = [member.fitted for member in problem.theta if isinstance(member, Gaussian | Groups)]
    shapes = [record.shape for record in records if record is not None and record.shape is not None]
    return tuple(dict.fromkeys(line for shape in shapes for line in faults(shape, problem.read_columns, hidden)))


def require_normal_rows(name: str, problem: Problem) -> None:
    """A refusal to `auto`: nobody asked for a method that rests on rows being normal, and they are not."""
    if not (name in _ON_EXACT_LAWS or (name == "gaussian" and _equalises_only(problem))):
        return
    told = row_faults(problem)
    if told:
        raise Refusal(
            f"rests on normal rows, which the public records do not show: {shortened(told)}. auto does not take it; ask for it "
            "by name to do so all the same."
        )


def within_reach(name: str, problem: Problem) -> bool:
    """Whether the assumption is of a kind for this mechanism, describes all that is asked, and there is no more to it.

    Where it is not, planning tells what is lacking, or finds that nothing is.
    """
    if not problem.delta or any(isinstance(secret.secret, tuple) for secret in problem.secrets):
        return False
    kinds = Gaussian if name == "calibrated_weights" else Gaussian | Groups
    asked = [query for query in problem.queries if not query.whole_table]
    averages = all(query.columns and query.group_by is None and query.kind not in NON_LINEAR for query in asked)
    return averages and all(
        isinstance(member, kinds) and all(column in member.columns for column in problem.columns) for member in problem.theta
    )


def _equalises_only(problem: Problem) -> bool:
    """Several averages with groups have no other form."""
    groups = bool(problem.theta) and all(isinstance(member, Groups) for member in problem.theta)
    return groups and len(problem.columns) > 1


def with_warning(plan: Plan, problem: Problem) -> Plan:
    """The plan, which says what its promise rests on where the records do not bear it out."""
    told = () if plan.mechanism in _WITHOUT_ASSUMPTION or plan.view is not None else row_faults(problem)
    if not told:
        return plan
    note = (
        f"shape: epsilon {plan.epsilon:g} rests on normal rows, which the public records do not show: {shortened(told)}. What "
        "is really lost may be more. group_dp and a view need no such assumption."
    )
    return plan.model_copy(update={"notes": (*plan.notes, note)})
