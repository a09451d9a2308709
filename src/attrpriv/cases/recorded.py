"""A problem about rows like recorded ones: what is summed, in whole numbers, and which sums are hidden under which laws.

| asked | q of a row |
|---|---|
| avg(x), sum(x) | x, missing entries replaced, clipped to its bounds, rounded to its spacing |
| count(*) filter (where e) | 1 where e holds, 0 elsewhere; missing entries replaced, nothing clipped |

| secret | s of a row | values |
|---|---|---|
| mean(x), sum(x) | x, as above, but not clipped | the multiples of the spacing in `between` |
| count(e), share(e) | as above | the counts in `between`; all of them where there is none |

What must never change: public rows are turned into whole numbers as the private rows are read. What a spacing does not divide
(a bound, a value for missing entries) is refused, because a sum would leave the whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from attrpriv.assumptions.recorded_table import exactly
from attrpriv.assumptions.records import Member, Records
from attrpriv.errors import QueryError, UsageError
from attrpriv.methods.base.certificate import common_assumptions
from attrpriv.numerics.calibration.recorded_members import RecordedLaw, SecretRange
from attrpriv.numerics.laws.records import whole_between
from attrpriv.problem.counted import count_pairs
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, other_assumption, refusal_of, refusing
from attrpriv.problem.secret import Secret
from attrpriv.queries.conditions import Condition, columns_of, parse_condition
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attrpriv.assumptions.recorded_table import RecordedTable

    Whole = NDArray[np.int64]

# More values of a secret, or more different rows of two columns, take too long.
_MOST_SECRETS = 60_000
_MOST_ROWS = 20_000
# In steps of the spacing.
_HALF_WAY = Fraction(1, 1000)


@dataclass(frozen=True)
class Asked:
    """What one row adds: a column on a spacing, or an event."""

    query: Query
    column: str | None
    event: Condition | None
    unit: Fraction
    fill: float | None = None
    clip: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        return self.column if self.column is not None else str(self.event)


@dataclass(frozen=True)
class RecordedSecret:
    """One secret: what is hidden of a row, which values must be indistinguishable, and each member's law of (s, q)."""

    text: str
    hidden: Asked
    secrets: SecretRange
    laws: tuple[RecordedLaw, ...]


@dataclass(frozen=True)
class RecordedCase:
    """What is asked, and the laws under which it must hide each secret."""

    problem: Problem
    theta: tuple[Records, ...]
    asked: Asked
    checks: tuple[RecordedSecret, ...]


def recorded_case(problem: Problem) -> RecordedCase:
    """The problem in whole numbers; a refusal where the assumption, the query or a secret is of another kind."""
    theta = _theta(problem)
    with refusing(QueryError, UsageError, to=lambda error: refusal_of(error, usage=True)):
        asked = asked_of(problem, theta)
        checks = [_check(problem, theta, asked, secret) for secret in problem.secrets]
        return RecordedCase(problem, theta, asked, tuple(checks))


def _theta(problem: Problem) -> tuple[Records, ...]:
    theta = problem.assumed(Records)
    if not theta:
        raise other_assumption("records")
    if problem.known_rows:
        raise Refusal(Cause.PERSONS, "known rows have another law than those listed.", needs="known_rows 0")
    if problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS, "individuals: single persons are not covered under records.", needs=("no individuals", "a view")
        )
    return theta


def asked_of(problem: Problem, theta: Sequence[Records]) -> Asked:
    """The one statistic that is asked for."""
    queries = [query for query in problem.queries if not query.whole_table]
    if not queries:
        raise Refusal(Cause.STATISTIC, "the number of rows is public; ask for an average, a sum or a count with a filter.")
    first = queries[0]
    if len({(query.column, query.where, query.group_by, query.of) for query in queries}) > 1:
        raise Refusal(
            Cause.TOGETHER,
            f"the law of {first.text} together with {queries[1].text} is not computed; ask for one of them.",
            needs="one query",
            usage=True,
        )
    if first.group_by is not None or first.of or (first.column is not None and first.where is not None):
        raise Refusal(
            Cause.STATISTIC,
            f"answers averages and sums of one column over all rows, and counts with a filter. Got {first.text}.",
            needs=("an average of one column", "a count with a filter", "a view"),
            query=first.text,
        )
    if first.column is None:
        event = parse_condition(first.where or "")
        _require_known(theta, columns_of(event))
        return Asked(first, None, event, Fraction(1))
    unit = _unit(problem, theta, first.column, read=True)
    return Asked(first, first.column, None, unit, *_edges(problem, first.column, unit))


def _require_known(theta: Sequence[Records], columns: Sequence[str]) -> None:
    for column in columns:
        if any(column not in member.columns for member in theta):
            raise Refusal(
                Cause.NUMBERS,
                f"assume: columns: must name {column}, which is asked for or hidden. Got {', '.join(theta[0].columns)}.",
                needs=f"{column} among the columns of the assumption",
                usage=True,
            )


def _unit(problem: Problem, theta: Sequence[Records], column: str, *, read: bool) -> Fraction:
    """The spacing on which a column is summed: whole numbers as they are, anything else as the policy declares it."""
    _require_known(theta, (column,))
    values = [value for member in theta for table in member.tables for value in table.values[column]]
    if any(isinstance(value, str) for value in values):
        raise QueryError(f"assume: {column} must hold numbers, to be summed. Got texts; ask for a count or a share.")
    kind, declared = problem.types.get(column), problem.resolution.get(column)
    whole = kind in ("integer", "boolean") or (kind is None and all(value is None or value == int(value) for value in values))
    if declared is not None and not (read and whole):
        return exactly(declared)
    if whole:
        return Fraction(1)
    raise Refusal(
        Cause.PUBLIC_FACT,
        f"needs the spacing of {column}, to which rows are rounded; declare resolution: {{{column}: 1}}.",
        needs=f"resolution of {column}",
        usage=True,
    )


def _edges(problem: Problem, column: str, unit: Fraction) -> tuple[float | None, tuple[float, float] | None]:
    """The value for missing entries and the bounds, which must lie on the spacing."""
    fill, clip = problem.missing.get(column), problem.bounds.get(column)
    for key, value in (("missing", fill), *(("bounds", end) for end in clip or ())):
        if value is not None and (exactly(value) / unit).denominator != 1:
            raise Refusal(
                Cause.PUBLIC_FACT,
                f"{key}: those of {column} must be multiples of its spacing, {float(unit):g}. Got {value:g}.",
                needs=f"{key} of {column} on its spacing",
                usage=True,
            )
    return fill, clip


# ------------------------------------------------------------------------------------------------------------------- secrets


def _check(problem: Problem, theta: Sequence[Records], asked: Asked, secret: Secret) -> RecordedSecret:
    if secret.parameter is not None or secret.entries is not None or secret.whole_columns:
        raise _other_secret(secret)
    composition = secret.composition
    if composition is not None:
        if composition.condition is None:
            raise _other_secret(secret)
        _require_known(theta, columns_of(composition.condition))
        pairs = count_pairs(secret, problem.n)
        hidden = Asked(Query("count", where=str(composition.condition)), None, composition.condition, Fraction(1))
        secrets = SecretRange(kind="share", low=pairs.low, high=pairs.high, apart=pairs.apart)
    else:
        hidden, secrets = _of_form(problem, theta, secret)
    if secrets.high - secrets.low >= _MOST_SECRETS:
        raise Refusal(
            Cause.SIZE,
            f"{secret.text} has more than {_MOST_SECRETS:,} values that must be indistinguishable; narrow between.",
            needs="a narrower between",
        )
    return RecordedSecret(secret.text, hidden, secrets, _laws(problem, theta, asked, hidden))


def _other_secret(secret: Secret) -> Refusal:
    return Refusal(
        Cause.SECRET,
        f"hides a mean, a sum, a count or a share of this table. Got {secret.text}.",
        needs=("a mean, a sum, a count or a share", "a view"),
    )


def _of_form(problem: Problem, theta: Sequence[Records], secret: Secret) -> tuple[Asked, SecretRange]:
    """A mean or a sum: its values are the multiples of the spacing in its range."""
    column = secret.single
    if column is None or secret.cases is not None:
        raise _other_secret(secret)
    if secret.ends is None:
        raise Refusal(Cause.SECRET, f"needs between: [low, high] for {secret.text}, to look at each value.", needs="between")
    unit = _unit(problem, theta, column, read=False)
    # The range in sums: a mean is one n-th of it.
    each = Fraction(problem.n, secret.forms[0].weight(problem.n)) / unit
    low, high = whole_between(*secret.ends, each)
    if not low < high:
        raise QueryError(f"{secret.text}: its range holds fewer than two values of {problem.n} rows. Widen it.")
    apart = high - low if secret.within is None else min(high - low, math.ceil(exactly(secret.within) * each))
    if apart < 1:
        raise QueryError(f"within: no two values of {secret.text} are this close. Got {secret.within:g}.")
    # The secret is of entries as they are: nothing is clipped.
    hidden = Asked(Query("avg", column), column, None, unit, problem.missing.get(column))
    return hidden, SecretRange(kind="sum", low=low, high=high, apart=apart)


# ---------------------------------------------------------------------------------------------------------------------- laws


def _laws(problem: Problem, theta: Sequence[Records], asked: Asked, hidden: Asked) -> tuple[RecordedLaw, ...]:
    found: list[RecordedLaw] = []
    for records in theta:
        known = {
            id(table): (_whole(problem, table, hidden, as_it_is=True), _whole(problem, table, asked))
            for table in records.tables
        }
        found += [_law(member, *known[id(member.table)]) for member in records.members()]
    return tuple(found)


def _law(member: Member, s: Whole, q: Whole) -> RecordedLaw:
    there = member.counts > 0
    pairs, where = np.unique(np.stack([s[there], q[there]]), axis=1, return_inverse=True)
    if pairs.shape[1] > _MOST_ROWS:
        raise Refusal(
            Cause.SIZE,
            f"public rows must have at most {_MOST_ROWS:,} different pairs of what is asked and hidden. Got more; state a "
            "coarser resolution.",
            needs="a coarser resolution",
        )
    counts = np.bincount(where.reshape(-1), weights=member.counts[there].astype(np.float64)).astype(np.int64)
    return RecordedLaw(s=tuple(pairs[0].tolist()), q=tuple(pairs[1].tolist()), counts=tuple(counts.tolist()))


def _whole(problem: Problem, table: RecordedTable, what: Asked, *, as_it_is: bool = False) -> Whole:
    """Of each different public row, the whole number that a row like it adds; a hidden entry is never rounded."""
    if what.event is not None:
        return table.holds(what.event, columns_of(what.event), problem.missing)
    column = what.column or ""
    steps = [_steps(what, column, value, as_it_is=as_it_is) for value in table.values[column]]
    return np.array(steps, dtype=np.int64)[table.codes(column)]


def _steps(what: Asked, column: str, value: object, *, as_it_is: bool) -> int:
    number = what.fill if value is None else value
    if number is None or isinstance(number, str):
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"public rows have missing entries of {column}; name a public value under missing.",
            needs=f"missing of {column}",
            usage=True,
        )
    found = exactly(float(number) if isinstance(number, float) else int(number))  # type: ignore[call-overload]
    if what.clip is not None:
        found = min(max(found, exactly(what.clip[0])), exactly(what.clip[1]))
    steps = found / what.unit
    if as_it_is and steps.denominator != 1:
        raise _off_spacing(column, what.unit, "the secret is of entries as they are, and every public one must be a multiple")
    if abs(steps % 1 - Fraction(1, 2)) < _HALF_WAY:  # where exact numbers and an engine's floats may round apart
        raise _off_spacing(
            column, what.unit, "a public entry lies half-way between two multiples, where engines round differently"
        )
    return round(steps)


def _off_spacing(column: str, unit: Fraction, why: str) -> Refusal:
    return Refusal(
        Cause.PUBLIC_FACT,
        f"resolution: {column} does not lie on a spacing of {float(unit):g}: {why}. State a finer resolution.",
        needs=f"a finer resolution of {column}",
        usage=True,
    )


def recorded_assumptions(case: RecordedCase) -> tuple[str, ...]:
    """Everything that the proof rests on."""
    problem, column = case.problem, case.asked.column
    lines = [f"{'one of: ' if len(case.theta) > 1 else ''}{member}: assumed, not tested" for member in case.theta]
    lines.append("the promise is for the laws listed; rows that are like none of them may tell more")
    if column is not None:
        lines.append(f"{column} is summed on a spacing of {float(case.asked.unit):g}, to which rows are rounded")
    lines += [
        f"missing entries of {name} count as {value:g}, here and in the public rows" for name, value in problem.missing.items()
    ]
    return (*lines, "the adversary knows no row", *common_assumptions(problem))
