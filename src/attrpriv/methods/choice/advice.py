"""What would beat the constant answer: how near values must be, or how well slopes must be known.

Computed by planning again with smaller gaps or a smaller tolerance; a function of public facts only.
"""

from __future__ import annotations

from collections.abc import Callable

from attrpriv.methods.base.accuracy import Measure
from attrpriv.methods.choice.ranking import Ranking
from attrpriv.methods.dispatch import planned_by
from attrpriv.methods.table import methods
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.queries.query import Query

# Halvings of the logarithm of a share: three digits of it.
_STEPS = 14
# Each step is a plan, which takes long with many secrets.
_MOST_SECRETS = 10


def advice(ranking: Ranking) -> str | None:
    """One line for a ranking in which nothing beats `constant`; None where something does."""
    chosen, constant = ranking.chosen, ranking.constant
    if constant is None or chosen is None:
        return None
    query = next(query for query in chosen.queries if not query.whole_table)
    goal = constant.error_of(query).by(ranking.by) or 0.0

    def enough(problem: Problem) -> bool:
        return _error(chosen.mechanism, problem, query, ranking.by) <= goal

    if len(ranking.problem.secrets) > _MOST_SECRETS:
        return f"{_nothing(goal)}; something might with fewer secrets, a smaller within or a smaller slope tolerance."
    ways = []
    nearer = _largest_share(lambda share: enough(_nearer(ranking.problem, share)))
    if nearer is not None:
        ways.append(_gap_words(ranking.problem, nearer))
    surer = _largest_share(lambda share: enough(_surer(ranking.problem, share)))
    slope = max((member.slope_tolerance() or 0.0 for member in ranking.problem.theta), default=0.0)
    if surer is not None and slope > 0:
        ways.append(f"slope tolerance <= {surer * slope:.3g}")
    would = f"; something would with {' or '.join(ways)}" if ways else ""
    return f"{_nothing(goal)}{would}."


def _nothing(goal: float) -> str:
    return f"nothing beats the constant answer that the assumption already gives (error {goal:.3g})"


def _largest_share(enough: Callable[[float], bool]) -> float | None:
    """The largest share of the present value that is enough, from below; None if even a ten-thousandth is not."""
    low, high = 1e-4, 1.0
    if not enough(low):
        return None
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def _error(mechanism: str, problem: Problem, query: Query, by: Measure) -> float:
    try:
        error = planned_by(methods()[mechanism], problem).error_of(query).by(by)
    except Refusal:
        return float("inf")
    return float("inf") if error is None else error


def _nearer(problem: Problem, share: float) -> Problem:
    secrets = tuple(s.model_copy(update={"within": s.gap * share}) for s in problem.secrets)
    return problem.model_copy(update={"secrets": secrets})


def _surer(problem: Problem, share: float) -> Problem:
    theta = tuple(member.surer(share) for member in problem.theta)
    return problem if None in theta else problem.model_copy(update={"theta": theta})


def _gap_words(problem: Problem, share: float) -> str:
    if len(problem.secrets) == 1:
        return f"within <= {problem.secrets[0].gap * share:.3g}"
    return f"every within <= {share:.3g} of its present gap"
