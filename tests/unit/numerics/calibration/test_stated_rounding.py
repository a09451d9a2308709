"""How far sums over written laws may be off, in floats so coarse that each part of the bound can be seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.numerics.calibration import stated_laws as module
from attrpriv.numerics.laws.lattice_law import LatticeLaw
from attrpriv.numerics.laws.stated import StatedLaws, WholeLaw

SINGLE = StatedLaws((0, 1, 4), (((0.5, 0.5), (0.3, 0.3), (0.2, 0.2)), ((0.2, 0.2), (0.3, 0.3), (0.5, 0.5))), 1)
BOXES = StatedLaws((0, 1, 4), (((0.4, 0.6), (0.2, 0.4), (0.1, 0.2)), ((0.2, 0.3), (0.3, 0.5), (0.3, 0.6))), 1)
DISTANCE = np.abs(np.subtract.outer(np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 1.0, 4.0])))
WEIGHT = np.exp(-DISTANCE / 3)


def filled_up(law: WholeLaw, distances: Sequence[float], weight: NDArray[np.float64]) -> tuple[float, float]:
    """The largest and the least sum of the box: what is left goes to the nearest values first, or to the furthest."""
    near = sorted(range(len(distances)), key=distances.__getitem__)
    ends = []
    for order in (near, near[::-1]):
        filled, left = [low / law.total for low in law.lows], law.rest / law.total
        for k in order:
            more = min(left, law.caps[k] / law.total)
            filled[k], left = filled[k] + more, left - more
        ends.append(float(np.array(filled) @ weight))
    return ends[0], ends[1]


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNIT", 1e-4)
    monkeypatch.setattr(module, "_FLOOR", 1e-3)
    monkeypatch.setattr(module, "SOLVED_UP", 1.0)


@pytest.mark.usefixtures("coarse")
def test_sums_of_single_laws_are_off_by_their_shares_and_what_underflows() -> None:
    """The error of the weights, two roundings a term and some more; four numbers a term that may have been lost."""
    share, floor = 0.05 + (2 * 3 + 16) * 1e-4, 4 * 3 * 1e-3
    base = WEIGHT @ np.array([0.5, 0.3, 0.2])
    most, least = module._outputs(SINGLE.whole()[0], DISTANCE, WEIGHT, 0.05)
    assert most == pytest.approx(base * (1 + share) + floor, rel=1e-12)
    assert least == pytest.approx(base * (1 - share) - floor, rel=1e-12)
    _, none = module._outputs(SINGLE.whole()[0], DISTANCE, WEIGHT * 1e-3, 0.05)
    assert none.tolist() == [0.0] * 4


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("which", [0, 1])
def test_sums_of_boxes_are_off_by_what_fills_them_up_too(which: int) -> None:
    law = BOXES.whole()[which]
    lows, caps = (np.array(numbers, dtype=float) / law.total for numbers in (law.lows, law.caps))
    share, floor = 0.05 + (2 * 3 + 16) * 1e-4, 4 * 3 * 1e-3
    loose = 3 * (4 * 3 + 16) * 1e-4 * max(1.0, caps.sum())
    mosts, leasts = module._outputs(law, DISTANCE, WEIGHT, 0.05)
    for o in range(4):
        ends = filled_up(law, DISTANCE[o].tolist(), WEIGHT[o])
        furthest = loose * WEIGHT[o][int(np.argmin(DISTANCE[o]))]
        assert mosts[o] == pytest.approx(ends[0] * (1 + share) + furthest + floor, rel=1e-12)
        sure = max(0.0, float(lows @ WEIGHT[o]) * (1 - share) - floor)
        assert leasts[o] == pytest.approx(max(sure, ends[1] * (1 - share) - furthest - floor), rel=1e-12)


def test_what_boxes_have_for_sure_stands_where_rounding_leaves_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNIT", 0.02)
    monkeypatch.setattr(module, "SOLVED_UP", 1.0)
    law = BOXES.whole()[1]
    lows = np.array(law.lows, dtype=float) / law.total
    _, least = module._outputs(law, DISTANCE, WEIGHT, 0.05)
    assert least == pytest.approx((WEIGHT @ lows) * (1 - 0.05 - (2 * 3 + 16) * 0.02), rel=1e-12)


@pytest.mark.parametrize("laws", [SINGLE, BOXES])
@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_a_delta_adds_up_every_output_that_the_window_has(
    laws: StatedLaws, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise on three numbers, each with much of it: an output left out at either end would be seen."""
    masses = np.array([0.3, 0.3, 0.4])
    monkeypatch.setattr(module, "noise_law", lambda *_: LatticeLaw(-1, masses, 0.0, 0.0))
    found = module.stated_delta(laws, "gaussian", 1.0, epsilon)
    worst = 0.0
    bounds = []
    for law in laws.whole():
        weights = [np.array([masses[o - f + 1] if -1 <= o - f <= 1 else 0.0 for f in (0, 1, 4)]) for o in range(-1, 6)]
        bounds.append(np.array([filled_up(law, [abs(o - f) for f in (0, 1, 4)], weights[o + 1]) for o in range(-1, 6)]))
    for a, b in ((0, 1), (1, 0)):
        worst = max(worst, float(np.maximum(0.0, bounds[a][:, 0] - np.exp(epsilon) * bounds[b][:, 1]).sum()))
    assert worst <= found <= worst + 1e-9
