"""What is drawn has the law that was certified; the same test rejects a kernel with a twentieth moved.

One chi-square test for each of the cells below, rejected below ALARM: with at most 30 of them to a test the false-alarm rate is
below 3e-7. Its power against the mutant is computed in `test_power`, not guessed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

from attrpriv.noise import coupled_draw, draw
from attrpriv.numerics.calibration.coupling import CertifiedCoupling, certified_coupling, overlaps
from attrpriv.numerics.calibration.kernel import certified_kernel
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

ALARM = 1e-8
DRAWS = 4_000
MOVED = 0.05
EVENT, PAIRS, PRIOR = RecordLaws.event(0.4, 0.6), CountPairs.all_of(5), [1 / 6] * 6


def p_value(drawn: Sequence[int], law: Sequence[float]) -> float:
    """Chi-square over the outputs; those expected less than ten times join the likeliest. What cannot be drawn rejects."""
    expected = len(drawn) * np.array(law)
    observed = np.bincount(drawn, minlength=len(law)).astype(float)
    if observed[expected == 0].any():
        return 0.0
    cell = np.where(expected < 10, expected.argmax(), np.arange(len(law)))
    expected, observed = (np.bincount(cell, x)[np.unique(cell)] for x in (expected, observed))
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(chi2.sf(statistic, len(expected) - 1)) if len(expected) > 1 else 1.0


def rows_of(coupling: CertifiedCoupling, i: int) -> list[list[float]]:
    """K_a[f, o], as the certificate has it."""
    law = [[0.0] * 6 for _ in range(6)]
    for f, o, part, whole in overlaps(coupling.sources[i], coupling.targets[i]):
        law[f][o] = part / whole
    return law


def moved(row: Sequence[int], share: float) -> list[int]:
    """A part of the whole goes from the likeliest output to the next one."""
    second, top = sorted(range(len(row)), key=lambda o: row[o])[-2:]
    part = int(sum(row) * share)
    mutant = list(row)
    mutant[top] -= part
    mutant[second] += part
    return mutant


@pytest.fixture(scope="module")
def weights() -> tuple[tuple[int, ...], ...]:
    return certified_kernel(EVENT, PAIRS, 0.5, PRIOR).weights


def test_the_kernel_that_sees_the_count(weights: tuple[tuple[int, ...], ...]) -> None:
    for row in weights:
        assert p_value([draw(row) for _ in range(DRAWS)], [weight / 2**62 for weight in row]) > ALARM


def test_the_coupling() -> None:
    coupling = certified_coupling(EVENT, PAIRS, 0.5, PRIOR)
    for i in range(0, 6, 2):
        for f, law in enumerate(rows_of(coupling, i)):
            drawn = [coupled_draw(coupling.sources[i], coupling.targets[i], f) for _ in range(DRAWS // 4)]
            assert p_value(drawn, law) > ALARM


def test_a_mutant_is_rejected(weights: tuple[tuple[int, ...], ...]) -> None:
    row = weights[1]
    assert p_value([draw(moved(row, MOVED)) for _ in range(DRAWS)], [weight / 2**62 for weight in row]) < ALARM


def test_power(weights: tuple[tuple[int, ...], ...]) -> None:
    """The mutant is missed with a probability below 1e-6."""
    row = weights[1]
    law, mutant = (np.array([weight / 2**62 for weight in x]) for x in (row, moved(row, MOVED)))
    likely = law * DRAWS >= 10
    assert (likely | (law == 0)).all()
    shift = DRAWS * float(((mutant - law)[likely] ** 2 / law[likely]).sum())
    freedom = int(likely.sum()) - 1
    assert float(ncx2.cdf(chi2.isf(ALARM, freedom), freedom, shift)) < 1e-6
