"""What so many draws prove of a law, and what they would not have seen.

    mean of [0, 1]   the empirical Bernstein bound with a predictable plug-in (waudbysmith2024estimating): no law is assumed
    conformance      sum of scores, sum of their squares, and their largest distance from the normal law

What must never change: every bound holds for any law of the numbers that go in, at the stated error; nothing is approximated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from attrpriv.audit.tables import Floats

POWER = 0.9
_LARGEST = 0.75


def least_mean(values: Floats, error: float) -> float:
    """A lower bound on the mean of independent numbers from 0 to 1, right with probability 1 - error at least.

    >>> round(least_mean(np.full(10_000, 0.25), 1e-6), 4)
    0.2482
    """
    n, bet = len(values), math.log(1 / error)
    counts = np.arange(1, n + 1)
    means = (0.5 + np.cumsum(values)) / (counts + 1)
    before = np.concatenate([[0.5], means[:-1]])
    spread = (0.25 + np.cumsum((values - means) ** 2)) / (counts + 1)
    known = np.concatenate([[0.25], spread[:-1]])
    stakes = np.minimum(_LARGEST, np.sqrt(2 * bet / (n * np.maximum(known, 1e-12))))
    cost = (values - before) ** 2 @ (-np.log1p(-stakes) - stakes)
    return max(0.0, float((stakes @ values - bet - cost) / stakes.sum()))


def least_excess(high: Floats, low: Floats, epsilon: float, error: float) -> float:
    """A lower bound on P(high) - e^epsilon P(low), from the chances of pairs of tables."""
    factor = math.exp(epsilon)
    return least_mean((high + factor * (1 - low)) / (1 + factor), error) * (1 + factor) - factor


def excess(high: Floats, low: Floats, epsilon: float) -> float:
    return float(high.mean() - math.exp(epsilon) * low.mean())


def margin(high: Floats, low: Floats, error: float, epsilon: float = 0.0) -> float:
    """How far P(high) - e^epsilon P(low) must be above what is allowed to be seen with probability 0.9, about."""
    from scipy.special import ndtri

    found, spread = excess(high, low, epsilon), float(np.std(high - math.exp(epsilon) * low))
    return found - least_excess(high, low, epsilon, error) + float(ndtri(POWER)) * spread / math.sqrt(len(high))


# --------------------------------------------------------------------------------------------------------- conformance


@dataclass(frozen=True)
class Conformance:
    """Whether scores are independent standard normals: the least of three p-values, times three."""

    p_value: float
    spread: float
    """their standard deviation: 0.9 where noise has nine tenths of its scale"""


def conformance(scores: Floats) -> Conformance:
    """Of the scores of one answer.

    >>> draws = np.random.default_rng(1).normal(size=5_000)
    >>> conformance(draws).p_value > 1e-3, conformance(0.9 * draws).p_value < 1e-10
    (True, True)
    """
    from scipy import stats

    n, squares = len(scores), float(scores @ scores)
    shifted = 2 * float(stats.norm.sf(abs(float(scores.sum())) / math.sqrt(n)))
    spread = 2 * float(min(stats.chi2.cdf(squares, n), stats.chi2.sf(squares, n)))
    shape = float(stats.kstest(scores, "norm").pvalue)
    return Conformance(min(1.0, 3 * min(shifted, spread, shape)), math.sqrt(squares / n))


@lru_cache(maxsize=64)
def least_short(draws: int, error: float) -> float:
    """The least share by which normal noise may be too small and still be seen, with probability 0.9, in so many draws.

    >>> round(least_short(5_000, 1e-6), 3)
    0.063
    """
    from scipy import stats

    limit = float(stats.chi2.ppf(error / 6, draws))
    return 1 - math.sqrt(limit / float(stats.chi2.ppf(POWER, draws)))
