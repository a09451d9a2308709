"""When a Gaussian mechanism may clip rows to the policy's `bounds`, and what that costs.

Clipping changes the law that the assumption describes. If some row is clipped with probability at most p, whatever the secret,
the released law moves by at most p in total variation and delta grows by (1 + e^eps) p. Where p is small enough that is
charged; elsewhere the column is *not* clipped, because the guarantee comes first, and the plan says so.

Given g = a, a row of the query column is normal with mean  mu_q + slope (a - mu_g)  and at most the column's own variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.worst_case import steepest_slope
from attrpriv.numerics.rounding import SOLVED_UP
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret

# The largest share of delta that clipping may take.
_SHARE = 0.1


def clip_charge(problem: Problem, theta: Sequence[Gaussian], column: str) -> float | None:
    """What clipping this column adds to delta; None where it cannot be afforded or not be bounded."""
    if problem.known_rows > 0:  # whoever knows a row outside the bounds knows that it is clipped
        return None
    chances = [_chance(problem, gaussian, column, secret) for gaussian in theta for secret in problem.secrets]
    chance = max(chances, default=math.inf)
    charge = (1 + math.exp(problem.epsilon)) * chance
    return charge if charge <= _SHARE * problem.delta / max(1, len(problem.columns)) else None


def _chance(problem: Problem, gaussian: Gaussian, column: str, secret: Secret) -> float:
    """An upper bound on P(some row is clipped | g = a) over the secret's range and the box."""
    from scipy.special import ndtr

    hidden = secret.single
    if secret.ends is None or hidden is None or not {column, hidden} <= set(gaussian.mean):
        return math.inf
    n, own = problem.n, gaussian.sd_range(column)[1]
    drift = gaussian.tolerance.mean * own
    centre = gaussian.mean[hidden]
    wander = gaussian.tolerance.mean * gaussian.sd_range(hidden)[1]
    furthest = max(abs(end / secret.forms[0].weight(n) - centre) for end in secret.ends) + wander
    reach = drift + steepest_slope(gaussian, column, hidden) * furthest
    low, high = problem.bounds[column]
    mean = gaussian.mean[column]
    tails = float(ndtr((low - mean + reach) / own)) + float(ndtr((mean + reach - high) / own))
    return n * tails * SOLVED_UP
