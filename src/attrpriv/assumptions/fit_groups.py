"""A groups assumption from *public* records: a box that contains the truth with a stated confidence.

Given the categories of the public rows, the n_c rows of a category are independent normal draws, so for each of C categories
and k columns, with tail (1 - confidence)/(2 * 2 C k) on either side of each interval (Bonferroni),

| of | interval | law |
|---|---|---|
| each mean | m +- t s/sqrt(n_c) | Student, n_c - 1 |
| each sd | s sqrt((n_c - 1)/chi2) | chi-square, n_c - 1 |

are exact whatever the counts n_c are, and all hold at once with the confidence; where the rows themselves were read, they are
widened by the skewness and kurtosis of each category's rows (`assumptions.shape`). The box is centred at the estimates; each
tolerance is the largest distance from there to an end of an interval, rounded up: the rarest category decides.

Correlations are not fitted: several averages together need exact standard deviations anyway, which no fit gives.

What must never change: as in `assumptions.fit`. The confidence is that of the whole box, and the records are never the private
ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from attrpriv.assumptions.fit import (
    Interval,
    _check_confidence,
    _furthest,
    _rounded,
    _sd_ratios,
    _student,
    _up,
    widened_ratios,
)
from attrpriv.assumptions.gaussian import FittedRecord
from attrpriv.assumptions.groups import Groups, GroupTolerance
from attrpriv.assumptions.shape import group_findings, require_carried, skewed
from attrpriv.errors import DataError, UsageError
from attrpriv.problem.row_shape import GroupShape

_WIDEST_SD = 0.99


class PublicGroupMoments(Protocol):
    """What a pass over public records gives, category by category."""

    @property
    def rows(self) -> int: ...
    @property
    def sensitive(self) -> str: ...
    @property
    def categories(self) -> Sequence[str]: ...
    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def counts(self) -> Sequence[int]: ...
    @property
    def means(self) -> Sequence[Sequence[float]]:
        """Of each category, of each column."""
        ...

    @property
    def variances(self) -> Sequence[Sequence[float]]:
        """With n_c - 1 in the denominator."""
        ...

    @property
    def digest(self) -> str: ...


class PublicGroupTable(Protocol):
    """Public records that can be read by category; `attrpriv.engines.moments.PublicTable` is one."""

    def group_moments(self, sensitive: str, columns: Sequence[str]) -> PublicGroupMoments: ...


@dataclass(frozen=True)
class GroupFit:
    """The assumption, the intervals that its box contains, and what a reader should know."""

    groups: Groups
    intervals: tuple[Interval, ...]
    notes: tuple[str, ...]
    shape: GroupShape | None = None


def fit_group_table(
    table: PublicGroupTable, *, confidence: float, sensitive: str, columns: Sequence[str], other: str | None = None
) -> GroupFit:
    """Read the moments of the columns in each category and fit them."""
    _check_confidence(confidence)
    named = tuple(dict.fromkeys(columns))
    if not named or sensitive in named:
        raise UsageError(f"columns: must be one or more, other than {sensitive}. Got {', '.join(named) or 'none'}.")
    if not callable(getattr(table, "group_moments", None)):  # a path is easily given by mistake
        raise UsageError(f'table: must be public records, as in PublicTable("public.parquet"). Got a {type(table).__name__}.')
    return fit_examined_groups(table, table.group_moments(sensitive, named), confidence=confidence, other=other)


def fit_examined_groups(table: object, moments: PublicGroupMoments, *, confidence: float, other: str | None = None) -> GroupFit:
    """The box for a table with these moments, once the shape of its rows is read; a table that does not tell: not examined."""
    _check_confidence(confidence)
    _check(moments, _tail(moments, confidence))
    examine = getattr(table, "group_shape", None)
    shape = examine(moments) if callable(examine) else None
    return fit_group_moments(moments, confidence=confidence, other=other, shape=shape)


def fit_group_moments(
    moments: PublicGroupMoments, *, confidence: float, other: str | None = None, shape: GroupShape | None = None
) -> GroupFit:
    """The box for all categories and columns of these moments; without the shape of the rows they are taken for normal."""
    _check_confidence(confidence)
    tail = _tail(moments, confidence)
    _check(moments, tail)
    _check_shape(moments, shape, tail)
    cells = [(c, k) for c in range(len(moments.categories)) for k in range(len(moments.columns))]
    found = [_intervals(moments, c, k, tail, shape) for c, k in cells]
    box = _box(moments, found, confidence, other, shape)
    return GroupFit(box, tuple(interval for pair in found for interval in pair), _notes(moments), shape)


def _tail(moments: PublicGroupMoments, confidence: float) -> float:
    return (1 - confidence) / (4 * len(moments.categories) * len(moments.columns)) if moments.categories else 0.0


def _check_shape(moments: PublicGroupMoments, shape: GroupShape | None, tail: float) -> None:
    counts = dict(zip(moments.categories, moments.counts, strict=True))
    for (category, column), one in () if shape is None else shape.cells.items():
        require_carried(f"{column} in {category}", counts[category], one.kurtosis, tail)


def least_group_rows(tail: float) -> int:
    """The fewest rows of a category from which every sd is known to within a factor below 2."""
    low, high = 2, 3
    while _sd_ratios(tail, high - 1)[1] - 1 > _WIDEST_SD:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _sd_ratios(tail, middle - 1)[1] - 1 > _WIDEST_SD else (low, middle)
    return high


def _check(moments: PublicGroupMoments, tail: float) -> None:
    if len(moments.categories) < 2:
        raise DataError(f"public: {moments.sensitive} must have two or more categories. Got {len(moments.categories)}.")
    needed = least_group_rows(tail)
    for category, count, means, variances in zip(
        moments.categories, moments.counts, moments.means, moments.variances, strict=True
    ):
        if count < needed:
            raise DataError(
                f"public: needs at least {needed} rows of each category at this confidence. Got {count} of {category}. "
                "Find more public records, or state the assumption yourself."
            )
        for column, mean, variance in zip(moments.columns, means, variances, strict=True):
            if not (math.isfinite(mean) and math.isfinite(variance)):
                raise DataError("public: means and variances must be finite. Got one that is not.")
            if not variance > (1e-12 * mean) ** 2:
                raise DataError(f"public: every column must vary in each category. Got {column}, constant in {category}.")


def _intervals(moments: PublicGroupMoments, c: int, k: int, tail: float, shape: GroupShape | None) -> tuple[Interval, Interval]:
    """Mean and sd of one column in one category."""
    of, on = moments.columns[k], moments.categories[c]
    n, mean, sd = moments.counts[c], moments.means[c][k], math.sqrt(moments.variances[c][k])
    seen = None if shape is None else shape.cells[on, of]
    t = _student(tail, n - 1)
    reach = (t if seen is None else skewed(t, seen.skewness, n)) * sd / math.sqrt(n)
    low, high = _sd_ratios(tail, n - 1) if seen is None else widened_ratios(tail, n - 1, n, seen.kurtosis)
    return Interval("mean", of, on, mean, mean - reach, mean + reach), Interval("sd", of, on, sd, sd * low, sd * high)


def _box(
    moments: PublicGroupMoments,
    found: Sequence[tuple[Interval, Interval]],
    confidence: float,
    other: str | None,
    shape: GroupShape | None,
) -> Groups:
    """Centred at the estimates, to as many digits as a reader can bear; distances are taken from these very numbers."""
    means: dict[str, dict[str, float]] = {category: {} for category in moments.categories}
    sds: dict[str, dict[str, float]] = {category: {} for category in moments.categories}
    for mean, sd in found:
        means[str(mean.on)][mean.of], sds[str(sd.on)][sd.of] = _rounded(mean.estimate), _rounded(sd.estimate)
    spread = _up(max(_furthest(sd, sds[str(sd.on)][sd.of]) / sds[str(sd.on)][sd.of] for _, sd in found))
    # In the smallest sd of the box, so that the means are inside whichever sd a reader of the box has in mind.
    least = 1 - spread
    reach = _up(max(_furthest(m, means[str(m.on)][m.of]) / (sds[str(m.on)][m.of] * least) for m, _ in found))
    counts = dict(zip(moments.categories, moments.counts, strict=True))
    verdicts = None if shape is None else group_findings(shape, counts)
    return Groups(
        sensitive=moments.sensitive,
        mean=means,
        sd=sds,
        tolerance=GroupTolerance(mean=reach, sd=spread),
        other=other,
        fitted=FittedRecord(rows=moments.rows, digest=moments.digest, confidence=confidence, shape=verdicts),
    )


def _notes(moments: PublicGroupMoments) -> tuple[str, ...]:
    rarest = min(range(len(moments.categories)), key=lambda c: moments.counts[c])
    notes = [f"the rarest category, {moments.categories[rarest]} with {moments.counts[rarest]} rows, decides the tolerances."]
    if len(moments.columns) > 1:
        notes.append("correlations are not fitted: several averages together need exact sds. Ask for one at a time.")
    return tuple(notes)
