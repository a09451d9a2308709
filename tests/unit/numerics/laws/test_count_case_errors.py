"""What the laws of sets of counts say of their own errors, against the derivation, and where they stop."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import count_cases as module
from attrpriv.numerics.laws.count_cases import UNDERFLOW, CountCases, horner_work
from attrpriv.numerics.laws.records import RecordLaws
from attrpriv.numerics.rounding import UNIT

EVENT = RecordLaws.event(0.75, 0.25)
VALUES = RecordLaws((1, 2, 4), ((0.5, 0.5), (0.25, 0.25), (0.25, 0.25)), ((0.125, 0.125), (0.0, 0.0), (0.875, 0.875)))


def cases(**changes: Any) -> CountCases:
    told: dict[str, Any] = {"n": 6, "cases": (((0, 1), (5, 6)), ((2, 4),)), "share": 0.375, "records": EVENT}
    return CountCases(**(told | changes))


def chance(n: int, share: float | Fraction, a: int) -> Fraction:
    return math.comb(n, a) * Fraction(share) ** a * (1 - Fraction(share)) ** (n - a)


def log(x: Fraction) -> float:
    with mpmath.workdps(30):
        return float(mpmath.log(mpmath.mpf(x.numerator) / x.denominator))


# ------------------------------------------------------------------------------------------ weights


@pytest.mark.parametrize(
    ("n", "share"),
    [(1, 0.25), (9, 0.35), (10, 0.45), (30, 0.3), (30, 0.97), (12, 1 - 2.0**-53), (12, 1e-200), (20, Fraction(2, 3))],
)
def test_logarithms_of_weights_are_as_near_as_they_say(n: int, share: float | Fraction) -> None:
    """Relative to the mode's; off by 9 units a step from it, and by 9 units and one a step of themselves."""
    logs, errors = module._log_weights(n, share)
    mode = int((n + 1) * Fraction(share))
    for a in range(n + 1):
        true, away = log(chance(n, share, a) / chance(n, share, mode)), abs(a - mode)
        assert errors[a] == pytest.approx(UNIT * (9 * away + (9 + away) * abs(true)), rel=1e-9, abs=0.0)
        assert abs(logs[a] - true) <= errors[a] + 2 * UNIT * abs(true)


def test_as_many_rows_as_have_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_ROWS", 30)
    assert len(module._log_weights(30, 0.5)[0]) == 31
    with pytest.raises(UsageError, match="at most 30 rows"):
        module._log_weights(31, 0.5)


@pytest.mark.parametrize("tail", [0.0, 1e-6, 0.02])
@pytest.mark.parametrize("case", [((0, 3), (9, 14)), ((4, 8),), ((15, 40),)])
@pytest.mark.parametrize("share", [0.15, 0.6, 1e-40])
def test_weights_of_a_case_are_relative_to_its_largest(share: float, case: tuple[tuple[int, int], ...], tail: float) -> None:
    n = 40
    found = module._weights(cases(n=n, share=share), case, tail)
    chances = [chance(n, share, a) for a in range(n + 1)]
    belong = [any(low <= a <= high for low, high in case) for a in range(n + 1)]
    top = max((a for a in range(n + 1) if belong[a]), key=chances.__getitem__)
    least = Fraction(tail) / (2 * n + 2) if tail else Fraction(math.exp(-700))
    kept = [a for a in range(n + 1) if belong[a] and chances[a] / chances[top] >= least]
    first, last = (0, n) if tail == 0 else (kept[0], kept[-1])
    assert (found.first, len(found.values)) == (first, last + 1 - first)
    assert found.inside.tolist() == belong[first : last + 1]
    errors = module._log_weights(n, share)[1]
    worst = max(errors[a] + errors[top] + UNIT * (abs(log(chances[a] / chances[top])) + 8) for a in kept)
    assert found.error == pytest.approx(math.expm1(worst), rel=1e-8, abs=0.0)
    for a in range(first, last + 1):
        true = float(chances[a] / chances[top]) if a in kept else 0.0
        assert found.values[a - first] == pytest.approx(true, rel=found.error, abs=0.0)
    left = sum((chances[a] / chances[top] for a in range(n + 1) if belong[a] and a not in kept), Fraction(0))
    assert found.left_out >= left
    assert found.left_out == pytest.approx(float(left) + (n + 1) * UNDERFLOW, rel=1e-9, abs=0.0)


# ------------------------------------------------------------------------------------------ Horner's rule


def given(values: list[float], error: float = 0.0, left_out: float = 0.0) -> module._Weights:
    return module._Weights(0, np.array(values), np.array(values) > 0, error, left_out)


def test_the_error_of_weights_goes_into_both_sums() -> None:
    found = module._mixed(cases(), given([0.5, 1.0, 0.25], error=0.05, left_out=1e-3))
    assert found.error == pytest.approx(1.05 / 0.95 - 1, rel=2e-9)
    assert found.floor == pytest.approx(2e-3, rel=1e-12)
    assert (found.start, len(found.masses)) == (0, 3)


def test_every_row_rounds_and_may_underflow() -> None:
    """Of 800 rows of 4 values: (8 + 4) units a row. What underflows goes into at most 801 sums, eight times over."""
    told = cases(records=VALUES)
    found = module._mixed(told, given([1.0] + [0.0] * 799 + [0.5]))
    assert found.error == pytest.approx(math.expm1((800 * 12 + 8) * UNIT) + 8 * UNIT, rel=4e-4, abs=0.0)
    assert found.floor == pytest.approx(8.0 * 801 * (800 * 2401 * 4 + 801) * UNDERFLOW, rel=1e-12, abs=0.0)
    assert found.start == 800


def test_products_are_counted() -> None:
    assert horner_work(cases(records=VALUES), 7) == 7 * 22 * 4
    assert horner_work(cases(), 5) == 5 * 6 * 2


def test_as_much_work_as_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    told = cases(n=7, cases=(((0, 3),), ((4, 7),)), records=VALUES)
    monkeypatch.setattr(module, "MOST_WORK", 616)
    assert told.whole() is not None
    assert len(told.laws(0.0)) == 2
    module.case_laws.cache_clear()
    module.whole_cases.cache_clear()
    monkeypatch.setattr(module, "MOST_WORK", 615)
    assert told.whole() is None
    with pytest.raises(UsageError, match="out of reach"):
        told.laws(0.0)
    monkeypatch.undo()
    with pytest.raises(UsageError, match="out of reach"):
        module._mixed(told, given([1.0, 0.5], error=0.11))
    assert module._mixed(told, given([1.0, 0.5], error=0.09)).masses.sum() == pytest.approx(1)


def test_decimals_are_divided_by_their_sum() -> None:
    third = (0.3333333333, 0.3333333333)
    laws = RecordLaws((2, 3, 5), (third,) * 3, ((0.2, 0.2), (0.3, 0.3), (0.5, 0.5)))
    assert module._dense(laws, laws.member) == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3], rel=1e-15)
    assert module._dense(laws, laws.rest).tolist() == [0.2, 0.3, 0.0, 0.5]


# ------------------------------------------------------------------------------------------ what is possible

HOLES = RecordLaws((-1, 1, 4), ((0.5, 0.5), (0.0, 0.0), (0.5, 0.5)), ((0.0, 0.0), (1.0, 1.0), (0.0, 0.0)))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("records", [EVENT, VALUES, HOLES, RecordLaws.event(1.0, 0.5), RecordLaws.event(0.5, 0.0)])
def test_which_answers_are_possible_by_enumeration(records: RecordLaws, n: int) -> None:
    told = cases(n=n, cases=(((0, 0),), ((1, n),)), records=records)
    ways = [[v for v, (p, _) in zip(records.values, law, strict=True) if p > 0] for law in (records.member, records.rest)]
    for inside in itertools.product([False, True], repeat=n + 1):
        if not any(inside):
            continue
        counts = [a for a in range(n + 1) if inside[a]]
        sums = {sum(one) for a in counts for one in itertools.product(*[ways[0]] * a, *[ways[1]] * (n - a))}
        found = module._possible(told, np.array(inside))
        first = n * records.values[0]
        assert found.tolist() == [first + k in sums for k in range(n * records.width + 1)]


# ------------------------------------------------------------------------------------------ guards


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cases": (((0, 6),),)}, "two or more"), ({"cases": (((0, 6),), ())}, "two or more"),
        ({"cases": ((), ())}, "two or more"),
        ({"cases": (((0, 1),), ((2, 7),))}, "between 0 and n"), ({"cases": (((-1, 1),), ((2, 6),))}, "between 0 and n"),
        ({"cases": (((0, 2),), ((2, 6),))}, "in common"), ({"cases": (((0, 3),), ((2, 6),))}, "in common"),
        ({"share": 1.5}, "share"), ({"share": 1.0}, "share"), ({"share": 0.0}, "share"), ({"share": math.nan}, "share"),
        ({"records": RecordLaws.event((0.2, 0.3), 0.5)}, "records"),
    ],
)  # fmt: skip
def test_what_are_no_cases_and_why(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        cases(**changes)


def test_single_counts_and_extreme_shares_are_cases() -> None:
    told = cases(cases=(((0, 0),), ((1, 1),), ((2, 6),)), share=1 - 2.0**-53)
    assert told.reach == 6
    assert cases(records=VALUES).reach == 18
    assert cases(share=1e-290).share == 1e-290
    assert cases(n=1, cases=(((0, 0),), ((1, 1),))).laws(0.0)[1].masses.tolist() == [0.25, 0.75]
