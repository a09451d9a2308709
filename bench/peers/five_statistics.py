"""Five statistics of a few rows of Adult, between two shares of a property: the setting of Chen and Ohrimenko (2023).

Average age, years of education and hours, numbers of never married persons and of women in a hundred. A table has exactly so
many rows with the property as its share says. Rows are drawn without replacement: of tables for learning an attack from two
thirds of the records, of those to try it on from the rest. Large tables are drawn from all records, with replacement: where
each has much of the records, statistics vary less than those of independent rows, which mechanisms count on.

What must never change: both kinds of tables are drawn alike but for the share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attrpriv.numerics.laws.groups import Law
from bench.peers.adult import adult

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

STATISTICS = ("age", "education", "never_married", "women", "hours")
# From averages to the five statistics: two of them are numbers of persons in a hundred.
UNIT = np.array([1.0, 1.0, 100.0, 100.0, 1.0])
LEARNED_FROM = 2 / 3


@dataclass(frozen=True, eq=False)
class Setting:
    """A property, and the two shares of rows that have it."""

    key: str
    column: str
    category: str
    shares: tuple[float, float]
    least_density: float
    """for the reference view: how common a value is at least, against the public records"""
    rows: int = 100

    @cached_property
    def records(self) -> Any:
        """All rows without a missing entry, as theirs."""
        rows = adult()
        complete = ~rows[["workclass", "occupation", "native_country"]].eq("?").any(axis=1)
        kept = rows[complete][["age", "education_num", "marital_status", "sex", "hours_per_week", self.column]].copy()
        kept[self.column] = kept[self.column].where(kept[self.column] == self.category, "other")
        return kept.reset_index(drop=True)

    @cached_property
    def values(self) -> Array:
        rows = self.records
        columns = [rows["age"], rows["education_num"], rows["marital_status"] == "Never-married", rows["sex"] == "Female"]
        return np.column_stack([*columns, rows["hours_per_week"]]).astype(np.float64)

    @cached_property
    def has(self) -> NDArray[np.bool_]:
        return np.asarray(self.records[self.column] == self.category)

    @property
    def parts(self) -> tuple[slice, slice]:
        """The records for learning, and those to try what was learned on."""
        first = int(LEARNED_FROM * len(self.has))
        return slice(0, first), slice(first, None)

    @property
    def counts(self) -> tuple[int, int]:
        return round(self.rows * self.shares[0]), round(self.rows * self.shares[1])

    def law(self, has: bool) -> Law:
        """Mean and covariance of one row, with the property or without."""
        rows = self.values[self.has == has]
        matrix = np.cov(rows.T)
        return tuple(rows.mean(axis=0).tolist()), tuple(map(tuple, ((matrix + matrix.T) / 2).tolist()))

    def moments(self, count: int) -> tuple[Array, Array]:
        """Mean and covariance of the five statistics of tables with so many rows with the property."""
        (mean, matrix), (other, rest) = (tuple(np.array(one) for one in self.law(has)) for has in (True, False))
        part = count / self.rows
        covariance = (part * matrix + (1 - part) * rest) / self.rows
        return (part * mean + (1 - part) * other) * UNIT, covariance * np.outer(UNIT, UNIT)

    def tables(self, count: int, number: int, part: slice, rng: np.random.Generator, *, again: bool = False) -> Tables:
        """Tables of these records, exactly so many of which have the property; `again`: a record may come more than once."""
        numbers = np.arange(len(self.has))[part]
        inside, outside = numbers[self.has[part]], numbers[~self.has[part]]
        rows = np.empty((number, self.rows), np.int64)
        for k in range(number):
            rows[k, :count] = rng.choice(inside, count, replace=again)
            rows[k, count:] = rng.choice(outside, self.rows - count, replace=again)
        return Tables(self, count, rng.permuted(rows, axis=1))


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of one kind: the records that each is made of."""

    setting: Setting
    count: int
    rows: Whole

    @cached_property
    def averages(self) -> Array:
        found: Array = self.setting.values[self.rows].mean(axis=1)
        return found

    @property
    def statistics(self) -> Array:
        return np.asarray(self.averages * UNIT)


INCOME = Setting("income", "income", ">50K", (0.2, 0.3), 0.8)
PRIVATE = Setting("private", "workclass", "Private", (0.45, 0.55), 0.6)
