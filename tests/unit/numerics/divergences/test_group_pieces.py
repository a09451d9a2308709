"""Averages of groups, piece by piece: noise, chances of distances, what a clamp leaves, balls, paths and their runs."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.divergences import group_vector_clamp
from attrpriv.numerics.divergences.gaussian import gaussian_delta, hockey_stick
from attrpriv.numerics.divergences.group_vector_clamp import (
    Ball,
    ball_delta,
    path_delta,
    runs_of,
    told_apart,
    whitened,
)
from attrpriv.numerics.divergences.groups import (
    EQUALISED_ETA,
    Between,
    _spread,
    clamped_gap,
    clamped_group_delta_upper,
    coupled_upper,
    group_delta_upper,
    pair_upper,
    require_equalisable,
)
from attrpriv.numerics.divergences.vector_loss import vector_hockey_upper
from attrpriv.numerics.laws.gaussian import GaussianLaw
from attrpriv.numerics.laws.groups import GroupCase, VectorCase
from attrpriv.numerics.rounding import ULP

CASE = GroupCase(n=100, low=25, high=40, apart=15, members=((36.0, 11.0),), rest=((42.0, 12.0),))


def both_ways(gap: float, one: float, other: float, epsilon: float) -> float:
    near, far = GaussianLaw(0.0, one), GaussianLaw(gap, other)
    return max(hockey_stick(near, far, epsilon), hockey_stick(far, near, epsilon))


# ----------------------------------------------------------------------------------------------------------- one average


def test_the_worse_of_two_ends_and_of_two_directions_counts() -> None:
    """Each in turn: small and large distances, narrow and wide spreads."""
    for gap, spread, epsilon in (
        (0.9, (0.1, 0.4), 0.3),
        (0.9, (0.0, 2.5), 0.7),
        (0.05, (0.3, 1.9), 0.2),
        (0.0, (0.4, 0.5), 0.1),
    ):
        wanted = max(both_ways(gap, 1.2, 1.2 + end, epsilon) for end in spread)
        assert wanted * (1 - 1e-12) <= pair_upper(gap, 1.2, spread, epsilon) <= wanted * (1 + 1e-9) + 1e-300
    assert pair_upper(0.0, 5e-324, (0.0, 0.0), 0.5) == 0.0


@pytest.mark.parametrize("noise", [0.0, 0.7])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_noise_adds_its_variance(noise: float, epsilon: float) -> None:
    known = replace(CASE, known=2)
    direct = max(
        both_ways(known.gap, known.least_variance + noise, known.least_variance + noise + e, epsilon) for e in known.spread
    )
    assert group_delta_upper(known, noise, epsilon) == pytest.approx(direct, rel=1e-9)
    assert known.equal_spread > 0
    ends = (0.0, known.equal_spread)
    equal = max(both_ways(known.gap, known.equal_variance + noise, known.equal_variance + noise + e, epsilon) for e in ends)
    wanted = equal + (1 + math.exp(epsilon)) * EQUALISED_ETA
    assert group_delta_upper(known, noise, epsilon, "equalised") == pytest.approx(wanted, rel=1e-9)


def test_only_sds_that_are_exact_can_be_equalised() -> None:
    require_equalisable(CASE)
    with pytest.raises(RefusedError, match="exactly"):
        require_equalisable(replace(CASE, sd_tolerance=1e-12))


def test_chances_of_a_distance_are_binomial() -> None:
    between = Between(30, 0.13)
    assert between.above(-1) == 1.0
    for count in (0, 1, 4, 11, 29):
        truth = float(binom.sf(count, 30, 0.13))
        assert truth * (1 - 1e-12) <= between.above(count) <= truth * (1 + 1e-8)
    assert Between(30, 0.999999).above(0) <= 1.0


@pytest.mark.parametrize(
    ("n", "width", "apart", "marks"),
    [
        # Mean 40, sd sqrt(40) = 6.3: from 27 on, in ten steps of 4.3 (48.5 is rounded to 49).
        (400, 0.1, 70, (27, 31, 36, 40, 44, 49, 53, 57, 61, 66, 70)),
        # Mean 2: from 1 on.
        (20, 0.1, 11, (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)),
        (20, 0.1, 3, (1, 2, 3)),
        # More is expected than can be.
        (400, 0.5, 20, (20,)),
    ],
)
def test_distances_to_look_at(n: int, width: float, apart: int, marks: tuple[int, ...]) -> None:
    assert Between(n, width).marks(apart) == marks


def test_each_rise_has_the_chance_of_going_beyond_the_distance_before() -> None:
    between = Between(12, 0.3)
    told = [(2, 0.01), (3, 0.05), (6, 0.04), (7, 0.2)]
    chances = {d: float(binom.sf(d, 12, 0.3)) for d in (2, 6)}
    wanted = 0.01 + 0.04 * chances[2] + (0.2 - 0.05) * chances[6]
    assert coupled_upper(between, told) == pytest.approx(wanted, rel=1e-8)
    assert coupled_upper(None, told) == pytest.approx(0.2, rel=1e-10)
    assert coupled_upper(between, [(1, 1.0), (2, 3.0)]) == 1.0
    assert coupled_upper(between, []) == 0.0


def test_a_population_is_measured_at_each_distance_by_its_own_case() -> None:
    between = Between(100, 0.04)
    for form, reach in (("direct", 0.2), ("equalised", 0.2), ("equalised", math.inf)):
        told = [
            (d, clamped_group_delta_upper(replace(CASE, apart=d), reach, 0.3, 0.4, form))  # type: ignore[arg-type]
            for d in between.marks(15)
        ]
        found = clamped_group_delta_upper(CASE, reach, 0.3, 0.4, form, between)  # type: ignore[arg-type]
        assert found == pytest.approx(coupled_upper(between, told), rel=1e-9)
        assert found < 0.99 * told[-1][1]


@pytest.mark.parametrize("reach", [0.0, 0.11, 0.6, math.inf])
@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_a_clamp_and_noise(reach: float, noise: float) -> None:
    case = replace(CASE, known=1, sd_tolerance=0.01, mean_tolerance=0.01)
    gap = clamped_gap(case, reach, 0.1)
    least = case.matched_variance + noise
    wanted = max(both_ways(gap, least, least + end, 0.4) for end in (0.0, case.matched_spread)) + (1 + math.exp(0.4)) * 1e-14
    assert clamped_group_delta_upper(case, reach, noise, 0.4, "equalised", beyond=0.1) == pytest.approx(wanted, rel=1e-9)
    least = case.least_variance + noise
    wanted = max(both_ways(gap, least, least + end, 0.4) for end in _spread(case, reach))
    assert clamped_group_delta_upper(case, reach, noise, 0.4, "direct", beyond=0.1) == pytest.approx(wanted, rel=1e-9)
    assert clamped_group_delta_upper(case, reach, 1.0, 60.0, "equalised") == pytest.approx(
        min(1.0, (1 + math.exp(60.0)) * 1e-14)
    )


def test_the_least_difference_that_a_clamp_leaves() -> None:
    low, high = CASE.spread
    assert low > 0
    assert _spread(CASE, math.inf) == (low, high)
    assert _spread(replace(CASE, known=1), math.inf) == replace(CASE, known=1).spread
    assert _spread(replace(CASE, known=1), 0.1) == (0.0, replace(CASE, known=1).spread[1])
    equal_means = replace(CASE, rest=((36.0, 12.0),))
    assert _spread(equal_means, 0.1) == (0.0, equal_means.spread[1])
    for reach in (0.1, 0.3, 0.449):
        found = _spread(CASE, reach)
        assert found[1] == high
        exact = Fraction(low) * 2 * Fraction(reach) / Fraction(CASE.told)
        assert float(exact) * (1 - 1e-15) <= found[0] <= exact
    assert _spread(CASE, 0.46) == (low, high)


# ------------------------------------------------------------------------------------------------------ several averages

METRIC = np.array([[0.5, 0.2], [0.2, 0.9]])
TOTAL = np.array([[0.8, -0.1], [-0.1, 1.3]])
VECTOR = VectorCase(
    n=40,
    low=10,
    high=18,
    apart=6,
    members=(((3.0, 1.0), ((4.0, 0.5), (0.5, 2.0))), ((2.0, -1.0), ((1.0, 0.0), (0.0, 1.0)))),
    rest=(((1.0, 2.5), ((2.0, -0.3), (-0.3, 3.0))),),
)
# One category on each side.
PLAIN = replace(VECTOR, members=VECTOR.members[:1])


def length(vector: np.ndarray, matrix: np.ndarray) -> float:
    return math.sqrt(float(vector @ np.linalg.solve(matrix, vector)))


def test_the_length_of_each_vector_in_the_norm_of_a_matrix() -> None:
    vectors = np.array([[1.0, 0.0], [0.3, -2.0], [4.0, 1.0]])
    wanted = [length(vector, METRIC) for vector in vectors]
    assert Ball(1.0, METRIC).norm(vectors) == pytest.approx(wanted, rel=1e-12)
    assert Ball(1.0, METRIC * 1e-30).norm(vectors) == pytest.approx(np.array(wanted) * 1e15, rel=1e-12)


def by_ball(case: VectorCase, off: float, reach: float, epsilon: float, beyond: float, rows: int) -> float:
    """The docstring's bound in the plainest way: the furthest corner of everything that the tolerance and the clamp leave."""
    stretch = math.sqrt(max(np.linalg.eigvals(np.linalg.solve(TOTAL, METRIC)).real))
    share = rows / case.n
    shifts = [np.array(m) - np.array(o) for m, _ in case.members for o, _ in case.rest]
    told = share * max(length(shift, METRIC) for shift in shifts)
    untold = beyond * share * max(length(shift, TOTAL) for shift in shifts)
    corners = [
        share * case.mean_tolerance * np.array(sign) * (np.sqrt(np.diag(one)) + np.sqrt(np.diag(other)))
        for _, one in case.members
        for _, other in case.rest
        for sign in itertools.product((1, -1), repeat=2)
    ]
    untold += max(length(corner, TOTAL) for corner in corners)
    return gaussian_delta(epsilon, stretch * min(2 * reach, told) + untold)


@pytest.mark.parametrize("reach", [0.0, 0.07, 9.0])
@pytest.mark.parametrize(("tolerance", "beyond"), [(0.0, 0.0), (0.05, 0.0), (0.02, 0.3)])
def test_a_ball_in_two_dimensions(reach: float, tolerance: float, beyond: float) -> None:
    case, off, epsilon = replace(VECTOR, mean_tolerance=tolerance), 2e-3, 0.35
    charge = (1 + math.exp(epsilon)) * off / 2
    wanted = by_ball(case, off, reach, epsilon, beyond, case.apart) + charge
    found = ball_delta(case, TOTAL, off, Ball(reach, METRIC), beyond=beyond)(epsilon)
    assert wanted <= found <= wanted * (1 + 1e-6) + 1e-10
    between = Between(40, 0.06)
    told = [(d, by_ball(case, off, reach, epsilon, beyond, d)) for d in between.marks(case.apart)]
    found = ball_delta(case, TOTAL, off, Ball(reach, METRIC), between, beyond)(epsilon)
    wanted = coupled_upper(between, told) + charge
    assert wanted * (1 - 1e-9) <= found <= wanted * (1 + 1e-6) + 1e-10


def test_what_a_ball_cannot_prove() -> None:
    ball = Ball(0.1, METRIC)
    assert ball_delta(VECTOR, TOTAL, 0.499, ball) is not told_apart
    assert ball_delta(VECTOR, TOTAL, 0.501, ball) is told_apart
    assert ball_delta(VECTOR, TOTAL, math.nan, ball) is told_apart
    assert ball_delta(VECTOR, np.ones((2, 2)), 0.0, ball) is told_apart
    assert ball_delta(VECTOR, TOTAL, 0.4, ball)(10.0) == 1.0
    assert [told_apart(epsilon) for epsilon in (0.0, 3.0)] == [1.0, 1.0]


LOW = np.array([[0.5, 0.1], [0.1, 0.7]])
HIGH = np.array([[0.62, 0.05], [0.05, 0.61]])


def by_path(reach: float, epsilon: float, runs: list[tuple[int, int]], beyond: float, aside: np.ndarray) -> list[float]:
    """The pair of each run: base and both parts of the difference by eigenvalues, moved as far as the ball leaves."""
    step = HIGH - LOW
    unit = np.sqrt(np.diag(LOW))
    values, vectors = np.linalg.eigh(step / np.outer(unit, unit))
    up = sum(max(0.0, v) * np.outer(e, e) for v, e in zip(values, vectors.T, strict=True)) * np.outer(unit, unit)
    down = up - step
    base = LOW - down
    off = length(aside, base)
    row = (np.array(PLAIN.members[0][0]) - np.array(PLAIN.rest[0][0])) / PLAIN.n
    most, more = 2 * (reach + off) / length(row, METRIC), 2 * off / length(row, METRIC)
    found = []
    for first, last in runs:
        moved = row * (min(most, last) + more + beyond * last) * math.sqrt(last / first)
        share = last / (PLAIN.high - PLAIN.low)
        pair = base + share * down, base + share * up
        found.append(max(vector_hockey_upper(moved, *pair, epsilon), vector_hockey_upper(moved, *pair[::-1], epsilon)))
    return [one + (1 + math.exp(epsilon)) * off / 2 for one in found]


@pytest.mark.parametrize(
    ("reach", "beyond", "aside"), [(0.0, 0.0, 0.0), (0.17, 0.0, 0.0), (0.17, 0.2, 0.0), (5.0, 0.1, 0.004), (0.17, 0.0, 0.004)]
)
def test_a_path_in_two_dimensions(monkeypatch: pytest.MonkeyPatch, reach: float, beyond: float, aside: float) -> None:
    """Run by run; with a population each at its chance; some runs of it, for a search, as asked for."""
    monkeypatch.setattr(group_vector_clamp, "_SINGLE", 1)
    monkeypatch.setattr(group_vector_clamp, "_RUN", 1.5)
    epsilon, centre = 0.3, np.array([aside, -aside / 2])
    ball = Ball(reach, METRIC)
    row = (np.array(PLAIN.members[0][0]) - np.array(PLAIN.rest[0][0])) / PLAIN.n
    off = length(centre, LOW) if aside else 0.0
    runs = list(runs_of(2 * (reach + off) / length(row, METRIC), PLAIN.apart))
    told = by_path(reach, epsilon, runs, beyond, centre)
    given = tuple(centre) if aside else None
    found = path_delta(PLAIN, LOW, HIGH, ball, beyond=beyond, aside=given)(epsilon)
    assert found == pytest.approx(max(told), rel=1e-6, abs=1e-9)
    some = [(1, 2), (4, 4)]
    found = path_delta(PLAIN, LOW, HIGH, ball, beyond=beyond, aside=given, runs=some)(epsilon)
    assert found == pytest.approx(max(by_path(reach, epsilon, some, beyond, centre)), rel=1e-6, abs=1e-9)
    between = Between(40, 0.06)
    runs = list(runs_of(2 * (reach + off) / length(row, METRIC), PLAIN.apart, between))
    charge = (1 + math.exp(epsilon)) * (length(centre, LOW) if aside else 0.0) / 2
    each = [one - charge for one in by_path(reach, epsilon, runs, beyond, centre)]
    wanted = coupled_upper(between, [(last, one) for (_, last), one in zip(runs, each, strict=True)]) + charge
    found = path_delta(PLAIN, LOW, HIGH, ball, between, beyond, given)(epsilon)
    assert found == pytest.approx(wanted, rel=2e-2 if aside else 1e-6, abs=1e-9)


def test_equal_means_on_a_path_leave_the_covariances() -> None:
    """A row moves nothing then, at any reach, and every distance is tried."""
    case = replace(PLAIN, rest=((PLAIN.members[0][0], PLAIN.rest[0][1]),))
    found = path_delta(case, LOW, HIGH, Ball(0.3, METRIC))(0.01)
    step, share = HIGH - LOW, case.apart / (case.high - case.low)
    unit = np.sqrt(np.diag(LOW))
    values, vectors = np.linalg.eigh(step / np.outer(unit, unit))
    up = (vectors * np.maximum(values, 0)) @ vectors.T * np.outer(unit, unit)
    base = LOW - (up - step)
    pair = base + share * (up - step), base + share * up
    wanted = max(vector_hockey_upper(np.zeros(2), *way, 0.01) for way in (pair, pair[::-1]))
    assert found == pytest.approx(wanted, rel=1e-6)
    assert wanted > 1e-3


def test_where_a_path_proves_nothing() -> None:
    ball = Ball(0.2, METRIC)
    assert path_delta(PLAIN, LOW, HIGH, ball) is not told_apart
    assert path_delta(VECTOR, LOW, HIGH, ball) is told_apart
    turned = replace(VECTOR, members=VECTOR.rest, rest=VECTOR.members)
    assert path_delta(turned, LOW, HIGH, ball) is told_apart
    assert path_delta(replace(PLAIN, mean_tolerance=1e-9), LOW, HIGH, ball) is told_apart
    # What both ends have in common has a negative eigenvalue, -0.5.
    assert path_delta(PLAIN, np.eye(2), np.array([[1.0, 1.5], [1.5, 1.0]]), ball) is told_apart


@pytest.mark.parametrize("single", [1, 3])
def test_runs_are_as_long_as_they_may_be(monkeypatch: pytest.MonkeyPatch, single: int) -> None:
    monkeypatch.setattr(group_vector_clamp, "_SINGLE", single)
    monkeypatch.setattr(group_vector_clamp, "_RUN", 1.5)
    wanted = (
        [(4, 4), (5, 7), (8, 12), (13, 19), (20, 25)] if single == 1 else [(4, 4), (5, 5), (6, 6), (7, 10), (11, 16), (17, 25)]
    )
    assert list(runs_of(4.9, 25)) == wanted
    assert list(runs_of(0.0, 1)) == [(1, 1)]
    assert list(runs_of(7.0, 3)) == [(3, 3)]
    assert list(runs_of(math.inf, 3)) == [(3, 3)]
    # Where chances of distances count the first is where they begin, if that is below what the clamp lets through.
    assert next(runs_of(20.0, 25, Between(100, 0.05)))[0] == Between(100, 0.05).marks(25)[0] == 1
    assert next(runs_of(4.9, 25, Between(100, 0.2)))[0] == 4
    assert next(runs_of(24.0, 25, Between(100, 0.2)))[0] == Between(100, 0.2).marks(25)[0] == 11


def test_a_matrix_that_whitens_and_its_rounding() -> None:
    for scale in (1.0, 1e-12, 1e9):
        total = TOTAL * np.outer([1.0, scale], [1.0, scale])
        found = whitened(total)
        assert found is not None
        assert found[0] @ total @ found[0].T == pytest.approx(np.eye(2), abs=1e-12)
        least = 1 - 0.1 / math.sqrt(0.8 * 1.3)
        assert found[1] == pytest.approx(64 * 4 * ULP / least, rel=1e-9)
    for wrong in ([[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]], [[math.inf, 0.0], [0.0, 1.0]]):
        assert whitened(np.array(wrong)) is None
    nearly = 1 - 1.5e-12
    assert whitened(np.array([[1.0, nearly], [nearly, 1.0]])) is None
    assert whitened(np.array([[1.0, 1 - 3e-12], [1 - 3e-12, 1.0]])) is not None


def test_a_reach_and_a_variance_are_numbers() -> None:
    for bad in (-1e-300, math.nan):
        with pytest.raises(UsageError, match="reach"):
            clamped_group_delta_upper(CASE, bad, 0.1, 1.0, "direct")
    for bad in (-1e-300, math.nan, math.inf):
        with pytest.raises(UsageError, match="noise"):
            clamped_group_delta_upper(CASE, 0.1, bad, 1.0, "direct")
        with pytest.raises(UsageError, match="noise"):
            group_delta_upper(CASE, bad, 1.0)


def test_what_is_left_between_a_difference_and_its_two_parts_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eigenvectors that are too long by 1e-4: then the parts differ by 2e-4 of the difference too much."""
    right = np.linalg.eigh
    calls: list[int] = []

    def eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = right(matrix)
        calls.append(1)
        return values, vectors * (1 + 1e-4 * (len(calls) == 1))

    monkeypatch.setattr("numpy.linalg.eigh", eigh)
    found = path_delta(PLAIN, LOW, HIGH, Ball(0.0, METRIC), runs=[(6, 6)])(3.0)
    monkeypatch.undo()
    step, unit = HIGH - LOW, np.sqrt(np.diag(LOW))
    values, vectors = np.linalg.eigh(step / np.outer(unit, unit))
    down = (vectors * np.maximum(0, -values)) @ vectors.T * np.outer(unit, unit)
    base = whitened(LOW - down)
    assert base is not None
    left = 2e-4 * float(np.linalg.norm(base[0] @ step @ base[0].T))
    assert found == pytest.approx((1 + math.exp(3.0)) / 2 * left, rel=1e-3)
