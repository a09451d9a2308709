"""Promises that hide little: a matter of degree, so that a plan carries a warning, and is made.

| what is weak | told where |
|---|---|
| epsilon | it is above 10: likelihoods may differ by a factor of 20,000 |
| delta | it is above 1/n |
| a range, or sets of values | the assumption gives the range, or all sets but one, a chance below 1% |
| the widest pair (`within`, a narrow range) | it is below a hundredth of what the secret varies by under the assumption |

What an assumption says of a secret is its `belief` (`problem.belief`). What hides nothing at all is refused: here where it is
the assumption that leaves a secret one value, else in `problem.hidden`. What must never change: these are functions of the
problem alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress

from attrpriv.errors import AttrprivError
from attrpriv.methods.base.accuracy import WEAK
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.belief import Belief
from attrpriv.problem.counted import share_range
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret

_MOST_EPSILON = 10.0
_RARE, _NONE = 0.01, 1e-99
_SMALL = 0.01


def weak_lines(problem: Problem, epsilon: float, delta: float) -> tuple[str, ...]:
    """What somebody who approves a release under (epsilon, delta) must not miss."""
    lines = []
    if epsilon > _MOST_EPSILON:
        lines.append(f"epsilon {epsilon:g} lets likelihoods differ by a factor of {math.exp(epsilon):.1e}. Take one near 1.")
    if delta > 1 / problem.n:
        often = f"in up to one of {1 / delta:,.0f} tables anything may show"
        lines.append(f"delta {delta:g} is above 1/n, {1 / problem.n:.2g}: {often}. Take one far below 1/n.")
    for secret in problem.secrets:
        lines += [line for line in (_improbable(problem, secret), _narrow(problem, secret)) if line is not None]
    return tuple(f"{WEAK} {line}" for line in lines)


def require_open(problem: Problem) -> None:
    """A refusal where the assumption itself leaves a secret one value: then there is nothing to hide."""
    for secret in problem.secrets:
        if problem.theta and all(_belief(problem, member, secret).single(secret) for member in problem.theta):
            reason = f"{secret.text}: has a single possible value under the assumption; there is nothing to hide."
            raise Refusal(Cause.PROMISE, reason)


def _improbable(problem: Problem, secret: Secret) -> str | None:
    chances = [_chances(problem, member, secret) for member in problem.theta]
    known = [each for each in chances if each is not None]
    if not known or len(known) < len(chances) or len({len(each) for each in known}) > 1:
        return None
    most = sorted(max(each) for each in zip(*known, strict=True))
    chance = most[0] if len(most) == 1 else most[-2]
    if chance >= _RARE:
        return None
    told = "its range" if len(most) == 1 else "all but one of the values that must look alike"
    likely = "no chance" if chance < _NONE else f"a chance of {chance:.1g} at most"
    return f"{secret.text}: the assumption gives {told} {likely}; there is hardly anything to hide. Correct one of the two."


def _narrow(problem: Problem, secret: Secret) -> str | None:
    """Under every member, pairs are close against what the secret varies by; of a population, what its tables vary by."""
    if secret.parameter is not None and secret.composition is not None:
        spreads = [_table_spread(problem, secret)]
    else:
        spreads = [_belief(problem, member, secret).spread(secret, problem.n) for member in problem.theta]
    known = [spread for spread in spreads if spread is not None]
    if secret.cases is not None or not known or len(known) < len(spreads) or not secret.gap < _SMALL * min(known):
        return None
    return (
        f"{secret.text}: only values at most {secret.gap:g} apart must look alike, below a hundredth of what it varies by, "
        f"{min(known):.3g}. Of others nothing is promised."
    )


def _belief(problem: Problem, member: Assumption, secret: Secret) -> Belief:
    """What one member of the assumption says of a secret; nothing where the secret is of another kind."""
    found = None
    with suppress(AttrprivError, Refusal):
        found = member.belief(secret, problem.n, problem.bins)
    return Belief() if found is None else found


def _chances(problem: Problem, member: Assumption, secret: Secret) -> list[float] | None:
    with suppress(AttrprivError, Refusal):
        return _belief(problem, member, secret).chances(secret, problem.n)
    return None


def _table_spread(problem: Problem, secret: Secret) -> float | None:
    """How far a table's share is from the population's."""
    if isinstance(secret.between, Mapping):
        return None
    with suppress(AttrprivError):
        return min(math.sqrt(p * (1 - p) / problem.n) for p in share_range(secret))
    return None
