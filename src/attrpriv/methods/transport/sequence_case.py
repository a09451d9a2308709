"""What a sequence of transported averages rests on: all averages so far, what they vary by themselves, and their digits.

Later answers build on the numbers of earlier ones, so these may not change when another column comes: the covariance that the
averages have given all that is read is computed entry by entry in fractions, and an entry depends on its two columns alone.
Under a tolerance nothing is credited at all: no other bound on a covariance is one whichever columns follow.

What must never change: a matrix that is credited is never above the true one. And what the budget of a sequence pays besides
the calibration is the same for each of its releases, whatever was asked: (epsilon, delta) of steps that are chosen by what was
seen before holds for a total that is fixed beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.gaussian import ValueLattice, is_exact, masks, recorded
from attrpriv.cases.recorded_smooth import require_smooth
from attrpriv.cases.subset import Rows
from attrpriv.methods.base.clamp import Rows as Credited
from attrpriv.methods.base.column_plan import Design
from attrpriv.methods.transport.case import Coefficients, statistics_of
from attrpriv.methods.transport.plan import members, read_jointly
from attrpriv.methods.transport.sequence_proof import SequenceEvidence, SequenceStep
from attrpriv.numerics.rounding import SOLVED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.queries.query import Query

# Entries are rounded to floats; the diagonal gives way, by more than all entries of a row can be off.
_ROUND_DOWN = 1 - Fraction(1, 10**12)


@dataclass(frozen=True)
class Case:
    """The class, and all averages so far as if they were asked together."""

    theta: tuple[Gaussian, ...]
    whole: Problem
    past: SequenceEvidence | None

    @classmethod
    def of(cls, problem: Problem) -> Case:
        """A refusal where the sequence cannot go on with this problem."""
        if not problem.columns:
            raise Refusal(
                Cause.STATISTIC, "the number of rows is public; ask for an average or a sum.", needs="an average or a sum"
            )
        if problem.combined:
            raise Refusal(
                Cause.STATISTIC,
                "moves averages of columns as they are, one after the other; ask for the columns, or use gaussian.",
                needs=("the average of each column", "mechanism gaussian"),
            )
        past = SequenceEvidence.read(problem.earlier)
        before = () if past is None else past.columns
        again = [column for column in problem.columns if column in before]
        if again:
            raise Refusal(
                Cause.EARLIER,
                f"{again[0]}: was released before; ask for it as it was asked then, and it is repeated.",
                needs="the same question",
            )
        asked = tuple(Query("avg", column) for column in (*before, *problem.columns))
        whole = problem.model_copy(update={"queries": asked or problem.queries})
        found = cls(members(whole), whole, past)
        found._require_covered()
        return found

    def _require_covered(self) -> None:
        if len(self.statistics) > 1 and not self.exact:
            # Two values of one statistic have no values of the others in common where all are recorded on a spacing.
            raise Refusal(
                Cause.NUMBERS,
                "several secrets are hidden one answer after the other only where moments are stated as exact (tolerance 0); "
                "spend everything at once, or use gaussian.",
                needs=("tolerance 0", "spend 1", "mechanism gaussian"),
            )
        if self.past is not None and [one.coefficients for one in self.past.reads] != list(self.statistics):
            raise Refusal(
                Cause.EARLIER,
                "the secrets read other statistics than they did when the ledger's releases were moved along them; what was "
                "released does not hide the new ones.",
                needs="the secrets of earlier releases",
            )

    @property
    def statistics(self) -> tuple[Coefficients, ...]:
        return statistics_of(self.whole)

    @property
    def exact(self) -> bool:
        """Whether one law is assumed, with exactly stated slopes and sds."""
        return len(self.theta) == 1 and is_exact(self.theta[0]) and not self.whole.known_rows

    def credited(self) -> Credited:
        """What the averages surely vary by themselves, given all that is read; the earlier part as it was."""
        columns = self.whole.columns
        if not self.exact:
            rows: Credited = ((0.0,) * len(columns),) * len(columns)
        else:
            rows = residual(self.theta[0], columns, self.statistics, self.whole.n)
        size = 0 if self.past is None else len(self.past.steps)
        if self.past is not None and tuple(row[:size] for row in rows[:size]) != self.past.credited:
            raise Refusal(
                Cause.EARLIER,
                "the assumption is another one than that which earlier releases were planned with.",
                needs="the assumption of earlier releases",
            )
        return rows

    def masks(self) -> dict[str, float]:
        """The least noise on each average; a refusal where an earlier one had less."""
        least = masks(self.whole, self.theta)
        for step in () if self.past is None else self.past.steps:
            if step.noise < least[step.column] * SOLVED_DOWN:
                raise Refusal(
                    Cause.EARLIER,
                    f"{step.column}: was released with less noise below its digits than this policy asks for.",
                    needs="the resolution of earlier releases",
                )
        return least

    def recorded(self, least: Mapping[str, float]) -> ValueLattice:
        """The conditions for recorded values given all that is read at once, and the spacings that are covered."""
        drawn = {} if self.past is None else {step.column: step.noise for step in self.past.steps}
        return recorded(self._jointly(), self.theta, {**least, **drawn})

    def require_smooth(self, steps: Sequence[SequenceStep]) -> None:
        """A refusal where rounding of the sensitive columns shows in all answers together, also given all that is read."""
        noise = Design(tuple(step.noise for step in steps), ()).covariance()
        hidden = (*self.whole.secrets, *read_jointly(self.whole))
        require_smooth(self.whole, Rows.of(self.whole), self.theta, noise, hidden)

    def _jointly(self) -> Problem:
        """The same with all statistics as one secret."""
        return self.whole.model_copy(update={"secrets": read_jointly(self.whole) or self.whole.secrets})


def residual(member: Gaussian, columns: Sequence[str], statistics: Sequence[Coefficients], n: int) -> Credited:
    """The covariance of averages given the averages that are read, entry by entry, from below."""

    def covariance(first: str, second: str) -> Fraction:
        return Fraction(member.correlation_of(first, second)) * Fraction(member.sd_of(first)) * Fraction(member.sd_of(second))

    def with_read(column: str) -> list[Fraction]:
        return [sum((Fraction(w) * covariance(column, c) for c, w in one.items()), Fraction(0)) for one in statistics]

    shared = {column: with_read(column) for column in dict.fromkeys((*columns, *(c for one in statistics for c in one)))}
    inside = [
        [sum((Fraction(w) * shared[c][j] for c, w in one.items()), Fraction(0)) for j in range(len(statistics))]
        for one in statistics
    ]
    solved = {column: _solved(inside, shared[column]) for column in columns}

    def entry(first: str, second: str) -> float:
        explained = sum((a * b for a, b in zip(shared[first], solved[second], strict=True)), Fraction(0))
        left = (covariance(first, second) - explained) / n
        return float(max(left, Fraction(0)) * _ROUND_DOWN) if first == second else float(left)

    half = [[entry(first, second) for second in columns[: k + 1]] for k, first in enumerate(columns)]
    size = range(len(columns))
    return tuple(tuple(half[max(j, k)][min(j, k)] for j in size) for k in size)


def _solved(matrix: Sequence[Sequence[Fraction]], right: Sequence[Fraction]) -> list[Fraction]:
    """Gauss and Jordan in fractions, for a small definite matrix."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        if not rows[k][k] > 0:
            raise Refusal(
                Cause.SECRET, "the sensitive columns determine one another; protect fewer of them.", needs="fewer secrets"
            )
        lead = [x / rows[k][k] for x in rows[k]]
        rows = [lead if j == k else [x - row[k] * y for x, y in zip(row, lead, strict=True)] for j, row in enumerate(rows)]
    return [row[-1] for row in rows]
