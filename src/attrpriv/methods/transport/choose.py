"""`transport`: read the secret, and take back what it tells (docs/theory/transport.md).

One name for one idea; what is moved, and how that is proved, is a matter of the assumption.

| assumption | module |
|---|---|
| hierarchy | `hierarchy_transport`: a population's mean |
| groups | `group_transport`: how many rows are of some category, in the table or in its population |
| gaussian | `gaussian_transport`: clamp and staircase; `quantile_clip`: pure epsilon, one average, exactly stated moments |
| gaussian, with other releases before or after | `sequential_transport` |
"""

from __future__ import annotations

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.group_transport import plan as group_transport
from attrpriv.methods.hierarchy import transport as hierarchy_transport
from attrpriv.methods.quantile_clip import plan as quantile_clip
from attrpriv.methods.transport import plan as gaussian_transport
from attrpriv.methods.transport import sequence as sequential_transport
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal


def plan(problem: Problem) -> Plan:
    """The release of least error that reads the secret, for the kind of assumption that there is."""
    partly = [query.text for query in problem.queries if not query.plain]
    clamped = problem.alone and problem.theta and all(isinstance(member, Gaussian) for member in problem.theta)
    if partly and not (clamped and problem.delta):
        raise Refusal(
            Cause.STATISTIC,
            f"answers {partly[0]}, over some of the rows, only under a gaussian assumption, with a delta, and alone (spend 1).",
            needs="a gaussian assumption, a delta above 0, and spend 1",
            query=partly[0],
        )
    if not problem.alone:
        return _continued(problem)
    if problem.theta and all(isinstance(member, Hierarchy) for member in problem.theta):
        return hierarchy_transport.plan(problem)
    if problem.theta and all(isinstance(member, Groups) for member in problem.theta):
        return group_transport.plan(problem)
    if problem.theta and all(isinstance(member, Gaussian) for member in problem.theta):
        return _gaussian(problem)
    raise Refusal(
        Cause.ASSUMPTION, "needs a gaussian, a groups or a hierarchy assumption.", needs=("gaussian", "groups", "hierarchy")
    )


def _continued(problem: Problem) -> Plan:
    """One release of several: only the clamp with innovations is proved for all of them together."""
    if not (problem.theta and all(isinstance(member, Gaussian) for member in problem.theta)):
        raise Refusal(
            Cause.BUDGET,
            "shares a budget with other releases under a gaussian assumption only; spend all of it (spend 1).",
            needs="spend 1",
        )
    return sequential_transport.plan(problem)


def _gaussian(problem: Problem) -> Plan:
    """The better of both forms; without a delta there is only the quantile clip."""
    if problem.delta == 0:
        return quantile_clip.plan(problem)
    plans: list[Plan] = []
    refused: list[Refusal] = []
    partly = not all(query.plain for query in problem.queries)
    for form in (gaussian_transport.plan,) if partly else (gaussian_transport.plan, quantile_clip.drafted):
        try:
            plans.append(form(problem))
        except Refusal as refusal:
            refused.append(refusal)
    if not plans:
        raise refused[0].told()
    # Two plans there are only for one column, and both know its error.
    best = min(plans, key=lambda plan: plan.columns[0].error.rmse or 0.0)
    return quantile_clip.finished(problem, best) if best.certificate.evidence.kind == "quantile_clip" else best
