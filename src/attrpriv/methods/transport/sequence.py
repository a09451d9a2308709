"""`transport` where other releases came before or may come after: the clamp with innovations (docs/theory/sequences.md).

Each average is a step. Of the total mu^2 that (epsilon, delta) allows, earlier steps have used some; this release may use
`spend` of the rest, shared by its own steps so that the sum of their squared errors, in units of the averages' own sds, is
small. In a step that may cost chi, with v what earlier answers leave open of the average and b what the class leaves open of
the slopes,

    2 reach = chi sqrt(v + s^2) - b

and the noise s is searched, from its mask up, for the least expected error. The certificate checks the result for all steps
together; nothing here has to be right for the promise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from attrpriv.cases.budget import Budget, allowed_distance, real_epsilon, sequence_budget
from attrpriv.cases.gaussian import ValueLattice, gaussian_assumptions, gaussian_notes
from attrpriv.methods.base.accuracy import OFF_BY, ModelError, Noise
from attrpriv.methods.base.certificate import LEAST_LEFT, Certificate
from attrpriv.methods.base.clamp import MovedSpread, Read, normal_points
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.parts import AveragesPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.transport.case import Told, told
from attrpriv.methods.transport.sequence_case import Case
from attrpriv.methods.transport.sequence_clamp import Innovations, beyond_many, sequence_spreads
from attrpriv.methods.transport.sequence_proof import SequenceEvidence, SequenceStep
from attrpriv.noise import granularity
from attrpriv.numerics.rounding import COMPUTED_UP, SHY_DOWN, SOLVED_UP
from attrpriv.numerics.search import least_at
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

REFERENCE = "docs/theory/sequences.md"
_SEARCH = 30
# How often the shares of a release's steps are evened out.
_ROUNDS = 6


def plan(problem: Problem) -> Plan:
    """The next steps of a sequence, with the proof for all of it."""
    if problem.delta == 0:
        raise Refusal(Cause.BUDGET, "a sequence of transported averages needs a delta above 0.", needs="delta above 0")
    case = Case.of(problem)
    least = case.masks()
    lattice, credited = case.recorded(least), case.credited()
    left = sequence_budget(problem, case.theta, len(case.whole.columns), lattice.charge, common=0)
    mu = allowed_distance(problem, left)
    unmasked = {column: 0.0 for one in case.statistics for column in one}
    found = told(case.whole, case.theta, {**unmasked, **least}, taken=() if case.past is None else case.past.slopes)
    ahead = _Steps(case, least, found, credited, left)
    steps = ahead.best(ahead.room(mu, problem.spend))
    evidence = ahead.evidence(steps)
    case.require_smooth(steps)
    return _assembled(problem, case, found, evidence, lattice, least, left)


@dataclass(frozen=True)
class _Steps:
    """What the next steps are made from."""

    case: Case
    least: Mapping[str, float]
    found: Told
    credited: tuple[tuple[float, ...], ...]
    left: Budget

    @property
    def past(self) -> tuple[SequenceStep, ...]:
        return () if self.case.past is None else self.case.past.steps

    @property
    def fresh(self) -> tuple[str, ...]:
        return self.case.whole.columns[len(self.past) :]

    def evidence(self, steps: Sequence[SequenceStep]) -> SequenceEvidence:
        """The proof for these steps, the first of all that are asked."""
        size = len(steps)
        rows = self.found.slopes.tolist()[:size]
        checks = [
            check.model_copy(
                update={
                    "own": check.own[:size],
                    "own_off": check.own_off[:size],
                    "regression": check.regression[:size],
                    "credited": (),
                }
            )
            for check in self.found.checks
        ]
        return SequenceEvidence(
            before=min(len(self.past), size - 1),
            steps=tuple(steps),
            reads=self._reads(),
            slopes=tuple(tuple(float(x) for x in row) for row in rows),
            credited=tuple(row[:size] for row in self.credited[:size]),
            checks=tuple(checks),
            **self.left.charges,
        )

    def _reads(self) -> tuple[Read, ...]:
        if self.case.past is not None:  # the centres are what they were
            return self.case.past.reads
        theta, missing = self.case.theta, self.case.whole.missing
        return tuple(
            Read(
                coefficients=one,
                centre=sum(weight * theta[0].mean[column] for column, weight in one.items()),
                fill={column: missing[column] for column in one if column in missing},
            )
            for one in self.found.statistics
        )

    def room(self, mu: float, spend: float) -> float:
        """The sum of squares that this release may use."""
        spent = self.evidence(self.past).distance() ** 2 if self.past else 0.0
        left = mu**2 - spent
        if not left > LEAST_LEFT * mu**2:
            raise Refusal(
                Cause.EARLIER,
                "nothing is left of the budget: the answers so far are as far apart as epsilon and delta allow. "
                "Recorded answers are repeated at no cost.",
            )
        return spend * left * SHY_DOWN

    def best(self, room: float) -> tuple[SequenceStep, ...]:
        """The shares of the steps are moved towards those that err more; the best of a few rounds is taken."""
        count = len(self.fresh)
        shares, found = [1 / count] * count, []
        for _ in range(_ROUNDS if count > 1 else 1):
            made, errors = self._made([math.sqrt(share * room) for share in shares])
            found.append((sum(error**2 for error in errors), made))
            weighed = [share * (0.1 + error / max(errors)) for share, error in zip(shares, errors, strict=True)]
            shares = [one / sum(weighed) for one in weighed]
        return min(found, key=lambda pair: pair[0])[1]

    def _made(self, costs: Sequence[float]) -> tuple[tuple[SequenceStep, ...], list[float]]:
        """Steps of these costs, one after the other, and the errors of their answers in sds of the averages."""
        import numpy as np

        points, weights = normal_points(self.found.wander.shape[1])
        told_of = points @ self.found.wander.T + self.found.bias
        steps, kept, errors = list(self.past), np.zeros_like(told_of), list[float]()
        innovations = Innovations()
        for k, column in enumerate(self.case.whole.columns):
            row = self.credited[k]
            gain, tied = innovations.gain(row[:k])
            x = beyond_many(told_of[:, k], gain, kept[:, :k])
            if k >= len(self.past):
                # The exact rest of a variance, less than nothing where entries are rounded.
                own = max(0.0, float(Innovations.variance(row[k], 0.0) - tied))
                step, spread = self._step(column, x, weights, own, self._open(innovations, gain), costs[len(errors)])
                steps.append(step)
                errors.append(spread.rmse / self._sd(column))
            kept[:, k] = np.clip(x, -steps[k].reach, steps[k].reach)
            innovations = innovations.after((*row[:k], Innovations.variance(row[k], steps[k].noise)))
        return tuple(steps), errors

    def _open(self, innovations: Innovations, gain: Sequence[Decimal]) -> float:
        """How far what the class leaves open of the slopes moves the next answer, given those before it."""
        reached = [innovations.passed_on_next(gain, moves.untold, moves.untold_off) for moves in self.found.moves]
        return float(max(reached)) * COMPUTED_UP

    def _sd(self, column: str) -> float:
        return max(member.sd_of(column) for member in self.case.theta) / math.sqrt(self.case.whole.n)

    def _step(
        self, column: str, x: Matrix, weights: Matrix, own: float, opened: float, cost: float
    ) -> tuple[SequenceStep, MovedSpread]:
        """The noise of least expected error, and the reach that it leaves."""
        import numpy as np

        mask = self.least[column] * COMPUTED_UP
        low = max(mask**2, (opened / cost) ** 2 * SOLVED_UP - own)
        high = max(low * SOLVED_UP, 4 * float(weights @ x**2) / cost**2 + low)

        def at(variance: float) -> tuple[SequenceStep, MovedSpread]:
            noise = math.sqrt(variance) * COMPUTED_UP
            reach = max(0.0, (cost * math.sqrt(own + noise**2) - opened) / 2)
            step = SequenceStep(column=column, noise=noise, least=self.least[column], reach=reach)
            return step, MovedSpread(x - np.clip(x, -reach, reach), weights, noise)

        best = math.exp(least_at(lambda v: at(math.exp(v))[1].rmse, math.log(low), math.log(high), _SEARCH))
        return min((at(variance) for variance in (low, best)), key=lambda pair: pair[1].rmse)


# ------------------------------------------------------------------------------------------------------------ the plan


def _assembled(
    problem: Problem,
    case: Case,
    found: Told,
    evidence: SequenceEvidence,
    lattice: ValueLattice,
    least: Mapping[str, float],
    left: Budget,
) -> Plan:
    scales = {step.column: step.noise for step in evidence.own_steps}
    gap = max(scale - least[column] for column, scale in scales.items())
    needed = gap > 1e-6 * min(least.values())
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=left.promised,
        evidence=evidence,
        assumes=(*gaussian_assumptions(case.whole, case.theta, lattice), *left.fit_lines),
        exact=not needed,
        gap=max(0.0, gap) if needed else 0.0,
    )
    certificate.verify()
    return assemble(
        problem,
        "transport",
        AveragesPart(columns=_columns(problem, found, evidence)),
        certificate,
        reference=REFERENCE,
        model_error=_model_error(case, evidence, least, left),
        notes=(*_noise_notes(problem, case, lattice, least, scales), *_notes(problem, case)),
    )


def _columns(problem: Problem, found: Told, evidence: SequenceEvidence) -> tuple[ColumnPlan, ...]:
    wander, bias = found.wander.tolist(), found.bias.tolist()
    spreads = sequence_spreads(evidence, wander, bias)
    own = evidence.innovations().spreads[evidence.before :]
    return tuple(
        ColumnPlan(
            column=step.column,
            noise=Noise(kind="gaussian", scale=step.noise),
            independent=step.noise,
            error=spread.error(),
            fill=problem.missing.get(step.column),
            parameters={
                "form": "sequential",
                "calibration": problem.calibration,
                "mu": 2 * step.reach / math.sqrt(variance),
                "mask": step.least,
                "granularity": granularity(step.noise),
                "slopes": [float(x) for x in row],
                "reads": [read.column for read in evidence.reads],
                "reach": step.reach,
                "clipped": False,
                "wander": wander,
                "bias": bias,
            },
        )
        for step, spread, variance, row in zip(
            evidence.own_steps, spreads, own, evidence.slopes[evidence.before :], strict=True
        )
    )


def _model_error(case: Case, evidence: SequenceEvidence, least: Mapping[str, float], left: Budget) -> tuple[ModelError, ...]:
    """The epsilon that really holds, at the same delta, when every slope is further off than the tolerance says."""
    unmasked = {column: 0.0 for one in case.statistics for column in one}
    rows = []
    for off in OFF_BY:
        checks = told(case.whole, case.theta, {**unmasked, **least}, off, evidence.slopes).checks
        shrunk = _left_of_spread(case, evidence, off)
        apart = max(evidence.distance_of(check) for check in checks)
        rows.append(ModelError(off_by=off, epsilon=real_epsilon(apart / math.sqrt(shrunk) if shrunk > 0 else math.inf, left)))
    return tuple(rows)


def _left_of_spread(case: Case, evidence: SequenceEvidence, off: float) -> float:
    """The share of all answers' covariance that is left, from below, where steeper slopes explain more of it."""
    import numpy as np

    if not any(map(any, evidence.credited)):
        return 1.0  # nothing was credited
    slopes = np.array(evidence.slopes)
    names = tuple(dict.fromkeys(column for one in case.statistics for column in one))
    sds = np.array([case.theta[0].sd_of(name) for name in names])
    weights = np.array([[one.get(name, 0.0) for name in names] for one in case.statistics])
    spread = weights @ (case.theta[0].correlation_matrix(names) * np.outer(sds, sds)) @ weights.T / case.whole.n
    explained = (2 * off + off**2) * slopes @ spread @ slopes.T
    whole = np.array(evidence.credited) + np.diag([step.noise**2 for step in evidence.steps])
    return 1.0 - float(np.linalg.eigvals(np.linalg.solve(whole, explained)).real.max())


def _noise_notes(
    problem: Problem, case: Case, lattice: ValueLattice, least: Mapping[str, float], scales: Mapping[str, float]
) -> tuple[str, ...]:
    return gaussian_notes(
        problem, case.theta, lattice, least, scales, {c: None for c in problem.columns if c in problem.bounds}
    )


def _notes(problem: Problem, case: Case) -> tuple[str, ...]:
    names = ", ".join(dict.fromkeys(c for one in case.statistics for c in one))
    notes = [f"the average of {names} is read too: what it reveals about {', '.join(problem.columns)} is removed."]
    notes.append("errors and intervals are over the tables that the assumption describes; far from its means they are larger.")
    if case.past is not None:
        notes.append(
            f"planned together with {len(case.past.steps)} average(s) released before: {', '.join(case.past.columns)}."
        )
    if any(secret.cases is not None for secret in problem.secrets):
        notes.append("sets of values are hidden point by point.")
    if case.exact:
        notes.append("slopes are taken as exact (tolerance 0).")
    else:
        notes.append("what averages vary by themselves is not credited where later columns may follow under a tolerance.")
    return tuple(notes)
