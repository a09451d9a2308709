"""How far apart laws on bins are: blocks against every pair, from both sides, with slopes and without."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences import recorded_pairs
from attrpriv.numerics.divergences.recorded_pairs import (
    GRID_ETA,
    epsilon_at,
    hockey_stick,
    hockey_stick_lower,
    worst_at,
)
from attrpriv.numerics.laws.recorded_inversion import NoisyLaws
from attrpriv.numerics.laws.recorded_slopes import Slopes

Numbers = NDArray[np.float64]
BINS, ETA = 6, 1e-7


@cache
def laws_of(count: int, sloped: bool = False, near: float = 1.0) -> NoisyLaws:
    """So many laws of uneven secrets; a secret further on leans further, by `near` times its distance."""
    rng = np.random.default_rng(100 * count + sloped)
    secrets = np.cumsum(rng.integers(1, 4, count)).astype(float)
    leaning = near * secrets[:, None] / 12 * np.linspace(-1, 1, BINS) + rng.normal(0, 0.3, (count, BINS))
    masses = np.exp(leaning) / np.exp(leaning).sum(axis=1, keepdims=True)
    slopes = Slopes(masses * rng.normal(0, 0.2, masses.shape), masses * rng.uniform(0, 0.1, masses.shape)) if sloped else None
    return NoisyLaws(secrets, np.arange(BINS), 1.0, masses, np.linspace(0, ETA, count), (), slopes)


def excess(laws: NoisyLaws, factor: float, a: int, b: int) -> float:
    """What all bins of two laws add, by the table's formula."""
    total = 0.0
    for j in range(laws.probabilities.shape[1]):
        p, q = laws.probabilities[a, j], laws.probabilities[b, j]
        over = p - factor * q
        if laws.slopes is not None:
            middle, bend = laws.slopes.middle[:, j], laws.slopes.bend[:, j]
            change = abs(middle[a] - factor * middle[b]) + bend[a] + factor * bend[b]
            total += min(p, max(0.0, over) + min(change / 6, max(0.0, change - abs(over))))
        else:
            total += max(0.0, over)
    return float(total)


def every(laws: NoisyLaws, factor: float, within: float | None = None) -> dict[tuple[int, int], float]:
    s = laws.secrets
    pairs = itertools.permutations(range(len(s)), 2)
    return {(a, b): excess(laws, factor, a, b) for a, b in pairs if within is None or abs(s[a] - s[b]) <= within}


def charge(laws: NoisyLaws, factor: float) -> float:
    return (1 + factor) * ((1 if laws.slopes is None else 2) * float(max(laws.eta)) + GRID_ETA)


CASES = [(2, None), (3, None), (5, 3.0), (8, 4.0), (13, None), (13, 1.0), (21, 6.0)]


@pytest.mark.parametrize("sloped", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.4])
@pytest.mark.parametrize(("count", "within"), CASES)
def test_blocks_find_the_worst_pair(count: int, within: float | None, epsilon: float, sloped: bool) -> None:
    laws, factor = laws_of(count, sloped), math.exp(epsilon)
    pairs = every(laws, factor, within)
    most = max(pairs.values())
    found = hockey_stick(laws, epsilon, within=within, close=1e-12)
    told = tuple(int(np.searchsorted(laws.secrets, one)) for one in found.pair)
    assert pairs[told[0], told[1]] == pytest.approx(most, rel=1e-12)
    truth = most + charge(laws, factor)
    assert truth <= found.delta <= truth * (1 + 1e-9)
    a, b = told
    seen = float(np.maximum(laws.probabilities[a] - factor * laws.probabilities[b], 0).sum())
    lower = seen - (1 + factor) * (ETA + GRID_ETA)
    assert lower * (1 - 1e-9) <= hockey_stick_lower(laws, epsilon, within=within) <= lower
    # What is close enough, or little enough, is not looked at more closely; and it is still a bound.
    for close, enough in itertools.product((0.5, 0.1), (0.0, 0.7 * truth, 1.4 * truth)):
        rough = hockey_stick(laws, epsilon, within=within, close=close, enough=enough)
        assert truth <= rough.delta <= max(enough, most * (1 + close) + charge(laws, factor)) * (1 + 1e-9)
        (c, d) = (int(np.searchsorted(laws.secrets, one)) for one in rough.pair)
        assert within is None or abs(laws.secrets[c] - laws.secrets[d]) <= within


def test_a_law_is_not_told_apart_from_itself() -> None:
    """However steep it may be within a bin: the first of these more than from any other."""
    masses, bend = np.full((3, 2), 0.5), np.array([[0.3], [0.01], [0.02]]) * np.ones(2)
    laws = NoisyLaws(np.arange(3.0), np.arange(2), 1.0, masses, np.zeros(3), (), Slopes(0 * bend, bend))
    most = max(every(laws, math.exp(0.2)).values())
    assert most < 0.9 * excess(laws, math.exp(0.2), 0, 0)
    found = hockey_stick(laws, 0.2, close=1e-12)
    assert found.delta == pytest.approx(most + charge(laws, math.exp(0.2)), rel=1e-9)
    assert found.pair[0] != found.pair[1]


@pytest.mark.parametrize("sloped", [False, True])
@pytest.mark.parametrize("at_once", [1, 13, 1 << 22])
def test_listed_pairs_are_looked_at_both_ways(at_once: int, sloped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_pairs, "_AT_ONCE", at_once)
    laws, factor = laws_of(8, sloped), math.exp(0.3)
    for pairs in ([(0, 7)], [(7, 0)], [(1, 2), (3, 2), (0, 1)], [(6, 7), (0, 0)]):
        ways = {(a, b): excess(laws, factor, a, b) for one in pairs for a, b in (one, one[::-1])}
        (a, b), most = max(ways.items(), key=lambda one: one[1])
        found = hockey_stick(laws, 0.3, pairs=pairs)
        assert found.delta == pytest.approx(most + charge(laws, factor), rel=1e-9)
        assert found.pair == (laws.secrets[a], laws.secrets[b])
    for wrong in ([], [(0, 8)], [(-1, 3)]):
        with pytest.raises(UsageError, match="pairs"):
            hockey_stick(laws, 0.3, pairs=wrong)


@pytest.mark.parametrize("sloped", [False, True])
@pytest.mark.parametrize("count", [5, 8, 13])
def test_a_block_is_above_every_pair_in_it(count: int, sloped: bool) -> None:
    laws, factor = laws_of(count, sloped, near=0.1), 1.2
    levels = recorded_pairs._levels(laws)
    assert [len(level.top) for level in levels] == [-(-count // 2**k) for k in range(len(levels) - 1, -1, -1)]
    size = 2 ** (len(levels) - 1)
    for level in levels:
        places = [range(k * size, min((k + 1) * size, count)) for k in range(len(level.top))]
        for a, b in itertools.product(range(len(places)), repeat=2):
            (found,) = recorded_pairs._excess(level, factor, np.array([a]), np.array([b]))
            inside = [excess(laws, factor, c, d) for c, d in itertools.product(places[a], places[b])]
            assert found >= max(inside) - 1e-15
            if not sloped:
                top, bottom = (laws.probabilities[list(places[k])] for k in (a, b))
                assert found == pytest.approx(float(np.maximum(top.max(axis=0) - factor * bottom.min(axis=0), 0).sum()))
            elif size == 1:
                assert found == pytest.approx(inside[0])
        size //= 2


@pytest.mark.parametrize("factor", [1.0, 2.5])
def test_slopes_of_a_block_are_the_steepest_of_any_pair_in_it(factor: float) -> None:
    """One bin, so that nothing cancels: four laws in two blocks, over many slopes, bends and chances."""
    rng = np.random.default_rng(5)
    tight = 0
    for _ in range(60):
        middle, bend = rng.normal(0, 0.2, (4, 1)), rng.uniform(0, 0.1, (4, 1))
        chances = 0.5 + rng.uniform(0, 0.02, (4, 1)) * rng.integers(0, 2) + 0.3 * rng.uniform(-1, 1)
        laws = NoisyLaws(np.arange(4.0), np.arange(1), 1.0, chances, np.zeros(4), (), Slopes(middle, bend))
        level = recorded_pairs._levels(laws)[-2]
        (found,) = recorded_pairs._excess(level, factor, np.array([0]), np.array([1]))
        most = max(excess(laws, factor, a, b) for a, b in itertools.product((0, 1), (2, 3)))
        assert found >= most * (1 - 1e-12)
        tight += found <= 1.5 * most + 0.02
    assert tight > 30


@pytest.mark.parametrize("within", [None, 1.0, 4.0])
@pytest.mark.parametrize("count", [5, 8, 13])
def test_blocks_are_kept_where_they_hold_a_pair_that_is_promised(count: int, within: float | None) -> None:
    laws = laws_of(count)
    size = 2 ** math.ceil(math.log2(count))
    while size >= 1:
        blocks = -(-count // size)
        places = [laws.secrets[k * size : (k + 1) * size] for k in range(blocks)]
        low, high = recorded_pairs._ends(laws, blocks)
        assert [low.tolist(), high.tolist()] == [[one[k] for one in places] for k in (0, -1)]
        first, second = (np.array(one) for one in zip(*itertools.product(range(blocks + 2), repeat=2), strict=True))
        kept = {tuple(one) for one in np.stack(recorded_pairs._near(laws, first, second, blocks, within)).T.tolist()}
        wanted = {
            (a, b)
            for a, b in itertools.product(range(blocks), repeat=2)
            if within is None or np.abs(places[a][:, None] - places[b]).min() <= within
        }
        assert kept == wanted
        size //= 2


@pytest.mark.parametrize("within", [None, 3.0, 7.0])
@pytest.mark.parametrize("sloped", [False, True])
def test_the_ends_of_blocks_show_how_much_is_reached(within: float | None, sloped: bool) -> None:
    """From the first of a block to the last of the other and the other way round, or as far as is promised."""
    laws, factor = laws_of(21, sloped), 1.3
    levels, s = recorded_pairs._levels(laws), laws.secrets
    for depth in range(len(levels)):
        size, blocks = 2 ** (len(levels) - 1 - depth), len(levels[depth].top)
        for pairs in ([(0, 0)], [(0, blocks - 1), (blocks // 2, 0)], [(blocks - 1, 0)], [(blocks - 1, blocks // 2)]):
            first, second = (np.array(one) for one in zip(*pairs, strict=True))
            found = recorded_pairs._excess(levels[depth], factor, first, second)
            best, at = 0.0, None
            for one, other in pairs:
                ends = [(k * size, min((k + 1) * size, 21) - 1) for k in (one, other)]
                for a, b in ((ends[0][0], ends[1][1]), (ends[0][1], ends[1][0])):
                    reach = s[b] if within is None else s[a] + np.clip(s[b] - s[a], -within, within)
                    to = min(int((s < reach).sum()), 20)
                    if to != a and (within is None or abs(s[to] - s[a]) <= within) and excess(laws, factor, a, to) > best:
                        best, at = excess(laws, factor, a, to), (s[a], s[to])
            told = recorded_pairs._middles(laws, levels, depth, first, second, found, factor, within)
            assert told[0] == pytest.approx(best, rel=1e-12)
            assert at is None or told[1] == at


def test_of_no_pair_nothing_is_told() -> None:
    nothing = np.zeros(0)
    none, one = NoisyLaws(nothing, np.arange(1), 1.0, np.zeros((0, 1)), nothing), laws_of(1)
    assert hockey_stick_lower(none, 0.5) == hockey_stick_lower(one, 0.5) == 0.0
    for laws, pair in ((none, ()), (one, (laws_of(1).secrets[0],) * 2)):
        found = hockey_stick(laws, 0.5)
        assert found.delta == pytest.approx((1 + math.exp(0.5)) * (laws.largest_eta + GRID_ETA), rel=1e-9, abs=0)
        assert found.pair == pair or all(map(math.isnan, found.pair))
    assert worst_at(one, 1e-6)[1] is None
    assert worst_at(one, 1e-6)[0] < 1e-9


def test_without_a_pair_that_is_promised_the_nearest_is_told() -> None:
    lines = np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    laws = NoisyLaws(np.array([0.0, 5.0, 9.0]), np.arange(2), 1.0, lines, np.zeros(3))
    assert hockey_stick(laws, 0.5, within=3.0).pair == (5.0, 5.0)
    assert hockey_stick(laws, 0.5, within=3.0).delta == pytest.approx((1 + math.exp(0.5)) * GRID_ETA, rel=1e-9, abs=0)
    assert recorded_pairs._nearest(laws, 4.0) == recorded_pairs._nearest(laws, None) == (5.0, 9.0)
    assert recorded_pairs._nearest(laws, 3.9) == (5.0, 5.0)
    same = NoisyLaws(laws.secrets, laws.bins, 1.0, lines[[0, 0, 0]], np.zeros(3))
    assert hockey_stick(same, 0.5, within=4.5).pair == (5.0, 9.0)


@pytest.mark.parametrize("sloped", [False, True])
@pytest.mark.parametrize(("count", "within"), [(2, None), (8, 4.0), (13, None)])
@pytest.mark.parametrize("close", [1e-3, 0.05])
@pytest.mark.parametrize("most", [0, 12])
def test_epsilon_is_the_least_of_the_worst_pair(
    most: int, close: float, count: int, within: float | None, sloped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By pairs, or by all at once where the search gives up."""
    monkeypatch.setattr(recorded_pairs, "_MOST_PAIRS", most)
    laws, delta = laws_of(count, sloped), 0.05

    def truth(epsilon: float) -> tuple[float, tuple[int, int]]:
        pairs = every(laws, math.exp(epsilon), within)
        pair = max(pairs, key=lambda one: pairs[one])
        return pairs[pair] + charge(laws, math.exp(epsilon)), pair

    epsilon, pair = worst_at(laws, delta, within=within, close=close)
    assert epsilon == epsilon_at(laws, delta, within=within, close=close)
    assert truth(epsilon)[0] <= delta < truth(epsilon / (1 + close) - 1e-9)[0]
    if not most:
        assert pair is None
        return
    a, b = truth(epsilon / (1 + close))[1]
    if close < 0.01:
        assert pair in ((laws.secrets[a], laws.secrets[b]), (laws.secrets[b], laws.secrets[a]))
    assert epsilon_at(laws, delta, pairs=[(a, b)], close=close) <= epsilon * (1 + close)
    (one, other) = (0, 1) if (a, b) not in ((0, 1), (1, 0)) else (a, b)
    alone = epsilon_at(laws, delta, pairs=[(one, other)], close=close)
    needed = [
        max(excess(laws, math.exp(at), one, other), excess(laws, math.exp(at), other, one))
        for at in (alone, alone / (1 + close))
    ]
    assert needed[0] + charge(laws, math.exp(alone)) <= delta
    assert alone < 1e-6 or needed[1] + charge(laws, math.exp(alone)) > delta


def test_laws_without_a_common_bin_have_no_epsilon() -> None:
    laws = NoisyLaws(np.array([0.0, 1.0]), np.arange(2), 1.0, np.eye(2), np.zeros(2))
    assert worst_at(laws, 0.5) == (math.inf, None)
    assert epsilon_at(laws, 0.5, pairs=[(0, 1)]) == math.inf
    assert hockey_stick(laws, 1.0).delta == 1.0


def test_numbers_that_are_none_are_refused() -> None:
    laws = laws_of(3)
    for epsilon in (-1e-9, 700.1, math.inf, math.nan):
        with pytest.raises(UsageError, match="epsilon"):
            hockey_stick(laws, epsilon)
    for epsilon in (0.0, 700.0):
        assert hockey_stick(laws, epsilon).delta >= 0
    broken = np.where(np.arange(BINS) == 2, math.nan, laws.probabilities)
    changes: list[dict[str, Any]] = [{"probabilities": broken}, {"eta": np.array([0.0, math.inf, 0.0])}]
    for change in changes:
        told = {"probabilities": laws.probabilities, "eta": laws.eta, **change}
        with pytest.raises(UsageError, match="finite"):
            hockey_stick(NoisyLaws(laws.secrets, laws.bins, 1.0, **told), 0.5)
