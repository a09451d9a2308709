"""Tables made of public records, in which the secret has one of two values.

    share(c), count(c)   exactly round(n p) rows that satisfy c and n - round(n p) others, each drawn from its kind of records
    mean(x), sum(x)      n records drawn with chances proportional to exp(t x), again and again until the mean is the value, up
                         to a tolerance; given the mean, the law of the rows does not depend on t. How many rows have each
                         value of x is drawn first, then which records of that value these are

Rows are drawn with replacement and in random order. What must never change: tables of both kinds are drawn alike but for the
secret, so that whoever tells them apart has told the secret.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from attrpriv.engines.tables import Source, quietly
from attrpriv.errors import DataError, QueryError, UsageError
from attrpriv.problem.composition import is_whole, parse_composition
from attrpriv.queries.arithmetic import Linear, parse_linear
from attrpriv.queries.conditions import Condition

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

MOST_TRIES = 20_000
# How near the mean of a table comes to its value: in standard errors, and in distances of the two values.
_ERRORS, _GAPS = 0.1, 0.125
_STEEPEST = 200.0


@dataclass(frozen=True)
class Alike:
    """Records in groups of one score each."""

    scores: Floats
    """of each group"""
    order: Whole
    """the records, group by group"""
    starts: Whole
    sizes: Whole

    @classmethod
    def of(cls, scores: Floats) -> Self:
        found, sizes = np.unique(scores, return_counts=True)
        return cls(found, np.argsort(scores, kind="stable"), np.cumsum(sizes) - sizes, np.asarray(sizes))

    def added(self, chances: Floats) -> Floats:
        """The chance of each group, from those of the records."""
        return np.add.reduceat(chances[self.order], self.starts)

    def drawn(self, counts: Whole, generator: np.random.Generator) -> Whole:
        """So many records of each group, drawn evenly and with replacement, in random order."""
        group = np.repeat(np.arange(len(counts)), counts)
        inside = np.floor(generator.random(len(group)) * self.sizes[group]).astype(np.int64)
        return np.asarray(generator.permutation(self.order[self.starts[group] + inside]))


@dataclass(frozen=True)
class Statistic:
    """The secret as an average over rows: of 0 and 1 for a share or a count, of a number for a mean or a sum."""

    text: str
    scores: Floats
    """of each record"""
    counted: bool
    """whether rows are counted, so that tables have the value exactly"""
    weight: float
    """by which the statistic exceeds the average of a table"""

    @cached_property
    def alike(self) -> Alike:
        """The records, sorted by their score."""
        return Alike.of(self.scores)

    @classmethod
    def of(cls, secret: str, source: Source, frame: Any, rows: int) -> Self:
        """Read from the records; QueryError or DataError where that is not possible."""
        composition = parse_composition(secret)
        if composition is None:
            form = parse_linear(secret)
            return cls(form.text, _numbers(form, frame), False, float(form.weight(rows)))
        if is_whole(secret) or composition.condition is None:
            raise QueryError(f"secret: must have two values that are numbers: a share, a count, a mean or a sum. Got {secret}.")
        weight = float(rows) if composition.kind == "count" else 1.0
        return cls(composition.text, holds(composition.condition, source), True, weight)


def holds(condition: Condition, source: Source) -> Floats:
    """1 where a record satisfies the condition, 0 where not or where an entry is missing."""
    from attrpriv.engines.view.draw import Cells, check_schema
    from attrpriv.engines.view.in_order import row_cells

    cells = Cells((condition, None), (0, 0), (0, 0), (0, 0))
    check_schema(source, cells, None)
    found = quietly(lambda: row_cells(source, cells))
    if found is None:
        raise DataError("records: the engine could not read them. Check that the file is complete.")
    return np.asarray(found == 0, np.float64)


def _numbers(form: Linear, frame: Any) -> Floats:
    found = np.zeros(len(frame))
    for column, weight in form.coefficients:
        if column not in frame.columns:
            raise DataError(f"secret: must be of a column of the records. Got {form.text}.")
        values = quietly(lambda column=column: frame[column].to_numpy(np.float64, na_value=np.nan))  # type: ignore[misc]
        if values is None or not np.isfinite(values).all():
            raise DataError(f"records: {column} must be numbers, none missing. Got something else. Fill or drop such records.")
        found += weight * values
    return found


@dataclass(frozen=True)
class Draws:
    """Tables of n rows of either kind, as numbers of records."""

    statistic: Statistic
    values: tuple[float, float]
    n: int
    laws: tuple[Floats, Floats]
    """the probability of each record, in a table of either kind"""
    means: tuple[float, float]
    tolerances: tuple[float, float]

    @cached_property
    def chances(self) -> tuple[Floats, Floats]:
        """The same of each value of the statistic."""
        low, high = (self.statistic.alike.added(law) for law in self.laws)
        return low / low.sum(), high / high.sum()

    @classmethod
    def of(cls, statistic: Statistic, values: Sequence[float], n: int) -> Self:
        low, high = two_values(values)
        means = low / statistic.weight, high / statistic.weight
        if statistic.counted:
            means = round(means[0] * n) / n, round(means[1] * n) / n
        if means[0] == means[1]:
            raise UsageError(f"values: must differ in a table of {n} rows. Got {low:g} and {high:g}.")
        first, second = (_law(statistic, mean) for mean in means)
        gap = abs(means[1] - means[0])
        reach = [min(_ERRORS * _spread(statistic.scores, law) / math.sqrt(n), _GAPS * gap) for law in (first, second)]
        return cls(statistic, (low, high), n, (first, second), means, (reach[0], reach[1]))

    def inward(self) -> Self:
        """The same, a tolerance inside of the pair: no table lies outside. Given its mean, the law of a table is the same."""
        if self.statistic.counted:
            return self
        sign = 1 if self.means[0] < self.means[1] else -1
        low, high = (self.means[0] + sign * self.tolerances[0], self.means[1] - sign * self.tolerances[1])
        return replace(self, means=(low, high))

    def rows(self, high: bool, generator: np.random.Generator) -> Whole:
        """The records that a table of this kind is made of."""
        side = int(high)
        if self.statistic.counted:
            return np.asarray(generator.permutation(self._counted(self.means[side], generator)))
        values, chances = self.statistic.alike, self.chances[side]
        for _ in range(MOST_TRIES):
            counts = generator.multinomial(self.n, chances)
            if abs(float(counts @ values.scores) / self.n - self.means[side]) <= self.tolerances[side]:
                return values.drawn(counts, generator)
        raise UsageError(
            f"values: no table of {self.n} records was found with {self.statistic.text} near {self.values[side]:g}. "
            "Ask for more rows, or for values further apart."
        )

    def _counted(self, share: float, generator: np.random.Generator) -> Whole:
        inside = round(share * self.n)
        kinds = [(np.flatnonzero(self.statistic.scores == is_in), k) for is_in, k in ((1.0, inside), (0.0, self.n - inside))]
        return np.concatenate([generator.choice(records, k) if k else records[:0] for records, k in kinds])


def two_values(values: Sequence[float], name: str = "values") -> tuple[float, float]:
    """Two different numbers; `name` is what they are called where they are not."""
    found = tuple(values) if isinstance(values, Sequence) else ()
    if len(found) != 2 or not all(isinstance(v, int | float) and math.isfinite(v) for v in found) or found[0] == found[1]:
        raise UsageError(f"{name}: must be two different numbers, such as (0.27, 0.38). Got {values!r}.")
    return float(found[0]), float(found[1])


def _law(statistic: Statistic, mean: float) -> Floats:
    """The law on records proportional to exp(t score) whose mean score is this."""
    from scipy.optimize import brentq

    scores = statistic.scores
    lowest, highest = float(scores.min()), float(scores.max())
    inside = lowest <= mean <= highest if statistic.counted and lowest < highest else lowest < mean < highest
    if not inside:
        raise UsageError(
            f"values: must lie between what the records have, {lowest * statistic.weight:g} and "
            f"{highest * statistic.weight:g} of {statistic.text}. Got {mean * statistic.weight:g}."
        )
    if statistic.counted:
        share = scores.mean()
        return np.asarray(np.where(scores == 1, mean / share, (1 - mean) / (1 - share)) / len(scores))
    scaled = (scores - mean) / max(highest - mean, mean - lowest)

    def off(t: float) -> float:
        weights = np.exp(t * scaled - np.max(t * scaled))
        return float(weights @ scaled / weights.sum())

    if off(-_STEEPEST) >= 0 or off(_STEEPEST) <= 0:
        raise UsageError(f"values: must not be so near the end of what the records have. Got {mean * statistic.weight:g}.")
    t = float(brentq(off, -_STEEPEST, _STEEPEST, xtol=1e-12))
    weights = np.exp(t * scaled - np.max(t * scaled))
    return np.asarray(weights / weights.sum())


def _spread(scores: Floats, law: Floats) -> float:
    return math.sqrt(max(0.0, float(law @ scores**2) - float(law @ scores) ** 2))
