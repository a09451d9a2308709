"""A counts assumption that was fitted: the chance that it misses the truth is paid out of delta, once, by every mechanism.

    planned with delta - risk, promised as delta             risk = 1 - confidence <= delta/2
    planned with delta, promised as delta + risk             where the policy accepts a larger one

If the intervals hold, the plan is (epsilon, delta - risk)-private; they do not with probability `risk`, which is counted as a
failure: average over the public records (docs/guide/fit.md). For later releases the miss is the same one event.

What must never change: a plan that rests on the fitted probabilities carries the risk in its certificate and in its statement.
"""

from __future__ import annotations

from attrpriv.assumptions.fit_risk import FitCharge, fit_charge, fit_refusal
from attrpriv.errors import CertificateError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.dispatch import planned_by
from attrpriv.methods.method import Method
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.shapes import LATTICE


def charged(method: Method, problem: Problem) -> Plan:
    """The plan, which pays for the fit where there is one."""
    fitted = problem.shape == LATTICE and any(member.fit_record() is not None for member in problem.theta)
    # What rests on no assumption is free; noise for the whole range does where counts came before it.
    free = method.without_assumption and (problem.earlier is None or not method.follows)
    if not fitted or free:
        return planned_by(method, problem)
    reason = fit_refusal(problem.theta, problem.delta)
    if reason is not None and not problem.accept_fit_risk:
        raise Refusal(Cause.BUDGET, reason, needs=("a fit with that confidence", "accept_fit_risk"), usage=True)
    charge = fit_charge(problem.theta, problem.delta)
    return _with_charge(planned_by(method, problem.model_copy(update={"delta": charge.calibration})), charge)


def _with_charge(made: Plan, charge: FitCharge) -> Plan:
    """The same noise; the promise is that of all public records, those included whose intervals miss."""
    said, promised = f"delta {charge.calibration:g})", f"delta {charge.promised:g})"
    if made.guarantee.statement.count(said) != 1:
        raise CertificateError("plan: the statement does not say its delta where it is looked for. Please report this.")
    certificate = made.certificate.model_copy(
        update={"delta": charge.promised, "fit_delta": charge.risk, "assumes": (*made.certificate.assumes, *charge.lines)}
    )
    certificate.verify()
    guarantee = made.guarantee.model_copy(update={"statement": made.guarantee.statement.replace(said, promised)})
    return made.rebuilt(delta=charge.promised, certificate=certificate, guarantee=guarantee)
