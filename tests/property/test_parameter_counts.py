"""Counts that hide a parameter of the population, against brute force: laws in fractions, all pairs, all outputs, both ways.

The twin adds up Bin(n, p) row by row in whole fractions and mixes it by the weights. The last part starts from the network
itself: it enumerates every combination of parameters and every table of a few rows.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import attrpriv.numerics.calibration.count_cases as comparing
import attrpriv.numerics.laws.parameter_counts as module
from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.errors import RefusedError
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.parameter_counts.proof import ParameterKernelEvidence
from attrpriv.numerics.calibration.kernel import WEIGHT_BITS
from attrpriv.numerics.calibration.parameter_counts import (
    least_parameter_scale,
    parameter_delta,
    parameter_distance,
    parameter_influence,
    parameter_kernel,
    parameter_kernel_loss,
    parameter_loss,
)
from attrpriv.numerics.divergences.lattice import lattice_delta_upper
from attrpriv.numerics.laws.parameter_counts import ParameterCounts
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter
from attrpriv.queries.query import Query
from tests.property.test_count_cases import kernel

Law = list[Fraction]
SCALES = st.sampled_from([0.3, 1.0, 2.5])
NOISES = st.sampled_from(["none", "laplace", "gaussian"])
PROBABILITIES = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.integers(1, 99).map(lambda k: k / 100))


# ----------------------------------------------------------------------------------------------------------------- the twin


def binomial(n: int, p: Fraction) -> Law:
    law = [Fraction(1)]
    for _ in range(n):
        law = [low * p + same * (1 - p) for low, same in zip([Fraction(0), *law], [*law, Fraction(0)], strict=True)]
    return law


def mixtures(n: int, probabilities: Sequence[Fraction], weights: Sequence[Sequence[Fraction]]) -> list[Law]:
    parts = [binomial(n, p) for p in probabilities]
    return [
        [sum((w * part[f] for w, part in zip(row, parts, strict=True)), Fraction(0)) / sum(row) for f in range(n + 1)]
        for row in weights
    ]


def true_laws(counts: ParameterCounts) -> list[Law]:
    rows = [[Fraction(w) for w in row] for row in counts.weights]
    return mixtures(counts.n, [Fraction(low) for low, _ in counts.probabilities], rows)


def noisy(laws: Sequence[Law], noise: str, scale: float, margin: int) -> list[list[Any]]:
    """The law of the noisy answer, from `margin` below the least answer to as much above the largest."""
    n = len(laws[0]) - 1
    noises = kernel(noise, scale, n + margin)
    with mpmath.workdps(30):
        exact = [[mpmath.mpf(m.numerator) / m.denominator for m in law] for law in laws]
        window = range(-margin, n + margin + 1)
        return [[mpmath.fdot((m, noises[abs(o - f)]) for f, m in enumerate(law)) for o in window] for law in exact]


def true_loss(laws: Sequence[Law], scale: float) -> Any:
    worst = mpmath.mpf(1)
    with mpmath.workdps(30):
        for p_law, q_law in itertools.permutations(noisy(laws, "laplace" if scale else "none", scale, 2), 2):
            worst = max(worst, *((p / q if q > 0 else mpmath.inf) for p, q in zip(p_law, q_law, strict=True) if p > 0))
        return mpmath.log(worst)


def deltas(laws: Sequence[Law], noise: str, scale: float, epsilon: float) -> list[Any]:
    """H of every ordered pair."""
    reach = {"none": 0, "laplace": math.ceil(40 * scale), "gaussian": math.ceil(9 * scale)}[noise]
    with mpmath.workdps(30):
        growth = mpmath.exp(mpmath.mpf(epsilon))
        return [
            mpmath.fsum(max(mpmath.mpf(0), p - growth * q) for p, q in zip(p_law, q_law, strict=True))
            for p_law, q_law in itertools.permutations(noisy(laws, noise, scale, reach), 2)
        ]


def true_distance(laws: Sequence[Law]) -> int:
    """The least w with F_P(x) <= F_Q(x + w), over all ordered pairs."""
    cdfs = [list(itertools.accumulate(law)) for law in laws]
    n, worst = len(laws[0]) - 1, 0
    for p, q in itertools.permutations(cdfs, 2):
        worst = max(worst, *(next(y for y in range(n + 1) if q[y] >= p[x]) - x for x in range(n + 1) if p[x] > 0))
    return worst


def tied(laws: Sequence[Law]) -> bool:
    cdfs = [list(itertools.accumulate(law))[:-1] for law in laws]
    steps = [pair for p, q in itertools.combinations(cdfs, 2) for pair in itertools.product(p, q)]
    return any(abs(x - y) < Fraction(1, 10**7) for x, y in steps if 0 < x < 1 or 0 < y < 1)


def kernel_loss(weights: Sequence[Sequence[int]], laws: Sequence[Law]) -> float:
    """The exact loss of whole-number weights."""
    outputs = [[sum(m * row[o] for m, row in zip(law, weights, strict=True)) for o in range(len(weights))] for law in laws]
    worst = Fraction(1)
    for p_law, q_law in itertools.permutations(outputs, 2):
        for p, q in zip(p_law, q_law, strict=True):
            if p > 0 and q == 0:
                return math.inf
            worst = max(worst, Fraction(p) / Fraction(q)) if p > 0 else worst
    with mpmath.workdps(30):
        return float(mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator))


# ----------------------------------------------------------------------------------------------------------------- problems


@st.composite
def problems(draw: st.DrawFn, most: int = 6) -> ParameterCounts:
    n, states, values = draw(st.integers(1, most)), draw(st.integers(1, 3)), draw(st.integers(2, 3))
    probabilities = tuple((p, p) for p in draw(st.lists(PROBABILITIES, min_size=states, max_size=states)))
    rows = []
    for _ in range(values):
        parts = draw(st.lists(st.integers(0, 9), min_size=states, max_size=states).filter(any))
        rows.append(tuple(part / sum(parts) for part in parts))
    return ParameterCounts(n, probabilities, tuple(rows))


def test_the_papers_example() -> None:
    """Its second table, to the four digits it prints, and its W."""
    counts = ParameterCounts(4, ((0.56, 0.56), (0.44, 0.44)), ((1.0, 0.0), (0.0, 1.0)))
    printed = [[0.0375, 0.1908, 0.3643, 0.3091, 0.0983], [0.0983, 0.3091, 0.3643, 0.1908, 0.0375]]
    for law, row in zip(true_laws(counts), printed, strict=True):
        # 0.56 to the fourth is 0.09834...; the paper has all entries rounded.
        assert [float(mass) for mass in law] == pytest.approx(row, abs=5.1e-5)
    assert true_distance(true_laws(counts)) == parameter_distance(counts) == 1


@settings(max_examples=80, deadline=None)
@given(problems())
def test_the_laws_are_within_their_errors(counts: ParameterCounts) -> None:
    for law, truth in zip(counts.laws(0.0), true_laws(counts), strict=True):
        assert law.pointwise
        for f, mass in enumerate(truth):
            near = Fraction(float(law.masses[f - law.start]) if law.start <= f <= law.end else 0.0)
            assert abs(near - mass) <= near * Fraction(law.error)
    for mixed, tails, fixed, truth in zip(counts.whole(), counts.tails(), counts.fixed(64), true_laws(counts), strict=True):
        below = list(itertools.accumulate(truth))
        for f, mass in enumerate(truth):
            found = Fraction(float(mixed.masses[f]))
            assert abs(found - mass) <= found * Fraction(mixed.error) + Fraction(mixed.floor)
            assert 0 <= mass * 2**64 - fixed[f] < 2
            for log, part in ((tails.log_below[f], below[f]), (tails.log_above[f], 1 - below[f])):
                assert (log == -math.inf) == (part == 0)
                assert (
                    part == 0
                    or abs(float(log) - float(mpmath.log(mpmath.mpf(part.numerator) / part.denominator))) <= tails.error
                )


@settings(max_examples=80, deadline=None)
@given(problems(), st.one_of(st.just(0.0), SCALES))
def test_pure_loss(counts: ParameterCounts, scale: float) -> None:
    found, truth = parameter_loss(counts, scale), true_loss(true_laws(counts), scale)
    assert found >= truth
    assert found == pytest.approx(float(truth), abs=1e-9)
    assert truth <= parameter_influence(counts)


@settings(max_examples=50, deadline=None)
@given(problems(most=5), NOISES, SCALES, st.sampled_from([0.1, 1.0]))
def test_delta(counts: ParameterCounts, noise: Any, scale: float, epsilon: float) -> None:
    scale = 0.0 if noise == "none" else scale
    found, truth = parameter_delta(counts, noise, scale, epsilon), max(deltas(true_laws(counts), noise, scale, epsilon))
    assert found >= truth - 1e-25  # what the twin's window leaves out
    assert found <= float(truth) + 1e-9


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from([0.05, 0.5, 2.0]))
def test_the_least_scale_is_private_and_hardly_more_than_needed(counts: ParameterCounts, epsilon: float) -> None:
    scale = least_parameter_scale(counts, "laplace", epsilon, 0.0)
    laws = true_laws(counts)
    assert true_loss(laws, scale) <= epsilon
    assert scale == 0 or true_loss(laws, scale * 0.999) > epsilon


@settings(max_examples=100, deadline=None)
@given(problems())
def test_the_distance(counts: ParameterCounts) -> None:
    laws = true_laws(counts)
    found, truth = parameter_distance(counts), true_distance(laws)
    assert found >= truth
    assert found == truth or tied(laws)


@settings(max_examples=40, deadline=None)
@given(problems(), st.sampled_from([1e-3, 0.1]))
def test_all_but_some_mass_moves_no_further(counts: ParameterCounts, ignored: float) -> None:
    """P(A) <= Q(A^w) + ignored for half-lines and single points is necessary."""
    near, laws = parameter_distance(counts, ignored), true_laws(counts)
    assert near <= parameter_distance(counts)
    for p, q in itertools.permutations(laws, 2):
        for low, high in itertools.combinations_with_replacement(range(counts.n + 1), 2):
            reached = sum(q[max(0, low - near) : high + near + 1])
            assert sum(p[low : high + 1]) <= reached + Fraction(ignored)


@settings(max_examples=15, deadline=None)
@given(problems(most=5), st.sampled_from([0.2, 1.0]))
def test_the_kernel(counts: ParameterCounts, epsilon: float) -> None:
    prior = [1 / len(counts.weights)] * len(counts.weights)
    try:
        found, error = parameter_kernel(counts, prior, epsilon)
    except RefusedError:
        assume(False)
    assert all(sum(row) == 2**WEIGHT_BITS for row in found.weights)
    assert kernel_loss(found.weights, true_laws(counts)) <= parameter_kernel_loss(found.weights, counts) <= epsilon
    for law in true_laws(counts):
        for t, chance in enumerate(error.tail):
            missed = sum(m * row[o] for f, (m, row) in enumerate(zip(law, found.weights, strict=True))
                         for o in range(len(row)) if abs(o - f) > t)  # fmt: skip
            assert missed <= Fraction(chance) * 2**WEIGHT_BITS


# ------------------------------------------------------------------------------------------- what the numbers leave open


@settings(max_examples=40, deadline=None)
@given(problems(most=4), st.sampled_from([0.0, 1.0]), st.integers(0, 2**20))
def test_everything_that_the_numbers_leave_open_is_covered(counts: ParameterCounts, scale: float, seed: int) -> None:
    """True weights off by up to a hundredth of themselves, true probabilities anywhere in an interval."""
    generator = random.Random(seed)
    intervals = tuple((p, p) if p in (0, 1) else (p, p + 0.002 * min(p, 1 - p)) for p, _ in counts.probabilities)
    wide = ParameterCounts(counts.n, intervals, counts.weights, 0.01)
    chosen = [Fraction(generator.choice([low, high, (low + high) / 2])) for low, high in intervals]
    rows = []
    for row in counts.weights:
        # Sums stay one: what one weight gains the others lose.
        moved = [Fraction(w) * (1 + Fraction(generator.randint(-49, 49), 10_000)) for w in row]
        rows.append([w / sum(moved) for w in moved])
        assert all(abs(new - Fraction(w)) <= Fraction(w) / 100 for new, w in zip(rows[-1], row, strict=True))
    laws = mixtures(counts.n, chosen, rows)
    assert true_loss(laws, scale) <= parameter_loss(wide, scale)
    assert max(deltas(laws, "laplace" if scale else "none", scale, 0.3)) <= parameter_delta(
        wide, "laplace" if scale else "none", scale, 0.3
    )
    assert true_distance(laws) <= parameter_distance(wide)
    found = [[2 ** (WEIGHT_BITS - 1) if abs(f - o) == 0 else 0 for o in range(counts.n + 1)] for f in range(counts.n + 1)]
    for f, line in enumerate(found):
        line[(f + 1) % (counts.n + 1)] += 2 ** (WEIGHT_BITS - 1)
    assert kernel_loss(found, laws) <= parameter_kernel_loss(found, wide)


# ------------------------------------------------------------------------------------------------------ from the network on


def random_network(generator: random.Random) -> Network:
    """Three parameters, of which the last may have both others as parents; tables with a zero now and then."""

    def row(size: int) -> tuple[float, ...]:
        parts = [generator.choice([0, 1, 2, 3, 5]) for _ in range(size)]
        parts[generator.randrange(size)] += 1
        return tuple(part / sum(parts) for part in parts)

    sizes = {name: generator.choice([2, 3]) for name in ("hidden", "other", "seen")}
    nodes: dict[str, Node] = {}
    before: list[str] = []
    for name, size in sizes.items():
        parents = tuple(one for one in before if generator.random() < 0.8)
        rows = math.prod(sizes[one] for one in parents)
        states = tuple(str(value) for value in sorted(generator.sample(range(5, 95, 5), size)))
        nodes[name] = Node(states=states, parents=parents, table=tuple(row(size) for _ in range(rows)))
        before.append(name)
    return Network(nodes=nodes)


def enumerated(network: Network, n: int) -> list[Law]:
    """The law of the number of ones in n rows of `seen`, given each possible state of `hidden`: all parameters, all tables."""
    names = list(network.nodes)
    laws: dict[int, Law] = {}
    for states in itertools.product(*(range(len(network.nodes[name].states)) for name in names)):
        chosen, chance = dict(zip(names, states, strict=True)), Fraction(1)
        for name, node in network.nodes.items():
            at = 0
            for parent in node.parents:
                at = at * len(network.nodes[parent].states) + chosen[parent]
            line = [Fraction(p) for p in node.table[at]]
            chance *= line[chosen[name]] / sum(line)
        p = Fraction(int(network.nodes["seen"].states[chosen["seen"]]), 100)
        law = laws.setdefault(chosen["hidden"], [Fraction(0)] * (n + 1))
        for entries in itertools.product((0, 1), repeat=n):
            ones = sum(entries)
            law[ones] += chance * p**ones * (1 - p) ** (n - ones)
    return [[mass / sum(law) for mass in law] for law in laws.values() if sum(law) > 0]


def network_problem(network: Network, n: int, epsilon: float, delta: float) -> Problem:
    numbers = {state: int(state) / 100 for state in network.nodes["seen"].states}
    assumed = ParameterNetwork(
        network=network, values={"seen": numbers}, attributes={"seen": {"family": "bernoulli"}}, tolerance=0
    )
    return Problem(
        queries=(Query("count", where="seen = 1"),), secrets=(Parameter("hidden"),), epsilon=epsilon, delta=delta, n=n,
        theta=(assumed,),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_the_whole_guarantee(seed: int) -> None:
    """Every mechanism's released law, from the network and the tables themselves."""
    generator = random.Random(seed)
    network, n = random_network(generator), generator.choice([2, 3, 4])
    laws = enumerated(network, n)
    assume_two = len(laws) > 1
    for name, delta, epsilon in itertools.product(("laplace", "gaussian", "wasserstein", "optimal"), (0.0, 0.01), (0.2, 1.0)):
        if not assume_two or (name == "gaussian" and not delta):
            continue
        found = plan(network_problem(network, n, epsilon, delta), name)
        found.certificate.verify()
        if name == "optimal":
            evidence = found.certificate.evidence
            assert isinstance(evidence, ParameterKernelEvidence)
            assert kernel_loss(evidence.weights, laws) <= epsilon + 1e-14  # 55 in a hundred, and the float 0.55
        elif delta:
            assert max(deltas(laws, found.noise.kind, found.noise.scale, epsilon)) <= delta + 1e-14
        else:
            assert true_loss(laws, found.noise.scale) <= epsilon + 1e-14


# ------------------------------------------------------------------------------------------------------------------ mutants

FLIP = ParameterCounts(6, ((0.2, 0.2), (0.7, 0.7)), ((0.9, 0.1), (0.2, 0.8)))


@pytest.fixture
def _fresh() -> Iterator[None]:
    """Laws are remembered: forget them before and after a mutant."""
    for phase in range(2):
        for remembered in (module._laws, module._whole, module._tails):
            remembered.cache_clear()
        if phase == 0:
            yield


@pytest.mark.usefixtures("_fresh")
def test_uniform_weights_are_caught() -> None:
    """Equal weights forget what the network says: they certify less than is true."""
    laws = true_laws(FLIP)
    truth, lost = true_loss(laws, 1.0), max(deltas(laws, "laplace", 1.0, 0.5))
    assert truth <= parameter_loss(FLIP, 1.0)
    flat = ParameterCounts(FLIP.n, FLIP.probabilities, ((0.5, 0.5), (0.5, 0.5)))
    assert parameter_loss(flat, 1.0) < truth - 0.1
    assert parameter_delta(flat, "laplace", 1.0, 0.5) < lost - 0.01


@pytest.mark.usefixtures("_fresh")
def test_the_average_parameter_is_caught() -> None:
    """One binomial law at the expected probability has the right mean and the wrong tails."""
    wide = ParameterCounts(20, FLIP.probabilities, FLIP.weights)
    means = [sum(w * low for w, (low, _) in zip(row, FLIP.probabilities, strict=True)) for row in FLIP.weights]
    single = ParameterCounts(20, tuple((p, p) for p in means), ((1.0, 0.0), (0.0, 1.0)))
    assert true_distance(true_laws(wide)) <= parameter_distance(wide)
    assert parameter_distance(single) < true_distance(true_laws(wide)) - 1


def test_one_direction_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = deltas(true_laws(FLIP), "none", 0.0, 1.0)
    assert max(truth) <= parameter_delta(FLIP, "none", 0.0, 1.0)
    swapped = ParameterCounts(FLIP.n, FLIP.probabilities, FLIP.weights[::-1])
    monkeypatch.setattr(comparing, "noisy_delta", lambda laws, _, epsilon: lattice_delta_upper(laws[0], laws[1], epsilon))
    found = [parameter_delta(counts, "none", 0.0, 1.0) for counts in (FLIP, swapped)]
    assert found == pytest.approx([float(delta) for delta in truth], abs=1e-9)
    assert min(found) < max(truth) - 0.01


@pytest.mark.usefixtures("_fresh")
def test_dropping_what_the_weights_leave_open_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = ParameterCounts(3, ((0.2, 0.2), (0.7, 0.7)), ((0.9, 0.1), (0.2, 0.8)), 0.01)
    rows = [[Fraction(w) for w in row] for row in wide.weights]
    rows[0][1], rows[0][0] = rows[0][1] * Fraction(99, 100), 1 - rows[0][1] * Fraction(99, 100)
    truth = true_loss(mixtures(3, [Fraction(0.2), Fraction(0.7)], rows), 1.0)
    assert truth <= parameter_loss(wide, 1.0)
    monkeypatch.setattr(ParameterCounts, "spread", property(lambda self: 0.0))
    module._whole.cache_clear()
    assert parameter_loss(wide, 1.0) < truth


def test_large_tables() -> None:
    """A million rows: nothing underflows into a pass."""
    large = ParameterCounts(100_000, ((0.3, 0.3), (0.5, 0.5)), ((0.7, 0.3), (0.3, 0.7)))
    assert parameter_distance(large) > 0.19 * large.n
    scale = least_parameter_scale(large, "laplace", 0.5, 0.0)
    # Against so many rows the two shares are all there is: u^(gap) with e^eps (w + w' u) = w' + w u, for the gap of 20,000.
    u = (0.7 - math.exp(0.5) * 0.3) / (math.exp(0.5) * 0.7 - 0.3)
    assert scale == pytest.approx(0.2 * large.n / -math.log(u), rel=2e-3)
    assert np.isinf(parameter_loss(ParameterCounts(5000, ((0.1, 0.1), (0.9, 0.9)), ((1.0, 0.0), (0.0, 1.0))), 1.0))
