"""Statistics of one row whose joint law is known: the loss against the law of small tables, written out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from attrpriv.methods.laplace_sequence.joint_loss import joint_row_loss
from attrpriv.methods.laplace_sequence.loss import Asked, row_loss
from attrpriv.numerics.laws.records import RecordLaws

Pairs = tuple[tuple[float, float], ...]


def exact(law: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Pairs:
    return tuple((float(p), float(p)) for p in law)


def written_out(member: Pairs, rest: Pairs, added: Sequence[tuple[int, ...]], rates: Sequence[float], n: int) -> float:
    """The largest loss of n members against none, over all outputs and one step beyond, row by row."""
    atoms = range(len(member))
    outputs = [range(-1, n * max(one) + 2) for one in added]
    losses = []
    for o in itertools.product(*outputs):
        sides = [0.0, 0.0]
        for rows in itertools.product(atoms, repeat=n):
            sums = [sum(one[a] for a in rows) for one in added]
            kernel = math.exp(-sum(r * abs(a - b) for r, a, b in zip(rates, o, sums, strict=True)))
            for side, law in enumerate((member, rest)):
                sides[side] += kernel * math.prod(law[a][0] for a in rows)
        losses.append(abs(math.log(sides[0] / sides[1])))
    return max(losses)


def test_two_events_of_one_column_lose_exactly_that() -> None:
    rng = np.random.default_rng(1)
    added = [(0, 0, 1, 1), (0, 1, 1, 0)]
    for _ in range(6):
        member, rest = (exact(rng.dirichlet(np.full(4, 0.8))) for _ in range(2))
        rates = [float(r) for r in rng.uniform(0.1, 2, 2)]
        found = joint_row_loss(RecordLaws((0, 1, 2, 3), member, rest), added, [False, False], rates)
        for n in (1, 2, 3):
            assert written_out(member, rest, added, rates, n) == pytest.approx(n * found, rel=1e-9)


def test_a_sum_and_an_event_lose_no_more() -> None:
    rng = np.random.default_rng(2)
    added = [(0, 1, 3), (0, 1, 1)]
    for _ in range(6):
        member, rest = (exact(rng.dirichlet(np.full(3, 0.8))) for _ in range(2))
        rates = [float(r) for r in rng.uniform(0.1, 1.5, 2)]
        found = joint_row_loss(RecordLaws((0, 1, 2), member, rest), added, [False, False], rates)
        assert written_out(member, rest, added, rates, 1) <= found
        assert written_out(member, rest, added, rates, 2) <= 2 * found


def test_a_histogram_and_a_sum_of_the_same_column() -> None:
    rng = np.random.default_rng(3)
    cells = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    for _ in range(4):
        member, rest = (exact(rng.dirichlet(np.full(3, 0.8))) for _ in range(2))
        found = joint_row_loss(RecordLaws((0, 1, 2), member, rest), [(0, 1, 2), (0, 1, 3)], [True, False], [0.5, 0.3])
        assert written_out(member, rest, [*cells, (0, 1, 3)], [0.5, 0.5, 0.5, 0.3], 1) <= found
        assert written_out(member, rest, cells, [0.5] * 3, 1) <= joint_row_loss(
            RecordLaws((0, 1, 2), member, rest), [(0, 1, 2)], [True], [0.5]
        )


def test_a_box_covers_every_law_inside() -> None:
    rng = np.random.default_rng(4)
    box = RecordLaws((0, 1, 2), ((0.1, 0.3), (0.2, 0.5), (0.3, 0.6)), ((0.3, 0.5), (0.2, 0.4), (0.2, 0.4)))
    added, rates = [(0, 1, 1), (0, 0, 1)], [0.7, 0.4]
    bound = joint_row_loss(box, added, [False, False], rates)
    inside = 0
    while inside < 100:
        laws = [np.array([rng.uniform(float(low), float(high)) for low, high in law[:2]]) for law in (box.member, box.rest)]
        whole = [np.append(law, 1 - law.sum()) for law in laws]
        if not all(law[2][0] <= w[2] <= law[2][1] for law, w in zip((box.member, box.rest), whole, strict=True)):
            continue
        inside += 1
        one = RecordLaws((0, 1, 2), exact(whole[0]), exact(whole[1]))
        assert joint_row_loss(one, added, [False, False], rates) <= bound * (1 + 1e-9)


def test_it_is_less_than_what_holds_for_every_joint_law() -> None:
    member, rest = ((0.5, 0.5), (0.3, 0.3), (0.2, 0.2)), ((0.3, 0.3), (0.3, 0.3), (0.4, 0.4))
    found = joint_row_loss(RecordLaws((0, 1, 2), member, rest), [(0, 1, 0), (0, 0, 1)], [False, False], [1.0, 1.0])
    apart = [RecordLaws.event(0.3, 0.3), RecordLaws.event(0.2, 0.4)]
    assert found < 0.8 * row_loss([Asked(one, False, 1, 1.0) for one in apart])


def test_what_is_too_much_to_look_at_is_infinite() -> None:
    law = exact(np.full(4, 0.25))
    atoms = RecordLaws((0, 1, 2, 3), law, law)
    assert joint_row_loss(atoms, [(0, 1, 2, 3)] * 6, [False] * 6, [1.0] * 6) == math.inf
    assert joint_row_loss(atoms, [(0, 1, 2, 3)], [False], [1e4]) == math.inf


@pytest.mark.parametrize("short", [0.0, 9e-10])
def test_intervals_that_hardly_reach_one_are_divided_by_their_sum(short: float) -> None:
    """The only law within them is that of their ends, divided by its sum: upper ends below one, or lower ends above it."""
    added, rates, other = [(0, 1, 1), (0, 0, 1)], [0.7, 0.4], exact(np.array([0.2, 0.3, 0.5]))
    ends = np.array([0.5, 0.3, 0.2 - short]), np.array([0.5, 0.3, 0.2 + short])
    boxes = [tuple((float(p) / 2, float(p)) for p in ends[0]), tuple((float(p), (1 + float(p)) / 2) for p in ends[1])]
    for law, box in zip(ends, boxes, strict=True):
        true = exact(law / law.sum())
        for member, rest, one, two in ((box, other, true, other), (other, box, other, true)):
            found = joint_row_loss(RecordLaws((0, 1, 2), member, rest), added, [False, False], rates)
            wanted = joint_row_loss(RecordLaws((0, 1, 2), one, two), added, [False, False], rates)
            assert found == pytest.approx(wanted, abs=1e-12)


def histogram_loss(member: Pairs, rest: Pairs, cell: Sequence[int], rate: float) -> float:
    """One row, with noise of this rate on every cell, over all outputs and one step beyond."""
    cells = sorted(set(cell))
    losses = []
    for o in itertools.product(range(-1, 3), repeat=len(cells)):
        weights = [math.exp(-rate * sum(abs(x - (c == mine)) for x, c in zip(o, cells, strict=True))) for mine in cell]
        sides = [sum(w * law[a][0] for a, w in enumerate(weights)) for law in (member, rest)]
        losses.append(abs(math.log(sides[0] / sides[1])))
    return max(losses)


def test_a_histogram_loses_what_all_its_outputs_tell() -> None:
    rng = np.random.default_rng(4)
    for cell in ((0, 1, 2), (0, 1, 1, 2), (0, 0, 1)):
        member, rest = (exact(rng.dirichlet(np.full(len(cell), 0.8))) for _ in range(2))
        found = joint_row_loss(RecordLaws(tuple(range(len(cell))), member, rest), [cell], [True], [0.7])
        assert found == pytest.approx(histogram_loss(member, rest, cell, 0.7), rel=1e-9)


def test_ten_cells_are_looked_at_and_eleven_lose_without_bound() -> None:
    for cells, known in ((10, True), (11, False)):
        law = exact(np.full(cells, 1 / cells))
        laws = RecordLaws(tuple(range(cells)), law, law)
        assert math.isfinite(joint_row_loss(laws, [tuple(range(cells))], [True], [0.5])) == known
