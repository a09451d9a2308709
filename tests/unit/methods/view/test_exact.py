"""The law of a view, exactly: all tables, all draws, in fractions. It is the same whatever the secret.

`kept` is a slow twin of the engine's rule: in each cell the rows with the smallest random ranks, put into the order of a
second, independent ranking. The engine is shown to follow it, with both rankings read off a stream of SHAKE-256, or off SHA-256
digests of ids, that are recomputed here. Then rankings are taken to be uniform and independent, which is what a keyed hash
stands for, and all is enumerated.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from attrpriv.engines.tables import open_table
from attrpriv.engines.view.draw import Cells, draw, view_table
from attrpriv.queries.conditions import Written

Row = tuple[str, int]
"""A category, and another column."""
Table = tuple[Row, ...]
Ranks = tuple[int, ...]
Output = tuple[Any, ...]
Law = Mapping[Any, Fraction]

CATEGORIES = ("F", "M", "X")


def kept(cells: Sequence[str], keep: Mapping[str, int], ranks: Sequence[Any], shuffle: Sequence[Any]) -> list[int]:
    """The positions that the view keeps, in the order in which it shows them."""
    chosen: list[int] = []
    for cell, number in keep.items():
        members = [j for j, found in enumerate(cells) if found == cell]
        chosen += sorted(members, key=lambda j: ranks[j])[:number]
    return sorted(chosen, key=lambda j: shuffle[j])


# The engine follows the twin.


BLOCK = 65_536


def of_positions(key: str, n: int) -> list[tuple[int, int]]:
    """Ranks and places of n positions, fewer than a block."""
    stream = hashlib.shake_256(bytes.fromhex(key) + bytes(8)).digest(24 * BLOCK)
    words = [[int.from_bytes(stream[8 * j : 8 * j + 8], "little") for j in range(k, k + n)] for k in (0, BLOCK, 2 * BLOCK)]
    return [(rank >> 1, (first << 64) + second) for rank, first, second in zip(*words, strict=True)]


def of_ids(key: str, n: int) -> list[tuple[int, int]]:
    digests = [hashlib.sha256(f"{key}{name}".encode()).hexdigest() for name in range(n)]
    return [(int(digest, 16), int(digest[32:], 16)) for digest in digests]


@pytest.mark.parametrize("row_id", [None, "id"])
@pytest.mark.parametrize("seed", range(20))
def test_the_engine_keeps_what_the_twin_keeps(seed: int, row_id: str | None) -> None:
    """Random keys and tables, duplicates among them; the order too."""
    source = random.Random(seed)
    n, several = source.randrange(2, 40), source.random() < 0.5
    names = CATEGORIES if several else CATEGORIES[:2]
    table = [(source.choice(names), source.randrange(3)) for _ in range(n)]
    counts = Counter(cell for cell, _ in table)
    keep = {name: source.randint(0, counts[name]) for name in names}
    cells = Cells(
        conditions=(*(Written("g", name) for name in names[:-1]), None),
        keep=tuple(keep.values()),
        low=tuple(keep.values()),
        high=(n,) * len(names),
    )
    opened = open_table(pa.table({"id": range(n), "g": [g for g, _ in table], "x": [x for _, x in table]}))
    key = source.randbytes(32).hex()
    drawn = draw(opened, cells, n, row_id, key)
    view = view_table(opened, cells, drawn, row_id, ()).to_pyarrow().to_pylist()
    ranks, places = zip(*(of_positions if row_id is None else of_ids)(key, n), strict=True)
    order = kept([g for g, _ in table], keep, ranks, places)
    assert [(row["g"], row["x"]) for row in view] == [table[j] for j in order]


# Enumeration.


def law_of(weights: Mapping[Row, int]) -> dict[Row, Fraction]:
    return {row: Fraction(weight, sum(weights.values())) for row, weight in weights.items()}


LAWS: dict[str, dict[Row, Fraction]] = {
    "independent": law_of({("F", 0): 1, ("F", 1): 1, ("M", 0): 2, ("M", 1): 2}),
    "correlated": law_of({("F", 0): 4, ("F", 1): 1, ("M", 0): 1, ("M", 1): 4}),
    "determined": law_of({("F", 0): 1, ("M", 1): 2}),  # all rows of a category are duplicates
    "lopsided": law_of({("F", 0): 1, ("F", 1): 9, ("M", 0): 89, ("M", 1): 1}),
    "three": law_of({("F", 0): 2, ("F", 1): 1, ("M", 0): 1, ("X", 0): 2, ("X", 1): 2}),
}


def as_drawn(table: Table) -> Table:
    return table


def by_category(table: Table) -> Table:
    return tuple(sorted(table, key=lambda row: row[0]))


def in_turns(table: Table) -> Table:
    """F, M, F, M, ... as long as both last: an order that no row has by itself."""
    groups = [[row for row in table if row[0] == name] for name in CATEGORIES]
    longest = max(map(len, groups))
    return tuple(group[k] for k in range(longest) for group in groups if k < len(group))


LAYOUTS: dict[str, Callable[[Table], Table]] = {"as drawn": as_drawn, "by category": by_category, "in turns": in_turns}

Mechanism = Callable[[Table, Ranks, Ranks], Output]


def view_of(keep: Mapping[str, int]) -> Mechanism:
    return _view_of(tuple(keep.items()))


@cache
def _view_of(items: tuple[tuple[str, int], ...]) -> Mechanism:
    keep = dict(items)

    def mechanism(table: Table, ranks: Ranks, shuffle: Ranks) -> Output:
        return tuple(table[j] for j in kept([g for g, _ in table], keep, ranks, shuffle))

    return mechanism


def tables(law: Mapping[Row, Fraction], n: int) -> Iterator[tuple[Table, Fraction]]:
    for table in itertools.product(law, repeat=n):
        chance = Fraction(1)
        for row in table:
            chance *= law[row]
        yield table, chance


def secret(table: Table) -> tuple[int, ...]:
    """The counts of all categories."""
    return tuple(sum(g == name for g, _ in table) for name in CATEGORIES)


@cache
def rankings(n: int) -> tuple[Ranks, ...]:
    return tuple(itertools.permutations(range(n)))


@cache
def outcomes_of(mechanism: Mechanism, table: Table) -> Counter[Output]:
    """How often each output occurs over all ranks and all orders."""
    return Counter(mechanism(table, ranks, shuffle) for ranks in rankings(len(table)) for shuffle in rankings(len(table)))


def output_laws(
    mechanism: Mechanism, law: Mapping[Row, Fraction], n: int, layout: Callable[[Table], Table] = as_drawn
) -> dict[tuple[int, ...], Law]:
    """For each secret, the law of the output given that secret: all tables, all ranks, all orders."""
    joint: dict[tuple[int, ...], dict[Output, Fraction]] = {}
    total: dict[tuple[int, ...], Fraction] = {}
    for table, chance in tables(law, n):
        a, found = secret(table), outcomes_of(mechanism, layout(table))
        total[a] = total.get(a, Fraction(0)) + chance
        outcomes = joint.setdefault(a, {})
        for output, number in found.items():
            outcomes[output] = outcomes.get(output, Fraction(0)) + chance * Fraction(number, found.total())
    return {a: {output: mass / total[a] for output, mass in outcomes.items()} for a, outcomes in joint.items()}


def total_variation(p: Law, q: Law) -> Fraction:
    return sum((abs(p.get(x, Fraction(0)) - q.get(x, Fraction(0))) for x in {**p, **q}), Fraction(0)) / 2


def largest_variation(laws: Mapping[tuple[int, ...], Law], keep: Mapping[str, int]) -> Fraction:
    """Over all pairs of secrets in the range: every category has at least what is kept of it."""
    least = [keep.get(name, 0) for name in CATEGORIES]
    inside = [a for a in laws if all(low <= count for low, count in zip(least, a, strict=True))]
    assert len(inside) >= 2, "the range must hold two secrets"
    assert all(sum(laws[a].values()) == 1 for a in inside)
    return max(total_variation(laws[a], laws[b]) for a, b in itertools.combinations(inside, 2))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [name for name in LAWS if name != "three"])
@pytest.mark.parametrize("keep", [{"F": 1, "M": 1}, {"F": 0, "M": 2}, {"F": 1, "M": 2}], ids=str)
def test_the_law_of_a_view_is_the_same_for_every_secret(name: str, layout: str, keep: dict[str, int]) -> None:
    laws = output_laws(view_of(keep), LAWS[name], 4, LAYOUTS[layout])
    assert largest_variation(laws, keep) == 0


@pytest.mark.parametrize("keep", [{"F": 1, "M": 0, "X": 1}, {"F": 1, "M": 1, "X": 0}], ids=str)
def test_several_categories(keep: dict[str, int]) -> None:
    laws = output_laws(view_of(keep), LAWS["three"], 3)
    assert largest_variation(laws, keep) == 0


# Larger tables: which rows are chosen and in which order is uniform, as the enumeration of ranks shows.


def choices(table: Table, keep: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    members = {name: [j for j, (g, _) in enumerate(table) if g == name] for name in keep}
    for parts in itertools.product(*(itertools.combinations(members[name], number) for name, number in keep.items())):
        yield tuple(j for part in parts for j in part)


@pytest.mark.parametrize("keep", [{"F": 1, "M": 1}, {"F": 2, "M": 1}], ids=str)
def test_ranks_choose_and_order_uniformly(keep: dict[str, int]) -> None:
    table: Table = (("F", 0), ("M", 0), ("F", 1), ("M", 1))
    found = Counter(
        tuple(kept([g for g, _ in table], keep, ranks, shuffle)) for ranks in rankings(4) for shuffle in rankings(4)
    )
    expected = {order for chosen in choices(table, keep) for order in itertools.permutations(chosen)}
    assert set(found) == expected
    assert len(set(found.values())) == 1


@pytest.mark.parametrize(("n", "keep"), [(5, {"F": 2, "M": 2}), (6, {"F": 2, "M": 2}), (6, {"F": 3, "M": 1})], ids=str)
@pytest.mark.parametrize("name", ["independent", "correlated", "lopsided"])
def test_the_law_of_a_view_of_a_larger_table(name: str, n: int, keep: dict[str, int]) -> None:
    """The order is uniform and independent of the choice, so the law of the multiset of rows says it all."""
    joint: dict[tuple[int, ...], dict[Output, Fraction]] = {}
    total: dict[tuple[int, ...], Fraction] = {}
    for table, chance in tables(LAWS[name], n):
        a = secret(table)
        if a[0] < keep["F"] or a[1] < keep["M"]:
            continue
        total[a] = total.get(a, Fraction(0)) + chance
        found = Counter(tuple(sorted(table[j] for j in chosen)) for chosen in choices(table, keep))
        outcomes = joint.setdefault(a, {})
        for output, number in found.items():
            outcomes[output] = outcomes.get(output, Fraction(0)) + chance * Fraction(number, found.total())
    laws = {a: {x: mass / total[a] for x, mass in outcomes.items()} for a, outcomes in joint.items()}
    assert largest_variation(laws, keep) == 0


# Mutants: each way to get it wrong shows.


def mutant_size(table: Table, ranks: Ranks, shuffle: Ranks) -> Output:
    """Two thirds of each category, rounded up: the size of the view comes from the data."""
    keep = {name: (2 * count + 2) // 3 for name, count in zip(CATEGORIES, secret(table), strict=True)}
    return view_of(keep)(table, ranks, shuffle)


def mutant_contents(table: Table, ranks: Ranks, shuffle: Ranks) -> Output:
    """The random rank belongs to a row's contents, so duplicates move together."""
    contents = sorted(set(table))
    shared = tuple(ranks[contents.index(row)] for row in table)
    return view_of({"F": 1, "M": 1})(table, shared, shuffle)


def mutant_order(table: Table, ranks: Ranks, shuffle: Ranks) -> Output:
    """The order of the file is kept."""
    return view_of({"F": 1, "M": 1})(table, ranks, tuple(range(len(table))))


def mutant_numbers(table: Table, ranks: Ranks, shuffle: Ranks) -> Output:
    """Shuffled, but each row still has its number."""
    return tuple((table[j], j) for j in kept([g for g, _ in table], {"F": 1, "M": 1}, ranks, shuffle))


def mutant_second_draw(table: Table, ranks: Ranks, shuffle: Ranks) -> Output:
    """Two views with different keys."""
    view = view_of({"F": 1, "M": 1})
    identity = tuple(range(len(table)))
    return (view(table, ranks, identity), view(table, shuffle, identity))


def mutant_no_counts(table: Table, ranks: Ranks, shuffle: Ranks) -> Output:
    """Each row is kept with probability one half, whatever its category."""
    chosen = [j for j in range(len(table)) if ranks[j] < len(table) // 2]
    return tuple(table[j] for j in sorted(chosen, key=lambda j: shuffle[j]))


def mutant_threshold(table: Table, ranks: Ranks, shuffle: Ranks) -> Output:
    """The rank up to which rows of the first category are kept is told as well."""
    found = min((ranks[j] for j, (g, _) in enumerate(table) if g == "F"), default=None)
    return (view_of({"F": 1, "M": 1})(table, ranks, shuffle), found)


def mutant_low_end(table: Table, ranks: Ranks, shuffle: Ranks) -> Output:
    """Keeps one row more where there is one: the low end of the range was overstated."""
    keep = {name: min(2, count) for name, count in zip(CATEGORIES, secret(table), strict=True)}
    return view_of(keep)(table, ranks, shuffle)


@pytest.mark.parametrize(
    ("mutant", "n", "layout", "expected"),
    [
        (mutant_size, 3, "as drawn", Fraction(1)),
        (mutant_contents, 4, "as drawn", None),
        (mutant_order, 3, "in turns", Fraction(1, 2)),
        (mutant_numbers, 3, "by category", None),
        (mutant_second_draw, 3, "as drawn", None),
        (mutant_no_counts, 3, "as drawn", None),
        (mutant_threshold, 3, "as drawn", None),
        (mutant_low_end, 3, "as drawn", Fraction(1)),
    ],
)
def test_a_mutant_shows(mutant: Mechanism, n: int, layout: str, expected: Fraction | None) -> None:
    """Row numbers are only a matter of layout: in a file without order they would tell nothing."""
    found = largest_variation(output_laws(mutant, LAWS["correlated"], n, LAYOUTS[layout]), {"F": 1, "M": 1})
    assert found > Fraction(1, 100)
    if expected is not None:
        assert found == expected


def test_known_rows_show() -> None:
    """Whoever knows that a given row is in category F learns from its presence."""

    def watched(table: Table, ranks: Ranks, shuffle: Ranks) -> Output:
        return (0 in kept([g for g, _ in table], {"F": 1, "M": 1}, ranks, shuffle),)

    law = {("F", 0): Fraction(1, 2), ("M", 0): Fraction(1, 2)}
    n = 4
    present: dict[int, Fraction] = {}
    for a in (1, 2, 3):
        known = [table for table in itertools.product(law, repeat=n) if table[0][0] == "F" and secret(table)[0] == a]
        hits = sum(watched(t, r, s)[0] for t in known for r in rankings(n) for s in rankings(n)[:1])
        present[a] = Fraction(hits, len(known) * len(rankings(n)))
    assert present == {1: 1, 2: Fraction(1, 2), 3: Fraction(1, 3)}, "K/a, with K = 1 kept"
