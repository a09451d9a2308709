"""Laws of sums of rows in whole numbers: every entry against fractions, where the values do not begin at 0."""

from __future__ import annotations

from fractions import Fraction

import pytest

from attrpriv.numerics.laws.fixed_window import BITS, window_binomial, window_law
from attrpriv.numerics.laws.records import RecordLaws


def exact(records: RecordLaws, n: int, a: int) -> dict[int, Fraction]:
    laws = [
        {value: Fraction(repr(float(low))) for value, (low, _) in zip(records.values, law, strict=True)}
        for law in (records.member, records.rest)
    ]
    found = {0: Fraction(1)}
    for law in [laws[0]] * a + [laws[1]] * (n - a):
        more: dict[int, Fraction] = {}
        for x, p in found.items():
            for y, q in law.items():
                more[x + y] = more.get(x + y, Fraction(0)) + p * q
        found = more
    return found


@pytest.mark.parametrize("values", [(0, 1), (0, 1, 3), (2, 3, 5), (-4, -1, 2)])
@pytest.mark.parametrize(("n", "a"), [(1, 1), (5, 2), (8, 0), (8, 8)])
def test_sums_against_fractions(values: tuple[int, ...], n: int, a: int) -> None:
    p = [(0.5, 0.5), (0.25, 0.25), (0.25, 0.25)] if len(values) == 3 else [(0.25, 0.25), (0.75, 0.75)]
    q = p[::-1]
    records = RecordLaws(values, tuple(p), tuple(q))
    law, wanted = window_law(records, n, a), exact(records, n, a)
    found = {law.start + k: Fraction(mass, 2**BITS) for k, mass in enumerate(law.masses)}
    short = Fraction(law.deficit, 2**BITS)
    assert 0 <= short < Fraction(1, 2**60)
    for x, mass in wanted.items():
        assert 0 <= mass - found.get(x, Fraction(0)) <= short
    assert all(x in wanted or not mass for x, mass in found.items())


def test_sure_and_impossible_events() -> None:
    assert window_binomial(5, 1.0).start == 5
    assert window_binomial(5, 0.0).start == 0
    assert window_binomial(0, 0.5).start == 0


def test_entries_too_small_to_matter_are_left_out_at_both_ends() -> None:
    """Of many rows: the window begins where its first entry is, and what lies outside is in the deficit."""
    records = RecordLaws((1, 2, 4), ((0.5, 0.5), (0.25, 0.25), (0.25, 0.25)), ((0.5, 0.5), (0.25, 0.25), (0.25, 0.25)))
    n = 600
    law = window_law(records, n, 300)
    mean, variance = n * 2.0, n * (0.5 * 1 + 0.25 * 4 + 0.25 * 16 - 4.0)
    centre = law.start + sum(k * mass for k, mass in enumerate(law.masses)) / 2**BITS
    assert centre == pytest.approx(mean, rel=1e-9)
    spread = sum((law.start + k - mean) ** 2 * mass for k, mass in enumerate(law.masses)) / 2**BITS
    assert spread == pytest.approx(variance, rel=1e-9)
    assert law.start > n
