"""The whole guarantee of chain_quilt, by enumeration: every sequence, every entry, every output; and a mutant that is caught.

The true loss of an entry is the largest |log P(answer | X_i = s)/P(answer | X_i = t)| over answers, where the answer is
F(X) + Z with Z discrete Laplace. No part of the package but the scale is used.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from attrpriv.assumptions.chain import Chain
from attrpriv.errors import CertificateError, UsageError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.chain_quilt import plan as chain_quilt
from attrpriv.methods.chain_quilt.plan import ChainEvidence
from attrpriv.numerics.calibration.chain_quilt import approximate_chain_score, chain_loss, chain_score
from attrpriv.numerics.calibration.network_quilt import network_score
from attrpriv.numerics.laws.markov import MarkovChain
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.unit.numerics.laws.test_markov import chains

Statistic = Callable[[Sequence[int]], int]


def count(states: Sequence[int]) -> int:
    return sum(state == 1 for state in states)


def total(states: Sequence[int]) -> int:
    return sum(states)


def odd(states: Sequence[int]) -> int:
    """1-Lipschitz and not a sum."""
    return max(sum(state == 0 for state in states), len(states) - 2)


def sequences(chain: MarkovChain, length: int) -> list[tuple[tuple[int, ...], float]]:
    found = []
    for states in itertools.product(range(chain.states), repeat=length):
        p = float(chain.start()[states[0]])
        for s, t in itertools.pairwise(states):
            p *= float(chain.matrix()[s, t])
        if p > 0:
            found.append((states, p))
    return found


def true_loss(listed: Sequence[tuple[tuple[int, ...], float]], statistic: Statistic, scale: float) -> float:
    """Over all entries and pairs of states; outputs in a window, beyond which ratios are those of its ends."""
    values = np.array([statistic(states) for states, _ in listed])
    weights = np.array([p for _, p in listed])
    outputs = np.arange(values.min() - 1, values.max() + 2)
    noise = np.exp(-np.abs(outputs[:, None] - values[None]) / scale)
    worst = 0.0
    for i in range(len(listed[0][0])):
        here = np.array([states[i] for states, _ in listed])
        laws = [noise[:, here == s] @ weights[here == s] / weights[here == s].sum() for s in np.unique(here)]
        for p, q in itertools.permutations(laws, 2):
            worst = max(worst, float(np.log(p / q).max()))
    return worst


@given(chains(), st.integers(2, 6), st.sampled_from([0.2, 1.0, 2.0, 5.0]))
@settings(max_examples=60, deadline=None)
def test_no_entry_loses_more_than_epsilon(chain: MarkovChain, length: int, epsilon: float) -> None:
    sigma = chain_score(chain, length, epsilon).sigma
    listed = sequences(chain, length)
    if not sigma:  # nothing can be told apart
        assert true_loss(listed, count, 1.0) == 0
        return
    for statistic, width in ((count, 1), (odd, 1), (total, chain.states - 1)):
        assert true_loss(listed, statistic, width * sigma) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("length", [7])
@pytest.mark.parametrize("stay", [0.6, 0.8, 0.95])
def test_longer_sequences(length: int, stay: float) -> None:
    chain = MarkovChain((0.3, 0.7), ((stay, 1 - stay), (0.4, 0.6)))
    for epsilon in (0.5, 1.0, 3.0):
        loss = true_loss(sequences(chain, length), count, chain_score(chain, length, epsilon).sigma)
        assert loss <= epsilon * (1 + 1e-9)


def test_a_histogram_moves_by_two() -> None:
    """The counts of both states of a symmetric chain, each with noise of scale 2 sigma."""
    chain = MarkovChain((0.5, 0.5), ((0.8, 0.2), (0.2, 0.8)))
    scale = 2 * chain_score(chain, 6, 2.0).sigma
    worst = 0.0
    listed = sequences(chain, 6)
    for i in range(6):
        for a, b in itertools.product(range(-1, 8), repeat=2):
            given_state = [
                sum(
                    p * math.exp(-(abs(a - states.count(0)) + abs(b - states.count(1))) / scale)
                    for states, p in listed
                    if states[i] == s
                )
                for s in (0, 1)
            ]
            worst = max(worst, abs(math.log(given_state[0] / given_state[1])))
    assert worst <= 2.0


def test_a_mutant_without_the_influence_is_caught() -> None:
    """Noise for the near entries alone, |N|/epsilon with the quilt {X_(i-1), X_(i+1)}, breaks the promise."""
    chain = MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
    listed = sequences(chain, 7)
    assert true_loss(listed, count, 1.0 / 1.0) > 1.0 + 0.5
    assert true_loss(listed, count, chain_score(chain, 7, 1.0).sigma) <= 1.0


def test_a_mutant_with_a_wrong_left_side_is_caught() -> None:
    """Without pi_i(t)/pi_i(s) the earlier entry's influence is another number: the search would be off."""
    chain = MarkovChain((0.9, 0.1), ((0.6, 0.4), (0.1, 0.9)))
    step = chain.matrix()
    without = max(math.log(step[x, s] / step[x, t]) for x in (0, 1) for s, t in ((0, 1), (1, 0)))
    from attrpriv.numerics.divergences.chain_influence import ChainInfluence

    found = float(ChainInfluence(chain, 5).of(2, (1, 0)))
    law = chain.start() @ step
    truth = max(math.log(step[x, s] / step[x, t] * law[t] / law[s]) for x in (0, 1) for s, t in ((0, 1), (1, 0)))
    assert found == pytest.approx(truth)
    assert abs(without - truth) > 0.1


@given(chains(), st.integers(2, 5), st.lists(st.sampled_from([1.5, 3.0, 10.0]), min_size=1, max_size=2))
@settings(max_examples=30, deadline=None)
def test_several_releases_lose_what_is_said(chain: MarkovChain, length: int, scales: list[float]) -> None:
    """Two answers at once: a count and a total, each with noise of its own."""
    shapes = chain_score(chain, length, 1.0).shapes
    statistics: list[tuple[Statistic, int]] = [(count, 1), (total, chain.states - 1)]
    used = list(zip(statistics, scales, strict=False))
    said = chain_loss(chain, length, sum(width / scale for (_, width), scale in used), shapes)
    listed = sequences(chain, length)
    ranges = [range(-1, 2 * length + 2)] * len(used)
    weights = np.array([p for _, p in listed])
    noise = np.array(
        [
            [math.exp(-sum(abs(w - f(states)) / b for w, ((f, _), b) in zip(out, used, strict=True))) for states, _ in listed]
            for out in itertools.product(*ranges)
        ]
    )
    for i in range(length):
        here = np.array([states[i] for states, _ in listed])
        laws = [noise[:, here == s] @ weights[here == s] / weights[here == s].sum() for s in np.unique(here)]
        for p, q in itertools.permutations(laws, 2):
            assert float(np.log(p / q).max()) <= said * (1 + 1e-9)


# ------------------------------------------------------------------------------------------------ releases that are chosen


def statistic_of(query: Query) -> Statistic:
    if query.where is None:
        return total
    state = int(query.where[-1])
    return lambda states: sum(one == state for one in states)


def asked_after(seed: int, outputs: tuple[int, ...]) -> tuple[Query, float]:
    """The analyst: a query and a share of what is left, as any function of the answers so far."""
    rng = random.Random(f"{seed} {outputs}")
    query = rng.choice([Query("sum", "x"), Query("count", where="x = 0"), Query("count", where="x = 1")])
    return query, rng.choice([0.2, 0.5, 1.0])


def next_release(seed: int, outputs: tuple[int, ...], earlier: ChainEvidence | None) -> tuple[ChainEvidence, Statistic] | None:
    """None where it is refused."""
    chain, length, epsilon = drawn(seed)
    query, spend = asked_after(seed, outputs)
    assumed = Chain(
        column="x",
        states=tuple(range(chain.states)),
        initial=list(chain.initial),
        transition=[list(row) for row in chain.transition],
        tolerance=0,
    )
    problem = Problem(
        queries=(query,),
        secrets=(Secret("entries(x)"),),
        epsilon=epsilon,
        n=length,
        theta=(assumed,),
        spend=spend,
        earlier=earlier,
    )
    try:
        evidence = chain_quilt.plan(problem).certificate.evidence
    except Refusal:
        return None
    assert isinstance(evidence, ChainEvidence)
    return evidence, statistic_of(query)


def drawn(seed: int) -> tuple[MarkovChain, int, float]:
    rng = random.Random(f"chain {seed}")
    k = rng.choice([2, 2, 3])
    rows = [[rng.choice([0.05, 1.0, 1.0, 4.0]) for _ in range(k)] for _ in range(k + 1)]
    laws = [tuple(w / sum(row) for w in row) for row in rows]
    return MarkovChain(laws[0], tuple(laws[1:])), rng.randint(3, 5), rng.choice([0.5, 2.0, 5.0])


def transcripts(seed: int, releases: int = 3) -> Iterator[tuple[float, float]]:
    """What each certificate says and what its transcript tells, by enumeration, for releases that depend on the answers.

    All outputs are looked at, beyond which no ratio changes; the sequence goes on from the lowest and the highest.
    """
    chain, length, _ = drawn(seed)
    listed = sequences(chain, length)
    entries = np.array([states for states, _ in listed])
    open_ends: list[tuple[tuple[int, ...], ChainEvidence | None, NDArray[np.float64]]]
    open_ends = [((), None, np.array([p for _, p in listed]))]
    for _ in range(releases):
        grown: list[tuple[tuple[int, ...], ChainEvidence | None, NDArray[np.float64]]] = []
        for outputs, earlier, weights in open_ends:
            planned = next_release(seed, outputs, earlier)
            if planned is None:
                continue
            evidence, statistic = planned
            values = np.array([statistic(states) for states, _ in listed])
            for out in range(int(values.min()), int(values.max()) + 1):
                after = weights * np.exp(-np.abs(out - values) / evidence.scale)
                yield evidence.loss(), told(entries, np.array([p for _, p in listed]), after)
                if out in (values.min(), values.max()):
                    grown.append(((*outputs, out), evidence, after))
        open_ends = grown


def told(entries: NDArray[np.int64], before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """The largest log-ratio of the densities of a transcript, over entries and pairs of their states."""
    worst = 0.0
    for column in entries.T:
        densities = [after[column == s].sum() / before[column == s].sum() for s in np.unique(column)]
        worst = max(worst, math.log(max(densities) / min(densities)))
    return worst


def test_no_transcript_of_adaptive_releases_tells_more_than_its_certificates_say() -> None:
    found = [(drawn(seed)[2], *one) for seed in range(12) for one in transcripts(seed)]
    assert all(true <= said + 1e-9 for _, said, true in found)
    assert all(said <= epsilon for epsilon, said, _ in found)
    assert sum(true > 0.5 * said for _, said, true in found) > 20  # they say something


def test_a_planner_that_forgets_earlier_releases_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each release for itself, with all of epsilon: by the twin."""
    monkeypatch.setattr(chain_quilt, "_earlier", lambda *_: None)
    monkeypatch.setattr(Certificate, "verify", lambda _: None)
    assert any(true > drawn(seed)[2] + 1e-6 for seed in range(12) for _, true in transcripts(seed))


def test_a_planner_that_forgets_earlier_releases_is_caught_by_its_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_quilt, "_earlier", lambda *_: None)
    with pytest.raises(CertificateError):
        list(itertools.chain.from_iterable(transcripts(seed) for seed in range(12)))


@given(chains(), st.integers(2, 5), st.sampled_from([0.5, 3.0]))
@settings(max_examples=30, deadline=None)
def test_the_closed_bound_keeps_the_promise_too(chain: MarkovChain, length: int, epsilon: float) -> None:
    try:
        sigma, _ = approximate_chain_score(chain, length, epsilon)
    except UsageError:
        return
    assert true_loss(sequences(chain, length), count, sigma) <= epsilon * (1 + 1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 3.0, 6.0]))
@settings(max_examples=20, deadline=None)
def test_networks_keep_the_promise(seed: int, epsilon: float) -> None:
    """Random networks of five binary entries, colliders among them."""
    generator = np.random.default_rng(seed)
    nodes: dict[str, Node] = {}
    names = [f"x{k}" for k in range(5)]
    for k, name in enumerate(names):
        parents = tuple(other for other in names[:k] if generator.random() < 0.4)
        rows = [float(p) for p in generator.choice([0.1, 0.3, 0.5, 0.8], size=2 ** len(parents))]
        nodes[name] = Node(states=("0", "1"), parents=parents, table=tuple((p, 1 - p) for p in rows))
    listed = []
    for states in itertools.product((0, 1), repeat=5):
        p = 1.0
        for k, name in enumerate(names):
            row = sum(states[names.index(q)] * 2**j for j, q in enumerate(reversed(nodes[name].parents)))
            p *= nodes[name].table[row][states[k]]
        listed.append((states, p))
    sigma = max(best.score for best in network_score(Network(nodes=nodes), epsilon))
    assert true_loss(listed, count, sigma) <= epsilon * (1 + 1e-9)
