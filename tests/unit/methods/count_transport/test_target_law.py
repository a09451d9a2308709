"""The bounds of a transported count against the law they are made from, one output at a time; and the ends of what is taken."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.count_transport import proof
from attrpriv.methods.count_transport import target as module
from attrpriv.methods.count_transport.target import (
    MOST_OUTPUTS,
    TOTAL,
    Bounds,
    CountTransport,
    Reference,
    clipped_path,
    projected_law,
    transport_bounds,
)
from attrpriv.numerics.laws.records import RecordLaws

EVENT = RecordLaws.event(0.4, 0.6)
LOGS = (-300.0, -301.3, -300.4)
RHO = Fraction(1, 2**40)


def low_of(reference: Reference, first: float = 0.5, records: RecordLaws = EVENT, n: int = 6) -> list[float]:
    return [x / TOTAL for x in transport_bounds(CountTransport(records, n, reference, first + 0.5, first)).low]


@pytest.mark.parametrize(("step", "size"), [(1, 0), (3, 0), (3, 5)])
def test_logarithms_are_joined_by_straight_lines_and_only_their_differences_count(step: int, size: int) -> None:
    reference = Reference(logs=LOGS, step=step, size=size)
    outputs = size or 2 * step + 1
    lines = [math.fsum((1 - abs(k / step - j)) * LOGS[j] for j in range(3) if abs(k / step - j) < 1) for k in range(outputs)]
    weights = [math.exp(line + 300) for line in lines]
    expected = [math.exp(-0.5) * weight / math.fsum(weights) for weight in weights]
    assert low_of(reference) == pytest.approx(expected, rel=1e-12)


def test_no_output_has_less_than_e_to_the_minus_48_of_the_likeliest_one() -> None:
    low = low_of(Reference(logs=(0.0, -100.0, -47.0)))
    assert low[1] / low[0] == pytest.approx(math.exp(-48.0), rel=1e-9)
    assert low[2] / low[0] == pytest.approx(math.exp(-47.0), rel=1e-9)


def test_the_law_of_a_count_is_cut_where_hardly_anything_is_left() -> None:
    """200 rows: the ends of 0..200 have less than e^-140, so the window is inside; every output has its own probability."""
    n, count = 200, 60
    bounds = transport_bounds(CountTransport(EVENT, n, Reference(count=count), 1.0, 0.5))
    member, rest = (np.array(binom.pmf(range(k + 1), k, p)) for k, p in ((count, 0.4), (n - count, 0.6)))
    law = np.convolve(member, rest)
    end = bounds.start + len(bounds.low)
    assert 20 < bounds.start < end < 190
    assert law[: bounds.start].sum() + law[end:].sum() < 2.0**-55
    expected = math.exp(-0.5) * law[bounds.start : end]
    assert [x / TOTAL for x in bounds.low] == pytest.approx(expected.tolist(), rel=1e-9, abs=2.0**-58)
    assert sum(bounds.low) / TOTAL == pytest.approx(math.exp(-0.5), rel=1e-15)


def test_a_value_that_cannot_occur_has_some_weight_but_hardly_any() -> None:
    """One row that adds 0, 1 or 3: 2 has no probability, the others have theirs."""
    records = RecordLaws((0, 1, 3), ((0.5, 0.5), (0.25, 0.25), (0.25, 0.25)), ((0.125, 0.125), (0.5, 0.5), (0.375, 0.375)))
    low = low_of(Reference(count=1), records=records, n=1)
    assert [low[k] for k in (0, 1, 3)] == pytest.approx([math.exp(-0.5) * p for p in (0.5, 0.25, 0.25)], rel=1e-12)
    assert 2.0**-75 < low[2] < 2.0**-65


@pytest.mark.parametrize("reference", [Reference(count=2), Reference(logs=LOGS, step=3)])
def test_the_upper_bounds_are_as_large_as_the_promise_allows(reference: Reference) -> None:
    """One unit of 2^-128 more on any output, and they are not worth epsilon any more."""
    bounds = transport_bounds(CountTransport(EVENT, 6, reference, 1.0, 0.5))
    assert bounds.holds(1.0)
    for k, most in enumerate(bounds.high):
        assert not Bounds(bounds.start, bounds.low, (*bounds.high[:k], most + 1, *bounds.high[k + 1 :]), 0).holds(1.0)


def test_bounds_between_which_no_law_lies_are_refused() -> None:
    """Of epsilon nothing is left above the reference but what the slices may be off."""
    with pytest.raises(RefusedError, match="no law lies"):
        transport_bounds(CountTransport(EVENT, 6, Reference(count=3), 1.0, 1.0 - 1e-13))


def test_what_slices_may_be_off_is_in_the_loss_and_in_delta() -> None:
    """Both from above: a mass is off by a factor 1 +- 2^-40 on either side of a ratio."""
    for low, high, excess in ((10**9, 10**9 + 1, 0), (10**9, 10**9 + 1, 5), (1, 7, 2)):
        ratio = Fraction(high + excess, low) * (1 + RHO) / (1 - RHO)
        least = math.log1p(float(ratio - 1))
        assert least <= Bounds(0, (low,), (high,), excess).loss <= least * (1 + 1e-9) + 3 * 2.0**-40
    for excess in (1, 5, TOTAL // 1000, TOTAL // 3):
        added = Fraction(excess, TOTAL) * (1 + RHO)
        assert added <= Fraction(Bounds(0, (1,), (1,), excess).delta) <= added * (1 + Fraction(1, 2**50))
    assert Bounds(0, (1,), (1,), 0).delta == 0


def test_a_certificate_of_a_small_table_looks_at_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """7 counts times 7 outputs are 49 numbers."""
    transport = CountTransport(EVENT, 6, Reference(count=3), 1.0, 0.5)
    seen: list[int] = []
    monkeypatch.setattr(module, "transport_row", lambda told, a: seen.append(a))
    for most, expected in ((49, list(range(7))), (48, [])):
        seen.clear()
        monkeypatch.setattr(module, "_EVERY_ROW", most)
        assert module.transport_holds.__wrapped__(transport, 1.0)
        assert seen == expected


def test_cells_have_at_least_what_a_cell_must_have() -> None:
    cell = TOTAL >> 64
    assert cell == 2**64
    for slices, begins in (
        ([cell - 1, 1, cell, cell, 5], (0, 2, 3)),
        ([cell, cell - 1, cell], (0, 1)),
        ([cell, cell], (0, 1)),
        ([cell - 1, cell], (0,)),
        ([5], (0,)),
    ):
        assert module._cells(slices) == begins


# ------------------------------------------------------------------------------------------------------- the projection


def best(source: Sequence[int], low: Sequence[int], high: Sequence[int], excess: int) -> int:
    """The least distance of any law within the bounds, each of which is tried."""

    def apart(found: Sequence[int]) -> int:
        return sum(abs(x - y) for x, y in zip(itertools.accumulate(found), itertools.accumulate(source), strict=True))

    every = itertools.product(*(range(least, most + excess + 1) for least, most in zip(low, high, strict=True)))
    fit = [one for one in every if sum(one) == sum(source)]
    return min(apart(one) for one in fit if sum(max(0, x - y) for x, y in zip(one, high, strict=True)) <= excess)


@pytest.mark.parametrize(
    ("source", "low", "high", "excess", "expected"),
    [
        ((8, 1, 1), (2, 2, 2), (3, 3, 3), 1, (4, 3, 3)),  # what lies within is more than `high` has, by the excess
        ((7, 0, 3), (1, 1, 1), (5, 5, 5), 2, (6, 1, 3)),  # no monotone ratio; what is left of the excess is for the first
        ((1, 1, 8), (2, 2, 2), (5, 5, 5), 0, (2, 3, 5)),
        ((1, 1, 8), (2, 2, 2), (5, 5, 5), 1, (2, 2, 6)),
    ],
)
def test_the_nearest_law_of_all_that_there_are(
    source: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...], excess: int, expected: tuple[int, ...]
) -> None:
    found = projected_law(source, low, high, excess)
    assert found == expected
    gone = [abs(x - y) for x, y in zip(itertools.accumulate(found), itertools.accumulate(source), strict=True)]
    assert sum(gone) == best(source, low, high, excess)


@pytest.mark.parametrize(("excess", "expected"), [(0, [2, 5, 10]), (1, [2, 4, 10])])
def test_a_path_is_kept_between_its_two_lines(excess: int, expected: list[int]) -> None:
    """N = 10, A = 2, 4, 6 and B = 5, 10, 15: F = 1, 2, 10 is lifted to max(A, B - 5 - X)."""
    source, low, high = (np.array(row, dtype=object) for row in ((1, 1, 8), (2, 2, 2), (5, 5, 5)))
    assert clipped_path(source, low, high, excess).tolist() == expected


def test_no_law_has_more_than_all_bounds_and_the_excess() -> None:
    with pytest.raises(RefusedError, match="no law"):
        projected_law((8, 1, 1), (2, 2, 2), (3, 3, 3), 0)
    with pytest.raises(RefusedError, match="no law"):
        projected_law((8, 1, 2), (2, 2, 2), (3, 3, 3), 1)


def test_what_is_drawn_begins_where_the_window_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The position in the row's targets, the window's start and the noise, where there is any."""
    transport = CountTransport(EVENT, 200, Reference(count=60), 1.0, 0.5)
    row = module.transport_row(transport, 70)
    asked: list[object] = []

    def coupled(*told: object) -> int:
        asked.append(told)
        return 5

    def laplace(scale: float) -> int:
        asked.append(scale)
        return 1000

    monkeypatch.setattr(proof, "coupled_draw", coupled)
    monkeypatch.setattr(proof, "whole_laplace", laplace)
    assert proof._drawn(transport, 110, 70, 0.0) == row.start + 5
    assert asked == [(row.sources, row.targets, row.cell(110))]
    assert proof._drawn(transport, 110, 70, 2.5) == row.start + 1005
    assert asked.count(2.5) == 1
    start, law = proof._law(transport, 110, 70)
    assert (start, len(law), sum(law)) == (row.start, len(row.targets), row.sources[row.cell(110)])


# ---------------------------------------------------------------------------------------------------- the ends of what is taken


def test_the_largest_and_the_least_that_is_taken() -> None:
    assert Reference(logs=(0.0, 0.0), step=MOST_OUTPUTS - 1).outputs == MOST_OUTPUTS
    with pytest.raises(RefusedError, match="outputs"):
        Reference(logs=(0.0, 0.0), step=MOST_OUTPUTS)
    assert Reference(count=3).outputs == 0
    told: dict[str, Any] = {"records": EVENT, "reference": Reference(count=0), "epsilon": 30.0}
    assert CountTransport(n=1, first=20.0, **told).n == 1
    with pytest.raises(UsageError, match="first"):
        CountTransport(n=1, first=math.nextafter(20.0, 21.0), **told)
    with pytest.raises(UsageError, match="delta"):
        CountTransport(n=1, first=1.0, delta=1.0, **told)
    with pytest.raises(RefusedError, match="rows"):
        CountTransport(n=0, first=1.0, **told)
    with pytest.raises(UsageError, match="count"):
        CountTransport(n=1, first=1.0, records=EVENT, reference=Reference(count=-1), epsilon=2.0)
    with pytest.raises(UsageError, match="size"):
        Reference(count=3, size=1)
