"""The proof of noise under a chain: what each draw costs, what is put together, and what is drawn is what it counted on."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.methods.chain_noise.proof import MOST_DRAWS, ChainDraw, ChainLaw, ChainNoiseEvidence, rate_of, with_draw
from attrpriv.numerics.divergences.chain_ratio import LARGEST_COST
from attrpriv.numerics.laws.markov import MarkovChain
from tests.unit.methods.proofs import counted

STAYS = MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))


def draw(**changes: Any) -> ChainDraw:
    told: dict[str, Any] = {"statistic": "s", "identity": "i", "values": (0, 1), "width": 1, "rate": 0.01}
    return ChainDraw(**(told | changes))


def evidence(**changes: Any) -> ChainNoiseEvidence:
    told: dict[str, Any] = {
        "column": "x", "states": ("0", "1"), "n": 10, "longest": 10, "now": draw(rate=rate_of(2.0)),
        "checks": (ChainLaw(theta=0, chain=STAYS),),
    }  # fmt: skip
    return ChainNoiseEvidence(**(told | changes))


# ------------------------------------------------------------------------------------------------------- what a draw costs


def test_an_entry_costs_by_how_far_its_states_are_apart() -> None:
    wanted = np.array([[0, 0.5, 2], [0.5, 0, 1.5], [2, 1.5, 0]])
    found = draw(values=(0, 1, 4), width=4, rate=0.5).cost(3)
    assert (found >= wanted).all()
    assert found == pytest.approx(wanted, rel=1e-12)
    whole = draw(values=None, width=4, rate=0.5).cost(3)
    assert whole.shape == (3, 3)
    assert (whole >= 2).all()
    assert whole == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("scale", [3.0, 0.1, 7e5])
def test_a_rate_is_one_over_the_scale_from_above(scale: float) -> None:
    exact = 1 / Fraction(scale)
    assert exact <= Fraction(rate_of(scale)) <= exact * (1 + Fraction(1, 2**51))


def test_noise_on_the_same_statistic_adds_up() -> None:
    past = (draw(identity="a"), draw(identity="b", rate=0.25))
    for same in (past[1], draw(identity="b", statistic="in other words", rate=0.25)):
        (first, both) = with_draw(past, same)
        assert first == past[0]
        assert Fraction(1, 2) <= Fraction(both.rate) <= Fraction(1, 2) * (1 + Fraction(1, 10**12))
    for other in ({"identity": "c"}, {"values": (1, 0)}, {"values": (0, 2), "width": 2}):
        assert with_draw(past, draw(**{"identity": "b", **other})) == (*past, draw(**{"identity": "b", **other}))


def test_what_is_put_together_costs_no_less() -> None:
    """Noise of rate r on a statistic of width w costs r w between any two states, and the history does not grow any more."""
    past = tuple(draw(identity=str(k)) for k in range(MOST_DRAWS))
    wide = draw(identity="wide", values=(0, 3), width=3, rate=0.001)
    assert with_draw(past[1:], wide) == (*past[1:], wide)
    drawn, told = past, Fraction(0)
    for k in range(1, 4):
        drawn = with_draw(drawn, draw(identity=f"wide {k}", values=(0, 3), width=3, rate=0.001))
        told += 3 * Fraction(0.001)
        assert len(drawn) == MOST_DRAWS + 1
        assert drawn[-1].values is None
        assert told <= Fraction(drawn[-1].rate) * drawn[-1].width <= told * (1 + Fraction(1, 10**12))
    known = with_draw(drawn, past[3])
    assert len(known) == MOST_DRAWS + 1
    assert known[3].rate == pytest.approx(0.02)


# ----------------------------------------------------------------------------------------------------------------- the loss


def test_costs_of_different_draws_add_up() -> None:
    law = ChainLaw(theta=0, chain=STAYS)
    alone = law.loss(10, (draw(rate=0.3),))
    parts = law.loss(10, (draw(rate=0.1), draw(identity="j", values=(2, 0), width=2, rate=0.1)))
    assert parts == pytest.approx(alone, rel=1e-9)
    assert law.loss(10, (draw(rate=0.2),)) < alone


def test_what_is_out_of_reach_proves_nothing() -> None:
    law = ChainLaw(theta=0, chain=STAYS)
    assert law.loss(10, (draw(values=(0, 1, 1)),)) == math.inf
    assert law.loss(10, (draw(rate=LARGEST_COST * 1.001),)) == math.inf
    assert LARGEST_COST * 0.99 < law.loss(10, (draw(rate=LARGEST_COST * 0.99),)) < math.inf
    assert evidence(longest=10).loss() < math.inf
    assert evidence(longest=11).loss() == math.inf
    assert evidence(states=("0", "1", "2")).loss() == math.inf
    assert evidence(longest=11).delta(1e3) == 1.0


def test_the_worst_member_counts() -> None:
    looser = MarkovChain((0.5, 0.5), ((0.6, 0.4), (0.4, 0.6)))
    both = evidence(checks=(ChainLaw(theta=0, chain=looser), ChainLaw(theta=1, chain=STAYS)))
    assert evidence(checks=both.checks[:1]).loss() < both.loss() == evidence().loss()


def test_the_share_that_is_spent() -> None:
    told = evidence()
    loss = told.loss()
    assert loss / 4 <= told.spent(4.0, 0.0) <= loss / 4 * (1 + 1e-15)
    assert told.spent(loss, 0.0) == 1.0
    assert told.spent(loss / 2, 0.0) >= 2.0
    assert told.delta(loss) == 0.0
    assert told.delta(math.nextafter(loss, 0.0)) == 1.0


# ---------------------------------------------------------------------------------------------------------- what is covered


COUNTED: dict[str, Any] = {"reads": frozenset({"x"}), "identity": "i"}


@pytest.mark.parametrize(
    "change",
    [
        {"noise": "gaussian"}, {"n": 11}, {"identity": "j"}, {"width": 2}, {"reads": frozenset({"y"})},
        {"reads": frozenset({"x", "y"})}, {"scale": 0.0}, {"scale": 2.5}, {"scale": 1.5}, {"steps": (0, 2)},
        {"histogram": True},
    ],
)  # fmt: skip
def test_what_is_drawn_must_be_what_it_counted_on(change: dict[str, Any]) -> None:
    assert evidence().covers_tally(counted(**COUNTED))
    assert not evidence().covers_tally(counted(**{**COUNTED, **change}))


def test_what_states_add_must_be_as_far_apart_as_rows_can_be() -> None:
    assert not evidence(now=draw(width=2, rate=rate_of(2.0))).covers_tally(counted(**COUNTED, width=2, steps=(0, 1, 2)))
    wider = draw(values=(2, 0), width=2, rate=rate_of(2.0))
    assert evidence(now=wider).covers_tally(counted(**COUNTED, width=2, steps=(0, 1, 2)))
    cells = draw(values=None, width=2, rate=rate_of(2.0))
    assert evidence(now=cells).covers_tally(counted(**COUNTED, width=2, histogram=True))
