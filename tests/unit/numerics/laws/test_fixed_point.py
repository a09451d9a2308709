"""Laws in whole numbers: never above the truth, and short of it by less than two units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.fixed_point import SHORT, fixed_binomial_sum, fixed_record_sum, record_masses
from attrpriv.numerics.laws.records import exactly


def power(law: list[Fraction], n: int) -> list[Fraction]:
    result = [Fraction(1)]
    for _ in range(n):
        result = times(result, law)
    return result


def times(p: list[Fraction], q: list[Fraction]) -> list[Fraction]:
    total = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            total[i + j] += x * y
    return total


def shortfalls(found: tuple[int, ...], truth: list[Fraction], bits: int) -> list[Fraction]:
    assert len(found) == len(truth)
    return [mass * 2**bits - entry for mass, entry in zip(truth, found, strict=True)]


@given(
    a=st.integers(0, 8),
    b=st.integers(0, 8),
    p1=st.floats(0.0, 1.0),
    p0=st.floats(0.0, 1.0),
    bits=st.integers(1, 200),
)
@settings(max_examples=100, deadline=None)
def test_binomial(a: int, b: int, p1: float, p0: float, bits: int) -> None:
    laws = [[1 - exactly(p), exactly(p)] for p in (p1, p0)]
    truth = times(power(laws[0], a), power(laws[1], b))
    assert all(0 <= short < SHORT for short in shortfalls(fixed_binomial_sum(a, p1, b, p0, bits), truth, bits))


@given(
    weights=st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any), min_size=2, max_size=2),
    a=st.integers(0, 5),
    b=st.integers(0, 5),
)
@settings(max_examples=60, deadline=None)
def test_records(weights: list[list[int]], a: int, b: int) -> None:
    values = (-1, 0, 2)
    floats = [[w / sum(row) for w in row] for row in weights]
    laws = []
    for row in floats:
        total = sum(map(exactly, row), Fraction(0))
        laws.append([exactly(row[0]) / total, exactly(row[1]) / total, Fraction(0), exactly(row[2]) / total])
    truth = times(power(laws[0], a), power(laws[1], b))
    assert all(0 <= x < SHORT for x in shortfalls(fixed_record_sum(values, floats[0], a, floats[1], b, 90), truth, 90))


def test_a_hundred_and_fifty_rows() -> None:
    found = fixed_binomial_sum(70, 0.4, 80, 0.6, 300)
    first, second = (
        [math.comb(n, k) * exactly(p) ** k * (1 - exactly(p)) ** (n - k) for k in range(n + 1)]
        for n, p in ((70, 0.4), (80, 0.6))
    )
    assert all(0 <= short < SHORT for short in shortfalls(found, times(first, second), 300))
    assert -SHORT * len(found) < sum(found) - 2**300 <= 0


def test_without_guard_digits_it_would_be_too_short() -> None:
    """The mutant: rounding down at the final width at every step loses more than is stated."""
    from attrpriv.numerics.laws import fixed_point

    width = 40
    law = fixed_point.record_masses((0, 1), (0.6, 0.4), width)
    entries = fixed_point._power(law, 150, width)
    truth = [math.comb(150, k) * Fraction(2, 5) ** k * Fraction(3, 5) ** (150 - k) for k in range(151)]
    assert max(mass * 2**width - entry for mass, entry in zip(truth, entries, strict=True)) > SHORT


def test_guard_digits_outnumber_the_roundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """n rows cost less than 2n + 2 units: 2^guard is the next power of two above that."""
    from attrpriv.numerics.laws import fixed_point

    widths: list[int] = []
    whole = fixed_point.record_masses

    def spied(values: Sequence[int], law: Sequence[float | Fraction], width: int) -> list[int]:
        widths.append(width)
        return whole(values, law, width)

    monkeypatch.setattr(fixed_point, "record_masses", spied)
    for a, b in ((0, 0), (1, 0), (0, 3), (5, 0), (2, 5), (4, 3), (7, 8), (31, 0)):
        fixed_binomial_sum(a, 0.25, b, 0.75, 20)
        assert 2 * (a + b) + 2 < 2 ** (widths[-1] - 20) <= 2 * (2 * (a + b) + 2)
    assert set(widths[::2]) == set(widths[1::2])


def test_one_row_has_no_mass_between_its_values() -> None:
    assert record_masses((-2, 1, 3), (0.5, 0.25, 0.25), 8) == [128, 0, 0, 64, 0, 64]
    assert record_masses((0, 1, 2), (0.3333333333,) * 3, 8) == [85, 85, 85]
    assert record_masses((5,), (1.0,), 8) == [256]


def test_floats_are_the_decimals_that_write_them() -> None:
    """By its bits 0.9999999999999999 would leave 1.1e-16."""
    assert fixed_binomial_sum(1, 0.9999999999999999, 0, 0.5, 128)[0] == 2**128 // 10**16


def test_fractions_are_taken_as_they_are() -> None:
    assert fixed_binomial_sum(1, Fraction(1, 3), 0, 0.5, 8) == (170, 85)


@pytest.mark.parametrize(
    "make",
    [
        lambda: fixed_binomial_sum(-1, 0.5, 1, 0.5, 8),
        lambda: fixed_binomial_sum(1, 1.5, 1, 0.5, 8),
        lambda: fixed_binomial_sum(1, 0.5, 1, 0.5, 0),
        lambda: fixed_record_sum((1, 0), (0.5, 0.5), 1, (0.5, 0.5), 1, 8),
        lambda: fixed_record_sum((0, 2, 1), (0.5, 0.25, 0.25), 1, (0.5, 0.25, 0.25), 1, 8),
        lambda: fixed_record_sum((0, 0, 1), (0.5, 0.25, 0.25), 1, (0.5, 0.25, 0.25), 1, 8),
        lambda: fixed_record_sum((0, 1), (0.5, 0.6), 1, (0.5, 0.5), 1, 8),
        lambda: fixed_record_sum((0, 1), (0.5,), 1, (0.5, 0.5), 1, 8),
    ],
)
def test_what_is_refused(make: object) -> None:
    with pytest.raises(UsageError):
        make()  # type: ignore[operator]
