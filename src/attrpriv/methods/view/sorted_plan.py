"""A view with sorted cells: intervals of one number, exact values of the other hidden columns; what it promises, and refuses.

    counts          as for exact cells, each interval a cell; at most 1/32 fewer rows, so that few numbers of rows occur
    D_max           the largest there can be, or, where `shift` is stated, one that is exceeded with half of the failure
    order           the one at which the promise reaches furthest: what is promised holds up to the iota that the plan names

What must never change: everything here is a public fact; public records may refuse what is stated, and never approve it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from attrpriv.assumptions.channel import Channel
from attrpriv.errors import UsageError
from attrpriv.methods.base.certificate import Certificate, Guarantee
from attrpriv.methods.base.view_plan import REAL_RECORDS, ViewCell, ViewPlan
from attrpriv.methods.view.reference import NO_REFERENCE, ReferenceEvidence, reference_evidence
from attrpriv.methods.view.sorted import SortedEvidence, intervals_of, weight_of
from attrpriv.methods.view.sorted_words import assumed_lines, notes, promise, with_share
from attrpriv.numerics.divergences.channel import most_information, most_mu
from attrpriv.numerics.laws.breaks import SortedCell
from attrpriv.numerics.laws.displacement import Displacement, likely, never_exceeded
from attrpriv.numerics.rounding import AIMED_DOWN, AIMED_UP, COMPUTED_UP, SUMMED_DOWN
from attrpriv.problem.intervals import PublicIntervals, interval_name
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCell, PublicCells, Reference, value_name
from attrpriv.problem.refusal import Cause, Refusal, other_assumption
from attrpriv.problem.secret import Secret

# Above so many rows, numbers of rows have so many binary digits: cells of one shape are computed once.
_FEW_ROWS, _ROW_DIGITS = 64, 6
# Where more than this share of the public values occur more than once, values are cells by themselves.
_MOST_REPEATED = 0.5
# How many times as many intervals are tried, to say how many would do.
_TIMES = (2, 4, 8, 16)
# Times the mean of D under an even law: about where it is rarely exceeded. A guess, with which no promise is made.
_MARGIN = 1.4
# kappa is computed up to e^100 (`numerics.divergences.channel`).
_FURTHEST = 99.0


def plan_sorted(problem: Problem, secret: Secret) -> ViewPlan:
    """The view, or a refusal where its promise would not hold."""
    reference, public = problem.reference, problem.public_cells
    if reference is None or public is None or public.intervals is None:
        raise NO_REFERENCE
    channel = _channel(problem)
    _require_number(problem, public, public.intervals)
    iota = _iota(channel, public.intervals)
    _require_not_refuted(problem, public.intervals, channel, iota)
    asked = Asked(problem.n, problem.epsilon, problem.delta, reference, channel, iota, _whole(problem, public.intervals))
    found = asked.evidence(public)
    if found.most < iota:
        raise asked.too_much(public, found)
    evidence = found.evidence
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=problem.delta,
        evidence=evidence,
        assumes=assumed_lines(problem, secret, reference, channel, evidence),
    )
    certificate.verify()
    return ViewPlan(
        secret=secret,
        n=problem.n,
        cells=evidence.counts.cells,
        guarantee=Guarantee(
            kind="proved", statement=promise(secret, certificate, evidence), reference="docs/theory/reference-view.md"
        ),
        certificate=certificate,
        policy_digest=problem.policy_digest,
        notes=(REAL_RECORDS, *notes(problem, public, evidence, found.most)),
    )


# ----------------------------------------------------------------------------------------------------------------------------
# What is stated, and what public records say against it.


def _channel(problem: Problem) -> Channel:
    stated = problem.assumed(Channel)
    if len(stated) != 1:
        raise other_assumption("channel")
    return stated[0]


def _iota(channel: Channel, public: PublicIntervals) -> float:
    if channel.information.iota is None and public.variance == 0:
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"reference: {public.column} must vary in the public records between the ends of its intervals. Got one value.",
            needs=f"public records in which {public.column} varies",
        )
    return channel.information_per_unit(public.variance)


def _whole(problem: Problem, public: PublicIntervals) -> bool:
    return problem.types.get(public.column) == "integer"


def _require_number(problem: Problem, cells: PublicCells, public: PublicIntervals) -> None:
    kinds = {problem.types.get(public.column, "float"), cells.kinds.get(public.column, "float")}
    if not kinds <= {"integer", "float", "decimal"}:
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"reference.sorted: {public.column} must be a number in the table and in the public records. Leave it out of "
            "sorted: its values are then cells by themselves.",
            needs="a number",
        )


def _require_not_refuted(problem: Problem, public: PublicIntervals, channel: Channel, iota: float) -> None:
    column = public.column
    if public.repeated > _MOST_REPEATED:
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"reference.sorted: {public.repeated:.0%} of the public values of {column} occur more than once. Leave {column} "
            "out of sorted: each value is then a cell by itself, which hides it at epsilon 0.",
            needs=f"exact cells of {column}",
        )
    if public.functions:
        named = ", ".join(public.functions)
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"protect: by the public records {named} nearly tells {column}, or is told by it, so that any row would tell its "
            f"own value. Hide {named} too, or name it under identifiers: the view then leaves it out.",
            needs=f"{named} hidden or left out",
        )
    if public.rough:
        first = public.rough[0]
        more = f" and {len(public.rough) - 1} more places" if len(public.rough) > 1 else ""
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"assume: information: public records just below and above {column} {first.place:g}{more} are "
            f"{first.separation:.3g} standard deviations apart, and {iota:.3g} per squared unit lets them be "
            f"{first.allowed:.3g}. State more information, or make {first.place:g} an end of two intervals "
            "(reference.sorted: breaks).",
            needs=("more information", "a break point"),
        )
    uneven = public.uneven
    if channel.shift is not None and uneven is not None and uneven.shift > channel.shift:
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"assume: shift: the public records of the interval from {uneven.place:g} are at least {uneven.shift:.3g} from "
            f"spread evenly. Got {channel.shift:g}. State a larger shift, or take narrower intervals.",
            needs=("a larger shift", "narrower intervals"),
        )


# ----------------------------------------------------------------------------------------------------------------------------
# The numbers.


@dataclass(frozen=True)
class Found:
    """The numbers of a view, and the largest information up to which its promise holds."""

    evidence: SortedEvidence
    most: float

    @property
    def rows(self) -> int:
        return sum(cell.keep for cell in self.evidence.counts.cells)


@dataclass(frozen=True)
class Asked:
    """What a view is planned for: the numbers of the policy, all public."""

    n: int
    epsilon: float
    delta: float
    reference: Reference
    channel: Channel
    iota: float
    whole: bool
    """Whether the number is a whole one, for which even means as many rows at each."""

    def evidence(self, public: PublicCells) -> Found:
        """The numbers at the order that covers the most information."""
        found = self.tried(public)
        if found is None:
            raise Refusal(
                Cause.PRECISION,
                "reference: no interval is frequent enough for a row of it to be kept. Take wider intervals, or hide fewer "
                "columns together.",
                needs=("wider intervals", "fewer hidden columns"),
            )
        if not found:
            raise Refusal(
                Cause.BUDGET,
                "assume: information: at this slope a row that moves through an interval tells too much. Take narrower "
                "intervals, or state a smaller slope.",
                needs=("narrower intervals", "a smaller slope"),
            )
        return max(found, key=lambda one: one.most)

    def tried(self, public: PublicCells) -> list[Found] | None:
        """The numbers at each order that may do; None where no cell shows a row."""
        assert public.intervals is not None
        counts, edges = self._counts(public), public.intervals.edges
        cells = intervals_of(counts.cells, counts.columns.index(public.intervals.column), edges)
        if not counts.cells or not cells:
            return None
        inner, left = self._left(self._lost())
        shift = self._shift(min(cell.width for cell in cells))
        slope, orders = self.channel.information.slope, [most_mu(inner, left).order]
        if slope is not None:
            furthest = _FURTHEST / (2 * slope * max(cell.width for cell in cells))
            orders = [order for k in range(4) if (order := min(orders[0], furthest) / 2**k) > 1]
        found = []
        for order in orders:
            reach = _reach(inner, left, order)
            if reach is None:
                continue
            moved = self._moved(cells, order, shift)
            evidence = SortedEvidence(
                counts=counts,
                column=public.intervals.column,
                edges=edges,
                information=self.iota,
                slope=slope,
                shift=shift,
                displacement=moved.most,
                theta=moved.theta,
                order=order,
                chosen_by=public.intervals.chosen_by,
            )
            found.append(Found(evidence, most_information(moved.most, reach)))
        return found

    def cells_of(self, public: PublicCells) -> tuple[SortedCell, ...]:
        """The intervals of which rows are shown."""
        assert public.intervals is not None
        counts = self._counts(public)
        return intervals_of(counts.cells, counts.columns.index(public.intervals.column), public.intervals.edges) or ()

    def shown_of(self, public: PublicCells) -> set[object]:
        """Where the intervals begin of which rows are shown."""
        assert public.intervals is not None
        counts = self._counts(public)
        place = counts.columns.index(public.intervals.column)
        return {(cell.values or ())[place] for cell in counts.cells}

    def covers_about(self, cells: Sequence[SortedCell]) -> bool:
        """Whether the stated information may be covered, by the mean of D alone; quick, and no proof."""
        if not cells:
            return False
        shift = self._shift(min(cell.width for cell in cells))
        if shift is None:
            moved = never_exceeded(cells)
        else:
            moved = _MARGIN * math.fsum(cell.width**2 * (1 / 6 + cell.rows * shift**2) for cell in cells)
        reach = most_mu(*self._left(self._lost())).mu
        return most_information(moved, reach) >= self.iota

    def _lost(self) -> float:
        """d: what the failure costs, as planned."""
        return min(1.0, self.reference.level / self.reference.rarest_event * COMPUTED_UP)

    def _left(self, lost: float) -> tuple[float, float]:
        """What is left of epsilon and delta once the failure is paid for; a little less, so that the check finds it within."""
        if not lost < self.delta:
            raise Refusal(
                Cause.BUDGET,
                f"delta: must be above {lost:.3g}, the chance of a failure ({self.reference.level:.3g}) over that of the "
                f"rarest event to be hidden ({self.reference.rarest_event:g}). Got {self.delta:g}. Raise delta, or lower "
                "reference.failure.",
                needs=("a larger delta", "a smaller reference.failure"),
                usage=True,
            )
        inner = (self.epsilon + math.log1p(-lost)) * AIMED_DOWN
        if inner <= 0:
            raise Refusal(
                Cause.BUDGET, "epsilon: the failure takes all of it. Raise epsilon.", needs="a larger epsilon", usage=True
            )
        return inner, (self.delta - lost) * AIMED_DOWN * SUMMED_DOWN

    def _counts(self, public: PublicCells) -> ReferenceEvidence:
        """How many rows of each cell are kept; where D may exceed D_max, with half of the failure."""
        level = self.reference.level / (1 if self.channel.shift is None else 2)
        halved = self.reference.model_copy(update={"failure": level, "confidence": None})
        return _named(reference_evidence(self.n, halved, public), public)

    def _shift(self, width: float) -> float | None:
        if self.channel.shift is None:
            return None
        # Whole numbers that are equally frequent have a distribution function with steps of 1/width.
        return min(1.0, (self.channel.shift + (1 / width if self.whole else 0.0)) * AIMED_UP)

    def _moved(self, cells: Sequence[SortedCell], order: float, shift: float | None) -> Displacement:
        weight = weight_of(self.iota, self.channel.information.slope, order)
        if shift is None:
            return Displacement(never_exceeded(cells, weight), 0.0, 0.0, None)
        found = likely(cells, self.reference.level / 2 * AIMED_DOWN, shift, weight)
        return found if found.theta == 0 else Displacement(found.most * AIMED_UP, found.failure, found.theta, shift)

    def too_much(self, public: PublicCells, found: Found) -> Refusal:
        """The stated information is above what the promise covers: by how much, and how many intervals would do."""
        assert public.intervals is not None
        variance, column = public.intervals.variance, public.intervals.column
        ways, number = self._more(public), len(public.intervals.edges) - 1
        return Refusal(
            Cause.BUDGET,
            f"assume: information: must be at most {with_share(found.most, variance)} for epsilon {self.epsilon:g} and delta "
            f"{self.delta:g} with {number} intervals of {column}. Got {with_share(self.iota, variance)}. {ways}",
            needs=("more intervals", "a larger epsilon", *(() if self.channel.shift is not None else ("shift",))),
        )

    def _more(self, public: PublicCells) -> str:
        stated = (
            "" if self.channel.shift is not None else ", or state shift (how far rows of an interval are from spread evenly)"
        )
        for times in _TIMES:
            finer = _split(public, times)
            assert finer.intervals is not None
            found = self.tried(finer)
            if found and max(one.most for one in found) >= self.iota:
                rows = found[0].rows
                return (
                    f"About {len(finer.intervals.edges) - 1:,} intervals would do, and show about {rows:,} of {self.n:,} rows: "
                    f"take narrower ones, or raise epsilon{stated}."
                )
        return f"Up to {_TIMES[-1]} times as many intervals would not do: raise epsilon{stated}, or leave telling columns out."


def _reach(epsilon: float, delta: float, order: float) -> float | None:
    """The largest mu that this order covers; None where it covers none."""
    try:
        return most_mu(epsilon, delta, order).mu
    except UsageError:
        return None


def _split(public: PublicCells, times: int) -> PublicCells:
    """So many times as many intervals, as if the records were spread evenly in each."""
    assert public.intervals is not None
    place, known = public.columns.index(public.intervals.column), public.intervals.edges
    parts = {a: [a + (b - a) * k / times for k in range(times)] for a, b in itertools.pairwise(known)}
    cells: list[PublicCell] = []
    for cell in public.cells:
        low = cell.values[place]
        lows = parts[low] if isinstance(low, float) else [low]
        values = [(*cell.values[:place], one, *cell.values[place + 1 :]) for one in lows]
        cells += [PublicCell(values=one, count=(cell.count or 0) // len(lows)) for one in values]
    edges = (*itertools.chain.from_iterable(parts.values()), known[-1])
    intervals = public.intervals.model_copy(update={"edges": edges})
    return public.model_copy(update={"cells": tuple(cells), "intervals": intervals})


def _named(counts: ReferenceEvidence, public: PublicCells) -> ReferenceEvidence:
    """The same with names of intervals, and numbers of rows of a few digits."""
    assert public.intervals is not None
    place, ends = public.columns.index(public.intervals.column), dict(itertools.pairwise(public.intervals.edges))
    keeps = [_few_digits(cell.keep) for cell in counts.cells]
    total = sum(keeps)
    cells: list[ViewCell] = []
    for cell, keep in zip(counts.cells, keeps, strict=True):
        values = cell.values or ()
        low = values[place]
        shown = interval_name(low, ends[low]) if isinstance(low, float) else low
        name = value_name((*values[:place], shown, *values[place + 1 :]))
        cells.append(cell.model_copy(update={"name": name, "keep": keep, "low": keep, "high": counts.n - total + keep}))
    return counts.model_copy(update={"cells": tuple(cells)})


def _few_digits(rows: int) -> int:
    """The number, or a little less.

    >>> [_few_digits(rows) for rows in (2, 64, 101, 1000)]
    [2, 64, 100, 992]
    """
    step = 1 if rows <= _FEW_ROWS else 1 << (rows.bit_length() - _ROW_DIGITS)
    return rows // step * step
