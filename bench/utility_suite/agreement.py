"""Whether simulated errors are those that a plan predicts.

Two comparisons of a plan's answer with its own prediction, each at a false-alarm rate of `ALARM`:

- *the share of errors beyond alpha95* against a binomial law with probability .05, exactly;
- *the mean square*, errors cut at a size c that the plan says is exceeded by one draw in `_CUT`. Cut squares Y lie in [0, c^2]
  and have moments that follow from the plan's own law of errors, P(|error| > t), where it states one: Bernstein's bound holds
  whatever else the law is. Errors that are mostly 0 and rarely large, as those of a transport, are compared honestly that way.
  Plain noise, and kernels that state no such law, are compared by their squares as they are, at `_SIGMAS` standard errors.

Some predictions are bounds, by design; then only errors above them count. Which those are is said in `is_bound`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binom

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.count_transport.proof import CountHybridEvidence, CountTransportEvidence
from attrpriv.methods.groups.proof import GroupEvidence, GroupVectorEvidence
from attrpriv.methods.optimal.proof import KernelEvidence
from attrpriv.problem.problem import Problem
from attrpriv.queries.query import Query
from bench.utility_suite.simulation import Simulated

ALARM = 1e-10
# The normal law has less than 1e-14 beyond this; squares of Laplace noise, summed over some hundreds, less than ALARM.
_SIGMAS = 8.0
_CUT = 100
# Predictions are numerical: right to this share of the mean square.
_NUMERICAL = 0.01
_LEAST_DRAWS = 400


def is_bound(plan: Plan, problem: Problem) -> bool:
    """Whether the prediction is an upper bound for the tables that are simulated."""
    if plan.mechanism == "constant":
        return _uncertain(problem)
    if isinstance(plan.certificate.evidence, KernelEvidence | CountHybridEvidence) and _uncertain(problem):
        return True  # the worst law within the intervals need not be the one that is simulated
    # The noise that makes tables' spreads alike is reported as the most that any table gets.
    return isinstance(plan.certificate.evidence, GroupEvidence | GroupVectorEvidence)


def _uncertain(problem: Problem) -> bool:
    """Whether errors are those of the worst law of a class, and by the prior."""
    first = problem.theta[0]
    if any(secret.parameter is not None and secret.attribute is None for secret in problem.secrets):
        return True
    if isinstance(first, Counts):
        return any(low < high for laws in first.given.values() for low, high in _intervals(laws))
    if isinstance(first, Gaussian | Groups):
        return bool(first.tolerance.mean or first.tolerance.sd)
    return False


def _intervals(laws: Any) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for law in laws.values():
        found += list(law.probabilities) if hasattr(law, "probabilities") else [law]
    return found


def disagreements(plan: Plan, problem: Problem, run: Simulated) -> list[str]:
    """What does not agree, in words; nothing where all does."""
    if run.draws < _LEAST_DRAWS:
        return []
    found = []
    for k, query in enumerate(plan.queries):
        errors = np.abs(run.errors[:, k])
        found += [f"{query.text}: {text}" for text in (*_beyond(plan, query, errors), *_squares(plan, problem, query, errors))]
    return found


def _beyond(plan: Plan, query: Query, errors: Any) -> list[str]:
    """No more errors above alpha95 than 5%; it is a bound for whole numbers and where the secret may be any."""
    alpha = plan.error_of(query).alpha95
    if alpha is None:
        return []
    count = int((errors > alpha * (1 + 1e-9)).sum())
    if binom.sf(count - 1, len(errors), 0.05) > ALARM:
        return []
    return [f"{count} of {len(errors)} errors are above alpha95 {alpha:g}"]


def _squares(plan: Plan, problem: Problem, query: Query, errors: Any) -> list[str]:
    tail = _tail(plan, query)
    if tail is not None:
        cut = plan.spread_of(query).reach(1 - 1 / _CUT)
        return _compared(np.minimum(errors, cut), *_cut_moments(tail, cut, plan, query), plan, problem, cut)
    rmse = plan.error_of(query).rmse or 0.0
    reach = _SIGMAS * float(np.std(errors**2)) / math.sqrt(len(errors))
    return _outside(float(np.mean(errors**2)), rmse**2, reach, plan, problem)


def _tail(plan: Plan, query: Query) -> Callable[[float], float] | None:
    """P(|error| > t) over the tables of the assumption, where the plan states it."""
    spread: Any = plan.spread_of(query)
    if hasattr(spread, "tail"):
        found: Callable[[float], float] = spread.tail
        return found
    evidence = plan.certificate.evidence
    # Without a prior the chances of a kernel hold for each value of the secret, not on average.
    stated = isinstance(evidence, CountTransportEvidence) and any("prior" in note or "shares" in note for note in plan.notes)
    if not stated or not spread.tails:
        return None
    unit = spread.unit * spread.tail_step
    return lambda t: spread.tails[int(t / unit + 1e-9)] if t / unit + 1e-9 < len(spread.tails) else 0.0


def _cut_moments(tail: Callable[[float], float], cut: float, plan: Plan, query: Query) -> tuple[float, float]:
    """E min(|e|, c)^2 and its fourth power: the integrals of 2t and 4t^3 times P(|e| > t) up to c."""
    if plan.tally is not None:
        unit = plan.tally.unit_of(query, plan.n) * plan.tally.tail_step
        steps = np.arange(round(cut / unit))
        chances = np.array([tail(t * unit) for t in steps])
        return tuple(float(((steps + 1.0) ** p - steps**p) @ chances) * unit**p for p in (2, 4))  # type: ignore[return-value]
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.concatenate([[0.0], np.geomspace(1e-6 * cut, cut, 40)]) if cut else np.zeros(2)
    half = np.diff(edges) / 2
    t = ((edges[:-1] + half)[:, None] + half[:, None] * nodes[None, :]).ravel()
    w = (half[:, None] * weights[None, :]).ravel()
    chances = np.array([tail(float(x)) for x in t])
    return float((2 * t * chances) @ w), float((4 * t**3 * chances) @ w)


def _compared(cut_errors: Any, second: float, fourth: float, plan: Plan, problem: Problem, cut: float) -> list[str]:
    """Bernstein: P(mean Y - E Y > r) <= ALARM for r = sqrt(2 V L/N) + c^2 L/(3N), on both sides."""
    n, level = len(cut_errors), math.log(1 / ALARM)
    variance = max(0.0, fourth - second**2)
    reach = math.sqrt(2 * variance * level / n) + cut**2 * level / (3 * n)
    return _outside(float(np.mean(cut_errors**2)), second, reach, plan, problem)


def _outside(found: float, wanted: float, reach: float, plan: Plan, problem: Problem) -> list[str]:
    slack = _NUMERICAL * wanted
    high = found > wanted + reach + slack
    low = found < wanted - reach - slack and not is_bound(plan, problem)
    if not (high or low):
        return []
    return [f"mean square {found:.6g}, predicted {wanted:.6g} within {reach + slack:.3g}"]
