"""Adult tables with a property that somebody chose, views of them, and an adversary who sees column means.

The rows are those of adult.data and adult.test put together, in the order of NumPy's `default_rng(3).permutation`. The first
half is public; the rest is the population from which tables are drawn.

    a table with mean(age) = 38   counts of ages drawn from a law proportional to share(age) exp(t age), until their mean is 38
                                  within a tolerance; given the mean that law does not depend on t. Then rows of each age.
    a view of it                  the twin of `Session.view`: of each value the `keep` rows of least rank. The tests compare it
                                  with the library's own rows; it is here because 900 views take minutes otherwise.

What must never change: tables of both kinds are drawn alike but for the hidden columns, and the shadows of a view are views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from scipy.optimize import root

import attrpriv as ap
from examples.adult.load import load

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SEED_OF_THE_SPLIT = 3
# An education has one number; a weight of the survey is no property of a person.
LEFT_OUT = ("education", "fnlwgt")
TOGETHER = 64
MOST_TRIES = 20_000


def halves(directory: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The public records and all others, in the order of the note."""
    adult = load(directory)
    rows = pd.concat([adult.train.to_pandas(), adult.test.to_pandas()], ignore_index=True)
    rows = rows.iloc[np.random.default_rng(SEED_OF_THE_SPLIT).permutation(len(rows))].reset_index(drop=True)
    return rows.iloc[: len(rows) // 2], rows.iloc[len(rows) // 2 :].reset_index(drop=True)


def design(frame: pd.DataFrame, without: Sequence[str] = ()) -> pd.DataFrame:
    """Rows as numbers: each category a column of 0 and 1."""
    return pd.get_dummies(frame.drop(columns=[*LEFT_OUT, *without], errors="ignore"), dtype=float)


# ------------------------------------------------------------------------------------------------- tables and their views


@dataclass(frozen=True)
class Population:
    """Rows from which tables are drawn, with the hidden columns as numbers of cells."""

    frame: pd.DataFrame
    hidden: tuple[str, ...]

    @cached_property
    def values(self) -> list[tuple[Any, ...]]:
        """The combinations of the hidden columns, in order."""
        found = self.frame[list(self.hidden)].drop_duplicates().sort_values(list(self.hidden))
        return list(found.itertuples(index=False, name=None))

    @cached_property
    def cell(self) -> Whole:
        numbers = {values: k for k, values in enumerate(self.values)}
        return np.array([numbers[one] for one in self.frame[list(self.hidden)].itertuples(index=False, name=None)])

    @cached_property
    def sizes(self) -> Whole:
        return np.bincount(self.cell, minlength=len(self.values))

    @cached_property
    def rest(self) -> Floats:
        """Every column that is not hidden, as numbers."""
        return design(self.frame, self.hidden).to_numpy(np.float64)

    @cached_property
    def _by_cell(self) -> Whole:
        return np.argsort(self.cell, kind="stable")

    def rows(self, counts: Whole, generator: np.random.Generator, *, again: bool = True) -> Whole:
        """Row numbers of a table with so many rows of each cell, in random order; `again`: one row may come several times."""
        first = np.cumsum(self.sizes) - self.sizes
        cells = np.repeat(np.arange(len(counts)), counts)
        if again:
            chosen = self._by_cell[first[cells] + (generator.random(len(cells)) * self.sizes[cells]).astype(np.int64)]
        else:
            shuffled = np.lexsort((generator.random(len(self.cell)), self.cell))
            within = np.arange(len(cells)) - np.repeat(np.cumsum(counts) - counts, counts)
            chosen = shuffled[first[cells] + within]
        return np.asarray(generator.permutation(chosen))

    def means(self, rows: Whole) -> Floats:
        return np.asarray(np.bincount(rows, minlength=len(self.rest)).astype(np.float64) @ self.rest / len(rows))

    def keep(self, policy: ap.Policy, n: int) -> Whole:
        """How many rows of each cell the view of a table of n rows keeps, by the library's own plan; no row is read."""
        place = {values: k for k, values in enumerate(self.values)}
        found = np.zeros(len(self.values), np.int64)
        with ap.Session(self.arrow(np.arange(n)), policy) as session:
            for cell in session.view_plan().cells:
                found[place[tuple(cell.values or ())]] = cell.keep
        return found

    def arrow(self, rows: Whole) -> Any:
        return pa.Table.from_pandas(self.frame.iloc[rows], preserve_index=False).replace_schema_metadata(None)


def kept(cell: Whole, keep: Whole, rank: npt.NDArray[Any]) -> Whole:
    """The twin: positions of the rows that a view keeps, of each cell those with the least ranks."""
    if np.any(np.bincount(cell, minlength=len(keep)) < keep):
        raise ValueError("some value has fewer rows than the view keeps.")
    order = np.lexsort((rank, cell))
    cells = cell[order]
    within = np.arange(len(cells)) - np.searchsorted(cells, cells)
    return order[within < keep[cells]]


@dataclass(frozen=True)
class Property:
    """What the adversary wants to tell: two values of a statistic of the hidden columns, and what else is fixed with it."""

    name: str
    statistic: Callable[[tuple[Any, ...]], Sequence[float]]
    """of one combination of values; tables have a given average of it"""
    sides: tuple[Sequence[float], Sequence[float]]
    within: Sequence[float]


@dataclass(frozen=True)
class Draws:
    """Tables of n rows of either kind."""

    population: Population
    told: Property
    n: int
    laws: tuple[Floats, Floats]
    scores: Floats

    @classmethod
    def of(cls, population: Population, told: Property, n: int) -> Self:
        scores = np.array([told.statistic(values) for values in population.values], float)
        share = population.sizes / population.sizes.sum()
        low, high = (tilted(share, scores, np.array(side, float)) for side in told.sides)
        return cls(population, told, n, (low, high), scores)

    def counts(self, high: bool, generator: np.random.Generator) -> Whole:
        """Of each cell, in a table of this kind."""
        target, within = np.array(self.told.sides[int(high)]), np.array(self.told.within)
        for _ in range(MOST_TRIES // TOGETHER):
            found = generator.multinomial(self.n, self.laws[int(high)], size=TOGETHER)
            good = np.flatnonzero(np.all(np.abs(found @ self.scores / self.n - target) <= within, axis=1))
            if len(good):
                return np.asarray(found[good[0]])
        raise ArithmeticError(f"{self.told.name}: no table found within {self.told.within}.")


def tilted(share: Floats, scores: Floats, target: Floats) -> Floats:
    """The law proportional to share exp(t score) under which the mean score is the target."""
    scale = scores.std(axis=0)
    centred = (scores - target) / scale

    def law(t: Floats) -> Floats:
        weights = share * np.exp(centred @ t - (centred @ t).max())
        return np.asarray(weights / weights.sum())

    def off(t: Floats) -> Floats:
        return np.asarray(law(t) @ centred)

    found = root(off, np.zeros(scores.shape[1]))
    if not found.success:
        raise ArithmeticError("no tilt of the population has this mean.")
    return law(found.x)


# ----------------------------------------------------------------------------------------------------------- the adversary


RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
FOLDS = 5


@dataclass(frozen=True)
class Discriminant:
    """A linear discriminant between two kinds of shadows; how much it shrinks, cross-validation on the shadows decides."""

    direction: Floats
    middle: Floats

    @classmethod
    def trained(cls, features: Floats, high: Flags) -> Self:
        fold = np.arange(len(high)) // 2 % FOLDS  # shadows of both kinds in each
        right = [
            sum(
                np.sum(cls._with(features[fold != k], high[fold != k], ridge).says_high(features[fold == k]) == high[fold == k])
                for k in range(FOLDS)
            )
            for ridge in RIDGES
        ]
        return cls._with(features, high, RIDGES[int(np.argmax(right))])

    @classmethod
    def _with(cls, features: Floats, high: Flags, ridge: float) -> Self:
        centres = features[~high].mean(axis=0), features[high].mean(axis=0)
        noise = features - np.where(high[:, None], centres[1], centres[0])
        spread = noise.std(axis=0)
        scale = np.where(spread > 1e-12 * (1 + np.abs(features).max(axis=0)), spread, np.inf)  # what is constant says nothing
        within = np.cov(noise / scale, rowvar=False) + ridge * np.eye(len(scale))
        direction = np.linalg.solve(within, (centres[1] - centres[0]) / scale) / scale
        return cls(direction, (centres[0] + centres[1]) / 2)

    def says_high(self, features: Floats) -> Flags:
        return np.asarray((features - self.middle) @ self.direction > 0)


def kinds(shadows: int, targets: int, generator: np.random.Generator) -> Flags:
    """Which tables are of the high kind: every second shadow, and of the targets what a fair coin says."""
    return np.concatenate([np.arange(shadows) % 2 == 1, generator.random(targets) < 0.5])


def right_answers(features: Floats, high: Flags, shadows: int) -> int:
    """How many targets an adversary gets right who has learned from the shadows, which come first."""
    adversary = Discriminant.trained(features[:shadows], high[:shadows])
    return int(np.sum(adversary.says_high(features[shadows:]) == high[shadows:]))
