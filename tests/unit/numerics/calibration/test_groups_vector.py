"""Several averages: every table gets one covariance, the shift is hidden in every direction, and what goes wrong is charged."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.calibration.groups import (
    Equalised,
    _whitened,
    equalise,
    equalising_covariance,
    equalising_error,
    least_group_covariance,
    least_group_noise,
    part_weights,
    vector_delta_upper,
)
from attrpriv.numerics.divergences.gaussian import gaussian_delta
from attrpriv.numerics.laws.groups import GroupCase, VectorCase

Matrix = NDArray[np.float64]


def random_case(seed: int, size: int | None = None, tolerance: float = 0.0) -> VectorCase:
    rng = np.random.default_rng(seed)
    k = size or int(rng.integers(1, 4))
    n = int(rng.integers(5, 300))
    low = int(rng.integers(0, n - 2))
    high = int(rng.integers(low + 1, n + 1))

    def law() -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
        mix = rng.normal(size=(k, k)) + rng.uniform(0.2, 3) * np.eye(k)
        covariance = mix @ mix.T
        return tuple(rng.normal(size=k).tolist()), tuple(map(tuple, ((covariance + covariance.T) / 2).tolist()))

    sides = [tuple(law() for _ in range(rng.integers(1, 4))) for _ in range(2)]
    return VectorCase(n, low, high, int(rng.integers(1, high - low + 1)), sides[0], sides[1], tolerance)


def random_table(case: VectorCase, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    a = int(rng.integers(case.low, case.high + 1))
    sides = (a, case.members), (case.n - a, case.rest)
    members, rest = (rng.multinomial(count, rng.dirichlet(np.ones(len(laws)))).tolist() for count, laws in sides)
    return members, rest


@given(st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_every_table_gets_the_same_covariance(seed: int) -> None:
    case, rng = random_case(seed), np.random.default_rng(seed + 1)
    equalised = equalise(case)
    target = np.array(equalised.target)
    for _ in range(8):
        table = random_table(case, rng)
        noise = equalising_covariance(case, equalised, *table)
        own = case.own(*table)
        assert float(np.linalg.eigvalsh(noise)[0]) >= -1e-12 * float(np.trace(target))
        assert float(np.linalg.eigvalsh(target - own)[0]) >= -1e-9 * float(np.trace(target))  # Vmax dominates
        np.testing.assert_allclose(own + noise, target, rtol=0, atol=1e-11 * float(np.trace(target)))
        assert all(0 <= weight <= 1 for weight in part_weights(case, equalised.parts, *table))
    assert equalising_error(case, equalised, _whitened(target)[0]) < 1e-8


def test_the_positive_part_is_needed() -> None:
    """The mutant: Vmax taken as the larger end. Neither end dominates the other here."""
    flat, tall = ((1.0, 0.0), (0.0, 9.0)), ((9.0, 0.0), (0.0, 1.0))
    case = VectorCase(100, 20, 60, 40, (((0.0, 0.0), flat),), (((1.0, 1.0), tall),))
    ends = [case.own((a,), (100 - a,)) for a in (20, 60)]
    middle, target = case.own((40,), (60,)), np.array(equalise(case).target)
    for end in ends:
        assert float(np.linalg.eigvalsh(end - middle)[0]) < 0 <= float(np.linalg.eigvalsh(target - end)[0]) + 1e-15


@given(seed=st.integers(0, 10_000), tolerance=st.sampled_from([0.0, 0.1]))
@settings(max_examples=30, deadline=None)
def test_the_noise_hides_every_table(seed: int, tolerance: float) -> None:
    """The twin: two tables that differ in rows, true means from the box, distance by plain linear algebra."""
    case, rng = random_case(seed, tolerance=tolerance), np.random.default_rng(seed + 2)
    noise = least_group_covariance(case, 1.0, 1e-5, [0.001] * case.size)
    equalised = equalise(case)
    factor = np.array(noise.factor) if noise.factor else np.zeros((case.size, 1))
    total = np.array(equalised.target) + np.diag(np.array(noise.independent) ** 2) + factor @ factor.T
    mu = gaussian_mu(1.0, 1e-5)
    assert noise.upper <= 1e-5
    for _ in range(20):
        moved = rng.multinomial(case.apart, rng.dirichlet(np.ones(len(case.members)))).tolist()
        left = rng.multinomial(case.apart, rng.dirichlet(np.ones(len(case.rest)))).tolist()
        shift = (true_sum(case.members, moved, tolerance, rng) - true_sum(case.rest, left, tolerance, rng)) / case.n
        assert math.sqrt(shift @ np.linalg.solve(total, shift)) <= mu * (1 + 1e-9)


def true_sum(laws: Any, counts: list[int], tolerance: float, rng: np.random.Generator) -> Matrix:
    total = np.zeros(len(laws[0][0]))
    for count, (mean, covariance) in zip(counts, laws, strict=True):
        sds = np.sqrt(np.diag(np.array(covariance)))
        total += count * (np.array(mean) + tolerance * sds * rng.choice([-1.0, 1.0], size=len(sds)))
    return total


def test_noise_is_no_more_than_needed() -> None:
    """One direction: the trace of the positive part; one column: the scalar calibration."""
    case = replace(random_case(4, size=2), mean_tolerance=0.0)
    case = replace(case, members=case.members[:1], rest=case.rest[:1])
    noise = least_group_covariance(case, 1.0, 1e-5, [0.0, 0.0])
    target, (shift,) = np.array(equalise(case).target), map(np.array, case.shifts())
    unit = np.sqrt(np.diag(target))
    condition = np.outer(shift, shift) / gaussian_mu(1.0, 1e-5) ** 2 - target
    values = np.linalg.eigvalsh(condition / np.outer(unit, unit))
    spent = (
        sum(float(sum(x * x for x in row)) / u**2 for row, u in zip(noise.factor, unit, strict=True)) if noise.factor else 0.0
    )
    assert spent == pytest.approx(float(values[values > 0].sum()), rel=1e-5)


def test_one_column_is_the_scalar_case() -> None:
    vector = VectorCase(100, 25, 40, 15, (((36.0,), ((121.0,),)),), (((42.0,), ((144.0,),)),))
    scalar = GroupCase(100, 25, 40, 15, ((36.0, 11.0),), ((42.0, 12.0),))
    ((entry,),) = least_group_covariance(vector, 1.0, 1e-6, [0.0]).factor
    assert entry**2 == pytest.approx(least_group_noise(scalar, 1.0, 1e-6, "equalised"), rel=1e-5)


def test_less_noise_would_not_do() -> None:
    case = random_case(11, size=2)
    noise = least_group_covariance(case, 0.5, 1e-6, [0.0, 0.0])
    assert noise.factor
    less = tuple(tuple(0.99 * x for x in row) for row in noise.factor)
    assert vector_delta_upper(case, equalise(case), noise.independent, less, 0.5) > 1e-6


def test_the_diagonal_alone_would_miss() -> None:
    """The mutant: each average by itself. Together they tell the count."""
    covariance = ((60.0, -59.94), (-59.94, 60.0))
    case = VectorCase(100, 20, 40, 20, (((5.0, 5.0), covariance),), (((0.0, 0.0), covariance),))
    target, shift = np.array(equalise(case).target), np.array(case.shifts()[0])
    mu = gaussian_mu(1.0, 1e-5)
    alone = [max(0.0, (x / mu) ** 2 - v) for x, v in zip(shift, np.diag(target), strict=True)]
    distance = math.sqrt(shift @ np.linalg.solve(target + np.diag(alone), shift))
    assert gaussian_delta(1.0, distance) > 1e-4


def test_a_forgotten_part_is_charged() -> None:
    """The mutant: the part that is full where the count is low is left out; the check does not trust the lemma."""
    flat, tall = ((1.0, 0.0), (0.0, 9.0)), ((9.0, 0.0), (0.0, 1.0))
    case = VectorCase(100, 20, 60, 40, (((0.0, 0.0), flat),), (((1.0, 1.0), tall),))
    equalised, noise = equalise(case), least_group_covariance(case, 1.0, 1e-5, [0.01, 0.01])
    broken = Equalised(equalised.target, equalised.parts[1:])
    assert vector_delta_upper(case, equalised, noise.independent, noise.factor, 1.0) <= 1e-5
    assert vector_delta_upper(case, broken, noise.independent, noise.factor, 1.0) > 0.1


def test_tables_outside_of_the_range_get_noise_and_no_failure() -> None:
    case = random_case(3, size=2)
    equalised = equalise(case)
    for a in (0, case.n):
        table = [a] + [0] * (len(case.members) - 1), [case.n - a] + [0] * (len(case.rest) - 1)
        assert float(np.linalg.eigvalsh(equalising_covariance(case, equalised, *table))[0]) >= -1e-12
    with pytest.raises(UsageError, match="counts"):
        part_weights(case, equalised.parts, [case.n + 1], [0])


LAW = ((0.0, 1.0), ((1.0, 0.0), (0.0, 1.0)))
GOOD = VectorCase(100, 20, 40, 20, (LAW,), (LAW,))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"low": 40}, "counts"),
        ({"apart": 21}, "counts"),
        ({"mean_tolerance": math.nan}, r"tolerance\.mean"),
        ({"members": ()}, "categories"),
        ({"members": (((0.0, math.inf), LAW[1]),)}, "categories"),
        ({"members": ((LAW[0], ((1.0, 2.0), (2.0, 1.0))),)}, "categories"),
        ({"members": ((LAW[0], ((1.0, 0.5), (0.2, 1.0))),)}, "categories"),
        ({"members": ((LAW[0], ((0.0, 0.0), (0.0, 1.0))),)}, "categories"),
        ({"rest": (((0.0,), ((1.0,),)),)}, "categories"),
        ({"members": (((0.0,) * 9, tuple(tuple(float(i == j) for j in range(9)) for i in range(9))),)}, "columns"),
    ],
)
def test_what_is_no_case(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=f"^{says}"):
        replace(GOOD, **changed)


def test_averages_that_determine_each_other() -> None:
    same = ((1.0, 1.0), (1.0, 1.0))
    case = VectorCase(100, 20, 40, 20, (((0.0, 0.0), same),), (((1.0, 0.0), same),))
    with pytest.raises(RefusedError, match="determine each other"):
        vector_delta_upper(case, equalise(case), (0.0, 0.0), (), 1.0)
    assert least_group_covariance(case, 1.0, 1e-5, [0.1, 0.1]).upper <= 1e-5
    with pytest.raises(UsageError, match="floors"):
        least_group_covariance(case, 1.0, 1e-5, [0.1, math.nan])
