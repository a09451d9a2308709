"""The hierarchy assumption: populations differ, and a table is drawn from one of them.

    phi ~ N(m, S)                 the columns' means in the population behind the table
    column means | phi ~ N(phi, D/n)    of a table of n rows, columns independent given phi

| symbol | key |
|---|---|
| m | `mean`: of the populations' means; a query column's is optional |
| S | `between_sd`, `between_correlation`: how populations' means vary, and vary together |
| D | `within_sd`, squared on the diagonal: how rows vary around their population's mean |

A secret is `{parameter: income, between: [low, high]}`: phi of one column. Given phi_i = a, with b = S_ij/S_ii,

    mean of column j | phi_i = a  ~  N(m_j + b (a - m_i), V),        V = S_jj - S_ij^2/S_ii + D_j/n

so that V does not depend on a. `tolerance` has no default, and only 0 is covered in this version. What must never change: this
module is only moments; what is proved from them is in `methods.hierarchy.means`, `methods.transport.plan` and the evidence.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from attrpriv.assumptions.gaussian import Pairs
from attrpriv.frozen import Finite, FrozenMap, Positive
from attrpriv.frozen.requirements import shown
from attrpriv.numerics.rounding import PSD_SLACK, SOME_ULPS
from attrpriv.problem.assumption import Assumption, ExpectedEntry, NormalBelief, NormalBox
from attrpriv.problem.shapes import POPULATION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.problem.secret import Secret

    Matrix = NDArray[np.float64]


def _read_tolerance(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return 0
    raise ValueError(
        "must be 0 in this version: every stated number is taken as exact, and no box around them is covered. "
        f"Got {shown(value)}."
    )


class Hierarchy(Assumption):
    """Populations' means are jointly normal; rows are independent and normal around them, columns independent.

    >>> Hierarchy(between_sd={"weight": 5, "income": 8_000}, between_correlation={("weight", "income"): 0.3},
    ...     within_sd={"weight": 25, "income": 30_000}, tolerance=0).slope("weight", "income")
    0.0001875
    """

    shape: ClassVar[str] = POPULATION
    kind: Literal["hierarchy"] = "hierarchy"
    mean: FrozenMap[Finite] = Field(default_factory=dict, description="of the populations' means; a query column's is optional")
    between_sd: FrozenMap[Positive] = Field(description="standard deviation of the populations' means, of each column")
    between_correlation: Pairs = Field(
        default_factory=dict, description="correlation of the populations' means, of each pair of columns, as a~b"
    )
    within_sd: FrozenMap[Positive] = Field(description="standard deviation of rows around their population's mean")
    tolerance: Annotated[Literal[0], BeforeValidator(_read_tolerance, json_schema_input_type=Literal[0])] = Field(
        description="how far the truth may be from these numbers; only 0 in this version"
    )

    @model_validator(mode="after")
    def _complete(self) -> Hierarchy:
        if not self.between_sd:
            raise ValueError("between_sd: must name at least one column. Got none.")
        self._require_columns("mean", self.mean, whole=False)
        self._require_columns("within_sd", self.within_sd, whole=True)
        self._require_pairs()
        self._require_semidefinite()
        return self

    def _require_columns(self, name: str, given: Mapping[str, float], *, whole: bool) -> None:
        unknown = [column for column in given if column not in self.between_sd]
        lacking = [column for column in self.between_sd if column not in given] if whole else []
        if unknown or lacking:
            told = [f"unknown {', '.join(unknown)}"] * bool(unknown) + [f"missing {', '.join(lacking)}"] * bool(lacking)
            raise ValueError(f"{name}: needs the columns of between_sd, {', '.join(self.columns)}. Got {'; '.join(told)}.")

    def _require_pairs(self) -> None:
        pairs = self.between_correlation
        for pair, value in pairs.items():
            first, second = pair.split("~")
            if first == second or not {first, second} <= set(self.columns):
                raise ValueError(f"between_correlation: {pair} must name two different columns of {', '.join(self.columns)}.")
            if not -1 <= value <= 1:
                raise ValueError(f"between_correlation: {pair}: must be between -1 and 1. Got {value:g}.")
        wanted = itertools.combinations(self.columns, 2)
        lacking = [f"{a}~{b}" for a, b in wanted if f"{a}~{b}" not in pairs and f"{b}~{a}" not in pairs]
        if lacking:
            raise ValueError(
                f"between_correlation: every pair of columns is needed (0 is allowed). Missing: {', '.join(lacking)}."
            )

    def _require_semidefinite(self) -> None:
        import numpy as np

        smallest = float(np.linalg.eigvalsh(self.correlation_matrix(self.columns))[0])
        if not smallest >= -PSD_SLACK:
            raise ValueError(
                "between_correlation: the matrix must be positive semidefinite, so that some populations can have it. "
                f"Got a smallest eigenvalue of {smallest:.4g}; make some correlation weaker."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose law is assumed."""
        return tuple(self.between_sd)

    def correlation_of(self, first: str, second: str) -> float:
        if first == second:
            return 1.0
        pairs = self.between_correlation
        return pairs[f"{first}~{second}"] if f"{first}~{second}" in pairs else pairs[f"{second}~{first}"]

    def slope(self, query: str, hidden: str) -> float:
        """How far a query column's mean moves, in expectation, with the hidden column's mean in the population."""
        return self.correlation_of(query, hidden) * self.between_sd[query] / self.between_sd[hidden]

    def correlation_matrix(self, columns: Sequence[str]) -> Matrix:
        import numpy as np

        return np.array([[self.correlation_of(a, b) for b in columns] for a in columns], dtype=np.float64)

    def spread_given(self, columns: Sequence[str], hidden: str, n: int) -> Matrix:
        """The covariance of these columns' averages over n rows, given the hidden column's mean in the population."""
        import numpy as np

        seen = np.array([self.correlation_of(column, hidden) for column in columns])
        left = self.correlation_matrix(columns) - np.outer(seen, seen)
        # 1 - r^2 without the cancellation that r near one brings.
        np.fill_diagonal(left, [(1 - r) * (1 + r) for r in seen])
        if len(columns) > 1:
            left = _surely(left)
        sds = np.array([self.between_sd[column] for column in columns])
        rows = np.array([self.within_sd[column] ** 2 / n for column in columns])
        spread: Matrix = left * np.outer(sds, sds) + np.diag(rows)
        return spread

    def belief(self, secret: Secret, n: int, bins: Mapping[str, Sequence[float]]) -> NormalBelief | None:
        """Of the mean of one column in the population."""
        column = secret.attribute
        if column is None or column not in self.between_sd:
            return None
        centre = (self.mean[column],) * 2 if column in self.mean else None
        sd = max(self.between_sd[column], self.within_sd[column] / math.sqrt(n))
        return NormalBelief((NormalBox(centre, (sd, sd)),))

    def expected_rows(self, columns: Sequence[str], n: int) -> list[dict[str, ExpectedEntry]]:
        """Rows that are averaged to the variance that averages have over all populations."""
        sds = {c: math.hypot(self.between_sd[c] * math.sqrt(n), self.within_sd[c]) for c in columns if c in self.mean}
        return [{c: ExpectedEntry(self.mean[c], 0.0, sd) for c, sd in sds.items()}] if sds else []

    def explained(self) -> tuple[str, ...]:
        return (
            f"Whoever believes that populations differ in their means of {', '.join(self.columns)}, jointly normal, and that "
            "the table's rows are independent and normal around the means of one population, columns independent.",
            "They may know exactly how populations vary and how rows vary within one, but not which population it is.",
        )

    def __str__(self) -> str:
        return (
            f"populations' means of {', '.join(self.columns)} jointly normal, rows independent and normal around them, columns "
            "independent given them; tolerance 0: every stated number is taken as exact"
        )


def _surely(left: Matrix) -> Matrix:
    """A matrix that is surely below what a rounded difference of correlations stands for.

    Off the diagonal it is rounded as its parts are, near one, so that as much is taken from every direction. Where nothing sure
    is left, nothing is credited; a column that the hidden one determines has nothing to begin with.
    """
    import numpy as np

    open_ = np.diag(left) > 0
    slack = len(left) * SOME_ULPS
    inner = left[np.ix_(open_, open_)] - np.eye(int(open_.sum())) * slack
    found = np.zeros_like(left)
    if inner.size and np.linalg.eigvalsh(inner)[0] >= slack:
        found[np.ix_(open_, open_)] = inner
    return found
