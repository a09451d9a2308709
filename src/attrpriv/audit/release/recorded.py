"""Tables made of public records, in which the secret has a given value: what a plan would read of them.

Records are drawn as for the audit of a model (`audit.tables`). What each record adds to an average or a count is computed once,
in floats; of the first table, what is read is compared with what the engine reads.

What must never change: the private table is not opened here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from attrpriv.audit.release.stated import Asked, NotDrawn, Pair, World, counted_pairs, places, to_try
from attrpriv.audit.tables import Draws, Floats, Statistic, holds
from attrpriv.audit.views import View, key_of, view_of
from attrpriv.engines.tables import Source, open_table, quietly
from attrpriv.errors import CertificateError, DataError, UsageError
from attrpriv.methods.base.parts import AveragesPart, StatisticPart, TallyPart, ViewPart, WeightsPart
from attrpriv.methods.base.plan import Plan
from attrpriv.policy import Policy
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.query import Query
from attrpriv.session.table_reads import averages, read, tallied, weighted

NOT_THE_SAME = "audit: it must read of a table what the library reads. Got something else. Please report this."
_PAIRS = 5


@dataclass(frozen=True)
class _Recorded:
    label: str
    secret: str
    pairs: tuple[Pair, ...]
    draws: Mapping[Pair, Draws]
    reader: Any
    few: int = 300

    def tables(self, value: float, count: int, generator: np.random.Generator) -> list[Any]:
        pair = next(pair for pair in self.pairs if value in pair)
        made, high = self.draws[pair], value == pair[1]
        return [self.reader(made.rows(high, generator), generator) for _ in range(count)]

    def smooth(self, value: float, count: int, generator: np.random.Generator) -> None:
        return None


def record_worlds(plan: Plan, problem: Problem, policy: Policy | None, frame: Any, asked: Asked | None) -> list[World]:
    """One world for each secret; NotDrawn where tables of records cannot be made for it.

    No table's value lies outside of its pair: what tells the tables apart tells values that are no further apart than these.
    """
    source = open_table(frame)
    found: list[World] = []
    for secret, pairs in to_try(problem, asked):
        statistic = Statistic.of(secret.text, source, frame, problem.n)
        made = _draws(statistic, pairs, problem.n) if pairs is not None else _drawable(problem, secret, statistic)
        tried = tuple(made)
        reader = _reader(plan, policy, source, frame, statistic, problem.n)
        if not isinstance(plan.part, ViewPart):
            _spot_check(plan, policy, frame, made[tried[0]], reader)
        found.append(_Recorded("tables of the public records", secret.text, tried, made, reader))
    return found


def _draws(statistic: Statistic, pairs: Sequence[Pair], n: int) -> dict[Pair, Draws]:
    return {pair: Draws.of(statistic, pair, n).inward() for pair in pairs}


def _drawable(problem: Problem, secret: Secret, statistic: Statistic) -> dict[Pair, Draws]:
    """Some pairs from all over the range, as far as the records have such tables."""
    ends = float(statistic.scores.min()) * statistic.weight, float(statistic.scores.max()) * statistic.weight
    listed = [pair for pair in _pairs(problem, secret, statistic) if ends[0] <= pair[0] and pair[1] <= ends[1]]
    found: dict[Pair, Draws] = {}
    for k in sorted({round(k) for k in np.linspace(0, len(listed) - 1, _PAIRS)} if listed else ()):
        with suppress(UsageError):  # a value so near the end of what the records have that no table has it
            found |= _draws(statistic, [listed[k]], problem.n)
    if not found:
        raise NotDrawn(
            f"The records have no tables with two values of {secret.text} that must be indistinguishable. Name them as pairs."
        )
    return found


def _pairs(problem: Problem, secret: Secret, statistic: Statistic) -> list[Pair]:
    if secret.entries is not None or secret.whole_columns or secret.parameter is not None or isinstance(secret.secret, tuple):
        raise NotDrawn(
            f"Tables of records are made for a mean, a sum, a count or a share of this table, not for {secret.text}."
        )
    if secret.composition is not None:
        return counted_pairs(secret, problem.n)
    gap, middle = secret.gap, float(statistic.scores.mean()) * statistic.weight
    low, high = secret.ends or (middle - 3 * gap, middle + 3 * gap)
    return places(low, high, gap, None)


# ---------------------------------------------------------------------------------------------------------- what is read


def _reader(plan: Plan, policy: Policy | None, source: Source, frame: Any, statistic: Statistic, n: int) -> Any:
    part = plan.part
    if isinstance(part, ViewPart):
        return _view_reader(plan, policy, source, frame, statistic, n)
    if isinstance(part, TallyPart):
        return _tally_reader(part, source)
    if isinstance(part, WeightsPart):
        return _weights_reader(plan, frame)
    if isinstance(part, StatisticPart) or not isinstance(part, AveragesPart):
        raise NotDrawn("Tables of records are made for averages, counts, weights and views, not for other statistics.")
    return _average_reader(plan, part, source, frame)


def _average_reader(plan: Plan, part: AveragesPart, source: Source, frame: Any) -> Any:
    if any(column.where is not None or column.rows is not None or column.terms for column in part.columns):
        raise NotDrawn("Averages over some of the rows, or of combinations, are not taken from tables of records.")
    added = [numbers(frame, column.column, column.fill, column.clip) for column in part.columns]
    added += [numbers(frame, column, fill, None) for column, fill in plan.read_columns.items()]
    kinds = _categories(part.categories, source)

    def look(rows: Any, generator: np.random.Generator) -> Any:
        return [Fraction(float(one[rows].mean())) for one in added], tuple(int(kind[rows].sum()) for kind in kinds)

    return look


def _tally_reader(part: TallyPart, source: Source) -> Any:
    if part.tally.clips or part.tally.fill:
        raise NotDrawn("Counts of values that are clipped or filled are not taken from tables of records.")
    cells = [holds(parse_condition(cell.where), source) for cell in part.tally.cells]
    kinds = _categories(part.tally.categories, source)

    def look(rows: Any, generator: np.random.Generator) -> Any:
        return [int(cell[rows].sum()) for cell in cells], [int(kind[rows].sum()) for kind in kinds]

    return look


def _weights_reader(plan: Plan, frame: Any) -> Any:
    grids = plan.certificate.evidence.gram_columns()
    steps = np.column_stack([np.round((numbers(frame, c, fill, None) - centre) / step) for c, centre, step, fill in grids])

    def look(rows: Any, generator: np.random.Generator) -> Any:
        taken = steps[rows]
        return len(rows), [int(x) for x in taken.sum(axis=0)], [[int(x) for x in row] for row in taken.T @ taken]

    return look


def _view_reader(plan: Plan, policy: Policy | None, source: Source, frame: Any, statistic: Statistic, n: int) -> Any:
    if policy is None:
        raise NotDrawn("To draw views, the audit needs the policy: give it, or a session, instead of a problem.")
    if plan.view is not None and plan.view.persons is not None:
        raise NotDrawn("Answers from a view with noise for single persons are not drawn here.")
    view: View = view_of(policy, source, statistic, n)
    added = [_of_query(query, source, frame) for query in plan.queries]

    def look(rows: Any, generator: np.random.Generator) -> Any:
        kept = rows[view.kept(rows, key_of(int(generator.integers(2**31 - 1))))]
        return [float(one[kept].mean()) for one in added]

    return look


def _of_query(query: Query, source: Source, frame: Any) -> Floats:
    if query.kind == "count" and query.group_by is None and not query.of:
        return np.ones(len(frame)) if query.where is None else holds(parse_condition(query.where), source)
    if query.kind in ("avg", "sum") and query.plain and not query.of and query.column is not None:
        return numbers(frame, query.column, None, None)
    raise NotDrawn(f"Answers to {query.text} are not computed from views of records here.")


def _categories(categories: Sequence[Any], source: Source) -> list[Floats]:
    found = [None if one.where is None else holds(parse_condition(one.where), source) for one in categories]
    named = sum((one for one in found if one is not None), np.zeros(1))
    return [1 - named if one is None else one for one in found]


def numbers(frame: Any, column: str, fill: float | None, clip: tuple[float, float] | None) -> Floats:
    """A column of the records as a plan reads it: missing entries have their public value, and ends are clipped."""
    if column not in frame.columns:
        raise DataError(f"records: must have the column {column}. Got records without it.")
    values = quietly(lambda: frame[column].to_numpy(np.float64, na_value=np.nan))
    if values is None:
        raise DataError(f"records: {column} must be numbers. Got something else.")
    values = values if fill is None else np.where(np.isnan(values), fill, values)
    if not np.isfinite(values).all():
        raise DataError(f"records: {column} must be numbers, none missing. Fill or drop such records.")
    return np.asarray(values if clip is None else np.clip(values, *clip), np.float64)


def _spot_check(plan: Plan, policy: Policy | None, frame: Any, draws: Draws, reader: Any) -> None:
    """Read one table by the library too; CertificateError where that is not the same."""
    generator = np.random.default_rng(7)
    rows = draws.rows(True, generator)
    table = frame.iloc[rows].reset_index(drop=True)
    part = plan.part
    if isinstance(part, WeightsPart):
        theirs: Any = weighted(open_table(table), plan)
    elif policy is not None:
        theirs = read(open_table(table), plan, policy)
    else:
        opened = open_table(table)
        theirs = tallied(opened, plan, part.tally) if isinstance(part, TallyPart) else averages(opened, plan, ())
    ours = _flat(reader(rows, generator))
    if not np.allclose(ours, _flat(theirs), rtol=1e-9, atol=1e-9):
        raise CertificateError(NOT_THE_SAME)


def _flat(found: Any) -> list[float]:
    if isinstance(found, Sequence):
        return [x for one in found for x in _flat(one)]
    return [float(found)]
