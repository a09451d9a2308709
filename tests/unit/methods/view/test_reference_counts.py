"""How many rows of each cell can be counted on: the chance of failing holds its level, for every pool of values there can be.

In fractions, by `reference_twin`, which knows nothing of the product. The last part reads the Adult data, and is skipped where
they are not; its numbers are those of docs/theory/reference-view.md.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.unit.methods.view.reference_twin import (
    ONE,
    ZERO,
    compositions,
    failure_of_pool,
    larger_rows,
    least_at,
    least_rows,
    multinomial,
    orders_up_to,
    partitions,
)


@pytest.mark.parametrize(("public", "table"), [(3, 3), (2, 4), (4, 2)])
def test_the_law_of_the_orders_is_that_of_all_orders(public: int, table: int) -> None:
    orders = [set(places) for places in itertools.combinations(range(public + table), public)]
    for c, x in itertools.product(range(1, public + 1), range(table + 1)):
        within = sum(len([place for place in places if place < c + x]) >= c for places in orders)
        assert orders_up_to(c, x, public, table) == Fraction(within, len(orders))


SIZES = [(4, 4), (6, 6), (3, 9), (9, 3), (7, 5)]
LEVELS = [Fraction(1, 10), Fraction(1, 3), Fraction(3, 4)]


@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize(("public", "table"), SIZES)
def test_the_failure_holds_its_level_for_every_pool(public: int, table: int, level: Fraction) -> None:
    """For all partitions of the pool into cells, so for all laws and any number of cells; the bound of each cell too."""
    least = [least_rows(c, public, table, level) for c in range(public + 1)]
    assert least[0] == 0
    assert least == sorted(least)
    failures = [failure_of_pool(pool, public, table, least) for pool in partitions(public + table)]
    assert max(failures) <= level
    for t in range(1, public + table + 1):
        alone = failure_of_pool((t, *(1,) * (public + table - t)), public, table, least)
        assert alone <= level * Fraction(t, public + table)


@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize(("public", "table"), SIZES)
def test_the_larger_limit_holds_its_level_for_every_pool(public: int, table: int, level: Fraction) -> None:
    least = [larger_rows(c, public, table, level) for c in range(public + 1)]
    assert all(least_rows(c, public, table, level) <= number for c, number in enumerate(least))
    assert 0 < max(failure_of_pool(pool, public, table, least) for pool in partitions(public + table)) <= level


def _blocks(size: int) -> list[tuple[slice, ...]]:
    """Every way to cut a line of so many places into intervals."""
    cuts = [[0, *(k for k in range(1, size) if bits >> (k - 1) & 1), size] for bits in range(2 ** (size - 1))]
    return [tuple(slice(a, b) for a, b in itertools.pairwise(ends)) for ends in cuts]


def _fails(public: tuple[bool, ...], blocks: tuple[slice, ...], least: list[int]) -> bool:
    """Whether some interval has fewer rows than its records say; places that are not public are the table's."""
    return any(len(public[one]) - sum(public[one]) < least[sum(public[one])] for one in blocks)


@pytest.mark.parametrize("level", [Fraction(1, 35), Fraction(1, 3), Fraction(9, 10)], ids=str)
def test_ends_that_other_records_choose_hold_the_level_and_ends_that_the_counted_choose_do_not(level: Fraction) -> None:
    """Of different values some choose. Of the eight others four are counted and four the table's, each choice as likely.

    Whatever those that choose are, they can do no more than name one way to cut the line: the worst is taken.
    """
    public, table = 4, 4
    rest = public + table
    least = [least_rows(c, public, table, level) for c in range(public + 1)]
    blocks = _blocks(rest)
    orders = [tuple(place in chosen for place in range(rest)) for chosen in itertools.combinations(range(rest), public)]
    worst = max(Fraction(sum(_fails(order, one, least) for order in orders), len(orders)) for one in blocks)
    assert 0 < worst <= level
    # Who sees the counted records picks ends between which the table has too few.
    peeked = Fraction(sum(any(_fails(order, one, least) for one in blocks) for order in orders), len(orders))
    assert peeked > worst
    if level == Fraction(1, 35):
        assert (worst, peeked) == (level, Fraction(1, 14))  # two halves: the level is met


def test_of_the_larger_limit_one_point_is_enough() -> None:
    """Up to the likeliest number of rows the chance grows at least as fast as c + x."""
    seen = 0
    for public, table in itertools.product(range(1, 9), repeat=2):
        for c in range(1, public + 1):
            chances = [orders_up_to(c, x, public, table) / (c + x) for x in range(table + 1)]
            for x in range(table):
                if (c + x) * (table - x) < (x + 1) * (public + table - c - x):
                    break
                assert chances[x] <= chances[x + 1]
                seen += 1
    assert seen > 500


def test_the_level_is_used() -> None:
    """One row more in each cell breaks it: the limit is not idle."""
    least = [least_rows(c, 6, 6, Fraction(1, 3)) for c in range(7)]
    assert any(least)
    more = [0, *(number + 1 for number in least[1:])]
    assert max(failure_of_pool(pool, 6, 6, more) for pool in partitions(12)) > Fraction(1, 3)


@pytest.mark.parametrize("shares", [(1, 1), (9, 1), (1, 1, 1), (5, 2, 1), (6, 1, 1, 1)], ids=str)
def test_the_failure_under_laws_of_the_rows(shares: tuple[int, ...]) -> None:
    """The same without a pool: public records and table drawn from one law."""
    public, table, level = 6, 5, Fraction(1, 2)
    p = [Fraction(share, sum(shares)) for share in shares]
    least = [least_rows(c, public, table, level) for c in range(public + 1)]
    failing = sum(
        multinomial(counts, p) * multinomial(rows, p)
        for counts in compositions(public, (public,) * len(p))
        for rows in compositions(table, (table,) * len(p))
        if any(x < least[c] for c, x in zip(counts, rows, strict=True))
    )
    assert 0 < failing <= level


@pytest.mark.parametrize("hostile", ["fullest", "elsewhere", "first"])
def test_least_density(hostile: str) -> None:
    """Each row is public with probability r and otherwise what an adversary makes of the earlier rows."""
    public, n, r, level = 6, 6, Fraction(4, 5), Fraction(3, 4)
    shares = (Fraction(2, 3), Fraction(1, 3))
    below = [sum((Fraction(math.comb(n, k)) * r**k * (1 - r) ** (n - k) for k in range(k0)), ZERO) for k0 in range(n + 1)]
    n0 = max(k0 for k0, tail in enumerate(below) if tail <= level / 2)
    assert 0 < n0 < n
    least = [least_rows(c, public, n0, level / 2) for c in range(public + 1)]
    rows: dict[tuple[int, int], Fraction] = {(0, 0): ONE}
    for _ in range(n):
        after: dict[tuple[int, int], Fraction] = {}
        for (a, b), chance in rows.items():
            worst = {"fullest": (a + 1, b) if a >= b else (a, b + 1), "elsewhere": (a, b), "first": (a + 1, b)}[hostile]
            for state, weight in (((a + 1, b), r * shares[0]), ((a, b + 1), r * shares[1]), (worst, 1 - r)):
                after[state] = after.get(state, ZERO) + chance * weight
        rows = after
    assert sum(rows.values()) == 1
    failing = sum(
        multinomial((c, public - c), shares) * chance
        for c in range(public + 1)
        for (a, b), chance in rows.items()
        if a < least[c] or b < least[public - c]
    )
    assert 0 < failing <= level


@pytest.mark.parametrize(("public", "table"), [(5, 5), (4, 7), (8, 4)])
def test_intervals_that_are_chosen_from_the_records(public: int, table: int) -> None:
    """All splits of the pooled ranks: the chance that any interval of them has too few rows."""
    size, level = public + table, Fraction(9, 10)
    each = 2 * level / (size * (size + 1))
    least = [least_at(c, public, table, each) for c in range(public + 1)]
    failing = at_level = 0
    alone = [least_at(c, public, table, Fraction(1, 10)) for c in range(public + 1)]
    splits = [set(places) for places in itertools.combinations(range(size), public)]
    for places in splits:
        inside = [(len(places & set(range(i, j))), j - i) for i in range(size) for j in range(i + 1, size + 1)]
        failing += any(t - c < least[c] for c, t in inside)
        at_level += any(t - c < alone[c] for c, t in inside)
    assert any(least)
    assert Fraction(failing, len(splits)) <= level
    assert Fraction(at_level, len(splits)) > Fraction(1, 10), "the level of one interval is not that of the worst of them"


@pytest.mark.parametrize(("public", "table"), [(5, 5), (4, 7), (8, 4)])
def test_intervals_between_fixed_places(public: int, table: int) -> None:
    """The number of rows between two given records has the law of the number before the first of as many."""
    splits = list(itertools.combinations(range(public + table), public))
    for low, high in itertools.combinations(range(public), 2):
        c = high - low
        for x in range(table + 1):
            found = sum(places[high] - places[low] - c <= x for places in splits)
            assert Fraction(found, len(splits)) == orders_up_to(c, x, public, table)
    ends = (0, public // 2, public)
    least = [least_at(b - a, public, table, Fraction(2, 3) * Fraction(b - a, public)) for a, b in itertools.pairwise(ends)]
    failing = sum(
        any(
            (places[b - 1] - (places[a - 1] if a else -1)) - (b - a) < number
            for (a, b), number in zip(itertools.pairwise(ends), least, strict=True)
        )
        for places in splits
    )
    assert any(least)
    assert Fraction(failing, len(splits)) <= Fraction(2, 3)


# ------------------------------------------------------------------------------------------------------------------ Adult

ROWS, FAILURE = 16_000, 1e-6


@pytest.fixture(scope="module")
def public_half(shared: Path) -> Any:
    from examples.adult import load

    if not all((shared / "data" / name).is_file() for name in load.FILES):
        pytest.skip("needs the UCI Adult data in ../shared/data")
    import pandas as pd

    both = load.load(shared / "data")
    rows = pd.concat([both.train.to_pandas(), both.test.to_pandas()], ignore_index=True)
    return rows.iloc[np.random.default_rng(3).permutation(len(rows))[: len(rows) // 2]]


def largest_count(n: int, share: float, level: float) -> int:
    """The largest k with P(Bin(n, share) < k) <= level."""
    k = int(stats.binom.ppf(level, n, share))
    while k > 0 and stats.binom.cdf(k - 1, n, share) > level:
        k -= 1
    return k


def predicted(c: int, public: int, table: int, level: float) -> int:
    """m(c) in floats, by bisection."""
    size = public + table
    low, high = -1, table  # below the level, above it
    while high - low > 1:
        middle = (low + high) // 2
        above = stats.hypergeom.cdf(middle, size, table, c + middle) > level * c / size
        low, high = (low, middle) if above else (middle, high)
    return high


def pool(density: float, failure: float) -> tuple[int, float]:
    """How many rows of the table are put beside the public ones, and the level that is left for them."""
    return (ROWS, failure) if density == 1 else (largest_count(ROWS, density, failure / 2), failure / 2)


@pytest.mark.parametrize(("c", "public", "table"), [(3, 40, 30), (17, 40, 30), (40, 40, 30), (9, 25, 60)])
def test_the_limit_in_floats_is_that_in_fractions(c: int, public: int, table: int) -> None:
    assert predicted(c, public, table, 0.01) == least_rows(c, public, table, Fraction(1, 100))


@pytest.mark.parametrize(
    ("hidden", "density", "exact", "kept"),
    [
        (["age"], 1.0, 0.694, 0.624),
        (["age"], 0.8, 0.529, 0.463),
        (["hours_per_week"], 1.0, 0.800, 0.764),
        (["hours_per_week"], 0.8, 0.623, 0.585),
        (["age", "sex"], 1.0, 0.582, 0.497),
        (["age", "sex"], 0.8, 0.431, 0.357),
    ],
)
def test_the_kept_shares_on_the_page(public_half: Any, hidden: list[str], density: float, exact: float, kept: float) -> None:
    counts = [int(count) for count in public_half.groupby(hidden).size()]
    public = sum(counts)
    assert public == 24_421
    known = sum(largest_count(ROWS, density * c / public, FAILURE / len(counts)) for c in counts)
    assert known / ROWS == pytest.approx(exact, abs=0.0006)
    table, level = pool(density, FAILURE)
    assert sum(predicted(c, public, table, level) for c in counts) / ROWS == pytest.approx(kept, abs=0.0006)


@pytest.mark.parametrize(
    ("failure", "density", "kept"), [(1e-9, 1.0, 0.562), (1e-9, 0.8, 0.409), (1e-12, 1.0, 0.511), (1e-12, 0.8, 0.367)]
)
def test_what_a_smaller_failure_keeps(public_half: Any, failure: float, density: float, kept: float) -> None:
    counts = [int(count) for count in public_half.groupby(["age"]).size()]
    table, level = pool(density, failure)
    assert sum(predicted(c, sum(counts), table, level) for c in counts) / ROWS == pytest.approx(kept, abs=0.0006)


def larger(c: int, public: int, table: int, level: float) -> int:
    """The larger limit in floats, from the smaller one upwards; the condition under which its last point is enough holds."""
    size, x = public + table, predicted(c, public, table, level)
    while stats.hypergeom.cdf(x, size, table, c + x) <= level * (c + x) / size:
        x += 1
    assert x < 2 or (c + x - 2) * (table - x + 2) >= (x - 1) * (size - c - x + 2)
    return x


@pytest.mark.parametrize(("rows", "smaller", "kept"), [(ROWS, 0.624, 0.627), (1_000_000, 0.735, 0.757)])
def test_what_the_larger_limit_keeps(public_half: Any, rows: int, smaller: float, kept: float) -> None:
    counts = [int(count) for count in public_half.groupby(["age"]).size()]
    for limit, share in ((predicted, smaller), (larger, kept)):
        assert sum(limit(c, sum(counts), rows, FAILURE) for c in counts) / rows == pytest.approx(share, abs=0.0006)


@pytest.mark.parametrize(("density", "used", "kept"), [(1.0, 0.57, 204), (0.8, 0.07, 151)])
def test_how_much_of_the_level_one_cell_uses(density: float, used: float, kept: int) -> None:
    """Records and table drawn separately, a value of 2%: the chance to fail as a part of f p."""
    public, share = 24_421, 0.02
    table, level = pool(density, FAILURE)
    assert predicted(round(share * public), public, table, level) == kept
    spread = math.sqrt(public * share)
    counts = range(int(share * public - 9 * spread), int(share * public + 9 * spread))
    number, failing = predicted(counts[0], public, table, level), 0.0
    for c in counts:
        while stats.hypergeom.cdf(number, public + table, table, c + number) <= level * c / (public + table):
            number += 1
        failing += stats.binom.pmf(c, public, share) * stats.binom.cdf(number - 1, ROWS, density * share)
    assert failing / (FAILURE * share) == pytest.approx(used, abs=0.006)
