"""How many rows tell as much, from first principles: best tests by enumeration, in exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from attrpriv.audit.tables import Draws, Statistic
from attrpriv.audit.told_rows import n_leaked, told_rows

SHARES = [(0.27, 0.38), (0.05, 0.1), (0.5, 0.52), (0.9, 0.99), (0.1, 0.9), (0.001, 0.5)]


def draws(scores: list[float], values: tuple[float, float], n: int, *, counted: bool) -> Draws:
    return Draws.of(Statistic("a secret", np.array(scores, np.float64), counted, 1.0), values, n)


def best_of_counts(n: int, inside: tuple[int, int], m: int) -> Fraction:
    """Right guesses of the best test that sees m of n rows, none twice, of which so many are inside."""
    return sum(max(Fraction(comb(k, j) * comb(n - k, m - j), comb(n, m)) for k in inside) for j in range(m + 1)) / Fraction(2)


def best_of_two_binomials(shares: tuple[float, float], m: int) -> float:
    """Right guesses of the best test that sees m independent rows."""
    laws = [[comb(m, j) * p**j * (1 - p) ** (m - j) for j in range(m + 1)] for p in shares]
    return math.fsum(map(max, *laws)) / 2


def test_the_best_test_of_counts_is_the_enumerated_one() -> None:
    n, inside = 30, (9, 15)
    found = told_rows(draws([0.0] * 7 + [1.0] * 3, (0.3, 0.5), n, counted=True))
    for m in range(1, n + 1):
        right = float(best_of_counts(n, inside, m))
        before = float(best_of_counts(n, inside, m - 1))
        assert before <= right
        assert found(right - 1e-9) <= m
        if right > before + 1e-8:
            assert found(before + 1e-9) == m
    assert found(0.5) == found(0.2) == 0


def test_the_best_test_of_sums_is_the_enumerated_one() -> None:
    """The sum is all that matters: the same as with every sequence of values."""
    made = draws([0.0, 1.0, 3.0], (1.0, 1.6), 6, counted=False)
    found = told_rows(made)
    right = []
    for m in range(1, 7):
        sequences = itertools.product(range(3), repeat=m)
        chances = ([math.prod(law[k] for k in one) for law in made.laws] for one in sequences)
        right.append(math.fsum(map(max, chances)) / 2)
    for m, (before, now) in enumerate(itertools.pairwise([0.5, *right]), start=1):
        assert before < now
        assert found(before + 1e-9) == m
        assert found(now - 1e-9) == m


@pytest.mark.parametrize("shares", SHARES)
def test_the_literature_s_number_is_a_lower_bound(shares: tuple[float, float]) -> None:
    """Whoever sees that many independent rows, or fewer, is right no more often, by the best test."""
    for m in range(1, 60):
        right = best_of_two_binomials(shares, m)
        if right < 1 - 1e-12:
            bound = n_leaked(right, shares)
            assert bound is not None
            assert 0 < bound <= m + 1e-9


def test_it_is_far_from_tight_and_its_ends() -> None:
    right = 0.9
    needed = next(m for m in range(1, 400) if best_of_two_binomials((0.27, 0.38), m) >= right)
    bound = n_leaked(right, (0.27, 0.38))
    assert bound is not None
    assert bound < 7 < 100 < needed
    assert n_leaked(0.5, (0.2, 0.3)) == 0
    assert n_leaked(1.0, (0.2, 0.3)) is None
    assert n_leaked(0.9, (0.3, 0.2)) == n_leaked(0.9, (0.2, 0.3))


def test_a_mutant_of_the_number_is_no_bound() -> None:
    """With twice as much, as from a coefficient taken for its square, it would ask for more rows than are needed."""
    bound = n_leaked(best_of_two_binomials((0.001, 0.5), 10), (0.001, 0.5))
    assert bound is not None
    assert bound <= 10 < 2 * bound
