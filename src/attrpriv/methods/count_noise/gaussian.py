"""`gaussian` for counts: the least discrete Gaussian noise that makes the laws of the noisy answers (epsilon, delta)-close."""

from __future__ import annotations

import math
from typing import Literal

from attrpriv.cases.lattice import Counted, counted
from attrpriv.errors import UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.count_noise.plan import checks, count_plan, set_evidence, why_pointwise
from attrpriv.methods.count_noise.proof import CountDirectEvidence, CountLaplaceEvidence
from attrpriv.numerics.calibration.direct import least_direct_scale
from attrpriv.numerics.calibration.laplace import laplace_loss
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, no_delta

_REFERENCE = "docs/theory/exact-calibration.md"


def plan(problem: Problem) -> Plan:
    """Direct calibration of whole-number Gaussian noise."""
    found = counted(problem)
    if found.tally.histogram:
        raise Refusal(Cause.STATISTIC, "is for one number; a histogram is covered by laplace.", needs="mechanism laplace")
    if problem.calibration == "classical":
        raise Refusal(
            Cause.MISTAKE, "calibration: classical is for means; with counts it is exact.", needs="calibration analytic"
        )
    if problem.delta == 0:
        raise no_delta()
    if all(laplace_loss(case.records, case.pairs.apart, 0.0).upper <= problem.epsilon for case in found.cases):
        exact = CountLaplaceEvidence(checks=checks(found), scale=0.0)
        return count_plan(found, "gaussian", "none", 0.0, exact, _REFERENCE)
    sets = set_evidence(found, "gaussian", 0.0, math.inf)
    if sets is not None:
        return count_plan(found, "gaussian", sets.noise, sets.scale, sets, _REFERENCE)
    scale = _scale(found)
    noise: Literal["gaussian", "none"] = "gaussian" if scale else "none"
    evidence = CountDirectEvidence(checks=checks(found), noise=noise, scale=scale, known=found.known)
    return count_plan(found, "gaussian", noise, scale, evidence, _REFERENCE, notes=why_pointwise(found))


def _scale(found: Counted) -> float:
    problem, reason = found.problem, None
    try:
        return max(
            least_direct_scale([c.records], c.pairs, "gaussian", problem.epsilon, problem.delta, known=found.known)
            for c in found.cases
        )
    except UsageError as error:
        reason = str(error)
    raise Refusal(Cause.NUMBERS, reason)
