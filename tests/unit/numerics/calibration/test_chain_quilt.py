"""The score of a chain: published numbers, an obvious twin, the closed bound, and quilts of small networks.

The guarantee itself is in tests/property/test_chain_loss.py.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.chain_quilt import (
    approximate_chain_score,
    chain_loss,
    chain_score,
    closed_influence,
    mixing,
    node_score,
)
from attrpriv.numerics.calibration.network_quilt import network_score
from attrpriv.numerics.divergences.chain_influence import ChainInfluence
from attrpriv.numerics.laws.markov import MarkovChain
from attrpriv.numerics.networks.network import Network, Node, connected
from tests.unit.numerics.laws.test_markov import PAPER, chains


def symmetric(stay: float, initial: float = 0.5) -> MarkovChain:
    return MarkovChain((initial, 1 - initial), ((stay, 1 - stay), (1 - stay, stay)))


# ------------------------------------------------------------------------------------------------------- published numbers


def test_the_published_quilt_and_the_better_one() -> None:
    assert node_score(PAPER, 100, 1.0, 8, (5, 5)) == pytest.approx(13.0219, abs=5e-5)
    found = chain_score(PAPER, 100, 1.0)
    assert found.sigma == pytest.approx(12.9341, abs=5e-5)
    assert (found.node, found.nodes, found.near, found.skipped, found.exact) == (8, (1, 13), 11, 1, True)


def test_the_second_published_chain() -> None:
    found = chain_score(MarkovChain((0.9, 0.1), ((0.8, 0.2), (0.3, 0.7))), 100, 1.0)
    assert found.sigma == pytest.approx(10.6402, abs=5e-5)
    assert (found.node, found.nodes) == (6, (10,))


@pytest.mark.parametrize(
    ("stay", "length", "score"),
    [
        (0.5, 50, 1),
        (0.7, 50, 6.723597),
        (0.9, 50, 31.737789),
        (0.6, 100, 3.571792),
        (0.7, 100, 6.723597),
        (0.9, 100, 31.737789),
    ],
)
def test_symmetric_chains(stay: float, length: int, score: float) -> None:
    assert chain_score(symmetric(stay), length, 1.0).sigma == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("k", [1, 2, 5, 30])
@pytest.mark.parametrize("stay", [0.1, 0.6, 0.9])
def test_the_influence_of_a_symmetric_chain(stay: float, k: int) -> None:
    left = abs(2 * stay - 1) ** k
    truth = math.log((1 + left) / (1 - left))
    table = ChainInfluence(symmetric(stay), 100)
    for shape, times in (((k, 0), 1), ((0, k), 1), ((k, k), 2)):
        assert times * truth <= float(table.of(50, shape)) <= times * truth + 1e-8
    assert table.of_settled((k, k)) >= 2 * truth


# ---------------------------------------------------------------------------------------------------------------- the twin


@lru_cache(maxsize=8)
def laws_of(chain: MarkovChain, length: int) -> list[NDArray[np.float64]]:
    laws = [chain.start()]
    for _ in range(length - 1):
        laws.append(laws[-1] @ chain.matrix())
    return laws


def twin_influence(chain: MarkovChain, length: int, node: int, quilt: list[int]) -> float:
    """From the laws of X_Q given each state of X_i; states and nodes count from 0."""
    step, law = chain.matrix(), laws_of(chain, length)
    given = []
    for s in range(chain.states):
        if law[node][s] <= 0:
            continue
        ways = np.ones(1)
        for other in quilt:
            if other < node:
                one = law[other] * np.linalg.matrix_power(step, node - other)[:, s] / law[node][s]
            else:
                one = np.linalg.matrix_power(step, other - node)[s]
            ways = np.outer(ways, one).ravel()
        given.append(ways)
    worst = 0.0
    for p in given:
        for q in given:
            if np.any((p > 0) & (q <= 0)):
                return math.inf
            held = p > 0
            worst = max(worst, float(np.log(p[held] / q[held]).max()))
    return worst


def twin_score(chain: MarkovChain, length: int, epsilon: float) -> float:
    """Every node, every quilt."""
    worst = 0.0
    for i in range(length):
        best = length / epsilon
        for left in (None, *range(i)):
            for right in (None, *range(i + 1, length)):
                influence = twin_influence(chain, length, i, [j for j in (left, right) if j is not None])
                near = (length if right is None else right) - (-1 if left is None else left) - 1
                best = min(best, near / (epsilon - influence) if influence < epsilon else math.inf)
        worst = max(worst, best if (laws_of(chain, length)[i] > 0).sum() > 1 else 0.0)
    return worst


@given(chains(), st.integers(2, 9), st.sampled_from([0.3, 1.0, 3.0]))
@settings(max_examples=40, deadline=None)
def test_the_search_finds_the_least_score(chain: MarkovChain, length: int, epsilon: float) -> None:
    found = chain_score(chain, length, epsilon)
    truth = twin_score(chain, length, epsilon)
    assert truth * (1 - 1e-12) <= found.sigma <= truth * (1 + 1e-7) + 1e-12
    assert found.exact


@given(chains(), st.integers(2, 60), st.sampled_from([0.3, 1.0, 3.0]))
@settings(max_examples=40, deadline=None)
def test_the_quilts_found_confirm_the_score(chain: MarkovChain, length: int, epsilon: float) -> None:
    found = chain_score(chain, length, epsilon)
    if found.sigma:
        assert chain_loss(chain, length, 1 / (found.sigma * (1 + 1e-9)), found.shapes) <= epsilon
        assert chain_loss(chain, length, 1 / (found.sigma * (1 - 1e-6)), found.shapes) > epsilon


@pytest.mark.parametrize(
    ("chain", "length"),
    [(PAPER, 60), (PAPER, 200), (symmetric(0.9), 60), (symmetric(0.9), 200), (symmetric(0.9, 0.8), 200), (symmetric(0.2), 60)],
)
def test_settled_nodes_are_not_underestimated(chain: MarkovChain, length: int) -> None:
    """The same quilts at every node on its own: settled or not, no node needs more."""
    found = chain_score(chain, length, 1.0)
    assert ChainInfluence(chain, length).laws.settled
    worst = 0.0
    for i in range(length):
        best = float(length)
        for a, b in found.shapes:
            if (a and a > i) or (b and i + b >= length):
                continue
            influence = twin_influence(chain, length, i, [i - a] * bool(a) + [i + b] * bool(b))
            near = (a or i + 1) + (b or length - i) - 1
            best = min(best, near / (1 - influence) if influence < 1 else math.inf)
        worst = max(worst, best if (laws_of(chain, length)[i] > 0).sum() > 1 else 0.0)
    assert worst * (1 - 1e-12) <= found.sigma <= worst * (1 + 1e-6)


def test_a_hundred_thousand_entries() -> None:
    for chain in (PAPER, symmetric(0.999), symmetric(0.99, 0.7)):
        short, long = chain_score(chain, 20_000, 1.0), chain_score(chain, 100_000, 1.0)
        assert long.exact
        assert long.sigma == pytest.approx(short.sigma, rel=1e-6)
    assert chain_score(symmetric(0.999), 100_000, 1.0).sigma == pytest.approx(3689.6534, abs=1e-3)


def test_what_cannot_be_separated_costs_the_whole_chain() -> None:
    frozen = MarkovChain((0.5, 0.5), ((1.0, 0.0), (0.0, 1.0)))
    found = chain_score(frozen, 1000, 0.5)
    assert found.sigma == pytest.approx(2000)
    assert found.quilt == (0, 0)


def test_nothing_to_hide_in_a_chain_without_choice() -> None:
    found = chain_score(MarkovChain((1.0, 0.0), ((0.0, 1.0), (1.0, 0.0))), 30, 1.0)
    assert (found.sigma, found.skipped) == (0.0, 30)


def test_a_dropped_margin_would_show() -> None:
    """The influence is above the true one in many digits, never below: e(1) of .9 is log 9."""
    assert float(ChainInfluence(symmetric(0.9), 10).of(5, (1, 0))) > math.log(9)


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="epsilon: must be positive"):
        chain_score(PAPER, 10, 0.0)
    with pytest.raises(UsageError, match="node: must be from 1 to 10"):
        node_score(PAPER, 10, 1.0, 11, (1, 1))
    with pytest.raises(UsageError, match="length: must be at least 1"):
        ChainInfluence(PAPER, 0)
    assert math.isinf(chain_loss(symmetric(0.9), 10, math.inf, [(1, 1)]))


# -------------------------------------------------------------------------------------------------------- the closed bound


@given(chains(), st.integers(2, 30), st.sampled_from([0.5, 1.0, 4.0]))
@settings(max_examples=60, deadline=None)
def test_the_closed_bound_is_never_below_the_search(chain: MarkovChain, length: int, epsilon: float) -> None:
    try:
        sigma, quilt = approximate_chain_score(chain, length, epsilon)
    except UsageError as error:
        assert "reaches every state" in str(error)  # noqa: PT017 - one of two outcomes
        return
    assert sigma >= chain_score(chain, length, epsilon).sigma * (1 - 1e-12)
    table = ChainInfluence(chain, length)
    if all(quilt) and sum(quilt) < length:
        assert closed_influence(chain, quilt) >= float(table.of(quilt[0] + 1, quilt)) - 1e-9


def test_the_closed_bound_of_a_symmetric_chain() -> None:
    assert list(mixing(symmetric(0.7))) == pytest.approx([0.5, 0.4])
    left = 0.4**3
    assert closed_influence(symmetric(0.7), (3, 3)) == pytest.approx(3 * math.log((1 + left) / (1 - left)))


# ------------------------------------------------------------------------------------------------------------- networks


def as_network(chain: MarkovChain, length: int) -> Network:
    states = tuple(map(str, range(chain.states)))
    nodes = {"x0": Node(states=states, table=(chain.initial,))}
    nodes |= {f"x{i}": Node(states=states, parents=(f"x{i - 1}",), table=chain.transition) for i in range(1, length)}
    return Network(nodes=nodes)


@given(chains(), st.integers(2, 6), st.sampled_from([0.5, 2.0]))
@settings(max_examples=20, deadline=None)
def test_a_chain_is_a_network(chain: MarkovChain, length: int, epsilon: float) -> None:
    """All sets of nodes as quilts, by d-separation and inference: no set beats the quilts of the chain."""
    found = network_score(as_network(chain, length), epsilon)
    skipped = chain_score(chain, length, epsilon).skipped
    if not skipped:
        assert max(best.score for best in found) == pytest.approx(chain_score(chain, length, epsilon).sigma, rel=1e-7)


def test_a_collider_does_not_separate() -> None:
    coin = ((0.5, 0.5),)
    either = ((0.9, 0.1), (0.4, 0.6), (0.4, 0.6), (0.1, 0.9))
    net = Network(
        nodes={
            "a": Node(states=("0", "1"), table=coin),
            "b": Node(states=("0", "1"), table=coin),
            "c": Node(states=("0", "1"), parents=("a", "b"), table=either),
        }
    )
    best = {one.node: one for one in network_score(net, 3.0)}
    assert best["a"].quilt == ()
    assert best["a"].near == ("a", "c")  # b is independent of a, until c is known
    assert (best["c"].quilt, best["c"].near) == (("a",), ("b", "c"))
    assert connected(net, "a", ["c"]) == {"b"}  # so the quilt {c} of a has two near entries, not one


def test_bad_networks() -> None:
    with pytest.raises(UsageError, match="up to 12 nodes"):
        network_score(as_network(PAPER, 13), 1.0)
    with pytest.raises(UsageError, match="the same nodes"):
        network_score([as_network(PAPER, 2), as_network(PAPER, 3)], 1.0)
    with pytest.raises(UsageError, match="epsilon"):
        network_score(as_network(PAPER, 2), -1.0)
