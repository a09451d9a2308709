"""Noise on a chain, part by part: the better of two bounds, what too many statistics cost, and single persons."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import attrpriv as ap
from attrpriv.methods.chain_noise import proof as module
from attrpriv.methods.chain_noise.proof import MOST_DRAWS, ChainDraw, ChainLaw, rate_of, with_draw
from attrpriv.numerics.divergences.chain_ratio import LARGEST_COST
from attrpriv.numerics.laws.markov import MarkovChain
from tests.unit.methods.chain_noise.test_plan import asked, proof_of
from tests.unit.methods.proofs import counted

CHAIN = MarkovChain((0.4, 0.3, 0.3), ((0.8, 0.15, 0.05), (0.1, 0.8, 0.1), (0.05, 0.15, 0.8)))


def draw(**changes: Any) -> ChainDraw:
    return ChainDraw(**({"statistic": "s", "identity": "i", "values": (0, 1, 3), "width": 3, "rate": 0.25} | changes))


@pytest.mark.parametrize(("recursion", "quilts"), [(0.5, 0.75), (0.75, 0.5)])
def test_an_entry_loses_the_lesser_of_two_bounds(recursion: float, quilts: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the recursion at what two states cost; by quilts at what the furthest two do, where there are any."""
    seen: list[Any] = []

    def ratio(chain: object, length: int) -> Any:
        def epsilon(cost: np.ndarray) -> float:
            seen.append(np.array(cost))
            return recursion

        return SimpleNamespace(epsilon=epsilon)

    def by_quilts(chain: object, length: int, rate: float, shapes: object) -> float:
        seen.append((length, rate, shapes))
        return quilts

    monkeypatch.setattr(module, "_ratio", ratio)
    monkeypatch.setattr(module, "chain_loss", by_quilts)
    bare = ChainLaw(theta=0, chain=CHAIN)
    assert bare.computed(50, (draw(),)) == recursion
    assert len(seen) == 1
    assert seen.pop() == pytest.approx(np.array([[0.0, 0.25, 0.75], [0.25, 0.0, 0.5], [0.75, 0.5, 0.0]]), rel=1e-12)
    some = ChainLaw(theta=0, chain=CHAIN, shapes=((1, 2),))
    assert some.computed(50, (draw(), draw(values=None, width=2, rate=0.5))) == min(recursion, quilts)
    cost, (length, rate, shapes) = seen
    assert cost[0] == pytest.approx([1.0, 1.25, 1.75], rel=1e-12)
    assert (length, shapes) == (50, ((1, 2),))
    assert rate == pytest.approx(1.75, rel=1e-12)
    assert rate >= 1.75


def test_states_of_another_chain_and_costs_out_of_reach_prove_nothing() -> None:
    told = ChainLaw(theta=0, chain=CHAIN)
    assert math.isfinite(told.computed(5, (draw(),)))
    assert told.computed(5, (draw(values=(0, 1)),)) == math.inf
    assert told.computed(5, (draw(), draw(values=(0, 1, 2, 3)))) == math.inf
    for share, known in ((1 - 1e-6, True), (1 + 1e-6, False)):
        found = told.computed(5, (draw(rate=LARGEST_COST / 3 * share),))
        assert (found < math.inf) is known or not known
        assert known or found == math.inf


def test_what_is_not_told_apart_any_more_costs_its_whole_width() -> None:
    full = tuple(draw(identity=str(k)) for k in range(MOST_DRAWS))
    assert len(with_draw(full[:-1], draw(identity="new"))) == MOST_DRAWS
    (*kept, last) = with_draw(full, draw(identity="new", statistic="more", rate=0.5))
    assert tuple(kept) == full
    assert (last.statistic, last.identity, last.values, last.width) == ("more", "", None, 1)
    assert 1.5 <= last.rate <= 1.5 * (1 + 1e-12)
    again = with_draw((*kept, last), draw(identity="newer", width=2, values=(0, 1, 2)))
    assert len(again) == MOST_DRAWS + 1
    assert 2.0 <= again[-1].rate <= 2.0 * (1 + 1e-12)
    same = with_draw(full, draw(identity="3", rate=0.5))
    assert len(same) == MOST_DRAWS
    assert 0.75 <= same[3].rate <= 0.75 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("query", "width"), [("count(*) filter (where state = 1)", 1), ("SELECT state, count(*) FROM data GROUP BY state", 2)]
)
def test_single_persons_have_noise_for_the_width(query: str, width: int) -> None:
    """Beside what entries ask for, which is less here."""
    made = ap.plan(asked(query, individuals=0.01), "laplace")
    made.verify()
    assert made.noise.scale == pytest.approx(100.0 * width, rel=1e-6)
    assert proof_of(made).now.width == width
    persons: Any = made.certificate.individuals
    (term,) = persons.terms
    assert (term.sensitivity, term.scale) == (float(width), made.noise.scale)


def test_values_that_do_not_begin_at_0_are_as_far_apart_as_they_are() -> None:
    proof = proof_of(ap.plan(asked(), "laplace"))
    told = counted(n=100, reads=frozenset({"state"}), identity=proof.now.identity, scale=2.0, steps=(1, 2, 4))
    for values, width, covered in (
        ((1, 2), 1, True),
        ((2, 1), 1, True),
        ((1, 4), 3, True),
        ((1, 4), 1, False),
        ((1, 3), 2, False),
    ):
        now = proof.now.model_copy(update={"values": values, "width": width, "rate": rate_of(2.0)})
        made = proof.model_copy(update={"now": now})
        assert made.covers_tally(dataclasses.replace(told, width=width)) is covered, values
        assert not made.covers_tally(dataclasses.replace(told, width=width, scale=0.0))
