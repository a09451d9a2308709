"""Draws of a statistic of n normal rows, given a secret: exact conditional sampling, with a public seed.

Of n normal rows the averages and the matrix of squares are independent, the one normal, the other Wishart (Bartlett's
decomposition), so a draw costs the same for every n. Quantiles need the rows themselves.

| class | rows | given | does F depend on a |
|---|---|---|---|
| `NormalRows` | normal | an average g = a | through averages alone: an intercept does, a variance does not |
| `ShiftedQuantile` | normal | the same | F = slope a + Q, the law of Q is free of a |
| `GroupRows` | normal within two groups | a rows are of the first | everything moves |

What must never change: given a, draws have exactly the law that is described; the generator is seeded by public facts, and none
of its numbers is ever noise on an answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from attrpriv.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Generator = np.random.Generator

Moving = Literal["var_pop", "covar_pop", "regr_slope", "regr_intercept"]
Rows = tuple[tuple[float, ...], ...]
# How many numbers of rows are held at a time.
_CHUNK = 4_000_000


@dataclass(frozen=True)
class NormalRows:
    """n normal rows; of a row of the statistic's columns the mean, the covariance, and the covariance with the secret's."""

    n: int
    kind: Moving
    mean: tuple[float, ...]
    covariance: Rows
    with_secret: tuple[float, ...]
    secret_mean: float
    secret_variance: float

    @property
    def fixed(self) -> bool:
        """Whether the law of F is the same for every value of the secret: squares are independent of averages."""
        return self.kind != "regr_intercept"

    @property
    def fixed_spread(self) -> bool:
        return self.fixed

    def average(self, column: int, value: float) -> float:
        """The expected average of a column, given the secret."""
        return self.mean[column] + self.with_secret[column] / self.secret_variance * (value - self.secret_mean)

    def draws(self, values: Sequence[float], runs: int, seed: int) -> Array:
        """A row of draws for each value of the secret: the same squares and errors of averages in all of them."""
        import numpy as np

        generator = np.random.default_rng(seed)
        squares = scatter(generator, runs, self.n, self.covariance)
        if self.fixed:
            one = _of_squares(self.kind, squares, self.n)
            return np.repeat(one[None, :], len(values), axis=0)
        slope = squares[:, 0, 1] / squares[:, 1, 1]
        shared = np.array(self.with_secret)
        left = np.array(self.covariance) - np.outer(shared, shared) / self.secret_variance
        errors = generator.standard_normal((runs, 2)) @ _root(left) / math.sqrt(self.n)
        found = np.empty((len(values), runs))
        for k, value in enumerate(values):
            found[k] = self.average(0, value) + errors[:, 0] - slope * (self.average(1, value) + errors[:, 1])
        return found


@dataclass(frozen=True)
class ShiftedQuantile:
    """The lower quantile of n normal rows: F = slope a + sd O + N(0, residual/n), O = the quantile of standard rows less their
    average, which is independent of every average."""

    n: int
    level: float
    sd: float
    slope: float
    residual: float

    fixed = False
    fixed_spread = True

    def draws(self, values: Sequence[float], runs: int, seed: int) -> Array:
        import numpy as np

        generator = np.random.default_rng(seed)
        own = np.empty(runs)
        for part in _parts(runs, self.n):
            rows = generator.standard_normal((part.stop - part.start, self.n))
            means = rows.mean(axis=1)
            own[part] = _lower_quantile(rows, self.level) - means
        own = self.sd * own + math.sqrt(max(0.0, self.residual) / self.n) * generator.standard_normal(runs)
        return np.array([self.slope * value for value in values])[:, None] + own[None, :]


@dataclass(frozen=True)
class GroupRows:
    """n rows, a of them in the first of two groups; of a row of each group the mean and the covariance of the columns."""

    n: int
    kind: Literal["var_pop", "covar_pop", "regr_slope", "regr_intercept", "quantile"]
    first: tuple[tuple[float, ...], Rows]
    second: tuple[tuple[float, ...], Rows]
    level: float | None = None

    fixed = False
    fixed_spread = False

    def draws(self, values: Sequence[float], runs: int, seed: int) -> Array:
        """Independent draws for each count."""
        import numpy as np

        return np.array([self._of(round(count), runs, np.random.default_rng((seed, k))) for k, count in enumerate(values)])

    def _of(self, count: int, runs: int, generator: Generator) -> Array:
        if not 0 <= count <= self.n:
            raise UsageError(f"count: must be from 0 to {self.n}. Got {count}.")
        if self.kind == "quantile":
            return self._quantile(count, runs, generator)
        sizes = (count, self.n - count)
        parts = [_group(generator, runs, size, *group) for size, group in zip(sizes, (self.first, self.second), strict=True)]
        (mean_1, squares_1), (mean_2, squares_2) = parts
        apart = mean_1 - mean_2
        weight = sizes[0] * sizes[1] / self.n
        squares = squares_1 + squares_2 + weight * apart[:, :, None] * apart[:, None, :]
        if self.kind != "regr_intercept":
            return _of_squares(self.kind, squares, self.n)
        mean = (sizes[0] * mean_1 + sizes[1] * mean_2) / self.n
        found: Array = mean[:, 0] - squares[:, 0, 1] / squares[:, 1, 1] * mean[:, 1]
        return found

    def _quantile(self, count: int, runs: int, generator: Generator) -> Array:
        import numpy as np

        found = np.empty(runs)
        scales = [math.sqrt(group[1][0][0]) for group in (self.first, self.second)]
        for part in _parts(runs, self.n):
            rows = generator.standard_normal((part.stop - part.start, self.n))
            rows[:, :count] = self.first[0][0] + scales[0] * rows[:, :count]
            rows[:, count:] = self.second[0][0] + scales[1] * rows[:, count:]
            found[part] = _lower_quantile(rows, self.level or 0.5)
        return found


SimulatedLaw = NormalRows | ShiftedQuantile | GroupRows


def scatter(generator: Generator, runs: int, n: int, covariance: Rows) -> Array:
    """Sums of squares and products around their average of n normal rows: Wishart with n - 1 degrees of freedom."""
    import numpy as np

    size = len(covariance)
    if n <= size:  # too few rows for the decomposition: the rows themselves
        rows = generator.standard_normal((runs, max(n, 1), size)) @ _root(np.array(covariance))
        rows = rows - rows.mean(axis=1, keepdims=True)
        found: Array = np.einsum("rij,rik->rjk", rows, rows)
        return found
    lower = np.zeros((runs, size, size))
    for i in range(size):
        lower[:, i, i] = np.sqrt(generator.chisquare(n - 1 - i, runs))
        for j in range(i):
            lower[:, i, j] = generator.standard_normal(runs)
    factor = np.einsum("ij,rjk->rik", _root(np.array(covariance)), lower)
    product: Array = np.einsum("rij,rkj->rik", factor, factor)
    return product


def _group(generator: Generator, runs: int, size: int, mean: Sequence[float], covariance: Rows) -> tuple[Array, Array]:
    """Averages, and sums of squares around them, of the rows of one group; of no rows nothing."""
    import numpy as np

    width = len(mean)
    if size == 0:
        return np.zeros((runs, width)), np.zeros((runs, width, width))
    errors = generator.standard_normal((runs, width)) @ _root(np.array(covariance)) / math.sqrt(size)
    return np.array(mean) + errors, scatter(generator, runs, size, covariance)


def _of_squares(kind: str, squares: Array, n: int) -> Array:
    if kind == "regr_slope":
        slope: Array = squares[:, 0, 1] / squares[:, 1, 1]
        return slope
    found: Array = squares[:, 0, 0 if kind == "var_pop" else 1] / n
    return found


def _root(matrix: Array) -> Array:
    """The one symmetric square root: it does not depend on how a library orders or signs eigenvectors."""
    import numpy as np

    sizes, axes = np.linalg.eigh((matrix + matrix.T) / 2)
    root: Array = (axes * np.sqrt(np.maximum(sizes, 0.0))) @ axes.T
    return root


def _parts(runs: int, n: int) -> list[slice]:
    step = max(1, _CHUNK // n)
    return [slice(start, min(runs, start + step)) for start in range(0, runs, step)]


def _lower_quantile(rows: Array, level: float) -> Array:
    """The least value at or below which a share `level` of the rows lies."""
    import numpy as np

    place = max(0, math.ceil(Fraction(repr(level)) * rows.shape[1]) - 1)
    found: Array = np.partition(rows, place, axis=1)[:, place]
    return found
