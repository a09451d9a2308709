"""The proof that entries of a chain are hidden: the loss by enumeration of a small chain, and what may follow what."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from attrpriv.methods.chain_quilt.plan import ChainCheck, ChainEvidence
from attrpriv.numerics.laws.markov import MarkovChain
from tests.unit.methods.proofs import counted, refused

STAYS = MarkovChain((0.5, 0.5), ((0.8, 0.2), (0.3, 0.7)))
SETTLED = MarkovChain((0.6, 0.4), ((0.8, 0.2), (0.3, 0.7)))
MOVES = MarkovChain((0.5, 0.5), ((0.1, 0.9), (0.95, 0.05)))
LENGTH = 6


def check(chain: MarkovChain = STAYS, **changes: Any) -> ChainCheck:
    told: dict[str, Any] = {
        "theta": 0, "chain": chain, "shapes": ((1, 1), (2, 2)), "node": 1, "quilt": (0, 0), "influence": 0.0, "near": 6,
        "score": 1.0,
    }  # fmt: skip
    return ChainCheck(**(told | changes))


def evidence(**changes: Any) -> ChainEvidence:
    told: dict[str, Any] = {"checks": (check(),), "column": "x", "length": LENGTH, "width": 1.0, "scale": 10.0}
    return ChainEvidence(**(told | changes))


def probabilities(chain: MarkovChain) -> dict[tuple[int, ...], float]:
    found = {}
    for path in itertools.product((0, 1), repeat=LENGTH):
        p = chain.initial[path[0]]
        for a, b in itertools.pairwise(path):
            p *= chain.transition[a][b]
        found[path] = float(p)
    return found


def influence(chain: MarkovChain, node: int, others: tuple[int, ...]) -> float:
    """max over values of what these entries tell of that one: log P(others | x) / P(others | y)."""
    law = probabilities(chain)
    given = [sum(p for path, p in law.items() if path[node] == x) for x in (0, 1)]
    worst = 0.0
    for values in itertools.product((0, 1), repeat=len(others)):
        both = [
            sum(p for path, p in law.items() if path[node] == x and tuple(path[k] for k in others) == values) / given[x]
            for x in (0, 1)
        ]
        worst = max(worst, abs(math.log(both[0] / both[1])))
    return worst


def loss(chain: MarkovChain, shapes: tuple[tuple[int, int], ...], rate: float) -> float:
    """max over nodes of min over quilts, their sides and none, each by enumeration."""
    worst = 0.0
    sides = {side for a, b in shapes for side in ((a, b), (a, 0), (0, b)) if any(side)}
    for node in range(LENGTH):
        options = [rate * LENGTH]
        for a, b in sides:
            ends = [end for end, step in ((node - a, a), (node + b, b)) if step]
            if all(0 <= end < LENGTH for end in ends):
                first, last = (node - a + 1 if a else 0), (node + b - 1 if b else LENGTH - 1)
                options.append(influence(chain, node, tuple(ends)) + rate * (last - first + 1))
        worst = max(worst, min(options))
    return worst


@pytest.mark.parametrize("chain", [STAYS, MOVES])
@pytest.mark.parametrize("shapes", [(), ((1, 1),), ((2, 2),), ((1, 2), (3, 1))])
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_loss_by_enumeration(chain: MarkovChain, shapes: Any, rate: float) -> None:
    told = evidence(checks=(check(chain, shapes=shapes),), scale=1 / rate)
    exact = loss(chain, shapes, rate)
    assert told.loss() == pytest.approx(exact, rel=1e-6)
    assert told.loss() >= exact * (1 - 1e-12)
    assert told.delta(exact * (1 + 1e-6)) == 0.0
    assert told.delta(exact * (1 - 1e-6)) == 1.0


@pytest.mark.parametrize("rate", [0.1, 0.6, 1.0])
def test_a_chain_that_has_settled_loses_no_less_than_is_said(rate: float) -> None:
    """There only quilts with two ends are used, once for all nodes behind the first ones."""
    for shapes in (((1, 1),), ((2, 2),), ((1, 2), (3, 1))):
        exact = loss(SETTLED, shapes, rate)
        assert exact * (1 - 1e-12) <= evidence(checks=(check(SETTLED, shapes=shapes),), scale=1 / rate).loss() <= 1.05 * exact


def test_the_worst_member_counts() -> None:
    losses = [evidence(checks=(check(chain),), scale=1.0).loss() for chain in (STAYS, MOVES)]
    for pair in ((STAYS, MOVES), (MOVES, STAYS)):
        assert evidence(checks=tuple(map(check, pair)), scale=1.0).loss() == max(losses)
    assert losses[0] != losses[1]


def test_rates_of_all_releases_add_up() -> None:
    first = evidence()
    assert first.rate() == pytest.approx(0.1, rel=1e-12)
    assert first.rate() >= 0.1
    then = evidence(scale=4.0, width=2.0, earlier=first.rate())
    assert then.rate() == pytest.approx(0.6, rel=1e-12)
    assert then.rate() >= 0.6
    exact = loss(STAYS, ((1, 1),), 0.6)
    assert evidence(scale=4.0, width=2.0, earlier=first.rate(), checks=(check(shapes=((1, 1),)),)).loss() == pytest.approx(
        exact
    )
    assert refused(evidence(scale=1e-320, width=1e10))
    assert refused(evidence(scale=1e300, width=5e-324))  # a rate of nothing is none


def test_what_is_spent() -> None:
    told = evidence()
    lost = told.loss()
    assert told.spent(2 * lost, 0.0) == pytest.approx(0.5, rel=1e-12)
    assert told.spent(2 * lost, 0.0) >= 0.5
    assert told.spent(lost, 0.0) == 1.0
    assert told.spent(lost / 2, 0.0) == pytest.approx(2.0, rel=1e-12)


def test_what_may_follow() -> None:
    first = evidence()
    assert first.follows(None)
    assert not evidence(earlier=0.1).follows(None)
    assert evidence(earlier=first.rate()).follows(first)
    assert not evidence().follows(first)
    assert not evidence(earlier=first.rate()).follows("something else")
    for changes in ({"column": "y"}, {"length": 7}, {"earlier": 0.05}):
        assert not evidence(**({"earlier": first.rate()} | changes)).follows(first), changes
    third = evidence(earlier=evidence(earlier=first.rate()).rate())
    assert third.follows(evidence(earlier=first.rate()))
    assert not third.follows(first)


def test_what_is_covered() -> None:
    told = counted(n=LENGTH, scale=10.0)
    assert evidence().covers_tally(told)
    for changes in ({"n": 7}, {"scale": 9.0}, {"width": 2}, {"noise": "none"}, {"reads": frozenset({"x", "y"})}):
        assert not evidence().covers_tally(counted(**({"n": LENGTH, "scale": 10.0} | changes))), changes
