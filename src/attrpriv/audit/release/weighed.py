"""Weighted averages tried on public rows, by simulation: an epsilon that is surely exceeded, and what would not be seen.

Tables are made of public records for two values of the secret (`audit.release.recorded`), each a little inside of its range.
The weights' random part is drawn from a fixed seed, in floats, by the law that the release draws from.

    1. the pair, and an event of the answer (in an interval, or not; a failure is in none), are chosen by some tables
    2. P(event | one value) - e^epsilon P(event | other) on fresh tables, from below, at one epsilon after the other of a fixed
       list, until it is not above delta. So the first one at which it is really not above is passed with ERROR at most

What must never change: what is tested is fixed before the tables are drawn that it is tested on; nothing here proves that a
promise holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attrpriv.audit.model import frame_of
from attrpriv.audit.release.bounds import least_excess, margin
from attrpriv.audit.release.recorded import record_worlds
from attrpriv.audit.release.stated import NotDrawn, Pair, World
from attrpriv.audit.tables import Floats
from attrpriv.engines.tables import Source
from attrpriv.errors import UsageError
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.plan import Plan
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret

ERROR = 1e-3
TABLES, CHOOSING, FEW, LEAST = 12_000, 4_000, 500, 500
# Rows that are drawn for one answer, at most: some seconds.
_MOST_ROWS = 5e7
# Of so many draws of a table one has the value that is wanted.
_REJECTED = 12
_THRESHOLDS = 40
_SEED = 18
# The list of epsilons: so many up to the promised one, and so many times that.
_STEPS, _MOST_TIMES = 100, 20


@dataclass(frozen=True)
class Interval:
    """An event: the answer is at least `low` and below `high`, or not so. An answer that failed is in no interval."""

    low: float
    high: float
    inside: bool
    swapped: bool
    """whether it is likelier for the lower value"""

    def holds(self, answers: Floats) -> Floats:
        found = (answers >= self.low) & (answers < self.high)
        return np.asarray(found == self.inside, np.float64)

    def over(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Whether it holds, for the value that it is likelier under, and for the other."""
        one, other = (high, low) if not self.swapped else (low, high)
        return self.holds(one), self.holds(other)


def simulated(plan: Plan, problem: Problem, part: ColumnPlan, secret: Secret, source: Source) -> dict[str, Any]:
    """The fields of a `Tried`, but for what it is about; an error with the reason where no tables can be made."""
    if secret.single is None or secret.cases is not None or secret.composition is not None or secret.parameter is not None:
        raise UsageError(f"only one column's mean or sum is compared at a time. Got {secret.text}.")
    frame = frame_of(source.engine.to_pyarrow(source.table).to_pandas())
    try:
        worlds = record_worlds(plan, problem, None, frame, None)
    except NotDrawn as why:
        raise UsageError(str(why)) from None
    world = next(one for one in worlds if one.secret == secret.text)
    share = min(1.0, _MOST_ROWS / (_all(len(world.pairs)) * (plan.n + _REJECTED * frame[secret.single].nunique())))
    if share * TABLES < LEAST:
        raise UsageError("so many rows, or different values of the hidden column, take too long to be simulated.")
    tables = Answers(plan, part, world, share)
    pair, event = _chosen(tables, plan.epsilon)
    likely, unlikely = event.over(*tables.of(pair, TABLES, 3))
    at_least = shown_epsilon(likely, unlikely, plan.epsilon, plan.delta)
    unseen = float(f"{margin(likely, unlikely, ERROR, plan.epsilon):.2g}")
    many = len(likely)
    return {
        "verdict": "broken" if at_least >= plan.epsilon else "nothing found",
        "at_least": at_least,
        "pair": pair,
        "simulated": many,
        "unseen": unseen,
        "reason": f"Simulated: {many:,} tables for each value show it, and would miss a delta of about {unseen:g} or less.",
    }


def _all(pairs: int) -> int:
    """How many tables are drawn in all."""
    return 2 * (TABLES + CHOOSING + (FEW * pairs if pairs > 1 else 0))


def shown_epsilon(likely: Floats, unlikely: Floats, promised: float, delta: float) -> float:
    """The last of a fixed list of epsilons up to which the event has more than delta; 0 where it has not at the first.

    >>> likely, unlikely = np.repeat([1.0, 0.0], 500), np.repeat([1.0, 0.0], [50, 950])
    >>> shown_epsilon(likely, unlikely, 1.0, 1e-6), shown_epsilon(unlikely, likely, 1.0, 1e-6)
    (1.45, 0.0)
    """
    shown = 0.0
    for step in range(1, _STEPS * _MOST_TIMES):
        epsilon = promised * (step / _STEPS)
        if not least_excess(likely, unlikely, epsilon, ERROR) > delta:
            break
        shown = epsilon
    return shown


# ----------------------------------------------------------------------------------------------------------- the answers


@dataclass(frozen=True)
class Answers:
    """Answers of made tables: a number each, not a number where the weights failed."""

    plan: Plan
    part: ColumnPlan
    world: World
    share: float
    """of the tables that would be drawn if rows were few"""

    def of(self, pair: Pair, count: int, stage: int) -> tuple[Floats, Floats]:
        low, high = (self._drawn(pair[k], max(1, int(count * self.share)), [_SEED, stage, k]) for k in (0, 1))
        return low, high

    def _drawn(self, value: float, count: int, seed: Sequence[int]) -> Floats:
        generator = np.random.default_rng(seed)
        return answers(self.plan, self.part, self.world.tables(value, count, generator), generator)


def answers(plan: Plan, part: ColumnPlan, tables: Sequence[Any], generator: np.random.Generator) -> Floats:
    """What would be released of tables that are known by their number of rows, sums and products, in steps of their columns."""
    grids, stated = plan.certificate.evidence.gram_columns(), part.parameters
    target = stated["target"]
    p = len(target)
    own = p + plan.columns.index(part)
    aim = np.array([1.0, *((target[name] - centre) / step for name, centre, step, _ in grids[:p])])
    unit = np.array([1.0, *(1 / step for _, _, step, _ in grids)])  # back from steps, so that numbers are of one size
    found = np.full(len(tables), np.nan)
    for k, (rows, sums, products) in enumerate(tables):
        totals = np.array([sums], float)
        gram = np.block([[np.array([[float(rows)]]), totals], [totals.T, np.array(products, float)]]) / np.outer(unit, unit)
        known, cross = gram[: p + 1, : p + 1], gram[: p + 1, own + 1]
        both = np.linalg.solve(known, np.column_stack([aim / unit[: p + 1], cross]))
        q, plain = float(aim / unit[: p + 1] @ both[:, 0]), float(aim / unit[: p + 1] @ both[:, 1])
        rest = float(gram[own + 1, own + 1] - cross @ both[:, 1])
        first = generator.normal()
        direction = first / math.sqrt(first**2 + generator.chisquare(rows - p - 2))
        if q <= stated["bound"] and rest > 0:
            found[k] = grids[own][1] + plain + math.sqrt((stated["bound"] - q) * rest) * direction
    return np.asarray(found + generator.normal(0, stated["mask"], len(tables)))


# ------------------------------------------------------------------------------------------------------------ the choice


def _chosen(tables: Answers, epsilon: float) -> tuple[Pair, Interval]:
    """The pair at which a few tables look most apart, and the event that tells most there, by others."""
    pairs = tables.world.pairs
    pair = pairs[0]
    if len(pairs) > 1:
        pair = max(pairs, key=lambda one: most_telling(*tables.of(one, FEW, 1), epsilon)[0])
    return pair, most_telling(*tables.of(pair, CHOOSING, 2), epsilon)[1]


def most_telling(low: Floats, high: Floats, epsilon: float) -> tuple[float, Interval]:
    """Of intervals between quantiles and their complements, both ways: the largest P - e^epsilon P, and where it is."""
    known = np.concatenate([low, high])
    known = known[np.isfinite(known)]
    inner = np.quantile(known, np.linspace(0, 1, _THRESHOLDS + 1)[1:-1]) if len(known) else np.zeros(0)
    ends = np.array([-np.inf, *np.unique(inner), np.inf])
    below = [np.searchsorted(np.sort(side[np.isfinite(side)]), ends) / len(side) for side in (low, high)]
    within = [cum[None, :] - cum[:, None] for cum in below]
    best: tuple[float, Interval] | None = None
    for inside in (True, False):
        chances = within if inside else [1 - one for one in within]
        for swapped in (False, True):
            likely, unlikely = (chances[0], chances[1]) if swapped else (chances[1], chances[0])
            beyond = np.where(ends[None, :] > ends[:, None], likely - math.exp(epsilon) * unlikely, -np.inf)
            i, j = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
            if best is None or beyond[i, j] > best[0]:
                best = float(beyond[i, j]), Interval(float(ends[i]), float(ends[j]), inside, swapped)
    if best is None:
        raise ValueError("no event")
    return best
