"""Several averages without what the counts tell: all pairs of counts one by one, plain integration, and mutants."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.methods.group_transport.clamp import Moves
from attrpriv.methods.group_transport.vector_clamp import VectorClamp, beside, best_vector_clamp, beyond, clamped_vector_delta
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.calibration.groups import equalise, equalising_covariance
from attrpriv.numerics.divergences.group_vector_clamp import Ball, runs_of
from attrpriv.numerics.divergences.groups import Between
from attrpriv.numerics.laws.groups import VectorCase
from tests.unit.numerics.divergences.test_vector_loss import integrated

Matrix = NDArray[np.float64]
EPSILON, DELTA = 1.0, 1e-3

FLAT, TALL = ((1.0, 0.2), (0.2, 1.6)), ((1.4, -0.1), (-0.1, 1.3))
CASE = VectorCase(n=60, low=12, high=30, apart=18, members=(((0.5, 1.0), FLAT),), rest=(((0.0, 0.0), TALL),))
THREE = replace(CASE, rest=(*CASE.rest, ((0.3, -0.4), FLAT)))
MASKS = (0.02, 0.02)


def moves(case: VectorCase) -> Moves:
    """All counts of the range alike, around its middle; two categories."""
    a = np.arange(case.low, case.high + 1)
    row = (np.array(case.members[0][0]) - np.array(case.rest[0][0])) / case.n
    full = equalise(case)
    rest = [0] * (len(case.rest) - 1)
    extra = [np.diag(equalising_covariance(case, full, (int(k),), (case.n - int(k), *rest))) for k in a]
    return Moves(np.outer(a - (case.low + case.high) / 2, row), np.full(len(a), 1 / len(a)), np.array(extra))


def centre_of(case: VectorCase) -> Matrix:
    middle = (case.low + case.high) / 2
    return (middle * np.array(case.members[0][0]) + (case.n - middle) * np.array(case.rest[0][0])) / case.n


def output(case: VectorCase, way: VectorClamp, counts: tuple[int, ...], mutant: str = "") -> tuple[Matrix, Matrix]:
    """The twin: mean and covariance of the answer, for a table with these counts."""
    size = len(case.members)
    laws = (*case.members, *case.rest)
    mean = sum((c * np.array(m) for c, (m, _) in zip(counts, laws, strict=True)), np.zeros(2)) / case.n
    y = mean - centre_of(case)
    reach = {"half tau": 2 * way.reach, "one side": way.reach if y[0] > 0 else 1e9}.get(mutant, way.reach)
    gone = beyond(Ball(reach, np.array(way.metric)), y[None, :])[0]
    read = counts
    if mutant == "wrong pair":
        a = case.low + case.high - counts[0]
        read = (a, case.n - a)
    extra = equalising_covariance(case, way.equalised, read[:size], read[size:])
    factor = np.array(way.factor) if way.factor else np.zeros((2, 1))
    noise = np.diag(np.array(way.independent) ** 2) + factor @ factor.T
    return mean - gone, case.own(counts[:size], counts[size:]) + extra + noise


def worst(case: VectorCase, way: VectorClamp, mutant: str = "") -> float:
    ends = (case.low, (case.low + case.high) // 2, case.high)
    laws = [output(case, way, (a, case.n - a), mutant) for a in ends]
    return max(integrated(p[0] - q[0], p[1], q[1], EPSILON, 301) for p, q in itertools.permutations(laws, 2))


def ways(case: VectorCase) -> dict[str, VectorClamp]:
    """One of each form, with no more noise than the masks."""
    from attrpriv.methods.group_transport.vector_clamp import _direct, _equalised_ways

    unit = np.sqrt(np.diag(np.array(equalise(case).target))).tolist()
    direct = _direct(case, EPSILON, DELTA, moves(case), MASKS, 0.0, None, None)
    half = _direct(case, EPSILON, DELTA, moves(case), MASKS, 0.6, None, None)
    (equalised,) = _equalised_ways(case, EPSILON, DELTA, moves(case), MASKS, unit, None)
    assert direct is not None
    assert half is not None
    return {"direct": direct, "half": half, "equalised": equalised}


WAYS = ways(CASE)


@pytest.mark.parametrize("name", ["direct", "half", "equalised"])
def test_every_pair_is_as_close_as_promised(name: str) -> None:
    way = WAYS[name]
    certified = clamped_vector_delta(CASE, way)(EPSILON)
    assert certified <= DELTA
    found = worst(CASE, way)
    assert found <= certified * 1.001
    assert found > 0.3 * DELTA, "nor is the promise much more than needed"


@pytest.mark.parametrize(
    ("name", "mutant"),
    [("direct", "half tau"), ("direct", "one side"), ("equalised", "half tau"), ("equalised", "wrong pair")],
)
def test_mutants_are_told_apart(name: str, mutant: str) -> None:
    assert worst(CASE, WAYS[name], mutant) > 1.2 * DELTA


def test_more_of_the_range_may_show_where_less_is_equalised_and_conversely() -> None:
    assert WAYS["direct"].reach < WAYS["half"].reach < WAYS["equalised"].reach
    assert not WAYS["direct"].equalised.parts
    assert WAYS["direct"].form == WAYS["half"].form == "direct"


def test_the_ball_of_equal_covariances_has_the_radius_of_theory() -> None:
    """tau_a = mu*/sqrt(b'(Vmax + Z)^-1 b), in rows."""
    way = WAYS["equalised"]
    row = np.array(CASE.told()[0]) / CASE.apart
    total = np.array(way.equalised.target) + np.diag(np.array(way.independent) ** 2)
    assert not way.factor
    rows = gaussian_mu(EPSILON, DELTA) / math.sqrt(row @ np.linalg.solve(total, row))
    assert 2 * way.reach / float(Ball(1.0, np.array(way.metric)).norm(row[None, :])[0]) == pytest.approx(rows, rel=1e-4)


def test_several_categories_and_a_tolerance() -> None:
    """Random tables whose counts differ, true means at random corners of the box: distance by plain linear algebra."""
    rng = np.random.default_rng(3)
    for case in (THREE, replace(THREE, mean_tolerance=0.05)):
        way = best_vector_clamp(case, EPSILON, DELTA, moves(case), MASKS)
        assert way.form == "equalised"
        assert clamped_vector_delta(case, way)(EPSILON) <= DELTA
        factor = np.array(way.factor) if way.factor else np.zeros((2, 1))
        total = np.array(way.equalised.target) + np.diag(np.array(way.independent) ** 2) + factor @ factor.T
        mu = gaussian_mu(EPSILON, DELTA)
        for _ in range(200):
            means = []
            a = case.low
            split = int(rng.integers(0, case.n - a + 1))
            moved = int(rng.integers(1, case.apart + 1))
            first = int(rng.integers(max(0, moved - (case.n - a - split)), min(moved, split) + 1))
            tables = (a, split, case.n - a - split), (a + moved, split - first, case.n - a - split - (moved - first))
            corners = [
                case.mean_tolerance * np.sqrt(np.diag(np.array(law[1]))) * rng.choice([-1.0, 1.0], size=2)
                for law in (*case.members, *case.rest)
            ]
            for counts in tables:
                shown, covariance = output(case, way, counts)
                np.testing.assert_allclose(covariance, total, rtol=1e-8)
                means.append(shown + sum((c * off for c, off in zip(counts, corners, strict=True)), np.zeros(2)) / case.n)
            apart = means[0] - means[1]
            assert math.sqrt(apart @ np.linalg.solve(total, apart)) <= mu * (1 + 1e-9)


def test_chances_help_and_truth_beyond_the_tolerance_hurts() -> None:
    between = Between(60, 0.1)
    for way in WAYS.values():
        plain = clamped_vector_delta(CASE, way)(EPSILON)
        assert clamped_vector_delta(CASE, way, between)(EPSILON) < plain * (1 + 1e-9)
        off = [clamped_vector_delta(CASE, way, None, share)(EPSILON) for share in (0.0, 0.05, 0.2)]
        assert plain == off[0] < off[1] < off[2]


def test_what_is_not_covered_is_told_apart() -> None:
    way = WAYS["direct"]
    for case in (THREE, replace(CASE, mean_tolerance=0.01)):
        assert clamped_vector_delta(case, way)(EPSILON) == 1.0
    for metric in (((1.0, 1.0), (1.0, 1.0)), ((math.nan, 0.0), (0.0, 1.0))):
        assert clamped_vector_delta(CASE, replace(way, metric=metric))(EPSILON) == 1.0
    assert clamped_vector_delta(CASE, replace(way, reach=math.nan))(EPSILON) == 1.0


def test_a_centre_off_the_line_is_not_covered_where_covariances_differ() -> None:
    """Then Y turns as the count grows, and a ball moves it in directions that were not tried."""
    way, middle = WAYS["direct"], tuple(centre_of(CASE).tolist())
    assert max(map(abs, beside(CASE, middle))) < 1e-15
    on = clamped_vector_delta(CASE, way, None, 0.0, middle)(EPSILON)
    assert on == pytest.approx(clamped_vector_delta(CASE, way)(EPSILON), rel=1e-6)
    assert clamped_vector_delta(CASE, way, None, 0.0, (middle[0] + 0.5, middle[1]))(EPSILON) == 1.0
    far = clamped_vector_delta(CASE, WAYS["equalised"], None, 0.0, (middle[0] + 0.5, middle[1]))(EPSILON)
    assert far <= DELTA, "a ball may be anywhere where they do not"


def test_every_distance_is_in_a_run() -> None:
    for most, apart in ((0.0, 7), (3.2, 500), (90.0, 40), (1e9, 12), (2.0, 100_000)):
        runs = list(runs_of(most, apart))
        assert runs[-1][1] == apart
        assert runs[0][0] <= max(1, most), "smaller distances are dominated by one within the clamp"
        assert all(b[0] == a[1] + 1 for a, b in itertools.pairwise(runs))
        assert all(last <= first * 1.06 + 1 for first, last in runs)


def test_the_best_way_is_one_of_them() -> None:
    best = best_vector_clamp(CASE, EPSILON, DELTA, moves(CASE), MASKS)
    unit = np.sqrt(np.diag(np.array(equalise(CASE).target))).tolist()
    assert best.cost(unit) <= min(way.cost(unit) for way in WAYS.values()) * (1 + 1e-6)
    assert clamped_vector_delta(CASE, best)(EPSILON) <= DELTA
