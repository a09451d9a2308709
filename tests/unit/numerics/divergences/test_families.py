"""Distances of families by their definitions: rows moved one by one, and ordered laws by their distribution functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.numerics.divergences.families import _ordered_distance, _row_by_row
from attrpriv.numerics.laws.lattice import binomial_sum
from attrpriv.numerics.laws.records import RecordLaws

LAWS = RecordLaws((0, 1, 4), ((0.5, 0.5), (0.25, 0.25), (0.25, 0.25)), ((0.25, 0.25), (0.25, 0.25), (0.5, 0.5)))


@pytest.mark.parametrize("rows", [1, 3, 20])
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.07])
def test_rows_moved_one_by_one(rows: int, delta: float) -> None:
    """A row stays with 1/2, moves by 1 with 1/4 and by 3 with 1/4: the least w that the sum seldom exceeds."""
    law = np.ones(1)
    for _ in range(rows):
        law = np.convolve(law, [0.5, 0.25, 0.0, 0.25])
    above = 1 - np.cumsum(law)
    wanted = int(np.argmax(above <= delta * (1 - 1e-3)))
    assert abs(above - delta).min() > 2e-3 * delta or rows == 1
    assert _row_by_row(LAWS, rows, delta) == wanted
    assert _row_by_row(LAWS, rows, 0.0) == 3 * rows


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.5), (0.4, 0.45), (0.3, 0.3)])
@pytest.mark.parametrize("delta", [1e-6, 1e-2, 0.3])
def test_ordered_laws(p: float, q: float, delta: float) -> None:
    """The least w with P(X <= x) - P(Y <= x + w) <= delta for all x."""
    n = 30
    one, other = binom.cdf(np.arange(n + 1), n, p), binom.cdf(np.arange(2 * n + 2), n, q)
    wanted = next(w for w in range(n + 1) if (one - other[w : w + n + 1]).max() <= delta * (1 - 1e-9))
    assert _ordered_distance(binomial_sum(n, p, 0, p), binomial_sum(n, q, 0, q), delta) == wanted
    moved = binomial_sum(n, q, 0, q).shifted(5)
    if delta < 0.2:
        assert _ordered_distance(binomial_sum(n, p, 0, p), moved, delta) == wanted + 5
