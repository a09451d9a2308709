"""The loss of the largest and the least outputs of near counts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attrpriv.methods.count_transport.hybrid import _loss


@pytest.mark.parametrize(("apart", "pairs"), [(1, [(1, 0), (0, 1), (2, 1), (1, 2)]), (2, [(0, 2), (2, 0), (1, 0), (1, 2)])])
def test_the_largest_ratio_of_near_counts(apart: int, pairs: list[tuple[int, int]]) -> None:
    """Every output of every two counts that are so near; a count has the largest and the least of its own laws too."""
    most = np.array([[0.30, 0.42, 0.30], [0.33, 0.40, 0.29], [0.36, 0.40, 0.25]])
    least = np.array([[0.29, 0.41, 0.29], [0.32, 0.39, 0.28], [0.35, 0.39, 0.24]])
    ratios = [math.log(most[a, o] / least[b, o]) for a, b in [*pairs, (0, 0), (1, 1), (2, 2)] for o in range(3)]
    found = _loss(most, least, apart)
    assert max(ratios) <= found <= max(ratios) * (1 + 1e-9) + 1e-9
    assert found < 0.5


def test_what_is_next_to_nothing_is_out_of_reach() -> None:
    most = np.full((2, 2), 0.5)
    for small in (0.0, math.nan):
        assert _loss(most, np.array([[0.5, 0.5], [0.5, small]]), 1) == math.inf
