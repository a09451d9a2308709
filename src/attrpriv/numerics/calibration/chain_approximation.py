"""A closed bound on the score of a chain that mixes, for any node and initial law (the approximate form of Song et al.).

    Delta_n = gamma^n (1/pi_min - 1)            |P^n(x, y)/pi(y) - 1| <= Delta_n for all x, y
    e(X_{i-a}, X_{i+b} | X_i) <= 2 l(Delta_a) + l(Delta_b),       l(d) = log (1 + d)/(1 - d)

| symbol | meaning |
|---|---|
| pi | the stationary law, all of it positive; pi_min its least probability |
| gamma | the norm of P on functions of mean 0 under pi: the second singular value of diag(pi)^(1/2) P diag(pi)^(-1/2) |

The bound holds at every node and for every initial law, so one minimum over (a, b) covers the whole chain. Where the chain is
reversible, gamma is the second largest modulus of an eigenvalue. What must never change: pi is enclosed by the rows of a power
of P (each stationary probability lies between the least and the largest entry of its column), and gamma is rounded up by what
that and the linear algebra can be off.
"""

from __future__ import annotations

import math

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.chain_quilt import TRIVIAL, two_sided
from attrpriv.numerics.divergences.chain_influence import INFINITE, Shape
from attrpriv.numerics.laws.markov import MarkovChain
from attrpriv.numerics.rounding import COMPUTED_UP

_TIGHT = 1e-9
_DOUBLINGS = 40


def mixing(chain: MarkovChain) -> tuple[float, float]:
    """(pi_min from below, gamma from above); UsageError where the chain does not visit all states, or hardly mixes.

    >>> [round(x, 6) for x in mixing(MarkovChain((1.0, 0.0), ((0.8, 0.2), (0.3, 0.7))))]
    [0.4, 0.5]
    """
    import numpy as np

    power, steps = chain.matrix(), 1
    for _ in range(_DOUBLINGS):
        low, high = power.min(axis=0), power.max(axis=0)
        if low.min() > 0 and (high / low).max() - 1 <= _TIGHT:
            break
        power, steps = power @ power, 2 * steps
    else:
        raise UsageError("transition: the closed bound needs a chain that reaches every state and mixes; use the exact search.")
    off = float((high / low).max() - 1) + 2 * chain.error(steps)
    root = np.sqrt((low + high) / 2)
    shape = root[:, None] * chain.matrix() / root
    centred = shape - np.outer(root, root)
    slack = 2 * off * (float(np.linalg.norm(shape)) + 1) + 1e-12 * chain.states
    gamma = float(np.linalg.norm(centred, 2)) + slack
    return float(low.min()) * (1 - 2 * off), min(1.0, gamma)


def closed_influence(chain: MarkovChain, quilt: Shape) -> float:
    """The bound on e for any node; INFINITE or more where Delta is not below 1."""
    least, gamma = mixing(chain)
    return (2 * _ratio(least, gamma, quilt[0]) if quilt[0] else 0.0) + (_ratio(least, gamma, quilt[1]) if quilt[1] else 0.0)


def approximate_chain_score(chain: MarkovChain, length: int, epsilon: float) -> tuple[float, Shape]:
    """sigma from above for every initial law, and the quilt that gives it ((0, 0): the whole chain).

    >>> sigma, quilt = approximate_chain_score(MarkovChain((0.5, 0.5), ((0.7, 0.3), (0.3, 0.7))), 100, 1.0)
    >>> round(sigma, 4), quilt
    (7.7983, (4, 3))
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"epsilon: must be positive and finite. Got {epsilon}.")
    import numpy as np

    least, gamma = mixing(chain)
    losses = np.array([_ratio(least, gamma, n) for n in range(1, _widest(least, gamma, length) + 1)]).reshape(-1, 1)
    trivial = length / epsilon * COMPUTED_UP
    score, quilt = two_sided(2 * losses, losses, epsilon, trivial)
    return (score * COMPUTED_UP, quilt) if score * COMPUTED_UP < trivial else (trivial, TRIVIAL)


def _ratio(least: float, gamma: float, n: int) -> float:
    """l(Delta_n), from above."""
    delta = gamma**n * (1 / least - 1) * COMPUTED_UP
    return (math.log1p(delta) - math.log1p(-delta)) * COMPUTED_UP if delta < 1 else INFINITE


def _widest(least: float, gamma: float, length: int) -> int:
    """Beyond this distance nothing is left of the influence that a float would show."""
    if gamma >= 1:
        return 0
    if gamma <= 0:
        return 1
    return min(length, 1 + math.ceil(math.log(1e-17 * least) / math.log(gamma)))
