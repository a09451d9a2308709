"""The best guess: a released answer and the answer that the assumption already gives, weighed by their errors.

    G = c + w (O - c),     G - T = w (O - T) - (1 - w) (T - c)
    E (G - T)^2 = w^2 r^2 + (1 - w)^2 b^2 + 2 w (1 - w) k,     least at  w = (b^2 - k)/(r^2 + b^2 - 2 k)

| symbol | here |
|---|---|
| T, O | the table's own value, and what is released |
| c | `Weighing.constant`, the answer of the mechanism `constant` |
| r, b | the root mean square errors of O and of c, as plans state them |
| k | -E (O - T)(T - c): what is taken back of a secret goes along with T; 0 of plain noise, whose mean is 0 for every table |
| w | `Weighing.weight` |

Where all of the error is what is taken back of T - c, k = r^2 and w = 1: nothing is gained. That is transport of a table's own
secret. Where a population's share is hidden, an answer is drawn to the middle of the range, and the assumption may know better.

What must never change: w and c are functions of public numbers, so that a guess is computed from what is published, costs
nothing and tells nothing more. It stands beside the released value, and never in its place.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from attrpriv.methods.base.accuracy import Spread
from attrpriv.methods.base.tally import WholeSpread
from attrpriv.problem.problem import Problem
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    from attrpriv.methods.base.plan import Plan

# A guess is offered where it errs less than the better of both by more than this share.
_WORTH = 0.05


@dataclass(frozen=True)
class BestGuess:
    """A number computed from a released one and a public one, and its expected (root mean square) error."""

    value: float
    error: float
    weight: float
    constant: float

    def to_json(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Weighing:
    """How a released answer and the assumption's own are to be weighed: public, and known beforehand."""

    constant: float
    weight: float
    error: float

    def guess(self, released: float) -> BestGuess:
        """Of a released value.

        >>> Weighing(10.0, 0.25, 1.0).guess(14).value
        11.0
        """
        value = self.constant + self.weight * (released - self.constant)
        return BestGuess(value, self.error, self.weight, self.constant)

    def to_json(self) -> dict[str, float]:
        return asdict(self)


def weighing(plan: Plan, constant: Plan, query: Query, problem: Problem) -> Weighing | None:
    """How to weigh the answer to one query; None where that gains nothing, or where k is not known."""
    if query.whole_table or query.group_by is not None or plan.mechanism == constant.mechanism:
        return None
    answer = _constant_answer(constant, query)
    along = _along(plan, query, answer, problem)
    released, stated = plan.error_of(query).rmse, constant.error_of(query).rmse
    if along is None or not released or not stated:
        return None
    found = least(released, stated, along)
    return None if found is None else Weighing(answer, *found)


def least(released: float, stated: float, along: float = 0.0) -> tuple[float, float] | None:
    """The weight of the release and the error of the guess; None where it gains next to nothing.

    >>> [round(x, 3) for x in least(0.425, 0.374) or ()]
    [0.436, 0.281]
    >>> least(0.1, 0.4, 0.1**2) is None
    True
    """
    below = released**2 + stated**2 - 2 * along
    weight = (stated**2 - along) / below if below > 0 else 1.0
    if not 0 < weight < 1:
        return None
    rest = 1 - weight
    error = math.sqrt(weight**2 * released**2 + rest**2 * stated**2 + 2 * weight * rest * along)
    return (weight, error) if error < (1 - _WORTH) * min(released, stated) else None


def _along(plan: Plan, query: Query, answer: float, problem: Problem) -> float | None:
    """k; None where the error is not noise of mean 0 and what is taken back."""
    if plan.view is not None or plan.statistic is not None or plan.certificate.evidence.weighs:
        return None
    evidence = plan.certificate.evidence
    if evidence.errs_along and not plan.columns:  # a count: how its error goes with its law is not known
        return None
    if evidence.errs_along:
        weight = query.weight(plan.n)
        found = evidence.along(problem, plan.columns.index(plan.of(query)), answer / weight)
        return None if found is None else weight**2 * found
    spread = plan.spread_of(query)
    noisy = isinstance(spread, Spread) or (isinstance(spread, WholeSpread) and not spread.tails)
    return 0.0 if noisy and plan.noise_of(query).kind in ("gaussian", "laplace") else None


def _constant_answer(constant: Plan, query: Query) -> float:
    if constant.tally is not None and constant.tally.centre is not None:
        return constant.tally.answer(query, constant.n, constant.tally.centre)
    part = constant.of(query)
    return (part.centre or 0.0) * query.weight(part.rows or constant.n)
