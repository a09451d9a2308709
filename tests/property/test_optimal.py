"""Certified kernels on random small problems, against fractions that share no code with them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from attrpriv.numerics.calibration.coupling import certified_coupling, coupling_loss_upper
from attrpriv.numerics.calibration.kernel import CertifiedKernel, certified_kernel, kernel_loss_upper
from attrpriv.numerics.calibration.kernel_accuracy import coupling_error, kernel_error
from attrpriv.numerics.calibration.secret_laws import BITS
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from tests.property import exact_kernel as twin

EPSILONS = st.floats(0.05, 3)
# How far a certified loss may be above the exact one: the rounding of weights and of one logarithm.
TIGHT = 1e-9


@st.composite
def count_pairs(draw: st.DrawFn, most: int = 6, all_pairs: bool = False) -> CountPairs:
    n = draw(st.integers(1, most))
    low = draw(st.integers(0, n - 1))
    high = draw(st.integers(low + 1, n))
    return CountPairs(n, low, high, high - low if all_pairs else draw(st.integers(1, high - low)))


@st.composite
def record_laws(draw: st.DrawFn) -> RecordLaws:
    """Two or three values with or without gaps; probabilities may be 0."""
    values = sorted(draw(st.sets(st.integers(-2, 3), min_size=2, max_size=3)))
    laws = []
    for _ in range(2):
        parts = draw(st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values)).filter(any))
        laws.append(tuple((part / sum(parts), part / sum(parts)) for part in parts))
    return RecordLaws(tuple(values), laws[0], laws[1])


def flat(pairs: CountPairs) -> list[float]:
    size = pairs.high - pairs.low + 1
    return [1 / size] * size


def exact_laws(records: RecordLaws, pairs: CountPairs) -> list[twin.Law]:
    member, rest = (twin.record(records.values, [low for low, _ in law]) for law in (records.member, records.rest))
    if records.binary:
        member, rest = twin.event(records.member[1][0]), twin.event(records.rest[1][0])
    return [twin.count_law(member, rest, a, pairs.n) for a in range(pairs.low, pairs.high + 1)]


def seen_loss(weights: Sequence[Sequence[int]], start: int, laws: list[twin.Law], apart: int) -> float:
    return float(twin.loss([twin.through(law, start, weights) for law in laws], apart))


@given(records=record_laws(), pairs=count_pairs(4), epsilon=EPSILONS)
@settings(max_examples=40, deadline=None)
def test_a_kernel_that_sees_the_count(records: RecordLaws, pairs: CountPairs, epsilon: float) -> None:
    kernel = certified_kernel(records, pairs, epsilon, flat(pairs))
    exact = seen_loss(kernel.weights, kernel.start, exact_laws(records, pairs), pairs.apart)
    assert exact <= kernel.loss <= epsilon
    assert kernel.loss <= exact + TIGHT
    assert kernel.loss == kernel_loss_upper(kernel.weights, records, pairs)
    assert kernel_error(kernel, records, pairs, flat(pairs)).mean_absolute <= kernel.optimum + 1e-4


@given(records=record_laws(), pairs=count_pairs(4), epsilon=EPSILONS)
@settings(max_examples=40, deadline=None)
def test_a_coupling_that_reads_the_secret(records: RecordLaws, pairs: CountPairs, epsilon: float) -> None:
    coupling = certified_coupling(records, pairs, epsilon, flat(pairs))
    rows = zip(exact_laws(records, pairs), coupling.sources, coupling.targets, strict=True)
    exact = float(twin.loss([twin.coupled(law, coupling.start, s, t) for law, s, t in rows], pairs.apart))
    assert exact <= coupling.loss <= epsilon
    assert coupling.loss <= exact + TIGHT
    assert coupling.loss == coupling_loss_upper(coupling.sources, coupling.targets, records, pairs)
    error = coupling_error(coupling, records, pairs, flat(pairs))
    assert error.mean_absolute == pytest.approx(coupling.optimum, abs=1e-6)
    # Reading the secret never costs, for all pairs: every kernel that sees F is one of the mechanisms that may.
    pairs = CountPairs(pairs.n, pairs.low, pairs.high, pairs.high - pairs.low)
    assert coupling.optimum <= certified_kernel(records, pairs, epsilon, flat(pairs)).optimum + 1e-6


@given(pairs=count_pairs(), ends=st.lists(st.floats(0, 1), min_size=4, max_size=4), epsilon=EPSILONS, data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_corner_covers_its_box(pairs: CountPairs, ends: list[float], epsilon: float, data: st.DataObject) -> None:
    records = RecordLaws.event((min(ends[:2]), max(ends[:2])), (min(ends[2:]), max(ends[2:])))
    kernel = certified_kernel(records, pairs, epsilon, flat(pairs), "corner")
    assert kernel.loss <= epsilon
    member, rest = (twin.event(data.draw(st.floats(*law[1]))) for law in (records.member, records.rest))
    laws = [twin.count_law(member, rest, a, pairs.n) for a in range(pairs.low, pairs.high + 1)]
    assert seen_loss(kernel.weights, kernel.start, laws, pairs.apart) <= kernel.loss
    assert kernel_error(kernel, records, pairs, flat(pairs), "corner").tail[0] >= max(
        float(further(kernel.weights, law)) - 1e-15 for law in laws
    )


def further(weights: Sequence[Sequence[int]], law: twin.Law) -> Fraction:
    """P(the output is not the count)."""
    return sum((mass * (1 - Fraction(weights[x][x], sum(weights[x]))) for x, mass in law.items()), Fraction(0))


@given(records=record_laws(), pairs=count_pairs(3), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_any_weights_are_bounded(records: RecordLaws, pairs: CountPairs, seed: int) -> None:
    """Not only optimal ones: random weights, some of them zero."""
    choose = random.Random(seed)
    size = pairs.n * records.width + 1
    weights = [random_row(choose, size, 2**62) for _ in range(size)]
    exact = seen_loss(weights, pairs.n * records.values[0], exact_laws(records, pairs), pairs.apart)
    bound = kernel_loss_upper(weights, records, pairs)
    assert bound >= exact
    if all(min(row) > 0 for row in weights):
        assert bound <= exact + TIGHT


@given(records=record_laws(), pairs=count_pairs(3), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_any_slices_are_bounded(records: RecordLaws, pairs: CountPairs, seed: int) -> None:
    """The certificate assumes nothing of the slices, not even that they are near the law."""
    choose = random.Random(seed)
    size, secrets = pairs.n * records.width + 1, pairs.high - pairs.low + 1
    sources, targets = ([random_row(choose, size, 2**BITS) for _ in range(secrets)] for _ in range(2))
    rows = zip(exact_laws(records, pairs), sources, targets, strict=True)
    start = pairs.n * records.values[0]
    exact = float(twin.loss([twin.coupled(law, start, s, t) for law, s, t in rows], pairs.apart))
    assert coupling_loss_upper(sources, targets, records, pairs) >= exact


def random_row(choose: random.Random, size: int, total: int) -> list[int]:
    parts = [choose.choice([0, 1, choose.randrange(1, 1000)]) for _ in range(size)]
    parts[choose.randrange(size)] += 1
    row = [part * total // sum(parts) for part in parts]
    row[row.index(max(row))] += total - sum(row)
    return row


@given(pairs=count_pairs(), p=st.tuples(st.floats(0.05, 0.4), st.floats(0.6, 0.95)), epsilon=st.floats(0.05, 0.4))
@settings(max_examples=40, deadline=None)
def test_a_kernel_that_is_better_than_the_best_is_noticed(pairs: CountPairs, p: tuple[float, float], epsilon: float) -> None:
    """Planted fault: a thousandth of every row goes to the true count. The error is then below the least one."""
    records = RecordLaws.event(*p)
    kernel = certified_kernel(records, pairs, epsilon, flat(pairs))
    assume(kernel.optimum > 0.01)
    weights = [[weight - weight // 1000 for weight in row] for row in kernel.weights]
    for f, row in enumerate(weights):
        row[f] += 2**62 - sum(row)
    mutant = CertifiedKernel(kernel.start, tuple(map(tuple, weights)), kernel.loss, kernel.optimum, kernel.mixed)
    assert kernel_error(mutant, records, pairs, flat(pairs)).mean_absolute < kernel.optimum
    assert kernel_loss_upper(weights, records, pairs) > epsilon
