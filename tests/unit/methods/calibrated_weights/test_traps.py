"""Traps of calibrated weights, each shown to tell the secret when it is planted, and absent from the product.

The school of theory section 5.6 (n = 10,000, delta 1e-6, t0 = 110,000): given the sensitive column, an answer is N(a0'b, s^2 Q)
whatever q is. Each trap makes a second number whose law depends on q, which is 1/n for a mean at t0 and nearly Q at the end of
the range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtr
from scipy.stats import chi2

from attrpriv.errors import RefusedError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.calibrated_weights import draw as weighted
from attrpriv.policy import Policy
from attrpriv.session.session import Session
from tests.unit.methods.calibrated_weights.test_plan import evidence_of, moments_of, planned, problem, table

N = 10_000
FAR = 3.0  # the end of the range, in standard deviations


def school() -> Plan:
    return planned(problem())


@cache
def bound() -> float:
    return evidence_of(school()).bound


def told(variance: Callable[[float], float], epsilon: float = 1.0) -> float:
    """What a number D ~ N(0, variance(q)) tells of the mean: the largest P(T | one) - e^epsilon P(T | other) over the events
    |D| < r and |D| > r and both orders of t0 and the far end, exactly, over the law of q; a lower bound on the divergence."""
    # The law of q at the far end, in 4,000 pieces; answers that failed are left out of both events.
    ends = np.linspace(FAR**2 / (bound() - 1 / N), N + 8 * math.sqrt(2 * N), 4_001)
    x, masses = (ends[1:] + ends[:-1]) / 2, np.diff(chi2.cdf(ends, N - 1))
    far = np.array([math.sqrt(variance(1 / N + FAR**2 / value)) for value in x])
    near, found = math.sqrt(variance(1 / N)), []
    for r in np.linspace(0.02, 3.0, 60) * near:
        inside = [2 * ndtr(r / near) - 1, float(np.sum(masses * (2 * ndtr(r / far) - 1)))]
        outside = [2 * ndtr(-r / near), float(np.sum(masses * 2 * ndtr(-r / far)))]
        for here, there in (inside, outside):
            found += [here - math.exp(epsilon) * there, there - math.exp(epsilon) * here]
    return float(max(found))


# ------------------------------------------------------------------------------------------------- a fresh direction a draw


def test_two_draws_with_fresh_directions_tell_the_secret() -> None:
    """w1'y - w2'y = sqrt(Q - q) (u1 - u2)'y ~ N(0, 2 s^2 (Q - q)), two directions in 9,998 dimensions being at right angles to
    one part in a hundred: delta at epsilon 1 is .49, not 1e-6."""
    assert told(lambda q: 2 * (bound() - q)) == pytest.approx(0.4937, abs=5e-4)


def test_one_draw_tells_nothing() -> None:
    """The same arithmetic on the number that is released: Q for every q, and at epsilon 0 only failure is left."""
    assert told(lambda q: bound(), epsilon=0.0) <= 1e-6


def test_nor_do_two_answers_from_one_direction() -> None:
    """A second column with the same residual is weighted by the same u: the difference of the two answers is Q (1 - rho)."""
    assert told(lambda q: 2 * bound() * (1 - 0.9), epsilon=0.0) <= 1e-6


def test_the_one_column_shortcut_twice_tells_the_secret() -> None:
    """Each column with a coordinate of its own: the covariance of two answers is q, not Q, times that of the residuals."""
    leaks = [told(lambda q: 2 * (bound() - 0.99 * q)), told(lambda q: 2 * (bound() - 0.5 * q))]
    assert leaks == pytest.approx([0.466, 0.029], abs=0.001)


def test_the_product_uses_one_direction_for_all_columns() -> None:
    """Two columns with nearly the same residual: their answers, less what least squares says, go together whatever q is.

    Two hundred draws from one table. With one direction the correlation is that of the residuals, .999; with one for each
    column it would be 0, and a sample correlation above .99 is then out of reach of any alarm rate.
    """
    first, second, y, _ = table()
    rng = np.random.default_rng(3)
    z = [100 * v + int(k) for v, k in zip(y, rng.integers(-50, 50, len(y)), strict=True)]
    target = [Fraction(1), Fraction(0), Fraction(0)]
    drawn = [weighted.calibrated(moments_of(first, second, y, z), target, 3, Fraction(1, 5), 37) for _ in range(200)]
    pairs = np.array([[float(v) for v in one] for one in drawn if one is not None])
    assert np.corrcoef(pairs.T)[0, 1] > 0.99


def test_the_ledger_allows_no_second_direction(tmp_path: Path) -> None:
    """What keeps a fresh draw from being a second one. A ledger that allows more must keep the direction, secretly."""
    rng = np.random.default_rng(1)
    income = rng.normal(110_000, 30_000, 500)
    data = pa.table({"income": income, "weight": 150 + rng.normal(0, 25, 500), "height": rng.normal(67, 4, 500)})
    asked = problem(n=500, delta=1e-3)
    policy = Policy(epsilon=1.0, delta=1e-3, protect=asked.secrets, assume=asked.theta, resolution={"weight": 0.001})
    with Session(data, policy, ledger=tmp_path / "a.ledger") as session:
        session.release("avg(weight)", mechanism="calibrated_weights")
        with pytest.raises(RefusedError, match="no rule leads on from a release by calibrated weights"):
            session.release("avg(height)", mechanism="calibrated_weights")


# -------------------------------------------------------------------------------------------------- no random part at all


def test_least_squares_alone_tells_the_secret() -> None:
    """Without sqrt(Q - q) u the variance is s^2 q: ten times more at the end of the range than at t0."""
    assert told(lambda q: q) == pytest.approx(0.411, abs=0.001)
