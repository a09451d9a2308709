"""`gaussian` under records: the least noise on a sum for every law listed and every pair (docs/theory/recorded-laws.md)."""

from __future__ import annotations

import math

from attrpriv.cases.recorded import RecordedCase, recorded_assumptions, recorded_case
from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import ExpectedError, Noise, gaussian_error
from attrpriv.methods.base.certificate import Certificate, Guarantee, statement
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.parts import AveragesPart, Part, TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally import Tally, TallyCell
from attrpriv.methods.recorded.proof import RecordedCheck, RecordedEvidence, shift_of
from attrpriv.numerics.calibration.gaussian import grid_charge
from attrpriv.numerics.calibration.recorded_members import least_members_scale
from attrpriv.numerics.rounding import LEFT_DOWN, ROUNDED_DOWN, SOLVED_UP
from attrpriv.numerics.special import normal_cdf
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, no_delta, refusal_of, refusing

REFERENCE = "docs/theory/recorded-laws.md"
# The least noise, as a share of the sum's own standard deviation: with less, laws take too long to compute.
_FLOOR = 0.03
# In spacings, of a column that has one value.
_LEAST = 0.05
# The error of a count is told in so many steps.
_TAILS = 160


def plan(problem: Problem) -> Plan:
    """The least noise, rounded to a public step."""
    if problem.delta == 0:
        raise no_delta()
    if problem.calibration == "classical":
        raise Refusal(
            Cause.MISTAKE, "calibration: classical is for means; under records it is exact.", needs="calibration analytic"
        )
    case = recorded_case(problem)
    evidence = _evidence(case)
    certificate = Certificate(
        epsilon=problem.epsilon, delta=problem.delta, evidence=evidence, assumes=recorded_assumptions(case), exact=False
    )
    certificate.verify()
    error = _error(evidence)
    return assemble(
        problem,
        "gaussian",
        _part(case, evidence, error),
        certificate,
        guarantee=Guarantee(kind="proved", statement=f"{statement(problem)}, for the laws listed", reference=REFERENCE),
        errors=tuple(_error_of(case, evidence, error, query.kind, query.whole_table) for query in problem.queries),
        notes=_notes(case, evidence),
    )


def _evidence(case: RecordedCase) -> RecordedEvidence:
    problem, asked = case.problem, case.asked
    lam, eta = grid_charge(1)
    epsilon = (problem.epsilon - 2 * lam) * ROUNDED_DOWN
    delta = (problem.delta - eta * (1 + math.exp(problem.epsilon))) * math.exp(-lam) * LEFT_DOWN
    with refusing(UsageError, to=lambda error: refusal_of(error, name="records")):
        scale = least_members_scale(
            [(one.laws, one.secrets) for one in case.checks], problem.n, epsilon, delta, least=_floor(case), shift_of=shift_of
        )
    return RecordedEvidence(
        statistic=asked.name,
        event=asked.event is not None,
        unit=str(asked.unit),
        n=problem.n,
        scale=scale,
        checks=tuple(RecordedCheck(secret=one.text, secrets=one.secrets, laws=one.laws) for one in case.checks),
    )


# ------------------------------------------------------------------------------------------------------------ what is drawn


def _part(case: RecordedCase, evidence: RecordedEvidence, error: ExpectedError) -> Part:
    asked, problem = case.asked, case.problem
    if asked.event is not None:
        return TallyPart(tally=event_tally(case).model_copy(update=_counted(evidence)))
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
    return AveragesPart(columns=(column,))


def event_tally(case: RecordedCase) -> Tally:
    """The rows that satisfy the condition, each counting one."""
    where = case.asked.name
    cell = TallyCell(name=where, where=where, value=1)
    return Tally(cells=(cell,), complete=False, categories=(), fill=case.problem.missing)


def _counted(evidence: RecordedEvidence) -> dict[str, object]:
    each = max(1, math.ceil(8 * evidence.scale / _TAILS))
    # Rounding to a step, and to a whole number, moves an answer by at most this.
    off = evidence.step / 2 + 0.5
    tails = tuple(min(1.0, 2 * normal_cdf(-max(0.0, k * each - off) / evidence.scale)) for k in range(_TAILS))
    parameters = {"step": evidence.step, "laws": _laws(evidence)}
    return {"noise": "kernel", "scale": evidence.scale, "tails": tails, "tail_step": each, "parameters": parameters}


def _laws(evidence: RecordedEvidence) -> int:
    return len(evidence.checks[0].laws)


def _spread(evidence: RecordedEvidence) -> float:
    """The standard deviation of what is added to the sum: noise, and the rounding to a step."""
    step = max(evidence.step, 1.0) if evidence.event else evidence.step
    return math.hypot(evidence.scale, step / math.sqrt(12))


def _error(evidence: RecordedEvidence) -> ExpectedError:
    """Of the sum, in spacings."""
    return gaussian_error(_spread(evidence))


def _error_of(case: RecordedCase, evidence: RecordedEvidence, error: ExpectedError, kind: str, public: bool) -> ExpectedError:
    if public:
        return ExpectedError(rmse=0.0, mean_absolute=0.0, alpha95=0.0, worst=0.0)
    return error.scaled(float(case.asked.unit) / (evidence.n if kind == "avg" else 1))


def _notes(case: RecordedCase, evidence: RecordedEvidence) -> tuple[str, ...]:
    asked = case.asked
    step = evidence.step * float(asked.unit)
    notes = [f"for the {_laws(evidence)} laws listed, not for rows that are like none of them."]
    if asked.event is None:
        notes.append(f"the noisy sum is rounded to multiples of {step:g}; rows are rounded to {float(asked.unit):g} first.")
        if asked.clip is not None:
            notes.append(f"{asked.column}: values outside its bounds are clipped.")
    if evidence.scale <= _floor(case) * SOLVED_UP:
        notes.append(f"noise of {_FLOOR:.0%} of the sum's own spread is enough; less is not tried.")
    return tuple(notes)


def _floor(case: RecordedCase) -> float:
    spread = max(law.moments()[1] for one in case.checks for law in one.laws)
    return max(_FLOOR * spread * math.sqrt(case.problem.n), _LEAST)


__all__ = ["REFERENCE", "event_tally", "plan"]
