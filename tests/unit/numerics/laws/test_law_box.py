"""Boxes of laws: the split of a variance that shows the most, against a grid of members; halves make up the whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import parse_cases
from attrpriv.numerics.laws.law_box import Cell, MovingCases, Spread

CASES = parse_cases(["< 50", ">= 50"])
BOX = Cell((48.0, 52.0), (2.0, 3.0))


def moving(**changes: Any) -> MovingCases:
    told: dict[str, Any] = {"cases": CASES, "box": BOX, "form": "slope", "strength": 0.3, "query_sds": (0.8, 1.2)}
    return MovingCases(**(told | changes))


@pytest.mark.parametrize("noise", [0.0, 0.1, 4.0])
@pytest.mark.parametrize("strength", [0.0, 0.1, 0.3, 0.5, 2.0])
def test_no_member_shows_more_than_the_split(strength: float, noise: float) -> None:
    """Over slopes up to the bound and variances of F in the range, with the same noise."""
    for sd in (2.0, 2.7):
        worst = 0.0
        for slope in np.linspace(0, strength, 21):
            for query in np.linspace(0.8, 1.2, 21):
                explained = (slope * sd) ** 2
                if explained <= query**2 * (1 + 1e-12):
                    left = max(0.0, query**2 - explained) + noise
                    worst = max(worst, math.sqrt(explained / left) if left > 1e-12 else math.inf if explained else 0.0)
        found = moving(strength=strength).spread(sd).lam(noise)
        assert found >= worst * (1 - 1e-6) or math.isinf(found)
        if strength * sd <= 0.8:  # attained at the steepest slope and the least variance
            wanted = math.sqrt((strength * sd) ** 2 / (max(0.0, 0.64 - (strength * sd) ** 2) + noise)) if strength else 0.0
            assert found == pytest.approx(wanted, rel=1e-9)


def test_steep_slopes_explain_no_more_than_there_is() -> None:
    found = moving(strength=2.0).spread(2.0)
    assert found.explained == pytest.approx(1.44)
    assert found.residual == 0.0
    between = moving(strength=0.5).spread(2.0)
    assert between.explained == pytest.approx(1.0)
    assert between.residual == 0.0


def test_correlations_and_the_statistic_itself() -> None:
    found = moving(form="correlation", strength=0.6).spread(2.0)
    assert found.explained == pytest.approx(0.36 * 1.44)
    assert found.residual == pytest.approx(0.64 * 1.44)
    assert moving(form="correlation", strength=1.5).spread(2.0).residual == 0.0
    itself = moving(form="itself").spread(2.5)
    assert itself.explained == pytest.approx(6.25)
    assert itself.residual == 0.0
    assert moving(form="correlation", strength=0.6).correlation() == 0.6
    assert moving(form="correlation", strength=1.6).correlation() == 1.0
    assert moving(form="itself").correlation() == 1.0
    assert moving(strength=0.2).correlation() == pytest.approx(0.2 * 3.0 / 0.8)
    assert moving(strength=0.9).correlation() == 1.0


def test_noise_for_a_lambda() -> None:
    spread = Spread(2.0, 0.5)
    assert spread.lam(1.5) == pytest.approx(1.0, rel=1e-12)
    assert spread.lam(1.5) >= 1.0
    for lam in (0.3, 1.0, 1.9):
        assert spread.lam(spread.need(lam)) <= lam * (1 + 1e-12)
        assert spread.need(lam) == pytest.approx(2.0 / lam**2 - 0.5, rel=1e-10)
    assert spread.need(2.5) == 0.0
    assert Spread(0.0, 0.0).lam(0.0) == Spread(0.0, 0.0).need(0.1) == 0.0
    assert Spread(1.0, 0.0).lam(0.0) == math.inf


def test_cells() -> None:
    assert BOX.middle == (50.0, 2.5)
    assert set(BOX.corners) == {(48.0, 2.0), (48.0, 3.0), (52.0, 2.0), (52.0, 3.0)}
    assert Cell((1.0, 1.0), (2.0, 2.0)).corners == ((1.0, 2.0),)
    for wrong in (((2.0, 1.0), (1.0, 1.0)), ((1.0, 2.0), (0.0, 1.0)), ((1.0, 2.0), (2.0, 1.0)), ((1.0, math.inf), (1.0, 1.0))):
        with pytest.raises(UsageError):
            Cell(*wrong)


def test_halves_make_up_the_cell_and_cut_where_more_moves() -> None:
    wide = Cell((0.0, 4.0), (1.0, 2.0)).halves(1.0)
    assert wide == (Cell((0.0, 2.0), (1.0, 2.0)), Cell((2.0, 4.0), (1.0, 2.0)))
    tall = Cell((0.0, 1.0), (1.0, 2.0)).halves(1.0)
    assert tall == (Cell((0.0, 1.0), (1.0, 1.5)), Cell((0.0, 1.0), (1.5, 2.0)))
    even = Cell((0.0, 2.0), (1.0, 2.0)).halves(1.0)  # both move thresholds by 2
    assert even == (Cell((0.0, 1.0), (1.0, 2.0)), Cell((1.0, 2.0), (1.0, 2.0)))
    assert Cell((0.0, 0.0), (1.0, 1.0)).halves(1.0) is None
    assert Cell((0.0, 0.0), (1.0, 2.0)).halves(1.0) == (Cell((0.0, 0.0), (1.0, 1.5)), Cell((0.0, 0.0), (1.5, 2.0)))
    assert Cell((0.0, 8.0), (2.0, 4.0)).halves(3.0) == (Cell((0.0, 4.0), (2.0, 4.0)), Cell((4.0, 8.0), (2.0, 4.0)))
    assert Cell((0.0, 7.9), (2.0, 4.0)).halves(3.0) == (Cell((0.0, 7.9), (2.0, 3.0)), Cell((0.0, 7.9), (3.0, 4.0)))


def test_thresholds_of_a_box() -> None:
    low, high = moving().thresholds()
    assert low == pytest.approx(-1.0)
    assert high == pytest.approx(1.0)
    assert moving().thresholds(Cell((49.0, 49.0), (2.0, 2.0))) == pytest.approx((0.5, 0.5))
    assert next(one.parts[0].high for one in moving().at(48.0, 2.0)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "changes",
    [{"query_sds": (0.0, 1.0)}, {"query_sds": (1.2, 0.8)}, {"query_sds": (0.8, math.inf)}, {"strength": -0.1},
     {"strength": math.inf}, {"strength": math.nan}, {"cases": CASES[:1]}],
)  # fmt: skip
def test_what_is_no_box(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        moving(**changes)


def test_cells_that_no_float_divides() -> None:
    """Next to one another in one of both: the other is cut, even where it moves less; and in both: none is."""
    after = math.nextafter(1.0, 2.0)
    assert Cell((1.0, after), (1.0, after)).halves(1.0) is None
    assert Cell((1.0, after), (1.0, 1.0)).halves(1.0) is None
    assert Cell((1.0, 1.0), (1.0, after)).halves(0.0) is None
    assert Cell((1e16, 1e16 + 2), (1.0, 1.5)).halves(1.0) == (
        Cell((1e16, 1e16 + 2), (1.0, 1.25)),
        Cell((1e16, 1e16 + 2), (1.25, 1.5)),
    )
    for means, sds in (((-math.inf, 0.0), (1.0, 1.0)), ((0.0, math.inf), (1.0, 1.0)), ((0.0, math.nan), (1.0, 1.0))):
        with pytest.raises(UsageError):
            Cell(means, sds)
    with pytest.raises(UsageError):
        Cell((0.0, 1.0), (-1.0, 1.0))


def test_correlations_of_one_explain_all_there_is() -> None:
    for strength in (1.0, 1.5):
        found = moving(form="correlation", strength=strength).spread(2.0)
        assert found.explained == pytest.approx(1.44)
        assert found.residual == 0.0


def test_no_noise_is_needed_where_nothing_is_explained_or_enough_is_left() -> None:
    for lam in (0.5, 2.0):
        assert Spread(0.0, 3.0).need(lam) == Spread(0.0, 3.0).lam(lam) == 0.0
        wanted = 2.0 / lam**2
        assert wanted <= Spread(2.0, 0.0).need(lam) <= wanted * (1 + 1e-12)
        assert math.sqrt(2.0 / (0.5 + lam)) <= Spread(2.0, 0.5).lam(lam) <= math.sqrt(2.0 / (0.5 + lam)) * (1 + 1e-12)
    assert Spread(2.0, -0.5).lam(0.25) == math.inf


def test_standardised_sets_of_a_member() -> None:
    below, above = moving().at(49.0, 2.0)
    assert below.parts[0].high == pytest.approx(0.5)
    assert above.parts[0].low == pytest.approx(0.5)
    assert moving().thresholds(Cell((48.0, 51.0), (2.0, 4.0))) == pytest.approx((-0.5, 1.0))


def test_cells_away_from_zero_are_cut_by_how_wide_they_are() -> None:
    """(10, 12) is 2 wide, and (1, 2) counts 2.5 times; (1, 1.5) counts once, which is less than 1.9."""
    by_sd = Cell((10.0, 12.0), (1.0, 2.0)).halves(1.5)
    assert by_sd == (Cell((10.0, 12.0), (1.0, 1.5)), Cell((10.0, 12.0), (1.5, 2.0)))
    by_mean = Cell((10.0, 11.9), (1.0, 1.5)).halves(1.0)
    assert by_mean is not None
    assert [cell.sds for cell in by_mean] == [(1.0, 1.5)] * 2
