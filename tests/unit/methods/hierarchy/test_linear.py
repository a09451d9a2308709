"""The linear form under a hierarchy: which share of the slope is taken, and the noise for the rest, never below the mask."""

from __future__ import annotations

import math
from typing import Any

import pytest
from scipy.optimize import brentq

from attrpriv.methods.base.clamp import Clamp, Read
from attrpriv.methods.hierarchy.proof import HierarchyCheck
from attrpriv.methods.hierarchy.transport import _linear

LOOSE: dict[str, Any] = {"query_between": 3.0, "hidden_between": 2.0, "correlation": 0.5, "query_within": 0.75}
TIED: dict[str, Any] = {"query_between": 3.0, "hidden_between": 12.0, "correlation": 0.99, "query_within": 0.25}
CENTRED = Clamp(reads=(Read(coefficients={"h": 1.0}, centre=0.0, mask=0.5),), slopes=((9.0,),), reach=0.0)
APART, MU, WITHIN = 0.6, 0.05, 0.25


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("numbers", "mask", "by_mask"), [(LOOSE, 0.4, True), (TIED, 0.4, False), (TIED, 2.0, True)])
def test_the_share_of_least_error_or_the_largest_that_the_mask_is_enough_for(
    numbers: dict[str, Any], mask: float, by_mask: bool, sign: int
) -> None:
    told = numbers | {"correlation": sign * numbers["correlation"]}
    check = HierarchyCheck(secret="s", apart=APART, hidden_within=WITHIN, **told)
    slope = told["correlation"] * told["query_between"] / told["hidden_between"]
    left = told["query_between"] ** 2 * (1 - told["correlation"] ** 2) + told["query_within"] ** 2
    widest, own = APART / MU, WITHIN**2 + 0.5**2

    def noise(share: float) -> float:
        """What is not taken moves over the widest pair, less what the answer varies by itself."""
        return float((slope * (1 - share) * widest) ** 2 - left - (slope * share) ** 2 * own)

    best = widest**2 / (widest**2 + told["hidden_between"] ** 2)
    enough = float(brentq(lambda share: noise(share) - mask**2, 0.0, 1.0, xtol=1e-14))
    assert (enough < best) is by_mask
    scale, clamp = _linear(check, CENTRED, mask, MU)
    assert clamp.slopes[0][0] == pytest.approx(slope * min(best, enough), rel=1e-6)
    assert scale == pytest.approx(mask if by_mask else math.sqrt(noise(best)), rel=1e-6)
    assert scale >= mask
