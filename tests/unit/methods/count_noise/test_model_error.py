"""What noise on a count is worth where probabilities are off, against every corner of the wider box, written out."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from attrpriv.methods.base.accuracy import OFF_BY
from attrpriv.methods.count_noise.proof import (
    CountCasesCheck,
    CountCasesEvidence,
    CountCheck,
    CountDirectEvidence,
    CountLaplaceEvidence,
    WassersteinEvidence,
)
from attrpriv.numerics.calibration.count_cases import case_loss
from attrpriv.numerics.calibration.laplace import laplace_loss
from attrpriv.numerics.laws.records import CountPairs, RecordLaws, widened
from tests.unit.methods.count_noise.test_proof import CHECK, FAR, PAIRS, RECORDS, cases, hockey, law, noisy, pairs
from tests.unit.methods.proofs import counted

DELTA = 1e-3
VALUES = CountCheck(secret="s", theta=0, records=RecordLaws((0, 2), RECORDS.member, RECORDS.rest), pairs=PAIRS)


def least(p: np.ndarray, q: np.ndarray, delta: float) -> float:
    def over(epsilon: float) -> float:
        return hockey(p, q, epsilon) - delta

    return float(brentq(over, 0.0, 30.0, xtol=1e-12)) if over(0.0) > 0 else 0.0


def worst(check: CountCheck, noise: str, scale: float, off: float) -> float:
    """The least epsilon at DELTA of any pair, at the worst corner."""
    wider = widened(check.records, off)
    found = 0.0
    for member, rest in itertools.product(wider.member[1], wider.rest[1]):
        one = check.model_copy(update={"records": RecordLaws.event(float(member), float(rest))})
        laws = {a: noisy(law(a, one), noise, scale, 80) for a in range(check.pairs.low, check.pairs.high + 1)}
        found = max(found, *(least(laws[a], laws[b], DELTA) for a, b in pairs(check) if abs(a - b) == check.pairs.apart))
    return found


def direct(**changes: Any) -> CountDirectEvidence:
    return CountDirectEvidence(**({"checks": (CHECK,), "noise": "laplace", "scale": 1.5} | changes))


def moved(**changes: Any) -> WassersteinEvidence:
    told: dict[str, Any] = {"checks": (CHECK,), "distance": 3, "ignored": 0.0, "noise": "laplace", "scale": 1.5}
    return WassersteinEvidence(**(told | changes))


@pytest.mark.parametrize(("noise", "scale"), [("laplace", 1.5), ("gaussian", 1.5), ("none", 0.0)])
def test_every_law_of_the_wider_box_is_covered(noise: Any, scale: float) -> None:
    for made in (direct(noise=noise, scale=scale), moved(noise=noise, scale=scale)):
        epsilon = worst(CHECK, noise, scale, 0.0)
        rows = made.model_error(epsilon, DELTA)
        assert [row.off_by for row in rows] == list(OFF_BY)
        for row in rows[-1:]:
            exact = worst(CHECK, noise, scale, row.off_by)
            assert row.epsilon is not None
            assert exact <= row.epsilon * (1 + 1e-9)
            assert row.epsilon <= 1.2 * exact


def test_pure_noise_by_its_loss_over_the_wider_box() -> None:
    """Of events without delta, and of sums with it too; of several checks the worst."""
    for check in (CHECK, FAR, VALUES):
        plain = CountLaplaceEvidence(checks=(check,), scale=1.5).model_error(1.0, 0.0)
        for row, other in zip(plain, direct(checks=(check,)).model_error(1.0, 0.0), strict=True):
            expected = laplace_loss(widened(check.records, row.off_by), check.pairs.apart, 1.5).upper
            assert row.epsilon == other.epsilon == pytest.approx(expected, rel=1e-12)
    for row in direct(checks=(VALUES,)).model_error(1.0, DELTA):
        expected = laplace_loss(widened(VALUES.records, row.off_by), PAIRS.apart, 1.5).upper
        assert row.epsilon == pytest.approx(expected, rel=1e-12)
    for checks in ((CHECK, FAR), (FAR, CHECK)):
        assert direct(checks=checks).model_error(1.0, 0.0) == direct(checks=(FAR,)).model_error(1.0, 0.0)


def test_with_delta_it_is_never_more_than_without() -> None:
    for delta in (1e-12, DELTA):
        for row, pure in zip(direct().model_error(0.5, delta), direct().model_error(0.5, 0.0), strict=True):
            assert row.epsilon is not None
            assert pure.epsilon is not None
            assert row.epsilon <= pure.epsilon
            assert delta < DELTA or row.epsilon < 0.999 * pure.epsilon


def test_where_nothing_is_known_nothing_is_said() -> None:
    """Gaussian noise without delta has no epsilon; of sums with it no bound is at hand."""
    assert [row.epsilon for row in direct(noise="gaussian").model_error(1.0, 0.0)] == [None] * len(OFF_BY)
    for checks in ((VALUES,), (CHECK, VALUES), (VALUES, CHECK)):
        assert direct(checks=checks, noise="gaussian").model_error(1.0, DELTA) == ()
        assert moved(checks=checks, noise="none", scale=0.0).model_error(1.0, DELTA) == ()
        assert direct(checks=checks).model_error(1.0, DELTA)


@pytest.mark.parametrize(("times", "apart"), [(1.0, 3), (0.5, 2), (2 / 3, 2), (0.1, 1), (1.1, 4), (5.0, 4)])
def test_counts_so_many_times_as_far_apart(times: float, apart: int) -> None:
    """Whole rows, one at least, and no more than the range has."""
    assert CHECK.stretched(times).pairs == CountPairs(10, 2, 6, apart)
    assert direct(checks=(CHECK, FAR)).stretched(times).checks[1].pairs.apart == apart
    assert CountLaplaceEvidence(checks=(CHECK,), scale=1.0).stretched(times).checks[0].pairs.apart == apart


# ------------------------------------------------------------------------------------------------------------ sets of counts


def sets(records: RecordLaws, **changes: Any) -> CountCasesEvidence:
    (check,) = cases().checks
    mine = CountCasesCheck(secret="s", theta=0, sets=replace(check.sets, records=records))
    return CountCasesEvidence(**({"checks": (mine,), "noise": "laplace", "scale": 2.0} | changes))


def test_the_worst_of_several_sets_counts() -> None:
    near, far = (sets(RecordLaws.event(p, 0.2)).checks[0] for p in (0.3, 0.8))
    alone = [sets(RECORDS, checks=(check,), noise="gaussian").delta(0.2) for check in (near, far)]
    assert alone[0] < alone[1]
    for checks in ((near, far), (far, near)):
        assert sets(RECORDS, checks=checks, noise="gaussian").delta(0.2) == alone[1]


@pytest.mark.parametrize(("noise", "scale", "pure"), [("laplace", 2.0, True), ("none", 0.0, True), ("gaussian", 2.0, False)])
def test_sets_are_pure_by_laplace_noise_or_by_none(noise: Any, scale: float, pure: bool) -> None:
    """At the epsilon that Laplace noise of that scale has: Gaussian noise has none."""
    told = sets(RecordLaws.event(0.5, 0.3), noise=noise, scale=scale)
    loss = case_loss(told.checks[0].sets, scale)
    assert 0 < loss < math.inf
    assert (told.delta(loss) == 0.0) is pure
    assert told.delta(loss * 0.9) > 0.0


def test_a_row_of_each_set_adds_what_is_counted() -> None:
    one, two = sets(RECORDS).checks[0], sets(RecordLaws((0, 2), RECORDS.member, RECORDS.rest)).checks[0]
    assert sets(RECORDS).covers_tally(counted(n=8))
    for checks in ((one, two), (two, one), (two,)):
        assert not sets(RECORDS, checks=checks).covers_tally(counted(n=8))
