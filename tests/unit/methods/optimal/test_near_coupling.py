"""Reading the secret where only near values must look alike: the real laws in fractions, and a program written out in full."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.optimal.near_coupling import certified_near_coupling
from attrpriv.numerics.calibration.coupling import CertifiedCoupling, certified_coupling, coupling_loss_upper, overlaps
from attrpriv.numerics.calibration.kernel import certified_kernel
from attrpriv.numerics.laws.count_cases import CountPrior
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from tests.unit.numerics.laws.test_fixed_window import VISITS, exact_law

EVENT = RecordLaws.event(0.2, 0.5)


def binomial(n: int, share: float = 0.5) -> list[float]:
    return [float(x) for x in CountPrior(n, 0, n, share=share).nodes(n + 1)[1]]


def output_laws(found: CertifiedCoupling, records: RecordLaws, pairs: CountPairs) -> list[list[Fraction]]:
    """The law of the answer given each secret."""
    laws = []
    for i, (source, target) in enumerate(zip(found.sources, found.targets, strict=True)):
        law, output = exact_law(records, pairs.n, pairs.low + i), [Fraction(0)] * len(target)
        for f, o, part, whole in overlaps(source, target):
            output[o] += law[f] * Fraction(part, whole)
        laws.append(output)
    return laws


def loss(laws: list[list[Fraction]], apart: int) -> Any:
    """Over the pairs at most `apart` apart, to 60 digits."""
    size = range(len(laws))
    near = [(laws[a], laws[b]) for a in size for b in size if abs(a - b) <= apart]
    ratio = max(x / y for p, q in near for x, y in zip(p, q, strict=True))
    with mpmath.workdps(60):
        return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


def least_error(records: RecordLaws, pairs: CountPairs, epsilon: float, prior: list[float]) -> float:
    """The slow twin: every joint law P(F = f, O = o | a) is unknown, and every condition of every pair is written down."""
    laws = np.array([[float(x) for x in exact_law(records, pairs.n, a)] for a in range(pairs.low, pairs.high + 1)])
    secrets, values = laws.shape
    place = np.arange(secrets * values * values).reshape(secrets, values, values)
    cost = np.zeros(place.size)
    totals, conditions = np.zeros((secrets * values, place.size)), []
    for a in range(secrets):
        for f in range(values):
            cost[place[a, f]] = prior[a] * np.abs(np.arange(values) - f)
            totals[a * values + f, place[a, f]] = 1
        for b in range(max(0, a - pairs.apart), min(secrets, a + pairs.apart + 1)):
            for o in range(values if a != b else 0):
                row = np.zeros(place.size)
                row[place[a, :, o]], row[place[b, :, o]] = 1, -math.exp(epsilon)
                conditions.append(row)
    found: Any = linprog(cost, np.array(conditions), np.zeros(len(conditions)), totals, laws.ravel(), bounds=(0, None))
    return float(found.fun)


def test_eight_rows_one_apart() -> None:
    """.067, where the better of hiding all pairs and seeing the count alone errs by .229."""
    pairs, prior = CountPairs(8, 0, 8, 1), binomial(8)
    found = certified_near_coupling(EVENT, pairs, 0.25, prior)
    before = [certified_coupling(EVENT, pairs, 0.25, prior).optimum, certified_kernel(EVENT, pairs, 0.25, prior).optimum]
    assert (round(found.optimum, 3), round(min(before), 3)) == (0.067, 0.23)
    assert min(before) / found.optimum == pytest.approx(3.42, abs=0.01)


@pytest.mark.parametrize(("records", "n"), [(EVENT, 5), (RecordLaws.event(0.9, 0.1), 4), (VISITS, 3)])
@pytest.mark.parametrize(("low", "apart"), [(0, 1), (0, 2), (1, 1)])
def test_the_program_written_out_in_full(records: RecordLaws, n: int, low: int, apart: int) -> None:
    """The same least error, and what is drawn hides the near pairs, in fractions."""
    pairs = CountPairs(n, low, n, apart)
    prior = [x / sum(binomial(n, 0.4)[low:]) for x in binomial(n, 0.4)[low:]]
    found = certified_near_coupling(records, pairs, 0.2, prior)
    assert found.optimum == pytest.approx(least_error(records, pairs, 0.2, prior), abs=2e-6)
    laws = output_laws(found, records, pairs)
    assert all(sum(law) == 1 for law in laws)
    assert loss(laws, apart) <= found.loss <= 0.2
    # Pairs further apart are not hidden as well as that: the test can fail.
    if found.optimum > 1e-6:
        assert loss(laws, n) > 0.2


def test_all_pairs_are_the_other_program() -> None:
    pairs, prior = CountPairs.all_of(7), binomial(7)
    found, other = certified_near_coupling(EVENT, pairs, 0.5, prior), certified_coupling(EVENT, pairs, 0.5, prior)
    assert found.optimum == pytest.approx(other.optimum, abs=1e-6)


def test_unlikely_secrets_are_not_sacrificed() -> None:
    """A secret of no weight keeps a law near its own, since intervals hold for it too."""
    pairs = CountPairs(8, 0, 8, 1)
    found = certified_near_coupling(EVENT, pairs, 0.25, [0.0] * 8 + [1.0])
    laws = output_laws(found, EVENT, pairs)
    moved = [abs(float(sum(o * x for o, x in enumerate(law))) - 0.5 * 8 + 0.3 * a) for a, law in enumerate(laws)]
    assert max(moved) < 2.4


def test_planted_slices_are_noticed() -> None:
    pairs = CountPairs(8, 0, 8, 1)
    found = certified_near_coupling(EVENT, pairs, 0.25, binomial(8))
    assert coupling_loss_upper(found.sources, found.sources, EVENT, pairs) > 0.25
    assert coupling_loss_upper(found.sources[::-1], found.targets, EVENT, pairs) > 0.25
    planted = CertifiedCoupling(0, 0, found.sources, found.sources, 0.0, 0.0)
    assert loss(output_laws(planted, EVENT, pairs), 1) > 0.25
    swapped = (*found.targets[:3], found.targets[4], found.targets[3], *found.targets[5:])
    assert coupling_loss_upper(found.sources, swapped, EVENT, pairs) > 0.25


def test_what_is_refused() -> None:
    with pytest.raises(RefusedError, match="near pairs are solved for up to"):
        certified_near_coupling(EVENT, CountPairs(41, 0, 41, 1), 0.5, [1 / 42] * 42)
    with pytest.raises(RefusedError, match="exact probabilities"):
        certified_near_coupling(RecordLaws.event((0.4, 0.5), 0.6), CountPairs(3, 0, 3, 1), 0.5, [0.25] * 4)
    with pytest.raises(UsageError, match=r"^prior: "):
        certified_near_coupling(EVENT, CountPairs(3, 0, 3, 1), 0.5, [0.5] * 3)
