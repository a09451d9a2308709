"""The reference view: fixed numbers of rows of every public value, so that everything about some columns is hidden.

What is promised: given the hidden columns, the kept rows of a cell are independent draws from a law that depends on the cell's
values alone. How many are kept of each is public. So the law of the view is the same for any two contents of the hidden columns
that have enough rows of each cell, whatever their own law is, and whatever the other columns look like: epsilon 0. What is left
is the chance that some cell has too few rows.

    public records      keep_j = m(count_j), a prediction limit (`numerics.laws.prediction`): too few with chance `level`
                        over records and table. Of n rows at least `alike` are as the public's are, but for half of it.
    stated shares       keep_j = the largest k with P(Bin(n, r share_j) < k) <= level / number of cells

For parameters of the population delta is that chance. Events about the rows at hand that are as improbable as p may come with a
failure that much more often: delta = chance / p, p the `rarest_event` that must look alike (docs/theory/reference-view.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from attrpriv.frozen import Finite
from attrpriv.methods.base.accuracy import WEAK
from attrpriv.methods.base.certificate import Certificate, Guarantee
from attrpriv.methods.base.count_test import CountTest, count_test
from attrpriv.methods.base.evidence import Evidence
from attrpriv.methods.base.view_plan import REAL_RECORDS, ViewCell, ViewPlan
from attrpriv.numerics.laws.binomial import binomial_below
from attrpriv.numerics.laws.prediction import at_least, is_sure, surely
from attrpriv.numerics.rounding import AIMED_DOWN, COMPUTED_UP, SUM_SLACK
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCell, PublicCells, Reference, value_name
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret

# Of one row a spread cannot be told, so a cell is shown with two rows or not at all.
FEWEST = 2
NO_REFERENCE = Refusal(
    Cause.PUBLIC_FACT,
    "reference: everything about columns is hidden from public records of them. Name a file, or their shares.",
    needs="reference",
    usage=True,
)

# Where single persons are protected: the share of their epsilon, and of the chance of a failure, that the test of counts has.
TEST_SHARE = 0.5
TEST_DELTA = 1e-9
TOO_FEW_TO_SPARE = Refusal(
    Cause.PRECISION,
    "individuals: no value is so frequent that rows are left once its count is tested with noise. Raise its epsilon.",
    needs="a larger individuals",
)
NO_TEST = Refusal(
    Cause.BUDGET, "individuals: the test of the counts costs more than this epsilon allows.", needs="a larger individuals"
)


def planned_test(problem: Problem, reference: Reference) -> CountTest:
    """The test of the counts before the view; its own failure is part of the reference's."""
    if problem.spend != 1 or problem.earlier is not None:
        raise Refusal(
            Cause.BUDGET,
            "individuals: a view answers one call, with all of the epsilon for single persons. Ask for everything together "
            "(spend 1).",
            needs="spend 1",
        )
    failure = reference.level * AIMED_DOWN * TEST_SHARE
    test = count_test((problem.individuals or 0.0) * TEST_SHARE, problem.individuals_delta or TEST_DELTA, failure)
    if test is None:
        raise NO_TEST
    return test


def plan_reference(problem: Problem, secret: Secret) -> ViewPlan:
    """The view that hides everything about the secret's columns; a refusal where there is none."""
    reference, public = problem.reference, problem.public_cells
    if reference is None or public is None:
        raise NO_REFERENCE
    _require_kinds(problem, public)
    _require_delta(problem, reference)
    test = None if problem.individuals is None else planned_test(problem, reference)
    evidence = reference_evidence(problem.n, reference, public, test)
    if test is not None and not evidence.cells:
        raise TOO_FEW_TO_SPARE
    if not evidence.cells:
        raise Refusal(
            Cause.PRECISION,
            "reference: no value is frequent enough for a row of it to be kept. Hide fewer columns together, or sort a number "
            "into intervals (assume: kind: channel).",
            needs="fewer hidden columns, or sorted cells",
        )
    certificate = Certificate(epsilon=0.0, delta=problem.delta, evidence=evidence, assumes=_assumes(problem, secret, reference))
    certificate.verify()
    return ViewPlan(
        secret=secret,
        n=problem.n,
        cells=evidence.cells,
        guarantee=Guarantee(kind="proved", statement=_statement(secret, evidence), reference="docs/theory/reference-view.md"),
        certificate=certificate,
        policy_digest=problem.policy_digest,
        notes=(REAL_RECORDS, *_empty(reference)),
    )


def _empty(reference: Reference) -> tuple[str, ...]:
    if reference.least_density < 1 or reference.rarest_event < 1:
        return ()
    return (
        f"{WEAK} with least_density 1 the public's law is the only one, and with rarest_event 1 nothing about the rows at hand "
        "is covered. State a rarest_event below 1.",
    )


def _require_kinds(problem: Problem, public: PublicCells) -> None:
    """Values are compared as they are: a number in the records must be a number in the table."""
    for place, (column, kind) in enumerate(public.kinds.items()):
        own = problem.types.get(column, kind)
        alike = _family(own) == _family(kind) or (public.records is None and (own, kind) == ("date", "text"))
        whole = own != "integer" or all(_is_whole(cell.values[place]) for cell in public.cells)
        if not (alike and whole):
            got = f"{own} and {kind}" if not alike else "integer and a number that is not whole"
            raise Refusal(
                Cause.PUBLIC_FACT,
                f"reference: {column} must have one type in the table and in the reference. Got {got}. Write its values alike "
                "in both.",
                needs=f"{column} written alike",
                usage=True,
            )


def _is_whole(value: object) -> bool:
    return not isinstance(value, float) or value.is_integer()


def _family(kind: str) -> str:
    return "number" if kind in ("integer", "float", "decimal") else kind


def _require_delta(problem: Problem, reference: Reference) -> None:
    needed = reference.level / reference.rarest_event
    if problem.delta < needed:
        raise Refusal(
            Cause.BUDGET,
            f"delta: must be at least {needed:.3g}, the chance of a failure ({reference.level:.3g}) over that of the rarest "
            f"event to be hidden ({reference.rarest_event:g}). Got {problem.delta:g}. Raise delta, or lower reference.failure.",
            needs=("a larger delta", "a smaller reference.failure"),
            usage=True,
        )


def reference_evidence(n: int, reference: Reference, public: PublicCells, test: CountTest | None = None) -> ReferenceEvidence:
    """How many rows of each cell are kept, and the numbers that prove it."""
    keeps, alike, level = kept_rows(n, reference, public, test)
    shown = [(cell, keep) for cell, keep in zip(public.cells, keeps, strict=True) if keep]
    total = sum(keeps)
    cells = [
        ViewCell(
            name=value_name(cell.values),
            keep=keep,
            low=keep,
            high=n - total + keep,
            share=public.share_of(cell),
            values=cell.values,
            count=cell.count,
        )
        for cell, keep in shown
    ]
    return ReferenceEvidence(
        n=n,
        columns=public.columns,
        cells=tuple(cells),
        records=public.records,
        listed=len(public.cells),
        least_density=reference.least_density,
        alike=alike,
        level=level,
        rarest_event=reference.rarest_event,
        digest=public.digest,
        test=test,
    )


def kept_rows(n: int, reference: Reference, public: PublicCells, test: CountTest | None = None) -> tuple[list[int], int, float]:
    """How many rows of each cell are kept, how many rows are taken to be as the public's are, and the level of all cells.

    Behind a test as many fewer are kept as its margin says, and its failure has its share of the level.
    """
    # A little less than what may be lost, so that the check, which rounds up, finds it within.
    level = reference.level * AIMED_DOWN * (1 if test is None else 1 - TEST_SHARE)
    margin = 0 if test is None else test.margin
    alike = n
    if public.records is None:
        keeps = _stated_keeps(n, reference, public.cells, level)
    else:
        alike, level = _alike(n, reference.least_density, level)
        keeps = _predicted_keeps(public.records, alike, public.cells, level)
    return [keep - margin if keep - margin >= FEWEST else 0 for keep in keeps], alike, level


def _alike(n: int, least_density: float, level: float) -> tuple[int, float]:
    """How many of n rows surely are as the public's are, and what is left of the level."""
    if least_density == 1:
        return n, level
    return at_least(n, least_density, level / 2), level / 2


def _predicted_keeps(records: int, rows: int, cells: Sequence[PublicCell], level: float) -> list[int]:
    found = {cell.count or 0 for cell in cells}  # cells with as many records keep as many rows
    keeps = {count: surely(records, rows, count, level) for count in found}
    return [keeps[cell.count or 0] for cell in cells]


def _stated_keeps(n: int, reference: Reference, cells: Sequence[PublicCell], level: float) -> list[int]:
    each = level / len(cells)
    shares = {cell.share or 0.0 for cell in cells}
    keeps = {share: at_least(n, _least(reference.least_density, share), each) for share in shares}
    return [keeps[cell.share or 0.0] for cell in cells]


def _least(least_density: float, share: float) -> float:
    """The least share that the table's law gives a cell; from below."""
    exact = Fraction(repr(least_density)) * Fraction(repr(share))
    value = float(exact)
    return value if Fraction(value) <= exact else math.nextafter(value, -math.inf)


def _statement(secret: Secret, evidence: ReferenceEvidence) -> str:
    columns = ", ".join(secret.columns)
    events = f"every event about them that has probability {evidence.rarest_event:g} or more beforehand"
    covered = "parameters of the population alone" if evidence.rarest_event == 1 else events
    return (
        f"The law of the kept rows is the same whatever {columns} contain: any number of queries and any model computed from "
        f"them reveal nothing about these columns (epsilon 0), up to probability {evidence.delta(0.0):.3g} for {covered}"
    )


def _assumes(problem: Problem, secret: Secret, reference: Reference) -> tuple[str, ...]:
    columns = ", ".join(secret.columns)
    records = (
        (
            "public records are independent draws from the public's law, without weights or clusters, and of no person of the "
            "table; the chance of a failure is one over records and table, on average over records",
        )
        if reference.file is not None
        else ()
    )
    return (
        f"given {columns} of all rows, the rest of each row is drawn by itself, from a law that depends on its own {columns} "
        "alone: one row a person; strata, waves and sources are among the hidden columns, or there are none",
        f"what rows with a given {columns} look like is not hidden, nor what somebody concludes from it in general",
        f"whatever the rows before it, each row of the table has each public value with at least {reference.least_density:g} "
        "times its public chance; a table with too few rows of some value is an announced failure",
        *records,
        "the reference, the hidden columns and the budget were fixed before table and records were looked at, and not changed "
        "until a view could be drawn or more was kept",
        "the adversary recognises no row, and no column of the view numbers rows, tells their order or was computed from "
        "other rows (name such identifiers)",
        "the view is drawn once, and nothing else about this table is released",
        _persons(problem),
        f"the number of rows, {problem.n}, and the names and types of the columns are public",
    )


def _persons(problem: Problem) -> str:
    if problem.individuals is None:
        return "single persons are not protected"
    return "single persons are protected in answers, which get noise for two rows, and not in the rows of the view themselves"


# ----------------------------------------------------------------------------------------------------------------------------
# The evidence.


class ReferenceEvidence(Evidence):
    """Fixed numbers of rows of each public value, and the chance that some value has fewer."""

    words: ClassVar[str] = "a view"
    kind: Literal["reference_view"] = "reference_view"
    n: int = Field(ge=2)
    columns: tuple[str, ...] = Field(min_length=1)
    cells: tuple[ViewCell, ...]
    records: int | None = Field(default=None, ge=1)
    listed: int = Field(ge=1)
    """How many cells the reference has, those included of which no row is kept."""
    least_density: Annotated[Finite, Field(gt=0, le=1)]
    alike: int = Field(ge=0)
    """How many of the n rows are taken to be drawn as the public's are."""
    level: Annotated[Finite, Field(gt=0, lt=1)]
    """The chance that is shared by all cells."""
    rarest_event: Annotated[Finite, Field(gt=0, le=1)]
    digest: str
    test: CountTest | None = Field(default=None, exclude_if=lambda test: test is None)
    """What stands before the view where single persons are protected."""

    def delta(self, epsilon: float) -> float:
        return min(1.0, self.failure() / self.rarest_event * COMPUTED_UP)

    def failure(self) -> float:
        """The chance that some cell has fewer rows than are kept of it, from above; 1 where the numbers do not prove one."""
        if not self._possible():
            return 1.0
        return _failure(self)

    def _possible(self) -> bool:
        kept = sum(cell.keep for cell in self.cells)
        each = all(
            cell.keep == cell.low and cell.high == self.n - kept + cell.keep and len(cell.values or ()) == len(self.columns)
            for cell in self.cells
        )
        different = len({repr(cell.values) for cell in self.cells}) == len(self.cells) <= self.listed
        proved = self.test is None or self.test.proved
        return each and different and proved and kept <= self.n and self.alike <= self.n

    def rows_for(self, cell: ViewCell) -> int:
        """How many rows a cell must have, for the view to be drawn but for the failure of the test."""
        return cell.keep + (0 if self.test is None else self.test.margin)

    def view_of(self) -> tuple[int, tuple[ViewCell, ...]]:
        return self.n, self.cells

    def whole_columns(self) -> tuple[str, ...]:
        return self.columns

    def row_test(self) -> CountTest | None:
        return self.test

    def describe(self) -> tuple[str, ...]:
        source = "stated shares" if self.records is None else f"{self.records:,} public records"
        return (
            f"{sum(cell.keep for cell in self.cells):,} of {self.n:,} rows, of {len(self.cells)} of {self.listed} values from "
            f"{source}; least density {self.least_density:g}",
            f"some value has too few rows with a chance of {self.failure():.3g}; {self.delta(0.0):.3g} for events of "
            f"probability {self.rarest_event:g} or more",
            *(() if self.test is None else self._tested(self.test)),
        )

    def _tested(self, test: CountTest) -> tuple[str, ...]:
        return (
            f"single rows: drawn only where every value has rows to spare, by a test with noise of scale {test.scale:.4g}, "
            f"threshold {test.threshold} and delta {test.delta:g}; {test.margin} rows of each value are left out for it",
        )


@lru_cache(maxsize=64)  # a plan asks several times, of hundreds of cells
def _failure(evidence: ReferenceEvidence) -> float:
    if evidence.records is None:
        return _stated_failure(evidence)
    counts = [cell.count for cell in evidence.cells]
    whole = [count for count in counts if count is not None]
    if len(whole) < len(counts) or sum(whole) > evidence.records:
        return 1.0
    sure = all(
        is_sure(evidence.records, evidence.alike, cell.count or 0, evidence.rows_for(cell), evidence.level)
        for cell in evidence.cells
    )
    if not sure:
        return 1.0
    fewer = 0.0 if evidence.least_density == 1 else binomial_below(evidence.n, evidence.least_density, evidence.alike)
    return min(1.0, (fewer + evidence.level + _test_failure(evidence)) * COMPUTED_UP)


def _test_failure(evidence: ReferenceEvidence) -> float:
    return 0.0 if evidence.test is None else evidence.test.failure


def _stated_failure(evidence: ReferenceEvidence) -> float:
    shares = [cell.share for cell in evidence.cells]
    known = [share for share in shares if share is not None]
    if len(known) < len(shares) or math.fsum(known) > 1 + SUM_SLACK:
        return 1.0
    tails = [
        binomial_below(evidence.n, _least(evidence.least_density, cell.share or 0.0), evidence.rows_for(cell))
        for cell in evidence.cells
    ]
    return min(1.0, math.fsum([*tails, _test_failure(evidence)]) * COMPUTED_UP)


__all__ = ["ReferenceEvidence", "kept_rows", "plan_reference", "reference_evidence"]
