"""Tables that an assumption describes, drawn as the statistics that a plan reads: averages, counts, sums of products.

Where an assumption has a tolerance, tables come from the member of its class for which expected errors are stated: means off by
the whole tolerance, standard deviations and probabilities at their upper end. What is taken back of a secret depends on nothing
else; of a kernel the worst probabilities may be others, so that its prediction is a bound (`agreement.is_bound`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.problem.problem import Problem

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """What is read of a table: averages by column, counts by category, counts of a tally's cells, row covariances."""

    averages: Mapping[str, float] | None = None
    categories: Mapping[str, int] | None = None
    cells: tuple[int, ...] = ()
    covariances: Matrix | None = None


class World(Protocol):
    """Where tables come from."""

    def tables(self, rng: np.random.Generator, count: int, *, products: bool = False) -> Iterator[Table]: ...


@dataclass(frozen=True)
class GaussianWorld:
    """Rows of a multivariate normal law."""

    problem: Problem

    def moments(self) -> tuple[tuple[str, ...], Matrix, Matrix]:
        """Columns, means and the covariance of a row."""
        member = self.problem.theta[0]
        assert isinstance(member, Gaussian)
        names, drift = member.columns, member.tolerance
        sds = np.array([member.sd_of(c) * (1 + drift.sd) for c in names])
        means = np.array([member.mean[c] for c in names]) + drift.mean * sds
        unit = np.array([[member.correlation_of(a, b) for b in names] for a in names])
        return names, means, unit * np.outer(sds, sds)

    def tables(self, rng: np.random.Generator, count: int, *, products: bool = False) -> Iterator[Table]:
        names, means, covariance = self.moments()
        n = self.problem.n
        root = np.linalg.cholesky(covariance)
        for row in rng.standard_normal((count, len(names))) @ root.T / math.sqrt(n) + means:
            within = None
            if products:
                half = _bartlett(rng, len(names), n - 1)
                within = root @ half @ half.T @ root.T / n
            yield Table(dict(zip(names, row.tolist(), strict=True)), covariances=within)


def _bartlett(rng: np.random.Generator, size: int, freedom: int) -> Matrix:
    """A triangular factor of a Wishart matrix: what the rows' deviations from their averages add up to."""
    factor = np.tril(rng.standard_normal((size, size)), -1)
    np.fill_diagonal(factor, [math.sqrt(rng.chisquare(freedom - k)) for k in range(size)])
    return np.asarray(factor, dtype=np.float64)


@dataclass(frozen=True)
class HierarchyWorld:
    """A population is drawn, then a table from it."""

    problem: Problem

    def tables(self, rng: np.random.Generator, count: int, *, products: bool = False) -> Iterator[Table]:
        member = self.problem.theta[0]
        assert isinstance(member, Hierarchy)
        names = member.columns
        sds = np.array([member.between_sd[c] for c in names])
        between = np.array([[member.correlation_of(a, b) for b in names] for a in names]) * np.outer(sds, sds)
        own = np.array([member.within_sd[c] for c in names]) / math.sqrt(self.problem.n)
        means = np.array([member.mean[c] for c in names])
        populations = rng.standard_normal((count, len(names))) @ np.linalg.cholesky(between).T + means
        for row in populations + own * rng.standard_normal((count, len(names))):
            yield Table(dict(zip(names, row.tolist(), strict=True)))


@dataclass(frozen=True)
class GroupWorld:
    """How many rows are of each of two categories is drawn, then averages from the rows' laws."""

    problem: Problem

    def tables(self, rng: np.random.Generator, count: int, *, products: bool = False) -> Iterator[Table]:
        member, n = self.problem.theta[0], self.problem.n
        assert isinstance(member, Groups)
        first, second = member.categories
        share = float(sum((member.prior or {})[first]) / 2)
        columns, drift = self.problem.columns, member.tolerance
        for a in drawn_counts(self.problem, share, rng, count):
            total, spread = np.zeros(len(columns)), np.zeros((len(columns), len(columns)))
            for category, rows in ((first, a), (second, n - a)):
                covariance = np.array(member.covariance(category, columns)) * (1 + drift.sd) ** 2
                off = drift.mean * np.sqrt(np.diag(covariance))
                total += rows * (np.array([member.mean_of(category, c) for c in columns]) + off)
                spread += rows * covariance
            drawn = (total + np.linalg.cholesky(spread) @ rng.standard_normal(len(columns))) / n
            yield Table(dict(zip(columns, drawn.tolist(), strict=True)), {first: a, second: n - a})


def drawn_counts(problem: Problem, share: float | None, rng: np.random.Generator, count: int) -> list[int]:
    """Counts of the secret's category, in its range: by the prior share, or any alike.

    Of a population: of one with the prior share, or with any share of the range.
    """
    (secret,), n = problem.secrets, problem.n
    low, high = secret.ends or (0.0, float(n))
    if secret.parameter is not None:
        shares = rng.uniform(low, high, count) if share is None else np.full(count, share)
        return [int(a) for a in rng.binomial(n, shares)]
    unit = n if secret.text.startswith("share(") else 1
    first, last = math.ceil(low * unit - 1e-9), math.floor(high * unit + 1e-9)
    if share is None:
        return [int(a) for a in rng.integers(first, last, count, endpoint=True)]
    found: list[int] = []
    while len(found) < count:
        found += [int(a) for a in rng.binomial(n, share, 4 * count) if first <= a <= last]
    return found[:count]


@dataclass(frozen=True)
class CountWorld:
    """Rows of two categories, each of which adds one of few values."""

    problem: Problem
    values: tuple[int, ...]
    member: tuple[float, ...]
    rest: tuple[float, ...]
    share: float | None

    def tables(self, rng: np.random.Generator, count: int, *, products: bool = False) -> Iterator[Table]:
        n, event = self.problem.n, self.values == (0, 1)
        for a in drawn_counts(self.problem, self.share, rng, count):
            cells = rng.multinomial(a, self.member) + rng.multinomial(n - a, self.rest)
            yield Table(categories={"yes": a, "no": n - a}, cells=tuple(int(x) for x in (cells[1:] if event else cells)))


@dataclass(frozen=True)
class NetworkWorld:
    """A secret's state is drawn, then that of the column's parameter, then how many entries are 1."""

    problem: Problem
    states: Mapping[str, Sequence[float]]
    prior: Sequence[float]
    probabilities: Sequence[float]

    def tables(self, rng: np.random.Generator, count: int, *, products: bool = False) -> Iterator[Table]:
        rows = list(self.states.values())
        for hidden in rng.choice(len(rows), count, p=self.prior):
            state = rng.choice(len(self.probabilities), p=rows[hidden])
            yield Table(cells=(int(rng.binomial(self.problem.n, self.probabilities[state])),))


@dataclass(frozen=True)
class AnyWorld:
    """Nothing is known of the columns' laws: any table will do, since noise is all that the answer is off by."""

    problem: Problem

    def tables(self, rng: np.random.Generator, count: int, *, products: bool = False) -> Iterator[Table]:
        middle = {column: (low + high) / 2 for column, (low, high) in self.problem.bounds.items()}
        for cell in rng.integers(0, self.problem.n, count, endpoint=True):
            yield Table(middle, cells=(int(cell),))


@dataclass(frozen=True)
class ChainWorld:
    """The entries of a column are a Markov chain of two states."""

    problem: Problem
    initial: tuple[float, ...]
    transition: Sequence[Sequence[float]]

    def tables(self, rng: np.random.Generator, count: int, *, products: bool = False) -> Iterator[Table]:
        states = rng.random(count) < self.initial[1]
        total = states.astype(np.int64)
        chance = np.array([row[1] for row in self.transition])
        for _ in range(self.problem.n - 1):
            states = rng.random(count) < chance[states.astype(np.int64)]
            total += states
        for ones in total:
            yield Table(categories={"0": self.problem.n - int(ones), "1": int(ones)}, cells=(int(ones),))


__all__ = [
    "AnyWorld",
    "ChainWorld",
    "CountWorld",
    "GaussianWorld",
    "GroupWorld",
    "HierarchyWorld",
    "NetworkWorld",
    "Table",
    "World",
    "drawn_counts",
]
