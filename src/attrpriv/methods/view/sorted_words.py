"""What a plan of a view with sorted cells says in words: the promise, what it rests on, up to which information it holds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrpriv.assumptions.channel import Channel
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.view.sorted import SortedEvidence
from attrpriv.numerics.divergences.channel import curve
from attrpriv.numerics.rounding import AIMED_DOWN
from attrpriv.problem.intervals import interval_name
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCells, Reference
from attrpriv.problem.secret import Secret

_MOST_NAMED = 8
# Ends of one distance are told as one run: distances that differ by no more than this share.
_ONE_STEP, _RUN = 0.005, 3
# Which shares of the largest information the curve is shown at.
_SHARES = (0.1, 0.5, 1.0)


def promise(secret: Secret, certificate: Certificate, evidence: SortedEvidence) -> str:
    columns = ", ".join(secret.columns)
    return (
        f"Whatever {columns} contain, the kept rows with public values in place of {evidence.column} are (epsilon "
        f"{certificate.epsilon:g}, delta {certificate.delta:g})-indistinguishable, for any number of queries and any model "
        f"computed from them and every event about these columns that has probability {evidence.counts.rarest_event:g} or more "
        "beforehand"
    )


def assumed_lines(
    problem: Problem, secret: Secret, reference: Reference, channel: Channel, evidence: SortedEvidence
) -> tuple[str, ...]:
    columns, column = ", ".join(secret.columns), evidence.column
    fixed = "the reference, the intervals," if evidence.chosen_by is None else "the reference,"
    even = (
        ()
        if channel.shift is None
        else (
            f"given the intervals of all rows, the rows of an interval are independent draws of one law of {column}, nowhere "
            f"further than {channel.shift:g} from an even one",
        )
    )
    return (
        f"given {columns} of all rows, the rest of each row is drawn by itself, from a law that depends on its own {columns} "
        "alone: one row a person; strata, waves and sources are among the hidden columns, or there are none",
        f"{channel}: information {evidence.information:.4g} per squared unit, at order {evidence.order:.4g}; public records "
        "cannot prove it, they can only refuse it",
        *even,
        f"what rows with a given {columns} look like is not hidden, nor what somebody concludes from it in general",
        "public records and table: each further row has each public value or interval with at least "
        f"{reference.least_density:g} times its public chance; a table with too few rows of some is an announced failure",
        f"{fixed} the columns left out and the budget were fixed before the table was looked at, and not changed until a view "
        "could be drawn",
        f"the adversary recognises no row and has no register of persons with their {column}; no column of the view numbers "
        "rows, tells their order or was computed from other rows (name such identifiers)",
        "the view is drawn once, and nothing else about this table is released",
        "single persons are not protected",
        f"the number of rows, {problem.n}, and the names and types of the columns are public",
    )


def notes(problem: Problem, public: PublicCells, evidence: SortedEvidence, most: float) -> tuple[str, ...]:
    """What the view shows and covers, before anything is drawn."""
    assert public.intervals is not None
    assert public.records is not None
    shown = {cell.values for cell in evidence.counts.cells}
    rows, n = sum(cell.keep for cell in evidence.counts.cells), evidence.counts.n
    covered = sum(cell.count or 0 for cell in public.cells if cell.values in shown) / public.records
    lines = [
        f"the view shows {rows:,} of {n:,} rows, of {len(shown)} of {len(public.cells)} public cells, which {covered:.2%} of "
        f"the public are in; {evidence.column} shows public values, spread evenly over {len(evidence.edges) - 1} intervals "
        f"from {interval_name(evidence.edges[0], evidence.edges[-1])}.",
        *_ends(evidence),
        *_curve(problem, public.intervals.variance, evidence, most),
    ]
    unknown = [name for name in problem.types if name not in (*public.intervals.compared, *public.columns)]
    if unknown:
        named = ", ".join(unknown[:_MOST_NAMED]) + (" and more" if len(unknown) > _MOST_NAMED else "")
        lines.append(f"not compared with {evidence.column}, because the public records have no such column: {named}.")
    return tuple(lines)


def _ends(evidence: SortedEvidence) -> tuple[str, ...]:
    """Which ends were found; where there are many of one distance, not each of them."""
    if evidence.chosen_by is None:
        return ()
    return (
        f"ends of intervals were found on {evidence.chosen_by:,} public records, which are not among the "
        f"{evidence.counts.records:,} that are counted: {ends_in_words(evidence.edges)}.",
    )


def ends_in_words(edges: Sequence[float]) -> str:
    """Every end, runs of one distance in short.

    >>> ends_in_words((0.0, 2.0, 4.0, 6.0, 8.0, 20.0, 25.0))
    '0 to 8 by 2, 20, 25'
    """
    told, place = [f"{edges[0]:.6g}"], 0
    while place < len(edges) - 1:
        step, end = edges[place + 1] - edges[place], place + 1
        while end < len(edges) - 1 and math.isclose(edges[end + 1] - edges[end], step, rel_tol=_ONE_STEP):
            end += 1
        run = end - place >= _RUN
        place = end if run else place + 1
        told = [*told[:-1], f"{told[-1]} to {edges[place]:.6g} by {step:.6g}"] if run else [*told, f"{edges[place]:.6g}"]
    return ", ".join(told)


def _curve(problem: Problem, variance: float, evidence: SortedEvidence, most: float) -> list[str]:
    left = (problem.delta - evidence.lost()) * AIMED_DOWN
    points = curve([*(share * most for share in _SHARES), evidence.information], evidence.displacement, left, evidence.order)
    told = "; ".join(
        f"at {with_share(p.information, variance)} mu {p.mu:.3g}, epsilon {p.epsilon:.3g}"
        for p in sorted(points, key=lambda p: p.information)
    )
    return [
        f"if the rest of a row tells more or less of {evidence.column} than the stated {evidence.information:.3g}: {told}.",
        f"the promise holds up to information {with_share(most, variance)}.",
    ]


def with_share(iota: float, variance: float) -> str:
    """`2.5e-11 (R^2 0.048)`."""
    return f"{iota:.3g} (R^2 {iota * variance / (1 + iota * variance):.3g})" if variance > 0 else f"{iota:.3g}"
