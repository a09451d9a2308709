"""Counts and histograms with noise: the true loss of random small problems, by brute force, is never above the certified one.

The twin knows no theorem: it adds up the output law of every count over all rows' values in 40 digits, for laws sampled inside
the box and at its corners, and takes the largest ratio over all pairs and outputs.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.numerics.calibration.direct import direct_delta
from attrpriv.numerics.calibration.laplace import histogram_loss, laplace_loss
from attrpriv.numerics.laws.records import CountPairs, Interval01, RecordLaws

Box = tuple[Interval01, ...]
Output = dict[Any, Any]
SCALES = st.sampled_from([0.0, 0.3, 1.0, 2.5])
NOISES = st.sampled_from(["none", "laplace", "gaussian"])


# ----------------------------------------------------------------------------------------------------------------- the twin


def members(box: Box, generator: random.Random, count: int) -> list[list[Any]]:
    """Laws inside a box: mixtures of vertices, and vertices themselves (all but one value at an end)."""
    vertices = []
    slack = mpmath.mpf("1e-15")  # boxes of floats may miss the sum 1 by their rounding
    for free in range(len(box)):
        for ends in itertools.product(*(set(box[k]) for k in range(len(box)) if k != free)):
            left = 1 - sum(map(mpmath.mpf, ends))
            if box[free][0] - slack <= left <= box[free][1] + slack:
                left = min(max(left, mpmath.mpf(box[free][0])), mpmath.mpf(box[free][1]))
                vertices.append([*map(mpmath.mpf, ends[:free]), left, *map(mpmath.mpf, ends[free:])])
    chosen = [generator.choice(vertices) for _ in range(count)]
    for _ in range(count // 2):
        one, other, share = generator.choice(vertices), generator.choice(vertices), mpmath.mpf(generator.random())
        chosen.append([share * x + (1 - share) * y for x, y in zip(one, other, strict=True)])
    return chosen


def count_law(n: int, a: int, values: tuple[Any, ...], member: list[Any], rest: list[Any]) -> Output:
    """The law of the sum over n rows, a of them members; values are numbers or tuples of counts."""
    law: Output = {tuple(0 for _ in values[0]): mpmath.mpf(1)}
    for row in range(n):
        step: Output = {}
        for (so_far, mass), (value, p) in itertools.product(law.items(), zip(values, member if row < a else rest, strict=True)):
            total = tuple(x + y for x, y in zip(so_far, value, strict=True))
            step[total] = step.get(total, mpmath.mpf(0)) + mass * p
        law = step
    return law


def noisy(law: Output, scale: float, outputs: list[tuple[int, ...]]) -> list[Any]:
    """Proportional to the output law at these outputs."""
    if scale == 0:
        return [law.get(o, mpmath.mpf(0)) for o in outputs]
    u = [mpmath.exp(-k / mpmath.mpf(scale)) for k in range(100)]
    return [mpmath.fsum(m * u[sum(abs(x - y) for x, y in zip(o, f, strict=True))] for f, m in law.items()) for o in outputs]


def true_loss(outputs_of: list[list[Any]], apart: int) -> Any:
    worst = mpmath.mpf(0)
    for a, b in itertools.permutations(range(len(outputs_of)), 2):
        if abs(a - b) <= apart:
            for p, q in zip(outputs_of[a], outputs_of[b], strict=True):
                if p > 0:
                    worst = max(worst, p / q if q > 0 else mpmath.inf)
    return mpmath.log(worst) if worst > 0 else worst


def worst_loss(
    n: int, apart: int, cells: tuple[Any, ...], box: tuple[Box, Box], scale: float, seed: int, count: int = 4
) -> Any:
    """The largest loss over sampled laws of the box."""
    generator = random.Random(seed)
    span = [(min(c[k] for c in cells), max(c[k] for c in cells)) for k in range(len(cells[0]))]
    outputs = list(itertools.product(*(range(n * low - 1, n * high + 2) for low, high in span)))
    with mpmath.workdps(40):
        pairs = zip(members(box[0], generator, count), members(box[1], generator, count), strict=True)
        return max(
            true_loss([noisy(count_law(n, a, cells, *laws), scale, outputs) for a in range(n + 1)], apart) for laws in pairs
        )


# ------------------------------------------------------------------------------------------------------------------ problems


@st.composite
def boxes(draw: st.DrawFn, size: int) -> Box:
    """A box around a law, of width 0 or not; numbers in eighths, so that 0 and ties occur."""
    masses = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any))
    slack = draw(st.sampled_from([0.0, 0.0, 0.0625, 0.125]))
    total = sum(masses)
    exact = [m / total for m in masses]
    exact[-1] = max(0.0, 1 - sum(exact[:-1]))
    return tuple((max(0.0, q - slack), min(1.0, q + slack)) for q in exact)


@st.composite
def events(draw: st.DrawFn) -> RecordLaws:
    ends = [sorted(draw(st.tuples(st.integers(0, 16), st.integers(0, 16)))) for _ in range(2)]
    return RecordLaws.event(*((low / 16, high / 16) for low, high in ends))


@st.composite
def whole_numbers(draw: st.DrawFn) -> RecordLaws:
    values = tuple(sorted(draw(st.sets(st.integers(-1, 4), min_size=3, max_size=3))))
    return RecordLaws(values, draw(boxes(3)), draw(boxes(3)))


def holds(found: float, truth: Any) -> bool:
    # The float law and the twin's may differ in the last digits of probabilities that do not sum to 1.
    return bool(truth <= mpmath.mpf(found) * (1 + mpmath.mpf("1e-12")) + mpmath.mpf("1e-12"))


# ------------------------------------------------------------------------------------------------------------------- checks


@given(records=events(), n=st.integers(1, 6), data=st.data(), scale=SCALES, seed=st.integers(0, 2**16))
@settings(max_examples=25)
def test_events(records: RecordLaws, n: int, data: st.DataObject, scale: float, seed: int) -> None:
    apart = data.draw(st.integers(1, n))
    loss = laplace_loss(records, apart, scale)
    truth = worst_loss(n, apart, ((0,), (1,)), (records.member, records.rest), scale, seed)
    assert holds(loss.upper, truth)
    # Exact: at the corners of the box the loss is attained.
    corners = [
        worst_loss(n, apart, ((0,), (1,)), (((1 - p, 1 - p), (p, p)), ((1 - q, 1 - q), (q, q))), scale, seed, count=1)
        for p, q in itertools.product(records.member[1], records.rest[1])
    ]
    assert holds(float(max(corners)), mpmath.mpf(loss.lower))


@given(records=whole_numbers(), n=st.integers(1, 4), data=st.data(), scale=SCALES, seed=st.integers(0, 2**16))
@settings(max_examples=30)
def test_whole_numbers(records: RecordLaws, n: int, data: st.DataObject, scale: float, seed: int) -> None:
    apart = data.draw(st.integers(1, n))
    cells = tuple((value,) for value in records.values)
    truth = worst_loss(n, apart, cells, (records.member, records.rest), scale, seed)
    assert holds(laplace_loss(records, apart, scale).upper, truth)


@given(box=st.tuples(boxes(3), boxes(3)), n=st.integers(1, 2), data=st.data(), scale=SCALES, seed=st.integers(0, 2**16))
@settings(max_examples=30)
def test_histograms(box: tuple[Box, Box], n: int, data: st.DataObject, scale: float, seed: int) -> None:
    apart = data.draw(st.integers(1, n))
    truth = worst_loss(n, apart, ((1, 0, 0), (0, 1, 0), (0, 0, 1)), box, scale, seed, count=2)
    assert holds(histogram_loss(*box, apart, scale).upper, truth)


@given(records=events(), n=st.integers(2, 6), data=st.data(), noise=NOISES, seed=st.integers(0, 99))
@settings(max_examples=50)
def test_direct_calibration(records: RecordLaws, n: int, data: st.DataObject, noise: Any, seed: int) -> None:
    low = data.draw(st.integers(0, n - 1))
    high = data.draw(st.integers(low + 1, n))
    pairs = CountPairs(n, low, high, data.draw(st.integers(1, high - low)))
    found = direct_delta(records, pairs, noise, 0.8, 0.3)
    generator = random.Random(seed)
    for laws in zip(members(records.member, generator, 6), members(records.rest, generator, 6), strict=True):
        assert holds(found.upper, true_delta(pairs, laws, noise, 0.8, 0.3))


def true_delta(pairs: CountPairs, laws: Any, noise: str, scale: float, epsilon: float) -> float:
    """H over all pairs of the range, both ways, by adding up positive parts; the noise ends where it is below 1e-16."""
    reach = {"none": 0, "laplace": 30, "gaussian": 8}[noise]
    powers: dict[str, Callable[[int], float]] = {
        "none": lambda k: 0.0,
        "laplace": lambda k: abs(k) / scale,
        "gaussian": lambda k: k * k / (2 * scale * scale),
    }
    kernel = [math.exp(-powers[noise](k)) for k in range(-reach, reach + 1)]
    outputs = []
    for a in range(pairs.low, pairs.high + 1):
        law = count_law(pairs.n, a, ((0,), (1,)), *laws)
        outputs.append(np.convolve([float(law.get((k,), 0)) for k in range(pairs.n + 1)], np.array(kernel) / math.fsum(kernel)))
    return max(
        math.fsum(np.maximum(0.0, outputs[a] - math.exp(epsilon) * outputs[b]).tolist())
        for a, b in itertools.permutations(range(len(outputs)), 2)
        if abs(a - b) <= pairs.apart
    )


# ------------------------------------------------------------------------------------------------------------------ mutants


def test_one_row_less_is_caught() -> None:
    truth = worst_loss(4, 4, ((0,), (1,)), (RecordLaws.event(0.4, 0.6).member, RecordLaws.event(0.4, 0.6).rest), 1.0, 1)
    assert holds(laplace_loss(RecordLaws.event(0.4, 0.6), 4, 1.0).upper, truth)
    assert not holds(laplace_loss(RecordLaws.event(0.4, 0.6), 3, 1.0).upper, truth)


def test_one_tail_alone_is_caught() -> None:
    """Few events: the ratio where there are many says more than where there are none."""
    box = (RecordLaws.event(0.01, 0.1).member, RecordLaws.event(0.01, 0.1).rest)
    truth = worst_loss(3, 3, ((0,), (1,)), box, 0.5, 1)
    assert holds(laplace_loss(RecordLaws.event(0.01, 0.1), 3, 0.5).upper, truth)
    u = mpmath.exp(-2)
    low_tail = 3 * abs(mpmath.log((mpmath.mpf("0.99") + u / 100) / (mpmath.mpf("0.9") + u / 10)))
    assert not holds(float(low_tail), truth)


def test_the_tails_alone_are_caught_for_whole_numbers() -> None:
    """Laws that differ in the middle only: `lower`, which looks at the tails, is not a bound."""
    records = RecordLaws((0, 1, 2), ((0.25, 0.25), (0.5, 0.5), (0.25, 0.25)), ((0.49, 0.49), (0.02, 0.02), (0.49, 0.49)))
    truth = worst_loss(1, 1, ((0,), (1,), (2,)), (records.member, records.rest), 0.4, 1)
    loss = laplace_loss(records, 1, 0.4)
    assert holds(loss.upper, truth)
    assert not holds(loss.lower, truth)


def test_the_noise_of_one_count_is_not_enough_for_a_histogram() -> None:
    """A row that changes its cell moves two counts."""
    box = (((0.4, 0.4), (0.6, 0.6)), ((0.6, 0.6), (0.4, 0.4)))
    truth = worst_loss(2, 2, ((1, 0), (0, 1)), box, 1.0, 1)
    assert holds(histogram_loss(*box, 2, 1.0).upper, truth)
    assert not holds(laplace_loss(RecordLaws.event(0.4, 0.6), 2, 1.0).upper, truth)


def test_the_corner_in_the_range_is_caught() -> None:
    """Counts 0 and 1 of 5 rows, box [0, .5]: at (.5, 0) the answer gives the count away; the corner (0, .5) hides it."""
    pairs = CountPairs(5, 0, 1, 1)
    corner = [[mpmath.mpf(1), mpmath.mpf(0)], [mpmath.mpf(0.5), mpmath.mpf(0.5)]]
    mutant, truth = (true_delta(pairs, laws, "none", 0.0, 0.3) for laws in (corner, corner[::-1]))
    assert truth > mutant * 2
    found = direct_delta(RecordLaws.event((0.0, 0.5), (0.0, 0.5)), pairs, "none", 0.0, 0.3).upper
    assert holds(found, truth)
    assert not holds(float(mutant), truth)
