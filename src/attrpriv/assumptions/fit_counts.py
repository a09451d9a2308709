"""A counts assumption from *public* records: intervals that contain all probabilities at once, with a stated confidence.

Given the categories of the public rows, the number of rows of a category with an event is binomial. So with K intervals in all,
each of which misses on either side with probability (1 - confidence)/(2K) at most (Bonferroni),

| of | interval | law |
|---|---|---|
| each event in each category | Clopper and Pearson | binomial, n_c rows of the category |
| each value of a listed column in each category | the same | the same |
| each category's share, the prior | the same | binomial, all n rows |

hold at once with the confidence, whatever the probabilities are; nothing is approximated (clopper1934use). The ends are

    low:  P(k or more of n | low)   = tail         high:  P(k or fewer of n | high) = tail

rounded outward to six digits, and checked after rounding. That there are no categories and values but those of
the public records is part of the assumption.

What must never change: the confidence is that of the whole box. It rests on the public rows being independent, of the
population of the private table, and independent of that table: none of this is tested. The records are never the private ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Protocol

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.fit import Interval, _check_confidence
from attrpriv.assumptions.gaussian import FittedRecord
from attrpriv.assumptions.probabilities import Pair
from attrpriv.errors import DataError, UsageError
from attrpriv.queries.conditions import columns_of, literal, parse_condition, tests_null

_DIGITS = 6
# Of the tail, for the rounding of the incomplete beta function.
_SLACK = 1 - 1e-6


class PublicValues(Protocol):
    """How many rows of each category have each value of a column."""

    @property
    def column(self) -> str: ...
    @property
    def values(self) -> Sequence[int | str]: ...
    @property
    def counts(self) -> Sequence[Sequence[int]]: ...


class PublicCounts(Protocol):
    """What a pass over public records gives, category by category."""

    @property
    def rows(self) -> int: ...
    @property
    def sensitive(self) -> str: ...
    @property
    def categories(self) -> Sequence[str]: ...
    @property
    def counts(self) -> Sequence[int]: ...
    @property
    def events(self) -> Sequence[str]: ...
    @property
    def hits(self) -> Sequence[Sequence[int]]:
        """Of each category, of each event."""
        ...

    @property
    def values(self) -> Sequence[PublicValues]: ...
    @property
    def digest(self) -> str: ...


class PublicCountTable(Protocol):
    """Public records that can be counted; `attrpriv.PublicTable` is one."""

    def group_counts(self, sensitive: str, events: Sequence[str], columns: Sequence[str]) -> PublicCounts: ...


@dataclass(frozen=True)
class CountFit:
    """The assumption, the intervals that it states, and what a reader should know."""

    counts: Counts
    intervals: tuple[Interval, ...]
    notes: tuple[str, ...]


def fit_count_table(
    table: PublicCountTable,
    *,
    confidence: float,
    sensitive: str,
    events: Sequence[str] = (),
    columns: Sequence[str] = (),
    other: str | None = None,
) -> CountFit:
    """Count the events and the columns' values in each category, and fit their probabilities."""
    _check_confidence(confidence)
    if not events and not columns:
        raise UsageError("events, columns: at least one event, such as stay > 7, or one column must be named. Got none.")
    for text in events:
        require_fittable(sensitive, text, "events")
    if sensitive in columns:
        raise UsageError(f"columns: must be other than {sensitive}, whose categories are hidden.")
    if not callable(getattr(table, "group_counts", None)):  # a path is easily given by mistake
        raise UsageError(f'table: must be public records, as in PublicTable("public.parquet"). Got a {type(table).__name__}.')
    return fit_group_counts(table.group_counts(sensitive, tuple(events), tuple(columns)), confidence=confidence, other=other)


def require_fittable(sensitive: str, event: str, key: str) -> None:
    """UsageError where public records do not tell the probability of an event in each category."""
    condition = parse_condition(event)
    read = columns_of(condition)
    if sensitive in read:
        raise UsageError(
            f"{key}: an event is fitted where it is not about {sensitive}, whose categories are hidden. Got {event}."
        )
    if any(tests_null(condition, column) for column in read):
        raise UsageError(
            f"{key}: public records must have every entry, so that nothing is learned of missing ones. Got {event}."
        )


def fit_group_counts(found: PublicCounts, *, confidence: float, other: str | None = None) -> CountFit:
    """The intervals for all categories, events and values of these counts."""
    _check_confidence(confidence)
    _check(found)
    in_all = len(found.categories) * (1 + len(found.events) + sum(len(one.values) for one in found.values))
    tail = (1 - confidence) / (2 * in_all)
    intervals: list[Interval] = []
    given: dict[str, dict[str, object]] = {}
    for k, event in enumerate(found.events):
        given[event] = {}
        for category, rows, hits in zip(found.categories, found.counts, found.hits, strict=True):
            intervals.append(_interval("probability", event, category, hits[k], rows, tail))
            given[event][category] = _ends(intervals[-1])
    for one in found.values:
        given[one.column] = {}
        for category, rows, counts in zip(found.categories, found.counts, one.counts, strict=True):
            names = [f"{one.column} = {literal(value)}" for value in one.values]
            law = [_interval("probability", name, category, k, rows, tail) for name, k in zip(names, counts, strict=True)]
            intervals += law
            given[one.column][category] = {"values": list(one.values), "probabilities": [list(_ends(i)) for i in law]}
    shares = [_interval("share", c, None, k, found.rows, tail) for c, k in zip(found.categories, found.counts, strict=True)]
    counts_ = Counts(
        sensitive=found.sensitive,
        given=given,
        prior={share.of: _ends(share) for share in shares},
        other=other,
        fitted=FittedRecord(rows=found.rows, digest=found.digest, confidence=confidence),
    )
    return CountFit(counts_, (*intervals, *shares), _notes(found))


def _check(found: PublicCounts) -> None:
    if len(found.categories) < 2:
        raise DataError(f"public: {found.sensitive} must have two or more categories. Got {len(found.categories)}.")
    for one in found.values:
        if len(one.values) < 2:
            raise DataError(f"public: {one.column} must have two or more values. Got {len(one.values)}.")
    for name in found.categories:
        if name == "":
            raise DataError(f"public: every row must have a category of {found.sensitive}. Got an empty text. Give it a name.")


def _interval(kind: str, of: str, on: str | None, k: int, n: int, tail: float) -> Interval:
    low, high = binomial_limits(k, n, tail)
    return Interval("share" if kind == "share" else "probability", of, on, k / n, low, high)


def _ends(interval: Interval) -> Pair:
    return interval.low, interval.high


def binomial_limits(k: int, n: int, tail: float) -> tuple[float, float]:
    """Clopper and Pearson's limits of a probability, of k of n: each is beyond the truth with probability `tail` at most.

    >>> binomial_limits(0, 100, 0.025), binomial_limits(10, 100, 0.025)
    ((0.0, 0.0362168), (0.0490046, 0.176223))
    """
    if not (0 <= k <= n and n > 0 and 0 < tail < 0.5):
        raise UsageError(f"counts: must be 0 to the number of rows, with a tail between 0 and 0.5. Got {k}, {n}, {tail!r}.")
    low = 0.0 if k == 0 else _rounded(_least(k, n, tail), ROUND_FLOOR)
    high = 1.0 if k == n else min(1.0, _rounded(1 - _least(n - k, n, tail), ROUND_CEILING))
    if not (_reached(k, n, low) <= tail and _reached(n - k, n, 1 - high) <= tail and low <= k / n <= high):
        raise UsageError(f"counts: no limits were found for {k} of {n} at a tail of {tail!r}. Please report this.")
    return low, high


def _least(k: int, n: int, tail: float) -> float:
    """The p at which k or more of n have probability just below `tail`."""
    from scipy import special

    return float(special.betaincinv(k, n - k + 1, tail * _SLACK))


def _reached(k: int, n: int, p: float) -> float:
    """P(k or more of n | p); 0 where the limit is at its end."""
    from scipy import special

    return 0.0 if k == 0 or p <= 0 else float(special.betainc(k, n - k + 1, p))


def _rounded(value: float, direction: str) -> float:
    return float(Context(prec=_DIGITS, rounding=direction).create_decimal(Decimal(value)))


def _notes(found: PublicCounts) -> tuple[str, ...]:
    rarest = min(range(len(found.categories)), key=lambda c: found.counts[c])
    notes = [f"the rarest category, {found.categories[rarest]} with {found.counts[rarest]} rows, has the widest intervals."]
    notes.append("the prior is that of the public records: remove it where the private table has another composition.")
    if found.values:
        listed = ", ".join(one.column for one in found.values)
        notes.append(f"{listed}: that there are no values but those of the public records is assumed.")
    never = [event for k, event in enumerate(found.events) if not any(hits[k] for hits in found.hits)]
    notes += [f"{event}: no public row is so. Is it written as the records are?" for event in never]
    return tuple(notes)
