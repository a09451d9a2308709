"""How far a plan's answers are from a table's own statistics, over tables that the assumption describes.

Every answer is drawn by the plan itself, with its own noise. Its certificate, which does not depend on the table, is verified
once and not again for each draw.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from attrpriv.methods.base.plan import Plan
from attrpriv.methods.calibrated_weights.proof import WeightsEvidence
from bench.utility_suite.worlds import Table, World

Matrix = NDArray[np.float64]
# Tables are drawn in lots of this size, until there are enough or the time is over.
_LOT = 250


@dataclass(frozen=True)
class Simulated:
    """Errors of a plan, one row for each table and one column for each query; in the queries' own units."""

    errors: Matrix
    failed: int

    @property
    def draws(self) -> int:
        return len(self.errors)

    def rmse(self, query: int = 0) -> float:
        return math.sqrt(float(np.mean(self.errors[:, query] ** 2)))

    def standard_error(self, query: int = 0) -> float:
        """Of the mean square error."""
        return float(np.std(self.errors[:, query] ** 2)) / math.sqrt(self.draws)


def can_simulate(plan: Plan) -> bool:
    """A view's rows are no sufficient statistic: its error is known once it is drawn, and is not simulated."""
    return plan.view is None


def simulate(plan: Plan, world: World, rng: np.random.Generator, draws: int, seconds: float = math.inf) -> Simulated:
    """Errors on this many tables, fewer where the time is over."""
    found: list[list[float]] = []
    failed, end = 0, time.monotonic() + seconds
    with _verified_once(plan):
        while len(found) + failed < draws and time.monotonic() < end:
            for table in world.tables(rng, min(_LOT, draws - len(found) - failed), products=plan.certificate.evidence.weighs):
                off = errors_of(plan, table)
                found += [] if off is None else [off]
                failed += off is None
                if time.monotonic() > end:
                    break
    return Simulated(np.array(found, dtype=np.float64).reshape(len(found), -1), failed)


@contextmanager
def _verified_once(plan: Plan) -> Iterator[None]:
    plan.verify()
    with patch.object(Plan, "verify", lambda plan: None):
        yield


def errors_of(plan: Plan, table: Table) -> list[float] | None:
    """Answers minus the table's own values; None where the plan announced a failure."""
    if plan.tally is not None:
        return _tallied(plan, table)
    averages = table.averages or {}
    evidence = plan.certificate.evidence
    answers: Sequence[float] | None
    if isinstance(evidence, WeightsEvidence):
        told = plan.answered((plan.n, *_sums(evidence, plan.n, table)))
        answers = None if told is None else [value for (value,) in told]
    else:
        read = [*(part.column for part in plan.columns), *plan.read_columns]
        counts = [(table.categories or {})[one.name] for one in plan.categories]
        answers = plan.answers([Fraction(averages[c]) for c in read], counts)
    if answers is None:
        return None
    own = [averages[query.column or ""] * query.weight(plan.n) for query in plan.queries]
    return [answer - value for answer, value in zip(answers, own, strict=True)]


def _tallied(plan: Plan, table: Table) -> list[float]:
    tally = plan.tally
    assert tally is not None
    categories = [(table.categories or {})[one.name] for one in tally.categories]
    released = plan.tallied(table.cells, categories)
    own = [tally.answer(query, plan.n, tally.total(table.cells)) for query in plan.queries]
    return [answers[0] - value for answers, value in zip(released, own, strict=True)]


def _sums(weights: WeightsEvidence, n: int, table: Table) -> tuple[list[int], list[list[int]]]:
    """Sums over the rows, and sums of products, in whole steps from each column's centre."""
    averages = table.averages or {}
    columns = [*weights.sensitive, *weights.columns]
    assert table.covariances is not None
    places = [list(averages).index(one.column) for one in columns]
    middle = np.array([(averages[one.column] - one.centre) / one.step for one in columns])
    unit = np.array([one.step for one in columns])
    within = table.covariances[np.ix_(places, places)] / np.outer(unit, unit)
    products = n * (within + np.outer(middle, middle))
    return _whole(n * middle), [_whole(row) for row in products]


def _whole(numbers: Sequence[float] | Matrix) -> list[int]:
    return [round(float(x)) for x in numbers]
