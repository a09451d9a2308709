"""The reference view, exactly: what two columns that do not fail show has one law, and each dropped condition changes it.

Everything is enumerated in fractions by `reference_twin`, which knows nothing of the product.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import pytest

from tests.unit.methods.view.reference_twin import (
    FAILED,
    ONE,
    ZERO,
    Choice,
    Column,
    Kernel,
    Law,
    Output,
    Ranks,
    Shown,
    law,
    mixture,
    output_law,
    pushed,
    reference_view,
    variation,
)

HALF = Fraction(1, 2)

KERNELS: dict[str, Kernel] = {
    "independent": {s: law(a=1, b=1) for s in range(3)},
    "correlated": {0: law(a=4, b=1), 1: law(a=1, b=1), 2: law(a=1, b=9)},
    "determined": {0: law(a=1), 1: law(b=1), 2: law(c=1)},  # a function of the hidden value
    "partly determined": {0: law(a=1), 1: law(b=1, c=2), 2: law(c=1)},
    "two alike": {0: law(a=1, b=2), 1: law(a=1, b=2), 2: law(c=3, a=1)},
}
KEEPS = ({0: 1, 1: 1}, {0: 2}, {1: 1, 2: 1}, {0: 1, 1: 1, 2: 1})


def columns(n: int) -> Iterator[Column]:
    return itertools.product(range(3), repeat=n)


def one_law(laws: Sequence[Law]) -> bool:
    """Several, and all equal."""
    return len(laws) > 1 and all(found == laws[0] for found in laws)


# -------------------------------------------------------------------------------------------------------- the promise


@pytest.mark.parametrize("keep", KEEPS, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_all_columns_that_do_not_fail_show_one_law(name: str, keep: dict[int, int]) -> None:
    """Total variation 0 between any two of all 81 columns of four rows, for each kernel."""
    laws = [output_law(reference_view(keep), column, KERNELS[name]) for column in columns(4)]
    assert all(sum(found.values()) == 1 for found in laws)
    assert all(FAILED not in found or found == {FAILED: ONE} for found in laws), "the column alone decides the failure"
    assert one_law([found for found in laws if FAILED not in found])


COLUMN_LAWS: dict[str, Callable[[Column], int]] = {
    "independent": lambda column: 1,
    "tilted": lambda column: math.prod(1 + s for s in column),
    "neighbours alike": lambda column: math.prod(5 if s == t else 1 for s, t in itertools.pairwise(column)),
    "all alike or all different": lambda column: 10 if len(set(column)) in (1, 3) else 1,
    "few": lambda column: column in ((0, 0, 1, 2), (2, 1, 1, 0), (0, 0, 0, 0), (2, 2, 2, 2)),
}
EVENTS: dict[str, tuple[Callable[[Column], bool], Callable[[Column], bool]]] = {
    "mean": (lambda column: sum(column) <= 3, lambda column: sum(column) > 3),
    "one row": (lambda column: column[0] == 0, lambda column: column[0] == 2),
    "spread": (lambda column: max(column) - min(column) < 2, lambda column: max(column) - min(column) == 2),
}


@pytest.mark.parametrize("events", EVENTS)
@pytest.mark.parametrize("entries", COLUMN_LAWS)
def test_events_under_any_joint_law_differ_by_their_failures_alone(entries: str, events: str) -> None:
    """Total variation is |p_A - p_B|, not the sum; given no failure it is 0."""
    weigh, view = COLUMN_LAWS[entries], reference_view({0: 1, 1: 1})
    given = []
    for event in EVENTS[events]:
        chosen = [column for column in columns(4) if event(column) and weigh(column)]
        given.append(mixture((output_law(view, column, KERNELS["correlated"]), Fraction(weigh(column))) for column in chosen))
    failures = [found.get(FAILED, ZERO) for found in given]
    assert variation(*given) == abs(failures[0] - failures[1]) <= max(failures)
    kept = [{x: mass / (1 - found.get(FAILED, ZERO)) for x, mass in found.items() if x != FAILED} for found in given]
    if max(failures) < 1:
        assert one_law(kept)


def test_a_belief_about_the_kernel_that_is_no_belief_about_the_column() -> None:
    """A2: an adversary who is unsure of the kernel learns about it, and nothing about the column."""
    view = reference_view({0: 1, 1: 1})

    def believed(column: Column, weights: tuple[int, int]) -> Law:
        kernels = (KERNELS["correlated"], KERNELS["two alike"])
        return mixture((output_law(view, column, k), Fraction(w)) for k, w in zip(kernels, weights, strict=True))

    few, many = (0, 1, 2, 2), (0, 0, 1, 1)
    assert variation(believed(few, (1, 3)), believed(many, (1, 3))) == 0
    assert variation(believed(few, (1, 3)), believed(many, (3, 1))) == Fraction(7, 30)


REGISTER = {0: ("Ada", "Ben", "Cid"), 1: ("Dan", "Eve", "Fay")}


def register_law(choose: Choice, column: Column) -> Law:
    """What is seen by who knows everybody's value and recognises everybody. The members are a uniform part of the register."""
    counts = Counter(column)
    members = [itertools.permutations(REGISTER[value], counts[value]) for value in REGISTER]
    tables: list[tuple[Shown, Fraction]] = []
    for parts in itertools.product(*members):
        left = {value: list(part) for value, part in zip(REGISTER, parts, strict=True)}
        tables.append((tuple(left[s].pop() for s in column), ONE))
    return pushed(choose, column, [(shown, chance / len(tables)) for shown, chance in tables])


def test_a_register_is_of_no_use_with_exact_cells() -> None:
    found = [
        register_law(reference_view({0: 1, 1: 1}), column) for column in ((0, 1, 1), (0, 0, 1), (0, 0, 1, 1), (0, 0, 0, 1))
    ]
    assert one_law(found)


# ------------------------------------------------------------------------------------------------ each condition dropped


def test_ties_by_position() -> None:
    """The first rows of a file that is sorted by what it shows."""

    def first_in_file(column: Column, shown: Shown, ranks: Ranks) -> Output:
        return min(z for s, z in zip(column, shown, strict=True) if s == 0)

    coin = KERNELS["independent"]
    laws = [output_law(first_in_file, column, coin) for column in ((0, 1, 1), (0, 0, 1), (0, 0, 0))]
    assert variation(laws[0], laws[1]) == Fraction(1, 4)
    assert variation(laws[0], laws[2]) == Fraction(3, 8)


def nearest(reference: float, within: tuple[int, ...]) -> Choice:
    """The row whose value is nearest to the reference; ties by rank."""

    def choose(column: Column, shown: Shown, ranks: Ranks) -> Output:
        members = [i for i, s in enumerate(column) if s in within]
        return shown[min(members, key=lambda i: (abs(column[i] - reference), ranks[i]))]

    return choose


def test_matching_instead_of_ranks() -> None:
    """Which row is nearest depends on how many others are near: a register reads it, even where the kernel tells nothing."""
    near, coin = nearest(0.25, (0, 1)), KERNELS["independent"]
    low, middle, high = (0, 0, 1), (0, 1, 1), (1, 1, 1)
    assert variation(register_law(near, middle), register_law(near, high)) == 1
    unsure = [mixture([(register_law(near, a), ONE), (register_law(near, b), ONE)]) for a, b in ((low, middle), (middle, high))]
    assert variation(*unsure) == HALF
    assert variation(output_law(near, middle, coin), output_law(near, high, coin)) == 0


def in_one_bin(column: Column, shown: Shown, ranks: Ranks) -> Output:
    """One row of a cell that holds the values 0 and 1, by rank, shown with a stand-in for its value."""
    return shown[min((i for i, s in enumerate(column) if s in (0, 1)), key=lambda i: ranks[i])]


def test_a_break_point_inside_a_cell() -> None:
    """Something begins at 1 (a licence at 18): the share within the cell is told."""
    told = {
        name: variation(output_law(in_one_bin, (0, 0, 1), kernel), output_law(in_one_bin, (0, 1, 1), kernel))
        for name, kernel in KERNELS.items()
    }
    assert told["determined"] == Fraction(1, 3)
    assert told["correlated"] == Fraction(1, 10)
    assert told["two alike"] == told["independent"] == 0


def test_a_register_reads_a_cell_of_several_values() -> None:
    assert variation(register_law(in_one_bin, (0, 0, 1)), register_law(in_one_bin, (0, 1, 1))) == Fraction(1, 3)


def test_references_from_the_table() -> None:
    """The median of the table as the stand-in: it is what was to be hidden."""

    def own_median(column: Column, shown: Shown, ranks: Ranks) -> Output:
        return (sorted(column)[len(column) // 2], in_one_bin(column, shown, ranks))

    laws = [output_law(own_median, column, KERNELS["independent"]) for column in ((0, 0, 1), (0, 1, 1))]
    assert variation(*laws) == 1


def test_a_tuned_policy() -> None:
    """Counts that are lowered until the draw does not fail say how many rows there are."""

    def tuned(column: Column, shown: Shown, ranks: Ranks) -> Output:
        tries = (reference_view({0: number})(column, shown, ranks) for number in (3, 2, 1, 0))
        return next(found for found in tries if found != FAILED)

    laws = [output_law(tuned, column, KERNELS["independent"]) for column in ((0, 0, 1), (0, 1, 1), (0, 0, 0))]
    assert {variation(p, q) for p, q in itertools.combinations(laws, 2)} == {ONE}


def stratified(column: Column) -> list[tuple[Shown, Fraction]]:
    """Two rows of each of two strata, by design; odds 3 to 1 for the value 1 in the first and 1 to 3 in the second."""
    n = len(column)
    weighed = [
        (shown, Fraction(math.prod(3 if (s == 1) == (z == "first") else 1 for s, z in zip(column, shown, strict=True))))
        for shown in set(itertools.permutations(("first",) * (n // 2) + ("second",) * (n // 2)))
    ]
    total = sum(weight for _, weight in weighed)
    return [(shown, weight / total) for shown, weight in weighed]


def test_strata() -> None:
    """Where a rare value is found among the rows of the likelier stratum, more of them are found in the other."""
    view = reference_view({1: 1})
    laws = [pushed(view, column, stratified(column)) for column in ((1, 0, 0, 0), (1, 1, 0, 0), (1, 1, 1, 0))]
    assert variation(laws[0], laws[2]) == Fraction(4, 15)


def test_strata_that_are_crossed_into_the_cells() -> None:
    """The same rows: cells are pairs of a stratum and a value, and what is hidden is how many rows each pair has."""
    kernel: Kernel = {0: law(a=3, b=1), 1: law(a=1, b=3), 2: law(a=1, b=1), 3: law(b=1)}  # 2 x stratum + value
    view = reference_view({0: 1, 1: 0, 2: 0, 3: 1})
    assert one_law([output_law(view, column, kernel) for column in ((0, 0, 3, 3), (0, 1, 3, 3), (0, 0, 2, 3), (0, 1, 2, 3))])


def in_pairs(column: Column) -> Iterator[tuple[Shown, Fraction]]:
    """Each two neighbours are rows of one person, who shows one of four letters twice."""
    persons = len(column) // 2
    for letters in itertools.product("abcd", repeat=persons):
        yield tuple(letter for letter in letters for _ in range(2)), Fraction(1, 4**persons)


def test_two_rows_of_a_person() -> None:
    """Pairs among the kept rows are the rarer the more rows there are."""
    view = reference_view({0: 2})
    one, two = (pushed(view, column, in_pairs(column)) for column in ((0, 0, 1, 1), (0, 0, 0, 0)))
    assert variation(one, two) == HALF


def test_a_column_that_is_computed_from_other_rows() -> None:
    """Such as a rank or a mean over the table: here the number of rows with the value 0."""

    def with_count(column: Column, shown: Shown, ranks: Ranks) -> Output:
        return reference_view({0: 1})(column, tuple(column.count(0) for _ in shown), ranks)

    laws = [output_law(with_count, column, KERNELS["independent"]) for column in ((0, 0, 1), (0, 1, 1))]
    assert variation(*laws) == 1


@pytest.mark.parametrize("moved", [0, 1, 2, 3])
def test_one_changed_record_replaces_at_most_two_rows(moved: int) -> None:
    """Read as a set of positions; two are reached."""
    view, names, most = reference_view({0: 1, 1: 1}), ("p", "q", "r", "s"), 0
    for column, new in itertools.product(columns(4), range(3)):
        changed = (*column[:moved], new, *column[moved + 1 :])
        renamed = (*names[:moved], "new", *names[moved + 1 :])
        for ranks in itertools.permutations(range(4)):
            before, after = view(column, names, ranks), view(changed, renamed, ranks)
            if FAILED not in (before, after):
                most = max(most, len(set(before) - set(after)))
    assert most == 2
