"""The noise that earlier releases about a chain leave room for."""

from __future__ import annotations

import pytest

from attrpriv.methods.chain_quilt.plan import _scale
from attrpriv.problem.refusal import Refusal
from tests.unit.methods.chain_quilt.test_proof import evidence


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("width", [1, 3])
def test_rates_add_up_and_hardly_anything_is_nothing(sigma: float, width: int) -> None:
    """1/sigma is what all of them may have; of that a millionth must be left."""
    assert _scale(width, sigma, None) == width * sigma
    for share in (0.25, 0.5, 1 - 2e-6):
        earlier = evidence(scale=sigma / share)
        left = 1 / sigma - earlier.rate()
        assert _scale(width, sigma, earlier) == pytest.approx(width / left, rel=1e-12)
        assert _scale(width, sigma, earlier) == pytest.approx(width * sigma / (1 - share), rel=1e-3)
    for share in (1 - 0.5e-6, 1.0, 2.0):
        with pytest.raises(Refusal):
            _scale(width, sigma, evidence(scale=sigma / share))
