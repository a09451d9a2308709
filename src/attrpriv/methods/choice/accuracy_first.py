"""Accuracy first: the least epsilon that reaches a wanted error, at the policy's delta.

    epsilon* = min over mechanisms of the least epsilon at which the plan's expected error is at most the wanted one

Where a release shares its table's budget with others, epsilon is that of all of them, and the least share is looked for.

Of one mechanism the error falls as epsilon grows, nearly as a power of it, so that a search along logarithms needs few plans.
What must never change: the plan that is returned was itself made at the epsilon it states, and its own error was found to be at
most the wanted one; and its epsilon is never above the policy's, which is the budget. Where more would be needed, that is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.base.accuracy import Measure
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.problem.problem import Problem

# The epsilon returned is at most this share above the least one.
CLOSE = 1e-3
# Epsilons are looked for down to this share of the policy's; less noise than that is never asked for.
_LEAST = 1e-6
# As in `problem.problem`: above, a promise says nothing.
_MOST = 100.0
_STEPS = 60

Planner = Callable[[float], Plan | None]


def plan_for_error(problem: Problem, error: float, mechanism: str = "auto", by: Measure = "rmse") -> Plan:
    """The plan of least epsilon, up to the policy's, whose error is at most `error` for every query.

    A refusal says which epsilon would be needed.
    """
    if isinstance(error, bool) or not (isinstance(error, int | float) and math.isfinite(error) and error > 0):
        raise UsageError(f"error: must be a positive number. Got {error!r}.")
    able = _able(problem, mechanism, by)
    reaching = [found for found in able if _reaches(found, error, by)]
    if not reaching:
        raise _out_of_reach(problem, able, error, by)
    best = reaching[0]
    for found in reaching:
        best = _least(problem, found, best, error, by)
    return best


def _able(problem: Problem, mechanism: str, by: Measure) -> tuple[Plan, ...]:
    """What may be chosen at the policy's epsilon, best first."""
    if mechanism != "auto":
        return (plan(problem, mechanism, by),)
    ranking = rank(problem, by)
    if not ranking.able:
        raise ranking.error()
    return ranking.able


def _error(found: Plan | None, by: Measure) -> float:
    """The largest error of any query; infinite where one is not known."""
    if found is None:
        return math.inf
    errors = [found.error_of(query).by(by) for query in found.queries]
    return max(math.inf if error is None else error for error in errors)


def _reaches(found: Plan | None, error: float, by: Measure) -> bool:
    return _error(found, by) <= error


def _dial(problem: Problem) -> str:
    """What is turned: epsilon of a release that is alone, else its share of what is left."""
    return "epsilon" if problem.alone else "spend"


def _used(found: Plan, problem: Problem) -> float:
    """Where the dial stands."""
    return found.epsilon if problem.alone else found.spend


def _planner(problem: Problem, mechanism: str) -> Planner:
    """The same problem with the dial elsewhere; None where the mechanism refuses it."""

    def at(epsilon: float) -> Plan | None:
        try:
            return plan(problem.model_copy(update={_dial(problem): epsilon}), mechanism)
        except (RefusedError, UsageError):
            return None

    return at


def _least(problem: Problem, found: Plan, best: Plan, error: float, by: Measure) -> Plan:
    """The least epsilon of one mechanism, where that is below the best so far by more than the search can tell."""
    if found.view is not None:  # hides everything at epsilon 0 already
        return found if found.epsilon < best.epsilon or best is found else best
    at, high = _planner(problem, found.mechanism), found
    if best.mechanism != found.mechanism:
        used = _used(best, problem)
        lower = at(used * (1 - CLOSE)) if best.epsilon else None
        if lower is None or not _reaches(lower, error, by):
            return best
        high = lower
    most = problem.epsilon if problem.alone else problem.spend
    return _search(at, high, error, by, most * _LEAST, lambda plan: _used(plan, problem))


def _search(at: Planner, high: Plan, error: float, by: Measure, floor: float, used: Callable[[Plan], float]) -> Plan:
    """From a plan that reaches the error down to the least epsilon that does; what is returned was found to reach it."""
    least = at(floor)
    if least is not None and _reaches(least, error, by):
        return least  # some errors do not depend on epsilon
    low, at_low = 0.0, math.inf
    for _ in range(_STEPS):
        top = used(high)
        if top - low <= CLOSE * top or top <= floor:
            break
        epsilon = _guess(low, at_low, top, _error(high, by), error)
        found = at(max(epsilon, floor))
        if _reaches(found, error, by) and found is not None:
            high = found
        else:
            low, at_low = max(epsilon, floor), _error(found, by)
    return high


def _guess(low: float, at_low: float, high: float, at_high: float, error: float) -> float:
    """Where the line through both logarithms meets the error, a little above it; before there is one, error ~ 1/epsilon."""
    if not low:
        step = at_high / error if at_high > 0 else 0.0
        return high * min(max(step * (1 + CLOSE / 4), 0.1), 1 - CLOSE / 2)
    if not (math.isfinite(at_low) and at_low > at_high > 0):
        return math.sqrt(low * high)
    share = math.log(at_low / error) / math.log(at_low / at_high)
    guess = low * math.exp(math.log(high / low) * share) * (1 + CLOSE / 4)
    narrow = math.exp(math.log(high / low) / 20)
    return min(max(guess, low * narrow), high / narrow)


def _out_of_reach(problem: Problem, able: tuple[Plan, ...], error: float, by: Measure) -> RefusedError:
    """Which epsilon would be needed, by the mechanism that needs the least."""
    if not problem.alone:
        best = min(_error(found, by) for found in able)
        share = "all" if problem.spend == 1 else f"{problem.spend:.3g}"
        advice = "Ask for a larger one." if problem.spend == 1 else "Spend more of it, or ask for a larger one."
        return RefusedError(
            f"error: {error:g} is out of reach; with {share} of what is left of the table's budget the least error ({by}) that "
            f"all queries keep is {best:.4g}. {advice}"
        )
    needed: Plan | None = None
    for found in able:
        most = _MOST if needed is None else needed.epsilon * (1 - CLOSE)
        at = _planner(problem, found.mechanism)
        larger = None if found.view is not None else _larger(at, problem.epsilon, most, error, by)
        needed = needed if larger is None else larger
    best = min(_error(found, by) for found in able)
    now = f"at the policy's epsilon {problem.epsilon:g} the least error ({by}) is {best:.4g}"
    if math.isinf(best):
        now = "the error is not known before the table is read"
    if needed is None:
        return RefusedError(f"error: {error:g} is out of reach; {now}, and no epsilon up to {_MOST:g} gives it.")
    more = needed.epsilon - problem.epsilon
    by_which = f"epsilon {needed.epsilon:.4g} ({needed.mechanism}), {more:.4g} more than the policy allows"
    return RefusedError(f"error: {error:g} needs {by_which}; {now}.")


def _larger(at: Planner, epsilon: float, most: float, error: float, by: Measure) -> Plan | None:
    """The least epsilon above the policy's that reaches the error; None where none up to `most` does."""
    low = epsilon
    while low < most:
        high = min(2 * low, most)
        found = at(high)
        if found is not None and _reaches(found, error, by):
            return _above(at, low, found, error, by)
        low = high
    return None


def _above(at: Planner, low: float, high: Plan, error: float, by: Measure) -> Plan:
    at_low = math.nan
    while high.epsilon - low > CLOSE * high.epsilon:
        epsilon = _guess(low, at_low, high.epsilon, _error(high, by), error)
        found = at(epsilon)
        if found is not None and _reaches(found, error, by):
            high = found
        else:
            low, at_low = epsilon, _error(found, by)
    return high
