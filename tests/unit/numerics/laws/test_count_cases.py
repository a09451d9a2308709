"""The law of a count given that the members lie in a set: by enumeration, with holes, and with what windows leave out."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.count_cases import CountCases, MixedMasses, case_laws, whole_cases
from attrpriv.numerics.laws.records import RecordLaws

EVENT = RecordLaws.event(0.75, 0.25)
VALUES = RecordLaws((1, 2, 4), ((0.5, 0.5), (0.25, 0.25), (0.25, 0.25)), ((0.125, 0.125), (0.0, 0.0), (0.875, 0.875)))


def cases(**changes: Any) -> CountCases:
    told: dict[str, Any] = {"n": 6, "cases": (((0, 1), (5, 6)), ((2, 4),)), "share": 0.375, "records": EVENT}
    return CountCases(**(told | changes))


def exact(told: CountCases) -> list[dict[int, Fraction]]:
    """By convolution of fractions, a count at a time."""
    records, n, share = told.records, told.n, Fraction(told.share)
    laws = [
        {value: Fraction(low) for value, (low, _) in zip(records.values, law, strict=True)}
        for law in (records.member, records.rest)
    ]

    def sums(a: int) -> dict[int, Fraction]:
        found = {0: Fraction(1)}
        for law in [laws[0]] * a + [laws[1]] * (n - a):
            more: dict[int, Fraction] = {}
            for x, p in found.items():
                for y, q in law.items():
                    more[x + y] = more.get(x + y, Fraction(0)) + p * q
            found = more
        return found

    mixed = []
    for case in told.cases:
        inside = [a for low, high in case for a in range(low, high + 1)]
        weights = {a: math.comb(n, a) * share**a * (1 - share) ** (n - a) for a in inside}
        total = sum(weights.values())
        law: dict[int, Fraction] = {}
        for a, weight in weights.items():
            for x, p in sums(a).items():
                law[x] = law.get(x, Fraction(0)) + weight / total * p
        mixed.append(law)
    return mixed


@pytest.mark.parametrize("records", [EVENT, VALUES])
@pytest.mark.parametrize("share", [0.375, 0.01])
def test_whole_laws_by_enumeration(records: RecordLaws, share: float) -> None:
    told = cases(records=records, share=share)
    assert told.reach == 6 * records.width
    for law, wanted in zip(told.laws(0.0), exact(told), strict=True):
        assert law.start == 6 * records.values[0]
        for k, mass in enumerate(law.masses):
            true = float(wanted.get(law.start + k, Fraction(0)))
            assert float(mass) == pytest.approx(true, rel=1e-12, abs=0.0), k
            assert abs(float(mass) - true) <= law.error * mass + 1e-320
        assert law.pointwise
    found = told.whole()
    assert found is not None
    for mixed, law in zip(found, told.laws(0.0), strict=True):
        assert mixed.masses.tolist() == law.masses.tolist()


@pytest.mark.parametrize("records", [EVENT, VALUES])
@pytest.mark.parametrize("tail", [1e-9, 1e-2])
def test_windows_say_what_they_leave_out(records: RecordLaws, tail: float) -> None:
    told = cases(n=12, cases=(((0, 4),), ((5, 12),)), records=records)
    for law, wanted in zip(case_laws(told, tail), exact(told), strict=True):
        gaps = [float(wanted.get(law.start + k, 0)) - float(mass) for k, mass in enumerate(law.masses)]
        outside = sum(float(p) for x, p in wanted.items() if not law.start <= x <= law.end)
        assert max(sum(gap for gap in gaps if gap > 0) + outside, -sum(gap for gap in gaps if gap < 0)) <= law.lost
        assert law.lost < 3 * tail
        assert law.error == math.inf


def test_a_floor_is_part_of_the_distance() -> None:
    made = MixedMasses(0, np.array([0.25, 0.5]), 0.1, 0.01)
    assert made.distance == pytest.approx(0.085, rel=1e-12)
    assert made.distance >= 0.085


def test_a_mass_that_is_too_small_is_no_claim() -> None:
    rare = cases(n=200, cases=(((0, 100),), ((101, 200),)), records=RecordLaws.event(1e-4, 1e-6), share=0.5)
    assert all(law.error == math.inf for law in rare.laws(0.0))
    assert all(0 < law.lost < 1e-9 for law in rare.laws(0.0))
    assert len(whole_cases(rare)) == 2


def test_too_much_work_is_not_begun() -> None:
    assert cases(n=100_000, cases=(((0, 10),), ((11, 100_000),))).whole() is None
    with pytest.raises(UsageError, match="out of reach"):
        cases(n=100_000, cases=(((0, 10),), ((11, 100_000),))).laws(0.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"cases": (((0, 1),),)}, {"cases": (((0, 1),), ())}, {"cases": (((0, 2),), ((2, 4),))},
        {"cases": (((0, 2), (5, 6)), ((2, 4),))}, {"cases": (((0, 1), (4, 6)), ((2, 4),))},
        {"cases": (((0, 0), (3, 6)), ((2, 3),))},
        {"cases": (((0, 1),), ((4, 7),))},
        {"cases": (((-1, 1),), ((2, 4),))}, {"cases": (((1, 0),), ((2, 4),))}, {"share": 0.0}, {"share": 1.0},
        {"share": 1e-291}, {"records": RecordLaws.event((0.2, 0.3), 0.5)},
    ],
)  # fmt: skip
def test_what_are_no_cases(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        cases(**changes)


def test_neighbouring_runs_are_cases() -> None:
    assert cases(cases=(((0, 2),), ((3, 6),))).laws(0.0)
    assert cases(share=1e-290).n == 6


def test_what_underflows_counts_as_a_share_of_the_least_mass() -> None:
    """Six rare events have a mass near the end of the floats: what products can have lost there is no small share of it."""
    rare = cases(records=RecordLaws.event(2.0**-165, 2.0**-166))
    for law, mixed in zip(rare.laws(0.0), whole_cases(rare), strict=True):
        assert law.pointwise
        share = mixed.floor / float(law.masses.min())
        assert share > 100 * mixed.error
        assert share <= law.error <= (share + mixed.error) * (1 + 1e-9)
