"""Laplace noise, one release after the other: what was drawn before, and what it leaves of the budget.

    loss of everything drawn <= (s + spend (1 - s)) epsilon,     s = the share that was spent before, under this policy

The loss is that of `laplace_sequence.proof`: the number of rows that change times the loss of one row in all counts together,
plus what noise for the whole range has cost. Laws of earlier statistics are read from the assumption again, because the policy
may have been tightened; where it does not say them any more, or rows are known to the adversary, a row pays its whole span.

What must never change: nothing is taken from earlier evidence but what was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from attrpriv.assumptions.counts import states_of
from attrpriv.cases.lattice import Counted, counted, rows_apart
from attrpriv.errors import QueryError
from attrpriv.methods.base.certificate import LEAST_LEFT
from attrpriv.methods.base.evidence import LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.tally import Tally
from attrpriv.methods.laplace_sequence.proof import (
    CountDraw,
    CountHistory,
    CountSequenceEvidence,
    JointLaw,
    SequenceCheck,
    SequenceEvidence,
)
from attrpriv.numerics.rounding import COMPUTED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.evaluate import Category, holds_for
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries

Proof = Callable[[tuple[LaplaceTerm, ...]], LaplaceEvidence | CountSequenceEvidence]


@dataclass(frozen=True)
class Standing:
    """What was drawn before with its laws, the share of this problem's budget that it spent, and that may be spent in all."""

    past: CountHistory
    laws: Mapping[str, Counted | None]
    proved: CountSequenceEvidence
    spent: float
    most: float

    @classmethod
    def of(cls, problem: Problem) -> Standing:
        if problem.earlier is None:
            return cls(CountHistory(), {}, CountSequenceEvidence(), 0.0, problem.spend)
        earlier = SequenceEvidence.read(problem.earlier)
        if earlier is None:
            raise Refusal(
                Cause.STATISTIC, "follows counts and averages with Laplace noise only.", needs="a count or an average"
            )
        past = earlier.after()
        laws = {draw.identity: _found(problem, draw) for draw in past.draws}
        proved = CountSequenceEvidence(past=past, checks=sequence_checks(problem, past, laws))
        spent = proved.spent(problem.epsilon, problem.delta)
        if not 1 - spent > LEAST_LEFT:
            raise Refusal(
                Cause.EARLIER,
                "nothing is left of the budget: what was released so far loses all of epsilon. Recorded answers are repeated "
                "at no cost.",
            )
        return cls(past, laws, proved, spent, spent + problem.spend * (1 - spent))

    def epsilon(self, problem: Problem) -> float:
        """What noise for the whole range may lose; the last digits are left to rounding."""
        return (self.most - self.spent) * problem.epsilon * COMPUTED_DOWN - 1e-14 * problem.epsilon

    def room(self, problem: Problem) -> float | None:
        """The most that may be lost by bounds that later releases can go on from; None where nothing is kept for them."""
        spent = self.proved.loss(going_on=True)
        return None if problem.spend == 1 or spent >= problem.epsilon else spent + problem.spend * (problem.epsilon - spent)


def range_budget(problem: Problem) -> tuple[float, Proof]:
    """What noise for the whole range may lose, and its proof: it adds up with whatever was drawn before."""
    if problem.alone:
        return problem.epsilon, lambda terms: LaplaceEvidence(terms=terms)
    standing = Standing.of(problem)
    return standing.epsilon(problem), lambda terms: standing.proved.model_copy(update={"terms": terms})


def range_assumes(problem: Problem) -> tuple[str, ...]:
    """What noise for the whole range rests on, and what was released before it."""
    lines = ["nothing about the law of the rows: any table looks like any other"]
    earlier = SequenceEvidence.read(problem.earlier)
    if earlier is not None and earlier.after().reads:
        lines = [
            "of this release: nothing about the law of the rows",
            "of the counts before: rows are independent, and given its category a row adds to them by the law that is stated",
            *(f"{'one of: ' if len(problem.theta) > 1 else ''}{member}" for member in problem.theta),
        ]
    return (
        *lines,
        f"the number of rows, {problem.n}, is public",
        "nothing else about this table is released outside the ledger",
    )


def sequence_checks(problem: Problem, drawn: CountHistory, laws: Mapping[str, Counted | None]) -> tuple[SequenceCheck, ...]:
    """Every secret under every member of Theta, with the laws of everything drawn."""
    if not drawn.reads:
        return ()
    found = [laws[draw.identity] for draw in drawn.draws]
    # Who knows one entry of a row knows more of the others than their stated law. So no law is used from the first of a
    # sequence on: with it, less would be left for another count than the first one says.
    if problem.known_rows:
        found = [None] * len(found)
    joint = joint_laws(problem, found)
    return tuple(
        SequenceCheck(
            secret=secret,
            theta=k,
            apart=apart,
            laws=tuple(None if one is None else one.cases[place].records for one in found),
            joint=joint[place] if joint else (),
        )
        for place, (secret, k, apart) in enumerate(rows_apart(problem))
    )


def _found(problem: Problem, draw: CountDraw) -> Counted | None:
    """What was drawn, with its laws; None where the assumption does not say them, or counts differently by now."""
    try:
        found = counted(problem.model_copy(update={"queries": parse_queries(draw.statistic)}))
    except (Refusal, QueryError):
        return None
    tally = found.tally
    same = (tally.identity, tally.histogram, tally.width) == (draw.identity, draw.histogram, draw.width)
    return found if same else None


# ----------------------------------------------------------------------------------------------------------------------------
# Statistics of one column: each is a function of the row's value, so that the stated law of the values is their joint law.
#
# What must never change: statistics are taken together only where they read the same entries, filled and clipped alike, and
# every value that the assumption lists decides each of them.


Read = tuple[str, float | None, tuple[float, float] | None]


def joint_laws(problem: Problem, found: Sequence[Counted | None]) -> list[tuple[JointLaw, ...]]:
    """Of each case, in order: the joint laws of those statistics that are of one column, two or more of them."""
    groups: dict[Read, list[int]] = {}
    for place, one in enumerate(found):
        if one is not None and len(one.tally.reads) == 1:
            groups.setdefault(_read(one.tally), []).append(place)
    made = [
        _joint(problem, read[0], places, [one.tally for one in (found[place] for place in places) if one is not None])
        for read, places in groups.items()
        if len(places) > 1
    ]
    known = [laws for laws in made if laws is not None]
    cases = next((len(one.cases) for one in found if one is not None), 0)
    return [tuple(laws[k] for laws in known) for k in range(cases)]


def _read(tally: Tally) -> Read:
    column = next(iter(tally.reads))
    return column, tally.fill.get(column), tally.clip.get(column)


def _joint(problem: Problem, column: str, places: Sequence[int], tallies: Sequence[Tally]) -> list[JointLaw] | None:
    """None where the assumption does not list the column's values, or a value does not decide a statistic."""
    try:
        whole = counted(problem.model_copy(update={"queries": (Query("count", group_by=column),)}))
        values, _ = whole.theta[0].values(column, problem.bins)
        added = [_added(tally, states_of(column, values, problem.bins)) for tally in tallies]
    except (Refusal, QueryError):
        return None
    if any(one is None for one in added):
        return None
    rows = tuple(one for one in added if one is not None)
    return [JointLaw(places=tuple(places), atoms=case.records, added=rows) for case in whole.cases]


def _added(tally: Tally, states: Sequence[Category]) -> tuple[int, ...] | None:
    """What a row of each value adds; of a histogram, the number of its cell."""
    conditions = [parse_condition(cell.where) for cell in tally.cells]
    found = []
    for state in states:
        held = [k for k, condition in enumerate(conditions) if holds_for(condition, state)]
        if len(held) > 1 or (tally.complete and not held):
            return None
        found.append(0 if not held else held[0] if tally.histogram else tally.cells[held[0]].value)
    return tuple(found)
