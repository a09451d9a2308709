"""The loss of the entries of a long chain that are not looked at one by one."""

from __future__ import annotations

import numpy as np
import pytest

from attrpriv.numerics.calibration.chain_quilt import chain_loss
from attrpriv.numerics.divergences.chain_influence import ChainInfluence
from attrpriv.numerics.laws.markov import MarkovChain

STAYS = MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.2, 0.8)))
SHAPES = [(4, 9), (30, 20), (60, 60)]
LENGTH = 100_000


@pytest.mark.parametrize("rate", [1e-4, 0.01, 0.03])
def test_settled_entries_have_the_best_of_all_shapes(rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the first entries have: here these lose nothing."""
    table = ChainInfluence(STAYS, LENGTH)
    assert table.laws.settled
    costs = [table.of_settled(shape) + rate * (sum(shape) - 1) for shape in SHAPES]
    monkeypatch.setattr(ChainInfluence, "of", lambda _, nodes, shape: np.full(len(nodes), -np.inf))
    assert chain_loss(STAYS, LENGTH, rate, SHAPES) == pytest.approx(min(rate * LENGTH, *costs), rel=1e-12)


def test_a_shape_as_long_as_the_chain_fits_no_settled_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry must be left between both ends of a quilt."""
    asked: list[tuple[int, int]] = []
    own = ChainInfluence.of_settled

    def of_settled(table: ChainInfluence, shape: tuple[int, int]) -> float:
        asked.append(shape)
        return own(table, shape)

    monkeypatch.setattr(ChainInfluence, "of_settled", of_settled)
    chain_loss(STAYS, 600, 0.01, [(300, 300), (300, 301), (4, 0), (0, 4), (0, 0)])
    assert asked == [(300, 300)]
