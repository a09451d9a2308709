"""Kernels in whole numbers: what is certified, and what a certificate notices."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.calibration.kernel import (
    SOLVED_SHARE,
    WEIGHT_BITS,
    _weights,
    certified_kernel,
    kernel_loss_upper,
    objective,
    require_size,
    weights_loss,
    whole_row,
)
from attrpriv.numerics.calibration.linear_program import optimal_kernel
from attrpriv.numerics.calibration.secret_laws import BITS, SecretLaws, float_laws, secret_laws
from attrpriv.numerics.laws.fixed_point import SHORT
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

EVENT = RecordLaws.event(0.4, 0.6)


def flat(size: int) -> list[float]:
    return [1 / size] * size


@pytest.mark.parametrize("epsilon", [0.01, 0.25, 1.0])
def test_rows_are_exact_and_the_promise_is_used_up(epsilon: float) -> None:
    pairs = CountPairs.all_of(10)
    kernel = certified_kernel(EVENT, pairs, epsilon, flat(11))
    assert {sum(row) for row in kernel.weights} == {2**WEIGHT_BITS}
    assert epsilon * (1 - 1e-6) < kernel.loss <= epsilon
    assert kernel_loss_upper(kernel.weights, EVENT, pairs) == kernel.loss


def test_the_exact_release_where_it_is_private() -> None:
    kernel = certified_kernel(EVENT, CountPairs.all_of(4), 2.0, flat(5))
    assert [row[f] for f, row in enumerate(kernel.weights)] == [2**WEIGHT_BITS] * 5
    assert kernel.loss == pytest.approx(1.621860, abs=1e-6)
    assert kernel.mixed == 0


def test_without_mixing_the_certificate_fails() -> None:
    """Planted fault: the solver's solution as it is."""
    pairs = CountPairs.all_of(50)
    laws = secret_laws(EVENT, pairs, "counts")
    solved = optimal_kernel(float_laws(laws), objective(EVENT, pairs, flat(51)), 1.0 * SOLVED_SHARE)
    assert kernel_loss_upper(_weights(solved.kernel, 0.0), EVENT, pairs) > 1.0
    kernel = certified_kernel(EVENT, pairs, 1.0, flat(51))
    assert 0 < kernel.mixed < 1e-5
    assert kernel.loss <= 1.0


def test_a_constant_answer_hides_everything() -> None:
    row = whole_row(flat(5), 2**WEIGHT_BITS)
    assert kernel_loss_upper([row] * 5, EVENT, CountPairs.all_of(4)) < 1e-30


def test_certified_for_the_wrong_counts_is_noticed() -> None:
    near = CountPairs(20, 8, 12, 4)
    kernel = certified_kernel(EVENT, near, 0.5, flat(5))
    assert kernel_loss_upper(kernel.weights, EVENT, near) <= 0.5
    assert kernel_loss_upper(kernel.weights, EVENT, CountPairs.all_of(20)) > 0.5
    assert kernel_loss_upper(kernel.weights, EVENT, CountPairs(20, 6, 12, 6)) > 0.5


def test_a_range_does_not_limit_the_corner() -> None:
    """Certified for the counts in the range at the corner is not certified for the box."""
    near, box = CountPairs(20, 8, 12, 4), RecordLaws.event((0.4, 0.6), (0.4, 0.6))
    inside = certified_kernel(EVENT, near, 0.5, flat(5))
    assert kernel_loss_upper(inside.weights, box, near, "corner") > 0.7
    # Real, not an artefact of the bound: a law of the box that shows it. All rows count with .4, or all but four of them.
    assert kernel_loss_upper(inside.weights, RecordLaws.event(0.6, 0.4), CountPairs(20, 0, 4, 4)) > 0.7
    kernel = certified_kernel(box, near, 0.5, flat(5), "corner")
    for theta in ((0.4, 0.6), (0.6, 0.4), (0.5, 0.41), (0.4, 0.4)):
        assert kernel_loss_upper(kernel.weights, RecordLaws.event(*theta), near) <= 0.5


def test_the_other_law_of_the_rows_is_noticed() -> None:
    pairs = CountPairs.all_of(6)
    kernel = certified_kernel(EVENT, pairs, 0.5, flat(7))
    assert kernel_loss_upper(kernel.weights, RecordLaws.event(0.39, 0.6), pairs) > 0.5


def test_what_is_not_a_kernel() -> None:
    pairs, whole = CountPairs.all_of(1), 2**WEIGHT_BITS
    for weights in ([[whole, 0]], [[whole, 0], [0, whole - 1]], [[whole, 0], [-1, whole + 1]], [[whole, 0], [0.5, whole]]):
        with pytest.raises(UsageError, match=r"^weights: "):
            kernel_loss_upper(weights, EVENT, pairs)


def test_a_zero_on_one_side() -> None:
    whole = 2**WEIGHT_BITS
    certain = RecordLaws.event(1.0, 0.0)
    assert kernel_loss_upper([[whole, 0], [0, whole]], certain, CountPairs.all_of(1)) == math.inf


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.5, 0.6, -0.1], [0.3, 0.3, 0.3], [math.nan, 0.5, 0.5]])
def test_a_prior_that_is_none(prior: list[float]) -> None:
    with pytest.raises(UsageError, match=r"^prior: must be probabilities of the counts 1..3"):
        certified_kernel(EVENT, CountPairs(4, 1, 3, 2), 1.0, prior)


def test_too_large_is_refused_before_anything_is_solved() -> None:
    require_size(EVENT, CountPairs.all_of(150))
    with pytest.raises(RefusedError, match="Got 152 and 152"):
        require_size(EVENT, CountPairs.all_of(151))
    with pytest.raises(RefusedError, match="Got 3 and 201"):
        certified_kernel(EVENT, CountPairs(200, 5, 7, 2), 1.0, flat(3))


def test_intervals_of_other_values_are_refused() -> None:
    wide = RecordLaws((0, 1, 2), ((0.2, 0.4),) * 3, ((0.3, 0.4),) * 3)
    with pytest.raises((RefusedError, UsageError)):
        certified_kernel(wide, CountPairs.all_of(3), 1.0, flat(4), "corner")
    with pytest.raises(RefusedError, match="only an event"):
        objective(wide, CountPairs.all_of(3), flat(4))


def test_masses_too_small_to_see_are_not_passed_over() -> None:
    """P(F = 2) is 1e-60, below the unit: it may differ by any factor, so the exact release is not certified."""
    whole, rare, pairs = 2**WEIGHT_BITS, RecordLaws.event(1e-30, 2e-30), CountPairs.all_of(2)
    assert kernel_loss_upper([[whole, 0, 0], [0, whole, 0], [0, 0, whole]], rare, pairs) == math.inf
    assert certified_kernel(rare, pairs, 0.1, flat(3)).loss <= 0.1


@pytest.mark.parametrize("unit", [5, 1_000, 2**100])
def test_what_masses_are_short_by_is_counted(unit: int) -> None:
    """Every mass may be larger by less than SHORT units: the largest ratio of two outputs over all such laws, in fractions."""
    rows = tuple((mass * unit, 2**BITS - mass * unit - SHORT) for mass in (3, 4, 9))
    whole = 2**WEIGHT_BITS
    weights = ((whole, 0), (whole // 4, whole - whole // 4))
    for apart in (1, 2):
        worst = Fraction(1)
        for a, b in itertools.permutations(range(3), 2):
            if abs(a - b) <= apart:
                for o in range(2):
                    more = sum((rows[a][k] + SHORT) * weights[k][o] for k in range(2))
                    worst = max(worst, Fraction(more, sum(rows[b][k] * weights[k][o] for k in range(2))))
        found = weights_loss(weights, SecretLaws(0, rows, apart))
        with mpmath.workdps(60):
            true = mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator)
            assert true <= mpmath.mpf(found) <= true * (1 + mpmath.mpf("1e-14"))
