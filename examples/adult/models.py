"""The two models under attack: naive Bayes and logistic regression, for whether an income is above 50,000 dollars.

Neither sees sex, relationship or marital status. Both are ordinary: maximum likelihood with a little smoothing. What must
never change: the encoding is fixed in advance (levels, centres, scales), so that parameters depend on the training rows only
through the fit, and `parameters` is everything that someone who receives the model can read in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import expit

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# The levels of each category; whatever is not listed, `?` included, is one more level.
LEVELS: Mapping[str, tuple[str, ...]] = {
    "workclass": tuple(
        "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked".split()
    ),
    "occupation": tuple(
        "Prof-specialty Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
        "Machine-op-inspct Other-service Priv-house-serv Protective-serv Sales Tech-support Transport-moving".split()
    ),
    "race": tuple("White Black Asian-Pac-Islander Amer-Indian-Eskimo".split()),
    "native_country": ("United-States",),
}
# Centre and scale of each number; amounts of money as logarithms.
SCALES: Mapping[str, tuple[float, float]] = {
    "age": (40, 15),
    "education_num": (10, 2.5),
    "hours_per_week": (40, 12),
    "capital_gain": (0, 3),
    "capital_loss": (0, 3),
}
SMOOTHING = 1.0  # naive Bayes: added to every count
LEAST_VARIANCE = 1e-3
PENALTY = 1.0  # logistic regression: half of it times the squared weights, as with C = 1 elsewhere
MOST_STEPS = 50
SMALL_STEP = 1e-6


@dataclass(frozen=True)
class Encoded:
    """Rows as numbers, one block of 0/1 columns for each category, and the label."""

    numbers: Floats
    categories: tuple[Floats, ...]
    rich: Flags

    @classmethod
    def of(cls, table: Any) -> Self:
        numbers = np.column_stack([_scaled(table, name, *scale) for name, scale in SCALES.items()])
        return cls(numbers, tuple(_one_hot(table, name, levels) for name, levels in LEVELS.items()), _equals(table))

    @cached_property
    def design(self) -> Floats:
        """A constant, the numbers, and each category without its first level."""
        return np.hstack([np.ones((len(self.rich), 1)), self.numbers, *(block[:, 1:] for block in self.categories)])


def _scaled(table: Any, name: str, centre: float, scale: float) -> Floats:
    values = table[name].to_numpy().astype(np.float64)
    return np.asarray(((np.log1p(values) if name.startswith("capital") else values) - centre) / scale)


def _one_hot(table: Any, name: str, levels: tuple[str, ...]) -> Floats:
    column = table[name].cast(pa.string())
    codes = pc.index_in(column, value_set=pa.array(levels)).fill_null(len(levels)).to_numpy()
    return np.asarray(np.eye(len(levels) + 1)[codes])


def _equals(table: Any) -> Flags:
    return np.asarray(pc.equal(table["income"], ">50K").to_numpy(), dtype=np.bool_)


class Model(Protocol):
    """What the adversary gets, and what the user of the model does with it."""

    @property
    def parameters(self) -> Floats: ...

    def predict(self, rows: Encoded) -> Flags: ...


@dataclass(frozen=True)
class NaiveBayes:
    """Categories and normal numbers, independent within each of the two classes of income."""

    prior: Floats  # log P(class)
    chances: tuple[Floats, ...]  # log P(level | class), one array a category
    means: Floats
    variances: Floats

    @classmethod
    def fit(cls, rows: Encoded) -> Self:
        classes = np.column_stack([~rows.rich, rows.rich]).astype(np.float64)
        sizes = classes.sum(axis=0)
        counts = [classes.T @ block + SMOOTHING for block in rows.categories]
        means = classes.T @ rows.numbers / sizes[:, None]
        variances = classes.T @ rows.numbers**2 / sizes[:, None] - means**2 + LEAST_VARIANCE
        chances = tuple(np.log(count / count.sum(axis=1, keepdims=True)) for count in counts)
        return cls(np.log(sizes / sizes.sum()), chances, means, variances)

    @property
    def parameters(self) -> Floats:
        return np.concatenate([part.ravel() for part in (self.prior, *self.chances, self.means, np.log(self.variances))])

    def scores(self, rows: Encoded) -> Floats:
        """log P(class, row) up to a constant, one column a class."""
        scores = self.prior + sum(block @ chance.T for block, chance in zip(rows.categories, self.chances, strict=True))
        precise = 1 / self.variances  # the square (x - m)^2 / v, multiplied out
        squares = rows.numbers**2 @ precise.T - 2 * rows.numbers @ (self.means * precise).T
        constant = (self.means**2 * precise + np.log(self.variances)).sum(axis=1)
        return np.asarray(scores - (squares + constant) / 2)

    def predict(self, rows: Encoded) -> Flags:
        scores = self.scores(rows)
        return np.asarray(scores[:, 1] > scores[:, 0])


@dataclass(frozen=True)
class LogisticRegression:
    """log-odds linear in the columns; the constant comes first in `weights` and is not penalised."""

    weights: Floats

    @classmethod
    def fit(cls, rows: Encoded) -> Self:
        """Newton's method from zero: some six steps on such data, where a quasi-Newton method needs a hundred evaluations."""
        design = rows.design
        penalty = np.full(design.shape[1], PENALTY)
        penalty[0] = 0
        weights = np.zeros_like(penalty)
        for _ in range(MOST_STEPS):
            chances = expit(design @ weights)
            slope = (chances - rows.rich) @ design + penalty * weights
            curvature = (design * (chances * (1 - chances))[:, None]).T @ design + np.diag(penalty)
            step = np.linalg.solve(curvature, slope)
            weights = weights - step
            if np.abs(step).max() < SMALL_STEP:
                return cls(weights)
        raise ArithmeticError(f"logistic regression did not converge in {MOST_STEPS} steps.")

    @property
    def parameters(self) -> Floats:
        return self.weights

    def predict(self, rows: Encoded) -> Flags:
        return np.asarray(rows.design @ self.weights > 0)


MODELS: Mapping[str, type[NaiveBayes] | type[LogisticRegression]] = {
    "naive Bayes": NaiveBayes,
    "logistic regression": LogisticRegression,
}
