"""Any plan tried on public rows: the epsilon that really holds if rows are like those of a public file.

A promise holds for the distributions of its assumption. Here rows are independent draws from the public ones instead, whatever
their shape: the law of the released number given each value of the secret is exact, up to errors that are counted
(docs/theory/recorded-laws.md). Each answer is tried by itself, and each secret by itself.

What must never change: the private table is met only to tell that the public file is another one. Nothing that is told depends
on its rows. What is not covered is not tried, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrpriv.assumptions.shape import Tried, Verdict
from attrpriv.audit.release.weighed import simulated
from attrpriv.engines.moments import SAME_TABLE
from attrpriv.engines.public_rows import require_different
from attrpriv.engines.tables import open_table
from attrpriv.errors import AttrprivError, DataError, UsageError
from attrpriv.methods.base.accuracy import Measure
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.parts import AveragesPart, StatisticPart
from attrpriv.methods.choice.ranking import Ranking
from attrpriv.methods.table import methods
from attrpriv.numerics.calibration.recorded_trial import Trial, tried_on_rows
from attrpriv.policy import Policy
from attrpriv.problem.places import identities, is_remote
from attrpriv.problem.problem import Problem
from attrpriv.session.against_secret import Case, Hidden, PublicRows, hidden_by
from attrpriv.session.split import Queries, Ranked

if TYPE_CHECKING:
    from attrpriv.session.session import Session

_TOGETHER = "Tried by itself: together with the other answers it may tell more."
_KNOWN = "known_rows: an adversary who knows some rows is not tried; for one who knows none, no break was found."


@dataclass(frozen=True)
class Trials:
    """What was planned, and what became of every plan on the public rows."""

    ranked: Ranked
    tried: tuple[Tried, ...]
    rows: int
    name: str

    def of(self, query: str, mechanism: str) -> tuple[Tried, ...]:
        """Those of one query and mechanism, one for each secret."""
        return tuple(one for one in self.tried if (one.query, one.mechanism) == (query, mechanism))

    def entries(self) -> list[dict[str, Any]]:
        """The plans as JSON, each with what became of it under `against`, and in its notes."""
        return [self._entry(row) for row in self.ranked.entries()]

    def _entry(self, row: dict[str, Any]) -> dict[str, Any]:
        found = self.of(row.get("query", ""), row.get("mechanism", ""))
        if not found or "noise" not in row:
            return row
        notes = [*row.get("notes", ()), *(one.line(self.name) for one in found)]
        return row | {"notes": notes, "against": {"rows": self.rows, "tried": [one.to_json() for one in found]}}


def try_on(
    session: Session,
    public: object,
    queries: Queries | None = None,
    mechanism: str = "auto",
    *,
    by: Measure = "rmse",
    error: float | None = None,
    spend: float | None = None,
) -> Trials:
    """Plan these queries with every mechanism, and try each plan on the rows of a public table.

    `public`: a Parquet or CSV file, or a data frame, with the columns of the query and of the secret; not the private table.
    `session`, `queries`, `mechanism`, `by`, `error` and `spend` are as in `Session.rank`. No row of the private table is read,
    but to see that the public one is another.

    Examples:
        >>> import attrpriv as ap
        >>> with ap.Session(policy="students.yaml") as session:  # doctest: +SKIP
        ...     print(ap.try_on(session, "survey.parquet", "avg(weight)"))
    """
    ranked = session.ranked(queries, by, mechanism=mechanism, error=error, spend=spend)
    records = PublicRows.of(public)
    columns = (one for ranking in ranked.rankings for one in _columns(ranking.problem))
    require_other(session.policy, public, tuple(dict.fromkeys(columns)))
    tried = tuple(one for ranking in ranked.rankings for one in try_ranking(ranking, records))
    return Trials(ranked, tried, records.total, records.name)


def _columns(problem: Problem) -> Iterable[str]:
    """What would be read of a table."""
    return (*problem.read_columns, *(column for secret in problem.secrets for column in secret.columns))


def require_other(policy: Policy, public: object, columns: Iterable[str]) -> None:
    """Raise DataError where the public rows are the private table's own, in these columns."""
    private = policy.data_path()
    if private is None:
        return
    local = not is_remote(private)
    if local and isinstance(public, str | Path) and identities(public) & identities(private):
        raise DataError(SAME_TABLE)
    if not local or Path(private).exists():
        require_different(open_table(private), open_table(public), columns, policy.rows)


def try_ranking(ranking: Ranking, records: PublicRows) -> Iterable[Tried]:
    """Every plan of a ranking, best first."""
    for plan in ranking.plans:
        for query in (one for one in plan.queries if not one.whole_table):
            for secret in ranking.problem.secrets:
                yield _tried(Case(ranking.problem, plan, query, secret), records)


def _tried(case: Case, records: PublicRows) -> Tried:
    method = methods()[case.plan.mechanism]
    if method.without_assumption or not case.plan.certificate.evidence.reads_rows:
        return case.told("any rows", reason="it rests on no assumption about rows.")
    try:
        part = _column(case)
        if case.plan.certificate.evidence.weighs:
            return case.told(**simulated(case.plan, case.problem, part, case.secret, records.source))
        secret = hidden_by(case, part, records)
        found = tried_on_rows(secret.rows, case.plan.n, secret.values, secret.moved, case.plan.delta, secret.kind)
    except AttrprivError as error:
        return case.told("not tried", reason=str(error))
    return _judged(case, secret, found)


def _judged(case: Case, secret: Hidden, found: Trial) -> Tried:
    """The verdict; what the errors of the laws leave open on both sides is not told.

    Under `known_rows` the promise is also about who knows rows: a break without them is one, and no break says too little.
    """
    promised = case.plan.epsilon
    known = math.isfinite(found.at_most)
    if not known and found.at_least <= promised:
        return case.told("not tried", reason="the errors of the computed laws are too large for this delta.")
    verdict: Verdict = "broken" if found.at_least > promised else "held" if found.at_most <= promised else "open"
    if case.problem.known_rows and verdict != "broken":
        return case.told("not tried", reason=_KNOWN)
    low, high = found.pair
    notes = [secret.note] if secret.note else []
    notes += [_TOGETHER] if len(case.plan.columns) > 1 else []
    return case.told(
        verdict,
        at_least=_digits(found.at_least, ROUND_DOWN),
        at_most=_digits(found.at_most, ROUND_UP) if known else None,
        pair=(secret.shown(low), secret.shown(high)),
        looked=found.looked,
        values=secret.values.many,
        reason=" ".join(notes) or None,
    )


def _digits(value: float, way: str) -> float:
    """Four digits, to the honest side."""
    return float(Context(prec=4, rounding=way).create_decimal_from_float(value))


def _column(case: Case) -> ColumnPlan:
    """The column that the query reads; an error with the reason where its law is not one that is computed here."""
    plan = case.plan
    if case.problem.earlier is not None:
        raise UsageError("it follows earlier releases, and is not tried together with them.")
    if isinstance(plan.part, StatisticPart) or not isinstance(plan.part, AveragesPart):
        raise UsageError("only averages and sums over all rows are tried.")
    part = plan.of(case.query) if case.query.key is not None else None
    if part is None or not case.query.plain or part.where is not None or part.rows is not None or part.terms:
        raise UsageError("only averages and sums of one column over all rows are tried.")
    if part.noise.individuals:
        raise UsageError("it has further noise for single rows, whose law is not computed here.")
    if not plan.delta > 0:
        raise UsageError("it promises delta 0, at which errors of computed laws leave nothing to tell.")
    return part
