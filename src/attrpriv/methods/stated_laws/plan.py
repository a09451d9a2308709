"""Every mechanism on laws, for a statistic whose laws are written down (docs/theory/stated-laws.md).

| mechanism | what is released | intervals | reads the secret |
|---|---|---|---|
| `laplace`, `gaussian` | the least whole-number noise that makes any two laws look alike | yes | no |
| `wasserstein` | noise for the distance by which one law has to be moved to become another | yes, without delta | no |
| `optimal` | the kernel of least expected error; of a count that can be read, the best coupling | no | where it can |
| `transport` | each law moved to one near a common reference | no | yes |
| `constant` | what the laws expect | at their middle | no |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from attrpriv.cases.stated import Stated, StatedCase, expected_counts, stated, stated_assumptions, stated_notes
from attrpriv.errors import CertificateError, RefusedError, UsageError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.parts import TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally import WholeSpread
from attrpriv.methods.base.tally_plan import constant_plan, kernel_answer_error, row_scale, tally_plan
from attrpriv.methods.stated_laws.proof import (
    StatedCouplingEvidence,
    StatedKernelEvidence,
    StatedNoiseEvidence,
    StatedWassersteinEvidence,
)
from attrpriv.numerics.calibration.coupling import CertifiedCoupling
from attrpriv.numerics.calibration.direct import shift_scale
from attrpriv.numerics.calibration.kernel_accuracy import KernelError
from attrpriv.numerics.calibration.linear_program import MOST_SECRETS, MOST_VALUES
from attrpriv.numerics.calibration.stated_laws import (
    least_stated_scale,
    stated_coupling,
    stated_distance,
    stated_kernel,
    stated_loss,
    stated_transport,
)
from attrpriv.numerics.laws.stated import StatedLaws
from attrpriv.numerics.rounding import AIMED_UP, SOLVED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, no_delta, refusal_of, refusing

_REFERENCE = "docs/theory/stated-laws.md"
# `auto` solves the linear program up to so many steps between the values; beyond, it takes more than a few seconds.
AUTO_VALUES = 100
Made = TypeVar("Made")
Noise = Literal["laplace", "gaussian", "none"]


def plan_laplace(problem: Problem) -> Plan:
    """The least Laplace noise."""
    found = stated(problem)
    scale = max(row_scale(found), _refused(lambda: max(_least(case.laws, problem) for case in found.cases)))
    return _noisy(found, "laplace", scale)


def _least(laws: StatedLaws, problem: Problem) -> float:
    """With delta where the laws are short enough for it, and never more than pure epsilon needs."""
    pure = least_stated_scale(laws, "laplace", problem.epsilon, 0.0)
    if not pure or not problem.delta:
        return pure
    try:
        return min(pure, least_stated_scale(laws, "laplace", problem.epsilon, problem.delta))
    except UsageError:
        return pure


def plan_gaussian(problem: Problem) -> Plan:
    """The least Gaussian noise."""
    found = stated(problem)
    if problem.calibration == "classical":
        raise Refusal(
            Cause.MISTAKE, "calibration: classical is for means; with stated laws it is exact.", needs="calibration analytic"
        )
    if problem.delta == 0:
        raise no_delta()
    epsilon, delta = problem.epsilon, problem.delta
    scale = _refused(lambda: max(least_stated_scale(case.laws, "gaussian", epsilon, delta) for case in found.cases))
    return _noisy(found, "gaussian", scale)


def _noisy(found: Stated, noise: Literal["laplace", "gaussian"], scale: float) -> Plan:
    problem, drawn = found.problem, noise if scale else "none"
    evidence = StatedNoiseEvidence(
        counted=found.tally.identity, n=problem.n, checks=found.checks, one_row=found.one_row, noise=drawn, scale=scale
    )
    exact = found.exact or not scale or (noise == "laplace" and not problem.delta and _needed(found, scale))
    assumes = stated_assumptions(found)
    return tally_plan(found, noise, drawn, scale, evidence, _REFERENCE, assumes=assumes, notes=stated_notes(found), exact=exact)


def _needed(found: Stated, scale: float) -> bool:
    """Whether Laplace noise of a thousandth less would break pure epsilon; delta is bounded from above with intervals."""
    return any(stated_loss(case.laws, scale * (1 - 1e-3)) > found.problem.epsilon for case in found.cases)


def plan_wasserstein(problem: Problem) -> Plan:
    """The Wasserstein mechanism, in the form with the least error."""
    found = stated(problem)
    ways = [_moved_laplace(found, 0.0)]
    if problem.delta > 0 and found.exact:
        # Ignoring mass and moving the rest must add up to delta; the last digits are left to rounding.
        ways += [_moved_laplace(found, problem.delta * SOLVED_DOWN)]
        ways += _moved_gaussian(found, problem.delta * (0.5 - 1e-9), min(_error(found, way) for way in ways))
    best = min(ways, key=lambda way: _error(found, way))
    ignored = f", mass {best.ignored:.3g} left aside" if best.ignored else ""
    notes = (f"W = {best.distance * found.tally.unit:g}{ignored}.", *stated_notes(found))
    assumes = stated_assumptions(found)
    return tally_plan(found, "wasserstein", best.noise, best.scale, best, _REFERENCE, assumes=assumes, notes=notes)


def _moved_laplace(found: Stated, ignored: float) -> StatedWassersteinEvidence:
    distance = _distance(found, ignored)
    scale = max(row_scale(found), distance / found.problem.epsilon * AIMED_UP)
    return _moved(found, distance, ignored, "laplace", scale)


def _moved_gaussian(found: Stated, ignored: float, error: float) -> list[StatedWassersteinEvidence]:
    """Nothing where it would err more than `error` anyhow."""
    distance = _distance(found, ignored)
    scale = shift_scale(distance, found.problem.epsilon, ignored, error)
    return [] if scale is None else [_moved(found, distance, ignored, "gaussian", scale)]


def _moved(found: Stated, distance: int, ignored: float, noise: Noise, scale: float) -> StatedWassersteinEvidence:
    drawn: Noise = noise if scale else "none"
    return StatedWassersteinEvidence(
        counted=found.tally.identity,
        n=found.problem.n,
        checks=found.checks,
        one_row=found.one_row,
        distance=distance,
        ignored=ignored,
        noise=drawn,
        scale=scale,
    )


def _distance(found: Stated, ignored: float) -> int:
    return _refused(lambda: max(stated_distance(case.laws, ignored) for case in found.cases))


def _error(found: Stated, way: StatedWassersteinEvidence) -> float:
    """Of Gaussian noise, with the further noise that single persons need."""
    rows = row_scale(found) if way.noise != "laplace" else 0.0
    return WholeSpread(way.noise, way.scale, rows).moments()[0]


# ----------------------------------------------------------------------------------------------------------------------------
# Kernels and couplings.


def plan_optimal(problem: Problem) -> Plan:
    """The best mechanism that sees the statistic, and where it can be read the secret's count."""
    found = stated(problem)
    case = _one_case(found)
    if found.low is not None and case.laws.apart == len(case.laws.laws) - 1:
        return _coupled(found, "optimal", *_refused(lambda: stated_coupling(case.laws, case.prior, problem.epsilon)))
    kernel, error = _refused(lambda: stated_kernel(case.laws, case.prior, problem.epsilon))
    evidence = StatedKernelEvidence(counted=found.tally.identity, n=problem.n, checks=found.checks, weights=kernel.weights)
    return _drawn(found, "optimal", evidence, error, reads=False)


def plan_transport(problem: Problem) -> Plan:
    """Each law moved by its quantiles to one near a common reference."""
    found = stated(problem)
    case = _one_case(found)
    if found.low is None:
        raise Refusal(
            Cause.SECRET,
            "reads the secret's count or share, which this table must have; of another secret use laplace or optimal.",
            needs=("mechanism laplace", "mechanism optimal"),
        )
    return _coupled(found, "transport", *_refused(lambda: stated_transport(case.laws, case.prior, problem.epsilon)))


def _coupled(found: Stated, mechanism: str, solved: CertifiedCoupling, error: KernelError) -> Plan:
    evidence = StatedCouplingEvidence(
        counted=found.tally.identity,
        n=found.problem.n,
        checks=found.checks,
        low=found.low or 0,
        sources=solved.sources,
        targets=solved.targets,
    )
    return _drawn(found, mechanism, evidence, error, reads=True)


def _drawn(
    found: Stated,
    mechanism: str,
    evidence: StatedKernelEvidence | StatedCouplingEvidence,
    error: KernelError,
    *,
    reads: bool,
) -> Plan:
    problem, assumes = found.problem, [*stated_assumptions(found)]
    notes = ["expected errors are averages over the values of the secret, by the prior where one is stated."]
    if reads:
        assumes.append("the secret is read, so that the stated probabilities are taken as exact: no tolerance is covered")
        notes.append("it reads the secret, and rests on the stated probabilities as they are: no tolerance is covered.")
    certificate = Certificate(epsilon=problem.epsilon, delta=problem.delta, evidence=evidence, assumes=tuple(assumes))
    certificate.verify()
    changes = {"noise": "kernel", "tails": tuple(error.tail), "parameters": {"reads_secret": reads}}
    tally = found.tally.model_copy(update=changes | ({"categories": found.categories} if reads else {}))
    return assemble(
        problem,
        mechanism,
        TallyPart(tally=tally),
        certificate,
        reference=_REFERENCE,
        errors=tuple(kernel_answer_error(tally, query, problem.n, error) for query in problem.queries),
        model_error=evidence.model_error(problem.epsilon, problem.delta),
        notes=(*notes, *stated_notes(found)),
    )


def _one_case(found: Stated) -> StatedCase:
    if found.one_row:
        raise Refusal(
            Cause.SECRET,
            "knows the law of what one row adds, not that of all of them together; use laplace.",
            needs="mechanism laplace",
        )
    if len(found.cases) != 1:
        raise Refusal(Cause.SECRET, "solves for one secret under one assumption.", needs="one secret under one assumption")
    if found.problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS, "individuals: single rows are not protected by it; use laplace.", needs="mechanism laplace"
        )
    return found.cases[0]


def too_slow(problem: Problem) -> str | None:
    """The size up to which `auto` solves the linear program, where it could be solved, but not within seconds."""
    try:
        laws = stated(problem).cases[0].laws
    except Refusal:
        return None
    solvable = laws.reach < MOST_VALUES and len(laws.laws) <= MOST_SECRETS
    return f"{AUTO_VALUES} steps between the values" if solvable and laws.reach >= AUTO_VALUES else None


def plan_constant(problem: Problem) -> Plan:
    """What the laws expect."""
    found = stated(problem)
    return constant_plan(problem, found.tally, expected_counts(found))


def _refused(make: Callable[[], Made]) -> Made:
    """What floats or the solver cannot do is a refusal."""
    with refusing(RefusedError, UsageError, CertificateError, to=lambda error: refusal_of(error, name="optimal")):
        return make()
