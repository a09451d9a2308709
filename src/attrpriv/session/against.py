"""Any plan tried on public rows: the epsilon that really holds if rows are like those of a public file.

A promise holds for the distributions of its assumption. Here rows are independent draws from the public ones instead, whatever
their shape: the law of the released number given each value of the secret is exact, up to errors that are counted
(docs/theory/recorded-laws.md). Each answer is tried by itself, and each secret by itself.

What must never change: the private table is met only to tell that the public file is another one. Nothing that is told depends
on its rows. What is not covered is not tried, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Context
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrpriv.assumptions.shape import Tried, Verdict
from attrpriv.audit.release.weighed import simulated
from attrpriv.engines.moments import SAME_TABLE
from attrpriv.engines.public_rows import DistinctRows, NumberRead, Read, distinct_rows, number_of_rows, require_different
from attrpriv.engines.tables import Source, open_table
from attrpriv.errors import AttrprivError, DataError, UsageError
from attrpriv.methods.base.accuracy import Measure
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Told
from attrpriv.methods.base.parts import AveragesPart, StatisticPart
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.ranking import Ranking
from attrpriv.methods.table import methods
from attrpriv.numerics.calibration.recorded_trial import Moved, Trial, Values, tried_on_rows
from attrpriv.numerics.laws.recorded_rows import RecordedRows
from attrpriv.policy import Policy
from attrpriv.problem.counted import count_pairs
from attrpriv.problem.places import identities, is_remote
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.session.split import Queries, Ranked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.session.session import Session

    Array = NDArray[np.float64]

# Spacings that are looked for in public columns, the coarsest first.
_SPACINGS = (1.0, 0.5, 0.25, 0.1, 0.05, 0.01, 0.001, 1e-4, 1e-5, 1e-6)
# Where no range is stated: so many standard errors of the hidden mean to each side of the public one.
_NO_RANGE = 4.0
# A hidden column has at most so many steps; a released one that has none of the spacings gets so many to its spread.
_MOST_STEPS, _FINE = 256, 1000
_TOGETHER = "Tried by itself: together with the other answers it may tell more."
_RANGE = "No range is stated: means within 4 standard errors of the public one were compared."


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
                yield _tried(_Case(ranking.problem, plan, query, secret), records)


class PublicRows:
    """Public rows, read once for each pair of columns."""

    def __init__(self, source: Source) -> None:
        self.source, self._read = source, dict[tuple[Read, ...], DistinctRows]()
        self.name = source.name

    @classmethod
    def of(cls, public: object) -> PublicRows:
        return cls(open_table(public))

    @property
    def total(self) -> int:
        return number_of_rows(self.source)

    def rows(self, *reads: Read) -> DistinctRows:
        if reads not in self._read:
            self._read[reads] = distinct_rows(self.source, reads)
        return self._read[reads]


@dataclass(frozen=True)
class _Case:
    problem: Problem
    plan: Plan
    query: Query
    secret: Secret

    def told(self, verdict: Verdict, **more: Any) -> Tried:
        return Tried(
            query=self.query.text,
            mechanism=self.plan.mechanism,
            secret=self.secret.text,
            n=self.plan.n,
            epsilon=self.plan.epsilon,
            delta=self.plan.delta,
            verdict=verdict,
            **more,
        )


def _tried(case: _Case, records: PublicRows) -> Tried:
    method = methods()[case.plan.mechanism]
    if method.without_assumption or not case.plan.certificate.evidence.reads_rows:
        return case.told("any rows", reason="it rests on no assumption about rows.")
    try:
        part = _column(case)
        if case.plan.certificate.evidence.weighs:
            return case.told(**simulated(case.plan, case.problem, part, case.secret, records.source))
        secret = _hidden(case, part, records)
        found = tried_on_rows(secret.rows, case.plan.n, secret.values, secret.moved, case.plan.delta, secret.kind)
    except AttrprivError as error:
        return case.told("not tried", reason=str(error))
    return _judged(case, secret, found)


def _judged(case: _Case, secret: _Hidden, found: Trial) -> Tried:
    """The verdict; what the errors of the laws leave open on both sides is not told."""
    promised = case.plan.epsilon
    known = math.isfinite(found.at_most)
    if not known and found.at_least <= promised:
        return case.told("not tried", reason="the errors of the computed laws are too large for this delta.")
    verdict: Verdict = "broken" if found.at_least > promised else "held" if found.at_most <= promised else "open"
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


def _column(case: _Case) -> ColumnPlan:
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


# ------------------------------------------------------------------------------------------------------------------- the secret


@dataclass(frozen=True)
class _Hidden:
    """The public rows, the values of the secret that are compared, and what a release adds for each of them."""

    rows: RecordedRows
    values: Values
    moved: Callable[[Array], Moved]
    kind: Any
    shown: Callable[[float], float]
    note: str = ""


def _hidden(case: _Case, part: ColumnPlan, records: PublicRows) -> _Hidden:
    secret, query = case.secret, NumberRead(part.column, part.fill, part.clip)
    if secret.parameter is not None or secret.cases is not None or secret.entries is not None or secret.whole_columns:
        raise UsageError(f"only values of a mean, sum, count or share of the table are compared. Got {secret}.")
    composition = secret.composition
    if composition is None:
        return _hidden_sum(case, part, records, query)
    if composition.condition is None:
        raise UsageError(f"only a single count or share is compared. Got {secret.text}.")
    found = records.rows(composition.condition, query)
    asked = _asked(part.column, found)
    rows = RecordedRows.of(found.columns[0], asked.values, found.counts, spacing=(1, asked.spacing))
    pairs = count_pairs(secret, case.plan.n)
    values = Values(float(pairs.low), 1.0, pairs.high - pairs.low + 1, pairs.apart)
    per = case.plan.n if composition.kind == "share" else 1
    return _Hidden(rows, values, _moves(case, part, _counts_told(case)), "share", lambda count: count / per, asked.note)


def _hidden_sum(case: _Case, part: ColumnPlan, records: PublicRows, query: NumberRead) -> _Hidden:
    secret, n = case.secret, case.plan.n
    column = secret.single
    if column is None:
        raise UsageError(f"only one column's mean or sum is compared at a time. Got {secret.text}.")
    found = records.rows(NumberRead(column, case.problem.missing.get(column)), query)
    hidden, asked = _steps(column, found.columns[0]), _asked(part.column, found)
    rows = RecordedRows.of(hidden.values, asked.values, found.counts, spacing=(hidden.spacing, asked.spacing))
    values, note = _sums(case, rows)
    per = n / secret.forms[0].weight(n)

    def told(total: float) -> Told:
        return Told({column: Fraction(total) / n})

    return _Hidden(
        rows,
        values,
        _moves(case, part, told),
        "sum",
        lambda total: total / per,
        " ".join(filter(None, (hidden.note, asked.note, note))),
    )


def _sums(case: _Case, rows: RecordedRows) -> tuple[Values, str]:
    """The sums in the secret's range that n rows like these could have, and what to say of the range."""
    secret, n = case.secret, case.plan.n
    per = Fraction(n, secret.forms[0].weight(n))  # sums are so many times the secret's own unit
    unit, start = rows.spacing[0] * rows.divisor, rows.spacing[0] * rows.least * n
    if rows.width == 0:
        raise UsageError(f"every public row has the same {secret.single}.")
    if secret.ends is not None:
        low, high = (Fraction(repr(end)) * per for end in secret.ends)
    else:
        mean = Fraction(int(rows.counts @ rows.s), rows.total)
        spread = math.sqrt(float(rows.counts @ (rows.s - float(mean)) ** 2) / rows.total)
        reach = Fraction(_NO_RANGE * spread * math.sqrt(n))
        low, high = (start + unit * (n * mean + sign * reach) for sign in (-1, 1))
    first, last = max(0, math.ceil((low - start) / unit)), min(n * rows.width, math.floor((high - start) / unit))
    if not first < last:
        raise UsageError(f"no table of rows like these has two values of {secret.text} in its range.")
    within = last - first if secret.within is None else math.floor(Fraction(repr(secret.within)) * per / unit)
    if within < 1:
        raise UsageError(f"no two values of {secret.text} are as close as within in tables of rows like these.")
    values = Values(float(start + unit * first), float(unit), last - first + 1, min(within, last - first))
    return values, "" if secret.ends is not None else _RANGE


@dataclass(frozen=True)
class _Lattice:
    """Values on a spacing, and what to say where they had to be rounded to it."""

    values: Array
    spacing: float
    note: str = ""


def _asked(column: str, found: DistinctRows) -> _Lattice:
    """The released column: as it is where it is recorded on a spacing, else rounded to a thousandth of its spread."""
    import numpy as np

    values = found.columns[1]
    known = _known_spacing(values)
    if known is not None:
        return _Lattice(values, known)
    spread = float(np.sqrt(np.cov(values, fweights=found.counts))) if found.total > 1 else 0.0
    return _rounded(column, values, _round_number(spread / _FINE))


def _steps(column: str, values: Array) -> _Lattice:
    """The hidden column: as it is where it has few steps, else rounded, because every sum that it can have is inverted."""
    known, width = _known_spacing(values), float(values.max() - values.min())
    if known is not None and width <= _MOST_STEPS * known:
        return _Lattice(values, known)
    return _rounded(column, values, _round_number(width / _MOST_STEPS))


def _known_spacing(values: Array) -> float | None:
    """The coarsest spacing of a list on which all public values lie."""
    import numpy as np

    for spacing in _SPACINGS:
        steps = values / spacing
        if bool((np.abs(steps - np.rint(steps)) <= 1e-9 * (1 + np.abs(steps))).all()):
            return spacing
    return None


def _rounded(column: str, values: Array, spacing: float) -> _Lattice:
    import numpy as np

    return _Lattice(np.rint(values / spacing) * spacing, spacing, f"The public {column} was rounded to {spacing:g}.")


def _round_number(least: float) -> float:
    """The next number that is 1, 2 or 5 times a power of ten."""
    if not least > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(float(f"{one * power:.3g}") for one in (1, 2, 5, 10) if one * power >= least)


def _counts_told(case: _Case) -> Callable[[float], Told]:
    """What a release that counts categories sees; nothing where several categories make up one side."""
    inside = sum(one.member for one in case.plan.categories)
    two = inside == 1 and len(case.plan.categories) == 2

    def told(count: float) -> Told:
        return Told({}, (int(count),), (case.plan.n - int(count),)) if two else Told()

    return told


def _moves(case: _Case, part: ColumnPlan, told: Callable[[float], Told]) -> Callable[[Array], Moved]:
    """In sums over n rows."""
    evidence, place, n = case.plan.certificate.evidence, case.plan.columns.index(part), case.plan.n

    def moved(values: Array) -> Moved:
        import numpy as np

        found = [evidence.given(part, place, told(float(one))) for one in values]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            raise UsageError("it reads more of the table than the secret, or releases no moved average with Gaussian noise.")
        return Moved(np.array([float(one[0] * n) for one in known]), np.array([one[1] * n for one in known]))

    return moved
