"""The coupling in whole numbers: the nearest law, what is drawn, and what a certificate notices."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from scipy.stats import binom

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.calibration.coupling import certified_coupling, coupling_loss_upper, nearest_law, overlaps
from attrpriv.numerics.calibration.kernel import certified_kernel, kernel_loss_upper
from attrpriv.numerics.calibration.secret_laws import BITS
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

EVENT = RecordLaws.event(0.4, 0.6)


def flat(size: int) -> list[float]:
    return [1 / size] * size


def distance(p: Sequence[int], q: Sequence[int]) -> int:
    """W1 times the total."""
    return sum(abs(x - y) for x, y in zip(itertools.accumulate(p), itertools.accumulate(q), strict=True))


def brute(source: Sequence[int], low: Sequence[int], high: Sequence[int]) -> int:
    """The least distance over every law between the bounds."""
    laws = itertools.product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))
    return min(distance(law, source) for law in laws if sum(law) == sum(source))


def problems(count: int) -> list[tuple[list[int], list[int], list[int]]]:
    choose = random.Random(5)
    found: list[tuple[list[int], list[int], list[int]]] = []
    while len(found) < count:
        size = choose.randint(1, 5)
        source = [choose.choice([0, choose.randint(0, 6)]) for _ in range(size)]
        low = [choose.randint(0, 3) for _ in source]
        high = [a + choose.randint(0, 4) for a in low]
        if sum(source) and sum(low) <= sum(source) <= sum(high):
            found.append((source, low, high))
    return found


def test_the_nearest_law_is_the_nearest() -> None:
    for source, low, high in problems(600):
        law = nearest_law(source, low, high)
        assert sum(law) == sum(source)
        assert all(a <= x <= b for a, x, b in zip(low, law, high, strict=True))
        assert distance(law, source) == brute(source, low, high)


def test_a_law_within_the_bounds_stays() -> None:
    assert nearest_law([3, 0, 5, 2], [1, 0, 4, 1], [4, 2, 6, 3]) == (3, 0, 5, 2)


@pytest.mark.parametrize(("low", "high"), [([6, 6], [9, 9]), ([0, 0], [4, 5])])
def test_no_law_between_the_bounds(low: list[int], high: list[int]) -> None:
    with pytest.raises(RefusedError, match="no law"):
        nearest_law([5, 5], low, high)


def test_overlaps_are_those_of_the_points() -> None:
    """One point at a time: the f and the o that hold it."""
    for source, low, high in problems(300):
        target = nearest_law(source, low, high)
        holders = [[x for x, width in enumerate(row) for _ in range(width)] for row in (source, target)]
        parts = {(f, o): part for f, o, part, _ in overlaps(source, target) if source[f]}
        assert parts == Counter(zip(*holders, strict=True))
        assert all(whole == max(1, source[f]) for f, _, _, whole in overlaps(source, target))
        empty = {f: o for f, o, _, _ in overlaps(source, target) if not source[f]}
        assert empty == {f: holders[1][min(sum(source[:f]), sum(source) - 1)] for f, width in enumerate(source) if not width}


@pytest.mark.parametrize("epsilon", [0.01, 0.25, 1.0])
def test_rows_are_exact_and_the_promise_is_used_up(epsilon: float) -> None:
    coupling = certified_coupling(EVENT, CountPairs.all_of(10), epsilon, flat(11))
    assert {sum(row) for row in (*coupling.sources, *coupling.targets)} == {2**BITS}
    assert epsilon * (1 - 1e-6) < coupling.loss <= epsilon


def test_values_too_unlikely_for_a_slice() -> None:
    """P(F = n | a) is 1e-60: its slice is empty, and its law is a point."""
    records, pairs = RecordLaws.event(0.001, 0.002), CountPairs(20, 5, 10, 5)
    coupling = certified_coupling(records, pairs, 0.01, flat(6))
    assert coupling.sources[0][-1] == 0
    rows = zip(coupling.sources, coupling.targets, strict=True)
    assert all({f for f, *_ in overlaps(source, target)} == set(range(21)) for source, target in rows)
    assert coupling.loss <= 0.01


def test_the_range_of_counts_may_be_a_part() -> None:
    coupling = certified_coupling(EVENT, CountPairs(10, 3, 5, 2), 0.3, flat(3))
    assert (coupling.low, len(coupling.targets), len(coupling.targets[0])) == (3, 3, 11)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 5.0, 30.0])
def test_a_prior_that_is_sure_and_extreme_promises(epsilon: float) -> None:
    pairs = CountPairs.all_of(6)
    coupling = certified_coupling(EVENT, pairs, epsilon, [0, 0, 1.0, 0, 0, 0, 0])
    assert coupling.loss <= epsilon
    assert coupling.optimum == pytest.approx(0, abs=1e-6)
    assert certified_kernel(EVENT, pairs, epsilon, [0, 0, 1.0, 0, 0, 0, 0]).loss <= epsilon


def test_planted_faults_are_noticed() -> None:
    pairs = CountPairs.all_of(6)
    coupling = certified_coupling(EVENT, pairs, 0.5, flat(7))
    sources, targets = coupling.sources, coupling.targets
    assert coupling_loss_upper(sources, targets, EVENT, pairs) <= 0.5
    # The targets are the laws themselves; the wrong secret's target; slices that are not those of the law.
    assert coupling_loss_upper(sources, sources, EVENT, pairs) > 0.5
    assert coupling_loss_upper(sources[::-1], targets, EVENT, pairs) > 0.5
    nearly = [list(row) for row in targets]
    nearly[0][6] += 2 ** (BITS - 10)
    nearly[0][0] -= 2 ** (BITS - 10)
    assert coupling_loss_upper(sources, nearly, EVENT, pairs) > 0.5
    assert coupling_loss_upper(sources, targets, RecordLaws.event(0.6, 0.4), pairs) > 0.5


def test_it_is_not_covered_by_the_corner() -> None:
    """Certified .5 at (.4, .6) is 3.3 at (.45, .55), inside the box; a kernel that sees F alone loses less there."""
    pairs, prior = CountPairs.all_of(20), [float(binom.pmf(a, 20, 0.5)) for a in range(21)]
    coupling, kernel = certified_coupling(EVENT, pairs, 0.5, prior), certified_kernel(EVENT, pairs, 0.5, prior)
    inside = RecordLaws.event(0.45, 0.55)
    assert coupling_loss_upper(coupling.sources, coupling.targets, inside, pairs) == pytest.approx(3.3, abs=0.05)
    assert kernel_loss_upper(kernel.weights, inside, pairs) < 0.5


def test_a_box_is_refused() -> None:
    box = RecordLaws.event((0.4, 0.41), 0.6)
    with pytest.raises(RefusedError, match="exact probabilities"):
        certified_coupling(box, CountPairs.all_of(3), 0.5, flat(4))
    coupling = certified_coupling(EVENT, CountPairs.all_of(3), 0.5, flat(4))
    with pytest.raises(RefusedError, match="exact probabilities"):
        coupling_loss_upper(coupling.sources, coupling.targets, box, CountPairs.all_of(3))


def test_what_is_not_a_coupling() -> None:
    pairs = CountPairs.all_of(1)
    coupling = certified_coupling(EVENT, pairs, 0.1, flat(2))
    for bad in (coupling.targets[:1], [[2**BITS, 1], [0, 2**BITS]], [[2**BITS], [2**BITS]]):
        with pytest.raises(UsageError, match=r"^targets: "):
            coupling_loss_upper(coupling.sources, bad, EVENT, pairs)
        with pytest.raises(UsageError, match=r"^sources: "):
            coupling_loss_upper(bad, coupling.targets, EVENT, pairs)
    with pytest.raises(UsageError, match=r"^prior: "):
        certified_coupling(EVENT, pairs, 0.1, flat(3))
    with pytest.raises(UsageError, match=r"^epsilon: "):
        certified_coupling(EVENT, pairs, 0.0, flat(2))
