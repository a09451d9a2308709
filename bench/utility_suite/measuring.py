"""Every mechanism of the table on one problem: its error as planned, and as simulated."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field

import numpy as np

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.base.accuracy import Measure
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.choice.ranking import Ranking
from attrpriv.methods.table import MECHANISMS
from attrpriv.problem.problem import Problem
from bench.utility_suite.agreement import disagreements
from bench.utility_suite.problems import Entry
from bench.utility_suite.simulation import can_simulate, simulate


@dataclass(frozen=True)
class Row:
    """One mechanism: root mean square errors; of several queries, their geometric mean."""

    mechanism: str
    predicted: float
    absolute: float
    simulated: float | None = None
    draws: int = 0
    kind: str = "proved"

    @property
    def deviation(self) -> float | None:
        """How far the simulation is from the prediction, as a share of it."""
        if self.simulated is None:
            return None
        return self.simulated / self.predicted - 1 if self.predicted else self.simulated


@dataclass(frozen=True)
class Measured:
    """All mechanisms on one problem, what `auto` chooses, and what it is compared with."""

    name: str
    family: str
    n: int
    epsilon: float
    delta: float
    chosen: str
    paper: str
    rows: tuple[Row, ...]
    refused: dict[str, str] = field(default_factory=dict)
    disagreements: tuple[str, ...] = ()

    def row(self, mechanism: str) -> Row | None:
        return next((row for row in self.rows if row.mechanism == mechanism), None)

    @property
    def auto(self) -> Row:
        """The row of the mechanism that `auto` chooses."""
        return next(row for row in self.rows if row.mechanism == self.chosen)

    def ratio(self, mechanism: str) -> float | None:
        """How many times more this mechanism errs than the chosen one."""
        theirs, ours = self.row(mechanism), self.auto.predicted
        if theirs is None:
            return None
        return theirs.predicted / ours if ours else (1.0 if not theirs.predicted else math.inf)

    def worse(self, most: float) -> list[str]:
        """The mechanisms that err less than what `auto` chooses, by more than a share; the constant answer is no release."""
        rivals = [row for row in self.rows if row.mechanism not in ("constant", "paper")]
        text = "{}: {} errs by {:.6g}, less than {}, which auto chooses: {:.6g}"
        return [
            text.format(self.name, row.mechanism, row.predicted, self.chosen, self.auto.predicted)
            for row in rivals
            if self.auto.predicted > most * row.predicted
        ]

    @property
    def to_optimum(self) -> float | None:
        """How many times more the chosen one errs than the linear program, which minimises the mean absolute error."""
        best = self.row("optimal")
        return None if best is None or not best.absolute else self.auto.absolute / best.absolute


def every_plan(problem: Problem) -> tuple[Ranking, dict[str, Plan], dict[str, str]]:
    """The ranking, the plans of all mechanisms (those too that take long, which `auto` leaves out), and the refusals."""
    ranking = rank(problem)
    plans = {found.mechanism: found for found in ranking.plans}
    refused = {name: refusal.reason for name, refusal in ranking.refused.items()}
    for name in [name for name, reason in refused.items() if "ask for it by name" in reason]:
        try:
            plans[name] = plan(problem, name)
            del refused[name]
        except (RefusedError, UsageError) as error:
            refused[name] = str(error)
    return ranking, {name: plans[name] for name in MECHANISMS if name in plans}, refused


def expected(found: Plan, by: Measure = "rmse") -> float | None:
    """The planned error: of several queries, the geometric mean; None where it is known only once a view is drawn."""
    errors = [found.error_of(query).by(by) for query in found.queries]
    if any(error is None for error in errors):
        return None
    return math.prod(error or 0.0 for error in errors) ** (1 / len(errors))


def measure(entry: Entry, draws: int, seconds: float) -> Measured:
    """Plan and simulate; `seconds` is the most that the draws of one mechanism may take."""
    ranking, plans, refused = every_plan(entry.problem)
    assert ranking.chosen is not None
    rows, wrong = [], []
    for name, found in (plans | paper_plan(entry, refused)).items():
        # Tables of the world are the same for every run; the noise of plans has no seed.
        rng = np.random.default_rng(zlib.crc32(f"{entry.name} {name}".encode()))
        error, absolute = expected(found), expected(found, "mean_absolute")
        if error is None or absolute is None or not can_simulate(found):
            refused[name] = "a view: answers for a public composition, with errors of their own"
            continue
        run = simulate(found, entry.world, rng, draws, seconds)
        together = math.prod(run.rmse(k) for k in range(len(found.queries))) ** (1 / len(found.queries))
        wrong += [f"{entry.name}: {name}: {text}" for text in disagreements(found, entry.problem, run)]
        rows.append(Row(name, error, absolute, together, run.draws, found.guarantee.kind))
    problem = entry.problem
    return Measured(
        entry.name,
        entry.family,
        problem.n,
        problem.epsilon,
        problem.delta,
        ranking.chosen.mechanism,
        "paper" if entry.paper == "classical" else entry.paper,
        tuple(sorted(rows, key=lambda row: row.predicted)),
        refused,
        tuple(wrong),
    )


def paper_plan(entry: Entry, refused: dict[str, str]) -> dict[str, Plan]:
    """The paper's calibration where it is a mechanism of its own; elsewhere it is one of the table."""
    if entry.paper != "classical":
        return {}
    try:
        return {"paper": plan(entry.paper_problem, entry.paper_mechanism)}
    except (RefusedError, UsageError) as error:
        refused["paper"] = str(error)
        return {}
