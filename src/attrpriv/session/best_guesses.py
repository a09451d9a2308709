"""Best guesses beside what is released: each from its own answer and what the policy already states (`choice.best_guess`).

What must never change: only public numbers and published answers go in, and no row is read. The ledger holds no guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from attrpriv.errors import AttrprivError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.best_guess import BestGuess, Weighing, weighing
from attrpriv.methods.choice.choose import plan as plan_problem
from attrpriv.policy import Policy
from attrpriv.queries.query import Query
from attrpriv.session.release import Release, Value


def with_guesses(released: Release, policy: Policy, types: Mapping[str, str]) -> Release:
    """The same release, with a guess for each answer that one is worth for and that this very policy was released under."""
    found: dict[Query, BestGuess] = {}
    for answer in released.answers:
        query, value = answer.query, answer.values[0]
        if isinstance(query, Query) and isinstance(value, Value):
            how = _weighing(released.plan_of(query), query, policy, types)
            found |= {} if how is None else {query: how.guess(value.value)}
    return replace(released, guesses=found) if found else released


def _weighing(plan: Plan, query: Query, policy: Policy, types: Mapping[str, str]) -> Weighing | None:
    """What is released is told whatever becomes of the guess: where there is none, for any reason, there is none."""
    if plan.policy_digest != policy.digest or plan.view is not None or query.whole_table or not policy.assume:
        return None
    with suppress(AttrprivError, ArithmeticError, ValueError):
        problem = policy.problem((query,), plan.n, types)
        return weighing(plan, plan_problem(problem, "constant"), query, problem)
    return None
