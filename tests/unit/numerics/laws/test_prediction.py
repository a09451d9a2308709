"""How many rows of a value a table surely has: tails against exact ones, and the chance of too few against all tables."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.binomial import binomial_below
from attrpriv.numerics.laws.prediction import at_least, is_sure, surely, too_few


def exact_tail(records: int, rows: int, found: int, x: int) -> Fraction:
    """P(the found-th public row is among the first found + x drawn): by where it stands, not by how many there are."""
    total = Fraction(0)
    for place in range(found, found + x + 1):  # the found - 1 others before it, the rest of the public rows after it
        before, after = place - 1, records + rows - place
        total += Fraction(math.comb(before, found - 1) * math.comb(after, records - found), math.comb(records + rows, records))
    return total


SMALL = [(a, b, c, x) for a, b in itertools.product((1, 2, 5, 9), (1, 3, 8)) for c in range(a + 1) for x in range(b + 1)]


@pytest.mark.parametrize(("records", "rows", "found", "x"), SMALL)
def test_a_tail_is_at_least_the_truth_and_near_it_where_it_is_small(records: int, rows: int, found: int, x: int) -> None:
    told = too_few(records, rows, found, x)
    if found == 0:
        assert told == 1.0
        return
    truth = exact_tail(records, rows, found, x)
    assert Fraction(told) >= truth
    below_the_mean = x * (records + rows) < (found + x) * rows
    assert told == (pytest.approx(float(truth), rel=1e-9) if below_the_mean else 1.0)


@given(st.integers(50, 900), st.integers(50, 900), st.data())
def test_a_large_tail_too(records: int, rows: int, data: st.DataObject) -> None:
    found = data.draw(st.integers(1, records))
    x = data.draw(st.integers(0, rows))
    told = too_few(records, rows, found, x)
    if x <= 200:  # the exact one takes a while
        truth = exact_tail(records, rows, found, x)
        assert Fraction(told) >= truth
        assert told == 1 or told == pytest.approx(float(truth), rel=1e-8, abs=2e-100)


def test_far_out_and_for_many_rows_it_stays_a_number() -> None:
    far = [(10**8, 10**8, 10**6, 990_000), (10**9, 10, 5, 0), (3, 10**9, 3, 10**9), (10**7, 10**7, 1, 0)]
    for records, rows, found, x in far:
        assert 0 <= too_few(records, rows, found, x) <= 1


@pytest.mark.parametrize(("found", "x"), [(-1, 0), (11, 0), (3, -1), (3, 21)])
def test_what_cannot_be_is_refused(found: int, x: int) -> None:
    with pytest.raises(UsageError, match="prediction"):
        too_few(10, 20, found, x)


@given(st.integers(1, 60), st.integers(1, 60), st.data(), st.sampled_from([1e-6, 1e-3, 0.05, 0.3]))
def test_the_limit_is_the_largest_that_is_sure(records: int, rows: int, data: st.DataObject, level: float) -> None:
    found = data.draw(st.integers(0, records))
    keep = surely(records, rows, found, level)
    assert is_sure(records, rows, found, keep, level)
    assert keep == rows or not is_sure(records, rows, found, keep + 1, level)
    assert not is_sure(records, rows, found, rows + 1, level)
    if keep:
        assert exact_tail(records, rows, found, keep - 1) <= Fraction(level) * found / (records + rows)


def test_more_records_of_a_value_and_a_larger_level_keep_more() -> None:
    kept = [surely(500, 300, found, 1e-3) for found in range(0, 501, 20)]
    assert kept == sorted(kept)
    assert kept[0] == 0 < kept[5]
    levels = [surely(500, 300, 200, level) for level in (1e-9, 1e-6, 1e-3, 0.1)]
    assert levels == sorted(levels)


# The chance that some cell has too few rows, over records and table, for every law of the rows.


def fails(records: int, rows: int, shares: tuple[Fraction, ...], keeps: list[int]) -> Fraction:
    """P(some cell has fewer rows than its own number of public records says), summed over all tables of counts."""
    fine = Fraction(0)
    for public in counts_of(records, len(shares)):
        least = [keeps[count] for count in public]
        inside = sum((chance(rows, shares, own) for own in counts_of(rows, len(shares), least)), Fraction(0))
        fine += chance(records, shares, public) * inside
    return 1 - fine


def counts_of(total: int, cells: int, least: list[int] | None = None) -> list[tuple[int, ...]]:
    low = least or [0] * cells
    found = (c for c in itertools.product(*(range(a, total + 1) for a in low[:-1])) if sum(c) <= total - low[-1])
    return [(*c, total - sum(c)) for c in found]


def chance(total: int, shares: tuple[Fraction, ...], counts: tuple[int, ...]) -> Fraction:
    ways = math.factorial(total)
    product = Fraction(1)
    for share, count in zip(shares, counts, strict=True):
        ways //= math.factorial(count)
        product *= share**count
    return ways * product


LAWS = [(1,), (1, 1), (1, 9), (1, 1, 1), (1, 2, 7), (1, 1, 1, 1)]


@pytest.mark.parametrize("parts", LAWS)
@pytest.mark.parametrize(("records", "rows", "level"), [(6, 5, 0.3), (7, 4, 0.45), (5, 7, 0.2)])
def test_too_few_rows_are_as_rare_as_promised(parts: tuple[int, ...], records: int, rows: int, level: float) -> None:
    keeps = [surely(records, rows, found, level) for found in range(records + 1)]
    assert any(keeps)
    shares = tuple(Fraction(part, sum(parts)) for part in parts)
    assert fails(records, rows, shares, keeps) <= Fraction(level)


def test_a_limit_of_more_rows_would_break_it() -> None:
    """The mutant: every count keeps two rows more, and some law fails more often than the level."""
    records, rows, level = 6, 5, 0.3
    keeps = [surely(records, rows, found, level) for found in range(records + 1)]
    more = [keep + 2 for keep in keeps]
    worst = max(fails(records, rows, (Fraction(k, 8), 1 - Fraction(k, 8)), more) for k in range(1, 8))
    assert worst > Fraction(level)


@pytest.mark.parametrize(("n", "share", "allowed"), [(100, 0.3, 1e-6), (1000, 0.02, 1e-3), (50, 0.9, 1e-9), (10, 0.01, 0.5)])
def test_the_stated_limit_is_the_largest_too(n: int, share: float, allowed: float) -> None:
    keep = at_least(n, share, allowed)
    assert binomial_below(n, share, keep) <= allowed
    assert keep == n or binomial_below(n, share, keep + 1) > allowed


@pytest.mark.parametrize(("records", "rows"), [(9, 8), (12, 5), (4, 11)])
@pytest.mark.parametrize("level", [0.05, 0.3])
def test_the_limit_is_the_largest_whose_exact_tail_is_within_its_share(records: int, rows: int, level: float) -> None:
    """From both sides: a share that is too small would keep fewer rows than it may."""
    for found in range(1, records + 1):
        allowed = Fraction(level) * found / (records + rows)
        wanted = 0
        while wanted < rows and exact_tail(records, rows, found, wanted) <= allowed:
            wanted += 1
        assert surely(records, rows, found, level) == wanted
        assert [is_sure(records, rows, found, keep, level) for keep in (wanted, wanted + 1)] == [True, False]


def test_a_tail_is_no_more_than_one_and_no_less_than_a_hundredth_of_a_googol() -> None:
    """Nearly certain, so that its rounding would be above 1; and far beyond where floats lose digits."""
    assert too_few(5 * 10**13, 1, 1, 0) == 1.0
    assert 1e-100 <= too_few(1000, 1000, 900, 0) <= 1.001e-100
    assert too_few(400, 300, 200, 20) == pytest.approx(float(exact_tail(400, 300, 200, 20)), rel=1e-9, abs=0)


def test_ends_of_what_can_be_asked() -> None:
    assert too_few(10, 20, 10, 0) == pytest.approx(float(exact_tail(10, 20, 10, 0)), rel=1e-9)
    assert too_few(10, 20, 0, 20) == too_few(10, 20, 10, 20) == 1.0
    for share, allowed in ((0.5, 1.0), (0.9, 0.99)):
        assert at_least(3, share, allowed) == 3
    assert at_least(5, 0.1, 1e-9) == 0


def test_all_rows_may_be_sure() -> None:
    """Of a thousand and one rows two are not among the first 999, so that the table's one is there but for 2/1001."""
    for keep, sure in ((0, True), (1, True), (2, False)):
        assert is_sure(1000, 1, 999, keep, 0.5) is sure
    assert surely(1000, 1, 999, 0.5) == 1


@pytest.mark.parametrize("allowed", [0.05, 0.4])
def test_the_stated_limit_of_every_small_number_of_rows(allowed: float) -> None:
    for n in range(1, 12):
        masses = [math.comb(n, k) * 0.3**k * 0.7 ** (n - k) for k in range(n + 1)]
        assert at_least(n, 0.3, allowed) == max(k for k in range(n + 1) if math.fsum(masses[:k]) <= allowed)
