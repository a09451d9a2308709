"""`transport`: read the secret, and take back what it tells (docs/theory/transport.md).

One name for one idea; what is moved, and how that is proved, is a matter of the assumption.

| form | home |
|---|---|
| alone | `transport.plan`: clamp and staircase; `quantile_clip`: pure epsilon, one average, exactly stated moments |
| with other releases before or after | `transport.sequence` |
| of a population's mean, behind categories, of counts | `hierarchy`, `group_transport`, `count_transport` |
"""

from __future__ import annotations

from attrpriv.methods.base.plan import Plan
from attrpriv.methods.quantile_clip import plan as quantile_clip
from attrpriv.methods.transport import plan as gaussian_transport
from attrpriv.methods.transport import sequence as sequential_transport
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal

# More averages by group than these are searched for many seconds.
AUTO_GROUPS = 64


def plan(problem: Problem) -> Plan:
    """The release of least error that reads the secret."""
    partly = [query.text for query in problem.queries if not query.plain]
    if partly and not (problem.alone and problem.delta):
        raise Refusal(
            Cause.STATISTIC,
            f"answers {partly[0]}, over some of the rows, only under a gaussian assumption, with a delta, and alone (spend 1).",
            needs="a gaussian assumption, a delta above 0, and spend 1",
            query=partly[0],
        )
    return _alone(problem) if problem.alone else sequential_transport.plan(problem)


def too_slow(problem: Problem) -> str | None:
    """The size up to which `auto` searches noise and clamp, where averages by group are so many that it takes long."""
    groups = [{**problem.bins, **problem.categories}.get(query.group_by or "", ()) for query in problem.queries]
    return f"{AUTO_GROUPS} averages by group" if sum(map(len, groups)) > AUTO_GROUPS else None


def _alone(problem: Problem) -> Plan:
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
