"""The reference view in fractions, written from docs/theory/reference-view.md alone: nothing of the product is imported.

A *column* is the tuple of sensitive values, in the order of the file. A *kernel* gives for each value the law of what else the
row shows. `output_law` goes through everything that can be shown and all rankings of the positions, so it is for a handful of
rows. `least_rows` is m(c) of the page, by counting orders. What must never change: no float enters a law.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

Column = tuple[int, ...]
Shown = tuple[Any, ...]
Ranks = tuple[int, ...]
Law = Mapping[Hashable, Fraction]
Kernel = Mapping[int, Law]
Output = Any
Choice = Callable[[Column, Shown, Ranks], Output]
"""What a mechanism puts out: a function of the column, of what the rows show, and of the ranks of their positions."""

FAILED = "failed"
ZERO, ONE = Fraction(0), Fraction(1)


def law(**weights: int) -> dict[Hashable, Fraction]:
    """Whole-number weights as a law."""
    return {name: Fraction(weight, sum(weights.values())) for name, weight in weights.items()}


def reference_view(keep: Mapping[int, int]) -> Choice:
    """Exact cells: of each value the rows of least rank, `keep` many, in the order of the cells and of the ranks."""

    def choose(column: Column, shown: Shown, ranks: Ranks) -> Output:
        out: list[Any] = []
        for value, number in keep.items():
            members = sorted((i for i, s in enumerate(column) if s == value), key=lambda i: ranks[i])
            if len(members) < number:
                return FAILED
            out += [(value, shown[i]) for i in members[:number]]
        return tuple(out)

    return choose


@cache
def rankings(n: int) -> tuple[Ranks, ...]:
    return tuple(itertools.permutations(range(n)))


def products(laws: Sequence[Law]) -> Iterator[tuple[Shown, Fraction]]:
    """All vectors of independent entries, with their probabilities."""
    for entries in itertools.product(*laws):
        chance = ONE
        for entry, one in zip(entries, laws, strict=True):
            chance *= one[entry]
        yield entries, chance


def output_law(choose: Choice, column: Column, kernel: Kernel) -> dict[Hashable, Fraction]:
    """The law of the output given the column, where the rows are independent given it."""
    return pushed(choose, column, products([kernel[s] for s in column]))


def pushed(choose: Choice, column: Column, shown: Iterable[tuple[Shown, Fraction]]) -> dict[Hashable, Fraction]:
    """The law of the output given the column, for any joint law of what the rows show."""
    out: dict[Hashable, Fraction] = defaultdict(Fraction)
    orders = rankings(len(column))
    for entries, chance in shown:
        for ranks in orders:
            out[choose(column, entries, ranks)] += chance
    return {x: mass / len(orders) for x, mass in out.items()}


def mixture(parts: Iterable[tuple[Law, Fraction]]) -> dict[Hashable, Fraction]:
    """The mixture of laws with weights that need not add up to 1."""
    out: dict[Hashable, Fraction] = defaultdict(Fraction)
    total = ZERO
    for one, weight in parts:
        total += weight
        for x, mass in one.items():
            out[x] += weight * mass
    return {x: mass / total for x, mass in out.items()}


def variation(p: Law, q: Law) -> Fraction:
    """Total variation."""
    return sum((abs(p.get(x, ZERO) - q.get(x, ZERO)) for x in {**p, **q}), ZERO) / 2


# ------------------------------------------------------------------------------------------------------------- the counts


def orders_up_to(c: int, x: int, public: int, table: int) -> Fraction:
    """P(the c-th public row comes within the first c + x draws) when all rows of both kinds are put into a random order."""
    within = sum(comb(c + k - 1, k) * comb(public + table - c - k, table - k) for k in range(min(x, table) + 1))
    return Fraction(within, comb(public + table, table))


def least_rows(c: int, public: int, table: int, level: Fraction) -> int:
    """m(c): of a cell with c public rows, how many rows of the table can be counted on."""
    return least_at(c, public, table, level * Fraction(c, public + table))


def larger_rows(c: int, public: int, table: int, level: Fraction) -> int:
    """The larger limit: the smallest x whose chance exceeds the level in proportion to c + x."""
    size = public + table
    if c == 0:
        return 0
    return next(x for x in range(table + 1) if orders_up_to(c, x, public, table) > level * Fraction(c + x, size))


def least_at(c: int, public: int, table: int, level: Fraction) -> int:
    """The smallest x whose chance exceeds this level."""
    if c == 0:
        return 0
    return next(x for x in range(table + 1) if orders_up_to(c, x, public, table) > level)


def compositions(total: int, bounds: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All vectors of whole numbers within the bounds that add up to the total."""
    if not bounds:
        if total == 0:
            yield ()
        return
    for first in range(min(total, bounds[0]) + 1):
        for rest in compositions(total - first, bounds[1:]):
            yield (first, *rest)


def partitions(total: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a sum of positive ones, the largest first."""
    if total == 0:
        yield ()
        return
    for first in range(min(total, largest or total), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


def failure_of_pool(pool: Sequence[int], public: int, table: int, least: Sequence[int]) -> Fraction:
    """P(some cell has fewer rows of the table than `least` says), given how many values of both kinds are in each cell."""
    failing = 0
    for counts in compositions(public, pool):
        ways = 1
        for t, c in zip(pool, counts, strict=True):
            ways *= comb(t, c)
        failing += ways * any(t - c < least[c] for t, c in zip(pool, counts, strict=True))
    return Fraction(failing, comb(public + table, public))


def multinomial(counts: Sequence[int], shares: Sequence[Fraction]) -> Fraction:
    out, left = ONE, sum(counts)
    for count, share in zip(counts, shares, strict=True):
        out *= comb(left, count) * share**count
        left -= count
    return out
