"""Mean and variance of a statistic at every count of a group at once, to first order, and how far they move.

Rows are normal within two groups, a of n rows in the first; p = a/n, q = 1 - p, d is the difference of the groups' means. The
statistic is a function f of the matrix T of squares and products around the averages, over n, and of the averages M:

    T = (S_1 + S_2)/n + p q d d',    M = p m_1 + q m_2

With e_k the derivatives of f by the averages of group k, and t those by T, the delta method gives

    mean ~ f(E T, E M),      variance ~ sum over k of  e_k' C_k e_k/a_k  +  t' Cov(S_k) t/n^2

up to shares of 1/n: it is exact for the means of variances and covariances. Simulations are made at some counts; this is what
says where, and how much a moment moves between them (docs/theory/sampled.md).

What must never change: every count of the range lies on the grid, or between two neighbours of it, with `slack` for what a
moment bends between those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.errors import RefusedError
from attrpriv.laws.simulated import GroupRows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Counts at which moments are computed: all of them up to here, else that many evenly, and others towards both ends, where
# moments of few rows among others of a small spread move fast.
_COUNTS, _TOWARDS_ENDS = 65_536, 8_192


@dataclass(frozen=True)
class Reach:
    """How far a moment moves between counts that must look alike, its ends, and the counts at which both are found."""

    apart: float
    least: float
    most: float
    at: tuple[float, ...]


@dataclass(frozen=True)
class Curve:
    """What the moments of a law do over all counts of a range."""

    mean: Reach
    variance: Reach


@lru_cache(maxsize=256)
def curve(law: GroupRows, low: int, high: int, apart: int) -> Curve:
    """Over the counts from low to high, where those at most `apart` from each other must look alike."""
    counts = _grid(law.n, low, high)
    mean, variance = moments(law, counts)
    every = len(counts) == high - low + 1
    return Curve(_reach(counts, mean, apart, every=every), _reach(counts, variance, apart, every=every))


def moments_at(law: GroupRows, counts: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and variance at these counts."""
    import numpy as np

    mean, variance = moments(law, np.array(counts, dtype=float))
    return tuple(map(float, mean)), tuple(map(float, variance))


def moments(law: GroupRows, counts: Array) -> tuple[Array, Array]:
    """Mean and variance to first order; refused where they are not numbers."""
    import numpy as np

    with np.errstate(all="ignore"):
        mean, variance = _moments(law, counts)
    if not (np.isfinite(mean).all() and np.isfinite(variance).all() and (variance > 0).all()):
        raise RefusedError("simulation: the statistic does not vary at some count of the secret, or is no number there.")
    return mean, variance


def _moments(law: GroupRows, counts: Array) -> tuple[Array, Array]:
    import numpy as np

    groups = [_doubled(*group) for group in (law.first, law.second)]
    sizes = (counts, law.n - counts)
    shares = [size / law.n for size in sizes]
    both = shares[0] * shares[1]
    (mean_1, within_1), (mean_2, within_2) = groups
    apart = mean_1 - mean_2
    within = shares[0][:, None, None] * within_1 + shares[1][:, None, None] * within_2
    squares = (1 - 1 / law.n) * within + both[:, None, None] * np.outer(apart, apart)
    averages = shares[0][:, None] * mean_1 + shares[1][:, None] * mean_2
    value, (by_product, by_square, by_y, by_x) = _derivatives(law.kind, squares, averages)
    variance = np.zeros_like(counts)
    for sign, size, share, (_, c) in zip((1, -1), sizes, shares, groups, strict=True):
        e_y = share * by_y + sign * both * by_product * apart[1]
        e_x = share * by_x + sign * both * (by_product * apart[0] + 2 * by_square * apart[1])
        of_average = e_y**2 * c[0, 0] + 2 * e_y * e_x * c[0, 1] + e_x**2 * c[1, 1]
        of_squares = (
            by_product**2 * (c[0, 0] * c[1, 1] + c[0, 1] ** 2)
            + 4 * by_product * by_square * c[0, 1] * c[1, 1]
            + 2 * by_square**2 * c[1, 1] ** 2
        )
        variance += of_average / np.maximum(size, 1) + np.maximum(size - 1, 0) / law.n**2 * of_squares
    return value, variance


def _doubled(mean: Sequence[float], covariance: Sequence[Sequence[float]]) -> tuple[Array, Array]:
    """A variance is the covariance of a column with itself."""
    import numpy as np

    repeat = [0, 0] if len(mean) == 1 else [0, 1]
    return np.array(mean)[repeat], np.array(covariance)[np.ix_(repeat, repeat)]


def _derivatives(kind: str, squares: Array, averages: Array) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    """The statistic, and its derivatives by T_yx, T_xx, and the averages of y and x."""
    import numpy as np

    product, square = squares[:, 0, 1], squares[:, 1, 1]
    one, zero = np.ones_like(product), np.zeros_like(product)
    if kind in ("var_pop", "covar_pop"):
        return product, (one, zero, zero, zero)
    slope = product / square
    if kind == "regr_slope":
        return slope, (1 / square, -slope / square, zero, zero)
    y, x = averages[:, 0], averages[:, 1]
    return y - slope * x, (-x / square, slope * x / square, one, -slope)


def _grid(n: int, low: int, high: int) -> Array:
    import numpy as np

    if high - low < _COUNTS:
        return np.arange(low, high + 1, dtype=float)
    even = np.linspace(low, high, _COUNTS)
    far = np.geomspace(1, n, _TOWARDS_ENDS)
    found = np.unique(np.round(np.concatenate([even, far, n - far, [low, high]])))
    kept: Array = found[(found >= low) & (found <= high)]
    return kept


def _reach(counts: Array, moment: Array, apart: int, *, every: bool) -> Reach:
    import numpy as np

    slack = 0.0 if every else _bend(counts, moment)
    # A window that begins between two counts of the grid lies in one from the first to beyond `apart` behind the second.
    following = counts if every else np.append(counts[1:], counts[-1])
    last = np.minimum(np.searchsorted(counts, following + apart), len(counts) - 1)
    high, low = _range_most(moment, last), -_range_most(-moment, last)
    steepest = int(np.argmax(high - low))
    inside = slice(steepest, int(last[steepest]) + 1)
    window, inner = counts[inside], moment[inside]
    at = {counts[np.argmin(moment)], counts[np.argmax(moment)], window[np.argmin(inner)], window[np.argmax(inner)]}
    return Reach(
        float((high - low).max()) + 2 * slack,
        float(moment.min()) - slack,
        float(moment.max()) + slack,
        tuple(sorted(map(float, at))),
    )


def _bend(counts: Array, moment: Array) -> float:
    """How far a moment at a count is from the line between its neighbours, at most; between counts it is a quarter of that."""
    import numpy as np

    left, right = np.diff(counts)[:-1], np.diff(counts)[1:]
    line = (moment[:-2] * right + moment[2:] * left) / (left + right)
    return float(np.abs(moment[1:-1] - line).max())


def _range_most(moment: Array, last: Array) -> Array:
    """For each place the largest moment from it up to `last`: two overlapping stretches of a power of two."""
    import numpy as np

    tables = [moment]
    while 2 ** len(tables) <= len(moment):
        step, former = 2 ** (len(tables) - 1), tables[-1]
        tables.append(np.maximum(former[:-step], former[step:]))
    start = np.arange(len(moment))
    level = np.frexp((last - start + 1).astype(float))[1] - 1
    found = np.empty_like(moment)
    for k, table in enumerate(tables):
        here = level == k
        found[here] = np.maximum(table[start[here]], table[last[here] - 2**k + 1])
    return found


__all__ = ["Curve", "Reach", "curve", "moments", "moments_at"]
