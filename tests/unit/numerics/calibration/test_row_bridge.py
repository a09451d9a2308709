"""The bridge of counts: against the best of all b-private mechanisms (a linear program), in fractions, and under attack."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.row_bridge import MOST_B, RowCase, row_budget, row_epsilon
from attrpriv.numerics.laws.records import RecordLaws

Row = tuple[int, ...]
# The solver's own tolerance; equality is asked for up to it, and nothing else in this file is compared with it.
SOLVER = 1e-6


def laws(member: Sequence[float], rest: Sequence[float]) -> RecordLaws:
    return RecordLaws(tuple(range(len(member))), tuple((p, p) for p in member), tuple((q, q) for q in rest))


def tables(member: Sequence[float], rest: Sequence[float], n: int, a: int) -> dict[Row, float]:
    """The law of what is read of n rows, given that a of them, which ones is uniform, are of the category."""
    found: dict[Row, float] = {}
    for table in itertools.product(range(len(member)), repeat=n):
        chance = 0.0
        for inside in itertools.combinations(range(n), a):
            chance += math.prod((member if k in inside else rest)[value] for k, value in enumerate(table))
        found[table] = chance / math.comb(n, a)
    return found


def most_lost(one: dict[Row, float], other: dict[Row, float], b: float, values: int) -> float:
    """The largest log ratio of an output's probabilities over all b-private mechanisms on these tables.

    f(x) = P(M(x) in T) is any positive function with f(x) <= e^b f(x') for neighbours; scaled down, 1 - f is b-private too.
    """
    names = sorted(one)
    place = {name: k for k, name in enumerate(names)}
    rows = []
    for table in names:
        for k, value in itertools.product(range(len(table)), range(values)):
            if value != table[k]:
                line = np.zeros(len(names))
                line[place[table]], line[place[(*table[:k], value, *table[k + 1 :])]] = 1.0, -math.exp(b)
                rows.append(line)
    found = linprog(
        [-one[name] for name in names],
        A_ub=np.array(rows),
        b_ub=np.zeros(len(rows)),
        A_eq=np.array([[other[name] for name in names]]),
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
    )
    assert found.success
    assert found.fun is not None
    return math.log(-found.fun)


def optimum(member: Sequence[float], rest: Sequence[float], n: int, a: int, c: int, b: float) -> float:
    one, other = (tables(member, rest, n, count) for count in (a, c))
    return max(most_lost(one, other, b, len(member)), most_lost(other, one, b, len(member)))


def some_settings(
    values: int, sizes: Sequence[int], seed: int, count: int
) -> Iterator[tuple[list[float], list[float], int, int, int, float]]:
    draw = np.random.default_rng(seed)
    for _ in range(count):
        member, rest = (draw.dirichlet(np.ones(values)).tolist() for _ in range(2))
        n = int(draw.choice(sizes))
        a, c = (int(x) for x in draw.choice(n + 1, size=2, replace=False))
        yield member, rest, n, a, c, float(draw.uniform(0.05, 2.0))


@pytest.mark.parametrize(("values", "sizes", "seed"), [(2, (2, 3, 4), 1), (3, (2, 3), 2)])
def test_it_is_the_best_of_all_private_mechanisms(values: int, sizes: tuple[int, ...], seed: int) -> None:
    """The closed form is the optimum of the linear program: it is enough, and no less would be."""
    for member, rest, n, a, c, b in some_settings(values, sizes, seed, 20):
        bound = row_epsilon(RowCase(abs(a - c), laws(member, rest)), b)
        assert optimum(member, rest, n, a, c, b) == pytest.approx(bound, abs=SOLVER)


def test_whole_rows_lose_b_for_each_row_that_changes() -> None:
    """A mechanism that reads the category too: the optimum over all of them is reached, whatever the other column does."""
    inside, outside = [0.0, 0.0, 0.7, 0.3], [0.4, 0.6, 0.0, 0.0]  # (category, event) as one value
    for n, a, c in ((2, 0, 2), (3, 1, 2), (3, 0, 2)):
        found = optimum(inside, outside, n, a, c, 0.4)
        assert found == pytest.approx(row_epsilon(RowCase(abs(a - c)), 0.4), abs=SOLVER)


def exact(p: Fraction, q: Fraction, t: Fraction) -> Fraction:
    """The largest ratio of an event, both directions and both signs of b."""
    ends = [(1 - one + one * x) / (1 - other + other * x) for one, other in ((p, q), (q, p)) for x in (t, 1 / t)]
    return max(ends)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_never_below_the_exact_value(seed: int) -> None:
    draw = np.random.default_rng(seed)
    for _ in range(25):
        p, q = (Fraction(int(draw.integers(0, 1001)), 1000) for _ in range(2))
        t, apart = Fraction(int(draw.integers(1001, 9000)), 1000), int(draw.integers(1, 500))
        with localcontext() as context:
            context.prec = 50
            ratio = exact(p, q, t)
            truth = apart * (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
            b = float((Decimal(t.numerator) / Decimal(t.denominator)).ln())
            above = b if Decimal(b) >= (Decimal(t.numerator) / Decimal(t.denominator)).ln() else math.nextafter(b, math.inf)
            found = row_epsilon(RowCase(apart, RecordLaws.event(float(p), float(q))), above)
            assert Decimal(found) >= truth
            assert found == pytest.approx(float(truth), rel=1e-12, abs=1e-12 * apart)


def test_intervals_give_the_worst_case_over_the_box() -> None:
    box = RowCase(7, RecordLaws.event((0.2, 0.5), (0.4, 0.6)))
    inner = [
        row_epsilon(RowCase(7, RecordLaws.event(p, q)), 0.3)
        for p, q in itertools.product(np.linspace(0.2, 0.5, 13).tolist(), np.linspace(0.4, 0.6, 13).tolist())
    ]
    found = row_epsilon(box, 0.3)
    assert max(inner) <= found <= max(inner) * (1 + 1e-9)


def test_laws_of_three_values_are_worst_over_their_box() -> None:
    ends = ((0.1, 0.3), (0.2, 0.5), (0.3, 0.6)), ((0.2, 0.4), (0.1, 0.4), (0.4, 0.5))
    found = row_epsilon(RowCase(1, RecordLaws((0, 1, 2), *ends)), 0.8)
    draw = np.random.default_rng(5)
    inside = []
    for _ in range(4000):
        pair = [[draw.choice([low, high, draw.uniform(low, high)]) for low, high in side[:2]] for side in ends]
        full = [[*two, 1 - sum(two)] for two in pair]
        if all(
            low - 1e-12 <= one[2] <= high + 1e-12 for one, ((low, high)) in zip(full, [side[2] for side in ends], strict=True)
        ):
            inside.append(row_epsilon(RowCase(1, laws(*full)), 0.8))
    assert len(inside) > 500
    assert max(inside) <= found <= max(inside) * 1.02


def responses(b: float) -> Callable[[int, int], float]:
    """Randomised response on one entry: the truth with probability e^b/(1 + e^b)."""
    truth = math.exp(b) / (1 + math.exp(b))
    return lambda entry, said: truth if entry == said else 1 - truth


def transcripts(n: int, adaptive: bool) -> Iterator[Callable[[Row], float]]:
    """P(what is said | table) of each transcript: a response of every row; adaptive: a second, whose b depends on it."""
    one = responses(0.3)
    for said in itertools.product((0, 1), repeat=n):
        second = (0.5 if sum(said) % 2 else 0.2) if adaptive else 0.0
        two = responses(second)
        for again in itertools.product((0, 1), repeat=n) if adaptive else [()]:

            def chance(table: Row, said: Row = said, again: Row = again, two: Callable[[int, int], float] = two) -> float:
                told = math.prod(one(entry, answer) for entry, answer in zip(table, said, strict=True))
                return told * math.prod(two(entry, answer) for entry, answer in zip(table, again, strict=False))

            yield chance


@pytest.mark.parametrize("adaptive", [False, True])
def test_randomised_response_never_exceeds_the_curve(adaptive: bool) -> None:
    """Of an adaptive pair the largest b that can come together is what counts."""
    n, member, rest = 3, (0.3, 0.7), (0.8, 0.2)
    b = 0.8 if adaptive else 0.3
    lost = 0.0
    for a, c in itertools.permutations(range(n + 1), 2):
        one, other = tables(member, rest, n, a), tables(member, rest, n, c)
        for chance in transcripts(n, adaptive):
            top, bottom = (sum(law[table] * chance(table) for table in law) for law in (one, other))
            lost = max(lost, math.log(top / bottom))
            assert math.log(top / bottom) <= row_epsilon(RowCase(abs(a - c), laws(member, rest)), b)
    assert lost > 0.5 * row_epsilon(RowCase(n, laws(member, rest)), b)


def test_the_budget_is_the_largest_that_keeps_epsilon() -> None:
    draw = np.random.default_rng(3)
    for _ in range(20):
        p, q = draw.uniform(0.05, 0.95, 2).tolist()
        cases = [RowCase(int(draw.integers(1, 200)), RecordLaws.event(p, q)), RowCase(3)]
        b = row_budget(cases, 0.7)
        assert max(row_epsilon(case, b) for case in cases) <= 0.7
        assert b == MOST_B or max(row_epsilon(case, b * (1 + 1e-9)) for case in cases) > 0.7


def test_whole_rows_have_epsilon_over_the_rows_that_change() -> None:
    assert row_budget([RowCase(50)], 1.0) <= 1 / 50
    assert row_budget([RowCase(50)], 1.0) == pytest.approx(1 / 50, rel=1e-12)


def test_where_any_algorithm_would_do_b_is_the_most_that_is_said() -> None:
    assert row_budget([RowCase(1, RecordLaws.event(0.5, 0.4))], 1.0) == MOST_B
    assert row_epsilon(RowCase(1, RecordLaws.event(0.5, 0.4)), MOST_B) <= math.log(0.5 / 0.4) + 1e-12
    assert row_epsilon(RowCase(9, RecordLaws.event(0.3, 0.3)), 5.0) == 0.0
    assert row_epsilon(RowCase(9), 0.0) == 0.0


def test_a_wrong_direction_would_be_found() -> None:
    """The planted mistake: one direction alone. The linear program is above it."""
    p, q, b = 0.1, 0.6, 1.0
    one_way = max(math.log((1 - p + p * t) / (1 - q + q * t)) for t in (math.exp(b), 1.0))
    assert optimum((1 - p, p), (1 - q, q), 2, 0, 1, b) > one_way + 0.1


@pytest.mark.parametrize("b", [-0.1, math.nan, math.inf, 101.0, True, "1"])
def test_what_is_no_b_is_refused(b: float) -> None:
    with pytest.raises(UsageError, match="b: must be the epsilon of one row"):
        row_epsilon(RowCase(1), b)


def test_what_is_no_case_is_refused() -> None:
    with pytest.raises(UsageError, match="apart"):
        RowCase(0)
    with pytest.raises(UsageError, match="cases"):
        row_budget([], 1.0)
    for epsilon in (0.0, math.nan, math.inf):
        with pytest.raises(UsageError, match="epsilon"):
            row_budget([RowCase(1)], epsilon)
