"""What the optimal mechanism loses where probabilities are off, against every corner; and which row is drawn from."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from attrpriv.errors import DataError
from attrpriv.methods.base.accuracy import OFF_BY
from attrpriv.methods.optimal import proof as module
from attrpriv.methods.optimal.proof import CouplingEvidence
from attrpriv.noise import coupled_weights
from attrpriv.numerics.calibration.box_loss import box_loss
from attrpriv.numerics.calibration.coupling import certified_coupling
from attrpriv.numerics.calibration.kernel import kernel_loss_upper
from attrpriv.numerics.laws.records import CountPairs, RecordLaws, moved, widened
from tests.unit.methods.optimal.test_proof import PAIRS, RECORDS, N, kernel, law, weights


def lost(rows: np.ndarray, member: float, rest: float) -> float:
    outputs = {a: law(a, member, rest) @ rows for a in range(1, 6)}
    near = ((a, b) for a, b in itertools.permutations(range(1, 6), 2) if abs(a - b) <= 2)
    return max(float(np.log(outputs[a] / outputs[b]).max()) for a, b in near)


@pytest.mark.parametrize("flat", [0.05, 0.2, 0.999])
def test_a_kernel_by_its_corner_or_by_how_far_masses_move(flat: float) -> None:
    """The less of both: masses for sharp weights and small shares, else the corner; every law of the wider box is covered."""
    rows = np.array(weights(flat), dtype=np.float64) / 2.0**62
    ways = set()
    for row in kernel(flat).model_error(1.0, 0.0):
        wider = widened(RECORDS, row.off_by)
        corner = kernel_loss_upper(weights(flat), wider, PAIRS, "corner")
        masses = lost(rows, 0.7, 0.2) + moved(RECORDS, PAIRS, row.off_by)
        assert row.epsilon == pytest.approx(min(corner, masses), rel=1e-9)
        ways.add(corner < masses)
        for member, rest in itertools.product(*((law_[1][0], law_[1][1]) for law_ in (wider.member, wider.rest))):
            assert lost(rows, float(member), float(rest)) <= min(corner, masses) * (1 + 1e-9)
    assert ways == ({True, False} if flat < 0.1 else {True})


def test_what_is_no_event_or_no_single_law_has_one_way() -> None:
    box = kernel(0.999, records=RecordLaws.event((0.6, 0.7), (0.2, 0.25)), family="corner")
    for row in box.model_error(1.0, 0.0):
        expected = kernel_loss_upper(box.weights, widened(box.records, row.off_by), PAIRS, "corner")
        assert row.epsilon == pytest.approx(expected, rel=1e-12)
    values = RecordLaws((0, 2), RECORDS.member, RECORDS.rest)
    size = 2 * N + 1
    whole = tuple(tuple(2**58 + (2**62 - size * 2**58 if f == o else 0) for o in range(size)) for f in range(size))
    told = kernel(records=values, weights=whole)
    stated = kernel_loss_upper(whole, values, PAIRS, "counts")
    for row in told.model_error(1.0, 0.0):
        assert row.epsilon == pytest.approx(stated + moved(values, PAIRS, row.off_by), rel=1e-12)


def coupling(**changes: object) -> CouplingEvidence:
    """Of four rows with 1 to 3 members, solved for epsilon 1."""
    records, pairs = RecordLaws.event(0.7, 0.2), CountPairs(4, 1, 3, 2)
    solved = certified_coupling(records, pairs, 1.0, [0.5, 0.25, 0.25])
    told = {
        "secret": "s", "records": records, "pairs": pairs, "start": solved.start, "sources": solved.sources,
        "targets": solved.targets,
    }  # fmt: skip
    return CouplingEvidence.model_validate(told | changes)


def test_a_coupling_by_all_laws_of_the_box_or_by_how_far_masses_move() -> None:
    told = coupling()
    assert 0.9 < told.loss() <= 1
    rows = told.model_error(1.0, 0.0)
    assert [row.off_by for row in rows] == list(OFF_BY)
    for row in rows:
        masses = told.loss() + moved(told.records, told.pairs, row.off_by)
        box = box_loss(told.sources, told.targets, widened(told.records, row.off_by), told.pairs)
        assert row.epsilon == pytest.approx(min(masses, box), rel=1e-12)
        assert masses != pytest.approx(box, rel=1e-6)


def test_of_a_population_only_how_far_masses_move_counts() -> None:
    told = coupling(shares=(0.2, 0.4))
    assert told.loss() == math.inf  # some counts only
    assert [row.epsilon for row in told.model_error(1.0, 0.0)] == [None] * len(OFF_BY)


def test_the_count_of_the_table_chooses_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first row is for the least count of the range; a count outside of it is an announced failure."""
    told = coupling(start=7)
    drawn: list[tuple[object, object, int]] = []

    def recorded(source: object, target: object, position: int) -> int:
        drawn.append((source, target, position))
        return 2

    monkeypatch.setattr(module, "coupled_draw", recorded)
    for members in (1, 2, 3):
        assert told.kernel_draw(10, members, 0.0) == 9
        assert drawn[-1] == (told.sources[members - 1], told.targets[members - 1], 3)
        expected = coupled_weights(told.sources[members - 1], told.targets[members - 1], 3)
        assert told.kernel_law(10, members) == (7, expected)
    for members in (0, 4):
        with pytest.raises(DataError):
            told.kernel_draw(10, members, 0.0)
        with pytest.raises(DataError):
            told.kernel_law(10, members)


def test_a_kernel_draws_from_the_row_of_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    told = kernel(0.5, records=RecordLaws((1, 2), RECORDS.member, RECORDS.rest), start=N)
    monkeypatch.setattr(module, "draw", lambda row: row.index(max(row)))
    for total in (N, N + 2, 2 * N):
        assert told.kernel_draw(total, 0, 0.0) == total
        assert told.kernel_law(total, 0) == (N, told.weights[total - N])
