"""What is rerun on chains and counts, against attrpriv's own and independent ways to compute the same."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

from attrpriv.numerics.calibration import chain_epsilon, chain_score
from attrpriv.numerics.divergences import gaussian_delta_upper
from attrpriv.numerics.laws import MarkovChain
from bench.peers import additive, quilts, song_chains

STAYS = [(0.6, 0.6), (0.9, 0.9), (0.8, 0.7), (0.3, 0.4)]


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize(("p", "q"), STAYS)
def test_the_exact_quilts_are_ours_where_one_chain_is_given(p: float, q: float, epsilon: float) -> None:
    start = np.array([0.3, 0.7])
    found = quilts.exact([(p, q)], 40, epsilon, [start])
    assert found == pytest.approx(chain_score(MarkovChain((0.3, 0.7), ((p, 1 - p), (1 - q, q))), 40, epsilon).sigma, rel=1e-6)
    assert found <= quilts.exact([(p, q)], 40, epsilon) * (1 + 1e-9), "from any start is no less"


def test_a_mistake_in_the_influence_is_found() -> None:
    """The law of the entry itself left out, as if all its states were as likely."""
    start, (p, q) = np.array([0.3, 0.7]), STAYS[2]
    right = chain_score(MarkovChain((0.3, 0.7), ((p, 1 - p), (1 - q, q))), 40, 1.0).sigma
    power = quilts.powers(p, q, 40)
    logs = np.log(np.maximum(power, 1e-300))
    left = np.array([(logs[1:, :, x] - logs[1:, :, y]).max(axis=1) for x, y in quilts.PAIRS])
    after = np.array([(logs[1:, x, :] - logs[1:, y, :]).max(axis=1) for x, y in quilts.PAIRS])
    wrong = max(quilts._node(node, 40, 1.0, left, after, np.zeros(2)) for node in range(1, 41))
    assert abs(wrong / right - 1) > 0.01
    assert quilts.exact([(p, q)], 40, 1.0, [start]) == pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize("alpha", song_chains.ALPHAS)
def test_the_closed_bound_is_between_the_exact_quilts_and_the_group(alpha: float) -> None:
    pairs = [(p, q) for p in (alpha, 1 - alpha) for q in (alpha, 1 - alpha)]
    closed = quilts.approximate(alpha, 60, 1.0)
    assert quilts.exact(pairs, 60, 1.0) <= closed <= quilts.group(60, 1.0)


def test_powers_and_gap_are_those_of_the_matrix() -> None:
    matrix = np.array([[0.8, 0.2], [0.3, 0.7]])
    assert np.allclose(quilts.powers(0.8, 0.7, 7)[7], np.linalg.matrix_power(matrix, 7))
    least, gap = quilts.gap_of(matrix)
    assert (least, gap) == pytest.approx((0.4, 1 - 0.5**2))


@pytest.mark.parametrize("b", [0.1, 1.0])
@pytest.mark.parametrize("stay", [0.6, 0.9])
def test_the_recursion_reaches_the_worst_of_all_mechanisms(stay: float, b: float) -> None:
    matrix = ((stay, 1 - stay), (1 - stay, stay))
    assert chain_epsilon([MarkovChain((0.5, 0.5), matrix)], 5, b) == pytest.approx(additive.optimum(matrix, 5, b), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_gaussian_noise_by_renyi_divergence_is_private_and_not_far_too_much(epsilon: float) -> None:
    sigma = additive.gaussian_scale(2.0, epsilon, 1e-6)
    assert gaussian_delta_upper(epsilon, 2.0 / sigma) <= 1e-6
    assert gaussian_delta_upper(epsilon, 2.0 / (0.85 * sigma)) > 1e-6


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_exact_gaussian_noise_is_the_least_that_is_private(epsilon: float) -> None:
    sigma = additive.exact_scale(2.0, epsilon, 1e-6)
    assert gaussian_delta_upper(epsilon, 2.0 / ((1 + 1e-6) * sigma)) <= 1e-6
    assert gaussian_delta_upper(epsilon, 2.0 / ((1 - 1e-3) * sigma)) > 1e-6
    assert sigma < additive.gaussian_scale(2.0, epsilon, 1e-6)


def test_the_distance_that_is_left_without_some_mass() -> None:
    laws = {0: {0: 0.5, 1: 0.49, 5: 0.01}, 1: {0: 0.5, 1: 0.5}}
    assert additive.nearly(laws, 1, 0.005) == 4
    assert additive.nearly(laws, 1, 0.02) == 0


def test_what_cannot_be_moved_is_the_least_of_all_plans() -> None:
    """Equal quantiles in a pair would leave half of it: a linear program over all plans is the twin."""
    laws = {0: {0: 0.5, 1: 0.5}, 1: {1: 0.5, 2: 0.5}}
    assert additive._left(laws[0], laws[1], 0) == 0.5
    random = np.random.default_rng(0)
    for _ in range(10):
        first, second = (
            dict(zip(random.choice(8, 4, replace=False).tolist(), random.dirichlet(np.ones(4)).tolist(), strict=True))
            for _ in range(2)
        )
        ways = list(itertools.product(first, second))
        sums = [[float(x == value) for x, _ in ways] for value in first] + [
            [float(y == value) for _, y in ways] for value in second
        ]
        for z in range(4):
            found = optimize.linprog(
                [-float(abs(x - y) <= z) for x, y in ways], A_eq=sums, b_eq=[*first.values(), *second.values()]
            )
            assert additive._left(first, second, z) == pytest.approx(1 + float(found.fun or 0.0), abs=1e-9)


def test_the_mean_of_noise_on_whole_numbers_is_that_of_its_law() -> None:
    q = math.exp(-1 / 0.7)
    law = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-200, 201)]
    direct = sum(abs(k) * p for k, p in zip(range(-200, 201), law, strict=True))
    assert song_chains.mean_absolute(0.7, whole=True) == pytest.approx(direct)
