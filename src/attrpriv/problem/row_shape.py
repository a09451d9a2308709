"""How public rows lie: what a pass over them tells beyond means and covariances.

With z = (x - mean)/sd of a column, and e = z_q - r z_g the residual of the regression of column q on column g,

| number | formula | of normal rows |
|---|---|---|
| skewness | E z^3 | 0 |
| kurtosis | E z^4 - 3, the excess | 0 |
| curvature | E e z_g^2 / sd(e): by how many sd(e)/sd(g) the slope changes for one sd of g | 0 |
| spread | E e^2 z_g / E e^2, or (E e^2 z_g^2 / E e^2 - 1)/sqrt 2 where that is larger | 0 |
| score_variance | E (e z_g)^2 / E e^2: the variance of the slope against that of equal spreads | 1 |
| score_skewness | that of e z_g | 0 |

What must never change: these are numbers of *public* rows. Counts are for a picture, and no verdict (`assumptions.shape`) needs
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Pair = tuple[str, str]

# In standard deviations; what lies beyond an end counts in the first or the last cell.
HISTOGRAM = tuple(k / 4 for k in range(-16, 17))
STEPS = tuple(k / 2 for k in range(-6, 7))


@dataclass(frozen=True)
class ColumnShape:
    """One column, or one column in one category."""

    skewness: float
    kurtosis: float
    histogram: tuple[int, ...] = ()
    """Rows in each cell of `HISTOGRAM`."""


@dataclass(frozen=True)
class Step:
    """The rows whose sensitive value lies in one cell of `STEPS`: how many, and the released column there, in sds."""

    rows: int
    mean: float
    sd: float


@dataclass(frozen=True)
class PairShape:
    """The regression of one column on another."""

    curvature: float
    spread: float
    residual_kurtosis: float
    score_variance: float
    score_skewness: float
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class RowShape:
    """Columns, and pairs as (of, on)."""

    columns: Mapping[str, ColumnShape]
    pairs: Mapping[Pair, PairShape]


@dataclass(frozen=True)
class GroupShape:
    """Columns within categories, as (category, column)."""

    cells: Mapping[Pair, ColumnShape]
