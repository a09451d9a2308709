"""The error of the chosen mechanism at other epsilons: planned again, from public facts."""

from __future__ import annotations

from dataclasses import dataclass

from attrpriv.errors import UsageError
from attrpriv.methods.choice.ranking import Ranking
from attrpriv.methods.dispatch import planned_by
from attrpriv.methods.table import methods
from attrpriv.problem.refusal import Refusal

# Shares of the policy's epsilon.
_SHARES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# A policy may ask for no more.
_MOST_EPSILON = 100.0


@dataclass(frozen=True)
class ErrorCurve:
    """Errors of one mechanism for one query, each with its epsilon; `constant`: what the assumption's own answer errs by."""

    query: str
    mechanism: str
    epsilon: float
    points: tuple[tuple[float, float], ...]
    constant: float | None = None


def error_curve(ranking: Ranking) -> ErrorCurve:
    """Of the chosen mechanism and the first query that is not public; points where it can plan."""
    chosen = ranking.chosen
    if chosen is None:
        raise UsageError("plot: no mechanism is chosen, so there is no error to show.")
    query = next((one for one in chosen.queries if not one.whole_table), chosen.queries[0])
    points = []
    for share in _SHARES:
        epsilon = min(_MOST_EPSILON, ranking.problem.epsilon * share)
        problem = ranking.problem.model_copy(update={"epsilon": epsilon})
        try:
            made = chosen if share == 1 else planned_by(methods()[chosen.mechanism], problem)
            error = made.error_of(query).by(ranking.by)
        except Refusal:
            continue
        if error is not None:
            points.append((epsilon, error))
    constant = next((plan for plan in ranking.plans if plan.mechanism == "constant"), None)
    level = None if constant is None else constant.error_of(query).by(ranking.by)
    return ErrorCurve(query.text, chosen.mechanism, ranking.problem.epsilon, tuple(dict(points).items()), level)
