"""What the ratio recursion adds for rounding, for laws that have not quite settled, and for chains that are off."""

from __future__ import annotations

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.chain_ratio import LARGEST_COST, ChainRatio, _forward, _Laws, cost_table
from attrpriv.numerics.laws.markov import MarkovChain

STAYS = MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
BOTH = np.arange(2)


@pytest.mark.parametrize("drift", [0.01, 0.5])
def test_laws_that_drift_make_a_step_back_looser(drift: float) -> None:
    """Where log p(z)/q(z) of two laws before spans the drift, ratios of means of either are off by that much, on both sides."""
    laws = _Laws(STAYS, 100, 100)
    assert laws.reversed(3, drift=drift).slack >= laws.reversed(3).slack + 2 * drift
    assert laws.reversed(3).slack > 0


@pytest.mark.parametrize("change", [0.01, 0.5])
def test_a_chain_that_is_off_makes_a_step_looser(change: float) -> None:
    exact = _forward(STAYS, BOTH, None, 0.0).slack
    assert exact > 0
    assert _forward(STAYS, BOTH, None, change).slack >= exact + change * (1 - 1e-12)


@pytest.mark.parametrize("change", [0.01, 0.1])
def test_a_chain_that_is_off_is_covered(change: float) -> None:
    """Rows (0.9, 0.1) and (0.1, 0.9): ratios of two entries of a column are off by e^change in one that is further apart."""
    own = ChainRatio(STAYS, 6, change=change).epsilon(0.2)
    # With (1 - s)/s in place of 9, and from any start.
    s = 1 / (1 + 9 * np.exp(change))
    for start in (0.5, 0.01, 0.99):
        other = MarkovChain((start, 1 - start), ((1 - s, s), (s, 1 - s)))
        assert ChainRatio(other, 6).epsilon(0.2) <= own
    assert own > ChainRatio(STAYS, 6).epsilon(0.2)


@pytest.mark.parametrize(
    "cost", [-0.1, [[0.0, -0.1], [0.1, 0.0]], float("nan"), [[0.0, float("inf")], [0.1, 0.0]], LARGEST_COST * 1.001]
)
def test_what_is_no_cost(cost: float | list[list[float]]) -> None:
    with pytest.raises(UsageError, match="must be from 0"):
        cost_table(np.array(cost), 2)
