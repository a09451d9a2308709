"""A clamp: what a transported average takes back of the sensitive statistics it depends on, in public numbers.

With x the sensitive statistics that are read (each masked by noise of its own where its `mask` is above 0), c their centres,

    Y = slopes (x - c),        F' = F - Y + h(Y)

where h keeps what may still be seen of Y small:

| | h(Y) |
|---|---|
| `period` None | the point of the ball |y| <= reach that is nearest to Y |
| `period` w | Y lies on a line, at t = m w + r, |r| <= w/2: the point at m min(2 reach, w) + clip(r, -reach, +reach) |

in the norm |y|^2 = y' metric^-1 y; no metric: the plain norm. Reach 0 takes Y back altogether. Two facts carry every proof: the
nearest point of a ball moves no further than Y does, and by 2 reach at most; and along the staircase two points at most w apart
are at most min(2 reach, w) apart afterwards.

What must never change: everything here is public. The sensitive averages are read, used and forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from attrpriv.errors import UsageError
from attrpriv.frozen import Finite, FrozenMap, FrozenModel, NonNegative, Positive
from attrpriv.methods.base.accuracy import ErrorLaw, ExpectedError
from attrpriv.methods.base.column_plan import ColumnPlan, Design, common_bits
from attrpriv.noise import correlated_noise
from attrpriv.numerics.rounding import COMPUTED_DOWN
from attrpriv.numerics.special import normal_cdf, normal_cdfs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Rows = tuple[tuple[Finite, ...], ...]


class Read(FrozenModel):
    """A sensitive statistic that is read in the same pass: an average of columns, each times a number."""

    coefficients: FrozenMap[Finite] = Field(min_length=1, description="of each column in the statistic")
    centre: Finite = Field(description="the assumption's own value")
    mask: NonNegative = Field(default=0.0, description="sd of the noise on the statistic, which hides its digits")
    fill: FrozenMap[Finite] = Field(default_factory=dict, description="public value for missing entries of a column")

    @property
    def column(self) -> str:
        """Its name in words: the column, or the columns."""
        return ", ".join(self.coefficients)


class Clamp(FrozenModel):
    """Which statistics are read, around which centres, and how much of them may show; all public."""

    reads: tuple[Read, ...] = Field(min_length=1)
    slopes: Rows = Field(min_length=1, description="from the statistics that are read to each released average")
    reach: NonNegative = Field(description="how far what is left of the secrets may move the answers, to each side")
    metric: Rows = Field(default=(), description="the norm in which that is measured; none: plain")
    period: Positive | None = Field(default=None, description="width of a stair, where only near values must look alike")

    @model_validator(mode="after")
    def _consistent(self) -> Clamp:
        size = len(self.slopes)
        if any(len(row) != len(self.reads) for row in self.slopes):
            raise ValueError("slopes: need one number for each statistic that is read.")
        if self.metric and (len(self.metric) != size or any(len(row) != size for row in self.metric)):
            raise ValueError("metric: must be a square matrix with one row for each average.")
        if size > 1 and not self.metric:
            raise ValueError("metric: is needed for several averages.")
        if self.period is not None and size > 1 and len(self.reads) > 1:
            raise ValueError("period: a staircase is for one average, or for one statistic that is read.")
        return self


# ----------------------------------------------------------------------------------------------------------------------------
# The clamp in use: how averages are moved, and how far one will be from the table's own.
#
#     F' = F - Y + h(Y) + noise,       Y = slopes (x + masks - centres)
#
# | symbol | meaning |
# |---|---|
# | x | the sensitive statistics, read in the same pass |
# | h | what may still show of Y, as above |
#
# `ClampSpread` is the law of one answer's error for a plain interval [-h, h], y = Y of sd w around 0 over the tables that the
# assumption describes: off by N(0, s^2) and by the part of y beyond +-h. (The other laws are below.)
#
# What must never change: sensitive averages meet their masks before anything else, all in fractions on public grids; nothing of
# them is kept. Only the factor that shortens a vector is a float, and its rounding moves the answer by a share of the reach.


_NODES = 96


def clamp_bits(clamp: Clamp, scales: Sequence[float], factor: Rows = ()) -> int:
    """How fine the grid of masks and common noise is: together they move no answer by more than a quarter of its own step."""
    rows = [[b * read.mask for b, read in zip(row, clamp.reads, strict=True)] for row in clamp.slopes]
    both = tuple((*row, *(factor[k] if factor else ())) for k, row in enumerate(rows))
    return common_bits(Design(tuple(scales), both))


def statistic(read: Read, averages: Mapping[str, Fraction]) -> Fraction:
    """What is read, from the averages of its columns."""
    return sum((Fraction(weight) * averages[column] for column, weight in read.coefficients.items()), Fraction(0))


def clamped(clamp: Clamp, averages: Sequence[Fraction], hidden: Sequence[Fraction], bits: int) -> list[Fraction]:
    """The averages without what the hidden statistics tell of them beyond the clamp's reach; noise comes after."""
    moved = []
    for read, value in zip(clamp.reads, hidden, strict=True):
        noise = correlated_noise(((read.mask,),), bits)[0] if read.mask else Fraction(0)
        moved.append(value + noise - Fraction(read.centre))
    told = [sum((Fraction(b) * x for b, x in zip(row, moved, strict=True)), Fraction(0)) for row in clamp.slopes]
    return [average - y + left for average, y, left in zip(averages, told, kept(clamp, told), strict=True)]


def kept(clamp: Clamp, told: Sequence[Fraction]) -> list[Fraction]:
    """h(Y): what may still be seen of what the secrets tell."""
    if clamp.period is not None:
        return _on_stairs(clamp, told)
    if len(told) == 1 and not clamp.metric:
        reach = Fraction(clamp.reach)
        return [min(max(told[0], -reach), reach)]
    length = _length(clamp, told)
    if length == 0:
        return list(told)
    left = Fraction(min(length, clamp.reach))
    return [y * left / Fraction(length) for y in told]


def _on_stairs(clamp: Clamp, told: Sequence[Fraction]) -> list[Fraction]:
    """Along the one line that Y is on, in fractions: a rounded distance is worse the farther the centre is off."""
    along = [Fraction(row[0]) for row in clamp.slopes] if len(told) > 1 else [Fraction(1)]
    first = max(range(len(told)), key=lambda k: abs(along[k]))
    if not along[first]:
        return list(told)
    unit = Fraction(_length(clamp, along))
    place = told[first] / along[first] * unit
    moved = (1 if place > 0 else -1) * stair(clamp, abs(place))
    return [x / unit * moved for x in along]


def stair(clamp: Clamp, length: Fraction) -> Fraction:
    """The place on the staircase of a point at this distance from the centre; odd, so that the side does not matter."""
    period, reach = Fraction(clamp.period or 1), Fraction(clamp.reach)
    steps = round(length / period)
    return steps * min(2 * reach, period) + min(max(length - steps * period, -reach), reach)


def _length(clamp: Clamp, told: Sequence[Fraction]) -> float:
    import numpy as np

    if not clamp.metric:
        return abs(float(told[0]))
    vector = np.array([float(y) for y in told])
    root = np.linalg.cholesky(np.array(clamp.metric, dtype=np.float64))
    return float(np.linalg.norm(np.linalg.solve(root, vector)))


def clamp_law(clamp: Clamp, columns: Sequence[ColumnPlan], place: int) -> ErrorLaw:
    """The law of the error of the average at this place, over the tables that the assumption describes."""
    part = columns[place]
    wander = part.parameters["wander"]
    if isinstance(wander, float):
        return ClampSpread(part.noise.scale, wander, float(part.parameters["room"]))
    return clamp_spreads(clamp, wander, part.parameters["bias"], [other.noise.scale for other in columns])[place]


@dataclass(frozen=True)
class ClampSpread:
    """The law of an answer around the table's own value, over the populations of the assumption: s, w and h above."""

    scale: float
    wander: float
    room: float

    def scaled(self, factor: float) -> ClampSpread:
        return ClampSpread(self.scale * factor, self.wander * factor, self.room * factor)

    def reach(self, level: float) -> float:
        """Half the width of the interval that holds the table's own value with this confidence, from above."""
        if not 0 < level < 1:
            raise UsageError(f"level: must be above 0 and below 1. Got {level}.")
        low, high = 0.0, math.hypot(self.scale, self.wander)
        while self.tail(high) > 1 - level:
            low, high = high, 2 * high
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if self.tail(middle) > 1 - level else (low, middle)
        return high

    def tail(self, t: float) -> float:
        """The chance that the answer is more than t off."""
        inside = 1 - 2 * self._beyond
        far = self._both(self.room + t) + self._beyond - self._both(self.room - t)
        return inside * 2 * normal_cdf(-t / self.scale) + 2 * far

    @property
    def _beyond(self) -> float:
        """P(y > h)."""
        return normal_cdf(-self.room / self.wander) if self.wander else 0.0

    def _both(self, k: float) -> float:
        """P(y > h and y + N(0, s^2) > k), by Owen's function."""
        from scipy.special import owens_t

        if not self.wander:
            return 0.0
        total = math.hypot(self.scale, self.wander)
        r, left = self.wander / total, self.scale / total
        a, b = self.room / self.wander, k / total
        first = 0.25 * math.copysign(1.0, b) if a == 0 else owens_t(a, (b - r * a) / (a * left))
        second = 0.25 if b == 0 else owens_t(b, (a - r * b) / (b * left))
        opposite = 0.5 if b < 0 else 0.0  # a is not below 0
        return float(max(0.0, (normal_cdf(-a) + normal_cdf(-b)) / 2 - first - second - opposite))

    @property
    def rmse(self) -> float:
        return math.sqrt(self.scale**2 + max(0.0, self.beyond_squared()))

    def error(self) -> ExpectedError:
        """E err^2 = s^2 + 2 [(w^2 + h^2) Phi(-h/w) - w h phi(h/w)], and the rest from the law."""
        return ExpectedError(rmse=self.rmse, mean_absolute=self._absolute(), alpha95=self.reach(0.95))

    def beyond_squared(self) -> float:
        """The mean square of the part of y beyond +-h."""
        w, h = self.wander, self.room
        return 2 * ((w**2 + h**2) * self._beyond - w * h * self._density(h)) if w else 0.0

    def _density(self, y: float) -> float:
        return math.exp(-((y / self.wander) ** 2) / 2) / math.sqrt(2 * math.pi)

    def _absolute(self) -> float:
        """E|N + X|, X the part beyond: E|N + x| = x + r(x) for x > 0, and r is only there below a few s."""
        import numpy as np

        s, w, h = self.scale, self.wander, self.room
        plain = s * math.sqrt(2 / math.pi)
        if not w:
            return plain
        top = min(9 * s, 12 * w)
        nodes, weights = _nodes()
        x = (nodes + 1) / 2 * top
        rest = plain * np.exp(-((x / s) ** 2) / 2) - 2 * x * normal_cdfs(-x / s)
        density = np.exp(-(((h + x) / w) ** 2) / 2) / (w * math.sqrt(2 * math.pi))
        small = float((rest * density * weights).sum()) * top / 2
        beyond = w * self._density(h) - h * self._beyond
        return (1 - 2 * self._beyond) * plain + 2 * (beyond + small)


@lru_cache(maxsize=1)
def _nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


# ----------------------------------------------------------------------------------------------------------------------------
# How far a moved answer will be from the table's own: noise, and what was taken back and not given again.
#
# An answer is off by N(0, s^2) and by a residual whose law over the tables of the assumption is given by points and weights:
#
#     Y = wander z + bias, z standard normal,      residual = Y - h(Y)
#
# One normal: a fine grid. Several: points of an additive sequence, each with its negative, so that nothing is drawn. These
# are expected errors, not guarantees; they are right to about a tenth of a percent.


_GRID, _REACH = 2001, 8.5
_POINTS = 4096


@dataclass(frozen=True, eq=False)
class MovedSpread:
    """The law of an answer around the table's own value: a residual with these weights, plus N(0, scale^2), in a `unit`."""

    residuals: Array
    weights: Array
    scale: float
    unit: float = 1.0

    def scaled(self, factor: float) -> MovedSpread:
        return replace(self, unit=self.unit * abs(factor))

    def tail(self, t: float) -> float:
        """The chance that the answer is more than t off."""
        return self._tail(t / self.unit)

    def _tail(self, t: float) -> float:
        sizes, weights = self._sizes
        if not self.scale:
            return float(weights @ (sizes > t))
        up, down = normal_cdfs((sizes - t) / self.scale), normal_cdfs((-sizes - t) / self.scale)
        return float(weights @ (up + down))

    @cached_property
    def _sizes(self) -> tuple[Array, Array]:
        """How large a residual is, once each, and with which weight: its sign does not matter, and most are 0."""
        import numpy as np

        sizes, places = np.unique(np.abs(self.residuals), return_inverse=True)
        return sizes, np.asarray(np.bincount(places, self.weights), dtype=np.float64)

    def reach(self, level: float) -> float:
        """Half the width of the interval that holds the table's own value with this confidence, from above."""
        if not 0 < level < 1:
            raise UsageError(f"level: must be above 0 and below 1. Got {level}.")
        low, high = 0.0, self._rmse or self.scale
        while self._tail(high) > 1 - level:
            low, high = high, 2 * high
        for _ in range(48):
            middle = (low + high) / 2
            low, high = (middle, high) if self._tail(middle) > 1 - level else (low, middle)
        return high * self.unit

    @property
    def rmse(self) -> float:
        return self._rmse * self.unit

    @property
    def _rmse(self) -> float:
        return math.sqrt(self.scale**2 + float(self.weights @ self.residuals**2))

    def error(self) -> ExpectedError:
        import numpy as np

        size = np.abs(self.residuals)
        folded = size
        if self.scale:
            z = size / self.scale
            folded = self.scale * math.sqrt(2 / math.pi) * np.exp(-z * z / 2) + size * (1 - 2 * normal_cdfs(-z))
        return ExpectedError(rmse=self.rmse, mean_absolute=float(self.weights @ folded) * self.unit, alpha95=self.reach(0.95))


def clamp_spreads(
    clamp: Clamp, wander: Sequence[Sequence[float]], bias: Sequence[float], scales: Sequence[float]
) -> tuple[MovedSpread, ...]:
    """The law of each answer's error; `wander` has a row for each average, a column for each independent normal."""
    import numpy as np

    rows = np.array(wander, dtype=np.float64)
    points, weights = normal_points(rows.shape[1])
    told = points @ rows.T + np.asarray(bias)
    residuals = told - shown(clamp)(told)
    return tuple(MovedSpread(residuals[:, k], weights, scale) for k, scale in enumerate(scales))


def shown(clamp: Clamp) -> Callable[[Array], Array]:
    """h in floats, for many points at once."""
    import numpy as np

    root = np.linalg.cholesky(np.array(clamp.metric or ((1.0,),), dtype=np.float64))

    def moved(told: Array) -> Array:
        length = np.linalg.norm(np.linalg.solve(root, told.T), axis=0)
        if clamp.period is None:
            left = np.minimum(length, clamp.reach)
        else:
            steps = np.round(length / clamp.period)
            inside = np.clip(length - steps * clamp.period, -clamp.reach, clamp.reach)
            left = steps * min(2 * clamp.reach, clamp.period) + inside
        return np.asarray(told * (left / np.maximum(length, 1e-300))[:, None])

    return moved


@lru_cache(maxsize=16)
def normal_points(dimensions: int) -> tuple[Array, Array]:
    """Points and weights for means over independent standard normals."""
    import numpy as np

    if dimensions == 1:
        points = np.linspace(-_REACH, _REACH, _GRID)
        weights = np.exp(-(points**2) / 2)
        return points[:, None], weights / weights.sum()
    from scipy.special import ndtri

    # The additive sequence of the generalised golden ratio spreads evenly in any number of dimensions.
    ratio = 2.0
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1, dimensions + 1)
    uniform = (0.5 + np.outer(np.arange(1, _POINTS + 1), steps)) % 1.0
    half = ndtri(np.clip(uniform, 1e-12, COMPUTED_DOWN))
    points = np.vstack([half, -half])
    return points, np.full(len(points), 1 / len(points))
