"""The loss of a mechanism that reads the secret, over a box of probabilities: never below any member's own."""

from __future__ import annotations

import itertools
import math

import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.calibration.box_loss import box_loss
from attrpriv.numerics.calibration.coupling import certified_coupling, coupling_loss_upper
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

PAIRS = CountPairs(10, 2, 8, 6)


def coupling(pairs: CountPairs = PAIRS) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    size = pairs.high - pairs.low + 1
    found = certified_coupling(RecordLaws.event(0.4, 0.6), pairs, 0.5, [1 / size] * size)
    return found.sources, found.targets


@pytest.mark.parametrize("off", [0.01, 0.1])
def test_every_member_loses_less(off: float) -> None:
    sources, targets = coupling()
    box = RecordLaws.event((0.4 * (1 - off), 0.4 * (1 + off)), (0.6 * (1 - off), 0.6 * (1 + off)))
    bound = box_loss(sources, targets, box, PAIRS)
    steps = (-1.0, -0.6, 0.0, 0.3, 1.0)
    losses = [
        coupling_loss_upper(sources, targets, RecordLaws.event(0.4 * (1 + x * off), 0.6 * (1 + y * off)), PAIRS)
        for x, y in itertools.product(steps, steps)
    ]
    assert max(losses) <= bound
    assert bound - 0.5 <= 1.15 * (max(losses) - 0.5)  # not needlessly large
    # The promise was made for the middle, and does not hold at the corners: what a bound without the cells would miss.
    assert max(losses) > 0.5


def test_near_pairs_only() -> None:
    pairs = CountPairs(10, 2, 8, 2)
    sources, targets = coupling()
    box = RecordLaws.event((0.38, 0.42), (0.58, 0.62))
    near = box_loss(sources, targets, box, pairs)
    assert near < box_loss(sources, targets, box, PAIRS)
    assert near >= coupling_loss_upper(sources, targets, RecordLaws.event(0.42, 0.58), pairs)


def test_a_single_law() -> None:
    sources, targets = coupling()
    exact = RecordLaws.event(0.4, 0.6)
    assert box_loss(sources, targets, exact, PAIRS) == pytest.approx(
        coupling_loss_upper(sources, targets, exact, PAIRS), abs=1e-8
    )


def test_what_is_not_covered() -> None:
    sources, targets = coupling()
    with pytest.raises(UsageError, match="only an event"):
        box_loss(
            sources, targets, RecordLaws((0, 1, 2), ((0.3, 0.3),) * 2 + ((0.4, 0.4),), ((0.3, 0.3),) * 2 + ((0.4, 0.4),)), PAIRS
        )
    many = CountPairs(2000, 0, 2000, 2000)
    with pytest.raises(RefusedError, match="too many"):
        box_loss(sources, ((0,) * 2001,), RecordLaws.event((0.4, 0.5), (0.6, 0.7)), many)
    assert math.isinf(box_loss(sources, targets, RecordLaws.event((0.0, 0.5), (0.6, 0.7)), PAIRS))
