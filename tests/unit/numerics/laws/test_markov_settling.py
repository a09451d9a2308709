"""Where a chain's laws settle, and how far they still move: with errors that can be seen, and laws written by hand.

Floats are off by 2^-53, and no test can see whether what is added for that is right. So here chains say that each of their
factors is off by a hundredth.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import markov
from attrpriv.numerics.laws.markov import LEAST, MOST_STATES, MarkovChain, Powers, marginals, settled_at

ROWS = ((0.7, 0.2, 0.1), (0.3, 0.3, 0.4), (0.05, 0.15, 0.8))


class Rough(MarkovChain):
    """Off by a hundredth for each factor."""

    def error(self, steps: float) -> float:
        return 0.01 * (steps + 1)


PLAIN = MarkovChain((0.2, 0.3, 0.5), ROWS)
ROUGH = Rough((0.2, 0.3, 0.5), ROWS)


def by_odds(*logs: float) -> NDArray[np.float64]:
    """Laws of two states, whose log-ratios are these."""
    return np.array([(1 / (1 + math.exp(-x)), 1 / (1 + math.exp(x))) for x in logs])


def settled(values: NDArray[np.float64], length: int, *, share: float = 1e-12, rough: bool = True) -> int | None:
    return settled_at(values, values > 0, ROUGH if rough else PLAIN, length, share)


def test_as_many_states_as_are_taken() -> None:
    for k in (2, MOST_STATES):
        assert MarkovChain((1 / k,) * k, ((1 / k,) * k,) * k).states == k
    many = MOST_STATES + 1
    with pytest.raises(UsageError, match="initial"):
        MarkovChain((1 / many,) * many, ((1 / many,) * many,) * many)


def test_a_probability_may_be_above_one_by_as_much_as_a_sum() -> None:
    near = MarkovChain((1 + 5e-10, 0.0), ((0.5, 0.5), (0.25, 0.75)))
    assert near.start().tolist() == [1.0, 0.0]
    for above in (1 + 2e-9, 1.5):
        with pytest.raises(UsageError, match="from 0 to 1"):
            MarkovChain((above, 0.0), ((0.5, 0.5), (0.25, 0.75)))


def test_rows_are_divided_by_their_sums() -> None:
    """Each is off by its own part of what a sum may be off by, a million units of a float."""
    rows = ((0.5 + 5e-10, 0.5), (0.25, 0.75 - 8e-10))
    chain = MarkovChain((0.2 - 3e-10, 0.8), rows)
    for found, row in zip((*chain.matrix(), chain.start()), (*rows, chain.initial), strict=True):
        assert found == pytest.approx(np.array(row) / math.fsum(row), rel=1e-15, abs=0)
    assert float(abs(chain.matrix().sum(axis=1) - 1).max()) < 1e-15


def test_the_error_grows_with_states_and_steps() -> None:
    """Three states: 2 * 3 + 8 units a factor, of 5 steps and of the chain as written."""
    units = 14 * 6 * 2.0**-53
    assert units <= PLAIN.error(5) <= units * (1 + 1e-9)
    assert PLAIN.error(1e30) == math.e - 1


@pytest.mark.parametrize("w", [1, 2, 3, 5, 8, 9])
def test_powers_reach_as_far_as_asked(w: int) -> None:
    powers = Powers(PLAIN)
    powers.reach(w)
    assert len(powers.values) == len(powers.positive) == w
    powers.reach(1)
    assert len(powers.values) == w
    assert powers.values[-1] == pytest.approx(np.linalg.matrix_power(PLAIN.matrix(), w), rel=1e-13)


def test_what_is_positive_and_too_small_is_unusable() -> None:
    """The least that is taken is usable; its square underflows; what is impossible is no matter of floats."""
    powers = Powers(MarkovChain((1.0, 0.0), ((LEAST, 1.0), (0.0, 1.0))))
    powers.reach(2)
    assert powers.values[0][0, 0] == LEAST
    assert powers.unusable().tolist() == [[[False, False], [False, False]], [[True, False], [False, False]]]


def test_laws_that_do_not_settle_do_not_drift() -> None:
    for length in (1, 2, 4, 7):
        found = marginals(MarkovChain((1.0, 0.0), ((0.0, 1.0), (1.0, 0.0))), length)
        assert (found.nodes, found.settled, found.drift) == (length, False, 0.0)


@pytest.mark.parametrize(("step", "share"), [(0.08, 1e-12), (0.2, 2.0)])
def test_laws_settle_where_a_step_is_within_their_share_or_their_error(step: float, share: float) -> None:
    """Eight errors of a hundredth; or of a share of 2, a tenth of it for each of ten nodes."""
    assert settled(by_odds(0.0, 0.99 * step), 10, share=share) == 1
    assert settled(by_odds(0.0, 1.01 * step), 10, share=share) is None
    assert settled(by_odds(0.0, 1.01 * step, 2 * step), 10, share=share) == 2
    assert settled(by_odds(0.0, 1.0, 0.0, 0.0), 10, share=share) == 3


def test_one_law_has_not_settled_and_the_last_node_has_none_behind_it() -> None:
    assert settled(by_odds(0.5), 10) is None
    assert settled(by_odds(0.5, 0.5), 2) == 1
    assert settled(by_odds(0.5, 0.5), 1) is None
    moved = by_odds(0.0, 0.5, 0.5)
    assert settled(moved, 3) == 2
    assert settled(moved, 2) is None


def test_a_step_is_between_two_states_and_not_of_all_of_them() -> None:
    """A state that gains as much as the other loses has moved twice that."""
    assert settled(by_odds(-0.3, 0.3), 10) is None
    assert settled(np.array([(0.4, 0.4, 0.2), (0.4, 0.4, 0.21)]), 10) == 1


def test_laws_have_settled_only_on_one_support_and_with_all_their_digits() -> None:
    assert settled(np.array([(0.5, 0.5, 0.0), (0.5, 0.5, 0.0)]), 10) == 1
    assert settled(np.array([(0.5, 0.5, 0.0), (0.5, 0.49, 0.01)]), 10) is None
    assert settled(np.array([(1.0, LEAST), (1.0, LEAST)]), 10) == 1
    assert settled(np.array([(1.0, LEAST / 2), (1.0, LEAST / 2)]), 10) is None
    assert settled(np.array([(1.0, LEAST / 2), (1.0, LEAST / 2), (0.5, 0.5), (0.5, 0.5)]), 10) == 3


@pytest.mark.parametrize(("length", "node"), [(10, 3), (1000, 7)])
def test_the_drift_is_that_of_all_steps_that_are_left(length: int, node: int) -> None:
    """A step, with two errors of two factors each way; and the law of the node, with one of `node` factors each way."""
    law, step = np.array([0.2, 0.3, 0.5, 0.0]), np.zeros((4, 4))
    step[:3, :3], step[3] = ROWS, 0.25
    moves = [math.log(sum(law[s] * ROWS[s][t] for s in range(3)) / law[t]) for t in range(3)]
    wanted = (length - node) * (max(moves) - min(moves) + 4 * 0.02) + 2 * 0.01 * (node + 1)
    assert wanted <= markov._drift(law, step, ROUGH, length, node) <= wanted * (1 + 1e-9)
