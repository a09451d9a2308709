"""`laplace`, `gaussian`, `wasserstein`, `optimal` and `constant` for counts under a parameter network.

Given a hidden parameter's value the count is a mixture of binomial laws, one for each state of the counted column's own
parameter. Everything that is done for count laws is done for these mixtures (docs/theory/parameter-counts.md):

| mechanism | noise |
|---|---|
| `laplace` | the least whole-number Laplace noise that makes any two mixtures look alike; none where the influence is small |
| `gaussian` | the same for Gaussian noise, with delta |
| `wasserstein` | for the distance by which one mixture has to be moved to become another |
| `optimal` | the kernel with the least expected error among all that see the count alone, up to 150 rows |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeVar

from attrpriv.cases.parameter_lattice import (
    ParameterCase,
    ParameterCounted,
    expected_counts,
    parameter_assumptions,
    parameter_counted,
    parameter_notes,
)
from attrpriv.errors import CertificateError, RefusedError, UsageError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.parts import TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally import WholeSpread
from attrpriv.methods.base.tally_plan import constant_plan, kernel_answer_error, row_scale, tally_plan
from attrpriv.methods.parameter_counts.proof import (
    ParameterKernelEvidence,
    ParameterNoiseEvidence,
    ParameterWassersteinEvidence,
)
from attrpriv.numerics.calibration.direct import shift_scale
from attrpriv.numerics.calibration.linear_program import MOST_VALUES
from attrpriv.numerics.calibration.parameter_counts import (
    is_least_scale,
    least_parameter_scale,
    parameter_distance,
    parameter_influence,
    parameter_kernel,
)
from attrpriv.numerics.rounding import AIMED_UP, SOLVED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, no_delta, refusal_of, refusing

_REFERENCE = "docs/theory/parameter-counts.md"
# `auto` solves the linear program up to so many rows; beyond, it takes more than a few seconds.
AUTO_ROWS = 100
# Laws with delta are compared with all of their noise: beyond so many rows that takes longer than a plan should.
MOST_ROWS_WITH_DELTA = 20_000
Made = TypeVar("Made")
Noise = Literal["laplace", "gaussian", "none"]


def plan_laplace(problem: Problem) -> Plan:
    """The least Laplace noise on whole numbers."""
    found = parameter_counted(problem)
    least = _refused(lambda: max(_least(case, problem) for case in found.cases))
    scale = max(row_scale(found), least)
    return _noisy(found, "laplace", "laplace", scale)


def _least(case: ParameterCase, problem: Problem) -> float:
    """With delta where floats are accurate enough for it, and never more than pure epsilon needs."""
    pure = least_parameter_scale(case.counts, "laplace", problem.epsilon, 0.0)
    if not pure or not problem.delta or problem.n > MOST_ROWS_WITH_DELTA:
        return pure
    try:
        return min(pure, least_parameter_scale(case.counts, "laplace", problem.epsilon, problem.delta))
    except UsageError:
        return pure


def plan_gaussian(problem: Problem) -> Plan:
    """The least Gaussian noise on whole numbers."""
    found = parameter_counted(problem)
    if problem.calibration == "classical":
        raise Refusal(
            Cause.MISTAKE, "calibration: classical is for means; with counts it is exact.", needs="calibration analytic"
        )
    if problem.delta == 0:
        raise no_delta()
    if problem.n > MOST_ROWS_WITH_DELTA:
        raise Refusal(
            Cause.SIZE, f"compares laws of up to {MOST_ROWS_WITH_DELTA:,} rows; use laplace.", needs="mechanism laplace"
        )
    epsilon, delta = problem.epsilon, problem.delta
    scale = _refused(lambda: max(least_parameter_scale(case.counts, "gaussian", epsilon, delta) for case in found.cases))
    return _noisy(found, "gaussian", "gaussian", scale)


def _noisy(found: ParameterCounted, mechanism: str, noise: Literal["laplace", "gaussian"], scale: float) -> Plan:
    problem, drawn = found.problem, noise if scale else "none"
    evidence = ParameterNoiseEvidence(event=found.event, checks=found.checks, noise=drawn, scale=scale)
    influence = max(parameter_influence(case.counts) for case in found.cases)
    size = f"an influence of {influence:.6g}" if math.isfinite(influence) else "an unbounded influence"
    notes = (f"the parameter of {found.column} itself has {size}; the count tells less.", *parameter_notes(found))
    exact = bool(problem.delta or not scale) or any(is_least_scale(c.counts, scale, problem.epsilon) for c in found.cases)
    assumes = parameter_assumptions(found)
    return tally_plan(found, mechanism, drawn, scale, evidence, _REFERENCE, assumes=assumes, notes=notes, exact=exact)


def plan_wasserstein(problem: Problem) -> Plan:
    """The Wasserstein mechanism, in the form with the least error."""
    found = parameter_counted(problem)
    ways = [_moved_laplace(found, 0.0)]
    if problem.delta > 0:
        # Ignoring mass and moving the rest must add up to delta; the last digits are left to rounding.
        ways += [_moved_laplace(found, problem.delta * SOLVED_DOWN)]
        ways += _moved_gaussian(found, problem.delta * (0.5 - 1e-9), min(_error(found, way) for way in ways))
    best = min(ways, key=lambda way: _error(found, way))
    ignored = f", mass {best.ignored:.3g} left aside" if best.ignored else ""
    notes = (f"W = {best.distance}{ignored}.", *parameter_notes(found))
    assumes = parameter_assumptions(found)
    return tally_plan(found, "wasserstein", best.noise, best.scale, best, _REFERENCE, assumes=assumes, notes=notes)


def _moved_laplace(found: ParameterCounted, ignored: float) -> ParameterWassersteinEvidence:
    distance = _distance(found, ignored)
    scale = max(row_scale(found), distance / found.problem.epsilon * AIMED_UP)
    return _moved(found, distance, ignored, "laplace", scale)


def _moved_gaussian(found: ParameterCounted, ignored: float, error: float) -> list[ParameterWassersteinEvidence]:
    """Nothing where it would err more than `error` anyhow."""
    distance = _distance(found, ignored)
    scale = shift_scale(distance, found.problem.epsilon, ignored, error)
    return [] if scale is None else [_moved(found, distance, ignored, "gaussian", scale)]


def _moved(found: ParameterCounted, distance: int, ignored: float, noise: Noise, scale: float) -> ParameterWassersteinEvidence:
    drawn: Noise = noise if scale else "none"
    return ParameterWassersteinEvidence(
        event=found.event, checks=found.checks, distance=distance, ignored=ignored, noise=drawn, scale=scale
    )


def _distance(found: ParameterCounted, ignored: float) -> int:
    return _refused(lambda: max(parameter_distance(case.counts, ignored) for case in found.cases))


def _error(found: ParameterCounted, way: ParameterWassersteinEvidence) -> float:
    """Of Gaussian noise, with the further noise that single persons need."""
    rows = row_scale(found) if way.noise != "laplace" else 0.0
    return WholeSpread(way.noise, way.scale, rows).moments()[0]


def plan_optimal(problem: Problem) -> Plan:
    """The best kernel that sees the count alone."""
    found = parameter_counted(problem)
    if len(found.cases) != 1:
        raise Refusal(Cause.SECRET, "solves for one secret under one assumption.", needs="one secret under one assumption")
    if problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS, "individuals: single rows are not protected by it; use laplace.", needs="mechanism laplace"
        )
    case = found.cases[0]
    kernel, error = _refused(lambda: parameter_kernel(case.counts, case.prior, problem.epsilon))
    evidence = ParameterKernelEvidence(event=found.event, checks=found.checks, weights=kernel.weights)
    certificate = Certificate(
        epsilon=problem.epsilon, delta=problem.delta, evidence=evidence, assumes=parameter_assumptions(found)
    )
    certificate.verify()
    changes = {"noise": "kernel", "tails": tuple(error.tail), "parameters": {"reads_secret": False}}
    tally = found.tally.model_copy(update=changes)
    return assemble(
        problem,
        "optimal",
        TallyPart(tally=tally),
        certificate,
        reference=_REFERENCE,
        errors=tuple(kernel_answer_error(tally, query, problem.n, error) for query in problem.queries),
        model_error=evidence.model_error(problem.epsilon, problem.delta),
        notes=("expected errors are averages over the network.", *parameter_notes(found)),
    )


def too_slow(problem: Problem) -> str | None:
    """The size up to which `auto` solves the linear program, where it could be solved, but not within seconds."""
    return f"{AUTO_ROWS} rows" if AUTO_ROWS < problem.n < MOST_VALUES else None


def plan_constant(problem: Problem) -> Plan:
    """The count that the network expects."""
    found = parameter_counted(problem)
    return constant_plan(problem, found.tally, expected_counts(found))


def _refused(make: Callable[[], Made]) -> Made:
    """What floats or the solver cannot do is a refusal."""
    with refusing(RefusedError, UsageError, CertificateError, to=lambda error: refusal_of(error, name="optimal")):
        return make()
