"""Answers from a view that protect single persons: how far one changed record moves them, and the noise for it.

With the same ranks a changed record replaces at most one row in each of at most two cells (docs/theory/view.md). An answer
sum_c w_c (total of y over the kept rows of c) / keep_c, times n for counts and sums, with y in a range of width R, moves by at
most R times the two largest w_c / keep_c. Values are rounded to 2^-61 of the largest kept one first, which a record can change.

What must never change: weights, bounds and the value for missing entries are drawn with as they stand here, and the proof is
about these.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from pydantic import Field

from attrpriv.errors import CertificateError
from attrpriv.frozen import Finite, FrozenModel, NonNegative, Positive, Range
from attrpriv.methods.base.accuracy import Noise, Spread
from attrpriv.noise import add_laplace, granularity
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    from attrpriv.methods.base.evidence import LaplaceTerm
    from attrpriv.methods.base.plan import Plan
    from attrpriv.methods.base.view_plan import ViewCell, ViewPlan

# Rounding moves a value by at most 2^-62 of the largest bound; of two tables, twice that, and as much again to spare.
_ROUNDING = Fraction(1, 2**60)


class NoisyAnswer(FrozenModel):
    """One answer: the range that its values are clipped to, the value for missing entries, and its Laplace noise."""

    query: Query
    bounds: Range | None = None
    fill: Finite | None = None
    scale: Positive
    sampling: NonNegative = Field(description="standard deviation of the choice of rows, by public numbers, from above")


class ViewPersons(FrozenModel):
    """The public weight of each cell, and what is answered with noise for single persons."""

    weights: tuple[NonNegative, ...]
    answers: tuple[NoisyAnswer, ...]


def _rows(query: Query, n: int) -> int:
    """Counts and sums are n times a mean over all rows."""
    return 1 if query.kind == "avg" else n


def moved(
    query: Query, bounds: Range | None, fill: float | None, cells: Sequence[ViewCell], weights: Sequence[float], n: int
) -> Fraction | None:
    """How far one changed record moves this answer, from above; None: nothing is known of it."""
    ends = _ends(query, bounds, fill)
    if ends is None or len(weights) != len(cells) or not all(cell.keep for cell in cells):
        return None
    each = sorted((Fraction(weight) / cell.keep for weight, cell in zip(weights, cells, strict=True)), reverse=True)
    rounding = sum(map(Fraction, weights), Fraction(0)) * max(map(abs, ends)) * _ROUNDING
    return (sum(each[:2], Fraction(0)) * (ends[1] - ends[0]) + rounding) * _rows(query, n)


def _ends(query: Query, bounds: Range | None, fill: float | None) -> tuple[Fraction, Fraction] | None:
    """Between which numbers a row's part in an answer lies: 0 where a filter leaves the row out."""
    if query.group_by is not None or query.of:
        return None
    if query.kind == "count":
        return Fraction(0), Fraction(1)
    if query.kind not in ("avg", "sum") or bounds is None or fill is None or (query.kind == "avg" and query.where is not None):
        return None
    low, high = map(Fraction, bounds)
    return (low, high) if query.where is None else (min(low, Fraction(0)), max(high, Fraction(0)))


def persons_noise(view: ViewPlan, query: Query) -> Noise:
    found = view.noisy(query)
    return Noise(kind="none") if found is None else Noise(kind="laplace", scale=found.scale)


def persons_spread(view: ViewPlan, query: Query) -> Spread:
    """The law of an answer around that of the whole table at the public composition, by public numbers alone."""
    found = view.noisy(query)
    if found is None:
        return Spread("none", 0.0)
    return Spread("gaussian", found.sampling, found.scale) if found.sampling else Spread("laplace", found.scale)


# What the last check asks, and what is drawn after it.


def persons_covered(view: ViewPlan, plan: Plan) -> bool:
    """Whether the view's proof is the plan's.

    Where the view stands behind a test for single persons, every answer must have the noise that the proof counted on.
    """
    test, rows, persons = plan.certificate.evidence.row_test(), plan.certificate.individuals, view.persons
    if view.certificate != plan.certificate.model_copy(update={"individuals": None}):
        return False
    if test is None or rows is None or persons is None:
        return test is None and rows is None and persons is None
    answered = [query for query in plan.queries if not query.whole_table]
    if view.n != plan.n or [answer.query for answer in persons.answers] != answered or len(rows.terms) != 1 + len(answered):
        return False
    return rows.terms[0] == test.term and all(
        _covered(term, one, view, persons.weights) for term, one in zip(rows.terms[1:], persons.answers, strict=True)
    )


def _covered(term: LaplaceTerm, answer: NoisyAnswer, view: ViewPlan, weights: Sequence[float]) -> bool:
    far = moved(answer.query, answer.bounds, answer.fill, view.cells, weights, view.n)
    named = (term.column, term.scale, term.granularity) == (answer.query.text, answer.scale, granularity(answer.scale))
    return named and far is not None and far <= Fraction(term.sensitivity)


def persons_drawn(view: ViewPlan, plan: Plan, found: Sequence[Sequence[Fraction]]) -> tuple[tuple[float, ...], ...]:
    """The answers with noise, from the totals of each over the kept rows of each cell; the number of rows as it is."""
    persons = view.persons
    if persons is None or len(found) != len(persons.answers):
        raise CertificateError("plan: a view answers with noise for single persons, or draws nothing. Nothing was released.")
    told = {
        one.query: float(add_laplace(_exact(one.query, view, persons.weights, totals), one.scale))
        for one, totals in zip(persons.answers, found, strict=True)
    }
    return tuple((told.get(query, plan.n),) for query in plan.queries)


def _exact(query: Query, view: ViewPlan, weights: Sequence[float], totals: Sequence[Fraction]) -> Fraction:
    parts = zip(weights, view.cells, totals, strict=True)
    mean = sum((Fraction(weight) * total / cell.keep for weight, cell, total in parts), Fraction(0))
    return mean * _rows(query, view.n)
