"""What the column's own parameter tells about the hidden one: the largest log ratio of two rows of weights."""

from __future__ import annotations

import math

import pytest

from attrpriv.numerics.calibration.kernel import WEIGHT_BITS
from attrpriv.numerics.calibration.parameter_counts import parameter_influence, parameter_kernel_loss
from attrpriv.numerics.laws.parameter_counts import ParameterCounts

PROBABILITIES = ((0.2, 0.2), (0.3, 0.3), (0.6, 0.6))


@pytest.mark.parametrize(
    ("weights", "ratio"),
    [
        (((0.5, 0.3, 0.2),) * 2, 1.0),
        (((0.5, 0.3, 0.2), (0.45, 0.33, 0.22)), 0.5 / 0.45),
        (((0.5, 0.3, 0.2), (0.4, 0.3, 0.3), (0.2, 0.3, 0.5)), 2.5),
        (((0.5, 0.3, 0.2), (0.5, 0.5, 0.0)), math.inf),
        (((0.5, 0.5, 0.0), (0.4, 0.6, 0.0)), 1.25),
    ],
)
def test_it_is_the_largest_log_ratio_of_two_rows_either_way(weights: tuple[tuple[float, ...], ...], ratio: float) -> None:
    for rows in (weights, weights[::-1]):
        found = parameter_influence(ParameterCounts(4, PROBABILITIES, rows))
        assert found == math.inf == ratio or math.log(ratio) <= found <= math.log(ratio) + 1e-9


def test_weights_of_one_probability_are_added_up_first() -> None:
    """The same probability under two names tells nothing by its name."""
    same = ((0.3, 0.3), (0.3, 0.3), (0.6, 0.6))
    assert parameter_influence(ParameterCounts(4, same, ((0.5, 0.1, 0.4), (0.2, 0.4, 0.4)))) <= 1e-9


def test_weights_that_are_off_tell_more() -> None:
    """Each by a share, one up and the other down."""
    counts = ParameterCounts(4, PROBABILITIES, ((0.5, 0.3, 0.2), (0.4, 0.3, 0.3)), error=0.02)
    truth = math.log(0.3 / 0.2) + math.log(1.02 / 0.98)
    assert truth <= parameter_influence(counts) <= truth + 1e-9


def test_a_kernel_over_masses_that_are_off_loses_more() -> None:
    """What tells everything, on two rows of one probability each: the ratio of the masses, and by how much both may be off."""
    counts = ParameterCounts(2, ((0.3, 0.3), (0.5, 0.5)), ((1.0, 0.0), (0.0, 1.0)), error=0.02)
    exact = [[2**WEIGHT_BITS if o == f else 0 for o in range(3)] for f in range(3)]
    truth = math.log(0.25 / 0.09) + math.log((1 + counts.spread) / (1 - counts.spread))
    assert 0.039 < counts.spread < 0.042
    assert truth <= parameter_kernel_loss(exact, counts) <= truth + 1e-9
