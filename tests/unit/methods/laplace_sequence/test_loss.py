"""Several noisy counts together: the certificate against the joint law of small tables, written out in full."""

from __future__ import annotations

import itertools
import math
from functools import reduce

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.errors import UsageError
from attrpriv.methods.laplace_sequence.loss import Asked, row_loss
from attrpriv.numerics.calibration.laplace import laplace_loss
from attrpriv.numerics.laws.records import Interval01, RecordLaws

Floats = NDArray[np.float64]
Masses = dict[tuple[int, ...], float]
# What a row adds to each statistic, in each of its atoms: two or three events.
TWO = np.array(list(itertools.product((0, 1), repeat=2)))
THREE = np.array(list(itertools.product((0, 1), repeat=3)))
XOR = (np.array([0.5, 0, 0, 0.5]), np.array([0, 0.5, 0.5, 0]))


def sums(
    law: Floats, values: Floats, rows: int, of: dict[tuple[int, ...], float] | None = None
) -> dict[tuple[int, ...], float]:
    """The law of the sum over rows of what a row adds, by enumeration."""
    found = {(0,) * values.shape[1]: 1.0} if of is None else of
    for _ in range(rows):
        grown: Masses = {}
        for total, mass in found.items():
            for value, part in zip(values, law, strict=True):
                key = tuple(int(a + b) for a, b in zip(total, value, strict=True))
                grown[key] = grown.get(key, 0.0) + mass * float(part)
        found = grown
    return found


def written_out(member: Floats, rest: Floats, values: Floats, scales: list[float], n: int, a: int, b: int) -> Floats:
    """log of the ratio of the joint laws of all outputs given a and given b members, at every output and one step beyond."""
    outputs = [np.arange(-1, n * int(values[:, k].max()) + 2) for k in range(values.shape[1])]
    sides = []
    for count in (a, b):
        total: Floats = np.zeros(1)
        for sum_, mass in sums(rest, values, n - count, sums(member, values, count)).items():
            kernels = [np.exp(-np.abs(o - f) / s) for o, f, s in zip(outputs, sum_, scales, strict=True)]
            total = total + mass * reduce(np.multiply.outer, kernels)
        sides.append(total)
    return np.asarray(np.log(sides[0]) - np.log(sides[1]))


def worst(member: Floats, rest: Floats, values: Floats, scales: list[float], n: int) -> float:
    pairs = itertools.product(range(n + 1), repeat=2)
    return max(float(np.abs(written_out(member, rest, values, scales, n, a, b)).max()) for a, b in pairs)


def margins(member: Floats, rest: Floats, values: Floats, scales: list[float]) -> list[Asked]:
    """The statistics as a certificate has them: each with its own law, nothing joint."""
    found = []
    for k, scale in enumerate(scales):
        added = sorted({int(v) for v in values[:, k]})
        laws = [tuple((p, p) for p in (float(law[values[:, k] == v].sum()) for v in added)) for law in (member, rest)]
        found.append(Asked(RecordLaws(tuple(added), laws[0], laws[1]), False, added[-1] - added[0], 1 / scale))
    return found


def lawless(asked: list[Asked]) -> list[Asked]:
    return [Asked(None, one.histogram, one.width, one.rate) for one in asked]


# ------------------------------------------------------------------------------------------------ the joint law, written out


@pytest.mark.parametrize("atoms", [TWO, THREE, TWO * np.array([3, 1])], ids=["two", "three", "a sum and a count"])
def test_no_joint_law_of_a_small_table_loses_more(atoms: Floats) -> None:
    rng = np.random.default_rng(len(atoms))
    closest = 0.0
    for _ in range(25 if len(atoms) == 4 else 6):
        member, rest = rng.dirichlet(np.full(len(atoms), 0.5)), rng.dirichlet(np.full(len(atoms), 0.5))
        scales = [float(s) for s in rng.uniform(0.4, 6, size=(atoms.shape[1],))]
        n = int(rng.integers(1, 4))
        asked = margins(member, rest, atoms, scales)
        real = worst(member, rest, atoms, scales, n)
        assert real <= n * row_loss(asked) <= n * row_loss(lawless(asked)) * (1 + 1e-9)
        closest = max(closest, real / (n * row_loss(asked)))
    assert closest > 0.6  # the bound is a bound, but not an idle one


def test_the_second_question_may_depend_on_the_first_answer() -> None:
    """After a large first answer the other event is asked, with less noise: every branch is a sequence of its own."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        member, rest = rng.dirichlet(np.full(8, 0.7)), rng.dirichlet(np.full(8, 0.7))
        n, high, low = 3, [2.0, 0.9], [2.0, 3.0]
        small = written_out(member, rest, THREE[:, [0, 1]], low, n, 0, n)[:3]
        large = written_out(member, rest, THREE[:, [0, 2]], high, n, 0, n)[3:]
        bounds = [
            n * row_loss(margins(member, rest, THREE[:, columns], scales))
            for columns, scales in (([0, 1], low), ([0, 2], high))
        ]
        assert np.abs(small).max() <= bounds[0]
        assert np.abs(large).max() <= bounds[1]


def test_two_harmless_answers_give_the_secret_away_and_the_bound_says_so() -> None:
    """U, and U xor "is a member": each alone has the same law for all. Three wrong accountants do not see it."""
    asked = margins(*XOR, TWO, [0.5, 0.5])
    real = worst(*XOR, TWO, [0.5, 0.5], 3)
    alone = [row_loss([one]) for one in asked]
    assert alone == [0.0, 0.0]
    assert real > 3.0  # the loss of each alone, their sum, and the last one only are all 0
    assert real <= 3 * row_loss(asked)
    assert real == pytest.approx(3 * math.log(math.cosh(2.0)), rel=1e-9)


def test_forgetting_the_past_would_be_seen() -> None:
    member, rest = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.3, 0.2, 0.1])
    asked = margins(member, rest, TWO, [1.0, 4.0])
    assert worst(member, rest, TWO, [1.0, 4.0], 3) > 3 * row_loss(asked[1:]) * 1.5


# ------------------------------------------------------------------------------------------------------------------- its parts


def test_one_statistic_keeps_its_exact_loss() -> None:
    for records in (RecordLaws.event((0.3, 0.5), 0.6), RecordLaws((0, 1, 4), point(0.2, 0.3, 0.5), point(0.4, 0.4, 0.2))):
        exact = laplace_loss(records, 1, 2.5).upper
        assert exact <= row_loss([Asked(records, False, records.width, 1 / 2.5)]) <= exact * (1 + 1e-9)


def test_two_outputs_of_the_same_sum_lose_what_one_output_with_both_rates_loses() -> None:
    rng = np.random.default_rng(2)
    values = np.array([0, 1, 3, 7])
    for _ in range(200):
        laws = rng.dirichlet(np.full(4, 0.4), size=2)
        rates = rng.uniform(0.05, 1.5, 2)
        records = RecordLaws(tuple(values.tolist()), point(*laws[0]), point(*laws[1]))
        outputs = np.linspace(-1, 8, 37)
        first, second = (np.exp(-rate * np.abs(outputs[:, None] - values)) for rate in rates)
        weights = first[:, None, :] * second[None, :, :]
        real = np.abs(np.log(weights @ laws[0]) - np.log(weights @ laws[1])).max()
        assert real <= row_loss([Asked(records, False, 7, float(rates.sum()))])


def test_a_box_is_covered_at_every_law_inside() -> None:
    rng = np.random.default_rng(11)
    boxes = [RecordLaws.event((0.3, 0.5), (0.4, 0.7)), RecordLaws.event((0.1, 0.2), (0.2, 0.25))]
    bound = row_loss([Asked(box, False, 1, 0.4) for box in boxes])
    for _ in range(200):
        inside = [RecordLaws.event(*(drawn(rng, law[1]) for law in (box.member, box.rest))) for box in boxes]
        assert row_loss([Asked(one, False, 1, 0.4) for one in inside]) <= bound * (1 + 1e-9)


def test_a_histogram_and_an_event_of_other_columns() -> None:
    """Three cells and an event, in six atoms; a row in cell c adds 1 to its count."""
    rng = np.random.default_rng(4)
    atoms = list(itertools.product(range(3), (0, 1)))
    values = np.array([[int(c == 0), int(c == 1), int(c == 2), e] for c, e in atoms])
    for _ in range(5):
        member, rest = rng.dirichlet(np.full(6, 0.6), size=2)
        laws = [point(*(law[[2 * c, 2 * c + 1]].sum() for c in range(3))) for law in (member, rest)]
        both = [
            Asked(RecordLaws((0, 1, 2), laws[0], laws[1]), True, 2, 1 / 3.0),
            *margins(member, rest, values[:, 3:], [1.5]),
        ]
        assert worst(member, rest, values, [3.0, 3.0, 3.0, 1.5], 1) <= row_loss(both)
        two = np.abs(written_out(member, rest, values, [3.0, 3.0, 3.0, 1.5], 2, 0, 2)).max()
        assert two <= 2 * row_loss(both)


def test_for_many_rows_the_law_is_worth_a_factor() -> None:
    """Noise for hundreds of rows: a row pays about the difference of its probabilities, not the whole span."""
    asked = [Asked(RecordLaws.event(0.4, 0.2), False, 1, 0.002), Asked(RecordLaws.event(0.5, 0.45), False, 1, 0.002)]
    assert row_loss(asked) < 0.13 * row_loss(lawless(asked))
    assert row_loss(asked) < 1.02 * sum(row_loss([one]) for one in asked)


def test_what_has_no_law_costs_its_span() -> None:
    known = Asked(RecordLaws.event(0.4, 0.4), False, 1, 0.5)
    assert row_loss([known], free=0.25) == pytest.approx(0.25, rel=1e-9)
    assert row_loss([Asked(None, True, 2, 0.5)]) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(UsageError):
        Asked(None, False, 1, rate)


def test_a_width_that_is_not_the_laws_is_refused() -> None:
    with pytest.raises(UsageError):
        Asked(RecordLaws.event(0.4, 0.6), False, 2, 1.0)
    with pytest.raises(UsageError):
        row_loss([], free=math.nan)


def point(*masses: float) -> tuple[tuple[float, float], ...]:
    total = float(sum(masses))
    return tuple((float(mass) / total, float(mass) / total) for mass in masses)


def drawn(rng: np.random.Generator, interval: Interval01) -> float:
    return float(rng.uniform(float(interval[0]), float(interval[1])))
