"""Laws on a window in whole numbers, against exact fractions: never above the truth, and never further below than they say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from math import comb

import pytest
from scipy.stats import binom

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import fixed_window as module
from attrpriv.numerics.laws.fixed_window import BITS, WindowLaw, window_binomial, window_law
from attrpriv.numerics.laws.records import RecordLaws, exactly

VISITS = RecordLaws((0, 1, 3), ((0.2, 0.2), (0.5, 0.5), (0.3, 0.3)), ((0.5, 0.5), (0.25, 0.25), (0.25, 0.25)))


def exact_binomial(n: int, p: float | Fraction) -> list[Fraction]:
    q = exactly(p)
    return [comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]


def convolved(p: Sequence[Fraction], q: Sequence[Fraction]) -> list[Fraction]:
    found = [Fraction(0)] * (len(p) + len(q) - 1)
    for (i, x), (j, y) in itertools.product(enumerate(p), enumerate(q)):
        found[i + j] += x * y
    return found


def exact_law(records: RecordLaws, n: int, a: int) -> list[Fraction]:
    if records.binary:
        return convolved(exact_binomial(a, records.member[1][0]), exact_binomial(n - a, records.rest[1][0]))
    law = [Fraction(1)]
    for row in (records.member,) * a + (records.rest,) * (n - a):
        one = [Fraction(0)] * (records.values[-1] + 1)
        for value, (p, _) in zip(records.values, row, strict=True):
            one[value] = exactly(p) / sum(exactly(x) for x, _ in row)
        law = convolved(law, one)
    return law


def brackets(law: WindowLaw, truth: Sequence[Fraction]) -> bool:
    """entries <= 2^BITS truth everywhere, and all that is missing is the deficit."""
    entries = law.clipped(0, len(truth))
    above = [2**BITS * p - entry for p, entry in zip(truth, entries, strict=True)]
    return bool(min(above) >= 0 and sum(above) == law.deficit)


@pytest.mark.parametrize(("p1", "p0"), [(0.4, 0.6), (0.001, 0.002), (1.0, 0.0), (0.0, 0.5), (0.999, 1e-12), (0.5, 0.5)])
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_an_event_is_bracketed(p1: float, p0: float, n: int) -> None:
    records = RecordLaws.event(p1, p0)
    for a in {0, 1, n // 2, n}:
        law = window_law(records, n, a)
        assert brackets(law, exact_law(records, n, a))
        assert law.deficit < 2 ** (BITS - 140)


@pytest.mark.parametrize("n", [1, 3, 9])
def test_several_values_are_bracketed(n: int) -> None:
    for a in range(n + 1):
        law = window_law(VISITS, n, a)
        assert brackets(law, exact_law(VISITS, n, a))
        assert law.deficit < 2 ** (BITS - 140)


def test_a_window_leaves_out_what_it_says() -> None:
    """Bin(120, .001) has values of mass 1e-300; they are left out, and counted."""
    law, truth = window_binomial(120, 0.001), exact_binomial(120, 0.001)
    assert len(law.masses) < 60
    assert brackets(WindowLaw(law.start, law.masses), truth)


def test_a_mutant_is_noticed() -> None:
    law, truth = window_binomial(9, 0.3), exact_binomial(9, 0.3)
    assert brackets(law, truth)
    raised = WindowLaw(0, (law.masses[0] + 2**20, *law.masses[1:]))
    assert not brackets(raised, truth)
    assert not brackets(WindowLaw(1, law.masses[:-1]), truth)


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (5, 0.5), (40, 0.4), (20, 0.9), (20, 0.1), (40, 0.97), (90, 0.002)])
@pytest.mark.parametrize("guard", [0, 3])
def test_few_guard_digits_never_raise_an_entry(n: int, p: float, guard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What weights are short by, and what is beyond the last one, makes all entries smaller; with few digits it is seen."""
    monkeypatch.setattr(module, "_GUARD", guard)
    truth = exact_binomial(n, p)
    assert brackets(window_binomial(n, p), truth)


@pytest.mark.parametrize(
    ("n", "p", "mode"), [(9, Fraction(3, 10), 3), (7, Fraction(5, 7), 5), (2, Fraction(99, 100), 2), (6, Fraction(1, 8), 0)]
)
def test_weights_are_divided_by_the_most_that_they_can_sum_to(
    n: int, p: Fraction, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the mode outwards, each rounded down, so that the one after j steps is short by at most j."""
    monkeypatch.setattr(module, "_GUARD", -100)
    odds = p / (1 - p)
    weights = {mode: 2 ** (BITS - 100)}
    for k in range(mode, n):
        weights[k + 1] = math.floor(weights[k] * odds * Fraction(n - k, k + 1))
    for k in range(mode, 0, -1):
        weights[k - 1] = math.floor(weights[k] / odds * Fraction(k, n - k + 1))
    total = sum(weights.values()) + sum(abs(k - mode) for k in weights)
    assert window_binomial(n, p) == WindowLaw(0, tuple((weights[k] << BITS) // total for k in range(n + 1)))


@pytest.mark.parametrize(("top", "bottom"), [(2, 5), (1, 2), (9, 10)])
def test_what_is_beyond_the_last_weight_is_a_geometric_series(top: int, bottom: int) -> None:
    ratio = Fraction(top, bottom)
    weights, beyond = module._outwards((top, bottom) for _ in range(2000))
    first, used = Fraction(2 ** (BITS + module._GUARD)), len(weights)
    assert weights[-1] < first / 2**150 <= weights[-2]
    assert all(first * ratio**k - k <= weight <= first * ratio**k for k, weight in enumerate(weights, 1))
    rest = first * ratio ** (used + 1) / (1 - ratio)
    assert rest <= beyond <= rest + used * ratio / (1 - ratio) + 1
    short, nothing = module._outwards([(1, 2), (1, 3)])
    assert (short, nothing) == ([2 ** (BITS + module._GUARD - 1), 2 ** (BITS + module._GUARD - 1) // 3], 0)


def test_the_largest_entries_fit_into_one_product() -> None:
    one = WindowLaw(3, (2**BITS,))
    assert module._product(one, one) == WindowLaw(6, (2**BITS,))
    rows = WindowLaw(-1, (2**BITS // 3, 0, 7, 2**BITS // 2)), WindowLaw(5, (2**BITS // 5, 2**BITS // 7 * 5, 1))
    found = [0] * 6
    for (i, x), (j, y) in itertools.product(enumerate(rows[0].masses), enumerate(rows[1].masses)):
        found[i + j] += x * y
    assert module._product(*rows) == WindowLaw(4, tuple(mass >> BITS for mass in found))
    half = WindowLaw(0, (2 ** (BITS - 1), 0, 0))
    assert module._product(half, WindowLaw(2, (2**BITS, 0))) == WindowLaw(2, (2 ** (BITS - 1), 0, 0, 0))
    even = WindowLaw(0, (2**BITS // 1000,) * 1000)
    assert module._product(even, even).masses[999] == (1000 * (2**BITS // 1000) ** 2) >> BITS


def test_small_entries_are_left_out_at_the_ends_only() -> None:
    least = 2 ** (BITS - 170)
    law = WindowLaw(4, (0, least - 1, least, 1, least + 1, least, least - 1))
    assert module._trimmed(law) == WindowLaw(6, (least, 1, least + 1, least))
    assert module._trimmed(WindowLaw(4, (least, 0, least))) == WindowLaw(4, (least, 0, least))


@pytest.mark.parametrize(("n", "p", "start"), [(0, 0.3, 0), (0, 1.0, 0), (5, 0.0, 0), (5, 1.0, 5), (1, 1.0, 1)])
def test_a_count_that_is_certain(n: int, p: float, start: int) -> None:
    assert window_binomial(n, p) == WindowLaw(start, (2**BITS,))


def test_what_is_clipped_belongs_to_the_ends() -> None:
    law = WindowLaw(-2, (1, 2, 4, 8, 16))
    assert law.clipped(-1, 3) == (3, 4, 24)
    assert law.clipped(-4, 8) == (0, 0, 1, 2, 4, 8, 16, 0)
    assert law.clipped(5, 2) == (31, 0)
    assert law.deficit == 2**BITS - 31


def test_many_rows() -> None:
    law = window_binomial(1_000_000, 0.4)
    assert law.deficit < 2 ** (BITS - 140)
    for k in (398_000, 400_000, 401_500):
        assert law.masses[k - law.start] / 2**BITS == pytest.approx(float(binom.pmf(k, 1_000_000, 0.4)), rel=1e-8)
    mixed = window_law(RecordLaws.event(0.4, 0.6), 10_000, 5_000)
    mean = sum(k * mass for k, mass in enumerate(mixed.masses, mixed.start)) / 2**BITS
    assert mean == pytest.approx(5_000)


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="exact probabilities"):
        window_law(RecordLaws.event((0.4, 0.5), 0.6), 3, 1)
    for a in (4, -1):
        with pytest.raises(UsageError, match="from 0 to n"):
            window_law(RecordLaws.event(0.4, 0.6), 3, a)
    for n, p in ((3, 1.5), (3, -0.5), (3, 2.0), (-1, 0.5)):
        with pytest.raises(UsageError, match=r"^binomial: "):
            window_binomial(n, p)
