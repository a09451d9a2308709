"""How far apart the noisy laws of pairs of secrets are: all pairs at once, by envelopes of blocks.

    H(P || Q) = sum over bins of max(0, P - e^eps Q)
    for every a in A and b in B:   H(P_a || P_b)  <=  sum over bins of max(0, max over A of P - e^eps min over B of P)

A pair of blocks is split in half until it is a pair of secrets, or until no more is gained by it. Laws are `NoisyLaws`, whose
floats are off by `eta` in L1, and noise is drawn on a grid (`GRID_ETA`): both are charged (1 + e^eps) times. Laws with
`slopes` are of answers that are not rounded. A bin then counts as

    min(P, max(0, G) + min(L/6, max(0, L - |G|))),    G = P - e^eps Q,   L a bound on how the densities' difference changes

within it. That moves with errors of P and Q twice as fast as max(0, G), so `eta` is charged twice.

| symbol | here |
|---|---|
| pairs | `pairs`, places in `laws.secrets`; or all with |secret - secret'| <= `within`; None: all |

What must never change: `hockey_stick` is at least the truth for every pair, both ways; `hockey_stick_lower` is at most the
truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import COMPUTED_DOWN, COMPUTED_UP, SOLVED_UP
from attrpriv.numerics.search import least_epsilon

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.recorded_inversion import NoisyLaws

    Array = NDArray[np.float64]
    Places = NDArray[np.int64]

# Distances of secrets as floats.
_SAME = SOLVED_UP
_AT_ONCE = 1 << 22
_LARGEST_EPSILON = 700.0
# Pairs that are asked one after the other for the epsilon that they need, and how near a bound must come to be no bound.
_MOST_PAIRS, _EXACT = 12, 1e-6
GRID_ETA: Final = 1e-10
"""What the grid of the noise changes of a law, in L1, at most.

The sum is first rounded to a grid of at most 2^-32 sigma: a normal law that moves by 2^-33 sigma changes by 2^-32/sqrt(2 pi),
or 9.3e-11. That noise on the grid is not the normal law's share of each cell changes less than 2^-64.
"""


@dataclass(frozen=True)
class RecordedPair:
    """A bound on delta over all pairs, and the pair of secrets at which the floats are largest."""

    delta: float
    pair: tuple[float, float]


def hockey_stick(
    laws: NoisyLaws,
    epsilon: float,
    *,
    within: float | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    enough: float = 0.0,
    close: float = 1e-3,
) -> RecordedPair:
    """At least the largest delta of any pair, both ways, and at most a share `close` more than the bound of the worst pair.

    What is at most `enough` is not looked at more closely, and where nothing is more, the pair is any.

    >>> from attrpriv.numerics.laws.recorded_inversion import noisy_laws
    >>> from attrpriv.numerics.laws.recorded_rows import RecordedRows
    >>> laws = noisy_laws(RecordedRows.of([0, 0, 1, 1], [0, 1, 1, 2]), 20, range(8, 13), 2.0, 0.5)
    >>> round(hockey_stick(laws, 1.0).delta, 4), round(hockey_stick(laws, 1.0, within=1).delta, 6)
    (0.2534, 0.00029)
    """
    factor = _factor(laws, epsilon)
    times = 1 if laws.slopes is None else 2
    charge = (1 + factor) * (times * laws.largest_eta + GRID_ETA)
    most, pair = _largest(laws, factor, within, pairs, max(0.0, enough - charge), close)
    return RecordedPair(min(1.0, (most * COMPUTED_UP + charge) * COMPUTED_UP), pair)


def hockey_stick_lower(
    laws: NoisyLaws, epsilon: float, *, within: float | None = None, pairs: Sequence[tuple[int, int]] | None = None
) -> float:
    """At most the largest delta of any pair."""
    factor = _factor(laws, epsilon)
    _, pair = _largest(laws, factor, within, pairs, 0.0, 1e-3)
    if not len(laws.secrets):
        return 0.0
    first, second = laws.probabilities[list(_places(laws, pair))]
    found = float(np.maximum(first - factor * second, 0.0).sum())
    return max(0.0, found * COMPUTED_DOWN - (1 + factor) * (laws.largest_eta + GRID_ETA) * COMPUTED_UP)


def epsilon_at(
    laws: NoisyLaws,
    delta: float,
    *,
    within: float | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    close: float = 1e-3,
) -> float:
    """An epsilon at which delta covers every pair, at most a share `close` above the least; infinite where none is found.

    >>> from attrpriv.numerics.laws.recorded_inversion import noisy_laws
    >>> from attrpriv.numerics.laws.recorded_rows import RecordedRows
    >>> laws = noisy_laws(RecordedRows.of([0, 0, 1, 1], [0, 1, 1, 2]), 20, range(8, 13), 2.0, 0.5)
    >>> epsilon = epsilon_at(laws, 1e-3)
    >>> hockey_stick(laws, epsilon).delta <= 1e-3 < hockey_stick(laws, 0.99 * epsilon).delta
    True
    """
    if pairs is not None:
        return _epsilon_of(laws, delta, pairs, close)
    return worst_at(laws, delta, within=within, close=close)[0]


def worst_at(
    laws: NoisyLaws, delta: float, *, within: float | None = None, close: float = 1e-3
) -> tuple[float, tuple[float, float] | None]:
    """The same over all pairs, and the pair of secrets that needs it; None where the search did not come down to one.

    >>> from attrpriv.numerics.laws.recorded_inversion import noisy_laws
    >>> from attrpriv.numerics.laws.recorded_rows import RecordedRows
    >>> laws = noisy_laws(RecordedRows.of([0, 0, 1, 1], [0, 1, 1, 2]), 20, range(8, 13), 2.0, 0.5)
    >>> sorted(worst_at(laws, 1e-3)[1] or ())
    [8.0, 12.0]
    """
    pair = worst = hockey_stick(laws, 1.0, within=within, close=0.5).pair
    needed = 0.0
    for _ in range(_MOST_PAIRS if len(laws.secrets) > 1 else 0):
        own = _epsilon_of(laws, delta, [_places(laws, pair)], close / 4)
        if not math.isfinite(own):
            break
        needed, worst = max((needed, worst), (own, pair))
        # Only pairs that miss delta are told apart, so that nearly all blocks are left as they are.
        epsilon = needed * (1 + close / 2)
        found = hockey_stick(laws, epsilon, within=within, enough=delta, close=_EXACT)
        if found.delta <= delta:
            return epsilon, worst
        if found.pair == pair:
            break
        pair = found.pair
    of_all = least_epsilon(lambda epsilon: hockey_stick(laws, epsilon, within=within, close=_EXACT).delta, delta, close=close)
    return of_all, None


def _epsilon_of(laws: NoisyLaws, delta: float, pairs: Sequence[tuple[int, int]], close: float) -> float:
    return least_epsilon(lambda epsilon: hockey_stick(laws, epsilon, pairs=pairs).delta, delta, close=close)


def _places(laws: NoisyLaws, pair: tuple[float, float]) -> tuple[int, int]:
    return int(np.searchsorted(laws.secrets, pair[0])), int(np.searchsorted(laws.secrets, pair[1]))


def _factor(laws: NoisyLaws, epsilon: float) -> float:
    if not (math.isfinite(epsilon) and 0 <= epsilon <= _LARGEST_EPSILON):
        raise UsageError(f"epsilon: must be from 0 to {_LARGEST_EPSILON:g}. Got {epsilon}.")
    if not (bool(np.isfinite(laws.probabilities).all()) and math.isfinite(laws.largest_eta)):
        raise UsageError("laws: must be finite.")
    return math.exp(epsilon)


def _largest(
    laws: NoisyLaws,
    factor: float,
    within: float | None,
    pairs: Sequence[tuple[int, int]] | None,
    enough: float,
    close: float,
) -> tuple[float, tuple[float, float]]:
    """An upper bound over all pairs on the excess of the floats, and the pair whose excess is the largest seen."""
    if len(laws.secrets) < 2:
        return 0.0, (math.nan, math.nan) if not len(laws.secrets) else (float(laws.secrets[0]),) * 2
    if pairs is not None:
        return _listed(laws, factor, pairs)
    levels = _levels(laws)
    first = second = np.zeros(1, dtype=np.int64)
    best, pair, bound = 0.0, _nearest(laws, within), 0.0
    for depth in range(len(levels)):
        first, second = _near(laws, first, second, len(levels[depth].top), within)
        found = _excess(levels[depth], factor, first, second)
        if depth == len(levels) - 1:
            apart = first != second
            first, second, found = first[apart], second[apart], found[apart]
            if len(found) and float(found.max()) > best:
                best = float(found.max())
                pair = _secrets(laws, first, second, int(found.argmax()))
            return max(best, bound), pair
        # The pair in the middle of the widest block shows how much is really reached.
        middle = _middles(laws, levels, depth, first, second, found, factor, within)
        if middle[0] > best:
            best, pair = middle
        open_ = found > max(enough, best * (1 + close))
        bound = max(bound, float(found[~open_].max(initial=0.0)))
        first, second = first[open_], second[open_]
        if not len(first):
            return max(best, bound), pair
        first, second = (
            np.repeat(2 * one, 4) + np.tile(step, len(one)) for one, step in ((first, (0, 0, 1, 1)), (second, (0, 1, 0, 1)))
        )
    raise AssertionError("the last level returns")


@dataclass(frozen=True, eq=False)
class _Blocks:
    """The largest and the least probability of each bin in blocks of secrets; and its slopes, where answers are not rounded."""

    top: Array
    bottom: Array
    steep: tuple[Array, Array, Array] | None = None
    """The largest and the least slope, and the largest bend."""

    @classmethod
    def of(cls, laws: NoisyLaws) -> _Blocks:
        slopes = laws.slopes
        steep = None if slopes is None else (slopes.middle, slopes.middle, slopes.bend)
        return cls(laws.probabilities, laws.probabilities, steep)

    def halved(self) -> _Blocks:
        steep = None
        if self.steep is not None:
            most, least, bend = self.steep
            steep = _halved(np.maximum, most), _halved(np.minimum, least), _halved(np.maximum, bend)
        return _Blocks(_halved(np.maximum, self.top), _halved(np.minimum, self.bottom), steep)


def _levels(laws: NoisyLaws) -> list[_Blocks]:
    """Envelopes of blocks of secrets: of all of them, of the two halves, and so on down to single secrets."""
    levels = [_Blocks.of(laws)]
    while len(levels[0].top) > 1:
        levels.insert(0, levels[0].halved())
    return levels


def _halved(of: np.ufunc, lines: Array) -> Array:
    even = np.concatenate([lines, lines[-1:]]) if len(lines) % 2 else lines
    return np.asarray(of(even[::2], even[1::2]))


def _near(laws: NoisyLaws, first: Places, second: Places, blocks: int, within: float | None) -> tuple[Places, Places]:
    """Those pairs of blocks that exist and that hold a pair of secrets at most `within` apart."""
    there = (first < blocks) & (second < blocks)
    first, second = first[there], second[there]
    if within is None:
        return first, second
    low, high = _ends(laws, blocks)
    apart = np.maximum(low[second] - high[first], low[first] - high[second])
    near = apart <= within * _SAME
    return first[near], second[near]


def _ends(laws: NoisyLaws, blocks: int) -> tuple[Array, Array]:
    size = 1
    while -(-len(laws.secrets) // size) > blocks:
        size *= 2
    starts = np.arange(blocks) * size
    return laws.secrets[starts], laws.secrets[np.minimum(starts + size, len(laws.secrets)) - 1]


def _excess(blocks: _Blocks, factor: float, first: Places, second: Places) -> Array:
    found = np.empty(len(first))
    size = max(1, _AT_ONCE // max(1, blocks.top.shape[1]))
    for start in range(0, len(first), size):
        a, b = first[start : start + size], second[start : start + size]
        over = blocks.top[a] - factor * blocks.bottom[b]
        if blocks.steep is not None:
            over = _unrounded(blocks, factor, a, b, over)
        np.maximum(over, 0.0, out=over)
        found[start : start + size] = over.sum(axis=1)
    return found


def _unrounded(blocks: _Blocks, factor: float, a: Places, b: Places, over: Array) -> Array:
    """What a bin adds at most where its answers are told apart: where the two densities may cross within it, a little more."""
    assert blocks.steep is not None
    most, least, bend = blocks.steep
    change = np.maximum(most[a] - factor * least[b], factor * most[b] - least[a]) + bend[a] + factor * bend[b]
    apart = np.maximum(-over, blocks.bottom[a] - factor * blocks.top[b])
    crossing = np.clip(change - np.maximum(apart, 0.0), 0.0, change / 6)
    return np.asarray(np.minimum(np.maximum(over, 0.0) + crossing, blocks.top[a]))


def _middles(
    laws: NoisyLaws,
    levels: list[_Blocks],
    depth: int,
    first: Places,
    second: Places,
    found: Array,
    factor: float,
    within: float | None,
) -> tuple[float, tuple[float, float]]:
    """The largest excess among pairs of secrets from the worst blocks: their furthest ends that are within reach."""
    worst = np.argsort(found)[-64:]
    size = 1 << (len(levels) - 1 - depth)
    a, b = (np.minimum(one[worst] * size + (size - 1) * side, len(laws.secrets) - 1) for one, side in ((first, 0), (second, 1)))
    c, d = (np.minimum(one[worst] * size + (size - 1) * side, len(laws.secrets) - 1) for one, side in ((first, 1), (second, 0)))
    a, b = np.concatenate([a, c]), np.concatenate([b, d])
    if within is not None:
        # As far as the promise goes, from the first of the two.
        reach = laws.secrets[a] + np.sign(laws.secrets[b] - laws.secrets[a]) * np.minimum(
            np.abs(laws.secrets[b] - laws.secrets[a]), within
        )
        b = np.clip(np.searchsorted(laws.secrets, reach * 1.0), 0, len(laws.secrets) - 1)
        near = np.abs(laws.secrets[b] - laws.secrets[a]) <= within * _SAME
        a, b = a[near], b[near]
    a, b = a[(differ := a != b)], b[differ]
    if not len(a):
        return 0.0, _nearest(laws, within)
    reached = _excess(levels[-1], factor, a, b)
    return float(reached.max()), _secrets(laws, a, b, int(reached.argmax()))


def _nearest(laws: NoisyLaws, within: float | None) -> tuple[float, float]:
    """A pair that is within reach; one secret and itself where there is none."""
    k = int(np.argmin(np.diff(laws.secrets)))
    near = within is None or float(laws.secrets[k + 1] - laws.secrets[k]) <= within * _SAME
    return float(laws.secrets[k]), float(laws.secrets[k + 1 if near else k])


def _secrets(laws: NoisyLaws, first: Places, second: Places, k: int) -> tuple[float, float]:
    return float(laws.secrets[first[k]]), float(laws.secrets[second[k]])


def _listed(laws: NoisyLaws, factor: float, pairs: Sequence[tuple[int, int]]) -> tuple[float, tuple[float, float]]:
    """Some pairs, both ways."""
    both = np.array([*pairs, *((b, a) for a, b in pairs)], dtype=np.int64).reshape(-1, 2)
    if not len(both) or both.min() < 0 or both.max() >= len(laws.secrets):
        raise UsageError("pairs: must be one or more pairs of places in the secrets of the laws.")
    found = _excess(_Blocks.of(laws), factor, both[:, 0], both[:, 1])
    return float(found.max()), _secrets(laws, both[:, 0], both[:, 1], int(found.argmax()))
