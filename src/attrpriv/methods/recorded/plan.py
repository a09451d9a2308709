"""`gaussian` under records: the least noise on a sum for every law listed and every pair (docs/theory/recorded-laws.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from attrpriv.cases.recorded import RecordedCase, recorded_assumptions, recorded_case
from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import ExpectedError, Noise, gaussian_error
from attrpriv.methods.base.certificate import Certificate, Guarantee, statement
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.parts import AveragesPart, Part, TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally import Tally, TallyCategory, TallyCell
from attrpriv.methods.recorded.proof import RecordedCheck, RecordedEvidence, RecordedSum, shift_of
from attrpriv.numerics.calibration.gaussian import grid_charge
from attrpriv.numerics.calibration.recorded_members import least_members_scale
from attrpriv.numerics.rounding import LEFT_DOWN, ROUNDED_DOWN, SOLVED_UP
from attrpriv.numerics.special import normal_cdf
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, no_delta, refusal_of, refusing

REFERENCE = "docs/theory/recorded-laws.md"
# The least noise, as a share of the sum's own standard deviation: with less, laws take too long to compute.
FLOOR = 0.03
# In spacings, of a column that has one value.
_LEAST = 0.05
# The error of a count is told in so many steps.
_TAILS = 160
_RARE = 1e-12


def plan(problem: Problem) -> Plan:
    """The least noise, rounded to a public step."""
    if problem.delta == 0:
        raise no_delta()
    if problem.calibration == "classical":
        raise Refusal(
            Cause.MISTAKE, "calibration: classical is for means; under records it is exact.", needs="calibration analytic"
        )
    case = recorded_case(problem)
    evidence = RecordedEvidence(**stored(case), scale=_scale(case))
    error = gaussian_error(_spread(evidence))
    notes = (f"noise of {FLOOR:.0%} of the sum's own spread is enough; less is not tried.",)
    at_floor = evidence.scale <= floor(case, FLOOR) * SOLVED_UP
    return finished(case, "gaussian", evidence, error, lambda t: 2 * normal_cdf(-t / evidence.scale), notes * at_floor)


def stored(case: RecordedCase) -> dict[str, Any]:
    """What evidence of every kind holds."""
    return {
        "statistic": case.asked.name,
        "event": case.asked.event is not None,
        "unit": str(case.asked.unit),
        "n": case.problem.n,
        "checks": tuple(RecordedCheck(secret=one.text, secrets=one.secrets, laws=one.laws) for one in case.checks),
    }


def gridless(problem: Problem) -> tuple[float, float]:
    """The epsilon and delta that are left once the grid of the noise is paid for."""
    lam, eta = grid_charge(1)
    epsilon = (problem.epsilon - 2 * lam) * ROUNDED_DOWN
    return epsilon, (problem.delta - eta * (1 + math.exp(problem.epsilon))) * math.exp(-lam) * LEFT_DOWN


def _scale(case: RecordedCase) -> float:
    checks = [(one.laws, one.secrets) for one in case.checks]
    with refusing(UsageError, to=lambda error: refusal_of(error, name="records")):
        return least_members_scale(checks, case.problem.n, *gridless(case.problem), least=floor(case, FLOOR), shift_of=shift_of)


def floor(case: RecordedCase, share: float) -> float:
    """The least noise that is tried, in spacings."""
    spread = max(law.moments()[1] for one in case.checks for law in one.laws)
    return max(share * spread * math.sqrt(case.problem.n), _LEAST)


def finished(
    case: RecordedCase,
    mechanism: str,
    evidence: RecordedSum,
    error: ExpectedError,
    tail: Callable[[float], float],
    notes: Sequence[str],
    categories: tuple[TallyCategory, ...] = (),
) -> Plan:
    """The plan. `error` is of the sum, in spacings, and `tail(t)` at least the chance that it is more than t off."""
    problem = case.problem
    certificate = Certificate(
        epsilon=problem.epsilon, delta=problem.delta, evidence=evidence, assumes=recorded_assumptions(case), exact=False
    )
    certificate.verify()
    return assemble(
        problem,
        mechanism,
        _part(case, evidence, error, tail, categories),
        certificate,
        guarantee=Guarantee(kind="proved", statement=f"{statement(problem)}, for the laws listed", reference=REFERENCE),
        errors=tuple(_error_of(case, evidence, error, query.kind, query.whole_table) for query in problem.queries),
        notes=(*_notes(case, evidence), *notes),
    )


# ------------------------------------------------------------------------------------------------------------ what is drawn


def _part(
    case: RecordedCase,
    evidence: RecordedSum,
    error: ExpectedError,
    tail: Callable[[float], float],
    categories: tuple[TallyCategory, ...],
) -> Part:
    asked, problem = case.asked, case.problem
    if asked.event is not None:
        changes = {**_counted(evidence, tail), "categories": categories}
        return TallyPart(tally=event_tally(case).model_copy(update=changes))
    to_average = float(asked.unit) / problem.n
    column = ColumnPlan(
        column=evidence.statistic,
        noise=Noise(kind="gaussian", scale=_spread(evidence) * to_average),
        independent=evidence.own_noise,
        error=error.scaled(to_average),
        fill=asked.fill,
        clip=asked.clip,
        parameters={
            "sum_scale": evidence.scale,
            "sum_step": evidence.step,
            "spacing": float(asked.unit),
            "laws": _laws(evidence),
        },
    )
    return AveragesPart(columns=(column,), categories=categories)


def event_tally(case: RecordedCase) -> Tally:
    """The rows that satisfy the condition, each counting one."""
    where = case.asked.name
    cell = TallyCell(name=where, where=where, value=1)
    return Tally(cells=(cell,), complete=False, categories=(), fill=case.problem.missing)


def _counted(evidence: RecordedSum, tail: Callable[[float], float]) -> dict[str, object]:
    # Rounding to a step, and to a whole number, moves an answer by at most this.
    off, each = evidence.step / 2 + 0.5, max(1, math.ceil(8 * evidence.scale / _TAILS))
    while tail(each * _TAILS / 2) > _RARE:
        each *= 2
    tails = tuple(min(1.0, tail(max(0.0, k * each - off))) for k in range(_TAILS))
    parameters = {"step": evidence.step, "laws": _laws(evidence)}
    return {"noise": "kernel", "scale": evidence.scale, "tails": tails, "tail_step": each, "parameters": parameters}


def _laws(evidence: RecordedSum) -> int:
    return len(evidence.checks[0].laws)


def _spread(evidence: RecordedSum) -> float:
    """The standard deviation of what is added to the sum: noise, and the rounding to a step."""
    step = max(evidence.step, 1.0) if evidence.event else evidence.step
    return math.hypot(evidence.scale, step / math.sqrt(12))


def _error_of(case: RecordedCase, evidence: RecordedSum, error: ExpectedError, kind: str, public: bool) -> ExpectedError:
    if public:
        return ExpectedError(rmse=0.0, mean_absolute=0.0, alpha95=0.0, worst=0.0)
    return error.scaled(float(case.asked.unit) / (evidence.n if kind == "avg" else 1))


def _notes(case: RecordedCase, evidence: RecordedSum) -> tuple[str, ...]:
    asked = case.asked
    step = evidence.step * float(asked.unit)
    notes = [f"for the {_laws(evidence)} laws listed, not for rows that are like none of them."]
    if asked.event is None:
        notes.append(f"the noisy sum is rounded to multiples of {step:g}; rows are rounded to {float(asked.unit):g} first.")
        if asked.clip is not None:
            notes.append(f"{asked.column}: values outside its bounds are clipped.")
    return tuple(notes)


__all__ = ["FLOOR", "REFERENCE", "event_tally", "finished", "floor", "gridless", "plan", "stored"]
