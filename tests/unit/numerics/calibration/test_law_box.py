"""Noise for a whole box of distributions: proved on cells that cover it, and close to what some member needs."""

from __future__ import annotations

import math

import pytest

from attrpriv.errors import QueryError, UsageError
from attrpriv.numerics.calibration.set_valued import MovingNoise, moving_variance, set_valued_upper, set_valued_variance
from attrpriv.numerics.divergences.moving_sets import moving_upper
from attrpriv.numerics.laws.intervals import parse_case, parse_cases
from attrpriv.numerics.laws.law_box import Cell, MovingCases, Spread

HALVES = ["< 0", ">= 0"]


def moving(
    cases: list[str],
    means: tuple[float, float],
    sds: tuple[float, float] = (1.0, 1.0),
    form: str = "correlation",
    strength: float = 0.5,
    query_sds: tuple[float, float] = (1.0, 1.0),
) -> MovingCases:
    return MovingCases(parse_cases(cases), Cell(means, sds), form, strength, query_sds)  # type: ignore[arg-type]


def area(noise: MovingNoise) -> float:
    cells = [checked.cell for checked in noise.cells]
    return sum((c.means[1] - c.means[0]) * (c.sds[1] - c.sds[0]) for c in cells)


def needed(secret: MovingCases, mean: float, sd: float, variance: float) -> float:
    """H of one member at this noise."""
    return set_valued_upper(secret.at(mean, sd), secret.spread(sd).lam(variance), 1.0)[0]


def test_a_box_of_one_member_is_the_plain_calibration() -> None:
    for cases in (["< 1", ">= 1"], ["abs < 1", "abs >= 1"]):
        noise = moving_variance(moving(cases, (0.0, 0.0)), 1.0, 1e-5)
        plain = set_valued_variance(parse_cases(cases), 0.5, 1.0, 1e-5)
        assert noise.variance == pytest.approx(plain.variance, rel=1e-7)
        assert noise.upper <= 1e-5


def test_a_threshold_at_the_mean_ignores_the_sd() -> None:
    """The standardised threshold is 0 for every sd; a correlation box then needs exactly the same noise."""
    noise = moving_variance(moving(HALVES, (0.0, 0.0), (0.9, 1.1)), 1.0, 1e-5)
    assert noise.variance == pytest.approx(36.22068 / 4 - 0.75, rel=5e-4)
    assert len(noise.cells) == 1


def test_the_mean_s_tolerance_moves_the_threshold() -> None:
    """The mutant that takes the stated mean only: far too little one unit off."""
    secret = moving(HALVES, (-1.0, 1.0))
    noise = moving_variance(secret, 1.0, 1e-5)
    plain = set_valued_variance(parse_cases(HALVES), 0.5, 1.0, 1e-5)
    assert needed(secret, 1.0, 1.0, plain.variance) > 3e-5
    assert noise.attained == pytest.approx(51.9676 / 4 - 0.75, rel=1e-6)
    assert noise.attained <= noise.variance <= 1.01 * noise.attained + 0.01


@pytest.mark.parametrize(
    ("cases", "means", "sds"),
    [
        (HALVES, (-0.5, 0.5), (0.98, 1.02)),
        (["< 25", ">= 25"], (-1.0, 1.0), (0.98, 1.02)),
        (["abs < 1", "abs >= 1"], (-0.1, 0.1), (1.0, 1.0)),
        (["< -1", "[-1, 1)", ">= 1"], (0.0, 0.2), (1.0, 1.05)),
    ],
)
@pytest.mark.parametrize("form", ["slope", "correlation"])
def test_every_member_is_private(cases: list[str], means: tuple[float, float], sds: tuple[float, float], form: str) -> None:
    secret = moving(cases, means, sds, form, 0.4, (0.99, 1.01))
    noise = moving_variance(secret, 1.0, 1e-5)
    assert noise.attained <= noise.variance <= 1.15 * noise.attained + 0.02
    for i in range(5):
        for j in range(3):
            mean, sd = means[0] + i / 4 * (means[1] - means[0]), sds[0] + j / 2 * (sds[1] - sds[0])
            assert needed(secret, mean, sd, noise.variance) <= 1e-5


def test_the_cells_cover_the_box_and_hold_again() -> None:
    secret = moving(HALVES, (-1.0, 1.0), (0.98, 1.02), "slope", 0.3)
    noise = moving_variance(secret, 1.0, 1e-5)
    assert len(noise.cells) > 4
    assert area(noise) == pytest.approx(2.0 * 0.04, rel=1e-12)
    for checked in noise.cells:
        lam = secret.spread(checked.cell.sds[1]).lam(noise.variance)
        assert lam == checked.lam
        assert moving_upper(secret.cases, checked.cell, lam, 1.0)[0] <= 1e-5
    assert noise.upper == max(checked.upper for checked in noise.cells) <= 1e-5


def test_no_noise_where_none_is_needed_anywhere() -> None:
    noise = moving_variance(moving(HALVES, (-0.1, 0.1), strength=0.1), 1.0, 1e-5)
    assert noise.no_noise
    assert noise.attained == 0.0


def test_a_mask_counts_as_noise() -> None:
    secret = moving(HALVES, (-0.1, 0.1))
    free = moving_variance(secret, 1.0, 1e-5)
    assert moving_variance(secret, 1.0, 1e-5, least=20.0).variance == 20.0
    assert moving_variance(secret, 1.0, 1e-5, least=free.variance / 2).variance == pytest.approx(free.variance, rel=1e-3)


def test_the_query_is_the_secret() -> None:
    noise = moving_variance(moving(HALVES, (0.0, 0.0), (2.0, 2.0), "itself", 1.0, (2.0, 2.0)), 1.0, 1e-5)
    assert noise.variance == pytest.approx(4 * 36.22068, rel=1e-6)


def test_a_spread_is_the_worst_of_its_box() -> None:
    """Over slopes, query sds and noise: no member shows more than `spread` says."""
    secret = moving(HALVES, (0.0, 0.0), (1.0, 1.0), "slope", 0.9, (0.7, 1.2))
    for variance in (0.0, 0.1, 10.0):
        worst = secret.spread(1.0).lam(variance)
        for slope in (0.0, 0.3, 0.69, 0.71, 0.9):
            for sd in (0.7, 0.8, 0.95, 1.2):
                rest = sd**2 - slope**2
                if rest >= 0:
                    assert Spread(slope**2, rest).lam(variance) <= worst
    steep = moving(HALVES, (0.0, 0.0), (1.0, 1.0), "slope", 5.0, (0.7, 1.2)).spread(1.0)
    assert steep.explained == pytest.approx(1.44)
    assert steep.residual == 0.0


@pytest.mark.parametrize("form", ["slope", "correlation", "itself"])
def test_a_spread_grows_with_the_sd(form: str) -> None:
    secret = moving(HALVES, (0.0, 0.0), (0.5, 2.0), form, 0.6, (0.9, 1.1))
    for variance in (0.01, 1.0, 100.0):
        lams = [secret.spread(sd).lam(variance) for sd in (0.5, 0.7, 1.0, 1.5, 2.0)]
        assert lams == sorted(lams)


def test_need_and_lam_are_inverse_on_the_private_side() -> None:
    spread = Spread(0.3, 0.4)
    for lam in (1e-3, 0.2, 0.8):
        assert spread.lam(spread.need(lam)) <= lam * (1 + 1e-15)
    assert spread.need(5.0) == 0.0
    assert Spread(0.0, 0.0).lam(0.0) == 0.0
    assert Spread(1.0, 0.0).lam(0.0) == math.inf


def test_largest_correlation() -> None:
    assert moving(HALVES, (0.0, 0.0), (1.0, 1.0), "slope", 0.5, (0.8, 1.0)).correlation() == pytest.approx(0.625)
    assert moving(HALVES, (0.0, 0.0)).correlation() == 0.5
    assert moving(HALVES, (0.0, 0.0), form="itself").correlation() == 1.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_bad_numbers_are_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="strength: must be finite"):
        moving(HALVES, (0.0, 0.0), strength=bad)
    with pytest.raises(UsageError, match="query sds: must be"):
        moving(HALVES, (0.0, 0.0), query_sds=(1.0, bad))
    with pytest.raises(UsageError, match="least: must be finite"):
        moving_variance(moving(HALVES, (0.0, 0.0)), 1.0, 1e-5, least=bad)
    with pytest.raises(UsageError, match="epsilon: must be finite"):
        moving_variance(moving(HALVES, (0.0, 0.0)), bad, 1e-5)


def test_cases_must_be_two_and_disjoint() -> None:
    with pytest.raises(UsageError, match="needs at least two sets"):
        MovingCases((parse_case("< 0"),), Cell((0.0, 0.0), (1.0, 1.0)), "slope", 0.1, (1.0, 1.0))
    both = MovingCases((parse_case("< 1"), parse_case("> 0")), Cell((0.0, 0.0), (1.0, 1.0)), "slope", 0.1, (1.0, 1.0))
    with pytest.raises(QueryError, match="no value may be in two sets"):
        moving_variance(both, 1.0, 1e-5)


def test_a_cell_is_cut_where_it_moves_thresholds_more() -> None:
    by_mean = Cell((0.0, 1.0), (1.0, 1.1)).halves(1.0)
    by_sd = Cell((0.0, 1.0), (1.0, 1.1)).halves(50.0)
    assert by_mean == (Cell((0.0, 0.5), (1.0, 1.1)), Cell((0.5, 1.0), (1.0, 1.1)))
    assert by_sd == (Cell((0.0, 1.0), (1.0, 1.05)), Cell((0.0, 1.0), (1.05, 1.1)))
    assert Cell((0.0, 0.0), (1.0, 1.0)).halves(1.0) is None
