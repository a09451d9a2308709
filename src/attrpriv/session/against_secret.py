"""Public rows, and what a plan would release if the table's rows were like them: a shift and noise for each secret's value.

What must never change: only public rows are read here. What is rounded, and which values are compared where no range is stated,
is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from attrpriv.assumptions.shape import Tried, Verdict
from attrpriv.engines.public_rows import DistinctRows, NumberRead, Read, distinct_rows, number_of_rows
from attrpriv.engines.tables import Source, open_table
from attrpriv.errors import UsageError
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Told
from attrpriv.methods.base.plan import Plan
from attrpriv.numerics.calibration.recorded_trial import Moved, Values
from attrpriv.numerics.laws.recorded_rows import RecordedRows
from attrpriv.problem.counted import count_pairs
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Spacings that are looked for in public columns, the coarsest first.
_SPACINGS = (1.0, 0.5, 0.25, 0.1, 0.05, 0.01, 0.001, 1e-4, 1e-5, 1e-6)
# Where no range is stated: so many standard errors of the hidden mean to each side of the public one.
_NO_RANGE = 4.0
# A hidden column has at most so many steps; a released one that has none of the spacings gets so many to its spread.
_MOST_STEPS, _FINE = 256, 1000
_RANGE = "No range is stated: means within 4 standard errors of the public one were compared."


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
class Case:
    """One answer of one plan, and one secret."""

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


@dataclass(frozen=True)
class Hidden:
    """The public rows, the values of the secret that are compared, and what a release adds for each of them."""

    rows: RecordedRows
    values: Values
    moved: Callable[[Array], Moved]
    kind: Any
    shown: Callable[[float], float]
    note: str = ""


def hidden_by(case: Case, part: ColumnPlan, records: PublicRows) -> Hidden:
    secret, query = case.secret, NumberRead(part.column, part.fill, part.clip)
    if any(member.lists_tables for member in case.problem.theta):
        raise UsageError("its promise is for the laws listed. To have these rows covered, list their file under further.")
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
    return Hidden(rows, values, _moves(case, part, _counts_told(case)), "share", lambda count: count / per, asked.note)


def _hidden_sum(case: Case, part: ColumnPlan, records: PublicRows, query: NumberRead) -> Hidden:
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

    return Hidden(
        rows,
        values,
        _moves(case, part, told),
        "sum",
        lambda total: total / per,
        " ".join(filter(None, (hidden.note, asked.note, note))),
    )


def _sums(case: Case, rows: RecordedRows) -> tuple[Values, str]:
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


def _counts_told(case: Case) -> Callable[[float], Told]:
    """What a release that counts categories sees; nothing where several categories make up one side."""
    inside = sum(one.member for one in case.plan.categories)
    two = inside == 1 and len(case.plan.categories) == 2

    def told(count: float) -> Told:
        return Told({}, (int(count),), (case.plan.n - int(count),)) if two else Told()

    return told


def _moves(case: Case, part: ColumnPlan, told: Callable[[float], Told]) -> Callable[[Array], Moved]:
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
