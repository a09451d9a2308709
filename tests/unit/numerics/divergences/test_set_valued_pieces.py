"""The bound for set-valued secrets, piece by piece: correlations, the whole, grids and brackets."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences import set_valued
from attrpriv.numerics.divergences.gaussian import gaussian_delta
from attrpriv.numerics.divergences.mixture import SetLaw, set_law
from attrpriv.numerics.divergences.set_valued import (
    _alternations,
    _brackets,
    _cut,
    _first_grid,
    _integrated,
    _Pair,
    _settled,
    _unseen,
    lam_of,
    mixture_hockey_stick,
    pointwise_hockey_stick,
)
from attrpriv.numerics.laws.intervals import IntervalUnion, parse_case
from tests.property.set_twin import brute, densities

Array = NDArray[np.float64]
SLIVER = parse_case("< -6 or [0, 0.2) or >= 6"), parse_case("[-6, 0) or [0.2, 6)")


def pair_of(a: str, b: str, lam: float, epsilon: float, reference: float = 0.0) -> _Pair:
    return _Pair(set_law(parse_case(a), lam, reference), set_law(parse_case(b), lam, reference), epsilon)


def twin(union: IntervalUnion, lam: float, w: Array) -> Array:
    return densities([(part.low, part.high) for part in union.parts], lam, w)


# ---------------------------------------------------------------------------------------------------------- correlations


@pytest.mark.parametrize("variance", [0.0, 1e-9, 0.3, 7.0])
@pytest.mark.parametrize("rho", [-1.0, -0.6, 1e-9, 0.3, 0.999999, 1.0])
def test_how_far_g_moves_an_answer(rho: float, variance: float) -> None:
    found = lam_of(rho, variance)
    with mpmath.workdps(40):
        rest = 1 - mpmath.mpf(rho) ** 2 + mpmath.mpf(variance)
        if rest == 0:
            assert found == math.inf
        else:
            truth = abs(mpmath.mpf(rho)) / mpmath.sqrt(rest)
            assert truth <= found <= truth * (1 + 1e-14)


def test_an_answer_that_g_does_not_move() -> None:
    for variance in (0.0, 2.0):
        assert lam_of(0.0, variance) == 0.0
    for rho in (-1.0000001, 1.0000001, math.nan, math.inf):
        with pytest.raises(UsageError, match="rho"):
            lam_of(rho, 1.0)
    for bad in (-1e-300, math.nan, math.inf):
        with pytest.raises(UsageError, match="variance"):
            lam_of(0.5, bad)


def test_points_that_are_a_gap_apart() -> None:
    assert pointwise_hockey_stick(0.8, 1.7, 0.4) == pytest.approx(gaussian_delta(0.4, 1.7 * 0.8), rel=1e-9)
    assert pointwise_hockey_stick(0.8, 1.7, 0.4) >= gaussian_delta(0.4, 1.7 * 0.8)
    assert pointwise_hockey_stick(0.0, 1.7, 0.4) == 0.0
    assert pointwise_hockey_stick(math.inf, 0.0, 0.4) == 0.0
    assert pointwise_hockey_stick(math.inf, 1e-9, 0.4) == 1.0
    assert pointwise_hockey_stick(1e200, 1e200, 0.4) == 1.0
    for gap, lam in ((-1e-9, 1.0), (math.nan, 1.0), (1.0, -1e-9), (1.0, math.inf), (1.0, math.nan), (-1.0, math.inf)):
        with pytest.raises(UsageError, match="gap and lam"):
            pointwise_hockey_stick(gap, lam, 1.0)


# ------------------------------------------------------------------------------------------------------------- the whole


def test_where_the_ratio_of_two_laws_crosses() -> None:
    """At outputs as they are, whatever point they are seen from while computing; near 0 and away from it."""
    for a, b, lam, epsilon in (
        ("[1, 2)", "[2, 3.5)", 1.3, 0.2),
        ("[-4, -2)", "[-2, -1.5)", 0.6, -0.3),
        ("abs < 1", "abs >= 1", 2.0, 0.1),
    ):
        first, second = parse_case(a), parse_case(b)
        found = mixture_hockey_stick(first, second, lam, epsilon)
        assert len(found.crossings) == (2 if "abs" in a else 1)
        at = np.array(found.crossings)
        ratio = np.log(twin(first, lam, at) / twin(second, lam, at))
        assert ratio == pytest.approx(np.full(len(at), epsilon), abs=1e-5)


def test_sets_and_a_lam_that_are_out_of_reach() -> None:
    a, b = parse_case("[0, 0.0001)"), parse_case("[0.0003, 0.0004)")
    found = mixture_hockey_stick(a, b, 1000.1, 0.5)
    assert (found.crossings, found.counted) == ((), False)
    assert found.value == found.upper == pytest.approx(gaussian_delta(0.5, 0.0002 * 1000.1 + 0.2), rel=0.6)
    assert found.upper == pointwise_hockey_stick(a.gap(b), 1000.1, 0.5)
    assert mixture_hockey_stick(a, b, 1000.0, 0.5).counted
    assert mixture_hockey_stick(a, b, 1000.1, 0.0).upper == pointwise_hockey_stick(a.gap(b), 1000.1, 0.0)
    for lam, epsilon in ((math.inf, 0.5), (1000.1, -0.1), (math.inf, -0.1)):
        assert mixture_hockey_stick(a, b, lam, epsilon).upper == 1.0
    for bad in (600.1, -600.1, math.nan):
        with pytest.raises(UsageError, match="epsilon"):
            mixture_hockey_stick(a, b, 0.5, bad)
    assert mixture_hockey_stick(a, b, 0.5, 600.0).upper < 1e-20
    assert mixture_hockey_stick(a, b, 0.5, -600.0).value == pytest.approx(1.0)
    for bad in (-1e-9, math.nan):
        with pytest.raises(UsageError, match="lam"):
            mixture_hockey_stick(a, b, bad, 0.5)


def test_what_may_be_unseen_is_in_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the grid is not refined at all: what is left out, and what every panel may hide, is added once."""
    monkeypatch.setattr(set_valued, "_ROUNDS", 0)
    a, b = SLIVER
    for lam, epsilon in ((0.5, 0.2), (1.5, 0.6)):
        found = mixture_hockey_stick(a, b, lam, epsilon)
        assert not found.counted
        pair = _Pair(set_law(a, lam, 0.0), set_law(b, lam, 0.0), epsilon)
        grid = _cut(pair, _first_grid(pair.a))
        hidden = float(_unseen(pair, grid).sum())
        assert hidden > 1e-4
        assert found.upper == pytest.approx(_integrated(pair, grid)[1] + hidden, rel=1e-9)
        assert found.upper >= brute([(p.low, p.high) for p in a.parts], [(p.low, p.high) for p in b.parts], lam, epsilon)


def test_the_mass_that_ranges_leave_out_is_in_the_bound() -> None:
    """1e-29, which is all there is where the first law never exceeds e^epsilon times the second."""
    found = mixture_hockey_stick(parse_case("[0, 1)"), parse_case("[1, 2)"), 0.1, 500.0)
    assert 1e-29 <= found.upper < 1.1e-29
    assert found.value == 0.0


@pytest.mark.parametrize(
    ("a", "b", "lam", "epsilon", "counted"),
    [
        ("[0, 1)", "[1, 2)", 1.0, 0.3, True),  # one crossing of one
        ("[0, 1)", "[1, 2)", 1.0, 30.0, True),  # none, of one: such come in pairs
        ("abs < 1", "abs >= 1", 1.0, 0.1, True),  # two of two
        ("abs < 1", "abs >= 1", 1.0, 5.0, False),  # none of two
        ("[0, 2)", "[1, 3)", 1.0, 0.1, False),  # sets that overlap: as many as there like to be
    ],
)
def test_when_all_crossings_are_counted(a: str, b: str, lam: float, epsilon: float, counted: bool) -> None:
    first, second = parse_case(a), parse_case(b)
    found = mixture_hockey_stick(first, second, lam, epsilon)
    assert found.counted is counted
    truth = brute([(p.low, p.high) for p in first.parts], [(p.low, p.high) for p in second.parts], lam, epsilon)
    assert truth * (1 - 1e-4) <= found.upper <= truth * (1 + 1e-4) + 1e-11


def test_a_sign_within_rounding_does_not_count() -> None:
    """A law against itself at epsilon 0: no sign is known, so nothing is counted, though no set is between."""
    law = set_law(parse_case("[0, 1)"), 1.0, 0.0)
    pair = _Pair(law, law, 0.0)
    grid, counted = _settled(pair, _first_grid(law), 0)
    assert not grid.known
    assert not counted
    known, counted = _settled(_Pair(law, law, 0.1), _first_grid(law), 0)
    assert known.known
    assert counted


def test_how_often_two_sets_alternate() -> None:
    for a, b, count in (
        ("[0, 1)", "[1, 2)", 1),
        ("[1, 2)", "[0, 1)", 1),
        ("abs < 1", "abs >= 1", 2),
        ("[0, 1) or [2, 3)", "[1, 2) or [3, 4)", 3),
        ("[0, 1) or [2, 3)", "[4, 5) or [6, 7)", 1),
        ("< -6 or [0, 0.2) or >= 6", "[-6, 0) or [0.2, 6)", 4),
    ):
        assert _alternations(parse_case(a), parse_case(b)) == count
    assert _alternations(parse_case("[0, 2)"), parse_case("[1, 3)")) >= 10**6


# --------------------------------------------------------------------------------------------------------------- the grid


def test_the_first_grid_covers_all_ranges_by_panels_of_one() -> None:
    for union, lam in (("[0, 0.5)", 0.0), ("< -30 or [30, 31)", 1.0), ("[-1, 1)", 7.3)):
        law = set_law(parse_case(union), lam, 0.0)
        edges = _first_grid(law)
        ranges = law.ranges()
        assert len(edges) == len(ranges)
        for points, (low, high) in zip(edges, ranges, strict=True):
            assert (points[0], points[-1]) == (low, high)
            assert len(points) == math.ceil(high - low) + 1
            assert (np.diff(points) <= 1.0).all()


def test_a_range_of_no_length_has_two_edges() -> None:
    class Short(SetLaw):
        def ranges(self) -> list[tuple[float, float]]:
            return [(1.0, 1.0), (2.0, 2.25)]

    assert [points.tolist() for points in _first_grid(Short((), 0.0, 0.0, 0.0))] == [[1.0, 1.0], [2.0, 2.25]]


@pytest.mark.parametrize("epsilon", [0.05, 1.2])
def test_panels_are_cut_where_the_sign_changes(epsilon: float) -> None:
    """They and the brackets tile what was given; each has the sign it is said to have."""
    pair = _Pair(set_law(SLIVER[0], 4.0, 0.0), set_law(SLIVER[1], 4.0, 0.0), epsilon)
    edges = [np.linspace(-30.0, -10.5, 18), np.linspace(-9.25, 9.0, 41), np.linspace(11.0, 30.0, 20)]
    grid = _cut(pair, edges)
    pieces = sorted([*zip(grid.left, grid.right, strict=True), *zip(grid.bracketed.left, grid.bracketed.right, strict=True)])
    for first, second in itertools.pairwise(pieces):
        assert first[1] == second[0] or (first[1], second[0]) in ((-10.5, -9.25), (9.0, 11.0))
    assert (pieces[0][0], pieces[-1][1]) == (-30.0, 30.0)
    for left, right, positive in zip(grid.left, grid.right, grid.positive, strict=True):
        assert (pair.excess(np.array([(left + right) / 2]))[0][0] > 0) == positive
    excess = np.concatenate([pair.excess(part)[0] for part in edges])
    assert grid.changes == np.count_nonzero((excess[1:] > 0) != (excess[:-1] > 0)) == 4
    assert grid.known
    assert len(grid.roots) == 4
    assert not grid.bracketed.positive.any()
    at = np.array([pair.excess(np.array([root]))[0][0] for root in grid.roots])
    assert np.abs(at).max() < 1e-4


def test_a_sign_that_changes_between_two_ranges_is_counted() -> None:
    pair = pair_of("[0, 1)", "[1, 2)", 2.0, 0.0)
    grid = _cut(pair, [np.array([-1.0, 0.5]), np.array([3.5, 5.0])])
    assert grid.changes == 1
    assert len(grid.roots) == 0


def test_brackets_of_several_crossings_at_once() -> None:
    """Falling and rising ones, in intervals of different widths: 1/128 of it after each of three rounds."""
    pair = _Pair(set_law(SLIVER[0], 4.0, 0.0), set_law(SLIVER[1], 4.0, 0.0), 0.05)
    low, high = np.array([-25.0, -1.5, 0.4, 20.0]), np.array([-20.0, 0.4, 3.0, 27.5])
    falling = pair.excess(low)[0] > 0
    assert falling.tolist() == [True, False, True, False]
    left, right = _brackets(pair, low, high, falling)
    assert right - left == pytest.approx((high - low) / 128**3, rel=1e-6)
    assert ((pair.excess(left)[0] > 0) == falling).all()
    assert ((pair.excess(right)[0] > 0) != falling).all()
    assert (left >= low).all()
    assert (right <= high).all()
    none = np.array([])
    assert [len(part) for part in _brackets(pair, none, none, none > 0)] == [0, 0]


def test_a_bracket_without_a_change_is_at_the_last_point() -> None:
    """As rounding may have it: then the bracket ends where the interval does."""
    pair = pair_of("[0, 1)", "[1, 2)", 2.0, 0.0)
    left, right = _brackets(pair, np.array([-3.0]), np.array([-2.0]), np.array([True]))
    assert right[0] == -2.0
    assert right[0] - left[0] == pytest.approx(1 / 128**3, rel=1e-6)


def test_a_grid_is_refined_where_something_may_be_unseen() -> None:
    """Until next to nothing is: at first it is 2e-4 and 6e-3 here (`test_what_may_be_unseen_is_in_the_bound`)."""
    for lam, epsilon in ((0.5, 0.2), (1.5, 0.6)):
        found = mixture_hockey_stick(*SLIVER, lam, epsilon)
        assert found.upper - found.value < 1e-10
