"""Markov chains: powers and marginals against fractions, supports against counting, and where the laws settle."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.markov import LEAST, MarkovChain, Powers, marginals

PAPER = MarkovChain((1.0, 0.0), ((0.9, 0.1), (0.4, 0.6)))


@st.composite
def chains(draw: st.DrawFn, most: int = 3) -> MarkovChain:
    """Rows of small whole weights, zeros among them."""
    k = draw(st.integers(2, most))
    weights = st.lists(st.sampled_from([0, 0, 1, 2, 7]), min_size=k, max_size=k).filter(any)
    rows = [draw(weights) for _ in range(k + 1)]
    laws = [tuple(w / sum(row) for w in row) for row in rows]
    return MarkovChain(laws[0], tuple(laws[1:]))


def fractions(rows: tuple[tuple[float, ...], ...]) -> list[list[Fraction]]:
    made = [[Fraction(p) for p in row] for row in rows]
    return [[p / sum(row) for p in row] for row in made]


def times(a: list[list[Fraction]], b: list[list[Fraction]]) -> list[list[Fraction]]:
    return [[sum((x * y for x, y in zip(row, col, strict=True)), Fraction(0)) for col in zip(*b, strict=True)] for row in a]


@given(chains())
@settings(max_examples=40, deadline=None)
def test_powers_are_right_within_their_error(chain: MarkovChain) -> None:
    powers = Powers(chain)
    powers.reach(9)
    step = exact = fractions(chain.transition)
    for n in range(9):
        for value, positive, truth in zip(
            powers.values[n].ravel(), powers.positive[n].ravel(), [p for row in exact for p in row], strict=True
        ):
            assert positive == (truth > 0)
            assert abs(Fraction(float(value)) - truth) <= truth * Fraction(chain.error(n + 1))
        exact = times(exact, step)


@given(chains(), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_marginals_are_right_and_settle_where_they_say(chain: MarkovChain, length: int) -> None:
    found = marginals(chain, length)
    step, law = fractions(chain.transition), fractions((chain.initial,))
    for i in range(1, length + 1):
        row = min(i, found.nodes) - 1
        assert list(found.support[row]) == [p > 0 for p in law[0]]
        held = [s for s, p in enumerate(law[0]) if p > 0]
        if i <= found.nodes:
            assert all(float(found.values[row][s]) == pytest.approx(float(law[0][s]), rel=1e-12) for s in held)
        ratios = [np.log(float(law[0][s])) - np.log(found.values[row][s]) for s in held]
        assert max(ratios) - min(ratios) <= (found.drift if i > found.nodes else 0.0) + 1e-12
        law = times(law, step)
    assert found.settled == (found.nodes < length)


def test_a_chain_that_alternates_never_settles() -> None:
    found = marginals(MarkovChain((1.0, 0.0), ((0.0, 1.0), (1.0, 0.0))), 50)
    assert (found.nodes, found.settled) == (50, False)


def test_a_long_chain_needs_few_of_its_laws() -> None:
    found = marginals(PAPER, 1_000_000)
    assert found.settled
    assert found.nodes < 100
    assert found.drift < 1e-7


def test_what_underflows_is_still_positive() -> None:
    fading = MarkovChain((1.0, 0.0), ((0.1, 0.9), (0.0, 1.0)))
    powers = Powers(fading)
    powers.reach(1000)
    assert powers.values[-1][0, 0] < LEAST
    assert powers.positive[-1][0, 0]
    assert not powers.positive[-1][1, 0]


@pytest.mark.parametrize(
    ("initial", "transition", "says"),
    [
        ((1.0,), ((1.0,),), "initial: must have from 2 to 64 probabilities, one a state. Got 1."),
        ((0.5, 0.4), ((0.5, 0.5), (0.5, 0.5)), "initial: must sum to 1. Got a sum of 0.9, off by -0.1."),
        ((0.5, 0.5), ((0.5, 0.6), (0.5, 0.5)), "transition: row 1: must sum to 1. Got a sum of 1.1, off by +0.1."),
        ((0.5, 0.5), ((0.5, 0.5), (-0.5, 1.5)), "transition: row 2: probabilities must be from 0 to 1. Got -0.5."),
        ((0.5, 0.5), ((0.5, 0.5), (float("nan"), 1.0)), "transition: row 2: probabilities must be from 0 to 1. Got nan."),
        ((0.5, 0.5), ((0.5, 0.5),), "transition: must have one row for each of 2 states. Got 1."),
        ((0.5, 0.5), ((0.5, 0.5), (1.0,)), "transition: row 2: must have one probability for each of 2 states. Got 1."),
        ((1.0, 1e-300), ((0.5, 0.5), (0.5, 0.5)), "initial: a probability must be 0 or at least 1e-280. Got 1e-300."),
    ],
)
def test_bad_chains(initial: tuple[float, ...], transition: tuple[tuple[float, ...], ...], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        MarkovChain(initial, transition)
    assert str(caught.value) == says
