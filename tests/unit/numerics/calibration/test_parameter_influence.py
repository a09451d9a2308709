"""What the column's own parameter tells about the hidden one: the largest log ratio of two rows of weights."""

from __future__ import annotations

import math

import pytest

from attrpriv.numerics.calibration.parameter_counts import parameter_influence
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
