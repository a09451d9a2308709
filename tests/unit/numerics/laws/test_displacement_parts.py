"""How far sorted rows move, part by part: each bound against its own definition by enumeration, from both sides."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import displacement
from attrpriv.numerics.laws.breaks import SortedCell
from attrpriv.numerics.laws.displacement import failure_of, likely, massart_log_tail, never_exceeded

Array = NDArray[np.float64]

# Two cells far from 0, neither symmetric nor of width 1; the second one has public values, with a tie.
EVEN = SortedCell(2.0, 3.5, np.array([2.25, 3.0, 3.125]))
VALUES = SortedCell(-5.0, -3.0, np.array([-4.75, -4.0, -3.5, -3.25]), np.array([-4.875, -4.5, -4.5, -3.75, -3.125]))
SINGLE = SortedCell(7.0, 9.0, np.array([7.75]))


def linear(d: Array) -> Array:
    return 1 + 0.5 * d


def price_of(cells: list[SortedCell], weight: Callable[[Array], Array] | None = None) -> displacement._Price:
    return displacement._Price.of(cells, weight)


# --- places and prices -------------------------------------------------------------------------------------------------------


def below(cell: SortedCell, share: float) -> float:
    """G^-1: the least value with at least this share at or below it; the low end of a share of 0."""
    if cell.values is None:
        return cell.low + min(1.0, max(0.0, share)) * cell.width
    if share <= 0:
        return cell.low
    found = [x for x in cell.values.tolist() if np.mean(cell.values <= x) >= share - 1e-12]
    return float(min(found, default=cell.values[-1]))


def above(cell: SortedCell, share: float) -> float:
    """G^-1 just above: the least value with more than this share at or below it; the high end from a share of 1 on."""
    if cell.values is None:
        return cell.low + min(1.0, max(0.0, share)) * cell.width
    found = [x for x in cell.values.tolist() if np.mean(cell.values <= x) > share + 1e-12]
    return min(found, default=cell.high)


@pytest.mark.parametrize("width", [0.25, 0.5, 1.0, 1.5])
def test_a_weight_counts_whatever_the_widest_cell_is(width: float) -> None:
    """A third of the way in, the furthest end is two thirds away: three times the square of that."""
    cell = SortedCell(2.0, 2.0 + width, np.array([2.0 + width / 3]))
    furthest = (2 * width / 3) ** 2
    assert never_exceeded([cell]) == pytest.approx(furthest, rel=1e-9)
    assert never_exceeded([cell], lambda d: 3.0 + 0.0 * d) == pytest.approx(3 * furthest, rel=1e-9)


@pytest.mark.parametrize("cell", [EVEN, VALUES, SortedCell(1.0, 4.0, np.array([2.0]), np.array([3.0]))])
def test_places_are_quantiles_by_their_definition(cell: SortedCell) -> None:
    shares = np.array([-0.3, 0.0, 0.1, 0.2, 1 / 3, 0.4, 0.5, 0.6, 0.7999, 0.8, 0.95, 1.0, 1.4])
    low = displacement._places(cell, shares, upper=False)
    high = displacement._places(cell, shares, upper=True)
    assert low == pytest.approx([below(cell, share) - cell.low for share in shares.tolist()], abs=1e-12)
    assert high == pytest.approx([above(cell, share) - cell.low for share in shares.tolist()], abs=1e-12)


@pytest.mark.parametrize("width", [0.25, 3.0])
def test_a_weight_is_read_at_the_next_place_of_its_table(width: float) -> None:
    price = price_of([SortedCell(0.0, width, np.array([])), SortedCell(5.0, 5.0 + width / 2, np.array([]))], linear)
    step = width / 1024
    d = np.append(step * (np.array([0.0, 1.0, 2.0, 255.0, 511.0, 700.0, 1022.0, 1023.0]) + 0.5), width)
    found = price.of_distance(d, width)
    assert np.all(found >= linear(d) * d * d)
    assert found == pytest.approx(linear(np.ceil(d / step) * step) * d * d, rel=1e-9, abs=0.0)
    assert price.of_distance(np.array([-1.0, -0.1]), width) == pytest.approx([0.0, 0.0], abs=1e-12)
    free = price_of([EVEN])
    assert free.of_distance(np.array([-1.0, 0.0, 0.5, 1.5]), 1.5) == pytest.approx([0.0, 0.0, 0.25, 2.25], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    "weight",
    [
        lambda d: 0.999 + d,
        lambda d: 1 + 1 / (1 + d),
        lambda d: 1 + np.sin(3 * d),
        lambda d: np.where(d > 1, np.inf, 1.0),
        lambda d: np.full_like(d, np.nan),
    ],
)
def test_a_weight_is_finite_and_increases_from_1(weight: Callable[[Array], Array]) -> None:
    with pytest.raises(UsageError, match="weight: "):
        price_of([EVEN], weight)
    assert price_of([SortedCell(1.0, 1.0, np.ones(2))], weight).table is None
    assert price_of([EVEN], lambda d: np.ones_like(d)).of_distance(np.array([0.5]), 1.5) == pytest.approx([0.25])


def test_the_furthest_that_rows_can_be() -> None:
    """Each row from its reference to the end that is further away."""
    assert never_exceeded([EVEN]) == pytest.approx(1.25**2 + 1.0**2 + 1.125**2, rel=1e-12)
    assert never_exceeded([EVEN, VALUES, EVEN]) == pytest.approx(
        2 * (1.25**2 + 1.0**2 + 1.125**2) + 1.75**2 + 1.0**2 + 1.5**2 + 1.75**2, rel=1e-12
    )
    assert never_exceeded([SortedCell(1.0, 1.5, np.array([1.125]))]) == pytest.approx(0.375**2, rel=1e-12)
    weighted = 1.25**2 * 1.625 + 1.0**2 * 1.5 + 1.125**2 * 1.5625
    assert weighted <= never_exceeded([EVEN], linear) <= weighted * 1.001


# --- the moment of small cells -----------------------------------------------------------------------------------------------


def listed(cell: SortedCell, theta: float, shift: float, half: int, price: displacement._Price) -> float:
    """log of the sum over all ways in which sorted draws fall into 2 half parts, each with the largest price of its part."""
    g, m = 2 * half, cell.rows
    moments = np.zeros((m, g))
    for k, i in itertools.product(range(m), range(g)):
        low, high = below(cell, i / g - shift), above(cell, (i + 1) / g + shift)
        furthest = max(high - float(cell.references[k]), float(cell.references[k]) - low)
        moments[k, i] = math.exp(theta * float(price.of_distance(np.array([furthest]), cell.width)[0]))
    total = 0.0
    for parts in itertools.combinations_with_replacement(range(g), m):
        ways = math.factorial(m) / math.prod(math.factorial(parts.count(i)) for i in set(parts))
        total += ways / g**m * math.prod(float(moments[k, i]) for k, i in enumerate(parts))
    return math.log(total)


@pytest.mark.parametrize("weight", [None, linear])
@pytest.mark.parametrize("shift", [0.0, 0.07])
@pytest.mark.parametrize("theta", [0.4, 3.0])
def test_cells_of_similar_size_by_listing_all_draws(
    theta: float, shift: float, weight: Callable[[Array], Array] | None
) -> None:
    """Cells of three and of four rows are computed together, in parts of the larger one: 2 x ceil(2 sqrt 4) of them."""
    price = price_of([EVEN, VALUES], weight)
    found = displacement._by_order([EVEN, VALUES], theta, shift, price, 2)
    for cell, one in zip([EVEN, VALUES], found.tolist(), strict=True):
        wanted = listed(cell, theta, shift, 4, price)
        assert wanted <= one <= wanted + 2e-8


def test_cells_that_are_alone_by_listing() -> None:
    """In 2 ceil(2 sqrt 3) and 2 ceil(3 sqrt 1) parts."""
    found = displacement._by_order([EVEN], 0.8, 0.03, price_of([EVEN]), 2)
    assert found[0] == pytest.approx(listed(EVEN, 0.8, 0.03, 4, price_of([EVEN])), abs=2e-8)
    found = displacement._by_order([SINGLE, EVEN], 0.8, 0.03, price_of([SINGLE]), 2)
    assert found[0] == pytest.approx(listed(SINGLE, 0.8, 0.03, 4, price_of([SINGLE])), abs=2e-8)
    found = displacement._by_order([SINGLE], 1.5, 0.03, price_of([SINGLE]), 3)
    assert found[0] == pytest.approx(listed(SINGLE, 1.5, 0.03, 3, price_of([SINGLE])), abs=2e-8)


@pytest.mark.parametrize(("size", "first"), [(0.5, 4), (5.5, 6), (40.0, 9)])
def test_one_part_is_its_first_terms_and_a_geometric_series(size: float, first: int) -> None:
    """sum over c < f of A^c/c!, and from A^f/f! on a series with the ratio A/(f + 1); A moves on by one draw."""
    rng = np.random.default_rng(first)
    now, tilt = rng.random((2, 10)), size * rng.random((2, 9))
    tilt[0, 3] = size
    found = displacement._one_part(now, tilt)
    for line, ratio, bound in zip(now, tilt, found, strict=True):
        matrix = np.diag(ratio, -1)
        true, term = np.zeros(10), line
        for c in range(first):
            true, term = true + term, matrix @ term / (c + 1)
        true = true + np.linalg.solve(np.eye(10) - matrix / (first + 1), term)
        assert bound == pytest.approx(true, rel=1e-12)


def test_a_geometric_series_by_its_recursion() -> None:
    rng = np.random.default_rng(4)
    term, ratio = rng.random((2, 11)), rng.random((2, 10))
    found = displacement._geometric(term.copy(), ratio)
    wanted = term.copy()
    for n in range(1, 11):
        wanted[:, n] += ratio[:, n - 1] * wanted[:, n - 1]
    assert found == pytest.approx(wanted, rel=1e-13)


# --- cells together ----------------------------------------------------------------------------------------------------------


def test_cells_of_one_shape_are_computed_once_and_counted_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """At other places, not at other sizes; those of 3 and 4 rows by listing, that of 5 rows as a large one."""
    monkeypatch.setattr(displacement, "_LARGEST", 4)
    big = SortedCell(0.0, 1.0, np.array([0.1, 0.3, 0.5, 0.7, 0.875]))
    moved = SortedCell(12.0, 13.5, EVEN.references + 10.0)
    empty, point = SortedCell(0.0, 1.0, np.array([])), SortedCell(1.0, 1.0, np.ones(3))
    cells = [EVEN, big, VALUES, moved, empty, EVEN, point]
    price = price_of(cells)
    small = displacement._by_order([EVEN, VALUES], 0.8, 0.02, price, 16)
    wanted = 3 * small[0] + small[1] + displacement._by_massart(big, 0.8, 0.02, price)
    assert displacement._log_moment(cells, 0.8, 0.02, price, 16) == pytest.approx(wanted, rel=2e-9)


@pytest.mark.parametrize(
    ("place", "values"),
    [(0.625, [0.5, 0.875]), (0.625, [0.375, 0.75]), (0.375, [0.625, 1.0]), (0.375, [0.5, 0.875]), (0.5, [0.625, 1.0])],
)
def test_cells_of_different_shape_are_not_mistaken_for_one_another(place: float, values: list[float]) -> None:
    """Equal widths, and references or public values that are the same, or whose distance from the low end or sum with it is."""
    cells = [
        SortedCell(0.0, 1.0, np.array([0.5]), np.array([0.5, 0.875])),
        SortedCell(0.125, 1.125, np.array([place]), np.array(values)),
    ]
    price = price_of(cells)
    apart = [displacement._log_moment([cell], 2.0, 0.0, price, 16) for cell in cells]
    assert apart[0] != pytest.approx(apart[1], rel=0.02)
    assert displacement._log_moment(cells, 2.0, 0.0, price, 16) == pytest.approx(sum(apart), rel=1e-9)


def test_what_is_certain_is_never_exceeded_by_a_moment() -> None:
    """Where a tilt leaves the floats, and where the shift is everything."""
    certain = 1.25**2 + 1.0**2 + 1.125**2
    price = price_of([EVEN])
    assert displacement._log_moment([EVEN], 1e4, 0.0, price, 16) == pytest.approx(1e4 * certain, rel=1e-8)
    assert displacement._log_moment([EVEN], 0.5, 1.0, price, 16) == pytest.approx(0.5 * certain, rel=1e-8)


def test_the_failure_is_the_moment_against_the_bound() -> None:
    cells = [EVEN, VALUES]
    moment = displacement._log_moment(cells, 1.2, 0.05, price_of(cells), 48)
    assert failure_of(cells, 6.0, 1.2, 0.05) == pytest.approx(math.exp(moment - 1.2 * 6.0), rel=1e-9)
    assert failure_of(cells, 0.0, 1.2, 0.05) == 1.0
    found = likely(cells, 1e-3, 0.05)
    assert found.failure == 1e-3
    assert found.shift == 0.05
    assert failure_of(cells, found.most, found.theta, 0.05) == pytest.approx(1e-3, rel=1e-6)
    heavy = likely(cells, 0.2, 0.0, linear)
    assert failure_of(cells, heavy.most, heavy.theta, 0.0, linear) == pytest.approx(0.2, rel=1e-6)


def test_a_certain_bound_has_no_tilt() -> None:
    most = never_exceeded([EVEN])
    assert failure_of([EVEN], most, 0.0, 0.5) == 0.0
    assert failure_of([EVEN], math.nextafter(most, 0.0), 0.0, 0.5) == 1.0
    assert failure_of([EVEN], most, 0.0, 0.5, linear) == 1.0
    found = likely([SortedCell(1.0, 1.0, np.ones(3))], 0.25, 0.125)
    assert (found.most, found.failure, found.theta, found.shift) == (0.0, 0.0, 0.0, 0.125)
    found = likely([EVEN], 1e-300, 0.125)
    assert (found.most, found.failure, found.theta, found.shift) == (most, 0.0, 0.0, 0.125)


@pytest.mark.parametrize(
    ("most", "theta"), [(-1e-9, 1.0), (math.inf, 1.0), (math.nan, 1.0), (1.0, -1e-9), (1.0, math.inf), (1.0, math.nan)]
)
def test_bounds_and_tilts_are_finite_and_not_negative(most: float, theta: float) -> None:
    with pytest.raises(UsageError, match="displacement: "):
        failure_of([EVEN], most, theta, 0.0)


def test_failures_and_shifts_just_inside_and_just_outside() -> None:
    for failure, shift in ((0.0, 0.1), (1.0, 0.1), (1.5, 0.1), (0.5, -1e-9), (0.5, 1 + 1e-9), (0.5, 1.5)):
        with pytest.raises(UsageError):
            likely([EVEN], failure, shift)
    for failure, shift in ((1e-9, 0.0), (0.999, 1.0)):
        assert likely([EVEN], failure, shift).most <= never_exceeded([EVEN])
    for shift in (-1e-9, 1 + 1e-9):
        with pytest.raises(UsageError):
            failure_of([EVEN], 1.0, 1.0, shift)


# --- large cells -------------------------------------------------------------------------------------------------------------


def test_massarts_tail() -> None:
    assert massart_log_tail(np.array([0.0, 0.05, 0.5, 0.75]), 6) == pytest.approx(
        [0.0, 0.0, math.log(2) - 3.0, math.log(2) - 6.75]
    )


@pytest.mark.parametrize("m", [1, 2, 7, 50])
def test_where_large_cells_are_looked_at(m: int) -> None:
    """From where Massart's bound is 1, in steps of 1/64 of a root of the rows, to the largest distance there is."""
    far = displacement._far(m)
    assert 2 * math.exp(-2 * m * far[0] ** 2) == pytest.approx(1)
    assert np.diff(far[:-1]) == pytest.approx(1 / 64 / math.sqrt(m))
    assert far[-1] == 1.0
    assert far[-2] < 1.0 <= far[-2] + 1.0001 / 64 / math.sqrt(m)


@pytest.mark.parametrize("cell", [EVEN, VALUES, SINGLE])
@pytest.mark.parametrize("weight", [None, linear])
def test_the_bound_of_a_large_cell_by_quantiles(cell: SortedCell, weight: Callable[[Array], Array] | None) -> None:
    """Row k of m is between G^-1(k/m - y) and G^-1 just above (k - 1)/m + y, for y the step's upper end and the shift."""
    m, shift, price = cell.rows, 0.0625, price_of([cell], weight)
    found = displacement._massart_bounds(cell, shift, price)
    far = displacement._far(m)
    assert len(found) == far.size - 1
    for y, bound in list(zip((far[1:] + shift).tolist(), found, strict=True))[::5]:
        moved = [
            max(above(cell, k / m + y) - reference, reference - below(cell, (k + 1) / m - y))
            for k, reference in enumerate(cell.references.tolist())
        ]
        assert bound == pytest.approx(float(np.sum(price.of_distance(np.array(moved), cell.width))), rel=1e-9)


@pytest.mark.parametrize("theta", [0.2, 2.5])
@pytest.mark.parametrize("cell", [EVEN, VALUES])
def test_the_moment_of_a_large_cell_is_a_sum_over_steps(cell: SortedCell, theta: float) -> None:
    """The chance to be between two places, with the bound at the upper one; at the last place, all that is left."""
    price, far = price_of([cell]), displacement._far(cell.rows)
    tails = [min(1.0, 2 * math.exp(-2 * cell.rows * y * y)) for y in far[:-1].tolist()]
    bounds = displacement._massart_bounds(cell, 0.05, price)
    wanted = sum(
        (here - after) * math.exp(theta * bound) for here, after, bound in zip(tails, [*tails[1:], 0.0], bounds, strict=True)
    )
    found = displacement._by_massart(cell, theta, 0.05, price)
    assert math.log(wanted) <= found <= math.log(wanted) + 1e-8
