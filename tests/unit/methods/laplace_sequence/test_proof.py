"""The proof of a sequence of Laplace answers: sums of rates, what a row can lose by enumeration, and what may follow what."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.methods.base.evidence import LaplaceTerm
from attrpriv.methods.laplace_sequence.proof import (
    MOST_DRAWS,
    CountDraw,
    CountHistory,
    CountSequenceEvidence,
    JointLaw,
    SequenceCheck,
    rate_of,
)
from attrpriv.numerics.laws.records import RecordLaws
from tests.unit.methods.proofs import counted, refused

EVENT = RecordLaws.event(0.4, 0.6)


def draw(identity: str = "i", **changes: Any) -> CountDraw:
    return CountDraw(**({"statistic": "count", "identity": identity, "width": 1, "rate": 0.5} | changes))


def check(**changes: Any) -> SequenceCheck:
    return SequenceCheck(**({"secret": "s", "theta": 0, "apart": 3, "laws": (EVENT,)} | changes))


def evidence(**changes: Any) -> CountSequenceEvidence:
    return CountSequenceEvidence(**({"now": draw(), "checks": (check(),)} | changes))


def alone(rate: float, member: float = 0.4, rest: float = 0.6) -> float:
    """The loss of one row in one event: outputs far to either side are worst."""
    worst = 0.0
    for o in (0, 1):
        p, q = ((1 - x) * math.exp(-rate * abs(o)) + x * math.exp(-rate * abs(o - 1)) for x in (member, rest))
        worst = max(worst, abs(math.log(p / q)))
    return worst


def test_rates_are_rounded_up() -> None:
    for scale in (3.0, 0.1, 7.0):
        assert Fraction(rate_of(scale)) >= 1 / Fraction(scale)
        assert rate_of(scale) == pytest.approx(1 / scale, rel=1e-15)


def test_noise_on_the_same_statistic_adds_up() -> None:
    first = CountHistory().counted(draw())
    assert first.draws == (draw(),)
    again = first.counted(draw(rate=0.25))
    assert len(again.draws) == 1
    assert again.draws[0].rate == pytest.approx(0.75, rel=1e-14)
    assert again.draws[0].rate >= 0.75
    for other in (draw("j"), draw(histogram=True, width=2), draw(width=2)):
        assert len(first.counted(other).draws) == 2
    third = first.counted(draw("j")).counted(draw("k")).counted(draw("j", rate=1.0))
    assert [one.identity for one in third.draws] == ["i", "j", "k"]
    assert third.draws[1].rate == pytest.approx(1.5)


def test_after_so_many_statistics_a_row_pays_its_span() -> None:
    full = CountHistory(draws=tuple(draw(str(k)) for k in range(MOST_DRAWS)))
    assert CountHistory(draws=full.draws[:-1]).counted(draw("new")).free == 0.0
    more = full.counted(draw("new", width=3, rate=0.25)).counted(draw("newer", width=2))
    assert more.draws == full.draws
    assert more.free == pytest.approx(1.75, rel=1e-14)
    assert more.free >= 1.75
    known = full.counted(draw("3", rate=1.0))
    assert known.free == 0.0
    assert known.draws[3].rate == pytest.approx(1.5)


def test_range_noise_adds_up() -> None:
    assert CountHistory().ranging(0.0) == CountHistory()
    found = CountHistory().ranging(0.25).ranging(0.5)
    assert found.ranged == pytest.approx(0.75, rel=1e-14)
    assert found.ranged >= 0.75
    assert not found.reads
    assert CountHistory(free=0.1).reads
    assert CountHistory(draws=(draw(),)).reads
    assert not CountHistory().reads


@pytest.mark.parametrize("rate", [0.1, 0.5, 2.0])
def test_one_statistic_by_enumeration(rate: float) -> None:
    told = evidence(now=draw(rate=rate))
    exact = 3 * min(rate, alone(rate))
    assert told.loss() == pytest.approx(exact, rel=1e-9)
    assert told.loss() >= exact * (1 - 1e-12)
    assert told.delta(exact * (1 + 1e-9)) == 0.0
    assert told.delta(exact * (1 - 1e-9)) == 1.0
    assert told.spent(2 * exact, 0.0) == pytest.approx(0.5, rel=1e-9)
    unknown = evidence(now=draw(rate=rate), checks=(check(laws=(None,)),))
    assert unknown.loss() == pytest.approx(3 * rate, rel=1e-9)


def test_the_past_counts_too() -> None:
    past = CountHistory(draws=(draw("j", rate=0.3),), free=0.2, ranged=0.125)
    told = evidence(past=past, checks=(check(laws=(None, EVENT)),))
    exact = 3 * (0.3 + 0.2 + alone(0.5)) + 0.125
    assert told.loss() == pytest.approx(exact, rel=1e-9)
    assert told.loss() >= exact * (1 - 1e-12)
    ranged = LaplaceTerm(column="x", sensitivity=3.0, scale=8.0, granularity=0.25)
    later = evidence(past=past, now=None, terms=(ranged, ranged), checks=(check(laws=(EVENT,)),))
    assert later.after().ranged == pytest.approx(0.125 + 2 * 3.25 / 8)
    assert later.loss() == pytest.approx(3 * (0.2 + alone(0.3)) + 0.125 + 2 * 3.25 / 8, rel=1e-9)
    only = CountSequenceEvidence(terms=(ranged,))
    assert only.loss() == pytest.approx(3.25 / 8, rel=1e-12)
    assert only.loss() >= 3.25 / 8


def test_the_worst_member_counts_and_none_is_none() -> None:
    far = check(apart=4)
    assert evidence(checks=(check(), far)).loss() == evidence(checks=(far, check())).loss() == evidence(checks=(far,)).loss()
    assert refused(evidence(checks=()))
    assert refused(evidence(checks=(check(laws=(EVENT, EVENT)),)))
    assert refused(evidence(checks=(check(laws=()),)))


# -------------------------------------------------------------------------------------------------------------- joint laws

HALF, NONE = (0.5, 0.5), (0.0, 0.0)
XOR = RecordLaws((0, 1, 2, 3), (HALF, NONE, NONE, HALF), (NONE, HALF, HALF, NONE))


def joint(**changes: Any) -> JointLaw:
    return JointLaw(**({"places": (0, 1), "atoms": XOR, "added": ((0, 0, 1, 1), (0, 1, 0, 1))} | changes))


def xor_loss(rates: tuple[float, float]) -> float:
    """Of one row in both answers, by enumeration of its atoms, at outputs of 0 and 1."""
    worst = 0.0
    for o in itertools.product((0, 1), repeat=2):
        weight = {
            y: math.exp(-sum(r * abs(a - b) for r, a, b in zip(rates, o, y, strict=True)))
            for y in itertools.product((0, 1), repeat=2)
        }
        worst = max(worst, abs(math.log((weight[0, 0] + weight[1, 1]) / (weight[0, 1] + weight[1, 0]))))
    return worst


def two(**changes: Any) -> CountSequenceEvidence:
    fair = RecordLaws.event(0.5, 0.5)
    told: dict[str, Any] = {
        "past": CountHistory(draws=(draw("j", rate=2.0),)), "now": draw(rate=1.0),
        "checks": (check(laws=(fair, fair), joint=(joint(),)),),
    }  # fmt: skip
    return CountSequenceEvidence(**(told | changes))


def test_a_joint_law_by_enumeration() -> None:
    exact = 3 * min(xor_loss((2.0, 1.0)), 1.0, 2.0)
    assert two().loss() == pytest.approx(exact, rel=1e-9)
    assert two().loss() >= exact * (1 - 1e-12)
    draws = (draw("j", rate=2.0), draw(rate=1.0), draw("k", rate=0.25, width=3))
    assert joint().loss(draws, 0.125) == pytest.approx(xor_loss((2.0, 1.0)) + 0.75 + 0.125, rel=1e-9)
    assert two().loss(going_on=True) >= two().loss()


@pytest.mark.parametrize(
    "changes",
    [
        {"places": (0, 0)},
        {"added": ((0, 0, 1, 1),)},
        {"added": ((0, 0, 1, 1), (0, 1, 0))},
        {"added": ((0, 0, 2, 1), (0, 1, 0, 1))},  # further than the width
        {"added": ((0, 0, 1, 1), (0, 1, 0, 1), (0, 0, 0, 0))},
        {"added": ((0, 0, 1, 1), (0, 2, 0, 1))},
    ],
)
def test_a_joint_law_of_something_else_is_worth_nothing(changes: dict[str, Any]) -> None:
    draws = (draw("j", rate=2.0), draw(rate=1.0))
    assert math.isfinite(joint().loss(draws, 0.0))
    assert joint(**changes).loss(draws, 0.0) == math.inf


def test_what_counts_is_how_far_values_are_apart() -> None:
    draws = (draw("j", rate=2.0), draw(rate=1.0))
    moved = joint(added=((5, 5, 6, 6), (-3, -2, -3, -2)))
    assert moved.loss(draws, 0.0) == pytest.approx(joint().loss(draws, 0.0), rel=1e-12)


def test_cells_of_a_histogram_may_have_any_number() -> None:
    draws = (draw("j", rate=2.0), draw(rate=1.0, histogram=True, width=2))
    assert math.isfinite(joint(added=((0, 0, 1, 1), (0, 7, 0, 7))).loss(draws, 0.0))


# ---------------------------------------------------------------------------------------------------------- what may follow


def test_what_may_follow() -> None:
    first = evidence()
    assert first.follows(None)
    then = evidence(past=first.after(), now=draw("j"))
    assert then.follows(first)
    assert not then.follows(None)
    assert not first.follows(first)
    assert not then.follows(evidence(now=draw(rate=0.4)))
    assert not then.follows("something else")
    assert then.after() == CountHistory(draws=(draw(), draw("j")))


def test_what_is_covered() -> None:
    told = evidence(now=draw(rate=rate_of(2.0)))
    assert told.covers_tally(counted())
    for changes in (
        {"identity": "j"},
        {"histogram": True},
        {"width": 2},
        {"scale": 2.1},
        {"noise": "gaussian"},
        {"scale": 0.0},
    ):
        assert not told.covers_tally(counted(**changes)), changes
    term = LaplaceTerm(column="x", sensitivity=10.0, scale=2.0, granularity=0.25)
    assert not evidence(now=draw(rate=rate_of(2.0)), terms=(term,)).covers_tally(counted())
    ranged = CountSequenceEvidence(terms=(term,))
    assert ranged.covers_tally(counted())
    assert not ranged.covers_tally(counted(n=11))
    assert ranged.covers("x", "laplace", 2.0)
    for other in (("x", "gaussian", 2.0), ("x", "laplace", 2.1), ("y", "laplace", 2.0)):
        assert not ranged.covers(*other)
    assert ranged.width_of("x") == 10.0
    assert ranged.covers_statistic("x", frozenset(), Fraction(10), "laplace", 2.0)
    assert not ranged.covers_statistic("x", frozenset(), Fraction(11), "laplace", 2.0)
