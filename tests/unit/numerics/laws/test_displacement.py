"""How far sorted rows move: the moments against quadrature and enumeration, the promise against simulation, and mutants."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate
from scipy.stats import kstwo

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.channel import Channel
from attrpriv.numerics.laws import displacement
from attrpriv.numerics.laws.breaks import SortedCell, even_references, references
from attrpriv.numerics.laws.displacement import failure_of, likely, massart_log_tail, never_exceeded

Array = NDArray[np.float64]


def even(m: int, low: float = 0.0, high: float = 1.0) -> SortedCell:
    return SortedCell(low, high, even_references(low, high, m))


def moment(cells: list[SortedCell], theta: float, shift: float, parts: int = 512) -> float:
    return displacement._log_moment(cells, theta, shift, displacement._Price.of(cells, None), parts)


def moved(cell: SortedCell, quantile: Callable[[Array], Array], tables: int, seed: int) -> Array:
    """D of simulated cells whose rows have this quantile function."""
    draws = quantile(np.sort(np.random.default_rng(seed).random((tables, cell.rows)), axis=1))
    return np.asarray(np.sum((cell.low + cell.width * draws - cell.references) ** 2, axis=1))


def squeezed(shift: float) -> Callable[[Array], Array]:
    """A law whose distribution function is `shift` above that of the even one as far as it goes."""
    return lambda u: np.maximum(0.0, u - shift)


# --- the moment of one cell --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [0.3, 2.0, 8.0])
@pytest.mark.parametrize("shift", [0.0, 0.1, 0.7])
def test_one_row_by_quadrature(theta: float, shift: float) -> None:
    def psi(u: float) -> float:
        return max(min(1.0, u + shift) - 0.5, 0.5 - max(0.0, u - shift)) ** 2

    true = math.log(integrate.quad(lambda u: math.exp(theta * psi(u)), 0, 1, points=[0.5], limit=200)[0])
    found = moment([even(1)], theta, shift)
    assert true <= found <= true + 0.01 * theta


@pytest.mark.parametrize("theta", [0.3, 2.0, 8.0])
@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_two_rows_by_quadrature(theta: float, shift: float) -> None:
    grid = (np.arange(1500) + 0.5) / 1500
    prices = [
        np.exp(theta * np.maximum(np.minimum(1, grid + shift) - t, t - np.maximum(0, grid - shift)) ** 2) for t in (0.25, 0.75)
    ]
    table = np.outer(prices[0], prices[1])
    true = math.log((2 * np.sum(np.triu(table, 1)) + np.sum(np.diag(table))) / 1500**2)
    found = moment([even(2)], theta, shift)
    assert true - 1e-6 <= found <= true + 0.01 * theta


@pytest.mark.parametrize("values", [[0.0, 0.0, 1.0], [0.2, 0.3, 0.3, 0.9], [0.5], [0.0, 1.0]])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_public_values_with_ties_by_enumeration(values: list[float], m: int) -> None:
    """The table's law is that of the public values: all draws with replacement."""
    cell = SortedCell(0.0, 1.0, references(values, m), np.array(values))
    draws = [np.sum((np.sort(draw) - cell.references) ** 2) for draw in itertools.product(values, repeat=m)]
    true = math.log(float(np.mean(np.exp(2.0 * np.array(draws)))))
    found = moment([cell], 2.0, 0.0)
    assert true - 1e-12 <= found <= true + 0.05


@given(
    values=st.lists(st.floats(0, 1), min_size=1, max_size=6).map(sorted),
    weights=st.lists(st.integers(0, 5), min_size=6, max_size=6),
    m=st.integers(1, 3),
    theta=st.floats(0.1, 6),
)
@settings(max_examples=60, deadline=None)
def test_any_law_within_the_shift(values: list[float], weights: list[int], m: int, theta: float) -> None:
    """Other weights on the public values: the shift is what it is, the moment by enumeration."""
    shares = np.array(weights[: len(values)], dtype=float) + 1e-9
    shares /= shares.sum()
    public = np.array(values)
    shift = max(abs(float(np.sum(shares[public <= x]) - np.mean(public <= x))) for x in values)
    cell = SortedCell(0.0, 1.0, references(values, m), public)
    true = sum(
        float(np.prod(shares[list(draw)]))
        * math.exp(theta * float(np.sum((np.sort(public[list(draw)]) - cell.references) ** 2)))
        for draw in itertools.product(range(len(values)), repeat=m)
    )
    assert math.log(true) <= moment([cell], theta, min(1.0, shift + 1e-12), parts=32) + 1e-9


@pytest.mark.parametrize(("m", "theta"), [(10, 2.0), (80, 2.0), (300, 1.0)])
def test_the_moment_is_between_simulation_and_the_limit(m: int, theta: float) -> None:
    """For even cells and many rows D is the Cramér-von Mises statistic less 1/(12m), whose limit law is known."""
    sample = np.exp(theta * moved(even(m), lambda u: u, 20_000, seed=m))
    limit = 0.5 * math.log(math.sqrt(2 * theta) / math.sin(math.sqrt(2 * theta)))
    found = moment([even(m)], theta, 0.0, parts=64)
    assert math.log(sample.mean() - 4 * sample.std() / math.sqrt(sample.size)) <= found <= limit * 1.02
    assert found <= math.log(sample.mean() + 4 * sample.std() / math.sqrt(sample.size)) * 1.03


def test_mirrored_cells_cost_the_same() -> None:
    places = np.array([0.1, 0.15, 0.6])
    values = np.array([0.05, 0.1, 0.2, 0.7])
    first = SortedCell(0.0, 1.0, places, values)
    second = SortedCell(0.0, 1.0, 1 - places[::-1], 1 - values[::-1])
    assert moment([first], 2.0, 0.03) == pytest.approx(moment([second], 2.0, 0.03), rel=1e-6)


def test_cells_of_different_sizes_add_up() -> None:
    cells = [even(3), even(5, 2.0, 4.0), even(20, -1.0, -0.5), even(3), even(1)]
    apart = sum(moment([cell], 0.7, 0.05, 64) for cell in cells)
    assert moment(cells, 0.7, 0.05, 64) == pytest.approx(apart, rel=0.02)
    assert moment([even(3)] * 7, 0.7, 0.05) == pytest.approx(7 * moment([even(3)], 0.7, 0.05), rel=1e-12)


@given(rows=st.integers(1, 12), seed=st.integers(0, 10**6), size=st.floats(0.01, 40))
@settings(max_examples=40, deadline=None)
def test_one_part_is_never_below_its_series(rows: int, seed: int, size: float) -> None:
    """sum over c of A^c/c!, A as a matrix."""
    rng = np.random.default_rng(seed)
    now, tilt = rng.random((2, rows + 1)), size * rng.random((2, rows))
    found = displacement._one_part(now, tilt)
    for line, ratio, bound in zip(now, tilt, found, strict=True):
        matrix = np.diag(ratio, -1)
        true, term = np.zeros(rows + 1), line
        for c in range(rows + 2):
            true, term = true + term, matrix @ term / (c + 1)
        assert np.all(bound >= true * (1 - 1e-12))
        assert np.all(bound <= true * (1 + 1e-12)) or rows > 4


# --- the promise -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 0.05])
@pytest.mark.parametrize("m", [1, 4, 30])
def test_the_promise_holds_in_simulation_and_is_not_far_off(m: int, shift: float) -> None:
    cells = [even(m, 0.0, 1.0), even(m, 1.0, 1.5), even(2 * m, 2.0, 2.7)]
    found = likely(cells, 0.05, shift)
    total = np.sum([moved(cell, squeezed(shift), 40_000, seed) for seed, cell in enumerate(cells)], axis=0)
    assert np.mean(total > found.most) <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / total.size)
    assert found.most <= 2.0 * np.quantile(total, 0.95)


def test_a_dropped_shift_is_caught() -> None:
    """The mutant: s = 0 where the law is shifted."""
    cells = [even(60, float(j), j + 1.0) for j in range(10)]
    total = np.sum([moved(cell, squeezed(0.2), 2_000, seed) for seed, cell in enumerate(cells)], axis=0)
    assert np.mean(total > likely(cells, 0.01, 0.2).most) <= 0.02
    assert np.mean(total > likely(cells, 0.01, 0.0).most) > 0.9


def test_a_law_with_gaps_is_no_even_one() -> None:
    """The mutant: |s_k - t_k| <= h sup|F_m - F|, which is right for an even law only; public values at both ends refute it."""
    values = np.repeat([0.0, 1.0], 50)
    cells = [SortedCell(j, j + 1.0, references(values, 100) + j, values + j) for j in range(20)]
    rng = np.random.default_rng(5)
    total = np.sum(np.abs(rng.binomial(100, 0.5, size=(20_000, 20)) - 50), axis=1)
    assert np.mean(total > likely(cells, 0.01, 0.0).most) <= 0.01
    assert np.mean(total > likely([even(100)] * 20, 0.01, 0.0).most) == 1.0


@pytest.mark.parametrize(("number", "margin"), [(10, 3.7), (50, 1.9), (200, 1.4), (1000, 1.17)])
def test_the_margins_of_the_theory(number: int, margin: float) -> None:
    """Simulated quantiles at 1e-6, times the mean h^2/6 of a cell: proved up to two percent."""
    found = likely([even(80)] * number, 1e-6, 0.0).most / (number / 6)
    assert margin * 0.95 <= found <= margin * 1.02


@pytest.mark.parametrize("m", [8, 300])
def test_many_rows_cost_no_more_than_few(m: int) -> None:
    """A bound of what is left out that puts draws where there can hardly be any was seven times too large at 300 rows."""
    assert likely([even(m)] * 10, 1e-6, 0.0).most / (10 / 6) <= 3.85


def test_the_proof_is_checked_again() -> None:
    cells = [even(12, float(j), j + 1.0 + j / 10) for j in range(6)]
    found = likely(cells, 1e-6, 0.02)
    assert failure_of(cells, found.most, found.theta, 0.02) <= 1e-6
    assert failure_of(cells, found.most * 0.95, found.theta, 0.02) > 1e-6
    assert failure_of(cells, found.most, found.theta, 0.05) > 1e-6
    assert failure_of(cells, found.most, found.theta * 1.5, 0.02) > 1e-6
    assert failure_of(cells, 0.0, found.theta, 0.02) == 1.0


# --- what cannot fail --------------------------------------------------------------------------------------------------------


@given(
    places=st.lists(st.floats(0, 1), min_size=1, max_size=5).map(sorted),
    draws=st.lists(st.floats(0, 1), min_size=5, max_size=5),
)
def test_nothing_is_ever_further(places: list[float], draws: list[float]) -> None:
    cell = SortedCell(0.0, 1.0, np.array(places))
    d = np.sum((np.sort(draws[: len(places)]) - places) ** 2)
    assert d <= never_exceeded([cell]) <= len(places) * (1 + 1e-9)


def test_a_certain_bound_below_the_likely_one_is_taken() -> None:
    found = likely([even(1)], 1e-9, 0.5)
    assert (found.failure, found.theta) == (0.0, 0.0)
    assert found.most == never_exceeded([even(1)])
    assert failure_of([even(1)], found.most, 0.0, 0.5) == 0.0
    assert failure_of([even(1)], found.most * 0.99, 0.0, 0.5) == 1.0


def test_cells_of_one_value_and_cells_that_show_nothing_cost_nothing() -> None:
    point = SortedCell(2.0, 2.0, np.full(5, 2.0))
    assert never_exceeded([point]) == 0.0
    assert likely([point, even(0)], 1e-6, 0.1).most == 0.0
    with_point = likely([point, even(0), even(7)], 1e-6, 0.1)
    assert with_point.most == pytest.approx(likely([even(7)], 1e-6, 0.1).most)
    assert never_exceeded([]) == 0.0


# --- weights -----------------------------------------------------------------------------------------------------------------


def test_weights_are_never_too_small() -> None:
    channel, order = Channel(1.0, 2.0), 6.0

    def weight(d: Array) -> Array:
        return channel.weight(d, order)

    cell = even(4)
    assert never_exceeded([cell], weight) <= 4 * float(weight(np.ones(1))[0])
    draws = np.sort(np.random.default_rng(7).random((20_000, 4)), axis=1)
    d = np.abs(draws - cell.references)
    total = np.sum(weight(d) * d * d, axis=1)
    assert total.max() <= never_exceeded([cell], weight)
    found = likely([cell], 0.05, 0.0, weight)
    assert np.mean(total > found.most) <= 0.05
    assert found.most > likely([cell], 0.05, 0.0).most
    price = displacement._Price.of([cell], weight)
    assert np.all(price.of_distance(d.ravel(), 1.0) >= weight(d.ravel()) * d.ravel() ** 2)


@pytest.mark.parametrize("weight", [lambda d: d * math.nan, lambda d: 2 - d, lambda d: d, lambda d: d + math.inf])
def test_a_weight_that_is_none_is_refused(weight: Callable[[Array], Array]) -> None:
    with pytest.raises(UsageError, match="weight: "):
        never_exceeded([even(2)], weight)


# --- large cells -------------------------------------------------------------------------------------------------------------


def test_massart_is_above_the_exact_tail_and_less_is_not() -> None:
    for m in (1, 2, 5, 50):
        distance = np.linspace(0.01, 0.999, 200)
        exact, bound = kstwo.sf(distance, m), np.exp(massart_log_tail(distance, m))
        assert np.all(exact <= bound * (1 + 1e-9) + 1e-12)
        # The mutant: the factor two dropped.
        assert np.any(exact > bound / 2 + 1e-3)


@pytest.mark.parametrize("shift", [0.0, 0.1])
@pytest.mark.parametrize("theta", [0.3, 1.0])
@pytest.mark.parametrize("m", [1, 2, 40])
def test_the_bound_of_large_cells_is_above_that_of_small_ones(m: int, theta: float, shift: float) -> None:
    cell = even(m)
    price = displacement._Price.of([cell], None)
    assert displacement._by_massart(cell, theta, shift, price) >= moment([cell], theta, shift, parts=64) * (1 - 0.02)


@given(
    public=st.lists(st.integers(0, 8), min_size=1, max_size=6).map(sorted),
    drawn=st.lists(st.integers(0, 8), min_size=1, max_size=6).map(sorted),
)
@settings(max_examples=300)
def test_the_bound_of_large_cells_holds_at_the_very_distance(public: list[int], drawn: list[int]) -> None:
    """Rows at a known distance from the public values: B there is at least their D, and reached where both ends are atoms."""
    values, rows = np.array(public) / 8, np.array(drawn) / 8
    cell = SortedCell(0.0, 1.0, references(values, rows.size), values)
    away = max(abs(float(np.mean(rows <= x) - np.mean(values <= x))) for x in np.arange(9) / 8)
    bounds = displacement._massart_bounds(cell, 0.0, displacement._Price.of([cell], None))
    places = displacement._far(rows.size)[1:]
    if away <= places[0]:
        return
    # The step that holds this distance is priced at its upper end.
    step = int(np.searchsorted(places, away))
    assert bounds[step] >= float(np.sum((rows - cell.references) ** 2)) - 1e-12


def test_the_bound_of_large_cells_by_its_formula() -> None:
    """Even cells: every row moves by at most y - 1/(2m), and not beyond the ends."""
    m = 6
    bounds = displacement._massart_bounds(even(m), 0.05, displacement._Price.of([even(m)], None))
    for y, found in zip(displacement._far(m)[1:] + 0.05, bounds, strict=True):
        k = np.arange(1, m + 1)
        low, high = np.clip(k / m - y, 0, 1), np.clip((k - 1) / m + y, 0, 1)
        t = (k - 0.5) / m
        assert found == pytest.approx(float(np.sum(np.maximum(0.0, np.maximum(high - t, t - low)) ** 2)), rel=1e-9)


def test_a_large_cell_with_values_at_both_ends() -> None:
    """Where the bound of large cells is nearly reached: D = |Bin(m, 1/2) - m/2|."""
    m = 2_000
    values = np.repeat([0.0, 1.0], 50)
    cell = SortedCell(0.0, 1.0, references(values, m), values)
    total = np.abs(np.random.default_rng(3).binomial(m, 0.5, size=200_000) - m / 2)
    found = likely([cell], 0.01, 0.0)
    assert np.mean(total > found.most) <= 0.01
    assert found.most <= 3.5 * np.quantile(total, 0.99)
    assert np.mean(total + 0.05 * m > likely([cell], 0.01, 0.05).most) <= 0.01


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1])
def test_bad_numbers_are_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="failure: "):
        likely([even(1)], bad, 0.0)
    with pytest.raises(UsageError, match="shift: "):
        likely([even(1)], 0.5, bad)
    with pytest.raises(UsageError, match="displacement: "):
        failure_of([even(1)], 1.0, bad, 0.0)
    with pytest.raises(UsageError, match="displacement: "):
        failure_of([even(1)], bad, 1.0, 0.0)


def test_cells_too_wide_for_floats_are_refused() -> None:
    with np.errstate(over="ignore"), pytest.raises(UsageError, match="displacement: "):
        never_exceeded([even(1, 0.0, 1e200)])
